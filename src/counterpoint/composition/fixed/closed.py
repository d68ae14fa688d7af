"""The composition theorems in closed form, kept beside the optimal one for reference and for comparison.

Advanced composition in its sharp form (theory, Fixed parameters): eps = sqrt(2 log(1/delta') sum eps_i^2) + sum eps_i
tanh(eps_i/2) at delta = 1 - (1 - delta') prod(1 - delta_i) (Kairouz et al. 2015, Thm 3.5), which is at most delta' +
sum delta_i. Vadhan and Wang 2021, Thm 2, corrected (errata, Vadhan-Wang E1): (sum eps_i, sum_i e^(eps_1 + ... +
eps_(i-1)) delta_i), in the best order.

>>> tenth = (Fraction(1, 10), Fraction(0), 100)
>>> Advanced((tenth,)).epsilon_at(5e-7)
5.88635601848422
"""

from decimal import Decimal
from fractions import Fraction

from counterpoint.composition.fixed.composed import INFINITE, Composed
from counterpoint.composition.fixed.exposure import Parts, exposure, left_after, spell_parts, with_exposure
from counterpoint.encoding import Value
from counterpoint.numbers import Interval, Precision, certify, precision
from counterpoint.privacy.formulas.divergences import concentrated_of_pure
from counterpoint.privacy.loss import DIGITS, certified_delta, rounded_up
from counterpoint.privacy.losses import ApproxDP


class Advanced(Composed, Value, frozen=True):
    """Advanced composition of (epsilon, delta) losses; at delta = 0 it says nothing."""

    parts: Parts

    def __repr__(self) -> str:
        return f"Advanced({spell_parts(self.parts)})"

    @property
    def loss(self) -> "Advanced":
        """Itself: it is a whole curve."""
        return self

    @property
    def method(self) -> str:
        """The name of the rule."""
        return "advanced"

    def _by_renyi(self, delta: Fraction) -> bool:
        """Never: it reaches every delta."""
        return False

    def _epsilon_above(self, delta: Fraction) -> Fraction | Decimal:
        """The formula, from above."""
        bounds = self._epsilon(delta, exposure(self.parts).high)
        return INFINITE if bounds is None else bounds.upper

    def _epsilon_below(self, delta: Fraction) -> Fraction | Decimal:
        """The formula, from below."""
        bounds = self._epsilon(delta, exposure(self.parts).low)
        return INFINITE if bounds is None else bounds.lower

    def _delta_above(self, epsilon: Fraction) -> Decimal:
        """The formula solved for delta, from above."""
        return with_exposure(exposure(self.parts).high, self._slack(epsilon).upper).upper

    def _delta_below(self, epsilon: Fraction) -> Decimal:
        """The formula solved for delta, from below."""
        return with_exposure(exposure(self.parts).low, self._slack(epsilon).lower).lower

    def group(self, size: int) -> "Advanced":
        """Each mechanism's loss for a group, composed."""
        larger = [(ApproxDP(epsilon, delta).group(size), copies) for epsilon, delta, copies in self.parts]
        return Advanced(tuple((loss.epsilon, loss.delta, copies) for loss, copies in larger))

    def _epsilon(self, delta: Fraction, exposed: Fraction) -> Interval | None:
        slack = left_after(delta, exposed)
        if delta == 1 or self._squares == 0:
            return precision(DIGITS)(0) if slack is not None else None
        if not slack:
            return None
        return certify(lambda p: (-2 * p(slack).log() * self._squares).sqrt() + self._drift(p), DIGITS)

    def _slack(self, epsilon: Fraction) -> Interval:
        """The delta' of the formula: exp(-(eps - drift)^2 / (2 sum eps_i^2)), and 1 below the drift."""
        if self._squares == 0:
            return precision(DIGITS)(0)

        def formula(p: Precision) -> Interval:
            beyond = (epsilon - self._drift(p)).at_least(0)
            return (-(beyond * beyond) / (2 * self._squares)).exp()

        return certified_delta(formula)

    @property
    def _squares(self) -> Fraction:
        return sum((copies * epsilon**2 for epsilon, _, copies in self.parts), Fraction(0))

    def _drift(self, p: Precision) -> Interval:
        return sum((copies * concentrated_of_pure(epsilon, p) for epsilon, _, copies in self.parts), p(0))


def vadhan_wang_loss(parts: Parts) -> ApproxDP:
    """Vadhan and Wang 2021, Thm 2: the sum of the epsilons, and each delta as large as the epsilons before it make it.

    >>> vadhan_wang_loss(((Fraction(0), Fraction(1, 10**6), 3),))
    ApproxDP(0, 3e-6)
    """
    total = sum((copies * epsilon for epsilon, _, copies in parts), Fraction(0))
    exposing = sorted((part for part in parts if part[1]), key=_steepness)
    delta = certify(lambda p: _chained(exposing, p), DIGITS) if exposing else precision(DIGITS)(0)
    return ApproxDP(rounded_up(total), min(Fraction(1), rounded_up(delta.upper)))


def _steepness(part: tuple[Fraction, Fraction, int]) -> Decimal:
    """(e^eps - 1)/delta: ascending is the best order, by exchanging neighbours; any order is valid."""
    epsilon, delta, _ = part
    return (precision(20)(min(epsilon, _HOPELESS)).expm1() / delta).lower


_HOPELESS = Fraction(1000)
"""No delta above 0 that can be given stays below 1 when multiplied by e^1000."""


def _chained(exposing: list[tuple[Fraction, Fraction, int]], p: Precision) -> Interval:
    """The sum over i of e^(eps_1 + ... + eps_(i-1)) delta_i; equal terms are a geometric series."""
    total, before = p(0), Fraction(0)
    for epsilon, delta, copies in exposing:
        if before + (copies - 1) * epsilon > _HOPELESS:
            return p(1)
        terms = p(copies * epsilon).expm1() / p(epsilon).expm1() if epsilon and copies > 1 else p(copies)
        total = total + p(before).exp() * delta * terms
        before += copies * epsilon
    return total.at_most(1)

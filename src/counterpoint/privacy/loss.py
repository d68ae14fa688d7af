"""A loss: one amount of privacy, in one measure. Frozen values, exact parameters, certified conversions.

Every loss answers `epsilon_at(delta)` and `delta_at(epsilon)`, the two coordinates in which measures meet,
each as an upper bound (tight where a tight form is known); `implies` is the partial order, within a measure
and across measures where a conversion is valid (Haney et al. 2023, Def 1.15: both coordinates, never tuple order).
Conversions (`as_zcdp`, ...) round toward more loss, or raise `NotCovered`. The meanings of these classes
never change: a new meaning is a new class.

>>> from counterpoint import ApproxDP, PureDP
>>> PureDP(0.5).implies(ApproxDP(1, 1e-6)), ApproxDP(0.5, 0.9).implies(ApproxDP(1, 1e-6))
(True, False)
"""

import math
from abc import abstractmethod
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING

from counterpoint.encoding import Tagged
from counterpoint.errors import NotCovered
from counterpoint.numbers import Interval, Number, Precision, certify, float_up, precision, spell
from counterpoint.numbers.exact import PLACES, at_least, bounded_up, probability

if TYPE_CHECKING:
    from counterpoint.privacy.approx import ApproxDP, ProbabilisticDP
    from counterpoint.privacy.concentrated import tCDP, zCDP
    from counterpoint.privacy.gaussian import GaussianDP
    from counterpoint.privacy.pure import PureDP
    from counterpoint.privacy.renyi import RenyiDP
    from counterpoint.privacy.tradeoff import TradeOff

DIGITS = 50
"""How many digits a conversion is evaluated to, and a converted parameter keeps."""

_NEGLIGIBLE = Decimal("1e-1000")


class Loss(Tagged):
    """One amount of privacy loss; a subclass is one measure."""

    __slots__ = ()

    @abstractmethod
    def _epsilon_bounds(self, delta: Fraction) -> Interval | None:
        """What `epsilon_bounds` says of a delta that has been read."""

    @abstractmethod
    def _delta_bounds(self, epsilon: Fraction) -> Interval:
        """What `delta_bounds` says of an epsilon that has been read."""

    @abstractmethod
    def group(self, size: int) -> "Loss":
        """The loss for a unit that changes `size` places at once (theory, Groups); none at all for 0 places."""

    def epsilon_bounds(self, delta: Number) -> Interval | None:
        """The smallest certified epsilon at this delta, enclosed; None where there is no finite one."""
        return self._epsilon_bounds(probability(delta, "delta"))

    def delta_bounds(self, epsilon: Number) -> Interval:
        """The smallest certified delta at this epsilon, enclosed; at most 1."""
        return self._delta_bounds(at_least(epsilon, 0, "epsilon"))

    def epsilon_at(self, delta: Number) -> float:
        """The epsilon with which this loss implies (epsilon, delta)-DP: an upper bound, or infinite."""
        bounds = self.epsilon_bounds(delta)
        return math.inf if bounds is None else float_up(bounds.upper)

    def delta_at(self, epsilon: Number) -> float:
        """The delta with which this loss implies (epsilon, delta)-DP: an upper bound, at most 1."""
        return min(1.0, float_up(self.delta_bounds(epsilon).upper))

    def implies(self, other: "Loss") -> bool:
        """Whether everything that has this loss has the other too; False where no conversion proves it."""
        if self == other:
            return True
        try:
            return other._follows_from(self)
        except NotCovered:
            return False

    def _follows_from(self, loss: "Loss") -> bool:
        """Each measure knows which conversion of the stronger loss answers for it."""
        return False

    def postprocessed(self) -> "Loss":
        """What is left of it whatever is made of the answers: itself, in every measure that postprocessing keeps."""
        return self

    def as_pure(self) -> "PureDP":
        """Pure DP: only for a loss whose worst case is bounded."""
        from counterpoint.privacy.pure import PureDP  # noqa: PLC0415 - the base meets its heirs at use

        if not self._is_zero():
            raise self._no_conversion("PureDP")
        return PureDP(0)

    def as_approx(self, delta: Number) -> "ApproxDP":
        """(epsilon, delta)-DP at the delta given; lossy, since it keeps one point of a curve."""
        from counterpoint.privacy.approx import ApproxDP  # noqa: PLC0415 - the base meets its heirs at use

        allowed = probability(delta, "delta")
        epsilon = self._least_epsilon(allowed)
        if epsilon is None:
            raise NotCovered(f"{self!r} has no finite epsilon at delta = {spell(allowed)}; a larger delta may have")
        return ApproxDP(epsilon, allowed)

    def as_probabilistic(self, epsilon: Number) -> "ProbabilisticDP":
        """Probabilistic DP at the epsilon given, by the best (e, delta) below it; lossy (errata, Whitehouse E4)."""
        from counterpoint.privacy.approx import probabilistic  # noqa: PLC0415 - the base meets its heirs at use

        return probabilistic(self, at_least(epsilon, 0, "epsilon"))

    def as_renyi(self, alpha: Number) -> "RenyiDP":
        """Rényi DP at the order given."""
        return self._through_pure("RenyiDP").as_renyi(alpha)

    def as_zcdp(self) -> "zCDP":
        """Zero-concentrated DP."""
        return self._through_pure("zCDP").as_zcdp()

    def as_tcdp(self, omega: Number) -> "tCDP":
        """Truncated concentrated DP up to the order given."""
        return self._through_pure("tCDP").as_tcdp(omega)

    def as_gaussian(self) -> "GaussianDP":
        """Gaussian DP."""
        return self._through_pure("GaussianDP").as_gaussian()

    def as_tradeoff(self) -> "TradeOff":
        """The trade-off curve."""
        return self._through_pure("TradeOff").as_tradeoff()

    def _through_pure(self, measure: str) -> "PureDP":
        try:
            return self.as_pure()
        except NotCovered:
            raise self._no_conversion(measure) from None

    def _no_conversion(self, measure: str, would: str = "") -> NotCovered:
        return NotCovered(f"{self!r} has no conversion to {measure}; {would or self._advice()}")

    def _is_zero(self) -> bool:
        """Whether nothing is lost at all, so that every other loss is implied."""
        return False

    def _advice(self) -> str:
        return "its epsilon_at and delta_at say what is known"

    def _least_epsilon(self, delta: Fraction) -> Fraction | None:
        """The upper end of `epsilon_bounds` as a parameter that a loss can carry."""
        bounds = self._epsilon_bounds(delta)
        return None if bounds is None else rounded_up(bounds.upper)

    def _least_delta(self, epsilon: Fraction) -> Fraction:
        """The least delta that is proven at this epsilon, as a parameter that a loss can carry."""
        return rounded_up(self._delta_bounds(epsilon).upper)

    def _least_rho(self) -> Fraction:
        """The least rho for which this loss is proven to be zCDP."""
        return self._through_pure("zCDP")._least_rho()

    def _covers(self, epsilon: Fraction, delta: Fraction) -> bool:
        """Whether this loss is proven to imply (epsilon, delta)-DP, read off either coordinate."""
        if self._least_delta(epsilon) <= delta:
            return True
        least = self._least_epsilon(delta)
        return least is not None and least <= epsilon


def certified_delta(formula: Callable[[Precision], Interval]) -> Interval:
    """A delta to `DIGITS` digits; one that is far below all that can be given is only known to be so.

    >>> certified_delta(lambda p: p(-(10**30)).exp()).upper < Decimal("1e-1000")
    True
    """
    rough = formula(precision(20))
    return precision(DIGITS).between(Decimal(0), rough.upper) if rough.upper < _NEGLIGIBLE else certify(formula, DIGITS)


def rounded_up(value: Decimal | Fraction) -> Fraction:
    """A number that is not negative as a parameter: exact where it can be written, else the next larger one.

    A decimal keeps `DIGITS` digits; nothing keeps more places than a parameter may have.

    >>> rounded_up(Fraction(1, 3)), rounded_up(Fraction(1, 3) ** 1000) == Fraction(1, 10**400)
    (Fraction(1, 3), True)
    """
    if isinstance(value, Fraction):
        return bounded_up(value)
    if value and value.adjusted() < -PLACES:
        return Fraction(1, 10**PLACES)
    return bounded_up(Fraction(precision(DIGITS).ceiling.create_decimal(value)))


def rounded_down(value: Decimal) -> Fraction:
    """A number that is not negative as a parameter, kept to `DIGITS` digits, not above the number itself.

    >>> rounded_down(Decimal("1e-999")), rounded_down(Decimal("0.25"))
    (Fraction(0, 1), Fraction(1, 4))
    """
    if value.adjusted() < DIGITS - PLACES:
        return Fraction(0)
    return Fraction(precision(DIGITS).floor.create_decimal(value))

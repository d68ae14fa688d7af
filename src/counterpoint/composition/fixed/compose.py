"""What losses fixed in advance cost together, however launches interleave: `compose.optimal`, and older bounds.

The multiset must be chosen before the first launch; adaptively chosen parameters need a filter (for them the optimal
bound is false). (eps, delta) losses compose by Vadhan and Wang 2021, Cor 4; Lyu 2022, Thm 1 (continual: Henzinger et
al. 2024, Thm 4.12); zCDP and Renyi by Lyu 2022, Thm 2 (Henzinger et al. 2024, Cor 13.4); Gaussian and f-DP losses, with
finite communication, by the tensor product (Haney et al. 2023, Thm 1.24; Henzinger et al. 2024, Cor 14.7); Gaussian
steps on Poisson samples, as in DP-SGD, by the products of their dominating pairs (Zhu et al. 2022).

>>> from counterpoint import ApproxDP, GaussianDP, compose
>>> losses = [ApproxDP(0.1, 1e-9)] * 100
>>> compose.optimal(losses).epsilon_at(1e-6), compose.advanced(losses).epsilon_at(1e-6)
(4.787723760811647, 5.776111200113309)
>>> compose.optimal([GaussianDP(3), GaussianDP(4)]).loss
GaussianDP(5)
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Any, NoReturn

from counterpoint.composition.fixed.mixed import Mixed
from counterpoint.composition.fixed.optimal import Optimal
from counterpoint.composition.fixed.sampled import SampledGaussians, Steps
from counterpoint.composition.fixed.totals import (
    INFINITE,
    Composed,
    Parts,
    Total,
    exposure,
    format_parts,
    in_order,
    left_after,
    with_exposure,
)
from counterpoint.encoding import Value
from counterpoint.errors import InvalidParameter, NotCovered
from counterpoint.measures import ApproxDP, GaussianDP, PureDP, RenyiDP, SampledGaussianDP, TradeOff, tCDP, zCDP
from counterpoint.measures.conversions import response_of
from counterpoint.measures.divergences import concentrated_of_pure
from counterpoint.measures.loss import Loss
from counterpoint.numbers import Interval, Precision, certify, precision
from counterpoint.numbers.rounding import DIGITS, certified_delta, rounded_up

__all__ = ["advanced", "basic", "optimal", "vadhan_wang"]

SAMPLED_STEPS: dict[type[Loss], Callable[[Any], tuple[Fraction, Fraction] | None]] = {
    SampledGaussianDP: lambda loss: (loss.mu, loss.rate),
    GaussianDP: lambda loss: (loss.mu, Fraction(1)) if loss.mu else None,
}
"""The mu and the rate of the Gaussian step on a Poisson sample that a loss is; the rate is 1 on all units."""


def optimal(losses: Iterable[Loss]) -> Composed:
    """The least that is true of every composition of these losses.

    Losses of one measure by its own rule, where it has one; PureDP, ApproxDP and ProbabilisticDP, GaussianDP,
    SampledGaussianDP, TradeOff, and one of zCDP, tCDP and RenyiDP of one order also together, by the product of their
    pairs (theory, Unlike measures together). Those that are neither pure nor approximate must then answer once or have
    finite communication; GaussianDP and TradeOff may be memoryless instead.

    >>> from counterpoint import PureDP, zCDP
    >>> optimal([PureDP(0.1)] * 10).epsilon_at(0), optimal([]).delta_at(0)
    (1.0, 0.0)
    >>> optimal([PureDP(0.1)] * 10 + [zCDP(0.01)]).epsilon_at(1e-6) < zCDP(0.06).epsilon_at(1e-6)
    True
    """
    return optimal_of(_counted(losses))


def optimal_of(counted: Mapping[Loss, int]) -> Composed:
    """The same, for losses with the number of each.

    >>> from counterpoint import PureDP
    >>> optimal_of({PureDP(0.01): 100}).epsilon_at(1e-6)
    0.3922639430934738
    """
    parts, steps = _parts(counted), _sampled_steps(counted)
    if parts is not None:
        return Optimal(parts)
    if steps is not None:
        return SampledGaussians(steps)
    return _by_own_rule(counted) if len({type(loss) for loss in counted}) == 1 else _mixed(counted)


def _mixed(counted: Mapping[Loss, int]) -> Mixed:
    """Losses of several measures, sorted by what is done with them; `NotCovered` for what has no pair."""
    responses = {loss: copies for loss, copies in counted.items() if response_of(loss) is not None}
    rest = {loss: copies for loss, copies in counted.items() if loss not in responses}
    steps = {loss: copies for loss, copies in rest.items() if type(loss) in SAMPLED_STEPS}
    outcomes = tuple((loss, copies) for loss, copies in rest.items() if isinstance(loss, TradeOff))
    divergences: dict[Loss, int] = {
        loss: copies for loss, copies in rest.items() if isinstance(loss, zCDP | tCDP | RenyiDP)
    }
    others = [loss for loss in rest if not (loss in steps or loss in divergences or isinstance(loss, TradeOff))]
    if others or len({type(loss) for loss in divergences}) > 1:
        return _no_theorem(counted)
    plain = {loss: copies for loss, copies in steps.items() if isinstance(loss, GaussianDP)}
    sampled = [(loss.mu, loss.rate, copies) for loss, copies in steps.items() if isinstance(loss, SampledGaussianDP)]
    mu = GaussianDP.compose_fixed(plain)[0].mu
    parts = _parts(responses)
    assert parts is not None
    return Mixed(
        parts,
        (*sampled, *([(mu, Fraction(1), 1)] if mu else [])),
        outcomes,
        _by_own_rule(divergences).loss if divergences else None,
    )


def summed(counted: Mapping[Loss, int]) -> Loss:
    """What losses and their numbers cost by the rule of their measure; mixed (epsilon, delta) by basic composition.

    >>> from counterpoint import ApproxDP, GaussianDP, PureDP, zCDP
    >>> summed({zCDP("1e-30"): 10**30}), summed({GaussianDP(1): 4}), summed({PureDP(1): 2, ApproxDP(1, 1e-6): 1})
    (zCDP(1), GaussianDP(2), ApproxDP(3, 1e-6))
    """
    if len({type(loss) for loss in counted}) > 1:
        parts = _parts(counted)
        if parts is not None:
            return _basic(parts).loss
    return _by_own_rule(counted).loss


def _by_own_rule(counted: Mapping[Loss, int]) -> Total:
    measures = {type(loss) for loss in counted}
    if len(measures) == 1:
        return Total(*measures.pop().compose_fixed(counted))
    return _no_theorem(counted)


def _no_theorem(counted: Mapping[Loss, int]) -> NoReturn:
    measures = {type(loss) for loss in counted}
    names = ", ".join(sorted(measure.__name__ for measure in measures))
    raise NotCovered(
        f"no theorem composes {names} losses as they are; convert them to one measure first, "
        "for instance with as_zcdp(), as_renyi(alpha) or as_tradeoff()"
    )


def basic(losses: Iterable[Loss]) -> Composed:
    """(sum eps_i, sum delta_i): exact, and all there is at delta = 0.

    >>> from counterpoint import ApproxDP
    >>> basic([ApproxDP(0.1, 1e-9)] * 3).loss
    ApproxDP(0.3, 3e-9)
    """
    return _basic(_approximate(losses, "basic"))


def _basic(parts: Parts) -> Total:
    return Total(*ApproxDP.compose_fixed({ApproxDP(epsilon, delta): copies for epsilon, delta, copies in parts}))


def advanced(losses: Iterable[Loss]) -> Composed:
    """Advanced composition: sqrt(2 log(1/delta') sum eps_i^2) + sum eps_i tanh(eps_i/2).

    delta is 1 - (1 - delta') prod(1 - delta_i), so delta' is what the deltas given leave of it.

    >>> from counterpoint import PureDP
    >>> advanced([PureDP(0.01)] * 1000).epsilon_at(1e-6)
    1.71225771960661
    """
    return Advanced(_approximate(losses, "advanced"))


def vadhan_wang(losses: Iterable[Loss]) -> Composed:
    """(sum eps_i, sum_i e^(eps_1 + ... + eps_(i-1)) delta_i), in the best order.

    Vadhan and Wang 2021, Thm 2 as corrected in errata, Vadhan-Wang E1: the first theorem on concurrent composition,
    superseded by `optimal`.

    >>> from counterpoint import ApproxDP
    >>> vadhan_wang([ApproxDP(1, 1e-6)] * 2).delta_at(2)
    3.7182818284590455e-06
    """
    return Total(vadhan_wang_loss(_approximate(losses, "Vadhan-Wang")), "vadhan_wang")


def _counted(losses: Iterable[Loss]) -> Counter[Loss]:
    if isinstance(losses, Loss | Mapping) or not isinstance(losses, Iterable):  # a mapping would lose its counts
        raise InvalidParameter("give the losses to compose, one for each mechanism: a list of PureDP, ApproxDP, ...")
    given = list(losses)
    for loss in given:
        if not isinstance(loss, Loss):
            raise InvalidParameter(f"only losses such as PureDP(0.1) compose, but a {type(loss).__name__} was given")
    return Counter(given)


_ZERO = Fraction(0)


def _parts(counted: Mapping[Loss, int]) -> Parts | None:
    """The (epsilon, delta) of each loss, counted; None where one has none."""
    if all(type(loss) is PureDP for loss in counted):  # which differ in their epsilons: nothing is to be counted
        return in_order([(loss.epsilon, _ZERO, copies) for loss, copies in counted.items()])  # type: ignore[attr-defined]
    parts: Counter[tuple[Fraction, Fraction]] = Counter()
    for loss, copies in counted.items():
        response = response_of(loss)
        if response is None:
            return None
        parts[response] += copies
    return in_order([(epsilon, delta, copies) for (epsilon, delta), copies in parts.items()])


def _sampled_steps(counted: Mapping[Loss, int]) -> Steps | None:
    """The mu and the rate of each loss, counted; None where one has none, or all are Gaussian on all units."""
    steps: Counter[tuple[Fraction, Fraction]] = Counter()
    for loss, copies in counted.items():
        step = SAMPLED_STEPS.get(type(loss), lambda _: None)(loss)
        if step is None:
            return None
        steps[step] += copies
    if all(rate == 1 for _, rate in steps):
        return None
    return tuple(sorted((mu, rate, copies) for (mu, rate), copies in steps.items()))


def _approximate(losses: Iterable[Loss], rule: str) -> Parts:
    parts = _parts(_counted(losses))
    if parts is None:
        raise NotCovered(f"{rule} composition is for PureDP and ApproxDP losses; compose.optimal takes the others")
    return parts


class Advanced(Composed, Value, frozen=True):
    """Advanced composition of (epsilon, delta) losses; at delta = 0 it says nothing.

    Advanced composition in its sharp form (theory, Fixed parameters): eps = sqrt(2 log(1/delta') sum eps_i^2) + sum
    eps_i tanh(eps_i/2) at delta = 1 - (1 - delta') prod(1 - delta_i) (Kairouz et al. 2015, Thm 3.5), which is at most
    delta' + sum delta_i.

    >>> tenth = (Fraction(1, 10), Fraction(0), 100)
    >>> Advanced((tenth,)).epsilon_at(5e-7)
    5.88635601848422
    """

    parts: Parts

    def __repr__(self) -> str:
        return f"Advanced({format_parts(self.parts)})"

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

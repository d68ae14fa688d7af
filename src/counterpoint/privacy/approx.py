"""Approximate differential privacy, and its stricter relative, probabilistic differential privacy.

(eps, delta)-DP is what the mechanism RR(eps, delta) has, which exposes the truth with probability delta and answers by
randomized response otherwise; every other such mechanism is a postprocessing of it (Kairouz et al. 2015;
Henzinger et al. 2024, Lemma 4.7). Probabilistic DP (Whitehouse et al. 2023, sec. 2) asks that the privacy loss itself
exceeds eps, to either side, with probability at most delta: Whitehouse et al.'s time-uniform odometers need it of every
launch, and it implies (eps, delta)-DP (Whitehouse et al. 2023, Lemma 1). What those odometers promise in return is
one-sided (one_sided.py).

>>> from counterpoint import ApproxDP
>>> ApproxDP(1, 1e-6).delta_at(2), ApproxDP(1, 1e-6).epsilon_at(1e-7)
(1e-06, inf)
"""

import math
from abc import abstractmethod
from collections.abc import Callable
from fractions import Fraction
from typing import TYPE_CHECKING, Self

import msgspec

from counterpoint.encoding import Value
from counterpoint.errors import NotCovered
from counterpoint.numbers import Interval, Number, Precision, certify, precision, spell
from counterpoint.numbers.exact import at_least, probability, whole
from counterpoint.privacy import pure, tradeoff
from counterpoint.privacy.loss import DIGITS, Loss, rounded_up

_GOLDEN = (math.sqrt(5) - 1) / 2


class ApproxDP(Loss, Value, frozen=True):
    """(epsilon, delta)-differential privacy.

    >>> ApproxDP(1, 1e-6).delta
    Fraction(1, 1000000)
    """

    epsilon: Fraction
    delta: Fraction

    if TYPE_CHECKING:

        def __init__(self, epsilon: Number, delta: Number) -> None: ...

    def __post_init__(self) -> None:
        msgspec.structs.force_setattr(self, "epsilon", at_least(self.epsilon, 0, "epsilon"))
        msgspec.structs.force_setattr(self, "delta", probability(self.delta, "delta"))

    def __repr__(self) -> str:
        return f"ApproxDP({spell(self.epsilon)}, {spell(self.delta)})"

    def _epsilon_bounds(self, delta: Fraction) -> Interval | None:
        """What the exposures leave of delta buys epsilon as in pure DP; below delta there is none."""
        if delta < self.delta:
            return None
        if delta == 1:
            return precision(DIGITS)(0)
        return pure.PureDP(self.epsilon)._epsilon_bounds((delta - self.delta) / (1 - self.delta))

    def _delta_bounds(self, epsilon: Fraction) -> Interval:
        """The hockey stick of RR(epsilon, delta), delta + (1 - delta) times that of randomized response."""
        return pure.PureDP(self.epsilon)._delta_bounds(epsilon) * (1 - self.delta) + self.delta

    def group(self, size: int) -> "ApproxDP":
        """A unit of m places: (m eps, delta (e^(m eps) - 1)/(e^eps - 1)), the quotient being m at eps = 0.

        >>> ApproxDP(0, 1e-6).group(3)
        ApproxDP(0, 3e-6)
        """
        places = whole(size, 0, "size")
        if places == 1:
            return self
        return ApproxDP(places * self.epsilon, _group_delta(self.epsilon, self.delta, places))

    def as_pure(self) -> "pure.PureDP":
        """PureDP(epsilon) if delta is 0; otherwise there is none."""
        if self.delta:
            raise self._no_conversion("PureDP")
        return pure.PureDP(self.epsilon)

    def as_probabilistic(self, epsilon: Number) -> "ProbabilisticDP":
        """(eps', delta (1+e^-eps')/(1-e^(eps-eps')))-pDP for an eps' above eps (errata, Whitehouse E4); tight.

        >>> float(ApproxDP(1, 1e-3).as_probabilistic(2).delta)
        0.0017960739725672106
        """
        target = at_least(epsilon, 0, "epsilon")
        if self.delta == 0:
            return self.as_pure().as_probabilistic(target)
        if target <= self.epsilon:
            raise self._no_conversion(
                f"ProbabilisticDP at epsilon {spell(target)}", f"above {spell(self.epsilon)} it has one"
            )
        return ProbabilisticDP(target, min(Fraction(1), _tail(self.epsilon, self.delta, target)))

    def as_tradeoff(self) -> "tradeoff.TradeOff":
        """f_(epsilon, delta), rounded toward more loss."""
        return tradeoff.TradeOff.of_approx(self.epsilon, self.delta)

    def _advice(self) -> str:
        return "an exposure of probability delta is an infinite loss: only delta = 0 converts, or a PureDP loss"

    def _follows_from(self, loss: Loss) -> bool:
        return loss._covers(self.epsilon, self.delta)

    def _least_delta(self, epsilon: Fraction) -> Fraction:
        return self.delta if epsilon >= self.epsilon else super()._least_delta(epsilon)

    def _least_epsilon(self, delta: Fraction) -> Fraction | None:
        least = super()._least_epsilon(delta)
        return None if least is None else min(self.epsilon, least)


class Probabilistic(Loss):
    """What probabilistic DP and its one-sided form share: as (epsilon, delta)-DP they promise the same.

    RR(epsilon, delta) has both, so nothing better holds for either (Whitehouse et al. 2023, Lemma 1 and its converse).
    """

    __slots__ = ()

    if TYPE_CHECKING:
        epsilon: Fraction
        delta: Fraction

        def __init__(self, epsilon: Number, delta: Number) -> None: ...

    def _epsilon_bounds(self, delta: Fraction) -> Interval | None:
        """As for ApproxDP."""
        return self._as_approx()._epsilon_bounds(delta)

    def _delta_bounds(self, epsilon: Fraction) -> Interval:
        """As for ApproxDP."""
        return self._as_approx()._delta_bounds(epsilon)

    def group(self, size: int) -> Self:
        """Pure where delta is 0; otherwise no theorem: the loss between two middle places has another law."""
        places = whole(size, 0, "size")
        if places == 1:
            return self
        if places and self.delta:
            would = "as_approx(delta).group(size) has a theorem"
            raise NotCovered(f"{self!r} has no group privacy; {would}")
        return type(self)(places * self.epsilon, 0)

    def postprocessed(self) -> ApproxDP:
        """The (epsilon, delta)-DP that it implies: an answer with a huge loss, mixed into others, makes theirs exceed.

        >>> ProbabilisticDP(1, 1e-6).postprocessed()
        ApproxDP(1, 1e-6)
        """
        return self._as_approx()

    def as_pure(self) -> "pure.PureDP":
        """PureDP(epsilon) if delta is 0; otherwise there is none."""
        if self.delta:
            raise self._no_conversion("PureDP")
        return pure.PureDP(self.epsilon)

    def as_probabilistic(self, epsilon: Number) -> "ProbabilisticDP":
        """What holds from both sides, at this epsilon or any larger one."""
        target = at_least(epsilon, 0, "epsilon")
        if target < self.epsilon:
            raise self._no_conversion(
                f"ProbabilisticDP at epsilon {spell(target)}", f"at {spell(self.epsilon)} or above it has one"
            )
        return ProbabilisticDP(target, self._both_sides(target))

    def as_tradeoff(self) -> "tradeoff.TradeOff":
        """f_(epsilon, delta), rounded toward more loss."""
        return self._as_approx().as_tradeoff()

    @abstractmethod
    def _both_sides(self, epsilon: Fraction) -> Fraction:
        """The delta that holds from both sides, at an epsilon that is not below the loss's own."""

    def _as_approx(self) -> ApproxDP:
        return ApproxDP(self.epsilon, self.delta)

    def _advice(self) -> str:
        return self._as_approx()._advice()

    def _follows_from(self, loss: Loss) -> bool:
        return self.delta == 1 or loss.as_probabilistic(self.epsilon).delta <= self.delta

    def _least_delta(self, epsilon: Fraction) -> Fraction:
        return self._as_approx()._least_delta(epsilon)

    def _least_epsilon(self, delta: Fraction) -> Fraction | None:
        return self._as_approx()._least_epsilon(delta)


class ProbabilisticDP(Probabilistic, Value, frozen=True):
    """(epsilon, delta)-probabilistic differential privacy: the privacy loss is within epsilon but for delta.

    It bounds both sides, P[|L| > epsilon] <= delta; `OneSidedDP` bounds one.

    >>> ProbabilisticDP(1, 0.1).implies(ApproxDP(1, 0.1)), ApproxDP(1, 0.1).implies(ProbabilisticDP(1, 0.1))
    (True, False)
    """

    epsilon: Fraction
    delta: Fraction

    if TYPE_CHECKING:

        def __init__(self, epsilon: Number, delta: Number) -> None: ...

    def __post_init__(self) -> None:
        msgspec.structs.force_setattr(self, "epsilon", at_least(self.epsilon, 0, "epsilon"))
        msgspec.structs.force_setattr(self, "delta", probability(self.delta, "delta"))

    def __repr__(self) -> str:
        return f"ProbabilisticDP({spell(self.epsilon)}, {spell(self.delta)})"

    def _both_sides(self, epsilon: Fraction) -> Fraction:
        return self.delta


def probabilistic(loss: Loss, epsilon: Fraction) -> ProbabilisticDP:
    """The probabilistic DP that a loss has at epsilon through its best (e, delta_at(e)) with e < epsilon.

    Against e^e, delta is convex, so its quotient by 1 - e^(e - epsilon) has a single valley, which a golden
    section finds; whatever e it ends at proves what is returned.

    >>> from counterpoint import zCDP
    >>> float(probabilistic(zCDP(0.01), Fraction(1)).delta)
    3.1242607976421365e-11
    """
    try:
        return loss.as_pure().as_probabilistic(epsilon)
    except NotCovered:
        pass
    if epsilon == 0:
        raise NotCovered(f"{loss!r} has no conversion to ProbabilisticDP at epsilon 0; above 0 it has one")

    def height(fraction: float) -> Fraction:
        below = epsilon * Fraction(fraction)
        return _tail(below, loss._least_delta(below), epsilon)

    return ProbabilisticDP(epsilon, min(Fraction(1), height(_valley(height))))


def _valley(height: Callable[[float], Fraction]) -> float:
    """Where between 0 and 1 a function with a single valley is about lowest."""
    low, high = 0.0, 1.0
    left, right = 1 - _GOLDEN, _GOLDEN
    at_left, at_right = height(left), height(right)
    for _ in range(45):
        if at_left <= at_right:
            high, right, at_right = right, left, at_left
            left = high - _GOLDEN * (high - low)
            at_left = height(left)
        else:
            low, left, at_left = left, right, at_right
            right = low + _GOLDEN * (high - low)
            at_right = height(right)
    return left if at_left <= at_right else right


def _tail(below: Fraction, delta: Fraction, epsilon: Fraction) -> Fraction:
    """P[|loss| > epsilon] under (below, delta)-DP: delta (1+e^-epsilon)/(1-e^(below-epsilon))."""

    def formula(p: Precision) -> Interval:
        return delta * (1 + p(-epsilon).exp()) / -p(below - epsilon).expm1()

    return rounded_up(certify(formula, DIGITS).upper)


def _group_delta(epsilon: Fraction, delta: Fraction, places: int) -> Fraction:
    if places * epsilon == 0 or delta == 0:
        return min(Fraction(1), places * delta)
    if (places - 1) * epsilon > 1000:  # the quotient exceeds e^1000, and every delta that can be given e^-1000
        return Fraction(1)
    growth = certify(lambda p: delta * p(places * epsilon).expm1() / p(epsilon).expm1(), DIGITS)
    return min(Fraction(1), rounded_up(growth.upper))

"""Probabilistic differential privacy: the privacy loss itself is within epsilon, to either side, but for delta.

See Whitehouse et al. 2023, sec. 2. Their time-uniform odometers need it of every launch, and it implies
(eps, delta)-DP (Whitehouse et al. 2023, Lemma 1), which is not enough for them. What those odometers promise in return
is one-sided (one_sided.py).

>>> from counterpoint import ApproxDP, ProbabilisticDP
>>> ProbabilisticDP(1, 0.1).implies(ApproxDP(1, 0.1)), ApproxDP(1, 0.1).implies(ProbabilisticDP(1, 0.1))
(True, False)
"""

import math
from abc import abstractmethod
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar, Self

from counterpoint.encoding import Value
from counterpoint.errors import NotCovered
from counterpoint.numbers import Interval, Number, Precision, certify, spell
from counterpoint.numbers.exact import at_least, whole
from counterpoint.numbers.parameters import NonNegative, Probability
from counterpoint.privacy.loss import DIGITS, OPTIMAL, EpsilonDelta, Loss, rounded_up
from counterpoint.privacy.measures import approximate, pure, tradeoff

_GOLDEN = (math.sqrt(5) - 1) / 2


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
            raise NotCovered(f"{self!r} has no group privacy; use as_approx(delta).group(size)")
        return type(self)(places * self.epsilon, 0)

    def postprocessed(self) -> "approximate.ApproxDP":
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
                f"ProbabilisticDP at epsilon {spell(target)}", f"choose an epsilon of at least {spell(self.epsilon)}"
            )
        return ProbabilisticDP(target, self._both_sides(target))

    def as_tradeoff(self) -> "tradeoff.TradeOff":
        """f_(epsilon, delta), rounded toward more loss."""
        return self._as_approx().as_tradeoff()

    @abstractmethod
    def _both_sides(self, epsilon: Fraction) -> Fraction:
        """The delta that holds from both sides, at an epsilon that is not below the loss's own."""

    def _as_approx(self) -> "approximate.ApproxDP":
        return approximate.ApproxDP(self.epsilon, self.delta)

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

    >>> ProbabilisticDP(1, 0.1).as_approx(0.1)
    ApproxDP(1, 0.1)
    """

    epsilon: NonNegative
    delta: Probability

    def __repr__(self) -> str:
        return f"ProbabilisticDP({spell(self.epsilon)}, {spell(self.delta)})"

    theorem_if_fixed: ClassVar[str] = OPTIMAL

    @classmethod
    def together(cls, counted: Mapping[Self, int]) -> "tuple[approximate.ApproxDP, str]":
        """Basic composition of the (epsilon, delta)-DP that it implies."""
        return approximate.ApproxDP.together({loss._as_approx(): copies for loss, copies in counted.items()})

    def added_response(self) -> EpsilonDelta:
        """RR(epsilon, delta), by the (epsilon, delta)-DP that it implies."""
        return self.epsilon, self.delta

    def added_rho_and_delta(self) -> tuple[Fraction, Fraction]:
        """As for ApproxDP."""
        return self._as_approx().added_rho_and_delta()

    def added_probabilistic(self) -> EpsilonDelta:
        """Epsilon, but for delta."""
        return self.epsilon, self.delta

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
        raise NotCovered(f"{loss!r} has no conversion to ProbabilisticDP at epsilon 0; choose an epsilon above 0")

    def height(fraction: float) -> Fraction:
        below = epsilon * Fraction(fraction)
        return tail_beyond(below, loss._least_delta(below), epsilon)

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


def tail_beyond(below: Fraction, delta: Fraction, epsilon: Fraction) -> Fraction:
    """P[|loss| > epsilon] under (below, delta)-DP: delta (1+e^-epsilon)/(1-e^(below-epsilon))."""

    def formula(p: Precision) -> Interval:
        return delta * (1 + p(-epsilon).exp()) / -p(below - epsilon).expm1()

    return rounded_up(certify(formula, DIGITS).upper)

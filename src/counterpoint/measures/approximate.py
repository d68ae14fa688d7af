"""(epsilon, delta)-DP, and probabilistic DP, which bounds the privacy loss itself.

(eps, delta)-DP is what the mechanism RR(eps, delta) has, which exposes the truth with probability delta and answers by
randomized response otherwise; every other such mechanism is a postprocessing of it (Kairouz et al. 2015;
Henzinger et al. 2024, Lemma 4.7).

>>> from counterpoint import ApproxDP
>>> ApproxDP(1, 1e-6).delta_at(2), ApproxDP(1, 1e-6).epsilon_at(1e-7)
(1e-06, inf)
"""

from abc import abstractmethod
from collections.abc import Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar, Self

from msgspec.structs import replace

from counterpoint.encoding import Value
from counterpoint.errors import NotCovered
from counterpoint.measures.loss import OPTIMAL, Loss
from counterpoint.measures.pure import PureDP
from counterpoint.numbers import Interval, Number, certify, format_number, precision
from counterpoint.numbers.exact import whole
from counterpoint.numbers.parameters import NonNegative, Probability, default
from counterpoint.numbers.rounding import DIGITS, rounded_up


class ApproxDP(Loss, Value, frozen=True):
    """(epsilon, delta)-differential privacy.

    >>> ApproxDP(1, 1e-6).delta
    1e-6
    """

    epsilon: NonNegative
    delta: Probability

    def __repr__(self) -> str:
        return f"ApproxDP({format_number(self.epsilon)}, {format_number(self.delta)})"

    def _epsilon_bounds(self, delta: Fraction) -> Interval | None:
        """The epsilon of pure DP at what the exposures leave of delta; None below the loss's own delta."""
        if delta < self.delta:
            return None
        if delta == 1:
            return precision(DIGITS)(0)
        return PureDP(self.epsilon)._epsilon_bounds((delta - self.delta) / (1 - self.delta))

    def _delta_bounds(self, epsilon: Fraction) -> Interval:
        """The hockey stick of RR(epsilon, delta), delta + (1 - delta) times that of randomized response."""
        return PureDP(self.epsilon)._delta_bounds(epsilon) * (1 - self.delta) + self.delta

    def group(self, size: int) -> "ApproxDP":
        """A unit of m places: (m eps, delta (e^(m eps) - 1)/(e^eps - 1)), the quotient being m at eps = 0.

        >>> ApproxDP(0, 1e-6).group(3)
        ApproxDP(0, 3e-6)
        """
        places = whole(size, 0, "size")
        if places == 1:
            return self
        return ApproxDP(places * self.epsilon, _group_delta(self.epsilon, self.delta, places))

    @property
    def amounts(self) -> tuple[Fraction, ...]:
        """Epsilon and delta."""
        return self.epsilon, self.delta

    theorem_if_fixed: ClassVar[str] = OPTIMAL

    @classmethod
    def compose_fixed(cls, counted: Mapping[Self, int]) -> tuple["ApproxDP", str]:
        """Basic composition; `compose.optimal` has a whole curve."""
        epsilon = sum((copies * loss.epsilon for loss, copies in counted.items()), Fraction(0))
        delta = sum((copies * loss.delta for loss, copies in counted.items()), Fraction(0))
        return ApproxDP(rounded_up(epsilon), min(Fraction(1), rounded_up(delta))), "basic"

    @property
    def stated_delta(self) -> Fraction:
        """Delta."""
        return self.delta

    def _advice(self) -> str:
        return "an exposure of probability delta is an infinite loss; only delta = 0 converts"

    def _follows_from(self, loss: Loss) -> bool:
        return loss._covers(self.epsilon, self.delta)

    def _least_delta(self, epsilon: Fraction) -> Fraction:
        return self.delta if epsilon >= self.epsilon else super()._least_delta(epsilon)

    def _least_epsilon(self, delta: Fraction) -> Fraction | None:
        least = super()._least_epsilon(delta)
        return None if least is None else min(self.epsilon, least)


def _group_delta(epsilon: Fraction, delta: Fraction, places: int) -> Fraction:
    if places * epsilon == 0 or delta == 0:
        return min(Fraction(1), places * delta)
    if (places - 1) * epsilon > 1000:  # the quotient exceeds e^1000, and every delta that can be given e^-1000
        return Fraction(1)
    growth = certify(lambda p: delta * p(places * epsilon).expm1() / p(epsilon).expm1(), DIGITS)
    return min(Fraction(1), rounded_up(growth.upper))


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

    def postprocessed(self) -> "ApproxDP":
        """The (epsilon, delta)-DP that it implies: an answer with a huge loss, mixed into others, makes theirs exceed.

        >>> ProbabilisticDP(1, 1e-6).postprocessed()
        ApproxDP(1, 1e-6)
        """
        return self._as_approx()

    @abstractmethod
    def _both_sides(self, epsilon: Fraction) -> Fraction:
        """The delta that holds from both sides, at an epsilon that is not below the loss's own."""

    def _as_approx(self) -> "ApproxDP":
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

    Whitehouse et al. 2023, sec. 2: their time-uniform odometers need it of every launch, and it implies (eps,
    delta)-DP (Whitehouse et al. 2023, Lemma 1), which is not enough for them. In return they promise `OneSidedDP`.

    >>> ProbabilisticDP(1, 0.1).as_approx(0.1)
    ApproxDP(1, 0.1)

    >>> ProbabilisticDP(1, 0.1).implies(ApproxDP(1, 0.1)), ApproxDP(1, 0.1).implies(ProbabilisticDP(1, 0.1))
    (True, False)
    """

    epsilon: NonNegative
    delta: Probability

    def __repr__(self) -> str:
        return f"ProbabilisticDP({format_number(self.epsilon)}, {format_number(self.delta)})"

    theorem_if_fixed: ClassVar[str] = OPTIMAL

    @classmethod
    def compose_fixed(cls, counted: Mapping[Self, int]) -> "tuple[ApproxDP, str]":
        """Basic composition of the (epsilon, delta)-DP that it implies."""
        return ApproxDP.compose_fixed({loss._as_approx(): copies for loss, copies in counted.items()})

    def _both_sides(self, epsilon: Fraction) -> Fraction:
        return self.delta


class OneSidedDP(Probabilistic, Value, frozen=True):
    """The privacy loss exceeds epsilon with probability at most delta, in either world; `least` is for `two_sided`.

    This is what the time-uniform odometers of Whitehouse et al. 2023, Thm 2 promise.

    L is the logarithm of how much likelier the view is in the true world than in its neighbour. The promise is P[L >
    epsilon] <= delta, whichever of the two worlds is the true one. It implies (epsilon, delta)-DP as it is, because
    P[S] <= P[S, L <= epsilon] + P[L > epsilon]. Views that speak against the truth, L < -epsilon, come on top: such a
    view is e^epsilon times less likely than in the other world, where it is one that exceeds epsilon, so P[L <
    -epsilon] <= e^-epsilon delta and, for an epsilon that is fixed in advance,

        P[|L| > epsilon] <= delta (1 + e^-epsilon).

    The bound U of a time-uniform odometer changes with time, and an early crossing is one of -U as it was then. At all
    times at once, therefore, P[|L| > U ever] <= delta (1 + e^-u), with u = `least` the smallest value that U can have
    had after a launch; with the present U that would be false (theory, Postprocessing, and a test).

    >>> OneSidedDP(1, 0.1).implies(ProbabilisticDP(1, 0.1)), ProbabilisticDP(1, 0.1).implies(OneSidedDP(1, 0.1))
    (False, True)

    >>> reading = OneSidedDP(3, 0.2, least=0.1)
    >>> reading.as_approx(0.2), reading.delta_at(3)
    (ApproxDP(3, 0.2), 0.2)
    >>> float(reading.two_sided().delta)
    0.3809674836071919
    """

    epsilon: NonNegative
    delta: Probability
    least: NonNegative = default(Fraction(0))

    def __repr__(self) -> str:
        least = f", least={format_number(self.least)}" if self.least else ""
        return f"OneSidedDP({format_number(self.epsilon)}, {format_number(self.delta)}{least})"

    def two_sided(self) -> ProbabilisticDP:
        """What holds from both sides and at all times at once: (epsilon, delta (1 + e^-least)).

        2 delta where nothing is known of the bound's smallest value.

        >>> OneSidedDP(3, 0.2).two_sided()
        ProbabilisticDP(3, 0.4)
        """
        return ProbabilisticDP(self.epsilon, self._both_sides(self.least))

    @property
    def amounts(self) -> tuple[Fraction, ...]:
        """Epsilon and delta."""
        return self.epsilon, self.delta

    def within(self, budget: Loss) -> bool:
        """Coordinate by coordinate, with a smallest value that is not smaller."""
        return isinstance(budget, OneSidedDP) and super().within(budget) and self.least >= budget.least

    def can_keep(self, threshold: Loss) -> bool:
        """A threshold at its own delta or a larger one."""
        return replace(self, epsilon=Fraction(0)).within(threshold)

    def _both_sides(self, epsilon: Fraction) -> Fraction:
        """The sum delta (1 + e^-epsilon), rounded up: `as_probabilistic` has it for an epsilon fixed in advance."""
        both = certify(lambda p: self.delta * (1 + p(-epsilon).exp()), DIGITS)
        return min(Fraction(1), rounded_up(both.upper))

    def _follows_from(self, loss: Loss) -> bool:
        if isinstance(loss, OneSidedDP) and loss.least >= self.least and loss.delta <= self.delta:
            return loss.epsilon <= self.epsilon or super()._follows_from(loss)
        return super()._follows_from(loss)

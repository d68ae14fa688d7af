"""(epsilon, delta)-DP and probabilistic DP.

Approximate differential privacy: epsilon-DP but for an exposure of probability delta.

(eps, delta)-DP is what the mechanism RR(eps, delta) has, which exposes the truth with probability delta and answers by
randomized response otherwise; every other such mechanism is a postprocessing of it (Kairouz et al. 2015;
Henzinger et al. 2024, Lemma 4.7). Its sum (`ApproximateSum`) is basic composition, or with a tail bound fixed in
advance the Renyi filter; the theorems that a `Filter` may choose beside it are in `composition/rules`.

>>> from counterpoint import ApproxDP
>>> ApproxDP(1, 1e-6).delta_at(2), ApproxDP(1, 1e-6).epsilon_at(1e-7)
(1e-06, inf)

Probabilistic differential privacy: the privacy loss itself is within epsilon, to either side, but for delta.

See Whitehouse et al. 2023, sec. 2. Their time-uniform odometers need it of every launch, and it implies
(eps, delta)-DP (Whitehouse et al. 2023, Lemma 1), which is not enough for them. What those odometers promise in return
is one-sided (one_sided.py).

>>> from counterpoint import ApproxDP
>>> from counterpoint.measures import ProbabilisticDP
>>> ProbabilisticDP(1, 0.1).implies(ApproxDP(1, 0.1)), ApproxDP(1, 0.1).implies(ProbabilisticDP(1, 0.1))
(True, False)

One-sided probabilistic DP: what Whitehouse et al.'s time-uniform odometers promise (Whitehouse et al. 2023, Thm 2).

L is the logarithm of how much likelier the view is in the true world than in its neighbour. The promise is
P[L > epsilon] <= delta, whichever of the two worlds is the true one. It implies (epsilon, delta)-DP as it is, because
P[S] <= P[S, L <= epsilon] + P[L > epsilon]. Views that speak against the truth, L < -epsilon, come on top: such a view
is e^epsilon times less likely than in the other world, where it is one that exceeds epsilon, so P[L < -epsilon] <=
e^-epsilon delta and, for an epsilon that is fixed in advance,

    P[|L| > epsilon] <= delta (1 + e^-epsilon).

The bound U of a time-uniform odometer changes with time, and an early crossing is one of -U as it was then. At all
times at once, therefore, P[|L| > U ever] <= delta (1 + e^-u), with u = `least` the smallest value that U can have had
after a launch; with the present U that would be false (theory, Postprocessing, and a test).

>>> from counterpoint.measures import OneSidedDP
>>> reading = OneSidedDP(3, 0.2, least=0.1)
>>> reading.as_approx(0.2), reading.delta_at(3)
(ApproxDP(3, 0.2), 0.2)
>>> float(reading.two_sided().delta)
0.3809674836071919
"""

import math
from abc import abstractmethod
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar, Self

from msgspec.structs import force_setattr, replace

from counterpoint.encoding import Tagged, Value
from counterpoint.errors import NotCovered
from counterpoint.measures import pure, tradeoff, unbounded
from counterpoint.measures.accumulator import ZERO, Accumulator, Interaction, Summand
from counterpoint.measures.divergences import renyi_offset
from counterpoint.measures.loss import OPTIMAL, EpsilonDelta, Loss
from counterpoint.numbers import Interval, Number, Precision, certify, precision, spell
from counterpoint.numbers.exact import LARGEST, added_up, at_least, taken_out, whole
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

    @property
    def amounts(self) -> tuple[Fraction, ...]:
        """Epsilon and delta."""
        return self.epsilon, self.delta

    def accumulator(self) -> "ApproximateSum":
        """Basic composition: the sums of epsilons and deltas."""
        return ApproximateSum()

    theorem_if_fixed: ClassVar[str] = OPTIMAL

    @classmethod
    def together(cls, counted: Mapping[Self, int]) -> tuple["ApproxDP", str]:
        """Basic composition; `compose.optimal` has a whole curve."""
        epsilon = sum((copies * loss.epsilon for loss, copies in counted.items()), ZERO)
        delta = sum((copies * loss.delta for loss, copies in counted.items()), ZERO)
        return ApproxDP(rounded_up(epsilon), min(Fraction(1), rounded_up(delta))), "basic"

    def added_response(self) -> EpsilonDelta:
        """RR(epsilon, delta)."""
        return self.epsilon, self.delta

    def added_rho_and_delta(self) -> tuple[Fraction, Fraction]:
        """epsilon^2/2 but for delta, being a postprocessing of RR(epsilon, delta)."""
        return pure.PureDP(self.epsilon).added_rho(), self.delta

    def part_on_changing_data(self) -> EpsilonDelta:
        """K epsilons, and every created delta (Henzinger et al. 2024, Thm 5.4)."""
        return self.epsilon, self.delta

    @property
    def stated_delta(self) -> Fraction:
        """Delta."""
        return self.delta

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
                f"ProbabilisticDP at epsilon {spell(target)}", f"choose an epsilon above {spell(self.epsilon)}"
            )
        return ProbabilisticDP(target, min(Fraction(1), tail_beyond(self.epsilon, self.delta, target)))

    def as_tradeoff(self) -> "tradeoff.TradeOff":
        """f_(epsilon, delta), rounded toward more loss."""
        return tradeoff.TradeOff.of_approx(self.epsilon, self.delta)

    def _advice(self) -> str:
        return "an exposure of probability delta is an infinite loss; only delta = 0 converts"

    def _follows_from(self, loss: Loss) -> bool:
        return loss._covers(self.epsilon, self.delta)

    def _least_delta(self, epsilon: Fraction) -> Fraction:
        return self.delta if epsilon >= self.epsilon else super()._least_delta(epsilon)

    def _least_epsilon(self, delta: Fraction) -> Fraction | None:
        least = super()._least_epsilon(delta)
        return None if least is None else min(self.epsilon, least)


class Tail(Tagged, Value, frozen=True):
    """What the Renyi part of an (epsilon, delta) rule wants fixed in advance: delta, the slack d and the order alpha.

    Derived from them, once: `room`, the delta'' of delta'' + (1-delta'') d = delta, which the deltas of the launches
    may add up to; and `offset`, what turns a sum of Renyi losses into an epsilon at d.

    >>> float(Tail(Fraction(1, 10), Fraction(1, 20), Fraction(4)).room)
    0.05263157894736842
    """

    delta: Fraction
    slack: Fraction
    alpha: Fraction
    room: Fraction = Fraction(-1)
    offset: Fraction = Fraction(0)

    def __post_init__(self) -> None:
        """Derive the room and the offset."""
        if self.room < 0:
            force_setattr(self, "offset", renyi_offset(self.alpha, self.slack))
            force_setattr(self, "room", (self.delta - self.slack) / (1 - self.slack))


class ApproximateSum(Accumulator, Value, frozen=True):
    """(epsilon, delta) launches: basic composition, or Renyi after reduction to randomized response, or the better.

    theory, The Renyi filter by reduction and The default filter. Every (epsilon_m, delta_m) launch is simulated by
    RR(epsilon_m, delta_m) (Henzinger et al. 2024, Thm 12.4, Haney et al. 2023, Thm 1.19); unless one is exposed, each
    is Renyi-DP at the order alpha fixed in advance, where losses add (Haney et al. 2023, Thm 1.21). With sum delta_m <=
    delta'' and slack d, delta'' + (1-delta'') d = delta: epsilon = min(sum epsilon_m, sum tau_alpha(epsilon_m) +
    log(1-1/alpha) - (log d + log alpha)/(alpha-1)). Claims in zCDP, Renyi, tCDP or GaussianDP enter at alpha and count
    as infinite in the basic sum. Without a `tail` it is basic composition alone, (sum epsilon_m, sum delta_m); with
    `basic` None, the Renyi part alone.

    >>> tail = Tail(delta=Fraction(1, 10**6), slack=Fraction(1, 2 * 10**6), alpha=Fraction(20))
    >>> (ApproximateSum(tail) + pure.PureDP(0.5)).total
    ApproxDP(0.5, 1e-6)
    """

    tail: Tail | None = None
    basic: Fraction | None = Fraction(0)
    renyi: Fraction = Fraction(0)
    exposed: Fraction = Fraction(0)

    @property
    def theorem(self) -> str:
        """What the total rests on, in the form that was chosen."""
        if self.tail is None:
            return "basic composition (Haney et al. 2023, Thm 1.19; Henzinger et al. 2024, Thm 12.4)"
        part = (
            "the Renyi filter of one order on randomized responses (corollary of Henzinger et al. 2024, Thm "
            "12.4; Haney et al. 2023, Thm 1.19, 1.21)"
        )
        return part if self.basic is None else f"basic composition or {part}, whichever is smaller"

    def plus(self, loss: Loss, interaction: Interaction = "endless") -> "ApproximateSum":
        """Add a loss, to both sums where it has a place in both."""
        epsilon, delta = loss.added_response() or (None, ZERO)
        if self.tail is None and epsilon is None:
            self._not_covered(loss, "PureDP and ApproxDP; the default rule also takes zCDP, Renyi, tCDP and GaussianDP")
        return ApproximateSum(
            self.tail,
            None if self.basic is None or epsilon is None else added_up(self.basic, epsilon),
            self._plus_renyi(loss, epsilon),
            added_up(self.exposed, delta) if delta else self.exposed,
        )

    def _without(self, charge: Summand) -> "ApproximateSum":
        if self.tail is not None or self.basic is None:
            raise NotCovered(
                "a recount is derived for basic composition and for the default filter (theory, Returning)"
            )
        counted = charge.loss.added_response()
        assert counted is not None
        return ApproximateSum(None, taken_out(self.basic, counted[0]), ZERO, taken_out(self.exposed, counted[1]))

    def _plus_renyi(self, loss: Loss, epsilon: Fraction | None) -> Fraction:
        if self.tail is None:
            return self.renyi
        alpha = self.tail.alpha
        return added_up(self.renyi, loss.added_renyi(alpha) if epsilon is None else pure.renyi_of(epsilon, alpha))

    @property
    def total(self) -> "ApproxDP | unbounded.Unbounded":
        """(epsilon, delta); unbounded once the deltas have outgrown their room."""
        if self.tail is None:
            assert self.basic is not None
            return ApproxDP(self.basic, self.exposed) if self.exposed <= 1 else unbounded.Unbounded()
        if self.exposed > self.tail.room:
            return unbounded.Unbounded()
        renyi = max(ZERO, self.renyi + self.tail.offset)
        epsilon = renyi if self.basic is None else min(self.basic, renyi)
        return ApproxDP(epsilon, self.tail.delta) if epsilon <= LARGEST else unbounded.Unbounded()

    def delta_left(self, budget: Loss) -> Fraction:
        """How much the deltas of further launches may add up to."""
        _, delta = self._limits(budget, ApproxDP)
        return max(ZERO, (delta if self.tail is None else self.tail.room) - self.exposed)

    def room(self, budget: Loss) -> Fraction:
        """What the larger of the two parts leaves."""
        epsilon, delta = self._limits(budget, ApproxDP)
        if self.exposed > (delta if self.tail is None else self.tail.room):
            return ZERO
        basic = ZERO if self.basic is None else epsilon - self.basic
        if self.tail is None:
            return max(ZERO, basic)
        return max(ZERO, basic, pure.pure_below(self.tail.alpha, epsilon - self.tail.offset - self.renyi))


def _group_delta(epsilon: Fraction, delta: Fraction, places: int) -> Fraction:
    if places * epsilon == 0 or delta == 0:
        return min(Fraction(1), places * delta)
    if (places - 1) * epsilon > 1000:  # the quotient exceeds e^1000, and every delta that can be given e^-1000
        return Fraction(1)
    growth = certify(lambda p: delta * p(places * epsilon).expm1() / p(epsilon).expm1(), DIGITS)
    return min(Fraction(1), rounded_up(growth.upper))


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

    def postprocessed(self) -> "ApproxDP":
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

    >>> ProbabilisticDP(1, 0.1).as_approx(0.1)
    ApproxDP(1, 0.1)
    """

    epsilon: NonNegative
    delta: Probability

    def __repr__(self) -> str:
        return f"ProbabilisticDP({spell(self.epsilon)}, {spell(self.delta)})"

    theorem_if_fixed: ClassVar[str] = OPTIMAL

    @classmethod
    def together(cls, counted: Mapping[Self, int]) -> "tuple[ApproxDP, str]":
        """Basic composition of the (epsilon, delta)-DP that it implies."""
        return ApproxDP.together({loss._as_approx(): copies for loss, copies in counted.items()})

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


class OneSidedDP(Probabilistic, Value, frozen=True):
    """The privacy loss exceeds epsilon with probability at most delta, in either world; `least` is for `two_sided`.

    >>> OneSidedDP(1, 0.1).implies(ProbabilisticDP(1, 0.1)), ProbabilisticDP(1, 0.1).implies(OneSidedDP(1, 0.1))
    (False, True)
    """

    epsilon: NonNegative
    delta: Probability
    least: NonNegative = default(Fraction(0))

    def __repr__(self) -> str:
        least = f", least={spell(self.least)}" if self.least else ""
        return f"OneSidedDP({spell(self.epsilon)}, {spell(self.delta)}{least})"

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

"""Approximate differential privacy: epsilon-DP but for an exposure of probability delta.

(eps, delta)-DP is what the mechanism RR(eps, delta) has, which exposes the truth with probability delta and answers by
randomized response otherwise; every other such mechanism is a postprocessing of it (Kairouz et al. 2015;
Henzinger et al. 2024, Lemma 4.7). Its sum (`ApproximateSum`) is basic composition, or with a tail bound fixed in
advance the Renyi filter; the theorems that a `Filter` may choose beside it are in `composition/rules`.

>>> from counterpoint import ApproxDP
>>> ApproxDP(1, 1e-6).delta_at(2), ApproxDP(1, 1e-6).epsilon_at(1e-7)
(1e-06, inf)
"""

from collections.abc import Mapping
from fractions import Fraction
from typing import ClassVar, Self

from msgspec.structs import force_setattr

from counterpoint.encoding import Tagged, Value
from counterpoint.errors import NotCovered
from counterpoint.numbers import Interval, Number, certify, precision, spell
from counterpoint.numbers.exact import LARGEST, added_up, at_least, taken_out, whole
from counterpoint.numbers.parameters import NonNegative, Probability
from counterpoint.privacy.accumulator import ZERO, Accumulator, Interaction, Summand
from counterpoint.privacy.formulas.divergences import renyi_offset
from counterpoint.privacy.loss import DIGITS, OPTIMAL, EpsilonDelta, Loss, rounded_up
from counterpoint.privacy.measures import probabilistic, pure, tradeoff, unbounded


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

    def as_probabilistic(self, epsilon: Number) -> "probabilistic.ProbabilisticDP":
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
        return probabilistic.ProbabilisticDP(
            target, min(Fraction(1), probabilistic.tail_beyond(self.epsilon, self.delta, target))
        )

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

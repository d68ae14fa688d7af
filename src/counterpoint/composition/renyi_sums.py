"""Renyi losses of one order add, and (epsilon, delta) launches with them after reduction to randomized response.

>>> from counterpoint import zCDP
>>> (RenyiSum(Fraction(8)) + RenyiDP(16, 0.1) + zCDP(0.01)).total
RenyiDP(alpha=8, epsilon=0.18)
"""

from collections.abc import Callable
from fractions import Fraction
from typing import Any, ClassVar

from msgspec.structs import force_setattr

from counterpoint.composition.accumulator import ZERO, Accumulator, Summand, Tuned, named
from counterpoint.encoding import Tagged, Value
from counterpoint.errors import NotCovered
from counterpoint.measures import ApproxDP, GaussianDP, PureDP, RenyiDP, SampledGaussianDP, Unbounded, tCDP, zCDP
from counterpoint.measures.conversions import response_of
from counterpoint.measures.divergences import renyi_offset
from counterpoint.measures.loss import Loss
from counterpoint.measures.pure import pure_below, renyi_of
from counterpoint.numbers.exact import LARGEST, added_up, taken_out
from counterpoint.privacy.claims import Interaction


def _at_order(loss: Loss, alpha: Fraction) -> Fraction:
    return loss.as_renyi(alpha).epsilon


class RenyiSum(Accumulator, Value, frozen=True):
    """Renyi losses of one order add.

    See Haney et al. 2023, Thm 1.21; Henzinger et al. 2024, Cor 13.8. Covers all that has a Renyi loss at that order.

    Not covered: ApproxDP, Renyi losses of a lower order, tCDP up to an omega that is not above it.

    >>> (RenyiSum(Fraction(8)) + RenyiDP(16, 0.1) + zCDP(0.01)).total
    RenyiDP(alpha=8, epsilon=0.18)
    """

    ENTERS: ClassVar[dict[type[Loss], Callable[[Any, Fraction], Fraction]]] = {
        PureDP: lambda loss, alpha: renyi_of(loss.epsilon, alpha),
        zCDP: _at_order,
        tCDP: _at_order,
        GaussianDP: _at_order,
        SampledGaussianDP: _at_order,
        RenyiDP: _at_order,
    }

    alpha: Fraction
    epsilon: Fraction = Fraction(0)
    theorem = "Renyi losses of one order add (Haney et al. 2023, Thm 1.21; Henzinger et al. 2024, Cor 13.8)"

    def plus(self, loss: Loss, interaction: Interaction = "endless") -> "RenyiSum":
        """Add a loss at this order."""
        return RenyiSum(self.alpha, added_up(self.epsilon, renyi_loss(loss, self.alpha)))

    def _without(self, charge: Summand) -> "RenyiSum":
        return RenyiSum(self.alpha, taken_out(self.epsilon, renyi_loss(charge.loss, self.alpha)))

    @classmethod
    def for_budget(cls, budget: Loss) -> "RenyiSum":
        """The sum at the budget's order."""
        assert isinstance(budget, RenyiDP)
        return cls(budget.alpha)

    @classmethod
    def for_odometer(cls) -> "RenyiSum":
        """None: the order has to be fixed in advance."""
        raise NotCovered("an odometer in RenyiDP fixes its order in advance: Odometer.renyi(alpha=...)")

    @property
    def total(self) -> RenyiDP:
        """The sum, at this order."""
        return RenyiDP(self.alpha, self.epsilon)

    def headroom(self, budget: Loss) -> Fraction:
        """The epsilon whose Renyi loss is what is left."""
        (epsilon,) = self._limits(budget, RenyiDP)
        return pure_below(self.alpha, epsilon - self.epsilon)


def renyi_loss(loss: Loss, alpha: Fraction) -> Fraction:
    """The Renyi loss of order alpha that a launch adds to others of that order, rounded up; `NotCovered` for none.

    >>> from counterpoint import ApproxDP
    >>> renyi_loss(zCDP(0.1), Fraction(8))
    0.8
    >>> renyi_loss(ApproxDP(1, 0.1), Fraction(8))
    Traceback (most recent call last):
    ...
    counterpoint.errors.NotCovered: ApproxDP(1, 0.1) has no Renyi loss that adds to others of one order ...
    """
    enters = RenyiSum.ENTERS.get(type(loss))
    if enters is None:
        raise NotCovered(
            f"{loss!r} has no Renyi loss that adds to others of one order (Haney et al. 2023, Thm 1.21; Henzinger et "
            f"al. 2024, Cor 13.8); {named(RenyiSum.ENTERS)} have one"
        )
    return enters(loss, alpha)


class Tail(Tagged, Value, frozen=True):
    """What the Renyi part of an (epsilon, delta) rule wants fixed in advance: delta, the slack d and the order alpha.

    Derived from them, once: `room`, the delta'' of delta'' + (1-delta'') d = delta, which the deltas of the launches
    may add up to; and `offset`, what turns a sum of Renyi losses into an epsilon at d. `tuned_for` is the epsilon that
    the order was chosen for, if it was, and `given` the slack, if that was given.

    >>> float(Tail(Fraction(1, 10), Fraction(1, 20), Fraction(4)).room)
    0.05263157894736842
    """

    delta: Fraction
    slack: Fraction
    alpha: Fraction
    room: Fraction = Fraction(-1)
    offset: Fraction = Fraction(0)
    tuned_for: Fraction | None = None
    given: Fraction | None = None

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
    >>> (ApproximateSum(tail) + PureDP(0.5)).total
    ApproxDP(0.5, 1e-6)
    """

    tail: Tail | None = None
    basic: Fraction | None = Fraction(0)
    renyi: Fraction = Fraction(0)
    exposed: Fraction = Fraction(0)

    @classmethod
    def for_odometer(cls) -> "ApproximateSum":
        """None: the delta has to be fixed in advance."""
        raise NotCovered("an odometer in ApproxDP fixes its delta in advance: Odometer.approximate(delta=...)")

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

    @property
    def checked(self) -> str | None:
        """Basic composition alone has been checked."""
        return "basic_admission" if self.tail is None else None

    @property
    def checked_only(self) -> str:
        """With deltas, mechanisms have finitely many answers in Coq."""
        return "for finitely many answers" if self.tail is None else ""

    def plus(self, loss: Loss, interaction: Interaction = "endless") -> "ApproximateSum":
        """Add a loss, to both sums where it has a place in both."""
        epsilon, delta = response_of(loss) or (None, ZERO)
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
        counted = response_of(charge.loss)
        assert counted is not None
        return ApproximateSum(None, taken_out(self.basic, counted[0]), ZERO, taken_out(self.exposed, counted[1]))

    def _plus_renyi(self, loss: Loss, epsilon: Fraction | None) -> Fraction:
        if self.tail is None:
            return self.renyi
        alpha = self.tail.alpha
        return added_up(self.renyi, renyi_loss(loss, alpha) if epsilon is None else renyi_of(epsilon, alpha))

    @property
    def total(self) -> ApproxDP | Unbounded:
        """(epsilon, delta); unbounded once the deltas have outgrown their room."""
        if self.tail is None:
            assert self.basic is not None
            return ApproxDP(self.basic, self.exposed) if self.exposed <= 1 else Unbounded()
        if self.exposed > self.tail.room:
            return Unbounded()
        renyi = max(ZERO, self.renyi + self.tail.offset)
        epsilon = renyi if self.basic is None else min(self.basic, renyi)
        return ApproxDP(epsilon, self.tail.delta) if epsilon <= LARGEST else Unbounded()

    @property
    def tuned(self) -> Tuned | None:
        """What the order was chosen for."""
        if self.tail is None or self.tail.tuned_for is None or self.basic is None:
            return None
        return Tuned(self.tail.tuned_for, self.tail.delta, self.tail.given)

    def delta_left(self, budget: Loss) -> Fraction:
        """How much the deltas of further launches may add up to."""
        _, delta = self._limits(budget, ApproxDP)
        return max(ZERO, (delta if self.tail is None else self.tail.room) - self.exposed)

    def headroom(self, budget: Loss) -> Fraction:
        """What the larger of the two parts leaves."""
        epsilon, delta = self._limits(budget, ApproxDP)
        if self.exposed > (delta if self.tail is None else self.tail.room):
            return ZERO
        basic = ZERO if self.basic is None else epsilon - self.basic
        if self.tail is None:
            return max(ZERO, basic)
        return max(ZERO, basic, pure_below(self.tail.alpha, epsilon - self.tail.offset - self.renyi))

"""Accumulators: losses in, total loss out, in constant time and space per launch however long the history.

An accumulator is a frozen value; adding a loss gives a new one. A filter compares it with a budget, an odometer reports
it (Haney et al. 2023, Lemma 2.19), so each theorem stands here once. Sums are exact; what is irrational is rounded up
at 50 digits before it is added, so nothing is ever absorbed. A loss that the theorem does not cover is `NotCovered`.

>>> from counterpoint import PureDP
>>> spent = PureSum()
>>> for _ in range(10):
...     spent = spent + PureDP(0.1)
>>> spent.total
PureDP(1)
"""

from abc import abstractmethod
from fractions import Fraction
from typing import NoReturn, Self

from msgspec.structs import force_setattr, replace

from counterpoint.composition.rules.budgets import within
from counterpoint.composition.rules.conversions import (
    as_rho,
    epsilon_and_delta,
    pure_below,
    renyi_loss,
    renyi_of,
    renyi_offset,
    root_below,
    variance_at,
)
from counterpoint.composition.rules.rule import Account
from counterpoint.encoding import Tagged, Value
from counterpoint.errors import NotCovered
from counterpoint.numbers import precision, sqrt_up
from counterpoint.numbers.exact import LARGEST, added_up
from counterpoint.privacy.certificates import Certificate
from counterpoint.privacy.claims import Interaction
from counterpoint.privacy.loss import DIGITS, Loss
from counterpoint.privacy.losses import (
    ApproxDP,
    ApproxzCDP,
    GaussianDP,
    ProbabilisticDP,
    PureDP,
    RenyiDP,
    Unbounded,
    tCDP,
    zCDP,
)

ZERO = Fraction(0)


class Accumulator(Account):
    """Losses in, total out. `plus` is `+` with the fact of how long the mechanism talks."""

    __slots__ = ()

    @property
    @abstractmethod
    def theorem(self) -> str:
        """What the total rests on."""

    def __add__(self, loss: Loss) -> Self:
        return self.plus(loss)

    @abstractmethod
    def plus(self, loss: Loss, interaction: Interaction = "endless") -> Self:
        """The accumulator after one more launch; `NotCovered` if the theorem says nothing about such a loss."""

    @property
    @abstractmethod
    def total(self) -> Loss:
        """What the launches so far have lost together."""

    def keeps(self, budget: Loss) -> bool:
        """Whether the total is within a budget."""
        return within(self.total, budget)

    @property
    def certificate(self) -> Certificate:
        """Why the total is what it is."""
        return Certificate(f"{self.total!r} for the launches so far", self.theorem)

    @abstractmethod
    def room(self, budget: Loss) -> Fraction:
        """The largest further pure epsilon within a budget of the total's measure, rounded down; 0 for none."""

    def fitting(self, budget: Loss) -> Loss:
        """The largest further loss within a budget, as a refusal shows it: pure, where pure launches are covered."""
        return PureDP(self.room(budget))

    def _not_covered(self, loss: Loss | str, covered: str) -> NoReturn:
        raise NotCovered(f"{self.theorem} does not cover {loss}; it covers {covered}")


class PureSum(Accumulator, Value, frozen=True):
    """Pure losses add.

    See theory, Sums; Haney et al. 2023, Thm 1.19; Henzinger et al. 2024, Thm 12.4 with the basic filter. Covers PureDP
    only.

    >>> (PureSum() + PureDP("1e-17") + PureDP(1)).epsilon > 1
    True
    """

    epsilon: Fraction = Fraction(0)
    theorem = "basic composition of pure losses (Haney et al. 2023, Thm 1.19; Henzinger et al. 2024, Thm 12.4)"

    def plus(self, loss: Loss, interaction: Interaction = "endless") -> "PureSum":
        """Add a pure loss."""
        if not isinstance(loss, PureDP):
            self._not_covered(loss, "PureDP; budget in ApproxDP for other measures")
        return PureSum(added_up(self.epsilon, loss.epsilon))

    @property
    def total(self) -> PureDP:
        """The sum."""
        return PureDP(self.epsilon)

    def room(self, budget: Loss) -> Fraction:
        """What is left, exactly."""
        assert isinstance(budget, PureDP)
        return max(ZERO, budget.epsilon - self.epsilon)


class ZCDPSum(Accumulator, Value, frozen=True):
    """rho adds.

    See theory, Sums; every Renyi order at once; Haney et al. 2023, Thm 1.21; Henzinger et al. 2024, Cor 13.8. Covers
    zCDP, PureDP, GaussianDP.

    Not covered: ApproxDP, and RenyiDP or tCDP, which do not bound every order.

    >>> (ZCDPSum() + PureDP(1) + zCDP(0.25)).total
    zCDP(0.75)
    """

    rho: Fraction = Fraction(0)
    theorem = "zCDP adds at every Renyi order (Haney et al. 2023, Thm 1.21; Henzinger et al. 2024, Cor 13.8)"

    def plus(self, loss: Loss, interaction: Interaction = "endless") -> "ZCDPSum":
        """Add a loss that is zCDP."""
        if not isinstance(loss, zCDP | PureDP | GaussianDP):
            self._not_covered(loss, "zCDP, PureDP (as epsilon^2/2) and GaussianDP (as mu^2/2)")
        return ZCDPSum(added_up(self.rho, as_rho(loss)))

    @property
    def total(self) -> zCDP:
        """The sum."""
        return zCDP(self.rho)

    def room(self, budget: Loss) -> Fraction:
        """sqrt(2 rho) of what is left."""
        assert isinstance(budget, zCDP)
        return root_below(2 * (budget.rho - self.rho))


class ApproximateZCDPSum(Accumulator, Value, frozen=True):
    """rho and delta add (theory, What covers what; Whitehouse et al. 2023, Thm 7), for mechanisms that answer once.
    Covers all that is approximate zCDP.

    An (epsilon, delta) launch enters as epsilon^2/2 with its delta, being a postprocessing of RR(epsilon, delta).

    >>> (ApproximateZCDPSum().plus(zCDP(0.1), "one-shot").plus(ApproxDP(1, 1e-9), "one-shot")).total
    ApproxzCDP(0.6, 1e-9)
    """

    rho: Fraction = Fraction(0)
    delta: Fraction = Fraction(0)
    theorem = "approximate zCDP adds for mechanisms that answer once (Whitehouse et al. 2023, Thm 7)"

    def plus(self, loss: Loss, interaction: Interaction = "endless") -> "ApproximateZCDPSum":
        """Add a one-shot loss."""
        if interaction != "one-shot":
            self._not_covered(f"{loss!r} of an interactive mechanism", "mechanisms that answer once")
        if isinstance(loss, ApproxzCDP):
            rho, delta = loss.rho, loss.delta
        elif isinstance(loss, ApproxDP | ProbabilisticDP):
            rho, delta = as_rho(PureDP(loss.epsilon)), loss.delta
        elif isinstance(loss, zCDP | PureDP | GaussianDP):
            rho, delta = as_rho(loss), ZERO
        else:
            self._not_covered(loss, "ApproxzCDP, zCDP, PureDP, ApproxDP and GaussianDP")
        return ApproximateZCDPSum(added_up(self.rho, rho), added_up(self.delta, delta))

    @property
    def total(self) -> ApproxzCDP | Unbounded:
        """The sums; unbounded once the deltas exceed 1."""
        return ApproxzCDP(self.rho, self.delta) if self.delta <= 1 else Unbounded()

    def room(self, budget: Loss) -> Fraction:
        """sqrt(2 rho) of what is left."""
        assert isinstance(budget, ApproxzCDP)
        return root_below(2 * (budget.rho - self.rho)) if self.delta <= budget.delta else ZERO


class RenyiSum(Accumulator, Value, frozen=True):
    """Renyi losses of one order add.

    See Haney et al. 2023, Thm 1.21; Henzinger et al. 2024, Cor 13.8. Covers all that has a Renyi loss at that order.

    Not covered: ApproxDP, Renyi losses of a lower order, tCDP up to an omega that is not above it.

    >>> (RenyiSum(Fraction(8)) + RenyiDP(16, 0.1) + zCDP(0.01)).total
    RenyiDP(alpha=8, epsilon=0.18)
    """

    alpha: Fraction
    epsilon: Fraction = Fraction(0)
    theorem = "Renyi losses of one order add (Haney et al. 2023, Thm 1.21; Henzinger et al. 2024, Cor 13.8)"

    def plus(self, loss: Loss, interaction: Interaction = "endless") -> "RenyiSum":
        """Add a loss at this order."""
        if isinstance(loss, ApproxDP | ProbabilisticDP):
            self._not_covered(loss, "losses with a Renyi divergence; (epsilon, delta) has none")
        return RenyiSum(self.alpha, added_up(self.epsilon, renyi_loss(loss, self.alpha)))

    @property
    def total(self) -> RenyiDP:
        """The sum, at this order."""
        return RenyiDP(self.alpha, self.epsilon)

    def room(self, budget: Loss) -> Fraction:
        """The epsilon whose Renyi loss is what is left."""
        assert isinstance(budget, RenyiDP)
        return pure_below(self.alpha, budget.epsilon - self.epsilon)


class TCDPSum(Accumulator, Value, frozen=True):
    """rho adds, omega is the smallest.

    See Haney et al. 2023, Thm 1.21; Henzinger et al. 2024, Cor 13.8 at each order below omega.

    Covers tCDP, zCDP, PureDP and GaussianDP; not ApproxDP, nor RenyiDP, which speaks of one order only.

    >>> (TCDPSum(tCDP(0, 20)) + tCDP(0.1, 12)).total
    tCDP(rho=0.1, omega=12)
    """

    sum: tCDP
    theorem = (
        "tCDP adds at every Renyi order below the smallest omega (Haney et al. 2023, Thm 1.21; Henzinger et "
        "al. 2024, Cor 13.8)"
    )

    def plus(self, loss: Loss, interaction: Interaction = "endless") -> "TCDPSum":
        """Add a loss that is tCDP."""
        if isinstance(loss, tCDP):
            return TCDPSum(tCDP(added_up(self.sum.rho, loss.rho), min(self.sum.omega, loss.omega)))
        if not isinstance(loss, zCDP | PureDP | GaussianDP):
            self._not_covered(loss, "tCDP, zCDP, PureDP and GaussianDP")
        return TCDPSum(tCDP(added_up(self.sum.rho, as_rho(loss)), self.sum.omega))

    @property
    def total(self) -> tCDP:
        """The sum and the smallest omega."""
        return self.sum

    def room(self, budget: Loss) -> Fraction:
        """sqrt(2 rho) of what is left."""
        assert isinstance(budget, tCDP)
        return root_below(2 * (budget.rho - self.sum.rho)) if self.sum.omega >= budget.omega else ZERO


class GaussianSum(Accumulator, Value, frozen=True):
    """mu^2 adds.

    See theory, Gaussian budgets: Smith and Thakurta 2022, Koskela et al. 2023; lifted by Haney et al. 2023, Thm 1.20;
    Henzinger et al. 2024, Cor 14.10.

    The lifting needs finite communication: bounded numbers of asks and clamped answers. Covers GaussianDP only; a
    discrete Gaussian does not have that loss (it is zCDP).

    >>> GaussianSum().plus(GaussianDP(3), "one-shot").plus(GaussianDP(4), "finite").total
    GaussianDP(5)
    """

    squares: Fraction = Fraction(0)
    theorem = (
        "Gaussian losses add in squares (Smith and Thakurta 2022; Haney et al. 2023, Thm 1.20; Henzinger et "
        "al. 2024, Cor 14.10)"
    )

    def plus(self, loss: Loss, interaction: Interaction = "endless") -> "GaussianSum":
        """Add a Gaussian loss."""
        if not isinstance(loss, GaussianDP) or interaction == "endless":
            self._not_covered(
                loss, "GaussianDP of mechanisms with finite communication; budget in zCDP for other measures"
            )
        return GaussianSum(added_up(self.squares, loss.mu * loss.mu))

    @property
    def total(self) -> GaussianDP:
        """The root of the sum of squares, rounded up where it is irrational."""
        return GaussianDP(sqrt_up(self.squares))

    def room(self, budget: Loss) -> Fraction:
        """None: pure losses are not covered here."""
        return ZERO

    def fitting(self, budget: Loss) -> GaussianDP:
        """The root of what is left of the budget's square."""
        assert isinstance(budget, GaussianDP)
        return GaussianDP(root_below(budget.mu * budget.mu - self.squares))


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
    >>> (ApproximateSum(tail) + PureDP(0.5)).total
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
        epsilon, delta = epsilon_and_delta(loss)
        if self.tail is None and epsilon is None:
            self._not_covered(loss, "PureDP and ApproxDP; the default rule also takes zCDP, Renyi, tCDP and GaussianDP")
        return ApproximateSum(
            self.tail,
            None if self.basic is None or epsilon is None else added_up(self.basic, epsilon),
            self._plus_renyi(loss, epsilon),
            added_up(self.exposed, delta) if delta else self.exposed,
        )

    def _plus_renyi(self, loss: Loss, epsilon: Fraction | None) -> Fraction:
        if self.tail is None:
            return self.renyi
        alpha = self.tail.alpha
        return added_up(self.renyi, (renyi_loss(loss, alpha) if epsilon is None else renyi_of(epsilon, alpha)))

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

    def delta_left(self, budget: ApproxDP) -> Fraction:
        """How much the deltas of further launches may add up to."""
        return max(ZERO, (budget.delta if self.tail is None else self.tail.room) - self.exposed)

    def room(self, budget: Loss) -> Fraction:
        """What the larger of the two parts leaves."""
        assert isinstance(budget, ApproxDP)
        if self.exposed > (budget.delta if self.tail is None else self.tail.room):
            return ZERO
        basic = ZERO if self.basic is None else budget.epsilon - self.basic
        if self.tail is None:
            return max(ZERO, basic)
        return max(ZERO, basic, pure_below(self.tail.alpha, budget.epsilon - self.tail.offset - self.renyi))


class AdvancedSum(Accumulator, Value, frozen=True):
    """sqrt(2 log(1/delta') V) + V/2 with V = sum epsilon_m^2 and delta' fixed in advance.

    See Whitehouse et al. 2023, Thm 1; Haney et al. 2023, Thm 3.7, 3.8.

    theory, The advanced filter. Covers PureDP and ApproxDP; by Whitehouse et al. 2023, Thm 6 (theory, The advanced
    filter) also zCDP claims of one-shot mechanisms, whose rho enters V as 2 rho. errata, Haney E1: printed with the
    inequality reversed.

    >>> print(round((AdvancedSum(Fraction(1, 10**5), Fraction(1, 10**6)) + PureDP(0.01)).total.epsilon_at(1e-5), 3))
    0.053
    """

    delta: Fraction
    slack: Fraction
    variance: Fraction = Fraction(0)
    exposed: Fraction = Fraction(0)
    theorem = (
        "fully adaptive advanced composition (Whitehouse et al. 2023, Thm 1; Haney et al. 2023, Thm 3.7 and "
        "3.8; Henzinger et al. 2024, Thm 12.4)"
    )

    def plus(self, loss: Loss, interaction: Interaction = "endless") -> "AdvancedSum":
        """Add a loss."""
        if isinstance(loss, zCDP) and interaction == "one-shot":
            return replace(self, variance=added_up(self.variance, 2 * loss.rho))
        epsilon, delta = epsilon_and_delta(loss)
        if epsilon is None:
            self._not_covered(
                loss, "PureDP, ApproxDP, and zCDP of mechanisms that answer once (Whitehouse et al. 2023, Thm 6)"
            )
        return replace(
            self,
            variance=added_up(self.variance, epsilon * epsilon),
            exposed=added_up(self.exposed, delta),
        )

    @property
    def total(self) -> ApproxDP | Unbounded:
        """(epsilon, delta); unbounded once delta' + sum delta_m exceeds delta."""
        if self.slack + self.exposed > self.delta:
            return Unbounded()
        p = precision(DIGITS)
        bound = (2 * -p(self.slack).log() * self.variance).sqrt() + self.variance / 2
        return ApproxDP(Fraction(bound.upper), self.delta)

    def delta_left(self, budget: ApproxDP) -> Fraction:
        """How much the deltas of further launches may add up to."""
        return max(ZERO, budget.delta - self.slack - self.exposed)

    def room(self, budget: Loss) -> Fraction:
        """The root of what V still lacks of the largest one that the budget allows."""
        assert isinstance(budget, ApproxDP)
        if self.slack + self.exposed > self.delta:
            return ZERO
        return root_below(variance_at(budget.epsilon, self.slack) - self.variance)

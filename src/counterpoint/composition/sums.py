"""The sum of each measure: by which theorem its losses add up, and which other losses that theorem covers.

A budget in a measure is a budget for the sum of that measure (`sum_for`), and an odometer reads the same sum
(`odometer_for`). The sums that a `Filter` may choose for an ApproxDP budget instead stand in `advanced.py`,
`one_order.py` and `best.py`.

>>> from counterpoint import PureDP, zCDP
>>> (sum_for(zCDP(1)) + PureDP(1) + zCDP(0.25)).total
zCDP(0.75)
"""

from collections.abc import Iterable, Sequence
from fractions import Fraction
from functools import lru_cache, reduce
from typing import ClassVar

from msgspec.structs import replace

from counterpoint.composition.accumulator import ZERO, Accumulator, Entries, Summand, entry, named
from counterpoint.composition.renyi_sums import ApproximateSum, RenyiSum
from counterpoint.composition.reserve import UNIT, Payment, left_after, pure_within, spent, variance_needed
from counterpoint.composition.tradeoff_rest import TradeOffRest
from counterpoint.encoding import Value
from counterpoint.errors import NotCovered
from counterpoint.measures import (
    ApproxDP,
    ApproxzCDP,
    GaussianDP,
    ProbabilisticDP,
    PureDP,
    RenyiDP,
    TradeOff,
    Unbounded,
    tCDP,
    zCDP,
)
from counterpoint.measures.conversions import response_of
from counterpoint.measures.gaussian_curve import pure_of_gaussian, square_of_pure
from counterpoint.measures.loss import EpsilonDelta, Loss
from counterpoint.numbers import sqrt_up
from counterpoint.numbers.exact import added_up, bounded_down, taken_out
from counterpoint.numbers.rounding import root_below, rounded_up
from counterpoint.privacy.claims import Interaction


class PureSum(Accumulator, Value, frozen=True):
    """Pure losses add.

    See theory, Sums; Haney et al. 2023, Thm 1.19; Henzinger et al. 2024, Thm 12.4 with the basic filter. Covers PureDP
    only.

    >>> (PureSum() + PureDP("1e-17") + PureDP(1)).epsilon > 1
    True
    """

    ENTERS: ClassVar[Entries[Fraction]] = {PureDP: lambda loss, _: loss.epsilon}

    epsilon: Fraction = Fraction(0)
    theorem = "basic composition of pure losses (Haney et al. 2023, Thm 1.19; Henzinger et al. 2024, Thm 12.4)"
    checked = "pure_admission"

    def plus(self, loss: Loss, interaction: Interaction = "endless") -> "PureSum":
        """Add a pure loss."""
        return PureSum(added_up(self.epsilon, self._added(loss)))

    def _without(self, charge: Summand) -> "PureSum":
        return PureSum(taken_out(self.epsilon, self._added(charge.loss)))

    def _added(self, loss: Loss) -> Fraction:
        epsilon = entry(self.ENTERS, loss, "endless")
        if epsilon is None:
            self._not_covered(loss, f"{named(self.ENTERS)}; budget in ApproxDP for other measures")
        return epsilon

    @property
    def total(self) -> PureDP:
        """The sum as a loss."""
        return PureDP(self.epsilon)

    def headroom(self, budget: Loss) -> Fraction:
        """The epsilon that the budget has left, exactly."""
        (epsilon,) = self._limits(budget, PureDP)
        return max(ZERO, epsilon - self.epsilon)


def _rho(loss: Loss, _: Interaction) -> Fraction:
    """epsilon^2/2 of a pure loss, mu^2/2 of a Gaussian one."""
    return loss.as_zcdp().rho


class ZCDPSum(Accumulator, Value, frozen=True):
    """rho adds.

    See theory, Sums; every Renyi order at once; Haney et al. 2023, Thm 1.21; Henzinger et al. 2024, Cor 13.8. Covers
    zCDP, PureDP, GaussianDP.

    Not covered: ApproxDP, and RenyiDP or tCDP, which do not bound every order.

    >>> (ZCDPSum() + PureDP(1) + zCDP(0.25)).total
    zCDP(0.75)
    """

    ENTERS: ClassVar[Entries[Fraction]] = {
        zCDP: lambda loss, _: loss.rho,
        PureDP: _rho,
        GaussianDP: _rho,
    }

    rho: Fraction = Fraction(0)
    theorem = "zCDP adds at every Renyi order (Haney et al. 2023, Thm 1.21; Henzinger et al. 2024, Cor 13.8)"

    def plus(self, loss: Loss, interaction: Interaction = "endless") -> "ZCDPSum":
        """Add a loss that is zCDP."""
        return ZCDPSum(added_up(self.rho, self._added(loss)))

    def _without(self, charge: Summand) -> "ZCDPSum":
        return ZCDPSum(taken_out(self.rho, self._added(charge.loss)))

    def _added(self, loss: Loss) -> Fraction:
        rho = entry(self.ENTERS, loss, "endless")
        if rho is None:
            self._not_covered(loss, "zCDP, PureDP (as epsilon^2/2) and GaussianDP (as mu^2/2)")
        return rho

    @property
    def total(self) -> zCDP:
        """The sum as a loss."""
        return zCDP(self.rho)

    def headroom(self, budget: Loss) -> Fraction:
        """sqrt(2 rho) of what is left."""
        (rho,) = self._limits(budget, zCDP)
        return root_below(2 * (rho - self.rho))


class TCDPSum(Accumulator, Value, frozen=True):
    """rho adds, omega is the smallest.

    See Haney et al. 2023, Thm 1.21; Henzinger et al. 2024, Cor 13.8 at each order below omega.

    Covers tCDP, zCDP, PureDP and GaussianDP; not ApproxDP, nor RenyiDP, which bounds one order only.

    >>> (TCDPSum(tCDP(0, 20)) + tCDP(0.1, 12)).total
    tCDP(rho=0.1, omega=12)
    """

    ENTERS: ClassVar[Entries[Fraction]] = {tCDP: lambda loss, _: loss.rho, **ZCDPSum.ENTERS}

    sum: tCDP
    theorem = (
        "tCDP adds at every Renyi order below the smallest omega (Haney et al. 2023, Thm 1.21; Henzinger et "
        "al. 2024, Cor 13.8)"
    )

    def plus(self, loss: Loss, interaction: Interaction = "endless") -> "TCDPSum":
        """Add a loss that is tCDP."""
        rho = entry(self.ENTERS, loss, interaction)
        if rho is None:
            self._not_covered(loss, named(self.ENTERS))
        omega = min(self.sum.omega, loss.omega) if isinstance(loss, tCDP) else self.sum.omega
        return TCDPSum(tCDP(added_up(self.sum.rho, rho), omega))

    @classmethod
    def for_budget(cls, budget: Loss) -> "TCDPSum":
        """The sum up to the budget's omega."""
        assert isinstance(budget, tCDP)
        return cls(tCDP(0, budget.omega))

    @classmethod
    def for_odometer(cls) -> "TCDPSum":
        """None: omega has to be fixed in advance."""
        raise NotCovered("an odometer in tCDP fixes its omega in advance: Odometer.tcdp(omega=...)")

    @property
    def total(self) -> tCDP:
        """The sum and the smallest omega."""
        return self.sum

    def headroom(self, budget: Loss) -> Fraction:
        """sqrt(2 rho) of what is left."""
        (rho,) = self._limits(budget, tCDP)
        return root_below(2 * (rho - self.sum.rho)) if self.keeps(budget) else ZERO


class ApproximateZCDPSum(Accumulator, Value, frozen=True):
    """rho and delta add (theory, What covers what; Whitehouse et al. 2023, Thm 7), for mechanisms that answer once.
    Covers all that is approximate zCDP.

    An (epsilon, delta) launch enters as epsilon^2/2 with its delta, being a postprocessing of RR(epsilon, delta).

    >>> (ApproximateZCDPSum().plus(zCDP(0.1), "one-shot").plus(ApproxDP(1, 1e-9), "one-shot")).total
    ApproxzCDP(0.6, 1e-9)
    """

    ENTERS: ClassVar[Entries[EpsilonDelta]] = {
        ApproxzCDP: lambda loss, _: (loss.rho, loss.delta),
        zCDP: lambda loss, _: (loss.rho, ZERO),
        PureDP: lambda loss, how: (_rho(loss, how), ZERO),
        GaussianDP: lambda loss, how: (_rho(loss, how), ZERO),
        ApproxDP: lambda loss, how: (_rho(PureDP(loss.epsilon), how), loss.delta),
        ProbabilisticDP: lambda loss, how: (_rho(PureDP(loss.epsilon), how), loss.delta),
    }

    rho: Fraction = Fraction(0)
    delta: Fraction = Fraction(0)
    theorem = "approximate zCDP adds for mechanisms that answer once (Whitehouse et al. 2023, Thm 7)"

    def plus(self, loss: Loss, interaction: Interaction = "endless") -> "ApproximateZCDPSum":
        """Add a one-shot loss."""
        if interaction != "one-shot":
            self._not_covered(f"{loss!r} of an interactive mechanism", "mechanisms that answer once")
        added = entry(self.ENTERS, loss, interaction)
        if added is None:
            self._not_covered(loss, named(self.ENTERS))
        rho, delta = added
        return ApproximateZCDPSum(added_up(self.rho, rho), added_up(self.delta, delta))

    @property
    def total(self) -> ApproxzCDP | Unbounded:
        """The sums; unbounded once the deltas exceed 1."""
        return ApproxzCDP(self.rho, self.delta) if self.delta <= 1 else Unbounded()

    def headroom(self, budget: Loss) -> Fraction:
        """sqrt(2 rho) of what is left."""
        rho, delta = self._limits(budget, ApproxzCDP)
        return root_below(2 * (rho - self.rho)) if self.delta <= delta else ZERO

    def delta_left(self, budget: Loss) -> Fraction:
        """What is left of delta."""
        _, delta = self._limits(budget, ApproxzCDP)
        return delta - self.delta


class GaussianSum(Accumulator, Value, frozen=True):
    """mu^2 adds, also for launches that are chosen adaptively (theory, Gaussian budgets).

    See Smith and Thakurta 2022, Koskela et al. 2023; lifted by Haney et al. 2023, Thm 1.20; Henzinger et al. 2024, Cor
    14.10.

    Covers GaussianDP of one-shot, finite and memoryless mechanisms, and every pure launch, however it interacts: that
    is a postprocessing of one randomized response (Henzinger et al. 2024, Lemma 4.7), which is GaussianDP with mu = 2
    Phi^-1(e^eps/(1+e^eps)). Not covered: deltas above 0 (no mu bounds an exposure), zCDP and Renyi losses (bounds on
    divergences give no mu: a discrete Gaussian with sigma = 1 is zCDP(0.5) and not GaussianDP(1)).

    >>> GaussianSum().plus(GaussianDP(3), "one-shot").plus(GaussianDP(4), "finite").total
    GaussianDP(5)
    >>> (GaussianSum() + PureDP(1)).total == PureDP(1).as_gaussian()
    True
    """

    ENTERS: ClassVar[Entries[Fraction]] = {GaussianDP: lambda loss, how: None if how == "endless" else loss.square}

    squares: Fraction = Fraction(0)
    theorem = (
        "Gaussian losses add in squares (Smith and Thakurta 2022; Haney et al. 2023, Thm 1.20; Henzinger et "
        "al. 2024, Cor 14.10; theory, Gaussian budgets)"
    )

    def plus(self, loss: Loss, interaction: Interaction = "endless") -> "GaussianSum":
        """Add a Gaussian or a pure loss."""
        return GaussianSum(added_up(self.squares, self._square(loss, interaction)))

    def _without(self, charge: Summand) -> "GaussianSum":
        return GaussianSum(taken_out(self.squares, self._square(*charge)))

    def _square(self, loss: Loss, interaction: Interaction) -> Fraction:
        square = entry(self.ENTERS, loss, interaction)
        if square is not None:
            return square
        response = response_of(loss)
        if response is None or response[1] > 0:
            self._not_covered(f"{loss!r}{_why_not(loss, response)}", _COVERED)
        return square_of_pure(response[0])

    @property
    def total(self) -> GaussianDP:
        """The root of the sum of squares, rounded up where it is irrational."""
        return GaussianDP(sqrt_up(self.squares))

    @property
    def interaction(self) -> Interaction:
        """Memoryless: each launch is a postprocessing of a stretch of its own of one Brownian motion with drift."""
        return "memoryless"

    def headroom(self, budget: Loss) -> Fraction:
        """The largest epsilon whose mu^2 is left."""
        return pure_of_gaussian(self._left(budget))

    def largest_fitting(self, budget: Loss) -> GaussianDP:
        """The root of what is left of the budget's square."""
        return GaussianDP(root_below(self._left(budget)))

    def _left(self, budget: Loss) -> Fraction:
        if not isinstance(budget, GaussianDP):
            raise self._another_measure(budget, GaussianDP)
        return budget.square - self.squares


class GaussianRest(Accumulator, Value, frozen=True):
    """What is left of a Gaussian budget: each launch is paid exactly, which is less than its mu squared if it is pure.

    `left` is the variance that is left: a Gaussian launch takes mu^2, a pure one leaves the largest v' for which
    RR(epsilon) with G(v') is within G(left) (theory, The Gaussian reserve). Launches are those of `GaussianSum`, whose
    sum of squares is what has been lost, up to the budget.

    `spare` is what a revoked child with a pure budget has left: a randomized response of that epsilon beside G(left),
    so that a pure launch of no more than that is paid from it. Several are not added up: the largest is kept.

    >>> rest = GaussianRest.for_budget(GaussianDP(1)) + PureDP(0.5)
    >>> rest.total, float(rest.headroom(GaussianDP(1))) > float((GaussianSum() + PureDP(0.5)).headroom(GaussianDP(1)))
    (GaussianDP(~0.623893), True)
    """

    budget: GaussianDP
    left: Fraction | None
    lost: GaussianSum = GaussianSum()
    spare: Fraction = Fraction(0)
    theorem = (
        "Gaussian losses add in squares, and a Gaussian pays a randomized response where their total variations allow "
        "it (theory, The Gaussian reserve; Smith and Thakurta 2022; Haney et al. 2023, Thm 1.20; Henzinger et "
        "al. 2024, Cor 14.10)"
    )

    @classmethod
    def for_budget(cls, budget: Loss) -> "GaussianRest":
        """All of the budget's variance is left."""
        assert isinstance(budget, GaussianDP)
        return cls(budget, budget.square)

    @classmethod
    def for_odometer(cls) -> "GaussianSum":  # type: ignore[override]
        """The sum of squares, which needs no budget."""
        return GaussianSum()

    def plus(self, loss: Loss, interaction: Interaction = "endless") -> "GaussianRest":
        """Take a launch out of what is left."""
        lost = self.lost.plus(loss, interaction)
        if self.left is None:
            return replace(self, lost=lost)
        square = entry(GaussianSum.ENTERS, loss, interaction)
        if square is not None:
            left = self.left - square
            return replace(self, lost=lost, left=bounded_down(left) if left >= 0 else None)
        response = response_of(loss)
        assert response is not None
        if response[0] <= self.spare:
            return replace(self, lost=lost, spare=self.spare - response[0])
        return replace(self, lost=lost, left=_rest_of(self.left, response[0]))

    def refunded(self, budget: Loss, charge: Summand, launches: Sequence[Summand]) -> "GaussianRest":
        """What the child has left is a part of its own beside G(left), and goes back as such (theory, Returning)."""
        if isinstance(charge.loss, PureDP):
            lost = self.lost.refunded(budget, charge, launches)
            unused = charge.loss.epsilon - sum((_epsilon_of(launch.loss) for launch in launches), ZERO)
            return replace(self, lost=lost, spare=max(self.spare, unused))
        unspent = reduce(lambda rest, launch: rest.plus(*launch), launches, GaussianRest.for_budget(charge.loss)).left
        if self.left is None or unspent is None:
            return self
        lost = GaussianSum(taken_out(self.lost.squares, unspent))
        return replace(self, lost=lost, left=bounded_down(self.left + unspent))

    @property
    def total(self) -> GaussianDP | Unbounded:
        """The root of the sum of squares, and no more than the budget while it holds."""
        if self.left is None:
            return Unbounded()
        lost = self.lost.total
        return lost if lost.within(self.budget) else self.budget

    @property
    def interaction(self) -> Interaction:
        """Memoryless: all launches together are a postprocessing of one draw, by the pair of the budget."""
        return "memoryless"

    def keeps(self, budget: Loss) -> bool:
        """Whether every launch was paid."""
        return self.left is not None and self.budget.within(budget)

    def at_launches(self) -> "GaussianChain":
        """The exact reading, which needs no budget."""
        return GaussianChain()

    def headroom(self, budget: Loss) -> Fraction:
        """The largest epsilon that is GaussianDP with what is left."""
        return ZERO if self.left is None else max(self.spare, pure_of_gaussian(self.left))

    def largest_fitting(self, budget: Loss) -> GaussianDP:
        """The root of what is left."""
        return GaussianDP(root_below(self.left or ZERO))


class GaussianChain(Accumulator, Value, frozen=True):
    """The least mu from which a Gaussian reserve pays for all launches so far, exactly and in their order.

    See theory, A Gaussian odometer. Launches are those of `GaussianSum`, whose sum of squares it never exceeds. Each
    reading takes time for every launch, and the account grows with the runs of unlike launches.

    >>> (GaussianChain() + PureDP("0.1") + PureDP("0.3")).total
    GaussianDP(~0.388628)
    """

    runs: tuple[tuple[Loss, int], ...] = ()
    theorem = (
        "the least variance from which a Gaussian reserve pays for all launches (theory, A Gaussian odometer; Haney et "
        "al. 2023, Lemma 2.19, Thm 1.20; Henzinger et al. 2024, Cor 14.10)"
    )

    def plus(self, loss: Loss, interaction: Interaction = "endless") -> "GaussianChain":
        """Remember a launch."""
        return self.after([Summand(loss, interaction)])

    def after(self, launches: Iterable[Summand]) -> "GaussianChain":
        """Remember launches."""
        runs = list(self.runs)
        for loss, interaction in launches:
            GaussianSum().plus(loss, interaction)  # says what is not covered
            last, copies = runs.pop() if runs else (loss, 0)
            runs += [(loss, copies + 1)] if last == loss else [(last, copies), (loss, 1)]
        return GaussianChain(tuple(runs))

    @property
    def total(self) -> GaussianDP:
        """The root of the variance that is needed, rounded up."""
        launches = [payment for loss, copies in self.runs for payment in copies * [_payment_of(loss)]]
        return GaussianDP(rounded_up(sqrt_up(Fraction(variance_needed(launches), UNIT))))

    @property
    def interaction(self) -> Interaction:
        """Memoryless, as the filters of which it is the reading."""
        return "memoryless"

    def headroom(self, budget: Loss) -> Fraction:
        """The largest epsilon that the budget's variance pays for behind all of these."""
        (mu,) = self._limits(budget, GaussianDP)
        left: int | None = int(mu * mu * UNIT)
        for loss, copies in self.runs:
            for _ in range(copies):
                left = spent(left, _payment_of(loss))
        return pure_within(left or 0)

    def largest_fitting(self, budget: Loss) -> GaussianDP:
        """What is left, as `GaussianRest` says it: the mu of the largest pure loss that fits."""
        return GaussianDP(root_below(square_of_pure(self.headroom(budget))))


_PLACES = 192
"""How many binary digits of a variance are kept when a pure launch is paid."""


@lru_cache(maxsize=4096)
def _rest_of(left: Fraction, epsilon: Fraction) -> Fraction | None:
    """What RR(epsilon) leaves of a variance: never less than by its mu squared. None if it does not fit."""
    bits = max(0, _PLACES + left.denominator.bit_length() - left.numerator.bit_length())
    paid = left_after((left.numerator << bits) // left.denominator, epsilon, bits)
    plain = left - square_of_pure(epsilon)
    exactly = ZERO if paid is None else Fraction(paid, 1 << bits)
    return None if paid is None and plain < 0 else bounded_down(max(plain, exactly))


def _payment_of(loss: Loss) -> Payment:
    """How a Gaussian reserve pays for a launch that `GaussianSum` covers."""
    return Payment(None, loss.square, ZERO) if isinstance(loss, GaussianDP) else Payment(_epsilon_of(loss), None, ZERO)


def _epsilon_of(loss: Loss) -> Fraction:
    """The epsilon of a pure launch: a child with a budget in PureDP has no others."""
    response = response_of(loss)
    assert response is not None and response[1] == 0
    return response[0]


_COVERED = (
    "PureDP, and GaussianDP of mechanisms that answer once, have finite communication or are memoryless; budget in "
    "zCDP or ApproxDP for other measures"
)


def _why_not(loss: Loss, response: EpsilonDelta | None) -> str:
    """What is missing, for a refusal."""
    if response is not None:
        return ": with probability delta the data may be exposed, which no mu bounds"
    if isinstance(loss, GaussianDP):
        return " of a mechanism without finite communication (Haney et al. 2023, Thm 1.20)"
    return ": its measure does not imply GaussianDP (theory, Gaussian budgets)"


SUMS: dict[type[Loss], type[Accumulator]] = {
    PureDP: PureSum,
    ApproxDP: ApproximateSum,
    zCDP: ZCDPSum,
    RenyiDP: RenyiSum,
    tCDP: TCDPSum,
    GaussianDP: GaussianRest,
    ApproxzCDP: ApproximateZCDPSum,
    TradeOff: TradeOffRest,
}
"""The measures that a budget may be in, and by what their losses add up."""


def sum_for(budget: Loss) -> Accumulator:
    """The empty sum of a budget's own measure; `NotCovered` if no theorem adds up losses of that measure.

    >>> sum_for(tCDP(1, omega=20)).total
    tCDP(rho=0, omega=20)
    """
    return _sum_of(type(budget)).for_budget(budget)


def odometer_for(measure: type[Loss]) -> Accumulator:
    """The empty sum of a measure that needs nothing fixed in advance, for `Odometer(measure)`.

    >>> odometer_for(PureDP).total
    PureDP(0)
    """
    return _sum_of(measure).for_odometer()


def _sum_of(measure: type[Loss]) -> type[Accumulator]:
    if measure not in SUMS:
        raise NotCovered(
            f"no theorem adds up adaptively chosen {measure.__name__} losses; use a budget in {named(SUMS)}"
        )
    return SUMS[measure]

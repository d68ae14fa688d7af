"""A measure of one's own is one file: the loss and its sum, below. Rules, sessions and displays take it as it is.

The measure here is total variation: no event is likelier by more than `distance` under a neighbour, which is
(0, distance)-DP. So launches are randomized responses RR(0, distance), and their distances add (Haney et al. 2023,
Thm 1.19; Henzinger et al. 2024, Thm 12.4).
"""

from collections.abc import Mapping
from fractions import Fraction
from typing import Self

import pytest

from counterpoint import (
    ApproxDP,
    BudgetExceeded,
    Durable,
    Filter,
    GaussianDP,
    Odometer,
    Parallel,
    PureDP,
    RandomizedResponse,
    Session,
    Slots,
    Stream,
    compose,
    zCDP,
)
from counterpoint.composition import truncated
from counterpoint.composition.accumulator import Accumulator
from counterpoint.composition.parallel import PARTS_ON_CHANGING_DATA
from counterpoint.composition.sums import SUMS
from counterpoint.encoding import Value, decode, encode
from counterpoint.errors import InvalidParameter, NotCovered
from counterpoint.measures import Unbounded
from counterpoint.measures.conversions import RESPONSES, response_of
from counterpoint.measures.loss import Loss
from counterpoint.mechanisms import Concurrent
from counterpoint.mechanisms.composite_parts import Part
from counterpoint.mechanisms.mechanism import Left, Mechanism
from counterpoint.numbers import Interval, format_number
from counterpoint.numbers.exact import added_up, whole
from counterpoint.numbers.parameters import Probability
from counterpoint.privacy.claims import Interaction, claim
from counterpoint.privacy.relations import every_step, first_pair_consistent, k_sparse
from counterpoint.session.timeline import as_html, summary

# ---------------------------------------------------------------------------------------------- the measure, whole


class TotalVariation(Loss, Value, frozen=True):
    """No event is likelier by more than `distance` under a neighbour: (0, distance)-DP."""

    distance: Probability

    def __repr__(self) -> str:
        return f"TotalVariation({format_number(self.distance)})"

    def _epsilon_bounds(self, delta: Fraction) -> Interval | None:
        return ApproxDP(0, self.distance)._epsilon_bounds(delta)

    def _delta_bounds(self, epsilon: Fraction) -> Interval:
        return ApproxDP(0, self.distance)._delta_bounds(epsilon)

    def _follows_from(self, loss: Loss) -> bool:
        return loss.implies(ApproxDP(0, self.distance))

    def group(self, size: int) -> "TotalVariation":
        return TotalVariation(min(Fraction(1), whole(size, 0, "size") * self.distance))

    @property
    def amounts(self) -> tuple[Fraction, ...]:
        return (self.distance,)

    def left_after(self, total: Loss) -> "TotalVariation | None":
        return TotalVariation(self.distance - total.distance) if isinstance(total, TotalVariation) else None

    @classmethod
    def compose_fixed(cls, counted: Mapping[Self, int]) -> tuple["TotalVariation", str]:
        total = sum((copies * loss.distance for loss, copies in counted.items()), Fraction(0))
        return TotalVariation(min(Fraction(1), total)), "sum"

    @property
    def example(self) -> str:
        return f"Leak({format_number(self.distance)})"


class DistanceSum(Accumulator, Value, frozen=True):
    """Distances add."""

    distance: Fraction = Fraction(0)
    theorem = "basic composition (Haney et al. 2023, Thm 1.19; Henzinger et al. 2024, Thm 12.4)"

    def plus(self, loss: Loss, interaction: Interaction = "endless") -> "DistanceSum":
        epsilon, delta = response_of(loss) or (None, Fraction(0))
        if epsilon != 0:
            self._not_covered(loss, "TotalVariation, and ApproxDP with an epsilon of 0")
        return DistanceSum(added_up(self.distance, delta))

    @property
    def total(self) -> TotalVariation | Unbounded:
        return TotalVariation(self.distance) if self.distance <= 1 else Unbounded()

    def largest_fitting(self, budget: Loss) -> TotalVariation:
        (most,) = self._limits(budget, TotalVariation)
        return TotalVariation(max(Fraction(0), most - self.distance))


RESPONSES[TotalVariation] = lambda loss: (Fraction(0), loss.distance)
PARTS_ON_CHANGING_DATA[TotalVariation] = lambda loss: (Fraction(0), loss.distance)
SUMS[TotalVariation] = DistanceSum


# ------------------------------------------------------------------------------------------- a mechanism that has it


class Leak(Mechanism, Value, frozen=True):
    """Answers one ask with the bit, with probability `distance`; else with a fair coin."""

    distance: Probability

    @property
    def claim(self):
        return claim(TotalVariation(self.distance), every_step(), "RR(0, distance)", interaction="one-shot")

    def accepts(self, message):
        return RandomizedResponse(0).accepts(message)

    def start(self, coins):
        return Left(1)

    def step(self, state, message, coins):
        return RandomizedResponse(0, self.distance).step(state, message, coins)


def test_a_filter_admits_it_up_to_the_budget_and_says_what_would_fit():
    rule = Filter(TotalVariation(0.3))
    account = rule.admit(rule.admit(rule.start(), Leak(0.1).claim), Leak(0.1).claim)
    assert rule.loss(account) == TotalVariation(0.2) and rule.used(account, 100) == 67
    assert rule.fits(account, Leak(0.1).claim)
    with pytest.raises(BudgetExceeded, match=r"at most TotalVariation\(0.1\) more would fit") as refusal:
        rule.admit(account, Leak("0.1000001").claim)
    assert refusal.value.would_fit == TotalVariation(0.1)
    with pytest.raises(NotCovered, match="it covers TotalVariation"):
        rule.admit(account, claim(PureDP(1), every_step(), "any"))


def test_it_enters_the_sums_of_other_measures_as_the_randomized_response_that_it_is():
    rule = Filter(ApproxDP(1, 0.5))
    account = rule.admit(rule.start(), Leak(0.1).claim)
    assert rule.remaining(account).delta < Filter(ApproxDP(1, 0.5)).remaining(rule.start()).delta
    basic = Filter(ApproxDP(1, 0.5), by="basic")
    assert basic.loss(basic.admit(basic.start(), Leak(0.1).claim)) == ApproxDP(0, 0.1)
    for budget in (PureDP(1), zCDP(1), GaussianDP(1)):
        with pytest.raises(NotCovered):
            Filter(budget).admit(Filter(budget).start(), Leak(0.1).claim)


def test_an_odometer_counts_in_it_and_truncates_at_a_threshold():
    rule = Odometer(TotalVariation)
    account, readings = rule.start(), []
    for _ in range(3):
        account = rule.admit(account, Leak(0.2).claim)
        readings.append((rule.loss(account), "answer"))
    assert rule.loss(account) == TotalVariation(0.6)
    assert truncated(readings, TotalVariation(0.4)) == ("answer", "answer")
    with pytest.raises(NotCovered):
        truncated(readings, PureDP(1))


def test_parallel_parts_hold_it_and_charge_every_delta_where_data_change():
    static = Parallel(2, each=TotalVariation(0.1), first_pair=True)
    assert static.bound(first_pair_consistent(2, every_step())).delta_at(0) == compose.optimal(
        [ApproxDP(0, 0.1)] * 2
    ).delta_at(0)
    with pytest.raises(NotCovered, match="needs delta_total"):
        Parallel(2, each=TotalVariation(0.1))
    changing = Parallel(2, each=TotalVariation(0.1), delta_total=0.15)
    account = changing.admit(changing.start(), Leak(0.1).claim)
    assert changing.bound(k_sparse(2, every_step())).delta_at(0) == 0.15
    with pytest.raises(BudgetExceeded, match="delta_total"):
        changing.admit(account, Leak(0.1).claim)


def test_slots_composites_and_fixed_composition_take_it():
    assert Part("leaks", TotalVariation(0.1), every_step(), slots=3).cost == TotalVariation(0.3)
    assert Slots([TotalVariation(0.1)] * 2).total.delta_at(0) == pytest.approx(0.19)
    assert compose.optimal([TotalVariation(0.1), PureDP(1)]).epsilon_at(0.1) == pytest.approx(1)


def test_its_order_reaches_other_measures_both_ways():
    assert TotalVariation(0.1).implies(TotalVariation(0.2)) and TotalVariation(0.1).implies(ApproxDP(1, 0.1))
    assert not TotalVariation(0.2).implies(TotalVariation(0.1)) and not TotalVariation(0.1).implies(PureDP(5))
    assert PureDP(1).implies(TotalVariation(0.5)) and not PureDP(1).implies(TotalVariation(0.4))
    assert TotalVariation(0.3).group(2) == TotalVariation(0.6)
    with pytest.raises(NotCovered, match="has no conversion to zCDP"):
        TotalVariation(0.1).as_zcdp()


def test_a_session_launches_delegates_and_shows_it():
    session = Session(Stream(bound=1), within=TotalVariation(0.5))
    session.launch(Leak(0.125))
    colleague = session.delegate(TotalVariation(0.25))
    colleague.launch(Leak(0.25))
    shown = dict(summary(session))
    assert shown["budget"] == "TotalVariation(0.5)" and shown["lost"] == "TotalVariation(0.375)"
    assert shown["would fit"] == "TotalVariation(0.125), such as Leak(0.125)"
    assert "TotalVariation" in as_html(session)
    with pytest.raises(BudgetExceeded):
        colleague.launch(Leak("1e-9"))
    assert session.certificate().rests_on("Haney et al. 2023, Thm 1.19")


def test_a_ledger_stores_it_and_reads_it_back(tmp_path):
    ledger = Durable(tmp_path / "ledger.db")
    with Session(Stream(bound=1), within=TotalVariation(0.5), ledger=ledger) as session:
        session.launch(Leak(0.125))
    with Session(Stream(bound=1), within=TotalVariation(0.5), ledger=ledger) as again:
        assert again.loss == TotalVariation(0.125)
    rule = Concurrent(Filter(TotalVariation(0.5)), every_step())
    assert decode(encode(rule), Concurrent) == rule


def test_an_accumulator_refuses_a_budget_of_another_measure():
    with pytest.raises(InvalidParameter, match="DistanceSum adds up TotalVariation"):
        DistanceSum().largest_fitting(PureDP(1))

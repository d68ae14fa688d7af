"""Slots: fixed losses, any order, exact match or domination, the optimal total from the start."""

import pytest

from counterpoint.composition.fixed.compose import optimal
from counterpoint.composition.slots import FreeSlots, Slots
from counterpoint.encoding import decode, encode
from counterpoint.errors import BudgetExceeded, InvalidParameter, NotCovered
from counterpoint.measures import ApproxDP, GaussianDP, PureDP, RenyiDP, Unbounded, zCDP
from counterpoint.mechanisms.concurrent import Concurrent
from counterpoint.privacy.claims import claim
from counterpoint.privacy.relations import every_step


def of(loss):
    return claim(loss, every_step(), "a test")


def take(rule, *losses):
    account = rule.start()
    for loss in losses:
        account = rule.admit(account, of(loss))
    return account


def test_launches_take_slots_in_any_order_and_no_more_than_there_are():
    rule = Slots([PureDP(0.1), PureDP(0.5), PureDP(0.1)])
    for order in ([0.1, 0.5, 0.1], [0.5, 0.1, 0.1], [0.1, 0.1, 0.5]):
        account = take(rule, *map(PureDP, order))
        assert account == FreeSlots(())
        with pytest.raises(BudgetExceeded):
            rule.admit(account, of(PureDP("1e-9")))


def test_the_total_is_the_optimal_composition_from_the_start():
    losses = [ApproxDP(0.1, 1e-9)] * 30
    rule = Slots(losses)
    expected = optimal(losses).epsilon_at(1e-6)
    assert rule.loss(rule.start()).epsilon_at(1e-6) == expected
    assert rule.loss(take(rule, *losses[:3])).epsilon_at(1e-6) == expected
    assert expected < 3, "less than the sum"


def test_a_smaller_launch_takes_its_own_slot_or_the_smallest_that_dominates_it():
    rule = Slots([PureDP(0.5), ApproxDP(0.2, 1e-6), PureDP(0.3)])
    assert take(rule, PureDP(0.3)).groups == ((ApproxDP(0.2, 1e-6), 1), (PureDP(0.5), 1))
    assert take(rule, PureDP(0.1)).groups == ((PureDP(0.3), 1), (PureDP(0.5), 1))
    assert take(rule, PureDP(0.25)).groups == ((ApproxDP(0.2, 1e-6), 1), (PureDP(0.5), 1))
    with pytest.raises(BudgetExceeded, match="free slots"):
        take(rule, PureDP(0.6))


def test_other_measures_have_their_own_optimal_rule():
    assert Slots([zCDP(0.1)] * 5).bound(every_step()).epsilon_at(1e-6) == zCDP(0.5).epsilon_at(1e-6)
    assert Slots([GaussianDP(3), GaussianDP(4)]).total.delta_at(1) == GaussianDP(5).delta_at(1)


def test_f_dp_slots_want_finite_communication():
    rule = Slots([GaussianDP(1)])
    with pytest.raises(NotCovered, match="finite communication"):
        rule.admit(rule.start(), of(GaussianDP(1)))
    finite = claim(GaussianDP(1), every_step(), "a test", interaction="finite")
    assert rule.admit(rule.start(), finite) == FreeSlots(())


def test_it_is_a_rule_for_concurrent_composition_with_a_claim():
    composition = Concurrent(Slots([PureDP(0.1)] * 10), every_step())
    assert composition.claim.certificate.rests_on("Henzinger et al. 2024, Thm 4.12")
    assert composition.claim.loss.epsilon_at(0) == 1.0


def test_it_round_trips_and_refuses_nonsense():
    rule = Slots([PureDP(0.1)] * 3 + [ApproxDP(0.2, 1e-9)])
    assert decode(encode(rule), Slots) == rule
    assert repr(rule) == "Slots(3 x PureDP(0.1), 1 x ApproxDP(0.2, 1e-9))"
    for bad in ([], [1], None, "x", 5, PureDP(1)):
        with pytest.raises(InvalidParameter):
            Slots(bad)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "slots",
    [
        ((PureDP(1), 0),),
        ((PureDP(1), -5),),
        ((PureDP(1), True),),
        ((PureDP(1), 0.5),),
        (("x", 1),),
        ((),),
    ],
    ids=repr,
)
def test_a_group_of_slots_that_is_no_group_is_refused(slots):
    """A group of none had a slot to take, and counted nothing."""
    with pytest.raises(InvalidParameter, match="one for each possible launch"):
        Slots(slots)


@pytest.mark.parametrize("losses", [[zCDP(1), RenyiDP(2, 1)], [RenyiDP(2, 1), RenyiDP(3, 1)], [Unbounded()]], ids=repr)
def test_slots_that_no_theorem_composes_are_refused_before_the_first_launch(losses):
    with pytest.raises(NotCovered):
        Slots(losses)

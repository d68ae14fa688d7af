"""Readings at a distance: each launch with its own group loss, by the rule's theorem (theory, Groups)."""

import math
from fractions import Fraction
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.composition.test_validity import STEP, worst_delta

from counterpoint.composition.filters import Filter
from counterpoint.composition.odometers import Odometer
from counterpoint.composition.parallel import Parallel
from counterpoint.composition.slots import Slots
from counterpoint.errors import BudgetExceeded, NotCovered
from counterpoint.measures import ApproxDP, ApproxzCDP, GaussianDP, PureDP, RenyiDP, Unbounded, tCDP, zCDP
from counterpoint.mechanisms.additive import Laplace
from counterpoint.numbers.exact import whole
from counterpoint.privacy.claims import claim
from counterpoint.privacy.relations import every_step


def of(loss, interaction="one-shot"):
    return claim(loss, every_step(), "a test", interaction=interaction)


@pytest.mark.parametrize(
    ("rule", "loss", "expected"),
    [
        (Filter(PureDP(9)), PureDP("0.1"), PureDP("0.6")),
        (Odometer(PureDP), PureDP("0.1"), PureDP("0.6")),
        (Filter(zCDP(9)), zCDP("0.1"), zCDP("1.8")),
        (Filter(zCDP(9)), PureDP("0.1"), zCDP("0.09")),
        (Odometer(zCDP), GaussianDP("0.1"), zCDP("0.09")),
        (Filter(RenyiDP(2, 9)), zCDP("0.1"), RenyiDP(2, "3.6")),
        (Filter(ApproxDP(9, "0.5"), by="basic"), ApproxDP(0, "0.01"), ApproxDP(0, "0.06")),
        (Filter(PureDP(9), launches=7), PureDP("0.1"), PureDP("0.6")),
    ],
    ids=repr,
)
def test_two_launches_at_distance_three(rule, loss, expected):
    assert rule.loss_at(3, [of(loss)] * 2) == expected


def test_gaussian_losses_grow_with_the_distance():
    assert Odometer(GaussianDP).loss_at(3, [of(GaussianDP(3)), of(GaussianDP(4))]) == GaussianDP(15)


def test_at_distance_zero_nothing_is_lost():
    assert Filter(PureDP(1)).loss_at(0, [of(PureDP(1))]) == PureDP(0)
    assert Filter(ApproxDP(1, "1e-6")).loss_at(0, [of(PureDP(1))]).epsilon == 0


def test_slots_count_all_slots_at_a_distance():
    assert Slots([PureDP("0.1")] * 4).loss_at(2, []).epsilon_at(0) == pytest.approx(0.8)


@pytest.mark.parametrize(
    ("rule", "loss"),
    [
        (Filter(RenyiDP(2, 9)), RenyiDP(4, "0.1")),
        (Filter(tCDP(1, 20)), RenyiDP(30, "0.1")),
        (Odometer(ApproxzCDP), ApproxzCDP("0.1", "1e-9")),
        (Parallel(1, each=PureDP(1)), PureDP(1)),
    ],
    ids=repr,
)
def test_what_has_no_group_loss_is_refused(rule, loss):
    with pytest.raises(NotCovered):
        rule.loss_at(2, [of(loss)])


def test_composing_group_losses_beats_the_group_loss_of_the_sum():
    """Fifty launches of 0.1: at distance 3 the group loss of the reading has a delta of 3e-3, and this one 1e-6."""
    rule, launches = Filter(ApproxDP(5, "1e-6")), [Laplace("0.1").claim] * 50
    reading = rule.loss_at(3, launches)
    assert reading.delta == Fraction(1, 10**6) and reading.epsilon < 15
    account = rule.start()
    for launch in launches:
        account = rule.admit(account, launch)
    assert rule.loss(account).group(3).delta > Fraction(1, 1000)


def test_deltas_beyond_their_room_leave_no_bound():
    """One launch of 4e-7 has room; at distance 3 its delta is more than three times that."""
    launch = of(ApproxDP("0.1", "4e-7"))
    assert Filter(ApproxDP(1, "1e-6")).loss_at(3, [launch]) == Unbounded()


@pytest.mark.parametrize("settings", [{}, {"by": "gaussian"}], ids=str)
@pytest.mark.parametrize(("threshold", "distance"), [(Fraction(1), 2), (Fraction(3, 2), 3)], ids=str)
def test_no_adaptive_analyst_gets_beyond_a_reading_at_a_distance(distance, threshold, settings):
    """A mechanism that is (epsilon, delta) can be a randomized response with its group loss at this distance.

    The analyst launches what the filter admits, while the reading at the distance is within a threshold fixed before.
    """
    budget = ApproxDP(1, Fraction(1, 20))
    rule, own = Filter(budget, **settings), ((1, Fraction(0)), (3, Fraction(1, 400)))
    group = tuple((distance * n, ApproxDP(n * STEP, delta).group(distance).delta) for n, delta in own)
    losses = [ApproxDP(n * STEP, delta) if delta else PureDP(n * STEP) for n, delta in own]

    @cache
    def is_within(counts):
        launched = [of(loss) for loss, count in zip(losses, counts, strict=True) for _ in range(count)]
        return rule.loss_at(distance, launched).within(ApproxDP(threshold, budget.delta))

    @cache
    def launch(state, index):
        account, counts = state
        counts = (*counts[:index], counts[index] + 1, *counts[index + 1 :])
        try:
            after = rule.admit(account, of(losses[index]))
        except BudgetExceeded:
            return None
        return (after, counts) if is_within(counts) else None

    start, chances = (rule.start(), (0, 0)), tuple((size, float(delta)) for size, delta in group)
    found = worst_delta(start, launch, chances, STEP, threshold)
    assert 0.1 * float(budget.delta) < found <= float(budget.delta) * (1 + 1e-9)


def test_readings_at_a_distance_would_be_exceeded_without_it():
    """The reading at distance 1, taken for one at distance 3, is beaten by the same analyst."""
    rule = Filter(ApproxDP(1, Fraction(1, 20)))
    menu = ((6, Fraction(0)),)

    def launch(account, _):
        after = account.plus(PureDP(2 * STEP), "one-shot")
        return after if rule.loss(after).within(ApproxDP(1, Fraction(1, 20))) else None

    assert worst_delta(rule.start(), launch, menu, STEP, Fraction(1)) > 2 / 20


def test_a_partition_at_distance_three_is_more_than_its_parts_at_distance_three():
    """Three units in two parts each can put three parts at distance 2: RR(2e)^3 is not within RR(3e)^2.

    So a partition has the group loss of its whole claim, 6e, and not that of two launches of a part's.
    """

    def distance(epsilon, copies):
        truth = math.exp(epsilon) / (1 + math.exp(epsilon))
        return sum(
            math.comb(copies, n)
            * max(truth**n * (1 - truth) ** (copies - n) - (1 - truth) ** n * truth ** (copies - n), 0)
            for n in range(copies + 1)
        )

    e = math.log(2)
    assert distance(2 * e, 3) > 0.79 > distance(3 * e, 2)
    assert distance(2 * e, 3) < distance(6 * e, 1)


@given(st.lists(st.integers(1, 30), max_size=6), st.integers(1, 5))
@settings(max_examples=40, deadline=None)
def test_a_reading_grows_with_the_distance_and_with_each_launch(sizes, distance):
    rule = Filter(ApproxDP(1, "1e-6"))
    launches = [of(PureDP(Fraction(size, 100))) for size in sizes]
    here, farther = rule.loss_at(distance, launches), rule.loss_at(distance + 1, launches)
    assert here.epsilon <= sum(Fraction(size, 100) for size in sizes) * whole(distance, 1, "distance")
    assert rule.loss_at(distance, launches[:-1]).epsilon <= here.epsilon
    assert here.epsilon <= farther.epsilon or farther.epsilon < Fraction(distance + 1)

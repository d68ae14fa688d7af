"""Counters for units whose items are far from each other: as far as the noise is paid for, and no nearer.

As for other counters under zCDP, the claim is a statement on integers: the squares of all moves of the draws sum to at
most 2 rho sigma2 (`test_blt_noise.py`).
"""

from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.continual.test_blt_noise import Given, moves, walk

from counterpoint import Counter
from counterpoint.coins import SeededCoins
from counterpoint.continual.blt import for_horizon
from counterpoint.continual.blt_noise import LIFETIME, BltNoise
from counterpoint.continual.horizon import PastHorizon
from counterpoint.continual.spaced_noise import FarItems, for_separated, spaced_noise
from counterpoint.encoding import encode
from counterpoint.errors import InvalidParameter
from counterpoint.mechanisms import Ask, Update
from counterpoint.privacy.relations import MinSeparation, Steps
from counterpoint.verify.catalogue.mechanisms import Resized

HALF = Fraction(1, 2)


def shifts(places, signs, steps):
    """By how much the count differs at each step if the items at these places do, by 1 up or down."""
    changes = dict(zip(places, signs, strict=True))
    return np.cumsum([changes.get(step, 0) for step in range(steps)]).tolist()


def paid(noise, places, signs, steps, seed=1):
    """What share of the budget all moves of one run take."""
    moved = moves(noise, walk(noise, steps, seed), shifts(places, signs, steps))
    return sum(move * move for move in moved) / (2 * HALF * noise.sigma2)


@pytest.mark.parametrize("items, apart", [(2, 1), (3, 4), (4, 2), (2, 7)])
def test_items_that_are_far_from_each_other_move_all_draws_by_no_more_than_is_paid_for(items, apart):
    noise, places = spaced_noise(HALF, 16, FarItems(items, apart)), range(items * apart + 3)
    allowed = [chosen for chosen in combinations(places, items) if np.diff(chosen).min() >= apart]
    found = {chosen: paid(noise, chosen, (1,) * items, 60) for chosen in allowed}
    assert max(found.values()) <= 1
    nearest = tuple(range(0, items * apart, apart))
    assert found[nearest] == pytest.approx(max(found.values())) and found[nearest] > 0.95, "and the nearest need it all"
    assert paid(noise, nearest, (1, -1) * (items // 2) + (1,) * (items % 2), 60) <= found[nearest]


def test_items_that_are_nearer_move_them_by_more():
    noise = spaced_noise(HALF, 16, FarItems(3, 4))
    assert paid(noise, (0, 4, 8), (1, 1, 1), 60) <= 1 < paid(noise, (0, 3, 6), (1, 1, 1), 60)


def test_steps_of_asks_would_not_do_as_items_that_are_far_from_each_other_can_be_one_step():
    noise = spaced_noise(HALF, 16, FarItems(3, 4))
    by_asks = BltNoise(*noise)
    moved = moves(by_asks, walk(by_asks, 30, 1), [3] * 30)  # one ask after all three items
    assert sum(move * move for move in moved) > 1.5 * 2 * HALF * noise.sigma2


@settings(max_examples=60, deadline=None)
@given(st.integers(2, 12), st.integers(1, 40), st.integers(1, 40))
def test_how_far_items_reach_is_the_norm_of_their_columns(power, items, apart):
    blt = for_horizon(2**power)
    coefficients = [Fraction(1), *(sum(b.weight * (1 - b.rate) ** k for b in blt.buffers) for k in range(3))]
    assert coefficients == sorted(coefficients, reverse=True)
    steps = items * apart + 40 * 2**power
    column = np.concatenate([[1.0], sum(float(b.weight) * float(1 - b.rate) ** np.arange(steps) for b in blt.buffers)])
    moved = sum(np.concatenate([np.zeros(at), column[: steps - at]]) for at in range(0, items * apart, apart))
    found = blt.separated(items, apart)
    assert float(found.upper) == pytest.approx(moved @ moved, rel=1e-6)
    assert 0 <= found.upper - found.lower < found.upper / 10**20


def test_exactly_how_far_two_items_reach():
    blt = for_horizon(4)
    (buffer,) = blt.buffers
    decay, weight = 1 - buffer.rate, buffer.weight
    apart_by_3 = weight * decay**2 + weight**2 * decay**3 / (1 - decay**2)
    exactly = 2 * blt.squared + 2 * apart_by_3
    found = blt.separated(2, 3)
    assert Fraction(found.lower) <= exactly <= Fraction(found.upper)


def test_one_item_needs_the_noise_of_any_other_counter_and_many_far_ones_less_than_as_many_near_ones():
    one = spaced_noise(HALF, 2**10, FarItems(1, 5))
    assert one.deviation(2**10) == pytest.approx(Counter(rho=HALF, horizon=2**10).deviation(2**10), rel=0.05)
    deviations = [
        Counter(rho=HALF, horizon=2**10, per_unit=8, min_separation=apart).deviation(2**10) for apart in (1, 16, 128)
    ]
    assert deviations == sorted(deviations, reverse=True)
    assert deviations[2] < Counter(rho=HALF, horizon=2**10, per_unit=8).deviation(2**10) / 1.9


def test_noise_grows_with_how_far_an_item_moves_and_the_claim_says_how_far_from_each_other_they_are():
    small, large = (Counter(rho=1, per_unit=3, bound=bound, min_separation=9).deviation(100) for bound in (1, 5))
    assert 4.9 < large / small < 5.1
    few, many = (Counter(rho=1, per_unit=3, squared=it, width=4, min_separation=9).deviation(100) for it in (1, 2))
    assert 1.4 < many / few < 1.42
    assert Counter(rho=1, per_unit=3, min_separation=9).claim.relation == MinSeparation(Steps(updates=3, bound=1), 9)
    vectors = Counter(rho=1, per_unit=3, squared=2, width=4, min_separation=9)
    assert vectors.claim.relation == MinSeparation(Steps(updates=3, squared=2), 9)


def test_the_matrix_of_a_stored_counter_stays_what_it_is():
    """A ledger holds the parameters of a counter, and its noise is made from them again."""
    wanted = {
        (2**10, 8, 128): [(228, 14, 168, 10), (187, 10, 218, 10), (170, 8, 129, 10)],
        (2**12, 8, 64): [(230, 18, 172, 13), (221, 14, 155, 11), (187, 11, 168, 10), (238, 9, 221, 10)],
        (None, 100, 10**5): [
            (216, 30, 162, 23),
            (154, 25, 138, 17),
            (140, 21, 139, 15),
            (234, 18, 251, 14),
            (222, 14, 130, 10),
            (228, 10, 165, 9),
        ],
    }
    for (horizon, items, apart), buffers in wanted.items():
        assert list(map(tuple, for_separated(horizon, items, apart).buffers)) == buffers


def test_the_noise_is_the_same_whenever_asks_come():
    noise, draws = spaced_noise(HALF, 16, FarItems(3, 4)), [7 * k * k - 40 for k in range(10)]
    at_once = noise.drawn(noise.start(), 10, Given(*draws))
    one_by_one = noise.start()
    for items in range(1, 11):
        one_by_one = noise.drawn(one_by_one, items, Given(draws[items - 1]))
    assert encode(at_once, sealed=True) == encode(one_by_one, sealed=True) and at_once.steps == 10
    again = noise.drawn(at_once, 10, Given())
    assert encode(again, sealed=True) == encode(at_once, sealed=True), "without a new item, nothing is drawn"


def test_many_counters_have_the_noise_of_each_alone():
    alone, both = (spaced_noise(HALF, 16, FarItems(3, 4, 2, 2), width) for width in (1, 2))
    draws = [[3 * k - 11, 5000 - k**3] for k in range(9)]
    together = both.drawn(both.start(), 9, Given(*(draw for pair in draws for draw in pair)))
    for at in (0, 1):
        single = alone.drawn(alone.start(), 9, Given(*(pair[at] for pair in draws)))
        assert together.noise.integers[at] == single.noise.integers[0]
        assert together.buffers.integers.reshape(-1, 2)[:, at].tolist() == single.buffers.integers.tolist()


def test_counts_are_exact_but_for_the_noise_however_many_items_come_between_asks():
    counter, coins = Counter(rho=10**9, per_unit=4, min_separation=10), SeededCoins(3)
    state = counter.updated(counter.start(coins), [Update(1)] * 5000, coins)
    state, answer = counter.step(state, Ask(), coins)
    assert answer == 5000 and counter.step(state, Ask(), coins)[1] == 5000
    vectors = Counter(rho=10**9, per_unit=4, width=2, min_separation=10)
    state = vectors.updated(vectors.start(coins), [Update((1, -1))] * 30, coins)
    assert vectors.step(state, Ask(), coins)[1] == (30, -30)


def test_items_past_the_last_step_are_not_counted_and_the_next_answer_says_so():
    counter, coins = Resized(rho=10**6, per_unit=2, min_separation=2, bits=4, steps=3), SeededCoins(1)
    state = counter.updated(counter.start(coins), [Update(1)] * 5, coins)
    assert counter.step(state, Ask(), coins) == (None, PastHorizon(3))
    assert counter.step(state, Ask(), Given(0, 0, 0)) == (None, PastHorizon(3)), "with the noise of three steps"
    assert (
        Counter(rho=1, min_separation=1).most_items == Counter(rho=1, width=2, min_separation=1).most_items == LIFETIME
    )
    assert Counter(rho=1).most_items is None and Counter(1, horizon=9).most_items == 9


def test_data_whose_units_are_far_make_a_counter_of_far_items_unless_it_says_how_many_there_are():
    far = MinSeparation(Steps(updates=5, bound=2, squared=2), apart=100)
    assert Counter(rho=1).fitted(far, None) == Counter(rho=1, bound=2, per_unit=5, clamp=False, min_separation=100)
    assert Counter(rho=1, per_unit=5).fitted(far, None) == Counter(rho=1, bound=2, per_unit=5, clamp=False)
    assert Counter(1).fitted(far, None) == Counter(1, bound=2, per_unit=5, clamp=False)
    own = Counter(rho=1, min_separation=70).fitted(far, None)
    assert own == Counter(rho=1, bound=2, per_unit=5, clamp=False, min_separation=70)
    assert far.within(own.claim.relation) and not own.claim.relation.within(far)
    vectors = Counter(rho=1, horizon=9, width=3).fitted(far, 3)
    assert vectors == Counter(rho=1, horizon=9, bound=2, squared=2, per_unit=5, width=3, min_separation=100)
    assert Counter(rho=1, window=10).fitted(far, None).claim.relation == MinSeparation(Steps(updates=5, bound=2), 100)


@pytest.mark.parametrize("wrong", [0, -1, 1.5, float("nan"), "many"])
def test_a_distance_is_a_whole_number_above_0(wrong):
    with pytest.raises(InvalidParameter, match="separation"):
        Counter(rho=1, min_separation=wrong)


def test_under_pure_privacy_distances_are_no_help():
    for make in (lambda: Counter(1, min_separation=3), lambda: Counter(epsilon=1, width=2, min_separation=3)):
        with pytest.raises(InvalidParameter, match=r"under pure privacy .* leave min_separation= out"):
            make()


@pytest.mark.parametrize("items, apart", [(10**400, 10**400), (10**400, 1), (1, 10**400), (10**6, 10**6)])
def test_huge_numbers_and_distances_of_items_are_no_obstacle(items, apart):
    counter = Counter(rho=1, per_unit=items, min_separation=apart)
    assert counter.deviation(1000) > 1 and counter.error(0.9, t=1000) > 1

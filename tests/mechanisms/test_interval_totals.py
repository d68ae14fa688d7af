"""Totals of intervals: what a change costs is computed from the noises really used; accuracy; the Renyi conversion."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog
from scipy.stats import binom

from counterpoint.encoding import decode, encode
from counterpoint.errors import InvalidParameter, NotCovered
from counterpoint.mechanisms.interval_totals import FIRST_EPOCH, IntervalTotals, gaussian_tree, renyi_within
from counterpoint.mechanisms.mechanism import State
from counterpoint.mechanisms.trees import Tree
from counterpoint.privacy.losses import ApproxDP, PureDP, RenyiDP, zCDP
from counterpoint.privacy.messages import Ask, Update
from counterpoint.privacy.relations import Steps
from counterpoint.randomness.seeded import SeededCoins

LAPLACE, GAUSSIAN = IntervalTotals(PureDP(1), 1), IntervalTotals(RenyiDP(8, "0.5"), 1)


class Marks:
    """Coins that fall each on a power of their own, so that an answer shows which draws are in it and with what sign.

    Base 4 with digits -1, 0, 1: a number below 4^n has one such writing at most.
    """

    def __init__(self):
        self.spreads = []

    def draw(self, spread, size):
        marks = [4 ** (len(self.spreads) + at) for at in range(size)]
        self.spreads += [float(spread)] * size
        return marks

    discrete_laplace = discrete_gaussian = draw


def signs(number, width):
    found = np.zeros(width)
    for at in range(width):
        digit = (number + 1) % 4 - 1
        assert digit in (-1, 0, 1)
        found[at], number = digit, (number - digit) // 4
    assert number == 0
    return found


def used(totals, times):
    """For each time asked, the signs of all draws in its answer; and the spread of each draw."""
    coins, state, said = Marks(), totals.start(None), []
    for time in range(1, max(times) + 1):
        state, _ = totals.step(state, Update((0,)), None)
        if time in times:
            state, (answer,) = totals.step(state, Ask(), coins)
            said.append(answer)
    return np.array([signs(answer, len(coins.spreads)) for answer in said]), np.array(coins.spreads)


TIMES = [
    list(range(1, 60)),
    [3, 4, 10, 17, 18, 24, 25, 171, 172, 300, 301, FIRST_EPOCH - 1, FIRST_EPOCH, FIRST_EPOCH + 1, 700, 701],
]


@pytest.mark.parametrize("times", TIMES)
@pytest.mark.parametrize("item", [1, 4, 5, 17, 25, 49, 300, FIRST_EPOCH, FIRST_EPOCH + 1, 700])
def test_a_change_of_one_item_is_made_good_by_noises_that_cost_no_more_than_the_loss(times, item):
    after = np.array([float(time >= item) for time in times])
    coefficients, scales = used(LAPLACE, times)
    # The cheapest shift s, in units of epsilon, with <signs, s> = 1 in every answer after the item and 0 before.
    program = linprog(
        np.tile(1 / scales, 2), A_eq=np.hstack([coefficients, -coefficients]), b_eq=after, bounds=(0, None)
    )
    assert program.status == 0 and program.fun <= 1 + 1e-9
    coefficients, variances = used(GAUSSIAN, times)
    weighted = np.linalg.lstsq(coefficients * np.sqrt(variances), after, rcond=None)[0]
    assert np.allclose(coefficients * np.sqrt(variances) @ weighted, after)
    assert 8 * (weighted @ weighted) / 2 <= 0.5 + 1e-9


def test_half_of_the_noise_would_not_do():
    loud = IntervalTotals(PureDP(2), 1)
    times = TIMES[0]
    coefficients, scales = used(loud, times)
    after = np.array([float(time >= 5) for time in times])
    signed = np.hstack([coefficients, -coefficients])
    assert linprog(np.tile(1 / scales, 2), A_eq=signed, b_eq=after, bounds=(0, None)).fun > 1


@pytest.mark.parametrize("totals", [LAPLACE, GAUSSIAN])
def test_asking_again_draws_nothing(totals):
    coins = SeededCoins(1)
    state, _ = totals.step(totals.start(coins), Update((5,)), coins)
    state, answer = totals.step(state, Ask(), coins)
    assert totals.step(state, Ask(), None) == (state, answer)


@pytest.mark.parametrize("loss", [PureDP(1), RenyiDP(8, 1)])
def test_items_of_any_size_are_counted_in_full(loss):
    totals, coins = IntervalTotals(loss, 2, 2, 2), SeededCoins(1)
    state = totals.start(coins)
    for item in ((10**12, 0), (5, -3), (2**70, 1)):
        state, _ = totals.step(state, Update(item), coins)
    state, said = totals.step(decode(encode(state, sealed=True), State), Ask(), coins)
    assert abs(said[0] - (10**12 + 5 + 2**70)) < 1000 and abs(said[1] + 2) < 1000
    assert totals.claim.loss == loss and totals.claim.relation == Steps(updates=1, bound=2, squared=2)


@pytest.mark.statistical
@pytest.mark.parametrize("totals", [LAPLACE, GAUSSIAN])
def test_totals_are_as_accurate_as_stated(totals):
    runs, sure, times = 300, Fraction(9, 10), (3, 24, 40)
    failures = 0
    wide = IntervalTotals(totals.loss, 4)
    for seed in range(runs):
        coins, state = SeededCoins(seed), wide.start(None)
        for time in range(1, times[-1] + 1):
            state, _ = wide.step(state, Update((time, 0, 1, -7)), coins)
            if time == times[seed % 3]:
                state, said = wide.step(state, Ask(), coins)
                exactly = (time * (time + 1) // 2, 0, time, -7 * time)
                failures += max(abs(a - b) for a, b in zip(said, exactly, strict=True)) > wide.error(sure, time)
                break
    # Each run fails with probability at most 1/10, independently: more failures than this have one below 1e-9.
    assert binom.sf(65, runs, 0.1) < 1e-9
    assert failures <= 65


@pytest.mark.parametrize("totals", [LAPLACE, GAUSSIAN])
def test_the_worst_error_is_that_of_the_worst_time_and_never_falls(totals):
    assert totals.worst_error("0.95", 60) == max(totals.error("0.95", t) for t in range(61))
    far = [totals.worst_error("0.95", t) for t in (1, FIRST_EPOCH - 1, FIRST_EPOCH, 5000)]
    assert far == sorted(far)
    assert totals.worst_error("0.95", 5000) >= max(totals.error("0.95", t) for t in range(FIRST_EPOCH, 5000, 97))


def test_the_gaussian_tree_is_the_best_of_all_that_reach_the_horizon():
    best = gaussian_tree(60)
    others = [Tree(k, h) for h in range(1, 8) for k in range(3, 125, 2) if Tree(k, h).reach >= 60]
    assert best.height * best.most_nodes(60) == min(tree.height * tree.most_nodes(60) for tree in others)


@settings(max_examples=30)
@given(st.fractions("1/1000", 20), st.sampled_from(["1e-12", "1e-6", "1e-3", "0.3"]))
def test_the_renyi_loss_within_epsilon_and_delta_is_valid_and_hardly_less_than_zcdp_would_allow(epsilon, delta):
    loss = renyi_within(epsilon, Fraction(delta))
    assert loss.alpha.denominator == 1 and loss.implies(ApproxDP(epsilon, delta))
    rho = loss.epsilon / loss.alpha
    if epsilon <= 2 and Fraction(delta) <= Fraction(1, 1000):
        assert not zCDP(rho * Fraction("1.01")).implies(ApproxDP(epsilon, delta))


@pytest.mark.parametrize("loss", [zCDP(1), RenyiDP("2.5", 1), ApproxDP(1, "1e-6")])
def test_what_is_not_proven_is_not_covered(loss):
    with pytest.raises(NotCovered):
        IntervalTotals(loss, 1)


@pytest.mark.parametrize(
    "wrong", [{"dimensions": 0}, {"bound": 0}, {"squared": 0}, {"loss": PureDP(0)}, {"dimensions": True}]
)
def test_parameters_are_checked(wrong):
    with pytest.raises(InvalidParameter):
        IntervalTotals(**{"loss": PureDP(1), "dimensions": 2, **wrong})
    with pytest.raises(InvalidParameter):
        LAPLACE.error(1, 3)

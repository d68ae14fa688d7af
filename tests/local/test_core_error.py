"""The bound on core numbers: its chances are those of the noise, and complete graphs come near it."""

from fractions import Fraction
from itertools import product
from math import exp, expm1, log, prod

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

from counterpoint.coins.secure import SeededCoins
from counterpoint.local.cores import core_decomposition, most_above, most_below, share_of
from counterpoint.mechanisms.threshold import least_alpha, log_chance, log_draws


@pytest.mark.parametrize(("once", "each"), [(2, 3), (4, 4), (8, 4)])
def test_the_chance_is_the_sum_over_the_noise_of_a_threshold(once, each):
    b, q = exp(-1 / once), exp(-1 / each)
    for alpha, log_factor in product((2, 10, 30, 60), (-0.6, 0, 1.0, 3.0)):
        chances = ((1 - b) / (1 + b) * b ** abs(tau) for tau in range(-2000, 2001))
        far = [alpha + 1 + tau for tau in range(-2000, 2001)]
        wrong = (1 if y <= 0 else min(1, exp(log_factor) * q**y) for y in far)
        expected = sum(p * w for p, w in zip(chances, wrong, strict=True))
        found = exp(log_chance((Fraction(once), Fraction(each)), alpha, log_factor))
        assert found == pytest.approx(expected, rel=1e-9) or (found == 1 and expected > 0.5)


def earlier_bound(vertices, step, scales, fails, repeats):
    """What was stated before: one share of what may fail for each power of two of the largest number of rounds."""
    power = (repeats - 1).bit_length()
    share = Fraction(1, 10) if power < 8 else Fraction(1, 5) / 2 ** (power - 7)
    levels = -log(-expm1(-step / float(scales[1])))
    return least_alpha(scales, fails * share / vertices, log_draws(scales, 2**power) + levels)


def far(rounds):
    """Rooms that bound nothing."""
    return (10**9,) * rounds


def test_more_vertices_rounds_and_certainty_widen_the_bound_and_steps_narrow_it():
    scales, tenth = (Fraction(4), Fraction(4)), Fraction(1, 10)
    plain = most_below(100, 1, scales, tenth, far(4))
    assert most_below(1000, 1, scales, tenth, far(4)) > plain < most_below(100, 1, scales, tenth, far(64))
    assert most_below(100, 4, scales, tenth, far(4)) < plain < most_below(100, 1, scales, tenth, far(1000))
    assert most_below(100, 1, scales, tenth / 10**400, far(4)) > most_above(100, scales, tenth / 10**400) > 3000


def test_shares_of_rounds_add_up_to_one_at_most_and_never_rise():
    total = sum((share_of(number) for number in range(1, 2**16 + 1)), Fraction(0))
    assert Fraction(99, 100) < total < 1
    assert all(share_of(number) >= share_of(number + 1) > 0 for number in range(1, 1000))


@pytest.mark.parametrize("scales", [(1, 1), (4, 4), (4, 8)])
@pytest.mark.parametrize("step", [1, 3])
@pytest.mark.parametrize("rounds", [1, 2, 5, 17])
def test_the_exact_chance_that_a_noise_passes_its_bound_is_no_more_than_may_fail(scales, step, rounds):
    """All noises of some vertices, in all rounds of all levels: each in its round's own bound, by independence."""
    once, each = map(Fraction, scales)
    fails, vertices = Fraction(1, 10), 7
    alphas = [most_below(vertices, step, (once, each), fails, (0,) * s + (10**9,)) for s in range(rounds)]
    b, q = exp(-1 / once), exp(-1 / each)
    failing = 0.0
    for tau in range(-300, 301):
        stays = 1.0
        for alpha in alphas:
            for x in range(alpha + 1, alpha + 300, step):
                y = x + tau
                stays *= 1 - (q**y / (1 + q) if y > 0 else 1 - q ** (1 - y) / (1 + q))
        failing += (1 - b) / (1 + b) * b ** abs(tau) * (1 - stays)
    assert 1 - (1 - failing) ** vertices <= fails


@pytest.mark.parametrize("size", [3, 10, 40])
def test_the_bound_is_at_least_the_exact_quantile_of_a_complete_graph_and_near_it(size):
    """The first vertex to leave a complete graph is the one that is most too low; until then a level has one round."""
    once = each = Fraction(2)
    b = q = exp(-0.5)
    chances = {}
    for below in range(-20, 200):  # that one of them leaves at a level at least this much below its core number
        leaves = 0.0
        for tau in range(-150, 151):
            y = [x + tau for x in range(below, below + 150)]
            stays = prod(1 - (q**x / (1 + q) if x > 0 else 1 - q ** (1 - x) / (1 + q)) for x in y)
            leaves += (1 - b) / (1 + b) * b ** abs(tau) * (1 - stays)
        chances[below] = 1 - (1 - leaves) ** size
        if chances[below] < 0.01:
            break
    quantile = max(below for below, chance in chances.items() if chance > 0.1)
    stated = most_below(size, 1, (once, each), Fraction(1, 10), (10**9,))
    assert quantile <= stated <= quantile + 2.5 * each + 1, "a tenth of what may fail is for the first rounds"


@settings(max_examples=100, deadline=None)
@given(
    vertices=st.integers(1, 10**6),
    once=st.fractions("1/10", 100),
    each=st.fractions("1/10", 100),
    fails=st.fractions("1/1000000", "9/10"),
    rounds=st.integers(1, 600),
)
def test_no_bound_is_above_the_earlier_one(vertices, once, each, fails, rounds):
    """For what may fail of core numbers that are too low alike."""
    scales = (once, each)
    assert most_below(vertices, 1, scales, fails, far(rounds)) <= earlier_bound(vertices, 1, scales, fails, rounds)


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 14), st.floats(0, 1), st.integers(0, 99), st.sampled_from([1, 2, 5]))
def test_no_core_number_is_too_low_by_more_than_the_largest_room(size, density, seed, step):
    """Whatever the noise was: all of a core is left when its first vertex leaves."""
    graph = nx.gnp_random_graph(size, density, seed=seed)
    cores = core_decomposition(graph, 2, vertices=size, step=step, coins=SeededCoins(seed), progress=False)
    low = max(true - cores[vertex] for vertex, true in nx.core_number(graph).items())
    assert low <= max(cores.rooms, default=0)


@pytest.mark.statistical
def test_the_stated_error_holds_and_is_not_far_above_what_a_complete_graph_has():
    """At 80 % in 60 runs: more than 34 failures have a chance below 1e-9 if each has at most 0.2. And were the true
    quantile below the stated error by 1.6, fewer than one in 60 would exceed it: chance 0.8^60 < 2e-6, on fixed coins.
    """
    graph, runs = nx.complete_graph(60), 60
    found = [core_decomposition(graph, 4, coins=SeededCoins(seed), progress=False) for seed in range(runs)]
    off = [(max(abs(core - 59) for _, core in cores), cores.error("0.8")) for cores in found]
    assert binom.sf(33, runs, 0.2) < 1e-9 and sum(seen > stated for seen, stated in off) <= 33
    assert sum(1.6 * seen >= stated for seen, stated in off) >= 1


def test_a_small_graph_is_off_by_no_more_than_there_are_vertices():
    cores = core_decomposition(nx.karate_club_graph(), 1, coins=SeededCoins(1), progress=False)
    assert cores.error("0.95") <= 33 and cores.error("0.999999") <= 33

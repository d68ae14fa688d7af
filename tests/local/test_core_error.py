"""The bound on core numbers: its chances are those of the noise, and complete graphs come near it."""

from fractions import Fraction
from itertools import product
from math import exp

import networkx as nx
import pytest
from scipy.stats import binom

from counterpoint.local.graphs.core_error import most_above, most_below
from counterpoint.local.graphs.cores import core_decomposition
from counterpoint.mechanisms.selecting.comparison_tails import log_chance
from counterpoint.randomness.seeded import SeededCoins


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


def test_more_vertices_rounds_and_certainty_widen_the_bound_and_steps_narrow_it():
    scales, tenth = (Fraction(4), Fraction(4)), Fraction(1, 10)
    plain = most_below(100, 1, scales, tenth, 4)
    assert most_below(1000, 1, scales, tenth, 4) > plain < most_below(100, 1, scales, tenth, 64)
    assert most_below(100, 4, scales, tenth, 4) < plain < most_below(100, 1, scales, tenth, 10**6)
    assert most_below(100, 1, scales, tenth / 10**400, 4) > most_above(100, scales, tenth / 10**400) > 3000


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

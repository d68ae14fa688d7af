"""Random finite mechanisms: two queries, two or three answers, up to five rounds; hundreds here, thousands when long.

Up to three rounds both sides of every comparison are computed in rationals, so that "never" means never and "meets"
means equals; beyond, certified bounds are compared.
"""

import math
from fractions import Fraction
from itertools import product

import pytest
from tests.verify.machines import layered, random_mechanism
from tests.verify.test_exact import brute_force

from counterpoint import ApproxDP, compose
from counterpoint.verify.exact_loss import exact
from counterpoint.verify.finite import FiniteMechanism, Outcome, query_pairs, side_by_side
from counterpoint.verify.grow import grow
from counterpoint.verify.induction import best, renyi

SHAPES = [(1, 1), (2, 1), (1, 2), (2, 2), (3, 1), (3, 2), (4, 1), (2, 3)]
GROWTHS = [Fraction(1), Fraction(5, 4), Fraction(3, 2), Fraction(2), Fraction(3)]


def lanes(few, many):
    """The seeds of the normal lane, and those of the long one."""
    return [pytest.param(range(few), id=str(few)), pytest.param(range(few, many), id=str(many), marks=pytest.mark.long)]


def pair_of(seed):
    """Two mechanisms whose rounds are at most five together; the smaller ones have hidden states."""
    rounds = SHAPES[seed % len(SHAPES)]
    states = 2 if sum(rounds) <= 3 else 1
    return [layered(2 * seed + n, rounds[n], states, answers=2 + (seed // 8 + n) % 2) for n in (0, 1)], rounds


def together(seed):
    """The exact losses of both, and of their concurrent composition over all interleavings."""
    children, rounds = pair_of(seed)
    apart = [exact(child, messages=query_pairs(2), rounds=n) for child, n in zip(children, rounds, strict=True)]
    return apart, exact(side_by_side(*children), messages=query_pairs(4), rounds=sum(rounds), rational=sum(rounds) <= 3)


def response(growth, delta):
    """The two worlds of a randomized response of e^epsilon = growth, as laws on its four outcomes."""
    truth = (1 - delta) * growth / (1 + growth)
    lie = 1 - delta - truth
    return [(delta, 0, truth, lie), (0, delta, lie, truth)]


def optimal(parameters, growth):
    """The optimal bound at one growth, exactly: delta of the product of the worst mechanisms with these parameters."""
    laws = [response(*pair) for pair in parameters]
    ends = list(product(*(list(zip(*law, strict=True)) for law in laws)))
    likely = [(math.prod(p for p, _ in end), math.prod(q for _, q in end)) for end in ends]
    return sum(max(p - growth * q, Fraction(0)) for p, q in likely)


@pytest.mark.parametrize("seeds", lanes(60, 2000))
def test_concurrent_composition_never_exceeds_the_optimal_bound(seeds):
    """Vadhan and Wang 2021, Cor 4; Lyu 2022, Thm 1, in rationals: at the exact (epsilon, delta) of the parts, for
    several epsilons of each.
    """
    for seed in seeds:
        apart, both = together(seed)
        for growths in product(GROWTHS[:4:3], repeat=2):
            exactly = [loss.bounds_at_growth(growth) for loss, growth in zip(apart, growths, strict=True)]
            parameters = [(growth, bounds.upper) for growth, bounds in zip(growths, exactly, strict=True)]
            for growth in GROWTHS:
                found = both.bounds_at_growth(growth)
                assert found.lower <= optimal(parameters, growth)
                assert found.lower == found.upper or not both.worlds.rational


@pytest.mark.parametrize("seeds", lanes(40, 1000))
def test_randomized_responses_meet_the_optimal_bound_exactly(seeds):
    for seed in seeds:
        parameters = [(1 + Fraction(1 + (seed * k) % 7, 4), Fraction((seed * k) % 5, 50)) for k in (1, 3)]
        both = side_by_side(*(_as_machine(*pair) for pair in parameters))
        for growth in GROWTHS:
            bound = optimal(parameters, growth)
            assert exact(both, messages=query_pairs(2), rounds=2).bounds_at_growth(growth) == (bound, bound)


def _as_machine(growth, delta):
    zero, one = (tuple(Outcome(p, answer) for answer, p in enumerate(law) if p) for law in response(growth, delta))
    return FiniteMechanism((((zero, one),),))


def test_the_bound_that_these_are_compared_with_is_the_library_s():
    for epsilons, deltas in (((1, "0.5"), (0, "0.01")), (("0.3", 2), ("0.1", 0))):
        bound = compose.optimal([ApproxDP(e, d) for e, d in zip(epsilons, deltas, strict=True)])
        here = [(Fraction(math.exp(float(e))), Fraction(d)) for e, d in zip(epsilons, deltas, strict=True)]
        for epsilon in (0, 0.4, 1.1):
            assert abs(bound.delta_at(epsilon) - float(optimal(here, Fraction(math.exp(epsilon))))) < 1e-12


@pytest.mark.parametrize("seeds", lanes(40, 2000))
def test_renyi_divergences_of_concurrent_mechanisms_add_up(seeds):
    """Lyu 2022, Thm 2, and more: the supremum is exactly additive (errata, Lyu E7)."""
    for seed in seeds:
        apart, both = together(seed)
        for alpha, bit in product((1.5, 2.0, 8.0), (0, 1)):
            logs = [math.log(best(loss.worlds, renyi(alpha, bit), floats=True).value) for loss in (both, *apart)]
            assert abs(logs[0] - logs[1] - logs[2]) / (alpha - 1) < 1e-12 * max(1, abs(logs[0]))
            assert both.renyi_at(Fraction(alpha)) > logs[0] / (alpha - 1)


@pytest.mark.parametrize("seeds", lanes(300, 4000))
def test_lower_recursion_is_the_best_of_all_deterministic_adversaries(seeds):
    """All strategies of two rounds one by one, and now and then of three."""
    for seed in seeds:
        rounds = 3 if seed % 100 == 99 else 1 + seed % 2
        answers = 2 if rounds == 3 else 2 + seed // 2 % 2
        mechanism = random_mechanism(seed, states=1 + seed % 2, answers=answers)
        growth = Fraction(2 + seed % 7, 2)
        full = grow(mechanism, query_pairs(2), rounds, full=True)
        found = exact(mechanism, messages=query_pairs(2), rounds=rounds).bounds_at_growth(growth)
        assert found.lower == found.upper == max(brute_force(full.root, growth, bit) for bit in (0, 1))

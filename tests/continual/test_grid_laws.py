"""Laws on a grid are never below those of the noises: compared with exact sums of fractions and with enumerations."""

from fractions import Fraction
from itertools import product
from math import exp, prod

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from counterpoint.continual.blt_noise import blt_noise
from counterpoint.continual.digit_trees import DigitTreeNoise
from counterpoint.continual.grid_laws import CARE, Grid, GridLaw

FINE = Grid(1, 1e-14)


def laplace(scale, reach):
    """The chances of discrete Laplace noise from -reach to reach, by their formula."""
    q = exp(-1 / float(scale))
    return {x: (1 - q) / (1 + q) * q ** abs(x) for x in range(-reach, reach + 1)}


def summed(*laws):
    """The chances of a sum of independent numbers, one pair at a time."""
    total = {0: 1.0}
    for law in laws:
        after: dict[int, float] = {}
        for (x, p), (y, q) in product(total.items(), law.items()):
            after[x + y] = after.get(x + y, 0) + p * q
        total = after
    return total


def tail(law, least):
    return sum(p for x, p in law.items() if x >= least)


def law_of(chances):
    low, high = min(chances), max(chances)
    return GridLaw(low, np.array([chances.get(x, 0.0) for x in range(low, high + 1)]), 0.0)


SMALL = st.dictionaries(st.integers(-3, 4), st.floats(0.01, 1), min_size=1).map(
    lambda weights: {x: weight / sum(weights.values()) for x, weight in weights.items()}
)


@settings(deadline=None, max_examples=50)
@given(st.fractions("1/5", 4), st.fractions("1/5", 4), st.integers(1, 5), st.integers(-4, 30))
def test_a_sum_on_a_grid_is_never_likelier_to_be_within_than_the_sum(one, other, width, least):
    exact = tail(summed(laplace(one, 60), laplace(other, 60)), least)
    grid = Grid(width, 1e-12)
    found = grid.laplace(one).plus(grid.laplace(other)).tail(-(-least // width))
    assert CARE * found >= exact - 1e-6, "60 scales out there is nothing to see"
    if width == 1:
        assert found <= exact * 1.0001 + 1e-5, "and on a grid of ones it is the sum itself"


@pytest.mark.parametrize(
    ("scale", "width", "more"), [(3, 1, 1), (3, 1, 2), (3, 4, 1), (3, 4, 2), (3, 4, -2), (1, 7, 0)]
)
def test_chances_of_cells_are_those_of_the_noise(scale, width, more):
    cells = np.arange(-4, 5)
    found = Grid(width, 1e-12).at_or_above(Fraction(scale), cells, more)
    exact = [tail(laplace(scale, 300), (cell - 1) * width + more) for cell in range(-4, 5)]
    assert found == pytest.approx(exact, rel=1e-9)


@given(SMALL, st.integers(1, 5), st.integers(-5, 30))
def test_many_draws_and_the_largest_of_them(chances, draws, cell):
    law = law_of(chances)
    many = summed(*[chances] * draws)
    assert law.times(draws, 0.0).tail(cell) == pytest.approx(tail(many, cell), abs=1e-9)
    assert law.times(draws, 1e-3).tail(cell) >= tail(many, cell) - 1e-9, "what is trimmed goes up"
    largest = 1 - (1 - tail(chances, cell)) ** draws if cell > 0 else 1
    assert law.largest_of(draws).tail(cell) == pytest.approx(largest, abs=1e-9)
    assert law.doubled().tail(cell) == pytest.approx(tail(chances, -(-cell // 2)), abs=1e-9)


@given(SMALL, SMALL, st.integers(-5, 6), st.floats(0, 0.3))
def test_trimmed_larger_and_raised_laws_are_above(chances, others, cell, least):
    law, other = law_of(chances), law_of(others)
    assert law.trimmed(least).tail(cell) >= law.tail(cell) - 1e-12
    assert law.larger(other).tail(cell) >= max(law.tail(cell), other.tail(cell)) - 1e-12
    assert law.at_least(cell).tail(cell) == pytest.approx(1)
    assert law.at_least(cell).tail(cell + 1) == pytest.approx(law.tail(cell + 1), abs=1e-12)


@given(SMALL, SMALL, st.integers(-6, 9))
def test_a_sum_of_numbers_that_move_against_each_other_stays_below_the_stop_loss(ones, others, cell):
    """U grows and V falls with one common uniform number: of all pairs these are the least likely to be large at once.

    And so is every mixture of them with independent ones; the bound holds for those, too.
    """
    bound = law_of(ones).plus(law_of(others)).stop_loss().tail(cell)
    independent = tail(summed(ones, others), cell)
    against = sum(
        max(0.0, min(high, other_high) - max(low, other_low))
        for (x, low, high), (y, other_low, other_high) in product(pieces(ones), pieces(others, falling=True))
        if x + y >= cell
    )
    assert bound >= max(independent, against) - 1e-9


def pieces(chances, falling=False):
    """Each value with the stretch of [0, 1] that leads to it."""
    made, at = [], 0.0
    for x in sorted(chances, reverse=falling):
        made.append((x, at, at + chances[x]))
        at += chances[x]
    return made


@pytest.mark.parametrize("most", [1, 2, 3, 9, 40])
def test_the_worst_law_of_a_tree_is_above_the_noise_at_each_time(most):
    noise = DigitTreeNoise(Fraction(3), 1, None, 1)
    worst = noise.worst_law(most, FINE)
    for time in range(1, most + 1):
        (scale, nodes), _ = noise.parts(time)
        exact = FINE.laplace(scale).times(nodes, 0.0)
        for least in range(1, 60, 7):
            assert CARE * worst.tail(least) >= exact.tail(least)
    (scale, nodes), _ = max((noise.parts(time) for time in range(1, most + 1)), key=lambda parts: parts[0][1])
    assert worst.tail(9) == pytest.approx(FINE.laplace(scale).times(nodes, 0.0).tail(9), rel=1e-6), "the widest one"


def test_the_worst_law_of_a_tree_has_the_noise_of_ended_epochs():
    noise = DigitTreeNoise(Fraction(3), 1, None, 1)
    worst = noise.worst_law(600, FINE)
    (scale, nodes), (total, ended) = noise.parts(600)
    assert ended == 1
    exact = FINE.laplace(scale).times(nodes, 0.0).plus(FINE.laplace(total))
    assert all(CARE * worst.tail(least) >= exact.tail(least) for least in range(1, 90, 8))
    assert worst.tail(30) >= noise.worst_law(511, FINE).tail(30)


@pytest.mark.parametrize("rho", [Fraction(1, 100), Fraction(10**30)])
@pytest.mark.parametrize("width", [1, 3])
def test_the_worst_law_of_gaussian_totals_agrees_with_their_bound(rho, width):
    """At the bound for a chance on either side, the law has half of that chance and hardly more; and it never has less.

    With the huge rho the sub-Gaussian tail is the smaller one.
    """
    noise, grid = blt_noise(rho, 2**10), Grid(width, 1e-14)
    law = noise.worst_law(50, grid)
    for chance in (Fraction(1, 2), Fraction(1, 10), Fraction(1, 1000)):
        bound = noise.bound(1 - chance, 50)
        assert law.tail(1 - -bound // width) <= chance / 2 * Fraction(105, 100) + Fraction(1, 10**13)
        if bound > 2 * width:
            assert law.tail(-(-(bound - 2 * width) // width)) > float(chance) / 2 * 0.99
    assert prod([law.tail(0), law.tail(-5)]) == 1

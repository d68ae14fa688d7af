"""What weighted sums of discrete Gaussians stay within, against their exact law by convolution."""

from fractions import Fraction
from functools import lru_cache

import mpmath
import numpy as np
import pytest

from counterpoint.continual.blt_noise import LIFETIME, blt_noise
from counterpoint.mechanisms.tails import _CARE, WIDE, subgaussian_within, weighted_within
from counterpoint.numbers import precision

CHANCES = [Fraction(chance) for chance in ("0.9", "0.5", "0.317", "0.1", "0.0456", "0.01", "1e-4", "1e-9", "1e-14")]


@lru_cache
def tails(sigma2, weights):
    """P[|sum| >= x] for x = 0, 1, ...; products and sums of numbers above 0, so every tail is exact to 1e-12 of it."""
    reach = 14 * int(sigma2**0.5)
    steps = np.arange(-reach, reach + 1)
    one = np.exp(-(steps.astype(float) ** 2) / (2 * sigma2))
    law = np.ones(1)
    for weight in weights:
        spread = np.zeros(2 * reach * weight + 1)
        spread[::weight] = one / one.sum()
        law = np.convolve(law, spread)
    middle = len(law) // 2
    above = np.cumsum(law[middle:][::-1])[::-1]
    return np.append(np.minimum(2 * above, 1), 0.0)


@pytest.mark.parametrize("sigma2", [1, 9, 156, 157.5, 400, 2500])
@pytest.mark.parametrize("weights", [(1,), (1, 1, 1), (3, 2), (2, 2, 1, 1), (5, 3, 2, 1)])
def test_no_weighted_sum_reaches_its_bound_more_often_than_is_said(sigma2, weights):
    beyond, squares = tails(sigma2, weights), sum(weight**2 for weight in weights)
    for chance in CHANCES:
        bound = weighted_within(Fraction(sigma2), precision(30)(squares), chance)
        reached = int(np.ceil(float(bound.upper) * (1 - 1e-12)))
        assert beyond[min(reached, len(beyond) - 1)] <= float(chance) * (1 + 1e-9)


@pytest.mark.parametrize("sigma2", [156, 400, 2500])
@pytest.mark.parametrize("weights", [(1, 1, 1), (5, 3, 2, 1)])
def test_the_bound_is_at_most_its_shift_beyond_where_the_sum_stays(sigma2, weights):
    beyond, squares = tails(sigma2, weights), sum(weight**2 for weight in weights)
    for chance in CHANCES:
        least = int(np.argmax(beyond <= float(chance)))
        bound = float(weighted_within(Fraction(sigma2), precision(30)(squares), chance).upper)
        assert bound <= 1.015 * least + 20 * squares**0.5, "sigma2 + 4 for sigma2, and the shift"


def test_the_care_covers_more_draws_than_a_counter_ever_makes():
    """The numbers of the proof (theory, Counters), which speaks of at most 2^49 draws."""
    with mpmath.workdps(60):
        narrowest = mpmath.mpf(4 * WIDE) / (WIDE + 4)
        assert narrowest >= mpmath.mpf("3.9")
        assert 2 * sum(mpmath.exp(-2 * mpmath.pi**2 * narrowest * j**2) for j in range(1, 6)) < mpmath.mpf("1e-33")
        beyond = (1 + mpmath.mpf("1e-33")) ** (2**49) / (1 - mpmath.ncdf(-10)) - 1
        assert beyond < mpmath.mpf(_CARE.numerator) / _CARE.denominator
    assert LIFETIME <= 2**49


def test_the_shift_is_needed():
    """Next to a whole number the tail of one draw is that of a normal number half a step before."""
    beyond = tails(400, (1,))
    assert beyond[40] > 1.04 * 0.0455002638963584, "P[|z| >= 40] against 2 Q(40/20)"


def test_a_narrow_draw_has_the_sub_gaussian_bound_alone():
    for sigma2 in (Fraction(1), Fraction(155)):
        for chance in CHANCES:
            bound = weighted_within(sigma2, precision(40)(1), chance).upper
            assert int(np.ceil(float(bound))) - 1 == subgaussian_within(sigma2, chance)


@pytest.mark.parametrize("rho", ["0.5", "1e-6", "1e9", "1e24", "1e30"])
def test_a_counter_states_nearly_the_normal_tail_whatever_its_budget(rho):
    noise = blt_noise(Fraction(rho), 2**10)
    for probability, quantile in (("0.9", 1.6449), ("0.95", 1.96), ("0.999", 3.2906), ("0.999999999", 6.1095)):
        deviation = float((noise.blt.spread(1000) * Fraction(noise.sigma2, 4**noise.bits)).upper) ** 0.5
        assert noise.bound(Fraction(probability), 1000) <= 1.001 * quantile * deviation + 1
        assert noise.bound(Fraction(probability), 1000) >= quantile * deviation - 1


@pytest.mark.parametrize("width", [2, 1000])
def test_coordinates_are_within_the_bound_all_at_once(width):
    """They are independent: the chance that all are is a power of the chance of one."""
    one, many = (blt_noise(Fraction(1, 10**6), 2**10, width=n) for n in (1, width))
    stated = many.bound(Fraction("0.9"), 1000)
    each = Fraction(1 - 0.9 ** (1 / width))
    assert abs(stated - one.bound(1 - each, 1000)) <= 1
    assert stated < many.worst_bound(Fraction("0.9"), 1000)

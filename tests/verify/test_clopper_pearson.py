"""Bounds on a probability from counts, beside an independent implementation."""

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from counterpoint.errors import InvalidParameter
from counterpoint.verify.audits.report import at_most, least_chance, log_factorial, tail


@settings(max_examples=30)
@given(st.integers(1, 10**8), st.floats(0, 1), st.sampled_from([1e-2, 1e-4, 1e-11]))
def test_the_bounds_are_those_of_clopper_and_pearson_and_never_inside_them(n, share, risk):
    k = round(n * share)
    lower = stats.beta.ppf(risk, k, n - k + 1) if k else 0.0
    upper = stats.beta.isf(risk, k + 1, n - k) if k < n else 1.0
    assert lower * (1 - 1e-6) - 1e-12 <= least_chance(k, n, Fraction(risk)) <= lower * (1 + 1e-9)
    assert upper * (1 - 1e-9) <= at_most(k, n, Fraction(risk)) <= upper + (1 - upper) * 1e-4 + 1e-12


@given(st.integers(1, 60), st.data())
def test_the_tail_is_never_below_the_exact_one_and_close_to_it(n, data):
    k = data.draw(st.integers(1, n))
    p = data.draw(st.floats(1e-6, 0.999)) * k / n
    exactly = sum(stats_term(n, j, Fraction(p)) for j in range(k, n + 1))
    assert exactly <= tail(k, n, p) <= exactly * (1 + Fraction(1, 10**7))


def stats_term(n, j, p):
    from math import comb

    return comb(n, j) * p**j * (1 - p) ** (n - j)


@pytest.mark.parametrize("n", [0, 1, 63, 64, 65, 1000, 10**8])
def test_the_logarithm_of_a_factorial_is_enclosed(n):
    from mpmath import mp

    mp.dps = 40
    truth = mp.loggamma(n + 1)
    enclosed = log_factorial(n)
    assert mp.mpf(str(enclosed.lower)) <= truth <= mp.mpf(str(enclosed.upper))
    assert mp.mpf(str(enclosed.upper)) - mp.mpf(str(enclosed.lower)) < 1e-11


@pytest.mark.parametrize("wrong", [(3, 2, "0.1"), (-1, 2, "0.1"), (1, 0, "0.1"), (1, 2, 0), (1, 2, 1), (1.5, 2, "0.1")])
def test_impossible_counts_and_risks_are_refused(wrong):
    with pytest.raises(InvalidParameter):
        least_chance(*wrong)

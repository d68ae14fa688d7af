"""The normal tail, its density and their quotient: enclosed at every size and sign, with as many digits as asked."""

from fractions import Fraction

import mpmath
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from counterpoint.numbers import mills_ratio, normal_density, normal_tail, precision

POINTS = st.builds(
    lambda sign, part, size: sign * part * Fraction(10) ** size,
    st.sampled_from([1, -1]),
    st.fractions("0.1", 1, max_denominator=97),  # long periods: no point is a short decimal
    st.integers(-30, 4),
)


def encloses(interval, value: mpmath.mpf) -> bool:
    return mpmath.mpf(str(interval.lower)) <= value <= mpmath.mpf(str(interval.upper))


@settings(deadline=None)
@given(POINTS, st.sampled_from([12, 30, 62]))
def test_tail_density_and_their_quotient_are_enclosed(x, digits):
    p = precision(digits)
    with mpmath.workdps(150):
        point = mpmath.mpf(x.numerator) / x.denominator
        tail, density = mpmath.erfc(point / mpmath.sqrt(2)) / 2, mpmath.npdf(point)
        assert encloses(normal_tail(p(x)), tail)
        assert encloses(normal_density(p(x)), density)
        if x >= 0:
            ratio = mills_ratio(p(x))
            assert encloses(ratio, tail / density) and ratio.agrees_to(digits - 3)
        if abs(x) <= 10:
            assert normal_tail(p(x)).agrees_to(digits - 5) and normal_density(p(x)).agrees_to(digits - 5)


@pytest.mark.parametrize("digits", [15, 60])
def test_the_two_ways_of_computing_meet_where_they_change_over(digits):
    change = (2 * (digits + 12)) ** 0.5
    p = precision(digits)
    with mpmath.workdps(150):
        for x in (Fraction(change * 0.999), Fraction(change * 1.001)):
            point = mpmath.mpf(x.numerator) / x.denominator
            tail = normal_tail(p(x))
            assert encloses(tail, mpmath.erfc(point / mpmath.sqrt(2)) / 2) and tail.agrees_to(digits - 5)


def test_a_wide_interval_encloses_the_tail_at_both_of_its_ends():
    p = precision(20)
    for low, high in ((-2, -1), (-1, 1), (0, 2), (1, 8), (5, 50)):
        wide = normal_tail(p.between(low, high))
        assert wide.lower <= normal_tail(p(high)).upper and wide.upper >= normal_tail(p(low)).lower
        if low >= 0:
            ratio = mills_ratio(p.between(low, high))
            assert ratio.lower <= mills_ratio(p(high)).upper and ratio.upper >= mills_ratio(p(low)).lower

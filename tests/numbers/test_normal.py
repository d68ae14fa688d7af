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
@pytest.mark.parametrize("x", ["1e5", "1e8", "1e15"])
def test_far_out_the_tail_has_as_many_digits_as_elsewhere(x, digits):
    point = Fraction(x)
    with mpmath.workdps(150):
        below, above = mpmath.mpf(x) / (1 + mpmath.mpf(x) ** 2), 1 / mpmath.mpf(x)
        ratio = mills_ratio(precision(digits)(point))
        assert mpmath.mpf(str(ratio.lower)) < above and mpmath.mpf(str(ratio.upper)) > below
        assert ratio.agrees_to(digits - 3)
    if point < 10**8:
        tail, density = normal_tail(precision(digits)(point)), normal_density(precision(digits)(point))
        product = density * ratio
        assert tail.agrees_to(digits - 3) and tail.lower <= product.upper and product.lower <= tail.upper


def test_where_a_tail_is_smaller_than_every_decimal_its_upper_bound_is_above_zero():
    p = precision(20)
    for x in (p(10**10), p(10**400)):
        assert normal_tail(x).lower == normal_density(x).lower == 0 < min(normal_tail(x).upper, normal_density(x).upper)
        assert normal_tail(-x).lower < 1 <= normal_tail(-x).upper and normal_tail(-x).agrees_to(18)
    assert mills_ratio(p(10**400)).agrees_to(17)


def test_a_wide_interval_encloses_the_tail_at_both_of_its_ends():
    p = precision(20)
    for low, high in ((-2, -1), (-1, 1), (0, 2), (1, 8), (5, 50)):
        wide = normal_tail(p.between(low, high))
        assert wide.lower <= normal_tail(p(high)).upper and wide.upper >= normal_tail(p(low)).lower
        if low >= 0:
            ratio = mills_ratio(p.between(low, high))
            assert ratio.lower <= mills_ratio(p(high)).upper and ratio.upper >= mills_ratio(p(low)).lower

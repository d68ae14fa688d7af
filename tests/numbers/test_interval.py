"""Enclosures hold the true value, and get as narrow as was asked."""

from decimal import Decimal
from fractions import Fraction

import mpmath
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from counterpoint.errors import InvalidParameter
from counterpoint.numbers import Interval, certify, normal_tail, precision

values = st.fractions(min_value=-50, max_value=50, max_denominator=10**6)
positives = st.fractions(min_value=Fraction(1, 10**6), max_value=10**6, max_denominator=10**6)


def mp(value: Fraction) -> mpmath.mpf:
    return mpmath.mpf(value.numerator) / value.denominator


def holds(enclosure: Interval, true: mpmath.mpf) -> bool:
    with mpmath.workdps(120):
        own_error = abs(true) * mpmath.mpf(10) ** -100  # mpmath works with 120 digits here, and rounds
        lower, upper = mpmath.mpf(str(enclosure.lower)), mpmath.mpf(str(enclosure.upper))
        return bool(lower <= true + own_error and true - own_error <= upper)


@given(values, values)
def test_arithmetic_encloses_the_exact_rational(a, b):
    p = precision(8)
    for enclosure, true in [
        (p(a) + b, a + b),
        (p(a) - b, a - b),
        (a - p(b), a - b),
        (p(a) * b, a * b),
        (-p(a), -a),
    ]:
        assert Fraction(enclosure.lower) <= true <= Fraction(enclosure.upper)
    if b != 0:
        assert Fraction((p(a) / b).lower) <= a / b <= Fraction((p(a) / b).upper)


@given(values, values)
def test_arithmetic_encloses_every_point_of_wide_intervals(a, b):
    p = precision(8)
    wide = p.between(min(p(a).lower, p(b).lower), max(p(a).upper, p(b).upper))
    for x in (a, b, (a + b) / 2):
        assert Fraction((wide * wide).lower) <= x * x <= Fraction((wide * wide).upper)
        assert Fraction((wide - wide).lower) <= 0 <= Fraction((wide - wide).upper)


@settings(max_examples=60)
@given(values, positives)
def test_functions_enclose_the_true_value_to_the_last_digits(x, y):
    with mpmath.workdps(120):
        p = precision(25)
        for enclosure, true in [
            (p(x).exp(), mpmath.exp(mp(x))),
            (p(x).expm1(), mpmath.expm1(mp(x))),
            (p(y).log(), mpmath.log(mp(y))),
            (p(y).log1p(), mpmath.log1p(mp(y))),
            (p(y).sqrt(), mpmath.sqrt(mp(y))),
            (p(y) ** x, mp(y) ** mp(x)),
            (p(y) ** 7, mp(y) ** 7),
        ]:
            assert holds(enclosure, true)
            assert enclosure.agrees_to(18) or true == 0


@pytest.mark.parametrize("digits", [5, 25, 60])
@pytest.mark.parametrize("size", ["1e-9", "1e-28", "1e-62", "1e-700"])
@pytest.mark.parametrize("sign", [-1, 1])
def test_near_zero_nothing_cancels_however_near(digits, size, sign):
    x = sign * Fraction(size)
    with mpmath.workdps(2200):
        for enclosure, true in [
            (precision(digits)(x).expm1(), mpmath.expm1(mp(x))),
            (precision(digits)(x).log1p(), mpmath.log1p(mp(x))),
        ]:
            assert holds(enclosure, true) and enclosure.agrees_to(digits - 3)


def test_exactly_known_values_stay_exact():
    p = precision(10)
    assert p(0).exp().lower == p(0).exp().upper == 1
    assert p(1).log().lower == p(1).log().upper == 0
    assert p(0).expm1().lower == p(0).expm1().upper == 0
    assert p(0).log1p().lower == p(0).log1p().upper == 0
    half = normal_tail(p(0))
    assert half.lower == half.upper == Fraction(1, 2)


def test_a_bound_that_holds_everywhere_is_not_widened():
    p = precision(5)
    assert p(-20).expm1().lower == -1 and p(Fraction(1, 10**9)).log1p().upper == Decimal("1e-9")


def test_dividing_by_what_may_be_zero_is_refused():
    p = precision(10)
    with pytest.raises(ZeroDivisionError):
        p(1) / p.between(-1, 1)
    with pytest.raises(InvalidParameter):
        p(0).log()
    with pytest.raises(InvalidParameter):
        p(-1).log1p()


@pytest.mark.parametrize("x", ["-30", "-1", "-1e-20", "1e-20", "0.5", "2.999", "3", "3.001", "6", "37", "300", "3000"])
def test_the_normal_tail_is_enclosed_from_the_middle_to_far_out(x):
    with mpmath.workdps(120):
        tail = normal_tail(precision(30)(Fraction(x)))
        assert holds(tail, mpmath.erfc(mpmath.mpf(x) / mpmath.sqrt(2)) / 2)
        assert tail.agrees_to(24)


def test_certify_buys_digits_until_cancellation_is_paid_for():
    tiny = Fraction(1, 10**60)
    result = certify(lambda p: (p(1) + tiny).log() - tiny + p(tiny) * tiny / 2, digits=10)
    assert result.agrees_to(10) and result.lower > 0
    vague = certify(lambda p: p.between(0, 1), digits=10, most=50)
    assert not vague.agrees_to(10)

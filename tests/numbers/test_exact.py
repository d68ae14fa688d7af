"""Numbers are read as they were typed and rounded only against the analyst."""

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from counterpoint.errors import CounterpointError, InvalidParameter
from counterpoint.numbers import Exact, exact, float_down, float_up, format_number
from counterpoint.numbers.exact import at_least, bounded_up, positive, probability, whole

finite_floats = st.floats(allow_nan=False, allow_infinity=False)


@given(st.decimals(allow_nan=False, allow_infinity=False, min_value=-(10**9), max_value=10**9, places=12))
def test_a_number_means_the_same_however_it_is_typed(number):
    value = Fraction(number)
    assert exact(number) == exact(str(number)) == exact(value) == value


@pytest.mark.parametrize("text", ["7", "+7", "-7", "7.", ".7", "0.70", "7e2", "7E-2", "7.5e+1", "7/3", "-7/3", "7 / 3"])
def test_these_spellings_of_numbers_are_read(text):
    assert exact(text) == (Fraction(text.replace(" ", "")) if "/" in text else Fraction(Decimal(text)))


@given(finite_floats)
def test_a_float_is_the_decimal_that_it_prints_as(number):
    assert exact(number) == Fraction(Decimal(repr(number)))
    assert exact(np.float64(number)) == exact(number)


def test_ten_tenths_are_one_and_a_tiny_part_more_is_more():
    assert sum(exact(0.1) for _ in range(10)) == 1
    assert exact(1) + exact("1e-17") > 1
    assert exact(1e-200) ** 2 > 0
    assert exact("1/3") * 3 == 1


@pytest.mark.parametrize("given", [np.array(0.5), np.array([1, 2]), np.array([]), np.ma.masked], ids=repr)
def test_arrays_are_not_numbers(given):
    with pytest.raises(InvalidParameter):
        exact(given)


def test_numpy_scalars_are_numbers():
    assert exact(np.float32(0.1)) == Fraction(1, 10)
    assert exact(np.int64(7)) == 7
    assert exact(np.uint8(7)) == 7


@pytest.mark.parametrize(
    "nonsense",
    [
        True,
        np.True_,
        None,
        "abc",
        "",
        "1/0",
        "1/",
        [],
        {},
        b"1",
        1j,
        object(),
        math.nan,
        math.inf,
        -math.inf,
        "nan",
        "inf",
        "1e999999999",
        "1e-999999999",
        "9" * 5000,
        "0." + "1" * 401,
        10**500,
        Decimal("sNaN"),
        "1_0",
        "1_0/3",
        "1/1_0",
        "\u0661",
        "\u0661/\u0663",
        "0.5\n",
        " 0.5",
        "1/3\n",
        "\uff11",
        ".",
        "1e",
    ],
)
def test_what_is_not_a_number_is_refused_at_once(nonsense):
    with pytest.raises(InvalidParameter, match="epsilon"):
        exact(nonsense, "epsilon")


def test_range_checks_name_the_parameter_and_the_limit():
    with pytest.raises(InvalidParameter, match="epsilon must be at least 0, but -1 was given"):
        at_least(-1, 0, "epsilon")
    with pytest.raises(InvalidParameter, match="scale must be above 0"):
        positive(0, "scale")
    with pytest.raises(InvalidParameter, match="delta must be between 0 and 1"):
        probability("1.0000001", "delta")
    with pytest.raises(InvalidParameter, match="asks must be a whole number"):
        whole(1.5, 1, "asks")
    assert issubclass(InvalidParameter, CounterpointError) and issubclass(InvalidParameter, ValueError)


@given(st.fractions(min_value=-(10**12), max_value=10**12, max_denominator=10**15))
def test_floats_leave_the_exact_world_in_the_stated_direction(value):
    assert exact(float_down(value)) <= value <= exact(float_up(value))
    assert float_up(value) <= math.nextafter(float(value), math.inf)
    assert float_down(value) >= math.nextafter(float(value), -math.inf)


def test_rounding_up_keeps_what_a_person_typed():
    assert float_up(Fraction(3, 10)) == 0.3 and float_down(Fraction(3, 10)) == 0.3
    assert float_up(Fraction(10**400)) == math.inf
    assert float_up(Fraction(1, 10**400)) > 0
    assert float_down(Fraction(10**400)) == math.nextafter(math.inf, 0)


@given(
    st.fractions(-1, 1, max_denominator=999) | st.decimals(-100, 100, places=9).map(Fraction),
    st.integers(0, 20),
)
def test_short_numbers_are_spelled_exactly_and_read_back(value, places):
    assert exact(format_number(value)) == value
    tiny = Fraction(value.numerator, 10**places)
    assert exact(format_number(tiny)) == tiny


@given(st.fractions())
def test_long_numbers_are_spelled_about_right_and_say_so(value):
    text = format_number(value)
    about = exact(text.removeprefix("~"))
    assert about == value or (text.startswith("~") and abs(about - value) <= abs(value) / 10**5)
    assert len(text) < 25


@given(st.integers(min_value=1, max_value=10**30), st.integers(min_value=1, max_value=3**3000))
def test_bounded_sums_never_shrink(above, below):
    value = Fraction(above, below)
    bounded = bounded_up(value)
    assert value <= bounded <= value + Fraction(1, 10**400)
    assert bounded.denominator <= 10**400 and (bounded == value or below > 10**400)


@given(st.fractions(min_value=-(10**6), max_value=10**6))
def test_an_exact_number_is_a_fraction_that_is_written_so_that_it_can_be_read_back(value):
    number = Exact(value)
    assert number == value and hash(number) == hash(value) and exact(str(number)) == value
    assert "Fraction" not in repr(number) and repr(number) == format_number(value)
    assert type(number + 1) is Fraction, "what is computed from it is a plain fraction"

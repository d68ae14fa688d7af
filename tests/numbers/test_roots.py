"""Roots that are shown to people: the largest number of 12 digits that fits, whatever the search began with."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from counterpoint.measures.divergences import pure_near
from counterpoint.measures.pure import largest_pure_below, pure_below, renyi_of
from counterpoint.numbers.exact import LARGEST
from counterpoint.numbers.rounding import crossing, largest_short, root_below, short

POSITIVE = st.builds(lambda digits, power: digits * Fraction(10) ** power, st.integers(1, 10**15), st.integers(-40, 20))
ORDERS = POSITIVE.map(lambda above: 1 + min(max(above, Fraction(1, 10**9)), Fraction(10**6)))
LEFT = POSITIVE.map(lambda left: min(max(left, Fraction(1, 10**30)), Fraction(10**6)))


def unit_of(number: Fraction) -> Fraction:
    """One in the twelfth digit."""
    place = Fraction(1)
    while number < place * 10**11:
        place /= 10
    while number >= place * 10**12:
        place *= 10
    return place


def pure_below_plainly(alpha: Fraction, most: Fraction) -> Fraction:
    """The same by a bracket and false position, as it was computed before there was a guess."""
    low = high = max(short(most), root_below(2 * most / alpha))
    while renyi_of(high, alpha) <= most:
        low, high = high, short(high * Fraction(11, 10))
    return crossing(lambda epsilon: renyi_of(epsilon, alpha) - most, low, high)


@given(POSITIVE, POSITIVE)
def test_a_guess_decides_how_soon_the_largest_number_is_found_and_not_which(limit, near):
    found = largest_short(lambda x: x <= limit, near)
    unit = unit_of(found)
    assert found <= limit < found + unit and (found / unit).denominator == 1


@pytest.mark.parametrize("limit", ["1", "0.9999999999995", "0.99999999999999", "1.000000000005", "1e-30", "1e30"])
@pytest.mark.parametrize("near", ["1", "0.999999999999", "1.00000000001", "1e-60", "1e60"])
def test_powers_of_ten_are_no_trap(limit, near):
    exact = Fraction(limit)
    found = largest_short(lambda x: x <= exact, Fraction(near))
    assert found <= exact < found + unit_of(found)


@given(ORDERS, LEFT)
def test_the_largest_epsilon_below_a_renyi_loss_fits_and_the_next_one_does_not(alpha, most):
    epsilon = pure_below(alpha, most)
    assert renyi_of(epsilon, alpha) <= most < renyi_of(epsilon + unit_of(epsilon), alpha)
    assert abs(epsilon - pure_below_plainly(alpha, most)) <= unit_of(epsilon)


@given(ORDERS, LEFT)
def test_the_guess_is_near(alpha, most):
    assert abs(pure_near(most, alpha) - pure_below(alpha, most)) <= 2 * unit_of(pure_below(alpha, most))


@given(st.lists(st.tuples(ORDERS, st.one_of(LEFT, st.just(Fraction(0)), st.just(Fraction(-1)))), max_size=5))
def test_of_several_orders_the_largest_epsilon_counts(rooms):
    assert largest_pure_below(rooms) == max((pure_below(*room) for room in rooms), default=0)


def test_beyond_floats_the_search_only_takes_longer():
    most = Fraction(7 * 10**350, 3)
    epsilon = pure_below(Fraction(2), most)
    assert renyi_of(epsilon, Fraction(2)) <= most < renyi_of(epsilon + unit_of(epsilon), Fraction(2))
    assert pure_below(Fraction(2), 3 * Fraction(LARGEST)) == LARGEST, "no parameter is larger"

"""Counting against the definition: the sum over all subsets, in 60-digit arithmetic."""

from fractions import Fraction
from itertools import product

import mpmath
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from counterpoint.composition.fixed.optimal import Counting, deal
from counterpoint.composition.fixed.totals import crossing

mpmath.mp.dps = 60


def brute_force(epsilons, epsilon):
    """d0 of theory, Fixed parameters, subset by subset."""
    exact = [mpmath.mpf(e.numerator) / e.denominator for e in epsilons]
    target = mpmath.e ** (mpmath.mpf(epsilon.numerator) / epsilon.denominator)
    total = mpmath.mpf(0)
    for outcome in product((0, 1), repeat=len(exact)):
        told = mpmath.e ** sum((e for e, truth in zip(exact, outcome, strict=True) if truth), mpmath.mpf(0))
        lied = mpmath.e ** sum((e for e, truth in zip(exact, outcome, strict=True) if not truth), mpmath.mpf(0))
        total += max(told - target * lied, 0)
    return total / mpmath.fprod(1 + mpmath.e**e for e in exact)


def mpf(value):
    return mpmath.mpf(str(value))


epsilons = st.fractions(min_value=Fraction(1, 1000), max_value=4, max_denominator=1000)


@given(st.lists(epsilons, min_size=1, max_size=7), st.fractions(min_value=0, max_value=1, max_denominator=97))
@settings(max_examples=60, deadline=None)
def test_counting_encloses_the_sum_over_all_subsets(values, share):
    epsilon = share * sum(values)
    counting = Counting.of(tuple((value, values.count(value)) for value in set(values)))
    expected = brute_force(values, epsilon)
    room = mpf("1e-50")
    assert mpf(counting.delta_below(epsilon)) <= expected + room
    assert mpf(counting.delta_above(epsilon)) >= expected - room
    assert counting.delta_bounds(epsilon).agrees_to(16) or epsilon == sum(values)


@given(st.lists(st.tuples(epsilons, st.integers(1, 6)), min_size=1, max_size=6, unique_by=lambda group: group[0]))
@settings(max_examples=30, deadline=None)
def test_how_the_groups_are_dealt_does_not_matter(groups):
    epsilon = sum(value * copies for value, copies in groups) / 3
    dealt = Counting.of(tuple(groups))
    again = Counting(dealt.groups, (dealt.halves[1], dealt.halves[0]))
    one, other = dealt.delta_bounds(epsilon), again.delta_bounds(epsilon)
    assert one.lower <= other.upper
    assert other.lower <= one.upper
    assert one.agrees_to(16)


def test_a_delta_of_1e_300_is_as_accurate_as_any_other():
    # below the topmost loss a single outcome is left: delta = p^n (1 - e^(eps - n/10))
    counting = Counting.of(((Fraction(1, 10), 300),))
    gap = Fraction(1, 10**212)
    truth = (mpmath.mpf(1) / (1 + mpmath.e ** mpmath.mpf("-0.1"))) ** 300
    expected = truth * -mpmath.expm1(-(mpmath.mpf(10) ** -212))
    assert expected < mpmath.mpf("1e-295")
    assert mpf(counting.delta_above(30 - gap)) == pytest.approx(expected, rel=1e-14)
    assert mpf(counting.delta_below(30 - gap)) == pytest.approx(expected, rel=1e-14)


def test_few_different_parameters_are_counted_and_many_are_not():
    few = tuple((Fraction(number, 1009), 75) for number in (17, 64, 211, 402))
    assert deal(few) is not None
    assert deal(tuple((Fraction(1, number), 1) for number in range(2, 26))) is not None
    assert deal(tuple((Fraction(1, number), 1) for number in range(2, 102))) is None
    assert deal(((Fraction(1, 1000), 10**5),)) is None


def test_huge_epsilons_do_not_overflow():
    counting = Counting.of(((Fraction(800), 3), (Fraction(1, 10), 2)))
    assert float(counting.delta_above(Fraction(2399))) == pytest.approx(1, rel=0.4)
    assert counting.delta_above(Fraction(2400) + Fraction(1, 5)) == 0


def test_a_crossing_proves_both_of_its_ends():
    counting = Counting.of(((Fraction(1, 7), 20), (Fraction(1, 3), 5)))
    delta = Fraction(1, 10**4)
    most = Fraction(20, 7) + Fraction(5, 3)
    low, high = crossing(counting.delta_above, delta, Fraction(0), most, most / 2)
    assert counting.delta_above(low) > delta >= Fraction(counting.delta_above(high))
    assert high - low < high / 10**12


@pytest.mark.parametrize("delta", [Fraction(99, 100), Fraction(1)])
def test_a_bound_that_holds_at_once_crosses_at_the_start(delta):
    counting = Counting.of(((Fraction(1, 7), 2),))
    assert crossing(counting.delta_above, delta, Fraction(0), Fraction(2, 7), Fraction(1, 7)) == (0, 0)

"""Tails of weighted sums of discrete Laplace noises, against their exact laws by convolution."""

from collections import Counter as Multiset
from fractions import Fraction
from functools import lru_cache
from math import ceil

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from counterpoint.continual.digit_trees import DigitTreeNoise
from counterpoint.continual.tree_noise import TreeNoise
from counterpoint.mechanisms.laplace_sums import bound_of_sum, deviation_of_sum, squares, sum_within

FAILS = [Fraction(chance) for chance in ("0.999", "0.5", "0.1", "0.05", "1e-3", "1e-6", "1e-10", "1e-14")]
SCALES = [Fraction(1, 20), Fraction(1, 2), Fraction(1), Fraction(7, 2), Fraction(9)]
terms = st.lists(
    st.tuples(st.sampled_from(SCALES), st.integers(1, 6).map(lambda n: Fraction(n, 4)), st.integers(1, 6)),
    min_size=1,
    max_size=3,
).map(tuple)


@lru_cache
def tails(terms, finest=4, reach=12_000):
    """P[|sum| >= j/finest] for j = 0, 1, ...: sums of products of what is not negative, exact to 1e-11 of each."""
    law = np.ones(1)
    for scale, weight, count in terms:
        step = int(weight * finest)
        size = int(40 * max(1, scale))
        one = np.exp(-np.abs(np.arange(-size, size + 1)) / float(scale))
        spread = np.zeros(2 * size * step + 1)
        spread[::step] = one / one.sum()
        for _ in range(count):
            law = np.convolve(law, spread)
            law = law[max(0, len(law) // 2 - reach) : len(law) // 2 + reach + 1]
    above = np.cumsum(law[len(law) // 2 :][::-1])[::-1]
    return np.append(np.minimum(2 * above, 1), 0.0)


def chance_of(terms, x, finest=4):
    found = tails(terms, finest)
    return found[min(ceil(x * finest), len(found) - 1)]


@settings(max_examples=60, deadline=None)
@given(terms, st.sampled_from(FAILS), st.sampled_from([Fraction(0), Fraction(1, 2), Fraction(1)]))
def test_no_sum_gets_beyond_its_bound_more_often_than_is_said_and_the_bound_is_near(terms, fails, gap):
    bound = sum_within(terms, fails, gap)
    assert chance_of(terms, bound + gap) <= float(fails) * (1 + 1e-9)
    nearer = Fraction(97, 100) * bound - 1
    assert nearer <= 0 or chance_of(terms, nearer + gap) > float(fails)


@settings(max_examples=40, deadline=None)
@given(terms, st.integers(1, 40), st.sampled_from([0.999999, 0.99, 0.9]))
def test_it_holds_for_a_chance_that_is_just_below_a_tail(terms, place, part):
    """There the smoothed sum would fall short of a point that the sum does reach."""
    chance = tails(terms)[min(place, len(tails(terms)) - 2)]
    if chance < 1e-13:
        return
    fails = Fraction(chance * part)
    for gap in (Fraction(0), Fraction(1, 4), Fraction(1, 2), Fraction(3, 4), Fraction(1)):
        assert chance_of(terms, sum_within(terms, fails, gap) + gap) <= float(fails) * (1 + 1e-9)


@pytest.mark.parametrize("weight", [Fraction(1), Fraction(3, 4), Fraction(-5, 4)])
@pytest.mark.parametrize("scale", [Fraction(1), Fraction(9)])
def test_one_draw_reaches_its_multiples_as_often_as_its_law_says(scale, weight):
    alone = ((scale, abs(weight), 1),)
    for multiple in range(1, 30):
        reached = abs(weight) * multiple
        fails = Fraction(chance_of(alone, reached) * 0.9999999)
        assert sum_within([(scale, weight, 1)], fails, Fraction(0)) > reached - 1
        assert chance_of(alone, sum_within([(scale, weight, 1)], fails, Fraction(0))) <= float(fails)


def test_it_is_below_chernoffs_bound_and_above_the_deviation():
    terms = [(Fraction(30), Fraction(1), 20), (Fraction(30), Fraction(1, 10), 300), (Fraction(60), Fraction(1, 2), 1)]
    deviation = deviation_of_sum(squares(terms))
    for fails, normal in ((Fraction(1, 10), 1.6449), (Fraction(1, 1000), 3.2905)):
        found = sum_within(terms, fails, Fraction(1))
        assert 0.98 * normal * deviation <= found <= bound_of_sum(squares(terms), 1 - fails) / 1.1


@pytest.mark.parametrize("power", [6, 60, 99, 101, 140, 400])
def test_wide_noise_grows_with_its_scale(power):
    def wide(scale):
        return [(scale, Fraction(1), 7), (scale / 2, Fraction(1, 3), 5)]

    scale, small = Fraction(10) ** power, Fraction(10**5)
    for fails in (Fraction(1, 10), Fraction(1, 10**9)):
        ratio = Fraction(sum_within(wide(scale), fails, Fraction(1))) / scale
        assert float(ratio) == pytest.approx(sum_within(wide(small), fails, Fraction(1)) / 10**5, rel=2e-4)


@pytest.mark.parametrize("power", [-3, -60, -99, -101, -400])
def test_narrow_noise_is_nothing(power):
    assert sum_within([(Fraction(10) ** power, Fraction(1), 7)], Fraction(1, 10**9), Fraction(1)) == 0
    assert sum_within([(Fraction(10) ** power, Fraction(1), 7)], Fraction(1, 10**9), Fraction(0)) == 1


def test_a_chance_too_small_for_a_float_is_still_kept():
    """P[|z| >= n] is 2 q^n/(1 + q) for one draw, q = e^(-1/scale)."""
    found = sum_within([(Fraction(1), Fraction(1), 1)], Fraction(1, 10**1000), Fraction(1))
    assert 2302.58 < found < 2500


def test_no_noise_has_no_error_and_a_bound_that_may_always_fail_is_none():
    assert (
        sum_within([], Fraction(1, 10), Fraction(0))
        == 0
        == sum_within([(Fraction(9), Fraction(0), 5)], FAILS[1], FAILS[0])
    )
    assert sum_within([(Fraction(9), Fraction(1), 5)], Fraction(1), Fraction(1)) == 0


# ------------------------------------------------------------------------------------------------------- of counters


def rounded_law(terms):
    """The exact law of the weighted sum, rounded; over the few values that draws of small scales have."""
    law = {0: 1.0}
    for scale, weight, count in terms:
        step, size = int(weight * 2**24), 6
        one = np.exp(-np.abs(np.arange(-size, size + 1)) / float(scale))
        one /= one.sum()
        for _ in range(count):
            after = Multiset()
            for at, chance in law.items():
                for place, more in enumerate(one):
                    after[at + step * (place - size)] += chance * more
            law = {at: chance for at, chance in after.items() if chance > 1e-16}
    found = Multiset()
    for at, chance in law.items():
        found[abs(at + (1 << 23) >> 24)] += chance
    return found


@pytest.mark.parametrize("t", [1, 2, 3])
def test_the_error_of_a_pure_counter_holds_for_the_exact_law_of_its_rounded_answers(t):
    """Chances just below the tails of that law, where a bound that forgets the rounding is one too small."""
    noise = TreeNoise(Fraction(6), 1, 3, width=1)
    law = rounded_law(noise.terms(t))
    for m in (0, 1, 2):
        tail = sum(chance for value, chance in law.items() if value > m)
        for part in (0.9999, 0.6, 0.3):
            stated = noise.bound(1 - Fraction(tail * part), t)
            beyond = sum(chance for value, chance in law.items() if value > stated)
            assert beyond <= tail * part * (1 + 1e-9)


def test_a_window_has_two_roundings_and_one_at_the_start():
    noise = TreeNoise(Fraction(1), 1, 64, width=1)
    for earlier, t in ((0, 20), (20, 40)):
        terms, roundings = noise.terms_between(earlier, t), 2 if earlier else 1
        gap = 1 - Fraction(roundings, 2)
        assert noise.bound_between(Fraction("0.9"), earlier, t) == sum_within(terms, Fraction("0.1"), gap)


@pytest.mark.parametrize("kind", [TreeNoise, DigitTreeNoise])
def test_independent_coordinates_are_within_the_bound_all_at_once(kind):
    one, many = (kind(Fraction(1, 1000), 1, 64, width=n) for n in (1, 50))
    each = Fraction(1 - 0.9 ** (1 / 50))
    assert many.bound(Fraction("0.9"), 60) == pytest.approx(one.bound(1 - each, 60), rel=1e-4)
    assert many.bound(Fraction("0.9"), 60) > 1.5 * one.bound(Fraction("0.9"), 60)

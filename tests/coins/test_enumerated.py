"""Enumeration gives every outcome with its exact probability, or says how far off it may be."""

import math
from collections import Counter
from fractions import Fraction

import mpmath
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chi2

from counterpoint.coins import enumerated
from counterpoint.coins.enumerated import EnumeratedCoins
from counterpoint.coins.secure import SeededCoins
from counterpoint.encoding import Tagged, Value
from counterpoint.errors import InvalidParameter


def two_dice(coins):
    return coins.integer(6) + coins.integer(6)


def until_tails(coins):
    tosses = 0
    while tosses < 4 and coins.bernoulli(Fraction(1, 3)):
        tosses += 1
    return tosses


def nested(n, coins):
    return coins.call(two_dice) if n == 0 else coins.call(nested, n - 1) + coins.integer(2)


class Owner(Tagged, Value, frozen=True):
    n: int
    runs = 0

    def roll(self, coins):
        type(self).runs += 1
        return coins.integer(self.n)


def test_rational_laws_are_exact():
    law = dict(EnumeratedCoins().law(two_dice))
    assert law[5] == Fraction(6, 36) and law[0] == Fraction(1, 36) and sum(law.values()) == 1
    result = EnumeratedCoins().law(until_tails)
    assert dict(result)[4] == Fraction(1, 81) and result.error == 0 and result.cut == 0


@given(st.fractions(0, 1, max_denominator=50))
def test_a_bernoulli_has_its_probability_and_impossible_outcomes_do_not_appear(p):
    law = dict(EnumeratedCoins().law(lambda coins: coins.bernoulli(p)))
    assert law.get(True, 0) == p and law.get(False, 0) == 1 - p and 0 not in law.values()


def test_logistic_at_zero_is_exact_and_otherwise_within_its_stated_error():
    assert dict(EnumeratedCoins().law(lambda c: c.logistic(0))) == {
        True: Fraction(1, 2),
        False: Fraction(1, 2),
    }
    law = EnumeratedCoins().law(lambda c: c.logistic("0.7"))
    with mpmath.workdps(80):
        true = 1 / (1 + mpmath.exp(-mpmath.mpf("0.7")))
        stated = dict(law)[True]
        off = abs(mpmath.mpf(stated.numerator) / stated.denominator - true)
        assert off <= mpmath.mpf(law.error.numerator) / law.error.denominator < mpmath.mpf(10) ** -50


@pytest.mark.parametrize("scale", [Fraction(1, 8), Fraction(1), Fraction(7, 2)])
def test_laplace_tails_are_cut_and_dropped_never_lumped(scale):
    cut = Fraction(1, 10**6)
    law = EnumeratedCoins(cut).law(lambda c: c.discrete_laplace(scale))
    assert 0 < law.cut <= cut + law.error
    with mpmath.workdps(80):
        q = mpmath.exp(-mpmath.mpf(scale.denominator) / scale.numerator)
        for z, p in law:
            true = (1 - q) / (1 + q) * q ** abs(z)
            assert abs(mpmath.mpf(p.numerator) / p.denominator - true) <= mpmath.mpf(10) ** -50
    values = [z for z, _ in law]
    assert sorted(values) == list(range(-max(values), max(values) + 1))


@pytest.mark.parametrize("sigma2", [Fraction(1, 4), Fraction(1), Fraction(25)])
def test_gaussian_law_is_exact_up_to_its_error(sigma2):
    law = EnumeratedCoins("1e-8").law(lambda c: c.discrete_gaussian(sigma2))
    assert 0 <= law.cut <= Fraction(1, 10**8) + law.error
    with mpmath.workdps(80):
        s2 = mpmath.mpf(sigma2.numerator) / sigma2.denominator
        total = mpmath.nsum(lambda z: mpmath.exp(-z * z / (2 * s2)), [-200, 200])
        for z, p in law:
            true = mpmath.exp(-(mpmath.mpf(z) ** 2) / (2 * s2)) / total
            assert abs(mpmath.mpf(p.numerator) / p.denominator - true) < mpmath.mpf(10) ** -40


@pytest.mark.parametrize("sigma2", [Fraction(1, 4), Fraction(1), Fraction(25)])
def test_rounded_normal_law_is_exact_up_to_its_error(sigma2):
    law = EnumeratedCoins("1e-8").law(lambda c: c.rounded_normal(sigma2))
    assert 0 <= law.cut <= Fraction(1, 10**8) + law.error
    with mpmath.workdps(80):
        deviation = mpmath.sqrt(mpmath.mpf(sigma2.numerator) / sigma2.denominator)
        for z, p in law:
            true = mpmath.ncdf((z + mpmath.mpf(1) / 2) / deviation) - mpmath.ncdf((z - mpmath.mpf(1) / 2) / deviation)
            assert abs(mpmath.mpf(p.numerator) / p.denominator - true) < mpmath.mpf(10) ** -40


def test_a_vector_of_noise_is_the_product_of_its_coordinates():
    coins = EnumeratedCoins("0.01")
    single = dict(coins.law(lambda c: c.discrete_laplace(1)))
    for (a, b), p in coins.law(lambda c: c.discrete_laplace(1, 2)):
        assert p == single[a] * single[b]


def test_sub_experiments_on_plain_data_are_computed_once():
    coins = EnumeratedCoins()
    assert len(coins.law(Owner(3).roll)) == 3
    runs = Owner.runs
    law = dict(coins.law(lambda c: c.call(Owner(3).roll) + c.call(Owner(3).roll)))
    assert law == {
        0: Fraction(1, 9),
        1: Fraction(2, 9),
        2: Fraction(3, 9),
        3: Fraction(2, 9),
        4: Fraction(1, 9),
    }
    assert Owner.runs == runs, "its law is known, however often it is called"
    assert sum(dict(coins.law(nested, 2)).values()) == 1


def test_sub_experiments_that_have_no_name_run_inline():
    sides = 3
    law = dict(EnumeratedCoins().law(lambda c: c.call(lambda inner: inner.integer(sides))))
    assert law == {face: Fraction(1, 3) for face in range(3)}


def test_errors_of_nested_laws_add_up():
    def twice(c):
        return c.logistic(1), c.logistic(1)

    one, two = EnumeratedCoins().law(lambda c: c.logistic(1)), EnumeratedCoins().law(twice)
    assert two.error == 2 * one.error > 0


def test_enumeration_and_sampling_agree():
    """Chi-squared on 20,000 samples; false-alarm rate 1e-10."""

    def experiment(c):
        return min(4, abs(c.discrete_laplace(2)) + until_tails(c) * c.bernoulli("0.3"))

    law = EnumeratedCoins("1e-12").law(experiment)
    coins = SeededCoins(20261115)
    n = 20_000
    seen = Counter(experiment(coins) for _ in range(n))
    statistic = sum((seen[value] - n * float(p)) ** 2 / (n * float(p)) for value, p in law)
    assert statistic < chi2.isf(1e-10, len(law) - 1)


@pytest.mark.parametrize("cut", [0, -1, 2, math.nan, True])
def test_a_bad_cut_is_refused(cut):
    with pytest.raises(InvalidParameter):
        EnumeratedCoins(cut)


@pytest.mark.parametrize("goes_on", [True, False])
def test_a_loop_that_ends_by_chance_is_refused_rather_than_endless(goes_on, monkeypatch):
    monkeypatch.setattr(enumerated, "_CHOICES", 100)

    def tosses(coins):
        many = 0
        while coins.bernoulli("1/2") is goes_on:
            many += 1
        return many

    with pytest.raises(InvalidParameter, match="a loop does that ends by chance"):
        EnumeratedCoins().law(tosses)
    bounded = EnumeratedCoins().law(lambda coins: sum(coins.bernoulli(1) for _ in range(200)))
    assert bounded.outcomes == ((200, 1),)


def test_noise_too_wide_to_enumerate_is_refused_rather_than_endless():
    with pytest.raises(InvalidParameter):
        EnumeratedCoins().law(lambda c: c.discrete_laplace(10**9))
    with pytest.raises(InvalidParameter):
        EnumeratedCoins().law(lambda c: c.discrete_gaussian(10**12))


@pytest.mark.parametrize(
    "draw",
    [
        lambda c: c.bernoulli(2),
        lambda c: c.logistic(-1),
        lambda c: c.integer(0),
        lambda c: c.discrete_laplace(0),
        lambda c: c.discrete_gaussian(-1),
        lambda c: c.discrete_laplace(1, -1),
    ],
)
def test_bad_parameters_are_refused(draw):
    with pytest.raises(InvalidParameter):
        EnumeratedCoins().law(draw)


def test_vectors_of_tosses_and_integers_are_enumerated_entry_by_entry():
    law = dict(EnumeratedCoins().law(lambda c: (*c.bernoulli("1/3", 2).tolist(), *c.integer(2, 1).tolist())))
    assert len(law) == 8 and law[(True, False, 1)] == Fraction(1, 9)

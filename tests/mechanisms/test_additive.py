"""Laplace and Gaussian: the right noise for each ask, the whole price up front."""

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

from counterpoint.coins.enumerated import EnumeratedCoins, gaussian_options, laplace_options, rounded_normal_options
from counterpoint.coins.secure import SeededCoins
from counterpoint.coins.tape import RecordingCoins, ReplayedCoins
from counterpoint.errors import InvalidParameter
from counterpoint.measures import PureDP, zCDP
from counterpoint.mechanisms.additive import Gaussian, Laplace
from counterpoint.mechanisms.tails import _smooth, _summed, gaussian_within
from counterpoint.privacy.messages import Ask


def answers(mechanism, ask, cut="1e-6"):
    coins = EnumeratedCoins(cut)
    law = coins.law(lambda c: mechanism.step(mechanism.start(c), ask, c)[1])
    return dict(law)


@pytest.mark.parametrize(("asks", "sensitivity"), [(1, 1), (3, 1), (2, 5)])
def test_laplace_noise_has_the_scale_that_its_share_and_the_sensitivity_call_for(asks, sensitivity):
    mechanism = Laplace("0.5", asks=asks)
    law = answers(mechanism, Ask(private=100, sensitivity=sensitivity))
    expected = laplace_options(Fraction(asks * sensitivity) / mechanism.epsilon, Fraction(1, 10**6))
    assert law == {100 + z: p for z, p in expected.outcomes}


def test_gaussian_noise_has_the_variance_that_the_l2_sensitivity_calls_for():
    for discrete, options in ((False, rounded_normal_options), (True, gaussian_options)):
        mechanism = Gaussian("0.5", asks=2, discrete=discrete)
        law = answers(mechanism, Ask(private=7, sensitivity=3, squared=2))
        expected = options(Fraction(2 * 2), Fraction(1, 10**6))  # asks * squared / (2 rho)
        assert law == {7 + z: p for z, p in expected.outcomes}


@pytest.mark.parametrize("distance", [1, 2])
def test_neighbouring_laplace_answers_differ_by_at_most_e_to_the_share(distance):
    mechanism = Laplace(1, asks=2)
    ask = {x: Ask(private=x, sensitivity=2) for x in (0, distance)}
    left, right = answers(mechanism, ask[0]), answers(mechanism, ask[distance])
    bound = Fraction("1.6487212708")  # e^(1/2), rounded up
    both = left.keys() & right.keys()
    assert all(left[a] <= bound * right[a] and right[a] <= bound * left[a] for a in both)
    if distance == 2:
        assert max(left[a] / right[a] for a in both) > bound - Fraction(1, 10**8), "and the share is used up"


def test_a_mechanism_answers_as_often_as_was_paid_for_and_then_halts():
    coins = SeededCoins(1)
    for mechanism in (Laplace(1, asks=3), Gaussian(1, asks=3)):
        state = mechanism.start(coins)
        states = []
        for _ in range(3):
            state, answer = mechanism.step(state, Ask(private=1), coins)
            states.append(state)
            assert isinstance(answer, int)
        assert states[-1] is None and None not in states[:-1]


@given(st.lists(st.integers(-(2**90), 2**90), min_size=1, max_size=5).map(tuple))
def test_a_vector_is_answered_coordinate_by_coordinate_without_overflow(values):
    for mechanism in (Laplace(10), Gaussian(10)):
        coins = RecordingCoins(SeededCoins(5))
        _, noisy = mechanism.step(mechanism.start(coins), Ask(private=values), coins)
        zeros = Ask(private=(0,) * len(values))
        _, noise = mechanism.step(mechanism.start(coins), zeros, ReplayedCoins(coins.tape))
        assert tuple(a - b for a, b in zip(noisy, noise, strict=True)) == values


@settings(max_examples=30)
@given(st.integers(-100, 100), st.integers(-100, 100))
def test_two_worlds_toss_the_same_coins_and_differ_by_their_data_alone(x, y):
    for mechanism in (Laplace("0.3", asks=2), Gaussian("0.3", asks=2)):
        coins = RecordingCoins(SeededCoins(5))
        state, first = mechanism.step(mechanism.start(coins), Ask(private=x), coins)
        other_state, second = mechanism.step(mechanism.start(coins), Ask(private=y), ReplayedCoins(coins.tape))
        assert second - first == y - x and repr(state) == repr(other_state)


def test_claims_are_what_was_asked_for_exactly():
    assert Laplace(0.1, asks=3).claim.loss == PureDP(Fraction(1, 10))
    assert Gaussian(0.1, discrete=True).claim.loss == zCDP(Fraction(1, 10))
    assert Gaussian(0.1, asks=3).claim.loss.square == Fraction(1, 5)
    assert Gaussian(0.1, asks=3).claim.loss.as_zcdp() == zCDP(Fraction(1, 10))
    with pytest.raises(InvalidParameter, match="rho="):
        Gaussian(mu=1, discrete=True)
    assert Laplace(1).claim.interaction == "one-shot" and Laplace(1, asks=2).claim.interaction == "endless"


@pytest.mark.parametrize("make", [Laplace, Gaussian])
@pytest.mark.parametrize("bad", [0, -1, float("nan"), float("inf"), True, None, "x"])
def test_bad_parameters_are_refused(make, bad):
    with pytest.raises(InvalidParameter):
        make(bad)
    with pytest.raises(InvalidParameter):
        make(1, asks=0)
    with pytest.raises(InvalidParameter):
        make(1, asks=1.5)


# ------------------------------------------------------------------------------------------------ accuracy


def beyond(options, m):
    """The chance that noise goes beyond m, up to what was cut off."""
    return sum((p for z, p in options.outcomes if abs(z) > m), Fraction(0))


@pytest.mark.parametrize("probability", ["0.5", "0.9", "0.999"])
@pytest.mark.parametrize(("asks", "sensitivity"), [(1, 1), (3, 1), (2, 5)])
def test_the_stated_error_of_laplace_is_the_least_that_holds_by_computation(probability, asks, sensitivity):
    mechanism, fails = Laplace("0.5", asks=asks), 1 - Fraction(probability)
    stated = mechanism.error(probability, sensitivity)
    options = laplace_options(Fraction(asks * sensitivity) / mechanism.epsilon, Fraction(1, 10**12))
    assert beyond(options, stated) <= fails < beyond(options, stated - 1)


@pytest.mark.parametrize("probability", ["0.5", "0.9", "0.999"])
@pytest.mark.parametrize(("rho", "asks", "squared"), [("0.5", 1, 1), ("0.01", 1, 1), ("0.3", 4, 9)])
def test_the_stated_error_of_gaussian_is_the_least_that_holds_by_computation(probability, rho, asks, squared):
    for discrete, law in ((False, rounded_normal_options), (True, gaussian_options)):
        mechanism, fails = Gaussian(rho, asks=asks, discrete=discrete), 1 - Fraction(probability)
        stated = mechanism.error(probability, squared)
        options = law(Fraction(asks * squared) / (2 * mechanism.rho), Fraction(1, 10**12))
        assert beyond(options, stated) <= fails < beyond(options, stated - 1)


@pytest.mark.parametrize("width", [2, 7, 1000])
@pytest.mark.parametrize(
    ("mechanism", "options"),
    [
        (Laplace("0.2"), laplace_options(Fraction(5), Fraction(1, 10**12))),
        (Gaussian("0.02", discrete=True), gaussian_options(Fraction(25), Fraction(1, 10**12))),
        (Gaussian("0.02"), rounded_normal_options(Fraction(25), Fraction(1, 10**12))),
    ],
    ids=["Laplace", "discrete Gaussian", "rounded normal"],
)
def test_the_error_that_several_numbers_keep_at_once_is_the_least_by_computation(mechanism, options, width):
    """The noise of the numbers is independent, so that the chance of all is a power of the chance of one."""
    stated = mechanism.error("0.9", width=width)
    assert (1 - beyond(options, stated)) ** width >= Fraction(9, 10) > (1 - beyond(options, stated - 1)) ** width


@pytest.mark.parametrize("sigma2", [900, 1234, 5000])
@pytest.mark.parametrize("m", [0, 1, 31, 60, 150, 400])
def test_the_tail_of_a_wide_discrete_gaussian_by_the_integral_encloses_the_sum(sigma2, m):
    summed, smooth = _summed(Fraction(sigma2), 80)[m], _smooth(m, Fraction(sigma2))
    assert smooth.lower <= summed.lower <= summed.upper <= smooth.upper
    assert smooth.upper - smooth.lower < summed.upper / 1000


@pytest.mark.parametrize("sigma2", [900, 901, 2500])
def test_the_error_of_a_wide_discrete_gaussian_is_the_least_next_to_a_tail(sigma2):
    """A chance that is a tail, or a little less, which the integral alone cannot tell apart."""
    tails, step = _summed(Fraction(sigma2), 80), Fraction(1, 10**30)
    for m in (5, 59, 90):
        tail = Fraction(tails[m].upper)
        assert gaussian_within(Fraction(sigma2), tail + step) == m
        assert gaussian_within(Fraction(sigma2), tail - step) == m + 1


@pytest.mark.statistical
@pytest.mark.parametrize("mechanism", [Laplace("0.2"), Gaussian("0.02")])
def test_all_numbers_of_a_vector_are_within_the_stated_error_at_once(mechanism):
    runs, width, coins = 2000, 20, SeededCoins(5)
    stated, ask = mechanism.error("0.9", width=width), Ask(private=(0,) * width, sensitivity=1)
    failed = [max(map(abs, mechanism.step(mechanism.start(coins), ask, coins)[1])) > stated for _ in range(runs)]
    # Each fails with probability at most 1/10, independently: more failures than this have one below 1e-9.
    assert binom.sf(300, runs, 0.1) < 1e-9
    assert sum(failed) <= 300


@pytest.mark.parametrize("mechanism", [Laplace(1), Gaussian(1)])
@pytest.mark.parametrize("bad", [(1,), (2,), (-1,), ("0.5", 0), ("0.5", 1, 0), ("0.5", True)])
def test_an_accuracy_that_cannot_be_stated_is_refused(mechanism, bad):
    with pytest.raises(InvalidParameter):
        mechanism.error(*bad)

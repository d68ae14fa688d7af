"""Randomized response in one step and in two: the same law, one label convention, and the edges."""

from fractions import Fraction

import pytest

from counterpoint.coins.enumerated import EnumeratedCoins
from counterpoint.errors import InvalidParameter
from counterpoint.measures import ApproxDP, PureDP
from counterpoint.mechanisms.randomized_response import InteractiveRandomizedResponse, RandomizedResponse
from counterpoint.privacy.messages import Ask

HALF = Fraction(1, 2)


def one_step(epsilon, delta, bit):
    mechanism = RandomizedResponse(epsilon, delta)
    return EnumeratedCoins().law(lambda c: mechanism.step(mechanism.start(c), Ask(private=bit), c)[1])


def two_steps(epsilon, delta, bit):
    mechanism = InteractiveRandomizedResponse(epsilon, delta)

    def both(coins):
        state, exposed = mechanism.step(mechanism.start(coins), Ask(private=bit), coins)
        state, told = mechanism.step(state, Ask(), coins)
        assert state is None
        return exposed, told

    return EnumeratedCoins().law(both)


@pytest.mark.parametrize("bit", [0, 1])
@pytest.mark.parametrize(("epsilon", "delta"), [(1, "0.25"), (0, "0.25"), ("0.5", 0), (2, 1), (800, "1e-6")])
def test_x4_both_forms_have_one_law_and_say_exposed_of_the_same_event(epsilon, delta, bit):
    one, two = dict(one_step(epsilon, delta, bit)), dict(two_steps(epsilon, delta, bit))
    assert one.keys() == two.keys() and all(abs(one[key] - two[key]) < Fraction(1, 10**50) for key in one)
    assert one.get((True, bit), 0) == Fraction(delta), "exposed is the delta event"
    assert (True, 1 - bit) not in one, "what is exposed is true"


def test_the_noisy_bit_has_odds_e_to_the_epsilon():
    law = dict(one_step(1, 0, 1))
    odds = law[(False, 1)] / law[(False, 0)]
    assert abs(odds - Fraction("2.718281828459045235360287")) < Fraction(1, 10**20)


def test_t24_at_epsilon_zero_the_noisy_outcomes_are_even_and_exact():
    law = one_step(0, "0.25", 1)
    assert dict(law) == {(True, 1): Fraction(1, 4), (False, 1): Fraction(3, 8), (False, 0): Fraction(3, 8)}
    assert law.error == 0


def test_t24_delta_zero_and_one_are_not_special():
    assert dict(one_step(0, 0, 1)) == {(False, 1): HALF, (False, 0): HALF}
    assert dict(one_step(3, 1, 0)) == {(True, 0): Fraction(1)}


def test_what_is_not_a_bit_is_brought_to_the_nearest_one():
    assert dict(one_step(1, 0, 7)) == dict(one_step(1, 0, 1))
    assert dict(one_step(1, 0, -7)) == dict(one_step(1, 0, 0))


def test_claims():
    assert RandomizedResponse(1).claim.loss == PureDP(1)
    assert RandomizedResponse(1, "0.1").claim.loss == ApproxDP(1, "0.1")
    assert not RandomizedResponse(1).accepts(Ask(private=(1, 2))) and not RandomizedResponse(1).accepts(Ask())


@pytest.mark.parametrize("make", [RandomizedResponse, InteractiveRandomizedResponse])
def test_bad_parameters_are_refused(make):
    for bad in [(-1, 0), (1, -1), (1, 2), (float("nan"), 0), (1, float("nan")), (True, 0)]:
        with pytest.raises(InvalidParameter):
            make(*bad)


@pytest.mark.parametrize("make", [RandomizedResponse, InteractiveRandomizedResponse])
@pytest.mark.parametrize(("epsilon", "delta"), [(1, 0), ("0.5", "0.25"), (3, "0.1")])
def test_the_stated_error_is_0_exactly_where_the_told_bit_is_true_so_often_by_computation(make, epsilon, delta):
    true = sum(p for (_, bit), p in one_step(epsilon, delta, 1) if bit == 1)
    near = Fraction(1, 10**20)
    assert make(epsilon, delta).error(true - near) == 0 and make(epsilon, delta).error(true + near) == 1


def test_what_is_always_exposed_is_never_wrong_and_certainty_is_not_stated():
    assert RandomizedResponse(0, 1).error("0.999999") == 0 and RandomizedResponse(0).error("0.5") == 0
    with pytest.raises(InvalidParameter):
        RandomizedResponse(1).error(1)

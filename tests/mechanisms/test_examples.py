"""The papers' cautionary machines do what the papers say."""

from fractions import Fraction

import pytest

from counterpoint.coins.enumerated import EnumeratedCoins
from counterpoint.errors import InvalidParameter
from counterpoint.privacy.messages import Ask
from counterpoint.verify.finite import LoudNumber, OpenDoor

SEVENTH = Fraction(1, 7)


def conversation(mechanism, asks):
    """The law of the answers to asks, each of which may be a function of the answer before."""

    def run(coins):
        state, said = mechanism.start(coins), []
        for ask in asks:
            state, answer = mechanism.step(state, ask(said[-1]) if callable(ask) else ask, coins)
            said.append(answer)
        return tuple(said)

    return dict(EnumeratedCoins().law(run))


def test_an_open_door_repeats_its_input_and_a_closed_one_says_nothing_of_it():
    law = conversation(OpenDoor(SEVENTH), [Ask(private=0), Ask(private=1)])
    assert law == {
        ("open", 1): SEVENTH,
        ("closed", "open"): SEVENTH * (1 - SEVENTH),
        ("closed", "closed"): (1 - SEVENTH) ** 2,
    }


def test_one_open_door_costs_exactly_delta():
    """Total variation between the worlds for the best of the pairs of inputs with one difference."""
    zero = conversation(OpenDoor(SEVENTH), [Ask(private=0), Ask(private=0)])
    one = conversation(OpenDoor(SEVENTH), [Ask(private=0), Ask(private=1)])
    first = conversation(OpenDoor(SEVENTH), [Ask(private=1), Ask(private=0)])
    assert sum(max(p - one.get(view, 0), Fraction(0)) for view, p in zero.items()) == SEVENTH
    assert first == zero


def test_the_loud_number_hides_from_the_deaf_and_tells_all_to_the_attentive():
    deaf = conversation(LoudNumber(Fraction(1, 4)), [Ask(private=1), Ask(2)])
    assert sum(p for (_, told), p in deaf.items() if told == 1) == Fraction(1, 4)
    attentive = conversation(LoudNumber(Fraction(1, 4)), [Ask(private=1), Ask])
    assert sum(p for (_, told), p in attentive.items() if told == 1) == 1


def test_bad_parameters_are_refused():
    for bad in (-1, 2, float("nan"), True):
        with pytest.raises(InvalidParameter):
            OpenDoor(bad)
    with pytest.raises(InvalidParameter):
        LoudNumber(0)

"""Guess and check on linear queries: what is weighed moves no further than declared, and nothing leaks."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from counterpoint.coins.secure import SeededCoins
from counterpoint.errors import InvalidParameter, RelationMismatch
from counterpoint.measures import PureDP
from counterpoint.mechanisms.guess_and_check import PASS, WRONG, GuessAndCheck, LinearGuess, LinearGuessAndCheck
from counterpoint.privacy.messages import Ask, Update
from counterpoint.verify.coupling import two_worlds

CHECKS = GuessAndCheck(20, margin=10, wrong=2, sensitivity=6)
LINEAR = LinearGuessAndCheck(CHECKS, universe=3, steps=3)


def test_it_costs_what_the_checks_cost():
    assert LINEAR.claim.loss == CHECKS.claim.loss == PureDP(80)
    assert LINEAR.claim.certificate.rests_on("Cor 6.6")


def test_a_histogram_is_weighed_and_a_sum_is_taken_as_it_is():
    coins = SeededCoins(1)
    state = LINEAR.start(coins)
    state, said = LINEAR.step(state, Ask(LinearGuess((3, 0, 1), 3100), private=(1000, 999, 100)), coins)
    assert said == (PASS, None)
    state, said = LINEAR.step(state, Ask(LinearGuess((3, 0, 1), 3100), private=3100), coins)
    assert said == (PASS, None)
    state, (verdict, value) = LINEAR.step(state, Ask(LinearGuess((0, 1, 0), 0), private=(1000, 999, 100)), coins)
    assert verdict == WRONG and abs(value - 999) < 50
    state, (verdict, _) = LINEAR.step(state, Ask(LinearGuess((0, 1, 0), 0), private=999), coins)
    assert verdict == WRONG and state is None, "and it halts with the checks"


weights = st.tuples(*[st.integers(0, 3)] * 3)
cells = st.tuples(*[st.integers(0, 20)] * 3)


@given(st.lists(st.tuples(weights, cells, st.integers(0, 2), st.sampled_from([-1, 0, 1]), st.integers(0, 60))))
def test_a_row_more_or_less_moves_the_checks_by_no_more_than_declared(asks):
    left, right = [], []
    for weight, here, at, move, guess in asks:
        there = tuple(cell + move * (place == at) for place, cell in enumerate(here))
        left.append(Ask(LinearGuess(weight, guess), here))
        right.append(Ask(LinearGuess(weight, guess), there))
    two_worlds(LINEAR, left, right)


class Heavier(LinearGuessAndCheck, frozen=True):
    """Wrong: the sensitivity of the histogram is taken for that of the weighted sum."""

    def _sensitivity(self, ask):
        return ask.sensitivity


def test_forgetting_the_weights_in_the_sensitivity_is_found_by_two_worlds():
    guess = LinearGuess((3, 0, 0), 5)
    with pytest.raises(RelationMismatch):
        two_worlds(Heavier(CHECKS, 3, 3), [Ask(guess, (1, 1, 1))], [Ask(guess, (2, 1, 1))])


@pytest.mark.parametrize(
    "message",
    [
        Ask(LinearGuess((3, 0), 5), (1, 1, 1)),
        Ask(LinearGuess((4, 0, 0), 5), (1, 1, 1)),
        Ask(LinearGuess((-1, 0, 0), 5), (1, 1, 1)),
        Ask(LinearGuess((True, 0, 0), 5), (1, 1, 1)),
        Ask(LinearGuess((1, 0, 0), True), (1, 1, 1)),
        Ask(LinearGuess("abc", 5), (1, 1, 1)),
        Ask(LinearGuess((1, 0, 0), 5), (1, 1)),
        Ask(LinearGuess((1, 0, 0), 5), (1, 1, 1), sensitivity=3),
        Ask(LinearGuess((1, 0, 0), 5), 7, sensitivity=7),
        Ask(LinearGuess((1, 0, 0), 5)),
        Ask((1, 0, 0), (1, 1, 1)),
        Update((1, 1, 1)),
    ],
)
def test_what_has_other_weights_or_another_shape_or_is_too_sensitive_is_not_accepted(message):
    assert not LINEAR.accepts(message)


@pytest.mark.parametrize("wrong", [{"universe": 0}, {"steps": 0}, {"checks": None}])
def test_parameters_are_checked(wrong):
    with pytest.raises(InvalidParameter):
        LinearGuessAndCheck(**{"checks": CHECKS, "universe": 3, **wrong})

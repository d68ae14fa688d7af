"""Whatever decides by anything but its coins and its state is refused, and never verified.

A hidden fair coin that all repeats of a law miss has probability at most 2^-32 (2^-4 once a game has many laws): the
tests below toss at least 64 of them, so that they fail by chance with probability below 1e-18.
"""

import os
import random
import secrets
import time
from itertools import count

import pytest

from counterpoint import Laplace, PureDP, RandomizedResponse
from counterpoint.coins.enumerated import EnumeratedCoins
from counterpoint.continual.counter import Counter
from counterpoint.encoding import Value
from counterpoint.errors import TapeMismatch
from counterpoint.mechanisms import Ask, Update
from counterpoint.mechanisms.mechanism import Left, Mechanism
from counterpoint.privacy.claims import claim
from counterpoint.privacy.relations.steps import every_step
from counterpoint.privacy.secret import reveal
from counterpoint.verify import equivalent, exact
from counterpoint.verify.finite import FiniteMechanism, Outcome

PAIRS = [(Ask(private=0), Ask(private=1)), (Ask(private=1), Ask(private=0))]
RUNS = count()
TOSSES = {
    "secrets": lambda: secrets.randbits(1),
    "random": lambda: int(random.random() < 0.5),  # noqa: S311 - a cheat
    "urandom": lambda: os.urandom(1)[0] & 1,
    "clock": lambda: time.perf_counter_ns() // 100 % 2,
    "counter": lambda: next(RUNS) % 2,
    "address": lambda: id(object()) >> 4 & 1,
    "later": lambda: int(next(RUNS) % 1000 > 500),
}


class Tosses(Mechanism, Value, frozen=True):
    """Answers the bit, or in `start` or in a late step the bit of a coin of its own."""

    how: str
    where: str = "step"

    @property
    def claim(self):
        return claim(PureDP(1), every_step(), "it is a cheat")

    def accepts(self, message):
        return isinstance(message, Ask)

    def start(self, coins):
        return Left(3 + TOSSES[self.how]() if self.where == "start" else 3)

    def step(self, state, message, coins):
        truthful = coins.logistic(1)
        if self.where == "step" or (self.where == "last" and state.asks == 1):
            truthful = TOSSES[self.how]()
        return state.after_one(), int(reveal(message.private.clamp(0, 1))) ^ truthful


@pytest.mark.parametrize("where", ["start", "step", "last"])
@pytest.mark.parametrize("how", ["secrets", "random", "urandom", "counter", "address"])
def test_a_mechanism_that_tosses_its_own_coins_is_refused_every_time(how, where):
    for _ in range(24):
        with pytest.raises(
            TapeMismatch, match=f"^Tosses, {'start' if where == 'start' else 'step on Ask'}.*equal coins"
        ):
            exact(Tosses(how, where), messages=PAIRS, rounds=3)


def test_a_mechanism_that_changes_its_mind_later_is_refused():
    for _ in range(-next(RUNS) % 1000):
        next(RUNS)  # the next thousand begins with what it does at first
    pairs = [(Ask(n, 0), Ask(n, 1)) for n in range(30)]
    with pytest.raises(TapeMismatch, match="Tosses"):
        exact(Tosses("later"), messages=pairs, rounds=3, cut="1e-3")


def test_two_mechanisms_of_which_one_tosses_its_own_coins_are_not_called_equal():
    with pytest.raises(TapeMismatch, match="OneOfTwo, step"):
        equivalent(RandomizedResponse(0), Tosses("secrets"), [Ask(private=0), Ask(private=1)], rounds=2)


def test_an_experiment_that_draws_more_coins_the_second_time_or_fails_then_is_refused():
    numbers, runs = count(), count()

    def more(coins):
        return sum(coins.integer(2) for _ in range(1 + next(numbers) % 2))

    def fails(coins):
        if next(runs) > 5:
            raise ValueError
        return coins.integer(2)

    for experiment in (more, fails):
        with pytest.raises(TapeMismatch, match="toss"):
            EnumeratedCoins().law(experiment)


def test_honest_mechanisms_are_computed_as_before():
    updates = [(Update(0), Update(1)), (Ask(), Ask())]
    assert exact(Laplace(1, asks=3), messages=PAIRS, rounds=3, cut="1e-6").worlds.size > 1
    assert exact(Counter(2, horizon=2), messages=updates, rounds=3, cut="1e-3").worlds.size > 1


HALF = Outcome("1/2", 0), Outcome("1/2", 1)


@pytest.mark.parametrize(
    ("table", "start", "interaction"),
    [
        ((((HALF, HALF),),), (1,), "finite"),
        ((((HALF, (Outcome(1, 0, 0),)),),), (1,), "endless"),
        ((((HALF, (Outcome(1, 0, 1),)),), ((HALF, HALF),)), (1,), "finite"),
        ((((HALF, (Outcome(1, 0, 1),)),), ((HALF, (Outcome(1, 0, 0),)),)), (1,), "endless"),
        ((((HALF, HALF),), ((HALF, (Outcome(1, 0, 1),)),)), (1,), "finite"),
        ((((HALF, HALF),), ((HALF, (Outcome(1, 0, 1),)),)), ("1/2", "1/2"), "endless"),
        ((((HALF, (Outcome(1, 0), Outcome(0, 0, 0))),),), (1,), "finite"),
    ],
)
def test_a_finite_mechanism_is_finite_exactly_if_no_state_is_reached_twice(table, start, interaction):
    assert FiniteMechanism(table, start).claim.interaction == interaction

"""V[f] . I(b) . M: the verifier halts for good before the mechanism sees an invalid pair."""

import pytest

from counterpoint.coins.secure import SeededCoins
from counterpoint.encoding import Value, encode
from counterpoint.measures import PureDP
from counterpoint.mechanisms.additive import Laplace
from counterpoint.mechanisms.mechanism import Mechanism, State
from counterpoint.privacy.claims import claim
from counterpoint.privacy.messages import Ask, Update
from counterpoint.privacy.relations import one_step
from counterpoint.privacy.secret import reveal
from counterpoint.verify.game import HALT, Game


class Seen(State, Value, frozen=True):
    values: tuple[int, ...] = ()


class Witness(Mechanism, Value, frozen=True):
    """Repeats everything it has received: to see what gets through."""

    @property
    def claim(self):
        return claim(PureDP(0), one_step(), "nothing at all; a test's spy")

    def accepts(self, message):
        return isinstance(message, Ask | Update) and message.private is not None

    def start(self, coins):
        return Seen()

    def step(self, state, message, coins):
        after = Seen((*state.values, reveal(message.private)))
        return after, after.values


STREAM = [(0, 0), (1, 1), (0, 1), (1, 1), (1, 0), (0, 0)]


@pytest.mark.parametrize("bit", [0, 1])
@pytest.mark.parametrize("kind", [Ask, Update])
def test_t20_the_fifth_pair_halts_and_nothing_passes_afterwards(bit, kind):
    game, coins = Game(Witness(), bit), SeededCoins(1)
    state, answers = game.start(coins), []
    for pair in STREAM:
        left, right = (kind(private=value) for value in pair)
        state, answer = game.step(state, left, right, coins)
        answers.append(answer)
    expected = [tuple(pair[bit] for pair in STREAM[: n + 1]) for n in range(4)]
    assert answers == [*expected, HALT, HALT] and state is None


def test_what_the_mechanism_does_not_accept_halts():
    game, coins = Game(Laplace(1), 0), SeededCoins(1)
    assert game.step(game.start(coins), Ask(), Ask(), coins) == (None, HALT)


def test_a_mechanism_that_has_halted_stays_halted():
    game, coins = Game(Laplace(1), 1), SeededCoins(1)
    state, answer = game.step(game.start(coins), Ask(private=0), Ask(private=1), coins)
    assert isinstance(answer, int)
    assert game.step(state, Ask(private=0), Ask(private=0), coins) == (None, HALT)


def test_both_worlds_are_equal_on_identical_pairs():
    games = [Game(Laplace(1, asks=3), bit) for bit in (0, 1)]
    ends = [game.step(game.start(SeededCoins(1)), Ask(private=4), Ask(private=4), SeededCoins(2)) for game in games]
    assert encode(ends[0], sealed=True) == encode(ends[1], sealed=True)

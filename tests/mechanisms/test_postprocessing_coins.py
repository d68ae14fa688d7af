"""Postprocessors may toss coins: enumerated, recorded and replayed as a mechanism's own."""

import math
from fractions import Fraction

import pytest
from tests.session.numbers_source import Numbers

import counterpoint as cp
from counterpoint.coins.enumerated import EnumeratedCoins
from counterpoint.coins.tape import RecordingCoins, ReplayedCoins
from counterpoint.encoding import Value
from counterpoint.ledger.memory import MemoryLedger
from counterpoint.mechanisms.postprocessing import Failed
from counterpoint.verify.message_pairs import asks
from counterpoint.verify.verdict import Verdict

KEPT = []


class Flip(cp.mechanisms.Postprocessor, Value, frozen=True):
    """Turns the bit of a randomized response round, with this probability."""

    chance: Fraction

    def start(self):
        return 0

    def react(self, own, request, ask):
        _exposed, answer = ask(request)
        return own + 1, 1 - answer if ask.coins.bernoulli(self.chance) else answer


class Sometimes(cp.mechanisms.Postprocessor, Value, frozen=True):
    """Asks, or doesn't, by a coin of its own."""

    def start(self):
        return None

    def react(self, own, request, ask):
        return own, ask(request) if ask.coins.bernoulli(Fraction(1, 2)) else "not today"


class Jitter(cp.mechanisms.Postprocessor, Value, frozen=True):
    """Adds a digit of its own."""

    def start(self):
        return None

    def react(self, own, request, ask):
        return own, (ask(request), ask.coins.integer(10**9))


class Broken(cp.mechanisms.Postprocessor, Value, frozen=True):
    """Tosses a coin and then fails."""

    def start(self):
        return None

    def react(self, own, request, ask):
        KEPT.append(ask)
        ask.coins.integer(2)
        raise ValueError


def answers(mechanism, value):
    def experiment(coins):
        return mechanism.step(mechanism.start(coins), cp.mechanisms.Ask(private=value), coins)[1]

    return dict(EnumeratedCoins().law(experiment))


def test_every_outcome_of_the_coins_is_enumerated_with_its_probability():
    flipped = cp.postprocess(Flip(Fraction(1, 4)), cp.RandomizedResponse(0))
    assert answers(flipped, 0) == {0: Fraction(1, 2), 1: Fraction(1, 2)}
    truth = math.e / (1 + math.e)
    law = answers(cp.postprocess(Flip(Fraction(1, 4)), cp.RandomizedResponse(1)), 0)
    assert float(law[0]) == pytest.approx(truth * 3 / 4 + (1 - truth) / 4)


@pytest.mark.parametrize("post", [Flip(Fraction(1, 4)), Sometimes()], ids=repr)
def test_the_claim_of_the_mechanism_holds_behind_a_postprocessor_with_coins(post):
    mechanism = cp.postprocess(post, cp.RandomizedResponse(1))
    assert mechanism.claim.loss == cp.PureDP(1)
    loss = cp.verify.exact(mechanism, messages=asks([(0, 1), (1, 0)]), rounds=1)
    assert loss.judge(mechanism.claim) == Verdict.HOLDS


def test_coins_that_hide_the_answer_lower_the_loss_by_what_they_should():
    """Flipped with probability 1/4, randomized response at 1 keeps odds of (3e + 1) to (e + 3)."""
    mechanism = cp.postprocess(Flip(Fraction(1, 4)), cp.RandomizedResponse(1))
    found = cp.verify.exact(mechanism, messages=asks([(0, 1), (1, 0)]), rounds=1).epsilon_at(0)
    assert found == pytest.approx(math.log((3 * math.e + 1) / (math.e + 3)))


def test_a_tape_replays_the_coins_of_the_postprocessor_too():
    mechanism = cp.postprocess(Jitter(), cp.Laplace(1))
    recording = RecordingCoins(cp.coins.SecureCoins())
    state = mechanism.start(recording)
    _, first = mechanism.step(state, cp.mechanisms.Ask(private=5), recording)
    replaying = ReplayedCoins(recording.tape)
    state = mechanism.start(replaying)
    _, second = mechanism.step(state, cp.mechanisms.Ask(private=5), replaying)
    assert first == second


def test_a_chain_tosses_in_turn():
    mechanism, seed = cp.postprocess(Jitter(), Jitter(), cp.Laplace(1)), bytes(32)

    def once():
        coins = cp.coins.SecureCoins(seed=seed)
        return mechanism.step(mechanism.start(coins), cp.mechanisms.Ask(private=5), coins)[1]

    (_, inner), outer = once()
    assert inner != outer and once() == ((once()[0][0], inner), outer)


def test_a_step_that_is_finished_after_a_crash_tosses_the_same_coins():
    class Crashing(MemoryLedger):
        left = 0
        seen: list = []  # noqa: RUF012 - of this test alone

        def settle(self, intent, row, answer, *, reads_data=False):
            if isinstance(answer, tuple) and intent.path and len(answer) == 2:
                self.seen.append(answer)
            if self.left:
                self.left -= 1
                raise KeyboardInterrupt
            return super().settle(intent, row, answer, reads_data=reads_data)

    ledger = Crashing()
    session = cp.Session(Numbers({"apples": 100}), within=cp.PureDP(1), ledger=ledger)
    handle = session.launch(cp.postprocess(Jitter(), cp.Laplace(1)))
    ledger.left = 1
    with pytest.raises(KeyboardInterrupt):
        handle.ask("apples", id="the same")
    released = handle.ask("apples", id="the same")
    assert ledger.seen == [released, released]


def test_one_that_fails_after_a_toss_halts():
    mechanism = cp.postprocess(Broken(), cp.Laplace(1))
    coins = cp.coins.SecureCoins()
    after, answer = mechanism.step(mechanism.start(coins), cp.mechanisms.Ask(private=5), coins)
    assert after is None and answer == Failed("ValueError")
    with pytest.raises(cp.errors.NotAllowed, match="has been answered"):
        KEPT[-1].coins  # noqa: B018 - the property refuses

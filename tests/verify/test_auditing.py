"""Audits find planted bugs, refute nothing that is true, and say how sure they are."""

from fractions import Fraction

import numpy as np
import pytest

from counterpoint import Gaussian, Laplace, PureDP, RandomizedResponse
from counterpoint.coins import SeededCoins
from counterpoint.encoding import Value
from counterpoint.errors import InvalidParameter
from counterpoint.mechanisms import Ask
from counterpoint.mechanisms.additive import Additive
from counterpoint.mechanisms.composite import Composite, Own
from counterpoint.mechanisms.composite_parts import Part
from counterpoint.mechanisms.mechanism import Left, Mechanism, State
from counterpoint.privacy.claims import claim
from counterpoint.privacy.relations import every_step
from counterpoint.privacy.secret import reveal
from counterpoint.verify.audits.audit import audit
from counterpoint.verify.audits.events import Aim, Event, learn
from counterpoint.verify.audits.players import InBatches, Script, player
from counterpoint.verify.exact_loss import exact
from counterpoint.verify.finite import LoudNumber, OpenDoor
from counterpoint.verify.verdict import Verdict

SURE = 1 - Fraction(1, 10**10)
"""A false alarm has a probability of at most 1e-10."""
BOTH_WAYS = ((Ask(private=0), Ask(private=1)), (Ask(private=1), Ask(private=0)))


class HalfNoise(Additive, Value, frozen=True):
    """Laplace noise of half the scale that epsilon = 1 needs."""

    asks: int = 1

    @property
    def claim(self):
        return claim(PureDP(1), every_step(), "a mistake", interaction="one-shot")

    def noise(self, ask, size, coins):
        return [int(draw) for draw in coins.discrete_laplace(Fraction(self.asks * ask.sensitivity, 2), size)]


class Seeded(State, Value, frozen=True):
    """The seed that every ask begins from, and how many asks are left."""

    seed: int
    asks: int


class SameSeed(Mechanism, Value, frozen=True):
    """Two asks of Laplace noise, 1/2 each, but both from the same seed."""

    @property
    def claim(self):
        return claim(PureDP(1), every_step(), "a mistake")

    def accepts(self, message):
        return Laplace(1).accepts(message)

    def start(self, coins):
        return Seeded(coins.integer(2**64), 2)

    def step(self, state, message, coins):
        noise = SeededCoins(state.seed).discrete_laplace(2)
        return (Seeded(state.seed, 1) if state.asks == 2 else None), reveal(message.private) + noise


class Nothing(Own, Value, frozen=True):
    """No memory."""


class Doubling(Composite, Value, frozen=True):
    """Sends its part the value doubled, which neighbours may not be that far apart for."""

    structure = (Part("value", PureDP(1), every_step()),)
    relation = every_step()

    def accepts(self, message):
        return Laplace(1).accepts(message)

    def begin(self, context):
        context.launch("value", Laplace(1))
        return Nothing()

    def react(self, context, own, message):
        return own, context.ask("value", message.private * 2)


class FreeBelowZero(Mechanism, Value, frozen=True):
    """One ask for epsilon = 1, but an answer below 0 is not charged."""

    @property
    def claim(self):
        return claim(PureDP(1), every_step(), "a mistake")

    def accepts(self, message):
        return Laplace(1).accepts(message)

    def start(self, coins):
        return Left(1)

    def step(self, state, message, coins):
        _, answer = Laplace(1).step(state, message, coins)
        return (state if answer < 0 else None), answer


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("mechanism", "rounds", "samples"),
    [
        (HalfNoise(), 1, 100_000),
        (HalfNoise(asks=3), 3, 1_000_000),
        (SameSeed(), 2, 4_000),
        (Doubling(), 1, 12_000),
        (FreeBelowZero(), 4, 24_000),
    ],
    ids=["half the noise", "half the noise, three asks", "same seed", "a leak", "not charged"],
)
def test_planted_bugs_are_found(mechanism, rounds, samples):
    found = audit(mechanism, messages=BOTH_WAYS, rounds=rounds, samples=samples, confidence=SURE, coins=SeededCoins(1))
    assert found.judge() is Verdict.REFUTED and found.epsilon > 1
    assert "REFUTED" in str(found)


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("mechanism", "options"),
    [
        (Laplace(1), {"samples": 200_000}),
        (Laplace(1, asks=3), {"samples": 200_000}),
        (Gaussian("1/2"), {"samples": 200_000, "delta": "1e-3"}),
        (RandomizedResponse(1, "1/10"), {"samples": 10_000}),
        (OpenDoor("1/7"), {"samples": 10_000}),
    ],
    ids=["Laplace", "Laplace thrice", "Gaussian", "randomized response", "open door"],
)
def test_what_is_true_is_not_refuted_with_fresh_coins(mechanism, options):
    """False alarms: at most 1e-10 each."""
    found = audit(mechanism, confidence=SURE, **options)
    assert found.judge() is Verdict.UNDECIDED
    assert found.epsilon_at(0) <= exact(mechanism).epsilon_at(0)


def test_a_tight_mechanism_is_found_almost_tight():
    found = audit(Laplace(1), samples=400_000, confidence=0.999, coins=SeededCoins(2))
    assert 0.95 < found.epsilon < 1
    response = audit(RandomizedResponse(1, "1/10"), samples=20_000, coins=SeededCoins(2))
    assert 0.7 < response.epsilon < 1 and response.delta == Fraction(1, 10)


@pytest.mark.statistical
def test_the_bound_is_wrong_no_more_often_than_stated():
    """100 audits at confidence 3/4: if each is wrong with probability 1/4, 58 are with a probability below 1e-11."""
    true = exact(RandomizedResponse(2)).epsilon_bounds(0)[0]
    bounds = [
        audit(RandomizedResponse(2), samples=400, confidence="3/4", coins=SeededCoins(seed)).epsilon
        for seed in range(100)
    ]
    assert sum(bound > true for bound in bounds) < 58
    assert sum(bound > 1 for bound in bounds) > 60


def test_the_event_is_judged_on_games_that_it_was_not_learned_from():
    """Answers that are all different: learned by heart they would tell the worlds apart perfectly."""
    noise = np.random.default_rng(1).integers(0, 10**9, size=(4, 500))
    views = [{"answer 1": column} for column in noise]
    aim = Aim(delta=0.0, width=3.0, trials=10**6)
    by_heart = learn((views[0], views[1]), (views[0], views[1]), aim)
    honest = learn((views[0], views[1]), (views[2], views[3]), aim)
    assert by_heart.score > 4
    assert honest.score < 1


def test_an_adversary_learned_on_a_small_instance_plays_on_the_large_one():
    spy = exact(OpenDoor("1/4"), rounds=2).adversary
    found = audit(
        OpenDoor("1/4"),
        messages=BOTH_WAYS[:1],
        rounds=1,
        adversaries=[spy],
        samples=8_000,
        delta=0,
        coins=SeededCoins(1),
    )
    assert found.player.startswith("an adaptive adversary") and found.delta_at(0) > 0.2
    listener = exact(LoudNumber("1/3")).adversary
    found = audit(LoudNumber("1/3"), adversaries=[listener], samples=4_000, delta=0, coins=SeededCoins(1))
    assert found.delta_at(0) > 0.9  # every number heard is repeated


def test_a_budget_of_time_decides_how_many_games_there_are_before_the_last_half():
    found = audit(Laplace(1), seconds=0.3, coins=SeededCoins(1))
    assert found.games >= 400 and found.likely.trials == found.unlikely.trials
    capped = audit(Laplace(1), seconds=60, samples=20_000, coins=SeededCoins(1))
    assert capped.games <= 21_000


def test_games_in_batches_are_games():
    """The same law, batch or not: the largest difference of two empirical laws (Kolmogorov-Smirnov, below 1e-12)."""
    script = BOTH_WAYS
    batch = InBatches(script).games(Laplace(1, asks=2), None, 1, 20_000, SeededCoins(1))
    single = Script(script).games(Laplace(1, asks=2), None, 1, 5_000, SeededCoins(2))
    for view in ("answer 1", "answer 2", "sum", "answer 2 - answer 1"):
        values = np.union1d(batch[view], single[view])
        one, other = (
            np.searchsorted(np.sort(games[view]), values, "right") / len(games[view]) for games in (batch, single)
        )
        assert np.abs(one - other).max() < 0.06


def test_only_plain_noise_is_asked_for_in_batches():
    for mechanism in (FreeBelowZero(), SameSeed()):
        assert type(player(BOTH_WAYS, mechanism, every_step(), batches=True)) is Script
    assert type(player(BOTH_WAYS, Laplace(1, asks=2), every_step(), batches=True)) is InBatches
    assert type(player(BOTH_WAYS[:1], Laplace(1), every_step(), batches=False)) is Script


def test_an_event_knows_its_values():
    views = {"sum": np.array([-3, 0, 4, 9])}
    assert Event("sum", "at most", np.array([0])).holds(views).tolist() == [True, True, False, False]
    assert Event("sum", "at least", np.array([4])).holds(views).tolist() == [False, False, True, True]
    assert Event("sum", "among", np.array([-3, 9])).holds(views).tolist() == [True, False, False, True]


def test_the_report_has_a_curve_a_text_and_a_plot(tmp_path):
    found = audit(Laplace(1), samples=20_000, coins=SeededCoins(1))
    assert found.epsilon_at(0) > found.epsilon_at("0.1") > 0 == found.epsilon_at("0.9")
    assert found.delta_at(0) > found.delta_at("0.5") >= found.delta_at(50) == 0 == found.delta_at(5000)
    assert "not refuted" in str(found) and found.judge(PureDP("0.5")) is Verdict.REFUTED
    pytest.importorskip("matplotlib")
    found.plot(tmp_path / "audit.png")
    assert (tmp_path / "audit.png").stat().st_size > 1000


@pytest.mark.parametrize(
    "wrong",
    [
        {"samples": 10},
        {"samples": True},
        {"confidence": 1},
        {"confidence": 0},
        {"confidence": float("nan")},
        {"seconds": 0},
        {"delta": 2},
        {"rounds": 0},
        {"messages": []},
        {"adversaries": ["eve"]},
        {"messages": [(Ask(private=0), Ask(private=5))]},
    ],
)
def test_nonsense_is_refused(wrong):
    with pytest.raises(InvalidParameter):
        audit(Laplace(1), **wrong)


def test_only_mechanisms_are_audited_and_menus_must_exist():
    with pytest.raises(InvalidParameter, match="takes a mechanism"):
        audit("Laplace")
    with pytest.raises(InvalidParameter, match="has no default messages"):
        audit(FreeBelowZero())


@pytest.mark.long
@pytest.mark.statistical
def test_ten_million_games_of_a_vectorised_mechanism_are_a_matter_of_seconds():
    found = audit(Laplace(1), samples=10**7, confidence=SURE)
    assert found.judge() is Verdict.UNDECIDED and found.epsilon > 0.99

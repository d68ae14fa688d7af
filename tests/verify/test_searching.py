"""What an audit searches with: scripts that play the game, views that are alike in every batch, coins drawn ahead."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from counterpoint import Counter, Laplace, SparseVector, relations
from counterpoint.coins import SeededCoins
from counterpoint.coins.coins import Coins
from counterpoint.errors import InvalidParameter
from counterpoint.mechanisms import Ask, Update
from counterpoint.mechanisms.partition_selection import PartitionSelection
from counterpoint.verify.audits.audit import audit
from counterpoint.verify.audits.events import NAMES, Aim, Weights, columns, joined, learn, seen
from counterpoint.verify.audits.players import DrawnAhead, Script, Strategist
from counterpoint.verify.audits.search import changed, first_scripts
from counterpoint.verify.exact_loss import exact
from counterpoint.verify.finite import OpenDoor
from counterpoint.verify.game import Game
from counterpoint.verify.message_pairs import message_pairs

UP, DOWN = (Ask(private=0), Ask(private=1)), (Ask(private=1), Ask(private=0))
AIM = Aim(delta=0.0, width=3.0, trials=10_000)


def played(script, mechanism, relation, bit, coins):
    """One game of a script, by the definition of the game."""
    game = Game(mechanism, bit, relation)
    state, answers = game.start(coins), []
    for pair in script:
        state, answer = game.step(state, *pair, coins)
        answers.append(answer)
    return tuple(answers)


@pytest.mark.parametrize("bit", [0, 1])
@pytest.mark.parametrize(
    ("mechanism", "script", "relation"),
    [
        (SparseVector(1, 0, hits=2), [UP, UP, DOWN, DOWN, UP], None),
        (Laplace(1), [UP, UP], None),
        (Laplace(1, asks=3), [UP, (Ask(private=0), Ask(private=5)), UP], None),
        (Laplace(1, asks=3), [UP, UP, UP], relations.Steps(asks=1)),
        (Counter(1, horizon=2), [(Update(0), Update(1)), (Ask(), Ask()), (Update(1), Update(0))], None),
        (OpenDoor("1/2"), [(Ask("x", 0), Ask("y", 0)), UP], None),
    ],
    ids=["sparse vector", "halted", "invalid pair", "narrow relation", "counter", "nothing valid"],
)
def test_a_script_plays_the_game_as_it_is_defined(mechanism, script, relation, bit):
    """The verifier's part is done once for all games: answer for answer, on equal coins, that is the same game."""
    coins, again = SeededCoins(3), SeededCoins(3)
    found = Script(tuple(script)).games(mechanism, relation, bit, 200, coins)
    expected = columns([played(script, mechanism, relation, bit, again) for _ in range(200)], len(script))
    assert found.keys() == expected.keys()
    assert all((found[name] == expected[name]).all() for name in found)


def test_draws_ahead_are_those_of_a_vector_and_each_is_given_once():
    ahead, plain = DrawnAhead(SeededCoins(1)), SeededCoins(1)
    assert isinstance(ahead, Coins)
    drawn = [ahead.discrete_laplace(10) for _ in range(1000)] + list(ahead.discrete_laplace(10, size=24))
    assert drawn == list(plain.discrete_laplace(10, size=1024))
    assert [ahead.discrete_laplace(10)] == list(plain.discrete_laplace(10, size=1024)[:1]), "then a new vector"
    assert ahead.call(lambda n, coins: coins.discrete_gaussian(n), 9) == plain.discrete_gaussian(9, size=1024)[0]
    assert list(ahead.geometric(3, size=100)) == list(plain.geometric(3, size=100)), "wide ones are drawn as they are"
    assert ahead.bernoulli(1) and ahead.logistic(800) and ahead.integer(1) == 0 and ahead.choose([800, 0]) == 1
    assert len(ahead.discrete_laplace(10, size=0)) == 0


answers = st.one_of(
    st.none(), st.booleans(), st.integers(-(10**25), 10**25), st.text(max_size=2), st.tuples(st.integers(), st.none())
)


@settings(max_examples=60)
@given(st.lists(st.tuples(answers, answers), min_size=2, max_size=12), st.integers(1, 11))
def test_a_game_is_seen_alike_whatever_games_are_seen_with_it(games, at):
    """Else an event could tell two batches apart instead of two worlds."""
    together, apart = columns(games, 2), joined([columns(part, 2) for part in (games[:at], games[at:]) if part])
    for name in {*together, *apart}:
        assert (seen(together, name) == seen(apart, name)).all()


def test_what_is_no_number_is_named_below_all_numbers():
    views = columns([("halt", 5), (True, (7, "x")), (-(10**30), None)], 2)
    assert views["answer 1"][0] < NAMES < views["answer 1"][2] < views["answer 1"][1] == 1
    assert views["answer 2, place 1"].tolist() == [NAMES, 7, NAMES] and "answer 2, place 2" not in views


def test_answers_that_tell_little_each_tell_much_together():
    """Twelve coins, each with a bias of 1/8 that depends on the world: no single one shows what their weight shows."""
    rng = np.random.default_rng(1)
    worlds = [
        {f"answer {n + 1}": (rng.random(8000) < 0.5 + sign / 8).astype(np.int64) for n in range(12)} for sign in (1, -1)
    ]
    ordering, choosing = [tuple({k: v[half::2] for k, v in world.items()} for world in worlds) for half in (0, 1)]
    found = learn(ordering, choosing, AIM)
    assert found.event.weights is not None and found.score > 1.5 > np.log(0.625 / 0.375)
    assert str(found.event).startswith("weight of the answers at ")
    fresh = found.event.holds(worlds[found.bit]).mean(), found.event.holds(worlds[1 - found.bit]).mean()
    assert np.log(fresh[0] / fresh[1]) > 1.5
    assert Weights.learned(ordering).column({"answer 1": np.array([9])}).tolist() == [0], "what was never seen"


def test_the_search_begins_with_simple_scripts_and_changes_any_round():
    first = [
        script.moves for script in first_scripts(message_pairs(SparseVector(1, 0)).pairs, 5, relations.every_step())
    ]
    assert (0, 0, 0, 0, 0) in first and (0, 1, 1, 1, 1) in first and (0, 0, 0, 0, 1) not in first
    near = set(changed((0, 1, 1), 2))
    assert {(0, 0, 1), (1, 1, 1), (0, 1, 0), (0, 0, 0)} <= near and (0, 1, 1) not in near
    reached, waiting = {(0, 0, 0)}, [(0, 0, 0)]
    while waiting:
        fresh = set(changed(waiting.pop(), 3)) - reached
        reached |= fresh
        waiting += fresh
    assert len(reached) == 27, "every script can be reached from any other"


def test_only_valid_scripts_are_tried():
    pairs = message_pairs(Counter(1, horizon=3)).pairs
    one_update = Counter(1, horizon=3).claim.relation
    scripts = first_scripts(pairs, 4, one_update)
    assert scripts and all(one_update.valid([pairs[move] for move in script.moves]) for script in scripts)
    only_once = relations.Predicate("one message", lambda pairs: len(pairs) == 1)
    with pytest.raises(InvalidParameter, match="no sequence of 3 of these messages"):
        first_scripts([UP], 3, only_once)


def test_games_of_different_lengths_fit_together():
    """An adversary who sometimes stops early: her columns are those of her longest game, in every batch."""
    spy = Strategist(exact(OpenDoor("1/4"), rounds=2).adversary)
    batches = [spy.games(OpenDoor("1/4"), None, 1, 3, SeededCoins(seed)) for seed in range(12)]
    assert spy.adversary.rounds == 2 and all("answer 2" in views for views in batches)


def test_keys_are_selected_in_an_audit():
    found = audit(PartitionSelection(1, "0.01"), samples=2_000, coins=SeededCoins(1))
    assert "{'key': " in str(found) and found.epsilon <= 1


def test_an_audit_is_repeatable():
    first, again = (str(audit(SparseVector(4, 0), samples=4_000, coins=SeededCoins(5))) for _ in range(2))
    assert first == again

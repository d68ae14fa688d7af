"""Live tables verified exactly: the claims of mechanisms hold on them against every adversary that sends updates and
asks in any order, and planted faults are refuted.
"""

import pytest
from tests.verify.live_games import LAST, CellBits, LiveGame, asking, differing, equal

import counterpoint as cp
from counterpoint.verify.exact_loss import exact
from counterpoint.verify.verdict import Verdict


def judged(game, messages, rounds):
    return exact(game, messages=messages, rounds=rounds).judge()


MESSAGES = {
    "unit": [*differing(1, 2, 4), *equal(5)],
    "event": [*differing(2, 4), *equal(1, 5)],
}
"""At unit level all updates of ann do nothing in the other world, at event level one."""


@pytest.mark.parametrize("protects", MESSAGES)
def test_noise_on_a_histogram_covers_what_updates_can_change(protects):
    loss = exact(LiveGame(CellBits(), protects), messages=[*MESSAGES[protects], *asking("histogram")], rounds=4)
    assert loss.judge() is Verdict.HOLDS and loss.judge(cp.PureDP("0.99")) is Verdict.REFUTED


@pytest.mark.parametrize("protects", MESSAGES)
def test_a_sparse_vector_between_updates_stays_within_its_claim(protects):
    game = LiveGame(cp.SparseVector(1, threshold=1), protects)
    loss = exact(game, messages=[*MESSAGES[protects], *asking("a", "b")], rounds=4)
    assert loss.judge() is Verdict.HOLDS and loss.epsilon_at(0) > 0.2


def test_counts_of_a_live_table_move_one_way_at_unit_level():
    """So half the noise is enough: `monotone=True`, in any interleaving of updates and asks."""
    game = LiveGame(cp.SparseVector(1, threshold=1, monotone=True), "unit")
    assert judged(game, [*differing(1, 2), *asking("a", "b")], 4) is Verdict.HOLDS


FAULTS = {
    "a cap that looks at other units": (
        LiveGame(CellBits(), "unit", bug="one cap for all"),
        [*differing(1), *equal(5), *asking("histogram")],
        3,
    ),
    "keys that units share": (
        LiveGame(CellBits(), "unit", bug="keys for all"),
        [*differing(1), *equal(5), *asking("histogram")],
        3,
    ),
    "a removal that tells whether there was a row": (
        LiveGame(CellBits(), "unit"),
        [*differing(1, 4), *asking(LAST)],
        3,
    ),
    "a replaced row that counts as an added one": (
        LiveGame(CellBits(), "event", bug="unit facts"),
        [*differing(2), *equal(1), *asking("histogram")],
        3,
    ),
    "one way where rows are replaced": (
        LiveGame(cp.SparseVector(1, threshold=1, monotone=True), "event", bug="unit facts"),
        [*differing(2), *equal(1), *asking("a", "b")],
        5,
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_planted_faults_are_refuted(fault):
    assert judged(*FAULTS[fault]) is Verdict.REFUTED


@pytest.mark.parametrize("fault", ["a cap that looks at other units", "keys that units share"])
def test_the_same_games_without_the_fault_hold(fault):
    game, messages, rounds = FAULTS[fault]
    assert judged(LiveGame(game.inner, game.protects), messages, rounds) is Verdict.HOLDS

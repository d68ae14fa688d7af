"""Planted bugs are found: each of these claims what the right thing claims, and is refuted with certainty."""

import pytest
from tests.verify.machines import Broken, Peeking, Reused

from counterpoint import ApproxDP, BudgetExceeded, Filter, PureDP
from counterpoint.composition.filters import Filter as Right
from counterpoint.composition.rule import Rule
from counterpoint.encoding import Value
from counterpoint.measures.loss import Loss
from counterpoint.mechanisms import Ask
from counterpoint.verify.catalogue.instances import session_game
from counterpoint.verify.exact_loss import exact
from counterpoint.verify.message_pairs import asks
from counterpoint.verify.verdict import Verdict

BOTH_WAYS = asks([(k, k + d) if d > 0 else (k + 1, k) for k in (0, 2) for d in (1, -1)])
SVT_BUGS = ["noise halved", "threshold redrawn", "no query noise", "goes on after a hit", "tells the noisy value"]


@pytest.mark.parametrize("bug", SVT_BUGS)
def test_every_wrong_sparse_vector_is_refuted(bug):
    rounds = 4 if bug == "tells the noisy value" else 9 if bug == "threshold redrawn" else 6
    loss = exact(Broken(bug), messages=BOTH_WAYS[2:] if rounds > 4 else BOTH_WAYS, rounds=rounds, cut="1e-9")
    assert loss.judge(PureDP(1)) is Verdict.REFUTED


def test_the_same_program_without_a_bug_is_not_refuted():
    loss = exact(Broken("none"), messages=BOTH_WAYS[2:], rounds=6)
    assert loss.judge(PureDP(1)) is Verdict.HOLDS


def test_a_leak_and_reused_seeds_are_refuted():
    assert exact(Peeking(), messages=asks([(5, 6)]), rounds=1).judge() is Verdict.REFUTED
    assert exact(Reused(), messages=asks([(0, 1), (0, 0)]), rounds=2).judge() is Verdict.REFUTED


class Wrong(Rule, Value, frozen=True):
    """A filter with a bug: what it admits is decided by `bug`, what it promises by the budget."""

    budget: Loss
    bug: str

    @property
    def right(self):
        return Right(self.budget)

    def promise(self, relation):
        return self.right.promise(relation)

    def bound(self, relation):
        return self.right.bound(relation)

    def start(self):
        return self.right.start()

    def admit(self, account, claim):
        if self.bug == "flipped":
            try:
                after = self.right.admit(account, claim)
            except BudgetExceeded:
                return account
            raise BudgetExceeded(f"admitted by the right filter: {after!r}")
        if self.bug == "not charged on one path" and claim.loss.epsilon_at(0) < 0.3:
            self.right.admit(account, claim)
            return account
        return self.right.admit(account, claim)

    def loss(self, account):
        return self.right.loss(account)

    def certificate(self, account):
        return self.right.certificate(account)


@pytest.mark.parametrize("bug", ["flipped", "not charged on one path"])
def test_a_wrong_filter_is_refuted(bug):
    menu = [PureDP("0.2"), PureDP("0.5"), PureDP("1.2")]
    assert exact(session_game(Wrong(PureDP(1), bug), menu, 6)).judge(PureDP(1)) is Verdict.REFUTED
    assert exact(session_game(Wrong(PureDP(1), "none"), menu, 6)).judge(PureDP(1)) is Verdict.HOLDS


def test_no_analyst_of_a_filter_gets_beyond_its_budget_and_one_uses_it():
    menu = [PureDP("0.1"), PureDP("0.4"), ApproxDP("0.5", "1/200"), ApproxDP(0, "1/100")]
    budget = ApproxDP(1, "1/20")
    worst = {}
    for by in ("basic", "advanced", "renyi", "gaussian"):
        loss = exact(session_game(Filter(budget, by=by), menu, 6))
        assert loss.judge(budget) is Verdict.HOLDS
        worst[by] = loss.delta_at(1)
    assert max(worst.values()) > 0.3 / 20


def test_a_session_game_takes_only_what_answers_once():
    from counterpoint import Laplace, zCDP
    from counterpoint.errors import InvalidParameter, NotCovered

    with pytest.raises(NotCovered):
        session_game(Filter(PureDP(1)), [Laplace(1, asks=2)], 2)
    for menu in ([], [zCDP(1)], ["x"]):
        with pytest.raises(InvalidParameter):
            session_game(Filter(PureDP(1)), menu, 2)
    game = session_game(Filter(PureDP(1)), [PureDP(1)], 2)
    assert not game.accepts(Ask(1, 0)) and not game.accepts(Ask("x", 0)) and not game.accepts(None)

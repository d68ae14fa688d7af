"""A state machine against a ten-line model, and planted bugs that the suite must find."""

import os
import tempfile
from fractions import Fraction

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, rule
from tests.ledger.crashes import judge
from tests.ledger.places import DATA, Place
from tests.ledger.test_ledger import (
    test_a_step_that_raises_is_finished_first_by_whoever_comes_next_on_the_same_coins as finished_from_its_seed,
)
from tests.session.numbers_source import Numbers

import counterpoint as cp
from counterpoint.errors import BudgetExceeded, Halted, InvalidRequest, LedgerError, RequestConflict
from counterpoint.ledger import durable
from counterpoint.ledger import sealed_transaction as sealed
from counterpoint.ledger.commands import Admission
from counterpoint.ledger.sealed_rows import stored_row
from counterpoint.ledger.state import LaunchRecord, Lookups
from counterpoint.session import runner as engine
from counterpoint.session import step as stepping


class Model:
    """What a ledger is: a budget, what was launched, and what was said. Noise aside, nothing else."""

    def __init__(self):
        self.spent, self.left, self.said = Fraction(0), [], {}

    def launch(self, name, cost, asks):
        if name not in self.said:
            if self.spent + cost > 1:
                return BudgetExceeded
            self.spent, self.left, self.said[name] = self.spent + cost, [*self.left, asks], (cost, len(self.left))
        return None if self.said[name][0] == cost else RequestConflict

    def ask(self, name, handle, what):
        if name not in self.said:
            if not self.left[handle]:
                return Halted
            self.left[handle] -= 1
            self.said[name] = ((handle, what), None)
        return None if self.said[name][0] == (handle, what) else RequestConflict


class Flaky(Numbers):
    broken = False

    def resolve(self, pin, prepared):
        if self.broken:
            raise InvalidRequest("the data cannot be reached")
        return super().resolve(pin, prepared)


costs = st.sampled_from([Fraction(1, 3), Fraction(1, 7), Fraction(1, 20)])


class Ledgers(RuleBasedStateMachine):
    kind = "memory"
    handles = Bundle("handles")

    def __init__(self):
        super().__init__()
        self.home = tempfile.TemporaryDirectory()
        self.place, self.model, self.source = Place(self.kind, self.home.name), Model(), Flaky(DATA)
        self.session = self.place.session(source=self.source)

    def teardown(self):
        self.session._engine.ledger.verify()
        self.session.close()
        self.home.cleanup()

    def same(self, expected, deed):
        if expected is None:
            return deed()
        with pytest.raises(expected):
            deed()
        return None

    @rule(target=handles, name=st.sampled_from(["a", "b", "c", "d"]), cost=costs, asks=st.integers(1, 3))
    def launch(self, name, cost, asks):
        asks = {Fraction(1, 3): 1, Fraction(1, 7): 2, Fraction(1, 20): 3}[cost]
        made = self.same(
            self.model.launch(name, cost, asks), lambda: self.session.launch(cp.Laplace(cost, asks=asks), id=name)
        )
        if made is None:
            return 0
        assert made.path == (self.model.said[name][1],)
        return made.path[0]

    @rule(handle=handles, name=st.sampled_from("123456"), what=st.sampled_from(sorted(DATA)), fails=st.booleans())
    def ask(self, handle, name, what, fails):
        if handle >= len(self.model.left):
            return
        new = name not in self.model.said
        expected = self.model.ask(name, handle, what)
        at = self.session.at((handle,))
        self.source.broken = fails
        if fails and new and expected is None:
            with pytest.raises(InvalidRequest):
                at.ask(what, id=name)
        self.source.broken = False
        answer = self.same(expected, lambda: at.ask(what, id=name))
        if expected is None:
            body, before = self.model.said[name]
            assert before in (None, answer), "the same id, the same answer"
            self.model.said[name] = (body, answer)

    @rule()
    def restart(self):
        self.session.close()
        self.session = self.place.reopened(source=self.source)

    @invariant()
    def the_account_is_right(self):
        assert self.session.loss == cp.PureDP(self.model.spent)


class SqliteLedgers(Ledgers):
    kind = "sqlite"


class PostgresLedgers(Ledgers):
    kind = "postgres"


TestMemory = Ledgers.TestCase
TestMemory.settings = settings(max_examples=25, stateful_step_count=25, deadline=None)
TestSqlite = SqliteLedgers.TestCase
TestSqlite.settings = settings(max_examples=12, stateful_step_count=20, deadline=None)
TestPostgres = PostgresLedgers.TestCase
TestPostgres.settings = settings(max_examples=5, stateful_step_count=20, deadline=None)


def crashes(place):
    """The parts of the crash suite that planted bugs must fall over: each asks at a point where one shows."""
    for home, point in enumerate((12, 16, 20, 24)):
        (place.home / str(home)).mkdir()
        judge(Place("sqlite", place.home / str(home)), point)


class NeverStarts(cp.Laplace, frozen=True):
    def start(self, coins):
        raise InvalidRequest("not today")


def failing_start(place):
    with place.session() as s:
        with pytest.raises(InvalidRequest):
            s.launch(NeverStarts(0.5), id="L")
        assert s.loss == cp.PureDP(0.5), "never refunded"
        s._engine.ledger.verify()


def fresh_noise(monkeypatch):
    """Noise is drawn anew when a request is finished."""
    monkeypatch.setattr(stepping, "StepCoins", lambda intent: cp.coins.SecureCoins(os.urandom(32)))


def forgotten_ids(monkeypatch):
    """A request that is tried again is a new request."""
    monkeypatch.setattr(engine.Engine, "_own", lambda self, given, session: None)


def release_before_commit(monkeypatch):
    """An answer is let out, and stored along with the next request."""
    late = []
    settle = durable.DurableLedger.settle

    def soon(self, intent, row, answer):
        for earlier in late:
            settle(self, *earlier)
        late[:] = [(intent, row, answer)] if row.version else []
        return answer if row.version else settle(self, intent, row, answer)

    monkeypatch.setattr(durable.DurableLedger, "settle", soon)


def charge_after_answer(monkeypatch):
    """The account is charged when the launch is settled, not before."""
    begin, settle = sealed.SealedTransaction.begin, sealed.SealedTransaction.settle
    owed = {}

    def free(self, request, body, fact, plan):
        if fact.kind == "launch":
            owed[request] = (fact.path, plan.charged)
            plan = Admission(plan.path, plan.version, plan.pin)
        return begin(self, request, body, fact, plan)

    def pays(self, intent, outcome):
        if intent.request in owed:
            self.changes.put_row(stored_row(*owed.pop(intent.request), self._sealer.keys))
        return settle(self, intent, outcome)

    monkeypatch.setattr(sealed.SealedTransaction, "begin", free)
    monkeypatch.setattr(sealed.SealedTransaction, "settle", pays)


class PayBack:
    """A job that puts a row back as it was."""

    def __init__(self, path, row):
        self.path, self.row = path, row

    def looks_up(self):
        return Lookups()

    def run(self, records):
        records.changes.put_row(stored_row(self.path, self.row, records._sealer.keys))
        records.changes.append("keys", "", (), "", "")


def refund_on_error(monkeypatch):
    """A launch that fails gives the money back."""
    launch = engine.Engine.launch

    def kind(self, parent, *rest, **more):
        before = self.ledger.read(parent)
        try:
            return launch(self, parent, *rest, **more)
        except InvalidRequest:
            after = LaunchRecord(before.mechanism, before.state, before.version + 2, before.cursor, before.by)
            self.ledger.transact(PayBack(parent, after))
            raise

    monkeypatch.setattr(engine.Engine, "launch", kind)


def test_the_suite_passes_without_a_bug(tmp_path):
    crashes(Place("sqlite", tmp_path))
    (tmp_path / "more").mkdir()
    failing_start(Place("sqlite", tmp_path / "more"))


@pytest.mark.parametrize(
    ("bug", "suite"),
    [
        (fresh_noise, finished_from_its_seed),
        (forgotten_ids, crashes),
        (release_before_commit, crashes),
        (charge_after_answer, crashes),
        (refund_on_error, failing_start),
    ],
    ids=lambda thing: thing.__name__,
)
def test_planted_bugs_are_found(bug, suite, tmp_path, monkeypatch):
    bug(monkeypatch)
    with pytest.raises((AssertionError, LedgerError)):
        suite(Place("sqlite", tmp_path))

"""One suite for every ledger: what a session may rely on, in memory, in SQLite and in PostgreSQL."""

import contextlib
import threading

import pytest
from tests.ledger.places import DATA, Place
from tests.ledger.wanting import Known, Question
from tests.session.numbers_source import Numbers

import counterpoint as cp
from counterpoint.encoding import encode
from counterpoint.errors import (
    BudgetExceeded,
    DataChanged,
    Halted,
    InvalidParameter,
    InvalidRequest,
    LedgerError,
    RequestConflict,
)
from counterpoint.ledger import sealed_transaction as sealed
from counterpoint.ledger.ledger import Intent, StoredAnswer
from counterpoint.ledger.state import LaunchRecord, SessionState
from counterpoint.mechanisms.concurrent import Concurrent


def test_launching_charges_once_and_asking_never(place):
    with place.session() as s:
        noisy = s.launch(cp.Laplace(0.4, asks=3))
        assert s.loss == cp.PureDP(0.4)
        answers = [noisy.ask("apples") for _ in range(3)]
        assert s.loss == cp.PureDP(0.4) and all(isinstance(answer, int) for answer in answers) and noisy.halted
        with pytest.raises(Halted):
            noisy.ask("apples")
        s._engine.ledger.verify()


def test_a_refusal_changes_nothing_and_leaves_no_gap(place):
    with place.session() as s:
        s.launch(cp.Laplace(0.6))
        before = encode(s._engine.ledger.read(()), sealed=True)
        with pytest.raises(BudgetExceeded) as caught:
            s.launch(cp.Laplace(0.6), id="too much")
        assert caught.value.would_fit == cp.PureDP(0.4)
        assert encode(s._engine.ledger.read(()), sealed=True) == before
        assert s.launch(cp.Laplace(0.4), id="too much").path == (1,), "a refused id is not used up"
        s._engine.ledger.verify()


def test_the_same_id_gets_the_same_answer_and_another_body_is_a_conflict(place):
    with place.session() as s:
        noisy = s.launch(cp.Laplace("0.01", asks=9), id="L")
        assert s.launch(cp.Laplace("0.01", asks=9), id="L").path == noisy.path and s.loss == cp.PureDP("0.01")
        first = noisy.ask("apples", id="q1")
        assert all(noisy.ask("apples", id="q1") == first for _ in range(5))
        for conflicting in (lambda: noisy.ask("beans", id="q1"), lambda: s.launch(cp.Laplace("0.02"), id="L")):
            with pytest.raises(RequestConflict):
                conflicting()
        assert len({noisy.ask("apples") for _ in range(8)}) > 1, "other ids draw other noise"
        with pytest.raises(Halted):
            noisy.ask("apples", id="q2")
        assert noisy.ask("apples", id="q1") == first, "for ever, even after the halt"
        s._engine.ledger.verify()


@pytest.mark.parametrize("bad", [7, "", "x" * 300, b"q", True, "nul\0", "half a character \ud800"])
def test_a_request_id_is_a_short_string(place, bad):
    with place.session() as s:
        noisy = s.launch(cp.Laplace(0.1))
        for deed in (lambda: s.launch(cp.Laplace(0.1), id=bad), lambda: noisy.ask("apples", id=bad)):
            with pytest.raises(InvalidParameter, match="request id"):
                deed()
        assert s.loss == cp.PureDP(0.1) and isinstance(noisy.ask("apples"), int), "and the ledger goes on"


@pytest.mark.parametrize("bad", ["", "x" * 300, 7, "nul\0", "half a character \ud800"])
def test_a_sessions_name_is_a_short_string(lasting, bad):
    with pytest.raises(InvalidParameter, match="session's name"):
        lasting.session(name=bad)


class Flaky(Numbers):
    """A source that cannot be reached now and then."""

    broken = False

    def resolve(self, pin, prepared):
        if self.broken:
            raise InvalidRequest("the data cannot be reached")
        return super().resolve(pin, prepared)


def test_a_step_that_raises_is_finished_first_by_whoever_comes_next_on_the_same_coins(place):
    source = Flaky(DATA)
    with place.session(source=source) as s:
        noisy = s.launch(cp.Laplace("0.001", asks=3))
        source.broken = True
        with pytest.raises(InvalidRequest):
            noisy.ask("apples", id="first")
        (left,) = s._engine.ledger.opened()
        with pytest.raises(LedgerError, match="first"):
            noisy.ask("beans", id="second")
        assert [intent.request for intent in s._engine.ledger.opened()] == ["() first"], "one open intent per handle"
        source.broken = False
        noisy.ask("beans", id="second")
        assert not s._engine.ledger.opened()
        told = noisy.ask("apples", id="first")
        assert told == replayed(left), "from the seed on record"
        row = s._engine.ledger.read(noisy.path)
        assert row.version == 2, "two steps, each made once"
        s._engine.ledger.verify()


def replayed(intent):
    from counterpoint.session.step import StepCoins

    _, answer = intent.row.mechanism.step(intent.row.state, cp.mechanisms.Ask(None, DATA["apples"]), StepCoins(intent))
    return answer


class Breaking(cp.Laplace, frozen=True):
    """A Laplace mechanism whose start fails until told otherwise."""

    def start(self, coins):
        if Switch.broken:
            raise InvalidRequest("not today")
        return super().start(coins)


class Switch:
    broken = False


def test_a_launch_that_fails_stays_charged_and_is_finished_by_its_id(place, monkeypatch):
    with place.session() as s:
        monkeypatch.setattr(Switch, "broken", True)
        with pytest.raises(InvalidRequest):
            s.launch(Breaking(0.5), id="L")
        assert s.loss == cp.PureDP(0.5), "never refunded"
        assert s.at((0,)) is None and s.handles == ()
        monkeypatch.setattr(Switch, "broken", False)
        assert s.launch(Breaking(0.5), id="L").path == (0,) and s.loss == cp.PureDP(0.5)
        assert isinstance(s.at((0,)).ask("apples"), int)


def test_a_mechanism_that_could_not_be_read_back_is_refused_by_what_lasts(lasting):
    class Homeless(cp.Laplace, frozen=True):
        """Has no place of its own, so nobody could find it again."""

    class HomelessFilter(cp.Filter, frozen=True):
        """Nor has this one."""

    with contextlib.closing(lasting.ledger()) as ledger, pytest.raises(InvalidParameter, match="HomelessFilter"):
        cp.Session(lasting.source, rule=HomelessFilter(cp.PureDP(1)), ledger=ledger)
    with lasting.session() as s:
        for cost in (0.5, 5):  # a refusal of it, which would be on record, could not be verified either
            with pytest.raises(InvalidParameter, match="Homeless"):
                s.launch(Homeless(cost))
        assert s.loss == cp.PureDP(0)
        s._engine.ledger.verify()


def test_settling_twice_gives_what_is_on_record_and_settling_late_is_refused(place):
    with place.session() as s:
        ledger = s._engine.ledger
        noisy = s.launch(cp.Laplace(0.5, asks=4))
        row = ledger.read(noisy.path)
        intent = ledger.begin("q", Question(noisy.path))
        assert isinstance(intent, Intent) and intent.row.state == row.state
        again = ledger.begin("q", Known(noisy.path))
        assert again.seed == intent.seed and again.version == intent.version
        other = ledger.begin("r", Known(noisy.path, b"[1]"))
        assert other.request == "q"
        after = LaunchRecord(row.mechanism, row.state, row.version + 1, "v1")
        assert ledger.settle(intent, after, 41) == 41
        assert ledger.settle(intent, after, 42) == 41, "the first one counts"
        done = ledger.begin("q", Known(noisy.path))
        assert isinstance(done, StoredAnswer) and done.answer == 41
        unasked = Intent("unasked", b'"body"', noisy.path, row.version + 1, "v1", bytes(32))
        with pytest.raises(LedgerError, match="never made"):
            ledger.settle(unasked, LaunchRecord(row.mechanism, row.state, row.version + 2, "v1"), 44)
        late = ledger.begin("late", Question(noisy.path, version=row.version))
        with pytest.raises(LedgerError, match="moved on"):
            ledger.settle(late, after, 43)
        assert ledger.read(noisy.path).version == row.version + 1


def test_everything_is_found_again_by_its_path(place):
    s = place.session(cp.ApproxDP(1, 1e-6))
    svt = s.launch(cp.SparseVector(epsilon="0.2", threshold=50))
    parts = s.partition("letter", k=1, within=cp.ApproxDP("0.2", "1e-7"))
    west = parts["a"].launch(cp.Laplace("0.2", asks=3))
    friend = s.delegate(cp.ApproxDP("0.1", "1e-8"))
    inner = friend.launch(cp.Laplace("0.1", asks=3), id="inner")
    told = {"svt": svt.ask("beans", id="1"), "west": west.ask("apples", id="2"), "inner": inner.ask("beans", id="3")}
    losses = (s.loss, parts["a"].loss, friend.loss)
    s.close()
    s = place.reopened()
    assert [handle.path for handle in s.handles] == [svt.path]
    assert s.at(svt.path).ask("beans", id="1") == told["svt"]
    assert s.at(west.path).ask("apples", id="2") == told["west"]
    assert s.at(inner.path).ask("beans", id="3") == told["inner"]
    again, friend = s.at(parts._path), s.at(friend._path)
    assert (s.loss, again["a"].loss, friend.loss) == losses
    assert friend.launch(cp.Laplace("0.1", asks=3), id="inner").path == inner.path
    assert isinstance(again["b"].launch(cp.Laplace("0.2")).ask("beans"), int)
    assert s.at((9,)) is None and s.at(()) is s
    with pytest.raises(BudgetExceeded):
        s.launch(cp.Laplace("0.9"))
    s._engine.ledger.verify()
    s.close()


def test_states_go_on_where_they_were(place):
    """A sparse vector halts after its hit, whenever it was restarted."""
    s = place.session(cp.PureDP(10**6))
    svt = s.launch(cp.SparseVector(epsilon=10**5, threshold=50, hits=1))
    assert svt.ask("beans") is False
    s.close()
    s = place.reopened()
    svt = s.at((0,))
    assert svt.ask("apples") is True and svt.halted
    s.close()
    s = place.reopened()
    assert s.at((0,)).halted
    with pytest.raises(Halted):
        s.at((0,)).ask("beans")
    s.close()


def test_a_sequential_session_stays_sequential(place):
    ledger = place.ledger()
    s = cp.Session(Numbers(DATA), cp.PureDP(1), ledger=ledger, sequential=True)
    one = s.launch(cp.Laplace("0.1", asks=9))
    two = s.launch(cp.Laplace("0.1", asks=9))
    s.close()
    s = place.reopened()
    with pytest.raises(Halted, match="sequential"):
        s.at(one.path).ask("apples")
    assert isinstance(s.at(two.path).ask("apples"), int)
    s.close()


def test_the_history_is_public_and_in_order(place):
    with place.session() as s:
        noisy = s.launch(cp.Laplace(0.5, asks=2))
        noisy.ask("apples")
        s.delegate(cp.PureDP("0.1"))
        kinds = [fact.kind for fact in s.history if fact.kind != "data"]
        assert kinds == ["open", "launch", "ask", "delegation"]


def test_threads_share_a_budget_and_a_handle(place):
    with place.session(cp.PureDP("0.25")) as s:
        admitted, refused, answers = [], [], []
        noisy = s.launch(cp.Laplace("0.05", asks=30))

        def work():
            for _ in range(8):
                try:
                    admitted.append(s.launch(cp.Laplace("0.03")).path)
                except BudgetExceeded:
                    refused.append(1)
                with contextlib.suppress(Halted):
                    answers.append(noisy.ask("apples"))

        threads = [threading.Thread(target=work) for _ in range(8)]
        [thread.start() for thread in threads], [thread.join() for thread in threads]
        assert len(admitted) == len(set(admitted)) == 6 and len(refused) == 58 and len(answers) == 30
        assert s.loss == cp.PureDP("0.23")
        s._engine.ledger.verify()


def test_two_sessions_in_one_ledger_keep_their_own_accounts(lasting):
    with lasting.session(name="one") as one, lasting.session(name="two") as two:
        one.launch(cp.Laplace(1), id="L")
        assert two.loss == cp.PureDP(0) and two.launch(cp.Laplace(0.5), id="L").path == (0,)
    with lasting.reopened(name="two") as two:
        assert two.loss == cp.PureDP(0.5)
    with pytest.raises(LedgerError, match="'one', 'two'"):
        lasting.reopened(name="three", existing=True)


def test_closing_twice_does_not_close_for_others(lasting):
    with lasting.session(name="one") as one:
        two = lasting.session(name="two")
        two.close(), two.close()
        assert isinstance(one.launch(cp.Laplace(0.5)).ask("apples"), int)
        with pytest.raises(cp.errors.NotAllowed, match="closed"):
            two.launch(cp.Laplace(0.5))


def test_making_a_session_again_resumes_it_and_another_rule_is_a_conflict(lasting):
    with lasting.session() as s:
        s.launch(cp.Laplace(0.7))
    with lasting.session() as s:
        assert s.loss == cp.PureDP(0.7), "a budget is not doubled by running a script twice"
    with pytest.raises(RequestConflict):
        lasting.session(cp.PureDP(2))


def test_changed_data_is_refused(lasting):
    class Other(Numbers):
        def pin(self):
            return "v2"

    with lasting.session() as s:
        noisy = s.launch(cp.Laplace(0.5, asks=2))
    with pytest.raises(DataChanged, match="another name"):
        lasting.reopened(source=Other(DATA))
    with lasting.reopened() as s:
        assert isinstance(s.at(noisy.path).ask("apples"), int), "and nothing is lost"


def test_data_that_cannot_be_known_again_is_refused_before_anything_is_charged(lasting):
    import duckdb

    rows = duckdb.connect().sql("SELECT i AS id, i % 50 AS age FROM range(100) AS t(i)")
    with pytest.raises(DataChanged, match="key="):
        lasting.session(source=cp.Table(rows, unit="id", rows_per_unit=1))


def test_a_table_is_known_by_its_rows_declaration_and_cut(lasting):
    import duckdb

    def people(n=100, **options):
        rows = duckdb.connect().sql(f"SELECT i // 2 AS id, i % 50 AS age, i % 4 AS grp FROM range({n}) AS t(i)")
        columns = {"age": cp.number(0, 60), "grp": cp.category([0, 1, 2, 3])}
        return cp.Table(rows, unit="id", rows_per_unit=2, columns=columns, key=b"k" * 32, **options)

    with lasting.session(cp.PureDP(10**6), source=people().spread("grp", 1)) as s:
        parts = s.partition("grp", k=1, within=cp.PureDP(10**5))
        total = parts[1].launch(cp.Laplace(10**5, asks=3))
        first = total.ask(cp.count(), id="q")
    for other in (people(), people(98).spread("grp", 1), people(neighbours="replace").spread("grp", 1)):
        with pytest.raises(DataChanged):
            lasting.reopened(source=other)
    with lasting.reopened(source=people().spread("grp", 1)) as s:
        assert s.at(total.path).ask(cp.count(), id="q") == first == s.at(total.path).ask(cp.count())


def test_what_another_sampler_began_is_not_finished_by_this_one(lasting, monkeypatch):
    s = lasting.session()
    noisy = s.launch(cp.Laplace("0.001", asks=3))
    with monkeypatch.context() as patch:
        patch.setattr(sealed, "SAMPLER_VERSION", 0)
        with pytest.raises(LedgerError, match="version 0 of the sampler"):
            noisy.ask("apples", id="begun")
    s.close()
    with lasting.reopened() as s:
        for name in ("begun", "another"):
            with pytest.raises(LedgerError, match="version 0 of the sampler"):
                s.at(noisy.path).ask("apples", id=name)
        assert s.loss == cp.PureDP("0.001") and isinstance(s.launch(cp.Laplace("0.1")).ask("apples"), int)


def test_a_process_of_a_replica_takes_over_at_any_ask(tmp_path):
    """Two connections to one PostgreSQL ledger, as two processes have them; the open intent of one is finished by the
    other, and both report the same answer."""
    here = Place("postgres", tmp_path)
    source = Flaky(DATA)
    with here.session(source=source) as one, here.reopened() as two:
        noisy = one.launch(cp.Laplace("0.001", asks=50))
        there = two.at(noisy.path)
        told = [noisy.ask("apples", id=f"a{n}") if n % 2 else there.ask("apples", id=f"a{n}") for n in range(10)]
        assert told == [(there if n % 2 else noisy).ask("apples", id=f"a{n}") for n in range(10)]
        source.broken = True
        with pytest.raises(InvalidRequest):
            noisy.ask("beans", id="stuck")
        there.ask("apples", id="next")
        finished = there.ask("beans", id="stuck")
        assert noisy.ask("beans", id="stuck") == finished and one.loss == two.loss == cp.PureDP("0.001")
        two._engine.ledger.verify()


def test_verification_replays_nodes_of_every_depth(lasting):
    with lasting.session() as s:
        friend = s.delegate(cp.PureDP("0.5")).delegate(cp.PureDP("0.25"))
        friend.launch(cp.Laplace("0.1"))
        row = s._engine.ledger.read((0, 0))
        assert isinstance(row.mechanism, Concurrent) and isinstance(row.state, SessionState) and row.state.launched == 1
        s._engine.ledger.verify()

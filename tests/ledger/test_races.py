"""Threads and processes that meet at the worst moment, and failures that must not spread."""

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import closing

import apsw
import psycopg
import pytest
from msgspec.structs import replace
from tests.ledger.crashes import in_child
from tests.ledger.places import DATA, Place, fresh_database
from tests.session.numbers_source import Numbers
from tests.sources import engines

import counterpoint as cp
from counterpoint.encoding import encode
from counterpoint.errors import (
    InvalidRequest,
    LedgerBusy,
    LedgerError,
    LedgerFailed,
    LedgerTampered,
    RequestConflict,
    UnknownSchema,
    Unsealable,
)
from counterpoint.ledger import places, schema, sqlite
from counterpoint.ledger.durable import DurableLedger, MasterKey
from counterpoint.ledger.ledger import Fact, Node, Plan, Row
from counterpoint.ledger.postgres import PostgresStore
from counterpoint.ledger.sqlite import SqliteStore
from counterpoint.ledger.witness import Witness
from counterpoint.mechanisms.concurrent import Concurrent
from counterpoint.session.engine import Engine


@pytest.fixture
def postgres(tmp_path):
    return Place("postgres", tmp_path)


def impatient(place, wait=0.05):
    """A session that does not wait long for others."""
    store = PostgresStore(place.url, lock_timeout=wait)
    ledger = DurableLedger(store, "session", MasterKey.from_file(place.key), Witness(place.home / "witness"))
    return cp.open(ledger, source=place.source)


def test_an_account_that_another_process_holds_is_busy_and_nothing_worse(postgres):
    """Nothing is known to have gone wrong, so nothing has to be opened again."""
    with postgres.session() as s:
        s.launch(cp.Laplace("0.01", asks=9))
    with impatient(postgres) as s, psycopg.connect(postgres.url) as other:
        other.execute("SET idle_in_transaction_session_timeout = '20s'")  # or whoever waits for ever would
        other.execute("SELECT * FROM counterpoint_book FOR UPDATE")
        for deed in (lambda: s.handles[0].ask("apples", id="q"), lambda: s.launch(cp.Laplace("0.1"), id="M")):
            for _ in range(2):
                with pytest.raises(LedgerBusy, match="too long"):
                    deed()
        assert s.loss == cp.PureDP("0.01"), "reading waits for nobody"
        other.rollback()
        assert isinstance(s.handles[0].ask("apples", id="q"), int)
        assert s.launch(cp.Laplace("0.1"), id="M").path == (1,) and s.loss == cp.PureDP("0.11")
        s._engine.ledger.verify()


def test_one_process_at_a_time_makes_the_tables(postgres):
    """Two that found none would both make them."""
    with psycopg.connect(postgres.url) as other:
        other.execute("SET idle_in_transaction_session_timeout = '20s'")
        other.execute("SELECT pg_advisory_xact_lock(%s)", (0x43506F69,))
        with pytest.raises(LedgerBusy):
            PostgresStore(postgres.url, lock_timeout=0.05)
    PostgresStore(postgres.url, lock_timeout=5).close()


def test_a_commit_is_on_disk_whatever_the_server_is_used_to():
    url = fresh_database()
    name = url.partition("?")[0].rpartition("/")[2]
    engines.execute(f"ALTER DATABASE {name} SET synchronous_commit = off")
    with closing(PostgresStore(url)) as store:
        assert store._run("SHOW synchronous_commit") == [("on",)]


def test_processes_wait_for_each_other_whatever_isolation_the_server_is_used_to(postgres):
    """Where a transaction sees the moment of its beginning, whoever had to wait would have looked too early."""
    postgres.session(cp.PureDP("0.25")).close()
    name = postgres.url.partition("?")[0].rpartition("/")[2]
    engines.execute(f"ALTER DATABASE {name} SET default_transaction_isolation = 'repeatable read'")
    with postgres.reopened() as one, postgres.reopened() as two:
        results = []

        def work(s):
            for _ in range(8):
                try:
                    results.append(s.launch(cp.Laplace("0.02")).path)
                except cp.CounterpointError as error:
                    results.append(type(error).__name__)

        threads = [threading.Thread(target=work, args=(s,)) for s in (one, two)]
        [thread.start() for thread in threads], [thread.join() for thread in threads]
        assert results.count("BudgetExceeded") == 4 and len(set(results)) == 13
        two._engine.ledger.verify()


def test_a_server_that_would_lose_commits_is_refused(postgres):
    """With fsync off a power cut loses what was answered, whatever this connection asks for."""
    engines.execute("ALTER SYSTEM SET fsync = off", "SELECT pg_reload_conf()")
    try:
        with pytest.raises(LedgerError, match="fsync off"):
            for _ in range(200):  # until the server has read its settings again
                PostgresStore(postgres.url).close()
    finally:
        engines.execute("ALTER SYSTEM RESET fsync", "SELECT pg_reload_conf()")


def test_a_database_without_a_ledger_is_left_as_it_is(postgres):
    with pytest.raises(LedgerError, match="no ledger"):
        cp.open(postgres.durable, source=postgres.source)
    assert postgres.sql("SELECT to_regclass('counterpoint_schema')") == [(None,)]


def test_databases_that_complain_are_not_quoted(lasting):
    """A server's words may hold what it was given: a sealed blob here, and what not elsewhere."""
    with lasting.session() as s:
        store = s._engine.ledger._store
        with pytest.raises(LedgerError) as caught:
            store._run("SELECT 'canary' FROM canary_table WHERE canary = ?", ("canary",))
        assert "canary" not in str(caught.value) and caught.value.__suppress_context__


def test_a_full_server_says_so(postgres):
    with closing(PostgresStore(postgres.url)) as store, pytest.raises(LedgerFailed, match="the disk is full"):
        store._refuse(psycopg.errors.DiskFull("canary"))


def test_a_damaged_file_is_a_clear_error(tmp_path):
    place = Place("sqlite", tmp_path)
    with place.session() as s:
        s.launch(cp.Laplace("0.1"))
    data = bytearray((tmp_path / "ledger.db").read_bytes())
    data[4096:] = os.urandom(len(data) - 4096)
    (tmp_path / "ledger.db").write_bytes(data)
    with pytest.raises(LedgerTampered, match="damaged"):
        place.reopened()


@pytest.mark.parametrize("version", ["3.50.0", "3.54.1"])
def test_without_lock_files_sqlites_own_lock_keeps_a_second_process_out(tmp_path, monkeypatch, version):
    """From the start on, in either journal mode: before the first has written anything, too."""
    monkeypatch.setattr(apsw, "sqlite_lib_version", lambda: version)
    monkeypatch.setattr(sqlite, "_taken", lambda path, wait: None)
    place = Place("sqlite", tmp_path)
    with place.session() as s:
        s.launch(cp.Laplace("0.01", asks=9))

    def work(say):
        try:
            SqliteStore(place.url, wait=0.05)
        except LedgerBusy:
            say("busy")

    with closing(place.ledger()):
        assert in_child(work) == (["busy"], True)
    with place.reopened() as s:
        assert isinstance(s.handles[0].ask("apples"), int)
        assert in_child(work) == (["busy"], True) and isinstance(s.handles[0].ask("apples"), int)


def test_the_lock_file_alone_keeps_a_second_process_out(tmp_path):
    """Before the database is touched: two that are inside it might wait for each other for ever."""
    held = sqlite._taken(str(tmp_path / "ledger.db.lock"), 0)

    def work(say):
        try:
            SqliteStore(tmp_path / "ledger.db", wait=0.05)
        except LedgerBusy:
            say("busy", (tmp_path / "ledger.db").exists())

    assert in_child(work) == (["busy False"], True)
    os.close(held)
    SqliteStore(tmp_path / "ledger.db", wait=0.05).close()


def test_a_store_that_cannot_be_set_up_lets_go_of_its_file(tmp_path):
    place = Place("sqlite", tmp_path)
    place.session().close()
    place.sql("PRAGMA user_version = 99")
    with pytest.raises(UnknownSchema):
        SqliteStore(place.url)
    place.sql(f"PRAGMA user_version = {schema.VERSION}")

    def work(say):
        SqliteStore(place.url, wait=0.05).close()
        say("open")

    assert in_child(work) == (["open"], True)


class Flaky(Numbers):
    broken = True

    def resolve(self, pin, prepared):
        if self.broken:
            raise InvalidRequest("the data cannot be reached")
        return super().resolve(pin, prepared)


def begun(place):
    """Two handles, each with a request that was begun and not finished."""
    with place.session(source=Flaky(DATA)) as s:
        for number in range(2):
            handle = s.launch(cp.Laplace("0.01", asks=9))
            with pytest.raises(InvalidRequest):
                handle.ask("apples", id=f"q{number}")
    return place


@pytest.fixture
def left_open(lasting):
    return begun(lasting)


def test_the_seed_of_another_request_does_not_open(left_open):
    """A request that was finished with the coins of another could be compared with it."""
    left_open.sql(
        "UPDATE counterpoint_request SET seed = (SELECT seed FROM counterpoint_request WHERE request = '() q0') "
        "WHERE request = '() q1'"
    )
    with left_open.reopened() as s:
        assert isinstance(s.handles[0].ask("apples", id="q0"), int)
        for name in ("q1", "next"):
            with pytest.raises(Unsealable):
                s.handles[1].ask("apples", id=name)
        assert s._engine.ledger.read((1,)).version == 0 and s.loss == cp.PureDP("0.02")


def test_a_state_opens_nowhere_else_and_at_no_other_version(postgres):
    """Put back or moved while the ledger is open, when nobody follows the chain."""
    with postgres.session(cp.PureDP(10**6)) as s:
        first, second = [s.launch(cp.SparseVector(epsilon=10**5, threshold=50, hits=9)) for _ in range(2)]
        keep = "SELECT version, sealed FROM counterpoint_row WHERE path = ?"
        ((version, old),) = postgres.sql(keep, "[0]")
        first.ask("beans"), second.ask("beans")
        put = "UPDATE counterpoint_row SET sealed = ? WHERE path = ?"
        (((_, now),), ((_, other),)) = postgres.sql(keep, "[0]"), postgres.sql(keep, "[1]")
        for wrong in (old, other):
            postgres.sql(put, wrong, "[0]")
            with pytest.raises(Unsealable, match="not what was sealed there"):
                first.ask("beans")
            assert first.halted
        postgres.sql(put, now, "[0]")
        assert first.ask("beans") is False and version == 0


def test_what_is_left_open_comes_in_the_order_in_which_it_was_begun(place):
    with place.session(source=Flaky(DATA)) as s:
        for name in ("b", "c", "a"):
            with pytest.raises(InvalidRequest):
                s.launch(cp.Laplace("0.01")).ask("apples", id=name)
        assert [intent.request for intent in s._engine.ledger.opened()] == ["() b", "() c", "() a"]


@pytest.mark.parametrize("again", ["opened", "made"])
def test_what_was_left_open_is_finished_at_the_next_start(left_open, again):
    with left_open.reopened() if again == "opened" else left_open.session() as s:
        assert s._engine.ledger.opened() == ()
        assert [s._engine.ledger.read(handle.path).version for handle in s.handles] == [1, 1]


def test_a_launch_finishes_first_what_is_open_in_its_session(place):
    """Else it would be started in the place of that, with its seed."""
    ledger = place.ledger()
    ledger.bind(place.source.fingerprint())
    composition = Concurrent(cp.Filter(cp.PureDP(1)), place.source.relation)
    root = Row(composition, Node(composition.rule.start()))
    body = encode(("open", composition, False))
    ledger.intent("root", body, Fact("open", (), ""), lambda read: Plan((), 0, charged=root))
    path = Engine(ledger).launch((), cp.Laplace("0.25"), place.source.relation)
    assert path == (0,) and ledger.opened() == ()
    assert ledger.read(()).state.launched == 1 and ledger.read((0,)).mechanism == cp.Laplace("0.25")
    ledger.verify()
    ledger.close()


def test_a_session_that_cannot_be_had_leaves_its_ledger_to_others(tmp_path):
    file = tmp_path / "ledger.db"
    cp.Session(Numbers(DATA), cp.PureDP(1), ledger=file).close()
    for deed in (
        lambda: cp.Session(Numbers(DATA), cp.PureDP(2), ledger=file),
        lambda: cp.open(file, source=cp.Stream(bound=1)),
        lambda: cp.open(file, "another", source=Numbers(DATA)),
    ):
        with pytest.raises(LedgerError):
            deed()

        def work(say):
            SqliteStore(file, wait=0.05).close()
            say("open")

        assert in_child(work) == (["open"], True)


def test_what_was_left_open_waits_for_the_right_key(left_open):
    right, left_open.key = left_open.key, left_open.home / "wrong.key"
    MasterKey.create(left_open.key)
    with left_open.reopened() as s:
        assert s.loss == cp.PureDP("0.02") and s._engine.ledger.opened() == ()
        with pytest.raises(Unsealable, match="KEY_FILE"):
            s.handles[0].ask("apples", id="q0")
        s._engine.ledger.verify()
    left_open.key = right
    with left_open.reopened() as s:
        assert all(isinstance(handle.ask("apples", id=f"q{n}"), int) for n, handle in enumerate(s.handles))


def test_what_is_taken_away_from_under_an_open_ledger_is_a_clear_error(postgres):
    begun(postgres)
    body = encode(("ask", (0,), postgres.source.prepare("apples"), None))
    with closing(postgres.ledger()) as ledger:
        postgres.sql("DELETE FROM counterpoint_entry WHERE number = 6")
        with pytest.raises(LedgerError, match="is missing"):
            ledger.intent("() q0", body, Fact("ask", (0,), ""), lambda read: pytest.fail("admitted twice"))
        postgres.sql("DELETE FROM counterpoint_book")
        with pytest.raises(LedgerError, match="no session"):
            ledger.intent("new", body, Fact("ask", (0,), ""), lambda read: pytest.fail("charged to no account"))


def test_a_witness_that_cannot_be_written_leaves_no_ledger_behind(lasting):
    """A book that its witness has never seen would be taken for one whose witness was taken away, for ever."""
    away = lasting.home / "not there yet"
    durable = cp.Durable(lasting.url, key_file=lasting.key, witness=away / "witness")
    with pytest.raises(LedgerFailed, match="witness"):
        cp.Session(lasting.source, cp.PureDP(1), ledger=durable)
    away.mkdir()
    with cp.Session(lasting.source, cp.PureDP(1), ledger=durable) as s:
        assert isinstance(s.launch(cp.Laplace("0.1")).ask("apples"), int)


def meeting(ledger, deed, meanwhile):
    """Let a thread wait for the desk with `deed`, do `meanwhile` there, and then let it go on: what it gets."""
    arrived, results = threading.Event(), []
    check = ledger._committer.check

    def noticed():
        check()
        arrived.set()

    ledger._committer.check = noticed

    def run():
        try:
            results.append(deed())
        except Exception as error:
            results.append(error)

    thread = threading.Thread(target=run)
    with ledger._store.desk:
        thread.start()
        assert arrived.wait(30)
        meanwhile()
    thread.join(30)
    return results[0]


@pytest.mark.parametrize("deed", ["read", "intent"])
def test_whoever_waited_for_a_ledger_that_was_closed_meanwhile_is_told_so(lasting, deed):
    lasting.session().close()
    with closing(lasting.ledger()) as other, closing(lasting.ledger()) as ledger:
        deeds = {
            "read": lambda: ledger.read(()),
            "intent": lambda: ledger.intent("q", b"[]", Fact("ask", (), ""), lambda read: pytest.fail("planned")),
        }
        told = meeting(ledger, deeds[deed], ledger.close)
        assert isinstance(told, LedgerError) and "has been closed" in str(told)
        assert other.read(()) is not None


def test_a_process_that_is_forked_while_a_thread_is_at_the_desk_does_not_wait_for_it(lasting):
    with lasting.session() as s:
        held, done = threading.Event(), threading.Event()

        def sit():
            with s._engine.ledger._store.desk:
                held.set()
                done.wait(30)

        thread = threading.Thread(target=sit)
        thread.start()
        assert held.wait(30)

        def work(say):
            signal.alarm(20)  # ends whoever waits for a thread that there is not
            for deed in (lambda: s.loss, lambda: s.launch(cp.Laplace("0.1"))):
                with contextlib.suppress(LedgerError):
                    deed()
                say("refused")

        assert in_child(work) == (["refused", "refused"], True)
        done.set()
        thread.join(30)


def test_a_connection_that_failed_is_nobodys_and_the_next_session_opens_the_file_anew(lasting):
    armed = []

    def reached(point):
        if point == "commit" and armed:
            raise KeyboardInterrupt

    with lasting.session(name="one", reached=reached) as one, lasting.session(name="two") as two:
        first, second = one.launch(cp.Laplace("0.1", asks=9)), two.launch(cp.Laplace("0.1", asks=9))
        armed.append(True)
        with pytest.raises(KeyboardInterrupt):
            first.ask("apples", id="q")
        with lasting.reopened(name="one") as again:
            assert isinstance(again.handles[0].ask("apples", id="q"), int)
            if lasting.kind == "sqlite":  # which they shared
                with pytest.raises(LedgerError, match="closed"):
                    second.ask("apples")
            again._engine.ledger.verify()
    with lasting.reopened(name="two") as two:
        assert isinstance(two.handles[0].ask("apples"), int)


def in_one_batch(ledger, *deeds):
    """Let each deed wait in a thread until all do, and share one transaction: what each gets, in that order."""
    results = [None] * len(deeds)

    def run(number, deed):
        try:
            results[number] = deed()
        except Exception as error:
            results[number] = error

    threads = [threading.Thread(target=run, args=pair) for pair in enumerate(deeds)]
    with ledger._store.desk:
        for number, thread in enumerate(threads, start=1):
            thread.start()
            while len(ledger._committer._waiting) < number:
                time.sleep(0.001)
    for thread in threads:
        thread.join(30)
    return results


def test_in_one_transaction_later_requests_see_what_earlier_ones_did(lasting):
    with lasting.session() as s:
        noisy = s.launch(cp.Laplace("0.1", asks=9))
        ledger = s._engine.ledger
        before = ledger._store.book("session").head.number

        def ask(name, body=b"[]"):
            return lambda: ledger.intent(
                name, body, Fact("ask", noisy.path, ""), lambda read: Plan(noisy.path, 0, "v1")
            )

        first, again, conflict, other = in_one_batch(ledger, ask("q"), ask("q"), ask("q", b"[1]"), ask("r"))
        assert first.seed == again.seed == other.seed and other.request == "q", "one open intent per handle"
        assert isinstance(conflict, RequestConflict)
        assert ledger._store.book("session").head.number == before + 1, "one entry"
        row = replace(first.row, version=1)
        assert in_one_batch(ledger, *[lambda n=n: ledger.settle(first, row, n) for n in (5, 6, 7)]) == [5, 5, 5]
        done = in_one_batch(ledger, ask("q"), ask("r"))
        assert done[0].answer == 5 and done[1].request == "r" and done[1].seed != first.seed
        assert ledger._store.book("session").head.number == before + 3


def test_in_one_transaction_a_request_that_is_answered_makes_room_for_the_next(lasting):
    with lasting.session() as s:
        noisy = s.launch(cp.Laplace("0.1", asks=9))
        ledger = s._engine.ledger
        fact = Fact("ask", noisy.path, "")
        begun = ledger.intent("q", b"[]", fact, lambda read: Plan(noisy.path, 0, "v1"))

        def next_one():
            return ledger.intent("r", b"[]", fact, lambda read: Plan(noisy.path, read(noisy.path).version, "v1"))

        settled, later = in_one_batch(ledger, lambda: ledger.settle(begun, replace(begun.row, version=1), 5), next_one)
        assert settled == 5 and later.request == "r" and later.version == later.row.version == 1


def test_in_one_transaction_a_budget_is_spent_once_and_an_error_is_nobody_elses(lasting):
    with lasting.session(cp.PureDP("0.5")) as s:
        launch = [lambda n=n: s.launch(cp.Laplace("0.2"), id=f"L{n}") for n in range(4)]
        same = [lambda: s.launch(cp.Laplace("0.2"), id="L0")]
        broken = [lambda: s.launch(cp.Laplace("0.2", asks=2), id="L0")]
        results = in_one_batch(s._engine.ledger, *launch, *same, *broken)
        assert sorted(r.path for r in results if not isinstance(r, Exception)) == [(0,), (0,), (1,)]
        assert [type(r).__name__ for r in results[2:]] == [
            "BudgetExceeded",
            "BudgetExceeded",
            "Handle",
            "RequestConflict",
        ]
        assert s.loss == cp.PureDP("0.4")
        s._engine.ledger.verify()


def test_items_that_arrive_at_once_are_all_kept_in_one_order(lasting):
    stream = cp.Stream(bound=9)
    with lasting.session(source=stream) as s:
        in_one_batch(s._engine.ledger, *[lambda n=n: stream.extend([n] * n) for n in (1, 2, 3)])
        assert stream.pin() == 6 and stream.log.items == [1, 2, 2, 3, 3, 3]
        s._engine.ledger.verify()


@pytest.mark.parametrize("point", ["write", "commit", "committed", "witnessed"])
def test_an_interrupt_in_the_middle_of_a_commit_stops_the_ledger_and_is_passed_on(lasting, point):
    def reached(now):
        if now == point and armed:
            raise KeyboardInterrupt

    armed = False
    with lasting.session(reached=reached) as s:
        noisy = s.launch(cp.Laplace("0.01", asks=9))
        begun = s._engine.ledger.intent("() q", b"[]", Fact("ask", (0,), ""), lambda read: Plan((0,), 0, "v1"))
        armed = True
        with pytest.raises(KeyboardInterrupt):
            s._engine.ledger.settle(begun, replace(begun.row, version=1), 5)
        armed = False
        with pytest.raises(LedgerError, match="open it again"):
            noisy.ask("apples")
    with closing(lasting.ledger()) as ledger:
        done = ledger.intent("() q", b"[]", Fact("ask", (0,), ""), lambda read: pytest.fail("admitted twice"))
        assert done.answer == 5 if point in ("committed", "witnessed") else done.seed == begun.seed
        ledger.verify()


def test_a_process_that_is_forked_while_a_thread_opens_a_ledger_opens_another(tmp_path):
    """The thread waits for its turn with a lock that the child would wait for, too; nor is what is open its own."""
    (tmp_path / "other").mkdir()
    mine, other = Place("sqlite", tmp_path), Place("sqlite", tmp_path / "other")
    with mine.session(), places._guard:

        def work(say):
            signal.alarm(20)  # ends whoever waits for a thread that there is not
            other.session().close()
            try:
                mine.session()
            except LedgerBusy:
                say("busy")

        assert in_child(work) == (["busy"], True)


FORKING = """
import os, signal, sys
import counterpoint as cp
from tests.ledger.places import Place

kind, home, url, closes = sys.argv[1:]
s = Place(kind, home, url).session()
noisy = s.launch(cp.Laplace("0.01", asks=9))
noisy.ask("apples")
if os.fork() == 0:
    if closes == "True":
        s.close()
    sys.exit()
os.wait()
print(noisy.ask("apples", id="q"), flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize("closes", [False, True])
def test_a_forked_process_that_comes_to_its_end_takes_nothing_from_its_parent(lasting, closes):
    """By closing what it has inherited it would take the parent's WAL or connection away, and with it what is answered
    from then on."""
    words = [sys.executable, "-c", FORKING, lasting.kind, lasting.home, lasting.url, closes]
    path = os.pathsep.join(filter(None, sys.path))
    run = subprocess.run(
        list(map(str, words)), env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, check=False
    )
    assert run.returncode == -signal.SIGKILL, run.stderr
    with lasting.reopened() as s:
        assert s.handles[0].ask("apples", id="q") == int(run.stdout) and s._engine.ledger.read((0,)).version == 2
        s._engine.ledger.verify()

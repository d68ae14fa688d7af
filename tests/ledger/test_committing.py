"""Group commit: who shares a transaction, who waits for whom, and that nobody waits for ever."""

import os
import threading
from collections.abc import Callable
from contextlib import suppress
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.ledger.places import Place, fresh_database

import counterpoint as cp
from counterpoint.errors import LedgerFailed
from counterpoint.ledger import committing, recent, rows
from counterpoint.ledger.committing import Committer, Job, Ticket
from counterpoint.ledger.postgres import PostgresStore
from counterpoint.ledger.recent import Recent
from counterpoint.ledger.records import Book, Head, StoredRequest, StoredRow
from counterpoint.ledger.rows import OpenRows, stored_row
from counterpoint.ledger.sealing import DataKeys, MasterKey
from counterpoint.ledger.sqlite import SqliteStore
from counterpoint.ledger.store import Unit

LONG = 30


@pytest.fixture(scope="module")
def shared_database():
    return Place("postgres")


class Gates:
    """Commits that wait, each for its own gate, and note whom they were for."""

    def __init__(self, commits: int) -> None:
        self.gates = [threading.Event() for _ in range(commits)]
        self.begun = [threading.Event() for _ in range(commits)]
        self.batches: list[list[str]] = []
        self.committer = Committer(self.commit, threading.RLock())
        self.answers: dict[str, object] = {}

    def commit(self, batch: list[Ticket]) -> None:
        number = len(self.batches)
        self.batches.append([ticket.job.request for ticket in batch])
        self.begun[number].set()
        assert self.gates[number].wait(LONG)
        commit_at_once(batch)

    def ask(self, name: str) -> None:
        self.answers[name] = self.committer.run(Job(lambda unit: name.upper(), name))


def until(reached: Callable[[], bool]) -> None:
    for _ in range(LONG * 1000):
        if reached():
            return
        threading.Event().wait(0.001)
    raise AssertionError("it never came to that")


def test_those_who_wait_while_a_transaction_is_on_its_way_share_the_next_one():
    gates = Gates(2)
    first = leading(gates, "a")
    later = [thread for name in "bcd" for thread in queued(gates, name)]
    for gate in gates.gates:
        gate.set()
    joined(first + later)
    assert gates.batches == [["a"], ["b", "c", "d"]]
    assert gates.answers == {name: name.upper() for name in "abcd"}


def test_who_is_done_goes_on_while_the_next_transaction_is_on_its_way():
    gates = Gates(3)
    first = leading(gates, "a")
    second = [thread for name in "bcd" for thread in queued(gates, name)]
    gates.gates[0].set()
    assert gates.begun[1].wait(LONG)
    third = queued(gates, "e")
    gates.gates[1].set()
    assert gates.begun[2].wait(LONG)
    joined(first + second)
    gates.gates[2].set()
    joined(third)
    assert gates.batches == [["a"], ["b", "c", "d"], ["e"]]


def leading(gates: Gates, name: str) -> list[threading.Thread]:
    """A client that commits for itself, and is kept from it by the first gate."""
    thread = threading.Thread(target=gates.ask, args=(name,), daemon=True)
    thread.start()
    assert gates.begun[0].wait(LONG)
    return [thread]


def queued(gates: Gates, name: str) -> list[threading.Thread]:
    """A client that has joined the queue."""
    before = len(gates.committer._waiting)
    thread = threading.Thread(target=gates.ask, args=(name,), daemon=True)
    thread.start()
    until(lambda: len(gates.committer._waiting) == before + 1)
    return [thread]


def joined(threads: list[threading.Thread]) -> None:
    for thread in threads:
        thread.join(LONG)
        assert not thread.is_alive()


def test_whoever_is_never_called_sees_to_it_itself(monkeypatch):
    monkeypatch.setattr(committing, "_PATIENCE", 0.01)
    committer = Committer(commit_at_once, threading.RLock())
    committer._led = True  # somebody leads, and was interrupted before it could hand on
    assert committer.run(Job(lambda unit: 7, "request")) == 7
    assert not committer._led


def commit_at_once(batch: list[Ticket]) -> None:
    for ticket in batch:
        ticket.run(Unit(None, "people", Head(0, bytes(32))))


@pytest.mark.parametrize("interruption", [KeyboardInterrupt, SystemExit, MemoryError, ValueError])
def test_an_interrupted_commit_leaves_nobody_waiting_and_stops_the_ledger(interruption):
    begun, gate, ends = threading.Event(), threading.Event(), []

    def commit(batch: list[Ticket]) -> None:
        begun.set()
        assert gate.wait(LONG)
        raise interruption

    committer = Committer(commit, threading.RLock())

    def ask() -> None:
        try:
            committer.run(Job(lambda unit: None, "request"))
        except BaseException as error:
            ends.append(type(error))

    threads = [threading.Thread(target=ask, daemon=True)]
    threads[0].start()
    assert begun.wait(LONG)
    for _ in range(3):
        threads.append(threading.Thread(target=ask, daemon=True))
        threads[-1].start()
    until(lambda: len(committer._waiting) == 3)
    gate.set()
    joined(threads)
    assert ends.count(interruption) == 1 and ends.count(LedgerFailed) == 3
    with pytest.raises(LedgerFailed, match="failed before"):
        committer.run(Job(lambda unit: None, "request"))


def test_those_who_share_an_interrupted_commit_are_told_that_it_was_cut_short():
    gates = Gates(2)
    first = leading(gates, "a")
    errors: list[type] = []

    def ask() -> None:
        try:
            gates.committer.run(Job(lambda unit: None, "b"))
        except BaseException as error:
            errors.append(type(error))

    threads = []
    for waiting in (1, 2):
        threads.append(threading.Thread(target=ask, daemon=True))
        threads[-1].start()
        until(lambda waiting=waiting: len(gates.committer._waiting) == waiting)
    gates.committer._commit = cut_short
    gates.gates[0].set()
    joined(first + threads)
    assert sorted(kind.__name__ for kind in errors) == ["KeyboardInterrupt", "LedgerFailed"]
    assert LedgerFailed in errors


def cut_short(batch: list[Ticket]) -> None:
    raise KeyboardInterrupt


class TwoSteps(Gates):
    """Requests of two jobs; between them, it is noted who worked out what comes next."""

    def __init__(self, commits: int, quick: bool) -> None:
        super().__init__(commits)
        self.quick = quick
        self.worked: dict[str, list[str]] = {}

    def ask(self, name: str) -> None:
        def follow(first: str) -> Job:
            self.worked.setdefault(name, []).append(threading.current_thread().name)
            return Job(lambda unit: first + "!", name)

        threading.current_thread().name = name
        try:
            job = Job(lambda unit: name.upper(), name, then=follow, quick=lambda first: self.quick)
            self.answers[name] = self.committer.run(job)
        except BaseException as error:
            self.answers[name] = type(error)


@pytest.mark.parametrize("quick", [True, False])
def test_what_is_quick_is_worked_out_by_whoever_led_and_all_else_by_each_for_itself(quick):
    gates = TwoSteps(9, quick)
    first = leading(gates, "a")
    later = [thread for name in "bcd" for thread in queued(gates, name)]
    for gate in gates.gates:
        gate.set()
    joined(first + later)
    assert gates.answers == {name: name.upper() + "!" for name in "abcd"}
    assert all(len(by) == 1 for by in gates.worked.values())
    workers = {by for name in "bcd" for by in gates.worked[name]}
    assert len(workers) == 1 if quick else workers == set("bcd")
    assert not quick or set("bcd") <= set(gates.batches[-1]), "their second jobs share a transaction, too"
    assert not gates.committer._waiting and not gates.committer._led


@pytest.mark.parametrize("quick", [True, False])
def test_what_goes_wrong_between_two_jobs_is_for_whoever_asked(quick):
    gates = Gates(2)
    gates.gates[0].set()
    gates.gates[1].set()

    def fail(_: object) -> Job:
        raise ValueError("between")

    with pytest.raises(ValueError, match="between"):
        gates.committer.run(Job(lambda unit: 1, "a", then=fail, quick=lambda _: quick))
    assert gates.committer.run(Job(lambda unit: 2, "b")) == 2, "the ledger goes on"


def test_who_is_interrupted_while_working_for_others_leaves_them_to_themselves():
    gates = TwoSteps(9, quick=True)
    first = leading(gates, "a")
    leader = queued(gates, "b")  # it will lead for the others
    interrupted = threading.Event()

    def follow(result: int) -> Job:
        if not interrupted.is_set():
            interrupted.set()
            raise KeyboardInterrupt
        return Job(lambda unit: result + 1, "c")

    numbers: list[int] = []
    others = []
    for waiting in (2, 3):
        job = Job(lambda unit: 1, "c", then=follow, quick=lambda _: True)
        others.append(threading.Thread(target=lambda job=job: numbers.append(gates.committer.run(job)), daemon=True))
        others[-1].start()
        until(lambda waiting=waiting: len(gates.committer._waiting) == waiting)
    for gate in gates.gates:
        gate.set()
    joined(first + leader + others)
    assert numbers == [2, 2] and gates.answers == {"a": "A!", "b": KeyboardInterrupt}
    assert not gates.committer._waiting and not gates.committer._led


def test_who_is_interrupted_while_letting_others_go_leaves_nobody_waiting(monkeypatch):
    monkeypatch.setattr(committing, "_PATIENCE", 10 * LONG)
    gates = TwoSteps(9, quick=True)
    first = leading(gates, "a")
    queue, interrupted = gates.committer._queue, []

    def cut(tickets):
        if len(list(tickets)) > 1 and not interrupted:  # the second jobs of those who shared a transaction
            interrupted.append(True)
            raise KeyboardInterrupt
        return queue(tickets)

    gates.committer._queue = cut
    later = [thread for name in "bcd" for thread in queued(gates, name)]
    for gate in gates.gates:
        gate.set()
    joined(first + later)
    assert interrupted and sorted(map(str, gates.answers.values())) == ["<class 'KeyboardInterrupt'>", "A!", "C!", "D!"]
    assert all(len(by) == 1 for by in gates.worked.values()), "what was worked out is not worked out again"


def test_if_whoever_led_is_done_one_of_those_who_go_on_is_called_to_lead(monkeypatch):
    monkeypatch.setattr(committing, "_PATIENCE", 10 * LONG)
    gates = TwoSteps(9, quick=True)
    first = leading(gates, "a")
    done = threading.Thread(target=gates.committer.run, args=(Job(lambda unit: 1),), daemon=True)
    done.start()
    until(lambda: len(gates.committer._waiting) == 1)
    later = [thread for name in "bc" for thread in queued(gates, name)]
    for gate in gates.gates:
        gate.set()
    joined([*first, done, *later])
    assert gates.answers == {name: name.upper() + "!" for name in "abc"}


def test_that_was_all_if_nothing_comes_after_it():
    committer = Committer(commit_at_once, threading.RLock())
    assert committer.run(Job(lambda unit: 7, "a", then=lambda _: None, quick=lambda _: True)) == 7


def record(path: int, version: int, size: int = 1) -> StoredRow:
    return StoredRow(f"[{path}]", version, b"{}", None, bytes([version % 256]) * size)


def asked(path: int, number: int, done: bool) -> StoredRequest:
    seed, answer = (None, b"answer") if done else (b"seed", None)
    return StoredRequest(f"request {path}", f"[{path}]", number, bytes(32), 0, "0", 1, seed, answer)


STEPS = st.lists(
    st.tuples(st.integers(0, 1), st.integers(0, 5), st.booleans(), st.booleans(), st.integers(1, 3)), max_size=30
)
"""Who changes which row, whether its request is done, whether that is committed, how large the row is."""


@settings(max_examples=40, deadline=None)
@given(STEPS, st.sampled_from((0, 3, 100)))
def test_what_a_store_keeps_in_memory_is_what_its_database_holds(tmp_path_factory, steps, most):
    kept = SqliteStore(tmp_path_factory.mktemp("recent") / "ledger.db", synchronous="OFF")
    try:
        changed_and_compared([kept, kept], steps, most)
    finally:
        kept.close()


def test_it_is_so_whoever_else_writes_to_that_database():
    stores = [PostgresStore(url) for url in [fresh_database()] * 2]

    @settings(max_examples=30, deadline=None)
    @given(STEPS, st.sampled_from((0, 3, 100)))
    def any_steps(steps, most):
        changed_and_compared(stores, steps, most)

    try:
        any_steps()
    finally:
        for store in stores:
            store.close()


def changed_and_compared(stores: "list[SqliteStore] | list[PostgresStore]", steps: list[tuple], most: int) -> None:
    name = os.urandom(8).hex()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(recent, "_MOST", most)
        patch.setattr(recent, "_LARGEST", 2)
        stores[0].begin(None)
        stores[0].create(name, Book(Head(1, bytes(32)), bytes(32), "data", (), False), b"{}")
        stores[0].commit()
        for number, (who, path, done, committed, size) in enumerate(steps):
            change(stores[who], name, record(path, number, size), asked(path, path, done), committed)
            for kept in stores:
                compare(kept, name)


def change(
    kept: "SqliteStore | PostgresStore", name: str, row: StoredRow, request: StoredRequest, committed: bool
) -> None:
    head = kept.begin(name)
    assert head is not None
    unit = Unit(kept, name, head)
    unit.append("ask", request.request, (), "", "")
    unit.put_row(row)
    unit.put_request(request)
    kept.write(unit)
    if committed:
        kept.commit()
    else:
        kept.rollback()


def compare(kept: "SqliteStore | PostgresStore", name: str) -> None:
    paths, requests = [f"[{path}]" for path in range(6)], [f"request {path}" for path in range(6)]
    unit = kept.begin_unit(name, requests, paths)
    assert unit is not None
    ahead = unit._ahead
    kept.rollback()
    assert ahead.rows == {path: kept.row(name, path) for path in ahead.rows}
    assert ahead.opened == {path: kept.open_at(name, path) for path in ahead.opened}
    assert ahead.requests == {request: kept.request(name, request) for request in ahead.requests}
    in_memory = kept._recent.known(name, requests, paths)
    assert not any(len(row.sealed or b"") > 2 for row in in_memory.rows.values() if row is not None)
    assert set(ahead.rows) == set(paths) and set(ahead.requests) == set(requests), "all of it is looked up at once"


@pytest.fixture
def trips(monkeypatch):
    """How many statements each round trip has that begins a transaction."""
    seen = []
    run_all = PostgresStore._run_all
    monkeypatch.setattr(PostgresStore, "_run_all", lambda *given: seen.append(len(given) - 1) or run_all(*given))
    return seen


def test_nothing_is_asked_while_nobody_else_writes_and_all_of_it_when_somebody_has(postgres, trips):
    with postgres.session() as s:
        handle = s.launch(cp.Laplace("0.1", asks=9))
        handle.ask("beans")
        trips.clear()
        handle.ask("beans")
        assert trips == [], "what is in memory is presumed, and made sure of with the commit"
        handle.ask("beans", id="a")
        assert trips == [3], "an id may have been used by anybody"
        with postgres.session() as replica:
            trips.clear()
            replica.at(handle.path).ask("beans")
            assert trips == [4], "a replica knows no row before it has read it"
            trips.clear()
            handle.ask("beans")
            assert trips == [2, 2, 2], "overtaken: asked where the head is, read again; and no longer presumed"
            s._engine.ledger.verify()


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 1), st.integers(0, 5)), min_size=1, max_size=40))
def test_replicas_that_presume_to_be_alone_overtake_each_other_and_agree(shared_database, steps):
    place, name = shared_database, os.urandom(8).hex()
    with place.session(name=name) as one, place.session(name=name) as other:
        asked: dict[tuple, int] = {}
        for who, what in steps:
            s = (one, other)[who]
            paths = sorted(asked)
            if what == 0 or not paths:
                with suppress(cp.BudgetExceeded):
                    asked[s.launch(cp.Laplace("0.3", asks=99)).path] = 0
            else:
                path = paths[what % len(paths)]
                s.at(path).ask("beans")
                asked[path] += 1
        assert len(asked) <= 3 and one.loss == other.loss == cp.PureDP(len(asked) * Fraction(3, 10))
        for s in (one, other):
            assert {path: s._engine.ledger.read(path).version for path in asked} == asked
            s._engine.ledger.verify()


def test_a_commit_that_the_server_turned_into_a_rollback_is_none(postgres):
    """It says so instead of an error, after a statement that failed."""
    with postgres.session() as s:
        store = s._engine.ledger._store
        store.begin(None)
        with pytest.raises(LedgerFailed):
            store._run("SELECT nothing")
        with pytest.raises(LedgerFailed, match="did not commit"):
            store.commit()


def test_what_is_not_there_is_said_only_by_who_has_looked(postgres):
    """A replica may have launched it by now."""
    with postgres.session() as one, postgres.session() as other:
        first = one.launch(cp.Laplace("0.1", asks=9))
        for _ in range(3):
            first.ask("beans")
        ledger = one._engine.ledger
        ledger._store._recent._of("session").records.rows["[1]"] = None
        ledger._store._recent._of("session").records.opened["[1]"] = None
        other.launch(cp.Laplace("0.1", asks=9))
        assert isinstance(one.at((1,)).ask("beans"), int)


def test_a_session_is_not_told_what_another_one_keeps():
    unit = Unit(None, "people", Head(0, bytes(32)))
    unit.put_row(record(0, 1))
    kept = Recent()
    kept.learn(unit)
    assert kept.known("people", [], ["[0]"]).rows and not kept.known("places", [], ["[0]"]).rows


@pytest.mark.parametrize("count", [1, 2, 3, 63, 64, 65, 200])
def test_any_number_of_rows_is_written(tmp_path, count):
    kept = SqliteStore(tmp_path / "ledger.db")
    kept.begin(None)
    kept.create("people", Book(Head(0, bytes(32)), bytes(32), "data", (), False), b"{}")
    kept.commit()
    unit = Unit(kept, "people", Head(0, bytes(32)))
    for number in range(count):
        unit.append("ask", f"{number}", (number,), "", "")
        unit.put_row(record(number, number))
        unit.put_request(asked(number, number, done=False))
    kept.begin("people")
    kept.write(unit)
    kept.commit()
    assert list(kept.entries("people", 0)) == unit.entries
    assert {row.path: row for row in kept.rows("people")} == unit.rows
    assert len(list(kept.requests("people"))) == count
    kept.close()


class Counted(DataKeys):
    """Keys that count how often something was unsealed."""

    unsealed = 0

    def unseal(self, blob: bytes, kind: str, *place: object) -> bytes:
        self.unsealed += 1
        return super().unseal(blob, kind, *place)  # type: ignore[arg-type]


def test_a_row_is_unsealed_again_only_if_somebody_has_changed_it(monkeypatch):
    from counterpoint.ledger.ledger import Row
    from counterpoint.mechanisms.additive import Left

    master = MasterKey(bytes(32))
    keys = Counted("people", master, (DataKeys.fresh("people", 0, master),))
    row = Row(cp.Laplace(1, asks=2), Left(2), 0, 0)
    opened, stored = OpenRows(), stored_row((0,), row, keys)
    assert [opened.read(stored, keys) for _ in range(3)] == [row] * 3 and keys.unsealed == 1
    changed = Row(row.mechanism, Left(1), 1, 0)
    elsewhere = stored_row((0,), changed, keys)
    assert opened.read(elsewhere, keys) == changed and keys.unsealed == 2
    opened.keep(stored, row)
    assert opened.read(stored, keys) == row and keys.unsealed == 2
    monkeypatch.setattr(rows, "_LARGEST", 0)
    opened = OpenRows()
    assert [opened.read(stored, keys) for _ in range(2)] == [row] * 2 and keys.unsealed == 4


def test_a_state_too_large_to_keep_is_unsealed_once_an_ask(lasting, monkeypatch):
    monkeypatch.setattr(rows, "_LARGEST", 0)
    unseal, opened = DataKeys.unseal, []

    def noted(self: DataKeys, blob: bytes, kind: str, *place: object) -> bytes:
        opened.append(kind)
        return unseal(self, blob, kind, *place)  # type: ignore[arg-type]

    with lasting.session() as s:
        noisy = s.launch(cp.Laplace("0.5", asks=9))
        monkeypatch.setattr(DataKeys, "unseal", noted)
        noisy.ask("apples")
    assert opened == ["state"]

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
from counterpoint.ledger import sealed_rows as rows
from counterpoint.ledger.chain import Entry, Head
from counterpoint.ledger.sealed_rows import OpenRows, stored_row
from counterpoint.ledger.sealing import DataKeys, MasterKey
from counterpoint.ledger.state import Lookups
from counterpoint.ledger.store import group_commit
from counterpoint.ledger.store.group_commit import GroupCommit, Ticket
from counterpoint.ledger.store.postgres import PostgresStore
from counterpoint.ledger.store.records import SessionHeader, StoredRequest, StoredRow, path_text
from counterpoint.ledger.store.sqlite import SqliteStore
from counterpoint.ledger.store.store import ChangeSet

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
        self.committer = GroupCommit(self.commit, threading.RLock())
        self.answers: dict[str, object] = {}

    def commit(self, batch: list[Ticket]) -> None:
        number = len(self.batches)
        self.batches.append([ticket.job for ticket in batch])
        self.begun[number].set()
        assert self.gates[number].wait(LONG)
        commit_at_once(batch)

    def ask(self, name: str) -> None:
        self.answers[name] = self.committer.run(name)


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
    monkeypatch.setattr(group_commit, "_PATIENCE", 0.01)
    committer = GroupCommit(commit_at_once, threading.RLock())
    committer._led = True  # somebody leads, and was interrupted before it could hand on
    assert committer.run("request") == "REQUEST"
    assert not committer._led


def commit_at_once(batch: list[Ticket]) -> None:
    for ticket in batch:
        ticket.result = ticket.job.upper()


@pytest.mark.parametrize("interruption", [KeyboardInterrupt, SystemExit, MemoryError, ValueError])
def test_an_interrupted_commit_leaves_nobody_waiting_and_stops_the_ledger(interruption):
    begun, gate, ends = threading.Event(), threading.Event(), []

    def commit(batch: list[Ticket]) -> None:
        begun.set()
        assert gate.wait(LONG)
        raise interruption

    committer = GroupCommit(commit, threading.RLock())

    def ask() -> None:
        try:
            committer.run("request")
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
        committer.run("request")


def test_those_who_share_an_interrupted_commit_are_told_that_it_was_cut_short():
    gates = Gates(2)
    first = leading(gates, "a")
    errors: list[type] = []

    def ask() -> None:
        try:
            gates.committer.run("b")
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


def test_a_request_whose_leader_was_interrupted_after_taking_it_is_told_so(monkeypatch):
    monkeypatch.setattr(group_commit, "_PATIENCE", 0.01)
    committer = GroupCommit(commit_at_once, threading.RLock())
    committer._led = True
    ended: list[BaseException] = []

    def ask() -> None:
        try:
            committer.run("request")
        except LedgerFailed as error:
            ended.append(error)

    with committer._connection:  # the leader, which takes the batch and never comes to an end
        thread = threading.Thread(target=ask, daemon=True)
        thread.start()
        until(lambda: len(committer._waiting) == 1)
        committer._waiting.clear()
    joined([thread])
    assert "cut short" in str(ended[0])


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
@given(STEPS)
def test_what_a_transaction_reads_ahead_is_what_its_database_holds(tmp_path_factory, steps):
    kept = SqliteStore(tmp_path_factory.mktemp("ahead") / "ledger.db", synchronous="OFF")
    try:
        changed_and_compared([kept, kept], steps)
    finally:
        kept.close()


def test_it_is_so_whichever_process_wrote_it():
    stores = [PostgresStore(url) for url in [fresh_database()] * 2]

    @settings(max_examples=30, deadline=None)
    @given(STEPS)
    def any_steps(steps):
        changed_and_compared(stores, steps)

    try:
        any_steps()
    finally:
        for store in stores:
            store.close()


def changed_and_compared(stores: "list[SqliteStore] | list[PostgresStore]", steps: list[tuple]) -> None:
    name = os.urandom(8).hex()
    stores[0].begin(None)
    stores[0].create(
        name,
        SessionHeader(Head(1, bytes(32)), bytes(32), "data", (), False),
        Entry(1, "data", "", (), "", "").encoded(),
    )
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
    unit = ChangeSet(kept, name, head)
    unit.append("ask", request.request, (), "", "")
    unit.put_row(row)
    unit.put_request(request)
    kept.write(unit)
    if committed:
        kept.commit()
    else:
        kept.rollback()


def compare(kept: "SqliteStore | PostgresStore", name: str) -> None:
    paths, requests = tuple((path,) for path in range(6)), tuple(f"request {path}" for path in range(6))
    unit = kept.begin_changes(name, Lookups(requests, paths, paths, paths))
    assert unit is not None
    ahead = unit._ahead
    kept.rollback()
    assert ahead.rows == {path_text(path): kept.row(name, path_text(path)) for path in paths}
    assert ahead.versions == {path: row and row.version for path, row in ahead.rows.items()}
    assert ahead.opened == {path_text(path): kept.open_at(name, path_text(path)) for path in paths}
    assert ahead.requests == {request: kept.request(name, request) for request in requests}


@pytest.fixture
def trips(monkeypatch):
    """How many statements each round trip has that begins a transaction."""
    seen = []
    run_all = PostgresStore._run_all
    monkeypatch.setattr(
        PostgresStore, "_run_all", lambda self, statements: seen.append(len(statements)) or run_all(self, statements)
    )
    return seen


def test_a_transaction_begins_with_one_round_trip_in_which_it_reads_all_it_needs(postgres, trips):
    with postgres.session() as s:
        handle = s.launch(cp.Laplace("0.1", asks=9))
        bound = s._engine.ledger._store._BOUNDED is not None  # that of the transaction's time, where the server has one
        trips.clear()
        handle.ask("beans")
        assert trips == [4 + bound, 5 + bound], (
            "begin, lock, what is open, the rows; then begin, lock, the request, the root, the row's version"
        )
        trips.clear()
        handle.ask("beans", id="a")
        assert trips == [5 + bound, 5 + bound], "an id may have been used before"
        s._engine.ledger.verify()


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 1), st.integers(0, 5)), min_size=1, max_size=40))
def test_replicas_take_turns_and_agree(shared_database, steps):
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


def test_what_another_process_launched_is_found(postgres):
    with postgres.session() as one, postgres.session() as other:
        first = one.launch(cp.Laplace("0.1", asks=9))
        for _ in range(3):
            first.ask("beans")
        other.launch(cp.Laplace("0.1", asks=9))
        assert isinstance(one.at((1,)).ask("beans"), int)


@pytest.mark.parametrize("count", [1, 2, 3, 63, 64, 65, 200])
def test_any_number_of_rows_is_written(tmp_path, count):
    kept = SqliteStore(tmp_path / "ledger.db")
    kept.begin(None)
    kept.create(
        "people",
        SessionHeader(Head(0, bytes(32)), bytes(32), "data", (), False),
        Entry(1, "data", "", (), "", "").encoded(),
    )
    kept.commit()
    unit = ChangeSet(kept, "people", Head(0, bytes(32)))
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
    from counterpoint.ledger.state import LaunchRecord
    from counterpoint.mechanisms.mechanism import Left

    master = MasterKey(bytes(32))
    keys = Counted("people", master, (DataKeys.fresh("people", 0, master),))
    row = LaunchRecord(cp.Laplace(1, asks=2), Left(2), 0, 0)
    opened, stored = OpenRows(), stored_row((0,), row, keys)
    assert [opened.read(stored, keys) for _ in range(3)] == [row] * 3 and keys.unsealed == 1
    changed = LaunchRecord(row.mechanism, Left(1), 1, 0)
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

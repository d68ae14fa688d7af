"""Raw group commit as it is usually written, without our ledger: what the same database does for as many clients.

A deed is what an ask or a launch leaves behind, as bare records: an entry, a request and a row, of the same sizes, in
the same tables, in two transactions, and a synced line in a file. By `written` a thread of its own commits for all who
wait; by `connected` each client has a connection of its own to PostgreSQL, which groups their commits itself.
"""

import os
import queue
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

from counterpoint.ledger.store import tables as schema

ENTRY = "INSERT INTO counterpoint_entry (name, number, entry) VALUES (?, ?, ?)"
REQUEST = """INSERT INTO counterpoint_request
    (name, request, path, entry, digest, version, pin, sampler, seed, answer) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (name, request) DO UPDATE SET seed = excluded.seed, answer = excluded.answer"""
ROW = """INSERT INTO counterpoint_row (name, path, version, public_row, node, sealed) VALUES (?, ?, ?, ?, ?, ?)
    ON CONFLICT (name, path) DO UPDATE SET
    version = excluded.version, public_row = excluded.public_row, node = excluded.node, sealed = excluded.sealed"""
BOOK = """INSERT INTO counterpoint_session (name, number, head, genesis, fingerprint, witnessed)
    VALUES (?, 0, ?, ?, 'raw', 0)"""
HEAD = "SELECT number, head FROM counterpoint_session WHERE name = ?"
MOVE = "UPDATE counterpoint_session SET number = ?, head = ? WHERE name = ?"
LINE = 160


class Sizes(NamedTuple):
    """How long the records of such a deed are, in bytes, as found in a ledger."""

    what: str
    entry: int
    public: int
    sealed: int
    answer: int
    node: int | None = None
    """That of the session, which a launch changes too."""


class Terms(NamedTuple):
    """For whom it is done and where: how many clients, the database, the file of lines, and the session's name.

    `wait` is how many seconds every commit takes longer than it would on this disk.
    """

    clients: int
    place: str
    witness: Path
    name: str
    wait: float


class Step(NamedTuple):
    """What one of the two transactions writes."""

    entry: bytes
    request: tuple[Any, ...]
    rows: list[tuple[Any, ...]]
    settled: bool


def steps(name: str, number: int, path: str, sizes: Sizes) -> tuple[Step, Step]:
    """Both transactions of a deed."""
    entry, asked = bytes(sizes.entry), (name, f"{number:036}", path, number, bytes(32), 0, '"one"', 1)
    charged = [] if sizes.node is None else [(name, "[]", number, bytes(sizes.public), bytes(sizes.node), None)]
    begun = Step(entry, (*asked, bytes(79), None), charged, False)
    row = (name, path, number, bytes(sizes.public), None, bytes(sizes.sealed))
    return begun, Step(entry, (*asked, None, bytes(sizes.answer)), [row], True)


Deed = Callable[[int], None]
"""Does one deed, for the client of that number."""


@contextmanager
def written(terms: Terms, sizes: Sizes) -> Iterator[Deed]:
    """A thread of its own writes for all who wait, in one transaction; then it lets them go."""
    _, place, witness, name, wait = terms
    numbers, waiting = count(), queue.SimpleQueue[tuple[Step, threading.Lock] | None]()
    with ExitStack() as stack:
        opened = _postgres if place.startswith("postgres") else _sqlite
        note = stack.enter_context(_noted(witness))
        write = stack.enter_context(opened(place, name))
        thread = threading.Thread(target=_write_for_all, args=(waiting, write, note, wait))
        thread.start()
        stack.callback(thread.join)
        stack.callback(waiting.put, None)

        def deed(client: int) -> None:
            number = next(numbers)
            for step in steps(name, number, f"[{client if sizes.node is None else number}]", sizes):
                done = threading.Lock()
                done.acquire()
                waiting.put((step, done))
                done.acquire()

        yield deed


def _write_for_all(
    waiting: "queue.SimpleQueue[tuple[Step, threading.Lock] | None]",
    write: Callable[[list[Step]], None],
    note: Callable[[], None],
    wait: float,
) -> None:
    while (first := waiting.get()) is not None:
        others = [waiting.get() for _ in range(waiting.qsize())]  # nobody else takes one
        batch = [first, *filter(None, others)]  # the end comes when nobody waits
        write([step for step, _ in batch])
        if wait:
            time.sleep(wait)
        if any(step.settled for step, _ in batch):
            note()
        for _, done in batch:
            done.release()


@contextmanager
def _noted(witness: Path) -> Iterator[Callable[[], None]]:
    file = os.open(witness, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def note() -> None:
        os.write(file, bytes(LINE))
        os.fdatasync(file)

    try:
        yield note
    finally:
        os.close(file)


@contextmanager
def _sqlite(place: str, name: str) -> Iterator[Callable[[list[Step]], None]]:
    """In a file of its own beside the ledger, with the same settings."""
    import apsw

    connection = apsw.Connection(f"{place}.{name}.raw")
    for setting in ("locking_mode = EXCLUSIVE", "synchronous = EXTRA", "journal_mode = WAL"):
        connection.execute(f"PRAGMA {setting}")
    for statement in schema.statements("BLOB", " WITHOUT ROWID"):
        connection.execute(statement)
    connection.execute(BOOK, (name, bytes(32), bytes(32)))
    entries = count(1)

    def write(batch: list[Step]) -> None:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute(HEAD, (name,)).fetchall()
        connection.executemany(ENTRY, [(name, next(entries), step.entry) for step in batch])
        connection.executemany(REQUEST, [step.request for step in batch])
        connection.executemany(ROW, [row for step in batch for row in step.rows])
        connection.execute(MOVE, (next(entries), bytes(32), name))
        connection.execute("COMMIT")

    yield write
    connection.close()


@contextmanager
def _postgres(place: str, name: str) -> Iterator[Callable[[list[Step]], None]]:
    """In the ledger's own tables."""
    import psycopg

    entries = count(1)
    with psycopg.connect(place, autocommit=True) as connection:
        connection.execute(_theirs(BOOK), (name, bytes(32), bytes(32)))

        def write(batch: list[Step]) -> None:
            with connection.pipeline():
                connection.execute("BEGIN")
                connection.execute(_theirs(HEAD) + b" FOR UPDATE", (name,))
                many = connection.cursor().executemany
                many(_theirs(ENTRY), [(name, next(entries), step.entry) for step in batch])
                many(_theirs(REQUEST), [step.request for step in batch])
                many(_theirs(ROW), [row for step in batch for row in step.rows])
                connection.execute(_theirs(MOVE), (next(entries), bytes(32), name))
                connection.execute("COMMIT")

        yield write


@contextmanager
def connected(terms: Terms, sizes: Sizes) -> Iterator[Deed]:
    """Each client commits on a connection of its own, and no two of them write the same row."""
    clients, place, _, name, _ = terms
    import psycopg

    numbers, entries = count(), count(1)
    with ExitStack() as stack:
        opened = [stack.enter_context(psycopg.connect(place, autocommit=True)) for _ in range(clients)]

        def deed(client: int) -> None:
            number = next(numbers)
            for step in steps(name, number, f"[{client if sizes.node is None else number}]", sizes):
                rows = [(name, f"[{client}]" if path == "[]" else path, *rest) for _, path, *rest in step.rows]
                _commit(opened[client], (name, next(entries), step.entry), step.request, rows)

        yield deed


def _commit(connection: Any, entry: tuple[Any, ...], request: tuple[Any, ...], rows: list[tuple[Any, ...]]) -> None:
    with connection.pipeline():
        for sql, given in ((b"BEGIN", ()), (_theirs(ENTRY), entry), (_theirs(REQUEST), request)):
            connection.execute(sql, given)
        for row in rows:
            connection.execute(_theirs(ROW), row)
        connection.execute("COMMIT")


def _theirs(sql: str) -> bytes:
    return sql.replace("?", "%s").encode()

"""What an operator does with a ledger besides asking: list its sessions, read their histories, copy it.

Reading needs no key and writes nothing. An SQLite ledger is opened by one process at a time, so while a service runs
its ledger is read, and backed up, through the service.

>>> next(listed(Durable("nowhere.db")))
Traceback (most recent call last):
...
counterpoint.errors.LedgerError: there is no ledger at 'nowhere.db'
"""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path as FilePath

from counterpoint.encoding import decode
from counterpoint.errors import InvalidParameter, LedgerError
from counterpoint.ledger.crypto.rows import read_frame
from counterpoint.ledger.places import Durable, hold, looked_at, release
from counterpoint.ledger.state import Fact, Node
from counterpoint.ledger.store.records import HISTORY, Book, path_text, read_entry
from counterpoint.ledger.store.sqlite import SqliteStore
from counterpoint.ledger.store.store import Store
from counterpoint.mechanisms.composed.concurrent import Concurrent


def listed(place: Durable) -> Iterator[str]:
    """Each session: its name, and how many entries its record has."""
    with looked_at(place) as store:
        for name in store.names():
            with store.lock:
                yield f"{name}: {_book(store, name).head.number} entries"


def shown(place: Durable, name: str) -> Iterator[str]:
    """What a session is: its rule, its loss, its keys, its witness, and the head of its chain."""
    with looked_at(place) as store, store.lock, _one_moment(store):
        book, row = _book(store, name), store.row(name, path_text(()))
        composition = None if row is None else read_frame(row.frame).mechanism
        if row is not None and row.node is not None and isinstance(composition, Concurrent):
            node = decode(row.node, Node)
            yield f"rule: {composition.rule!r}"
            yield f"loss: {composition.rule.loss(node.account)!r} in {node.launched} launches"
        yield f"entries: {book.head.number}, of which the last has the hash {book.head.hash.hex()}"
        yield f"signer of its record and receipts: {_signer(store, name)}"
        yield f"requests to be finished: {len(store.open_requests(name))}"
        if not book.keys:
            yield "retired: its keys, and all that they sealed, are destroyed"
        yield f"data keys: {len(book.keys)}; must have its witness: {'yes' if book.witnessed else 'no'}"
        if book.beside:
            yield f"has the same rows as: {', '.join(book.beside)}"


def history(place: Durable, name: str) -> Iterator[str]:
    """The public lines of a session: when, who, what, where."""
    with looked_at(place) as store, store.lock, _one_moment(store):
        _book(store, name)
        entries = (read_entry(data) for _, data in store.entries(name, 0))
        facts = [entry.fact for entry in entries if entry.kind in HISTORY]
    yield from map(_line, facts)


def back_up(place: Durable, file: str | os.PathLike[str]) -> str:
    """A copy of an SQLite ledger as of one moment, in a new file that its owner alone may read.

    In the process that has it open, requests go on in between; from another one, it must be at rest.
    """
    if place.in_postgres:
        raise InvalidParameter("a ledger in PostgreSQL is backed up as its database is: pg_dump, or a standby")
    target = FilePath(file)
    store = hold(place, existing=True)
    try:
        assert isinstance(store, SqliteStore)
        store.copy_to(target)
    finally:
        release(store)
    return f"copied to {str(target)!r}; the master key and the witness are not in it: keep them apart from it"


@contextmanager
def _one_moment(store: Store) -> Iterator[None]:
    store.begin_reading()
    try:
        yield
    finally:
        store.rollback()


def _book(store: Store, name: str) -> Book:
    found = store.book(name)
    if found is None:
        names = ", ".join(map(repr, store.names())) or "none"
        raise LedgerError(f"there is no session {name!r} in this ledger; there are: {names}")
    return found


def _signer(store: Store, name: str) -> str:
    entries = (read_entry(data, number) for number, data in store.entries(name, 0))
    return [entry.what for entry in entries if entry.kind == "signer"][-1]


def _line(fact: Fact) -> str:
    when = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(fact.at)) if fact.at else "-"
    return f"{when} {fact.who or '-'} {fact.kind} {'.'.join(map(str, fact.path)) or '.'} {fact.what}"

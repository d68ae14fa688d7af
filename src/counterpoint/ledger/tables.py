"""The statements of a durable ledger, the same for SQLite and PostgreSQL but for how a parameter is written.

A store says how statements are run (`_run`, `_run_many`, `_run_all`) and how several records are looked up at once
(`_among`); what is read and written is said here once. What is few
among many (open requests, items sent under an id) is found by an index of those alone, by whatever else is known of
it: a planner that may look a session's name up might read all that the session has, which it believes to be little.

>>> "ON CONFLICT" in Tables._PUT_ROW
True
"""

import threading
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import Any, TypeVar

from counterpoint.encoding import decode, encode
from counterpoint.errors import CounterpointError, LedgerTampered
from counterpoint.ledger.recent import Recent
from counterpoint.ledger.records import Book, Head, StoredItems, StoredRequest, StoredRow
from counterpoint.ledger.store import Ahead, Store, Unit

_REQUEST = "request, path, entry, digest, version, pin, sampler, seed, answer"
_ITEM = "start, count, sealed, request, part"
_BATCH = 4096
_PAGE = 64

_T = TypeVar("_T")
Statement = tuple[str, Sequence[Any]]
"""A text and its parameters."""


class Tables(Store):
    """Reads and writes of records, in the tables of `schema`."""

    _BEGIN: str
    _LOCKED: str
    """Reads the head of a book, and locks it if anybody else might write to it."""
    _ALONE: str | None = None
    """Waits until no other process looks after the schema or makes a session, where there may be another."""
    _HEAD = "SELECT number, head FROM counterpoint_book WHERE name = ?"
    _BOOK = """SELECT number, head, genesis, fingerprint, witnessed, content, beside
        FROM counterpoint_book WHERE name = ?"""
    _KEYS = "SELECT number, wrapped FROM counterpoint_key WHERE name = ? ORDER BY number"
    _ROW = "SELECT path, version, frame, node, sealed, spent FROM counterpoint_row WHERE name = ?"
    _ASKED = f"SELECT {_REQUEST} FROM counterpoint_request WHERE name = ?"
    _OPEN = f"SELECT {_REQUEST} FROM counterpoint_request WHERE seed IS NOT NULL AND name || '' = ?"
    _LOOKUPS = (f"{_ASKED} AND request", f"{_OPEN} AND path", f"{_ROW} AND path")
    _PUT_ROW = """INSERT INTO counterpoint_row (name, path, version, frame, node, sealed, spent)
        VALUES (?, ?, ?, ?, ?, ?, ?)
        ON CONFLICT (name, path) DO UPDATE SET version = excluded.version, frame = excluded.frame,
        node = excluded.node, sealed = excluded.sealed, spent = excluded.spent"""
    _PUT_REQUEST = f"""INSERT INTO counterpoint_request (name, {_REQUEST}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
        ON CONFLICT (name, request) DO UPDATE SET seed = excluded.seed, answer = excluded.answer"""
    _PUT_ENTRY = "INSERT INTO counterpoint_entry (name, number, entry) VALUES (?, ?, ?)"

    _ITEMS = f"SELECT {_ITEM} FROM counterpoint_items WHERE name = ?"
    _SENT = f"SELECT {_ITEM} FROM counterpoint_items WHERE name || '' = ? AND request = ?"
    _PUT_ITEMS = f"INSERT INTO counterpoint_items (name, {_ITEM}) VALUES (?, ?, ?, ?, ?, ?)"

    def __init__(self) -> None:
        self.desk = threading.RLock()
        self._recent = Recent()
        self._written: Unit | None = None

    @abstractmethod
    def _run(self, sql: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """The rows of a statement."""

    @abstractmethod
    def _run_many(self, sql: str, parameters: Sequence[Sequence[Any]]) -> None:
        """A statement, once for each of the parameters."""

    @abstractmethod
    def _run_all(self, *statements: Statement) -> list[list[tuple[Any, ...]]]:
        """Several statements, each with its rows; in one round trip, where there is one."""

    @abstractmethod
    def _among(self, sql: str, name: str, keys: Sequence[str]) -> list[Statement]:
        """Statements that look up all records with one of these keys, of which a text names the column."""

    @abstractmethod
    def _commit(self) -> None:
        """Return once everything since `begin` is on disk."""

    @abstractmethod
    def _undo(self) -> None:
        """Forget everything since `begin`."""

    def begin(self, name: str | None) -> Head | None:
        """Begin a transaction, and wait for whoever else is writing to this book."""
        if name is None:
            self._run(self._BEGIN)
            return None
        _, found = self._run_all((self._BEGIN, ()), (self._LOCKED, (name,)))
        return _head(found[0]) if found else None

    def begin_alone(self, name: str) -> Head | None:
        """Begin a transaction on that book in which no other process makes a session."""
        self._run(self._BEGIN)
        if self._ALONE is not None:
            self._run(self._ALONE)
        found = self._run(self._LOCKED, (name,))
        return _head(found[0]) if found else None

    def presume(self, name: str, requests: Sequence[str], paths: Sequence[str]) -> Unit | None:
        """A round trip is worth presuming; where there is none, beginning is as cheap."""
        return None

    def begin_unit(self, name: str, requests: Sequence[str], paths: Sequence[str]) -> Unit | None:
        """Begin a transaction, and read along what is going to be looked up, but for what is still in memory."""
        known = self._recent.known(name, requests, paths)
        missing = (
            [request for request in requests if request not in known.requests],
            [path for path in paths if path not in known.opened],
            [path for path in paths if path not in known.rows],
        )
        # Records are read once the book is locked: each statement sees what is committed when it begins.
        (_, found), ahead = self._read_along(name, missing, (self._BEGIN, ()), (self._LOCKED, (name,)))
        if not found:
            return None
        head = _head(found[0])
        if not self._recent.holds(name, head) and any(known):  # somebody else has written since
            known = Ahead({}, {}, {})
            _, ahead = self._read_along(name, (requests, paths, paths))
        self._recent.note(name, head, ahead)
        ahead = Ahead(known.requests | ahead.requests, known.opened | ahead.opened, known.rows | ahead.rows)
        return Unit(self, name, head, ahead)

    def _read_along(
        self, name: str, wanted: Sequence[Sequence[str]], *before: Statement
    ) -> tuple[list[list[tuple[Any, ...]]], Ahead]:
        """What these statements say, and the requests, open requests and rows with those keys."""
        lookups = [self._among(sql, name, keys) for sql, keys in zip(self._LOOKUPS, wanted, strict=True)]
        answers = iter(self._run_all(*before, *chain.from_iterable(lookups)))
        said = [next(answers) for _ in before]
        asked, opened, rows = ([row for _ in statements for row in next(answers)] for statements in lookups)
        return said, Ahead(
            dict.fromkeys(wanted[0]) | {record.request: record for record in map(as_request, asked)},
            dict.fromkeys(wanted[1]) | {record.path: record for record in map(as_request, opened)},
            dict.fromkeys(wanted[2]) | {record.path: record for record in map(as_row, rows)},
        )

    def commit(self) -> None:
        """Make everything since `begin` durable, and remember it."""
        self._commit()
        if self._written is not None:
            self._recent.learn(self._written)
            self._written = None

    def rollback(self) -> None:
        """Forget everything since `begin`."""
        self._written = None
        self._undo()

    def book(self, name: str) -> Book | None:
        """A session's own record."""
        found = self._run(self._BOOK, (name,))
        if not found:
            return None
        number, head, genesis, fingerprint, witnessed, content, beside = found[0]
        wrapped = self._run(self._KEYS, (name,))
        if [place for place, _ in wrapped] != list(range(len(wrapped))) or witnessed not in (0, 1):
            raise LedgerTampered(f"the book of {name!r} or its keys are not as they were written")
        keys = tuple(_blob(key) for _, key in wrapped)
        return Book(
            _head((number, head)),
            _blob(genesis),
            _perhaps(_text, fingerprint),
            keys,
            bool(witnessed),
            _perhaps(_blob, content),
            () if beside is None else _names(beside),
        )

    def names(self) -> tuple[str, ...]:
        """The sessions in this ledger."""
        return tuple(name for (name,) in self._run("SELECT name FROM counterpoint_book ORDER BY name"))

    def create(self, name: str, book: Book, first: bytes) -> None:
        """A new session with its first entry, unless there is one of that name by now."""
        put = """INSERT INTO counterpoint_book
            (name, number, head, genesis, fingerprint, witnessed, content, beside)
            VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (name) DO NOTHING RETURNING name"""
        if self._run(put, (name, *book.head, book.genesis, book.fingerprint, *_said(book))):
            self.write_keys(name, book.keys)
            self._run(self._PUT_ENTRY, (name, book.head.number, first))

    def write_book(self, name: str, book: Book) -> None:
        """Replace what a session's own record says besides its head and its keys."""
        put = "UPDATE counterpoint_book SET witnessed = ?, content = ?, beside = ? WHERE name = ?"
        self._run(put, (*_said(book), name))

    def write_keys(self, name: str, keys: tuple[bytes, ...]) -> None:
        """Replace the wrapped keys."""
        self._run("DELETE FROM counterpoint_key WHERE name = ?", (name,))
        put = "INSERT INTO counterpoint_key (name, number, wrapped) VALUES (?, ?, ?)"
        self._run_many(put, [(name, number, wrapped) for number, wrapped in enumerate(keys)])

    def row(self, name: str, path: str) -> StoredRow | None:
        """One row."""
        found = self._run(f"{self._ROW} AND path = ?", (name, path))
        return as_row(found[0]) if found else None

    def rows(self, name: str) -> Iterator[StoredRow]:
        """All rows, by path."""
        after = ""
        while page := self._run(f"{self._ROW} AND path > ? ORDER BY path LIMIT {_BATCH}", (name, after)):
            yield from map(as_row, page)
            after = page[-1][0]

    def request(self, name: str, request: str) -> StoredRequest | None:
        """One request."""
        found = self._run(f"{self._ASKED} AND request = ?", (name, request))
        return as_request(found[0]) if found else None

    def open_at(self, name: str, path: str) -> StoredRequest | None:
        """The open request at a path."""
        found = self._run(f"{self._OPEN} AND path = ?", (name, path))
        return as_request(found[0]) if found else None

    def open_requests(self, name: str) -> list[StoredRequest]:
        """All open requests."""
        found = self._run(self._OPEN, (name,))
        return sorted(map(as_request, found), key=lambda request: request.entry)

    def requests(self, name: str) -> Iterator[StoredRequest]:
        """All requests, by id."""
        after = ""
        while page := self._run(f"{self._ASKED} AND request > ? ORDER BY request LIMIT {_BATCH}", (name, after)):
            yield from map(as_request, page)
            after = page[-1][0]

    def entry(self, name: str, number: int) -> bytes | None:
        """One entry."""
        found = self._run("SELECT entry FROM counterpoint_entry WHERE name = ? AND number = ?", (name, number))
        return _blob(found[0][0]) if found else None

    def entries(self, name: str, after: int) -> Iterator[tuple[int, bytes]]:
        """All entries after a number, in order."""
        sql = f"""SELECT number, entry FROM counterpoint_entry WHERE name = ? AND number > ?
            ORDER BY number LIMIT {_BATCH}"""
        while page := self._run(sql, (name, after)):
            for number, entry in page:
                yield _whole(number), _blob(entry)
            after = page[-1][0]

    def length(self, name: str) -> int:
        """How many items a session's stream has."""
        sql = "SELECT start + count FROM counterpoint_items WHERE name = ? ORDER BY start DESC LIMIT 1"
        found = self._run(sql, (name,))
        return int(found[0][0]) if found else 0

    def items(self, name: str, start: int) -> Iterator[StoredItems]:
        """The items of a session's stream from a place on, in order."""
        sql = f"{self._ITEMS} AND start >= ? ORDER BY start LIMIT {_PAGE}"
        while page := self._run(sql, (name, start)):
            yield from map(as_items, page)
            if len(page) < _PAGE:
                return
            start = page[-1][0] + 1

    def sent(self, name: str, request: str) -> list[StoredItems]:
        """The items that were sent under an id."""
        return list(map(as_items, self._run(f"{self._SENT} ORDER BY part", (name, request))))

    def write(self, unit: Unit) -> None:
        """Write all that a unit has changed."""
        name = unit.name
        self._move(unit)
        self._run_many(self._PUT_ENTRY, [(name, *entry) for entry in unit.entries])
        self._run_many(self._PUT_REQUEST, [(name, *request) for request in unit.requests.values()])
        self._run_many(self._PUT_ROW, [(name, *row) for row in unit.rows.values()])
        self._run_many(self._PUT_ITEMS, [(name, *items) for items in unit.items])
        self._written = unit

    def _move(self, unit: Unit) -> None:
        """Move the head of the chain."""
        self._run("UPDATE counterpoint_book SET number = ?, head = ? WHERE name = ?", (*unit.head, unit.name))


def _head(found: tuple[Any, ...]) -> Head:
    number, head = found
    return Head(_whole(number), _blob(head))


def _said(book: Book) -> tuple[int, bytes | None, str | None]:
    return int(book.witnessed), book.content, encode(book.beside).decode() if book.beside else None


def _names(beside: Any) -> tuple[str, ...]:
    """The names that were written; written otherwise, they were not by us."""
    try:
        names: tuple[str, ...] = decode(_text(beside).encode(), tuple[str, ...])
    except CounterpointError:
        raise _damaged() from None
    if not names or encode(names).decode() != beside:
        raise _damaged()
    return names


def as_row(found: tuple[Any, ...]) -> StoredRow:
    """A row of `_ROW`."""
    path, version, frame, node, sealed, spent = found
    return StoredRow(
        _text(path),
        _whole(version),
        _blob(frame),
        _perhaps(_blob, node),
        _perhaps(_blob, sealed),
        _perhaps(_whole, spent),
    )


def as_request(found: tuple[Any, ...]) -> StoredRequest:
    """A row of `_ASKED`."""
    *head, digest, version, pin, sampler, seed, answer = found
    request, path, entry = head
    named = (_text(request), _text(path), _whole(entry), _blob(digest))
    return StoredRequest(
        *named, _whole(version), _text(pin), _whole(sampler), _perhaps(_blob, seed), _perhaps(_blob, answer)
    )


def as_items(found: tuple[Any, ...]) -> StoredItems:
    """A row of `_ITEMS`."""
    start, count, sealed, request, part = found
    return StoredItems(_whole(start), _whole(count), _blob(sealed), _perhaps(_text, request), _perhaps(_whole, part))


def _text(value: Any) -> str:
    """A text; SQLite takes a value of any type for every column, if somebody puts it there."""
    if isinstance(value, str):
        return value
    raise _damaged()


def _whole(value: Any) -> int:
    if isinstance(value, int):
        return value
    raise _damaged()


def _blob(value: Any) -> bytes:
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value)
    raise _damaged()


def _perhaps(read: Callable[[Any], _T], value: Any) -> _T | None:
    return None if value is None else read(value)


def _damaged() -> LedgerTampered:
    return LedgerTampered("a record is not of the type that it was written with: it was changed, or is damaged")

"""The tables of a durable ledger, version 1, and the statements that read and write them.

The statements are written once, for SQLite and PostgreSQL. A store says how they are run (`_run`, `_run_many`,
`_run_all`) and how a column is compared with several keys (`_AMONG`, `_listed`). Open requests, and items sent under an
id, are few among many, so they have indexes of their own, which begin with another column than the session's name: a
planner that may look the name up might read all rows of the session.

The version is stored beside the tables. Another version than `VERSION` is refused: guessing at its meaning could forget
a charge. `{blob}` and `{rowless}` are what the two databases spell differently.

>>> [statement.split()[2] for statement in statements("BLOB")][:2], VERSION
(['counterpoint_session', 'counterpoint_key'], 1)
"""

import threading
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, TypeVar

from counterpoint.encoding import decode, encode
from counterpoint.errors import CounterpointError, LedgerTampered, UnknownSchema
from counterpoint.ledger.chain import Head
from counterpoint.ledger.state import Lookups
from counterpoint.ledger.store.records import (
    REGISTER,
    PrincipalTables,
    SessionHeader,
    StoredItems,
    StoredRequest,
    StoredRow,
    path_text,
    read_record,
)
from counterpoint.ledger.store.store import BATCH, Ahead, ChangeSet, Store

_REQUEST = "request, path, entry, digest, version, pin, sampler, seed, answer"
_ITEM = "start, count, sealed, request, part"
_PAGE = 64
_BY_NAME = tuple(f"counterpoint_{table}" for table in ("key", "entry", "row", "request", "items"))
"""The tables whose rows belong to the session of a name."""

_T = TypeVar("_T")
Statement = tuple[str, Sequence[Any]]
"""A text and its parameters."""


class _Numbered(NamedTuple):
    """An entry or a wrapped key, as it is stored."""

    number: int
    data: bytes


class _Sent(NamedTuple):
    """Where items that were sent under an id begin, and the id."""

    start: int
    request: str


class _Genesis(NamedTuple):
    """Where the chain of a session begins."""

    name: str
    genesis: bytes


class _Version(NamedTuple):
    """The version of a row."""

    path: str
    version: int


class _Header(NamedTuple):
    """A header as it is stored, without its keys."""

    number: int
    head: bytes
    genesis: bytes
    fingerprint: str | None
    witnessed: int
    content: bytes | None
    beside: str | None


class Tables(PrincipalTables, Store):
    """Reads and writes the records of a ledger."""

    _BEGIN: str
    _BEGIN_READING: str
    _LOCKED: str
    """Reads the head of a session, and locks it where other processes may write to it."""
    _BOUNDED: str | None = None
    """Bounds the time that the transaction of a request takes from here on, where the database can."""
    _AMONG: str
    """Compares a column with several keys, given as one parameter (`_listed`)."""
    _ALONE: str | None = None
    """Waits until no other process changes the schema or makes a session, where others may."""
    _HEAD = "SELECT number, head FROM counterpoint_session WHERE name = ?"
    _HEADER = """SELECT number, head, genesis, fingerprint, witnessed, content, beside
        FROM counterpoint_session WHERE name = ?"""
    _KEYS = "SELECT number, wrapped FROM counterpoint_key WHERE name = ? ORDER BY number"
    _ROW = "SELECT path, version, public_row, node, sealed, budget_used FROM counterpoint_row WHERE name = ?"
    _ASKED = f"SELECT {_REQUEST} FROM counterpoint_request WHERE name = ?"
    _OPEN = f"SELECT {_REQUEST} FROM counterpoint_request WHERE seed IS NOT NULL AND name || '' = ?"
    _VERSION = "SELECT path, version FROM counterpoint_row WHERE name = ?"
    _LOOKUPS = (f"{_ASKED} AND request", f"{_OPEN} AND path", f"{_ROW} AND path", f"{_VERSION} AND path")
    _PUT_ROW = """INSERT INTO counterpoint_row (name, path, version, public_row, node, sealed, budget_used)
        VALUES (?, ?, ?, ?, ?, ?, ?)
        ON CONFLICT (name, path) DO UPDATE SET version = excluded.version, public_row = excluded.public_row,
        node = excluded.node, sealed = excluded.sealed, budget_used = excluded.budget_used"""
    _PUT_REQUEST = f"""INSERT INTO counterpoint_request (name, {_REQUEST}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
        ON CONFLICT (name, request) DO UPDATE SET seed = excluded.seed, answer = excluded.answer"""
    _MOVE_HEAD = "UPDATE counterpoint_session SET number = ?, head = ? WHERE name = ?"
    _PUT_ENTRY = "INSERT INTO counterpoint_entry (name, number, entry) VALUES (?, ?, ?)"

    _ITEMS = f"SELECT {_ITEM} FROM counterpoint_items WHERE name = ?"
    _SENT = f"SELECT {_ITEM} FROM counterpoint_items WHERE name || '' = ? AND request = ?"
    _PUT_ITEMS = f"INSERT INTO counterpoint_items (name, {_ITEM}) VALUES (?, ?, ?, ?, ?, ?)"

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.latest = {}

    @abstractmethod
    def _run(self, sql: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """The rows of a statement."""

    @abstractmethod
    def _run_many(self, *statements: tuple[str, Sequence[Sequence[Any]]]) -> None:
        """Several statements, each once for each of its parameters."""

    @abstractmethod
    def _run_all(self, statements: Sequence[Statement]) -> list[list[tuple[Any, ...]]]:
        """Several statements, each with its rows; in one round trip, where there is one."""

    @abstractmethod
    def _listed(self, keys: tuple[str, ...]) -> Any:
        """Several keys as the one parameter that `_AMONG` takes."""

    def begin(self, name: str | None) -> Head | None:
        """Begin a transaction, and wait for any other that writes to this session."""
        if name is None:
            self._run(self._BEGIN)
            return None
        _, found = self._run_all([(self._BEGIN, ()), (self._LOCKED, (name,))])
        return read_record(Head, found[0]) if found else None

    def begin_alone(self, name: str) -> Head | None:
        """Begin a transaction on that session, during which no other process makes a session."""
        self._run(self._BEGIN)
        if self._ALONE is not None:
            self._run(self._ALONE)
        return self.lock_session(name)

    def lock_session(self, name: str) -> Head | None:
        """Lock another session in this transaction."""
        found = self._run(self._LOCKED, (name,))
        return read_record(Head, found[0]) if found else None

    def begin_reading(self) -> None:
        """Begin a transaction that sees one moment only."""
        self._run(self._BEGIN_READING)

    def begin_changes(self, name: str, lookups: Lookups) -> ChangeSet | None:
        """Begin a transaction, lock the session, and read ahead all that will be looked up."""
        keys = (lookups.requests, *[tuple(map(path_text, paths)) for paths in lookups[1:]])
        statements: list[Statement] = [(self._BEGIN, ()), (self._LOCKED, (name,))]
        if self._BOUNDED is not None:
            statements.append((self._BOUNDED, ()))
        for sql, wanted in zip(self._LOOKUPS, keys, strict=True):
            if wanted:  # after the lock: each statement sees what is committed when it begins
                statements.append((f"{sql} {self._AMONG}", (name, self._listed(wanted))))
        _, head, *found = self._run_all(statements)
        if self._BOUNDED is not None:
            found = found[1:]
        if not head:
            return None
        ahead, records = Ahead(*map(dict.fromkeys, keys)), iter(found)
        if lookups.requests:
            ahead.requests.update({record[0]: read_record(StoredRequest, record) for record in next(records)})
        if lookups.waiting:
            ahead.opened.update({record[1]: read_record(StoredRequest, record) for record in next(records)})
        if lookups.rows:
            ahead.rows.update({record[0]: read_record(StoredRow, record) for record in next(records)})
        if lookups.versions:
            ahead.versions.update(read_record(_Version, record) for record in next(records))
        return ChangeSet(self, name, read_record(Head, head[0]), ahead)

    def header(self, name: str) -> SessionHeader | None:
        """A session's own record."""
        found = self._run(self._HEADER, (name,))
        if not found:
            return None
        number, head, genesis, fingerprint, witnessed, content, beside = read_record(_Header, found[0])
        wrapped = [read_record(_Numbered, found) for found in self._run(self._KEYS, (name,))]
        if [place for place, _ in wrapped] != list(range(len(wrapped))) or witnessed not in (0, 1):
            raise LedgerTampered(f"the header of {name!r} or its keys are not as they were written")
        keys, names = tuple(key for _, key in wrapped), () if beside is None else _names(name, beside)
        return SessionHeader(Head(number, head), genesis, fingerprint, keys, bool(witnessed), content, names)

    def headers(self) -> dict[str, bytes]:
        """The genesis of every session by its name, and that of the register."""
        found = self._run("SELECT name, genesis FROM counterpoint_session ORDER BY name")
        return dict(read_record(_Genesis, one) for one in found)

    def names(self) -> tuple[str, ...]:
        """The sessions in this ledger."""
        return tuple(name for name in self.headers() if name != REGISTER)

    def names_by_table(self) -> Iterator[tuple[str, str]]:
        """Each table that has rows of sessions, with each name that occurs in it."""
        for table in _BY_NAME:
            found = self._run(f"SELECT name FROM {table} ORDER BY name LIMIT 1")
            while found:  # from one name to the next by the index: a table has many rows of each
                yield table, found[0][0]
                found = self._run(f"SELECT name FROM {table} WHERE name > ? ORDER BY name LIMIT 1", found[0])

    def create(self, name: str, header: SessionHeader, first: bytes) -> bool:
        """Store a new header with its first entry; False, without any change, if the name is taken."""
        put = """INSERT INTO counterpoint_session
            (name, number, head, genesis, fingerprint, witnessed, content, beside)
            VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (name) DO NOTHING RETURNING name"""
        if not self._run(put, (name, *header.head, header.genesis, header.fingerprint, *_columns(header))):
            return False
        self.write_keys(name, header.keys)
        self._run(self._PUT_ENTRY, (name, header.head.number, first))
        return True

    def write_header(self, name: str, header: SessionHeader) -> None:
        """Replace what a session's own record says besides its head and its keys."""
        put = "UPDATE counterpoint_session SET witnessed = ?, content = ?, beside = ? WHERE name = ?"
        self._run(put, (*_columns(header), name))

    def write_keys(self, name: str, keys: tuple[bytes, ...]) -> None:
        """Replace the wrapped keys."""
        self._run("DELETE FROM counterpoint_key WHERE name = ?", (name,))
        put = "INSERT INTO counterpoint_key (name, number, wrapped) VALUES (?, ?, ?)"
        self._run_many((put, [(name, number, wrapped) for number, wrapped in enumerate(keys)]))

    def delete_sealed(self, name: str) -> None:
        """Delete the states, requests and items of a session; the accounts of its sessions stay."""
        for rows in ("counterpoint_request", "counterpoint_items"):
            self._run(f"DELETE FROM {rows} WHERE name = ?", (name,))
        self._run("DELETE FROM counterpoint_row WHERE name = ? AND node IS NULL", (name,))

    def row(self, name: str, path: str) -> StoredRow | None:
        """One row."""
        found = self._run(f"{self._ROW} AND path = ?", (name, path))
        return read_record(StoredRow, found[0]) if found else None

    def rows_at(self, name: str, paths: Sequence[str]) -> Iterator[StoredRow]:
        """The rows at these paths that there are."""
        for found in self._several(self._ROW, name, paths):
            yield read_record(StoredRow, found)

    def versions_at(self, name: str, paths: Sequence[str]) -> dict[str, int]:
        """The versions of the rows at these paths that there are."""
        return dict(read_record(_Version, found) for found in self._several(self._VERSION, name, paths))

    def _several(self, sql: str, name: str, paths: Sequence[str]) -> Iterator[tuple[Any, ...]]:
        for start in range(0, len(paths), BATCH):
            some = tuple(paths[start : start + BATCH])
            yield from self._run(f"{sql} AND path {self._AMONG}", (name, self._listed(some)))

    def rows(self, name: str) -> Iterator[StoredRow]:
        """All rows, by path."""
        after = ""
        while page := self._run(f"{self._ROW} AND path > ? ORDER BY path LIMIT {BATCH}", (name, after)):
            yield from (read_record(StoredRow, found) for found in page)
            after = page[-1][0]

    def request(self, name: str, request: str) -> StoredRequest | None:
        """One request."""
        found = self._run(f"{self._ASKED} AND request = ?", (name, request))
        return read_record(StoredRequest, found[0]) if found else None

    def open_at(self, name: str, path: str) -> StoredRequest | None:
        """The open request at a path."""
        found = self._run(f"{self._OPEN} AND path = ?", (name, path))
        return read_record(StoredRequest, found[0]) if found else None

    def open_requests(self, name: str) -> list[StoredRequest]:
        """All open requests."""
        found = [read_record(StoredRequest, found) for found in self._run(self._OPEN, (name,))]
        return sorted(found, key=lambda request: request.entry)

    def requests(self, name: str) -> Iterator[StoredRequest]:
        """All requests, by id."""
        after = ""
        while page := self._run(f"{self._ASKED} AND request > ? ORDER BY request LIMIT {BATCH}", (name, after)):
            yield from (read_record(StoredRequest, found) for found in page)
            after = page[-1][0]

    def entry(self, name: str, number: int) -> bytes | None:
        """One entry."""
        found = self._run("SELECT number, entry FROM counterpoint_entry WHERE name = ? AND number = ?", (name, number))
        return read_record(_Numbered, found[0]).data if found else None

    def entries(self, name: str, after: int, page: int = BATCH) -> Iterator[tuple[int, bytes]]:
        """All entries after a number, in order; `page` of them are read at once."""
        sql = f"""SELECT number, entry FROM counterpoint_entry WHERE name = ? AND number > ?
            ORDER BY number LIMIT {page}"""
        while several := self._run(sql, (name, after)):
            for number, data in several:
                if type(number) is int and type(data) is bytes:  # as `read_record` would find, for each of a million
                    yield number, data
                else:
                    yield read_record(_Numbered, (number, data))
            after = several[-1][0]

    def length(self, name: str) -> int:
        """How many items a session's stream has."""
        sql = "SELECT start + count FROM counterpoint_items WHERE name = ? ORDER BY start DESC LIMIT 1"
        found = self._run(sql, (name,))
        return int(found[0][0]) if found else 0

    def items(self, name: str, start: int) -> Iterator[StoredItems]:
        """The items of a session's stream from a place on, in order."""
        sql = f"{self._ITEMS} AND start >= ? ORDER BY start LIMIT {_PAGE}"
        while page := self._run(sql, (name, start)):
            yield from (read_record(StoredItems, found) for found in page)
            if len(page) < _PAGE:
                return
            start = page[-1][0] + 1

    def sent(self, name: str, request: str) -> list[StoredItems]:
        """The items that were sent under an id."""
        return [read_record(StoredItems, found) for found in self._run(f"{self._SENT} ORDER BY part", (name, request))]

    def newest_ids(self, name: str) -> Iterator[str]:
        """The ids under which items were sent to a session's stream, newest first."""
        before = self.length(name)
        sql = f"""SELECT start, request FROM counterpoint_items WHERE name = ? AND part = 0 AND start < ?
            ORDER BY start DESC LIMIT {_PAGE}"""
        while page := self._run(sql, (name, before)):
            yield from (read_record(_Sent, found).request for found in page)
            before = page[-1][0]

    def write(self, changes: ChangeSet) -> None:
        """Write a change set."""
        name = changes.name
        self._run_many(
            (self._MOVE_HEAD, [(*changes.head, name)]),
            (self._PUT_ENTRY, [(name, *entry) for entry in changes.entries]),
            (self._PUT_REQUEST, [(name, *request) for request in changes.requests.values()]),
            (self._PUT_ROW, [(name, *row) for row in changes.rows.values()]),
            (self._PUT_ITEMS, [(name, *items) for items in changes.items]),
        )
        if changes.latest is not None:
            self.latest[name] = changes.head.number, changes.latest


def _columns(header: SessionHeader) -> tuple[int, bytes | None, str | None]:
    return int(header.witnessed), header.content, encode(header.beside).decode() if header.beside else None


def _names(name: str, beside: str) -> tuple[str, ...]:
    """The names in a header; `LedgerTampered` if they are not written as `encode` writes them."""
    try:
        names: tuple[str, ...] = decode(beside.encode(), tuple[str, ...])
    except CounterpointError:
        names = ()
    if not names or encode(names).decode() != beside:
        raise LedgerTampered(f"the names of other sessions in the header of {name!r} were changed, or are damaged")
    return names


VERSION = 1
_TABLES = (
    """CREATE TABLE counterpoint_session (
        name TEXT PRIMARY KEY, number BIGINT NOT NULL, head {blob} NOT NULL, genesis {blob} NOT NULL,
        fingerprint TEXT, witnessed BIGINT NOT NULL, content {blob}, beside TEXT)""",
    """CREATE TABLE counterpoint_key (
        name TEXT NOT NULL, number BIGINT NOT NULL, wrapped {blob} NOT NULL, PRIMARY KEY (name, number))""",
    """CREATE TABLE counterpoint_entry (
        name TEXT NOT NULL, number BIGINT NOT NULL, entry {blob} NOT NULL, PRIMARY KEY (name, number)){rowless}""",
    """CREATE TABLE counterpoint_row (
        name TEXT NOT NULL, path TEXT NOT NULL, version BIGINT NOT NULL, public_row {blob} NOT NULL,
        node {blob}, sealed {blob}, budget_used BIGINT CHECK (budget_used BETWEEN 0 AND 4611686018427387904),
        PRIMARY KEY (name, path)){rowless}""",
    """CREATE TABLE counterpoint_request (
        name TEXT NOT NULL, request TEXT NOT NULL, path TEXT NOT NULL, entry BIGINT NOT NULL,
        digest {blob} NOT NULL, version BIGINT NOT NULL, pin TEXT NOT NULL, sampler BIGINT NOT NULL,
        seed {blob}, answer {blob}, PRIMARY KEY (name, request),
        CHECK ((seed IS NULL) <> (answer IS NULL))){rowless}""",
    """CREATE UNIQUE INDEX counterpoint_open ON counterpoint_request (path, name) WHERE seed IS NOT NULL""",
    """CREATE TABLE counterpoint_items (
        name TEXT NOT NULL, start BIGINT NOT NULL, count BIGINT NOT NULL, sealed {blob} NOT NULL, request TEXT,
        part BIGINT CHECK (part >= 0 AND (request IS NULL) = (part IS NULL)),
        PRIMARY KEY (name, start), CHECK (start >= 0 AND count > 0))""",
    """CREATE UNIQUE INDEX counterpoint_sent ON counterpoint_items (request, part, name) WHERE request IS NOT NULL""",
    """CREATE TABLE counterpoint_principal (
        name TEXT PRIMARY KEY, role TEXT NOT NULL, made BIGINT NOT NULL, ended BIGINT)""",
    """CREATE TABLE counterpoint_api_key (
        id TEXT PRIMARY KEY, principal TEXT NOT NULL, digest {blob} NOT NULL, made BIGINT NOT NULL,
        expires BIGINT, ended BIGINT)""",
)


def statements(blob: str, rowless: str = "") -> list[str]:
    """The statements that make the tables of a new ledger."""
    return [statement.format(blob=blob, rowless=rowless) for statement in _TABLES]


def must_be_known(found: int) -> None:
    """`UnknownSchema` unless a ledger has the version of this code."""
    if found != VERSION:
        raise UnknownSchema(
            f"this ledger has schema version {found}, and this release of counterpoint reads version {VERSION}; open "
            "it with the release that wrote it, or with a newer one that says how to migrate it"
        )

"""What a durable ledger needs of a database, the changes of one transaction, and the public record.

A `Store` reads records and writes a `ChangeSet` in one transaction. Requests that share a transaction see each other's
changes in the set; nothing is written before all of them are worked out, so a refused one leaves no trace.

>>> changes = ChangeSet(None, "people", Head(0, bytes(32)))
>>> changes.append("open", "root", (), "Filter", "").number, changes.head.number
(1, 1)
"""

import json
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from hashlib import sha256
from itertools import islice
from typing import Any, NamedTuple, Protocol

from counterpoint.coins.keystream import fresh
from counterpoint.errors import LedgerError, LedgerTampered
from counterpoint.ledger.chain import RECORD, Entry, Head, Signer, link, read_entry
from counterpoint.ledger.state import Lookups, Path
from counterpoint.ledger.store.records import SessionHeader, StoredItems, StoredRequest, StoredRow, path_text

BATCH = 4096
"""How many records are read at once."""
_SALT = 16
"""How many random bytes each entry has."""


class Store(Protocol):
    """A database with the tables of a ledger; one thread at a time uses its connection."""

    lock: AbstractContextManager[Any]
    """The lock of the connection."""

    latest: dict[str, tuple[int, int]]
    """The number and the time of the last entry that was written here, by the name of its session."""

    def begin(self, name: str | None) -> Head | None:
        """Begin a transaction; with a name, lock that session and return its head (None: there is no such session)."""

    def begin_alone(self, name: str) -> Head | None:
        """Begin a transaction, as `begin` does, during which no other process makes a session."""

    def lock_session(self, name: str) -> Head | None:
        """Lock another session in this transaction, and return its head (None: there is no such session)."""

    def begin_reading(self) -> None:
        """Begin a transaction that sees one moment, whatever others write; `rollback` ends it."""

    def commit(self) -> None:
        """Make everything since `begin` durable, or raise `LedgerFailed`."""

    def rollback(self) -> None:
        """Forget everything since `begin`."""

    def header(self, name: str) -> SessionHeader | None:
        """A session's own record."""

    def headers(self) -> dict[str, bytes]:
        """The genesis of every session by its name, and that of the register."""

    def names(self) -> tuple[str, ...]:
        """The sessions in this ledger."""

    def names_by_table(self) -> Iterator[tuple[str, str]]:
        """Each table that has rows of sessions, with each name that occurs in it."""

    def create(self, name: str, header: SessionHeader, first: bytes) -> bool:
        """Store a new header with its first entry; False, without any change, if the name is taken."""

    def write_header(self, name: str, header: SessionHeader) -> None:
        """Replace a header, except its head and its keys."""

    def write_keys(self, name: str, keys: tuple[bytes, ...]) -> None:
        """Replace the wrapped keys."""

    def delete_sealed(self, name: str) -> None:
        """Delete the states, requests and items of a session; the accounts of its sessions stay."""

    def row(self, name: str, path: str) -> StoredRow | None:
        """One row."""

    def rows_at(self, name: str, paths: Sequence[str]) -> Iterator[StoredRow]:
        """The rows at these paths that there are."""

    def versions_at(self, name: str, paths: Sequence[str]) -> dict[str, int]:
        """The versions of the rows at these paths that there are."""

    def rows(self, name: str) -> Iterator[StoredRow]:
        """All rows."""

    def request(self, name: str, request: str) -> StoredRequest | None:
        """One request, open or done."""

    def open_at(self, name: str, path: str) -> StoredRequest | None:
        """The open request at a path."""

    def open_requests(self, name: str) -> list[StoredRequest]:
        """All open requests, by the number of their entry."""

    def requests(self, name: str) -> Iterator[StoredRequest]:
        """All requests."""

    def entry(self, name: str, number: int) -> bytes | None:
        """One entry."""

    def entries(self, name: str, after: int, page: int = BATCH) -> Iterator[tuple[int, bytes]]:
        """All entries after a number, in order; `page` of them are read at once."""

    def length(self, name: str) -> int:
        """How many items a session's stream has."""

    def items(self, name: str, start: int) -> Iterator[StoredItems]:
        """The items of a session's stream from a place on, in order."""

    def sent(self, name: str, request: str) -> list[StoredItems]:
        """The items that were sent under an id, in order; none if it is new."""

    def newest_ids(self, name: str) -> Iterator[str]:
        """The ids under which items were sent to a session's stream, newest first."""

    def begin_changes(self, name: str, lookups: Lookups) -> "ChangeSet | None":
        """Begin a transaction, as `begin` does, and read ahead all that will be looked up."""

    def write(self, changes: "ChangeSet") -> None:
        """Write a change set."""

    def snapshot(self) -> "AbstractContextManager[Store]":
        """The database as of a moment after this was called, for a long look while others read and write this one."""

    def erase_deleted(self) -> bool:
        """Overwrite what was replaced or deleted in the database's files. Returns whether that was possible."""

    def size(self) -> int:
        """How many bytes the database has."""

    @property
    def is_open(self) -> bool:
        """Whether the connection is usable, as far as is known without using it."""

    def close(self) -> None:
        """Close the database."""

    def abandon(self) -> None:
        """Close the database after a failure, without another write or sync."""


class Ahead(NamedTuple):
    """Records that were read in one round trip; None for those that do not exist."""

    requests: dict[str, StoredRequest | None]
    opened: dict[str, StoredRequest | None]
    rows: dict[str, StoredRow | None]
    versions: dict[str, int | None]


class ChangeSet:
    """The changes of one transaction, not written yet; reads see them."""

    __slots__ = (
        "_ahead",
        "_store",
        "base",
        "begun",
        "entries",
        "head",
        "items",
        "latest",
        "name",
        "opened",
        "requests",
        "rows",
        "settled",
    )

    def __init__(self, store: Store | None, name: str, head: Head, ahead: Ahead | None = None) -> None:
        self._store = store
        self.name = name
        self.head = self.base = head
        self.begun: list[Entry] = []
        self.entries: list[tuple[int, bytes]] = []
        self.rows: dict[str, StoredRow] = {}
        self.requests: dict[str, StoredRequest] = {}
        self.opened: dict[str, StoredRequest | None] = {}
        self.items: list[StoredItems] = []
        self.settled = False
        self.latest: int | None = None
        """The latest time on record, once it is known."""
        self._ahead = ahead or Ahead({}, {}, {}, {})

    def append(
        self,
        kind: str,
        request: str,
        path: Path,
        what: str,
        body: str,
        *,
        version: int = 0,
        state: str = "",
        record: str = "",
        who: str = "",
        cost: str = "",
    ) -> Entry:
        """Add a link to the chain."""
        number, now, salt = self.head.number + 1, self.now(), fresh(_SALT).hex()
        entry = Entry(number, kind, request, path, what, body, version, state, now, record, who, salt, cost)
        self.begun.append(entry)
        data = entry.encoded()
        self.head = Head(entry.number, link(self.head.hash, data))
        self.entries.append((entry.number, data))
        return entry

    def now(self) -> int:
        """Seconds since 1970, never before the time of the last entry: a clock may be set back."""
        if self.latest is None:
            known = {} if self._store is None else self._store.latest
            number, at = known.get(self.name, (-1, 0))
            data = None if number == self.base.number else self.entry(self.base.number)
            self.latest = at if data is None else max(0, read_entry(data).at)
        self.latest = max(self.latest, int(time.time()))
        return self.latest

    def row(self, path: Path) -> StoredRow | None:
        """The row at a path, as this change set leaves it."""
        text = path_text(path)
        found = self.rows.get(text)
        if found is not None or text in self._ahead.rows:
            return found or self._ahead.rows[text]
        return None if self._store is None else self._store.row(self.name, text)

    def version(self, path: Path) -> int | None:
        """The version of the row at a path, as this change set leaves it."""
        text = path_text(path)
        if text not in self.rows and text in self._ahead.versions:
            return self._ahead.versions[text]
        row = self.row(path)
        return None if row is None else row.version

    def request(self, request: str) -> StoredRequest | None:
        """A request, as this change set leaves it."""
        found = self.requests.get(request)
        if found is not None or request in self._ahead.requests:
            return found or self._ahead.requests[request]
        return None if self._store is None else self._store.request(self.name, request)

    def open_at(self, path: Path) -> StoredRequest | None:
        """The open request at a path, as this change set leaves it."""
        text = path_text(path)
        if text in self.opened:
            return self.opened[text]
        if text in self._ahead.opened:
            return self._ahead.opened[text]
        return None if self._store is None else self._store.open_at(self.name, text)

    def entry(self, number: int) -> bytes | None:
        """An entry, of this change set or an earlier one."""
        own = [data for at, data in self.entries if at == number]
        if own:
            return own[0]
        return None if self._store is None else self._store.entry(self.name, number)

    def added(self, after: int, page: int = BATCH) -> Iterator[tuple[int, bytes]]:
        """The entries after a number, up to where this change set begins; `page` of them are read at once."""
        return iter(()) if self._store is None else self._store.entries(self.name, after, page)

    def length(self) -> int:
        """How many items the session's stream has, as this change set leaves it."""
        if self.items:
            return self.items[-1].start + self.items[-1].size
        return 0 if self._store is None else self._store.length(self.name)

    def sent(self, request: str) -> list[StoredItems]:
        """The items that were sent under an id, as this change set leaves them."""
        own = [items for items in self.items if items.request == request]
        return own if own or self._store is None else self._store.sent(self.name, request)

    def newest_ids(self) -> Iterator[str]:
        """The ids under which items were sent, newest first, as this change set leaves them."""
        yield from (items.request for items in reversed(self.items) if items.request is not None and not items.part)
        yield from () if self._store is None else self._store.newest_ids(self.name)

    def put_items(self, items: StoredItems) -> None:
        """Store items that arrived; their sender may rely on the commit, as on an answer."""
        self.items.append(items)
        what, body = f"{items.size} items", sha256(items.sealed).hexdigest()
        self.append("items", items.request or "", (), what, body, version=self.length())
        self.settled = True

    def put_row(self, row: StoredRow) -> None:
        """Store a row."""
        self.rows[row.path] = row

    def put_request(self, request: StoredRequest) -> None:
        """Store a request."""
        self.requests[request.request] = request
        self.opened[request.path] = request if request.seed is not None else None


def exported(
    connection: Callable[[], AbstractContextManager[Store]], name: str, signer: Signer | None = None
) -> Iterator[str]:
    """The public record of a session as JSON lines, which `checker.py` reads, or anyone's own program. It needs no key.

    The first line names the record, where its chain begins and ends, and the signature of `signer`, if one is given;
    each other line holds one entry, as the text that is hashed. Seeds, states, answers and items are sealed and not in
    it. The record is that of the moment of the first line: the chain only grows, so it is read in pages, each with the
    connection for itself, and requests go on between them.

    >>> from contextlib import nullcontext
    >>> from types import SimpleNamespace
    >>> list(exported(lambda: nullcontext(SimpleNamespace(header=lambda name: None)), "people"))
    Traceback (most recent call last):
    ...
    counterpoint.errors.LedgerError: there is no session 'people' in this ledger
    """
    with connection() as store:
        header = store.header(name)
    if header is None:
        raise LedgerError(f"there is no session {name!r} in this ledger")
    last = header.head.number
    head = {"number": last, "hash": header.head.hash.hex()}
    first = {"format": RECORD, "session": name, "genesis": header.genesis.hex(), "head": head}
    signed = {} if signer is None else {"signature": signer.sign_record(header.genesis, name, header.head)}
    yield json.dumps(first | signed)
    for after in range(0, last, BATCH):
        size = min(BATCH, last - after)
        with connection() as store:
            page = list(islice(store.entries(name, after, size), size))
        if [number for number, _ in page] != list(range(after + 1, after + size + 1)):
            raise LedgerTampered(f"an entry of {name!r} between {after + 1} and {after + size} is missing")
        yield from (json.dumps({"number": number, "entry": data.decode()}) for number, data in page)

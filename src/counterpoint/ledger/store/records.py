"""The records of a durable ledger, as a database sees them: public text, sealed blobs, and links of the hash chain.

A record holds public facts, sealed blobs and fingerprints of sealed blobs: never a secret, nor the fingerprint of one,
since an answer is easily guessed. Principals and the digests of their API keys are records too; a key itself is never
stored. The entry that leaves a record has its fingerprint, so a changed column is noticed.

>>> StoredKey("a1", "ann", bytes(32), made=0, expires=10, ended=None).stands(now=9)
True
"""

from collections.abc import Sequence
from functools import lru_cache
from hashlib import sha256
from typing import Any, NamedTuple, TypeVar

import msgspec

from counterpoint.errors import LedgerTampered
from counterpoint.ledger.chain import _ENCODER, _UNREADABLE, HISTORY, Head
from counterpoint.ledger.state import Path

_T = TypeVar("_T")

REGISTER = "@register"
"""The name of the register. No session may have it."""

KINDS = (
    *HISTORY,
    *("answer", "keys", "signer", "items", "witness", "lost"),
)
LONGEST = 2**24
"""How many bytes an entry has at most: a checker of records refuses longer ones unread."""
BUDGET = 2**62
"""A whole budget, where a database counts in 64 bits. Parts of it are rounded up: they exceed it iff the loss does."""


def fits(body: bytes, *texts: str) -> bool:
    """Whether an entry with this body and these texts is no longer than `LONGEST`.

    >>> fits(b"short"), fits(bytes(LONGEST))
    (True, False)
    """
    if len(body) + sum(map(len, texts)) < LONGEST // 16:  # a character is written with 7 bytes at most
        return True
    return len(body) <= LONGEST and len(_ENCODER.encode((body.decode(), *texts))) + _REST <= LONGEST


_REST = 4096
"""How many bytes the other fields of an entry have at most."""


def fingerprint_of(columns: tuple[object, ...]) -> str:
    """The fingerprint of all columns, which stands for them on record."""
    return sha256(msgspec.msgpack.encode(columns)).hexdigest()


class SessionHeader(NamedTuple):
    """A session's own record: its head, the data it is about, its wrapped keys, and whether it must have a witness.

    `content` is a digest of the rows as they were given, sealed (None: it is not known, or this is a stream), and
    `beside` names the sessions that had the same rows when this was noted.
    """

    head: Head
    genesis: bytes
    fingerprint: str | None
    keys: tuple[bytes, ...]
    witnessed: bool
    content: bytes | None = None
    beside: tuple[str, ...] = ()

    @property
    def record(self) -> str:
        """The fingerprint of the fields that no other entry covers."""
        return fingerprint_of((self.fingerprint, self.witnessed, self.content, self.beside))


def keys_digest(keys: tuple[bytes, ...]) -> str:
    """The fingerprint of wrapped keys.

    >>> keys_digest((b"one", b"two")) != keys_digest((b"two", b"one"))
    True
    """
    return sha256(b"".join(sha256(key).digest() for key in keys)).hexdigest()


class StoredRow(NamedTuple):
    """A row: its public part (mechanism, cursor, by) and its state, which is open (a session's), sealed, or erased.

    `budget_used` is the used part of a session's budget, in parts of `BUDGET`; the database checks its range.
    """

    path: str
    version: int
    public: bytes
    node: bytes | None
    sealed: bytes | None
    budget_used: int | None = None

    @property
    def fingerprint(self) -> str:
        """The fingerprint of all columns."""
        return fingerprint_of(self)


class StoredRequest(NamedTuple):
    """A request: open as long as it has a seed, done once it has an answer. Both are sealed."""

    request: str
    path: str
    entry: int
    digest: bytes
    version: int
    pin: str
    sampler: int
    seed: bytes | None
    answer: bytes | None

    @property
    def fingerprint(self) -> str:
        """The fingerprint of all columns."""
        return fingerprint_of(self)

    @property
    def place(self) -> tuple[Path | int | str, ...]:
        """What the seals of its seed and its answer are bound to: all other columns."""
        pinned = (self.entry, self.digest.hex(), self.pin, self.sampler)
        return (read_path(self.path), self.version, self.request, *pinned)

    def settled(self, answer: bytes) -> "StoredRequest":
        """The same request, answered: the seed is gone."""
        return StoredRequest(*self[:-2], None, answer)  # `_replace` takes three times as long, at every ask


class StoredItems(NamedTuple):
    """Items of a stream's log that arrived together: from which place on, how many, and what they say, sealed.

    `request` is the id under which they were sent, if any; then this is the batch number `part` of what was.
    """

    start: int
    size: int
    sealed: bytes
    request: str | None = None
    part: int | None = None

    @property
    def place(self) -> tuple["tuple[int | str, ...] | int | str", ...]:
        """What the seal is bound to.

        >>> StoredItems(5, 2, b"").place, StoredItems(5, 2, b"", "monday", 0).place
        (((5,), 2), ((5,), 2, 'monday', 0))
        """
        bound = ((self.start,), self.size)
        return bound if self.request is None or self.part is None else (*bound, self.request, self.part)


@lru_cache(maxsize=4096)
def path_text(path: Path) -> str:
    """A path as the database has it.

    >>> path_text((0, "str:CA"))
    '[0,"str:CA"]'
    """
    return _ENCODER.encode(path).decode()


@lru_cache(maxsize=4096)
def read_path(text: str) -> Path:
    """Read a path that `path_text` wrote; `LedgerTampered` if this is not one."""
    try:
        return msgspec.json.decode(text, type=tuple[int | str, ...])
    except _UNREADABLE:
        raise LedgerTampered("the path of a record cannot be read") from None


def read_record(kind: type[_T], found: Sequence[Any]) -> _T:
    """A record of this kind; SQLite stores a value of any type in every column, if it is put there."""
    try:
        return msgspec.convert(found, kind, builtin_types=(bytes,))
    except msgspec.ValidationError:
        raise LedgerTampered(
            "a record is not of the type that it was written with: it was changed, or is damaged"
        ) from None


class StoredPrincipal(NamedTuple):
    """A principal, when it was made and, if it was removed, when."""

    name: str
    role: str
    made: int
    ended: int | None = None

    @property
    def fingerprint(self) -> str:
        """Stands in the register for all columns."""
        return fingerprint_of(self)


class StoredKey(NamedTuple):
    """A key: its public id, whose it is, the digest of its secret, and its times."""

    id: str
    principal: str
    digest: bytes
    made: int
    expires: int | None = None
    ended: int | None = None

    def stands(self, now: int) -> bool:
        """Whether it has neither expired nor been revoked."""
        return self.ended is None and (self.expires is None or now < self.expires)

    @property
    def fingerprint(self) -> str:
        """Stands in the register for all columns."""
        return fingerprint_of(self)


class KeyLookup(NamedTuple):
    """A key and its principal, as they are stored at one moment, and how far the register had come then."""

    head: Head | None
    key: StoredKey | None
    principal: StoredPrincipal | None


class PrincipalTables:
    """The statements about principals and keys."""

    _PRINCIPAL = "SELECT name, role, made, ended FROM counterpoint_principal"
    _API_KEY = "SELECT id, principal, digest, made, expires, ended FROM counterpoint_api_key"
    _HOLDER = f"{_PRINCIPAL} WHERE name = (SELECT principal FROM counterpoint_api_key WHERE id = ?)"
    _BEGIN_READING: str
    """Begins a transaction that sees one moment only."""
    _HEAD: str

    def _run(self, sql: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        raise NotImplementedError

    def _run_all(self, statements: Sequence[tuple[str, Sequence[Any]]]) -> list[list[tuple[Any, ...]]]:
        raise NotImplementedError

    def rollback(self) -> None:
        """Forget everything since the transaction began."""
        raise NotImplementedError

    def look_up_key(self, id: str) -> KeyLookup:
        """One key, by its public id; in one round trip, where there is one."""
        statements: list[tuple[str, Sequence[Any]]] = [
            (self._BEGIN_READING, ()),
            (self._HEAD, (REGISTER,)),
            (f"{self._API_KEY} WHERE id = ?", (id,)),
            (self._HOLDER, (id,)),
            ("COMMIT", ()),  # after a ROLLBACK psycopg would prepare every statement again
        ]
        try:
            _, head, key, holder, _ = self._run_all(statements)
        except BaseException:
            self.rollback()
            raise
        return KeyLookup(
            read_record(Head, head[0]) if head else None,
            read_record(StoredKey, key[0]) if key else None,
            read_record(StoredPrincipal, holder[0]) if holder else None,
        )

    def principal(self, name: str) -> StoredPrincipal | None:
        """One principal."""
        found = self._run(f"{self._PRINCIPAL} WHERE name = ?", (name,))
        return read_record(StoredPrincipal, found[0]) if found else None

    def principals(self) -> list[StoredPrincipal]:
        """All of them, by name."""
        return [read_record(StoredPrincipal, found) for found in self._run(f"{self._PRINCIPAL} ORDER BY name")]

    def put_principal(self, principal: StoredPrincipal) -> None:
        """Store a principal."""
        put = """INSERT INTO counterpoint_principal (name, role, made, ended) VALUES (?, ?, ?, ?)
            ON CONFLICT (name) DO UPDATE SET role = excluded.role, made = excluded.made, ended = excluded.ended"""
        self._run(put, principal)

    def api_key(self, id: str) -> StoredKey | None:
        """One key, by its public id."""
        found = self._run(f"{self._API_KEY} WHERE id = ?", (id,))
        return read_record(StoredKey, found[0]) if found else None

    def api_keys(self) -> list[StoredKey]:
        """All keys, the oldest first."""
        return [read_record(StoredKey, found) for found in self._run(f"{self._API_KEY} ORDER BY made, id")]

    def put_api_key(self, key: StoredKey) -> None:
        """Store a key."""
        put = """INSERT INTO counterpoint_api_key (id, principal, digest, made, expires, ended)
            VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO UPDATE SET principal = excluded.principal,
            digest = excluded.digest, made = excluded.made, expires = excluded.expires, ended = excluded.ended"""
        self._run(put, key)

    def delete_api_key(self, id: str) -> None:
        """Delete a key: nothing is to be kept of a browser that has signed out."""
        self._run("DELETE FROM counterpoint_api_key WHERE id = ?", (id,))

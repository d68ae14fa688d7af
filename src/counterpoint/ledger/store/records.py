"""What a durable ledger stores, as a database sees it: records of public text and sealed blobs, and the hash chain.

Every entry's hash covers the one before it, so the last hash stands for the whole history; an entry holds public facts
and the fingerprints of sealed blobs, never a secret and never the fingerprint of one (an answer is easily guessed).

>>> first = Entry(1, "open", "root", (), "Filter", "")
>>> first.hash(bytes(32)) == first.hash(bytes(32)) != Entry(2, "open", "root", (), "Filter", "").hash(bytes(32))
True
"""

from collections.abc import Sequence
from functools import lru_cache
from hashlib import sha256
from typing import Any, NamedTuple, TypeVar

import msgspec

from counterpoint.errors import LedgerTampered
from counterpoint.ledger.state import Fact, Path

_T = TypeVar("_T")

INTENTS = ("open", "launch", "delegation", "ask", "revocation", "recount", "closing", "reopening")
REFUSALS = ("refusal", "denial")
ENDINGS = ("recovery", "retirement")
"""Acts of a custodian after which nothing more is answered."""
REGISTER = "@register"
"""The name of the register's book. No session may have it."""
SESSION, PRINCIPAL, API_KEY = REGISTERED = ("session", "principal", "api key")
"""What the entries of a register are about."""
HISTORY = (*INTENTS, *REFUSALS, *ENDINGS, *REGISTERED, "data")
"""Which entries are lines of the history."""
ABOUT_BOOK = ("data", "keys", "witness", "retirement")
"""Entries about the book itself; `state` is then the fingerprint of the wrapped keys."""
KINDS = (
    *HISTORY,
    *("answer", "keys", "signer", "items", "witness", "lost"),
)
LONGEST = 2**24
"""How many bytes an entry has at most: a checker of records refuses longer ones unread."""
BUDGET = 2**62
"""A whole budget, where a database counts in 64 bits. Parts of it are rounded up: they exceed it iff the loss does."""


class Entry(msgspec.Struct, frozen=True, array_like=True):
    """One link of the chain.

    `body` is what was asked, in full; of an answer it is the commitment that its receipt names, of data or sealed items
    the fingerprint, of a signer the signature of the one before it. `what` of an answer is the hash of the entry before
    it, which its receipt needs; of a signer, its public key. `version` and `state` are those of the row at `path` after
    a charge or an answer (`state` its fingerprint); of data and of keys, `state` is the fingerprint of the wrapped
    keys; of items, `version` is how many there are with them, and `request` the id under which they were sent, if any.
    `at` is when, by the clock of the process that wrote it: for people, nothing is decided by it. `record` is the
    fingerprint of the record that the entry leaves: of the request, if it is an intent, or an answer; of the book, if
    it is about data or the witness. `who` is the principal whose request it was, if one was named. `salt` is random:
    the head of the chain confirms no guess at what an entry says. `cost` is what a launch costs, exactly, for auditors
    who have no code of ours.
    """

    number: int
    kind: str
    request: str
    path: tuple[int | str, ...]
    what: str
    body: str
    version: int = 0
    state: str = ""
    at: int = 0
    record: str = ""
    who: str = ""
    salt: str = ""
    cost: str = ""

    def encoded(self) -> bytes:
        """The bytes that are stored and hashed."""
        return _ENCODER.encode(self)

    def hash(self, before: bytes) -> bytes:
        """The head of the chain after this entry."""
        return link(before, self.encoded())

    @property
    def leaves_row(self) -> bool:
        """Whether `state` is the fingerprint of the row at `path`."""
        return bool(self.state) and self.kind not in ABOUT_BOOK and self.kind not in REGISTERED

    @property
    def fact(self) -> Fact:
        """The line of the history."""
        return Fact(self.kind, self.path, self.what, self.who, self.at, self.cost)


def fits(body: bytes, *texts: str) -> bool:
    """Whether an entry with this body and these texts is no longer than `LONGEST`.

    >>> fits(b"short"), fits(bytes(LONGEST))
    (True, False)
    """
    if len(body) + sum(map(len, texts)) < LONGEST // 16:  # a character is written with 7 bytes at most
        return True
    return len(body) <= LONGEST and len(_ENCODER.encode((body.decode(), *texts))) + _REST <= LONGEST


def link(before: bytes, entry: bytes) -> bytes:
    """The head of the chain after an entry, from its bytes."""
    return sha256(before + entry).digest()


def read_entry(data: bytes, number: int | None = None) -> Entry:
    """The entry that these bytes are; `LedgerTampered` if they are none, with its number if that is known."""
    try:
        return _DECODER.decode(data)
    except _UNREADABLE:
        raise LedgerTampered(f"{'an entry' if number is None else f'entry {number}'} cannot be read") from None


_REST = 4096
"""How many bytes the other fields of an entry have at most."""
_ENCODER = msgspec.json.Encoder()
_DECODER = msgspec.json.Decoder(Entry, strict=True)
_UNREADABLE = (msgspec.MsgspecError, UnicodeError)
"""What reading bytes that were changed may raise."""


class Head(NamedTuple):
    """How far a chain has come."""

    number: int
    hash: bytes


class Book(NamedTuple):
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
        """Stands on record for what no other entry covers."""
        return fingerprint_of((self.fingerprint, self.witnessed, self.content, self.beside))


def keys_digest(keys: tuple[bytes, ...]) -> str:
    """What stands on record for wrapped keys.

    >>> keys_digest((b"one", b"two")) != keys_digest((b"two", b"one"))
    True
    """
    return sha256(b"".join(sha256(key).digest() for key in keys)).hexdigest()


class StoredRow(NamedTuple):
    """A row: its public frame (mechanism, cursor, by), and its state: in the open (a session's), sealed, or halted.

    `spent` says of a session with a budget how much of it is used, in parts of `BUDGET`, for the database to check too.
    """

    path: str
    version: int
    frame: bytes
    node: bytes | None
    sealed: bytes | None
    spent: int | None = None

    @property
    def fingerprint(self) -> str:
        """Stands on record for the whole row: whichever column is changed, this differs."""
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
        """Stands on record for the whole request: whichever column is changed, this differs."""
        return fingerprint_of(self)

    @property
    def place(self) -> tuple[Path | int | str, ...]:
        """What the seals of its seed and its answer are bound to: all other columns."""
        pinned = (self.entry, self.digest.hex(), self.pin, self.sampler)
        return (read_path(self.path), self.version, self.request, *pinned)

    def settled(self, answer: bytes) -> "StoredRequest":
        """The same, done: the seed is gone."""
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


def fingerprint_of(columns: tuple[object, ...]) -> str:
    """Stands on record for these columns."""
    return sha256(msgspec.msgpack.encode(columns)).hexdigest()


@lru_cache(maxsize=4096)
def path_text(path: Path) -> str:
    """A path as the database has it.

    >>> path_text((0, "str:CA"))
    '[0,"str:CA"]'
    """
    return _ENCODER.encode(path).decode()


@lru_cache(maxsize=4096)
def read_path(text: str) -> Path:
    """The path that `path_text` wrote; `LedgerTampered` if it is none."""
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

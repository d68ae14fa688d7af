"""Checking a durable ledger: at every start what a thief or a restored snapshot would change, on demand every charge.

`opened` follows the hash chain to its head, compares the witness, and the fingerprint of every row with the last entry
about it: it needs no key and reads each entry once. `verify` also replays every launch and every refusal through the
rule (each must have been right at its place), and compares accounts, open requests and stored answers.

>>> _last_seen("people", Witness("/nowhere/at/all")) is None
True
"""

from collections.abc import Iterator
from hashlib import sha256
from typing import Any

import msgspec

from counterpoint.composition.rule import Account
from counterpoint.encoding import Plain, decode
from counterpoint.errors import CounterpointError, LedgerRolledBack, LedgerTampered
from counterpoint.ledger.ledger import Node, Path
from counterpoint.ledger.records import (
    INTENTS,
    KINDS,
    Book,
    Entry,
    StoredItems,
    StoredRow,
    keys_digest,
    link,
    path_text,
    read_entry,
)
from counterpoint.ledger.rows import read_frame, spent
from counterpoint.ledger.store import Store
from counterpoint.ledger.witness import Seen, Witness
from counterpoint.mechanisms.concurrent import Concurrent
from counterpoint.mechanisms.mechanism import Mechanism
from counterpoint.privacy.relations import Relation

_Arrived = tuple[int, str, str | None]
"""Of items on record: how many there are with them, the fingerprint, the id."""
_RESTORE = "nothing is answered from it. Put back the newest copy; charges that no copy has cannot be recovered"


def opened(store: Store, name: str, witness: Witness | None) -> Book | None:
    """At start: the session's book (None: there is none yet), once chain, witness and states have been found to hold.

    `LedgerTampered` or `LedgerRolledBack` if one does not.
    """
    seen = _last_seen(name, witness)  # before the snapshot, which must not be older than what was seen
    store.begin_reading()
    try:
        book = store.book(name)
        if book is not None:
            _check(store, name, book, seen)
        elif seen is not None and seen.sequence > 0:
            raise LedgerRolledBack(
                f"the witness has seen {seen.sequence} entries of {name!r}, but this ledger has none: it was taken "
                f"away or replaced; {_RESTORE}"
            )
        return book
    finally:
        store.rollback()


def verify(store: Store, name: str, witness: Witness | None) -> int:
    """Everything that can be checked without a key; how many entries there are."""
    seen = _last_seen(name, witness)
    store.begin_reading()
    try:
        book = store.book(name)
        if book is None:
            raise LedgerTampered(f"there is no session {name!r} in this ledger")
        _check(store, name, book, seen)
        replay = Replay(name)
        for number, data in chain(store, name):
            replay.step(_entry(data, number))
        replay.compare(store)
        return book.head.number
    finally:
        store.rollback()


def _check(store: Store, name: str, book: Book, seen: Seen | None) -> None:
    if seen is None and book.witnessed:
        raise LedgerRolledBack(
            f"{name!r} is kept with a witness, and none that has seen it was given: it was moved or taken away; say "
            "where it is, COUNTERPOINT_WITNESS=... or Durable(..., witness=...)"
        )
    about: tuple[str, str] = ("", "")
    last: dict[str, tuple[int, str]] = {}
    arrived: list[_Arrived] = []
    head, number = book.genesis, 0
    for number, data in chain(store, name):
        head = link(head, data)
        if seen is not None and 0 < number == seen.sequence and head != seen.head:
            raise _forked(name)
        entry = _entry(data, number)
        if entry.kind == "data":
            about = (entry.body, entry.state)
        elif entry.kind == "keys":
            about = (about[0], entry.state)
        elif entry.state:
            last[path_text(entry.path)] = (entry.version, entry.state)
        elif entry.kind == "items":
            arrived.append((entry.version, entry.body, entry.request or None))
    if (number, head) != book.head:
        raise LedgerTampered(f"the entries of {name!r} do not lead to its head: one was changed, added or taken away")
    if seen is not None and seen.sequence > number:
        raise LedgerRolledBack(
            f"{name!r} has {number} entries, but its witness has seen {seen.sequence}: an old copy was put back; "
            f"{_RESTORE}"
        )
    if about != (book.fingerprint, keys_digest(book.keys)):
        raise LedgerTampered(f"the data or the keys of {name!r} are not those on record: they were changed or put back")
    _compare_states(store, name, last)
    _compare_items(store, name, arrived)


def chain(store: Store, name: str) -> Iterator[tuple[int, bytes]]:
    """The entries, whose numbers must leave no gap."""
    expected = 1
    for number, data in store.entries(name, 0):
        if number != expected:
            raise LedgerTampered(f"entry {expected} of {name!r} is missing")
        yield number, data
        expected += 1


class Replay:
    """What the entries say must be stored."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._nodes: dict[Path, tuple[Concurrent, Account, int]] = {}
        self._open: dict[str, Entry] = {}
        self._asked: dict[str, bytes] = {}
        self._done: dict[str, str] = {}
        self._sent: set[str] = set()
        self._sending = ""

    def step(self, entry: Entry) -> None:
        """One entry further, if it was right."""
        if entry.kind in INTENTS:
            if entry.request in self._asked:
                raise self._wrong(entry, "a request was admitted twice")
            self._open[entry.request] = entry
            self._asked[entry.request] = sha256(entry.body.encode()).digest()
        if entry.kind == "open":
            _, composition, _ = _parts(entry)
            self._nodes[()] = (composition, composition.rule.start(), 0)
        elif entry.kind in ("launch", "delegation"):
            self._launch(entry)
        elif entry.kind == "refusal":
            self._refusal(entry)
        elif entry.kind == "answer":
            self._answered(entry)
        self._arrived(entry)

    def compare(self, store: Store) -> None:
        """Accounts, requests and answers against what is stored."""
        for path, (composition, account, launched) in self._nodes.items():
            stored = store.row(self._name, path_text(path))
            node = None if stored is None or stored.node is None else decode(stored.node, Node)
            if stored is None or node is None or node.account != account or node.launched != launched:
                raise LedgerTampered(f"the account at {path!r} is not what the charges on record add up to")
            if stored.spent not in (None, spent(composition, node)):  # None: written before this was kept
                raise LedgerTampered(f"the account at {path!r} is not what the charges on record add up to")
            if read_frame(stored.frame).mechanism != composition:
                raise LedgerTampered(f"the rule at {path!r} is not the one on record")
        count = 0
        for request in store.requests(self._name):
            count += 1
            answer = None if request.answer is None else _digest(request.answer)
            if (request.digest, answer) != (self._asked.get(request.request), self._done.get(request.request)):
                raise LedgerTampered(f"request {request.request[:80]!r} is not stored as the entries say")
        if count != len(self._asked):
            raise LedgerTampered("a request on record is missing")

    def _launch(self, entry: Entry) -> None:
        _, parent, _, mechanism, data, *_ = _parts(entry)
        composition, account, launched = self._node(entry, parent)
        try:
            after = composition.admit(account, mechanism, data)
        except CounterpointError as error:
            raise self._wrong(entry, f"a launch was admitted that the rule refuses ({type(error).__name__})") from None
        self._nodes[parent] = (composition, after, launched + 1)

    def _refusal(self, entry: Entry) -> None:
        _, parent, _, mechanism, data, *_ = _parts(entry)
        composition, account, _ = self._node(entry, parent)
        try:
            composition.admit(account, mechanism, data)
        except CounterpointError:
            return
        raise self._wrong(entry, "a launch was refused that the rule admits")

    def _answered(self, entry: Entry) -> None:
        asked = self._open.pop(entry.request, None)
        if asked is None:
            raise self._wrong(entry, "an answer was given to a request that was not open")
        self._done[entry.request] = entry.body
        if asked.kind == "delegation":
            composition = _parts(asked)[3]
            self._nodes[entry.path] = (composition, composition.rule.start(), 0)

    def _arrived(self, entry: Entry) -> None:
        """The batches of an id follow each other; whatever comes between ends it."""
        sent = entry.request if entry.kind == "items" else ""
        if sent != self._sending and sent in self._sent:
            raise self._wrong(entry, "items arrived twice under one id")
        if sent:
            self._sent.add(sent)
        self._sending = sent

    def _node(self, entry: Entry, path: Path) -> tuple[Concurrent, Account, int]:
        found = self._nodes.get(path)
        if found is None:
            raise self._wrong(entry, "there was no session to launch in")
        return found

    def _wrong(self, entry: Entry, what: str) -> LedgerTampered:
        return LedgerTampered(f"entry {entry.number} of {self._name!r} is wrong: {what}")


def _parts(entry: Entry) -> tuple[Any, ...]:
    try:
        parts: Any = decode(entry.body.encode(), Plain)  # type: ignore[arg-type]  # of no fixed type
    except CounterpointError:
        raise LedgerTampered(f"entry {entry.number} cannot be read") from None
    expected = {"open": (str, Concurrent, bool), "ask": (str, tuple, object, object)}.get(
        entry.kind, (str, tuple, str | None, Mechanism, Relation, str | None, str | tuple | None)
    )
    fits = isinstance(parts, tuple) and len(parts) == len(expected)
    if not fits or not all(isinstance(part, kind) for part, kind in zip(parts, expected, strict=True)):
        raise LedgerTampered(f"entry {entry.number} does not say what an entry of its kind says")
    return tuple(parts)


def _entry(data: bytes, number: int) -> Entry:
    try:
        entry = read_entry(data)
    except msgspec.MsgspecError:
        raise LedgerTampered(f"entry {number} cannot be read") from None
    if entry.number != number or entry.kind not in KINDS:
        raise LedgerTampered(f"entry {number} has been moved, or is of no known kind")
    return entry


def _last_seen(name: str, witness: Witness | None) -> Seen | None:
    return None if witness is None else witness.last(name)


def _compare_states(store: Store, name: str, last: dict[str, tuple[int, str]]) -> None:
    """Every row is the one that the last charge or answer at its path left: mechanism, parameters, account, state."""
    for row in store.rows(name):
        if last.pop(row.path, None) != (row.version, row.fingerprint):
            raise _changed(row)
    if last:
        raise LedgerTampered(f"the row at {next(iter(last))} is missing")


def _compare_items(store: Store, name: str, arrived: list[_Arrived]) -> None:
    """The log of a stream is, batch by batch, what arrived on record: none changed, moved, added or taken away."""
    count, place = 0, 0
    before: StoredItems | None = None
    for items in store.items(name, 0):
        place += items.size
        if (
            count == len(arrived)
            or arrived[count] != (place, _digest(items.sealed), items.request)
            or items.start + items.size != place
            or items.part != _part(items.request, before)
        ):
            raise LedgerTampered(
                f"the items of the stream of {name!r} from {items.start} on are not those that arrived"
            )
        count += 1
        before = items
    if count < len(arrived):
        raise LedgerTampered(f"the items of the stream of {name!r} from {place} on are missing")


def _part(request: str | None, before: StoredItems | None) -> int | None:
    """Which batch of its id this is, behind that one: those of an id follow each other."""
    if request is None:
        return None
    return 0 if before is None or before.part is None or before.request != request else before.part + 1


def _changed(row: StoredRow) -> LedgerTampered:
    return LedgerTampered(
        f"the state at {row.path} is not the one that its last charge or answer left: it was changed or put back"
    )


def _forked(name: str) -> LedgerRolledBack:
    return LedgerRolledBack(
        f"the witness has seen another history of {name!r} than this one: an old copy was put back and used; {_RESTORE}"
    )


def _digest(data: bytes) -> str:
    return sha256(data).hexdigest()

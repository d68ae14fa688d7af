"""A stream's log in the ledger's database: items in the batches in which they arrived, sealed, each in the hash chain.

The order of a log is that of its entries, from however many threads and processes items arrive; which items count
follows from it alone. A batch is bound to its place, and its fingerprint is on record: a log that was cut, moved or put
back is found. How many items there are is public. Sizes are rounded up to powers of two, so that they say little about
items. Under an id items are kept once: if they are sent again, they are compared with what was sealed, in the same
transaction.

>>> _read(_written([(5, "ann"), (None, 7), (("home", None, True), None)]))
[(5, 'ann'), (None, 7), (('home', None, True), None)]
>>> len(_written([(5, "ann")])) == len(_written([(500, None)]))
True
"""

import json
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, Protocol

from counterpoint.errors import DataChanged, LedgerTampered
from counterpoint.ledger.sealed_transaction import SealedTransaction, Sealer
from counterpoint.ledger.state import Lookups
from counterpoint.ledger.store.records import StoredItems
from counterpoint.ledger.store.store import ChangeSet
from counterpoint.sources.streams.log import Arrival, FeedStep, Item, conflict, same_items

_TOGETHER = 1024
"""How many items are sealed as one, at most."""
_SMALLEST = 32
_line = json.JSONEncoder(separators=(",", ":")).encode
"""An item as a text; `json.dumps` would make an encoder for each."""


class _Batch(NamedTuple):
    """Items that are to be sealed as one."""

    size: int
    text: bytes
    request: str | None
    part: int | None


class LogStore(Protocol):
    """Where a log is stored: the ledger of its session."""

    def transact(self, job: "_Add | _Begin") -> Any:
        """Run a job in a transaction; its result, once it is durable."""

    def stored_length(self) -> int:
        """How many items there are."""

    def stored_items(self, start: int) -> list[StoredItems]:
        """The items from a place on."""

    def stored_position(self, feed: str) -> str | None:
        """How far a feed has come."""


class StoredStreamLog:
    """The keeper of one session's log."""

    __slots__ = ("_sealer", "_store", "identity", "name")

    def __init__(self, name: str, identity: bytes, sealer: Sealer, store: LogStore) -> None:
        self.name = name
        self.identity = identity
        self._sealer = sealer
        self._store = store

    def length(self) -> int:
        """How many items there are."""
        return self._store.stored_length()

    def add(self, items: Sequence[Item], id: str | None = None, step: FeedStep | None = None) -> int:
        """Keep these behind all others, in one transaction, unless they are; the place of the first of them."""
        place: int = self._store.transact(_Add(self._sealer, items, list(_batches((id, items))), id, step))
        return place

    def position(self, feed: str) -> str | None:
        """How far a feed has come, by the ids on record."""
        return self._store.stored_position(feed)

    def begin(self, arrivals: Sequence[Arrival]) -> None:
        """Store these items in one transaction, if the log is empty."""
        self._store.transact(_Begin(self._sealer, [batch for arrival in arrivals for batch in _batches(arrival)]))

    def after(self, known: int) -> Iterator[tuple[int, list[Item]]]:
        """What is kept from this place on; all of it, or an error."""
        for batch in self._store.stored_items(known):
            if batch.start != known:
                raise LedgerTampered("items of this stream's log are missing; `counterpoint ledger verify` says more")
            known += batch.size
            yield batch.start, _opened(self._sealer, batch)


class _Add(NamedTuple):
    """Keep items behind all others; under an id, once."""

    sealer: Sealer
    items: Sequence[Item]
    batches: list[_Batch]
    id: str | None
    step: FeedStep | None = None

    def looks_up(self) -> Lookups:
        return Lookups()

    def run(self, records: SealedTransaction) -> int:
        changes = records.changes
        if self.step is not None:
            self.step.check(changes.newest_ids())
        known = [] if self.id is None else changes.sent(self.id)
        if self.id is not None and not known:
            records.must_be_new("items", self.id)
        if self.id is None or not known:
            return _put(changes, self.sealer, self.batches)
        if not same_items([item for batch in known for item in _opened(self.sealer, batch)], self.items):
            raise conflict(self.id)
        changes.settled = True  # the process that sent them first may have died before the witness had seen it
        return known[0].start


class _Begin(NamedTuple):
    """Begin a log with the items that a stream had before it was kept."""

    sealer: Sealer
    batches: list[_Batch]

    def looks_up(self) -> Lookups:
        return Lookups()

    def run(self, records: SealedTransaction) -> int:
        if records.changes.length():
            raise DataChanged("another process has begun the log of this stream: open it with a fresh one")
        return _put(records.changes, self.sealer, self.batches)


def _put(changes: ChangeSet, sealer: Sealer, batches: Sequence[_Batch]) -> int:
    """All of them behind all others, or none if one cannot be sealed; the place of the first."""
    begin = start = changes.length()
    stored = []
    for size, text, request, part in batches:
        unsealed = StoredItems(start, size, b"", request, part)
        stored.append(unsealed._replace(sealed=sealer.keys.seal(text, "items", *unsealed.place)))
        start += size
    for items in stored:
        changes.put_items(items)
    return begin


def _opened(sealer: Sealer, batch: StoredItems) -> list[Item]:
    return _read(sealer.keys.unseal(batch.sealed, "items", *batch.place))


def _batches(arrival: Arrival) -> Iterator[_Batch]:
    id, items = arrival
    for part, start in enumerate(range(0, len(items), _TOGETHER)):
        together = items[start : start + _TOGETHER]
        yield _Batch(len(together), _written(together), id, None if id is None else part)


def _written(items: Sequence[Item]) -> bytes:
    """One line for each, filled up; by `json`, which takes a unit's name whatever characters it has."""
    lines = list(map(_line, items))
    return "\n".join(line.ljust(_room(len(line))) for line in lines).encode("ascii")


def _room(length: int) -> int:
    return max(_SMALLEST, 1 << (length - 1).bit_length())


def _read(text: bytes) -> list[Item]:
    return [(_plain(item), owner) for item, owner in map(json.loads, text.split(b"\n"))]


def _plain(item: Any) -> Any:
    return tuple(item) if isinstance(item, list) else item

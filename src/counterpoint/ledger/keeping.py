"""A stream's log in the ledger's database: items in the batches in which they arrived, sealed, each in the hash chain.

The order of a log is that of its entries, whoever appends, from however many processes; which items count follows from
it alone. A batch is bound to its place, and its fingerprint is on record: a log that was cut, moved or put back is
found. How many items there are is public. Sizes are rounded up to powers of two, so that they say little about items.
Under an id items are kept once: who sends them again is compared with what was sealed, in the same transaction.

>>> _read(_written([(5, "ann"), (None, 7), (("home", None, True), None)]))
[(5, 'ann'), (None, 7), (('home', None, True), None)]
>>> len(_written([(5, "ann")])) == len(_written([(500, None)]))
True
"""

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from counterpoint.errors import DataChanged, LedgerTampered
from counterpoint.ledger.ids import Ids
from counterpoint.ledger.records import StoredItems
from counterpoint.ledger.sealing import DataKeys
from counterpoint.ledger.store import Unit
from counterpoint.sources.streams.log import Arrival, Item, conflict

_TOGETHER = 1024
"""How many items are sealed as one, at most."""
_SMALLEST = 32


class _Batch(NamedTuple):
    """Items that are to be sealed as one."""

    size: int
    text: bytes
    request: str | None
    part: int | None


class KeptLog:
    """The keeper of one session's log.

    `append` runs a job in a transaction and returns when that is on disk; `length` says how many items there are,
    `fetch` reads those from a place on; `keys` and `ids` are those of the moment; `name` is the session's.
    """

    __slots__ = ("_append", "_fetch", "_ids", "_keys", "identity", "length", "name")

    def __init__(  # noqa: PLR0917 - all that a keeper is made of
        self,
        name: str,
        identity: bytes,
        append: Callable[[Callable[[Unit], int]], int],
        length: Callable[[], int],
        fetch: Callable[[int], list[StoredItems]],
        keys: Callable[[], DataKeys],
        ids: Callable[[], Ids],
    ) -> None:
        self.name = name
        self.identity = identity
        self.length = length
        self._append = append
        self._fetch = fetch
        self._keys = keys
        self._ids = ids

    def add(self, items: Sequence[Item], id: str | None = None) -> int:
        """Keep these behind all others, in one transaction, unless they are; the place of the first of them."""
        batches = list(_batches((id, items)))

        def job(unit: Unit) -> int:
            known = [] if id is None else unit.sent(id)
            if id is not None and not known:
                self._ids().must_be_new(unit, "items", id)
            if id is None or not known:
                return self._put(unit, batches)
            if [item for batch in known for item in self._opened(batch)] != list(items):
                raise conflict(id)
            unit.settled = True  # whoever sent them first may have died before the witness had seen it
            return known[0].start

        return self._append(job)

    def begin(self, arrivals: Sequence[Arrival]) -> None:
        """Keep these in one transaction, if there are no others."""
        batches = [batch for arrival in arrivals for batch in _batches(arrival)]

        def job(unit: Unit) -> int:
            if unit.length():
                raise DataChanged("another process has begun the log of this stream: open it with a fresh one")
            return self._put(unit, batches)

        self._append(job)

    def _put(self, unit: Unit, batches: Sequence[_Batch]) -> int:
        """All of them behind all others, or none if one cannot be sealed; the place of the first."""
        begin = start = unit.length()
        stored = []
        for size, text, request, part in batches:
            open_yet = StoredItems(start, size, b"", request, part)
            stored.append(open_yet._replace(sealed=self._keys().seal(text, "items", *open_yet.place)))
            start += size
        for items in stored:
            unit.put_items(items)
        return begin

    def _opened(self, batch: StoredItems) -> list[Item]:
        return _read(self._keys().unseal(batch.sealed, "items", *batch.place))

    def after(self, known: int) -> Iterator[tuple[int, list[Item]]]:
        """What is kept from this place on; all of it, or an error."""
        for batch in self._fetch(known):
            if batch.start != known:
                raise LedgerTampered("items of this stream's log are missing; `counterpoint ledger verify` says more")
            known += batch.size
            yield batch.start, self._opened(batch)


def _batches(arrival: Arrival) -> Iterator[_Batch]:
    id, items = arrival
    for part, start in enumerate(range(0, len(items), _TOGETHER)):
        together = items[start : start + _TOGETHER]
        yield _Batch(len(together), _written(together), id, None if id is None else part)


def _written(items: Sequence[Item]) -> bytes:
    """One line for each, filled up; by `json`, which takes a unit's name whatever characters it has."""
    lines = [json.dumps(item, separators=(",", ":")) for item in items]
    return "\n".join(line.ljust(_room(len(line))) for line in lines).encode("ascii")


def _room(length: int) -> int:
    return max(_SMALLEST, 1 << (length - 1).bit_length())


def _read(text: bytes) -> list[Item]:
    return [(_plain(item), owner) for item, owner in map(json.loads, text.split(b"\n"))]


def _plain(item: Any) -> Any:
    return tuple(item) if isinstance(item, list) else item

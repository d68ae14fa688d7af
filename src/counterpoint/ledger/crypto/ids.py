"""Which ids the chain has, in memory: whether a request is new is never decided by what a table lacks.

An id that is not among the stored requests would get fresh noise, or a session that is opened again a fresh budget; so
a tamperer need only delete a row. A database cannot show that a row was never there. The chain can: it is followed at
every start, and from then on each process knows its head. So the ids of its entries are kept here, each as a hash of 64
bits, 8 bytes; entries that other processes have added meanwhile are read, and must continue the chain, before an id
counts as new. A lookup costs the same however long the chain is.

For the same reason each process knows how the chain left every row, as a hash of 64 bits: a row that was changed while
the ledger is open, or that was put back as it once was (an account before a charge, a grant before it was revoked, a
mechanism before it halted), is refused when a request uses it. That takes some 150 bytes for each launch.

>>> ids = Ids()
>>> ids.add("ask", "() monday")
>>> ids.has("ask", "() monday"), ids.has("ask", "() tuesday"), ids.has("items", "() monday")
(True, False, False)
"""

from array import array
from bisect import bisect_left

from counterpoint.errors import LedgerTampered
from counterpoint.ledger.state import Path
from counterpoint.ledger.store.records import INTENTS, Entry, Head, StoredRow, link, path_text, read_entry
from counterpoint.ledger.store.store import Unit

_UNSORTED = 2**16


class Ids:
    """The ids under which requests were admitted and items arrived, and the rows as they were left, up to a head."""

    __slots__ = ("_later", "_rows", "_sorted", "head")

    def __init__(self) -> None:
        self.head = Head(0, b"")
        self._sorted = array("q")
        self._later: set[int] = set()
        self._rows: dict[int, int] = {}

    def add(self, kind: str, request: str) -> None:
        """An entry of the chain; those of other kinds admit nothing."""
        if request and (kind in INTENTS or kind == "items"):
            self._later.add(hash((kind == "items", request)))
            if len(self._later) > _UNSORTED + len(self._sorted) // 4:
                self._sorted = array("q", sorted([*self._sorted, *self._later]))
                self._later.clear()

    def step(self, entry: Entry) -> None:
        """One entry further."""
        self.add(entry.kind, entry.request)
        if entry.leaves_row:
            self._rows[hash(entry.path)] = hash(entry.state)

    def has(self, kind: str, request: str) -> bool:
        """Whether there is such an entry."""
        sought = hash((kind == "items", request))
        place = bisect_left(self._sorted, sought)
        return sought in self._later or (place < len(self._sorted) and self._sorted[place] == sought)

    def must_be_new(self, unit: Unit, kind: str, request: str) -> None:
        """Refuse an id that is on record although nothing is stored under it any more."""
        self._catch_up(unit)
        if self.has(kind, request):
            raise LedgerTampered(
                f"request {request[:80]!r} is on record, but what is stored of it is missing: it was taken away. "
                "Nothing is drawn for it again; put back the newest copy of the database"
            )

    def must_be_as_left(self, unit: Unit, path: Path, row: StoredRow | None) -> None:
        """Refuse a row, as it is stored before this unit, unless the chain left it so."""
        self._catch_up(unit)
        if self._rows.get(hash(path)) != (None if row is None else hash(row.fingerprint)):
            raise LedgerTampered(
                f"the row at {path_text(path)} of {unit.name!r} is not the one that its last charge or answer left: it "
                "was changed, taken away or put back, and is not used"
            )

    def learn(self, unit: Unit) -> None:
        """What a unit has added, once it is committed; if others came in between, that is read when it is needed."""
        if unit.base == self.head:
            for entry in unit.begun:
                self.step(entry)
            self.head = unit.head

    def _catch_up(self, unit: Unit) -> None:
        if unit.base == self.head:
            return
        number, head = self.head
        for number, data in unit.added(number):  # noqa: B020 - from where it is to where it comes
            head = link(head, data)
            self.step(read_entry(data, number))
        if (number, head) != unit.base:
            raise LedgerTampered(
                f"the chain of {unit.name!r} does not continue what this process has seen of it: an entry was "
                "changed, or an old copy was put back, while it was open"
            )
        self.head = unit.base

"""What a witness has seen against what the ledger has: every line, not the furthest alone.

Each head covers all entries before it, so the furthest line seems to be enough. It is not: after an old copy was put
back and used, the file has lines of both histories, and the furthest may be of either. The file is read once, in order,
beside the heads of the chain.

>>> str(rolled_back("people", 3, 5)).split(":")[0]
"'people' has 3 entries, but its witness has seen 5"
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from counterpoint.errors import LedgerRolledBack
from counterpoint.ledger.checking.witness import Line, Witness
from counterpoint.ledger.store.records import Book

_HASH = 32
_RESTORE = (
    "nothing is answered from it. Put back the newest copy; charges that no copy has cannot be recovered: if the "
    "newest is lost, `counterpoint ledger recover` opens this one with its budget spent"
)


class Recovered(NamedTuple):
    """A recovery on the chain: the number of its entry, and the furthest that the witness had seen by then."""

    number: int
    seen: int


class Sighting(NamedTuple):
    """What the lines about a chain come to.

    `any` says whether there are some, `furthest` is the furthest of them, and `beyond` its number if the chain does not
    come so far (0: it does). `placed` says whether they name the place of the ledger, `recovered` whether they have the
    last recovery on the chain, if there is one.
    """

    any: bool
    furthest: Line
    beyond: int
    placed: bool
    recovered: bool


class _Seen:
    """Lines against the heads of a chain."""

    def __init__(self, heads: bytearray) -> None:
        self._heads = heads
        self._wrong: set[int] = set()
        self.any = False
        self.furthest = Line(0, b"", b"")

    @property
    def wrong(self) -> bool:
        """Whether a line is of another history."""
        return bool(self._wrong)

    def look(self, line: Line) -> None:
        """One line more."""
        self.any = True
        if self.differs(line):
            self._wrong.add(line.sequence)
        self.furthest = max(self.furthest, line)

    def take_back(self, recovered: Recovered) -> None:
        """Forget what the record that was lost had come to, as far as its recovery says."""
        lost = range(recovered.number, recovered.seen + 1)
        self._wrong.difference_update(lost)
        if self.furthest.sequence in lost:
            self.furthest = Line(recovered.number, b"", b"")  # on the chain

    @property
    def beyond(self) -> int:
        """The furthest number, if the chain does not come so far."""
        return self.furthest.sequence if self.furthest.sequence * _HASH > len(self._heads) else 0

    def differs(self, line: Line) -> bool:
        """Whether the chain has another head at its number."""
        end = line.sequence * _HASH
        return 0 < end <= len(self._heads) and self._heads[end - _HASH : end] != line.head


def compare(
    book: Book, heads: bytearray, lines: Iterable[Line], mark: bytes, recoveries: Sequence[Recovered]
) -> Sighting | None:
    """Compare each line about this chain with its heads; None if one is of another history."""
    here = Line(0, mark, book.genesis)
    seen, placed = _Seen(heads), False
    known, found = {one.number: one for one in recoveries}, set()
    for line in lines:
        if line.genesis != book.genesis:
            continue
        seen.look(line)
        placed = placed or line == here
        if line.sequence in known and not seen.differs(line):
            found.add(line.sequence)
            seen.take_back(known[line.sequence])
    if seen.wrong:
        return None
    last = {one.number for one in recoveries[-1:]}
    return Sighting(seen.any, seen.furthest, seen.beyond, placed, last <= found)


def must_be_new(name: str, witness: Witness, lines: Iterable[Line]) -> None:
    """Refuse to begin a session that was seen here before; one that was seen at another place is of another ledger."""
    furthest: dict[bytes, int] = {}
    places: dict[bytes, set[bytes]] = {}
    for line in lines:
        furthest[line.genesis] = max(furthest.get(line.genesis, 0), line.sequence)
        place = None if line.sequence else witness.place_in(line.head)
        if place is not None:
            places.setdefault(line.genesis, set()).add(place)
    here = witness.place_in(witness.mark)
    missing = [
        sequence
        for genesis, sequence in furthest.items()
        if sequence and (genesis not in places or here in places[genesis])
    ]
    if missing:
        raise LedgerRolledBack(
            f"the witness has seen {max(missing)} entries of {name!r}, but this ledger has none: it was taken away or "
            f"replaced; {_RESTORE}. For a new ledger, give the session another name or the ledger a witness of its own"
        )


def unseen(name: str) -> LedgerRolledBack:
    """The error for a witness that is not the one."""
    return LedgerRolledBack(
        f"{name!r} is kept with a witness, and none that has seen it was given: it was moved or taken away; say "
        "where it is, COUNTERPOINT_WITNESS=... or Durable(..., witness=...)"
    )


def rolled_back(name: str, number: int, seen: int) -> LedgerRolledBack:
    """The error for a database that is older than its witness."""
    return LedgerRolledBack(
        f"{name!r} has {number} entries, but its witness has seen {seen}: an old copy was put back; {_RESTORE}"
    )


def forked(name: str) -> LedgerRolledBack:
    """The error for a database that is of another history than its witness."""
    return LedgerRolledBack(
        f"the witness has seen another history of {name!r} than this one: an old copy was put back and used; {_RESTORE}"
    )

"""What a witness has seen against what the ledger has: every line, not the furthest alone.

Each head covers all entries before it, so the furthest line seems to be enough. It is not: after an old copy was put
back and used, the file has lines of both histories, and the furthest may be of either. The file is read once, in order,
beside the heads of the chain.

>>> str(rolled_back("people", 3, 5)).split(":")[0]
"'people' has 3 entries, but its witness has seen 5"
"""

from typing import NamedTuple

from counterpoint.errors import LedgerRolledBack
from counterpoint.ledger.checking.witness import Line, Witness
from counterpoint.ledger.store.records import Book

_HASH = 32
_RESTORE = "nothing is answered from it. Put back the newest copy; charges that no copy has cannot be recovered"


class Sighting(NamedTuple):
    """What the lines about a chain come to: the furthest number beyond its head (0: none); whether they say where."""

    beyond: int
    placed: bool


class _Seen:
    """Lines against the heads of a chain."""

    def __init__(self, heads: bytearray) -> None:
        self._heads = heads
        self.any = self.wrong = False
        self.furthest = Line(0, b"", None)

    def look(self, line: Line) -> None:
        """One line more."""
        self.any = True
        self.wrong = self.wrong or self._differs(line)
        self.furthest = max(self.furthest, line)

    def furthest_alone(self) -> "_Seen":
        """As if there were no other line."""
        alone = _Seen(self._heads)
        if self.any:
            alone.look(self.furthest)
        return alone

    @property
    def beyond(self) -> int:
        """The furthest number, if the chain does not come so far."""
        return self.furthest.sequence if self.furthest.sequence * _HASH > len(self._heads) else 0

    def _differs(self, line: Line) -> bool:
        end = line.sequence * _HASH
        return 0 < end <= len(self._heads) and self._heads[end - _HASH : end] != line.head


def compare(name: str, book: Book, heads: bytearray, witness: Witness, upto: int) -> Sighting:
    """Compare each line about this chain with its heads.

    `LedgerRolledBack` if one is of another history, or if a chain that must have a witness was never seen.
    """
    here = Line(0, witness.mark, book.genesis)
    own, first, placed = _Seen(heads), _Seen(heads), False
    named: set[bytes] = set()
    for line in witness.lines(name, upto):
        if line.genesis is None and not line.sequence:
            named.add(line.head)
        elif line.genesis is None:
            first.look(line)
        elif line.genesis == book.genesis:
            own.look(line)
            placed = placed or line == here
    if named > {book.genesis}:
        first = first.furthest_alone()
    elif not named <= {book.genesis}:
        first = _Seen(heads)
    if own.wrong or first.wrong:
        raise _forked(name)
    if book.witnessed and not (own.any or first.any or book.genesis in named):
        raise unseen(name)
    return Sighting(max(own.beyond, first.beyond), placed)


def must_be_new(name: str, witness: Witness, upto: int) -> None:
    """Refuse to begin a session that was seen here before; one that was seen at another place is of another ledger."""
    furthest: dict[bytes | None, int] = {}
    places: dict[bytes | None, set[bytes]] = {}
    for line in witness.lines(name, upto):
        furthest[line.genesis] = max(furthest.get(line.genesis, 0), line.sequence)
        place = None if line.sequence or line.genesis is None else witness.place_in(line.head)
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


def _forked(name: str) -> LedgerRolledBack:
    return LedgerRolledBack(
        f"the witness has seen another history of {name!r} than this one: an old copy was put back and used; {_RESTORE}"
    )

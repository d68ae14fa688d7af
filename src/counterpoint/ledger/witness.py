r"""The witness: a file outside the database that records the ledger's latest entry, against old copies of the database.

After every commit that settles something, and before its answer is released, a line is appended: sequence number, head
of the hash chain, genesis of the chain, the session's name. At every start each line is compared with the chain. A
database that is older than its witness (an old copy was put back), or that has another entry at any recorded place (it
was forked), is refused. Comparing the furthest line alone is not enough: after an old copy was put back and used, the
file has lines of both histories, and the furthest may be of either.

Keep the witness on another disk than the database, and out of its backups. Several processes and several ledgers may
append to one file: a line counts for the chain of its genesis alone. What a full disk or a crash leaves of a line is
never read as one (`line_file.py`). The line with number 0 has, in place of a head, where the file and the ledger were
then: a ledger that is missing where it was seen was taken away; at another place another one may begin, with sessions
of the same names. The line of a recovery (`admin.recover`) takes back what lines before it have seen from its number
on.

>>> import tempfile, os.path
>>> witness = WitnessFile(os.path.join(tempfile.mkdtemp(), "witness"))
>>> witness.note("people", 7, b"\xaa" * 32, b"\xbb" * 32)
>>> [line.sequence for line in witness.seen("people")]
[7]
"""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from hashlib import sha256
from itertools import chain
from typing import NamedTuple, Protocol
from urllib.parse import quote, unquote

from counterpoint.errors import LedgerRolledBack
from counterpoint.ledger.chain import link
from counterpoint.ledger.line_file import LineFile
from counterpoint.ledger.store.records import SessionHeader

_HALF = 16
LONGEST = 2**20
"""How many bytes a file has before lines are left out of it."""


class Line(NamedTuple):
    """How far a chain had come; number 0 has in the place of a head where its ledger was."""

    sequence: int
    head: bytes
    genesis: bytes


def place_mark(witness: str, ledger: str) -> bytes:
    """Stands for where a witness and its ledger are: half of it says the one, half the other."""
    return b"".join(sha256(os.fsencode(where)).digest()[:_HALF] for where in (witness, ledger))


def place_in(mark: bytes, present: bytes) -> bytes | None:
    """The ledger's place that a mark names, if the witness was then where it is at present."""
    return mark[_HALF:] if mark[:_HALF] == present[:_HALF] else None


Entries = Callable[[int], Iterator[tuple[int, bytes]]]
"""The entries of a chain after a number, in order, as they are stored now."""


class Sightings(Protocol):
    """What a reader compares a ledger with: how far its chains had come, and where it was."""

    @property
    def mark(self) -> bytes:
        """Where the witness and the ledger are now: half of it says the one, half the other."""

    def place_in(self, mark: bytes) -> bytes | None:
        """The ledger's place that a mark names, if the witness was then where it is now; else places do not compare."""

    def seen(self, whose: str) -> Iterator[Line]:
        """The lines about this session, of whatever ledger, that were there when this was called."""


class Witness(Sightings, Protocol):
    """What has seen how far the chains of a ledger had come. `place` tells the ledger's place from others."""

    path: str
    """Where it is: a path, or an address."""
    place: str

    def note(self, whose: str, sequence: int, head: bytes, genesis: bytes, entries: Entries | None = None) -> None:
        """Record a head, durably. `entries` reads the chain, which other processes may have extended."""

    def note_place(self, whose: str, genesis: bytes) -> None:
        """See where the witness and the ledger are now."""

    def note_recovery(self, whose: str, number: int, before: bytes, genesis: bytes, entry: bytes) -> None:
        """See the entry of a recovery, behind the head `before`, in the place of all that was seen from there on."""

    def size(self) -> int:
        """How many bytes it has, where it grows; else 0."""
        return 0

    def compact(self, whose: str, genesis: bytes, upto: int, check: "WitnessCheck", recovered: Iterable[int]) -> None:
        """Leave out what the furthest line says, too, where it grows."""
        return

    def close(self) -> None:
        """Let go of it."""


class WitnessFile(Witness):
    """An append-only file of what was seen."""

    __slots__ = ("_file", "path", "place")

    def __init__(self, path: str | os.PathLike[str], place: str = "") -> None:
        self._file = LineFile(path)
        self.path = self._file.path
        self.place = place

    @property
    def mark(self) -> bytes:
        """Where this file and the ledger are now."""
        return place_mark(os.path.realpath(self.path), self.place)

    def place_in(self, mark: bytes) -> bytes | None:
        """The ledger's place that a mark names, if this file was then where it is now."""
        return place_in(mark, self.mark)

    def note(self, whose: str, sequence: int, head: bytes, genesis: bytes, entries: Entries | None = None) -> None:
        """Append a line, and wait until it is on disk."""
        self._file.append(_written(whose, sequence, head, genesis))

    def note_place(self, whose: str, genesis: bytes) -> None:
        """Append the line that says where this file and the ledger are now."""
        self.note(whose, 0, self.mark, genesis)

    def note_recovery(self, whose: str, number: int, before: bytes, genesis: bytes, entry: bytes) -> None:
        """Append its line: what it takes back is decided where lines are compared with the chain."""
        self.note(whose, number, link(before, entry), genesis)

    def seen(self, whose: str) -> Iterator[Line]:
        """The lines about this session, of whatever ledger, that are in the file now."""
        return self.lines(whose, self.size())

    def size(self) -> int:
        """How long the file is: what is compared with a moment of the database must have been seen before it."""
        return self._file.size()

    def lines(self, whose: str, upto: int) -> Iterator[Line]:
        """The lines about this session, of whatever ledger, in the first `upto` bytes."""
        for text in self._file.texts(upto, ending=b" " + _name(whose)):
            yield _read(text)[1]

    def everything(self) -> Iterator[tuple[str, Line]]:
        """Every line, and whose it is."""
        return map(_read, self._file.texts())

    def compact(self, whose: str, genesis: bytes, upto: int, check: "WitnessCheck", recovered: Iterable[int]) -> None:
        """Leave out the lines of this chain that the furthest one makes superfluous; all others stay.

        Each line in the first `upto` bytes was found on the chain. Its heads are hashes of all that is before them, so
        a chain with the furthest head has the earlier ones, too. The lines of recoveries stay: each is known by itself.
        """
        if upto < LONGEST:
            return
        kept = {0, *recovered}

        def is_needed(text: bytes) -> bool:
            owner, line = _read(text)
            own = (owner, line.genesis) == (whose, genesis)
            return not own or line.sequence in kept or line.sequence >= check.furthest.sequence

        lines = list(self._file.texts(upto))
        if 2 * sum(map(is_needed, lines)) <= len(lines):
            self._file.compact(is_needed, upto)

    def rewrite(self, lines: Iterable[tuple[str, Line]], first: str | os.PathLike[str]) -> None:
        """Put these lines in the place of all others, by way of the file `first` (`LineFile.rewrite`)."""
        self._file.rewrite((_written(whose, *line) for whose, line in lines), first)

    def close(self) -> None:
        """Let go of the file."""
        self._file.close()


class SeenBefore(Sightings):
    """What a witness had seen of these sessions when this was made, to be compared with a copy that was made later.

    The lines of each session can be read once. It notes nothing.
    """

    def __init__(self, witness: Witness, names: Iterable[str]) -> None:
        self._witness = witness
        self._lines = {name: _begun(witness.seen(name)) for name in names}

    @property
    def mark(self) -> bytes:
        """Where the witness and the ledger are now."""
        return self._witness.mark

    def place_in(self, mark: bytes) -> bytes | None:
        """The ledger's place that a mark names."""
        return self._witness.place_in(mark)

    def seen(self, whose: str) -> Iterator[Line]:
        """The lines about this session that there were."""
        return self._lines.pop(whose)


def _begun(lines: Iterator[Line]) -> Iterator[Line]:
    """The same lines after reading the first: the file is open then, even if another one takes its name."""
    return chain([line for line in (next(lines, None),) if line is not None], lines)


@lru_cache(maxsize=256)
def _name(whose: str) -> bytes:
    """A name as one word, whatever characters it has."""
    return quote(whose, safe="").encode()


def _written(whose: str, sequence: int, head: bytes, genesis: bytes) -> bytes:
    return f"{sequence} {head.hex()} {genesis.hex()} ".encode() + _name(whose)


def _read(text: bytes) -> tuple[str, Line]:
    sequence, head, genesis, name = text.decode("ascii").split(" ")
    return unquote(name), Line(int(sequence), bytes.fromhex(head), bytes.fromhex(genesis))


_HASH = 32
_RESTORE = (
    "nothing is answered from it. Put back the newest copy; charges that no copy has cannot be recovered: if the "
    "newest is lost, `counterpoint ledger recover` opens this one with its budget spent"
)


class Recovered(NamedTuple):
    """A recovery on the chain: the number of its entry, and the furthest that the witness had seen by then."""

    number: int
    seen: int


class WitnessCheck(NamedTuple):
    """What the lines about a chain prove.

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
        """Forget the heads of a lost record, as far as its recovery says."""
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
    header: SessionHeader, heads: bytearray, lines: Iterable[Line], mark: bytes, recoveries: Sequence[Recovered]
) -> WitnessCheck | None:
    """Compare each line about this chain with its heads; None if one is of another history."""
    here = Line(0, mark, header.genesis)
    seen, placed = _Seen(heads), False
    known, found = {one.number: one for one in recoveries}, set()
    for line in lines:
        if line.genesis != header.genesis:
            continue
        seen.look(line)
        placed = placed or line == here
        if line.sequence in known and not seen.differs(line):
            found.add(line.sequence)
            seen.take_back(known[line.sequence])
    if seen.wrong:
        return None
    last = {one.number for one in recoveries[-1:]}
    return WitnessCheck(seen.any, seen.furthest, seen.beyond, placed, last <= found)


def must_be_new(name: str, witness: Sightings, lines: Iterable[Line]) -> None:
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

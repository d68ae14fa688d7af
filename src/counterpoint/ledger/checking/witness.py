r"""The witness: outside the database, it has seen how far the ledger had come. Here it is a file.

After every commit that settles something, and before its answer is released, a line goes here: sequence number, head of
the hash chain, genesis of the chain, the session's name. At every start each line is compared with the chain: a
database that is older than its witness (an old copy was put back), or that has another entry at any place that was seen
(it was forked), is refused. Keep it on another disk than the database, and out of its backups. Several processes, and
several ledgers, may append to one file: a line counts for the chain of its genesis alone. What a full disk or a crash
leaves of a line is never read as one, and spoils no other (`line_file.py`).

After a lost disk a backup may be opened on purpose (`recovering.py`). The line of the entry that says so takes back
what lines before it have seen from that number on: they are of the record that was lost.

The line with number 0 has in the place of a head where the file and the ledger were then: a ledger that is missing at
the place where it was seen was taken away; at another place another one may begin, with sessions of the same names.

>>> import tempfile, os.path
>>> witness = WitnessFile(os.path.join(tempfile.mkdtemp(), "witness"))
>>> witness.note("people", 7, b"\xaa" * 32, b"\xbb" * 32)
>>> [line.sequence for line in witness.seen("people")]
[7]
"""

import os
from collections.abc import Callable, Iterable, Iterator
from hashlib import sha256
from typing import NamedTuple, Protocol
from urllib.parse import quote, unquote

from counterpoint.ledger.checking.line_file import LineFile
from counterpoint.ledger.store.records import link

_HALF = 16


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


class Witness(Protocol):
    """What has seen how far the chains of a ledger had come. `place` tells the ledger's place from others."""

    path: str
    """Where it is: a path, or an address."""
    place: str

    @property
    def mark(self) -> bytes:
        """Where this witness and the ledger are now: half of it says the one, half the other."""

    def place_in(self, mark: bytes) -> bytes | None:
        """The ledger's place that a mark names, if the witness was then where it is now; else places do not compare."""

    def note(self, whose: str, sequence: int, head: bytes, genesis: bytes, entries: Entries | None = None) -> None:
        """See a head, durably. `entries` reads the chain, to which other processes may have added meanwhile."""

    def note_place(self, whose: str, genesis: bytes) -> None:
        """See where the witness and the ledger are now."""

    def note_recovery(self, whose: str, number: int, before: bytes, genesis: bytes, entry: bytes) -> None:
        """See the entry of a recovery, behind the head `before`, in the place of all that was seen from there on."""

    def seen(self, whose: str) -> Iterator[Line]:
        """The lines about this session, of whatever ledger, that were there when this was called."""

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

    def rewrite(self, lines: Iterable[tuple[str, Line]], first: str | os.PathLike[str]) -> None:
        """Put these lines in the place of all others, by way of the file `first` (`LineFile.rewrite`)."""
        self._file.rewrite((_written(whose, *line) for whose, line in lines), first)

    def close(self) -> None:
        """Let go of the file."""
        self._file.close()


def _name(whose: str) -> bytes:
    """A name as one word, whatever characters it has."""
    return quote(whose, safe="").encode()


def _written(whose: str, sequence: int, head: bytes, genesis: bytes) -> bytes:
    return f"{sequence} {head.hex()} {genesis.hex()} ".encode() + _name(whose)


def _read(text: bytes) -> tuple[str, Line]:
    sequence, head, genesis, name = text.decode("ascii").split(" ")
    return unquote(name), Line(int(sequence), bytes.fromhex(head), bytes.fromhex(genesis))

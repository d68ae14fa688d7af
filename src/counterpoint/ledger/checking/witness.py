r"""The witness: outside the database, it has seen how far the ledger had come. Here it is a file.

After every commit that settles something, and before its answer is released, a line goes here: sequence number, head of
the hash chain, genesis of the chain, the session's name. At every start each line is compared with the chain: a
database that is older than its witness (an old copy was put back), or that has another entry at any place that was seen
(it was forked), is refused. Keep it on another disk than the database, and out of its backups. Several processes, and
several ledgers, may append to one file: a line counts for the chain of its genesis alone. A line that a crash has torn
is passed over.

After a lost disk a backup may be opened on purpose (`recovering.py`). The line of the entry that says so takes back
what lines before it have seen from that number on: they are of the record that was lost.

The line with number 0 has in the place of a head where the file and the ledger were then: a ledger that is missing at
the place where it was seen was taken away; at another place another one may begin, with sessions of the same names.

Lines of an earlier form have no genesis. They are this chain's if every one of them with number 0, which named the
genesis, names this one. If they name several, two ledgers shared the file when only the furthest line was looked at:
then only the furthest counts, and only for a chain that is named.

>>> import tempfile, os.path
>>> witness = WitnessFile(os.path.join(tempfile.mkdtemp(), "witness"))
>>> witness.note("people", 7, b"\xaa" * 32, b"\xbb" * 32)
>>> [line.sequence for line in witness.seen("people")]
[7]
"""

import errno
import os
from collections.abc import Callable, Iterable, Iterator
from hashlib import sha256
from typing import NamedTuple, Protocol
from urllib.parse import quote, unquote

from counterpoint.errors import WitnessFailed
from counterpoint.ledger.store.folders import sync_folder_of
from counterpoint.ledger.store.records import link

_CHUNK = 2**20
_HALF = 16


class Line(NamedTuple):
    """How far a chain had come; `genesis` is None in the earlier form."""

    sequence: int
    head: bytes
    genesis: bytes | None


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
        self.path = os.fspath(path)
        self.place = place
        self._file: int | None = None

    @property
    def mark(self) -> bytes:
        """Where this file and the ledger are now."""
        return place_mark(os.path.realpath(self.path), self.place)

    def place_in(self, mark: bytes) -> bytes | None:
        """The ledger's place that a mark names, if this file was then where it is now."""
        return place_in(mark, self.mark)

    def note(self, whose: str, sequence: int, head: bytes, genesis: bytes, entries: Entries | None = None) -> None:
        """Append a line, and wait until it is on disk."""
        line = _written(whose, sequence, head, genesis)
        try:
            file = self._open()
            if os.write(file, line) < len(line):  # a disk that is almost full takes a part, and calls it no error
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            os.fdatasync(file)
        except OSError as error:
            raise WitnessFailed(f"the witness {self.path!r} cannot be written: {error.strerror}") from None

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
        try:
            return os.stat(self.path).st_size
        except FileNotFoundError:
            return 0
        except OSError as error:
            raise self._unreadable(error) from None

    def lines(self, whose: str, upto: int) -> Iterator[Line]:
        """The lines about this session, of whatever ledger, in the first `upto` bytes."""
        ending = b" " + quote(whose, safe="").encode()
        for line in self._whole_lines(upto):
            if line.endswith(ending) and (read := _read(line[: -len(ending)])):
                yield read

    def everything(self) -> Iterator[tuple[str, Line]]:
        """Every whole line with its genesis, and whose it is."""
        for line in self._whole_lines(self.size()):
            begin, _, whose = line.rpartition(b" ")
            if (read := _read(begin)) and read.genesis is not None:
                yield unquote(whose.decode("ascii")), read

    def rewrite(self, lines: Iterable[tuple[str, int, bytes, bytes]], first: str | os.PathLike[str]) -> None:
        """Put these lines in the place of all others. They go to the file `first`, which then takes this one's name.

        A crash leaves all of the old lines or all of the new ones. One process alone may have the file open.
        """
        try:
            with open(os.open(first, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
                file.writelines(_written(*line) for line in lines)
                file.flush()
                os.fsync(file.fileno())
            os.replace(first, self.path)
        except OSError as error:
            raise WitnessFailed(f"the witness {self.path!r} cannot be written: {error.strerror}") from None
        self.close()  # the next line opens the new file

    def close(self) -> None:
        """Let go of the file."""
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def _open(self) -> int:
        if self._file is None:
            file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
            try:
                sync_folder_of(self.path)  # of a new file, or of one that was rewritten, its name has to last
                size = os.fstat(file).st_size
                if size and os.pread(file, 1, size - 1) != b"\n":
                    # So that the line a crash has torn does not spoil the next; with a space, or what is left of a
                    # longer name could be taken for that of another session.
                    os.write(file, b" \n")
            except BaseException:
                os.close(file)
                raise
            self._file = file
        return self._file

    def _whole_lines(self, upto: int) -> Iterator[bytes]:
        if not upto:
            return
        try:
            with open(self.path, "rb") as file:
                rest = b""
                while upto > 0 and (chunk := file.read(min(_CHUNK, upto))):
                    upto -= len(chunk)
                    *lines, rest = (rest + chunk).split(b"\n")
                    yield from lines
        except OSError as error:
            raise self._unreadable(error) from None

    def _unreadable(self, error: OSError) -> WitnessFailed:
        return WitnessFailed(f"the witness {self.path!r} cannot be read: {error.strerror}")


def _written(whose: str, sequence: int, head: bytes, genesis: bytes) -> bytes:
    return f"{sequence} {head.hex()} {genesis.hex()} {quote(whose, safe='')}\n".encode()


def _read(line: bytes) -> Line | None:
    """A line without its name, or None if it is none: torn, or about a session with a longer name."""
    sequence, *hashes = line.split(b" ")
    if not sequence.isdigit() or not 1 <= len(hashes) <= 2 or any(len(found) != 64 for found in hashes):
        return None
    try:
        head, *genesis = (bytes.fromhex(found.decode("ascii")) for found in hashes)
    except ValueError:
        return None
    return Line(int(sequence), head, genesis[0] if genesis else None)

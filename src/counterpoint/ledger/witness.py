r"""The witness: a file outside the database that has seen how far the ledger had come.

After every commit that settles something, and before its answer is released, a line goes here: sequence number, head of
the hash chain, whose. A database that is older than its witness (an old copy was put back), or that has another entry
at that place (it was forked), is refused at start. Keep it on another disk than the database, and out of its backups.
Several processes may append to one file; a line that a crash has torn is passed over.

>>> import tempfile, os.path
>>> witness = Witness(os.path.join(tempfile.mkdtemp(), "witness"))
>>> witness.note("people", 7, b"\xaa" * 32)
>>> witness.last("people").sequence
7
"""

import errno
import os
from typing import NamedTuple
from urllib.parse import quote

from counterpoint.errors import LedgerFailed
from counterpoint.ledger.folders import sync_folder_of

_TAIL = 2**16


class Seen(NamedTuple):
    """How far a ledger had come."""

    sequence: int
    head: bytes


class Witness:
    """An append-only file of what was seen."""

    __slots__ = ("_file", "path")

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.fspath(path)
        self._file: int | None = None

    def note(self, whose: str, sequence: int, head: bytes) -> None:
        """Append a line, and wait until it is on disk."""
        line = f"{sequence} {head.hex()} {quote(whose, safe='')}\n".encode()
        try:
            file = self._open()
            if os.write(file, line) < len(line):  # a disk that is almost full takes a part, and calls it no error
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            os.fdatasync(file)
        except OSError as error:
            raise LedgerFailed(f"the witness {self.path!r} cannot be written: {error.strerror}") from None

    def last(self, whose: str) -> Seen | None:
        """The furthest that it has seen this one, or None if never."""
        name = quote(whose, safe="").encode()
        # Several processes may have written slightly out of turn, so the furthest of the last lines counts. Those
        # before them are implied, as each head covers everything before it.
        near = [seen for line in self._lines(_TAIL) if (seen := _read(line, name))]
        found = near or [seen for line in self._lines(None) if (seen := _read(line, name))]
        return max(found, default=None)

    def close(self) -> None:
        """Let go of the file."""
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def _open(self) -> int:
        if self._file is None:
            self._file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
            size = os.fstat(self._file).st_size
            if not size:
                sync_folder_of(self.path)
            if size and os.pread(self._file, 1, size - 1) != b"\n":
                # So that the line a crash has torn does not spoil the next; with a space, or what is left of a longer
                # name could be taken for that of another session.
                os.write(self._file, b" \n")
        return self._file

    def _lines(self, tail: int | None) -> list[bytes]:
        """The whole lines in the last `tail` bytes, or all of them."""
        try:
            with open(self.path, "rb") as file:
                size = file.seek(0, os.SEEK_END)
                start = 0 if tail is None else max(0, size - tail)
                file.seek(start)
                lines = file.read().split(b"\n")
        except FileNotFoundError:
            return []
        except OSError as error:
            raise LedgerFailed(f"the witness {self.path!r} cannot be read: {error.strerror}") from None
        return lines[1 if start else 0 : -1]


def _read(line: bytes, whose: bytes) -> Seen | None:
    sequence, _, rest = line.partition(b" ")
    head, _, name = rest.partition(b" ")
    if name != whose or not sequence.isdigit() or len(head) != 64:
        return None
    try:
        return Seen(int(sequence), bytes.fromhex(head.decode("ascii")))
    except ValueError:
        return None

r"""An append-only file of lines: an acknowledged line stays, whatever happens to those after it.

A full disk takes a part of a line, a crash leaves half of one, a sync fails once the bytes are in the file. Then
`append` raises, and the line was never acknowledged. What is left of it must not spoil the next line, which another
process may append at the same moment. So

- each record begins with a space and a line end: it is never glued to a torn line, of this process or another;
- each line has a checksum: what is left of a torn one, with that space, is never read as a line;
- a record is one write(2) at the file's end, which the system keeps in one piece, and nothing is ever cut off. So no
  lock is needed, and a process that is frozen while it writes keeps no other one waiting;
- a record that was not synced is written and synced once more before anything like it is acknowledged: a sync that
  failed is not tried again on the same bytes, which the system may have dropped;
- a file that was deleted, replaced or made shorter while it was open takes no more lines;
- superfluous lines are left out by a process that has the file alone (`compact`): each process that
  appends to it holds a shared lock on it from then on.

>>> import tempfile, os.path
>>> file = LineFile(os.path.join(tempfile.mkdtemp(), "lines"))
>>> file.append(b"one")
>>> with open(file.path, "ab") as other:
...     _ = other.write(b"\n0123abcd tor")
>>> file.append(b"two")
>>> list(file.texts())
[b'one', b'two']
>>> file.close()
"""

import errno
import os
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any
from zlib import crc32

from counterpoint.errors import WitnessFailed
from counterpoint.ledger.store.files import sync_folder_of

fcntl: Any
try:
    import fcntl
except ImportError:  # elsewhere than on POSIX
    fcntl = None

_BEGIN = b" \n"
_CHUNK = 2**20
_SEAL = 9
"""Eight hexadecimal digits of a checksum, and a space."""


class LineFile:
    """The lines of a file. Texts have no line end; several processes may append to one file."""

    __slots__ = ("_file", "_length", "path")

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.fspath(path)
        self._file: int | None = None
        self._length = 0

    def append(self, text: bytes) -> None:
        """Append a line, and return once it is on disk; `WitnessFailed` if that is not certain."""
        record = _BEGIN + _sealed(text)
        try:
            file = self._opened()
            self._must_be_the_same(file)
            _write(file, record)
            os.fdatasync(file)
            self._length = os.lseek(file, 0, os.SEEK_CUR)
        except OSError as error:
            raise self._unwritable(error) from None

    def size(self) -> int:
        """How long the file is; 0 if there is none."""
        try:
            return os.stat(self.path).st_size
        except FileNotFoundError:
            return 0
        except OSError as error:
            raise self._unreadable(error) from None

    def texts(self, upto: int | None = None, ending: bytes = b"") -> Iterator[bytes]:
        """The lines that are whole in the first `upto` bytes, or in the file as it is now, and that end so."""
        for line in self._lines(self.size() if upto is None else upto):
            if line.endswith(ending) and line == _sealed(text := line[_SEAL:])[:-1]:
                yield text

    def rewrite(self, texts: Iterable[bytes], first: str | os.PathLike[str]) -> None:
        """Put these lines in the place of all others. They go to the file `first`, which then takes this one's name.

        A failure or a crash leaves all of the old lines or all of the new ones. One process at a time may write.
        """
        try:
            file = os.open(first, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            try:
                _write(file, b"".join(map(_sealed, texts)))
                os.fsync(file)
            finally:
                os.close(file)
            os.replace(first, self.path)
            self.close()
            sync_folder_of(self.path)
        except OSError as error:
            raise self._unwritable(error) from None

    def compact(self, is_needed: Callable[[bytes], bool], upto: int) -> bool:
        """Leave out the lines in the first `upto` bytes that are not needed; False, if another one has the file open.

        What was appended behind stays. A crash leaves all of the old lines or all of the needed ones.
        """
        if fcntl is None:
            return False
        self.close()
        try:
            file = os.open(self.path, os.O_RDWR)
        except OSError:
            return False
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if not os.path.samestat(os.fstat(file), os.stat(self.path)):
                return False
            needed, size = list(filter(is_needed, self.texts(upto))), self.size()
            self.rewrite([*needed, *self._behind(upto, size)], f"{self.path}.compacted")
        except (OSError, WitnessFailed):  # another one has it, or the disk is full: then it stays as it is
            return False
        finally:
            os.close(file)
        return True

    def _behind(self, upto: int, size: int) -> Iterator[bytes]:
        """The lines that were appended behind the first `upto` bytes, which end with a whole line or a torn one."""
        before = sum(1 for _ in self.texts(upto))
        return islice(self.texts(size), before, None)

    def close(self) -> None:
        """Let go of the file."""
        if self._file is not None:
            file, self._file, self._length = self._file, None, 0
            os.close(file)

    def _opened(self) -> int:
        if self._file is None:
            file = self._shared()
            try:
                sync_folder_of(self.path)  # the name of a new file has to last, too
            except BaseException:
                os.close(file)
                raise
            self._file = file
        return self._file

    def _shared(self) -> int:
        """The file, opened to append, with the lock that keeps others from leaving lines out."""
        while True:
            file = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            if fcntl is None:
                return file
            try:
                fcntl.flock(file, fcntl.LOCK_SH)
                if os.path.samestat(os.fstat(file), os.stat(self.path)):
                    return file
            except FileNotFoundError:  # it was taken away just now
                pass
            os.close(file)  # its lines were left out meanwhile: another file has its name

    def _must_be_the_same(self, file: int) -> None:
        """Refuse to write where the next start would not look, or to a file that has lost what it was given."""
        own = os.fstat(file)
        try:
            found = os.stat(self.path)
        except FileNotFoundError:
            found = None
        if found is None or not os.path.samestat(own, found) or own.st_size < self._length:
            raise WitnessFailed(
                f"the witness {self.path!r} was moved, replaced or made shorter while it was open: nothing more is "
                "written to it and nothing was released. Put it back, open the ledger again, and repeat what was not "
                "answered by its id"
            )

    def _lines(self, upto: int) -> Iterator[bytes]:
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

    def _unwritable(self, error: OSError) -> WitnessFailed:
        return WitnessFailed(f"the witness {self.path!r} cannot be written: {error.strerror}")


def _write(file: int, data: bytes) -> None:
    if os.write(file, data) < len(data):  # a disk that is almost full takes a part, and calls it no error
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def _sealed(text: bytes) -> bytes:
    return b"%08x %s\n" % (crc32(text), text)

"""An SQLite ledger as it was at one moment, for a reader that writes nothing to it or beside it.

A ledger at rest is opened as immutable, also on a read-only disk. One that a crash left with a journal or a WAL has its
last commits there, and one that another process has open has them in its WAL: both are copied into a folder of our own
and recovered there, and the copy is deleted afterwards.

Copying a ledger in use is sound because of what a WAL is. Commits are only appended to it, and a checkpoint writes to
the database only pages that are in the WAL too, so the pages of the WAL, copied after the database, replace whatever a
checkpoint changed while it was copied. What begins the WAL anew changes its header first. So if the header is the same
before and after, the copy is the ledger as of the last commit that is whole in the copied WAL. Else it is copied again.

>>> import tempfile
>>> path = os.path.join(tempfile.mkdtemp(), "ledger.db")
>>> SqliteStore(path).close()
>>> before = os.listdir(os.path.dirname(path))
>>> with read_only(path, wait=1) as store:
...     store.names(), os.listdir(os.path.dirname(path)) == before
((), True)
"""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager

from counterpoint.errors import LedgerBusy, LedgerError, LedgerFailed
from counterpoint.ledger.store.files import at_rest, busy
from counterpoint.ledger.store.sqlite import SqliteStore

_UNFINISHED = ("-wal", "-journal")
_WAL_HEADER = 32
_FORMAT = slice(18, 20)
_IS_WAL = bytes((2, 2))
"""What the header of a database says that uses a WAL."""
_TRIES = 20


@contextmanager
def read_only(path: str, wait: float) -> Iterator[SqliteStore]:
    """The store at a path as it was at a moment after this was called; `LedgerBusy` if no such copy can be made."""
    real = os.path.realpath(path)
    if not os.path.exists(real):
        raise LedgerError(f"there is no ledger at {path!r}")
    with ExitStack() as until_read:
        try:
            until_read.enter_context(at_rest(real, wait))
        except LedgerBusy:
            in_use = True
        else:
            in_use = False
        if not in_use and not _unfinished(real):
            yield until_read.enter_context(closing(SqliteStore(real, immutable=True)))
            return
        folder = until_read.enter_context(tempfile.TemporaryDirectory(prefix="counterpoint-"))
        copy = os.path.join(folder, "ledger.db")
        if in_use:
            _copy_in_use(real, copy)
        else:
            _copy(real, copy)
        yield until_read.enter_context(closing(SqliteStore(copy)))


def _unfinished(path: str) -> list[str]:
    """The endings of the files in which commits may be that are not in the database yet."""
    files = {ending: f"{path}{ending}" for ending in _UNFINISHED}
    return [ending for ending, file in files.items() if os.path.exists(file) and os.path.getsize(file)]


def _copy_in_use(path: str, copy: str) -> None:
    """Copy a ledger that another process has open."""
    for _ in range(_TRIES):
        if _first_bytes(path, _FORMAT.stop)[_FORMAT] != _IS_WAL:
            break  # its pages are changed in place: no copy of it is of one moment
        before = _beginning(path)
        _copy(path, copy)
        if _beginning(path) == before:
            return
        for ending in ("", *_unfinished(copy)):
            os.unlink(f"{copy}{ending}")
    raise busy(path)


def _beginning(path: str) -> tuple[bytes, int | None]:
    """The header of the WAL; without one, when the database was last changed, as only a WAL covers a change."""
    header = _first_bytes(f"{path}-wal", _WAL_HEADER)
    return header, None if header else os.stat(path).st_mtime_ns


def _first_bytes(path: str, number: int) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read(number)
    except FileNotFoundError:
        return b""


def _copy(path: str, copy: str) -> None:
    """The database first, and then what may hold its last commits."""
    try:
        shutil.copyfile(path, copy)
        for ending in _unfinished(path):
            shutil.copyfile(f"{path}{ending}", f"{copy}{ending}")
    except OSError as error:
        raise LedgerFailed(
            f"the ledger {path!r} is read in a copy, because it is in use or was left unfinished by a crash; that "
            f"could not be made: {error.strerror}. TMPDIR says where it goes"
        ) from None

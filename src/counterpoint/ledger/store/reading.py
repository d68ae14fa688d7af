"""Reading an SQLite ledger without a write to it or beside it: a copy on a read-only disk, or evidence.

A ledger at rest is opened as immutable. One that a crash left with a journal or a WAL has its last commits there: it is
copied into a folder of our own and recovered there, and the copy is deleted in the end.

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
from contextlib import closing, contextmanager

from counterpoint.errors import LedgerError, LedgerFailed
from counterpoint.ledger.store.locking import at_rest
from counterpoint.ledger.store.sqlite import SqliteStore

_UNFINISHED = ("-wal", "-journal")


@contextmanager
def read_only(path: str, wait: float) -> Iterator[SqliteStore]:
    """The store at a path, to be read; `LedgerBusy` if a process has it open."""
    real = os.path.realpath(path)
    if not os.path.exists(real):
        raise LedgerError(f"there is no ledger at {path!r}")
    with at_rest(real, wait):
        if not _unfinished(real):
            with closing(SqliteStore(real, immutable=True)) as store:
                yield store
                return
        with tempfile.TemporaryDirectory(prefix="counterpoint-") as folder:
            copy = os.path.join(folder, "ledger.db")
            _copy(real, copy)
            with closing(SqliteStore(copy)) as store:
                yield store


def _unfinished(path: str) -> list[str]:
    """The endings of the files in which commits may be that are not in the database yet."""
    files = {ending: f"{path}{ending}" for ending in _UNFINISHED}
    return [ending for ending, file in files.items() if os.path.exists(file) and os.path.getsize(file)]


def _copy(path: str, copy: str) -> None:
    try:
        for ending in ("", *_unfinished(path)):
            shutil.copyfile(f"{path}{ending}", f"{copy}{ending}")
    except OSError as error:
        raise LedgerFailed(
            f"the ledger {path!r} was left unfinished by a crash, and is verified in a copy; "
            f"that could not be made: {error.strerror}. TMPDIR says where it goes"
        ) from None

"""The lock of an SQLite ledger, and the sync of a folder.

One process has the lock at a time, whatever else is done with the files. `flock` belongs to an open file. The POSIX
locks of `lockf`, and SQLite's own, belong to a process and vanish when it closes any descriptor of the file, as a
thread does that copies the folder for a backup. Two files are locked: `<path>.lock`, before the database is touched,
and on Linux the database itself, so that the lock holds if the lock file is deleted. (Elsewhere `flock` and SQLite's
locks are of one kind, and would shut each other out.) Each commit first checks that the files are still those that
were locked. Without `flock`, no ledger is opened.

>>> import tempfile
>>> lock = LedgerLock(os.path.join(tempfile.mkdtemp(), "ledger.db"), wait=0)
>>> lock.check()
>>> os.unlink(lock.path)
>>> lock.check()
Traceback (most recent call last):
...
counterpoint.errors.LedgerFailed: the ledger ... was deleted, moved or replaced while it was open...
>>> lock.release()
"""

import errno
import os
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Any
from weakref import WeakSet

from counterpoint.errors import LedgerBusy, LedgerError, LedgerFailed

fcntl: Any
try:
    import fcntl
except ImportError:  # no POSIX system
    fcntl = None

_LOCK_DATABASE = sys.platform == "linux"
_POLL = 0.01
_BUSY = (errno.EWOULDBLOCK, errno.EACCES)
_MINE = 0o600
"""Read and written by the owner alone: what was asked is not sealed."""
_LEFT_BY_A_CRASH = ("-wal", "-shm", "-journal")
"""What there may be beside a database, by how the names go on; SQLite makes them with the mode of the database."""

_Identity = tuple[int, int]
_held: "WeakSet[FileLock]" = WeakSet()


class FileLock:
    """A file that is open and locked, until it is released; shared among readers, if `shared`."""

    __slots__ = ("__weakref__", "_file", "identity", "path")

    def __init__(self, path: str, until: float, *, shared: bool = False) -> None:
        self.path = path
        self._file: int | None = None
        while self._file is None:
            file = _opened(path, shared)
            try:
                _lock(file, path, until, shared)
                self.identity = _identity_of(file)
                if self.identity == _identity_at(path):  # else it was deleted or replaced meanwhile
                    self._file, file = file, -1
            finally:
                if file >= 0:
                    os.close(file)
        _held.add(self)

    @property
    def is_held(self) -> bool:
        """Whether the file is still open here, and still the one at its path."""
        return self._file is not None and _identity_of(self._file) == self.identity == _identity_at(self.path)

    def release(self) -> None:
        """Close the file; in a forked child that leaves the lock to the parent, whose file it is, too."""
        if self._file is not None:
            os.close(self._file)
            self._file = None


def _release_all() -> None:
    """In a forked child: or the lock would last as long as the child does, beyond the end of its parent.

    A program that is started instead (exec) does not get the files: Python opens all so that they are closed then.
    """
    for lock in list(_held):
        with suppress(OSError):
            lock.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_release_all)


class LedgerLock:
    """What keeps others out of the ledger at a path, from before it is opened until after it was closed.

    It makes an empty database if there is none, and lets its owner alone read and write all that belongs to it. No
    descriptor of the database may be closed while SQLite has it open, so that is left to `release`.
    """

    def __init__(self, path: str, wait: float = 0.0) -> None:
        self.path = path
        until = time.monotonic() + wait
        self._locks = [FileLock(f"{path}.lock", until)]
        try:
            if _LOCK_DATABASE:
                self._locks.append(FileLock(path, until))
            else:
                os.close(_opened(path, shared=False))
            self._database = _identity_at(path)
            for ending in _LEFT_BY_A_CRASH:
                with suppress(FileNotFoundError, PermissionError):  # not there, or another owner's
                    os.chmod(f"{path}{ending}", _MINE)
        except BaseException:
            self.release()
            raise

    def check(self) -> None:
        """`LedgerFailed` if another process may have come in, or be about to."""
        lock = self._locks[-1]
        if not lock.is_held or (lock.path != self.path and _identity_at(self.path) != self._database):
            raise LedgerFailed(
                f"the ledger {self.path!r} or its lock was deleted, moved or replaced while it was open, so another "
                "process may have one of that name: nothing more is written to it. Put the file back, open it again, "
                "and repeat what was not answered by its id"
            )

    def release(self) -> None:
        """Let others in."""
        for lock in reversed(self._locks):
            lock.release()


@contextmanager
def at_rest(path: str, wait: float) -> Iterator[None]:
    """Keep writers out of the ledger at a path, and let readers in; nothing is made or changed."""
    until = time.monotonic() + wait
    names = (f"{path}.lock", path) if _LOCK_DATABASE else (f"{path}.lock",)
    with ExitStack() as locks:
        for name in filter(os.path.exists, names):
            locks.callback(FileLock(name, until, shared=True).release)
        yield


def busy(path: str) -> LedgerBusy:
    """The error for a ledger that another process has."""
    return LedgerBusy(
        f"another process has the ledger {path!r} open, and an SQLite ledger has one at a time: close it there, or "
        "keep the ledger in PostgreSQL"
    )


def _opened(path: str, shared: bool) -> int:
    try:
        file = os.open(path, os.O_RDONLY if shared else os.O_RDWR | os.O_CREAT, _MINE)
    except OSError as error:
        raise LedgerFailed(f"the ledger cannot be opened there: {error.strerror}") from None
    if not shared:
        with suppress(PermissionError):  # whatever the umask makes of a new file's mode
            os.fchmod(file, _MINE)
    return file


def _lock(file: int, path: str, until: float, shared: bool) -> None:
    flock = getattr(fcntl, "flock", None)
    if flock is None:
        raise LedgerError(
            "this system has no flock, without which a second process could not be kept out of an SQLite ledger: keep "
            "the ledger in PostgreSQL"
        )
    kind = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
    while True:
        try:
            flock(file, kind | fcntl.LOCK_NB)
            return
        except OSError as error:
            if error.errno not in _BUSY:
                raise LedgerFailed(
                    f"the ledger {path.removesuffix('.lock')!r} cannot be locked: {error.strerror}. Its file system "
                    "must have locks (flock): keep it on a local disk, or in PostgreSQL"
                ) from None
        if time.monotonic() >= until:
            raise busy(path.removesuffix(".lock"))
        time.sleep(_POLL)


def _identity_of(file: int) -> _Identity | None:
    with suppress(OSError):  # closed behind our back
        found = os.fstat(file)
        return found.st_dev, found.st_ino
    return None


def _identity_at(path: str) -> _Identity | None:
    with suppress(OSError):
        found = os.stat(path)
        return found.st_dev, found.st_ino
    return None


def sync_folder_of(path: str | os.PathLike[str]) -> None:
    """Wait until the folder's list of files is on disk; where folders cannot be opened, the system sees to it.

    A new file is there after a power cut only if its folder was synced, too (fsync(2)). SQLite syncs the folders of its
    own files; a key without which nothing opens, and a witness without which nothing starts, need the same.

    >>> import tempfile
    >>> sync_folder_of(os.path.join(tempfile.mkdtemp(), "key"))
    """
    if os.name != "posix":
        return
    folder = os.open(os.path.dirname(os.path.abspath(path)), os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)

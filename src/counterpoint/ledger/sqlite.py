"""SQLite as a store: embedded, one process, one connection; a commit is on disk when it returns.

`synchronous=EXTRA` in WAL mode: one sync for each commit, as with FULL; and the rollback journal that a new file begins
with is gone for good before anything is stored, which FULL leaves to chance. Libraries before 3.51.3 can lose a commit
when a WAL is reset (the WAL-reset bug), so there a rollback journal is used throughout. A second process gets
`LedgerBusy`: the file `<path>.lock` is taken before the database is touched, as two that wait inside SQLite for each
other's lock would wait for ever. A failed sync is never tried again: the ledger stops.

>>> journal_mode("3.51.2"), journal_mode("3.54.1")
('truncate', 'wal')
"""

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NoReturn

from counterpoint.errors import LedgerBusy, LedgerError, LedgerFailed, LedgerTampered, UnknownSchema
from counterpoint.ledger import schema
from counterpoint.ledger.tables import Statement, Tables
from counterpoint.randomness.process import leave_to_parent

if TYPE_CHECKING:
    import apsw

APPLICATION = 0x43506F69
"""Marks an SQLite file as a ledger of ours ("CPoi")."""
_SOUND_WAL = (3, 51, 3)
_POLL = 0.01
_TOGETHER = 64


def journal_mode(library: str) -> str:
    """WAL where the library is free of the WAL-reset bug, else a rollback journal."""
    return "wal" if tuple(map(int, library.split("."))) >= _SOUND_WAL else "truncate"


class SqliteStore(Tables):
    """One file, held by one process."""

    _BEGIN = "BEGIN IMMEDIATE"
    _LOCKED = Tables._HEAD

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        existing: bool = False,
        wait: float = 1.0,
        synchronous: str = "EXTRA",
        vfs: str | None = None,
    ) -> None:
        import apsw  # noqa: PLC0415 - only where a ledger is on disk

        self.path = os.fspath(path)
        if existing and vfs is None and not os.path.exists(self.path):
            raise LedgerError(f"there is no ledger at {self.path!r}")
        super().__init__()
        self._apsw = apsw
        self._lock = _taken(f"{self.path}.lock", wait) if vfs is None else None
        flags = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE
        try:
            self._connection = apsw.Connection(self.path, flags=flags, vfs=vfs)
        except apsw.Error as error:
            self._let_go()
            self._refuse(error)
        leave_to_parent(self, "_connection", "_apsw")  # a library that is let go of closes what is left
        try:
            self._set_up(wait, synchronous)
        except LedgerError:
            self.close()
            raise

    def _set_up(self, wait: float, synchronous: str) -> None:
        self._connection.set_busy_timeout(int(wait * 1000))
        self._run("PRAGMA locking_mode = EXCLUSIVE")
        found = self._run("SELECT count(*) FROM sqlite_schema")[0][0]
        marked = self._run("PRAGMA application_id")[0][0]
        version = self._run("PRAGMA user_version")[0][0] if marked == APPLICATION else 0
        if found and marked != APPLICATION:
            raise UnknownSchema(f"{self.path!r} is an SQLite database, but no ledger; choose another path")
        self._run(f"PRAGMA synchronous = {synchronous}")
        self._run(f"PRAGMA journal_mode = {journal_mode(self._apsw.sqlite_lib_version())}")
        self._run("BEGIN EXCLUSIVE")  # from here on nobody else gets in
        for statement in schema.statements(version, "BLOB", " WITHOUT ROWID"):
            self._run(statement)
        if version < schema.VERSION:
            self._run(f"PRAGMA application_id = {APPLICATION}")
            self._run(f"PRAGMA user_version = {schema.VERSION}")
        self._run("COMMIT")

    def begin_reading(self) -> None:
        """See one moment only."""
        self._run("BEGIN")

    def _commit(self) -> None:
        """Return once it is on disk."""
        self._run("COMMIT")

    def _undo(self) -> None:
        """Forget the transaction, if SQLite has not done so already."""
        if self._connection.in_transaction:
            self._run("ROLLBACK")

    def close(self) -> None:
        """Let go of the file."""
        self._connection.close()
        self._let_go()

    def abandon(self) -> None:
        """Let go of the file after a failure, as a crash would: without another write or sync."""
        with suppress(self._apsw.Error):
            self._connection.config(self._apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
            self._connection.close()
        self._let_go()

    def _let_go(self) -> None:
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def _run(self, sql: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        try:
            return list(self._connection.execute(sql, parameters))
        except self._apsw.Error as error:
            self._refuse(error)

    def _run_all(self, *statements: Statement) -> list[list[tuple[Any, ...]]]:
        return [self._run(*statement) for statement in statements]

    def _among(self, sql: str, name: str, keys: Sequence[str]) -> list[Statement]:
        parts = [keys[start : start + size] for start, size in _together(len(keys))]
        return [(f"{sql} IN ({_marks(len(part))})", (name, *part)) for part in parts]

    def _run_many(self, sql: str, parameters: Sequence[Sequence[Any]]) -> None:
        try:
            self._connection.executemany(sql, parameters)
        except self._apsw.Error as error:
            self._refuse(error)

    def _refuse(self, error: "apsw.Error") -> NoReturn:
        """In our words: a library's message may quote what it was given."""
        apsw = self._apsw
        if isinstance(error, apsw.BusyError | apsw.LockedError):
            raise _busy(self.path) from None
        if isinstance(error, apsw.NotADBError):
            raise UnknownSchema(f"{self.path!r} is no SQLite database") from None
        if isinstance(error, apsw.CorruptError):
            raise LedgerTampered(f"the file {self.path!r} is damaged: restore a newer copy than the damage") from None
        if isinstance(error, apsw.ConnectionClosedError):
            raise LedgerError(f"the ledger {self.path!r} has been closed") from None
        reasons = {
            apsw.ConstraintError: "a charge would exceed its budget, or a request be stored twice",
            apsw.FullError: "the disk is full",
            apsw.ReadOnlyError: "it is read-only",
            apsw.CantOpenError: "it cannot be opened there",
            apsw.PermissionsError: "it may not be written",
        }
        why = next((reason for kind, reason in reasons.items() if isinstance(error, kind)), type(error).__name__)
        raise LedgerFailed(
            f"the ledger {self.path!r} cannot be written: {why}. Nothing that was released is lost; mend that, open "
            "it again, and repeat what was not answered by its id"
        ) from None


def _together(count: int) -> Iterator[tuple[int, int]]:
    """From where on, and how many at a time: powers of two, so that few statements have to be prepared.

    >>> list(_together(7))
    [(0, 4), (4, 2), (6, 1)]
    """
    start = 0
    while start < count:
        size = min(_TOGETHER, 1 << (count - start).bit_length() - 1)
        yield start, size
        start += size


@lru_cache
def _marks(count: int) -> str:
    return ", ".join("?" * count)


def _taken(path: str, wait: float) -> int | None:
    """The lock file, once it is ours; the system takes it back from a process that dies, and no fork inherits it."""
    try:
        import fcntl  # noqa: PLC0415 - not on every system; where it is missing, SQLite's own lock remains
    except ImportError:
        return None
    try:
        file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise LedgerFailed(f"the ledger cannot be opened there: {error.strerror}") from None
    until = time.monotonic() + wait
    while True:
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return file
        except OSError:
            if time.monotonic() >= until:
                os.close(file)
                raise _busy(path.removesuffix(".lock")) from None
            time.sleep(_POLL)


def _busy(path: str) -> LedgerBusy:
    return LedgerBusy(
        f"another process has the ledger {path!r} open, and an SQLite ledger has one at a time: close it there, or "
        "keep the ledger in PostgreSQL"
    )

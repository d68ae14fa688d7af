"""SQLite as a store: embedded, one process, one connection; a commit is on disk when it returns.

`synchronous=EXTRA` in WAL mode: one sync for each commit, as with FULL, and the rollback journal that a new file begins
with is gone for good before anything is stored, which FULL leaves to chance. Libraries before 3.51.3 can lose a commit
when a WAL is reset (the WAL-reset bug), so with those a rollback journal is used throughout. A second process gets
`LedgerBusy` before it touches the database (`files.py`), as two that wait inside SQLite for each other's lock would
wait for ever; each commit checks that the lock is still held. What is deleted is overwritten. A failed sync is never
tried again: the ledger stops.

>>> journal_mode("3.51.2"), journal_mode("3.54.1")
('truncate', 'wal')
"""

import os
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from json.encoder import encode_basestring_ascii
from typing import TYPE_CHECKING, Any, NoReturn
from urllib.parse import quote

from counterpoint.errors import LedgerBusy, LedgerError, LedgerFailed, LedgerTampered, UnknownSchema
from counterpoint.ledger.store import tables
from counterpoint.ledger.store.files import LedgerLock, busy, sync_folder_of
from counterpoint.ledger.store.group_commit import failed_before
from counterpoint.ledger.store.store import Store
from counterpoint.ledger.store.tables import Statement, Tables
from counterpoint.process import leave_to_parent

if TYPE_CHECKING:
    import apsw

APPLICATION = 0x43506F69
"""Marks an SQLite file as a ledger of ours ("CPoi")."""
_SOUND_WAL = (3, 51, 3)
_PAGES = 1000
"""How many pages of a backup are copied at once."""
_PAUSE = 0.001
"""How long a backup lets others have the connection between two parts."""


def journal_mode(library: str) -> str:
    """WAL where the library is free of the WAL-reset bug, else a rollback journal."""
    return "wal" if tuple(map(int, library.split("."))) >= _SOUND_WAL else "truncate"


class BackupFailed(LedgerError):
    """A backup was not made: `reason` says why, without its path. The ledger itself is as it was."""

    def __init__(self, path: str | os.PathLike[str], reason: str) -> None:
        super().__init__(f"a backup cannot be made at {os.fspath(path)!r}: {reason}")
        self.reason = reason


class SqliteStore(Tables):
    """One file, held by one process; `immutable` reads one that is at rest, without a lock or a write."""

    _BEGIN = "BEGIN IMMEDIATE"
    _BEGIN_READING = "BEGIN"
    _LOCKED = Tables._HEAD
    _AMONG = "IN (SELECT value FROM json_each(?))"

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        existing: bool = False,
        wait: float = 1.0,
        synchronous: str = "EXTRA",
        vfs: str | None = None,
        immutable: bool = False,
    ) -> None:
        import apsw  # noqa: PLC0415 - only where a ledger is on disk

        self.path = os.fspath(path)
        if existing and vfs is None and not os.path.exists(self.path):
            raise LedgerError(f"there is no ledger at {self.path!r}")
        super().__init__()
        self._apsw = apsw
        self._abandoned = self._closed = False
        locked = vfs is None and not immutable
        self._lock = LedgerLock(os.path.realpath(self.path), wait) if locked else None
        try:
            if immutable:
                name = f"file:{quote(os.path.abspath(self.path))}?immutable=1"
                self._connection = apsw.Connection(name, flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI)
            else:
                flags = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE
                self._connection = apsw.Connection(self.path, flags=flags, vfs=vfs)
        except apsw.Error as error:
            self._let_go()
            self._refuse(error)
        leave_to_parent(self, "_connection", "_apsw")  # a library that is let go of closes what is left
        try:
            if immutable:
                tables.must_be_known(self._found())
            else:
                self._set_up(wait, synchronous)
        except BaseException:
            self.close()
            raise

    def _found(self) -> int:
        """The version of the schema; 0 in an empty database."""
        found = self._run("SELECT count(*) FROM sqlite_schema")[0][0]
        marked = self._run("PRAGMA application_id")[0][0]
        if found and marked != APPLICATION:
            raise UnknownSchema(f"{self.path!r} is an SQLite database, but no ledger; choose another path")
        return int(self._run("PRAGMA user_version")[0][0]) if marked == APPLICATION else 0

    def _set_up(self, wait: float, synchronous: str) -> None:
        self._connection.set_busy_timeout(int(wait * 1000))
        self._run("PRAGMA locking_mode = EXCLUSIVE")
        version = self._found()
        if version:
            tables.must_be_known(version)
        self._run("PRAGMA secure_delete = ON")  # or old wrapped keys and seeds of settled requests stay in the file
        self._run(f"PRAGMA synchronous = {synchronous}")
        self._run(f"PRAGMA journal_mode = {journal_mode(self._apsw.sqlite_lib_version())}")
        self._run("BEGIN EXCLUSIVE")  # from here on no other process gets in
        if not version:
            for statement in tables.statements("BLOB", " WITHOUT ROWID"):
                self._run(statement)
            self._run(f"PRAGMA application_id = {APPLICATION}")
            self._run(f"PRAGMA user_version = {tables.VERSION}")
        self._run("COMMIT")

    def commit(self) -> None:
        """Return once it is on disk; nothing is committed that another process may not see."""
        if self._lock is not None:
            self._lock.check()
        self._run("COMMIT")

    def rollback(self) -> None:
        """Forget the transaction, if SQLite has not done so already."""
        if self._connection.in_transaction:
            self._run("ROLLBACK")

    def erase_deleted(self) -> bool:
        """Write the file anew, without what was deleted or replaced."""
        try:
            if self._lock is not None:
                self._lock.check()
            self._run("VACUUM")
            blocked = self._run("PRAGMA wal_checkpoint(TRUNCATE)")[0][0]  # what was written before is in the log, too
        except LedgerError:  # a full disk, say
            return False
        return not blocked

    def size(self) -> int:
        """How many bytes the database has, with what is in its log."""
        return sum(os.path.getsize(file) for file in (self.path, f"{self.path}-wal") if os.path.exists(file))

    @contextmanager
    def snapshot(self) -> Iterator[Store]:
        """The database as of a moment after this was called, in a copy that is deleted afterwards."""
        with tempfile.TemporaryDirectory(prefix="counterpoint-") as folder:
            copy = os.path.join(folder, "ledger.db")
            self.copy_to(copy, lasting=False)
            with closing(SqliteStore(copy, immutable=True)) as store:
                yield store

    def copy_to(self, path: str | os.PathLike[str], *, lasting: bool = True) -> None:
        """Copy the database to a new file, a part at a time: other requests are served in between.

        What they write to a part that was copied before is copied along, so the copy is of one moment: its last. A copy
        that need not last is not synced: its last part would keep requests waiting for that.
        """
        try:
            os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        except FileExistsError:
            raise BackupFailed(path, "there is such a file already, and a backup overwrites nothing") from None
        except OSError as error:
            raise BackupFailed(path, error.strerror or type(error).__name__) from None
        done = False
        try:
            with closing(self._apsw.Connection(os.fspath(path))) as copy:
                if not lasting:
                    copy.execute("PRAGMA synchronous = OFF")
                with self.lock:
                    backup = copy.backup("main", self._connection, "main")
                try:
                    while not backup.done:
                        with self.lock:
                            backup.step(_PAGES)
                        time.sleep(_PAUSE)  # the lock is not fair: without it the next part comes before a request
                finally:
                    with self.lock:  # it uses the connection of the requests, which must not run meanwhile
                        backup.finish()
            if lasting:
                sync_folder_of(path)
            done = True
        except self._apsw.Error as error:
            raise BackupFailed(path, type(error).__name__) from None
        finally:
            if not done:
                os.unlink(path)  # half a ledger is useless

    @property
    def is_open(self) -> bool:
        """False once it was closed, or abandoned after a failure."""
        return not self._closed

    def close(self) -> None:
        """Let go of the file."""
        self._closed = True
        self._connection.close()
        self._let_go()

    def abandon(self) -> None:
        """Let go of the file after a failure, as a crash would: without another write or sync."""
        self._abandoned = self._closed = True
        with suppress(self._apsw.Error):
            self._connection.config(self._apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
            self._connection.close()
        self._let_go()

    def _let_go(self) -> None:
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    def _run(self, sql: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        try:
            return list(self._connection.execute(sql, parameters))
        except self._apsw.Error as error:
            self._refuse(error)
        except UnicodeDecodeError:  # whose words quote the text
            raise _damaged(self.path) from None

    def _run_all(self, statements: Sequence[Statement]) -> list[list[tuple[Any, ...]]]:
        return [self._run(*statement) for statement in statements]

    def _listed(self, keys: tuple[str, ...]) -> str:
        return f"[{','.join(map(encode_basestring_ascii, keys))}]"  # json.dumps makes an encoder each time

    def _run_many(self, *statements: tuple[str, Sequence[Sequence[Any]]]) -> None:
        try:
            for sql, parameters in statements:
                self._connection.executemany(sql, parameters)
        except self._apsw.Error as error:
            self._refuse(error)

    def _refuse(self, error: "apsw.Error") -> NoReturn:
        """In our words: a library's message may quote what it was given."""
        apsw = self._apsw
        if isinstance(error, apsw.BusyError | apsw.LockedError):
            raise busy(self.path) if self._lock is None else _taken_by_sqlite(self.path) from None
        if isinstance(error, apsw.NotADBError):
            raise UnknownSchema(f"{self.path!r} is not an SQLite database") from None
        if isinstance(error, apsw.CorruptError):
            raise _damaged(self.path) from None
        if isinstance(error, apsw.ConnectionClosedError):
            raise failed_before() if self._abandoned else LedgerError(f"{self.path!r} has been closed") from None
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


def _damaged(path: str) -> LedgerTampered:
    return LedgerTampered(f"the file {path!r} is damaged: restore a newer copy than the damage")


def _taken_by_sqlite(path: str) -> LedgerBusy:
    return LedgerBusy(
        f"the ledger {path!r} is locked, although no other process has it open as a ledger: another program reads or "
        "writes the database, or its file system (one on the network?) makes one lock of SQLite's and ours: close it "
        "there, or keep the ledger on a local disk or in PostgreSQL"
    )

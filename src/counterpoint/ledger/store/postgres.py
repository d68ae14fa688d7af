"""PostgreSQL as a store: several processes serve the same sessions, each on one connection.

A transaction locks its session's header row (`FOR UPDATE`), which also holds the head of the chain, so checking and
charging is one step across processes. A transaction takes two round trips: one locks the header and reads all that is
looked up, one sends all changes with the commit. `synchronous_commit` is on: a commit is on disk when it returns. After
a lost connection it is not known whether the last commit happened: the ledger stops; open it and ask again by id.

A process that freezes in a transaction, or whose machine is gone, keeps the others waiting for a few seconds: then the
server ends its connection and rolls the transaction back.

>>> PostgresStore("postgresql://nowhere.invalid/ledger")
Traceback (most recent call last):
...
counterpoint.errors.LedgerError: the ledger's database could not be reached under this URL
"""

import math
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from typing import TYPE_CHECKING, Any, NoReturn

from counterpoint.errors import LedgerBusy, LedgerError, LedgerFailed, LedgerTampered
from counterpoint.ledger.store import tables
from counterpoint.ledger.store.store import ChangeSet, Store
from counterpoint.ledger.store.tables import Statement, Tables
from counterpoint.process import close_in_this_process

if TYPE_CHECKING:
    from psycopg import Connection

_WAIT = 30.0
_FROZEN = 6.0
"""Seconds after which the server ends a transaction that sends nothing: between its statements little is computed."""
_BOUND = 8.0
"""Seconds after which the server ends a request's transaction, counted from its lock: one that freezes between the
statements of a round trip is not idle to the server."""
_GONE = 10.0
"""Seconds after which a peer that acknowledges nothing counts as gone, on either side."""
_SOONEST = 2
"""Seconds: the shortest time in which a server may be given up."""
_MAKING = 0x43506F69
"""The advisory lock under which one process at a time makes the tables, or a session."""
_SETTINGS = {"synchronous_commit": "on", "client_min_messages": "error", "enable_seqscan": "off"}
"""No scans: a plan that was made for a small table, and reads all of it, would be kept while the table grows."""
_VACUUMED = ("counterpoint_session", "counterpoint_request", "counterpoint_row", "counterpoint_items")
"""The tables, besides that of wrapped keys, in which what is sealed is replaced or deleted."""
_REWRITE_KEYS = "ALTER TABLE counterpoint_key ALTER COLUMN wrapped TYPE BYTEA USING wrapped || ''::BYTEA"
"""Copies the rows as they are now. VACUUM FULL also copies replaced ones that an older transaction may still read."""
_SEALED = (
    ("counterpoint_session", "content"),
    ("counterpoint_key", "wrapped"),
    ("counterpoint_request", "seed"),
    ("counterpoint_row", "sealed"),
    ("counterpoint_items", "sealed"),
)
"""The columns of which ANALYZE would copy values into the server's statistics, where they outlive their rows."""
_FILES = " UNION ALL ".join(
    f"SELECT pg_catalog.pg_relation_filenode('{table}')" for table in (*_VACUUMED, "counterpoint_key")
)


class PostgresStore(Tables):
    """One connection to a database that keeps ledgers."""

    _BEGIN = "BEGIN ISOLATION LEVEL READ COMMITTED"
    """A transaction that has waited for a header sees what the one before has written."""
    _BEGIN_READING = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
    _LOCKED = f"{Tables._HEAD} FOR UPDATE"
    _AMONG = "= ANY(?)"
    _ALONE = f"SELECT pg_catalog.pg_advisory_xact_lock({_MAKING})"

    def __init__(self, url: str, *, existing: bool = False, wait: float | None = None, read_only: bool = False) -> None:
        try:
            import psycopg  # noqa: PLC0415 - an extra
        except ImportError:
            raise LedgerError("a ledger in PostgreSQL needs psycopg: pip install counterpoint[postgres]") from None
        super().__init__()
        self._psycopg = psycopg
        self._url, self._wait = url, wait
        self._sending = ExitStack()
        soonest: dict[str, Any] = {} if wait is None else {"connect_timeout": max(_SOONEST, math.ceil(wait))}
        try:
            self._connection: Connection[Any] = psycopg.connect(
                autocommit=True,
                client_encoding="utf8",
                # At once: one that is to be prepared later on, in a round trip that fails, is taken for prepared.
                prepare_threshold=0,
                **{**_keepalives(), **psycopg.conninfo.conninfo_to_dict(url), **soonest},
            )
        except psycopg.Error:  # its words may quote the password
            raise LedgerError("the ledger's database could not be reached under this URL") from None
        close_in_this_process(self, self._connection)
        try:
            self._set(wait=_WAIT if wait is None else wait)
            if read_only:
                self._must_be_current()
            else:
                self._set_up(existing)
        except LedgerError:
            self._connection.close()
            raise

    @contextmanager
    def snapshot(self) -> Iterator[Store]:
        """The database in a connection of its own, whose transactions each see one moment."""
        with closing(PostgresStore(self._url, wait=self._wait, read_only=True)) as store:
            yield store

    def _set(self, wait: float) -> None:
        patience = f"{max(1, int(wait * 1000))}ms"  # 0 would be for ever
        timeouts = {
            "lock_timeout": patience,
            "idle_in_transaction_session_timeout": f"{_FROZEN * 1000:.0f}ms",
            # over a socket of the same machine these do nothing
            "tcp_user_timeout": f"{_GONE * 1000:.0f}ms",
            "tcp_keepalives_idle": f"{_GONE / 2:.0f}",
            "tcp_keepalives_interval": "2",
            "tcp_keepalives_count": "3",
        }
        if self._connection.info.server_version >= 170_000:
            self._BOUNDED = f"SELECT pg_catalog.set_config('transaction_timeout', '{_BOUND * 1000:.0f}ms', true)"
        for setting, value in {**_SETTINGS, **timeouts}.items():
            self._run("SELECT pg_catalog.set_config(?, ?, false)", (setting, value))

    def _must_be_current(self) -> None:
        """From here on the server refuses to write."""
        self._run("SELECT pg_catalog.set_config('default_transaction_read_only', 'on', false)")
        found = self._version()
        if found == 0:
            raise _no_ledger()
        tables.must_be_known(found)

    def _set_up(self, existing: bool) -> None:
        if self._run("SHOW fsync") != [("on",)]:
            raise LedgerError("this server has fsync off: it would lose charges and answers when the power fails")
        self._run(self._BEGIN)
        self._run("SELECT pg_catalog.pg_advisory_xact_lock(?)", (_MAKING,))
        found = self._version()
        if found == 0 and existing:
            raise _no_ledger()
        if found:
            tables.must_be_known(found)
        else:
            for statement in tables.statements("BYTEA"):
                self._run(statement)
            for table, column in _SEALED:
                self._run(f"ALTER TABLE {table} ALTER COLUMN {column} SET STATISTICS 0")
            self._run("CREATE TABLE counterpoint_schema (version BIGINT NOT NULL)")
            self._run("INSERT INTO counterpoint_schema (version) VALUES (?)", (tables.VERSION,))
        self._run("COMMIT")

    def _version(self) -> int:
        if self._run("SELECT to_regclass('counterpoint_schema')") == [(None,)]:
            return 0
        found = self._run("SELECT version FROM counterpoint_schema")
        if len(found) != 1 or not found[0][0]:
            raise LedgerTampered("the table counterpoint_schema has one row with the version: it was changed")
        return int(found[0][0])

    def begin_reading(self) -> None:
        """See one moment only, for as long as that takes: a reader keeps no other process waiting."""
        super().begin_reading()
        self._run("SELECT pg_catalog.set_config('idle_in_transaction_session_timeout', '0', true)")

    def write(self, changes: ChangeSet) -> None:
        """Send all changes; their errors come back with the commit, in one round trip."""
        try:
            self._sending.enter_context(self._connection.pipeline())
            super().write(changes)
        except self._psycopg.Error as error:
            self._refuse(error)

    def commit(self) -> None:
        """Return once it is on disk; after a change that failed, the server does not commit."""
        try:
            done = self._connection.execute("COMMIT")
            self._sending.close()
        except self._psycopg.Error as error:
            self._refuse(error)
        if done.statusmessage != "COMMIT":  # what it says instead of an error, if it had to roll back
            raise LedgerFailed("the ledger's database did not commit; open it again, then repeat requests by their ids")

    def rollback(self) -> None:
        """Forget the transaction."""
        if not self._connection.closed:
            with suppress(self._psycopg.Error):
                self._sending.close()
            self._run("ROLLBACK")

    def erase_deleted(self) -> bool:
        """Write the tables with secrets anew: a row that was replaced stays in its table's file until then.

        Only the tables' owner may do it, while no other process uses them.
        """
        try:
            before = self._run(_FILES)
            self._run(_REWRITE_KEYS)
            self._run(f"VACUUM (FULL) {', '.join(_VACUUMED)}")
            after = self._run(_FILES)
        except LedgerError:  # a table is in use or another role's, or the disk is full
            return False
        with suppress(LedgerError):  # the emptied files go at the next checkpoint, which not every role may ask for
            self._run("CHECKPOINT")
        return not set(before) & set(after)  # without the privilege, VACUUM does nothing and reports no error

    def size(self) -> int:
        """How many bytes the database has."""
        return int(self._run("SELECT pg_catalog.pg_database_size(current_database())")[0][0])

    @property
    def is_open(self) -> bool:
        """False once a statement has found the connection lost."""
        return not self._connection.closed

    def close(self) -> None:
        """Let go of the connection."""
        self._connection.close()

    def abandon(self) -> None:
        """Let go of the connection after a failure: the server rolls back what was not committed."""
        self._connection.close()

    def _run(self, sql: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        try:
            cursor = self._connection.execute(sql.replace("?", "%s").encode(), parameters)
            return cursor.fetchall() if cursor.description else []
        except self._psycopg.Error as error:
            self._refuse(error)

    def _run_all(self, statements: Sequence[Statement]) -> list[list[tuple[Any, ...]]]:
        try:
            with self._connection.pipeline():
                cursors = [
                    self._connection.execute(sql.replace("?", "%s").encode(), given) for sql, given in statements
                ]
            return [cursor.fetchall() if cursor.description else [] for cursor in cursors]
        except self._psycopg.Error as error:
            self._refuse(error)

    def _listed(self, keys: tuple[str, ...]) -> list[str]:
        return list(keys)

    def _run_many(self, *statements: tuple[str, Sequence[Sequence[Any]]]) -> None:
        try:
            for sql, parameters in statements:
                if parameters:
                    self._connection.cursor().executemany(sql.replace("?", "%s").encode(), parameters)
        except self._psycopg.Error as error:
            self._refuse(error)

    def _refuse(self, error: Exception) -> NoReturn:
        """In our words: a server's message may quote what it was given."""
        if isinstance(error, self._psycopg.errors.LockNotAvailable):
            raise LedgerBusy("another process has held this session's account for too long; try again") from None
        reasons = {
            self._psycopg.IntegrityError: "a charge would exceed its budget, or a request be stored twice",
            self._psycopg.errors.DiskFull: "the disk is full",
            self._psycopg.errors.ReadOnlySqlTransaction: "it is read-only",
            self._psycopg.errors.InsufficientPrivilege: "it may not be written",
            self._psycopg.OperationalError: "the connection was lost",
        }
        why = next((reason for kind, reason in reasons.items() if isinstance(error, kind)), type(error).__name__)
        raise LedgerFailed(
            f"the ledger's database cannot be used: {why}. Nothing that was released is lost; mend that, open it "
            "again, and repeat what was not answered by its id"
        ) from None


def _keepalives() -> dict[str, str]:
    """How a connection notices that its server is gone; what the URL says comes before."""
    return {
        "keepalives": "1",
        "keepalives_idle": f"{_GONE / 2:.0f}",
        "keepalives_interval": "2",
        "keepalives_count": "3",
        "tcp_user_timeout": f"{_GONE * 1000:.0f}",
    }


def _no_ledger() -> LedgerError:
    return LedgerError("there is no ledger in this database")

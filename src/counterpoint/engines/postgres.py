"""PostgreSQL as an engine: the stored rows are a temporary table in the database that holds the data.

Only one database session can read a temporary table, nothing is left when that session ends, and it needs no
privileges but to read the relation and to create temporary tables (TEMPORARY on the database). The price: the asks of
one table run one at a time, and when the connection is lost, the table is lost too: every later ask is refused, and the
table must be bound again (a connection pooler must pool sessions, not transactions). One statement reads the rows, so
they are one snapshot.

After the relation has been found, names are looked up in `pg_catalog` and the temporary schema only, so no function or
table of the database can replace ours. Texts are compared by their bytes (COLLATE "C").

>>> PostgresOffer("postgresql://db.example/people", relation=None)
Traceback (most recent call last):
...
counterpoint.errors.InvalidParameter: a postgresql:// URL needs the name of a table or view, as in relation="people" ...
"""

import select
from collections.abc import Callable, Generator
from contextlib import suppress
from threading import RLock
from typing import TYPE_CHECKING, Any, TypeVar

from counterpoint.engines.dialect import Dialect
from counterpoint.engines.engine import BindOptions, closed, failed, lost, unreadable
from counterpoint.errors import CounterpointError, DataFailed, DataLost, InvalidParameter
from counterpoint.process import close_in_this_process

if TYPE_CHECKING:
    from psycopg import Connection

_T = TypeVar("_T")

_KINDS = {
    "smallint": "SMALLINT",
    "integer": "INTEGER",
    "bigint": "BIGINT",
    "real": "FLOAT",
    "double precision": "DOUBLE",
    "numeric": "DECIMAL",
    "boolean": "BOOLEAN",
    "text": "VARCHAR",
    "character varying": "VARCHAR",
    "character": "VARCHAR",
    "uuid": "UUID",
    "date": "DATE",
    "timestamp without time zone": "TIMESTAMP",
    "enum": "ENUM",
}
"""PostgreSQL's types by DuckDB's names; columns of other types cannot be asked about.

Nor can texts under a nondeterministic collation, where the database treats different bytes as equal: compared by its
bytes, one unit with two spellings would count as two units.
"""

_FIND = "SELECT pg_catalog.to_regclass(%s)::pg_catalog.text"
"""Runs under the user's own search path, which may contain foreign operators and types, so it uses none of them."""
_DESCRIBE = """
SELECT column_name::text, CASE WHEN typtype = 'e' THEN 'enum'
    WHEN NOT collisdeterministic THEN 'text under a nondeterministic collation' ELSE data_type::text END
FROM information_schema.columns JOIN pg_namespace ON nspname = udt_schema
JOIN pg_type ON typnamespace = pg_namespace.oid AND typname = udt_name
JOIN pg_attribute ON attrelid = 'pg_temp.given'::regclass AND attnum = ordinal_position
LEFT JOIN pg_collation ON pg_collation.oid = attcollation
WHERE table_schema = pg_my_temp_schema()::regnamespace::text AND table_name = 'given' ORDER BY ordinal_position
"""
_SETTINGS = {
    "search_path": "pg_catalog, pg_temp",
    "standard_conforming_strings": "on",
    "datestyle": "ISO",
    "jit": "off",
    **dict.fromkeys(("statement_timeout", "transaction_timeout", "lock_timeout"), "0"),
    "idle_in_transaction_session_timeout": "0",
}
"""The settings on which the meaning of our statements depends, or whether they fail: a limit on time that a server sets
for its users would be reached by the number of rows, and what is compiled would depend on statistics."""
_NOT_OURS = {"57P01", "57P02", "57P03", "57P05"}
"""How a server says that it ends a connection for a reason of its own: stopped by an operator, or idle for too long."""
_AT_ONCE = 4096
"""How many rows of a scan are fetched at a time."""


_SAFE = (
    "CASE WHEN {0} = 'NaN' THEN 'NaN' WHEN {0} > 1e300 THEN 'Infinity' WHEN {0} < -1e300 THEN '-Infinity' "
    "WHEN ABS({0}) < 1e-300 THEN 0 ELSE CAST({0} AS DOUBLE PRECISION) END"
)

POSTGRES = Dialect(
    name="postgres",
    wide="NUMERIC",
    sums_are_wide=True,
    like_backtracks=False,
    double="DOUBLE PRECISION",
    text='TEXT) COLLATE "C"',
    sha256="ENCODE(SHA256(CONVERT_TO({}, 'UTF8')), 'hex') COLLATE \"C\"",
    match="({} ~ '^({})$')",
    floor_divide="DIV({}, {})",
    quotient="DIV(top, bottom)",
    weekday="ISODOW",
    hexadecimal="CAST(CAST('x' || {} AS BIT(60)) AS BIGINT)",
    read_whole="CAST({} AS NUMERIC)",
    whole_of_wide="{}",
    whole_of_decimal="CASE WHEN {0} = FLOOR({0}) THEN TRUNC({0}) END",
    read_real=_SAFE.replace("{0}", "CAST({0} AS NUMERIC)"),
    from_decimal=_SAFE,
    read_date="CAST({} AS DATE)",
    days="CAST({} - DATE '1970-01-01' AS BIGINT)",
    read_time="CAST({} AS TIMESTAMP)",
    micros="CAST(EXTRACT(EPOCH FROM {}) * 1000000 AS BIGINT)",
    nanos=None,
    zoned="TIMESTAMPTZ",
    unzoned="TIMESTAMP",
    tame="CASE WHEN ABS({0}) < 1e-200 THEN 0 ELSE {0} END",
    readable="{}",
    tried="{}",
    quote='"',
    backslashed=False,
)


class PostgresEngine:
    """One session whose temporary tables are the stored rows."""

    __slots__ = ("__weakref__", "_closed", "_connection", "_turn")

    def __init__(self, connection: "Connection[Any]") -> None:
        self._connection = connection
        self._closed = False
        self._turn = RLock()  # a scan is a transaction, in which no other thread's statement may fail
        close_in_this_process(self, connection)

    @property
    def dialect(self) -> Dialect:
        """PostgreSQL's own."""
        return POSTGRES

    @property
    def version(self) -> str:
        """The server's version, and the database and user, either of which may have settings of its own."""
        info = self._connection.info
        return f"{info.server_version} {info.host}:{info.port} {info.dbname} {info.user}"

    def run(self, sql: str) -> list[tuple[Any, ...]]:
        """The rows that a statement returns; the connection runs one statement at a time."""

        def run() -> list[tuple[Any, ...]]:
            cursor = self._connection.execute(sql.encode())
            return cursor.fetchall() if cursor.description else []

        with self._turn:
            self._must_be_connected()
            return _succeeded(_attempted(run, self))

    def scan(self, sql: str) -> Generator[tuple[Any, ...]]:
        """The rows that a statement returns, a few at a time, by a cursor of the server; asks wait until its end."""
        with self._turn:
            self._must_be_connected()
            try:
                _succeeded(_attempted(lambda: self._connection.execute("BEGIN"), self))
                _succeeded(
                    _attempted(lambda: self._connection.execute(f"DECLARE plain CURSOR FOR {sql}".encode()), self)
                )
                fetch = f"FETCH {_AT_ONCE} FROM plain".encode()
                while found := _succeeded(_attempted(lambda: self._connection.execute(fetch).fetchall(), self)):
                    yield from found
            finally:
                _attempted(lambda: self._connection.execute("ROLLBACK"), self)

    def _must_be_connected(self) -> None:
        """`DataLost` if the connection ended before a statement was sent: then no row had to do with it."""
        if self._closed:
            raise closed()
        if not self._connection.closed:  # which has no socket
            waiting = select.poll()
            waiting.register(_succeeded(_attempted(self._connection.fileno, self)), select.POLLIN)
            if not waiting.poll(0):
                return
            _attempted(lambda: self._connection.execute("SELECT"), self)  # reads why it ended, or the server's notice
        if self._connection.closed:
            raise lost()

    def create(self, name: str, query: str) -> None:
        """Materialise a query under this name, unless the name exists."""
        self.run(f"CREATE TEMPORARY TABLE IF NOT EXISTS {name} AS {query}")
        self.run(f"ANALYZE {name}")

    def drop(self, name: str) -> None:
        """Delete a table."""
        self.run(f"DROP TABLE {name}")

    @property
    def closed(self) -> bool:
        """Whether `close` has been called. A lost connection does not count as closed."""
        return self._closed

    @property
    def is_lost(self) -> bool:
        """Whether a statement has found the connection lost, and with it the temporary tables."""
        return not self._closed and self._connection.closed

    def close(self) -> None:
        """End the session, and with it every temporary table."""
        self._closed = True
        self._connection.close()


def _attempted(work: Callable[[], _T], engine: PostgresEngine) -> _T | CounterpointError:
    """What a call of the driver returns, or what is raised in the place of its error: not here, where it is at hand.

    A connection that ends in the midst of a statement is a failure, unless the server says that it had other reasons: a
    row may have made the server's process end, or grow until it was killed.
    """
    import psycopg  # noqa: PLC0415 - an extra

    try:
        return work()
    except psycopg.Error as error:
        if engine.closed:
            return closed()
        return lost() if engine.is_lost and error.sqlstate in _NOT_OURS else failed(error)


def _succeeded(found: _T | CounterpointError) -> _T:
    if isinstance(found, CounterpointError):
        raise found
    return found


class PostgresOffer:
    """A table or view of a database, readable under the name `given` until it is taken."""

    __slots__ = ("_engine", "kinds")

    def __init__(self, url: str, relation: str | None) -> None:
        if not isinstance(relation, str):
            raise InvalidParameter(
                'a postgresql:// URL needs the name of a table or view, as in relation="people" or "schema.people"'
            )
        self._engine = PostgresEngine(_connected(url))
        try:
            self.kinds = self._open(relation)
        except BaseException:
            self._engine.close()
            raise

    @property
    def dialect(self) -> Dialect:
        """PostgreSQL's own."""
        return POSTGRES

    @property
    def engine(self) -> PostgresEngine:
        """The session in which `given` can be read."""
        return self._engine

    def take(self, query: str, name: str) -> PostgresEngine:
        """Materialise a query over `given`, then drop that view."""
        with suppress(DataFailed, DataLost):
            self._engine.create(name, query)
            self._engine.run("DROP VIEW given")
            return self._engine
        raise unreadable()

    def close(self) -> None:
        """End the session."""
        self._engine.close()

    def _open(self, relation: str) -> dict[str, str]:
        """Create the view `given`, fix the session's settings, and return the relation's columns."""
        import psycopg  # noqa: PLC0415

        connection, described = self._engine._connection, None
        with suppress(psycopg.Error, UnicodeError):
            name = connection.execute(_FIND, (relation,)).fetchone()
            if name is not None and name[0] is not None:
                connection.execute(f"CREATE TEMPORARY VIEW given AS SELECT * FROM {name[0]}".encode())
            known = {name for (name,) in connection.execute("SELECT name FROM pg_catalog.pg_settings").fetchall()}
            for setting, value in _SETTINGS.items():
                if setting in known:  # a limit on transactions is known from version 17 on
                    connection.execute("SELECT pg_catalog.set_config(%s, %s, false)", (setting, value))
            encoding = connection.execute("SHOW server_encoding").fetchone()
            described = connection.execute(_DESCRIBE).fetchall()
        if described is None:
            raise unreadable()
        if name is None or name[0] is None:
            raise InvalidParameter(
                f"there is no table or view {relation!r} in the database: check the name, or give schema.name"
            )
        if encoding != ("UTF8",):
            raise InvalidParameter(
                "the encoding of the database must be UTF8, or the length of a text would differ between engines"
            )
        return {column: _KINDS.get(kind, kind.upper()) for column, kind in described}


def _connected(url: str) -> "Connection[Any]":
    try:
        import psycopg  # noqa: PLC0415
    except ImportError:
        raise InvalidParameter("tables in PostgreSQL need psycopg: pip install counterpoint[postgres]") from None
    with suppress(psycopg.Error, UnicodeError):  # the message may quote the password
        return psycopg.connect(url, autocommit=True, client_encoding="utf8")
    raise InvalidParameter("could not connect to the database: check host, user and password of the postgresql:// URL")


def offer(data: object, options: BindOptions) -> PostgresOffer | None:
    """An offer of a table or view of a database, which a URL names; None for other data."""
    if not (isinstance(data, str) and data.startswith(("postgresql://", "postgres://"))):
        return None
    options.check_no_memory("PostgreSQL")
    return PostgresOffer(data, options.relation)

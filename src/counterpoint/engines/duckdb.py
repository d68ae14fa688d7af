"""The embedded engine: a DuckDB, in memory or in a file of its own, that holds the stored rows of one table.

The data may be a Parquet or CSV path, a DuckDB relation, an Arrow table, a Polars or pandas frame, or an Ibis table
expression, which its own backend runs once. Types are never guessed from values: a CSV is read as texts, and
so are pandas columns of objects (`inputs.py`). After loading, the engine can access no file, no
network and no Python variable. Each call has its own cursor, so several threads may ask at once. No statement is
planned by what the rows hold (`optimizers.py`). Every failure of the engine becomes `DataFailed`, which says nothing
about the data; `queries/fallback.py` then computes the answer on another path.

>>> EmbeddedOffer({"age": [41, 17]})
Traceback (most recent call last):
...
counterpoint.errors.InvalidParameter: data must be a path to a .parquet or .csv file, a DuckDB relation, an Arrow ...
"""

import atexit
import os
from collections.abc import Callable, Collection, Generator, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from pathlib import Path
from threading import Lock
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar
from weakref import WeakSet, finalize

from counterpoint.engines import inputs
from counterpoint.engines.dialect import Dialect
from counterpoint.engines.engine import (
    BindOptions,
    KeptTables,
    PrivateFolder,
    closed,
    failed,
    unreadable,
    unreadable_within,
)
from counterpoint.engines.optimizers import disable
from counterpoint.errors import INTERRUPTIONS, DataFailed, InvalidParameter
from counterpoint.process import leave_to_parent

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_T = TypeVar("_T")


DUCKDB = Dialect(
    name="duckdb",
    wide="HUGEINT",
    sums_are_wide=True,
    like_backtracks=False,
    double="DOUBLE",
    text="VARCHAR)",
    sha256="SHA256({})",
    match="REGEXP_FULL_MATCH({}, '{}')",
    floor_divide="({}) // {}",
    quotient="CAST((top // bottom) AS HUGEINT)",
    weekday="ISODOW",
    hexadecimal="CAST('0x' || {} AS BIGINT)",
    read_whole="TRY_CAST({} AS HUGEINT)",
    whole_of_wide="TRY_CAST({} AS HUGEINT)",
    whole_of_decimal="CASE WHEN {0} % 1 = 0 THEN CAST({0} AS HUGEINT) END",  # FLOOR may leave 38 digits, and fails
    read_real="TRY_CAST({} AS DOUBLE)",
    from_decimal="CAST({} AS DOUBLE)",
    read_date="TRY_CAST({} AS DATE)",
    days="CAST({} - DATE '1970-01-01' AS BIGINT)",
    read_time="TRY_CAST({} AS TIMESTAMP)",
    micros="EPOCH_US({})",
    nanos="EPOCH_NS({})",
    zoned="TIMESTAMPTZ",
    unzoned="TIMESTAMP",
    tame="{}",
    readable="CASE WHEN NOT CONTAINS({0}, CHR(0)) THEN TRY(DECODE(ENCODE({0}))) END",
    tried="TRY({})",
    quote='"',
    backslashed=False,
)


class JoinedTable(NamedTuple):
    """A table that a statement reads beside an engine's own rows: it is put there in this version, if it is not yet.

    No two tables have one name in a process: the engine knows what it holds by name and version alone.
    """

    name: str
    version: object
    kinds: Sequence[str]
    columns: Callable[[], Sequence[Any]]
    """The columns as arrays."""


class EmbeddedEngine:
    """One database of stored rows, in memory or in a folder of its own."""

    __slots__ = (
        "__weakref__",
        "_connection",
        "_creating",
        "_joining",
        "_parsed",
        "_process_id",
        "_remove_folder",
        "_samples",
        "_turn",
        "_versions",
    )

    def __init__(self, connection: "DuckDBPyConnection", folder: PrivateFolder | None = None) -> None:
        self._connection: DuckDBPyConnection | None = connection
        self._remove_folder = None if folder is None else finalize(self, folder.remove)
        self._creating, self._joining = Lock(), Lock()
        # Statements that run at the same time share the memory, and would fail from some number of rows on
        self._turn: AbstractContextManager[object] = nullcontext() if folder is None else Lock()
        self._versions: dict[str, object] = {}
        self._parsed: dict[str, Any] = {}
        self._samples = KeptTables(self.create, self.drop, _SAMPLES)
        self._process_id = os.getpid()
        _OPEN.add(self)
        leave_to_parent(self, "_connection")

    @property
    def dialect(self) -> Dialect:
        """DuckDB's own."""
        return DUCKDB

    @property
    def version(self) -> str:
        """The version of DuckDB, and whether the rows are in a file."""
        import duckdb  # noqa: PLC0415

        return f"{duckdb.__version__} {'in memory' if self._remove_folder is None else 'on disk'}"

    def run(
        self, sql: str, parameters: Sequence[object] = (), beside: "Sequence[JoinedTable]" = ()
    ) -> list[tuple[Any, ...]]:
        """The rows that a statement returns, on a cursor of its own; `beside` are other tables that it reads."""
        if not beside:
            return self._run(sql, parameters)
        with self._joining:  # no other statement may put another version of such a table there meanwhile
            for table in beside:
                self._put(table)
            self._drop_besides({table.name for table in beside})
            return self._run(sql, parameters)

    def run_on_sample(self, sql: str, name: str, query: str) -> list[tuple[Any, ...]]:
        """The rows that a statement returns about a sample of the stored rows: the table of this name, by this query.

        The latest few samples are kept. When one has been computed is seen by nothing but the time of an answer.
        """
        with self._samples.using(name, query):
            return self.run(sql)

    def _put(self, table: "JoinedTable") -> None:
        """Hold a table in its version. While its rows are replaced, and after a failure, it counts as not there."""
        if self._versions.pop(table.name, _ABSENT) != table.version:
            self._replace(table)
        self._versions[table.name] = table.version  # as the latest

    def _drop_besides(self, read: Collection[str]) -> None:
        """Drop the tables beside the rows that were not read for the longest time, but none of these."""
        idle = [name for name in self._versions if name not in read]
        for name in idle[: max(0, len(self._versions) - _BESIDES)]:
            del self._versions[name]
            self.drop(name)

    def _replace(self, table: "JoinedTable") -> None:
        named = ", ".join(f"f{i} {kind}" for i, kind in enumerate(table.kinds))
        self._run(f"CREATE OR REPLACE TABLE {table.name} ({named})", ())
        self.insert(table.name, table.columns())

    def _run(self, sql: str, parameters: Sequence[object]) -> list[tuple[Any, ...]]:
        return self._with_cursor(lambda cursor: cursor.execute(self._parse(cursor, sql), parameters).fetchall())

    def _parse(self, cursor: "DuckDBPyConnection", sql: str) -> Any:
        """A query as DuckDB has parsed it. The latest few are kept: parsing takes a third of a short query's time."""
        if not sql.startswith("SELECT "):
            return sql
        found = self._parsed.get(sql)
        if found is None:
            if len(self._parsed) >= _QUERIES:
                self._parsed.clear()
            (found,) = cursor.extract_statements(sql)
            self._parsed[sql] = found
        return found

    def scan(self, sql: str) -> Generator[tuple[Any, ...]]:
        """The rows that a statement returns, a few at a time: the engine keeps no more than it is ahead."""
        with self._cursor() as cursor:
            self._attempt(lambda: cursor.execute(sql))
            while found := self._attempt(lambda: cursor.fetchmany(_AT_ONCE)):
                yield from found

    def insert(self, name: str, columns: Sequence[Any]) -> None:
        """Append rows to a table, given as arrays, one for each column; all of them, or `DataFailed`."""
        self.change(f"INSERT INTO {name} SELECT * FROM offered", columns)

    def change(self, sql: str, columns: Sequence[Any]) -> None:
        """Run a statement that reads arrays as the columns `f0`, `f1`, ... of `offered`, or `DataFailed`."""

        def run(cursor: "DuckDBPyConnection") -> None:
            cursor.register("offered", {f"f{i}": column for i, column in enumerate(columns)})
            cursor.execute(sql)

        self._with_cursor(run)

    def _with_cursor(self, work: "Callable[[DuckDBPyConnection], _T]") -> _T:
        """What some work comes to on a cursor of its own, in turn."""
        with self._turn, self._cursor() as cursor:
            return self._attempt(lambda: work(cursor))

    def _cursor(self) -> "DuckDBPyConnection":
        connection = self._connection
        if connection is None:
            raise closed()
        return self._attempt(connection.cursor)

    def _attempt(self, work: Callable[[], _T]) -> _T:
        """What a call of the engine returns; or `DataFailed`, or a refusal if the table has been closed."""
        found = _attempted(work)
        if not isinstance(found, DataFailed):
            return found
        raise closed() if self.closed else found

    def create(self, name: str, query: str) -> None:
        """Materialise a query under this name, unless the name exists."""
        with self._creating:
            self.run(f"CREATE TABLE IF NOT EXISTS {name} AS {query}")

    def drop(self, name: str) -> None:
        """Delete a table."""
        self.run(f"DROP TABLE {name}")

    @property
    def is_lost(self) -> bool:
        """Never: the rows are in this process."""
        return False

    @property
    def closed(self) -> bool:
        """Whether the database has been closed."""
        return self._connection is None

    def close(self) -> None:
        """Close the database, and remove its folder.

        DuckDB closes the connection even if it reports that one of its cursors is busy. The ask that uses the cursor
        ends with its answer or with the refusal and closes it; the rows are freed with the last cursor.
        """
        import duckdb  # noqa: PLC0415

        connection, self._connection = self._connection, None
        self._parsed.clear()
        if connection is not None:
            with suppress(duckdb.Error):
                connection.close()
        if self._remove_folder is not None:
            self._remove_folder()


def _attempted(work: Callable[[], _T]) -> _T | DataFailed:
    """Raised here, the failure would take along the engine's error, which may quote a row."""
    try:
        return work()
    except INTERRUPTIONS:
        raise
    except BaseException as error:
        if str(error) == "Query interrupted":  # which is how DuckDB says that a person pressed Ctrl-C
            raise KeyboardInterrupt from None
        return failed(error)


_OPEN: WeakSet[EmbeddedEngine] = WeakSet()

_ABSENT = object()

_BESIDES = 16
"""How many tables of others an engine keeps beside its rows: sources that are gone leave theirs behind."""

_AT_ONCE = 4096
"""How many rows of a scan become Python's at a time."""

_QUERIES = 256
"""How many parsed queries an engine keeps."""

_SAMPLES = 8
"""How many samples of its rows an engine keeps: each takes the memory of its rows, and a scan of the table to make."""

_SETTINGS: dict[str, Any] = {"python_enable_replacements": False, "pandas_analyze_sample": 0}


def silent_database(settings: Mapping[str, Any] = MappingProxyType({}), file: str = ":memory:") -> "DuckDBPyConnection":
    """A new database, in memory by default, that writes no progress bar to the caller's output, nor do its cursors."""
    import duckdb  # noqa: PLC0415

    connection = duckdb.connect(file, config={**_SETTINGS, **settings})
    with suppress(duckdb.Error):  # in a notebook without ipywidgets the bar is off, and the setting is refused
        connection.execute("SET enable_progress_bar = false")
    disable(connection)
    return connection


def empty_engine(create: str) -> EmbeddedEngine:
    """An engine without rows, whose table a statement creates; it can access no file and no network."""
    connection = silent_database()
    for statement in (create, *_LOCK):
        connection.execute(statement)
    return EmbeddedEngine(connection)


_LOCK = ("SET enable_external_access = false", "SET lock_configuration = true")


@atexit.register
def _close_at_exit() -> None:
    """Close the engines that this process left open: DuckDB prints errors for connections that outlive the interpreter.

    A thread that is still running, or an uncollectable cycle, would keep them open. A fork does not close the engines
    of its parent.
    """
    for engine in list(_OPEN):
        if engine._process_id == os.getpid():
            engine.close()


class EmbeddedOffer:
    """Data that a new engine can read under the name `given`, until it is taken; `kinds` is its public schema."""

    __slots__ = ("_batches", "_connection", "_folder", "_memory", "_units", "kinds")

    def __init__(self, data: object, memory: str | None = None, units: Sequence[str] = ()) -> None:
        self._units = units
        self._memory, self._folder = memory, None if memory is None else PrivateFolder()
        self._connection = silent_database() if self._folder is None else _database_in(self._folder, memory)
        self._batches: Iterable[list[inputs.Fields]] = ()
        try:
            self.kinds = self._described(data)
        except BaseException:
            self.close()
            raise

    def _described(self, data: object) -> dict[str, str]:
        """The names and types of the columns of `given`, which stands for this data from now on."""
        import duckdb  # noqa: PLC0415

        with suppress(duckdb.Error, UnicodeError):
            self._connection.execute(f"CREATE TEMP VIEW given AS {self._offer(data)}")
            described = self._connection.execute("DESCRIBE SELECT * FROM given").fetchall()
            return {name: _kind(str(kind)) for name, kind, *_ in described}
        raise unreadable(inputs.unreadable_column(data, self._reads))

    @property
    def dialect(self) -> Dialect:
        """DuckDB's own."""
        return DUCKDB

    def take(self, query: str, name: str) -> EmbeddedEngine:
        """Materialise a query over `given`, release the data, and lock the engine against external access.

        A CSV comes in batches; the query, which converts each row by itself, runs on one batch at a time.
        """
        with suppress(Exception):  # the engine's errors, and Python's if a text in one of them cannot be decoded
            self._connection.execute(f"CREATE TABLE {name} AS {query}")
            for batch in self._batches:
                self._register(batch)
                self._connection.execute(f"INSERT INTO {name} {query}")
            self._connection.execute("DROP VIEW given")
            self._connection.unregister("offered")
            for statement in _LOCK:
                self._connection.execute(statement)
            return EmbeddedEngine(self._connection, self._folder)
        raise unreadable() if self._memory is None else unreadable_within(self._memory)

    def read(self, query: str, data: object) -> list[tuple[Any, ...]]:
        """The rows of a query over `given`, which stands for this data from now on: more rows of the same schema."""
        with suppress(Exception):
            self._connection.register("offered", inputs.Arrow(data))
            return self._connection.execute(query).fetchall()
        raise unreadable()

    def close(self) -> None:
        """Close the database, also if an engine has taken it."""
        self._connection.close()
        if self._folder is not None:
            self._folder.remove()

    def _offer(self, data: object) -> str:
        """Register the data with the connection and return the query that `given` stands for."""
        if not isinstance(data, str | Path):
            self._connection.register("offered", inputs.offered(data, self._units))
            return "SELECT * FROM offered"
        path = _checked(Path(data))
        if path.suffix == ".parquet":
            return _parquet(self._connection, path)
        names = inputs.header(path)
        inputs.check_names(names)
        self._batches = inputs.columns(path, len(names))
        self._register([[] for _ in names])
        values = ", ".join(f"NULLIF(f{i}, '') AS {DUCKDB.quoted(name)}" for i, name in enumerate(names))
        return f"SELECT {values} FROM offered"

    def _register(self, columns: list[inputs.Fields]) -> None:
        self._connection.register("offered", {f"f{i}": inputs.objects(column) for i, column in enumerate(columns)})

    def _reads(self, alone: object) -> bool:
        import duckdb  # noqa: PLC0415

        with suppress(duckdb.Error):
            self._connection.register("alone", alone)
            self._connection.execute("SELECT * FROM alone").fetchall()
            return True
        return False


def _database_in(folder: PrivateFolder, memory: str | None) -> "DuckDBPyConnection":
    """A database in a folder, which spills there what the memory does not hold; the order of rows is of no account."""
    spilled = {"memory_limit": memory, "temp_directory": f"{folder.path}/spilled", "preserve_insertion_order": False}
    return silent_database(spilled, f"{folder.path}/rows.duckdb")


def _kind(described: str) -> str:
    """A type without its parameters; a list of such types is another type."""
    return described if described.endswith("]") else described.partition("(")[0]


def _checked(path: Path) -> Path:
    """The path of one file, or `InvalidParameter`."""
    if path.suffix not in (".parquet", ".csv"):
        raise InvalidParameter(f"a table is read from a .parquet or .csv file, not from {path.name!r}")
    if not _is_file(path):
        raise InvalidParameter(f"there is no file {str(path)[:200]!r}")
    if set("*?[]{}") & set(str(path)):  # the engine would expand the pattern, and may find another file
        raise InvalidParameter(
            f"a path must not contain any of * ? [ ] {{ }}, but {str(path)[:200]!r} does: rename the file"
        )
    return path


def _parquet(connection: "DuckDBPyConnection", path: Path) -> str:
    """The query for the rows of a Parquet file, with NULL for every text that is not UTF-8.

    The engine can replace or drop invalid bytes, which could make two units equal, but it cannot return NULL. The two
    ways give different texts exactly where a text has invalid bytes.
    """
    inputs.check_names(_fields(connection, path))
    scan = f"READ_PARQUET({DUCKDB.literal(str(path))}, hive_partitioning = false, utf8_validation = '{{}}')"
    described = connection.execute(f"DESCRIBE FROM {scan.format('strict')}").fetchall()
    names = [DUCKDB.quoted(name) for name, kind, *_ in described if kind == "VARCHAR"]
    if not names:
        return f"SELECT * FROM {scan.format('strict')}"
    same = ", ".join(f"CASE WHEN dropped.{name} = replaced.{name} THEN dropped.{name} END AS {name}" for name in names)
    both = f"{scan.format('ignore')} AS dropped POSITIONAL JOIN {scan.format('replace')} AS replaced"
    return f"SELECT dropped.* REPLACE ({same}) FROM {both}"


def _is_file(path: Path) -> bool:
    with suppress(OSError, ValueError):  # the name is too long, or contains a surrogate
        return path.is_file()
    return False


def _fields(connection: "DuckDBPyConnection", path: Path) -> list[str]:
    """The names of a Parquet file's columns: the children of its root. The schema lists the tree depth first."""
    listed = connection.execute(
        f"SELECT name, COALESCE(num_children, 0) FROM PARQUET_SCHEMA({DUCKDB.literal(str(path))})"
    ).fetchall()
    names, inside = [], [len(listed)]  # how many entries are left at each level; the first level is the root
    for name, children in listed:
        if len(inside) == 2:
            names.append(name)
        inside[-1] -= 1
        inside.append(children)
        while len(inside) > 1 and inside[-1] == 0:
            inside.pop()
    return names


def offer(data: object, options: BindOptions) -> EmbeddedOffer:
    """An offer of any data to a new embedded engine, on disk if its memory is limited."""
    options.check_no_relation()
    return EmbeddedOffer(data, options.memory, options.units)

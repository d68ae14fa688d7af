"""The embedded engine: an in-memory DuckDB that holds the stored rows of one table.

The data may be a Parquet or CSV path, a DuckDB relation, an Arrow table, a Polars or pandas frame, or an Ibis table
expression, which its own backend runs once. Types are never guessed from values: a CSV is read as texts (see
`csv_rows`), and so are pandas columns of objects (see `frames`). Once the rows are in, the engine can reach no file, no
network and no Python variable any more. Each call has a cursor of its own, so threads may ask at once; whatever goes
wrong in the engine is one constant refusal that says nothing about the data.

>>> Given({"age": [41, 17]})
Traceback (most recent call last):
...
counterpoint.errors.InvalidParameter: a table is a path to a .parquet or .csv file, a DuckDB relation, an Arrow ...
"""

import atexit
import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from counterpoint.errors import InvalidParameter
from counterpoint.randomness.process import leave_to_parent
from counterpoint.sources.engines.dialects import DUCKDB, Dialect
from counterpoint.sources.engines.engine import refused, unreadable
from counterpoint.sources.tables import csv_rows, frames

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


class Embedded:
    """One in-memory database of stored rows."""

    __slots__ = ("__weakref__", "_connection", "_creating", "_process_id")

    def __init__(self, connection: "DuckDBPyConnection") -> None:
        self._connection: DuckDBPyConnection | None = connection
        self._creating = Lock()
        self._process_id = os.getpid()
        _OPEN.add(self)
        leave_to_parent(self, "_connection")

    @property
    def dialect(self) -> Dialect:
        """DuckDB's own."""
        return DUCKDB

    def run(self, sql: str) -> list[tuple[Any, ...]]:
        """The rows that a statement returns, on a cursor of its own."""
        import duckdb  # noqa: PLC0415 - a tenth of a second, paid by those who have tables

        connection = self._connection
        if connection is not None:
            with suppress(duckdb.Error, UnicodeError), connection.cursor() as cursor:
                return cursor.execute(sql).fetchall()
        raise refused()

    def create(self, name: str, query: str) -> None:
        """Materialise a query, unless that has been done under this name."""
        with self._creating:
            self.run(f"CREATE TABLE IF NOT EXISTS {name} AS {query}")

    def drop(self, name: str) -> None:
        """Forget a table."""
        self.run(f"DROP TABLE {name}")

    @property
    def closed(self) -> bool:
        """Whether the database is gone."""
        return self._connection is None

    def close(self) -> None:
        """Let go of the database, which was in memory only.

        DuckDB closes the connection even where it complains that a cursor of it is still busy. The ask that opened that
        cursor ends with its answer or with the refusal, closes it, and with the last of them the rows are gone.
        """
        import duckdb  # noqa: PLC0415

        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(duckdb.Error):
                connection.close()


_OPEN: WeakSet[Embedded] = WeakSet()


@atexit.register
def _close_at_exit() -> None:
    """Close what this process left open: DuckDB complains at length of connections that outlive the interpreter.

    A thread that is still running, or a cycle that cannot be collected, would keep them. A fork leaves those of its
    parent alone.
    """
    for engine in list(_OPEN):
        if engine._process_id == os.getpid():
            engine.close()


class Given:
    """Data on offer to a new engine under the name `given`, with its public schema in `kinds`, until it is taken."""

    __slots__ = ("_batches", "_connection", "kinds")

    def __init__(self, data: object) -> None:
        import duckdb  # noqa: PLC0415

        settings: dict[str, Any] = {"python_enable_replacements": False, "pandas_analyze_sample": 0}
        self._connection = duckdb.connect(":memory:", config=settings)
        self._batches: Iterable[list[csv_rows.Fields]] = ()
        described: list[tuple[Any, ...]] | None = None
        with suppress(duckdb.Error, UnicodeError):
            self._connection.execute(f"CREATE TEMP VIEW given AS {self._offer(data)}")
            described = self._connection.execute("DESCRIBE SELECT * FROM given").fetchall()
        if described is None:
            raise unreadable(frames.unreadable_column(data, self._reads))
        self.kinds: dict[str, str] = {name: _kind(str(kind)) for name, kind, *_ in described}

    @property
    def dialect(self) -> Dialect:
        """DuckDB's own."""
        return DUCKDB

    def take(self, query: str, name: str) -> Embedded:
        """Materialise a query over `given`, let go of the data and close every door behind it.

        A CSV comes in batches, of which the query, which takes every row by itself, is asked one by one.
        """
        with suppress(Exception):  # the engine's errors, and Python's where a text in one of them cannot be decoded
            self._connection.execute(f"CREATE TABLE {name} AS {query}")
            for batch in self._batches:
                self._register(batch)
                self._connection.execute(f"INSERT INTO {name} {query}")
            self._connection.execute("DROP VIEW given")
            self._connection.unregister("offered")
            self._connection.execute("SET enable_external_access = false")
            self._connection.execute("SET lock_configuration = true")
            return Embedded(self._connection)
        raise unreadable()

    def close(self) -> None:
        """Let go of the database, whoever has it by now."""
        self._connection.close()

    def _offer(self, data: object) -> str:
        """What `given` stands for, once the data is within reach of the connection."""
        if not isinstance(data, str | Path):
            self._connection.register("offered", frames.offered(data))
            return "SELECT * FROM offered"
        path = _checked(Path(data))
        if path.suffix == ".parquet":
            return _parquet(self._connection, path)
        names = csv_rows.header(path)
        frames.check_names(names)
        self._batches = csv_rows.columns(path, len(names))
        self._register([[] for _ in names])
        values = ", ".join(f"NULLIF(f{i}, '') AS {DUCKDB.quoted(name)}" for i, name in enumerate(names))
        return f"SELECT {values} FROM offered"

    def _register(self, columns: list[csv_rows.Fields]) -> None:
        self._connection.register("offered", {f"f{i}": frames.objects(column) for i, column in enumerate(columns)})

    def _reads(self, alone: object) -> bool:
        import duckdb  # noqa: PLC0415

        with suppress(duckdb.Error):
            self._connection.register("alone", alone)
            self._connection.execute("SELECT * FROM alone").fetchall()
            return True
        return False


def _kind(described: str) -> str:
    """A type without its parameters; a list of such types is another type."""
    return described if described.endswith("]") else described.partition("(")[0]


def _checked(path: Path) -> Path:
    """The path of one file, or `InvalidParameter`."""
    if path.suffix not in (".parquet", ".csv"):
        raise InvalidParameter(f"a table is read from a .parquet or .csv file, not from {path.name!r}")
    if not _is_file(path):
        raise InvalidParameter(f"there is no file {str(path)[:200]!r}")
    if set("*?[]{}") & set(str(path)):  # the engine would look for files of that pattern, and may find another one
        raise InvalidParameter(
            f"a path may not hold any of * ? [ ] {{ }}, but {str(path)[:200]!r} does: rename the file"
        )
    return path


def _parquet(connection: "DuckDBPyConnection", path: Path) -> str:
    """The rows of a Parquet file, without the texts in it that are not UTF-8.

    The engine can replace or drop the bytes that are not, by which one unit could be taken for another, and cannot
    leave the value out. It gives different texts by the two ways where there are such bytes, and only there.
    """
    frames.check_names(_fields(connection, path))
    scan = f"READ_PARQUET({DUCKDB.literal(str(path))}, hive_partitioning = false, utf8_validation = '{{}}')"
    described = connection.execute(f"DESCRIBE FROM {scan.format('strict')}").fetchall()
    names = [DUCKDB.quoted(name) for name, kind, *_ in described if kind == "VARCHAR"]
    if not names:
        return f"SELECT * FROM {scan.format('strict')}"
    same = ", ".join(f"CASE WHEN dropped.{name} = replaced.{name} THEN dropped.{name} END AS {name}" for name in names)
    both = f"{scan.format('ignore')} AS dropped POSITIONAL JOIN {scan.format('replace')} AS replaced"
    return f"SELECT dropped.* REPLACE ({same}) FROM {both}"


def _is_file(path: Path) -> bool:
    with suppress(OSError, ValueError):  # too long a name, half a character
        return path.is_file()
    return False


def _fields(connection: "DuckDBPyConnection", path: Path) -> list[str]:
    """The names of a Parquet file's columns: the children of its root, whose own children follow each of them."""
    listed = connection.execute(
        f"SELECT name, COALESCE(num_children, 0) FROM PARQUET_SCHEMA({DUCKDB.literal(str(path))})"
    ).fetchall()
    names, inside = [], [len(listed)]  # how many entries are left at each level; the root is alone on the first
    for name, children in listed:
        if len(inside) == 2:
            names.append(name)
        inside[-1] -= 1
        inside.append(children)
        while len(inside) > 1 and inside[-1] == 0:
            inside.pop()
    return names

"""The embedded engine: an in-memory DuckDB that holds the stored rows of one table.

The data may be a Parquet or CSV path, a DuckDB relation, an Arrow table, a Polars or pandas frame, or an Ibis table
expression, which its own backend runs once. Types are never guessed from values: a CSV is read as texts, and so are
pandas columns of objects. Once the rows are in, the engine can reach no file, no network and no Python variable any
more. Each call has a cursor of its own, so threads may ask at once; whatever goes wrong in the engine is one constant
refusal that says nothing about the data.

>>> Given({"age": [41, 17]})
Traceback (most recent call last):
...
counterpoint.errors.InvalidParameter: a table is a path to a .parquet or .csv file, a DuckDB relation, an Arrow ...
"""

import atexit
import csv
import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from counterpoint.errors import InvalidParameter
from counterpoint.randomness.process import leave_to_parent
from counterpoint.sources.columns import is_readable
from counterpoint.sources.dialects import DUCKDB, Dialect
from counterpoint.sources.engine import refused, unreadable

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
            with suppress(duckdb.Error), connection.cursor() as cursor:
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

    __slots__ = ("_connection", "kinds")

    def __init__(self, data: object) -> None:
        import duckdb  # noqa: PLC0415

        settings: dict[str, Any] = {"python_enable_replacements": False, "pandas_analyze_sample": 0}
        self._connection = duckdb.connect(":memory:", config=settings)
        described: list[tuple[Any, ...]] | None = None
        with suppress(duckdb.Error):
            offered = _offered(self._connection, data)
            self._connection.execute(f"CREATE TEMP VIEW given AS SELECT * FROM {offered}")
            described = self._connection.execute("DESCRIBE SELECT * FROM given").fetchall()
        if described is None:
            raise unreadable()
        self.kinds: dict[str, str] = {name: _kind(str(kind)) for name, kind, *_ in described}

    @property
    def dialect(self) -> Dialect:
        """DuckDB's own."""
        return DUCKDB

    def take(self, query: str, name: str) -> Embedded:
        """Materialise a query over `given`, let go of the data and close every door behind it."""
        import duckdb  # noqa: PLC0415

        with suppress(duckdb.Error):
            self._connection.execute(f"CREATE TABLE {name} AS {query}")
            self._connection.execute("DROP VIEW given")
            self._connection.unregister("offered")
            self._connection.execute("SET enable_external_access = false")
            self._connection.execute("SET lock_configuration = true")
            return Embedded(self._connection)
        raise unreadable()

    def close(self) -> None:
        """Let go of the database, whoever has it by now."""
        self._connection.close()


class _Arrow:
    """Any data that speaks Arrow's C stream interface, without the detour over pyarrow."""

    def __init__(self, data: Any) -> None:
        self._data = data

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._data.__arrow_c_stream__(requested_schema)


def _kind(described: str) -> str:
    """A type without its parameters; a list of such types is another type."""
    return described if described.endswith("]") else described.partition("(")[0]


def _offered(connection: "DuckDBPyConnection", data: object) -> str:
    """What to select from, once the data is within reach of the connection."""
    if isinstance(data, str | Path):
        return _file(connection, Path(data))
    if _is_of("ibis", type(data)) and hasattr(data, "columns") and hasattr(data, "to_pyarrow"):
        data = _executed(data)
    # a frame of pandas or of a subtype, whose own way to Arrow would guess types from values
    of_pandas = any(_is_of("pandas", kind) for kind in type(data).__mro__)
    if of_pandas and hasattr(data, "columns"):
        _check_names(map(str, data.columns))
        connection.register("offered", _typed(data))
    elif hasattr(data, "__arrow_c_stream__") and not of_pandas:
        _check_names(_names(data))
        connection.register("offered", _Arrow(data))
    else:
        raise InvalidParameter(
            "a table is a path to a .parquet or .csv file, a DuckDB relation, an Arrow table, a Polars, pandas or "
            f"Spark frame, an Ibis table, or a postgresql:// URL, not a {type(data).__name__}"
        )
    return "offered"


def _typed(frame: Any) -> object:
    """A pandas frame whose categories of whole numbers or truth values are these, and may be missing.

    DuckDB reads such a category as doubles or texts where a value is missing, and only there: a type that the schema
    does not have, and that would tell of one row.
    """
    typed = frame.copy(deep=False)
    with suppress(Exception):  # whose words may quote the data
        for name, kind in frame.dtypes.items():
            kept = getattr(kind, "categories", None)
            if kept is not None and len(kept) == 0:
                typed[name] = frame[name].astype(object)  # all are missing: a text, as where one is there
            elif kept is not None and kept.dtype.kind in _NULLABLE:
                values = kept.astype(_NULLABLE[kept.dtype.kind].format(8 * kept.dtype.itemsize)).array
                typed[name] = values.take(frame[name].cat.codes.to_numpy(), allow_fill=True)  # astype takes floats
        return typed
    raise unreadable()


_NULLABLE = {"i": "Int{}", "u": "UInt{}", "b": "boolean"}
"""pandas' types that can be missing, by the kind of what is in them and its bits."""


def _is_of(package: str, kind: type) -> bool:
    """Whether this is a type of a package that need not be there, and is not imported to find out."""
    return kind.__module__.partition(".")[0] == package


def _executed(expression: Any) -> object:
    """The Arrow table of an Ibis expression; what its backend complains of may quote the data, and is not passed on."""
    _check_names(_names(expression))
    with suppress(Exception):
        return expression.to_pyarrow()
    raise unreadable()


def _names(data: object) -> Iterable[str]:
    """The names of the columns as Arrow, Polars or DuckDB have them; none if the data does not say."""
    names = getattr(data, "columns", None)
    if not all(isinstance(name, str) for name in names or ()):  # Arrow's columns are the values
        names = getattr(getattr(data, "schema", None), "names", None)
    return names or ()


def _check_names(given: Iterable[str]) -> None:
    """Refuse names that the engine, for which a and A are one name, would change: which of two is the unit, then?"""
    names = list(given)
    if len({name.lower() for name in names}) < len(names):
        raise InvalidParameter("two columns have the same name, or names that differ in upper and lower case only")
    if not all(name and is_readable(name) for name in names):
        raise InvalidParameter("a column has no name, or one that holds NUL or half a character")


def _file(connection: "DuckDBPyConnection", path: Path) -> str:
    if path.suffix not in (".parquet", ".csv"):
        raise InvalidParameter(f"a table is read from a .parquet or .csv file, not from {path.name!r}")
    if not _is_file(path):
        raise InvalidParameter(f"there is no file {str(path)[:200]!r}")
    if set("*?[]{}") & set(str(path)):  # the engine would look for files of that pattern, and may find another one
        raise InvalidParameter(
            f"a path may not hold any of * ? [ ] {{ }}, but {str(path)[:200]!r} does: rename the file"
        )
    if path.suffix == ".parquet":
        _check_names(_fields(connection, path))
        return f"READ_PARQUET({DUCKDB.literal(str(path))}, hive_partitioning = false)"
    columns = ", ".join(f"{DUCKDB.quoted(name)}: 'VARCHAR'" for name in _header(path))
    return (
        f"READ_CSV({DUCKDB.literal(str(path))}, columns = {{{columns}}}, header = true, auto_detect = false, "
        "delim = ',', quote = '\"', escape = '\"', nullstr = '', hive_partitioning = false)"
    )


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


def _header(path: Path) -> list[str]:
    """The names in the first line of a CSV file: the only part of it whose reading depends on what is there."""
    names: list[str] = []
    with suppress(csv.Error, OSError), path.open(encoding="utf-8-sig", errors="surrogateescape", newline="") as file:
        names = next(csv.reader(file), [])
    if not names or not all(is_readable(name) for name in names):
        raise InvalidParameter("the first line of a .csv file names its columns, in UTF-8")
    _check_names(names)
    return names

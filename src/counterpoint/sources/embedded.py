"""The embedded engine: an in-memory DuckDB that holds the stored rows of one table.

The data may be a Parquet or CSV path, a DuckDB relation, an Arrow table, or a Polars or pandas frame. Types are never
guessed from values: a CSV is read as texts, and so are pandas columns of objects. Once the rows are in, the engine
can reach no file, no network and no Python variable any more. Each call has a cursor of its own, so threads may ask
at once; whatever goes wrong in the engine is one constant refusal that says nothing about the data.

>>> Given({"age": [41, 17]})
Traceback (most recent call last):
...
counterpoint.errors.InvalidParameter: a table is a path to a .parquet or .csv file, a DuckDB relation, an Arrow ...
"""

import csv
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

from counterpoint.errors import InvalidParameter
from counterpoint.sources.dialects import DUCKDB, Dialect
from counterpoint.sources.engine import refused, unreadable

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


class Embedded:
    """One in-memory database of stored rows."""

    __slots__ = ("_connection", "_creating")

    def __init__(self, connection: "DuckDBPyConnection") -> None:
        self._connection = connection
        self._creating = Lock()

    @property
    def dialect(self) -> Dialect:
        """DuckDB's own."""
        return DUCKDB

    def run(self, sql: str) -> list[tuple[Any, ...]]:
        """The rows that a statement returns, on a cursor of its own."""
        import duckdb  # noqa: PLC0415 - a tenth of a second, paid by those who have tables

        try:
            with self._connection.cursor() as cursor:
                return cursor.execute(sql).fetchall()
        except duckdb.Error:
            raise refused() from None

    def create(self, name: str, query: str) -> None:
        """Materialise a query, unless that has been done under this name."""
        with self._creating:
            self.run(f"CREATE TABLE IF NOT EXISTS {name} AS {query}")

    def drop(self, name: str) -> None:
        """Forget a table."""
        self.run(f"DROP TABLE {name}")


class Given:
    """Data on offer to a new engine under the name `given`, with its public schema in `kinds`, until it is taken."""

    __slots__ = ("_connection", "kinds")

    def __init__(self, data: object) -> None:
        import duckdb  # noqa: PLC0415

        settings: dict[str, Any] = {"python_enable_replacements": False, "pandas_analyze_sample": 0}
        self._connection = duckdb.connect(":memory:", config=settings)
        try:
            self._connection.execute(f"CREATE TEMP VIEW given AS SELECT * FROM {_offered(self._connection, data)}")
            described = self._connection.execute("DESCRIBE SELECT * FROM given").fetchall()
        except duckdb.Error:
            raise unreadable() from None
        self.kinds: dict[str, str] = {name: str(kind).partition("(")[0] for name, kind, *_ in described}

    @property
    def dialect(self) -> Dialect:
        """DuckDB's own."""
        return DUCKDB

    def take(self, query: str, name: str) -> Embedded:
        """Materialise a query over `given`, let go of the data and close every door behind it."""
        import duckdb  # noqa: PLC0415

        try:
            self._connection.execute(f"CREATE TABLE {name} AS {query}")
        except duckdb.Error:
            raise unreadable() from None
        self._connection.execute("DROP VIEW given")
        self._connection.unregister("offered")
        self._connection.execute("SET enable_external_access = false")
        self._connection.execute("SET lock_configuration = true")
        return Embedded(self._connection)


class _Arrow:
    """Any data that speaks Arrow's C stream interface, without the detour over pyarrow."""

    def __init__(self, data: Any) -> None:
        self._data = data

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._data.__arrow_c_stream__(requested_schema)


def _offered(connection: "DuckDBPyConnection", data: object) -> str:
    """What to select from, once the data is within reach of the connection."""
    if isinstance(data, str | Path):
        return _file(Path(data))
    if type(data).__module__.partition(".")[0] == "pandas" and hasattr(data, "columns"):
        connection.register("offered", data)
    elif hasattr(data, "__arrow_c_stream__"):
        connection.register("offered", _Arrow(data))
    else:
        raise InvalidParameter(
            "a table is a path to a .parquet or .csv file, a DuckDB relation, an Arrow table, a Polars, pandas or "
            f"Spark frame, or a postgresql:// URL, not a {type(data).__name__}"
        )
    return "offered"


def _file(path: Path) -> str:
    if path.suffix not in (".parquet", ".csv"):
        raise InvalidParameter(f"a table is read from a .parquet or .csv file, not from {path.name!r}")
    if not path.is_file():
        raise InvalidParameter(f"there is no file {str(path)!r}")
    if path.suffix == ".parquet":
        return f"READ_PARQUET({DUCKDB.literal(str(path))})"
    columns = ", ".join(f"{DUCKDB.quoted(name)}: 'VARCHAR'" for name in _header(path))
    return (
        f"READ_CSV({DUCKDB.literal(str(path))}, columns = {{{columns}}}, header = true, auto_detect = false, "
        "delim = ',', quote = '\"', escape = '\"', nullstr = '')"
    )


def _header(path: Path) -> list[str]:
    """The names in the first line of a CSV file: the only part of it whose reading depends on what is there."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        try:
            names = next(csv.reader(file), [])
        except (csv.Error, UnicodeDecodeError):
            names = []
    if not names or len({name.lower() for name in names}) < len(names):
        raise InvalidParameter("the first line of a .csv file names its columns, each differently")
    return names

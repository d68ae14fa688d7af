"""Spark as an engine: the stored rows are checkpointed partitions of the application that the DataFrame lives in.

The rows are computed once and cut off from where they came from (a local checkpoint): if an executor is lost, asks are
refused, and nothing is ever computed again from data that may have changed. They are views of a session of our own,
in which no setting of the user's can change what a statement means: no `${...}` is substituted in texts, literals are
unescaped, and arithmetic never raises. This is for classic sessions; Spark Connect is untested.

>>> Framed([1, 2])
Traceback (most recent call last):
...
counterpoint.errors.InvalidParameter: a table from Spark is a DataFrame, not a list
"""

from contextlib import suppress
from secrets import token_hex
from threading import Lock
from typing import TYPE_CHECKING, Any

from counterpoint.errors import InvalidParameter
from counterpoint.randomness.process import leave_to_parent
from counterpoint.sources.engines.dialects import SPARK, Dialect
from counterpoint.sources.engines.engine import refused, unreadable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_KINDS = {
    "tinyint": "TINYINT",
    "smallint": "SMALLINT",
    "int": "INTEGER",
    "bigint": "BIGINT",
    "float": "FLOAT",
    "double": "DOUBLE",
    "decimal": "DECIMAL",
    "boolean": "BOOLEAN",
    "string": "VARCHAR",
    "varchar": "VARCHAR",
    "char": "VARCHAR",
    "date": "DATE",
    "timestamp": "timestamp with time zone",
    "timestamp_ntz": "TIMESTAMP",
}
"""Spark's types by DuckDB's names; any other, such as a string with a collation, cannot be asked about.

Those stay in lower case, so that none is taken for a type of DuckDB's that happens to have its name: a timestamp of
Spark's has a time zone, and its day would depend on where Spark thinks it is.
"""

_SETTINGS = {
    "spark.sql.variable.substitute": "false",
    "spark.sql.parser.escapedStringLiterals": "false",
    "spark.sql.ansi.enabled": "false",
    "spark.sql.ansi.doubleQuotedIdentifiers": "false",
    "spark.sql.decimalOperations.allowPrecisionLoss": "true",
}
"""What the meaning of our statements depends on."""


class Spark:
    """One session whose views are the stored rows."""

    __slots__ = ("__weakref__", "_closed", "_created", "_creating", "_session")

    def __init__(self, session: "SparkSession") -> None:
        self._session = session
        self._created: set[str] = set()
        self._creating = Lock()
        self._closed = False
        leave_to_parent(self, "_session")

    @property
    def dialect(self) -> Dialect:
        """Spark's own."""
        return SPARK

    def run(self, sql: str) -> list[tuple[Any, ...]]:
        """The rows that a statement returns."""
        with suppress(Exception):  # Spark's errors, Java's, and whatever Python finds where a session was stopped
            return [tuple(row) for row in self._session.sql(sql).collect()]
        raise refused()

    def create(self, name: str, query: str) -> None:
        """Compute a query's rows, once and for all, unless that has been done under this name."""
        with self._creating:
            if name in self._created:
                return
            with suppress(Exception):
                self._session.sql(query).localCheckpoint(eager=True).createOrReplaceTempView(name)
                self._created.add(name)
                return
            raise refused()

    def drop(self, name: str) -> None:
        """Forget a view; Spark lets go of its partitions in time."""
        with self._creating:
            self.run(f"DROP VIEW {name}")
            self._created.discard(name)

    @property
    def closed(self) -> bool:
        """Whether the views are gone."""
        return self._closed

    def close(self) -> None:
        """Drop every view that was made, if the application still runs."""
        self._closed = True
        with self._creating:
            for name in ("given", *self._created):
                with suppress(Exception):
                    self._session.catalog.dropTempView(name)
            self._created.clear()


class Framed:
    """A DataFrame on offer, under the name `given`, until it is taken."""

    __slots__ = ("_engine", "_frame", "kinds")

    def __init__(self, frame: Any) -> None:
        if not hasattr(frame, "createGlobalTempView"):
            raise InvalidParameter(f"a table from Spark is a DataFrame, not a {type(frame).__name__}")
        self._frame = frame
        self._engine: Spark | None = None
        self.kinds: dict[str, str] = {
            name: _KINDS.get(kind.partition("(")[0], kind.lower()) for name, kind in frame.dtypes
        }

    @property
    def dialect(self) -> Dialect:
        """Spark's own."""
        return SPARK

    def take(self, query: str, name: str) -> Spark:
        """Hand the frame over to a session of our own, under a name that nobody knows, and compute the query there."""
        passage = f"counterpoint_{token_hex(16)}"
        with suppress(Exception):
            session = self._frame.sparkSession.newSession()
            for setting, value in _SETTINGS.items():
                session.conf.set(setting, value)
            self._engine = engine = Spark(session)
            self._frame.createGlobalTempView(passage)
            try:
                engine.run(f"CREATE TEMPORARY VIEW given AS SELECT * FROM global_temp.{passage}")
                engine.create(name, query)
                engine.drop("given")
            finally:
                session.catalog.dropGlobalTempView(passage)
            return engine
        raise unreadable()

    def close(self) -> None:
        """Drop what was made of the frame; the frame is the user's."""
        if self._engine is not None:
            self._engine.close()

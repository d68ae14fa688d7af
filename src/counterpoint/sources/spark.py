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

from secrets import token_hex
from threading import Lock
from typing import TYPE_CHECKING, Any

from counterpoint.errors import InvalidParameter
from counterpoint.sources.dialects import SPARK, Dialect
from counterpoint.sources.engine import refused, unreadable

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
    "timestamp_ntz": "TIMESTAMP",
}
"""Spark's types by DuckDB's names; any other, such as a string with a collation, cannot be asked about."""

_SETTINGS = {
    "spark.sql.variable.substitute": "false",
    "spark.sql.parser.escapedStringLiterals": "false",
    "spark.sql.ansi.enabled": "false",
    "spark.sql.ansi.doubleQuotedIdentifiers": "false",
}
"""What the meaning of our statements depends on."""


class Spark:
    """One session whose views are the stored rows."""

    __slots__ = ("_created", "_creating", "_session")

    def __init__(self, session: "SparkSession") -> None:
        self._session = session
        self._created: set[str] = set()
        self._creating = Lock()

    @property
    def dialect(self) -> Dialect:
        """Spark's own."""
        return SPARK

    def run(self, sql: str) -> list[tuple[Any, ...]]:
        """The rows that a statement returns."""
        try:
            return [tuple(row) for row in self._session.sql(sql).collect()]
        except Exception:  # Spark's errors, Java's, and whatever Python finds where a session was stopped
            raise refused() from None

    def create(self, name: str, query: str) -> None:
        """Compute a query's rows, once and for all, unless that has been done under this name."""
        with self._creating:
            if name in self._created:
                return
            try:
                self._session.sql(query).localCheckpoint(eager=True).createOrReplaceTempView(name)
            except Exception:
                raise refused() from None
            self._created.add(name)

    def drop(self, name: str) -> None:
        """Forget a view; Spark lets go of its partitions in time."""
        with self._creating:
            self.run(f"DROP VIEW {name}")
            self._created.discard(name)


class Framed:
    """A DataFrame on offer, under the name `given`, until it is taken."""

    __slots__ = ("_frame", "kinds")

    def __init__(self, frame: Any) -> None:
        if not hasattr(frame, "createGlobalTempView"):
            raise InvalidParameter(f"a table from Spark is a DataFrame, not a {type(frame).__name__}")
        self._frame = frame
        self.kinds: dict[str, str] = {
            name: _KINDS.get(kind.partition("(")[0], kind.upper()) for name, kind in frame.dtypes
        }

    @property
    def dialect(self) -> Dialect:
        """Spark's own."""
        return SPARK

    def take(self, query: str, name: str) -> Spark:
        """Hand the frame over to a session of our own, under a name that nobody knows, and compute the query there."""
        passage = f"counterpoint_{token_hex(16)}"
        try:
            session = self._frame.sparkSession.newSession()
            for setting, value in _SETTINGS.items():
                session.conf.set(setting, value)
            engine = Spark(session)
            self._frame.createGlobalTempView(passage)
            try:
                engine.run(f"CREATE TEMPORARY VIEW given AS SELECT * FROM global_temp.{passage}")
                engine.create(name, query)
                engine.drop("given")
            finally:
                session.catalog.dropGlobalTempView(passage)
        except Exception:
            raise unreadable() from None
        return engine

"""Spark as an engine: the stored rows are checkpointed partitions of the DataFrame's application.

The rows are computed once and detached from their lineage (a local checkpoint): if an executor is lost, asks fail, and
nothing is recomputed from data that may have changed. The rows are views of a separate session, in which
no setting of the user's changes the meaning of a statement: `${...}` is not substituted in texts, literals are
unescaped, and arithmetic never raises. This is for classic sessions; Spark Connect is untested.

>>> SparkOffer([1, 2])
Traceback (most recent call last):
...
counterpoint.errors.InvalidParameter: a table from Spark is a DataFrame, not a list
"""

from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, suppress
from secrets import token_hex
from threading import Lock
from typing import TYPE_CHECKING, Any, TypeVar

from counterpoint.engines.dialect import Dialect
from counterpoint.engines.engine import BindOptions, closed, failed, lost, unreadable
from counterpoint.errors import INTERRUPTIONS, DataFailed, InvalidParameter
from counterpoint.process import leave_to_parent

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_T = TypeVar("_T")

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
    "timestamp": "TIMESTAMP WITH TIME ZONE",
    "timestamp_ntz": "TIMESTAMP",
}
"""Spark's types by DuckDB's names; columns of other types, such as a string with a collation, cannot be asked about.

The names of other types stay in lower case, so that none is confused with a DuckDB type of the same name.
"""

_SETTINGS = {
    "spark.sql.variable.substitute": "false",
    "spark.sql.parser.escapedStringLiterals": "false",
    "spark.sql.ansi.enabled": "false",
    "spark.sql.ansi.doubleQuotedIdentifiers": "false",
    "spark.sql.decimalOperations.allowPrecisionLoss": "true",
    "spark.sql.session.timeZone": "UTC",
}
"""The settings on which the meaning of our statements depends."""


SPARK = Dialect(
    name="spark",
    wide="DECIMAL(38, 0)",
    sums_are_wide=False,  # and a SUM of decimals takes three times as long as those of the limbs
    like_backtracks=True,
    double="DOUBLE",
    text="STRING)",
    sha256="SHA2({}, 256)",
    match="({} RLIKE '(?s)^({})$(?!.)')",  # without the lookahead, $ would also stand before a last newline
    floor_divide="(({0}) - PMOD({0}, {1})) / {1}",
    quotient="CAST((top DIV bottom) AS DECIMAL(38, 0))",  # DIV gives 64 bits, which the quotient of a term has
    weekday="DOW_ISO",
    hexadecimal="CAST(CONV({}, 16, 10) AS DECIMAL(38, 0))",
    read_whole="TRY_CAST(TRIM({}) AS DECIMAL(38, 0))",
    whole_of_wide="{}",
    whole_of_decimal="CASE WHEN {0} % 1 = 0 THEN CAST({0} AS DECIMAL(38, 0)) END",
    read_real="TRY_CAST(TRIM({}) AS DOUBLE)",
    from_decimal="CAST({} AS DOUBLE)",
    read_date="TRY_CAST({} AS DATE)",
    days="CAST(DATEDIFF({}, DATE '1970-01-01') AS BIGINT)",
    read_time="TRY_CAST({} AS TIMESTAMP_NTZ)",
    micros="UNIX_MICROS(CAST({} AS TIMESTAMP))",
    nanos=None,
    zoned="TIMESTAMP",
    unzoned="TIMESTAMP_NTZ",
    tame="{}",
    # REPLACE compares bytes; a regular expression compares characters and reads every invalid byte as \ufffd
    readable=(
        "CASE WHEN REPLACE({0}, '\ufffd', '') = REGEXP_REPLACE({0}, '\ufffd', '') AND NOT CONTAINS({0}, CHAR(0)) "
        "THEN {0} END"
    ),
    tried="{}",
    quote="`",
    backslashed=True,
)


class SparkEngine:
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

    @property
    def version(self) -> str:
        """The version of Spark, and the application, which has settings of its own."""
        return f"{self._session.version} {self._session.sparkContext.applicationId}"

    def run(self, sql: str) -> list[tuple[Any, ...]]:
        """The rows that a statement returns."""
        return self._attempt(lambda: [tuple(row) for row in self._session.sql(sql).collect()])

    def scan(self, sql: str) -> Generator[tuple[Any, ...]]:
        """The rows that a statement returns, one partition at a time."""
        rows = self._attempt(lambda: self._session.sql(sql).toLocalIterator())
        while (row := _attempted(lambda: next(rows, None))) is not None:
            if isinstance(row, DataFailed):
                raise row
            yield tuple(row)

    def _attempt(self, work: Callable[[], _T]) -> _T:
        """What a call of Spark returns; or `DataLost`, if the application had been stopped before; or `DataFailed`."""
        if self._closed:
            raise closed()
        if self.is_lost:
            raise lost()
        found = _attempted(work)
        if isinstance(found, DataFailed):
            raise found
        return found

    def create(self, name: str, query: str) -> None:
        """Compute a query's rows once and store them under this name, unless the name exists."""
        with self._creating:
            if name in self._created:
                return
            self._attempt(lambda: self._session.sql(query).localCheckpoint(eager=True).createOrReplaceTempView(name))
            self._created.add(name)

    def drop(self, name: str) -> None:
        """Delete a view; Spark frees its partitions later."""
        with self._creating:
            self.run(f"DROP VIEW {name}")
            self._created.discard(name)

    @property
    def is_lost(self) -> bool:
        """Whether the application was stopped, and with it the stored rows."""
        return not self._closed and _is_stopped(self._session)

    @property
    def closed(self) -> bool:
        """Whether the views have been dropped."""
        return self._closed

    def close(self) -> None:
        """Drop every view, if the application still runs."""
        self._closed = True
        with self._creating:
            for name in ("given", *self._created):
                with suppress(Exception):
                    self._session.catalog.dropTempView(name)
            self._created.clear()


def _attempted(work: Callable[[], _T]) -> _T | DataFailed:
    """Raised here, the failure would take along the error of Spark, of Java or of Python, which may quote a row."""
    try:
        return work()
    except INTERRUPTIONS:
        raise
    except BaseException as error:
        return failed(error)


class SparkOffer:
    """A DataFrame, readable under the name `given` until it is taken."""

    __slots__ = ("_engine", "_frame", "kinds")

    def __init__(self, frame: Any) -> None:
        if not hasattr(frame, "createGlobalTempView"):
            raise InvalidParameter(f"a table from Spark is a DataFrame, not a {type(frame).__name__}")
        self._frame = frame
        self._engine: SparkEngine | None = None
        self.kinds: dict[str, str] = {
            name: _KINDS.get(kind.partition("(")[0], kind.lower()) for name, kind in frame.dtypes
        }

    @property
    def dialect(self) -> Dialect:
        """Spark's own."""
        return SPARK

    def take(self, query: str, name: str) -> SparkEngine:
        """Compute the query in a separate session and store its rows there under this name."""
        with suppress(Exception), self._separate() as engine:
            engine.create(name, query)
            engine.drop("given")
            self._engine = engine
        if self._engine is None:
            raise unreadable()
        return self._engine

    def read(self, query: str) -> list[tuple[Any, ...]]:
        """The rows of a query, computed in a separate session and stored nowhere."""
        with suppress(Exception), self._separate() as engine:
            return engine.run(query)
        raise unreadable()

    @contextmanager
    def _separate(self) -> Iterator[SparkEngine]:
        """A separate session in which the frame is `given`; it is passed there under a random name."""
        shared_name = f"counterpoint_{token_hex(16)}"
        session = self._frame.sparkSession.newSession()
        for setting, value in _SETTINGS.items():
            session.conf.set(setting, value)
        engine = SparkEngine(session)
        self._frame.createGlobalTempView(shared_name)
        try:
            engine.run(f"CREATE TEMPORARY VIEW given AS SELECT * FROM global_temp.{shared_name}")
            yield engine
        finally:
            session.catalog.dropGlobalTempView(shared_name)

    def close(self) -> None:
        """Drop the views of the frame; the frame itself belongs to the user."""
        if self._engine is not None:
            self._engine.close()


def _is_stopped(session: "SparkSession") -> bool:
    """Whether the session's application has ended, by `stop` or with its Java process."""
    with suppress(Exception):  # Java does not answer any more
        application = session.sparkContext._jsc  # None after `stop`
        return application is None or bool(application.sc().isStopped())
    return True


def offer(data: object, options: BindOptions) -> SparkOffer | None:
    """An offer of a DataFrame; None for other data."""
    if type(data).__module__.partition(".")[0] != "pyspark":
        return None
    options.check_no_relation()
    options.check_no_memory("Spark")
    return SparkOffer(data)

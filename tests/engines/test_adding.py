"""An engine is one file and one line: a toy on SQLite, which cannot compute what every engine must, and says so."""

import sqlite3
from contextlib import suppress
from hashlib import sha256
from threading import RLock

import msgspec
import pyarrow as pa
import pytest
from tests.sources import people

import counterpoint as cp
from counterpoint.engines import catalogue
from counterpoint.engines.duckdb import DUCKDB, EmbeddedOffer
from counterpoint.engines.engine import closed, failed
from counterpoint.errors import InvalidParameter
from counterpoint.queries import conformance

SQLITE = msgspec.structs.replace(
    DUCKDB,
    name="sqlite",
    wide="INTEGER",
    double="REAL",
    text="TEXT)",
    sha256="sha256({})",
    match="full_match({}, '{}')",
    floor_divide="({}) / {}",
    quotient="CAST((top / bottom) AS INTEGER)",
    hexadecimal="from_hex({})",
    read_whole="CAST({} AS INTEGER)",
    whole_of_wide="{}",
    whole_of_decimal="CASE WHEN {0} % 1 = 0 THEN CAST({0} AS INTEGER) END",
    read_real="CAST({} AS REAL)",
    from_decimal="CAST({} AS REAL)",
    read_date="{}",
    days="CAST(JULIANDAY({}) - 2440587.5 AS INTEGER)",
    read_time="{}",
    micros="CAST((JULIANDAY({}) - 2440587.5) * 86400000000 AS INTEGER)",
    nanos=None,
    zoned="TEXT",
    unzoned="TEXT",
    readable="{}",
    tried="{}",
)


class SqliteEngine:
    """Stored rows in a database of SQLite in memory."""

    dialect, version, is_lost = SQLITE, sqlite3.sqlite_version, False

    def __init__(self, connection):
        self._connection, self._turn = connection, RLock()
        connection.create_function("sha256", 1, lambda text: sha256(str(text).encode()).hexdigest())

    def run(self, sql):
        if self._connection is None:
            raise closed()
        found = None
        with self._turn, suppress(sqlite3.Error):
            found = self._connection.execute(sql).fetchall()
        if found is None:
            raise failed(sqlite3.Error())
        return found

    def scan(self, sql):
        yield from self.run(sql)

    def create(self, name, query):
        self.run(f"CREATE TABLE IF NOT EXISTS {name} AS {query}")

    def drop(self, name):
        self.run(f"DROP TABLE {name}")

    @property
    def closed(self):
        return self._connection is None

    def close(self):
        self._connection = None


class SqliteOffer:
    """The table `given` of a database."""

    dialect = SQLITE

    def __init__(self, connection):
        self._engine = SqliteEngine(connection)
        self.kinds = {name: kind for _, name, kind, *_ in connection.execute("PRAGMA table_info(given)")}

    def take(self, query, name):
        self._engine.create(name, query)
        return self._engine

    def close(self):
        self._engine.close()


def test_a_toy_engine_is_one_line_and_is_refused_because_of_what_it_computes(monkeypatch):
    def offer(data, options):
        return SqliteOffer(data) if isinstance(data, sqlite3.Connection) else None

    monkeypatch.setattr(catalogue, "ENGINES", (offer, *catalogue.ENGINES))
    data = sqlite3.connect(":memory:", check_same_thread=False)
    data.executescript("CREATE TABLE given (x BIGINT); INSERT INTO given VALUES (1), (2)")
    with pytest.raises(InvalidParameter, match=r"SqliteEngine does not compute .* no table is bound in it"):
        cp.Table(data, unit=cp.each_row, columns={"x": cp.number(0, 9)})


def test_an_engine_with_a_dialect_of_its_own_is_one_line_and_answers(monkeypatch):
    class Rows(list):
        """Data that no other engine holds."""

    class OtherOffer(EmbeddedOffer):
        dialect = msgspec.structs.replace(DUCKDB, days="DATE_DIFF('day', DATE '1970-01-01', {})")

        def take(self, query, name):
            engine = super().take(query, name)
            other = type("OtherEngine", (type(engine),), {"dialect": self.dialect, "__slots__": ()})
            engine.__class__ = other
            return engine

    def offer(data, options):
        return OtherOffer(pa.table({"x": list(data)})) if isinstance(data, Rows) else None

    monkeypatch.setattr(catalogue, "ENGINES", (offer, *catalogue.ENGINES))
    monkeypatch.setattr(conformance, "_passed", set())
    with cp.Table(Rows([1, 2, 5]), unit=cp.each_row, columns={"x": cp.number(0, 9)}) as table:
        assert people.found(table, cp.sum("x", where="x > 1")) == (7,)
        assert [kind.__name__ for kind, *_ in conformance._passed] == ["OtherEngine"]

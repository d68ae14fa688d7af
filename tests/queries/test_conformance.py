"""An engine computes what every engine must, before a table is bound in it: wrong ones are refused.

The three that are shipped are compared here with what is known and with definitions. `test_engines`,
`test_expressions`, `test_timestamps` and `test_differential` compare them with each other and with Python.
"""

import ast
import re
from fractions import Fraction
from itertools import product
from math import floor
from pathlib import Path

import msgspec
import pyarrow as pa
import pytest
from tests.engines import engines
from tests.engines.test_emitter import like
from tests.sources import people

import counterpoint as cp
import counterpoint.sources.table as tables
from counterpoint.engines.dialect import Dialect
from counterpoint.engines.duckdb import DUCKDB, EmbeddedOffer
from counterpoint.engines.spark import SPARK, SparkEngine
from counterpoint.errors import DataFailed, InvalidParameter, InvalidRequest
from counterpoint.queries import conformance, known_rows
from counterpoint.queries.plan import ColumnTotal, Rows
from counterpoint.schema.expressions.evaluate import evaluator, term_reader
from counterpoint.schema.expressions.tree import And

ONE = pa.table({"x": pa.array([1], pa.int64())})


@pytest.fixture(autouse=True)
def nothing_has_passed(monkeypatch):
    monkeypatch.setattr(conformance, "_passed", set())


@pytest.mark.parametrize("engine", engines.ENGINES)
def test_every_shipped_engine_computes_what_is_known(engine):
    bound = engines.bound(engine, ONE)
    assert len(conformance._passed) == 1, "a table is bound, and its engine has passed"
    listed = {"duckdb": "SHOW TABLES", "spark": "SHOW VIEWS", "postgres": "SELECT relname FROM pg_class"}[engine]
    left = bound._bound.engine.run(listed)
    assert not [row for row in left if "known_" in str(row)], "and nothing of it is left"


def test_what_is_known_is_what_python_computes():
    declared, rows = known_rows.declared(), known_rows.STORED
    for what, request, known in known_rows.SUMS:
        plan = request.plan(declared)
        holds = evaluator(And(()) if plan.condition is None else plan.condition)
        those = [row for row in rows if holds(row)]
        if isinstance(plan.adds, ColumnTotal):
            values = [term_reader(plan.adds.column)(row) for row in those]
            found = sum(value for value in values if value is not None)
        else:
            found = len(those) if isinstance(plan.adds, Rows) else len({row[-1] for row in those} - {None})
        assert found == known, what
    for place, computed in declared.derived:
        assert [row[place] for row in rows] == [term_reader(computed.term)(row) for row in rows]


class Wrong:
    """An engine that computes by DuckDB, and otherwise: its statements or its results are changed on the way."""

    def __init__(self, engine):
        self._engine, self.broken = engine, []

    def __getattr__(self, name):
        return getattr(self._engine, name)

    def rewrite(self, sql):
        return sql

    def result(self, value):
        return value

    def run(self, sql):
        return [tuple(map(self.result, row)) for row in self.running(self._engine.run, self.rewrite(sql))]

    def create(self, name, query):
        self.running(lambda sql: self._engine.create(name, sql), self.rewrite(query))

    def running(self, run, sql):
        """Run a statement, and note it if it fails: the engine would be refused for that, not for what it computes."""
        try:
            return run(sql)
        except DataFailed:
            if conformance._MARK not in sql:
                self.broken.append(sql)
            raise


def statements(old, new):
    return {"rewrite": lambda self, sql: re.sub(old, new, sql)}


def results(change):
    return {"result": lambda self, value: change(value)}


def whole(value):
    return isinstance(value, int) and not isinstance(value, bool)


def quoting(self, sql):
    try:
        return self._engine.run(sql)
    except Exception:
        raise InvalidRequest(f"syntax error near {sql}") from None


def silent(self, sql):
    try:
        return self._engine.run(sql)
    except Exception:
        return []


def untyped(self, sql):
    try:
        return self._engine.run(sql)
    except Exception:
        raise RuntimeError("no such column") from None


FAULTS = {
    "sums wrap at 64 bits": results(lambda v: (v + 2**63) % 2**64 - 2**63 if whole(v) else v),
    "sums end at 64 bits": results(lambda v: max(-(2**63), min(2**63 - 1, v)) if whole(v) else v),
    "sums are doubles": results(lambda v: int(float(v)) if whole(v) else v),
    "integers come as doubles": results(lambda v: float(v) if whole(v) else v),
    "truth values come as integers": results(lambda v: int(v) if isinstance(v, bool) else v),
    "LIKE ignores case": statements(r" LIKE ", " ILIKE "),
    "_ of LIKE is also nothing": statements(r"LIKE '_'", "LIKE '%'"),
    "texts are compared without case": statements(r"\bc4 (IN|=)", r"LOWER(c4) \1"),
    "texts are compared without spaces at their end": statements(r"\bc4 (IN|=)", r"RTRIM(c4) \1"),
    "accents are composed before texts are compared": statements(r"\bc4 IN", "NFC_NORMALIZE(c4) IN"),
    "texts are cut": results(lambda v: v[:255] if isinstance(v, str) else v),
    "empty texts are missing": results(lambda v: None if v == "" else v),
    "division rounds to the nearest": statements(r"\(CAST\(.*//.*", lambda m: m[0].replace("//", "/")),
    "NULL is the least of numbers": statements(r"\b(c\d+) (<=|<) ", r"COALESCE(\1, -4611686018427387904) \2 "),
    "NULL is the largest of numbers": statements(r"\b(c\d+) (>=|>) ", r"COALESCE(\1, 4611686018427387904) \2 "),
    "what is unknown is true under NOT": statements(r"NOT (c\d+ <= -?\d+)", r"NOT COALESCE(\1, FALSE)"),
    "NULL is no group": statements(r"COUNT\(\*\)", "COUNT(c2)"),
    "NaN is a number": statements(r"= CAST\('nan' AS DOUBLE\)", "= CAST('1e99' AS DOUBLE)"),
    "the week begins on Sunday": statements("ISODOW", "DOW"),
    "days are counted from another one": statements(r"- DATE '1970-01-01'", "- DATE '1970-01-02'"),
    "instants have milliseconds": statements(r"EPOCH_US\(", "1000 * EPOCH_MS("),
    "the hash is another one": statements("SHA256", "MD5"),
    "rows are kept in another order": statements("place <= ", "place >= "),
    "BETWEEN leaves out its ends": statements(r"(\S+) BETWEEN (-?\d) AND (\d)\b", r"(\1 > \2 AND \1 < \3)"),
    "failures quote the statement": {"run": quoting},
    "failures are empty answers": {"run": silent},
    "failures have no type": {"run": untyped},
}


def bind_in(wrong, monkeypatch):
    """Bind a table in such an engine: the offer is DuckDB's, and the engine that takes it is not."""
    taken = []

    class Offer(EmbeddedOffer):
        def take(self, query, name):
            taken.append(wrong(super().take(query, name)))
            return taken[-1]

    monkeypatch.setattr(tables, "offered", lambda data, *_: Offer(data))
    return taken, lambda: cp.Table(ONE, unit=cp.each_row, columns={"x": cp.number(0, 9)})


@pytest.mark.parametrize("fault", FAULTS)
def test_no_table_is_bound_in_an_engine_that_computes_otherwise(fault, monkeypatch):
    wrong = type("Trial", (Wrong,), FAULTS[fault])
    taken, bind = bind_in(wrong, monkeypatch)
    for _ in range(2):
        with pytest.raises(InvalidParameter, match=r"^Trial does not compute .* no table is bound in it"):
            bind()
    assert len(taken) == 2 and not conformance._passed, "also when it is tried again"
    assert not taken[0].broken, "its statements run, and compute otherwise"


WRONG_DIALECTS = {
    "decimals are rounded to whole numbers": {"whole_of_decimal": "CAST(ROUND({0}) AS HUGEINT)"},
    "wide numbers are read through doubles": {"whole_of_wide": "TRY_CAST(CAST({} AS DOUBLE) AS HUGEINT)"},
    "dates are a day late": {"read_date": "TRY_CAST({} AS DATE) + 1"},
    "times are an hour late": {"read_time": "(TRY_CAST({} AS TIMESTAMP) + INTERVAL 1 HOUR)"},
    "decimals become floats of 32 bits": {"from_decimal": "CAST(CAST({} AS FLOAT) AS DOUBLE)"},
    "texts become floats of 32 bits": {"read_real": "CAST(TRY_CAST({} AS FLOAT) AS DOUBLE)"},
    "doubles are floats of 32 bits": {"double": "FLOAT"},
    "nanoseconds are microseconds": {"nanos": "EPOCH_US({})"},
    "quotients are not rounded down": {"floor_divide": "({}) / {}"},
    "instants have milliseconds": {"micros": "EPOCH_MS({})*1000"},
    "days begin on another one": {"days": "CAST({} - DATE '1970-01-02' AS BIGINT)"},
    "texts of whole numbers are read as doubles": {"read_whole": "TRY_CAST(TRY_CAST({} AS DOUBLE) AS HUGEINT)"},
    "texts are hashed by another function": {"sha256": "MD5({})"},
    "a pattern matches a part of a text": {"match": "REGEXP_MATCHES({}, '{}')"},
    "the week begins on Sunday": {"weekday": "DOW"},
    "hashes are 0": {"hexadecimal": "CAST(0 AS BIGINT)"},
    "doubles are 0": {"tame": "0*{}"},
}


@pytest.mark.parametrize("wrong", WRONG_DIALECTS)
def test_no_table_is_bound_by_a_dialect_that_computes_otherwise(wrong, monkeypatch):
    kind = type("Trial", (Wrong,), {"dialect": msgspec.structs.replace(DUCKDB, **WRONG_DIALECTS[wrong])})
    taken, bind = bind_in(kind, monkeypatch)
    with pytest.raises(InvalidParameter, match=r"^Trial does not compute .* no table is bound in it"):
        bind()
    assert not taken[0].broken, "its statements run, and compute otherwise"


SECOND_PATHS = {
    "cuts texts": lambda value: value[:200] if isinstance(value, str) else value,
    "folds letters": lambda value: value.lower() if isinstance(value, str) else value,
    "wraps whole numbers": lambda value: value % 2**62 if whole(value) else value,
    "has doubles": lambda value: float(value) if whole(value) else value,
    "has no missing values": lambda value: 0 if value is None else value,
}


@pytest.mark.parametrize("fault", SECOND_PATHS)
def test_no_table_is_bound_in_an_engine_whose_second_path_reads_other_values(fault, monkeypatch):
    def scan(self, sql):
        return (tuple(map(SECOND_PATHS[fault], row)) for row in self._engine.scan(sql))

    _, bind = bind_in(type("Trial", (Wrong,), {"scan": scan}), monkeypatch)
    with pytest.raises(InvalidParameter, match="on its second path"):
        bind()


def test_an_engine_that_computes_the_same_is_taken_and_asked_once(monkeypatch):
    asked = []
    right = type("Trial", (Wrong,), {"rewrite": lambda self, sql: asked.append(sql) or sql})
    _, bind = bind_in(right, monkeypatch)
    assert people.found(bind(), cp.sum("x")) == (1,)
    checked = len(asked)
    assert people.found(bind(), cp.sum("x")) == (1,)
    assert len(asked) == checked + 2, "the second table is counted for its custodian, and runs its one request"


def test_another_version_dialect_or_class_is_asked_again(monkeypatch):
    class Trial(Wrong):
        version = "1"
        dialect = DUCKDB

    _, bind = bind_in(Trial, monkeypatch)
    bind()
    for name, value in {"version": "2", "dialect": msgspec.structs.replace(DUCKDB, weekday="DOW")}.items():
        monkeypatch.setattr(Trial, name, value)
        if name == "version":
            monkeypatch.setattr(Trial, "result", lambda self, value: float(value) if whole(value) else value)
        with pytest.raises(InvalidParameter, match="no table is bound in it"):
            bind()
        monkeypatch.setattr(Trial, "result", Wrong.result)


@pytest.mark.long
def test_spark_whose_dialect_says_that_its_sums_are_wide_is_refused(monkeypatch):
    monkeypatch.setattr(SparkEngine, "dialect", msgspec.structs.replace(SPARK, sums_are_wide=True))
    with pytest.raises(InvalidParameter, match="does not compute sums beyond 64 bits as every engine must"):
        engines.bound("spark", ONE)


def test_a_dialect_has_no_defaults_and_nothing_else_is_chosen_by_its_name():
    assert not [field.name for field in msgspec.structs.fields(Dialect) if not field.required]
    source, found = Path(tables.__file__).parents[1], set()
    for path in source.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Constant) and node.value in ("duckdb", "postgres", "spark"):
                found.add(path.relative_to(source).as_posix())
    assert found - {"sources/streams/feed.py", "service/pages/index.py"} == {  # names of a feed and of a drawing
        *("engines/duckdb.py", "engines/postgres.py", "engines/spark.py"),
        *("schema/expressions/syntax.py", "sql_requests/parse.py"),  # what an analyst writes
    }


TEXTS = [
    *[
        "",
        "a",
        "A",
        "ab",
        "AB",
        "a\nb",
        "b\n",
        "a.b",
        "\u00e9\U0001f600",
        "e\u0301",
        "[a]^$",
        "aXbXc",
        "a\\b",
        "%",
        "a ",
    ],
    None,
]
PATTERNS = [
    *["", "%", "_", "__", "a%", "%b", "a_b", "%a%b%", "a.%", "_\U0001f600", "[%]^$", "%X%X%", "%\n", "A_", "b_", "% "]
]


@pytest.mark.parametrize("engine", engines.ENGINES)
def test_like_finds_by_its_definition_what_it_finds_on_every_engine(engine):
    table = engines.bound(engine, pa.table({"t": pa.array(TEXTS, pa.string())}), columns={"t": cp.text()})
    known = sum(text is not None for text in TEXTS)
    for pattern in PATTERNS if engine != "spark" else PATTERNS[::5]:
        wanted = sum(text is not None and like(text, pattern) for text in TEXTS)
        assert people.found(table, cp.count(f"t LIKE '{pattern}'")) == (wanted,), pattern
        assert people.found(table, cp.count(f"t NOT LIKE '{pattern}'")) == (known - wanted,), pattern


NUMBERS = [-7, -3, -2, -1, 0, 1, 2, 3, 7, None]


@pytest.mark.parametrize("engine", engines.ENGINES)
def test_a_quotient_of_either_sign_is_rounded_once_and_missing_where_the_divisor_is_0(engine):
    x, y = zip(*product(NUMBERS, NUMBERS), strict=True)
    frame = pa.table({"x": pa.array(x, pa.int64()), "y": pa.array(y, pa.int64())})
    table = engines.bound(engine, frame, columns={"x": cp.number(-7, 7), "y": cp.number(-7, 7)})
    steps = [floor(Fraction(4 * a, b) + Fraction(1, 2)) for a, b in zip(x, y, strict=True) if a is not None and b]
    edges = [Fraction(n, 4) for n in (-28, -27, -4, -1, 0, 1, 2, 5, 28)]
    found = people.found(table, cp.histogram("CLAMP(x / y, -7, 7, 1/4)", edges=edges))
    upper = [*edges[1:-1], 8]  # the last bin has its upper edge
    assert found == tuple(
        sum(4 * low <= n < 4 * high for n in steps) for low, high in zip(edges[:-1], upper, strict=True)
    )
    assert people.found(table, cp.sum("CLAMP(x / y, -7, 7, 1/4)")) == (sum(steps),)
    assert people.found(table, cp.count("x / y IS NULL")) == (len(x) - len(steps),)

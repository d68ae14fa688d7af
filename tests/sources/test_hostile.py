"""Bad files, frames and declarations get typed errors that quote nothing from the data; closed is closed."""

import gc
import os
import pathlib
import threading
import traceback
from decimal import Decimal

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet
import pytest
from tests.engines import engines
from tests.sources import people

from counterpoint.engines.engine import closed, unreadable
from counterpoint.errors import CounterpointError, InvalidParameter, NotAllowed
from counterpoint.measures import PureDP
from counterpoint.mechanisms.additive import Laplace
from counterpoint.queries import aggregates as requests
from counterpoint.queries import quantiles as choices
from counterpoint.schema.columns import boolean, category, number, text
from counterpoint.schema.times import date
from counterpoint.schema.units import each_row
from counterpoint.session.session import Session
from counterpoint.sources.table import Table

CANARY = "canary7351"
UNREADABLE = str(unreadable())


def refusal(make):
    """What is said when this is tried, after looking through the whole chain of errors for the canary."""
    with pytest.raises(InvalidParameter) as refused:
        make()
    error = refused.value
    assert CANARY not in "".join(traceback.format_exception(error, chain=True))
    seen = [error]
    while seen[-1].__cause__ or seen[-1].__context__:
        seen.append(seen[-1].__cause__ or seen[-1].__context__)
    assert all(CANARY not in str(link) for link in seen) and len(seen) == 1
    return str(error)


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("a.parquet", b"", UNREADABLE),
        ("a.parquet", b"PAR1" + CANARY.encode() + b"PAR1", UNREADABLE),
        ("a.csv", b"", "the first line must name the columns"),
        ("a.csv", b"\xff\xfe\n1\n", "the first line must name the columns"),
        ("a.csv", b"a\0,b\n1,2\n", "the first line must name the columns"),
        ("a.csv", b"a,A\n1,2\n", "two columns have the same name"),
        ("a.csv", b"a,\n1,2\n", "every column needs a name"),
        ("a.txt", b"a\n1\n", "is read from a .parquet or .csv file"),
        ("p[1].csv", b"a\n1\n", "a path must not contain any of"),
        ("p*.parquet", b"", "a path must not contain any of"),
    ],
)
def test_a_bad_file_is_refused(tmp_path, name, content, said):
    (tmp_path / name).write_bytes(content)
    assert said in refusal(lambda: Table(tmp_path / name, unit=each_row))


@pytest.mark.parametrize(
    "path", ["nowhere.parquet", "", ".", "a\0.csv", "x" * 5000 + ".csv", "\ud800.csv", "s3://b/a.csv"]
)
def test_a_path_that_leads_nowhere_is_refused(path):
    refusal(lambda: Table(path, unit=each_row))


def test_a_path_that_reads_like_a_pattern_never_reads_another_file(tmp_path):
    pyarrow.parquet.write_table(pa.table({"x": [1]}), tmp_path / "p1.parquet")
    pyarrow.parquet.write_table(pa.table({"x": [1, 2, 3]}), tmp_path / "p[1].parquet")
    assert "rename the file" in refusal(lambda: Table(tmp_path / "p[1].parquet", unit=each_row))


def test_a_folder_named_like_a_partition_adds_no_column(tmp_path):
    folder = tmp_path / "year=2020"
    folder.mkdir()
    pyarrow.parquet.write_table(pa.table({"x": [1]}), folder / "a.parquet")
    (folder / "a.csv").write_text("x\n1\n")
    for name in ("a.parquet", "a.csv"):
        assert [named.name for named in Table(folder / name, unit=each_row).declaration.columns] == ["x"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read every file")
def test_a_file_that_may_not_be_read_is_refused(tmp_path):
    for name in ("a.csv", "a.parquet"):
        (tmp_path / name).write_text("a\n1\n")
        (tmp_path / name).chmod(0)
        refusal(lambda name=name: Table(tmp_path / name, unit=each_row))


def failing():
    yield pa.record_batch({"x": [1]})
    raise ValueError(CANARY)


class Unwilling:
    def __arrow_c_stream__(self, requested_schema=None):
        raise RuntimeError(CANARY)


@pytest.mark.parametrize(
    "make",
    [
        lambda: None,
        lambda: 5,
        lambda: [CANARY],
        lambda: {"x": [CANARY]},
        lambda: np.array([1, 2]),
        lambda: pl.LazyFrame({"x": [1]}),
        lambda: pa.table({}),
        Unwilling,
        lambda: pa.RecordBatchReader.from_batches(pa.schema([("x", pa.int64())]), failing()),
        lambda: duckdb.sql(f"SELECT ERROR('{CANARY}' || x) AS y FROM RANGE(3) AS t(x)"),
        lambda: pa.table({"x": pa.array([Decimal(10) ** 60], pa.decimal256(70, 0))}),
        lambda: pa.table([[1], [2]], names=["a", "a"]),
        lambda: pa.table([[1], [2]], names=["a", "A"]),
        lambda: pl.DataFrame({"a": [1], "A": [2]}),
        lambda: pd.Series([1, 2], name="x", dtype=object),
        lambda: pd.DataFrame([[1, 2]], columns=["a", "a"]),
        lambda: pd.DataFrame([[1, 2]], columns=[1, "1"]),
        lambda: pd.DataFrame([[1]], columns=pd.Index(["\ud800"], dtype=object)),
        lambda: pa.table({"a\0b": [1]}),
        lambda: pa.table({"": [1]}),
        lambda: pathlib.Path("/dev/null"),
    ],
)
def test_data_that_is_no_table_is_refused(make):
    refusal(lambda: Table(make(), unit=each_row))


def test_duplicate_names_in_a_parquet_file_are_refused_and_nested_ones_are_not(tmp_path):
    nested = pa.table({"a": [{"x": 1, "a": [{"x": 2}]}], "b": [[1]], "x": [5], "c": [{"b": {"c": 1}}]})
    pyarrow.parquet.write_table(nested, tmp_path / "nested.parquet")
    assert [named.name for named in Table(tmp_path / "nested.parquet", unit=each_row).declaration.columns] == ["x"]
    pyarrow.parquet.write_table(pa.table([[{"z": 1}], [1], [2]], names=["n", "a", "A"]), tmp_path / "twice.parquet")
    assert "the same name" in refusal(lambda: Table(tmp_path / "twice.parquet", unit=each_row))


FRAME = pa.table({"who": [1], "f": [0.5], "s": [CANARY], "l": [[1]], "n": pa.nulls(1), "b": [b"x"], "r": [{"a": 1}]})


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"unit": None}, "say what is protected"),
        ({"unit": "who"}, "say how many rows of one 'who' count"),
        ({"unit": each_row, "rows_per_unit": 2}, "leave out rows_per_unit"),
        ({"unit": "nobody", "rows_per_unit": 1}, "there is no column 'nobody'"),
        ({"unit": 5}, "unit must be the name of a column"),
        ({"unit": ["who", 5]}, "unit must be the name of a column"),
        ({"unit": ["who", "who"], "rows_per_unit": 1}, "1 to 10 different columns"),
        ({"unit": [], "rows_per_unit": 1}, "1 to 10 different columns"),
        ({"unit": ["n", "nobody"], "rows_per_unit": 1}, "no column 'nobody' to name the unit"),
        ({"unit": ["who", "f"], "rows_per_unit": 1}, "column 'f' of type DOUBLE cannot name the unit"),
        ({"unit": "f", "rows_per_unit": 1}, "cannot name the unit"),
        ({"unit": "l", "rows_per_unit": 1}, "cannot name the unit"),
        ({"unit": "n", "rows_per_unit": 1}, "cannot name the unit"),
        ({"unit": "who", "rows_per_unit": True}, "truth value"),
        ({"unit": "who", "rows_per_unit": -1}, "at least 1"),
        ({"unit": "who", "rows_per_unit": 1.5}, "whole number"),
        ({"columns": ["who"]}, "columns must be a mapping by name"),
        ({"columns": {"gone": text()}}, "there is no column 'gone'"),
        ({"columns": {5: text()}}, "there is no column 5"),
        ({"columns": {"who": int}}, "must be declared as number"),
        ({"columns": {"f": text()}}, "type DOUBLE cannot be declared as a text"),
        ({"columns": {"f": boolean()}}, "type DOUBLE cannot be declared"),
        ({"columns": {"f": date("2000-01-01", "2001-01-01")}}, "type DOUBLE cannot be declared as a date"),
        ({"columns": {"who": date("2000-01-01", "2001-01-01")}}, "type BIGINT cannot be declared as a date"),
        ({"columns": {"l": number(0, 1)}}, "cannot be declared"),
        ({"columns": {"n": number(0, 1)}}, "cannot be declared"),
        ({"columns": {"b": text()}}, "cannot be declared"),
        ({"columns": {"r": category(["x"])}}, "cannot be declared"),
        ({"neighbours": None}, "neighbours must be 'add-or-remove'"),
        ({"neighbours": "near"}, "neighbours must be"),
        ({"key": "k" * 32}, "at least 16 secret bytes"),
        ({"key": b""}, "at least 16 secret bytes"),
        ({"relation": "t"}, "data must be a postgresql:// URL"),
    ],
)
def test_a_bad_declaration_is_refused_before_a_row_is_read(more, said):
    assert said in refusal(lambda: Table(FRAME, **{"unit": each_row, **more}))


def test_lists_of_numbers_are_not_taken_for_numbers():
    frame = pa.table({"x": pa.array([[Decimal("1.5")]], pa.list_(pa.decimal128(10, 2))), "y": [1]})
    assert "cannot be declared" in refusal(lambda: Table(frame, unit=each_row, columns={"x": number(0, 1)}))
    assert [named.name for named in Table(frame, unit=each_row).declaration.columns] == ["y"]


def test_texts_and_huge_integers_that_are_no_numbers_are_missing_or_clamped_in_silence():
    wide = pd.DataFrame({"x": pd.Series([10**40, -(10**40), "x", None, 3, 2**64], dtype=object)})
    source = Table(wide, unit=each_row, columns={"x": number(0, 5)})
    assert people.found(source, requests.sum("x")) == (5 + 0 + 3 + 5,)
    unsigned = pa.table({"x": pa.array([2**64 - 1, 0, None], pa.uint64())})
    assert people.found(Table(unsigned, unit=each_row, columns={"x": number(0, 2**62)}), requests.sum("x")) == (2**62,)


def test_rows_without_a_unit_are_left_out_of_everything():
    for missing in (
        pa.table({"who": [None, 1, None], "x": [5, 6, 7]}),
        pa.table({"who": [None, "a", None], "x": [5, 6, 7]}),
    ):
        source = Table(missing, "who", 2, {"x": number(0, 9)})
        assert people.found(source, requests.count()) == people.found(source, requests.count_distinct()) == (1,)
        assert people.found(source, requests.sum("x")) == (6,)
        assert len(people.found(source, choices.keys("x")).pairs) == 1


def test_a_table_without_rows_answers_zero_to_everything():
    source = people.table({})
    assert people.found(source, requests.mean("income")) == (0, 0)
    assert people.found(source, choices.quantile("income", 0.5, [0, 1])) == (0, 0)
    assert people.found(source, choices.keys("zip")).pairs == ()


# closing


@pytest.mark.parametrize("engine", ["duckdb", "postgres", "spark"])
def test_a_closed_table_says_what_was_declared_and_refuses_everything_else(engine):
    with engines.bound(engine, people.arrow({}), "who", 2, people.COLUMNS) as source:
        prepared, pin = source.prepare(requests.count()), source.pin()
        part = source.part("state", "CA")
        spread = source.spread("state", 1)
        assert people.found(part, requests.count()) == people.found(spread, requests.count()) == (0,)
    described = source.describe()
    for deed in (
        lambda: source.prepare(requests.count()),
        lambda: source.resolve(pin, prepared),
        source.pin,
        lambda: source.part("state", "CA"),
        lambda: source.spread("state", 1),
        lambda: part.prepare(requests.count()),
        lambda: spread.resolve(pin, prepared),
    ):
        with pytest.raises(NotAllowed, match="this table has been closed"):
            deed()
    source.close()
    assert source.describe() == described and "who" in repr(source)


def test_launching_and_asking_on_a_closed_table_charges_nothing():
    source = people.table({})
    session = Session(source, within=PureDP(1))
    handle = session.launch(Laplace("0.25", asks=2))
    source.close()
    with pytest.raises(NotAllowed):
        handle.ask(requests.count())
    with pytest.raises(NotAllowed):
        session.launch(Laplace("0.25"))
    assert session.loss == PureDP("0.25") and not handle.halted


def test_a_postgres_session_ends_with_its_table_and_with_a_failed_binding():
    psycopg = pytest.importorskip("psycopg")
    name = engines.relation(pa.table({"x": [1], "s": ["a"]}))

    def sessions():
        with psycopg.connect(engines.url(), autocommit=True) as other:
            ours = "FROM pg_stat_activity WHERE query LIKE '%counterpoint_closing%' AND pid <> pg_backend_pid()"
            for _ in range(500):  # a session ends a moment after its connection
                (count,) = other.execute(f"SELECT count(*) {ours}").fetchone()
                if count == 0:
                    break
                other.execute("SELECT pg_sleep(0.01)")
            return count

    source = Table(engines.url(), unit=each_row, relation=name)
    source._bound.engine.run("SELECT 'counterpoint_closing'")
    source.close()
    assert sessions() == 0
    failures = []
    for more in ({"columns": {"x": boolean()}, "unit": "gone"}, {"columns": {"s": 5}}):
        try:
            Table(engines.url(), relation=name, **more)
        except InvalidParameter as error:
            failures.append(error)  # whose traceback holds the frames, and with them the connection
    gc.collect()
    with psycopg.connect(engines.url(), autocommit=True) as other:
        views = "SELECT count(*) FROM pg_class WHERE relname = 'given' AND relpersistence = 't'"
        for _ in range(500):
            if other.execute(views).fetchone() == (0,):
                break
            other.execute("SELECT pg_sleep(0.01)")
        assert other.execute(views).fetchone() == (0,) and len(failures) == 2


def test_a_spark_table_leaves_no_view_behind():
    spark = engines.spark()
    source = engines.bound("spark", people.arrow({}), "who", 2, people.COLUMNS)
    source.spread("state", 1)
    session = source._bound.engine._session

    def views(of, among):
        return [row.viewName for row in of.sql(f"SHOW VIEWS{among}").collect()]

    assert len(views(session, "")) == 2
    source.close()
    assert views(session, "") == views(spark, " IN global_temp") == []


def test_a_table_is_closed_even_while_an_ask_is_running():
    source = people.table({})
    engine, started, found = source._bound.engine, threading.Event(), []
    engine.create("many", "SELECT range AS n FROM RANGE(200000)")

    def ask():
        started.set()
        try:
            found.append(
                engine.run("SELECT COUNT(*) FROM many AS a, many AS b WHERE a.n < 20000 AND a.n % 7 = b.n % 11")
            )
        except NotAllowed as error:
            found.append(str(error))

    thread = threading.Thread(target=ask)
    thread.start()
    started.wait(10)
    for _ in range(3):
        source.close()
    with pytest.raises(NotAllowed):
        source.pin()
    with pytest.raises(NotAllowed, match="has been closed"):
        engine.run("SELECT 1")
    thread.join()
    expected = sum(200000 // 11 + (r < 200000 % 11) for a in range(20000) for r in [a % 7])
    assert found in ([[(expected,)]], [str(closed())])


@pytest.mark.parametrize("again", range(15))
def test_threads_that_ask_while_a_table_is_closed_get_answers_or_one_refusal(again):
    source = people.table({1: [{**dict.fromkeys(people.COLUMNS), "age": 5}]})
    seen, started = set(), threading.Event()

    def ask():
        for i in range(200):
            try:
                seen.add(people.found(source, requests.count(f"age < {i % 9}")))
            except CounterpointError as error:
                seen.add((type(error), str(error)))
            started.set()

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    started.wait(10)
    source.close()
    for thread in threads:
        thread.join()
    assert seen <= {(0,), (1,), (NotAllowed, str(closed()))}

"""Dates are whole days between public bounds, the same in every engine, however they were stored before."""

import re
from datetime import date as day
from datetime import datetime, timedelta

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.engines import engines
from tests.sources import people

from counterpoint.encoding import decode, encode
from counterpoint.engines.loading_times import DAY
from counterpoint.errors import InvalidParameter, InvalidRequest
from counterpoint.queries import aggregates as requests
from counterpoint.schema.columns import Column
from counterpoint.schema.times import date, days, spelled
from counterpoint.schema.units import each_row
from counterpoint.sources.table import Table

DECADE = date("2000-01-01", "2009-12-31")
WRITTEN = [
    *["2000-01-01", "1999-12-31", "2009-12-31", "2010-01-01", "2004-02-29", "2003-02-29", "2000-02-30", "0001-01-01"],
    *["0000-01-01", "9999-12-31", "10000-01-01", "2005-13-01", "2005-00-01", "2005-01-00", "2005-1-1", " 2005-01-01"],
    *["2005-01-01 ", "2005-01-01\n", "2005-01-01 12:00", "20050101", "infinity", "today", "", "٢٠٠٥-٠١-٠١", None],
    *["1900-02-29", "2005-06-31", "2005-04-30", "-2005-01-01", "2005-01-01 BC", "epoch"],
]


@given(st.dates())
def test_a_date_is_its_number_of_days_and_back(drawn):
    assert spelled(days(drawn)) == drawn.isoformat() and days(drawn.isoformat()) == (drawn - day(1970, 1, 1)).days


def test_the_pattern_matches_the_days_there_are_and_no_others():
    known = set()
    for year in (1, 4, 100, 400, 1900, 2000, 2023, 2024, 9999):
        for month in range(14):
            for number in range(33):
                text = f"{year:04}-{month:02}-{number:02}"
                assert bool(re.fullmatch(DAY, text)) == (days(text) is not None), text
                known.add(text)
    assert len(known) > 4000
    for year in range(1, 10_000):
        leap = f"{year:04}-02-29"
        assert bool(re.fullmatch(DAY, leap)) == (days(leap) is not None)
    assert not re.fullmatch(DAY, "0000-02-29") and not re.fullmatch(DAY, "0000-01-01")


@pytest.mark.parametrize(
    ("low", "high"),
    [
        ("2000-01-01", "2000-01-01"),
        ("2001-01-01", "2000-01-01"),
        ("2000-02-30", "2001-01-01"),
        ("yesterday", "today"),
        (0, 1),
        (None, "2000-01-01"),
        (datetime(2000, 1, 1), "2001-01-01"),
        ("0000-01-01", "2001-01-01"),
    ],
)
def test_bounds_that_are_no_days_in_order_are_refused(low, high):
    with pytest.raises(InvalidParameter):
        date(low, high)


def test_a_declaration_reads_back_and_takes_days_as_python_has_them():
    column = date(day(2000, 1, 1), "2009-12-31")
    assert column == DECADE and decode(encode(column), Column) == column
    assert column.describe() == "a date from 2000-01-01 to 2009-12-31"


@pytest.mark.parametrize("engine", ["duckdb", "postgres", "spark"])
def test_texts_are_dates_or_missing_and_are_brought_into_the_bounds(engine):
    source = engines.bound(engine, pa.table({"d": WRITTEN}), columns={"d": DECADE})
    expected = [days(text) for text in WRITTEN]
    stored = [min(max(d, DECADE.least), DECADE.most) for d in expected if d is not None]
    assert people.found(source, requests.count("d IS NOT NULL")) == (len(stored),) == (8,)
    asked = requests.histogram("d", keys=["2000-01-01", "2004-02-29", "2005-04-30", "2009-12-31", "1999-12-31"])
    assert people.found(source, asked) == (3, 1, 1, 3, 0)


@pytest.mark.parametrize("engine", ["duckdb", "postgres", "spark"])
def test_dates_themselves_give_the_same_days_in_every_engine(engine):
    values = [day(1, 1, 1), day(9999, 12, 31), day(1969, 12, 31), day(1970, 1, 1), day(2004, 2, 29), None]
    frame = pa.table({"d": pa.array(values, pa.date32())})
    source = engines.bound(engine, frame, columns={"d": date("1960-01-01", "2030-01-01")})
    edges = ["1960-01-01", "1960-01-02", "1970-01-01", "1970-01-02", "2030-01-01"]
    assert people.found(source, requests.histogram("d", edges=edges)) == (1, 1, 1, 2)
    assert people.found(source, requests.count("d = '1960-01-01' OR d > '2029-12-31'")) == (2,)
    assert people.found(source, requests.ranks("d", ["1959-01-01", "1969-12-31", "2004-02-29"])) == (0, 2, 4)


def test_times_of_day_belong_to_their_day_if_they_have_no_zone():
    times = [datetime(2005, 1, 1, 23, 59, 59, 999999), datetime(1969, 12, 31, 0, 0, 1), None, datetime(2005, 1, 2)]
    frames = [pa.table({"t": pa.array(times, pa.timestamp(unit))}) for unit in ("ms", "us", "ns")]
    series = pd.DataFrame({"t": pd.Series([pd.NaT if t is None else t for t in times], dtype="datetime64[ns]")})
    wide = date("1900-01-01", "2100-01-01")
    for data in (*frames, series, pl.DataFrame({"t": times})):
        source = Table(data, unit=each_row, columns={"t": wide})
        asked = requests.histogram("t", keys=["2005-01-01", "2005-01-02", "1969-12-31"])
        assert people.found(source, asked) == (1, 1, 1)
    zoned = pa.table({"t": pa.array(times, pa.timestamp("us", "UTC"))})
    with pytest.raises(InvalidParameter, match="cannot be declared as a date"):
        Table(zoned, unit=each_row, columns={"t": wide})


def test_infinite_dates_become_the_nearer_bound():
    import duckdb

    rows = duckdb.sql(
        "SELECT UNNEST(['infinity'::DATE, '-infinity'::DATE, DATE '2005-01-01', '44-03-15 (BC)'::DATE]) AS d"
    )
    source = Table(rows, unit=each_row, columns={"d": DECADE})
    assert people.found(source, requests.histogram("d", keys=["2000-01-01", "2009-12-31", "2005-01-01"])) == (2, 1, 1)
    engines.execute(
        "CREATE TABLE infinite (d date, t timestamp)",
        "INSERT INTO infinite VALUES ('infinity', '-infinity'), ('-infinity', 'infinity')",
        "INSERT INTO infinite VALUES ('0044-03-15 BC', '2005-01-01 9:00')",
    )
    there = Table(engines.url(), unit=each_row, relation="infinite", columns={"d": DECADE, "t": DECADE})
    asked = ["2000-01-01", "2009-12-31", "2005-01-01"]
    assert people.found(there, requests.histogram("d", keys=asked)) == (2, 1, 0)
    assert people.found(there, requests.histogram("t", keys=asked)) == (1, 1, 1)


@pytest.mark.parametrize(
    ("where", "hint"),
    [
        ("born = 3", "compare it with a date, as 'YYYY-MM-DD'"),
        ("born = TRUE", "compare it with a date, as 'YYYY-MM-DD'"),
        ("born = 'yesterday'", "is not a date"),
        ("born = '2000-02-30'", "is not a date"),
        ("born LIKE '2000-01-01'", "LIKE is for texts"),
        ("born LIKE '2000%'", "LIKE is for texts"),
        ("born > DATE '2000-01-01'", "does not support \"CAST('2000-01-01' AS DATE)"),
        ("born * 2 > '2000-01-01'", "arithmetic is for numbers"),
    ],
)
def test_a_where_compares_dates_with_dates_only(where, hint):
    with pytest.raises(InvalidRequest) as refused:
        people.table({}).prepare(requests.count(where))
    assert hint in str(refused.value)


def test_a_part_may_be_a_day():
    start = day(2000, 1, 1)
    frame = pa.table({"d": pa.array([start + timedelta(days=i % 3) for i in range(10)], pa.date32())})
    source = Table(frame, unit=each_row, columns={"d": DECADE})
    assert people.found(source.part("d", "2000-01-01"), requests.count()) == (4,)
    with pytest.raises(InvalidRequest, match="is not a date"):
        source.part("d", 5)

"""Binding is total, row by row: no value keeps a table from binding, or changes how other rows are read."""

import datetime
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.engines import engines
from tests.engines.test_csv_rows import lines
from tests.sources import people

from counterpoint.engines import loading
from counterpoint.engines.duckdb import empty_engine
from counterpoint.errors import CounterpointError, InvalidParameter
from counterpoint.queries import aggregates as requests
from counterpoint.queries import quantiles as choices
from counterpoint.schema.columns import boolean, category, number, text
from counterpoint.schema.times import date
from counterpoint.schema.units import each_row
from counterpoint.sources.streams.records import Fields
from counterpoint.sources.table import Table

DAYS = date("2000-01-01", "2020-12-31")
DECLARED = {"t": text(), "n": number(0, 9), "d": DAYS, "b": boolean(), "c": category(["ok", "5"])}
ASKED = {
    "t": [requests.histogram("t", keys=["ok", "5"]), choices.keys("t"), requests.count("t LIKE '%o%'")],
    "n": [requests.sum("n"), requests.mean("n"), requests.ranks("n", [0, 2, 9]), requests.count("n > 1")],
    "d": [requests.histogram("d", edges=["2000-01-01", "2010-01-01", "2021-01-01"]), requests.count("d IS NULL")],
    "b": [requests.histogram("b"), requests.count("NOT b")],
    "c": [requests.histogram("c"), requests.count("c <> 'ok'")],
}
"""What is asked of a column of each kind; a test gives the same values to one of every kind."""


def check_neighbours(here, there, kinds="tndbc"):
    """Two tables that differ by one unit say the same in public, and no answer moves by more than it may."""
    assert here.describe() == there.describe()
    for request in [requests.count(), requests.count_distinct(), *(asked for kind in kinds for asked in ASKED[kind])]:
        most = here.sensitivities(request)
        l1, squared, each = people.moved(people.found(here, request), people.found(there, request))
        assert l1 <= most.l1 and squared <= most.squared and each <= most.each, request


# CSV

HEADER = b"who,t,n,d,b,c\n"
GOOD = [b"ann,ok,5,2001-01-01,t,ok\n", b'bob,"a, ""b""","3",,"true","5"\n', b"cy,,,,,\r\n"]
HOSTILE = [
    b"",
    b"\r",
    b"eve",
    b"eve,1,2,3,4",
    b"eve,1,2,3,4,5,6",
    b"eve,1,2,3,4,5\r",
    b'eve,"1,2,3,4,5',
    b'eve,1,2,3,4,"5',
    b'"eve,1,2,3,4,5',
    b'eve,1,"2"0,3,4,5',
    b'eve,o"k,2,3,4,5',
    b'"',
    b"eve," + b"\xff\xfe," * 4 + b"\xff",
    b"\xff,1,2,3,4,5",
    b"eve," + b"\xed\xa0\x80," * 4 + b"\xc3",
    b"eve,\0,\0,\0,\0,\0",
    b"eve," + (b"9" * 3_000_000 + b",") * 4 + b"x",
    b"eve,,,,," + b"x" * 2**24,
    b'eve,,,,,"' + b"x" * 2**24,
    b"eve,99999999999-01-01,1e999999,99999999999-01-01,2,3",
]


@pytest.mark.parametrize("unit", [each_row, "who"])
def test_a_hostile_line_of_a_csv_file_is_at_most_one_row(tmp_path, unit):
    def bind(rows):
        (tmp_path / "a.csv").write_bytes(HEADER + b"".join(rows))
        return Table(tmp_path / "a.csv", unit, rows_per_unit=1, columns=DECLARED)

    here = bind(GOOD)
    for i, line in enumerate(HOSTILE):
        place = i % (len(GOOD) + 1)
        check_neighbours(here, bind([*GOOD[:place], line + b"\n", *GOOD[place:]]))


@settings(max_examples=40, deadline=None)
@given(lines, st.sampled_from([b"\n", b"\r\n"]), st.integers(0, 3))
def test_any_bytes_in_a_line_of_a_csv_file_are_at_most_one_row(tmp_path_factory, line, end, place):
    path = tmp_path_factory.mktemp("csv") / "a.csv"
    tables = []
    for rows in (GOOD, [*GOOD[:place], line + end, *GOOD[place:]]):
        path.write_bytes(HEADER + b"".join(rows))
        tables.append(Table(path, unit=each_row, columns=DECLARED))
    check_neighbours(*tables)


# texts that are none, wherever texts come from


def texts(values):
    """An Arrow array of these bytes, whether or not they are UTF-8."""
    ends = np.cumsum([0, *map(len, values)]).astype(np.int32)
    return pa.StringArray.from_buffers(len(values), pa.py_buffer(ends.tobytes()), pa.py_buffer(b"".join(values)))


def in_arrow(tmp_path, values):
    return pa.table(dict.fromkeys([*DECLARED, "who"], texts(values)))


def in_parquet(tmp_path, values, encoding=None):
    more = {} if encoding is None else {"use_dictionary": False, "column_encoding": encoding}
    pyarrow.parquet.write_table(in_arrow(tmp_path, values), tmp_path / "a.parquet", **more)
    return tmp_path / "a.parquet"


def of_arrow(tmp_path, values):
    column = pd.Series(pd.arrays.ArrowExtensionArray(pa.chunked_array([texts(values)])))
    return pd.DataFrame(dict.fromkeys([*DECLARED, "who"], column))


def as_objects(tmp_path, values):
    decoded = pd.Series([value.decode("utf-8", "surrogateescape") for value in values], dtype=object)
    return pd.DataFrame(dict.fromkeys([*DECLARED, "who"], decoded), dtype=object)


def as_category(tmp_path, values):
    kept = list(dict.fromkeys(values))
    decoded = pd.Index([value.decode("utf-8", "surrogateescape") for value in kept], dtype=object)
    column = pd.Series(pd.Categorical.from_codes([kept.index(value) for value in values], categories=decoded))
    return pd.DataFrame(dict.fromkeys([*DECLARED, "who"], column))


INPUTS = {
    "arrow": in_arrow,
    "parquet with a dictionary": in_parquet,
    "parquet": lambda *given: in_parquet(*given, "PLAIN"),
    "parquet by lengths": lambda *given: in_parquet(*given, "DELTA_LENGTH_BYTE_ARRAY"),
    "parquet by differences": lambda *given: in_parquet(*given, "DELTA_BYTE_ARRAY"),
    "pandas of objects": as_objects,
    "pandas category": as_category,
    "pandas of Arrow": of_arrow,
}
NO_TEXTS = [b"\xff\xfe", b"\xed\xa0\x80", b"ok\xff", b"\xc3", b"a text that is longer than twelve bytes \xf0\x9f\x98"]
TEXTS = [b"ok", b"5", "Zürich \ufffd".encode()]


@pytest.mark.parametrize("unit", [each_row, "who"])
@pytest.mark.parametrize("given", INPUTS)
def test_a_text_that_is_not_utf8_is_missing_and_takes_nothing_with_it(tmp_path, given, unit):
    def bind(values):
        return Table(INPUTS[given](tmp_path, values), unit, rows_per_unit=1, columns=DECLARED, key=b"k" * 32)

    here = bind(TEXTS)
    for i, bad in enumerate(NO_TEXTS):
        place = i % (len(TEXTS) + 1)
        check_neighbours(here, bind([*TEXTS[:place], bad, *TEXTS[place:]]))
    together = bind([*TEXTS, *NO_TEXTS])
    kept = people.found(together, requests.histogram("t", keys=["ok", "5", "Zürich \ufffd", "ok?"]))
    assert kept == (1, 1, 1, 0)
    missing = people.found(together, requests.count("t IS NULL"))
    assert missing == ((len(NO_TEXTS),) if unit is each_row else (0,)), "without a unit, a row is left out"


@pytest.mark.parametrize("given", INPUTS)
def test_units_that_differ_in_what_is_not_utf8_are_never_taken_for_one_that_is(tmp_path, given):
    source = Table(INPUTS[given](tmp_path, [b"7", b"7\xff", b"\xfe7", b"7?", b"7\xff"]), "who", 9)
    assert people.found(source, requests.count()) == people.found(source, requests.count_distinct()) == (2,)


# times

FAR = [2**62, -(2**62), 2**63 - 1, -(2**63) + 1, 10**15]
HELD = {
    "arrow": "s ms us ns",
    "polars": "ms us ns",
    "pandas": "s ms us ns",
    "of Arrow": "s ms us ns",
    "parquet": "us ns",
}


@pytest.mark.parametrize(("given", "unit"), [(given, unit) for given, units in HELD.items() for unit in units.split()])
def test_a_time_beyond_every_calendar_becomes_the_nearer_bound(tmp_path, given, unit):
    def bind(values):
        frame = pa.table({"d": pa.array(values, pa.timestamp(unit)), "i": range(len(values))})
        if given == "parquet":
            pyarrow.parquet.write_table(frame, tmp_path / "a.parquet")
        data = {
            "arrow": lambda: frame,
            "polars": lambda: pl.from_arrow(frame),
            "pandas": lambda: pd.DataFrame({"d": np.array(values, f"datetime64[{unit}]"), "i": range(len(values))}),
            "of Arrow": lambda: frame.to_pandas(types_mapper=pd.ArrowDtype),
            "parquet": lambda: tmp_path / "a.parquet",
        }[given]()
        return Table(data, unit=each_row, columns={"d": DAYS})

    here = bind([0, 1])
    for far in FAR:
        check_neighbours(here, bind([0, far, 1]), "d")
    days = [far // (86_400 * {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[unit]) for far in FAR]
    late, early = sum(day >= DAYS.most for day in days), sum(day <= DAYS.least for day in days)
    assert people.found(bind(FAR), requests.histogram("d", keys=["2020-12-31", "2000-01-01"])) == (late, early)


# objects of a pandas column, and values of PostgreSQL


class Unspeakable:
    def __str__(self):
        raise ValueError("nothing")


class Half:
    def __str__(self):
        return "half \ud800"


OBJECTS = [
    "\ud800",
    "a\0b",
    Unspeakable(),
    Half(),
    object(),
    b"\xff",
    10**5000,
    -(10**400),
    Decimal("sNaN"),
    Decimal("1e999999"),
    float("nan"),
    [1],
    {"x": "\ud800"},
    np.array([1, 2]),
    datetime.datetime.max,
    datetime.timedelta.max,
    pd.NaT,
    pd.NA,
    pd.Timestamp("2020-01-01", tz="UTC"),
    1j,
    ...,
    "x" * 3_000_000,
]


def test_objects_make_no_other_type_of_a_pandas_category_than_texts_do():
    kept = [["ok"], [datetime.datetime(2020, 1, 1)], [1.5, "x"], [datetime.date(2020, 1, 1)]]
    frames = [pd.DataFrame({"t": pd.Categorical(some, categories=pd.Index(some, dtype=object))}) for some in kept]
    assert len({Table(frame, unit=each_row).describe() for frame in frames}) == 1


def test_an_object_that_cannot_be_read_is_missing_and_never_a_type():
    def bind(values):
        column = np.empty(len(values), dtype=object)
        column[:] = values
        series = pd.Series(column, dtype=object)
        return Table(pd.DataFrame(dict.fromkeys(DECLARED, series), dtype=object), unit=each_row, columns=DECLARED)

    for good in (["ok", 5, None], []):
        here = bind(good)
        for i, bad in enumerate(OBJECTS):
            place = i % (len(good) + 1)
            check_neighbours(here, bind([*good[:place], bad, *good[place:]]))


@pytest.mark.parametrize(
    ("column", "bad", "kind"),
    [
        ("timestamp", "'infinity'", "d"),
        ("timestamp", "'-infinity'", "d"),
        ("timestamp", "'4713-01-01 BC'", "d"),
        ("timestamp", "'294276-12-31'", "d"),
        ("date", "'infinity'", "d"),
        ("date", "'5874897-12-31'", "t"),
        ("numeric", "'NaN'", "n"),
        ("numeric", "'Infinity'", "n"),
        ("numeric", "1e131000", "n"),
        ("numeric", "1e-16000", "n"),
        ("double precision", "5e-324", "n"),
        ("text", "repeat('9', 3000000)", "n"),
        ("text", "repeat('x', 3000000)", "t"),
        ("text", "repeat('t', 3000000)", "b"),
        ("text", "repeat('x', 3000000)", "c"),
        ("text", "repeat('2', 3000000)", "d"),
        ("text", "'1e-999'", "n"),
        ("text", "repeat(' ', 300) || '5'", "n"),
        ("char(3)", "''", "t"),
    ],
)
def test_a_hostile_value_in_postgres_is_at_most_one_row(column, bad, kind):
    def bind(values):
        name = f"hostile_{next(engines._numbers)}"
        filled = [f"INSERT INTO {name} VALUES ({value})" for value in values]
        engines.execute(f"CREATE TABLE {name} ({kind} {column})", *filled)
        return Table(engines.url(), unit=each_row, columns={kind: DECLARED[kind]}, relation=name, key=b"k" * 32)

    good = {"text": "'ok'", "char(3)": "'ok'", "numeric": "5", "double precision": "5"}.get(column, "'2020-01-01'")
    check_neighbours(bind([good]), bind([bad, good]), kind)


@pytest.mark.parametrize("engine", ["duckdb", "postgres", "spark"])
def test_a_number_of_more_than_200_characters_is_missing_in_every_engine_and_in_a_stream(engine):
    written = [" " * 199 + "5", " " * 200 + "5", "5" + " " * 200, "0" * 30, "0" * 300]
    frame = pa.table({"x": written, "k": written})
    declared = {"x": number(0, 9), "k": category([5, 0])}
    source = engines.bound(engine, frame, columns=declared)
    assert people.found(source, requests.count("x = 5 AND k = 5")) == (1,)
    assert people.found(source, requests.count("x IS NULL AND k IS NULL")) == (3,)
    fields = Fields.of(declared)
    stored = [fields.fit({"x": value, "k": value}) for value in written]
    assert stored == [(5, 5), (None, None), (None, None), (0, 0), (None, None)]


def test_a_row_of_long_texts_is_spelled_out_in_bounds_and_still_told_from_another():
    frame = pa.table({"a": ["x" * 999_999 + end for end in "abb"], "b": ["y" * 500_000] * 3, "u": ["z" * 10**6] * 3})
    source = Table(frame, "u", 3)
    row = loading.content(source.declaration, source._bound.engine.dialect)
    found = source._bound.engine.run(f"SELECT LENGTH({row}), {row} FROM bound")
    assert all(length < 1000 for length, _ in found) and len({spelled for _, spelled in found}) == 2
    for by in (source.spread("a", 1), Table(frame, "u", 2, key=b"k" * 32)):
        assert people.found(by, requests.count())[0] in (1, 2)


# types


@pytest.mark.parametrize(
    ("frame", "said"),
    [
        (pa.table({"y": [1], "x": pa.array([np.float16(1)])}), "column 'x' is of type halffloat"),
        (pa.table({"x": pa.array([Decimal(1)], pa.decimal256(70, 0))}), "column 'x' is of type decimal256(70, 0)"),
        (pl.DataFrame({"y": [1], "x": pl.Series([2**100], dtype=pl.Int128)}), "column 'x' is of type Int128"),
        (pd.DataFrame({"y": [1], "x": [1j]}), "column 'x' is of type complex128"),
        (pd.DataFrame({"x": pd.period_range("2020", periods=1), "y": [1]}), "column 'x' is of type period[D]"),
    ],
)
def test_a_column_of_a_type_that_cannot_be_read_is_named(frame, said):
    with pytest.raises(InvalidParameter) as refused:
        Table(frame, unit=each_row)
    assert said in str(refused.value) and "convert it, or leave it out" in str(refused.value)
    without = frame.slice(0, 0) if not isinstance(frame, pd.DataFrame) else frame.iloc[:0]
    with pytest.raises(InvalidParameter) as again:
        Table(without, unit=each_row)
    assert str(again.value) == str(refused.value), "whatever the rows"


def test_a_declaration_that_does_not_suit_a_type_names_the_column():
    frame = pa.table({"name": ["a"], "blob": [b"x"], "f": [0.5]})
    for more, said in (
        ({"columns": {"blob": text()}}, "column 'blob' of type BLOB cannot be declared as a text"),
        ({"unit": "f", "rows_per_unit": 1}, "column 'f' of type DOUBLE cannot name the unit"),
    ):
        with pytest.raises(CounterpointError, match=said):
            Table(frame, **{"unit": each_row, **more})


def test_the_embedded_engine_writes_no_progress_bar_to_the_output():
    table = Table(pd.DataFrame({"age": [1]}), unit=each_row)
    for engine in (table.embedded, empty_engine("CREATE TABLE rows (age BIGINT)")):
        assert engine.run("SELECT current_setting('enable_progress_bar')") == [(False,)]

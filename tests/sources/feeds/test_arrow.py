"""Feeding from Arrow: the same items as records appended one by one, in any cut, and refusals by the schema alone."""

from datetime import date, datetime

import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.engines.test_engines import edges
from tests.sources import people

import counterpoint as cp
from counterpoint.errors import FeedFailed, InvalidParameter, InvalidRequest

FIELDS = {
    "x": cp.number(-5, 9, step="0.5"),
    "n": cp.category([1, 2, 3]),
    "s": cp.text(),
    "b": cp.boolean(),
    "d": cp.date("2020-01-01", "2020-12-31"),
    "m": cp.number(0, 1, step="0.01"),
}
SCHEMA = pa.schema(
    {"x": pa.float64(), "n": pa.int32(), "s": pa.string(), "b": pa.bool_(), "d": pa.date32(), "m": pa.decimal128(9, 4)}
    | {"who": pa.string(), "unused": pa.int64()}
)
rows = st.fixed_dictionaries(
    {
        "x": st.none() | st.floats(width=32),
        "n": st.none() | st.integers(-2, 5),
        "s": st.none() | st.text("aé😀\n'", max_size=3),
        "b": st.none() | st.booleans(),
        "d": st.none() | st.dates(date(1990, 1, 1), date(2030, 1, 1)),
        "m": st.none() | st.decimals(-9, 9, places=4),
        "who": st.none() | st.sampled_from(["ann", "bob"]),
    }
)


def stream(**level):
    return cp.Stream(fields=FIELDS, **level)


@settings(max_examples=60)
@given(
    st.lists(rows, max_size=20), st.lists(st.integers(1, 6), min_size=1, max_size=5), st.integers(1, 7), st.booleans()
)
def test_rows_of_arrow_arrive_as_the_same_items_as_records(given_rows, cuts, size, at_user_level):
    level = {"unit": "who", "per_unit": 2} if at_user_level else {}
    appended, fed = stream(**level), stream(**level)
    names = [*FIELDS, *(["who"] if at_user_level else [])]
    appended.extend([{name: row[name] for name in names} for row in given_rows])
    table = pa.Table.from_pylist([{**row, "unused": 1} for row in given_rows], schema=SCHEMA)
    batches, place = [], 0
    for cut in (cuts * 20)[:20]:
        batches += table.slice(place, cut).to_batches()
        place += cut
    reader = pa.RecordBatchReader.from_batches(SCHEMA, batches)
    assert fed.feed(reader, name="rows", batch=size) == len(given_rows)
    assert fed.log.items == appended.log.items and fed.log._owners == appended.log._owners


def test_values_at_every_edge_arrive_as_a_table_would_store_them():
    frame, columns = edges()
    source = cp.Table(frame, unit=cp.each_row, columns=columns)
    fed = cp.Stream(fields={named.name: named.column for named in source.declaration.columns if named.declared})
    assert fed.feed(frame, name="edges", batch=7) == frame.num_rows
    for name, column in columns.items():
        if hasattr(column, "step"):
            asked = cp.mean(name)
            assert people.found(fed, asked) == people.found(source, asked), name


def test_a_reader_is_resumed_behind_the_rows_that_have_arrived():
    table = pa.table({"x": list(range(20))})
    fed = cp.Stream(fields={"x": cp.number(0, 100)})
    assert fed.feed(table.slice(0, 7).to_reader(max_chunksize=3), name="rows") == 7
    assert fed.feed(table.to_reader(max_chunksize=6), name="rows", batch=4) == 13
    assert fed.feed(table.slice, name="rows") == 0
    assert [item[0] for item in fed.log.items] == list(range(20))
    with pytest.raises(FeedFailed, match="20 items of feed 'rows' have arrived, and the source has fewer"):
        fed.feed(table.slice(1), name="rows")
    assert fed.feed(pl.DataFrame({"x": [5, 6]}), name="polars") == 2, "anything with Arrow's C stream protocol"


def test_a_torn_reader_leaves_whole_batches_and_says_nothing_about_the_data():
    schema = pa.schema({"x": pa.int64()})

    def batches():
        yield from pa.table({"x": [1, 2, 3]}, schema=schema).to_batches()
        raise ValueError("the secret is 31337")

    fed = cp.Stream(fields={"x": cp.number(0, 100)})
    with pytest.raises(FeedFailed) as failed:
        fed.feed(pa.RecordBatchReader.from_batches(schema, batches()), name="rows", batch=2)
    assert failed.value.__cause__ is failed.value.__context__ is None and "31337" not in str(failed.value)
    assert fed.log.items == [(1,), (2,), (3,)]


def test_texts_that_are_not_utf8_and_times_beyond_the_calendar_are_missing_and_their_rows_arrive():
    broken = pa.array([b"ok", b"\xff\xfe"], pa.binary()).cast(pa.string(), safe=False)
    times = pa.array([datetime(2020, 5, 5), None], pa.timestamp("ns"))
    far = pa.array([2**31 - 2, -(2**31) + 10], pa.int32()).view(pa.date32())
    fields = {"s": cp.text(), "t": cp.date("2020-01-01", "2020-12-31"), "f": cp.date("2020-01-01", "2020-12-31")}
    fed = cp.Stream(fields=fields)
    assert fed.feed(pa.table({"s": broken, "t": times, "f": far}), name="rows") == 2
    first, second = fed.log.items
    assert first[0] == "ok" and second[:2] == (None, None)
    assert first[2] == fields["f"].most and second[2] == fields["f"].least


def test_what_does_not_fit_the_declaration_is_refused_by_its_type_before_anything_arrives():
    fed = cp.Stream(fields={"x": cp.number(0, 9)}, unit="who", per_unit=1)
    cases = {
        "cannot be declared as a number": {"x": pa.array([[1]]), "who": ["a"]},
        "cannot name the unit": {"x": [1], "who": [1.5]},
        "has no column 'who', which is declared; it has: x": {"x": [1]},
        "has no column 'x'": {"who": ["a"]},
    }
    for message, columns in cases.items():
        with pytest.raises(InvalidParameter, match=message):
            fed.feed(pa.table(columns), name="rows")
    with pytest.raises(InvalidRequest, match="not records: declare them with fields"):
        cp.Stream().feed(pa.table({"x": [1]}), name="rows")
    import pandas as pd

    with pytest.raises(InvalidParameter, match="not a DataFrame"):
        fed.feed(pd.DataFrame({"x": [1], "who": ["a"]}), name="rows")
    assert fed.pin() == 0

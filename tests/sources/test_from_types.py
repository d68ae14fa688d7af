"""Declarations from types: an Arrow schema, dtypes or a mapping; they print as code that makes them again."""

from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.engines import engines
from tests.sources import people

import counterpoint as cp
from counterpoint.errors import InvalidParameter

TYPES = {
    "year": int,
    "name": str,
    "late": bool,
    "delay": float,
    "price": Decimal,
    "day": date,
    "at": datetime,
    "tags": list,
}


def test_a_mapping_of_types_declares_what_needs_no_bounds():
    found = cp.columns_from(TYPES)
    assert dict(found) == {"year": cp.whole(), "name": cp.text(), "late": cp.boolean()}
    assert set(found.undeclared) == {"delay", "price", "day", "at", "tags"}
    assert found.undeclared["delay"] == "cp.number(low, high)"
    assert "no declaration fits" in found.undeclared["tags"]


@pytest.mark.parametrize(
    "types",
    [
        pa.schema(
            [("i", pa.int32()), ("u", pa.uint64()), ("s", pa.large_string()), ("b", pa.bool_()), ("f", pa.float32())]
        ),
        pd.DataFrame({"i": [1], "u": [1], "s": ["a"], "b": [True], "f": [0.5]}).dtypes,
        pl.DataFrame({"i": [1], "u": [1], "s": ["a"], "b": [True], "f": [0.5]}).schema,
        {"i": "int64", "u": "bigint", "s": "varchar", "b": "boolean", "f": "double"},
        {"i": pa.int8(), "u": pd.Int64Dtype(), "s": pd.CategoricalDtype(), "b": pl.Boolean, "f": pl.Decimal(10, 2)},
    ],
)
def test_arrow_pandas_polars_and_sql_name_the_same_types(types):
    found = cp.columns_from(types)
    assert dict(found) == {"i": cp.whole(), "u": cp.whole(), "s": cp.text(), "b": cp.boolean()}
    assert list(found.undeclared) == ["f"]


def test_only_the_schema_of_a_table_is_read():
    class Schema:
        def __arrow_c_schema__(self):
            return pa.schema([("i", pa.int32())]).__arrow_c_schema__()

        def __arrow_c_stream__(self, requested_schema=None):
            raise AssertionError("rows were read")

    assert cp.columns_from(Schema()) == {"i": cp.whole()}


def test_anything_else_is_refused_with_what_would_work():
    with pytest.raises(InvalidParameter, match="Arrow schema"):
        cp.columns_from([("age", int)])


def test_it_is_edited_as_a_dictionary_is():
    found = cp.columns_from({"year": int, "delay": float})
    found["delay"] = cp.number(-60, 1500)
    assert "# 'delay'" not in repr(found) and eval(repr(found), {"cp": cp}) == found


STEPS = [Fraction(step) for step in ("1", "0.25", "1e-9", "1/3", "7/11", "5")]
numbers = st.builds(
    lambda low, width, step: cp.number(low * step, (low + width) * step, step),
    st.integers(-1000, 1000),
    st.integers(1, 1000),
    st.sampled_from(STEPS),
)
declared = st.one_of(
    numbers,
    st.lists(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")), min_size=1, unique=True).map(
        cp.category
    ),
    st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, unique=True).map(cp.category),
    st.sampled_from([cp.text(), cp.boolean(), cp.whole(), cp.date("2020-01-01", "2020-12-31")]),
)


@given(st.dictionaries(st.text(), declared))
def test_the_printed_code_makes_the_same_declaration(columns):
    assert eval(repr(cp.schema.Columns(columns, {})), {"cp": cp}) == columns


@pytest.mark.parametrize("engine", ["duckdb", "postgres", "spark"])
def test_texts_are_read_as_whole_numbers_and_everything_else_is_missing(engine):
    written = ["7", "-3", " 12 ", "+5", str(2**63 - 1), str(2**63), str(-(2**63)), "1" * 30, "1" * 31, "9" * 300, "1.0"]
    others = ["", "1.5", "1e3", "seven", "0x10", "٣", None, "7\n"]
    frame = pa.table({"n": pa.array([*written, *others], pa.string())})
    table = engines.bound(engine, frame, columns={"n": cp.whole()})
    counted = people.found(table, cp.count(by="n", keys=[7, -3, 12, 5, 2**63 - 1, -(2**63), 1]))
    assert counted == (1,) * 7
    assert people.found(table, cp.count(where="n IS NOT NULL")) == (7,)


def test_a_stream_refuses_whole_numbers_without_bounds_with_what_would_work():
    with pytest.raises(InvalidParameter, match="declared as number"):
        cp.Stream(fields={"n": cp.whole()})


@pytest.mark.parametrize("columns", [{"n": int}, pa.schema([("n", pa.int64())])])
def test_types_in_the_place_of_declarations_are_refused_with_the_function_that_takes_them(columns):
    with pytest.raises(InvalidParameter, match="columns_from"):
        cp.Table(pa.table({"n": [1]}), unit=cp.each_row, columns=columns)

"""Declarations from a public sample: its values become bounds and keys, and nothing is read of the protected rows."""

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from tests.sources import people

import counterpoint as cp
from counterpoint.errors import InvalidParameter

SAMPLE = {
    "who": ["a", "b", "c", "d"],
    "age": [41, 17, None, 30],
    "pay": [1.25, 2.0, float("nan"), float("inf")],
    "state": ["NY", "CA", "CA", "NY"],
    "late": [True, None, False, True],
    "big": [2**63, 1, 2, 3],
    "same": [5, 5, 5, 5],
    "none": pa.array([None] * 4, pa.float64()),
    "day": pa.array(["2024-02-29", "2023-01-01", None, "2023-01-01"]).cast(pa.date32()),
    "tags": [["x"], [], [], []],
}
LIKE = {
    "who": cp.text(),
    "age": cp.number(17, 41),
    "pay": cp.number("1.25", 2, "0.01"),
    "state": cp.category(["CA", "NY"]),
    "late": cp.boolean(),
    "big": cp.whole(),
    "same": cp.number(5, 6),
    "day": cp.date("2023-01-01", "2024-02-29"),
}
CSV = """code,age,pay,state,late,day,mixed,empty,zip
N1,41,1.25,NY,true,2024-02-29,1,,02139
N2,17,2.0,CA,False,2023-01-01,x,,10001
N3,,,CA,,,y,,02139
N4,-3,1e2,NY,TRUE,2023-06-01,x,,02139
"""


def test_the_values_of_the_sample_become_bounds_and_keys():
    found = cp.columns_like(pa.table({**SAMPLE, "big": pa.array(SAMPLE["big"], pa.uint64())}), public=True)
    assert dict(found) == LIKE
    assert found.undeclared["none"] == "cp.number(low, high)" and "no declaration fits" in found.undeclared["tags"]
    assert eval(repr(found), {"cp": cp}) == LIKE


@pytest.mark.parametrize("public", [False, None, 1, "yes"])
def test_it_must_be_said_that_the_sample_is_public(public):
    class Untouchable:
        def __arrow_c_stream__(self, requested_schema=None):
            raise AssertionError("rows were read")

    with pytest.raises(InvalidParameter, match=r"public=True.*Never give the data"):
        cp.columns_like(Untouchable(), public=public)
    with pytest.raises(InvalidParameter, match="public=True"):
        cp.columns_like(Untouchable())


def test_a_csv_is_read_as_all_values_of_a_column_allow(tmp_path):
    path = tmp_path / "sample.csv"
    path.write_text(CSV)
    assert dict(cp.columns_like(path, public=True)) == {
        "code": cp.text(),
        "age": cp.number(-3, 41),
        "pay": cp.number("1.25", 100, "0.01"),
        "state": cp.category(["CA", "NY"]),
        "late": cp.boolean(),
        "day": cp.date("2023-01-01", "2024-02-29"),
        "mixed": cp.text(),
        "empty": cp.text(),
        "zip": cp.category(["02139", "10001"]),
    }
    table = cp.Table(path, unit="code", rows_per_unit=1, columns=cp.columns_like(str(path), public=True))
    assert people.found(table, cp.sum("age")) == (55,) and people.found(table, cp.count(by="late")) == (1, 2)


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame, pa.table])
def test_texts_of_a_frame_stay_texts(frame):
    found = cp.columns_like(frame({"zip": ["10001", "10001"], "n": [1, 2]}), public=True)
    assert dict(found) == {"zip": cp.category(["10001"]), "n": cp.number(1, 2)}


def test_many_different_texts_are_no_category():
    many = {
        "few": ["a", "b"] * 150,
        "many": [f"k{i % 101}" for i in range(300)],
        "hundred": [f"k{i % 100}" for i in range(300)],
    }
    found = cp.columns_like(pa.table(many), public=True)
    assert found["few"] == cp.category(["a", "b"]) and found["many"] == cp.text()
    assert len(found["hundred"].keys) == 100


def test_numbers_that_no_step_holds_get_one_that_fits():
    odd = {"fine": [1 / 3, 2 / 3], "huge": [1e200, 2.5], "tiny": [1e-12, 2e-12], "whole": [1.0, 2.0]}
    found = cp.columns_like(pa.table(odd), public=True)
    assert found["fine"] == cp.number("0.333333", "0.666667", "0.000001")
    assert found["whole"] == cp.number(1, 2)
    assert "huge" in found.undeclared and found["tiny"] == cp.number(0, "0.000001", "0.000001")


def test_the_sample_is_not_the_protected_data_and_nothing_is_inferred_from_that():
    sample = pa.table({"age": [20, 30], "state": ["CA", "CA"]})
    rows = pa.table({"who": [1, 2], "age": [99, 25], "state": ["WY", "CA"]})
    columns = cp.columns_like(sample, public=True)
    one = cp.Table(rows, unit="who", rows_per_unit=1, columns=columns)
    other = cp.Table(rows.slice(1), unit="who", rows_per_unit=1, columns=columns)
    assert one.declaration == other.declaration and people.found(one, cp.sum("age")) == (55,)
    assert people.found(one, cp.count(by="state")) == (1,)

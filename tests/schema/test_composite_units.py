"""Units that several columns identify together: no two combinations are confused, and a missing part is no unit."""

from itertools import product

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.engines import engines
from tests.sources import people

import counterpoint as cp
from counterpoint.encoding import decode, digest, encode
from counterpoint.errors import InvalidParameter
from counterpoint.schema.declaration import Declaration

KEY = b"sixteen bytes..."
ENGINES = ["duckdb", "postgres", "spark"]
SPELLED = ["", "a", "b", "ab", "bc", "c", "1:a", ":", "1", "11", "é😀", "a\n", "n", None]
"""Texts that look like parts of each other's spellings."""
COLUMNS = {"age": cp.number(0, 9)}
PARTS = ("hospital", "patient")


def frame(rows):
    names = ("hospital", "patient", "age")
    kinds = (pa.string(), pa.string(), pa.int64())
    return pa.table(
        {
            name: pa.array([row[i] for row in rows], kind)
            for i, (name, kind) in enumerate(zip(names, kinds, strict=True))
        }
    )


def bound(engine, rows, cap=1, **more):
    return engines.bound(engine, frame(rows), list(PARTS), cap, COLUMNS, **more)


@pytest.mark.parametrize("engine", ENGINES)
def test_different_combinations_are_different_units_and_a_missing_part_is_none(engine):
    rows = [(a, b, 1) for a, b in product(SPELLED, SPELLED)] * 2
    table = bound(engine, rows)
    complete = (len(SPELLED) - 1) ** 2
    assert people.found(table, cp.count()) == people.found(table, cp.count_distinct()) == (complete,)


@pytest.mark.parametrize("engine", ENGINES)
def test_numbers_and_dates_identify_units_too(engine):
    data = {
        "a": [1, 11, 1, None],
        "b": ["11", "1", "11", "x"],
        "c": pa.array([0, 0, 0, 0], pa.int32()).cast(pa.date32()),
    }
    table = engines.bound(engine, pa.table(data), ["a", "b", "c"], 5)
    assert people.found(table, cp.count_distinct()) == (2,) and people.found(table, cp.count()) == (3,)


@pytest.mark.parametrize("engine", ENGINES[1:])
def test_all_engines_keep_the_same_rows_of_the_same_units(engine):
    rows = [(a, b, age) for a, b in product(SPELLED, SPELLED[:7]) for age in range(4)]
    one, other = bound("duckdb", rows, 2, key=KEY), bound(engine, rows, 2, key=KEY)
    assert one.pin() == other.pin()
    for request in (cp.count(), cp.sum("age"), cp.count(by="hospital", keys=["a", "ab", "nowhere"])):
        assert people.found(one, request) == people.found(other, request)


units = st.tuples(st.sampled_from(SPELLED), st.sampled_from(SPELLED))
worlds = st.dictionaries(units, st.lists(st.integers(0, 9), min_size=1, max_size=4), max_size=6)
requests = st.sampled_from(
    [
        cp.count(),
        cp.sum("age"),
        cp.count_distinct(),
        cp.count(by="hospital", keys=["a", "ab"]),
        cp.keys("patient"),
        cp.keys("age"),
    ]
)


def listed(world):
    return [(*unit, age) for unit, ages in world.items() for age in ages]


@settings(max_examples=60)
@given(worlds, units, st.lists(st.integers(0, 9), min_size=1, max_size=4), st.integers(1, 3), requests)
def test_no_request_moves_by_more_than_its_sensitivity_without_one_combination(world, unit, rows, cap, request):
    without = {other: ages for other, ages in world.items() if other != unit}
    left, right = bound("duckdb", listed(without), cap), bound("duckdb", listed({**without, unit: rows}), cap)
    stated = left.sensitivities(request)
    l1, squared, each = people.moved(people.found(left, request), people.found(right, request))
    assert l1 <= stated.l1 and squared <= stated.squared and each <= stated.each


@settings(max_examples=40)
@given(worlds)
def test_the_rows_of_a_combination_are_in_one_part_by_each_of_its_columns(world):
    table = bound("duckdb", listed(world), 3)
    assert table.reach("hospital") == table.reach("patient") == 1 and table.reach("age") == 3
    stored = table.all_rows("u, c0, c1")
    assert len({row[0] for row in stored}) == len(set(stored)) == len({row[1:] for row in stored})


def test_keys_of_a_column_of_the_unit_move_by_one():
    table = bound("duckdb", [("a", "b", 1)], 3)
    assert table.sensitivities(cp.keys("patient")).l1 == 1 and table.sensitivities(cp.keys("age")).l1 == 3
    assert table.spread("hospital", 1) is table
    for by, cells in (("hospital", ["a", "ab"]), (["patient", "hospital"], [("b", "a"), ("c", "a")])):
        assert table.sensitivities(cp.count_distinct(by=by, keys=cells)).l1 == 1
    assert table.sensitivities(cp.count_distinct(by=["hospital", "age"], keys=[("a", 1), ("a", 2)])).l1 == 2


def test_a_list_of_one_column_is_that_column_and_stored_alike():
    rows = frame([("a", "b", 1)])
    one, listed_one = (cp.Table(rows, unit=unit, rows_per_unit=1) for unit in ("patient", ["patient"]))
    assert encode(one.declaration) == encode(listed_one.declaration)
    both = cp.Table(rows, unit=PARTS, rows_per_unit=1).declaration
    assert decode(encode(both), Declaration) == both and digest(both) != digest(one.declaration)


def test_it_is_described_in_words():
    said = bound("duckdb", [("a", "b", 1)], 2).describe()
    flat = " ".join(said.split())
    assert "everything about one combination of hospital and patient" in flat
    assert "Rows without a hospital or without a patient are left out" in flat
    assert "unit: combination of hospital and patient" in said
    with pytest.raises(InvalidParameter, match="how many rows of one 'combination of hospital and patient'"):
        cp.Table(frame([]), unit=list(PARTS))


def test_a_rehearsal_has_units_of_the_same_kind():
    session = cp.Session(bound("duckdb", [("a", "b", 1)], 2), within=cp.PureDP(2))
    parts = session.rehearse().partition("hospital", within=cp.PureDP(1))
    assert parts["made up 1"].ask(cp.count(), epsilon=1).made_up


@pytest.mark.parametrize(
    "make",
    [
        lambda: cp.Stream(fields=COLUMNS, unit=list(PARTS), per_unit=2),
        lambda: cp.LiveTable(list(PARTS), 2, key="row", columns=COLUMNS),
        lambda: cp.Sources(stays=bound("duckdb", [("a", "b", 1)]), unit=list(PARTS)),
        lambda: cp.Sources(stays=bound("duckdb", [("a", "b", 1)]), unit=PARTS),
    ],
)
def test_elsewhere_several_columns_are_refused_with_what_would_work(make):
    with pytest.raises(InvalidParameter, match=r"name of one column.*json.dumps"):
        make()

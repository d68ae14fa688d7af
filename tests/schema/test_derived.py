"""Derived columns are columns: computed once, of the row alone, and usable wherever a column is."""

import pytest
from tests.engines import engines
from tests.schema import expressions
from tests.sources import people

from counterpoint.encoding import decode, encode
from counterpoint.errors import InvalidParameter, InvalidRequest
from counterpoint.queries import aggregates as requests
from counterpoint.queries import quantiles as choices
from counterpoint.queries import variance as variances
from counterpoint.schema.columns import number
from counterpoint.schema.declaration import Declaration, derived
from counterpoint.sources.streams.stream import Stream
from counterpoint.sources.table import Table

DERIVED = {
    "late": derived("a > 1.5"),
    "speed": derived("60 * c / b", low=-90, high=90, step="0.5"),
    "month": derived("MONTH(d)"),
    "size": derived("CASE WHEN b > 4 THEN 'many' WHEN b IS NOT NULL THEN 'few' END"),
    "fast": derived("speed > 45 AND late"),
    "next": derived("d + 1"),
}
INLINE = {
    "late": "a > 1.5",
    "speed": "CLAMP(60 * c / b, -90, 90, 0.5)",
    "month": "MONTH(d)",
    "size": "CASE WHEN b > 4 THEN 'many' WHEN b IS NOT NULL THEN 'few' END",
    "fast": "CLAMP(60 * c / b, -90, 90, 0.5) > 45 AND a > 1.5",
}
COLUMNS = {**expressions.COLUMNS, **DERIVED}
ASKED = [
    (requests.sum("speed"), requests.sum(INLINE["speed"])),
    (requests.mean("speed", by="month"), requests.mean(INLINE["speed"], by=INLINE["month"])),
    (variances.variance("speed", "fast"), variances.variance(INLINE["speed"], INLINE["fast"])),
    (requests.count("NOT fast", by="size"), requests.count(f"NOT ({INLINE['fast']})", by=INLINE["size"])),
    (requests.count(by=["late", "month"]), requests.count(by=[INLINE["late"], INLINE["month"]])),
    (choices.median("speed"), choices.median(INLINE["speed"])),
    (requests.count("next > '2000-02-29' OR size = 'few'"), requests.count("d + 1 > '2000-02-29' OR (b <= 4)")),
]


def bound(engine="duckdb", rows=expressions.EDGES, cap=1, **more):
    return engines.bound(engine, expressions.frame(rows), "who", cap, COLUMNS, **more)


@pytest.mark.parametrize("engine", ["duckdb", "postgres", "spark"])
def test_a_derived_column_is_what_its_expression_is(engine):
    table, here = bound(engine, key=b"sixteen bytes..."), bound(key=b"sixteen bytes...")
    assert table.pin() == here.pin(), "every engine stores the same values"
    for named, inline in ASKED:
        assert people.found(table, named) == people.found(here, inline), named
        assert table.sensitivities(named) == here.sensitivities(inline)


def test_a_table_is_partitioned_and_spread_by_a_derived_column():
    rows = [{**row, "who": i % 9} for i, row in enumerate(expressions.EDGES)]
    with bound(rows=rows, cap=20) as table:
        parts = [people.found(table.part("month", month), requests.count()) for month in range(1, 13)]
        assert tuple(count for (count,) in parts) == people.found(table, requests.count(by="month"))
        assert table.spread("month", 3, rows=2).prepare(requests.count()).sensitivity == 6
        assert table.spread("size", 1, rows=2).prepare(requests.count(by="size")).sensitivity == 2


def test_a_declaration_with_derived_columns_is_described_stored_and_rehearsed():
    with bound() as table:
        assert "late: true or false (derived: a > 1.5)" in table.describe()
        declared = table.declaration
        assert decode(encode(declared), Declaration) == declared
        made_up = table.rehearsed()
        for named, _ in ASKED:
            assert made_up.prepare(named) == table.prepare(named)
        (speeds,) = people.found(made_up, requests.count(f"speed = {INLINE['speed']} OR {INLINE['speed']} IS NULL"))
        assert (speeds,) == people.found(made_up, requests.count()), "made-up rows have the values they would have"


@pytest.mark.parametrize(
    ("columns", "why"),
    [
        ({"b": derived("a + 1")}, "is a column of the data"),
        ({"x": derived("a / b")}, "has no grid of its own"),
        ({"x": derived("nothing + 1")}, "there is no column 'nothing'"),
        ({"x": derived("y + 1"), "y": derived("a")}, "there is no column 'y'"),
        ({"x": derived("3")}, "needs a column"),
        ({"x": derived("a; DROP TABLE bound")}, "does not support ';'"),
        ({"x": derived("a", low=3, high=1)}, "low must be below high"),
    ],
)
def test_what_cannot_be_derived_is_refused_before_any_row_is_read(columns, why):
    with pytest.raises(InvalidParameter, match=why):
        Table(expressions.frame([]), "who", 1, {**expressions.COLUMNS, **columns})


def test_streams_say_that_they_take_no_derived_columns():
    with pytest.raises(InvalidParameter, match="must be declared as number"):
        Stream(unit="who", per_unit=1, fields={"a": number(0, 9), "x": derived("a + 1")})
    with pytest.raises(InvalidRequest):
        derived(5)

"""Rows per unit per group: what a spread table keeps of a unit, and how far its answers move."""

from itertools import combinations_with_replacement, product

import pyarrow as pa
import pytest
from tests.engines import engines
from tests.sources import people

from counterpoint.errors import InvalidParameter, InvalidRequest
from counterpoint.queries import aggregates as requests
from counterpoint.queries import quantiles as choices
from counterpoint.queries import variance as variances
from counterpoint.queries.sensitivity import Groups, sum_sensitivities
from counterpoint.schema.columns import category, number

KEY = b"sixteen bytes..."
COLUMNS = {"month": category(range(1, 13)), "carrier": category(["UA", "AA"]), "late": number(-2, 3)}


def flights(rows, engine="duckdb", cap=20, neighbours="add-or-remove", key=KEY):
    """A table of (plane, month, carrier, late)."""
    names = ("plane", "month", "carrier", "late")
    kinds = (pa.int64(), pa.int64(), pa.string(), pa.int64())
    data = {name: pa.array([row[i] for row in rows], kinds[i]) for i, name in enumerate(names)}
    return engines.bound(engine, pa.table(data), "plane", cap, COLUMNS, neighbours=neighbours, key=key)


@pytest.mark.parametrize("neighbours", ["add-or-remove", "replace"])
def test_three_months_with_two_rows_each_have_a_sensitivity_of_six(neighbours):
    with flights([], neighbours=neighbours) as table:
        assert table.prepare(requests.count()).sensitivity == 20
        narrow = table.spread("month", 3, rows=2)
        twice = 2 if neighbours == "replace" else 1
        assert narrow.prepare(requests.count()).sensitivity == 6
        by_month = narrow.sensitivities(requests.count(by="month"))
        assert by_month == (6 * twice, 12 * twice, 2)
        assert narrow.sensitivities(requests.count(by=["carrier", "month"])) == (6 * twice, 12 * twice, 2)
        assert narrow.sensitivities(requests.count(by="month", keys=[7]))[0] == 2, "one month is asked about"
        assert narrow.sensitivities(requests.count(by="carrier")) == (6 * twice, 36 * twice, 6)
        assert narrow.part("month", 3).prepare(requests.count()).sensitivity == 2
        assert narrow.reach("month") == 3 * twice
        assert narrow.spread("month", 2).prepare(requests.count()).sensitivity == 4
        assert narrow.prepare(choices.median("late")).sensitivity < table.prepare(choices.median("late")).sensitivity


def test_limits_that_limit_nothing_are_the_table_itself_and_limits_below_one_are_refused():
    with flights([], cap=4) as table:
        assert table.spread("month", 4, rows=4) is table
        assert table.spread("month", 4, rows=3).prepare(requests.count()).sensitivity == 4
        for wrong in (0, -1, 1.5, True):
            with pytest.raises(InvalidParameter):
                table.spread("month", 2, rows=wrong)
        with pytest.raises(InvalidRequest, match="spread first"):
            table.part("month", 1).spread("month", 2, rows=1)


SMALL = [(month, carrier, late) for month in (1, 2, 3) for carrier in ("UA", "AA") for late in (-2, 3)]


def contribution(rows):
    """What the rows of a unit add to counts and sums by month and carrier: a vector."""
    cells = {(month, carrier): [0, 0] for month, carrier, _ in SMALL}
    for month, carrier, late in rows:
        cells[month, carrier][0] += 1
        cells[month, carrier][1] += late
    return tuple(cells.values())


@pytest.mark.parametrize("neighbours", ["add-or-remove", "replace"])
@pytest.mark.parametrize(("groups", "each"), [(1, 1), (2, 1), (1, 2), (2, 2)])
def test_no_unit_within_its_limits_moves_a_vector_farther_and_one_moves_it_as_far(groups, each, neighbours):
    units = [
        rows
        for size in range(groups * each + 1)
        for rows in combinations_with_replacement(SMALL, size)
        if len({month for month, *_ in rows}) <= groups
        and all(sum(month == row[0] for row in rows) <= each for month in (1, 2, 3))
    ]
    for place, corners in ((0, [(1, 0), (0, 1)]), (1, [(-2, 0), (0, -2), (3, 0), (0, 3)])):
        vectors = sorted({tuple(cell[place] for cell in contribution(rows)) for rows in units})
        others = vectors if neighbours == "replace" else [(0,) * 6]
        moves = [tuple(abs(a - b) for a, b in zip(*pair, strict=True)) for pair in product(vectors, others)]
        farthest = (max(map(sum, moves)), max(sum(x * x for x in move) for move in moves), max(map(max, moves)))
        assert sum_sensitivities(corners, 20, neighbours, Groups(groups, each)) == farthest


ROWS = [
    (plane, (plane + i) % 5 + 1, ("UA", "AA")[i % 2], (i * i) % 6 - 2)
    for plane in range(6)
    for i in range(2 + 3 * plane)
]


@pytest.mark.parametrize("engine", ["duckdb", "postgres", "spark"])
def test_every_engine_keeps_the_same_rows_of_each_unit_within_the_limits(engine):
    with flights(ROWS, engine) as table:
        narrow = table.spread("month", 3, rows=2)
        found = [people.found(narrow, request) for request in ASKED]
        for plane in range(6):
            months = people.found(narrow, requests.count(f"plane = {plane}", by="month"))
            assert sum(map(bool, months)) <= 3 and max(months) <= 2
            if engine == "spark":
                break  # the answers below are compared, and each costs half a second
    with flights(ROWS[::-1]) as here:
        assert [people.found(here.spread("month", 3, rows=2), request) for request in ASKED] == found


ASKED = [requests.count(), requests.sum("late", by=["carrier", "month"]), requests.mean("late", by="month")]


@pytest.mark.parametrize("neighbours", ["add-or-remove", "replace"])
def test_neighbouring_tables_stay_within_the_sensitivities_and_errors_are_the_same(neighbours):
    requests_ = [*ASKED, variances.variance("late", by="month"), requests.count(by="month"), choices.keys("plane")]
    for plane in range(6):
        without = [row for row in ROWS if row[0] != plane]
        other = [*without, *((plane, 1 + i % 2, "UA", 3) for i in range(9))] if neighbours == "replace" else without
        with flights(ROWS, neighbours=neighbours) as one, flights(other, neighbours=neighbours) as two:
            left, right = one.spread("month", 3, rows=2), two.spread("month", 3, rows=2)
            for request in requests_:
                moved = people.moved(people.found(left, request), people.found(right, request))
                assert all(m <= s for m, s in zip(moved, left.sensitivities(request), strict=True)), request


def test_made_up_rows_keep_the_limits_of_the_view():
    with flights(ROWS) as table:
        rehearsed = table.spread("month", 3, rows=2).rehearsed()
        assert rehearsed.prepare(requests.count()).sensitivity == 6
        assert rehearsed.fingerprint() is None

"""Expressions mean what they say, in Python and on every engine, and no row makes one fail."""

from fractions import Fraction
from functools import lru_cache

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from tests.engines import engines
from tests.schema import expressions
from tests.sources import people

from counterpoint.errors import InvalidRequest
from counterpoint.queries import aggregates as requests
from counterpoint.queries import quantiles as choices
from counterpoint.queries import variance as variances
from counterpoint.queries.contributions import contribution
from counterpoint.schema.columns import number
from counterpoint.schema.declaration import derived
from counterpoint.schema.expressions.conditions import condition
from counterpoint.schema.expressions.evaluate import evaluator, term_reader
from counterpoint.sources.streams.live_table import LiveTable
from counterpoint.sources.streams.stream import Stream

DECLARED = expressions.declared()
LOW, HIGH, STEP = -50, 50, Fraction(1, 4)


def clamped(text):
    return f"CLAMP({text}, {LOW}, {HIGH}, {STEP.numerator} / {STEP.denominator})"


REFUSED = ("digits", "too long", "nested", "a column", "divides by 0", "2^62", "at most 10000 operations")
"""Why an expression may be refused that is well formed: it is too large, or about no row."""


def read(text, reader=lambda text: DECLARED.find(clamped(text))):
    """What a text means; an example that is refused for its size, or because it is a literal, is left out."""
    try:
        return reader(text)
    except InvalidRequest as refused:
        assume(not any(why in str(refused) for why in REFUSED))
        raise


@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow])
@given(expressions.numbers, st.lists(expressions.rows, min_size=1, max_size=8))
def test_a_value_is_computed_exactly_and_rounded_once(expression, rows):
    text, meaning = expression
    computed = term_reader(read(text))
    for row in rows:
        value = meaning(row)
        wanted = None if value is None else expressions.nearest(value, LOW, HIGH, STEP) / STEP
        assert computed(expressions.as_stored(row)) == wanted, (text, row)


@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow])
@given(expressions.wheres, st.lists(expressions.rows, min_size=1, max_size=8))
def test_a_condition_on_expressions_holds_where_its_meaning_does(where, rows):
    text, meaning = where
    holds = evaluator(read(text, lambda where: condition(where, DECLARED)))
    for row in rows:
        assert holds(expressions.as_stored(row)) is meaning(row), (text, row)


ROWS = expressions.EDGES
STORED = [expressions.as_stored(row) for row in ROWS]
TRICKY = [
    "a - b",
    "60 * c / a",
    "b / (a / (b - 5))",
    "1 / a + 1 / b - 1 / (c + 1)",
    "c * c * c / 7",
    "w - c",
    "ABS(w) / 3",
    "CASE WHEN a / b > 0.5 THEN c ELSE -b / 3 END",
    "CASE t WHEN 'CA' THEN 1.5 WHEN 'NY' THEN a END",
    "COALESCE(a, b, -2.25) + 0 * a",
    "CLAMP(c / b, -10, 10, 1/3) * 2",
    "YEAR(e) - YEAR(d)",
    "DAY(e) + 100 * MONTH(e) - 1000 * QUARTER(d)",
    "WEEKDAY(d + 1) * WEEKDAY(e)",
    "(d - e) / 365.25",
]
GROUPED = [
    requests.count(by="MONTH(e)"),
    requests.count(by=["WEEKDAY(d)", "CASE WHEN b > 4 THEN 'many' WHEN b IS NOT NULL THEN 'it''s few' END"]),
    requests.sum("a", by="a > b"),
    requests.mean("b * b", by="CASE WHEN f THEN 1 ELSE 0 END"),
    variances.variance("a - b / 2", by="t"),
    requests.histogram("k - 3 * b", keys=[-3, 0, 7]),
    requests.histogram("a * b", edges=[-9, -0.25, 0, 0.3, 40]),
    requests.ranks("c - b", [-(2**32), -1, 0, 17, 2**31]),
    choices.quantile("CLAMP(c / b, -10, 10, 1/3)", 0.5),
    choices.keys("YEAR(d) - 1"),
    requests.count("s = t OR d + 366 > e OR NOT a / b <= 0.5"),
    requests.count_distinct("w - 1 < c * 4294967296 AND a BETWEEN -b AND b"),
]


def total(text, known):
    """The centred sum and the weighted count that a mean has, from the values of the rows that have one."""
    column = DECLARED.number(clamped(text))
    middle, wide = column.least + column.most, column.most - column.least
    return sum(2 * value - middle for value in known), wide * len(known)


@pytest.mark.parametrize(
    ("engine", "texts"),
    [
        ("duckdb", TRICKY),
        ("postgres", TRICKY),
        ("spark", TRICKY[::4]),
        pytest.param("spark", TRICKY, marks=pytest.mark.long),
    ],
    ids=["duckdb", "postgres", "spark, some", "spark"],
)
def test_every_engine_computes_the_integers_that_python_does(engine, texts):
    source = engines.bound(engine, expressions.frame(ROWS), "who", 1, expressions.COLUMNS)
    for text in texts:
        values = [term_reader(DECLARED.find(clamped(text)))(row) for row in STORED]
        known = [value for value in values if value is not None]
        assert known and len(known) < len(values), "each of them is missing somewhere"
        assert people.found(source, requests.mean(clamped(text))) == total(text, known), text
        where = f"{text} > 0"
        holds = evaluator(condition(where, DECLARED))
        assert people.found(source, requests.count(f"NOT {where}")) == (sum(holds(row) is False for row in STORED),), (
            text
        )


@pytest.mark.parametrize("engine", ["postgres", "spark"])
def test_every_request_over_expressions_gives_the_same_integers_on_every_engine(engine):
    frame = expressions.frame(ROWS)
    here, there = (engines.bound(e, frame, "who", 1, expressions.COLUMNS) for e in ("duckdb", engine))
    for request in GROUPED:
        assert here.prepare(request) == there.prepare(request)
        assert people.found(here, request) == people.found(there, request), request


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow])
@given(expressions.numbers, expressions.wheres)
@pytest.mark.parametrize("engine", ["duckdb", "postgres"])
def test_random_expressions_agree_with_python(engine, expression, where):
    text = expression[0]
    term = read(text)
    holds = evaluator(read(where[0], lambda it: condition(it, DECLARED)))
    values = [term_reader(term)(row) for row in STORED if holds(row)]
    known = [value for value in values if value is not None]
    assert people.found(edge_table(engine), requests.mean(clamped(text), where[0])) == total(text, known)


@lru_cache
def edge_table(engine):
    return engines.bound(engine, expressions.frame(ROWS), "who", 1, expressions.COLUMNS)


FAR_APART = [
    {**expressions.EDGES[0], "a": a, "b": b, "c": c, "d": day, "t": t}
    for a in (None, -4.0, 0.0, 0.5, 4.0)
    for b, c in ((None, 1), (0, 2**31), (9, -(2**31)), (1, 3))
    for day, t in ((expressions.LEAP[0], "CA"), (expressions.LEAP[4], "NY"))
]
REACHED = [
    requests.sum("a - b", low=-60, high=60),
    requests.sum("c / b", low=-10, high=7, step="1/3"),
    requests.mean("a * b"),
    variances.variance("2 * a"),
    requests.sum("CASE WHEN t = 'CA' THEN b ELSE -3 END", by="YEAR(d)", keys=[2000, 2030]),
    requests.count("a / b > 0.05", by="QUARTER(d)"),
    requests.count_distinct("a < b OR c > b * 10"),
    requests.histogram("ABS(a)", edges=[0, 1, 5]),
]


@pytest.mark.parametrize("engine", ["duckdb", "postgres"])
def test_no_row_moves_an_answer_farther_than_its_sensitivity_and_one_moves_it_as_far(engine):
    farthest = dict.fromkeys(REACHED, (0, 0, 0))
    with engines.bound(engine, expressions.frame([]), "who", 1, expressions.COLUMNS) as empty:
        nothing = {request: people.found(empty, request) for request in REACHED}
        stated = {request: empty.sensitivities(request) for request in REACHED}
    assert stated[REACHED[0]].l1 == 26 and stated[REACHED[1]].l1 == 30, "13 in steps of 1/2, 10 in steps of 1/3"
    for row in FAR_APART[:: 1 if engine == "duckdb" else 3]:
        with engines.bound(engine, expressions.frame([row]), "who", 1, expressions.COLUMNS) as one:
            for request in REACHED:
                moved = people.moved(people.found(one, request), nothing[request])
                farthest[request] = tuple(map(max, moved, farthest[request]))
    for request in REACHED:
        assert all(most <= bound for most, bound in zip(farthest[request], stated[request], strict=True))
        assert engine != "duckdb" or farthest[request] == stated[request], request


def test_a_follower_adds_up_what_a_request_over_expressions_answers():
    declared = expressions.declared(neighbours="replace")
    source = edge_table("duckdb")
    for request in (
        requests.sum("c / b", low=-10, high=7, step="1/3"),
        requests.sum("CASE WHEN t = 'CA' THEN b ELSE -3 END", by="YEAR(d)", keys=[2000, 2030]),
        requests.count(by=["QUARTER(d)", "a > b"]),
        requests.ranks("a * b", [-9, 0, 0.5, 36]),
    ):
        read = contribution(request, declared).read
        added = [value if isinstance(value, tuple) else (value,) for value in map(read, STORED)]
        assert tuple(map(sum, zip(*added, strict=True))) == people.found(source, request), request


def test_the_rows_of_a_stream_and_a_live_table_are_asked_about_expressions():
    fields = {"miles": number(0, 100), "hours": number(0, 10)}
    trips = [
        {"miles": 30, "hours": 2},
        {"miles": 50, "hours": 0},
        {"miles": None, "hours": 5},
        {"miles": 7, "hours": 3},
    ]
    stream = Stream(unit="who", per_unit=2, fields=fields)
    live = LiveTable(unit="who", rows_per_unit=2, key="id", columns=fields)
    for place, trip in enumerate(trips):
        stream.append({"who": place, **trip})
        live.put({"who": place, "id": place, **trip})
    speed = requests.sum("miles / hours", low=0, high=20, step="0.5")
    for source in (stream, live):
        assert people.found(source, speed) == (30 + 5,), "15 and 7/3, in halves"
        assert people.found(source, requests.count("NOT miles > 5 * hours")) == (1,)


def test_a_quotient_by_a_negative_number_is_negative():
    row = expressions.as_stored({**ROWS[0], "a": -0.5, "b": 1})
    assert term_reader(DECLARED.find(clamped("b / a")))(row) == -8, "-2 in quarters"
    assert evaluator(condition("b / a < 0 AND 1 / (b / a) = a", DECLARED))(row)


@pytest.mark.parametrize("engine", ["duckdb", "postgres", "spark"])
def test_keys_with_a_common_divisor_are_the_numbers_that_were_written(engine):
    frame = expressions.frame(ROWS)
    by = "CASE WHEN a > 0 THEN 10 WHEN a <= 0 THEN -5 END"
    columns = {**expressions.COLUMNS, "size": derived(by)}
    source = engines.bound(engine, frame, "who", 1, columns)
    wanted = tuple(people.found(source, requests.count(f"a {sign} 0"))[0] for sign in ("<=", ">"))
    assert min(wanted) > 0
    for name in (by, "size"):
        assert source.prepare(requests.count(by=name)).names == (-5, 10)
        assert people.found(source, requests.count(by=name)) == wanted
        assert people.found(source, requests.count(f"{name} = 10")) == wanted[1:]
    assert people.found(source, requests.sum(by)) == (10 * wanted[1] - 5 * wanted[0],)

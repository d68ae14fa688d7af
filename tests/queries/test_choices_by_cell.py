"""Choices by key, extremes and bounds, keys of several columns, the most frequent keys, and units counted by key."""

from fractions import Fraction

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.engines import engines
from tests.sources import people

import counterpoint as cp
from counterpoint.encoding import decode, encode
from counterpoint.errors import InvalidRequest
from counterpoint.mechanisms.mechanism import Chosen
from counterpoint.mechanisms.noisy_max import Largest, NoisyMax
from counterpoint.privacy.secret import Tally
from counterpoint.queries import aggregates as requests
from counterpoint.queries import extremes
from counterpoint.queries import extremes as tops
from counterpoint.queries import quantiles as choices
from counterpoint.queries.request import Request

STEPS = people.COLUMNS["income"]
CANDIDATES = [-2, Fraction("0.3"), 1, 3]
KEYS = [(True, "NY"), (False, "CA"), (True, "nowhere")]
BY = {"by": ["vip", "state"], "keys": KEYS}
NEW = [
    choices.quantile("income", "0.9", CANDIDATES, **BY),
    choices.median("income", by="state"),
    extremes.minimum("income", 2, CANDIDATES, **BY),
    extremes.maximum("born", 1, by="vip"),
    extremes.bounds("tokens", 1),
    extremes.minimum("income"),
    requests.count_distinct("income > 0", **BY),
    choices.keys(["zip", "age", "vip"]),
    tops.top(["vip", "state"], 2),
]


def nearest(values, target, candidates):
    """Minus how far the target is from the ranks of each candidate, by the definition."""
    for c in candidates:
        below, upto = sum(v < c for v in values), sum(v <= c for v in values)
        yield -max(0, below - target, target - upto)


def from_below(values, rank, candidates=CANDIDATES):
    """Minus by how many rows each candidate misses being the last one at or below the row of this rank."""
    for c, after in zip(candidates, [*candidates[1:], 10**9], strict=True):
        yield -max(0, sum(v < c for v in values) - rank, rank - sum(v < after for v in values))


def from_above(values, rank):
    return [*from_below([-v for v in values], rank, [-c for c in reversed(CANDIDATES)])][::-1]


def incomes(rows):
    found = [people.steps(row["income"], STEPS) for row in rows]
    return [income * STEPS.step for income in found if income is not None]


@settings(max_examples=40, deadline=None)
@given(people.worlds, st.sampled_from([Fraction(0), Fraction(1, 2), Fraction(9, 10)]), st.integers(1, 4))
def test_scores_by_key_are_the_distances_by_the_definition(world, q, rank):
    source = people.table(world, rows_per_unit=5)
    rows = [row for unit in world.values() for row in unit]
    groups = [incomes([row for row in rows if (row["vip"], row["state"]) == key]) for key in KEYS]
    quantile = choices.quantile("income", q, CANDIDATES, **BY)
    expected = [score for g in groups for score in nearest(g, q * len(g), CANDIDATES)]
    assert source.prepare(quantile).in_units(people.found(source, quantile)) == tuple(expected)
    low, high = (end("income", rank, CANDIDATES, **BY) for end in (extremes.minimum, extremes.maximum))
    assert people.found(source, low) == tuple(score for g in groups for score in from_below(g, rank))
    assert people.found(source, high) == tuple(score for g in groups for score in from_above(g, rank))
    both, known = extremes.bounds("income", rank, CANDIDATES), incomes(rows)
    assert people.found(source, both) == (*from_below(known, rank), *from_above(known, rank))


@settings(max_examples=40, deadline=None)
@given(people.worlds)
def test_units_and_tuples_of_values_are_counted_once_for_each_unit(world):
    source = people.table(world, rows_per_unit=5)

    def units(key):
        return sum(any((row["vip"], row["state"]) == key for row in unit) for unit in world.values())

    assert people.found(source, requests.count_distinct(**BY)) == tuple(map(units, KEYS))
    pairs = {
        (row["zip"], row["age"]) for unit in world.values() for row in unit if None not in (row["zip"], row["age"])
    }
    counts = {pair: sum(any((r["zip"], r["age"]) == pair for r in unit) for unit in world.values()) for pair in pairs}
    assert people.found(source, choices.keys(["zip", "age"])) == Tally(tuple(counts.items()))
    assert people.found(source, tops.top(["vip", "state"], 2, KEYS)) == people.found(source, requests.count(**BY))


FAR = [{"income": 3, "state": "WY", "vip": True}]
LOW, HIGH = {"income": -2, "state": "CA"}, {"income": 3, "state": "CA"}


@pytest.mark.parametrize("neighbours", ["add-or-remove", "replace"])
@pytest.mark.parametrize(
    ("request_", "old", "new"),
    [
        (choices.quantile("income", 1, [-2, -1], by="state"), [HIGH] * 2, [{**HIGH, "state": "NY"}] * 2),
        (choices.quantile("income", "3/4", [-2, -1], by="state"), [HIGH] * 2, [{**HIGH, "state": "NY"}] * 2),
        (extremes.minimum("income", 2, [0, 1], by="state"), [LOW] * 2, [{**LOW, "state": "NY"}] * 2),
        (extremes.maximum("income", 2, [0, 1]), [], [HIGH] * 2),
        (requests.count_distinct(by="state"), [LOW, {"state": "NY"}], [{"state": "WY"}] * 2),
        (choices.keys(["zip", "age"]), [{"zip": "a", "age": 1}], [{"zip": "a", "age": 2}, {"zip": "b", "age": 1}]),
        (tops.top("state", 2), [LOW] * 2, [{"state": "NY"}] * 2),
    ],
)
def test_every_stated_bound_is_reached(request_, old, new, neighbours):
    blank = dict.fromkeys(["income", "tokens", "state", "vip", "zip", "age", "born"])
    make = {name: [{**blank, **row} for row in rows] for name, rows in (("old", old), ("new", new))}
    worlds = (
        ({}, {2: make["new"]}) if neighbours == "add-or-remove" or not old else ({2: make["old"]}, {2: make["new"]})
    )
    here, there = (people.table(world, 2, neighbours) for world in worlds)
    prepared = here.prepare(request_)
    l1, squared, each = people.moved(people.found(here, request_), people.found(there, request_), prepared.cells)
    if isinstance(request_, choices.Keys) and neighbours == "replace":  # the old unit has one of its two tuples
        l1, squared = l1 + 1, squared + 1
    if isinstance(request_, requests.CountDistinct) and neighbours == "add-or-remove":  # and the new one one of two
        l1, squared = l1 + 1, squared + 1
    assert (l1, squared, each) == (prepared.sensitivity, prepared.squared, prepared.each)


def test_both_ends_move_together_by_what_is_stated():
    source = people.table({1: [{**dict.fromkeys(people.COLUMNS), "age": 1, "income": 3}]}, 1)
    request_ = extremes.bounds("income", 1, [-1, 0])
    prepared = source.prepare(request_)
    assert (prepared.sensitivity, prepared.squared, prepared.each, prepared.cells) == (4, 4, 2, 2)
    empty = people.table({}, 1)
    moved = people.moved(people.found(empty, request_), people.found(source, request_), 2)
    below = people.table({1: [{**dict.fromkeys(people.COLUMNS), "age": 1, "income": -2}]}, 1)
    assert moved == (3, 3, 2), "it is above both candidates, and all rows are below the one after the last"
    assert people.moved(people.found(empty, request_), people.found(below, request_), 2) == (3, 3, 2)
    at = people.table({1: [{**dict.fromkeys(people.COLUMNS), "age": 1, "income": 0}]}, 1)
    assert people.moved(people.found(empty, request_), people.found(at, request_), 2)[2] == 2


@pytest.mark.parametrize("request_", NEW)
def test_requests_and_their_facts_are_read_back(request_):
    prepared = people.table({}).prepare(request_)
    assert decode(encode(request_), Request) == request_ and decode(encode(prepared), type(prepared)) == prepared
    assert encode(requests.count_distinct("age > 3")) == (
        b'{"type":"CountDistinct/1","where":"age > 3","by":null,"keys":null}'
    )
    assert encode(choices.keys("zip")) == b'{"type":"Keys/1","column":"zip","longest":100,"most":10000,"where":null}'


@pytest.mark.parametrize("engine", ["postgres", pytest.param("spark", marks=pytest.mark.long)])
def test_engines_agree_on_the_new_requests_and_so_do_their_neighbours(engine):
    row = {**dict.fromkeys(people.COLUMNS), "age": 17}
    world = {
        i: [
            {**row, "state": s, "vip": v, "income": i / 4 - 1, "zip": z, "tokens": i - 3}
            for s, v, z in (("CA", True, "it's"), ("NY", None, "10%"), ("NY", True, "é😀"), (None, False, None))
        ]
        for i in range(6)
    }
    for data in ({}, world, {**world, 9: [{**row, "state": "NY", "vip": True, "income": 3, "zip": "\\"}] * 3}):
        frame = people.arrow(data)
        here, there = (engines.bound(e, frame, "who", 4, people.COLUMNS) for e in ("duckdb", engine))
        for request_ in NEW:
            assert here.prepare(request_) == there.prepare(request_)
            assert people.found(here, request_) == people.found(there, request_), request_


@pytest.mark.parametrize(
    ("request_", "hint"),
    [
        (choices.median("income", by="zip"), "select them privately first"),
        (tops.top("zip", 2), "keys=session.ask(keys('zip')"),
        (tops.top("state", 4), "there are 3 keys"),
        (choices.keys(["state", "vip"]), "ask for count(by=('state', 'vip'))"),
        (choices.keys(["zip", "income"]), "texts, dates or whole numbers"),
        (extremes.minimum("zip"), "only a number or a date with declared bounds"),
        (choices.median("tokens", by="age", keys=range(1001)), "1001000 scores"),
    ],
)
def test_what_does_not_fit_the_declaration_is_refused_with_a_hint(request_, hint):
    with pytest.raises(InvalidRequest) as refused:
        people.table({}).prepare(request_)
    assert hint in str(refused.value)


@pytest.mark.parametrize(
    "make",
    [
        lambda: extremes.minimum("x", 0),
        lambda: extremes.minimum("x", 1.5),
        lambda: extremes.Extreme("x", "middle"),
        lambda: extremes.Extreme("x", "both", by="s"),
        lambda: extremes.maximum("x", 1, [2, 1]),
        lambda: tops.top("x", 0),
        lambda: tops.top("x", "two"),
        lambda: choices.keys([]),
        lambda: choices.quantile("x", 0.5, [1], keys=["a"]),
        lambda: requests.count_distinct(by=["a", "b"], keys=["a"]),
    ],
)
def test_what_is_malformed_is_refused_when_it_is_made(make):
    with pytest.raises(InvalidRequest):
        make()


def flights(rows=3000):
    """Carrier A flies half of the rows, B a third and C the rest; B is 100 minutes later than A, C 200."""
    carriers = ["A"] * 3 + ["B"] * 2 + ["C"]
    names = [carriers[i % 6] for i in range(rows)]
    delays = [100 * "ABC".index(name) + i % 21 - 10 for i, name in enumerate(names)]
    data = pa.table({"id": range(rows), "carrier": names, "to": [name * 2 for name in names], "delay": delays})
    columns = {"carrier": cp.category(["A", "B", "C"]), "delay": cp.number(-1000, 1000)}
    return cp.Table(data, unit="id", rows_per_unit=1, columns=columns)


def test_a_session_answers_all_cells_at_the_price_of_one():
    session = cp.Session(flights(), within=cp.PureDP(100))
    medians = session.launch(NoisyMax(10)).ask(cp.median("delay", range(-50, 300), by="carrier"))
    assert [abs(found - 100 * place) <= 2 for place, found in enumerate(medians)] == [True] * 3
    assert session.loss == cp.PureDP(10)
    least = session.launch(NoisyMax(10)).ask(cp.minimum("delay", None, range(-50, 300), by="carrier"))
    most = session.launch(NoisyMax(10)).ask(cp.maximum("delay", None, range(-50, 300), by="carrier"))
    assert all(
        100 * at - 10 <= low <= 100 * at <= high <= 100 * at + 10
        for at, low, high in zip(range(3), least, most, strict=True)
    )
    low, high = session.ask(cp.bounds("delay"), epsilon=10)
    assert (low, high) == (-16, 256)


def test_the_most_frequent_keys_are_named_in_their_order_with_the_smaller_noise_where_counts_move_one_way():
    session = cp.Session(flights(), within=cp.ApproxDP(100, 1e-5))
    assert session.ask(cp.top("carrier", 2), epsilon=5) == ("A", "B")
    assert session.would_cost(cp.top("carrier", 2), epsilon=5).mechanism == NoisyMax(5, monotone=True)
    found = session.ask(cp.keys(["carrier", "to"]), loss=cp.ApproxDP(5, 1e-6))
    assert tuple(found) == (("A", "AA"), ("B", "BB"), ("C", "CC"))
    assert session.ask(cp.top(["carrier", "to"], 1, keys=found), rho=5) == (("A", "AA"),)
    with pytest.raises(InvalidRequest, match="Laplace takes no top="):
        session.launch(cp.Laplace(1)).ask(cp.top("carrier", 2))
    prepared = session._source.prepare(cp.top("carrier", 2))
    assert prepared.in_units((Chosen(2), Chosen(0))) == ("C", "A")
    assert NoisyMax(1).public_part(None, **prepared.options) == Largest(2)

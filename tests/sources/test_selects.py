"""Several aggregates at once: the integers of each part times its weight, and the noise of all of them."""

from fractions import Fraction

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.sources import engines, people

import counterpoint as cp
from counterpoint.encoding import decode, encode
from counterpoint.errors import InvalidRequest, NotCovered
from counterpoint.sources.asking import choices, requests, selects, variances
from counterpoint.sources.asking.request import Request
from counterpoint.sources.asking.selects import WholeCount

PARTS = {
    "n": requests.count(),
    "units": requests.count_distinct("income > 0"),
    "total": requests.sum("income", "vip"),
    "late": requests.mean("income"),
    "spread": variances.variance("income", "state = 'CA'"),
}
GROUPS = [{}, {"by": "state"}, {"by": ["vip", "state"], "keys": [(True, "NY"), (False, "CA")]}]


def alone(name, groups):
    """The same aggregate as a request of its own."""
    part = PARTS[name]
    if not groups:
        return part
    makers = {
        "n": lambda: requests.count(**groups),
        "units": lambda: requests.count_distinct("income > 0", **groups),
        "total": lambda: requests.sum("income", "vip", **groups),
        "late": lambda: requests.mean("income", **groups),
        "spread": lambda: variances.variance("income", "state = 'CA'", **groups),
    }
    return makers[name]()


@settings(max_examples=30, deadline=None)
@given(people.worlds, st.sampled_from(GROUPS), st.sampled_from(["add-or-remove", "replace"]))
def test_every_part_has_the_integers_and_the_meaning_that_it_has_alone(world, groups, neighbours):
    source = people.table(world, 3, neighbours)
    request = selects.select(**PARTS, **groups)
    prepared, found = source.prepare(request), people.found(source, request)
    for name, (facts, share) in prepared.parts(found).items():
        other = source.prepare(alone(name, groups))
        integers = people.found(source, alone(name, groups))
        weight = other.grid / facts.grid
        assert weight.denominator == 1 and weight >= 1000
        assert (share if isinstance(share, tuple) else (share,)) == tuple(weight * value for value in integers)
        raw = integers if isinstance(share, tuple) else integers[0]
        assert facts.in_units(share) == other.in_units(raw) and facts.names == other.names


@pytest.mark.parametrize("groups", GROUPS)
@pytest.mark.parametrize("neighbours", ["add-or-remove", "replace"])
def test_the_budget_is_divided_equally_and_the_norms_of_the_parts_add_up(groups, neighbours):
    source = people.table({}, 2, neighbours)
    prepared = source.prepare(selects.select(**PARTS, **groups))
    shares, squares = [], []
    for name, facts in zip(prepared.of, prepared.each_part, strict=True):
        other = source.prepare(alone(name, groups))
        weight = other.grid / facts.grid
        shares.append(weight * other.sensitivity)
        squares.append(weight**2 * other.squared)
    assert sum(shares) == prepared.sensitivity and sum(squares) == prepared.squared
    assert max(shares) <= min(shares) * Fraction(1001, 1000)


@pytest.mark.parametrize("neighbours", ["add-or-remove", "replace"])
def test_the_stated_sensitivities_are_reached(neighbours):
    blank = dict.fromkeys(["income", "tokens", "state", "vip", "zip", "age", "born"])
    old, new = ([{**blank, "income": -2, "state": "CA"}] * 2, [{**blank, "income": 3, "state": "NY"}] * 2)
    request = selects.select(
        n=requests.count(), total=requests.sum("income", "income > 0"), late=requests.mean("income")
    )
    by_state = selects.select(n=requests.count(), late=requests.mean("income"), by="state")
    here, there = (people.table(world, 2, neighbours) for world in ({}, {2: new}))
    if neighbours == "add-or-remove":
        prepared = here.prepare(request)
        l1, squared, each = people.moved(people.found(here, request), people.found(there, request))
        assert (l1, squared, each) == (prepared.sensitivity, prepared.squared, prepared.each)
    else:
        here = people.table({1: old}, 2, neighbours)
        prepared = here.prepare(by_state)
        l1, squared, each = people.moved(people.found(here, by_state), people.found(there, by_state))
        assert l1 == prepared.sensitivity and squared == prepared.squared


@pytest.mark.parametrize("engine", ["postgres", "spark"])
def test_engines_agree(engine):
    row = {**dict.fromkeys(people.COLUMNS), "age": 17}
    kinds = [("CA", True), ("NY", None), ("NY", True), (None, False)]
    world = {i: [{**row, "state": s, "vip": v, "income": i / 4 - 1} for s, v in kinds] for i in range(6)}
    for data in ({}, world):
        here, there = (engines.bound(e, people.arrow(data), "who", 4, people.COLUMNS) for e in ("duckdb", engine))
        for groups in GROUPS:
            request = selects.select(**PARTS, **groups)
            assert here.prepare(request) == there.prepare(request)
            assert people.found(here, request) == people.found(there, request)


@pytest.mark.parametrize("groups", GROUPS)
def test_it_is_read_back_as_what_it_was(groups):
    request = selects.select(**PARTS, **groups)
    prepared = people.table({}).prepare(request)
    assert decode(encode(request), Request) == request and decode(encode(prepared), type(prepared)) == prepared


@given(st.integers(-(10**6), 10**6), st.integers(0, 10**5), st.integers(1, 5000))
def test_a_rounded_count_is_off_by_at_most_the_rounded_error(truth, steps, weight):
    facts = WholeCount(None, 1, 1, None, Fraction(1, weight))
    for off in (-steps, steps, steps // 2):
        assert abs(facts.in_units(truth * weight + off) - truth) <= facts.error_in_units(steps)


@pytest.mark.parametrize(
    "make",
    [
        selects.select,
        lambda: selects.select(m=choices.median("x")),
        lambda: selects.select(m=choices.median("x"), by="s"),
        lambda: selects.select(n=requests.sum("x", by="s"), by="s"),
        lambda: selects.select(n=requests.count(of="visits")),
        lambda: selects.select(n=3),
        lambda: selects.select(n=requests.count(), keys=["a"]),
        lambda: selects.Select(("n", "n"), (requests.count(), requests.count())),
        lambda: selects.Select(("n", "m"), (requests.count(),)),
    ],
)
def test_what_is_malformed_is_refused_when_it_is_made(make):
    with pytest.raises(InvalidRequest):
        make()


def test_parts_over_other_groups_are_refused():
    request = selects.Select(("n", "t"), (requests.count(by="state"), requests.sum("income")))
    with pytest.raises(InvalidRequest, match="the same groups"):
        people.table({}).prepare(request)


def test_a_session_answers_with_one_table_from_one_launch():
    data = pa.table({"id": range(900), "c": ["A", "B", "B"] * 300, "x": [10, 20, 30] * 300})
    table = cp.Table(data, unit="id", rows_per_unit=1, columns={"c": cp.category(["A", "B"]), "x": cp.number(0, 100)})
    session = cp.Session(table, within=cp.PureDP(10**6))
    both = session.ask(cp.select(n=cp.count(), late=cp.mean("x"), by="c"), epsilon=10**5)
    assert session.loss == cp.PureDP(10**5) and both["B"]["n"] == 600 and abs(both["B"]["late"] - 25) < 1e-2
    assert list(both.columns()) == ["c", "n", "n_error", "late", "late_error"]
    assert session.ask(cp.select(n=cp.count("x > 10"), late=cp.sum("x")), epsilon=10**5)["n"] == 600
    with pytest.raises(NotCovered, match="several errors"):
        session.ask(cp.select(n=cp.count(), late=cp.mean("x")), error=5)

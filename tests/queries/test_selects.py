"""Several aggregates at once: the integers of each part times its weight, and the noise of all of them."""

from collections import Counter
from fractions import Fraction
from functools import cache
from itertools import combinations
from math import sqrt

import pyarrow as pa
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.engines import engines
from tests.sources import people

import counterpoint as cp
from counterpoint.encoding import decode, encode
from counterpoint.errors import InvalidRequest, NotCovered
from counterpoint.queries import aggregates as requests
from counterpoint.queries import quantiles as choices
from counterpoint.queries import select as selects
from counterpoint.queries import statistics
from counterpoint.queries import variance as variances
from counterpoint.queries.request import Request
from counterpoint.queries.select import WholeCount
from counterpoint.queries.sensitivity import Groups, largest

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


@settings(max_examples=20, deadline=None, phases=[Phase.explicit, Phase.reuse, Phase.generate])
@given(people.worlds, st.sampled_from(GROUPS), st.sampled_from(["add-or-remove", "replace"]))
def test_without_noise_every_part_is_what_it_is_alone(world, groups, neighbours):
    source = people.table(world, 3, neighbours)
    request = selects.select(**PARTS, deviation=variances.stdev("income"), **groups)
    prepared, found = source.prepare(request), people.found(source, request)
    for name, (facts, share) in prepared.parts(found).items():
        asked = variances.stdev("income", **groups) if name == "deviation" else alone(name, groups)
        other, integers = source.prepare(asked), people.found(source, asked)
        raw = integers if isinstance(share, tuple) else integers[0]
        assert facts.in_units(share) == other.in_units(raw) and facts.names == other.names


@pytest.mark.parametrize(
    ("parts", "numbers"),
    [
        ({"n": requests.count(), "late": requests.mean("income")}, 1 + 2),
        ({"n": requests.count("vip"), "late": requests.mean("income")}, 1 + 2),
        ({"late": requests.mean("income"), "spread": variances.stdev("income")}, 3),
        ({"a": variances.variance("income"), "b": variances.stdev("income"), "n": requests.count()}, 1 + 3),
        ({"a": requests.mean("income"), "b": requests.mean("tokens")}, 1 + 2 + 2),
        ({"a": requests.mean("income"), "b": requests.mean("tokens", "vip")}, 2 + 2),
        ({"a": requests.count("vip"), "b": requests.count("vip"), "c": requests.sum("income", "vip")}, 1 + 1),
    ],
)
def test_what_parts_have_in_common_is_released_once(parts, numbers):
    source = people.table({})
    assert source.prepare(selects.select(**parts)).width == numbers
    assert source.prepare(selects.select(**parts, by="state")).width == 3 * numbers


ROW = {"tokens": None, "age": None, "born": None, "zip": None}
MENU = [
    {**ROW, "income": income, "tokens": tokens, "state": state, "vip": True}
    for income in (-2, 1.75, 3, None)
    for tokens in (-(2**62), 2**62, None)
    for state in ("CA", "NY")
]
JOINT = [
    {"n": requests.count(), "late": requests.mean("income")},
    {"late": requests.mean("income"), "other": requests.mean("tokens")},
    {"n": requests.count(), "spread": variances.variance("income"), "total": requests.sum("tokens")},
    {"late": requests.mean("income"), "spread": variances.variance("income")},
    {
        "n": requests.count(),
        "late": requests.mean("income"),
        "d": variances.stdev("income"),
        "o": requests.mean("tokens"),
    },
    {"n": requests.count(), "total": requests.sum("income")},
]


@cache
def nobody(neighbours):
    """An empty table, with two rows per unit."""
    return people.table({}, 2, neighbours)


@cache
def one_row_each(neighbours):
    """A table with each of the rows alone."""
    return [people.table({1: [row]}, 2, neighbours) for row in MENU]


def farthest(rows, units, neighbours):
    """The largest norms between neighbours, over all units that have some of these rows."""
    zero = (0,) * len(next(iter(rows.values())))
    ends = [tuple(map(sum, zip(zero, *(rows[row] for row in unit), strict=True))) for unit in units]
    pairs = [(zero, end) for end in ends] if neighbours == "add-or-remove" else combinations([zero, *set(ends)], 2)
    return tuple(map(max, zip(*(people.moved(*pair) for pair in pairs), strict=True)))


@pytest.mark.parametrize("neighbours", ["add-or-remove", "replace"])
@pytest.mark.parametrize("groups", [{}, {"by": "state"}, {"by": "state", "keys": ["CA"]}])
@pytest.mark.parametrize("parts", JOINT)
def test_the_stated_sensitivities_are_the_largest_of_all_neighbours(parts, groups, neighbours):
    request = selects.select(**parts, **groups)
    empty = nobody(neighbours)
    stated, plan = empty.prepare(request), request.plan(empty.declaration)
    rows = {n: people.found(source, request) for n, source in enumerate(one_row_each(neighbours))}
    assert farthest(rows, [(n, n) for n in rows], neighbours) == (stated.sensitivity, stated.squared, stated.each)
    # A unit with at most one row in each state, and two in all.
    apart = [(n, m) for n in rows for m in rows if MENU[n]["state"] == "CA" and MENU[m]["state"] == "NY"]
    capped = request.sensitivities(empty.declaration, replace(plan, groups=Groups(2, 1)))
    if groups == {"by": "state"}:
        found = farthest(rows, [*apart, *((n,) for n in rows)], neighbours)
        assert all(most <= bound for most, bound in zip(found, capped, strict=True))
        assert neighbours == "replace" or found == capped


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
@pytest.mark.parametrize("groups", [{}, {"by": "state"}])
@pytest.mark.parametrize("parts", [PARTS, *JOINT])
def test_no_other_weights_have_a_smaller_sum_of_errors(parts, groups, noise):
    declared = nobody("replace").declaration
    request = selects.select(**parts, noise=noise, **groups)
    found, plan = statistics.statistics(request._parts), request.plan(declared)
    plans, used = plan.adds.plans, Counter(place.statistic for places in request._places for place in places)
    moves = [statistics.sensitivities([one], declared, plan, [its], [1]) for one, its in zip(found, plans, strict=True)]
    units = [largest(one.corners(its)).each for one, its in zip(found, plans, strict=True)]

    def criterion(weights):
        if noise == "laplace":
            noisy = sum(weight * move.l1 for weight, move in zip(weights, moves, strict=True))
        else:
            noisy = sqrt(sum(weight**2 * move.squared for weight, move in zip(weights, moves, strict=True)))
        return sum(
            used[n] * noisy / (weight * unit) for n, (weight, unit) in enumerate(zip(weights, units, strict=True))
        )

    least = criterion(plan.adds.weights)
    for n, weight in enumerate(plan.adds.weights):
        for factor in (0.5, 0.9, 1.1, 2):
            others = [*plan.adds.weights[:n], factor * weight, *plan.adds.weights[n + 1 :]]
            assert least <= criterion(others) * (1 + 1e-5)


@settings(deadline=None)
@given(
    st.lists(st.none() | st.integers(-8, 12), max_size=60),
    st.lists(st.integers(-5000, 5000), min_size=4, max_size=4),
    st.sampled_from(["mean", "variance", "stdev"]),
)
def test_the_error_of_a_part_with_a_shared_count_holds_for_all_noise_within_its_steps(values, noise, kind):
    make = {"mean": requests.mean, "variance": variances.variance, "stdev": variances.stdev}[kind]
    prepared = nobody("replace").prepare(selects.select(n=requests.count(), part=make("income")))
    facts, (own, rows) = prepared.each_part[1], (prepared.each_part[1].own, prepared.each_part[1].rows)
    there = [2 * value - 4 for value in values if value is not None]  # twice the distance from the middle, in steps
    weight = own // (20 if kind == "mean" else 800)
    sums = [sum(there)] if kind == "mean" else [sum(3 * y * y - 400 for y in there), sum(40 * y for y in there)]
    truth = (*(weight * value for value in sums), own * (len(values) - len(there)), rows * len(values))
    noisy = tuple(value + off for value, off in zip(truth, noise, strict=False))
    steps = max(map(abs, noise[: len(truth)]))
    shown, right = facts.in_units(noisy), facts.in_units(truth)
    if shown is not None and right is not None:
        assert abs(Fraction(shown) - Fraction(right)) <= facts.error_from(noisy, steps) + Fraction(1, 10**12)
        assert facts.error_from(truth, 0) <= Fraction(1, 10**12)
        assert facts.signal(noisy) <= len(there) * own * rows // (own + rows) + steps + 1


@pytest.mark.parametrize("engine", ["postgres", pytest.param("spark", marks=pytest.mark.long)])
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


def test_a_session_divides_the_budget_for_the_noise_that_its_price_buys():
    request = cp.select(n=cp.count(), late=cp.mean("seconds"), other=cp.mean("pages"))
    columns = {"seconds": cp.number(0, 600), "pages": cp.number(0, 9)}
    session = cp.Session(cp.Stream(fields=columns), within=cp.zCDP(10**6))
    assert session.ask(request, rho=1).request.noise == session.ask(request, mu=1).request.noise == "gaussian"
    assert session.ask(request, rho=1).mechanism == cp.Gaussian(rho=1)
    assert session.ask(request, epsilon=1).request == request
    laplace = cp.select(n=cp.count(), late=cp.mean("seconds"), other=cp.mean("pages"), noise="laplace")
    assert session.ask(laplace, rho=1).request == laplace


def test_units_that_are_counted_beside_a_sum_move_by_their_weight():
    empty = nobody("add-or-remove")
    prepared = empty.prepare(selects.select(units=requests.count_distinct(), total=requests.sum("tokens")))
    units, total = (1 / facts.grid for facts in prepared.each_part)
    farthest_sum = 2 * 2**62 * total
    assert prepared.sensitivity == units + farthest_sum and prepared.squared == units**2 + farthest_sum**2

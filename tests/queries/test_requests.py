"""Requests are closed, checked and stored as values; their sensitivities are what enumeration finds."""

import math
from fractions import Fraction
from itertools import combinations_with_replacement, product
from statistics import pvariance

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.sources import people

from counterpoint.encoding import decode, encode
from counterpoint.errors import CounterpointError, InvalidParameter, InvalidRequest
from counterpoint.mechanisms.mechanism import Chosen
from counterpoint.privacy.secret import reveal
from counterpoint.queries import aggregates as requests
from counterpoint.queries import variance as variances
from counterpoint.queries.request import Averaged, Request
from counterpoint.queries.sensitivity import sum_sensitivities
from counterpoint.schema.columns import boolean, category, number
from counterpoint.schema.units import each_row
from counterpoint.sources.table import Table


@given(people.questions)
def test_a_request_reads_back_as_what_it_was(request_):
    assert encode(decode(encode(request_), Request)) == encode(request_)
    assert decode(encode(request_), Request) == request_


@given(people.questions)
def test_a_prepared_request_reads_back_as_what_it_was(request_):
    prepared = SOURCE.prepare(request_)
    assert decode(encode(prepared), type(prepared)) == prepared


SOURCE = people.table({})


def farthest(points, rows, neighbours):
    """The largest moves over every way in which a unit's rows can contribute, by enumeration."""
    zero = tuple(0 for _ in points[0])
    sums = {
        tuple(map(sum, zip(*chosen, strict=True))) for chosen in combinations_with_replacement([zero, *points], rows)
    }
    pairs = product(sums, sums) if neighbours == "replace" else ((zero, other) for other in sums)
    steps = [tuple(abs(a - b) for a, b in zip(*pair, strict=True)) for pair in pairs]
    return max(map(sum, steps)), max(sum(x * x for x in step) for step in steps), max(map(max, steps))


@settings(max_examples=60, deadline=None)
@given(
    st.integers(1, 3).flatmap(
        lambda width: st.lists(st.tuples(*[st.integers(-4, 4)] * width), min_size=1, max_size=4).filter(
            lambda points: any(map(any, points))
        )
    ),
    st.integers(1, 3),
    st.sampled_from(["add-or-remove", "replace"]),
)
def test_the_corners_of_a_row_say_how_far_a_unit_can_move_an_answer(points, rows, neighbours):
    assert tuple(sum_sensitivities(points, rows, neighbours)) == farthest(points, rows, neighbours)


def triple(x, low=-8, high=12):
    """What a value contributes to a variance."""
    y, wide = 2 * x - low - high, high - low
    return 3 * y * y - wide * wide, 2 * wide * y, 2 * wide * wide


@pytest.mark.parametrize("neighbours", ["add-or-remove", "replace"])
@pytest.mark.parametrize("rows", [1, 2])
def test_each_kind_of_request_has_the_sensitivities_that_enumeration_over_its_rows_finds(neighbours, rows):
    source = people.table({}, rows, neighbours)
    incomes = range(-8, 13)  # [-2, 3] in quarters
    ends = (-8, 12)
    contributions = {
        requests.count(): [(1,)],
        requests.sum("income"): [(x,) for x in incomes],
        requests.sum("income", by="vip"): [point for x in ends for point in ((x, 0), (0, x))],
        requests.sum("income", by=["vip", "state"], keys=[(True, "CA"), (False, "NY")]): [
            point for x in incomes for point in ((x, 0), (0, x))
        ],
        requests.count(by=["vip", "state"], keys=[(True, "CA")]): [(1,)],
        requests.count(by=["vip", "state"], keys=[(True, "CA"), (False, "NY")]): [(1, 0), (0, 1)],
        requests.mean("income"): [(2 * x - 4, 20) for x in incomes],
        variances.variance("income"): [triple(x) for x in incomes],
        variances.stdev("income", by="vip"): [
            point for x in ends for point in ((*triple(x), 0, 0, 0), (0, 0, 0, *triple(x)))
        ],
        requests.mean("income", by="vip"): [
            point for x in ends for point in ((2 * x - 4, 20, 0, 0), (0, 0, 2 * x - 4, 20))
        ],
        requests.histogram("state"): [(1, 0, 0), (0, 1, 0), (0, 0, 1)],
        requests.histogram("income", edges=[0, 3]): [(1,)],
        requests.ranks("income", [0, 1, 2]): [(1, 1, 1), (0, 1, 1), (0, 0, 1)],
    }
    for request, points in contributions.items():
        prepared = source.prepare(request)
        stated = (prepared.sensitivity, prepared.squared, source.sensitivities(request).each)
        assert stated == farthest(points, rows, neighbours), request
    assert source.prepare(requests.count_distinct()).sensitivity == 1


def test_answers_come_back_in_the_users_units():
    assert SOURCE.prepare(requests.sum("income")).in_units(10) == Fraction(5, 2)
    assert SOURCE.prepare(requests.count()).in_units(10) == 10
    assert SOURCE.prepare(requests.histogram("state")).in_units((1, 2, 3)) == (1, 2, 3)


@given(st.lists(st.integers(-8, 12), min_size=1, max_size=6))
def test_a_mean_without_noise_is_the_mean(steps):
    prepared = SOURCE.prepare(requests.mean("income"))
    assert isinstance(prepared, Averaged) and prepared.width == 2
    answer = (sum(2 * x - 4 for x in steps), 20 * len(steps))
    assert prepared.in_units(answer) == Fraction(sum(steps), 4 * len(steps))


def test_a_mean_of_a_noisy_count_that_is_not_positive_is_none_and_else_it_is_within_the_bounds():
    prepared = SOURCE.prepare(requests.mean("income"))
    assert prepared.in_units((100, 0)) is None and prepared.in_units((100, -5)) is None
    assert prepared.in_units((10**6, 1)) == 3 and prepared.in_units((-(10**6), 1)) == -2


@pytest.mark.parametrize(
    "make",
    [
        lambda: requests.count(where=5),
        lambda: requests.count(where="x" * 10_001),
        lambda: requests.count(where="\ud800"),
        lambda: requests.sum(None),
        lambda: requests.sum(3),
        lambda: requests.sum("x", keys=["a"]),
        lambda: requests.sum("x", by="s", keys="abc"),
        lambda: requests.sum("x", by=[]),
        lambda: requests.sum("x", by=["s", "s"]),
        lambda: requests.sum("x", by=["s", 3]),
        lambda: requests.sum("x", by=[f"c{i}" for i in range(11)]),
        lambda: requests.sum("x", by=["s", "t"], keys=["a"]),
        lambda: requests.sum("x", by=["s", "t"], keys=[("a", "b", "c")]),
        lambda: requests.sum("x", by=["s", "t"], keys=[("a", "b"), ("a", "b")]),
        lambda: requests.sum("x", by=["s", "t"], keys=[("a", 1), ("a", True)]),
        lambda: requests.sum("x", by=["s", "t"], keys=[("a", None)]),
        lambda: requests.sum("x", by=["s", "t"], keys=[("a", ("b",))]),
        lambda: requests.sum("x", by=["s", "t"], keys=[("a", "b\0")]),
        lambda: requests.sum("x", by="s", keys=[("a",)]),
        lambda: requests.count(keys=["a"]),
        lambda: requests.count(by=3),
        lambda: requests.histogram(["x", "y"], edges=[1, 2]),
        lambda: requests.histogram("x", keys=[]),
        lambda: requests.histogram("x", keys=["a", "a"]),
        lambda: requests.histogram("x", keys=[1.5]),
        lambda: requests.histogram("x", keys=[None]),
        lambda: requests.histogram("x", keys=[["a"]]),
        lambda: requests.histogram("x", keys=["a\0"]),
        lambda: requests.histogram("x", keys=range(10_001)),
        lambda: requests.histogram("x", keys=["a"], edges=[1, 2]),
        lambda: requests.histogram("x", edges=[1]),
        lambda: requests.histogram("x", edges=[1, 1]),
        lambda: requests.histogram("x", edges=[2, 1]),
        lambda: requests.histogram("x", edges=[1, float("nan")]),
        lambda: requests.histogram("x", edges=[1, float("inf")]),
        lambda: requests.histogram("x", edges=7),
        lambda: requests.ranks("x", []),
        lambda: requests.ranks("x", ["a"]),
        lambda: requests.ranks("x", range(1_001)),
        lambda: requests.ranks("x", None),
    ],
)
def test_a_malformed_request_is_refused_when_it_is_made(make):
    with pytest.raises(InvalidRequest):
        make()


@pytest.mark.parametrize(
    ("request_", "hint"),
    [
        (requests.sum("age"), "declare columns={'age': cp.number(low, high)}"),
        (requests.sum("state"), "only a number with declared bounds"),
        (requests.sum("incme"), "did you mean 'income'"),
        (requests.mean("vip"), "only a number"),
        (requests.ranks("zip", [1]), "only a number"),
        (requests.histogram("age", edges=[0, 1]), "declare columns"),
        (requests.histogram("zip"), "give keys=[...]"),
        (requests.histogram("zip", keys=[1]), "is not a value of this column, which is a text"),
        (requests.histogram("vip", keys=[1]), "is not a value of this column"),
        (requests.histogram("age", keys=["x"]), "is not a value of this column"),
        (requests.histogram("age", keys=[True]), "is not a value of this column"),
        (requests.histogram("age", keys=[2**70]), "is not a value of this column"),
        (requests.sum("income", by="zip"), "the keys of zip are not declared"),
        (requests.count("nope = 1"), "no column 'nope'"),
        (requests.count(by=["state", "zip"]), "the keys of zip are not declared"),
        (requests.count(by=["state", "vp"]), "did you mean 'vip'"),
        (requests.count(by=["state", "vip"], keys=[("CA", 1)]), "is not a value of this column"),
    ],
)
def test_a_request_that_does_not_fit_the_declaration_is_refused_with_a_hint(request_, hint):
    with pytest.raises(InvalidRequest) as refused:
        SOURCE.prepare(request_)
    assert hint in str(refused.value)


def test_a_stored_request_is_checked_again_when_it_is_read_back():
    good = encode(requests.histogram("age", edges=[1, 2]))
    with pytest.raises(CounterpointError):
        decode(good.replace(b'"2/1"', b'"1/1"'), Request)
    with pytest.raises(CounterpointError):
        decode(b'{"type":"Count/1","where":7}', Request)


def test_true_and_one_are_different_keys_however_often_they_are_asked():
    source = people.table({})
    source.prepare(requests.histogram("vip", keys=[True]))
    with pytest.raises(InvalidRequest):
        source.prepare(requests.histogram("vip", keys=[1]))


def test_means_of_groups_come_one_for_each_key():
    prepared = SOURCE.prepare(requests.mean("income", by="vip"))
    assert prepared.width == 4 and prepared.names == (False, True)
    assert prepared.in_units((-20, 20, 40, 80)) == (-2, Fraction(7, 4))
    assert prepared.in_units((100, 0, 10**6, 1)) == (None, 3)
    one = SOURCE.prepare(requests.mean("income", by="vip", keys=[True]))
    assert one.in_units((20, 20)) == (3,), "one key is still a table"


@pytest.mark.parametrize("neighbours", ["add-or-remove", "replace"])
@pytest.mark.parametrize(("low", "high"), [(0, 1), (0, 2), (-3, 0), (5, 9), (-7, 6), (-1, 30)])
def test_no_pair_of_values_moves_a_variance_by_more_than_its_corners_say(low, high, neighbours):
    source = Table(
        pa.table({"x": pa.array([], pa.int64())}),
        unit=each_row,
        columns={"x": number(low, high)},
        neighbours=neighbours,
    )
    alone = [triple(x, low, high) for x in range(low, high + 1)]
    assert tuple(source.sensitivities(variances.variance("x"))) == farthest(alone, 1, neighbours)
    apart = [point for t in alone for point in ((*t, 0, 0, 0), (0, 0, 0, *t))]
    source = Table(
        pa.table({"x": pa.array([], pa.int64()), "b": pa.array([], pa.bool_())}),
        unit=each_row,
        columns={"x": number(low, high), "b": boolean()},
        neighbours=neighbours,
    )
    assert tuple(source.sensitivities(variances.variance("x", by="b"))) == farthest(apart, 1, neighbours)


@given(st.lists(st.integers(-8, 12), min_size=1, max_size=6))
def test_a_variance_without_noise_is_the_variance(steps):
    values = [Fraction(x, 4) for x in steps]
    answer = tuple(map(sum, zip(*map(triple, steps), strict=True)))
    found = SOURCE.prepare(variances.variance("income")).in_units(answer)
    assert found == pvariance(values)
    assert SOURCE.prepare(variances.stdev("income")).in_units(answer) == math.sqrt(found)


@given(st.tuples(*[st.integers(-(10**4), 10**4)] * 3))
def test_a_noisy_variance_is_possible_or_none(answer):
    found = SOURCE.prepare(variances.variance("income")).in_units(answer)
    assert (found is None) == (answer[2] <= 0)
    assert found is None or 0 <= found <= Fraction(25, 4), "half the range, squared"


def test_a_variance_of_numbers_whose_squares_would_overflow_is_refused():
    with pytest.raises(InvalidRequest, match=r"at most 2\^31 steps from 0; declare it with a larger step"):
        SOURCE.prepare(variances.variance("tokens"))
    wide = Table(pa.table({"x": [2**31, -(2**31), -(2**31)]}), unit=each_row, columns={"x": number(-(2**31), 2**31)})
    wanted = tuple(map(sum, zip(*(triple(x, -(2**31), 2**31) for x in (2**31, -(2**31), -(2**31))), strict=True)))
    assert people.found(wide, variances.variance("x")) == wanted


def test_one_column_in_a_list_is_stored_as_that_column():
    assert encode(requests.count(by="state")) == encode(requests.histogram(["state"]))
    assert encode(requests.histogram("state", keys=["CA"])) == (
        b'{"type":"Histogram/1","column":"state","keys":["CA"],"edges":null,"where":null,"dates":false,"bins":null}'
    )
    assert encode(requests.sum("income", by=["state"])) == (
        b'{"type":"Sum/1","column":"income","where":null,"by":"state","keys":null}'
    )
    assert encode(requests.mean("income")) == (
        b'{"type":"Mean/1","column":"income","where":null,"by":null,"keys":null}'
    )


def test_groups_of_several_columns_are_named_by_tuples_the_last_column_changing_fastest():
    names = SOURCE.prepare(requests.count(by=["state", "vip"])).names
    assert names == tuple((state, vip) for state in ("CA", "NY", "WY") for vip in (False, True))
    assert SOURCE.prepare(requests.count(by="state")).names == ("CA", "NY", "WY")
    prepared = SOURCE.prepare(requests.sum("income", by=["vip", "state"], keys=people.PAIRS))
    assert prepared.names == tuple(people.PAIRS) and prepared.in_units(Chosen(1)) == (False, "CA")


def test_the_number_of_cells_is_limited_before_they_are_listed():
    columns = {"a": category(range(100)), "b": category(range(100)), "c": category(range(101))}
    source = Table(pa.table({name: pa.array([0]) for name in columns}), unit=each_row, columns=columns)
    assert len(source.prepare(requests.count(by=["a", "b"])).names) == 10_000
    with pytest.raises(InvalidRequest, match="10100 combinations, and a request has at most 10000 cells"):
        source.prepare(requests.count(by=["a", "c"]))


def test_a_custodian_declares_how_many_cells_an_answer_may_have():
    columns = {"a": category(range(100)), "c": category(range(101))}
    rows = pa.table({name: pa.array([0]) for name in columns})
    wide = Table(rows, unit=each_row, columns=columns, most_cells=10_100)
    narrow = Table(rows, unit=each_row, columns=columns, most_cells=100)
    assert sum(reveal(wide.resolve(wide.pin(), wide.prepare(requests.count(by=["a", "c"]))))) == 1
    assert "cells of an answer: at most 10100" in wide.describe() and "cells of" not in SOURCE.describe()
    with pytest.raises(InvalidRequest, match="at most 100 cells"):
        narrow.prepare(requests.count(by="c"))
    with pytest.raises(InvalidParameter, match="most_cells is at most 1000000"):
        Table(rows, unit=each_row, columns=columns, most_cells=10**6 + 1)

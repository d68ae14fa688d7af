"""Monotone queries: the shipped ones qualify, others are refused with a witness, and names are what is stored."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from counterpoint.continual.monotone_histogram import MonotoneHistogram
from counterpoint.continual.monotone_queries import _SHIPPED, MonotoneQuery, check_monotone, max_of, monotone_query
from counterpoint.encoding import Tagged, decode, encode
from counterpoint.errors import InvalidParameter

steps = st.lists(st.tuples(st.integers(-9, 9), st.integers(0, 1)), min_size=1, max_size=6)


@pytest.mark.parametrize("name", _SHIPPED)
@given(steps, st.integers(1, 100))
def test_every_shipped_query_is_monotone_and_1_sensitive(name, bars, rank):
    query = MonotoneQuery(name, rank)
    before, after = tuple(bar for bar, _ in bars), tuple(bar + more for bar, more in bars)
    assert query(before) <= query(after) <= query(before) + 1


@given(st.lists(st.tuples(st.integers(-9, 9), st.integers(-1, 1)), min_size=1, max_size=6))
def test_single_steps_suffice_for_changes_up_and_down_at_once(bars):
    before, after = tuple(bar for bar, _ in bars), tuple(bar + more for bar, more in bars)
    for name in _SHIPPED:
        assert abs(MonotoneQuery(name, 2)(before) - MonotoneQuery(name, 2)(after)) <= 1


def test_quantile_like_queries_say_what_they_are_called():
    bars = (5, 1, 4, 2, 3)
    found = {rank: MonotoneQuery("percentile", rank)(bars) for rank in (1, 20, 21, 50, 100)}
    assert found == {1: 1, 20: 1, 21: 2, 50: 3, 100: 5}
    assert MonotoneQuery("largest", 9)(bars) == 1 and MonotoneQuery("top", 2)(bars) == 4
    assert MonotoneQuery("median")((4, 1, 2, 3)) == 2


REFUSED = {
    "sum": (sum, "1-sensitive"),
    "sum of the top two": (lambda bars: sum(sorted(bars)[-2:]), "1-sensitive"),
    "negated": (lambda bars: -max(bars), "not monotone"),
    "parity": (lambda bars: max(bars) % 2, "not monotone"),
    "first two": (lambda bars: bars[1], "not total: IndexError at \\(-1,\\)"),
    "float": (lambda bars: float(max(bars)), "an integer"),
    "boolean": (lambda bars: max(bars) > 0, "an integer"),
    "steep far out": (lambda bars: max(bars) + max(0, max(bars) - 2**30), "1-sensitive"),
    "jump in width": (lambda bars: max(bars) * (2 if len(bars) > 8 else 1), "1-sensitive"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_does_not_qualify_is_refused_with_a_witness(name):
    function, why = REFUSED[name]
    with pytest.raises(InvalidParameter, match=why):
        monotone_query(name)(function)
    with pytest.raises(InvalidParameter, match="monotone query is one of"):
        MonotoneQuery(name)


def test_one_that_says_another_thing_every_time_is_refused():
    calls = []
    with pytest.raises(InvalidParameter, match="the same every time"):
        check_monotone(lambda bars: calls.append(1) or max(bars) + len(calls))


def test_a_declared_query_runs_in_a_histogram_and_is_stored_by_its_name():
    query = monotone_query("half the largest, rounded up")(lambda bars: -(-max(bars) // 2))
    mechanism = MonotoneHistogram(1, query, 3)
    assert b"half the largest, rounded up" in encode(mechanism)
    assert decode(encode(mechanism), Tagged) == mechanism and mechanism.query((4, 5, 1)) == 3


def test_a_stored_name_that_was_not_declared_here_is_refused_and_nothing_is_imported():
    data = encode(max_of).replace(b'"max"', b'"os.system"')
    with pytest.raises(InvalidParameter):
        decode(data, Tagged)


def test_a_name_means_one_function():
    def declare(low):
        return monotone_query("at least")(lambda bars: max(*bars, low))

    declare(3)
    with pytest.raises(InvalidParameter, match="another function"):
        declare(4)  # the same code, but closed over another value
    again = "monotone_query('run twice')(lambda bars: max(bars))"
    assert eval(again) == eval(again)
    with pytest.raises(InvalidParameter, match="another function"):
        monotone_query("run twice")(min)


@pytest.mark.parametrize("name", ["max", "", 3, None])
def test_shipped_names_and_no_names_are_not_for_declaring(name):
    with pytest.raises(InvalidParameter):
        monotone_query(name)


@pytest.mark.parametrize("wrong", [("sum", 1), ("max", 0), ("percentile", 101), ("largest", True), (None, 1)])
def test_parameters_are_checked(wrong):
    with pytest.raises(InvalidParameter):
        MonotoneQuery(*wrong)

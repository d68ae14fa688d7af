"""Neighbouring tables under equal coins: whatever is done to a session, everything public about it is the same."""

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.session.deeds import lines
from tests.session.test_stream_parts import Steady
from tests.sources import people

import counterpoint as cp
from counterpoint.queries.quantiles import Keys

REPLACED = people.table({}, 2, "replace")
STATES = ["CA", "NY", "WY", "TX"]
MECHANISMS = {
    "laplace": lambda: cp.Laplace("0.01", asks=3),
    "gaussian": lambda: cp.Gaussian("1e-5", asks=3),
    "largest": lambda: cp.NoisyMax("0.01", monotone=True),
    "select": lambda: cp.PartitionSelection("0.01", "1e-9"),
    "counter": lambda: cp.Counter("0.01"),
    "too much": lambda: cp.Laplace(7),
}
places = st.sampled_from(["all", "inside", *STATES])
doings = st.one_of(
    st.tuples(st.just("launch"), places, st.sampled_from(sorted(MECHANISMS))),
    st.tuples(st.just("ask"), places, people.questions),
    st.tuples(st.just("ask"), places, people.questions),
    st.tuples(st.just("cut"), places, st.sampled_from(["zip", "vip", "age", "nowhere"])),
)


def drive(world, neighbours, doings):
    """Everything public about what happened, and the answers by place, with the request that each is for."""
    table = people.table(world, 3, neighbours).spread("state", 1)
    session = cp.Session(table, within=cp.ApproxDP(5, 1e-3), ledger=Steady())
    inside, k = session.delegate(cp.ApproxDP(1, 1e-6)), table.reach("state")
    parts = session.partition("state", k=k, within=cp.ApproxDP("0.5", 1e-6))
    handles, seen, answers = {}, [table.describe()], []
    for deed, place, what in doings:
        try:
            here = {"all": session, "inside": inside}.get(place) or parts[place]
            if deed == "launch":
                handles[place] = here.launch(MECHANISMS[what]())
            elif deed == "cut":
                here.partition(what, k=6, within=cp.PureDP("0.001"))
            else:
                answers.append((place, what, handles[place].mechanism, handles[place].ask(what)))
        except (KeyError, cp.CounterpointError) as error:
            seen.append((type(error), str(error)))
        shown = repr(session), session._repr_html_(), str(session.certificate()), repr(list(handles.values()))
        seen.append((session.loss, session.remaining, lines(session), lines(inside), shown))
    return table, seen, answers


@settings(max_examples=30)
@given(
    people.worlds,
    people.units,
    people.units,
    st.sampled_from(["add-or-remove", "replace"]),
    st.lists(doings, min_size=5, max_size=25),
)
def test_on_neighbouring_tables_with_equal_coins_everything_public_is_the_same(world, unit, other, neighbours, doings):
    """Errors, history, losses, displays, certificates; answers move by no more than was said, in `reach` parts."""
    left = {**world, 10: other} if neighbours == "replace" else world
    table, seen, here = drive(left, neighbours, doings)
    _, again, there = drive({**world, 9: unit}, neighbours, doings)
    assert seen == again
    differing = set()
    for (place, request, mechanism, one), (_, _, _, two) in zip(here, there, strict=True):
        if one != two and place not in ("all", "inside"):
            differing.add(place)
        if isinstance(mechanism, cp.Laplace) and not isinstance(request, Keys) and one is not None:
            assert moved(one, two) <= allowed(table, request), "the noise is the same, so only the value moves"
    assert len(differing) <= table.reach("state")


def moved(one, two):
    pairs = zip(one, two, strict=True) if isinstance(one, tuple) else [(one, two)]
    return sum(abs(a - b) for a, b in pairs if a is not None and b is not None)  # what noise left without a value


def allowed(table, request):
    prepared = table.prepare(request)
    if type(prepared).__name__ == "Averaged":  # a ratio of two noisy numbers, brought into the bounds
        return prepared.high - prepared.low
    return prepared.sensitivity * prepared.grid


@settings(max_examples=20)
@given(people.worlds, people.units, st.integers(1, 3), st.lists(people.questions, min_size=5, max_size=10))
def test_what_is_said_to_move_one_way_goes_up_where_a_unit_is_added(world, unit, cap, questions):
    """What `monotone=True` halves the noise for: no coordinate of any such request goes down, parts and cuts too."""
    tables = [people.table(rows, cap) for rows in (world, {**world, 9: unit})]
    for cut in (lambda table: table, lambda table: table.part("state", "CA"), lambda table: table.spread("zip", 1)):
        here, there = map(cut, tables)
        for request in questions:
            if here.prepare(request).one_way:
                before, after = people.found(here, request), people.found(there, request)
                assert all(a <= b for a, b in zip(before, after, strict=True)), request


@settings(max_examples=20)
@given(people.questions)
def test_nothing_is_said_to_move_one_way_where_a_unit_is_replaced(request_):
    assert not REPLACED.prepare(request_).one_way


@settings(max_examples=20)
@given(people.worlds, people.units, people.units, st.sampled_from(["add-or-remove", "replace"]))
def test_a_table_cut_twice_moves_its_tallies_and_its_parts_by_no_more_than_it_says(world, unit, other, neighbours):
    left = {**world, 10: other} if neighbours == "replace" else world
    here, there = (
        people.table(rows, 4, neighbours).spread("zip", 2).spread("age", 1) for rows in (left, {**world, 9: unit})
    )
    times = 2 if neighbours == "replace" else 1
    assert (here.reach("zip"), here.reach("age"), here.reach("state")) == (2 * times, times, 4 * times)
    for column, keys in (("zip", ["10001", "10%", "1_", "é😀", "it's", "\\", ""]), ("age", [0, 17, 18, 99])):
        tally = cp.keys(column)
        l1, squared, each = people.moved(people.found(here, tally), people.found(there, tally))
        said = here.prepare(tally)
        assert (l1 <= said.sensitivity == here.reach(column)) and squared <= said.squared and each <= said.each
        differ = [
            people.found(here.part(column, key), cp.count()) != people.found(there.part(column, key), cp.count())
            for key in keys
        ]
        assert sum(differ) <= here.reach(column)


def test_texts_that_look_alike_are_two_parts_and_share_no_row():
    """Were they brought to one normal form, one row would be in two parts, which are paid for once."""
    composed, decomposed = "\u00e9", "e\u0301"
    rows = pa.table({"name": [composed, decomposed, composed + " ", "E\u0301"]})
    table = cp.Table(rows, unit=cp.each_row)
    counts = [people.found(table.part("name", key), cp.count()) for key in rows["name"].to_pylist()]
    assert counts == [(1,)] * 4
    assert people.found(table, cp.histogram("name", keys=[composed, decomposed])) == (1, 1)


def test_a_part_that_was_closed_comes_back_with_what_it_has_lost():
    session = cp.Session(people.table({}, 1), within=cp.PureDP(1))
    parts = session.partition("state", within=cp.PureDP("0.1"))
    with parts["CA"] as west:
        west.launch(cp.Laplace("0.1"))
    assert parts["CA"] is not west and parts["CA"].loss == cp.PureDP("0.1")
    with pytest.raises(cp.BudgetExceeded):
        parts["CA"].launch(cp.Laplace("0.001"))
    assert session.loss == cp.PureDP("0.1")

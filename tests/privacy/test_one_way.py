"""OneWay: asks that say so move together; which requests of a table may say so."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.sources import people

from counterpoint.coins.secure import SeededCoins
from counterpoint.composition.filters import Filter
from counterpoint.encoding import decode, encode
from counterpoint.errors import InvalidParameter, InvalidRequest, RelationMismatch
from counterpoint.measures import PureDP
from counterpoint.mechanisms.concurrent import Concurrent, Launch
from counterpoint.mechanisms.sparse_vector import SparseVector
from counterpoint.privacy.messages import Ask, ToChild, Update, gap
from counterpoint.privacy.relations import OneWay, Relation, Sparse, Steps, every_step, one_step
from counterpoint.queries import aggregates as requests
from counterpoint.session.session import Session

pairs = st.lists(st.tuples(st.integers(-3, 3), st.integers(-3, 3), st.integers(1, 3), st.booleans()), max_size=5)


@given(pairs)
@example([(0, 1, 1, True), (1, 0, 1, True)])
def test_one_way_holds_exactly_when_no_two_asks_that_say_so_move_against_each_other(sequence):
    messages = [
        (Ask(private=a, sensitivity=s, one_way=w), Ask(private=b, sensitivity=s, one_way=w)) for a, b, s, w in sequence
    ]
    small = all(abs(a - b) <= s for a, b, s, _ in sequence)
    marked = [(a, b) for a, b, _, w in sequence if w]
    one_way = all(a <= b for a, b in marked) or all(a >= b for a, b in marked)
    assert OneWay().valid(messages) == (small and one_way)
    assert OneWay().valid(messages) == OneWay().valid([(b, a) for a, b in messages])
    if OneWay().valid(messages):
        assert every_step().valid(messages)


def test_one_way_is_ordered_with_the_other_relations_and_knows_vectors_and_updates():
    table = OneWay(Steps(updates=0))
    assert OneWay().within(every_step()) and OneWay().within(OneWay()) and table.within(OneWay())
    assert table.within(Steps(updates=0)) and not OneWay().within(table)
    assert not every_step().within(OneWay()) and not OneWay().within(one_step()) and not OneWay().within(Steps(asks=3))
    assert Sparse(2, table).within(every_step()) and not Sparse(2, table).within(OneWay())
    for relation in (OneWay(), table):
        assert decode(encode(relation), Relation) == relation
    across = [Ask(private=v, sensitivity=2, one_way=True) for v in ((0, 1), (1, 0))]
    assert not OneWay().valid([tuple(across)])
    assert not table.valid([(Update(0), Update(1))]) and OneWay().valid([(Update(0), Update(1))])


def test_whether_an_ask_moves_one_way_and_how_far_each_integer_moves_are_public():
    assert gap(Ask(private=1, one_way=True), Ask(private=1)) is None
    assert gap(Ask(private=(1, 1), sensitivity=2, each=1), Ask(private=(1, 1), sensitivity=2)) is None
    with pytest.raises(InvalidParameter):
        Ask(private=1, one_way=1)
    for bad in (0, -1, 1.5, True, "x"):
        with pytest.raises(InvalidParameter):
            Ask(private=(1, 2), each=bad)


@given(st.integers(1, 9), st.none() | st.integers(1, 99), st.none() | st.integers(1, 9))
def test_the_change_of_each_integer_is_at_most_what_the_other_norms_allow(sensitivity, squared, each):
    ask = Ask(private=(0, 0), sensitivity=sensitivity, squared=squared, each=each)
    assert ask.each <= ask.sensitivity and ask.each**2 <= ask.squared
    assert each is None or ask.each <= each
    far = Ask(private=(ask.each, 0), sensitivity=sensitivity, squared=squared, each=each)
    further = Ask(private=(ask.each + 1, 0), sensitivity=sensitivity, squared=squared, each=each)
    assert every_step().valid([(ask, far)]) and not every_step().valid([(ask, further)])


@settings(max_examples=20, deadline=None)
@given(people.worlds, people.units, st.lists(people.questions, min_size=4, max_size=8), st.integers(1, 3))
def test_two_worlds_a_unit_more_moves_every_request_that_says_so_up(world, unit, questions, cap):
    here, there = people.table(world, cap), people.table({**world, 9: unit}, cap)
    asks = []
    for request in questions:
        prepared = here.prepare(request)
        facts = {"sensitivity": prepared.sensitivity, "squared": prepared.squared, "each": prepared.each}
        asks.append([Ask(None, people.found(t, request), one_way=prepared.one_way, **facts) for t in (here, there)])
        if prepared.one_way:
            before, after = people.found(here, request), people.found(there, request)
            assert all(a <= b for a, b in zip(before, after, strict=True))
    assert here.relation.valid(map(tuple, asks)) and here.relation.valid([(b, a) for a, b in asks])


def test_counts_move_one_way_if_units_come_and_go_but_not_signed_sums_means_or_replacements():
    plain, replaced = people.table({}), people.table({}, neighbours="replace")
    counts = [
        requests.count(),
        requests.count_distinct(),
        requests.histogram("state"),
        requests.ranks("income", [0, 1]),
    ]
    others = [requests.sum("income"), requests.sum("income", by="state"), requests.mean("income")]
    assert all(plain.prepare(request).one_way for request in counts)
    assert not any(plain.prepare(request).one_way for request in others)
    assert not any(replaced.prepare(request).one_way for request in counts + others)


def test_a_session_admits_a_monotone_sparse_vector_where_units_come_and_go_and_asks_it_counts_only():
    with pytest.raises(RelationMismatch):
        Session(people.table({}, neighbours="replace"), PureDP(1)).launch(SparseVector(1, 10, monotone=True))
    session = Session(people.table({}), PureDP(1))
    watching = session.launch(SparseVector(1, 10**6, sensitivity=2, monotone=True))
    assert watching.ask(requests.count()) is False
    with pytest.raises(InvalidRequest):
        watching.ask(requests.sum("income"))


def test_a_child_of_a_composition_hears_that_an_ask_moves_one_way():
    both, coins = Concurrent(Filter(PureDP(1)), OneWay()), SeededCoins(1)
    state, child = both.step(both.start(coins), Ask(Launch(SparseVector(1, 10**6, monotone=True))), coins)
    assert both.step(state, Ask(ToChild(child), 0, one_way=True), coins)[1] is False
    assert both.step(state, Ask(ToChild(child), 0), coins)[1].error == "InvalidRequest"

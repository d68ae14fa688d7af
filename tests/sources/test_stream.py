"""Streams: a public length, private values; neighbours stay within the declared relation and sensitivities."""

import sys
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from counterpoint.errors import CounterpointError, InvalidParameter, InvalidRequest
from counterpoint.mechanisms.sparse_vector import SparseVector
from counterpoint.privacy.messages import Ask, gap
from counterpoint.privacy.relations import MinSeparation, Steps, every_step, up_to_steps
from counterpoint.privacy.secret import reveal
from counterpoint.queries.request import PreparedQuery
from counterpoint.sources.streams.items import ItemShape, total
from counterpoint.sources.streams.stream import Stream

numbers = st.one_of(
    st.integers(-12, 12),
    st.integers(-(2**80), 2**80),
    st.floats(),
    st.fractions(),
    st.decimals(),
    st.none(),
    st.booleans(),
    st.floats(width=32).map(np.float32),
    st.integers(-100, 100).map(np.int8),
)
UNITS = ["ann", "bob", 7]


@st.composite
def declarations(draw):
    """Any stream there can be, small."""
    given = {"bound": draw(st.integers(1, 5)), "signed": draw(st.booleans())}
    given["neighbours"] = draw(st.sampled_from(["replace", "add-or-remove"]))
    if draw(st.booleans()):
        given["dimensions"] = draw(st.integers(1, 4))
        if draw(st.booleans()):
            given["l1"] = draw(st.integers(2, 12))
        if draw(st.booleans()):
            given["l2_squared"] = draw(st.integers(4, 60))
    if draw(st.booleans()):
        given |= {"unit": "user", "per_unit": draw(st.integers(1, 3)), "apart": draw(st.none() | st.integers(1, 4))}
    return given


def values_of(given):
    if "dimensions" not in given:
        return numbers
    vectors = st.lists(numbers, min_size=given["dimensions"], max_size=given["dimensions"])
    return (
        vectors | st.none() | st.lists(st.integers(-9, 9), min_size=given["dimensions"], max_size=given["dimensions"])
    )


@st.composite
def neighbours(draw):
    """A declaration and two lists of (value, unit) that are neighbours at its level."""
    given = draw(declarations())
    units = st.sampled_from(UNITS) if "unit" in given else st.none()
    left = draw(st.lists(st.tuples(values_of(given), units), min_size=1, max_size=9))
    place = draw(st.integers(0, len(left) - 1))
    affected = [place] if "unit" not in given else [i for i, (_, unit) in enumerate(left) if unit == left[place][1]]
    vanishes = given["neighbours"] == "add-or-remove" or draw(st.booleans())
    right = list(left)
    for index in affected:
        unit = left[index][1]
        right[index] = (None, unit and "nobody") if vanishes else (draw(values_of(given)), unit)
    return given, left, right


def filled(given, items):
    stream = Stream(**given)
    for value, unit in items:
        stream.append(value, unit=unit)
    return stream


@settings(max_examples=400)
@given(neighbours())
def test_neighbouring_streams_move_their_items_within_the_relation(case):
    given, left, right = case
    one, other = filled(given, left), filled(given, right)
    assert one.pin() == other.pin() == len(left)
    pairs = list(zip(one.items(0, one.pin()), other.items(0, other.pin()), strict=True))
    assert one.relation.valid(pairs)


@settings(max_examples=400)
@given(neighbours())
def test_neighbouring_streams_move_their_total_within_its_sensitivity_at_every_moment(case):
    given, left, right = case
    one, other = filled(given, left), filled(given, right)
    prepared = one.prepare(total())
    assert prepared == other.prepare(total())
    for pin in range(one.pin() + 1):
        asks = [
            Ask(None, stream.resolve(pin, prepared), prepared.sensitivity, prepared.squared) for stream in (one, other)
        ]
        distance = gap(*asks)
        assert distance.l1 <= prepared.sensitivity and distance.squared <= prepared.squared
        assert every_step().valid([tuple(asks)])


@given(neighbours())
def test_neighbouring_streams_look_alike(case):
    given, left, right = case
    one, other = filled(given, left), filled(given, right)
    assert repr(one) == repr(other) and repr(one.items(0, one.pin())) == repr(other.items(0, other.pin()))


@given(neighbours(), st.sampled_from(["text", [1], [1] * 9, object(), {"a": 1}, 1j, b"x", np.zeros((2, 2))]))
def test_both_worlds_raise_the_same_errors_and_store_nothing_of_what_they_refuse(case, stranger):
    given, left, right = case

    def errors(items):
        stream, seen = Stream(**given), []
        for value, unit in items:
            for candidate in (value, stranger):
                try:
                    stream.append(candidate, unit=unit)
                    seen.append("stored")
                except CounterpointError as error:
                    seen.append((type(error), str(error)))
        return seen, stream.pin()

    assert errors(left) == errors(right)


def raw(stream):
    return [reveal(update.private) for update in stream.items(0, stream.pin())]


def test_numbers_are_brought_to_the_grid_and_the_range_by_stated_rules():
    stream = Stream(bound=10)
    stream.extend([3, 3.4, 3.6, -2, 11, 1e300, float("inf"), float("-inf"), float("nan"), None, True])
    assert raw(stream) == [3, 3, 4, 0, 10, 10, 10, 0, 0, 0, 1]
    exact = Stream(bound=10, signed=True)
    exact.extend([Decimal("2.6"), Decimal("sNaN"), Fraction(-7, 2), -11, np.float32(-1.4), np.int64(5), np.array(6)])
    assert raw(exact) == [3, 0, -4, -10, -1, 5, 6]


def test_vectors_are_brought_into_what_was_declared():
    box = Stream(bound=2, dimensions=3)
    box.extend([[5, -1, float("nan")], (1, 2, 1), np.array([0.6, 0, 9]), None])
    assert raw(box) == [(2, 0, 0), (1, 2, 1), (1, 0, 2), (0, 0, 0)]
    one_hot = Stream(bound=1, dimensions=4, l1=2, l2_squared=2)
    one_hot.extend([[0, 0, 1, 0], [0, 1, 1, 1]])
    assert raw(one_hot) == [(0, 0, 1, 0), (0, 1, 0, 0)]
    long = Stream(bound=9, dimensions=2, signed=True, l2_squared=100)
    long.append([-4, 9])
    assert raw(long) == [(-4, 3)], "squared length at most 25, so that two are at most 100 apart"


@pytest.mark.parametrize(
    ("given", "l1", "squared"),
    [
        ({}, 1, 1),
        ({"bound": 5}, 5, 25),
        ({"bound": 5, "signed": True}, 10, 100),
        ({"bound": 3, "dimensions": 4}, 12, 36),
        ({"bound": 1, "dimensions": 4, "l1": 2}, 2, 2),
        ({"bound": 1, "dimensions": 4, "l2_squared": 2}, 2, 2),
        ({"bound": 9, "dimensions": 100, "l2_squared": 50}, 50, 50),
        ({"bound": 1, "dimensions": 2, "l1": 50, "l2_squared": 70}, 2, 2),
    ],
)
def test_distances_follow_from_the_declaration(given, l1, squared):
    assert Stream(**given).relation == Steps(updates=1, bound=l1, squared=squared)
    user = Stream(**given, unit="user", per_unit=3)
    assert user.relation == Steps(updates=3, bound=l1, squared=squared)
    assert (user.prepare(total()).sensitivity, user.prepare(total()).squared) == (3 * l1, 9 * squared)


@pytest.mark.parametrize(
    ("given", "left", "right"),
    [
        ({"bound": 5}, 0, 5),
        ({"bound": 5, "signed": True}, -5, 5),
        ({"bound": 2, "dimensions": 3}, [0, 0, 0], [2, 2, 2]),
        ({"bound": 1, "dimensions": 3, "l1": 2}, [1, 0, 0], [0, 0, 1]),
    ],
)
def test_the_stated_sensitivity_is_attained(given, left, right):
    given = given | {"unit": "user", "per_unit": 2}
    streams = [filled(given, [(value, "ann")] * 3) for value in (left, right)]
    prepared = streams[0].prepare(total())
    asks = [Ask(None, stream.resolve(3, prepared), 10**6) for stream in streams]
    assert gap(*asks)[:2] == (prepared.sensitivity, prepared.squared) and gap(*asks).each <= prepared.each


def test_a_units_later_items_arrive_as_zeros_so_that_their_number_tells_nothing():
    stream = Stream(bound=9, unit="user", per_unit=2)
    stream.extend([1, 2, 3, 4, 5], units=["ann", "ann", "bob", "ann", "bob"])
    assert raw(stream) == [1, 2, 3, 0, 5]


def test_items_of_a_unit_that_follow_too_closely_arrive_as_zeros_and_are_none_of_those_that_count():
    stream = Stream(bound=9, unit="user", per_unit=3, apart=3)
    stream.extend([1, 2, 3, 4, 5], units=["ann", "ann", "bob", "ann", "bob"])
    stream.extend([6, 7, 8, 9], units=["bob", "ann", "ann", "ann"])
    stream.append(1, unit="ann")
    #    ann 0, too near, bob 2, ann 3, bob too near, bob 5, ann 6, too near, too near, ann's fourth
    assert raw(stream) == [1, 0, 3, 4, 0, 6, 7, 0, 0, 0]
    assert stream.relation == MinSeparation(Steps(updates=3, bound=9), 3)


def test_a_distance_is_declared_shown_and_part_of_the_fingerprint():
    near, far = (Stream(unit="user", per_unit=3, apart=apart) for apart in (None, 50))
    assert near.fingerprint() != far.fingerprint() != Stream(unit="user", per_unit=3, apart=51).fingerprint()
    assert repr(far) == "Stream(bound=1, unit='user', per_unit=3, apart=50; 0 items)"
    words = " ".join(far.describe().split())
    assert "later ones, items less than 50 places after one that counts, and items without a user, stay" in words
    assert "unit: user, of which the first 3 items count that are at least 50 places apart" in words


def test_which_items_count_is_not_decided_by_their_values():
    stream = Stream(bound=9, unit="user", per_unit=1)
    stream.append(0, unit="ann")
    stream.append(None, unit="bob")
    stream.extend([5, 6], units=["ann", "bob"])
    assert raw(stream) == [0, 0, 0, 0], "a 0 uses up the place, else a neighbour could move two places"


def test_whose_an_item_is_must_be_said_at_user_level_and_only_there():
    event, user = Stream(), Stream(unit="user", per_unit=1)
    with pytest.raises(InvalidRequest, match="event level"):
        event.append(1, unit="ann")
    with pytest.raises(InvalidRequest, match="'user'"):
        user.append(1)
    with pytest.raises(InvalidRequest, match="'user'"):
        user.extend([1, 1], units=["ann"])
    for nobody in (True, b"ann", ["ann"]):
        with pytest.raises(InvalidRequest, match="a text or a whole number"):
            user.append(1, unit=nobody)
    assert event.pin() == user.pin() == 0


def test_a_malformed_item_refuses_the_whole_batch():
    stream = Stream(dimensions=2)
    with pytest.raises(InvalidRequest, match="vector of 2"):
        stream.extend([[1, 0], [1]])
    assert stream.pin() == 0


def test_totals_are_those_of_the_pinned_prefix_for_ever():
    stream = Stream(bound=9)
    prepared = stream.prepare(total())
    stream.extend([1, 2, 3])
    pin = stream.pin()
    stream.extend([9, 9])
    assert [reveal(stream.resolve(p, prepared)) for p in (0, pin, stream.pin())] == [0, 6, 24]
    assert [reveal(update.private) for update in stream.items(1, pin)] == [2, 3] and stream.items(2, 2) == ()


@pytest.mark.parametrize("pin", [-1, 3, "v1", 1.0, None, True])
def test_a_pin_is_a_number_of_items_that_have_arrived(pin):
    stream = Stream()
    stream.extend([1, 1])
    for read in (lambda: stream.resolve(pin, stream.prepare(total())), lambda: stream.items(0, pin)):
        with pytest.raises(InvalidRequest):
            read()


def test_a_stream_answers_its_own_requests_only():
    stream = Stream(bound=5)
    for request in ("total", None, 3, PreparedQuery(None, 1, 1, None, Fraction(1))):
        with pytest.raises(InvalidRequest, match="total"):
            stream.prepare(request)
    with pytest.raises(InvalidRequest, match="another source"):
        stream.resolve(0, Stream(bound=1).prepare(total()))
    with pytest.raises(InvalidRequest, match="dimensions"):
        stream.part("shop", "A")
    with pytest.raises(InvalidRequest, match="shop"):
        stream.reach("shop")


def test_a_total_can_be_compared_with_a_threshold_of_its_sensitivity():
    stream = Stream(bound=5)
    prepared = stream.prepare(total())
    ask = Ask(None, stream.resolve(0, prepared), prepared.sensitivity, prepared.squared)
    assert SparseVector(1, 100, sensitivity=5).accepts(ask) and not SparseVector(1, 100).accepts(ask)
    assert stream.relation.within(SparseVector(1, 100, sensitivity=5).claim.relation)


def test_the_relation_fits_the_claims_of_event_level_and_of_user_level_counters():
    event, user = Stream(bound=2).relation, Stream(bound=2, unit="user", per_unit=3).relation
    assert event.within(Steps(updates=1, bound=2)) and not event.within(Steps(updates=1, bound=1))
    assert user.within(Steps(updates=3, bound=2)) and not user.within(Steps(updates=1, bound=2))
    assert not event.within(up_to_steps(1, 2)), "asks may differ, too, so a claim about one message is not enough"


def test_a_stream_shows_its_declaration_and_its_length_and_nothing_else():
    stream = Stream(bound=777, dimensions=2, unit="user", per_unit=3, signed=True, l1=40)
    stream.append([321, 123], unit="ann")
    assert repr(stream) == "Stream(bound=777, dimensions=2, unit='user', per_unit=3, signed=True, l1=40; 1 items)"
    assert not hasattr(stream, "__dict__")


def test_many_threads_may_append_at_once():
    stream = Stream(bound=3, unit="user", per_unit=1000)

    def work(name):
        for _ in range(20):
            stream.append(2, unit=name % 4)
            stream.extend([1] * 99, units=[name % 4] * 99)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)  # so that threads take turns in the middle of everything
    try:
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(work, range(8)))
    finally:
        sys.setswitchinterval(interval)
    values = raw(stream)
    assert len(values) == stream.pin() == 8 * 2000
    assert set(values) == {0, 1, 2} and sum(value > 0 for value in values) == 4 * 1000, "no item lost, none too many"


@pytest.mark.parametrize(
    "given",
    [
        {"bound": 0},
        {"bound": 1.5},
        {"dimensions": 0},
        {"unit": "user"},
        {"per_unit": 2},
        {"unit": "user", "per_unit": 0},
        {"apart": 3},
        {"unit": "user", "apart": 3},
        {"unit": "user", "per_unit": 2, "apart": 0},
        {"unit": "user", "per_unit": 2, "apart": 1.5},
        {"unit": "user", "per_unit": 2, "apart": "far"},
        {"unit": "user", "per_unit": 2, "apart": 10**5000},
        {"unit": "user", "per_unit": 10**5000},
        {"l1": 2},
        {"l2_squared": 2},
        {"dimensions": 3, "l1": 1},
        {"dimensions": 3, "l2_squared": 1},
        {"dimensions": 3, "signed": True, "l2_squared": 3},
        {"bound": "x"},
        {"signed": 1},
        {"unit": 5, "per_unit": 1},
    ],
)
def test_bad_declarations_are_refused(given):
    with pytest.raises(InvalidParameter):
        Stream(**given)


def test_a_shape_knows_a_value_that_says_nothing():
    assert ItemShape().zero == 0 and ItemShape(dimensions=2).zero == (0, 0)
    assert ItemShape(dimensions=2).fit(None) == (0, 0)
    assert ItemShape(bound=2.0, dimensions=2.0).fit([9, 9]) == (2, 2)

"""Feeding from Python: whole batches, each item once, resumed by what is on record, whatever goes wrong between."""

from itertools import islice

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.ledger.crashes import Killer, in_child
from tests.ledger.places import DURABLE, Place

import counterpoint as cp
from counterpoint.errors import FeedFailed, InvalidParameter, InvalidRequest, RequestConflict
from counterpoint.sources.streams.log import FeedStep

SURE = cp.PureDP(10**7)


@pytest.fixture(params=[None, *DURABLE])
def fed(request, tmp_path):
    """A stream that is alone, or in a durable ledger of each kind."""
    stream = cp.Stream(bound=10**6)
    if request.param is None:
        yield stream
        return
    with Place(request.param, tmp_path).session(SURE, source=stream):
        yield stream


class Torn(Exception):
    """What a source of its own raises."""


def torn(items, at):
    """Items, and an error instead of the one at this place."""
    yield from islice(items, at)
    raise Torn(items[at])


def test_every_item_arrives_once_in_order_and_in_batches(fed):
    assert fed.feed(range(25), name="numbers", batch=10) == 25
    assert (fed.log.items, fed.pin(), fed.position("numbers")) == (list(range(25)), 25, "25 items")
    assert fed.feed(range(25), name="numbers", batch=7) == 0, "nothing is left to deliver"
    assert fed.feed(iter(range(40)), name="numbers", batch=7) == 15 and fed.log.items == list(range(40))
    assert fed.feed(range(3), name="others") == 3, "another feed has a position of its own"
    fed.append(7)
    assert fed.feed(range(41), name="numbers") == 1, "and neither that nor an append stands in the way"


def test_a_torn_source_leaves_whole_batches_and_goes_on_when_it_is_mended(fed):
    items = list(range(100, 125))
    with pytest.raises(
        FeedFailed, match="the batches before have arrived, and nothing of the unfinished one"
    ) as failed:
        fed.feed(torn(items, 17), name="numbers", batch=5)
    assert isinstance(failed.value.__cause__, Torn), "the source's own error, for the one who mends it"
    assert fed.log.items == items[:15]
    assert fed.feed(items, name="numbers", batch=5) == 10 and fed.log.items == items


def test_a_function_opens_the_source_behind_what_has_arrived(fed):
    asked = []

    def behind(start):
        asked.append(start)
        return range(start, 12)

    assert [fed.feed(behind, name="numbers", batch=5) for _ in range(2)] == [12, 0]
    assert asked == [0, 12] and fed.log.items == list(range(12))
    with pytest.raises(FeedFailed) as failed:
        fed.feed(lambda start: 1 // 0, name="numbers")
    assert isinstance(failed.value.__cause__, ZeroDivisionError)


def test_a_source_that_is_shorter_than_what_arrived_is_another_one(fed):
    fed.feed(range(10), name="numbers")
    with pytest.raises(FeedFailed, match="10 items of feed 'numbers' have arrived, and the source has fewer"):
        fed.feed(range(9), name="numbers")
    assert fed.pin() == 10


def test_an_item_of_a_wrong_type_refuses_its_batch_and_no_other(fed):
    with pytest.raises(InvalidRequest, match="must be a number, not a str"):
        fed.feed([1, 2, 3, "four", 5], name="numbers", batch=2)
    assert fed.log.items == [1, 2]


def test_a_second_feeder_under_one_name_is_refused_before_anything_arrives_twice(fed):
    items = iter(range(20))
    assert fed.feed(islice(items, 5), name="numbers") == 5
    stale = FeedStep("numbers", "4 items", follows=None)
    for step in (stale, FeedStep("numbers", "9 items", follows="4 items"), FeedStep("numbers", "5 items", None)):
        with pytest.raises(RequestConflict, match="is at another position by now, so nothing was added"):
            fed.receive([0, 1, 2, 3], step)
    assert fed.pin() == 5 and fed.feed(range(20), name="numbers", batch=3) == 15


def test_positions_are_told_apart_whatever_feeds_are_called(fed):
    names = ["a", "a: b", "a: 3 items", ": ", "a:", "é", "%", "_"]
    for size, name in enumerate(names, start=1):
        assert fed.feed(range(size), name=name) == size
    assert [fed.position(name) for name in names] == [f"{size} items" for size in range(1, len(names) + 1)]
    fed.log.extend([1], [None], step=FeedStep("b", "key 12", follows=None))
    with pytest.raises(RequestConflict, match="items of another kind of source have arrived under the name 'b'"):
        fed.feed([1], name="b")


@pytest.mark.parametrize("name", [None, "", 5, "x" * 151, "\ud800", "nul\0"])
def test_a_feed_needs_a_name(name):
    with pytest.raises(InvalidParameter, match="a feed needs a name"):
        cp.Stream().feed([1], name=name)


@pytest.mark.parametrize("source", [5, "visits.csv", b"bytes", {"a": 1}, None, 1.5])
def test_a_source_is_something_to_read(source):
    with pytest.raises(InvalidParameter, match=f"a feed reads an iterable .*, not a {type(source).__name__}"):
        cp.Stream().feed(source, name="a")


def test_options_of_another_source_are_refused():
    with pytest.raises(InvalidParameter, match="has no option 'checkpoint': it takes name and batch"):
        cp.Stream().feed([1], name="a", checkpoint="folder")
    for batch in (0, -1, 1.5, "x"):
        with pytest.raises(InvalidParameter, match="batch"):
            cp.Stream().feed([1], name="a", batch=batch)


def test_no_append_passes_for_a_batch_of_a_feed(fed):
    for id in ("monday: 3 items", "monday: key 3", "feed monday: 3 items", "Feed: monday: 3 items"):
        fed.append(1, id=id)
    assert fed.position("monday") is None
    assert fed.feed([1, 2, 3, 4], name="monday", batch=2) == 4 and fed.position("monday") == "4 items"
    for id in ("feed of monday: 9 items", "feed of monday: 4 items", "feed of "):
        with pytest.raises(InvalidParameter, match="must not begin with 'feed of '"):
            fed.append(1, id=id)
    assert fed.pin() == 8 and fed.feed([1, 2, 3, 4], name="monday") == 0


def test_a_part_or_a_field_is_not_fed():
    visits = cp.Stream(fields={"page": cp.text()})
    with pytest.raises(InvalidRequest, match="use the original"):
        visits.part("page", "home").feed([], name="a")


values = st.one_of(st.integers(-5, 15), st.floats(), st.none(), st.text(max_size=3), st.booleans())


@settings(max_examples=60)
@given(st.lists(values, min_size=1, max_size=12), st.data())
def test_what_arrives_has_the_same_number_in_both_worlds(left, data):
    """Neighbours: one record becomes another, whatever its value is, or nothing."""
    place = data.draw(st.integers(0, len(left) - 1))
    right = list(left)
    right[place] = data.draw(values)
    size = data.draw(st.integers(1, 5))
    streams = [cp.Stream(fields={"x": cp.number(0, 9)}) for _ in range(2)]
    arrived = [
        stream.feed(({"x": value} for value in world), name="feed", batch=size)
        for stream, world in zip(streams, (left, right), strict=True)
    ]
    assert arrived == [len(left)] * 2
    one, other = (stream.items(0, stream.pin()) for stream in streams)
    assert streams[0].relation.valid(list(zip(one, other, strict=True)))


@pytest.mark.parametrize("kind", DURABLE)
def test_after_a_crash_at_any_point_the_feed_goes_on_and_each_item_is_there_once(kind, tmp_path):
    place = Place(kind, tmp_path)

    def feeding(at):
        def work(say):
            stream = cp.Stream(bound=100)
            with place.session(SURE, source=stream, reached=Killer(at)):
                say(stream.feed(range(30), name="numbers", batch=4))

        return work

    lived, found = False, []
    for at in range(1, 40):
        _, lived = in_child(feeding(at))
        with place.session(SURE, source=(stream := cp.Stream(bound=100))) as session:
            found.append(stream.pin())
            assert stream.log.items == list(range(stream.pin()))
            assert stream.pin() % 4 == 0 or stream.pin() == 30, "whole batches"
            session._engine.ledger.verify()
        if lived:
            break
    assert lived and found[-1] == 30 and len(set(found)) > 3, found

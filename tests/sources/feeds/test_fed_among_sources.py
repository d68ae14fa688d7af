"""Feeding a stream that is among several sources: it goes on where it was before it was among them."""

import pyarrow as pa
import pytest
from tests.ledger.places import Place

import counterpoint as cp

SURE = cp.PureDP(10**7)
VISITS = [{"who": n % 5, "seconds": n} for n in range(20)]


def visits():
    return cp.Stream(fields={"seconds": cp.number(0, 600)}, unit="who", per_unit=9)


def among(stream, **others):
    people = cp.Table(pa.table({"who": list(range(5))}), unit="who", rows_per_unit=1, key=b"sixteen bytes...")
    return cp.Sources(people=people, visits=stream, **others, unit="who")


@pytest.mark.parametrize("name", ["v", "v: w", "x" * 50, "x" * 97, "x" * 99, "x" * 100, "x" * 150])
def test_a_feed_goes_on_after_its_stream_has_joined_other_sources(name, tmp_path):
    place, stream = Place("sqlite", tmp_path), visits()
    assert stream.feed(VISITS[:8], name=name, batch=3) == 8
    with place.session(SURE, source=among(stream)):
        assert stream.position(name) == "8 items"
        assert stream.feed(VISITS[:15], name=name, batch=4) == 7
    with place.session(SURE, source=among(stream := visits())):
        assert stream.feed(VISITS, name=name) == 5
        assert stream.pin() == 20 and [item[0] for item in stream.log.items] == list(range(20))
    with place.session(SURE, source=among(stream := visits())):
        assert stream.feed(VISITS, name=name) == 0 and stream.position("another") is None


@pytest.mark.parametrize("id", ["a", "a: b", "a: " + "b" * 99, "a: " + "b" * 100, "b" * 99 + ": a", "b" * 200 + ": a"])
def test_an_append_that_is_repeated_after_its_stream_has_joined_adds_nothing(id, tmp_path):
    stream = visits()
    stream.extend(VISITS[:3], id=id)
    with Place("sqlite", tmp_path).session(SURE, source=among(stream)):
        stream.extend(VISITS[:3], id=id)
        assert stream.pin() == 3


def test_no_append_passes_for_a_batch_of_a_feed_of_one_of_several(tmp_path):
    stream, other = visits(), visits()
    stream.append(VISITS[0], id="monday: 5 items")
    with Place("sqlite", tmp_path).session(SURE, source=among(stream, feed=other)):
        other.append(VISITS[0], id="visits: monday: 9 items")  # whose source is called as a feed's ids begin
        assert other.position("visits: monday") is None
        for id in ("monday: 9 items", "visits: monday: 9 items", "x" * 99 + ": 9 items"):
            stream.append(VISITS[0], id=id)
        for name in ("monday", "visits: monday", "x" * 99):
            assert stream.position(name) is None
            assert stream.feed(VISITS[:3], name=name) == 3

"""Sessions launch what is postprocessed at the same price, in delegations and parts too, or refuse it for free."""

import polars as pl
import pytest
from tests.mechanisms.catalogue import Forward
from tests.mechanisms.test_postprocessing_relations import Twice
from tests.session.deeds import lines

import counterpoint as cp
from counterpoint.errors import InvalidRequest, NotCovered
from counterpoint.local.responders import Membership
from counterpoint.mechanisms.postprocessing import Postprocessed
from counterpoint.verify.finite import OpenDoor


def table():
    people = pl.DataFrame({"person": [1, 2, 3, 4], "sex": ["f", "m", "f", "m"]})
    return cp.Table(people, unit="person", rows_per_unit=1, columns={"sex": cp.category(["f", "m"])})


def stream():
    clicks = cp.Stream(fields={"page": cp.text()})
    clicks.extend({"page": page} for page in ("home", "shop", "home"))
    return clicks


def rooms(source, by):
    """A session, one that was delegated, and a part of a partition: each with a budget of 4."""
    session = cp.Session(source, within=cp.PureDP(20))
    return session, session.delegate(cp.PureDP(4)), session.partition(by, k=2, within=cp.PureDP(4))["home"]


def test_a_postprocessor_that_asks_twice_is_paid_for_once_on_a_table():
    session = cp.Session(table(), within=cp.PureDP(2))
    parts = session.partition("sex", within=cp.PureDP(1))
    for room in (session, session.delegate(cp.PureDP("0.5")), parts["f"]):
        before = room.loss
        both = room.launch(cp.postprocess(Twice(), cp.Laplace("0.5", asks=2))).ask(cp.count())
        assert len(both) == 2 and room.loss.epsilon == before.epsilon + cp.PureDP("0.5").epsilon


def test_what_follows_a_stream_is_launched_behind_a_postprocessor_at_its_own_price():
    for room in rooms(stream(), "page"):
        before = room.loss
        handle = room.launch(cp.postprocess(Forward(), cp.Counter(epsilon=1)))
        assert isinstance(handle.ask(), int) and room.loss.epsilon == before.epsilon + 1
        assert handle.mechanism.asks_are_public


@pytest.mark.parametrize(
    "mechanism", [OpenDoor("0.5"), Membership(1, bits=1), cp.mechanisms.InteractiveRandomizedResponse(1)]
)
def test_a_claim_that_a_postprocessor_takes_from_its_relation_is_refused_and_nothing_is_charged(mechanism):
    by_hand = Postprocessed(Twice(), mechanism)
    for room in rooms(stream(), "page"):
        before, launched = room.loss, lines(room)
        with pytest.raises(NotCovered):
            room.launch(by_hand)
        with pytest.raises(NotCovered):
            room.would_cost(by_hand)
        assert room.loss == before and lines(room) == launched


def test_a_postprocessor_does_not_hide_that_a_mechanism_only_follows_what_arrives():
    session = cp.Session(table(), within=cp.PureDP(1))
    with pytest.raises(InvalidRequest, match="a table does not change"):
        session.launch(cp.postprocess(Forward(), cp.Counter(epsilon=1)))
    assert session.loss == cp.PureDP(0)

"""Followers of a session: they see each change once, connect again, and end with their key."""

import httpx
import pytest
from tests.service.places import in_process

import counterpoint as cp
from counterpoint.client.connect import LONGEST, ItemsArrived, LossChanged
from counterpoint.service.api import events


@pytest.fixture
def place(tmp_path):
    with in_process(tmp_path) as found:
        yield found


class Scripted(httpx.BaseTransport):
    """Answers in turn: with a body of events, with a status, or not at all."""

    def __init__(self, *replies):
        self.replies, self.asked = list(replies), []

    def handle_request(self, request):
        self.asked.append(request.url.params["seconds"])
        reply = self.replies.pop(0)
        if reply is None:
            raise httpx.ConnectError("away", request=request)
        if isinstance(reply, int):
            return httpx.Response(reply, json={"type": "about:blank", "title": "x", "status": reply, "detail": "no"})
        return httpx.Response(200, text=reply, headers={"content-type": "text/event-stream"})


def items(*counts):
    return "".join(f'event: items\r\ndata: {{"items": {count}}}\r\n\r\n' for count in counts)


def followed(*replies):
    """A connection that gets these replies, and how long it waits between them."""
    transport, backoff = Scripted(*replies), []
    connection = cp.connect("http://localhost", key="cp_x", transport=transport)
    connection._sleep = backoff.append
    return connection.follow("/v1/sessions/visits.0/events", None), transport.asked, backoff


def test_a_follower_sees_each_change_once_and_connects_again():
    torn = items(2) + "event: items\r\ndata: {"
    after = ": nothing new\r\n\r\n" + items(2, 2, 5)
    events, asked, backoff = followed(items(1, 2), None, torn, 503, after, 401)
    assert [next(events).items for _ in range(3)] == [1, 2, 5]
    with pytest.raises(cp.errors.NotAllowed):
        next(events)
    assert backoff == [0.1, 0.1] and set(asked) == {"300"}


def test_a_service_that_stays_away_ends_a_follower():
    events, asked, backoff = followed(*[None] * 7)
    with pytest.raises(cp.errors.ServiceFailed, match="could not be reached"):
        next(events)
    assert len(asked) == 7 and backoff == [0.1, 0.2, 0.4, 0.8, 1.6, 3.2]


def test_signs_of_life_and_kinds_of_a_later_service_are_no_events():
    events, *_ = followed(": nothing new\r\n\r\nevent: weather\r\ndata: 1\r\n\r\n" + items(3))
    assert next(events) == ItemsArrived(3)


def test_a_client_asks_for_events_for_as_long_as_a_service_sends_them():
    assert events.LONGEST == LONGEST


def test_a_session_is_followed_for_some_seconds(place):
    session = place.session("people")
    session.launch(cp.Laplace(1))
    seen = list(session.events(seconds=1))
    assert [type(event) for event in seen] == [LossChanged] and seen[0].loss == cp.PureDP(1)
    with pytest.raises(cp.errors.NotAllowed):
        list(place.connect("bob").session("people").events(seconds=1))

"""Events: a reader sees its session's loss and a stream's items as they change, and nothing of others."""

import json
import threading
import time

import pytest
from tests.service.registry import served

from counterpoint.service.api import events
from counterpoint.service.limits import Limits

COUNT = {"request": {"request": "count", "where": "age > 35"}}


@pytest.fixture
def call(tmp_path, monkeypatch):
    monkeypatch.setattr(events, "EVERY", 0.05)
    with served(tmp_path, limits=Limits(streams=1)) as caller:
        yield caller


def read(text):
    """The events in a response: what kind each is of, and what it says."""
    blocks = [block for block in text.split("\r\n\r\n") if block]
    found = [dict(line.split(": ", 1) for line in block.splitlines()) for block in blocks]
    return [(one["event"], json.loads(one["data"])) for one in found]


def followed(call, who, session, act, seconds=3):
    """What a reader got while something was done."""
    got = []
    reader = threading.Thread(
        target=lambda: got.append(call(who, "GET", f"/v1/sessions/{session}/events?seconds={seconds}"))
    )
    reader.start()
    while not call.client.app.state.limiter.running[who, True]:
        time.sleep(0.01)
    act()
    reader.join()
    assert got[0].status_code == 200 and got[0].headers["content-type"].startswith("text/event-stream")
    return read(got[0].text)


def test_a_reader_gets_the_loss_as_it_changes(call):
    session = call.granted()
    got = followed(call, "ann", session, lambda: call.launched(session))
    losses = [said["loss"]["text"] for kind, said in got if kind == "loss"]
    assert losses[-1] == "PureDP(0.1)" and len(losses) <= 2


def test_a_follower_of_a_stream_gets_how_many_items_have_arrived(call):
    session = call.granted(data_set="visits")
    got = followed(
        call, "ann", session, lambda: call("paul", "POST", "/v1/data-sets/visits/items", {"items": [1, 0, 1]})
    )
    assert [said["items"] for kind, said in got if kind == "items"][-1] == 3


def test_what_others_do_sends_nothing(call):
    session, other = call.granted(), call.granted(to="bob")

    def busy():
        handle = call.launched(other, who="bob")
        for _ in range(3):
            call("bob", "POST", f"/v1/handles/{handle}/asks", COUNT)

    got = followed(call, "ann", session, busy, seconds=2)
    assert [kind for kind, _ in got] == ["loss"] and got[0][1]["loss"]["text"] == "PureDP(0)"


@pytest.mark.parametrize("how", ["key", "service"])
def test_a_stream_ends_with_its_key_and_with_the_service(call, how):
    end = {"key": lambda: call.registry.identity.end("ann"), "service": call.client.app.state.stopping.set}
    followed(call, "ann", call.granted(), end[how], seconds=300)


def test_a_principal_has_so_many_streams_open(call):
    session, got = call.granted(), []
    another = f"/v1/sessions/{session}/events?seconds=1"
    followed(call, "ann", session, lambda: got.append(call("ann", "GET", another).status_code), seconds=2)
    assert got == [429]

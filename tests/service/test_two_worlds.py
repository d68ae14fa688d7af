"""Two worlds over HTTP: whatever another analyst does, one sees the same lists, ids, refusals, events and limits."""

import json

from tests.service.authorisation import COUNT
from tests.service.registry import served

from counterpoint.service.limits import Limits

TOO_MUCH = {"mechanism": {"mechanism": "Laplace", "epsilon": 9}}
PUBLIC = {"when", "value", "released", "receipt", "id"}
"""What differs from run to run: times, noise, and receipts, whose place in the record is public."""


def steady(said):
    """What was said without what differs from run to run."""
    if isinstance(said, dict):
        read = {
            name: json.loads(part) if name == "exact" and isinstance(part, str) else part for name, part in said.items()
        }
        return {name: steady(part) for name, part in read.items() if name not in PUBLIC}
    return [steady(part) for part in said] if isinstance(said, list) else said


def quiet(call, session):
    """Another analyst who does nothing."""


def busy(call, session):
    """Another analyst who launches, asks, is refused, delegates, and sends until the rate limit refuses."""
    handle = call.launched(session, who="bob")
    for number in range(3):
        call("bob", "POST", f"/v1/handles/{handle}/asks", COUNT, id=f"id {number}")
    call("bob", "POST", f"/v1/sessions/{session}/questions", {**COUNT, "epsilon": 0.2}, id="monday")
    call("bob", "POST", f"/v1/sessions/{session}/delegations", {"within": {"measure": "PureDP", "epsilon": 0.1}})
    while call("bob", "POST", f"/v1/sessions/{session}/launches", TOO_MUCH).status_code != 429:
        pass


def scene(folder, other):
    """All that ann sees, with another analyst at work between every two of her requests' kinds."""
    folder.mkdir()
    with served(folder, limits=Limits(per_second=1, burst=60, refusal=9)) as call:
        session, others = call.granted(), call.granted(to="bob")
        other(call, others)
        handle = call.launched(session)
        got = [call("ann", "POST", f"/v1/handles/{handle}/asks", COUNT, id="monday")]
        got += [call("ann", "POST", f"/v1/sessions/{session}/questions", {**COUNT, "epsilon": 0.2}, id="id 1")]
        got += [call("ann", "POST", f"/v1/sessions/{session}/launches", TOO_MUCH)]
        got += [call("ann", "GET", f"/v1/sessions/{session}/receipts?id={id}") for id in ("monday", "id 2")]
        got += [call("ann", "GET", url) for url in ("/v1/data-sets", "/v1/data-sets/people", "/v1/sessions")]
        got += [
            call("ann", "GET", f"/v1/sessions/{session}{end}") for end in ("", "/certificate", "/history", "/place")
        ]
        got += [call("ann", "GET", f"/v1/handles/{name}") for name in (handle, f"{others}.0", f"{others}.7")]
        got += [call("ann", "POST", f"/v1/sessions/{session}/quotes", {**COUNT, "epsilon": 0.1})]
        seen = [(one.status_code, steady(one.json())) for one in got]
        events = call("ann", "GET", f"/v1/sessions/{session}/events?seconds=1").text
        return seen, [json.loads(line[6:]) for line in events.splitlines() if line.startswith("data: ")]


def test_whatever_another_analyst_does_one_sees_the_same(tmp_path):
    one, another = scene(tmp_path / "one", quiet), scene(tmp_path / "another", busy)
    assert one == another
    assert {status for status, _ in one[0]} == {200, 201, 404, 409}

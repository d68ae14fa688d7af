"""Limits: a principal that asks too often, too much at once or too long is refused, and others notice nothing."""

import threading
import time

import pytest
from tests.service.registry import served

import counterpoint as cp
from counterpoint.service.limits import Limits
from counterpoint.session.handle import Handle

COUNT = {"request": {"request": "count", "where": "age > 35"}}
TOO_MUCH = {"mechanism": {"mechanism": "Laplace", "epsilon": 2}}


def test_too_many_requests_are_refused_with_when_to_come_again(tmp_path):
    with served(tmp_path, limits=Limits(per_second=1, burst=3)) as call:
        got = [call("ann", "GET", "/v1/sessions") for _ in range(8)]
        refused = [one for one in got if one.status_code == 429]
        assert [one.status_code for one in got[:3]] == [200] * 3 and refused
        assert refused[0].headers["content-type"] == "application/problem+json"
        assert int(refused[0].headers["retry-after"]) >= 1 and refused[0].json()["title"] == "TooManyRequests"
        assert call("bob", "GET", "/v1/sessions").status_code == 200


def test_refusals_count_for_more_so_that_they_cannot_fill_the_ledger(tmp_path):
    with served(tmp_path, limits=Limits(per_second=1, burst=100, refusal=19)) as call:
        session = call.granted()
        got = [call("ann", "POST", f"/v1/sessions/{session}/launches", TOO_MUCH).status_code for _ in range(30)]
        assert got[:5] == [409] * 5 and 5 <= got.count(409) <= 7 and got[-1] == 429
        lines = call("carol", "GET", f"/v1/sessions/{session}/history").json()["facts"]
        assert [line["kind"] for line in lines].count("refusal") == got.count(409)


def test_what_is_refused_for_its_rate_is_not_charged_and_can_be_repeated(tmp_path):
    with served(tmp_path, limits=Limits(per_second=20, burst=2)) as call:
        session = call.granted()
        body = {"mechanism": {"mechanism": "Laplace", "epsilon": 0.1}}
        for name in "abcdef":
            while call("ann", "POST", f"/v1/sessions/{session}/launches", body, id=name).status_code == 429:
                time.sleep(0.05)
        assert call("carol", "GET", f"/v1/sessions/{session}").json()["loss"]["text"] == "PureDP(0.6)"


def held(monkeypatch):
    """Asks wait until they are let go."""
    let_go, begun, right = threading.Event(), threading.Semaphore(0), Handle._release

    def waiting(self, *given):
        begun.release()
        assert let_go.wait(60)
        return right(self, *given)

    monkeypatch.setattr(Handle, "_release", waiting)
    return let_go, begun


def test_a_principal_has_so_many_requests_running_at_once(tmp_path, monkeypatch):
    with served(tmp_path, limits=Limits(at_once=2)) as call:
        handle = call.launched(call.granted())
        let_go, begun = held(monkeypatch)
        url, got = f"/v1/handles/{handle}/asks", []
        asks = [threading.Thread(target=lambda: got.append(call("ann", "POST", url, COUNT))) for _ in range(2)]
        for ask in asks:
            ask.start()
        for _ in asks:
            assert begun.acquire(timeout=60)
        assert call("ann", "POST", url, COUNT).status_code == 429
        assert call("carol", "GET", f"/v1/handles/{handle}").status_code == 200
        let_go.set()
        for ask in asks:
            ask.join()
        assert [one.status_code for one in got] == [201, 201]
        assert call("ann", "POST", url, COUNT).status_code == 201


def test_what_takes_too_long_goes_on_and_is_found_by_its_id(tmp_path, monkeypatch):
    with served(tmp_path, limits=Limits(seconds=1)) as call:
        handle = call.launched(call.granted())
        let_go, _ = held(monkeypatch)
        slow = call("ann", "POST", f"/v1/handles/{handle}/asks", COUNT)
        assert slow.status_code == 503 and slow.json()["title"] == "TooSlow"
        let_go.set()
        again = call("ann", "POST", f"/v1/handles/{handle}/asks", COUNT, id=slow.json()["id"])
        assert again.status_code == 201
        lines = call("carol", "GET", f"/v1/sessions/{handle.rpartition('.')[0]}/history").json()["facts"]
        assert [line["kind"] for line in lines].count("ask") == 1


@pytest.mark.parametrize("name", ["per_second", "burst", "at_once", "seconds", "streams"])
def test_limits_are_numbers_from_one(name):
    with pytest.raises(cp.errors.InvalidParameter, match=name):
        Limits(**{name: 0})

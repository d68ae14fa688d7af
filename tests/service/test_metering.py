"""Metrics and the log: what an operator sees, and that nothing of what was asked or answered is in it."""

import asyncio
import json
import logging
import re

import pytest
from tests.service.registry import served

from counterpoint.service.metrics import JsonLines, RequestMeter

COMMITS = "counterpoint_commit_seconds"
SHOWN = 'counterpoint_requests_total{method="GET",route="/v1/sessions/{session}",status="200"}'
QUESTION = {"request": {"request": "mean", "column": "age", "where": "state = 'NY'"}, "epsilon": 0.1}


@pytest.fixture
def call(tmp_path):
    with served(tmp_path) as caller:
        yield caller


def test_metrics_count_requests_by_route_and_errors_by_type_and_name_nobody(call):
    session = call.granted()
    url = f"/v1/sessions/{session}/questions"
    assert call("ann", "POST", url, QUESTION).status_code == 201
    assert call("ann", "POST", url, {**QUESTION, "epsilon": 9}).status_code == 409
    assert call(None, "GET", "/v1/sessions").status_code == 401
    text = call("carol", "GET", "/metrics").text
    found = set(text.splitlines())
    questions = '{method="POST",route="/v1/sessions/{session}/questions",status="%d"} 1'
    assert {f"counterpoint_requests_total{questions % status}" for status in (201, 409)} <= found
    assert any(line.startswith("counterpoint_errors_total{") and "BudgetExceeded" in line for line in found)
    assert 'counterpoint_request_seconds_count{route="/v1/sessions/{session}/questions"} 2' in found
    assert not re.search(r"\bann\b|carol|NY", text)
    counts = [line for line in found if re.match(r"counterpoint_(requests|errors|request|answered|commit)_", line)]
    assert counts and not re.search("people", "\n".join(counts)), "gauges alone name data sets"


def value(text, name):
    (line,) = [line for line in text.splitlines() if line.startswith(f"{name} ")]
    return float(line.split()[-1])


def test_metrics_have_the_times_of_commits(call):
    session = call.granted()
    before = call("carol", "GET", "/metrics").text
    assert call("ann", "POST", f"/v1/sessions/{session}/questions", QUESTION).status_code == 201
    after = call("carol", "GET", "/metrics").text
    added = [value(after, name) - value(before, name) for name in (f"{COMMITS}_count", f"{COMMITS}_sum")]
    assert added[0] >= 2, "a question is begun and settled"
    assert 0 < added[1] < 60
    assert value(after, f'{COMMITS}_bucket{{le="+Inf"}}') == value(after, f"{COMMITS}_count")


def counted(meter):
    text = "\n".join(meter.lines())
    return value(text, SHOWN), value(text, 'counterpoint_request_seconds_count{route="/v1/sessions/{session}"}')


def test_any_worker_reports_for_all_and_what_a_dead_one_has_counted_stays(tmp_path):
    first, second = RequestMeter(tmp_path), RequestMeter(tmp_path)
    for meter, number in ((first, 3), (second, 4)):
        for _ in range(number):
            meter.count("GET", "/v1/sessions/{session}", 200, seconds=0.01)
    assert counted(first) == (3, 3), "the second has written nothing yet"
    assert counted(second) == (7, 7) and counted(first) == (7, 7)
    first.count("GET", "/v1/sessions/{session}", 200, seconds=0.01)
    assert counted(first) == (8, 8)
    assert counted(second) == (8, 8), "what one has reported the others report too: no counter goes down"
    del first
    third = RequestMeter(tmp_path)
    third.count("GET", "/v1/sessions/{session}", 200, seconds=0.01)
    assert counted(third) == (9, 9)


def test_a_worker_writes_its_counts_soon_and_when_it_stops(tmp_path, monkeypatch):
    monkeypatch.setattr("counterpoint.service.metrics.KEPT_AFTER", 0.01)

    async def counts():
        meter.count("GET", "/v1/sessions/{session}", 200, seconds=0.01)
        meter.keep_soon()
        assert not list(folder.iterdir())
        await asyncio.sleep(0.1)

    folder = tmp_path / "counts"
    folder.mkdir()
    meter, other = RequestMeter(folder), RequestMeter(folder)
    asyncio.run(counts())
    assert counted(other) == (1, 1)
    monkeypatch.setattr("counterpoint.service.metrics.KEPT_AFTER", 3600)
    with served(tmp_path, counts=folder) as call:
        assert call("carol", "GET", f"/v1/sessions/{call.granted()}").status_code == 200
        assert counted(other) == (1, 1)
    assert counted(other) == (2, 2)


def test_methods_that_a_client_makes_up_are_one_label():
    meter = RequestMeter()
    for number in range(100):
        meter.count(f"METHOD{number}", "other", 405, seconds=0.01)
    assert (
        value("\n".join(meter.lines()), 'counterpoint_requests_total{method="other",route="other",status="405"}') == 100
    )


def test_the_log_at_debug_has_no_key_body_or_answer(call):
    # a mean between its bounds has many digits, and one at a bound few, which a time may have too
    question = {"request": {"request": "mean", "column": "age", "where": "state = 'CA'"}, "epsilon": 0.9}
    lines, handler = [], logging.Handler(logging.DEBUG)
    handler.setFormatter(JsonLines())
    handler.emit = lambda record: lines.append(handler.format(record))
    root, before = logging.getLogger(), logging.getLogger().level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    try:
        session = call.granted()
        url = f"/v1/sessions/{session}/questions"
        answer = call("ann", "POST", url, question, id="canary-of-an-id")
        call("ann", "POST", url, {**question, "epsilon": 9})
        call("ann", "POST", url, {"request": {"request": "canary-of-a-body"}})
        call("ann", "GET", "/v1/sessions", key="cp_0123456789abcdef_canary")
        call.registry.reached = None  # a fault of ours
        assert call("ann", "POST", url, question).status_code == 500
    finally:
        root.removeHandler(handler)
        root.setLevel(before)
    text = "\n".join(lines)
    said = [json.loads(line) for line in lines]
    assert {"route": "/v1/sessions/{session}/questions", "status": 201, "who": "ann"}.items() <= next(
        one for one in said if one.get("status") == 201 and "questions" in one["route"]
    ).items()
    assert any(one.get("error") == "TypeError" and one["through"] for one in said), "a fault is in the log"
    exact = str(json.loads(answer.json()["exact"])["released"])
    secrets = [key.split("_", 2)[2] for key in call.keys.values()]
    for canary in ("canary", "state = 'CA'", str(answer.json()["value"]), exact, *secrets):
        assert canary not in text


def test_an_auditor_learns_from_the_metrics_nothing_that_other_views_hide(call):
    """That a mechanism has halted may follow from its answers: worlds in which it has and has not look alike."""
    handle = call.launched(call.granted(), mechanism="Laplace", epsilon=0.1, asks=1)
    url = f"/v1/handles/{handle}/asks"
    question = {"request": {"request": "count"}}
    assert call("ann", "POST", url, question).status_code == 201

    def read():
        text = call("olga", "GET", "/metrics").text
        return {
            name: number
            for name, number in (line.rsplit(" ", 1) for line in text.splitlines())
            if "asks" in name or "Halt" in name
        }

    before = read()
    assert before['counterpoint_requests_total{method="POST",route="/v1/handles/{handle}/asks",status="201"}'] == "1"
    assert call("ann", "POST", url, question).status_code == 410
    assert read() == before
    assert 'type="Halted"' in call("carol", "GET", "/metrics").text

"""Metrics and the log: what an operator sees, and that nothing of what was asked or answered is in it."""

import json
import logging
import re

import pytest
from tests.service.house import served

from counterpoint.service.logs import JsonLines

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
    found = {re.sub('process="[0-9]+",', "", line) for line in text.splitlines()}
    questions = '{method="POST",route="/v1/sessions/{session}/questions",status="%d"} 1'
    assert {f"counterpoint_requests_total{questions % status}" for status in (201, 409)} <= found
    assert any(line.startswith("counterpoint_errors_total{") and "BudgetExceeded" in line for line in found)
    assert 'counterpoint_request_seconds_count{route="/v1/sessions/{session}/questions"} 2' in text.replace(
        re.search('process="[0-9]+",', text)[0], ""
    )
    assert not re.search(r"\bann\b|carol|people|NY", text)


def test_the_log_at_debug_has_no_key_body_or_answer(call):
    lines, handler = [], logging.Handler(logging.DEBUG)
    handler.setFormatter(JsonLines())
    handler.emit = lambda record: lines.append(handler.format(record))
    root, before = logging.getLogger(), logging.getLogger().level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    try:
        session = call.granted()
        url = f"/v1/sessions/{session}/questions"
        answer = call("ann", "POST", url, QUESTION, id="canary-of-an-id")
        call("ann", "POST", url, {**QUESTION, "epsilon": 9})
        call("ann", "POST", url, {"request": {"request": "canary-of-a-body"}})
        call("ann", "GET", "/v1/sessions", key="cp_0123456789abcdef_canary")
        call.house.reached = None  # a fault of ours
        assert call("ann", "POST", url, QUESTION).status_code == 500
    finally:
        root.removeHandler(handler)
        root.setLevel(before)
    text = "\n".join(lines)
    said = [json.loads(line) for line in lines]
    assert {"route": "/v1/sessions/{session}/questions", "status": 201, "who": "ann"}.items() <= next(
        one for one in said if one.get("status") == 201 and "questions" in one["route"]
    ).items()
    assert any(one.get("error") == "TypeError" and one["through"] for one in said), "a fault is in the log"
    exact = answer.json()["exact"]["released"]
    secrets = [key.split("_", 2)[2] for key in call.keys.values()]
    for canary in ("canary", "state = 'NY'", str(answer.json()["value"]), exact, *secrets):
        assert canary not in text

"""Callers without a valid key: what they cost, and what the log says of them."""

import logging

import pytest
from tests.service.browser import Browser
from tests.service.registry import served

import counterpoint as cp
from counterpoint.service.edge import Strangers
from counterpoint.service.limits import Limits
from counterpoint.service.metrics import JsonLines

FORM = {"Content-Type": "application/x-www-form-urlencoded"}


@pytest.fixture
def lines():
    """What the log says while a test runs."""
    found, handler, root = [], logging.Handler(logging.DEBUG), logging.getLogger()
    handler.setFormatter(JsonLines())
    handler.emit = lambda record: found.append(handler.format(record))
    root.addHandler(handler)
    yield found
    root.removeHandler(handler)


def test_failed_sign_ins_are_logged_without_the_key(tmp_path, lines):
    with served(tmp_path) as call:
        browser = Browser(call, "ann")
        wrong = call.keys["ann"][:-4] + "AAAA"
        assert browser.sign_in(wrong).status_code == 401
        assert call(None, "GET", "/v1/sessions").status_code == 401, "no key was presented"
        assert call("ann", "GET", "/v1/sessions", key=wrong).status_code == 401
        call("carol", "DELETE", "/v1/principals/bob")
        assert call("bob", "GET", "/v1/sessions").status_code == 401
    failed = [line for line in lines if "sign-in failed" in line]
    assert ['"presented": "form"' in line for line in failed] == [True, False, False]
    assert all('"address": "testclient"' in line for line in failed)
    shown = [key.split("_", 2) for key in call.keys.values()]  # a secret may have more of these
    assert not any(id in line or secret[:16] in line for line in lines for _, id, secret in shown)


def test_no_caller_can_fill_the_log_with_failures(tmp_path, lines):
    strangers = Strangers(Limits(), clock=lambda: 0.0)
    for _ in range(10_000):
        strangers.note_failure("192.0.2.1", "header")
    strangers.note_failure("192.0.2.2", "header")
    assert 1 < len(lines) < 100 and "192.0.2.2" in lines[-1]


def test_the_next_line_of_the_log_says_how_many_were_left_out(lines):
    now = [0.0]
    strangers = Strangers(Limits(), clock=lambda: now[0])
    for _ in range(1000):
        strangers.note_failure("192.0.2.1", "header")
    logged, now[0] = len(lines), 3600.0
    strangers.note_failure("192.0.2.1", "header")
    assert f'"left_out": {1000 - logged}' in lines[-1]


def test_signing_in_has_a_rate_limit_of_its_own(tmp_path):
    with served(tmp_path, limits=Limits(sign_in_burst=3, sign_ins_per_minute=1)) as call:
        got = [call.client.post("/sign-in", data={"key": "cp_no"}) for _ in range(5)]
        assert [one.status_code for one in got] == [403] * 3 + [429] * 2
        assert 1 <= int(got[-1].headers["retry-after"]) <= 60
        assert call("ann", "GET", "/v1/sessions").status_code == 200, "keys go on"
        assert call.client.get("/sign-in").status_code == 200


@pytest.mark.parametrize("chunked", [False, True])
def test_a_form_to_sign_in_has_at_most_4_kilobytes(tmp_path, chunked):
    with served(tmp_path) as call:
        for size, status in ((4000, 403), (4200, 413), (900_000, 413)):
            body = b"key=" + b"a" * size
            sent = iter([body[:100], body[100:]]) if chunked else body
            assert call.client.post("/sign-in", content=sent, headers=FORM).status_code == status


def test_backups_say_at_once_what_is_wrong_and_show_no_path(tmp_path):
    with served(tmp_path) as call:
        blocked = tmp_path / "a file"
        blocked.touch()
        for folder in (blocked, blocked / "inside"):
            call.registry.backups = folder
            refused = call("carol", "POST", "/v1/backups")
            assert refused.status_code == 409 and str(tmp_path) not in refused.text and "folder" in refused.text
        call.registry.backups = tmp_path / "new" / "backups"
        assert call("carol", "POST", "/v1/backups").status_code == 201
        call.registry.place = cp.Durable("postgresql://nowhere.invalid/x")
        refused = call("carol", "POST", "/v1/backups")
        assert refused.status_code == 409 and "pg_dump" in refused.json()["detail"]

"""The edge of the service: any bytes as a body, and the headers of every response, whoever made it."""

import pytest
from litestar.testing import TestClient
from tests.service.registry import served

from counterpoint.service.witness import WitnessBook, witness_application

WRONG = {
    "objects": b'{"request":' * 20_000 + b"1" + b"}" * 20_000,
    "lists": b"[" * 500_000,
    "lists in a field": b'{"request":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    "not UTF-8 in a text": b'{"request":{"request":"count","where":"note=\'\xff\'"},"epsilon":0.01}',
    "not UTF-8 in a name": b'{"\xc3\x28":1}',
    "half a surrogate": b'{"request":{"request":"count","where":"\\ud800"},"epsilon":0.01}',
    "not UTF-8 at all": b"\xff\xfe",
    "nothing": b"",
    "a name twice": b'{"request":{"request":"count"},"epsilon":0.01,"epsilon":9,"text":""}',
    "a name twice, deeper": b'{"request":{"request":"count","where":"age > 3","where":"age > 4"},"epsilon":0.01}',
    "a name twice, spelt otherwise": b'{"name":"eve","n\\u0061me":"dan","role":"analyst"}',
}


@pytest.fixture
def call(tmp_path):
    with served(tmp_path) as caller:
        yield caller


def is_hardened(response):
    return response.headers.get_list("cache-control") == ["no-store"] and response.headers.get_list(
        "x-content-type-options"
    ) == ["nosniff"]


@pytest.mark.parametrize("what", WRONG)
def test_a_body_that_is_nested_too_deeply_or_not_utf8_or_says_a_name_twice_is_its_callers_error(call, what):
    session = call.granted()
    routes = {
        "ann": (f"/v1/sessions/{session}/questions", f"/v1/sessions/{session}/quotes", f"/v1/sessions/{session}/sql"),
        "carol": ("/v1/principals", "/v1/data-sets/people/grants"),
        "paul": ("/v1/data-sets/visits/items", "/v1/data-sets/staff/rows"),
    }
    for who, urls in routes.items():
        headers = {"Authorization": f"Bearer {call.keys[who]}", "Content-Type": "application/json"}
        for url in urls:
            response = call.client.post(url, content=WRONG[what], headers=headers)
            assert response.status_code == 400, (url, response.text)
            assert response.headers["content-type"] == "application/problem+json" and is_hardened(response)
    assert call("carol", "GET", f"/v1/sessions/{session}").json()["loss"]["epsilon"] == 0


def test_the_exact_form_of_a_request_may_not_be_nested_deeply_either(call):
    session = call.granted()
    for exact in ("[" * 100_000, '{"a":' * 100_000, '{"type":"Count/1","by":' + "[" * 100_000):
        body = {"request": {"exact": exact}, "epsilon": 0.1}
        assert call("ann", "POST", f"/v1/sessions/{session}/questions", body).status_code == 422


def test_no_response_is_kept_by_a_cache_or_read_as_another_type(call):
    session = call.granted()
    questions = f"/v1/sessions/{session}/questions"
    asked = {"request": {"request": "count"}, "epsilon": 0.1}
    responses = [
        call("ann", "POST", questions, asked),
        call("ann", "POST", questions, {**asked, "epsilon": 9}),
        call("ann", "POST", questions, {**asked, "epsilom": 9}),
        call("ann", "GET", f"/v1/sessions/{session}/history"),
        call("ann", "HEAD", f"/v1/sessions/{session}"),
        call("ann", "PUT", questions, asked),
        call("ann", "OPTIONS", questions),
        call("ann", "GET", "/v1/nowhere"),
        call("ann", "GET", "/nowhere"),
        call("ann", "GET", "/v1/sessions/people"),
        call("ann", "GET", "/v1/principals"),
        call(None, "GET", "/v1/sessions"),
        call(None, "GET", "/health"),
        call(None, "GET", "/ready"),
        call(None, "GET", "/schema"),
        call(None, "GET", "/schema/swagger"),
        call(None, "GET", "/sign-in"),
        call(None, "GET", "/"),
        call("ann", "GET", f"/v1/sessions/{session}/events?seconds=1"),
        call("olga", "GET", "/v1/data-sets/people/record"),
        call("olga", "GET", "/metrics"),
    ]
    call.registry.reached = None  # a fault of ours
    responses.append(call("ann", "POST", questions, asked))
    assert {200, 201, 303, 400, 401, 403, 404, 405, 409, 500} <= {one.status_code for one in responses} | {303}
    assert [str(one.url) for one in responses if not is_hardened(one)] == []
    sheet = call.client.get("/assets/style.css")
    assert sheet.headers["cache-control"] == "max-age=300" and sheet.headers["x-content-type-options"] == "nosniff"


def test_the_witness_answers_any_bytes_and_serves_no_page_of_the_framework(tmp_path):
    book = WitnessBook(tmp_path)
    key = book.new_key("ledgers").shown()
    with TestClient(witness_application(book), raise_server_exceptions=False) as client:
        headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
        for body in WRONG.values():
            response = client.post("/v1/heads", content=body[:60_000], headers=headers)
            assert response.status_code == 400 and is_hardened(response), response.text
        for path in (
            "",
            "/",
            "/swagger",
            "/redoc",
            "/elements",
            "/rapidoc",
            "/scalar",
            "/openapi.json",
            "/openapi.yml",
        ):
            page = client.get(f"/schema{path}")
            assert is_hardened(page) and "<script" not in page.text and "src=" not in page.text
            assert page.status_code == 404 or "json" in page.headers["content-type"]
    book.close()

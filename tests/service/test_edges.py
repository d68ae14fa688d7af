"""Ids, numbers and moments at the edges: nothing that a caller may say makes the service fail, or a page of theirs."""

import pytest
from tests.service.browser import Browser
from tests.service.registry import served

from counterpoint.errors import LedgerFailed
from counterpoint.mechanisms.noisy_max import Largest
from counterpoint.service import retry as retrying
from counterpoint.service.identity import Role
from counterpoint.wire.requests import encode_public

TINY = 1e-50


@pytest.fixture
def call(tmp_path):
    with served(tmp_path) as caller:
        yield caller


@pytest.mark.parametrize("digits", [18, 19, 5000])
@pytest.mark.parametrize("who", ["ann", "carol", "olga"])
def test_an_id_with_more_digits_than_any_launch_has_is_one_that_does_not_exist(call, who, digits):
    got = call(who, "GET", f"/v1/sessions/people.{'9' * digits}")
    assert got.status_code == 404 and got.json()["title"] == "NotFound"


@pytest.mark.parametrize("small", [5e-324, "1e-51", f"1/{10**390 + 1}", "1e-99999999"])
def test_a_number_of_too_many_digits_is_refused_wherever_it_is_sent_and_nothing_is_charged(call, small):
    session = call.granted()
    for path, sent in {
        "launches": {"mechanism": {"mechanism": "Laplace", "epsilon": small}},
        "quotes": {"mechanism": {"mechanism": "Gaussian", "sigma": small}},
        "questions": {"request": {"request": "count"}, "epsilon": small},
    }.items():
        refused = call("ann", "POST", f"/v1/sessions/{session}/{path}", sent)
        assert refused.status_code == 422 and "at most" in refused.json()["detail"], refused.text
    assert call("ann", "GET", f"/v1/sessions/{session}").json()["loss"]["epsilon"] == 0
    assert call("carol", "POST", "/v1/data-sets/people/verification").status_code < 300


@pytest.mark.parametrize(
    "said",
    [
        {"asking": {"n": {"request": "count"}, "years": {"request": "mean", "column": "age"}}},
        {"by": "state", "asking": {"n": {"request": "count"}}},
        {"by": ["state"], "keys": ["CA"], "asking": {"n": {"request": "count"}}, "noise": "laplace"},
    ],
)
def test_a_select_in_plain_json_is_answered(call, said):
    session = call.granted()
    asked = {"request": {"request": "select", **said}, "epsilon": 0.1}
    answered = call("ann", "POST", f"/v1/sessions/{session}/questions", asked)
    assert answered.status_code == 201, answered.text


@pytest.mark.parametrize("said", [{}, {"asking": {}}, {"asking": {"by": {"request": "count"}}}, {"asking": 1}])
@pytest.mark.parametrize("more", [{}, {"n": {"request": "count"}}, {"unnamed": [1]}])
def test_a_select_in_plain_json_that_is_none_is_refused(call, said, more):
    session = call.granted()
    asked = {"request": {"request": "select", **said, **more}, "epsilon": 0.1}
    assert call("ann", "POST", f"/v1/sessions/{session}/questions", asked).status_code == 422


def test_an_answer_that_cannot_be_drawn_or_is_none_to_its_request_leaves_the_page_of_its_session(call):
    session = call.granted()
    noisy = call.launched(session, mechanism="Laplace", epsilon=TINY, asks=2)
    call("ann", "POST", f"/v1/handles/{noisy}/asks", {"request": {"request": "histogram", "column": "state"}})
    choice = call.launched(session, mechanism="NoisyMax", epsilon=0.1)
    asked = {"request": {"request": "histogram", "column": "state"}, "public": encode_public(Largest(2))}
    assert call("ann", "POST", f"/v1/handles/{choice}/asks", asked).status_code == 201
    shown = Browser(call, "ann").get(f"/sessions/{session}")
    assert shown.status_code == 200 and "Chosen" in shown.text


@pytest.mark.parametrize("url", ["/v1/keys/0123456789abcdef", "/v1/principals/zed"])
def test_ending_what_there_is_not_is_an_error_and_no_success(call, url):
    """Else a slip of the pen would leave a lost key standing, and say that it is revoked."""
    assert call("carol", "DELETE", url).status_code == 404
    assert call("carol", "DELETE", "/v1/principals/bob").status_code == 200
    assert call("carol", "DELETE", "/v1/principals/bob").status_code == 200, "once is enough"


def test_a_key_that_is_revoked_while_it_is_looked_up_is_not_remembered(call, monkeypatch):
    identity = call.registry.identity
    identity.add("dora", Role.ANALYST)
    key = identity.new_key("dora")
    look_up = identity.holder

    def slowly(id, digest):
        found = look_up(id, digest)
        identity.end_key(key.id)
        return found

    with monkeypatch.context() as patch:
        patch.setattr(identity, "holder", slowly)
        assert identity.principal(key.shown()) is not None
    assert identity.known(key.shown()) is None


def test_what_was_reached_in_a_session_that_failed_is_not_kept_for_the_next(call, monkeypatch):
    """The ledger fails while a request is looking for its session, and another request opens it anew."""
    session, people = call.granted(), call.registry.data_set("people")
    is_theirs = type(call.registry)._is_theirs

    def slowly(registry, whole, who, path):
        found = is_theirs(registry, whole, who, path)
        with monkeypatch.context() as patch:
            patch.setattr(type(whole._engine.ledger), "check", lambda _: (_ for _ in ()).throw(LedgerFailed("lost")))
            people.session()
        return found

    with monkeypatch.context() as patch:
        patch.setattr(type(call.registry), "_is_theirs", slowly)
        patch.setattr(retrying, "PAUSES", (0.0,))
        call("ann", "GET", f"/v1/sessions/{session}")
    assert call("ann", "GET", f"/v1/sessions/{session}").status_code == 200

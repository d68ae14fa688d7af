"""Receipts over HTTP: every answer brings one, which the checker verifies against the public record."""

import json

import pytest
from tests.service.registry import served

import counterpoint as cp
from counterpoint import checker
from counterpoint.ledger.durable import DurableLedger
from counterpoint.service import retry as retrying

COUNT = {"request": {"request": "count", "where": "age > 35"}}


@pytest.fixture
def call(tmp_path):
    with served(tmp_path) as caller:
        yield caller


def record(call):
    got = call("olga", "GET", "/v1/data-sets/people/record")
    assert got.status_code == 200 and got.headers["content-type"].startswith("application/jsonl")
    return got.text.splitlines()


def three_answers(call, session, handle):
    """By each of the routes that answer, with the terms of each."""
    return [
        call("ann", "POST", f"/v1/handles/{handle}/asks", COUNT),
        call("ann", "POST", f"/v1/sessions/{session}/questions", {**COUNT, "epsilon": 0.1}, id="monday"),
        call("ann", "POST", f"/v1/sessions/{session}/sql", {"text": "SELECT COUNT(*) FROM people", "epsilon": 0.1}),
    ]


def test_every_answer_brings_a_receipt_that_the_checker_verifies(call):
    session = call.granted()
    got = [one.json() for one in three_answers(call, session, call.launched(session))]
    receipts = [one["receipt"] for one in got]
    assert checker.check(iter(record(call)), receipts, call.registry.signer).endswith("3 receipts hold")
    signed = [json.loads(receipt["receipt"]) for receipt in receipts]
    assert {one["who"] for one in signed} == {"ann"} and {one["session"] for one in signed} == {"people"}
    assert got[1]["id"] == "monday" and len({one["id"] for one in got}) == 3
    answers = [json.loads(receipt["disclosed"]["answer"]) for receipt in receipts]
    assert answers == [json.loads(one["exact"])["released"] for one in got]
    forged = {**receipts[0], "receipt": receipts[0]["receipt"].replace("ann", "bob")}
    with pytest.raises(checker.DoesNotHold):
        checker.check(iter(record(call)), [forged], call.registry.signer)


def test_a_receipt_is_fetched_again_by_its_id_also_after_the_grant_was_revoked(call):
    session = call.granted()
    got = [one.json() for one in three_answers(call, session, call.launched(session))]
    call("carol", "DELETE", f"/v1/data-sets/people/grants/{session}")
    again = [call("ann", "GET", f"/v1/sessions/{session}/receipts?id={one['id']}").json() for one in got]
    assert [one["receipt"]["disclosed"] for one in again] == [one["receipt"]["disclosed"] for one in got]
    assert checker.check(iter(record(call)), [one["receipt"] for one in again], call.registry.signer).endswith(
        "3 receipts hold"
    )


def test_an_id_that_was_never_answered_and_one_of_another_principal_are_refused_alike(call):
    session = call.granted()
    call("ann", "POST", f"/v1/handles/{call.launched(session)}/asks", COUNT, id="mine")
    url = f"/v1/sessions/{session}/receipts"
    refused = [call("carol", "GET", f"{url}?id=mine"), call("carol", "GET", f"{url}?id=never")]
    assert [one.status_code for one in refused] == [404, 404] and refused[0].json() == refused[1].json()
    assert call("ann", "GET", f"{url}?id=mine").status_code == 200
    assert call("ann", "GET", f"{url}?id=").status_code == 422


def test_a_paid_question_that_failed_is_repeated_by_the_id_in_its_error(call, monkeypatch):
    """The ledger is lost between the charge and the receipt; a request without an id of its own got one."""
    session = call.granted()
    url, body = f"/v1/sessions/{session}/questions", {**COUNT, "epsilon": 0.1}

    def lost(self, request):
        raise cp.errors.LedgerFailed("the connection was lost")

    with monkeypatch.context() as patch:
        patch.setattr(DurableLedger, "receipt", lost)
        patch.setattr(retrying, "PAUSES", (0.0,))
        failed = call("ann", "POST", url, body)
    assert failed.status_code == 503
    got = call("ann", "POST", url, body, id=failed.json()["id"])
    assert got.status_code == 201
    assert call("ann", "GET", f"/v1/sessions/{session}").json()["loss"]["text"] == "PureDP(0.1)"


def test_the_record_holds_no_answer_and_is_for_custodians_and_auditors(call):
    session = call.granted()
    answer = call("ann", "POST", f"/v1/sessions/{session}/questions", {**COUNT, "epsilon": 0.1}).json()
    text = "\n".join(record(call))
    assert answer["receipt"]["disclosed"]["nonce"] not in text
    assert call("ann", "GET", "/v1/data-sets/people/record").status_code == 403
    assert call("carol", "GET", "/v1/data-sets/none/record").status_code == 404

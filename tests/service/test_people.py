"""Principals, keys and backups through a running service."""

import pytest
from tests.service.registry import served

from counterpoint.ledger.admin import listed
from counterpoint.ledger.location import Durable
from counterpoint.service.identity import Identity


@pytest.fixture
def call(tmp_path):
    with served(tmp_path) as caller:
        yield caller


@pytest.mark.parametrize("alone", [True, False])
def test_a_key_that_was_revoked_opens_for_not_one_request_more(call, alone):
    """Another process may revoke it, unless this one is alone: then it is not remembered."""
    here, elsewhere = (Identity(call.registry._store, call.registry.place, alone=alone) for _ in range(2))
    key = here.new_key("ann")
    assert here.principal(key.shown()).name == "ann"
    assert (here.known(key.shown()) is not None) == alone
    (here if alone else elsewhere).end_key(key.id)
    assert (here.known(key.shown()) or here.principal(key.shown())) is None


def test_a_custodian_adds_an_analyst_whose_key_works_until_it_is_revoked(call):
    assert call("carol", "POST", "/v1/principals", {"name": "dora", "role": "analyst"}).status_code == 201
    made = call("carol", "POST", "/v1/principals/dora/keys", {"days": 3}).json()
    call.keys["dora"] = made["key"]
    assert call("dora", "GET", "/v1/sessions/").json() == []
    assert call("carol", "DELETE", f"/v1/keys/{made['id']}").status_code == 200
    assert call("dora", "GET", "/v1/sessions/").status_code == 401
    seen = {one["name"]: one for one in call("carol", "GET", "/v1/principals").json()}
    assert seen["dora"] == {
        "name": "dora",
        "role": "analyst",
        "ended": False,
        "keys": [{"id": made["id"], "stands": False}],
    }
    assert made["key"] not in call("carol", "GET", "/v1/principals").text


def test_a_principal_that_ended_has_no_keys_and_its_name_is_never_given_again(call):
    assert call("carol", "DELETE", "/v1/principals/ann").json() == {"name": "ann", "ended": True}
    assert call("ann", "GET", "/v1/sessions/").status_code == 401
    again = call("carol", "POST", "/v1/principals", {"name": "ann", "role": "analyst"})
    assert again.status_code == 422 and call("carol", "POST", "/v1/principals/ann/keys", {}).status_code == 409


@pytest.mark.parametrize(
    "body", [{"name": "x"}, {"name": "x", "role": "king"}, {"name": "x", "role": "analyst", "admin": True}]
)
def test_a_principal_needs_a_name_and_a_role_and_nothing_else(call, body):
    assert call("carol", "POST", "/v1/principals", body).status_code == 400


@pytest.mark.parametrize("who", ["ann", "olga", "paul"])
def test_only_custodians_look_after_people_and_backups(call, who):
    tries = [
        ("GET", "/v1/principals", None),
        ("POST", "/v1/principals", {"name": "x", "role": "custodian"}),
        ("POST", "/v1/principals/carol/keys", {}),
        ("DELETE", "/v1/principals/carol", None),
        ("DELETE", "/v1/keys/0", None),
        ("POST", "/v1/backups", None),
    ]
    assert {call(who, *one).status_code for one in tries} == {403}


def test_a_backup_goes_to_the_operators_folder_while_the_service_runs(call, tmp_path):
    assert "set backups" in call("carol", "POST", "/v1/backups").json()["detail"]
    call.registry.backups = tmp_path / "backups"
    call.registry.backups.mkdir()
    file = call("carol", "POST", "/v1/backups").json()["file"]
    copied = {line.split(":")[0] for line in listed(Durable(tmp_path / "backups" / file))}
    assert copied == {"people", "visits", "staff"}


@pytest.mark.parametrize("to", ["amn", "olga", "carol", "gone"])
@pytest.mark.parametrize("until", [None, "2999-01-01T00:00:00Z"])
def test_a_grant_to_no_analyst_is_refused_and_nothing_is_charged(call, to, until):
    """A misspelled name, another role, one who ended: the grant would be charged, and no key could use it."""
    call("carol", "POST", "/v1/principals", {"name": "gone", "role": "analyst"})
    call("carol", "DELETE", "/v1/principals/gone")
    body = {"to": to, "within": {"measure": "PureDP", "epsilon": 1}, **({} if until is None else {"until": until})}
    refused = call("carol", "POST", "/v1/data-sets/people/grants", body)
    assert refused.status_code == 422 and "analysts are ann" in refused.json()["detail"]
    assert call.registry.data_set("people").session().loss.epsilon == 0


def test_a_grant_that_has_ended_before_it_begins_is_refused_and_nothing_is_charged(call):
    body = {"to": "ann", "within": {"measure": "PureDP", "epsilon": 1}, "until": "2001-01-01T00:00:00Z"}
    refused = call("carol", "POST", "/v1/data-sets/people/grants", body)
    assert refused.status_code == 422 and "until must be in the future" in refused.json()["detail"]
    assert call.registry.data_set("people").session().loss.epsilon == 0

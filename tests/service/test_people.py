"""Principals, keys and backups through a running service."""

import re
import time

import pytest
from tests.service.browser import Browser
from tests.service.places import over_a_socket
from tests.service.registry import served
from typer.testing import CliRunner

import counterpoint as cp
from counterpoint import cli
from counterpoint.ledger.admin import listed
from counterpoint.ledger.location import Durable
from counterpoint.ledger.store.records import StoredPrincipal
from counterpoint.service.identity import Identity, is_browser


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
    (stored,) = call.registry.identity.keys("dora")
    assert seen["dora"] == {
        "name": "dora",
        "role": "analyst",
        "ended": False,
        "keys": [{"id": made["id"], "stands": False, "expires": stored.expires}],
    }
    assert stored.expires == stored.made + 3 * 86_400
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


DORA = {"name": "dora", "role": "analyst", "days": "90", "once": "first"}


PERSON = StoredPrincipal("person", "analyst", made=0)


def shown_key(response):
    """The key that a page shows, if it shows one."""
    found = re.search(r'value="(cp_[^"]+)"', response.text)
    return found and found[1]


def test_a_person_is_added_in_the_browser_and_their_key_is_shown_once(call):
    carol = Browser(call, "carol")
    added = carol.post("/people", DORA)
    key = shown_key(added)
    assert added.status_code == 200 and added.headers["cache-control"] == "no-store"
    (stored,) = call.registry.identity.keys("dora")
    assert stored.expires == stored.made + 90 * 86_400
    call.keys["dora"] = key
    assert call("dora", "GET", "/v1/sessions").json() == []
    again, seen = carol.post("/people", DORA), carol.get("/people")
    assert again.status_code == 422 and key not in again.text and key not in seen.text and "dora" in seen.text
    assert len(call.registry.identity.keys("dora")) == 1


def test_a_form_that_makes_a_key_makes_one_however_often_it_is_sent(call):
    carol, before = Browser(call, "carol"), len(call.registry.identity.keys("ann"))
    first = carol.post("/people/ann/keys", {"days": "30", "once": "a form"})
    second = carol.post("/people/ann/keys", {"days": "30", "once": "a form"})
    assert shown_key(first) and second.status_code == 409 and shown_key(second) is None
    assert len(call.registry.identity.keys("ann")) == before + 1
    assert carol.post("/people/ann/keys", {"days": "7", "once": "other"}).status_code == 422, "not a period of the form"


def test_ending_a_key_signs_out_the_browsers_that_it_signed_in_and_no_other(call):
    carol, ann, bob = (Browser(call, who) for who in ("carol", "ann", "bob"))
    (key,) = [one.id for one in call.registry.identity.keys("ann") if not is_browser(one.id)]
    asked = carol.get(f"/people?do=end+key&of=ann&key={key}").text
    assert f"End key {key} of ann?" in asked and "It is the only valid key of ann." in asked
    assert carol.post(f"/people/keys/{key}/end").status_code == 303
    assert [browser.get("/").status_code for browser in (carol, ann, bob)] == [200, 303, 200]
    assert carol.post("/people/keys/0000/end").status_code == 404


def test_ending_a_person_is_asked_back_and_says_what_stays(call):
    call.granted()
    carol, ann = Browser(call, "carol"), Browser(call, "ann")
    assert "stays charged until you revoke it" in carol.get("/people?do=end&of=ann").text
    assert carol.post("/people/ann/end").status_code == 303
    assert ann.get("/").status_code == 303 and "ended" in carol.get("/people").text
    assert call.registry.data_set("people").session().loss == cp.PureDP(1)
    assert carol.post("/people/carol/end").status_code == 409, "no custodian ends themselves by mistake"
    assert carol.post("/people/nobody/end").status_code == 404


def test_many_people_are_listed_in_pages_and_found_by_the_beginning_of_their_name(call):
    with call.registry.identity._register.changing("test") as change:
        for number in range(60):
            change.put(PERSON._replace(name=f"person{number:03}"), "made for a test")
    carol = Browser(call, "carol")
    first, second = carol.get("/people").text, carol.get("/people?start=26").text
    assert "1 to 25 of 65" in first and "26 to 50 of 65" in second
    assert "person005" in first and "person005" not in second and "person040" in second
    found = carol.get("/people?q=person04").text
    assert "person040" in found and "person050" not in found and "Later" not in found
    assert "person055" in carol.get("/people?do=end&of=person055").text, "the page on which the person is"
    assert "No name begins with" in carol.get("/people?q=zzz").text


def test_each_line_has_the_grants_that_stand_and_when_the_record_last_has_something_of_theirs(call):
    sessions = [call.granted() for _ in range(3)]
    call("ann", "POST", f"/v1/sessions/{sessions[0]}/launches", {"mechanism": {"mechanism": "Laplace", "epsilon": 0.1}})
    call("carol", "DELETE", f"/v1/data-sets/people/grants/{sessions[2]}")
    page = Browser(call, "carol").get("/people").text
    rows = {name: row for name in ("ann", "bob") for row in page.split("<tr") if f"<strong>{name}</strong>" in row}
    assert '<a href="/grants?who=ann">2</a>' in rows["ann"] and "just now" in rows["ann"]
    assert "/grants?who" not in rows["bob"] and "just now" not in rows["bob"]


def test_the_command_adds_lists_and_ends_people_of_a_running_service(tmp_path, monkeypatch):
    with over_a_socket(tmp_path) as place:
        monkeypatch.setenv("COUNTERPOINT_API_KEY", place.keys["carol"])

        def run(*words):
            return CliRunner().invoke(cli.app, ["people", *words, "--url", place.url])

        added = run("add", "dora", "--days", "90")
        key = added.stdout.strip()
        assert added.exit_code == 0 and key.startswith("cp_"), added.output
        with cp.connect(place.url, key=key) as service:
            assert service.sessions == ()
        ends = time.strftime("%Y-%m-%d", time.gmtime(time.time() + 90 * 86_400))
        seen = run("list").stdout
        assert "dora: analyst\n" in seen and f": ends {ends}" in seen and key not in seen
        assert run("end", key.split("_")[1]).exit_code == 0 and "ended" in run("list").stdout
        assert run("key", "dora").stdout.startswith("cp_")
        assert run("end", "dora").exit_code == 0 and "dora: analyst, ended" in run("list").stdout
        assert "there is no person and no key 'nobody'" in run("end", "nobody").stderr
        monkeypatch.setenv("COUNTERPOINT_API_KEY", place.keys["ann"])
        assert run("list").exit_code == 1 and "custodian" in run("list").stderr

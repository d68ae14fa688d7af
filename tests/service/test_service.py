"""The service: who may do what, strict bodies, one charge for one id, and nothing that tells of others."""

import logging
import re
import time
from contextlib import closing
from pathlib import Path

import pytest
from tests.service.authorisation import BODIES, COUNT, ROUTES, page, template
from tests.service.registry import AGES, PEOPLE, served

import counterpoint as cp
from counterpoint.ledger.location import hold, release
from counterpoint.service.identity import ApiKey, Identity, Role
from counterpoint.wire.problems import SessionId
from counterpoint.wire.requests import MEASURES, MECHANISMS, REQUESTS, fields_of


@pytest.fixture
def call(tmp_path):
    with served(tmp_path) as caller:
        yield caller


def test_an_analyst_works_in_a_granted_session(call):
    session = call.granted()
    handle = call.launched(session)
    first = call("ann", "POST", f"/v1/handles/{handle}/asks", COUNT, id="monday")
    again = call("ann", "POST", f"/v1/handles/{handle}/asks", COUNT, id="monday")
    assert (first.status_code, again.status_code) == (201, 201) and first.json() == again.json()
    answer = call("ann", "POST", f"/v1/sessions/{session}/questions", {**COUNT, "epsilon": 0.2}).json()
    assert answer["cost"]["text"] == "PureDP(0.2)" and answer["error"] > 0
    seen = call("ann", "GET", f"/v1/sessions/{session}").json()
    assert seen["loss"]["text"] == "PureDP(0.3)" and seen["remaining"]["epsilon"] == 0.7
    assert [one["handle"] for one in seen["handles"]] == [handle, f"{session}.1"]


def test_an_id_is_charged_once_and_with_another_body_it_is_a_conflict(call):
    session = call.granted()
    body = {"mechanism": {"mechanism": "Laplace", "epsilon": 0.1}}
    url = f"/v1/sessions/{session}/launches"
    assert call("ann", "POST", url, body, id="a").json() == call("ann", "POST", url, body, id="a").json()
    other = call("ann", "POST", url, {"mechanism": {"mechanism": "Laplace", "epsilon": 0.2}}, id="a")
    assert other.status_code == 409 and other.json()["title"] == "RequestConflict"
    assert call("ann", "GET", f"/v1/sessions/{session}").json()["loss"]["text"] == "PureDP(0.1)"


def test_a_refusal_says_what_was_asked_the_limit_and_what_would_fit(call):
    session = call.granted()
    refused = call(
        "ann", "POST", f"/v1/sessions/{session}/launches", {"mechanism": {"mechanism": "Laplace", "epsilon": 2}}
    )
    assert refused.status_code == 409 and refused.headers["content-type"] == "application/problem+json"
    said = refused.json()
    assert (said["title"], said["requested"], said["would_fit"]) == ("BudgetExceeded", "PureDP(2)", "PureDP(1)")
    lines = call("ann", "GET", f"/v1/sessions/{session}/history").json()["facts"]
    assert [(line["kind"], line["who"]) for line in lines] == [("refusal", "ann")]


MALFORMED = [
    {"mechanism": {"mechanism": "Laplace", "epsilon": 0.1, "ask": 50}},
    {"mechanism": {"mechanism": "Laplace"}},
    {"mechanism": {"mechanism": "Laplace", "epsilon": -1}},
    {"mechanism": {"mechanism": "Laplace", "epsilon": "NaN"}},
    {"mechanism": {"mechanism": "Laplace", "epsilon": None}},
    {"mechanism": {"mechanism": "Laplace", "epsilon": {"request": "count"}}},
    {"mechanism": {"mechanism": "Concurrent"}},
    {"mechanism": {"mechanism": "Composite"}},
    {"mechanism": {"mechanism": "open", "ledger": "x"}},
    {"mechanism": {"type": "Laplace/1", "epsilon": "1/10"}},
    {"mechanism": "Laplace"},
    {"mechanism": {"mechanism": ["Laplace"]}},
    {"mechanism": {"mechanism": "Laplace", "epsilon": 0.1}, "claim": {"loss": "PureDP(0)"}},
    {"mechanism": {"mechanism": "Counter", "epsilon": 0.1, "window": -1}},
    {"mechanism": {"mechanism": "Laplace", "epsilon": [[[[[[[[0.1]]]]]]]]}},
    {"mechanism": {"mechanism": "Laplace", "epsilon": "1" * 20_000}},
    {},
    [],
    None,
    "launch",
]


@pytest.mark.parametrize("body", MALFORMED, ids=lambda body: str(body)[:60])
def test_a_malformed_launch_is_refused_and_nothing_is_charged(call, body):
    session = call.granted()
    refused = call("ann", "POST", f"/v1/sessions/{session}/launches", body)
    assert 400 <= refused.status_code < 500, refused.text
    assert refused.headers["content-type"] == "application/problem+json"
    assert call("ann", "GET", f"/v1/sessions/{session}").json()["loss"]["text"] == "PureDP(0)"


def test_the_allow_list_is_made_of_public_names_with_plain_fields():
    for name in (*MECHANISMS, *REQUESTS, *MEASURES):
        if hasattr(cp, name):
            assert fields_of(name)
    assert not {"Concurrent", "Composite", "postprocess", "open"} & {*MECHANISMS, *REQUESTS}


def test_keys_are_shown_once_and_stored_as_digests(call, tmp_path):
    key = call.registry.identity.new_key("ann")
    secret = key.shown().split("_", 2)[2]
    (stored,) = [one for one in call.registry.identity.keys("ann") if one.id == key.id]
    assert stored.digest != key._secret and secret not in repr(stored) and secret not in repr(key)
    assert ApiKey.read(key.shown()) == key
    call.registry.close()
    raw = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert secret.encode() not in raw and key._secret not in raw


@pytest.mark.parametrize(
    "text", ["", "cp", "cp__", "cp_0123456789abcdef_", "Bearer x", "cp_0123456789abcdef_" + "A" * 43]
)
def test_what_is_no_key_opens_nothing(call, text):
    assert call("ann", "GET", "/v1/sessions", key=text or "x").status_code == 401


def test_a_revoked_or_expired_key_and_an_ended_principal_open_nothing(call, monkeypatch):
    key = call.registry.identity.new_key("ann", days=1)
    assert call("ann", "GET", "/v1/sessions", key=key.shown()).status_code == 200
    call.registry.identity.end_key(key.id)
    assert call("ann", "GET", "/v1/sessions", key=key.shown()).status_code == 401
    assert call("ann", "GET", "/v1/sessions").status_code == 200
    call.registry.identity.end("ann")
    assert call("ann", "GET", "/v1/sessions").status_code == 401
    with pytest.raises(cp.errors.InvalidParameter, match="there is, or was"):
        call.registry.identity.add("ann", Role.CUSTODIAN)


def test_a_clock_that_is_set_back_revives_no_expired_key(tmp_path, monkeypatch):
    """What was used when it had expired is ended on record; the others expire by the latest time that was seen."""
    now = time.time()
    with served(tmp_path) as call:
        used, other, lasting = (call.registry.identity.new_key("ann", days=days).shown() for days in (1, 1, 9))
        monkeypatch.setattr(time, "time", lambda: now + 2 * 86_400)
        assert call("ann", "GET", "/v1/sessions", key=used).status_code == 401
        monkeypatch.setattr(time, "time", lambda: now)
        for key in (used, other):
            assert call("ann", "GET", "/v1/sessions", key=key).status_code == 401
        assert call("ann", "GET", "/v1/sessions", key=lasting).status_code == 200
    place = cp.Durable(tmp_path / "ledger.db")
    store = hold(place, existing=True)
    with closing(Identity(store, place)) as started_again:
        assert [started_again.principal(key) is not None for key in (used, other, lasting)] == [False, False, True]
    release(store)


def test_every_route_is_in_the_table(call):
    paths = call.client.get("/schema/openapi.json").json()["paths"]
    known = {template(*route) for route in ROUTES}
    open_to_all = {("GET", "/health"), ("GET", "/ready")}
    assert {(method.upper(), path) for path, methods in paths.items() for method in methods} == known | open_to_all


def test_the_page_on_security_has_this_table_and_names_tests_that_there_are():
    text = (Path(__file__).parents[2] / "docs" / "guide" / "service_security.md").read_text(encoding="utf-8")
    assert page() in text
    tests = "".join(file.read_text(encoding="utf-8") for file in Path(__file__).parent.glob("test_*.py"))
    named = re.findall(r"`(test_\w+)`", text)
    assert len(named) > 20 and [name for name in named if f"def {name}(" not in tests] == []


@pytest.mark.parametrize("route", ROUTES, ids=" ".join)
def test_who_may_call_what(call, route):
    method, path = route
    session = call.granted()
    handle = call.launched(session)
    by = {"by": "state", "within": {"measure": "PureDP", "epsilon": 0.1}}
    parts = call("ann", "POST", f"/v1/sessions/{session}/partitions", by).json()["partition"]
    call("ann", "POST", f"/v1/handles/{handle}/asks", COUNT, id="first")
    key = call.registry.identity.new_key("paul").id
    url = path.format(session=session, handle=handle, parts=parts, name="paul", id=key)
    assert call(None, method, url, BODIES.get(path)).status_code == 401
    for who in PEOPLE:
        if method == "DELETE" and who == "carol":
            continue  # the others first: afterwards nothing is left to be refused
        got = call(who, method, url, BODIES.get(path)).status_code
        refused = got in (401, 403, 404)
        assert refused == (who not in ROUTES[route]), (who, got)
    if method == "DELETE":
        assert call("carol", method, url).status_code == 200


def test_what_is_anothers_and_what_there_is_not_are_refused_alike(call):
    """Two worlds: in one ann has a session with a handle, in the other there is none. Bob sees the same."""
    ghosts = [
        "/v1/sessions/people.0",
        "/v1/sessions/people.0/history",
        "/v1/handles/people.0.0",
        "/v1/sessions/people.0.0",
    ]

    def seen_by_bob():
        got = [call("bob", "GET", url) for url in ("/v1/data-sets", "/v1/sessions", *ghosts)]
        got += [call("bob", "POST", "/v1/handles/people.0.0/asks", COUNT)]
        return [(one.status_code, one.content) for one in got]

    before = seen_by_bob()
    handle = call.launched(call.granted())
    call("ann", "POST", f"/v1/handles/{handle}/asks", COUNT)
    assert seen_by_bob() == before


def test_on_neighbouring_data_everything_but_the_answers_is_the_same(tmp_path):
    def scene(folder, ages):
        folder.mkdir()
        with served(folder, ages) as call:
            session = call.granted()
            handle = call.launched(session)
            got = [call("ann", "POST", f"/v1/handles/{handle}/asks", COUNT) for _ in range(11)]
            got += [call("ann", "POST", f"/v1/sessions/{session}/questions", {**COUNT, "epsilon": 5})]
            got += [
                call("ann", "POST", f"/v1/handles/{handle}/asks", {"request": {"request": "mean", "column": "wage"}})
            ]
            shown = [(one.status_code, sorted(one.json()), one.json().get("detail")) for one in got]
            history = call("ann", "GET", f"/v1/sessions/{session}/history").json()["facts"]
            lines = [{name: value for name, value in line.items() if name != "when"} for line in history]
            return shown, lines, call("ann", "GET", "/v1/data-sets/people").json()

    assert scene(tmp_path / "one", AGES) == scene(tmp_path / "two", AGES[1:])


def test_revoking_stops_launches_and_asks_at_once_and_recounting_returns_what_was_left(call):
    session = call.granted()
    handle = call.launched(session)
    revoked = call("carol", "DELETE", f"/v1/data-sets/people/grants/{session}")
    assert revoked.json()["loss"]["text"] == "PureDP(1)"
    for url, body in [
        (f"/v1/handles/{handle}/asks", COUNT),
        (f"/v1/sessions/{session}/questions", {**COUNT, "epsilon": 0.1}),
    ]:
        stopped = call("ann", "POST", url, body)
        assert stopped.status_code == 403 and stopped.json()["title"] == "NotGranted"
    recounted = call("carol", "POST", f"/v1/data-sets/people/grants/{session}/recount")
    assert recounted.json()["loss"]["text"] == "PureDP(0.1)"
    assert call("olga", "POST", "/v1/data-sets/people/verification").json() == {"data_set": "people", "holds": True}


def test_items_arrive_once_under_one_id(call):
    body = {"items": [1, 0, 1]}
    for _ in range(2):
        assert call("paul", "POST", "/v1/data-sets/visits/items", body, id="batch").status_code == 201
    assert call.registry.data_set("visits").source.pin() == 3
    assert call("paul", "POST", "/v1/data-sets/visits/items", {"items": [1]}, id="batch").status_code == 409
    assert call("paul", "POST", "/v1/data-sets/people/items", body).status_code == 422


def test_rows_are_put_replaced_and_removed_once_under_one_id(call):
    rows = {"rows": [{"person": "ann", "row": 1, "age": 41}, {"person": "bob", "row": 1, "age": 17}]}
    for _ in range(2):
        assert call("paul", "POST", "/v1/data-sets/staff/rows", rows, id="a").json()["updates"] == 2
    source = call.registry.data_set("staff").source
    assert source.pin() == 2
    gone = {"rows": [{"person": "ann", "row": 1}, {"person": "nobody", "row": 7}]}
    assert call("paul", "POST", "/v1/data-sets/staff/removals", gone).status_code == 201
    assert source.pin() == 4
    for wrong in ({"rows": [{"person": "ann"}]}, {"rows": [{"person": "ann", "row": 1, "wage": 3}]}, {"rows": [3]}, {}):
        assert 400 <= call("paul", "POST", "/v1/data-sets/staff/rows", wrong).status_code < 500
    assert call("paul", "POST", "/v1/data-sets/visits/rows", rows).status_code == 422
    assert source.pin() == 4


@pytest.mark.parametrize("text", ["", ".", "people.", "people..0", "pe ople", "people.0" + ".0" * 40, "ä", "people/0"])
def test_what_is_no_id_is_refused_as_what_there_is_not(call, text):
    assert call("carol", "GET", f"/v1/sessions/{text}/history").status_code == 404


def test_ids_are_read_as_they_were_written():
    for path in ((), (0,), (3, "str:CA", 0), ("str:a.b/c%2E ü",)):
        id = SessionId("people", path)
        assert SessionId.read(str(id)) == id


def test_a_ledger_that_was_lost_is_opened_anew_and_the_request_finished_by_its_id(call):
    session = call.granted()
    handle = call.launched(session)
    first = call("ann", "POST", f"/v1/handles/{handle}/asks", COUNT, id="a").json()
    ledger = call.registry.data_set("people").session()._engine.ledger
    ledger._group.stop(cp.errors.LedgerFailed("the connection was lost"))
    assert call("ann", "POST", f"/v1/handles/{handle}/asks", COUNT, id="a").json() == first
    assert call("ann", "POST", f"/v1/handles/{handle}/asks", COUNT, id="b").status_code == 201


def test_a_key_that_another_process_revoked_opens_no_more_after_a_second(call, monkeypatch):
    key = call.registry.identity.new_key("ann")
    assert call("ann", "GET", "/v1/sessions", key=key.shown()).status_code == 200
    Identity(call.registry._store, call.registry.place).end_key(key.id)
    later = time.monotonic() + 1.5
    monkeypatch.setattr(time, "monotonic", lambda: later)
    assert call.registry.identity.known(key.shown()) is None
    assert call.registry.identity.principal(key.shown()) is None


def test_a_role_that_was_changed_in_the_database_opens_nothing(call):
    call.registry._store._run("UPDATE counterpoint_principal SET role = 'king' WHERE name = 'ann'")
    assert call("ann", "GET", "/v1/sessions").status_code == 503


def test_an_auditor_does_not_see_what_has_halted(call):
    """After how many asks a sparse vector halts follows from its answers."""
    session = call.granted()
    call.launched(session, mechanism="SparseVector", epsilon=0.1, threshold=10)
    (hers,) = call("ann", "GET", f"/v1/sessions/{session}").json()["handles"]
    (audited,) = call("olga", "GET", f"/v1/sessions/{session}").json()["handles"]
    assert hers == {**audited, "halted": False}


def test_the_report_is_for_custodians_and_no_cache_keeps_it(tmp_path):
    with served(tmp_path, ages=[20] * 90 + [777] * 10) as call:
        call.granted()
        got = call("carol", "GET", "/v1/data-sets/people/report")
        assert got.status_code == 200 and got.headers["cache-control"] == "no-store"
        said = got.json()
        assert said["raw_data"].startswith("RAW DATA") and said["rows"] == 100
        assert {column["name"]: column["above"] for column in said["columns"]} == {"person": 0, "age": 10, "state": 0}
        for who in ("ann", "bob", "olga", "paul"):
            refused = call(who, "GET", "/v1/data-sets/people/report")
            assert refused.status_code == 403 and "777" not in refused.text and "10" not in refused.text
        assert call("carol", "GET", "/v1/data-sets/visits/report").status_code == 422


def test_nothing_of_the_report_reaches_analysts_logs_or_metrics(tmp_path, caplog):
    """Two worlds: in one the custodian is warned, in the other not; every answer to ann is the same."""

    def world(folder, ages):
        folder.mkdir()
        caplog.clear()
        with caplog.at_level(logging.DEBUG), served(folder, ages=ages) as call:
            session = call.granted()
            call("carol", "GET", "/v1/data-sets/people/report")
            urls = ["/v1/data-sets", "/v1/data-sets/people", "/v1/data-sets/people/report", "/v1/sessions"]
            urls += [f"/v1/sessions/{session}", f"/v1/sessions/{session}/certificate"]
            got = [call("ann", "GET", url) for url in urls]
            got.append(call("ann", "POST", f"/v1/sessions/{session}/quotes", {**COUNT, "epsilon": 0.1}))
            times = r"\d{4}-\d\d-\d\d[T ][\d:.]+|\d{10,}"
            seen = [(one.status_code, sorted(one.headers), re.sub(times, "", one.text)) for one in got]
            metrics = call("carol", "GET", "/metrics").text
        logged = [record.getMessage() for record in caplog.records if record.name != "counterpoint.custodian"]
        warned = [record.getMessage() for record in caplog.records if record.name == "counterpoint.custodian"]
        names = {line.partition(" ")[0] for line in metrics.splitlines() if not line.startswith("#")}
        return seen, names, [line for line in logged if "777" in line or "RAW" in line], warned

    quiet, loud = world(tmp_path / "one", [20] * 99 + [777]), world(tmp_path / "other", [20] * 98 + [777] * 2)
    assert quiet[:3] == loud[:3] and quiet[2] == [], "whatever ann gets, and what is measured, is the same"
    assert not quiet[3] and len(loud[3]) == 1 and "777" not in loud[3][0]


def test_a_custodian_charges_the_data_set_and_an_analyst_a_grant_of_their_own(call):
    session = call.granted()
    body = {"loss": {"measure": "PureDP", "epsilon": 0.25}, "what": "a model", "unit": "a person"}
    first, again = (call("ann", "POST", f"/v1/sessions/{session}/charges", body, id="model") for _ in range(2))
    assert first.status_code == 201 and first.json() == again.json()
    assert call("ann", "GET", f"/v1/sessions/{session}").json()["loss"]["text"] == "PureDP(0.25)"
    lines = call("ann", "GET", f"/v1/sessions/{session}/history").json()["facts"]
    assert [(line["kind"], line["who"]) for line in lines] == [("charge", "ann")] and "a model" in lines[0]["what"]
    receipt = call("ann", "GET", f"/v1/sessions/{session}/receipts?id=model")
    assert receipt.status_code == 200 and "a model" in receipt.json()["receipt"]["receipt"]
    assert "declared by ann, not derived" in call("ann", "GET", f"/v1/sessions/{session}/certificate").text
    whole = {**body, "loss": [{"loss": {"measure": "PureDP", "epsilon": 0.1}, "times": 3}], "delta": 1e-9}
    assert call("carol", "POST", "/v1/sessions/people/charges", whole, id="whole").status_code == 422, "not covered"
    assert call("carol", "POST", "/v1/sessions/people/charges", body, id="whole").status_code == 201
    assert call("carol", "GET", "/v1/sessions/people").json()["loss"]["text"] == "PureDP(1.25)"
    for who, where in (("ann", "people"), ("bob", session), ("olga", session), ("paul", session)):
        assert call(who, "POST", f"/v1/sessions/{where}/charges", body, id="other").status_code in (403, 404)
    asked = call("ann", "POST", f"/v1/handles/{first.json()['handle']}/asks", COUNT)
    assert asked.status_code == 422 and "answers nothing here" in asked.text


@pytest.mark.parametrize(
    "wrong",
    [
        {"what": ""},
        {"unit": "x" * 201},
        {"loss": []},
        {"loss": [{"loss": {"measure": "PureDP", "epsilon": 0.1}, "times": 0}]},
        {"loss": [{"loss": {"measure": "PureDP", "epsilon": 0.1}, "times": "3"}]},
        {"loss": {"measure": "Unbounded"}},
        {"more": 1},
    ],
)
def test_a_charge_that_says_too_little_is_refused_and_costs_nothing(call, wrong):
    session = call.granted()
    body = {"loss": {"measure": "PureDP", "epsilon": 0.25}, "what": "a model", "unit": "a person", **wrong}
    refused = call("ann", "POST", f"/v1/sessions/{session}/charges", body, id="model")
    assert 400 <= refused.status_code < 500, refused.text
    assert call("ann", "GET", f"/v1/sessions/{session}").json()["loss"]["text"] == "PureDP(0)"

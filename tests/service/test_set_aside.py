"""A data set whose record was put back is not served, and every other one is; its custodian recovers it."""

import json
import shutil

import pytest
from tests.service.process import Served

import counterpoint as cp
from counterpoint.ledger.admin import recover
from counterpoint.service import registry as registry_room
from counterpoint.service.config import open_registry, read

COUNT = {"request": {"request": "count"}, "epsilon": 0.1}
TABLE = """
[tables.{name}]
source = "people.csv"
unit = "person"
rows_per_unit = 1
budget = {{ measure = "PureDP", epsilon = 1 }}
columns.age = {{ type = "number", low = 0, high = 100 }}
{more}
"""
PEOPLE = TABLE.format(name="people", more="")
VISITS = "[streams.visits]\nbudget = { measure = 'PureDP', epsilon = 1 }\n"


def ask(client, session, id):
    return client.post(f"/v1/sessions/{session}/questions", json=COUNT, headers={"Idempotency-Key": id})


@pytest.fixture
def rolled_back(tmp_path):
    """A folder in which the record of people lacks an answer that its witness has seen, and the custodian's key."""
    (tmp_path / "people.csv").write_text("person,age\n1,40\n2,50\n")
    (tmp_path / "counterpoint.toml").write_text(PEOPLE + VISITS)
    with Served(tmp_path, "--config", "counterpoint.toml") as service, service.client() as client:
        body = {"to": "ann", "within": {"measure": "PureDP", "epsilon": 0.5}}
        assert client.post("/v1/principals", json={"name": "ann", "role": "analyst"}).status_code == 201
        ann = client.post("/v1/principals/ann/keys", json={}).json()["key"]
        assert client.post("/v1/data-sets/people/grants", json=body).status_code == 201
        assert ask(client, "people", "monday").status_code == 201
    shutil.copy(tmp_path / "ledger.db", tmp_path / "copy.db")
    with Served(tmp_path, "--config", "counterpoint.toml") as again, again.client(service.key) as client:
        assert ask(client, "people", "tuesday").status_code == 201
    shutil.copy(tmp_path / "copy.db", tmp_path / "ledger.db")
    return tmp_path, service.key, ann


def test_the_others_are_served_and_the_custodian_recovers_it(rolled_back):
    folder, key, ann = rolled_back
    with Served(folder, "--config", "counterpoint.toml") as service, service.client(key) as client:
        assert service.lines[0].startswith("serving visits at")
        assert any("not serving people. LedgerRolledBack: 'people' has" in line for line in service.lines)
        (failed,) = [line for line in map(json.loads, service.log.splitlines()) if line.get("event") == "failed"]
        assert (failed["what"], failed["of"], failed["error"]) == ("ledger", "people", "LedgerRolledBack")
        listed = {one["data_set"]: one for one in client.get("/v1/data-sets").json()}
        assert "set_aside" not in listed["visits"] and "an old copy was put back" in listed["people"]["set_aside"]
        assert client.get("/ready").status_code == 200 and ask(client, "people", "monday").status_code == 404
        with service.client(ann) as analyst:
            seen = [analyst.get(f"/v1/sessions/{id}") for id in ("people.0", "people.7", "nothing.0")]
            assert [one.json()["detail"].partition("' ")[2] for one in seen] == [seen[0].json()["detail"][11:]] * 3
            assert "closed until its custodian has looked" in seen[0].text and {one.status_code for one in seen} == {
                404
            }
        path = "/v1/data-sets/people/recovery"
        assert client.post(path, json={"confirm": "visits"}).status_code == 422
        done = client.post(path, json={"confirm": "people"})
        assert done.status_code == 200 and "its budget counts as spent" in done.json()["recovered"]
        assert ask(client, "people", "monday").status_code == 201, "what was answered before can be read"
        assert ask(client, "people", "wednesday").status_code == 409
        assert client.post(path, json={"confirm": "people"}).status_code == 409
        assert any(json.loads(line).get("event") == "recovered" for line in service.log.splitlines())
        record = client.get("/v1/data-sets/people/record").text.splitlines()
        (entry,) = [line for line in record if "was opened on purpose" in line]
        assert "custodian" in entry


def test_after_a_recovery_the_same_rows_get_a_second_budget_on_purpose(rolled_back):
    folder, key, _ = rolled_back
    recover(cp.Durable(folder / "ledger.db"), "people", by="olga")
    with pytest.raises(cp.errors.DataInUse, match="second_budget"):
        open_registry(read(PEOPLE + TABLE.format(name="people2", more=""), folder))
    more = "second_budget = true"
    (folder / "counterpoint.toml").write_text(PEOPLE + VISITS + TABLE.format(name="people2", more=more))
    with Served(folder, "--config", "counterpoint.toml") as service, service.client(key) as client:
        assert ask(client, "people", "new").status_code == 409 and ask(client, "people2", "new").status_code == 201
        assert "people" in json.dumps(client.get("/v1/sessions/people2/certificate").json())


def test_a_record_that_holds_again_is_served_without_a_restart(rolled_back, monkeypatch):
    """Another worker has recovered it."""
    folder, _, _ = rolled_back
    registry = open_registry(read(PEOPLE + VISITS, folder))
    assert registry.names == ("visits",) and list(registry.set_aside) == ["people"]
    recover(registry.place, "people", by="olga")
    monkeypatch.setattr(registry_room, "_LOOKED_AT_AGAIN", 0)
    with pytest.raises(cp.errors.NotAllowed, match="until its custodian has looked"):
        registry.data_set("people")  # it was looked at just now
    found = registry._set_aside["people"]
    registry._set_aside["people"] = found._replace(again=0)
    assert registry.data_set("people").name == "people" and not registry.set_aside
    assert registry.names == ("visits", "people")
    registry.close()

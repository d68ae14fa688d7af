"""Lost database connections: requests are finished by their ids, without a restart, and charged once."""

import threading
import time
from urllib.parse import urlsplit

import psycopg
import pytest
from litestar.testing import TestClient
from tests.engines import engines
from tests.ledger.places import fresh_database
from tests.service.process import Served
from tests.service.registry import Caller, table

import counterpoint as cp
from counterpoint.errors import LedgerFailed, LedgerTampered
from counterpoint.ledger.sealing import MasterKey
from counterpoint.service.app import application
from counterpoint.service.registry import Registry

COUNT = {"request": {"request": "count", "where": "age > 35"}}
MEAN = {"request": {"request": "mean", "column": "age"}, "epsilon": 0.01}


def lose_connections(url):
    """End every connection to a database; how many there were."""
    import psycopg

    end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s"
    with psycopg.connect(engines.url(), autocommit=True) as connection:
        return len(connection.execute(end, (urlsplit(url).path[1:],)).fetchall())


@pytest.fixture
def lost(tmp_path):
    """A caller of a service whose ledger is in PostgreSQL, and how to lose every connection to it."""
    url = fresh_database()
    MasterKey.create(tmp_path / "the.key")
    place = cp.Durable(url, key_file=tmp_path / "the.key", witness=tmp_path / "witness")
    registry = Registry(place)
    registry.register("people", table, cp.Filter(cp.PureDP(4)))
    with TestClient(application(registry), raise_server_exceptions=False) as client:

        def lose():
            assert lose_connections(url) > 0

        yield Caller(registry, client), lose
    registry.close()


def test_connections_lost_between_requests_are_opened_anew(lost):
    call, lose = lost
    session = call.granted()
    lose()
    handle = call.launched(session)
    lose()
    first = call("ann", "POST", f"/v1/handles/{handle}/asks", COUNT, id="monday")
    lose()
    again = call("ann", "POST", f"/v1/handles/{handle}/asks", COUNT, id="monday")
    assert (first.status_code, again.status_code) == (201, 201) and first.json() == again.json()
    lose()
    seen = call("bob", "GET", "/v1/sessions/").status_code, call("ann", "GET", f"/v1/sessions/{session}").json()
    assert seen[0] == 200 and seen[1]["loss"]["text"] == "PureDP(0.1)"
    lose()
    assert call(None, "GET", "/ready").json() == {"status": "ready"}
    lose()
    assert call("carol", "DELETE", f"/v1/data-sets/people/grants/{session}").status_code == 200
    assert call("carol", "POST", "/v1/data-sets/people/verification").json()["holds"]


def test_a_commit_whose_acknowledgement_was_lost_is_not_charged_again(lost, monkeypatch):
    call, _ = lost
    session = call.granted()
    store = call.registry.data_set("people").session()._engine.ledger._store
    commit, lose = store.commit, [True]

    def lost_on_the_way():
        commit()
        if lose:
            lose.clear()
            store.abandon()
            raise LedgerFailed("the connection was lost")

    monkeypatch.setattr(store, "commit", lost_on_the_way)
    call.launched(session)  # without an id: the service gives it one
    assert not lose
    assert call("ann", "GET", f"/v1/sessions/{session}").json()["loss"]["text"] == "PureDP(0.1)"


def test_a_table_whose_connection_was_lost_is_bound_anew(tmp_path, caplog):
    """Its ledger is elsewhere and stands; the request that finds it lost is finished by its id."""
    url = fresh_database()
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE TABLE people AS SELECT n AS person, n % 90 AS age FROM generate_series(1, 50) AS n")

    def people():
        columns = {"age": cp.number(0, 100)}
        return cp.Table(url, "person", rows_per_unit=1, columns=columns, key=bytes(32), relation="people")

    registry = Registry(cp.Durable(tmp_path / "ledger.db"))
    registry.register("people", people, cp.Filter(cp.PureDP(4)))
    with TestClient(application(registry), raise_server_exceptions=False) as client:
        call = Caller(registry, client)
        handle = call.launched(call.granted())
        asks = f"/v1/handles/{handle}/asks"
        assert call("ann", "POST", asks, COUNT, id="before").status_code == 201
        assert lose_connections(url) > 0
        monday = call("ann", "POST", asks, COUNT, id="monday")  # finds the connection lost, and is finished on another
        assert monday.status_code == 201
        assert call("ann", "POST", asks, COUNT, id="monday").json() == monday.json()
        assert call("carol", "POST", "/v1/data-sets/people/verification").json()["holds"]
        said = [record.said for record in caplog.records if getattr(record, "said", {}).get("of") == "people"]
        assert [(one["event"], one["what"]) for one in said] == [("failed", "data"), ("recovered", "data")]
    registry.close()


def test_a_ledger_that_does_not_hold_is_not_tried_again(lost, monkeypatch):
    call, _ = lost
    session, tries = call.granted(), []

    def tampered(*_):
        tries.append(1)
        raise LedgerTampered("the chain does not hold")

    monkeypatch.setattr(Registry, "reached", tampered)
    assert call("ann", "GET", f"/v1/sessions/{session}").status_code == 503 and len(tries) == 1


def test_workers_answer_every_request_once_while_connections_are_killed(tmp_path):
    url = fresh_database()
    for name in ("the.key", "data.key"):
        MasterKey.create(tmp_path / name)
    text = f"ledger = '{url}'\nkey_file = 'the.key'\ndata_key_file = 'data.key'\nwitness = 'witness'"
    (tmp_path / "counterpoint.toml").write_text(text)
    answers, failures = {}, []

    def ask(service, client_number):
        with service.client() as client:
            for number in range(8):
                id = f"question {client_number} {number}"
                said = client.post("/v1/sessions/people/questions", json=MEAN, headers={"Idempotency-Key": id})
                if said.status_code != 201:
                    failures.append(said.text)
                answers[id] = said.json()

    with Served(tmp_path, "--config", "counterpoint.toml", "--demo", "--workers", 2) as service:
        with service.client() as client:
            assert client.get("/ready").status_code == 200
        threads = [threading.Thread(target=ask, args=(service, number)) for number in range(4)]
        for thread in threads:
            thread.start()
        while any(thread.is_alive() for thread in threads):
            lose_connections(url)
            time.sleep(1.5)
        for thread in threads:
            thread.join()
        assert not failures and len(answers) == 32
        with service.client() as client:
            for id, answer in list(answers.items())[::4]:
                headers = {"Idempotency-Key": id}
                again = client.post("/v1/sessions/people/questions", json=MEAN, headers=headers).json()
                assert {**again, "receipt": None} == {**answer, "receipt": None}  # a receipt names the present head
            assert client.post("/v1/data-sets/people/verification").json()["holds"]
            lines = client.get("/v1/sessions/people/history").json()["facts"]
        assert sum(line["kind"] == "question" for line in lines) == 32
        assert service.key is not None and sum("cp_" in line for line in service.lines) == 1

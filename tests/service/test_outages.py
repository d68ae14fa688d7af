"""What fails is a line of the log, and so is its end; whether all is ready is said at once, whatever hangs."""

import asyncio
import json
import logging
import threading

import pytest
from tests.service.registry import served

import counterpoint as cp
from counterpoint.errors import DataFailed, LedgerError, LedgerFailed, LedgerTampered, ServiceFailed, WitnessFailed
from counterpoint.service.metrics import JsonLines
from counterpoint.service.outages import Outage
from counterpoint.service.readiness import Readiness


def lines(caplog):
    """What the log says of failures, as it is written at the default level."""
    records = [one for one in caplog.records if one.levelno >= logging.WARNING and hasattr(one, "said")]
    said = [json.loads(JsonLines().format(one)) for one in records]
    return [one for one in said if one.get("event") in ("failed", "recovered")]


def test_a_witness_that_is_taken_away_and_put_back_is_a_failure_and_a_recovery(tmp_path, caplog):
    with served(tmp_path) as call:
        data_set = call.registry.data_set("people")
        assert data_set.session().ask(cp.count(), epsilon=0.1).cost == cp.PureDP(0.1)
        witness = tmp_path / "ledger.db.witness"
        witness.rename(tmp_path / "elsewhere")
        with pytest.raises(WitnessFailed):
            data_set.session().ask(cp.count(), epsilon=0.1, id="monday")
        for _ in range(3):
            with pytest.raises(LedgerError):
                data_set.session()
        (tmp_path / "elsewhere").rename(witness)
        monday = data_set.session().ask(cp.count(), epsilon=0.1, id="monday")
        assert [one["event"] for one in lines(caplog)] == ["failed", "failed"], "it is not known yet that it works"
        assert data_set.session().ask(cp.count(), epsilon=0.1, id="monday") == monday
        assert call.registry.data_set("people").session().loss == cp.PureDP("0.2")
    failed, refused, *recovered = lines(caplog)
    assert (failed["what"], failed["of"], failed["error"]) == ("witness", "people", "WitnessFailed")
    assert "was moved" in failed["reason"]
    assert (refused["what"], refused["error"]) == ("ledger", "LedgerRolledBack")
    assert [(one["event"], one["what"]) for one in recovered] == [("recovered", "witness"), ("recovered", "ledger")]


def test_of_another_librarys_error_only_its_class_is_shown(tmp_path, caplog, monkeypatch):
    with served(tmp_path) as call:
        data_set = call.registry.data_set("people")
        store = data_set.session()._engine.ledger._store
        monkeypatch.setattr(store, "commit", lambda: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            data_set.session().ask(cp.count(), epsilon=0.1)
        monkeypatch.undo()
        data_set.session()
    assert [one.get("reason") for one in lines(caplog)[:1]] == ["ZeroDivisionError"]


def test_data_that_could_not_answer_are_a_line_when_they_are_closed_and_when_they_are_reopened(
    tmp_path, caplog, monkeypatch
):
    with served(tmp_path) as call:
        session = call.registry.data_set("people").session()
        monkeypatch.setattr(type(session._source), "resolve", lambda *_: 1 / 0)
        with pytest.raises(DataFailed):
            session.ask(cp.count(), epsilon=0.1)
        closed = [one for one in caplog.records if one.name == "counterpoint.custodian"]
        assert closed and all(one.levelno >= logging.WARNING for one in closed)
        assert call("carol", "POST", "/v1/data-sets/people/reopening").status_code == 200
    (line,) = lines(caplog)
    assert (line["event"], line["what"], line["of"], line["by"]) == ("recovered", "data", "people", "carol")


def test_a_failure_that_many_requests_meet_is_one_line(caplog):
    outage = Outage("people")
    threads = [threading.Thread(target=outage.begin, args=(LedgerFailed("the disk is full"),)) for _ in range(9)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [one["event"] for one in lines(caplog)] == ["failed"] and outage.parts == ("ledger",)
    outage.end()
    outage.end()
    outage.begin(LedgerFailed("the disk is full"))
    assert [one["event"] for one in lines(caplog)] == ["failed", "recovered", "failed"]


def test_the_service_says_that_it_is_not_ready_while_a_ledger_hangs(tmp_path):
    with served(tmp_path) as call:
        lock, held, over = call.registry._store.lock, threading.Event(), threading.Event()

        def hang():
            with lock:
                held.set()
                over.wait(60)

        thread = threading.Thread(target=hang)
        thread.start()
        held.wait(60)
        refused = [call(None, "GET", "/ready") for _ in range(2)]
        assert [one.status_code for one in refused] == [503, 503] and refused[0].headers["retry-after"] == "1"
        assert call(None, "GET", "/health").status_code == 200
        over.set()
        thread.join()
        assert call(None, "GET", "/ready").json() == {"status": "ready"}


def test_a_stranger_learns_that_the_service_is_not_ready_and_not_why(tmp_path, monkeypatch):
    with served(tmp_path) as call:

        def tampered(*_):
            raise LedgerTampered("request 'monday' of 'people' is not stored as the entries say")

        monkeypatch.setattr(call.registry.data_set("people"), "opened", tampered)
        refused = call(None, "GET", "/ready")
        assert refused.status_code == 503 and "people" not in refused.text and "monday" not in refused.text
        assert refused.headers["content-type"] == "application/problem+json"


def test_callers_wait_for_one_answer_and_a_later_one_asks_anew():
    asked, over = [], threading.Event()

    def ask():
        asked.append(threading.current_thread())
        over.wait(60)

    async def callers():
        readiness = Readiness(ask)
        both = await asyncio.gather(readiness.why_not(), readiness.why_not())
        over.set()
        return [*both, await readiness.why_not(), await readiness.why_not()]

    first, second, third, fourth = asyncio.run(callers())
    assert isinstance(first, ServiceFailed) and isinstance(second, ServiceFailed)
    assert third is None and fourth is None and 2 <= len(asked) <= 3
    assert all(thread.daemon for thread in asked)

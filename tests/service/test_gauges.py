"""Gauges: what is left, what is open, what does not work; and that nothing in them is hidden elsewhere."""

import pytest
from tests.service.registry import served

import counterpoint as cp
from counterpoint.errors import DataFailed, LedgerFailed, LedgerTampered
from counterpoint.service.gauges import FAMILIES

ASK = {"request": {"request": "count"}, "epsilon": 1}


@pytest.fixture
def call(tmp_path):
    with served(tmp_path) as caller:
        yield caller


def gauges(call, who="olga"):
    """Every gauge that a principal reads, by its name and labels."""
    lines = call(who, "GET", "/metrics").text.splitlines()
    found = (line.rpartition(" ") for line in lines if line.startswith(tuple(FAMILIES)))
    return {name.removeprefix("counterpoint_"): float(value) for name, _, value in found}


def test_budgets_are_measured_in_shares_of_the_data_set_and_of_each_grant(call):
    ann, bob = call.granted("ann", 1), call.granted("bob", 2)
    assert call("ann", "POST", f"/v1/sessions/{ann}/questions", {**ASK, "epsilon": 0.25}).status_code == 201
    found = gauges(call)
    of = 'data_set="people",session="{}"'.format
    assert found[f"budget_spent{{{of('people')}}}"] == 0.75 and found[f"budget_left{{{of('people')}}}"] == 0.25
    assert found[f"budget_spent{{{of(ann)}}}"] == 0.25 and found[f"budget_left{{{of(bob)}}}"] == 1
    assert call("carol", "DELETE", f"/v1/data-sets/people/grants/{bob}").status_code == 200
    late = call.granted("ann", 0.5)
    assert f"budget_left{{{of(bob)}}}" not in gauges(call) and gauges(call)[f"budget_left{{{of(late)}}}"] == 1


def test_what_is_open_and_how_large_things_are_is_counted(call, tmp_path):
    session = call.registry.data_set("people").session()
    before = gauges(call)
    assert before['open_requests{data_set="people"}'] == 0
    assert before["ledger_bytes"] >= (tmp_path / "ledger.db").stat().st_size > 0
    assert before["witness_bytes"] == (tmp_path / "ledger.db.witness").stat().st_size
    handle = session.launch(cp.Laplace(1))
    assert gauges(call)['ledger_entries{data_set="people"}'] > before['ledger_entries{data_set="people"}']
    ledger = session._engine.ledger
    settle, ledger.settle = ledger.settle, lambda *_, **__: 1 / 0
    with pytest.raises(ZeroDivisionError):
        handle.ask(cp.count(), id="monday")
    ledger.settle = settle
    assert gauges(call)['open_requests{data_set="people"}'] == 1
    handle.ask(cp.count(), id="monday")
    assert gauges(call)['open_requests{data_set="people"}'] == 0


def test_data_that_are_closed_and_data_sets_that_failed_are_told_apart(call, monkeypatch):
    people = call.registry.data_set("people")
    monkeypatch.setattr(type(people.session()._source), "resolve", lambda *_: 1 / 0)
    with pytest.raises(DataFailed):
        people.session().ask(cp.count(), epsilon=0.1)
    found = gauges(call)
    assert found['data_set_closed{data_set="people"}'] == 1 and found['data_set_serving{data_set="people"}'] == 1
    people.session().reopen()
    assert gauges(call)['data_set_closed{data_set="people"}'] == 0
    people.outage.begin(LedgerFailed("the disk is full"))
    monkeypatch.setattr(call.registry.data_set("visits"), "opened", lambda: _raise(LedgerTampered("an entry")))
    found = gauges(call)
    assert found['data_set_serving{data_set="visits"}'] == 0 and found['data_set_serving{data_set="staff"}'] == 1
    assert 'ledger_entries{data_set="visits"}' not in found


def _raise(error):
    raise error


def test_requests_in_flight_are_counted_and_the_reader_is_one_of_them(call):
    lines = call("olga", "GET", "/metrics").text.splitlines()
    assert "counterpoint_requests_in_flight 1" in lines and "# TYPE counterpoint_requests_in_flight gauge" in lines


def test_gauges_do_not_move_when_a_mechanism_has_halted(call):
    """Two worlds: that it has may follow from its answers, which an auditor does not see."""
    handle = call.launched(call.granted(), mechanism="Laplace", epsilon=0.1, asks=1)
    ask = {"request": {"request": "count"}}
    assert call("ann", "POST", f"/v1/handles/{handle}/asks", ask).status_code == 201
    before = gauges(call)
    assert call("ann", "POST", f"/v1/handles/{handle}/asks", ask).status_code == 410
    assert gauges(call) == before


def test_only_custodians_and_auditors_read_them(call):
    assert [call(who, "GET", "/metrics").status_code for who in ("carol", "olga", "ann", "paul")] == [
        200,
        200,
        403,
        403,
    ]

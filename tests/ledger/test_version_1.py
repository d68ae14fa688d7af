"""Ledgers that were written in version 1 of the stored format: this code opens, verifies and continues them."""

from contextlib import closing

import pytest
from tests.ledger.places import DURABLE, Place
from tests.ledger.version_1 import SOURCES, TABLES, dumped, load, staff, statements, visits
from tests.session.numbers_source import Numbers
from typer.testing import CliRunner

import counterpoint as cp
from counterpoint.cli import app
from counterpoint.errors import NotAllowed
from counterpoint.service.identity import Role
from counterpoint.service.registry import Registry


@pytest.fixture(params=DURABLE)
def written(request, tmp_path):
    return load(request.param, tmp_path)


@pytest.mark.parametrize("name", SOURCES)
def test_every_session_holds_and_its_charges_are_those_of_its_record(written, name):
    place, _ = written
    with place.reopened(name=name, source=SOURCES[name]()) as s:
        s._engine.ledger.verify()


def test_the_record_verifies_from_outside(written):
    place, _ = written
    done = CliRunner().invoke(app, ["ledger", "verify", place.url, "--witness", str(place.home / "witness")])
    assert done.exit_code == 0, done.output
    for name in ("lost", "gone", *SOURCES):
        assert f"{name}: " in done.output


def test_what_was_answered_is_answered_so_again(written):
    place, told = written
    with place.reopened(name="people", source=SOURCES["people"]()) as s:
        assert s.ask(cp.count(where="age > 30"), epsilon="0.25", id="q") == told["people"]
        by = s.ask(cp.count(by="state"), epsilon="0.25", id="by")
        assert {str(key): value for key, value in by.items()} == told["by"]
        assert s.loss == cp.PureDP("0.5")
    with place.reopened(name="numbers") as s:
        assert s.handles[0].ask("apples", id="q") == told["numbers"]
    with place.reopened(name="visits", source=visits()) as s:
        assert s.handles[0].ask(id="q") == told["visits"]
    with place.reopened(name="staff", source=staff()) as s:
        assert s.handles[0].ask(cp.sum("hours"), id="q") == told["staff"]


def test_an_open_request_is_finished_from_its_seed(written, tmp_path_factory):
    """By two copies alike: its noise was drawn when it was charged."""
    place, _ = written
    other, _ = load(place.kind, tmp_path_factory.mktemp("copy"))
    answers = []
    for one in (place, other):
        with one.reopened(name="numbers") as s:
            loss = s.loss
            question = s.ask("beans", epsilon="0.01", id="open question")
            answers.append((s.handles[0].ask("beans", id="open"), int(question)))
            assert s.loss == loss
            s._engine.ledger.verify()
    assert answers[0] == answers[1]


def test_sessions_go_on(written):
    place, _ = written
    with place.reopened(name="numbers") as s:
        assert s.loss == cp.PureDP("0.61")
        assert [type(handle.mechanism).__name__ for handle in s.handles] == ["Laplace", "SparseVector", "Laplace"]
        delegated, parts, granted = s.given
        assert granted.acting_as("ann").launch(cp.Laplace("0.1")).ask("apples") > 0
        assert delegated.remaining.epsilon == cp.PureDP("0.15").epsilon
        assert parts["b"].launch(cp.Laplace("0.1")).ask("beans") is not None
        s.launch(cp.Laplace("0.39"), id="the rest")
        with pytest.raises(cp.BudgetExceeded):
            s.launch(cp.Laplace("0.01"))
        s._engine.ledger.verify()
    stream, table = visits(), staff()
    with place.reopened(name="visits", source=stream) as s:
        stream.extend([{"user": "bob", "page": "shop", "seconds": 9}] * 3, id="second")
        assert stream.pin() == 4, "those were appended before"
        stream.append({"user": "cy", "page": "shop", "seconds": 1}, id="third")
        assert isinstance(s.handles[0].ask(), int) and stream.pin() == 5
        s._engine.ledger.verify()
    with place.reopened(name="staff", source=table) as s:
        table.put({"who": "cy", "desk": 1, "hours": 8}, id="fourth")
        assert isinstance(s.handles[0].ask(cp.count()), int) and table.pin() == 4
        s._engine.ledger.verify()


def test_a_recovered_session_can_be_read_and_a_retired_one_is_gone(written):
    place, told = written
    with place.reopened(name="lost", source=Numbers({"lost": 5})) as s:
        assert s.handles[0].ask("lost", id="q") == told["lost"] and s.loss == cp.PureDP(1)
        with pytest.raises(cp.BudgetExceeded):
            s.launch(cp.Laplace("0.01"))
    with pytest.raises(NotAllowed, match="is retired"):
        place.reopened(name="gone", source=Numbers({"gone": 5}))


def test_an_api_key_opens_as_it_did(written):
    place, told = written
    with closing(Registry(place.durable)) as registry:
        who = registry.identity.principal(told["key"])
        assert who is not None and (who.name, who.role) == ("ann", Role.ANALYST)


def test_a_new_ledger_has_the_tables_of_the_one_that_was_written(written, tmp_path_factory):
    """Whoever changes a table changes the version, and says how a ledger of version 1 migrates."""
    place, _ = written
    new = Place(place.kind, tmp_path_factory.mktemp("new"))
    new.session().close()
    assert tables(new) == tables(place)
    assert set(dumped(new)) == set(dumped(place)) <= set(TABLES)


def tables(place):
    """The statements that make the tables of a place."""
    if place.kind == "postgres":
        return [line for line in statements(place) if not line.startswith("INSERT")]
    return place.sql("SELECT name, sql FROM sqlite_master ORDER BY name")

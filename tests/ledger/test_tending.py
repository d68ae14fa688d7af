"""What an operator does with a ledger: list, show, read the history, back up, bring up to date; and people's keys."""

import threading

import pytest
from tests.ledger.places import Place
from typer.testing import CliRunner

import counterpoint as cp
from counterpoint.cli import app
from counterpoint.ledger import admin as tending
from counterpoint.ledger.location import Durable, hold, release
from counterpoint.service.identity import Browsers, Identity


def run(*words, code=0):
    done = CliRunner().invoke(app, [str(word) for word in words])
    assert done.exit_code == code, done.output
    return done.output


@pytest.fixture
def place(tmp_path):
    """A ledger with a launch, an answer and a refusal by ann."""
    place = Place("sqlite", tmp_path)
    with place.session(name="people") as session:
        hers = session.acting_as("ann")
        hers.launch(cp.Laplace("0.25", asks=3), id="L").ask("apples", id="q")
        with pytest.raises(cp.BudgetExceeded):
            hers.launch(cp.Laplace(5))
    return place


def test_sessions_are_listed_and_shown_without_a_key(place):
    place.key.unlink()
    listed = run("ledger", "list", place.url)
    assert listed.startswith("people: ") and listed.endswith(" entries\n")
    shown = run("ledger", "show", place.url, "people")
    assert "rule: Filter(PureDP(1))" in shown and "loss: PureDP(0.25) in 1 launches" in shown
    assert "there are: 'people'" in run("ledger", "show", place.url, "visits", code=1)


def test_a_history_says_when_who_and_what(place):
    lines = run("ledger", "history", place.url, "people").splitlines()
    kinds = [line.split()[2] for line in lines]
    assert kinds[-3:] == ["launch", "ask", "refusal"] and all(" ann " in line for line in lines[-3:])


def test_a_backup_is_the_ledger_at_one_moment_and_overwrites_nothing(place, tmp_path):
    copy = tmp_path / "copy.db"
    run("ledger", "backup", place.url, copy)
    assert copy.stat().st_mode & 0o077 == 0
    assert "already" in run("ledger", "backup", place.url, copy, code=1)
    restored = cp.Durable(copy, key_file=place.key, witness=place.home / "witness")
    with cp.open(restored, "people", source=place.source) as session:
        assert session.loss == cp.PureDP("0.25")


def test_a_backup_is_made_while_requests_go_on(place, tmp_path):
    with place.session(name="people") as session:
        noisy = session.launch(cp.Laplace("0.25", asks=200), id="many")
        asked, stop = [], threading.Event()

        def ask():
            while not stop.is_set() and len(asked) < 200:
                noisy.ask("apples", id=f"q{len(asked)}")
                asked.append(1)

        thread = threading.Thread(target=ask)
        thread.start()
        for number in range(5):
            tending.back_up(place.durable, tmp_path / f"copy{number}.db")
        stop.set()
        thread.join()
        # The witness has seen every answer that was released, so a copy is compared without it.
        for number in range(5):
            lines = list(tending.listed(Durable(tmp_path / f"copy{number}.db")))
            assert lines[0].startswith("people: ")
        assert "another process" not in run("ledger", "verify", place.url, "--witness", place.home / "witness")


def test_a_ledger_in_postgresql_is_backed_up_as_its_database_is():
    assert "pg_dump" in run("ledger", "backup", "postgresql://nowhere.invalid/ledger", "copy.db", code=1)


def test_keys_are_made_listed_and_ended(place):
    at = ("--ledger", place.url, "--key-file", place.key, "--witness", place.home / "witness")
    key = run("keys", "new", "ann", "--role", "analyst", *at).strip()
    assert key.startswith("cp_") and "'bob' is not a principal" in run("keys", "new", "bob", *at, code=1)
    listed = run("keys", "list", *at)
    id = key.split("_")[1]
    assert listed == f"ann: analyst\n  {id}: stands\n"
    store = hold(place.durable, existing=True)
    assert Identity(store, place.durable).principal(key).name == "ann"
    run("keys", "end", id, *at)
    assert Identity(store, place.durable).principal(key) is None
    release(store)
    run("keys", "end", "ann", *at)
    assert "ann: analyst, ended" in run("keys", "list", *at)
    assert "no key and no principal" in run("keys", "end", "eve", *at, code=1)


def test_a_grant_is_made_once_and_revoked_without_a_service(tmp_path):
    config = tmp_path / "counterpoint.toml"
    config.write_text("[streams.visits]\nbudget = { measure = 'PureDP', epsilon = 1 }")
    words = ("grant", "visits", "ann", "0.5", "--id", "g", "--config", config)
    assert "there are no analysts yet" in run(*words, code=1)
    for analyst in ("ann", "bob"):
        run("keys", "new", analyst, "--role", "analyst", "--ledger", tmp_path / "ledger.db")
    assert run(*words) == run(*words) == "ann works in the session visits.0\n"
    assert "PureDP(0.5) stays charged" in run("revoke", "visits.0", "--config", config)
    assert "'visits.7' was not found" in run("revoke", "visits.7", "--config", config, code=1)
    assert "does not fit" in run("grant", "visits", "bob", "0.6", "--config", config, code=1)
    history = run("ledger", "history", tmp_path / "ledger.db", "visits")
    assert " operator revocation 0 " in history and " operator refusal . " in history


def test_browsers_are_listed_apart_and_those_that_ended_are_deleted(place):
    at = ("--ledger", place.url, "--key-file", place.key, "--witness", place.home / "witness")
    key = run("keys", "new", "ann", "--role", "analyst", *at).strip()
    store = hold(place.durable, existing=True)
    browsers = Browsers(Identity(store, place.durable))
    first, second = browsers.sign_in(key), browsers.sign_in(key)
    assert run("keys", "list", *at) == f"ann: analyst\n  {key.split('_')[1]}: stands\n  browsers signed in: 2\n"
    browsers.sign_out(first)
    third = browsers.sign_in(key)
    ids = {one.id for one in Identity(store, place.durable).keys("ann")}
    release(store)
    assert first.id not in ids and {second.id, third.id, key.split("_")[1]} == ids

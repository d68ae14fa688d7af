"""`counterpoint ledger`: keys, verification and rotation from the command line."""

import pytest
from typer.testing import CliRunner

import counterpoint as cp
from counterpoint.cli import app
from counterpoint.ledger.sealing import MasterKey


def run(*words):
    return CliRunner().invoke(app, ["ledger", *map(str, words)])


@pytest.fixture
def used(lasting):
    with lasting.session() as s:
        noisy = s.launch(cp.Laplace("0.4", asks=3), id="L")
        noisy.ask("apples", id="q")
        with pytest.raises(cp.BudgetExceeded):
            s.launch(cp.Laplace(2))
    return lasting


def test_a_ledger_that_holds_is_described(used):
    done = run("verify", used.url, "--witness", used.home / "witness")
    assert done.exit_code == 0, done.output
    assert "session: 9 entries hold; 1 launched, PureDP(0.4) lost; 0 requests to be finished" in done.output


def test_one_that_does_not_hold_is_an_exit_status_and_one_line(used):
    used.sql("UPDATE counterpoint_row SET version = 7 WHERE path = '[0]'")
    done = run("verify", used.url, "--witness", used.home / "witness")
    assert done.exit_code == 1 and done.stderr.startswith("LedgerTampered: the state at [0]")
    assert run("verify", used.home / "nowhere").exit_code == 1


def test_a_key_is_made_once(tmp_path):
    assert run("key", tmp_path / "k").exit_code == 0
    assert MasterKey.from_file(tmp_path / "k").name != MasterKey.create(tmp_path / "l").name
    again = run("key", tmp_path / "k")
    assert again.exit_code == 1 and "never overwritten" in again.stderr


def test_a_key_is_changed_for_another(used, monkeypatch):
    new = used.home / "new.key"
    assert run("key", new).exit_code == 0
    done = run("rotate", used.url, new, "--key-file", used.key, "--witness", used.home / "witness")
    assert done.exit_code == 0, done.output
    monkeypatch.setenv("COUNTERPOINT_WITNESS", str(used.home / "witness"))
    again = run("rotate", used.url, new, "--key-file", used.key)
    assert again.exit_code == 0 and "sealed with the new key already" in again.stdout, "it may have been interrupted"
    other = used.home / "other.key"
    assert run("key", other).exit_code == 0
    refused = run("rotate", used.url, other, "--key-file", used.key)
    assert refused.exit_code == 1 and refused.stderr.startswith("Unsealable")
    used.key = new
    with used.reopened() as s:
        assert isinstance(s.handles[0].ask("apples", id="q"), int)

"""Rollback, forks, tampering, full and read-only disks, clocks: each a clear typed error, and nothing is lost."""

import errno
import os
import re
import resource
import shutil
import time

import pytest
from tests.ledger.crashes import in_child
from tests.ledger.places import DATA, Place
from tests.session.numbers_source import Numbers

import counterpoint as cp
from counterpoint.composition.filters import Filter
from counterpoint.errors import (
    BudgetExceeded,
    LedgerError,
    LedgerFailed,
    LedgerRolledBack,
    LedgerTampered,
    UnknownSchema,
    Unsealable,
)
from counterpoint.ledger import open as opening
from counterpoint.ledger.store import tables as schema
from counterpoint.ledger.store.records import BUDGET, StoredRequest
from counterpoint.ledger.store.sqlite import journal_mode
from counterpoint.ledger.store.store import ChangeSet


def asked(place, *ids, budget=None):
    """A session in which some asks were answered, closed again: the answers."""
    with place.session(budget or cp.PureDP(1)) as s:
        noisy = s.launch(cp.Laplace("0.01", asks=100), id="L")
        return {name: noisy.ask("apples", id=name) for name in ids}


def snapshot(place):
    """A copy of the database, and how to put it back."""
    if place.kind == "sqlite":
        shutil.copy(place.url, place.home / "copy")
        return lambda: shutil.copy(place.home / "copy", place.url)
    tables = [f"counterpoint_{table}" for table in ("session", "key", "entry", "row", "request")]
    for table in tables:
        place.sql(f"CREATE TABLE IF NOT EXISTS kept_{table} AS SELECT * FROM {table}")

    def put_back():
        for table in tables:
            place.sql(f"DELETE FROM {table}")
            place.sql(f"INSERT INTO {table} SELECT * FROM kept_{table}")

    return put_back


def test_a_snapshot_put_back_is_refused_at_start(lasting):
    asked(lasting, "a")
    put_back = snapshot(lasting)
    asked(lasting, "b")
    put_back()
    with pytest.raises(LedgerRolledBack, match="an old copy"):
        lasting.reopened()


def test_a_fork_that_went_on_by_itself_is_refused(lasting):
    """The copy is used without the witness until it is as long as what the witness has seen."""
    asked(lasting, "a")
    put_back = snapshot(lasting)
    kept = (lasting.home / "witness").read_bytes()
    asked(lasting, "b", "c")
    seen = (lasting.home / "witness").read_bytes()
    put_back()
    (lasting.home / "witness").write_bytes(kept)
    asked(lasting, "x", "y", "z")
    (lasting.home / "witness").write_bytes(seen)
    with pytest.raises(LedgerRolledBack, match="another history"):
        lasting.reopened()


def test_a_ledger_that_is_taken_away_or_whose_witness_is_gets_noticed(lasting):
    asked(lasting, "a")
    witness = lasting.home / "witness"
    witness.rename(lasting.home / "elsewhere")
    with pytest.raises(LedgerRolledBack, match="COUNTERPOINT_WITNESS"):
        lasting.reopened()
    (lasting.home / "elsewhere").rename(witness)
    other = Place(lasting.kind, lasting.home / "other" if (lasting.home / "other").mkdir() is None else None)
    shutil.copy(witness, other.home / "witness")
    with pytest.raises(LedgerRolledBack, match="taken away"):
        other.session()


def test_a_torn_line_of_the_witness_is_passed_over(lasting):
    told = asked(lasting, "a")
    witness = lasting.home / "witness"
    with witness.open("ab") as file:
        file.write(b"99 abcdef")
    assert asked(lasting, "a", "b")["a"] == told["a"]
    assert b"99 abcdef \n" in witness.read_bytes(), "and the next line is not glued to it"


TAMPERED = {
    "an entry": "UPDATE counterpoint_entry SET entry = "
    "(SELECT entry FROM counterpoint_entry WHERE number = 3) WHERE number = 4",
    "a missing entry": "DELETE FROM counterpoint_entry WHERE number = 4",
    "a truncated chain": "DELETE FROM counterpoint_entry WHERE number > 4",
    "a head": "UPDATE counterpoint_session SET number = number - 1",
    "a state": "UPDATE counterpoint_row SET sealed = "
    "(SELECT answer FROM counterpoint_request WHERE request = '() a') WHERE path = '[0]'",
    "a version": "UPDATE counterpoint_row SET version = version - 1 WHERE path = '[0]'",
    "a halt": "UPDATE counterpoint_row SET sealed = NULL WHERE path = '[0]'",
    "a missing row": "DELETE FROM counterpoint_row WHERE path = '[0]'",
    "a row nobody made": "INSERT INTO counterpoint_row SELECT name, '[7]', version, public_row, node, sealed, "
    "budget_used FROM counterpoint_row WHERE path = '[0]'",
    "a mechanism": "UPDATE counterpoint_row SET public_row = (SELECT public_row FROM counterpoint_row "
    "WHERE path = '[1]') WHERE path = '[0]'",
    "a budget": "UPDATE counterpoint_row SET public_row = (SELECT public_row FROM counterpoint_row WHERE path = '[2]') "
    "WHERE path = '[]'",
    "an account": "UPDATE counterpoint_row SET node = (SELECT node FROM counterpoint_row WHERE path = '[2]') "
    "WHERE path = '[]'",
    "what it is about": "UPDATE counterpoint_session SET fingerprint = 'other data'",
    "a missing key": "DELETE FROM counterpoint_key",
    "a key": "UPDATE counterpoint_key SET wrapped = (SELECT sealed FROM counterpoint_row WHERE path = '[0]')",
    "what is spent": "UPDATE counterpoint_row SET budget_used = budget_used - 1 WHERE path = '[]'",
    "how often it was charged": "UPDATE counterpoint_row SET version = version - 1 WHERE path = '[]'",
}


@pytest.mark.parametrize("what", TAMPERED)
def test_a_tampered_ledger_is_refused_at_start(lasting, what):
    asked(lasting, "a", "b")
    with lasting.session() as s:
        s.launch(cp.Laplace("0.1", asks=100))
        s.delegate(cp.PureDP("0.1"))
    lasting.sql(TAMPERED[what])
    with pytest.raises(LedgerTampered):
        lasting.reopened()


REPLAYED = {
    "a stored answer": (
        "UPDATE counterpoint_request SET answer = (SELECT answer FROM counterpoint_request WHERE request = '() a') "
        "WHERE request = '() b'",
        " b'",
    ),
    "a forgotten request": ("DELETE FROM counterpoint_request WHERE request = '() a'", "missing"),
}


@pytest.mark.parametrize("what", REPLAYED)
def test_verification_replays_what_the_start_does_not(lasting, what):
    asked(lasting, "a", "b")
    statement, words = REPLAYED[what]
    lasting.sql(statement)
    with lasting.reopened() as s, pytest.raises(LedgerTampered, match=words):
        s._engine.ledger.verify()


BUDGETS = [
    (cp.PureDP(1), cp.Laplace("0.3")),
    (cp.ApproxDP(1, 1e-6), cp.Laplace("0.3")),
    (cp.zCDP(1), cp.Gaussian("0.3")),
]


@pytest.mark.parametrize(("budget", "mechanism"), BUDGETS)
def test_the_database_refuses_a_charge_beyond_the_budget_even_if_the_rule_lets_it_pass(
    lasting, monkeypatch, budget, mechanism
):
    with monkeypatch.context() as patch, lasting.session(budget) as s:
        patch.setattr(Filter, "admit", lambda self, account, claim: account.plus(claim.loss, claim.interaction))
        for _ in range(3):
            s.launch(mechanism)
        with pytest.raises(LedgerFailed, match="exceed its budget"):
            for _ in range(20):  # an (epsilon, delta) budget takes a few more than the sum of epsilons says
                s.launch(mechanism)
    with lasting.reopened() as s:
        s._engine.ledger.verify()
        assert s.loss.within(budget)
        assert 0 < lasting_spent(s) <= BUDGET


def test_the_last_launch_that_fits_fills_the_budget_to_the_last_part(lasting):
    with lasting.session(cp.PureDP(1)) as s:
        for _ in range(3):
            s.launch(cp.Laplace("1/3"))
        assert lasting_spent(s) == BUDGET
        with pytest.raises(BudgetExceeded):
            s.launch(cp.Laplace("1e-49"))
    assert lasting.sql("SELECT budget_used FROM counterpoint_row WHERE path = '[]'") == [(BUDGET,)]


def lasting_spent(session):
    ledger = session._engine.ledger
    return ledger._store.row(ledger.name, "[]").budget_used


def test_what_has_no_budget_has_no_cap(lasting):
    with lasting.session(rule=cp.Odometer(cp.PureDP)) as s:
        s.launch(cp.Laplace(10))
        assert lasting_spent(s) is None


def test_a_swapped_answer_is_not_given_out(lasting):
    asked(lasting, "a", "b")
    lasting.sql(REPLAYED["a stored answer"][0])
    with lasting.reopened() as s, pytest.raises(Unsealable):
        s.handles[0].ask("apples", id="b")


def test_a_schema_of_another_version_is_refused(lasting):
    told = asked(lasting, "a")
    mark = "PRAGMA user_version =" if lasting.kind == "sqlite" else "UPDATE counterpoint_schema SET version ="
    for other in (9, schema.VERSION + 1):
        lasting.sql(f"{mark} {other}")
        with pytest.raises(UnknownSchema, match=f"schema version {other}, and this release .* reads version 1"):
            lasting.reopened()
        with pytest.raises(UnknownSchema, match=f"schema version {other}"):
            next(opening.sessions_at(lasting.durable))
    lasting.sql(f"{mark} {schema.VERSION}")
    assert asked(lasting, "a") == told


def test_a_file_that_is_no_ledger_is_left_alone(tmp_path):
    import apsw

    other = tmp_path / "other.db"
    connection = apsw.Connection(str(other))
    connection.execute("CREATE TABLE t (x)")
    connection.close()
    text = tmp_path / "text"
    text.write_text("hello " * 1000)
    for file in (other, text):
        before = file.read_bytes()
        with pytest.raises(UnknownSchema):
            cp.Session(Numbers(DATA), cp.PureDP(1), ledger=str(file))
        assert file.read_bytes() == before


def test_a_full_disk_loses_nothing(tmp_path):
    """Writes beyond a size fail, in a child; afterwards there is room again."""
    place = Place("sqlite", tmp_path)
    asked(place, "a")

    def work(say):
        with place.reopened() as s:
            import signal

            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
            try:
                for number in range(200):
                    say(f"q{number}", s.handles[0].ask("apples", id=f"q{number}"))
            except LedgerFailed as error:
                say("failed", *str(error).split(" "))
            try:
                s.handles[0].ask("apples")
            except LedgerError as error:
                say("stopped", *str(error).split(" "))

    said, lived = in_child(work)
    assert lived and "open it again" in said[-2] and "open it again" in said[-1], said
    with place.reopened() as s:
        answers = dict(line.split(" ") for line in said[:-2])
        assert answers and all(s.handles[0].ask("apples", id=name) == int(value) for name, value in answers.items())
        s._engine.ledger.verify()


def test_a_full_database_is_a_clear_error_and_loses_nothing(tmp_path):
    place = Place("sqlite", tmp_path)
    told = asked(place, "a")
    s = place.reopened()
    store = s._engine.ledger._store
    store._run(f"PRAGMA max_page_count = {store._run('PRAGMA page_count')[0][0] + 1}")
    with pytest.raises(LedgerFailed, match="the disk is full"):
        for _ in range(200):
            s.launch(cp.Laplace("0.0001"))
    s.close()
    with place.reopened() as s:
        assert s.handles[0].ask("apples", id="a") == told["a"]
        s._engine.ledger.verify()


def test_a_ledger_that_may_not_be_written_is_a_clear_error(tmp_path):
    place = Place("sqlite", tmp_path)
    told = asked(place, "a")
    with place.reopened() as s:
        s._engine.ledger._store._run("PRAGMA query_only = 1")
        with pytest.raises(LedgerFailed, match="read-only"):
            s.handles[0].ask("apples")
    with place.reopened() as s:
        assert s.handles[0].ask("apples", id="a") == told["a"]
    with pytest.raises(LedgerError, match="cannot be opened"):
        cp.Session(Numbers(DATA), cp.PureDP(1), ledger=str(tmp_path / "no" / "such" / "folder"))


def test_a_read_only_postgres_is_a_clear_error(tmp_path):
    place = Place("postgres", tmp_path)
    told = asked(place, "a")
    s = place.reopened()
    s._engine.ledger._store._run("SET default_transaction_read_only = on")
    with pytest.raises(LedgerFailed, match="read-only"):
        s.handles[0].ask("apples")
    s.close()
    with place.reopened() as s:
        assert s.handles[0].ask("apples", id="a") == told["a"]


def test_a_lost_connection_stops_the_ledger_until_it_is_opened_again(tmp_path):
    place = Place("postgres", tmp_path)
    told = asked(place, "a")
    s = place.reopened()
    place.sql(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() "
        "AND pid <> pg_backend_pid()"
    )
    with pytest.raises(LedgerFailed, match="connection was lost"):
        s.handles[0].ask("apples")
    with pytest.raises(LedgerError, match="open it again"):
        s.launch(cp.Laplace("0.1"))
    s.close()
    with place.reopened() as s:
        assert s.handles[0].ask("apples", id="a") == told["a"] and s.loss == cp.PureDP("0.01")


def test_a_witness_that_cannot_be_written_keeps_the_answer_back(tmp_path, monkeypatch):
    place = Place("sqlite", tmp_path)
    asked(place, "a")
    s, witness = place.reopened(), str(place.home / "witness")
    write = os.write

    def full(file, data):
        if os.readlink(f"/proc/self/fd/{file}") == witness:
            raise OSError(errno.ENOSPC, "no space")
        return write(file, data)

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(LedgerFailed, match="witness"):
        s.handles[0].ask("apples", id="b")
    monkeypatch.undo()
    s.close()
    with place.reopened() as s:
        assert isinstance(s.handles[0].ask("apples", id="b"), int) and s._engine.ledger.read((0,)).version == 2


def test_a_clock_that_goes_backwards_is_no_concern(lasting, monkeypatch):
    told = asked(lasting, "a")
    monkeypatch.setattr(time, "time", lambda: 1.0)
    assert asked(lasting, "a", "b")["a"] == told["a"]
    monkeypatch.undo()
    with lasting.reopened() as s:
        s._engine.ledger.verify()


def test_a_password_is_not_shown(capfd):
    place = cp.Durable("postgresql://me:hunter2@nowhere.invalid/x")
    with pytest.raises(LedgerError) as caught:
        cp.open(place, source=Numbers(DATA))
    assert "hunter2" not in repr(place) + str(caught.value) + "".join(capfd.readouterr())


def test_an_unsafe_library_gets_a_rollback_journal(tmp_path, monkeypatch):
    import apsw

    assert [journal_mode(v) for v in ("3.7.0", "3.51.2", "3.51.3", "4.0.0")] == ["truncate", "truncate", "wal", "wal"]
    monkeypatch.setattr(apsw, "sqlite_lib_version", lambda: "3.50.1")
    place = Place("sqlite", tmp_path)
    with place.session() as s:
        store = s._engine.ledger._store
        assert store._run("PRAGMA journal_mode") == [("truncate",)] and store._run("PRAGMA synchronous") == [(3,)]
        assert isinstance(s.launch(cp.Laplace(0.5)).ask("apples"), int)


@pytest.mark.parametrize("bad", ["", ":memory:", 7, b"x", None])
def test_a_place_is_a_path_or_a_url(bad):
    if bad is not None:
        with pytest.raises(cp.errors.InvalidParameter):
            cp.Session(Numbers(DATA), cp.PureDP(1), ledger=bad)
    with pytest.raises((cp.errors.InvalidParameter, TypeError), match=re.compile("path")):
        cp.Durable(bad)


def test_the_database_itself_refuses_a_second_charge_to_the_same_account(lasting):
    """The cap as a constraint: without any lock, of two charges that were computed from one account one is stored."""
    lasting.session(cp.PureDP("0.5")).close()
    first, second = lasting.ledger(), lasting.ledger()
    try:
        head, row = first._header.head, first._store.row("session", "[]")
        units = [ChangeSet(ledger._store, "session", head) for ledger in (first, second)]
        for unit, request in zip(units, ("one", "two"), strict=True):
            unit.append("launch", request, (), "", "")
            unit.put_row(row._replace(version=row.version + 1))
        first._store.begin(None)
        first._store.write(units[0])
        first._store.commit()
        second._store.begin(None)
        with pytest.raises(LedgerFailed):
            second._store.write(units[1]), second._store.commit()
        second._store.rollback()
    finally:
        for ledger in (first, second):
            ledger.close()


@pytest.mark.parametrize(
    "requests",
    [[("a", b"sealed", None), ("b", b"sealed", None)], [("a", b"sealed", b"sealed")], [("a", None, None)]],
    ids=["two open", "open and done", "neither"],
)
def test_a_handle_has_one_open_request_and_that_a_seed_or_an_answer_by_the_databases_own_rule(lasting, requests):
    with lasting.session() as s:
        s.launch(cp.Laplace("0.1", asks=3))
    ledger = lasting.ledger()
    store = ledger._store
    try:
        unit = ChangeSet(store, "session", ledger._header.head)
        for name, seed, answer in requests:
            unit.put_request(StoredRequest(name, "[0]", 1, bytes(32), 0, "0", 1, seed, answer))
        store.begin(None)
        with pytest.raises(LedgerFailed):
            store.write(unit), store.commit()
        store.rollback()
    finally:
        ledger.close()

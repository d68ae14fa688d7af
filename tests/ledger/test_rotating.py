"""A change of keys is finished by running it again, wherever it was interrupted; no old wrapped key is left then."""

import os
import pathlib
import signal

import psycopg
import pytest
from tests.ledger.crashes import in_child
from tests.ledger.places import Place
from typer.testing import CliRunner

import counterpoint as cp
from counterpoint.cli import app
from counterpoint.ledger import open as opening
from counterpoint.ledger.sealing import MasterKey
from counterpoint.ledger.store.postgres import PostgresStore
from counterpoint.ledger.store.sqlite import SqliteStore

NAMES = ("people", "visits")
STEPS = ("INSERT", "UPDATE", "DELETE", "COMMIT", "VACUUM", "PRAGMA wal_checkpoint", "ALTER", "CHECKPOINT")


def wrapped(place):
    return [bytes(key) for (key,) in place.sql("SELECT wrapped FROM counterpoint_key")]


def files(place):
    """Every file of the database, or of the folder of an SQLite ledger."""
    if place.kind == "sqlite":
        return [path for path in place.home.iterdir() if path.is_file()]
    place.sql("CHECKPOINT")
    ((home,),) = place.sql("SHOW data_directory")
    ((number,),) = place.sql("SELECT oid FROM pg_database WHERE datname = current_database()")
    return list(pathlib.Path(home, "base", str(number)).iterdir())


def left_of(place, keys):
    """The files in which one of these keys is."""
    return [path.name for path in files(place) if any(key in content(path) for key in keys)]


def content(path):
    """What a file holds; nothing if the server has removed it meanwhile."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return b""


def rotation(place, new):
    return opening.rotate(cp.Durable(place.url, key_file=place.key, witness=place.home / "witness"), str(new))


def die_before(step):
    """End this process before its n-th change of the database; the changes that there were, if it has fewer."""
    seen = []

    def counted(function):
        def call(store, *given):
            statement = given[0] if given and isinstance(given[0], str) else "COMMIT"
            if given and not isinstance(given[0], str):
                statement = given[0][0]
            if statement.startswith(STEPS):
                seen.append(statement)
            if len(seen) == step:
                os.kill(os.getpid(), signal.SIGKILL)
            return function(store, *given)

        return call

    for kind in (SqliteStore, PostgresStore):
        for name in ("_run", "_run_many", "commit"):
            setattr(kind, name, counted(getattr(kind, name)))
    return seen


EVERY = {"sqlite": 1, "postgres": 3}
"""PostgreSQL is slower: there every third place is tried, and all of them in the long lane."""


def test_wherever_a_change_of_keys_is_killed_it_is_finished_by_running_it_again(lasting):
    finished_wherever_it_is_killed(lasting, EVERY[lasting.kind])


@pytest.mark.long
def test_wherever_a_change_of_keys_in_postgres_is_killed_it_is_finished_by_running_it_again(postgres):
    finished_wherever_it_is_killed(postgres, 1)


def finished_wherever_it_is_killed(lasting, every):
    answers = {}
    for name in NAMES:
        with lasting.session(name=name) as s:
            answers[name] = s.launch(cp.Laplace("0.1", asks=3), id="L").ask("apples", id="q")
    old, lived, step = [], False, 0
    while not lived:
        step += every
        new = lasting.home / f"{step}.key"
        MasterKey.create(new)
        old += wrapped(lasting)

        def work(say, step=step, new=new):
            seen = die_before(step)
            list(rotation(lasting, new))
            say(len(seen))

        _, lived = in_child(work)
        words = ["ledger", "rotate", lasting.url, new, "--key-file", lasting.key, "--witness", lasting.home / "witness"]
        done = CliRunner().invoke(app, list(map(str, words)))
        assert done.exit_code == 0 and "is erased" in done.output, (step, done.output)
        if every == 1:
            assert left_of(lasting, old) == [], step
        lasting.key = new
    assert left_of(lasting, old) == []
    assert step > 12, "or too few places were tried"
    for name in NAMES:
        with lasting.reopened(name=name) as s:
            assert s.handles[0].ask("apples", id="q") == answers[name]
            s._engine.ledger.verify()


def test_a_transaction_that_still_sees_the_old_keys_keeps_none_of_them_in_the_database(postgres):
    """VACUUM FULL would copy them: they were replaced after its snapshot."""
    postgres.session().close()
    old, new = wrapped(postgres), postgres.home / "new.key"
    MasterKey.create(new)
    with psycopg.connect(postgres.url) as other:
        other.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        other.execute("SELECT 1")
        assert "is erased" in list(rotation(postgres, new))[-1]
        assert left_of(postgres, old) == []


def test_the_statistics_of_a_server_hold_no_wrapped_key_and_no_seed(postgres):
    """ANALYZE, which a server runs by itself, copies some values of each column, and they outlive their rows."""
    for name in NAMES:
        with postgres.session(name=name) as s:
            s.launch(cp.Laplace("0.1", asks=3), id="L").ask("apples", id="q")
    old, new = wrapped(postgres), postgres.home / "new.key"
    postgres.sql("ANALYZE")
    ((known,),) = postgres.sql("SELECT count(*) FROM pg_stats WHERE tablename = 'counterpoint_key'")
    assert known, "or this could not fail"
    MasterKey.create(new)
    list(rotation(postgres, new))
    assert left_of(postgres, old) == []


def test_a_ledger_whose_tables_are_another_roles_is_finished_by_their_owner(postgres):
    postgres.session().close()
    old, new, url = wrapped(postgres), postgres.home / "new.key", postgres.url
    MasterKey.create(new)
    postgres.sql("CREATE ROLE helper")
    postgres.sql("GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO helper")
    postgres.url = f"{url}{'&' if '?' in url else '?'}options=-c%20role%3Dhelper"
    try:
        assert "run this again" in list(rotation(postgres, new))[-1]
    finally:
        postgres.url = url
        postgres.sql("DROP OWNED BY helper")
        postgres.sql("DROP ROLE helper")
    assert left_of(postgres, old)
    assert "is erased" in list(rotation(postgres, new))[-1] and left_of(postgres, old) == []


def test_an_sqlite_ledger_without_room_for_a_copy_says_so_and_is_finished_later(tmp_path, monkeypatch):
    place = Place("sqlite", tmp_path)
    place.session().close()
    old, new = wrapped(place), tmp_path / "new.key"
    MasterKey.create(new)
    run = SqliteStore._run

    def full(store, sql, parameters=()):
        if sql == "VACUUM":
            raise cp.errors.LedgerFailed("the disk is full")
        return run(store, sql, parameters)

    monkeypatch.setattr(SqliteStore, "_run", full)
    assert "room for a copy" in list(rotation(place, new))[-1]
    monkeypatch.undo()
    assert "is erased" in list(rotation(place, new))[-1] and left_of(place, old) == []

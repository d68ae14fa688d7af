"""PostgreSQL as a server that many use and somebody else sets up: who waits, what is durable, what is said."""

import threading
from contextlib import closing
from urllib.parse import urlsplit

import msgspec
import psycopg
import pytest
from tests.engines import engines
from tests.ledger.places import fresh_database

import counterpoint as cp
from counterpoint.errors import LedgerBusy, LedgerError, LedgerFailed
from counterpoint.ledger.admin import listed
from counterpoint.ledger.durable import DurableLedger
from counterpoint.ledger.location import looked_at
from counterpoint.ledger.open import sessions_at
from counterpoint.ledger.sealing import MasterKey
from counterpoint.ledger.store.postgres import PostgresStore
from counterpoint.ledger.witness import WitnessFile


def impatient(place, wait=0.05):
    """A session that does not wait long for others."""
    store = PostgresStore(place.url, wait=wait)
    ledger = DurableLedger(store, "session", MasterKey.from_file(place.key), WitnessFile(place.home / "witness"))
    return cp.open(ledger, source=place.source)


def test_an_account_that_another_process_holds_is_busy_and_nothing_worse(postgres):
    """Nothing is known to have gone wrong, so nothing has to be opened again."""
    with postgres.session() as s:
        s.launch(cp.Laplace("0.01", asks=9))
    with impatient(postgres) as s, psycopg.connect(postgres.url) as other:
        other.execute("SET idle_in_transaction_session_timeout = '20s'")  # or whoever waits for ever would
        other.execute("SELECT * FROM counterpoint_session FOR UPDATE")
        for deed in (lambda: s.handles[0].ask("apples", id="q"), lambda: s.launch(cp.Laplace("0.1"), id="M")):
            for _ in range(2):
                with pytest.raises(LedgerBusy, match="too long"):
                    deed()
        assert s.loss == cp.PureDP("0.01"), "reading waits for nobody"
        other.rollback()
        assert isinstance(s.handles[0].ask("apples", id="q"), int)
        assert s.launch(cp.Laplace("0.1"), id="M").path == (1,) and s.loss == cp.PureDP("0.11")
        s._engine.ledger.verify()


def test_one_process_at_a_time_makes_the_tables(postgres):
    """Two that found none would both make them."""
    with psycopg.connect(postgres.url) as other:
        other.execute("SET idle_in_transaction_session_timeout = '20s'")
        other.execute("SELECT pg_advisory_xact_lock(%s)", (0x43506F69,))
        with pytest.raises(LedgerBusy):
            PostgresStore(postgres.url, wait=0.05)
    PostgresStore(postgres.url, wait=5).close()


def test_a_commit_is_on_disk_whatever_the_server_is_used_to():
    url = fresh_database()
    name = url.partition("?")[0].rpartition("/")[2]
    engines.execute(f"ALTER DATABASE {name} SET synchronous_commit = off")
    with closing(PostgresStore(url)) as store:
        assert store._run("SHOW synchronous_commit") == [("on",)]


def test_processes_wait_for_each_other_whatever_isolation_the_server_is_used_to(postgres):
    """Where a transaction sees the moment of its beginning, whoever had to wait would have looked too early."""
    postgres.session(cp.PureDP("0.25")).close()
    name = postgres.url.partition("?")[0].rpartition("/")[2]
    engines.execute(f"ALTER DATABASE {name} SET default_transaction_isolation = 'repeatable read'")
    with postgres.reopened() as one, postgres.reopened() as two:
        results = []

        def work(s):
            for _ in range(8):
                try:
                    results.append(s.launch(cp.Laplace("0.02")).path)
                except cp.CounterpointError as error:
                    results.append(type(error).__name__)

        threads = [threading.Thread(target=work, args=(s,)) for s in (one, two)]
        [thread.start() for thread in threads], [thread.join() for thread in threads]
        assert results.count("BudgetExceeded") == 4 and len(set(results)) == 13
        two._engine.ledger.verify()


def test_a_server_that_would_lose_commits_is_refused(postgres):
    """With fsync off a power cut loses what was answered, whatever this connection asks for."""
    engines.execute("ALTER SYSTEM SET fsync = off", "SELECT pg_reload_conf()")
    try:
        with pytest.raises(LedgerError, match="fsync off"):
            for _ in range(200):  # until the server has read its settings again
                PostgresStore(postgres.url).close()
    finally:
        engines.execute("ALTER SYSTEM RESET fsync", "SELECT pg_reload_conf()")


def test_a_database_without_a_ledger_is_left_as_it_is(postgres):
    with pytest.raises(LedgerError, match="no ledger"):
        cp.open(postgres.durable, source=postgres.source)
    assert postgres.sql("SELECT to_regclass('counterpoint_schema')") == [(None,)]


def test_a_look_needs_no_more_than_to_read_the_tables(postgres):
    """An auditor's role may read and nothing else, and the server refuses whatever would write."""
    with postgres.session() as s:
        s.launch(cp.Laplace("0.01", asks=9)).ask("apples")
    reader = f"reader_{urlsplit(postgres.url).path[1:]}"
    postgres.sql(f"CREATE ROLE {reader} LOGIN")
    postgres.sql(f"GRANT SELECT ON ALL TABLES IN SCHEMA public TO {reader}")
    auditor = msgspec.structs.replace(postgres.durable, place=postgres.url.replace("//postgres:", f"//{reader}:"))
    assert len(list(sessions_at(auditor))) == len(list(listed(auditor))) == 1
    with looked_at(postgres.durable) as store, pytest.raises(LedgerFailed, match="it is read-only"):
        store._run("DELETE FROM counterpoint_entry")


def test_databases_that_complain_are_not_quoted(lasting):
    """A server's words may hold what it was given: a sealed blob here, and what not elsewhere."""
    with lasting.session() as s:
        store = s._engine.ledger._store
        with pytest.raises(LedgerError) as caught:
            store._run("SELECT 'canary' FROM canary_table WHERE canary = ?", ("canary",))
        assert "canary" not in str(caught.value) and caught.value.__suppress_context__


def test_a_full_server_says_so(postgres):
    with closing(PostgresStore(postgres.url)) as store, pytest.raises(LedgerFailed, match="the disk is full"):
        store._refuse(psycopg.errors.DiskFull("canary"))

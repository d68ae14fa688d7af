"""Workers that are killed or freeze, and a stop that always ends: over PostgreSQL, with real processes and signals."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psycopg
import pytest
from tests.service.postmaster import own_server
from tests.service.process import Served
from tests.service.repeating import patient
from tests.service.test_restarts import CONFIG, PEOPLE

from counterpoint.errors import InvalidParameter, LedgerFailed, ServiceFailed
from counterpoint.ledger.sealing import MasterKey
from counterpoint.ledger.store import postgres
from counterpoint.ledger.store.postgres import PostgresStore, _keepalives
from counterpoint.service import supervisor as supervising
from counterpoint.service.supervisor import Supervisor, in_a_fork

ASK = {"request": {"request": "count"}, "epsilon": 0.001}
REPLACED, STOPPED, FREED = 5, 10, 10
"""Promised seconds: until a killed worker has a successor, a stopped service has ended, and a frozen worker's lock is
free."""
BUSY = 3
"""How much longer each may take here, where a machine of two cores may run eight other things."""


@pytest.fixture(scope="module")
def database():
    with own_server() as (url, _):
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(PEOPLE)
        yield url


@pytest.fixture(scope="module")
def folder(tmp_path_factory, database):
    """The keys and the configuration of a service."""
    made = tmp_path_factory.mktemp("service")
    for name in ("the.key", "data.key"):
        MasterKey.create(made / name)
    (made / "counterpoint.toml").write_text(CONFIG.format(url=database))
    return made


def served(folder):
    return Served(folder, "--config", "counterpoint.toml", "--workers", 2)


def children(process_id):
    """The worker processes of a supervisor."""
    return [int(one) for one in Path(f"/proc/{process_id}/task/{process_id}/children").read_text().split()]


def within(seconds, condition, what):
    """Wait for a condition until `BUSY` times the promised seconds have passed."""
    end = time.monotonic() + BUSY * seconds
    while not condition():
        assert time.monotonic() < end, f"not within {BUSY} times {seconds} seconds: {what}"
        time.sleep(0.1)


def test_killed_workers_are_replaced_and_a_frozen_one_does_not_keep_the_service_from_stopping(folder):
    with served(folder) as service, service.client() as client:
        workers = children(service.process.pid)
        assert len(workers) == 2

        def ask(id):
            return patient(client, service.key, "POST", "/v1/sessions/people/questions", json=ASK, id=id).json()[
                "value"
            ]

        first = ask("first")
        for worker in workers:
            os.kill(worker, signal.SIGKILL)
        within(
            REPLACED,
            lambda: len(set(children(service.process.pid)) - set(workers)) == 2,
            "two others take their places",
        )
        assert ask("first") == first
        os.kill(children(service.process.pid)[0], signal.SIGSTOP)
        frozen = children(service.process.pid)
        service.process.send_signal(signal.SIGTERM)
        assert service.process.wait(BUSY * STOPPED) == 0
        assert not any(Path(f"/proc/{one}").exists() for one in frozen), "nothing is left"
        assert service.log.count('"event": "worker ended"') == 2


def test_what_ends_a_worker_or_its_transaction_leaves_time_within_the_promise():
    assert supervising.STOPPING < supervising.KILLED_AFTER < STOPPED
    assert max(postgres._FROZEN, postgres._BOUND) <= FREED


def test_workers_stop_when_their_supervisor_is_killed(folder):
    with served(folder) as service, service.client("none") as client:
        assert patient(client, "none", "GET", "/health").status_code == 200
        workers = children(service.process.pid)
        service.process.kill()
        service.process.wait()
        within(STOPPED, lambda: not any(Path(f"/proc/{one}").exists() for one in workers), "they end by themselves")


def test_workers_that_cannot_serve_end_the_service_with_the_reason(monkeypatch):
    monkeypatch.setattr(supervising, "_PAUSES", (0.0, 0.0))
    with pytest.raises(ServiceFailed, match="before they can serve"):
        Supervisor(lambda _: os._exit(3), 2).run()


def test_a_worker_that_gives_no_sign_of_life_is_replaced(monkeypatch, tmp_path):
    monkeypatch.setattr(supervising, "SILENT", 0.2)

    def hang(beating):
        beating.send_bytes(b".")
        (tmp_path / str(os.getpid())).touch()
        if len(list(tmp_path.iterdir())) == 3:
            os.kill(os.getppid(), signal.SIGTERM)
        time.sleep(600)

    Supervisor(hang, 1).run()
    assert len(list(tmp_path.iterdir())) == 3


def test_what_a_fork_prepares_comes_back_and_so_does_its_error():
    def refuse():
        raise InvalidParameter("there is no such file")

    assert in_a_fork(lambda: ("a key", "names")) == ("a key", "names")
    with pytest.raises(InvalidParameter, match="there is no such file"):
        in_a_fork(refuse)
    with pytest.raises(ServiceFailed, match="could not be prepared"):
        in_a_fork(lambda: os._exit(1))


FREEZES = """
import sys, time
from counterpoint.ledger.store import postgres
postgres._FROZEN = 1.0
store = postgres.PostgresStore(sys.argv[1])
store._run(store._BEGIN)
store._run(store._ALONE)
print("holds the lock", flush=True)
time.sleep(600)
"""


def test_a_process_that_freezes_in_a_transaction_keeps_no_other_one_waiting(database):
    """Without the timeout, the second one waits for as long as it would for any lock, and is refused."""
    frozen = subprocess.Popen([sys.executable, "-c", FREEZES, database], stdout=subprocess.PIPE, text=True)
    try:
        assert frozen.stdout.readline() == "holds the lock\n"
        frozen.send_signal(signal.SIGSTOP)
        PostgresStore(database, wait=FREED).close()
    finally:
        frozen.kill()
        frozen.wait()
        frozen.stdout.close()


FREEZES_WITHIN_A_ROUND_TRIP = """
import sys, time
from counterpoint.ledger.store import postgres
postgres._BOUND = 1.0
store = postgres.PostgresStore(sys.argv[1])
with store._connection.pipeline():
    for statement in (store._BEGIN, store._ALONE, store._BOUNDED):
        store._connection.execute(statement)
    print("holds the lock", flush=True)
    time.sleep(600)
"""


def test_one_that_freezes_within_a_round_trip_is_not_idle_and_keeps_no_other_one_waiting_either(database):
    with psycopg.connect(database) as connection:
        if connection.info.server_version < 170_000:
            pytest.skip("this server has no transaction_timeout")
    frozen = subprocess.Popen(
        [sys.executable, "-c", FREEZES_WITHIN_A_ROUND_TRIP, database], stdout=subprocess.PIPE, text=True
    )
    try:
        assert frozen.stdout.readline() == "holds the lock\n"
        frozen.send_signal(signal.SIGSTOP)
        PostgresStore(database, wait=FREED).close()
    finally:
        frozen.kill()
        frozen.wait()
        frozen.stdout.close()


def test_a_connection_whose_transaction_was_ended_by_the_server_is_noticed_and_replaced(database, monkeypatch):
    monkeypatch.setattr(postgres, "_FROZEN", 0.2)
    store = PostgresStore(database)
    store._run(store._BEGIN)
    time.sleep(1)
    with pytest.raises(LedgerFailed):
        store._run("SELECT 1")
    assert not store.is_open
    store.close()


def test_a_long_reading_is_not_ended(database, monkeypatch):
    monkeypatch.setattr(postgres, "_FROZEN", 0.2)
    store = PostgresStore(database)
    store.begin_reading()
    time.sleep(1)
    assert store._run("SELECT 1") == [(1,)]
    store.rollback()
    store.close()


def test_a_server_that_is_gone_is_noticed_over_tcp_and_the_url_comes_first():
    said = _keepalives()
    assert int(said["tcp_user_timeout"]) <= 10_000
    least = int(said["keepalives_idle"]) + int(said["keepalives_interval"]) * int(said["keepalives_count"])
    assert least <= 15

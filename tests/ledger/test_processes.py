"""Several processes and one SQLite file, and processes that fork while a ledger is open."""

import contextlib
import fcntl
import os
import signal
import subprocess
import sys
import threading
from contextlib import closing

import apsw
import pytest
from tests.ledger.crashes import in_child
from tests.ledger.places import DATA, Place
from tests.session.numbers_source import Numbers

import counterpoint as cp
from counterpoint.errors import LedgerBusy, LedgerError, LedgerTampered, UnknownSchema
from counterpoint.ledger import location as places
from counterpoint.ledger.store import tables as schema
from counterpoint.ledger.store.sqlite import SqliteStore


def test_a_damaged_file_is_a_clear_error(tmp_path):
    place = Place("sqlite", tmp_path)
    with place.session() as s:
        s.launch(cp.Laplace("0.1"))
    data = bytearray((tmp_path / "ledger.db").read_bytes())
    data[4096:] = os.urandom(len(data) - 4096)
    (tmp_path / "ledger.db").write_bytes(data)
    with pytest.raises(LedgerTampered, match="damaged"):
        place.reopened()


@pytest.mark.parametrize("version", ["3.50.0", "3.54.1"])
def test_if_locks_of_files_do_nothing_sqlites_own_keeps_a_second_process_out(tmp_path, monkeypatch, version):
    """From the start on, in either journal mode: before the first has written anything, too."""
    monkeypatch.setattr(apsw, "sqlite_lib_version", lambda: version)
    monkeypatch.setattr(fcntl, "flock", lambda file, kind: None)
    place = Place("sqlite", tmp_path)
    with place.session() as s:
        s.launch(cp.Laplace("0.01", asks=9))

    def work(say):
        try:
            SqliteStore(place.url, wait=0.05)
        except LedgerBusy as error:
            say("busy", "network" in str(error))

    with closing(place.ledger()):
        assert in_child(work) == (["busy True"], True)
    with place.reopened() as s:
        assert isinstance(s.handles[0].ask("apples"), int)
        assert in_child(work) == (["busy True"], True) and isinstance(s.handles[0].ask("apples"), int)


def test_a_store_that_cannot_be_set_up_lets_go_of_its_file(tmp_path):
    place = Place("sqlite", tmp_path)
    place.session().close()
    place.sql("PRAGMA user_version = 99")
    with pytest.raises(UnknownSchema):
        SqliteStore(place.url)
    place.sql(f"PRAGMA user_version = {schema.VERSION}")

    def work(say):
        SqliteStore(place.url, wait=0.05).close()
        say("open")

    assert in_child(work) == (["open"], True)


def test_a_session_that_cannot_be_had_leaves_its_ledger_to_others(tmp_path):
    file = tmp_path / "ledger.db"
    cp.Session(Numbers(DATA), cp.PureDP(1), ledger=file).close()
    for deed in (
        lambda: cp.Session(Numbers(DATA), cp.PureDP(2), ledger=file),
        lambda: cp.open(file, source=cp.Stream(bound=1)),
        lambda: cp.open(file, "another", source=Numbers(DATA)),
    ):
        with pytest.raises(LedgerError):
            deed()

        def work(say):
            SqliteStore(file, wait=0.05).close()
            say("open")

        assert in_child(work) == (["open"], True)


def test_a_process_that_is_forked_while_a_thread_is_at_the_desk_does_not_wait_for_it(lasting):
    with lasting.session() as s:
        held, done = threading.Event(), threading.Event()

        def sit():
            with s._engine.ledger._store.lock:
                held.set()
                done.wait(30)

        thread = threading.Thread(target=sit)
        thread.start()
        assert held.wait(30)

        def work(say):
            signal.alarm(20)  # ends whoever waits for a thread that there is not
            for deed in (lambda: s.loss, lambda: s.launch(cp.Laplace("0.1"))):
                with contextlib.suppress(LedgerError):
                    deed()
                say("refused")

        assert in_child(work) == (["refused", "refused"], True)
        done.set()
        thread.join(30)


def test_a_process_that_is_forked_while_a_thread_opens_a_ledger_opens_another(tmp_path):
    """The thread waits for its turn with a lock that the child would wait for, too; nor is what is open its own."""
    (tmp_path / "other").mkdir()
    mine, other = Place("sqlite", tmp_path), Place("sqlite", tmp_path / "other")
    with mine.session(), places._guard:

        def work(say):
            signal.alarm(20)  # ends whoever waits for a thread that there is not
            other.session().close()
            try:
                mine.session()
            except LedgerBusy:
                say("busy")

        assert in_child(work) == (["busy"], True)


FORKING = """
import os, signal, sys
import counterpoint as cp
from tests.ledger.places import Place

kind, home, url, closes = sys.argv[1:]
s = Place(kind, home, url).session()
noisy = s.launch(cp.Laplace("0.01", asks=9))
noisy.ask("apples")
if os.fork() == 0:
    if closes == "True":
        s.close()
    sys.exit()
os.wait()
print(noisy.ask("apples", id="q"), flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize("closes", [False, True])
def test_a_forked_process_that_comes_to_its_end_takes_nothing_from_its_parent(lasting, closes):
    """By closing what it has inherited it would take the parent's WAL or connection away, and with it what is answered
    from then on."""
    words = [sys.executable, "-c", FORKING, lasting.kind, lasting.home, lasting.url, closes]
    path = os.pathsep.join(filter(None, sys.path))
    run = subprocess.run(
        list(map(str, words)), env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, check=False
    )
    assert run.returncode == -signal.SIGKILL, run.stderr
    with lasting.reopened() as s:
        assert s.handles[0].ask("apples", id="q") == int(run.stdout) and s._engine.ledger.read((0,)).version == 2
        s._engine.ledger.verify()

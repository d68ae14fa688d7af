"""One process at a time has an SQLite ledger, whatever is done with its files meanwhile."""

import errno
import fcntl
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from contextlib import closing, suppress

import pytest
from tests.ledger.crashes import in_child
from tests.ledger.places import Place

import counterpoint as cp
from counterpoint.ledger.store import files as locking
from counterpoint.ledger.store.files import LedgerLock
from counterpoint.ledger.store.sqlite import SqliteStore


@pytest.fixture(params=["the database, too", "the lock file only"])
def place(request, tmp_path, monkeypatch):
    """On Linux the database is locked, too; elsewhere there is the lock file, and SQLite's own lock."""
    if request.param == "the lock file only":
        monkeypatch.setattr(locking, "_LOCK_DATABASE", False)
    elif not locking._LOCK_DATABASE:
        pytest.skip("the database itself is locked on Linux only")
    return Place("sqlite", tmp_path / "home")


@pytest.fixture(autouse=True)
def home(tmp_path):
    (tmp_path / "home").mkdir()


def copied(place):
    """A copy of the whole folder by a thread, as a backup makes it: it closes descriptors of every file there."""
    target = place.home.parent / f"copy {time.monotonic_ns()}"

    def copy():
        with suppress(shutil.Error):  # a file that is gone by the time that it is its turn
            shutil.copytree(place.home, target)

    thread = threading.Thread(target=copy)
    thread.start()
    thread.join()
    return target


def launched(session, times):
    """How many launches of a tenth were admitted."""
    admitted = 0
    for _ in range(times):
        with suppress(cp.BudgetExceeded):
            session.launch(cp.Laplace("0.1"))
            admitted += 1
    return admitted


ELSEWHERE = """
import sys
import counterpoint as cp
from counterpoint.ledger.store import files as locking
from tests.ledger.places import Place
from tests.ledger.test_locks import launched

home, times, locking._LOCK_DATABASE = sys.argv[1], int(sys.argv[2]), sys.argv[3] == "True"
try:
    with Place("sqlite", home).session() as s:
        print(launched(s, times))
except cp.errors.LedgerError as error:
    print(type(error).__name__)
"""
PATH = os.pathsep.join(filter(None, sys.path))


def launches_elsewhere(place, times):
    """What another process gets; not a fork, which has inherited what SQLite knows of its parent's locks."""
    words = [sys.executable, "-c", ELSEWHERE, place.home, times, locking._LOCK_DATABASE]
    environment = {**os.environ, "PYTHONPATH": PATH}
    run = subprocess.run(list(map(str, words)), env=environment, capture_output=True, text=True, check=False)
    return run.stdout.split() or [run.stderr]


def test_a_copy_of_the_open_folder_lets_nobody_in(place):
    """Seventeen launches of a tenth, by two processes, in a budget of 1: ten are admitted."""
    with place.session() as s:
        assert launched(s, 3) == 3
        copied(place)
        assert launches_elsewhere(place, 7) == ["LedgerBusy"]
        assert launched(s, 5) == 5
        copied(place)
        assert launches_elsewhere(place, 7) == ["LedgerBusy"]
        assert launched(s, 9) == 2
        s._engine.ledger.verify()
    assert launches_elsewhere(place, 7) == ["0"]


def test_copies_that_are_made_all_the_time_let_nobody_in(place):
    done = threading.Event()

    def copy():
        while not done.is_set():
            shutil.rmtree(copied(place))

    thread = threading.Thread(target=copy)
    thread.start()
    try:
        with place.session() as s:
            found = []
            for _ in range(3):
                found.append(launched(s, 2))
                found += launches_elsewhere(place, 2)
            assert found == [2, "LedgerBusy"] * 3
            s._engine.ledger.verify()
    finally:
        done.set()
        thread.join()


def test_a_lock_file_that_is_deleted_lets_nobody_in(place):
    with place.session() as s:
        assert launched(s, 3) == 3
        os.unlink(f"{place.url}.lock")
        assert launches_elsewhere(place, 7) == ["LedgerBusy"]
        if locking._LOCK_DATABASE:
            assert launched(s, 17) == 7, "the lock that counts is that of the database"
        else:
            with pytest.raises(cp.errors.LedgerFailed, match="deleted, moved or replaced"):
                launched(s, 1)


@pytest.mark.skipif(not locking._LOCK_DATABASE, reason="the database itself is locked on Linux only")
def test_neither_does_one_that_is_deleted_after_a_copy_was_made(tmp_path):
    """The copy has dropped SQLite's own lock."""
    place = Place("sqlite", tmp_path / "home")
    with place.session() as s:
        assert launched(s, 3) == 3
        copied(place)
        os.unlink(f"{place.url}.lock")
        assert launches_elsewhere(place, 7) == ["LedgerBusy"]
        assert launched(s, 17) == 7


@pytest.mark.parametrize("deed", ["delete", "replace", "move"])
def test_a_database_that_is_not_the_one_at_its_path_any_more_is_written_no_more(place, deed):
    """Another process could make one of the same name, with a budget of its own."""
    with place.session() as s:
        assert launched(s, 1) == 1
        if deed == "delete":
            os.unlink(place.url)
        elif deed == "replace":
            shutil.copy(place.url, f"{place.url}.copy")
            os.replace(f"{place.url}.copy", place.url)
        else:
            os.rename(place.url, f"{place.url}.moved")
        for _ in range(2):
            with pytest.raises(cp.errors.LedgerFailed):
                launched(s, 1)


def test_a_lock_that_is_closed_behind_our_back_is_missed(place):
    """As a program does that closes all descriptors to become a daemon."""
    with place.session() as s:
        file = s._engine.ledger._store._lock._locks[-1]._file
        another = os.open(os.devnull, os.O_RDONLY)
        os.dup2(another, file)
        os.close(another)
        with pytest.raises(cp.errors.LedgerFailed):
            launched(s, 1)


def test_a_second_ledger_by_another_name_for_the_file_is_busy_in_the_same_process_too(tmp_path):
    place = Place("sqlite", tmp_path / "home")
    with place.session():
        os.symlink(place.url, tmp_path / "link.db")
        with pytest.raises(cp.errors.LedgerBusy):
            SqliteStore(tmp_path / "link.db", wait=0)


def test_where_there_is_no_such_lock_no_ledger_is_opened(tmp_path, monkeypatch):
    place = Place("sqlite", tmp_path / "home")
    monkeypatch.delattr(fcntl, "flock")
    with pytest.raises(cp.errors.LedgerError, match=r"no flock.*PostgreSQL"):
        place.session()
    monkeypatch.setattr(locking, "fcntl", None)
    with pytest.raises(cp.errors.LedgerError, match=r"no flock.*PostgreSQL"):
        place.session()


def test_a_lock_that_cannot_be_had_for_another_reason_says_which(tmp_path, monkeypatch):
    def flock(file, kind):
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    place = Place("sqlite", tmp_path / "home")
    monkeypatch.setattr(fcntl, "flock", flock)
    with pytest.raises(cp.errors.LedgerFailed, match=os.strerror(errno.ENOLCK)):
        place.session()


def test_the_lock_file_alone_keeps_a_second_process_out(tmp_path):
    """Before the database is touched: two that are inside it might wait for each other for ever."""
    lock = LedgerLock(str(tmp_path / "ledger.db"), 0)

    def work(say):
        try:
            SqliteStore(tmp_path / "ledger.db", wait=0.05)
        except cp.errors.LedgerBusy:
            say("busy", (tmp_path / "ledger.db").stat().st_size)

    assert in_child(work) == (["busy 0"], True)
    lock.release()
    SqliteStore(tmp_path / "ledger.db", wait=0.05).close()


def test_a_lock_file_that_is_replaced_while_it_is_waited_for_is_not_taken_for_the_lock(tmp_path, monkeypatch):
    opened, take = threading.Event(), locking._lock
    monkeypatch.setattr(locking, "_lock", lambda *given: (opened.set(), take(*given)))
    path = str(tmp_path / "ledger.db")
    first = LedgerLock(path, 0)
    os.unlink(f"{path}.lock")
    second = []
    thread = threading.Thread(target=lambda: second.append(LedgerLock(path, 30)))
    waiting = os.open(f"{path}.lock", os.O_CREAT | os.O_RDWR)
    fcntl.flock(waiting, fcntl.LOCK_EX)
    opened.clear()
    thread.start()
    assert opened.wait(30)
    os.unlink(f"{path}.lock")
    os.close(waiting)
    first.release()
    thread.join()
    assert second[0].check() is None and second[0]._locks[0].is_held
    second[0].release()


LIVING_ON = """
import os, signal, sys, time
from tests.ledger.places import Place

s = Place("sqlite", sys.argv[1]).session()
if os.fork() == 0:
    time.sleep(60)
    os._exit(0)
print("forked", flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_child_that_outlives_its_parent_does_not_keep_the_lock(tmp_path):
    home = tmp_path / "home"
    with subprocess.Popen(
        [sys.executable, "-c", LIVING_ON, home],
        env={**os.environ, "PYTHONPATH": PATH},
        stdout=subprocess.PIPE,
        start_new_session=True,
    ) as parent:
        assert parent.stdout.readline() == b"forked\n"
        assert parent.wait() == -signal.SIGKILL
        try:
            with closing(Place("sqlite", home).ledger()) as ledger:
                assert ledger.read(()) is not None
        finally:
            os.killpg(parent.pid, signal.SIGKILL)


def test_a_program_that_is_started_does_not_get_the_lock(tmp_path):
    place = Place("sqlite", tmp_path / "home")
    s = place.session()
    with subprocess.Popen(["sleep", "60"], close_fds=False) as other:
        s.close()
        place.session().close()
        other.kill()


def test_all_files_of_a_ledger_are_its_owners_alone(tmp_path):
    """Whatever the mask, and whatever rights they had before."""
    place = Place("sqlite", tmp_path / "home")
    before = os.umask(0)
    try:
        with place.session() as s:
            launched(s, 1)
            found = {path.name: path.stat().st_mode & 0o777 for path in place.home.iterdir()}
        assert {"ledger.db", "ledger.db.lock", "ledger.db-wal"} <= set(found) and set(found.values()) == {0o600}
        os.chmod(place.url, 0o644)
        (place.home / "ledger.db-wal").touch(0o644)
        with place.reopened() as s:
            launched(s, 1)
            assert {os.stat(f"{place.url}{ending}").st_mode & 0o777 for ending in ("", "-wal")} == {0o600}
        os.umask(0o777)
        SqliteStore(tmp_path / "other.db").close()
        assert (tmp_path / "other.db").stat().st_mode & 0o777 == 0o600
    finally:
        os.umask(before)

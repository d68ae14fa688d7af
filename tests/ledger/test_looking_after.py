"""What a custodian does with a ledger besides asking: verifying copies, changing keys, waiting, linking."""

import os
import pathlib
import shutil
import signal
import tempfile
import threading
from contextlib import closing, suppress

import psycopg
import pytest
from tests.ledger.crashes import in_child
from tests.ledger.places import Place
from typer.testing import CliRunner

import counterpoint as cp
from counterpoint.cli import app
from counterpoint.encoding import decode
from counterpoint.ledger import admin, verification
from counterpoint.ledger import open as opening
from counterpoint.ledger.sealing import MasterKey
from counterpoint.ledger.state import SessionState
from counterpoint.ledger.store import snapshot, sqlite
from counterpoint.ledger.store.postgres import PostgresStore

SECRET = bytes(range(100, 200)) * 100


def used(place, *names):
    """Sessions with a launch and an answer each, closed again: the answers."""
    answers = {}
    for name in names:
        with place.session(name=name) as s:
            answers[name] = s.launch(cp.Laplace("0.1", asks=3), id="L").ask("apples", id="q")
    return answers


def contents(folder):
    """All files with their bytes and when each was written."""
    return {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in pathlib.Path(folder).iterdir()}


def copied(place, folder):
    """A copy of the ledger's files, and how it is verified."""
    shutil.copytree(place.home, folder)
    return folder, cp.Durable(folder / "ledger.db", witness=folder / "witness")


def test_verifying_writes_nothing(tmp_path):
    place = Place("sqlite", tmp_path)
    used(place, "people", "visits")
    folder, copy = copied(place, tmp_path / "copy")
    os.unlink(folder / "ledger.db.lock")
    before = contents(folder)
    assert len(list(opening.sessions_at(copy))) == 2 and contents(folder) == before


def test_verifying_what_a_crash_left_writes_nothing_and_misses_no_commit(tmp_path):
    """The last commits are in the WAL alone."""
    place = Place("sqlite", tmp_path)

    def work(say):
        s = place.session()
        noisy = s.launch(cp.Laplace("0.1", asks=3), id="L")
        say(noisy.ask("apples", id="q"))
        os.kill(os.getpid(), signal.SIGKILL)

    assert in_child(work)[1] is False
    folder, copy = copied(place, tmp_path / "copy")
    assert (folder / "ledger.db-wal").stat().st_size > 0
    before = contents(folder)
    (said,) = opening.sessions_at(copy)
    assert "8 entries hold; 1 launched, PureDP(0.1) lost" in said and contents(folder) == before


def test_a_copy_that_may_only_be_read_is_verified():
    folder = pathlib.Path(tempfile.mkdtemp())
    place = Place("sqlite", folder)
    used(place, "people")
    for path in folder.iterdir():
        path.chmod(0o444)
    folder.chmod(0o555)
    copy = cp.Durable(folder / "ledger.db", witness=folder / "witness")
    (before,) = opening.sessions_at(copy)  # and everything is imported that a child without rights might not find

    def work(say):
        if os.getuid() == 0:
            os.setuid(65534)
        with suppress(PermissionError):
            (folder / "may be written").touch()
            say("may be written")
        say(*opening.sessions_at(copy))

    assert in_child(work) == ([before], True)
    folder.chmod(0o755)
    shutil.rmtree(folder)


def test_a_ledger_that_is_open_elsewhere_is_read_as_of_its_last_commit(tmp_path):
    """Listed, shown, exported and verified in a copy, while its owner goes on: nothing beside it is written."""
    place = Place("sqlite", tmp_path)
    read = cp.Durable(place.url, witness=place.home / "witness", wait=0)
    with place.session() as s:
        noisy = s.launch(cp.Laplace("0.1", asks=3), id="L")
        for number in range(3):
            noisy.ask("apples", id=str(number))

        def work(say):
            before = contents(place.home)
            for line in (*opening.sessions_at(read), *admin.listed(read), next(iter(admin.shown(read, "session")))):
                say(line)
            say(contents(place.home) == before)

        (verified, listed, rule, same), ended = in_child(work)
        assert "12 entries hold; 1 launched, PureDP(0.1) lost" in verified and listed == "session: 12 entries"
        assert "PureDP(1)" in rule and same == "True" and ended
        s.launch(cp.Laplace("0.1"))


def test_a_copy_of_an_open_ledger_is_of_one_moment_whatever_is_written_meanwhile(tmp_path, monkeypatch):
    """A checkpoint while the database is copied changes only pages of the WAL; a WAL that begins anew is noticed."""
    place, copies = Place("sqlite", tmp_path), []
    with place.session() as s:
        store, copyfile = s._engine.ledger._store, shutil.copyfile

        def meanwhile(source, target):
            copyfile(source, target)
            if str(source).endswith(".db"):
                copies.append(source)
                s.launch(cp.Laplace("0.01"))
                if len(copies) < 3:
                    store._run("PRAGMA wal_checkpoint(RESTART)")
                    s.launch(cp.Laplace("0.01"))
                else:
                    store._run("PRAGMA wal_checkpoint(PASSIVE)")

        monkeypatch.setattr(shutil, "copyfile", meanwhile)
        monkeypatch.setattr(snapshot, "at_rest", busy_elsewhere)
        with snapshot.read_only(str(place.url), 0) as store_then:
            launched = decode(store_then.row("session", "[]").node, SessionState).launched
        assert len(copies) == 3 and launched == 5, "the first two copies were begun again"


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_asks_go_on_while_a_record_is_verified(tmp_path, monkeypatch, kind):
    """What the witness sees meanwhile is ahead of the snapshot that is verified, and no sign of an old copy."""
    with Place(kind, tmp_path).session() as s:
        ledger, noisy, check, answered = s._engine.ledger, s.launch(cp.Laplace("0.1", asks=3)), verification.verify, []

        def meanwhile(store, *given):
            assert store is not ledger._store, "the connection of requests is not used"
            asking = threading.Thread(target=lambda: answered.append(noisy.ask("apples")))
            asking.start()
            asking.join(60)
            return check(store, *given)

        monkeypatch.setattr(verification, "verify", meanwhile)
        ledger.verify()
        assert len(answered) == 1
        monkeypatch.undo()
        ledger.verify()


def test_a_snapshot_holds_the_lock_for_a_part_at_a_time(tmp_path, monkeypatch):
    """So many pages are copied, and then others have the connection for a moment."""
    monkeypatch.setattr(sqlite, "_PAGES", 3)
    waits = []
    monkeypatch.setattr(sqlite.time, "sleep", waits.append)
    with Place("sqlite", tmp_path).session() as s:
        s.launch(cp.Laplace("0.1", asks=3)).ask("apples")
        store = s._engine.ledger._store
        with store.snapshot() as copy:
            assert copy.header("session").head == store.header("session").head
            pages = store._run("PRAGMA page_count")[0][0]
            folder = os.path.dirname(copy.path)
    assert len(waits) >= pages // 3
    assert not os.path.exists(folder)


def busy_elsewhere(path, wait):
    raise cp.errors.LedgerBusy("another process has it")


def test_a_ledger_in_use_whose_pages_change_in_place_is_not_copied(tmp_path, monkeypatch):
    monkeypatch.setattr(sqlite, "journal_mode", lambda library: "truncate")
    place = Place("sqlite", tmp_path)
    with place.session():
        monkeypatch.setattr(snapshot, "at_rest", busy_elsewhere)
        with pytest.raises(cp.errors.LedgerBusy), snapshot.read_only(str(place.url), 0):
            pass


def rotated(place, new, key, steps=None):
    """What a change of keys says; with `steps`, it is cut short after so many sessions."""
    place = cp.Durable(place.url, key_file=key, witness=place.home / "witness")
    rotation = opening.rotate(place, str(new))
    said = [next(rotation) for _ in range(steps)] if steps else list(rotation)
    rotation.close()
    return said


@pytest.mark.parametrize("back", [False, True])
def test_a_change_of_keys_that_was_interrupted_is_run_again_or_undone(lasting, back):
    answers = used(lasting, "people", "visits")
    new = lasting.home / "new.key"
    MasterKey.create(new)
    rotated(lasting, new, lasting.key, steps=2)
    said = rotated(lasting, lasting.key, new) if back else rotated(lasting, new, lasting.key)
    changed, before = ("people", "visits") if back else ("visits", "people")
    assert f"{changed}: sealed with the new key from now on" in said
    assert f"{before}: sealed with the new key already" in said
    lasting.key = lasting.key if back else new
    for name, answer in answers.items():
        with lasting.reopened(name=name) as s:
            assert s.handles[0].ask("apples", id="q") == answer and isinstance(s.handles[0].ask("apples"), int)
            s._engine.ledger.verify()


def test_no_key_is_changed_unless_every_session_can_be_opened(lasting):
    used(lasting, "people", "visits")
    new, another = lasting.home / "new.key", lasting.home / "another.key"
    MasterKey.create(new), MasterKey.create(another)
    rotated(lasting, new, lasting.key, steps=2)
    before = lasting.sql("SELECT wrapped FROM counterpoint_key ORDER BY name, number")
    for target, key in ((another, new), (another, lasting.key), (new, another)):
        with pytest.raises(cp.errors.Unsealable, match="nothing was changed"):
            rotated(lasting, target, key)
    assert lasting.sql("SELECT wrapped FROM counterpoint_key ORDER BY name, number") == before


def on_disk(place):
    """The bytes of the files that hold what is secret."""
    if place.kind == "sqlite":
        return pathlib.Path(place.url).read_bytes()
    place.sql("CHECKPOINT")
    ((home,),) = place.sql("SHOW data_directory")
    tables = ("counterpoint_key", "counterpoint_request", "counterpoint_row")
    files = [place.sql(f"SELECT pg_relation_filepath('{table}')")[0][0] for table in tables]
    return b"".join(pathlib.Path(home, file).read_bytes() for file in files)


def remain(place, secrets):
    """Whether there is a trace of these: eight bytes are found by accident in a megabyte with probability 1e-13."""
    disk = on_disk(place)
    return any(secret[start : start + 8] in disk for secret in secrets for start in range(20, len(secret) - 8))


def test_after_a_change_of_keys_neither_old_keys_nor_seeds_of_settled_requests_are_in_the_database(postgres):
    """The server keeps rows that were replaced until they are vacuumed."""
    seeds = []

    def look(point):
        if point == "committed":
            seeds.extend(bytes(seed) for (seed,) in ledger._store._run("SELECT seed FROM counterpoint_request") if seed)

    ledger = postgres.ledger(reached=look)
    with cp.Session(postgres.source, cp.PureDP(1), ledger=ledger) as s:
        s.launch(cp.Laplace("0.1", asks=3)).ask("apples")
    keys = [bytes(wrapped) for (wrapped,) in postgres.sql("SELECT wrapped FROM counterpoint_key")]
    assert seeds and keys and remain(postgres, seeds)
    new = postgres.home / "new.key"
    MasterKey.create(new)
    assert "is erased" in rotated(postgres, new, postgres.key)[-1]
    assert not remain(postgres, [*seeds, *keys])


def test_what_sqlite_deletes_is_overwritten_and_what_an_earlier_version_left_goes_with_the_old_key(tmp_path):
    place = Place("sqlite", tmp_path)
    used(place, "people")
    with closing(place.ledger("people")) as ledger:
        assert ledger._store._run("PRAGMA secure_delete") == [(1,)]
    place.sql("CREATE TABLE counterpoint_left (secret BLOB)")
    place.sql("INSERT INTO counterpoint_left VALUES (?)", SECRET)
    place.sql("DROP TABLE counterpoint_left")
    assert remain(place, [SECRET])
    new = place.home / "new.key"
    MasterKey.create(new)
    assert "is erased" in rotated(place, new, place.key)[-1] and not remain(place, [SECRET])


def test_who_may_not_vacuum_is_told_what_is_left_to_do(postgres):
    used(postgres, "people")
    postgres.sql("CREATE ROLE clerk")
    postgres.sql("GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO clerk")
    new, url = postgres.home / "new.key", postgres.url
    MasterKey.create(new)
    postgres.url = f"{url}{'&' if '?' in url else '?'}options=-c%20role%3Dclerk"
    try:
        said = rotated(postgres, new, postgres.key)
    finally:
        postgres.url = url
        postgres.sql("DROP OWNED BY clerk")
        postgres.sql("DROP ROLE clerk")
    assert said[1] == "people: sealed with the new key from now on" and "as the owner of its tables" in said[-1]


def test_the_command_says_all_of_that(lasting):
    used(lasting, "people")
    new = lasting.home / "new.key"
    MasterKey.create(new)
    words = ["ledger", "rotate", lasting.url, new, "--key-file", lasting.key, "--witness", lasting.home / "witness"]
    done = CliRunner().invoke(app, list(map(str, words)))
    assert done.exit_code == 0 and "people: sealed with the new key from now on" in done.output
    assert "erased" in done.output


def test_how_long_to_wait_is_said_to_the_server(postgres):
    used(postgres, "session")
    place = cp.Durable(postgres.url, key_file=postgres.key, witness=postgres.home / "witness", wait=0)
    with cp.open(place, source=postgres.source) as s, psycopg.connect(postgres.url) as other:
        other.execute("SET idle_in_transaction_session_timeout = '20s'")  # or whoever waits for ever would
        other.execute("SELECT * FROM counterpoint_session FOR UPDATE")
        with pytest.raises(cp.errors.LedgerBusy, match="too long"):
            s.launch(cp.Laplace("0.1"))
        assert s._engine.ledger._store._connection.info.get_parameters()["connect_timeout"] == "2"
    with closing(PostgresStore(postgres.url)) as store:
        assert store._run("SHOW lock_timeout") == [("30s",)]
        assert "connect_timeout" not in store._connection.info.get_parameters()


@pytest.mark.parametrize("wait", [-1, float("nan"), float("inf"), 10**9, "1", True])
def test_no_nonsense_is_waited_for(wait):
    with pytest.raises(cp.errors.InvalidParameter, match="seconds"):
        cp.Durable("ledger.db", wait=wait)


def test_a_ledger_is_the_same_by_the_name_of_a_link_to_it(tmp_path, monkeypatch):
    """Key, lock and witness are beside what the link leads to, whichever name was used first."""
    for name in ("COUNTERPOINT_KEY", "COUNTERPOINT_KEY_FILE", "COUNTERPOINT_WITNESS"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "far").mkdir()
    real, link = tmp_path / "far" / "ledger.db", tmp_path / "link.db"
    link.symlink_to(real)
    source = Place("sqlite", tmp_path).source
    with cp.Session(source, cp.PureDP(1), ledger=link) as s:
        answer = s.launch(cp.Laplace("0.1", asks=3)).ask("apples", id="q")
    for name in (real, link):
        with cp.open(name, source=source) as s:
            assert s.handles[0].ask("apples", id="q") == answer
        assert len(list(opening.sessions_at(cp.Durable(name)))) == 1
    assert {path.name for path in tmp_path.iterdir()} == {"far", "link.db", "the.key"}

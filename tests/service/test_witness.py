"""A witness over HTTP: heads go forward only, several processes share it, and what is out of reach releases nothing."""

import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
import threading
import time

import httpx
import pytest
import uvicorn
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.ledger.places import Place
from tests.service.process import SOURCES
from typer.testing import CliRunner

import counterpoint as cp
from counterpoint.cli import app
from counterpoint.errors import InvalidParameter, LedgerBusy, LedgerRolledBack, LedgerTampered, WitnessFailed
from counterpoint.ledger import remote_witness
from counterpoint.ledger.admin import recover
from counterpoint.ledger.chain import Entry, link
from counterpoint.ledger.open import sessions_at
from counterpoint.ledger.remote_witness import RemoteWitness
from counterpoint.service.config import read
from counterpoint.service.witness import HeadRefused, SeenChain, WitnessBook, witness_application

GENESIS = b"\xbb" * 32


class Running:
    """A witness in this process, which can be stopped and started again at the same port."""

    def __init__(self, folder):
        self.folder = folder
        self.book = WitnessBook(folder)
        self.key_file = folder.parent / "witness.key"
        self.key_file.touch(0o600)
        self.key_file.write_text(self.book.new_key("ann").shown() + "\n")
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.socket.getsockname()[1]}"
        self.start()

    def start(self):
        config = uvicorn.Config(witness_application(self.book), log_config=None, access_log=False)
        self.server = uvicorn.Server(config)
        self.thread = threading.Thread(target=self.server.run, kwargs={"sockets": [self.socket]}, daemon=True)
        self.thread.start()
        while not self.server.started:
            time.sleep(0.01)

    def stop(self):
        port = self.socket.getsockname()[1]
        self.server.should_exit = True
        self.thread.join(30)
        self.socket.close()
        self.book.close()
        return port

    def restart(self):
        """Stop it, and start another one from what is on disk."""
        port = self.stop()
        self.start_at(port)

    def start_at(self, port):
        self.book = WitnessBook(self.folder)
        self.socket = socket.create_server(("127.0.0.1", port))
        self.start()

    def place(self, url, home):
        return cp.Durable(url, key_file=home / "the.key", witness=self.url, witness_key_file=self.key_file)


@pytest.fixture
def running(tmp_path):
    (tmp_path / "there").mkdir()
    made = Running(tmp_path / "there" / "witness")
    yield made
    with contextlib.suppress(Exception):
        made.stop()


class Witnessed(Place):
    """A ledger whose witness is a service."""

    def __init__(self, kind, home, running):
        super().__init__(kind, home)
        self.running = running

    @property
    def durable(self):
        return self.running.place(self.url, self.home)


@pytest.fixture
def place(tmp_path, running):
    return Witnessed("sqlite", tmp_path, running)


def test_a_ledger_goes_on_with_it_after_restarts_of_both(place, running):
    with place.session() as s:
        first = s.launch(cp.Laplace("0.1", asks=9), id="L").ask("apples", id="q")
    running.restart()
    with place.reopened() as s:
        assert s.handles[0].ask("apples", id="q") == first
        s.handles[0].ask("beans")
        s._engine.ledger.verify()
    assert list(sessions_at(place.durable))


def test_an_old_copy_and_a_fork_are_refused(place, tmp_path):
    with place.session() as s:
        s.launch(cp.Laplace("0.1", asks=9), id="L")
    copy = shutil.copy(place.url, tmp_path / "old.db")
    with place.reopened() as s:
        s.handles[0].ask("apples", id="q")
    shutil.copy(place.url, tmp_path / "newest.db")
    shutil.copy(copy, place.url)
    with pytest.raises(LedgerRolledBack, match="an old copy was put back"):
        place.reopened()
    os.unlink(place.url)
    with pytest.raises(LedgerRolledBack, match="taken away or replaced"):
        place.session()
    without = cp.Durable(place.url, key_file=place.key, witness=tmp_path / "another")
    shutil.copy(tmp_path / "newest.db", place.url)
    with pytest.raises(LedgerRolledBack, match="is kept with a witness"):
        cp.open(without, "session", source=place.source)


def test_a_recovery_moves_it_and_nothing_else_goes_back(place, running, tmp_path):
    with place.session() as s:
        answer = s.launch(cp.Laplace("0.1", asks=9), id="L").ask("apples", id="before")
    copy = shutil.copy(place.url, tmp_path / "old.db")
    with place.reopened() as s:
        s.handles[0].ask("apples", id="after")
    newest = shutil.copy(place.url, tmp_path / "newest.db")
    shutil.copy(copy, place.url)
    recover(place.durable, "session", by="olga")
    running.restart()
    with place.reopened() as s:
        assert s.handles[0].ask("apples", id="before") == answer and s.remaining.epsilon == 0
        s._engine.ledger.verify()
    for other in (copy, newest):
        shutil.copy(other, place.url)
        with pytest.raises(LedgerRolledBack):
            place.reopened()


def test_an_unreachable_witness_releases_nothing_and_the_charge_is_found_by_its_id(place, running, monkeypatch):
    monkeypatch.setattr(remote_witness, "PAUSES", (0.0,))
    with place.session() as s:
        s.launch(cp.Laplace("0.1", asks=9), id="L")
    s = place.reopened()
    port = running.stop()
    with pytest.raises(WitnessFailed, match="nothing was released") as failed:
        s.handles[0].ask("apples", id="q")
    assert running.key_file.read_text().strip() not in str(failed.value)
    s.close()
    with pytest.raises(WitnessFailed):
        place.reopened()
    running.start_at(port)
    with place.reopened() as s:
        assert isinstance(s.handles[0].ask("apples", id="q"), int)
        assert s._engine.ledger.read((0,)).version == 1 and s.loss == cp.PureDP("0.1")


def test_a_lost_acknowledgement_is_sent_again_and_taken_once(place, running, monkeypatch):
    send, lose = RemoteWitness._send, []

    def lost(self, *said):
        done = send(self, *said)
        if lose:
            lose.pop()
            raise ConnectionResetError
        return done

    monkeypatch.setattr(RemoteWitness, "_send", lost)
    monkeypatch.setattr(remote_witness, "PAUSES", (0.0,))
    with place.session() as s:
        noisy = s.launch(cp.Laplace("0.1", asks=9))
        lose.append(1)
        noisy.ask("apples")
        noisy.ask("apples")
        lines = list(running.book.lines("ann", "session"))
    assert not lose and len([line for line in lines if line.sequence]) == 1


@pytest.fixture
def shared(tmp_path, running):
    return Witnessed("postgres", tmp_path, running)


def test_processes_that_write_out_of_turn_are_told_apart_from_a_fork(shared):
    with shared.session() as one, shared.reopened() as two:
        noisy = one.launch(cp.Laplace("0.1", asks=99))
        for _ in range(3):
            one.at(noisy.path).ask("apples")
            two.at(noisy.path).ask("apples")
        ledger = one._engine.ledger
        late = ledger._store.header("session")
        two.at(noisy.path).ask("apples")  # what comes later is seen first
        ledger._witness.note("session", *late.head, late.genesis, ledger._entries_after)
        one._engine.ledger.verify()


def test_a_database_that_is_put_back_while_it_is_open_releases_nothing(shared):
    """The process that has it open remembers the head that is left out; the next one learns of it from the witness."""
    tables = ("session", "entry", "row", "request")
    with contextlib.ExitStack() as stack:
        s = stack.enter_context(contextlib.closing(shared.session()))
        noisy = s.launch(cp.Laplace("0.1", asks=99))
        before = {name: shared.sql(f"SELECT * FROM counterpoint_{name}") for name in tables}
        noisy.ask("apples")
        for name, rows in before.items():
            shared.sql(f"DELETE FROM counterpoint_{name}")
            for row in rows:
                shared.sql(f"INSERT INTO counterpoint_{name} VALUES ({', '.join('?' * len(row))})", *row)
        with pytest.raises(LedgerTampered, match="does not continue what this process has seen"):
            noisy.ask("apples")
    with pytest.raises(LedgerRolledBack):
        shared.session()


def called(running, method, path, body=None, key=None):
    with httpx.Client(base_url=running.url) as client:
        key = running.key_file.read_text().strip() if key is None else key
        return client.request(method, path, json=body, headers={"Authorization": f"Bearer {key}"})


def head(number, byte, after=None):
    said = {"session": "people", "genesis": GENESIS.hex(), "number": number, "head": bytes([byte] * 32).hex()}
    return {**said, "after": after}


@pytest.mark.parametrize("seen", [2, 3, 5])
def test_what_does_not_lead_through_what_was_seen_releases_nothing(running, seen):
    """The witness has seen another chain from the same beginning; the chain itself goes on."""
    heads, lines = {}, {}
    for chain in (b"one", b"other"):
        lines[chain] = [(number, chain + bytes([number])) for number in range(1, 6)]
        heads[chain] = [GENESIS]
        for _, data in lines[chain]:
            heads[chain].append(link(heads[chain][-1], data))
    for chain, forked in ((b"one", False), (b"other", True)):
        first, second = (RemoteWitness(running.url, str(running.key_file)) for _ in range(2))
        whose = f"people {chain}"
        first.note(whose, seen, heads[chain][seen], GENESIS)
        with pytest.raises(LedgerRolledBack, match="another history") if forked else contextlib.nullcontext():
            second.note(whose, 3, heads[b"one"][3], GENESIS, lambda number: iter(lines[b"one"][number:]))
        first.close(), second.close()


def test_heads_go_forward_only_and_each_owner_sees_its_own(running):
    first, second = head(3, 1), head(5, 2, [3, "01" * 32])
    assert called(running, "POST", "/v1/heads", first).json() == {"newest": [3, "01" * 32]}
    assert called(running, "POST", "/v1/heads", second).status_code == 201
    assert called(running, "POST", "/v1/heads", second).status_code == 201, "sent again"
    back = [first, head(4, 3, [5, "02" * 32]), head(7, 3, [3, "01" * 32]), head(7, 3), head(5, 9, [5, "02" * 32])]
    for body in back:
        said = called(running, "POST", "/v1/heads", body)
        assert said.status_code == 409 and said.json()["newest"] == [5, "02" * 32]
    other = running.book.new_key("bob")
    assert called(running, "GET", "/v1/heads?session=people", key=other.shown()).json() == {"lines": []}
    assert called(running, "POST", "/v1/heads", head(1, 7), key=other.shown()).status_code == 201
    assert len(called(running, "GET", "/v1/heads?session=people").json()["lines"]) == 1
    running.book.keys.end(other.id)
    assert called(running, "GET", "/v1/heads?session=people", key=other.shown()).status_code == 401


@pytest.mark.parametrize("key", ["", "cp_", "cp_0123456789abcdef_", "x" * 5000])
def test_without_a_key_that_stands_nothing_is_seen_or_shown(running, key):
    assert called(running, "GET", "/v1/heads?session=people", key=key or "none").status_code == 401
    assert called(running, "POST", "/v1/heads", head(1, 1), key=key or "none").status_code == 401
    assert running.book.lines("ann", "people") == []


@pytest.mark.parametrize(
    "change", [{"heads": 1}, {"number": -1}, {"head": "AB"}, {"genesis": None}, {"after": [1]}, {"session": ""}]
)
def test_what_is_not_as_it_should_be_is_refused(running, change):
    assert called(running, "POST", "/v1/heads", {**head(1, 1), **change}).status_code == 400
    assert running.book.lines("ann", "people") == []


def recovery(number, before, seen, lost, *, kind="recovery", at=None):
    body = json.dumps([number - 1, before.hex(), seen, lost.hex()], separators=(",", ":"))
    return Entry(at or number, kind, "", (), "", body).encoded()


def test_only_a_recovery_of_what_was_seen_last_goes_back(tmp_path):
    with contextlib.closing(WitnessBook(tmp_path)) as book:
        chain, lost, before = SeenChain("people", GENESIS), b"\x09" * 32, b"\x03" * 32
        book.note("ann", chain, 9, lost, None)
        wrong = {
            "another kind": (4, before, recovery(4, before, 9, lost, kind="data")),
            "another number": (4, before, recovery(4, before, 9, lost, at=5)),
            "another backup": (4, before, recovery(4, b"\x04" * 32, 9, lost)),
            "another record": (4, before, recovery(4, before, 9, b"\x08" * 32)),
            "less than was seen": (4, before, recovery(4, before, 8, lost)),
            "no entry": (4, before, b"x"),
        }
        for number, start, entry in wrong.values():
            with pytest.raises(HeadRefused):
                book.recover("ann", chain, number, start, entry, (9, lost))
        entry = recovery(4, before, 9, lost)
        with pytest.raises(HeadRefused):
            book.recover("ann", chain, 4, before, entry, (8, lost))
        assert book.recover("ann", chain, 4, before, entry, (9, lost)) == (4, link(before, entry))
        assert book.recover("ann", chain, 4, before, entry, (9, lost)) == (4, link(before, entry)), "sent again"
        assert [line.sequence for line in book.lines("ann", "people")] == [4]


STEPS = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 3), st.booleans(), st.booleans()), max_size=30)


@settings(max_examples=60, deadline=None)
@given(steps=STEPS)
def test_whatever_is_sent_the_newest_never_goes_back_and_a_restart_forgets_nothing(steps, tmp_path_factory):
    folder = tmp_path_factory.mktemp("witness")
    book, chain, newest = WitnessBook(folder), SeenChain("a name", GENESIS), None
    try:
        for number, byte, honest, restart in steps:
            after = newest if honest else (number, bytes([byte] * 32))
            with contextlib.suppress(HeadRefused):
                book.note("ann", chain, number, bytes([byte] * 32), after)
            if restart:
                book.close()
                book = WitnessBook(folder)
            seen = [(line.sequence, line.head) for line in book.lines("ann", "a name") if line.sequence]
            assert len(seen) <= 1 and (newest is None or seen[0] == newest or seen[0][0] > newest[0])
            newest = seen[0] if seen else None
    finally:
        book.close()


def test_its_folder_has_one_process_and_its_owner_alone_reads_it(tmp_path):
    with contextlib.closing(WitnessBook(tmp_path / "w")) as book:
        key = book.new_key("ann")
        book.note("ann", SeenChain("people", GENESIS), 1, bytes(32), None)
        with pytest.raises(LedgerBusy):
            WitnessBook(tmp_path / "w")
        for file in (tmp_path / "w").iterdir():
            assert file.stat().st_mode & 0o077 == 0
            assert key.shown().split("_", 2)[2].encode() not in file.read_bytes(), "a digest is stored"


def test_a_key_is_sent_by_https_alone_and_read_from_a_file_of_its_owner(tmp_path):
    key = tmp_path / "key"
    key.write_text("cp_x")
    key.chmod(0o644)
    for url, file, why in (
        ("http://witness.example", key, "https://"),
        ("https://ann:secret@witness.example", key, "without a key"),
        ("https://witness.example", None, "needs the key"),
        ("https://witness.example", key, "chmod 600"),
        ("https://witness.example", tmp_path / "none", "cannot be read"),
    ):
        with pytest.raises(InvalidParameter, match=why) as refused:
            RemoteWitness(url, None if file is None else str(file))
        assert "secret" not in str(refused.value)


def test_the_configuration_names_it_and_its_key(tmp_path):
    text = "witness = 'https://witness.example:8443'\nwitness_key_file = 'witness.key'"
    place = read(text, tmp_path).place
    assert place.witness == "https://witness.example:8443"
    assert place.witness_key_file == str(tmp_path / "witness.key") and "witness" not in repr(place)


def test_the_command_serves_it_and_looks_after_its_keys(tmp_path):
    words = [sys.executable, "-m", "counterpoint", "witness", "--folder", "w", "--port", "0", "--log-level", "debug"]
    environment = {**os.environ, "PYTHONUNBUFFERED": "1", "PYTHONPATH": SOURCES}
    with open(tmp_path / "log", "w+b") as log:
        process = subprocess.Popen(words, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, stderr=log, text=True)
        try:
            address, key, _ = (process.stdout.readline().split()[-1] for _ in range(3))
            with httpx.Client(base_url=address, headers={"Authorization": f"Bearer {key}"}) as client:
                assert client.post("/v1/heads", json=head(1, 1)).status_code == 201
                assert client.get("/health").json() == {"status": "alive"}
            folder = ["--folder", str(tmp_path / "w")]
            made = CliRunner().invoke(app, ["witness", "key", "bob", *folder]).output.strip()
            listed = CliRunner().invoke(app, ["witness", "list", *folder]).output
            assert f"{made.split('_')[1]}: bob" in listed
            assert CliRunner().invoke(app, ["witness", "end", made.split("_")[1], *folder]).exit_code == 0
            assert "bob" not in CliRunner().invoke(app, ["witness", "list", *folder]).output
        finally:
            process.terminate()
            process.wait(60)
            process.stdout.close()
        log.seek(0)
        assert key.split("_", 2)[2].encode() not in log.read()

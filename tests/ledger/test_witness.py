"""The witness: what it has seen is on disk before an answer is released, and is read back whatever crashed."""

import errno
import os
import resource
import signal

import pytest
from tests.ledger.crashes import Killer, in_child
from tests.ledger.places import Place

import counterpoint as cp
from counterpoint.errors import LedgerFailed
from counterpoint.ledger import line_file as module
from counterpoint.ledger.line_file import _BEGIN, _sealed
from counterpoint.ledger.sealing import MasterKey
from counterpoint.ledger.witness import Line, WitnessFile

HEAD, OTHER, GENESIS = b"\xaa" * 32, b"\xbb" * 32, b"\xcc" * 32


@pytest.fixture
def witness(tmp_path):
    return WitnessFile(tmp_path / "witness")


def seen(witness, whose):
    """What the file says of a session now."""
    return list(witness.lines(whose, witness.size()))


def last(path, whose="session"):
    """The furthest number that a witness has seen."""
    return max(line.sequence for line in seen(WitnessFile(path), whose))


def test_ones_own_lines_are_found_among_those_of_others(witness):
    """Processes write slightly out of turn, and several sessions share the file."""
    for whose, sequence, head in (("a", 3, OTHER), ("a", 9, HEAD), ("b", 12, OTHER), ("a", 7, OTHER)):
        witness.note(whose, sequence, head, GENESIS)
    assert [line.sequence for line in seen(witness, "a")] == [3, 9, 7]
    assert seen(witness, "b") == [Line(12, OTHER, GENESIS)] and seen(witness, "c") == []


@pytest.mark.parametrize("name", ["two words", "per cent %20", "line\nbreak", "ünicode", "a/b", HEAD.hex()])
def test_a_name_is_one_word_whatever_characters_it_has(witness, name):
    witness.note(name, 5, HEAD, GENESIS)
    assert seen(witness, name) == [Line(5, HEAD, GENESIS)] and seen(witness, name.split(" ")[0] + "?") == []


@pytest.mark.parametrize("chunk", [1, 7, 100, 2**20])
def test_the_file_is_read_in_pieces_of_any_size(witness, monkeypatch, chunk):
    monkeypatch.setattr(module, "_CHUNK", chunk)
    for number in range(20):
        witness.note("a", number, HEAD, GENESIS)
    assert [line.sequence for line in seen(witness, "a")] == list(range(20))
    assert [line.sequence for line in witness.lines("a", witness.size() - 5)] == list(range(19)), "what is cut is none"


WHOLE = _sealed(f"1000 {OTHER.hex()} {GENESIS.hex()} session2".encode())


@pytest.mark.parametrize("torn", range(1, len(WHOLE)))
def test_a_line_torn_anywhere_is_nobodys(witness, torn):
    """Not that of another session either, whose name is the beginning of this one's."""
    witness.note("session", 5, HEAD, GENESIS)
    with open(witness.path, "ab") as file:
        file.write(_BEGIN + WHOLE[:torn])
    assert seen(witness, "session") == [Line(5, HEAD, GENESIS)] and seen(witness, "session2") == []
    witness.note("session", 6, HEAD, GENESIS)
    assert seen(witness, "session")[1:] == [Line(6, HEAD, GENESIS)] and seen(witness, "session2") == []


@pytest.mark.parametrize("garbage", [b"\xff\xfe \x00", b"x " + HEAD.hex().encode() + b" a", WHOLE[:-5] + b"\0\0\0\0"])
def test_what_is_no_line_is_passed_over(witness, garbage):
    witness.note("a", 3, HEAD, GENESIS)
    with open(witness.path, "ab") as file:
        file.write(garbage + b"\n" + f"9 {HEAD.hex()} {GENESIS.hex()} a\n".encode())
    assert [line for _, line in witness.everything()] == seen(witness, "a") == [Line(3, HEAD, GENESIS)]


def test_a_witness_that_cannot_be_read_is_a_clear_error_and_not_one_that_has_seen_nothing(tmp_path):
    with pytest.raises(LedgerFailed, match="cannot be read"):
        seen(WitnessFile(tmp_path), "a")
    with pytest.raises(LedgerFailed, match="cannot be written"):
        WitnessFile(tmp_path / "no" / "folder").note("a", 1, HEAD, GENESIS)


def test_it_is_its_owners_alone(witness):
    witness.note("a", 1, HEAD, GENESIS)
    assert os.stat(witness.path).st_mode & 0o777 == 0o600


def test_new_files_are_in_a_folder_that_was_synced(tmp_path, monkeypatch):
    """Else a power cut could take a key, without which nothing opens, or a witness, without which nothing starts."""
    synced = []
    sync = os.fsync
    monkeypatch.setattr(os, "fsync", lambda file: (synced.append(os.fstat(file).st_ino), sync(file)))
    for folder, make in (
        ("keys", MasterKey.create),
        ("notes", lambda path: WitnessFile(path).note("a", 0, HEAD, GENESIS)),
    ):
        (tmp_path / folder).mkdir()
        make(tmp_path / folder / "new")
        assert (tmp_path / folder).stat().st_ino in synced
    assert (tmp_path / "keys" / "new").stat().st_ino in synced


def open_ledger(tmp_path):
    place = Place("sqlite", tmp_path)
    s = place.session()
    s.launch(cp.Laplace("0.01", asks=9))
    return place, s


def test_an_answer_is_released_only_once_the_line_is_on_disk(tmp_path, monkeypatch):
    place, s = open_ledger(tmp_path)

    def fails(file):
        raise OSError(errno.EIO, "the disk says no")

    monkeypatch.setattr(os, "fdatasync", fails)
    with pytest.raises(LedgerFailed, match="the disk says no"):
        s.handles[0].ask("apples", id="q")
    monkeypatch.undo()
    s.close()
    with place.reopened() as s:
        assert isinstance(s.handles[0].ask("apples", id="q"), int) and s._engine.ledger.read((0,)).version == 1


def test_nor_when_the_disk_takes_only_a_part_of_the_line(tmp_path):
    """An almost full disk writes what fits, and says so by a number alone."""
    place, s = open_ledger(tmp_path)
    s.close()
    size = (tmp_path / "witness").stat().st_size

    def work(say):
        with place.reopened() as s:
            witness = s._engine.ledger._witness
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)

            def reached(point):
                limit = size + 20 if point == "committed" else resource.RLIM_INFINITY
                resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))

            s._engine.ledger._reached = reached
            try:
                say("answered", s.handles[0].ask("apples", id="q"))
            except LedgerFailed as error:
                say("withheld", "space" in str(error) and witness.path in str(error))

    assert in_child(work) == (["withheld True"], True)
    with place.reopened() as s:
        assert isinstance(s.handles[0].ask("apples", id="q"), int) and s._engine.ledger.read((0,)).version == 1
        s._engine.ledger.verify()


REPEATED = {
    "an ask": (6, lambda s, stream: s.at((0,)).ask(cp.total(), id="again")),
    "a launch": (6, lambda s, stream: s.launch(cp.Laplace("0.2"), id="again")),
    "items": (3, lambda s, stream: stream.append(1, id="again")),
}


@pytest.mark.parametrize("what", REPEATED)
def test_what_is_told_again_has_been_seen_although_who_settled_it_died_before(lasting, what):
    """Else the copy from before it could be put back unseen, and a second answer be had for the same charge."""
    points, deed = REPEATED[what]
    with lasting.session(source=cp.Stream()) as s:
        s.launch(cp.Laplace("0.1"))

    def work(say):
        stream, killer = cp.Stream(), Killer(0)
        s = lasting.reopened(source=stream, reached=killer)
        killer.left = points
        deed(s, stream)

    assert in_child(work) == ([], False)
    witness = lasting.home / "witness"
    ((head,),) = lasting.sql("SELECT number FROM counterpoint_session WHERE name <> '@register'")
    assert last(witness) < head, "or this could not fail"
    stream = cp.Stream()
    with lasting.reopened(source=stream) as s:
        deed(s, stream)
        assert last(witness) == head
        lines = (lasting.home / "witness").read_text().count("\n")
        deed(s, stream)
        assert (lasting.home / "witness").read_text().count("\n") == lines, "once is enough"

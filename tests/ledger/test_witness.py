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
from counterpoint.ledger.sealing import MasterKey
from counterpoint.ledger.witness import Seen, Witness

HEAD, OTHER = b"\xaa" * 32, b"\xbb" * 32


@pytest.fixture
def witness(tmp_path):
    return Witness(tmp_path / "witness")


def test_the_furthest_of_ones_own_lines_counts(witness):
    """Processes write slightly out of turn, and several sessions share the file."""
    for whose, sequence, head in (("a", 3, OTHER), ("a", 9, HEAD), ("b", 12, OTHER), ("a", 7, OTHER)):
        witness.note(whose, sequence, head)
    assert witness.last("a") == Seen(9, HEAD) and witness.last("b") == Seen(12, OTHER) and witness.last("c") is None


@pytest.mark.parametrize("name", ["two words", "per cent %20", "line\nbreak", "ünicode", "a/b"])
def test_a_name_is_one_word_whatever_characters_it_has(witness, name):
    witness.note(name, 5, HEAD)
    assert witness.last(name) == Seen(5, HEAD) and witness.last(name.split(" ")[0] + "?") is None


def test_a_session_that_others_have_written_past_is_found_all_the_same(witness):
    """Its last line is far before the end of the file, of which the end is read first."""
    witness.note("rare", 5, HEAD)
    line = f"{10**6} {OTHER.hex()} busy\n"
    with open(witness.path, "a", encoding="ascii") as file:
        file.write(line * 2000)
    assert witness.last("rare") == Seen(5, HEAD) and witness.last("busy") == Seen(10**6, OTHER)


@pytest.mark.parametrize("inside", range(1, 6))
def test_a_line_that_is_cut_where_the_reading_begins_is_no_line(witness, inside):
    """The end of the file, which is read first, may begin inside a number: 900000 is not 0."""
    line = f"900000 {OTHER.hex()} a\n"
    with open(witness.path, "w", encoding="ascii") as file:
        file.write(line + "x" * (2**16 - (len(line) - inside) - 1) + "\n")
    assert witness.last("a") == Seen(900000, OTHER)


@pytest.mark.parametrize("torn", range(1, len("1000 ") + 64 + len(" session2") + 1))
def test_a_line_torn_anywhere_is_nobodys(witness, torn):
    """Not that of another session either, whose name is the beginning of this one's."""
    whole = f"1000 {OTHER.hex()} session2\n"
    with open(witness.path, "w", encoding="ascii") as file:
        file.write(f"5 {HEAD.hex()} session\n" + whole[:torn])
    assert witness.last("session") == Seen(5, HEAD) and witness.last("session2") is None
    witness.note("session", 6, HEAD)
    assert witness.last("session") == Seen(6, HEAD) and witness.last("session2") is None


@pytest.mark.parametrize("garbage", [b"\xff\xfe \x00", b"x " + HEAD.hex().encode() + b" a", b"7 zz a", b"7  a"])
def test_what_is_no_line_is_passed_over(witness, garbage):
    witness.note("a", 3, HEAD)
    with open(witness.path, "ab") as file:
        file.write(garbage + b"\n" + b"9 " + b"g" * 64 + b" a\n" + b"+9 " + HEAD.hex().encode() + b" a\n")
    assert witness.last("a") == Seen(3, HEAD)


def test_a_witness_that_cannot_be_read_is_a_clear_error_and_not_one_that_has_seen_nothing(tmp_path):
    with pytest.raises(LedgerFailed, match="cannot be read"):
        Witness(tmp_path).last("a")
    with pytest.raises(LedgerFailed, match="cannot be written"):
        Witness(tmp_path / "no" / "folder").note("a", 1, HEAD)


def test_it_is_its_owners_alone(witness):
    witness.note("a", 1, HEAD)
    assert os.stat(witness.path).st_mode & 0o777 == 0o600


def test_new_files_are_in_a_folder_that_was_synced(tmp_path, monkeypatch):
    """Else a power cut could take a key, without which nothing opens, or a witness, without which nothing starts."""
    synced = []
    sync = os.fsync
    monkeypatch.setattr(os, "fsync", lambda file: (synced.append(os.fstat(file).st_ino), sync(file)))
    for folder, make in (("keys", MasterKey.create), ("notes", lambda path: Witness(path).note("a", 0, HEAD))):
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
    seen = Witness(lasting.home / "witness")
    ((head,),) = lasting.sql("SELECT number FROM counterpoint_book")
    assert seen.last("session").sequence < head, "or this could not fail"
    stream = cp.Stream()
    with lasting.reopened(source=stream) as s:
        deed(s, stream)
        assert seen.last("session").sequence == head
        lines = (lasting.home / "witness").read_text().count("\n")
        deed(s, stream)
        assert (lasting.home / "witness").read_text().count("\n") == lines, "once is enough"

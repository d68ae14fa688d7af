"""A long witness file loses the lines that its furthest one makes superfluous, and refuses all that it did before."""

import os
import shutil

import pytest
from tests.ledger.places import Place
from tests.ledger.test_recovering import behind, recovered  # noqa: F401 - a fixture

import counterpoint as cp
from counterpoint.errors import LedgerRolledBack
from counterpoint.ledger import witness as witnesses
from counterpoint.ledger.line_file import LineFile
from counterpoint.ledger.witness import WitnessFile


@pytest.fixture(autouse=True)
def short(monkeypatch):
    """Files count as long from the first line on."""
    monkeypatch.setattr(witnesses, "LONGEST", 1)


@pytest.fixture
def place(tmp_path):
    """A ledger that has answered twenty questions since it was opened."""
    made = Place("sqlite", tmp_path)
    with made.session() as s:
        handle = s.launch(cp.Laplace("0.1", asks=100), id="L")
        for _ in range(20):
            handle.ask("beans")
    return made


def lines(place):
    return list(WitnessFile(place.home / "witness").everything())


def ask(place, id):
    with place.reopened() as s:
        return s.handles[0].ask("beans", id=id)


def test_what_is_left_is_where_the_ledger_is_and_the_furthest_head(place):
    before = lines(place)
    place.reopened().close()
    assert len(before) > 20 and len(lines(place)) < 8 and set(lines(place)) < set(before)
    assert max(lines(place), key=lambda line: line[1].sequence) == max(before, key=lambda line: line[1].sequence)


def test_the_ledger_goes_on_and_every_line_is_appended_to_the_file_that_has_the_name(place):
    first = ask(place, "monday")
    assert ask(place, "monday") == first
    with place.reopened() as s:
        s._engine.ledger.verify()


@pytest.mark.parametrize("used", [False, True], ids=["put back", "put back and used elsewhere"])
def test_an_old_copy_is_refused_as_before(place, tmp_path, used):
    old = shutil.copy(place.url, tmp_path / "old.db")
    ask(place, "monday")
    place.reopened().close()
    assert len(lines(place)) < 8
    shutil.copy(old, place.url)
    if used:
        kept = shutil.copy(place.home / "witness", tmp_path / "kept")
        (place.home / "witness").unlink()
        with pytest.raises(LedgerRolledBack):
            place.reopened()  # it must have the witness that it had
        shutil.copy(kept, place.home / "witness")
    with pytest.raises(LedgerRolledBack):
        place.reopened()


def test_after_a_recovery_neither_the_backup_nor_the_lost_copy_opens(behind, tmp_path):  # noqa: F811
    place, _ = behind
    backup = shutil.copy(place.url, tmp_path / "backup.db")
    recovered(place).close()
    for _ in range(3):
        place.reopened().close()
    good = shutil.copy(place.url, tmp_path / "good.db")
    for wrong in (backup, place.newest):
        shutil.copy(wrong, place.url)
        with pytest.raises(LedgerRolledBack):
            place.reopened()
    shutil.copy(good, place.url)
    place.reopened().close()


def test_lines_of_other_ledgers_stay(place):
    other = WitnessFile(place.home / "witness")
    for number in range(1, 9):
        other.note("session", number, bytes(32), bytes([7] * 32))
    other.close()
    place.reopened().close()
    assert [line.sequence for _, line in lines(place) if line.genesis == bytes([7] * 32)] == list(range(1, 9))


def test_a_file_that_another_process_appends_to_is_left_as_it_is(place):
    other = WitnessFile(place.home / "witness")
    other.note("another", 1, bytes(32), bytes(32))
    before = lines(place)
    ask(place, "monday")
    assert set(before) < set(lines(place))
    other.note("another", 2, bytes(32), bytes(32))
    other.close()
    place.reopened().close()
    assert len(lines(place)) < len(before) and ("another", 2) in {(name, line.sequence) for name, line in lines(place)}


def test_lines_that_came_behind_those_that_were_compared_stay(tmp_path):
    file = LineFile(tmp_path / "lines")
    for text in (b"1", b"2"):
        file.append(text)
    upto = file.size()
    with open(file.path, "ab") as torn:
        torn.write(b"\n0123abcd tor")
    file.append(b"1")
    assert file.compact(lambda text: text == b"2", upto)
    file.append(b"3")
    assert list(file.texts()) == [b"2", b"1", b"3"]
    file.close()


def test_a_full_disk_leaves_every_line_and_the_ledger_opens(place, monkeypatch):
    before = lines(place)

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    place.reopened().close()
    monkeypatch.undo()
    assert lines(place) == before


def test_a_short_file_is_not_written_anew(place, monkeypatch):
    monkeypatch.setattr(witnesses, "LONGEST", 2**20)
    number = (place.home / "witness").stat().st_ino
    place.reopened().close()
    assert (place.home / "witness").stat().st_ino == number

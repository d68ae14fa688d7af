"""Lines that were acknowledged stay, however much of the next one a full disk takes or a crash leaves."""

import os

import pytest
from tests.ledger.crashes import in_child
from tests.ledger.disks import Disk

from counterpoint.errors import WitnessFailed
from counterpoint.ledger.line_file import _BEGIN, LineFile, _sealed

TEXT = b"a line of 23 characters"
RECORD = len(_BEGIN + _sealed(TEXT))


@pytest.fixture
def path(tmp_path):
    return tmp_path / "lines"


def test_however_much_of_a_line_is_written_no_other_is_lost(path, monkeypatch):
    """By one that goes on, by another that has the file open meanwhile, and by one that opens it afterwards."""
    disk, kept = Disk(monkeypatch, path), []
    torn, beside = LineFile(path), LineFile(path)

    def append(file):
        text = b"line %d" % len(kept)
        file.append(text)
        kept.append(text)

    append(torn)
    append(beside)
    for n in range(RECORD):
        disk.take(n)
        with pytest.raises(WitnessFailed, match="space"):
            torn.append(TEXT)
        assert list(LineFile(path).texts()) == kept, n
        for file in (beside, torn, LineFile(path)):
            append(file)
            assert list(beside.texts()) == kept, n
    disk.take(RECORD)
    torn.append(TEXT)
    assert list(beside.texts()) == [*kept, TEXT]


@pytest.mark.parametrize("n", range(0, RECORD, 3))
def test_a_process_that_dies_while_it_writes_spoils_no_line_of_another(path, n, monkeypatch):
    other = LineFile(path)
    other.append(b"before")

    def work(say):
        disk = Disk(monkeypatch, path)
        disk.die(n)
        LineFile(path).append(TEXT)

    assert in_child(work) == ([], False)
    other.append(b"after")
    assert list(LineFile(path).texts()) == [b"before", b"after"]


def test_a_sync_that_failed_is_never_followed_by_an_acknowledgement_of_what_it_lost(path, monkeypatch):
    """The bytes can still be read, and another sync of them succeeds: a system drops what it could not write."""
    disk, kept = Disk(monkeypatch, path), []
    for n in range(1, 9):
        file = LineFile(path)
        disk.lose_sync()
        with pytest.raises(WitnessFailed):
            file.append(TEXT)
        for again in range(n % 3 + 1):
            kept.append(b"%d of %d" % (again, n))
            file.append(kept[-1])
        file.close()
        disk.power_cut(path)
        assert list(LineFile(path).texts()) == kept


@pytest.mark.parametrize("change", ["moved", "replaced", "cut", "put back"])
def test_a_file_that_is_exchanged_while_it_is_open_takes_no_more_lines(path, change):
    """They would be where the next start does not look, or the file has lost lines already."""
    file = LineFile(path)
    file.append(b"one")
    early = path.read_bytes()
    file.append(b"two")
    if change == "moved":
        path.rename(path.with_name("elsewhere"))
    elif change == "replaced":
        path.with_name("copy").write_bytes(path.read_bytes())
        path.with_name("copy").rename(path)
    else:
        path.write_bytes(early if change == "put back" else early[:-3])
    with pytest.raises(WitnessFailed, match="moved, replaced or made shorter"):
        file.append(b"three")
    file.close()
    assert b"three" not in b"".join(LineFile(path).texts())


def test_the_checksum_finds_a_line_whose_middle_never_reached_the_disk(path):
    """The second page of a file may be written before a power cut, and the first not: it has zeros there."""
    file = LineFile(path)
    file.append(b"one")
    size = os.path.getsize(path)
    file.append(TEXT)
    with open(path, "r+b") as raw:
        raw.seek(size + 14)
        raw.write(bytes(5))
    file.append(b"two")
    assert list(file.texts()) == [b"one", b"two"]

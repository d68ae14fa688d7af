"""Ledgers that share a witness file: what one of them could not write costs the others nothing that was seen."""

import pytest
from tests.ledger.crashes import in_child
from tests.ledger.disks import Disk
from tests.ledger.places import Place
from tests.ledger.test_attacks import snapshot

import counterpoint as cp
from counterpoint.errors import LedgerRolledBack, WitnessFailed
from counterpoint.ledger.witness import WitnessFile


@pytest.fixture
def neighbours(tmp_path):
    """Two ledgers with one witness."""
    return [Place("sqlite", tmp_path, url=str(tmp_path / f"{name}.db")) for name in ("one", "two")]


def opened(place, name):
    s = place.session(cp.PureDP(1), name=name)
    return s, s.launch(cp.Laplace("0.001", asks=1000), id="L")


def furthest(place, name):
    return max(line.sequence for line in WitnessFile(place.home / "witness").seen(name))


FAULTS = [("take", n) for n in (0, 1, 2, 9, 10, 11, 40, 75, 76, 140, 141, 146, 147)] + [("refuse",), ("lose_sync",)]


@pytest.mark.parametrize("dies", [False, True])
def test_no_head_that_was_acknowledged_is_lost_whatever_another_ledger_leaves_of_a_line(neighbours, monkeypatch, dies):
    """The other one has the file open all the time; then its old copy is put back and refused."""
    one, two = neighbours
    opened(one, "one")[0].close()
    disk = Disk(monkeypatch, one.home / "witness")
    s, noisy = opened(two, "two")
    s.close()
    put_back = snapshot(two)
    s, noisy = opened(two, "two")
    for number, (kind, *n) in enumerate(FAULTS):
        if dies:
            assert in_child(lambda say, n=n or [30], at=number: dying(disk, one, n, at)) == ([], False)
        else:
            failing, asked = opened(one, "one")
            getattr(disk, kind)(*n)
            with pytest.raises(WitnessFailed):
                asked.ask("apples", id=f"q{number}")
            assert disk.met
            failing.close()
        noisy.ask("apples", id=f"q{number}")
        assert furthest(two, "two") == s._engine.ledger.head()
        with one.reopened(name="one") as again:
            assert isinstance(again.handles[0].ask("apples", id=f"q{number}"), int)
            assert furthest(one, "one") == again._engine.ledger.head()
    s.close()
    with two.reopened(name="two") as s:
        s._engine.ledger.verify()
    put_back()
    with pytest.raises(LedgerRolledBack, match="an old copy"):
        two.reopened(name="two")


HEAD, GENESIS = b"\xaa" * 32, b"\xbb" * 32
RECORDS = {
    "a head": lambda file: file.note("torn", 7, HEAD, GENESIS),
    "the place of a ledger": lambda file: file.note_place("torn", GENESIS),
    "a recovery": lambda file: file.note_recovery("torn", 7, HEAD, GENESIS, b"entry"),
}


@pytest.mark.parametrize(
    ("record", "before"), [("a head", 0), ("a head", 3), ("the place of a ledger", 1), ("a recovery", 1)]
)
def test_no_head_is_lost_whatever_number_of_bytes_of_a_record_was_written(tmp_path, monkeypatch, record, before):
    """Every number of bytes from none to all but one, while another ledger has the same file open."""
    disk, write = Disk(monkeypatch, tmp_path), RECORDS[record]
    path = tmp_path / "whole"
    write(WitnessFile(path))
    for n in range(path.stat().st_size):
        path = tmp_path / f"{n}"
        torn, beside = WitnessFile(path), WitnessFile(path)
        for number in range(before):
            beside.note("other", number + 1, HEAD, GENESIS)
        disk.take(n)
        with pytest.raises(WitnessFailed):
            write(torn)
        assert disk.met and not list(WitnessFile(path).seen("torn")), n
        beside.note("other", before + 1, HEAD, GENESIS)
        write(torn)
        for file in (torn, beside, WitnessFile(path)):
            assert [line.sequence for line in file.seen("other")] == [*range(1, before + 2)], n
            assert len(list(file.seen("torn"))) == 1, n


def dying(disk, place, n, number):
    _, asked = opened(place, "one")
    disk.die(*n)
    asked.ask("apples", id=f"q{number}")


def test_a_copy_from_before_a_torn_line_is_refused_once_its_ledger_has_gone_on(neighbours, monkeypatch):
    """The ledger that could not write is the one that is put back: what it told again has been seen."""
    one, _ = neighbours
    opened(one, "one")[0].close()
    put_back = snapshot(one)
    disk = Disk(monkeypatch, one.home / "witness")
    s, noisy = opened(one, "one")
    disk.take(40)
    with pytest.raises(WitnessFailed):
        noisy.ask("apples", id="q")
    s.close()
    with one.reopened(name="one") as s:
        s.handles[0].ask("apples", id="q")
    put_back()
    with pytest.raises(LedgerRolledBack, match="an old copy"):
        one.reopened(name="one")

"""Power cuts: whatever was released is there when the power is back, and a mode that would lose it is noticed."""

import shutil
from itertools import count

import apsw
import pytest
from tests.ledger.places import DATA
from tests.ledger.recording import SURVIVORS, Disk, after_cut
from tests.session.numbers_source import Numbers

import counterpoint as cp
from counterpoint.ledger.durable import DurableLedger
from counterpoint.ledger.sealing import MasterKey
from counterpoint.ledger.store.sqlite import SqliteStore

KEY = MasterKey(bytes(32))
_numbers = count()


def history(synchronous, asks=3):
    """What a disk saw of a launch and some asks, with a note at every release."""
    disk = Disk(f"recording{next(_numbers)}")
    store = SqliteStore("ledger.db", vfs=disk.vfs_name, synchronous=synchronous)
    s = cp.Session(Numbers(DATA), cp.PureDP(1), ledger=DurableLedger(store, "session", KEY))
    noisy = s.launch(cp.Laplace("0.001", asks=50), id="L")
    disk.note("L", noisy.path)
    for number in range(asks):
        disk.note(f"q{number}", noisy.ask("apples", id=f"q{number}"))
    return disk.log


def lost(log, survive, home):
    """The released answers that are gone after a cut at the end of the log."""
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir()
    for path, data in after_cut(log, survive).items():
        (home / path).write_bytes(data)
    released = {name: answer for kind, name, answer in (event for event in log if event[0] == "note")}
    if not released:
        return set()
    store = SqliteStore(home / "ledger.db")
    try:
        s = cp.open(DurableLedger(store, "session", KEY), source=Numbers(DATA))
    except cp.CounterpointError:
        store.close()
        return set(released)
    try:
        held = {
            name.removeprefix("() ")
            for (name,) in store._run("SELECT request FROM counterpoint_request WHERE answer IS NOT NULL")
        }
        there = set(released) & held
        same = {name for name in there - {"L"} if s.at((0,)).ask("apples", id=name) == released[name]}
        s._engine.ledger.verify()
        return set(released) - same - ({"L"} & there)
    finally:
        s.close()


def cuts(log, every):
    """Right after each release, and at some points in between."""
    notes = {number + 1 for number, event in enumerate(log) if event[0] == "note"}
    return sorted(notes | set(range(min(notes), len(log), every)))


@pytest.mark.parametrize("survivors", SURVIVORS)
def test_no_power_cut_loses_what_was_released(survivors, tmp_path):
    log = history("EXTRA")
    assert any(event[0] == "sync" for event in log)
    for at in cuts(log, every=7):
        assert not lost(log[:at], SURVIVORS[survivors], tmp_path / "disk"), f"cut after event {at} of {len(log)}"


def test_nor_with_the_rollback_journal(tmp_path, monkeypatch):
    monkeypatch.setattr(apsw, "sqlite_lib_version", lambda: "3.50.0")
    log = history("EXTRA", asks=2)
    assert any("journal" in event[1] for event in log if event[0] == "write")
    for at in cuts(log, every=11):
        assert not lost(log[:at], SURVIVORS["none"], tmp_path / "disk")


@pytest.mark.long
@pytest.mark.parametrize("version", ["3.50.0", "3.54.1"])
@pytest.mark.parametrize("survivors", SURVIVORS)
def test_no_power_cut_at_any_write_loses_what_was_released(version, survivors, tmp_path, monkeypatch):
    monkeypatch.setattr(apsw, "sqlite_lib_version", lambda: version)
    log = history("EXTRA", asks=8)
    for at in cuts(log, every=1):
        assert not lost(log[:at], SURVIVORS[survivors], tmp_path / "disk")


@pytest.mark.parametrize("synchronous", ["OFF", "NORMAL", "FULL"])
def test_an_unsafe_mode_is_noticed(synchronous, tmp_path):
    """FULL does not sync the folder when the first journal is deleted: it may come back, and undo everything."""
    log = history(synchronous)
    assert any(lost(log[:at], SURVIVORS["none"], tmp_path / "disk") for at in cuts(log, every=10**9))


def test_a_failed_sync_is_never_tried_again():
    """Not by whoever asks again, not by another session on the same file, and not when it is closed."""
    disk = Disk(f"failing{next(_numbers)}")
    store = SqliteStore("ledger.db", vfs=disk.vfs_name)
    ledgers = [DurableLedger(store, name, KEY) for name in ("session", "other")]
    first, second = [cp.Session(Numbers(DATA), cp.PureDP(1), ledger=ledger) for ledger in ledgers]
    noisy, other = [s.launch(cp.Laplace("0.001", asks=50)) for s in (first, second)]
    before = len(disk.log)

    def fails(file, flags):
        disk.log.append(("tried", file.path))
        raise apsw.IOError("the disk says no")

    from tests.ledger import recording

    kept, recording.File.xSync = recording.File.xSync, fails
    try:
        for handle in (noisy, noisy, other, noisy):
            with pytest.raises(cp.errors.LedgerError):
                handle.ask("apples")
        first.close(), second.close()
    finally:
        recording.File.xSync = kept
    assert sum(event[0] == "tried" for event in disk.log[before:]) == 1
    assert [event[0] for event in disk.log[before:]][-1] == "tried", "nor is anything written any more"

"""Every line of a witness is compared with the chain, and those of other ledgers are none of its concern."""

import os
import shutil
from types import SimpleNamespace

import pytest
from tests.ledger.places import Place
from tests.ledger.test_attacks import snapshot

import counterpoint as cp
from counterpoint.errors import LedgerRolledBack
from counterpoint.ledger.witness import Line, Recovered, compare


def asked(place, *ids, name="session"):
    with place.session(cp.PureDP(1), name=name) as s:
        noisy = s.launch(cp.Laplace("0.01", asks=100), id="L")
        return {id: noisy.ask("apples", id=id) for id in ids}


def lines(place):
    return [line for line in (place.home / "witness").read_bytes().splitlines(keepends=True) if line.strip()]


def number(line):
    return int(line.split(b" ")[1])


def write(place, found):
    (place.home / "witness").write_bytes(b"".join(found))


@pytest.fixture
def forked(lasting):
    """A ledger that went on from an old copy: the lines up to there, those of its first history, those of its second.

    The copy was used until both histories are of one length, and then once more.
    """
    asked(lasting, "a")
    put_back, before = snapshot(lasting), lines(lasting)
    asked(lasting, "b", "c")
    first = [line for line in lines(lasting) if line not in before]
    put_back()
    write(lasting, before)
    asked(lasting, "x", "y", "z")
    second = [line for line in lines(lasting) if line not in before]
    return lasting, before, first, second


def test_one_line_of_another_history_is_enough_wherever_it_stands(forked):
    """Also if the furthest line is of this one, and if the other's head sorts lower."""
    place, before, first, second = forked
    write(place, before + second)
    place.reopened().close()
    for line in first:
        for found in ([*before, line, *second], [*before, *second, line], [line, *before, *second]):
            write(place, found)
            with pytest.raises(LedgerRolledBack, match="another history"):
                place.reopened()


def test_of_two_lines_with_one_number_both_are_compared(forked):
    """One of the two heads is the greater one: whichever it is, each history finds the other's line."""
    place, before, first, second = forked
    numbers = set(map(number, first)) & set(map(number, second))
    assert numbers, "or this could not fail"
    for one in numbers:
        both = [line for line in first + second if number(line) == one]
        write(place, before + sorted(both))
        with pytest.raises(LedgerRolledBack, match="another history"):
            place.reopened()


@pytest.fixture
def neighbours(lasting):
    """Two ledgers with one witness, and sessions of one name."""
    one = lasting
    (one.home / "two").mkdir()
    two = Place(one.kind, one.home / "two")
    os.symlink(one.home / "witness", two.home / "witness")
    return one, two


def test_ledgers_share_a_witness_although_their_sessions_have_one_name(neighbours):
    told = [asked(place, *("abcdefgh"[: 3 + 4 * number])) for number, place in enumerate(neighbours)]
    for place, answers in zip(neighbours, told, strict=True):
        assert asked(place, *answers) == answers
        with place.reopened() as s:
            s._engine.ledger.verify()


def test_each_of_them_is_still_watched(neighbours):
    one, two = neighbours
    asked(one, "a")
    asked(two, "a")
    put_back = snapshot(one)
    asked(one, "b")
    asked(two, "c", "d", "e")
    put_back()
    with pytest.raises(LedgerRolledBack, match="an old copy"):
        one.reopened()
    asked(two, "f")


def test_a_ledger_that_was_taken_away_is_missed_where_it_was(neighbours):
    """A new one may begin elsewhere, but not there: it would have the whole budget again."""
    one, two = neighbours
    asked(one, "a")
    asked(two, "a")
    empty(one)
    with pytest.raises(LedgerRolledBack, match="taken away"):
        one.session()
    asked(two, "b")


def empty(place):
    if place.kind == "sqlite":
        os.unlink(place.url)
    else:
        for table in ("session", "key", "entry", "row", "request"):
            place.sql(f"DELETE FROM counterpoint_{table}")


def test_one_that_was_moved_with_its_witness_and_is_missing_there_is_missed_too(lasting):
    """Places do not compare once the witness is elsewhere itself."""
    asked(lasting, "a")
    (lasting.home / "moved").mkdir()
    other = Place(lasting.kind, lasting.home / "moved")
    shutil.copy(lasting.home / "witness", other.home / "witness")
    with pytest.raises(LedgerRolledBack, match="taken away"):
        other.session()


def test_a_ledger_that_was_moved_goes_on_and_is_missed_at_its_new_place(tmp_path):
    place = Place("sqlite", tmp_path)
    told = asked(place, "a")
    os.rename(place.url, tmp_path / "moved.db")
    moved = Place("sqlite", tmp_path, url=str(tmp_path / "moved.db"))
    assert asked(moved, "a") == told
    os.unlink(moved.url)
    with pytest.raises(LedgerRolledBack, match="taken away"):
        moved.session()


def without_witness(place):
    return cp.Durable(place.url, key_file=place.key)


def test_a_session_that_is_once_opened_with_a_witness_must_have_one_from_then_on(postgres):
    """It is on the chain, so that a changed column is noticed, too."""
    with cp.Session(postgres.source, cp.PureDP(1), ledger=without_witness(postgres)) as s:
        s.launch(cp.Laplace("0.01", asks=100), id="L")
    cp.open(without_witness(postgres), source=postgres.source).close()
    with postgres.reopened() as s:
        s._engine.ledger.verify()
    for attempt in range(2):
        with pytest.raises(LedgerRolledBack, match="COUNTERPOINT_WITNESS"):
            cp.open(without_witness(postgres), source=postgres.source)
        (postgres.home / "witness").rename(postgres.home / f"elsewhere{attempt}")
        with pytest.raises(LedgerRolledBack, match="COUNTERPOINT_WITNESS"):
            postgres.reopened()
        (postgres.home / f"elsewhere{attempt}").rename(postgres.home / "witness")
        asked(postgres, "a")
    postgres.sql("UPDATE counterpoint_session SET witnessed = 0")
    with pytest.raises(cp.errors.LedgerTampered):
        cp.open(without_witness(postgres), source=postgres.source)


def test_what_was_committed_before_it_had_a_witness_cannot_be_rolled_back_afterwards(postgres):
    """The witness sees where the chain is when it comes."""
    with cp.Session(postgres.source, cp.PureDP(1), ledger=without_witness(postgres)) as s:
        put_back = snapshot(postgres)
        s.launch(cp.Laplace("0.1"), id="L")
    postgres.reopened().close()
    put_back()
    with pytest.raises(LedgerRolledBack, match="an old copy"):
        postgres.reopened()


def test_a_recovery_takes_back_what_was_lost_once_the_witness_has_seen_it_and_no_more():
    """One chain with a recovery as its third entry, by when the witness had seen five of the record that was lost."""
    genesis, heads = bytes(32), [bytes([number]) * 32 for number in (1, 2, 3)]

    def found(*after):
        lost = [Line(number, b"lost" * 8, genesis) for number in (3, 5)]
        header = SimpleNamespace(genesis=genesis)
        return compare(header, bytearray(b"".join(heads)), [*lost, *after], b"", [Recovered(number=3, seen=5)])

    recovery = Line(3, heads[2], genesis)
    assert found() is None and found(Line(3, b"more" * 8, genesis)) is None, "another recovery takes back nothing here"
    assert found(recovery).recovered and not found(recovery).beyond
    assert found(Line(6, b"lost" * 8, genesis), recovery).beyond == 6

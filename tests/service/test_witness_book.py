"""What a witness keeps: of a long file the lines that are needed, whatever happens meanwhile; and keys under TLS."""

import contextlib
import json
import os
import resource
import signal
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.ledger.crashes import in_child
from tests.ledger.disks import Disk
from tests.ledger.places import Place
from tests.service.certificates import certificate
from tests.service.process import ServedWitness

import counterpoint as cp
from counterpoint.errors import WitnessFailed
from counterpoint.ledger import remote_witness
from counterpoint.ledger.chain import Entry, link
from counterpoint.service import witness as witness_book
from counterpoint.service.witness import HeadRefused, SeenChain, WitnessBook, WitnessKeys, _Followed

CHAINS = [SeenChain(name, bytes([number] * 32)) for number, name in enumerate(("people", "visits", "people"), 1)]
HEADS = st.tuples(st.integers(0, 6), st.integers(0, 255).map(lambda byte: bytes([byte] * 32)))


def head(number):
    return number.to_bytes(32, "big")


@given(st.lists(HEADS, max_size=30))
def test_the_lines_that_are_needed_say_all_that_was_seen(lines):
    seen, again = _Followed(), _Followed()
    for line in lines:
        if line != seen.newest and (line[0] or line[1] not in seen.places):  # as a witness takes them: not twice
            seen.add(*line)
    for line in seen.needed():
        again.add(*line)
    assert again == seen and again.needed() == seen.needed()
    assert len(seen.needed()) <= len(seen.places) + 2 * len(seen.recoveries) + 1


def filled(book, commits):
    """Several chains of one owner: places, heads, and in one of them a recovery."""
    for chain in CHAINS:
        book.note("ann", chain, 0, b"\xee" * 32, None)
        for number in range(1, commits + 1):
            book.note("ann", chain, number, head(number), (number - 1, head(number - 1)) if number > 1 else None)
    at, lost = commits - 1, (commits, head(commits).hex())
    said = json.dumps([at - 1, head(at - 1).hex(), *lost], separators=(",", ":"))
    entry = Entry(at, "recovery", "", (), "", said).encoded()
    taken = book.recover("ann", CHAINS[0], at, head(at - 1), entry, (commits, head(commits)))
    assert taken == (at, link(head(at - 1), entry))


def everything(book):
    return [book.lines("ann", name) for name in ("people", "visits")]


@pytest.fixture
def short(monkeypatch):
    monkeypatch.setattr(witness_book, "LONGEST", 20)


def test_a_long_file_is_rewritten_and_says_the_same(tmp_path, short):
    with contextlib.closing(WitnessBook(tmp_path / "w")) as book:
        filled(book, 200)
        before = everything(book)
    lines = [line for line in (tmp_path / "w" / "heads.ann").read_bytes().splitlines() if line.strip()]
    assert len(lines) <= 40 and not (tmp_path / "w" / "rewritten.ann").exists()
    with contextlib.closing(WitnessBook(tmp_path / "w")) as book:
        assert everything(book) == before
        with pytest.raises(HeadRefused):
            book.note("ann", CHAINS[1], 199, head(199), (200, head(200)))
        assert book.note("ann", CHAINS[1], 201, head(201), (200, head(200))) == (201, head(201))


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_crash_while_a_file_is_rewritten_leaves_all_that_was_acknowledged(tmp_path, short, monkeypatch, when):
    """As a killed process leaves it: the new file is there with its own name, or has just taken that of the old one."""
    book, rename = WitnessBook(tmp_path / "w"), os.replace
    taken = []

    def killed(*names):
        if when == "after":
            rename(*names)
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", killed)
    with pytest.raises(KeyboardInterrupt):
        for number in range(1, 100):
            after = taken[-1] if taken else None
            taken.append(book.note("ann", CHAINS[0], number, head(number), after))
    monkeypatch.undo()
    book.close()
    assert len(taken) == 20
    (tmp_path / "w" / "rewritten.ann").touch()  # of a crash before
    with contextlib.closing(WitnessBook(tmp_path / "w")) as again:
        assert [line[:2] for line in again.lines("ann", "people")] == taken[-1:]
        with pytest.raises(HeadRefused):
            again.note("ann", CHAINS[0], 20, head(99), taken[-2])
        assert again.note("ann", CHAINS[0], 21, head(21), taken[-1]) == (21, head(21))


def test_a_ledger_is_witnessed_over_tls(tmp_path, monkeypatch):
    """The key goes to a certificate that is trusted, and to no other."""
    certificate(tmp_path)
    flags = ("--certificate", tmp_path / "certificate.pem", "--private-key", tmp_path / "private.pem")
    monkeypatch.setattr(remote_witness, "PAUSES", ())
    with ServedWitness(tmp_path, "--folder", "w", *flags) as witness:
        assert witness.url.startswith("https://")
        key_file = tmp_path / "witness.key"
        key_file.touch(0o600)
        key_file.write_text(witness.key)
        place = Place("sqlite", tmp_path)
        durable = cp.Durable(place.url, key_file=place.key, witness=witness.url, witness_key_file=key_file)
        with pytest.raises(WitnessFailed, match="SSLCertVerificationError"):
            cp.Session(place.source, cp.PureDP(1), ledger=durable, name="people")
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "certificate.pem"))
        with cp.Session(place.source, cp.PureDP(1), ledger=durable, name="people") as s:
            answer = s.launch(cp.Laplace("0.1", asks=9), id="L").ask("apples", id="q")
        with cp.open(durable, "people", source=place.source) as s:
            assert s.handles[0].ask("apples", id="q") == answer
        assert witness.key not in witness.log
    assert (tmp_path / "w" / "heads.ledgers").read_bytes().count(b" people\n") >= 2


CHAIN = SeenChain("people", b"\xbb" * 32)
RECORD = len(f" \n01234567 1 {head(0).hex()} {head(0).hex()} people\n")
TAKEN = [*range(14), *range(15, RECORD - 4, 8), *range(RECORD - 4, RECORD)]
"""How much a full disk takes of a record, or a crash leaves."""
FAULTS = [*(("take", n) for n in TAKEN), ("refuse",), ("lose_sync",), ("refuse",), ("lose_sync",), ("lose_sync",)]


@pytest.mark.parametrize("restarts", [False, True])
@pytest.mark.parametrize("at", ["a line", "a file that is rewritten"])
def test_no_head_is_acknowledged_that_is_not_on_disk_and_none_that_was_is_lost(tmp_path, monkeypatch, at, restarts):
    """After each fault a power cut leaves what was synced."""
    disk, last = Disk(monkeypatch, tmp_path), None
    for number, (kind, *n) in enumerate(FAULTS, 1):
        book = WitnessBook(tmp_path)
        if last and at == "a line":
            assert book.note("ann", CHAIN, *last, None) == last, "sent again, it is acknowledged once the file is new"
        getattr(disk, kind)(*(min(most, RECORD - 4) for most in n) if at != "a line" else n)
        with pytest.raises(WitnessFailed):
            book.note("ann", CHAIN, number, head(number), last)
        assert disk.met
        if restarts:
            book.close()
            book = WitnessBook(tmp_path)
        assert book.note("ann", CHAIN, number, head(number), last) == (number, head(number))
        last = (number, head(number))
        book.close()
        disk.power_cut(tmp_path / "heads.ann")
        with contextlib.closing(WitnessBook(tmp_path)) as book:
            assert [line[:2] for line in book.lines("ann", "people")] == [last]
            with pytest.raises(HeadRefused):
                book.note("ann", CHAIN, number, b"\xdd" * 32, (number - 1, head(number - 1)))


@pytest.mark.parametrize("n", [0, 1, 12, 80, RECORD - 1, RECORD])
def test_a_witness_that_dies_while_it_writes_a_head_has_all_that_it_acknowledged(tmp_path, monkeypatch, n):
    def work(say):
        book = WitnessBook(tmp_path)
        say(book.note("ann", CHAIN, 1, head(1), None)[0])
        Disk(monkeypatch, tmp_path).die(n)
        book.note("ann", CHAIN, 2, head(2), (1, head(1)))

    assert in_child(work) == (["1"], False)
    with contextlib.closing(WitnessBook(tmp_path)) as book:
        ((newest, *_),) = book.lines("ann", "people")
        assert newest == (2 if n == RECORD else 1)
        if newest == 1:
            book.note("ann", CHAIN, 2, head(2), (1, head(1)))
        assert book.note("ann", CHAIN, 2, head(2), (1, head(1))) == (2, head(2)), "sent again"
        assert book.note("ann", CHAIN, 3, head(3), (2, head(2))) == (3, head(3))


def test_a_full_disk_while_a_file_is_rewritten_costs_nothing(tmp_path):
    with contextlib.closing(WitnessBook(tmp_path)) as book:
        book.note("ann", CHAIN, 1, head(1), None)

    def work(say):
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        with contextlib.closing(WitnessBook(tmp_path)) as book:
            resource.setrlimit(resource.RLIMIT_FSIZE, (20, resource.RLIM_INFINITY))
            for sent in (1, 2):
                try:
                    book.note("ann", CHAIN, sent, head(sent), None if sent == 1 else (1, head(1)))
                except WitnessFailed:
                    say("refused", sent)
            resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
            say(*(line.sequence for line in book.lines("ann", "people")))
            say(book.note("ann", CHAIN, 2, head(2), (1, head(1)))[0])

    assert in_child(work) == (["refused 1", "refused 2", "1", "2"], True)
    with contextlib.closing(WitnessBook(tmp_path)) as book:
        assert [line.sequence for line in book.lines("ann", "people")] == [2]


def test_every_key_goes_on_working_whatever_a_full_disk_takes_of_another(tmp_path, monkeypatch):
    """And every key that was ended stays ended."""
    disk, keys, beside = Disk(monkeypatch, tmp_path), WitnessKeys(tmp_path), WitnessKeys(tmp_path)
    valid, ended = [keys.new("ann")], [keys.new("bob")]
    keys.end(ended[0].id)
    for number in range(50):
        disk.lose_sync() if number % 10 == 9 else disk.take(
            tmp_path.joinpath("keys.jsonl").stat().st_size * number // 50
        )
        with pytest.raises(WitnessFailed):
            keys.end(valid[0].id) if number % 3 else keys.new("carl")
        assert disk.met
        if number % 8 == 0:
            valid.append((beside if number % 2 else keys).new("ann"))
        assert all(beside.owner(key.shown()) == "ann" for key in valid), number
        assert not any(beside.owner(key.shown()) for key in ended)
        assert len(keys.standing()) == len(valid), "and no key is left that was never shown"
    disk.power_cut(tmp_path / "keys.jsonl")
    keys.end(valid[-1].id)
    assert beside.owner(valid[-1].shown()) is None and beside.owner(valid[0].shown()) == "ann"


def test_keys_that_are_added_at_once_are_all_kept(tmp_path):
    """Each thread has the file open by itself, as a process would."""
    made = []
    threads = [
        threading.Thread(target=lambda: made.extend(WitnessKeys(tmp_path).new("ann") for _ in range(10)))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(made) == 40 and all(WitnessKeys(tmp_path).owner(key.shown()) == "ann" for key in made)

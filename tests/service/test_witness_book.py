"""What a witness keeps: of a long file the lines that are needed, whatever happens meanwhile; and keys under TLS."""

import contextlib
import json
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.ledger.places import Place
from tests.service.certificates import certificate
from tests.service.process import ServedWitness

import counterpoint as cp
from counterpoint.errors import WitnessFailed
from counterpoint.ledger.checking import remote_witness
from counterpoint.ledger.store.records import Entry, link
from counterpoint.service.witness import book as witness_book
from counterpoint.service.witness.book import HeadRefused, SeenChain, WitnessBook, _Followed

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
    lines = (tmp_path / "w" / "heads.ann").read_bytes().splitlines()
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

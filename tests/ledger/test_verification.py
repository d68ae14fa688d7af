"""Verification: a record whose chain holds is still replayed, and each entry must have been right at its place."""

import re
from contextlib import closing

import pytest
from msgspec.structs import replace
from tests.ledger.forging import forge
from tests.ledger.places import Place
from tests.ledger.wanting import Question
from tests.session.numbers_source import Numbers

import counterpoint as cp
from counterpoint.encoding import Plain, decode, encode
from counterpoint.errors import LedgerRolledBack, LedgerTampered
from counterpoint.ledger.state import SessionState
from counterpoint.ledger.store.postgres import PostgresStore
from counterpoint.ledger.witness import WitnessFile
from counterpoint.mechanisms.concurrent import Concurrent


@pytest.fixture
def used(lasting):
    """A launch, two asks, a refusal and a session inside with a launch of its own."""
    with lasting.session() as s:
        noisy = s.launch(cp.Laplace("0.25", asks=9), id="L")
        noisy.ask("apples", id="a")
        noisy.ask("beans", id="b")
        with pytest.raises(cp.BudgetExceeded):
            s.launch(cp.Laplace("0.9"), id="too much")
        s.delegate(cp.PureDP("0.5"), id="D").launch(cp.Laplace("0.125"), id="inner")
    return lasting


def verify(place):
    with closing(place.ledger()) as ledger:
        ledger.verify()


def test_a_forged_record_that_says_nothing_wrong_is_none_the_wiser(used):
    forge(used)
    verify(used)


def test_an_answer_says_what_was_before_it(used):
    """Its receipts name the head that follows from it, so a false one would deny them."""
    forge(used, before=lambda head: bytes(32))
    with pytest.raises(LedgerTampered, match="does not say what was before it"):
        verify(used)


@pytest.mark.parametrize(
    "followed", ["visits", ["visits.n"], cp.count("n > 1", of="visits"), cp.sum("n", of="members")]
)
def test_a_record_of_several_sources_holds(lasting, followed):
    visits = cp.Stream(fields={"n": cp.number(0, 9)}, unit="who", per_unit=2)
    members = cp.LiveTable("who", 1, key="row", columns={"n": cp.number(0, 9)}, updates_per_unit=2)
    source = cp.Sources(visits=visits, members=members, unit="who")
    counter = cp.Counter(epsilon=1, width=1) if isinstance(followed, list) else cp.Counter(epsilon=1)
    with lasting.session(cp.PureDP(9), source=source) as s:
        handle = s.launch(counter, of=followed)
        visits.append({"who": "ann", "n": 3}, id="monday")
        members.put({"who": "ann", "row": 1, "n": 3})
        handle.ask()
        s.launch(cp.Laplace(1)).ask(cp.count("members.n = 3", of="visits"))
    verify(lasting)


def at(kind, request, change):
    """Change the one entry of this kind and request."""

    def edit(entries):
        found = [entry for entry in entries if (entry.kind, entry.request) == (kind, request)]
        assert len(found) == 1
        return [change(entry) if entry is found[0] else entry for entry in entries]

    return edit


def twice(kind, request):
    """Repeat an entry at the end."""
    return lambda entries: entries + [entry for entry in entries if (entry.kind, entry.request) == (kind, request)]


def without(kind, request):
    return lambda entries: [entry for entry in entries if (entry.kind, entry.request) != (kind, request)]


def saying(**parts):
    """The body with some of its parts replaced."""
    places = {"parent": 1, "mechanism": 3}

    def change(entry):
        body = list(decode(entry.body.encode(), Plain))
        for name, value in parts.items():
            body[places[name]] = value
        return replace(entry, body=encode(tuple(body)).decode())

    return change


def with_body(body):
    return lambda entry: replace(entry, body=body)


FORGED = {
    "a launch that did not fit": (at("launch", "() L", saying(mechanism=cp.Laplace(2))), "the rule refuses"),
    "one that was not charged": (at("launch", "() L", saying(mechanism=cp.Laplace("0.125"))), "account at"),
    "a refusal of what fitted": (at("refusal", "() too much", saying(mechanism=cp.Laplace("0.1"))), "the rule admits"),
    "a launch in no session": (at("launch", "() L", saying(parent=(7,))), "no session to launch in"),
    "a launch twice": (twice("launch", "() L"), "on record as open"),
    "an ask twice": (twice("ask", "() a"), "on record as open"),
    "an ask and its answer twice": (
        lambda entries: entries + [entry for entry in entries if entry.request == "() a"],
        "admitted twice",
    ),
    "an answer twice": (twice("answer", "() a"), "not open"),
    "an answer to nothing": (without("ask", "() a"), "not open"),
    "a forgotten answer": (without("answer", "() a"), " a'"),
    "a forgotten request": (
        lambda entries: [entry for entry in entries if entry.request != "() a"],
        "not stored as the entries say",
    ),
    "another question": (
        at("ask", "() a", lambda entry: replace(entry, body=entry.body.replace("apples", "pears"))),
        " a'",
    ),
    "a launch that cannot be read": (at("launch", "() L", with_body("{")), "cannot be read"),
    "a launch of the unknown": (at("launch", "() L", with_body('{"type":"Unknown/1"}')), "cannot be read"),
    "a launch of nothing": (at("launch", "() L", with_body("[]")), "not have the form"),
    "a launch of words": (at("launch", "() L", saying(mechanism="Laplace")), "not have the form"),
    "an entry of no kind": (at("ask", "() a", lambda entry: replace(entry, kind="gift")), "no known kind"),
}


@pytest.mark.parametrize("what", FORGED)
def test_a_record_that_holds_together_must_be_right_too(used, what):
    edit, words = FORGED[what]
    forge(used, edit)
    with pytest.raises(LedgerTampered, match=words):
        verify(used)


def test_an_entry_says_where_it_belongs(used):
    forge(used, at("ask", "() a", lambda entry: replace(entry, number=99)), renumber=False)
    with pytest.raises(LedgerTampered, match="moved"):
        verify(used)


def test_bytes_that_are_no_entry_are_a_clear_error(used):
    used.sql("UPDATE counterpoint_entry SET entry = ? WHERE number = 4", b"\xff\x00")
    with pytest.raises(LedgerTampered, match="entry 4 cannot be read"):
        verify(used)


def account(place, path="[]"):
    ((node,),) = place.sql("SELECT node FROM counterpoint_row WHERE path = ?", path)
    return decode(bytes(node), SessionState)


def put(place, node, path="[]"):
    place.sql("UPDATE counterpoint_row SET node = ? WHERE path = ?", encode(node), path)
    forge(place)
    with pytest.raises(LedgerTampered, match="account at"):
        verify(place)


def test_an_account_is_what_the_charges_add_up_to(used):
    put(used, replace(account(used), account=account(used, "[1]").account))


def test_the_number_of_launches_is_on_record(used):
    put(used, replace(account(used), launched=1))


def test_a_session_inside_has_its_row(used):
    used.sql("DELETE FROM counterpoint_row WHERE path = '[1]'")
    forge(used)
    with pytest.raises(LedgerTampered, match="account at"):
        verify(used)


def test_a_rule_is_the_one_on_record(used):
    from counterpoint.ledger.sealed_rows import PublicRow

    richer = Concurrent(cp.Filter(cp.PureDP(1000)), used.source.relation)
    used.sql("UPDATE counterpoint_row SET public_row = ? WHERE path = '[]'", encode(PublicRow(richer, 0, None)))
    forge(used)
    with pytest.raises(LedgerTampered, match="rule at"):
        verify(used)


REQUESTS = {
    "an answer to another question": "UPDATE counterpoint_request SET digest = "
    "(SELECT digest FROM counterpoint_request WHERE request = '() b') WHERE request = '() a'",
    "one that was opened again": "UPDATE counterpoint_request SET seed = answer, answer = NULL WHERE request = '() a'",
    "one that nobody made": "INSERT INTO counterpoint_request SELECT name, 'x', '[9]', entry, digest, version, pin, "
    "sampler, answer, NULL FROM counterpoint_request WHERE request = '() a'",
}


@pytest.mark.parametrize("what", REQUESTS)
def test_requests_are_stored_as_they_were_made(used, what):
    used.sql(REQUESTS[what])
    with pytest.raises(LedgerTampered, match="not stored as the entries say"):
        verify(used)


@pytest.mark.parametrize("request_id", ["root", "() L", "() a"])
def test_a_request_whose_row_was_taken_away_is_missed(used, request_id):
    """What was answered is in the row alone: without it, its id could draw fresh noise."""
    used.sql("DELETE FROM counterpoint_request WHERE request = ?", request_id)
    with pytest.raises(LedgerTampered, match=re.escape(repr(request_id)) + " is on record, and its row is missing"):
        verify(used)


def test_a_row_that_was_taken_away_is_missed(used):
    """A handle without its row could be launched and asked again from the start."""
    for (path,) in used.sql("SELECT path FROM counterpoint_row WHERE path != '[]'"):
        used.sql("CREATE TABLE kept AS SELECT * FROM counterpoint_row WHERE path = ?", path)
        used.sql("DELETE FROM counterpoint_row WHERE path = ?", path)
        with pytest.raises(LedgerTampered, match=re.escape(f"the row at {path} is missing")):
            verify(used)
        used.sql("INSERT INTO counterpoint_row SELECT * FROM kept")
        used.sql("DROP TABLE kept")
    verify(used)


def test_a_changed_word_in_an_entry_breaks_the_chain(used):
    """Also where nothing else tells of it: not the witness, which saw no refusal, and not the head as the last one."""
    with used.reopened() as s:
        for name in ("first", "second"):
            with pytest.raises(cp.BudgetExceeded):
                s.launch(cp.Laplace("0.9"), id=name)
    for number, word, error in ((-2, b"first", LedgerTampered), (7, b"apples", LedgerRolledBack)):
        ((last,),) = used.sql("SELECT max(number) FROM counterpoint_entry")
        place = number if number > 0 else last + 1 + number
        ((data,),) = used.sql("SELECT entry FROM counterpoint_entry WHERE number = ?", place)
        assert word in bytes(data)
        put = "UPDATE counterpoint_entry SET entry = ? WHERE number = ?"
        used.sql(put, bytes(data).replace(word, b"other"), place)
        with pytest.raises(error):
            used.ledger()
        used.sql(put, bytes(data), place)
    verify(used)


@pytest.fixture
def replicas(tmp_path):
    place = Place("postgres", tmp_path)
    with place.session(cp.PureDP(10**6)) as s:
        noisy = s.launch(cp.Laplace("0.001", asks=10**6))
        yield place, s, noisy


def test_a_ledger_is_opened_and_verified_while_another_process_writes_to_it(replicas, monkeypatch):
    """Each reads the witness first and then one moment of the database: what is added in between is no tampering."""
    place, s, noisy = replicas
    size, calls = WitnessFile.size, []

    def meanwhile(*_):
        calls.append(noisy.ask("apples"))
        s.launch(cp.Laplace("0.001"))

    def slow_witness(self):
        size(self)
        meanwhile()
        return size(self)  # as late as can be

    monkeypatch.setattr(WitnessFile, "size", slow_witness)
    with place.reopened(source=Numbers({})) as other:
        ledger = other._engine.ledger
        read = PostgresStore.rows

        def slow_rows(store, name):
            meanwhile()
            yield from read(store, name)

        monkeypatch.setattr(PostgresStore, "rows", slow_rows)
        ledger.verify()
    assert len(calls) == 8, (
        "how far to compact; the session and the register: at the start, and verified with their rows"
    )


def test_what_is_left_open_is_read_as_of_one_moment(replicas, monkeypatch):
    """Else a request could be read as open and its row as the one that its answer has left."""
    place, s, noisy = replicas
    engine = s._engine
    begun = engine.ledger.begin("q", Question(noisy.path))
    with closing(place.ledger()) as other:
        asked = other._store.open_requests

        def slow(name):
            found = asked(name)
            engine.ledger.settle(begun, replace(begun.row, version=1), 5)
            return found

        monkeypatch.setattr(other._store, "open_requests", slow)
        (left,) = other.opened()
        assert left.row.version == left.version == 0

"""What is changed in a ledger's database is noticed when it is used, not only when the ledger is verified.

The tamperer has the database, open or closed, and neither the key nor the witness.
"""

import pytest
from tests.ledger.test_left_open import Flaky

import counterpoint as cp
from counterpoint.errors import InvalidRequest, LedgerTampered, Unsealable
from counterpoint.ledger.sealed_rows import Ids

DATA = {"apples": 100, "beans": 3}


@pytest.fixture
def answered(lasting):
    with lasting.session() as s:
        noisy = s.launch(cp.Laplace("0.5", asks=9), id="L")
        for name in ("a", "b"):
            noisy.ask("apples", id=name)
    return lasting


def test_a_request_whose_row_was_deleted_gets_no_fresh_noise(answered):
    answered.sql("DELETE FROM counterpoint_request WHERE request = '() a'")
    with answered.reopened() as s:
        with pytest.raises(LedgerTampered, match="a' is on record"):
            s.handles[0].ask("apples", id="a")
        assert s._engine.ledger.read((0,)).version == 2, "nothing was drawn"
        assert isinstance(s.handles[0].ask("apples", id="c"), int), "what is new is new"


def test_nor_does_it_by_another_name(answered):
    """The row is there, under an id that nobody asked by: the old one has none, and the new one does not open."""
    answered.sql("UPDATE counterpoint_request SET request = '() x' WHERE request = '() a'")
    with answered.reopened() as s:
        with pytest.raises(LedgerTampered, match="is on record"):
            s.handles[0].ask("apples", id="a")
        with pytest.raises(Unsealable):
            s.handles[0].ask("apples", id="x")
        assert s._engine.ledger.read((0,)).version == 2


def test_a_launch_whose_row_was_deleted_is_not_charged_and_started_again(answered):
    answered.sql("DELETE FROM counterpoint_request WHERE request = '() L'")
    with answered.reopened() as s:
        with pytest.raises(LedgerTampered, match="is on record"):
            s.launch(cp.Laplace("0.5", asks=9), id="L")
        assert s.loss == cp.PureDP("0.5")


def test_a_session_whose_first_request_was_deleted_does_not_begin_anew(answered):
    """Its account would be the one of a new session: the whole budget once more."""
    answered.sql("DELETE FROM counterpoint_request WHERE request = 'root'")
    with pytest.raises(LedgerTampered, match="is on record"):
        answered.session()
    with answered.reopened() as s:
        assert s.loss == cp.PureDP("0.5")


def test_items_whose_rows_were_deleted_while_the_ledger_is_open_do_not_arrive_again(postgres):
    stream = cp.Stream()
    with postgres.session(source=stream) as s:
        stream.append(1, id="monday")
        postgres.sql("DELETE FROM counterpoint_items")
        with pytest.raises(LedgerTampered, match="is on record"):
            stream.append(1, id="monday")
        assert s.loss == cp.PureDP(0)


def test_rows_deleted_while_the_ledger_is_open_are_missed_too(postgres):
    """Also by a process that did not write them, and has to read what was added since it last looked."""
    with postgres.session() as one, postgres.reopened() as two:
        noisy = one.launch(cp.Laplace("0.1", asks=9), id="L")
        noisy.ask("apples", id="a")
        two.at(noisy.path).ask("apples", id="b")
        postgres.sql("DELETE FROM counterpoint_request WHERE request IN ('() a', '() b')")
        for session in (one, two):
            for name in ("a", "b"):
                with pytest.raises(LedgerTampered, match="is on record"):
                    session.at(noisy.path).ask("apples", id=name)
        assert isinstance(two.at(noisy.path).ask("apples", id="c"), int)


def test_a_chain_that_is_rewritten_while_the_ledger_is_open_does_not_make_an_id_new(postgres):
    """What another process has added must continue what this one has seen."""
    with postgres.session() as one, postgres.reopened() as two:
        noisy = one.launch(cp.Laplace("0.1", asks=9), id="L")
        noisy.ask("apples", id="a")
        postgres.sql("DELETE FROM counterpoint_request WHERE request = '() a'")
        ((number,),) = postgres.sql("SELECT max(number) FROM counterpoint_entry")
        renamed = "convert_to(replace(convert_from(entry, 'UTF8'), '() a', '() z'), 'UTF8')"
        postgres.sql(f"UPDATE counterpoint_entry SET entry = {renamed}")
        with pytest.raises(LedgerTampered, match="does not continue"):
            two.at(noisy.path).ask("apples", id="a")
        assert number == two._engine.ledger._store.header("session").head.number


OPEN = {
    "where": "path = '[1]'",
    "its entry": "entry = entry - 1",
    "its version": "version = version + 1",
    "the data": "pin = '\"v2\"'",
    "the sampler": "sampler = sampler + 1",
    "its question": "digest = (SELECT digest FROM counterpoint_request WHERE request = '() a')",
}


@pytest.mark.parametrize("what", OPEN)
def test_an_open_request_is_finished_only_as_it_was_begun(lasting, what):
    """Noise on other data, at another place or for another question than the seed was drawn for could be compared."""
    with lasting.session(source=Flaky(DATA)) as s:
        noisy, _ = (s.launch(cp.Laplace("0.01", asks=9)) for _ in range(2))
        noisy._source.broken = False
        noisy.ask("beans", id="a")
        noisy._source.broken = True
        with pytest.raises(InvalidRequest):
            noisy.ask("apples", id="q")
        change = f"UPDATE counterpoint_request SET {OPEN[what]} WHERE seed IS NOT NULL"
        if lasting.kind == "postgres":
            with lasting.reopened(source=Flaky(DATA)) as other:
                lasting.sql(change)
                other.launch(cp.Laplace("0.01"))  # else the request is known as this process left it
                noisy._source.broken = False
                for name in ("q", "next") if what != "where" else ("q",):
                    with pytest.raises((Unsealable, LedgerTampered)):
                        noisy.ask("apples", id=name)
    if lasting.kind == "sqlite":
        lasting.sql(change)
    with pytest.raises(LedgerTampered, match="not stored as the entries say"):
        lasting.reopened()


def test_an_open_request_that_was_deleted_is_missed_at_the_next_start(lasting):
    with lasting.session(source=Flaky(DATA)) as s, pytest.raises(InvalidRequest):
        s.launch(cp.Laplace("0.01", asks=9)).ask("apples", id="q")
    lasting.sql("DELETE FROM counterpoint_request WHERE seed IS NOT NULL")
    with pytest.raises(LedgerTampered, match="missing"):
        lasting.reopened()


def test_the_question_of_an_answer_cannot_be_exchanged(answered):
    """Else the answer to one question would be given to another."""
    answered.sql(
        "UPDATE counterpoint_request SET digest = (SELECT digest FROM counterpoint_request WHERE request = '() L') "
        "WHERE request = '() a'"
    )
    with answered.reopened() as s, pytest.raises(Unsealable):
        s.handles[0].ask("apples", id="a")


def test_an_id_is_known_after_any_number_of_others():
    ids = Ids()
    for number in range(200_000):
        ids.add("ask", f"() q{number}")
    assert all(ids.has("ask", f"() q{number}") for number in range(0, 200_000, 997))
    assert not any(ids.has("ask", f"() p{number}") for number in range(0, 200_000, 997))


STORED = "path, version, public_row, node, sealed, budget_used"


def row(place, path):
    (found,) = place.sql(f"SELECT {STORED} FROM counterpoint_row WHERE path = ?", path)
    return found


def put_back(place, old):
    """The row as it once was; what was written of it is genuine, seals and all."""
    columns = "version = ?, public_row = ?, node = ?, sealed = ?, budget_used = ?"
    place.sql(f"UPDATE counterpoint_row SET {columns} WHERE path = ?", *old[1:], old[0])


def test_an_account_from_before_a_charge_has_no_budget_while_the_ledger_is_open(postgres):
    with postgres.session() as one, postgres.reopened() as two:
        before = row(postgres, "[]")
        one.launch(cp.Laplace("0.9"), id="L")
        put_back(postgres, before)
        for session in (one, two):
            with pytest.raises(LedgerTampered, match=r"the row at \[\] of 'session'"):
                session.launch(cp.Laplace("0.9"))


def test_a_revoked_grant_that_was_put_back_answers_nothing_while_the_ledger_is_open(postgres):
    with postgres.session() as whole, postgres.reopened() as other:
        given = whole.grant("ann", cp.PureDP("0.5"), id="G")
        noisy = other.acting_as("ann").at(given._path).launch(cp.Laplace("0.1", asks=9))
        noisy.ask("apples", id="a")
        before = row(postgres, "[0]")
        whole.revoke(given)
        put_back(postgres, before)
        with pytest.raises(LedgerTampered, match=r"the row at \[0\] of 'session'"):
            noisy.ask("apples", id="b")


@pytest.mark.parametrize("change", ["put back", "deleted"])
def test_a_mechanism_that_has_halted_does_not_answer_again_while_the_ledger_is_open(postgres, change):
    """Its state is sealed, and it was the state once: it would answer more often than was paid for."""
    with postgres.session() as s, postgres.reopened() as other:
        noisy = s.launch(cp.Laplace("0.1", asks=1), id="L")
        before, elsewhere = row(postgres, "[0]"), other.at(noisy.path)
        noisy.ask("apples", id="a")
        if change == "deleted":
            postgres.sql("DELETE FROM counterpoint_row WHERE path = '[0]'")
        else:
            put_back(postgres, before)
        with pytest.raises(LedgerTampered, match=r"the row at \[0\] of 'session'"):
            elsewhere.ask("apples", id="b")

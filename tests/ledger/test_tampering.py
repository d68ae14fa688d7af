"""What is changed in a ledger's database is noticed: each column of each row of each table, and every row that is gone.

The tamperer has the database, open or closed, and neither the key nor the witness.
"""

import pytest
from tests.ledger.test_left_open import Flaky

import counterpoint as cp
from counterpoint.errors import InvalidRequest, LedgerError, LedgerTampered, Unsealable
from counterpoint.ledger.crypto.ids import Ids
from counterpoint.ledger.crypto.sealing import MasterKey
from counterpoint.ledger.opening import sessions_at

DATA = {"apples": 100, "beans": 3}


def lived(place):
    """Sessions in which everything has happened that leaves a record: every column has a row that uses it."""
    with place.session(source=Flaky(DATA)) as s:
        s._engine.ledger.rotate(MasterKey.from_file(place.key))
        noisy = s.launch(cp.Laplace("0.01", asks=9), id="L")
        with pytest.raises(InvalidRequest):
            noisy.ask("apples", id="left open")
        s.launch(cp.Laplace("0.01", asks=1), id="halting")
        with pytest.raises(cp.BudgetExceeded):
            s.launch(cp.Laplace(100), id="too much")
        s.delegate(cp.PureDP("0.1"), id="D").launch(cp.Laplace("0.01"), id="inner")
        parts = s.partition("letter", within=cp.PureDP("0.1"), id="P")
        parts["a"].launch(cp.Laplace("0.01"), id="part")
    stream = cp.Stream()
    with place.session(source=stream, name="stream") as s:
        counter = s.launch(cp.Counter("0.1"), id="C")
        stream.extend([1, 1, 0])
        stream.append(1, id="line 4")
        counter.ask(id="asked")
    return place


def tables(place):
    """Every table, with its columns and their types, as the database says."""
    if place.kind == "sqlite":
        names = [name for (name,) in place.sql("SELECT name FROM sqlite_schema WHERE type = 'table'")]
        return {name: {row[1]: row[2].lower() for row in place.sql(f"PRAGMA table_info({name})")} for name in names}
    found = {}
    listed = "SELECT table_name, column_name, data_type FROM information_schema.columns WHERE table_schema = 'public'"
    for table, column, kind in place.sql(listed):
        found.setdefault(table, {})[column] = kind
    return found


SOME = {"bigint": 1, "text": "1", "bytea": b"1", "blob": b"1"}


def others(value, kind):
    """Values to put in the place of one; where there was none, one of its type."""
    if value is None:
        return [SOME[kind]]
    if isinstance(value, int):
        changed = [value + 1, value - 1]
    elif isinstance(value, str):
        changed = [value + "x", value[:-1]]
    else:
        changed = [bytes(value)[:-1] + bytes([bytes(value)[-1] ^ 1]), b""]
    return [*changed, None]


def tampered(place, most=None):
    """Each change in turn, made in the database and undone: which table, which column, to what.

    `most` is the number of rows of each table that are tried, all of them if it is None.
    """
    found = tables(place)
    assert {f"counterpoint_{table}" for table in ("book", "entry", "items", "key", "request", "row")} <= set(found)
    for people in ("counterpoint_principal", "counterpoint_api_key"):
        del found[people]  # who may call a service is on no chain: what they do is
    for table, columns in sorted(found.items()):
        rows = place.sql(f"SELECT {', '.join(columns)} FROM {table}")
        assert rows, f"no row of {table} is there to be changed"
        for row in rows[:most]:
            before = dict(zip(columns, row, strict=True))
            for column, value in before.items():
                for other in others(value, columns[column]):
                    after = {**before, column: other}
                    if put(place, table, before, after):
                        yield table, column, other
                        assert put(place, table, after, before)


def put(place, table, before, after):
    """Put a row in the place of another, unless the database itself will not have it."""
    same = " AND ".join(f"{name} IS {'NOT DISTINCT FROM ' * (place.kind == 'postgres')}?" for name in before)
    changes = ", ".join(f"{name} = ?" for name in after)
    try:
        place.sql(f"UPDATE {table} SET {changes} WHERE {same}", *after.values(), *before.values())
    except Exception as error:
        assert type(error).__module__.split(".")[0] in {"apsw", "psycopg"}
        return False
    return place.sql(f"SELECT 1 FROM {table} WHERE {same}", *after.values()) == [(1,)]


def notices(place):
    """Whether verifying all sessions is refused, with an error of ours."""
    try:
        list(sessions_at(place.durable))
    except LedgerError:
        return True
    return False


def unnoticed(place, most=None):
    assert not notices(place), "as it was left, it holds"
    changes = tampered(place, most)
    return {(table, column, type(other).__name__) for table, column, other in changes if not notices(place)}


def test_every_column_of_every_row_is_covered_by_verification(lasting):
    """In PostgreSQL of one row a table: what verifies is the same code, and each change is a connection there."""
    assert unnoticed(lived(lasting), None if lasting.kind == "sqlite" else 1) == set()


@pytest.mark.long
def test_every_column_of_every_row_is_covered_in_postgres_too(lasting):
    assert unnoticed(lived(lasting)) == set()


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
        assert number == two._engine.ledger._store.book("session").head.number


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

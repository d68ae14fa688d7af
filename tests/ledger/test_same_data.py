"""A budget belongs to a data set: a second name for the same rows, or for a stream's log, is no second budget."""

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from itertools import count

import pyarrow as pa
import pytest
from tests.engines import engines
from tests.ledger.places import Place

import counterpoint as cp
from counterpoint.errors import LedgerTampered
from counterpoint.ledger import headers as same_data
from counterpoint.ledger.open import sessions_at
from counterpoint.ledger.sealing import MasterKey

ROWS = {"person": [1, 2, 2, 3, None], "age": [41, 17, 18, 200, 5], "state": ["CA", "NY", None, "CA", "TX"]}
KEY, OTHER_KEY = b"a key of thirty-two bytes, or so", b"another key of thirty-two bytes."


def people(rows=ROWS, unit="person", key=KEY, **more):
    return cp.Table(pa.table(rows), unit, **{"rows_per_unit": None if unit is cp.each_row else 1, "key": key, **more})


def made(place, name, source, **more):
    return cp.Session(source, cp.PureDP(1), ledger=place.durable, name=name, **more)


@pytest.fixture
def taken(lasting):
    """A ledger in which these rows have a budget, of which half is spent."""
    with made(lasting, "people", people()) as s:
        s.launch(cp.Laplace("0.5"), id="L")
    return lasting


DECLARED = {
    "in the same way": people,
    "under another key": lambda: people(key=OTHER_KEY),
    "without a unit": lambda: people(unit=cp.each_row),
    "with more rows of a unit": lambda: people(rows_per_unit=2),
    "with other bounds": lambda: people(columns={"age": cp.number(0, 50, 5)}),
    "with other neighbours": lambda: people(neighbours="replace"),
    "in another order": lambda: people({name: values[::-1] for name, values in reversed(ROWS.items())}),
    "as a part": lambda: people().part("state", "CA"),
}


@pytest.mark.parametrize("how", DECLARED)
def test_the_same_rows_have_one_budget_however_they_are_declared(taken, how):
    with pytest.raises(cp.errors.DataInUse, match="'people'") as caught:
        made(taken, "again", DECLARED[how]())
    assert "delegate" in str(caught.value) and "second_budget=True" in str(caught.value)
    assert [line.split(":")[0] for line in sessions_at(taken.durable)] == ["people"], "nothing was begun"
    with made(taken, "people", people()) as s:
        assert s.loss == cp.PureDP("0.5"), "the session itself is found again"


@pytest.mark.parametrize("engine", ["duckdb", "postgres"])
def test_rows_are_the_same_wherever_they_live(taken, engine):
    public = pa.table({name: pa.array(values) for name, values in ROWS.items()})
    with pytest.raises(cp.errors.DataInUse):
        made(taken, "again", engines.bound(engine, public, "person", 1, key=KEY))


def test_a_csv_has_the_same_rows_as_the_table_it_was_written_from(taken, tmp_path):
    lines = [",".join("" if value is None else str(value) for value in row) for row in zip(*ROWS.values(), strict=True)]
    (tmp_path / "people.csv").write_text("\n".join([",".join(ROWS), *lines]) + "\n")
    with pytest.raises(cp.errors.DataInUse):
        made(taken, "again", cp.Table(str(tmp_path / "people.csv"), "person", rows_per_unit=1, key=KEY))


CHANGED = {
    "a value": {**ROWS, "age": [42, *ROWS["age"][1:]]},
    "a missing value": {**ROWS, "state": [*ROWS["state"][:2], "", *ROWS["state"][3:]]},
    "a row less": {name: values[1:] for name, values in ROWS.items()},
    "a row twice": {name: [*values, values[0]] for name, values in ROWS.items()},
}


@pytest.mark.parametrize("what", CHANGED)
def test_one_changed_row_makes_other_rows(taken, what):
    """It is a guard against mistakes, and the page says so."""
    with made(taken, "other", people(CHANGED[what])) as s:
        assert s.loss == cp.PureDP(0)


def test_a_custodian_may_insist_and_that_stays_on_record(taken):
    with made(taken, "second", people(key=OTHER_KEY), second_budget=True) as s:
        assert "custodian insisted" in s.history[0].what and "'people'" in s.history[0].what
        assert "session 'people' of this ledger has the same rows" in str(s.certificate())
        s._engine.ledger.verify()
    with cp.open(taken.durable, "people", source=people()) as s:
        assert "session 'second' of this ledger has the same rows" in str(s.certificate())
    with pytest.raises(cp.errors.DataInUse, match="'people', 'second'"):
        made(taken, "third", people())
    with made(taken, "second", people(key=OTHER_KEY)) as s:
        assert s.loss == cp.PureDP(0), "it is there, and opened without insisting again"
        assert "adds to this" in str(s.certificate())
    taken.sql("UPDATE counterpoint_session SET beside = NULL WHERE name = 'second'")
    with pytest.raises(LedgerTampered):
        cp.open(taken.durable, "second", source=people(key=OTHER_KEY))


def test_a_session_alone_on_its_data_says_nothing_of_others(taken):
    with cp.open(taken.durable, "people", source=people()) as s:
        assert "adds to this" not in str(s.certificate()) and s.history[0].what == "the data that this session is about"


def test_the_database_does_not_confirm_a_guess_of_the_rows(taken):
    """What it says of the same rows differs from ledger to ledger, and is sealed."""
    rows = people().rows()
    kept = repr([taken.sql(f"SELECT * FROM counterpoint_{table}") for table in ("session", "entry", "row", "request")])
    assert rows.hex() not in kept and repr(rows)[2:-1] not in kept
    other = Place("sqlite")
    made(other, "people", people()).close()
    ((here,),) = taken.sql("SELECT content FROM counterpoint_session WHERE name <> '@register'")
    ((there,),) = other.sql("SELECT content FROM counterpoint_session WHERE name <> '@register'")
    assert bytes(here) != bytes(there) and len(here) == len(there)


def test_rows_are_known_again_after_the_key_was_changed(taken):
    new = taken.home / "new.key"
    MasterKey.create(new)
    with closing(taken.ledger("people")) as ledger:
        ledger.rotate(MasterKey.from_file(new))
    taken.key = new
    with pytest.raises(cp.errors.DataInUse):
        made(taken, "again", people())


def test_sessions_under_different_master_keys_cannot_be_compared(taken):
    taken.key = taken.home / "other.key"
    MasterKey.create(taken.key)
    made(taken, "again", people()).close()


def test_another_ledger_is_another_matter(taken, tmp_path):
    (tmp_path / "other").mkdir()
    made(Place("sqlite", tmp_path / "other"), "people", people()).close()


def test_a_stream_has_one_session_and_equal_streams_have_their_own(lasting):
    one, two = cp.Stream(bound=1), cp.Stream(bound=1)
    with made(lasting, "one", one), made(lasting, "two", two):
        for name, stream in (("three", one), ("four", two.of())):
            with pytest.raises(cp.errors.DataInUse, match=r"'(one|two)'") as caught:
                made(lasting, name, stream)
            assert "delegate" in str(caught.value)
    assert [line.split(":")[0] for line in sessions_at(lasting.durable)] == ["one", "two"], "nothing was begun"


def test_of_two_that_begin_at_once_one_is_refused(postgres, monkeypatch):
    """Comparing and beginning is one step: the second compares when the first is there."""
    made(postgres, "first", people({"x": [1]}, unit=cp.each_row)).close()
    compare, entered = same_data.with_rows, [threading.Event(), threading.Event()]
    turns = count()

    def slow(*given):
        turn = next(turns)
        found = compare(*given)
        entered[turn].set()
        if turn == 0:
            entered[1].wait(timeout=1)  # the other compares now, if nothing keeps it from that
        return found

    monkeypatch.setattr(same_data, "with_rows", slow)

    def begin(name):
        if name == "b":
            entered[0].wait(timeout=60)
        try:
            made(postgres, name, people()).close()
        except cp.errors.DataInUse:
            return "refused"
        return "made"

    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(begin, "ab")) == ["made", "refused"]


def test_each_table_of_several_has_one_budget(lasting):
    others = people({"person": [7, 8], "age": [1, 2]})
    with made(lasting, "both", cp.Sources(people=people(), others=others, unit="person")):
        pass
    for table in (people(), people({"person": [7, 8], "age": [1, 2]})):
        with pytest.raises(cp.errors.DataInUse, match="'both'"):
            made(lasting, "one", table)
    with pytest.raises(cp.errors.DataInUse, match="'both'"):
        made(lasting, "another pair", cp.Sources(people=people(), more=people({"person": [9]}), unit="person"))
    with made(lasting, "apart", people({"person": [9], "age": [3]})):
        pass

"""Feeding a live table: every row of a source is put, as by hand, and each arrives once."""

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.engines import engines
from tests.engines.test_postgres import fresh
from tests.ledger.crashes import Killer, in_child
from tests.ledger.places import Place

import counterpoint as cp
from counterpoint.errors import InvalidParameter, InvalidRequest

SURE = cp.PureDP(10**7)
SCHEMA = pa.schema({"who": pa.string(), "k": pa.int64(), "x": pa.float64(), "other": pa.string()})
rows = st.fixed_dictionaries(
    {
        "who": st.sampled_from(["ann", "bob", None]),
        "k": st.sampled_from([1, 2, 3, None]),
        "x": st.none() | st.floats(width=32),
    }
)


def live(unit="who", **options):
    given = {"unit": unit, "rows_per_unit": 2} if unit else {"protects": "event"}
    return cp.LiveTable(**given, key="k", columns={"x": cp.number(0, 9)}, **options)


def state(table):
    return table.log.items, table.log.replaced, table.log._owners, table.pin()


@settings(max_examples=60)
@given(st.lists(rows, max_size=15), st.integers(1, 6), st.sampled_from(["who", None]))
def test_fed_rows_do_what_put_rows_do(sent, size, unit):
    names = ["who", "k", "x"] if unit else ["k", "x"]
    by_hand, by_items, by_arrow = live(unit), live(unit), live(unit)
    records = [{name: row[name] for name in names} for row in sent]
    by_hand.put(records)
    assert by_items.feed(records, name="rows", batch=size) == len(sent)
    frame = pa.Table.from_pylist([{**row, "other": "x"} for row in sent], schema=SCHEMA)
    assert by_arrow.feed(frame.to_reader(max_chunksize=4), name="rows", batch=size) == len(sent)
    assert state(by_hand) == state(by_items) == state(by_arrow)


def test_after_a_crash_the_feed_goes_on_and_each_row_was_put_once(tmp_path):
    place = Place("sqlite", tmp_path)
    sent = [{"who": f"user {n % 7}", "k": n % 3, "x": n % 10} for n in range(30)]

    def feeding(at):
        def work(say):
            with place.session(SURE, source=(table := live()), reached=Killer(at)):
                say(table.feed(sent, name="rows", batch=4))

        return work

    for at in (9, 14, 18):
        in_child(feeding(at))
    with place.session(SURE, source=(table := live())):
        assert 0 < table.pin() < 30 and table.pin() % 4 == 0
        table.feed(sent, name="rows", batch=4)
        by_hand = live()
        by_hand.put(sent)
        assert state(table) == state(by_hand)


def test_a_table_of_postgres_is_put_row_by_row():
    url = fresh(
        "CREATE TABLE changes (id serial PRIMARY KEY, who text, k int, x float8)",
        "INSERT INTO changes (who, k, x) VALUES ('ann', 1, 5), ('ann', 1, 7), (NULL, 1, 5), ('bob', NULL, 2)",
    )
    table = live()
    assert table.feed(url, relation="changes", key="id") == 4
    assert table.log.items == [(True, "1", 5), (True, "1", 7), None, None]
    engines.execute("INSERT INTO changes (who, k, x) VALUES ('bob', 2, 3)", at=url)
    assert table.feed(url, relation="changes", key="id") == 1 and table.log.items[-1] == (True, "2", 3)


def test_what_does_not_fit_is_refused_by_its_type_before_anything_is_put():
    table = live()
    cases = {
        "has no column 'k', which is declared": {"who": ["a"], "x": [1]},
        "cannot be the key": {"who": ["a"], "x": [1], "k": [1.5]},
        "cannot name the unit": {"who": [True], "x": [1], "k": [1]},
    }
    for message, columns in cases.items():
        with pytest.raises(InvalidParameter, match=message):
            table.feed(pa.table(columns), name="rows")
    with pytest.raises(InvalidRequest, match="each update of this live table needs 'k'"):
        table.feed([{"who": "ann", "x": 1}], name="rows")
    with pytest.raises(InvalidRequest, match="use the original"):
        cp.LiveTable("who", 2, key="k", columns={"x": cp.category([1, 2])}).part("x", 1).feed([], name="rows")
    assert table.pin() == 0

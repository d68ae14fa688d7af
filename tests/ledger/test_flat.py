"""What a request reads does not grow with the history."""

import pytest
from tests.ledger.places import Place

from counterpoint.ledger.store.tables import Tables

FEW = {
    f"{Tables._OPEN} AND path = ?": "counterpoint_open",
    Tables._OPEN: "counterpoint_open",
    f"{Tables._SENT} ORDER BY part": "counterpoint_sent",
}
"""What looks for a few among many, and the index that knows the few alone."""


def test_sqlite_finds_records_by_an_index_over_all_that_is_known(tmp_path):
    place = Place("sqlite", tmp_path)
    with place.session() as s:
        store = s._engine.ledger._store
        for table, more in ((Tables._ROW, "path"), (Tables._ASKED, "request")):
            (line,) = store._run(f"EXPLAIN QUERY PLAN {table} AND {more} IN (?, ?)", ("session", "a", "b"))
            assert line[-1].startswith("SEARCH") and f"(name=? AND {more}=?)" in line[-1]


@pytest.mark.parametrize("sql", FEW)
def test_sqlite_finds_few_among_many_by_the_index_of_those(tmp_path, sql):
    place = Place("sqlite", tmp_path)
    with place.session() as s:
        (line,) = s._engine.ledger._store._run(f"EXPLAIN QUERY PLAN {sql}", ("session", "a")[: sql.count("?")])
    assert f"USING INDEX {FEW[sql]}" in line[-1]


HISTORY = (
    """INSERT INTO counterpoint_request SELECT ?, i, '[' || i || ']', i, '', 0, '', 0, '', NULL
        FROM generate_series(1, 20000) AS i""",
    "UPDATE counterpoint_request SET seed = NULL, answer = '' WHERE name = ?",
    """INSERT INTO counterpoint_items SELECT ?, i, 1, '', 'r' || i, 0 FROM generate_series(1, 20000) AS i""",
)
"""Of a session: requests that were opened and settled, and items that were sent."""


@pytest.mark.parametrize("sql", [f"{Tables._OPEN} AND path = ANY(?)", *FEW])
def test_postgres_does_not_read_a_session_that_its_statistics_know_nothing_of(postgres, sql):
    """It takes it for small, and would read all of it."""
    with postgres.session() as s:
        for session, statements in (("before", (*HISTORY, "ANALYZE")), ("now", HISTORY)):
            for statement in statements:
                postgres.sql(statement, *[session] * statement.count("?"))
        given = ("now", [f"[{path}]" for path in range(64)] if "ANY" in sql else "[7]")[: sql.count("?")]
        plan = s._engine.ledger._store._run(f"EXPLAIN {sql}", given)
    text = " ".join(line for (line,) in plan)
    assert FEW.get(sql, "counterpoint_open") in text and "pkey" not in text


def test_postgres_looks_records_up_however_small_the_tables_are(postgres):
    """A plan that reads a small table as a whole would be kept while it grows."""
    with postgres.session() as s:
        for sql in (f"{Tables._ROW} AND path = ?", f"{Tables._ASKED} AND request = ?", *FEW):
            plan = s._engine.ledger._store._run(f"EXPLAIN {sql}", ("session", "[7]")[: sql.count("?")])
            assert "Seq Scan" not in " ".join(line for (line,) in plan)

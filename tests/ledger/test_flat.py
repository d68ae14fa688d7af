"""What a request reads does not grow with the history."""

from tests.ledger.places import Place

from counterpoint.ledger.tables import Tables


def test_sqlite_finds_records_by_an_index_over_all_that_is_known(tmp_path):
    place = Place("sqlite", tmp_path)
    with place.session() as s:
        store = s._engine.ledger._store
        for table, more in ((Tables._ROW, "path"), (Tables._ASKED, "request"), (Tables._ASKED, "path")):
            still = " AND seed IS NOT NULL" if (table, more) == (Tables._ASKED, "path") else ""
            sql = f"EXPLAIN QUERY PLAN {table}{still} AND {more} IN (?, ?)"
            (line,) = store._run(sql, ("session", "a", "b"))
            assert line[-1].startswith("SEARCH") and f"(name=? AND {more}=?)" in line[-1]

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


def test_postgres_is_told_to_keep_its_statistics_fresh(postgres):
    with postgres.session():
        ((options,),) = postgres.sql("SELECT reloptions FROM pg_class WHERE relname = 'counterpoint_request'")
    assert sorted(options) == ["autovacuum_analyze_scale_factor=0", "autovacuum_analyze_threshold=1000"]

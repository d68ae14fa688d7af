"""What a request reads does not grow with the history, however old a database's statistics are."""

import pytest
from tests.ledger.places import Place

from counterpoint.ledger.postgres import _EACH_OPEN, _EACH_REQUEST, _EACH_ROW
from counterpoint.ledger.tables import Tables

MANY = 20_000
ROWS = "INSERT INTO counterpoint_row (name, path, version, frame) SELECT %s, '[' || n || ']', 1, '' "
REQUESTS = """INSERT INTO counterpoint_request (name, request, path, entry, digest, version, pin, sampler, seed, answer)
    SELECT %s, md5(n::text), '[' || n || ']', n, '', 0, '', 1, 'open', NULL """
SETTLED = "UPDATE counterpoint_request SET seed = NULL, answer = '' WHERE name = %s AND seed = 'open'"


@pytest.fixture
def outgrown(postgres):
    """A session that has become long since the server last looked at its tables."""
    for name in ("earlier", "later"):
        with postgres.session(name=name):
            for statement in (ROWS, REQUESTS):
                postgres.sql(f"{statement} FROM generate_series(1, {MANY}) AS n", name)
            postgres.sql(SETTLED, name)
        if name == "earlier":
            postgres.sql("ANALYZE")
    return postgres


@pytest.mark.parametrize("statement", [_EACH_REQUEST, _EACH_OPEN, _EACH_ROW])
def test_postgres_looks_up_each_record_by_itself(outgrown, statement):
    """Looked for all at once (`= ANY`), the open requests made it read every request of the session."""
    assert "Rows Removed" not in plan(outgrown, statement, (["[0]", "[]", "none"], "later"))


def plan(place: Place, statement: str, parameters: tuple[object, ...]) -> str:
    import psycopg

    with psycopg.connect(place.url, autocommit=True) as connection:
        found = connection.execute(f"EXPLAIN ANALYZE {statement.replace('?', '%s')}", parameters).fetchall()
    return "\n".join(line for (line,) in found)


def test_sqlite_finds_records_by_an_index_over_all_that_is_known(tmp_path):
    place = Place("sqlite", tmp_path)
    with place.session() as s:
        store = s._engine.ledger._store
        for table, more in ((Tables._ROW, "path"), (Tables._ASKED, "request"), (Tables._ASKED, "path")):
            still = " AND seed IS NOT NULL" if (table, more) == (Tables._ASKED, "path") else ""
            sql = f"EXPLAIN QUERY PLAN {table}{still} AND {more} IN (?, ?)"
            (line,) = store._run(sql, ("session", "a", "b"))
            assert line[-1].startswith("SEARCH") and f"(name=? AND {more}=?)" in line[-1]

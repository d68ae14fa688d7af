"""The embedded engine: a query that is kept parsed answers about the rows of now."""

import numpy as np
import pytest

from counterpoint.engines.duckdb import _QUERIES, empty_engine
from counterpoint.errors import DataFailed

COUNT = "SELECT COUNT(*) FROM rows"


@pytest.fixture
def engine():
    made = empty_engine("CREATE TABLE rows (age BIGINT)")
    yield made
    made.close()


def test_a_query_asked_again_counts_the_rows_that_came_meanwhile(engine):
    counts = [engine.run(COUNT)]
    engine.insert("rows", [np.array([1, 2])])
    assert [*counts, engine.run(COUNT)] == [[(0,)], [(2,)]]


def test_a_query_asked_again_sees_a_table_that_was_made_anew(engine):
    assert engine.run("SELECT * FROM rows") == []
    engine.drop("rows")
    with pytest.raises(DataFailed):
        engine.run("SELECT * FROM rows")
    engine.create("rows", "SELECT 'a' AS name, 7 AS age")
    assert engine.run("SELECT * FROM rows") == [("a", 7)]


def test_few_queries_are_kept(engine):
    for number in range(2 * _QUERIES):
        assert engine.run(f"SELECT {number}") == [(number,)]
    assert len(engine._parsed) <= _QUERIES

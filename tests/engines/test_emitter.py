"""One emitter, several dialects: the same tree, only generated names, integers and literals."""

import re
import subprocess
import sys

import duckdb
import pytest
import sqlglot
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlglot import exp
from tests.sources import people

from counterpoint.engines.duckdb import DUCKDB
from counterpoint.engines.postgres import POSTGRES
from counterpoint.engines.spark import SPARK
from counterpoint.queries.plan import ByThreshold, ColumnTotal, QueryPlan, Rows, limbs, statement, tally
from counterpoint.schema.expressions.tree import In, Like, Not, steady_pattern

SOURCE = people.table({})
DIALECTS = (DUCKDB, POSTGRES, SPARK)


@settings(max_examples=60, deadline=None)
@given(people.questions)
def test_every_dialect_parses_and_names_nothing_but_stored_columns(request_):
    plan = request_.plan(SOURCE.declaration)
    names = {f"{kind}{i}" for kind in "ct" for i in range(len(SOURCE.declaration.columns))} | {"u"}
    for dialect in DIALECTS:
        trees = sqlglot.parse(statement(plan, "bound", dialect=dialect), read=dialect.name)
        assert len(trees) == 1 and isinstance(trees[0], exp.Select)
        assert {column.name for column in trees[0].find_all(exp.Column)} <= names | {"n"}
        assert {table.name for table in trees[0].find_all(exp.Table)} == {"bound"}
        assert not list(trees[0].find_all(exp.Div, exp.Anonymous))


@pytest.mark.parametrize("text", ["it's", "\\", "\\'", "'; DROP TABLE bound; --", "é😀", '"', "%_", "\n", "$1 ? :x"])
def test_a_text_literal_means_itself_in_every_dialect(text):
    plan = QueryPlan(Rows(), ((1,),), In(0, (text,)))
    for dialect in DIALECTS:
        tree = sqlglot.parse_one(statement(plan, "bound", dialect=dialect), read=dialect.name)
        assert [found.this for found in tree.find_all(exp.Literal) if found.is_string] == [text]
    connection = duckdb.connect()
    connection.execute("CREATE TABLE bound (c0 VARCHAR)")
    connection.execute("INSERT INTO bound VALUES (?), ('other'), (NULL)", [text])
    assert tally(plan, connection.execute(statement(plan, "bound")).fetchall()) == (1,)
    negated = QueryPlan(Rows(), ((1,),), Not(In(0, (text,))))
    assert tally(negated, connection.execute(statement(negated, "bound")).fetchall()) == (1,)


def like(text, pattern):
    """LIKE by its definition."""
    if not pattern:
        return not text
    if pattern[0] == "%":
        return any(like(text[i:], pattern[1:]) for i in range(len(text) + 1))
    return bool(text) and pattern[0] in ("_", text[0]) and like(text[1:], pattern[1:])


@settings(max_examples=400, deadline=None)
@given(st.text("ab.\n😀", max_size=8), st.text("ab.\n😀%_", max_size=7))
def test_a_like_as_a_regular_expression_finds_the_same(text, pattern):
    assert (re.search(steady_pattern(pattern), text) is not None) == like(text, pattern)


def test_no_text_makes_that_regular_expression_try_every_way_to_share_it_out():
    for piece in ("%_", "%a_", "%_a", "%a"):  # where it did, this would not come to an end
        assert re.search(steady_pattern(30 * piece + "%b_"), "b" + 3000 * "a") is None
        assert re.search(steady_pattern(30 * piece + "%"), "b" + 3000 * "a") is not None


def test_like_is_rewritten_where_the_engine_would_go_back_and_forth_and_nowhere_else():
    plan = QueryPlan(Rows(), ((1,),), Not(Like(0, "%it's_%")))
    assert "c0 LIKE '%it''s_%'" in statement(plan, "bound") and "LIKE" in statement(plan, "bound", dialect=POSTGRES)
    tree = sqlglot.parse_one(statement(plan, "bound", dialect=SPARK), read="spark")
    assert not list(tree.find_all(exp.Like))
    assert [found.expression.this for found in tree.find_all(exp.RegexpLike)] == [steady_pattern("%it's_%")]


def test_sums_are_wide_in_every_dialect():
    plan = QueryPlan(ColumnTotal(0, 2**15), ((1,),), None)
    assert statement(plan, "t", dialect=DUCKDB) == "SELECT COALESCE(SUM(c0), 0) FROM t"
    low, high = "SUM(SHIFTRIGHT(c0, 0) & 32767)", "SUM(SHIFTRIGHT(c0, 15))"
    wide = [f"(CAST({part} AS DECIMAL(38, 0)) * {times})" for part, times in ((low, 1), (high, 2**15))]
    assert statement(plan, "t", dialect=SPARK) == f"SELECT COALESCE({' + '.join(wide)}, 0) FROM t"
    few = QueryPlan(ColumnTotal(0, 2**15 - 1), ((1,),), None)
    assert statement(few, "t", dialect=SPARK) == "SELECT COALESCE(SUM(c0), 0) FROM t"
    squares = QueryPlan(ColumnTotal(0, 2**8, powers=(2,)), ((1,),), None)
    assert "SUM(SHIFTRIGHT(c0 * c0, 15))" in statement(squares, "t", dialect=SPARK), "they are as far as 2^16"


@given(st.integers(0, 2**62).flatmap(lambda most: st.tuples(st.just(most), st.sampled_from((-most, most, most // 3)))))
def test_limbs_make_up_an_integer_and_two_to_the_48_of_them_a_sum_of_64_bits(drawn):
    most, value = drawn
    *lower, highest = limbs(most)
    parts = [*((value >> shift) % 2**15 for shift in lower), value >> highest]
    assert sum(part << shift for part, shift in zip(parts, limbs(most), strict=True)) == value
    assert max(map(abs, parts)) * (2**48 - 1) < 2**63


def test_many_thresholds_are_one_pass_and_a_shallow_tree():
    connection = duckdb.connect()
    connection.execute("CREATE TABLE bound AS SELECT i - 5 AS c0 FROM range(1010) AS r(i) UNION ALL SELECT NULL")
    for span in (2**17, 2**17 + 1):
        plan = QueryPlan(Rows(), ((1,) * 1000,), None, ByThreshold(0, tuple(range(1000)), span), 1000)
        sql = statement(plan, "bound")
        assert sql.count("bound") == 1 and sql.count("CASE") == 1000
        found = tally(plan, connection.execute(sql).fetchall())
        assert found == (5, *[1] * 999, 6) and sum(found) == 1010


def test_importing_tables_loads_neither_engine_nor_parser():
    heavy = {"duckdb", "sqlglot", "pyarrow", "pandas"}
    code = f"import sys, counterpoint.sources.table; print(sorted({heavy} & set(sys.modules)))"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"

"""What this SQL does not have is refused by its name, with its place and what would work; nothing else is raised."""

import logging
from contextlib import suppress

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from counterpoint.errors import CounterpointError, InvalidRequest, UnsupportedSQL
from counterpoint.sql_requests.query import SQLQuery
from counterpoint.sql_requests.select import sql

REFUSED = [
    # statements
    ("", "queries of more than"),
    ("   ", "queries of more than"),
    (";", "queries of more than"),
    ("FROM t", "statements other than SELECT"),
    ("FROM t SELECT COUNT(*)", "statements other than SELECT"),
    ("(SELECT COUNT(*) FROM t)", "statements other than SELECT"),
    ("INSERT INTO t VALUES (1)", "statements other than SELECT"),
    ("DROP TABLE t", "statements other than SELECT"),
    ("COPY t TO 'x.csv'", "statements other than SELECT"),
    ("ATTACH 'x.db'", "statements other than SELECT"),
    ("INSTALL httpfs", "statements other than SELECT"),
    ("PRAGMA database_list", "statements other than SELECT"),
    ("SET threads = 1", "statements other than SELECT"),
    ("EXPLAIN SELECT COUNT(*) FROM t", "statements other than SELECT"),
    ("DESCRIBE t", "statements other than SELECT"),
    ("PIVOT t ON a USING SUM(b)", "PIVOT"),
    ("WITH a AS (SELECT COUNT(*) FROM t) SELECT * FROM a", "WITH (common table expressions)"),
    ("SELECT COUNT(*) FROM t; SELECT COUNT(*) FROM t", "a second statement"),
    ("SELECT COUNT(*) FROM t; DROP TABLE t", "a second statement"),
    ("SELECT COUNT(*) FROM t;;", "a second statement"),
    ("SELECT COUNT(*) FROM t -- x", "comments"),
    ("SELECT COUNT(*) /* x */ FROM t", "comments"),
    ("/*+ PARALLEL */ SELECT COUNT(*) FROM t", "comments"),
    ("SELECT COUNT(*) FROM t; -- x", "comments"),
    ("-- SELECT COUNT(*) FROM t", "queries of more than"),
    # shapes of SELECT
    ("SELECT 1", "queries without FROM"),
    ("SELECT COUNT(*)", "queries without FROM"),
    ("SELECT 1 FROM t", "constants in SELECT"),
    ("SELECT NULL, COUNT(*) FROM t", "constants in SELECT"),
    ("SELECT * FROM t", "SELECT *"),
    ("SELECT t.* FROM t", "SELECT *"),
    ("SELECT x FROM t", "raw columns in SELECT"),
    ("SELECT x, COUNT(*) FROM t", "raw columns in SELECT"),
    ("SELECT x, COUNT(*) FROM t GROUP BY y", "raw columns in SELECT"),
    ("SELECT x, COUNT(*) FROM t GROUP BY X", "raw columns in SELECT"),  # capital letters are other letters
    ("SELECT DISTINCT x FROM t", "SELECT DISTINCT"),
    ("SELECT DISTINCT ON (x) COUNT(*) FROM t", "SELECT DISTINCT"),
    ("SELECT x FROM t GROUP BY x", "queries without an aggregate"),
    ("SELECT COUNT(*) FROM t GROUP BY x", "GROUP BY x without it in SELECT"),
    ("SELECT COUNT(*) AS n, SUM(x) AS n FROM t", "two outputs of one name"),
    ("SELECT COUNT(*) AS n, SUM(x) AS n_error FROM t", "two outputs of one name"),
    ("SELECT x AS n_rank_error, MEDIAN(y) AS n FROM t GROUP BY x", "two outputs of one name"),
    ("SELECT COUNT(*) AS a, COUNT(*) AS b FROM t", "the same aggregate twice"),
    ("SELECT COUNT(*), MEDIAN(x) FROM t", "these aggregates together"),
    ("SELECT COUNT(*) AS column1, SUM(x) FROM t", "these aggregates together"),
    ("SELECT COUNT(*) AS x, x AS y FROM t GROUP BY x", "an alias that is a column of GROUP BY"),
    ("SELECT COUNT(*) FROM t UNION SELECT COUNT(*) FROM u", "UNION"),
    ("SELECT COUNT(*) FROM t INTERSECT SELECT COUNT(*) FROM u", "INTERSECT"),
    ("SELECT COUNT(*) FROM t EXCEPT SELECT COUNT(*) FROM u", "EXCEPT"),
    ("SELECT COUNT(*) INTO u FROM t", "INTO"),
    ("SELECT COUNT(*) FROM t FOR UPDATE", "FOR UPDATE with SELECT"),
    ("SELECT COUNT(*) FROM t USING SAMPLE 10%", "SAMPLE with SELECT"),
    # subqueries and windows
    ("SELECT (SELECT COUNT(*) FROM t) FROM t", "subqueries"),
    ("SELECT COUNT(*) FROM (SELECT x FROM t)", "subqueries"),
    ("SELECT COUNT(*) FROM t WHERE x IN (SELECT y FROM u)", "subqueries"),
    ("SELECT COUNT(*) FROM t WHERE EXISTS (SELECT 1)", "EXISTS (subqueries)"),
    ("SELECT COUNT(*) FROM t HAVING COUNT(*) > (SELECT 1)", "subqueries"),
    ("SELECT SUM(x) OVER () FROM t", "OVER (window functions)"),
    ("SELECT SUM(x) OVER (PARTITION BY y) FROM t", "OVER (window functions)"),
    ("SELECT COUNT(*) FROM t WINDOW w AS (ORDER BY x)", "WINDOW (window functions)"),
    ("SELECT COUNT(*) FROM t QUALIFY COUNT(*) > 1", "QUALIFY (window functions)"),
    # tables
    ("SELECT COUNT(*) FROM 'people.csv'", "tables other than a source by its name"),
    ('SELECT COUNT(*) FROM "a b"', "tables other than a source by its name"),
    ("SELECT COUNT(*) FROM read_csv('x')", "tables other than a source by its name"),
    ("SELECT COUNT(*) FROM range(10)", "tables other than a source by its name"),
    ("SELECT COUNT(*) FROM (VALUES (1)) AS t", "tables other than a source by its name"),
    ("SELECT COUNT(*) FROM other.t", "schema with TABLE"),
    ("SELECT COUNT(*) FROM t AS u(x)", "names of columns with TABLEALIAS"),
    ("SELECT COUNT(*) FROM t TABLESAMPLE 10%", "TABLESAMPLE"),
    ("SELECT COUNT(*) FROM t AT (VERSION => 3)", "AT with TABLE"),
    ("SELECT COUNT(*) FROM t, u", "joins other than LEFT JOIN"),
    ("SELECT COUNT(*) FROM t JOIN u USING (k)", "joins other than LEFT JOIN"),
    ("SELECT COUNT(*) FROM t CROSS JOIN u", "joins other than LEFT JOIN"),
    ("SELECT COUNT(*) FROM t FULL JOIN u USING (k)", "joins other than LEFT JOIN"),
    ("SELECT COUNT(*) FROM t NATURAL LEFT JOIN u", "joins other than LEFT JOIN"),
    ("SELECT COUNT(*) FROM t LEFT JOIN u ON t.k <> u.k", "joins on anything other than columns of both sides"),
    ("SELECT COUNT(*) FROM t LEFT JOIN u ON u.k = u.k", "joins on anything other than columns of both sides"),
    ("SELECT COUNT(*) FROM t LEFT JOIN u ON t.k = t.k", "joins on anything other than columns of both sides"),
    ("SELECT COUNT(*) FROM t LEFT JOIN u ON t.k = u.k OR t.j = u.j", "joins on anything other than columns of both"),
    ("SELECT COUNT(*) FROM t LEFT JOIN u ON TRUE", "joins on anything other than columns of both sides"),
    ("SELECT COUNT(*) FROM t LEFT JOIN u", "joins on nothing"),
    ("SELECT COUNT(*) FROM t LEFT JOIN u USING (k) LEFT JOIN u USING (k)", "two tables of one name"),
    ("SELECT COUNT(*) FROM t WHERE u.x = 3", "columns of 'u', which is not in FROM"),
    ("SELECT COUNT(*) FROM t AS s WHERE t.x = 3", "columns of 't', which is not in FROM"),
    ("SELECT COUNT(*) FROM t WHERE a.b.c = 3", "schema with COLUMN"),
    # functions
    ("SELECT now(), COUNT(*) FROM t", "the function NOW"),
    ("SELECT random() FROM t", "the function RANDOM"),
    ("SELECT pg_sleep(10) FROM t", "the function PG_SLEEP"),
    ("SELECT nextval('s') FROM t", "the function NEXTVAL"),
    ("SELECT getenv('HOME') FROM t", "the function GETENV"),
    ("SELECT CURRENT_DATE, COUNT(*) FROM t", "CURRENT_DATE"),
    ("SELECT COUNT(*) FROM t WHERE d < CURRENT_TIMESTAMP", "CURRENT_TIMESTAMP"),
    ("SELECT MODE(x) FROM t", "the function MODE"),
    ("SELECT FIRST(x) FROM t", "the function FIRST"),
    ("SELECT ANY_VALUE(x) FROM t", "the function ANY_VALUE"),
    ("SELECT STRING_AGG(x, ',') FROM t", "the function"),
    ("SELECT ARRAY_AGG(x) FROM t", "the function ARRAY_AGG"),
    ("SELECT CORR(x, y) FROM t", "the function CORR"),
    ("SELECT APPROX_COUNT_DISTINCT(x) FROM t", "the function APPROX_COUNT_DISTINCT"),
    ("SELECT UNNEST([1, 2]) FROM t", "the function UNNEST"),
    ("SELECT STDDEV(x) FROM t", "the variance of a sample"),
    ("SELECT VARIANCE(x) FROM t", "the variance of a sample"),
    ("SELECT VAR_SAMP(x) FROM t", "the variance of a sample"),
    ("SELECT MEDIAN(x) / 2 FROM t", "arithmetic on a chosen value"),
    ("SELECT MAX(x) - MIN(x) FROM t", "arithmetic on a chosen value"),
    ("SELECT SUM(x) / y FROM t", "arithmetic on aggregates other than"),
    ("SELECT SUM(x) % 2 FROM t", "arithmetic on aggregates other than"),
    ("SELECT SUM(x) + 'a' FROM t", "arithmetic on aggregates other than"),
    ("SELECT SUM(x) + 1e9999 FROM t", "a number of this size"),
    ("SELECT SUM(x) / STDDEV(x) FROM t", "the variance of a sample"),
    ("SELECT ROUND(AVG(x), 1) FROM t", "arithmetic on aggregates other than"),
    ("SELECT COUNT(*)::INT FROM t", "arithmetic on aggregates other than"),
    ("SELECT CASE WHEN COUNT(*) > 3 THEN 1 END FROM t", "arithmetic on aggregates other than"),
    ("SELECT COUNT(x, y) FROM t", "second argument with COUNT"),
    ("SELECT COUNT(* EXCLUDE (x)) FROM t", "EXCEPT with STAR"),
    ("SELECT COUNT(DISTINCT x, y) FROM t", "COUNT(DISTINCT ...) of several columns"),
    ("SELECT COUNT(DISTINCT x + 1) FROM t", "an expression where a column is needed"),
    ("SELECT SUM(DISTINCT x) FROM t", "DISTINCT x in an expression"),
    ("SELECT SUM(x ORDER BY y) FROM t", "x ORDER BY y in an expression"),
    ("SELECT SUM(COUNT(*)) FROM t", "COUNT in an expression"),
    ("SELECT SUM(random()) FROM t", "RANDOM in an expression"),
    ("SELECT SUM(x % 2) FROM t", "x % 2 in an expression"),
    ("SELECT SUM(day + INTERVAL 3 DAY) FROM t", "INTERVAL '3' DAY in an expression"),
    ("SELECT SUM(x::INT) FROM t", "CAST in an expression"),
    ("SELECT SUM(LENGTH(name)) FROM t", "LENGTH in an expression"),
    ("SELECT COUNT(*) FROM t WHERE random() > 0.5", "RANDOM in an expression"),
    ("SELECT COUNT(*) FROM t WHERE getenv('HOME') = 'x'", "GETENV in an expression"),
    ("SELECT COUNT(*) FROM t WHERE name ILIKE 'a'", "name ILIKE 'a' in an expression"),
    ("SELECT COUNT(*) FROM t WHERE WEEKDAY(day) = 0", "WEEKDAY in an expression"),
    ("SELECT COUNT(*) FROM t WHERE x IS DISTINCT FROM 3", "x IS DISTINCT FROM 3 in an expression"),
    ("SELECT COUNT(*) FROM t WHERE (x, y) = (1, 2)", "TUPLE in an expression"),
    ("SELECT QUANTILE(x, [0.1, 0.9]) FROM t", "a quantile at anything other than one number"),
    ("SELECT QUANTILE(x, y) FROM t", "a quantile at anything other than one number"),
    ("SELECT PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY x DESC) FROM t", "this order in WITHIN GROUP"),
    ("SELECT SUM(x) FROM t WHERE x = ?", "parameters"),
    ("SELECT SUM(x) FROM t WHERE x = $1", "parameters"),
    # groups, and what is done with the answer
    ("SELECT COUNT(*) FROM t GROUP BY ALL", "ALL with GROUP"),
    ("SELECT x, COUNT(*) FROM t GROUP BY CUBE (x)", "CUBE"),
    ("SELECT x, COUNT(*) FROM t GROUP BY ROLLUP (x)", "ROLLUP"),
    ("SELECT x, COUNT(*) FROM t GROUP BY GROUPING SETS ((x), ())", "GROUPING SETS"),
    ("SELECT x, COUNT(*) FROM t GROUP BY x + 1", "raw columns in SELECT"),
    ("SELECT COUNT(*) FROM t GROUP BY 1", "GROUP BY of an aggregate"),
    ("SELECT COUNT(*) FROM t GROUP BY random()", "RANDOM in an expression"),
    ("SELECT x, COUNT(*) FROM t GROUP BY 3", "an output of this number"),
    ("SELECT x, COUNT(*) FROM t GROUP BY 0", "an output of this number"),
    ("SELECT COUNT(*) FROM t HAVING x > 3", "HAVING of a raw column"),
    ("SELECT x, COUNT(*) AS n FROM t GROUP BY x HAVING y > 3", "HAVING of a raw column"),
    ("SELECT COUNT(*) FROM t HAVING SUM(x) > 3", "HAVING of an aggregate that SELECT lacks"),
    ("SELECT COUNT(*) FROM t HAVING MODE(x) > 3", "this expression in HAVING"),
    ("SELECT COUNT(*) FROM t HAVING random() > 0.5", "this expression in HAVING"),
    ("SELECT COUNT(*) FROM t HAVING COUNT(*) > COUNT(*)", "HAVING with anything other than literals"),
    ("SELECT COUNT(*) FROM t HAVING COUNT(*) + 1 > 3", "this expression in HAVING"),
    ("SELECT COUNT(*) FROM t HAVING TRUE", "this condition in HAVING"),
    ("SELECT COUNT(*) FROM t HAVING COUNT(*) > 1e99999", "a number of this size"),
    ("SELECT COUNT(*) FROM t ORDER BY x", "ORDER BY of a raw column"),
    ("SELECT COUNT(*) FROM t ORDER BY SUM(x)", "ORDER BY of an aggregate that SELECT lacks"),
    ("SELECT COUNT(*) FROM t ORDER BY random()", "this expression in ORDER BY"),
    ("SELECT COUNT(*) FROM t ORDER BY ALL", "this expression in ORDER BY"),
    ("SELECT COUNT(*) FROM t ORDER BY 2", "an output of this number"),
    ("SELECT COUNT(*) FROM t LIMIT -1", "LIMIT with anything other than a whole number"),
    ("SELECT COUNT(*) FROM t LIMIT 1.5", "LIMIT with anything other than a whole number"),
    ("SELECT COUNT(*) FROM t LIMIT 10%", "percent with LIMIT"),
    ("SELECT COUNT(*) FROM t LIMIT COUNT(*)", "LIMIT with anything other than a whole number"),
    ("SELECT COUNT(*) FROM t LIMIT 5 OFFSET 3", "OFFSET"),
    ("SELECT COUNT(*) FROM t FETCH FIRST 3 ROWS ONLY", "FETCH"),
    ("SELECT COUNT(*) AS n FROM t HAVING n > 3", "HAVING, ORDER BY or LIMIT without GROUP BY"),
    ("SELECT COUNT(*) AS n FROM t ORDER BY n", "HAVING, ORDER BY or LIMIT without GROUP BY"),
    ("SELECT COUNT(*) AS n FROM t LIMIT 0", "HAVING, ORDER BY or LIMIT without GROUP BY"),
    # WHERE
    ("SELECT COUNT(*) FROM t WHERE y = 'a' 'b'", "CONCAT in an expression"),
    # sizes
    ("SELECT COUNT(*) FROM t WHERE " + "(" * 30 + "x = 1" + ")" * 30, "nesting deeper than 20"),
    ("SELECT COUNT(*) FROM t WHERE " + "NOT " * 30 + "x = 1", "nesting deeper than 20"),
    ("SELECT COUNT(*) FROM t WHERE x = " + "- " * 30 + "1", "nesting deeper than 20"),
    ("SELECT COUNT(*) FROM t WHERE x = " + "[" * 30 + "]" * 30, "nesting deeper than 20"),
    ("SELECT COUNT(*) FROM t WHERE " + "CASE WHEN x THEN " * 30 + "y" + " END" * 30, "nesting deeper than 20"),
    ("SELECT COUNT(*) FROM t WHERE x IN (" + "1, " * 1500 + "1)", "queries of more than 2000 words"),
    ("SELECT COUNT(*) FROM t" + " " * 10_000, "queries other than a text of at most 10000 characters"),
    ("SELECT COUNT(*) FROM t WHERE x = 'open", "these words"),
    ("SELECT COUNT(*) FROM t WHERE", "this sentence"),
    ("SELECT COUNT(*) FROM t HAVING", "this sentence"),
    ("SELECT COUNT(*) FROM t ORDER BY", "this sentence"),
    ("SELECT COUNT(*) FROM t GROUP BY", "GROUP BY without columns"),
    ("SELECT COUNT(*) FROM FROM t", "tables other than a source by its name"),
]


@pytest.mark.parametrize(("text", "found"), REFUSED)
def test_what_is_missing_is_refused_by_its_name(text, found, caplog):
    with caplog.at_level(logging.DEBUG), pytest.raises(UnsupportedSQL) as refused:
        sql(text)
    assert refused.value.found.startswith(found)
    assert refused.value.works in str(refused.value)
    assert not caplog.records  # the parser has its own warnings


def test_a_refusal_says_what_was_found_where_and_what_would_work():
    with pytest.raises(UnsupportedSQL) as refused:
        sql("SELECT carrier,\n  SUM(x) OVER ()\nFROM flights")
    assert refused.value.found == "OVER (window functions)"
    assert refused.value.where == "at line 2, character 10, 'OVER'"
    assert refused.value.works == "compute it in Python from the answer"
    with pytest.raises(UnsupportedSQL, match=r"at line 3, character 4, 'b'"):
        sql("SELECT a,\n  COUNT(*),\n   b FROM flights GROUP BY a")


@pytest.mark.parametrize("text", [None, 3, b"SELECT COUNT(*) FROM t", ["SELECT"]])
def test_a_query_is_a_text(text):
    with pytest.raises(UnsupportedSQL, match="a text of at most"):
        sql(text)


@pytest.mark.parametrize("text", ["SELECT COUNT(*) FROM t WHERE x = '\0'", "SELECT COUNT(*) FROM t WHERE x = '\ud800'"])
def test_texts_that_no_engine_stores_are_refused(text):
    with pytest.raises(InvalidRequest, match="NUL or a surrogate"):
        sql(text)


WORDS = """SELECT FROM WHERE GROUP BY HAVING ORDER LIMIT AS AND OR NOT IN BETWEEN LIKE IS NULL DISTINCT LEFT JOIN
    USING ON
    COUNT SUM AVG MEDIAN MIN MAX VAR_POP QUANTILE_DISC PERCENTILE_CONT WITHIN FILTER OVER WITH UNION CASE WHEN THEN ELSE
    END ( ) , . * = <> < <= > >= + - / % ; -- /* */ ' " ? $1 [ ] { } :: t u x y n "a b" 'it''s' 1 2.5 1e9 1e999 TRUE
    DATE INTERVAL EXTRACT CAST now random é \u200b ASC DESC NULLS FIRST LAST ALL VALUES LATERAL
    UNNEST -> || @ ~ # \\"""
sentences = st.lists(st.sampled_from(WORDS.split()), max_size=25).map(" ".join)
begun = sentences.map(lambda rest: f"SELECT x, COUNT(*) AS n FROM t {rest}")
grouped = sentences.map(lambda rest: f"SELECT x, COUNT(*) AS n FROM t GROUP BY x HAVING {rest}")
selected = sentences.map(lambda rest: f"SELECT {rest} FROM t")
PIECES = [
    "x",
    "t.x",
    "3",
    "-2.5",
    "'a'",
    "TRUE",
    "NULL",
    "x + 1",
    "(x / y)",
    "CASE WHEN x > 1 THEN y END",
    "MONTH(d)",
    "COUNT(*)",
    "CASE x WHEN 1 THEN NOT y ELSE x = 2 END",
    "EXTRACT(month FROM d)",
    "DATE '2024-01-01'",
    "x > 3",
    "NOT x",
    "x IN (1, NULL)",
    "x NOT LIKE 'a'",
    "x BETWEEN y AND 3",
    "x IS NOT NULL",
    "CLAMP(x, 0, 1)",
    "SUM(x)",
    "AVG(x) FILTER (WHERE y)",
    "(x)",
    "1",
]
pieces = st.recursive(
    st.sampled_from(PIECES),
    lambda inner: (
        st.tuples(inner, st.sampled_from(["AND", "OR", "=", "<", "+", "IN", "IS"]), inner).map(
            lambda it: f"({it[0]} {it[1]} ({it[2]}))"
        )
        | inner.map(lambda it: f"NOT ({it})")
        | inner.map(lambda it: f"MAX({it})")
        | inner.map(lambda it: f"CASE WHEN {it} THEN {it} ELSE x END")
    ),
    max_leaves=4,
)
built = st.tuples(pieces, pieces, pieces, pieces, pieces).map(
    lambda it: f"SELECT {it[0]}, {it[1]} AS n FROM t WHERE {it[2]} GROUP BY {it[0]} HAVING {it[3]} ORDER BY {it[4]}"
)


@settings(max_examples=300)
@given(sentences | begun | grouped | selected | built | st.text(max_size=60))
@example("SELECT COUNT(*) FROM t WHERE x = 1" + " + 1" * 900)
@example("SELECT COUNT(*) FROM t WHERE " + "x = 1 AND " * 400 + "x = 1")
@example("SELECT COUNT(*) FROM t WHERE " + "x = 1 OR NOT x = 1 AND " * 200 + "x = 1")
@example("SELECT " + "a." * 900 + "b FROM t")
@example("SELECT COUNT(*) FROM t " + "LEFT JOIN t USING (x) " * 200)
@example("SELECT x, COUNT(*) AS n FROM t GROUP BY x HAVING " + "n > 1 AND " * 400 + "n > 1")
@example("SELECT COUNT(*) FROM t LIMIT " + "9" * 5000)
@example("SELECT x, COUNT(*) FROM t GROUP BY " + "9" * 5000)
@example("SELECT x, COUNT(*) FROM t GROUP BY x ORDER BY " + "9" * 5000)
@example("SELECT QUANTILE(x, " + "9" * 5000 + ") FROM t")
@example("SELECT x, COUNT(*) FROM t WHERE x = " + "9" * 5000 + " GROUP BY x")
def test_every_text_is_a_query_or_a_typed_refusal(text):
    with suppress(CounterpointError):
        assert isinstance(sql(text), SQLQuery)

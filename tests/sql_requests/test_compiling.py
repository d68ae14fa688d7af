"""A text compiles to the very request that Python makes, and to nothing else."""

from contextlib import suppress

import duckdb
import numpy as np
import pytest
from tests.schema.grammar import COLUMNS, Grammar, worlds

import counterpoint as cp
from counterpoint.errors import InvalidRequest, UnsupportedSQL
from counterpoint.schema.expressions.conditions import condition
from counterpoint.sql_requests import parse

ACCEPTED = [
    ("SELECT COUNT(*) FROM flights", cp.count()),
    ("select count(*) from flights;", cp.count()),
    ("SELECT\n\tCOUNT(*)\r\nFROM flights", cp.count()),
    ("SELECT COUNT() FROM flights", cp.count()),
    ("SELECT COUNT(*) FROM flights WHERE month <= 3", cp.count(where="month <= 3")),
    ("SELECT COUNT(*) FROM flights AS f WHERE f.month <= 3", cp.count(where="month <= 3")),
    ("SELECT COUNT(*) FROM flights WHERE flights.month <= 3", cp.count(where="month <= 3")),
    ('SELECT COUNT(*) FROM flights WHERE "odd name" = 3', cp.count(where='"odd name" = 3')),
    ("SELECT COUNT(*) FROM flights WHERE a = 1 OR b = 2 AND c = 3", cp.count(where="a = 1 OR b = 2 AND c = 3")),
    ("SELECT COUNT(*) FROM flights WHERE (a = 1 OR b = 2) AND c = 3", cp.count(where="(a = 1 OR b = 2) AND c = 3")),
    ("SELECT COUNT(*) FROM flights WHERE name = 'it''s'", cp.count(where="name = 'it''s'")),
    ("SELECT COUNT(*) FROM flights WHERE name = 'UA; --'", cp.count(where="name = 'UA; --'")),
    ("SELECT COUNT(*) FROM flights WHERE day >= DATE '2024-02-29'", cp.count(where="day >= '2024-02-29'")),
    ("SELECT COUNT(*) FROM flights WHERE NOT month <= 3", cp.count(where="NOT month <= 3")),
    ("SELECT COUNT(*) FROM flights WHERE NOT late", cp.count(where="NOT late")),
    ("SELECT COUNT(delay) FROM flights", cp.count(where="NOT delay IS NULL")),
    ("SELECT COUNT(*) FILTER (WHERE late) FROM flights WHERE a = 1", cp.count(where="(a = 1) AND (late)")),
    ("SELECT SUM(delay) FROM flights WHERE a = 1", cp.sum("delay", where="a = 1")),
    ("SELECT AVG(delay) FROM flights", cp.mean("delay")),
    ("SELECT VAR_POP(delay) FROM flights", cp.variance("delay")),
    ("SELECT STDDEV_POP(delay) FROM flights", cp.stdev("delay")),
    ("SELECT MEDIAN(delay) FROM flights", cp.median("delay")),
    ("SELECT QUANTILE(delay, 0.9) FROM flights", cp.quantile("delay", 0.9)),
    ("SELECT QUANTILE_CONT(delay, 0.9) FROM flights", cp.quantile("delay", 0.9)),
    ("SELECT QUANTILE_DISC(delay, .9) FROM flights", cp.quantile("delay", 0.9)),
    ("SELECT PERCENTILE_CONT(0.9) WITHIN GROUP (ORDER BY delay) FROM flights", cp.quantile("delay", 0.9)),
    ("SELECT MIN(delay) FROM flights WHERE a = 1", cp.minimum("delay", where="a = 1")),
    ("SELECT MAX(arr - dep) FROM flights", cp.maximum("arr - dep")),
    ("SELECT carrier, MAX(delay) FROM flights GROUP BY carrier", cp.maximum("delay", by="carrier")),
    ("SELECT carrier, MEDIAN(delay) FROM flights GROUP BY carrier", cp.median("delay", by="carrier")),
    ("SELECT carrier, QUANTILE(x, 0.9) FROM t GROUP BY carrier", cp.quantile("x", 0.9, by="carrier")),
    ("SELECT carrier, COUNT(DISTINCT plane) FROM t GROUP BY carrier", cp.count_distinct(by="carrier")),
    ("SELECT SUM(f.arr - f.dep) FROM flights f WHERE 2 * arr > dep", cp.sum("arr - dep", where="2 * arr > dep")),
    ("SELECT AVG(CLAMP(60 * d / t, 0, 700, 10)) FROM f", cp.mean("CLAMP(60 * d / t, 0, 700, 10)")),
    ("SELECT COUNT(a / b) FROM f", cp.count(where="NOT (a / b) IS NULL")),
    ("SELECT EXTRACT(month FROM f.day), COUNT(*) FROM f GROUP BY month(day)", cp.count(by="MONTH(day)")),
    ("SELECT carrier, COUNT(*) FROM flights GROUP BY carrier", cp.count(by="carrier")),
    ("SELECT x > 3, COUNT(*) FROM t GROUP BY t.x > 3", cp.count(by="x > 3")),
    ("SELECT COUNT(*) FROM t WHERE DATE(at) = DATE '2024-02-29'", cp.count(where="DATE(\"at\") = '2024-02-29'")),
    ('SELECT COUNT(*) FROM t WHERE EXTRACT(hour FROM "at") = 3', cp.count(where='HOUR("at") = 3')),
    ("SELECT COUNT(*) FROM t WHERE NOT CASE WHEN x THEN y END", cp.count(where="NOT CASE WHEN x THEN y END")),
    ("SELECT SUM(IF(x > 3, a, b)) FROM t", cp.sum("CASE WHEN x > 3 THEN a ELSE b END")),
    (
        "SELECT COUNT(*) AS n, carrier, AVG(delay) FROM flights WHERE month <= 3 GROUP BY carrier",
        cp.select(n=cp.count("month <= 3"), column2=cp.mean("delay", "month <= 3"), by="carrier"),
    ),
    (
        "SELECT SUM(delay) AS s, COUNT(*) FILTER (WHERE late) AS n FROM flights",
        cp.select(s=cp.sum("delay"), n=cp.count("late")),
    ),
    ("SELECT carrier, COUNT(*) FROM flights GROUP BY 1", cp.count(by="carrier")),
    ("SELECT month, carrier, COUNT(*) FROM flights GROUP BY 2, 1", cp.count(by=["carrier", "month"])),
    ("SELECT f.carrier AS c, AVG(delay) FROM flights f GROUP BY f.carrier", cp.mean("delay", by="carrier")),
    ("SELECT carrier, SUM(delay) FROM flights GROUP BY carrier", cp.sum("delay", by="carrier")),
    (
        "SELECT dest, COUNT(*) FROM flights WHERE dest IN ('LAX', 'JFK', 'LAX') AND month = 3 GROUP BY dest",
        cp.count("dest IN ('LAX', 'JFK', 'LAX') AND month = 3", by="dest", keys=["LAX", "JFK"]),
    ),
    (
        "SELECT dest, month, COUNT(*) FROM flights WHERE dest = 'LAX' AND month IN (3, 4) GROUP BY dest, month",
        cp.count("dest = 'LAX' AND month IN (3, 4)", by=["dest", "month"], keys=[("LAX", 3), ("LAX", 4)]),
    ),
    (  # a list that is one of two alternatives does not say which keys there are
        "SELECT dest, COUNT(*) FROM flights WHERE dest = 'LAX' OR month = 3 GROUP BY dest",
        cp.count("dest = 'LAX' OR month = 3", by="dest"),
    ),
    (
        "SELECT dest, COUNT(*) FROM flights WHERE NOT dest IN ('LAX') GROUP BY dest",
        cp.count("NOT dest IN ('LAX')", by="dest"),
    ),
    (
        "SELECT dest, COUNT(*) FROM flights WHERE dest IN ('LAX', 'JFK') "
        "GROUP BY dest HAVING COUNT(*) > 3 ORDER BY 2 LIMIT 1",
        cp.count("dest IN ('LAX', 'JFK')", by="dest", keys=["LAX", "JFK"]),
    ),
]


@pytest.mark.parametrize(("text", "request_"), ACCEPTED)
def test_a_text_compiles_to_the_request_that_python_makes(text, request_):
    assert cp.sql(text).request == request_


def people_and_visits():
    people = duckdb.sql("SELECT * FROM (VALUES ('ann', 70), ('bob', 17)) AS people(person, age)")
    visits = duckdb.sql(
        "SELECT * FROM (VALUES ('ann', '/a'), ('ann', '/b'), ('bob', '/a'), ('cy', '/a')) AS v(person, page)"
    )
    pages = duckdb.sql("SELECT * FROM (VALUES ('/a', 'news')) AS pages(page, section)")
    return cp.Sources(
        unit="person",
        people=cp.Table(people, unit="person", rows_per_unit=1, columns={"age": cp.number(0, 120)}),
        visits=cp.Table(visits, unit="person", rows_per_unit=5, columns={"page": cp.text()}),
        pages=cp.Lookup(pages, key="page", columns={"page": cp.text(), "section": cp.category(["news"])}),
    )


JOINED = [
    ("SELECT COUNT(DISTINCT person) AS n FROM visits", cp.count_distinct(of="visits"), 3),
    (
        "SELECT COUNT(DISTINCT v.person) AS n FROM visits v WHERE page = '/b'",
        cp.count_distinct("page = '/b'", of="visits"),
        1,
    ),
    ("SELECT COUNT(*) AS n FROM visits", cp.count(of="visits"), 4),
    ("SELECT AVG(age) AS n FROM people", cp.mean("age", of="people"), 43.5),
    (
        "SELECT COUNT(*) AS n FROM visits LEFT JOIN people USING (person) WHERE people.age >= 65",
        cp.count("people.age >= 65", of="visits"),
        2,
    ),
    (
        "SELECT COUNT(*) AS n FROM visits AS v LEFT JOIN people AS p ON p.person = v.person WHERE NOT p.age >= 65",
        cp.count("NOT people.age >= 65", of="visits"),
        1,
    ),
    (
        "SELECT COUNT(*) AS n FROM visits LEFT JOIN pages AS s ON visits.page = s.page WHERE s.section = 'news'",
        cp.count("pages.section = 'news'", of="visits"),
        3,
    ),
    ("SELECT SUM(p.age) AS n FROM visits LEFT JOIN people p USING (person)", cp.sum("people.age", of="visits"), 157),
]


@pytest.mark.parametrize(("text", "request_", "wanted"), JOINED)
def test_joins_are_the_dotted_names_of_requests(text, request_, wanted):
    sources = people_and_visits()
    assert cp.sql(text).on(sources) == request_
    found = cp.Session(sources, within=cp.PureDP(10**9)).sql(text, epsilon=10**8)
    assert found["n"] == wanted


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("SELECT COUNT(*) FROM calls", "there is no source 'calls' for FROM; there are: people, visits"),
        ("SELECT COUNT(*) FROM pages", "there is no source 'pages' for FROM"),
        ("SELECT COUNT(DISTINCT page) FROM visits", "of the column that identifies a unit: person; how many values"),
        (
            "SELECT COUNT(*) FROM visits LEFT JOIN people USING (page)",
            "cannot find one of people by LEFT JOIN people USING .page.",
        ),
        (
            "SELECT COUNT(*) FROM visits LEFT JOIN pages USING (person)",
            "Rows see LEFT JOIN people USING .person.; LEFT",
        ),
        ("SELECT COUNT(*) FROM people LEFT JOIN visits USING (person)", "cannot find one of visits by LEFT JOIN"),
        ("SELECT COUNT(*) FROM visits LEFT JOIN calls USING (person)", "cannot find one of calls"),
    ],
)
def test_a_join_must_be_one_that_the_sources_have(text, said):
    session = cp.Session(people_and_visits(), within=cp.PureDP(1))
    with pytest.raises(InvalidRequest, match=said):
        session.sql(text, epsilon=1)
    assert session.loss == cp.PureDP(0)


def test_one_source_alone_joins_nothing():
    session = cp.Session(cp.Stream(fields={"page": cp.text()}), within=cp.PureDP(1))
    with pytest.raises(InvalidRequest, match="this session has one source, so people cannot be joined"):
        session.sql("SELECT COUNT(*) FROM visits LEFT JOIN people USING (person)", epsilon=1)


def test_without_a_unit_no_distinct_values_are_counted():
    session = cp.Session(cp.Stream(fields={"page": cp.text()}), within=cp.PureDP(1))
    with pytest.raises(InvalidRequest, match="of the column that identifies a unit; how many values"):
        session.sql("SELECT COUNT(DISTINCT page) FROM visits", epsilon=1)


@pytest.mark.parametrize(
    ("condition", "badly"),
    [
        ("(a = 1 OR b = 1) AND c = 1", lambda text: text.replace("(", "").replace(")", "")),
        ("NOT (a = 1 AND b = 1)", lambda text: text.replace("(", "").replace(")", "")),
        ("a - (b - c) > 0", lambda text: text.replace("(", "").replace(")", "")),
        ("name = 'x'", lambda text: text.replace("'", '"')),
        ("a < 1.50", lambda text: text.replace("1.50", "1.5")),
        ("a < 1", lambda text: f"{text} AND"),
    ],
)
def test_a_clause_whose_text_would_read_otherwise_is_refused(condition, badly, monkeypatch):
    """The text of a clause is written by sqlglot and answered as it reads: a writer that changes it is caught."""
    written = parse.written
    monkeypatch.setattr(parse, "written", lambda node: badly(written(node)))
    with pytest.raises(UnsupportedSQL, match="this expression, which changes when it is written out"):
        cp.sql(f"SELECT COUNT(*) FROM t WHERE {condition}")


def test_what_a_request_keeps_of_a_where_means_what_the_query_says():
    """The record has a text, so the tree of a query is written out: random texts read alike before and behind that."""
    declared = cp.Table(
        worlds(np.random.default_rng(5))["some"], unit="who", rows_per_unit=2, columns=COLUMNS
    ).declaration
    grammar, alike = Grammar(np.random.default_rng(7)), 0
    for _ in range(600):
        text = grammar.condition(3)
        with suppress(InvalidRequest):  # not everything that is drawn is accepted, by `where` or by SQL
            asked = cp.sql(f"SELECT COUNT(*) FROM t WHERE {text}").request
            assert condition(asked.where, declared) == condition(text, declared), text
            alike += 1
    assert alike > 200

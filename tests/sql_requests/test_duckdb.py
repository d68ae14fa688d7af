"""Every accepted query, compared with DuckDB's own answer on the same rows, at a price at which the noise is 0."""

from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.sql_requests import flights

EXACT = 10**9

AGGREGATES = {
    "COUNT(*)": 0,
    "COUNT(delay)": 0,
    "COUNT(f.dest)": 0,
    "COUNT(*) FILTER (WHERE NOT late)": 0,
    "SUM(delay)": 0,
    "SUM(delay) FILTER (WHERE month <> 2)": 0,
    "AVG(delay)": None,
    "SUM(delay - f.month)": 0,
    "COUNT(delay / (month - 1))": 0,
    "SUM(CASE WHEN NOT late THEN delay ELSE month END)": 0,
    "AVG(ABS(delay) * 2 + 1)": None,
    "VAR_POP(delay)": None,
    "STDDEV_POP(delay)": None,
}
"""Each aggregate, and what it answers where there are no rows."""


def near(found, wanted):
    """Whether two rows are equal, up to the rounding of floats."""
    return len(found) == len(wanted) and all(
        ours == pytest.approx(theirs, abs=1e-9) if isinstance(theirs, float) else ours == theirs
        for ours, theirs in zip(found, wanted, strict=True)
    )


def values(answer, outputs):
    """The rows of an answer, without the errors."""
    columns = answer.columns()
    return list(zip(*(columns[name] for name in outputs), strict=True))


@settings(max_examples=50)
@given(flights.rows, flights.conditions, st.sampled_from(list(AGGREGATES)))
def test_a_query_answers_as_duckdb_does(made, where, aggregate):
    text = f"SELECT {aggregate} AS n FROM flights AS f WHERE {where}"
    [(wanted,)] = flights.duckdb_answer(text, flights=flights.table(made))
    found = flights.session(made).sql(text, epsilon=EXACT)
    ((ours,),) = values(found, ["n"])
    empty = AGGREGATES[aggregate]
    assert near((ours,), (empty if wanted is None else wanted,))


@settings(max_examples=50)
@given(
    flights.rows,
    flights.conditions,
    st.sampled_from(list(AGGREGATES)),
    st.sampled_from(
        ["n > 0", "n <= 2.5 OR k = 'UA'", "NOT n < 1", "m IN (1, 2) AND n IS NOT NULL", "n NOT BETWEEN 0 AND 3"]
    ),
    st.sampled_from(["n DESC, k, m", "k DESC, m", "n NULLS FIRST, m DESC, k DESC", "3 DESC NULLS FIRST, 1, 2"]),
)
def test_groups_having_order_and_limit_answer_as_duckdb_does(made, where, aggregate, having, order):
    """Every declared key is there, so DuckDB's groups are completed before it applies HAVING, ORDER BY and LIMIT."""
    head = f"SELECT carrier AS k, month AS m, {aggregate} AS n FROM flights AS f WHERE {where} GROUP BY carrier, month"
    rest = f"ORDER BY {order} LIMIT {len(made)}"
    groups = f"SELECT carrier AS k, month AS m, {aggregate} AS n FROM flights AS f WHERE {where} GROUP BY ALL"
    empty = "NULL" if AGGREGATES[aggregate] is None else AGGREGATES[aggregate]
    keys = ", ".join(
        f"('{key.replace(chr(39), chr(39) * 2)}', {month})" for key, month in product(flights.CARRIERS, flights.MONTHS)
    )
    completed = (
        f"SELECT k, m, COALESCE(n, {empty}) AS n FROM (VALUES {keys}) AS keys(k, m) LEFT JOIN ({groups}) USING (k, m)"
    )
    wanted = flights.duckdb_answer(f"SELECT * FROM ({completed}) WHERE {having} {rest}", flights=flights.table(made))
    found = flights.session(made).sql(f"{head} HAVING {having} {rest}", epsilon=EXACT)
    rows = values(found, ["k", "m", "n"])
    assert len(rows) == len(wanted) and all(map(near, rows, wanted))


@settings(max_examples=25)
@given(flights.rows, flights.conditions)
def test_several_aggregates_answer_as_duckdb_does(made, where):
    text = f"""SELECT COUNT(*) AS n, carrier AS k, COUNT(delay) FILTER (WHERE NOT late), SUM(delay - month) AS s,
        AVG(delay) AS a FROM flights AS f WHERE {where} GROUP BY carrier"""
    names = ["n", "k", "COUNT(delay) FILTER(WHERE NOT late)", "s", "a"]
    wanted = {row[1]: row for row in flights.duckdb_answer(text, flights=flights.table(made))}
    found = flights.session(made).sql(f"{text} ORDER BY k DESC", epsilon=EXACT)
    rows = values(found, names)
    assert [row[1] for row in rows] == sorted(flights.CARRIERS, reverse=True)
    for row in rows:
        n, k, present, total, mean = wanted.get(row[1], (0, row[1], 0, 0, None))
        assert near(row, (n, k, present, total or 0, mean))


COMPUTED = [
    "100.0 * SUM(delay) / COUNT(*)",
    "COUNT(*) - COUNT(delay)",
    "-(AVG(delay) + 1)",
    "SUM(delay) / COUNT(delay) - AVG(delay + 1)",
    "2 * COUNT(*) * COUNT(delay) + 0.5",
    "COUNT(*) FILTER (WHERE late) / COUNT(late)",
]


@settings(max_examples=50)
@given(flights.rows, flights.conditions, st.sampled_from(COMPUTED))
def test_arithmetic_on_aggregates_answers_as_duckdb_does(made, where, computed):
    """A quotient by 0 is missing, and so is what is computed of it; a sum of no rows is 0."""
    filled = computed.replace("SUM(delay)", "COALESCE(SUM(delay), 0)")
    guarded = filled.replace("/ COUNT(*)", "/ NULLIF(COUNT(*), 0)").replace(
        "/ COUNT(delay)", "/ NULLIF(COUNT(delay), 0)"
    )
    guarded = guarded.replace("/ COUNT(late)", "/ NULLIF(COUNT(late), 0)")
    data = flights.table(made)
    text = f"SELECT {{}} AS x, COUNT(*) AS n FROM flights AS f WHERE {where}"
    [(wanted, rows)] = flights.duckdb_answer(text.format(guarded), flights=data)
    found = flights.session(made).sql(text.format(computed), epsilon=EXACT)
    assert near(values(found, ["x", "n"])[0], (wanted, rows))
    grouped = f"SELECT month AS m, {{}} AS x FROM flights AS f WHERE {where} GROUP BY m"
    by_month = dict(flights.duckdb_answer(grouped.format(guarded), flights=data))
    for month, x in values(flights.session(made).sql(grouped.format(computed), epsilon=EXACT), ["m", "x"]):
        if month in by_month:
            assert near((x,), (by_month[month],))


@settings(max_examples=25)
@given(flights.rows)
def test_an_alias_in_group_by_stands_for_what_select_gives_it(made):
    text = (
        "SELECT MONTH(day) AS m, 1 + COUNT(*) AS n FROM flights AS f GROUP BY m HAVING n > 1 ORDER BY n DESC, m LIMIT 3"
    )
    wanted = flights.duckdb_answer(f"SELECT * FROM ({text}) WHERE m IS NOT NULL", flights=flights.table(made))
    found = flights.session(made).sql(text, epsilon=EXACT)
    assert sorted(n for _, n in values(found, ["m", "n"])) == sorted(n for _, n in wanted) or None in [
        row["day"] for row in made
    ]


@settings(max_examples=50)
@given(flights.rows, flights.conditions, st.sampled_from(["0.5", "0.25", "0.9"]))
def test_a_quantile_lies_between_those_of_duckdb(made, where, share):
    """The candidate whose rank is nearest: any of them between the two values around the rank."""
    ranked = f"FROM flights AS f WHERE ({where}) AND delay IS NOT NULL"
    text = f"SELECT QUANTILE_CONT(delay, {share}) AS q {ranked}"
    values_there = [delay for (delay,) in flights.duckdb_answer(f"SELECT delay {ranked}", flights=flights.table(made))]
    (chosen,) = values(flights.session(made).sql(text, epsilon=EXACT), ["q"])[0]
    below, upto = sum(delay < chosen for delay in values_there), sum(delay <= chosen for delay in values_there)
    target = float(share) * len(values_there)
    miss = max(0, below - target, target - upto)
    best = min(
        max(0, sum(v < c for v in values_there) - target, target - sum(v <= c for v in values_there))
        for c in range(-20, 21)
    )
    assert miss == pytest.approx(best)


def test_extremes_and_quantiles_of_groups_are_those_of_duckdb_where_each_value_has_many_rows():
    """MIN and MAX are values at rank 20 from their end: with 50 rows of each kind, the extremes themselves."""
    kinds = [("UA", -3), ("UA", 7), ("UA", 12), ("AA", 0), ("AA", 5), ("AA", 5)]
    made = [
        {**dict.fromkeys(flights.SCHEMA.names), "carrier": carrier, "delay": delay} for carrier, delay in kinds * 50
    ]
    for aggregate in ("MIN(delay)", "MAX(delay)", "MEDIAN(delay)", "QUANTILE_DISC(delay, 0.2)"):
        text = (
            f"SELECT carrier, {aggregate} AS n FROM flights WHERE carrier IN ('UA', 'AA') GROUP BY carrier ORDER BY n"
        )
        wanted = flights.duckdb_answer(text, flights=flights.table(made))
        assert values(flights.session(made).sql(text, epsilon=EXACT), ["carrier", "n"]) == wanted


@pytest.mark.parametrize(
    ("key", "keys"),
    [
        ("MONTH(day)", range(1, 13)),
        ("EXTRACT(quarter FROM f.day)", range(1, 5)),
        ("CASE WHEN NOT delay > 3 THEN 'early' WHEN late THEN 'late' ELSE 'other' END", ["early", "late", "other"]),
        ("CASE WHEN delay NOT BETWEEN -5 AND 5 THEN 1 END", [1]),
        ("delay > 0", [False, True]),
        ("NOT late OR delay > 3", [False, True]),
        ("CASE WHEN month = 1 THEN late ELSE delay > 0 END", [False, True]),
    ],
)
@settings(max_examples=15)
@given(made=flights.rows)
def test_groups_of_expressions_answer_as_duckdb_does(key, keys, made):
    text = f"SELECT {key} AS k, COUNT(*) AS n FROM flights AS f GROUP BY {key} ORDER BY {key}"
    wanted = dict(flights.duckdb_answer(text, flights=flights.table(made)))
    found = flights.session(made).sql(text, epsilon=EXACT)
    assert dict(values(found, ["k", "n"])) == {key: wanted.get(key, 0) for key in keys}


@settings(max_examples=25)
@given(flights.rows)
def test_a_case_of_conditions_answers_as_duckdb_does(made):
    text = "SELECT COUNT(*) AS n FROM flights WHERE CASE WHEN month = 1 THEN NOT late ELSE delay > 0 END"
    [(wanted,)] = flights.duckdb_answer(text, flights=flights.table(made))
    assert flights.session(made).sql(text, epsilon=EXACT)["n"] == wanted

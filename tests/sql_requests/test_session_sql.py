"""`session.sql` is `session.ask` of the compiled request: one charge, one answer, refusals for free."""

import pytest
from tests.sql_requests import flights

import counterpoint as cp

MADE = [
    {"carrier": carrier, "month": month, "delay": delay, "late": delay > 10, "dest": "LAX", "day": None}
    for carrier, month, delay in [
        ("UA", 1, 5),
        ("UA", 1, 15),
        ("UA", 2, 20),
        ("AA", 1, -10),
        ("DL", 3, 0),
        ("DL", 3, 2),
    ]
]
COUNTS = "SELECT carrier AS c, COUNT(*) AS n FROM flights GROUP BY carrier"


def test_the_answer_has_the_names_of_select():
    answer = flights.session(MADE).sql(f"{COUNTS} HAVING n > 1 ORDER BY n DESC", epsilon=10**6)
    assert answer.columns() == {"c": ["UA", "DL"], "n": [3, 2], "n_error": [0, 0]}
    assert answer["UA"]["n"] == 3 and list(answer.keys()) == ["UA", "DL"]
    assert [(row.c, row.n) for row in answer] == [("UA", 3), ("DL", 2)]
    assert repr(answer).splitlines()[0].split() == ["c", "n", "n_error"]
    assert list(answer.to_pandas().columns) == ["c", "n", "n_error"]


def test_an_unnamed_aggregate_is_called_as_it_is_written():
    answer = flights.session(MADE).sql("SELECT avg(delay) FROM flights", epsilon=10**6)
    assert list(answer.columns()) == ["AVG(delay)", "AVG(delay)_error"]
    assert answer["AVG(delay)"] == pytest.approx(16 / 3)


def test_having_may_leave_nothing():
    answer = flights.session(MADE).sql(f"{COUNTS} HAVING n > 100", epsilon=10**6)
    assert len(answer) == 0 and answer.columns() == {"c": [], "n": [], "n_error": []}


@pytest.mark.parametrize(
    ("text", "terms"),
    [(COUNTS, {"epsilon": 0.5}), (COUNTS, {"error": 20, "simultaneous": True}), (COUNTS, {"rho": "0.01"})],
)
def test_it_costs_what_the_request_costs(text, terms):
    session = cp.Session(flights.session(MADE)._source, within=cp.zCDP(1))
    quote = session.would_cost(cp.sql(text), **terms)
    assert quote == session.would_cost(cp.sql(text).request, **terms)
    answer = session.sql(text, **terms)
    assert answer.cost == quote.cost and session.loss == quote.after
    assert answer.request == cp.count(by="carrier")


def test_a_query_with_an_id_is_one_request_with_what_python_asks():
    session = flights.session(MADE)
    first = session.sql(f"{COUNTS} ORDER BY n", epsilon=1, id="counts")
    assert session.sql(f"{COUNTS} ORDER BY n", epsilon=1, id="counts").columns() == first.columns()
    assert dict(session.ask(cp.count(by="carrier"), epsilon=1, id="counts")) == dict(first.part("n"))
    assert session.loss == cp.PureDP(1)
    with pytest.raises(cp.errors.RequestConflict):
        session.sql("SELECT COUNT(*) FROM flights", epsilon=1, id="counts")


@pytest.mark.parametrize(
    "text",
    [
        "SELECT COUNT(*) FROM flights WHERE nowhere = 3",
        "SELECT COUNT(*) FROM flights WHERE carrier > 3",
        "SELECT COUNT(*) FROM flights WHERE random() > 0.5",
        "SELECT COUNT(*) FROM flights WHERE dest LIKE 'a' ESCAPE 'b'",
        "SELECT COUNT(*) FROM flights WHERE dest ILIKE 'a'",
        "SELECT COUNT(*) FROM flights WHERE dest SIMILAR TO 'a'",
        "SELECT COUNT(*) FROM flights WHERE dest COLLATE NOCASE = 'a'",
        "SELECT COUNT(*) FROM flights WHERE delay = ANY (1, 2)",
        "SELECT COUNT(*) FROM flights WHERE dest GLOB '*'",
        "SELECT COUNT(*) FROM flights WHERE delay IS DISTINCT FROM 3",
        "SELECT COUNT(*) FROM flights WHERE (delay, month) = (1, 2)",
        "SELECT COUNT(*) FROM flights WHERE getenv('HOME') = 'x'",
        "SELECT SUM(carrier) FROM flights",
        "SELECT AVG(nowhere) FROM flights",
        "SELECT dest, COUNT(*) FROM flights GROUP BY dest",
        "SELECT rowid, COUNT(*) FROM flights GROUP BY rowid",
        f"{COUNTS} HAVING c > 3",
        f"{COUNTS} HAVING c IN ('UA', 3)",
        "SELECT month, COUNT(*) FROM flights GROUP BY month HAVING month = 'x'",
        "SELECT QUANTILE(delay, 7) FROM flights",
    ],
)
def test_refusals_are_free_and_come_before_the_data(text, monkeypatch):
    session = flights.session(MADE)
    monkeypatch.setattr(type(session._source), "resolve", lambda *_: pytest.fail("the data was read"))
    with pytest.raises(cp.errors.InvalidRequest):
        session.sql(text, epsilon=1)
    assert session.loss == cp.PureDP(0) and not session.handles


def test_simultaneous_errors_count_what_limit_hides():
    """The shown cells were chosen by their noise, so that all the released ones must be within the error."""
    session = flights.session(MADE)
    whole = session.sql(COUNTS, epsilon=1).part("n")
    top = session.sql(f"{COUNTS} ORDER BY n DESC LIMIT 1", epsilon=1).part("n")
    assert len(top) == 1
    assert top.error(simultaneous=True) == whole.error(simultaneous=True) > whole.error()


def test_a_rehearsal_answers_in_sql_too():
    rehearsal = flights.session(MADE).rehearse()
    answer = rehearsal.sql(COUNTS, epsilon=1)
    assert answer.made_up and set(answer.keys()) == set(flights.CARRIERS)


def test_streams_and_parts_answer_in_sql():
    visits = cp.Stream(fields={"page": cp.category(["home", "shop"]), "seconds": cp.number(0, 600)})
    session = cp.Session(visits, within=cp.PureDP(10**9))
    visits.extend([{"page": "home", "seconds": 20}, {"page": "shop", "seconds": 40}])
    assert session.sql("SELECT AVG(seconds) AS s FROM visits", epsilon=10**6)["s"] == 30
    part = flights.session(MADE).partition("month", within=cp.PureDP(10**7))[1]
    assert part.sql("SELECT COUNT(*) AS n FROM flights", epsilon=10**6)["n"] == 3


def test_a_mean_that_noise_leaves_missing_is_null_in_having_and_order():
    session = flights.session([])
    text = "SELECT carrier, AVG(delay) AS d FROM flights GROUP BY carrier"
    assert session.sql(f"{text} HAVING d IS NULL ORDER BY d", epsilon=10**6).columns()["d"] == [None] * 4
    assert len(session.sql(f"{text} HAVING d > 0 OR NOT d > 0", epsilon=10**6)) == 0


def test_nothing_of_the_text_but_what_where_compares_reaches_the_engine(monkeypatch):
    session, ran = flights.session(MADE), []
    engine = type(session._source.embedded)
    run = engine.run
    monkeypatch.setattr(engine, "run", lambda self, sql, *rest: ran.append(sql) or run(self, sql, *rest))
    text = """SELECT canary.carrier AS canary, COUNT(*) AS "canary n" FROM canary WHERE canary.dest <> 'LAX'
        GROUP BY canary.carrier HAVING canary <> 'canary' AND "canary n" < 77123 ORDER BY canary LIMIT 77123"""
    session.sql(text, epsilon=1)
    assert ran and "LAX" in ran[0]
    assert not any(part in sql for sql in ran for part in ("canary", "77123", "HAVING", "LIMIT", "ORDER"))


def test_several_aggregates_are_one_request_by_their_names():
    session = flights.session(MADE)
    text = (
        "SELECT carrier AS c, COUNT(*) AS n, AVG(delay) FROM flights GROUP BY carrier HAVING n > 1 ORDER BY AVG(delay)"
    )
    answer = session.sql(text, epsilon=10**9)
    assert list(answer.columns()) == ["c", "n", "n_error", "AVG(delay)", "AVG(delay)_error"]
    assert [(row.c, row.n) for row in answer] == [("DL", 2), ("UA", 3)] and len(session.handles) == 1
    assert answer["UA"]["AVG(delay)"] == pytest.approx(40 / 3)
    assert session.loss == cp.PureDP(10**9) == answer.cost
    both = session.sql("SELECT COUNT(*), SUM(delay) AS s FROM flights", epsilon=10**9)
    assert both["COUNT(*)"] == 6 and both["s"] == 32


def test_what_is_computed_of_aggregates_costs_nothing_more_and_knows_its_error():
    text = (
        "SELECT carrier AS c, SUM(delay) / COUNT(*) AS mean, COUNT(*) AS n FROM flights GROUP BY c ORDER BY mean DESC"
    )
    session = flights.session(MADE)
    quote = session.would_cost(cp.select(_0=cp.sum("delay", by="carrier"), n=cp.count(by="carrier")), epsilon=5)
    answer = session.sql(text, epsilon=5)
    assert session.loss == quote.cost == answer.cost
    assert list(answer.columns()) == ["c", "mean", "mean_error", "n", "n_error"]
    mean, n = answer["UA"]["mean"], answer["UA"]["n"]
    assert type(mean) is cp.answers.ComputedFloat and mean.error(0.99) >= mean.error(0.5) > 0 < n.error()
    assert answer.part("mean").error() == max(row["mean"].error() for row in answer.values() if row["mean"] is not None)
    with pytest.raises(cp.errors.NotCovered, match="each of them"):
        answer.part("mean").error(simultaneous=True)
    assert all(row["mean"] is None for row in answer.suppress(10**6).values())
    assert "mean_error" in repr(answer) and "<table>" in answer._repr_html_()
    whole = session.sql("SELECT 2 * COUNT(*) AS twice FROM flights", epsilon=5)
    assert whole["twice"].error() == 2 * session.ask(cp.count(), epsilon=5).error()
    assert dict(whole.columns()).keys() == {"twice", "twice_error"} and "twice" in repr(whole)


def test_an_alias_in_group_by_that_is_also_a_column_is_refused_for_nothing():
    session = flights.session(MADE)
    text = "SELECT MONTH(day) AS month, COUNT(*) AS n FROM flights GROUP BY month"
    with pytest.raises(cp.errors.UnsupportedSQL, match="also a column, 'month'"):
        session.sql(text, epsilon=1)
    assert session.loss == cp.PureDP(0)
    assert len(session.sql(text.replace("month", "m"), epsilon=1)) == 12

"""Questions and their answers: one request, one charge, and numbers that know the least error that their law keeps."""

import json
import pickle
import re
import statistics
from fractions import Fraction
from itertools import product

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom
from tests.session.deeds import lines

import counterpoint as cp
from counterpoint.encoding import encode
from counterpoint.errors import (
    BudgetExceeded,
    CounterpointError,
    InvalidParameter,
    InvalidRequest,
    NotCovered,
    RequestConflict,
)
from counterpoint.mechanisms.mechanism import Chosen
from counterpoint.numbers import Exact
from counterpoint.randomness.laws import gaussian_options, laplace_options, rounded_normal_options
from counterpoint.session.answering import answer_table, questions, reaching
from counterpoint.session.answering.answers import labelled
from counterpoint.session.engine import Engine
from counterpoint.sources.asking.averaged import Averaged
from counterpoint.sources.asking.variances import Dispersed
from counterpoint.sources.source import Prepared

COLUMNS = {
    "city": cp.category(["Paris", "Rome", "<b>Ys</b>"]),
    "age": cp.number(0, 120),
    "pay": cp.number(0, 10, step="0.5"),
    "street": cp.text(),
}
ROWS = {
    "who": list(range(60)),
    "city": ["Paris"] * 30 + ["Rome"] * 30,
    "age": [20, 40, 60] * 20,
    "pay": [2.5] * 60,
    "street": ["rue"] * 60,
}


def table(**more):
    return cp.Table(pa.table(ROWS), unit="who", rows_per_unit=1, columns=COLUMNS, **more)


def session(within=None, **more):
    return cp.Session(table(), within or cp.PureDP(100), **more)


def beyond(options, m):
    return sum((p for z, p in options.outcomes if abs(z) > m), Fraction(0))


def tail(law, spread, m):
    """The chance that noise goes beyond m, by the law alone."""
    return beyond(law(Fraction(spread), Fraction(1, 10**12)), m)


# ------------------------------------------------------------------------------------------------ numbers


def test_a_scalar_answer_is_the_plain_number_to_all_that_takes_numbers():
    s = session()
    people, pay, age = s.ask(cp.count(), epsilon=1), s.ask(cp.sum("pay"), epsilon=1), s.ask(cp.mean("age"), epsilon=5)
    assert (type(people), type(pay), type(age)) == (cp.IntAnswer, cp.FloatAnswer, cp.FloatAnswer)
    for answer, kind in ((people, int), (pay, float), (age, float)):
        plain = kind(answer)
        assert isinstance(answer, kind) and answer == plain and hash(answer) == hash(plain)
        assert type(answer + 1) is kind and {plain: "x"}[answer] == "x"
        again = pickle.loads(pickle.dumps(answer))  # noqa: S301 - our own bytes
        assert again == plain and type(again) is kind
        assert json.dumps(answer) == json.dumps(plain) == str(answer) == f"{answer}"
        assert repr(answer).startswith(f"{plain} +- ")


def test_an_answer_knows_what_it_cost_and_where_it_comes_from():
    answer = session().ask(cp.count(where="age > 30"), epsilon=0.5)
    assert (answer.cost, answer.mechanism) == (cp.PureDP(0.5), cp.Laplace(0.5))
    assert answer.request == cp.count(where="age > 30") and "Laplace(0.5)" in answer.why


@pytest.mark.parametrize("probability", ["0.5", "0.95", "0.999"])
@pytest.mark.parametrize(
    ("request_", "steps", "grid"), [(cp.count(), 1, 1), (cp.sum("pay"), 20, Fraction(1, 2)), (cp.sum("age"), 120, 1)]
)
def test_the_stated_error_is_the_least_on_the_grid_by_the_exact_law(request_, steps, grid, probability):
    s, fails = session(cp.GaussianDP(100)), 1 - Fraction(probability)
    laws = [
        ({"epsilon": 5}, laplace_options, Fraction(steps, 5)),
        ({"mu": 5}, rounded_normal_options, Fraction(steps**2, 25)),
    ]
    in_zcdp = [({"rho": 12}, gaussian_options, Fraction(steps**2, 24))]
    for held, cases in ((s, laws), (session(cp.zCDP(100)), in_zcdp)):
        for price, law, spread in cases:
            answer = held.ask(request_, **price)
            m = Fraction(answer.error(probability)) / grid
            assert m.denominator == 1 and tail(law, spread, m) <= fails
            assert m == 0 or tail(law, spread, m - 1) > fails


@pytest.mark.statistical
def test_answers_are_within_their_error_as_often_as_stated():
    runs, s = 1000, session(cp.PureDP(10**6))
    missed = sum(
        abs(answer - 60) > answer.error("0.9") for answer in (s.ask(cp.count(), epsilon=1) for _ in range(runs))
    )
    assert binom.sf(165, runs, 0.1) < 1e-9, "false alarms are rarer than this"
    assert missed <= 165


@given(
    centred=st.integers(-50_000, 50_000),
    weighed=st.integers(1, 50_000),
    noise=st.tuples(st.integers(-300, 300), st.integers(-300, 300)),
    low=st.integers(-50, 50),
    width=st.integers(1, 200),
)
@settings(max_examples=300, deadline=None)
def test_the_error_of_a_mean_holds_whenever_the_noise_of_both_numbers_does(centred, weighed, noise, low, width):
    facts = Averaged(None, 2, 2, 2, Fraction(1, 2), low=Fraction(low), high=Fraction(low + width))
    noisy = (centred + noise[0], weighed + noise[1])
    if noisy[1] <= 0:
        assert facts.in_units(noisy) is None
        return
    true, shown = facts.in_units((centred, weighed)), facts.in_units(noisy)
    assert abs(true - shown) <= facts.error_from(noisy, 300)


def test_the_error_of_a_mean_counts_with_both_numbers_at_once():
    answer = session().ask(cp.mean("age"), epsilon=50)
    facts, released = answer._origin.prepared, answer._origin.released
    steps = answer.mechanism.error("0.95", facts.sensitivity, width=2)
    assert answer.error() >= facts.error_from(released, steps) > facts.error_from(released, steps - 1)


def test_neighbouring_data_have_equal_errors_and_prices():
    def facts(rows):
        data = cp.Table(pa.table(rows), unit="who", rows_per_unit=1, columns=COLUMNS)
        s = cp.Session(data, cp.zCDP(100))
        answers = [s.ask(cp.histogram("city"), error=7), s.ask(cp.sum("pay"), rho=2), s.ask(cp.count(), epsilon=1)]
        return [(a.error(), a.cost, a.mechanism, a.why) for a in answers], s.loss, lines(s)

    assert facts(ROWS) == facts({name: values[1:] for name, values in ROWS.items()})


# ------------------------------------------------------------------------------------------------ tables


def test_a_keyed_answer_is_a_mapping_and_a_table():
    answer = session().ask(cp.histogram("city"), epsilon=50)
    assert list(answer.keys()) == ["Paris", "Rome", "<b>Ys</b>"] and len(answer) == 3
    assert isinstance(answer["Rome"], cp.IntAnswer) and answer["Rome"].error() == answer.error() == 0
    expected = {"city": list(answer.keys()), "value": [int(v) for v in answer.values()], "error": [0, 0, 0]}
    assert pa.table(answer).to_pydict() == pl.DataFrame(answer).to_dict(as_series=False) == expected
    assert answer.to_pandas().equals(pd.DataFrame(expected)) and pd.DataFrame(answer).equals(pd.DataFrame(expected))
    with pytest.raises(KeyError):
        answer["Atlantis"]


def test_a_sum_by_key_is_in_units():
    answer = session().ask(cp.sum("pay", by="city"), epsilon=100)
    assert pa.table(answer).column_names == ["city", "value", "error"]
    assert isinstance(answer["Rome"], cp.FloatAnswer) and answer.error(0) == 0.0 and answer["Rome"] % 0.5 == 0


def test_keys_of_several_columns_have_a_column_each():
    columns = {"value": cp.category(["a", "b"]), "year": cp.category([1, 2])}
    data = cp.Table(
        pa.table({"value": ["a", "b"], "year": [1, 2], "who": [1, 2]}), unit="who", rows_per_unit=1, columns=columns
    )
    answer = cp.Session(data, cp.PureDP(100)).ask(cp.count(by=["value", "year"]), epsilon=100)
    assert answer["b", 2] == 1 and answer["a", 2] == 0
    assert answer.columns()["year"] == [1, 2, 1, 2] and answer.columns()["value_key"] == ["a", "a", "b", "b"]
    assert repr(answer).splitlines()[4].split() == ["b", "2", "1", "+-", "0"]


def test_means_by_key_know_their_errors_and_one_that_noise_left_nothing_of_is_none():
    s = session(cp.PureDP(10**6))
    answer = s.ask(cp.mean("age", by="city"), epsilon=10**5)
    assert answer["Rome"] == 40 and answer["Rome"].error() < 0.1 and answer["<b>Ys</b>"] is None
    assert answer.columns()["city"][2] == "<b>Ys</b>" and answer.columns()["error"][2] is None
    assert repr(answer).splitlines()[3].split() == ["<b>Ys</b>", "?", "+-", "?"]
    assert pa.table(answer).num_rows == 3
    with pytest.raises(NotCovered, match="mean"):
        s.ask(cp.mean("age", by="city"), error=5)
    with pytest.raises(NotCovered, match="variance"):
        s.ask(cp.variance("age"), error=5)
    assert s.loss == cp.PureDP(10**5)


def test_bins_are_named_by_their_edges_and_ranks_by_their_candidates():
    s = session(cp.PureDP(1000))
    bins = s.ask(cp.histogram("age", edges=[0, 30, 50, 121]), epsilon=100)
    assert dict(bins) == {(0, 30): 20, (30, 50): 20, (50, 121): 20}
    assert list(bins.columns()) == ["age_from", "age_to", "value", "error"]
    ranks = s.ask(cp.ranks("pay", [1, 2.5]), epsilon=100)
    assert dict(ranks) == {1: 0, Fraction(5, 2): 60} and pa.table(ranks).column_names == ["pay", "value", "error"]
    born = cp.Table(
        pa.table({"who": [1], "day": ["1999-01-01"]}),
        unit="who",
        rows_per_unit=1,
        columns={"day": cp.date("1990-01-01", "2010-12-31")},
    )
    years = cp.Session(born, cp.PureDP(100)).ask(
        cp.histogram("day", edges=["1990-01-01", "2000-01-01", "2010-12-31"]), epsilon=100
    )
    assert dict(years) == {("1990-01-01", "2000-01-01"): 1, ("2000-01-01", "2010-12-31"): 0}


def test_what_is_named_by_its_request_alone_is_stored_as_before():
    for request_ in (cp.histogram("age", edges=[0, 30, 50]), cp.ranks("age", [30]), cp.count(), cp.mean("pay")):
        prepared = table().prepare(request_)
        assert prepared.names is None and b"units" not in encode(prepared)


class Doubled(Prepared, frozen=True):
    """A prepared request whose answer is no multiple of the integers, and which states no error."""

    def in_units(self, answer):
        return Fraction(answer**2)


def test_no_error_is_stated_where_the_units_are_no_multiple_and_nothing_else_is_said():
    facts = Doubled(None, 1, 1, None, Fraction(1))
    with pytest.raises(NotCovered, match="no error is stated"):
        facts.error_in_units(3)
    assert type(labelled(cp.Laplace(1), facts, 3)) is Fraction


def test_displays_align_numbers_at_the_right_and_escape_what_they_show():
    answer = session(cp.PureDP(10**6)).ask(cp.histogram("city"), epsilon=10**5)
    lines = repr(answer).splitlines()
    assert lines[0].split() == ["city", "value", "error"] and lines[1].split() == ["Paris", "30", "+-", "0"]
    assert len({len(line) for line in lines}) == 1, "the last column ends where the others do"
    shown = answer._repr_html_()
    assert "&lt;b&gt;Ys&lt;/b&gt;" in shown and "<b>" not in shown and '<td align="right">± 0</td>' in shown
    from rich.console import Console

    with (console := Console(width=80)).capture() as seen:
        console.print(answer)
    assert "<b>Ys</b>" in seen.get() and "+- 0" in seen.get()


def test_what_needs_a_library_that_is_missing_says_so(monkeypatch):
    answer = session().ask(cp.histogram("city"), epsilon=1)
    for name, use in (("pandas", answer.to_pandas), ("pyarrow", answer.__arrow_c_stream__)):
        monkeypatch.setitem(__import__("sys").modules, name, None)
        with pytest.raises(InvalidParameter, match=f"needs {name}"):
            use()


def test_long_tables_say_how_much_they_leave_out():
    keys, ones = {"key": list(range(100))}, [1] * 100
    long = answer_table.AnswerTable(keys, {"value": ones}, {"value": ("error", ones)}, [""] * 100)
    assert answer_table.plain(long).endswith("and 40 more")
    assert "and 40 more" in answer_table.html(long)


# ------------------------------------------------------------------------------------------------ what is launched


def test_a_price_buys_what_fits_the_request():
    s = session(cp.ApproxDP(100, 1e-3))
    loss = cp.ApproxDP(1, 1e-6)
    assert isinstance(s.ask(cp.count(), loss=loss).mechanism, cp.Laplace)
    assert s.ask(cp.keys("street"), loss=loss) == ("rue",)
    assert s.ask(cp.quantile("age", 0.5, [20, 40, 60]), epsilon=50) == 40
    wide = cp.ranks("age", list(range(0, 121)))
    assert isinstance(s.ask(wide, loss=loss).mechanism, cp.Gaussian), "of 121 numbers Gaussian noise is smaller"


def test_streams_and_parts_answer_questions():
    visits = cp.Stream(fields={"page": cp.category(["home", "shop"])})
    visits.extend([{"page": "home"}] * 9)
    s = cp.Session(visits, cp.PureDP(100))
    assert s.ask(cp.histogram("page"), epsilon=40)["home"] == 9
    people = session().partition("city", within=cp.PureDP(50))
    assert people["Rome"].ask(cp.count(), epsilon=50) == 30


BAD = [
    ({}, InvalidParameter),
    ({"epsilon": 1, "error": 5}, InvalidParameter),
    ({"epsilon": 1, "rho": 1}, InvalidParameter),
    ({"epsilon": 0}, InvalidParameter),
    ({"epsilon": -1}, InvalidParameter),
    ({"epsilon": "much"}, InvalidParameter),
    ({"epsilon": True}, InvalidParameter),
    ({"epsilon": float("nan")}, InvalidParameter),
    ({"loss": 0.5}, InvalidParameter),
    ({"loss": cp.PureDP(0)}, NotCovered),
    ({"loss": cp.RenyiDP(alpha=8, epsilon=0.2)}, NotCovered),
    ({"mu": 1}, NotCovered),
    ({"epsilon": 101}, BudgetExceeded),
    ({"error": -1}, InvalidParameter),
    ({"error": "near"}, InvalidParameter),
    ({"error": 5, "probability": 1}, InvalidParameter),
    ({"error": 5, "probability": 95}, InvalidParameter),
    ({"epsilon": 1, "probability": 0.9}, InvalidParameter),
    ({"epsilon": 1, "simultaneous": True}, InvalidParameter),
    ({"epsilon": 1, "id": ""}, InvalidParameter),
    ({"epsilon": 1, "id": 7}, InvalidParameter),
]


@pytest.mark.parametrize(("terms", "refusal"), BAD, ids=repr)
def test_terms_that_cannot_be_met_are_refused_and_nothing_is_charged(terms, refusal):
    s = session()
    with pytest.raises(refusal):
        s.ask(cp.count(), **terms)
    assert s.loss == cp.PureDP(0) and not s.handles


@pytest.mark.parametrize(
    ("request_", "terms", "says"),
    [
        ("how many?", {"epsilon": 1}, "how many"),
        (None, {"epsilon": 1}, "NoneType"),
        (cp.count(where="nonsense ="), {"epsilon": 1}, "cannot be parsed"),
        (cp.keys("street"), {"epsilon": 1}, "ApproxDP"),
        (cp.keys("street"), {"error": 5}, "keys"),
        (cp.mean("age"), {"error": 5}, "epsilon="),
        (cp.quantile("age", 0.5, [20, 40]), {"error": 5}, "ranks"),
        (cp.quantile("age", 0.5, [20, 40]), {"mu": 1}, "NoisyMax"),
    ],
    ids=repr,
)
def test_requests_that_cannot_be_answered_so_say_what_would_work(request_, terms, says):
    s = session(cp.ApproxDP(10, 1e-3))
    for use in (s.ask, s.would_cost):
        with pytest.raises((InvalidRequest, NotCovered), match=says):
            use(request_, **terms)
    assert not any(s.loss.amounts) and not s.handles


def test_a_mechanism_is_quoted_at_its_own_price():
    with pytest.raises(InvalidParameter, match="error="):
        session().would_cost(cp.Laplace(1), error=5)
    assert session().would_cost(cp.Laplace(1)).cost == cp.PureDP(1)
    with pytest.raises(InvalidRequest, match="Laplace"):
        session().ask(cp.Laplace(1), epsilon=1)


# ------------------------------------------------------------------------------------------------ accuracy first


@pytest.mark.parametrize(
    ("request_", "error", "steps", "l1", "l2", "cells"),
    [
        (cp.count(), 50, 50, 1, 1, 1),
        (cp.count(), 3, 3, 1, 1, 1),
        (cp.count(), 0, 0, 1, 1, 1),
        (cp.sum("pay"), 99.7, 199, 20, 400, 1),
        (cp.histogram("city"), 20, 20, 1, 1, 3),
        (cp.ranks("age", [30, 60, 90]), 20, 20, 3, 3, 3),
    ],
    ids=repr,
)
@pytest.mark.parametrize("simultaneous", [False, True])
def test_the_price_of_an_error_is_within_two_percent_of_the_least_by_search(  # noqa: PLR0917
    request_, error, steps, l1, l2, cells, simultaneous
):
    at_once = cells if simultaneous else 1
    laplace, normal, discrete = questions.keeping(table().prepare(request_), error, simultaneous=simultaneous)

    def keeps(law, spread):
        return (1 - tail(law, spread, steps)) ** at_once >= Fraction(95, 100)

    for found, law, spread in (
        (laplace.epsilon, laplace_options, lambda epsilon: l1 / epsilon),
        (normal.mu, rounded_normal_options, lambda mu: l2 / mu**2),
        (discrete.rho, gaussian_options, lambda rho: l2 / (2 * rho)),
    ):
        assert keeps(law, spread(found)), "the error is kept"
        assert not keeps(law, spread(found / Fraction(102, 100))), "and nothing 2 % cheaper keeps it"


@pytest.mark.parametrize(
    "within",
    [cp.PureDP(10), cp.zCDP(10), cp.GaussianDP(10), cp.ApproxDP(10, 1e-6), cp.tCDP(rho=10, omega=20)],
    ids=repr,
)
@pytest.mark.parametrize("request_", [cp.count(), cp.ranks("age", list(range(10, 120, 10)))], ids=["count", "ranks"])
def test_what_lowers_the_budget_least_is_launched(within, request_):
    s = session(within)
    answer = s.ask(request_, error=30)
    assert answer.error() <= 30
    for other in questions.keeping(table().prepare(request_), 30):
        beside = session(within)
        if beside.would_cost(other).fits:
            beside.launch(other)
            assert beside.remaining.epsilon <= s.remaining.epsilon


def test_an_odometer_loses_least():
    s = cp.Session(table(), rule=cp.Odometer(cp.zCDP))
    answer = s.ask(cp.count(), error=30)
    assert answer.error() <= 30
    for other in questions.keeping(table().prepare(cp.count()), 30):
        assert s.loss.epsilon_at(1e-6) <= s.rule.loss(s.rule.admit(s.rule.start(), other.claim)).epsilon_at(1e-6)


def test_a_quote_is_what_asking_costs_and_changes_nothing():
    s = session(cp.zCDP(1))
    quote = s.would_cost(cp.histogram("city"), error=20, simultaneous=True)
    assert quote.fits and not any(s.loss.amounts) and not s.handles
    answer = s.ask(cp.histogram("city"), error=20, simultaneous=True)
    assert answer.cost == quote.cost and s.loss == quote.after and answer.mechanism == quote.mechanism
    assert answer.error(simultaneous=True) <= 20
    assert not session(cp.PureDP(0.1)).would_cost(cp.count(), error=1).fits


def test_a_handle_states_its_error_in_the_units_of_the_request():
    s = session(cp.ApproxDP(100, 1e-3))
    laplace = s.launch(cp.Laplace(1, asks=2))
    assert laplace.error(cp.sum("pay"), 0.95) == Fraction(cp.Laplace(1, asks=2).error(0.95, 20), 2)
    ranks = cp.ranks("age", [30, 60])
    assert laplace.error(ranks, simultaneous=True) == cp.Laplace(1, asks=2).error(0.95, 2, width=2)
    assert laplace.error(ranks) == cp.Laplace(1, asks=2).error(0.95, 2)
    with pytest.raises(NotCovered, match="mean"):
        laplace.error(cp.mean("age"))
    assert s.launch(cp.NoisyMax(1)).error(ranks) == cp.NoisyMax(1).error(0.95, candidates=2)
    assert s.launch(cp.NoisyMax(1)).error(cp.median("age")) == Fraction(cp.NoisyMax(1).error(0.95, 121), 2)
    with pytest.raises(InvalidRequest, match="keys"):
        laplace.error(cp.keys("street"))


# ------------------------------------------------------------------------------------------------ one request


TERMS = [{"epsilon": "0.5"}, {"error": 5}, {"rho": "0.5"}]


@pytest.mark.parametrize("terms", TERMS, ids=repr)
def test_a_question_with_an_id_is_charged_once_and_answered_once(terms):
    s = session(cp.zCDP(10))
    first = s.ask(cp.count(), id="people", **terms)
    again = s.ask(cp.count(), id="people", **terms)
    assert (again, again.error(), again.mechanism) == (first, first.error(), first.mechanism)
    assert len(s.handles) == 1 and [fact.kind for fact in s.history].count("ask") == 1
    assert s.ask(cp.count(), **terms) is not None and len(s.handles) == 2, "without an id, a new one"


@pytest.mark.parametrize("terms", TERMS, ids=repr)
def test_a_crash_between_launch_and_ask_costs_nothing_more(tmp_path, monkeypatch, terms):
    def opened():
        return cp.Session(table(key=bytes(32)), cp.zCDP(10), ledger=tmp_path / "ledger.db")

    with opened() as s, monkeypatch.context() as patched:

        def crash(*_, **__):
            raise RuntimeError("the process ends here")

        patched.setattr(Engine, "ask", crash)
        with pytest.raises(RuntimeError):
            s.ask(cp.count(), id="people", **terms)
        charged = s.loss
    with opened() as s:
        answer = s.ask(cp.count(), id="people", **terms)
        assert s.loss == charged and len(s.handles) == 1
    with opened() as s:
        assert s.ask(cp.count(), id="people", **terms) == answer and s.loss == charged


def test_a_repeated_question_is_found_though_another_mechanism_is_cheaper_by_now(monkeypatch):
    s = session(cp.zCDP(10))
    first = s.ask(cp.count(), error=5, id="people")
    usual = questions._cheapest_first
    monkeypatch.setattr(questions, "_cheapest_first", lambda *given: usual(*given)[::-1])
    assert s.would_cost(cp.count(), error=5).mechanism != first.mechanism
    again = s.ask(cp.count(), error=5, id="people")
    assert (again, again.mechanism, len(s.handles)) == (first, first.mechanism, 1)


def test_a_repeated_question_is_answered_though_nothing_is_left():
    s = session(cp.PureDP(1))
    first = s.ask(cp.count(), epsilon=1, id="people")
    with pytest.raises(BudgetExceeded):
        s.ask(cp.count(), epsilon=1)
    assert s.ask(cp.count(), epsilon=1, id="people") == first


def test_an_id_stands_for_the_question_and_its_terms():
    s = session(cp.PureDP(10))
    s.ask(cp.count(), epsilon=1, id="people")
    for request_, terms in (
        (cp.count(), {"epsilon": 2}),
        (cp.count(where="age > 3"), {"epsilon": 1}),
        (cp.count(), {"error": 5}),
    ):
        with pytest.raises(RequestConflict, match="people"):
            s.ask(request_, id="people", **terms)
    assert s.loss == cp.PureDP(1)


def test_the_id_of_a_question_is_no_other_requests():
    s = session(cp.PureDP(10))
    for name in ("people", "launch people", "question launch () people", "question ask () people"):
        handle = s.launch(cp.Laplace(1), id=name)
        handle.ask(cp.count(where="age > 3"), id=f"{name} asked")
    answer = s.ask(cp.count(), epsilon=1, id="people")
    assert answer.request == cp.count() and s.loss == cp.PureDP(5)


def test_every_error_of_a_question_is_in_the_tree():
    s = session()
    for terms in ({"epsilon": object()}, {"error": [1]}, {"loss": "PureDP"}, {"rho": 1j}):
        with pytest.raises(CounterpointError):
            s.ask(cp.count(), **terms)


# ------------------------------------------------------------------------------------------------ variances


def dispersed(half, root):
    return Dispersed(None, 6, 12, 3, Fraction(1, 12), half=Fraction(half), root=root)


VALUES = st.lists(st.integers(0, 10), min_size=1, max_size=30)
NOISE = st.tuples(*[st.integers(-40, 40)] * 3)


def triple(values):
    """What a column from 0 to 10 contributes (w = 10, y = 2x - 10), row by row."""
    ys = [2 * value - 10 for value in values]
    return sum(3 * y * y - 100 for y in ys), sum(20 * y for y in ys), 200 * len(ys)


@given(values=VALUES, noise=NOISE, more=st.integers(0, 400), root=st.booleans())
@settings(max_examples=400, deadline=None)
def test_the_error_of_a_variance_holds_whenever_the_noise_of_all_three_numbers_does(values, noise, more, root):
    facts, scale = dispersed(5, root), 1 + more // 10
    noisy = tuple(number + scale * off for number, off in zip(triple(values), noise, strict=True))
    if noisy[2] <= 0:
        assert facts.in_units(noisy) is None
        return
    shown, error = Fraction(facts.in_units(noisy)), facts.error_from(noisy, 40 * scale)
    true = Fraction(statistics.pvariance(map(Fraction, values)))
    if root:
        assert max(Fraction(0), shown - error) ** 2 <= true <= (shown + error) ** 2
    else:
        assert abs(shown - true) <= error


@given(values=VALUES, steps=st.integers(1, 150))
@settings(max_examples=100, deadline=None)
def test_the_error_of_a_variance_is_that_of_some_triple_within_the_noise(values, steps):
    facts, noisy = dispersed(5, False), triple(values)
    error, shown = facts.error_from(noisy, steps), facts.in_units(noisy)
    offs = [Fraction(steps * part, 8) for part in range(-8, 9)]
    boxed = [tuple(map(sum, zip(noisy, off, strict=True))) for off in product((-steps, steps, 0), offs, offs)]
    found = max(abs(min(max((2 * s / w + 1) / 3 - (t / w) ** 2, 0), 1) * 25 - shown) for s, t, w in boxed)
    assert found <= error <= found + Fraction(25, 50)


def test_variances_and_deviations_know_their_errors_also_by_key():
    s = session(cp.PureDP(10**7))
    var, dev = s.ask(cp.variance("age"), epsilon=10**5), s.ask(cp.stdev("pay"), epsilon=10**5)
    assert (
        isinstance(var, cp.FloatAnswer) and abs(var - Fraction(800, 3)) <= var.error() < 1 and type(var.exact) is Exact
    )
    assert isinstance(dev, cp.FloatAnswer) and dev <= dev.error() < 0.2, "all have the same pay"
    by = s.ask(cp.stdev("age", by="city"), epsilon=10**6)
    assert isinstance(by, cp.TableAnswer) and list(by.columns()) == ["city", "value", "error"]
    assert abs(by["Rome"] - 16.33) < 0.01 and by["Rome"].error() < 0.1 and by["<b>Ys</b>"] is None
    steps = by.mechanism.answer_error(by._origin.prepared.message(), "0.95", 3)
    assert by["Rome"]._origin.steps("0.95") == steps, "all three numbers are within their noise at once"


# ------------------------------------------------------------------------------------------------ choices and keys


def test_a_choice_knows_its_price_and_its_rank_error():
    s = session()
    age, pay = s.ask(cp.median("age"), epsilon=50), s.ask(cp.quantile("pay", 0.5), epsilon=50)
    assert isinstance(age, cp.IntChoice) and age == 40 and type(age + 1) is int
    assert isinstance(pay, cp.FloatChoice) and pay == 2.5 == pay.exact and json.dumps(pay) == "2.5"
    for answer, candidates in ((age, 121), (pay, 21)):
        assert answer.cost == cp.PureDP(50) and answer.mechanism == cp.NoisyMax(50)
        assert answer.rank_error(0.99) == Fraction(cp.NoisyMax(50).error(0.99, candidates), 2)
        assert pickle.loads(pickle.dumps(answer)) == answer  # noqa: S301 - our own bytes
        with pytest.raises(NotCovered, match="rank_error"):
            answer.error()
    assert repr(age) == "40 (rank +- 0 rows)" and str(age) == "40" == f"{age}"


def test_a_chosen_date_is_a_text_that_knows_its_rank_error():
    born = pa.table({"who": [1, 2, 3], "day": ["1999-01-01"] * 3})
    data = cp.Table(born, unit="who", rows_per_unit=1, columns={"day": cp.date("1990-01-01", "2010-12-31")})
    answer = cp.Session(data, cp.PureDP(100)).ask(cp.median("day", ["1990-01-01", "1999-01-01"]), epsilon=100)
    assert isinstance(answer, cp.TextChoice) and answer == "1999-01-01" == str(answer) == f"{answer}"
    assert type(str(answer)) is str and json.dumps(answer) == '"1999-01-01"'
    assert repr(answer) == "'1999-01-01' (rank +- 0 rows)" and answer.rank_error("0.999999") == 0


@pytest.mark.statistical
@pytest.mark.parametrize("price", [{"epsilon": "0.5"}, {"rho": "0.05"}], ids=repr)
def test_choices_are_within_their_rank_error_as_often_as_stated(price):
    runs, s = 1000, session(cp.zCDP(10**6))
    missed = 0
    for _ in range(runs):
        answer = s.ask(cp.median("age", [20, 30, 40, 50, 60]), **price)
        rank = {20: 20, 30: 20, 40: 40, 50: 40, 60: 60}[answer], {20: 0, 30: 20, 40: 20, 50: 40, 60: 40}[answer]
        missed += max(0, rank[1] - 30, 30 - rank[0]) > answer.rank_error("0.9")
    assert binom.sf(165, runs, 0.1) < 1e-9, "false alarms are rarer than this"
    assert missed <= 165


def test_selected_keys_know_what_a_key_needs():
    s, loss = session(cp.ApproxDP(100, 1e-2)), cp.ApproxDP(1, 1e-6)
    answer = s.ask(cp.keys("street"), loss=loss)
    assert isinstance(answer, cp.KeysAnswer) and answer == ("rue",) and answer.cost == loss
    assert answer.units_needed(0.95) == cp.PartitionSelection(1, 1e-6).error(0.95) == 16
    assert "PartitionSelection" in answer.why and pickle.loads(pickle.dumps(answer)) == ("rue",)  # noqa: S301 - ours
    with pytest.raises(NotCovered, match="units_needed"):
        answer.error()


def test_keys_that_were_cut_off_state_nothing():
    rows = pa.table({"who": list(range(200)), "street": ["rue", "via"] * 100})
    data = cp.Table(rows, unit="who", rows_per_unit=1, columns={"street": cp.text()})
    answer = cp.Session(data, cp.ApproxDP(50, 1e-2)).ask(cp.keys("street", most=1), loss=cp.ApproxDP(5, 1e-3))
    assert answer == ("rue",)
    with pytest.raises(NotCovered, match="most="):
        answer.units_needed()


# ------------------------------------------------------------------------------------------------ noise and units


def test_what_is_mostly_noise_says_so_by_what_was_released_alone():
    s = session(cp.PureDP(10**6))
    people, few = s.ask(cp.count(), epsilon=10), s.ask(cp.count(where="age > 119"), epsilon="0.001")
    assert not people.mostly_noise and "noise" not in repr(people)
    origin = few._origin
    for released in (-2995, 2995, 0, 2996, -2996):
        cell = labelled(origin.mechanism, origin.prepared, released)
        assert cell.error() == 2996
        assert cell.mostly_noise == (abs(released) < 2996) == repr(cell).endswith("(mostly noise)")
        assert (cell.suppress(signal_to_noise=1) is None) == cell.mostly_noise
    assert labelled(origin.mechanism, origin.prepared, 5000).suppress(2) is None
    assert labelled(origin.mechanism, origin.prepared, 5992).suppress(2) == 5992


def test_a_mean_is_noise_where_its_count_is():
    s = session(cp.PureDP(10**6))
    mean, var = s.ask(cp.mean("age"), epsilon=100)._origin, s.ask(cp.variance("age"), epsilon=100)._origin
    for origin, weigh in ((mean, lambda weight: (0, weight)), (var, lambda weight: (0, 0, weight))):
        steps = origin.steps("0.95")
        assert labelled(origin.mechanism, origin.prepared, weigh(steps - 1)).mostly_noise
        assert not labelled(origin.mechanism, origin.prepared, weigh(steps)).mostly_noise, "though the mean is 0"


def test_a_table_suppresses_what_is_below_a_ratio_and_shows_that():
    s = session(cp.PureDP(10**6))
    origin = s.ask(cp.histogram("city"), epsilon=1)._origin
    answer = labelled(origin.mechanism, origin.prepared, (30, 5, -1))
    assert answer.error() == 3
    assert repr(answer).splitlines()[3].split("  ")[-1] == "mostly noise" and repr(answer).count("mostly noise") == 1
    kept = answer.suppress(signal_to_noise=2)
    assert dict(kept) == {"Paris": 30, "Rome": None, "<b>Ys</b>": None} and kept.cost == answer.cost
    assert repr(kept).count("mostly noise") == 2 == kept._repr_html_().count("mostly noise")
    assert pa.table(kept)["value"].to_pylist() == [30, None, None] and pd.DataFrame(kept).shape == (3, 3)
    with pytest.raises(InvalidParameter, match="signal_to_noise"):
        answer.suppress(signal_to_noise=-1)
    with pytest.raises(InvalidParameter, match="signal_to_noise"):
        answer.suppress(signal_to_noise="much")


def test_answers_are_shown_in_the_units_that_their_column_declares():
    columns = {"wait": cp.number(0, 100, units="minutes"), "line": cp.category(["a"])}
    rows = pa.table({"wait": [10, 20] * 50, "line": ["a"] * 100})
    s = cp.Session(cp.Table(rows, unit=cp.each_row, columns=columns), cp.PureDP(10**6))
    for request_, units in (
        (cp.sum("wait"), "minutes"),
        (cp.mean("wait"), "minutes"),
        (cp.stdev("wait"), "minutes"),
        (cp.variance("wait"), "minutes squared"),
        (cp.median("wait"), "minutes"),
        (cp.mean("wait", by="line"), "minutes"),
        (cp.count(), None),
    ):
        answer = s.ask(request_, epsilon=10**4)
        assert answer.units == units and (units is None or units in repr(answer))
    for units in ("", 3, "x" * 41, "two\nlines"):
        with pytest.raises(InvalidParameter, match="units"):
            cp.number(0, 1, units=units)


def test_iterating_gives_rows_with_names():
    answer = session(cp.PureDP(1000)).ask(cp.histogram("city"), epsilon=100)
    paris, *_ = answer
    assert (paris.city, paris.value, paris.error) == tuple(paris) == ("Paris", 30, 0)
    assert pickle.loads(pickle.dumps(paris)) == paris  # noqa: S301 - our own bytes
    with pytest.raises(AttributeError, match="city, value, error"):
        _ = paris.country


# ------------------------------------------------------------------------------------------------ several questions


class Both(Prepared, frozen=True, kw_only=True):
    """Two requests that were asked at once, of which each has its share of the integers."""

    first: Prepared
    second: Prepared
    cut: int

    def parts(self, answer):
        numbers = answer[0] if self.first.width is None else answer[: self.cut]
        return {"n": (self.first, numbers), "pay": (self.second, answer[self.cut :])}


def asked_together(first, second, names=None):
    width = (first.width or 1) + second.width
    return Both(None, 7, 49, width, Fraction(1), names=names, first=first, second=second, cut=first.width or 1)


def test_several_answers_by_key_are_one_table_each_with_its_error():
    n, pay = table().prepare(cp.count(by="city")), table().prepare(cp.mean("pay", by="city"))
    facts = asked_together(n, pay, n.names)
    answer = labelled(cp.Laplace(7), facts, (30, 28, 1, -300, 600, -280, 560, 3, 2))
    steps = cp.Laplace(7).error("0.95", 7)
    assert list(answer.keys()) == ["Paris", "Rome", "<b>Ys</b>"] and "Rome" in answer and len(answer) == 3
    assert answer["Paris"]["n"] == 30 and answer["Paris"]["n"].error() == steps, "by the noise of the whole request"
    assert answer["Rome"]["pay"] == 2.5 and answer.part("pay")["Rome"] == 2.5 and answer.cost == cp.PureDP(7)
    pair = cp.Laplace(7).error("0.95", 7, width=2)
    assert answer["Rome"]["pay"].error() >= facts.second.error_from((-280, 560), pair)
    heads = ["city", "n", "n_error", "pay", "pay_error"]
    assert pa.table(answer).column_names == heads == list(pd.DataFrame(answer).columns) == pl.DataFrame(answer).columns
    assert [row.n for row in answer] == [30, 28, 1] and "n mostly noise, pay mostly noise" in repr(answer)
    assert repr(answer).splitlines()[0].split() == heads and "n_error" in answer._repr_html_()
    kept = answer.suppress(signal_to_noise=5)
    assert kept["<b>Ys</b>"]["n"] is None and kept["<b>Ys</b>"]["pay"] is None and kept["Rome"]["n"] == 28


def test_several_answers_without_keys_are_a_row():
    facts = asked_together(table().prepare(cp.count()), table().prepare(cp.mean("pay")))
    answer = labelled(cp.Laplace(1), facts, (30, -300, 600))
    assert answer["pay"] == 2.5 and list(answer.keys()) == ["n", "pay"] and pd.DataFrame(answer).shape == (1, 4)


def test_what_is_chosen_without_a_stated_error_still_knows_its_price():
    class Best(Prepared, frozen=True):
        """The best two names, of which nothing is stated."""

        @property
        def wants(self):
            return "choice"

        def in_units(self, answer):
            return tuple(self.names[choice.index] for choice in answer)

    facts = Best(None, 1, 1, 3, Fraction(1), names=("a", "b", "c"))
    answer = labelled(cp.NoisyMax(2), facts, (Chosen(2), Chosen(0)))
    assert answer == ("c", "a") and answer.cost == cp.PureDP(2) and isinstance(answer, cp.TupleAnswer)
    with pytest.raises(NotCovered, match="NoisyMax"):
        answer.error()


# ------------------------------------------------------------------------------------------------ accuracy of choices


@pytest.mark.parametrize("rows", [0, 3, "12.5", 200])
@pytest.mark.parametrize("probability", ["0.5", "0.95", "0.999"])
def test_the_price_of_a_rank_error_is_within_two_percent_of_the_least(rows, probability):
    facts, halves = table().prepare(cp.median("age")), 2 * Fraction(rows)
    flips, odds = questions.keeping(facts, rows, probability, in_rows=True)
    for found, cheaper in (
        (flips, cp.NoisyMax(flips.epsilon / Fraction(102, 100))),
        (odds, cp.NoisyMax(rho=odds.rho / Fraction(102, 100))),
    ):
        assert found.error(probability, 121, facts.each) <= halves < cheaper.error(probability, 121, facts.each)


def test_a_quantile_is_asked_by_the_rank_error_that_it_may_have():
    s = session(cp.PureDP(100))
    quote = s.would_cost(cp.median("age"), rank_error=10)
    answer = s.ask(cp.median("age"), rank_error=10, id="middle")
    assert answer.rank_error() <= 10 and answer.cost == quote.cost == s.loss
    assert "within 10 rows of the best rank" in answer.why
    assert s.ask(cp.median("age"), rank_error=10, id="middle") == answer and s.loss == quote.cost
    for request_, terms in ((cp.count(), {"rank_error": 5}), (cp.median("age"), {"rank_error": -1})):
        with pytest.raises(InvalidParameter, match="error"):
            s.ask(request_, **terms)
    with pytest.raises(NotCovered, match="rank_error=20"):
        s.ask(cp.median("age"), error=5)
    assert s.loss == quote.cost


def test_of_two_ways_to_choose_the_one_with_the_smaller_error_is_launched():
    s = session(cp.zCDP(10**4))
    for rho in ("0.01", "0.5", 8):
        answer = s.ask(cp.median("age"), rho=rho)
        ways = [cp.NoisyMax(rho=rho), cp.NoisyMax(Fraction(2 * Fraction(rho)) ** Fraction(1, 2))]
        assert answer.rank_error() == min(Fraction(way.error("0.95", 121), 2) for way in ways)
        assert "compared" in answer.why and "NoisyMax" in answer.why


def test_why_says_what_each_mechanism_would_have_been_off():
    answer = session(cp.zCDP(100)).ask(cp.count(), rho="0.5")
    assert answer.why.startswith("Gaussian(rho=0.5) with 2 has the least error in steps of the grid")
    assert answer.why.endswith("compared: Laplace(~1) with 3")


@pytest.mark.parametrize("wrong", [1e-9, 1.0, 1e9, 0.0, float("inf"), float("nan")])
def test_where_the_search_for_a_price_begins_does_not_matter(wrong):
    for request_, steps in ((cp.count(), 30), (cp.median("age"), 10)):
        facts = table().prepare(request_)
        ways = reaching._CHOICES if facts.wants == "choice" else reaching._NUMBERS
        for found, (make, _) in zip(reaching.reaching(facts, steps), ways, strict=True):

            def keeps(mechanism, facts=facts, steps=steps):
                return mechanism.answer_error(facts.message(), "0.95", 1) <= steps

            assert reaching._cheapest(make, keeps, wrong) == found


def test_an_error_that_no_parameter_keeps_is_refused_and_one_that_all_keep_costs_next_to_nothing():
    with pytest.raises(InvalidParameter, match="no parameter"):
        reaching._cheapest(cp.Laplace, lambda _: False, 1.0)
    assert session().would_cost(cp.count(), error=5, probability=0).cost.epsilon <= Fraction(1, 10**50)


@pytest.mark.parametrize(
    ("request_", "terms"),
    [
        (cp.count(), {"error": 50}),
        (cp.sum("pay"), {"error": 7.5, "probability": 0.99}),
        (cp.histogram("city"), {"error": 9, "simultaneous": True}),
        (cp.median("age"), {"rank_error": 8}),
    ],
    ids=repr,
)
def test_epsilon_for_is_the_inverse_of_the_error(request_, terms):
    s = session()
    epsilon = s.epsilon_for(request_, **terms)
    assert not s.handles and type(epsilon) is Exact
    cheaper = epsilon / Fraction(102, 100)
    launched = [cp.NoisyMax(e) if "rank_error" in terms else cp.Laplace(e) for e in (epsilon, cheaper)]
    off = [
        s.launch(m).error(request_, terms.get("probability", "0.95"), simultaneous="simultaneous" in terms)
        for m in launched
    ]
    assert off[0] <= terms.get("error", terms.get("rank_error")) < off[1]
    for bad in ({}, {"epsilon": 1}):
        with pytest.raises(InvalidParameter, match="error="):
            s.epsilon_for(cp.count(), **bad)


# ------------------------------------------------------------------------------------------------ suppression, failures


def test_a_question_can_ask_for_suppression_and_costs_the_same():
    s = session(cp.PureDP(1000))
    assert s.ask(cp.count(), epsilon=1, suppress=10**6) is None and s.ask(cp.count(), epsilon=100, suppress=2) == 60
    cities = s.ask(cp.histogram("city"), epsilon=100, suppress=2)
    assert dict(cities) == {"Paris": 30, "Rome": 30, "<b>Ys</b>": None} or cities.error() == 0
    lost = s.loss
    for request_, ratio in ((cp.median("age"), 2), (cp.keys("street"), 2), (cp.count(), -1), (cp.count(), "x")):
        with pytest.raises((InvalidParameter, InvalidRequest), match=r"suppress|ApproxDP"):
            s.ask(request_, epsilon=1, suppress=ratio)
    assert s.loss == lost


@pytest.mark.parametrize("id", [None, "people"])
def test_a_question_that_was_paid_and_not_answered_says_how_it_is_answered(monkeypatch, id):
    s = session(cp.PureDP(1))

    def unreachable(*_):
        raise OSError("no such file")

    with monkeypatch.context() as patched:
        patched.setattr(cp.Table, "resolve", unreachable)
        with pytest.raises(OSError, match="no such file") as failed:
            s.ask(cp.count(), epsilon=1, id=id)
    (note,) = failed.value.__notes__
    (repeated,) = re.findall("id='([^']+)'", note)
    assert "paid for" in note and s.loss == cp.PureDP(1) and repeated == (id or repeated)
    assert isinstance(s.ask(cp.count(), epsilon=1, id=repeated), int)
    assert s.loss == cp.PureDP(1) and len(s.handles) == 1


CHOSEN = [
    (cp.median("age"), {"epsilon": "0.5"}),
    (cp.median("age"), {"rank_error": 20}),
    (cp.quantile("pay", "0.9"), {"loss": cp.ApproxDP("0.5", "1e-7")}),
    (cp.keys("street"), {"loss": cp.ApproxDP("0.5", "1e-7")}),
    (cp.variance("age"), {"epsilon": "0.5"}),
]


@pytest.mark.parametrize(("request_", "terms"), CHOSEN, ids=repr)
def test_choices_and_keys_survive_a_crash_between_launch_and_ask(tmp_path, monkeypatch, request_, terms):
    def opened():
        return cp.Session(table(key=bytes(32)), cp.ApproxDP(10, 1e-5), ledger=tmp_path / "ledger.db")

    def crash(*_, **__):
        raise RuntimeError("the process ends here")

    with opened() as s, monkeypatch.context() as patched:
        patched.setattr(Engine, "ask", crash)
        with pytest.raises(RuntimeError):
            s.ask(request_, id="people", **terms)
        charged = s.loss
    with opened() as s:
        answer = s.ask(request_, id="people", **terms)
        assert s.loss == charged and len(s.handles) == 1
    with opened() as s:
        again = s.ask(request_, id="people", **terms)
        assert (again, again.cost, again.mechanism, s.loss) == (answer, answer.cost, answer.mechanism, charged)


def test_the_errors_of_all_cells_are_computed_once(monkeypatch):
    answer = session().ask(cp.histogram("city"), epsilon=1)
    asked = []
    usual = cp.Laplace.answer_error
    monkeypatch.setattr(cp.Laplace, "answer_error", lambda *given: asked.append(given) or usual(*given))
    assert repr(answer) and answer.columns() and answer._repr_html_() and len(asked) == 1
    assert answer["Rome"].error(0.5) <= answer["Rome"].error("0.95") == answer.error() and len(asked) == 2
    for bad in ([1], None, "near", 1):
        with pytest.raises(InvalidParameter, match="probability"):
            answer["Rome"].error(bad)

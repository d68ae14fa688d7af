"""Answers: numbers and tables that know the least error that their law keeps."""

import copy
import json
import pickle
from fractions import Fraction

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom
from tests.session.asked import COLUMNS, ROWS, session, table, tail
from tests.session.deeds import lines

import counterpoint as cp
from counterpoint.answers import frame as answer_table
from counterpoint.answers.frame import written
from counterpoint.answers.present import present
from counterpoint.answers.provenance import Provenance
from counterpoint.coins.enumerated import laplace_options, rounded_normal_options
from counterpoint.errors import InvalidParameter, NotCovered
from counterpoint.mechanisms.mechanism import Chosen
from counterpoint.queries.request import Averaged, PreparedQuery

# ------------------------------------------------------------------------------------------------ numbers


def test_a_scalar_answer_is_the_plain_number_to_all_that_takes_numbers():
    s = session()
    people, pay, age = s.ask(cp.count(), epsilon=1), s.ask(cp.sum("pay"), epsilon=1), s.ask(cp.mean("age"), epsilon=5)
    assert (type(people), type(pay), type(age)) == (
        cp.answers.IntAnswer,
        cp.answers.FloatAnswer,
        cp.answers.FloatAnswer,
    )
    for answer, kind in ((people, int), (pay, float), (age, float)):
        plain = kind(answer)
        assert isinstance(answer, kind) and answer == plain and hash(answer) == hash(plain)
        assert isinstance(answer + 1, kind) and answer + 1 == plain + 1 and {plain: "x"}[answer] == "x"
        again = pickle.loads(pickle.dumps(answer))  # noqa: S301 - our own bytes
        assert again == plain and type(again) is kind
        assert json.dumps(answer) == json.dumps(plain) == f"{answer}" == f"{plain}"
        shown = str(plain) if kind is int else written(plain, answer.error())[0]
        assert repr(answer) == str(answer) and repr(answer).startswith(f"{shown} +- ")


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
    in_zcdp = [({"rho": 12}, rounded_normal_options, Fraction(steps**2, 24))]
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


@pytest.mark.parametrize("probability", ["0.5", "0.95", "0.999"])
def test_the_stated_error_of_all_cells_at_once_is_the_least_on_the_grid_by_the_exact_law(probability):
    cases = [
        (session(), {"epsilon": "0.7"}, laplace_options, Fraction(10, 7)),
        (session(cp.GaussianDP(100)), {"mu": "0.7"}, rounded_normal_options, Fraction(100, 49)),
        (session(cp.zCDP(100)), {"rho": "0.1"}, rounded_normal_options, Fraction(5)),
    ]
    for held, price, law, spread in cases:
        counts = held.ask(cp.histogram("city"), **price)
        m = counts.error(probability, simultaneous=True)
        assert (1 - tail(law, spread, m)) ** 3 >= Fraction(probability) > (1 - tail(law, spread, m - 1)) ** 3


@pytest.mark.statistical
def test_all_cells_are_within_a_wanted_error_at_once_as_often_as_was_wanted():
    runs, s, true = 1000, session(cp.PureDP(10**6)), {"Paris": 30, "Rome": 30, "<b>Ys</b>": 0}
    terms = {"error": 6, "probability": "0.9", "simultaneous": True}
    answers = (s.ask(cp.histogram("city"), **terms) for _ in range(runs))
    missed = sum(any(abs(answer[key] - count) > 6 for key, count in true.items()) for answer in answers)
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
    facts, released = answer._provenance.prepared, answer._provenance.released
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
    assert isinstance(answer["Rome"], cp.answers.IntAnswer) and answer["Rome"].error() == answer.error() == 0
    expected = {"city": list(answer.keys()), "value": [int(v) for v in answer.values()], "error": [0, 0, 0]}
    assert pa.table(answer).to_pydict() == pl.DataFrame(answer).to_dict(as_series=False) == expected
    assert answer.to_pandas().equals(pd.DataFrame(expected)) and pd.DataFrame(answer).equals(pd.DataFrame(expected))
    with pytest.raises(KeyError):
        answer["Atlantis"]


def test_a_sum_by_key_is_in_units():
    answer = session().ask(cp.sum("pay", by="city"), epsilon=100)
    assert pa.table(answer).column_names == ["city", "value", "error"]
    assert isinstance(answer["Rome"], cp.answers.FloatAnswer) and answer.error(0) == 0.0 and answer["Rome"] % 0.5 == 0


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


def test_names_that_follow_from_the_request_are_not_stored_beside_it():
    for request_ in (cp.histogram("age", edges=[0, 30, 50]), cp.ranks("age", [30]), cp.count(), cp.mean("pay")):
        prepared = table().prepare(request_)
        assert prepared.names is None and prepared.units is None


class Doubled(PreparedQuery, frozen=True):
    """A prepared request whose answer is no multiple of the integers, and which states no error."""

    def in_units(self, answer):
        return Fraction(answer**2)


def test_no_error_is_stated_where_the_units_are_no_multiple_and_nothing_else_is_said():
    facts = Doubled(None, 1, 1, None, Fraction(1))
    with pytest.raises(NotCovered, match="no error is stated"):
        facts.error_in_units(3)
    assert type(present(Provenance(cp.Laplace(1), facts, 3))) is Fraction


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


# ------------------------------------------------------------------------------------------------ noise and units


def test_what_is_mostly_noise_says_so_by_what_was_released_alone():
    s = session(cp.PureDP(10**6))
    people, few = s.ask(cp.count(), epsilon=10), s.ask(cp.count(where="age > 119"), epsilon="0.001")
    assert not people.mostly_noise and "noise" not in repr(people)
    provenance = few._provenance
    for released in (-2995, 2995, 0, 2996, -2996):
        cell = present(Provenance(provenance.mechanism, provenance.prepared, released))
        assert cell.error() == 2996
        assert cell.mostly_noise == (abs(released) < 2996) == repr(cell).endswith("(mostly noise)")
        assert (cell.suppress(signal_to_noise=1) is None) == cell.mostly_noise
    assert present(Provenance(provenance.mechanism, provenance.prepared, 5000)).suppress(2) is None
    assert present(Provenance(provenance.mechanism, provenance.prepared, 5992)).suppress(2) == 5992


def test_a_mean_is_noise_where_its_count_is():
    s = session(cp.PureDP(10**6))
    mean, var = s.ask(cp.mean("age"), epsilon=100)._provenance, s.ask(cp.variance("age"), epsilon=100)._provenance
    for provenance, weigh in ((mean, lambda weight: (0, weight)), (var, lambda weight: (0, 0, weight))):
        steps = provenance.steps("0.95")
        assert present(Provenance(provenance.mechanism, provenance.prepared, weigh(steps - 1))).mostly_noise
        assert not present(Provenance(provenance.mechanism, provenance.prepared, weigh(steps))).mostly_noise, (
            "though the mean is 0"
        )


def test_a_table_suppresses_what_is_below_a_ratio_and_shows_that():
    s = session(cp.PureDP(10**6))
    provenance = s.ask(cp.histogram("city"), epsilon=1)._provenance
    answer = present(Provenance(provenance.mechanism, provenance.prepared, (30, 5, -1)))
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


class BothNoises(PreparedQuery, frozen=True, kw_only=True):
    """Two requests that were asked at once, of which each has its share of the integers."""

    first: PreparedQuery
    second: PreparedQuery
    cut: int

    def parts(self, answer):
        numbers = answer[0] if self.first.width is None else answer[: self.cut]
        return {"n": (self.first, numbers), "pay": (self.second, answer[self.cut :])}


def asked_together(first, second, names=None):
    width = (first.width or 1) + second.width
    return BothNoises(None, 7, 49, width, Fraction(1), names=names, first=first, second=second, cut=first.width or 1)


def test_several_answers_by_key_are_one_table_each_with_its_error():
    n, pay = table().prepare(cp.count(by="city")), table().prepare(cp.mean("pay", by="city"))
    facts = asked_together(n, pay, n.names)
    answer = present(Provenance(cp.Laplace(7), facts, (30, 28, 1, -300, 600, -280, 560, 3, 2)))
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
    answer = present(Provenance(cp.Laplace(1), facts, (30, -300, 600)))
    assert answer["pay"] == 2.5 and list(answer.keys()) == ["n", "pay"] and pd.DataFrame(answer).shape == (1, 4)


def test_what_is_chosen_without_a_stated_error_still_knows_its_price():
    class Best(PreparedQuery, frozen=True):
        """The best two names, of which nothing is stated."""

        @property
        def wants(self):
            return "choice"

        def in_units(self, answer):
            return tuple(self.names[choice.index] for choice in answer)

    facts = Best(None, 1, 1, 3, Fraction(1), names=("a", "b", "c"))
    answer = present(Provenance(cp.NoisyMax(2), facts, (Chosen(2), Chosen(0))))
    assert answer == ("c", "a") and answer.cost == cp.PureDP(2) and isinstance(answer, cp.answers.TupleAnswer)
    with pytest.raises(NotCovered, match="NoisyMax"):
        answer.error()


def test_an_answer_is_pickled_or_refuses_at_once():
    people = cp.Table(cp.datasets.people(), unit="person_id", rows_per_unit=1, columns={"age": cp.number(0, 100)})
    session = cp.Session(people, within=cp.PureDP(100))
    asked = {
        "number": cp.count(),
        "float": cp.mean("age"),
        "choice": cp.median("age"),
        "table": cp.ranks("age", [20, 40]),
        "record": cp.select(n=cp.count(), m=cp.mean("age")),
        "several": cp.select(n=cp.count(), m=cp.mean("age"), by="age", keys=[20, 40]),
    }
    for name, request in asked.items():
        answer = session.ask(request, epsilon=1)
        assert repr(copy.deepcopy(answer)) and repr(copy.copy(answer))
        if name in ("table", "record", "several"):
            with pytest.raises(InvalidParameter, match=r"pickle answer.columns\(\)"):
                pickle.dumps(answer)
            assert pickle.loads(pickle.dumps(answer.columns())) == answer.columns()  # noqa: S301 - our own
        else:
            assert pickle.loads(pickle.dumps(answer)) == answer  # noqa: S301 - our own

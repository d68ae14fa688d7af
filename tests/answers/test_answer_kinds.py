"""Variances, choices and selected keys: what they state about themselves, and that it holds."""

import json
import pickle
import statistics
from fractions import Fraction
from itertools import product

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom
from tests.session.asked import session

import counterpoint as cp
from counterpoint.errors import NotCovered
from counterpoint.numbers import Exact
from counterpoint.queries.variance import Dispersed

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
    surely = "0.999999999"  # a false alarm in a billion runs
    assert isinstance(var, cp.answers.FloatAnswer) and abs(var - Fraction(800, 3)) <= var.error(surely)
    assert var.error() < 1 and type(var.exact) is Exact
    assert isinstance(dev, cp.answers.FloatAnswer) and dev <= dev.error(surely), "all have the same pay"
    assert dev.error() < 0.2
    by = s.ask(cp.stdev("age", by="city"), epsilon=10**6)
    assert isinstance(by, cp.answers.TableAnswer) and list(by.columns()) == ["city", "value", "error"]
    assert abs(by["Rome"] - 16.33) < 0.01 + by["Rome"].error(surely) and by["Rome"].error() < 0.1
    assert by["<b>Ys</b>"] is None
    steps = by.mechanism.answer_error(by._provenance.prepared.message(), "0.95", 3)
    assert by["Rome"]._provenance.steps("0.95") == steps, "all three numbers are within their noise at once"


# ------------------------------------------------------------------------------------------------ choices and keys


def test_a_choice_knows_its_price_and_its_rank_error():
    s = session()
    age, pay = s.ask(cp.median("age"), epsilon=50), s.ask(cp.quantile("pay", 0.5), epsilon=50)
    assert isinstance(age, cp.answers.IntChoice) and age == 40 and type(age + 1) is int
    assert isinstance(pay, cp.answers.FloatChoice) and pay == 2.5 == pay.exact and json.dumps(pay) == "2.5"
    for answer, candidates in ((age, 121), (pay, 21)):
        assert answer.cost == cp.PureDP(50) and answer.mechanism == cp.NoisyMax(50)
        assert answer.rank_error(0.99) == Fraction(cp.NoisyMax(50).error(0.99, candidates), 2)
        assert pickle.loads(pickle.dumps(answer)) == answer  # noqa: S301 - our own bytes
        with pytest.raises(NotCovered, match="rank_error"):
            answer.error()
    assert repr(age) == str(age) == "40 (rank within 0 rows)" and f"{age}" == "40"
    rough = session(cp.PureDP(1)).ask(cp.quantile("age", "0.9"), epsilon=1)
    assert rough.rows_needed() == int(Fraction(rough.rank_error()) / Fraction("0.9")) + 1 > 1
    assert f"(rank within {rough.rank_error()} rows; mostly noise among fewer than {rough.rows_needed()})" in str(rough)


def test_a_chosen_date_is_a_text_that_knows_its_rank_error():
    born = pa.table({"who": [1, 2, 3], "day": ["1999-01-01"] * 3})
    data = cp.Table(born, unit="who", rows_per_unit=1, columns={"day": cp.date("1990-01-01", "2010-12-31")})
    answer = cp.Session(data, cp.PureDP(100)).ask(cp.median("day", ["1990-01-01", "1999-01-01"]), epsilon=100)
    assert isinstance(answer, cp.answers.TextChoice) and answer == "1999-01-01" == str(answer) == f"{answer}"
    assert type(str(answer)) is str and json.dumps(answer) == '"1999-01-01"'
    assert repr(answer) == "'1999-01-01' (rank within 0 rows)" and answer.rank_error("0.999999") == 0


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
    assert isinstance(answer, cp.answers.KeysAnswer) and answer == ("rue",) and answer.cost == loss
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


def test_choices_by_key_are_a_table_with_rank_errors():
    s = session(cp.PureDP(1000))
    answer = s.ask(cp.median("age", by="city"), epsilon="0.5")
    assert isinstance(answer["Rome"], cp.answers.IntChoice) and list(answer.columns()) == [
        "city",
        "value",
        "rank_error",
    ]
    assert answer["Rome"].rank_error("0.9") == answer.rank_error("0.9") < answer.rank_error("0.9", simultaneous=True)
    with pytest.raises(NotCovered, match="rank_error"):
        answer.error()
    with pytest.raises(NotCovered, match="chosen"):
        s.ask(cp.histogram("city"), epsilon=5).rank_error()
    wanted = s.ask(cp.median("age", by="city"), rank_error=6, simultaneous=True)
    assert wanted.rank_error(simultaneous=True) <= 6


def test_choices_for_one_key_are_a_table_with_one_row_and_not_the_name_of_the_key():
    s = session(cp.PureDP(1000))
    for request in (cp.median("age", by="city", keys=["Rome"]), cp.minimum("age", 1, by="city", keys=["Rome"])):
        answer = s.ask(request, epsilon=1)
        assert list(answer.keys()) == ["Rome"] and isinstance(answer["Rome"], cp.answers.IntChoice)
        (chosen,) = s.launch(cp.NoisyMax(epsilon=1)).ask(request)
        assert isinstance(chosen, int)


@pytest.mark.parametrize("error", [10**400, 2**70, np.array([1, 2])])
def test_an_error_that_no_search_reaches_is_refused(error):
    s = session(cp.PureDP(1000))
    with pytest.raises(cp.errors.InvalidParameter):
        s.ask(cp.count(), error=error)
    with pytest.raises(cp.errors.InvalidParameter):
        s.ask(cp.median("age"), rank_error=error)

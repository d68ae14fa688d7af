"""Shares: two counts in one release, an error that holds whenever the noise of both does, and even bins."""

from fractions import Fraction
from itertools import product

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom
from tests.session.asked import session

import counterpoint as cp
from counterpoint.errors import InvalidRequest, NotCovered
from counterpoint.queries.shares import PreparedShare

FACTS = PreparedShare(None, 1, 1, 2, Fraction(1))


@given(part=st.integers(0, 40), rest=st.integers(0, 40), steps=st.integers(0, 20), data=st.data())
@settings(max_examples=400, deadline=None)
def test_the_error_of_a_share_holds_whenever_the_noise_of_both_counts_does(part, rest, steps, data):
    noisy = (part + data.draw(st.integers(-steps, steps)), rest + data.draw(st.integers(-steps, steps)))
    shown = FACTS.in_units(noisy)
    if shown is None or part + rest == 0:
        assert shown is None or sum(noisy) > 0
        return
    assert abs(shown - Fraction(part, part + rest)) <= FACTS.error_from(noisy, steps)


@given(part=st.integers(-9, 40), rest=st.integers(-9, 40), steps=st.integers(0, 12))
@settings(max_examples=200, deadline=None)
def test_the_error_of_a_share_is_that_of_some_counts_within_the_noise(part, rest, steps):
    shown = FACTS.in_units((part, rest))
    if shown is None:
        return
    counts = product(range(part - steps, part + steps + 1), range(rest - steps, rest + steps + 1))
    shares = [Fraction(a, a + b) for a, b in counts if a >= 0 and b >= 0 and a + b]
    stated = FACTS.error_from((part, rest), steps)
    found = max((abs(one - shown) for one in shares), default=Fraction(0))
    undecided = part <= steps and rest <= steps  # there may be no rows, and then any share
    assert (found <= stated <= 1) if undecided else found == stated


def test_a_share_knows_its_error_also_by_key_and_counts_unknown_conditions_as_no():
    s = session(cp.PureDP(10**7))
    old = s.ask(cp.share("age >= 40"), epsilon=10**5)
    assert isinstance(old, cp.answers.FloatAnswer) and old.exact == Fraction(2, 3) and old.error() == 0
    assert s.ask(cp.share("age >= 60", "age >= 40"), epsilon=10**5).exact == Fraction(1, 2)
    by = s.ask(cp.share("age >= 60", "age >= 40", by="city"), epsilon=10**5)
    assert isinstance(by, cp.answers.TableAnswer) and list(by.columns()) == ["city", "value", "error"]
    assert by["Rome"].exact == Fraction(1, 2) and by["Rome"].interval() == (0.5, 0.5)
    assert (100 * by["Rome"]).error() == 0, "arithmetic keeps the error"
    assert s.ask(cp.share("CASE WHEN age > 1000 THEN age END > 5"), epsilon=10**5) == 0, "UNKNOWN is not TRUE"
    with pytest.raises(InvalidRequest):
        s.ask(cp.share("TRUE THEN 1 ELSE 0 END"), epsilon=1)
    with pytest.raises(NotCovered, match="how many rows"):
        s.ask(cp.share("age >= 40"), error="0.1")
    few = session().ask(cp.share("age >= 40"), epsilon="0.0001")
    assert few is None or few.mostly_noise


@pytest.mark.statistical
@pytest.mark.parametrize("price", [{"epsilon": "0.2"}, {"rho": "0.02"}], ids=repr)
def test_shares_are_within_their_error_as_often_as_stated(price):
    runs, s = 1000, session(cp.zCDP(10**6))
    answers = [s.ask(cp.share("age >= 40"), **price) for _ in range(runs)]
    missed = sum(abs(answer.exact - Fraction(2, 3)) > answer.error("0.9") for answer in answers if answer is not None)
    assert binom.sf(165, runs, 0.1) < 1e-9, "false alarms are rarer than this"
    assert missed <= 165


COLUMNS = {"n": cp.number(0, 10), "x": cp.number(-1, 1, step="0.1"), "day": cp.date("2024-01-01", "2024-12-31")}
ROWS = {"who": [1, 2, 3], "n": [0, 5, 10], "x": [-1.0, 0.0, 1.0], "day": ["2024-01-01", "2024-06-30", "2024-12-31"]}


def test_even_bins_lie_between_the_declared_bounds_and_hold_every_value():
    s = cp.Session(cp.Table(pa.table(ROWS), unit="who", rows_per_unit=1, columns=COLUMNS), cp.PureDP(10**7))
    for column, bins in (("n", 4), ("n", 10), ("x", 3), ("day", 12), ("n + 1", 2)):
        answer = s.ask(cp.histogram(column, bins=bins), epsilon=10**5)
        assert len(answer) == bins and sum(answer.values()) == 3 and list(answer.values())[-1] >= 1
        lows, highs = zip(*answer.keys(), strict=True)
        assert highs[:-1] == lows[1:] and lows == tuple(sorted(set(lows)))
    assert list(s.ask(cp.histogram("n", bins=4), epsilon=1).keys()) == [(0, 2), (2, 5), (5, 7), (7, 10)]
    assert list(s.ask(cp.histogram("n", bins=4), epsilon=1).columns()) == ["n_from", "n_to", "value", "error"]
    assert list(s.ask(cp.histogram("day", bins=2), epsilon=1).keys())[1] == ("2024-07-01", "2024-12-31")
    for bins, why in ((11, "at most 10 bins"), (0, "bins"), (1000, "at most 999"), ("2.5", "bins")):
        with pytest.raises(InvalidRequest, match=why):
            s.ask(cp.histogram("n", bins=bins), epsilon=1)
    with pytest.raises(InvalidRequest, match="one of them"):
        cp.histogram("n", bins=2, edges=[0, 10])

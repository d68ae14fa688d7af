"""Several quantiles of one release: intervals that hold as often as stated, and bounds on sums of noise."""

from fractions import Fraction
from itertools import accumulate

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom
from tests.session.asked import session

import counterpoint as cp
from counterpoint.coins.enumerated import EnumeratedCoins
from counterpoint.errors import InvalidParameter, InvalidRequest, NotCovered
from counterpoint.privacy.messages import Ask
from counterpoint.queries.several_quantiles import CumulatedQuantiles

COUNTS = st.lists(st.integers(0, 9), min_size=2, max_size=8)
SHARES = st.sampled_from(["0", "0.1", "1/3", "1/2", "0.9", "1"]).map(Fraction)


def facts(cells, q):
    candidates = tuple(map(Fraction, range(cells)))
    return CumulatedQuantiles(
        None, 1, 1, cells, Fraction(1), qs=(q,), candidates=candidates, dates=False, ends=(0, cells - 1), step=1
    )


@given(counts=COUNTS, q=SHARES, data=st.data())
@settings(max_examples=500, deadline=None)
def test_the_quantile_is_in_its_interval_whenever_no_sum_of_noise_is_beyond_its_bound(counts, q, data):
    noise = data.draw(st.lists(st.integers(-6, 6), min_size=len(counts), max_size=len(counts)))
    u, v = q.as_integer_ratio()
    sums = [abs(v * first - u * sum(noise)) for first in accumulate(noise)]
    within = {((v - u, place + 1), (u, len(counts) - place - 1)): off for place, off in enumerate(sums)}
    true = next(place for place, rank in enumerate(accumulate(counts)) if rank >= q * sum(counts))
    noisy = [a + b for a, b in zip(counts, noise, strict=True)]
    first, last = facts(len(counts), q).places(noisy, q, within.__getitem__)
    assert first <= true <= last and first <= facts(len(counts), q).chosen(noisy, q) <= last
    assert facts(len(counts), q).interval(counts, q, lambda weights: 0)[0] <= true


@pytest.mark.parametrize("weights", [((1, 6),), ((1, 3), (3, 3)), ((0, 4), (2, 1))], ids=repr)
@pytest.mark.parametrize("mechanism", [cp.Laplace("0.8"), cp.Gaussian(rho="0.1"), cp.Gaussian(mu="0.4")], ids=repr)
def test_a_sum_of_noise_is_beyond_its_bound_as_seldom_as_stated(mechanism, weights):
    ask = Ask(private=0)
    law = EnumeratedCoins("1e-13").law(lambda coins: mechanism.noise(ask, 1, coins)[0])
    found = {int(z): float(mass) for z, mass in law}
    reach = max(map(abs, found))
    masses = np.array([found.get(z, 0.0) for z in range(-reach, reach + 1)])
    total = np.ones(1)
    for weight, count in weights:
        for _ in range(count if weight else 0):
            total = np.convolve(total, stretched(masses, weight))
    values = np.abs(np.arange(len(total)) - len(total) // 2)
    for probability in ("0.5", "0.95", "0.999"):
        m = mechanism.sum_error(ask, probability, weights)
        assert total[values > m].sum() <= 1 - float(probability) + 1e-12
        if probability != "0.5":
            assert total[values > 0.7 * m - 6].sum() > 1 - float(probability), "the bound is near"


def stretched(masses, weight):
    wide = np.zeros(weight * (len(masses) - 1) + 1)
    wide[::weight] = masses
    return wide


def test_quantiles_of_one_release_have_intervals_in_the_units_of_their_column():
    s = session(cp.PureDP(10**7))
    ages = s.ask(cp.quantile("age", [0.1, 0.5, 0.9]), epsilon=10**5)
    assert isinstance(ages, cp.answers.QuantilesAnswer) and list(ages.columns()) == ["q", "value", "low", "high"]
    assert dict(ages) == {0.1: 20, 0.5: 40, 0.9: 60} and ages.cost == cp.PureDP(10**5)
    assert str(ages[0.5]) == "40 (between 40 and 40)" and type(ages[0.5] + 1) is int
    assert not ages[0.5].mostly_noise
    pay = s.ask(cp.quantile("pay", [0.5], by="city"), epsilon=10**5)
    assert pay["Rome", 0.5] == 2.5 and pay["Rome", 0.5].interval() == (2.5, 2.5)
    assert pay["<b>Ys</b>", 0.5].mostly_noise is False or pay["<b>Ys</b>", 0.5] >= 0
    assert next(iter(pay)).city == "Paris" and next(iter(pay)).low == 2.5
    rough = session().ask(cp.quantile("age", [0.5]), epsilon="0.001")
    assert rough[0.5].interval() == (0, 120) and rough[0.5].mostly_noise and "mostly noise" in str(rough)
    assert "mostly noise" in str(rough.plot())
    one = rough[0.5]
    for call in (rough.error, rough.rank_error, lambda: rough.suppress(2), one.error, one.rank_error, one.rows_needed):
        with pytest.raises(NotCovered):
            call()
    spent = s.loss
    for terms, why in (({"error": 3}, NotCovered), ({"rank_error": 3}, InvalidParameter)):
        with pytest.raises(why):
            s.ask(cp.quantile("age", [0.5]), **terms)
    with pytest.raises(InvalidParameter, match="suppress"):
        s.ask(cp.quantile("age", [0.5]), epsilon=1, suppress=2)
    assert s.loss == spent
    with pytest.raises(InvalidRequest, match="different"):
        cp.quantile("age", [0.5, "1/2"])


DAYS = pa.table({"who": list(range(9)), "day": [f"2024-01-0{n}" for n in range(1, 10)]})


def test_candidates_may_leave_rows_above_or_below_them_and_may_be_dates():
    columns = {"day": cp.date("2024-01-01", "2024-01-31")}
    s = cp.Session(cp.Table(DAYS, unit="who", rows_per_unit=1, columns=columns), cp.PureDP(10**7))
    found = s.ask(cp.quantile("day", [0.1, 0.5, 1], ["2023-12-31", "2024-01-04", "2024-01-06"]), epsilon=10**5)
    assert [found[q].interval() for q in (0.1, 0.5, 1)] == [
        ("2024-01-01", "2024-01-04"),
        ("2024-01-05", "2024-01-06"),
        ("2024-01-07", "2024-01-31"),
    ]
    assert list(found.values()) == ["2024-01-04", "2024-01-06", "2024-01-06"]
    assert isinstance(found[0.5], str) and str(found).count("2024") == 9
    one = s.ask(cp.quantile("day", [0.5], ["2030-01-01"]), epsilon=10**5)
    assert one[0.5].interval() == ("2024-01-01", "2024-01-31")


@pytest.mark.statistical
@pytest.mark.parametrize("price", [{"epsilon": "0.3"}, {"rho": "0.02"}, {"mu": "0.2"}], ids=repr)
def test_intervals_miss_the_quantile_as_seldom_as_stated(price):
    runs, s = 150, session(cp.zCDP(10**6) if "mu" not in price else cp.GaussianDP(10**4))
    candidates = list(range(0, 121, 10))
    answers = [s.ask(cp.quantile("age", ["0.2", "0.5", "0.8"], candidates), **price) for _ in range(runs)]
    for q, true in ((0.2, 20), (0.5, 40), (0.8, 60)):
        intervals = [answer[q].interval("0.9") for answer in answers]
        missed = sum(not low <= true <= high for low, high in intervals)
        assert missed <= 45 and binom.sf(45, runs, 0.1) < 1e-9, "false alarms are rarer than this"
        assert any(high - low < 80 for low, high in intervals)

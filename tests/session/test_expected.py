"""What an answer will be worth, before it is paid for: stated errors hold, and quotes say what the answer will say."""

import statistics
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.session.asked import session

import counterpoint as cp
from counterpoint.errors import InvalidParameter, NotCovered, RequestConflict
from counterpoint.queries.request import Averaged
from counterpoint.queries.shares import PreparedShare
from counterpoint.queries.variance import Dispersed
from counterpoint.wire.documents import quote_json, read_quote

MEAN = Averaged(None, 20, 200, 2, Fraction(1, 2), low=Fraction(0), high=Fraction(10))
SHARE = PreparedShare(None, 1, 1, 2, Fraction(1))
VALUES = st.lists(st.integers(0, 10), min_size=1, max_size=25)
NOISE = st.tuples(*[st.sampled_from([-1, 1, Fraction(1, 2), 0])] * 3)


def dispersed(root):
    return Dispersed(None, 6, 12, 3, Fraction(1, 12), half=Fraction(5), root=root)


def sums(values):
    """What each request adds up of a column from 0 to 10: see `Mean`, `Variance` and `Share` (of 5 and more)."""
    ys = [2 * value - 10 for value in values]
    triple = sum(3 * y * y - 100 for y in ys), sum(20 * y for y in ys), 200 * len(ys)
    return (sum(ys), 10 * len(ys)), triple, (sum(v >= 5 for v in values), sum(v < 5 for v in values))


@given(values=VALUES, noise=NOISE, error=st.fractions("0.02", 6, max_denominator=50), fewer=st.integers(0, 5))
@settings(max_examples=500, deadline=None)
def test_an_answer_about_as_many_rows_as_were_said_is_within_the_error_that_was_wanted(values, noise, error, fewer):
    rows = max(1, len(values) - fewer)
    pair, triple, counts = sums(values)
    exact = [Fraction(value) for value in values]
    wanted = [
        (MEAN, pair, statistics.mean(exact)),
        (dispersed(False), triple, statistics.pvariance(exact)),
        (SHARE, counts, Fraction(counts[0], len(values))),
    ]
    for facts, numbers, true in wanted:
        steps = facts.steps_keeping(error, rows)
        assert facts.error_among(steps, rows) <= error
        noisy = tuple(int(number + steps * off) for number, off in zip(numbers, noise, strict=False))
        shown = facts.in_units(noisy)
        assert abs(shown - true) <= error, (facts, noisy)
    steps = dispersed(True).steps_keeping(error, rows)
    noisy = tuple(int(number + steps * off) for number, off in zip(triple, noise, strict=True))
    assert abs(dispersed(True).in_units(noisy) - float(statistics.pvariance(exact)) ** 0.5) <= error + Fraction(
        1, 10**9
    )


REQUESTS = [
    (cp.mean("age"), 60),
    (cp.mean("age", by="city", keys=["Paris", "Rome"]), 30),
    (cp.variance("pay"), 60),
    (cp.stdev("age"), 60),
    (cp.share("age >= 40"), 60),
]


@pytest.mark.parametrize(("request_", "rows"), REQUESTS, ids=repr)
def test_means_variances_and_shares_take_an_error_where_it_is_said_how_many_rows_there_are(request_, rows):
    s = session(cp.PureDP(10**6))
    with pytest.raises(NotCovered, match="rows_at_least"):
        s.ask(request_, error="0.5")
    dear = s.would_cost(request_, error="0.25", rows_at_least=rows)
    cheap = s.would_cost(request_, error="0.5", rows_at_least=rows)
    assert dear.cost.epsilon > cheap.cost.epsilon and Fraction("0.4") < cheap.expected.within <= Fraction("0.5")
    assert s.epsilon_for(request_, error="0.5", rows_at_least=rows) == cheap.cost.epsilon
    answer = s.ask(request_, error="0.5", rows_at_least=rows, id="half")
    assert answer.cost == cheap.cost
    with pytest.raises(RequestConflict):
        s.ask(request_, error="0.5", rows_at_least=rows + 1, id="half")


def test_a_relative_error_is_one_of_counts_of_at_least_so_many_rows():
    s = session(cp.PureDP(10**6))
    relative = s.would_cost(cp.count(by="city"), relative_error="0.1", rows_at_least=200)
    assert relative == s.would_cost(cp.count(by="city"), error=20)
    assert s.ask(cp.count(), relative_error="0.5", rows_at_least=30).error() <= 15
    for terms in ({"relative_error": "0.1"}, {"relative_error": 0, "rows_at_least": 3}, {"rows_at_least": 3}):
        with pytest.raises(InvalidParameter):
            s.would_cost(cp.count(), **terms)
    with pytest.raises(NotCovered, match="counts"):
        s.would_cost(cp.sum("age"), relative_error="0.1", rows_at_least=30)


PRICES = [{"epsilon": "0.5"}, {"rho": "0.1"}, {"error": 9}, {"epsilon": 1, "rows_at_least": 50}]


@pytest.mark.parametrize("on", PRICES, ids=repr)
def test_a_quote_says_what_the_answer_will_and_what_other_prices_would_buy(on):
    s = session(cp.zCDP(10**6))
    quote = s.would_cost(cp.count(by="city"), **on)
    answer = s.ask(cp.count(by="city"), **on)
    assert quote.expected.within == answer.error() and quote.expected.what == "error"
    prices = [within for _, within in quote.expected.prices]
    assert len(prices) == 5 and prices == sorted(prices, reverse=True) and prices[2] == answer.error()
    assert (quote.cost, quote.expected.within) in quote.expected.prices
    assert read_quote(quote_json(quote)) == quote


def test_a_quote_states_ranks_and_keys_in_their_own_measure_and_nothing_where_nothing_is_known():
    s = session(cp.ApproxDP(100, 1e-5))
    rank = s.would_cost(cp.median("age"), epsilon=1).expected
    assert (rank.what, rank.within) == ("rank_error", s.ask(cp.median("age"), epsilon=1).rank_error())
    keys = s.would_cost(cp.keys("street"), loss=cp.ApproxDP(1, 1e-6)).expected
    assert keys.what == "units_needed" and keys.within > 1
    assert s.would_cost(cp.mean("age"), epsilon=1).expected is None
    assert s.would_cost(cp.mean("age"), epsilon=1, rows_at_least=60).expected.within < 120
    assert s.would_cost(cp.quantile("age", [0.5]), epsilon=1).expected is None
    assert s.would_cost(cp.Laplace(1)).expected is None
    with pytest.raises(InvalidParameter, match="probability"):
        s.would_cost(cp.count(), epsilon=1, probability="0.9")

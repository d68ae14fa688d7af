"""Filters for f-DP keep a rest that composes with each launch; comparing tensor products instead is beaten."""

import math
from fractions import Fraction
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from counterpoint.composition.accumulator import Account
from counterpoint.composition.filters import Filter
from counterpoint.composition.odometers import Odometer
from counterpoint.encoding import decode, encode
from counterpoint.errors import BudgetExceeded, InvalidParameter, NotCovered
from counterpoint.measures import ApproxDP, GaussianDP, PureDP, TradeOff, curves, zCDP
from counterpoint.measures.conversions import response_of
from counterpoint.measures.curves import lies_above_with, rest_after
from counterpoint.mechanisms.additive import Gaussian, Laplace
from counterpoint.mechanisms.concurrent import Concurrent
from counterpoint.privacy.claims import claim
from counterpoint.privacy.relations import every_step

F = Fraction
GROWTH = F(13, 10)
TWO, FOUR = ([(F(n, n + 1), F(1, n + 1)), (F(1, n + 1), F(n, n + 1))] for n in (2, 4))
EXPOSED = [(F(3, 10), F(0)), (F(0), F(3, 10)), (F(7, 10), F(7, 10))]


def of(loss, interaction="one-shot"):
    return claim(loss, every_step(), "a test", interaction=interaction)


def curve_of(outcomes):
    return TradeOff(curves.of_atoms((q, p) for p, q in outcomes))


def test_an_analyst_who_chooses_by_the_first_answer_exceeds_both_tensors():
    def delta(then):
        return sum(max(p * r - GROWTH * q * u, 0) for (p, q), after in zip(TWO, then, strict=True) for r, u in after)

    assert delta((FOUR, EXPOSED)) == F(41, 75)
    tensors = [curve_of(TWO).tensor(curve_of(other)) for other in (FOUR, EXPOSED)]
    assert delta((FOUR, FOUR)) == F(27, 50) and delta((EXPOSED, EXPOSED)) < F(27, 50)
    budget = TradeOff(curves.envelope([(GROWTH, F(23, 50)), (1 / GROWTH, F(23, 50) / GROWTH)]))
    assert all(tensor.lies_above(budget) for tensor in tensors), "so a filter that compares tensors admits either"


def test_the_filter_refuses_that_analyst_one_of_the_two():
    budget = TradeOff(curves.envelope([(GROWTH, F(23, 50)), (1 / GROWTH, F(23, 50) / GROWTH)]))
    rule = Filter(budget)
    account = rule.admit(rule.start(), of(curve_of(TWO)))
    fit = [rule.fits(account, of(curve_of(other))) for other in (FOUR, EXPOSED)]
    assert fit != [True, True]


def test_there_is_no_odometer_and_the_refusal_says_why():
    with pytest.raises(InvalidParameter, match="41/75 where every tensor says 27/50"):
        Odometer(TradeOff)


outcomes = st.lists(st.tuples(st.integers(1, 20), st.integers(1, 20)), min_size=1, max_size=5)


def normalised(pairs):
    totals = [sum(column) for column in zip(*pairs, strict=True)]
    return [(F(p, totals[0]), F(q, totals[1])) for p, q in pairs]


@settings(max_examples=60, deadline=None)
@given(outcomes, outcomes, outcomes)
def test_the_check_without_the_product_agrees_with_the_product(first, rest, left):
    one, other, limit = (curves.of_atoms(normalised(pairs)) for pairs in (first, rest, left))
    assert lies_above_with(one, other, limit) == curves.lies_above(curves.product(one, other), limit)


@settings(max_examples=40, deadline=None)
@given(outcomes, outcomes)
def test_what_is_named_as_the_rest_is_one(first, left):
    launched, limit = (curves.of_atoms(normalised(pairs)) for pairs in (first, left))
    rest = rest_after(launched, limit)
    if rest is None:
        assert not curves.lies_above(launched, limit)
    else:
        assert curves.lies_above(curves.product(launched, rest), limit)


@pytest.mark.parametrize(("spent", "left"), [("0.3", 0.7), ("0.999", 0.001), ("1e-6", 0.999999)])
def test_of_a_randomized_response_the_rest_of_its_epsilon_is_left(spent, left):
    rule = Filter(TradeOff.of_approx(1, 0))
    account = rule.admit(rule.start(), Laplace(spent, asks=3).claim)
    assert float(rule.remaining(account).epsilon) == pytest.approx(left, rel=1e-6)
    with pytest.raises(BudgetExceeded) as refused:
        rule.admit(account, of(PureDP(F(str(left)) * F(11, 10))))
    assert rule.fits(account, of(refused.value.would_fit)), "what it says would fit does"


def test_an_exposure_is_kept_beside_the_epsilon():
    rule = Filter(TradeOff.of_approx(1, "1e-3"))
    account = rule.admit(rule.start(), of(ApproxDP("0.4", "1e-4"), "endless"))
    assert rule.fits(account, of(ApproxDP("0.59", "8.9e-4"), "endless"))
    assert not rule.fits(account, of(ApproxDP("0.1", "9.1e-4")))


def test_a_gaussian_table_takes_about_as_many_launches_as_a_gaussian_budget():
    rule, launch = Filter(GaussianDP(1).as_tradeoff()), PureDP("0.3").as_tradeoff()
    account, count = rule.start(), 0
    while rule.fits(account, of(launch)):
        account, count = rule.admit(account, of(launch)), count + 1
    by_mu = math.floor(1 / PureDP("0.3").as_gaussian().mu ** 2)
    assert by_mu - 1 <= count <= math.floor(1 / F("0.3") ** 2), (
        "the last is what a Gaussian of that variance would cost"
    )


def test_gaussian_launches_are_taken_by_their_tables():
    rule = Filter(GaussianDP(1).as_tradeoff())
    account = rule.admit(rule.start(), Gaussian(mu="0.5", asks=3).claim)
    assert rule.fits(account, of(GaussianDP("0.8"))) and not rule.fits(account, of(GaussianDP("0.9")))


@pytest.mark.parametrize(
    "claimed",
    [of(zCDP("0.01"), "endless"), of(GaussianDP("0.1"), "endless"), of(TradeOff.of_approx(1, 0), "endless")],
    ids=repr,
)
def test_what_is_no_postprocessing_of_one_draw_is_refused(claimed):
    rule = Filter(TradeOff.of_approx(1, 0))
    with pytest.raises(NotCovered, match="covers PureDP and ApproxDP"):
        rule.admit(rule.start(), claimed)


def test_curves_of_many_segments_are_refused():
    with pytest.raises(NotCovered, match="at most 64 segments"):
        Filter(GaussianDP(1).as_tradeoff(points=64))
    rule = Filter(TradeOff.of_approx(9, 0))
    with pytest.raises(NotCovered, match="at most 64 segments"):
        rule.admit(rule.start(), of(GaussianDP("0.1").as_tradeoff(points=64)))


def lost(budget, *losses):
    rule = Filter(budget)
    account = rule.start()
    for loss in losses:
        account = rule.admit(account, of(loss))
    assert decode(encode(account), Account) == account
    return rule.loss(account)


def test_what_was_lost_is_read_as_a_sum_where_one_is_proven_and_above_the_budget():
    budget = TradeOff.of_approx(1, "0.01")
    assert lost(budget) == TradeOff([(0, 1), (1, 0)])
    assert lost(budget, PureDP("0.1"), ApproxDP("0.2", "0.001")) == TradeOff.of_approx("0.3", "0.001")
    gaussian = GaussianDP(1).as_tradeoff()
    read = lost(gaussian, GaussianDP("0.3"), GaussianDP("0.4"))
    assert read == GaussianDP("0.5").as_tradeoff() and read.lies_above(gaussian)
    assert lost(gaussian, GaussianDP("0.3"), PureDP("0.1")).lies_above(GaussianDP("0.33").as_tradeoff())


def test_a_launch_of_another_kind_ends_that_and_the_budget_is_read_from_there_on():
    """Two sums side by side would be a union of filters, which bounds nothing here: their tails would add up."""
    budget = GaussianDP(1).as_tradeoff()
    for losses in (
        (PureDP("0.1"), GaussianDP("0.1")),
        (zCDP("0.001"), PureDP("0.1")),
        (PureDP("0.1"), zCDP("0.001"), PureDP("0.1")),
        (PureDP("0.3"), PureDP("0.3"), PureDP("0.3")),
    ):
        assert lost(budget, *losses) == budget, losses


def test_a_budget_can_be_delegated_inside_another():
    rule = Filter(TradeOff.of_approx(1, 0))
    inner = Concurrent(Filter(TradeOff.of_approx("0.4", 0)), every_step())
    account = rule.admit(rule.start(), inner.claim)
    assert float(rule.remaining(account).epsilon) == pytest.approx(0.6, rel=1e-6)


MENUS = {
    "responses": [PureDP("0.2"), PureDP("0.5")],
    "mixed": [PureDP("0.3"), ApproxDP(0, "0.02"), TradeOff.between(["0.5", "0.3", "0.2"], ["0.3", "0.3", "0.4"])],
}


@pytest.mark.parametrize("menu", MENUS.values(), ids=MENUS)
@pytest.mark.parametrize("budget", [TradeOff.of_approx(1, "0.05"), GaussianDP(1).as_tradeoff(points=4)], ids=["a", "G"])
def test_no_adaptive_analyst_gets_beyond_the_curve(menu, budget):
    """Exactly: the best analyst at each line of the budget, over all that the filter admits, three launches deep."""
    rule = Filter(budget)
    tables = []
    for loss in menu:
        response = response_of(loss)
        curve = loss if response is None else TradeOff.of_approx(*response)
        tables.append([(p, q) for p, q in curves.atoms(curve.vertices) if p or q])

    @cache
    def admitted(account, index):
        try:
            return rule.admit(account, of(menu[index]))
        except BudgetExceeded:
            return None

    def least(account, p, q, slope, depth):
        """The smallest slope * alpha + beta that an analyst reaches from here."""
        best = min(slope * p, q)
        for index, table in enumerate(tables) if depth else ():
            after = admitted(account, index)
            if after is not None:
                best = min(best, sum(least(after, p * r, q * u, slope, depth - 1) for r, u in table))
        return best

    for slope, height in curves.lines(budget.vertices):
        assert least(rule.start(), F(1), F(1), slope, 3) >= height

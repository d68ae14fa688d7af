"""Sampled Gaussian steps in filters and odometers: their Renyi losses, both ways, and how many steps fit."""

import json
from fractions import Fraction
from pathlib import Path

import mpmath
import pytest

from counterpoint.composition.filters import Filter
from counterpoint.composition.fixed import compose
from counterpoint.composition.odometers import Odometer
from counterpoint.errors import NotCovered
from counterpoint.measures import ApproxDP, GaussianDP, PureDP, RenyiDP, SampledGaussianDP, zCDP

VECTORS = json.loads((Path(__file__).parent.parent / "vectors" / "residues.json").read_text())
STEP = SampledGaussianDP(1, "0.01")


@pytest.mark.parametrize("row", VECTORS["sampled_gaussian_renyi"], ids=lambda row: f"{row['rate']}, {row['order']}")
def test_at_whole_orders_the_loss_is_the_reference_value(row):
    loss = SampledGaussianDP(row["mu"], row["rate"]).as_renyi(row["order"])
    assert abs(loss.epsilon / Fraction(row["epsilon"]) - 1) < Fraction(1, 10**20)


def divergence(mu, rate, order, *, removing):
    """By quadrature: one direction of the pair."""
    mu, rate = mpmath.mpf(mu), mpmath.mpf(rate)

    def term(x):
        ratio = 1 - rate + rate * mpmath.exp(mu * x - mu**2 / 2)
        return mpmath.npdf(x) * ratio ** (order if removing else 1 - order)

    return mpmath.log(mpmath.quad(term, [-20, -5, 0, 5, 10, 20, 40])) / (order - 1)


@pytest.mark.parametrize("mu, rate", [("1", "0.01"), ("0.5", "0.3"), ("2", "0.1")])
@pytest.mark.parametrize("order", ["1.5", "2", "2.3", "5.5", "8"])
def test_both_directions_are_at_most_the_loss_which_is_nearly_reached(mu, rate, order):
    loss = float(SampledGaussianDP(mu, rate).as_renyi(order).epsilon)
    with mpmath.workdps(25):
        removed, added = (divergence(mu, rate, mpmath.mpf(order), removing=way) for way in (True, False))
    assert added <= removed * (1 + mpmath.mpf(10) ** -12) and removed <= loss * (1 + 1e-12)
    assert "." in order or removed > loss * 0.999999


def test_a_sampled_step_never_loses_more_than_one_on_all_units():
    for order in ("1.001", "30", "1999.5", "2500"):
        for rate in ("0.2", "0.99"):
            sampled = SampledGaussianDP("0.7", rate).as_renyi(order).epsilon
            assert 0 < sampled <= GaussianDP("0.7").as_renyi(order).epsilon


def test_thousands_of_adaptive_steps_fit_beside_questions():
    rule = Filter(ApproxDP(5, "1e-5"), by="renyi", alpha=5, slack="0.97e-5")
    account, count = rule.start() + PureDP("0.05"), 0
    while (account := account.plus(STEP, "one-shot")).keeps(rule.budget):
        count += 1
    assert 5800 <= count < 6851, "the last is what a fixed list admits"
    assert compose.optimal([STEP] * count).epsilon_at(1e-5) < 5


def test_the_default_filter_takes_whole_orders_if_a_step_comes_first():
    rule = Filter(ApproxDP(5, "1e-5"))
    account, count = rule.start().plus(STEP, "one-shot"), 1
    assert account.union.orders[0] == 5 and all(order.denominator == 1 for order in account.union.orders)
    while True:
        after = account.plus(STEP, "one-shot")
        if not after.keeps(rule.budget):
            break
        account, count = (after + PureDP("0.01") if count % 1000 == 500 else after), count + 1
    assert 5800 <= count < 6851 and not rule.fits(account, zCDP("0.01"))
    spent = {STEP: count, PureDP("0.01"): 6}
    assert compose.optimal_of(spent).epsilon_at(1e-5) < 5


def test_the_orders_are_chosen_by_the_first_launch_alone():
    rule = Filter(ApproxDP(5, "1e-5"))
    orders = rule.start().union.orders
    asked = rule.start() + PureDP("0.01")
    later = asked.plus(STEP, "one-shot")
    assert later.union.orders == orders == asked.union.orders and later.rooms == asked.rooms
    stepped = rule.start().plus(STEP, "one-shot")
    other = stepped.plus(SampledGaussianDP(3, "0.3"), "one-shot")
    assert other.union.orders == stepped.union.orders and other.rooms == stepped.rooms
    assert rule.start().union.orders == orders, "an attempt that was refused fixes nothing"


def test_the_default_filter_and_odometers_count_them_by_their_renyi_losses_alone():
    rule = Filter(ApproxDP(1, "1e-6"))
    account = (rule.start() + PureDP("0.01")).plus(STEP, "one-shot")
    assert account.basic is None and account.left is None and None not in account.renyi
    assert Odometer.renyi(5).loss(Odometer.renyi(5).start() + STEP) == STEP.as_renyi(5)
    for budget in (zCDP(1), GaussianDP(1), PureDP(1)):
        with pytest.raises(NotCovered):
            Filter(budget).start().plus(STEP, "one-shot")


def test_a_renyi_loss_reads_no_more_at_nothing_than_just_above_it():
    for loss, most in ((RenyiDP(2, "0.1"), 0.16215033), (RenyiDP(30, "0.001"), 0.00411564)):
        assert loss.delta_at(1e-8) <= loss.delta_at(1e-12) <= loss.delta_at(0) <= most

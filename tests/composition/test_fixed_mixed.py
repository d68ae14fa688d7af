"""Unlike measures together: enclosed, and compared with sums that are computed in another way."""

import math
from fractions import Fraction

import mpmath
import pytest

from counterpoint.composition.fixed import compose
from counterpoint.composition.slots import Slots
from counterpoint.errors import NotCovered
from counterpoint.measures import (
    ApproxDP,
    ApproxzCDP,
    GaussianDP,
    PureDP,
    RenyiDP,
    SampledGaussianDP,
    TradeOff,
    tCDP,
    zCDP,
)
from counterpoint.privacy.claims import claim
from counterpoint.privacy.relations import every_step


def stick(x, v):
    """The hockey stick of G(v) at e^x, for any x."""
    s = mpmath.sqrt(v)
    return mpmath.ncdf(s / 2 - x / s) - mpmath.exp(x) * mpmath.ncdf(-s / 2 - x / s)


def of_responses_and_a_gaussian(epsilon, each, copies, v):
    """Directly: a binomial mixture of normal tails."""
    p = 1 / (1 + mpmath.exp(-each))
    return mpmath.fsum(
        mpmath.binomial(copies, k) * p**k * (1 - p) ** (copies - k) * stick(epsilon - (2 * k - copies) * each, v)
        for k in range(copies + 1)
    )


@pytest.mark.parametrize("copies, mu, epsilon", [(20, "0.3", "2"), (3, "1.5", "0.5"), (100, "0.05", "4")])
def test_responses_and_a_gaussian_are_enclosed_closely(copies, mu, epsilon):
    bounds = compose.optimal([PureDP("0.1")] * copies + [GaussianDP(mu)]).bounds.delta_at(epsilon)
    with mpmath.workdps(30):
        exact = of_responses_and_a_gaussian(mpmath.mpf(epsilon), mpmath.mpf("0.1"), copies, mpmath.mpf(mu) ** 2)
    assert bounds.lower <= exact <= bounds.upper <= bounds.lower * (1 + 1e-3)


def test_squares_of_mu_are_added_before_anything_else():
    apart = compose.optimal([PureDP("0.1"), GaussianDP("0.3"), GaussianDP("0.4")])
    assert apart == compose.optimal([PureDP("0.1"), GaussianDP("0.5")])


def test_curves_of_responses_cost_what_responses_do():
    curve = TradeOff.of_approx("0.1", "1e-7")
    mixed = compose.optimal([ApproxDP("0.1", "1e-8")] * 20 + [curve] * 3)
    plain = compose.optimal([ApproxDP("0.1", "1e-8")] * 20 + [ApproxDP("0.1", "1e-7")] * 3)
    below, above = mixed.bounds.epsilon_at(1e-6)
    assert below <= plain.epsilon_at(1e-6) <= above * (1 + 1e-9)
    assert above - plain.epsilon_at(1e-6) < 1e-3


def test_sampled_steps_go_with_others_in_the_worse_direction():
    steps = [SampledGaussianDP(1, "0.01")] * 200
    alone, both = compose.optimal(steps), compose.optimal([*steps, PureDP("0.2")])
    assert alone.epsilon_at(1e-5) < both.epsilon_at(1e-5) < alone.epsilon_at(1e-5) + 0.2
    with_a_gaussian = compose.optimal([*steps, GaussianDP("0.1"), TradeOff.of_approx("0.2", 0)])
    assert with_a_gaussian.bounds.epsilon_at(1e-5).lower > both.bounds.epsilon_at(1e-5).lower


DIVERGENCES = [zCDP("0.045"), tCDP("0.045", 40), RenyiDP(8, "0.36")]


@pytest.mark.parametrize("loss", DIVERGENCES, ids=repr)
def test_divergences_are_bounded_by_all_their_deltas_and_from_below_by_a_gaussian(loss):
    both = compose.optimal([PureDP("0.1")] * 20 + [loss])
    gaussian = compose.optimal([PureDP("0.1")] * 20 + [GaussianDP("0.3")])
    bounds = both.bounds.epsilon_at(1e-6)
    assert bounds.lower <= gaussian.epsilon_at(1e-6) * (1 + 1e-6) and gaussian.epsilon_at(1e-6) < bounds.upper
    assert bounds.upper < 2 + loss.epsilon_at(1e-6), "better than basic composition"


def test_a_pair_made_of_deltas_is_nowhere_below_them():
    """With a pure loss of nothing beside it, the curve is that of the loss."""
    both = compose.optimal([PureDP("1e-9"), zCDP("0.1")])
    for epsilon in (1.0, 2.0, 4.0):
        assert both.delta_at(epsilon) >= zCDP("0.1").delta_at(epsilon) * (1 - 1e-6)


def test_one_kind_of_divergence_and_one_order_is_mixed():
    for losses in (
        [PureDP(1), zCDP(1), RenyiDP(2, 1)],
        [PureDP(1), RenyiDP(2, 1), RenyiDP(3, 1)],
        [PureDP(1), ApproxzCDP(1, 1e-6)],
    ):
        with pytest.raises(NotCovered):
            compose.optimal(losses).epsilon_at(1e-6)


def test_groups_are_composed_of_groups_where_all_have_them():
    both = compose.optimal([PureDP("0.1"), GaussianDP("0.3"), zCDP("0.01")])
    assert both.group(2) == compose.optimal([PureDP("0.2"), GaussianDP("0.6"), zCDP("0.04")])
    with pytest.raises(NotCovered):
        compose.optimal([PureDP("0.1"), SampledGaussianDP(1, "0.1")]).group(2)


def test_thousands_of_different_losses_are_rounded_both_ways():
    losses = [PureDP(Fraction(n, 10**6)) for n in range(50, 5050)]
    below, above = compose.optimal(losses).bounds.epsilon_at(1e-6)
    root = math.sqrt(sum(float(loss.epsilon) ** 2 for loss in losses) / len(losses))
    middle = compose.optimal([PureDP(Fraction(f"{root:.6g}"))] * len(losses)).epsilon_at(1e-6)
    assert below < middle < above <= 1.01 * below


def test_unlike_slots_cost_their_product_and_ask_for_finite_communication():
    rule = Slots([PureDP("0.1")] * 20 + [GaussianDP("0.3"), zCDP("0.01")])
    assert "Cor 14.7" in rule.theorem
    account = rule.admit(rule.start(), claim(PureDP("0.1"), every_step(), "a test"))
    with pytest.raises(NotCovered, match="finite"):
        rule.admit(account, claim(GaussianDP("0.3"), every_step(), "a test"))
    for how in ("endless", "memoryless"):
        with pytest.raises(NotCovered, match="finite"):
            rule.admit(account, claim(zCDP("0.01"), every_step(), "a test", interaction=how))
    account = rule.admit(account, claim(zCDP("0.01"), every_step(), "a test", interaction="one-shot"))
    account = rule.admit(account, claim(GaussianDP("0.3"), every_step(), "a test", interaction="memoryless"))
    assert rule.loss(account).epsilon_at(1e-6) < 2.7

"""One Renyi order as (epsilon, delta): as much as the worst pair of Bernoulli variables, and no more."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from counterpoint.privacy.formulas.bernoulli_pairs import proves, worst_delta
from counterpoint.privacy.losses import RenyiDP

GRID = [
    (2, "1e-4", "0.1"),
    (8, "1e-4", "0.1"),
    (2, "0.1", 1),
    (8, 1, "0.5"),
    ("1.5", "0.2", "0.2"),
    (16, "0.01", "0.3"),
]


def brute_force(alpha: float, tau: float, epsilon: float) -> float:
    """The largest p - e^eps q with D_alpha <= tau over a fine grid of q, with the largest p for each."""
    q = np.exp(np.linspace(-16, -1e-4, 20_000))
    low, high = q.copy(), np.full_like(q, 1 - 1e-15)
    for _ in range(60):
        p = (low + high) / 2
        logs = np.logaddexp(
            alpha * np.log(p) + (1 - alpha) * np.log(q), alpha * np.log1p(-p) + (1 - alpha) * np.log1p(-q)
        )
        fits = logs <= (alpha - 1) * tau
        low, high = np.where(fits, p, low), np.where(fits, high, p)
    return float(np.max(low - math.exp(epsilon) * q))


@pytest.mark.parametrize(("alpha", "tau", "epsilon"), GRID)
def test_no_bernoulli_pair_is_worse_and_one_is_as_bad(alpha, tau, epsilon):
    delta = RenyiDP(alpha, tau).delta_at(epsilon)
    found = brute_force(float(alpha), float(tau), float(epsilon))
    assert found <= delta * (1 + 1e-9) and delta <= found * (1 + 2e-4)


@pytest.mark.parametrize(("alpha", "delta"), [(2, 2.4e-4), (8, 4.0e-5)])
def test_a_small_renyi_loss_has_a_small_delta(alpha, delta):
    assert RenyiDP(alpha, "1e-4").delta_at("0.1") == pytest.approx(delta, rel=0.015)


@settings(max_examples=50, deadline=None)
@given(st.fractions("1.1", 30), st.fractions("1e-6", 3), st.fractions("0.01", 5), st.data())
def test_the_delta_is_never_below_that_of_a_pair_within_the_order(alpha, tau, epsilon, data):
    bound = RenyiDP(alpha, tau).delta_at(epsilon)
    q = data.draw(st.floats(1e-6, 0.9))
    p = data.draw(st.floats(q, 0.999))
    a = float(alpha)
    divergence = math.log(p**a * q ** (1 - a) + (1 - p) ** a * (1 - q) ** (1 - a)) / (a - 1)
    if divergence <= float(tau) * (1 - 1e-9):
        assert p - math.exp(float(epsilon)) * q <= bound * (1 + 1e-9)


@settings(max_examples=30, deadline=None)
@given(st.fractions("1.1", 30), st.fractions("1e-5", 2), st.fractions("0.01", 3))
def test_it_is_no_larger_than_the_conversion_that_all_orders_share(alpha, tau, epsilon):
    tight = worst_delta(alpha, tau, epsilon)
    shape = (alpha - 1) * math.log(1 - 1 / alpha) - math.log(alpha)
    loose = math.exp(min(0.0, float((alpha - 1) * (tau - epsilon)) + shape))
    assert tight is None or float(tight.upper) <= loose * (1 + 1e-9)


def test_too_small_a_delta_is_not_proven():
    arguments = Fraction(2), Fraction(1, 10**4), Fraction(1, 10)
    worst = worst_delta(*arguments)
    near = Fraction(worst.upper) + Fraction("0.00248")
    assert proves(*arguments, Fraction(worst.upper) * 2, near)
    assert not proves(*arguments, Fraction(worst.lower) * Fraction(99, 100), near)

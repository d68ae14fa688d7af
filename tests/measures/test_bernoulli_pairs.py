"""One Renyi order as (epsilon, delta): as much as the worst pair of Bernoulli variables, and no more."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from counterpoint.measures import RenyiDP
from counterpoint.measures.bernoulli_pairs import proves, refutes, worst_delta, worst_epsilon

GRID = [
    (2, "1e-4", "0.1"),
    (8, "1e-4", "0.1"),
    (2, "0.1", 1),
    (8, 1, "0.5"),
    ("1.5", "0.2", "0.2"),
    (16, "0.01", "0.3"),
]


def grid(alpha: float, tau: float, least: float = -16) -> tuple[np.ndarray, np.ndarray]:
    """Pairs with D_alpha <= tau: the largest p for each q of a fine grid."""
    q = np.exp(np.linspace(least, -1e-4, 20_000))
    low, high = q.copy(), np.full_like(q, 1 - 1e-15)
    for _ in range(60):
        p = (low + high) / 2
        logs = np.logaddexp(
            alpha * np.log(p) + (1 - alpha) * np.log(q), alpha * np.log1p(-p) + (1 - alpha) * np.log1p(-q)
        )
        fits = logs <= (alpha - 1) * tau
        low, high = np.where(fits, p, low), np.where(fits, high, p)
    return low, q


@pytest.mark.parametrize(("alpha", "tau", "epsilon"), GRID)
def test_no_bernoulli_pair_is_worse_and_one_is_as_bad(alpha, tau, epsilon):
    delta = RenyiDP(alpha, tau).delta_at(epsilon)
    p, q = grid(float(alpha), float(tau))
    found = float(np.max(p - math.exp(float(epsilon)) * q))
    assert found <= delta * (1 + 1e-9) and delta <= found * (1 + 2e-4)


@pytest.mark.parametrize(
    ("alpha", "tau", "delta"),
    [
        (2, "0.1", "1e-6"),
        (2, "0.1", "0.01"),
        (8, "0.1", "1e-6"),
        ("1.5", "0.2", "1e-4"),
        (4, 1, "0.2"),
        (64, "0.05", "0.001"),
    ],
)
def test_no_bernoulli_pair_has_a_larger_epsilon_and_one_has_it(alpha, tau, delta):
    epsilon = RenyiDP(alpha, tau).epsilon_at(delta)
    p, q = grid(float(alpha), float(tau), -40)
    worse = p > float(delta)
    found = float(np.max(np.log((p[worse] - float(delta)) / q[worse])))
    assert found <= epsilon * (1 + 1e-9) + 1e-9 and epsilon <= found * (1 + 1e-3) + 1e-4


def test_the_epsilon_of_one_order_is_smaller_than_all_orders_would_say():
    assert RenyiDP(2, "0.1").epsilon_at("1e-6") == pytest.approx(10.177086, abs=1e-6)


def test_an_epsilon_of_zero_is_proven_where_it_is_enough():
    assert RenyiDP("1.5", "0.1").epsilon_at("0.4") == 0
    assert RenyiDP(2, "0.1").epsilon_at("0.16") > 0


@settings(max_examples=50, deadline=None)
@given(st.fractions("1.1", 60), st.fractions("1e-6", 3), st.fractions("0.01", 5))
@example(Fraction(64), Fraction(1, 20), Fraction(1, 2))
@example(Fraction(11, 10), Fraction(1), Fraction(1, 10))
def test_epsilon_and_delta_are_each_others_inverse(alpha, tau, epsilon):
    loss = RenyiDP(alpha, tau)
    delta = loss.delta_at(epsilon)
    if 1e-250 < delta < 0.9:
        assert loss.epsilon_at(Fraction(delta)) == pytest.approx(float(epsilon), rel=1e-4)


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
    assert worst is not None
    near = Fraction(worst.upper) + Fraction("0.00248")
    assert proves(*arguments, Fraction(worst.upper) * 2, near)
    assert not proves(*arguments, Fraction(worst.lower) * Fraction(99, 100), near)


def test_too_small_an_epsilon_is_not_proven_and_is_refuted():
    alpha, tau, delta = Fraction(2), Fraction(1, 10), Fraction(1, 10**6)
    worst = worst_epsilon(alpha, tau, delta)
    assert worst is not None
    near = 2 * delta
    assert proves(alpha, tau, Fraction(worst.upper) + 1, delta, near)
    assert not proves(alpha, tau, Fraction(worst.lower) - 1, delta, near)
    assert refutes(alpha, tau, Fraction(worst.lower) - 1, delta, near)
    assert not refutes(alpha, tau, Fraction(worst.upper) + 1, delta, near)

"""The approximate Renyi divergence is the least over all ways to leave delta out, as brute force finds it."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import LinearConstraint, minimize

from counterpoint import PureDP, TradeOff
from counterpoint.errors import InvalidParameter
from counterpoint.measures.divergences import approximate_divergence, largest_ratio

F = Fraction


def divergence(firsts, seconds, alpha):
    return math.log(sum(a**alpha * b ** (1 - alpha) for a, b in zip(firsts, seconds, strict=True))) / (alpha - 1)


def searched(pairs, alpha, delta):
    """The least D_alpha(P'|Q'), by a general method for convex functions."""
    firsts, seconds = (np.array([float(pair[side]) for pair in pairs]) for side in (0, 1))
    size, kept = len(pairs), 1 - delta

    def value(x):
        a, b = np.maximum(x[:size], 1e-300), np.maximum(x[size:], 1e-300)
        return float((a**alpha * b ** (1 - alpha)).sum() / kept)

    sums = np.zeros((2, 2 * size))
    sums[0, :size] = sums[1, size:] = 1
    bounds = [(1e-12, top) for top in [*firsts, *seconds]]
    start = np.concatenate([firsts, seconds]) * kept
    found = minimize(
        value,
        start,
        bounds=bounds,
        constraints=[LinearConstraint(sums, kept, kept)],
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 500},
    )
    assert found.success or found.status == 8  # the line search can do no better
    return max(0.0, math.log(found.fun) / (alpha - 1))


@pytest.mark.parametrize("seed", range(25))
def test_it_is_what_a_general_search_finds(seed):
    rng = np.random.default_rng(seed)
    size = int(rng.integers(2, 5))
    weights = rng.integers(1, 12, size=(2, size))
    pairs = [(F(int(p), int(weights[0].sum())), F(int(q), int(weights[1].sum()))) for p, q in weights.T]
    alpha, delta = float(rng.choice([1.5, 2.0, 4.0])), float(rng.choice([0.01, 0.05, 0.2]))
    exact = approximate_divergence(pairs, F(str(alpha)), F(str(delta)))
    assert float(exact) == pytest.approx(searched(pairs, alpha, delta), abs=2e-6)


weighed = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=6)


def normalised(weights):
    totals = [sum(column) for column in zip(*weights, strict=True)]
    return [(F(p, totals[0]), F(q, totals[1])) for p, q in weights] if all(totals) else [(F(1), F(1))]


@given(weighed, st.sampled_from([F(0), F(1, 20), F(1, 5), F(1, 2)]), st.sampled_from([F(3, 2), F(2), F(8)]), st.data())
def test_no_split_that_is_tried_has_less(weights, delta, alpha, data):
    pairs = normalised(weights)
    least = approximate_divergence(pairs, alpha, delta)
    shares = data.draw(
        st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=len(pairs), max_size=len(pairs))
    )
    left = []
    for side in (0, 1):  # leave out at random, no more than there is
        total, world = sum(share[side] for share in shares), [pair[side] for pair in pairs]
        out = [
            min(delta * F(share[side], total), mass) if total else F(0)
            for share, mass in zip(shares, world, strict=True)
        ]
        rest = delta - sum(out)
        for n, mass in enumerate(world):
            more = min(rest, mass - out[n])
            out[n], rest = out[n] + more, rest - more
        left.append([float((mass - gone) / (1 - delta)) for mass, gone in zip(world, out, strict=True)])
    kept = [(a, b) for a, b in zip(*left, strict=True) if a > 0]
    if least is None or any(b <= 0 for _, b in kept):
        return  # infinite
    assert float(least) <= divergence(*zip(*kept, strict=True), float(alpha)) + 1e-9


@given(weighed, st.sampled_from([F(1, 20), F(1, 5), F(1, 2)]))
def test_the_ratio_cuts_off_just_delta(weights, delta):
    pairs = normalised(weights)
    ratio = largest_ratio(pairs, delta)
    if ratio is not None and ratio > 0:
        assert sum(max(p - ratio * q, F(0)) for p, q in pairs) == delta
    if ratio is None:
        assert sum(p for p, q in pairs if not q) >= delta


def test_it_falls_with_delta_and_is_0_from_the_total_variation_on():
    coin = TradeOff.between(["0.5", "0.5"], ["0.1", "0.9"])
    values = [coin.renyi_at(3, delta=d) for d in ("0", "0.1", "0.2", "0.3", "0.39", "0.4", "0.7", "1")]
    assert values == sorted(values, reverse=True) and values[-3:] == [0.0] * 3 and values[4] > 0
    assert values[0] == pytest.approx(float(coin.as_renyi(3).epsilon))


def test_an_exposure_is_left_out_only_if_delta_covers_it():
    exposed = TradeOff.of_approx(0, "0.1")
    assert exposed.renyi_at(2) == exposed.renyi_at(2, delta="0.09") == math.inf
    assert exposed.renyi_at(2, delta="0.1") == 0
    both = TradeOff.of_approx(1, "0.1")
    assert both.renyi_at(2, delta="0.1") == pytest.approx(float(PureDP(1).as_renyi(2).epsilon), rel=1e-9)
    with pytest.raises(InvalidParameter):
        both.renyi_at(1)

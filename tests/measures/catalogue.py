"""The catalogue of measures: what each one promises, by brute force, and pairs of distributions as bad as it allows.

A new measure adds one entry to `PROMISES` (its definition, checked outcome by outcome in floats, without the library's
formulas) and one to `WORST` (losses, each with a pair that has it and hardly less). `test_catalogue.py` holds every
conversion, curve and sum against these, so a measure that promises too much is refuted by a pair that it allows.

A pair is two arrays: the probabilities of the same outcomes under two neighbours. Continuous pairs are cut into cells,
which is a postprocessing, so a cell pair has the loss of the continuous one and hardly less.
"""

from collections.abc import Callable
from fractions import Fraction

import numpy as np
from scipy.stats import laplace, norm

from counterpoint.measures import (
    ApproxDP,
    ApproxzCDP,
    GaussianDP,
    OneSidedDP,
    ProbabilisticDP,
    PureDP,
    RenyiDP,
    SampledGaussianDP,
    TradeOff,
    Unbounded,
    tCDP,
    zCDP,
)
from counterpoint.measures.loss import Loss

Pair = tuple[np.ndarray, np.ndarray]
NEAR = 1 + 1e-9
"""How far a float may be beyond what is promised: far less than any mistake, and more than rounding."""
TINY = 1e-13
ORDERS = np.concatenate([1 + np.geomspace(1e-3, 1, 12), np.geomspace(2.5, 200, 20)])


def both(pair: Pair) -> tuple[Pair, Pair]:
    """The pair both ways."""
    return pair, pair[::-1]


def losses(pair: Pair) -> np.ndarray:
    """The privacy loss of each outcome: log p/q."""
    p, q = pair
    with np.errstate(divide="ignore"):
        return np.where(p > 0, np.log(np.where(p > 0, p, 1)) - np.log(q), -np.inf)


def hockey_stick(pair: Pair, epsilon: float) -> float:
    """The delta at epsilon, the larger of both ways."""
    return max(float(np.maximum(p - np.exp(epsilon) * q, 0).sum()) for p, q in both(pair))


def renyi(pair: Pair, alpha: float) -> float:
    """The divergence of this order, the larger of both ways."""

    def one_way(p: np.ndarray, q: np.ndarray) -> float:
        if (q[p > 0] == 0).any():
            return np.inf
        some = (p > 0) & (q > 0)
        weights = alpha * np.log(p[some]) + (1 - alpha) * np.log(q[some])
        return float((weights.max() + np.log(np.exp(weights - weights.max()).sum())) / (alpha - 1))

    return max(one_way(*pair) for pair in both(pair))


def tail(pair: Pair, epsilon: float, two_sided: bool) -> float:
    """The probability that the privacy loss is beyond epsilon, the larger of both worlds."""
    found = ((p, losses((p, q))) for p, q in both(pair))
    return max(float(p[(abs(lost) if two_sided else lost) > epsilon * NEAR + TINY].sum()) for p, lost in found)


def errors(pair: Pair) -> tuple[np.ndarray, np.ndarray]:
    """The two errors of every best test of the second distribution against the first (Neyman and Pearson)."""
    p, q = pair
    order = np.argsort(losses(pair))  # what speaks most for the second comes first
    return np.append(0, np.cumsum(p[order])), np.append(1, 1 - np.cumsum(q[order]))


def within_curve(pair: Pair, curve: Callable[[np.ndarray], np.ndarray]) -> bool:
    """Whether no test has smaller errors than the curve allows."""
    first, second = errors(pair)
    return bool((second >= curve(np.clip(first, 0, 1)) / NEAR - 1e-12).all())


def _gaussian(loss: GaussianDP, pair: Pair) -> bool:
    return all(within_curve(one, lambda a: norm.cdf(norm.isf(a) - float(loss.mu))) for one in both(pair))


def _curve(loss: TradeOff, pair: Pair) -> bool:
    alphas, betas = (np.array([float(x) for x in xs]) for xs in zip(*loss.vertices, strict=True))
    return within_curve(pair, lambda a: np.interp(a, alphas, betas))


def _concentrated_but_for(loss: ApproxzCDP, pair: Pair) -> bool:
    kept = (pair[0] > 0) & (pair[1] > 0)
    p, q = (one[kept] / one[kept].sum() for one in pair)
    exposed = max(1 - one[kept].sum() for one in pair)
    return exposed <= float(loss.delta) * NEAR + TINY and PROMISES[zCDP](zCDP(loss.rho), (p, q))


def _sampled(loss: SampledGaussianDP, pair: Pair) -> bool:
    """The hockey sticks in closed form: each is the difference of two tails, from where the ratio passes e^epsilon."""
    mu, rate = float(loss.mu), float(loss.rate)

    def place(ratio: float) -> float:
        """Where (1 - rate) + rate e^(mu x - mu^2/2) has this value."""
        return (np.log((ratio - 1 + rate) / rate) + mu**2 / 2) / mu if ratio > 1 - rate else -np.inf

    def stick(epsilon: float) -> float:
        at, below = place(np.exp(epsilon)), place(np.exp(-epsilon))
        moved = (1 - rate) * norm.sf(at) + rate * norm.sf(at - mu) - np.exp(epsilon) * norm.sf(at)
        mixed = (1 - rate) * norm.cdf(below) + rate * norm.cdf(below - mu)
        return max(moved, norm.cdf(below) - np.exp(epsilon) * mixed)

    return all(hockey_stick(pair, e) <= stick(e) * NEAR + TINY for e in np.linspace(0, 3, 30))


PROMISES: dict[type[Loss], Callable[..., bool]] = {
    PureDP: lambda loss, pair: hockey_stick(pair, float(loss.epsilon) * NEAR) <= TINY,
    ApproxDP: lambda loss, pair: hockey_stick(pair, float(loss.epsilon)) <= float(loss.delta) * NEAR + TINY,
    ProbabilisticDP: lambda loss, pair: tail(pair, float(loss.epsilon), True) <= float(loss.delta) * NEAR + TINY,
    OneSidedDP: lambda loss, pair: tail(pair, float(loss.epsilon), False) <= float(loss.delta) * NEAR + TINY,
    RenyiDP: lambda loss, pair: renyi(pair, float(loss.alpha)) <= float(loss.epsilon) * NEAR + TINY,
    zCDP: lambda loss, pair: all(renyi(pair, a) <= a * float(loss.rho) * NEAR + TINY for a in ORDERS),
    tCDP: lambda loss, pair: all(
        renyi(pair, a) <= a * float(loss.rho) * NEAR + TINY for a in ORDERS if a < float(loss.omega)
    ),
    ApproxzCDP: _concentrated_but_for,
    GaussianDP: _gaussian,
    SampledGaussianDP: _sampled,
    TradeOff: _curve,
    Unbounded: lambda loss, pair: True,
}
"""What each measure promises about two neighbours."""


def responses(epsilon: float, delta: float = 0.0) -> Pair:
    """Randomized response, which exposes the truth with probability delta: the worst (epsilon, delta) pair there is."""
    high = 1 / (1 + np.exp(-epsilon))
    p = np.array([delta, (1 - delta) * high, (1 - delta) * (1 - high), 0])
    return p, p[::-1].copy()


def gaussians(mu: float, cells: int = 4000) -> Pair:
    """N(0, 1) and N(mu, 1), cut into cells."""
    edges = np.concatenate([[-np.inf], np.linspace(-9, 9 + mu, cells - 1), [np.inf]])
    return _cells(edges, 0), _cells(edges, mu)


def laplaces(epsilon: float) -> Pair:
    """Two Laplace distributions whose means are epsilon scales apart, cut into cells."""
    edges = np.concatenate([[-np.inf], np.linspace(-9, 9 + epsilon, 4000), [np.inf]])
    p, q = (np.diff(laplace.cdf(edges - mean)) for mean in (0, epsilon))
    return p[p > 1e-12], q[p > 1e-12]


def sampled_gaussians(mu: float, rate: float, cells: int = 4000) -> Pair:
    """N(0, 1), and the same of which a share is moved by mu."""
    p, q = gaussians(mu, cells)
    return p, (1 - rate) * p + rate * q


def _cells(edges: np.ndarray, mean: float) -> np.ndarray:
    left = edges - mean
    below = np.diff(norm.cdf(left))
    above = -np.diff(norm.sf(left))
    return np.where(left[:-1] > 0, above, below)  # in each tail the difference that keeps its digits


def with_exposures(pair: Pair, delta: float) -> Pair:
    """The pair but for delta, with which the truth is exposed."""
    p, q = ((1 - delta) * one for one in pair)
    return np.append(p, [delta, 0]), np.append(q, [0, delta])


def _response_of(renyi_loss: float, alpha: float) -> Pair:
    low, high = 0.0, 50.0
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if renyi(responses(middle), alpha) <= renyi_loss else (low, middle)
    return responses(low)


def _of_lists(first: list[float], second: list[float]) -> tuple[Loss, Pair]:
    return TradeOff.between(first, second), (np.array(first), np.array(second))


WORST: list[tuple[Loss, Pair]] = [
    *[(PureDP(e), responses(e)) for e in (0.1, 1.0, 5.0)],
    *[(ApproxDP(e, d), responses(e, d)) for e, d in ((0.1, 0.01), (1.0, 1e-4), (0.0, 0.1), (1.0, 0.0))],
    *[(ProbabilisticDP(e, d), responses(e, d)) for e, d in ((0.5, 0.01), (2.0, 1e-4), (1.0, 0.0))],
    *[(OneSidedDP(e, d), responses(e, d)) for e, d in ((0.5, 0.01), (2.0, 1e-4), (1.0, 0.0))],
    *[(RenyiDP(a, e), _response_of(e, a)) for a, e in ((2, 0.1), (8, 0.5), (1.5, 1.0))],
    *[(RenyiDP(a, a * mu**2 / 2), gaussians(mu)) for a, mu in ((2, 0.25), (16, 0.5))],
    *[(zCDP(mu**2 / 2), gaussians(mu)) for mu in (0.125, 0.5, 2.0)],
    *[(tCDP(mu**2 / 2, omega), gaussians(mu)) for mu, omega in ((0.5, 20), (0.25, 4))],
    *[(ApproxzCDP(mu**2 / 2, d), with_exposures(gaussians(mu), d)) for mu, d in ((0.5, 1e-3), (0.25, 0.05))],
    *[(GaussianDP(mu), gaussians(mu)) for mu in (0.125, 0.5, 2.0)],
    *[(SampledGaussianDP(mu, rate), sampled_gaussians(mu, rate)) for mu, rate in ((1.0, 0.1), (0.5, 0.5))],
    _of_lists([0.5, 0.5], [0.125, 0.875]),
    _of_lists([0.5, 0.25, 0.25], [0.125, 0.375, 0.5]),
    (Unbounded(), (np.array([1.0, 0.0]), np.array([0.0, 1.0]))),
]
"""Losses, each with a pair that has it and hardly less."""

PARAMETERS: dict[str, tuple[tuple[object, ...], ...]] = {
    "PureDP": ((),),
    "ApproxDP": ((Fraction(1, 10**6),), (Fraction(1, 1000),), (Fraction(1, 20),), (0,)),
    "ProbabilisticDP": ((Fraction(1, 2),), (1,), (2,), (6,)),
    "RenyiDP": ((Fraction(3, 2),), (2,), (8,)),
    "zCDP": ((),),
    "tCDP": ((2,), (4,), (16,)),
    "GaussianDP": ((),),
    "TradeOff": ((),),
}
"""By the measure that is converted to, what `as_...` is given."""

"""How far off a monotone histogram is, by the laws of its noises together (theory, Monotone histograms); its totals.

With hit j an interval begins in which the function of the noisy histogram is answered. When the function has risen by r
since, as the sparse vector sees it, the answer is too low by r + V at most, where -V is the least noise in the totals,
or 0. Let h be the height of the noisy threshold above the answer. The function rises by at most 1 a step and was missed
at each of the heights 1, ..., r: so P[r >= h + y] is at most a *product* of tails, however long the stream is. And h is
at most gamma + tau + V + B + U: the last hit that a check confirmed was B below its threshold, and U is the largest
noise in the totals at the hit before that. An answer is too high by the largest noise in the totals at most.

>>> from counterpoint.continual.histogram_error import DigitTreeCounter
>>> noises = HistogramNoises((Fraction(6), Fraction(12)), Fraction(3), DigitTreeCounter(Fraction(1, 3), width=1))
>>> [histogram_error(noises, Fraction(1, 10), Heights(160, 65), t=600, hits=hits, width=1) for hits in (0, 1, 2)]
[158, 246, 331]
"""

from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from math import ceil, exp, floor, log
from typing import NamedTuple

import numpy as np

from counterpoint.continual.blt_noise import BltNoise
from counterpoint.continual.counter import Counter, Noise, noise_for
from counterpoint.continual.digit_trees import DigitTreeNoise
from counterpoint.continual.grid_laws import CARE, Grid, GridLaw, StopLoss
from counterpoint.continual.tree_noise import TreeNoise
from counterpoint.measures.concentrated import rho_below
from counterpoint.mechanisms.threshold import Scales, log_chance, log_draws
from counterpoint.numbers import certify, precision

_HITS = 2**10
"""How many hits Gaussian totals are tuned for; they stay private, and count, far beyond."""

_LARGE = 2**30
_ABOVE = Fraction("6.5797363")
"""Just above 4 pi^2 / 6: so the sum over i of beta / (_ABOVE i^2) is below beta/4, for each of four kinds of noise."""


@lru_cache(maxsize=4096)
def log_odds(beta: Fraction, i: int) -> Fraction:
    """ln(4 pi^2 i^2 / (6 beta)), rounded up.

    Discrete Laplace noise of this scale goes beyond m = ceil(scale * this) with probability 2 q^(m+1)/(1+q) <= q^m,
    q = e^(-1/scale): at most 6 beta / (4 pi^2 i^2).

    Noises numbered 1, 2, 3, ... that each stay within scale * l(i), l(i) this number, all do so except with probability
    beta/4, as the sum of 1/i^2 is pi^2/6 (theory, Counters, after Henzinger et al. 2024, sec. 7). There are four kinds
    of them: on thresholds, on comparisons, in checks and in totals.

    >>> once = float(log_odds(Fraction(1, 20), 1))
    >>> round(once, 3), round(float(log_odds(Fraction(1, 20), 10)) - once, 3)  # + 2 ln 10
    (4.88, 4.605)
    """
    return Fraction(precision(25)(_ABOVE * i * i / beta).log().upper)


@lru_cache(maxsize=64)
def _first_log_odds(beta: Fraction) -> float:
    """About ln(4 pi^2 / (6 beta))."""
    ratio = _ABOVE / beta
    return log(ratio.numerator) - log(ratio.denominator)


def limit(scale: Fraction, beta: Fraction, i: int) -> int:
    """ceil(scale * log_odds(beta, i)): by floats, except where they are not far enough from a whole number to tell.

    Every item asks for the next i. A float is off by less than 10^-14 of itself, and 2^-30 of it is asked for.

    >>> limit(Fraction(12), Fraction(1, 20), 1000) == ceil(12 * log_odds(Fraction(1, 20), 1000))
    True
    """
    if scale < _LARGE:
        about = scale * (_first_log_odds(beta) + 2 * log(i))
        if abs(about - round(about)) > about / 2**30:
            return ceil(about)
    return ceil(scale * log_odds(beta, i))


class DigitTreeCounter(Counter, frozen=True, repr_omit_defaults=True):
    """The totals of a monotone histogram: under pure privacy with a noise whose worst law at any time is known.

    An answer is the exact sums plus the signed noises of the nodes that the time's balanced digits name; these cover
    every step before that time once, net, and no other step (`digit_trees`), so the proof is that of `Counter`.

    >>> counter = DigitTreeCounter(epsilon=1, width=3)
    >>> max(counter.error(0.95, t) for t in range(41)), counter.worst_error(0.95, t=40)
    (101, 135)
    """

    @property
    def noise(self) -> Noise:
        """Under pure privacy, that of nodes that are added and taken away."""
        shipped = noise_for(self)
        return DigitTreeNoise(*shipped[:4]) if isinstance(shipped, TreeNoise) else shipped


@lru_cache(maxsize=1024)
def counting_error(totals: DigitTreeCounter, beta: Fraction, most: int) -> int:
    """What no total is off by after 1 to `most` updates, each time but for beta / (_ABOVE most^2)."""
    return totals.worst_error(1 - beta / (_ABOVE * most * most), most)


@lru_cache(maxsize=64)
def best_totals(epsilon: Fraction, delta: Fraction, dimensions: int, reach: int) -> DigitTreeCounter:
    """Totals within (epsilon, delta) for items that move by `reach` in L1 and squared L2: which err less at 64 hits.

    >>> best_totals(Fraction(1, 3), Fraction(1, 10**6), 1000, 1000)
    DigitTreeCounter(horizon=1024, bound=1000, rho=0.00309695265424, width=1000, squared=1000)
    """
    pure = DigitTreeCounter(epsilon, width=dimensions, bound=reach, squared=reach)
    if not delta:
        return pure
    rho = rho_below(epsilon, delta)
    gaussian = DigitTreeCounter(rho=rho, width=dimensions, horizon=_HITS, bound=reach, squared=reach)
    return min(pure, gaussian, key=lambda totals: totals.worst_error(Fraction(95, 100), 64))


@lru_cache(maxsize=64)
def each_delta(epsilon: Fraction, delta: Fraction, places: int) -> Fraction:
    """The delta of one step whose group of `places` has this one: divided by (e^epsilon - 1)/(e^(epsilon/places) - 1).

    >>> from counterpoint import ApproxDP
    >>> ApproxDP(Fraction(1, 4), each_delta(Fraction(1), Fraction(1, 10**6), 4)).group(4).implies(ApproxDP(1, 1e-6))
    True
    """
    if places == 1 or not delta:
        return delta
    share = certify(lambda p: p(epsilon / places).expm1() / p(epsilon).expm1(), 40).lower
    return Fraction(floor(Fraction(share) * delta * 10**60), 10**60)


def doubled(j: int) -> int:
    """The next power of two: a bound that holds until there rises in few steps and is seldom computed."""
    power: int = 1 << (j - 1).bit_length()
    return power


_SMALL = Fraction(1, 10**9)
"""The part of what may fail that a draw beyond its grid has; of each coordinate, there are at most some hundred."""
_NEVER = 700.0
_FAR = 10**100
_LEAST = Fraction(1, 10**200)
_LONG = 10**30


class HistogramNoises(NamedTuple):
    """The scales of the noise on a threshold and in a comparison, that of a check, and the totals."""

    comparing: Scales
    checking: Fraction
    totals: DigitTreeCounter


class Heights(NamedTuple):
    """How far a threshold is above its base at most, and how far below it a check may find the function."""

    gamma: int
    xi: int


def fits_floats(noises: HistogramNoises, fails: Fraction, t: int) -> bool:
    """Whether all chances that may be needed until time t are floats."""
    scales = *noises.comparing, noises.checking, Fraction(noises.totals.deviation(1))
    return fails > _LEAST and t < _LONG and all(1 < scale * _FAR < _FAR**2 for scale in scales)


def share(hits: int) -> Fraction:
    """What the bound for a number of hits has of what may fail: hits are seen, so that all bounds must hold at once.

    One bound is for all numbers of hits of i binary digits. It has 1/(i(i+1)), or 1/4 for i = 0 and i = 1: together 1.

    >>> [str(share(hits)) for hits in (0, 1, 2, 3, 4)], last(2)
    (['1/4', '1/4', '1/6', '1/6', '1/12'], 3)
    """
    digits = hits.bit_length()
    return Fraction(1, digits * (digits + 1)) if digits > 1 else Fraction(1, 4)


def last(hits: int) -> int:
    """The largest number of hits that has the same bound."""
    return (1 << hits.bit_length()) - 1


@lru_cache(maxsize=1024)
def histogram_error(
    noises: HistogramNoises, fails: Fraction, heights: Heights, *, t: int, hits: int, width: int
) -> int:
    """What no answer until time t is off by, with up to `hits` hits, but for a chance of `fails`; on a grid of `width`.

    `heights` are those of the last interval. An answer is never too low by more than t: the function rises by 1 a step,
    and all bars that are answered are at least 0.
    """
    most, allowed = last(hits), fails * share(hits)
    pairs = most * (most - 1) // 2
    noise = noises.totals.noise
    assert isinstance(noise, DigitTreeNoise | BltNoise)
    grid = Grid(width, float(allowed * _SMALL / ((1 + most + pairs) * noise.width)))
    first = missed(grid, noises.comparing, heights.gamma)
    if not most:
        return min(t, _least(grid, float(allowed), [(1, first)]))
    largest = noise.worst_law(most, grid).largest_of(noise.width)
    after_one = first.plus(confirmed(grid, noises, heights.xi, t)).plus(largest.doubled())
    too_high = (most, largest)
    all_of_them: list[tuple[int, GridLaw | StopLoss]] = [
        (1, first),
        (most, after_one),
        (pairs, after_one.plus(largest).stop_loss()),
        too_high,
    ]
    return min(_least(grid, float(allowed), all_of_them), max(t, _least(grid, float(allowed), [too_high])))


def _least(grid: Grid, allowed: float, kinds: Sequence[tuple[int, GridLaw | StopLoss]]) -> int:
    """The least number of cells that errors of these kinds exceed with a chance of at most `allowed`; as a value.

    A kind comes with how many errors of it there are.
    """

    def beyond(cells: int) -> float:
        return CARE * sum(count * kind.tail(cells + 1) for count, kind in kinds)

    short, enough = -1, 1
    while beyond(enough) > allowed:
        short, enough = enough, 2 * enough
    while enough - short > 1:
        middle = (short + enough) // 2
        short, enough = (short, middle) if beyond(middle) <= allowed else (middle, enough)
    return enough * grid.width


def missed(grid: Grid, scales: Scales, gamma: int) -> GridLaw:
    """How far the function rises at most until a sparse vector hits whose threshold is gamma above it at first.

    max(gamma + tau, low) + y, where P[y >= c] is the product of P[nu <= l - 1] over l = -c, ..., low - 1: one missed
    comparison at each height. `low` is half of gamma: a lower threshold is as good as one there.
    """
    once, each = scales
    low = gamma // 2 // grid.width
    tau = grid.laplace(once).at_least(low - grid.cells(gamma))
    far = grid.laplace(each).top
    cells = np.arange(1 - low, max(far, 1 - low) + 2)
    logs = np.log(grid.at_or_above(each, cells, more=2))  # P[nu <= -(cell - 1) width - 2]
    tails = np.exp(np.maximum(logs + float(grid.width) * (np.cumsum(logs) - logs), -_NEVER)) + grid.least
    return tau.shifted(grid.cells(gamma)).plus(GridLaw.of_tails(-low, np.append(1.0, tails)))


def confirmed(grid: Grid, noises: HistogramNoises, xi: int, t: int) -> GridLaw:
    """How far below its threshold the function is at a hit within t steps that a check confirms.

    At least s > 0 below if one of at most t comparisons has nu - tau >= s, and if then the noise of the check is at
    least s - xi.
    """
    draws = log_draws(noises.comparing, t)
    far = grid.cells(xi) + grid.laplace(noises.checking).top + 1
    cells = np.arange(far + 1)
    hit = np.array([exp(log_chance(noises.comparing, (cell - 1) * grid.width, draws)) for cell in range(1, far + 1)])
    checked = grid.at_or_above(noises.checking, cells[1:] - xi // grid.width, more=1 - xi % grid.width)
    return GridLaw.of_tails(0, np.append(1.0, np.minimum(hit, 1.0) * checked + grid.least))

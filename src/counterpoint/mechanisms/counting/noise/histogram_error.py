"""How far off a monotone histogram is: by the laws of its noises together (theory, Monotone histograms).

With hit j an interval begins in which the function of the noisy histogram is answered. When the function has risen by r
since, as the sparse vector sees it, the answer is too low by r + V at most, where -V is the least noise in the totals,
or 0. Let h be the height of the noisy threshold above the answer. The function rises by at most 1 a step and was missed
at each of the heights 1, ..., r: so P[r >= h + y] is at most a *product* of tails, however long the stream is. And h is
at most gamma + tau + V + B + U: the last hit that a check confirmed was B below its threshold, and U is the largest
noise in the totals at the hit before that. An answer is too high by the largest noise in the totals at most.

>>> from counterpoint.mechanisms.counting.noise.histogram_noise import DigitTreeCounter
>>> noises = HistogramNoises((Fraction(6), Fraction(12)), Fraction(3), DigitTreeCounter(1, Fraction(1, 3)))
>>> [histogram_error(noises, Fraction(1, 10), Heights(160, 65), t=600, hits=hits, width=1) for hits in (0, 1, 2)]
[158, 246, 331]
"""

from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from math import exp
from typing import NamedTuple

import numpy as np

from counterpoint.mechanisms.counting.noise.blt_noise import BltNoise
from counterpoint.mechanisms.counting.noise.grid_laws import CARE, Grid, GridLaw, StopLoss
from counterpoint.mechanisms.counting.noise.histogram_noise import DigitTreeCounter
from counterpoint.mechanisms.counting.noise.tree_noise import TreeNoise
from counterpoint.mechanisms.selecting.comparison_tails import Scales, log_chance, log_draws

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
    assert isinstance(noise, TreeNoise | BltNoise)
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

"""Laws of noises on a grid, from above: what sums of independent noises of different kinds exceed, and how often.

A `GridLaw` is about a number that is at most its cell, in units of the grid. A noise is rounded up to a cell, what is
far out has a chance of its own, `beyond`, and what is far below is moved up. So sums by convolution never understate.
All terms are positive, so that floats round each chance by a small part of itself; a comparison adds that (`CARE`).

>>> grid = Grid(width=1, least=1e-12)
>>> draw = grid.laplace(Fraction(3))
>>> round(draw.tail(4), 6), round(draw.plus(draw).tail(4), 6)  # P[X >= 4] = q^4/(1+q), and that of two draws
(0.153564, 0.244416)
"""

from fractions import Fraction
from math import ceil, log
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Cells = NDArray[np.int64]

CARE = 1 + 1e-9
"""More than what sums and products of some ten thousand positive floats are rounded by."""
_NEVER = 700
"""e to the minus this is about the least float."""


class GridLaw(NamedTuple):
    """The chances of the cells from `first` on, and of all that is above them."""

    first: int
    chances: Array
    beyond: float

    @classmethod
    def of_tails(cls, first: int, tails: Array) -> "GridLaw":
        """With these chances to be at or above `first`, the next cell, and so on; the last one is of what is beyond.

        Nothing is below `first`: the first tail is taken for 1.
        """
        falling = np.minimum.accumulate(np.concatenate([[1.0], tails[1:]]))
        return cls(first, falling[:-1] - falling[1:], float(falling[-1]))

    @property
    def top(self) -> int:
        """The last cell."""
        return self.first + len(self.chances) - 1

    @property
    def tails(self) -> Array:
        """The chances to be at or above each cell."""
        summed: Array = np.cumsum(self.chances[::-1])[::-1] + self.beyond
        return summed

    def tail(self, cell: int) -> float:
        """The chance to be at or above a cell."""
        if cell > self.top:
            return self.beyond
        return float(np.sum(self.chances[max(0, cell - self.first) :])) + self.beyond

    def plus(self, other: "GridLaw") -> "GridLaw":
        """The sum of two independent numbers."""
        return GridLaw(self.first + other.first, np.convolve(self.chances, other.chances), self.beyond + other.beyond)

    def times(self, draws: int, least: float) -> "GridLaw":
        """The sum of `draws` independent numbers of this law, by doubling, trimmed on the way."""
        total, power = GridLaw(0, np.ones(1), 0.0), self
        while draws:
            if draws & 1:
                total = total.plus(power).trimmed(least)
            draws >>= 1
            power = power.plus(power).trimmed(least) if draws else power
        return total

    def trimmed(self, least: float) -> "GridLaw":
        """Without the cells at either end that have at most this chance together: those below are moved up."""
        tails = self.tails
        low = min(int(np.count_nonzero(np.cumsum(self.chances) <= least)), len(tails) - 1)
        high = max(low + 1, int(np.count_nonzero(tails > least + self.beyond)))
        beyond = float(tails[high]) if high < len(tails) else self.beyond
        return GridLaw.of_tails(self.first + low, np.append(tails[low:high], beyond))

    def shifted(self, cells: int) -> "GridLaw":
        """The number and `cells` more."""
        return GridLaw(self.first + cells, self.chances, self.beyond)

    def at_least(self, cell: int) -> "GridLaw":
        """The larger one of the number and a cell."""
        if cell <= self.first:
            return self
        kept = self.tails[min(cell - self.first, len(self.chances) - 1) :]
        return GridLaw.of_tails(cell, np.append(kept, self.beyond))

    def doubled(self) -> "GridLaw":
        """Twice the number."""
        spread = np.zeros(2 * len(self.chances) - 1)
        spread[::2] = self.chances
        return GridLaw(2 * self.first, spread, self.beyond)

    def larger(self, other: "GridLaw") -> "GridLaw":
        """A law that is above both: in each cell the larger one of their tails."""
        first, top = min(self.first, other.first), max(self.top, other.top)
        return GridLaw.of_tails(first, np.maximum(self._tails_of(first, top + 1), other._tails_of(first, top + 1)))

    def _tails_of(self, first: int, top: int) -> Array:
        """The tails of the cells from `first`, at or below its own, to `top`, above its own."""
        return np.concatenate([np.ones(self.first - first), self.tails, np.full(top - self.top, self.beyond)])

    def largest_of(self, draws: int) -> "GridLaw":
        """The largest of 0 and `draws` independent numbers of this law: at or above c > 0 by 1 - (1 - tail)^draws.

        >>> coin = GridLaw(0, np.array([0.5, 0.5]), 0.0)
        >>> coin.largest_of(3).tail(1)
        0.875
        """
        tails = np.append(self.at_least(0).tails, self.beyond)
        with np.errstate(divide="ignore"):
            return GridLaw.of_tails(max(0, self.first), -np.expm1(draws * np.log1p(-np.minimum(tails, 1.0))))

    def stop_loss(self) -> "StopLoss":
        """What its mean beyond each cell says of numbers that depend on each other."""
        return StopLoss.of(self)


class StopLoss(NamedTuple):
    """The mean of (W - a)^+ at each a from `first` on, for a sum W of independent numbers, and what is beyond.

    Let U and V be such that U large and V large come together less often than if they were independent: P[U > u, V >
    v] <= P[U > u] P[V > v]. As (U + V - a)^+ is the integral over u of 1[U > u] 1[V >= a - u], its mean is at most that
    of independent ones; and P[U + V >= c] <= E(U + V - a)^+/(c - a) for every a < c.
    """

    first: int
    means: Array
    beyond: float

    @classmethod
    def of(cls, law: GridLaw) -> "StopLoss":
        """From a law; what is beyond counts as the last cell, and apart."""
        above = np.cumsum(law.tails[::-1])[::-1]  # of a = first - 1, first, ...
        return cls(law.first, np.append(above[1:], 0.0), law.beyond)

    def tail(self, cell: int) -> float:
        """At least the chance of a sum that is less than independent to be at or above a cell.

        >>> coin = GridLaw(0, np.array([0.5, 0.5]), 0.0)
        >>> coin.plus(coin).stop_loss().tail(2)  # both are 1: 1/4 if they are independent, 0 if they never agree
        0.25
        """
        count = min(cell - self.first, len(self.means))
        if count <= 0:
            return 1.0
        gaps = cell - self.first - np.arange(count)
        return min(1.0, float(np.min(self.means[:count] / gaps)) + self.beyond)


class Grid(NamedTuple):
    """Cells of a whole width; chances below `least` are not told apart."""

    width: int
    least: float

    def cells(self, value: int) -> int:
        """The cell of a value."""
        return -(-value // self.width)

    def laplace(self, scale: Fraction) -> GridLaw:
        """Discrete Laplace noise."""
        far = ceil(min(_NEVER, -log(self.least)) * scale / self.width) + 1
        return GridLaw.of_tails(-far, self.at_or_above(scale, np.arange(-far, far + 1)) + self.least)

    def at_or_above(self, scale: Fraction, cells: Cells, more: int = 1) -> Array:
        """P[X >= (cell - 1) width + more] for discrete Laplace X: q^y/(1+q) if y > 0, else 1 - q^(1-y)/(1+q).

        With `more` = 1 that is the chance that X lies in the cell, or above it.
        """
        rate, pace = _rate(scale, 1), _rate(scale, self.width)
        up = cells >= 2 + -more // self.width
        along = pace * (cells - 1.0) + rate * more  # y/scale
        tails = np.exp(-np.minimum(np.where(up, along, rate - along), _NEVER)) / (1 + np.exp(-rate))
        found: Array = np.where(up, tails, 1 - tails)
        return found


def _rate(scale: Fraction, width: int) -> float:
    return float(min(width / scale, Fraction(10**9)))

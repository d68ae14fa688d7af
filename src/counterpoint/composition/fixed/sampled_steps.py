"""The privacy loss of one Gaussian step on a Poisson sample, brought onto the points of a lattice, in each direction.

With P = (1-q) N(0, 1) + q N(mu, 1) and Q = N(0, 1), the loss of removing a unit is L(x) = log(1 - q + q e^(mu x -
mu^2/2)) for x from P, and that of adding one is -L(x) for x from Q. L rises with x, so the points of the lattice cut
the line into cells, whose masses are differences of normal tails.

From above, a cell's mass is split between its two points so that its mass under the other law, the mean of e^-L, is
kept (connect the dots: Doroshenko et al. 2022). A float is never trusted with that: masses of the first law are taken
too large, those of the other too small, which only moves more mass to the upper point. The cells' ends are floats, at
which L is not quite a point: `slack` bounds by how much L can exceed what the cells say. What lies beyond the last cell
counts as exposed. From below, an outcome is renamed to its cell: a postprocessing.

>>> step = SampledStep(1.0, 0.01)
>>> removed = step.cells(removing=True, low=-300, high=200_000, spacing=2.0**-14)
>>> bool(1 <= removed.ones.sum() < 1 + 1e-9), removed.beyond < 1e-20
(True, True)
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from counterpoint.composition.fixed.masses import UNIT, Array, Masses
from counterpoint.numbers import Interval, Precision

_TAIL = 64
"""A normal tail at x is off by at most (64 + 4 x^2) units: the C library's erfc by a few, its argument by two."""
_ENDS = 64
_ROOM = 1 + 2.0**-40
_LARGEST = 700.0
"""The largest exponent: from above every mass is at least 1e-300, so that none exceeds its weighted maximum by more."""
_NOTHING = 1e-300
"""How far a mass may be off because a float cannot be smaller, with room."""
_ERFC = np.frompyfunc(math.erfc, 1, 1)


class Divisor(NamedTuple):
    """The number total e^shift."""

    shift: float
    total: float

    def to(self, copies: int, p: Precision) -> Interval:
        """Its power, enclosed."""
        return p(copies * Fraction(self.shift)).exp() * p(Fraction(self.total)) ** copies


@dataclass(frozen=True)
class Cells:
    """Masses of cells from point `low` on: under the first law from above and from below, under the other likewise.

    The loss in cell i lies between points low + i and low + i + 1; `before` is the first law's mass below the first
    point, `beyond` that above the last one, both from above.
    """

    low: int
    spacing: float
    ones: Array
    least_ones: Array
    others: Array
    least_others: Array
    before: float
    beyond: float
    slack: float
    """By how much a loss may exceed what its cell says."""

    def spread(self, tilt: float) -> tuple[Masses, Divisor]:
        """The masses on points, weighted by e^(tilt L) and divided by what is returned beside them: an upper bound."""
        points = self.spacing * (self.low + np.arange(len(self.ones) + 1, dtype=np.float64))
        kept = self.least_others * np.exp(points[:-1]) * (1 - (_ENDS + 2 * np.abs(points[:-1])) * UNIT - self.slack)
        raised = np.clip((self.ones - kept) * _ROOM / -math.expm1(-self.spacing), 0.0, self.ones)
        values = np.append(self.ones - raised, 0.0)
        values[1:] += raised
        values[0] += self.before
        with np.errstate(divide="ignore"):
            shift = float(np.max(tilt * points + np.log(values)))
        total = float(np.sum(values * np.exp(np.minimum(tilt * points - shift, _LARGEST))))
        divisor = Divisor(shift, total)
        return _weighted(self.low, values * _ROOM, points, tilt, divisor), divisor

    def renamed(self, tilt: float, divisor: Divisor) -> tuple[Masses, Masses]:
        """The masses of the cells in both worlds, from below and from above: a lower bound.

        A cell is named by its lower point, and weighted at its middle, near which its likelihood ratio is.
        """
        points = self.spacing * (self.low + np.arange(len(self.ones), dtype=np.float64) + 0.5)
        near = (tilt + 1) * points - divisor.shift < _LARGEST  # outcomes in other cells are left out, in both worlds
        one = _weighted(self.low, np.where(near, self.least_ones / _ROOM, 0.0), points, tilt, divisor)
        other = _weighted(self.low, np.where(near, self.others * _ROOM, 0.0), points, tilt + 1, divisor)
        return one, other


def _weighted(low: int, values: Array, points: Array, tilt: float, divisor: Divisor) -> Masses:
    """The values times e^(tilt L), divided; an exponent is off by two units of its parts, and nothing overflows."""
    exponents = np.minimum(tilt * points - divisor.shift, _LARGEST)
    scaled = values * np.exp(exponents) / divisor.total
    units = _ENDS + 4 * np.abs(tilt * points) + 4 * abs(divisor.shift)
    return Masses(low, scaled, float(np.sum(scaled * units)) * UNIT * _ROOM + _NOTHING).trimmed()


@dataclass(frozen=True)
class SampledStep:
    """One Gaussian step: mu, and the rate of its sample (1: all units)."""

    mu: float
    rate: float

    def loss(self, x: Array) -> Array:
        """L(x): only to choose where to look."""
        exponent = self.mu * x - self.mu**2 / 2
        if self.rate == 1:
            return exponent
        with np.errstate(over="ignore", divide="ignore"):
            return np.where(
                exponent > 30,
                exponent + math.log(self.rate) + np.log1p((1 - self.rate) / self.rate * np.exp(-np.abs(exponent))),
                np.log1p(self.rate * np.expm1(np.minimum(exponent, 30.0))),
            )

    def cells(self, *, removing: bool, low: int, high: int, spacing: float) -> Cells:
        """The cells between two points, in one direction."""
        if not removing:
            low, high = -high, -low
        ends = self._ends(spacing * np.arange(low, high + 1, dtype=np.float64))
        finite = ends[np.isfinite(ends)]
        far = float(np.max(np.abs(finite), initial=0.0))
        slack = _ENDS * UNIT * (1 / max(1 - self.rate, UNIT if self.rate < 1 else 1.0) + self.mu * (far + self.mu))
        noise, noise_off, noise_ends = _normal(ends)
        moved, moved_off, moved_ends = _normal(ends - self.mu)
        mixed = (1 - self.rate) * noise + self.rate * moved
        mixed_off = (1 - self.rate) * noise_off + self.rate * moved_off + 4 * UNIT * mixed
        mixed_ends = tuple((1 - self.rate) * a + self.rate * b for a, b in zip(noise_ends, moved_ends, strict=True))
        if removing:
            return _cells(low, spacing, (mixed, mixed_off, mixed_ends), (noise, noise_off), slack)
        back = slice(None, None, -1)
        ones = noise[back], noise_off[back], noise_ends[::-1]
        return _cells(-high, spacing, ones, (mixed[back], mixed_off[back]), slack)

    def _ends(self, losses: Array) -> Array:
        """The x at which L is this; none is small enough for a loss that L does not reach."""
        if self.rate == 1:
            return losses / self.mu + self.mu / 2
        below = np.minimum(losses, 1.0)
        with np.errstate(divide="ignore"):
            near = np.log(np.maximum(np.expm1(below) + self.rate, 0.0) / self.rate)
        far = losses + np.log1p(-(1 - self.rate) * np.exp(-np.maximum(losses, 1.0))) - math.log(self.rate)
        return np.where(losses > 1, far, near) / self.mu + self.mu / 2


def _cells(
    low: int,
    spacing: float,
    first: tuple[Array, Array, tuple[float, ...]],
    second: tuple[Array, Array],
    slack: float,
) -> Cells:
    (ones, off, (before, beyond)), (others, others_off) = first, second
    return Cells(
        low,
        spacing,
        ones + off,
        np.maximum(ones - off, 0.0),
        others + others_off,
        np.maximum(others - others_off, 0.0),
        before,
        beyond,
        slack,
    )


def _normal(ends: Array) -> tuple[Array, Array, tuple[float, float]]:
    """The normal masses between these ends, by how much each may be off, and those before and beyond, from above."""
    tails = 0.5 * np.asarray(_ERFC(np.abs(ends) / math.sqrt(2)), dtype=np.float64)
    squares = np.where(np.isfinite(ends), ends, 0.0) ** 2
    off = tails * (_TAIL + 4 * squares) * UNIT + _NOTHING
    left, right = ends[:-1], ends[1:]
    masses = np.where(
        left >= 0, tails[:-1] - tails[1:], np.where(right <= 0, tails[1:] - tails[:-1], 1 - tails[:-1] - tails[1:])
    )
    rounding = 2 * UNIT * ((left < 0) & (right > 0))
    before = tails[0] + off[0] if ends[0] <= 0 else 1.0
    beyond = tails[-1] + off[-1] if ends[-1] >= 0 else 1.0
    return masses, off[:-1] + off[1:] + rounding, (float(before), float(beyond))

"""One part of a composition: equal randomized responses, brought onto the points of a lattice.

The loss of n responses of epsilon is -n eps + 2 eps K with K binomial. Weighted by e^(tilt L) it is binomial
again, with odds e^(eps (1 + 2 tilt)); its weights follow from each other by four operations, so their error
is known. Point i of the part's lattice stands for the loss -n eps + spacing i: K = 0 lies on it, the others
lie beyond point `cells` by a fraction `beyond` of the spacing, which is computed exactly before it is rounded
to a float.

>>> part = LatticePart.of(Fraction(1, 4), 2, tilt=Fraction(0), spacing=Fraction(1, 3))
>>> part.cells, part.beyond
(array([0, 1, 3]), array([0. , 0.5, 0. ]))
"""

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from counterpoint.composition.fixed.lattices.masses import UNIT, Array, Masses
from counterpoint.numbers import precision

_DIGITS = 25
_NEARBY = 22
"""Hoeffding: a binomial is farther than sqrt(22 n) from its mean with probability below 2 e^-44 < 2e-19."""
_FAINT = 1e-22
_OUTSIDE = 1e-16
"""Room for all of that, and for the weights below _FAINT, of which there are fewer than 10^5."""
_UPWARD = 1 + 32 * UNIT
"""A factor that covers the rounding of two quotients of expm1, each within a few units."""


@dataclass(frozen=True)
class LatticePart:
    """Losses at `start + cells + beyond` spacings, with weights that are relatively off by at most `error`."""

    tilt: Fraction
    spacing: Fraction
    start: int
    cells: NDArray[np.int64]
    beyond: Array
    weights: Array
    error: float

    @classmethod
    def of(cls, epsilon: Fraction, copies: int, tilt: Fraction, spacing: Fraction) -> "LatticePart":
        """The weighted losses of `copies` randomized responses of `epsilon`."""
        against = float((-precision(_DIGITS)(epsilon * (1 + 2 * tilt))).exp().upper)
        first, weights = binomial(copies, against)
        step = 2 * epsilon / spacing
        places = [divmod(k * step.numerator, step.denominator) for k in range(first, first + len(weights))]
        start = places[0][0]
        cells = np.array([cell - start for cell, _ in places], dtype=np.int64)
        beyond = np.array([rest / step.denominator for _, rest in places])
        error = (16 * len(weights) + 64) * UNIT  # four operations and the rounded odds at each step, with room
        return cls(tilt, spacing, start, cells, beyond, weights, error)

    @property
    def on_lattice(self) -> bool:
        """Whether every loss is a lattice point as it is."""
        return not self.beyond.any()

    def spread(self) -> Masses:
        """Each loss split between its two neighbours, keeping the mean of e^-L: an upper bound."""
        gap, tilt = float(self.spacing), float(self.tilt)
        raised = np.minimum(np.expm1(-gap * self.beyond) / math.expm1(-gap) * _UPWARD, 1.0)
        down = self.weights * (1 - raised) * np.exp(-tilt * gap * self.beyond)
        up = self.weights * raised * np.exp(tilt * gap * (1 - self.beyond))
        points = int(self.cells[-1]) + 2
        return self._masses(_gathered(self.cells, down, points) + _gathered(self.cells + 1, up, points))

    def renamed(self, tilt: Fraction) -> Masses:
        """Each outcome at its nearest point, with its true mass times e^(tilt L) there: a lower bound."""
        moved = np.rint(self.beyond)
        factor = np.exp(float(tilt) * float(self.spacing) * (moved - self.beyond))
        return self._masses(
            _gathered(self.cells + moved.astype(np.int64), self.weights * factor, int(self.cells[-1]) + 2)
        )

    def _masses(self, values: Array) -> Masses:
        masses = Masses(self.start, values, 0.0)
        return Masses(self.start, values, masses.total() * self.error + _OUTSIDE).trimmed()


def _gathered(cells: NDArray[np.int64], weights: Array, points: int) -> Array:
    return np.bincount(cells, weights, points).astype(np.float64)


def binomial(copies: int, against: float) -> tuple[int, Array]:
    """The first number of successes worth counting, and the weights from there on; odds are 1 to `against`.

    >>> binomial(2, 1.0)
    (0, array([0.25, 0.5 , 0.25]))
    """
    mode = min(copies, int((copies + 1) / (1 + against)))
    reach = math.isqrt(_NEARBY * copies) + 2
    up = np.arange(mode, min(copies, mode + reach), dtype=np.float64)
    down = np.arange(mode, max(0, mode - reach), -1, dtype=np.float64)
    above = np.cumprod((copies - up) / (up + 1) / against) if len(up) else up
    below = np.cumprod(down / (copies - down + 1) * against)
    weights = np.concatenate([below[::-1], [1.0], above])
    weights /= np.sum(weights)
    # an answer that is as good as certain must not stretch the lattice to its opposite
    kept = np.flatnonzero(weights >= _FAINT)
    return mode - len(below) + int(kept[0]), weights[kept[0] : kept[-1] + 1]

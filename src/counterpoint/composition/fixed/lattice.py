"""The privacy losses of many mechanisms, convolved on a lattice, from above and from below.

The delta of a composition is E(1 - e^(eps - L))+ over its privacy loss L, a sum of independent parts. A
part's losses seldom lie on the lattice. From above, each loss is split between its two neighbours so that the
mean of e^-L is kept: a mean-preserving spread, under which the convex (1 - e^eps z)+ can only grow (connect
the dots: Doroshenko et al. 2022). From below, each outcome is renamed to its
nearest lattice point, with its true probability in either world: a postprocessing, under which delta can only
shrink. Both err by the square of the spacing. All masses are weighted by e^(tilt L), so that floating point
is accurate where delta comes from, however small it is.

>>> groups = tuple((Fraction(1, i), 1) for i in range(3, 63))
>>> lattice = Lattice.near(groups, Fraction(2))
>>> print(f"{lattice.delta_below(Fraction(2)):.6e} {lattice.delta_above(Fraction(2)):.6e}")
2.631236e-5 2.631435e-5
"""

import math
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from counterpoint.composition.fixed.masses import (
    UNIT,
    Array,
    Groups,
    LossShape,
    Masses,
    common_measure,
    convolve_all,
    heaviest,
    largest_loss,
    moment,
)
from counterpoint.numbers import Interval, precision

_TILT_DIGITS = 25
_NEARBY = 22
"""Hoeffding: a binomial is farther than sqrt(22 n) from its mean with probability below 2 e^-44 < 2e-19."""
_FAINT = 1e-22
_OUTSIDE = 1e-16
"""Room for all of that, and for the weights below _FAINT, of which there are fewer than 10^5."""
_UPWARD = 1 + 32 * UNIT
"""A factor that covers the rounding of two quotients of expm1, each within a few units."""


@dataclass(frozen=True)
class LatticePart:
    """Losses at `start + cells + beyond` spacings, with weights that are relatively off by at most `error`.

    The loss of n responses of epsilon is -n eps + 2 eps K with K binomial. Weighted by e^(tilt L) it is binomial again,
    with odds e^(eps (1 + 2 tilt)); its weights follow from each other by four operations, so their error is known.
    Point i of the part's lattice stands for the loss -n eps + spacing i: K = 0 lies on it, the others lie beyond point
    `cells` by a fraction `beyond` of the spacing, which is computed exactly before it is rounded to a float.

    >>> part = LatticePart.of(Fraction(1, 4), 2, tilt=Fraction(0), spacing=Fraction(1, 3))
    >>> part.cells, part.beyond
    (array([0, 1, 3]), array([0. , 0.5, 0. ]))
    """

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
        against = float((-precision(_TILT_DIGITS)(epsilon * (1 + 2 * tilt))).exp().upper)
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


_DIGITS = 30
_WIDTH = 4e-6
"""The relative width of the bounds on epsilon that the spacing aims at."""
_POINTS = 2**18
_SIGMAS = 20
_ROUNDING = 1e-12
"""Each term of a sum below is within 4 tilt x + 32 units of 2^-53, and is nothing once tilt x > 745."""
_NOTHING = 1e-300


class TiltedLattice:
    """A composed privacy loss on points `spacing` apart, weighted by e^(tilt L), from above and from below.

    Point i stands for the loss `_lowest` + i spacing. All masses are divided by `_moment`.
    """

    tilt: Fraction
    spacing: Fraction
    _lowest: Fraction
    _moment: Interval
    _above: Masses
    """The losses moved to points such that delta can only grow."""
    _below: tuple[Masses, Masses]
    """Those of a postprocessing, in the one world and in the other, whose masses are smaller by e^-L."""

    def delta_above(self, epsilon: Fraction) -> Decimal:
        """An upper bound on the delta at `epsilon`."""
        value, error = self._spread_sum(epsilon)
        return self._scaled(epsilon, value + error).at_most(1).upper

    def delta_below(self, epsilon: Fraction) -> Decimal:
        """A lower bound on the delta at `epsilon`."""
        value, error = self._renamed_sum(epsilon)
        return self._scaled(epsilon, max(0.0, value - error)).lower

    def _scaled(self, epsilon: Fraction, value: float) -> Interval:
        p = precision(_DIGITS)
        return self._moment * p(-self.tilt * epsilon).exp() * p.between(Decimal(value), Decimal(value))

    @cached_property
    def _heaviest(self) -> float:
        return float(heaviest(self.tilt, precision(_DIGITS)).upper) * (1 + _ROUNDING)

    def _spread_sum(self, epsilon: Fraction) -> tuple[float, float]:
        """E(1 - e^(eps - L))+ / E[e^(tilt (L - eps))] of the spread losses, and how wrong it may be."""
        excess, (masses,) = self._beyond(epsilon, self._above)
        value = float(np.sum(masses * np.exp(-float(self.tilt) * excess) * -np.expm1(-excess)))
        return value, self._above.error * self._heaviest + value * _ROUNDING + _NOTHING

    def _renamed_sum(self, epsilon: Fraction) -> tuple[float, float]:
        """The same of the renamed ones; any set of outcomes gives a lower bound, so take those that seem to add."""
        one, other = self._below
        tilt = float(self.tilt)
        margin = 1 / max(tilt, 1.0)
        excess, (ones, others) = self._beyond(epsilon - Fraction(margin), one, other)
        gains = np.exp(-tilt * (excess - margin)) * ones
        costs = np.exp(-(tilt + 1) * (excess - margin)) * others
        # nothing is farther below epsilon than the margin, so the weights are at most e and e^2
        error = 3 * one.error + 8 * other.error + _ROUNDING * float(np.sum(gains + costs)) + _NOTHING
        return float(np.sum(np.maximum(gains - costs, 0.0))), error

    def _beyond(self, epsilon: Fraction, *laws: Masses) -> tuple[Array, list[Array]]:
        """By how much the losses above epsilon exceed it, and their masses in each law."""
        lowest = self._lowest
        first = max(math.floor((epsilon - lowest) / self.spacing) + 1, min(law.start for law in laws))
        stop = max(law.stop for law in laws)
        nearest = float(lowest + self.spacing * first - epsilon)
        excess = nearest + float(self.spacing) * np.arange(max(0, stop - first), dtype=np.float64)
        return excess, [law.between(first, stop) for law in laws]


@dataclass(frozen=True)
class Lattice(TiltedLattice):
    """Randomized responses `groups`, their losses on points `spacing` apart and weighted by e^(tilt L)."""

    groups: Groups
    tilt: Fraction
    spacing: Fraction

    @classmethod
    def near(cls, groups: Groups, epsilon: Fraction) -> "Lattice":
        """The lattice that is most accurate about `epsilon`; it is certain everywhere."""
        return _tilted(groups, LossShape(groups).tilt_at_epsilon(float(epsilon)))

    def delta_below(self, epsilon: Fraction) -> Decimal:
        """A lower bound on the delta at `epsilon`; where all losses lie on points, what is above is below, too."""
        if not all(part.on_lattice for part in self._parts):
            return super().delta_below(epsilon)
        value, error = self._spread_sum(epsilon)
        return self._scaled(epsilon, max(0.0, value - error)).lower

    @cached_property
    def _moment(self) -> Interval:  # type: ignore[override]
        return moment(self.groups, self.tilt, Fraction(0), precision(_DIGITS))

    @cached_property
    def _lowest(self) -> Fraction:  # type: ignore[override]
        return -largest_loss(self.groups)

    @cached_property
    def _parts(self) -> list[LatticePart]:
        return [LatticePart.of(epsilon, copies, self.tilt, self.spacing) for epsilon, copies in self.groups]

    @cached_property
    def _above(self) -> Masses:  # type: ignore[override]
        return convolve_all([part.spread() for part in self._parts])

    @cached_property
    def _below(self) -> tuple[Masses, Masses]:  # type: ignore[override]
        """The renamed losses in the one world and in the other, whose masses are smaller by e^-L."""
        return (
            convolve_all([part.renamed(self.tilt) for part in self._parts]),
            convolve_all([part.renamed(self.tilt + 1) for part in self._parts]),
        )


@lru_cache(maxsize=4)
def _tilted(groups: Groups, tilt: Fraction) -> Lattice:
    return Lattice(groups, tilt, spacing_for(groups, tilt))


def spacing_for(groups: Groups, tilt: Fraction) -> Fraction:
    """A spacing on which all losses lie, if one is wide enough; else one that widens epsilon by about 4e-6.

    Spreading and renaming change the variance of L by about spacing^2/8 for each part, and that moves epsilon by
    half of it times 1 + tilt.

    >>> spacing_for(((Fraction(1, 10), 5), (Fraction(1, 4), 5)), Fraction(0))
    Fraction(1, 10)
    """
    shape, steepness = LossShape(groups), float(tilt)
    spread = _SIGMAS * math.sqrt(shape.variance(steepness)) + shape.largest_open(steepness)
    span = min(2 * float(largest_loss(groups)), spread)
    common = 2 * common_measure(groups)
    if common * _POINTS >= Fraction(span):  # not divided: the measure may be too small for a float
        return common
    aim = 4 * math.sqrt(_WIDTH * shape.mean(steepness) / len(groups) / (1 + steepness))
    wanted = max(min(aim, 1 / (8 + 8 * steepness)), span / (4 * _POINTS))
    mantissa, exponent = math.frexp(wanted)
    return math.floor(mantissa * 16) * Fraction(2) ** (exponent - 4)

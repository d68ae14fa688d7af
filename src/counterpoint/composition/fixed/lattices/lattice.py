"""The optimal bound for many mechanisms: their privacy losses convolved on a lattice, from above and below.

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

from counterpoint.composition.fixed.lattices.masses import Array, Masses, convolve_all
from counterpoint.composition.fixed.lattices.moments import (
    Groups,
    LossShape,
    common_measure,
    heaviest,
    largest_loss,
    moment,
)
from counterpoint.composition.fixed.lattices.parts import LatticePart
from counterpoint.numbers import Interval, precision

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

"""Exact discrete Gaussian noise in integers: P[z] proportional to e^(-z^2/(2 sigma2)).

Drawn by cells (`cells.py`). With g = (n^2 - m^2)/(2 sigma2), 1 - P[n]/P[m] is 1 - e^-g, which
exceeds g - g^2/2.

>>> from fractions import Fraction
>>> from counterpoint.randomness.keystream import Keystream
>>> discrete_gaussian(Fraction(100), 5, Keystream(bytes(32)))
array([  5,   2,  13, -10,   6])
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from counterpoint.randomness.coins import Integers
from counterpoint.randomness.keystream import Keystream
from counterpoint.randomness.samplers.cells import Bounds, CellSampler, bits_of_cells, compiled
from counterpoint.randomness.samplers.laplace import WIDTH
from counterpoint.randomness.samplers.thresholds import Chance, failure, survival

_AT_ONCE = 2**15
"""Candidates of a batch: their arrays stay in the cache."""


def discrete_gaussian(sigma2: Fraction, size: int, stream: Keystream, width: int = WIDTH) -> Integers:
    """`size` independent integers z, each with probability proportional to e^(-z^2/(2 sigma2))."""
    return gaussian(sigma2, width).many(size, stream)


def one_gaussian(sigma2: Fraction, stream: Keystream, width: int = WIDTH) -> int:
    """One such integer."""
    return gaussian(sigma2, width).one(stream)


@dataclass(frozen=True, slots=True)
class DiscreteGaussian:
    """The law, as `cells.Falling`."""

    sigma2: Fraction
    bits: int
    at_once: int = _AT_ONCE

    def weights(self, *, negative: bool, point: int) -> list[Bounds]:
        """e^(-m^2/(2 sigma2)): each is the one before times a factor, and the factors fall by one factor themselves.

        For m = r b + a, where b is the block and a is 1 beside negative cells, the factor after row r is
        e^(-((2r + 1) b^2 + 2 a b)/(2 sigma2)). As they fall, all rows from r on weigh at most e^(-m^2/(2 sigma2)) over
        1 - factor.
        Rows go on until the first of them is below a unit: 7/5 > 2 ln 2.
        """
        block, away = 1 << self.bits, 1 if negative else 0
        exponents = away, block * (block + 2 * away), 2 * block * block
        starts = [Chance(survival, Fraction(x) / (2 * self.sigma2)).floor(point) for x in exponents]
        reach = math.isqrt(math.ceil(Fraction(7, 5) * point * self.sigma2)) + 1
        (low, low_factor, low_fall), (high, high_factor, high_fall) = starts, [start + 1 for start in starts]
        weights = []
        for _ in range(2 + (reach >> self.bits)):
            weights.append((low, high))
            low, high = low * low_factor >> point, (high * high_factor >> point) + 1
            low_factor, high_factor = low_factor * low_fall >> point, (high_factor * high_fall >> point) + 1
        return [*weights, (0, (high << point) // ((1 << point) - high_factor) + 1)]

    def failure(self, nearest: int, outward: int) -> Chance:
        """The chance 1 - e^-g."""
        return Chance(failure, outward * (2 * nearest + outward) / (2 * self.sigma2))


@lru_cache(maxsize=256)
def gaussian(sigma2: Fraction, width: int = WIDTH) -> CellSampler:
    """The compiled law."""
    return compiled(DiscreteGaussian(sigma2, bits_of_cells(sigma2)), width)

"""Exact rounded normal noise in integers: P[n] is the chance that N(0, sigma2) lies between n - 1/2 and n + 1/2.

Drawn by cells (`cells.py`).

Proof that 1 - P[n]/P[m] lies between g - g/(4 sigma2) - g^2/2 and 1 - e^-g, with g = (n^2 - m^2)/(2 sigma2): P[n] is
e^(-n^2/(2 sigma2)) times h(n), the mean of cosh(n u/sigma2) e^(-u^2/(2 sigma2)) over |u| < 1/2, which grows with |n|;
the derivative of log h is at most tanh(n/(2 sigma2))/(2 sigma2) <= n/(4 sigma2^2), so that log h(n) - log h(m) <=
g/(4 sigma2).

>>> from fractions import Fraction
>>> from counterpoint.randomness.keystream import Keystream
>>> rounded_normal(Fraction(100), 5, Keystream(bytes(32)))
array([  5,   2,  13, -10,   6])
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from counterpoint.numbers import Interval, normal_cell, precision
from counterpoint.randomness.coins import Integers
from counterpoint.randomness.keystream import Keystream
from counterpoint.randomness.samplers.cells import Bounds, CellSampler, bits_of_cells, compiled
from counterpoint.randomness.samplers.laplace import WIDTH, WORDS_AT_ONCE


def rounded_normal(sigma2: Fraction, size: int, stream: Keystream, width: int = WIDTH) -> Integers:
    """`size` independent integers, each a normal number with variance sigma2, rounded."""
    return rounded(sigma2, width).many(size, stream)


def one_rounded_normal(sigma2: Fraction, stream: Keystream, width: int = WIDTH) -> int:
    """One such integer."""
    return rounded(sigma2, width).one(stream)


@dataclass(frozen=True, slots=True)
class RoundedNormal:
    """The law, as `cells.Falling`."""

    sigma2: Fraction
    bits: int
    at_once: int = WORDS_AT_ONCE

    def weights(self, *, negative: bool, point: int) -> list[Bounds]:
        """P[m] times the integers of a cell. Rows go on until what is left is below a unit.

        As P falls, the rows from r on hold at most Q(((r-1) block + 1/2)/sigma); Q(x) <= e^(-x^2/2)/2, 7/5 > 2 ln 2.
        """
        p = precision(point // 3 + self.bits // 2 + 9)
        reach = math.isqrt(math.ceil(Fraction(7, 5) * point * self.sigma2)) + 1
        rows = range(2 + (reach >> self.bits))
        cells = (normal_cell((row << self.bits) + negative, self.sigma2, p) for row in rows)
        return [_bounds(cell, point + self.bits) for cell in cells] + [(0, 1)]

    def failure(self, nearest: int, outward: int) -> "Failure":
        """The chance 1 - P[n]/P[m]."""
        return Failure(self.sigma2, nearest, outward)


@dataclass(frozen=True, slots=True)
class Failure:
    """The chance 1 - P[n]/P[m] that a candidate is not kept."""

    sigma2: Fraction
    nearest: int
    outward: int

    def floor(self, width: int) -> int:
        """The integer part of 2^width times it, certified."""
        digits = width // 3 + self.outward.bit_length() // 2 + 12
        while True:
            p = precision(digits)
            far, near = (normal_cell(n, self.sigma2, p) for n in (self.nearest + self.outward, self.nearest))
            lower, upper = _bounds(1 - far / near, width)
            if lower + 1 == upper:
                return lower
            digits *= 2


def _bounds(value: Interval, point: int) -> Bounds:
    """A number that is not negative, in units of 2^-point: rounded down, and to the next above."""
    scale = 1 << point
    return max(math.floor(Fraction(value.lower) * scale), 0), math.floor(Fraction(value.upper) * scale) + 1


@lru_cache(maxsize=256)
def rounded(sigma2: Fraction, width: int = WIDTH) -> CellSampler:
    """The compiled law."""
    return compiled(RoundedNormal(sigma2, bits_of_cells(sigma2)), width)

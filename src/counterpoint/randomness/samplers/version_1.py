"""The discrete Gaussian noise of version 1 of the sampler, to finish the steps that it began: the law of `gaussian.py`.

Rejection from the discrete Laplace law (Canonne et al. 2020, Alg. 3): a candidate y of scale
t = floor(sigma) + 1 is kept with probability e^-g, where g = (|y| - sigma2/t)^2/(2 sigma2). Candidates come
in batches, so neither the number of batches nor their work depends on the values kept.

How e^-g is decided without floating point: write g = whole + byte/2^8 + byte/2^16 + rest, 0 <= rest < 2^-15.
As e^-g is the product of e^-part over the four parts, y is kept if none of four independent words falls below
its threshold for 1 - e^-part. Three thresholds stand in tables that serve every sigma; of the rest it is
enough to know that 1 - e^-rest < 2^-15: only a word below that, or one equal to its threshold, needs g
exactly.

>>> from fractions import Fraction
>>> from counterpoint.randomness.keystream import Keystream
>>> discrete_gaussian(Fraction(100), 5, Keystream(bytes(32)))
array([ -4,  11, -17,  13,   0])
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from counterpoint.randomness.coins import Integers
from counterpoint.randomness.keystream import Keystream, word_type
from counterpoint.randomness.samplers.laplace import WIDTH, geometric
from counterpoint.randomness.samplers.thresholds import Chance, failure

FAR = 64
"""Larger exponents are split into this whole, which no word survives but by a tie, and a rest of any size."""

_FEWEST = 16
_STEPS = (2**16, 2**8, 1)


def discrete_gaussian(sigma2: Fraction, size: int, stream: Keystream, width: int = WIDTH) -> Integers:
    """`size` independent integers z, each with probability proportional to e^(-z^2/(2 sigma2))."""
    law = gaussian_test(sigma2)
    proposal = geometric(Fraction(law.scale), width)
    kept: list[NDArray[Any]] = []
    missing = size
    while missing or not kept:
        wanted = missing + missing // 2 + _FEWEST if missing else 0
        candidates = proposal.differences(next(proposal.chunks(wanted)), stream)
        kept.append(candidates[law.keeps(candidates, stream, width)][:missing])
        missing -= len(kept[-1])
    return np.concatenate(kept)


@dataclass(frozen=True, slots=True)
class GaussianTest:
    """The acceptance test for one sigma2.

    With r = 1/sqrt(2 sigma2) and c = sigma2/scale, g is the square of the distance between |y| r and c r. In units
    of 2^-point, `slope` is the floor of 2^shift r and `middle` the floor of c r.
    """

    sigma2: Fraction
    scale: int
    shift: int
    point: int
    slope: int
    middle: int

    def exponent(self, y: int) -> Fraction:
        """g, exactly.

        >>> gaussian_test(Fraction(100)).exponent(-22)
        Fraction(5041, 6050)
        """
        return (abs(y) - self.sigma2 / self.scale) ** 2 / (2 * self.sigma2)

    def roots(self, candidates: Integers) -> NDArray[np.int64]:
        """Integers n <= 2^24 sqrt(g), at most 2^30, with 2^24 sqrt(g) < n + 3 unless n >= 2^27.

        Proof. |y| is taken in cells of 2^shift: exactly if that is 1 (cut = 0), else cut off (cut = 1). So |y| r lies
        between cells * slope and (cells + cut)(slope + 1), c r between middle and middle + 1, and their distance
        between `distance` and distance + cells + cut * (slope + 1) + 1, all in units of 2^-point.
        Let b be the bits of scale: 2^b > scale > sigma, and 2^b <= 4 sigma if sigma >= 1.
        No overflow: cells <= 2^31 and slope < 1.5 * 2^30 if sigma >= 1, else cells <= 2^5 and slope <= 2^40.
        Precision: if cut = 0, cells <= 2^(b+4) and point = b + 29; else cells + slope + 2 < 2^32 and point = 56.
        Either way the distance is known to 2^-24, and the last shift loses less than 2^-24.
        Limits only lower n, and never below 2^27: cells end at `most`, where |y| > 16 sigma and so sqrt(g) > 10; the
        slope ends at 2^40, where |y| >= 1 makes sqrt(g) > 2^9, and |y| = 0 does not feel it.
        """
        cut = 1 if self.shift else 0
        most = 1 << (self.scale.bit_length() + 4 - self.shift)
        cells = np.minimum(np.abs(candidates) >> self.shift, most).astype(np.int64)
        above = cells * self.slope - (self.middle + 1)
        below = self.middle - (cells + cut) * (self.slope + 1)
        distance = np.maximum(np.maximum(above, below), 0)
        roots: NDArray[np.int64] = np.minimum(distance >> (self.point - 24), 2**30)
        return roots

    def floors(self, candidates: Integers) -> NDArray[np.int64]:
        """Integers n <= 2^16 g, at most FAR * 2^16, with 2^16 g < n + 2 unless n is that.

        For if n is less, root < 2^27, so that root^2 <= 2^48 g < (root + 3)^2 < root^2 + 2^30.
        """
        roots = self.roots(candidates)
        floors: NDArray[np.int64] = np.minimum(roots * roots >> 32, FAR << 16)
        return floors

    def keeps(self, candidates: Integers, stream: Keystream, width: int) -> NDArray[np.bool_]:
        """Which candidates are kept, each with probability e^-g."""
        floors = self.floors(candidates)
        words = stream.words(4 * len(floors), width).reshape(4, len(floors))
        falls = np.zeros(len(floors), dtype=np.bool_)
        unsure = words[3] <= (1 << width) >> 15
        for word, table, part in zip(words[:3], _tables(width), _parts(floors), strict=True):
            thresholds = table[part]
            falls |= word < thresholds
            unsure |= word == thresholds
        for index in np.flatnonzero(unsure & ~falls):
            chances = self._chances(int(candidates[index]), int(floors[index]))
            drawn = zip(chances, words[:, index], strict=True)
            falls[index] = any(chance.exceeds(int(word), width, stream) for chance, word in drawn)
        return ~falls

    def _chances(self, y: int, floor: int) -> list[Chance]:
        """The four chances to fall, whose complements multiply to e^-g."""
        known = [Fraction(part, step) for part, step in zip(_parts(floor), _STEPS, strict=True)]
        return [Chance(failure, x) for x in (*known, self.exponent(y) - sum(known))]


@lru_cache(maxsize=256)
def gaussian_test(sigma2: Fraction) -> GaussianTest:
    """The compiled law; square roots of rationals are floors of integer square roots."""
    scale = math.isqrt(math.floor(sigma2)) + 1
    bits = scale.bit_length()
    shift = max(0, bits - 27)
    point = bits + 29 - shift
    slope = math.isqrt(math.floor(4 ** (point + shift) / (2 * sigma2)))
    middle = math.isqrt(math.floor(4**point * sigma2 / (2 * scale**2)))
    return GaussianTest(sigma2, scale, shift, point, min(slope, 2**40), middle)


def _parts(floor: Any) -> tuple[Any, Any, Any]:
    """The two bytes after the point and the whole part, of one number or of a vector."""
    return floor & 255, floor >> 8 & 255, floor >> 16


@lru_cache(maxsize=8)
def _tables(width: int) -> list[NDArray[Any]]:
    """For each part of an exponent and each of its values, the threshold of 1 - e^-part."""
    counts = (256, 256, FAR + 1)
    return [
        np.array([Chance(failure, Fraction(value, step)).floor(width) for value in range(count)], word_type(width))
        for step, count in zip(_STEPS, counts, strict=True)
    ]

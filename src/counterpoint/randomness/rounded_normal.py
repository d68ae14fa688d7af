"""Exact rounded normal noise in integers: P[n] is the chance that N(0, sigma2) lies between n - 1/2 and n + 1/2.

By inversion: one random word, compared with certified thresholds, names a cell of `block` integers, a power of two that
makes sigma/block less than 64. Up to sigma = 64 a cell is one integer and the draw is done. Otherwise n is one of the
cell's integers, each equally likely, and is kept with probability P[n]/P[m], where m is the cell's integer that is
nearest to 0: so cells are chosen with probabilities proportional to P[m]. What is not kept is drawn anew, cell and
all, so that neither the number of batches nor their work depends on the values kept.

How 1 - P[n]/P[m] is decided without floating point: with g = (n^2 - m^2)/(2 sigma2) it lies between
g - g/(4 sigma2) - g^2/2 and g. For P[n] is e^(-n^2/(2 sigma2)) times h(n), the mean of cosh(n u/sigma2) e^(-u^2/(2
sigma2)) over |u| < 1/2, which grows with |n|; the derivative of log h is at most tanh(n/(2 sigma2))/(2 sigma2) <= n/(4
sigma2^2), so that log h(n) - log h(m) <= g/(4 sigma2). Only a word between the two, or one equal to a threshold, needs
more digits: then Arb certifies the chances themselves.

>>> from fractions import Fraction
>>> from counterpoint.randomness.keystream import Keystream
>>> rounded_normal(Fraction(100), 5, Keystream(bytes(32)))
array([  5,   2,  13, -10,   6])
"""

import math
from bisect import bisect_left
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

from counterpoint.numbers import Interval, normal_cell, precision
from counterpoint.randomness.coins import Integers
from counterpoint.randomness.keystream import Keystream, word_type
from counterpoint.randomness.laplace import WIDTH, WORDS_AT_ONCE

_MOST_CELLS = 64
_GUIDE_BITS = 12
_MORE = 64
_FEWEST = 16
_FITS = 51
"""Cells of this number of bits leave room for the number of the cell in 64."""
_KEPT_BITS = 20
"""So many leading bits of a place in its cell are enough to tell nearly always whether it is kept."""
_POINT = 50


def rounded_normal(sigma2: Fraction, size: int, stream: Keystream, width: int = WIDTH) -> Integers:
    """`size` independent integers, each a normal number with variance sigma2, rounded."""
    law = rounded(sigma2, width)
    kept: list[NDArray[Any]] = []
    missing = size
    while missing or not kept:
        kept.append(law.draw(min(law.wanted(missing), WORDS_AT_ONCE), stream)[:missing])
        missing -= len(kept[-1])
    return np.concatenate(kept)


@dataclass(frozen=True, eq=False, slots=True)
class RoundedNormal:
    """The compiled law: thresholds of the cells, and bounds on what a place in a cell is kept with.

    `guide` says for the leading bits of a word how many thresholds lie below, `crowded` whether more than one lies
    between; `middle` is the threshold above which cells hold integers from 0 on. `above` and `below` are, in units of
    2^-50 and rounded up and down, what g gains: per cell and place, per place beside a negative cell, per square.
    """

    sigma2: Fraction
    width: int
    bits: int
    thresholds: NDArray[Any]
    guide: NDArray[np.intp]
    crowded: NDArray[np.bool_]
    middle: int
    above: tuple[int, int, int]
    below: tuple[int, int, int]

    def wanted(self, missing: int) -> int:
        """How many candidates to draw: hardly more than are missing, and just those if every one is kept."""
        return missing + missing // 16 + _FEWEST if missing and self.bits else missing

    def draw(self, count: int, stream: Keystream) -> Integers:
        """Independent values: as many as candidates, or fewer if some are not kept."""
        cells = self._cells(stream.words(count, self.width), stream)
        if not self.bits:
            return cells
        places = _integers(stream, count, self.bits)
        kept = self._keeps(cells, places, stream)
        wide: Integers = cells if places.dtype == np.int64 else cells.astype(object)
        return ((wide << self.bits) + places)[kept]

    def _cells(self, words: NDArray[Any], stream: Keystream) -> NDArray[np.int64]:
        """The number of each word's cell; from 0 on for cells of integers that are not negative."""
        bucket = words >> max(0, self.width - _GUIDE_BITS)
        found = self.guide[bucket]
        found = found + (self.thresholds[found] < words)
        crowded = np.flatnonzero(self.crowded[bucket])
        found[crowded] = np.searchsorted(self.thresholds, words[crowded])
        cells: NDArray[np.int64] = (found - self.middle).astype(np.int64)
        for tie in np.flatnonzero(self.thresholds[found] == words):
            cells[tie] = _settled(self.sigma2, int(words[tie]), self.width, stream)
        return cells

    def _keeps(self, cells: NDArray[np.int64], places: Integers, stream: Keystream) -> NDArray[np.bool_]:
        """Which candidates are kept, each with probability P[n]/P[m]."""
        words = stream.words(len(cells), self.width)
        negative = cells < 0
        outward = np.where(negative, (1 << self.bits) - 1 - places, places)  # how far from m
        rows = np.where(negative, -1 - cells, cells)
        leading = (outward >> max(0, self.bits - _KEPT_BITS)).astype(np.int64)
        cut = 1 if self.bits > _KEPT_BITS else 0
        most = _exponent(self.above, rows, negative, leading + cut)
        least = _exponent(self.below, rows, negative, leading)
        square = (most >> (_POINT // 2)) + 1
        least = least - (square * square >> 1) - (most >> 14) - 2  # sigma2 is at least 2^12
        start, end = _scaled(words, self.width)
        keeps: NDArray[np.bool_] = start >= most
        for index in np.flatnonzero(~keeps & (end > least)):
            fails = _Failure(self.sigma2, self.bits, int(rows[index]), bool(negative[index]), int(outward[index]))
            keeps[index] = not fails.exceeds(int(words[index]), self.width, stream)
        return keeps


def _exponent(units: tuple[int, int, int], rows: Any, negative: Any, places: Any) -> Any:
    """The g = (2 m d + d^2)/(2 sigma2) for the integer d places from m, which is row * block, or 1 more if negative."""
    return (units[0] * rows + units[1] * negative) * places + units[2] * places * places


def _scaled(words: NDArray[Any], width: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Between which multiples of 2^-50 the uniform numbers lie that begin with these words."""
    if width > _POINT:
        start = (words >> (width - _POINT)).astype(np.int64)
        return start, start + 1
    start = words.astype(np.int64) << (_POINT - width)
    return start, start + (1 << (_POINT - width))


def _integers(stream: Keystream, count: int, bits: int) -> Integers:
    """Uniform integers of this number of bits."""
    if bits <= _FITS:
        return stream.words(count, bits).astype(np.int64)
    return np.fromiter((stream.bits(bits) for _ in range(count)), dtype=object, count=count)


@dataclass(frozen=True, slots=True)
class _Failure:
    """The chance 1 - P[n]/P[m] that a candidate is not kept."""

    sigma2: Fraction
    bits: int
    row: int
    negative: bool
    outward: int

    def exceeds(self, word: int, width: int, stream: Keystream) -> bool:
        """Whether it exceeds the uniform number whose first `width` binary digits spell `word`."""
        if self.outward == 0:
            return False
        while word == (threshold := self._floor(width)):
            word, width = word << _MORE | stream.bits(_MORE), width + _MORE
        return word < threshold

    def _floor(self, width: int) -> int:
        nearest = (self.row << self.bits) + self.negative
        digits = width // 3 + self.bits // 2 + 12
        while True:
            p = precision(digits)
            ratio = normal_cell(nearest + self.outward, self.sigma2, p) / normal_cell(nearest, self.sigma2, p)
            lower, upper = _floors(1 - ratio, width)
            if lower == upper:
                return lower
            digits *= 2


def _floors(chance: Interval, width: int) -> tuple[int, int]:
    """The integer parts of a chance's two bounds times 2^width."""
    scale, most = 1 << width, (1 << width) - 1
    return tuple(min(max(math.floor(Fraction(end) * scale), 0), most) for end in (chance.lower, chance.upper))  # type: ignore[return-value]


def _bits(sigma2: Fraction) -> int:
    """The least number of bits of a cell with sigma less than 64 cells."""
    bits = 0
    while sigma2 >= _MOST_CELLS**2 << 2 * bits:
        bits += 1
    return bits


def _settled(sigma2: Fraction, word: int, width: int, stream: Keystream) -> int:
    """The cell of a uniform number whose first digits are those of a threshold: more digits tell."""
    while True:
        ends, middle = _ends(sigma2, width)
        at = bisect_left(ends, word)
        if at < len(ends) and ends[at] != word:
            return at - middle
        word, width = word << _MORE | stream.bits(_MORE), width + _MORE


@lru_cache(maxsize=512)
def _ends(sigma2: Fraction, width: int) -> tuple[list[int], int]:
    """The integer parts of 2^width times the chances of all cells below each cell, and how many of those are negative.

    They begin with 0 and end with 2^width - 1, so that a word beyond either end ties with it.
    """
    digits = width // 3 + 8
    while True:
        ends = _chances(sigma2, digits)
        floors = [_floors(chance, width) for chance in ends]
        if all(lower == upper for lower, upper in floors):
            return [lower for lower, _ in floors], (len(floors) + 1) // 2
        digits *= 2


def _chances(sigma2: Fraction, digits: int) -> list[Interval]:
    """The chance of all cells below each cell, enclosed: sums of P[m] over their sum.

    Rows are summed until what is left is below 10^-digits: as P falls, the rows from r on hold at most
    Q(((r-1) block + 1/2)/sigma)/block, and all together at least 1/block; Q(x) <= e^(-x^2/2)/2, and 4.7 > 2 ln 10.
    """
    bits = _bits(sigma2)
    p = precision(digits + bits // 2 + 12)
    reach = math.isqrt(math.ceil(Fraction(47, 10) * digits * sigma2)) + 1
    rows = 2 + (reach >> bits)
    block = 1 << bits
    rest = p.between(0, (p(1) / (block * 10**digits)).upper)
    right = list(accumulate((normal_cell(row * block, sigma2, p) for row in reversed(range(rows))), initial=rest))
    left = list(accumulate((normal_cell(row * block + 1, sigma2, p) for row in reversed(range(rows))), initial=rest))
    total = left[-1] + right[-1]
    return [mass / total for mass in left] + [1 - mass / total for mass in reversed(right[:-1])]


@lru_cache(maxsize=256)
def rounded(sigma2: Fraction, width: int = WIDTH) -> RoundedNormal:
    """The compiled law."""
    bits = _bits(sigma2)
    ends, middle = _ends(sigma2, width)
    thresholds = np.array(ends, dtype=word_type(width))
    spare = max(0, width - _GUIDE_BITS)
    starts = [bisect_left(ends, bucket << spare) for bucket in range(1 << (width - spare))]
    counts = np.diff([*starts, len(ends)])
    step = 1 << max(0, bits - _KEPT_BITS)
    gains = [Fraction(gain << _POINT) / sigma2 for gain in (step << bits, step, step * step)]
    gains[2] /= 2
    return RoundedNormal(
        sigma2,
        width,
        bits,
        thresholds,
        np.array(starts, dtype=np.intp),
        counts > 1,
        middle,
        (math.ceil(gains[0]), math.ceil(gains[1]), math.ceil(gains[2])),
        (math.floor(gains[0]), math.floor(gains[1]), math.floor(gains[2])),
    )

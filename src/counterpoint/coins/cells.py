"""Exact noise of a law of integers that is even and falls with |n|, by cells of equally many integers.

By inversion: one random word, compared with certified thresholds, names a cell of 2^bits integers, which are at most a
small part of sigma. If a cell is one integer, the draw is done. Otherwise n is one of the cell's integers, each equally
likely, and is kept with probability P[n]/P[m], where m is the cell's integer that is nearest to 0: so cells are chosen
with probabilities proportional to P[m]. What is not kept is drawn anew, cell and all, so that neither the number of
batches nor their work depends on the values kept.

How 1 - P[n]/P[m] is decided without floating point: a `Falling` law promises that it lies between g - g/(4 sigma2) -
g^2/2 and 1 - e^-g, where g = (n^2 - m^2)/(2 sigma2). In every cell that a word can name g is small: a word above its
largest value there, as most are, keeps the candidate whatever it is. Of the others, only a word between two bounds on
the chance, or one equal to a threshold, needs more digits: then the law certifies the chances themselves.

>>> from fractions import Fraction
>>> from counterpoint.coins.noise import gaussian
>>> from counterpoint.coins.keystream import Keystream
>>> cells = gaussian(Fraction(10**6))
>>> cells.bits, cells.many(3, Keystream(bytes(32))), cells.one(Keystream(bytes(32)))
(4, array([ 471,  162, 1264]), 468)
"""

import math
from bisect import bisect_left, bisect_right
from collections.abc import Hashable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from counterpoint.coins.bernoulli import Floors, lies_below
from counterpoint.coins.coins import Integers
from counterpoint.coins.keystream import Keystream, word_type

_MOST_CELLS = 64
_GUIDE_BITS = 14
_MORE = 64
_FEWEST = 16
_FITS = 51
"""Cells of this number of bits leave room for the number of the cell in 64."""
_KEPT_BITS = 16
"""The leading bits of a place in its cell that tell, nearly always, whether it is kept."""
_POINT = 58
"""Chances are integers of 2^-58, which leaves room for g up to 32: farther than 1000 sigma from 0."""

Bounds = tuple[int, int]
"""A number of some unit, rounded down and up."""


class Falling(Hashable, Protocol):
    """What a law of integers says of itself: P is even, falls with |n|, and 1 - P[n]/P[m] keeps the promise above.

    A law is a value: what is computed for it is kept for all that equal it. Cells of several integers (bits > 0) need
    sigma2 >= 2^12.
    """

    @property
    def sigma2(self) -> Fraction:
        """The variance, or the parameter that is nearly it."""

    @property
    def bits(self) -> int:
        """A cell has 2^bits integers."""

    @property
    def at_once(self) -> int:
        """The most candidates of a batch."""

    def weights(self, *, negative: bool, point: int) -> list[Bounds]:
        """The chances of m in the cells from 0 outward, up to one factor; at last a bound on all the rest together.

        In units of 2^-point. The cells of row r begin at m = r 2^bits, or the negative ones at -m = r 2^bits + 1. The
        largest weight is about 1 and the rest a few units, as are the distances of bounds.
        """

    def failure(self, nearest: int, outward: int) -> Floors:
        """The chance 1 - P[n]/P[m] for m = nearest and n = nearest + outward, which is more than m."""


def bits_of_cells(sigma2: Fraction) -> int:
    """The least number of bits of a cell with sigma less than 64 cells."""
    bits = 0
    while sigma2 >= _MOST_CELLS**2 << 2 * bits:
        bits += 1
    return bits


@dataclass(frozen=True, eq=False, slots=True)
class CellSampler:
    """A compiled law: thresholds of the cells, and bounds on what a place in a cell is kept with.

    `guide` says for the leading bits of a word how many thresholds lie below; `middle` is the threshold above which
    cells hold integers from 0 on. `above` and `below` are, in units of 2^-58 and rounded up and down, what g gains: per
    cell and place, per place beside a negative cell, per square. From the word `sure` on, all candidates are kept of
    the `last` cells on either side, beyond which only a tie can lead.
    """

    law: Falling
    width: int
    bits: int
    thresholds: NDArray[Any]
    guide: NDArray[np.intp]
    middle: int
    above: tuple[int, int, int]
    below: tuple[int, int, int]
    sure: int
    last: int

    def many(self, size: int, stream: Keystream) -> Integers:
        """`size` independent integers."""
        kept: list[NDArray[Any]] = []
        missing = size
        while missing or not kept:
            kept.append(self.draw(min(self.wanted(missing), self.law.at_once), stream)[:missing])
            missing -= len(kept[-1])
        return np.concatenate(kept)

    def one(self, stream: Keystream) -> int:
        """One integer, in Python's integers. How many candidates it takes says nothing of the one kept."""
        while True:
            words = stream.words(2, self.width)
            cell = self._cell(words, stream)  # the digits that settle a tie come before the place
            if not self.bits:
                return cell
            n = (cell << self.bits) + stream.bits(self.bits)
            if self._keeps_one(cell, n, int(words[1]), stream):
                return n

    def wanted(self, missing: int) -> int:
        """How many candidates to draw: hardly more than are missing, and just those if every one is kept."""
        return missing + missing // 16 + _FEWEST if missing and self.bits else missing

    def draw(self, count: int, stream: Keystream) -> Integers:
        """Independent values: as many as candidates, or fewer if some are not kept."""
        cells, ties = self._cells(stream.words(count, self.width), stream)
        if not self.bits:
            return cells
        places = _integers(stream, count, self.bits)
        kept = self._keeps(cells, ties, places, stream)
        wide: Integers = cells if places.dtype == np.int64 else cells.astype(object)
        return ((wide << self.bits) + places)[kept]

    def _cells(self, words: NDArray[Any], stream: Keystream) -> tuple[NDArray[np.int64], NDArray[np.intp]]:
        """The number of each word's cell, from 0 on for cells of integers from 0 on; and which words tie."""
        found = self.guide.take(words >> max(0, self.width - _GUIDE_BITS))
        found += self.thresholds.take(found) < words
        reached = self.thresholds.take(found)
        open_ = np.flatnonzero(reached <= words)
        crowded = open_[reached[open_] != words[open_]]  # more thresholds than one begin with these bits
        found[crowded] = np.searchsorted(self.thresholds, words[crowded])
        ties = open_[self.thresholds[found[open_]] == words[open_]]
        found -= self.middle
        for tie in ties:
            found[tie] = _settled(self.law, int(words[tie]), self.width, stream)
        return found.astype(np.int64, copy=False), ties

    def _cell(self, words: NDArray[Any], stream: Keystream) -> int:
        """The same for the first word, which is compared with every threshold: so the time says nothing of its cell.

        Where Python's integers are short or small they are faster: none is made of the word.
        """
        at = int(np.count_nonzero(self.thresholds < words[:1]))
        if self.thresholds[at] == words[0]:
            return _settled(self.law, int(words[0]), self.width, stream)
        return at - self.middle

    def _keeps(
        self, cells: NDArray[np.int64], ties: NDArray[np.intp], places: Integers, stream: Keystream
    ) -> NDArray[np.bool_]:
        """Which candidates are kept, each with probability P[n]/P[m]."""
        words = stream.words(len(cells), self.width)
        keeps: NDArray[np.bool_] = words >= self.sure
        keeps[ties] = False  # a tie may lead to any cell, also to one beyond `last`, for which `sure` promises nothing
        unsure = np.flatnonzero(~keeps)
        keeps[unsure] = self._keeps_these(cells[unsure], places[unsure], words[unsure], stream)
        return keeps

    def _keeps_these(
        self, cells: NDArray[np.int64], places: Integers, words: NDArray[Any], stream: Keystream
    ) -> NDArray[np.bool_]:
        """The same for candidates whose words do not tell it alone."""
        negative = cells < 0
        outward = np.where(negative, (1 << self.bits) - 1 - places, places)  # how far from m
        rows = np.where(negative, -1 - cells, cells)
        leading = (outward >> max(0, self.bits - _KEPT_BITS)).astype(np.int64)
        cut = 1 if self.bits > _KEPT_BITS else 0
        g = _exponent(self.below, rows, negative, leading), _exponent(self.above, rows, negative, leading + cut)
        least, most = _failures(*g)
        start, end = _scaled(words, self.width)
        keeps: NDArray[np.bool_] = start >= most
        for index in np.flatnonzero(~keeps & (end > least)):
            nearest = (int(rows[index]) << self.bits) + bool(negative[index])
            keeps[index] = not self._fails(nearest, int(outward[index]), int(words[index]), stream)
        return keeps

    def _keeps_one(self, cell: int, n: int, word: int, stream: Keystream) -> bool:
        """The same for one candidate."""
        if word >= self.sure and -self.last <= cell <= self.last:
            return True
        far, nearest = (n, cell << self.bits) if cell >= 0 else (-n, (-1 - cell << self.bits) + 1)
        over, under = self.law.sigma2.as_integer_ratio()
        g = ((far * far - nearest * nearest) * under << _POINT - 1) // over
        least, most = _failures(g, g + 1)
        if word << _POINT >= most << self.width:
            return True
        if word + 1 << _POINT <= least << self.width:
            return False
        return not self._fails(nearest, far - nearest, word, stream)

    def _fails(self, nearest: int, outward: int, word: int, stream: Keystream) -> bool:
        """Whether a candidate is not kept by the uniform number whose first digits spell this word."""
        return outward > 0 and lies_below(self.law.failure(nearest, outward), word, self.width, stream)


def _exponent(units: tuple[int, int, int], rows: Any, negative: Any, places: Any) -> Any:
    """The g = (2 m d + d^2)/(2 sigma2) for the integer d places from m, which is row * block, or 1 more if negative."""
    return (units[0] * rows + units[1] * negative) * places + units[2] * places * places


def _failures(low: Any, high: Any) -> tuple[Any, Any]:
    """Bounds on 1 - P[n]/P[m] by bounds on g, in units of 2^-58: 1 - e^-g is at most g - g^2/2 + g^3/6, which grows."""
    # All in 64 bits. For `least` every term that is taken off is rounded up, for `most` the square is rounded down and
    # the cube up. g/(4 sigma2) is at most g/2^14, as sigma2 >= 2^12; the 2s pay for what the shifts cut off.
    half, third = high >> 29, (high >> 42) + 1  # 2^29 g, cut off; more than 2^16 g, whose cube has to fit
    least = low - ((half + 1) * (half + 1) >> 1) - (high >> 14) - 2
    most = high - (half * half >> 1) + ((third * third * third << 9) // 3) + 2
    return least, most


def _scaled(words: NDArray[Any], width: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Between which multiples of 2^-58 the uniform numbers lie that begin with these words."""
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


def _settled(law: Falling, word: int, width: int, stream: Keystream) -> int:
    """The cell of a uniform number whose first digits are those of a threshold: more digits tell."""
    while True:
        ends, middle = _ends(law, width)
        at = bisect_left(ends, word)
        if at < len(ends) and ends[at] != word:
            return at - middle
        word, width = word << _MORE | stream.bits(_MORE), width + _MORE


@lru_cache(maxsize=512)
def _ends(law: Falling, width: int) -> tuple[list[int], int]:
    """The integer parts of 2^width times the chances of all cells below each cell, and how many of those are negative.

    They begin with 0 and end with 2^width - 1, so that a word beyond either end ties with it.
    """
    point = width + 32
    while True:
        left, right = (_sums(law.weights(negative=side, point=point)) for side in (True, False))
        total = left[-1][0] + right[-1][0], left[-1][1] + right[-1][1]
        floors = [_floors(low, high, total, width) for low, high in left]
        floors += [_floors(total[0] - high, total[1] - low, total, width) for low, high in reversed(right[:-1])]
        if all(lower == upper for lower, upper in floors):
            return [lower for lower, _ in floors], len(left)
        point *= 2


def _sums(weights: list[Bounds]) -> list[Bounds]:
    """The weight of all cells farther out than each cell, from the farthest to the nearest; at last that of all."""
    return list(accumulate(reversed(weights), lambda a, b: (a[0] + b[0], a[1] + b[1])))


def _floors(low: int, high: int, total: Bounds, width: int) -> Bounds:
    """The integer parts of 2^width times the two bounds on a part of the total."""
    most = (1 << width) - 1
    return min((low << width) // total[1], most), min((high << width) // total[0], most)


@lru_cache(maxsize=256)
def compiled(law: Falling, width: int) -> CellSampler:
    """The cells of a law, for words of this width."""
    ends, middle = _ends(law, width)
    spare = max(0, width - _GUIDE_BITS)
    thresholds = np.array(ends, dtype=word_type(width))
    buckets = np.arange(1 << (width - spare), dtype=thresholds.dtype) << spare
    guide = np.searchsorted(thresholds, buckets)
    step = 1 << max(0, law.bits - _KEPT_BITS)
    gains = [Fraction(gain << _POINT) / law.sigma2 for gain in (step << law.bits, step, step * step)]
    gains[2] /= 2
    above = math.ceil(gains[0]), math.ceil(gains[1]), math.ceil(gains[2])
    below = math.floor(gains[0]), math.floor(gains[1]), math.floor(gains[2])
    last = max(middle - bisect_right(ends, 0), bisect_left(ends, ends[-1]) - middle)
    largest: int = _exponent(above, last, 1, 1 << min(law.bits, _KEPT_BITS))
    return CellSampler(
        law,
        width,
        law.bits,
        thresholds,
        guide,
        middle,
        above,
        below,
        -(-largest << width >> _POINT),
        last,
    )

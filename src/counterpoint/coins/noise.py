"""Exact discrete Laplace, geometric, Gaussian and rounded normal noise, in integers.

Laplace and geometric noise is drawn by binary digits, with the same work for every value (`discrete_laplace`); discrete
Gaussian and rounded normal noise by cells (`cells.py`).

>>> from fractions import Fraction
>>> from counterpoint.coins.keystream import Keystream
>>> discrete_laplace(Fraction(10), 5, Keystream(bytes(32)))
array([ 5, 18,  4,  7, 20])
>>> discrete_gaussian(Fraction(100), 5, Keystream(bytes(32))), rounded_normal(Fraction(100), 5, Keystream(bytes(32)))
(array([  5,   2,  13, -10,   6]), array([  5,   2,  13, -10,   6]))
"""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from counterpoint.coins.bernoulli import Chance, failure, odds, survival
from counterpoint.coins.cells import Bounds, CellSampler, bits_of_cells, compiled
from counterpoint.coins.coins import Integers
from counterpoint.coins.keystream import Keystream, word_type
from counterpoint.numbers import Interval, normal_cell, precision

WIDTH = 32
"""The bits of a random word: wide enough that ties are rare, narrow enough to be cheap."""

WORDS_AT_ONCE = 2**18
"""The words of a chunk, a megabyte: less pays more often for each call of numpy, more leaves the cache."""

_FEW = 64
_DIGITS = bytes((ord("0"), ord("1"))) + bytes(254)
_FITS = 62
"""The difference of two integers of 62 bits fits into 64."""


def discrete_laplace(scale: Fraction, size: int, stream: Keystream, width: int = WIDTH) -> Integers:
    """`size` independent integers z, each with probability proportional to e^(-|z|/scale).

    If G and G' are independent with P[G = k] proportional to e^(-k/scale), then G - G' is discrete Laplace
    (Inusah and Kozubowski 2006). As e^(-k/scale) is a product over the binary digits of k, the digits of G are
    independent: digit i is 1 with probability 1/(1 + e^(2^i/scale)), one random word and one comparison. Beyond
    the kept digits it only matters how often G passed 2^digits: each time with probability e^(-2^digits/scale).

    The work is the same for every value, but a word equal to its threshold, one in 2^32, needs more digits.
    """
    law = geometric(scale, width)
    chunks = (law.differences(count, stream) for count in law.chunks(size))
    drawn = next(chunks)
    return drawn if len(drawn) == size else _continued(drawn, chunks, size)


def parts(scale: Fraction, size: int, most: int) -> Iterator[int]:
    """How many to draw at a time, about `most`, so that the draws are those of `size` at once.

    >>> stream, other = Keystream(bytes(32)), Keystream(bytes(32))
    >>> drawn = [discrete_laplace(Fraction(10), count, stream) for count in parts(Fraction(10), 10**5, most=30_000)]
    >>> [len(part) for part in drawn], (np.concatenate(drawn) == discrete_laplace(Fraction(10), 10**5, other)).all()
    ([29126, 29126, 29126, 12622], np.True_)
    """
    if size <= most:
        yield size
        return
    together = geometric(scale).at_once
    together *= max(1, most // together)
    for start in range(0, size, together):
        yield min(together, size - start)


def one_sided(scale: Fraction, size: int, stream: Keystream, width: int = WIDTH) -> Integers:
    """`size` independent integers k, from 0 on, each with probability proportional to e^(-k/scale)."""
    law = geometric(scale, width)
    return np.concatenate([law.draw(count, stream) for count in law.chunks(size)])


@dataclass(frozen=True, eq=False, slots=True)
class Geometric:
    """The law P[G = k] proportional to e^(-k/scale), as one threshold per digit and one for the rest."""

    width: int
    digits: tuple[Chance, ...]
    passing: Chance
    thresholds: NDArray[Any]
    pairs: NDArray[Any]

    @property
    def at_once(self) -> int:
        """The differences of a chunk."""
        return max(1, WORDS_AT_ONCE // (2 * len(self.thresholds)))

    def chunks(self, size: int) -> Iterator[int]:
        """How many differences to draw at a time; one chunk at least, so that size 0 has a type too."""
        for start in range(0, max(size, 1), self.at_once):
            yield min(self.at_once, size - start)

    def difference(self, stream: Keystream) -> int:
        """One difference, as `differences` would draw it, at a third of the time: with few of numpy's calls.

        The work is the same for every value here, too. All words are compared by numpy: where the processor has to
        guess how a comparison ends, it guesses wrong for rare digits, and that takes time.
        """
        words = stream.words(2 * len(self.thresholds), self.width)
        ones = (words < self.pairs).tobytes()
        # The last row passes only on a tie: enough digits are kept that its threshold is 0 (`geometric`).
        if ones != (words <= self.pairs).tobytes():
            first, second = self._values(words.reshape(-1, 2), stream)
            return int(first) - int(second)
        digits = ones[:-2].translate(_DIGITS) + b"11"  # a digit more for both: no integer on the way is a small one
        return int(digits[-2::-2], 2) - int(digits[::-2], 2)

    def differences(self, count: int, stream: Keystream) -> Integers:
        """The differences of `count` independent pairs."""
        values = self.draw(2 * count, stream)
        return values[:count] - values[count:]

    def draw(self, count: int, stream: Keystream) -> Integers:
        """`count` independent values: one row of words for each digit, the last row for the rest."""
        rows = len(self.thresholds)
        return self._values(stream.words(rows * count, self.width).reshape(rows, count), stream)

    def _values(self, words: NDArray[Any], stream: Keystream) -> Integers:
        count = words.shape[1]
        ones = words < self.thresholds
        for tie in np.flatnonzero(words == self.thresholds):
            row, column = divmod(int(tie), count)
            ones[row, column] = self._chance(row).exceeds(int(words[row, column]), self.width, stream)
        values = _from_digits(ones[:-1])
        passed = np.flatnonzero(ones[-1])
        return self._pass(values, passed, stream) if passed.size else values

    def _chance(self, row: int) -> Chance:
        return self.digits[row] if row < len(self.digits) else self.passing

    def _pass(self, values: Integers, where: NDArray[np.intp], stream: Keystream) -> Integers:
        """Add 2^digits to the values at `where`, once and then as long as they keep passing it."""
        wide = values.astype(object)  # Python's integers: how often a value passes has no bound
        for index in where:
            wide[index] += 1 << len(self.digits)
            while self.passing.exceeds(stream.bits(self.width), self.width, stream):
                wide[index] += 1 << len(self.digits)
        fits = len(self.digits) < _FITS and max(wide) >> _FITS == 0
        return wide.astype(np.int64) if fits else wide


@lru_cache(maxsize=256)
def geometric(scale: Fraction, width: int = WIDTH) -> Geometric:
    """The compiled law. Enough digits are kept that passing them all is rarer than a tie: ln 2 < 7/10."""
    kept = 0
    # e^(-2^kept/scale) <= 2^-width as soon as 2^kept >= ln 2 * width * scale
    while 2**kept < Fraction(7, 10) * width * scale:
        kept += 1
    digits = tuple(Chance(odds, 2**i / scale) for i in range(kept))
    passing = Chance(survival, 2**kept / scale)
    floors = [chance.floor(width) for chance in (*digits, passing)]
    thresholds = np.array(floors, dtype=word_type(width))[:, np.newaxis]
    return Geometric(width, digits, passing, thresholds, np.repeat(thresholds, 2))


def _continued(first: Integers, chunks: Iterator[Integers], size: int) -> Integers:
    """The first chunk and the others, `size` integers in all; each is copied at once, so that one is kept at a time."""
    drawn: Any = np.empty(size, dtype=first.dtype)
    end = len(first)
    drawn[:end] = first
    for chunk in chunks:
        if chunk.dtype != drawn.dtype:
            drawn = drawn.astype(object)
        drawn[end : end + len(chunk)] = chunk
        end += len(chunk)
    whole: Integers = drawn
    return whole


def _from_digits(ones: NDArray[np.bool_]) -> Integers:
    """Read each column as a binary number from its lowest digit on, eight digits at a time in bytes."""
    kind: Any = np.int64 if len(ones) < _FITS else object
    octets = iter(_octets(ones))
    values: Integers = next(octets, np.zeros(ones.shape[1], dtype=np.uint8)).astype(kind)
    for place, octet in enumerate(octets, start=1):
        values += octet.astype(kind) << (8 * place)
    return values


def _octets(ones: NDArray[np.bool_]) -> Iterable[NDArray[np.uint8]]:
    """Eight digits at a time. For a few columns numpy's own packing is a third of the work, for many ten times it."""
    if ones.shape[1] <= _FEW:
        return np.packbits(ones, axis=0, bitorder="little")
    return (_octet(ones[start : start + 8]) for start in range(0, len(ones), 8))


def _octet(ones: NDArray[np.bool_]) -> NDArray[np.uint8]:
    octet: NDArray[np.uint8] = ones[-1].astype(np.uint8)
    for row in ones[-2::-1]:
        octet += octet
        octet |= row
    return octet


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
    """The law, as `cells.Falling`.

    P[z] is proportional to e^(-z^2/(2 sigma2)). With g = (n^2 - m^2)/(2 sigma2), 1 - P[n]/P[m] is 1 - e^-g, which
    exceeds g - g^2/2.
    """

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


def rounded_normal(sigma2: Fraction, size: int, stream: Keystream, width: int = WIDTH) -> Integers:
    """`size` independent integers, each a normal number with variance sigma2, rounded."""
    return rounded(sigma2, width).many(size, stream)


def one_rounded_normal(sigma2: Fraction, stream: Keystream, width: int = WIDTH) -> int:
    """One such integer."""
    return rounded(sigma2, width).one(stream)


@dataclass(frozen=True, slots=True)
class RoundedNormal:
    """The law, as `cells.Falling`.

    P[n] is the chance that N(0, sigma2) lies between n - 1/2 and n + 1/2.

    Proof that 1 - P[n]/P[m] lies between g - g/(4 sigma2) - g^2/2 and 1 - e^-g, with g = (n^2 - m^2)/(2 sigma2): P[n]
    is e^(-n^2/(2 sigma2)) times h(n), the mean of cosh(n u/sigma2) e^(-u^2/(2 sigma2)) over |u| < 1/2, which grows with
    |n|; the derivative of log h is at most tanh(n/(2 sigma2))/(2 sigma2) <= n/(4 sigma2^2), so that log h(n) - log h(m)
    <= g/(4 sigma2).
    """

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

"""Uniform integers, and tosses of rational or irrational chance: exact, without floating point.

A toss compares the binary digits of a uniform number with those of the chance, as many as it takes to tell. For an
irrational chance, interval arithmetic certifies them (`Chance`).

>>> uniforms(6, 5, Keystream(bytes(32)))
array([3, 5, 5, 5, 1])
>>> tosses(Fraction(1, 3), 4, Keystream(bytes(32))).tolist()
[False, True, True, False]
>>> Chance(odds, Fraction(0)).floor(8), Chance(survival, Fraction(1)).floor(8)
(128, 94)
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate
from typing import Protocol

import numpy as np

from counterpoint.coins.coins import Flags, Integers
from counterpoint.coins.keystream import Keystream
from counterpoint.numbers import Interval, precision

_MORE = 64


def survival(x: Interval) -> Interval:
    """e^-x: the chance that an exponential variable exceeds x."""
    return (-x).exp()


def failure(x: Interval) -> Interval:
    """1 - e^-x, without cancellation near 0."""
    return -(-x).expm1()


def odds(x: Interval) -> Interval:
    """1/(1 + e^x), written so that a large x cannot overflow."""
    weight = (-x).exp()
    return weight / (1 + weight)


@dataclass(frozen=True, slots=True)
class Chance:
    """The probability `law(at)`, one of the three above at a rational point that is not negative.

    A uniform number lies below p if its first `width` binary digits, as an integer, lie below floor(p 2^width),
    and above p if they lie above; if the two are equal, further digits decide. Interval arithmetic certifies the
    floor: the chances used here are e^-x, 1 - e^-x and 1/(1 + e^x) for rational x, transcendental unless x = 0
    (Lindemann-Weierstrass) and exact if x = 0, so enough digits always tell between which integers p 2^width
    lies.

    >>> Chance(survival, Fraction(800)).floor(64)
    0
    """

    law: Callable[[Interval], Interval]
    at: Fraction

    def floor(self, width: int) -> int:
        """The integer part of p 2^width, certified."""
        most = (1 << width) - (1 if self.at else 0)  # beyond x = 0 no chance is 1, however near it may be
        digits = width // 3 + 8
        while True:
            scaled = self.law(precision(digits)(self.at)) * (1 << width)
            lower, upper = int(scaled.lower), min(int(scaled.upper), most)
            if lower == upper:
                return lower
            digits *= 2  # a whole number lies between the bounds; the chance is none, so enough digits leave it out

    def exceeds(self, word: int, width: int, stream: Keystream) -> bool:
        """Whether the probability exceeds the uniform number whose first `width` binary digits spell `word`.

        >>> Chance(odds, Fraction(0)).exceeds(127, 8, Keystream(bytes(32)))
        True
        """
        return lies_below(self, word, width, stream)


class Floors(Protocol):
    """A probability that is known to as many digits as it takes."""

    def floor(self, width: int) -> int:
        """The integer part of p 2^width."""


def lies_below(chance: Floors, word: int, width: int, stream: Keystream) -> bool:
    """Whether the uniform number whose first `width` binary digits spell `word` lies below a chance."""
    # Both stand for all numbers that begin with these digits. Where they differ, so do the numbers, in the same order;
    # to settle a tie either way at a fixed width would give each such value a chance that is off by up to 2^-width.
    while word == (threshold := chance.floor(width)):
        word, width = word << _MORE | stream.bits(_MORE), width + _MORE
    return word < threshold


def place(lags: Sequence[Fraction], stream: Keystream) -> int:
    """The index whose share of [0, 1), of length proportional to e^(-lag), holds a uniform number.

    The shares' ends are certified between decimals; as long as the digits drawn do not tell which share it is, once in
    about 2^64 times as many lags, more are drawn and the ends are computed more finely. The lags may be secret: the
    number of words drawn hardly depends on them, but the time of the decimal arithmetic may, a little.

    >>> place([Fraction(0), Fraction(800)], Keystream(bytes(32)))
    0
    """
    nearest = min(lags)
    word, width = stream.bits(_MORE), _MORE
    while True:
        p = precision(width // 3 + 12)
        ends = list(accumulate((-p(lag - nearest)).exp() for lag in lags))
        least, most = (ends[-1] * Fraction(number, 1 << width) for number in (word, word + 1))
        index = sum(end.upper <= least.lower for end in ends[:-1])
        if index == len(ends) - 1 or most.upper <= ends[index].lower:
            return index
        word, width = word << _MORE | stream.bits(_MORE), width + _MORE


WIDTH = 64
"""The binary digits that are compared first."""
_FITS = 62
"""Integers of up to 62 bits are drawn as 64-bit words, wider ones one at a time."""


def uniform(n: int, stream: Keystream) -> int:
    """One of 0, ..., n - 1."""
    width = (n - 1).bit_length()
    # drawn anew, and not taken modulo n: small remainders would be likelier
    while (value := stream.bits(width)) >= n:
        pass
    return value


def uniforms(n: int, size: int, stream: Keystream) -> Integers:
    """`size` independent integers, each one of 0, ..., n - 1.

    By rejection: how many rounds that takes says nothing about the values.
    """
    width = (n - 1).bit_length()
    if width > _FITS:
        return np.array([uniform(n, stream) for _ in range(size)], dtype=object)
    drawn, missing = [np.zeros(size if n == 1 else 0, dtype=np.int64)], 0 if n == 1 else size
    while missing:
        words = stream.words(missing, width)
        drawn.append(words[words < n].astype(np.int64))
        missing -= len(drawn[-1])
    return np.concatenate(drawn)


def tosses(chance: Fraction, size: int, stream: Keystream, width: int = WIDTH) -> Flags:
    """`size` independent truth values, each True with this chance.

    The first 64 binary digits of a uniform number are compared with those of the chance; where they are equal, which
    happens once in 2^64 times, what is left of the chance is that of what is left of the number.
    """
    if chance == 1:
        return np.ones(size, dtype=np.bool_)
    threshold, rest = divmod(chance * 2**width, 1)
    words = stream.words(size, width)
    edge = words.dtype.type(threshold)
    heads: Flags = words < edge
    for tie in np.flatnonzero(words == edge):
        heads[tie] = uniform(rest.denominator, stream) < rest.numerator
    return heads

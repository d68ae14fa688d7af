"""Deciding an event of irrational probability exactly, by comparing integers.

A uniform number lies below p if its first `width` binary digits, as an integer, lie below floor(p 2^width),
and above p if they lie above; if the two are equal, further digits decide. Interval arithmetic certifies the
floor: the chances used here are e^-x, 1 - e^-x and 1/(1 + e^x) for rational x, transcendental unless x = 0
(Lindemann-Weierstrass) and exact if x = 0, so enough digits always tell between which integers p 2^width
lies.

>>> from fractions import Fraction
>>> Chance(odds, Fraction(0)).floor(8), Chance(survival, Fraction(1)).floor(8)
(128, 94)
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate
from typing import Protocol

from counterpoint.numbers import Interval, precision
from counterpoint.randomness.keystream import Keystream

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
            digits *= 2

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

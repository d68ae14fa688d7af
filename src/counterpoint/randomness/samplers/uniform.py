"""Uniform integers and tosses of rational chance, one at a time and as vectors; exact, without floating point.

An integer below n is drawn by rejection: the rounds that takes say nothing about the value. A toss of chance p compares
the first 64 binary digits of a uniform number with those of p; where they are equal, which happens once in 2^64 times,
what is left of p is the chance of what is left of the number.

>>> uniforms(6, 5, Keystream(bytes(32)))
array([3, 5, 5, 5, 1])
>>> tosses(Fraction(1, 3), 4, Keystream(bytes(32))).tolist()
[False, True, True, False]
"""

from fractions import Fraction

import numpy as np

from counterpoint.randomness.coins import Flags, Integers
from counterpoint.randomness.keystream import Keystream

WIDTH = 64
"""The binary digits that are compared first."""
_FITS = 62
"""Integers of up to 62 bits are drawn as 64-bit words, wider ones one at a time."""


def uniform(n: int, stream: Keystream) -> int:
    """One of 0, ..., n - 1."""
    width = (n - 1).bit_length()
    while (value := stream.bits(width)) >= n:
        pass
    return value


def uniforms(n: int, size: int, stream: Keystream) -> Integers:
    """`size` independent integers, each one of 0, ..., n - 1."""
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
    """`size` independent truth values, each True with this chance."""
    if chance == 1:
        return np.ones(size, dtype=np.bool_)
    threshold, rest = divmod(chance * 2**width, 1)
    words = stream.words(size, width)
    edge = words.dtype.type(threshold)
    heads: Flags = words < edge
    for tie in np.flatnonzero(words == edge):
        heads[tie] = uniform(rest.denominator, stream) < rest.numerator
    return heads

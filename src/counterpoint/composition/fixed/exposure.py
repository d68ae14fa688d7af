"""The deltas of fixed (eps_i, delta_i): with what probability something is exposed, and what that leaves.

RR(eps, delta) exposes its input with probability delta, so several expose something with probability D = 1 -
prod(1 - delta_i), and a total delta is D + (1 - D) times what the unexposed ones lose (theory, Fixed parameters). D
is a fraction where that can be written out, and enclosed between two where it can't.

>>> exposure(((Fraction(1), Fraction(1, 10), 2),))
Exposure(low=Fraction(19, 100), high=Fraction(19, 100))
"""

import math
from collections import Counter
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

from counterpoint.numbers import Interval, Precision, certify, precision
from counterpoint.privacy.loss import DIGITS
from counterpoint.privacy.losses import ApproxDP, PureDP

Parts = tuple[tuple[Fraction, Fraction, int], ...]
"""The different (epsilon, delta), and how many there are of each."""

_WRITTEN_OUT = 2**14
"""The most bits of a product that is written out; a longer one is enclosed."""
_SHOWN = 3


class Exposure(NamedTuple):
    """The probability that something is exposed, between two fractions; they are equal if it is exact."""

    low: Fraction
    high: Fraction


@lru_cache(maxsize=32)
def exposure(parts: Parts) -> Exposure:
    """1 - prod(1 - delta_i)."""
    chances: Counter[Fraction] = Counter()
    for _, delta, copies in parts:
        chances[delta] += copies
    del chances[Fraction(0)]
    if Fraction(1) in chances:
        return Exposure(Fraction(1), Fraction(1))
    if sum(copies * delta.denominator.bit_length() for delta, copies in chances.items()) <= _WRITTEN_OUT:
        exact = 1 - math.prod(((1 - delta) ** copies for delta, copies in chances.items()), start=Fraction(1))
        return Exposure(exact, exact)

    def formula(p: Precision) -> Interval:
        return 1 - math.prod((p(1 - delta) ** copies for delta, copies in chances.items()), start=p(1))

    bounds = certify(formula, DIGITS)
    return Exposure(Fraction(bounds.lower), Fraction(bounds.upper))


def left_after(delta: Fraction, exposed: Fraction) -> Fraction | None:
    """The d with delta = D + (1 - D) d, or None if D alone is more than delta.

    >>> left_after(Fraction(1, 2), Fraction(1, 4)), left_after(Fraction(1, 8), Fraction(1, 4))
    (Fraction(1, 3), None)
    """
    if delta == 1:
        return Fraction(1)
    return (delta - exposed) / (1 - exposed) if delta >= exposed else None


def with_exposure(exposed: Fraction, unexposed: Decimal) -> Interval:
    """D + (1 - D) d, enclosed.

    >>> with_exposure(Fraction(1, 4), Decimal("0.5"))
    Interval(0.625, 0.625)
    """
    p = precision(DIGITS)
    return p(exposed) + p(1 - exposed) * p.between(unexposed, unexposed)


def spell_parts(parts: Parts) -> str:
    """The first few, as a person would write them.

    >>> spell_parts(((Fraction(1, 10), Fraction(0), 3),))
    '3 x PureDP(0.1)'
    """
    shown = [
        f"{copies} x {(ApproxDP(epsilon, delta) if delta else PureDP(epsilon))!r}"
        for epsilon, delta, copies in parts[:_SHOWN]
    ]
    return ", ".join(shown + [f"{len(parts) - _SHOWN} more"] * (len(parts) > _SHOWN))

"""Sums of independent discrete Laplace noises: their exact variance, and a bound that needs no more than that.

`laplace_tails.py` bounds a sum from nearer, by all of its weights. This bound is for sums of which only the squares of
the weights are known, and for the thresholds of a `MonotoneHistogram`, which ledgers hold.

With q = e^(-1/scale) a discrete Laplace draw has variance 2q/(1-q)^2 and, for |l| < 1/scale, E e^(lX) =
(1-q)^2/((1-q e^l)(1-q e^-l)). By Markov's inequality on e^(lX) and symmetry, P[|X| >= x] <= 2 e^(-lx) E e^(lX) for the
sum X too, whose E e^(lX) is the product (Chernoff). So |X| < x except with probability beta, for every l at
x = (ln(2/beta) + sum of ln E e^(lX))/l. The l is searched for; whichever is taken, the bound holds, rounded up.

Noises may have weights c with |c| <= 1: their variance has the factor c^2, and ln E e^(lcX) <= c^2 ln E e^(lX). For
ln E e^(lX) is a convex function of l^2 that is 0 at 0: cosh l is convex in l^2, by its series, and -ln(1 + q^2 - 2 q y)
convex and growing in y. So a number of draws may be a sum of squared weights, and need not be whole.

>>> deviation_of_sum([(Fraction(3), 18)]), bound_of_sum([(Fraction(3), 18)], Fraction("0.95"))
(17.916935939641977, 51)
"""

from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache, partial
from math import ceil

from counterpoint.numbers import Interval, Precision, certify, precision
from counterpoint.numbers.exact import float_up

Part = tuple[Fraction, int | Fraction]
"""A scale, and the number of independent draws of it; of weighted ones, the sum of the squared weights."""
Term = tuple[Fraction, Fraction, int]
"""A scale, a weight, and the number of independent draws of this scale that have this weight."""

_DIGITS = 30
_GRID = 1024


def squares(terms: Sequence[Term]) -> list[Part]:
    """For each scale the sum of the squared weights.

    >>> squares([(Fraction(3), Fraction(1, 2), 4), (Fraction(3), Fraction(-1), 1)])
    [(Fraction(3, 1), Fraction(2, 1))]
    """
    totals: dict[Fraction, Fraction] = {}
    for scale, weight, count in terms:
        totals[scale] = totals.get(scale, Fraction(0)) + weight**2 * count
    return list(totals.items())


def deviation_of_sum(parts: Sequence[Part]) -> float:
    """The standard deviation of the sum, rounded up.

    >>> deviation_of_sum([])
    0.0
    """
    used = [(scale, count) for scale, count in parts if count]
    if not used:
        return 0.0
    return float_up(certify(lambda p: _variance(used, p).sqrt()).upper)


def _variance(parts: Sequence[Part], p: Precision) -> Interval:
    total = p(0)
    for scale, count in parts:
        missing = (-p(1 / scale)).expm1()
        total = total + 2 * count * (-p(1 / scale)).exp() / (missing * missing)
    return total


def bound_of_sum(parts: Sequence[Part], probability: Fraction) -> int:
    """An integer that the sum exceeds in absolute value at most with probability 1 - `probability` (which is below 1).

    >>> bound_of_sum([(Fraction(1), 1)], Fraction("0.99")) >= 5  # P[|X| >= 5] is 0.0099
    True
    """
    return max(0, ceil(limit_of_sum(parts, probability)) - 1)  # the sum is a whole number below the limit


def limit_of_sum(parts: Sequence[Part], probability: Fraction) -> Fraction:
    """What the sum, of weighted noises too, reaches in absolute value at most with probability 1 - `probability`.

    0 if there is no noise.

    >>> float(limit_of_sum([(Fraction(3), Fraction(1, 4))], Fraction("0.95")))
    13.4...
    """
    used = tuple((scale, count) for scale, count in parts if count)
    return _limit(used, probability) if used else Fraction(0)


@lru_cache(maxsize=256)
def _limit(parts: tuple[Part, ...], probability: Fraction) -> Fraction:
    at = partial(_chernoff, parts, precision(_DIGITS)(2 / (1 - probability)).log())
    low, high = 1, _GRID - 1
    while high - low > 2:  # the bound falls and then rises with the tilt
        left, right = low + (high - low) // 3, high - (high - low) // 3
        low, high = (low, right) if at(left) <= at(right) else (left, high)
    return Fraction(min(at(tilt) for tilt in range(low, high + 1)))


def _chernoff(parts: tuple[Part, ...], log_odds: Interval, tilt: int) -> Decimal:
    """The bound x at l = tilt/1024 of the largest that the widest part allows."""
    p = log_odds.precision
    slope = Fraction(tilt, _GRID) / max(scale for scale, _ in parts)
    total = log_odds
    for scale, count in parts:
        ends = p(1 / scale), p(1 / scale - slope), p(1 / scale + slope)
        middle, near, far = ((-(-end).expm1()).log() for end in ends)
        total = total + count * (2 * middle - near - far)
    return (total / p(slope)).upper

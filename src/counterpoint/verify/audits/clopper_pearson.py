"""Bounds on a probability from a count of hits, by Clopper and Pearson 1934, rounded in the safe direction.

With k hits in n trials, `at_least` is a p at which k hits or more have a probability of at most `risk`: whatever the
true probability is, it is below this bound with a probability of at most `risk`. The binomial tail is its first term,
enclosed by Stirling's series (whose remainder has a known sign and size), times a sum of falling ratios, whose rest is
bounded by a geometric series: so the bound is never too large, and within a part in 10^7 of the exact one.

>>> at_least(10, 10, Fraction(1, 1024)), at_most(0, 10, Fraction(1, 1024))   # p^10 = 1/1024
(0.49999999..., 0.50000000...)
>>> at_least(0, 10, Fraction(1, 1000)), at_most(10, 10, Fraction(1, 1000))
(0.0, 1.0)
"""

import math
from fractions import Fraction
from functools import lru_cache

import numpy as np

from counterpoint.errors import InvalidParameter
from counterpoint.numbers import Interval, Precision, exact, normal_density, precision
from counterpoint.numbers.exact import whole

_DIGITS = 40
_HALVINGS = 40
_MOST_TERMS = 4_000_000
_ROUNDING = 1 + 1e-8  # for a sum of _MOST_TERMS products of as many ratios, each within 4 units of rounding


def at_least(hits: int, trials: int, risk: Fraction) -> float:
    """A lower bound on the probability of a hit, which is wrong with a probability of at most `risk`."""
    n, alpha = whole(trials, 1, "trials"), _risk(risk)
    k = whole(hits, 0, "hits")
    if k > n:
        raise InvalidParameter(f"there cannot be {k} hits in {n} trials")
    if k == 0:
        return 0.0
    low, high = _bracket(k, n, alpha)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if not low < middle < high:
            break
        if tail(k, n, middle) <= alpha:
            low = middle
        else:
            high = middle
    return low


def _bracket(hits: int, trials: int, alpha: Fraction) -> tuple[float, float]:
    """A p at which this many hits are rarer than alpha, and a larger one at which they may not be."""
    high, step = hits / trials, math.sqrt(hits) / trials
    while (low := high - step) > 0:
        if tail(hits, trials, low) <= alpha:
            return low, high
        high, step = low, 2 * step
    return 0.0, high


def at_most(hits: int, trials: int, risk: Fraction) -> float:
    """An upper bound on the probability of a hit, which is wrong with a probability of at most `risk`."""
    return min(1.0, math.nextafter(1 - at_least(whole(trials, 1, "trials") - hits, trials, risk), 2.0))


def tail(hits: int, trials: int, p: float) -> Fraction:
    """An upper bound on the probability of at least `hits` hits, each of probability p < hits/trials."""
    first = Fraction(_log_term(hits, trials, Fraction(p), precision(_DIGITS)).exp().upper)
    odds = p / (1 - p)
    terms = min(trials - hits, int(12 * math.sqrt(trials * p * (1 - p))) + 200, _MOST_TERMS)
    at = np.arange(hits, hits + terms, dtype=np.float64)
    falling = np.cumprod((trials - at) / (at + 1) * odds)
    total = 1.0 + float(falling.sum())
    if terms < trials - hits:
        ratio = (trials - hits - terms) / (hits + terms + 1) * odds
        total += float(falling[-1]) * ratio / (1 - ratio)
    return first * Fraction(total * _ROUNDING)


def _log_term(hits: int, trials: int, p: Fraction, accuracy: Precision) -> Interval:
    """The logarithm of the probability of exactly `hits` hits."""
    misses = trials - hits
    ways = log_factorial(trials) - log_factorial(hits) - log_factorial(misses)
    missed = misses * accuracy(1 - p).log() if misses else accuracy(0)
    return ways + hits * accuracy(p).log() + missed


@lru_cache(maxsize=2**12)
def log_factorial(n: int) -> Interval:
    """Log n!, by Stirling's series: cut after a positive term it is too large, after a negative one too small.

    >>> log_factorial(100).agrees_to(13)
    True
    """
    p = precision(_DIGITS)
    if n < 64:
        return p(math.factorial(n)).log()
    root = -normal_density(p(0)).log()
    series = p(n + Fraction(1, 2)) * p(n).log() - n + root + p(Fraction(1, 12 * n) - Fraction(1, 360 * n**3))
    rest = p(Fraction(1, 1260 * n**5))
    return p.between(series.lower, (series + rest).upper)


def _risk(risk: object) -> Fraction:
    alpha = exact(risk, "the risk")
    if not 0 < alpha < 1:
        raise InvalidParameter("the risk must be above 0 and below 1, such as 0.001")
    return alpha

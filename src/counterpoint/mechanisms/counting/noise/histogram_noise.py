"""The noises of a monotone histogram: what they stay within, but for a chance beta, and which totals have the least.

l(i) = ln(4 pi^2 i^2 / (6 beta)) (theory, Counters, after Henzinger et al. 2024, sec. 7): noises numbered 1, 2, 3, ...
that each stay within scale * l(i) all do but for beta/4, as the sum of 1/i^2 is pi^2/6. There are four kinds of them:
on thresholds, on comparisons, in checks and in totals.

>>> once = float(log_odds(Fraction(1, 20), 1))
>>> round(once, 3), round(float(log_odds(Fraction(1, 20), 10)) - once, 3)  # + 2 ln 10
(4.88, 4.605)
"""

from fractions import Fraction
from functools import lru_cache
from math import ceil, floor, log

from counterpoint.mechanisms.counting.noise.tree_noise import TreeNoise
from counterpoint.mechanisms.counting.vector_counters import VectorCounter
from counterpoint.numbers import certify, precision
from counterpoint.privacy.measures.zcdp import rho_below

_HITS = 2**10
"""How many hits Gaussian totals are tuned for; they stay private, and count, far beyond."""

_LARGE = 2**30
_ABOVE = Fraction("6.5797363")
"""Just above 4 pi^2 / 6: so the sum over i of beta / (_ABOVE i^2) is below beta/4, for each of four kinds of noise."""


@lru_cache(maxsize=4096)
def log_odds(beta: Fraction, i: int) -> Fraction:
    """ln(4 pi^2 i^2 / (6 beta)), rounded up.

    Discrete Laplace noise of this scale goes beyond m = ceil(scale * this) with probability 2 q^(m+1)/(1+q) <= q^m,
    q = e^(-1/scale): at most 6 beta / (4 pi^2 i^2).
    """
    return Fraction(precision(25)(_ABOVE * i * i / beta).log().upper)


@lru_cache(maxsize=64)
def _first_log_odds(beta: Fraction) -> float:
    """About ln(4 pi^2 / (6 beta))."""
    ratio = _ABOVE / beta
    return log(ratio.numerator) - log(ratio.denominator)


def limit(scale: Fraction, beta: Fraction, i: int) -> int:
    """ceil(scale * log_odds(beta, i)): by floats, except where they are not far enough from a whole number to tell.

    Every item asks for the next i. A float is off by less than 10^-14 of itself, and 2^-30 of it is asked for.

    >>> limit(Fraction(12), Fraction(1, 20), 1000) == ceil(12 * log_odds(Fraction(1, 20), 1000))
    True
    """
    if scale < _LARGE:
        about = scale * (_first_log_odds(beta) + 2 * log(i))
        if abs(about - round(about)) > about / 2**30:
            return ceil(about)
    return ceil(scale * log_odds(beta, i))


class DigitTreeCounter(VectorCounter, frozen=True, repr_omit_defaults=True, tag="DigitTreeCounter/1"):
    """The totals of a monotone histogram: under pure privacy with a noise whose worst law at any time is known.

    An answer is the exact sums plus the noises, signed, of the nodes that the time's balanced digits name (`trees.py`);
    these cover every step before that time once, net, and no other step, so the proof is that of `Counter`.

    >>> counter = DigitTreeCounter(3, epsilon=1)
    >>> max(counter.error(0.95, t) for t in range(41)), counter.worst_error(0.95, t=40)
    (101, 135)
    """

    def laplace(self, epsilon: Fraction, reach: int) -> TreeNoise:
        """The noise of nodes that are added and taken away."""
        return TreeNoise(epsilon, reach, self.horizon, self.dimensions)


@lru_cache(maxsize=1024)
def counting_error(totals: DigitTreeCounter, beta: Fraction, most: int) -> int:
    """What no total is off by after 1 to `most` updates, each time but for beta / (_ABOVE most^2)."""
    return totals.worst_error(1 - beta / (_ABOVE * most * most), most)


@lru_cache(maxsize=64)
def best_totals(epsilon: Fraction, delta: Fraction, dimensions: int, reach: int) -> DigitTreeCounter:
    """Totals within (epsilon, delta) for items that move by `reach` in L1 and squared L2: which err less at 64 hits.

    >>> best_totals(Fraction(1, 3), Fraction(1, 10**6), 1000, 1000)
    DigitTreeCounter(dimensions=1000, horizon=1024, bound=1000, squared=1000, rho=0.00309695265424)
    """
    pure = DigitTreeCounter(dimensions, epsilon, bound=reach, squared=reach)
    if not delta:
        return pure
    rho = rho_below(epsilon, delta)
    gaussian = DigitTreeCounter(dimensions, rho=rho, horizon=_HITS, bound=reach, squared=reach)
    return min(pure, gaussian, key=lambda totals: totals.worst_error(Fraction(95, 100), 64))


@lru_cache(maxsize=64)
def each_delta(epsilon: Fraction, delta: Fraction, places: int) -> Fraction:
    """The delta of one step whose group of `places` has this one: divided by (e^epsilon - 1)/(e^(epsilon/places) - 1).

    >>> from counterpoint import ApproxDP
    >>> ApproxDP(Fraction(1, 4), each_delta(Fraction(1), Fraction(1, 10**6), 4)).group(4).implies(ApproxDP(1, 1e-6))
    True
    """
    if places == 1 or not delta:
        return delta
    share = certify(lambda p: p(epsilon / places).expm1() / p(epsilon).expm1(), 40).lower
    return Fraction(floor(Fraction(share) * delta * 10**60), 10**60)


def doubled(j: int) -> int:
    """The next power of two: a bound that holds until there rises in few steps and is seldom computed."""
    power: int = 1 << (j - 1).bit_length()
    return power

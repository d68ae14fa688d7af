"""How large noise gets: what a draw stays within, but for a chance that is given, and rounded against it.

Every `error(probability)` of a mechanism with noise rests on these tails: those of discrete Laplace and of rounded
normal noise, which are exact, and that of discrete Gaussian noise, which is sub-Gaussian with its variance parameter
(Canonne et al. 2020, "The Discrete Gaussian for Differential Privacy", section 2.3).

>>> laplace_beyond(Fraction(1), Fraction(1, 100)), gaussian_within(Fraction(1), Fraction(1, 100))
(4, 3)
"""

from fractions import Fraction
from math import ceil

from counterpoint.errors import InvalidParameter
from counterpoint.numbers import Number, precision
from counterpoint.numbers.exact import exact
from counterpoint.privacy.formulas.gaussian_curve import normal_quantile

_DIGITS = 40


def may_fail(probability: Number) -> Fraction:
    """What is left of a probability, below 1, with which a statement about noise is to hold.

    >>> may_fail("0.95")
    Fraction(1, 20)
    """
    fails = 1 - exact(probability, "the probability")
    if not 0 < fails <= 1:
        raise InvalidParameter("the probability must be at least 0 and below 1: noise has no largest value")
    return fails


def laplace_beyond(scale: Fraction, chance: Fraction) -> int:
    """The least m such that discrete Laplace noise z > m has at most this chance: q^(m+1)/(1+q), q = e^(-1/scale)."""
    p = precision(_DIGITS)
    tail = -(((-p(1 / scale)).exp() + 1) * chance).log() * scale
    return max(0, ceil(tail.upper) - 1)


def gaussian_within(sigma2: Fraction, chance: Fraction) -> int:
    """An m that discrete Gaussian noise |z| exceeds with at most this chance: P[|z| >= x] <= 2 e^(-x^2/(2 sigma2))."""
    most = (2 * sigma2 * precision(_DIGITS)(2 / chance).log()).sqrt()
    return max(0, ceil(most.upper) - 1)


def rounded_normal_within(sigma2: Fraction, chance: Fraction) -> int:
    """The least m that rounded normal noise |z| exceeds with at most this chance: 2 Q((m + 1/2)/sigma).

    >>> rounded_normal_within(Fraction(900), Fraction(1, 20))
    59
    """
    if chance == 1:
        return 0
    most = precision(_DIGITS)(sigma2).sqrt() * normal_quantile(chance / 2) - Fraction(1, 2)
    return max(0, ceil(most.upper))

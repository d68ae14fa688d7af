"""How large noise gets: what a draw stays within, but for a chance that is given, and rounded against it.

Every `error(probability)` of a mechanism with noise rests on these tails, which are those of the laws that are drawn:
the distance is the least whole number that holds. Discrete Laplace and rounded normal noise have closed forms; the tail
of discrete Gaussian noise is a sum (`discrete_gaussian.py`).

>>> laplace_beyond(Fraction(1), Fraction(1, 100)), gaussian_within(Fraction(1), Fraction(1, 100))
(4, 2)
"""

from fractions import Fraction
from math import ceil

from counterpoint.errors import InvalidParameter
from counterpoint.mechanisms.discrete_gaussian import gaussian_within, subgaussian_within, weighted_within
from counterpoint.numbers import Number, precision
from counterpoint.numbers.exact import exact, spell
from counterpoint.privacy.formulas.gaussian_curve import normal_quantile

__all__ = [
    "each_may_fail",
    "gaussian_within",
    "laplace_beyond",
    "may_fail",
    "rounded_normal_within",
    "subgaussian_within",
    "weighted_within",
]

_DIGITS = 40


def may_fail(probability: Number) -> Fraction:
    """What is left of a probability, below 1, with which a statement about noise is to hold.

    >>> may_fail("0.95")
    Fraction(1, 20)
    """
    fails = 1 - exact(probability, "the probability")
    if not 0 < fails <= 1:
        raise InvalidParameter(
            f"the probability must be at least 0 and below 1, such as 0.95, but {spell(1 - fails)} was given: "
            "noise has no largest value"
        )
    return fails


def each_may_fail(probability: Number, width: int) -> Fraction:
    """With what chance each of `width` independent draws may be farther off, if all are to be within at once.

    That is 1 - probability^(1/width), rounded down; it is more than a part of what may fail, which holds for draws that
    depend on each other, too.

    >>> each_may_fail("0.9025", 2) <= Fraction(1, 20) < each_may_fail("0.9025", 2) + Fraction(1, 10**30)
    True
    """
    fails = may_fail(probability)
    if width == 1 or fails == 1:
        return fails
    return Fraction((-((-precision(2 * _DIGITS)(fails)).log1p() / width).expm1()).lower)


def laplace_beyond(scale: Fraction, chance: Fraction) -> int:
    """The least m such that discrete Laplace noise z > m has at most this chance: q^(m+1)/(1+q), q = e^(-1/scale)."""
    p = precision(_DIGITS + len(str(ceil(scale))))
    tail = -(((-p(1 / scale)).exp() + 1) * chance).log() * scale
    return max(0, ceil(tail.upper) - 1)


def rounded_normal_within(sigma2: Fraction, chance: Fraction) -> int:
    """The least m that rounded normal noise |z| exceeds with at most this chance: 2 Q((m + 1/2)/sigma).

    >>> rounded_normal_within(Fraction(900), Fraction(1, 20))
    59
    """
    if chance == 1:
        return 0
    most = precision(_DIGITS)(sigma2).sqrt() * normal_quantile(chance / 2) - Fraction(1, 2)
    return max(0, ceil(most.upper))

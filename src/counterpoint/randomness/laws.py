"""The exact laws behind the coins, as finite lists of outcomes with certified probabilities.

Discrete Laplace: P[z] = (1-q)/(1+q) q^|z| with q = e^(-1/scale). Discrete Gaussian: P[z] proportional to
e^(-z^2/(2 sigma2)) (Canonne et al. 2020). Rounded normal: P[z] is the chance that N(0, sigma2) lies between z - 1/2 and
z + 1/2. All are cut symmetrically where the tail that is left out holds at most a given mass. Probabilities are
rationals rounded to about 60 digits, with the sum of what they are off.

>>> options = laplace_options(Fraction(1), Fraction(1, 100))
>>> [z for z, _ in options.outcomes], options.error < Fraction(1, 10**50)
([0, 1, -1, 2, -2, 3, -3, 4, -4], True)
"""

from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from math import ceil, isqrt
from typing import Generic, TypeVar

from counterpoint.errors import InvalidParameter
from counterpoint.numbers import Interval, normal_cell, normal_tail, precision

R = TypeVar("R")
_DIGITS = 60
_MOST = 10**5


@dataclass(frozen=True)
class Options(Generic[R]):
    """Outcomes with stated probabilities; `error` bounds the sum of what these are off by."""

    outcomes: tuple[tuple[R, Fraction], ...]
    error: Fraction = Fraction(0)


def _rounded(outcomes: list[tuple[R, Interval]]) -> Options[R]:
    stated = tuple((value, Fraction(bounds.lower)) for value, bounds in outcomes)
    error = sum((Fraction(bounds.upper) - Fraction(bounds.lower) for _, bounds in outcomes), Fraction(0))
    return Options(stated, error)


@lru_cache(maxsize=256)
def logistic_options(epsilon: Fraction) -> Options[bool]:
    """True with probability e^epsilon/(1+e^epsilon); exact where epsilon is 0.

    >>> logistic_options(Fraction(0)).outcomes
    ((True, Fraction(1, 2)), (False, Fraction(1, 2)))
    """
    if epsilon == 0:
        return Options(((True, Fraction(1, 2)), (False, Fraction(1, 2))))
    shrunk = (-precision(_DIGITS)(epsilon)).exp()
    return _rounded([(True, 1 / (1 + shrunk)), (False, shrunk / (1 + shrunk))])


@lru_cache(maxsize=256)
def laplace_options(scale: Fraction, cut: Fraction) -> Options[int]:
    """Discrete Laplace on -reach..reach, from the middle outward, so that the tails hold at most `cut`."""
    _refuse_endless(scale * cut.denominator.bit_length() // 2)
    q = (-1 / precision(_DIGITS)(scale)).exp()
    middle = (1 - q) / (1 + q)
    outcomes: list[tuple[int, Interval]] = []
    power, reach = q**0, 0
    while 2 * Fraction(power.upper) > cut * Fraction((1 + q).lower):  # both tails from `reach` on: 2 q^reach/(1+q)
        chance = middle * power
        outcomes.extend((z, chance) for z in ((reach, -reach) if reach else (0,)))
        power, reach = power * q, reach + 1
    return _rounded(outcomes or [(0, middle)])


@lru_cache(maxsize=256)
def geometric_options(scale: Fraction, cut: Fraction) -> Options[int]:
    """The one-sided law on 0..reach, so that the tail holds at most `cut`.

    >>> [k for k, _ in geometric_options(Fraction(1), Fraction(1, 10)).outcomes]
    [0, 1, 2]
    """
    _refuse_endless(scale * cut.denominator.bit_length())
    q = (-1 / precision(_DIGITS)(scale)).exp()
    outcomes: list[tuple[int, Interval]] = []
    power = q**0
    while Fraction(power.upper) > cut:  # the tail from k on holds q^k
        outcomes.append((len(outcomes), (1 - q) * power))
        power = power * q
    return _rounded(outcomes or [(0, 1 - q)])


def choice_options(lags: tuple[Fraction, ...]) -> Options[int]:
    """Index i with probability e^(-lags[i]) over the sum of all; exact where all lags are equal.

    >>> choice_options((Fraction(1), Fraction(1))).outcomes
    ((0, Fraction(1, 2)), (1, Fraction(1, 2)))
    """
    if len(set(lags)) == 1:
        return Options(tuple((index, Fraction(1, len(lags))) for index in range(len(lags))))
    p, nearest = precision(_DIGITS), min(lags)
    weights = [(-p(lag - nearest)).exp() for lag in lags]
    total = sum(weights[1:], weights[0])
    return _rounded([(index, weight / total) for index, weight in enumerate(weights)])


@lru_cache(maxsize=256)
def gaussian_options(sigma2: Fraction, cut: Fraction) -> Options[int]:
    """Discrete Gaussian on -reach..reach, from the middle outward, so that the tails hold at most `cut`."""
    _refuse_endless(16 * isqrt(ceil(sigma2)))
    p = precision(_DIGITS)
    weights, smallest = [p(1)], p.floor.scaleb(Decimal(1), -_DIGITS)
    while weights[-1].upper > smallest:
        z = len(weights)
        weights.append((-p(Fraction(z * z) / (2 * sigma2))).exp())
    # Beyond z the weights fall at least geometrically, by the ratio of the last two: what is left is below this.
    ratio = Interval(Decimal(0), weights[-1].upper, p) / Interval(weights[-2].lower, weights[-2].lower, p)
    rest = Interval(Decimal(0), (weights[-1] * ratio / (1 - ratio)).upper, p)
    total = weights[0] + 2 * sum(weights[1:], p(0)) + 2 * rest
    reach = len(weights)
    tail = 2 * rest / total
    while reach > 1 and Fraction((longer := tail + 2 * weights[reach - 1] / total).upper) <= cut:
        tail, reach = longer, reach - 1
    kept = [(z, weights[z] / total) for z in range(reach)]
    return _rounded([(z, chance) for size, chance in kept for z in ((size, -size) if size else (0,))])


@lru_cache(maxsize=256)
def rounded_normal_options(sigma2: Fraction, cut: Fraction) -> Options[int]:
    """Rounded normal on -reach..reach, from the middle outward, so that the tails hold at most `cut`.

    >>> [z for z, _ in rounded_normal_options(Fraction(1), Fraction(1, 100)).outcomes]
    [0, 1, -1, 2, -2, 3, -3]
    """
    _refuse_endless(16 * isqrt(ceil(sigma2)))
    p = precision(_DIGITS)
    outcomes = [(0, normal_cell(0, sigma2, p))]
    reach = 0
    while 2 * Fraction(normal_tail(p((reach + Fraction(1, 2)) ** 2 / sigma2).sqrt()).upper) > cut:
        reach += 1
        outcomes.extend((z, normal_cell(z, sigma2, p)) for z in (reach, -reach))
    return _rounded(outcomes)


def _refuse_endless(reach: Fraction | int) -> None:
    if reach > _MOST:
        raise InvalidParameter(f"this noise has more than {_MOST} outcomes above the cut: enumerate a smaller scale")

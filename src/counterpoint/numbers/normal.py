"""The upper tail of the standard normal distribution, certified: Q(x) = P[N(0, 1) > x].

Far out, Q is the density times Laplace's continued fraction 1/(x + 1/(x + 2/(x + 3/(x + ...)))), whose
convergents lie in turn above and below the value (all its terms are positive); near 0 it is one half less the
density times x + x^3/3 + x^5/15 + ..., all of whose terms are positive too (with more digits, because the
subtraction takes some away).

>>> normal_tail(precision(20)(2))
Interval(0.022750131948179207200, 0.022750131948179207201)
"""

from decimal import Decimal
from functools import lru_cache

from counterpoint.numbers.interval import Interval, Precision, precision


def normal_tail(x: Interval) -> Interval:
    """Q at every point of `x`: Q at the lower end, less at most the width times the largest density.

    >>> normal_tail(precision(8)(0))
    Interval(0.50000000, 0.5)
    """
    p = precision(x.precision.digits + 12)
    tail = _tail_at(x.lower, p)
    width = p.between(x.upper, x.upper) - p.between(x.lower, x.lower)
    least = tail - width * _density(p.between(x.lower, x.lower).at_least(0))
    return x.precision.between(max(least.lower, Decimal(0)), tail.upper)


def normal_density(x: Interval) -> Interval:
    """e^(-x^2/2) / sqrt(2 pi).

    >>> normal_density(precision(8)(1))
    Interval(0.24197072, 0.24197073)
    """
    guarded = precision(x.precision.digits + 12)
    density = _density(guarded.between(x.lower, x.upper))
    return x.precision.between(density.lower, density.upper)


def mills_ratio(x: Interval) -> Interval:
    """Q(x) divided by the density at x, for x that is not negative: where both are tiny, it is not.

    >>> mills_ratio(precision(8)(1000))
    Interval(0.00099999900, 0.00099999901)
    """
    p = precision(x.precision.digits + 12)
    ratio = _mills_at(x.lower, p)
    width = p.between(x.upper, x.upper) - p.between(x.lower, x.lower)
    # its derivative is x Mills(x) - 1, which is above -1/(1 + x^2) because Mills(x) > x/(1 + x^2)
    least = ratio - width / (p.between(x.lower, x.lower) * p.between(x.lower, x.lower) + 1)
    return x.precision.between(max(least.lower, Decimal(0)), ratio.upper)


def _tail_at(x: Decimal, p: Precision) -> Interval:
    if x == 0:
        return p(1) / 2
    if x < 0:
        return 1 - _tail_at(x.copy_negate(), p)
    return _near_zero(x, p) if _is_near(x, p) else _density(p.between(x, x)) * _mills(x, p)


def _mills_at(x: Decimal, p: Precision) -> Interval:
    return _near_zero(x, p) / _density(p.between(x, x)) if _is_near(x, p) else _mills(x, p)


def _is_near(x: Decimal, p: Precision) -> bool:
    # measured: about here the series and the continued fraction take equally long
    return p.ceiling.multiply(x, x) <= 2 * p.digits


def _near_zero(x: Decimal, p: Precision) -> Interval:
    square = int(p.ceiling.multiply(x, x))
    # one half less the series loses the digits of e^(-x^2/2), and ln 10 > 2
    finer = precision(p.digits + square // 4 + 3)
    half = _half_less_series(x, finer)
    return p.between(half.lower, half.upper)


def _half_less_series(x: Decimal, p: Precision) -> Interval:
    point = p.between(x, x)
    square = point * point
    total = term = point
    odd = 1
    while term.upper > p.ceiling.scaleb(Decimal(1), -p.digits - 2):
        odd += 2
        term = term * square / odd
        total = total + term
    # from here on each term is less than half of the one before, because odd > 2 x^2
    while odd <= 2 * square.upper:
        odd += 2
        term = term * square / odd
        total = total + term
    rest = p.between(Decimal(0), term.upper)
    return (p(1) / 2 - _density(point) * (total + rest)).at_least(0)


def _mills(x: Decimal, p: Precision) -> Interval:
    """Q(x) divided by the density, between two consecutive convergents."""
    point = p.between(x, x)
    terms = 8
    while True:
        one, other = _convergent(point, terms), _convergent(point, terms + 1)
        bounds = Interval(min(one.lower, other.lower), max(one.upper, other.upper), p)
        if bounds.agrees_to(p.digits - 6) or terms > 10**5:
            return bounds
        terms *= 2


def _convergent(point: Interval, terms: int) -> Interval:
    denominator = point
    for numerator in range(terms, 0, -1):
        denominator = point + numerator / denominator
    return 1 / denominator


def _density(point: Interval) -> Interval:
    return (-(point * point) / 2).exp() / _root_two_pi(point.precision.digits + 5)


@lru_cache(maxsize=64)
def _root_two_pi(digits: int) -> Interval:
    """The square root of 2 pi; pi by Machin's formula 16 arctan(1/5) - 4 arctan(1/239)."""
    p = precision(digits + 5)
    pi = 16 * _arctan_of_inverse(5, p) - 4 * _arctan_of_inverse(239, p)
    return (2 * pi).sqrt()


def _arctan_of_inverse(n: int, p: Precision) -> Interval:
    power, square = p(1) / n, n * n
    total, odd = power, 1
    while power.upper > p.ceiling.scaleb(Decimal(1), -p.digits - 2):
        power, odd = power / square, odd + 2
        total = total - power / odd if odd % 4 == 3 else total + power / odd
    # an alternating series: what is left is at most the last term taken
    return Interval(p.floor.subtract(total.lower, power.upper), p.ceiling.add(total.upper, power.upper), p)

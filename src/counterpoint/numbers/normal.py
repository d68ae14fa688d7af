"""The upper tail of the standard normal distribution, certified: Q(x) = P[N(0, 1) > x].

Arb evaluates it at a point, with twelve digits more than asked for; over an interval it changes by at most the width
times the largest slope.

>>> normal_tail(precision(20)(2))
Interval(0.022750131948179207200, 0.022750131948179207201)
"""

from decimal import Decimal
from fractions import Fraction

from counterpoint.numbers import functions
from counterpoint.numbers.interval import Interval, Precision, precision

_MORE_DIGITS = 12
_FAR_SQUARE, _FADED = 10**6, Decimal("1e-200000")


def normal_tail(x: Interval) -> Interval:
    """Q at every point of `x`: Q at the lower end, less at most the width times the largest density.

    >>> normal_tail(precision(8)(0))
    Interval(0.50000000, 0.50000000)
    """
    p = precision(x.precision.digits + _MORE_DIGITS)
    largest = p.value(functions.tail, x.lower)
    width = p.between(x.upper, x.upper) - p.between(x.lower, x.lower)
    least = largest - width * p.value(functions.density, max(x.lower, Decimal(0)))
    return x.precision.between(max(least.lower, Decimal(0)), largest.upper)


def normal_cell(n: int, sigma2: Fraction, p: Precision) -> Interval:
    """The chance that a normal number with this variance lies between n - 1/2 and n + 1/2.

    >>> normal_cell(0, Fraction(1), precision(8))
    Interval(0.38292490, 0.38292494)
    """
    far, half = abs(n), Fraction(1, 2)
    if far == 0:
        return 1 - 2 * _tail_beyond(half, sigma2, p)
    return (_tail_beyond(far - half, sigma2, p) - _tail_beyond(far + half, sigma2, p)).at_least(0)


def _tail_beyond(x: Fraction, sigma2: Fraction, p: Precision) -> Interval:
    """The chance that a normal number with this variance exceeds x; one that no decimal should hold is only bounded."""
    square = x * x / sigma2
    if square > _FAR_SQUARE:
        return p.between(Decimal(0), _FADED)  # Q(z) < e^(-z^2/2)
    return normal_tail(p(square).sqrt())


def normal_density(x: Interval) -> Interval:
    """e^(-x^2/2) / sqrt(2 pi).

    >>> normal_density(precision(8)(1))
    Interval(0.24197072, 0.24197073)
    """
    p = precision(x.precision.digits + _MORE_DIGITS)
    nearer, farther = sorted((x.lower.copy_abs(), x.upper.copy_abs()))
    highest = p.value(functions.density, Decimal(0) if x.lower <= 0 <= x.upper else nearer)
    lowest = highest if x.lower == x.upper else p.value(functions.density, farther)
    return x.precision.between(max(lowest.lower, Decimal(0)), highest.upper)


def mills_ratio(x: Interval) -> Interval:
    """Q(x) divided by the density at x, for x that is not negative: where both are tiny, it is not.

    >>> mills_ratio(precision(8)(1000))
    Interval(0.00099999900, 0.00099999901)
    """
    p = precision(x.precision.digits + _MORE_DIGITS)
    largest = p.value(functions.mills, x.lower)
    width = p.between(x.upper, x.upper) - p.between(x.lower, x.lower)
    # its derivative is x Mills(x) - 1, which is above -1/(1 + x^2) because Mills(x) > x/(1 + x^2)
    least = largest - width / (p.between(x.lower, x.lower) * p.between(x.lower, x.lower) + 1)
    return x.precision.between(max(least.lower, Decimal(0)), largest.upper)

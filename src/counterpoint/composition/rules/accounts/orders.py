"""Choosing the constants that a theorem wants fixed in advance. Any choice is valid; a good one is tight.

`order_for` takes the Renyi order where the tight zCDP conversion of the budget has its optimum (theory, The Renyi
filter by reduction): (alpha-1)^2 rho + log alpha = log(1/d) and epsilon = (2 alpha - 1) rho + log(1 - 1/alpha). Floats
only search here; the order they find is rounded to a rational and fixed.

>>> order_for(Fraction(1), Fraction(1, 2 * 10**6))
Fraction(233, 10)
"""

import math
from collections.abc import Callable
from fractions import Fraction

_HUGE = Fraction(10**12)
"""An epsilon beyond which no float is needed to say that the order is small."""


def order_for(epsilon: Fraction, slack: Fraction) -> Fraction:
    """The Renyi order for a budget of epsilon with slack d.

    >>> order_for(Fraction(0), Fraction(1, 10)) > 1
    True
    """
    goal, near = _log_inverse(slack), float(min(epsilon, _HUGE))

    def excess(log_order: float) -> float:
        order = 1 + math.exp(log_order)
        rho = (near - math.log1p(-1 / order)) / (2 * order - 1)
        return (order - 1) ** 2 * rho + math.log(order) - goal

    order = 1 + math.exp(root(excess, -20.0, 40.0))
    return 1 + _three_digits(order - 1)


def root(rising: Callable[[float], float], low: float, high: float) -> float:
    """Where a rising function of one number crosses 0, by halving; an end of the interval if it does not.

    >>> round(root(lambda x: x * x - 2, 0.0, 2.0), 6)
    1.414214
    """
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (low, middle) if rising(middle) > 0 else (middle, high)
    return (low + high) / 2


def smallest_at(valley: Callable[[float], float], low: float, high: float) -> float:
    """Where a function that first falls and then rises is smallest, by thirds.

    >>> round(smallest_at(lambda x: (x - 1) ** 2, -5.0, 5.0), 6)
    1.0
    """
    for _ in range(80):
        third = (high - low) / 3
        left, right = low + third, high - third
        low, high = (low, right) if valley(left) < valley(right) else (left, high)
    return (low + high) / 2


def _log_inverse(value: Fraction) -> float:
    return math.log(value.denominator) - math.log(value.numerator)


def _three_digits(value: float) -> Fraction:
    return Fraction(f"{value:.3g}")

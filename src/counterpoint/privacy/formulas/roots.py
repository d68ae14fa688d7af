"""Roots that are reported to people: cut to 12 digits, and never above the true value.

>>> float(root_below(Fraction(2)))
1.414213562373
"""

from collections.abc import Callable
from fractions import Fraction

from counterpoint.numbers import precision, sqrt_up
from counterpoint.privacy.loss import DIGITS


def root_below(square: Fraction) -> Fraction:
    """A square root, exact where it is short and else cut to 12 digits; 0 if the square is not above 0.

    >>> root_below(Fraction(9, 100)), root_below(Fraction(-1))
    (Fraction(3, 10), Fraction(0, 1))
    """
    if square <= 0:
        return Fraction(0)
    root = sqrt_up(square)
    return root if root * root == square else short(Fraction(precision(DIGITS)(square).sqrt().lower))


def crossing(rising: Callable[[Fraction], Fraction], low: Fraction, high: Fraction) -> Fraction:
    """The last point, to 12 digits, where a rising function is not above 0; it is so at `low` and not at `high`.

    False position with halved weights (the Illinois rule), and bisection where that makes no progress.

    >>> float(crossing(lambda x: x * x - 2, Fraction(1), Fraction(2)))
    1.414213562373
    """
    below, above = rising(low), rising(high)
    while high - low > high / 10**12:
        middle = short((low * above - high * below) / (above - below))
        if not low < middle < high:
            middle = short((low + high) / 2)
        if not low < middle < high:
            break
        value = rising(middle)
        if value <= 0:
            low, below, above = middle, value, above / 2
        else:
            high, above, below = middle, value, below / 2
    return low


def short(value: Fraction) -> Fraction:
    """The value cut to 12 or 13 significant decimal digits, so that a reported number can be typed.

    >>> short(Fraction(2, 3))
    Fraction(333333333333, 500000000000)
    """
    digits = 12 - len(str(value.numerator)) + len(str(value.denominator))
    scale = Fraction(10) ** digits
    return Fraction(int(value * scale)) / scale

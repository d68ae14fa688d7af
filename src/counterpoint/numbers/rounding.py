"""Certified numbers as parameters: rounded up or down to a length that a loss can carry.

Numbers that are reported to people are cut to 12 digits and never above the true value.

>>> float(root_below(Fraction(2)))
1.414213562373
"""

from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction

from counterpoint.numbers.exact import PLACES, bounded_up
from counterpoint.numbers.interval import Interval, Precision, certify, precision, sqrt_up


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


def largest_short(fits: Callable[[Fraction], bool], near: Fraction) -> Fraction:
    """The largest number of 12 digits that fits, where 0 and some number above it do, and all below one that does.

    `near` is a guess above 0. It decides how soon the number is found, and not which one: what is returned has been
    tried, and so has the next larger one.

    >>> largest_short(lambda x: x * x <= 2, Fraction(3, 2)) == largest_short(lambda x: x * x <= 2, Fraction(1, 70))
    True
    """
    places = _places(near)
    count = _largest_count(fits, Fraction(10) ** -places, int(near * Fraction(10) ** places))
    while count < 10**11:
        more = 1 if count else 12
        places, count = places + more, count * 10**more
        count = _largest_count(fits, Fraction(10) ** -places, count)
    while count >= 10**12:
        places, count = places - 1, count // 10
    return count * Fraction(10) ** -places


def _largest_count(fits: Callable[[Fraction], bool], unit: Fraction, near: int) -> int:
    """How many units fit: steps away from a guess, each twice as long, until the answer is enclosed, and halving."""
    step = 1
    if fits(near * unit):
        low, high = near, near + 1
        while fits(high * unit):
            step *= 2
            low, high = high, high + step
    else:
        low, high = near - 1, near
        while not fits(low * unit):
            step *= 2
            low, high = max(0, low - step), low
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle * unit) else (low, middle)
    return low


def short(value: Fraction) -> Fraction:
    """The value cut to 12 or 13 significant decimal digits, so that a reported number can be typed.

    >>> short(Fraction(2, 3))
    Fraction(333333333333, 500000000000)
    """
    scale = Fraction(10) ** _places(value)
    return Fraction(int(value * scale)) / scale


def _places(value: Fraction) -> int:
    """How many decimal places show 12 or 13 digits of a number above 0."""
    return 12 - len(str(value.numerator)) + len(str(value.denominator))


DIGITS = 50
"""How many digits a conversion is evaluated to, and a converted parameter keeps."""

_NEGLIGIBLE = Decimal("1e-1000")


def certified_delta(formula: Callable[[Precision], Interval]) -> Interval:
    """A delta to `DIGITS` digits; one that is far below all that can be given is only known to be so.

    >>> certified_delta(lambda p: p(-(10**30)).exp()).upper < Decimal("1e-1000")
    True
    """
    rough = formula(precision(20))
    return precision(DIGITS).between(Decimal(0), rough.upper) if rough.upper < _NEGLIGIBLE else certify(formula, DIGITS)


def rounded_up(value: Decimal | Fraction) -> Fraction:
    """A number that is not negative as a parameter: exact where it can be written, else the next larger one.

    A decimal keeps `DIGITS` digits; nothing keeps more places than a parameter may have.

    >>> rounded_up(Fraction(1, 3)), rounded_up(Fraction(1, 3) ** 1000) == Fraction(1, 10**400)
    (Fraction(1, 3), True)
    """
    if isinstance(value, Fraction):
        return bounded_up(value)
    if value and value.adjusted() < -PLACES:
        return Fraction(1, 10**PLACES)
    return bounded_up(Fraction(precision(DIGITS).ceiling.create_decimal(value)))


def rounded_down(value: Decimal) -> Fraction:
    """A number that is not negative as a parameter, kept to `DIGITS` digits, not above the number itself.

    >>> rounded_down(Decimal("1e-999")), rounded_down(Decimal("0.25"))
    (Fraction(0, 1), Fraction(1, 4))
    """
    if value.adjusted() < DIGITS - PLACES:
        return Fraction(0)
    return Fraction(precision(DIGITS).floor.create_decimal(value))

"""Real numbers enclosed between two decimals, rounded outward at every step.

A formula written with `Interval`s yields a lower and an upper bound that are certain whatever the cancellation
inside; `certify` raises the working precision until the two agree closely enough. exp and log
(`functions`) and sqrt (Python's `decimal`) are rounded correctly, so one unit in the last place on either side encloses
them.

>>> def golden(p):
...     return (p(5).sqrt() + 1) / 2
>>> print(certify(golden, digits=12))
[1.61803398874989484820458, 1.61803398874989484820459]
"""

import decimal
from collections.abc import Callable
from decimal import MAX_EMAX, MIN_EMIN, ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Context, Decimal
from fractions import Fraction
from functools import lru_cache
from math import isqrt

from counterpoint.errors import InvalidParameter
from counterpoint.numbers import functions
from counterpoint.numbers.functions import Function

_ZERO, _MINUS_ONE = Decimal(0), Decimal(-1)


class Precision:
    """Interval arithmetic with `digits` significant decimal digits; call it to make an interval.

    >>> Precision(5)(Fraction(1, 3))
    Interval(0.33333, 0.33334)
    """

    __slots__ = ("ceiling", "digits", "floor", "nearest")

    def __init__(self, digits: int) -> None:
        self.digits = digits
        self.floor = _context(digits, ROUND_FLOOR)
        self.ceiling = _context(digits, ROUND_CEILING)
        self.nearest = _context(digits, ROUND_HALF_EVEN)

    def __call__(self, value: "Interval | Fraction | Decimal | int") -> "Interval":
        """Enclose a number."""
        if isinstance(value, Interval):
            return value
        if isinstance(value, Fraction):
            above, below = Decimal(value.numerator), Decimal(value.denominator)
            return Interval(self.floor.divide(above, below), self.ceiling.divide(above, below), self)
        return self.between(value, value)

    def between(self, lower: Decimal | int, upper: Decimal | int) -> "Interval":
        """Enclose everything between two numbers."""
        return Interval(self.floor.create_decimal(lower), self.ceiling.create_decimal(upper), self)

    def value(self, function: Function, x: Decimal) -> "Interval":
        """Enclose function(x).

        >>> Precision(5).value(functions.exp, Decimal(1))
        Interval(2.7182, 2.7184)
        """
        return Interval(*functions.bounds(function, x, self.nearest), self)


@lru_cache(maxsize=256)
def precision(digits: int) -> Precision:
    """The (shared) arithmetic of `digits` digits.

    >>> precision(30) is precision(30)
    True
    """
    return Precision(digits)


def _context(digits: int, rounding: str) -> Context:
    traps = [decimal.InvalidOperation, decimal.DivisionByZero, decimal.Overflow]
    return Context(prec=digits, rounding=rounding, Emax=MAX_EMAX, Emin=MIN_EMIN, traps=traps)


class Interval:
    """A real number known to lie between `lower` and `upper`.

    >>> p = Precision(6)
    >>> (p(2) / p(3)).exp()
    Interval(1.94772, 1.94774)
    """

    __slots__ = ("lower", "precision", "upper")

    def __init__(self, lower: Decimal, upper: Decimal, precision: Precision) -> None:
        self.lower = lower
        self.upper = upper
        self.precision = precision

    def __repr__(self) -> str:
        return f"Interval({self.lower}, {self.upper})"

    def __str__(self) -> str:
        return f"[{self.lower}, {self.upper}]"

    def _lift(self, other: "Interval | Fraction | int") -> "Interval":
        return other if isinstance(other, Interval) else self.precision(other)

    def __neg__(self) -> "Interval":
        return Interval(self.upper.copy_negate(), self.lower.copy_negate(), self.precision)

    def __add__(self, other: "Interval | Fraction | int") -> "Interval":
        o, p = self._lift(other), self.precision
        return Interval(p.floor.add(self.lower, o.lower), p.ceiling.add(self.upper, o.upper), p)

    def __radd__(self, other: "Fraction | int") -> "Interval":
        return self + other

    def __sub__(self, other: "Interval | Fraction | int") -> "Interval":
        return self + -self._lift(other)

    def __rsub__(self, other: "Fraction | int") -> "Interval":
        return -self + other

    def __mul__(self, other: "Interval | Fraction | int") -> "Interval":
        o, p = self._lift(other), self.precision
        if self.lower >= 0 and o.lower >= 0:
            return Interval(p.floor.multiply(self.lower, o.lower), p.ceiling.multiply(self.upper, o.upper), p)
        corners = [(a, b) for a in (self.lower, self.upper) for b in (o.lower, o.upper)]
        return Interval(
            min(p.floor.multiply(a, b) for a, b in corners),
            max(p.ceiling.multiply(a, b) for a, b in corners),
            p,
        )

    def __rmul__(self, other: "Fraction | int") -> "Interval":
        return self * other

    def __truediv__(self, other: "Interval | Fraction | int") -> "Interval":
        o, p = self._lift(other), self.precision
        if o.lower <= 0 <= o.upper:
            raise ZeroDivisionError("the divisor may be zero")
        if self.lower >= 0 and o.lower > 0:
            return Interval(p.floor.divide(self.lower, o.upper), p.ceiling.divide(self.upper, o.lower), p)
        corners = [(a, b) for a in (self.lower, self.upper) for b in (o.lower, o.upper)]
        return Interval(
            min(p.floor.divide(a, b) for a, b in corners), max(p.ceiling.divide(a, b) for a, b in corners), p
        )

    def __rtruediv__(self, other: "Fraction | int") -> "Interval":
        return self._lift(other) / self

    def __pow__(self, exponent: "Interval | Fraction | int") -> "Interval":
        if isinstance(exponent, int) and exponent >= 0 and self.lower >= 0:
            return self._whole_power(exponent)
        return (self.log() * exponent).exp()

    def _whole_power(self, exponent: int) -> "Interval":
        power, base = self.precision(1), self
        while exponent:
            if exponent & 1:
                power = power * base
            base, exponent = base * base, exponent >> 1
        return power

    def exp(self) -> "Interval":
        """E to this power."""
        lower, upper = self._rising(functions.exp, self.precision)
        return Interval(max(lower, _ZERO), upper, self.precision)

    def expm1(self) -> "Interval":
        """E to this power, minus one, without cancellation near 0."""
        lower, upper = self._rising(functions.expm1, precision(self.precision.digits + 2))
        return self.precision.between(max(lower, self.lower, _MINUS_ONE), upper)  # e^x - 1 is at least x and -1

    def log(self) -> "Interval":
        """The natural logarithm; the number must be positive."""
        if self.lower <= 0:
            raise InvalidParameter("a logarithm needs a number above 0, and this one may be 0")
        return Interval(*self._rising(functions.log, self.precision), self.precision)

    def log1p(self) -> "Interval":
        """The natural logarithm of one more than this number, without cancellation near 0."""
        if self.lower <= -1:
            raise InvalidParameter("a logarithm needs a number above 0, and this one may be 0")
        lower, upper = self._rising(functions.log1p, precision(self.precision.digits + 2))
        return self.precision.between(lower, min(upper, self.upper))  # log(1 + x) <= x

    def _rising(self, function: Function, p: Precision) -> tuple[Decimal, Decimal]:
        """Bounds on a rising function: below its value at the lower end, above that at the upper one."""
        first = p.value(function, self.lower)
        last = first if self.upper == self.lower else p.value(function, self.upper)
        return first.lower, last.upper

    def sqrt(self) -> "Interval":
        """The square root; a lower bound below 0 counts as 0."""
        p = self.precision
        lower = p.floor.next_minus(p.floor.sqrt(self.lower)) if self.lower > 0 else Decimal(0)
        upper = p.ceiling.next_plus(p.ceiling.sqrt(self.upper)) if self.upper > 0 else Decimal(0)
        return Interval(lower, upper, p)

    def at_least(self, low: int) -> "Interval":
        """The larger of this number and `low`."""
        floor = Decimal(low)
        return Interval(max(self.lower, floor), max(self.upper, floor), self.precision)

    def at_most(self, high: int) -> "Interval":
        """The smaller of this number and `high`."""
        ceiling = Decimal(high)
        return Interval(min(self.lower, ceiling), min(self.upper, ceiling), self.precision)

    def agrees_to(self, digits: int) -> bool:
        """Whether the two bounds differ by no more than one part in 10^digits."""
        ceiling, floor = self.precision.ceiling, self.precision.floor
        size = max(self.lower.copy_abs(), self.upper.copy_abs())
        return ceiling.subtract(self.upper, self.lower) <= floor.scaleb(size, -digits)


def sqrt_up(value: Fraction, digits: int = 50) -> Fraction:
    """The square root: exact where it is rational, else rounded up.

    >>> sqrt_up(Fraction(9, 4)), sqrt_up(Fraction(2)) ** 2 > 2
    (Fraction(3, 2), True)
    """
    above, below = isqrt(value.numerator), isqrt(value.denominator)
    if above * above == value.numerator and below * below == value.denominator:
        return Fraction(above, below)
    return Fraction(precision(digits)(value).sqrt().upper)


def certify(formula: Callable[[Precision], Interval], digits: int = 17, most: int = 4000) -> Interval:
    """Evaluate `formula` with more and more digits until its bounds agree to `digits` of them.

    When even `most` working digits do not suffice, the last enclosure is returned: wide, but certain.

    >>> certify(lambda p: (p(1) + p(Fraction(1, 10**30))).log(), digits=5).agrees_to(5)
    True
    """
    working = digits + 12
    while True:
        result = formula(precision(working))
        if result.agrees_to(digits) or working >= most:
            return result
        working *= 2

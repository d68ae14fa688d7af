"""Real numbers enclosed between two decimals, rounded outward at every step; exp, log, roots, the normal tail.

A formula written with `Interval`s yields a lower and an upper bound that are certain whatever the cancellation inside;
`certify` raises the working precision until the two agree closely enough. exp and log (`bounds`) and sqrt (Python's
`decimal`) are rounded correctly, so one unit in the last place on either side encloses them.

>>> def golden(p):
...     return (p(5).sqrt() + 1) / 2
>>> print(certify(golden, digits=12))
[1.61803398874989484820458, 1.61803398874989484820459]
"""

import decimal
import os
from collections.abc import Callable
from decimal import MAX_EMAX, MIN_EMIN, ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Context, Decimal, Overflow
from fractions import Fraction
from functools import cache, lru_cache
from math import isqrt
from threading import RLock
from typing import TYPE_CHECKING, TypeAlias

from counterpoint.errors import InvalidParameter

if TYPE_CHECKING:
    from flint import arb
    from flint.flint_base.flint_context import FlintContext

Function: TypeAlias = "Callable[[arb], arb]"

_GUARD_BITS = 40
_MOST_ROUNDS = 12
_FAR = 1000  # from about here on the radius of Arb's erfc is much too wide, while its U is as fast
_BITS_PER_DIGIT = 3.33  # a little more than log2(10)

# Arb's working precision is one number for the whole process: one thread at a time changes it, and puts it back.
_PRECISION = RLock()
if hasattr(os, "register_at_fork"):  # a child must not inherit the lock of a thread that it does not have
    os.register_at_fork(
        before=_PRECISION.acquire, after_in_parent=_PRECISION.release, after_in_child=_PRECISION.release
    )


def bounds(function: Function, x: Decimal, context: Context) -> tuple[Decimal, Decimal]:
    """The decimal nearest to function(x), less and plus one unit; the value twice if it is a decimal and Arb knows it.

    The context says how many digits a decimal has; it rounds half to even. No function below has another value half-way
    between two decimals, so a few rounds are enough. A value that is too large raises `decimal.Overflow`.

    Arb (python-flint) computes with balls, whose radius bounds every rounding error on the way. `bounds` raises the
    working precision until both ends of the ball round to the same decimal. The result then depends on the function
    alone, not on the version of Arb nor on its precision: a later version computes the accounts that a ledger keeps
    again, digit for digit.

    >>> bounds(exp, Decimal(1), Context(prec=20, rounding="ROUND_HALF_EVEN"))
    (Decimal('2.7182818284590452353'), Decimal('2.7182818284590452355'))
    """
    bits = int(context.prec * _BITS_PER_DIGIT) + _GUARD_BITS
    for _ in range(_MOST_ROUNDS):
        ball = _evaluate(function, x, bits)
        if not ball.is_finite():
            raise Overflow("the value is too large for a decimal")
        middle, radius, exponent = ball.mid_rad_10exp(int(bits / _BITS_PER_DIGIT))
        near = context.create_decimal(f"{middle - radius}e{exponent}")
        if radius == 0 and near == Decimal(f"{middle}e{exponent}"):
            return near, near
        if near == context.create_decimal(f"{middle + radius}e{exponent}"):
            return context.next_minus(near), context.next_plus(near)
        bits *= 2
    raise ArithmeticError(f"{function.__name__} could not be evaluated to {context.prec} digits")


def exp(x: "arb") -> "arb":
    """E to the power x."""
    return x.exp()


def expm1(x: "arb") -> "arb":
    """e^x - 1, without cancellation near 0."""
    return x.expm1()


def log(x: "arb") -> "arb":
    """The natural logarithm of a positive number."""
    return x.log()


def log1p(x: "arb") -> "arb":
    """log(1 + x), without cancellation near 0."""
    return x.log1p()


def density(x: "arb") -> "arb":
    """The standard normal density e^(-x^2/2) / sqrt(2 pi)."""
    return (-(x * x) / 2).exp() / (2 * x.pi()).sqrt()


def tail(x: "arb") -> "arb":
    """The standard normal tail Q(x) = erfc(x / sqrt 2) / 2; far out, density times ratio."""
    half = _half()
    return (x * half.sqrt()).erfc() * half if x < _FAR else density(x) * mills(x)


def mills(x: "arb") -> "arb":
    """Mills' ratio Q(x) / density(x), about 1/x; far out, by Tricomi's U(1/2, 1/2, x^2/2) / sqrt 2."""
    if x < _FAR:
        return tail(x) / density(x)
    half = _half()
    return (half * x * x).hypgeom_u(half, half) * half.sqrt()


def _half() -> "arb":
    return _flint()[0](0.5)


def _evaluate(function: Function, x: Decimal, bits: int) -> "arb":
    ball, context = _flint()
    with _PRECISION:
        before = context.prec
        context.prec = bits
        try:
            return function(ball(str(x)))
        finally:
            context.prec = before


@cache
def _flint() -> "tuple[type[arb], FlintContext]":
    from flint import arb, ctx  # noqa: PLC0415 - its import takes 40 ms, which only a computation should cost

    return arb, ctx


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

        >>> Precision(5).value(exp, Decimal(1))
        Interval(2.7182, 2.7184)
        """
        return Interval(*bounds(function, x, self.nearest), self)


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
        """E to the power of every number in the interval."""
        lower, upper = self._rising(exp, self.precision)
        return Interval(max(lower, _ZERO), upper, self.precision)

    def expm1(self) -> "Interval":
        """E to this power, minus one, without cancellation near 0."""
        lower, upper = self._rising(expm1, precision(self.precision.digits + 2))
        return self.precision.between(max(lower, self.lower, _MINUS_ONE), upper)  # e^x - 1 is at least x and -1

    def log(self) -> "Interval":
        """The natural logarithm; the number must be positive."""
        if self.lower <= 0:
            raise InvalidParameter("a logarithm needs a number above 0, and this one may be 0")
        return Interval(*self._rising(log, self.precision), self.precision)

    def log1p(self) -> "Interval":
        """The natural logarithm of one more than this number, without cancellation near 0."""
        if self.lower <= -1:
            raise InvalidParameter("a logarithm needs a number above 0, and this one may be 0")
        lower, upper = self._rising(log1p, precision(self.precision.digits + 2))
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


_MORE_DIGITS = 12
_FAR_SQUARE, _FADED = 10**6, Decimal("1e-200000")


def normal_tail(x: Interval) -> Interval:
    """Q at every point of `x`: Q at the lower end, less at most the width times the largest density.

    Arb evaluates it at a point, with twelve digits more than asked for; over an interval it changes by at most the
    width times the largest slope.

    >>> normal_tail(precision(8)(0))
    Interval(0.50000000, 0.50000000)

    >>> normal_tail(precision(20)(2))
    Interval(0.022750131948179207200, 0.022750131948179207201)
    """
    p = precision(x.precision.digits + _MORE_DIGITS)
    largest = p.value(tail, x.lower)
    width = p.between(x.upper, x.upper) - p.between(x.lower, x.lower)
    least = largest - width * p.value(density, max(x.lower, Decimal(0)))
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
    highest = p.value(density, Decimal(0) if x.lower <= 0 <= x.upper else nearer)
    lowest = highest if x.lower == x.upper else p.value(density, farther)
    return x.precision.between(max(lowest.lower, Decimal(0)), highest.upper)


def mills_ratio(x: Interval) -> Interval:
    """Q(x) divided by the density at x, for x that is not negative: where both are tiny, it is not.

    >>> mills_ratio(precision(8)(1000))
    Interval(0.00099999900, 0.00099999901)
    """
    p = precision(x.precision.digits + _MORE_DIGITS)
    largest = p.value(mills, x.lower)
    width = p.between(x.upper, x.upper) - p.between(x.lower, x.lower)
    # its derivative is x Mills(x) - 1, which is above -1/(1 + x^2) because Mills(x) > x/(1 + x^2)
    least = largest - width / (p.between(x.lower, x.lower) * p.between(x.lower, x.lower) + 1)
    return x.precision.between(max(least.lower, Decimal(0)), largest.upper)

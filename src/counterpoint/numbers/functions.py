"""Functions of a decimal, correctly rounded: Arb (python-flint) says between which numbers the value lies.

Arb computes with balls, whose radius bounds every rounding error on the way. `bounds` raises the working precision
until both ends of the ball round to the same decimal. The result then depends on the function alone, not on the version
of Arb nor on its precision: a later version computes the accounts that a ledger keeps again, digit for digit.

>>> bounds(exp, Decimal(1), Context(prec=20, rounding="ROUND_HALF_EVEN"))
(Decimal('2.7182818284590452353'), Decimal('2.7182818284590452355'))
"""

import os
from collections.abc import Callable
from decimal import Context, Decimal, Overflow
from functools import cache
from threading import RLock
from typing import TYPE_CHECKING, TypeAlias

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

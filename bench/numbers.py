"""Certified functions beside Python's `decimal` and mpmath, neither of which says how far off it is."""

from collections.abc import Callable, Iterator
from decimal import Context
from fractions import Fraction

from bench.table import Row, side_by_side
from counterpoint.measures import GaussianDP
from counterpoint.numbers import precision

DIGITS = 62
TIMES = 100


def rows() -> Iterator[Row]:
    x, alone = precision(DIGITS)(Fraction(1, 3)), Context(prec=DIGITS)
    times = side_by_side(repeated(x.exp), repeated(lambda: alone.exp(x.lower)))
    yield Row(f"exp to {DIGITS} digits, both bounds", *times, "decimal's exp, one value")
    times = side_by_side(repeated(x.log), repeated(lambda: alone.ln(x.lower)))
    yield Row(f"log to {DIGITS} digits, both bounds", *times, "decimal's ln, one value")
    loss, delta = GaussianDP(1), mpmath_delta()
    times = side_by_side(repeated(lambda: loss.delta_at(1)), repeated(delta))
    yield Row("GaussianDP(1).delta_at(1), rounded up", *times, f"mpmath, {DIGITS} digits, not rounded up")


def repeated(work: Callable[[], object]) -> Callable[[], object]:
    """The same many times: once is too short for the clock."""
    return lambda: [work() for _ in range(TIMES)]


def mpmath_delta() -> Callable[[], object]:
    """Q(a) - e^eps Q(b) by mpmath's erfc."""
    import mpmath

    def tail(x: float) -> object:
        return mpmath.erfc(x / mpmath.sqrt(2)) / 2

    def delta() -> object:
        with mpmath.workdps(DIGITS):
            return tail(0.5) - mpmath.e * tail(1.5)

    return delta

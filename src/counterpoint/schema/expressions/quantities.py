"""Exact arithmetic on what a row computes: numbers as ratios of integer terms, and dates as numbers of days.

A `Quantity` is the number top / bottom * grid, where top and bottom are integer terms and the bottom is at least 1
wherever it is not missing. Sums, differences, products and quotients of quantities are quantities: nothing is rounded,
and no engine divides. A quotient is missing where its divisor is 0. Numbers are compared by the sign of the top of
their difference. Only `rounded` divides, once: it clamps a quantity to public bounds and takes the nearest step (a half
goes up), so that it can be added up as a column can.

Every integer has a range that follows from the declared bounds by interval arithmetic. A term that might exceed
`LARGEST`, which every engine's wide integers hold with room to spare, is refused before any row is read.

>>> minutes = stored(0, 0, 600, Fraction(1, 2))
>>> hours = divided(minutes, literal(Fraction(60)))
>>> hours.grid, bounds(hours)
(Fraction(1, 120), (Fraction(0, 1), Fraction(5, 1)))
>>> miles = stored(1, 0, 5000, Fraction(1))
>>> rounded(divided(miles, minutes), 0, 100).most
100
"""

from collections.abc import Sequence
from fractions import Fraction
from itertools import product
from math import ceil, floor, gcd, lcm
from typing import NamedTuple, TypeAlias

from counterpoint.errors import InvalidRequest
from counterpoint.schema.expressions.tree import (
    Between,
    Case,
    Condition,
    Constant,
    FloorDivide,
    In,
    IsNull,
    Not,
    Or,
    Plus,
    Term,
    Times,
    between,
    depth_of,
    exceeds,
)

LARGEST = 2**120
"""The most that an integer of an expression may be in absolute value: 38 decimal digits, and 127 bits, have room."""
MOST_NODES = 500
DEEPEST = 50
"""The most nodes of a term, and how deep they may be nested: engines and this package read them by recursion."""


class Integer(NamedTuple):
    """An integer term, from least to most wherever it is not missing."""

    term: Term
    least: int
    most: int


class Quantity(NamedTuple):
    """The number top / bottom * grid; the bottom is at least 1."""

    top: Integer
    bottom: Integer
    grid: Fraction

    @property
    def value(self) -> Fraction | None:
        """The number, if it is the same for every row."""
        return self.top.term.value * self.grid if isinstance(self.top.term, Constant) and not self.divides else None

    @property
    def divides(self) -> bool:
        """Whether this is a quotient of integers, which need not lie on the grid."""
        return self.bottom != ONE


Cases: TypeAlias = Sequence[tuple[Condition, Quantity | None]]

ONE = Integer(Constant(1), 1, 1)

SIGNS = {"eq": "eq", "neq": "neq", "lt": "gt", "gt": "lt", "lte": "gte", "gte": "lte"}
"""The comparisons, and what each is with its sides exchanged."""


def literal(value: Fraction) -> Quantity:
    """A number that is the same for every row.

    >>> literal(Fraction(-3, 2)).value
    Fraction(-3, 2)
    """
    sign = (value > 0) - (value < 0)
    return Quantity(_constant(sign), ONE, abs(value) if sign else Fraction(1))


def stored(column: int, least: int, most: int, grid: Fraction) -> Quantity:
    """A stored column of integers."""
    return Quantity(Integer(column, least, most), ONE, grid)


def plus(left: Quantity, right: Quantity) -> Quantity:
    """The sum, on the coarsest grid that has both grids' multiples.

    >>> plus(stored(0, 0, 9, Fraction(1, 2)), stored(1, 0, 9, Fraction(1, 3))).grid
    Fraction(1, 6)
    """
    grid = _common((left.grid, right.grid))
    a = _times(_times(left.top, right.bottom), _constant(floor(left.grid / grid)))
    b = _times(_times(right.top, left.bottom), _constant(floor(right.grid / grid)))
    return Quantity(_plus(a, b), _times(left.bottom, right.bottom), grid)


def minus(left: Quantity, right: Quantity) -> Quantity:
    """The difference."""
    return plus(left, negative(right))


def negative(quantity: Quantity) -> Quantity:
    """The number with the other sign."""
    return Quantity(_times(_constant(-1), quantity.top), quantity.bottom, quantity.grid)


def times(left: Quantity, right: Quantity) -> Quantity:
    """The product."""
    return Quantity(_times(left.top, right.top), _times(left.bottom, right.bottom), left.grid * right.grid)


def divided(left: Quantity, right: Quantity) -> Quantity:
    """The quotient, missing where the divisor is 0.

    >>> divided(stored(0, 0, 9, Fraction(1)), literal(Fraction(0)))
    Traceback (most recent call last):
    ...
    counterpoint.errors.InvalidRequest: this divides by 0 in every row
    """
    if right.top.least == right.top.most == 0:
        raise InvalidRequest("this divides by 0 in every row")
    top, bottom = _times(left.top, right.bottom), left.bottom
    return Quantity(_times(top, _sign(right.top)), _times(bottom, _positive(right.top)), left.grid / right.grid)


def chosen(cases: Cases, otherwise: Quantity | None) -> Quantity:
    """The quantity of the first condition that holds; None is a missing value, and at least one is given."""
    given = [value for _, value in cases if value is not None] + ([] if otherwise is None else [otherwise])
    grid = _common([value.grid for value in given])
    tops = [(condition, _on(grid, value)) for condition, value in cases]
    top = _choose(tops, _on(grid, otherwise))
    if not any(value.divides for value in given):
        return Quantity(top, ONE, grid)
    bottoms = [(condition, None if value is None else value.bottom) for condition, value in cases]
    return Quantity(top, _choose(bottoms, None if otherwise is None else otherwise.bottom), grid)


def absolute(quantity: Quantity) -> Quantity:
    """The absolute value. Its range is that of |top|: the hull of both cases would reach below 0, and be twice as wide.

    >>> bounds(absolute(stored(0, -5, 3, Fraction(1)))), bounds(absolute(stored(0, -5, -3, Fraction(1))))
    ((Fraction(0, 1), Fraction(5, 1)), (Fraction(3, 1), Fraction(5, 1)))
    """
    least, most = quantity.top.least, quantity.top.most
    below = compared(quantity, "lt", literal(Fraction(0)))
    found = chosen([(below, negative(quantity))], quantity)
    return found._replace(top=found.top._replace(least=max(0, least, -most), most=max(-least, most)))


def rounded(quantity: Quantity, least: int, most: int) -> Integer:
    """The nearest integer to quantity / grid that is from least to most; a half is rounded up.

    With e = top - least * bottom clamped to [0, (most - least) * bottom], that is floor((2 e + bottom) / (2 bottom)) +
    least: numerators are at least 0, divisors at least 2.
    """
    top, bottom = quantity.top, quantity.bottom
    if not quantity.divides and least <= top.least and top.most <= most:
        return top
    above = _plus(top, _times(_constant(-least), bottom))
    widest = _times(_constant(most - least), bottom)
    beyond = _plus(above, _times(_constant(-1), widest))
    low = (Between(above.term, None, 0), _times(_constant(0), bottom))
    high = (Between(beyond.term, 0, None), widest)
    inside = _choose((low, high), above)
    excess = inside._replace(least=0, most=max(widest.most, 0))
    if quantity.divides:
        if most - least >= 2**63:
            raise InvalidRequest("a quotient has fewer than 2^63 steps between its bounds: choose a larger step")
        doubled = _plus(_times(_constant(2), excess), bottom)
        excess = checked(FloorDivide(doubled.term, _times(_constant(2), bottom).term), 0, most - least)
    return _plus(excess, _constant(least))._replace(least=least, most=most)


def regridded(quantity: Quantity, step: Fraction) -> Quantity:
    """The same number in units of `step`: its grid is `step`, and its bottom makes up for that.

    >>> regridded(stored(0, 0, 9, Fraction(1, 2)), Fraction(1, 4)).top
    Integer(term=Times(left=Constant(value=2), right=0), least=0, most=18)
    """
    p, q = (quantity.grid / step).as_integer_ratio()
    bottom = quantity.bottom if q == 1 else _times(_constant(q), quantity.bottom)
    return Quantity(_times(_constant(p), quantity.top), bottom, step)


def bounds(quantity: Quantity) -> tuple[Fraction, Fraction]:
    """The smallest and the largest value that interval arithmetic allows."""
    tops, bottoms = (quantity.top.least, quantity.top.most), (quantity.bottom.least, quantity.bottom.most)
    values = [Fraction(top, bottom) * quantity.grid for top, bottom in product(tops, bottoms)]
    return min(values), max(values)


def within(quantity: Quantity, low: Fraction | None, high: Fraction | None) -> Condition:
    """`low <= quantity <= high`, for a quantity that does not divide; None: no bound."""
    least = None if low is None else ceil(low / quantity.grid)
    return _between(quantity.top, least, None if high is None else floor(high / quantity.grid))


def compared(left: Quantity, sign: str, right: Quantity) -> Condition:
    """The comparison of two quantities by one of the `SIGNS`: UNKNOWN where one of them is missing.

    >>> compared(stored(0, 0, 9, Fraction(1, 2)), "gt", literal(Fraction(6, 5)))
    Between(column=0, low=3, high=None)
    """
    whole, at = left.top, Fraction(0)
    if right.value is None or left.divides:
        whole = minus(left, right).top  # its sign is that of the difference, since bottoms are above 0
    else:
        at = right.value / left.grid
    if sign in ("eq", "neq"):
        equal = one_of(whole, [at])
        return equal if sign == "eq" else Not(equal)
    low = {"gt": floor(at) + 1, "gte": ceil(at)}.get(sign)
    high = {"lt": ceil(at) - 1, "lte": floor(at)}.get(sign)
    return _between(whole, low, high)


def one_of(whole: Integer, values: Sequence[Fraction]) -> Condition:
    """The term is one of these values; it never has a value between two integers, or one out of range."""
    least, most = _range(whole)
    keys = [value.numerator for value in values if value.denominator == 1 and least <= value <= most]
    return In(whole.term, tuple(keys))


def missing(quantity: Quantity) -> Condition:
    """The quantity is missing."""
    if not quantity.divides:
        return IsNull(quantity.top.term)
    return Or((IsNull(quantity.top.term), IsNull(quantity.bottom.term)))


def _between(whole: Integer, low: int | None, high: int | None) -> Condition:
    return between(whole.term, low, high, *_range(whole))


def _range(whole: Integer) -> tuple[int, int]:
    """The range of a term, or for a stored column that of 64 bits."""
    return (-(2**63), 2**63 - 1) if isinstance(whole.term, int) else (whole.least, whole.most)


def _common(grids: Sequence[Fraction]) -> Fraction:
    """The coarsest grid that contains each of these."""
    return Fraction(gcd(*(grid.numerator * (_scale(grids) // grid.denominator) for grid in grids)), _scale(grids))


def _scale(grids: Sequence[Fraction]) -> int:
    return lcm(*(grid.denominator for grid in grids))


def _on(grid: Fraction, quantity: Quantity | None) -> Integer | None:
    """The top of a quantity, in units of a grid that divides its own."""
    return None if quantity is None else _times(quantity.top, _constant(floor(quantity.grid / grid)))


def _constant(value: int) -> Integer:
    return checked(Constant(value), value, value)


def _plus(left: Integer, right: Integer) -> Integer:
    if isinstance(left.term, Constant) and isinstance(right.term, Constant):
        return _constant(left.term.value + right.term.value)
    if isinstance(right.term, Constant) and right.term.value == 0:
        return left
    return checked(Plus(left.term, right.term), left.least + right.least, left.most + right.most)


def _times(left: Integer, right: Integer) -> Integer:
    """The product; one with 0 stays, since it is missing where the other factor is."""
    if isinstance(left.term, Constant) and isinstance(right.term, Constant):
        return _constant(left.term.value * right.term.value)
    if isinstance(right.term, Constant):
        left, right = right, left
    if isinstance(left.term, Constant) and left.term.value == 1:
        return right
    ends = [a * b for a, b in product((left.least, left.most), (right.least, right.most))]
    return checked(Times(left.term, right.term), min(ends), max(ends))


def _sign(divisor: Integer) -> Integer:
    """1 or -1, the sign of a divisor; `_positive` is missing where that is 0."""
    if divisor.least >= 0:
        return ONE
    if divisor.most <= 0:
        return _constant(-1)
    return _choose(((Between(divisor.term, None, -1), _constant(-1)),), ONE)


def _positive(divisor: Integer) -> Integer:
    """The absolute value of a divisor, missing where it is 0."""
    opposite = _times(_constant(-1), divisor)
    if divisor.least > 0 or divisor.most < 0:
        return divisor if divisor.least > 0 else opposite
    below, above = (Between(divisor.term, None, -1), opposite), (Between(divisor.term, 1, None), divisor)
    signs = [case for case, there in ((below, divisor.least < 0), (above, divisor.most > 0)) if there]
    return _choose(signs, None)._replace(least=1, most=max(-divisor.least, divisor.most))


def _choose(cases: Sequence[tuple[Condition, Integer | None]], otherwise: Integer | None) -> Integer:
    values = [value for _, value in cases] + [otherwise]
    ends = [end for value in values if value is not None for end in (value.least, value.most)]
    terms = tuple((condition, None if value is None else value.term) for condition, value in cases)
    return checked(Case(terms, None if otherwise is None else otherwise.term), min(ends), max(ends))


def checked(term: Term, least: int, most: int) -> Integer:
    """The term with its range, or `InvalidRequest` if an engine might not be able to compute it."""
    if max(-least, most) > LARGEST:
        raise InvalidRequest(
            "the values of this expression might have more than 36 digits: declare its columns with smaller bounds or "
            "larger steps, or CLAMP a part of it"
        )
    if exceeds(term, MOST_NODES) or depth_of(term) > DEEPEST:
        raise InvalidRequest(
            f"this expression is too long: it may have {MOST_NODES} operations, nested {DEEPEST} deep; declare parts "
            "of it as derived columns"
        )
    return Integer(term, least, most)

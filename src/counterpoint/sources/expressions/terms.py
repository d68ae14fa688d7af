"""Terms: what is computed of one stored row. Integers, labels and truth values, by total functions alone.

A term is the index of a stored column, or one of the nodes below. It is missing (NULL) where a column that it needs is
missing. The only division is a `Quotient` of a numerator that is never negative by a divisor that is never below 1;
`quantities` builds no other, and bounds every intermediate integer, so that no row makes an engine fail or overflow.
The emitter writes terms as SQL, `evaluating` computes them in Python, and both give the same integers.

>>> from counterpoint.sources.asking.conditions import Within
>>> sorted(set(columns_of(Plus(3, Choose(((Within(1, 0, None), Times(Constant(2), 4)),), None)))))
[1, 3, 4]
"""

from collections.abc import Iterator
from typing import Literal, TypeAlias

import msgspec

from counterpoint.sources.asking.conditions import AllOf, AnyOf, Condition, Not, Same

Part: TypeAlias = Literal["year", "quarter", "month", "day", "weekday"]
"""A part of a date; Monday is weekday 1, Sunday 7."""


class Constant(msgspec.Struct, frozen=True):
    """The same integer for every row."""

    value: int


class Plus(msgspec.Struct, frozen=True):
    """The sum of two terms."""

    left: "Term"
    right: "Term"


class Times(msgspec.Struct, frozen=True):
    """The product of two terms."""

    left: "Term"
    right: "Term"


class Quotient(msgspec.Struct, frozen=True):
    """The quotient, rounded down, of a term that is at least 0 and a term that is at least 1."""

    top: "Term"
    bottom: "Term"


class Choose(msgspec.Struct, frozen=True):
    """The term of the first condition that holds, else `otherwise`; None is a missing value."""

    cases: "tuple[tuple[Condition, Term | None], ...]"
    otherwise: "Term | None"


class DatePart(msgspec.Struct, frozen=True):
    """A part of the date that a number of days after 1970-01-01 names, a day of the years 1 to 9999."""

    part: Part
    days: "Term"


class Label(msgspec.Struct, frozen=True):
    """The text of the first condition that holds, else `otherwise`; None is a missing value."""

    cases: tuple[tuple[Condition, str | None], ...]
    otherwise: str | None


class Truth(msgspec.Struct, frozen=True):
    """Whether a condition holds; never missing."""

    condition: Condition


Term: TypeAlias = int | Constant | Plus | Times | Quotient | Choose | DatePart | Label | Truth
"""What is computed of a row; an integer is the index of a stored column."""


Node: TypeAlias = Term | Condition


def columns_of(node: Node) -> Iterator[int]:
    """The stored columns that a term or a condition reads, each as often as it does.

    >>> list(columns_of(Times(2, 2))), list(columns_of(AllOf((Not(Same(0, 1)),))))
    ([2, 2], [0, 1])
    """
    if isinstance(node, int):
        yield node
        return
    for part in parts_of(node):
        yield from columns_of(part)


def exceeds(node: Node, most: int) -> bool:
    """Whether a term or a condition has more than `most` nodes, where each is written out.

    Parts are shared, so a short text may stand for more nodes than can be counted: the count ends where it is decided.

    >>> exceeds(Plus(0, Times(Constant(2), 1)), 4), exceeds(Plus(0, Times(Constant(2), 1)), 5)
    (True, False)
    """
    left, counted = [node], 0
    while left and counted <= most:
        counted += 1
        left.extend(parts_of(left.pop()))
    return counted > most


def depth_of(node: Node) -> int:
    """How deep the nodes of a term or a condition are nested.

    >>> depth_of(Plus(0, Times(Constant(2), 1)))
    3
    """
    return 1 + max(map(depth_of, parts_of(node)), default=0)


def parts_of(node: Node) -> tuple[Node, ...]:
    """The terms and conditions that a node consists of."""
    match node:
        case int() | Constant():
            return ()
        case Plus(left, right) | Times(left, right) | Quotient(left, right) | Same(left, right):
            return left, right
        case Choose(cases, otherwise):
            values = [value for _, value in cases] + [otherwise]
            return (*(condition for condition, _ in cases), *(value for value in values if value is not None))
        case DatePart(_, days):
            return (days,)
        case Label(cases, _):
            return tuple(condition for condition, _ in cases)
        case Truth(part) | Not(part):
            return (part,)
        case AllOf(parts) | AnyOf(parts):
            return parts
        case _:
            return (node.column,)

r"""The one typed tree of conditions and values, which `where=`, expressions and SQL are read into.

A condition is TRUE, FALSE or UNKNOWN of a row, by SQL's three-valued logic: a comparison with a missing value (NULL) is
UNKNOWN, NOT leaves it so, and `where` keeps the rows of which the condition is TRUE. Only IS NULL is never UNKNOWN. A
term is what is computed of a row: an integer, a text or a truth value, by total functions alone. It is the index of a
stored column or one of the nodes below, and it is missing where a column that it needs is missing.

`conditions` reads a text into this tree, `engines.emit` writes the tree as an engine's SQL, and `evaluate` computes it
in Python: that is the reference with which the tests compare every engine. Numbers are compared as integer counts of
steps, so no engine converts, rounds or overflows. The only division is a `FloorDivide` of a numerator that is never
negative by a divisor that is never below 1; `quantities` builds no other, and bounds every integer on the way.

>>> sorted(set(columns_of(Plus(3, Case(((Between(1, 0, None), Times(Constant(2), 4)),), None)))))
[1, 3, 4]
"""

import re
from collections.abc import Iterator
from typing import Literal, TypeAlias

import msgspec

from counterpoint.schema.columns import Key

_LEAST, _MOST = -(2**63), 2**63 - 1


class In(msgspec.Struct, frozen=True):
    """The term is one of these values. Of no values, that is FALSE where the term is there, and else UNKNOWN."""

    column: "Term"
    keys: tuple[Key, ...]


class Between(msgspec.Struct, frozen=True):
    """The term is an integer from low to high, both included; None: no bound, but a missing term is still UNKNOWN."""

    column: "Term"
    low: int | None
    high: int | None


class Like(msgspec.Struct, frozen=True):
    """The text matches a pattern of % and _ (without an escape character)."""

    column: "Term"
    pattern: str


class MaxLength(msgspec.Struct, frozen=True):
    """The text has at most `longest` characters."""

    column: "Term"
    longest: int


class IsNull(msgspec.Struct, frozen=True):
    """The term is missing: TRUE or FALSE, never UNKNOWN."""

    column: "Term"


class Equal(msgspec.Struct, frozen=True):
    """Two texts, or two truth values, are equal."""

    left: "Term"
    right: "Term"


class BeforePin(msgspec.Struct, frozen=True):
    """The place in this column is before the pin, which is the parameter of the statement."""

    column: int


class NotEnded(msgspec.Struct, frozen=True):
    """The place in this column, where a row ended, is not before the pin, which is the parameter of the statement."""

    column: int


class And(msgspec.Struct, frozen=True):
    """FALSE if one of these is, else UNKNOWN if one of these is, else TRUE."""

    parts: "tuple[Condition, ...]"


class Or(msgspec.Struct, frozen=True):
    """TRUE if one of these is, else UNKNOWN if one of these is, else FALSE."""

    parts: "tuple[Condition, ...]"


class Not(msgspec.Struct, frozen=True):
    """TRUE where the part is FALSE, FALSE where it is TRUE; UNKNOWN stays UNKNOWN."""

    part: "Condition"


class CaseCondition(msgspec.Struct, frozen=True):
    """What is given with the first condition that is TRUE, else `otherwise`; None is UNKNOWN."""

    cases: "tuple[tuple[Condition, Condition | None], ...]"
    otherwise: "Condition | None"


Condition: TypeAlias = (
    In | Between | Like | MaxLength | IsNull | Equal | BeforePin | NotEnded | And | Or | Not | CaseCondition
)


def between(column: "Term", low: int | None, high: int | None, least: int = _LEAST, most: int = _MOST) -> Condition:
    """`low <= column <= high`, for a term from `least` to `most`; without such integers it is `In` of no values.

    >>> between(0, low=-(2**70), high=5)
    Between(column=0, low=None, high=5)
    >>> between(3, 7, 5)
    In(column=3, keys=())
    """
    low = None if low is not None and low <= least else low
    high = None if high is not None and high >= most else high
    empty = (low is not None and low > most) or (high is not None and high < least)
    if empty or (low is not None and high is not None and low > high):
        return In(column, ())
    return Between(column, low, high)


def present(column: "Term") -> Condition:
    """The column is not missing.

    >>> present(1)
    Not(part=IsNull(column=1))
    """
    return Not(IsNull(column))


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


class FloorDivide(msgspec.Struct, frozen=True):
    """The quotient, rounded down, of a term that is at least 0 and a term that is at least 1."""

    top: "Term"
    bottom: "Term"


class Case(msgspec.Struct, frozen=True):
    """The term of the first condition that is TRUE, else `otherwise`; None is a missing value."""

    cases: "tuple[tuple[Condition, Term | None], ...]"
    otherwise: "Term | None"


class DatePart(msgspec.Struct, frozen=True):
    """A part of the date that a number of days after 1970-01-01 names, a day of the years 1 to 9999."""

    part: Part
    days: "Term"


class CaseText(msgspec.Struct, frozen=True):
    """The text of the first condition that is TRUE, else `otherwise`; None is a missing value."""

    cases: tuple[tuple[Condition, str | None], ...]
    otherwise: str | None


class AsBoolean(msgspec.Struct, frozen=True):
    """A condition as a truth value; missing where it is UNKNOWN."""

    condition: Condition


Term: TypeAlias = int | Constant | Plus | Times | FloorDivide | Case | DatePart | CaseText | AsBoolean
"""What is computed of a row; an integer is the index of a stored column."""

Node: TypeAlias = Term | Condition


def columns_of(node: Node) -> Iterator[int]:
    """The stored columns that a term or a condition reads, each as often as it does.

    >>> list(columns_of(Times(2, 2))), list(columns_of(And((Not(Equal(0, 1)),))))
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
        case Plus(left, right) | Times(left, right) | FloorDivide(left, right) | Equal(left, right):
            return left, right
        case Case(cases, otherwise) | CaseCondition(cases, otherwise):
            values = [value for _, value in cases] + [otherwise]
            return (*(condition for condition, _ in cases), *(value for value in values if value is not None))
        case DatePart(_, days):
            return (days,)
        case CaseText(cases, _):
            return tuple(condition for condition, _ in cases)
        case AsBoolean(part) | Not(part):
            return (part,)
        case And(parts) | Or(parts):
            return parts
        case _:
            return (node.column,)


def steady_pattern(like: str) -> str:
    r"""A regular expression that matches what LIKE matches, and never backtracks.

    An engine that tries every way to match the % of a pattern takes hours for one long row, which would reveal that
    row. The pieces between % have fixed lengths, so the first place where a piece matches leaves the most text for the
    later pieces: no other place need be tried, and the atomic groups (?>...) try none.

    >>> steady_pattern("a%b_%c.")
    '(?s)^a(?>.*?b.).*c\\.$(?!.)'
    """
    first, *rest = ["".join("." if sign == "_" else re.escape(sign) for sign in piece) for piece in like.split("%")]
    found = "".join(f"(?>.*?{piece})" for piece in rest[:-1] if piece)
    return f"(?s)^{first}{found}{f'.*{rest[-1]}' if rest else ''}$(?!.)"  # $ alone may stand before a last newline

r"""Conditions and terms evaluated in Python on one stored row, as an engine does on many.

Both follow the same rules: a comparison with a missing value is false, and NOT negates its operand, so every condition
is true or false of every row. Mechanisms that follow a request read single items this way, as they arrive.

>>> from counterpoint.schema.expressions.tree import Not, In, Between
>>> adult = evaluator(Between(0, low=18, high=None))
>>> adult((40, "CA")), adult((None, "CA")), evaluator(Not(In(1, ("CA",))))((None, None))
(True, False, True)
"""

import re
from collections.abc import Callable, Sequence
from datetime import date as Day  # noqa: N812
from math import inf
from operator import add, floordiv, itemgetter, mul
from typing import Any, TypeAlias

from counterpoint.schema.expressions.tree import (
    And,
    AsBoolean,
    BeforePin,
    Between,
    Case,
    CaseText,
    Condition,
    Constant,
    DatePart,
    Equal,
    FloorDivide,
    In,
    IsNull,
    Like,
    MaxLength,
    Not,
    NotEnded,
    Or,
    Plus,
    Term,
    Times,
    steady_pattern,
)

StoredRow: TypeAlias = Sequence[Any]
"""The stored values of a row, column by column; None where one is missing."""

Test: TypeAlias = Callable[[StoredRow], bool]
Reading: TypeAlias = Callable[[StoredRow], Any]

_EPOCH = Day(1970, 1, 1).toordinal()
_PARTS: dict[str, Callable[[Day], int]] = {
    "year": lambda day: day.year,
    "quarter": lambda day: (day.month + 2) // 3,
    "month": lambda day: day.month,
    "day": lambda day: day.day,
    "weekday": Day.isoweekday,
}


def evaluator(condition: Condition) -> Test:
    """A function that says of a stored row whether the condition holds; everything that can be done once is done here.

    >>> evaluator(Like(0, "a%b_"))(("a to bé",)), evaluator(Like(0, "a_"))(("a",))
    (True, False)
    """
    match condition:
        case And(parts):
            every = tuple(map(evaluator, parts))
            return lambda row: all(test(row) for test in every)
        case Or(parts):
            some = tuple(map(evaluator, parts))
            return lambda row: any(test(row) for test in some)
        case Not(part):
            negated = evaluator(part)
            return lambda row: not negated(row)
        case Equal(left, right):
            one, other = term_reader(left), term_reader(right)
            return lambda row: one(row) is not None and one(row) == other(row)
        case BeforePin() | NotEnded():
            raise TypeError("whether a row has arrived by a pin is for the source to say, not for its values")
        case _:
            read, holds = term_reader(condition.column), _value_test(condition)
            return lambda row: holds(read(row))


def _value_test(condition: In | Between | Like | MaxLength | IsNull) -> Callable[[Any], bool]:
    """A function that says of one value, None where it is missing, whether the condition holds."""
    match condition:
        case In(_, keys):
            known = frozenset(keys)  # None is no key
            return lambda value: value in known
        case Between(_, low, high):
            least, most = -inf if low is None else low, inf if high is None else high
            return lambda value: value is not None and least <= value <= most
        case Like(_, pattern):
            matches = re.compile(steady_pattern(pattern)).match
            return lambda value: value is not None and matches(value) is not None
        case MaxLength(_, longest):
            return lambda value: value is not None and len(value) <= longest
        case IsNull():
            return lambda value: value is None


def term_reader(term: Term) -> Reading:
    """A function that computes a term of a stored row; None where it is missing.

    >>> term_reader(Plus(0, Constant(7)))((3,)), term_reader(Plus(0, 1))((3, None))
    (10, None)
    >>> term_reader(DatePart("day", 0))((31,))
    1
    """
    match term:
        case Constant(value):
            return lambda row: value
        case Plus(left, right):
            return _both(add, left, right)
        case Times(left, right):
            return _both(mul, left, right)
        case FloorDivide(top, bottom):
            return _both(floordiv, top, bottom)
        case Case(cases, otherwise):
            readers = [(evaluator(condition), _or_missing(value)) for condition, value in cases]
            return _first(readers, _or_missing(otherwise))
        case CaseText(texts, text):
            return _first([(evaluator(condition), _same(value)) for condition, value in texts], _same(text))
        case DatePart(part, days):
            after, part_of = term_reader(days), _PARTS[part]
            return lambda row: None if after(row) is None else part_of(Day.fromordinal(after(row) + _EPOCH))
        case AsBoolean(condition):
            return evaluator(condition)
        case _:
            return itemgetter(term)


def _both(operation: Callable[[int, int], int], left: Term, right: Term) -> Reading:
    one, other = term_reader(left), term_reader(right)

    def read(row: StoredRow) -> int | None:
        a, b = one(row), other(row)
        return None if a is None or b is None else operation(a, b)

    return read


def _first(cases: Sequence[tuple[Test, Reading]], otherwise: Reading) -> Reading:
    return lambda row: next((value for test, value in cases if test(row)), otherwise)(row)


def _or_missing(term: Term | None) -> Reading:
    return _same(None) if term is None else term_reader(term)


def _same(value: str | None) -> Reading:
    return lambda row: value

"""Conditions and terms computed in Python on one stored row: the reference for every engine.

A condition is True, False, or None where it is UNKNOWN; a term is None where it is missing. The tests compare each
engine's SQL with this module on random trees and rows. Mechanisms that follow arriving items read them by it, and
`queries.fallback` answers by it where an engine fails.

>>> from counterpoint.schema.expressions.tree import Between, In, Not
>>> adult = evaluator(Between(0, low=18, high=None))
>>> adult((40, "CA")), adult((None, "CA")), evaluator(Not(In(1, ("CA",))))((None, "NY"))
(True, None, True)
"""

import re
from collections.abc import Callable, Sequence
from datetime import date as Day  # noqa: N812
from math import inf
from operator import add, eq, floordiv, itemgetter, mul
from typing import Any, TypeAlias

from counterpoint.schema.expressions.tree import (
    And,
    AsBoolean,
    BeforePin,
    Between,
    Case,
    CaseCondition,
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

Truth: TypeAlias = bool | None
"""TRUE, FALSE or UNKNOWN, which is None."""

Predicate: TypeAlias = Callable[[StoredRow], Truth]
TermReader: TypeAlias = Callable[[StoredRow], Any]

_EPOCH = Day(1970, 1, 1).toordinal()
_PARTS: dict[str, Callable[[Day], int]] = {
    "year": lambda day: day.year,
    "quarter": lambda day: (day.month + 2) // 3,
    "month": lambda day: day.month,
    "day": lambda day: day.day,
    "weekday": Day.isoweekday,
}


def evaluator(condition: Condition) -> Predicate:
    """A function that says of a stored row what a condition is; everything that can be done once is done here.

    >>> evaluator(Like(0, "a%b_"))(("a to bé",)), evaluator(Like(0, "a_"))(("a",))
    (True, False)
    """
    match condition:
        case And(parts):
            return _conjunction(tuple(map(evaluator, parts)))
        case Or(parts):  # by De Morgan's law
            return _negation(_conjunction(tuple(_negation(evaluator(part)) for part in parts)))
        case Not(part):
            return _negation(evaluator(part))
        case CaseCondition(cases, otherwise):
            branches = [(evaluator(when), _evaluator_or_unknown(then)) for when, then in cases]
            return _first(branches, _evaluator_or_unknown(otherwise))
        case Equal(left, right):
            return _both(eq, left, right)
        case BeforePin() | NotEnded():
            raise TypeError("whether a row has arrived by a pin is for the source to say, not for its values")
        case _:
            read, holds = term_reader(condition.column), value_test(condition)
            return lambda row: holds(read(row))


def _conjunction(parts: Sequence[Predicate]) -> Predicate:
    def every(row: StoredRow) -> Truth:
        found: Truth = True
        for part in parts:
            truth = part(row)
            if truth is False:
                return False
            found = found if truth else None
        return found

    return every


def _negation(part: Predicate) -> Predicate:
    def negated(row: StoredRow) -> Truth:
        truth = part(row)
        return None if truth is None else not truth

    return negated


def _evaluator_or_unknown(condition: Condition | None) -> Predicate:
    return _same(None) if condition is None else evaluator(condition)


def value_test(condition: In | Between | Like | MaxLength | IsNull) -> Callable[[Any], Truth]:
    """A function that says of one value, None where it is missing, what the condition is.

    >>> is_short = value_test(MaxLength(0, 2))
    >>> is_short("ab"), is_short("abc"), is_short(None)
    (True, False, None)
    """
    match condition:
        case In(_, keys):
            known = frozenset(keys)
            return lambda value: None if value is None else value in known
        case Between(_, low, high):
            least, most = -inf if low is None else low, inf if high is None else high
            return lambda value: None if value is None else least <= value <= most
        case Like(_, pattern):
            matches = re.compile(steady_pattern(pattern)).match
            return lambda value: None if value is None else matches(value) is not None
        case MaxLength(_, longest):
            return lambda value: None if value is None else len(value) <= longest
        case IsNull():
            return lambda value: value is None


def term_reader(term: Term) -> TermReader:
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


def _both(operation: Callable[[Any, Any], Any], left: Term, right: Term) -> TermReader:
    one, other = term_reader(left), term_reader(right)

    def read(row: StoredRow) -> Any:
        a, b = one(row), other(row)
        return None if a is None or b is None else operation(a, b)

    return read


def _first(cases: Sequence[tuple[Predicate, TermReader]], otherwise: TermReader) -> TermReader:
    return lambda row: next((value for test, value in cases if test(row)), otherwise)(row)


def _or_missing(term: Term | None) -> TermReader:
    return _same(None) if term is None else term_reader(term)


def _same(value: str | None) -> TermReader:
    return lambda row: value

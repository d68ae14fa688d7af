"""Conditions on a row: the closed language that a `where` is parsed into. The emitter accepts nothing else.

Every condition is true or false of every row: a comparison with a missing value is false, and NOT negates its operand
(so `NOT age = 3` holds where age is missing, and `age <> 3` does not). Numbers are compared as integer counts of steps,
so no engine converts, rounds or overflows. A condition is about a term: the index of a stored column, or what is
computed of several (`expressions.terms`).

>>> between(0, low=-(2**70), high=5)
Within(column=0, low=None, high=5)
>>> between(0, low=2**70, high=None)
OneOf(column=0, keys=())
"""

from typing import TYPE_CHECKING, TypeAlias

import msgspec

from counterpoint.sources.declaring.columns import Key

if TYPE_CHECKING:
    from counterpoint.sources.expressions.terms import Term

_LEAST, _MOST = -(2**63), 2**63 - 1


class OneOf(msgspec.Struct, frozen=True):
    """The term is one of these values."""

    column: "Term"
    keys: tuple[Key, ...]


class Within(msgspec.Struct, frozen=True):
    """The term is an integer from low to high, both included; None: no bound."""

    column: "Term"
    low: int | None
    high: int | None


class Like(msgspec.Struct, frozen=True):
    """The text matches a pattern of % and _ (without an escape character)."""

    column: "Term"
    pattern: str


class Short(msgspec.Struct, frozen=True):
    """The text has at most `longest` characters."""

    column: "Term"
    longest: int


class Missing(msgspec.Struct, frozen=True):
    """The term is missing."""

    column: "Term"


class Same(msgspec.Struct, frozen=True):
    """Two texts, or two truth values, are equal; neither is missing."""

    left: "Term"
    right: "Term"


class Arrived(msgspec.Struct, frozen=True):
    """The place in this column is before the pin, which is the parameter of the statement."""

    column: int


class NotEnded(msgspec.Struct, frozen=True):
    """The place in this column, where a row ended, is not before the pin, which is the parameter of the statement."""

    column: int


class AllOf(msgspec.Struct, frozen=True):
    """All of these hold."""

    parts: "tuple[Condition, ...]"


class AnyOf(msgspec.Struct, frozen=True):
    """At least one of these holds."""

    parts: "tuple[Condition, ...]"


class Not(msgspec.Struct, frozen=True):
    """The part does not hold."""

    part: "Condition"


Condition: TypeAlias = OneOf | Within | Like | Short | Missing | Same | Arrived | NotEnded | AllOf | AnyOf | Not


def between(column: "Term", low: int | None, high: int | None, least: int = _LEAST, most: int = _MOST) -> Condition:
    """`low <= column <= high`, for a term from `least` to `most`; without such integers it is the empty condition.

    >>> between(3, 7, 5)
    OneOf(column=3, keys=())
    """
    low = None if low is not None and low <= least else low
    high = None if high is not None and high >= most else high
    empty = (low is not None and low > most) or (high is not None and high < least)
    if empty or (low is not None and high is not None and low > high):
        return OneOf(column, ())
    return Within(column, low, high)


def present(column: "Term") -> Condition:
    """The column is not missing.

    >>> present(1)
    Not(part=Missing(column=1))
    """
    return Not(Missing(column))

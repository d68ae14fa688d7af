"""Conditions on a row: the closed language that a `where` is parsed into. The emitter accepts nothing else.

Every condition is true or false of every row: a comparison with a missing value is false, and NOT negates its operand
(so `NOT age = 3` holds where age is missing, and `age <> 3` does not). Numbers are compared as 64-bit integer counts of
steps, so no engine converts, rounds or overflows.

>>> between(0, low=-(2**70), high=5)
Within(column=0, low=None, high=5)
>>> between(0, low=2**70, high=None)
OneOf(column=0, keys=())
"""

from typing import TypeAlias

import msgspec

from counterpoint.sources.declaring.columns import Key

_LEAST, _MOST = -(2**63), 2**63 - 1


class OneOf(msgspec.Struct, frozen=True):
    """The column holds one of these values."""

    column: int
    keys: tuple[Key, ...]


class Within(msgspec.Struct, frozen=True):
    """The column holds an integer from low to high, both included; None: no bound."""

    column: int
    low: int | None
    high: int | None


class Like(msgspec.Struct, frozen=True):
    """The text matches a pattern of % and _ (without an escape character)."""

    column: int
    pattern: str


class Short(msgspec.Struct, frozen=True):
    """The text has at most `longest` characters."""

    column: int
    longest: int


class Missing(msgspec.Struct, frozen=True):
    """The column is missing."""

    column: int


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


Condition: TypeAlias = OneOf | Within | Like | Short | Missing | Arrived | NotEnded | AllOf | AnyOf | Not


def between(column: int, low: int | None, high: int | None) -> Condition:
    """`low <= column <= high` in 64 bits; a range without stored integers becomes the empty condition.

    >>> between(3, 7, 5)
    OneOf(column=3, keys=())
    """
    low = None if low is not None and low <= _LEAST else low
    high = None if high is not None and high >= _MOST else high
    empty = (low is not None and low > _MOST) or (high is not None and high < _LEAST)
    if empty or (low is not None and high is not None and low > high):
        return OneOf(column, ())
    return Within(column, low, high)


def present(column: int) -> Condition:
    """The column is not missing.

    >>> present(1)
    Not(part=Missing(column=1))
    """
    return Not(Missing(column))

r"""A condition evaluated in Python on one stored row, as the emitter has an engine evaluate it on many.

Both follow the same rules: a comparison with a missing value is false, and NOT negates its operand, so every condition
is true or false of every row. Mechanisms that follow a request read single items this way, as they arrive.

>>> from counterpoint.sources.asking.conditions import Not, OneOf, Within
>>> adult = evaluator(Within(0, low=18, high=None))
>>> adult((40, "CA")), adult((None, "CA")), evaluator(Not(OneOf(1, ("CA",))))((None, None))
(True, False, True)
"""

import re
from collections.abc import Callable, Sequence
from math import inf
from typing import Any, TypeAlias

from counterpoint.sources.asking.conditions import (
    AllOf,
    AnyOf,
    Arrived,
    Condition,
    Like,
    Missing,
    Not,
    NotEnded,
    OneOf,
    Short,
    Within,
)
from counterpoint.sources.engines.emitter import steady_pattern

StoredRow: TypeAlias = Sequence[Any]
"""The stored values of a row, column by column; None where one is missing."""

Test: TypeAlias = Callable[[StoredRow], bool]


def evaluator(condition: Condition) -> Test:
    """A function that says of a stored row whether the condition holds; everything that can be done once is done here.

    >>> evaluator(Like(0, "a%b_"))(("a to bé",)), evaluator(Like(0, "a_"))(("a",))
    (True, False)
    """
    match condition:
        case OneOf(column, keys):
            known = frozenset(keys)  # None is no key
            return lambda row: row[column] in known
        case Within(column, low, high):
            least, most = -inf if low is None else low, inf if high is None else high
            return lambda row: row[column] is not None and least <= row[column] <= most
        case Like(column, pattern):
            matches = re.compile(steady_pattern(pattern)).match
            return lambda row: row[column] is not None and matches(row[column]) is not None
        case Short(column, longest):
            return lambda row: row[column] is not None and len(row[column]) <= longest
        case Missing(column):
            return lambda row: row[column] is None
        case AllOf(parts):
            every = tuple(map(evaluator, parts))
            return lambda row: all(test(row) for test in every)
        case AnyOf(parts):
            some = tuple(map(evaluator, parts))
            return lambda row: any(test(row) for test in some)
        case Not(part):
            negated = evaluator(part)
            return lambda row: not negated(row)
        case Arrived() | NotEnded():
            raise TypeError("whether a row has arrived by a pin is for the source to say, not for its values")

"""A query plan: a request that has been checked against a declaration, ready to be emitted as SQL. It is public.

A plan filters the rows, puts each into a cell (or all into one), and adds up integers per cell. Its corners bound the
contribution of a row (see `sensitivity`); the sensitivities follow from them.

>>> plan = QueryPlan(adds=Rows(), corners=((1,),), condition=None)
>>> plan.cells, plan.width, plan.reach
(None, None, 1)
"""

from fractions import Fraction
from typing import TypeAlias

import msgspec

from counterpoint.sources.asking.conditions import Condition
from counterpoint.sources.asking.sensitivity import Corner
from counterpoint.sources.declaring.columns import Key


class Rows(msgspec.Struct, frozen=True):
    """Every row counts one."""


class Units(msgspec.Struct, frozen=True):
    """Every unit with a row counts one."""


class ColumnTotal(msgspec.Struct, frozen=True):
    """Every row adds the integer in this column; `beside` also counts the rows in which it is not missing."""

    column: int
    beside: bool = False


class ByKey(msgspec.Struct, frozen=True):
    """One cell per key; rows with another value are in no cell. `complete`: the column has no other value."""

    column: int
    keys: tuple[Key, ...]
    complete: bool


class ByThreshold(msgspec.Struct, frozen=True):
    """Cell i holds the rows with exactly i of the ascending thresholds at or below their value: one cell more.

    `span` is the number of different values that the column can have.
    """

    column: int
    thresholds: tuple[int, ...]
    span: int


class ByFound(msgspec.Struct, frozen=True):
    """One cell per value that occurs. Which cells exist is as private as their contents, so the result is a tally."""

    column: int


Adds: TypeAlias = Rows | Units | ColumnTotal
Cells: TypeAlias = ByKey | ByThreshold | ByFound


EITHER_WAY: tuple[Corner, ...] = ((1,), (-1,))
"""The corners of an answer that is not a sum over rows and may go up and down; its request computes how far."""


class QueryPlan(msgspec.Struct, frozen=True):
    """What to add up, over which rows, into which cells; the width of the answer and its grid.

    `once` says that a unit contributes one point of conv(S) however many rows it has; `reach` is the largest number of
    cells of a tally in which it counts.
    """

    adds: Adds
    corners: tuple[Corner, ...]
    condition: Condition | None
    cells: Cells | None = None
    width: int | None = None
    grid: Fraction = Fraction(1)
    once: bool = False
    reach: int = 1

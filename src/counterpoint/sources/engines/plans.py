"""A plan: a request after it has been checked against a declaration; all public, ready to be written in SQL.

A plan filters the rows, puts each into a cell (or all into one), and adds up something per cell, always an integer.
What a row can contribute at most is kept as corners (see `sensitivity`), from which the sensitivities follow.

>>> Plan(adds=Rows(), corners=((1,),), condition=None)
Plan(adds=Rows(), corners=((1,),), condition=None, cells=None, width=None, grid=Fraction(1, 1), once=False, reach=1)
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


class Total(msgspec.Struct, frozen=True):
    """Every row adds the integer in this column; with `beside`, rows in which it is not missing are counted too."""

    column: int
    beside: bool = False


class ByKey(msgspec.Struct, frozen=True):
    """One cell per key; rows with another value fall into none. `complete`: the column holds no other value."""

    column: int
    keys: tuple[Key, ...]
    complete: bool


class ByThreshold(msgspec.Struct, frozen=True):
    """Cell i holds the rows whose value is at least i of the ascending thresholds, so there is one more cell.

    `span` is how many different values the column may hold.
    """

    column: int
    thresholds: tuple[int, ...]
    span: int


class ByFound(msgspec.Struct, frozen=True):
    """One cell per value that occurs: which cells there are is as private as what is in them, and makes a tally."""

    column: int


Adds: TypeAlias = Rows | Units | Total
Cells: TypeAlias = ByKey | ByThreshold | ByFound


EITHER_WAY: tuple[Corner, ...] = ((1,), (-1,))
"""The corners of an answer that is no sum over rows: it may go up and down; how far, its request knows itself."""


class Plan(msgspec.Struct, frozen=True):
    """What to add up, over which rows, into which cells; how wide the answer is and on what grid it stands.

    `once` says that a unit contributes one point of conv(S) however many rows it has; `reach`, in how many cells of a
    tally it counts at most.
    """

    adds: Adds
    corners: tuple[Corner, ...]
    condition: Condition | None
    cells: Cells | None = None
    width: int | None = None
    grid: Fraction = Fraction(1)
    once: bool = False
    reach: int = 1

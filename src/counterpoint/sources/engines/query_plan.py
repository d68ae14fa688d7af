"""A query plan: a request that has been checked against a declaration, ready to be emitted as SQL. It is public.

A plan filters the rows, puts each into a cell (or all into one), and adds up integers per cell. Its corners bound the
contribution of a row (see `sensitivity`); the sensitivities follow from them.

>>> plan = QueryPlan(adds=Rows(), corners=((1,),), condition=None)
>>> plan.cells, plan.width, plan.reach
(None, None, 1)
"""

from collections.abc import Iterator
from fractions import Fraction
from typing import TypeAlias

import msgspec

from counterpoint.sources.asking.conditions import Condition
from counterpoint.sources.asking.sensitivity import Corner, Groups
from counterpoint.sources.declaring.columns import Key
from counterpoint.sources.expressions.terms import Term, columns_of


class Rows(msgspec.Struct, frozen=True):
    """Every row counts one."""

    @property
    def sums(self) -> int:
        """How many integers there are for each cell."""
        return 1


class Units(msgspec.Struct, frozen=True):
    """Every unit with a row counts one."""

    @property
    def sums(self) -> int:
        """How many integers there are for each cell."""
        return 1


class ColumnTotal(msgspec.Struct, frozen=True):
    """Every row adds the integer in this column or of this term, raised to each of the `powers`, unless it is missing.

    No value is farther than `farthest` from 0. The power 0 counts the rows that have a value. A request that squares
    limits the column, so that nothing overflows.
    """

    column: Term
    farthest: int
    powers: tuple[int, ...] = (1,)

    @property
    def sums(self) -> int:
        """How many integers there are for each cell."""
        return len(self.powers)


class ByKeys(msgspec.Struct, frozen=True):
    """One cell per key, which has a value for each of the columns; other rows are in no cell.

    `complete` says of each column whether the keys mention every value that it can have.
    """

    columns: tuple[Term, ...]
    keys: tuple[tuple[Key, ...], ...]
    complete: tuple[bool, ...]

    def mentioned(self, place: int) -> tuple[Key, ...]:
        """The values that the keys have for the column at this place, each once.

        >>> ByKeys((4, 2), (("CA", 1), ("NY", 1)), (True, False)).mentioned(1)
        (1,)
        """
        return tuple(dict.fromkeys(key[place] for key in self.keys))


class ByThreshold(msgspec.Struct, frozen=True):
    """Cell i holds the rows with exactly i of the ascending thresholds at or below their value: one cell more.

    `span` is the number of different values that the column can have.
    """

    column: Term
    thresholds: tuple[int, ...]
    span: int

    @property
    def columns(self) -> tuple[Term, ...]:
        """The column."""
        return (self.column,)


class Crossed(msgspec.Struct, frozen=True):
    """The cells of a threshold within each key: those of the first key, then those of the second, and so on."""

    keys: ByKeys
    cut: ByThreshold

    @property
    def columns(self) -> tuple[Term, ...]:
        """The columns of the keys, and the one that is cut."""
        return (*self.keys.columns, self.cut.column)


class ByFound(msgspec.Struct, frozen=True):
    """One cell per value (or tuple of values of several columns) that occurs.

    Which cells exist is as private as their contents, so the result is a tally.
    """

    columns: tuple[Term, ...]


class Together(msgspec.Struct, frozen=True):
    """What several plans over the same cells add up, one behind the other; each over the rows of its own condition.

    The answer to each is multiplied by its weight.
    """

    plans: "tuple[QueryPlan, ...]"
    weights: tuple[int, ...]

    @property
    def sums(self) -> int:
        """How many integers there are for each cell."""
        return sum(plan.adds.sums for plan in self.plans)


Adds: TypeAlias = Rows | Units | ColumnTotal | Together
Cells: TypeAlias = ByKeys | ByThreshold | Crossed | ByFound


EITHER_WAY: tuple[Corner, ...] = ((1,), (-1,))
"""The corners of an answer that is not a sum over rows and may go up and down; its request computes how far."""


class QueryPlan(msgspec.Struct, frozen=True):
    """What to add up, over which rows, into which cells; the width of the answer and its grid.

    `once` says that a unit contributes one point of conv(S) however many rows it has; `reach` is the largest number of
    cells of a tally in which it counts; `groups` limit its rows in the values of a column that the cells are keyed by.
    """

    adds: Adds
    corners: tuple[Corner, ...]
    condition: Condition | None
    cells: Cells | None = None
    width: int | None = None
    grid: Fraction = Fraction(1)
    once: bool = False
    reach: int = 1
    groups: Groups | None = None

    def columns(self) -> Iterator[int]:
        """The stored columns that it reads, each as often as it does."""
        if isinstance(self.adds, ColumnTotal):
            yield from columns_of(self.adds.column)
        for part in self.adds.plans if isinstance(self.adds, Together) else ():
            yield from part.columns()
        for term in () if self.cells is None else self.cells.columns:
            yield from columns_of(term)
        if self.condition is not None:
            yield from columns_of(self.condition)

"""Requests: what a table answers. A closed language of total functions with known sensitivities.

A request is a frozen value that names columns and carries a `where` as text. Checked against a declaration it becomes a
`QueryPlan` and a `PreparedQuery`, from public facts alone; `read_cells` arranges the integers of the engine in the
shape of the answer. Group keys, edges and candidates are given or declared, never read from the data.

>>> from counterpoint.queries.aggregates import count, histogram
>>> count(where="state = 'CA'")
Count(where="state = 'CA'")
>>> histogram("age", edges=[0, 18, 65, 120]).edges[1]
18
"""

from collections.abc import Iterable
from datetime import date as Day  # noqa: N812
from fractions import Fraction
from itertools import accumulate, chain, pairwise
from math import ceil, floor
from typing import overload

from msgspec.structs import force_setattr

from counterpoint.encoding import Value
from counterpoint.errors import InvalidParameter, InvalidRequest
from counterpoint.numbers import Number as AnyNumber
from counterpoint.numbers.exact import whole
from counterpoint.numbers.parameters import default
from counterpoint.privacy.secret import Raw
from counterpoint.queries.grouping import (
    DistinctKeys,
    GivenBy,
    Names,
    NamesOrNone,
    by_keys,
    cell_by_cell,
    check_groups,
    columns_of,
    group_names,
    in_one_cell,
)
from counterpoint.queries.plan import ByThreshold, Cells, ColumnTotal, QueryPlan, Rows, Units
from counterpoint.queries.request import Averaged, PreparedQuery, Request, on_source
from counterpoint.queries.sensitivity import Sensitivities, tally_sensitivities
from counterpoint.schema.arguments import MOST_POINTS, Point, ascending, check_texts, clamped_text, listed, points
from counterpoint.schema.columns import KeyOrTuple, Number
from counterpoint.schema.declaration import Declaration
from counterpoint.schema.times import Date


class Count(Request, Value, frozen=True):
    """How many rows satisfy `where`. A row contributes 0 or 1."""

    where: str | None = None

    def __post_init__(self) -> None:
        """Check the text."""
        check_texts(where=self.where)

    def plan(self, declared: Declaration) -> QueryPlan:
        """Count rows."""
        return QueryPlan(Rows(), ((1,),), self._condition(declared))

    @property
    def why_no_updates(self) -> None:
        """A row adds 1."""
        return None


class CountDistinct(Request, Value, frozen=True):
    """How many units have a row that satisfies `where`; with `by`, how many have one in each cell of those columns.

    A unit contributes 0 or 1, whatever its rows: with `by`, 1 in each of the cells in which it has a row.
    """

    where: str | None = None
    by: NamesOrNone = default(None)
    keys: DistinctKeys = None

    def __post_init__(self) -> None:
        """Check the text and the keys."""
        check_texts(where=self.where)
        check_groups(self.by, self.keys)

    def plan(self, declared: Declaration) -> QueryPlan:
        """Count units; with one row per unit that is counting rows."""
        adds = Rows() if declared.rows_per_unit == 1 else Units()
        if self.by is None:
            return QueryPlan(adds, ((1,),), self._condition(declared), once=True)
        cells = by_keys(declared, self.by, self.keys)
        reach = 1 if set(columns_of(self.by)) <= set(declared.unit_columns) else declared.rows_per_unit
        corners = in_one_cell([(1,)], len(cells.keys))
        return QueryPlan(adds, corners, self._condition(declared), cells, len(cells.keys), once=True, reach=reach)

    def sensitivities(self, declared: Declaration, plan: QueryPlan) -> Sensitivities:
        """A unit moves each of the cells in which it has a row by one."""
        if plan.width is None:
            return super().sensitivities(declared, plan)
        return tally_sensitivities(plan.reach, declared.neighbours, plan.width)

    def read_cells(self, declared: Declaration, found: tuple[int, ...]) -> Raw:
        """One count, or one for each key."""
        return found[0] if self.by is None else found

    @property
    def keyed_by(self) -> tuple[str, ...]:
        """The columns of the keys."""
        return columns_of(self.by)

    def names(self, declared: Declaration) -> tuple[KeyOrTuple, ...] | None:
        """The keys, if there are any."""
        return None if self.by is None else group_names(declared, self.by, self.keys)

    @property
    def why_no_updates(self) -> str:
        """Later rows of a unit add nothing."""
        return "a unit counts once, so what a row adds depends on the unit's other rows"


class Sum(Request, Value, frozen=True):
    """The sum of a column over the rows that satisfy `where`; with `by`, one sum for each key of those columns.

    A row contributes its value, in one coordinate: the corners are low and high, in any of the coordinates.
    """

    column: str
    where: str | None = None
    by: NamesOrNone = default(None)
    keys: DistinctKeys = None

    def __post_init__(self) -> None:
        """Check the texts and the keys."""
        check_texts(column=self.column, where=self.where)
        check_groups(self.by, self.keys)

    def plan(self, declared: Declaration) -> QueryPlan:
        """Add up steps."""
        number = declared.number(self.column)
        cells = None if self.by is None else by_keys(declared, self.by, self.keys)
        width = None if cells is None else len(cells.keys)
        corners = in_one_cell([(number.least,), (number.most,)], width or 1)
        total = ColumnTotal(declared.find(self.column), number.farthest)
        return QueryPlan(total, corners, self._condition(declared), cells, width, number.grid)

    def read_cells(self, declared: Declaration, found: tuple[int, ...]) -> Raw:
        """One sum, or one for each key."""
        return found[0] if self.by is None else found

    @property
    def keyed_by(self) -> tuple[str, ...]:
        """The columns of the keys."""
        return columns_of(self.by)

    @property
    def why_no_updates(self) -> None:
        """A row adds its value, in one coordinate."""
        return None

    def units(self, declared: Declaration) -> str | None:
        """Those of the column."""
        return declared.number(self.column).units

    def names(self, declared: Declaration) -> tuple[KeyOrTuple, ...] | None:
        """The keys, if there are any."""
        return None if self.by is None else group_names(declared, self.by, self.keys)


class Mean(Request, Value, frozen=True):
    """The mean of a column: one vector request of two coordinates, balanced so that neither drowns the other.

    With `by`, there are two coordinates for each key of those columns, and a row contributes to one pair of them.

    With bounds l and h in steps, a row with value x contributes (2x - l - h, h - l): twice its distance from the
    middle, and the width w = h - l. The corners are (-w, w) and (w, w), so a row moves L1 by 2w, half of it in the
    sum and half in the count. `Averaged.in_units` makes a mean of a noisy answer.
    """

    column: str
    where: str | None = None
    by: NamesOrNone = default(None)
    keys: DistinctKeys = None

    def __post_init__(self) -> None:
        """Check the texts and the keys."""
        check_texts(column=self.column, where=self.where)
        check_groups(self.by, self.keys)

    def plan(self, declared: Declaration) -> QueryPlan:
        """Add up the values, and count the rows that have one."""
        number = declared.number(self.column)
        cells = None if self.by is None else by_keys(declared, self.by, self.keys)
        groups, wide = 1 if cells is None else len(cells.keys), number.most - number.least
        total = ColumnTotal(declared.find(self.column), number.farthest, powers=(1, 0))
        corners = in_one_cell([(-wide, wide), (wide, wide)], groups)
        return QueryPlan(total, corners, self._condition(declared), cells, 2 * groups, number.grid / 2)

    def read_cells(self, declared: Declaration, found: tuple[int, ...]) -> Raw:
        """Centre the sum and scale the count, cell by cell."""
        number = declared.number(self.column)
        middle, wide = number.least + number.most, number.most - number.least
        pairs = ((2 * total - middle * rows, wide * rows) for total, rows in cell_by_cell(found, 2))
        return tuple(chain.from_iterable(pairs))

    def names(self, declared: Declaration) -> tuple[KeyOrTuple, ...] | None:
        """The keys, if there are any: one for each pair."""
        return None if self.by is None else group_names(declared, self.by, self.keys)

    def prepare(self, declared: Declaration, plan: QueryPlan) -> "Averaged":
        """The public facts, with the bounds that turn a noisy answer into a mean."""
        number = declared.number(self.column)
        return Averaged(*self._facts(declared, plan), low=number.low, high=number.high)

    def units(self, declared: Declaration) -> str | None:
        """Those of the column."""
        return declared.number(self.column).units

    @property
    def keyed_by(self) -> tuple[str, ...]:
        """The columns of the keys."""
        return columns_of(self.by)

    @property
    def why_no_updates(self) -> str:
        """Two counters give it."""
        return (
            f"a mean is a ratio of two sums; follow sum({self.column!r}) and count(where='{self.column} IS NOT NULL'), "
            "each with a counter, and divide"
        )


class Histogram(Request, Value, frozen=True):
    """How many rows fall on each key, or between each two edges (the last edge belongs to the last bin).

    A row contributes 1 in at most one coordinate. Keys are given here or were declared, of one column or of several;
    edges are given, of one column, or a number of `bins` cuts it evenly between its declared bounds.
    """

    column: Names
    keys: DistinctKeys = None
    edges: tuple[Fraction, ...] | None = None
    where: str | None = None
    dates: bool = False
    bins: int | None = None

    def __post_init__(self) -> None:
        """Check the texts, and that there are keys, edges or bins, but only one of them."""
        check_texts(where=self.where)
        check_groups(self.column, self.keys)
        if [self.keys, self.edges, self.bins].count(None) < 2:
            raise InvalidRequest("a histogram takes keys, edges or bins, one of them: leave the others out")
        if (self.edges is not None or self.bins is not None) and not isinstance(self.column, str):
            raise InvalidRequest("edges and bins cut one column: leave them out, or ask about one column")
        if self.bins is not None:
            force_setattr(self, "bins", _number_of_bins(self.bins))
        if self.edges is not None:
            edges, dates = ascending(self.edges, "edges", 2)
            force_setattr(self, "edges", edges)
            force_setattr(self, "dates", self.dates or dates)

    def plan(self, declared: Declaration) -> QueryPlan:
        """Count rows by key or by bin."""
        if not self._cuts:
            keyed = by_keys(declared, self.column, self.keys)
            return self._counted(declared, keyed, len(keyed.keys))
        (name,) = columns_of(self.column)
        column, edges = self.cut(declared)
        *lower, last = [edge / column.grid for edge in edges]
        cut = by_threshold(declared, name, column, [*map(ceil, lower), floor(last) + 1])
        return self._counted(declared, cut, len(lower))

    @property
    def _cuts(self) -> bool:
        """Whether it counts by bin."""
        return self.edges is not None or self.bins is not None

    def cut(self, declared: Declaration) -> tuple[Number | Date, tuple[Fraction, ...]]:
        """The column that is cut, and the edges: those that were given, or evenly spaced values of the column."""
        (name,) = columns_of(self.column)
        if self.edges is not None:
            return declared.ordered(name, dates=self.dates), self.edges
        column = declared.ordered(name, dates=isinstance(declared.column(name), Date))
        assert self.bins is not None
        span = column.most - column.least
        if self.bins > span:
            raise InvalidRequest(
                f"{name} is {column.describe()}: between its bounds are {span} steps, which make at most {span} bins; "
                "ask for fewer, or leave bins= out and give edges=[...]"
            )
        return column, tuple((column.least + span * part // self.bins) * column.grid for part in range(self.bins + 1))

    def _counted(self, declared: Declaration, cells: Cells, width: int) -> QueryPlan:
        return QueryPlan(Rows(), in_one_cell([(1,)], width), self._condition(declared), cells, width)

    def read_cells(self, declared: Declaration, found: tuple[int, ...]) -> Raw:
        """One count for each key or bin; rows below the first edge or above the last are not counted."""
        return found[1:-1] if self._cuts else found

    @property
    def keyed_by(self) -> tuple[str, ...]:
        """The columns of the keys, or both ends of a bin."""
        return (f"{self.column}_from", f"{self.column}_to") if self._cuts else columns_of(self.column)

    @property
    def labels(self) -> tuple[tuple[Point, Point], ...] | None:
        """The two edges of each bin."""
        return None if self.edges is None else tuple(pairwise(points(self.edges, self.dates)))

    @property
    def why_no_updates(self) -> None:
        """A row adds 1 to its key or bin."""
        return None

    def names(self, declared: Declaration) -> tuple[KeyOrTuple, ...] | None:
        """The keys; bins have `labels`."""
        return None if self._cuts else group_names(declared, self.column, self.keys)

    def prepare(self, declared: Declaration, plan: QueryPlan) -> PreparedQuery:
        """The public facts, with the edges where they follow from the declaration."""
        if self.bins is None:
            return super().prepare(declared, plan)
        column, edges = self.cut(declared)
        return EvenBins(*self._facts(declared, plan), edges=edges, dates=isinstance(column, Date))


class EvenBins(PreparedQuery, frozen=True, kw_only=True):
    """A prepared histogram whose edges follow from the declared bounds of its column."""

    edges: tuple[Fraction, ...]
    dates: bool

    @property
    def labels(self) -> tuple[tuple[Point, Point], ...]:
        """The two edges of each bin.

        >>> ages = EvenBins(None, 1, 1, 2, Fraction(1), edges=(Fraction(0), Fraction(60), Fraction(120)), dates=False)
        >>> ages.labels
        ((0, 60), (60, 120))
        """
        return tuple(pairwise(points(self.edges, self.dates)))


def _number_of_bins(given: object) -> int:
    try:
        bins = whole(given, 1, "bins")
    except InvalidParameter as error:
        raise InvalidRequest(str(error)) from None
    if bins >= MOST_POINTS:
        raise InvalidRequest(f"a histogram has at most {MOST_POINTS - 1} bins")
    return bins


class Ranks(Request, Value, frozen=True):
    """How many rows are at or below each ascending candidate: a quantile can be computed from it.

    A row contributes 0 up to some candidate and 1 from there on. Differences of such vectors have entries of one sign
    and at most 1, so the corner (1, ..., 1) is the farthest from 0 and from every other corner: one coordinate moves by
    at most `rows`, L1 by `rows` times the number of candidates.
    """

    column: str
    candidates: tuple[Fraction, ...]
    where: str | None = None
    dates: bool = False

    def __post_init__(self) -> None:
        """Check the texts and the candidates."""
        check_texts(column=self.column, where=self.where)
        candidates, dates = ascending(self.candidates, "candidates", 1)
        force_setattr(self, "candidates", candidates)
        force_setattr(self, "dates", self.dates or dates)

    def plan(self, declared: Declaration) -> QueryPlan:
        """Count rows between candidates."""
        column, width = declared.ordered(self.column, dates=self.dates), len(self.candidates)
        above = [floor(candidate / column.grid) + 1 for candidate in self.candidates]
        cells = by_threshold(declared, self.column, column, above)
        return QueryPlan(Rows(), ((1,) * width,), self._condition(declared), cells, width)

    def read_cells(self, declared: Declaration, found: tuple[int, ...]) -> Raw:
        """Prefix sums."""
        return tuple(accumulate(found[:-1]))

    @property
    def keyed_by(self) -> tuple[str, ...]:
        """The column of the candidates."""
        return (self.column,)

    @property
    def labels(self) -> tuple[Point, ...]:
        """The candidates."""
        return points(self.candidates, self.dates)

    @property
    def why_no_updates(self) -> None:
        """A row adds 1 from the first candidate that is not below it."""
        return None


REQUESTS = (Count, CountDistinct, Sum, Mean, Histogram, Ranks)
"""With the choices in `compile.LANGUAGE`, the whole language: exactly these classes, no subclasses."""


@overload
def count(
    where: str | None = None, *, by: None = None, keys: Iterable[KeyOrTuple] | None = None, of: str | None = None
) -> Request[int]: ...
@overload
def count(
    where: str | None = None, *, by: GivenBy, keys: Iterable[KeyOrTuple] | None = None, of: str | None = None
) -> Request[tuple[object, ...]]: ...
def count(
    where: str | None = None,
    *,
    by: GivenBy | None = None,
    keys: Iterable[KeyOrTuple] | None = None,
    of: str | None = None,
) -> Request:
    """How many rows (satisfy `where`), with `by` for each key of one or several columns.

    Keys are given or declared: for several columns tuples, or all combinations of what the columns declare. `of` names
    the source, if there are several (see `Sources`).

    >>> count()
    Count()
    >>> count(by=["carrier", "month"], keys=[("UA", 3), ("AA", 3)])
    Histogram(column=('carrier', 'month'), keys=(('UA', 3), ('AA', 3)))
    """
    if by is None:
        check_groups(None, listed(keys, "keys"))
        return on_source(of, Count(where))
    return on_source(of, Histogram(by, listed(keys, "keys"), None, where))


@overload
def count_distinct(
    where: str | None = None, *, by: None = None, keys: Iterable[KeyOrTuple] | None = None, of: str | None = None
) -> Request[int]: ...
@overload
def count_distinct(
    where: str | None = None, *, by: GivenBy, keys: Iterable[KeyOrTuple] | None = None, of: str | None = None
) -> Request[tuple[object, ...]]: ...
def count_distinct(
    where: str | None = None,
    *,
    by: GivenBy | None = None,
    keys: Iterable[KeyOrTuple] | None = None,
    of: str | None = None,
) -> Request:
    """How many units (have a row that satisfies `where`); with `by`, how many have one with each key.

    >>> count_distinct("age >= 18")
    CountDistinct(where='age >= 18')
    """
    return on_source(of, CountDistinct(where, by, listed(keys, "keys")))


@overload
def mean(
    column: str,
    where: str | None = None,
    *,
    by: None = None,
    keys: Iterable[KeyOrTuple] | None = None,
    low: AnyNumber | None = None,
    high: AnyNumber | None = None,
    step: AnyNumber | None = None,
    of: str | None = None,
) -> Request[Fraction]: ...
@overload
def mean(
    column: str,
    where: str | None = None,
    *,
    by: GivenBy,
    keys: Iterable[KeyOrTuple] | None = None,
    low: AnyNumber | None = None,
    high: AnyNumber | None = None,
    step: AnyNumber | None = None,
    of: str | None = None,
) -> Request[tuple[object, ...]]: ...
def mean(
    column: str,
    where: str | None = None,
    *,
    by: GivenBy | None = None,
    keys: Iterable[KeyOrTuple] | None = None,
    low: AnyNumber | None = None,
    high: AnyNumber | None = None,
    step: AnyNumber | None = None,
    of: str | None = None,
) -> Request:
    """The mean of a column with declared bounds, as a balanced pair of a sum and a count; with `by`, one for each key.

    The column may be an expression; `low`, `high` and `step` clamp and round it (see `sum`).

    >>> mean("age")
    Mean('age')
    >>> mean("age", by="state", keys=["CA", "NY"])
    Mean(column='age', by='state', keys=('CA', 'NY'))
    """
    return on_source(of, Mean(clamped_text(column, low, high, step), where, by, listed(keys, "keys")))


def histogram(
    column: GivenBy,
    keys: Iterable[KeyOrTuple] | None = None,
    edges: Iterable[AnyNumber | Day] | None = None,
    where: str | None = None,
    *,
    bins: int | None = None,
    of: str | None = None,
) -> Request[tuple[object, ...]]:
    """How many rows have each key (given, or declared by the columns), or lie between each two edges of one column.

    `bins` is how many bins of even width cut a column between its declared bounds; their edges are values of the
    column, so that widths differ by one step at most. The last edge belongs to the last bin.

    >>> histogram("state", keys=["CA", "NY"]).keys, histogram("age", bins=20).bins
    (('CA', 'NY'), 20)
    """
    return on_source(of, Histogram(column, listed(keys, "keys"), listed(edges, "edges"), where, bins=bins))


def ranks(
    column: str, candidates: Iterable[AnyNumber | Day], where: str | None = None, *, of: str | None = None
) -> Request[tuple[object, ...]]:
    """How many rows are at or below each of the ascending candidates.

    >>> len(ranks("age", range(0, 121, 10)).candidates)
    13
    """
    return on_source(of, Ranks(column, listed(candidates, "candidates") or (), where))


@overload
def sum(
    column: str,
    where: str | None = None,
    *,
    by: None = None,
    keys: Iterable[KeyOrTuple] | None = None,
    low: AnyNumber | None = None,
    high: AnyNumber | None = None,
    step: AnyNumber | None = None,
    of: str | None = None,
) -> Request[int | Fraction]: ...
@overload
def sum(
    column: str,
    where: str | None = None,
    *,
    by: GivenBy,
    keys: Iterable[KeyOrTuple] | None = None,
    low: AnyNumber | None = None,
    high: AnyNumber | None = None,
    step: AnyNumber | None = None,
    of: str | None = None,
) -> Request[tuple[object, ...]]: ...
def sum(
    column: str,
    where: str | None = None,
    *,
    by: GivenBy | None = None,
    keys: Iterable[KeyOrTuple] | None = None,
    low: AnyNumber | None = None,
    high: AnyNumber | None = None,
    step: AnyNumber | None = None,
    of: str | None = None,
) -> Request:  # shadows the builtin, which this file does not use
    """The sum of a column with declared bounds; with `by`, one for each key of one or several columns.

    Keys are given, or declared by those columns. The column may be an expression over columns; `low` and `high` clamp
    each value and `step` rounds it, where these do not follow from the declaration or leave too much room for noise.

    >>> sum("income", by="state", keys=["CA", "NY"]).by
    'state'
    >>> sum("delay", by=["carrier", "month"], keys=[("UA", 3)]).keys
    (('UA', 3),)
    >>> sum("arr_delay - dep_delay", low=-60, high=60, where="distance > 3 * air_time")
    Sum(column='CLAMP(arr_delay - dep_delay, -60, 60)', where='distance > 3 * air_time')
    """
    return on_source(of, Sum(clamped_text(column, low, high, step), where, by, listed(keys, "keys")))


def by_threshold(declared: Declaration, name: str, column: Number | Date, thresholds: list[int]) -> ByThreshold:
    """Thresholds clamped to the column's range, which changes no cell and keeps them in 64 bits.

    >>> from counterpoint.schema.columns import number
    >>> from counterpoint.schema.declaration import Named
    >>> people = Declaration(None, 1, "replace", (Named("age", number(0, 120)),))
    >>> by_threshold(people, "age", number(0, 120), [-5, 18, 2**70])
    ByThreshold(column=0, thresholds=(0, 18, 121), span=121)
    """
    inside = tuple(min(max(threshold, column.least), column.most + 1) for threshold in thresholds)
    return ByThreshold(declared.find(name), inside, column.most - column.least + 1)

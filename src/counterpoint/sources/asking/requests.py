"""Requests: what a table answers. A closed language of total functions with known sensitivities.

A request is a frozen value that names columns and carries a `where` as text. Checked against a declaration it becomes a
`QueryPlan` and a `Prepared`, from public facts alone; `read_cells` arranges the integers of the engine in the shape of
the answer. Group keys, edges and candidates are given or declared, never read from the data.

>>> from counterpoint.sources.asking.requests import count, histogram
>>> count(where="state = 'CA'")
Count(where="state = 'CA'")
>>> histogram("age", edges=[0, 18, 65, 120]).edges[1]
18
"""

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from datetime import date as Day  # noqa: N812 - next to what a data person calls date(low, high)
from fractions import Fraction
from itertools import accumulate, chain
from math import ceil, floor
from typing import Any, overload

from msgspec import UNSET, UnsetType
from msgspec.structs import force_setattr

from counterpoint.encoding import Plain, Tagged, Value
from counterpoint.errors import InvalidRequest, NotCovered
from counterpoint.mechanisms.mechanism import Chosen
from counterpoint.numbers import Number as AnyNumber
from counterpoint.numbers.parameters import default
from counterpoint.privacy.secret import Raw
from counterpoint.privacy.tally import Tally
from counterpoint.sources.asking.about import about
from counterpoint.sources.asking.arguments import ascending, check_texts, listed
from counterpoint.sources.asking.conditions import Condition
from counterpoint.sources.asking.grouping import (
    By,
    DistinctKeys,
    DistinctKeysOrUnset,
    GivenBy,
    Names,
    NamesOrNone,
    NamesOrUnset,
    by_keys,
    cell_by_cell,
    check_groups,
    columns_of,
    group_names,
    in_one_cell,
    or_unset,
)
from counterpoint.sources.asking.sensitivity import Sensitivities, one_way, sum_sensitivities
from counterpoint.sources.asking.where import condition
from counterpoint.sources.declaring.columns import KeyOrTuple, Number
from counterpoint.sources.declaring.dates import Date
from counterpoint.sources.declaring.declaration import Declaration
from counterpoint.sources.engines.emitter import tally
from counterpoint.sources.engines.query_plan import ByThreshold, Cells, ColumnTotal, QueryPlan, Rows, Units
from counterpoint.sources.source import Prepared


class Request(Tagged):
    """A question for a table."""

    __slots__ = ()
    where: str | None

    @abstractmethod
    def plan(self, declared: Declaration) -> QueryPlan:
        """The plan of this request on a declaration, or `InvalidRequest`."""

    def read_cells(self, declared: Declaration, found: tuple[int, ...]) -> Raw:
        """The answer in its public shape, from one integer per cell."""
        return found[0]

    def read_rows(self, declared: Declaration, plan: QueryPlan, fetched: Sequence[Sequence[Any]]) -> Raw | Tally:
        """The answer, from the rows that the engine returned for the plan."""
        return self.read_cells(declared, tally(plan, fetched))

    @property
    def keyed_by(self) -> tuple[str, ...]:
        """The columns whose keys name the values of the answer; none where they are numbered."""
        return ()

    @property
    def unfollowed(self) -> str | None:
        """Why no mechanism can follow this request as rows arrive; None if its answer is a sum over rows.

        Such a sum adds up `read_cells` of each row alone, so `read_cells` must be linear.
        """
        return "its answer is not a sum of what each row adds by itself"

    def sensitivities(self, declared: Declaration, plan: QueryPlan) -> Sensitivities:
        """How far the answer can move in the L1 norm, in the squared L2 norm and in each coordinate."""
        return sum_sensitivities(plan.corners, 1 if plan.once else declared.rows_per_unit, declared.neighbours)

    def prepare(self, declared: Declaration, plan: QueryPlan) -> Prepared:
        """Everything public about the answer; `plan` is this request's plan on the same declaration."""
        return Prepared(*self._facts(declared, plan))

    def _facts(self, declared: Declaration, plan: QueryPlan) -> tuple[Any, ...]:
        """The public facts of the answer, in the order of the fields of `Prepared`."""
        most, up = self.sensitivities(declared, plan), one_way(plan.corners, declared.neighbours)
        return self, most.l1, most.squared, plan.width, plan.grid, most.each, up, self.names(declared)

    def names(self, declared: Declaration) -> tuple[KeyOrTuple, ...] | None:
        """The names of the values that `in_units` gives, in the user's units; None if they have none."""
        return None

    def _condition(self, declared: Declaration) -> Condition | None:
        return None if self.where is None else condition(self.where, declared)


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
    def unfollowed(self) -> None:
        """A row adds 1."""
        return None


class CountDistinct(Request, Value, frozen=True):
    """How many units have a row that satisfies `where`. A unit contributes 0 or 1, whatever its rows."""

    where: str | None = None

    def __post_init__(self) -> None:
        """Check the text."""
        check_texts(where=self.where)

    def plan(self, declared: Declaration) -> QueryPlan:
        """Count units; with one row per unit that is counting rows."""
        adds = Rows() if declared.rows_per_unit == 1 else Units()
        return QueryPlan(adds, ((1,),), self._condition(declared), once=True)

    @property
    def unfollowed(self) -> str:
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
        return QueryPlan(
            ColumnTotal(declared.find(self.column)), corners, self._condition(declared), cells, width, number.grid
        )

    def read_cells(self, declared: Declaration, found: tuple[int, ...]) -> Raw:
        """One sum, or one for each key."""
        return found[0] if self.by is None else found

    @property
    def keyed_by(self) -> tuple[str, ...]:
        """The columns of the keys."""
        return () if self.by is None else columns_of(self.by)

    @property
    def unfollowed(self) -> None:
        """A row adds its value, in one coordinate."""
        return None

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
    by: NamesOrUnset = default(UNSET)
    keys: DistinctKeysOrUnset = UNSET

    def __post_init__(self) -> None:
        """Check the texts and the keys."""
        check_texts(column=self.column, where=self.where)
        check_groups(*self._groups)

    @property
    def _groups(self) -> tuple[By | None, tuple[KeyOrTuple, ...] | None]:
        """The columns and the keys to group by; None where nothing was given."""
        by, keys = self.by, self.keys
        return None if isinstance(by, UnsetType) else by, None if isinstance(keys, UnsetType) else keys

    def plan(self, declared: Declaration) -> QueryPlan:
        """Add up the values, and count the rows that have one."""
        number, (by, keys) = declared.number(self.column), self._groups
        cells = None if by is None else by_keys(declared, by, keys)
        groups, wide = 1 if cells is None else len(cells.keys), number.most - number.least
        total = ColumnTotal(declared.find(self.column), powers=(1, 0))
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
        by, keys = self._groups
        return None if by is None else group_names(declared, by, keys)

    def prepare(self, declared: Declaration, plan: QueryPlan) -> "Averaged":
        """The public facts, with the bounds that turn a noisy answer into a mean."""
        number = declared.number(self.column)
        return Averaged(*self._facts(declared, plan), low=number.low, high=number.high)

    @property
    def keyed_by(self) -> tuple[str, ...]:
        """The columns of the keys."""
        return () if self.by is UNSET else columns_of(self.by)

    @property
    def unfollowed(self) -> str:
        """Two counters give it."""
        return (
            f"a mean is a ratio of two sums; follow sum({self.column!r}) and count(where='{self.column} IS NOT NULL'), "
            "each with a counter, and divide"
        )


class Histogram(Request, Value, frozen=True):
    """How many rows fall on each key, or between each two edges (the last edge belongs to the last bin).

    A row contributes 1 in at most one coordinate. Keys are given here or were declared, of one column or of several;
    edges are given, of one column.
    """

    column: Names
    keys: DistinctKeys = None
    edges: tuple[Fraction, ...] | None = None
    where: str | None = None
    dates: bool = False

    def __post_init__(self) -> None:
        """Check the texts, and that there are keys or edges but not both."""
        check_texts(where=self.where)
        check_groups(self.column, self.keys)
        if self.keys is not None and self.edges is not None:
            raise InvalidRequest("a histogram takes keys or edges, not both: leave one of them out")
        if self.edges is not None and not isinstance(self.column, str):
            raise InvalidRequest("edges cut one column: leave them out, or ask about one column")
        if self.edges is not None:
            edges, dates = ascending(self.edges, "edges", 2)
            force_setattr(self, "edges", edges)
            force_setattr(self, "dates", self.dates or dates)

    def plan(self, declared: Declaration) -> QueryPlan:
        """Count rows by key or by bin."""
        if self.edges is None:
            keyed = by_keys(declared, self.column, self.keys)
            return self._counted(declared, keyed, len(keyed.keys))
        (name,) = columns_of(self.column)
        column = declared.ordered(name, dates=self.dates)
        *lower, last = [edge / column.grid for edge in self.edges]
        cut = by_threshold(declared, name, column, [*map(ceil, lower), floor(last) + 1])
        return self._counted(declared, cut, len(lower))

    def _counted(self, declared: Declaration, cells: Cells, width: int) -> QueryPlan:
        return QueryPlan(Rows(), in_one_cell([(1,)], width), self._condition(declared), cells, width)

    def read_cells(self, declared: Declaration, found: tuple[int, ...]) -> Raw:
        """One count for each key or bin; rows below the first edge or above the last are not counted."""
        return found if self.edges is None else found[1:-1]

    @property
    def keyed_by(self) -> tuple[str, ...]:
        """The columns of the keys; bins are numbered."""
        return columns_of(self.column) if self.edges is None else ()

    @property
    def unfollowed(self) -> None:
        """A row adds 1 to its key or bin."""
        return None

    def names(self, declared: Declaration) -> tuple[KeyOrTuple, ...] | None:
        """The keys; bins are numbered."""
        return group_names(declared, self.column, self.keys) if self.edges is None else None


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
    def unfollowed(self) -> None:
        """A row adds 1 from the first candidate that is not below it."""
        return None


REQUESTS = (Count, CountDistinct, Sum, Mean, Histogram, Ranks)
"""Together with `choices.CHOICES` the whole language: exactly these classes, no subclasses."""


class Averaged(Prepared, frozen=True, kw_only=True):
    """A prepared mean: in units, a noisy pair becomes the mean, or None if the noisy count is not above 0.

    Where there are names, the answer has a pair for each of them.
    """

    low: Fraction
    high: Fraction

    def in_units(self, answer: Plain) -> object:
        """The middle plus half the width times the ratio of the coordinates, clamped to the bounds.

        >>> ages = Averaged(None, 240, 28_800, 2, Fraction(1, 2), low=Fraction(0), high=Fraction(120))
        >>> ages.in_units((-120, 240)), ages.in_units((5, 0))
        (Fraction(30, 1), None)
        """
        if not isinstance(answer, tuple):
            return answer.index if isinstance(answer, Chosen) else super().in_units(answer)  # a pair has one name
        means = tuple(self._mean(*pair) for pair in cell_by_cell(answer, 2))
        return means[0] if self.names is None else means

    def _mean(self, centred: Plain, weighed: Plain) -> Fraction | None:
        assert isinstance(centred, int) and isinstance(weighed, int)
        if weighed <= 0:
            return None
        return self._at(Fraction(centred, weighed))

    def _at(self, ratio: Fraction) -> Fraction:
        middle, half = (self.low + self.high) / 2, (self.high - self.low) / 2
        return min(max(middle + half * ratio, self.low), self.high)

    @property
    def states_error(self) -> bool:
        """From the noisy sum and count."""
        return True

    @property
    def together(self) -> int:
        """A sum and a count."""
        return 2

    def error_in_units(self, steps: int) -> Fraction:
        """It depends on how many rows there are."""
        raise NotCovered(
            "the error of a mean depends on how many rows it is a mean of, so that none is stated before it is asked: "
            "give ask() an epsilon=, and the answer states its error; or ask for a sum and a count, each with error="
        )

    def error_from(self, answer: Plain, steps: int) -> Fraction:
        """The farthest mean that a sum and a count within so many steps of the noisy ones have.

        A noisy count that could be noise alone says nothing: then it is the farther of the two bounds.

        >>> ages = Averaged(None, 240, 28_800, 2, Fraction(1, 2), low=Fraction(0), high=Fraction(120))
        >>> ages.error_from((-12_000, 24_000), 240), ages.error_from((-120, 240), 240)
        (Fraction(10, 11), Fraction(90, 1))
        """
        assert isinstance(answer, tuple)
        centred, weighed = answer
        assert isinstance(centred, int) and isinstance(weighed, int)
        mean = self._at(Fraction(centred, weighed))
        if weighed <= steps:
            return max(mean - self.low, self.high - mean)
        corners = [(centred + a, weighed + b) for a in (-steps, steps) for b in (-steps, steps)]
        return max(abs(self._at(Fraction(*corner)) - mean) for corner in corners)


@overload
def count(where: str | None = None, *, of: str | None = None) -> Count: ...
@overload
def count(
    where: str | None = None, *, by: GivenBy, keys: Iterable[KeyOrTuple] | None = None, of: str | None = None
) -> Histogram: ...
def count(
    where: str | None = None,
    *,
    by: GivenBy | None = None,
    keys: Iterable[KeyOrTuple] | None = None,
    of: str | None = None,
) -> Count | Histogram:
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
        return about(of, Count(where))
    return about(of, Histogram(by, listed(keys, "keys"), None, where))


def count_distinct(where: str | None = None, *, of: str | None = None) -> CountDistinct:
    """How many units (have a row that satisfies `where`).

    >>> count_distinct("age >= 18")
    CountDistinct(where='age >= 18')
    """
    return about(of, CountDistinct(where))


def mean(
    column: str,
    where: str | None = None,
    by: GivenBy | None = None,
    keys: Iterable[KeyOrTuple] | None = None,
    *,
    of: str | None = None,
) -> Mean:
    """The mean of a column with declared bounds, as a balanced pair of a sum and a count; with `by`, one for each key.

    >>> mean("age")
    Mean('age')
    >>> mean("age", by="state", keys=["CA", "NY"])
    Mean(column='age', by='state', keys=('CA', 'NY'))
    """
    return about(of, Mean(column, where, or_unset(by), or_unset(listed(keys, "keys"))))


def histogram(
    column: GivenBy,
    keys: Iterable[KeyOrTuple] | None = None,
    edges: Iterable[AnyNumber | Day] | None = None,
    where: str | None = None,
    *,
    of: str | None = None,
) -> Histogram:
    """How many rows have each key (given, or declared by the columns), or lie between each two edges of one column.

    >>> histogram("state", keys=["CA", "NY"]).keys
    ('CA', 'NY')
    """
    return about(of, Histogram(column, listed(keys, "keys"), listed(edges, "edges"), where))


def ranks(
    column: str, candidates: Iterable[AnyNumber | Day], where: str | None = None, *, of: str | None = None
) -> Ranks:
    """How many rows are at or below each of the ascending candidates.

    >>> len(ranks("age", range(0, 121, 10)).candidates)
    13
    """
    return about(of, Ranks(column, listed(candidates, "candidates") or (), where))


def sum(
    column: str,
    where: str | None = None,
    by: GivenBy | None = None,
    keys: Iterable[KeyOrTuple] | None = None,
    *,
    of: str | None = None,
) -> Sum:  # shadows the builtin, which this file does not use
    """The sum of a column with declared bounds; with `by`, one for each key of one or several columns.

    Keys are given, or declared by those columns.

    >>> sum("income", by="state", keys=["CA", "NY"]).by
    'state'
    >>> sum("delay", by=["carrier", "month"], keys=[("UA", 3)]).keys
    (('UA', 3),)
    """
    return about(of, Sum(column, where, by, listed(keys, "keys")))


def by_threshold(declared: Declaration, name: str, column: Number | Date, thresholds: list[int]) -> ByThreshold:
    """Thresholds clamped to the column's range, which changes no cell and keeps them in 64 bits.

    >>> from counterpoint.sources.declaring.columns import number
    >>> from counterpoint.sources.declaring.declaration import Named
    >>> people = Declaration(None, 1, "replace", (Named("age", number(0, 120)),))
    >>> by_threshold(people, "age", number(0, 120), [-5, 18, 2**70])
    ByThreshold(column=0, thresholds=(0, 18, 121), span=121)
    """
    inside = tuple(min(max(threshold, column.least), column.most + 1) for threshold in thresholds)
    return ByThreshold(declared.find(name), inside, column.most - column.least + 1)

"""Several aggregates at once: one request, one launch, one table with a value column for each.

The integers of all parts are one vector, on which noise is drawn once. What several parts have in common, such as the
number of rows under two means, is in it once, and every part is computed from its numbers in the released vector.
`statistics` says which numbers these are, how far a unit moves them, and how the budget is divided between them.

>>> from counterpoint.queries.aggregates import count, mean
>>> select(n=count(), late=mean("delay"), by="carrier").names_of_parts
('n', 'late')
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import accumulate, chain
from math import floor
from typing import Any, NamedTuple, overload

from msgspec.structs import replace

from counterpoint.encoding import Plain, Value
from counterpoint.errors import InvalidRequest, NotCovered
from counterpoint.privacy.secret import Raw
from counterpoint.queries.aggregates import Count, CountDistinct, Histogram, Mean, Sum
from counterpoint.queries.grouping import By, GivenBy, cell_by_cell, check_groups, read_by
from counterpoint.queries.plan import EITHER_WAY, QueryPlan, Together, tally
from counterpoint.queries.request import Averaged, OnSource, PreparedQuery, Request, on_source
from counterpoint.queries.sensitivity import Sensitivities
from counterpoint.queries.statistics import (
    AGGREGATES,
    COUNTS,
    Aggregate,
    Noise,
    Statistic,
    sensitivities,
    statistic_of,
    statistics,
    weights,
)
from counterpoint.queries.variance import Dispersed, Variance
from counterpoint.schema.arguments import listed
from counterpoint.schema.columns import KeyOrTuple
from counterpoint.schema.declaration import Declaration

MOST_PARTS = 50


class ReleasedPlace(NamedTuple):
    """One number of a statistic, in every cell."""

    statistic: int
    at: int


class Select(Request, Value, frozen=True):
    """Several requests over the same cells, by name; each is a count, a sum, a mean, a variance or a deviation."""

    names_of_parts: tuple[str, ...]
    requests: tuple[Plain, ...]
    # The noise that the budget is divided for; None is Laplace noise.
    noise: Noise | None = None

    def __post_init__(self) -> None:
        """Check the names, and that all parts are aggregates over the same cells."""
        named = [name for name in self.names_of_parts if name.isidentifier()]
        if not 1 <= len(set(named)) == len(self.requests) == len(self.names_of_parts) <= MOST_PARTS:
            raise InvalidRequest(f"select takes 1 to {MOST_PARTS} aggregates by different names, as in n=count()")
        if self.noise not in (None, "laplace", "gaussian"):
            raise InvalidRequest("noise is 'laplace' or 'gaussian': that of the mechanism which will be asked")
        if not all(type(part) in AGGREGATES for part in self.requests):
            raise InvalidRequest(
                "select takes count, count_distinct, sum, mean, variance and stdev; ask for anything else by itself"
            )

    @property
    def _parts(self) -> tuple[Aggregate, ...]:
        return tuple(part for part in self.requests if isinstance(part, AGGREGATES))

    @property
    def _places(self) -> tuple[tuple[ReleasedPlace, ...], ...]:
        """For each part, the statistics that it is computed from, and which of their numbers."""
        found = statistics(self._parts)
        numbers = {statistic_of(statistic.request): number for number, statistic in enumerate(found)}
        return tuple(tuple(_places(part, found, numbers[statistic_of(part)])) for part in self._parts)

    def plan(self, declared: Declaration) -> QueryPlan:
        """Add up every statistic over its own rows."""
        cells = self._parts[0].plan(declared).cells
        if any(part.plan(declared).cells != cells for part in self._parts):
            raise InvalidRequest("all aggregates of a select have the same groups: give by= and keys= to select itself")
        found = statistics(self._parts)
        plans = tuple(statistic.request.plan(declared) for statistic in found)
        used = Counter(place.statistic for places in self._places for place in places)
        times = weights(
            found,
            [used[number] for number in range(len(found))],
            declared,
            plans,
            "laplace" if self.noise is None else self.noise,
        )
        return QueryPlan(Together(plans, times), EITHER_WAY, None, cells, sum(plan.width or 1 for plan in plans))

    def read_rows(self, declared: Declaration, plan: QueryPlan, fetched: Sequence[Sequence[Any]]) -> Raw:
        """The integers of each statistic in turn, each times its weight in this very plan."""
        plans, times = _together(plan)
        cells, values, start = cell_by_cell(tally(plan, fetched), plan.adds.sums), list[list[int]](), 0
        for statistic, its in zip(statistics(self._parts), plans, strict=True):
            end = start + its.adds.sums
            found = tuple(chain.from_iterable(cell[start:end] for cell in cells))
            rows = () if statistic.rows is None else values[statistic.rows]
            values.append(statistic.read(declared, its, found, rows))
            start = end
        return tuple(weight * value for weight, its in zip(times, values, strict=True) for value in its)

    def sensitivities(self, declared: Declaration, plan: QueryPlan) -> Sensitivities:
        """Those of all statistics, each times its weight."""
        return sensitivities(statistics(self._parts), declared, plan, *_together(plan))

    def names(self, declared: Declaration) -> tuple[KeyOrTuple, ...] | None:
        """The keys of the cells, if there are any."""
        return self._parts[0].names(declared)

    @property
    def keyed_by(self) -> tuple[str, ...]:
        """The columns of the keys."""
        return self._parts[0].keyed_by

    def prepare(self, declared: Declaration, plan: QueryPlan) -> "Selected":
        """The public facts, with those of each part on the grid of the weighted integers."""
        plans, times = _together(plan)
        found = statistics(self._parts)
        starts = list(accumulate((its.width or 1 for its in plans), initial=0))
        facts, takes = [], []
        for part, places in zip(self._parts, self._places, strict=True):
            number = places[0].statistic
            its = part.prepare(declared, part.plan(declared))
            rows = found[number].rows
            shared = None if rows is None else times[rows]
            facts.append(_on_grid(its, found[number], plans[number], times[number], shared))
            takes.append(tuple((starts[place.statistic], found[place.statistic].size, place.at) for place in places))
        groups = (plans[0].width or 1) // found[0].size
        return Selected(
            *self._facts(declared, plan),
            of=self.names_of_parts,
            each_part=tuple(facts),
            takes=tuple(takes),
            groups=groups,
        )

    @property
    def why_no_updates(self) -> str:
        """One part can be."""
        return "it has several parts; follow each with a mechanism of its own"


SELECTS = (Select,)
"""Together with the lists of the other modules the whole language: exactly these classes, no subclasses."""


class WholeCount(PreparedQuery, frozen=True):
    """A prepared count on a finer grid than that of the counts: in units it is rounded to a whole number."""

    def in_units(self, answer: Plain) -> object:
        """Whole numbers.

        >>> WholeCount(None, 1, 1, None, Fraction(1, 1000)).in_units(41_500)
        42
        """
        if isinstance(answer, tuple):
            return tuple(map(self.in_units, answer))
        return floor(answer * self.grid + Fraction(1, 2)) if isinstance(answer, int) else answer

    @property
    def states_error(self) -> bool:
        """That of the integers, rounded as well."""
        return True

    def error_in_units(self, steps: int) -> int:
        """The truth is a whole number: a rounded count is off by at most the rounded error."""
        return floor(steps * self.grid + Fraction(1, 2))


class Shared(PreparedQuery, frozen=True, kw_only=True):
    """A prepared mean or variance whose count is shared: the last two of its numbers are rows without value, and rows.

    A row moves them by `own` and by `rows`. With every other number times `rows`, all of them are on one grid, on which
    the number of rows with a value is the difference of the two.
    """

    alone: Plain
    own: int
    rows: int

    @property
    def _base(self) -> Averaged | Dispersed:
        assert isinstance(self.alone, Averaged | Dispersed)
        return self.alone

    def _balanced(self, cell: tuple[Plain, ...]) -> tuple[int, ...]:
        *sums, without, counted = [number for number in cell if isinstance(number, int)]
        return *(self.rows * value for value in sums), self.own * counted - self.rows * without

    def in_units(self, answer: Plain) -> object:
        """The mean or variance, from the sums and the rows that have a value.

        >>> ages = Averaged(None, 240, 28_800, 2, Fraction(1, 2), low=Fraction(0), high=Fraction(120))
        >>> Shared(None, 240, 28_800, 2, Fraction(1, 2), alone=ages, own=120, rows=1000).in_units((-60, 120, 2000))
        30
        """
        if not isinstance(answer, tuple):
            return self._base.in_units(answer)
        cells = cell_by_cell(answer, self.simultaneous_values)
        return self._base.in_units(tuple(chain.from_iterable(map(self._balanced, cells))))

    @property
    def states_error(self) -> bool:
        """From all its numbers."""
        return True

    @property
    def simultaneous_values(self) -> int:
        """One more than alone."""
        return self._base.simultaneous_values + 1

    def signal(self, answer: Plain) -> int:
        """The count, in units of what noise of one step in both of its numbers moves it by at most."""
        assert isinstance(answer, tuple)
        return abs(self._balanced(answer)[-1]) // (self.own + self.rows)

    def error_in_units(self, steps: int) -> int | Fraction:
        """It depends on how many rows there are."""
        return self._base.error_in_units(steps)

    def error_from(self, answer: Plain, steps: int) -> Fraction:
        """That of sums and a count whose numbers are each off by `steps`."""
        assert isinstance(answer, tuple)
        return self._base.error_within(self._balanced(answer), steps * self.rows, steps * (self.own + self.rows))


class Selected(PreparedQuery, frozen=True, kw_only=True):
    """Several prepared requests, whose integers are one vector: in units, an answer for each name.

    There are `groups` cells. A part takes numbers of each: a triple says where a statistic starts, how many numbers it
    has in a cell, and which of them is taken.
    """

    of: tuple[str, ...]
    each_part: tuple[Plain, ...]
    takes: tuple[tuple[tuple[int, int, int], ...], ...]
    groups: int

    def parts(self, answer: Plain) -> Mapping[str, tuple[PreparedQuery, Plain]]:
        """For each name its public facts, and its numbers, cell by cell."""
        if not isinstance(answer, tuple):
            return {}
        found: dict[str, tuple[PreparedQuery, Plain]] = {}
        for name, facts, taken in zip(self.of, self.each_part, self.takes, strict=True):
            assert isinstance(facts, PreparedQuery)
            share = tuple(answer[start + size * cell + at] for cell in range(self.groups) for start, size, at in taken)
            found[name] = (facts, share[0] if facts.width is None else share)
        return found

    def in_units(self, answer: Plain) -> object:
        """A dictionary of answers by their names."""
        shares = self.parts(answer)
        return {name: facts.in_units(share) for name, (facts, share) in shares.items()} if shares else answer

    @property
    def states_error(self) -> bool:
        """Each part states its own."""
        return False

    def error_in_units(self, steps: int) -> Fraction:
        """Its parts have different units."""
        raise NotCovered(
            "several aggregates have several errors, each in its own units, so none is stated before they are asked: "
            "give ask() an epsilon=, and every number states its error; or ask for one aggregate with error="
        )


def _places(part: Aggregate, found: Sequence[Statistic], number: int) -> Iterator[ReleasedPlace]:
    """A mean takes the last two numbers of a statistic, which may be that of a variance; and a shared count."""
    size, rows = found[number].size, found[number].rows
    for at in range(size - 2 if isinstance(part, Mean) else 0, size):
        yield ReleasedPlace(number, at)
    if rows is not None:
        yield ReleasedPlace(rows, 0)


def _together(plan: QueryPlan) -> tuple[tuple[QueryPlan, ...], tuple[int, ...]]:
    assert isinstance(plan.adds, Together)
    return plan.adds.plans, plan.adds.weights


def _on_grid(
    facts: PreparedQuery, statistic: Statistic, its: QueryPlan, weight: int, rows: int | None
) -> PreparedQuery:
    """The facts of a part whose statistic has this weight, and whose count, if it is shared, has the weight `rows`."""
    grid = facts.grid / weight
    if isinstance(statistic.request, COUNTS):
        return WholeCount(*_fields(facts, grid))
    if rows is None:
        return replace(facts, grid=grid)
    return Shared(*_fields(facts, grid), alone=facts, own=weight * statistic.weight(its), rows=rows)


def _fields(facts: PreparedQuery, grid: Fraction) -> tuple[Any, ...]:
    """The fields of `PreparedQuery`, on another grid."""
    head = (facts.request, facts.sensitivity, facts.squared, facts.width, grid, facts.each)
    return *head, facts.one_way, facts.names, facts.units


@overload
def select(
    *unnamed: object,
    by: None = None,
    keys: None = None,
    of: str | None = None,
    noise: Noise | None = None,
    **parts: Request,
) -> Request[Mapping[str, object]]: ...
@overload
def select(
    *unnamed: object,
    by: GivenBy,
    keys: Iterable[KeyOrTuple] | None = None,
    of: str | None = None,
    noise: Noise | None = None,
    **parts: Request,
) -> Request[Mapping[str, tuple[object, ...]]]: ...
def select(
    *unnamed: object,
    by: GivenBy | None = None,
    keys: Iterable[KeyOrTuple] | None = None,
    of: str | None = None,
    noise: Noise | None = None,
    **parts: Request,
) -> Request:
    """Several aggregates at once, by name; with `by`, for each key of those columns.

    Numbers that they have in common, such as the count under two means, are released once. The budget is divided so
    that the sum of the errors of the released numbers is least: each error counts in units of what one row can move of
    the number, and once for each part that uses it. That depends on the kind of noise: `session.ask` divides for
    Gaussian noise where the price is a `rho` or a `mu`. Say `noise="gaussian"` if you ask a handle of a `Gaussian`.

    >>> from counterpoint.queries.aggregates import count, sum
    >>> select(n=count("age >= 18"), owed=sum("debt")).requests
    (Count(where='age >= 18'), Sum('debt'))
    """
    if unnamed:
        raise InvalidRequest(
            "give each aggregate a name, which its column will have, as in select(n=count(), by='state')"
        )
    cells = listed(keys, "keys")
    columns = None if by is None else read_by(by)
    check_groups(columns, cells)
    asked = parts.values() if columns is None else [_grouped(*part, columns, cells) for part in parts.items()]
    return on_source(of, Select(tuple(parts), tuple(asked), noise))


def divided_for(request: object, noise: Noise) -> object:
    """A select that divides the budget for this noise, unless it names another; any other request as it is.

    >>> from counterpoint.queries.aggregates import count
    >>> divided_for(select(n=count()), "gaussian").noise, divided_for(count(), "gaussian")
    ('gaussian', Count())
    """
    if isinstance(request, OnSource):
        return replace(request, request=divided_for(request.request, noise))
    return replace(request, noise=noise) if isinstance(request, Select) and request.noise is None else request


def _grouped(name: str, part: Request, by: By, keys: tuple[KeyOrTuple, ...] | None) -> Request:
    """A part for each key of these columns."""
    if isinstance(part, Count):
        return Histogram(by, keys, None, part.where)
    if isinstance(part, Sum | Variance) and part.by is None:
        return replace(part, by=by, keys=keys)
    if isinstance(part, Mean | CountDistinct) and not part.keyed_by:
        return replace(part, by=by, keys=keys)
    raise InvalidRequest(
        f"{name} must be a count, count_distinct, sum, mean, variance or stdev, without a by= of its own"
    )

"""Several aggregates at once: one request, one launch, one table with a value column for each.

The integers of all parts are one vector, on which noise is drawn once. Noise of a given size is added to every integer,
so each part p is first multiplied by a whole number w_p, which decides how the budget is divided. If one unit moves
part p by at most s_p in L1 and by q_p in squared L2, it moves the vector by at most sum w_p s_p and sum w_p^2 q_p: the
norms of a vector are those of its parts, added up. Of an epsilon, part p thus has the share w_p s_p / sum w_p s_p, and
its noise, measured in what one unit can move of it, is the inverse of its share. The sum of these is least where all
shares are equal, so w_p is proportional to 1/s_p, rounded to a thousandth.

>>> from counterpoint.sources.asking.requests import count, mean
>>> select(n=count(), late=mean("delay"), by="carrier").names_of_parts
('n', 'late')
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import chain
from math import floor
from typing import Any

from msgspec.structs import replace

from counterpoint.encoding import Plain, Value
from counterpoint.errors import InvalidRequest, NotCovered
from counterpoint.privacy.secret import Raw
from counterpoint.sources.asking.about import about
from counterpoint.sources.asking.arguments import listed
from counterpoint.sources.asking.grouping import GivenBy, cell_by_cell, check_groups, or_unset, read_by
from counterpoint.sources.asking.request import Request
from counterpoint.sources.asking.requests import Count, CountDistinct, Histogram, Mean, Sum
from counterpoint.sources.asking.sensitivity import Sensitivities
from counterpoint.sources.asking.variances import Variance
from counterpoint.sources.declaring.columns import KeyOrTuple
from counterpoint.sources.declaring.declaration import Declaration
from counterpoint.sources.engines.emitter import tally
from counterpoint.sources.engines.query_plan import EITHER_WAY, QueryPlan, Together
from counterpoint.sources.source import Prepared

MOST_PARTS = 50
FINE = 1000
"""Shares of the budget are equal up to one part in so many."""

_COUNTS = (Count, Histogram, CountDistinct)


class Select(Request, Value, frozen=True):
    """Several requests over the same cells, by name; each is a count, a sum, a mean, a variance or a deviation."""

    names_of_parts: tuple[str, ...]
    requests: tuple[Plain, ...]

    def __post_init__(self) -> None:
        """Check the names, and that all parts are aggregates over the same cells."""
        named = [name for name in self.names_of_parts if name.isidentifier()]
        if not 1 <= len(set(named)) == len(self.requests) == len(self.names_of_parts) <= MOST_PARTS:
            raise InvalidRequest(f"select takes 1 to {MOST_PARTS} aggregates by different names, as in n=count()")
        if not all(type(part) in (*_COUNTS, Sum, Mean, Variance) for part in self.requests):
            raise InvalidRequest(
                "select takes count, count_distinct, sum, mean, variance and stdev; ask for anything else by itself"
            )

    @property
    def _parts(self) -> tuple[Request, ...]:
        return tuple(part for part in self.requests if isinstance(part, Request))

    def plan(self, declared: Declaration) -> QueryPlan:
        """Add up what all parts add up, over the rows of each; the weights make all parts move equally far in L1."""
        plans = tuple(part.plan(declared) for part in self._parts)
        if any(plan.cells != plans[0].cells for plan in plans):
            raise InvalidRequest("all aggregates of a select have the same groups: give by= and keys= to select itself")
        moves = [part.sensitivities(declared, plan).l1 for part, plan in zip(self._parts, plans, strict=True)]
        together = Together(plans, tuple(FINE * max(moves) // move for move in moves))
        return QueryPlan(together, EITHER_WAY, None, plans[0].cells, sum(plan.width or 1 for plan in plans))

    def _weighted(self, plan: QueryPlan) -> Iterator[tuple[Request, QueryPlan, int]]:
        """Each part with its plan and its weight: those of this very plan, so that noise and answer agree on them."""
        assert isinstance(plan.adds, Together)
        return zip(self._parts, plan.adds.plans, plan.adds.weights, strict=True)

    def read_rows(self, declared: Declaration, plan: QueryPlan, fetched: Sequence[Sequence[Any]]) -> Raw:
        """The integers of each part in turn, each times its weight."""
        cells, values, start = cell_by_cell(tally(plan, fetched), plan.adds.sums), [], 0
        for part, its, weight in self._weighted(plan):
            end = start + its.adds.sums
            raw = part.read_cells(declared, tuple(chain.from_iterable(cell[start:end] for cell in cells)))
            values += [weight * value for value in (raw if isinstance(raw, tuple) else (raw,))]
            start = end
        return tuple(values)

    def sensitivities(self, declared: Declaration, plan: QueryPlan) -> Sensitivities:
        """Those of the parts, weighted and added up."""
        moves = [(weight, part.sensitivities(declared, its)) for part, its, weight in self._weighted(plan)]
        return Sensitivities(
            l1=sum(weight * move.l1 for weight, move in moves),
            squared=sum(weight**2 * move.squared for weight, move in moves),
            each=max(weight * move.each for weight, move in moves),
        )

    def names(self, declared: Declaration) -> tuple[KeyOrTuple, ...] | None:
        """The keys of the cells, if there are any."""
        return self._parts[0].names(declared)

    @property
    def keyed_by(self) -> tuple[str, ...]:
        """The columns of the keys."""
        return self._parts[0].keyed_by

    def prepare(self, declared: Declaration, plan: QueryPlan) -> "Selected":
        """The public facts, with those of each part on the grid of the weighted integers."""
        found: list[Prepared] = []
        for part, its, weight in self._weighted(plan):
            facts = part.prepare(declared, its)
            grid = facts.grid / weight
            found.append(_whole(facts, grid) if isinstance(part, _COUNTS) else replace(facts, grid=grid))
        return Selected(*self._facts(declared, plan), of=self.names_of_parts, each_part=tuple(found))

    @property
    def unfollowed(self) -> str:
        """One part can be."""
        return "it has several parts; follow each with a mechanism of its own"


SELECTS = (Select,)
"""Together with the lists of the other modules the whole language: exactly these classes, no subclasses."""


class WholeCount(Prepared, frozen=True):
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


class Selected(Prepared, frozen=True, kw_only=True):
    """Several prepared requests, whose integers are one vector: in units, an answer for each name."""

    of: tuple[str, ...]
    each_part: tuple[Plain, ...]

    def parts(self, answer: Plain) -> Mapping[str, tuple[Prepared, Plain]]:
        """For each name its public facts, and its share of the integers."""
        if not isinstance(answer, tuple):
            return {}
        found: dict[str, tuple[Prepared, Plain]] = {}
        start = 0
        for name, facts in zip(self.of, self.each_part, strict=True):
            assert isinstance(facts, Prepared)
            end = start + (facts.width or 1)
            found[name] = (facts, answer[start] if facts.width is None else answer[start:end])
            start = end
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


def _whole(facts: Prepared, grid: Fraction) -> WholeCount:
    return WholeCount(
        facts.request, facts.sensitivity, facts.squared, facts.width, grid, facts.each, facts.one_way, facts.names
    )


def select(
    *, by: GivenBy | None = None, keys: Iterable[KeyOrTuple] | None = None, of: str | None = None, **parts: Request
) -> Select:
    """Several aggregates at once, by name, in equal shares of the budget; with `by`, for each key of those columns.

    >>> from counterpoint.sources.asking.requests import count, sum
    >>> select(n=count("age >= 18"), owed=sum("debt")).requests
    (Count(where='age >= 18'), Sum('debt'))
    """
    cells = listed(keys, "keys")
    columns = None if by is None else read_by(by)
    check_groups(columns, cells)
    if columns is None:
        return about(of, Select(tuple(parts), tuple(parts.values())))
    grouped: list[Request] = []
    for name, part in parts.items():
        if isinstance(part, Count):
            grouped.append(Histogram(columns, cells, None, part.where))
        elif isinstance(part, Sum | Variance) and part.by is None:
            grouped.append(replace(part, by=columns, keys=cells))
        elif isinstance(part, Mean | CountDistinct) and not part.keyed_by:
            grouped.append(replace(part, by=columns, keys=or_unset(cells)))
        else:
            raise InvalidRequest(
                f"{name} must be a count, count_distinct, sum, mean, variance or stdev, without a by= of its own"
            )
    return about(of, Select(tuple(parts), tuple(grouped)))

"""The statistics behind several aggregates: which numbers are released, which are shared, and how they are weighted.

A mean is a sum divided by a count, and so is a variance. A count that is asked beside them over the same rows, or that
two of them have in common, is released once. It cannot be the number of rows alone: a value may be missing, and a mean
is one of the values that are there. So a statistic of a column whose count is shared has, in place of the number of
rows with a value, the number of rows *without* one, which is the shared count less the number with one.

That number is free. A row has a value, and then moves the sums by at most s, or it has none, and moves that number
by its weight c <= s alone. So it moves both together by no more than the sums alone: the corners are those of the sums
followed by 0, and (0, ..., 0, c). (The L1 norm of the difference of two values of a variance is at most 16/3 < 4 + 2 in
units of w^2, see `variance.py`, so its corners still bound the curve.)

Statistics over the rows of one `where` move together. A row that is counted contributes one of the corners C_j to each
statistic j, independently. Norms add up over statistics, L1 and squared L2, so with A_j = max |v| and
D_j = max |v - v'| over corners v, v' of C_j, a row moves all of them by at most

- add or remove: sum A_j; replace by a row of another cell: 2 sum A_j;
- replace by a row of the same cell: sum D_j, or by a row that is not counted: sum A_j.

Weights: noise is added to all integers alike, so statistic j is multiplied by a whole number w_j. Let E_j be the most
by which a row moves one number of it, M_j and Q_j the most by which a unit moves it in L1 and in squared L2, and let
K_j be how often numbers of it are used, over all parts. Noise in units of E_j is then proportional to

    sum_k w_k M_k / (w_j E_j)  for Laplace,  sqrt(sum_k w_k^2 Q_k) / (w_j E_j)  for Gaussian noise.

The weights minimise the sum of this over all parts and over the numbers of which each is computed, sum_j K_j times the
above. By the inequalities of Cauchy-Schwarz and of Hoelder it is least where w_j is proportional to the square root of
K_j/(E_j M_j), or to the cube root of K_j/(E_j Q_j). For a mean that is the criterion one wants: its error, times the
number of values and in units of half the width of its bounds, is at most the sum of the noise in its numbers.

>>> from counterpoint.queries.aggregates import count, mean
>>> [(statistic.request, statistic.rows) for statistic in statistics((mean("delay"), count()))]
[(Count(), None), (Mean('delay'), 0)]
"""

from collections.abc import Sequence
from fractions import Fraction
from itertools import chain
from typing import Literal, NamedTuple, TypeAlias

from counterpoint.queries.aggregates import Count, CountDistinct, Histogram, Mean, Sum
from counterpoint.queries.grouping import cell_by_cell
from counterpoint.queries.plan import QueryPlan
from counterpoint.queries.sensitivity import Corner, Sensitivities, differences, largest, rows_sensitivities
from counterpoint.queries.variance import Variance
from counterpoint.schema.declaration import Declaration

FINE = 1000
"""Weights are rounded down to one part in at least 1,000."""

Noise: TypeAlias = Literal["laplace", "gaussian"]
Aggregate: TypeAlias = Count | Histogram | CountDistinct | Sum | Mean | Variance
AGGREGATES = (Count, Histogram, CountDistinct, Sum, Mean, Variance)
COUNTS = (Count, Histogram, CountDistinct)


class Statistic(NamedTuple):
    """What the sums of this request are, in each cell; `rows` is the place of the statistic that counts its rows."""

    request: Aggregate
    rows: int | None = None

    @property
    def size(self) -> int:
        """How many numbers it has in each cell."""
        return 3 if isinstance(self.request, Variance) else 2 if isinstance(self.request, Mean) else 1

    def corners(self, plan: QueryPlan) -> list[Corner]:
        """What a row may contribute to one cell if it is counted there."""
        if isinstance(self.request, Count | Histogram | CountDistinct):
            return [(1,)]
        zero = (0,) * self.size
        found = [corner for corner in dict.fromkeys(corner[: self.size] for corner in plan.corners) if corner != zero]
        if self.rows is None:
            return [*found, zero]
        return [*((*corner[:-1], 0) for corner in found), (*zero[1:], self.weight(plan))]

    def weight(self, plan: QueryPlan) -> int:
        """By how much a row with a value moves the last number of a mean or a variance."""
        return plan.corners[0][self.size - 1]

    def read(self, declared: Declaration, plan: QueryPlan, found: tuple[int, ...], rows: Sequence[int]) -> list[int]:
        """The integers, cell by cell; where they share a count, with the rows that have no value as the last."""
        raw = self.request.read_cells(declared, found)
        values = raw if isinstance(raw, tuple) else (raw,)
        if self.rows is None:
            return list(values)
        wide = self.weight(plan)
        cells = zip(cell_by_cell(values, self.size), rows, strict=True)
        return list(chain.from_iterable((*cell[:-1], wide * counted - cell[-1]) for cell, counted in cells))


def statistics(parts: Sequence[Aggregate]) -> tuple[Statistic, ...]:
    """The statistics from which all parts can be computed, each once; shared counts come first."""
    shared = {where: number for number, where in enumerate(_shared(parts))}
    found: dict[tuple[object, ...], Statistic] = {
        ("rows", where): Statistic(_counting(parts[0], where)) for where in shared
    }
    for part in sorted(parts, key=lambda part: not isinstance(part, Variance)):  # a mean is part of a variance
        rows = shared.get(part.where) if isinstance(part, Mean | Variance) else None
        found.setdefault(statistic_of(part), Statistic(part, rows))
    return tuple(found.values())


def statistic_of(part: Aggregate) -> tuple[object, ...]:
    """What two parts have in common that are computed from one statistic."""
    if isinstance(part, Count | Histogram):
        return ("rows", part.where) if isinstance(part, Count) or part.edges is None else (part,)
    return ("column", part.column, part.where) if isinstance(part, Mean | Variance) else (part,)


def _shared(parts: Sequence[Aggregate]) -> list[str | None]:
    """The conditions whose rows are counted by several of the statistics."""
    found: dict[str | None, set[tuple[object, ...]]] = {}
    for part in parts:
        if statistic_of(part)[0] in ("rows", "column"):
            found.setdefault(part.where, set()).add(statistic_of(part))
    return [where for where, users in found.items() if len(users) > 1]


def _counting(part: Aggregate, where: str | None) -> Count | Histogram:
    """The count of rows in the cells of this part."""
    if isinstance(part, Count) or not part.keyed_by:
        return Count(where)
    return Histogram(part.keyed_by, part.keys, None, where)


def sensitivities(
    found: Sequence[Statistic], declared: Declaration, plan: QueryPlan, plans: Sequence[QueryPlan], times: Sequence[int]
) -> Sensitivities:
    """How far a unit moves all statistics, each multiplied by its weight: those over the rows of one `where` together.

    `plan` is that of the whole request, whose groups limit a unit's rows; `plans` has one plan for each statistic.
    """
    alike: dict[str | None, list[list[Corner]]] = {}
    moves: list[Sensitivities] = []
    cells = 1
    for statistic, its, weight in zip(found, plans, times, strict=True):
        if isinstance(statistic.request, CountDistinct):
            most = statistic.request.sensitivities(declared, its)
            moves.append(Sensitivities(weight * most.l1, weight**2 * most.squared, weight * most.each))
            continue
        weighted = [tuple(weight * step for step in corner) for corner in statistic.corners(its)]
        alike.setdefault(statistic.request.where, []).append(weighted)
        cells = (its.width or 1) // statistic.size
    for blocks in alike.values():
        row = _row_moves(blocks, declared.neighbours, cells)
        moves.append(rows_sensitivities(row, declared.rows_per_unit, declared.neighbours, plan.groups))
    return _added(moves)


def _row_moves(blocks: Sequence[list[Corner]], neighbours: str, cells: int) -> Sensitivities:
    """How far one row moves several statistics over the same rows.

    >>> _row_moves([[(1,)], [(-3, 0), (3, 0), (0, 3)]], "replace", cells=1)
    Sensitivities(l1=6, squared=36, each=6)
    >>> _row_moves([[(1,)], [(-3, 0), (3, 0), (0, 3)]], "replace", cells=2)
    Sensitivities(l1=8, squared=36, each=6)
    """
    alone = _added([largest(corners) for corners in blocks])
    if neighbours != "replace":
        return alone
    within = _added([largest(differences(corners)) for corners in blocks if len(corners) > 1])
    times = 1 if cells == 1 else 2
    return Sensitivities(
        l1=max(within.l1, times * alone.l1),
        squared=max(within.squared, times * alone.squared),
        each=max(within.each, alone.each),
    )


def _added(moves: Sequence[Sensitivities]) -> Sensitivities:
    """Norms of vectors one behind the other."""
    return Sensitivities(
        l1=sum(move.l1 for move in moves),
        squared=sum(move.squared for move in moves),
        each=max((move.each for move in moves), default=0),
    )


def weights(
    found: Sequence[Statistic],
    uses: Sequence[int],
    declared: Declaration,
    plans: Sequence[QueryPlan],
    noise: Noise = "laplace",
) -> tuple[int, ...]:
    """The whole numbers that minimise the criterion above, up to rounding; `uses` has every K_j."""
    root = 2 if noise == "laplace" else 3
    ratios = []
    for statistic, its, used in zip(found, plans, uses, strict=True):
        most = sensitivities([statistic], declared, its, [its], [1])
        moved = most.l1 if noise == "laplace" else most.squared
        ratios.append(Fraction(used, max(1, largest(statistic.corners(its)).each * moved)))
    least = min(ratios)
    return tuple(integer_root(FINE**root * ratio // least, root) for ratio in ratios)


def integer_root(number: int, root: int) -> int:
    """The largest whole number whose power is not above the number, which is at least 1.

    >>> [integer_root(number, 3) for number in (1, 7, 8, 10**30)]
    [1, 1, 2, 10000000000]
    """
    low, high = 1, 1 << -(-number.bit_length() // root)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if middle**root <= number else (low, middle - 1)
    return low

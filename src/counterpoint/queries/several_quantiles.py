"""Several quantiles of a column from one noisy histogram, each with an interval in the units of the column.

The rows between each two candidates are counted, with noise in every count. A row is in one cell, so the histogram
moves as far as one count does, however many quantiles are read off it. One choice for each quantile (`NoisyMax`) would
have to divide the price between them, and says nothing about the distance in units; the histogram does, since the noise
of its sums is known. With m cells the rank of a candidate is off by about the square root of m/2 scales of the noise,
that of a choice among k at a k-th of the price by about k log m: one is better for several quantiles or few candidates,
the other for a single one.

With q = u/v, A rows at or below candidate j and B above it, let d(j) = (v - u) A - u B. The q-quantile is the first
candidate where d(j) >= 0. The histogram gives d(j) plus noise z(j), a sum of independent draws with the weights v - u
and u. Let |z(j)| <= e(j) with probability p, for each j by itself. Then the candidates j with d(j) + z(j) >= -e(j) and
d(j - 1) + z(j - 1) < e(j - 1) contain the quantile with probability p: it is among them unless z(j) < -e(j) or
z(j - 1) > e(j - 1) at this one j, and by symmetry each of these has a chance of at most (1 - p)/2. The interval goes
from the first of them to the last. No union over candidates is needed, as the quantile is one of them, fixed before the
noise is drawn.

>>> Quantiles("age", ("0.1", "0.5"), (0, 60, 120)).qs
(0.1, 0.5)
"""

from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import accumulate, product
from math import floor
from typing import Annotated, Any, TypeAlias

from counterpoint.encoding import Plain, Value
from counterpoint.errors import InvalidParameter, InvalidRequest, NotCovered
from counterpoint.mechanisms.mechanism import Chosen
from counterpoint.numbers import Number as AnyNumber
from counterpoint.numbers.exact import exact, format_number
from counterpoint.numbers.parameters import Parameter, Read, default
from counterpoint.privacy.secret import Raw
from counterpoint.queries.aggregates import by_threshold
from counterpoint.queries.grouping import DistinctKeys, NamesOrNone, by_keys, cell_by_cell, columns_of, in_one_cell
from counterpoint.queries.plan import ByThreshold, Crossed, QueryPlan, Rows
from counterpoint.queries.ranked import MOST_SCORES, RankedChoice, candidate, spaced
from counterpoint.queries.request import PreparedQuery
from counterpoint.schema.arguments import listed, points
from counterpoint.schema.columns import Number
from counterpoint.schema.declaration import Declaration
from counterpoint.schema.times import Date

FINEST = 10**6
"""The largest denominator of a quantile: scores are multiples of one row over this denominator."""
MOST_QUANTILES = 100

Weights: TypeAlias = tuple[tuple[int, int], ...]
"""How much the noise of some numbers counts in a sum, and of how many."""
Within: TypeAlias = Callable[[Weights], int]
"""How far a sum of noise with these weights is off at most."""


def read_share(q: object, what: str = "q") -> Fraction:
    """A quantile: a fraction from 0 to 1.

    >>> read_share("0.9")
    0.9
    """
    try:
        share = exact(q, what)
    except InvalidParameter as error:
        raise InvalidRequest(str(error)) from None
    if not 0 <= share <= 1 or share.denominator > FINEST:
        raise InvalidRequest(
            f"{what} must be between 0 and 1, with a denominator of at most {FINEST}, but "
            f"{format_number(share)} was given"
        )
    return share


def _read_shares(given: object, what: str = "q") -> tuple[Fraction, ...]:
    shares = tuple(read_share(q, what) for q in listed(given, what) or ())
    if not 1 <= len(set(shares)) == len(shares) <= MOST_QUANTILES:
        raise InvalidRequest(f"{what} is one quantile or 1 to {MOST_QUANTILES} different ones, as in [0.1, 0.5]")
    return shares


class Quantiles(RankedChoice, Value, frozen=True):
    """How many rows lie between each two candidates: a histogram, from which the quantiles `qs` are computed.

    A row contributes 1 in at most one coordinate. Without candidates, those of `spaced` between the declared bounds.
    With `by`, there is such a histogram for each key of those columns.
    """

    column: str
    qs: Annotated[Parameter[tuple[Fraction, ...], Sequence[AnyNumber]], Read(_read_shares)]
    candidates: tuple[Fraction, ...] | None = None
    where: str | None = None
    dates: bool = False
    by: NamesOrNone = default(None)
    keys: DistinctKeys = None

    def __post_init__(self) -> None:
        """Check the texts, the keys and the candidates."""
        self.check_given()

    def plan(self, declared: Declaration) -> QueryPlan:
        """Count rows between candidates."""
        column, candidates = self.among(declared)
        above = [floor(point / column.grid) + 1 for point in candidates]
        # No value is beyond the last one: such a candidate needs no cell for the rows above it.
        cut = by_threshold(declared, self.column, column, [it for it in above if it <= column.most] or above[:1])
        size = len(cut.thresholds) + 1
        cells: ByThreshold | Crossed = cut
        groups = 1
        if self.by is not None:
            grouped = by_keys(declared, self.by, self.keys)
            groups, cells = len(grouped.keys), Crossed(grouped, cut)
        if groups * size > MOST_SCORES:
            raise InvalidRequest(
                f"{groups} keys with {size} counts each are {groups * size}, and a request has at most {MOST_SCORES}: "
                "give fewer candidates=[...] or keys=[...]"
            )
        corners = in_one_cell([(1,)], groups * size)
        return QueryPlan(Rows(), corners, self._condition(declared), cells, groups * size)

    def points(self, column: Number | Date) -> tuple[Fraction, ...]:
        """All values between the declared bounds, or evenly spaced ones."""
        return spaced(column)

    def rows_spanned(self, rank_error: Fraction) -> Fraction:
        """Of n rows no candidate is farther off than max(q, 1 - q) n, for each q."""
        return rank_error / max(max(q, 1 - q) for q in self.qs)

    def read_cells(self, declared: Declaration, found: tuple[int, ...]) -> Raw:
        """The counts, group by group."""
        return found

    @property
    def keyed_by(self) -> tuple[str, ...]:
        """The columns of the keys, and the quantiles."""
        return (*columns_of(self.by), "q")

    def prepare(self, declared: Declaration, plan: QueryPlan) -> "CumulatedQuantiles":
        """The public facts, with the candidates and the bounds of the column."""
        column, candidates = self.among(declared)
        return CumulatedQuantiles(
            *self._facts(declared, plan),
            qs=self.qs,
            candidates=candidates,
            dates=isinstance(column, Date),
            ends=(column.least * column.grid, column.most * column.grid),
            step=Fraction(column.grid),
        )

    @property
    def why_no_updates(self) -> str:
        """Ranks can be followed."""
        return "quantiles are computed from sums; follow ranks, from which quantile_from computes quantiles"


class CumulatedQuantiles(PreparedQuery, frozen=True, kw_only=True):
    """A prepared histogram between candidates: in units, the quantiles that it gives, group by group."""

    qs: tuple[Fraction, ...]
    candidates: tuple[Fraction, ...]
    dates: bool
    ends: tuple[Fraction, Fraction]
    step: Fraction

    @property
    def groups(self) -> int:
        """In how many groups quantiles are computed."""
        return 1 if self.names is None else len(self.names)

    @property
    def labels(self) -> tuple[Any, ...]:
        """The quantiles, within each key if there are keys."""
        qs = points(self.qs, dates=False)
        if self.names is None:
            return qs
        keys = [name if isinstance(name, tuple) else (name,) for name in self.names]
        return tuple((*key, q) for key, q in product(keys, qs))

    def cells_of(self, answer: Plain) -> list[tuple[int, ...]]:
        """The noisy counts of each group."""
        assert isinstance(answer, tuple)
        return cell_by_cell(answer, len(answer) // self.groups)  # type: ignore[arg-type]  # integers, from the mechanism

    def in_units(self, answer: Plain) -> object:
        """A candidate for each group and quantile.

        >>> facts = {"qs": (Fraction(1, 2),), "candidates": (Fraction(10), Fraction(20)), "dates": False}
        >>> CumulatedQuantiles(None, 1, 1, 2, Fraction(1), ends=(0, 20), step=1, **facts).in_units((3, 2))
        (10,)
        """
        if not isinstance(answer, tuple):
            return answer.index if isinstance(answer, Chosen) else super().in_units(answer)
        return tuple(self.value(self.chosen(cells, q)) for cells in self.cells_of(answer) for q in self.qs)

    @property
    def states_error(self) -> bool:
        """As an interval."""
        return True

    def chosen(self, cells: Sequence[int], q: Fraction) -> int:
        """The first candidate whose rank is at least q times the number of rows, once noise is smoothed out.

        The ranks are replaced by the nearest ascending vector (least squares).
        """
        rising = smoothed(tuple(map(Fraction, accumulate(cells))))
        goal = min(q * rising[-1], rising[-1])
        return next(place for place, rank in enumerate(rising) if rank >= goal)

    def value(self, place: int) -> int | Fraction | str:
        """The candidate in this place, in the user's units; the last one, too, where rows lie above all of them."""
        return candidate(self.candidates, min(place, len(self.candidates) - 1), self.dates)

    def weights(self, place: int, cells: int, q: Fraction) -> Weights:
        """Those of the noise in (v - u) times the rank of this candidate minus u times the rows above it."""
        u, v = q.as_integer_ratio()
        return (v - u, place + 1), (u, cells - place - 1)

    def places(self, cells: Sequence[int], q: Fraction, within: Within) -> tuple[int, int]:
        """The first and the last candidate that can be the quantile, if no sum is off by more than `within` says."""
        u, v = q.as_integer_ratio()
        total, last = sum(cells), len(cells) - 1
        above = [v * rank - u * total for rank in accumulate(cells)]

        def may_reach(place: int) -> bool:
            """Not refuted: d(place) >= 0. Of the last candidate that is so whatever the noise."""
            return place == last or above[place] >= 0 or above[place] >= -within(self.weights(place, last + 1, q))

        def may_miss(place: int) -> bool:
            """Not refuted: d(place) < 0."""
            return above[place] < 0 or above[place] < within(self.weights(place, last + 1, q))

        def possible(place: int) -> bool:
            return may_reach(place) and (place == 0 or may_miss(place - 1))

        shown = self.chosen(cells, q)
        first = next((place for place in range(shown) if possible(place)), shown)
        return first, next((place for place in range(last, shown, -1) if possible(place)), shown)

    def interval(self, cells: Sequence[int], q: Fraction, within: Within) -> tuple[Any, Any]:
        """The least and the largest value that the quantile can have then, in the user's units."""
        first, last = self.places(cells, q, within)
        low = self.ends[0] if first == 0 else max(self.ends[0], self._next(self.candidates[first - 1]))
        high = self.ends[1] if last >= len(self.candidates) else min(self.ends[1], self.candidates[last])
        return points((min(low, high),), self.dates)[0], points((max(low, high),), self.dates)[0]

    def _next(self, point: Fraction) -> Fraction:
        """The least value of the column above a candidate."""
        return (floor(point / self.step) + 1) * self.step

    def error_in_units(self, steps: int) -> int | Fraction:
        """It depends on where the rows lie."""
        raise NotCovered(
            "how far several quantiles are off in the units of their column depends on where the rows lie, so it is "
            "not stated before they are asked: give ask() an epsilon=, and each answer has its interval"
        )


def smoothed(values: Sequence[Fraction]) -> list[Fraction]:
    """The nearest ascending vector (isotonic regression): adjacent values in the wrong order are pooled.

    >>> [int(value) for value in smoothed((Fraction(5), Fraction(3), Fraction(4), Fraction(10)))]
    [4, 4, 4, 10]
    """
    pools: list[tuple[Fraction, int]] = []
    for value in values:
        total, size = value, 1
        while pools and pools[-1][0] * size > total * pools[-1][1]:
            before, number = pools.pop()
            total, size = total + before, size + number
        pools.append((total, size))
    return [total / size for total, size in pools for _ in range(size)]

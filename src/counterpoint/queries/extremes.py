"""The smallest and the largest value of a column, both as bounds, and the most frequent keys: `minimum` to `top`.

One row decides what the smallest value is, so no private answer can be near it. What can be is a value at a small rank
r. Of the ascending candidates c_1, c_2, ... let b_i be the number of rows below c_i. The row of rank r lies between c_i
and the next candidate if b_i <= r <= b_(i+1), where the last candidate has all rows for b_(i+1); else c_i is off by
max(b_i - r, r - b_(i+1)) rows. So its score is -max(0, b_i - r, r - b_(i+1)), as for a quantile, but r does not depend
on the number of rows. Adding, removing or replacing a row moves every b_i and the number of rows by at most 1, and so
every score. From the largest value down it is the same with the rows above c_i and above the candidate before it.

With a rank of 0 every candidate below all rows would be as good as the smallest value, and one of them would be chosen.
If the choice is off by at most alpha < r, at most r + alpha rows are below the chosen candidate, and at least r - alpha
>= 1 below the next one. So r should be a little above the error of the choice, which `NoisyMax.error` states. The
default is 20 rows, times the rows of a unit: enough for epsilon 1 and 1,000 candidates, with a probability of 95 %.

Bounds are both ends at once: two cells, and a row may move both, so a unit moves them by twice its rows together.

>>> minimum("age")
Extreme(column='age', end='low')
>>> maximum("delay", rank=100, by="carrier").rank
100
>>> bounds("delay").end
'both'

`top` chooses the most frequent keys of a column, or of several columns together. It is a histogram whose counts are not
released: `NoisyMax` chooses the largest k of them, one after the other, and only their names come out. The keys are
given or declared; keys that are not public are selected first, by `keys`. From noisy counts that were released already,
the largest can be read off at no further cost.

>>> top("dest", 5, keys=["ATL", "BOS", "ORD", "LAX", "SFO", "MIA"]).k
5
"""

from collections.abc import Iterable, Mapping
from datetime import date as Day  # noqa: N812
from fractions import Fraction
from itertools import pairwise
from typing import Literal, TypeAlias, overload

from msgspec.structs import force_setattr

from counterpoint.encoding import Plain, Value
from counterpoint.errors import InvalidParameter, InvalidRequest
from counterpoint.mechanisms.mechanism import Chosen
from counterpoint.numbers import Number as AnyNumber
from counterpoint.numbers.exact import whole
from counterpoint.numbers.parameters import default
from counterpoint.privacy.secret import Raw
from counterpoint.queries.aggregates import Histogram
from counterpoint.queries.grouping import (
    DistinctKeys,
    GivenBy,
    Names,
    NamesOrNone,
    check_groups,
)
from counterpoint.queries.plan import EITHER_WAY, QueryPlan, Rows
from counterpoint.queries.ranked import RankedChoice, Scored, ScoredByCell, candidate, cut_at, ranks_by_group, spaced
from counterpoint.queries.request import PreparedQuery, Request, Wants, on_source
from counterpoint.queries.sensitivity import Sensitivities, rank_sensitivities
from counterpoint.schema.arguments import check_texts, clamped_text, listed
from counterpoint.schema.columns import KeyOrTuple, Number
from counterpoint.schema.declaration import Declaration
from counterpoint.schema.times import Date

End: TypeAlias = Literal["low", "high", "both"]
"""Which end is wanted."""

DEFAULT_RANK = 20
"""The rank that is chosen, where none is given, for each row that a unit may have; twice that for bounds."""


class Extreme(RankedChoice, Value, frozen=True):
    """For each candidate, minus the distance of its rank from `rank`, counted from the low or the high end, or both."""

    column: str
    end: End
    rank: int | None = None
    candidates: tuple[Fraction, ...] | None = None
    where: str | None = None
    dates: bool = False
    by: NamesOrNone = default(None)
    keys: DistinctKeys = None

    def __post_init__(self) -> None:
        """Check the texts, the keys, the rank and the candidates."""
        self.check_given()
        if self.end not in ("low", "high", "both"):
            raise InvalidRequest("end is 'low', 'high' or 'both'")
        if self.end == "both" and self.by is not None:
            raise InvalidRequest("bounds are of all rows: ask for minimum(..., by=) and maximum(..., by=)")
        force_setattr(self, "rank", _rank(self.rank))

    @property
    def _ends(self) -> int:
        return 2 if self.end == "both" else 1

    def plan(self, declared: Declaration) -> QueryPlan:
        """Count rows below, at and between candidates."""
        column, candidates = self.among(declared)
        cells, groups = cut_at(declared, self.column, column, candidates, self.by, self.keys)
        width = self._ends * groups * len(candidates)
        return QueryPlan(Rows(), EITHER_WAY, self._condition(declared), cells, width)

    def points(self, column: Number | Date) -> tuple[Fraction, ...]:
        """Those of a quantile and powers of two; of bounds, the powers alone."""
        return doubling(column) if self.end == "both" else tuple(sorted({*spaced(column), *doubling(column)}))

    def rows_spanned(self, rank_error: Fraction) -> Fraction:
        """Of n rows, fewer than `rank`, the distances of candidates are between rank - n and rank."""
        return rank_error

    def read_cells(self, declared: Declaration, found: tuple[int, ...]) -> Raw:
        """Minus the distances, group by group, or from the low end and then from the high one."""
        rank = DEFAULT_RANK * self._ends * declared.rows_per_unit if self.rank is None else self.rank
        scores: list[int] = []
        for below in ranks_by_group(found, len(self.among(declared)[1])):
            rows, under = below[-1], below[:-1:2]
            above = [rows - upto for upto in below[1:-1:2]]
            if self.end != "high":
                scores += [-max(0, least - rank, rank - most) for least, most in pairwise((*under, rows))]
            if self.end != "low":
                scores += [-max(0, least - rank, rank - most) for most, least in pairwise((rows, *above))]
        return tuple(scores)

    def sensitivities(self, declared: Declaration, plan: QueryPlan) -> Sensitivities:
        """A row moves every distance of its group by at most 1; of both ends, if both are wanted."""
        candidates = len(self.among(declared)[1])
        assert plan.width is not None
        groups = plan.width // candidates // self._ends
        one = rank_sensitivities(1, 0, declared.rows_per_unit, candidates, declared.neighbours, cells=groups)
        return Sensitivities(*(self._ends * bound for bound in one))

    def prepare(self, declared: Declaration, plan: QueryPlan) -> "Scored | ScoredByCell | Bounded":
        """The public facts, with the candidates."""
        column, candidates = self.among(declared)
        kind = Bounded if self.end == "both" else Scored if self.by is None else ScoredByCell
        return kind(*self._facts(declared, plan), candidates=candidates, dates=isinstance(column, Date))


EXTREMES = (Extreme,)
"""Together with the lists of the other modules the whole language: exactly these classes, no subclasses."""


class Bounded(PreparedQuery, frozen=True, kw_only=True):
    """A prepared query for the scores of both ends: in units, the two chosen candidates, the smaller one first."""

    candidates: tuple[Fraction, ...]
    dates: bool

    @property
    def wants(self) -> Wants:
        """A candidate for each end."""
        return "choice"

    @property
    def cells(self) -> int:
        """Both ends."""
        return 2

    @property
    def states_error(self) -> bool:
        """Bounds are bare numbers, which go into later requests."""
        return False

    def in_units(self, answer: Plain) -> object:
        """Both bounds, or scores in rows.

        >>> facts = {"candidates": (Fraction(10), Fraction(20)), "dates": False}
        >>> Bounded(None, 2, 2, 4, Fraction(1), **facts).in_units((Chosen(1), Chosen(0)))
        (10, 20)
        """
        if not isinstance(answer, tuple) or not all(isinstance(one, Chosen) for one in answer):
            return super().in_units(answer)
        places = sorted(one.index for one in answer if isinstance(one, Chosen))
        return tuple(candidate(self.candidates, place, self.dates) for place in places)


def doubling(column: Number | Date) -> tuple[Fraction, ...]:
    """The bounds of a column, and between them 0 and the powers of two of its step, with both signs.

    >>> from counterpoint.schema.columns import number
    >>> [int(point) for point in doubling(number(-5, 20))]
    [-5, -4, -2, -1, 0, 1, 2, 4, 8, 16, 20]
    """
    powers = [2**place for place in range(max(-column.least, column.most, 1).bit_length())]
    inside = {step for step in (0, *powers, *(-power for power in powers)) if column.least < step < column.most}
    return tuple(step * column.grid for step in sorted({column.least, column.most, *inside}))


@overload
def minimum(
    column: str,
    rank: int | None = None,
    candidates: Iterable[AnyNumber | Day] | None = None,
    where: str | None = None,
    *,
    by: None = None,
    keys: Iterable[KeyOrTuple] | None = None,
    low: AnyNumber | None = None,
    high: AnyNumber | None = None,
    step: AnyNumber | None = None,
    of: str | None = None,
) -> Request[Chosen]: ...
@overload
def minimum(
    column: str,
    rank: int | None = None,
    candidates: Iterable[AnyNumber | Day] | None = None,
    where: str | None = None,
    *,
    by: GivenBy,
    keys: Iterable[KeyOrTuple] | None = None,
    low: AnyNumber | None = None,
    high: AnyNumber | None = None,
    step: AnyNumber | None = None,
    of: str | None = None,
) -> Request[tuple[object, ...]]: ...
def minimum(
    column: str,
    rank: int | None = None,
    candidates: Iterable[AnyNumber | Day] | None = None,
    where: str | None = None,
    *,
    by: GivenBy | None = None,
    keys: Iterable[KeyOrTuple] | None = None,
    low: AnyNumber | None = None,
    high: AnyNumber | None = None,
    step: AnyNumber | None = None,
    of: str | None = None,
) -> Request:
    """A value that all but about `rank` rows are above; with `by`, one for each key, all together at the price of one.

    Without candidates, they are those of `quantile` together with those of `bounds`. The rank is 20 times the rows of a
    unit, unless it is given. The column may be an expression; `low`, `high` and `step` clamp and round it (see `sum`).
    """
    return _extreme("low", clamped_text(column, low, high, step), rank, candidates, where, by, keys, of)


@overload
def maximum(
    column: str,
    rank: int | None = None,
    candidates: Iterable[AnyNumber | Day] | None = None,
    where: str | None = None,
    *,
    by: None = None,
    keys: Iterable[KeyOrTuple] | None = None,
    low: AnyNumber | None = None,
    high: AnyNumber | None = None,
    step: AnyNumber | None = None,
    of: str | None = None,
) -> Request[Chosen]: ...
@overload
def maximum(
    column: str,
    rank: int | None = None,
    candidates: Iterable[AnyNumber | Day] | None = None,
    where: str | None = None,
    *,
    by: GivenBy,
    keys: Iterable[KeyOrTuple] | None = None,
    low: AnyNumber | None = None,
    high: AnyNumber | None = None,
    step: AnyNumber | None = None,
    of: str | None = None,
) -> Request[tuple[object, ...]]: ...
def maximum(
    column: str,
    rank: int | None = None,
    candidates: Iterable[AnyNumber | Day] | None = None,
    where: str | None = None,
    *,
    by: GivenBy | None = None,
    keys: Iterable[KeyOrTuple] | None = None,
    low: AnyNumber | None = None,
    high: AnyNumber | None = None,
    step: AnyNumber | None = None,
    of: str | None = None,
) -> Request:
    """A value that all but about `rank` rows are below; with `by`, one for each key, all together at the price of one.

    Without candidates, they are those of `quantile` together with those of `bounds`. The rank is 20 times the rows of a
    unit, unless it is given. The column may be an expression; `low`, `high` and `step` clamp and round it (see `sum`).
    """
    return _extreme("high", clamped_text(column, low, high, step), rank, candidates, where, by, keys, of)


def bounds(
    column: str,
    rank: int | None = None,
    candidates: Iterable[AnyNumber | Day] | None = None,
    where: str | None = None,
    *,
    of: str | None = None,
) -> Request[tuple[Chosen, ...]]:
    """Private bounds of a column: two values between which nearly all rows lie, for later requests.

    Beyond each of them are about `rank` rows: 40 times the rows of a unit, unless it is given. Without candidates, they
    are 0 and the powers of two of the column's step, with both signs, and its declared bounds.
    """
    return _extreme("both", column, rank, candidates, where, None, None, of)


def _extreme(  # noqa: PLR0917 - the arguments of `minimum`, in their order
    end: End,
    column: str,
    rank: int | None,
    candidates: Iterable[AnyNumber | Day] | None,
    where: str | None,
    by: GivenBy | None,
    keys: Iterable[KeyOrTuple] | None,
    of: str | None,
) -> Extreme:
    among, cells = listed(candidates, "candidates"), listed(keys, "keys")
    return on_source(of, Extreme(column, end, rank, among, where, by=by, keys=cells))


def _rank(rank: object) -> int | None:
    if rank is None:
        return None
    try:
        return whole(rank, 1, "rank")
    except InvalidParameter as error:
        raise InvalidRequest(str(error)) from None


class Top(Request, Value, frozen=True):
    """Which `k` keys have the most rows that satisfy `where`: the counts of a histogram, as scores."""

    column: Names
    k: int
    keys: DistinctKeys = None
    where: str | None = None

    def __post_init__(self) -> None:
        """Check the texts, the keys and how many are wanted."""
        check_texts(where=self.where)
        check_groups(self.column, self.keys)
        try:
            whole(self.k, 1, "k")
        except InvalidParameter as error:
            raise InvalidRequest(str(error)) from None

    @property
    def _counts(self) -> Histogram:
        return Histogram(self.column, self.keys, None, self.where)

    def plan(self, declared: Declaration) -> QueryPlan:
        """Count rows by key."""
        plan = self._counts.plan(declared)
        assert plan.width is not None
        if self.k > plan.width:
            raise InvalidRequest(f"there are {plan.width} keys, so no more than that can be wanted: k is {self.k}")
        return plan

    def read_cells(self, declared: Declaration, found: tuple[int, ...]) -> Raw:
        """One count for each key."""
        return found

    def names(self, declared: Declaration) -> tuple[KeyOrTuple, ...] | None:
        """The keys."""
        return self._counts.names(declared)

    def prepare(self, declared: Declaration, plan: QueryPlan) -> "Largests":
        """The public facts, with how many are wanted."""
        return Largests(*self._facts(declared, plan), k=self.k)


TOPS = (Top,)
"""Together with the lists of the other modules the whole language: exactly these classes, no subclasses."""


class Largests(PreparedQuery, frozen=True, kw_only=True):
    """A prepared query for the names of the `k` largest counts: in units, a tuple of names."""

    k: int

    @property
    def wants(self) -> Wants:
        """The largest counts."""
        return "choice"

    @property
    def options(self) -> Mapping[str, int]:
        """How many."""
        return {"top": self.k}

    @property
    def states_error(self) -> bool:
        """Names have none."""
        return False

    def in_units(self, answer: Plain) -> object:
        """The names of the chosen keys, the most frequent first."""
        if not isinstance(answer, tuple):
            return super().in_units(answer)
        return tuple(super(Largests, self).in_units(one) if isinstance(one, Chosen) else one for one in answer)


def top(
    column: GivenBy,
    k: int,
    keys: Iterable[KeyOrTuple] | None = None,
    where: str | None = None,
    *,
    of: str | None = None,
) -> Request[tuple[Chosen, ...]]:
    """The `k` most frequent keys of a column, or of several columns together, the most frequent first.

    Keys are given, or declared by the columns.

    >>> top(["origin", "dest"], 2).column
    ('origin', 'dest')
    """
    return on_source(of, Top(column, k, listed(keys, "keys"), where))

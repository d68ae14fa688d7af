"""Requests whose answer is a choice: which keys occur, and which candidate is nearest to a quantile.

`keys` computes a tally, which only `PartitionSelection` accepts; `quantile` computes a score for each candidate, for a
mechanism that reports the best one (or adds noise to all of them). `quantile_from` computes a quantile from noisy
`ranks` instead, as postprocessing.

>>> keys("city", longest=40)
Keys(column='city', longest=40)
>>> quantile("income", 0.5, range(0, 100_001, 10_000)).q
0.5
>>> quantile_from((-3, 40, 38, 90, 101), [10, 20, 30, 40, 50], 0.5)
40
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import date as Day  # noqa: N812 - next to what a data person calls date(low, high)
from fractions import Fraction
from itertools import accumulate
from math import ceil, floor
from typing import Annotated, Any, Protocol, TypeVar, runtime_checkable

from msgspec import UNSET, UnsetType
from msgspec.structs import force_setattr

from counterpoint.encoding import Plain, Value
from counterpoint.errors import InvalidParameter, InvalidRequest, shown
from counterpoint.mechanisms.mechanism import Chosen
from counterpoint.numbers import Exact
from counterpoint.numbers import Number as AnyNumber
from counterpoint.numbers.exact import exact, spell, whole
from counterpoint.numbers.parameters import Parameter, Read, default
from counterpoint.privacy.secret import Raw, Secret
from counterpoint.privacy.tally import Tally
from counterpoint.sources.asking.about import about
from counterpoint.sources.asking.arguments import MOST_POINTS, ascending, check_texts, clamped_text, listed
from counterpoint.sources.asking.conditions import AllOf, Condition, Short
from counterpoint.sources.asking.grouping import (
    By,
    DistinctKeysOrUnset,
    GivenBy,
    Names,
    NamesOrUnset,
    by_keys,
    cell_by_cell,
    check_groups,
    columns_of,
    given_groups,
    group_names,
    or_unset,
)
from counterpoint.sources.asking.request import Request
from counterpoint.sources.asking.requests import by_threshold
from counterpoint.sources.asking.sensitivity import Sensitivities, rank_sensitivities, tally_sensitivities
from counterpoint.sources.declaring.columns import MOST_KEYS, Column, KeyOrTuple, Number, is_readable
from counterpoint.sources.declaring.dates import Date, is_day, spelled
from counterpoint.sources.declaring.declaration import Declaration
from counterpoint.sources.engines.query_plan import EITHER_WAY, ByFound, ByThreshold, Crossed, QueryPlan, Rows, Units
from counterpoint.sources.source import Prepared, Wants

T = TypeVar("T")

LONGEST_KEY = 10_000
MOST_SCORES = 10**6
"""The most candidates of one request, over all of its cells."""
FINEST = 10**6
"""The largest denominator of a quantile: scores are multiples of one row over this denominator."""


def _share(q: object, what: str = "q") -> Fraction:
    try:
        share = exact(q, what)
    except InvalidParameter as error:
        raise InvalidRequest(str(error)) from None
    if not 0 <= share <= 1 or share.denominator > FINEST:
        raise InvalidRequest(
            f"{what} must be between 0 and 1, with a denominator of at most {FINEST}, but {spell(share)} was given"
        )
    return share


def _up_to(top: int) -> Read:
    def read(value: object, what: str) -> int:
        try:
            number = whole(value, 1, what)
        except InvalidParameter as error:
            raise InvalidRequest(str(error)) from None
        if number > top:
            raise InvalidRequest(f"{what} must be at most {top}, but {shown(number)} was given")
        return number

    return Read(read)


class Keys(Request, Value, frozen=True):
    """How many units each value of a column has, as a tally: which values occur is private as well.

    Of several columns it is each tuple of values that occur together in a row. A unit counts once for each of its
    values, however many rows it has there. A value of more than `longest` characters is left out, as is one that some
    engine cannot store. A column must hold texts, dates or whole numbers; if the keys of all columns are declared, they
    are public, and the request is refused. The answer has the first `most` of the selected keys.
    """

    column: Names
    longest: Annotated[int, _up_to(LONGEST_KEY)] = 100
    most: Annotated[int, _up_to(MOST_KEYS)] = MOST_KEYS
    where: str | None = None

    def __post_init__(self) -> None:
        """Check the texts."""
        check_texts(where=self.where)
        check_groups(self.column, None)

    def plan(self, declared: Declaration) -> QueryPlan:
        """Count units by value; with one row per unit that is counting rows."""
        names = columns_of(self.column)
        columns = [declared.column(name) for name in names]
        if all(column.known_keys is not None for column in columns):
            raise InvalidRequest(
                f"the keys of {' and '.join(names)} are declared, so there is nothing to select: ask for "
                f"count(by={self.column!r})"
            )
        for name, column in zip(names, columns, strict=True):
            if column.grid != 1:
                raise InvalidRequest(
                    f"{name} is {column.describe()}, and keys are texts, dates or whole numbers: ask for "
                    f"histogram({name!r}, edges=[...])"
                )
        indices = tuple(map(declared.find, names))
        texts = [index for index, column in zip(indices, columns, strict=True) if column.kind == "text"]
        parts: list[Condition] = [Short(index, self.longest) for index in texts]
        asked = self._condition(declared)
        parts += [] if asked is None else [asked]
        reach = 1 if self.column in declared.unit_columns else declared.rows_per_unit
        adds = Rows() if declared.rows_per_unit == 1 else Units()
        return QueryPlan(adds, EITHER_WAY, AllOf(tuple(parts)) if parts else None, ByFound(indices), 0, reach=reach)

    def read_rows(self, declared: Declaration, plan: QueryPlan, fetched: Sequence[Sequence[Any]]) -> Raw | Tally:
        """The tally."""
        pairs = [(values, int(units)) for *values, units in fetched]
        readable = [(values, units) for values, units in pairs if all(map(_is_key, values))]
        return Tally(tuple((values[0] if len(values) == 1 else tuple(values), units) for values, units in readable))

    def sensitivities(self, declared: Declaration, plan: QueryPlan) -> Sensitivities:
        """A unit moves each of its values by one."""
        return tally_sensitivities(plan.reach, declared.neighbours)

    def prepare(self, declared: Declaration, plan: QueryPlan) -> "Tallied":
        """The public facts, with the columns and the largest number of keys."""
        first, *more = (declared.column(name) for name in columns_of(self.column))
        return Tallied(*self._facts(declared, plan), most=self.most, column=first, more=tuple(more) or UNSET)


def _is_key(value: object) -> bool:
    return not isinstance(value, str) or is_readable(value)


class Tallied(Prepared, frozen=True, kw_only=True):
    """A prepared tally: its answer is the first `most` of the selected keys, in the user's units.

    Keys of several columns are tuples, whose other values are those of the columns in `more`.
    """

    most: int
    column: Column
    more: tuple[Column, ...] | UnsetType = UNSET

    @property
    def wants(self) -> Wants:
        """Keys."""
        return "keys"

    def blank(self) -> Secret:
        """An empty tally."""
        return Secret(Tally(()))

    def in_units(self, answer: Plain) -> object:
        """Texts, whole numbers, or dates as YYYY-MM-DD; tuples of them for several columns.

        >>> from counterpoint.sources.declaring.dates import date
        >>> Tallied(None, 1, 1, 0, Fraction(1), most=1, column=date("1970-01-01", "1971-01-01")).in_units((0, 31))
        ('1970-01-01',)
        """
        if not isinstance(answer, tuple):
            return answer
        return tuple(self._spelled(key) for key in answer[: self.most])

    def _spelled(self, key: Plain) -> object:
        if isinstance(self.more, UnsetType):
            assert isinstance(key, int | str)
            return self.column.spelled(key)
        assert isinstance(key, tuple)
        columns = (self.column, *self.more)
        return tuple(column.spelled(value) for column, value in zip(columns, key, strict=True))  # type: ignore[arg-type]


class Quantile(Request, Value, frozen=True):
    """For each candidate c, minus its distance from the q-quantile in rows: the largest score is nearest.

    Of n rows let b be below c and a at or below it. The distance of the rank q n from [b, a] is
    max(0, b - q n, q n - a). Scores are multiples of 1/v rows, where q = u/v. Adding or removing a row moves v b - u n
    and v a - u n by v - u or by -u; a maximum of sums moves by at most as much as they do, so every score moves by at
    most max(u, v - u), or under replacement by v. Without candidates, those of `spaced` between the declared bounds.
    With `by`, there are such scores for the rows of each key of those columns, and one choice for each.
    """

    column: str
    q: Annotated[Parameter[Fraction, AnyNumber], Read(_share)]
    candidates: tuple[Fraction, ...] | UnsetType = UNSET
    where: str | None = None
    dates: bool = False
    by: NamesOrUnset = default(UNSET)
    keys: DistinctKeysOrUnset = UNSET

    def __post_init__(self) -> None:
        """Check the texts, the keys and the candidates."""
        check_texts(column=self.column, where=self.where)
        check_groups(*given_groups(self.by, self.keys))
        if isinstance(self.candidates, UnsetType):
            return
        candidates, dates = read_candidates(self.candidates, self.dates)
        force_setattr(self, "candidates", candidates)
        force_setattr(self, "dates", dates)

    def plan(self, declared: Declaration) -> QueryPlan:
        """Count rows below, at and between candidates."""
        column, candidates = self._among(declared)
        cells, groups = cut_at(declared, self.column, column, candidates, *given_groups(self.by, self.keys))
        grid = Fraction(1, self.q.denominator)
        return QueryPlan(Rows(), EITHER_WAY, self._condition(declared), cells, groups * len(candidates), grid)

    def _among(self, declared: Declaration) -> tuple[Number | Date, tuple[Fraction, ...]]:
        """The column, and the candidates that were given or follow from its bounds."""
        if not isinstance(self.candidates, UnsetType):
            return declared.ordered(self.column, dates=self.dates), self.candidates
        column = declared.ordered(self.column, dates=isinstance(declared.column(self.column), Date))
        return column, spaced(column)

    def read_cells(self, declared: Declaration, found: tuple[int, ...]) -> Raw:
        """Minus the distances, group by group."""
        u, v = self.q.as_integer_ratio()
        scores: list[int] = []
        for below in ranks_by_group(found, len(self._among(declared)[1])):
            target = u * below[-1]
            pairs = zip(below[:-1:2], below[1:-1:2], strict=True)
            scores += [-max(0, v * under - target, target - v * upto) for under, upto in pairs]
        return tuple(scores)

    def sensitivities(self, declared: Declaration, plan: QueryPlan) -> Sensitivities:
        """The bound proved above."""
        (u, v), candidates = self.q.as_integer_ratio(), len(self._among(declared)[1])
        assert plan.width is not None
        groups = plan.width // candidates
        return rank_sensitivities(v - u, u, declared.rows_per_unit, candidates, declared.neighbours, cells=groups)

    def names(self, declared: Declaration) -> tuple[KeyOrTuple, ...] | None:
        """The keys, if there are any: one for each choice."""
        by, keys = given_groups(self.by, self.keys)
        return None if by is None else group_names(declared, by, keys)

    @property
    def keyed_by(self) -> tuple[str, ...]:
        """The columns of the keys."""
        return () if self.by is UNSET else columns_of(self.by)

    def prepare(self, declared: Declaration, plan: QueryPlan) -> "Scored | ScoredByCell":
        """The public facts, with the candidates."""
        column, candidates = self._among(declared)
        kind = Scored if self.by is UNSET else ScoredByCell
        return kind(*self._facts(declared, plan), candidates=candidates, dates=isinstance(column, Date))

    def units(self, declared: Declaration) -> str | UnsetType:
        """Those of the column."""
        column = declared.column(self.column)
        return column.units if isinstance(column, Number) else UNSET

    @property
    def unfollowed(self) -> str:
        """Ranks can be followed."""
        return "a distance of ranks is not a sum over rows; follow ranks, from which quantile_from computes quantiles"


class Scored(Prepared, frozen=True, kw_only=True):
    """Prepared scores. In units, a `Chosen` or the index of a candidate becomes the candidate; scores are in rows."""

    candidates: tuple[Fraction, ...]
    dates: bool

    @property
    def wants(self) -> Wants:
        """The candidate with the largest score."""
        return "choice"

    @property
    def states_error(self) -> bool:
        """In rows: of scores, or by how much the score of a choice is below the best one."""
        return True

    def in_units(self, answer: Plain) -> object:
        """The chosen candidate (a whole number, an Exact or a date), or scores in rows.

        >>> median = Scored(None, 2, 2, 2, Fraction(1, 2), candidates=(Fraction(10), Fraction(20)), dates=False)
        >>> median.in_units(1), median.in_units((-3, -1))
        (20, (-1.5, -0.5))
        """
        if isinstance(answer, tuple):
            return tuple(map(super().in_units, answer))
        number = answer.index if isinstance(answer, Chosen) else answer
        if isinstance(number, bool) or not isinstance(number, int):
            return answer
        return candidate(self.candidates, number, self.dates)


class ScoredByCell(Prepared, frozen=True, kw_only=True):
    """Prepared scores of several cells, for one choice in each: in units, a tuple of chosen candidates."""

    candidates: tuple[Fraction, ...]
    dates: bool

    @property
    def wants(self) -> Wants:
        """The candidate with the largest score, in each cell."""
        return "choice"

    @property
    def states_error(self) -> bool:
        """In rows, as `Scored` does."""
        return True

    @property
    def cells(self) -> int:
        """One for each key."""
        assert self.width is not None
        return self.width // len(self.candidates)

    def in_units(self, answer: Plain) -> object:
        """The chosen candidates (whole numbers, Exacts or dates), or scores in rows.

        >>> facts = {"candidates": (Fraction(10), Fraction(20)), "dates": False}
        >>> ScoredByCell(None, 2, 2, 4, Fraction(1, 2), **facts).in_units((Chosen(1), Chosen(0)))
        (20, 10)
        """
        if isinstance(answer, Chosen):  # of one key, whose choice is no tuple
            return self.in_units((answer,))
        if not isinstance(answer, tuple):
            return super().in_units(answer)
        return tuple(
            candidate(self.candidates, one.index, self.dates)
            if isinstance(one, Chosen)
            else super(ScoredByCell, self).in_units(one)
            for one in answer
        )


def candidate(candidates: Sequence[Fraction], index: int, dates: bool) -> int | Fraction | str:
    """The candidate with this index, in the user's units."""
    if not 0 <= index < len(candidates):
        raise InvalidRequest(f"the mechanism chose candidate {index}, but there are {len(candidates)}, counted from 0")
    chosen = candidates[index]
    if dates:
        return spelled(floor(chosen))
    return chosen.numerator if chosen.denominator == 1 else Exact(chosen)


def read_candidates(given: object, dates: bool) -> tuple[tuple[Fraction, ...], bool]:
    """Candidates, checked, and whether they are dates."""
    candidates, dated = ascending(given, "candidates", 1)
    if (dates or dated) and not all(map(is_day, candidates)):  # the chosen candidate must have a spelling
        raise InvalidRequest("candidates that are dates must be days of the years 1 to 9999")
    return candidates, dates or dated


def cut_at(  # noqa: PLR0917 - what is cut, and what it is grouped by
    declared: Declaration,
    name: str,
    column: Number | Date,
    candidates: Sequence[Fraction],
    by: By | None,
    keys: Sequence[KeyOrTuple] | None,
) -> tuple[ByThreshold | Crossed, int]:
    """The cells below, at and between candidates, within each key if there are any; and how many keys there are."""
    steps = [point / column.grid for point in candidates]
    cut = by_threshold(declared, name, column, [edge for step in steps for edge in (ceil(step), floor(step) + 1)])
    if by is None:
        return cut, 1
    grouped = by_keys(declared, by, keys)
    groups = len(grouped.keys)
    if groups * len(candidates) > MOST_SCORES:
        raise InvalidRequest(
            f"{groups} keys with {len(candidates)} candidates each have {groups * len(candidates)} scores, and a "
            f"request has at most {MOST_SCORES}: give fewer candidates=[...] or keys=[...]"
        )
    return Crossed(grouped, cut), groups


def ranks_by_group(found: Sequence[int], candidates: int) -> Iterator[tuple[int, ...]]:
    """For each group, the rows below and up to each candidate in turn, and last all of its rows."""
    return (tuple(accumulate(cells)) for cells in cell_by_cell(found, 2 * candidates + 1))


CHOICES = (Keys, Quantile)
"""Together with `REQUESTS` the whole language: exactly these classes, no subclasses."""


def spaced(column: Number | Date) -> tuple[Fraction, ...]:
    """Every value that the column can have; of more than 1,000, both bounds and 998 evenly spaced values between them.

    >>> from counterpoint.sources.declaring.columns import number
    >>> [len(spaced(number(0, high))) for high in (120, 999, 1000, 10**9)]
    [121, 1000, 1000, 1000]
    """
    span = column.most - column.least
    parts = min(span, MOST_POINTS - 1)
    return tuple((column.least + span * part // parts) * column.grid for part in range(parts + 1))


def keys(
    column: GivenBy, longest: int = 100, most: int = MOST_KEYS, where: str | None = None, *, of: str | None = None
) -> Keys:
    """The values that occur in a column, or together in several, from which `PartitionSelection` selects.

    >>> keys("city", where="age >= 18").where
    'age >= 18'
    >>> keys(["origin", "dest"])
    Keys(('origin', 'dest'))
    """
    return about(of, Keys(column, longest, most, where))


def quantile(
    column: str,
    q: AnyNumber,
    candidates: Iterable[AnyNumber | Day] | None = None,
    where: str | None = None,
    *,
    by: GivenBy | None = None,
    keys: Iterable[KeyOrTuple] | None = None,
    low: AnyNumber | None = None,
    high: AnyNumber | None = None,
    step: AnyNumber | None = None,
    of: str | None = None,
) -> Quantile:
    """How near each of the ascending candidates is to the q-quantile of a column: the best has the largest score.

    Without candidates, they are the values between the column's declared bounds: all of them, or 1,000 evenly spaced.
    The column may be an expression; `low`, `high` and `step` clamp and round it (see `sum`).
    With `by`, there is one choice for each key of one or several columns, all together at the price of one.

    >>> quantile("born", "0.9", ["1990-01-01", "2000-01-01"]).dates
    True
    """
    among, cells = or_unset(listed(candidates, "candidates")), or_unset(listed(keys, "keys"))
    measured = clamped_text(column, low, high, step)
    return about(of, Quantile(measured, q, among, where, by=or_unset(by), keys=cells))


def median(
    column: str,
    candidates: Iterable[AnyNumber | Day] | None = None,
    where: str | None = None,
    *,
    by: GivenBy | None = None,
    keys: Iterable[KeyOrTuple] | None = None,
    low: AnyNumber | None = None,
    high: AnyNumber | None = None,
    step: AnyNumber | None = None,
    of: str | None = None,
) -> Quantile:
    """The quantile of 1/2: how near each candidate is to the median of a column.

    >>> median("age")
    Quantile(column='age', q=0.5)
    """
    clamps = {"low": low, "high": high, "step": step}
    return quantile(column, Fraction(1, 2), candidates, where, by=by, keys=keys, **clamps, of=of)


@runtime_checkable
class HasValues(Protocol):
    """A table of numbers, such as the answer to `ranks`."""

    def values(self) -> Collection[AnyNumber]:
        """The numbers, in the order of the candidates."""
        ...


def quantile_from(ranks: Sequence[AnyNumber] | HasValues, candidates: Sequence[T], q: AnyNumber) -> T:
    """The q-quantile from noisy ranks of the ascending candidates: a postprocessing, so it costs nothing.

    The ranks are first replaced by the nearest ascending vector (least squares). The answer is the first candidate
    whose rank is at least q times the last rank. For the last rank to be the number of rows, the last candidate must be
    at or above the column's upper bound. The ranks are the answer to `ranks` with these candidates, or its numbers.

    >>> quantile_from((5, 3, 4, 10), ["a", "b", "c", "d"], 0.4)
    'a'
    """
    share, values = (
        _share(q),
        [exact(rank, "a rank") for rank in (ranks.values() if isinstance(ranks, HasValues) else ranks)],
    )
    if not values or len(values) != len(candidates):
        raise InvalidParameter(
            f"every candidate needs one rank, but {len(values)} ranks and {len(candidates)} candidates were given"
        )
    rising = _rising(values)
    goal = share * rising[-1]
    return next(candidate for candidate, rank in zip(candidates, rising, strict=True) if rank >= min(goal, rising[-1]))


def _rising(values: Sequence[Fraction]) -> list[Fraction]:
    """The nearest ascending vector (isotonic regression): adjacent values in the wrong order are pooled."""
    pools: list[tuple[Fraction, int]] = []
    for value in values:
        total, size = value, 1
        while pools and pools[-1][0] * size > total * pools[-1][1]:
            before, number = pools.pop()
            total, size = total + before, size + number
        pools.append((total, size))
    return [total / size for total, size in pools for _ in range(size)]

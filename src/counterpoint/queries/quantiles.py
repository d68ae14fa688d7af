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

from collections.abc import Collection, Iterable, Sequence
from datetime import date as Day  # noqa: N812
from fractions import Fraction
from typing import Annotated, Any, Protocol, TypeVar, overload, runtime_checkable

from counterpoint.encoding import Plain, Value
from counterpoint.errors import InvalidParameter, InvalidRequest, shown
from counterpoint.mechanisms.mechanism import Chosen
from counterpoint.numbers import Number as AnyNumber
from counterpoint.numbers.exact import exact, whole
from counterpoint.numbers.parameters import Parameter, Read, default
from counterpoint.privacy.secret import Raw, Secret, Tally
from counterpoint.queries.grouping import (
    DistinctKeys,
    GivenBy,
    Names,
    NamesOrNone,
    check_groups,
    columns_of,
)
from counterpoint.queries.plan import EITHER_WAY, ByFound, QueryPlan, Rows, Units
from counterpoint.queries.ranked import RankedChoice, Scored, ScoredByCell, cut_at, ranks_by_group, spaced
from counterpoint.queries.request import PreparedQuery, Request, Wants, on_source
from counterpoint.queries.sensitivity import Sensitivities, rank_sensitivities, tally_sensitivities
from counterpoint.queries.several_quantiles import Quantiles, read_share, smoothed
from counterpoint.schema.arguments import check_texts, clamped_text, listed
from counterpoint.schema.columns import MOST_KEYS, Column, KeyOrTuple, Number, is_readable
from counterpoint.schema.declaration import Declaration
from counterpoint.schema.expressions.tree import And, Condition, MaxLength
from counterpoint.schema.times import Date

T = TypeVar("T")

LONGEST_KEY = 10_000


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
        parts: list[Condition] = [MaxLength(index, self.longest) for index in texts]
        asked = self._condition(declared)
        parts += [] if asked is None else [asked]
        reach = 1 if self.column in declared.unit_columns else declared.rows_per_unit
        adds = Rows() if declared.rows_per_unit == 1 else Units()
        return QueryPlan(adds, EITHER_WAY, And(tuple(parts)) if parts else None, ByFound(indices), 0, reach=reach)

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
        return Tallied(*self._facts(declared, plan), most=self.most, column=first, more=tuple(more) or None)


def _is_key(value: object) -> bool:
    return not isinstance(value, str) or is_readable(value)


class Tallied(PreparedQuery, frozen=True, kw_only=True):
    """A prepared tally: its answer is the first `most` of the selected keys, in the user's units.

    Keys of several columns are tuples, whose other values are those of the columns in `more`.
    """

    most: int
    column: Column
    more: tuple[Column, ...] | None = None

    @property
    def wants(self) -> Wants:
        """Keys."""
        return "keys"

    def blank(self) -> Secret:
        """An empty tally."""
        return Secret(Tally(()))

    def in_units(self, answer: Plain) -> object:
        """Texts, whole numbers, or dates as YYYY-MM-DD; tuples of them for several columns.

        >>> from counterpoint.schema.times import date
        >>> Tallied(None, 1, 1, 0, Fraction(1), most=1, column=date("1970-01-01", "1971-01-01")).in_units((0, 31))
        ('1970-01-01',)
        """
        if not isinstance(answer, tuple):
            return answer
        return tuple(self._spelled(key) for key in answer[: self.most])

    def _spelled(self, key: Plain) -> object:
        if self.more is None:
            assert isinstance(key, int | str)
            return self.column.spelled(key)
        assert isinstance(key, tuple)
        columns = (self.column, *self.more)
        return tuple(column.spelled(value) for column, value in zip(columns, key, strict=True))  # type: ignore[arg-type]


class Quantile(RankedChoice, Value, frozen=True):
    """For each candidate c, minus its distance from the q-quantile in rows: the largest score is nearest.

    Of n rows let b be below c and a at or below it. The distance of the rank q n from [b, a] is
    max(0, b - q n, q n - a). Scores are multiples of 1/v rows, where q = u/v. Adding or removing a row moves v b - u n
    and v a - u n by v - u or by -u; a maximum of sums moves by at most as much as they do, so every score moves by at
    most max(u, v - u), or under replacement by v. Without candidates, those of `spaced` between the declared bounds.
    With `by`, there are such scores for the rows of each key of those columns, and one choice for each.
    """

    column: str
    q: Annotated[Parameter[Fraction, AnyNumber], Read(read_share)]
    candidates: tuple[Fraction, ...] | None = None
    where: str | None = None
    dates: bool = False
    by: NamesOrNone = default(None)
    keys: DistinctKeys = None

    def __post_init__(self) -> None:
        """Check the texts, the keys and the candidates."""
        self.check_given()

    def plan(self, declared: Declaration) -> QueryPlan:
        """Count rows below, at and between candidates."""
        column, candidates = self.among(declared)
        cells, groups = cut_at(declared, self.column, column, candidates, self.by, self.keys)
        grid = Fraction(1, self.q.denominator)
        return QueryPlan(Rows(), EITHER_WAY, self._condition(declared), cells, groups * len(candidates), grid)

    def points(self, column: Number | Date) -> tuple[Fraction, ...]:
        """All values between the declared bounds, or evenly spaced ones."""
        return spaced(column)

    def rows_spanned(self, rank_error: Fraction) -> Fraction:
        """Of n rows no candidate is farther off than max(q, 1 - q) n."""
        return rank_error / max(self.q, 1 - self.q)

    def read_cells(self, declared: Declaration, found: tuple[int, ...]) -> Raw:
        """Minus the distances, group by group."""
        u, v = self.q.as_integer_ratio()
        scores: list[int] = []
        for below in ranks_by_group(found, len(self.among(declared)[1])):
            target = u * below[-1]
            pairs = zip(below[:-1:2], below[1:-1:2], strict=True)
            scores += [-max(0, v * under - target, target - v * upto) for under, upto in pairs]
        return tuple(scores)

    def sensitivities(self, declared: Declaration, plan: QueryPlan) -> Sensitivities:
        """The bound proved above."""
        (u, v), candidates = self.q.as_integer_ratio(), len(self.among(declared)[1])
        assert plan.width is not None
        groups = plan.width // candidates
        return rank_sensitivities(v - u, u, declared.rows_per_unit, candidates, declared.neighbours, cells=groups)

    def prepare(self, declared: Declaration, plan: QueryPlan) -> "Scored | ScoredByCell":
        """The public facts, with the candidates."""
        column, candidates = self.among(declared)
        kind = Scored if self.by is None else ScoredByCell
        return kind(*self._facts(declared, plan), candidates=candidates, dates=isinstance(column, Date))


CHOICES = (Keys, Quantile, Quantiles)
"""Together with `REQUESTS` the whole language: exactly these classes, no subclasses."""


def keys(
    column: GivenBy, longest: int = 100, most: int = MOST_KEYS, where: str | None = None, *, of: str | None = None
) -> Keys:
    """The values that occur in a column, or together in several, from which `PartitionSelection` selects.

    >>> keys("city", where="age >= 18").where
    'age >= 18'
    >>> keys(["origin", "dest"])
    Keys(('origin', 'dest'))
    """
    return on_source(of, Keys(column, longest, most, where))


@overload
def quantile(
    column: str,
    q: AnyNumber,
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
def quantile(
    column: str,
    q: AnyNumber,
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
@overload
def quantile(
    column: str,
    q: list[Any] | tuple[Any, ...],
    candidates: Iterable[AnyNumber | Day] | None = None,
    where: str | None = None,
    *,
    by: GivenBy | None = None,
    keys: Iterable[KeyOrTuple] | None = None,
    low: AnyNumber | None = None,
    high: AnyNumber | None = None,
    step: AnyNumber | None = None,
    of: str | None = None,
) -> Request[tuple[object, ...]]: ...
def quantile(
    column: str,
    q: AnyNumber | Iterable[AnyNumber],
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
    """How near each of the ascending candidates is to the q-quantile of a column: the best has the largest score.

    Of several quantiles, as in `quantile("age", [0.1, 0.5, 0.9])`, it is the rows between each two candidates, from
    which all are computed: a table with an interval for each, at the price of one count.

    Without candidates, they are the values between the column's declared bounds: all of them, or 1,000 evenly spaced.
    The column may be an expression; `low`, `high` and `step` clamp and round it (see `sum`).
    With `by`, there is one choice for each key of one or several columns, all together at the price of one.

    >>> quantile("born", "0.9", ["1990-01-01", "2000-01-01"]).dates
    True
    """
    text = clamped_text(column, low, high, step)
    if isinstance(q, str) or not isinstance(q, Iterable):
        return on_source(of, _quantile(text, q, candidates, where, by, keys))
    among, cells = listed(candidates, "candidates"), listed(keys, "keys")
    return on_source(of, Quantiles(text, listed(q, "q") or (), among, where, by=by, keys=cells))


@overload
def median(
    column: str,
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
def median(
    column: str,
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
) -> Request:
    """The quantile of 1/2: how near each candidate is to the median of a column.

    >>> median("age")
    Quantile(column='age', q=0.5)
    """
    return on_source(of, _quantile(clamped_text(column, low, high, step), Fraction(1, 2), candidates, where, by, keys))


def _quantile(  # noqa: PLR0917 - the arguments of `quantile`, in their order
    column: str,
    q: AnyNumber,
    candidates: Iterable[AnyNumber | Day] | None,
    where: str | None,
    by: GivenBy | None,
    keys: Iterable[KeyOrTuple] | None,
) -> Quantile:
    among, cells = listed(candidates, "candidates"), listed(keys, "keys")
    return Quantile(column, q, among, where, by=by, keys=cells)


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
        read_share(q),
        [exact(rank, "a rank") for rank in (ranks.values() if isinstance(ranks, HasValues) else ranks)],
    )
    if not values or len(values) != len(candidates):
        raise InvalidParameter(
            f"every candidate needs one rank, but {len(values)} ranks and {len(candidates)} candidates were given"
        )
    rising = smoothed(values)
    goal = share * rising[-1]
    return next(candidate for candidate, rank in zip(candidates, rising, strict=True) if rank >= min(goal, rising[-1]))

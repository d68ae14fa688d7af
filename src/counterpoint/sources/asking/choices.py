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

from collections.abc import Iterable, Sequence
from datetime import date as Day  # noqa: N812 - next to what a data person calls date(low, high)
from fractions import Fraction
from itertools import accumulate
from math import ceil, floor
from typing import Annotated, Any, TypeVar

from msgspec import UNSET, UnsetType
from msgspec.structs import force_setattr

from counterpoint.encoding import Plain, Value
from counterpoint.errors import InvalidParameter, InvalidRequest, shown
from counterpoint.mechanisms.mechanism import Chosen
from counterpoint.numbers import Exact
from counterpoint.numbers import Number as AnyNumber
from counterpoint.numbers.exact import exact, spell, whole
from counterpoint.numbers.parameters import Parameter, Read
from counterpoint.privacy.secret import Raw, Secret
from counterpoint.privacy.tally import Tally
from counterpoint.sources.asking.about import about
from counterpoint.sources.asking.arguments import MOST_POINTS, ascending, check_texts, clamped_text, listed
from counterpoint.sources.asking.conditions import AllOf, Condition, Short
from counterpoint.sources.asking.grouping import or_unset
from counterpoint.sources.asking.request import Request
from counterpoint.sources.asking.requests import by_threshold
from counterpoint.sources.asking.sensitivity import Sensitivities, rank_sensitivities, tally_sensitivities
from counterpoint.sources.declaring.columns import MOST_KEYS, Column, Number, is_readable
from counterpoint.sources.declaring.dates import Date, is_day, spelled
from counterpoint.sources.declaring.declaration import Declaration
from counterpoint.sources.engines.query_plan import EITHER_WAY, ByFound, QueryPlan, Rows, Units
from counterpoint.sources.source import Prepared, Wants

T = TypeVar("T")

LONGEST_KEY = 10_000
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

    A unit counts once for each of its values, however many rows it has there. A value of more than `longest`
    characters is left out, as is one that some engine cannot store. The column must hold texts, dates or whole numbers;
    a category is refused, since its keys are public. The answer has the first `most` of the selected keys.
    """

    column: str
    longest: Annotated[int, _up_to(LONGEST_KEY)] = 100
    most: Annotated[int, _up_to(MOST_KEYS)] = MOST_KEYS
    where: str | None = None

    def __post_init__(self) -> None:
        """Check the texts."""
        check_texts(column=self.column, where=self.where)

    def plan(self, declared: Declaration) -> QueryPlan:
        """Count units by value; with one row per unit that is counting rows."""
        column = declared.column(self.column)
        if column.known_keys is not None:
            raise InvalidRequest(
                f"the keys of {self.column} are declared, so there is nothing to select: ask for "
                f"histogram({self.column!r})"
            )
        if column.grid != 1:
            raise InvalidRequest(
                f"{self.column} is {column.describe()}, and keys are texts, dates or whole numbers: ask for "
                f"histogram({self.column!r}, edges=[...])"
            )
        index = declared.find(self.column)
        parts: list[Condition] = [Short(index, self.longest)] if column.kind == "text" else []
        asked = self._condition(declared)
        parts += [] if asked is None else [asked]
        reach = 1 if self.column in declared.unit_columns else declared.rows_per_unit
        adds = Rows() if declared.rows_per_unit == 1 else Units()
        return QueryPlan(adds, EITHER_WAY, AllOf(tuple(parts)) if parts else None, ByFound(index), 0, reach=reach)

    def read_rows(self, declared: Declaration, plan: QueryPlan, fetched: Sequence[Sequence[Any]]) -> Raw | Tally:
        """The tally."""
        return Tally(tuple((key, int(units)) for key, units in fetched if not isinstance(key, str) or is_readable(key)))

    def sensitivities(self, declared: Declaration, plan: QueryPlan) -> Sensitivities:
        """A unit moves each of its values by one."""
        return tally_sensitivities(plan.reach, declared.neighbours)

    def prepare(self, declared: Declaration, plan: QueryPlan) -> "Tallied":
        """The public facts, with the column and the largest number of keys."""
        return Tallied(*self._facts(declared, plan), most=self.most, column=declared.column(self.column))


class Tallied(Prepared, frozen=True, kw_only=True):
    """A prepared tally: its answer is the first `most` of the selected keys, in the user's units."""

    most: int
    column: Column

    @property
    def wants(self) -> Wants:
        """Keys."""
        return "keys"

    def blank(self) -> Secret:
        """An empty tally."""
        return Secret(Tally(()))

    def in_units(self, answer: Plain) -> object:
        """Texts, whole numbers, or dates as YYYY-MM-DD.

        >>> from counterpoint.sources.declaring.dates import date
        >>> Tallied(None, 1, 1, 0, Fraction(1), most=1, column=date("1970-01-01", "1971-01-01")).in_units((0, 31))
        ('1970-01-01',)
        """
        if not isinstance(answer, tuple):
            return answer
        return tuple(self.column.spelled(key) for key in answer[: self.most] if isinstance(key, int | str))


class Quantile(Request, Value, frozen=True):
    """For each candidate c, minus its distance from the q-quantile in rows: the largest score is nearest.

    Of n rows let b be below c and a at or below it. The distance of the rank q n from [b, a] is
    max(0, b - q n, q n - a). Scores are multiples of 1/v rows, where q = u/v. Adding or removing a row moves v b - u n
    and v a - u n by v - u or by -u; a maximum of sums moves by at most as much as they do, so every score moves by at
    most max(u, v - u), or under replacement by v. Without candidates, those of `spaced` between the declared bounds.
    """

    column: str
    q: Annotated[Parameter[Fraction, AnyNumber], Read(_share)]
    candidates: tuple[Fraction, ...] | UnsetType = UNSET
    where: str | None = None
    dates: bool = False

    def __post_init__(self) -> None:
        """Check the texts and the candidates."""
        check_texts(column=self.column, where=self.where)
        if isinstance(self.candidates, UnsetType):
            return
        candidates, dates = ascending(self.candidates, "candidates", 1)
        force_setattr(self, "candidates", candidates)
        force_setattr(self, "dates", self.dates or dates)
        if self.dates and not all(map(is_day, candidates)):  # the chosen candidate must have a spelling
            raise InvalidRequest("candidates that are dates must be days of the years 1 to 9999")

    def plan(self, declared: Declaration) -> QueryPlan:
        """Count rows below, at and between candidates."""
        column, candidates = self._among(declared)
        steps = [candidate / column.grid for candidate in candidates]
        edges = [edge for step in steps for edge in (ceil(step), floor(step) + 1)]
        cells = by_threshold(declared, self.column, column, edges)
        grid = Fraction(1, self.q.denominator)
        return QueryPlan(Rows(), EITHER_WAY, self._condition(declared), cells, len(candidates), grid)

    def _among(self, declared: Declaration) -> tuple[Number | Date, tuple[Fraction, ...]]:
        """The column, and the candidates that were given or follow from its bounds."""
        if not isinstance(self.candidates, UnsetType):
            return declared.ordered(self.column, dates=self.dates), self.candidates
        column = declared.ordered(self.column, dates=isinstance(declared.column(self.column), Date))
        return column, spaced(column)

    def read_cells(self, declared: Declaration, found: tuple[int, ...]) -> Raw:
        """Minus the distances."""
        below = tuple(accumulate(found))
        target, v = self.q.numerator * below[-1], self.q.denominator
        pairs = zip(below[:-1:2], below[1:-1:2], strict=True)
        return tuple(-max(0, v * under - target, target - v * upto) for under, upto in pairs)

    def sensitivities(self, declared: Declaration, plan: QueryPlan) -> Sensitivities:
        """The bound proved above."""
        u, v = self.q.as_integer_ratio()
        assert plan.width is not None
        return rank_sensitivities(v - u, u, declared.rows_per_unit, plan.width, declared.neighbours)

    def prepare(self, declared: Declaration, plan: QueryPlan) -> "Scored":
        """The public facts, with the candidates."""
        column, candidates = self._among(declared)
        return Scored(*self._facts(declared, plan), candidates=candidates, dates=isinstance(column, Date))

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
        if not 0 <= number < len(self.candidates):
            raise InvalidRequest(
                f"the mechanism chose candidate {number}, but there are {len(self.candidates)}, counted from 0"
            )
        chosen = self.candidates[number]
        if self.dates:
            return spelled(floor(chosen))
        return chosen.numerator if chosen.denominator == 1 else Exact(chosen)


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
    column: str, longest: int = 100, most: int = MOST_KEYS, where: str | None = None, *, of: str | None = None
) -> Keys:
    """The values that occur in a column, from which `PartitionSelection` selects.

    >>> keys("city", where="age >= 18").where
    'age >= 18'
    """
    return about(of, Keys(column, longest, most, where))


def quantile(
    column: str,
    q: AnyNumber,
    candidates: Iterable[AnyNumber | Day] | None = None,
    where: str | None = None,
    *,
    low: AnyNumber | None = None,
    high: AnyNumber | None = None,
    step: AnyNumber | None = None,
    of: str | None = None,
) -> Quantile:
    """How near each of the ascending candidates is to the q-quantile of a column: the best has the largest score.

    Without candidates, they are the values between the column's declared bounds: all of them, or 1,000 evenly spaced.
    The column may be an expression; `low`, `high` and `step` clamp and round it (see `sum`).

    >>> quantile("born", "0.9", ["1990-01-01", "2000-01-01"]).dates
    True
    """
    return about(
        of, Quantile(clamped_text(column, low, high, step), q, or_unset(listed(candidates, "candidates")), where)
    )


def median(
    column: str,
    candidates: Iterable[AnyNumber | Day] | None = None,
    where: str | None = None,
    *,
    low: AnyNumber | None = None,
    high: AnyNumber | None = None,
    step: AnyNumber | None = None,
    of: str | None = None,
) -> Quantile:
    """The quantile of 1/2: how near each candidate is to the median of a column.

    >>> median("age")
    Quantile(column='age', q=0.5)
    """
    return quantile(column, Fraction(1, 2), candidates, where, low=low, high=high, step=step, of=of)


def quantile_from(ranks: Sequence[AnyNumber], candidates: Sequence[T], q: AnyNumber) -> T:
    """The q-quantile from noisy ranks of the ascending candidates: a postprocessing, so it costs nothing.

    The ranks are first replaced by the nearest ascending vector (least squares). The answer is the first candidate
    whose rank is at least q times the last rank. For the last rank to be the number of rows, the last candidate must be
    at or above the column's upper bound.

    >>> quantile_from((5, 3, 4, 10), ["a", "b", "c", "d"], 0.4)
    'a'
    """
    share, values = _share(q), [exact(rank, "a rank") for rank in ranks]
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

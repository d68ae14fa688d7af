"""Requests whose answer is a choice: which keys there are, and which candidate is nearest to a quantile.

`keys` makes a tally for `PartitionSelection`, which alone can open it; `quantile` makes a score for each candidate,
for a mechanism that reports the best (or that adds noise to all of them). `quantile_from` is the other way to a
quantile: it reads one off noisy `ranks`, as postprocessing.

>>> keys("city", longest=40)
Keys(column='city', longest=40, most=10000, where=None)
>>> quantile("income", 0.5, range(0, 100_001, 10_000)).q
Fraction(1, 2)
>>> quantile_from((-3, 40, 38, 90, 101), [10, 20, 30, 40, 50], 0.5)
40
"""

from collections.abc import Iterable, Sequence
from datetime import date as Day  # noqa: N812 - next to what a data person calls date(low, high)
from fractions import Fraction
from itertools import accumulate
from math import ceil, floor
from typing import Annotated, Any, TypeVar

from msgspec.structs import force_setattr

from counterpoint.encoding import Plain, Value
from counterpoint.errors import InvalidParameter, InvalidRequest
from counterpoint.mechanisms.mechanism import Chosen
from counterpoint.numbers import Number as AnyNumber
from counterpoint.numbers.exact import exact, whole
from counterpoint.numbers.parameters import Parameter, Read
from counterpoint.privacy.secret import Raw, Secret
from counterpoint.privacy.tally import Tally
from counterpoint.sources.asking.arguments import ascending, check_texts, listed
from counterpoint.sources.asking.conditions import AllOf, Condition, Short
from counterpoint.sources.asking.requests import Request, by_threshold
from counterpoint.sources.asking.sensitivity import Moves, distance_moves, spread_moves
from counterpoint.sources.declaring.columns import MOST_KEYS, Column, is_readable
from counterpoint.sources.declaring.dates import is_day, spelled
from counterpoint.sources.declaring.declaration import Declaration
from counterpoint.sources.engines.plans import EITHER_WAY, ByFound, Plan, Rows, Units
from counterpoint.sources.source import Prepared

T = TypeVar("T")

LONGEST_KEY = 10_000
FINEST = 10**6
"""The largest denominator of a quantile: scores are counted in so many parts of a row."""


def _share(q: object, what: str = "q") -> Fraction:
    try:
        share = exact(q, what)
    except InvalidParameter as error:
        raise InvalidRequest(str(error)) from None
    if not 0 <= share <= 1 or share.denominator > FINEST:
        raise InvalidRequest(f"{what} must be between 0 and 1, with a denominator of at most {FINEST}")
    return share


def _up_to(top: int) -> Read:
    def read(value: object, what: str) -> int:
        try:
            number = whole(value, 1, what)
        except InvalidParameter as error:
            raise InvalidRequest(str(error)) from None
        if number > top:
            raise InvalidRequest(f"{what} must be at most {top}")
        return number

    return Read(read)


class Keys(Request, Value, frozen=True):
    """How many units each value of a column has, as a tally: which values there are is private as well.

    A unit counts once at each of its values, however many rows it has there; a value of more than `longest` characters
    is left out, as is one that not every engine could hold. The columns are texts, dates and whole numbers; where keys
    were declared there is nothing to select. Of the keys selected the first `most` are told.
    """

    column: str
    longest: Annotated[int, _up_to(LONGEST_KEY)] = 100
    most: Annotated[int, _up_to(MOST_KEYS)] = MOST_KEYS
    where: str | None = None

    def __post_init__(self) -> None:
        """Check the texts."""
        check_texts(column=self.column, where=self.where)

    def plan(self, declared: Declaration) -> Plan:
        """Count units by what is found; where a unit has one row, that is counting rows."""
        column = declared.column(self.column)
        if column.known_keys is not None:
            raise InvalidRequest(
                f"the keys of {self.column} are declared, and public: histogram asks about all of them"
            )
        if column.grid != 1:
            raise InvalidRequest(f"{self.column} is {column.said()}: give a histogram edges instead of keys")
        index = declared.find(self.column)
        parts: list[Condition] = [Short(index, self.longest)] if column.kind == "text" else []
        asked = self._condition(declared)
        parts += [] if asked is None else [asked]
        reach = 1 if self.column == declared.unit else declared.rows_per_unit
        adds = Rows() if declared.rows_per_unit == 1 else Units()
        return Plan(adds, EITHER_WAY, AllOf(tuple(parts)) if parts else None, ByFound(index), 0, reach=reach)

    def found(self, declared: Declaration, plan: Plan, fetched: Sequence[Sequence[Any]]) -> Raw | Tally:
        """The tally."""
        return Tally(tuple((key, int(units)) for key, units in fetched if not isinstance(key, str) or is_readable(key)))

    def moves(self, declared: Declaration, plan: Plan) -> Moves:
        """A unit moves each of its values by one."""
        return spread_moves(plan.reach, declared.neighbours)

    def prepare(self, declared: Declaration, plan: Plan) -> "Tallied":
        """With what the selected keys are, and how many of them are told."""
        return Tallied(*self._facts(declared, plan), most=self.most, column=declared.column(self.column))


class Tallied(Prepared, frozen=True, kw_only=True):
    """A prepared tally: of the keys that were selected, the first `most`, in the user's units."""

    most: int
    column: Column

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
    """For each candidate c, minus its distance from the q-quantile, counted in rows: the largest is nearest.

    With n rows, b of them below c and a of them at or below it, the rank q n of the quantile is 0 away if it lies
    between b and a, else by how much it misses: max(0, b - q n, q n - a). Scores are whole numbers of 1/v rows, where
    q = u/v. A row that comes or goes moves v b - u n, and v a - u n, by v - u or by -u; a maximum of sums moves by at
    most as much as they do, so every score by at most max(u, v - u), or under replacement by v.
    """

    column: str
    q: Annotated[Parameter[Fraction, AnyNumber], Read(_share)]
    candidates: tuple[Fraction, ...]
    where: str | None = None
    dates: bool = False

    def __post_init__(self) -> None:
        """Check the texts and the candidates."""
        check_texts(column=self.column, where=self.where)
        candidates, dates = ascending(self.candidates, "candidates", 1)
        force_setattr(self, "candidates", candidates)
        force_setattr(self, "dates", self.dates or dates)
        if self.dates and not all(map(is_day, candidates)):  # or the one that is chosen could not be told
            raise InvalidRequest("candidates that are dates are days of the years 1 to 9999")

    def plan(self, declared: Declaration) -> Plan:
        """Count rows below, at and between candidates."""
        column = declared.ordered(self.column, dates=self.dates)
        steps = [candidate / column.grid for candidate in self.candidates]
        edges = [edge for step in steps for edge in (ceil(step), floor(step) + 1)]
        cells = by_threshold(declared, self.column, column, edges)
        grid = Fraction(1, self.q.denominator)
        return Plan(Rows(), EITHER_WAY, self._condition(declared), cells, len(self.candidates), grid)

    def read(self, declared: Declaration, found: tuple[int, ...]) -> Raw:
        """Minus the distances."""
        below = tuple(accumulate(found))
        target, v = self.q.numerator * below[-1], self.q.denominator
        pairs = zip(below[:-1:2], below[1:-1:2], strict=True)
        return tuple(-max(0, v * under - target, target - v * upto) for under, upto in pairs)

    def moves(self, declared: Declaration, plan: Plan) -> Moves:
        """The proof is above."""
        u, v = self.q.as_integer_ratio()
        return distance_moves(v - u, u, declared.rows_per_unit, len(self.candidates), declared.neighbours)

    def prepare(self, declared: Declaration, plan: Plan) -> "Scored":
        """With the candidates, by which a choice becomes a value."""
        return Scored(*self._facts(declared, plan), candidates=self.candidates, dates=self.dates)


class Scored(Prepared, frozen=True, kw_only=True):
    """Prepared scores. In units the number of a candidate, counted from 0, is the candidate; scores are in rows.

    A mechanism answers with the number itself or with `Chosen`.
    """

    candidates: tuple[Fraction, ...]
    dates: bool

    def in_units(self, answer: Plain) -> object:
        """The candidate that was chosen (a whole number, a Fraction or a date), or scores in rows.

        >>> median = Scored(None, 2, 2, 2, Fraction(1, 2), candidates=(Fraction(10), Fraction(20)), dates=False)
        >>> median.in_units(1), median.in_units((-3, -1))
        (20, (Fraction(-3, 2), Fraction(-1, 2)))
        """
        if isinstance(answer, tuple):
            return tuple(map(super().in_units, answer))
        number = answer.index if isinstance(answer, Chosen) else answer
        if isinstance(number, bool) or not isinstance(number, int):
            return answer
        if not 0 <= number < len(self.candidates):
            raise InvalidRequest(f"there are {len(self.candidates)} candidates, and none of number {number}")
        chosen = self.candidates[number]
        if self.dates:
            return spelled(floor(chosen))
        return chosen.numerator if chosen.denominator == 1 else chosen


CHOICES = (Keys, Quantile)
"""With `REQUESTS`, the language: these and no subclasses of them."""


def keys(column: str, longest: int = 100, most: int = MOST_KEYS, where: str | None = None) -> Keys:
    """Which values a column has, for `PartitionSelection` to choose from.

    >>> keys("city", where="age >= 18").where
    'age >= 18'
    """
    return Keys(column, longest, most, where)


def quantile(column: str, q: AnyNumber, candidates: Iterable[AnyNumber | Day], where: str | None = None) -> Quantile:
    """How near each of the candidates, which ascend, is to the q-quantile of a column: the best has the largest score.

    >>> quantile("born", "0.9", ["1990-01-01", "2000-01-01"]).dates
    True
    """
    return Quantile(column, q, listed(candidates, "candidates") or (), where)


def quantile_from(ranks: Sequence[AnyNumber], candidates: Sequence[T], q: AnyNumber) -> T:
    """The q-quantile by noisy ranks of the candidates, which ascend: a postprocessing, free of charge.

    The ranks are made to ascend first, by the nearest vector in squares that does; then the first candidate is taken
    whose rank is at least q times the last. For that to be the number of rows, the last candidate must be at or above
    the column's upper bound.

    >>> quantile_from((5, 3, 4, 10), ["a", "b", "c", "d"], 0.4)
    'a'
    """
    share, values = _share(q), [exact(rank, "a rank") for rank in ranks]
    if not values or len(values) != len(candidates):
        raise InvalidParameter(f"every candidate has one rank, but {len(values)} and {len(candidates)} were given")
    rising = _rising(values)
    goal = share * rising[-1]
    return next(candidate for candidate, rank in zip(candidates, rising, strict=True) if rank >= min(goal, rising[-1]))


def _rising(values: list[Fraction]) -> list[Fraction]:
    """The nearest ascending vector in squares: neighbours in the wrong order are pooled (isotonic regression)."""
    pools: list[tuple[Fraction, int]] = []
    for value in values:
        total, size = value, 1
        while pools and pools[-1][0] * size > total * pools[-1][1]:
            before, number = pools.pop()
            total, size = total + before, size + number
        pools.append((total, size))
    return [total / size for total, size in pools for _ in range(size)]

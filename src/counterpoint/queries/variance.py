"""Variances and standard deviations of a column, from a balanced triple of sums.

With bounds l and h in steps, w = h - l, and y = 2x - l - h, which is between -w and w, a row with value x contributes

    P(y) = (3 y^2 - w^2, 2 w y, 2 w^2):

its squared distance from the middle, centred at the mean square w^2/3 of a uniform value; the distance itself; and a
weight. At both ends no coordinate is larger than another, so that none drowns the others.

The contributions are 0 and a curve. Norms are convex, so over sums of a unit's rows they are largest at points (or, for
a replacement, at pairs of points) of that set, as `sensitivity` says. In units of w^2 and with s = y/w from -1 to 1:

- P(s) = (3 s^2 - 1, 2 s, 2). Each coordinate is largest in absolute value at s = 1 and s = -1: 2, 2 and 2.
- P(s) - P(s') = (3 d e, 2 d, 0), where d = s - s' is from 0 to 2 without loss of generality, and e = s + s' has
  |e| <= 2 - d. In L1 that is at most 3 d (2 - d) + 2 d = d (8 - 3 d) <= 16/3, less than the 6 of P(1) - 0. In squared
  L2 it is at most 9 d^2 (2 - d)^2 + 4 d^2 <= 16, which P(1) - P(-1) reaches. For that is 9 d^2 (2 - d) <= 4 (2 + d):
  where d >= 2/3 the left side is at most 9 * 32/27 = 32/3, and the right side no less; where d < 2/3 the left side is
  at most 9 * 2/3 = 6 (as d (2 - d) <= 1), and the right side is at least 8. One coordinate moves by at most
  max(3 d (2 - d), 2 d) <= 4, which P(1) - P(-1) reaches.
- In two different groups the norms of P(s) and P(s') add up, and each is largest at an end.

So the corners P(1) and P(-1) give the exact sensitivities, though the curve lies outside their segment.

>>> variance("age")
Variance('age')
>>> stdev("age", by="state", keys=["CA", "NY"])
Variance(column='age', by='state', keys=('CA', 'NY'), root=True)
"""

from collections.abc import Iterable
from fractions import Fraction
from itertools import chain
from math import floor, sqrt
from typing import overload

from counterpoint.encoding import Plain, Value
from counterpoint.errors import InvalidRequest, NotCovered
from counterpoint.mechanisms.mechanism import Chosen
from counterpoint.numbers import Exact, precision
from counterpoint.numbers import Number as AnyNumber
from counterpoint.numbers.parameters import Flag, default
from counterpoint.privacy.secret import Raw
from counterpoint.queries.grouping import (
    DistinctKeys,
    GivenBy,
    NamesOrNone,
    by_keys,
    cell_by_cell,
    check_groups,
    columns_of,
    group_names,
    in_one_cell,
)
from counterpoint.queries.plan import ColumnTotal, QueryPlan
from counterpoint.queries.request import PreparedQuery, Request, on_source
from counterpoint.schema.arguments import check_texts, clamped_text, listed
from counterpoint.schema.columns import KeyOrTuple, Number
from counterpoint.schema.declaration import Declaration

FARTHEST = 2**31
"""The most steps from 0: a square is then below 2^63, and the sum of 2^63 squares below 10^38, on every engine."""


class Variance(Request, Value, frozen=True):
    """The variance of a column (divided by the number of values), or with `root` its standard deviation.

    A vector request of three coordinates, or of three for each key of the columns `by`.
    """

    column: str
    where: str | None = None
    by: NamesOrNone = default(None)
    keys: DistinctKeys = None
    root: Flag = False

    def __post_init__(self) -> None:
        """Check the texts and the keys."""
        check_texts(column=self.column, where=self.where)
        check_groups(self.by, self.keys)

    def plan(self, declared: Declaration) -> QueryPlan:
        """Add up the squares and the values, and count the rows that have one."""
        number = self._number(declared)
        cells = None if self.by is None else by_keys(declared, self.by, self.keys)
        groups, most = 1 if cells is None else len(cells.keys), 2 * (number.most - number.least) ** 2
        powers = ColumnTotal(declared.find(self.column), number.farthest, powers=(2, 1, 0))
        corners = in_one_cell([(most, most, most), (most, -most, most)], groups)
        return QueryPlan(powers, corners, self._condition(declared), cells, 3 * groups, number.grid**2 / 12)

    def _number(self, declared: Declaration) -> Number:
        number = declared.number(self.column)
        if number.farthest > FARTHEST:
            raise InvalidRequest(
                f"{self.column} is {number.describe()}: values are squared, so its bounds must be at most 2^31 steps "
                "from 0; declare it with a larger step"
            )
        return number

    def read_cells(self, declared: Declaration, found: tuple[int, ...]) -> Raw:
        """Centre and scale the sums, cell by cell."""
        number = declared.number(self.column)
        middle, wide = number.least + number.most, number.most - number.least
        triples = []
        for squares, total, rows in cell_by_cell(found, 3):
            centred = 4 * squares - 4 * middle * total + middle * middle * rows  # the sum of (2x - middle)^2
            weight = wide * wide * rows
            triples.append((3 * centred - weight, 2 * wide * (2 * total - middle * rows), 2 * weight))
        return tuple(chain.from_iterable(triples))

    @property
    def keyed_by(self) -> tuple[str, ...]:
        """The columns of the keys."""
        return columns_of(self.by)

    def units(self, declared: Declaration) -> str | None:
        """Those of the column, squared for a variance."""
        units = declared.number(self.column).units
        return units if self.root or units is None else f"{units} squared"

    def names(self, declared: Declaration) -> tuple[KeyOrTuple, ...] | None:
        """The keys, if there are any: one for each triple."""
        return None if self.by is None else group_names(declared, self.by, self.keys)

    def prepare(self, declared: Declaration, plan: QueryPlan) -> "Dispersed":
        """The public facts, with what turns a noisy answer into a variance."""
        number = declared.number(self.column)
        return Dispersed(*self._facts(declared, plan), half=(number.high - number.low) / 2, root=self.root)

    @property
    def why_no_updates(self) -> str:
        """It takes squares."""
        return "a variance is computed from sums of squares, which no mechanism follows"


VARIANCES = (Variance,)
"""Together with `REQUESTS` and `CHOICES` the whole language: exactly these classes, no subclasses."""


class Dispersed(PreparedQuery, frozen=True, kw_only=True):
    """A prepared variance: in units, a noisy triple becomes the variance or its root.

    Where there are names, the answer has a triple for each of them. `half` is half the distance of the bounds, in the
    user's units: its square is the largest possible variance.
    """

    half: Fraction
    root: bool

    def in_units(self, answer: Plain) -> object:
        """The mean square minus the squared mean, each clamped to what is possible; None if the noisy count is not > 0.

        The standard deviation is a float, since a root is seldom a rational.

        >>> ages = Dispersed(None, 6, 12, 3, Fraction(1, 12), half=Fraction(60), root=False)
        >>> ages.in_units((-100, 0, 200)), ages.in_units((200, 100, 200)), ages.in_units((5, 5, 0))
        (0, 2700, None)
        """
        if not isinstance(answer, tuple):
            return answer.index if isinstance(answer, Chosen) else super().in_units(answer)  # a triple has one name
        found = tuple(self._dispersion(*triple) for triple in cell_by_cell(answer, 3))
        return found[0] if self.names is None else found

    @property
    def states_error(self) -> bool:
        """From the noisy triple."""
        return True

    @property
    def simultaneous_values(self) -> int:
        """Squares, values and a weight."""
        return 3

    def signal(self, answer: Plain) -> int:
        """The weight."""
        assert isinstance(answer, tuple)
        return super().signal(answer[2])

    def error_in_units(self, steps: int) -> Fraction:
        """It depends on how many rows there are."""
        raise NotCovered(
            "the error of a variance depends on how many rows it is a variance of, so that none is stated before it is "
            "asked: give ask() an epsilon=, and the answer states its error; or say how many rows there are at least, "
            "rows_at_least=, which a rough count tells"
        )

    @property
    def _row_weight(self) -> Fraction:
        """How much a row adds to the weight, in steps: 2 w^2, and the grid is that of values to the square, over 12."""
        return Fraction(2, 3) * self.half**2 / self.grid

    def error_among(self, steps: int, rows: int | None) -> Fraction:
        """How far a variance of at least `rows` rows is off, whatever they are, if its numbers are off by `steps`.

        With true sums S and T and weight W at half width 1, S/W lies between -1/2 and 1 and T/W between -1 and 1. The
        mean square (2S/W + 1)/3 is off by (2/3) |a - (S/W) c|/(W + c) <= (4/3) steps/(W - steps), and the squared mean
        by at most twice |b - (T/W) c|/(W + c) <= 2 steps/(W - steps); together by (16/3) steps/(W - steps). A clamp
        brings neither farther off. Roots of two numbers are at most the root of their difference apart.

        >>> ages = Dispersed(None, 6, 12, 3, Fraction(1, 12), half=Fraction(60), root=False)
        >>> float(ages.error_among(28_800, rows=10_000)), ages.error_among(28_800, rows=1)
        (1.92..., 3600)
        >>> ages.steps_keeping(ages.error_among(28_800, rows=10_000), rows=10_000)
        28800
        """
        if rows is None:
            return self.error_in_units(steps)
        weight = rows * self._row_weight
        off = Fraction(16, 3) * steps / (weight - steps) if weight > steps else Fraction(1)
        off = min(off, Fraction(1)) * self.half**2
        return Exact(Fraction(precision(40)(off).sqrt().upper) if self.root else off)

    def steps_keeping(self, error: Fraction, rows: int | None) -> int:
        """The inverse of `error_among`."""
        if rows is None:
            self.error_in_units(0)
            raise AssertionError("it refuses")
        off = (error**2 if self.root else error) / self.half**2
        return floor(off * rows * self._row_weight / (Fraction(16, 3) + off))

    def error_from(self, answer: Plain, steps: int) -> Fraction:
        """The farthest variance (or root of one) of all triples within `steps` of the noisy one in each number.

        >>> ages = Dispersed(None, 6, 12, 3, Fraction(1, 12), half=Fraction(60), root=False)
        >>> ages.error_from((-400, 0, 2000), 0), ages.error_from((-400, 0, 2000), 100), ages.error_from((1, 1, 2), 3)
        (0, ~161.551, 2100)
        """
        return self.error_within(answer, steps, steps)

    def error_within(self, answer: Plain, of_sums: int, of_weight: int) -> Fraction:
        """The same, where the sums and the weight may be off by different numbers of steps."""
        assert isinstance(answer, tuple)
        squares, total, weight = answer
        assert isinstance(squares, int) and isinstance(total, int) and isinstance(weight, int)
        shown = self._dispersion(squares, total, weight)
        assert shown is not None
        low, high = (end * self.half**2 for end in _variances(squares, total, weight, of_sums, of_weight))
        if self.root:
            low, high = Fraction(precision(40)(low).sqrt().lower), Fraction(precision(40)(high).sqrt().upper)
        return Exact(max(Fraction(shown) - low, high - Fraction(shown), Fraction(0)))

    def _dispersion(self, squares: Plain, total: Plain, weight: Plain) -> Fraction | float | None:
        assert isinstance(squares, int) and isinstance(total, int) and isinstance(weight, int)
        if weight <= 0:
            return None
        mean = _within(Fraction(total, weight), -1, 1)
        mean_square = _within((2 * Fraction(squares, weight) + 1) / 3, 0, 1)
        found = _within(mean_square - mean * mean, 0, 1) * self.half**2
        return sqrt(found) if self.root else Exact(found)


def _variances(squares: int, total: int, weight: int, steps: int, of_weight: int) -> tuple[Fraction, Fraction]:
    """The least and the largest variance of all triples (s, t, w) within `steps` of this one, at half width 1.

    `steps` are those of s and t, `of_weight` those of w.

    The variance of a triple with w > 0 is (2s/w + 1)/3 - (t/w)^2. It rises with s and falls with |t|. With both fixed
    it is 1/3 + 2su/3 - t^2 u^2, u = 1/w, which is concave in u: least at one of the ends, and largest at
    u = s/(3 t^2) or at the end that is nearer to it. A variance lies between 0 and 1; a weight that could be 0 leaves
    it open.

    >>> _variances(-400, 0, 2000, 100, 100)
    (Fraction(56, 361), Fraction(5, 21))
    """
    if weight <= of_weight:
        return Fraction(0), Fraction(1)
    first, last = Fraction(1, weight + of_weight), Fraction(1, weight - of_weight)

    def at(s: int, t: int, u: Fraction) -> Fraction:
        return _within(Fraction(1, 3) + Fraction(2, 3) * s * u - (t * u) ** 2, 0, 1)

    most, near, far = squares + steps, max(0, abs(total) - steps), abs(total) + steps
    top = min(max(Fraction(most, 3 * near**2), first), last) if near else (last if most > 0 else first)
    return min(at(squares - steps, far, first), at(squares - steps, far, last)), at(most, near, top)


@overload
def variance(
    column: str,
    where: str | None = None,
    *,
    by: None = None,
    keys: Iterable[KeyOrTuple] | None = None,
    low: AnyNumber | None = None,
    high: AnyNumber | None = None,
    step: AnyNumber | None = None,
    of: str | None = None,
) -> Request[Fraction]: ...
@overload
def variance(
    column: str,
    where: str | None = None,
    *,
    by: GivenBy,
    keys: Iterable[KeyOrTuple] | None = None,
    low: AnyNumber | None = None,
    high: AnyNumber | None = None,
    step: AnyNumber | None = None,
    of: str | None = None,
) -> Request[tuple[object, ...]]: ...
def variance(
    column: str,
    where: str | None = None,
    *,
    by: GivenBy | None = None,
    keys: Iterable[KeyOrTuple] | None = None,
    low: AnyNumber | None = None,
    high: AnyNumber | None = None,
    step: AnyNumber | None = None,
    of: str | None = None,
) -> Request:
    """The variance of a column with declared bounds, divided by the number of values; with `by`, one for each key.

    The column may be an expression; `low`, `high` and `step` clamp and round it (see `sum`).

    >>> variance("delay", by=["carrier", "month"]).by
    ('carrier', 'month')
    """
    return on_source(of, Variance(clamped_text(column, low, high, step), where, by, listed(keys, "keys")))


@overload
def stdev(
    column: str,
    where: str | None = None,
    *,
    by: None = None,
    keys: Iterable[KeyOrTuple] | None = None,
    low: AnyNumber | None = None,
    high: AnyNumber | None = None,
    step: AnyNumber | None = None,
    of: str | None = None,
) -> Request[Fraction]: ...
@overload
def stdev(
    column: str,
    where: str | None = None,
    *,
    by: GivenBy,
    keys: Iterable[KeyOrTuple] | None = None,
    low: AnyNumber | None = None,
    high: AnyNumber | None = None,
    step: AnyNumber | None = None,
    of: str | None = None,
) -> Request[tuple[object, ...]]: ...
def stdev(
    column: str,
    where: str | None = None,
    *,
    by: GivenBy | None = None,
    keys: Iterable[KeyOrTuple] | None = None,
    low: AnyNumber | None = None,
    high: AnyNumber | None = None,
    step: AnyNumber | None = None,
    of: str | None = None,
) -> Request:
    """The standard deviation of a column with declared bounds: the root of `variance`, at the same cost.

    The column may be an expression; `low`, `high` and `step` clamp and round it (see `sum`).

    >>> stdev("delay", "month <= 3").root
    True
    """
    return on_source(of, Variance(clamped_text(column, low, high, step), where, by, listed(keys, "keys"), root=True))


def _within(value: Fraction, low: int, high: int) -> Fraction:
    return min(max(value, Fraction(low)), Fraction(high))

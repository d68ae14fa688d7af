"""The share of rows that satisfy a condition: two counts in one release, the rows that do and those that do not.

A row is in one of the two counts, so both together move as far as one of them does, and noise is drawn once for each.
Of a share s of n rows, errors of both counts by at most e make one of about e/n. That is at least as good as a mean of
zeros and ones at the same price, which is off by up to 2e/n where s is near 0 or 1.

>>> share("age >= 65")
Share('age >= 65')
"""

from collections.abc import Iterable
from fractions import Fraction
from math import floor
from typing import overload

from counterpoint.encoding import Plain, Value
from counterpoint.errors import NotCovered
from counterpoint.mechanisms.mechanism import Chosen
from counterpoint.numbers import Exact
from counterpoint.numbers.parameters import default
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
from counterpoint.queries.plan import ByKeys, QueryPlan, Rows
from counterpoint.queries.request import PreparedQuery, Request, on_source
from counterpoint.schema.arguments import check_texts, listed
from counterpoint.schema.columns import KeyOrTuple
from counterpoint.schema.declaration import Declaration
from counterpoint.schema.expressions.conditions import condition
from counterpoint.schema.expressions.tree import Case, Constant


class Share(Request, Value, frozen=True):
    """Which share of the rows that satisfy `among` satisfies `where`: one vector request of two coordinates.

    A row contributes 1 to the first coordinate if `where` is TRUE of it, and else to the second. With `by`, there are
    two coordinates for each key of those columns, and a row contributes to one pair of them.
    """

    where: str
    among: str | None = None
    by: NamesOrNone = default(None)
    keys: DistinctKeys = None

    def __post_init__(self) -> None:
        """Check the texts and the keys."""
        check_texts(column=self.where, among=self.among)
        check_groups(self.by, self.keys)

    def plan(self, declared: Declaration) -> QueryPlan:
        """Count rows by whether they satisfy the condition, within each key."""
        satisfied = Case(((condition(self.where, declared), Constant(1)),), Constant(0))
        grouped = ByKeys((), ((),), ()) if self.by is None else by_keys(declared, self.by, self.keys)
        keys = tuple((*key, one) for key in grouped.keys for one in (1, 0))
        cells = ByKeys((*grouped.columns, satisfied), keys, (*grouped.complete, True))
        corners = in_one_cell([(1, 0), (0, 1)], len(grouped.keys))
        among = None if self.among is None else condition(self.among, declared)
        return QueryPlan(Rows(), corners, among, cells, len(keys))

    def read_cells(self, declared: Declaration, found: tuple[int, ...]) -> Raw:
        """Both counts, key by key."""
        return found

    @property
    def keyed_by(self) -> tuple[str, ...]:
        """The columns of the keys."""
        return columns_of(self.by)

    def names(self, declared: Declaration) -> tuple[KeyOrTuple, ...] | None:
        """The keys, if there are any: one for each pair."""
        return None if self.by is None else group_names(declared, self.by, self.keys)

    def prepare(self, declared: Declaration, plan: QueryPlan) -> "PreparedShare":
        """The public facts."""
        return PreparedShare(*self._facts(declared, plan))

    @property
    def why_no_updates(self) -> str:
        """Two counters give it."""
        return "a share is a ratio of two counts; follow each count with a counter, and divide"


SHARES = (Share,)
"""Together with the lists of the other modules the whole language: exactly these classes, no subclasses."""


class PreparedShare(PreparedQuery, frozen=True):
    """A prepared share: in units, a noisy pair of counts becomes the share of the first, or None without rows.

    Where there are names, the answer has a pair for each of them.
    """

    def in_units(self, answer: Plain) -> object:
        """The first count over the sum of both, between 0 and 1; None if that sum is not above 0.

        >>> late = PreparedShare(None, 1, 1, 2, Fraction(1))
        >>> late.in_units((30, 70)), late.in_units((-3, 70)), late.in_units((-3, 3))
        (0.3, 0, None)
        """
        if not isinstance(answer, tuple):
            return answer.index if isinstance(answer, Chosen) else super().in_units(answer)  # a pair has one name
        shares = tuple(self._share(*pair) for pair in cell_by_cell(answer, 2))
        return shares[0] if self.names is None else shares

    def _share(self, part: Plain, rest: Plain) -> Fraction | None:
        assert isinstance(part, int) and isinstance(rest, int)
        return None if part + rest <= 0 else Exact(min(max(Fraction(part, part + rest), Fraction(0)), Fraction(1)))

    @property
    def states_error(self) -> bool:
        """From both noisy counts."""
        return True

    @property
    def simultaneous_values(self) -> int:
        """Both counts."""
        return 2

    def signal(self, answer: Plain) -> int:
        """The rows, in units of what noise of one step in both counts moves them by."""
        assert isinstance(answer, tuple)
        part, rest = answer
        assert isinstance(part, int) and isinstance(rest, int)
        return abs(part + rest) // 2

    def error_in_units(self, steps: int) -> Fraction:
        """It depends on how many rows there are."""
        raise NotCovered(
            "the error of a share depends on how many rows it is a share of, so none is stated before it is asked: "
            "give ask() an epsilon=, and the answer states its error; or say how many rows there are at least, "
            "rows_at_least=, which a rough count tells; or ask for two counts, each with error="
        )

    def error_among(self, steps: int, rows: int | None) -> Fraction:
        """How far a share of at least `rows` rows is off, whatever they are, if both counts are off by `steps`.

        Of p rows that do and r that do not, the noisy share is off by |a r - b p|/(n (n + a + b)) <= steps/(n - 2
        steps), n = p + r; a clamp brings it no farther off.

        >>> late = PreparedShare(None, 1, 1, 2, Fraction(1))
        >>> late.error_among(10, rows=1020), late.error_among(10, rows=5), late.steps_keeping(Fraction(1, 100), 1020)
        (0.01, 1, 10)
        """
        if rows is None:
            return self.error_in_units(steps)
        return Exact(min(Fraction(1), Fraction(steps, rows - 2 * steps)) if rows > 2 * steps else Fraction(1))

    def steps_keeping(self, error: Fraction, rows: int | None) -> int:
        """The inverse of `error_among`."""
        if rows is None:
            self.error_in_units(0)
            raise AssertionError("it refuses")
        return floor(error * rows / (1 + 2 * error))

    def error_from(self, answer: Plain, steps: int) -> Fraction:
        """The farthest share of all counts that are within `steps` of the noisy ones, none of them below 0.

        The share grows with the first count and falls with the second, so its ends are at two corners.

        >>> late = PreparedShare(None, 1, 1, 2, Fraction(1))
        >>> late.error_from((30, 70), 10), late.error_from((1, 2), 10)
        (0.1, 2/3)
        """
        assert isinstance(answer, tuple)
        part, rest = answer
        assert isinstance(part, int) and isinstance(rest, int)
        shown = self._share(part, rest)
        assert shown is not None
        least = _first_share(max(part - steps, 0), max(rest + steps, 0), Fraction(0))
        most = _first_share(max(part + steps, 0), max(rest - steps, 0), Fraction(1))
        return Exact(max(shown - least, most - shown, Fraction(0)))


def _first_share(part: int, rest: int, without_rows: Fraction) -> Fraction:
    return Fraction(part, part + rest) if part + rest else without_rows


@overload
def share(
    where: str,
    among: str | None = None,
    *,
    by: None = None,
    keys: Iterable[KeyOrTuple] | None = None,
    of: str | None = None,
) -> Request[Fraction]: ...
@overload
def share(
    where: str,
    among: str | None = None,
    *,
    by: GivenBy,
    keys: Iterable[KeyOrTuple] | None = None,
    of: str | None = None,
) -> Request[tuple[object, ...]]: ...
def share(
    where: str,
    among: str | None = None,
    *,
    by: GivenBy | None = None,
    keys: Iterable[KeyOrTuple] | None = None,
    of: str | None = None,
) -> Request:
    """Which share of rows (of those that satisfy `among`) satisfies `where`, from 0 to 1; with `by`, one for each key.

    A row of which the condition is unknown, since a value is missing, does not satisfy it.

    >>> share("arr_delay > 120", among="origin = 'JFK'", by="carrier").among
    "origin = 'JFK'"
    """
    return on_source(of, Share(where, among, by, listed(keys, "keys")))

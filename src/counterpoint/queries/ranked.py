"""What choices by rank have in common: candidates of a column, the rows below and up to each, and one score for each.

Quantiles and extremes say how a rank becomes a score. The candidate with the largest score is chosen, for all rows or,
with `by`, for those of each key.

>>> from counterpoint.queries.quantiles import quantile
>>> isinstance(quantile("age", 0.5), RankedChoice)
True
"""

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import accumulate
from math import ceil, floor

from msgspec.structs import force_setattr

from counterpoint.encoding import Plain, Value
from counterpoint.errors import InvalidRequest
from counterpoint.mechanisms.mechanism import Chosen
from counterpoint.numbers import Exact
from counterpoint.queries.aggregates import by_threshold
from counterpoint.queries.grouping import (
    By,
    DistinctKeys,
    NamesOrNone,
    by_keys,
    cell_by_cell,
    check_groups,
    columns_of,
    group_names,
)
from counterpoint.queries.plan import ByThreshold, Crossed
from counterpoint.queries.request import PreparedQuery, Request, Wants
from counterpoint.schema.arguments import MOST_POINTS, ascending, check_texts
from counterpoint.schema.columns import KeyOrTuple, Number
from counterpoint.schema.declaration import Declaration
from counterpoint.schema.times import Date, is_day, spelled

MOST_SCORES = 10**6
"""The most candidates of one request, over all of its cells."""


class RankedChoice(Request):
    """A request that scores candidates of a column by their ranks among the rows, in each cell by itself."""

    __slots__ = ()
    column: str
    candidates: tuple[Fraction, ...] | None
    dates: bool
    by: NamesOrNone
    keys: DistinctKeys

    def check_given(self) -> None:
        """Check the texts, the keys and the candidates, which are kept as numbers."""
        check_texts(column=self.column, where=self.where)
        check_groups(self.by, self.keys)
        if self.candidates is None:
            return
        candidates, dates = read_candidates(self.candidates, self.dates)
        assert isinstance(self, Value)
        force_setattr(self, "candidates", candidates)
        force_setattr(self, "dates", dates)

    @abstractmethod
    def points(self, column: Number | Date) -> tuple[Fraction, ...]:
        """The candidates that follow from a column's bounds, where none were given."""

    @abstractmethod
    def rows_spanned(self, rank_error: Fraction) -> Fraction:
        """The most rows among which every candidate is within this rank error, so that the choice tells nothing."""

    def among(self, declared: Declaration) -> tuple[Number | Date, tuple[Fraction, ...]]:
        """The column, and the candidates that were given or follow from its bounds."""
        if self.candidates is not None:
            return declared.ordered(self.column, dates=self.dates), self.candidates
        column = declared.ordered(self.column, dates=isinstance(declared.column(self.column), Date))
        return column, self.points(column)

    def names(self, declared: Declaration) -> tuple[KeyOrTuple, ...] | None:
        """The keys, if there are any: one for each choice."""
        return None if self.by is None else group_names(declared, self.by, self.keys)

    @property
    def keyed_by(self) -> tuple[str, ...]:
        """The columns of the keys."""
        return columns_of(self.by)

    def units(self, declared: Declaration) -> str | None:
        """Those of the column."""
        column = declared.column(self.column)
        return column.units if isinstance(column, Number) else None

    @property
    def why_no_updates(self) -> str:
        """Ranks can be followed."""
        return "a distance of ranks is not a sum over rows; follow ranks, from which quantile_from computes quantiles"


class Scored(PreparedQuery, frozen=True, kw_only=True):
    """Scores of candidates. In units, a `Chosen` or an index becomes the candidate; scores are in rows."""

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


class ScoredByCell(PreparedQuery, frozen=True, kw_only=True):
    """Scores of several cells, for one choice in each: in units, a tuple of chosen candidates."""

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


def spaced(column: Number | Date) -> tuple[Fraction, ...]:
    """Every value that the column can have; of more than 1,000, both bounds and 998 evenly spaced values between them.

    >>> from counterpoint.schema.columns import number
    >>> [len(spaced(number(0, high))) for high in (120, 999, 1000, 10**9)]
    [121, 1000, 1000, 1000]
    """
    span = column.most - column.least
    parts = min(span, MOST_POINTS - 1)
    return tuple((column.least + span * part // parts) * column.grid for part in range(parts + 1))

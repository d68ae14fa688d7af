"""How far one unit can move the answer to a request, from the corners of what a row may contribute.

Every request adds up one vector per row, from a public set S; a row that is filtered out or missing contributes 0, so 0
is in S. A unit has at most `rows` rows, so it contributes a point of rows * conv(S). Norms are convex, so over that
polytope (for a replacement, over pairs of its points) they are largest at the corners:

- add or remove one unit: the answer moves by at most rows * max |v| over the corners v;
- replace one unit by another: by at most rows * max |v - w| over pairs of corners v, w.

A sum over [low, high] has the corners 0, low, high: it moves by rows * max(|low|, |high|), or under replacement by
rows * (max(0, high) - min(0, low)). A histogram has the corners 0, e1, e2, ...: L1 rows and squared L2 rows^2, or
2 rows and 2 rows^2.

If a unit has rows in at most `groups` values of a column, at most `rows` of them in each, then an answer whose cells
are keyed by that column (perhaps among others) is a concatenation of blocks, one for each value, and a unit contributes
a point of rows * conv(S) to a block. Let m^2 be the largest squared L2 norm of a corner, and d^2 the largest of a
corner or, for a replacement, of a difference of two, which may be in two cells, so that d^2 >= 2 m^2 there.

- L1 adds up over rows, whatever their cells: it is as if a unit had groups * rows rows, or its cap if that is less.
- One coordinate is in one block: it moves as if a unit had `rows` rows.
- Squared L2 adds up over blocks. Adding or removing n_i <= rows rows in block i moves it by the sum of n_i^2 m^2: with
  n rows in all that is largest where blocks are full, (n div rows) rows^2 + (n mod rows)^2 times m^2. Under
  replacement, a block with old and new rows moves by at most rows^2 d^2; a block with old rows alone, or new ones, by
  rows^2 m^2, and two of these together by at most rows^2 d^2. So it moves by at most groups * rows^2 d^2, which
  disjoint blocks (or opposite corners in the same) reach; and never by more than without groups.

>>> sum_sensitivities([(-2,), (5,)], rows=3, neighbours="add-or-remove")
Sensitivities(l1=15, squared=225, each=15)
>>> sum_sensitivities([(-2,), (5,)], rows=3, neighbours="replace")
Sensitivities(l1=21, squared=441, each=21)
>>> sum_sensitivities([(1, 0), (0, 1)], rows=3, neighbours="replace")
Sensitivities(l1=6, squared=18, each=3)
>>> sum_sensitivities([(1, 0), (0, 1)], rows=6, neighbours="add-or-remove", groups=Groups(most=3, rows=2))
Sensitivities(l1=6, squared=12, each=2)
"""

from collections.abc import Sequence
from itertools import combinations
from typing import NamedTuple

Corner = tuple[int, ...]


class Sensitivities(NamedTuple):
    """How far an answer can move between neighbours: in the L1 norm, in the squared L2 norm, in each coordinate."""

    l1: int
    squared: int
    each: int


def one_way(corners: Sequence[Corner], neighbours: str) -> bool:
    """Whether no coordinate goes down when a unit is added (nor up when it is removed): no row contributes below 0.

    >>> one_way([(1, 0), (0, 1)], "add-or-remove"), one_way([(-2,), (5,)], "add-or-remove"), one_way([(1,)], "replace")
    (True, False, False)
    """
    return neighbours == "add-or-remove" and all(step >= 0 for corner in corners for step in corner)


class Groups(NamedTuple):
    """In how many values of a column a unit has rows, and how many rows in each."""

    most: int
    rows: int


def sum_sensitivities(
    corners: Sequence[Corner], rows: int, neighbours: str, groups: Groups | None = None
) -> Sensitivities:
    """The bounds of the theorem above, from the corners other than 0; `groups` only where cells are keyed by them."""
    steps = list(corners)
    if neighbours == "replace":
        steps += differences(corners)
    return rows_sensitivities(largest(steps), rows, neighbours, groups)


def differences(corners: Sequence[Corner]) -> list[Corner]:
    """The difference of each two corners."""
    return [tuple(a - b for a, b in zip(v, w, strict=True)) for v, w in combinations(corners, 2)]


def largest(steps: Sequence[Corner]) -> Sensitivities:
    """The largest norms among these.

    >>> largest([(1, 1), (-3, 0)])
    Sensitivities(l1=3, squared=9, each=3)
    """
    return Sensitivities(
        l1=max(sum(map(abs, step)) for step in steps),
        squared=max(sum(x * x for x in step) for step in steps),
        each=max(max(map(abs, step)) for step in steps),
    )


def rows_sensitivities(step: Sensitivities, rows: int, neighbours: str, groups: Groups | None) -> Sensitivities:
    """The bounds for a unit, from those for one row that is added, removed or (if neighbours do so) replaced."""
    groups = Groups(1, rows) if groups is None else groups
    rows = min(rows, groups.most * groups.rows)
    return Sensitivities(
        l1=rows * step.l1,
        squared=_full_blocks(rows, neighbours, groups) * step.squared,
        each=min(rows, groups.rows) * step.each,
    )


def _full_blocks(rows: int, neighbours: str, groups: Groups) -> int:
    """The largest sum of squares of the rows in each block."""
    full, rest = divmod(rows, groups.rows)
    if neighbours == "add-or-remove":
        return full * groups.rows**2 + rest**2
    return min(groups.most * groups.rows**2, rows**2)


def tally_sensitivities(reach: int, neighbours: str, cells: int | None = None) -> Sensitivities:
    """The bounds for a tally of units: a unit counts once in each of at most `reach` cells, whatever its rows.

    Its replacement may be in as many other cells. There are `cells` of them, if that is known.

    >>> tally_sensitivities(3, "add-or-remove"), tally_sensitivities(3, "replace")
    (Sensitivities(l1=3, squared=3, each=1), Sensitivities(l1=6, squared=6, each=1))
    >>> tally_sensitivities(3, "replace", cells=4)
    Sensitivities(l1=4, squared=4, each=1)
    """
    reached = reach * (2 if neighbours == "replace" else 1)
    most = reached if cells is None else min(reached, cells)
    return Sensitivities(l1=most, squared=most, each=1)


def rank_sensitivities(
    toward: int, away: int, rows: int, width: int, neighbours: str, *, cells: int = 1
) -> Sensitivities:
    """The bounds for distances of ranks from their targets, where a row moves each by `toward` or by `-away`.

    There are `width` distances in each of the cells, and a row moves those of one cell. A distance is a maximum of sums
    and 0, so it moves by at most as much as the sums: adding or removing a row moves it by at most the larger of the
    two, m; replacing a row by another one of the same cell, by at most t = `toward` + `away`. Where k_c rows of cell c
    make way for j_c others, its distances move by at most m (k_c + j_c) - (2 m - t) min(k_c, j_c). That is convex, so
    over all cells every norm is largest where all rows that go are in one cell and all that come are in one: the same
    cell, or another. `each` is the sum over the cells of what they move (see `Ask`).

    >>> rank_sensitivities(1, 3, rows=2, width=5, neighbours="replace")
    Sensitivities(l1=40, squared=320, each=8)
    >>> rank_sensitivities(1, 0, rows=2, width=5, neighbours="replace", cells=3)
    Sensitivities(l1=20, squared=40, each=4)
    """
    most, within = max(toward, away), toward + away
    if neighbours != "replace":
        return _alike(width, rows * most)
    same = _alike(width, rows * within)
    if cells == 1:
        return same
    other = _alike(width, rows * most)
    return Sensitivities(max(same.l1, 2 * other.l1), max(same.squared, 2 * other.squared), 2 * other.each)


def _alike(width: int, each: int) -> Sensitivities:
    """The bounds for `width` integers that each move by `each`."""
    return Sensitivities(l1=width * each, squared=width * each * each, each=each)

"""How far one unit can move the answer to a request, from the corners of what a row may contribute.

Every request adds up one vector per row, from a public set S; a row that is filtered out or missing contributes 0, so 0
is in S. A unit has at most `rows` rows, so it contributes a point of rows * conv(S). Norms are convex, so over that
polytope (for a replacement, over pairs of its points) they are largest at the corners:

- add or remove one unit: the answer moves by at most rows * max |v| over the corners v;
- replace one unit by another: by at most rows * max |v - w| over pairs of corners v, w.

A sum over [low, high] has the corners 0, low, high: it moves by rows * max(|low|, |high|), or under replacement by
rows * (max(0, high) - min(0, low)). A histogram has the corners 0, e1, e2, ...: L1 rows and squared L2 rows^2, or
2 rows and 2 rows^2.

>>> sum_sensitivities([(-2,), (5,)], rows=3, neighbours="add-or-remove")
Sensitivities(l1=15, squared=225, each=15)
>>> sum_sensitivities([(-2,), (5,)], rows=3, neighbours="replace")
Sensitivities(l1=21, squared=441, each=21)
>>> sum_sensitivities([(1, 0), (0, 1)], rows=3, neighbours="replace")
Sensitivities(l1=6, squared=18, each=3)
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


def sum_sensitivities(corners: Sequence[Corner], rows: int, neighbours: str) -> Sensitivities:
    """The bounds of the theorem above, from the corners other than 0."""
    steps = list(corners)
    if neighbours == "replace":
        steps += [tuple(a - b for a, b in zip(v, w, strict=True)) for v, w in combinations(corners, 2)]
    return Sensitivities(
        l1=rows * max(sum(map(abs, step)) for step in steps),
        squared=rows * rows * max(sum(x * x for x in step) for step in steps),
        each=rows * max(max(map(abs, step)) for step in steps),
    )


def tally_sensitivities(cells: int, neighbours: str) -> Sensitivities:
    """The bounds for a tally of units: a unit counts once in each of at most `cells` cells, whatever its rows.

    Its replacement may be in as many other cells.

    >>> tally_sensitivities(3, "add-or-remove"), tally_sensitivities(3, "replace")
    (Sensitivities(l1=3, squared=3, each=1), Sensitivities(l1=6, squared=6, each=1))
    """
    reached = cells * (2 if neighbours == "replace" else 1)
    return Sensitivities(l1=reached, squared=reached, each=1)


def rank_sensitivities(toward: int, away: int, rows: int, width: int, neighbours: str) -> Sensitivities:
    """The bounds for `width` distances of a rank from its target, where a row moves each by `toward` or by `-away`.

    A distance is a maximum of sums and 0, so it moves by at most as much as the sums: adding or removing a row moves
    each by at most the larger of the two, replacing a row by at most their sum.

    >>> rank_sensitivities(1, 3, rows=2, width=5, neighbours="replace")
    Sensitivities(l1=40, squared=320, each=8)
    """
    each = rows * (toward + away if neighbours == "replace" else max(toward, away))
    return Sensitivities(l1=width * each, squared=width * each * each, each=each)

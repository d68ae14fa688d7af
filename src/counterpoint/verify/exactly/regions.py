"""The pair of distributions that is as hard to tell apart as what is still to come, for every node of a tree.

An adversary at a node makes its best test at each trade-off between the two errors: its pairs of errors fill a convex
region, whose lower boundary is a curve, and a curve is a pair of distributions (`privacy.formulas.curves`). After its
last message the pair is the node's two masses. A move with several answers has their pairs side by side; of several
moves the adversary may choose one for each trade-off, which is the convex hull of their curves.

>>> from counterpoint import Ask, RandomizedResponse
>>> from counterpoint.verify.exactly.growing import grow
>>> worlds = grow(RandomizedResponse(0, delta="1/2"), [(Ask(private=0), Ask(private=1))], rounds=1)
>>> [(str(worlds.factor * p), str(worlds.factor * q)) for p, q in Regions(worlds).of(0, 0)]
[('0', '1/2'), ('1/2', '1/2'), ('1/2', '0')]
"""

from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Any, TypeAlias

from counterpoint.privacy.formulas import curves
from counterpoint.privacy.losses import TradeOff
from counterpoint.verify.exactly.growing import LIMIT
from counterpoint.verify.exactly.kernels import Budget
from counterpoint.verify.exactly.worlds import Choices, Worlds

Masses: TypeAlias = tuple[Any, Any]
"""What an outcome weighs in the two worlds: fractions, or floats where the laws are not rational."""


class Regions:
    """The pairs of all nodes, computed from the last level back; `TooLarge` if these are more than `limit` numbers."""

    def __init__(self, worlds: Worlds, limit: int = LIMIT) -> None:
        budget = Budget(limit)
        following: list[list[Masses]] = []
        self._levels: list[list[list[Masses]]] = []
        for level in reversed(worlds.levels):
            masses = zip(*(mass.tolist() for mass in level.masses), strict=True)
            following = [_pair(node, both, level.choices, following) for node, both in enumerate(masses)]
            budget.take(2 * sum(map(len, following)))
            self._levels.append(following)
        self._levels.reverse()

    def of(self, level: int, node: int) -> list[Masses]:
        """The outcomes of a node's pair, from the one that speaks most for world 1; in the units of its masses."""
        return self._levels[level][node]


def own_curve(worlds: Worlds, regions: Regions) -> TradeOff:
    """The exact trade-off curve of the two worlds against every adversary; for rational laws.

    >>> from counterpoint.mechanisms.examples import OpenDoor
    >>> from counterpoint.verify.exactly.growing import grow
    >>> from counterpoint.verify.games.menus import menu
    >>> worlds = grow(OpenDoor("1/8"), menu(OpenDoor("1/8")).pairs, rounds=2)
    >>> own_curve(worlds, Regions(worlds))
    TradeOff([(0, 0.875), (0.875, 0), (1, 0)])
    """
    assert worlds.rational
    return TradeOff(curves.of_atoms((p * worlds.factor, q * worlds.factor) for p, q in regions.of(0, 0)))


def _pair(node: int, masses: Masses, choices: Choices | None, following: list[list[Masses]]) -> list[Masses]:
    moves = [] if choices is None else [_ordered(_answers(choices, n, following)) for n in choices.of(node)]
    if not moves:
        return [masses]
    return moves[0] if len(moves) == 1 else _hull(moves)


def _answers(choices: Choices, move: int, following: list[list[Masses]]) -> Iterator[Masses]:
    """The outcomes of all answers to a move, side by side."""
    edges = choices.edges(move)
    for child, factor in zip(choices.children[edges].tolist(), choices.factors[edges].tolist(), strict=True):
        yield from ((factor * p, factor * q) for p, q in following[child])


def _ordered(outcomes: Iterable[Masses]) -> list[Masses]:
    """The outcomes by how much they speak for world 1, equal ones together."""
    some = [(p, q) for p, q in outcomes if p + q > 0]
    merged: list[Masses] = []
    for p, q in sorted(some, key=lambda pair: pair[0] / (pair[0] + pair[1])):
        if merged and merged[-1][0] * q == merged[-1][1] * p:
            merged[-1] = merged[-1][0] + p, merged[-1][1] + q
        else:
            merged.append((p, q))
    return merged


def _hull(moves: list[list[Masses]]) -> list[Masses]:
    """The outcomes of the lower convex hull of several curves with the same ends."""
    corners = {corner for outcomes in moves for corner in _corners(outcomes)}
    chain: list[Masses] = []
    for point in sorted(corners):
        if chain and point[1] >= chain[-1][1]:
            continue  # no test has fewer misses for more false alarms
        while len(chain) > 1 and _turn(chain[-2], chain[-1], point) <= 0:
            chain.pop()
        chain.append(point)
    highest = max(missed for _, missed in corners)
    steps = [(chain[0][0], highest - chain[0][1]), *((b[0] - a[0], a[1] - b[1]) for a, b in pairwise(chain))]
    farthest = max(alarm for alarm, _ in corners)
    return _ordered([*steps, (farthest - chain[-1][0], chain[-1][1])])


def _corners(outcomes: list[Masses]) -> list[Masses]:
    """The errors (false alarm, miss) of the tests that say "world 1" at the first outcomes, one more each time."""
    alarm, missed = outcomes[0][0] * 0, sum((q for _, q in outcomes), outcomes[0][1] * 0)
    corners = [(alarm, missed)]
    for p, q in outcomes:
        alarm, missed = alarm + p, max(missed - q, q * 0)
        corners.append((alarm, missed))
    return corners


def _turn(first: Masses, second: Masses, third: Masses) -> Any:
    return (second[0] - first[0]) * (third[1] - second[1]) - (third[0] - second[0]) * (second[1] - first[1])

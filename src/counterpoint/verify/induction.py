"""Backward induction on the tree of transcripts: the value of each node to an adversary that continues optimally.

The same recursion finds the best adversary (`best`; Lyu 2022, eq. 19), the lazy delta, what a transcript has revealed
(`RealisedLoss`) and the trade-off curve of what is still to come (`Regions`).

The value of a node is the larger of two: the value of stopping there, and the sum over the answers to its best move of
the values of the next nodes. For `Lower^b` the value of stopping is max(mu^b - e^eps mu^(1-b), 0), and the value at the
root is the exact delta over all adaptive adversaries (Lyu 2022, Claim 1); for Renyi it is mu0^alpha mu1^(1-alpha). Both
are homogeneous in the masses, so one value serves all transcripts that share a node.

>>> from counterpoint import RandomizedResponse
>>> from counterpoint.mechanisms import Ask
>>> from counterpoint.verify.grow import grow
>>> worlds = grow(RandomizedResponse(0, delta="1/2"), [(Ask(private=0), Ask(private=1))], rounds=1)
>>> best(worlds, hockey_stick(Fraction(1), bit=0)).value
Fraction(1, 2)
"""

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np

from counterpoint.encoding import encode
from counterpoint.errors import InvalidParameter
from counterpoint.measures import TradeOff, curves
from counterpoint.mechanisms.mechanism import Answer
from counterpoint.privacy.relations import Pair
from counterpoint.verify.automaton import Array, Budget
from counterpoint.verify.grow import LIMIT
from counterpoint.verify.worlds import Branch, Choices, Worlds

Worth: TypeAlias = Callable[[Array, Array], Array]
"""The value of stopping at nodes with these masses in the two worlds."""


@dataclass
class Best:
    """The value at the root, and the values of all nodes, level by level."""

    value: Any
    values: list[Array]


def best(worlds: Worlds, worth: Worth, cut: int | None = None, *, floats: bool = False) -> Best:
    """The recursion; with `cut`, the truncated mass of that world counts in full as well (an upper bound)."""
    values: list[Array] = []
    for level in reversed(worlds.levels):
        stopping = worth(*(_as_numbers(mass, floats) for mass in level.masses))
        if level.choices is not None:
            totals = worths(level.choices, values[-1], cut, floats=floats)
            first = np.flatnonzero(np.diff(level.choices.parents, prepend=-1))
            nodes = level.choices.parents[first]
            stopping[nodes] = np.maximum(stopping[nodes], np.maximum.reduceat(totals, first))
        values.append(stopping)
    factor = float(worlds.factor) if floats else worlds.factor
    return Best(values[-1][0] * factor, values[::-1])


def worths(choices: Choices, following: Array, cut: int | None = None, *, floats: bool = False) -> Array:
    """The value of each move: the sum over its answers, and the truncated mass."""
    totals: Array = np.add.reduceat(_as_numbers(choices.factors, floats) * following[choices.children], choices.starts)
    return totals if cut is None else totals + choices.cuts[cut]


def _as_numbers(values: Array, floats: bool) -> Array:
    return values.astype(np.float64) if floats else values


def hockey_stick(growth: Fraction | float, bit: int) -> Worth:
    """max(mu^b - growth mu^(1-b), 0)."""

    def worth(zero: Array, one: Array) -> Array:
        mine, other = (one, zero) if bit else (zero, one)
        sticks: Array = np.maximum(mine - other * growth, mine * 0)
        return sticks

    return worth


def nothing(zero: Array, _: Array) -> Array:
    """Stopping has value 0: only the truncated mass counts."""
    worthless: Array = zero * 0
    return worthless


def renyi(alpha: float, bit: int) -> Worth:
    """(mu^b)^alpha (mu^(1-b))^(1-alpha): infinite where only world b can be."""

    def worth(zero: Array, one: Array) -> Array:
        mine, other = (one, zero) if bit else (zero, one)
        with np.errstate(divide="ignore", invalid="ignore"):
            powers: Array = np.where(mine > 0, mine * (mine / other) ** (alpha - 1), 0.0)
        return powers

    return worth


def lazy_delta(worlds: Worlds, lower: tuple[list[Array], list[Array]]) -> Callable[[int, int], Any]:
    """J as a function of level and node, in the units of the node's masses.

    The lazy delta is the mass that must be exposed if, until two messages differ, only the exposure may be used
    (errata, Henzinger E1).

    For a history h of identical pairs, J(h) is the maximum over the next moves: a pair that differs needs the larger of
    Lower^0 and Lower^1 after it, and an identical pair needs the sum over its answers of J. At the root J lies between
    delta and 2 delta. It replaces delta in Henzinger et al. 2024, Lemma 5.6 and, for k > 1 and games that are not
    symmetric, in Henzinger et al. 2024, Thm 5.4.

    >>> from fractions import Fraction
    >>> from counterpoint.verify.finite import OpenDoor
    >>> from counterpoint.verify.grow import grow
    >>> from counterpoint.verify.message_pairs import message_pairs
    >>> from counterpoint.verify.induction import best, hockey_stick
    >>> worlds = grow(OpenDoor("1/7"), message_pairs(OpenDoor("1/7")).pairs, rounds=2)
    >>> lower = tuple(best(worlds, hockey_stick(Fraction(1), bit)).values for bit in (0, 1))
    >>> lazy_delta(worlds, lower)(0, 0) * worlds.factor
    Fraction(1, 7)
    """
    same = [encode(left, sealed=True) == encode(right, sealed=True) for left, right in worlds.pairs]

    @cache
    def needed(level: int, node: int) -> Any:
        most = worlds.levels[level].masses[0][node] * 0
        choices = worlds.levels[level].choices
        if choices is None:
            return most
        for number in choices.of(node):
            edges = choices.edges(number)
            children, factors = choices.children[edges], choices.factors[edges]
            if same[int(choices.moves[number])]:
                worth = sum(f * needed(level + 1, int(child)) for f, child in zip(factors, children, strict=True))
            else:
                worth = max((factors * lower[bit][level + 1][children]).sum() for bit in (0, 1))
            most = max(most, worth)
        return most

    return needed


History: TypeAlias = Iterable[tuple[int | Pair, Answer]]
"""The pairs of messages that were sent (or their numbers) with the answers."""


@dataclass(frozen=True)
class RealisedLoss:
    """The privacy loss of one transcript, answer by answer; `total` is their sum.

    Above 0, the transcript speaks for the true world; below 0, for the other one. Infinite if one of the worlds could
    not have answered so.

    The *realised privacy loss* of a transcript is the logarithm of how much likelier it was in one world than in the
    other: the sum of the conditional losses of its answers (Whitehouse et al. 2023, Def 2, eq. 4). What is *left* after
    it is the largest Renyi divergence that an adversary who goes on from there can reach, the "privacy budget monitor"
    of Lyu 2022, sec. 4.2; at the beginning it is the loss of the mechanism, and on average it never grows (Lyu 2022,
    Lemma 5).

    >>> from counterpoint import RandomizedResponse
    >>> from counterpoint.mechanisms import Ask
    >>> from counterpoint.verify.exact_loss import exact
    >>> loss = exact(RandomizedResponse(1, "0.1"), rounds=1)
    >>> loss.realised([(0, (False, 0))], bit=0)
    RealisedLoss(1)
    >>> loss.realised([(0, (True, 0))], bit=0)
    RealisedLoss(inf)
    """

    conditional: tuple[float, ...]

    @property
    def total(self) -> float:
        """The loss of the whole transcript."""
        return math.fsum(self.conditional)

    def __repr__(self) -> str:
        return f"RealisedLoss({self.total:.12g})"


def realised_loss(worlds: Worlds, history: History, bit: int) -> RealisedLoss:
    """The loss of a transcript if `bit` is the true world."""
    branches = walk(worlds, history)
    both = [(branch.p1, branch.p0) if bit else (branch.p0, branch.p1) for branch in branches]
    return RealisedLoss(tuple(_log_ratio(mine, other) for mine, other in both))


def walk(worlds: Worlds, history: History) -> list[Branch]:
    """The answers of a transcript in the tree, one after another; `InvalidParameter` for one that is not there."""
    node, passed = worlds.root, []
    for sent, answer in history:
        number = sent if isinstance(sent, int) else _number_of(worlds, sent)
        moves = [move for move in node.moves if move.number == number]
        if not moves:
            raise InvalidParameter(
                f"message {number} is not in the tree after this history: it is not valid there, the last round is "
                "over, or one of the worlds could not have come there"
            )
        sought = encode(answer)
        found = [branch for branch in moves[0].branches if encode(branch.answer) == sought]
        if not found:
            raise InvalidParameter(f"message {number} has no answer {answer!r} there in either world")
        passed.append(found[0])
        node = found[0].node
    return passed


def _number_of(worlds: Worlds, pair: Pair) -> int:
    sought = [encode(message, sealed=True) for message in pair]
    known = ([encode(message, sealed=True) for message in sent] for sent in worlds.pairs)
    found = next((number for number, sent in enumerate(known) if sent == sought), None)
    if found is None:
        raise InvalidParameter("this pair of messages is not among those of the game")
    return found


def _log_ratio(mine: Any, other: Any) -> float:
    if not other:
        return math.inf
    if not mine:
        return -math.inf
    ratio = Fraction(mine) / Fraction(other)
    return math.log(ratio.numerator) - math.log(ratio.denominator)


def renyi_left(worlds: Worlds, values: tuple[Any, Any], history: History, order: float) -> float:
    """The larger of the two divergences that are left after a transcript, from the values of the two recursions."""
    passed = walk(worlds, history)
    node = passed[-1].node if passed else worlds.root
    zero, one = (float(mass) for mass in node.masses)
    if not zero or not one:
        return 0.0
    left = []
    for mine, other, found in ((zero, one, values[0]), (one, zero, values[1])):
        value = float(found[node.level][node.place])
        left.append(math.inf if math.isinf(value) else math.log(value / (mine * (mine / other) ** (order - 1))))
    return max(0.0, *left) / (order - 1)


Masses: TypeAlias = tuple[Any, Any]
"""What an outcome weighs in the two worlds: fractions, or floats where the laws are not rational."""


class Regions:
    """The pairs of all nodes, computed from the last level back; `TooLarge` if these are more than `limit` numbers.

    An adversary at a node makes its best test at each trade-off between the two errors: its pairs of errors fill a
    convex region, whose lower boundary is a curve, and a curve is a pair of distributions (`privacy.formulas.curves`).
    After its last message the pair is the node's two masses. A move with several answers has their pairs side by side;
    of several moves the adversary may choose one for each trade-off, which is the convex hull of their curves.

    >>> from counterpoint import RandomizedResponse
    >>> from counterpoint.mechanisms import Ask
    >>> from counterpoint.verify.grow import grow
    >>> worlds = grow(RandomizedResponse(0, delta="1/2"), [(Ask(private=0), Ask(private=1))], rounds=1)
    >>> [(str(worlds.factor * p), str(worlds.factor * q)) for p, q in Regions(worlds).of(0, 0)]
    [('0', '1/2'), ('1/2', '1/2'), ('1/2', '0')]
    """

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

    >>> from counterpoint.verify.finite import OpenDoor
    >>> from counterpoint.verify.grow import grow
    >>> from counterpoint.verify.message_pairs import message_pairs
    >>> worlds = grow(OpenDoor("1/8"), message_pairs(OpenDoor("1/8")).pairs, rounds=2)
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

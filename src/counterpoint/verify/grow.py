"""Building the tree of a pair of worlds, level by level, from a mechanism's own `start` and `step`.

See theory, Verification by computation.

Nodes whose beliefs have the same supports and the same progress are the rows of one block; a message acts on all of
them at once, by one matrix for each answer. Rows of the next level that are equal up to a common factor become one
node.

>>> from counterpoint import Laplace
>>> from counterpoint.mechanisms import Ask
>>> pairs = [(Ask(private=0), Ask(private=1)), (Ask(private=1), Ask(private=0))]
>>> grow(Laplace(1, asks=5), pairs, rounds=5, cut="1e-6").size < 200
True
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple, TypeAlias

import numpy as np

from counterpoint.encoding import encode
from counterpoint.mechanisms.mechanism import Mechanism
from counterpoint.numbers import Number
from counterpoint.privacy.relations import Pair, Progress, Relation
from counterpoint.verify.automaton import (
    FLOATS,
    HALTED,
    RATIONALS,
    UNIT,
    Arithmetic,
    Array,
    Automaton,
    Budget,
    Indices,
    Kernel,
    Kernels,
    NotRational,
    Support,
    TooLarge,
    idle,
)
from counterpoint.verify.game import verified
from counterpoint.verify.quotients import CUT
from counterpoint.verify.worlds import Choices, Level, Worlds

LIMIT = 20_000_000
"""The default limit on the numbers in a tree."""
_RATIONAL_LIMIT = 200_000
_END: Support = (-1,)
"""The support of a node at which the game has ended."""


@dataclass
class Block:
    """The nodes of a level with the same supports and the same progress, a row each."""

    supports: tuple[Support, Support]
    progress: Progress
    key: bytes
    nodes: Indices
    beliefs: tuple[Array, Array]


@dataclass
class Fan:
    """One move from all nodes of a block: node i goes by answer j to children[i, j], factors[i, j] times as heavy."""

    move: int
    parents: Indices
    answers: list[int]
    children: Indices
    factors: Array
    cuts: tuple[Array, Array]


class After(NamedTuple):
    """The relation's progress after a move, its canonical bytes, and whether that was the last round."""

    progress: Progress
    key: bytes
    last: bool


class Waiting(NamedTuple):
    """Rows of the next level that are not merged yet, and where their children and factors will be written."""

    progress: Progress
    beliefs: tuple[Array, Array]
    fan: Fan
    rows: Indices
    column: int


Bucket: TypeAlias = tuple[Support, Support, bytes]


class TreeBuilder:
    """Grows the tree level by level."""

    def __init__(
        self,
        automaton: Automaton,
        pairs: list[Pair],
        relation: Relation,
        arithmetic: Arithmetic,
        *,
        limit: int,
        full: bool,
        complete: bool = False,
    ) -> None:
        self._automaton = automaton
        self._pairs = pairs
        self._numbers = [tuple(automaton.message(message) for message in pair) for pair in pairs]
        self._relation = relation
        self._arithmetic = arithmetic
        self._budget = Budget(limit)
        self._full = full
        self._complete = full or complete
        self._operations = 0
        self._deviation = 0.0
        self._kernels = Kernels(automaton, arithmetic, self._budget)
        self._buckets: dict[Bucket, list[Waiting]] = {}
        self._fans: list[Fan] = []
        self._passed: dict[tuple[bytes, int], tuple[Progress, bytes] | None] = {}

    def grow(self, rounds: int) -> Worlds:
        """The tree of all transcripts of at most `rounds` messages."""
        start = self._automaton.start
        support = tuple(sorted(t.state for t in start.transitions))
        masses = {t.state: t.probability for t in start.transitions}
        self._kernels.check()
        belief = self._arithmetic.array([[masses[state] for state in support]])
        total = belief.sum() * 2
        belief = belief / total
        self._operations = 3 * len(support) + 16
        mass = belief.sum(axis=1)
        levels = [Level((mass, mass))]
        begun = self._relation.begin()
        blocks = [Block((support, support), begun, encode(begun, sealed=True), np.array([0]), (belief, belief))]
        for left in range(rounds, 0, -1):
            for block in blocks:
                self._expand(block, last=left == 1)
            if not self._fans:
                break
            following, blocks = self._settle()
            levels[-1].choices = _flat(self._fans)
            levels.append(following)
            self._fans = []
        self._automaton.confirm()
        drift = Fraction(self._deviation) + self._operations * UNIT
        error = 2 * self._automaton.error * (rounds + 1)  # rounding, and a cut that is no larger than rounding
        rational = self._arithmetic.rational
        worlds = (self._automaton, self._pairs, self._relation, levels, total, start.cut, rational)
        return Worlds(*worlds, drift if not rational else Fraction(0), error)

    def _expand(self, block: Block, last: bool) -> None:
        """Make every valid move from every node of a block."""
        for move in range(len(self._pairs)):
            after = self._verified(block, move, last)
            if after is None:
                continue
            kernels = [self._kernels.of(s, m) for s, m in zip(block.supports, self._numbers[move], strict=True)]
            if not self._complete and after.key == block.key and idle(block.supports, kernels):
                continue
            answers = sorted({*kernels[0].answers, *kernels[1].answers})
            shape = len(block.nodes), len(answers)
            fan = Fan(
                move,
                block.nodes,
                answers,
                np.zeros(shape, dtype=np.intp),
                self._arithmetic.zeros(*shape),
                (block.beliefs[0] @ kernels[0].cut, block.beliefs[1] @ kernels[1].cut),
            )
            self._budget.take(2 * shape[0] * shape[1])
            self._fans.append(fan)
            for column in range(len(answers)):
                self._send(block, kernels, fan, column, after)

    def _verified(self, block: Block, move: int, last: bool) -> After | None:
        """The progress after a move, or None if the verifier halts; cached."""
        place = block.key, move
        if place not in self._passed:
            pair = self._pairs[move]
            progress = verified(self._automaton.mechanism, self._relation, block.progress, pair)
            self._passed[place] = None if progress is None else (progress, encode(progress, sealed=True))
        passed = self._passed[place]
        return None if passed is None else After(*passed, last)

    def _send(self, block: Block, kernels: list[Kernel], fan: Fan, column: int, after: After) -> None:
        """Put the beliefs after one answer into their buckets."""
        supports, beliefs = [], []
        for belief, kernel in zip(block.beliefs, kernels, strict=True):
            support, matrix = kernel.answers.get(fan.answers[column], ((), self._arithmetic.zeros(belief.shape[1], 0)))
            self._budget.take(belief.shape[0] * len(support))
            supports.append(support)
            beliefs.append(belief @ matrix if support else self._arithmetic.zeros(belief.shape[0], 0))
        masses = [self._total(belief) for belief in beliefs]
        ends = np.full(len(block.nodes), after.last or set(supports[0]) | set(supports[1]) <= {HALTED})
        if not self._complete:
            ends |= (masses[0] == 0) | (masses[1] == 0)
        possible = (masses[0] > 0) | (masses[1] > 0)
        ended = [mass[:, None] for mass in masses]
        self._put((_END, _END, b""), None, ended, fan, np.flatnonzero(ends & possible), column)
        rest = np.flatnonzero(~ends & possible)
        self._put((supports[0], supports[1], after.key), after.progress, beliefs, fan, rest, column)

    def _put(  # noqa: PLR0917 - a row of what Waiting holds
        self, bucket: Bucket, progress: Progress, beliefs: list[Array], fan: Fan, rows: Indices, column: int
    ) -> None:
        if len(rows):
            waiting = Waiting(progress, (beliefs[0][rows], beliefs[1][rows]), fan, rows, column)
            self._buckets.setdefault(bucket, []).append(waiting)

    def _total(self, belief: Array) -> Array:
        """The mass of each row."""
        total: Array = belief.sum(axis=1) if belief.shape[1] else self._arithmetic.zeros(len(belief))
        return total

    def _settle(self) -> tuple[Level, list[Block]]:
        """Merge the waiting rows into the nodes of the next level, and write these into the fans."""
        blocks: list[Block] = []
        masses: tuple[list[Array], list[Array]] = ([], [])
        size, deviation, width = 0, 0.0, 1
        for (zero, one, key), waiting in self._buckets.items():
            split = waiting[0].beliefs[0].shape[1]
            rows = np.concatenate([np.concatenate(item.beliefs, axis=1) for item in waiting])
            factors = rows.sum(axis=1)
            rows = rows / factors[:, None]
            first, place, apart = self._merged(rows)
            kept = rows[first]
            self._note(waiting, factors, place + size)
            beliefs = kept[:, :split], kept[:, split:]
            for world in (0, 1):
                masses[world].append(self._total(beliefs[world]))
            if zero is not _END:
                nodes = np.arange(size, size + len(kept))
                blocks.append(Block((zero, one), waiting[0].progress, key, nodes, beliefs))
            size, deviation, width = size + len(kept), max(deviation, apart), max(width, rows.shape[1])
        self._operations += 3 * width + 2 * max(len(fan.answers) for fan in self._fans) + 16
        self._deviation += deviation
        self._buckets = {}
        return Level((np.concatenate(masses[0]), np.concatenate(masses[1]))), blocks

    def _merged(self, rows: Array) -> tuple[Indices, Indices, float]:
        if self._full:
            return np.arange(len(rows)), np.arange(len(rows)), 0.0
        return self._arithmetic.distinct(rows)

    def _note(self, waiting: list[Waiting], factors: Array, children: Indices) -> None:
        at = 0
        for item in waiting:
            span = slice(at, at + len(item.rows))
            item.fan.children[item.rows, item.column] = children[span]
            item.fan.factors[item.rows, item.column] = factors[span]
            at += len(item.rows)


def _flat(fans: list[Fan]) -> Choices:
    """The moves of a level in the order of their nodes, with their possible answers."""
    possible = [fan.factors > 0 for fan in fans]
    parents = np.concatenate([fan.parents for fan in fans])
    order = np.argsort(parents, kind="stable")
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    many = np.concatenate([mask.sum(axis=1) for mask in possible])
    edges = np.argsort(np.repeat(rank, many), kind="stable")
    answers = [np.broadcast_to(fan.answers, mask.shape)[mask] for fan, mask in zip(fans, possible, strict=True)]
    return Choices(
        parents[order],
        np.concatenate([np.full(len(fan.parents), fan.move) for fan in fans])[order],
        (np.concatenate([fan.cuts[0] for fan in fans])[order], np.concatenate([fan.cuts[1] for fan in fans])[order]),
        np.concatenate([[0], np.cumsum(many[order])[:-1]]),
        np.concatenate(answers)[edges],
        np.concatenate([fan.children[mask] for fan, mask in zip(fans, possible, strict=True)])[edges],
        np.concatenate([fan.factors[mask] for fan, mask in zip(fans, possible, strict=True)])[edges],
    )


def grow(
    mechanism: Mechanism,
    messages: Sequence[Pair],
    rounds: int,
    relation: Relation | None = None,
    *,
    cut: Number = CUT,
    rational: bool | None = None,
    limit: int = LIMIT,
    full: bool = False,
    complete: bool = False,
) -> Worlds:
    """The tree of a mechanism against an adversary with these pairs of messages and this many rounds.

    `rational=None` computes in rationals if every law is rational and the tree is small, else in floats. `complete`
    keeps everything: also moves that reveal nothing, and nodes that only one world can reach. `full` does not merge
    nodes either: then a node is one transcript.
    """
    automaton = Automaton(mechanism, cut)
    checked = mechanism.claim.relation if relation is None else relation
    pairs = list(messages)
    if rational is not False:
        most = limit if rational else min(limit, _RATIONAL_LIMIT)
        try:
            return TreeBuilder(automaton, pairs, checked, RATIONALS, limit=most, full=full, complete=complete).grow(
                rounds
            )
        except (TooLarge, NotRational):
            if rational:
                raise
    return TreeBuilder(automaton, pairs, checked, FLOATS, limit=limit, full=full, complete=complete).grow(rounds)

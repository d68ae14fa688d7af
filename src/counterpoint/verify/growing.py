"""Growing the tree of a pair of worlds, level by level, from a mechanism's own `start` and `step` (THEORY section 6).

Nodes whose beliefs have the same supports and the same progress are the rows of one block; a message acts on all of
them at once, by one matrix for each answer. Rows of the next level that are equal up to a common factor are one node.

>>> from counterpoint import Ask, Laplace
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
from counterpoint.errors import InvalidParameter
from counterpoint.mechanisms.mechanism import Mechanism
from counterpoint.numbers import Number
from counterpoint.privacy.relations import Pair, Progress, Relation
from counterpoint.verify.arithmetic import FLOATS, RATIONALS, UNIT, Arithmetic, Array, Indices
from counterpoint.verify.automaton import HALTED, Automaton
from counterpoint.verify.game import verified
from counterpoint.verify.worlds import Fan, Level, Worlds

LIMIT = 20_000_000
"""How many numbers a tree may hold unless told otherwise."""
_RATIONAL_LIMIT = 200_000

Support: TypeAlias = tuple[int, ...]
"""The states that a belief is about, in order; `_END` where no state matters any more."""
_END: Support = (-1,)


@dataclass
class Block:
    """The nodes of a level with the same supports and the same progress, a row each."""

    supports: tuple[Support, Support]
    progress: Progress
    nodes: Indices
    beliefs: tuple[Array, Array]


class Kernel(NamedTuple):
    """What one message does to the beliefs on one support: for each answer a matrix to the next support."""

    answers: dict[int, tuple[Support, Array]]
    cut: Array


class Waiting(NamedTuple):
    """Rows on their way to the next level, and where their children and factors are to be noted."""

    progress: Progress
    beliefs: tuple[Array, Array]
    fan: Fan
    rows: Indices
    column: int


Bucket: TypeAlias = tuple[Support, Support, bytes]


class Grower:
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
    ) -> None:
        self._automaton = automaton
        self._pairs = pairs
        self._numbers = [tuple(automaton.message(message) for message in pair) for pair in pairs]
        self._relation = relation
        self._arithmetic = arithmetic
        self._limit = limit
        self._full = full
        self._held = 0
        self._operations = 0
        self._deviation = 0.0
        self._kernels: dict[tuple[Support, int], Kernel] = {}
        self._buckets: dict[Bucket, list[Waiting]] = {}

    def grow(self, rounds: int) -> Worlds:
        """The tree of all transcripts of at most so many messages."""
        start = self._automaton.start
        support = tuple(sorted(entry.state for entry in start.entries))
        masses = {entry.state: entry.probability for entry in start.entries}
        if self._arithmetic.rational and not self._automaton.rational:
            raise NotRational("the laws of this mechanism are not rational: leave rational= out")
        belief = self._arithmetic.array([[masses[state] for state in support]])
        total = belief.sum() * 2
        belief = belief / total
        mass = belief.sum(axis=1)
        levels = [Level((mass, mass))]
        blocks = [Block((support, support), self._relation.begin(), np.array([0]), (belief, belief))]
        for left in range(rounds, 0, -1):
            for block in blocks:
                self._expand(block, levels[-1], last=left == 1)
            following, blocks = self._settle()
            if not len(following.masses[0]):
                break
            levels.append(following)
        drift = Fraction(self._deviation) + self._operations * UNIT
        error = self._automaton.error * (rounds + 1)
        rational = self._arithmetic.rational
        worlds = (self._automaton, self._pairs, self._relation, levels, total, start.cut, rational)
        return Worlds(*worlds, drift if not rational else Fraction(0), error)

    def _expand(self, block: Block, level: Level, last: bool) -> None:
        """Make every valid move from every node of a block."""
        for move, pair in enumerate(self._pairs):
            progress = verified(self._automaton.mechanism, self._relation, block.progress, pair)
            if progress is None:
                continue
            kernels = [self._kernel(s, m) for s, m in zip(block.supports, self._numbers[move], strict=True)]
            if not self._full and progress == block.progress and _idle(block.supports, kernels):
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
            self._count(2 * shape[0] * shape[1])
            level.fans.append(fan)
            for column in range(len(answers)):
                self._send(block, kernels, fan, column, after=progress, last=last)

    def _send(self, block: Block, kernels: list[Kernel], fan: Fan, column: int, *, after: Progress, last: bool) -> None:
        """Put the beliefs after one answer into the buckets where they belong."""
        supports, beliefs = [], []
        for belief, kernel in zip(block.beliefs, kernels, strict=True):
            support, matrix = kernel.answers.get(fan.answers[column], ((), self._arithmetic.zeros(belief.shape[1], 0)))
            self._count(belief.shape[0] * len(support))
            supports.append(support)
            beliefs.append(belief @ matrix if support else self._arithmetic.zeros(belief.shape[0], 0))
        masses = [self._total(belief) for belief in beliefs]
        ends = np.full(len(block.nodes), last or set(supports[0]) | set(supports[1]) <= {HALTED})
        if not self._full:
            ends |= (masses[0] == 0) | (masses[1] == 0)
        there = (masses[0] > 0) | (masses[1] > 0)
        for rows, found, progress, both in (
            (np.flatnonzero(ends & there), (_END, _END), None, [mass[:, None] for mass in masses]),
            (np.flatnonzero(~ends & there), (supports[0], supports[1]), after, beliefs),
        ):
            if len(rows):
                bucket = (*found, encode(progress, sealed=True))
                waiting = Waiting(progress, (both[0][rows], both[1][rows]), fan, rows, column)
                self._buckets.setdefault(bucket, []).append(waiting)

    def _total(self, belief: Array) -> Array:
        """The mass of each row."""
        total: Array = belief.sum(axis=1) if belief.shape[1] else self._arithmetic.zeros(len(belief))
        return total

    def _settle(self) -> tuple[Level, list[Block]]:
        """Merge what waits into the nodes of the next level, and note them in the fans."""
        blocks: list[Block] = []
        masses: tuple[list[Array], list[Array]] = ([], [])
        size, deviation, width = 0, 0.0, 1
        for (zero, one, _), waiting in self._buckets.items():
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
                blocks.append(Block((zero, one), waiting[0].progress, nodes, beliefs))
            size, deviation, width = size + len(kept), max(deviation, apart), max(width, rows.shape[1])
        answers = max((len(item.fan.answers) for items in self._buckets.values() for item in items), default=0)
        self._operations += 3 * width + 2 * answers + 16
        self._deviation += deviation
        self._buckets = {}
        if not size:
            nothing = self._arithmetic.zeros(0)
            return Level((nothing, nothing)), []
        return Level((np.concatenate(masses[0]), np.concatenate(masses[1]))), blocks

    def _merged(self, rows: Array) -> tuple[Indices, Indices, float]:
        if self._full:
            return np.arange(len(rows)), np.arange(len(rows)), 0.0
        return self._arithmetic.distinct(rows)

    def _note(self, waiting: list[Waiting], factors: Array, children: Indices) -> None:
        at = 0
        for item in waiting:
            here = slice(at, at + len(item.rows))
            item.fan.children[item.rows, item.column] = children[here]
            item.fan.factors[item.rows, item.column] = factors[here]
            at += len(item.rows)

    def _kernel(self, support: Support, message: int) -> Kernel:
        key = support, message
        if key not in self._kernels:
            self._kernels[key] = self._computed(support, message)
        return self._kernels[key]

    def _computed(self, support: Support, message: int) -> Kernel:
        rows = [self._automaton.row(state, message) for state in support]
        if self._arithmetic.rational and not self._automaton.rational:
            raise NotRational("the laws of this mechanism are not rational: leave rational= out")
        following: dict[int, set[int]] = {}
        for row in rows:
            for entry in row.entries:
                following.setdefault(entry.answer, set()).add(entry.state)
        answers: dict[int, tuple[Support, Array]] = {}
        for answer, states in following.items():
            self._count(len(support) * len(states))
            answers[answer] = tuple(sorted(states)), self._arithmetic.zeros(len(support), len(states))
        places = {answer: {s: n for n, s in enumerate(found)} for answer, (found, _) in answers.items()}
        for number, row in enumerate(rows):
            for entry in row.entries:
                value = entry.probability if self._arithmetic.rational else float(entry.probability)
                answers[entry.answer][1][number, places[entry.answer][entry.state]] = value
        return Kernel(answers, self._arithmetic.array([row.cut for row in rows]))

    def _count(self, numbers: int) -> None:
        self._held += numbers
        if self._held > self._limit:
            raise TooLarge(
                f"the tree holds more than {self._limit} numbers: give fewer messages or fewer rounds, coarser noise "
                "(a larger cut), or a larger limit"
            )


class TooLarge(InvalidParameter):
    """The tree does not fit into its limit."""


class NotRational(InvalidParameter):
    """The tree cannot be computed in rationals, because a probability is irrational or an infinite tail was cut."""


def _idle(supports: tuple[Support, Support], kernels: list[Kernel]) -> bool:
    """Whether a move tells nothing and changes nothing: one answer, every state stays."""
    for support, kernel in zip(supports, kernels, strict=True):
        if len(kernel.answers) != 1:
            return False
        ((following, matrix),) = kernel.answers.values()
        if following != support or not (matrix == np.eye(len(support), dtype=int)).all():
            return False
    return kernels[0].answers.keys() == kernels[1].answers.keys()


def grow(
    mechanism: Mechanism,
    messages: Sequence[Pair],
    rounds: int,
    relation: Relation | None = None,
    *,
    cut: Number = Fraction(1, 10**12),
    rational: bool | None = None,
    limit: int = LIMIT,
    full: bool = False,
) -> Worlds:
    """The tree of a mechanism against an adversary who has these pairs of messages and so many rounds.

    `rational=None` computes in rationals where every law is rational and the tree is small, else in floats. `full`
    merges and leaves out nothing: then a node is one transcript.
    """
    automaton = Automaton(mechanism, cut)
    checked = mechanism.claim.relation if relation is None else relation
    pairs = list(messages)
    if rational is not False:
        most = limit if rational else min(limit, _RATIONAL_LIMIT)
        try:
            return Grower(automaton, pairs, checked, RATIONALS, limit=most, full=full).grow(rounds)
        except (TooLarge, NotRational):
            if rational:
                raise
    return Grower(automaton, pairs, checked, FLOATS, limit=limit, full=full).grow(rounds)

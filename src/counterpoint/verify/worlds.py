"""A pair of worlds as a finite tree: every transcript of V[f] . I(b) . M, with its probability for b = 0 and b = 1.

A node stands for all transcripts with the same distribution over the mechanism's states in either world (its beliefs),
up to a common factor, and with the same progress of the relation. A move is a pair of messages; each answer to it leads
to a node of the next level, whose masses are multiplied by `factor`. The nodes of one level are computed together, as
arrays. A node that one world cannot reach, or where both have halted, has no moves: the adversary learns nothing more.

>>> from counterpoint import RandomizedResponse
>>> from counterpoint.mechanisms import Ask
>>> from counterpoint.verify.grow import grow
>>> worlds = grow(RandomizedResponse(0, delta="1/2"), [(Ask(private=0), Ask(private=1))], rounds=1)
>>> for branch in worlds.root.moves[0].branches:
...     print(branch.answer, branch.p0, branch.p1)
(True, 0) 1/2 0
(False, 0) 1/4 1/4
(False, 1) 1/4 1/4
(True, 1) 0 1/2
"""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from counterpoint.privacy.relations import Pair, Relation
from counterpoint.verify.automaton import Array, Automaton, Indices


class Choices(NamedTuple):
    """All moves from the nodes of one level, in the order of the nodes, and flat below them all answers to the moves.

    Move i is `moves[i]` at node `parents[i]`; its answers are `answers[starts[i]:starts[i + 1]]`, and so on.
    """

    parents: Indices
    moves: Indices
    cuts: tuple[Array, Array]
    starts: Indices
    answers: Indices
    children: Indices
    factors: Array

    def of(self, node: int) -> range:
        """The moves of a node."""
        return range(*(int(np.searchsorted(self.parents, node, side)) for side in ("left", "right")))

    def edges(self, move: int) -> slice:
        """The answers to a move."""
        return slice(self.starts[move], self.starts[move + 1] if move + 1 < len(self.starts) else len(self.answers))


@dataclass
class Level:
    """The nodes after a number of messages: their masses in the two worlds, and the moves from them, if any."""

    masses: tuple[Array, Array]
    choices: Choices | None = None


class Branch(NamedTuple):
    """An answer, its probabilities in the two worlds (given the node before), and the node that it leads to."""

    answer: Any
    p0: Any
    p1: Any
    node: "TreeNode"


class Move(NamedTuple):
    """A valid pair of messages, its number, and the possible answers."""

    number: int
    pair: Pair
    branches: list[Branch]


class TreeNode(NamedTuple):
    """One node of the tree, as a value for walking through it."""

    worlds: "Worlds"
    level: int
    place: int

    @property
    def masses(self) -> tuple[Any, Any]:
        """The masses of the node in the two worlds, up to a common factor."""
        masses = self.worlds.levels[self.level].masses
        return masses[0][self.place], masses[1][self.place]

    @property
    def moves(self) -> list[Move]:
        """The moves of the adversary; none at an end."""
        return list(self._moves())

    def _moves(self) -> Iterator[Move]:
        choices = self.worlds.levels[self.level].choices
        if choices is None:
            return
        for number in choices.of(self.place):
            edges, move = choices.edges(number), int(choices.moves[number])
            found = zip(choices.answers[edges], choices.children[edges], choices.factors[edges], strict=True)
            branches = [self._branch(int(answer), int(child), factor) for answer, child, factor in found]
            yield Move(move, self.worlds.pairs[move], branches)

    def _branch(self, answer: int, place: int, factor: Any) -> Branch:
        child = TreeNode(self.worlds, self.level + 1, place)
        p0, p1 = (
            factor * after / before if before else before
            for before, after in zip(self.masses, child.masses, strict=True)
        )
        return Branch(self.worlds.automaton.answers[answer], p0, p1, child)


@dataclass
class Worlds:
    """The tree, level by level, and the error bounds of its numbers.

    `factor` is the root's; `cut` is the truncated mass of the start. Every mass is within a relative `drift` of the
    exact one (0 for rationals); beyond that the laws themselves are off by at most `error` in each world, summed over
    all transcripts.
    """

    automaton: Automaton
    pairs: list[Pair]
    relation: Relation
    levels: list[Level]
    factor: Any
    cut: Fraction
    rational: bool
    drift: Fraction = Fraction(0)
    error: Fraction = Fraction(0)

    @property
    def root(self) -> TreeNode:
        """Before the first message."""
        return TreeNode(self, 0, 0)

    @property
    def size(self) -> int:
        """How many nodes there are."""
        return sum(len(level.masses[0]) for level in self.levels)

    @property
    def is_cut(self) -> bool:
        """Whether any outcome was truncated."""
        return self.cut > 0 or self.answers_are_cut

    @cached_property
    def answers_are_cut(self) -> bool:
        """Whether an outcome of a step was truncated; `cut` counts those of the start, which no view contains."""
        return any((cut > 0).any() for choices in self._choices() for cut in choices.cuts)

    @property
    def most_answers(self) -> int:
        """The largest number of answers to a move."""
        return max((int(np.diff([*c.starts, len(c.answers)]).max()) for c in self._choices()), default=0)

    def _choices(self) -> Iterator[Choices]:
        return (level.choices for level in self.levels if level.choices is not None)

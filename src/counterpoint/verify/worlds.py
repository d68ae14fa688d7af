"""A pair of worlds as a finite tree: every transcript of V[f] . I(b) . M, with its probability for b = 0 and b = 1.

A node stands for all transcripts after which the same is known: the distribution over the mechanism's states in either
world (its beliefs), up to a common factor, and the relation's progress. A move is a pair of messages; it leads by each
answer to a node of the next level, `factor` times as heavy. Nodes of one level are computed together, as arrays. A node
that one world cannot reach, or where both have halted, has no moves: nothing more can be learned there.

>>> from counterpoint import Ask, RandomizedResponse
>>> from counterpoint.verify.growing import grow
>>> worlds = grow(RandomizedResponse(0, delta="1/2"), [(Ask(private=0), Ask(private=1))], rounds=1)
>>> for branch in worlds.root.moves[0].branches:
...     print(branch.answer, branch.p0, branch.p1)
(True, 0) 1/2 0
(False, 0) 1/4 1/4
(False, 1) 1/4 1/4
(True, 1) 0 1/2
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from counterpoint.privacy.relations import Pair, Relation
from counterpoint.verify.arithmetic import Array, Indices
from counterpoint.verify.automaton import Automaton


@dataclass
class Fan:
    """One move from several nodes of a level: parent i goes by answer j to children[i, j], factors[i, j] as heavy."""

    move: int
    parents: Indices
    answers: list[int]
    children: Indices
    factors: Array
    cuts: tuple[Array, Array]


@dataclass
class Level:
    """The nodes after so many messages: their masses in the two worlds, and the moves from them."""

    masses: tuple[Array, Array]
    fans: list[Fan] = field(default_factory=list)


class Branch(NamedTuple):
    """By this answer, which has these probabilities in the two worlds (given the node before), to this node."""

    answer: Any
    p0: Any
    p1: Any
    node: "Node"


class Move(NamedTuple):
    """A pair of messages that the verifier lets pass, its number, and what may be answered."""

    number: int
    pair: Pair
    branches: list[Branch]


class Node(NamedTuple):
    """One node of the tree, as a value to walk on."""

    worlds: "Worlds"
    level: int
    index: int

    @property
    def masses(self) -> tuple[Any, Any]:
        """How heavy the node is in the two worlds, up to a common factor."""
        here = self.worlds.levels[self.level].masses
        return here[0][self.index], here[1][self.index]

    @property
    def moves(self) -> list[Move]:
        """What the adversary may do here; nothing at an end."""
        return list(self._moves())

    def _moves(self) -> Iterator[Move]:
        for fan, row in self.worlds.fans_of(self.level)[self.index]:
            branches = [
                self._branch(fan.answers[column], int(fan.children[row, column]), fan.factors[row, column])
                for column in np.flatnonzero(fan.factors[row] > 0)
            ]
            yield Move(fan.move, self.worlds.pairs[fan.move], branches)

    def _branch(self, answer: int, index: int, factor: Any) -> Branch:
        child = Node(self.worlds, self.level + 1, index)
        (here0, here1), (there0, there1) = self.masses, child.masses
        p0 = factor * there0 / here0 if here0 else here0
        return Branch(self.worlds.automaton.answers[answer], p0, factor * there1 / here1 if here1 else here1, child)


@dataclass
class Worlds:
    """The tree, level by level, and what its numbers may be off by.

    `factor` is the root's; `cut` is what the start lost to a cut. Every mass is within a relative `drift` of the truth
    (0 for rationals); beyond that the laws themselves are off by at most `error` in each world, summed over all
    transcripts.
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
    _fans: dict[int, dict[int, list[tuple[Fan, int]]]] = field(default_factory=dict, repr=False)

    @property
    def root(self) -> Node:
        """Before the first message."""
        return Node(self, 0, 0)

    @property
    def size(self) -> int:
        """How many nodes there are."""
        return sum(len(level.masses[0]) for level in self.levels)

    @property
    def is_cut(self) -> bool:
        """Whether any outcome was dropped."""
        return self.cut > 0 or any((cut > 0).any() for level in self.levels for fan in level.fans for cut in fan.cuts)

    def fans_of(self, level: int) -> dict[int, list[tuple[Fan, int]]]:
        """For each node of a level, the fans it is in and its row there."""
        if level not in self._fans:
            found: dict[int, list[tuple[Fan, int]]] = {n: [] for n in range(len(self.levels[level].masses[0]))}
            for fan in self.levels[level].fans:
                for row, parent in enumerate(fan.parents):
                    found[int(parent)].append((fan, row))
            self._fans[level] = found
        return self._fans[level]

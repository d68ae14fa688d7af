"""What a message does to beliefs: for each answer, a matrix from one set of states to the next.

A belief is a row of masses on a support, the states that are possible. Matrices are computed once for each support and
message, from the automaton's rows, and everything that is held is counted against a limit.

>>> from counterpoint import Ask, RandomizedResponse
>>> from counterpoint.verify.exactly.arithmetic import RATIONALS
>>> automaton = Automaton(RandomizedResponse(0, delta="1/2"))
>>> support, message = (automaton.start.entries[0].state,), automaton.message(Ask(private=1))
>>> kernel = Kernels(automaton, RATIONALS, Budget(100)).of(support, message)
>>> [str(matrix[0, 0]) for _, matrix in kernel.answers.values()]
['1/2', '1/4', '1/4']
"""

from typing import NamedTuple, TypeAlias

import numpy as np

from counterpoint.errors import InvalidParameter
from counterpoint.verify.exactly.arithmetic import Arithmetic, Array
from counterpoint.verify.exactly.automaton import Automaton

Support: TypeAlias = tuple[int, ...]
"""The states that a belief is about, in order."""


class TooLarge(InvalidParameter):
    """The tree does not fit into its limit."""


class NotRational(InvalidParameter):
    """The tree cannot be computed in rationals, because a probability is irrational or an infinite tail was cut."""


class Budget:
    """How many numbers may be held."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._held = 0

    def take(self, numbers: int) -> None:
        """Hold so many more, or `TooLarge`."""
        self._held += numbers
        if self._held > self._limit:
            raise TooLarge(
                f"the tree holds more than {self._limit} numbers: give fewer messages or fewer rounds, coarser noise "
                "(a larger cut), or a larger limit"
            )


class Kernel(NamedTuple):
    """What one message does to the beliefs on one support: a matrix for each answer, and the cut of each state."""

    answers: dict[int, tuple[Support, Array]]
    cut: Array


class Kernels:
    """The kernels of an automaton, in one arithmetic, computed as they are asked for."""

    def __init__(self, automaton: Automaton, arithmetic: Arithmetic, budget: Budget) -> None:
        self._automaton = automaton
        self._arithmetic = arithmetic
        self._budget = budget
        self._known: dict[tuple[Support, int], Kernel] = {}

    def check(self) -> None:
        """Refuse rationals where a law turned out not to be rational."""
        if self._arithmetic.rational and not self._automaton.rational:
            raise NotRational("the laws of this mechanism are not rational: leave rational= out")

    def of(self, support: Support, message: int) -> Kernel:
        """What a message does to beliefs on a support."""
        key = support, message
        if key not in self._known:
            self._known[key] = self._computed(support, message)
        return self._known[key]

    def _computed(self, support: Support, message: int) -> Kernel:
        rows = [self._automaton.row(state, message) for state in support]
        self.check()
        following: dict[int, set[int]] = {}
        for row in rows:
            for entry in row.entries:
                following.setdefault(entry.answer, set()).add(entry.state)
        answers: dict[int, tuple[Support, Array]] = {}
        for answer, states in following.items():
            self._budget.take(len(support) * len(states))
            answers[answer] = tuple(sorted(states)), self._arithmetic.zeros(len(support), len(states))
        places = {answer: {s: n for n, s in enumerate(found)} for answer, (found, _) in answers.items()}
        for number, row in enumerate(rows):
            for entry in row.entries:
                value = entry.probability if self._arithmetic.rational else float(entry.probability)
                answers[entry.answer][1][number, places[entry.answer][entry.state]] = value
        return Kernel(answers, self._arithmetic.array([row.cut for row in rows]))


def idle(supports: tuple[Support, Support], kernels: list[Kernel]) -> bool:
    """Whether a move tells nothing and changes nothing: one answer, every state stays."""
    for support, kernel in zip(supports, kernels, strict=True):
        if len(kernel.answers) != 1:
            return False
        ((following, matrix),) = kernel.answers.values()
        if following != support or not (matrix == np.eye(len(support), dtype=int)).all():
            return False
    return kernels[0].answers.keys() == kernels[1].answers.keys()

"""The effect of a message on beliefs: for each answer, a matrix from one set of states to the next.

A belief is a row of masses on a support, the set of possible states. Matrices are computed once for each support and
message, from the automaton's laws, and all stored numbers are counted against a limit.

>>> from counterpoint import Ask, RandomizedResponse
>>> from counterpoint.verify.exactly.arithmetic import RATIONALS
>>> automaton = Automaton(RandomizedResponse(0, delta="1/2"))
>>> support, message = (automaton.start.transitions[0].state,), automaton.message(Ask(private=1))
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
    """Counts the stored numbers against a limit."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._held = 0

    def take(self, numbers: int) -> None:
        """Count this many more numbers, or raise `TooLarge`."""
        self._held += numbers
        if self._held > self._limit:
            raise TooLarge(
                f"the tree would have more than {self._limit} numbers: give fewer messages, fewer rounds, a larger "
                "cut, or a larger limit"
            )


class Kernel(NamedTuple):
    """One message on one support: a matrix for each answer, and the truncated mass of each state."""

    answers: dict[int, tuple[Support, Array]]
    cut: Array


class Kernels:
    """The kernels of an automaton, in one arithmetic, computed on demand."""

    def __init__(self, automaton: Automaton, arithmetic: Arithmetic, budget: Budget) -> None:
        self._automaton = automaton
        self._arithmetic = arithmetic
        self._budget = budget
        self._known: dict[tuple[Support, int], Kernel] = {}

    def check(self) -> None:
        """Refuse rational arithmetic if a law turned out not to be rational."""
        if self._arithmetic.rational and not self._automaton.rational:
            raise NotRational("the probabilities of this mechanism are not all rational: leave out rational=True")

    def of(self, support: Support, message: int) -> Kernel:
        """The kernel of a message on a support."""
        key = support, message
        if key not in self._known:
            self._known[key] = self._computed(support, message)
        return self._known[key]

    def _computed(self, support: Support, message: int) -> Kernel:
        rows = [self._automaton.row(state, message) for state in support]
        self.check()
        following: dict[int, set[int]] = {}
        for row in rows:
            for transition in row.transitions:
                following.setdefault(transition.answer, set()).add(transition.state)
        answers: dict[int, tuple[Support, Array]] = {}
        for answer, states in following.items():
            self._budget.take(len(support) * len(states))
            answers[answer] = tuple(sorted(states)), self._arithmetic.zeros(len(support), len(states))
        places = {answer: {s: n for n, s in enumerate(found)} for answer, (found, _) in answers.items()}
        for number, row in enumerate(rows):
            for transition in row.transitions:
                value = transition.probability if self._arithmetic.rational else float(transition.probability)
                answers[transition.answer][1][number, places[transition.answer][transition.state]] = value
        return Kernel(answers, self._arithmetic.array([row.cut for row in rows]))


def idle(supports: tuple[Support, Support], kernels: list[Kernel]) -> bool:
    """Whether a move reveals nothing and changes nothing: one answer, and every state stays."""
    for support, kernel in zip(supports, kernels, strict=True):
        if len(kernel.answers) != 1:
            return False
        ((following, matrix),) = kernel.answers.values()
        if following != support or not (matrix == np.eye(len(support), dtype=int)).all():
            return False
    return kernels[0].answers.keys() == kernels[1].answers.keys()

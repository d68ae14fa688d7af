"""A mechanism as a finite automaton: its states, and for each state and message the law of (answer, next state).

States, messages and answers are identified by their canonical bytes and numbered in the order in which they occur; each
law is computed once, by the mechanism's own `step` on enumerated coins; each outcome is computed twice, and a step that
is not a function of its coins is an error. State `HALTED` answers every message with `HALT`.

>>> from counterpoint import RandomizedResponse
>>> from counterpoint.mechanisms import Ask
>>> automaton = Automaton(RandomizedResponse(0, delta="1/2"))
>>> row = automaton.row(automaton.start.transitions[0].state, automaton.message(Ask(private=1)))
>>> [(automaton.answers[transition.answer], str(transition.probability)) for transition in row.transitions]
[((True, 1), '1/2'), ((False, 1), '1/4'), ((False, 0), '1/4')]

`Kernels` are the effect of a message on beliefs, as matrices. They are computed exactly, in rationals, or fast, in
floats with a known error, by the same code on numpy arrays of `Fraction` objects or of doubles. Doubles are only added,
multiplied and divided, and are never negative, so the relative error of every result is known: `UNIT` for each
operation, and the error of merging rows that differ by rounding alone.

>>> rows = RATIONALS.array([[Fraction(1, 3), Fraction(2, 3)], [Fraction(1, 3), Fraction(2, 3)]])
>>> RATIONALS.distinct(rows).first, RATIONALS.distinct(rows).place
(array([0]), array([0, 0]))
"""

from collections.abc import Callable, Iterable
from fractions import Fraction
from functools import partial
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from counterpoint.coins.enumerated import Law
from counterpoint.encoding import encode
from counterpoint.errors import InvalidParameter, TapeMismatch
from counterpoint.mechanisms.mechanism import Answer, Mechanism, State
from counterpoint.numbers import Number
from counterpoint.privacy.messages import Message
from counterpoint.verify.game import HALT
from counterpoint.verify.quotients import CUT
from counterpoint.verify.symbolic import SymbolicCoins

HALTED = 0
"""The number of the halted state."""
_CONFIRMED = 16
"""How many laws are computed again in the end."""
_LATER = (
    "{}, {}: computed again later, its law is another one: it remembers its runs, or reads a clock; keep what "
    "changes in the state"
)


class Transition(NamedTuple):
    """An answer and a next state, with their probability."""

    answer: int
    state: int
    probability: Fraction


class TransitionLaw(NamedTuple):
    """The law of an answer and the next state, and the truncated mass."""

    transitions: tuple[Transition, ...]
    cut: Fraction


class Automaton:
    """All transitions of a mechanism, computed on demand; `error` bounds the rounding error of each law."""

    def __init__(self, mechanism: Mechanism, cut: Number = CUT) -> None:
        self.mechanism = mechanism
        self.error = Fraction(0)
        self.answers: list[Answer] = [HALT]
        self.messages: list[Message] = []
        self._coins = SymbolicCoins(cut)
        self._states: list[State | None] = [None]
        self._numbers: dict[tuple[str, bytes], int] = {("state", encode(None)): HALTED, ("answer", encode(HALT)): 0}
        self._rows: dict[tuple[int, int], TransitionLaw] = {}
        self.start = self._started()

    @property
    def rational(self) -> bool:
        """Whether every probability computed so far is exact."""
        return self.error == 0

    def message(self, message: Message) -> int:
        """The number of a message."""
        return self._number("message", message, self.messages)

    def row(self, state: int, message: int) -> TransitionLaw:
        """The law of the answer and the next state, after a message in a state."""
        if (state, message) not in self._rows:
            self._rows[state, message] = self._computed(state, message)
        return self._rows[state, message]

    def confirm(self) -> None:
        """Compute the start and a few of the laws again, the last first: a mechanism must not have changed since.

        `TapeMismatch` if one differs: then the mechanism remembers or reads something that is not in its state.
        """
        self._coins = SymbolicCoins(self._coins.cut)  # which remembers no sub-experiment
        self._coins.repeating = False
        places = list(self._rows)
        for place in places[:: -max(1, len(places) // _CONFIRMED)]:
            if self._computed(*place) != self._rows[place]:
                raise TapeMismatch(_LATER.format(type(self.mechanism).__name__, f"step on {self.messages[place[1]]!r}"))
        if self._started() != self.start:
            raise TapeMismatch(_LATER.format(type(self.mechanism).__name__, "start"))

    def _started(self) -> TransitionLaw:
        law = self._law("start", self.mechanism.start)
        return TransitionLaw(tuple(Transition(0, self._state(state), p) for state, p in law), self._cut(law))

    def _computed(self, state: int, message: int) -> TransitionLaw:
        before = self._states[state]
        if before is None:
            return TransitionLaw((Transition(0, HALTED, Fraction(1)),), Fraction(0))
        # a partial, so that the coins do not cache by its arguments, which would cost more than the law itself
        sent = self.messages[message]
        law = self._law(f"step on {sent!r}", partial(self.mechanism.step, before, sent))
        transitions = [Transition(self._answer(answer), self._state(after), p) for (after, answer), p in law if p]
        return TransitionLaw(tuple(transitions), self._cut(law))

    def _law(self, what: str, experiment: Callable[..., Any]) -> Law[Any]:
        """The law of a start or a step; `TapeMismatch` says which one is not a function of its coins."""
        try:
            return self._coins.law(experiment)
        except TapeMismatch as error:
            raise TapeMismatch(f"{type(self.mechanism).__name__}, {what}: {error}") from None

    def _cut(self, law: Law[Any]) -> Fraction:
        """The truncated mass beyond rounding; rounding is counted apart, so that a complete law has a cut of 0."""
        self.error = max(self.error, law.error)
        return law.cut if law.cut > law.error else Fraction(0)

    def _state(self, state: State | None) -> int:
        return self._number("state", state, self._states)

    def _answer(self, answer: Answer) -> int:
        return self._number("answer", answer, self.answers)

    def _number(self, kind: str, value: Any, known: list[Any]) -> int:
        key = kind, encode(value, sealed=True)
        if key not in self._numbers:
            self._numbers[key] = len(known)
            known.append(value)
        return self._numbers[key]


Array: TypeAlias = NDArray[Any]
Indices: TypeAlias = NDArray[np.intp]

UNIT = Fraction(1, 2**53)
"""Half the distance from 1 to the next double: the relative error of one operation."""
_KEPT_BITS = 32
_NEAR = 2.0**-42


class Distinct(NamedTuple):
    """Which rows are kept, the index of each row among these, and the largest relative deviation of a merged row."""

    first: Indices
    place: Indices
    deviation: float


class Rationals:
    """Exact arithmetic."""

    rational = True
    zero: Any = Fraction(0)

    def array(self, values: Iterable[Any]) -> Array:
        """An array of rationals."""
        return np.array(values, dtype=object)

    def zeros(self, *shape: int) -> Array:
        """An array of zeros."""
        return np.full(shape, Fraction(0), dtype=object)

    def distinct(self, rows: Array) -> Distinct:
        """The rows that differ."""
        places: dict[tuple[Fraction, ...], int] = {}
        place = [places.setdefault(tuple(row), len(places)) for row in rows]
        first = np.unique(np.array(place, dtype=np.intp), return_index=True)[1]
        return Distinct(first, np.array(place, dtype=np.intp), 0.0)


class Floats:
    """Doubles, whose relative error the caller counts."""

    rational = False
    zero: Any = 0.0

    def array(self, values: Iterable[Any]) -> Array:
        """An array of doubles, each the nearest to its value."""
        return np.array(values, dtype=np.float64)

    def zeros(self, *shape: int) -> Array:
        """An array of zeros."""
        return np.zeros(shape)

    def distinct(self, rows: Array) -> Distinct:
        """The rows that differ by more than rounding: found by their leading bits, then compared in full."""
        if rows.shape[0] == 1:
            return Distinct(np.zeros(1, dtype=np.intp), np.zeros(1, dtype=np.intp), 0.0)
        dropped = 52 - _KEPT_BITS
        leading = (np.ascontiguousarray(rows).view(np.int64) + (1 << (dropped - 1))) >> dropped
        keys = np.ascontiguousarray(leading).view(np.dtype((np.void, leading.shape[1] * 8))).ravel()
        _, first, place = np.unique(keys, return_index=True, return_inverse=True)
        kept = rows[first][place]
        apart = (np.abs(rows - kept) / np.where(kept > 0, kept, 1.0)).max(axis=1)
        separate = np.flatnonzero(apart > _NEAR)
        place = place.copy()
        place[separate] = len(first) + np.arange(len(separate))
        apart[separate] = 0.0
        return Distinct(np.concatenate([first, separate]), place, float(apart.max()))


RATIONALS, FLOATS = Rationals(), Floats()
Arithmetic: TypeAlias = Rationals | Floats

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
    """The kernels of an automaton, in one arithmetic, computed on demand.

    A belief is a row of masses on a support, the set of possible states. Matrices are computed once for each support
    and message, from the automaton's laws, and all stored numbers are counted against a limit.

    >>> from counterpoint import RandomizedResponse
    >>> from counterpoint.mechanisms import Ask
    >>> from counterpoint.verify.automaton import RATIONALS
    >>> automaton = Automaton(RandomizedResponse(0, delta="1/2"))
    >>> support, message = (automaton.start.transitions[0].state,), automaton.message(Ask(private=1))
    >>> kernel = Kernels(automaton, RATIONALS, Budget(100)).of(support, message)
    >>> [str(matrix[0, 0]) for _, matrix in kernel.answers.values()]
    ['1/2', '1/4', '1/4']
    """

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

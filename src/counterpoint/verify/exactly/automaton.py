"""A mechanism as a finite automaton: its states, and for each state and message the law of (answer, next state).

States, messages and answers are identified by their canonical bytes and numbered in the order in which they occur; each
law is computed once, by the mechanism's own `step` on enumerated coins; each outcome is computed twice, and a step that
is not a function of its coins is an error. State `HALTED` answers every message with
`HALT`.

>>> from counterpoint import Ask, RandomizedResponse
>>> automaton = Automaton(RandomizedResponse(0, delta="1/2"))
>>> row = automaton.row(automaton.start.transitions[0].state, automaton.message(Ask(private=1)))
>>> [(automaton.answers[transition.answer], str(transition.probability)) for transition in row.transitions]
[((True, 1), '1/2'), ((False, 1), '1/4'), ((False, 0), '1/4')]
"""

from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import Any, NamedTuple

from counterpoint.encoding import encode
from counterpoint.errors import TapeMismatch
from counterpoint.mechanisms.mechanism import Answer, Mechanism, State
from counterpoint.numbers import Number
from counterpoint.privacy.messages import Message
from counterpoint.randomness.enumerated import Law
from counterpoint.verify.exactly.symbolic import SymbolicCoins
from counterpoint.verify.games.game import HALT

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

    def __init__(self, mechanism: Mechanism, cut: Number = Fraction(1, 10**12)) -> None:
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
        """Compute the start and a few of the laws again, the last first: what happened meanwhile must change nothing.

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

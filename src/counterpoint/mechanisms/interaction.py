"""The conversation of an analyst with a mechanism, and what the analyst sees of it.

See Haney et al. 2023, Def 1.5, 1.6; Henzinger et al. 2024, Def 2.10.

The analyst is a randomized state machine too and speaks first; messages alternate until one of them halts. The view
is the analyst's own coins and the messages, sent and received: everything an adversary could decide by. A message
that the mechanism does not accept is answered with `Refused` and changes nothing. The same seeds give the same view.

>>> from counterpoint import Laplace
>>> from counterpoint.coins import SeededCoins
>>> from counterpoint.mechanisms import Ask
>>> class AskTwice(Analyst):
...     def start(self):
...         return 0
...     def turn(self, own, answer, coins):
...         return own + 1, Ask(private=100) if own < 2 else None
>>> view = interact(AskTwice(), Laplace(1, asks=5), SeededCoins(1))
>>> len(view.exchanges), view.halted_by
(2, 'analyst')
>>> view == interact(AskTwice(), Laplace(1, asks=5), SeededCoins(1))
True
"""

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, Literal

from counterpoint.coins.coins import Coins
from counterpoint.coins.secure import SeededCoins
from counterpoint.coins.tape import RecordingCoins, Tape
from counterpoint.encoding import digest
from counterpoint.errors import CounterpointError
from counterpoint.mechanisms.concurrent import Refused
from counterpoint.mechanisms.mechanism import Answer, Mechanism, State, ready
from counterpoint.numbers.exact import whole
from counterpoint.privacy.messages import Message


class Analyst:
    """An analyst: from its state and the last answer, its next state and message, or None to stop."""

    @abstractmethod
    def start(self) -> Any:
        """Its state before its first turn."""

    @abstractmethod
    def turn(self, own: Any, answer: Answer, coins: Coins) -> tuple[Any, Message | None]:
        """Its next state and message; the first turn gets the answer None."""


@dataclass(frozen=True)
class Exchange:
    """One message and its answer; the answer to an update is None. Equal if an observer could not tell them apart."""

    message: Message
    answer: Answer

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Exchange) and self._fingerprint() == other._fingerprint()

    def __hash__(self) -> int:
        return hash(self._fingerprint())

    def _fingerprint(self) -> bytes:
        return digest(self.message, self.answer, sealed=True)


@dataclass(frozen=True)
class View:
    """What the analyst saw: its own coins, every exchange, and who ended the conversation."""

    coins: Tape
    exchanges: tuple[Exchange, ...]
    halted_by: Literal["analyst", "mechanism", "nobody"]

    @property
    def answers(self) -> tuple[Answer, ...]:
        """The answers alone."""
        return tuple(exchange.answer for exchange in self.exchanges)


def interact(
    analyst: Analyst,
    mechanism: Mechanism,
    coins: Coins,
    *,
    analyst_coins: Coins | None = None,
    rounds: int = 1000,
) -> View:
    """Let them talk for at most `rounds` rounds; the analyst's view of it (Haney et al. 2023, Def 1.5, 1.6).

    The mechanism tosses `coins`; the analyst tosses its own, which are part of the view.
    """
    tossed = RecordingCoins(SeededCoins(0) if analyst_coins is None else analyst_coins)
    state: State | None = coins.call(mechanism.start)
    own, answer = analyst.start(), None
    exchanges: list[Exchange] = []
    for _ in range(whole(rounds, 0, "rounds")):
        own, message = analyst.turn(own, answer, tossed)
        if message is None:
            return View(tossed.tape, tuple(exchanges), "analyst")
        state, answer = _reply(mechanism, state, message, coins)
        exchanges.append(Exchange(message, answer))
        if state is None:
            return View(tossed.tape, tuple(exchanges), "mechanism")
    return View(tossed.tape, tuple(exchanges), "nobody")


def _reply(mechanism: Mechanism, state: State | None, message: Message, coins: Coins) -> tuple[State | None, Answer]:
    try:
        before, accepted = ready(mechanism, state, message)
    except CounterpointError as error:
        return state, Refused(type(error).__name__, str(error))
    return coins.call(mechanism.step, before, accepted)

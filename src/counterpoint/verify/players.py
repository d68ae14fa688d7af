"""Those who play many games for an audit: scripts, learned adversaries, and whole batches at once.

A player makes so many games against one world and gives back what was answered as columns of integers (events.py).
`Script` sends the same pairs in every game; `Strategist` plays an `Adversary`, for instance the one that `exact` found
on a small instance. Both run V[f] . I(b) . M game by game. `InBatches` asks for many games in one vector: a mechanism
that adds independent noise to each coordinate answers, by its own `step`, as many copies of itself.

>>> from counterpoint import Ask, Laplace, SeededCoins
>>> pair = Ask(private=0), Ask(private=5)
>>> InBatches((pair,)).games(Laplace(1), None, 1, 4, SeededCoins(1))["answer 1"]
array([3, 4, 5, 4])
"""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, Protocol

import numpy as np

from counterpoint.encoding import encode
from counterpoint.errors import InvalidParameter
from counterpoint.mechanisms.additive import Additive
from counterpoint.mechanisms.mechanism import Answer, Mechanism, State
from counterpoint.privacy.messages import Ask
from counterpoint.privacy.relations import Pair, Relation
from counterpoint.privacy.secret import Secret, reveal
from counterpoint.randomness.coins import Coins
from counterpoint.verify.adversary import Adversary, said
from counterpoint.verify.events import UNORDERED, Column, Views
from counterpoint.verify.game import Game

_WIDEST = 2**61
_FEW = 12
_MANY = 4096


class Player(Protocol):
    """Plays many games against one world of a mechanism."""

    @property
    def at_once(self) -> int:
        """How many games are best asked for at a time."""

    def games(self, mechanism: Mechanism, relation: Relation | None, bit: int, size: int, coins: Coins) -> Views:
        """What was answered in so many games, as columns."""


@dataclass(frozen=True)
class Script:
    """Sends these pairs, one after the other, whatever is answered."""

    pairs: tuple[Pair, ...]
    at_once = 2000

    def __str__(self) -> str:
        return ", then ".join(said(pair) for pair in self.pairs)

    def games(self, mechanism: Mechanism, relation: Relation | None, bit: int, size: int, coins: Coins) -> Views:
        """Game by game."""
        return columns([self._play(mechanism, relation, bit, coins) for _ in range(size)])

    def _play(self, mechanism: Mechanism, relation: Relation | None, bit: int, coins: Coins) -> tuple[Answer, ...]:
        game = Game(mechanism, 1 if bit else 0, relation)
        state: State | None = coins.call(game.start)
        answers = []
        for pair in self.pairs:
            state, answer = game.step(state, *pair, coins)
            answers.append(answer)
        return tuple(answers)


@dataclass(frozen=True)
class Strategist:
    """Plays an adversary; what she says at the end is a column too."""

    adversary: Adversary
    at_once = 2000

    def __str__(self) -> str:
        return f"an adaptive adversary:\n{self.adversary}"

    def games(self, mechanism: Mechanism, relation: Relation | None, bit: int, size: int, coins: Coins) -> Views:
        """Game by game."""
        played = [self.adversary.play(mechanism, bit, coins, relation) for _ in range(size)]
        views = columns([game.answers for game in played])
        return {**views, "guess": np.array([game.guess for game in played], dtype=np.int64)}


@dataclass(frozen=True)
class InBatches:
    """Sends these pairs of integers to as many copies as there are games, all in one vector ask.

    The games are independent if the coordinates' noise is. Where that is itself in doubt, audit without batches.
    """

    pairs: tuple[Pair, ...]
    at_once = 500_000

    def __str__(self) -> str:
        return ", then ".join(said(pair) for pair in self.pairs)

    def games(self, mechanism: Mechanism, relation: Relation | None, bit: int, size: int, coins: Coins) -> Views:
        """One step of the mechanism itself for each pair."""
        state: State | None = coins.call(mechanism.start)
        answers: list[Column] = []
        for pair in self.pairs:
            if state is None:
                break
            state, answer = coins.call(mechanism.step, state, _copies(pair[bit], size))
            answers.append(_column(answer))
        return _numbers(answers, self.pairs)


def can_batch(mechanism: Mechanism, pairs: Sequence[Pair], relation: Relation) -> bool:
    """Whether the games of a script may be asked for in one vector: noise on integers, nothing kept but a count."""
    plain = isinstance(mechanism, Additive) and type(mechanism).step is Additive.step
    asks = all(isinstance(m, Ask) and m.private is not None and m.private.width is None for pair in pairs for m in pair)
    return plain and asks and relation.valid(pairs) and all(mechanism.accepts(m) for pair in pairs for m in pair)


def _column(answer: Sequence[int]) -> Column:
    try:
        return np.array(answer, dtype=np.int64)
    except OverflowError:
        return np.array([max(-_WIDEST, min(value, _WIDEST)) for value in answer], dtype=np.int64)


def _copies(message: Any, size: int) -> Ask:
    return Ask(message.public, Secret((_value(message),) * size), message.sensitivity, message.squared)


def _value(message: Any) -> int:
    value = reveal(message.private)
    assert isinstance(value, int)
    return value


def _numbers(answers: list[Column], pairs: tuple[Pair, ...]) -> Views:
    views = {f"answer {number}": column for number, column in enumerate(answers, 1)}
    if len(answers) > 1:
        views["sum"] = np.sum(answers, axis=0)
        views |= {
            f"answer {number + 1} - answer {number}": answers[number] - answers[number - 1]
            for number in range(1, len(answers))
        }
    # |a - right| - |a - left|: in the order of the likelihood ratio, whatever the scale of Laplace noise is
    ends = [(_value(left), _value(right)) for left, right in pairs]
    nearer = [np.abs(a - right) - np.abs(a - left) for a, (left, right) in zip(answers, ends, strict=False)]
    return {**views, "nearness to the left": np.sum(nearer, axis=0)}


def columns(games: list[tuple[Answer, ...]]) -> Views:
    """The views of transcripts: each as a number that names it, its numbers, their sum, and differences."""
    rounds = max((len(game) for game in games), default=0)
    views = {UNORDERED: np.array([_name(game) for game in games], dtype=np.int64)}
    views["sum"] = np.array([sum(_integers(game)) for game in games], dtype=np.int64)
    views["numbers"] = np.array([sum(1 for _ in _integers(game)) for game in games], dtype=np.int64)
    for at in range(rounds):
        views[f"answer {at + 1}"] = np.array([_number(_at(game, at)) for game in games], dtype=np.int64)
        if at:
            steps = [_difference(_at(game, at - 1), _at(game, at)) for game in games]
            views[f"answer {at + 1} - answer {at}"] = np.array(steps, dtype=np.int64)
    return views


def _name(answers: Any) -> int:
    return int.from_bytes(hashlib.sha256(encode(answers)).digest()[:8], "big", signed=True)


def _integers(answer: Answer) -> Iterator[int]:
    """The integers in an answer, wherever they are; those that are too wide for a column at its edge."""
    if isinstance(answer, int):
        yield max(-_WIDEST, min(int(answer), _WIDEST))
    elif isinstance(answer, tuple):
        for item in answer:
            yield from _integers(item)


def _at(game: tuple[Answer, ...], at: int) -> Answer:
    return game[at] if at < len(game) else None


def _difference(before: Answer, after: Answer) -> int:
    return _number(after - before if type(before) is int and type(after) is int else (before, after))


def _number(answer: Answer) -> int:
    """One answer as a number: an integer itself, anything else by its name."""
    return max(-_WIDEST, min(answer, _WIDEST)) if type(answer) is int else _name(answer)


def scripts(
    mechanism: Mechanism, pairs: Sequence[Pair], rounds: int, relation: Relation, *, batches: bool = True
) -> list[Player]:
    """A few valid sequences of these pairs: those that differ most, and ask most."""
    if len(pairs) ** rounds <= _MANY:
        tried = list(product(pairs, repeat=rounds))
    else:
        tried = [(pair,) * rounds for pair in pairs]
        tried += [(first,) + (pair,) * (rounds - 1) for first in pairs for pair in pairs if first is not pair]
    valid = [script for script in tried if relation.valid(script)]
    if not valid:
        raise InvalidParameter("none of the sequences of these messages is valid in the relation; give other messages")
    best = sorted(valid, key=_promise, reverse=True)[:_FEW]
    return [
        InBatches(script) if batches and can_batch(mechanism, script, relation) else Script(script) for script in best
    ]


def _promise(script: Sequence[Pair]) -> tuple[int, int]:
    differing = sum(encode(left, sealed=True) != encode(right, sealed=True) for left, right in script)
    return differing, sum(isinstance(left, Ask) for left, _ in script)

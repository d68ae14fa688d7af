"""Players: they play many games for an audit, from a script, by an adversary, or in batches.

A player plays a number of games against one world and returns the answers as columns of integers (events.py). `Script`
sends the same pairs in every game; `Strategist` plays an `Adversary`, for instance the one that `exact` found on a
small instance. Both run V[f] . I(b) . M game by game. `InBatches` plays many games with one vector ask: a mechanism
that adds independent noise to each coordinate answers, by its own `step`, as many copies of itself would.

>>> from counterpoint import Laplace
>>> from counterpoint.coins import SeededCoins
>>> from counterpoint.mechanisms import Ask
>>> pair = Ask(private=0), Ask(private=5)
>>> InBatches((pair,)).games(Laplace(1), None, 1, 4, SeededCoins(1))["answer 1"]
array([3, 4, 5, 4])

`DrawnAhead` draws noise a thousand values at a time, since the games of an audit all need noise of the same law. Each
draw is one entry of a vector of independent values and is used once, so laws and independence are the same; a
vector costs hardly more than one draw. The audit then covers the vector form of the sampler; to audit the scalar form,
use `batches=False`.

>>> from counterpoint.coins import SeededCoins
>>> ahead, vector = DrawnAhead(SeededCoins(1)), SeededCoins(1).discrete_laplace(10, size=1024)
>>> [ahead.discrete_laplace(10), *ahead.discrete_laplace(10, size=2)] == list(vector[:3])
True
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import groupby
from typing import Any, Protocol, TypeVar, overload

import numpy as np

from counterpoint.coins.coins import Coins, Flags, Integers
from counterpoint.mechanisms.additive import Additive
from counterpoint.mechanisms.mechanism import Answer, Mechanism, State
from counterpoint.numbers import Number
from counterpoint.privacy.messages import Ask, Message
from counterpoint.privacy.relations import Pair, Relation
from counterpoint.privacy.secret import Secret, reveal
from counterpoint.verify.adversary import Adversary, format_pair
from counterpoint.verify.audits.events import Column, Views, clipped, columns
from counterpoint.verify.game import HALT, verified


class Player(Protocol):
    """Plays many games against one world of a mechanism."""

    @property
    def at_once(self) -> int:
        """The best number of games for one call."""

    def games(self, mechanism: Mechanism, relation: Relation | None, bit: int, size: int, coins: Coins) -> Views:
        """The answers of `size` games, as columns."""


@dataclass(frozen=True)
class Script:
    """Sends these pairs, one after the other, whatever the answers are."""

    pairs: tuple[Pair, ...]
    at_once = 2000

    def __str__(self) -> str:
        return format_script(self.pairs)

    def games(self, mechanism: Mechanism, relation: Relation | None, bit: int, size: int, coins: Coins) -> Views:
        """Play game by game. The pairs are the same in each, so the verifier checks them once."""
        passed = self._verified(mechanism, mechanism.claim.relation if relation is None else relation)
        messages = [pair[bit] for pair in self.pairs[:passed]]
        return columns([self._play(mechanism, messages, coins) for _ in range(size)], len(self.pairs))

    def _verified(self, mechanism: Mechanism, relation: Relation) -> int:
        """How many of the pairs the verifier lets pass."""
        progress = relation.begin()
        for passed, pair in enumerate(self.pairs):
            progress = verified(mechanism, relation, progress, pair)
            if progress is None:
                return passed
        return len(self.pairs)

    def _play(self, mechanism: Mechanism, messages: list[Message], coins: Coins) -> tuple[Answer, ...]:
        state: State | None = coins.call(mechanism.start)
        answers: list[Answer] = []
        for message in messages:
            if state is None:
                break
            state, answer = coins.call(mechanism.step, state, message)
            answers.append(answer)
        return (*answers, *[HALT] * (len(self.pairs) - len(answers)))


@dataclass(frozen=True)
class Strategist:
    """Plays an adversary; its guess is a column too."""

    adversary: Adversary
    at_once = 2000

    def __str__(self) -> str:
        return f"an adaptive adversary:\n{self.adversary}"

    def games(self, mechanism: Mechanism, relation: Relation | None, bit: int, size: int, coins: Coins) -> Views:
        """Play game by game."""
        played = [self.adversary.play(mechanism, bit, coins, relation) for _ in range(size)]
        views = columns([game.answers for game in played], self.adversary.rounds)
        return {**views, "guess": np.array([game.guess for game in played], dtype=np.int64)}


@dataclass(frozen=True)
class InBatches:
    """Sends these pairs of integers to one copy of the mechanism for each game, all in one vector ask.

    The games are independent if the noise of the coordinates is. If that is itself in doubt, audit without batches.
    """

    pairs: tuple[Pair, ...]
    at_once = 500_000

    def __str__(self) -> str:
        return format_script(self.pairs)

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


def format_script(script: Sequence[Pair]) -> str:
    """A script in words; a pair that is sent repeatedly is written once.

    >>> up, down = (Ask(private=0), Ask(private=1)), (Ask(private=1), Ask(private=0))
    >>> format_script([up, up, up, down])
    '3 times Ask(private=0 | 1), then Ask(private=1 | 0)'
    """
    runs = [(sent, len(list(again))) for sent, again in groupby(map(format_pair, script))]
    return ", then ".join(sent if many == 1 else f"{many} times {sent}" for sent, many in runs)


def can_batch(mechanism: Mechanism, pairs: Sequence[Pair], relation: Relation) -> bool:
    """Whether one vector ask can play the games of a script: noise on integers, and no state but a count."""
    plain = isinstance(mechanism, Additive) and type(mechanism).step is Additive.step
    asks = all(isinstance(m, Ask) and m.private is not None and m.private.width is None for pair in pairs for m in pair)
    return plain and asks and relation.valid(pairs) and all(mechanism.accepts(m) for pair in pairs for m in pair)


def _column(answer: Sequence[int]) -> Column:
    try:
        return np.array(answer, dtype=np.int64)
    except OverflowError:
        return np.array([clipped(value) for value in answer], dtype=np.int64)


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


def player(script: tuple[Pair, ...], mechanism: Mechanism, relation: Relation, *, batches: bool) -> Player:
    """The player of a script: in batches if that is possible and wanted, else game by game."""
    return InBatches(script) if batches and can_batch(mechanism, script, relation) else Script(script)


R = TypeVar("R")
_AT_ONCE = 1024
_WIDE = 64  # a vector of this width is worth a draw of its own


class DrawnAhead:
    """The given coins, with noise drawn ahead; all other tosses are passed on."""

    def __init__(self, coins: Coins) -> None:
        self._coins = coins
        self._drawn: dict[object, tuple[Integers, int]] = {}

    @overload
    def bernoulli(self, p: Number, size: None = None) -> bool: ...
    @overload
    def bernoulli(self, p: Number, size: int) -> Flags: ...
    def bernoulli(self, p: Number, size: int | None = None) -> bool | Flags:
        """Passed on."""
        return self._coins.bernoulli(p, size)

    def logistic(self, epsilon: Number) -> bool:
        """Passed on."""
        return self._coins.logistic(epsilon)

    @overload
    def integer(self, n: int, size: None = None) -> int: ...
    @overload
    def integer(self, n: int, size: int) -> Integers: ...
    def integer(self, n: int, size: int | None = None) -> int | Integers:
        """Passed on."""
        return self._coins.integer(n, size)

    @overload
    def discrete_laplace(self, scale: Number, size: None = None) -> int: ...
    @overload
    def discrete_laplace(self, scale: Number, size: int) -> Integers: ...
    def discrete_laplace(self, scale: Number, size: int | None = None) -> int | Integers:
        """Drawn ahead."""
        return self._take("laplace", self._coins.discrete_laplace, scale, size)

    @overload
    def discrete_gaussian(self, sigma2: Number, size: None = None) -> int: ...
    @overload
    def discrete_gaussian(self, sigma2: Number, size: int) -> Integers: ...
    def discrete_gaussian(self, sigma2: Number, size: int | None = None) -> int | Integers:
        """Drawn ahead."""
        return self._take("gaussian", self._coins.discrete_gaussian, sigma2, size)

    @overload
    def rounded_normal(self, sigma2: Number, size: None = None) -> int: ...
    @overload
    def rounded_normal(self, sigma2: Number, size: int) -> Integers: ...
    def rounded_normal(self, sigma2: Number, size: int | None = None) -> int | Integers:
        """Drawn ahead."""
        return self._take("rounded normal", self._coins.rounded_normal, sigma2, size)

    @overload
    def geometric(self, scale: Number, size: None = None) -> int: ...
    @overload
    def geometric(self, scale: Number, size: int) -> Integers: ...
    def geometric(self, scale: Number, size: int | None = None) -> int | Integers:
        """Drawn ahead."""
        return self._take("geometric", self._coins.geometric, scale, size)

    def choose(self, lags: Sequence[Number]) -> int:
        """Passed on."""
        return self._coins.choose(lags)

    def call(self, experiment: Callable[..., R], *args: object) -> R:
        """The sub-experiment tosses the same coins."""
        return experiment(*args, self)

    def _take(self, law: str, draw: Callable[..., Any], parameter: Number, size: int | None) -> int | Integers:
        """The next entries of the vector of this law; each is used once."""
        if size is not None and not 0 <= size <= _WIDE:
            vector: Integers = draw(parameter, size)
            return vector
        wanted = 1 if size is None else size
        # a Fraction's own hash takes longer than the draw
        ratio = parameter.as_integer_ratio() if isinstance(parameter, Fraction) else str(parameter)
        key = law, ratio
        drawn, at = self._drawn.get(key, (None, 0))
        if drawn is None or at + wanted > len(drawn):
            drawn, at = draw(parameter, _AT_ONCE), 0
        self._drawn[key] = drawn, at + wanted
        return int(drawn[at]) if size is None else drawn[at : at + wanted]

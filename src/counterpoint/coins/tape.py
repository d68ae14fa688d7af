"""Tapes: record the coins of one run and replay them in another, so that two worlds are compared on equal coins.

`RecordingCoins` passes every toss on and writes it down; `ReplayedCoins` gives the same results in the same order and
raises `TapeMismatch` if it is asked for another kind of toss or other (public) parameters: then the control flow of the
two runs differs, which is what a replay is meant to find. A sub-experiment (`call`) is recorded with its outcome; a
replay either runs it again on the recorded tosses or, with `outcomes=True`, returns the recorded outcome.

>>> from counterpoint.coins import SeededCoins
>>> recording = RecordingCoins(SeededCoins(1))
>>> noise = recording.discrete_laplace(10)
>>> ReplayedCoins(recording.tape).discrete_laplace(10) == noise
True
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar, overload

from counterpoint.coins.coins import Coins, Flags, Integers
from counterpoint.errors import TapeMismatch
from counterpoint.numbers import Number
from counterpoint.numbers.exact import exact

R = TypeVar("R")


@dataclass(frozen=True, repr=False)
class Toss:
    """One toss: its kind and public parameters, its result, and for a sub-experiment the tosses inside."""

    kind: str
    parameters: tuple[object, ...]
    result: Any
    inside: "Tape" = ()

    def __repr__(self) -> str:
        return f"Toss({self.kind!r}, {self.parameters!r}, ...)"


Tape = tuple[Toss, ...]
"""The tosses of a run, in order. Its results are as secret as the noise they are."""


@dataclass
class RecordingCoins:
    """Coins that write down every toss; `tape` is the record so far."""

    coins: Coins
    _tosses: list[Toss] = field(default_factory=list, repr=False)

    @property
    def tape(self) -> Tape:
        """What has been tossed so far."""
        return tuple(self._tosses)

    def _note(self, kind: str, parameters: tuple[object, ...], result: R) -> R:
        self._tosses.append(Toss(kind, parameters, result))
        return result

    @overload
    def bernoulli(self, p: Number, size: None = None) -> bool: ...
    @overload
    def bernoulli(self, p: Number, size: int) -> Flags: ...
    def bernoulli(self, p: Number, size: int | None = None) -> bool | Flags:
        """Toss and write down."""
        return self._note("bernoulli", (exact(p), size), self.coins.bernoulli(p, size))

    def logistic(self, epsilon: Number) -> bool:
        """Toss and write down."""
        return self._note("logistic", (exact(epsilon),), self.coins.logistic(epsilon))

    @overload
    def integer(self, n: int, size: None = None) -> int: ...
    @overload
    def integer(self, n: int, size: int) -> Integers: ...
    def integer(self, n: int, size: int | None = None) -> int | Integers:
        """Toss and write down."""
        return self._note("integer", (n, size), self.coins.integer(n, size))

    @overload
    def discrete_laplace(self, scale: Number, size: None = None) -> int: ...
    @overload
    def discrete_laplace(self, scale: Number, size: int) -> Integers: ...
    def discrete_laplace(self, scale: Number, size: int | None = None) -> int | Integers:
        """Toss and write down."""
        return self._note("laplace", (exact(scale), size), self.coins.discrete_laplace(scale, size))

    @overload
    def discrete_gaussian(self, sigma2: Number, size: None = None) -> int: ...
    @overload
    def discrete_gaussian(self, sigma2: Number, size: int) -> Integers: ...
    def discrete_gaussian(self, sigma2: Number, size: int | None = None) -> int | Integers:
        """Toss and write down."""
        return self._note("gaussian", (exact(sigma2), size), self.coins.discrete_gaussian(sigma2, size))

    @overload
    def rounded_normal(self, sigma2: Number, size: None = None) -> int: ...
    @overload
    def rounded_normal(self, sigma2: Number, size: int) -> Integers: ...
    def rounded_normal(self, sigma2: Number, size: int | None = None) -> int | Integers:
        """Toss and write down."""
        return self._note("rounded normal", (exact(sigma2), size), self.coins.rounded_normal(sigma2, size))

    @overload
    def geometric(self, scale: Number, size: None = None) -> int: ...
    @overload
    def geometric(self, scale: Number, size: int) -> Integers: ...
    def geometric(self, scale: Number, size: int | None = None) -> int | Integers:
        """Toss and write down."""
        return self._note("geometric", (exact(scale), size), self.coins.geometric(scale, size))

    def choose(self, lags: Sequence[Number]) -> int:
        """Toss and write down; of the lags, which may be secret, only how many there are."""
        return self._note("choose", (len(lags),), self.coins.choose(lags))

    def call(self, experiment: Callable[..., R], *args: object) -> R:
        """Run the sub-experiment and write down both its tosses and its outcome."""
        inner = RecordingCoins(self.coins)
        result = experiment(*args, inner)
        self._tosses.append(Toss("call", (_name(experiment),), result, inner.tape))
        return result


class ReplayedCoins:
    """Coins that give the results of a tape again; with `outcomes=True`, those of whole sub-experiments."""

    def __init__(self, tape: Tape, *, outcomes: bool = False) -> None:
        self._tape = tape
        self._next = 0
        self._outcomes = outcomes

    @property
    def finished(self) -> bool:
        """Whether every toss on the tape has been replayed."""
        return self._next == len(self._tape)

    def _take(self, kind: str, *parameters: object) -> Toss:
        if self.finished:
            raise TapeMismatch(f"the replayed run tosses once more than the recorded one: {kind}{parameters}")
        toss = self._tape[self._next]
        if (toss.kind, toss.parameters) != (kind, parameters):
            raise TapeMismatch(
                f"toss {self._next} was {toss.kind}{toss.parameters} when recorded and is {kind}{parameters} now"
            )
        self._next += 1
        return toss

    def bernoulli(self, p: Number, size: int | None = None) -> Any:
        """The recorded result."""
        return self._take("bernoulli", exact(p), size).result

    def logistic(self, epsilon: Number) -> bool:
        """The recorded result."""
        return bool(self._take("logistic", exact(epsilon)).result)

    def integer(self, n: int, size: int | None = None) -> Any:
        """The recorded result."""
        return self._take("integer", n, size).result

    def discrete_laplace(self, scale: Number, size: int | None = None) -> Any:
        """The recorded result."""
        return self._take("laplace", exact(scale), size).result

    def discrete_gaussian(self, sigma2: Number, size: int | None = None) -> Any:
        """The recorded result."""
        return self._take("gaussian", exact(sigma2), size).result

    def rounded_normal(self, sigma2: Number, size: int | None = None) -> Any:
        """The recorded result."""
        return self._take("rounded normal", exact(sigma2), size).result

    def geometric(self, scale: Number, size: int | None = None) -> Any:
        """The recorded result."""
        return self._take("geometric", exact(scale), size).result

    def choose(self, lags: Sequence[Number]) -> int:
        """The recorded result."""
        return int(self._take("choose", len(lags)).result)

    def call(self, experiment: Callable[..., R], *args: object) -> R:
        """The recorded outcome, or the sub-experiment run on its recorded tosses."""
        toss = self._take("call", _name(experiment))
        if self._outcomes:
            outcome: R = toss.result
            return outcome
        inner = ReplayedCoins(toss.inside)
        result = experiment(*args, inner)
        if not inner.finished:
            raise TapeMismatch(f"the replayed {_name(experiment)} tosses less than the recorded one")
        return result


def _name(experiment: Callable[..., object]) -> str:
    return getattr(experiment, "__qualname__", type(experiment).__qualname__)

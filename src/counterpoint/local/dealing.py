"""Coins for many users at once: one vector is drawn for all users of a round, and dealt out to them.

Each user gets an entry of its own of an independent vector, so the laws and the independence are the same as if each
tossed for itself. What it buys: users run one by one as objects and users computed as arrays consume the same coins in
the same order, so that the two forms can be compared answer by answer.

>>> from counterpoint import SeededCoins
>>> dealer = Dealer(SeededCoins(1), 3)
>>> [dealer.to(place).discrete_laplace(10) for place in range(3)] == list(SeededCoins(1).discrete_laplace(10, size=3))
True
"""

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, Literal, TypeAlias, TypeVar, overload

from counterpoint.numbers import Number
from counterpoint.numbers.exact import positive, probability, whole
from counterpoint.randomness.coins import Coins, Flags, Integers

R = TypeVar("R")
Kind: TypeAlias = Literal["laplace", "gaussian", "rounded normal", "bernoulli", "integer"]


class Dealer:
    """Draws for `players` users in one round, when the first of them asks."""

    def __init__(self, coins: Coins, players: int) -> None:
        self.coins = coins
        self.players = whole(players, 1, "the number of users")
        self._laws: dict[Kind, Callable[[Any, int], Integers | Flags]] = {
            "laplace": coins.discrete_laplace,
            "gaussian": coins.discrete_gaussian,
            "rounded normal": coins.rounded_normal,
            "bernoulli": coins.bernoulli,
            "integer": coins.integer,
        }
        self._drawn: dict[tuple[int, Kind, Fraction | int, int], Integers | Flags] = {}

    def to(self, place: int) -> "DealtCoins":
        """The coins of the user in this place."""
        return DealtCoins(self, place)

    def draw(self, turn: int, kind: Kind, parameter: Fraction | int, width: int) -> Integers | Flags:
        """The vector behind draw number `turn` of every user, of this law and width; drawn once."""
        key = (turn, kind, parameter, width)
        if key not in self._drawn:
            self._drawn[key] = self._laws[kind](parameter, self.players * width)
        return self._drawn[key]


class DealtCoins:
    """One user's coins in one round: noise is dealt, everything else is tossed as it comes."""

    def __init__(self, dealer: Dealer, place: int) -> None:
        self._dealer = dealer
        self._place = place
        self._turn = 0

    @overload
    def bernoulli(self, p: Number, size: None = None) -> bool: ...
    @overload
    def bernoulli(self, p: Number, size: int) -> Flags: ...
    def bernoulli(self, p: Number, size: int | None = None) -> bool | Flags:
        """Its part of the vector; a single one is tossed."""
        if size is None:
            return self._dealer.coins.bernoulli(p)
        dealt: Flags = self._part("bernoulli", probability(p, "p"), size)
        return dealt

    def logistic(self, epsilon: Number) -> bool:
        """Tossed."""
        return self._dealer.coins.logistic(epsilon)

    @overload
    def integer(self, n: int, size: None = None) -> int: ...
    @overload
    def integer(self, n: int, size: int) -> Integers: ...
    def integer(self, n: int, size: int | None = None) -> int | Integers:
        """Its part of the vector; a single one is tossed."""
        return self._dealer.coins.integer(n) if size is None else self._part("integer", n, size)

    @overload
    def discrete_laplace(self, scale: Number, size: None = None) -> int: ...
    @overload
    def discrete_laplace(self, scale: Number, size: int) -> Integers: ...
    def discrete_laplace(self, scale: Number, size: int | None = None) -> int | Integers:
        """Its part of the vector."""
        return self._deal("laplace", positive(scale, "scale"), size)

    @overload
    def discrete_gaussian(self, sigma2: Number, size: None = None) -> int: ...
    @overload
    def discrete_gaussian(self, sigma2: Number, size: int) -> Integers: ...
    def discrete_gaussian(self, sigma2: Number, size: int | None = None) -> int | Integers:
        """Its part of the vector."""
        return self._deal("gaussian", positive(sigma2, "sigma2"), size)

    @overload
    def rounded_normal(self, sigma2: Number, size: None = None) -> int: ...
    @overload
    def rounded_normal(self, sigma2: Number, size: int) -> Integers: ...
    def rounded_normal(self, sigma2: Number, size: int | None = None) -> int | Integers:
        """Its part of the vector."""
        return self._deal("rounded normal", positive(sigma2, "sigma2"), size)

    @overload
    def geometric(self, scale: Number, size: None = None) -> int: ...
    @overload
    def geometric(self, scale: Number, size: int) -> Integers: ...
    def geometric(self, scale: Number, size: int | None = None) -> int | Integers:
        """Tossed."""
        return self._dealer.coins.geometric(scale, size)

    def choose(self, lags: Sequence[Number]) -> int:
        """Tossed."""
        return self._dealer.coins.choose(lags)

    def call(self, experiment: Callable[..., R], *args: object) -> R:
        """The sub-experiment tosses the same coins."""
        return experiment(*args, self)

    def _deal(self, kind: Kind, parameter: Fraction, size: int | None) -> int | Integers:
        return int(self._part(kind, parameter, 1)[0]) if size is None else self._part(kind, parameter, size)

    def _part(self, kind: Kind, parameter: Fraction | int, size: int) -> Any:
        width = whole(size, 0, "size")
        drawn = self._dealer.draw(self._turn, kind, parameter, width)
        self._turn += 1
        return drawn[self._place * width : (self._place + 1) * width]

"""Coins that draw noise ahead, a thousand values at a time: the games of an audit all need noise of the same law.

Each draw is one entry of a vector of independent values and is used once, so laws and independence are the same; a
vector costs hardly more than one draw. The audit then covers the vector form of the sampler; to audit the scalar form,
use `batches=False`.

>>> from counterpoint import SeededCoins
>>> ahead, vector = DrawnAhead(SeededCoins(1)), SeededCoins(1).discrete_laplace(10, size=1024)
>>> [ahead.discrete_laplace(10), *ahead.discrete_laplace(10, size=2)] == list(vector[:3])
True
"""

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, TypeVar, overload

from counterpoint.numbers import Number
from counterpoint.randomness.coins import Coins, Flags, Integers

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

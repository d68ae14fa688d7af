"""Coins: where randomness comes from (the r of Haney et al. 2023, Def 1.4), given to a mechanism as an argument.

The same mechanism code runs on `SecureCoins` in production, on `EnumeratedCoins` in proofs, on a tape when two
worlds are compared, and on `SeededCoins` in tests. All laws are exact and discrete; parameters are rationals, and a
float is read as the decimal that it prints as.

>>> from counterpoint.coins import SecureCoins
>>> coins = SecureCoins(seed=bytes(32))
>>> coins.integer(6) in range(6)
True
"""

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Protocol, TypeVar, overload, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from counterpoint.errors import InvalidParameter
from counterpoint.numbers import Number
from counterpoint.numbers.exact import exact

R = TypeVar("R")

Integers = NDArray[np.int64] | NDArray[np.object_]
"""A vector of integers: 64-bit, or Python's own where a value could be wider."""

Flags = NDArray[np.bool_]
"""A vector of truth values."""


@runtime_checkable
class Coins(Protocol):
    """A source of exact discrete randomness."""

    @overload
    def bernoulli(self, p: Number, size: None = None) -> bool: ...
    @overload
    def bernoulli(self, p: Number, size: int) -> Flags: ...
    def bernoulli(self, p: Number, size: int | None = None) -> bool | Flags:
        """True with probability p, a rational from 0 to 1; or `size` independent ones."""

    def logistic(self, epsilon: Number) -> bool:
        """True with probability e^epsilon / (1 + e^epsilon): the coin of randomized response."""

    @overload
    def integer(self, n: int, size: None = None) -> int: ...
    @overload
    def integer(self, n: int, size: int) -> Integers: ...
    def integer(self, n: int, size: int | None = None) -> int | Integers:
        """One of 0, ..., n - 1, each equally likely, or `size` independent ones."""

    @overload
    def discrete_laplace(self, scale: Number, size: None = None) -> int: ...
    @overload
    def discrete_laplace(self, scale: Number, size: int) -> Integers: ...
    def discrete_laplace(self, scale: Number, size: int | None = None) -> int | Integers:
        """An integer z with probability proportional to e^(-|z|/scale), or `size` independent ones."""

    @overload
    def discrete_gaussian(self, sigma2: Number, size: None = None) -> int: ...
    @overload
    def discrete_gaussian(self, sigma2: Number, size: int) -> Integers: ...
    def discrete_gaussian(self, sigma2: Number, size: int | None = None) -> int | Integers:
        """An integer z with probability proportional to e^(-z^2/(2 sigma2)), or `size` independent ones."""

    @overload
    def rounded_normal(self, sigma2: Number, size: None = None) -> int: ...
    @overload
    def rounded_normal(self, sigma2: Number, size: int) -> Integers: ...
    def rounded_normal(self, sigma2: Number, size: int | None = None) -> int | Integers:
        """A normal number with variance sigma2, rounded to an integer, or `size` independent ones."""

    @overload
    def geometric(self, scale: Number, size: None = None) -> int: ...
    @overload
    def geometric(self, scale: Number, size: int) -> Integers: ...
    def geometric(self, scale: Number, size: int | None = None) -> int | Integers:
        """An integer k, not below 0, with probability proportional to e^(-k/scale), or `size` independent ones."""

    def choose(self, lags: Sequence[Number]) -> int:
        """An index i with probability proportional to e^(-lags[i]): the exponential mechanism's draw."""

    def call(self, experiment: Callable[..., R], *args: object) -> R:
        """Run `experiment(*args, coins)` as a sub-experiment of its own, independent of everything else.

        In production that is just the call; an enumeration remembers its law, a tape can replay its outcome.
        """


def read_lags(lags: Sequence[Number]) -> tuple[Fraction, ...]:
    """The lags of `choose`, read exactly: one or more numbers.

    >>> read_lags([0, "0.5"])
    (0, 0.5)
    """
    if not lags:
        raise InvalidParameter("there must be something to choose from: give one or more lags")
    return tuple(exact(lag, "a lag") for lag in lags)

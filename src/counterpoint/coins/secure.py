"""The coins of production, exact laws drawn from a ChaCha20 keystream; and predictable ones for tests.

`SecureCoins` are keyed by the operating system, or for replay by a 32-byte seed: the same seed gives the same draws, on
every machine and whatever else is drawn elsewhere. No floating point lies between the random bits and the integers.
Noise from a keyed stream cipher makes privacy computational: it holds against adversaries that cannot break ChaCha20.

>>> from counterpoint.coins import SecureCoins, SeededCoins
>>> SecureCoins(seed=bytes(32)).discrete_laplace(10, size=5)
array([ 5, 18,  4,  7, 20])
>>> SeededCoins(7).discrete_laplace(10) == SeededCoins(7).discrete_laplace(10)
True
"""

import hashlib
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import NoReturn, SupportsIndex, TypeVar, overload

from counterpoint.coins.bernoulli import Chance, odds, place, tosses, uniform, uniforms
from counterpoint.coins.coins import Flags, Integers, read_lags
from counterpoint.coins.keystream import KEY_BYTES, Keystream
from counterpoint.coins.noise import (
    discrete_gaussian,
    discrete_laplace,
    geometric,
    one_gaussian,
    one_rounded_normal,
    one_sided,
    rounded_normal,
)
from counterpoint.errors import InvalidParameter, SecretLeak
from counterpoint.numbers import Number
from counterpoint.numbers.exact import at_least, positive_scale, probability, whole

R = TypeVar("R")

SAMPLER_VERSION = 1
"""Names the draws that a seed gives: a change that alters any of them takes the next number, so that a stored seed is
never replayed by a sampler that would draw other noise."""

_WIDE = 64


class SecureCoins:
    """Exact discrete randomness that an adversary cannot predict.

    Threads may share one: none receives what another did. A forked child goes on with a new key, but seeded
    coins refuse to go on there (`NotAllowed`), as they would repeat their parent's noise. Coins are never
    copied, stored or shown.

    >>> SecureCoins()
    SecureCoins(keyed by the operating system)
    >>> SecureCoins(seed=b"too short")
    Traceback (most recent call last):
    ...
    counterpoint.errors.InvalidParameter: a seed must be 32 bytes, but 9 were given
    """

    __slots__ = ("_stream",)

    def __init__(self, seed: bytes | None = None) -> None:
        if not isinstance(seed, bytes | None):
            raise InvalidParameter(f"a seed must be {KEY_BYTES} bytes, but a {type(seed).__name__} was given")
        if seed is not None and len(seed) != KEY_BYTES:
            raise InvalidParameter(f"a seed must be {KEY_BYTES} bytes, but {len(seed)} were given")
        self._stream = Keystream(seed)

    @overload
    def bernoulli(self, p: Number, size: None = None) -> bool: ...
    @overload
    def bernoulli(self, p: Number, size: int) -> Flags: ...
    def bernoulli(self, p: Number, size: int | None = None) -> bool | Flags:
        """True with probability p, a rational from 0 to 1; or `size` independent ones.

        >>> SecureCoins().bernoulli(1), SecureCoins().bernoulli("0.0"), SecureCoins().bernoulli(1, size=2).tolist()
        (True, False, [True, True])
        """
        chance = probability(p, "p")
        if size is None:
            return uniform(chance.denominator, self._stream) < chance.numerator
        return tosses(chance, whole(size, 0, "size"), self._stream)

    def logistic(self, epsilon: Number) -> bool:
        """True with probability e^epsilon / (1 + e^epsilon): the coin of randomized response.

        >>> SecureCoins().logistic(800)
        True
        """
        lie, threshold = _lie(at_least(epsilon, 0, "epsilon"))
        word = self._stream.bits(_WIDE)
        return word > threshold if word != threshold else not lie.exceeds(word, _WIDE, self._stream)

    @overload
    def integer(self, n: int, size: None = None) -> int: ...
    @overload
    def integer(self, n: int, size: int) -> Integers: ...
    def integer(self, n: int, size: int | None = None) -> int | Integers:
        """One of 0, ..., n - 1, each equally likely, or `size` independent ones.

        >>> SecureCoins().integer(10**30) in range(10**30), SecureCoins(seed=bytes(32)).integer(6, size=5)
        (True, array([3, 5, 5, 5, 1]))
        """
        below = whole(n, 1, "n")
        return uniform(below, self._stream) if size is None else uniforms(below, whole(size, 0, "size"), self._stream)

    @overload
    def discrete_laplace(self, scale: Number, size: None = None) -> int: ...
    @overload
    def discrete_laplace(self, scale: Number, size: int) -> Integers: ...
    def discrete_laplace(self, scale: Number, size: int | None = None) -> int | Integers:
        """An integer z with probability proportional to e^(-|z|/scale), or `size` independent ones.

        >>> SecureCoins().discrete_laplace("1e-6")
        0
        """
        spread = positive_scale(scale, "scale")
        if size is None:
            return geometric(spread).difference(self._stream)
        return discrete_laplace(spread, whole(size, 0, "size"), self._stream)

    @overload
    def discrete_gaussian(self, sigma2: Number, size: None = None) -> int: ...
    @overload
    def discrete_gaussian(self, sigma2: Number, size: int) -> Integers: ...
    def discrete_gaussian(self, sigma2: Number, size: int | None = None) -> int | Integers:
        """An integer z with probability proportional to e^(-z^2/(2 sigma2)), or `size` independent ones.

        >>> SecureCoins(seed=bytes(32)).discrete_gaussian(100, size=5)
        array([  5,   2,  13, -10,   6])
        """
        variance = positive_scale(sigma2, "sigma2")
        if size is None:
            return one_gaussian(variance, self._stream)
        return discrete_gaussian(variance, whole(size, 0, "size"), self._stream)

    @overload
    def rounded_normal(self, sigma2: Number, size: None = None) -> int: ...
    @overload
    def rounded_normal(self, sigma2: Number, size: int) -> Integers: ...
    def rounded_normal(self, sigma2: Number, size: int | None = None) -> int | Integers:
        """A normal number with variance sigma2, rounded to an integer, or `size` independent ones.

        >>> SecureCoins(seed=bytes(32)).rounded_normal(100, size=5)
        array([  5,   2,  13, -10,   6])
        """
        variance = positive_scale(sigma2, "sigma2")
        if size is None:
            return one_rounded_normal(variance, self._stream)
        return rounded_normal(variance, whole(size, 0, "size"), self._stream)

    @overload
    def geometric(self, scale: Number, size: None = None) -> int: ...
    @overload
    def geometric(self, scale: Number, size: int) -> Integers: ...
    def geometric(self, scale: Number, size: int | None = None) -> int | Integers:
        """An integer k, not below 0, with probability proportional to e^(-k/scale), or `size` independent ones.

        >>> SecureCoins(seed=bytes(32)).geometric(10, size=5)
        array([6, 4, 0, 5, 8])
        """
        spread = positive_scale(scale, "scale")
        if size is None:
            return int(one_sided(spread, 1, self._stream)[0])
        return one_sided(spread, whole(size, 0, "size"), self._stream)

    def choose(self, lags: Sequence[Number]) -> int:
        """An index i with probability proportional to e^(-lags[i]).

        >>> SecureCoins().choose([800, 0])
        1
        """
        return place(read_lags(lags), self._stream)

    def call(self, experiment: Callable[..., R], *args: object) -> R:
        """Run `experiment(*args, coins)`: fresh draws are independent of everything else anyway.

        >>> SecureCoins().call(lambda n, coins: coins.integer(n), 1)
        0
        """
        return experiment(*args, self)

    def __repr__(self) -> str:
        keyed_by = "a seed" if self._stream.seeded else "the operating system"
        return f"{type(self).__name__}(keyed by {keyed_by})"

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        raise SecretLeak("coins cannot be copied or stored: the copy would repeat their noise; seal a seed instead")


@lru_cache(maxsize=1024)
def _lie(epsilon: Fraction) -> tuple[Chance, int]:
    """The chance 1/(1 + e^epsilon) of the less likely side, with its first threshold."""
    chance = Chance(odds, epsilon)
    return chance, chance.floor(_WIDE)


class SeededCoins(SecureCoins):
    """The same laws and the same code as `SecureCoins`, keyed by a hash of a small number or of any bytes.

    For tests and examples: anyone who knows the small seed can predict them. Never ship these: an adversary who guesses
    the seed subtracts the noise. In production use `SecureCoins()`, and for the replay of one request
    `SecureCoins(seed)` with 32 secret bytes.

    >>> SeededCoins(7)
    SeededCoins(keyed by a seed)
    """

    __slots__ = ()

    def __init__(self, seed: int | bytes) -> None:
        name = b"bytes " + seed if isinstance(seed, bytes) else b"number %d" % whole(seed, 0, "the seed")
        super().__init__(hashlib.sha256(b"counterpoint seeded coins: " + name).digest())

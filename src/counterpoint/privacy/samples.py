"""Poisson samples of units: one coin for each unit, tossed once, decides whether it is in (theory, Sampling).

A sample is a rate and a secret key. The coin of a unit is a keyed hash of its name, so it depends on no other unit, is
the same in every process and after every crash, and takes no memory. The rate is rounded down to a multiple of 2^-256;
a smaller rate loses less. Neither the sample nor its size is ever shown.

>>> from counterpoint.coins import SeededCoins
>>> sample = Sample.drawn(Fraction(1, 2), SeededCoins(1))
>>> sample.keeps("ann") == sample.keeps("ann"), sample
(True, Sample(rate=0.5, key=SampleKey(...)))
"""

import hmac
from fractions import Fraction
from hashlib import sha256
from math import floor
from typing import Any, NoReturn

from counterpoint.coins.coins import Coins
from counterpoint.encoding import Tagged, Value
from counterpoint.errors import NotCovered, SecretLeak
from counterpoint.measures import ApproxDP, PureDP
from counterpoint.measures.conversions import response_of
from counterpoint.measures.loss import Loss
from counterpoint.numbers import Interval, Precision, certify
from counterpoint.numbers.parameters import Rate
from counterpoint.numbers.rounding import DIGITS, rounded_up

_BITS = 256
_LARGE = 1000
"""An epsilon from which on the amplified one is computed without e^epsilon."""


class SampleKey:
    """The secret key of a sample: written only where it is sealed, and never shown.

    >>> SampleKey(7)
    SampleKey(...)
    """

    __slots__ = ("_key",)

    def __init__(self, key: int) -> None:
        self._key = key

    def __repr__(self) -> str:
        return "SampleKey(...)"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SampleKey) and hmac.compare_digest(self._text, other._text)

    def __hash__(self) -> int:
        return hash(self._key)

    def __sealed__(self) -> int:
        """The key, for `encode` alone, where the bytes are going to be sealed."""
        return self._key

    @classmethod
    def __unsealed__(cls, key: int) -> "SampleKey":
        return cls(key)

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise SecretLeak("the key of a sample must not be pickled: it says who is in the sample")

    @property
    def _text(self) -> str:
        return f"{self._key:064x}"


class Sample(Tagged, Value, frozen=True):
    """A Poisson sample: which units are in it is a function of its key, and as secret."""

    rate: Rate
    key: SampleKey

    @classmethod
    def drawn(cls, rate: Fraction, coins: Coins) -> "Sample":
        """Draw the secret key of a new sample."""
        return cls(rate, SampleKey(coins.integer(2**_BITS)))

    @property
    def secret(self) -> str:
        """The key as text, for an engine that tosses the coins: it hashes this text and `length_prefixed(unit)`."""
        return self.key._text

    @property
    def below(self) -> str:
        """A unit is in the sample if its hash, as 64 hexadecimal digits, is below this text."""
        return f"{floor(self.rate * 2**_BITS):064x}"

    def keeps(self, unit: str) -> bool:
        """Whether a unit of this name is in the sample: a secret."""
        return sha256(f"{self.secret}{length_prefixed(unit)}".encode()).hexdigest() < self.below


def length_prefixed(unit: str) -> str:
    """A unit's name after its length, so that no such text is the beginning of another.

    >>> length_prefixed("ann")
    '3:ann'
    """
    return f"{len(unit)}:{unit}"


def amplified(loss: Loss, rate: Fraction, delta: Fraction | None = None) -> Loss:
    """What a mechanism with this loss has on a Poisson sample: (log(1 + rate (e^eps - 1)), rate delta).

    See theory, Sampling. Only (epsilon, delta) losses are amplified; with a `delta`, what another loss implies there.

    >>> amplified(ApproxDP(1, 1e-6), Fraction(1, 100))
    ApproxDP(~0.0170369, 1e-8)
    """
    given = loss if delta is None else loss.as_approx(delta)
    response = response_of(given)
    if response is None:
        raise NotCovered(
            f"a sample amplifies (epsilon, delta), but {loss!r} was given (theory, Sampling: rate^2 times rho "
            "would be too little); say delta=1e-6 to amplify what it implies there. Fixed lists of sampled Gaussians "
            "compose by compose.optimal([SampledGaussianDP(mu, rate), ...])"
        )
    epsilon, exposed = response
    grown = min(epsilon, rounded_up(certify(lambda p: _grown(epsilon, rate, p), DIGITS).upper))
    return PureDP(grown) if exposed == 0 else ApproxDP(grown, rounded_up(rate * exposed))


def _grown(epsilon: Fraction, rate: Fraction, p: Precision) -> Interval:
    """Log(1 + rate (e^eps - 1)): of a large epsilon as eps + log(rate + (1 - rate) e^-eps), as e^eps is no decimal."""
    if epsilon < _LARGE:
        return (p(rate) * p(epsilon).expm1()).log1p()
    return p(epsilon) + (p(rate) + p(1 - rate) * (-p(epsilon)).exp()).log()

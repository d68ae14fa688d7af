"""Membership: a user answers, with noise, which of some candidates its value begins with (unary randomized response).

A user holds one number of `bits` bits. A query names prefixes of one length; the answer has one bit for each, true with
probability e^(epsilon/2)/(1 + e^(epsilon/2)). Replacing the value changes at most two of the bits, so one answer is
PureDP(epsilon); the claim is for users that are asked once (`AtMost(1)`), which the protocol enforces.

A noisy bit is the bit, turned if discrete Laplace noise of scale 2/epsilon is at least 1: with q = e^(-epsilon/2) that
has probability q/(1 + q) exactly, and a whole crowd tosses in one vector.

>>> from counterpoint import Ask, SeededCoins
>>> from counterpoint.local.properties import Data
>>> user, coins = Membership(epsilon=40, bits=3), SeededCoins(1)
>>> state, _ = user.step(user.start(coins), Ask(Data(), private=0b110), coins)
>>> user.step(state, Ask(Among(2, (0b00, 0b11))), coins)[1]
(0, 1)
"""

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from counterpoint.encoding import Plain, Tagged, Value
from counterpoint.errors import InvalidParameter
from counterpoint.local.properties import Asked, AtMost, are_different, is_whole
from counterpoint.local.values.one_value import MOST_BITS, OneValue, ValueCrowd, Values
from counterpoint.numbers import Number, precision
from counterpoint.numbers.parameters import Positive, PositiveInt
from counterpoint.privacy.claims import Claim, claim
from counterpoint.privacy.losses import PureDP
from counterpoint.privacy.relations import every_step
from counterpoint.randomness.coins import Coins

_AT_ONCE = 2**22


class Among(Tagged, Value, frozen=True):
    """The query: does your value begin with one of these prefixes of `length` bits? Each must be named once."""

    length: int
    candidates: tuple[int, ...]


class Membership(OneValue, Value, frozen=True):
    """One user; a value outside 0 ... 2^bits - 1 is brought to the nearest one inside.

    The noise is the same whatever the sensitivity of the ask that brings the value: 2^bits - 1 relates any two values.

    >>> Membership(1, bits=8).claim.loss, Membership(1, bits=8).claim.relation
    (PureDP(1), Asked(inner=Steps(), allowed=AtMost(1)))
    """

    epsilon: Positive
    bits: PositiveInt

    def __post_init__(self) -> None:
        """Check the number of bits."""
        if self.bits > MOST_BITS:
            raise InvalidParameter(f"values have at most {MOST_BITS} bits, not {self.bits}")

    @property
    def claim(self) -> Claim:
        """PureDP(epsilon) for any two values, if it is asked once."""
        by = (
            "one value more or less changes at most two bits, each randomized response of epsilon/2 "
            "(Henzinger et al. 2024, Lemma 2.4)"
        )
        return claim(PureDP(self.epsilon), Asked(every_step(), AtMost(1)), by)

    @property
    def scale(self) -> Fraction:
        """The scale of the noise that turns a bit."""
        return 2 / self.epsilon

    def understands(self, query: Plain) -> bool:
        """Whether a query is about different prefixes that values can have."""
        if not isinstance(query, Among) or not is_whole(query.length) or not 1 <= query.length <= self.bits:
            return False
        return are_different(query.candidates, 2**query.length)

    @property
    def truth(self) -> float:
        """How likely a bit is answered truthfully."""
        shrunk = (-precision(30)(self.epsilon / 2)).exp()
        return float((1 / (1 + shrunk)).lower)

    def replies(self, values: Values, query: Plain, coins: Coins) -> NDArray[np.uint8]:
        """The answers of users with these values, one row of noisy bits each; all toss the same coins."""
        assert isinstance(query, Among)
        candidates = np.array(query.candidates, dtype=np.int64)
        rows = max(1, _AT_ONCE // max(1, len(candidates)))
        answers = np.zeros((len(values), len(candidates)), dtype=np.uint8)
        for first in range(0, len(values), rows):
            prefixes = values[first : first + rows] >> (self.bits - query.length)
            turned = coins.discrete_laplace(self.scale, size=prefixes.size * candidates.size) >= 1
            held = prefixes[:, None] == candidates
            answers[first : first + rows] = held != turned.reshape(held.shape)
        return answers


class Members(ValueCrowd[Membership]):
    """As many users as there are values, all `Membership(epsilon, bits)`, as one array.

    >>> Members(1, bits=4).user
    Membership(epsilon=1, bits=4)
    """

    def __init__(self, epsilon: Number, bits: int) -> None:
        super().__init__(Membership(epsilon, bits))

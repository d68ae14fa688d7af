"""Membership: a user answers, with noise, which of some candidates its value begins with (unary randomized response).

A user holds one number of `bits` bits. A query names prefixes of one length; the answer has one bit for each, true with
probability e^(epsilon/2)/(1 + e^(epsilon/2)). Replacing the value changes at most two of the bits, so one answer is
PureDP(epsilon); the claim is for users that are asked once (`AtMost(1)`), which the protocol enforces.

A noisy bit is the bit, turned if discrete Laplace noise of scale 2/epsilon is at least 1: with q = e^(-epsilon/2) that
has probability q/(1 + q) exactly, and a whole crowd tosses in one vector.

>>> from counterpoint import Ask, SeededCoins
>>> user, coins = Membership(epsilon=40, bits=3), SeededCoins(1)
>>> state, _ = user.step(user.start(coins), Ask(Data(), private=0b110), coins)
>>> user.step(state, Ask(Among(2, (0b00, 0b11))), coins)[1]
(0, 1)
"""

from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from counterpoint.encoding import Plain, Tagged, Value
from counterpoint.errors import InvalidParameter, InvalidRequest
from counterpoint.local.properties import Asked, AtMost, Data, are_different, is_whole
from counterpoint.local.users import Answers, Crowd, Meeting, Query
from counterpoint.mechanisms.mechanism import Answer, Mechanism, State
from counterpoint.numbers import Number, precision
from counterpoint.numbers.parameters import Positive, PositiveInt
from counterpoint.privacy.claims import Claim, claim
from counterpoint.privacy.losses import PureDP
from counterpoint.privacy.messages import Ask, Message
from counterpoint.privacy.relations import every_step
from counterpoint.privacy.secret import Secret, reveal
from counterpoint.randomness.coins import Coins

MOST_BITS = 62
_AT_ONCE = 2**22


class Among(Tagged, Value, frozen=True):
    """The query: does your value begin with one of these prefixes of `length` bits? Each must be named once."""

    length: int
    candidates: tuple[int, ...]


class Holding(State, Value, frozen=True):
    """The user's value, once it has one."""

    value: Secret | None = None


class Membership(Mechanism, Value, frozen=True):
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

    def accepts(self, message: object) -> bool:
        """Data that are one integer, or a query."""
        if not isinstance(message, Ask):
            return False
        if isinstance(message.public, Data):
            return message.private is not None and message.private.width is None
        return message.private is None and self.understands(message.public)

    def understands(self, query: Plain) -> bool:
        """Whether a query is about different prefixes that values can have."""
        if not isinstance(query, Among) or not is_whole(query.length) or not 1 <= query.length <= self.bits:
            return False
        return are_different(query.candidates, 2**query.length)

    def start(self, coins: Coins) -> State:
        """No value yet."""
        return Holding()

    def step(self, state: State, message: Message, coins: Coins) -> tuple[State | None, Answer]:
        """Keep the value, or answer with one noisy bit for each candidate."""
        assert isinstance(state, Holding) and isinstance(message, Ask)
        if isinstance(message.public, Data):
            assert message.private is not None
            return Holding(message.private.clamp(0, 2**self.bits - 1)), None
        assert isinstance(message.public, Among)
        turned = coins.discrete_laplace(self.scale, size=len(message.public.candidates)) >= 1
        value = None if state.value is None else reveal(state.value)
        prefix = value >> (self.bits - message.public.length) if isinstance(value, int) else -1
        bits = (prefix == candidate for candidate in message.public.candidates)
        return state, tuple(int(bit != lie) for bit, lie in zip(bits, turned.tolist(), strict=True))

    @property
    def truth(self) -> float:
        """How likely a bit is answered truthfully."""
        shrunk = (-precision(30)(self.epsilon / 2)).exp()
        return float((1 / (1 + shrunk)).lower)


class Members(Crowd):
    """As many users as there are values, all `Membership(epsilon, bits)`, as one array.

    >>> Members(1, bits=4).user
    Membership(epsilon=1, bits=4)
    """

    def __init__(self, epsilon: Number, bits: int) -> None:
        self._user = Membership(epsilon, bits)

    @property
    def user(self) -> Membership:
        """What each of them is."""
        return self._user

    def meet(self, data: Any, coins: Coins) -> "MembersPresent":
        """The values, as integers."""
        return MembersPresent(self._user, np.clip(integers(data), 0, 2**self._user.bits - 1).astype(np.int64))


def integers(data: Any) -> NDArray[Any]:
    """One integer for each user, however wide: that one user's is too wide for an array must not show."""
    try:
        values = np.asarray(data)
        wide = values if values.dtype.kind in "iu" or not values.size else np.asarray(data, dtype=object)
    except (TypeError, ValueError):
        raise InvalidParameter("the values are one integer for each user") from None
    if not wide.size:
        return np.zeros(0, dtype=np.int64)
    if wide.ndim != 1 or (wide.dtype.kind == "O" and not all(is_whole(v) or isinstance(v, np.integer) for v in wide)):
        raise InvalidParameter("the values are one integer for each user")
    return wide


class MembersPresent(Meeting):
    """The values of a crowd."""

    def __init__(self, user: Membership, values: NDArray[np.int64]) -> None:
        self._user = user
        self._values = values

    @property
    def size(self) -> int:
        """One user for each value."""
        return len(self._values)

    def check(self, to: NDArray[np.int64], asked: Query) -> None:
        """The query is one that every user understands."""
        if not self._user.understands(asked.query):
            raise InvalidRequest("Membership does not accept this message; nothing was charged or changed")

    def reply(self, to: NDArray[np.int64], asked: Query, coins: Coins) -> Answers:
        """One row of noisy bits for each user who is asked."""
        query = asked.query
        assert isinstance(query, Among)
        candidates = np.array(query.candidates, dtype=np.int64)
        rows = max(1, _AT_ONCE // max(1, len(candidates)))
        answers = np.zeros((len(to), len(candidates)), dtype=np.uint8)
        for first in range(0, len(to), rows):
            prefixes = self._values[to[first : first + rows]] >> (self._user.bits - query.length)
            turned = coins.discrete_laplace(self._user.scale, size=prefixes.size * candidates.size) >= 1
            answers[first : first + rows] = (prefixes[:, None] == candidates) != turned.reshape(-1, candidates.size)
        return answers

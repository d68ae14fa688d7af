"""Users who each hold one number of a few bits: their states one by one, and a whole crowd of them as one array.

>>> from counterpoint.local.values.membership import Membership
>>> ValueCrowd(Membership(1, bits=4)).user
Membership(epsilon=1, bits=4)
"""

from abc import abstractmethod
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from counterpoint.encoding import Plain, Value
from counterpoint.errors import InvalidParameter, InvalidRequest
from counterpoint.local.properties import Data, is_whole
from counterpoint.local.users import Answers, Crowd, Meeting, Query
from counterpoint.mechanisms.mechanism import Answer, Mechanism, State
from counterpoint.privacy.messages import Ask, Message
from counterpoint.privacy.secret import Secret, reveal
from counterpoint.randomness.coins import Coins

MOST_BITS = 62

Values = NDArray[np.int64]
"""One number for each user; -1 for a user that holds none yet."""


class Holding(State, Value, frozen=True):
    """The user's value, once it has one."""

    value: Secret | None = None


class OneValue(Mechanism):
    """One user; a value outside 0 ... 2^bits - 1 is brought to the nearest one inside.

    The noise is the same whatever the sensitivity of the ask that brings the value: 2^bits - 1 relates any two values.
    """

    __slots__ = ()

    bits: int

    @abstractmethod
    def understands(self, query: Plain) -> bool:
        """Whether it can be asked this."""

    @abstractmethod
    def replies(self, values: Values, query: Plain, coins: Coins) -> NDArray[Any]:
        """The answers of users with these values, one row each; all toss the same coins."""

    def accepts(self, message: object) -> bool:
        """Data that are one integer, or a query."""
        if not isinstance(message, Ask):
            return False
        if isinstance(message.public, Data):
            return message.private is not None and message.private.width is None
        return message.private is None and self.understands(message.public)

    def start(self, coins: Coins) -> State:
        """No value yet."""
        return Holding()

    def step(self, state: State, message: Message, coins: Coins) -> tuple[State | None, Answer]:
        """Keep the value, or answer as one user of a crowd."""
        assert isinstance(state, Holding) and isinstance(message, Ask)
        if isinstance(message.public, Data):
            assert message.private is not None
            return Holding(message.private.clamp(0, 2**self.bits - 1)), None
        value = -1 if state.value is None else reveal(state.value)
        assert isinstance(value, int)
        (answer,) = self.replies(np.array([value], dtype=np.int64), message.public, coins)
        return state, tuple(answer.tolist())


U = TypeVar("U", bound=OneValue)


class ValueCrowd(Crowd, Generic[U]):
    """As many users as there are values, all the same mechanism, as one array."""

    def __init__(self, user: U) -> None:
        self._user = user

    @property
    def user(self) -> U:
        """What each of them is."""
        return self._user

    def meet(self, data: Any, coins: Coins) -> "ValuesPresent":
        """The values, as integers."""
        return ValuesPresent(self._user, np.clip(integers(data), 0, 2**self._user.bits - 1).astype(np.int64))


class ValuesPresent(Meeting):
    """The values of a crowd."""

    def __init__(self, user: OneValue, values: Values) -> None:
        self._user = user
        self._values = values

    @property
    def size(self) -> int:
        """One user for each value."""
        return len(self._values)

    def check(self, to: Values, asked: Query) -> None:
        """The query is one that every user understands."""
        if not self._user.understands(asked.query):
            name = type(self._user).__name__
            raise InvalidRequest(f"{name} does not accept this message; nothing was charged or changed")

    def reply(self, to: Values, asked: Query, coins: Coins) -> Answers:
        """One row for each user who is asked."""
        return self._user.replies(self._values[to], asked.query, coins)


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

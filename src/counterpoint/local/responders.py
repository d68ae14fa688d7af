"""Users who each hold one number of a few bits, and say with noise what it begins with: one by one, and as arrays.

`Membership` answers with one noisy bit for each candidate, `BlockResponse` with a block of a design, which needs less
noise (`designs.py`). A `ValueCrowd` is a whole crowd of them as one array.

>>> ValueCrowd(Membership(1, bits=4)).user
Membership(epsilon=1, bits=4)
"""

from abc import abstractmethod
from fractions import Fraction
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from counterpoint.coins.coins import Coins
from counterpoint.encoding import Plain, Tagged, Value
from counterpoint.errors import InvalidParameter, InvalidRequest
from counterpoint.local.designs import LEAST_EPSILON, Design, Symbols
from counterpoint.local.properties import Asked, AtMost, Data, are_different, is_whole
from counterpoint.local.users import Answers, Crowd, Meeting, Query
from counterpoint.measures import PureDP
from counterpoint.mechanisms.mechanism import Answer, Mechanism, State
from counterpoint.numbers import Number, precision
from counterpoint.numbers.exact import format_number
from counterpoint.numbers.parameters import Positive, PositiveInt
from counterpoint.privacy.claims import Claim, claim
from counterpoint.privacy.messages import Ask, Message
from counterpoint.privacy.relations import every_step
from counterpoint.privacy.secret import Secret, reveal

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

    A user holds one number of `bits` bits. A query names prefixes of one length; the answer has one bit for each, true
    with probability e^(epsilon/2)/(1 + e^(epsilon/2)). Replacing the value changes at most two of the bits, so one
    answer is PureDP(epsilon); the claim is for users that are asked once (`AtMost(1)`), which the protocol enforces.

    A noisy bit is the bit, turned if discrete Laplace noise of scale 2/epsilon is at least 1: with q = e^(-epsilon/2)
    that has probability q/(1 + q) exactly, and a whole crowd tosses in one vector.

    >>> from counterpoint.coins import SeededCoins
    >>> from counterpoint.mechanisms import Ask
    >>> from counterpoint.local.properties import Data
    >>> user, coins = Membership(epsilon=40, bits=3), SeededCoins(1)
    >>> state, _ = user.step(user.start(coins), Ask(Data(), private=0b110), coins)
    >>> user.step(state, Ask(Among(2, (0b00, 0b11))), coins)[1]
    (0, 1)
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


class Which(Tagged, Value, frozen=True):
    """The query: with which of these prefixes of `length` bits does your value begin? An integer n stands for all
    prefixes below n.
    """

    design: Design
    length: int
    candidates: tuple[int, ...] | int

    @property
    def width(self) -> int:
        """How many candidates there are."""
        return self.candidates if isinstance(self.candidates, int) else len(self.candidates)

    def symbols(self, prefixes: Symbols) -> Symbols:
        """The place of each prefix among the candidates; behind them, or the last one, for every other prefix."""
        if isinstance(self.candidates, int):
            places = np.where(prefixes < 0, self.width, np.minimum(prefixes, self.width))
        else:
            listed = np.array(self.candidates, dtype=np.int64)
            order = np.argsort(listed)
            found = np.searchsorted(listed, prefixes, sorter=order)
            nearest = order[np.minimum(found, self.width - 1)]
            places = np.where(listed[nearest] == prefixes, nearest, self.width)
        return np.minimum(places, self.design.symbols - 1)


class BlockResponse(OneValue, Value, frozen=True):
    """One user; a value outside 0 ... 2^bits - 1 is brought to the nearest one inside.

    The noise is the same whatever the sensitivity of the ask that brings the value: 2^bits - 1 relates any two values.

    >>> BlockResponse(1, bits=8).claim.loss, BlockResponse(1, bits=8).claim.relation
    (PureDP(1), Asked(inner=Steps(), allowed=AtMost(1)))

    A user holds one number of `bits` bits. A query names prefixes of one length and a block design (see `designs`), on
    one symbol for each candidate and one more for every other value. If the design has no symbol to spare, all other
    values count as the last candidate. An answer is one block, whose law depends on the value through its symbol alone:
    it is PureDP(epsilon) for any two values, and the claim is for users that are asked once (`AtMost(1)`), which the
    protocol enforces.

    >>> from counterpoint.coins import SeededCoins
    >>> from counterpoint.mechanisms import Ask
    >>> from counterpoint.local.designs import Subsets
    >>> from counterpoint.local.properties import Data
    >>> user, coins = BlockResponse(epsilon=40, bits=3), SeededCoins(1)
    >>> state, _ = user.step(user.start(coins), Ask(Data(), private=0b110), coins)
    >>> user.step(state, Ask(Which(Subsets(3, 1), 2, (0b00, 0b11))), coins)[1]
    (1,)
    """

    epsilon: Positive
    bits: PositiveInt

    def __post_init__(self) -> None:
        """Check the number of bits, and that a chance on the grid can tell two symbols apart."""
        if self.bits > MOST_BITS:
            raise InvalidParameter(f"values have at most {MOST_BITS} bits, not {self.bits}")
        if self.epsilon < LEAST_EPSILON:
            raise InvalidParameter(
                f"epsilon must be at least {format_number(LEAST_EPSILON)} for an answer, but "
                f"{format_number(self.epsilon)} was given"
            )

    @property
    def claim(self) -> Claim:
        """PureDP(epsilon) for any two values, if it is asked once."""
        by = "a block is at most e^epsilon times as likely for one symbol as for another (theory, Block designs)"
        return claim(PureDP(self.epsilon), Asked(every_step(), AtMost(1)), by)

    def understands(self, query: Plain) -> bool:
        """Whether a query is about different prefixes that values can have, with a symbol for each of them."""
        if not isinstance(query, Which) or not is_whole(query.length) or not 1 <= query.length <= self.bits:
            return False
        if not _are_prefixes(query.candidates, 2**query.length) or not _is_design(query.design):
            return False
        return 1 <= query.width <= query.design.symbols

    def replies(self, values: Values, query: Plain, coins: Coins) -> Symbols:
        """The answers of users with these values (-1: none yet), one row each; all toss the same coins."""
        assert isinstance(query, Which)
        held = query.symbols(values >> (self.bits - query.length))
        inside = coins.bernoulli(self.truth(query.design), size=len(values))
        return query.design.draw(held, inside, coins)

    def truth(self, design: Design) -> Fraction:
        """How likely a block of this design contains what the user holds."""
        return design.truth(self.epsilon)


def _are_prefixes(candidates: object, below: int) -> bool:
    if isinstance(candidates, int):
        return is_whole(candidates) and candidates <= below
    return are_different(candidates, below)


def _is_design(value: object) -> bool:
    return isinstance(value, Design)


class BlockResponders(ValueCrowd[BlockResponse]):
    """As many users as there are values, all `BlockResponse(epsilon, bits)`, as one array.

    >>> BlockResponders(1, bits=4).user
    BlockResponse(epsilon=1, bits=4)
    """

    def __init__(self, epsilon: Number, bits: int) -> None:
        super().__init__(BlockResponse(epsilon, bits))

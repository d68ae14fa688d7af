"""Users: many mechanisms that a server speaks to, one object each (`UserObjects`) or as arrays (a `Crowd`).

Both forms answer rounds: one query to a set of users. A round that any of the users would refuse, for public reasons,
is refused as a whole before any coin is tossed. A `QueryHistory` keeps what each user has been asked, for all users at
once, and so which queries it may still be asked. On equal coins both forms give equal answers (`Dealer`).

>>> from counterpoint.coins import SeededCoins
>>> from counterpoint.local.responders import Among, Membership
>>> users = UserObjects([Membership(epsilon=20, bits=1)] * 3).meet([0, 1, 1], SeededCoins(1))
>>> users.answer(Round((0, 2), Among(1, (0, 1))), SeededCoins(2))
((1, 0), (0, 1))
"""

from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal, Protocol, TypeAlias, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

from counterpoint.coins.coins import Coins, Flags, Integers
from counterpoint.encoding import Plain
from counterpoint.errors import Halted, InvalidParameter, InvalidRequest, NotAllowed, NotCovered
from counterpoint.local.properties import Data, Property
from counterpoint.mechanisms.mechanism import Answer, Mechanism, State, accepted, stepped
from counterpoint.numbers import Number
from counterpoint.numbers.exact import positive, probability, whole
from counterpoint.privacy.messages import Ask, Message
from counterpoint.privacy.secret import Raw, Secret

R = TypeVar("R")
Kind: TypeAlias = Literal["laplace", "gaussian", "rounded normal", "bernoulli", "integer"]


class Dealer:
    """Draws for `players` users in one round, when the first of them asks.

    Each user gets an entry of its own of an independent vector, so the laws and the independence are the same as if
    each tossed for itself. What it buys: users run one by one as objects and users computed as arrays consume the same
    coins in the same order, so that the two forms can be compared answer by answer.

    >>> from counterpoint.coins import SeededCoins
    >>> dealer = Dealer(SeededCoins(1), 3)
    >>> dealt = [dealer.to(place).discrete_laplace(10) for place in range(3)]
    >>> dealt == list(SeededCoins(1).discrete_laplace(10, size=3))
    True
    """

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


Indices: TypeAlias = Sequence[int] | NDArray[np.int64]
Answers: TypeAlias = Sequence[Answer] | NDArray[Any]
"""The answers of the users of a round, in its order: a tuple, or the rows of an array."""


class Query(Protocol):
    """A round as users see it: the users it asks, and the query, which may be computed only when it is read."""

    @property
    def to(self) -> Indices:
        """The users who are asked, each once."""

    @property
    def query(self) -> Plain:
        """What each of them is asked."""


@dataclass(frozen=True)
class Round:
    """One query for some of the users.

    >>> Round((0, 2), "how many?")
    Round(to=(0, 2), query='how many?')
    """

    to: Indices
    query: Plain = None


class Meeting:
    """Users who hold their data and have begun."""

    @property
    @abstractmethod
    def size(self) -> int:
        """How many users there have ever been."""

    def read_once(self, asked: Query) -> Query:
        """The round, read once: the query that is checked and recorded is the one that is answered.

        >>> from counterpoint.local.peeling import Peel
        >>> Present().read_once(Peel(np.arange(2), than=1))
        Round(to=array([0, 1]), query=Fewer(among=(0, 1), than=1))
        """
        return asked if type(asked) is Round else Round(asked.to, asked.query)

    @abstractmethod
    def check(self, to: NDArray[np.int64], asked: Query) -> None:
        """Raise where a user would refuse this round; nothing is drawn or changed."""

    @abstractmethod
    def reply(self, to: NDArray[np.int64], asked: Query, coins: Coins) -> Answers:
        """The answers to a checked round."""

    def answer(self, asked: Query, coins: Coins) -> Answers:
        """The answers to a round, in its order."""
        read = self.read_once(asked)
        to = indices(read.to, self.size)
        self.check(to, read)
        return self.reply(to, read, coins)

    def join(self, mechanism: Mechanism, data: Raw | Secret, coins: Coins, sensitivity: int = 1) -> int:
        """A new user; its number. That it joins is public."""
        raise _fixed()

    def update(self, user: int, data: Raw | Secret, coins: Coins, sensitivity: int = 1) -> None:
        """New data for one user. When data arrive is public, what they are is private."""
        raise _fixed()

    def leave(self, user: int) -> None:
        """A user leaves, and its data is forgotten. Which user leaves is public."""
        raise _fixed()


class Users:
    """A population: which mechanisms its users are, and how they begin."""

    @property
    @abstractmethod
    def mechanisms(self) -> tuple[Mechanism, ...]:
        """The different mechanisms among the users."""

    @abstractmethod
    def meet(self, data: Any, coins: Coins) -> Meeting:
        """Let every user begin and give it its data."""


class UserObjects(Users):
    """One object for each user: any mechanisms, users who come and go, data that change.

    See Henzinger et al. 2024, Remark 8.10.
    """

    def __init__(self, users: Iterable[Mechanism], sensitivity: int = 1) -> None:
        self.users = tuple(users)
        self.sensitivity = sensitivity
        if not all(isinstance(user, Mechanism) for user in self.users):
            raise InvalidParameter("users are mechanisms")

    @property
    def mechanisms(self) -> tuple[Mechanism, ...]:
        """Each once, in order of appearance."""
        return tuple(dict.fromkeys(self.users))

    def meet(self, data: Any, coins: Coins) -> "Present":
        """Every user begins; then each gets its data."""
        given = list(data)
        if len(given) != len(self.users):
            raise InvalidParameter(f"there are {len(self.users)} users and data for {len(given)}")
        messages = [Ask(Data(), private, self.sensitivity) for private in given]
        for user, message in zip(self.users, messages, strict=True):
            accepted(user, message)
        present = Present()
        present.begin(self.users, messages, coins)
        return present


class Present(Meeting):
    """Users one by one, each with its own state; None once it has halted or left."""

    def __init__(self) -> None:
        self._mechanisms: list[Mechanism] = []
        self._states: list[State | None] = []

    @property
    def size(self) -> int:
        """How many there have ever been."""
        return len(self._states)

    @property
    def live(self) -> tuple[int, ...]:
        """The users that can still be asked."""
        return tuple(user for user, state in enumerate(self._states) if state is not None)

    def begin(self, users: Sequence[Mechanism], messages: Sequence[Message], coins: Coins) -> None:
        """Start these users and send each its data."""
        if not users:
            return
        first, dealer = self.size, Dealer(coins, len(users))
        self._mechanisms.extend(users)
        self._states.extend(coins_of.call(user.start) for user, coins_of in _dealt(users, dealer))
        self._each(range(first, self.size), messages, coins)

    def check(self, to: NDArray[np.int64], asked: Query) -> None:
        """Every user is present and accepts the query."""
        ask = Ask(asked.query)
        for user in to:
            if self._states[user] is None:
                raise Halted(f"user {user} has given its last answer or has left")
            accepted(self._mechanisms[user], ask)

    def reply(self, to: NDArray[np.int64], asked: Query, coins: Coins) -> Answers:
        """One after the other, on dealt coins."""
        return self._each(to.tolist(), [Ask(asked.query)] * len(to), coins)

    def _each(self, to: Sequence[int], messages: Sequence[Message], coins: Coins) -> tuple[Answer, ...]:
        answers = []
        for (user, mine), message in zip(_dealt(to, Dealer(coins, max(1, len(to)))), messages, strict=True):
            state = self._states[user]
            assert state is not None
            self._states[user] = None  # a user whose code fails has halted: it must not draw again for this state
            self._states[user], answer = stepped(self._mechanisms[user], state, message, mine)
            answers.append(answer)
        return tuple(answers)

    def join(self, mechanism: Mechanism, data: Raw | Secret, coins: Coins, sensitivity: int = 1) -> int:
        """A new user begins and gets its data."""
        message = accepted(mechanism, Ask(Data(), data, sensitivity))
        self.begin([mechanism], [message], coins)
        return self.size - 1

    def update(self, user: int, data: Raw | Secret, coins: Coins, sensitivity: int = 1) -> None:
        """A change of one user's data; a user that has halted or left does not need it any more."""
        (known,) = indices([user], self.size)
        message = accepted(self._mechanisms[known], Ask(Data(), data, sensitivity))
        if self._states[known] is not None:
            self._each([int(known)], [message], coins)

    def leave(self, user: int) -> None:
        """Forget a user's state."""
        (known,) = indices([user], self.size)
        self._states[known] = None


def _dealt(places: Sequence[Any], dealer: Dealer) -> Iterable[tuple[Any, Any]]:
    return ((item, dealer.to(place)) for place, item in enumerate(places))


class Crowd(Users):
    """Users who all follow one procedure, computed as arrays: a million of them, none an object of its own."""

    @property
    @abstractmethod
    def user(self) -> Mechanism:
        """The mechanism that each of them is."""

    @property
    def mechanisms(self) -> tuple[Mechanism, ...]:
        """One for all."""
        return (self.user,)


class QueryHistory:
    """What has been asked of each user: the engine's enforcement of a property, for all users at once.

    Users with the same past share one entry, so a round costs one look at the property for each different past.

    >>> from counterpoint.local.properties import AtMost
    >>> history = QueryHistory(AtMost(1))
    >>> history.note(np.array([0, 1]), "q")
    >>> history.note(np.array([1]), "q")
    Traceback (most recent call last):
    ...
    counterpoint.errors.NotAllowed: the queries to each user must keep AtMost(1), and this one would not
    """

    def __init__(self, allowed: Property) -> None:
        self.allowed = allowed
        self._pasts: list[Plain] = [allowed.begin()]
        self._past = np.zeros(0, dtype=np.int64)

    def note(self, to: NDArray[np.int64], query: Plain) -> None:
        """Record one more query for these users, or raise and record nothing."""
        if not len(to):
            return
        self._make_room(int(to.max()) + 1)
        old = self._past[to]
        new = old.copy()
        for past in np.unique(old):
            after = self.allowed.after(self._pasts[past], query)
            if after is None:
                raise NotAllowed(f"the queries to each user must keep {self.allowed!r}, and this one would not")
            if after not in self._pasts:
                self._pasts.append(after)
            new[old == past] = self._pasts.index(after)
        self._past[to] = new

    def _make_room(self, size: int) -> None:
        if size > len(self._past):
            self._past = np.concatenate([self._past, np.zeros(size - len(self._past), dtype=np.int64)])


def indices(to: Indices, size: int) -> NDArray[np.int64]:
    """The users of a round as an array; `InvalidRequest` if one is unknown or named twice.

    >>> indices([2, 0], 3)
    array([2, 0])
    """
    found = np.asarray(to)
    if found.size == 0:
        return np.zeros(0, dtype=np.int64)
    if found.ndim != 1 or found.dtype.kind not in "iu":
        raise InvalidRequest("a round names its users by their numbers, which are integers")
    users = found.astype(np.int64)
    if users.min() < 0 or users.max() >= size:
        raise InvalidRequest(f"there are {size} users, numbered from 0, and this round names another number")
    if len(users) > 1 and not (np.diff(users) > 0).all() and len(np.unique(users)) < len(users):
        raise InvalidRequest("a round asks each of its users once")
    return users


def _fixed() -> NotCovered:
    return NotCovered("the users of a crowd are fixed; for users who come and go give a list of mechanisms")

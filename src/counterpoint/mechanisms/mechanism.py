"""A mechanism: a randomized state machine (Haney et al. 2023, Def 1.4; Henzinger et al. 2024, Def 2.6 and 3.1), as a
frozen struct of public parameters.

`start` makes a state, `step` takes a state and a message and makes the next state and an answer. Both are
deterministic given their coins and have no other effect, so the same code runs in production, is stored between
steps, is replayed from a seed and is enumerated over all outcomes. A state of None means: halted after this answer.

A new mechanism is a struct with four members:

>>> from counterpoint import PureDP
>>> from counterpoint.coins import SeededCoins
>>> from counterpoint.mechanisms import Ask
>>> from counterpoint.encoding import Value
>>> from counterpoint.mechanisms.mechanism import Left
>>> class Silence(Mechanism, Value, frozen=True):
...     @property
...     def claim(self):
...         return claim(PureDP(0), every_step(), "the answer does not depend on the data")
...     def accepts(self, message):
...         return isinstance(message, Ask)
...     def start(self, coins):
...         return Left(1)
...     def step(self, state, message, coins):
...         return state, None
>>> step(Silence(), Left(1), Ask("anything"), SeededCoins(1))
(Left(...), None)
"""

from abc import abstractmethod
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, NoReturn, TypeAlias

import msgspec

from counterpoint.coins.coins import Coins
from counterpoint.composition.accumulator import Account
from counterpoint.encoding import Plain, Tagged, Value
from counterpoint.errors import (
    INTERRUPTIONS,
    Halted,
    InvalidParameter,
    InvalidRequest,
    NotCovered,
    NotTotal,
    SecretLeak,
    TapeMismatch,
)
from counterpoint.measures.tradeoff import TradeOff
from counterpoint.numbers import Number
from counterpoint.numbers.exact import GIVEN_DIGITS
from counterpoint.privacy.claims import Claim
from counterpoint.privacy.messages import Ask, Message, ToChild, Update
from counterpoint.privacy.relations import Relation
from counterpoint.privacy.samples import Sample

Answer: TypeAlias = Any
"""What a mechanism answers: discrete plain data (Henzinger et al. 2024, Def 4.6: countable answer sets), of its own
kind.
"""


class State(Tagged):
    """What a mechanism keeps between messages: plain data that is sealed when stored, never shown, never pickled."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"{type(self).__qualname__}(...)"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        """Nothing, to tools that would ask the struct for its fields instead."""
        return []

    def __reduce__(self) -> NoReturn:
        raise SecretLeak("a state must not be pickled: states are stored sealed, by their encoding")


class Left(State, Value, frozen=True):
    """The state of a mechanism that only counts down the asks it has left.

    >>> Left(3).after_one(), Left(1).after_one()
    (Left(...), None)
    """

    asks: int

    def after_one(self) -> "Left | None":
        """One ask fewer; None when that was the last."""
        return Left(self.asks - 1) if self.asks > 1 else None


class Chosen(Tagged, Value, frozen=True):
    """An answer that chooses one of several: a public index, not a number on the grid of the values.

    >>> Chosen(3).index
    3
    """

    index: int


class Mechanism(Tagged):
    """A randomized state machine with a claim. Concrete mechanisms are final; variation is by wrapping.

    A mechanism must have `claim`, `accepts`, `start` and `step`. The other members have defaults, which are right for
    one that leaves no parameter open, takes no options and follows no vectors; nothing else is asked of a mechanism.
    """

    __slots__ = ()

    @property
    @abstractmethod
    def claim(self) -> Claim:
        """What this mechanism promises, and why."""

    @abstractmethod
    def accepts(self, message: object) -> bool:
        """Whether this is a well-formed message for this mechanism: by public facts only, for any object at all."""

    @abstractmethod
    def start(self, coins: Coins) -> State:
        """The first state."""

    @abstractmethod
    def step(self, state: State, message: Message, coins: Coins) -> tuple[State | None, Answer]:
        """The next state (None: halted after this answer) and the answer to an accepted message.

        It is total: it fails on no accepted message, whatever the private part, since a failure would depend on the
        data. A session halts a mechanism whose step fails, with the same error whatever was raised.
        """

    def updated(self, state: State, updates: Sequence[Update], coins: Coins) -> State | None:
        """The state after these accepted updates, as one step for each would make it, in order.

        A mechanism may make it faster than that, not otherwise: of equal coins come equal states.
        """
        after: State | None = state
        for update in updates:
            if after is not None:
                after, _ = self.step(after, update, coins)
        return after

    def fitted(self, relation: Relation, dimensions: int | None) -> "Mechanism":
        """The mechanism that a session launches on data with these neighbours; itself, if no parameter was left open.

        Parameters that were left open are taken from what is public about the data: the relation, and the length of the
        vectors that its updates bring (None: single numbers).
        """
        return self

    def for_counts(self, moves: int) -> "Mechanism":
        """The mechanism, able to take counts of the data's rows, which move by at most `moves` between neighbours.

        Itself, unless it fixes the sensitivity of its asks at launch and was not told which.
        """
        return self

    def public_part(self, grid: Fraction | None, /, **options: Any) -> Plain:
        """The public part of an ask, from the options that an analyst gave with it, such as `threshold=2.5`.

        Options are in the units of the request, whose integers are multiples of `grid` (None: no request was given).
        Without options of its own, a mechanism refuses all of them.
        """
        refuse_options(self, options)
        return None

    @property
    def asks_are_public(self) -> bool:
        """Whether private data comes in updates alone: every ask it accepts has no private part.

        This holds for a counter. Its asks cannot differ between neighbours, so it may be postprocessed under any
        `Steps`. A mechanism that declares this is never sent an ask with a private part (see `accepted`).
        """
        return False

    @property
    def sensitivity(self) -> int | None:
        """The largest sensitivity of an ask that it accepts; None if it does not limit it. It only words refusals."""
        return None

    @property
    def dimensions(self) -> int | None:
        """The length of the vectors in the updates that it accepts; None for single numbers, or no updates."""
        return None

    @property
    def sampling_rate(self) -> Fraction | None:
        """The rate of the sample of units that its messages must be made from; None if they are made from all units."""
        return None

    def sample(self, state: State) -> Sample | None:
        """The sample that its messages are made from, by its state; None if they are made from all units."""
        return None

    def error(self, probability: Number, *facts: Any, **more: Any) -> Any:
        """How far off its answers are at most, with this probability; which public facts it needs is its own to say."""
        raise NotCovered(f"{type(self).__name__} does not say how far off its answers are")

    def answer_error(self, ask: Ask, probability: Number, numbers: int = 1) -> int:
        """How far off this number of values of the answer to this ask are at most, at once, with this probability.

        In steps of their grid, and from the public facts of the ask alone. A mechanism that adds noise has it.
        """
        raise NotCovered(
            f"{type(self).__name__} states no error for a request: Laplace and Gaussian do, which add noise to numbers"
        )

    def sum_error(self, ask: Ask, probability: Number, weights: Sequence[tuple[int, int]]) -> int:
        """How far a weighted sum of values of the answer to this ask is off at most, with this probability.

        `weights` are pairs: a weight, and of how many values. In steps of their grid, as `answer_error` is.
        """
        raise NotCovered(f"{type(self).__name__} states no error of a sum: Laplace (without a clamp) and Gaussian do")


def priced(mechanism: Mechanism) -> Claim:
    """The claim of a mechanism that a session is asked to charge for; `InvalidParameter` if its numbers are too long.

    >>> from counterpoint import Laplace
    >>> priced(Laplace("1e-51"))
    Traceback (most recent call last):
    ...
    counterpoint.errors.InvalidParameter: epsilon of Laplace has more than 50 digits: a session takes numbers of ...
    """
    must_be_short(mechanism)
    try:
        return mechanism.claim
    except ArithmeticError:
        raise InvalidParameter(
            f"what {type(mechanism).__name__} loses with these parameters cannot be computed: they are too large"
        ) from None


def must_be_short(given: object, name: str = "a number", owner: object = None) -> None:
    """Refuse numbers longer than `GIVEN_DIGITS` in what a session is asked to charge for: budgets, rules, mechanisms.

    Every launch comes this way before anything is charged. What is computed of shorter parameters has room below the
    bounds of sums and of stored numbers, so that no step, sum or record fails because of them. Curves are exempt:
    conversions compute their vertices, and composition refuses curves whose numbers grow too long.
    """
    if isinstance(given, Fraction | int):
        if max(abs(given.numerator), given.denominator) > _LONGEST:
            of = "" if owner is None else f" of {type(owner).__name__}"
            raise InvalidParameter(
                f"{name}{of} has more than {GIVEN_DIGITS} digits: a session takes numbers of at most {GIVEN_DIGITS} "
                "digits, as decimals or above and below a slash"
            )
    elif isinstance(given, tuple | list):
        for part in given:
            must_be_short(part, name, owner)
    elif isinstance(given, msgspec.Struct) and not isinstance(given, Account | TradeOff):  # those are computed
        for field in given.__struct_fields__:
            must_be_short(getattr(given, field), field, given)


_LONGEST = 10**GIVEN_DIGITS


def accepted(mechanism: Mechanism, message: object) -> Message:
    """The message itself, or `InvalidRequest` if the mechanism does not accept it; draws and changes nothing."""
    public_only = mechanism.asks_are_public and isinstance(message, Ask) and message.private is not None
    if isinstance(message, Message) and mechanism.accepts(message) and not public_only:
        return message
    name = type(mechanism).__name__
    raise InvalidRequest(f"{name} does not accept this message; nothing was charged or changed")


def step(mechanism: Mechanism, state: State | None, message: object, coins: Coins) -> tuple[State | None, Answer]:
    """One step with the checks that go before every step: not halted, and the message accepted.

    >>> from counterpoint import Laplace
    >>> from counterpoint.coins import SeededCoins
    >>> step(Laplace(1), None, "hello", SeededCoins(1))
    Traceback (most recent call last):
    ...
    counterpoint.errors.Halted: Laplace has given its last answer; launch another one
    """
    before, taken = ready(mechanism, state, message)
    return mechanism.step(before, taken, coins)


def ready(mechanism: Mechanism, state: State | None, message: object) -> tuple[State, Message]:
    """The state and the message if a step may be made with them, else `Halted` or `InvalidRequest`; no coins."""
    if state is None:
        raise Halted(f"{type(mechanism).__name__} has given its last answer; launch another one")
    return state, accepted(mechanism, message)


def stepped(mechanism: Mechanism, state: State, message: Message, coins: Coins) -> tuple[State | None, Answer]:
    """A step of a mechanism inside another, as a sub-experiment; what its code raises goes no further.

    An error's type, text and frames may hold what the step saw. It is replaced by one constant error, but for a
    `SecretLeak`, by which authors find the line, and a tape that does not match, which concerns the coins.
    """
    try:
        return coins.call(mechanism.step, state, message)
    except (SecretLeak, TapeMismatch, *INTERRUPTIONS):
        raise
    except BaseException:
        pass  # the error is raised below, where Python does not chain this one to it
    raise NotTotal("the code of a mechanism failed in a step: a step must be total, whatever the data")


def refuse_options(asked: object, options: dict[str, Any]) -> None:
    """Raise `InvalidRequest` if an ask came with options, to a mechanism or postprocessor that has none.

    >>> refuse_options(Left(1), {"threshold": 3})
    Traceback (most recent call last):
    ...
    counterpoint.errors.InvalidRequest: Left takes no threshold=
    """
    if options:
        names = ", ".join(f"{name}=" for name in sorted(options))
        priced = options.keys() & {"epsilon", "rho", "mu", "loss", "error"}
        paid = ": its launch was charged, and asks cost nothing; session.ask takes prices and errors" if priced else ""
        raise InvalidRequest(f"{type(asked).__name__} takes no {names}{paid}")


def is_addressed(message: Message) -> bool:
    """Whether the message is meant for a child of a composition rather than for the mechanism itself."""
    return isinstance(message, Ask) and isinstance(message.public, ToChild)

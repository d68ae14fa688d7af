"""Randomized response in one step and in two, and public dice.

Randomized response is the universal (epsilon, delta) mechanism (Henzinger et al. 2024, Def 2.3, Def 2.9).

With probability delta the bit is *exposed* (it is answered, with the fact that it is exposed); otherwise the answer is
a noisy bit, true with probability e^epsilon/(1+e^epsilon). The papers disagree on which of top and bottom means exposed
(errata, Henzinger E3); here both mechanisms answer in words: an answer is (exposed, bit), or first `exposed` and then
the bit.

>>> from counterpoint import RandomizedResponse
>>> from counterpoint.coins import SeededCoins
>>> from counterpoint.mechanisms import Ask
>>> response, coins = RandomizedResponse(epsilon=0, delta=1), SeededCoins(1)
>>> response.step(response.start(coins), Ask(private=1), coins)
(None, (True, 1))
"""

from fractions import Fraction
from typing import Annotated

from counterpoint.coins.coins import Coins
from counterpoint.encoding import Value
from counterpoint.measures import ApproxDP, PureDP
from counterpoint.mechanisms.mechanism import Answer, Left, Mechanism, State, is_addressed
from counterpoint.mechanisms.tails import may_fail
from counterpoint.numbers import Number, certify
from counterpoint.numbers.parameters import NonNegative, PositiveInt, Probability, default
from counterpoint.privacy.certificates import machine_checked
from counterpoint.privacy.claims import Claim, claim
from counterpoint.privacy.messages import Ask, Message
from counterpoint.privacy.relations import FirstMessage, every_step
from counterpoint.privacy.secret import Secret, reveal


class Response(Mechanism):
    """What both forms share: the loss, and how often the bit is wrong."""

    __slots__ = ()
    epsilon: NonNegative
    delta: Probability

    @property
    def loss(self) -> PureDP | ApproxDP:
        """(epsilon, delta), or plain epsilon where nothing is ever exposed."""
        return ApproxDP(self.epsilon, self.delta) if self.delta else PureDP(self.epsilon)

    def error(self, probability: Number) -> int:
        """How far the bit in the answer is off at most, with this probability: 0 where it is true so often, else 1.

        It is wrong with probability (1 - delta)/(1 + e^epsilon), exactly (Henzinger et al. 2024, Def 2.3).

        >>> RandomizedResponse(2).error(0.88), RandomizedResponse(2).error(0.89)  # 1/(1 + e^2) is 0.119
        (0, 1)
        """
        lies = certify(lambda p: (1 - self.delta) / (1 + p(self.epsilon).exp())).upper
        return 0 if Fraction(lies) <= may_fail(probability) else 1


class RandomizedResponse(Response, Value, frozen=True):
    """Answers one ask about a bit with (exposed, bit); whatever is not a bit is brought to the nearest one.

    >>> RandomizedResponse(1).claim.loss, RandomizedResponse(1, 1e-6).claim.loss
    (PureDP(1), ApproxDP(1, 1e-6))
    """

    epsilon: NonNegative
    delta: Probability = default(Fraction(0))

    @property
    def claim(self) -> Claim:
        """(epsilon, delta) for any two bits."""
        by = machine_checked("Henzinger et al. 2024, Lemma 2.4", "randomized_response_private")
        return claim(self.loss, every_step(), by, interaction="one-shot")

    def accepts(self, message: object) -> bool:
        """An ask with a single private integer."""
        return _asks_about_a_bit(message)

    def start(self, coins: Coins) -> State:
        """One ask is left."""
        return Left(1)

    def step(self, state: State, message: Message, coins: Coins) -> tuple[State | None, Answer]:
        """(exposed, bit)."""
        assert message.private is not None
        exposed = coins.bernoulli(self.delta)
        return None, (exposed, answered_bit(_bit(message.private), exposed, self.epsilon, coins))


class Undecided(State, Value, frozen=True):
    """Interactive randomized response before its first ask."""


class Decided(State, Value, frozen=True):
    """Interactive randomized response between its two asks: whether the bit is exposed, and the bit."""

    exposed: bool
    bit: Secret


class InteractiveRandomizedResponse(Response, Value, frozen=True):
    """Answers first whether the bit is exposed and, when asked again, the bit; then it halts.

    See Henzinger et al. 2024, Def 2.9.

    The first ask carries the bit, the second nothing: only the first message may differ between neighbours.

    >>> InteractiveRandomizedResponse(1, 0.1).claim.relation
    FirstMessage()
    """

    epsilon: NonNegative
    delta: Probability = default(Fraction(0))

    @property
    def claim(self) -> Claim:
        """(epsilon, delta) for any two bits in the first message."""
        by = (
            "Henzinger et al. 2024, Def 2.9: the two answers together are randomized response; Henzinger et "
            "al. 2024, Lemma 2.4"
        )
        return claim(self.loss, FirstMessage(), by, interaction="finite")

    def accepts(self, message: object) -> bool:
        """An ask about a bit, or the second ask, which carries nothing (a bit sent again is not looked at)."""
        return _asks_about_a_bit(message) or _asks_for_nothing(message)

    def start(self, coins: Coins) -> State:
        """Nothing is decided before the first ask."""
        return Undecided()

    def step(self, state: State, message: Message, coins: Coins) -> tuple[State | None, Answer]:
        """First `exposed`, then the bit."""
        if isinstance(state, Decided):
            bit = reveal(state.bit)
            assert isinstance(bit, int)
            return None, answered_bit(bit, state.exposed, self.epsilon, coins)
        exposed = coins.bernoulli(self.delta)
        bit = 0 if message.private is None else _bit(message.private)
        return Decided(exposed, Secret(bit)), exposed


def answered_bit(bit: int, exposed: bool, epsilon: Fraction, coins: Coins) -> int:
    """The bit itself if it is exposed, else a noisy one: true with probability e^epsilon/(1+e^epsilon)."""
    return bit if exposed or coins.logistic(epsilon) else 1 - bit


def _bit(secret: Secret) -> int:
    value = reveal(secret.clamp(0, 1))
    assert isinstance(value, int)
    return value


def _asks_about_a_bit(message: object) -> bool:
    return (
        isinstance(message, Ask)
        and message.private is not None
        and message.private.width is None
        and not is_addressed(message)
    )


def _asks_for_nothing(message: object) -> bool:
    return isinstance(message, Ask) and message.private is None and not is_addressed(message)


class Rolling(State, Value, frozen=True):
    """Dice remember nothing."""


class Dice(Mechanism, Value, frozen=True):
    """A number from 0 to sides - 1 at every ask, all equally likely and independent; PureDP(0).

    The program of a composite is deterministic, because what it does between two sub-answers must be the same in two
    neighbouring worlds. Where it needs a random number, it asks dice (Henzinger et al. 2024, sec. 6.3, "Note"): their
    law depends on no data, so they are 0-DP, and when two worlds are compared on one tape of sub-answers, they fall the
    same way in both.

    >>> Dice(2).accepts(Ask()), Dice(2).accepts(Ask(private=1))
    (True, False)
    """

    sides: Annotated[PositiveInt, "the number of sides"]

    @property
    def claim(self) -> Claim:
        """PureDP(0), whatever differs: their law depends on no data."""
        return claim(PureDP(0), every_step(), "the answers do not depend on the data")

    @property
    def asks_are_public(self) -> bool:
        """Dice take no private data."""
        return True

    def accepts(self, message: object) -> bool:
        """An ask that carries nothing."""
        return isinstance(message, Ask) and message.private is None and message.public is None

    def start(self, coins: Coins) -> State:
        """Nothing to remember."""
        return Rolling()

    def step(self, state: State, message: Message, coins: Coins) -> tuple[State | None, Answer]:
        """Roll."""
        return state, int(coins.integer(self.sides))

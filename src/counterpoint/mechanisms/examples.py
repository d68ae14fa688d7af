"""Two machines from the papers that show what goes wrong; for verification and teaching, not for use.

`OpenDoor` is M_delta of Henzinger et al. 2024, Thm 5.2: each first ask opens it with probability delta, and once open
it repeats its next input. One copy is (0, delta)-DP; of l copies, an adversary who waits for an open one learns a bit
with probability 1-(1-delta)^l, which is why naive parallel composition is refused. `LoudNumber` is the machine of
Henzinger et al.'s first footnote: (0, delta)-DP against an oblivious adversary, without any privacy against an adaptive
one.

>>> from counterpoint import Ask, SeededCoins
>>> door, coins = OpenDoor(delta=1), SeededCoins(1)
>>> state, answer = door.step(door.start(coins), Ask(private=0), coins)
>>> answer, door.step(state, Ask(private=1), coins)[1]
('open', 1)
"""

from math import ceil

from counterpoint.encoding import Value
from counterpoint.errors import InvalidParameter
from counterpoint.mechanisms.mechanism import Answer, Left, Mechanism, State, is_addressed
from counterpoint.numbers.parameters import Probability
from counterpoint.privacy.claims import Claim, claim
from counterpoint.privacy.losses import ApproxDP
from counterpoint.privacy.messages import Ask, Message
from counterpoint.privacy.relations import FirstMessage, Steps
from counterpoint.privacy.secret import Secret, reveal
from counterpoint.randomness.coins import Coins


class Door(State, Value, frozen=True):
    """How many asks the machine has left, and whether it has opened."""

    asks: int
    open: bool


class OpenDoor(Mechanism, Value, frozen=True):
    """M_delta of Henzinger et al. 2024, Thm 5.2: two asks about a bit, of which at most one may differ; (0, delta)-DP.

    >>> OpenDoor(0.125).claim.loss
    ApproxDP(0, 0.125)
    """

    delta: Probability

    @property
    def claim(self) -> Claim:
        """(0, delta) if at most one of the two asks differs."""
        by = "Henzinger et al. 2024, Thm 5.2, step 2: with probability 1-delta no answer depends on the input"
        return claim(ApproxDP(0, self.delta), Steps(asks=1), by, interaction="finite")

    def accepts(self, message: object) -> bool:
        """An ask about a bit."""
        return (
            isinstance(message, Ask)
            and message.private is not None
            and message.private.width is None
            and not is_addressed(message)
        )

    def start(self, coins: Coins) -> State:
        """Closed, with two asks left."""
        return Door(2, open=False)

    def step(self, state: State, message: Message, coins: Coins) -> tuple[State | None, Answer]:
        """Repeats its input if it is open; else says whether it has opened now."""
        assert isinstance(state, Door) and message.private is not None
        left = state.asks - 1
        if state.open:
            return (Door(left, open=True) if left else None), reveal(message.private.clamp(0, 1))
        opens = coins.bernoulli(self.delta)
        return (Door(left, open=opens) if left else None), "open" if opens else "closed"


class Announced(State, Value, frozen=True):
    """The number that was announced, and the bit it guards."""

    number: int
    bit: Secret


class LoudNumber(Mechanism, Value, frozen=True):
    """Henzinger et al. 2024, footnote 1: announces one of 1..ceil(1/delta) and answers with the bit if the next
    ask repeats that number.

    An adversary that must choose both asks in advance guesses it with probability delta; an adaptive one repeats
    it. Its claim is therefore ApproxDP(0, 1): no privacy, against the adversaries that this library defends from.

    >>> LoudNumber(0.25).claim.loss, LoudNumber(0.25).numbers
    (ApproxDP(0, 1), 4)
    """

    delta: Probability

    def __post_init__(self) -> None:
        """There must be a number to announce."""
        if self.delta == 0:
            raise InvalidParameter("delta must be above 0: the number announced is one of ceil(1/delta)")

    @property
    def numbers(self) -> int:
        """How many numbers there are to announce."""
        return ceil(1 / self.delta)

    @property
    def claim(self) -> Claim:
        """Nothing, against adaptive adversaries."""
        return claim(ApproxDP(0, 1), FirstMessage(), "nothing is promised (Henzinger et al. 2024, footnote 1)")

    def accepts(self, message: object) -> bool:
        """An ask with the bit, then an ask with the number as its public part."""
        return isinstance(message, Ask) and not is_addressed(message)

    def start(self, coins: Coins) -> State:
        """Waiting for the bit."""
        return Left(2)

    def step(self, state: State, message: Message, coins: Coins) -> tuple[State | None, Answer]:
        """The number; then the bit, if the number comes back."""
        assert isinstance(message, Ask)
        if not isinstance(state, Announced):
            number = coins.integer(self.numbers) + 1
            return Announced(number, Secret(0) if message.private is None else message.private), number
        return None, reveal(state.bit) if message.public == state.number else None

"""What both simulators receive: the number of one of M's pairs of messages, with the bit b as its private part.

>>> from counterpoint.mechanisms.examples import OpenDoor
>>> from counterpoint.verify.decomposing import decompose
>>> len(decompose(OpenDoor("1/7"), 0, "1/7", rounds=2).simulator.messages)
2
"""

from abc import abstractmethod

from counterpoint.mechanisms.mechanism import Mechanism, State
from counterpoint.mechanisms.randomized_response import Undecided
from counterpoint.privacy.messages import Ask
from counterpoint.privacy.relations import Pair
from counterpoint.randomness.coins import Coins


class PairSimulator(Mechanism):
    """A simulator that receives the numbers of the pairs of messages to M; the private part of the first is b."""

    @property
    @abstractmethod
    def pairs(self) -> int:
        """How many pairs of messages there are."""

    @property
    def messages(self) -> tuple[Pair, ...]:
        """The pairs of messages to T, one for each pair of messages to M: their private part is b."""
        return tuple((Ask(number, 0), Ask(number, 1)) for number in range(self.pairs))

    def accepts(self, message: object) -> bool:
        """The number of a pair of messages, and the bit."""
        if not isinstance(message, Ask) or type(message.public) is not int or message.private is None:
            return False
        return message.private.width is None and 0 <= message.public < self.pairs

    def start(self, coins: Coins) -> State:
        """No bit has been read."""
        return Undecided()

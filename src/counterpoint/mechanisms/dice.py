"""Dice: the randomness of a composite, as a sub-mechanism that costs nothing (Henzinger et al. 2024, sec. 6.3, "Note").

The program of a composite is deterministic, because what it does between two sub-answers must be the same in two
neighbouring worlds. Where it wants a random number, it asks dice: their law depends on no data, so they are 0-DP, and
when two worlds are compared on one tape of sub-answers they fall the same way in both.

>>> from counterpoint import Ask, SeededCoins
>>> dice, coins = Dice(sides=6), SeededCoins(1)
>>> state, rolled = dice.step(dice.start(coins), Ask(), coins)
>>> 0 <= rolled < 6, dice.claim.loss
(True, PureDP(0))
"""

from typing import Annotated

from counterpoint.encoding import Value
from counterpoint.mechanisms.mechanism import Answer, Mechanism, State
from counterpoint.numbers.parameters import PositiveInt
from counterpoint.privacy.claims import Claim, claim
from counterpoint.privacy.losses import PureDP
from counterpoint.privacy.messages import Ask, Message
from counterpoint.privacy.relations import every_step
from counterpoint.randomness.coins import Coins


class Rolling(State, Value, frozen=True):
    """Dice remember nothing."""


class Dice(Mechanism, Value, frozen=True):
    """A number from 0 to sides - 1 at every ask, all equally likely and independent; PureDP(0).

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

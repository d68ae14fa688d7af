"""The simulator T of Lyu 2022, Thm 3: it receives one randomized response to the bit b, and then answers as M(b) does.

Its messages are the numbers of M's pairs of messages, with the bit b as their private part, which only the randomized
response reads: if b is exposed, T continues as E^b; else as N of the noisy bit. So an adversary learns from M, in any
number of rounds, no more than from a single randomized response. In two steps (Henzinger et al. 2024, Cor 5.7) T first
asks only whether the bit is exposed, and asks for the noisy bit once a pair of messages differs.

>>> from counterpoint import Ask, SeededCoins
>>> from counterpoint.mechanisms.examples import OpenDoor
>>> from counterpoint.verify.decomposing import decompose
>>> simulator, coins = decompose(OpenDoor("1/7"), 0, "1/7", rounds=2).simulator, SeededCoins(1)
>>> state, answer = simulator.step(simulator.start(coins), Ask(0, 1), coins)
>>> answer in ("open", "closed")
True
"""

from fractions import Fraction
from typing import Any

from msgspec.structs import replace

from counterpoint.encoding import Value
from counterpoint.mechanisms.mechanism import Answer, State
from counterpoint.numbers import precision
from counterpoint.privacy.claims import Claim, claim
from counterpoint.privacy.losses import ApproxDP, PureDP
from counterpoint.privacy.messages import Ask, Message
from counterpoint.privacy.relations import every_step
from counterpoint.privacy.secret import Secret, reveal
from counterpoint.randomness.coins import Coins
from counterpoint.verify.games.game import HALT
from counterpoint.verify.simulating.decomposition import Decomposition, Place
from counterpoint.verify.simulating.pairs import PairSimulator


class Simulating(State, Value, frozen=True):
    """The position in the decomposition, and the answer of the randomized response.

    `bit` is b itself until the response is `released`; from then on it is the released bit.
    """

    level: int
    node: int
    residual: tuple[Fraction, Fraction]
    together: bool
    exposed: bool
    released: bool
    bit: Secret


class Simulator(PairSimulator):
    """T: it learns b only through one randomized response, which by Lyu 2022, Thm 3 is enough to answer as M(b)."""

    def __init__(self, decomposition: Decomposition) -> None:
        self.decomposition = decomposition

    def __repr__(self) -> str:
        return f"Simulator({self.decomposition!r})"

    @property
    def claim(self) -> Claim:
        """(log growth, delta), whatever the bits of the messages are: T reads only the first one."""
        made = self.decomposition
        epsilon = Fraction(precision(30)(made.growth).log().upper) if made.growth > 1 else Fraction(0)
        loss = ApproxDP(epsilon, made.delta) if made.delta else PureDP(epsilon)
        return claim(
            loss,
            every_step(),
            "Henzinger et al. 2024, Lemma 2.4: it postprocesses one randomized response",
            interaction="finite",
        )

    @property
    def pairs(self) -> int:
        """How many pairs of messages M was decomposed over."""
        return len(self.decomposition.worlds.pairs)

    def step(self, state: State, message: Message, coins: Coins) -> tuple[State | None, Answer]:
        """An answer of E or N; `HALT` to an invalid pair. T halts after the last round."""
        assert isinstance(message, Ask) and isinstance(message.public, int) and message.private is not None
        made, move = self.decomposition, message.public
        current = state if isinstance(state, Simulating) else self._begun(message.private.clamp(0, 1), coins)
        edges = made.after(self._place(current), move)
        if edges is None:
            return None, HALT
        if not current.released and not (current.together and made.identical(move)):
            current = self._release(current, coins)
        # until the bit is released, E^0 = E^1 and N^0 = N^1
        bit = reveal(current.bit) if current.released else 0
        assert isinstance(bit, int)
        weights = [made.weights(edge, bit)[0 if current.exposed else 1] for edge in edges]
        edge = edges[drawn(weights, coins)]
        return self._at(current, edge.place), edge.answer

    def _begun(self, bit: Secret, coins: Coins) -> Simulating:
        """The randomized response: all of it, or, in two steps, only whether the bit is exposed."""
        made = self.decomposition
        level, node, residual, together = made.root
        begun = Simulating(level, node, _exact(residual), together, coins.bernoulli(made.delta), False, bit)
        return begun if made.in_two_steps else self._release(begun, coins)

    def _release(self, state: Simulating, coins: Coins) -> Simulating:
        growth = self.decomposition.growth
        honest = state.exposed or coins.bernoulli(growth / (1 + growth))
        return replace(state, released=True, bit=state.bit if honest else 1 - state.bit)

    def _place(self, state: Simulating) -> Place:
        zero, one = (Fraction(r) if self.decomposition.worlds.rational else float(r) for r in state.residual)
        return Place(state.level, state.node, (zero, one), state.together)

    def _at(self, state: Simulating, place: Place) -> Simulating | None:
        """The state at the next place; None if no move is left."""
        moves = range(len(self.decomposition.worlds.pairs))
        if all(self.decomposition.after(place, move) is None for move in moves):
            return None
        return replace(
            state, level=place.level, node=place.node, residual=_exact(place.residual), together=place.together
        )


def _exact(residual: tuple[Any, Any]) -> tuple[Fraction, Fraction]:
    return Fraction(residual[0]), Fraction(residual[1])


def drawn(weights: list[Any], coins: Coins) -> int:
    """Draw the index of an outcome, by weights that need not sum to 1.

    >>> from counterpoint import EnumeratedCoins
    >>> [(outcome, str(p)) for outcome, p in EnumeratedCoins().law(lambda coins: drawn([1, 0, 2], coins))]
    [(0, '1/3'), (2, '2/3')]
    """
    left = [Fraction(weight) for weight in weights]
    rest = sum(left, Fraction(0))
    for number, weight in enumerate(left):
        if weight and (weight == rest or coins.bernoulli(weight / rest)):
            return number
        rest -= weight
    raise AssertionError("some outcome has a positive weight")

"""The simulator T of an f-DP mechanism: it is given one draw for the bit b, and then answers as M(b) does.

Its messages are the numbers of M's pairs of messages, with the bit b as their private part, of which only the first is
read, and only by the draw (Haney et al. 2023, Thm 3.3). So an adversary learns from M, in any number of rounds, no more
than from one draw.

>>> from counterpoint import Ask, SeededCoins, TradeOff
>>> from counterpoint.mechanisms.examples import OpenDoor
>>> from counterpoint.verify.decomposing import decompose
>>> made = decompose(OpenDoor("1/7"), curve=TradeOff.of_approx(0, "1/7"), rounds=2)
>>> simulator, coins = made.simulator, SeededCoins(1)
>>> state, answer = simulator.step(simulator.start(coins), Ask(0, 1), coins)
>>> answer in ("open", "closed")
True
"""

from fractions import Fraction

from counterpoint.encoding import Value
from counterpoint.mechanisms.mechanism import Answer, State
from counterpoint.privacy.claims import Claim, claim
from counterpoint.privacy.messages import Ask, Message
from counterpoint.privacy.relations import every_step
from counterpoint.privacy.secret import reveal
from counterpoint.randomness.coins import Coins
from counterpoint.verify.games.game import HALT
from counterpoint.verify.simulating.by_curve import CurveDecomposition, Stage
from counterpoint.verify.simulating.pairs import PairSimulator
from counterpoint.verify.simulating.simulation import drawn


class Drawn(State, Value, frozen=True):
    """The outcome of the draw, and the place in the decomposition."""

    outcome: int
    level: int
    node: int
    weights: tuple[Fraction, ...]


class CurveSimulator(PairSimulator):
    """T: it learns b only through one draw from the pair of distributions that has the curve."""

    def __init__(self, decomposition: CurveDecomposition) -> None:
        self.decomposition = decomposition

    def __repr__(self) -> str:
        return f"CurveSimulator({self.decomposition!r})"

    @property
    def claim(self) -> Claim:
        """The curve, whatever the bits of the messages are: T reads only the first one."""
        by = "it postprocesses one draw from the pair of distributions that has this curve"
        return claim(self.decomposition.curve, every_step(), by, interaction="finite")

    @property
    def pairs(self) -> int:
        """How many pairs of messages M was decomposed over."""
        return len(self.decomposition.worlds.pairs)

    def step(self, state: State, message: Message, coins: Coins) -> tuple[State | None, Answer]:
        """An answer by the weights of the outcome; `HALT` to an invalid pair. T halts after the last round."""
        assert isinstance(message, Ask) and isinstance(message.public, int) and message.private is not None
        made = self.decomposition
        if isinstance(state, Drawn):
            outcome, stage = state.outcome, self._stage(state)
        else:
            bit = reveal(message.private.clamp(0, 1))
            assert isinstance(bit, int)
            outcome, stage = drawn([pair[bit] for pair in made.outcomes], coins), made.root
        replies = made.after(stage, message.public)
        if replies is None:
            return None, HALT
        reply = replies[drawn([reply.weights[outcome] for reply in replies], coins)]
        return self._at(outcome, reply.stage), reply.answer

    def _stage(self, state: Drawn) -> Stage:
        weights = state.weights if self.decomposition.worlds.rational else tuple(map(float, state.weights))
        return Stage(state.level, state.node, weights)

    def _at(self, outcome: int, stage: Stage) -> Drawn | None:
        """The state at the next stage; None if no move is left."""
        if all(self.decomposition.after(stage, move) is None for move in range(self.pairs)):
            return None
        return Drawn(outcome, stage.level, stage.node, tuple(map(Fraction, stage.weights)))

"""Guess and check on linear queries: the answer is a weighted sum over the cells of a histogram.

A linear query gives every cell of a public universe a public weight, a whole number from 0 to `steps`. Its private part
is the histogram itself, whose cells are weighed and added up inside, or the weighted sum, if it has been computed
already. A change of L1 norm s in the histogram moves the sum by at most s * steps, which is what the check is for.

>>> from counterpoint import Ask, SeededCoins
>>> checks = GuessAndCheck(epsilon=1, margin=20, wrong=2)
>>> mechanism, coins = LinearGuessAndCheck(checks, universe=3), SeededCoins(1)
>>> state = mechanism.start(coins)
>>> state, answer = mechanism.step(state, Ask(LinearGuess((1, 0, 1), guess=500), private=(300, 7, 200)), coins)
>>> answer, mechanism.claim.loss
(('PASS', None), PureDP(4))
"""

from typing import Annotated, Self

from msgspec.structs import replace

from counterpoint.encoding import Tagged, Value
from counterpoint.errors import InvalidParameter
from counterpoint.mechanisms.composed.composite import Composite, Context, Own, Part
from counterpoint.mechanisms.composed.guess_and_check import GuessAndCheck, GuessError
from counterpoint.mechanisms.mechanism import Answer
from counterpoint.numbers import Number
from counterpoint.numbers.parameters import PositiveInt
from counterpoint.privacy.messages import Ask, Message
from counterpoint.privacy.relations import Relation, every_step


class LinearGuess(Tagged, Value, frozen=True):
    """The public part of an ask: a weight for each cell, and what the weighted sum is guessed to be."""

    weights: tuple[int, ...]
    guess: int


class Weighing(Own, Value, frozen=True):
    """Nothing needs to be remembered beside the checks."""


class LinearGuessAndCheck(Composite, Value, frozen=True):
    """Guess and check of weighted sums over `universe` cells; it costs what the checks cost.

    >>> LinearGuessAndCheck(GuessAndCheck(1, 20), universe=2).accepts(Ask(LinearGuess((1, 2), 0), private=(3, 4)))
    False
    """

    checks: GuessAndCheck
    universe: Annotated[PositiveInt, "the size of the universe"]
    steps: PositiveInt = 1

    def __post_init__(self) -> None:
        """Check what checks the guesses."""
        if not isinstance(self.checks, GuessAndCheck):
            raise InvalidParameter(f"checks must be a GuessAndCheck, not a {type(self.checks).__name__}")

    @property
    def structure(self) -> tuple[Part, ...]:
        """The checks."""
        return (Part("checks", self.checks.claim.loss, every_step()),)

    @property
    def relation(self) -> Relation:
        """Every ask may differ, by at most its sensitivity."""
        return every_step()

    def for_counts(self, moves: int) -> Self:
        """With checks of sums over the counts of cells, if no sensitivity was given.

        >>> LinearGuessAndCheck(GuessAndCheck(1, 20), universe=2, steps=3).for_counts(5).checks.sensitivity
        15
        """
        return replace(self, checks=self.checks.for_counts(moves * self.steps))

    def accepts(self, message: object) -> bool:
        """An ask with a guess and weights for all cells, about a histogram of them or a single sum."""
        if not (isinstance(message, Ask) and isinstance(message.public, LinearGuess) and message.private is not None):
            return False
        weights, width = message.public.weights, message.private.width
        return (
            type(message.public.guess) is int
            and self.weighs(weights)
            and width in (None, self.universe)
            and self._sensitivity(message) <= self.checks.moves
        )

    def weighs(self, weights: object) -> bool:
        """Whether these are weights: a whole number from 0 to `steps` for each cell."""
        if not isinstance(weights, tuple) or len(weights) != self.universe:
            return False
        return all(type(weight) is int and 0 <= weight <= self.steps for weight in weights)

    def _sensitivity(self, ask: Ask) -> int:
        """How far the weighted sum moves at most."""
        summed = ask.private is None or ask.private.width is None
        return ask.sensitivity if summed else ask.sensitivity * self.steps

    def begin(self, context: Context) -> Own:
        """Launch the checks."""
        context.launch("checks", self.checks)
        return Weighing()

    def react(self, context: Context, own: Own, message: Message) -> tuple[Own | None, Answer]:
        """Weigh, and check the guess."""
        assert isinstance(message, Ask) and message.private is not None and isinstance(message.public, LinearGuess)
        value, weights = message.private, message.public.weights
        if value.width is not None:
            value = value.map(lambda cells: sum(w * cell for w, cell in zip(weights, cells, strict=True) if w))
        answer = context.ask("checks", value, message.public.guess, self._sensitivity(message))
        return (None if context.halted("checks") else own), answer

    def error(self, probability: Number, asks: int) -> GuessError:
        """How far off verdicts and weighted sums are at most, with this probability: as those of the checks.

        >>> LinearGuessAndCheck(GuessAndCheck(epsilon=1, margin=20, wrong=3), universe=2).error(0.95, asks=100)
        GuessError(verdict=22, answer=14)
        """
        return self.checks.error(probability, asks)

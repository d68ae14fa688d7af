"""Guess and check: the analyst guesses, and pays only for guesses that are wrong (Lyu 2022, Alg 1, Thm 5).

A sparse vector watches how far each value is from its guess; where that reaches the margin, a Laplace mechanism answers
with the value itself. What the analyst asks next depends on those answers, so the two run interleaved: their privacy
is concurrent composition, and the claim, 4 epsilon, is derived from the two parts: 3 epsilon and epsilon. In zCDP it is
the same with 3 rho and rho (`GuessAndCheck.concentrated`): concurrent composition of Renyi losses is what such
algorithms of Zhu and Wang lacked (Lyu 2022, Remark 2, Thm 2).

>>> from counterpoint.coins import SeededCoins
>>> from counterpoint.mechanisms import Ask
>>> mechanism, coins = GuessAndCheck(epsilon=1, margin=20, wrong=2), SeededCoins(1)
>>> state = mechanism.start(coins)
>>> state, good = mechanism.step(state, Ask(100, private=103), coins)
>>> state, bad = mechanism.step(state, Ask(100, private=500), coins)
>>> good, bad[0], abs(bad[1] - 500) < 50
(('PASS', None), 'WRONG', True)
>>> mechanism.claim.loss
PureDP(4)
"""

from fractions import Fraction
from typing import Annotated, NamedTuple, Self

from msgspec.structs import replace

from counterpoint.encoding import Plain, Tagged, Value
from counterpoint.errors import InvalidParameter, InvalidRequest
from counterpoint.measures import PureDP, zCDP
from counterpoint.measures.loss import Loss
from counterpoint.mechanisms.additive import Gaussian, Laplace
from counterpoint.mechanisms.composite import Composite, Own
from counterpoint.mechanisms.composite_parts import Context, Part
from counterpoint.mechanisms.mechanism import Answer
from counterpoint.mechanisms.sparse_vector import SparseVector
from counterpoint.mechanisms.tails import may_fail, subgaussian_within
from counterpoint.mechanisms.threshold import Threshold
from counterpoint.numbers import Number
from counterpoint.numbers.exact import exact
from counterpoint.numbers.parameters import (
    PositiveInt,
    PositiveOrNone,
    Rational,
    RationalOrNone,
    default,
)
from counterpoint.privacy.messages import Ask, Message
from counterpoint.privacy.relations import Relation, every_step

PASS, WRONG = "PASS", "WRONG"
"""The verdicts, in Lyu's words; an answer is (PASS, None) or (WRONG, the noisy value)."""


class Guess(Tagged, Value, frozen=True):
    """The public part of an ask: the guess, and the margin if it is not that of the launch, on the grid of the value.

    >>> Ask(Guess(100, margin=5), private=103).public
    Guess(value=100, margin=5)
    """

    value: int
    margin: Annotated[RationalOrNone, "the margin"] = default(None)

    def __post_init__(self) -> None:
        """Check the guess."""
        if type(self.value) is not int:
            raise InvalidParameter("a guess is a whole number on the grid of the value")


class WrongLeft(Own, Value, frozen=True):
    """How many wrong guesses may still be answered."""

    guesses: int


class GuessError(NamedTuple):
    """How far off verdicts and answers may be, on the grid of the values."""

    verdict: int
    answer: int


class GuessAndCheck(Composite, Value, frozen=True):
    """Says of each guess whether it is within the margin, with noise, and of `wrong` many that are not, the value.

    PureDP(4 epsilon): a sparse vector of 3 epsilon on |value - guess|, which moves no further than the value does, and
    `wrong` Laplace answers of epsilon in all, of scale wrong/epsilon. After the last of them it halts. Lyu 2022 has the
    noise Lap(1/epsilon) and Lap(wrong/epsilon) in its sparse vector, which is 3 epsilon = e1 + e2 split 1 : 2; here the
    split is the one that makes a comparison's noise least, at the same 3 epsilon.

    The guess is the public part of an ask: an integer or a `Guess`. The margin is in the units of the requests; without
    units (`Ask` by `Ask`) that is the grid of the values.

    >>> print(GuessAndCheck(epsilon=0.5, margin=10, wrong=3).claim.certificate)
    PureDP(2) for neighbours that differ in any asks and any updates
    │ by Henzinger et al. 2024, Thm 6.1, Cor 6.6: destination and response by tainted values, ...
    └─ the parts together are PureDP(2), in any interleaving
       │ by concurrent composition, losses fixed in advance (Henzinger et al. 2024, Thm 4.12, Cor 13.4)
       ├─ part 'check', launched once, is PureDP(1.5) for neighbours that differ in any asks and any updates
       │    by its claim implies the part's loss on a family that contains the part's (...), checked at launch
       └─ part 'answer', launched once, is PureDP(0.5) for neighbours that differ in any asks and any updates
            by its claim implies the part's loss on a family that contains the part's (...), checked at launch
    """

    epsilon: PositiveOrNone
    margin: Annotated[Rational, "the margin"]
    wrong: PositiveInt = 1
    sensitivity: Annotated[PositiveInt | None, "the sensitivity"] = None
    rho: PositiveOrNone = default(None)

    def __post_init__(self) -> None:
        """Check that it has one price."""
        if (self.epsilon is None) == (self.rho is None):
            raise InvalidParameter(
                "GuessAndCheck takes an epsilon, for pure privacy; for zCDP say GuessAndCheck.concentrated(rho, margin)"
            )

    @classmethod
    def concentrated(cls, rho: Number, margin: Number, wrong: int = 1, sensitivity: int | None = None) -> Self:
        """The same in zCDP(4 rho): a sparse vector of 3 rho, and `wrong` answers with Gaussian noise of rho in all.

        Its Renyi loss of order alpha is 4 alpha rho.

        >>> GuessAndCheck.concentrated(rho=0.01, margin=10, wrong=3).claim.loss
        zCDP(0.04)
        """
        return cls(None, margin, wrong, sensitivity, rho)

    @property
    def moves(self) -> int:
        """By how much a value moves at most between neighbours; 1 where that was left open and no source said it."""
        return self.sensitivity or 1

    def for_counts(self, moves: int) -> Self:
        """With this sensitivity, if none was given."""
        return self if self.sensitivity is not None else replace(self, sensitivity=moves)

    @property
    def structure(self) -> tuple[Part, ...]:
        """The check and the answers; every ask may differ, by at most its sensitivity."""
        return (
            Part("check", self._price(3), every_step()),
            Part("answer", self._price(1), every_step()),
        )

    def _price(self, shares: int) -> Loss:
        """`shares` quarters of what all of it costs."""
        if self.rho is not None:
            return zCDP(shares * self.rho)
        assert self.epsilon is not None
        return PureDP(shares * self.epsilon)

    @property
    def relation(self) -> Relation:
        """Every ask may differ, by at most its sensitivity."""
        return every_step()

    @property
    def _check(self) -> SparseVector:
        if self.rho is not None:
            return SparseVector(None, self.margin, self.wrong, self.moves, rho=3 * self.rho)
        assert self.epsilon is not None
        return SparseVector(3 * self.epsilon, self.margin, self.wrong, self.moves)

    @property
    def _answer(self) -> Laplace | Gaussian:
        if self.rho is not None:
            return Gaussian(rho=self.rho, asks=self.wrong, discrete=True)
        assert self.epsilon is not None
        return Laplace(self.epsilon, asks=self.wrong)

    def accepts(self, message: object) -> bool:
        """An ask with a guess and a single private integer, no more sensitive than declared."""
        return (
            isinstance(message, Ask)
            and message.private is not None
            and message.private.width is None
            and message.sensitivity <= self.moves
            and (type(message.public) is int or isinstance(message.public, Guess))
        )

    def public_part(self, grid: Fraction | None, /, **options: Number) -> Plain:
        """The guess, and the margin of this ask, on the grid of its value, from units: `guess=`, `margin=`.

        A guess between two points of the grid is taken for the nearer one.

        >>> GuessAndCheck(1, margin=10).public_part(Fraction(1, 100), guess=2.5)
        Guess(value=250, margin=1000)
        """
        if "guess" not in options or options.keys() - {"guess", "margin"}:
            raise InvalidRequest("GuessAndCheck takes guess=, and margin= if it is not that of the launch")
        unit = 1 if grid is None else grid
        try:
            guess, margin = (
                exact(options["guess"], "the guess"),
                exact(options.get("margin", self.margin), "the margin"),
            )
        except InvalidParameter as error:
            raise InvalidRequest(str(error)) from None
        return Guess(round(guess / unit), margin / unit)

    def begin(self, context: Context) -> Own:
        """Launch both parts."""
        context.launch("check", self._check)
        context.launch("answer", self._answer)
        return WrongLeft(self.wrong)

    def react(self, context: Context, own: Own, message: Message) -> tuple[Own | None, Answer]:
        """Check the guess; answer if it is wrong."""
        assert isinstance(own, WrongLeft) and isinstance(message, Ask) and message.private is not None
        assert isinstance(message.public, int | Guess)
        guess = message.public if isinstance(message.public, Guess) else Guess(message.public)
        margin = Threshold(self.margin if guess.margin is None else guess.margin)
        if not context.ask("check", abs(message.private - guess.value), margin, message.sensitivity):
            return own, (PASS, None)
        value = context.ask("answer", message.private, sensitivity=message.sensitivity)
        return (WrongLeft(own.guesses - 1) if own.guesses > 1 else None), (WRONG, value)

    @property
    def caution(self) -> int:
        """What no noisy value is off by, with a probability of 97.5 %, by a union bound over the wrong guesses.

        `MultiplicativeWeights` steps by it, and ledgers replay those steps, so it stays as it is: for Gaussian values
        by the sub-Gaussian tail, where `error` is tighter.
        """
        each = Fraction(1, 40) / self.wrong
        if self.rho is None:
            return self._answer.error(1 - each, self.moves)
        return subgaussian_within(self.wrong * self.moves**2 / (2 * self.rho), each)

    def error(self, probability: Number, asks: int) -> GuessError:
        """How far off the first `asks` answers are at most, with at least this probability.

        If a guess passes, it is less than margin + `verdict` off; if it is wrong, at least margin - `verdict`, and the
        value that comes with it is within `answer`. Half of what may fail goes to the check, half to the values.

        >>> GuessAndCheck(epsilon=1, margin=20, wrong=3).error(0.95, asks=100)
        GuessError(verdict=22, answer=14)
        """
        half = 1 - may_fail(probability) / 2
        reach = self.moves if self.rho is None else self.moves**2
        return GuessError(self._check.error(half, asks), self._answer.error(half, reach, width=self.wrong))


class LinearGuess(Tagged, Value, frozen=True):
    """The public part of an ask: a weight for each cell, and what the weighted sum is guessed to be."""

    weights: tuple[int, ...]
    guess: int


class Weighing(Own, Value, frozen=True):
    """Nothing needs to be remembered beside the checks."""


class LinearGuessAndCheck(Composite, Value, frozen=True):
    """Guess and check of weighted sums over `universe` cells; it costs what the checks cost.

    A linear query gives every cell of a public universe a public weight, a whole number from 0 to `steps`. Its private
    part is the histogram itself, whose cells are weighed and added up inside, or the weighted sum, if it has been
    computed already. A change of L1 norm s in the histogram moves the sum by at most s * steps, which is what the check
    is for.

    >>> from counterpoint.coins import SeededCoins
    >>> from counterpoint.mechanisms import Ask
    >>> checks = GuessAndCheck(epsilon=1, margin=20, wrong=2)
    >>> mechanism, coins = LinearGuessAndCheck(checks, universe=3), SeededCoins(1)
    >>> state = mechanism.start(coins)
    >>> state, answer = mechanism.step(state, Ask(LinearGuess((1, 0, 1), guess=500), private=(300, 7, 200)), coins)
    >>> answer, mechanism.claim.loss
    (('PASS', None), PureDP(4))

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

"""Private multiplicative weights: many linear queries, of which only those cost that surprise a public hypothesis.

Hardt and Rothblum 2010, as a postprocessor on guess and check (Lyu 2022, sec. 1): the guess is what a public
distribution over the universe answers. If it passes, it is the answer; if it is wrong, the noisy value is, and the
distribution is tilted toward it. Nothing here sees data but through the checks, so all of it is free (Haney et al.
2023, Thm 2.17).

>>> from counterpoint.coins import SeededCoins
>>> from counterpoint.mechanisms import Ask
>>> weights = MultiplicativeWeights(epsilon=1, universe=4, rows=10_000, margin=0.1, updates=5)
>>> mechanism, coins = postprocess(weights, weights.checks), SeededCoins(1)
>>> state = mechanism.start(coins)
>>> state, (how, answer) = mechanism.step(state, Ask((1, 1, 0, 0), private=(9000, 500, 300, 200)), coins)
>>> how, abs(answer - 9500) < 200
('WRONG', True)
>>> state, (how, answer) = mechanism.step(state, Ask((0, 0, 1, 1), private=(9000, 500, 300, 200)), coins)
>>> how, abs(answer - 500) <= weights.error(0.95, asks=2).within
('PASS', True)
>>> mechanism.claim.loss
PureDP(1)

Why it gets there. Let D be the data as a distribution over X, h the hypothesis, q a query with values in [0, 1], and
g = q(D) - q(h). Tilting h_x by e^(eta q_x) lowers KL(D | h) by eta q(D) - log E_h e^(eta q), at least eta g - eta^2/8
(Hoeffding). With eta = 4 g' for a g' that is a away from g, that is 2 g^2 - 2 a^2. KL(D | h) starts at ln|X| at most
and is never negative: hence at most ln|X|/(2 g^2) updates, if each is made at a gap of g. Tilting further lowers it
further for as long as q(h) stays short of q(D), which matters where q is narrow: so the step is doubled while q(h)
stays short of the noisy value by more than its noise. (A fixed step of 4 margin has the same bound and is much slower.)

The hypothesis is kept as integer exponents, and its answers are computed in integers: a replay is exact anywhere.
"""

from fractions import Fraction
from functools import lru_cache
from math import ceil, erfc, floor, sqrt
from typing import Annotated, NamedTuple, Self

from msgspec.structs import force_setattr

from counterpoint.encoding import Plain, Tagged, Value
from counterpoint.errors import InvalidParameter, InvalidRequest
from counterpoint.mechanisms.guess_and_check import PASS, WRONG, GuessAndCheck, LinearGuess, LinearGuessAndCheck
from counterpoint.mechanisms.mechanism import Answer
from counterpoint.mechanisms.postprocessing import Asker, Postprocessed, Postprocessor, postprocess
from counterpoint.mechanisms.postprocessing import Own as Remembered
from counterpoint.numbers import Number, precision
from counterpoint.numbers.exact import exact, positive, whole
from counterpoint.numbers.parameters import Positive, PositiveInt, PositiveOrNone, Read, default
from counterpoint.privacy.messages import Ask

UNCHECKED = "UNCHECKED"
"""The verdict on an answer that was not checked, since all wrong guesses are used up; beside PASS and WRONG."""

RATE = 2**16
"""The hypothesis gives cell x the weight e^(exponent of x / (RATE * steps))."""

AtLeastTwo = Annotated[int, Read(lambda value, what: whole(value, 2, what))]
"""A whole number from 2 on."""

FAR = 32
"""No update changes the odds of two cells by more than about e^FAR."""


class Hypothesis(Tagged, Value, frozen=True):
    """A public distribution over the universe, as the logarithms of its weights."""

    exponents: tuple[int, ...]


class WeightsError(NamedTuple):
    """How far off answers are at most that are not UNCHECKED; and whether that is so of all answers, for ever."""

    within: int
    lasting: bool


class MultiplicativeWeights(Postprocessor, Value, frozen=True):
    """Answers linear queries over `universe` cells of a histogram of about `rows` rows, within a `margin` or so.

    The request is the weights, one for each cell, whole numbers from 0 to `steps`; the answer is (how, weighted sum),
    where `how` is PASS (the hypothesis was right, up to margin and noise), WRONG (it was not, and the answer is the
    noisy value) or UNCHECKED (all `updates` are used up, and the answer is the hypothesis').

    `epsilon` is what all of it costs: 4 times that of the guess and check. `margin` is a part of the rows. `rows` is
    public and scales the guesses: where it is off, so are they, and privacy does not depend on it. `updates` defaults
    to ceil(ln(universe)/(2 margin^2)), which always suffices without noise; most data needs far fewer, and each one
    adds to the noise of all. `sensitivity` is that of the histogram, in L1: 2 if a neighbour moves a row.

    >>> MultiplicativeWeights(epsilon=1, universe=1000, rows=10**5, margin=0.2).updates
    87
    """

    epsilon: PositiveOrNone
    universe: AtLeastTwo
    rows: PositiveInt
    margin: Annotated[Positive, "the margin"]
    updates: PositiveInt | None = None
    steps: PositiveInt = 1
    sensitivity: PositiveInt = 1
    rho: PositiveOrNone = default(None)

    @classmethod
    def concentrated(
        cls,
        rho: Number,
        universe: int,
        rows: int,
        margin: Number,
        updates: int | None = None,
        *,
        steps: int = 1,
        sensitivity: int = 1,
    ) -> Self:
        """The same in zCDP(rho), on checks in zCDP (Lyu 2022, Remark 2): less noise where there are many updates.

        >>> weights = MultiplicativeWeights.concentrated(rho=0.02, universe=4, rows=10_000, margin=0.1)
        >>> postprocess(weights, weights.checks).claim.loss
        zCDP(0.02)
        """
        return cls(None, universe, rows, margin, updates, steps, sensitivity, rho)

    @classmethod
    def suited(
        cls, epsilon: Number, universe: int, rows: int, asks: int, spread: Number, *, sensitivity: int = 1
    ) -> Self:
        """The margin and the updates that suit a workload: about `asks` queries, typically `spread` off at first.

        `spread` is a public guess, a part of the rows: the standard deviation of what queries answer around what the
        uniform hypothesis says. For random halves of data that are D_x of the rows in cell x it is half the root of
        the sum of D_x^2. Then 2 Q(margin/spread) of the queries would be wrong at first, and as each update corrects
        others too, half of that is planned for. Of 32 margins, the one with the least margin + noise is taken: a choice
        by public numbers, which costs nothing. Where the guess is off, answers are less near, or UNCHECKED earlier.

        >>> weights = MultiplicativeWeights.suited(1, universe=1000, rows=10**5, asks=1000, spread=0.028)
        >>> float(weights.margin), weights.updates, weights.error(0.5, asks=1000).within
        (0.042, 67, 5650)
        """
        guessed = positive(spread, "the spread")
        many = whole(asks, 1, "asks")
        plans = []
        for eighths in range(1, 33):
            wrong = many * erfc(eighths / 8 / sqrt(2)) / 2
            plan = cls(
                epsilon, universe, rows, min(guessed * eighths / 8, Fraction(1)), ceil(wrong), sensitivity=sensitivity
            )
            plans.append((plan.error(Fraction(1, 2), many).within, -eighths, plan))
        return min(plans, key=lambda found: found[:2])[2]

    def __post_init__(self) -> None:
        """Check the price and the margin; where the number of updates is not given, it follows from it."""
        if (self.epsilon is None) == (self.rho is None):
            raise InvalidParameter(
                "MultiplicativeWeights takes an epsilon; for zCDP say MultiplicativeWeights.concentrated(rho, ...)"
            )
        if self.margin > 1:
            raise InvalidParameter("the margin is a fraction of the rows, such as 0.05: it must be at most 1")
        if self.updates is None:
            force_setattr(self, "updates", _updates(self.universe, self.margin))

    @property
    def _scale(self) -> int:
        """A query that is 1 everywhere answers this."""
        return self.rows * self.steps

    @property
    def _guesses(self) -> GuessAndCheck:
        assert self.updates is not None
        checks = self.margin * self._scale, self.updates, self.sensitivity * self.steps
        if self.rho is not None:
            return GuessAndCheck.concentrated(self.rho / 4, *checks)
        assert self.epsilon is not None
        return GuessAndCheck(self.epsilon / 4, *checks)

    @property
    def checks(self) -> LinearGuessAndCheck:
        """The mechanism that this postprocessor is for."""
        return LinearGuessAndCheck(self._guesses, self.universe, self.steps)

    def accepts(self, ask: Ask) -> bool:
        """An ask whose request is weights, about something that the checks take."""
        if not isinstance(ask.public, tuple):
            return False
        guess = LinearGuess(ask.public, 0)  # type: ignore[arg-type]  # the checks see whether these are integers
        return self.checks.accepts(Ask(guess, ask.private, ask.sensitivity, ask.squared))

    def public_part(self, grid: Fraction | None, /, **options: object) -> Plain:
        """The weights of an ask, from `weights=`: numbers from 0 to 1, multiples of 1/steps.

        >>> MultiplicativeWeights(1, universe=3, rows=100, margin=0.1, steps=4).public_part(None, weights=[0, 0.25, 1])
        (0, 1, 4)
        """
        given = options.get("weights")
        if options.keys() != {"weights"} or not isinstance(given, list | tuple):
            raise InvalidRequest("multiplicative weights take weights=, a list with a number for each cell")
        try:
            scaled = [exact(weight, "a weight") * self.steps for weight in given]
        except InvalidParameter as error:
            raise InvalidRequest(str(error)) from None
        weights = tuple(weight.numerator for weight in scaled)
        if any(weight.denominator != 1 for weight in scaled) or not self.checks.weighs(weights):
            raise InvalidRequest(f"weights are {self.universe} multiples of 1/{self.steps} from 0 to 1")
        return weights

    def start(self) -> Remembered:
        """All cells weigh the same."""
        return Hypothesis((0,) * self.universe)

    def react(self, own: Remembered, request: Plain, ask: Asker) -> tuple[Remembered, Answer]:
        """Guess; if the guess is wrong, learn."""
        assert isinstance(own, Hypothesis)
        if not self.checks.weighs(request):
            raise InvalidRequest(f"a request is {self.universe} whole numbers from 0 to {self.steps}")
        weights: tuple[int, ...] = request  # type: ignore[assignment]  # just checked
        guess = self.answer(own, weights)
        if ask.halted:
            return own, (UNCHECKED, guess)
        verdict, value = ask(LinearGuess(weights, guess))
        if verdict == PASS:
            return own, (PASS, guess)
        return self.learnt(own, weights, guess, value), (WRONG, value)

    def answer(self, hypothesis: Hypothesis, weights: tuple[int, ...]) -> int:
        """What the hypothesis says, to the nearest integer, up to less than one more for rounding."""
        cells = _cells(hypothesis.exponents, RATE * self.steps, 64 + (self.universe * self._scale).bit_length())
        total = sum(cells)
        return (2 * self.rows * sum(w * cell for w, cell in zip(weights, cells, strict=True) if w) + total) // (
            2 * total
        )

    def learnt(self, hypothesis: Hypothesis, weights: tuple[int, ...], guess: int, value: int) -> Hypothesis:
        """The hypothesis after a wrong guess: tilted by 4 times the gap, as a part of the rows, or by more.

        The step is doubled while the hypothesis stays short of the noisy value by more than that may be off
        (`caution`), and not beyond what changes a weight by e^FAR: a query that is the same everywhere moves nothing.
        """
        gap = max(-self._scale, min(self._scale, value - guess))
        step = round(Fraction(4 * RATE * gap, self._scale))
        tilted, further = self.tilted(hypothesis, weights, step), self.tilted(hypothesis, weights, 2 * step)
        up = 1 if gap > 0 else -1
        while 0 < abs(step) <= FAR * RATE // 2 and up * (value - self.answer(further, weights)) > self.caution + 1:
            step *= 2
            tilted, further = further, self.tilted(hypothesis, weights, 2 * step)
        return tilted

    def tilted(self, hypothesis: Hypothesis, weights: tuple[int, ...], step: int) -> Hypothesis:
        """The hypothesis, tilted toward the cells that weigh most by `step` parts of RATE."""
        pairs = zip(hypothesis.exponents, weights, strict=True)
        return Hypothesis(tuple(exponent + step * weight for exponent, weight in pairs))

    @property
    def caution(self) -> int:
        """What no noisy value is off by, with a probability of 95 %; but at most a quarter of the margin.

        Where the noise is larger than that, a bolder hypothesis learns sooner, and nothing lasting is promised anyway.
        """
        return min(_caution(self._guesses), floor(self.margin * self._scale / 4))

    def error(self, probability: Number, asks: int) -> WeightsError:
        """How far the first `asks` answers are off at most, with at least this probability, if `rows` is right.

        A guess that passed is within margin + verdict, a noisy value within its own noise (see
        `GuessAndCheck.error`). It lasts if the updates cannot run out: each is then made at a gap of at least
        g = margin - verdict and lowers KL(D | h) by 2 g^2 - 2 a^2, a the error of the noisy value; more would not fit.
        (That holds as long as a is within `caution`, so not for much higher probabilities than 95 %.)

        >>> MultiplicativeWeights(epsilon=1, universe=1000, rows=10**5, margin=0.02, updates=80).error(0.95, asks=1000)
        WeightsError(within=4229, lasting=False)
        """
        verdict, answer = self._guesses.error(probability, asks)
        margin = self.margin * self._scale
        gap = (margin - verdict - 1) / self._scale
        off = Fraction(answer + 2, self._scale) + Fraction(1, 4 * RATE)
        lowered = 2 * (gap * gap - off * off) if gap > off else Fraction(0)
        assert self.updates is not None
        suffices = self.updates * lowered > Fraction(precision(30)(self.universe).log().upper)
        return WeightsError(max(ceil(margin) + verdict, answer), suffices and answer <= self.caution)


def multiplicative_weights(
    epsilon: Number,
    universe: int,
    rows: int,
    margin: Number,
    updates: int | None = None,
    *,
    steps: int = 1,
    sensitivity: int = 1,
) -> Postprocessed:
    """`MultiplicativeWeights` on its checks: what a session launches. Ask a histogram of the universe, and `weights=`.

    >>> mechanism = multiplicative_weights(epsilon=0.5, universe=100, rows=10**4, margin=0.1)
    >>> mechanism.claim.loss, mechanism.postprocessor.updates
    (PureDP(0.5), 231)
    """
    weights = MultiplicativeWeights(epsilon, universe, rows, margin, updates, steps=steps, sensitivity=sensitivity)
    return postprocess(weights, weights.checks)


@lru_cache(maxsize=64)
def _caution(guesses: GuessAndCheck) -> int:
    return guesses.caution


def _updates(universe: int, margin: Fraction) -> int:
    return ceil((precision(30)(universe).log() / (2 * margin * margin)).upper)


@lru_cache(maxsize=16)
def _cells(exponents: tuple[int, ...], unit: int, bits: int) -> tuple[int, ...]:
    """e^((exponent - the largest)/unit) for each cell, times 2^bits, rounded down by a few at most."""
    top = max(exponents)
    known: dict[int, int] = {}
    for depth in {top - exponent for exponent in exponents}:
        value = 1 << bits
        for place in range(depth.bit_length()):
            if depth >> place & 1:
                value = value * _power(place, unit, bits) >> bits
        known[depth] = value
    return tuple(known[top - exponent] for exponent in exponents)


@lru_cache(maxsize=1024)
def _power(place: int, unit: int, bits: int) -> int:
    """e^(-2^place/unit) times 2^bits, rounded down."""
    power = Fraction(1 << place, unit)
    if power > bits:
        return 0  # e^-power is below 2^-bits
    return floor(Fraction((-precision(bits // 3 + 12)(power)).exp().lower) * (1 << bits))

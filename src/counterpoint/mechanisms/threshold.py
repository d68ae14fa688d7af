"""Compare values with one noisy threshold: the machine that every sparse vector is, and how far off it gets.

One noise tau on the threshold is drawn at the start and never again; each ask compares its value, with fresh noise nu,
with the noisy threshold. It halts after its last hit, or after its last ask, if these are bounded. `sparse_vector` says
how large the two noises are, and why that is private; how far off comparisons get follows from their scales alone
(`least_alpha`).

>>> from counterpoint import AboveThreshold
>>> AboveThreshold(epsilon=1, threshold=100).error(0.99, asks=10)
28
"""

from abc import abstractmethod
from fractions import Fraction
from math import ceil, exp, expm1, floor, log, log1p
from typing import Annotated, Self

from msgspec.structs import replace

from counterpoint.coins.coins import Coins
from counterpoint.encoding import Plain, Tagged, Value
from counterpoint.errors import InvalidParameter, InvalidRequest
from counterpoint.mechanisms.laplace_sums import sum_within
from counterpoint.mechanisms.mechanism import Answer, Mechanism, State
from counterpoint.mechanisms.tails import may_fail
from counterpoint.numbers import Number
from counterpoint.numbers.exact import exact, whole
from counterpoint.numbers.parameters import Rational
from counterpoint.privacy.messages import Ask, Message
from counterpoint.privacy.secret import reveal


class Threshold(Tagged, Value, frozen=True):
    """The public part of an ask that is compared with another threshold, on the grid of its value.

    >>> Ask(Threshold("2.5"), private=3).public
    Threshold(2.5)
    """

    at: Annotated[Rational, "the threshold"]


class ThresholdState(State, Value, frozen=True):
    """The noise on the threshold, which stays the same to the end, and how many hits and asks are left (None: any)."""

    tau: int
    hits: int
    asks: int | None = None

    def after(self, *, hit: bool) -> "ThresholdState | None":
        """The state after one more ask; None after the last hit, and after the last ask."""
        hits = self.hits - 1 if hit else self.hits
        asks = self.asks if self.asks is None else self.asks - 1
        return None if hits == 0 or asks == 0 else ThresholdState(self.tau, hits, asks)


class NoisyThreshold(Mechanism):
    """Compares values with one noisy threshold until it has found its last hit."""

    __slots__ = ()
    threshold: Rational
    sensitivity: int | None

    @property
    def moves(self) -> int:
        """By how much a value moves at most between neighbours; 1 where that was left open and no source said it."""
        return self.sensitivity or 1

    def for_counts(self, moves: int) -> Self:
        """With this sensitivity, if none was given.

        >>> from counterpoint import SparseVector
        >>> SparseVector(1, 0).for_counts(20).sensitivity, SparseVector(1, 0, sensitivity=3).for_counts(20).sensitivity
        (20, 3)
        """
        if self.sensitivity is not None:
            return self
        return replace(self, sensitivity=moves)  # type: ignore[type-var] # each kind of it is a struct

    @property
    def most_asks(self) -> int | None:
        """How many asks are answered at most, where that is bounded."""
        return None

    @property
    @abstractmethod
    def hits(self) -> int:
        """How many values above the threshold are reported before it halts."""

    @abstractmethod
    def miss(self) -> Answer:
        """The answer to a miss."""

    @abstractmethod
    def hit(self, ask: Ask, above: int, coins: Coins) -> Answer:
        """The answer to a hit that is `above` the noisy threshold; nothing else in it may depend on the noise."""

    @property
    @abstractmethod
    def scales(self) -> tuple[Fraction, Fraction]:
        """The scale of the noise on the threshold, and of that on each value."""

    def accepts(self, message: object) -> bool:
        """An ask with a single private integer, no more sensitive than declared; its public part may be a threshold."""
        return (
            isinstance(message, Ask)
            and message.private is not None
            and message.private.width is None
            and message.sensitivity <= self.moves
            and (message.public is None or type(message.public) is int or isinstance(message.public, Threshold))
        )

    def public_part(self, grid: Fraction | None, /, **options: Number) -> Plain:
        """The threshold of one ask on the grid of its values, from units: `threshold=`, or that of the launch.

        >>> from counterpoint import SparseVector
        >>> SparseVector(1, threshold=10).public_part(Fraction(1, 100), threshold=2.5)
        Threshold(250)
        """
        if strange := sorted(options.keys() - {"threshold"}):
            raise InvalidRequest(f"{type(self).__name__} takes threshold=, not {', '.join(strange)}=")
        try:
            at = exact(options.get("threshold", self.threshold), "the threshold")
        except InvalidParameter as error:
            raise InvalidRequest(str(error)) from None
        return Threshold(at / (1 if grid is None else grid))

    def start(self, coins: Coins) -> State:
        """Draws the noise on the threshold, once and for all."""
        return ThresholdState(coins.discrete_laplace(self.scales[0]), self.hits, self.most_asks)

    def step(self, state: State, message: Message, coins: Coins) -> tuple[State | None, Answer]:
        """A hit if the value with its noise reaches the noisy threshold, else a miss; the last hit or ask halts."""
        assert isinstance(state, ThresholdState) and isinstance(message, Ask) and message.private is not None
        value = reveal(message.private)
        assert isinstance(value, int)
        # An integer is at or above a rational exactly if it is at or above the rational's ceiling. So `above >= 0` is
        # the comparison of the proof, v + nu >= t + tau, in integers.
        above = value + coins.discrete_laplace(self.scales[1]) - state.tau - ceil(self._threshold(message))
        if above < 0:  # a miss shows nothing more: how far below it was would cost as much as a hit
            return state.after(hit=False), self.miss()
        return state.after(hit=True), self.hit(message, above, coins)

    def _threshold(self, ask: Ask) -> Fraction | int:
        if isinstance(ask.public, Threshold):
            return ask.public.at
        return ask.public if isinstance(ask.public, int) else self.threshold

    def error(self, probability: Number, asks: int = 1) -> int:
        """The alpha such that, with this probability, all of the first `asks` answers are right up to alpha.

        A hit then has a value of at least threshold - alpha, a miss one below threshold + alpha, both on the grid of
        the values. Given tau, an answer is wrong by more with at most P[nu > alpha - |tau|], on whichever side of the
        threshold its value lies, even if it was chosen by what earlier answers say about tau; what all of them have is
        the mean of that over tau (theory, Composites). A single ask knows nothing of tau: P[nu - tau > alpha].

        >>> from counterpoint import SparseVector
        >>> SparseVector(epsilon=1, threshold=0).error(0.95, asks=100)
        27
        """
        fails, many = may_fail(probability), whole(asks, 1, "asks")
        if many == 1:
            return sum_within([(scale, Fraction(1), 1) for scale in self.scales], 2 * fails, gap=Fraction(1))
        return least_alpha(self.scales, fails, log_draws(self.scales, many), either=True)


Scales = tuple[Fraction, Fraction]
"""The scale of the noise on the threshold, and of that on each value."""

_CARE = 1e-9
"""By how much the logarithm of a chance is rounded up."""
_FAR = 10**15
_NEAR = Fraction(1, 10**100)
"""Noise of a smaller scale, whose inverse a float may not hold, is taken for noise of this one: both are 0."""


def log_draws(scales: Scales, draws: int) -> float:
    """The log of c for this number of draws of nu."""
    return log(draws) - log1p(exp(-float(1 / max(scales[1], _NEAR))))


def least_alpha(scales: Scales, fails: Fraction, log_factor: float, *, either: bool = False) -> int:
    """The least alpha by which comparisons go wrong with a chance of at most `fails`, by doubling and halving.

    A draw of scale s is m times one of scale s/m, but for m - 1 at most (`laplace_sums.py`). So scales too large for
    floats are divided by m: at alpha = m (alpha' + 3) - 3, nu - tau > alpha implies nu' - tau' > alpha' for theirs.

    Comparisons go wrong by the noise on the threshold and that on a value together. Let tau be the noise on the
    threshold, drawn once, and nu that of a value: nu >= y has the chance q^y/(1 + q) for y > 0, q = e^(-1/scale of nu).
    A comparison goes wrong by more than alpha, upward, if nu >= alpha + 1 + tau. So n of them do with at most E[f(alpha
    + 1 + tau)], where f(y) = min(1, c q^y) above 0 and else 1, c = n/(1 + q): three geometric series, over the tau at
    which f is 1, over those below 0 and over the others.

    If values may lie on either side of the threshold, and be chosen by earlier answers, which tell of tau, each goes
    wrong with at most P[nu >= alpha + 1 - |tau|], given tau: the same sums, with the tau below 0 twice. The bound by
    E[...] is taken over tau and nu together; the noises' own tails, each at its worst, would add up to 1.3 to 2 times
    as much.

    >>> scales = Fraction(2), Fraction(4)
    >>> least_alpha(scales, Fraction(1, 100), log_draws(scales, 10)), least_alpha(scales, Fraction(1, 100), 0.0)
    (26, 19)
    """
    if fails >= 1:
        return 0
    coarse = floor(max(scales) / _FAR) + 1
    finer = max(scales[0] / coarse, _NEAR), max(scales[1] / coarse, _NEAR)
    allowed = log(fails.numerator) - log(fails.denominator) - _CARE
    short, enough = -1, 0
    while log_chance(finer, enough, log_factor, either=either) > allowed:
        short, enough = enough, 2 * enough + 1
    while enough - short > 1:
        middle = (short + enough) // 2
        holds = log_chance(finer, middle, log_factor, either=either) <= allowed
        short, enough = (short, middle) if holds else (middle, enough)
    return coarse * (enough + 3) - 3


def log_chance(scales: Scales, alpha: int, log_factor: float, *, either: bool = False) -> float:
    """The log of E[f(alpha + 1 + tau)], or of E[f(alpha + 1 - |tau|)] for values on either side.

    >>> scales = Fraction(2), Fraction(3)
    >>> [round(exp(log_chance(scales, alpha, 1.0)), 4) for alpha in (3, 30)]
    [0.6879, 0.0002]
    >>> round(exp(log_chance(scales, 30, 1.0, either=True)), 4)
    0.0003
    """
    once, each = map(float, scales)
    first = max(1, -int(-log_factor * each // 1))  # from this y on f is below 1
    edge = first - alpha - 1  # tau from here on
    if edge > 0:
        return 0.0
    shrunk = exp(-1 / once)
    certain = (edge - 1) / once - log1p(shrunk)
    density = log(-expm1(-1 / once)) - log1p(shrunk)
    middle = log_factor - (alpha + 1) / each + density  # at tau = 0
    negative = [middle + _log_series(1 / each - 1 / once, -edge)] if edge else []
    if either:
        return min(0.0, _log_sum([log(2) + term for term in (certain, *negative)] + [middle]))
    return _log_sum([certain, *negative, middle - log(-expm1(-1 / once - 1 / each))])


def _log_sum(logs: list[float]) -> float:
    """The log of a sum whose terms have these logs."""
    largest = max(logs)
    return largest + log(sum(exp(each - largest) for each in logs))


def _log_series(rate: float, count: int) -> float:
    """Log of the sum of e^(rate i) over i = 1, ..., count.

    >>> round(exp(_log_series(0.5, 2)), 4), round(exp(_log_series(-0.5, 2)), 4), exp(_log_series(0.0, 1))
    (4.367, 0.9744, 1.0)
    """
    if rate == 0:
        return log(count)
    slope = abs(rate)
    ends = rate * count if rate > 0 else rate
    return ends + log(-expm1(-slope * count)) - log(-expm1(-slope))

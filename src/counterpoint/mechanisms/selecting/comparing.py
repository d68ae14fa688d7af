"""Comparing values with one noisy threshold: the machine that every sparse vector is.

One noise tau on the threshold is drawn at the start and never again; each ask compares its value, with fresh noise nu,
with the noisy threshold. It halts after its last hit, or after its last ask, if these are bounded. How large the two
noises are, and why that is private, is for `sparse_vector` to say; what a comparison gets wrong follows from their
scales alone.

>>> from counterpoint import AboveThreshold
>>> AboveThreshold(epsilon=1, threshold=100).error(0.99, asks=10)
28
"""

from abc import abstractmethod
from fractions import Fraction
from math import ceil
from typing import Annotated, Self

from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from counterpoint.encoding import Plain, Tagged, Value
from counterpoint.errors import InvalidParameter, InvalidRequest
from counterpoint.mechanisms.counting.noise.laplace_tails import sum_within
from counterpoint.mechanisms.mechanism import Answer, Mechanism, State
from counterpoint.mechanisms.selecting.comparison_tails import least_alpha, log_draws
from counterpoint.mechanisms.tails import may_fail
from counterpoint.numbers import Number
from counterpoint.numbers.exact import exact, whole
from counterpoint.numbers.parameters import Rational
from counterpoint.privacy.messages import Ask, Message
from counterpoint.privacy.secret import reveal
from counterpoint.randomness.coins import Coins


class Threshold(Tagged, Value, frozen=True):
    """The public part of an ask that is compared with another threshold, on the grid of its value.

    >>> Ask(Threshold("2.5"), private=3).public
    Threshold(2.5)
    """

    at: Annotated[Rational, "the threshold"]


class Watching(State, Value, frozen=True):
    """The noise on the threshold, which stays the same to the end, and how many hits are left.

    Also how many asks are, where they are counted; else that field is not written.
    """

    tau: int
    hits: int
    asks: int | UnsetType = UNSET

    def after(self, *, hit: bool) -> "Watching | None":
        """The state after one more ask; None after the last hit, and after the last ask."""
        hits = self.hits - 1 if hit else self.hits
        asks = self.asks if self.asks is UNSET else self.asks - 1
        return None if hits == 0 or asks == 0 else Watching(self.tau, hits, asks)


class Comparing(Mechanism):
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
    def most_asks(self) -> int | UnsetType:
        """How many asks are answered at most, where that is bounded."""
        return UNSET

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
        return Watching(coins.discrete_laplace(self.scales[0]), self.hits, self.most_asks)

    def step(self, state: State, message: Message, coins: Coins) -> tuple[State | None, Answer]:
        """A hit if the value with its noise reaches the noisy threshold, else a miss; the last hit or ask halts."""
        assert isinstance(state, Watching) and isinstance(message, Ask) and message.private is not None
        value = reveal(message.private)
        assert isinstance(value, int)
        # An integer is at or above a rational exactly if it is at or above the rational's ceiling.
        above = value + coins.discrete_laplace(self.scales[1]) - state.tau - ceil(self._threshold(message))
        if above < 0:
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
        the mean of that over tau (`comparison_tails`). A single ask knows nothing of tau: P[nu - tau > alpha].

        >>> from counterpoint import SparseVector
        >>> SparseVector(epsilon=1, threshold=0).error(0.95, asks=100)
        27
        """
        fails, many = may_fail(probability), whole(asks, 1, "asks")
        if many == 1:
            return sum_within([(scale, Fraction(1), 1) for scale in self.scales], 2 * fails, gap=Fraction(1))
        return least_alpha(self.scales, fails, log_draws(self.scales, many), either=True)

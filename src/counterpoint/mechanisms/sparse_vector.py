"""Sparse vector: which of endlessly many values reach a threshold, paid for only by the few that do (Lyu, Su, Li 2017).

One noise tau on the threshold is drawn at the start and never again; each ask compares its value, with fresh noise nu,
with the noisy threshold, and says True for a hit. After `hits` hits it halts; misses are free, however many.

>>> from counterpoint import Ask, SeededCoins
>>> above, coins = SparseVector(epsilon=1, threshold=1000, hits=2), SeededCoins(7)
>>> state = above.start(coins)
>>> state, low = above.step(state, Ask(private=0), coins)
>>> state, high = above.step(state, Ask(private=2000), coins)
>>> low, high, state is None
(False, True, False)

Why it is private. Let neighbouring values differ by at most D (`sensitivity`), tau have scale D/e1 and nu scale 2cD/e2
(c = `hits`). Write a run of world 0 into world 1 by moving tau to tau + D: its odds change by at most e^e1. A miss,
v + nu < t + tau, stays a miss with the same nu, since v' <= v + D: misses cost nothing. A hit, v + nu >= t + tau, stays
one if nu moves by v - v' + D, which is 0 to 2D: its odds change by at most e^(e2/c), and there are at most c hits. So
every transcript's probability changes by at most e^(e1 + e2). All moves are integers, so the proof is one for integer
noise, with >= as with >; and a transcript fixes the asks that led to it, so it covers adaptive ones.
"""

from abc import abstractmethod
from fractions import Fraction
from functools import lru_cache
from math import ceil
from typing import TYPE_CHECKING

from msgspec.structs import force_setattr

from counterpoint.encoding import Plain, Tagged, Value
from counterpoint.errors import InvalidParameter, InvalidRequest
from counterpoint.mechanisms.mechanism import Answer, Mechanism, State
from counterpoint.numbers import Number, precision
from counterpoint.numbers.exact import exact, positive, whole
from counterpoint.privacy.claims import Claim, claim
from counterpoint.privacy.losses import PureDP
from counterpoint.privacy.messages import Ask, Gap, Message
from counterpoint.privacy.relations import Progress, Relation, every_step
from counterpoint.privacy.secret import Secret, reveal
from counterpoint.randomness.coins import Coins


class Threshold(Tagged, Value, frozen=True):
    """The public part of an ask that is compared with another threshold, on the grid of its value.

    >>> Ask(Threshold("2.5"), private=3).public
    Threshold(at=Fraction(5, 2))
    """

    at: Fraction

    if TYPE_CHECKING:

        def __init__(self, at: Number) -> None: ...

    def __post_init__(self) -> None:
        """Read the threshold exactly."""
        force_setattr(self, "at", exact(self.at, "the threshold"))


class Watching(State, Value, frozen=True):
    """The noise on the threshold, which stays the same to the end, and how many hits are left."""

    tau: int
    hits: int


class Comparing(Mechanism):
    """Compares values with one noisy threshold until it has found its last hit."""

    __slots__ = ()
    threshold: Fraction
    sensitivity: int

    @property
    @abstractmethod
    def hits(self) -> int:
        """How many values above the threshold are reported before it halts."""

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
            and message.sensitivity <= self.sensitivity
            and (message.public is None or type(message.public) is int or isinstance(message.public, Threshold))
        )

    def public_part(self, grid: Fraction | None, **options: Number) -> Plain:
        """The threshold of one ask on the grid of its values, from units: `threshold=`, or that of the launch.

        >>> SparseVector(1, threshold=10).public_part(Fraction(1, 100), threshold=2.5)
        Threshold(at=Fraction(250, 1))
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
        return Watching(coins.discrete_laplace(self.scales[0]), self.hits)

    def step(self, state: State, message: Message, coins: Coins) -> tuple[State | None, Answer]:
        """True if the value with its noise reaches the noisy threshold; the last hit halts."""
        assert isinstance(state, Watching) and isinstance(message, Ask) and message.private is not None
        value = reveal(message.private)
        assert isinstance(value, int)
        # An integer is at or above a rational exactly if it is at or above the rational's ceiling.
        if value + coins.discrete_laplace(self.scales[1]) - state.tau < ceil(self._threshold(message)):
            return state, False
        return (Watching(state.tau, state.hits - 1) if state.hits > 1 else None), True

    def _threshold(self, ask: Ask) -> Fraction | int:
        if isinstance(ask.public, Threshold):
            return ask.public.at
        return ask.public if isinstance(ask.public, int) else self.threshold

    def error(self, probability: Number, asks: int = 1) -> int:
        """The alpha such that, with this probability, all of the first `asks` answers are right up to alpha.

        A hit then has a value of at least threshold - alpha, a miss one below threshold + alpha, both on the grid of
        the values. Union bound: alpha = x + y, where |tau| > x has probability at most b1, and each of the `asks`
        noises goes beyond y, on the side that would make its answer wrong, with probability at most b2/asks. What may
        fail is split as b1 : b2 like the two scales, which makes x + y least.

        >>> SparseVector(epsilon=1, threshold=0).error(0.95, asks=100)
        34
        """
        fails = 1 - exact(probability, "the probability")
        if not 0 < fails <= 1:
            raise InvalidParameter("the probability must be at least 0 and below 1: noise has no largest value")
        once, each = self.scales
        first = fails * once / (once + each)
        return laplace_beyond(once, first / 2) + laplace_beyond(each, (fails - first) / whole(asks, 1, "asks"))


class SparseVector(Comparing, Value, frozen=True):
    """Says of each value whether it reaches the threshold, with noise, until it has said True `hits` times.

    PureDP(epsilon) if every ask moves by at most its sensitivity; one that is more sensitive than `sensitivity` is not
    accepted. epsilon = e1 + e2 exactly, with e1 : e2 = 1 : (2 hits)^(2/3) rounded to three places (any split is
    private; this one makes the noise of a comparison least). The threshold is in the units of the requests; without
    units (`Ask` by `Ask`) that is the grid of the values.

    `monotone=True` halves the noise on the values, but asks for more: between neighbours all values move the same way
    (`OneWay`), as counts do when one unit is added or removed. The proof is then: going up, move tau by D, and a hit by
    v - v' + D, now at most D; going down, leave tau where it is, and move a hit by v - v', at most D.

    >>> SparseVector(epsilon=0.3, threshold=1000, hits=3).claim.loss
    PureDP(0.3)
    >>> SparseVector(1, 0, monotone=True).scales, SparseVector(1, 0, monotone=True).claim.relation
    ((Fraction(2, 1), Fraction(2, 1)), OneWay())
    """

    epsilon: Fraction
    threshold: Fraction
    hits: int = 1
    sensitivity: int = 1
    monotone: bool = False

    if TYPE_CHECKING:

        def __init__(
            self, epsilon: Number, threshold: Number, hits: int = 1, sensitivity: int = 1, monotone: bool = False
        ) -> None: ...

    def __post_init__(self) -> None:
        """Read the parameters exactly."""
        force_setattr(self, "epsilon", positive(self.epsilon, "epsilon"))
        force_setattr(self, "threshold", exact(self.threshold, "the threshold"))
        force_setattr(self, "hits", whole(self.hits, 1, "hits"))
        force_setattr(self, "sensitivity", whole(self.sensitivity, 1, "the sensitivity"))
        if not isinstance(self.monotone, bool):
            raise InvalidParameter("monotone is True or False")

    @property
    def claim(self) -> Claim:
        """PureDP(epsilon), whatever the asks; monotone: as long as all move the same way."""
        relation = OneWay() if self.monotone else every_step()
        by = f"sparse vector, at most {self.hits} hits (Lyu, Su, Li 2017, Alg 7), integer noise, e1 + e2 = epsilon"
        return claim(PureDP(self.epsilon), relation, by)

    @property
    def scales(self) -> tuple[Fraction, Fraction]:
        """D/e1, and 2cD/e2 (cD/e2 if monotone)."""
        moves = self.hits if self.monotone else 2 * self.hits
        first = self.epsilon / (1 + _best_ratio(moves))
        return self.sensitivity / first, moves * self.sensitivity / (self.epsilon - first)


class AboveThreshold(Comparing, Value, frozen=True):
    """SVT of S4 Algorithm 3: one hit, the noise split evenly; PureDP(epsilon), in total.

    S4's SVT(e) has noise Lap(1/e) and Lap(2/e) and costs 2e, which is attained (S4 Lemma 7.4, ERRATA S4-E15). Here
    epsilon is what it costs: SVT(e) is `AboveThreshold(2 * e)`, and S4's SVT(epsilon/6) is `AboveThreshold(epsilon/3)`.

    >>> AboveThreshold(epsilon=1, threshold=10).scales, AboveThreshold(epsilon=1, threshold=10).claim.loss
    ((Fraction(2, 1), Fraction(4, 1)), PureDP(1))
    """

    epsilon: Fraction
    threshold: Fraction
    sensitivity: int = 1

    if TYPE_CHECKING:

        def __init__(self, epsilon: Number, threshold: Number, sensitivity: int = 1) -> None: ...

    def __post_init__(self) -> None:
        """Read the parameters exactly."""
        force_setattr(self, "epsilon", positive(self.epsilon, "epsilon"))
        force_setattr(self, "threshold", exact(self.threshold, "the threshold"))
        force_setattr(self, "sensitivity", whole(self.sensitivity, 1, "the sensitivity"))

    @property
    def hits(self) -> int:
        """One."""
        return 1

    @property
    def claim(self) -> Claim:
        """PureDP(epsilon), whatever the asks."""
        return claim(PureDP(self.epsilon), every_step(), "S4 Lemma 7.4: SVT(epsilon/2) of S4 Alg 3, integer noise")

    @property
    def scales(self) -> tuple[Fraction, Fraction]:
        """1/e and 2/e with e = epsilon/2, times the sensitivity."""
        return 2 * self.sensitivity / self.epsilon, 4 * self.sensitivity / self.epsilon


class OneWay(Relation, Value, frozen=True):
    """Every ask may differ, by at most its own sensitivity, but all that differ move the same way.

    >>> up, down = (Ask(private=0), Ask(private=1)), (Ask(private=1), Ask(private=0))
    >>> OneWay().valid([up, up]), OneWay().valid([down, down]), OneWay().valid([up, down])
    (True, True, False)
    """

    def begin(self) -> Progress:
        """Nothing has moved: 0; then 1 if everything moves up, -1 if everything moves down."""
        return 0

    def _advance(self, progress: Progress, left: Message, right: Message, distance: Gap) -> Progress:
        if distance.l1 == 0:
            return progress
        if not every_step().valid([(left, right)]):
            return None
        way = _way(left.private, right.private)
        return way if progress in (0, way) else None

    def within(self, other: Relation) -> bool:
        """In itself, and where every step may differ."""
        return isinstance(other, OneWay) or every_step().within(other)


def _way(left: Secret | None, right: Secret | None) -> int | None:
    """1 if no integer is smaller on the right, -1 if none is larger, None if some are and some are."""
    assert left is not None and right is not None
    change = reveal(right - left)
    steps = change if isinstance(change, tuple) else (change,)
    return 1 if min(steps) >= 0 else -1 if max(steps) <= 0 else None


@lru_cache(maxsize=256)
def _best_ratio(moves: int) -> Fraction:
    """e2/e1 = moves^(2/3), to three places: where the variance (D/e1)^2 + (moves D/e2)^2 of a comparison is least."""
    root = precision(30)(moves) ** Fraction(2, 3)
    return Fraction(round(Fraction(root.lower) * 1000), 1000)


def laplace_beyond(scale: Fraction, chance: Fraction) -> int:
    """The least m such that discrete Laplace noise z > m has at most this chance: q^(m+1)/(1+q), q = e^(-1/scale)."""
    p = precision(40)
    tail = -(((-p(1 / scale)).exp() + 1) * chance).log() * scale
    return max(0, ceil(tail.upper) - 1)

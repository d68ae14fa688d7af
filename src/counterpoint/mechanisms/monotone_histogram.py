"""A monotone function of a histogram that grows for ever, such as its largest bar (S4 Algorithm 4, adaptive inputs).

The histogram itself is counted only now and then: a sparse vector watches the function of (last noisy histogram +
exact sums since), and when that has grown by about gamma, all counters are updated and read, and a new sparse vector
starts from what they say. So the counters' noise depends on how far the function gets, not on how long the stream is.

>>> from counterpoint import Ask, SeededCoins, Update
>>> busiest, coins = MonotoneHistogram(epsilon=2, query=max_of, dimensions=3), SeededCoins(5)
>>> state = busiest.start(coins)
>>> for _ in range(2000):
...     state, _ = busiest.step(state, Update((1, 0, 1)), coins)
>>> state, answer = busiest.step(state, Ask(), coins)
>>> abs(answer - 2000) <= busiest.error(0.999, t=2000, hits=30)
True
>>> busiest.claim.loss
PureDP(2)

The printed text is followed as corrected in ERRATA S4-E14: a new sparse vector starts from the current noisy histogram,
the output is the function of it, and the interval's number goes up before gamma is read again. Thresholds are kept as
Thresh = base + gamma(t, j): then a hit that is confirmed makes Thresh the new base, and nothing else moves the base.
"""

from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from math import ceil
from typing import TYPE_CHECKING

from msgspec.structs import force_setattr

from counterpoint.encoding import Tagged, Value
from counterpoint.errors import InvalidParameter
from counterpoint.mechanisms.additive import Laplace
from counterpoint.mechanisms.composite import Composite, Context, Own, Part
from counterpoint.mechanisms.counters import Counter
from counterpoint.mechanisms.mechanism import Answer, Mechanism, State
from counterpoint.mechanisms.sparse_vector import AboveThreshold
from counterpoint.numbers import Number, precision
from counterpoint.numbers.exact import exact, positive, probability, whole
from counterpoint.privacy.claims import Claim, claim
from counterpoint.privacy.losses import PureDP
from counterpoint.privacy.messages import Ask, Message, Update
from counterpoint.privacy.relations import Relation, Steps, every_step
from counterpoint.privacy.secret import Secret, reveal
from counterpoint.randomness.coins import Coins

_QUERIES: dict[str, Callable[[list[int], int], int]] = {
    "max": lambda rising, _: rising[-1],
    "min": lambda rising, _: rising[0],
    "median": lambda rising, _: rising[(len(rising) - 1) // 2],
    "largest": lambda rising, rank: rising[-min(rank, len(rising))],
}


class MonotoneQuery(Tagged, Value, frozen=True):
    """A public function of a histogram that never falls when a bar grows, and moves by at most 1 when all bars do.

    These are "max", "min", "median" (the lower one), and "largest", the bar of a rank: order statistics, all of which
    qualify; a sum or a mean of the bars does not, or not with this noise.

    >>> MonotoneQuery("largest", rank=2)((3, 9, -4)), max_of((3, 9, -4))
    (3, 9)
    """

    name: str
    rank: int = 1

    def __post_init__(self) -> None:
        """Only what is known to be monotone and 1-sensitive."""
        if self.name not in _QUERIES:
            raise InvalidParameter(f"a monotone query is one of {', '.join(_QUERIES)}, not {self.name!r}")
        force_setattr(self, "rank", whole(self.rank, 1, "the rank"))

    def __call__(self, histogram: tuple[int, ...]) -> int:
        """Its value: total on all vectors of integers, also negative ones."""
        return _QUERIES[self.name](sorted(histogram), self.rank)


max_of = MonotoneQuery("max")
"""The largest bar."""


class IntervalCount(State, Value, frozen=True):
    """The exact total, and the state of a counter that supplies the noise."""

    total: Secret
    noise: State


class IntervalCounter(Mechanism, Value, frozen=True):
    """The noisy running total of items of any size, of which one may move by at most 1; PureDP(epsilon).

    A `Counter` brings its items into a range, and the sums of intervals have none: only their change is bounded. But
    its answers are the exact count plus noises that depend on the times of items and asks alone. So a counter of items
    that are all 0 says just those noises, which are added to the exact total here. Its proof (see there) shifts the
    noises by the change d <= 1 of one item and holds as it stands, since it never uses how large the items are.
    """

    epsilon: Fraction

    if TYPE_CHECKING:

        def __init__(self, epsilon: Number) -> None: ...

    def __post_init__(self) -> None:
        """Read epsilon exactly."""
        force_setattr(self, "epsilon", positive(self.epsilon, "epsilon"))

    @property
    def _noise(self) -> Counter:
        return Counter(self.epsilon)

    @property
    def claim(self) -> Claim:
        """PureDP(epsilon) if at most one update differs, by at most 1."""
        by = "the noises of a counter, shifted by the change of one item of any size"
        return claim(PureDP(self.epsilon), Steps(updates=1, bound=1), by, self._noise.claim.certificate)

    def accepts(self, message: object) -> bool:
        """What a counter accepts."""
        return self._noise.accepts(message)

    def start(self, coins: Coins) -> State:
        """Nothing has been counted."""
        return IntervalCount(Secret(0), self._noise.start(coins))

    def step(self, state: State, message: Message, coins: Coins) -> tuple[State | None, Answer]:
        """Take an item, or tell the noisy total."""
        assert isinstance(state, IntervalCount)
        total, silent = state.total, message
        if isinstance(message, Update):
            total, silent = total + message.private, Update(0)
        after, noise = self._noise.step(state.noise, silent, coins)
        assert after is not None  # a counter without a horizon does not halt
        exact_total = reveal(total)
        assert isinstance(exact_total, int)
        return IntervalCount(total, after), None if noise is None else exact_total + noise


class Interval(Own, Value, frozen=True):
    """How many updates and hits there were, the base of the threshold, the noisy histogram, and the sums since."""

    time: int
    hits: int
    base: int
    noisy: tuple[int, ...]
    since: Secret


class MonotoneHistogram(Composite, Value, frozen=True):
    """An order statistic of d running counts, at every time; PureDP(epsilon), derived from three parts.

    An update brings a vector of 0 and 1 (others are brought there), of which a neighbour changes one in at most
    `diameter` coordinates: all of them unless declared otherwise, 2 for a stream of one-hot vectors. Each part has a
    third of epsilon: the sparse vectors, and the Laplace checks, of which the changed step reaches one (k = 1, S4 Cor
    5.5; the function moves by at most 1 from there to the end of the interval, and then the sums start again); and the
    d counters, of which it reaches `diameter` many in one item, by 1.

    Privacy does not depend on gamma and xi, so `scale` may tune them: at 1 they are those of the proof of accuracy,
    with failure probability `beta`; smaller ones read the counters more often. Where the function stays below the
    error, an answer of 0 is better than this; and with few coordinates a `Counter` for each may be.

    >>> histogram = MonotoneHistogram(epsilon=1, query=max_of, dimensions=1000, diameter=2)
    >>> [(part.name, part.loss, part.sparse) for part in histogram.structure]
    [('above', PureDP(1/3), 1), ('check', PureDP(1/3), 1), ('counters', PureDP(1/6), 2)]
    """

    epsilon: Fraction
    query: MonotoneQuery
    dimensions: int
    diameter: int | None = None
    beta: Fraction = Fraction(1, 20)
    scale: Fraction = Fraction(1, 4)

    if TYPE_CHECKING:

        def __init__(
            self,
            epsilon: Number,
            query: MonotoneQuery,
            dimensions: int,
            diameter: int | None = None,
            *,
            beta: Number = Fraction(1, 20),
            scale: Number = Fraction(1, 4),
        ) -> None: ...

    def __post_init__(self) -> None:
        """Read the parameters exactly."""
        force_setattr(self, "epsilon", positive(self.epsilon, "epsilon"))
        if not isinstance(self.query, MonotoneQuery):
            raise InvalidParameter("the query is a MonotoneQuery, such as max_of")
        width = whole(self.dimensions, 1, "dimensions")
        reach = width if self.diameter is None else min(width, whole(self.diameter, 1, "the diameter"))
        force_setattr(self, "dimensions", width)
        force_setattr(self, "diameter", reach)
        force_setattr(self, "beta", _chance(self.beta, "beta"))
        force_setattr(self, "scale", positive(self.scale, "the scale"))

    @property
    def _third(self) -> Fraction:
        return self.epsilon / 3

    @property
    def _each(self) -> Fraction:
        """The epsilon of one counter."""
        assert self.diameter is not None
        return self._third / self.diameter

    @property
    def structure(self) -> tuple[Part, ...]:
        """Sparse vectors, checks and counters."""
        return (
            Part("above", PureDP(self._third), every_step(), sparse=1),
            Part("check", PureDP(self._third), every_step(), sparse=1),
            Part("counters", PureDP(self._each), Steps(updates=1, bound=1), sparse=self.diameter),
        )

    @property
    def relation(self) -> Relation:
        """One update may differ, by at most the diameter."""
        return Steps(updates=1, bound=self.diameter)

    def accepts(self, message: object) -> bool:
        """An update with a vector of the declared width, or an ask that carries nothing."""
        if isinstance(message, Update):
            return message.private.width == self.dimensions
        return isinstance(message, Ask) and message.private is None and message.public is None

    def begin(self, context: Context) -> Own:
        """A counter for each coordinate, and the first sparse vector."""
        for at in range(self.dimensions):
            context.launch("counters", IntervalCounter(self._each), at)
        empty = (0,) * self.dimensions
        return self._watching(context, Interval(0, 0, self.query(empty), empty, Secret(empty)))

    def react(self, context: Context, own: Own, message: Message) -> tuple[Own | None, Answer]:
        """Take a vector, or tell the function of the last noisy histogram."""
        assert isinstance(own, Interval)
        if isinstance(message, Ask):
            return own, self.query(own.noisy)
        time, since = own.time + 1, own.since + message.private.clamp(0, 1)
        value, threshold = (since + own.noisy).map(self.query), own.base + self.gamma(time, own.hits + 1)
        if not context.ask("above", value, threshold):
            return Interval(time, own.hits, own.base, own.noisy, since), None
        base = threshold if self._confirmed(context, value, threshold - self.xi(time, own.hits + 1)) else own.base
        noisy = self._counted(context, since)
        return self._watching(context, Interval(time, own.hits + 1, base, noisy, since * 0)), None

    def _watching(self, context: Context, own: Interval) -> Interval:
        context.launch("above", AboveThreshold(self._third, own.base))
        return own

    def _confirmed(self, context: Context, value: Secret, least: int) -> bool:
        context.launch("check", Laplace(self._third))
        confirmed: bool = context.ask("check", value) >= least
        return confirmed

    def _counted(self, context: Context, since: Secret) -> tuple[int, ...]:
        """The noisy histogram with the sums of the interval that ends; a bar below 0 is read as 0."""
        for at in range(self.dimensions):
            context.update("counters", since.map(lambda sums, at=at: sums[at]), at)
        return tuple(max(0, context.ask("counters", at=at)) for at in range(self.dimensions))

    def gamma(self, t: int, j: int) -> int:
        """How far above its base the threshold is at time t, in interval j: scale * (2A + 2C + 2)."""
        comparing, counting, _ = self._noises(self.beta, t, j)
        return ceil(self.scale * (2 * comparing + 2 * counting + 2))

    def xi(self, t: int, j: int) -> int:
        """How far below the threshold the check may find the value: scale * (A + M)."""
        comparing, _, checking = self._noises(self.beta, t, j)
        return ceil(self.scale * (comparing + checking))

    def _noises(self, beta: Fraction, t: int, j: int) -> tuple[int, int, int]:
        """A(t, j), C(j), M(j): what the noises of comparisons, counters and checks never exceed, but for beta."""
        once, each = AboveThreshold(self._third, 0).scales
        comparing = ceil(once * _log(beta, j)) + ceil(each * _log(beta, t))
        return comparing, _counting(self._each, self.dimensions, beta, _doubled(j)), ceil(_log(beta, j) / self._third)

    def error(self, probability: Number, t: int, hits: int) -> int:
        """How far answers are off at most, all until time t at once, with this probability, given the hits so far.

        gamma + 2A + 3C, which is 4A + 5C + 2 at scale 1: the threshold is at most A + 2C + gamma above what the last
        histogram said, and the function cannot have passed the threshold by A + C unseen.

        >>> MonotoneHistogram(epsilon=1, query=max_of, dimensions=2).error(0.95, t=1000, hits=3)
        1487
        """
        if whole(t, 0, "t") == 0:
            return 0
        fails, j = _chance(1 - exact(probability, "the probability"), "1 - the probability"), whole(hits, 0, "hits") + 1
        comparing, counting, _ = self._noises(fails, t, j)
        return self.gamma(t, j) + 2 * comparing + 3 * counting


_ABOVE = Fraction("6.5797363")
"""Just above 4 pi^2 / 6: so the sum over i of beta / (_ABOVE i^2) is below beta/4, for each of four kinds of noise."""


@lru_cache(maxsize=4096)
def _log(beta: Fraction, i: int) -> Fraction:
    """ln(4 pi^2 i^2 / (6 beta)), rounded up.

    Discrete Laplace noise of this scale goes beyond m = ceil(scale * this) with probability 2 q^(m+1)/(1+q) <= q^m,
    q = e^(-1/scale): at most 6 beta / (4 pi^2 i^2).
    """
    return Fraction(precision(25)(_ABOVE * i * i / beta).log().upper)


@lru_cache(maxsize=1024)
def _counting(epsilon: Fraction, dimensions: int, beta: Fraction, most: int) -> int:
    """What no counter is off by after 1 to `most` updates, each time but for beta / (_ABOVE most^2)."""
    sure = 1 - beta / (_ABOVE * most * most * dimensions)
    return max(Counter(epsilon).error(sure, t) for t in range(1, most + 1))


def _doubled(j: int) -> int:
    """The next power of two: a bound that holds until there rises in few steps and is seldom computed."""
    power: int = 1 << (j - 1).bit_length()
    return power


def _chance(value: Number, name: str) -> Fraction:
    chance = probability(value, name)
    if not 0 < chance <= 1:
        raise InvalidParameter(f"{name} must be above 0: noise has no largest value")
    return chance

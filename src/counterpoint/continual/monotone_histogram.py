"""A monotone function of a histogram that grows for ever, such as its largest bar.

The mechanism is that of Henzinger et al. 2023; Henzinger et al. 2024, Alg 4, prove it for adaptive inputs.

The histogram itself is counted only now and then: a sparse vector watches the function of (last noisy histogram +
exact sums since), and when that has grown by about gamma, the totals are updated and read, and a new sparse vector
starts from what they say. So the totals' noise depends on how far the function gets, not on how long the stream is.

>>> from counterpoint.coins import SeededCoins
>>> from counterpoint.mechanisms import Ask, Update
>>> from counterpoint.continual import max_of
>>> busiest, coins = MonotoneHistogram(epsilon=2, query=max_of, dimensions=3), SeededCoins(5)
>>> state = busiest.start(coins)
>>> for _ in range(2000):
...     state, _ = busiest.step(state, Update((1, 0, 1)), coins)
>>> state, answer = busiest.step(state, Ask(), coins)
>>> abs(answer - 2000) <= busiest.error(0.999, t=2000, hits=30)
True
>>> busiest.claim.loss
PureDP(2)

The printed text is followed as corrected in errata, Henzinger E14: a new sparse vector starts from the current noisy
histogram, the output is the function of it, and the interval's number goes up before gamma is read again. Thresholds
are kept as Thresh = base + gamma(t, j): then a hit that is confirmed makes Thresh the new base, and nothing else moves
the base.
"""

from fractions import Fraction
from functools import lru_cache
from math import ceil
from typing import Annotated

from msgspec.structs import force_setattr, replace

from counterpoint.continual.counter import declared
from counterpoint.continual.histogram_error import (
    DigitTreeCounter,
    Heights,
    HistogramNoises,
    best_totals,
    counting_error,
    doubled,
    each_delta,
    fits_floats,
    histogram_error,
    last,
    limit,
)
from counterpoint.continual.monotone_queries import MonotoneQuery
from counterpoint.encoding import Value
from counterpoint.errors import InvalidParameter
from counterpoint.measures import ApproxDP, PureDP
from counterpoint.mechanisms.additive import Laplace
from counterpoint.mechanisms.composite import Composite, Own
from counterpoint.mechanisms.composite_parts import Context, Part
from counterpoint.mechanisms.mechanism import Answer
from counterpoint.mechanisms.sparse_vector import AboveThreshold
from counterpoint.mechanisms.tails import may_fail
from counterpoint.numbers import Number
from counterpoint.numbers.exact import whole
from counterpoint.numbers.parameters import Positive, PositiveInt, Probability, default
from counterpoint.privacy.claims import Claim, claim
from counterpoint.privacy.messages import Ask, Message, Update
from counterpoint.privacy.relations import Relation, Steps, every_step
from counterpoint.privacy.secret import Secret

_CELLS = 2**12
"""Into how many cells of a grid the paper's bound is divided, about: the laws of noises are on that grid."""


class HistogramInterval(Own, Value, frozen=True):
    """How many updates and hits there were, the base of the threshold, the noisy histogram, and the sums since."""

    time: int
    hits: int
    base: int
    noisy: tuple[int, ...]
    since: Secret


class MonotoneHistogram(Composite, Value, frozen=True):
    """A monotone function of d running counts, at every time; PureDP(epsilon), or ApproxDP(epsilon, delta).

    An update brings a vector of 0 and 1 (others are brought there), of which a neighbour changes one in at most
    `diameter` coordinates: all of them unless declared otherwise, 2 for a stream of one-hot vectors. Each of three
    parts has a third of epsilon: the sparse vectors, and the Laplace checks, of which the changed step reaches one (k =
    1; Henzinger et al. 2024, Cor 5.5; the function moves by at most 1 from there to the end of the interval, and then
    the sums start again); and the totals, a vector counter (Henzinger et al.'s d-counter), which it reaches in one
    item. With a delta, which is all theirs (Henzinger et al. 2024, sec. 7.2), the totals may have Gaussian noise, by
    the L2 norm: they get it where that is less.

    Where `per_unit` steps of one unit differ, two of them may fall into one interval, whose function then moves by 2:
    that is no neighbour of any part. But all the steps together are a chain of neighbours that differ in one each, so
    that group privacy holds, also for an adversary who reads answers on the way: so each has 1/per_unit of epsilon.

    `dimensions`, `diameter` and `per_unit` may be left to the stream that it is launched on. Privacy does not depend on
    gamma and xi, so `scale` may tune them: at 1 they are those of the proof of accuracy, with failure probability
    `beta`; smaller ones read the counters more often. Where the function stays below the error, an answer of 0 is
    better than this; and with few coordinates a `Counter` for each may be.

    >>> from counterpoint.continual import max_of
    >>> histogram = MonotoneHistogram(epsilon=1, query=max_of, dimensions=1000, diameter=2)
    >>> [(part.name, part.loss, part.sparse) for part in histogram.structure]
    [('above', PureDP(1/3), 1), ('check', PureDP(1/3), 1), ('totals', PureDP(1/3), None)]
    >>> MonotoneHistogram(epsilon=1, query=max_of, dimensions=1000, delta=1e-6).claim.loss
    ApproxDP(1, 1e-6)
    >>> MonotoneHistogram(epsilon=1, query=max_of, dimensions=1000, per_unit=5).claim.relation
    Steps(updates=5, bound=1000)
    """

    epsilon: Positive
    query: MonotoneQuery
    dimensions: PositiveInt | None = None
    diameter: Annotated[PositiveInt | None, "the diameter"] = None
    delta: Probability = default(Fraction(0))
    beta: Probability = default(Fraction(1, 20))
    scale: Annotated[Positive, "the scale"] = default(Fraction(1, 4))
    per_unit: PositiveInt | None = None

    def __post_init__(self) -> None:
        """Check the parameters; a diameter is at most the number of dimensions."""
        if not isinstance(self.query, MonotoneQuery):
            raise InvalidParameter("query must be a MonotoneQuery, such as max_of")
        if self.delta == 1:
            raise InvalidParameter("delta must be below 1: at 1 nothing is promised")
        if self.beta == 0:
            raise InvalidParameter("beta must be above 0: noise has no largest value")
        if self.dimensions is not None:
            force_setattr(self, "diameter", min(self.diameter or self.dimensions, self.dimensions))

    def fitted(self, relation: Relation, dimensions: int | None) -> "MonotoneHistogram":
        """With the dimensions and the diameter of a stream, and how many items of a unit there are, where not given.

        >>> from counterpoint import Stream
        >>> clicks = Stream(bound=1, dimensions=4, l1=2)
        >>> from counterpoint.continual import max_of
        >>> fitted = MonotoneHistogram(epsilon=1, query=max_of).fitted(clicks.relation, 4)
        >>> fitted.dimensions, fitted.diameter
        (4, 2)
        """
        width = dimensions if self.dimensions is None else self.dimensions
        if width is None:
            raise InvalidParameter("a histogram has coordinates: say dimensions=, or use a stream that declares them")
        places, bound, squared = declared(relation)
        # Coordinates are 0 or 1, so a change of L1 norm r, or squared L2 norm r, is one of r coordinates.
        reach = min((limit for limit in (bound, squared) if limit is not None), default=None)
        return replace(self, dimensions=width, diameter=self.diameter or reach, per_unit=self.per_unit or places)

    @property
    def _shape(self) -> tuple[int, int]:
        """The dimensions and the diameter."""
        if self.dimensions is None or self.diameter is None:
            raise InvalidParameter(
                "this histogram does not know its dimensions yet: say dimensions=..., or launch it on a stream that "
                "declares them"
            )
        return self.dimensions, self.diameter

    @property
    def _places(self) -> int:
        return self.per_unit or 1

    @property
    def _third(self) -> Fraction:
        return self.epsilon / (3 * self._places)

    @property
    def _each_delta(self) -> Fraction:
        return each_delta(self.epsilon, self.delta, self._places)

    @property
    def totals(self) -> DigitTreeCounter:
        """What is launched in the part of that name: with a delta, the one of two that errs less after 64 hits."""
        dimensions, reach = self._shape
        return best_totals(self._third, self._each_delta, dimensions, reach)

    @property
    def structure(self) -> tuple[Part, ...]:
        """Sparse vectors, checks and totals, for one step that differs."""
        _, reach = self._shape
        counted = ApproxDP(self._third, self._each_delta) if self.delta else PureDP(self._third)
        return (
            Part("above", PureDP(self._third), every_step(), sparse=1),
            Part("check", PureDP(self._third), every_step(), sparse=1),
            Part("totals", counted, Steps(updates=1, bound=reach, squared=reach)),
        )

    @property
    def relation(self) -> Relation:
        """One update may differ, by at most the diameter."""
        _, reach = self._shape
        return Steps(updates=1, bound=reach)

    @property
    def claim(self) -> Claim:
        """What the parts cost together for one step that differs, and by group privacy for `per_unit` of them."""
        one = super().claim
        if self._places == 1:
            return one
        loss = ApproxDP(self.epsilon, self.delta) if self.delta else PureDP(self.epsilon)
        assert one.loss.group(self._places).implies(loss)
        by = (
            f"group privacy: {self._places} steps that differ are a chain of neighbours that differ in one "
            "(theory, Groups)"
        )
        return claim(loss, Steps(updates=self._places, bound=self._shape[1]), by, one.certificate)

    @property
    def asks_are_public(self) -> bool:
        """Items come in updates."""
        return True

    def accepts(self, message: object) -> bool:
        """An update with a vector of the declared width, or an ask that carries nothing."""
        if isinstance(message, Update):
            return self.dimensions is not None and message.private.width == self.dimensions
        return isinstance(message, Ask) and message.private is None and message.public is None

    def begin(self, context: Context) -> Own:
        """The totals, and the first sparse vector."""
        context.launch("totals", self.totals)
        empty = (0,) * self._shape[0]
        return self._watching(context, HistogramInterval(0, 0, self.query(empty), empty, Secret(empty)))

    def react(self, context: Context, own: Own, message: Message) -> tuple[Own | None, Answer]:
        """Take a vector, or answer with the function of the last noisy histogram."""
        assert isinstance(own, HistogramInterval)
        if isinstance(message, Ask):
            return own, self.query(own.noisy)
        time, since = own.time + 1, own.since + message.private.clamp(0, 1)
        value, threshold = (since + own.noisy).map(self.query), own.base + self.gamma(time, own.hits + 1)
        if not context.ask("above", value, threshold):
            return HistogramInterval(time, own.hits, own.base, own.noisy, since), None
        base = threshold if self._confirmed(context, value, threshold - self.xi(time, own.hits + 1)) else own.base
        noisy = self._counted(context, since)
        return self._watching(context, HistogramInterval(time, own.hits + 1, base, noisy, since * 0)), None

    def _watching(self, context: Context, own: HistogramInterval) -> HistogramInterval:
        context.launch("above", AboveThreshold(self._third, own.base))
        return own

    def _confirmed(self, context: Context, value: Secret, least: int) -> bool:
        context.launch("check", Laplace(self._third))
        confirmed: bool = context.ask("check", value) >= least
        return confirmed

    def _counted(self, context: Context, since: Secret) -> tuple[int, ...]:
        """The noisy histogram with the sums of the interval that ends; a bar below 0 is read as 0."""
        context.update("totals", since)
        return tuple(max(0, bar) for bar in context.ask("totals"))

    def gamma(self, t: int, j: int) -> int:
        """How far above its base the threshold is at time t, in interval j: scale * (2A + 2C + 2)."""
        comparing, counting, _ = self._noises(self.beta, t, j)
        return ceil(self.scale * (2 * comparing + 2 * counting + 2))

    def xi(self, t: int, j: int) -> int:
        """How far below the threshold the check may find the value: scale * (A + M)."""
        comparing, _, checking = self._noises(self.beta, t, j)
        return ceil(self.scale * (comparing + checking))

    def _noises(self, beta: Fraction, t: int, j: int) -> tuple[int, int, int]:
        """A(t, j), C(j), M(j): what the noises of comparisons, totals and checks never exceed, but for beta."""
        each, once, counting, checking = _in_interval(self, beta, j)
        return once + limit(each, beta, t), counting, checking

    def error(self, probability: Number, t: int, hits: int) -> int:
        """How far answers are off at most, all until time t at once, with this probability, given the hits so far.

        By the laws of the noises together (`histogram_error`). t is chosen without looking at the answers; the hits may
        be those that were seen. On the worst stream that we know the error is 0.8 of this up to one hit, 0.7 up to
        three and 0.6 up to seven: the bounds for all numbers of hits hold at once, and so do those for every two hits
        of which one moved the base of the threshold and one was the last.

        >>> from counterpoint.continual import max_of
        >>> MonotoneHistogram(epsilon=1, query=max_of, dimensions=2).error(0.95, t=1000, hits=3)
        615
        """
        if whole(t, 0, "t") == 0:
            return 0
        fails, seen = may_fail(probability), min(whole(hits, 0, "hits"), t)
        noises = HistogramNoises(AboveThreshold(self._third, 0).scales, 1 / self._third, self.totals)
        papers = self._papers_error(fails, t, seen)
        if not fits_floats(noises, fails, t):
            return papers
        most = last(seen)
        heights = Heights(self.gamma(t, most + 1), self.xi(t, max(1, most)))
        return histogram_error(noises, fails, heights, t=t, hits=seen, width=max(1, papers // _CELLS))

    def _papers_error(self, fails: Fraction, t: int, hits: int) -> int:
        """The bound of the paper: gamma + 2A + 3C, which is 4A + 5C + 2 at scale 1.

        The threshold is at most A + 2C + gamma above the function of the last noisy histogram, and the function cannot
        have passed the threshold by A + C unseen.
        """
        comparing, counting, _ = self._noises(fails, t, hits + 1)
        return self.gamma(t, hits + 1) + 2 * comparing + 3 * counting


@lru_cache(maxsize=256)
def _in_interval(histogram: MonotoneHistogram, beta: Fraction, j: int) -> tuple[Fraction, int, int, int]:
    """What is the same at all times of interval j: the scale of a comparison, and the limits of the other noises.

    Those are on the threshold, in totals and in checks.
    """
    third = histogram._third
    once, each = AboveThreshold(third, 0).scales
    return each, limit(once, beta, j), counting_error(histogram.totals, beta, doubled(j)), limit(1 / third, beta, j)

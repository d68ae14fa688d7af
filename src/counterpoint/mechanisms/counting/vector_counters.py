"""Many running counts at once: a `Counter` for each coordinate of a stream of vectors, a million of them if need be.

How much noise the coordinates need together depends on how far apart two vectors can be, which the stream declares:
under pure privacy in the L1 norm (a one-hot vector that is replaced moves by 2), under zCDP in the L2 norm (by the
square root of 2). In law the answers are those of a counter for each coordinate with noise for that distance, asked at
the same times; the noises are drawn and kept as arrays.

>>> from counterpoint import Ask, SeededCoins, Update
>>> counter, coins = VectorCounter(dimensions=3, rho=50, squared=2), SeededCoins(7)
>>> state = counter.start(coins)
>>> for _ in range(100):
...     state, _ = counter.step(state, Update((1, 0, 0)), coins)
>>> state, answer = counter.step(state, Ask(), coins)
>>> max(abs(a - b) for a, b in zip(answer, (100, 0, 0))) <= counter.error(0.999999, t=100)
True
"""

from fractions import Fraction
from typing import Annotated, Self

import numpy as np
from msgspec.structs import replace

from counterpoint.encoding import Value
from counterpoint.errors import InvalidRequest
from counterpoint.mechanisms.counting.counters import (
    PastHorizon,
    below_one,
    check_privacy,
    check_separated,
    counting_claim,
    declared,
    distance,
    is_past,
    up_to,
)
from counterpoint.mechanisms.counting.noise.blt_noise import LIFETIME, BltNoise, blt_noise
from counterpoint.mechanisms.counting.noise.least_squares_noise import LeastSquaresNoise
from counterpoint.mechanisms.counting.noise.separated_noise import FarItems, separated_noise
from counterpoint.mechanisms.counting.noise.tree_noise import TreeNoise
from counterpoint.mechanisms.counting.packed import Packed, added, as_integers, as_tuple
from counterpoint.mechanisms.mechanism import Answer, Mechanism, State
from counterpoint.numbers import Number
from counterpoint.numbers.exact import whole
from counterpoint.numbers.parameters import PositiveInt, PositiveOrNone, default
from counterpoint.privacy.claims import Claim
from counterpoint.privacy.messages import Ask, Message, Update
from counterpoint.privacy.relations import Relation, Separated, Steps
from counterpoint.privacy.secret import reveal
from counterpoint.randomness.coins import Coins


class VectorCounting(State, Value, frozen=True):
    """How many items came and their sum; the noise of the last ask, and what the next ones need."""

    items: int
    total: Packed
    noise: State


class VectorCounter(Mechanism, Value, frozen=True, repr_omit_defaults=True, tag="VectorCounter/2"):
    """The noisy running sums of vectors of integers; PureDP(epsilon) or zCDP(rho), for `per_unit` items of one unit.

    `bound` is how far apart two vectors are at most in the L1 norm, `squared` the square of that in the L2 norm. Left
    out, they are taken from the source at launch; without a source, vectors of 0 and 1 are meant, and both are
    `dimensions`. Pure privacy uses the one, zCDP the other; vectors are counted as they are.

    Proof: as for `Counter`. Under pure privacy the noises of all coordinates are shifted, by the item's change in
    each, and the odds change by its L1 norm; `blt_noise` speaks of vectors anyway: at most min(dimensions, per_unit *
    squared) coordinates of integers differ, by which rounding is multiplied.

    >>> VectorCounter(1000, epsilon=1, bound=2).claim.relation, VectorCounter(1000, rho=1, squared=2).claim.relation
    (Steps(updates=1, bound=2), Steps(updates=1, squared=2))
    """

    dimensions: PositiveInt
    epsilon: PositiveOrNone = default(None)
    horizon: Annotated[PositiveInt | None, "the horizon"] = None
    bound: Annotated[PositiveInt | None, "the bound"] = None
    squared: PositiveInt | None = None
    rho: PositiveOrNone = default(None)
    per_unit: PositiveInt | None = None

    def __post_init__(self) -> None:
        """Check how it is private."""
        check_privacy(self.epsilon, self.rho, self.horizon)

    def fitted(self, relation: Relation, dimensions: int | None) -> "VectorCounter":
        """The counter with what was left out as the source declares it (see `Counter`).

        >>> VectorCounter(9, rho=0.5).fitted(Steps(updates=3, bound=2, squared=2), 9)
        VectorCounter(dimensions=9, bound=2, squared=2, rho=0.5, per_unit=3)
        >>> VectorCounter(9, rho=0.5).fitted(Separated(Steps(updates=3, bound=2, squared=2), apart=100), 9)
        SeparatedVectorCounter(dimensions=9, bound=2, squared=2, rho=0.5, per_unit=3, apart=100)
        """
        found, apart = self.declared(relation, dimensions), distance(relation)
        if apart is None or self.rho is None or self.per_unit is not None:
            return found
        moves = found.bound, found.squared, self.rho, found.per_unit
        return SeparatedVectorCounter(self.dimensions, None, found.horizon, *moves, apart)

    def declared(self, relation: Relation, dimensions: int | None) -> Self:
        """The same kind of counter with what was left out as the source declares it."""
        if dimensions != self.dimensions:
            items = "single numbers: launch a Counter" if dimensions is None else f"vectors of {dimensions} numbers"
            raise InvalidRequest(
                f"this counts vectors of {self.dimensions} numbers, and items of this source are {items}"
            )
        places, bound, squared = declared(relation)
        if bound is None:
            return self
        if self.bound is not None or self.squared is not None:
            bound, squared = self.bound, self.squared
        return replace(self, bound=bound, squared=squared, per_unit=self.per_unit or places)

    @property
    def _l1(self) -> int:
        """In integers the L1 norm is at most the squared L2 norm."""
        known = [distance for distance in (self.bound, self.squared) if distance is not None]
        return min(known) if known else self.dimensions

    @property
    def _squared(self) -> int:
        known = [] if self.bound is None else [self.bound**2]
        known += [] if self.squared is None else [self.squared]
        return min(known) if known else self.dimensions

    @property
    def _reach_squared(self) -> int:
        """The square of how far all items of a unit move the counts, in the L2 norm."""
        return (self.per_unit or 1) ** 2 * self._squared

    @property
    def _coordinates(self) -> int:
        """How many coordinates of integers differ at most, in all items of a unit."""
        return min(self.dimensions, (self.per_unit or 1) * self._squared)

    @property
    def noise(self) -> LeastSquaresNoise | TreeNoise | BltNoise:
        """The noise, as a process of its own."""
        if self.epsilon is not None:
            return self.laplace(self.epsilon, (self.per_unit or 1) * self._l1)
        assert self.rho is not None
        return self.gaussian(self.rho)

    def laplace(self, epsilon: Fraction, reach: int) -> LeastSquaresNoise | TreeNoise:
        """The noise for pure privacy if all items of a unit move by `reach` in L1 norm."""
        return LeastSquaresNoise(epsilon, reach, self.horizon, self.dimensions)

    def gaussian(self, rho: Fraction) -> BltNoise:
        """The noise for zCDP."""
        return blt_noise(rho, self.horizon, self._reach_squared, self._coordinates, self.dimensions)

    @property
    def relation(self) -> Steps | Separated:
        """At most `per_unit` updates differ, each by at most its distance."""
        places, pure = self.per_unit or 1, self.epsilon is not None
        return Steps(updates=places, bound=self._l1) if pure else Steps(updates=places, squared=self._squared)

    @property
    def claim(self) -> Claim:
        """PureDP(epsilon) or zCDP(rho) for neighbours in its relation."""
        return counting_claim(self.epsilon, self.rho, self.noise.share, self.relation)

    @property
    def most_items(self) -> int | None:
        """How many items are counted, if not all: under pure privacy, those up to the horizon."""
        return None if self.epsilon is None else self.horizon

    @property
    def asks_are_public(self) -> bool:
        """Items come in updates."""
        return True

    def accepts(self, message: object) -> bool:
        """An update with a vector of the declared width, or an ask that carries nothing."""
        if isinstance(message, Update):
            return message.private.width == self.dimensions
        return isinstance(message, Ask) and message.private is None and message.public is None

    def start(self, coins: Coins) -> State:
        """Nothing has been counted."""
        return VectorCounting(0, Packed(np.zeros(self.dimensions, dtype=np.int64)), self.noise.start())

    def step(self, state: State, message: Message, coins: Coins) -> tuple[State | None, Answer]:
        """Take an item, or answer with the noisy counts."""
        assert isinstance(state, VectorCounting)
        if isinstance(message, Update):
            return self._counted(state, message), None
        noise = self.noise
        after = noise.drawn(state.noise, up_to(self.most_items, state.items), coins)
        answer = as_tuple(added(state.total.integers, noise.now(after)))
        if is_past(self.most_items, state.items):
            return None, PastHorizon(answer)
        return None if noise.is_last(after) else VectorCounting(state.items, state.total, after), answer

    def _counted(self, state: VectorCounting, update: Update) -> VectorCounting:
        items, total = state.items + 1, state.total
        if not is_past(self.most_items, items):
            vector = reveal(update.private)
            assert isinstance(vector, tuple)
            total = Packed(added(total.integers, as_integers(vector)))
        return VectorCounting(items, total, state.noise)

    def deviation(self, t: int) -> float:
        """The standard deviation of each coordinate of the answer after t items, rounded up (see `Counter`).

        >>> one_hot = VectorCounter(1000, rho=0.5, squared=2), VectorCounter(1000, epsilon=1, horizon=2**20, bound=2)
        >>> [round(counter.deviation(2**20)) for counter in one_hot]
        [9, 63]
        """
        return self.noise.deviation(whole(t, 0, "t"))

    def error(self, probability: Number, t: int) -> int:
        """How far any coordinate of the answer after t items is off at most, with this probability for all at once.

        >>> VectorCounter(1000, rho=0.5, squared=2).error(0.95, t=2**20)
        37
        """
        return self.noise.bound(below_one(probability), whole(t, 0, "t"))

    def worst_error(self, probability: Number, t: int) -> int:
        """At least the largest `error` at any time from 0 to t: by bounds that grow with it, and are wider.

        >>> counter = VectorCounter(3, epsilon=1)
        >>> [counter.error(0.95, t) for t in (100, 200, 300)], counter.worst_error(0.95, t=300)
        ([79, 75, 89], 146)
        """
        return self.noise.worst_bound(below_one(probability), whole(t, 0, "t"))


class SeparatedVectorCounter(VectorCounter, frozen=True, repr_omit_defaults=True, tag="SeparatedVectorCounter/1"):
    """The same of a `SeparatedCounter` for each coordinate: items of a unit are at least `apart` from each other.

    >>> far = SeparatedVectorCounter(1000, rho=0.5, horizon=2**10, squared=2, per_unit=8, apart=128)
    >>> near = VectorCounter(1000, rho=0.5, horizon=2**10, squared=2, per_unit=8)
    >>> round(far.deviation(2**10), 1), round(near.deviation(2**10), 1)
    (18.8, 37.4)
    """

    apart: Annotated[PositiveInt, "the distance"] = 1

    def __post_init__(self) -> None:
        """Check how it is private."""
        VectorCounter.__post_init__(self)
        check_separated(pure=self.rho is None)

    @property
    def far_items(self) -> FarItems:
        """The items of a unit, as the noise sees them."""
        return FarItems(self.per_unit or 1, self.apart, self._squared, self._coordinates)

    def gaussian(self, rho: Fraction) -> BltNoise:
        """The noise of which every item is a step."""
        return separated_noise(rho, self.horizon, self.far_items, self.dimensions)

    @property
    def relation(self) -> Separated:
        """At most `per_unit` updates differ, at least `apart` from each other, each by at most its distance."""
        return Separated(Steps(updates=self.per_unit or 1, squared=self._squared), self.apart)

    @property
    def most_items(self) -> int:
        """Items are steps, of which there are this many at most."""
        return LIFETIME

    def fitted(self, relation: Relation, dimensions: int | None) -> Self:
        """The counter with what was left out as the source declares it; it says itself how far items are apart."""
        return self.declared(relation, dimensions)

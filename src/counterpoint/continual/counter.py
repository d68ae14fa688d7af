"""Counter: one family, scalar is width 1; horizon, spacing, width are parameters.

A running count of a stream under continual observation, for ever, with inputs that may depend on the answers.

`Counter` takes an item with every `Update` and answers every `Ask` with the noisy sum so far: under pure privacy with
the noise of trees (`least_squares_noise.py`), under zCDP with Gaussian noise through a matrix (`blt_noise.py`), which
is much smaller. An answer is the exact sum plus noise that does not depend on the data. An update draws nothing, and
asking again without an update between gives the same answer.

>>> from counterpoint.coins import SeededCoins
>>> from counterpoint.mechanisms import Ask, Update
>>> counter, coins = Counter(epsilon=1, horizon=1000), SeededCoins(7)
>>> state = counter.start(coins)
>>> for _ in range(500):
...     state, _ = counter.step(state, Update(1), coins)
>>> state, answer = counter.step(state, Ask(), coins)
>>> abs(answer - 500) <= counter.error(0.999999, t=500)
True
>>> counter.step(state, Ask(), coins)[1] == answer
True

Many running counts at once: a `Counter` for each coordinate of a stream of vectors, a million of them if need be.

How much noise the coordinates need together depends on how far apart two vectors can be, which the stream declares:
under pure privacy in the L1 norm (a one-hot vector that is replaced moves by 2), under zCDP in the L2 norm (by the
square root of 2). In law the answers are those of a counter for each coordinate with noise for that distance, asked at
the same times; the noises are drawn and kept as arrays.

>>> from counterpoint.coins import SeededCoins
>>> from counterpoint.mechanisms import Ask, Update
>>> counter, coins = VectorCounter(dimensions=3, rho=50, squared=2), SeededCoins(7)
>>> state = counter.start(coins)
>>> for _ in range(100):
...     state, _ = counter.step(state, Update((1, 0, 0)), coins)
>>> state, answer = counter.step(state, Ask(), coins)
>>> max(abs(a - b) for a, b in zip(answer, (100, 0, 0))) <= counter.error(0.999999, t=100)
True
"""

from collections.abc import Sequence
from fractions import Fraction
from typing import Annotated, Self

import numpy as np
from msgspec.structs import replace

from counterpoint.coins.coins import Coins
from counterpoint.continual.blt_noise import LIFETIME, BltNoise, blt_noise
from counterpoint.continual.digit_trees import TreeNoise
from counterpoint.continual.packed import Packed, added, as_integers, as_tuple
from counterpoint.continual.spaced_noise import FarItems, separated_noise
from counterpoint.continual.tree_noise import LeastSquaresNoise
from counterpoint.encoding import Tagged, Value
from counterpoint.errors import InvalidParameter, InvalidRequest
from counterpoint.measures import PureDP, zCDP
from counterpoint.mechanisms.mechanism import Answer, Mechanism, State
from counterpoint.mechanisms.tails import may_fail
from counterpoint.numbers import Number
from counterpoint.numbers.exact import whole
from counterpoint.numbers.parameters import Flag, PositiveInt, PositiveOrNone, default
from counterpoint.privacy.certificates import Certificate
from counterpoint.privacy.claims import Claim, claim
from counterpoint.privacy.messages import Ask, Message, Update
from counterpoint.privacy.relations import Relation, Separated, Steps
from counterpoint.privacy.secret import Secret, reveal


class CounterState(State, Value, frozen=True, tag="Counting/1"):
    """How many items came and their sum; the noise of the last ask, and what the next ones need."""

    items: int
    total: Secret
    noise: State


class PastHorizon(Tagged, Value, frozen=True):
    """The answer to an ask after more items than the horizon: the noisy count at the horizon; the rest was not counted.

    >>> PastHorizon(41)
    PastHorizon(41)
    """

    count: int | tuple[int, ...]


class Counter(Mechanism, Value, frozen=True, repr_omit_defaults=True, tag="Counter/2"):
    """The noisy running count of items in [0, bound]; PureDP(epsilon) or zCDP(rho), for `per_unit` items of one unit.

    Other items are brought to [0, bound]. With `clamp=False` they are counted as they are, of any size and sign, and
    the bound is how far a neighbour may move one (2 for items in [-1, 1]). What is left out is taken from the source
    at launch, without clamping, as a source's items are what it declares; without a source, both are 1.

    Proof, under pure privacy and with a horizon. An answer is the exact sum so far plus a weighted sum of noises of
    nodes, rounded to a whole number; of the nodes above a step, the weights add up to 1 if the step came before, and to
    0 if not (`least_squares.py`). Let one item be larger by d in the other world. Lowering by d the noises of the h
    nodes above that item (one a level) turns the runs of one world into runs of the other: it lowers the weighted sum
    by exactly 0 in answers before the item and by exactly d, a whole number, after it, also once rounded; and there the
    exact sum is larger by d. As all answers are the same, so are all inputs that an adversary makes of them, and the
    times of the asks, on which the weights depend. Noises of scale h per_unit bound/epsilon change their odds by at
    most e^(h |d| epsilon/(h per_unit bound)) by that, as discrete Laplace noise on the integers promises, and by
    e^epsilon for all items of a unit together. How large the items are does not matter.

    Without a horizon, a step is in one epoch: below the h nodes of its tree, which have 41/50 of epsilon, and below its
    root, which has 9/50. Lowering the root's noise by d as well changes the odds by e^(|d| epsilon/(per_unit bound)) in
    all; the epochs of other items are untouched (Henzinger et al. 2024, Cor 5.5 with k = 1).

    Under zCDP the proof is that of `blt_noise`. The horizon is only what the noise is tuned for: counting goes on, and
    stays private, until the 2^40th answer after a new item. Without one, the root mean square error up to any time from
    2^8 to 2^24 is within 16 % of that of the square root of the prefix-sum matrix of this size.

    An update cannot halt a mechanism, and a count that leaves items out must not pass for a running count. So with a
    horizon under pure privacy, items beyond it are taken but not counted, and the next ask gets `PastHorizon` with the
    count at the horizon, the last answer.

    >>> Counter(epsilon=0.5).claim.loss, Counter(epsilon=0.5, horizon=100, bound=3).claim.relation
    (PureDP(0.5), Steps(updates=1, bound=3))
    >>> Counter(rho=0.5, per_unit=4).claim
    Claim(loss=zCDP(0.5), relation=Steps(updates=4, bound=1), ...
    """

    epsilon: PositiveOrNone = default(None)
    horizon: Annotated[PositiveInt | None, "the horizon"] = None
    bound: Annotated[PositiveInt | None, "the bound"] = None
    rho: PositiveOrNone = default(None)
    per_unit: PositiveInt | None = None
    clamp: Flag = True

    def __post_init__(self) -> None:
        """Check how it is private."""
        check_privacy(self.epsilon, self.rho, self.horizon)

    def fitted(self, relation: Relation, dimensions: int | None) -> "Counter":
        """The counter with what was left out as the source declares it: how far an item moves, how many of a unit do.

        Where the items of a unit are far from each other, a counter under zCDP becomes a `SeparatedCounter`, unless it
        says `per_unit` itself.

        >>> Counter(rho=0.5).fitted(Steps(updates=3, bound=2), None)
        Counter(bound=2, rho=0.5, per_unit=3, clamp=False)
        >>> Counter(rho=0.5).fitted(Separated(Steps(updates=3, bound=2), apart=100), None)
        SeparatedCounter(bound=2, rho=0.5, per_unit=3, clamp=False, apart=100)
        """
        found, apart = self.declared(relation, dimensions), distance(relation)
        if apart is None or self.rho is None or self.per_unit is not None:
            return found
        return SeparatedCounter(None, found.horizon, found.bound, self.rho, found.per_unit, found.clamp, apart)

    def declared(self, relation: Relation, dimensions: int | None) -> Self:
        """The same kind of counter with what was left out as the source declares it."""
        if dimensions is not None:
            raise InvalidRequest(
                f"Counter follows single numbers, but this data sends vectors of {dimensions}: launch VectorCounter"
            )
        places, bound, _ = declared(relation)
        if bound is None:
            return self
        own = self.bound is not None
        return replace(
            self,
            bound=self.bound if own else bound,
            per_unit=self.per_unit or places,
            clamp=self.clamp and own,
        )

    @property
    def _most(self) -> int:
        return self.bound or 1

    @property
    def _reach(self) -> int:
        """How far all items of a unit can move the count."""
        return self._most * (self.per_unit or 1)

    @property
    def noise(self) -> LeastSquaresNoise | TreeNoise | BltNoise:
        """The noise, as a process of its own."""
        if self.epsilon is not None:
            return self.laplace(self.epsilon, self._reach)
        assert self.rho is not None
        return self.gaussian(self.rho)

    def laplace(self, epsilon: Fraction, reach: int) -> LeastSquaresNoise | TreeNoise:
        """The noise for pure privacy if all items of a unit move the count by `reach`."""
        return LeastSquaresNoise(epsilon, reach, self.horizon, width=1)

    def gaussian(self, rho: Fraction) -> BltNoise:
        """The noise for zCDP."""
        return blt_noise(rho, self.horizon, self._reach**2)

    @property
    def relation(self) -> Steps | Separated:
        """At most `per_unit` updates differ, each by at most the bound."""
        return Steps(updates=self.per_unit or 1, bound=self._most)

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
        """An update with a single integer, or an ask that carries nothing."""
        if isinstance(message, Update):
            return message.private.width is None
        return isinstance(message, Ask) and message.private is None and message.public is None

    def start(self, coins: Coins) -> State:
        """Nothing has been counted."""
        return CounterState(0, Secret(0), self.noise.start())

    def step(self, state: State, message: Message, coins: Coins) -> tuple[State | None, Answer]:
        """Take an item, or answer with the noisy count."""
        assert isinstance(state, CounterState)
        if isinstance(message, Update):
            return self.updated(state, (message,), coins), None
        noise = self.noise
        after = noise.drawn(state.noise, up_to(self.most_items, state.items), coins)
        count = _number(state.total) + int(noise.now(after)[0])
        if is_past(self.most_items, state.items):
            return None, PastHorizon(count)
        return None if noise.is_last(after) else CounterState(state.items, state.total, after), count

    def updated(self, state: State, updates: Sequence[Update], coins: Coins) -> State:
        """Take many items at once: their sum, up to the horizon."""
        assert isinstance(state, CounterState)
        items = state.items + len(updates)
        within = until_past(self.most_items, state.items, updates)
        total = sum((self._clamped(_number(update.private)) for update in within), _number(state.total))
        return CounterState(items, Secret(total), state.noise)

    def _clamped(self, item: int) -> int:
        return min(max(item, 0), self._most) if self.clamp else item

    def deviation(self, t: int) -> float:
        """The standard deviation of the answer after t items, rounded up.

        Under pure privacy it leaves out that an answer is rounded to a whole number, by at most a half. Under zCDP it
        counts asks that follow a new item, and t is the most that there can have been of those.

        >>> round(Counter(epsilon=1, horizon=2**10).deviation(549), 2)
        12.65
        >>> [round(Counter(rho=0.5).deviation(t), 1) for t in (2**10, 2**20, 2**22, 2**30)]
        [3.9, 6.4, 6.9, 34.8]
        """
        return self.noise.deviation(whole(t, 0, "t"))

    def error(self, probability: Number, t: int) -> int:
        """How far the answer after t items is from the truth at most, with at least this probability (below 1).

        >>> Counter(epsilon=1, horizon=2**10).error(0.95, t=549), Counter(rho=0.5, horizon=2**10).error(0.95, t=549)
        (25, 6)
        """
        return self.noise.bound(below_one(probability), whole(t, 0, "t"))


class SeparatedCounter(Counter, frozen=True, repr_omit_defaults=True, tag="SeparatedCounter/1"):
    """The same under zCDP for units of which any two items are at least `apart` items from each other.

    Eight items of a unit at any places need eight times the noise of one; eight that are far from each other, about
    four times. A step of the noise is an item here, also where no ask follows it, so that items which are far from
    each other in the stream are as many steps apart (`separated_noise.py`, with the proof): an ask takes time for every
    new item, and `deviation` and `error` depend on the number of items, not of asks. Items after the 2^40th are not
    counted, and the next ask gets `PastHorizon`.

    >>> far = SeparatedCounter(rho=0.5, horizon=2**10, per_unit=8, apart=128)
    >>> near, once = Counter(rho=0.5, horizon=2**10, per_unit=8), Counter(rho=0.5, horizon=2**10)
    >>> [round(counter.deviation(2**10), 1) for counter in (far, near, once)]
    [13.3, 26.4, 3.3]
    >>> far.claim.relation
    Separated(inner=Steps(updates=8, bound=1), apart=128)
    """

    apart: Annotated[PositiveInt, "the distance"] = 1

    def __post_init__(self) -> None:
        """Check how it is private."""
        Counter.__post_init__(self)
        check_separated(pure=self.rho is None)

    @property
    def far_items(self) -> FarItems:
        """The items of a unit, as the noise sees them."""
        return FarItems(self.per_unit or 1, self.apart, self._most**2)

    def gaussian(self, rho: Fraction) -> BltNoise:
        """The noise of which every item is a step."""
        return separated_noise(rho, self.horizon, self.far_items)

    @property
    def relation(self) -> Separated:
        """At most `per_unit` updates differ, at least `apart` from each other, each by at most the bound."""
        return Separated(Steps(updates=self.per_unit or 1, bound=self._most), self.apart)

    @property
    def most_items(self) -> int:
        """Items are steps, of which there are this many at most."""
        return LIFETIME

    def fitted(self, relation: Relation, dimensions: int | None) -> Self:
        """The counter with what was left out as the source declares it; it says itself how far items are apart."""
        return self.declared(relation, dimensions)


def check_privacy(epsilon: Fraction | None, rho: Fraction | None, horizon: int | None) -> None:
    """A counter is given one of epsilon and rho, and with rho a horizon that it can reach."""
    if (epsilon is None) == (rho is None):
        raise InvalidParameter("a counter takes either epsilon=, for pure privacy, or rho=, for zCDP")
    if rho is not None and horizon is not None and horizon > LIFETIME:
        raise InvalidParameter(
            f"under zCDP a counter gives at most {LIFETIME} answers: the horizon must not exceed that"
        )


def check_separated(pure: bool) -> None:
    """Distances between the items of a unit help under zCDP alone."""
    if pure:
        raise InvalidParameter(
            "under pure privacy the losses of a unit's items add up, however far from each other they are: launch "
            "Counter(epsilon=...) or VectorCounter(epsilon=...)"
        )


def up_to(most: int | None, items: int) -> int:
    """How many of this many items are counted, if at most `most` are (None: all).

    >>> up_to(3, 4), up_to(None, 4)
    (3, 4)
    """
    return items if most is None else min(items, most)


def is_past(most: int | None, items: int) -> bool:
    """Whether items are no longer counted: there are more than that, if there is a limit.

    >>> is_past(3, 4), is_past(None, 4)
    (True, False)
    """
    return most is not None and items > most


def until_past(most: int | None, items: int, updates: Sequence[Update]) -> Sequence[Update]:
    """Those of the updates after this number of items that are counted.

    >>> len(until_past(3, 2, [Update(1)] * 5)), len(until_past(None, 2, [Update(1)] * 5))
    (1, 5)
    """
    return updates if most is None else updates[: max(most - items, 0)]


def declared(relation: Relation) -> tuple[int, int | None, int | None]:
    """How many updates of a unit may differ, and by how much in L1 and squared L2 norm; None: not declared.

    >>> declared(Steps(updates=3, bound=2))
    (3, 2, 4)
    """
    steps = relation.inner if isinstance(relation, Separated) else relation
    if not isinstance(steps, Steps):
        return 1, None, None
    places = [limit for limit in (steps.updates, steps.total) if limit is not None]
    if not places or min(places) == 0:
        return 1, None, None
    return min(places), steps.bound, steps.squared


def distance(relation: Relation) -> int | None:
    """How far from each other the updates of a unit are that may differ, if that is declared and there are several.

    >>> distance(Separated(Steps(updates=3, bound=2), apart=100)), distance(Steps(updates=3, bound=2))
    (100, None)
    """
    return relation.apart if isinstance(relation, Separated) and declared(relation)[0] > 1 else None


def counting_claim(
    epsilon: Fraction | None, rho: Fraction | None, share: Fraction, relation: Steps | Separated
) -> Claim:
    """The claim of a counter, with what it rests on; an epoch's total has this share of epsilon (0: no epochs)."""
    if epsilon is None:
        assert rho is not None
        gaussian = Certificate(
            "a step is a Gaussian mechanism around a centre that moves by at most c_(t-i) and what rounding adds",
            "discrete Gaussian noise (Canonne et al. 2020, Thm 14)",
        )
        matrix = "the matrix mechanism with a lower triangular C: losses of steps add up, to "
        if isinstance(relation, Separated):
            by = f"{matrix}the sum over pairs of a unit's items of the products of their columns/(2 sigma2)"
            worst = "items as near to each other as they may be (Kalinin and Lampert 2024, Thm 2; theory, Counters)"
            return claim(zCDP(rho), relation, f"{by}, which is largest for {worst}", gaussian)
        return claim(zCDP(rho), relation, f"{matrix}|c|^2/(2 sigma2) (theory, Counters)", gaussian)
    tree = "one node above a step on each level of the tree, noise of scale height * reach / epsilon (theory, Counters)"
    if not share:
        return claim(PureDP(epsilon), relation, tree)
    total = share * epsilon
    parts = (
        Certificate(f"an epoch's tree is {PureDP(epsilon - total)!r}", tree),
        Certificate(f"an epoch's total is {PureDP(total)!r}", "discrete Laplace noise of scale reach / epsilon"),
    )
    epoch = Certificate(f"an epoch is {PureDP(epsilon)!r}", "basic composition", parts)
    by = "parallel composition, k = 1: a step is in one epoch (Henzinger et al. 2024, Cor 5.5)"
    return claim(PureDP(epsilon), relation, by, epoch)


def below_one(value: Number) -> Fraction:
    """Read a probability that must be below 1.

    >>> below_one(0.5)
    Fraction(1, 2)
    """
    return 1 - may_fail(value)


def _number(secret: Secret) -> int:
    value = reveal(secret)
    assert isinstance(value, int)
    return value


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

"""Counter: a running count of a stream under continual observation, for ever, with inputs that may follow the answers.

A counter takes an item with every `Update` and answers every `Ask` with the noisy sum so far: under pure privacy with
the noise of trees (`tree_noise.py`), under zCDP with Gaussian noise through a matrix (`blt_noise.py`), which is much
smaller. An answer is the exact sum plus noise that does not depend on the data (Henzinger et al. 2024). An update draws
nothing, and asking again without an update between gives the same answer.

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
"""

from collections.abc import Sequence
from fractions import Fraction
from typing import Annotated, NamedTuple

import numpy as np
from msgspec.structs import replace

from counterpoint.coins.coins import Coins, Integers
from counterpoint.continual.blt_noise import LIFETIME, BltNoise, blt_noise
from counterpoint.continual.digit_trees import DigitTreeNoise
from counterpoint.continual.horizon import PastHorizon, is_past, until_past, up_to
from counterpoint.continual.packed import Packed, added, as_integers, as_tuple
from counterpoint.continual.spaced_noise import FarItems, spaced_noise
from counterpoint.continual.tree_noise import FIRST_EPOCH, GROWTH, TreeNoise
from counterpoint.continual.windowed import MOST_KEPT, Windowed, window_claim
from counterpoint.encoding import Value
from counterpoint.errors import InvalidParameter, InvalidRequest, NotCovered
from counterpoint.measures import PureDP, zCDP
from counterpoint.mechanisms.mechanism import Answer, Mechanism, State
from counterpoint.mechanisms.tails import may_fail
from counterpoint.numbers import Number
from counterpoint.numbers.exact import whole
from counterpoint.numbers.parameters import Flag, PositiveInt, PositiveOrNone, default
from counterpoint.privacy.certificates import Certificate
from counterpoint.privacy.claims import Claim, claim
from counterpoint.privacy.messages import Ask, Message, Update
from counterpoint.privacy.relations import MinSeparation, Relation, Steps
from counterpoint.privacy.secret import reveal


class CounterState(State, Value, frozen=True):
    """How many items came and their sums, one for each coordinate; the noise of the last ask and for the next ones."""

    items: int
    total: Packed
    noise: State


class Counter(Mechanism, Value, frozen=True, repr_omit_defaults=True):
    """The noisy running count of a stream's items; PureDP(epsilon) or zCDP(rho), for `per_unit` items of one unit.

    Items are single numbers, or with `width` vectors of that many, whose answers are tuples: a count for each
    coordinate, with one noise budget for all of them together. A neighbour may change each item of a unit by at most
    `bound`. Single numbers are brought to [0, bound]; with `clamp=False` they are counted as they are, of any size and
    sign (bound 2 for items in [-1, 1]), as vectors always are. For vectors, `bound` is the distance in the L1 norm (2
    for a one-hot vector that is replaced) and `squared` the square of that in the L2 norm; pure privacy uses the
    former, zCDP the latter.

    A session takes whatever is left out from the data's declaration, without clamping, since the data is what it
    declares. Without a session, items are single numbers from 0 to 1, or vectors of 0 and 1, one of each unit.

    `window=n` counts the last n items only (`windowed.py`). `min_separation` says that any two items of a unit are at
    least that many items from each other, and makes the noise under zCDP much smaller (`spaced_noise.py`): eight items
    of a unit at any places need eight times the noise of one; eight that are far from each other, about four times.
    Every item is then a step of the noise, and an ask takes time for every new item.

    Proof, under pure privacy and with a horizon. An answer is the exact sum so far plus a weighted sum of noises of
    nodes, rounded to a whole number; of the nodes above a step, the weights add up to 1 if the step came before, and to
    0 if not (`tree_shapes.py`). Let one item be larger by d in the other world. Lowering by d the noises of the h nodes
    above that item (one a level) turns the runs of one world into runs of the other: it lowers the weighted sum by
    exactly 0 in answers before the item and by exactly d, a whole number, after it, also once rounded; and there the
    exact sum is larger by d. As all answers are the same, so are all inputs that an adversary makes of them, and the
    times of the asks, on which the weights depend. Noises of scale h per_unit bound/epsilon change their odds by at
    most e^(h |d| epsilon/(h per_unit bound)) by that, as discrete Laplace noise on the integers promises, and by
    e^epsilon for all items of a unit together. How large the items are does not matter. In vectors, each coordinate's
    noises are shifted by its own change, and the odds change by the L1 norm of all.

    Without a horizon, a step is in one epoch: below the h nodes of its tree, which have 41/50 of epsilon, and below its
    root, which has 9/50. Lowering the root's noise by d as well changes the odds by e^(|d| epsilon/(per_unit bound)) in
    all; the epochs of other items are untouched (Henzinger et al. 2024, Cor 5.5 with k = 1).

    Under zCDP the proof is that of `blt_noise`, which is about vectors: at most min(width, per_unit * squared) of their
    integers differ, by which rounding is multiplied. The horizon is only what the noise is tuned for: counting goes on,
    and stays private, until the 2^40th answer after a new item. Without one, the root mean square error up to any time
    from 2^8 to 2^24 is within 16 % of that of the square root of the prefix-sum matrix of this size.

    With a horizon under pure privacy, items beyond it are not counted: the next ask gets `PastHorizon` with the count
    at the horizon, the last answer.

    >>> Counter(epsilon=0.5).claim.loss, Counter(epsilon=0.5, horizon=100, bound=3).claim.relation
    (PureDP(0.5), Steps(updates=1, bound=3))
    >>> Counter(epsilon=1, width=1000, bound=2).claim.relation, Counter(rho=1, width=1000, squared=2).claim.relation
    (Steps(updates=1, bound=2), Steps(updates=1, squared=2))
    >>> far = Counter(rho=0.5, horizon=2**10, per_unit=8, min_separation=128)
    >>> near, once = Counter(rho=0.5, horizon=2**10, per_unit=8), Counter(rho=0.5, horizon=2**10)
    >>> [round(counter.deviation(2**10), 1) for counter in (far, near, once)]
    [13.3, 26.4, 3.3]
    >>> far.claim.relation
    MinSeparation(inner=Steps(updates=8, bound=1), apart=128)
    """

    epsilon: PositiveOrNone = default(None)
    horizon: Annotated[PositiveInt | None, "the horizon"] = None
    bound: Annotated[PositiveInt | None, "the bound"] = None
    rho: PositiveOrNone = default(None)
    per_unit: PositiveInt | None = None
    clamp: Flag = True
    width: Annotated[PositiveInt | None, "the width"] = None
    squared: PositiveInt | None = None
    min_separation: Annotated[PositiveInt | None, "the least separation"] = None
    window: Annotated[PositiveInt | None, "the window"] = None

    def __post_init__(self) -> None:
        """Check that the parameters fit each other."""
        if (self.epsilon is None) == (self.rho is None):
            raise InvalidParameter("a counter takes either epsilon=, for pure privacy, or rho=, for zCDP")
        if self.rho is not None and self.horizon is not None and self.horizon > LIFETIME:
            raise InvalidParameter(
                f"under zCDP a counter gives at most {LIFETIME} answers: the horizon must not exceed that"
            )
        if self.squared is not None and self.width is None:
            raise InvalidParameter("squared= is a distance between vectors: give their width=, too")
        if self.min_separation is not None and self.rho is None:
            raise InvalidParameter(
                "under pure privacy the losses of a unit's items add up, however far from each other they are: leave "
                "min_separation= out, or give rho= instead of epsilon="
            )
        most = MOST_KEPT // (self.width or 1) - 1
        if self.window is not None and self.window > most:
            raise InvalidParameter(
                f"a window keeps the counts of the last {self.window} + 1 times, and at most {MOST_KEPT} numbers: "
                f"window must be at most {most} here"
            )

    def fitted(self, relation: Relation, dimensions: int | None) -> "Counter":
        """The counter with the parameters that were left out, as the data declares them.

        A counter under zCDP takes the data's least separation as well, unless it was given its own `per_unit`.

        >>> Counter(rho=0.5).fitted(Steps(updates=3, bound=2), None)
        Counter(bound=2, rho=0.5, per_unit=3, clamp=False)
        >>> Counter(rho=0.5).fitted(MinSeparation(Steps(updates=3, bound=2, squared=2), apart=100), 9)
        Counter(bound=2, rho=0.5, per_unit=3, width=9, squared=2, min_separation=100)
        """
        if self.width not in (None, dimensions):
            items = "single numbers" if dimensions is None else f"vectors of {dimensions} numbers"
            raise InvalidRequest(
                f"this counts vectors of {self.width} numbers, and items of this source are {items}: leave width= out"
            )
        found = replace(self, width=dimensions)
        places, bound, squared = declared(relation)
        if bound is None:
            return found
        if self.bound is not None or self.squared is not None:
            bound, squared = self.bound, self.squared
        elif dimensions is None:
            found, squared = replace(found, clamp=False), None
        apart = self.min_separation
        if apart is None and self.rho is not None and self.per_unit is None:
            apart = separation(relation)
        per_unit = self.per_unit or places
        return replace(found, bound=bound, squared=squared, per_unit=per_unit, min_separation=apart)

    @property
    def dimensions(self) -> int | None:
        """Its width."""
        return self.width

    @property
    def _l1(self) -> int:
        """How far an item moves in the L1 norm: in integers, at most the squared L2 norm."""
        known = [distance for distance in (self.bound, self.squared) if distance is not None]
        return min(known) if known else self.width or 1

    @property
    def _squared(self) -> int:
        """How far an item moves in the L2 norm, squared."""
        known = [] if self.bound is None else [self.bound**2]
        known += [] if self.squared is None else [self.squared]
        return min(known) if known else self.width or 1

    @property
    def far_items(self) -> FarItems:
        """The items of a unit as the noise sees them: their number, separation, distance and coordinates."""
        places, squared = self.per_unit or 1, self._squared
        return FarItems(places, self.min_separation or 1, squared, min(self.width or 1, places * squared))

    @property
    def noise(self) -> "Noise":
        """The noise of the running count, as a process of its own."""
        return noise_for(self)

    @property
    def relation(self) -> Steps | MinSeparation:
        """At most `per_unit` updates differ, each by at most its distance, as far from each other as declared."""
        pure_or_single = self.rho is None or self.width is None
        moves = {"bound": self._l1} if pure_or_single else {"squared": self._squared}
        steps = Steps(updates=self.per_unit or 1, **moves)
        return steps if self.min_separation is None else MinSeparation(steps, self.min_separation)

    @property
    def claim(self) -> Claim:
        """PureDP(epsilon) or zCDP(rho) for neighbours in its relation."""
        found = counting_claim(self.epsilon, self.rho, self.noise.share, self.relation)
        return found if self.window is None else window_claim(found)

    @property
    def most_items(self) -> int | None:
        """How many items are counted, if not all: those up to the horizon, or to the last step of the noise."""
        if self.epsilon is not None:
            return self.horizon
        return None if self.min_separation is None else LIFETIME

    @property
    def asks_are_public(self) -> bool:
        """Items come in updates."""
        return True

    def accepts(self, message: object) -> bool:
        """An update with a number, or a vector of its width; or an ask that carries nothing."""
        if isinstance(message, Update):
            return message.private.width == self.width
        return isinstance(message, Ask) and message.private is None and message.public is None

    @property
    def windowed(self) -> Windowed:
        """The steps of its window."""
        assert self.window is not None
        return Windowed(replace(self, window=None), self.window, self.most_items)

    def start(self, coins: Coins) -> State:
        """Nothing has been counted."""
        if self.window is not None:
            return self.windowed.start(coins)
        return CounterState(0, Packed(np.zeros(self.width or 1, dtype=np.int64)), self.noise.start())

    def step(self, state: State, message: Message, coins: Coins) -> tuple[State | None, Answer]:
        """Take an item, or answer with the noisy count."""
        if isinstance(message, Update):
            return self.updated(state, (message,), coins), None
        if self.window is not None:
            return self.windowed.answered(state, coins)
        assert isinstance(state, CounterState)
        noise = self.noise
        after = noise.drawn(state.noise, up_to(self.most_items, state.items), coins)
        count = self._plus(state.total, noise.now(after))
        if is_past(self.most_items, state.items):
            return None, PastHorizon(count)
        return None if noise.is_last(after) else CounterState(state.items, state.total, after), count

    def updated(self, state: State, updates: Sequence[Update], coins: Coins) -> State:
        """Take many items at once: their sum, up to the horizon."""
        if self.window is not None:
            return self.windowed.updated(state, updates, coins)
        assert isinstance(state, CounterState)
        within = until_past(self.most_items, state.items, updates)
        total = self._total_of_numbers(state, within) if self.width is None else _total_of_vectors(state, within)
        return CounterState(state.items + len(updates), total, state.noise)

    def _plus(self, total: Packed, noise: Integers) -> int | tuple[int, ...]:
        """The answer; of a single number in Python's integers: in a fifth of numpy's time."""
        if self.width is None:
            return total.only + int(noise[0])
        return as_tuple(added(total.integers, noise))

    def _total_of_numbers(self, state: CounterState, updates: Sequence[Update]) -> Packed:
        """The sum with these items, in Python's integers: in a tenth of numpy's time."""
        total = state.total.only
        for update in updates:
            item = reveal(update.private)
            assert isinstance(item, int)
            total += min(max(item, 0), self._l1) if self.clamp else item
        return Packed.of(total)

    def deviation(self, t: int) -> float:
        """The standard deviation of (each coordinate of) the answer after t items, rounded up.

        Under pure privacy it leaves out that an answer is rounded to a whole number, by at most a half. Under zCDP it
        counts asks that follow a new item, and t is the most that there can have been of those.

        A window S(t) - S(t - n) has the noise of both times, but what both have in common cancels. Under pure privacy
        the weights of nodes which both times name are subtracted. Under zCDP, with the falling coefficients b of the
        noise, the variance is the sum of b_k^2 over k < n, plus the sum of (b_k - b_(k+n))^2 over k < t - n
        (`Blt.spread_between`): at most twice that of a counter after n steps, however long the stream is.

        >>> round(Counter(epsilon=1, horizon=2**10).deviation(549), 2)
        12.65
        >>> [round(Counter(rho=0.5).deviation(t), 1) for t in (2**10, 2**20, 2**22, 2**30)]
        [3.9, 6.4, 6.9, 34.8]
        >>> one_hot = Counter(rho=0.5, width=1000, squared=2), Counter(1, 2**20, bound=2, width=1000)
        >>> [round(counter.deviation(2**20)) for counter in one_hot]
        [9, 63]
        >>> [round(Counter(rho=0.5, window=1000).deviation(t), 1) for t in (1000, 10_000, 1_000_000)]
        [4.1, 5.4, 5.4]
        """
        time = whole(t, 0, "t")
        if self.window is None:
            return self.noise.deviation(time)
        return self.noise.deviation_between(max(time - self.window, 0), time)

    def error(self, probability: Number, t: int) -> int:
        """How far any coordinate of the answer after t items is off at most, with this probability for all at once.

        >>> Counter(epsilon=1, horizon=2**10).error(0.95, t=549), Counter(rho=0.5, horizon=2**10).error(0.95, t=549)
        (25, 6)
        >>> Counter(rho=0.5, width=1000, squared=2).error(0.95, t=2**20)
        37
        >>> Counter(rho=0.5, window=1000).error(0.95, t=10**6)
        10
        """
        sure, time = _below_one(probability), whole(t, 0, "t")
        if self.window is None:
            return self.noise.bound(sure, time)
        return self.noise.bound_between(sure, max(time - self.window, 0), time)

    def worst_error(self, probability: Number, t: int) -> int:
        """At least the largest `error` at any time from 0 to t: by bounds that grow with it, and are wider.

        >>> counter = Counter(epsilon=1, width=3)
        >>> [counter.error(0.95, t) for t in (100, 200, 300)], counter.worst_error(0.95, t=300)
        ([79, 75, 89], 146)
        """
        if self.window is not None:
            raise NotCovered("a window states no bound for all times at once: ask error(probability, t) for each time")
        return self.noise.worst_bound(_below_one(probability), whole(t, 0, "t"))


Noise = TreeNoise | DigitTreeNoise | BltNoise


class Resolution(NamedTuple):
    """How fine the noise of a counter is; others than the shipped one make counters that a verifier can enumerate.

    Gaussian noise stands on a grid of 2^-`bits` (None: as fine as it takes for rounding to cost a thousandth) and gives
    `steps` answers. `tree` forces the arity and the height of a tree, and epochs of 2, 4, 8, ... items.
    """

    bits: int | None = None
    steps: int = LIFETIME
    tree: tuple[int, int] | None = None


FINE = Resolution()


def noise_for(counter: Counter, resolution: Resolution = FINE) -> TreeNoise | BltNoise:
    """The noise of this counter: of trees under pure privacy, through a matrix under zCDP.

    >>> type(noise_for(Counter(epsilon=1))).__name__, type(noise_for(Counter(rho=1))).__name__
    ('TreeNoise', 'BltNoise')
    """
    width, places = counter.width or 1, counter.per_unit or 1
    if counter.epsilon is not None:
        first, growth = (FIRST_EPOCH, GROWTH) if resolution.tree is None else (2, 2)
        reach = places * counter._l1
        return TreeNoise(counter.epsilon, reach, counter.horizon, width, first, growth, resolution.tree)
    assert counter.rho is not None
    unit, bits, lifetime = counter.far_items, resolution.bits, resolution.steps
    if counter.min_separation is not None:
        return spaced_noise(counter.rho, counter.horizon, unit, width, bits=bits, lifetime=lifetime)
    squared = places**2 * unit.squared
    return blt_noise(counter.rho, counter.horizon, squared, unit.coordinates, width=width, bits=bits, lifetime=lifetime)


def declared(relation: Relation) -> tuple[int, int | None, int | None]:
    """How many updates of a unit may differ, and by how much in L1 and squared L2 norm; None: not declared.

    >>> declared(Steps(updates=3, bound=2))
    (3, 2, 4)
    """
    steps = relation.inner if isinstance(relation, MinSeparation) else relation
    if not isinstance(steps, Steps):
        return 1, None, None
    places = [limit for limit in (steps.updates, steps.total) if limit is not None]
    if not places or min(places) == 0:
        return 1, None, None
    return min(places), steps.bound, steps.squared


def separation(relation: Relation) -> int | None:
    """How far from each other the updates of a unit are that may differ, if that is declared and there are several.

    >>> separation(MinSeparation(Steps(updates=3, bound=2), apart=100)), separation(Steps(updates=3, bound=2))
    (100, None)
    """
    return relation.apart if isinstance(relation, MinSeparation) and declared(relation)[0] > 1 else None


def counting_claim(
    epsilon: Fraction | None, rho: Fraction | None, share: Fraction, relation: Steps | MinSeparation
) -> Claim:
    """The claim of a counter, with what it rests on; an epoch's total has this share of epsilon (0: no epochs)."""
    if epsilon is None:
        assert rho is not None
        gaussian = Certificate(
            "a step is a Gaussian mechanism around a centre that moves by at most c_(t-i) and what rounding adds",
            "discrete Gaussian noise (Canonne et al. 2020, Thm 14)",
        )
        matrix = "the matrix mechanism with a lower triangular C: losses of steps add up, to "
        if isinstance(relation, MinSeparation):
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


def _total_of_vectors(state: CounterState, updates: Sequence[Update]) -> Packed:
    """The sums with these items."""
    total = state.total.integers
    for update in updates:
        item = reveal(update.private)
        assert isinstance(item, tuple)
        total = added(total, as_integers(item))
    return Packed(total)


def _below_one(value: Number) -> Fraction:
    """A probability below 1."""
    return 1 - may_fail(value)

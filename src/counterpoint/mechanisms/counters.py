"""A running count of a stream under continual observation, pure differential privacy, adaptive inputs.

`Counter` takes an item with every `Update` and tells the noisy sum so far at every `Ask`. With a horizon it counts on
one tree with subtraction (`trees.py`); without one, on a tree for each of ever longer epochs, of which only the noisy
total is kept (the idea of Chan, Shi, Song 2011). An update draws nothing: a node's noise is drawn at the first ask
that needs it and kept while a later one could, so what is drawn depends on the times of the asks alone, and asking
again without an update between gives the same answer.

>>> from counterpoint import Ask, SeededCoins, Update
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

from fractions import Fraction
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import force_setattr

from counterpoint.encoding import Tagged, Value
from counterpoint.errors import InvalidParameter
from counterpoint.mechanisms.laplace_sums import Part, bound_of_sum, deviation_of_sum
from counterpoint.mechanisms.mechanism import Answer, Mechanism, State
from counterpoint.mechanisms.trees import Noises, Tree, best_tree, surviving
from counterpoint.numbers import Number
from counterpoint.numbers.exact import positive, probability, whole
from counterpoint.privacy.certificates import Certificate
from counterpoint.privacy.claims import Claim, claim
from counterpoint.privacy.losses import PureDP
from counterpoint.privacy.messages import Ask, Message, Update
from counterpoint.privacy.relations import Steps
from counterpoint.privacy.secret import Secret, reveal
from counterpoint.randomness.coins import Coins

FIRST_EPOCH = 512
GROWTH = 3
SHARE = Fraction(3, 20)
"""Without a horizon: the first epoch's length, how much longer each next one is, and what its total takes of epsilon.

Searched for over lengths, growths and shares: within 1.32 times the best tree for a known horizon, in maximum standard
deviation, at every power of two from 2^7 to 2^32.
"""


class Epoch(NamedTuple):
    """A stretch of time with a tree of its own: its number, the time it starts from, its tree."""

    number: int
    start: int
    tree: Tree


class Counting(State, Value, frozen=True):
    """How many items came and their sum; the time of the last ask, and the noises that it used."""

    items: int
    total: Secret
    asked: int = 0
    past: int = 0
    noises: Noises = ()


class PastHorizon(Tagged, Value, frozen=True):
    """The answer to an ask after more items than the horizon: the noisy count at the horizon; the rest was not counted.

    >>> PastHorizon(41)
    PastHorizon(count=41)
    """

    count: int


class Counter(Mechanism, Value, frozen=True):
    """The noisy running count of items in [0, bound] (others are brought there); PureDP(epsilon) for one item.

    Proof, with a horizon. An answer is the exact sum so far plus the noises, signed, of the nodes that the time's
    digits name; these cover every step before that time once, net, and no other step. Let one item be larger by d <=
    bound in the other world. Lowering by d the noises of the h nodes above that item (one a level, each of scale h
    bound/epsilon) turns the runs of one world into runs of the other: answers before the item stay as they are, since
    those nodes cancel in them, answers after it lose d and gain d. As all answers are the same, so are all inputs
    that an adversary makes of them; and the odds of the noises change by at most e^(h d epsilon/(h bound)) <=
    e^epsilon, as discrete Laplace noise on the integers promises.

    Without one, a step is in one epoch: in its tree, which has 17/20 of epsilon, and in its total, which has 3/20
    and which all later answers use in place of the tree. Lowering the total's noise by d as well changes the odds by
    e^epsilon in all; the items of other epochs are untouched (S4 Cor 5.5 with k = 1).

    An update cannot halt a mechanism, and a count that leaves items out must not pass for a running count. So items
    beyond the horizon are taken but not counted, and the next ask gets `PastHorizon` with the count at the horizon,
    the last answer.

    >>> Counter(epsilon=0.5).claim.loss, Counter(epsilon=0.5, horizon=100, bound=3).claim.relation
    (PureDP(0.5), Steps(updates=1, bound=3))
    """

    epsilon: Fraction
    horizon: int | None = None
    bound: int = 1

    if TYPE_CHECKING:

        def __init__(self, epsilon: Number, horizon: int | None = None, bound: int = 1) -> None: ...

    def __post_init__(self) -> None:
        """Read the parameters exactly."""
        force_setattr(self, "epsilon", positive(self.epsilon, "epsilon"))
        force_setattr(self, "bound", whole(self.bound, 1, "the bound"))
        if self.horizon is not None:
            force_setattr(self, "horizon", whole(self.horizon, 1, "the horizon"))

    @property
    def claim(self) -> Claim:
        """PureDP(epsilon) if at most one update differs, by at most the bound."""
        relation = Steps(updates=1, bound=self.bound)
        tree = "one node above a step on each level of the tree, noise of scale height * bound / epsilon (THEORY 5)"
        if self.horizon is not None:
            return claim(PureDP(self.epsilon), relation, tree)
        share = SHARE * self.epsilon
        parts = (
            Certificate(f"an epoch's tree is {PureDP(self.epsilon - share)!r}", tree),
            Certificate(f"an epoch's total is {PureDP(share)!r}", "discrete Laplace noise of scale bound / epsilon"),
        )
        epoch = Certificate(f"an epoch is {PureDP(self.epsilon)!r}", "basic composition", parts)
        by = "parallel composition, k = 1: a step is in one epoch (S4 Cor 5.5)"
        return claim(PureDP(self.epsilon), relation, by, epoch)

    def accepts(self, message: object) -> bool:
        """An update with a single integer, or an ask that carries nothing."""
        if isinstance(message, Update):
            return message.private.width is None
        return isinstance(message, Ask) and message.private is None and message.public is None

    def start(self, coins: Coins) -> State:
        """Nothing has been counted."""
        return Counting(0, Secret(0))

    def step(self, state: State, message: Message, coins: Coins) -> tuple[State | None, Answer]:
        """Take an item, or tell the noisy count."""
        assert isinstance(state, Counting)
        if isinstance(message, Update):
            return self._counted(state, message), None
        after = self._drawn(state, coins)
        count = _number(after.total) + after.past + self._signed(after)
        return (None, PastHorizon(count)) if self._is_past(state.items) else (after, count)

    def _counted(self, state: Counting, update: Update) -> Counting:
        items, total = state.items + 1, state.total
        if not self._is_past(items):
            total = Secret(_number(total) + min(max(_number(update.private), 0), self.bound))
        return Counting(items, total, state.asked, state.past, state.noises)

    def _is_past(self, items: int) -> bool:
        return self.horizon is not None and items > self.horizon

    def _drawn(self, state: Counting, coins: Coins) -> Counting:
        """The state with the noises that an ask needs now: those that still serve, and new ones."""
        now = state.items if self.horizon is None else min(state.items, self.horizon)
        here, before = self._epoch(now), self._epoch(state.asked)
        digits = here.tree.digits(now - here.start)
        kept: Noises = ((),) * here.tree.height
        if here == before and state.noises:
            kept = surviving(here.tree.digits(state.asked - here.start), digits, state.noises)
        past = state.past + sum(_draw(self._total_scale, here.number - before.number, coins))
        missing = [abs(digit) - len(level) for digit, level in zip(digits, kept, strict=True)]
        fresh = iter(_draw(self._node_scale(here.tree), sum(missing), coins))
        noises = tuple((*level, *islice(fresh, count)) for level, count in zip(kept, missing, strict=True))
        return Counting(state.items, state.total, now, past, noises)

    def _signed(self, state: Counting) -> int:
        """The sum of the nodes' noises, each with the sign of its digit."""
        here = self._epoch(state.asked)
        digits = here.tree.digits(state.asked - here.start)
        return sum(sum(level) if digit > 0 else -sum(level) for digit, level in zip(digits, state.noises, strict=True))

    def _epoch(self, time: int) -> Epoch:
        """The epoch of a time; one that begins counts nothing of its own yet."""
        if self.horizon is not None:
            return Epoch(0, 0, best_tree(self.horizon))
        number, start, length = 0, 0, FIRST_EPOCH
        while time - start >= length:
            number, start, length = number + 1, start + length, length * GROWTH
        return Epoch(number, start, best_tree(length - 1))

    def _node_scale(self, tree: Tree) -> Fraction:
        epsilon = self.epsilon if self.horizon is not None else self.epsilon * (1 - SHARE)
        return tree.height * self.bound / epsilon

    @property
    def _total_scale(self) -> Fraction:
        return self.bound / (self.epsilon * SHARE)

    def _parts(self, t: int) -> list[Part]:
        """The noises in an answer after t items: so many of which scale."""
        time = whole(t, 0, "t")
        if self._is_past(time):
            raise InvalidParameter(f"t must not be past the horizon of {self.horizon}, but {time} was given")
        here = self._epoch(time)
        nodes = here.tree.nodes(time - here.start)
        return [(self._node_scale(here.tree), nodes), (self._total_scale, here.number)]

    def deviation(self, t: int) -> float:
        """The standard deviation of the answer after t items, exact up to rounding (upward).

        >>> Counter(epsilon=1, horizon=2**10).deviation(549)  # 3 * 13^2 + 3 * 13 + 3
        12.669186901005808
        """
        return deviation_of_sum(self._parts(t))

    def error(self, probability: Number, t: int) -> int:
        """How far the answer after t items is from the truth at most, with at least this probability (below 1).

        >>> Counter(epsilon=1, horizon=2**10).error(0.95, t=549)
        37
        """
        chance = _below_one(probability)
        return bound_of_sum(self._parts(t), chance)


def _below_one(value: Number) -> Fraction:
    chance = probability(value, "the probability")
    if chance == 1:
        raise InvalidParameter("the probability must be below 1: noise has no largest value")
    return chance


def _number(secret: Secret) -> int:
    value = reveal(secret)
    assert isinstance(value, int)
    return value


def _draw(scale: Fraction, size: int, coins: Coins) -> list[int]:
    return [int(draw) for draw in coins.discrete_laplace(scale, size)] if size else []

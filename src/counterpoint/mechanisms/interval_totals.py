"""The noisy running totals of d numbers that come in items of any size: the d-counter of S4 Algorithm 4, Cor 7.5.

A `Counter` brings its items into a range; the sums of a histogram's intervals have none, and only their change between
neighbours is bounded. Nothing in the proof needs more than that. The totals are counted on trees with subtraction
(`trees.py`), in epochs, each with a noisy total of its own; all d numbers share a tree, and a node's noise is a vector.

>>> from counterpoint import Ask, SeededCoins, Update
>>> totals, coins = IntervalTotals(PureDP(1), dimensions=2, bound=2), SeededCoins(7)
>>> state = totals.start(coins)
>>> state, _ = totals.step(state, Update((10**6, -5)), coins)
>>> state, answer = totals.step(state, Ask(), coins)
>>> max(abs(answer[0] - 10**6), abs(answer[1] + 5)) <= totals.error(0.999999, t=1)
True

Why it is private. An answer is the exact total plus the signed noises of the nodes that the time names, which cover
every item before it once, net, and no other; an item's own nodes are the h above it and its epoch's total. Let item i
be larger by a vector v in world 1. Then world 1 with noises z gives the answers that world 0 gives with z + s, where s
is v on item i's own nodes and 0 elsewhere: answers before i do not see s at all, so i and v, which an adversary may
choose by them, are the same, and z -> z + s is a bijection of the integers.

Laplace noise, of scale h |v|_1 / (0.85 epsilon) on nodes and |v|_1 / (0.15 epsilon) on totals: the odds of z change by
at most e^epsilon. That is PureDP(epsilon).

Gaussian noise: write P for the law of z and |s|^2 for the sum of s_j^2/sigma_j^2. The divergence of order alpha between
the worlds is at most 1/(alpha-1) times the log of the sum over z of P(z-s)^alpha P(z)^(1-alpha), that is of
P(z - alpha s) e^(alpha(alpha-1)|s|^2/2). Among the z that lead to one i and v, which z -> z + s permutes, the
P(z - alpha s) add up to what the P(z) do if alpha is a whole number. So D_alpha <= alpha |s|^2/2: RenyiDP at whole
orders. (At others discrete Gaussian noise that was drawn before its node's item is not known to do as well.)
"""

from fractions import Fraction
from functools import lru_cache
from math import ceil
from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import force_setattr

from counterpoint.encoding import Value
from counterpoint.errors import InvalidParameter, NotCovered
from counterpoint.mechanisms.laplace_sums import bound_of_sum
from counterpoint.mechanisms.mechanism import Answer, Mechanism, State
from counterpoint.mechanisms.trees import Tree, best_tree, surviving
from counterpoint.numbers import Number, precision
from counterpoint.numbers.exact import exact, whole
from counterpoint.privacy.claims import Claim, claim
from counterpoint.privacy.loss import Loss
from counterpoint.privacy.losses import PureDP, RenyiDP
from counterpoint.privacy.messages import Ask, Message, Update
from counterpoint.privacy.relations import Steps
from counterpoint.privacy.secret import Secret, reveal
from counterpoint.randomness.coins import Coins

FIRST_EPOCH, GROWTH, SHARE = 512, 3, Fraction(3, 20)
"""The length of the first epoch, how much longer each next one is, and what its total takes of the loss."""

Vector = tuple[int, ...]
Vectors = tuple[tuple[Vector, ...], ...]
"""For each level of a tree, the noises of the nodes in use."""


class Epoch(NamedTuple):
    """A stretch of time with a tree of its own: its number, the time it starts from, its tree."""

    number: int
    start: int
    tree: Tree


class Totals(State, Value, frozen=True):
    """How many items came and their sums; the time of the last ask, the noise of past epochs, and of nodes in use."""

    items: int
    sums: Secret
    past: Vector
    asked: int = 0
    noises: Vectors = ()


class IntervalTotals(Mechanism, Value, frozen=True):
    """Noisy totals of d numbers, of which one item may move by at most `bound` in L1 and `squared` in squared L2.

    The loss says which noise: PureDP is Laplace, by the L1 norm; RenyiDP at a whole order is Gaussian, by the L2 norm.

    >>> IntervalTotals(RenyiDP(16, 0.5), dimensions=1000, bound=1000, squared=1000).claim.loss
    RenyiDP(alpha=16, epsilon=0.5)
    """

    loss: Loss
    dimensions: int
    bound: int = 1
    squared: int | None = None

    if TYPE_CHECKING:

        def __init__(self, loss: Loss, dimensions: int, bound: int = 1, squared: int | None = None) -> None: ...

    def __post_init__(self) -> None:
        """Check the measure and the limits."""
        whole_order = isinstance(self.loss, RenyiDP) and self.loss.alpha.denominator == 1
        if not (whole_order or isinstance(self.loss, PureDP)):
            raise NotCovered(
                f"totals of intervals are proven for PureDP and RenyiDP at a whole order, not {self.loss!r}"
            )
        assert isinstance(self.loss, PureDP | RenyiDP)
        if not self.loss.epsilon:
            raise InvalidParameter("epsilon must be above 0: noise without end is no answer")
        force_setattr(self, "dimensions", whole(self.dimensions, 1, "dimensions"))
        force_setattr(self, "bound", whole(self.bound, 1, "the bound"))
        most = self.bound * self.bound
        squared = most if self.squared is None else whole(self.squared, 1, "the squared bound")
        force_setattr(self, "squared", min(squared, most))

    @property
    def claim(self) -> Claim:
        """The loss, if at most one item differs, by at most the bounds."""
        nodes = "an item is in one node of each level of one epoch's tree, and in that epoch's total"
        by = "Laplace noise by L1" if self._pure else "discrete Gaussian noise by L2, whole order"
        return claim(self.loss, Steps(updates=1, bound=self.bound, squared=self.squared), f"{nodes}; {by}")

    @property
    def _pure(self) -> bool:
        return isinstance(self.loss, PureDP)

    def accepts(self, message: object) -> bool:
        """An update with a vector of the declared width, or an ask that carries nothing."""
        if isinstance(message, Update):
            return message.private.width == self.dimensions
        return isinstance(message, Ask) and message.private is None and message.public is None

    def start(self, coins: Coins) -> State:
        """Nothing has been counted."""
        return Totals(0, Secret((0,) * self.dimensions), (0,) * self.dimensions)

    def step(self, state: State, message: Message, coins: Coins) -> tuple[State | None, Answer]:
        """Take an item, or tell the noisy totals."""
        assert isinstance(state, Totals)
        if isinstance(message, Update):
            sums = state.sums + message.private
            return Totals(state.items + 1, sums, state.past, state.asked, state.noises), None
        after = self._drawn(state, coins)
        return after, reveal(after.sums + after.past + self._signed(after))

    def _drawn(self, state: Totals, coins: Coins) -> Totals:
        """The state with the noises that an ask needs now: those that still serve, and new ones."""
        here, before = self._epoch(state.items), self._epoch(state.asked)
        digits = here.tree.digits(state.items - here.start)
        kept: Vectors = ((),) * here.tree.height
        if here == before and state.noises:
            stay = surviving(here.tree.digits(state.asked - here.start), digits)
            kept = tuple(level[:count] for level, count in zip(state.noises, stay, strict=True))
        past = state.past
        for _ in range(here.number - before.number):
            past = _sum(past, self._draw(self._spread(1, SHARE), coins))
        noises = tuple(
            (*level, *(self._draw(self._node(here.tree), coins) for _ in range(abs(digit) - len(level))))
            for digit, level in zip(digits, kept, strict=True)
        )
        return Totals(state.items, state.sums, past, state.items, noises)

    def _signed(self, state: Totals) -> Vector:
        """The sum of the nodes' noises, each with the sign of its digit."""
        here, total = self._epoch(state.asked), (0,) * self.dimensions
        digits = here.tree.digits(state.asked - here.start)
        for digit, level in zip(digits, state.noises, strict=True):
            for noise in level:
                total = _sum(total, noise if digit > 0 else tuple(-n for n in noise))
        return total

    def _epoch(self, time: int) -> Epoch:
        number, start, length = 0, 0, FIRST_EPOCH
        while time - start >= length:
            number, start, length = number + 1, start + length, length * GROWTH
        return Epoch(number, start, best_tree(length - 1) if self._pure else gaussian_tree(length - 1))

    def _node(self, tree: Tree) -> Fraction:
        return self._spread(tree.height, 1 - SHARE)

    def _spread(self, places: int, share: Fraction) -> Fraction:
        """The scale (Laplace) or variance parameter (Gaussian) if an item is in so many noises with this share."""
        if isinstance(self.loss, PureDP):
            return places * self.bound / (share * self.loss.epsilon)
        assert isinstance(self.loss, RenyiDP) and self.squared is not None
        return places * self.squared * self.loss.alpha / (2 * share * self.loss.epsilon)

    def _draw(self, spread: Fraction, coins: Coins) -> Vector:
        draw = coins.discrete_laplace if self._pure else coins.discrete_gaussian
        return tuple(int(noise) for noise in draw(spread, self.dimensions))

    def error(self, probability: Number, t: int) -> int:
        """How far any of the totals after t items is off at most, with at least this probability (below 1).

        Laplace: by Chernoff on the sum of noises. Gaussian: the sum is subgaussian with the sum V of the variance
        parameters (Canonne, Kamath, Steinke 2020, Cor 17), so |X| >= x has probability at most 2 e^(-x^2/(2V)).

        >>> IntervalTotals(PureDP(1), 1).error(0.95, t=1), IntervalTotals(PureDP(1), 100).error(0.95, t=1)
        (13, 25)
        """
        here = self._epoch(whole(t, 0, "t"))
        return self._bound(probability, here, here.tree.nodes(t - here.start))

    def worst_error(self, probability: Number, t: int) -> int:
        """The largest `error` at any time from 0 to t: of each epoch, where its tree names the most nodes.

        >>> totals = IntervalTotals(PureDP(1), 3)
        >>> totals.worst_error(0.95, t=40) == max(totals.error(0.95, t) for t in range(41))
        True
        """
        worst, time = 0, whole(t, 0, "t")
        while time >= 0:
            here = self._epoch(time)
            worst = max(worst, self._bound(probability, here, here.tree.most_nodes(time - here.start)))
            time = here.start - 1
        return worst

    def _bound(self, probability: Number, here: Epoch, nodes: int) -> int:
        fails = (1 - exact(probability, "the probability")) / self.dimensions
        if not 0 < fails <= 1:
            raise InvalidParameter("the probability must be at least 0 and below 1: noise has no largest value")
        parts = [(self._node(here.tree), nodes), (self._spread(1, SHARE), here.number)]
        if self._pure:
            return bound_of_sum(parts, 1 - fails)
        return _gaussian_bound(sum((spread * count for spread, count in parts), Fraction(0)), fails)


def _gaussian_bound(variance: Fraction, fails: Fraction) -> int:
    root = (2 * variance * precision(30)(2 / fails).log()).sqrt()
    return max(0, ceil(root.upper) - 1)  # the sum is a whole number below the root


def _sum(left: Vector, right: Vector) -> Vector:
    return tuple(a + b for a, b in zip(left, right, strict=True))


@lru_cache(maxsize=64)
def gaussian_tree(horizon: int) -> Tree:
    """The tree with the smallest maximum variance up to this horizon for Gaussian noise: height times nodes.

    >>> gaussian_tree(511).height * gaussian_tree(511).most_nodes(511)
    40
    """
    trees, height = [Tree(2 * horizon + 1, 1)], 1
    while trees[-1].arity > 3:
        height += 1
        arity = next(k for k in range(3, trees[-1].arity + 1, 2) if Tree(k, height).reach >= horizon)
        trees.append(Tree(arity, height))
    return min(trees, key=lambda tree: tree.height * tree.most_nodes(horizon))


@lru_cache(maxsize=256)
def renyi_within(epsilon: Fraction, delta: Fraction) -> RenyiDP:
    """The Renyi loss of whole order alpha with the largest epsilon/alpha that is still (epsilon, delta)-DP.

    tau = epsilon - log(1 - 1/alpha) + (log delta + log alpha)/(alpha - 1) (THEORY 3, conversions), rounded down.

    >>> loss = renyi_within(Fraction(1), Fraction(1, 10**6))
    >>> loss.alpha, loss.epsilon_at(1e-6) <= 1
    (Fraction(22, 1), True)
    """

    def tau(alpha: int) -> Fraction:
        p = precision(40)
        bound = epsilon - p(1 - Fraction(1, alpha)).log() + p(delta * alpha).log() / (alpha - 1)
        return Fraction(bound.lower)

    low, high = 2, 4
    while tau(high) / high > tau(high // 2) / (high // 2) or tau(high) <= 0:
        high *= 2
    while high - low > 2:  # tau/alpha rises to its maximum and falls from there on
        left, right = low + (high - low) // 3, high - (high - low) // 3
        low, high = (left, high) if tau(left) / left < tau(right) / right else (low, right)
    best = max(range(low, high + 1), key=lambda alpha: tau(alpha) / alpha)
    return RenyiDP(best, Fraction(int(tau(best) * 10**18), 10**18))

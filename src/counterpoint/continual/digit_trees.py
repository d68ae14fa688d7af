"""Noise of k-ary trees under pure privacy, for the totals of a `MonotoneHistogram` alone.

Other counters have the smaller noise of `tree_noise.py`; a histogram's error bound needs the law of the worst noise at
any time, which only this one has.

A time t is written with h digits of an odd base k, each from -(k-1)/2 to (k-1)/2. Read from the top, the digits walk
from 0 to t: a digit d of level j adds the next d nodes of k^j steps each, or takes the last |d| away again, which may
reach into the future. Every step lies in one node of each level, and the nodes named by t, with their signs, cover
each step before t once and every other step not at all, net. That halves the largest digit of the plain k-ary tree
(Andersson et al. 2024; the trees are those of Dwork et al. 2010 and Chan et al. 2011).

>>> tree = Tree(arity=5, height=2)
>>> tree.reach, tree.digits(9)  # 9 = 2*5 - 1
(12, (-1, 2))
>>> noise = DigitTreeNoise(epsilon=Fraction(1), reach=1, horizon=2**10, width=1)
>>> noise.epoch(549).tree, noise.deviation(549)
(Tree(arity=13, height=3), 12.669186901005808)
"""

from fractions import Fraction
from functools import lru_cache, reduce
from math import ceil
from typing import NamedTuple

import numpy as np

from counterpoint.coins.coins import Coins, Integers
from counterpoint.continual.grid_laws import Grid, GridLaw
from counterpoint.continual.packed import Packed, octets_for, roomy
from counterpoint.encoding import Value
from counterpoint.errors import InvalidParameter
from counterpoint.mechanisms.laplace_sums import Part, bound_of_sum, deviation_of_sum, sum_within
from counterpoint.mechanisms.mechanism import State
from counterpoint.mechanisms.tails import each_may_fail


class Tree(NamedTuple):
    """A tree of this height in which a node has `arity` children; the arity is odd."""

    arity: int
    height: int

    @property
    def most(self) -> int:
        """The largest digit."""
        return self.arity // 2

    @property
    def reach(self) -> int:
        """The last time that has digits: (k^h - 1)/2."""
        width: int = self.arity**self.height
        return width // 2

    def digits(self, time: int) -> tuple[int, ...]:
        """The balanced digits of a time from 0 to `reach`, the lowest first.

        >>> Tree(3, 4).digits(5)  # 9 - 3 - 1
        (-1, -1, 1, 0)
        """
        found = []
        for _ in range(self.height):
            time, digit = divmod(time + self.most, self.arity)
            found.append(digit - self.most)
        return tuple(found)

    def nodes(self, time: int) -> int:
        """How many nodes a count at this time is made of.

        >>> Tree(3, 4).nodes(5)
        3
        """
        return sum(map(abs, self.digits(time)))

    def most_nodes(self, horizon: int) -> int:
        """The largest number of nodes at any time from 0 to the horizon, without trying them all.

        A time before the horizon has a first digit, from the top, below the horizon's; all digits after that are
        free, and at their most.

        >>> tree = Tree(5, 3)
        >>> tree.most_nodes(40) == max(tree.nodes(time) for time in range(41))
        True
        """
        digits = self.digits(horizon)
        top = max((level for level, digit in enumerate(digits) if digit), default=0)
        found = [sum(map(abs, digits)), top * self.most]
        if digits[top] > 1:
            found.append(digits[top] - 1 + top * self.most)
        above = digits[top]
        for level in range(top - 1, -1, -1):
            if digits[level] > -self.most:
                found.append(above + (level + 1) * self.most)
            above += abs(digits[level])
        return max(found)

    def cost(self, horizon: int) -> int:
        """The largest variance up to the horizon, in units of 2 (bound/epsilon)^2: the height squared, times nodes.

        >>> Tree(13, 3).cost(2**10)
        162
        """
        return self.height**2 * self.most_nodes(horizon)


@lru_cache(maxsize=1024)
def best_tree(horizon: int) -> Tree:
    """The tree with the smallest maximum variance up to this horizon: of each height the narrowest that reaches it.

    >>> [best_tree(2**n) for n in (10, 16, 20)]
    [Tree(arity=13, height=3), Tree(arity=21, height=4), Tree(arity=19, height=5)]
    """
    height, trees = 1, [Tree(2 * horizon + 1, 1)]
    while trees[-1].arity > 3:
        height += 1
        trees.append(_narrowest(horizon, height))
    return min(trees, key=lambda tree: tree.cost(horizon))


def _narrowest(horizon: int, height: int) -> Tree:
    """The smallest odd arity that reaches the horizon with this height."""
    least = 2 * horizon + 1
    low, high = 1, 2 ** (least.bit_length() // height + 1)
    while high - low > 1:  # low^height < least <= high^height
        middle = (low + high) // 2
        low, high = (middle, high) if middle**height < least else (low, middle)
    return Tree(high | 1, height)


def surviving(before: tuple[int, ...], now: tuple[int, ...]) -> tuple[int, ...]:
    """For each level, how many of the nodes of the digits `before` still serve at `now`; the others never do again.

    Under one parent (equal digits above), digits only grow: from -(k-1)/2, shedding nodes from the far end until none
    is left, then through 0 up, taking on new ones. Other parents have other nodes. So it is the first ones that stay,
    if nodes are listed from the one nearest to their parent's start outward.

    >>> surviving((-2, 1), (-1, 1)), surviving((2, 1), (-2, 2))
    ((1, 1), (0, 1))
    """
    kept: list[int] = []
    same_parent = True
    for old, new in reversed(list(zip(before, now, strict=True))):
        kept.append(min(abs(old), abs(new)) if same_parent and old * new > 0 else 0)
        same_parent = same_parent and old == new
    return tuple(reversed(kept))


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


class DigitTreeState(State, Value, frozen=True):
    """The time of the last ask, the noise of the epochs before, and for each level, from the leaves up, its nodes'.

    The node nearest to its parent's start comes first.
    """

    asked: int
    past: Packed
    levels: tuple[Packed, ...] = ()


class DigitTreeNoise(NamedTuple):
    """The noise of `width` counters at once, whose inputs move by at most `reach` in L1 norm, in all.

    With a horizon there is one tree; without one, a tree for each of ever longer epochs, of which only the noisy total
    is kept (the idea of Chan et al. 2011). A node's noise is drawn at the first ask that needs it and kept while a
    later one could, so what is drawn depends on the times of the asks alone. `DigitTreeCounter` has the proof.
    """

    epsilon: Fraction
    reach: int
    horizon: int | None
    width: int

    def start(self) -> DigitTreeState:
        """No noise yet: nothing has been counted."""
        return DigitTreeState(0, self._packed(np.zeros(self.width, dtype=np.int64), self._total_scale))

    def drawn(self, state: State, items: int, coins: Coins) -> DigitTreeState:
        """The state with the noises that an ask needs after `items` items: those that still serve, and new ones."""
        assert isinstance(state, DigitTreeState)
        now = items if self.horizon is None else min(items, self.horizon)
        here, before = self.epoch(now), self.epoch(state.asked)
        digits = here.tree.digits(now - here.start)
        kept = (0,) * here.tree.height
        if here == before and state.levels:
            kept = surviving(here.tree.digits(state.asked - here.start), digits)
        ended = self._draws(self._total_scale, here.number - before.number, coins)
        past = self._packed(_sum([state.past.integers, *ended]), self._total_scale)
        scale, levels = self.node_scale(here.tree), []
        for level, (digit, count) in enumerate(zip(digits, kept, strict=True)):
            rows = self._rows(state.levels[level])[:count] if count else self._draws(scale, 0, coins)
            fresh = self._draws(scale, abs(digit) - count, coins)
            levels.append(self._packed(np.concatenate([rows, fresh]).reshape(-1), scale))
        return DigitTreeState(now, past, tuple(levels))

    def now(self, state: State) -> Integers:
        """The sum of the nodes' noises, each with the sign of its digit, and those of the epochs before."""
        assert isinstance(state, DigitTreeState)
        here = self.epoch(state.asked)
        total = roomy(state.past.integers, 8)
        for digit, level in zip(here.tree.digits(state.asked - here.start), state.levels, strict=True):
            if digit:
                rows = _sum(list(self._rows(level)))
                total = total + (rows if digit > 0 else -rows)
        return total

    def is_last(self, state: State) -> bool:
        """Never: a tree ends by its horizon, an endless counter not at all."""
        return False

    def epoch(self, time: int) -> Epoch:
        """The epoch of a time; one that begins counts nothing of its own yet."""
        if self.horizon is not None:
            return Epoch(0, 0, best_tree(self.horizon))
        number, start, length = 0, 0, FIRST_EPOCH
        while time - start >= length:
            number, start, length = number + 1, start + length, length * GROWTH
        return Epoch(number, start, best_tree(length - 1))

    @property
    def share(self) -> Fraction:
        """What an epoch's total takes of epsilon; 0 if there are no epochs."""
        return SHARE if self.horizon is None else Fraction(0)

    def node_scale(self, tree: Tree) -> Fraction:
        """The scale of a node's noise."""
        epsilon = self.epsilon if self.horizon is not None else self.epsilon * (1 - SHARE)
        return tree.height * self.reach / epsilon

    @property
    def _total_scale(self) -> Fraction:
        return self.reach / (self.epsilon * SHARE)

    def parts(self, t: int) -> list[Part]:
        """The noises in an answer after t items: how many there are of each scale."""
        if self.horizon is not None and t > self.horizon:
            raise InvalidParameter(f"t must not be past the horizon of {self.horizon}, but {t} was given")
        here = self.epoch(t)
        return self._parts(here, here.tree.nodes(t - here.start))

    def _parts(self, here: Epoch, nodes: int) -> list[Part]:
        return [(self.node_scale(here.tree), nodes), (self._total_scale, here.number)]

    def deviation(self, t: int) -> float:
        """The standard deviation after t items, exact up to rounding (upward)."""
        return deviation_of_sum(self.parts(t))

    def bound(self, probability: Fraction, t: int) -> int:
        """What no coordinate exceeds in absolute value after t items, all at once, with this probability."""
        return self._within(self.parts(t), probability)

    def parts_between(self, earlier: int, t: int) -> list[Part]:
        """The noises in the difference of the answers at two times: a node that both name is in neither.

        Under one parent a node that serves at both times serves at every time between them (`surviving`), so it is the
        same draw whatever was asked between.
        """
        last, first = self.parts(t), self.parts(earlier)
        here, before = self.epoch(t), self.epoch(earlier)
        if here != before:  # what both have of still earlier epochs is the same, too
            return [last[0], first[0], (self._total_scale, here.number - before.number)]
        then, now = (here.tree.digits(time - here.start) for time in (earlier, t))
        scale, nodes = last[0]
        return [(scale, nodes + first[0][1] - 2 * sum(surviving(then, now)))]

    def deviation_between(self, earlier: int, t: int) -> float:
        """The standard deviation of the difference of the answers at two times, exact up to rounding (upward)."""
        return deviation_of_sum(self.parts_between(earlier, t))

    def bound_between(self, probability: Fraction, earlier: int, t: int) -> int:
        """What no coordinate of that difference exceeds in absolute value, all at once, with this probability."""
        return self._within(self.parts_between(earlier, t), probability)

    def _within(self, parts: list[Part], probability: Fraction) -> int:
        """Coordinates are independent, and a sum is a whole number."""
        terms = [(scale, Fraction(1), int(count)) for scale, count in parts]
        return sum_within(terms, each_may_fail(probability, self.width), gap=Fraction(1))

    def worst_bound(self, probability: Fraction, t: int) -> int:
        """At least the largest `bound` at any time from 0 to t: of each epoch, where its tree names the most nodes.

        A `MonotoneHistogram` sets its thresholds by it, and ledgers hold those, so it stays as it is: by Chernoff, and
        a union over coordinates.
        """
        worst, time, each = 0, t, 1 - (1 - probability) / self.width
        while time >= 0:
            here = self.epoch(time)
            worst = max(worst, bound_of_sum(self._parts(here, here.tree.most_nodes(time - here.start)), each))
            time = here.start - 1
        return worst

    def worst_law(self, most: int, grid: Grid) -> GridLaw:
        """A law above that of the noise of one coordinate, where it is above 0, at any time from 1 to `most`.

        More nodes have the wider noise: it is symmetric and falls to either side, so that a sum with one more draw is
        not likelier to be near 0. Epochs are compared cell by cell.
        """
        laws, time = [], most
        while time >= 0:
            here = self.epoch(time)
            draws = self._parts(here, here.tree.most_nodes(time - here.start))
            nodes, totals = (grid.laplace(scale).times(int(count), grid.least) for scale, count in draws)
            laws.append(nodes.plus(totals).trimmed(grid.least))
            time = here.start - 1
        return reduce(GridLaw.larger, laws)

    def _draws(self, scale: Fraction, count: int, coins: Coins) -> Integers:
        """`count` vectors of noise, as rows."""
        if not count:
            return np.zeros((0, self.width), dtype=np.int64)
        return coins.discrete_laplace(scale, count * self.width).reshape(count, self.width)

    def _rows(self, level: Packed) -> Integers:
        return level.integers.reshape(-1, self.width)

    def _packed(self, values: Integers, scale: Fraction) -> Packed:
        return Packed(values, octets_for(ceil(scale)))


def _sum(vectors: list[Integers]) -> Integers:
    """Fewer than 2^8 vectors have a sum that fits where each of them is roomy by 8 bits."""
    total = roomy(vectors[0], 8)
    for vector in vectors[1:]:
        total = total + roomy(vector, 8)
    return total

"""The noise of counters under pure privacy: that of the nodes of a tree, weighted by least squares.

`tree_shapes.py` has the weights. With a horizon there is one tree; without one, a tree for each of ever longer
epochs, whose root has a noise, too: once an epoch has ended, its root and the root's children stand for all of it (the
idea of epochs is that of Chan et al. 2011). A node's noise is drawn at the first ask that weighs it and kept while a
later one could, so what is drawn depends on the times of the asks alone. `Counter` has the proof.

Kept are, of each level, the sum of the done siblings' noises, that of their children's, and the noises from the path
on: O(k log T) numbers. An ask draws nothing that its weights do not use, and after n new items O(n) noises, at most
O(k^2 log T).

>>> noise = TreeNoise(epsilon=Fraction(1), reach=1, horizon=2**10, width=1)
>>> noise.epoch(549).shape, round(noise.deviation(549), 2)
(Shape(arity=15, height=3, top=5, root=None), 12.65)
"""

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from functools import lru_cache
from math import ceil, floor
from operator import mul
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from counterpoint.coins.coins import Coins, Integers
from counterpoint.coins.noise import parts
from counterpoint.continual.packed import Packed, as_integers, narrow, octets_for, weighted_sum
from counterpoint.continual.tree_shapes import BITS, GRID_BITS, Node, Shape, best_shape
from counterpoint.encoding import Value
from counterpoint.errors import InvalidParameter
from counterpoint.mechanisms.laplace_sums import Part, Term, deviation_of_sum, limit_of_sum, squares, sum_within
from counterpoint.mechanisms.mechanism import State
from counterpoint.mechanisms.tails import each_may_fail

FIRST_EPOCH = 768
GROWTH = 4
SHARE = Fraction(9, 50)
"""Without a horizon: the first epoch's length, how much longer each next one is, and what its root takes of epsilon.

Searched for over lengths, growths and shares: the root mean square error up to T is within 1.2 times that of the best
tree for a known horizon, for every power of two T from 2^8 to 2^24.
"""

_HEADS = 4
"""Rows of a level that an answer is made of: done, below, on the path, ahead."""
_AT_ONCE = 2**15
_DRAWN_AT_ONCE = 2**18
_NARROW, _WIDE = 2, 8
"""The bytes that a row's integers have in memory; what is stored of it has as many as `Packed` is told."""
_FAR, _LATE = 90, 20
"""Sums of arity^2 noises stay within this multiple of arity times their scale, 60 deviations; and a late epoch."""
_CHUNK = 2**22
"""How many noises are kept at once, at most, if only their sum is to be kept."""

Row: TypeAlias = Any
"""A noise for each counter: an array, or of a single counter a Python integer, with which numpy would take longer."""


class Stretch(NamedTuple):
    """An epoch: its number, the time it starts from, its tree."""

    number: int
    start: int
    shape: Shape


class TreeState(State, Value, frozen=True):
    """The time of the last ask; the noise of the epochs before, over 2^BITS; what answers are made of; noises to come.

    `heads` has four sums for each level, from the leaves up: of the noises of the done siblings, of these siblings'
    children, of the path and of the siblings ahead; then the root's. `ahead` has the noises of each level, one by one,
    from the path on.
    """

    asked: int
    past: Packed
    heads: Packed
    ahead: tuple[Packed, ...] = ()


class TreeNoise(NamedTuple):
    """The noise of `width` counters at once, whose inputs move by at most `reach` in L1 norm, in all.

    `first`, `growth` and `forced` (an arity and a height) are there for trees that are small enough to enumerate.
    """

    epsilon: Fraction
    reach: int
    horizon: int | None
    width: int
    first: int = FIRST_EPOCH
    growth: int = GROWTH
    forced: tuple[int, int] | None = None

    def start(self) -> TreeState:
        """No noise yet: nothing has been counted."""
        return TreeState(0, self._packed_past(self._blank), Packed(as_integers([])))

    def epoch(self, time: int) -> Stretch:
        """The epoch of a time; one that begins counts nothing of its own yet."""
        if self.horizon is not None:
            return Stretch(0, 0, self._shape(self.horizon))
        number, start, length = 0, 0, self.first
        while time - start >= length:
            number, start, length = number + 1, start + length, length * self.growth
        return Stretch(number, start, self._with_root(length))

    def drawn(self, state: State, items: int, coins: Coins) -> TreeState:
        """The state with the noises that an ask weighs after `items` items: those that still serve, and new ones."""
        assert isinstance(state, TreeState)
        now = items if self.horizon is None else min(items, self.horizon)
        if now == state.asked:
            return state
        here, before = self.epoch(now), self.epoch(state.asked)
        past, levels = state.past, self._levels(state)
        if here != before:
            ended = [self._ended(before.shape, levels, coins)]
            ended += [self._ended(self._numbered(n), None, coins) for n in range(before.number + 1, here.number)]
            past = self._packed_past(self._added([*self._rows(past), *ended], octets=_WIDE))
            levels = None
        if now == here.start:  # nothing has a weight there
            return TreeState(now, past, self._heads([], here.shape))
        then = state.asked - here.start if levels is not None else None
        after = self._walked(here.shape, levels or self._rooted(here.shape, coins), then, now - here.start, coins)
        return TreeState(now, past, self._heads(after.heads, here.shape), tuple(after.ahead))

    def now(self, state: State) -> Integers:
        """The weighted sum of the noises, rounded to a whole number."""
        assert isinstance(state, TreeState)
        past, weights, rows = self._rows(state.past)[0], [], []
        if state.ahead:
            here = self.epoch(state.asked)
            weights, rows = here.shape.row_weights(state.asked - here.start), self._rows(state.heads)
        if self.width == 1:
            return as_integers([_rounded((past << BITS) + sum(map(mul, weights, rows)))])
        weighing = [pair for pair in zip(weights, rows, strict=True) if pair[0]]
        return self._in_pieces(lambda at: _rounded(_noise_at(at, past, weighing)), _octets_of_sums(self))

    def is_last(self, state: State) -> bool:
        """Never: a tree ends by its horizon, an endless counter not at all."""
        return False

    def parts(self, t: int) -> list[Part]:
        """The noises in an answer after t items: for each scale, the sum of the squares of their weights."""
        here = self.epoch(self._counted(t))
        return self._parts(here, here.shape.squares(t - here.start))

    def terms(self, t: int) -> list[Term]:
        """The noises in an answer after t items: how many there are of each scale and weight."""
        return self._terms(dict(self._named(self._counted(t))))

    def _counted(self, t: int) -> int:
        if self.horizon is not None and t > self.horizon:
            raise InvalidParameter(f"t must not be past the horizon of {self.horizon}, but {t} was given")
        return t

    def _parts(self, here: Stretch, squares: tuple[Fraction, Fraction]) -> list[Part]:
        """These squared weights in one epoch, and those of all epochs before it."""
        found: list[Part] = list(zip((self.node_scale(here.shape), self._root_scale), squares, strict=True))
        for number in range(here.number):
            shape = self._numbered(number)
            found += zip((self.node_scale(shape), self._root_scale), shape.total_squares(), strict=True)
        return found

    def deviation(self, t: int) -> float:
        """The standard deviation after t items, exact up to rounding (upward).

        That is of the noise before it is rounded to a whole number, which moves it by at most a half.
        """
        return deviation_of_sum(self.parts(t))

    def bound(self, probability: Fraction, t: int) -> int:
        """What no coordinate exceeds in absolute value after t items, all at once, with this probability."""
        return self._within(self.terms(t), probability, roundings=1)

    def worst_bound(self, probability: Fraction, t: int) -> int:
        """At least the largest `bound` at any time from 0 to t, by Chernoff.

        Of the weights at all times only the squares are bounded (`Shape.most_squares`).
        """
        worst, time = 0, t
        while time >= 0:
            here = self.epoch(time)
            most = self._parts(here, here.shape.most_squares(time - here.start))
            limit = limit_of_sum(most, 1 - (1 - probability) / self.width)
            worst, time = max(worst, floor(limit + Fraction(1, 2)) if limit else 0), here.start - 1
        return worst

    def terms_between(self, earlier: int, t: int) -> list[Term]:
        """The noises in the difference of the answers at two times: how many there are of each scale and weight."""
        weights = dict(self._named(self._counted(t)))
        for node, weight in self._named(earlier):
            weights[node] = weights.get(node, 0) - weight
        return self._terms(weights)

    def _terms(self, weights: dict[tuple[int, Node], int]) -> list[Term]:
        """These weights of nodes, counted; by their size, as noise is symmetric."""
        counts: dict[tuple[int, bool, int], int] = {}
        shapes = {number: self._of_epoch(number) for number in {number for number, _ in weights}}
        for (number, (level, _)), weight in weights.items():
            kind = number, level == shapes[number].height, abs(weight)
            counts[kind] = counts.get(kind, 0) + 1
        return [
            (self._root_scale if root else self.node_scale(shapes[number]), Fraction(weight, 1 << GRID_BITS), count)
            for (number, root, weight), count in counts.items()
        ]

    def _of_epoch(self, number: int) -> Shape:
        return self._numbered(number) if self.horizon is None else self.epoch(0).shape

    def _named(self, time: int) -> Iterator[tuple[tuple[int, Node], int]]:
        """Every node that has a weight at this time, by its epoch, and its weight."""
        here = self.epoch(time)
        for node, weight in here.shape.named(time - here.start):
            yield (here.number, node), weight
        for number in range(here.number):
            for node, weight in self._numbered(number).named_in_total():
                yield (number, node), weight

    def deviation_between(self, earlier: int, t: int) -> float:
        """The standard deviation of the difference of the answers at two times, before rounding (see `deviation`)."""
        return deviation_of_sum(squares(self.terms_between(earlier, t)))

    def bound_between(self, probability: Fraction, earlier: int, t: int) -> int:
        """What no coordinate of that difference exceeds in absolute value, all at once, with this probability."""
        return self._within(self.terms_between(earlier, t), probability, roundings=2 if earlier else 1)

    def _within(self, terms: list[Term], probability: Fraction, roundings: int) -> int:
        """Coordinates are independent, and each rounding to a whole number moves them by at most a half."""
        return sum_within(terms, each_may_fail(probability, self.width), gap=1 - Fraction(roundings, 2))

    @property
    def share(self) -> Fraction:
        """What an epoch's root takes of epsilon; 0 if there are no epochs."""
        return SHARE if self.horizon is None else Fraction(0)

    def node_scale(self, shape: Shape) -> Fraction:
        """The scale of a node's noise."""
        return shape.height * self.reach / (self.epsilon * (1 - self.share))

    @property
    def _root_scale(self) -> Fraction:
        return self.reach / (self.epsilon * SHARE)

    def _numbered(self, number: int) -> Shape:
        """The tree of an epoch, without a horizon."""
        return self._with_root(self.first * self.growth**number)

    def _with_root(self, length: int) -> Shape:
        shape = self._shape(length - 1, rooted=True)
        return shape._replace(root=(self._root_scale / self.node_scale(shape)) ** 2)

    def _shape(self, last: int, rooted: bool = False) -> Shape:
        if self.forced is None:
            return best_shape(last, rooted)
        arity, height = self.forced
        return Shape(arity, height, last // arity ** (height - 1) + 1)

    def _levels(self, state: TreeState) -> "Levels | None":
        """What a state has drawn in its epoch, to be changed; None if that is nothing."""
        if not state.ahead:
            return None
        return Levels(self._rows(state.heads), list(state.ahead))

    def _rooted(self, shape: Shape, coins: Coins) -> "Levels":
        """Nothing but the root's noise, if it has one."""
        root = [] if shape.root is None else self._draws(self._root_scale, 1, coins)
        return Levels([self._blank] * (_HEADS * shape.height) + root, [Packed(as_integers([]))] * shape.height)

    def _walked(self, shape: Shape, levels: "Levels", then: int | None, now: int, coins: Coins) -> "Levels":
        """What is drawn at `now`, after what was drawn at `then` (None: nothing in this tree, except its root).

        Siblings stay while the path stays below their parent; those that it has passed are done. The children of a
        done sibling were drawn if the path went through it at an ask, else they are drawn now, for their sum.
        """
        digits, heads, ahead = shape.digits(now), list(levels.heads), list(levels.ahead)
        for level in reversed(range(shape.height)):
            at, path = _HEADS * level, now // shape.arity**level
            first = path - digits[level]
            came = then is not None and then // shape.arity**level >= first
            old = then // shape.arity**level if came and then is not None else first
            if came and old == path:
                continue
            done, below, on, later = heads[at : at + _HEADS] if came else [self._blank] * _HEADS
            kept = ahead[level] if came else ahead[level].rest(len(ahead[level]))
            passed, held = path - old, _held(shape, level, digits[level])
            fresh = self._drawn_nodes(shape, passed + held - len(kept) // self.width, coins)
            gone, ahead[level] = self._split(kept, fresh, passed, shape)
            if level and came:
                below = self._added([below, *(heads[at - place] for place in (4, 2, 1))])  # of all its children
            if level and passed > came:
                below = self._added([below, self._drawn_sum(shape, (passed - came) * shape.arity, coins)])
            path_noise = self._rows(ahead[level], 1)[0] if held else self._blank
            later = self._added([on, later, *fresh], [*gone, path_noise])
            heads[at : at + _HEADS] = self._added([done, *gone]), below, path_noise, later
        return Levels(heads, ahead)

    def _added(self, rows: list[Row], less: Sequence[Row] = (), octets: int | None = None) -> Row:
        """The sum of these rows less that of the others."""
        if self.width == 1:
            return sum(rows) - sum(less)
        return self._weighted([1] * len(rows) + [-1] * len(less), [*rows, *less], octets or _octets_of_sums(self))

    def _weighted(self, weights: list[int], rows: list[Row], octets: int) -> Row:
        """The sum of the rows, each times its weight, in this many bytes each."""
        if self.width == 1:
            return sum(map(mul, weights, rows))
        return self._in_pieces(lambda at: weighted_sum(weights, [row[at] for row in rows]), octets)

    def _in_pieces(self, compute: Callable[[slice], Integers], octets: int) -> Integers:
        """A row in this many bytes each, computed for so few counters at a time that all of it stays in the cache."""
        pieces = [slice(at, at + _AT_ONCE) for at in range(0, self.width, _AT_ONCE)]
        return np.concatenate([narrow(compute(piece), octets) for piece in pieces])

    def _split(self, kept: Packed, fresh: list[Row], passed: int, shape: Shape) -> tuple[list[Row], Packed]:
        """The first `passed` of these noises, and the others."""
        if fresh:
            kept = self._joined([*self._rows(kept), *fresh], octets_for(ceil(self.node_scale(shape))))
        return self._rows(kept, passed), kept.rest(passed * self.width)

    def _ended(self, shape: Shape, levels: "Levels | None", coins: Coins) -> Row:
        """The noise of an epoch's total, over 2^BITS: that of the root and of its children, drawn if they were not."""
        if levels is None:
            root = self._draws(self._root_scale, 1, coins)[0]
            children = self._drawn_sum(shape, shape.top, coins)
        else:
            root = levels.heads[-1]
            highest = levels.heads[-1 - _HEADS : -1]
            children = self._added([highest[place] for place in (0, 2, 3)])
        below = shape.total_handed_down
        return self._weighted([(1 << BITS) - below, below], [root, children], _WIDE)

    def _drawn_nodes(self, shape: Shape, count: int, coins: Coins) -> list[Row]:
        """The noises of `count` nodes."""
        return self._draws(self.node_scale(shape), count, coins) if count else []

    def _draws(self, scale: Fraction, count: int, coins: Coins) -> list[Row]:
        """`count` vectors of noise, drawn in parts that are narrowed before the next one is drawn."""
        octets, drawn = octets_for(ceil(scale)), []
        for size in parts(scale, count * self.width, _DRAWN_AT_ONCE):
            part = coins.discrete_laplace(scale, size)
            drawn.append(self._narrowed(part, octets))
        whole = drawn[0] if len(drawn) == 1 else np.concatenate(drawn)
        return list(whole.tolist() if self.width == 1 else whole.reshape(count, self.width))

    def _narrowed(self, drawn: Integers, octets: int) -> Integers:
        if drawn.dtype != np.int64:  # wide ones, or those of an enumeration, which decides them here
            drawn = np.array([int(value) for value in drawn], dtype=object)
        return drawn if self.width == 1 else narrow(drawn, octets)

    def _drawn_sum(self, shape: Shape, count: int, coins: Coins) -> Row:
        """The sum of the noises of `count` nodes."""
        most, total = max(1, _CHUNK // self.width), self._blank
        for at in range(0, count, most):
            total = self._added([total, *self._drawn_nodes(shape, min(most, count - at), coins)])
        return total

    @property
    def _blank(self) -> Row:
        return 0 if self.width == 1 else np.zeros(self.width, dtype=np.int16)

    def _rows(self, packed: Packed, count: int | None = None) -> list[Row]:
        """All rows, or the first ones, as narrow as they are kept."""
        if self.width == 1:
            return list(packed.integers.tolist() if count is None else packed.first(count).tolist())
        return packed.rows(self.width)[:count]

    def _joined(self, rows: list[Row], octets: int) -> Packed:
        return Packed(as_integers(rows), octets) if self.width == 1 else Packed.joined(rows, octets)

    def _heads(self, rows: list[Row], shape: Shape) -> Packed:
        return self._joined(rows, _octets_of_heads(self, shape))

    def _packed_past(self, row: Row) -> Packed:
        return self._joined([row], octets_for(ceil(self._root_scale) << BITS))


class Levels(NamedTuple):
    """The rows of `heads`, and `ahead`, of a state."""

    heads: list[Row]
    ahead: list[Packed]


def _held(shape: Shape, level: int, digit: int) -> int:
    """How many noises are kept from the path on: without a root, siblings ahead on the highest level have no weight."""
    if level + 1 < shape.height or shape.root is not None:
        return shape.siblings(level) - digit
    return 1 if level else 0


@lru_cache(maxsize=256)
def _octets_of_heads(noise: TreeNoise, shape: Shape) -> int:
    return octets_for(ceil(shape.arity * noise.node_scale(shape)))


@lru_cache(maxsize=256)
def _octets_of_sums(noise: TreeNoise) -> int:
    """In how many bytes sums of noises are kept in memory: by their scale, so that what was drawn decides nothing.

    >>> [_octets_of_sums(TreeNoise(Fraction(epsilon), 1, 2**20, 9)) for epsilon in ("1", "0.1")]
    [2, 8]
    """
    shape = noise.epoch(0).shape if noise.horizon is not None else noise._numbered(_LATE)
    return _NARROW if _FAR * shape.arity * noise.node_scale(shape) < 2 ** (8 * _NARROW - 1) else _WIDE


def _noise_at(at: slice, past: Row, weighing: list[tuple[int, Row]]) -> Integers:
    """The noise of the epochs before and of the rows, each times its weight, which is at most 1, at these places."""
    before = weighted_sum([1 << BITS], [past[at]])
    if not weighing:
        return before
    return before + weighted_sum([weight for weight, _ in weighing], [row[at] for _, row in weighing])


def _rounded(noise: Row) -> Row:
    """What is over 2^GRID_BITS, to the nearest whole number."""
    return noise + (1 << GRID_BITS >> 1) >> GRID_BITS

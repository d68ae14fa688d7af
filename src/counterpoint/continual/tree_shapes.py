"""Trees over time for counting by least squares: which noises a count is made of, and how each of them weighs.

A node of level j covers k^j steps, and every node has a noise of the same scale. A time t has one path through the
tree, to the step that comes next; beside the path, on each level, are siblings that are done and siblings that lie
ahead. The noise of the count at t is a weighted sum of their noises: with a share a on each level (the total weight of
the path above it, root included),

    a sibling that is done     1 - a, of which a part goes to its k children instead,
    the node on the path       the next lower share minus a (0 below the leaves),
    a sibling that lies ahead  -a.

Whatever the shares are, a step before t has total weight a + (1 - a) = 1 over the nodes above it, and every other step
has a - a = 0: this is all that privacy needs (theory, Counters). The shares are those of least variance, by the
recursion of least squares along the path (Honaker 2015 for binary trees, with all nodes; the children of done siblings
and the siblings ahead make nearly all of the difference, and are few). They are rounded to 2^-12, so a noise is an
integer over 2^24.

>>> shape = best_shape(2**20)
>>> shape
Shape(arity=20, height=5, top=7, root=None)
>>> round(float(shape.squares(2**19)[0]), 2), sum(shape.digits(2**19))  # the digits name nodes that cover the prefix
(19.74, 40)
"""

from collections.abc import Iterator
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

BITS = 12
"""Shares are rounded to 2^-BITS."""
GRID_BITS = 2 * BITS
"""Weights are whole numbers over 2^GRID_BITS."""

_ONE = 1 << BITS
_FINE = 1 << 32
"""Shares are computed in whole numbers over this, so that every machine computes the same."""

Node = tuple[int, int]
"""A level, from the leaves up, and an index from the left; the root is on a level of its own."""


class LevelWeights(NamedTuple):
    """What a noise of one level weighs, over 2^GRID_BITS: of a done sibling, of its children, of the path, ahead."""

    done: int
    below: int
    path: int
    ahead: int


class Shape(NamedTuple):
    """A tree of `height` levels in which a node has `arity` children, and the root has `top`.

    The root has a noise, too, if `root` is given: its variance, as a multiple of that of the other nodes.
    """

    arity: int
    height: int
    top: int
    root: Fraction | None = None

    @property
    def reach(self) -> int:
        """The last time that has a path: the step after it is the last one.

        >>> Shape(arity=3, height=2, top=4).reach
        11
        """
        width: int = self.top * self.arity ** (self.height - 1)
        return width - 1

    def siblings(self, level: int) -> int:
        """How many children the parent of a node of this level has."""
        return self.arity if level + 1 < self.height else self.top

    def digits(self, time: int) -> tuple[int, ...]:
        """On each level, from the leaves up, how many siblings of the path are done.

        >>> Shape(arity=3, height=2, top=4).digits(11)
        (2, 3)
        """
        found = []
        for _ in range(self.height - 1):
            time, digit = divmod(time, self.arity)
            found.append(digit)
        return (*found, time)

    @property
    def handed_down(self) -> int:
        """The part of a done node's weight that goes to each of its children, over 2^BITS: 1/(k + 1)."""
        return _nearest(_ONE, self.arity + 1)

    @property
    def total_handed_down(self) -> int:
        """The same for the root's, once all of its steps have come: v/(v + top), v its variance."""
        if self.root is None:
            return _ONE
        return _nearest(_ONE * self.root.numerator, self.root.numerator + self.top * self.root.denominator)

    def shares(self, time: int) -> tuple[int, ...]:
        """On each level the total weight of the path above it, over 2^BITS, from the leaves up.

        With d done and f ahead on a level, the variance below a share a is the least of w a^2 - 2 r a + ...: on the
        lowest level w = k and r = d, and upwards w' = w/(1 + w) + u d + f, r' = r/(1 + w) + u d, where u = k/(k + 1) is
        the variance of a done node with its children. The best share below a is (a + r)/(1 + w).

        >>> [share / 2**12 for share in Shape(arity=3, height=2, top=4).shares(4)]  # 1/(1 + 3)
        [0.25, 0.0]
        """
        digits, refined = self.digits(time), _FINE * self.arity // (self.arity + 1)
        w, r = self.siblings(0) * _FINE, digits[0] * _FINE
        found = [(w, r)]
        for level in range(1, self.height):
            done = digits[level]
            ahead = self.siblings(level) - 1 - done
            below = _FINE + w
            w, r = w * _FINE // below + refined * done + _FINE * ahead, r * _FINE // below + refined * done
            found.append((w, r))
        share = 0 if self.root is None else r * _FINE // (w + _FINE * self.root.numerator // self.root.denominator)
        shares = [share]
        for w, r in reversed(found[:-1]):
            share = (share + r) * _FINE // (_FINE + w)
            shares.append(share)
        return tuple(_nearest(share * _ONE, _FINE) for share in reversed(shares))

    def weights(self, time: int) -> tuple[LevelWeights, ...]:
        """The weights of each level, from the leaves up; the root's is the share of the highest level."""
        shares, found = self.shares(time), []
        for level, share in enumerate(shares):
            lower = shares[level - 1] if level else 0
            below = self.handed_down if level else 0
            done = _ONE - share
            found.append(LevelWeights(done * (_ONE - below), done * below, (lower - share) * _ONE, -share * _ONE))
        return tuple(found)

    def row_weights(self, time: int) -> list[int]:
        """The weights in one row: the four of each level, from the leaves up, and the root's if it has a noise.

        >>> [weight / 2**24 for weight in Shape(arity=3, height=2, top=4).row_weights(4)]
        [0.75, 0.0, -0.25, -0.25, 0.75, 0.25, 0.25, 0.0]
        """
        weights = [weight for level in self.weights(time) for weight in level]
        return weights if self.root is None else [*weights, self.shares(time)[-1] << BITS]

    def squares(self, time: int) -> tuple[Fraction, Fraction]:
        """The sum of the squared weights of the nodes, and that of the root: the variance of a count at this time."""
        total = 0
        for level, (done, weigh) in enumerate(zip(self.digits(time), self.weights(time), strict=True)):
            ahead = self.siblings(level) - 1 - done
            total += done * (weigh.done**2 + self.arity * weigh.below**2) + weigh.path**2 + ahead * weigh.ahead**2
        return Fraction(total, 4**GRID_BITS), Fraction(self.shares(time)[-1] ** 2, 4**BITS)

    def total_squares(self) -> tuple[Fraction, Fraction]:
        """The same of the count of all steps, once they have come."""
        below = self.total_handed_down
        return Fraction(self.top * below**2, 4**BITS), Fraction((_ONE - below) ** 2, 4**BITS)

    def most_squares(self, time: int) -> tuple[Fraction, Fraction]:
        """Sums of squared weights, of the nodes and of the root, that no time up to this one exceeds.

        Least squares does not exceed the choice of the share 1/2 on every level below the highest, and 0 there: a done
        node of the highest level then weighs 1, and every other one at most 1/2. Rounding moves each of the shares and
        of the parts that are handed down by less than 2^-BITS from where the sum is least, so adds at most 4 (k + 1)
        4^-BITS for every node. The share of the root is r/(w + v) with r <= 1 + u d, w >= u (top - 1) (see `shares`).

        >>> shape = best_shape(1000)
        >>> float(max(shape.squares(time)[0] for time in range(1001))), float(shape.most_squares(1000)[0])
        (10.6..., 12.0...)
        """
        done = self.digits(time)[-1]
        others = 2 + (self.height - 1) * (self.arity - 1)
        rounding = Fraction(4 * (self.arity + 1) * (1 + self.top + self.height * self.arity), 4**BITS)
        if self.root is None:
            return done + Fraction(others, 4) + rounding, Fraction(0)
        refined = Fraction(self.arity, self.arity + 1)
        share = min(Fraction(1), (1 + refined * done) / (refined * (self.top - 1) + self.root) + Fraction(2, _ONE))
        return done + Fraction(others, 4) + rounding, share**2

    def named(self, time: int) -> Iterator[tuple[Node, int]]:
        """Every node that has a weight at this time, and its weight over 2^GRID_BITS.

        >>> steps, shape = [0] * 12, Shape(arity=3, height=2, top=4)
        >>> for (level, index), weight in shape.named(7):
        ...     for step in range(index * 3**level, (index + 1) * 3**level):
        ...         steps[step] += weight
        >>> [step // 2**24 for step in steps]
        [1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0]
        """
        if self.root is not None:
            yield (self.height, 0), self.shares(time)[-1] * _ONE
        for level, weigh in enumerate(self.weights(time)):
            path = time // self.arity**level
            first = path - self.digits(time)[level]
            for index in range(first, path):
                yield (level, index), weigh.done
                if level:
                    for child in range(index * self.arity, (index + 1) * self.arity):
                        yield (level - 1, child), weigh.below
            yield (level, path), weigh.path
            for index in range(path + 1, first + self.siblings(level)):
                yield (level, index), weigh.ahead

    def named_in_total(self) -> Iterator[tuple[Node, int]]:
        """The same for the count of all steps, once they have come."""
        below = self.total_handed_down
        yield (self.height, 0), (_ONE - below) * _ONE
        for index in range(self.top):
            yield (self.height - 1, index), below * _ONE


@lru_cache(maxsize=1024)
def best_shape(last: int, rooted: bool = False) -> Shape:
    """The tree for times up to `last` with the smallest root mean square error, or within a hundredth of it.

    In units of (reach/epsilon)^2 / 3 the mean variance is about h^2 (3 last/k^(h-1) + (h - 1)(k - 1)): half of the
    highest level's siblings are done, at a weight of 1, and on another level d of k are, at a cost of d (k - d)/k. If
    the root is to have a noise, too, the highest level is like the others.

    >>> [best_shape(2**n)[:2] for n in (4, 10, 16, 20)]
    [(2, 1), (15, 3), (21, 4), (20, 5)]
    """
    top = last if rooted else 3 * last
    found = [(Fraction(top), 2, 1)]
    for height in range(2, last.bit_length() + 1):
        arity = _best_arity(top, height)
        if arity ** (height - 1) <= last:
            found.append((_cost(top, arity, height), arity, height))
    _, arity, height = min(found)
    return Shape(arity, height, last // arity ** (height - 1) + 1)


def _best_arity(top: int, height: int) -> int:
    """The arity of the smallest cost, which falls and then rises with it: by bisection, where it stops falling."""
    low, high = 2, 2 + (1 << top.bit_length() // (height - 1) + 1)
    while low < high:
        middle = (low + high) // 2
        falls = _cost(top, middle + 1, height) < _cost(top, middle, height)
        low, high = (middle + 1, high) if falls else (low, middle)
    return low


def _cost(top: int, arity: int, height: int) -> Fraction:
    return height**2 * (Fraction(top, arity ** (height - 1)) + (height - 1) * (arity - 1))


def _nearest(numerator: int, denominator: int) -> int:
    return (2 * numerator + denominator) // (2 * denominator)

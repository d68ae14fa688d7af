"""Trees over time for counting: balanced k-ary digits, and which nodes a count is made of.

A time t is written with h digits of an odd base k, each from -(k-1)/2 to (k-1)/2. Read from the top, the digits walk
from 0 to t: a digit d of level j adds the next d nodes of k^j steps each, or takes the last |d| away again, which may
reach into the future. Every step lies in one node of each level, and the nodes named by t, with their signs, cover
each step before t once and every other step not at all, net. That halves the largest digit of the plain k-ary tree
(Andersson et al. 2024; the trees are those of Dwork et al. 2010 and Chan et al. 2011).

>>> tree = Tree(arity=5, height=2)
>>> tree.reach, tree.digits(9)  # 9 = 2*5 - 1
(12, (-1, 2))
"""

from functools import lru_cache
from typing import NamedTuple


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

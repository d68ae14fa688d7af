"""The lazy delta: the mass that must be exposed if, until two messages differ, only the exposure may be used.

See errata, Henzinger E1.

For a history h of identical pairs, J(h) is the maximum over the next moves: a pair that differs needs the larger of
Lower^0 and Lower^1 after it, and an identical pair needs the sum over its answers of J. At the root J lies between
delta and 2 delta. It replaces delta in Henzinger et al. 2024, Lemma 5.6 and, for k > 1 and games that are not
symmetric, in Henzinger et al. 2024, Thm 5.4.

>>> from fractions import Fraction
>>> from counterpoint.mechanisms.examples import OpenDoor
>>> from counterpoint.verify.exactly.growing import grow
>>> from counterpoint.verify.games.menus import menu
>>> from counterpoint.verify.exactly.recursion import best, hockey_stick
>>> worlds = grow(OpenDoor("1/7"), menu(OpenDoor("1/7")).pairs, rounds=2)
>>> lower = tuple(best(worlds, hockey_stick(Fraction(1), bit)).values for bit in (0, 1))
>>> lazy_delta(worlds, lower)(0, 0) * worlds.factor
Fraction(1, 7)
"""

from collections.abc import Callable
from functools import cache
from typing import Any

from counterpoint.encoding import encode
from counterpoint.verify.exactly.arithmetic import Array
from counterpoint.verify.exactly.worlds import Worlds


def lazy_delta(worlds: Worlds, lower: tuple[list[Array], list[Array]]) -> Callable[[int, int], Any]:
    """J as a function of level and node, in the units of the node's masses."""
    same = [encode(left, sealed=True) == encode(right, sealed=True) for left, right in worlds.pairs]

    @cache
    def needed(level: int, node: int) -> Any:
        most = worlds.levels[level].masses[0][node] * 0
        choices = worlds.levels[level].choices
        if choices is None:
            return most
        for number in choices.of(node):
            edges = choices.edges(number)
            children, factors = choices.children[edges], choices.factors[edges]
            if same[int(choices.moves[number])]:
                worth = sum(f * needed(level + 1, int(child)) for f, child in zip(factors, children, strict=True))
            else:
                worth = max((factors * lower[bit][level + 1][children]).sum() for bit in (0, 1))
            most = max(most, worth)
        return most

    return needed

"""The best adversary, found backwards: what each node is worth to her who plays on as well as possible (S0 eq. 19).

A node is worth what it is worth to stop there, or by its best move the sum over the answers of what the next nodes are
worth, whichever is more. `Lower^b` has max(mu^b - e^eps mu^(1-b), 0) at its ends; its value at the root is the exact
delta over all adaptive adversaries (S0 Claim 1); Renyi has mu0^alpha mu1^(1-alpha). Both grow in proportion with the
masses, so one value serves all transcripts that share a node.

>>> from counterpoint import Ask, RandomizedResponse
>>> from counterpoint.verify.growing import grow
>>> worlds = grow(RandomizedResponse(0, delta="1/2"), [(Ask(private=0), Ask(private=1))], rounds=1)
>>> best(worlds, hockey_stick(Fraction(1), bit=0)).value
Fraction(1, 2)
"""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np

from counterpoint.verify.arithmetic import Array, Indices
from counterpoint.verify.worlds import Worlds

Worth: TypeAlias = Callable[[Array, Array], Array]
"""What it is worth to stop at nodes of these masses in the two worlds."""
STOP = -1
"""The move of an adversary who asks no more."""


@dataclass
class Best:
    """The value at the root, and for each level what every node is worth and which move is best there."""

    value: Any
    values: list[Array]
    moves: list[Indices]


def best(worlds: Worlds, worth: Worth, cut: int | None = None, *, floats: bool = False) -> Best:
    """The recursion; with `cut`, what was cut off in that world counts in full as well (an upper bound)."""
    levels = worlds.levels
    values: list[Array] = [np.empty(0)] * len(levels)
    moves: list[Indices] = [np.empty(0, dtype=np.intp)] * len(levels)
    for depth in range(len(levels) - 1, -1, -1):
        level = levels[depth]
        here = worth(*(mass.astype(np.float64) if floats else mass for mass in level.masses))
        chosen = np.full(len(here), STOP, dtype=np.intp)
        for fan in level.fans:
            factors = fan.factors.astype(np.float64) if floats else fan.factors
            total = _sum(factors, values[depth + 1][fan.children])
            if cut is not None:
                total = total + fan.cuts[cut]
            better = total > here[fan.parents]
            at = fan.parents[better]
            here[at], chosen[at] = total[better], fan.move
        values[depth], moves[depth] = here, chosen
    factor = float(worlds.factor) if floats else worlds.factor
    return Best(values[0][0] * factor, values, moves)


def _sum(factors: Array, values: Array) -> Array:
    """What the answers are worth together; no answer, no worth, however much (0 times infinity)."""
    if factors.dtype == object:
        return (factors * values).sum(axis=1)
    with np.errstate(invalid="ignore"):
        products: Array = np.where(factors > 0, factors * values, 0.0).sum(axis=1)
    return products


def hockey_stick(growth: Fraction | float, bit: int) -> Worth:
    """max(mu^b - growth mu^(1-b), 0)."""

    def worth(zero: Array, one: Array) -> Array:
        mine, other = (one, zero) if bit else (zero, one)
        sticks: Array = np.maximum(mine - other * growth, mine * 0)
        return sticks

    return worth


def nothing(zero: Array, _: Array) -> Array:
    """An end is worth nothing: what is counted is cut on the way."""
    worthless: Array = zero * 0
    return worthless


def renyi(alpha: float, bit: int) -> Worth:
    """(mu^b)^alpha (mu^(1-b))^(1-alpha): infinite where only this world gets."""

    def worth(zero: Array, one: Array) -> Array:
        mine, other = (one, zero) if bit else (zero, one)
        with np.errstate(divide="ignore", invalid="ignore"):
            powers: Array = np.where(mine > 0, mine * (mine / other) ** (alpha - 1), 0.0)
        return powers

    return worth

"""The best adversary, found backwards: what each node is worth to her who plays on as well as possible.

See Lyu 2022, eq. 19.

A node is worth what it is worth to stop there, or by its best move the sum over the answers of what the next nodes are
worth, whichever is more. `Lower^b` has max(mu^b - e^eps mu^(1-b), 0) at its ends; its value at the root is the exact
delta over all adaptive adversaries (Lyu 2022, Claim 1); Renyi has mu0^alpha mu1^(1-alpha). Both grow in proportion with
the masses, so one value serves all transcripts that share a node.

>>> from counterpoint import Ask, RandomizedResponse
>>> from counterpoint.verify.exactly.growing import grow
>>> worlds = grow(RandomizedResponse(0, delta="1/2"), [(Ask(private=0), Ask(private=1))], rounds=1)
>>> best(worlds, hockey_stick(Fraction(1), bit=0)).value
Fraction(1, 2)
"""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np

from counterpoint.verify.exactly.arithmetic import Array
from counterpoint.verify.exactly.worlds import Choices, Worlds

Worth: TypeAlias = Callable[[Array, Array], Array]
"""What it is worth to stop at nodes of these masses in the two worlds."""


@dataclass
class Best:
    """The value at the root, and what every node is worth, level by level."""

    value: Any
    values: list[Array]


def best(worlds: Worlds, worth: Worth, cut: int | None = None, *, floats: bool = False) -> Best:
    """The recursion; with `cut`, what was cut off in that world counts in full as well (an upper bound)."""
    values: list[Array] = []
    for level in reversed(worlds.levels):
        here = worth(*(_number(mass, floats) for mass in level.masses))
        if level.choices is not None:
            totals = worths(level.choices, values[-1], cut, floats=floats)
            first = np.flatnonzero(np.diff(level.choices.parents, prepend=-1))
            nodes = level.choices.parents[first]
            here[nodes] = np.maximum(here[nodes], np.maximum.reduceat(totals, first))
        values.append(here)
    factor = float(worlds.factor) if floats else worlds.factor
    return Best(values[-1][0] * factor, values[::-1])


def worths(choices: Choices, following: Array, cut: int | None = None, *, floats: bool = False) -> Array:
    """What each move is worth: the sum over its answers, and what was cut."""
    totals: Array = np.add.reduceat(_number(choices.factors, floats) * following[choices.children], choices.starts)
    return totals if cut is None else totals + choices.cuts[cut]


def _number(values: Array, floats: bool) -> Array:
    return values.astype(np.float64) if floats else values


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

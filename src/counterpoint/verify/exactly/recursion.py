"""The best adversary, by backward induction: the value of each node to an adversary that continues optimally.

See Lyu 2022, eq. 19.

The value of a node is the larger of two: the value of stopping there, and the sum over the answers to its best move of
the values of the next nodes. For `Lower^b` the value of stopping is max(mu^b - e^eps mu^(1-b), 0), and the value at the
root is the exact delta over all adaptive adversaries (Lyu 2022, Claim 1); for Renyi it is mu0^alpha mu1^(1-alpha). Both
are homogeneous in the masses, so one value serves all transcripts that share a node.

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
"""The value of stopping at nodes with these masses in the two worlds."""


@dataclass
class Best:
    """The value at the root, and the values of all nodes, level by level."""

    value: Any
    values: list[Array]


def best(worlds: Worlds, worth: Worth, cut: int | None = None, *, floats: bool = False) -> Best:
    """The recursion; with `cut`, the truncated mass of that world counts in full as well (an upper bound)."""
    values: list[Array] = []
    for level in reversed(worlds.levels):
        stopping = worth(*(_number(mass, floats) for mass in level.masses))
        if level.choices is not None:
            totals = worths(level.choices, values[-1], cut, floats=floats)
            first = np.flatnonzero(np.diff(level.choices.parents, prepend=-1))
            nodes = level.choices.parents[first]
            stopping[nodes] = np.maximum(stopping[nodes], np.maximum.reduceat(totals, first))
        values.append(stopping)
    factor = float(worlds.factor) if floats else worlds.factor
    return Best(values[-1][0] * factor, values[::-1])


def worths(choices: Choices, following: Array, cut: int | None = None, *, floats: bool = False) -> Array:
    """The value of each move: the sum over its answers, and the truncated mass."""
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
    """Stopping has value 0: only the truncated mass counts."""
    worthless: Array = zero * 0
    return worthless


def renyi(alpha: float, bit: int) -> Worth:
    """(mu^b)^alpha (mu^(1-b))^(1-alpha): infinite where only world b can be."""

    def worth(zero: Array, one: Array) -> Array:
        mine, other = (one, zero) if bit else (zero, one)
        with np.errstate(divide="ignore", invalid="ignore"):
            powers: Array = np.where(mine > 0, mine * (mine / other) ** (alpha - 1), 0.0)
        return powers

    return worth

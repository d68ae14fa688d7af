"""Coins for tests of local protocols: no noise at all, and noise that stays symbolic until it is compared."""

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np

from counterpoint.numbers import precision

DIGITS = 40
GRID = 10**DIGITS


class NoNoise:
    """Coins whose noise is always 0: with them nothing is private."""

    def discrete_laplace(self, scale, size=None):
        return 0 if size is None else np.zeros(size, dtype=np.int64)

    def call(self, experiment, *args):
        return experiment(*args, self)


@lru_cache
def exactly(scale: Fraction, z: int) -> Fraction:
    """P[noise = z] for discrete Laplace noise, to 40 places."""
    q = (-precision(2 * DIGITS)(1 / scale)).exp()
    return Fraction(int(((1 - q) / (1 + q) * q ** abs(z)).lower * GRID), GRID)


@lru_cache
def at_least(scale: Fraction, bound: int) -> Fraction:
    """P[noise >= bound], to 40 places."""
    if bound < 1:
        return 1 - at_least(scale, 1 - bound)
    q = (-precision(2 * DIGITS)(1 / scale)).exp()
    return Fraction(int((q**bound / (1 + q)).lower * GRID), GRID)


@dataclass(frozen=True)
class Symbolic:
    """Noise plus a number, not drawn until somebody compares it."""

    run: "SymbolicRun"
    scale: Fraction
    shift: int = 0

    def __add__(self, other):
        return Symbolic(self.run, self.scale, self.shift + other)

    __radd__ = __add__

    def __sub__(self, other):
        return self + -other

    def __lt__(self, bound):
        high = at_least(self.scale, bound - self.shift)
        return self.run.choose([(True, 1 - high), (False, high)])


class SymbolicRun:
    """One path through an experiment: noise is symbolic, but for that of a start, which is enumerated."""

    def __init__(self, path, reach):
        self.path, self.reach, self.widths, self.probability = path, reach, [], Fraction(1)
        self.starting = False

    def choose(self, options):
        depth = len(self.widths)
        self.widths.append(len(options))
        outcome, chance = options[self.path[depth] if depth < len(self.path) else 0]
        self.probability *= chance
        return outcome

    def discrete_laplace(self, scale, size=None):
        if size is not None:  # a vector is compared with 1 alone: 1 stands for all that is at least 1, 0 for the rest
            lie = at_least(Fraction(scale), 1)
            return np.array([self.choose([(0, 1 - lie), (1, lie)]) for _ in range(size)], dtype=np.int64)
        if not self.starting:
            return Symbolic(self, Fraction(scale))
        return self.choose([(z, exactly(Fraction(scale), z)) for z in range(-self.reach, self.reach + 1)])

    def call(self, experiment, *args):
        before, self.starting = self.starting, experiment.__name__ == "start"
        try:
            return experiment(*args, self)
        finally:
            self.starting = before


def law(experiment, reach=20):
    """Every outcome of `experiment(coins)` with its probability; noise of a start beyond `reach` is dropped."""
    found, waiting = {}, [()]
    while waiting:
        run = SymbolicRun(waiting.pop(), reach)
        outcome = experiment(run)
        found[outcome] = found.get(outcome, Fraction(0)) + run.probability
        taken = (*run.path, *(0 for _ in run.widths[len(run.path) :]))
        for depth in range(len(run.path), len(run.widths)):
            waiting.extend((*taken[:depth], other) for other in range(1, run.widths[depth]))
    return found

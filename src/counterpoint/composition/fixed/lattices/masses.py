"""Masses on a lattice whose distance from the true masses is known.

Privacy losses add, so their laws convolve. Floating point makes each law slightly wrong; `Masses` carries,
with the numbers, a bound on the sum of all absolute differences from the true ones, through convolution
(direct, or by fast Fourier transform with the error bound of Higham, Accuracy and Stability of Numerical
Algorithms, Thm 24.2) and through cutting off thin ends. What is computed with them can then be rounded to
either side, certainly.

>>> coin = Masses(0, np.array([0.5, 0.5]), 0.0)
>>> three = convolve_all([coin, coin, coin])
>>> three.values, three.error < 1e-14
(array([0.125, 0.375, 0.375, 0.125]), True)
"""

import heapq
import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count

import numpy as np
from numpy.typing import NDArray

UNIT = 2.0**-53
"""How far, relatively, one floating-point operation is from exact."""
_WIDER = 1 + 2.0**-20
"""The error bounds are computed in floating point too; this factor covers their own rounding many times over."""
_THIN = 1e-15
_NOTHING = 1e-300
"""Covers what is too small for a float."""
_FEW = 16
_SPECKS = 16
_BLOCK = 2**13
_PER_LEVEL = 16
"""Higham's constant for one level of the transform is below 7 units; 16 leaves room for any factorisation."""

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Masses:
    """`values[i]`, at least 0, at lattice point `start + i`; `error` bounds their total distance from the truth."""

    start: int
    values: Array
    error: float

    def total(self) -> float:
        """An upper bound on the sum of the values."""
        return float(np.sum(self.values)) * _WIDER

    def length(self) -> float:
        """An upper bound on the Euclidean norm of the values: the root of their largest times their sum."""
        return math.sqrt(float(np.max(self.values)) * self.total()) * _WIDER

    def trimmed(self, thin: float = _THIN) -> "Masses":
        """The same without its thin ends, whose mass is added to the error."""
        first, last = _thin(self.values, thin), len(self.values) - _thin(self.values[::-1], thin)
        cut = float(np.sum(self.values[:first])) + float(np.sum(self.values[last:]))
        return Masses(self.start + first, self.values[first:last], self.error + cut * _WIDER)

    @property
    def stop(self) -> int:
        """The first lattice point beyond the values."""
        return self.start + len(self.values)

    def between(self, first: int, stop: int) -> Array:
        """The values at the lattice points from `first` up to `stop`, with 0 where there are none.

        >>> Masses(1, np.array([0.25, 0.75]), 0.0).between(2, 5)
        array([0.75, 0.  , 0.  ])
        """
        window = np.zeros(max(0, stop - first))
        low, high = max(first, self.start), min(stop, self.stop)
        if low < high:
            window[low - first : high - first] = self.values[low - self.start : high - self.start]
        return window


def _thin(values: Array, thin: float) -> int:
    """How many values from the start add up to less than what matters."""
    if values[0] >= thin:
        return 0
    return min(int(np.searchsorted(np.cumsum(values), thin)), len(values) - 1)


def convolve(one: Masses, other: Masses) -> Masses:
    """The law of the sum of two independent losses.

    >>> convolve(Masses(2, np.array([1.0]), 0.0), Masses(5, np.array([0.25, 0.75]), 0.0)).start
    7
    """
    few, many = sorted((one, other), key=lambda law: int(np.count_nonzero(law.values)))
    places = np.flatnonzero(few.values)
    values, rounding = _by_shifting(few, places, many) if len(places) <= _FEW else _by_transform(one, other)
    inherited = one.error * other.total() + (one.total() + one.error) * other.error
    return Masses(one.start + other.start, values, (inherited + rounding + _NOTHING) * _WIDER).trimmed()


def _by_shifting(few: Masses, places: NDArray[np.intp], many: Masses) -> tuple[Array, float]:
    """Sums of products of numbers that are not negative: the relative error is a unit per operation."""
    values = np.zeros(len(few.values) + len(many.values) - 1)
    for place in places:
        values[place : place + len(many.values)] += few.values[place] * many.values
    return values, (len(places) + 2) * UNIT * few.total() * many.total()


def _by_transform(one: Masses, other: Masses) -> tuple[Array, float]:
    """Three transforms, each wrong by a fraction of the Euclidean norm; sqrt(n) turns that into a sum."""
    points = len(one.values) + len(other.values) - 1
    size = 1 << (points - 1).bit_length()
    product = np.fft.rfft(one.values, size) * np.fft.rfft(other.values, size)
    values = np.maximum(np.fft.irfft(product, size)[:points], 0.0)
    relative = _PER_LEVEL * UNIT * math.log2(size)
    norms = one.length() * other.total() + one.total() * other.length()
    return values, 3 * relative * norms * math.sqrt(points)


def convolve_all(laws: Sequence[Masses]) -> Masses:
    """The law of the sum of all: first those of a few points, in blocks, then always the two shortest."""
    order = count()
    queue = [(len(law.values), next(order), law) for law in _blocks(laws)]
    heapq.heapify(queue)
    while len(queue) > 1:
        law = convolve(heapq.heappop(queue)[2], heapq.heappop(queue)[2])
        heapq.heappush(queue, (len(law.values), next(order), law))
    return queue[0][2]


def power(law: Masses, copies: int) -> Masses:
    """The law of the sum of `copies` independent losses with this law, by repeated doubling.

    A transform leaves specks of rounding far beyond the mass, which would double with it: ends that are thin beside the
    error that is known anyway are cut.

    >>> power(Masses(1, np.array([0.5, 0.5]), 0.0), 3).values
    array([0.125, 0.375, 0.375, 0.125])
    """
    doubled, found = law, None
    while copies:
        if copies & 1:
            found = doubled if found is None else _cut(convolve(found, doubled))
        copies >>= 1
        if copies:
            doubled = _cut(convolve(doubled, doubled))
    return Masses(0, np.ones(1), 0.0) if found is None else found


def _cut(law: Masses) -> Masses:
    return law.trimmed(max(_THIN, law.error / _SPECKS))


def _blocks(laws: Sequence[Masses]) -> list[Masses]:
    """Laws of a few points added up by shifting: exact to a few units, and smooth enough for a transform then."""
    blocks: list[Masses] = []
    for law in sorted(laws, key=lambda law: len(law.values)):
        if blocks and len(blocks[-1].values) < _BLOCK and np.count_nonzero(law.values) <= _FEW:
            blocks[-1] = convolve(blocks[-1], law)
        else:
            blocks.append(law)
    return blocks

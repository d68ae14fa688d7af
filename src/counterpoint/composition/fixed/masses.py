"""Masses on a lattice whose distance from the true masses is known, and the moments of a loss.

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
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import count

import numpy as np
from numpy.typing import NDArray

from counterpoint.numbers import Interval, Precision

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


Groups = tuple[tuple[Fraction, int], ...]
"""Randomized responses: the different epsilons, all above 0, and how many there are of each."""

_DECIDED = 51.0
"""Odds of e^51 are as good as certain (a part drops weights below 1e-22): a steeper tilt would change nothing."""
_STEEPEST = 1e18
"""The most that tilt times the largest loss may be: E[e^(tilt L)] has to fit into a decimal."""
_TINY = 1e-60


def largest_loss(groups: Groups) -> Fraction:
    """The loss when every response is the truth: the sum of all epsilons.

    >>> largest_loss(((Fraction(1, 10), 3), (Fraction(1, 2), 1)))
    Fraction(4, 5)
    """
    return sum((epsilon * copies for epsilon, copies in groups), Fraction(0))


def common_measure(groups: Groups) -> Fraction:
    """The largest number that divides every epsilon.

    >>> common_measure(((Fraction(1, 10), 5), (Fraction(1, 4), 5)))
    Fraction(1, 20)
    """
    above = math.gcd(*(epsilon.numerator for epsilon, _ in groups))
    return Fraction(above, math.lcm(*(epsilon.denominator for epsilon, _ in groups)))


def moment(groups: Groups, tilt: Fraction, epsilon: Fraction, p: Precision) -> Interval:
    """E[e^(tilt (L - epsilon))], enclosed.

    >>> from counterpoint.numbers import precision
    >>> moment(((Fraction(2), 1),), Fraction(1), Fraction(2), precision(9)).agrees_to(7)
    True
    """
    product = p(1)
    for each, copies in groups:
        tilted, plain = (-p(each * (1 + 2 * tilt))).exp(), (-p(each)).exp()
        product = product * ((1 + tilted) / (1 + plain)) ** copies
    return product * p(tilt * (largest_loss(groups) - epsilon)).exp()


def heaviest(tilt: Fraction, p: Precision) -> Interval:
    """The largest value of e^(-tilt x) (1 - e^-x) over x > 0, enclosed: tilt^tilt / (1 + tilt)^(1 + tilt).

    >>> from counterpoint.numbers import precision
    >>> heaviest(Fraction(1), precision(6))
    Interval(0.249999, 0.250001)
    """
    if tilt == 0:
        return p(1)
    return (p(tilt / (1 + tilt)) ** p(tilt)) / (1 + tilt)


class LossShape:
    """The law of L in floating point: only to choose a tilt or a spacing; any choice is valid.

    L is the sum of independent losses, n_j of them eps_j with probability e^eps_j/(1+e^eps_j) and -eps_j otherwise. Its
    moment E[e^(tL)] has a closed form, and the Renyi divergence of order 1+t is log E[e^(tL)]/t (Mironov 2017, Def 3):
    so the Renyi bound on delta, and the tilt that moves a lattice's mass to where it is needed, are one formula.

    >>> shape = LossShape(((Fraction(1, 10), 100),))
    >>> tilt = shape.tilt_at_delta(math.log(1e-6))
    >>> round(shape.mean(float(tilt)), 2)
    4.8
    """

    def __init__(self, groups: Groups) -> None:
        epsilons = np.array([float(epsilon) for epsilon, _ in groups])
        self.epsilons = np.maximum(epsilons, _TINY * np.max(epsilons))
        self.copies = np.array([float(copies) for _, copies in groups])

    def mean(self, tilt: float) -> float:
        """The mean of L when every outcome is weighted by e^(tilt L): the derivative of the log moment."""
        return float(np.sum(self.copies * self.epsilons * np.tanh(self.epsilons * (0.5 + tilt))))

    def variance(self, tilt: float) -> float:
        """The variance of L under the same weights: the second derivative."""
        wrong = 1 / (1 + np.exp(np.minimum(self.epsilons * (1 + 2 * tilt), 700)))
        return float(np.sum(self.copies * self.epsilons**2 * 4 * wrong * (1 - wrong)))

    def largest_open(self, tilt: float) -> float:
        """The largest epsilon of which one of all the answers may be wrong under the same weights; 0 if none may."""
        decided = self.epsilons * (1 + 2 * tilt) - np.log(self.copies)
        return float(np.max(self.epsilons, initial=0.0, where=decided < _DECIDED))

    def log_moment(self, tilt: float) -> float:
        """The logarithm of E[e^(tilt L)]."""
        ratio = np.log1p(np.exp(-self.epsilons * (1 + 2 * tilt))) - np.log1p(np.exp(-self.epsilons))
        return float(np.sum(self.copies * (tilt * self.epsilons + ratio)))

    def tilt_at_epsilon(self, epsilon: float) -> Fraction:
        """The tilt (0 or more) that brings the mean of L to epsilon."""
        return self._first(lambda tilt: self.mean(tilt) >= epsilon)

    def tilt_at_delta(self, log_delta: float) -> Fraction:
        """The tilt whose mean is about the epsilon at delta, by the saddle point formula."""

        def reached(tilt: float) -> bool:
            spread = math.sqrt(2 * math.pi * self.variance(tilt))
            return self._exponent(tilt) - math.log1p(tilt * (1 + tilt) * spread) <= log_delta

        return self._first(reached)

    def renyi_tilt_at_delta(self, log_delta: float) -> Fraction:
        """The tilt at which the Renyi bound on epsilon is least."""
        return self._first(lambda tilt: tilt > 0 and self._exponent(tilt) - math.log1p(tilt) <= log_delta)

    def _exponent(self, tilt: float) -> float:
        return self.log_moment(tilt) - tilt * self.mean(tilt)

    def _first(self, reached: Callable[[float], bool]) -> Fraction:
        """The first tilt where a condition that stays true becomes true, to one part in a thousand."""
        if reached(0):
            return Fraction(0)
        low, high = 0.0, 1e-3 / float(np.max(self.epsilons))
        steepest = min(_DECIDED / float(np.min(self.epsilons)), _STEEPEST / float(np.sum(self.copies * self.epsilons)))
        while not reached(high) and high < steepest:
            low, high = high, 2 * high
        while high - low > 1e-3 * high:
            middle = (low + high) / 2
            low, high = (low, middle) if reached(middle) else (middle, high)
        return Fraction(f"{high:.6g}")

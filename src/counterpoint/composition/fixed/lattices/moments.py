"""The moments of the privacy loss of many randomized responses: where its mass lies, and how it thins out.

L is the sum of independent losses, n_j of them eps_j with probability e^eps_j/(1+e^eps_j) and -eps_j
otherwise. Its moment E[e^(tL)] has a closed form, and the Renyi divergence of order 1+t is log E[e^(tL)]/t
(Mironov 2017, Def 3): so the Renyi bound on delta, and the tilt that moves a lattice's mass to where it is
needed, are one formula.

>>> shape = LossShape(((Fraction(1, 10), 100),))
>>> tilt = shape.tilt_at_delta(math.log(1e-6))
>>> round(shape.mean(float(tilt)), 2)
4.8
"""

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np

from counterpoint.numbers import Interval, Precision

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
    """The largest number of which every epsilon is a multiple.

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
    """The law of L in floating point: only to choose a tilt or a spacing, for which any number will do."""

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

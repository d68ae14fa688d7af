"""Tails of sums of independent discrete Laplace noises with weights: two bounds, and the exact variance.

`sum_within` uses all scales and weights, and comes within a hundredth of the truth. `limit_of_sum` (Chernoff) needs
only the squares of the weights; the thresholds of a `MonotoneHistogram` rest on it.

>>> deviation_of_sum([(Fraction(3), 18)]), bound_of_sum([(Fraction(3), 18)], Fraction("0.95"))
(17.916935939641977, 51)
>>> three, half = (Fraction(3), Fraction(1), 18), (Fraction(3), Fraction(1, 2), 4)
>>> sum_within([three], Fraction("0.05"), Fraction(1)), sum_within([three, half], Fraction("0.05"), Fraction(1))
(35, 36)
"""

from collections.abc import Iterable, Sequence
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache, partial
from math import ceil, exp, expm1, floor, frexp, ldexp, log, pi
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from counterpoint.numbers import Interval, Precision, certify, precision
from counterpoint.numbers.exact import float_up

Part = tuple[Fraction, int | Fraction]
"""A scale, and the number of independent draws of it; of weighted ones, the sum of the squared weights."""
Term = tuple[Fraction, Fraction, int]
"""A scale, a weight, and the number of independent draws of this scale that have this weight."""

_DIGITS = 30
_GRID = 1024


def squares(terms: Sequence[Term]) -> list[Part]:
    """For each scale the sum of the squared weights.

    >>> squares([(Fraction(3), Fraction(1, 2), 4), (Fraction(3), Fraction(-1), 1)])
    [(Fraction(3, 1), Fraction(2, 1))]
    """
    totals: dict[Fraction, Fraction] = {}
    for scale, weight, count in terms:
        totals[scale] = totals.get(scale, Fraction(0)) + weight**2 * count
    return list(totals.items())


def deviation_of_sum(parts: Sequence[Part]) -> float:
    """The standard deviation of the sum, rounded up.

    >>> deviation_of_sum([])
    0.0
    """
    used = [(scale, count) for scale, count in parts if count]
    if not used:
        return 0.0
    return float_up(certify(lambda p: _variance(used, p).sqrt()).upper)


def _variance(parts: Sequence[Part], p: Precision) -> Interval:
    total = p(0)
    for scale, count in parts:
        missing = (-p(1 / scale)).expm1()
        total = total + 2 * count * (-p(1 / scale)).exp() / (missing * missing)
    return total


def bound_of_sum(parts: Sequence[Part], probability: Fraction) -> int:
    """An integer that the sum exceeds in absolute value at most with probability 1 - `probability` (which is below 1).

    >>> bound_of_sum([(Fraction(1), 1)], Fraction("0.99")) >= 5  # P[|X| >= 5] is 0.0099
    True
    """
    return max(0, ceil(limit_of_sum(parts, probability)) - 1)  # the sum is a whole number below the limit


def limit_of_sum(parts: Sequence[Part], probability: Fraction) -> Fraction:
    """What the sum, of weighted noises too, reaches in absolute value at most with probability 1 - `probability`.

    0 if there is no noise.

    With q = e^(-1/scale) a discrete Laplace draw has variance 2q/(1-q)^2 and, for |l| < 1/scale, E e^(lX) =
    (1-q)^2/((1-q e^l)(1-q e^-l)). By Markov's inequality on e^(lX) and symmetry, P[|X| >= x] <= 2 e^(-lx) E e^(lX) for
    the sum X too, whose E e^(lX) is the product (Chernoff). So |X| < x except with probability beta, for every l at x =
    (ln(2/beta) + sum of ln E e^(lX))/l. The l is searched for; whichever is taken, the bound holds, rounded up.

    Noises may have weights c with |c| <= 1: their variance has the factor c^2, and ln E e^(lcX) <= c^2 ln E e^(lX). For
    ln E e^(lX) is a convex function of l^2 that is 0 at 0: cosh l is convex in l^2, by its series, and -ln(1 + q^2 - 2
    q y) convex and growing in y. So a number of draws may be a sum of squared weights, and need not be whole.

    >>> float(limit_of_sum([(Fraction(3), Fraction(1, 4))], Fraction("0.95")))
    13.4...
    """
    used = tuple((scale, count) for scale, count in parts if count)
    return _limit(used, probability) if used else Fraction(0)


@lru_cache(maxsize=256)
def _limit(parts: tuple[Part, ...], probability: Fraction) -> Fraction:
    at = partial(_chernoff, parts, precision(_DIGITS)(2 / (1 - probability)).log())
    low, high = 1, _GRID - 1
    while high - low > 2:  # the bound falls and then rises with the tilt
        left, right = low + (high - low) // 3, high - (high - low) // 3
        low, high = (low, right) if at(left) <= at(right) else (left, high)
    return Fraction(min(at(tilt) for tilt in range(low, high + 1)))


def _chernoff(parts: tuple[Part, ...], log_odds: Interval, tilt: int) -> Decimal:
    """The bound x at l = tilt/1024 of the largest that the widest part allows."""
    p = log_odds.precision
    slope = Fraction(tilt, _GRID) / max(scale for scale, _ in parts)
    total = log_odds
    for scale, count in parts:
        ends = p(1 / scale), p(1 / scale - slope), p(1 / scale + slope)
        middle, near, far = ((-(-end).expm1()).log() for end in ends)
        total = total + count * (2 * middle - near - far)
    return (total / p(slope)).upper


Array = NDArray[np.float64]
Complex = NDArray[np.complex128]

_UNIT = 2.0**-53
_TILTS = [part / 32 for part in range(1, 31)]
"""Where l is looked for, in parts of the largest that the noise allows: a - cl is at least a/16 then (`Group`)."""
_SMOOTH = 400
"""s is this part of Chernoff's bound."""
_KEPT = 0.99865
"""Less than P[W > -3s] = 1 - Q(3)."""
_REACH = 6
"""Terms are left out from su = 6 on: together they are at most e^(-(su)^2/2)/(pi (su)^2)."""
_ALIASES = 20
"""h falls by this power of e over 2 pi/d, to either side."""
_MOST_POINTS = 2**15
_HALVINGS = 24
_SURE = 1 + 2.0**-40
"""More than what a few operations round."""
_FAR = 10**100
_LARGEST_EXPONENT = 700
"""1/(e^x - 1) is taken for 0 beyond: it is below 10^-300."""


def sum_within(terms: Iterable[Term], fails: Fraction, gap: Fraction) -> int:
    """A whole m such that the sum reaches m + gap in absolute value with a chance of at most `fails`.

    It is the least, or a hundredth above it; 0 if there is no noise.

    From above, by inverting the Laplace transform of the sum on a grid.

    Let S be the sum, W an independent N(0, s^2), Y = S + W and M(z) = E e^(zY). For l > 0 the function
    h(y) = e^(ly) P[Y > y] has the Fourier transform M(l + iu)/(l + iu), so by Poisson summation

        sum over all k of h(y + 2 pi k/d) = d/(2 pi) sum over all j of e^(-ijdy) M(l + ijd)/(l + ijd).

    No h is negative: whatever d and l are, the right side is at least h(y), and e^(-ly) times it at least P[Y > y]. W
    makes the terms vanish, so that a few thousand are enough, with a bound on the others; and as S and W are
    independent, P[S >= x] <= P[Y > x - 3s]/P[W > -3s]. Every approximation is by a number that is too large (theory,
    Counters).

    >>> three, half = (Fraction(3), Fraction(1), 18), (Fraction(3), Fraction(1, 2), 4)
    >>> sum_within([three], Fraction("0.05"), Fraction(1)), sum_within([three, half], Fraction("0.05"), Fraction(1))
    (35, 36)
    """
    used = tuple(sorted((scale, abs(weight), count) for scale, weight, count in terms if weight and count))
    if not used or fails >= 1:
        return 0
    return max(0, ceil(_tail_limit(used, fails) - gap))


@lru_cache(maxsize=1024)
def _tail_limit(terms: tuple[Term, ...], fails: Fraction) -> Fraction:
    """What the sum reaches in absolute value with a chance of at most `fails`.

    A geometric draw is the whole part of an exponential one: that of scale s is m times one of scale s/m, and at most m
    - 1 more. So scales too large for floats are divided. Noise of a scale below 10^-100 is 0, but for a chance that no
    `fails` comes near.
    """
    coarse = floor(max(scale for scale, _, _ in terms) / _FAR) + 1
    kept = tuple((scale / coarse, weight, count) for scale, weight, count in terms if scale * _FAR > 1)
    if not kept:
        return Fraction(1, _FAR)
    rest = (coarse - 1) * sum((weight * count for _, weight, count in kept), Fraction(0))
    allowed = log(fails.numerator) - log(fails.denominator) - log(2) - 2.0**-40
    noise = Tilted.best(kept, allowed)
    short, enough = 0.0, noise.chernoff
    while noise.log_tail(enough) > allowed:
        short, enough = enough, 1.25 * enough
    for _ in range(_HALVINGS):
        middle = (short + enough) / 2
        short, enough = (short, middle) if noise.log_tail(middle) <= allowed else (middle, enough)
    return coarse * Fraction((enough + 3 * noise.smooth) * _SURE) + rest


class Group(NamedTuple):
    """Draws of one scale and weight c at a tilt l, with a = 1/scale: what their transform is made of.

    A tilted draw is the difference of two geometric ones, so that E e^((l + iu)cX)/E e^(lcX) is one over
    (1 + up (1 - e^(icu)))(1 + down (1 - e^(-icu))), with up = 1/(e^(a - cl) - 1) and down = 1/(e^(a + cl) - 1).
    """

    weight: float
    draws: int
    up: float
    down: float
    log_moment: float

    @classmethod
    def tilted(cls, term: Term, tilt: float) -> "Group":
        """With the log of E e^(lcX) = (1 - e^-a)^2/((1 - e^(cl - a))(1 - e^(-cl - a))), rounded up.

        a - cl is wrong by at most 3 units of a, so by 48 of itself, and ln(1 - e^-x) by no more than x is.
        """
        rate, weight = float(1 / term[0]), float(term[1])
        near, far = rate - weight * tilt, rate + weight * tilt
        middle, left, right = (log(-expm1(-x)) for x in (rate, near, far))
        off = _UNIT * (64 - 8 * (2 * middle + left + right))
        return cls(weight, term[2], _odds(near), _odds(far), 2 * middle - left - right + off)

    def log_transform(self, points: Array) -> Complex:
        """The log of the transform of one draw at each u: of factors that are 1 and more, without cancellation."""
        sine, cosine = np.sin(points * (self.weight / 2)), np.cos(points * (self.weight / 2))
        missing = 2 * sine * (sine - 1j * cosine)  # 1 - e^(icu), whose real part is not negative
        found: Complex = -np.log((1 + self.up * missing) * (1 + self.down * missing.conj()))
        return found

    def lost(self, points: Array, logs: Array) -> Array:
        """In units, what rounding moves the log of the transform of one draw by, less than.

        `up` may be off by 64 units of itself and of a - cl, which moves the log by 112; cu by a unit of itself, which
        moves the log by `up` times that; sines, products and the log are as many units of theirs as there are steps.
        """
        moved: Array = 256 + 4 * self.up * self.weight * points + 64 * (1 + logs)
        return moved


def _odds(x: float) -> float:
    """1/(e^x - 1), for x above 0."""
    return 1 / expm1(x) if x < _LARGEST_EXPONENT else 0.0


class Tilted(NamedTuple):
    """The smoothed sum at a tilt l: its transform at the points u = 0, d, 2d, ..., and how far that may be off.

    `log_moment` is ln M(l), rounded up. `values` are M(l + iu)/M(l) by l + iu, twice but for u = 0, as those at -u are
    their conjugates; `off` bounds what each lacks.
    """

    tilt: float
    chernoff: float
    smooth: float
    spacing: float
    points: Array
    log_moment: float
    values: Complex
    off: Array

    @classmethod
    def best(cls, terms: tuple[Term, ...], allowed: float) -> "Tilted":
        """At the tilt at which Chernoff's bound, (ln M(l) - allowed)/l, is least, of some."""
        largest = min(float(1 / (scale * weight)) for scale, weight, _ in terms)
        bounds = []
        for tilt in [largest * part for part in _TILTS]:
            groups = [Group.tilted(term, tilt) for term in terms]
            bounds.append(((sum(group.draws * group.log_moment for group in groups) - allowed) / tilt, tilt, groups))
        chernoff, tilt, groups = min(bounds, key=lambda bound: bound[0])
        return cls.smoothed(groups, tilt, chernoff, min(tilt, largest - tilt))

    @classmethod
    def smoothed(cls, groups: list[Group], tilt: float, chernoff: float, slowest: float) -> "Tilted":
        """The function h falls by about a factor e over a distance of 1/`slowest`."""
        smooth = chernoff / _SMOOTH
        last = _REACH * _SURE / smooth
        spacing = _short(max(2 * pi * slowest / _ALIASES, 2 * last / _MOST_POINTS))
        points = spacing * np.arange(ceil(last / spacing) + 1, dtype=np.float64)  # without rounding
        far, turned = smooth * points, smooth * tilt
        logs, lost = -far * far / 2 + 1j * turned * far, 32 * (1 + far * far + turned * far)
        for group in groups:
            each = group.log_transform(points)
            logs = logs + group.draws * each
            lost = lost + group.draws * len(groups) * group.lost(points, np.abs(each))
        values = np.exp(logs) / (tilt + 1j * points)
        values[1:] *= 2
        moment = sum(group.draws * group.log_moment for group in groups) + turned * turned / 2 * _SURE
        return cls(tilt, chernoff, smooth, spacing, points, moment, values, np.abs(values) * np.expm1(lost * _UNIT))

    def log_tail(self, x: float) -> float:
        """The log of P[S >= x + 3s], rounded up."""
        phases = x * self.points
        terms = (np.exp(-1j * phases) * self.values).real
        off = float(np.sum(self.off)) + _UNIT * float(np.sum((64 + 8 * phases) * np.abs(self.values)))
        beyond = exp(-_REACH * _REACH / 2) / (_REACH * _REACH)
        total = max(0.0, float(np.sum(terms))) * self.spacing / 2 + off * self.spacing + beyond
        size = self.tilt * x + self.log_moment
        return self.log_moment - self.tilt * x + log(total / (pi * _KEPT)) + 2.0**-40 + 64 * _UNIT * size


def _short(x: float) -> float:
    """X, rounded down to 20 binary digits: multiples of it are exact.

    >>> _short(1 / 3) == 349525 / 2**20
    True
    """
    mantissa, exponent = frexp(x)
    return ldexp(floor(mantissa * 2**20), exponent - 20)

"""What a launch with one trade-off curve leaves of another: a rest R' with f (x) R' at least as private as R.

A tensor product is no filter: it composes parameters that are fixed in advance. A filter for f-DP keeps what is left,
R, and admits f if it can name such an R' (theory, f-DP in general). Naming one is a search and may be heuristic; that
f (x) R' lies above R is then checked exactly, in integers.

The search looks among R's own outcomes (p, q) with their log-ratios multiplied by a t from 0 to 1: of randomized
response with epsilon that leaves t epsilon, of two normals at distance mu those at t mu. Outcomes that only one of the
two worlds has lose what f has of them.

The check: a curve of outcomes (p, q) lies above the line c - s alpha just if the sum of min(s p, q) is at least c
(Neyman and Pearson: the best test with weight s on its first error rejects where q > s p). R is the highest of its
lines, so that one sum for each of them decides.

>>> from counterpoint import TradeOff
>>> rest = rest_after(TradeOff.of_approx(0.3, 0).vertices, TradeOff.of_approx(1, 0).vertices)
>>> round(TradeOff(rest).epsilon_at(0), 9)
0.7
"""

from bisect import bisect_right
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate
from math import lcm

import numpy as np
from numpy.typing import NDArray

from counterpoint.privacy.formulas import curves

Floats = NDArray[np.float64]

Exposed = tuple[Fraction, Fraction]
"""How likely each world shows an outcome that the other never has."""

_GRID = 2**80
_STEPS = 48
_NOISE = 1 + 1e-13
_SMALLEST = 1e-300
_NEARLY = 0.9
_SHORTER = (1.0, 1 - 1e-14, 1 - 1e-12, 1 - 1e-10, 1 - 1e-8, 1 - 1e-6, 1 - 1e-4)
_ZERO, _HALF, _ONE = Fraction(0), Fraction(1, 2), Fraction(1)


@lru_cache(maxsize=256)  # a launch is quoted and then made, and losses recur
def rest_after(launched: curves.Points, left: curves.Points) -> curves.Points | None:
    """A rest R' with launched (x) R' nowhere below `left`; None if none was found.

    >>> rest_after(curves.NO_LOSS, curves.NO_LOSS) == curves.NO_LOSS
    True
    """
    if launched == curves.NO_LOSS:
        return left
    if not curves.lies_above(launched, left):  # then nothing may be left, and that would not do either
        return None
    search = _Search(launched, left)
    tried = [(search.largest(exposed), exposed) for exposed in _exposures(launched, left)]
    most = max(t for t, _ in tried)
    for t, exposed in tried:  # keep as much of the exposures as costs little else
        rest = search.certified(t, exposed) if t >= _NEARLY * most else None
        if rest is not None:
            return rest
    return curves.NO_LOSS


def lies_above_with(launched: curves.Points, rest: curves.Points, left: curves.Points) -> bool:
    """Whether launched (x) rest is nowhere below `left`; exact, and without writing the product out.

    >>> lies_above_with(curves.NO_LOSS, curves.NO_LOSS, curves.NO_LOSS)
    True
    """
    firsts, rests = _whole(curves.atoms(launched)), _whole(curves.atoms(rest))
    total = Fraction(sum(p for p, _ in firsts) * sum(p for p, _ in rests))
    ordered = sorted(rests, key=_ratio)
    ratios = [_ratio(pair) for pair in ordered]
    below = list(accumulate((q for _, q in ordered), initial=0))
    above = list(accumulate((p for p, _ in reversed(ordered)), initial=0))[::-1]
    for slope, height in curves.lines(left):
        smallest = _ZERO
        for p, q in firsts:  # min(slope p r, q u): q u where u/r <= slope p/q
            at = bisect_right(ratios, _ratio((q, slope * p)))
            smallest += q * below[at] + slope * p * above[at]
        if smallest < height * total:
            return False
    return True


def _ratio(pair: tuple[int, int] | tuple[int, Fraction]) -> tuple[int, Fraction]:
    """q/p, in an order in which what only the second world has comes last."""
    p, q = pair
    return (0, Fraction(q) / p) if p else (1, _ZERO)


def _whole(pairs: list[curves.Point]) -> list[tuple[int, int]]:
    """The outcomes in units of one small share, without those that never happen."""
    scale = lcm(*(value.denominator for pair in pairs for value in pair))
    return [(int(p * scale), int(q * scale)) for p, q in pairs if p or q]


def _exposures(launched: curves.Points, left: curves.Points) -> list[Exposed]:
    """How much of the outcomes that only one world has may be left: what f leaves of them, half of that, or nothing."""
    mine, used = _exposed(left), _exposed(launched)
    rest = [max(_ZERO, 1 - (1 - m) / (1 - u)) if u < 1 else _ZERO for m, u in zip(mine, used, strict=True)]
    return list(dict.fromkeys((_cut(rest[0] * part), _cut(rest[1] * part)) for part in (_ONE, _HALF, _ZERO)))


def _exposed(points: curves.Points) -> Exposed:
    pairs = curves.atoms(points)
    return sum((p for p, q in pairs if not q), _ZERO), sum((q for p, q in pairs if not p), _ZERO)


def _cut(value: Fraction) -> Fraction:
    return Fraction(int(value * _GRID), _GRID)


class _Search:
    """The search for t, in floats; what it finds is certified in integers."""

    def __init__(self, launched: curves.Points, left: curves.Points) -> None:
        self._launched, self._left = launched, left
        shared = [(p, q) for p, q in curves.atoms(left) if p and q]
        logs = np.array([(_log(p), _log(q)) for p, q in shared]).reshape(-1, 2)
        self._masses, self._losses = logs.sum(axis=1) / 2, logs[:, 1] - logs[:, 0]
        firsts = np.array([(float(p), float(q)) for p, q in curves.atoms(launched) if p and q]).reshape(-1, 2)
        self._firsts = firsts[:, :1], firsts[:, 1:]
        self._used = _exposed(launched)
        lines = curves.lines(left)
        self._steep = [(float(slope), float(1 - height)) for slope, height in lines if slope >= 1]
        self._flat = [(float(slope), float(slope - height)) for slope, height in lines if slope < 1]

    def largest(self, exposed: Exposed) -> float:
        """The largest t that seems to do, by halving."""
        low, high = 0.0, 1.0
        for _ in range(_STEPS):
            middle = (low + high) / 2
            low, high = (middle, high) if self._seems_enough(middle, exposed) else (low, middle)
        return low

    def certified(self, t: float, exposed: Exposed) -> curves.Points | None:
        """The rest at t, or at a t that is a little smaller if rounding made that one none."""
        for shorter in _SHORTER:
            rest = _rounded(*self._tempered(t * shorter, exposed), exposed)
            if rest is not None and lies_above_with(self._launched, rest, self._left):
                return rest
        return None

    def _tempered(self, t: float, exposed: Exposed) -> tuple[Floats, Floats]:
        p, q = (np.exp(self._masses + side * t * self._losses / 2) for side in (-1, 1))
        return p / p.sum() * float(1 - exposed[0]), q / q.sum() * float(1 - exposed[1])

    def _seems_enough(self, t: float, exposed: Exposed) -> bool:
        """Whether f (x) R' seems to lie above each line: in terms of what is missing, which may be tiny."""
        p, q = self._tempered(t, exposed)
        ps, qs = self._firsts[0] * p, self._firsts[1] * q
        only_p, only_q = (float(1 - (1 - f) * (1 - r)) for f, r in zip(self._used, exposed, strict=True))
        return all(
            only_q + float(np.maximum(qs - slope * ps * _NOISE, 0).sum()) <= room * _NOISE
            for slope, room in self._steep
        ) and all(
            slope * only_p + float(np.maximum(slope * ps - qs * _NOISE, 0).sum()) <= room * _NOISE
            for slope, room in self._flat
        )


def _rounded(p: Floats, q: Floats, exposed: Exposed) -> curves.Points | None:
    """The curve of these outcomes on a grid; what rounding leaves goes to the middle, where it tells least."""
    wholes = []
    for masses, gone in ((p, exposed[0]), (q, exposed[1])):
        whole = [_cut(Fraction(float(mass))) for mass in masses]
        middle = int(np.argmin(np.abs(np.log(q) - np.log(p))))
        whole[middle] += 1 - gone - sum(whole, _ZERO)
        if whole[middle] <= 0:
            return None
        wholes.append(whole)
    return curves.of_atoms([*zip(*wholes, strict=True), (exposed[0], _ZERO), (_ZERO, exposed[1])])


def _log(value: Fraction) -> float:
    """The logarithm; that of the smallest float where there is none so small."""
    return float(np.log(max(float(value), _SMALLEST)))

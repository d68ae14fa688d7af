"""Trade-off curves as plain geometry: convex chains of rational points, from (0, f(0)) down to (1, 0).

f(alpha) is the least type II error of a test with type I error alpha (Henzinger et al. 2024, Def 14.2, with randomised
tests: errata, Henzinger E20). By Neyman and Pearson such a curve is a pair of finite distributions in disguise: each
segment is an outcome, with its width as probability under P and its drop as probability under Q.

>>> curve = of_atoms([(Fraction(1, 2), Fraction(1, 10)), (Fraction(1, 2), Fraction(9, 10))])
>>> value_at(curve, Fraction(1, 4))
Fraction(11, 20)
"""

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate, groupby, pairwise
from math import lcm
from operator import itemgetter

import numpy as np
from numpy.typing import NDArray

Point = tuple[Fraction, Fraction]
Points = tuple[Point, ...]
Line = tuple[Fraction, Fraction]
"""(s, c) stands for the line c - s alpha."""
Share = tuple[int, int]
"""The probabilities of an outcome under P and Q, in some whole unit."""
Direction = tuple[int, int]
"""How far a segment goes to the right and up, in some whole unit."""

_ZERO, _HALF, _ONE = Fraction(0), Fraction(1, 2), Fraction(1)
NO_LOSS: Points = ((_ZERO, _ONE), (_ONE, _ZERO))
"""The curve of two equal distributions: no test is better than a coin."""


def length(points: Points) -> int:
    """About how many bits it takes to write the curve."""
    return sum(alpha.denominator.bit_length() + beta.denominator.bit_length() for alpha, beta in points)


def value_at(points: Points, alpha: Fraction) -> Fraction:
    """f(alpha), between the two points around alpha.

    >>> value_at(((_ZERO, _ONE), (_ONE, _ZERO)), Fraction(1, 3))
    Fraction(2, 3)
    """
    right = min(bisect_right(points, alpha, key=lambda point: point[0]), len(points) - 1)
    (a, at_a), (b, at_b) = points[right - 1], points[right]
    return at_a + (at_b - at_a) * (alpha - a) / (b - a)


def without_flat_points(points: Iterable[Point]) -> Points:
    """The same chain without points inside a segment, so that equal curves are equal tuples."""
    kept: list[Point] = []
    ways: list[Direction] = []
    for point in points:
        if kept and kept[-1] == point:
            continue
        way = _direction(kept[-1], point) if kept else None
        while way is not None and ways and _turn(ways[-1], way) == 0:
            kept.pop()
            ways.pop()
            way = _direction(kept[-1], point)
        kept.append(point)
        ways += [] if way is None else [way]
    return tuple(kept)


def is_convex(points: Points) -> bool:
    """Whether the chain never turns downward."""
    ways = [_direction(here, there) for here, there in pairwise(points)]
    return all(_turn(first, second) > 0 for first, second in pairwise(ways))


def _direction(here: Point, there: Point) -> Direction:
    """Where a segment goes, in some whole unit: reducing fractions would take most of the time that a curve takes."""
    (a, at_a), (b, at_b) = here, there
    widths, heights = a.denominator * b.denominator, at_a.denominator * at_b.denominator
    right = b.numerator * a.denominator - a.numerator * b.denominator
    up = at_b.numerator * at_a.denominator - at_a.numerator * at_b.denominator
    return right * heights, up * widths


def _turn(first: Direction, second: Direction) -> int:
    """Above 0 for a turn upward, 0 for none."""
    return first[0] * second[1] - second[0] * first[1]


def atoms(points: Points) -> list[Point]:
    """The outcomes (P, Q) of the pair of distributions that has this curve; the first has P = 0.

    >>> atoms(((_ZERO, Fraction(1, 2)), (_ONE, _ZERO)))
    [(Fraction(0, 1), Fraction(1, 2)), (Fraction(1, 1), Fraction(1, 2))]
    """
    return [(_ZERO, 1 - points[0][1])] + [(b[0] - a[0], a[1] - b[1]) for a, b in pairwise(points)]


def of_atoms(outcomes: Iterable[Point]) -> Points:
    """The curve of a pair of distributions: reject the likeliest evidence for Q first (Neyman, Pearson)."""
    return _of_shares(*_whole(list(outcomes)))


def product(one: Points, other: Points) -> Points:
    """The curve of the two pairs of distributions drawn independently."""
    (firsts, first_unit), (seconds, second_unit) = _whole(atoms(one)), _whole(atoms(other))
    return _of_shares([(p * r, q * s) for p, q in firsts for r, s in seconds], first_unit * second_unit)


def _whole(outcomes: Sequence[Point]) -> tuple[list[Share], int]:
    """The outcomes in shares of 1/unit, and the unit."""
    unit = lcm(*(value.denominator for outcome in outcomes for value in outcome))
    return [(p.numerator * (unit // p.denominator), q.numerator * (unit // q.denominator)) for p, q in outcomes], unit


def _of_shares(outcomes: list[Share], unit: int) -> Points:
    """The curve of outcomes that are given in shares of 1/unit: outcomes that are as likely make one segment."""
    alpha, beta = 0, unit - sum(q for p, q in outcomes if p == 0)
    chain = [(_ZERO, Fraction(beta, unit))]
    for p, q in _by_evidence([outcome for outcome in outcomes if outcome[0]]):
        alpha, beta = alpha + p, beta - q
        chain.append((Fraction(alpha, unit), Fraction(beta, unit)))
    return tuple(chain)


def _by_evidence(outcomes: list[Share]) -> Iterator[Share]:
    """Outcomes by q/p, the largest first, those with equal ratios as one.

    Dividing whole numbers rounds correctly, so that floats are in the right order, but for ratios that share one.
    """
    try:
        rough = [(q / p, p, q) for p, q in outcomes]
    except OverflowError:  # a ratio beyond all floats: they all share one
        rough = [(0.0, p, q) for p, q in outcomes]
    rough.sort(key=itemgetter(0), reverse=True)
    for _, group in groupby(rough, key=itemgetter(0)):
        alike = [(p, q) for _, p, q in group]
        first_p, first_q = alike[0]
        if all(q * first_p == first_q * p for p, q in alike):
            yield sum(p for p, _ in alike), sum(q for _, q in alike)
        else:
            exact: defaultdict[Fraction, list[Share]] = defaultdict(list)
            for p, q in alike:
                exact[Fraction(q, p)].append((p, q))
            for _, equal in sorted(exact.items(), key=itemgetter(0), reverse=True):
                yield sum(p for p, _ in equal), sum(q for _, q in equal)


def through(first: Points, second: Points) -> Points:
    """second(1 - first(alpha)): what is left of two steps, from P over R to Q, each with its own curve.

    A test with error alpha under P has power at most 1 - first(alpha) under R (Dong et al. 2022, Thm
    2.14).
    """
    chain = [(_ZERO, value_at(second, 1 - first[0][1]))]
    for (a, at_a), (b, at_b) in pairwise(first):
        passed = bisect_right(second, 1 - at_a, key=lambda point: point[0])
        reached = bisect_left(second, 1 - at_b, key=lambda point: point[0])
        for power, left in second[passed:reached]:  # where 1 - first passes a vertex of the second
            chain.append((a + (b - a) * (at_a - 1 + power) / (at_a - at_b), left))
        chain.append((b, value_at(second, 1 - at_b)))
    return without_flat_points(chain)


def lines(points: Points) -> list[Line]:
    """The lines whose upper envelope is the curve."""
    slopes = [((at_a - at_b) / (b - a), a, at_a) for (a, at_a), (b, at_b) in pairwise(points)]
    return [(slope, at_a + slope * a) for slope, a, at_a in slopes]


def envelope(candidates: Sequence[Line]) -> Points:
    """The highest of the lines (and of 0) at every alpha from 0 to 1."""
    slope, height = min(candidates, key=lambda line: (-line[1], line[0]))
    alpha = _ZERO
    chain = [(alpha, height)]
    flatter = [*candidates, (_ZERO, _ZERO)]
    while slope > 0:
        flatter = [line for line in flatter if line[0] < slope]
        alpha, next_slope, next_height = min(
            ((height - other_height) / (slope - other), other, other_height) for other, other_height in flatter
        )
        chain.append((alpha, height - slope * alpha))
        slope, height = next_slope, next_height
    return without_flat_points([*chain, (_ONE, _ZERO)])


def lies_above(one: Points, other: Points) -> bool:
    """Whether the first curve is nowhere below the second.

    >>> lies_above(((_ZERO, _ONE), (_ONE, _ZERO)), ((_ZERO, _ZERO), (_ONE, _ZERO)))
    True
    """
    corners = {alpha for alpha, _ in one} | {alpha for alpha, _ in other}
    return all(value_at(one, alpha) >= value_at(other, alpha) for alpha in corners)


Floats = NDArray[np.float64]

Exposed = tuple[Fraction, Fraction]
"""How likely each world shows an outcome that the other never has."""

_GRID = 2**80
_STEPS = 48
_NOISE = 1 + 1e-13
_SMALLEST = 1e-300
_NEARLY = 0.9
_SHORTER = (1.0, 1 - 1e-14, 1 - 1e-12, 1 - 1e-10, 1 - 1e-8, 1 - 1e-6, 1 - 1e-4)


@lru_cache(maxsize=256)  # a launch is quoted and then made, and losses recur
def rest_after(launched: Points, left: Points) -> Points | None:
    """A rest R' with launched (x) R' nowhere below `left`; None if none was found.

    The rest is an R' with f (x) R' at least as private as R.

    A filter for f-DP keeps what is left, R, and admits f if it finds such an R' (theory, f-DP in general). The search
    may be heuristic, because the result is checked exactly, in integers.

    The search looks among R's own outcomes (p, q) with their log-ratios multiplied by a t from 0 to 1: of randomized
    response with epsilon that leaves t epsilon, of two normals at distance mu those at t mu. Outcomes that only one of
    the two worlds has lose what f has of them.

    The check: a curve of outcomes (p, q) lies above the line c - s alpha just if the sum of min(s p, q) is at least c
    (Neyman and Pearson: the best test with weight s on its first error rejects where q > s p). R is the highest of its
    lines, so that one sum for each of them decides.

    >>> rest_after(NO_LOSS, NO_LOSS) == NO_LOSS
    True

    >>> from counterpoint import TradeOff
    >>> rest = rest_after(TradeOff.of_approx(0.3, 0).vertices, TradeOff.of_approx(1, 0).vertices)
    >>> round(TradeOff(rest).epsilon_at(0), 9)
    0.7
    """
    if launched == NO_LOSS:
        return left
    if not lies_above(launched, left):  # then nothing may be left, and that would not do either
        return None
    search = _Search(launched, left)
    tried = [(search.largest(exposed), exposed) for exposed in _exposures(launched, left)]
    most = max(t for t, _ in tried)
    for t, exposed in tried:  # keep as much of the exposures as costs little else
        rest = search.certified(t, exposed) if t >= _NEARLY * most else None
        if rest is not None:
            return rest
    return NO_LOSS


def lies_above_with(launched: Points, rest: Points, left: Points) -> bool:
    """Whether launched (x) rest is nowhere below `left`; exact, and without writing the product out.

    >>> lies_above_with(NO_LOSS, NO_LOSS, NO_LOSS)
    True
    """
    firsts, rests = _over_one_unit(atoms(launched)), _over_one_unit(atoms(rest))
    total = Fraction(sum(p for p, _ in firsts) * sum(p for p, _ in rests))
    ordered = sorted(rests, key=_ratio)
    ratios = [_ratio(pair) for pair in ordered]
    below = list(accumulate((q for _, q in ordered), initial=0))
    above = list(accumulate((p for p, _ in reversed(ordered)), initial=0))[::-1]
    for slope, height in lines(left):
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


def _over_one_unit(pairs: list[Point]) -> list[tuple[int, int]]:
    """The outcomes in units of one small share, without those that never happen."""
    scale = lcm(*(value.denominator for pair in pairs for value in pair))
    return [(int(p * scale), int(q * scale)) for p, q in pairs if p or q]


def _exposures(launched: Points, left: Points) -> list[Exposed]:
    """How much of the outcomes that only one world has may be left: what f leaves of them, half of that, or nothing."""
    mine, used = _exposed(left), _exposed(launched)
    rest = [max(_ZERO, 1 - (1 - m) / (1 - u)) if u < 1 else _ZERO for m, u in zip(mine, used, strict=True)]
    return list(dict.fromkeys((_cut(rest[0] * part), _cut(rest[1] * part)) for part in (_ONE, _HALF, _ZERO)))


def _exposed(points: Points) -> Exposed:
    pairs = atoms(points)
    return sum((p for p, q in pairs if not q), _ZERO), sum((q for p, q in pairs if not p), _ZERO)


def _cut(value: Fraction) -> Fraction:
    return Fraction(int(value * _GRID), _GRID)


class _Search:
    """The search for t, in floats; what it finds is certified in integers."""

    def __init__(self, launched: Points, left: Points) -> None:
        self._launched, self._left = launched, left
        shared = [(p, q) for p, q in atoms(left) if p and q]
        logs = np.array([(_log(p), _log(q)) for p, q in shared]).reshape(-1, 2)
        self._masses, self._losses = logs.sum(axis=1) / 2, logs[:, 1] - logs[:, 0]
        firsts = np.array([(float(p), float(q)) for p, q in atoms(launched) if p and q]).reshape(-1, 2)
        self._firsts = firsts[:, :1], firsts[:, 1:]
        self._used = _exposed(launched)
        tangents = lines(left)
        self._steep = [(float(slope), float(1 - height)) for slope, height in tangents if slope >= 1]
        self._flat = [(float(slope), float(slope - height)) for slope, height in tangents if slope < 1]

    def largest(self, exposed: Exposed) -> float:
        """The largest t that seems to do, by halving."""
        low, high = 0.0, 1.0
        for _ in range(_STEPS):
            middle = (low + high) / 2
            low, high = (middle, high) if self._seems_enough(middle, exposed) else (low, middle)
        return low

    def certified(self, t: float, exposed: Exposed) -> Points | None:
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


def _rounded(p: Floats, q: Floats, exposed: Exposed) -> Points | None:
    """The curve of these outcomes on a grid; what rounding leaves goes to the middle, where it tells least."""
    wholes = []
    for masses, gone in ((p, exposed[0]), (q, exposed[1])):
        whole = [_cut(Fraction(float(mass))) for mass in masses]
        middle = int(np.argmin(np.abs(np.log(q) - np.log(p))))
        whole[middle] += 1 - gone - sum(whole, _ZERO)
        if whole[middle] <= 0:
            return None
        wholes.append(whole)
    return of_atoms([*zip(*wholes, strict=True), (exposed[0], _ZERO), (_ZERO, exposed[1])])


def _log(value: Fraction) -> float:
    """The logarithm, of at least the smallest float."""
    return float(np.log(max(float(value), _SMALLEST)))

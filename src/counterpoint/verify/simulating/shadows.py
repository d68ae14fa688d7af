"""One pair of distributions as a postprocessing of another: Blackwell's theorem, made by hand and exact.

An outcome y of the first pair has masses (p, q) in the two worlds; an outcome c of the second has (u, v). If the curve
of the first pair is nowhere above that of the second, a kernel from y to c turns the one pair into the other
(Blackwell's theorem). It is built target by target. Write r = q/(p+q) for where an outcome stands, and lay what is left
of the first pair out on a line by r. The *shadow* of a target is the interval of that line that has its two masses u
and v; it is removed, and the next target follows, in any order.

Why the next one finds its shadow, too. Some kernel serves all targets; let E be what it takes for this one, and S the
shadow. Both have the same mass and the same mean of r. Inside its interval S takes all there is, so S - E is at least
0 inside and at most 0 outside. A convex function minus its chord over the interval is at most 0 inside and at least 0
outside; so S is the less spread of the two, and what S leaves is at least as spread as what E leaves, from which the
other targets can be made. (The shadow is that of Beiglbock and Juillet 2016.)

>>> from fractions import Fraction
>>> half, tenth = Fraction(1, 2), Fraction(1, 10)
>>> left = Remainder([(half, tenth), (half, 9 * tenth)])
>>> left.take((half, half))  # a fair coin, made of one that is not: the share of either outcome
[Fraction(1, 2), Fraction(1, 2)]
"""

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
from typing import Any

from counterpoint.verify.exactly.regions import Masses


class Remainder:
    """What is left of the first pair, in the order of r; `take` removes a shadow."""

    def __init__(self, outcomes: Sequence[Masses]) -> None:
        self._outcomes = outcomes
        weighing = [n for n, (p, q) in enumerate(outcomes) if p + q > 0]
        self._order = sorted(weighing, key=lambda n: outcomes[n][1] / (outcomes[n][0] + outcomes[n][1]))
        self._left = [outcomes[n][0] * 0 + 1 for n in range(len(outcomes))]

    def take(self, target: Masses) -> list[Any]:
        """Remove the shadow of a target: the share that is taken of each outcome."""
        shares = [share * 0 for share in self._left]
        mass, moment = target[0] + target[1], target[1]
        if mass <= 0:
            return shares
        sizes = [self._left[n] * (self._outcomes[n][0] + self._outcomes[n][1]) for n in self._order]
        ends = list(accumulate(sizes, initial=mass * 0))
        moments = list(accumulate((self._left[n] * self._outcomes[n][1] for n in self._order), initial=mass * 0))
        start = _start(ends, moments, mass, moment)
        for place, n in enumerate(self._order):
            taken = min(ends[place + 1], start + mass) - max(ends[place], start)
            if taken > 0:
                shares[n] = self._left[n] * min(taken / sizes[place], 1)
                self._left[n] -= shares[n]
        return shares


def _start(ends: list[Any], moments: list[Any], mass: Any, moment: Any) -> Any:
    """Where the interval of this mass begins whose second masses add up to `moment`.

    That sum grows with the beginning s, and is linear between the points where s or s + mass meets an end.
    """

    def held(start: Any) -> Any:
        return _at(ends, moments, start + mass) - _at(ends, moments, start)

    last = max(ends[-1] - mass, mass * 0)
    knots = sorted({mass * 0, last, *(knot for end in ends for knot in (end, end - mass) if 0 < knot < last)})
    low, high = 0, len(knots) - 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if held(knots[middle]) <= moment else (low, middle)
    below, above = held(knots[low]), held(knots[high])
    if moment >= above or above <= below:  # in floats, moments may be off by their last digits
        return knots[high]
    return knots[low] + (knots[high] - knots[low]) * max(moment - below, mass * 0) / (above - below)


def _at(ends: list[Any], moments: list[Any], point: Any) -> Any:
    """The second masses up to a point of the line."""
    place = bisect_right(ends, point) - 1
    if place >= len(ends) - 1:
        return moments[-1]
    width = ends[place + 1] - ends[place]
    return moments[place] + (moments[place + 1] - moments[place]) * (point - ends[place]) / width

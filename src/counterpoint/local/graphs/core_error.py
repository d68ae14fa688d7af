"""How far off private core numbers are: a bound for every graph, from public numbers alone (theory, Core numbers).

Let vertex w have the noise tau on its threshold and a fresh nu in each round. It leaves at level d if
nu - tau >= (neighbours left) - d + 1.

*Too low.* Let k be the core number of v, and u the first vertex of v's k-core to leave, at level d. It has at least its
own core number of neighbours left, so nu - tau >= core(u) - d + 1 >= k - d + 1 at one of the rounds of level d, and the
latter is at least what v is too low by. At lower levels the noise must be larger, by as much: with x in steps of
`step`, u fails in one round of some level with at most E[min(1, sum over x > alpha of P(nu >= x + tau))]. And all of
the k-core is left when u leaves: if a vertices are asked in that round, k <= a - 1, so that v is too low by at most the
*room* a - d.

*Too high.* If v is left after level d and its core number is below d - alpha, some w that is left has fewer than
d - alpha neighbours left. Let t be the first round in which that holds for w: whether it is t is known before its nu is
drawn, and w stays in that round: tau - nu > alpha. That is one round for each w, whatever the others were.

How many rounds a level has is not known in advance. Noises can be imagined as drawn in advance, for each level and
round. The s-th round of a level has an alpha of its own, for a sum over x that is larger by 1/w: the shares w of all s
add up to 1, and so all of these bounds hold at once.

>>> most_below(34, 1, (Fraction(4), Fraction(4)), Fraction(1, 20), rooms=(33, 32, 20))
33
>>> most_above(34, (Fraction(4), Fraction(4)), Fraction(1, 20))
30
"""

from collections.abc import Sequence
from fractions import Fraction
from math import expm1, log

from counterpoint.mechanisms.selecting.comparison_tails import Scales, least_alpha, log_draws

_SHARES = tuple(Fraction(part, 100) for part in (10, 5, 10, 17, 22, 16, 5, 5))
"""Of what may fail, for the rounds 1, 2, 3 to 4, 5 to 8, ... of a level: most graphs have 5 to 32 at some level.

Later ones share a tenth, halved each time.
"""
_REST = Fraction(1, 10)


class RoundRooms:
    """The largest room of the first, second, ... rounds of levels, of rounds in which a vertex left.

    >>> rooms = RoundRooms()
    >>> for level, asked in [(1, 9), (2, 9), (2, 7), (2, 6), (3, 6), (3, 0)]:
    ...     rooms.note(level, asked)
    >>> rooms.largest  # 9 were asked first at level 2, and 7 then; at level 3 all 6 left at once
    [7, 5]
    """

    def __init__(self) -> None:
        self.largest: list[int] = []
        self._level = self._asked = self._number = 0

    def note(self, level: int, asked: int) -> None:
        """Note how many vertices a round at this level asks; after the last round, how many are left."""
        if asked < self._asked:
            self.largest += [0] * (self._number - len(self.largest))
            self.largest[self._number - 1] = max(self.largest[self._number - 1], self._asked - self._level)
        self._number = self._number + 1 if level == self._level else 1
        self._level, self._asked = level, asked


def share_of(number: int) -> Fraction:
    """The share of the round of this number, from 1, at its level: those of as many binary digits have equal ones.

    >>> [str(share_of(number)) for number in (1, 2, 3, 4, 5)]
    ['1/10', '1/20', '1/20', '1/20', '17/400']
    """
    power = (number - 1).bit_length()
    beyond = max(0, power - len(_SHARES) + 1)
    share = _REST / (1 << beyond) if beyond else _SHARES[power]
    return share / (1 << max(0, power - 1))


def most_below(vertices: int, step: int, scales: Scales, fails: Fraction, rooms: Sequence[int]) -> int:
    """The least alpha such that no core number is more than alpha too low, but for a chance of `fails`.

    `rooms` are the largest rooms of the first, second, ... rounds of levels, of those in which a vertex left.
    """
    # From 1 on, the sum over x is no bound that a chance needs: so it is one as well where x + tau is below 1.
    levels = max(0.0, log_draws(scales, 1) - log(-expm1(-step / float(scales[1]))))
    worst = 0
    for number, room in enumerate(rooms, 1):
        if room > worst:
            share = share_of(number)
            more = log(share.denominator) - log(share.numerator)
            worst = max(worst, min(room, least_alpha(scales, fails / vertices, levels + more)))
    return worst


def most_above(vertices: int, scales: Scales, fails: Fraction) -> int:
    """The least alpha such that no vertex is left more than alpha levels beyond its core number, but for `fails`."""
    return least_alpha(scales, fails / vertices, log_draws(scales, 1))

"""How far off private core numbers are: a bound for every graph, from public numbers alone (theory, Core numbers).

Let vertex w have the noise tau on its threshold and a fresh nu in each round. It leaves at level d if
nu - tau >= (neighbours left) - d + 1.

*Too low.* Let k be the core number of v, and u the first vertex of v's k-core to leave, at level d. It has at least its
own core number of neighbours left, so nu - tau >= core(u) - d + 1 at one of the rounds of level d. If v ends up more
than alpha too low, that is more than alpha. At lower levels the noise must be larger, by as much: with at most R rounds
at each level, u fails with at most E[min(1, R sum over x > alpha of P(nu >= x + tau))], x in steps of `step`.

*Too high.* If v is left after level d and its core number is below d - alpha, some w that is left has fewer than
d - alpha neighbours left. Let t be the first round in which that holds for w: whether it is t is known before its nu is
drawn, and w stays in that round: tau - nu > alpha. That is one round for each w, whatever the others were.

R is not known in advance. Noises can be imagined as drawn in advance, for each level and round, so that one bound holds
for all R = 1, 2, 4, ... at once, at a share of what may fail for each.

>>> most_below(34, 1, (Fraction(4), Fraction(4)), Fraction(1, 20), repeats=8)
54
>>> most_above(34, (Fraction(4), Fraction(4)), Fraction(1, 20))
30
"""

from fractions import Fraction
from math import expm1, log

from counterpoint.mechanisms.selecting.comparison_tails import Scales, least_alpha, log_draws

_CLASSES = 8
"""The first powers of two of R have a tenth of what may fail; larger ones share the rest, halved each time."""


def most_below(vertices: int, step: int, scales: Scales, fails: Fraction, repeats: int) -> int:
    """The least alpha such that no core number is more than alpha too low, but for a chance of `fails`.

    `repeats` is the largest number of rounds at one level.
    """
    power = (repeats - 1).bit_length()
    share = Fraction(1, 10) if power < _CLASSES else Fraction(1, 5) / 2 ** (power - _CLASSES + 1)
    levels = -log(-expm1(-step / float(scales[1])))
    return least_alpha(scales, fails * share / vertices, log_draws(scales, 2**power) + levels)


def most_above(vertices: int, scales: Scales, fails: Fraction) -> int:
    """The least alpha such that no vertex is left more than alpha levels beyond its core number, but for `fails`."""
    return least_alpha(scales, fails / vertices, log_draws(scales, 1))

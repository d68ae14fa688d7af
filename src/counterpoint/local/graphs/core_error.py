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

from collections.abc import Callable
from fractions import Fraction
from math import exp, expm1, log, log1p

Scales = tuple[Fraction, Fraction]
"""The scale of the noise on the threshold, and of that in each round."""
_CLASSES = 8
"""The first powers of two of R have a tenth of what may fail; larger ones share the rest, halved each time."""
_CARE = 1e-9
"""By how much the logarithm of a chance is rounded up."""


def most_below(vertices: int, step: int, scales: Scales, fails: Fraction, repeats: int) -> int:
    """The least alpha such that no core number is more than alpha too low, but for a chance of `fails`.

    `repeats` is the largest number of rounds at one level.
    """
    power = (repeats - 1).bit_length()
    share = Fraction(1, 10) if power < _CLASSES else Fraction(1, 5) / 2 ** (power - _CLASSES + 1)
    each = float(scales[1])
    rounds = power * log(2) - log1p(exp(-1 / each)) - log(-expm1(-step / each))
    return _least(lambda alpha: _log_beyond(scales, alpha, rounds), fails * share / vertices)


def most_above(vertices: int, scales: Scales, fails: Fraction) -> int:
    """The least alpha such that no vertex is left more than alpha levels beyond its core number, but for `fails`."""
    once = -log1p(exp(-1 / float(scales[1])))
    return _least(lambda alpha: _log_beyond(scales, alpha, once), fails / vertices)


def _least(log_chance: Callable[[int], float], allowed: Fraction) -> int:
    """The least alpha whose chance is allowed, by doubling and halving."""
    most = log(allowed.numerator) - log(allowed.denominator) - _CARE
    short, enough = -1, 0
    while log_chance(enough) > most:
        short, enough = enough, 2 * enough + 1
    while enough - short > 1:
        middle = (short + enough) // 2
        short, enough = (short, middle) if log_chance(middle) <= most else (middle, enough)
    return enough


def _log_beyond(scales: Scales, alpha: int, log_factor: float) -> float:
    """The log of E[f(alpha + 1 + tau)], f(y) = min(1, c q^y) above 0 and else 1, q = e^(-1/each): two geometric series.

    >>> [round(exp(_log_beyond((Fraction(2), Fraction(3)), alpha, 1.0)), 4) for alpha in (3, 30)]
    [0.6879, 0.0002]
    """
    once, each = map(float, scales)
    first = max(1, -int(-log_factor * each // 1))  # from this y on f is below 1
    edge = first - alpha - 1  # tau from here on
    shrunk = exp(-1 / once)
    if edge > 0:
        return 0.0
    certain = (edge - 1) / once - log1p(shrunk)
    density = log(-expm1(-1 / once)) - log1p(shrunk)
    tail = log_factor - (alpha + 1) / each + density
    positive = tail - log(-expm1(-1 / once - 1 / each))
    negative = [tail + _log_series(1 / each - 1 / once, -edge)] if edge else []
    terms = [certain, positive, *negative]
    largest = max(terms)
    return largest + log(sum(exp(term - largest) for term in terms))


def _log_series(rate: float, count: int) -> float:
    """Log of the sum of e^(rate i) over i = 1, ..., count.

    >>> round(exp(_log_series(0.5, 2)), 4), round(exp(_log_series(-0.5, 2)), 4), exp(_log_series(0.0, 1))
    (4.367, 0.9744, 1.0)
    """
    if rate == 0:
        return log(count)
    slope = abs(rate)
    ends = rate * count if rate > 0 else rate
    return ends + log(-expm1(-slope * count)) - log(-expm1(-slope))

"""How far off comparisons with a noisy threshold are: the chance over the noise on the threshold and that of values.

Let tau be the noise on the threshold, drawn once, and nu that of a value: nu >= y has the chance q^y/(1 + q) for y > 0,
q = e^(-1/scale of nu). A comparison goes wrong by more than alpha, upward, if nu >= alpha + 1 + tau. So n of them do
with at most E[f(alpha + 1 + tau)], where f(y) = min(1, c q^y) above 0 and else 1, c = n/(1 + q): three geometric
series, over the tau at which f is 1, over those below 0 and over the others.

If values may lie on either side of the threshold, and be chosen by earlier answers, which tell of tau, each goes wrong
with at most P[nu >= alpha + 1 - |tau|], given tau: the same sums, with the tau below 0 twice. The bound by E[...] is
taken over tau and nu together; the noises' own tails, each at its worst, would add up to 1.3 to 2 times as much.

>>> scales = Fraction(2), Fraction(4)
>>> least_alpha(scales, Fraction(1, 100), log_draws(scales, 10)), least_alpha(scales, Fraction(1, 100), 0.0)
(26, 19)
"""

from fractions import Fraction
from math import exp, expm1, floor, log, log1p

Scales = tuple[Fraction, Fraction]
"""The scale of the noise on the threshold, and of that on each value."""

_CARE = 1e-9
"""By how much the logarithm of a chance is rounded up."""
_FAR = 10**15
_NEAR = Fraction(1, 10**100)
"""Noise of a smaller scale, whose inverse a float may not hold, is taken for noise of this one: both are 0."""


def log_draws(scales: Scales, draws: int) -> float:
    """The log of c for this number of draws of nu."""
    return log(draws) - log1p(exp(-float(1 / max(scales[1], _NEAR))))


def least_alpha(scales: Scales, fails: Fraction, log_factor: float, *, either: bool = False) -> int:
    """The least alpha of which the chance above is at most `fails`, by doubling and halving.

    A draw of scale s is m times one of scale s/m, but for m - 1 at most (`laplace_tails.py`). So scales too large for
    floats are divided by m: at alpha = m (alpha' + 3) - 3, nu - tau > alpha implies nu' - tau' > alpha' for theirs.
    """
    if fails >= 1:
        return 0
    coarse = floor(max(scales) / _FAR) + 1
    finer = max(scales[0] / coarse, _NEAR), max(scales[1] / coarse, _NEAR)
    allowed = log(fails.numerator) - log(fails.denominator) - _CARE
    short, enough = -1, 0
    while log_chance(finer, enough, log_factor, either=either) > allowed:
        short, enough = enough, 2 * enough + 1
    while enough - short > 1:
        middle = (short + enough) // 2
        holds = log_chance(finer, middle, log_factor, either=either) <= allowed
        short, enough = (short, middle) if holds else (middle, enough)
    return coarse * (enough + 3) - 3


def log_chance(scales: Scales, alpha: int, log_factor: float, *, either: bool = False) -> float:
    """The log of E[f(alpha + 1 + tau)], or of E[f(alpha + 1 - |tau|)] for values on either side.

    >>> scales = Fraction(2), Fraction(3)
    >>> [round(exp(log_chance(scales, alpha, 1.0)), 4) for alpha in (3, 30)]
    [0.6879, 0.0002]
    >>> round(exp(log_chance(scales, 30, 1.0, either=True)), 4)
    0.0003
    """
    once, each = map(float, scales)
    first = max(1, -int(-log_factor * each // 1))  # from this y on f is below 1
    edge = first - alpha - 1  # tau from here on
    if edge > 0:
        return 0.0
    shrunk = exp(-1 / once)
    certain = (edge - 1) / once - log1p(shrunk)
    density = log(-expm1(-1 / once)) - log1p(shrunk)
    middle = log_factor - (alpha + 1) / each + density  # at tau = 0
    negative = [middle + _log_series(1 / each - 1 / once, -edge)] if edge else []
    if either:
        return min(0.0, _log_sum([log(2) + term for term in (certain, *negative)] + [middle]))
    return _log_sum([certain, *negative, middle - log(-expm1(-1 / once - 1 / each))])


def _log_sum(logs: list[float]) -> float:
    """The log of a sum whose terms have these logs."""
    largest = max(logs)
    return largest + log(sum(exp(each - largest) for each in logs))


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

"""The (epsilon, delta) curve of a Gaussian mechanism on a Poisson sample, certified (theory, Sampling).

With mu = sensitivity/sigma and rate q, one unit that is removed turns (1-q) N(0, 1) + q N(mu, 1) into N(0, 1), and one
that is added the other way round. The likelihood ratio is monotone in x, so each hockey stick is a difference of
normal tails beyond one point.

>>> print(certify(lambda p: sampled_delta(Fraction(1), Fraction(1, 100), Fraction(1, 10), p), digits=6))
[0.0000729003769576..., 0.0000729003769576...]
"""

from fractions import Fraction

from counterpoint.numbers import Interval, Precision, certify, normal_tail, precision
from counterpoint.privacy.loss import DIGITS

_FACTOR = Fraction(2)
_NEGLIGIBLE = Fraction(1, 10**12)


def sampled_delta(mu: Fraction, rate: Fraction, epsilon: Fraction, p: Precision) -> Interval:
    """The larger hockey stick of the two directions; mu is above 0, the rate between 0 and 1.

    Removing: with e^eps = 1 - q + q e^(mu x - mu^2/2) at x, it is q Q(x - mu) - (e^eps - 1 + q) Q(x). Adding: with
    e^-eps in its place, (1 - e^eps (1-q)) Q(-x) - e^eps q Q(mu - x), as long as e^eps (1-q) < 1.
    """
    grown = p(epsilon).expm1()
    x = ((grown / rate).log1p()) / mu + mu / 2
    removed = rate * normal_tail(x - mu) - (grown + rate) * normal_tail(x)
    return _larger(removed, _added(mu, rate, epsilon, p), p)


def _added(mu: Fraction, rate: Fraction, epsilon: Fraction, p: Precision) -> Interval:
    left = 1 - p(epsilon).exp() * (1 - rate)  # of the mass of the first law, beyond what the second can cover
    shrunk = p(-epsilon).exp() - (1 - rate)
    if left.upper <= 0 or shrunk.upper <= 0:
        return p(0)
    if left.lower <= 0 or shrunk.lower <= 0:
        return p.between(0, left.upper)
    x = (shrunk / rate).log() / mu + mu / 2
    return left * normal_tail(-x) - p(epsilon).exp() * rate * normal_tail(mu - x)


def _larger(one: Interval, other: Interval, p: Precision) -> Interval:
    return p.between(max(one.lower, other.lower), max(one.upper, other.upper)).at_least(0)


def sampled_epsilon(mu: Fraction, rate: Fraction, delta: Fraction) -> Interval:
    """The epsilon at which the curve falls to delta, enclosed by two points that were tried; delta is above 0.

    >>> round(float(sampled_epsilon(Fraction(1), Fraction(1, 100), Fraction(1, 10**5)).upper), 6)
    0.19945
    """
    p = precision(DIGITS)

    def exceeds(epsilon: Fraction) -> bool:
        return Fraction(certify(lambda p: sampled_delta(mu, rate, epsilon, p), 20).upper) > delta

    low, high = Fraction(0), Fraction(1)
    if not exceeds(low):
        return p(0)
    while exceeds(high):
        low, high = high, high * _FACTOR
    while high - low > high * _NEGLIGIBLE:
        middle = (low + high) / 2
        low, high = (middle, high) if exceeds(middle) else (low, middle)
    return p.between(p(low).lower, p(high).upper)

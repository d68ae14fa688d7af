"""The (epsilon, delta) curves of Gaussian mechanisms, their inverses, and normal quantiles.

The inverses have no closed form. Newton's steps on the logarithm come close, each phase with twice the
digits of the one before; then two certified evaluations, one on either side, enclose the answer.

>>> from counterpoint.numbers import certify
>>> print(certify(lambda p: gaussian_delta(Fraction(1), Fraction(1), p), digits=6))
[0.126936737506643944, 0.126936737506643947]
"""

from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache

from counterpoint.numbers import Interval, Precision, certify, mills_ratio, normal_density, normal_tail, precision
from counterpoint.numbers.rounding import DIGITS, rounded_up, short

Curve = Callable[[Fraction, Precision], tuple[Interval, Interval]]
"""A positive, monotone function together with its derivative."""

_INVERSE_DIGITS = 25
_PHASES = (10, 20, _INVERSE_DIGITS + 5)
_MOST_DIGITS = 4000
_HUGE = 10**5
"""A pure epsilon from which on its mu is not worth an inversion."""
_FAINT = Fraction(1, 10**6)
"""A delta as near to 1 as this is inverted through 1 - delta: there tangents of the logarithm of delta are short."""


def gaussian_delta(mu: Fraction, epsilon: Fraction, p: Precision) -> Interval:
    """Q(a) - density(a) Mills(b) with a = eps/mu - mu/2, b = eps/mu + mu/2; mu is above 0.

    >>> gaussian_delta(Fraction(1, 100), Fraction(5, 100), precision(20))
    Interval(5.4814402007468774E-10, 5.4814402007468779E-10)
    """
    return _delta_and_slopes(mu, epsilon, p)[0].at_least(0)


def _delta_and_slopes(mu: Fraction, epsilon: Fraction, p: Precision) -> tuple[Interval, Interval, Interval]:
    """The delta, and its derivatives in epsilon and in mu."""
    middle = epsilon / mu
    a, b = p(middle - mu / 2), p(middle + mu / 2)
    density, ratio = normal_density(a), mills_ratio(b)
    thin = _is_thin(mu, middle, p)
    value = density * _mills_difference(mu, p(middle)) if thin else normal_tail(a) - density * ratio
    return value, -density * ratio, density


def _is_thin(mu: Fraction, middle: Fraction, p: Precision) -> bool:
    """Whether mu is so small that a and b agree in about as many digits as we work with: their tails would cancel."""
    return mu < Fraction(1, 10**20) and mu * (middle + 1) < Fraction(1, 10 ** (p.digits // 2))


def _mills_difference(mu: Fraction, middle: Interval) -> Interval:
    """Mills(middle - mu/2) - Mills(middle + mu/2), for a mu below 10^-20 and a middle that is not negative.

    It is the integral of g(x) = 1 - x Mills(x) over the mu between, so mu g(middle) + mu^3 g''(c)/24 for a c between.
    Mills' ratio is completely monotone and g is minus its derivative, so 0 < g''(c) <= g''(-mu/2) < 3 (g''(0) = 2).
    """
    p = middle.precision
    level = 1 - middle * mills_ratio(middle)
    return mu * (level + p.between(Decimal(0), p(mu * mu / 8).upper))


def gaussian_epsilon(mu: Fraction, delta: Fraction) -> Interval:
    """The epsilon with gaussian_delta = delta, enclosed, at least 0; mu > 0 and 0 < delta < 1."""
    if 1 - delta < _FAINT:
        return _epsilon_of_rest(mu, 1 - delta)
    if certify(lambda p: gaussian_delta(mu, Fraction(0), p) - delta, digits=1).upper <= 0:
        return precision(DIGITS)(0)

    def curve(epsilon: Fraction, p: Precision) -> tuple[Interval, Interval]:
        value, slope, _ = _delta_and_slopes(mu, epsilon, p)
        return value, slope

    p = precision(20 + 2 * max(0, _magnitude(mu)))  # epsilon/mu and mu/2 must not cancel
    larger = p(mu) * mu / 2 + mu * (-2 * p(delta).log()).sqrt()  # what mu^2/2-zCDP implies
    return solve(curve, delta, Fraction(larger.upper))


def gaussian_mu(epsilon: Fraction, delta: Fraction) -> Interval:
    """The mu with gaussian_delta = delta, enclosed; 0 < delta < 1."""
    if 1 - delta < _FAINT:
        return _mu_of_rest(epsilon, 1 - delta)

    def curve(mu: Fraction, p: Precision) -> tuple[Interval, Interval]:
        value, _, slope = _delta_and_slopes(mu, epsilon, p)
        return value, slope

    p = precision(20 + max(0, _magnitude(epsilon + 1)))
    surplus = -p(delta).log()
    by_zcdp = epsilon / ((surplus + epsilon).sqrt() + surplus.sqrt()) * p(2).sqrt()
    return solve(curve, delta, max(2 * delta, Fraction(by_zcdp.lower)))


def _rest_and_slopes(mu: Fraction, epsilon: Fraction, p: Precision) -> tuple[Interval, Interval, Interval]:
    """1 - delta = Q(-a) + density(a) Mills(b), where it is so small that 1 less it tells nothing; and its derivatives.

    As b >= -a it lies between Q(-a) and 2 Q(-a). It is log-concave in epsilon (the logarithms of min(1, e^x) and of a
    normal density are concave) and, where a < 0, in mu: the derivative of its logarithm is -1/(Mills(-a) + Mills(b)),
    and both ratios fall as mu grows.
    """
    _, falling, rising = _delta_and_slopes(mu, epsilon, p)
    return normal_tail(-p(epsilon / mu - mu / 2)) - falling, -falling, -rising


def _epsilon_of_rest(mu: Fraction, rest: Fraction) -> Interval:
    """The epsilon with 1 - gaussian_delta = rest, enclosed, at least 0: below mu (mu/2 - x) for Q(x) = rest.

    A tangent from there leads to the other side of the answer, and from there the tangents lead back.
    """
    if certify(lambda p: 2 * normal_tail(p(mu / 2)) - rest, digits=1).lower >= 0:
        return precision(DIGITS)(0)

    def curve(epsilon: Fraction, p: Precision) -> tuple[Interval, Interval]:
        value, slope, _ = _rest_and_slopes(mu, epsilon, p)
        return value, slope

    p = precision(DIGITS + 2 * max(0, _magnitude(mu)))
    larger = mu * (mu / 2 - p(Fraction(normal_quantile(rest).lower)))
    return solve(curve, rest, Fraction(larger.upper))


def _mu_of_rest(epsilon: Fraction, rest: Fraction) -> Interval:
    """The mu with 1 - gaussian_delta = rest, enclosed: below the one with mu/2 - epsilon/mu = x for Q(x) = rest/2."""

    def curve(mu: Fraction, p: Precision) -> tuple[Interval, Interval]:
        value, _, slope = _rest_and_slopes(mu, epsilon, p)
        return value, slope

    p = precision(DIGITS + max(0, _magnitude(epsilon + 1)))
    x = p(Fraction(normal_quantile(rest / 2).upper))
    return solve(curve, rest, Fraction((x + (x * x + 2 * epsilon).sqrt()).upper))


def gaussian_of_pure(epsilon: Fraction) -> Decimal:
    """The smallest mu with Q(mu/2) <= 1/(1+e^eps), rounded up (see `PureDP.as_gaussian`).

    For a huge epsilon sqrt(8 eps) serves: Q(x) <= e^(-x^2/2)/2, and e^-eps/2 <= 1/(1+e^eps).

    >>> round(gaussian_of_pure(Fraction(1)), 12)
    Decimal('1.232035385345')
    """
    if epsilon == 0:
        return Decimal(0)
    p = precision(DIGITS + 15 + max(0, -_magnitude(epsilon)))
    if epsilon > _HUGE:
        return (8 * p(epsilon)).sqrt().upper
    tail = 1 / (1 + p(epsilon).exp())
    return (2 * normal_quantile(Fraction(tail.lower))).upper


@lru_cache(maxsize=65536)
def square_of_pure(epsilon: Fraction) -> Fraction:
    """The square of that mu, rounded up; remembered, since losses recur.

    >>> round(float(square_of_pure(Fraction(1, 10))), 6)
    0.015702
    """
    return rounded_up(gaussian_of_pure(epsilon)) ** 2


def pure_of_gaussian(square: Fraction) -> Fraction:
    """The largest epsilon, cut to 12 digits, for which epsilon-DP is GaussianDP(sqrt square); 0 if there is none.

    The inverse of `gaussian_of_pure`: log((1 - Q(mu/2))/Q(mu/2)).

    >>> float(pure_of_gaussian(Fraction(1)))
    0.806965346304
    """
    if square <= 0:
        return Fraction(0)
    if square > 8 * _HUGE:
        return short(square / 8 * Fraction(10**12 - 1, 10**12))
    p = precision(DIGITS + max(0, -_magnitude(square)))
    tail = normal_tail(p(square / 4).sqrt())
    return short(Fraction(((1 - tail) / tail).log().at_least(0).lower))


def normal_quantile(tail: Fraction) -> Interval:
    """The x with Q(x) = tail, enclosed, for a tail between 0 and 1.

    >>> x = normal_quantile(Fraction(1, 40))
    >>> print(round(x.lower, 20), round(x.upper, 20))
    1.95996398454005423552 1.95996398454005423552
    """
    if tail >= Fraction(1, 2):
        return precision(DIGITS)(0) if tail == Fraction(1, 2) else -normal_quantile(1 - tail)
    larger = (-2 * (2 * precision(20)(tail)).log()).sqrt()
    return solve(lambda x, p: (normal_tail(p(x)), -normal_density(p(x))), tail, Fraction(larger.upper))


def solve(curve: Curve, target: Fraction, start: Fraction) -> Interval:
    """Where a curve takes the value `target`: a positive number, enclosed.

    `start` is a positive number on that side of the answer from which the tangents of the curve's logarithm
    lead back to it: below the answer if the curve rises, above it if it falls.
    """
    x = start
    for digits in _PHASES:
        for _ in range(100):
            value, slope = _refined(curve, x, digits)
            step = Fraction(((value.log() - value.precision(target).log()) * value / slope).upper)
            length = Fraction((value / slope).lower.copy_abs())  # over which the curve changes e-fold
            keep = digits + 10 + max(0, _magnitude(x) - _magnitude(length))
            x = Fraction(precision(keep)(x - step).lower) if step < x else x / 10
            if abs(step) <= min(x, length) / 10 ** (digits // 2):
                break
    return _enclosed(curve, target, x, min(x, length))


def _refined(curve: Curve, x: Fraction, digits: int) -> tuple[Interval, Interval]:
    """The curve at x, so precisely that it fixes `digits` digits of x."""
    working = digits + 12
    while True:
        p = precision(working)
        value, slope = curve(x, p)
        spread = p.ceiling.subtract(value.upper, value.lower)
        reach = min((slope * x).upper.copy_abs(), value.lower)
        if working >= _MOST_DIGITS or (reach > 0 and spread <= p.floor.scaleb(reach, -digits)):
            return value, slope
        working *= 2


def _enclosed(curve: Curve, target: Fraction, x: Fraction, scale: Fraction) -> Interval:
    """Between two points about x, so many places of `scale` apart that the curve certainly takes the value between."""
    for places in range(_INVERSE_DIGITS + 2, 0, -1):
        low, high = (x + scale * Fraction(sign, 10**places) for sign in (-1, 1))
        below, above = (_refined(curve, end, _INVERSE_DIGITS + 4)[0] for end in (low, high))
        if max(below.lower, above.lower) >= target >= min(below.upper, above.upper):
            p = precision(DIGITS)
            return p.between(p(low).lower, p(high).upper)
    raise ArithmeticError("the curve could not be inverted")


def _magnitude(value: Fraction) -> int:
    """The power of ten of its leading digit."""
    return precision(5)(value).upper.adjusted()


_FACTOR = Fraction(2)
_NEGLIGIBLE = Fraction(1, 10**12)


def sampled_delta(mu: Fraction, rate: Fraction, epsilon: Fraction, p: Precision) -> Interval:
    """The larger hockey stick of the two directions; mu is above 0, the rate between 0 and 1.

    Removing: with e^eps = 1 - q + q e^(mu x - mu^2/2) at x, it is q Q(x - mu) - (e^eps - 1 + q) Q(x). Adding: with
    e^-eps in its place, (1 - e^eps (1-q)) Q(-x) - e^eps q Q(mu - x), as long as e^eps (1-q) < 1.

    With mu = sensitivity/sigma and rate q, one unit that is removed turns (1-q) N(0, 1) + q N(mu, 1) into N(0, 1), and
    one that is added the other way round. The likelihood ratio is monotone in x, so each hockey stick is a difference
    of normal tails beyond one point.

    >>> print(certify(lambda p: sampled_delta(Fraction(1), Fraction(1, 100), Fraction(1, 10), p), digits=6))
    [0.0000729003769576..., 0.0000729003769576...]
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


def sampled_divergence(mu: Fraction, rate: Fraction, order: int, p: Precision) -> Interval:
    """The log moment (order - 1) D_order of a Gaussian step on a Poisson sample, for a whole order of at least 2.

    log sum_k C(a, k) (1-q)^(a-k) q^k e^((k^2-k) mu^2/2), which is both divergences' upper bound: a unit that is removed
    has it, and one that is added has less (theory, Sampled Gaussian steps).

    >>> p = precision(20)
    >>> print(round((sampled_divergence(Fraction(1), Fraction(1, 100), 5, p) / 4).upper, 16))
    0.0004686672421692
    """
    grown, square = p(rate / (1 - rate)), p(mu * mu)
    term, total = p(1 - rate) ** order, p(0)
    for k in range(order + 1):
        total = total + term
        term = term * grown * (square * k).exp() * (order - k) / (k + 1)
    return total.log()


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

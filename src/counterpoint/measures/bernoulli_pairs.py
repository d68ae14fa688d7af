"""The tight conversion of one Renyi order to (epsilon, delta), and back: the worst pair of Bernoulli variables.

Asoodeh et al. 2020: let S be the outcomes that are more than e^eps times likelier under P than under Q. Whether S
happened is a postprocessing, so that Bernoulli variables p = P[S] and q = Q[S] have D_alpha <= tau too, and delta is
p - e^eps q. So delta is the largest p - e^eps q over pairs with D_alpha <= tau: no order says more by itself.

With delta given and x = p - delta = e^eps q, write r = p/x and s = (1-p)/(e^eps - x). Then e^((alpha-1)(D - eps)) is
phi(p) = x r^alpha + (e^eps - x) s^alpha, which is convex in p, with the derivative h(r) - h(s), where h(y) =
alpha y^(alpha-1) - (alpha-1) y^alpha. (epsilon, delta) is proven if the least phi is at least
R = e^((alpha-1)(tau - eps)). Where delta >= 1/alpha the least is at p = 1, and delta is 1 - e^(eps - tau).

Otherwise the worst pair has h(r) = h(s) and D = tau. Floats find it, by halving in one unknown whose digits floats
keep: the log of w = 1 - s e^eps if epsilon is given, the log of t = alpha - (alpha-1) r if delta is. Two evaluations
with certified bounds, on either side of the least value, prove it.

>>> print(worst_delta(Fraction(2), Fraction(1, 10**4), Fraction(1, 10)))
[0.00023718527..., 0.00023718527...]
>>> print(worst_epsilon(Fraction(2), Fraction(1, 10), Fraction(1, 10**6)))
[10.1770857683..., 10.1770857683...]
"""

import math
from collections.abc import Callable, Iterator
from fractions import Fraction

from counterpoint.numbers import Interval, Precision, precision

_DIGITS = 60
_STEPS = 200
_SLACKS = [Fraction(1, 10**places) for places in (12, 10, 8, 6, 4)]
_LARGEST_LOG, SMALLEST, _TINY = 690, Fraction(1, 10**9), Fraction(1, 10**280)
"""Beyond these floats over- or underflow, or cancel."""


def worst_delta(alpha: Fraction, tau: Fraction, epsilon: Fraction) -> Interval | None:
    """The largest p - e^eps q with D_alpha <= tau, enclosed; None where floats cannot find it."""
    p = precision(_DIGITS)
    if -_LARGEST_LOG <= epsilon - tau < 0:
        extreme = -p(epsilon - tau).expm1()  # p = 1, q = e^-tau
        if extreme.lower >= (p(1) / alpha).upper:
            return extreme
    if not _in_floats(alpha, tau) or not SMALLEST <= epsilon <= _LARGEST_LOG:
        return None
    found = _pair_at_epsilon(float(alpha), float(tau), float(epsilon))
    if found is None:
        return None
    delta, chance = map(Fraction, found)
    above = next((d for d in _above(delta) if d < 1 and proves(alpha, tau, epsilon, d, chance)), None)
    below = next((d for d in _below(delta) if refutes(alpha, tau, epsilon, d, chance)), Fraction(0))
    return _enclosed(below, above)


def worst_epsilon(alpha: Fraction, tau: Fraction, delta: Fraction) -> Interval | None:
    """The largest log((p - delta)/q) with D_alpha <= tau, at least 0, enclosed; None where floats cannot find it."""
    p = precision(_DIGITS)
    if delta * alpha >= 1:
        return (p(1 - delta).log() + tau).at_least(0)  # p = 1, q = e^-tau
    if not _in_floats(alpha, tau) or delta < _TINY:
        return None
    found = _pair_at_delta(float(alpha), float(tau), float(delta))
    if found is None:
        return None
    epsilon, chance = map(Fraction, found)
    if epsilon < SMALLEST:
        near = Fraction(_least_at_zero(float(alpha), float(delta)))
        return p(0) if proves(alpha, tau, Fraction(0), delta, near) else None
    above = next((e for e in _above(epsilon) if proves(alpha, tau, e, delta, chance)), None)
    below = next((e for e in _below(epsilon) if refutes(alpha, tau, e, delta, chance)), Fraction(0))
    return _enclosed(below, above)


def _in_floats(alpha: Fraction, tau: Fraction) -> bool:
    return SMALLEST <= alpha - 1 <= 1 / SMALLEST and tau >= _TINY and (alpha - 1) * tau <= _LARGEST_LOG


def _enclosed(least: Fraction, most: Fraction | None) -> Interval | None:
    p = precision(_DIGITS)
    return None if most is None else p.between(p(least).lower, p(most).upper)


def _above(value: Fraction) -> Iterator[Fraction]:
    """A little more than a value, and more and more."""
    return (value * (1 + slack) for slack in _SLACKS)


def _below(value: Fraction) -> Iterator[Fraction]:
    """A little less than a value, and less and less."""
    return (value * (1 - slack) for slack in _SLACKS)


def proves(alpha: Fraction, tau: Fraction, epsilon: Fraction, delta: Fraction, near: Fraction) -> bool:
    """Whether phi is certainly nowhere below R, by its values and slopes on either side of its least, which is `near`.

    >>> proves(Fraction(2), Fraction(1, 10**4), Fraction(1, 10), Fraction(3, 10**4), Fraction(28, 10**4))
    True
    """
    p = precision(_DIGITS)
    least, reach = near, min(near - delta, 1 - near) / 10**6
    if reach <= 0:
        return False
    for _ in range(_ROUNDS):
        low, high = least - reach, least + reach
        (value, falling), (_, rising) = (_phi(alpha, epsilon, delta, at, p) for at in (low, high))
        if falling.upper <= 0 <= rising.lower:
            # between the two phi is above its tangent at the first, and outside above its values there
            bound = value + falling * (high - low)
            if bound.lower >= _limit(alpha, tau, epsilon, p).upper:
                return True
            reach /= 1000
        slopes = Fraction(rising.lower - falling.lower)
        if slopes <= 0:
            return False
        least = _short(low - Fraction(falling.lower) * (high - low) / slopes)
        if not delta + reach < least < 1 - reach:
            return False
    return False


_ROUNDS = 8


def refutes(alpha: Fraction, tau: Fraction, epsilon: Fraction, delta: Fraction, at: Fraction) -> bool:
    """Whether the pair with this p is within tau for certain, and so (epsilon, delta) is exceeded.

    >>> refutes(Fraction(2), Fraction(1, 10**4), Fraction(1, 10), Fraction(2, 10**4), Fraction(28, 10**4))
    True
    """
    p = precision(_DIGITS)
    if not delta < at < 1:
        return False
    return _phi(alpha, epsilon, delta, at, p)[0].upper < _limit(alpha, tau, epsilon, p).lower


def _phi(alpha: Fraction, epsilon: Fraction, delta: Fraction, at: Fraction, p: Precision) -> tuple[Interval, Interval]:
    """The values of phi and of its derivative at a p."""
    mine = p(at - delta)
    other = p(epsilon).exp() - mine
    r, s = p(at) / mine, p(1 - at) / other
    r_less, s_less = r ** (alpha - 1), s ** (alpha - 1)
    value = mine * r_less * r + other * s_less * s
    slope = (r_less * (alpha - (alpha - 1) * r)) - (s_less * (alpha - (alpha - 1) * s))
    return value, slope


def _limit(alpha: Fraction, tau: Fraction, epsilon: Fraction, p: Precision) -> Interval:
    return p((alpha - 1) * (tau - epsilon)).exp()


def _short(value: Fraction) -> Fraction:
    return Fraction(precision(40)(value).lower)


# The searches: floats, near enough. A step that leaves the range of floats counts as too large.
def _pair_at_epsilon(alpha: float, tau: float, epsilon: float) -> tuple[float, float] | None:
    """The delta and the p of the worst pair."""
    top = math.log(alpha) - math.log(alpha - 1)
    least_q = math.log(math.expm1((alpha - 1) * tau)) - alpha * (epsilon + top)  # p^alpha q^(1-alpha) is no less
    lowest = least_q + epsilon + math.log(-math.expm1(-epsilon)) - 2
    if lowest < -_LARGEST_LOG:
        return None

    def pair(log_w: float) -> tuple[float, float, float]:
        """The p, the x = e^eps q and the log t for which h(r) = h(s) and s = (1 - w) e^-eps."""
        log_s = math.log1p(-math.exp(log_w)) - epsilon
        log_t = _inverse_from_top(alpha, _log_bell(alpha, log_s))
        r = (alpha - math.exp(log_t)) / (alpha - 1)
        x = math.exp(log_w) / (r - math.exp(log_s))  # as r x + s (e^eps - x) = 1
        return r * x, x, log_t

    def excess(log_w: float) -> float:
        p, x, _ = pair(log_w)
        return _excess(alpha, tau, p, x * math.exp(-epsilon))

    p, x, log_t = pair(_rising(excess, lowest, math.log1p(-1e-16)))
    delta = -math.expm1(log_t) / (alpha - 1) * x  # (r - 1) x
    return (delta, p) if 0 < delta < p < 1 else None


def _pair_at_delta(alpha: float, tau: float, delta: float) -> tuple[float, float] | None:
    """The epsilon, which may be negative, and the p of the worst pair."""
    top = math.log(alpha) - math.log(alpha - 1)
    shared = tau - top - (math.log(delta) + math.log(alpha)) / (alpha - 1)  # the conversion that all orders share
    largest = min(max(shared, 0.0), _LARGEST_LOG)
    highest = (1 - delta * alpha) / (1 - delta)  # where p is 1
    if highest <= 0:
        return None

    def pair(log_t: float) -> tuple[float, float, float]:
        """The p, the q and the epsilon for which h(r) = h(s) and p - e^eps q is delta."""
        x = delta * (alpha - 1) / -math.expm1(log_t)
        p = (alpha - math.exp(log_t)) / (alpha - 1) * x
        log_s = _inverse_of_bell(alpha, _log_bell_from_top(alpha, log_t))
        rest = x * math.exp(log_s) - p
        if rest <= -1:
            return 1.0, 1.0, 0.0
        epsilon = math.log1p(rest) - log_s  # of x + (1 - p)/s
        return p, math.exp(math.log(x) - epsilon), epsilon

    def shortfall(log_t: float) -> float:
        p, q, _ = pair(log_t)
        return -_excess(alpha, tau, p, q) if p < 1 else 1.0

    log_t = _rising(shortfall, -alpha * (largest + top + 2), math.log(highest))
    p, _, epsilon = pair(log_t)
    return (epsilon, p) if delta < p < 1 else None


def _least_at_zero(alpha: float, delta: float) -> float:
    """The p at which phi is least, at an epsilon of 0."""
    top = alpha / (alpha - 1)

    def slope(p: float) -> float:
        r, s = p / (p - delta), (1 - p) / (1 - p + delta)
        if r >= top:
            return -1.0
        return _log_bell(alpha, math.log(r)) - _log_bell(alpha, math.log(s)) if s > 0 else 1.0

    return _rising(slope, delta, 1.0)


def _excess(alpha: float, tau: float, p: float, q: float) -> float:
    """e^((alpha-1) D) - e^((alpha-1) tau) for a pair of Bernoulli variables, without cancelling where both are near 1.

    >>> round(_excess(2.0, 0.1, 0.25, 0.25), 6), _excess(2.0, 0.1, 0.75, 0.25) > 0
    (-0.105171, True)
    """
    if not (0 < p < 1 and 0 < q < 1):
        return 1.0
    rare = alpha * math.log(p) - (alpha - 1) * math.log(q)
    common = alpha * math.log1p(-p) - (alpha - 1) * math.log1p(-q)
    if max(rare, common) > _LARGEST_LOG:
        return 1.0
    return math.exp(rare) + math.expm1(common) - math.expm1((alpha - 1) * tau)


def _log_bell(alpha: float, log_y: float) -> float:
    """The log of h(y), for y below alpha/(alpha-1)."""
    return (alpha - 1) * log_y + math.log(alpha - (alpha - 1) * math.exp(log_y))


def _log_bell_from_top(alpha: float, log_t: float) -> float:
    """The log of h(r), where t = alpha - (alpha-1) r is known better than r."""
    return log_t + (alpha - 1) * math.log((alpha - math.exp(log_t)) / (alpha - 1))


def _inverse_of_bell(alpha: float, log_h: float) -> float:
    """The log of the s below 1 with this log h(s)."""
    return _newton(
        lambda log_s: _log_bell(alpha, log_s) - log_h,
        lambda s: (alpha - 1) * alpha * (1 - s) / (alpha - (alpha - 1) * s),
        (log_h - math.log(alpha)) / (alpha - 1),
    )


def _inverse_from_top(alpha: float, log_h: float) -> float:
    """The log of the t of the r above 1 with this log h(r)."""
    return _newton(
        lambda log_t: _log_bell_from_top(alpha, log_t) - log_h,
        lambda t: alpha * (1 - t) / (alpha - t),
        log_h - (alpha - 1) * math.log(alpha / (alpha - 1)),
    )


def _newton(function: Callable[[float], float], slope: Callable[[float], float], start: float) -> float:
    """Where a concave function of a log below 0 crosses 0, from a start below; its slope is given at the number."""
    at = start
    for _ in range(_STEPS):
        rise = slope(math.exp(at))
        if rise <= 0:
            break
        better = min(0.0, at - function(at) / rise)
        if not better > at:
            break
        at = better
    return at


def _rising(function: Callable[[float], float], low: float, high: float) -> float:
    """Where a rising function crosses 0, by halving."""
    for _ in range(_STEPS):
        middle = (low + high) / 2
        if not low < middle < high:
            break
        low, high = (middle, high) if function(middle) < 0 else (low, middle)
    return low

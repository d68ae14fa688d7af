"""The tight conversion of one Renyi order to (epsilon, delta): the worst pair of Bernoulli variables.

Asoodeh et al. 2020: let S be the outcomes that are more than e^eps times likelier under P than under Q. Whether S
happened is a postprocessing, so that Bernoulli variables p = P[S] and q = Q[S] have D_alpha <= tau too, and delta is
p - e^eps q. So delta is the largest p - e^eps q over pairs with D_alpha <= tau: no order says more by itself.

With delta given and x = p - delta = e^eps q, write r = p/x and s = (1-p)/(e^eps - x). Then e^((alpha-1)(D - eps)) is
phi(p) = x r^alpha + (e^eps - x) s^alpha, which is convex in p, with the derivative h(r) - h(s), where h(y) =
alpha y^(alpha-1) - (alpha-1) y^alpha. (epsilon, delta) is proven if the least phi is at least
R = e^((alpha-1)(tau - eps)). Where delta >= 1/alpha the least is at p = 1, and delta is 1 - e^(eps - tau). Floats find
the pair; two evaluations with certified bounds, on either side of the least value, prove it.

>>> print(worst_delta(Fraction(2), Fraction(1, 10**4), Fraction(1, 10)))
[0.00023718527..., 0.00023718527...]
"""

import math
from collections.abc import Callable
from fractions import Fraction

from counterpoint.numbers import Interval, Precision, precision

_DIGITS = 60
_STEPS = 200
_SLACKS = (12, 10, 8, 6, 4)
_LARGEST_POWER, _SMALLEST = 600, Fraction(1, 10**9)
"""Beyond these floats over- or underflow, or cancel."""


def worst_delta(alpha: Fraction, tau: Fraction, epsilon: Fraction) -> Interval | None:
    """The largest p - e^eps q with D_alpha <= tau, enclosed; None where floats cannot find it."""
    if not (alpha * (1 + tau + epsilon) < _LARGEST_POWER and alpha - 1 > _SMALLEST and epsilon > _SMALLEST):
        return None
    p = precision(_DIGITS)
    extreme = -(p(epsilon - tau).exp() - 1)  # p = 1, q = e^-tau
    if extreme.lower >= (p(1) / alpha).upper:
        return extreme
    found = _search(float(alpha), float(tau), float(epsilon))
    if found is None:
        return None
    delta, chance = found
    for places in _SLACKS:
        above, below = (Fraction(delta) * (1 + Fraction(sign, 10**places)) for sign in (1, -1))
        if above < 1 and proves(alpha, tau, epsilon, above, Fraction(chance)):
            reached = _phi(alpha, epsilon, below, Fraction(chance), p)[0].upper < _limit(alpha, tau, epsilon, p).lower
            return p.between(p(below).lower if reached else 0, p(above).upper)
    return None


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


def _search(alpha: float, tau: float, epsilon: float) -> tuple[float, float] | None:
    """The delta and the p of the worst pair, near enough: by r from 1 to alpha/(alpha-1), and s with h(s) = h(r)."""
    top = alpha / (alpha - 1)
    growth, goal = math.exp(epsilon), math.exp((alpha - 1) * (tau - epsilon))

    def bell(y: float) -> float:
        return math.pow(y, alpha - 1) * (alpha - (alpha - 1) * y)

    def pair(r: float) -> tuple[float, float]:
        s = _rising(lambda y: bell(y) - bell(r), 0.0, 1.0)
        return s, (1 - s * growth) / (r - s)

    def excess(r: float) -> float:
        s, mine = pair(r)
        return mine * r**alpha + (growth - mine) * s**alpha - goal if mine > 0 else -1.0

    r = _rising(excess, 1.0, top)
    mine = pair(r)[1]
    delta, chance = (r - 1) * mine, r * mine
    return (delta, chance) if 0 < delta < chance < 1 else None


def _rising(function: Callable[[float], float], low: float, high: float) -> float:
    """Where a rising function crosses 0, by halving."""
    for _ in range(_STEPS):
        middle = (low + high) / 2
        if not low < middle < high:
            break
        low, high = (middle, high) if function(middle) < 0 else (low, middle)
    return low


def _short(value: Fraction) -> Fraction:
    return Fraction(precision(40)(value).lower)

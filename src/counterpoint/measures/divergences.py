"""Rényi divergences: those of pure DP, their (epsilon, delta), and the order that proves most.

Each theorem is one function on certified intervals, shared by the losses and by the filters: tau_alpha of a pure loss
(theory, The Renyi filter by reduction), the conversion at one order (Canonne et al. 2020; Asoodeh et al. 2020), the
tight concentrated loss of a pure one. The best orders are approximate on purpose: every order proves a valid bound, and
near the best one the bound is flat.

>>> from counterpoint.numbers import certify
>>> print(certify(lambda p: renyi_of_pure(Fraction(1, 100), Fraction(16), p), digits=6))
[0.00079681372872347698, 0.000796813728723477034]
"""

import math
from collections.abc import Sequence
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal, localcontext
from fractions import Fraction
from functools import lru_cache

from counterpoint.errors import InvalidParameter
from counterpoint.measures.curves import Point
from counterpoint.numbers import Interval, Precision, certify, precision
from counterpoint.numbers.rounding import DIGITS, rounded_up

_HUGE = 10**6
_SEARCH = Context(prec=40, Emax=MAX_EMAX, Emin=MIN_EMIN)
_FADED = 1000
_LARGEST_GAP = Decimal(700)
_SMALL = Decimal("1e-10")
_LEAST, _MOST = Fraction(1, 10**60), Fraction(10**60)


def renyi_of_pure(epsilon: Fraction, alpha: Fraction, p: Precision) -> Interval:
    """The divergence tau_alpha(epsilon) of randomized response, the largest that a pure loss can have.

    With p = e^eps/(1+e^eps) and q = 1-p, tau = log(p^a q^(1-a) + q^a p^(1-a))/(a-1). The sum is cosh((2a-1)
    eps/2)/cosh(eps/2) = 1 + 2 sinh(a eps/2) sinh((a-1) eps/2)/cosh(eps/2), in which nothing cancels.

    >>> from counterpoint.numbers import precision
    >>> renyi_of_pure(Fraction(800), Fraction(2), precision(5))
    Interval(799.99, 800.01)
    """
    if epsilon == 0:
        return p(0)
    if alpha * epsilon > _HUGE:  # the same, with what would overflow taken out of the logarithm
        small, large = _log1p_of_power(-epsilon, p), _log1p_of_power(-(2 * alpha - 1) * epsilon, p)
        return p(epsilon) - (small - large) / (alpha - 1)
    excess = 2 * _sinh(p(alpha * epsilon / 2)) * _sinh(p((alpha - 1) * epsilon / 2)) / _cosh(p(epsilon / 2))
    return excess.log1p() / (alpha - 1)


def pure_near(tau: Fraction, alpha: Fraction) -> Fraction:
    """Near the epsilon with renyi_of_pure(epsilon) = tau > 0: to 14 digits where floats reach, else below it.

    tau_alpha(eps) is eps times the mean of tanh between eps/2 and (alpha-1/2) eps, hence at most eps and at most
    alpha eps^2/2. In logarithms its slope falls from 2 to 1, so Newton's steps from below stay below.

    >>> round(float(pure_near(Fraction(1, 10), Fraction(20))), 12)
    0.132806927066
    """
    if not (_LEAST < tau < _MOST and _LEAST < alpha - 1 < _MOST):
        return tau
    target, steps = float(tau), float(alpha - 1)
    epsilon = max(target, math.sqrt(2 * target / (steps + 1)))
    for _ in range(50):
        value, slope = _renyi_near(epsilon, steps)
        step = math.log(target / value) * value / (epsilon * slope)
        epsilon *= math.exp(step)
        if abs(step) < 1e-9:
            break
    return Fraction(epsilon)


def _renyi_near(epsilon: float, steps: float) -> tuple[float, float]:
    """Near tau_alpha(epsilon) and its slope, for alpha = 1 + steps."""
    wide = (2 * steps + 1) * epsilon
    slope = ((2 * steps + 1) * math.tanh(wide / 2) - math.tanh(epsilon / 2)) / (2 * steps)
    if wide > 100:
        return epsilon - (math.log1p(math.exp(-epsilon)) - math.log1p(math.exp(-wide))) / steps, slope
    excess = 2 * math.sinh((steps + 1) * epsilon / 2) * math.sinh(steps * epsilon / 2) / math.cosh(epsilon / 2)
    return math.log1p(excess) / steps, slope


def concentrated_of_pure(epsilon: Fraction, p: Precision) -> Interval:
    """The smallest rho, eps tanh(eps/2), with tau_alpha(eps) <= alpha rho at every order.

    tau_alpha is eps times the mean of tanh between eps/2 and (alpha-1/2) eps. As tanh is concave and 0 at 0,
    that mean is at most tanh(alpha eps/2) <= alpha tanh(eps/2); towards alpha = 1 it is tanh(eps/2) itself.

    >>> from counterpoint.numbers import precision
    >>> concentrated_of_pure(Fraction(20), precision(5))
    Interval(19.997, 20)
    """
    fading = p(-epsilon)
    return -fading.expm1() / (1 + fading.exp()) * epsilon


def renyi_to_epsilon(tau: Fraction, alpha: Fraction, delta: Fraction, p: Precision) -> Interval:
    """At one order: tau + log(1-1/alpha) - (log delta + log alpha)/(alpha-1), at least 0; delta is above 0.

    >>> from counterpoint.numbers import precision
    >>> renyi_to_epsilon(Fraction(1, 10), Fraction(2), Fraction(1, 10**6), precision(6))
    Interval(12.5290, 12.5294)
    """
    excess = (p(delta).log() + p(alpha).log()) / (alpha - 1)
    return (p(tau) + _log_one_less_inverse(alpha, p) - excess).at_least(0)


_NEAREST_TO_ONE = Fraction(1, 10**45)
"""Nearer to 1 an order gives no epsilon worth having, and the offset no digits."""


@lru_cache(maxsize=4096)
def renyi_offset(alpha: Fraction, slack: Fraction) -> Fraction:
    """log(1-1/alpha) - (log d + log alpha)/(alpha-1), rounded up: what turns a Renyi loss into an epsilon at d.

    >>> round(float(renyi_offset(Fraction(2), Fraction(1, 10**6))), 6)
    12.429216
    """
    if not (alpha - 1 >= _NEAREST_TO_ONE and 0 < slack < 1):
        raise InvalidParameter("the order must be above 1, by 1e-45 at least, and the slack between 0 and 1")
    p = precision(DIGITS)
    offset = (1 - 1 / p(alpha)).log() - (p(slack).log() + p(alpha).log()) / (alpha - 1)
    return Fraction(offset.upper)


def renyi_to_delta(tau: Fraction, alpha: Fraction, epsilon: Fraction, p: Precision) -> Interval:
    """exp((alpha-1)(tau-eps)) (1-1/alpha)^alpha / (alpha-1), at most 1: the same theorem, solved for delta.

    >>> from counterpoint.numbers import precision
    >>> renyi_to_delta(Fraction(1, 10), Fraction(2), Fraction(3), precision(6))
    Interval(0.0137556, 0.0137560)
    """
    shape = (alpha - 1) * _log_one_less_inverse(alpha, p) - p(alpha).log()
    return (p((alpha - 1) * (tau - epsilon)) + shape).at_most(0).exp()


def delta_below(larger: Fraction, delta: Fraction, epsilon: Fraction, p: Precision) -> Interval:
    """1 - (1-delta)(1+e^epsilon)/(1+e^larger): what (larger, delta)-DP has at an epsilon that is not larger.

    The hockey stick of RR(larger, delta), of which every such mechanism is a postprocessing; tight.

    >>> from counterpoint.numbers import precision
    >>> delta_below(Fraction(1), Fraction(0), Fraction(1, 2), precision(6))
    Interval(0.287648, 0.287652)
    """
    falling = -p(epsilon - larger).expm1() / (1 + p(-larger).exp())
    return falling * (1 - delta) + delta


def best_order_for_delta(rho: Fraction, delta: Fraction) -> Fraction:
    """The order at which rho-zCDP gives its smallest epsilon: (alpha-1)^2 rho + log alpha = log(1/delta).

    In log(alpha-1) the left side is convex and rises, so Newton's steps from above stay above.

    >>> round(float(best_order_for_delta(Fraction(1, 20), Fraction(1, 10**6))), 12)
    15.86692555251
    """
    with localcontext(_SEARCH):
        slope, excess = _decimal(rho), _decimal((1 - delta) / delta)
        target = _log1p(excess)
        x = min((target / slope).sqrt(), excess)
        for _ in range(200):
            value = slope * x * x + _log1p(x) - target
            step = value / (2 * slope * x * x + x / (1 + x))
            x *= (-step).exp()
            if abs(step) < Decimal("1e-25"):
                break
        return 1 + Fraction(x)


def best_order_for_epsilon(rho: Fraction, epsilon: Fraction) -> Fraction:
    """The order at which rho-zCDP gives its smallest delta: (2 alpha-1) rho + log(1-1/alpha) = eps.

    In alpha the left side is concave and rises, so Newton's steps from below stay below.

    >>> round(float(best_order_for_epsilon(Fraction(1, 1000), Fraction(1, 5))), 9)
    105.272290401
    """
    with localcontext(_SEARCH):
        slope, target = _decimal(rho), _decimal(epsilon)
        gap = max(slope - target, Decimal(0))
        if gap > _LARGEST_GAP:  # delta is 1 to every digit that can be asked for
            return 1 + Fraction(1, 10**300)
        x = max((target - slope) / (2 * slope), min(1 / (2 * ((gap + 1).exp() - 1)), 1 / (2 * slope)))
        for _ in range(200):
            value = (1 + 2 * x) * slope - target - _log1p(1 / x)
            step = value / (2 * slope + 1 / (x * (1 + x)))
            x -= step
            if abs(step) < x * Decimal("1e-25"):
                break
        return 1 + Fraction(x)


def _log_one_less_inverse(alpha: Fraction, p: Precision) -> Interval:
    """log(1-1/alpha), whether that is near 0 or far below."""
    return p((alpha - 1) / alpha).log() if alpha < 2 else p(-1 / alpha).log1p()


def _decimal(value: Fraction) -> Decimal:
    return Decimal(value.numerator) / Decimal(value.denominator)


def _log1p(x: Decimal) -> Decimal:
    """Near enough for a search, also where 1 + x would forget x."""
    return x - x * x / 2 + x * x * x / 3 if x < _SMALL else (1 + x).ln()


def _log1p_of_power(exponent: Fraction, p: Precision) -> Interval:
    """log(1 + e^exponent) for an exponent below 0; what no order can make visible is only bounded."""
    power = p(exponent).exp()
    return power.log1p() if exponent > -_FADED else p.between(Decimal(0), power.upper)


def _sinh(x: Interval) -> Interval:
    rise = x.expm1()
    return (rise + rise / (rise + 1)) / 2


def _cosh(x: Interval) -> Interval:
    power = x.exp()
    return (power + 1 / power) / 2


_ZERO = Fraction(0)


def approximate_divergence(pairs: Sequence[Point], alpha: Fraction, delta: Fraction) -> Fraction | None:
    """D_alpha^delta(P|Q) of the outcomes (p, q), rounded up; None if it is infinite.

    See Whitehouse et al. 2023, Def 9.

    It is the least D_alpha(P'|Q') over all ways to write P = (1-delta) P' + delta P'' and Q = (1-delta) Q' + delta Q''.
    With a = (1-delta) P' and b = (1-delta) Q', no more than P and Q and adding up to 1 - delta, that is the least of

        log( sum of a^alpha b^(1-alpha) / (1-delta) ) / (alpha-1),

    a convex function that grows with a and falls with b. By its two derivatives it is least where the ratio a/b is cut
    to at most t and at least 1/s: a = min(p, t q) and b = min(q, s p), with t and s such that delta is cut off of each.
    If the two distributions share 1 - delta or more, P' and Q' may be equal, and it is 0.

    >>> half = Fraction(1, 2)
    >>> float(approximate_divergence([(half, Fraction(9, 10)), (half, Fraction(1, 10))], Fraction(2), Fraction(0)))
    1.02165124753198...
    >>> approximate_divergence([(half, Fraction(9, 10)), (half, Fraction(1, 10))], Fraction(2), Fraction(4, 10))
    Fraction(0, 1)
    """
    if sum((max(p - q, _ZERO) for p, q in pairs), _ZERO) <= delta:
        return _ZERO
    if sum((p for p, q in pairs if not q), _ZERO) > delta:
        return None
    most, least = largest_ratio(pairs, delta), largest_ratio([(q, p) for p, q in pairs], delta)
    kept = [
        (p if most is None else min(p, most * q), q if least is None else min(q, least * p))
        for p, q in pairs
        if p and q
    ]

    def formula(precise: Precision) -> Interval:
        total = precise(0)
        for a, b in kept:
            total = total + b * precise(a / b) ** alpha
        return ((total / (1 - delta)).log() / (alpha - 1)).at_least(0)

    return rounded_up(certify(formula, DIGITS).upper)


def largest_ratio(pairs: Sequence[Point], delta: Fraction) -> Fraction | None:
    """The t at which the sum of max(p - t q, 0) is delta; None where outcomes with q = 0 have delta or more of P.

    >>> largest_ratio([(Fraction(3, 4), Fraction(1, 4)), (Fraction(1, 4), Fraction(3, 4))], Fraction(1, 4))
    Fraction(2, 1)
    """
    exposed = sum((p for p, q in pairs if not q), _ZERO)
    if exposed >= delta and exposed:
        return None
    ps, qs = exposed - delta, _ZERO
    for p, q in sorted(((p, q) for p, q in pairs if q), key=lambda pair: pair[0] / pair[1], reverse=True):
        if qs and ps * q >= p * qs:  # the cut lies between the outcomes so far and this one
            return ps / qs
        ps, qs = ps + p, qs + q
    return ps / qs

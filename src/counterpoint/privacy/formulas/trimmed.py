"""The delta-approximate Renyi divergence of two finite distributions, as a number (Whitehouse et al. 2023, Def 9).

It is the least D_alpha(P'|Q') over all ways to write P = (1-delta) P' + delta P'' and Q = (1-delta) Q' + delta Q''.
With a = (1-delta) P' and b = (1-delta) Q', no more than P and Q and adding up to 1 - delta, that is the least of

    log( sum of a^alpha b^(1-alpha) / (1-delta) ) / (alpha-1),

a convex function that grows with a and falls with b. By its two derivatives it is least where the ratio a/b is cut to
at most t and at least 1/s: a = min(p, t q) and b = min(q, s p), with t and s such that delta is cut off of each. If the
two distributions share 1 - delta or more, P' and Q' may be equal, and it is 0.

>>> half = Fraction(1, 2)
>>> float(approximate_divergence([(half, Fraction(9, 10)), (half, Fraction(1, 10))], Fraction(2), Fraction(0)))
1.02165124753198...
>>> approximate_divergence([(half, Fraction(9, 10)), (half, Fraction(1, 10))], Fraction(2), Fraction(4, 10))
Fraction(0, 1)
"""

from collections.abc import Sequence
from fractions import Fraction

from counterpoint.numbers import Interval, Precision, certify
from counterpoint.privacy.formulas.curves import Point
from counterpoint.privacy.loss import DIGITS, rounded_up

_ZERO = Fraction(0)


def approximate_divergence(pairs: Sequence[Point], alpha: Fraction, delta: Fraction) -> Fraction | None:
    """D_alpha^delta(P|Q) of the outcomes (p, q), rounded up; None if it is infinite."""
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

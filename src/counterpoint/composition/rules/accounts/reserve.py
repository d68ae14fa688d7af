"""A Gaussian reserve: adaptively chosen pure and approximate launches, at almost no price for adaptivity.

Think of a tail bound as a Gaussian mechanism with variance v of its privacy loss (GaussianDP(sqrt v)), of which each
launch takes a part: RR(epsilon) leaves v' = (2v - e + sqrt((2v - e)^2 - 8 v e))/4 with e = epsilon^2. Then RR(epsilon)
followed by G(sqrt v') is never more revealing than G(sqrt v).

Proof. A hockey stick is E[(W - e^x)+], with W the likelihood ratio under the second world. W has mean 1 for both, so it
is enough that the first is smaller in convex order. Let f1 be the density of log W for G(sqrt v) and f2 that of RR and
G(sqrt v'). Both times e^(z/2) are even functions, and log f2 - log f1 = A + log cosh(epsilon z/v') - k z^2/2 with k =
1/v' - 1/v and A = log(v/v')/2 + (v - v')/8 - e/(2 v') - log cosh(epsilon/2). Its slope, divided by z, falls on z > 0,
so it falls there or first rises and then falls. If A >= 0 it is thus positive around 0 and negative outside: f1 - f2
has the signs + - +, and with equal masses and means that is the convex order (Karlin and Novikoff 1963). And A >= 0:
with u = (v - v')/v' and x = e/v', the v' above has u = x/(1 - x/2) >= x, so that log(1 + u)/2 >= u/(2 + u) = x/2, and
(v - v')/8 >= e/8 >= log cosh(epsilon/2). v' exists where 2v >= (3 + 2 sqrt 2) e; for smaller v a last launch still fits
if PureDP(epsilon) is GaussianDP(sqrt v) by itself.

By induction the view is within G(sqrt v) for every adaptive choice of launches, whatever is left at the end, and
interactive mechanisms reduce to randomized responses by Haney et al. 2023, Thm 1.19 and Henzinger et al. 2024, Thm
12.4. This is our own corollary. It is no odometer: the cost of a launch depends on how much is left. Variances are
whole multiples of 2^-320, rounded down.

>>> start = reserve_for(Fraction(1), Fraction(1, 2 * 10**6))
>>> round(start * GRAIN, 4), round(left_after(start, Fraction(1, 100)) * GRAIN, 4), left_after(start, Fraction(1))
(0.0525, 0.0524, None)
"""

from fractions import Fraction
from functools import lru_cache
from math import isqrt
from typing import NamedTuple

from counterpoint.numbers import normal_tail, precision
from counterpoint.privacy.formulas.roots import short
from counterpoint.privacy.loss import DIGITS
from counterpoint.privacy.losses import GaussianDP

UNIT = 2**320
GRAIN = 2.0**-320
_HUGE = Fraction(10**12)


class Payment(NamedTuple):
    """How a launch can be paid: its epsilon or Gaussian mu if the reserve takes it, and its delta."""

    epsilon: Fraction | None
    mu: Fraction | None
    delta: Fraction

    @property
    def by_reserve(self) -> bool:
        """Whether a Gaussian reserve can pay for it."""
        return self.epsilon is not None or self.mu is not None


@lru_cache(maxsize=4096)
def reserve_for(epsilon: Fraction, slack: Fraction) -> int:
    """The largest variance v with G(sqrt v) within (epsilon, slack), in units of 2^-320; that of 10^12 for more.

    >>> reserve_for(Fraction(10**400), Fraction(1, 10)) == reserve_for(Fraction(10**12), Fraction(1, 10))
    True
    """
    mu = GaussianDP.for_budget(min(epsilon, _HUGE), slack).mu
    return int(mu * mu * UNIT)


def left_after(left: int, epsilon: Fraction) -> int | None:
    """What RR(epsilon) leaves; 0 for a last launch, None if it does not fit.

    >>> round(left_after(UNIT, Fraction(1, 10)) * GRAIN, 5), left_after(UNIT, Fraction(1))
    (0.98995, None)
    """
    if epsilon == 0:
        return left
    square = _square_up(epsilon)
    double = 2 * left - square
    under_root = double * double - 8 * left * square
    if double > 0 and under_root >= 0:
        return (double + isqrt(under_root)) // 4
    return 0 if epsilon <= pure_within(left) else None


def left_after_gaussian(left: int, mu: Fraction) -> int | None:
    """What a Gaussian launch leaves: variances add (theory, Gaussian budgets).

    >>> left_after_gaussian(UNIT, Fraction(1, 2)) == UNIT * 3 // 4, left_after_gaussian(UNIT, Fraction(2))
    (True, None)
    """
    after = left - _square_up(mu)
    return after if after >= 0 else None


def spent(left: int | None, pays: Payment) -> int | None:
    """What a launch leaves of a reserve; None for good, once a launch did not fit or could not be counted.

    >>> spent(UNIT, Payment(None, None, Fraction(0))), spent(None, Payment(Fraction(0), None, Fraction(0)))
    (None, None)
    """
    if left is None or not pays.by_reserve:
        return None
    if pays.epsilon is not None:
        return left_after(left, pays.epsilon)
    assert pays.mu is not None
    return left_after_gaussian(left, pays.mu)


@lru_cache(maxsize=4096)
def pure_within(left: int) -> Fraction:
    """The largest epsilon, cut to 12 digits, for which epsilon-DP is G(sqrt left): log(Phi(mu/2)/Phi(-mu/2)).

    >>> round(float(pure_within(UNIT)), 4)
    0.807
    """
    if left <= 0:
        return Fraction(0)
    tail = normal_tail(precision(DIGITS)(Fraction(left, UNIT)).sqrt() / 2)
    return short(Fraction(((1 - tail) / tail).log().lower))


def units_up(value: Fraction) -> int:
    """A number in units of 2^-320, rounded up.

    >>> units_up(Fraction(1, 2)) == UNIT // 2, units_up(Fraction(1, 10**400))
    (True, 1)
    """
    return -(-value.numerator * UNIT // value.denominator)


def _square_up(value: Fraction) -> int:
    return -(-value.numerator * value.numerator * UNIT // (value.denominator * value.denominator))

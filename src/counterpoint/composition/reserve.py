"""A Gaussian reserve: adaptively chosen pure and Gaussian launches, each paid exactly.

A tail bound is thought of as a Gaussian mechanism with variance v of its privacy loss, of which each launch takes a
part: RR(epsilon) leaves the largest v' for which RR(epsilon) followed by G(v') is never more revealing than G(v)
(theory, The Gaussian reserve; Regehr et al. 2026 have such filters). By induction the view is within G(v) for every
adaptive choice of launches, and interactive mechanisms reduce to randomized responses (Haney et al. 2023, Thm 1.19;
Henzinger et al. 2024, Thm 12.4).

The first launch is known before any answer. So the filter may start from that launch itself beside the largest v for
which both together are within the budget (`opened`): it takes its own part and costs the reserve no more than that.

Variances are whole multiples of 2^-320, rounded down. What a launch leaves is a function of the two numbers alone,
computed with integers, certified intervals and the four operations of floats: a ledger finds it again anywhere.

>>> start = reserve_for(Fraction(1), Fraction(1, 2 * 10**6))
>>> round(start * GRAIN, 4), round(left_after(start, Fraction(1, 100)) * GRAIN, 4), left_after(start, Fraction(1))
(0.0525, 0.0524, None)
"""

from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from math import isqrt
from typing import NamedTuple

from counterpoint.measures import GaussianDP
from counterpoint.measures.divergences import delta_below
from counterpoint.measures.gaussian_curve import gaussian_delta, normal_quantile, square_of_pure
from counterpoint.numbers import Interval, Precision, certify, normal_tail, precision, sqrt_up
from counterpoint.numbers.rounding import DIGITS, crossing, root_below, short

BITS = 320
UNIT = 1 << BITS
GRAIN = 2.0**-BITS
_HUGE = Fraction(10**12)
_LONG = Fraction(10**4)
"""An epsilon beyond which nothing is searched for."""


class Payment(NamedTuple):
    """How a launch can be paid: its epsilon or Gaussian mu^2 if the reserve takes it, and its delta."""

    epsilon: Fraction | None
    square: Fraction | None
    delta: Fraction

    @property
    def by_reserve(self) -> bool:
        """Whether a Gaussian reserve can pay for it."""
        return self.epsilon is not None or self.square is not None


@lru_cache(maxsize=4096)
def reserve_for(epsilon: Fraction, slack: Fraction) -> int:
    """The largest variance v with G(v) within (epsilon, slack), in units of 2^-320; that of 10^12 for more.

    >>> reserve_for(Fraction(10**400), Fraction(1, 10)) == reserve_for(Fraction(10**12), Fraction(1, 10))
    True
    """
    mu = GaussianDP.for_budget(min(epsilon, _HUGE), slack).mu
    return int(mu * mu * UNIT)


def opened(first: Payment, epsilon: Fraction, slack: Fraction) -> int | None:
    """What a reserve within (epsilon, slack) has left after the first launch; None where that does not fit into one.

    >>> paid = opened(Payment(Fraction(1, 10), None, Fraction(0)), Fraction(3), Fraction(1, 10**6))
    >>> round(paid * GRAIN, 6)
    0.410289
    """
    if first.epsilon:
        return reserve_beside(first.epsilon, epsilon, slack)
    return spent(reserve_for(epsilon, slack), first)


@lru_cache(maxsize=4096)
def reserve_beside(first: Fraction, epsilon: Fraction, slack: Fraction) -> int | None:
    """The largest v, its root cut to 12 digits, with RR(first) and G(v) together within (epsilon, slack).

    That is p H(epsilon - first) + q H(epsilon + first) <= slack, with H the hockey stick of G(v) and p = 1 - q the
    chance of the truth. None where even RR(first) alone is not within it.

    >>> reserve_beside(Fraction(2), Fraction(1), Fraction(1, 10**6)) is None
    True
    """
    most = reserve_for(epsilon, slack)
    paid = left_after(most, first)
    if max(first, epsilon) > _LONG or not most:
        return paid

    def excess(mu: Fraction) -> Fraction:
        value = certify(lambda p: _beside(first, epsilon, mu, p), _ENOUGH)
        return Fraction((precision(_ENOUGH).between(value.upper, value.upper) / slack).log().upper)

    if first > epsilon and certify(lambda p: delta_below(first, Fraction(0), epsilon, p), DIGITS).upper > slack:
        return None
    high = root_below(Fraction(most, UNIT)) * _MORE
    low = root_below(Fraction(paid, UNIT)) if paid else high / 2
    for _ in range(_HALVINGS):
        if excess(low) <= 0:
            mu = crossing(excess, low, high)
            return int(mu * mu * UNIT)
        low /= 2
    return 0


_ENOUGH = 20
_HALVINGS = 60
_MORE = Fraction(1001, 1000)


def _beside(first: Fraction, epsilon: Fraction, mu: Fraction, p: Precision) -> Interval:
    """The hockey stick of RR(first) with G(mu^2) at epsilon."""
    lie = 1 / (1 + p(first).exp())
    return (1 - lie) * _stick(mu, epsilon - first, p) + lie * _stick(mu, epsilon + first, p)


def _stick(mu: Fraction, x: Fraction, p: Precision) -> Interval:
    """That of G(mu^2) at any x: H(-x) = 1 - e^-x + e^-x H(x)."""
    if x >= 0:
        return gaussian_delta(mu, x, p)
    shrunk = p(x).exp()
    return 1 - shrunk + shrunk * gaussian_delta(mu, -x, p)


def left_after(left: int, epsilon: Fraction, bits: int = BITS) -> int | None:
    """What RR(epsilon) leaves, in units of 2^-bits; 0 for a last launch, None if it does not fit.

    Where epsilon is small beside what is left, a bound with a closed form decides, which takes less than a thousandth
    of the payment too much (theory, The Gaussian reserve); else the one inequality is solved.

    >>> round(left_after(UNIT, Fraction(1, 10)) * GRAIN, 7), round(left_after(9 * UNIT, Fraction(2)) * GRAIN, 7)
    (0.9899874, 5.1660603)
    """
    if epsilon == 0:
        return left
    square = _square_up(epsilon, bits)
    if _FEW * square <= left and (square <= 1 << bits - 2 or (square <= 1 << bits and _MANY * square <= left)):
        cost = _cost(left, square, bits)
        if _is_enough(left, square, cost, bits):
            return left - cost
    if _MANY * square <= left or epsilon > _LONG:
        return _left_in_closed_form(left, square)
    return _left_exactly(left, epsilon, bits)


_FEW, _MANY = 5, 30
_FRACTION = 52
_MARGIN = 1 + 2.0**-22


def _cost(left: int, square: int, bits: int) -> int:
    """What such a launch seems to take: epsilon^2 times a number near 1, by iteration.

    Only the four operations of floats, which give the same bits on every machine.
    """
    share, size = square / left, square / (1 << bits)
    own = (1 + size / 64) * size / 48
    hidden = 1 - size / 8 + 5 * size * size / 384
    factor = 1 + share / 6 - size / 24
    for _ in range(2 if _MANY * square <= left else 5):
        x = share / (1 - factor * share)
        y = factor * x
        lost = (1 - x / 12 + x * x / 120 + own) * hidden
        factor = lost * (1 + y / 4 - y * y / 16 + y * y * y / 32) / (1 - factor * size / 16)
    return (square * (int(factor * _MARGIN * 2.0**_FRACTION) + 1) >> _FRACTION) + 1


_POINT = 96
_ONE = 1 << _POINT


def _is_enough(left: int, square: int, cost: int, bits: int) -> bool:
    """Whether the bound of theory, The Gaussian reserve, holds for this cost: in integers.

    With e = epsilon^2 <= 1, w what would be left, x = e/w and y = cost/w: cost (1 - cost/16) is at least e (1 - x/12 +
    x^2/120 + (1 + e/64) e/48) (1 - e/8 + 5 e^2/384) (1 + y/4 - y^2/16 + y^3/32). The numbers have 96 binary places.
    Each of the few truncations is below 2^-90, and the right side is raised by 2^-80.
    """
    rest = left - cost
    x, y, e, taken = (
        (square << _POINT) // rest,
        (cost << _POINT) // rest,
        square << _POINT >> bits,
        cost << _POINT >> bits,
    )
    squared = e * e >> _POINT
    own = _ONE - x // 12 + (x * x >> _POINT) // 120 + (e + squared // 64) // 48
    hidden = _ONE - e // 8 + 5 * squared // 384
    squared = y * y >> _POINT
    grown = _ONE + y // 4 - squared // 16 + (squared * y >> _POINT) // 32
    return cost * (_ONE - taken // 16 - 1) >= square * ((own * hidden * grown >> 2 * _POINT) + (1 << 16))


def _left_in_closed_form(left: int, square: int) -> int | None:
    """V' = (2v - e + sqrt((2v - e)^2 - 8 v e))/4 with e = epsilon^2, which is never too much (theory, as above)."""
    double = 2 * left - square
    under_root = double * double - 8 * left * square
    return (double + isqrt(under_root)) // 4 if double > 0 and under_root >= 0 else None


@lru_cache(maxsize=65536)
def _left_exactly(left: int, epsilon: Fraction, bits: int) -> int | None:
    """The largest v' with tanh(epsilon/2) + 2/(1 + e^epsilon) H(epsilon; v') <= erf(sqrt(v/8)), rounded down.

    That bounds H(epsilon; v') by d = 1 - Q(sqrt(v)/2) (1 + e^epsilon), so that v' is a Gaussian budget for (epsilon,
    d). Remembered: it takes milliseconds.
    """
    p = precision(DIGITS + 2 * max(0, bits - left.bit_length()) // 3)
    room = 1 - normal_tail(p(Fraction(left, 1 << bits)).sqrt() / 2) * (1 + p(epsilon).exp())
    if room.lower < 0:
        return None
    mu = GaussianDP.for_budget(epsilon, Fraction(precision(DIGITS).floor.create_decimal(room.lower))).mu
    return int(mu * mu * (1 << bits))


def needed_before(after: int, epsilon: Fraction) -> int:
    """A variance that leaves at least this much after RR(epsilon), in units of 2^-320: the least, but for rounding.

    That is 4 Q^-1(t)^2 with t = (1 - H(epsilon; after))/(1 + e^epsilon) (theory, A Gaussian odometer). Where epsilon is
    small beside it, what `left_after` takes there is added, and tried; where it is large, the closed form serves.

    >>> round(needed_before(left_after(UNIT, Fraction(1, 10)), Fraction(1, 10)) * GRAIN, 9)
    1.0
    """
    if epsilon == 0:
        return after
    square = _square_up(epsilon)
    if _MANY * square <= after:
        if epsilon <= 1:
            before = after + square
            for _ in range(3):
                before = after + _cost(before, square, BITS)
            if (left_after(before, epsilon) or 0) >= after:
                return before
        return after - (-2 * after * square // (2 * after - square))
    if epsilon > _SOLVED:  # the mu squared of RR(epsilon) always pays for it
        return after + units_up(square_of_pure(epsilon))
    return _needed_exactly(after, epsilon)


_SOLVED = 20
"""An epsilon up to which the one inequality is solved for what is needed before."""


@lru_cache(maxsize=65536)
def _needed_exactly(after: int, epsilon: Fraction) -> int:
    """Solved, and rounded up; remembered, since it takes milliseconds."""
    if not after:
        return units_up(square_of_pure(epsilon))
    mu = sqrt_up(Fraction(after, UNIT))
    tail = certify(lambda p: (1 - gaussian_delta(mu, epsilon, p)) / (1 + p(epsilon).exp()), DIGITS).lower
    return units_up(4 * Fraction(normal_quantile(Fraction(tail)).upper) ** 2)


def variance_needed(launches: Sequence[Payment]) -> int:
    """The least variance from which a reserve pays for these launches, in this order; in units of 2^-320, rounded up.

    From the last launch back: a pure one needs what leaves enough for those behind it, a Gaussian one adds mu^2.

    >>> small, large = (Payment(Fraction(e, 10), None, Fraction(0)) for e in (1, 3))
    >>> [round((variance_needed(order) * GRAIN) ** 0.5, 5) for order in ((small, large), (large, small))]
    [0.38863, 0.37627]
    """
    needed = 0
    for launch in reversed(launches):
        if launch.epsilon is not None:
            needed = needed_before(needed, launch.epsilon)
        else:
            assert launch.square is not None
            needed += units_up(launch.square)
    return needed


def left_after_gaussian(left: int, square: Fraction) -> int | None:
    """What a Gaussian launch with this mu^2 leaves: variances add (theory, Gaussian budgets).

    >>> left_after_gaussian(UNIT, Fraction(1, 4)) == UNIT * 3 // 4, left_after_gaussian(UNIT, Fraction(4))
    (True, None)
    """
    after = left - units_up(square)
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
    assert pays.square is not None
    return left_after_gaussian(left, pays.square)


@lru_cache(maxsize=4096)
def pure_within(left: int) -> Fraction:
    """The largest epsilon, cut to 12 digits, for which epsilon-DP is G(left): log(Phi(mu/2)/Phi(-mu/2)).

    >>> round(float(pure_within(UNIT)), 4)
    0.807
    """
    if left <= 0:
        return Fraction(0)
    tail = normal_tail(precision(DIGITS)(Fraction(left, UNIT)).sqrt() / 2)
    return short(Fraction(((1 - tail) / tail).log().lower))


@lru_cache(maxsize=4096)
def pure_implying(epsilon: Fraction, slack: Fraction) -> Fraction:
    """The largest e, cut to 12 digits, for which e-DP is (epsilon, slack)-DP: log((slack + e^epsilon)/(1 - slack)).

    >>> round(float(pure_implying(Fraction(1), Fraction(1, 1000))), 6)
    1.001368
    """
    if slack == 1 or epsilon > _LONG:
        return epsilon
    p = precision(DIGITS)
    return max(epsilon, short(Fraction(((p(epsilon).exp() + slack) / (1 - p(slack))).log().lower)))


def units_up(value: Fraction) -> int:
    """A number in units of 2^-320, rounded up.

    >>> units_up(Fraction(1, 2)) == UNIT // 2, units_up(Fraction(1, 10**400))
    (True, 1)
    """
    return -(-value.numerator * UNIT // value.denominator)


def _square_up(value: Fraction, bits: int = BITS) -> int:
    above: int = value.numerator
    below: int = value.denominator
    return -((-above * above << bits) // (below * below))

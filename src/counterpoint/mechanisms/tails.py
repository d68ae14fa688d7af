"""How large Laplace and Gaussian noise gets: the distance that a draw keeps, except with a given probability.

Every `error(probability)` of a mechanism with noise rests on these tails, which are those of the laws that are drawn.
The distance is the least whole number that holds, and rounding only makes it larger. Discrete Laplace and rounded
normal noise have closed forms. The tail of discrete Gaussian noise is a sum: for a small sigma it is added up
(`_summed`), for a large one it is compared with an integral (`_smooth`), and where that cannot decide, it is added up,
too. A weighted sum of draws has nearly the tail of a normal number (`weighted_within`; theory, Counters).

>>> laplace_beyond(Fraction(1), Fraction(1, 100)), gaussian_within(Fraction(1), Fraction(1, 100))
(4, 2)
>>> gaussian_within(Fraction(1), Fraction(1, 20)), gaussian_within(Fraction(10**6), Fraction(1, 20))
(2, 1960)
"""

from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from math import ceil, sqrt
from statistics import NormalDist, StatisticsError

from counterpoint.errors import InvalidParameter
from counterpoint.measures.gaussian_curve import normal_quantile
from counterpoint.numbers import Interval, Number, normal_tail, precision
from counterpoint.numbers.exact import exact, format_number
from counterpoint.numbers.interval import normal_density

_DIGITS = 40


def may_fail(probability: Number) -> Fraction:
    """What is left of a probability, below 1, with which a statement about noise is to hold.

    >>> may_fail("0.95")
    Fraction(1, 20)
    """
    fails = 1 - exact(probability, "the probability")
    if not 0 < fails <= 1:
        raise InvalidParameter(
            f"the probability must be at least 0 and below 1, such as 0.95, but {format_number(1 - fails)} was given: "
            "noise has no largest value"
        )
    return fails


def each_may_fail(probability: Number, width: int) -> Fraction:
    """With what chance each of `width` independent draws may be farther off, if all are to be within at once.

    That is 1 - probability^(1/width), rounded down; it is more than a part of what may fail, which holds for draws that
    depend on each other, too.

    >>> each_may_fail("0.9025", 2) <= Fraction(1, 20) < each_may_fail("0.9025", 2) + Fraction(1, 10**30)
    True
    """
    fails = may_fail(probability)
    if width == 1 or fails == 1:
        return fails
    return Fraction((-((-precision(2 * _DIGITS)(fails)).log1p() / width).expm1()).lower)


def laplace_beyond(scale: Fraction, chance: Fraction) -> int:
    """The least m such that discrete Laplace noise z > m has at most this chance: q^(m+1)/(1+q), q = e^(-1/scale)."""
    p = precision(_DIGITS + len(str(ceil(scale))))
    tail = -(((-p(1 / scale)).exp() + 1) * chance).log() * scale
    return max(0, ceil(tail.upper) - 1)


def rounded_normal_within(sigma2: Fraction, chance: Fraction) -> int:
    """The least m that rounded normal noise |z| exceeds with at most this chance: 2 Q((m + 1/2)/sigma).

    >>> rounded_normal_within(Fraction(900), Fraction(1, 20))
    59
    """
    if chance == 1:
        return 0
    most = precision(_DIGITS)(sigma2).sqrt() * normal_quantile(chance / 2) - Fraction(1, 2)
    return max(0, ceil(most.upper))


_GAUSSIAN_DIGITS = 60
_SMOOTH = 900
"""From this sigma2 on the integral is tried first."""
WIDE = 156
"""From this sigma2 on a draw with normal noise of variance 4 has a density within 1 + 10^-33 of a normal one."""
_CARE = Fraction(1, 10**18)
"""What (1 + 10^-33)^(2^49)/(1 - Q(10)) exceeds 1 by, rounded up."""


def gaussian_within(sigma2: Fraction, chance: Fraction) -> int:
    """The least m that discrete Gaussian noise |z| exceeds with at most this chance.

    >>> gaussian_within(Fraction(1, 100), Fraction(1, 20)), gaussian_within(Fraction(1), Fraction(1))
    (0, 0)
    """
    short, enough = -1, subgaussian_within(sigma2, chance)
    near = _normal_within(sigma2, chance)
    while enough - short > 1:
        middle = near if short < near < enough else (short + enough) // 2
        if _stays_within(middle, sigma2, chance):
            enough, near = middle, middle - 1
        else:
            short, near = middle, middle + 1
    return enough


def _normal_within(sigma2: Fraction, chance: Fraction) -> int:
    """Where a normal number of this variance stays with this chance, in floats: where the search begins."""
    try:
        return ceil(sqrt(sigma2) * -NormalDist().inv_cdf(float(chance) / 2) - 0.5)
    except (OverflowError, StatisticsError):  # too large or too small for a float
        return -1


def subgaussian_within(sigma2: Fraction, chance: Fraction) -> int:
    """An m that discrete Gaussian noise |z| exceeds with at most this chance: P[|z| >= x] <= 2 e^(-x^2/(2 sigma2)).

    See Canonne et al. 2020, "The Discrete Gaussian for Differential Privacy", section 2.3.

    >>> subgaussian_within(Fraction(1), Fraction(1, 20))
    2
    """
    most = (2 * sigma2 * precision(_GAUSSIAN_DIGITS)(2 / chance).log()).sqrt()
    return max(0, ceil(most.upper) - 1)


def weighted_within(sigma2: Fraction, squares: Interval, chance: Fraction) -> Interval:
    """An x that a weighted sum of discrete Gaussian draws reaches, in absolute value, with at most this chance.

    There are at most 2^49 draws; their squared weights add up to `squares`. For draws z and normal noises w of
    variance 4, P[sum c z >= x] is at most P[sum c (z + w) >= x - y]/P[sum c w >= -y], and z + w has a density of at
    most 1 + 10^-33 times that of N(0, sigma2 + 4); y is 10 deviations of sum c w. Or the sub-Gaussian tail, which is
    better for a small sigma2.

    >>> weighted_within(Fraction(10**6), precision(20)(1), Fraction(1, 20)).upper  # of one draw: 1,960 by its exact law
    Decimal('1979.96790...')
    """
    p = squares.precision
    subgaussian = (2 * sigma2 * squares * p(2 / chance).log()).sqrt()
    if sigma2 < WIDE:
        return subgaussian
    normal = squares.sqrt() * (p(sigma2 + 4).sqrt() * normal_quantile(chance * (1 - _CARE) / 2) + 20)
    return min(normal, subgaussian, key=lambda bound: bound.upper)


def rounded_sum_within(sigma2: Fraction, squares: Interval, chance: Fraction) -> Interval:
    """An x that a weighted sum of rounded normal draws reaches, in absolute value, with at most this chance.

    The squared weights add up to `squares`. A draw is a normal number x plus what rounding adds, y. The sum of c x is
    normal. The y are independent, symmetric and at most 1/2, so P[|sum c y| >= t] <= 2 e^(-2 t^2/squares) (Hoeffding's
    bound); a hundredth of the chance is kept for that.

    >>> rounded_sum_within(Fraction(10**6), precision(20)(1), Fraction(1, 20)).upper  # of one draw: 1,960
    Decimal('1966.2...')
    """
    p = squares.precision
    rounding = (squares * p(200 / chance).log() / 2).sqrt()
    return squares.sqrt() * p(sigma2).sqrt() * normal_quantile(chance * Fraction(99, 200)) + rounding


def _stays_within(m: int, sigma2: Fraction, chance: Fraction) -> bool:
    if sigma2 >= _SMOOTH:
        tail = _smooth(m, sigma2)
        if Fraction(tail.upper) <= chance or Fraction(tail.lower) > chance:
            return Fraction(tail.upper) <= chance
    tails = _summed(sigma2, _GAUSSIAN_DIGITS + len(str(ceil(1 / chance))))
    return m >= len(tails) or Fraction(tails[m].upper) <= chance


def _smooth(m: int, sigma2: Fraction) -> Interval:
    """P[|z| > m] by the integral, for a sigma2 of at least 900.

    The sum of f(z) = e^(-z^2/(2 sigma2)) over z > m is compared with its integral from m + 1/2 on, cell by cell: in a
    cell around a whole number n,

        integral of f = f(n) + (f'(n + 1/2) - f'(n - 1/2))/24 + integral of f''''(x) k(x), |k| <= 1/384,

    which is integration by parts, four times, with k(x) = (B4(v) - B4(1/2))/24, v the fractional part of x - n and B4
    the Bernoulli polynomial, which ranges from -1/30 to 7/240. With a = (m + 1/2)/sigma, f'''' = f He4(x/sigma)/
    sigma^4 and |He4(t)| <= t^4 + 6 t^2 + 3, the sum divided by sigma sqrt(2 pi) is

        Q(a) - a phi(a)/(24 sigma2), up to ((a^3 + 9a) phi(a) + 12 Q(a))/(384 sigma2^2).

    The sum of all f is sigma sqrt(2 pi) (1 + 2 sum e^(-2 pi^2 sigma2 k^2)) (Poisson).
    """
    p = precision(_GAUSSIAN_DIGITS + len(str(ceil(sigma2))))
    a = p(m + Fraction(1, 2)) / p(sigma2).sqrt()
    beyond, density = normal_tail(a), normal_density(a)
    off = ((a * a * a + 9 * a) * density + 12 * beyond) / (384 * sigma2 * sigma2)
    middle = beyond - a * density / (24 * sigma2)
    all_of_it = p.between(1, p.ceiling.add(Decimal(1), Decimal("1e-100")))
    return p.between((2 * (middle - off)).lower, (2 * (middle + off)).upper) / all_of_it


@lru_cache(maxsize=64)
def _summed(sigma2: Fraction, digits: int) -> tuple[Interval, ...]:
    """P[|z| > m] for m = 0, 1, ..., until it is below 10^-digits."""
    p = precision(2 * digits)
    ratio, square = (-p(1 / (2 * sigma2))).exp(), (-p(1 / sigma2)).exp()
    weights, smallest = [p(1), ratio], Decimal(10) ** -digits
    while weights[-1].upper > smallest:
        ratio = ratio * square
        weights.append(weights[-1] * ratio)
    # Each weight is the one before times a ratio that falls: what is left out is less than a geometric series.
    rest = p.between(Decimal(0), (weights[-1] * ratio / (1 - ratio)).upper)
    tails = [rest]
    for weight in reversed(weights[1:]):
        tails.append(tails[-1] + weight)
    total = 1 + 2 * tails[-1]
    return tuple(2 * tail / total for tail in reversed(tails))

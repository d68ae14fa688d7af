"""How a loss enters a sum, and how large a pure loss a sum still has room for.

The forms in which losses are added (theory, Groups): rho, (epsilon, delta), the Renyi loss of one order; and their
inverses, which say what would still fit. Sums are rounded up, room is rounded down.

>>> from counterpoint import PureDP, zCDP
>>> as_rho(PureDP(1)), renyi_loss(zCDP(1), Fraction(8))
(Fraction(1, 2), Fraction(8, 1))
"""

from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache

from counterpoint.errors import InvalidParameter, NotCovered
from counterpoint.numbers import precision, sqrt_up
from counterpoint.privacy.loss import DIGITS, Loss
from counterpoint.privacy.losses import ApproxDP, GaussianDP, ProbabilisticDP, PureDP, RenyiDP, tCDP, zCDP


def as_rho(loss: zCDP | PureDP | GaussianDP) -> Fraction:
    """The zCDP parameter of a loss that has one: rho, epsilon^2/2 or mu^2/2, exactly.

    >>> as_rho(PureDP(2))
    Fraction(2, 1)
    """
    return loss.rho if isinstance(loss, zCDP) else loss.as_zcdp().rho


def epsilon_and_delta(loss: Loss) -> tuple[Fraction | None, Fraction]:
    """The coordinates with which a loss enters a sum of (epsilon, delta); no epsilon for measures without one.

    >>> epsilon_and_delta(ApproxDP(1, 0.5)), epsilon_and_delta(zCDP(1))
    ((Fraction(1, 1), Fraction(1, 2)), (None, Fraction(0, 1)))
    """
    if isinstance(loss, PureDP):
        return loss.epsilon, Fraction(0)
    if isinstance(loss, ApproxDP | ProbabilisticDP):
        return loss.epsilon, loss.delta
    return None, Fraction(0)


def variance_at(epsilon: Fraction, slack: Fraction) -> Fraction:
    """y*: the V at which sqrt(2 L V) + V/2 reaches epsilon, rounded down.

    See errata, Whitehouse E1: 2 epsilon under the root.

    >>> float(variance_at(Fraction(1), Fraction(1, 10**6)))
    0.03493780953824675
    """
    p = precision(DIGITS)
    root = (-2 * p(slack).log()).sqrt()
    part = 2 * p(epsilon) / (root + (root * root + 2 * epsilon).sqrt())
    return Fraction((part * part).lower)


def root_below(square: Fraction) -> Fraction:
    """A square root, exact where it is short and else cut to 12 digits; 0 of nothing.

    >>> root_below(Fraction(9, 100)), float(root_below(Fraction(2))), root_below(Fraction(-1))
    (Fraction(3, 10), 1.414213562373, Fraction(0, 1))
    """
    if square <= 0:
        return Fraction(0)
    root = sqrt_up(square)
    return root if root * root == square else short(Fraction(precision(DIGITS)(square).sqrt().lower))


def pure_below(alpha: Fraction, renyi: Fraction) -> Fraction:
    """The largest epsilon, cut to 12 digits, whose Renyi loss tau_alpha(epsilon) is at most this; 0 of nothing.

    It lies above both `renyi` and sqrt(2 renyi/alpha), because tau_alpha(epsilon) is at most epsilon and at most
    alpha epsilon^2/2; from there false position closes in, and what is returned has been checked.

    >>> epsilon = pure_below(Fraction(20), Fraction(1, 10))
    >>> renyi_of(epsilon, Fraction(20)) <= Fraction(1, 10) < renyi_of(epsilon + Fraction(1, 10**11), Fraction(20))
    True
    """
    if renyi <= Fraction(1, 10**60):
        return Fraction(0)
    low = max(renyi, root_below(2 * renyi / alpha))
    high = low
    while renyi_of(high, alpha) <= renyi:
        low, high = high, short(high * Fraction(11, 10))
    return crossing(lambda epsilon: renyi_of(epsilon, alpha) - renyi, low, high)


@lru_cache(maxsize=256)
def rho_below(epsilon: Fraction, delta: Fraction) -> Fraction:
    """The largest rho, cut to 12 digits, whose epsilon at this delta (between 0 and 1) is at most this.

    It lies above what the older conversion allows, rho + 2 sqrt(rho log(1/delta)) = epsilon; what is returned has been
    checked.

    >>> rho = rho_below(Fraction(1), Fraction(1, 10**6))
    >>> float(rho), zCDP(rho).implies(ApproxDP(1, 1e-6)), zCDP(rho * Fraction("1.000001")).implies(ApproxDP(1, 1e-6))
    (0.0243..., True, False)
    """

    def excess(rho: Fraction) -> Fraction:
        return zCDP(rho).as_approx(delta).epsilon - epsilon

    odds = -precision(DIGITS)(delta).log()
    root = epsilon / ((odds + epsilon).sqrt() + odds.sqrt())
    low = high = short(Fraction((root * root).lower))
    while excess(high) <= 0:
        low, high = high, short(high * Fraction(11, 10))
    return crossing(excess, low, high)


def crossing(rising: Callable[[Fraction], Fraction], low: Fraction, high: Fraction) -> Fraction:
    """The last point, to 12 digits, where a rising function is not above 0; it is so at `low` and not at `high`.

    False position with halved weights (the Illinois rule), and bisection where that stands still.

    >>> float(crossing(lambda x: x * x - 2, Fraction(1), Fraction(2)))
    1.414213562373
    """
    below, above = rising(low), rising(high)
    while high - low > high / 10**12:
        middle = short((low * above - high * below) / (above - below))
        if not low < middle < high:
            middle = short((low + high) / 2)
        if not low < middle < high:
            break
        here = rising(middle)
        if here <= 0:
            low, below, above = middle, here, above / 2
        else:
            high, above, below = middle, here, below / 2
    return low


def short(value: Fraction) -> Fraction:
    """The value cut to 12 or 13 significant decimal digits, so that what is reported can be typed.

    >>> short(Fraction(2, 3))
    Fraction(333333333333, 500000000000)
    """
    digits = 12 - len(str(value.numerator)) + len(str(value.denominator))
    scale = Fraction(10) ** digits
    return Fraction(int(value * scale)) / scale


@lru_cache(maxsize=65536)
def renyi_of(epsilon: Fraction, alpha: Fraction) -> Fraction:
    """tau_alpha(epsilon), the Renyi loss of randomized response, rounded up; remembered, since losses recur.

    >>> round(float(renyi_of(Fraction(1, 100), Fraction(16))), 9)
    0.000796814
    """
    return PureDP(epsilon).as_renyi(alpha).epsilon


def renyi_loss(loss: Loss, alpha: Fraction) -> Fraction:
    """The Renyi loss of order alpha, rounded up; `NotCovered` if there is none at this order.

    >>> renyi_loss(zCDP(0.5), Fraction(8))
    Fraction(4, 1)
    """
    if isinstance(loss, PureDP):
        return renyi_of(loss.epsilon, alpha)
    if isinstance(loss, zCDP | tCDP | GaussianDP | RenyiDP):
        return loss.as_renyi(alpha).epsilon
    raise NotCovered(f"{loss!r} has no Renyi loss; PureDP, zCDP, tCDP, GaussianDP and RenyiDP have one")


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

"""Concentrated DP: Rényi divergences that grow at most linearly with the order, by a factor rho.

zCDP bounds D_alpha by alpha rho at every order (Bun and Steinke 2016), tCDP at the orders below omega (Bun et al.
2018), and approximate zCDP at every order, but for an event of probability delta (Bun and Steinke 2016, Def 8.1). The
conversion to (epsilon, delta) takes the best order, the alpha with (alpha-1)^2 rho + log alpha = log(1/delta).

>>> from counterpoint import zCDP
>>> zCDP(0.05).epsilon_at(1e-6), zCDP(0.05).as_renyi(8)
(1.471594750532416, RenyiDP(alpha=8, epsilon=0.4))
"""

import math
from collections.abc import Mapping
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar, Self

from counterpoint.encoding import Value
from counterpoint.errors import NotCovered
from counterpoint.measures.divergences import best_order_for_delta, best_order_for_epsilon
from counterpoint.measures.loss import Loss
from counterpoint.measures.renyi import DivergenceBound
from counterpoint.numbers import Interval, Number, certify, float_up, format_number, precision
from counterpoint.numbers.exact import probability, whole
from counterpoint.numbers.parameters import NonNegative, Order, Probability
from counterpoint.numbers.rounding import DIGITS, crossing, rounded_up, short


class zCDP(DivergenceBound, Value, frozen=True):
    """rho-zero-concentrated DP: D_alpha <= alpha rho at every order.

    >>> zCDP(0.5).group(2)
    zCDP(2)
    """

    rho: NonNegative

    def __repr__(self) -> str:
        return f"zCDP({format_number(self.rho)})"

    def standard_epsilon_at(self, delta: Number) -> float:
        """The older conversion, for reference: rho + 2 sqrt(rho log(1/delta)) (Bun and Steinke 2016, Prop 1.3).

        >>> zCDP(0.05).standard_epsilon_at(1e-6), zCDP(0.05).epsilon_at(1e-6)
        (1.71225813626911, 1.471594750532416)
        """
        allowed = probability(delta, "delta")
        if allowed == 0:
            return math.inf
        bounds = certify(lambda p: self.rho + 2 * (self.rho * -p(allowed).log()).sqrt(), DIGITS)
        return float_up(bounds.upper)

    def group(self, size: int) -> "zCDP":
        """A unit of m places: m^2 rho (Bun and Steinke 2016, Prop 1.9)."""
        return zCDP(whole(size, 0, "size") ** 2 * self.rho)

    letters: ClassVar[tuple[str, ...]] = ("ρ",)

    @property
    def amounts(self) -> tuple[Fraction, ...]:
        """Rho."""
        return (self.rho,)

    def left_after(self, total: Loss) -> "zCDP | None":
        """The rest of rho."""
        return zCDP(max(Fraction(0), self.rho - total.rho)) if isinstance(total, zCDP) else None

    @classmethod
    def compose_fixed(cls, counted: Mapping[Self, int]) -> tuple["zCDP", str]:
        """The sum of rhos (Lyu 2022, Thm 2; Henzinger et al. 2024, Cor 13.4)."""
        return zCDP(rounded_up(sum((copies * loss.rho for loss, copies in counted.items()), Fraction(0)))), "sum"

    @property
    def example(self) -> str:
        """Gaussian noise."""
        return f"Gaussian(rho={format_number(self.rho)})"

    def _advice(self) -> str:
        return "use as_approx(delta), as_renyi(alpha) or as_tcdp(omega)"

    def _is_zero(self) -> bool:
        return self.rho == 0

    def _bound_at(self, alpha: Fraction) -> Fraction:
        return alpha * self.rho

    def _order_for_delta(self, delta: Fraction) -> Fraction:
        return best_order_for_delta(self.rho, delta)

    def _order_for_epsilon(self, epsilon: Fraction) -> Fraction:
        return best_order_for_epsilon(self.rho, epsilon)

    def _follows_from(self, loss: Loss) -> bool:
        return loss.as_zcdp(tight=True).rho <= self.rho


@lru_cache(maxsize=256)
def rho_below(epsilon: Fraction, delta: Fraction) -> Fraction:
    """The largest rho, cut to 12 digits, whose epsilon at this delta (between 0 and 1) is at most this.

    It lies above what the older conversion allows, rho + 2 sqrt(rho log(1/delta)) = epsilon; what is returned has been
    checked.

    >>> from counterpoint import ApproxDP
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


class tCDP(DivergenceBound, Value, frozen=True):
    """(rho, omega)-truncated concentrated DP: D_alpha <= alpha rho at the orders below omega.

    >>> tCDP(rho=0.1, omega=20).implies(tCDP(rho=0.2, omega=10))
    True

    >>> tCDP(rho=0.1, omega=20).as_renyi(8)
    RenyiDP(alpha=8, epsilon=0.8)
    """

    rho: NonNegative
    omega: Order

    def __repr__(self) -> str:
        return f"tCDP(rho={format_number(self.rho)}, omega={format_number(self.omega)})"

    def group(self, size: int) -> "tCDP":
        """A unit of m places: (m^2 rho, omega/m), as long as omega/m is above 1 (Bun et al. 2018).

        By induction on m. Hölder's inequality gives, for three distributions and any order a > 1,
        D_a(P|R) <= ma/(ma-1) D_b(P|Q) + D_ma(Q|R) with b = (ma-1)/(m-1). For a < omega/m the order ma is
        below omega and b below omega/(m-1), so with Q one place away from R the sum is at most
        ma/(ma-1) b (m-1)^2 rho + ma rho = ma (m-1) rho + ma rho = a m^2 rho.

        >>> tCDP(0.1, 20).group(4)
        tCDP(rho=1.6, omega=5)
        """
        places = whole(size, 0, "size")
        if places * self.rho == 0:
            return tCDP(0, self.omega)
        if self.omega <= places:
            raise NotCovered(f"{self!r} has no group privacy for {places}: that needs an omega above {places}")
        return tCDP(places**2 * self.rho, self.omega / places)

    letters: ClassVar[tuple[str, ...]] = ("ρ",)

    @property
    def amounts(self) -> tuple[Fraction, ...]:
        """Rho."""
        return (self.rho,)

    def within(self, budget: Loss) -> bool:
        """A rho that is not larger, up to an omega that is not smaller."""
        return isinstance(budget, tCDP) and self.rho <= budget.rho and self.omega >= budget.omega

    @classmethod
    def compose_fixed(cls, counted: Mapping[Self, int]) -> tuple["tCDP", str]:
        """The sum of rhos, up to the smallest omega (Lyu 2022, Thm 2; Henzinger et al. 2024, Cor 13.4)."""
        rho = rounded_up(sum((copies * loss.rho for loss, copies in counted.items()), Fraction(0)))
        return tCDP(rho, min(loss.omega for loss in counted)), "sum"

    def _advice(self) -> str:
        return "use as_approx(delta), or as_renyi(alpha) below omega"

    def _is_zero(self) -> bool:
        return self.rho == 0

    def _bound_at(self, alpha: Fraction) -> Fraction:
        return alpha * self.rho

    def _order_for_delta(self, delta: Fraction) -> Fraction:
        # omega itself is not bounded, but all orders below are, and (epsilon, delta)-DP survives the limit
        return min(self.omega, best_order_for_delta(self.rho, delta))

    def _order_for_epsilon(self, epsilon: Fraction) -> Fraction:
        return min(self.omega, best_order_for_epsilon(self.rho, epsilon))

    def _follows_from(self, loss: Loss) -> bool:
        return loss.as_tcdp(self.omega).rho <= self.rho


class ApproxzCDP(Loss, Value, frozen=True):
    """delta-approximate rho-zCDP.

    Whitehouse et al. 2023, Thm 7 adds such losses up, for mechanisms that answer once; no theorem composes interactive
    ones, so filters refuse those. Its (epsilon, delta) is that of the exception, or else of zCDP.

    >>> ApproxzCDP(0.1, 1e-9).implies(ApproxzCDP(0.2, 1e-8))
    True

    >>> ApproxzCDP(0.05, 1e-7).epsilon_at(1e-6) < 1.5, ApproxzCDP(0.05, 1e-7).epsilon_at(1e-8)
    (True, inf)
    """

    rho: NonNegative
    delta: Probability

    def __repr__(self) -> str:
        return f"ApproxzCDP({format_number(self.rho)}, {format_number(self.delta)})"

    def _epsilon_bounds(self, delta: Fraction) -> Interval | None:
        """What zCDP has at the delta that the exception leaves."""
        if delta == 1:
            return precision(DIGITS)(0)
        if delta < self.delta:
            return None
        return zCDP(self.rho)._epsilon_bounds((delta - self.delta) / (1 - self.delta))

    def _delta_bounds(self, epsilon: Fraction) -> Interval:
        """The exception, or else what zCDP has."""
        return (self.delta + (1 - self.delta) * zCDP(self.rho)._delta_bounds(epsilon)).at_most(1)

    def group(self, size: int) -> "ApproxzCDP":
        """None is known for two places or more."""
        places = whole(size, 0, "size")
        if places == 0:
            return ApproxzCDP(0, 0)
        if places == 1:
            return self
        raise NotCovered(f"{self!r} has no group privacy; zCDP has")

    letters: ClassVar[tuple[str, ...]] = ("ρ", "δ")

    @property
    def amounts(self) -> tuple[Fraction, ...]:
        """Rho and delta."""
        return self.rho, self.delta

    @classmethod
    def compose_fixed(cls, counted: Mapping[Self, int]) -> tuple[Loss, str]:
        """None: slots, parts and composites may hold mechanisms that interact."""
        raise NotCovered(
            "approximate zCDP adds up for mechanisms that answer once alone (Whitehouse et al. 2023, Thm 7), and what "
            "is composed here may interact; use a Filter or an Odometer in ApproxzCDP, or as_approx(delta)"
        )

    def _is_zero(self) -> bool:
        return self.rho == 0 and self.delta == 0

    def _follows_from(self, loss: Loss) -> bool:
        if isinstance(loss, ApproxzCDP):
            return loss.rho <= self.rho and loss.delta <= self.delta
        return loss.as_zcdp(tight=True).rho <= self.rho

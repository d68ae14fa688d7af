"""Concentrated differential privacy: Rényi divergences that grow at most linearly with the order.

zCDP bounds D_alpha by alpha rho at every order (Bun and Steinke 2016), tCDP only at the orders below omega
(Bun et al. 2018). The conversion to (epsilon, delta) takes the best order, for zCDP the
alpha with (alpha-1)^2 rho + log alpha = log(1/delta).

>>> from counterpoint import zCDP
>>> zCDP(0.05).epsilon_at(1e-6), zCDP(0.05).as_renyi(8)
(1.471594750532416, RenyiDP(alpha=8, epsilon=0.4))
"""

import math
from fractions import Fraction
from typing import TYPE_CHECKING

import msgspec

from counterpoint.encoding import Value
from counterpoint.errors import NotCovered
from counterpoint.numbers import Number, certify, float_up, spell
from counterpoint.numbers.exact import at_least, probability, whole
from counterpoint.privacy import renyi
from counterpoint.privacy.divergence_bound import DivergenceBound, above_one
from counterpoint.privacy.divergences import best_order_for_delta, best_order_for_epsilon
from counterpoint.privacy.loss import DIGITS, Loss, rounded_up


class zCDP(DivergenceBound, Value, frozen=True):
    """rho-zero-concentrated DP: D_alpha <= alpha rho at every order.

    >>> zCDP(0.5).group(2)
    zCDP(2)
    """

    rho: Fraction

    if TYPE_CHECKING:

        def __init__(self, rho: Number) -> None: ...

    def __post_init__(self) -> None:
        msgspec.structs.force_setattr(self, "rho", at_least(self.rho, 0, "rho"))

    def __repr__(self) -> str:
        return f"zCDP({spell(self.rho)})"

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

    def as_renyi(self, alpha: Number) -> "renyi.RenyiDP":
        """The divergence alpha rho at the order given; exact.

        >>> zCDP(0.1).as_renyi(8)
        RenyiDP(alpha=8, epsilon=0.8)
        """
        order = above_one(alpha, "alpha")
        return renyi.RenyiDP(order, rounded_up(order * self.rho))

    def as_zcdp(self) -> "zCDP":
        """Itself."""
        return self

    def as_tcdp(self, omega: Number) -> "tCDP":
        """The same rho, claimed only below omega."""
        return tCDP(self.rho, omega)

    def _advice(self) -> str:
        return "as_approx(delta), as_renyi(alpha) and as_tcdp(omega) exist"

    def _is_zero(self) -> bool:
        return self.rho == 0

    def _bound_at(self, alpha: Fraction) -> Fraction:
        return alpha * self.rho

    def _order_for_delta(self, delta: Fraction) -> Fraction:
        return best_order_for_delta(self.rho, delta)

    def _order_for_epsilon(self, epsilon: Fraction) -> Fraction:
        return best_order_for_epsilon(self.rho, epsilon)

    def _least_rho(self) -> Fraction:
        return self.rho

    def _follows_from(self, loss: Loss) -> bool:
        return loss._least_rho() <= self.rho


class tCDP(DivergenceBound, Value, frozen=True):
    """(rho, omega)-truncated concentrated DP: D_alpha <= alpha rho at the orders below omega.

    >>> tCDP(rho=0.1, omega=20).implies(tCDP(rho=0.2, omega=10))
    True
    """

    rho: Fraction
    omega: Fraction

    if TYPE_CHECKING:

        def __init__(self, rho: Number, omega: Number) -> None: ...

    def __post_init__(self) -> None:
        msgspec.structs.force_setattr(self, "rho", at_least(self.rho, 0, "rho"))
        msgspec.structs.force_setattr(self, "omega", above_one(self.omega, "omega"))

    def __repr__(self) -> str:
        return f"tCDP(rho={spell(self.rho)}, omega={spell(self.omega)})"

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
            raise NotCovered(f"{self!r} has no privacy for groups of {places}: they need an omega above {places}")
        return tCDP(places**2 * self.rho, self.omega / places)

    def as_renyi(self, alpha: Number) -> "renyi.RenyiDP":
        """The divergence alpha rho at an order below omega; exact.

        >>> tCDP(0.1, 6).as_renyi(8)
        Traceback (most recent call last):
        ...
        counterpoint.errors.NotCovered: tCDP(rho=0.1, omega=6) has no conversion to RenyiDP at order 8; ...
        """
        order = above_one(alpha, "alpha")
        if order >= self.omega and self.rho:
            raise self._no_conversion(
                f"RenyiDP at order {spell(order)}", f"orders below {spell(self.omega)} are bounded"
            )
        return renyi.RenyiDP(order, rounded_up(order * self.rho))

    def as_tcdp(self, omega: Number) -> "tCDP":
        """The same rho, claimed only below a smaller omega."""
        order = above_one(omega, "omega")
        if order > self.omega and self.rho:
            raise self._no_conversion(
                f"tCDP up to order {spell(order)}", f"orders below {spell(self.omega)} are bounded"
            )
        return tCDP(self.rho, order)

    def _advice(self) -> str:
        return "as_approx(delta), and as_renyi(alpha) below omega, exist"

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

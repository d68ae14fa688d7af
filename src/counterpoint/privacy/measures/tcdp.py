"""Truncated concentrated differential privacy: concentrated DP at the orders below omega (Bun et al. 2018).

D_alpha is at most alpha rho at every order below omega, and not bounded from there on. Rhos add up, and the smallest
omega counts (`TCDPSum`).

>>> from counterpoint import tCDP
>>> tCDP(rho=0.1, omega=20).as_renyi(8)
RenyiDP(alpha=8, epsilon=0.8)
"""

from collections.abc import Mapping
from fractions import Fraction
from typing import ClassVar, Self

from counterpoint.encoding import Value
from counterpoint.errors import NotCovered
from counterpoint.numbers import Number, spell
from counterpoint.numbers.exact import added_up, whole
from counterpoint.numbers.parameters import NonNegative
from counterpoint.privacy.accumulator import ZERO, Accumulator, Interaction
from counterpoint.privacy.formulas.divergences import best_order_for_delta, best_order_for_epsilon
from counterpoint.privacy.formulas.roots import root_below
from counterpoint.privacy.loss import Loss, rounded_up
from counterpoint.privacy.measures import renyi
from counterpoint.privacy.measures.divergence_bound import DivergenceBound, Order, above_one


class tCDP(DivergenceBound, Value, frozen=True):
    """(rho, omega)-truncated concentrated DP: D_alpha <= alpha rho at the orders below omega.

    >>> tCDP(rho=0.1, omega=20).implies(tCDP(rho=0.2, omega=10))
    True
    """

    rho: NonNegative
    omega: Order

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

    def accumulator(self) -> "TCDPSum":
        """The sum of rhos, up to omega."""
        return TCDPSum(tCDP(0, self.omega))

    @classmethod
    def together(cls, counted: Mapping[Self, int]) -> tuple["tCDP", str]:
        """The sum of rhos, up to the smallest omega (Lyu 2022, Thm 2; Henzinger et al. 2024, Cor 13.4)."""
        rho = rounded_up(sum((copies * loss.rho for loss, copies in counted.items()), ZERO))
        return tCDP(rho, min(loss.omega for loss in counted)), "sum"

    def added_tcdp(self, omega: Fraction) -> tuple[Fraction, Fraction]:
        """Rho, up to the smaller omega."""
        return self.rho, min(omega, self.omega)

    def added_renyi(self, alpha: Fraction) -> Fraction:
        """Alpha rho at an order below omega."""
        return self.as_renyi(alpha).epsilon

    def as_renyi(self, alpha: Number) -> "renyi.RenyiDP":
        """The divergence alpha rho at an order below omega; exact.

        >>> tCDP(0.1, 6).as_renyi(8)
        Traceback (most recent call last):
        ...
        counterpoint.errors.NotCovered: tCDP(rho=0.1, omega=6) has no conversion to RenyiDP at order 8; ...
        """
        order = above_one(alpha, "alpha")
        if order >= self.omega and self.rho:
            raise self._no_conversion(f"RenyiDP at order {spell(order)}", f"choose an order below {spell(self.omega)}")
        return renyi.RenyiDP(order, rounded_up(order * self.rho))

    def as_tcdp(self, omega: Number) -> "tCDP":
        """The same rho, claimed only below a smaller omega."""
        order = above_one(omega, "omega")
        if order > self.omega and self.rho:
            raise self._no_conversion(f"tCDP up to order {spell(order)}", f"choose an order below {spell(self.omega)}")
        return tCDP(self.rho, order)

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


class TCDPSum(Accumulator, Value, frozen=True):
    """rho adds, omega is the smallest.

    See Haney et al. 2023, Thm 1.21; Henzinger et al. 2024, Cor 13.8 at each order below omega.

    Covers tCDP, zCDP, PureDP and GaussianDP; not ApproxDP, nor RenyiDP, which bounds one order only.

    >>> (TCDPSum(tCDP(0, 20)) + tCDP(0.1, 12)).total
    tCDP(rho=0.1, omega=12)
    """

    sum: tCDP
    theorem = (
        "tCDP adds at every Renyi order below the smallest omega (Haney et al. 2023, Thm 1.21; Henzinger et "
        "al. 2024, Cor 13.8)"
    )

    def plus(self, loss: Loss, interaction: Interaction = "endless") -> "TCDPSum":
        """Add a loss that is tCDP."""
        added = loss.added_tcdp(self.sum.omega)
        if added is None:
            self._not_covered(loss, "tCDP, zCDP, PureDP and GaussianDP")
        rho, omega = added
        return TCDPSum(tCDP(added_up(self.sum.rho, rho), omega))

    @property
    def total(self) -> tCDP:
        """The sum and the smallest omega."""
        return self.sum

    def room(self, budget: Loss) -> Fraction:
        """sqrt(2 rho) of what is left."""
        (rho,) = self._limits(budget, tCDP)
        return root_below(2 * (rho - self.sum.rho)) if self.keeps(budget) else ZERO

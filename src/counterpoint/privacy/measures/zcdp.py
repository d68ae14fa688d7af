"""Zero-concentrated differential privacy: Rényi divergences that grow at most linearly with the order.

zCDP bounds D_alpha by alpha rho at every order (Bun and Steinke 2016). The conversion to (epsilon, delta) takes the
best order, the alpha with (alpha-1)^2 rho + log alpha = log(1/delta). Rhos add up (`ZCDPSum`).

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
from counterpoint.numbers import Number, certify, float_up, precision, spell
from counterpoint.numbers.exact import added_up, probability, taken_out, whole
from counterpoint.numbers.parameters import NonNegative
from counterpoint.privacy.accumulator import ZERO, Accumulator, Interaction, Summand
from counterpoint.privacy.formulas.divergences import best_order_for_delta, best_order_for_epsilon
from counterpoint.privacy.formulas.roots import crossing, root_below, short
from counterpoint.privacy.loss import DIGITS, Loss, rounded_up
from counterpoint.privacy.measures import renyi, tcdp
from counterpoint.privacy.measures.divergence_bound import DivergenceBound, above_one


class zCDP(DivergenceBound, Value, frozen=True):
    """rho-zero-concentrated DP: D_alpha <= alpha rho at every order.

    >>> zCDP(0.5).group(2)
    zCDP(2)
    """

    rho: NonNegative

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

    letters: ClassVar[tuple[str, ...]] = ("ρ",)

    @property
    def amounts(self) -> tuple[Fraction, ...]:
        """Rho."""
        return (self.rho,)

    def left_after(self, total: Loss) -> "zCDP | None":
        """The rest of rho."""
        return zCDP(max(ZERO, self.rho - total.rho)) if isinstance(total, zCDP) else None

    @classmethod
    def odometer(cls) -> "ZCDPSum":
        """The sum of rhos."""
        return ZCDPSum()

    @classmethod
    def together(cls, counted: Mapping[Self, int]) -> tuple["zCDP", str]:
        """The sum of rhos (Lyu 2022, Thm 2; Henzinger et al. 2024, Cor 13.4)."""
        return zCDP(rounded_up(sum((copies * loss.rho for loss, copies in counted.items()), ZERO))), "sum"

    def added_rho(self) -> Fraction:
        """Rho."""
        return self.rho

    def added_renyi(self, alpha: Fraction) -> Fraction:
        """Alpha rho."""
        return self.as_renyi(alpha).epsilon

    def added_variance(self, interaction: Interaction) -> tuple[Fraction, Fraction] | None:
        """2 rho, if the mechanism answers once (Whitehouse et al. 2023, Thm 6)."""
        return (2 * self.rho, ZERO) if interaction == "one-shot" else None

    @property
    def example(self) -> str:
        """Gaussian noise."""
        return f"Gaussian(rho={spell(self.rho)})"

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

    def as_tcdp(self, omega: Number) -> "tcdp.tCDP":
        """The same rho, claimed only below omega."""
        return tcdp.tCDP(self.rho, omega)

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

    def _least_rho(self) -> Fraction:
        return self.rho

    def _follows_from(self, loss: Loss) -> bool:
        return loss._least_rho() <= self.rho


class ZCDPSum(Accumulator, Value, frozen=True):
    """rho adds.

    See theory, Sums; every Renyi order at once; Haney et al. 2023, Thm 1.21; Henzinger et al. 2024, Cor 13.8. Covers
    zCDP, PureDP, GaussianDP.

    Not covered: ApproxDP, and RenyiDP or tCDP, which do not bound every order.

    >>> from counterpoint import PureDP
    >>> (ZCDPSum() + PureDP(1) + zCDP(0.25)).total
    zCDP(0.75)
    """

    rho: Fraction = Fraction(0)
    theorem = "zCDP adds at every Renyi order (Haney et al. 2023, Thm 1.21; Henzinger et al. 2024, Cor 13.8)"

    def plus(self, loss: Loss, interaction: Interaction = "endless") -> "ZCDPSum":
        """Add a loss that is zCDP."""
        return ZCDPSum(added_up(self.rho, self._added(loss)))

    def _without(self, charge: Summand) -> "ZCDPSum":
        return ZCDPSum(taken_out(self.rho, self._added(charge.loss)))

    def _added(self, loss: Loss) -> Fraction:
        rho = loss.added_rho()
        if rho is None:
            self._not_covered(loss, "zCDP, PureDP (as epsilon^2/2) and GaussianDP (as mu^2/2)")
        return rho

    @property
    def total(self) -> zCDP:
        """The sum."""
        return zCDP(self.rho)

    def room(self, budget: Loss) -> Fraction:
        """sqrt(2 rho) of what is left."""
        (rho,) = self._limits(budget, zCDP)
        return root_below(2 * (rho - self.rho))


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

"""Rényi differential privacy of one order: the divergence D_alpha between neighbours is at most epsilon.

D_alpha grows with alpha, so the bound holds at every order below alpha too, and says nothing above it
(Mironov 2017). Haney et al. 2023, Thm 1.21 and Henzinger et al. 2024, Cor 13.8 compose losses of one fixed order.

>>> from counterpoint import RenyiDP
>>> RenyiDP(alpha=2, epsilon=0.1).epsilon_at(1e-6)
12.529216196844384
"""

import math
from fractions import Fraction
from typing import TYPE_CHECKING

import msgspec

from counterpoint.encoding import Value
from counterpoint.errors import NotCovered
from counterpoint.numbers import Number, certify, float_up, precision, spell
from counterpoint.numbers.exact import at_least, probability, whole
from counterpoint.privacy import concentrated
from counterpoint.privacy.divergence_bound import DivergenceBound, above_one
from counterpoint.privacy.loss import DIGITS, Loss


class RenyiDP(DivergenceBound, Value, frozen=True):
    """Rényi DP of one order: D_alpha <= epsilon between neighbours, both ways.

    >>> RenyiDP(16, 0.2).implies(RenyiDP(8, 0.2)), RenyiDP(4, 0.2).implies(RenyiDP(8, 0.2))
    (True, False)
    """

    alpha: Fraction
    epsilon: Fraction

    if TYPE_CHECKING:

        def __init__(self, alpha: Number, epsilon: Number) -> None: ...

    def __post_init__(self) -> None:
        msgspec.structs.force_setattr(self, "alpha", above_one(self.alpha, "alpha"))
        msgspec.structs.force_setattr(self, "epsilon", at_least(self.epsilon, 0, "epsilon"))

    def __repr__(self) -> str:
        return f"RenyiDP(alpha={spell(self.alpha)}, epsilon={spell(self.epsilon)})"

    def standard_epsilon_at(self, delta: Number) -> float:
        """The older conversion, for reference: epsilon + log(1/delta)/(alpha-1) (Mironov 2017, Prop 3).

        >>> RenyiDP(2, 0.1).standard_epsilon_at(1e-6), RenyiDP(2, 0.1).epsilon_at(1e-6)
        (13.915510557964275, 12.529216196844384)
        """
        allowed = probability(delta, "delta")
        if allowed == 0:
            return math.inf
        bounds = certify(lambda p: self.epsilon - p(allowed).log() / (self.alpha - 1), DIGITS)
        return float_up(bounds.upper)

    def group(self, size: int) -> "RenyiDP":
        """None at a fixed order: the divergence of a group needs higher orders than the one bounded."""
        places = whole(size, 0, "size")
        if places > 1 and self.epsilon:
            raise NotCovered(f"{self!r} has no group privacy at its own order; a zCDP, tCDP or PureDP loss has")
        return RenyiDP(self.alpha, min(places, 1) * self.epsilon)

    def as_renyi(self, alpha: Number) -> "RenyiDP":
        """The same bound at an order that is not above the stated one (D_alpha grows with alpha); lossy.

        >>> RenyiDP(16, 0.2).as_renyi(8)
        RenyiDP(alpha=8, epsilon=0.2)
        """
        order = above_one(alpha, "alpha")
        if order > self.alpha and self.epsilon:
            raise self._no_conversion(
                f"RenyiDP at order {spell(order)}", f"orders up to {spell(self.alpha)} are bounded"
            )
        return RenyiDP(order, self.epsilon)

    def as_tcdp(self, omega: Number) -> "concentrated.tCDP":
        """(epsilon, omega)-tCDP for an omega up to alpha: D at an order below is at most epsilon; lossy."""
        return concentrated.tCDP(self.as_renyi(omega).epsilon, omega)

    def _advice(self) -> str:
        return "one order bounds none above it; a zCDP, GaussianDP or PureDP loss does"

    def _is_zero(self) -> bool:
        return self.epsilon == 0

    def _bound_at(self, alpha: Fraction) -> Fraction:
        return self.epsilon

    def _order_for_delta(self, delta: Fraction) -> Fraction:
        return self.alpha

    def _order_for_epsilon(self, epsilon: Fraction) -> Fraction:
        return self.alpha

    def _lowest_order_for_epsilon(self, epsilon: Fraction) -> Fraction:
        """1/(1-e^(eps-tau)) below tau: there the same bound, held against a lower order, says more."""
        if epsilon >= self.epsilon:
            return self.alpha
        order = 1 / -precision(DIGITS)(max(epsilon - self.epsilon, Fraction(-700))).expm1()
        return min(self.alpha, Fraction(order.upper))

    def _follows_from(self, loss: Loss) -> bool:
        return loss.as_renyi(self.alpha).epsilon <= self.epsilon

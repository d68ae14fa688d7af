"""Rényi differential privacy of one order: the divergence D_alpha between neighbours is at most epsilon.

D_alpha grows with alpha, so the bound holds at every order below alpha too, and says nothing above it
(Mironov 2017). Haney et al. 2023, Thm 1.21 and Henzinger et al. 2024, Cor 13.8 compose losses of one fixed order.

>>> from counterpoint import RenyiDP
>>> round(RenyiDP(alpha=2, epsilon=0.1).epsilon_at(1e-6), 6)
10.177086
"""

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Self

from msgspec.structs import replace

from counterpoint.encoding import Value
from counterpoint.errors import NotCovered
from counterpoint.numbers import Interval, Number, certify, float_up, precision, spell
from counterpoint.numbers.exact import added_up, probability, taken_out, whole
from counterpoint.numbers.parameters import NonNegative
from counterpoint.privacy.accumulator import ZERO, Accumulator, Interaction, Summand
from counterpoint.privacy.formulas.bernoulli_pairs import worst_delta, worst_epsilon
from counterpoint.privacy.loss import DIGITS, Loss, rounded_up
from counterpoint.privacy.measures import pure, tcdp
from counterpoint.privacy.measures.divergence_bound import DivergenceBound, Order, above_one


class RenyiDP(DivergenceBound, Value, frozen=True):
    """Rényi DP of one order: D_alpha <= epsilon between neighbours, both ways.

    >>> RenyiDP(16, 0.2).implies(RenyiDP(8, 0.2)), RenyiDP(4, 0.2).implies(RenyiDP(8, 0.2))
    (True, False)
    """

    alpha: Order
    epsilon: NonNegative

    def __repr__(self) -> str:
        return f"RenyiDP(alpha={spell(self.alpha)}, epsilon={spell(self.epsilon)})"

    def standard_epsilon_at(self, delta: Number) -> float:
        """The older conversion, for reference: epsilon + log(1/delta)/(alpha-1) (Mironov 2017, Prop 3).

        >>> RenyiDP(2, 0.1).standard_epsilon_at(1e-6), RenyiDP(2, 0.1).epsilon_at(1e-6) < 10.18
        (13.915510557964275, True)
        """
        allowed = probability(delta, "delta")
        if allowed == 0:
            return math.inf
        bounds = certify(lambda p: self.epsilon - p(allowed).log() / (self.alpha - 1), DIGITS)
        return float_up(bounds.upper)

    def _epsilon_bounds(self, delta: Fraction) -> Interval | None:
        """The tight form, where it is found, or the conversion that all orders share."""
        bounds = super()._epsilon_bounds(delta)
        if bounds is None or bounds.upper == 0:
            return bounds
        return _lower(bounds, worst_epsilon(self.alpha, self.epsilon, delta))

    def _delta_bounds(self, epsilon: Fraction) -> Interval:
        """The tight form, where it is found, or the conversion that all orders share."""
        bounds = super()._delta_bounds(epsilon)
        return bounds if self.epsilon == 0 else _lower(bounds, worst_delta(self.alpha, self.epsilon, epsilon))

    def _least_delta(self, epsilon: Fraction) -> Fraction:
        return min(super()._least_delta(epsilon), rounded_up(self._delta_bounds(epsilon).upper))

    def group(self, size: int) -> "RenyiDP":
        """None at a fixed order: the divergence of a group needs higher orders than the one bounded."""
        places = whole(size, 0, "size")
        if places > 1 and self.epsilon:
            raise NotCovered(f"{self!r} has no group privacy: that needs higher orders; use zCDP, tCDP or PureDP")
        return RenyiDP(self.alpha, min(places, 1) * self.epsilon)

    @property
    def amounts(self) -> tuple[Fraction, ...]:
        """Epsilon."""
        return (self.epsilon,)

    def within(self, budget: Loss) -> bool:
        """An epsilon that is not larger, at an order that is not lower."""
        return isinstance(budget, RenyiDP) and self.alpha >= budget.alpha and self.epsilon <= budget.epsilon

    def can_keep(self, threshold: Loss) -> bool:
        """A threshold at a lower order, or the same."""
        return replace(self, epsilon=ZERO).within(threshold)

    def accumulator(self) -> "RenyiSum":
        """The sum of losses at this order."""
        return RenyiSum(self.alpha)

    @classmethod
    def together(cls, counted: Mapping[Self, int]) -> tuple["RenyiDP", str]:
        """The sum, at the one order that they all have (Lyu 2022, Thm 2; Henzinger et al. 2024, Cor 13.4)."""
        orders = {loss.alpha for loss in counted}
        if len(orders) > 1:
            raise NotCovered(f"Renyi losses add at one order only; give them all as_renyi({spell(min(orders))})")
        epsilon = rounded_up(sum((copies * loss.epsilon for loss, copies in counted.items()), ZERO))
        return RenyiDP(min(orders), epsilon), "sum"

    def added_renyi(self, alpha: Fraction) -> Fraction:
        """Epsilon, at an order that is not above the stated one."""
        return self.as_renyi(alpha).epsilon

    def as_renyi(self, alpha: Number) -> "RenyiDP":
        """The same bound at an order that is not above the stated one (D_alpha grows with alpha); lossy.

        >>> RenyiDP(16, 0.2).as_renyi(8)
        RenyiDP(alpha=8, epsilon=0.2)
        """
        order = above_one(alpha, "alpha")
        if order > self.alpha and self.epsilon:
            raise self._no_conversion(
                f"RenyiDP at order {spell(order)}", f"choose an order of at most {spell(self.alpha)}"
            )
        return RenyiDP(order, self.epsilon)

    def as_tcdp(self, omega: Number) -> "tcdp.tCDP":
        """(epsilon, omega)-tCDP for an omega up to alpha: D at an order below is at most epsilon; lossy."""
        return tcdp.tCDP(self.as_renyi(omega).epsilon, omega)

    def _advice(self) -> str:
        return "it bounds no order above its own; use zCDP, GaussianDP or PureDP"

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


def _lower(bounds: Interval, tight: Interval | None) -> Interval:
    """The tight bounds, unless they are wider above than those that are certain anyway."""
    if tight is None:
        return bounds
    return bounds.precision.between(min(tight.lower, bounds.upper), min(tight.upper, bounds.upper))


class RenyiSum(Accumulator, Value, frozen=True):
    """Renyi losses of one order add.

    See Haney et al. 2023, Thm 1.21; Henzinger et al. 2024, Cor 13.8. Covers all that has a Renyi loss at that order.

    Not covered: ApproxDP, Renyi losses of a lower order, tCDP up to an omega that is not above it.

    >>> from counterpoint import zCDP
    >>> (RenyiSum(Fraction(8)) + RenyiDP(16, 0.1) + zCDP(0.01)).total
    RenyiDP(alpha=8, epsilon=0.18)
    """

    alpha: Fraction
    epsilon: Fraction = Fraction(0)
    theorem = "Renyi losses of one order add (Haney et al. 2023, Thm 1.21; Henzinger et al. 2024, Cor 13.8)"

    def plus(self, loss: Loss, interaction: Interaction = "endless") -> "RenyiSum":
        """Add a loss at this order."""
        return RenyiSum(self.alpha, added_up(self.epsilon, loss.added_renyi(self.alpha)))

    def _without(self, charge: Summand) -> "RenyiSum":
        return RenyiSum(self.alpha, taken_out(self.epsilon, charge.loss.added_renyi(self.alpha)))

    @property
    def total(self) -> RenyiDP:
        """The sum, at this order."""
        return RenyiDP(self.alpha, self.epsilon)

    def room(self, budget: Loss) -> Fraction:
        """The epsilon whose Renyi loss is what is left."""
        (epsilon,) = self._limits(budget, RenyiDP)
        return pure.pure_below(self.alpha, epsilon - self.epsilon)

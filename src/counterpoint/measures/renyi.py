"""Rényi DP of one order, and what all bounds on Rényi divergences share.

Each order that is bounded proves an (epsilon, delta), and the conversion takes the order that proves most.
`implies` also uses that lower orders are bounded, and that the hockey stick is convex in e^epsilon, so that a larger
epsilon and its delta bound the smaller ones; without these two it would not be transitive.

>>> from counterpoint import ApproxDP, RenyiDP
>>> RenyiDP(8, 1).delta_at(0.5), RenyiDP(8, 1).implies(ApproxDP(0.5, 0.4))
(0.3934693402873666, True)
"""

import math
from abc import abstractmethod
from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar, Self

from msgspec.structs import replace

from counterpoint.encoding import Value
from counterpoint.errors import NotCovered
from counterpoint.measures.bernoulli_pairs import SMALLEST, worst_delta, worst_epsilon
from counterpoint.measures.divergences import delta_below, renyi_to_delta, renyi_to_epsilon
from counterpoint.measures.loss import Loss
from counterpoint.numbers import Interval, Number, certify, float_up, format_number, precision
from counterpoint.numbers.exact import probability, whole
from counterpoint.numbers.parameters import NonNegative, Order
from counterpoint.numbers.rounding import DIGITS, certified_delta, rounded_up


class DivergenceBound(Loss):
    """A loss that bounds Rényi divergences, read as (epsilon, delta) at the order that says most."""

    __slots__ = ()

    theorem_if_fixed: ClassVar[str] = (
        "divergences of mechanisms fixed in advance add (Lyu 2022, Thm 2; Henzinger et al. 2024, Cor 13.4)"
    )

    @abstractmethod
    def _bound_at(self, alpha: Fraction) -> Fraction:
        """The bound on D_alpha; 0 means that nothing is lost at all."""

    @abstractmethod
    def _order_for_delta(self, delta: Fraction) -> Fraction: ...

    @abstractmethod
    def _order_for_epsilon(self, epsilon: Fraction) -> Fraction: ...

    def _lowest_order_for_epsilon(self, epsilon: Fraction) -> Fraction:
        """The best of all orders that are bounded, those below the stated one included."""
        return self._order_for_epsilon(epsilon)

    def _epsilon_bounds(self, delta: Fraction) -> Interval | None:
        """The conversion (`renyi_to_epsilon`) at the order that makes it smallest."""
        if self._is_zero() or delta == 1:
            return precision(DIGITS)(0)
        if delta == 0:
            return None
        alpha = self._order_for_delta(delta)
        tau = self._bound_at(alpha)
        return certify(lambda p: renyi_to_epsilon(tau, alpha, delta, p), DIGITS)

    def _delta_bounds(self, epsilon: Fraction) -> Interval:
        """The same theorem, solved for delta."""
        if self._is_zero():
            return precision(DIGITS)(0)
        return self._delta_through(self._order_for_epsilon(epsilon), epsilon)

    def _delta_through(self, alpha: Fraction, epsilon: Fraction) -> Interval:
        tau = self._bound_at(alpha)
        return certified_delta(lambda p: renyi_to_delta(tau, alpha, epsilon, p))

    def _least_delta(self, epsilon: Fraction) -> Fraction:
        """Also what convexity adds to the conversion: see `_corner`."""
        if self._is_zero():
            return Fraction(0)
        through = rounded_up(self._delta_through(self._lowest_order_for_epsilon(epsilon), epsilon).upper)
        corner = _corner(self)
        if epsilon >= corner[0]:
            return through
        return min(through, rounded_up(certify(lambda p: delta_below(*corner, epsilon, p), DIGITS).upper))

    def _covers(self, epsilon: Fraction, delta: Fraction) -> bool:
        if delta == 0:
            return self._is_zero()
        least = self._least_epsilon(delta)  # the conversion itself comes first: it is the cheap one
        return (least is not None and least <= epsilon) or self._least_delta(epsilon) <= delta


_SMALLEST_POWER = 997
"""2 to minus this is about 10^-300: no corner is looked for below."""


def _first(holds: Callable[[int], bool], low: int) -> int:
    """The first whole number from `low` on where a condition that stays true holds; found by doubling and halving."""
    if holds(low):
        return low
    reach = 1
    while not holds(low + reach):
        reach *= 2
    high, low = low + reach, low + reach // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


@lru_cache(maxsize=1024)
def _corner(loss: DivergenceBound) -> tuple[Fraction, Fraction]:
    """The (epsilon, delta) whose own randomized response lies below the rest of the conversion's curve.

    Against s = e^eps the conversion's delta is convex, but for a small epsilon it is above what (eps',
    delta') at a larger eps' implies: the line through (-1, 1) and (e^eps', delta'). The two meet in a
    tangent. As delta is C s^(1-alpha), its slope is -(alpha-1) delta/s, and that of the line is
    -(1-delta)/(1+s).
    """
    rough = precision(25)

    def is_steep(epsilon: Fraction) -> bool:
        alpha = loss._lowest_order_for_epsilon(epsilon)
        delta = renyi_to_delta(loss._bound_at(alpha), alpha, epsilon, rough)
        return (delta * (alpha - 1) * (1 + rough(-epsilon).exp()) + delta).upper > 1

    high = Fraction(2) ** _first(lambda power: not is_steep(Fraction(2) ** power), -_SMALLEST_POWER)
    low = high / 2
    for _ in range(30):
        middle = (low + high) / 2
        low, high = (middle, high) if is_steep(middle) else (low, middle)
    delta = loss._delta_through(loss._lowest_order_for_epsilon(high), high)
    return high, rounded_up(delta.upper)


class RenyiDP(DivergenceBound, Value, frozen=True):
    """Rényi DP of one order: D_alpha <= epsilon between neighbours, both ways.

    D_alpha grows with alpha, so the bound holds at every order below alpha too, and says nothing above it (Mironov
    2017). Haney et al. 2023, Thm 1.21 and Henzinger et al. 2024, Cor 13.8 compose losses of one fixed order.

    >>> RenyiDP(16, 0.2).implies(RenyiDP(8, 0.2)), RenyiDP(4, 0.2).implies(RenyiDP(8, 0.2))
    (True, False)

    >>> round(RenyiDP(alpha=2, epsilon=0.1).epsilon_at(1e-6), 6)
    10.177086
    """

    alpha: Order
    epsilon: NonNegative

    def __repr__(self) -> str:
        return f"RenyiDP(alpha={format_number(self.alpha)}, epsilon={format_number(self.epsilon)})"

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
        return bounds if self.epsilon == 0 else _lower(bounds, self._worst_delta(epsilon))

    def _worst_delta(self, epsilon: Fraction) -> Interval | None:
        """The tight form; below the smallest epsilon at which floats find it, what follows from that one.

        A claim bounds the divergence both ways, so the hockey stick of RR(s, delta(s)) bounds those before s.
        """
        found = worst_delta(self.alpha, self.epsilon, epsilon)
        if found is not None or epsilon >= SMALLEST:
            return found
        near = worst_delta(self.alpha, self.epsilon, SMALLEST)
        if near is None:
            return None
        most = Fraction(near.at_most(1).upper)
        above = certify(lambda p: delta_below(SMALLEST, most, epsilon, p), DIGITS).upper
        return precision(DIGITS).between(min(near.lower, above), above)

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
        return replace(self, epsilon=Fraction(0)).within(threshold)

    @classmethod
    def compose_fixed(cls, counted: Mapping[Self, int]) -> tuple["RenyiDP", str]:
        """The sum, at the one order that they all have (Lyu 2022, Thm 2; Henzinger et al. 2024, Cor 13.4)."""
        orders = {loss.alpha for loss in counted}
        if len(orders) > 1:
            raise NotCovered(
                f"Renyi losses add at one order only; give them all as_renyi({format_number(min(orders))})"
            )
        epsilon = rounded_up(sum((copies * loss.epsilon for loss, copies in counted.items()), Fraction(0)))
        return RenyiDP(min(orders), epsilon), "sum"

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

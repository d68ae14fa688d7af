"""zCDP, tCDP and approximate zCDP.

Zero-concentrated differential privacy: Rényi divergences that grow at most linearly with the order.

zCDP bounds D_alpha by alpha rho at every order (Bun and Steinke 2016). The conversion to (epsilon, delta) takes the
best order, the alpha with (alpha-1)^2 rho + log alpha = log(1/delta). Rhos add up (`ZCDPSum`).

>>> from counterpoint import zCDP
>>> zCDP(0.05).epsilon_at(1e-6), zCDP(0.05).as_renyi(8)
(1.471594750532416, RenyiDP(alpha=8, epsilon=0.4))

Truncated concentrated differential privacy: concentrated DP at the orders below omega (Bun et al. 2018).

D_alpha is at most alpha rho at every order below omega, and not bounded from there on. Rhos add up, and the smallest
omega counts (`TCDPSum`).

>>> from counterpoint import tCDP
>>> tCDP(rho=0.1, omega=20).as_renyi(8)
RenyiDP(alpha=8, epsilon=0.8)

Approximate zero-concentrated DP: rho-zCDP but for an event of probability delta (Bun and Steinke 2016, Def 8.1).

Whitehouse et al. 2023, Thm 7 adds such losses up, for mechanisms that answer once; no theorem composes interactive
ones, so filters refuse those. To (epsilon, delta) it converts as what it is: the exception, or else zCDP.

>>> from counterpoint.measures import ApproxzCDP
>>> ApproxzCDP(0.05, 1e-7).epsilon_at(1e-6) < 1.5, ApproxzCDP(0.05, 1e-7).epsilon_at(1e-8)
(True, inf)
"""

import math
from collections.abc import Mapping
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar, Self

from counterpoint.encoding import Value
from counterpoint.errors import NotCovered
from counterpoint.measures import renyi
from counterpoint.measures.accumulator import ZERO, Accumulator, Interaction, Summand
from counterpoint.measures.divergences import best_order_for_delta, best_order_for_epsilon
from counterpoint.measures.loss import Loss
from counterpoint.measures.renyi import DivergenceBound, Order, above_one
from counterpoint.measures.unbounded import Unbounded
from counterpoint.numbers import Interval, Number, certify, float_up, precision, spell
from counterpoint.numbers.exact import added_up, probability, taken_out, whole
from counterpoint.numbers.parameters import NonNegative, Probability
from counterpoint.numbers.rounding import DIGITS, crossing, root_below, rounded_up, short


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

    def as_tcdp(self, omega: Number) -> "tCDP":
        """The same rho, claimed only below omega."""
        return tCDP(self.rho, omega)

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


class ApproxzCDP(Loss, Value, frozen=True):
    """delta-approximate rho-zCDP.

    >>> ApproxzCDP(0.1, 1e-9).implies(ApproxzCDP(0.2, 1e-8))
    True
    """

    rho: NonNegative
    delta: Probability

    def __repr__(self) -> str:
        return f"ApproxzCDP({spell(self.rho)}, {spell(self.delta)})"

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
    def odometer(cls) -> "ApproximateZCDPSum":
        """The sums of rhos and deltas, for mechanisms that answer once.

        Whitehouse et al. 2023, Thm 7 is a filter at every (rho, delta), and so the sums are an odometer (Haney et al.
        2023, Lemma 2.19).
        """
        return ApproximateZCDPSum()

    @classmethod
    def together(cls, counted: Mapping[Self, int]) -> tuple[Loss, str]:
        """None: slots, parts and composites may hold mechanisms that interact."""
        raise NotCovered(
            "approximate zCDP adds up for mechanisms that answer once alone (Whitehouse et al. 2023, Thm 7), and what "
            "is composed here may interact; use a Filter or an Odometer in ApproxzCDP, or as_approx(delta)"
        )

    def added_rho_and_delta(self) -> tuple[Fraction, Fraction]:
        """Rho and delta."""
        return self.rho, self.delta

    def _is_zero(self) -> bool:
        return self.rho == 0 and self.delta == 0

    def _follows_from(self, loss: Loss) -> bool:
        if isinstance(loss, ApproxzCDP):
            return loss.rho <= self.rho and loss.delta <= self.delta
        return loss._least_rho() <= self.rho


class ApproximateZCDPSum(Accumulator, Value, frozen=True):
    """rho and delta add (theory, What covers what; Whitehouse et al. 2023, Thm 7), for mechanisms that answer once.
    Covers all that is approximate zCDP.

    An (epsilon, delta) launch enters as epsilon^2/2 with its delta, being a postprocessing of RR(epsilon, delta).

    >>> from counterpoint import ApproxDP
    >>> (ApproximateZCDPSum().plus(zCDP(0.1), "one-shot").plus(ApproxDP(1, 1e-9), "one-shot")).total
    ApproxzCDP(0.6, 1e-9)
    """

    rho: Fraction = Fraction(0)
    delta: Fraction = Fraction(0)
    theorem = "approximate zCDP adds for mechanisms that answer once (Whitehouse et al. 2023, Thm 7)"

    def plus(self, loss: Loss, interaction: Interaction = "endless") -> "ApproximateZCDPSum":
        """Add a one-shot loss."""
        if interaction != "one-shot":
            self._not_covered(f"{loss!r} of an interactive mechanism", "mechanisms that answer once")
        added = loss.added_rho_and_delta()
        if added is None:
            self._not_covered(loss, "ApproxzCDP, zCDP, PureDP, ApproxDP and GaussianDP")
        rho, delta = added
        return ApproximateZCDPSum(added_up(self.rho, rho), added_up(self.delta, delta))

    @property
    def total(self) -> ApproxzCDP | Unbounded:
        """The sums; unbounded once the deltas exceed 1."""
        return ApproxzCDP(self.rho, self.delta) if self.delta <= 1 else Unbounded()

    def room(self, budget: Loss) -> Fraction:
        """sqrt(2 rho) of what is left."""
        rho, delta = self._limits(budget, ApproxzCDP)
        return root_below(2 * (rho - self.rho)) if self.delta <= delta else ZERO

    def delta_left(self, budget: Loss) -> Fraction:
        """What is left of delta."""
        _, delta = self._limits(budget, ApproxzCDP)
        return delta - self.delta

"""Approximate zero-concentrated DP: rho-zCDP but for an event of probability delta (Bun and Steinke 2016, Def 8.1).

Whitehouse et al. 2023, Thm 7 adds such losses up, for mechanisms that answer once; no theorem composes interactive
ones, so filters refuse those. To (epsilon, delta) it converts as what it is: the exception, or else zCDP.

>>> from counterpoint import ApproxzCDP
>>> ApproxzCDP(0.05, 1e-7).epsilon_at(1e-6) < 1.5, ApproxzCDP(0.05, 1e-7).epsilon_at(1e-8)
(True, inf)
"""

from collections.abc import Mapping
from fractions import Fraction
from typing import ClassVar, Self

from counterpoint.encoding import Value
from counterpoint.errors import NotCovered
from counterpoint.numbers import Interval, precision, spell
from counterpoint.numbers.exact import added_up, whole
from counterpoint.numbers.parameters import NonNegative, Probability
from counterpoint.privacy.accumulator import ZERO, Accumulator, Interaction
from counterpoint.privacy.formulas.roots import root_below
from counterpoint.privacy.loss import DIGITS, Loss
from counterpoint.privacy.measures.unbounded import Unbounded
from counterpoint.privacy.measures.zcdp import zCDP


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

"""Approximate zero-concentrated DP: rho-zCDP but for an event of probability delta (Bun and Steinke 2016, Def 8.1).

Whitehouse et al. 2023, Thm 7 adds such losses up, for mechanisms that answer once; no theorem composes interactive
ones, so filters refuse those. To (epsilon, delta) it converts as what it is: the exception, or else zCDP.

>>> from counterpoint import ApproxzCDP
>>> ApproxzCDP(0.05, 1e-7).epsilon_at(1e-6) < 1.5, ApproxzCDP(0.05, 1e-7).epsilon_at(1e-8)
(True, inf)
"""

from fractions import Fraction
from typing import TYPE_CHECKING

from msgspec.structs import force_setattr

from counterpoint.encoding import Value
from counterpoint.numbers import Interval, Number, precision, spell
from counterpoint.numbers.exact import at_least, probability, whole
from counterpoint.privacy.concentrated import zCDP
from counterpoint.privacy.loss import DIGITS, Loss


class ApproxzCDP(Loss, Value, frozen=True):
    """delta-approximate rho-zCDP.

    >>> ApproxzCDP(0.1, 1e-9).implies(ApproxzCDP(0.2, 1e-8))
    True
    """

    rho: Fraction
    delta: Fraction

    if TYPE_CHECKING:

        def __init__(self, rho: Number, delta: Number) -> None: ...

    def __post_init__(self) -> None:
        """Read the parameters exactly."""
        force_setattr(self, "rho", at_least(self.rho, 0, "rho"))
        force_setattr(self, "delta", probability(self.delta, "delta"))

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
        raise self._no_conversion(f"a group of {size}", "zCDP without an exception has one")

    def _is_zero(self) -> bool:
        return self.rho == 0 and self.delta == 0

    def _follows_from(self, loss: Loss) -> bool:
        if isinstance(loss, ApproxzCDP):
            return loss.rho <= self.rho and loss.delta <= self.delta
        return loss._least_rho() <= self.rho

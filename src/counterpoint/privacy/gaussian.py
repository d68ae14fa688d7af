"""Gaussian differential privacy: telling neighbours apart is no easier than N(0, 1) from N(mu, 1).

Dong et al. 2022. Its (epsilon, delta) curve is exact: delta = Q(a) - e^eps Q(b) with a = eps/mu - mu/2, b
= eps/mu + mu/2 and Q the normal tail (Balle and Wang 2018). e^eps Q(b) is the density at a times Mills' ratio
at b, so nothing overflows. What has no closed form (epsilon, the mu for a budget) is found by Newton's steps
and enclosed by certified evaluations.

>>> from counterpoint import GaussianDP
>>> GaussianDP(1).delta_at(1), GaussianDP(1).epsilon_at(1e-6)
(0.12693673750664397, 4.886554117462212)
"""

from fractions import Fraction
from typing import TYPE_CHECKING

import msgspec

from counterpoint.encoding import Value
from counterpoint.errors import InvalidParameter
from counterpoint.numbers import Interval, Number, precision, spell
from counterpoint.numbers.exact import at_least, probability, whole
from counterpoint.privacy import concentrated, renyi, tradeoff
from counterpoint.privacy.gaussian_curve import gaussian_delta, gaussian_epsilon, gaussian_mu
from counterpoint.privacy.loss import DIGITS, Loss, certified_delta, rounded_down, rounded_up


class GaussianDP(Loss, Value, frozen=True):
    """mu-Gaussian DP.

    >>> GaussianDP(0.5).as_zcdp()
    zCDP(0.125)
    """

    mu: Fraction

    if TYPE_CHECKING:

        def __init__(self, mu: Number) -> None: ...

    def __post_init__(self) -> None:
        msgspec.structs.force_setattr(self, "mu", at_least(self.mu, 0, "mu"))

    def __repr__(self) -> str:
        return f"GaussianDP({spell(self.mu)})"

    @classmethod
    def for_budget(cls, epsilon: Number, delta: Number) -> "GaussianDP":
        """The largest mu that implies (epsilon, delta)-DP, rounded down.

        >>> float(GaussianDP.for_budget(0.1, 1e-9).mu)
        0.01991642341268146...
        """
        budget, allowed = at_least(epsilon, 0, "epsilon"), probability(delta, "delta")
        if allowed == 1:
            raise InvalidParameter("delta must be below 1: at 1 every mu is within the budget")
        if allowed == 0:
            return cls(0)
        return cls(rounded_down(gaussian_mu(budget, allowed).lower))

    def _epsilon_bounds(self, delta: Fraction) -> Interval | None:
        """Where the curve falls to delta."""
        if self.mu == 0 or delta == 1:
            return precision(DIGITS)(0)
        if delta == 0:
            return None
        return gaussian_epsilon(self.mu, delta)

    def _delta_bounds(self, epsilon: Fraction) -> Interval:
        """Q(eps/mu - mu/2) - e^eps Q(eps/mu + mu/2)."""
        if self.mu == 0:
            return precision(DIGITS)(0)
        return certified_delta(lambda p: gaussian_delta(self.mu, epsilon, p))

    def group(self, size: int) -> "GaussianDP":
        """A unit of m places: m mu (Dong et al. 2022, Thm 2.14).

        >>> GaussianDP(0.5).group(3)
        GaussianDP(1.5)
        """
        return GaussianDP(whole(size, 0, "size") * self.mu)

    def as_renyi(self, alpha: Number) -> "renyi.RenyiDP":
        """The divergence alpha mu^2/2 of the two Gaussians; exact."""
        return self.as_zcdp().as_renyi(alpha)

    def as_zcdp(self) -> "concentrated.zCDP":
        """mu^2/2; exact as a bound on divergences, lossy as a curve."""
        return concentrated.zCDP(rounded_up(self.mu**2 / 2))

    def as_tcdp(self, omega: Number) -> "concentrated.tCDP":
        """(mu^2/2, omega)-tCDP."""
        return self.as_zcdp().as_tcdp(omega)

    def as_gaussian(self) -> "GaussianDP":
        """Itself."""
        return self

    def as_tradeoff(self, points: int = 32) -> "tradeoff.TradeOff":
        """The curve G_mu from below: the upper envelope of `points` pairs of tangents; lossy between them.

        >>> GaussianDP(1).implies(GaussianDP(1).as_tradeoff(points=4))
        True
        """
        count = whole(points, 1, "points")
        epsilons = [rounded_up(8 * self.mu * k / count) for k in range(count)]
        return tradeoff.TradeOff.highest(
            tradeoff.TradeOff.of_approx(epsilon, self._least_delta(epsilon)) for epsilon in epsilons
        )

    def _advice(self) -> str:
        return "its loss is unbounded: as_approx(delta), as_zcdp(), as_renyi(alpha) and as_tradeoff() exist"

    def _is_zero(self) -> bool:
        return self.mu == 0

    def _least_rho(self) -> Fraction:
        return self.as_zcdp().rho

    def _follows_from(self, loss: Loss) -> bool:
        return loss.as_gaussian().mu <= self.mu

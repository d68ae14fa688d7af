"""Advanced composition with adaptively chosen losses: the root of twice log(1/delta') times the sum of epsilon^2.

See Whitehouse et al. 2023, Thm 1; Haney et al. 2023, Thm 3.7, 3.8; theory, The advanced filter.

>>> from counterpoint import ApproxDP, Filter
>>> rule = Filter(ApproxDP(1, 1e-6), by="advanced")
>>> round(float(rule.remaining(rule.start()).epsilon), 4)
0.1825
"""

from fractions import Fraction

from msgspec.structs import replace

from counterpoint.encoding import Value
from counterpoint.numbers import precision
from counterpoint.numbers.exact import added_up
from counterpoint.privacy.accumulator import ZERO, Accumulator, Interaction
from counterpoint.privacy.formulas.roots import root_below
from counterpoint.privacy.loss import DIGITS, Loss
from counterpoint.privacy.losses import ApproxDP, Unbounded


class AdvancedSum(Accumulator, Value, frozen=True):
    """sqrt(2 log(1/delta') V) + V/2 with V = sum epsilon_m^2 and delta' fixed in advance.

    See Whitehouse et al. 2023, Thm 1; Haney et al. 2023, Thm 3.7, 3.8.

    theory, The advanced filter. Covers PureDP and ApproxDP; by Whitehouse et al. 2023, Thm 6 (theory, The advanced
    filter) also zCDP claims of one-shot mechanisms, whose rho enters V as 2 rho. errata, Haney E1: printed with the
    inequality reversed.

    >>> from counterpoint import PureDP
    >>> print(round((AdvancedSum(Fraction(1, 10**5), Fraction(1, 10**6)) + PureDP(0.01)).total.epsilon_at(1e-5), 3))
    0.053
    """

    delta: Fraction
    slack: Fraction
    variance: Fraction = Fraction(0)
    exposed: Fraction = Fraction(0)
    theorem = (
        "fully adaptive advanced composition (Whitehouse et al. 2023, Thm 1; Haney et al. 2023, Thm 3.7 and "
        "3.8; Henzinger et al. 2024, Thm 12.4)"
    )

    def plus(self, loss: Loss, interaction: Interaction = "endless") -> "AdvancedSum":
        """Add a loss."""
        added = loss.added_variance(interaction)
        if added is None:
            self._not_covered(
                loss, "PureDP, ApproxDP, and zCDP of mechanisms that answer once (Whitehouse et al. 2023, Thm 6)"
            )
        variance, delta = added
        return replace(self, variance=added_up(self.variance, variance), exposed=added_up(self.exposed, delta))

    @property
    def total(self) -> ApproxDP | Unbounded:
        """(epsilon, delta); unbounded once delta' + sum delta_m exceeds delta."""
        if self.slack + self.exposed > self.delta:
            return Unbounded()
        p = precision(DIGITS)
        bound = (2 * -p(self.slack).log() * self.variance).sqrt() + self.variance / 2
        return ApproxDP(Fraction(bound.upper), self.delta)

    def delta_left(self, budget: Loss) -> Fraction:
        """How much the deltas of further launches may add up to."""
        _, delta = self._limits(budget, ApproxDP)
        return max(ZERO, delta - self.slack - self.exposed)

    def room(self, budget: Loss) -> Fraction:
        """The root of what V still lacks of the largest one that the budget allows."""
        epsilon, _ = self._limits(budget, ApproxDP)
        if self.slack + self.exposed > self.delta:
            return ZERO
        return root_below(variance_at(epsilon, self.slack) - self.variance)


def variance_at(epsilon: Fraction, slack: Fraction) -> Fraction:
    """y*: the V at which sqrt(2 L V) + V/2 reaches epsilon, rounded down.

    See errata, Whitehouse E1: 2 epsilon under the root.

    >>> float(variance_at(Fraction(1), Fraction(1, 10**6)))
    0.03493780953824675
    """
    p = precision(DIGITS)
    root = (-2 * p(slack).log()).sqrt()
    part = 2 * p(epsilon) / (root + (root * root + 2 * epsilon).sqrt())
    return Fraction((part * part).lower)

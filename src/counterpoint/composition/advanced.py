"""Advanced composition, the constants that a theorem fixes in advance, and a limit on the number of launches.

Any choice of the constants is valid; a good one is tight. Floats search for it, and the result is fixed as a rational.

>>> from counterpoint import ApproxDP, Filter
>>> rule = Filter(ApproxDP(1, 1e-6), by="advanced")
>>> round(float(rule.remaining(rule.start()).epsilon), 4)
0.1825
"""

import math
from collections.abc import Callable
from fractions import Fraction
from typing import ClassVar

from msgspec.structs import replace

from counterpoint.composition.accumulator import ZERO, Accumulator, Entries, entry
from counterpoint.encoding import Value
from counterpoint.errors import BudgetExceeded
from counterpoint.measures import ApproxDP, PureDP, Unbounded, zCDP
from counterpoint.measures.conversions import response_of
from counterpoint.measures.loss import EpsilonDelta, Loss
from counterpoint.numbers import precision
from counterpoint.numbers.exact import added_up
from counterpoint.numbers.rounding import DIGITS, root_below
from counterpoint.privacy.certificates import Certificate
from counterpoint.privacy.claims import Interaction


class AdvancedSum(Accumulator, Value, frozen=True):
    """sqrt(2 log(1/delta') V) + V/2 with V = sum epsilon_m^2 and delta' fixed in advance.

    See Whitehouse et al. 2023, Thm 1; Haney et al. 2023, Thm 3.7, 3.8.

    Covers PureDP and ApproxDP; by Whitehouse et al. 2023, Thm 6 (theory, The advanced
    filter) also zCDP claims of one-shot mechanisms, whose rho enters V as 2 rho. errata, Haney E1: printed with the
    inequality reversed.

    >>> from counterpoint import PureDP
    >>> print(round((AdvancedSum(Fraction(1, 10**5), Fraction(1, 10**6)) + PureDP(0.01)).total.epsilon_at(1e-5), 3))
    0.053
    """

    ENTERS: ClassVar[Entries[EpsilonDelta]] = {
        zCDP: lambda loss, how: (2 * loss.rho, ZERO) if how == "one-shot" else None,
    }

    delta: Fraction
    slack: Fraction
    variance: Fraction = Fraction(0)
    exposed: Fraction = Fraction(0)
    theorem = (
        "fully adaptive advanced composition (Whitehouse et al. 2023, Thm 1; Haney et al. 2023, Thm 3.7 and "
        "3.8; Henzinger et al. 2024, Thm 12.4)"
    )

    def plus(self, loss: Loss, interaction: Interaction = "endless") -> "AdvancedSum":
        """Add epsilon^2 to V, and delta to the exposures."""
        response = response_of(loss)
        added = entry(self.ENTERS, loss, interaction) if response is None else (response[0] ** 2, response[1])
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

    def headroom(self, budget: Loss) -> Fraction:
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


_HUGE = Fraction(10**12)
"""An epsilon beyond which no float is needed to say that the order is small."""


def order_for(epsilon: Fraction, slack: Fraction) -> Fraction:
    """The Renyi order for a budget of epsilon with slack d.

    `order_for` takes the Renyi order where the tight zCDP conversion of the budget has its optimum (theory, The Renyi
    filter by reduction): (alpha-1)^2 rho + log alpha = log(1/d) and epsilon = (2 alpha - 1) rho + log(1 - 1/alpha).
    Floats only search here; the order is rounded to a rational.

    >>> order_for(Fraction(0), Fraction(1, 10)) > 1
    True

    >>> order_for(Fraction(1), Fraction(1, 2 * 10**6))
    Fraction(233, 10)
    """
    goal, near = _log_inverse(slack), float(min(epsilon, _HUGE))

    def excess(log_order: float) -> float:
        order = 1 + math.exp(log_order)
        rho = (near - math.log1p(-1 / order)) / (2 * order - 1)
        return (order - 1) ** 2 * rho + math.log(order) - goal

    order = 1 + math.exp(root(excess, -20.0, 40.0))
    return 1 + _three_digits(order - 1)


def root(rising: Callable[[float], float], low: float, high: float) -> float:
    """Where a rising function of one number crosses 0, by halving; an end of the interval if it does not.

    >>> round(root(lambda x: x * x - 2, 0.0, 2.0), 6)
    1.414214
    """
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (low, middle) if rising(middle) > 0 else (middle, high)
    return (low + high) / 2


def smallest_at(valley: Callable[[float], float], low: float, high: float) -> float:
    """Where a function that first falls and then rises is smallest, by thirds.

    >>> round(smallest_at(lambda x: (x - 1) ** 2, -5.0, 5.0), 6)
    1.0
    """
    for _ in range(80):
        third = (high - low) / 3
        left, right = low + third, high - third
        low, high = (low, right) if valley(left) < valley(right) else (left, high)
    return (low + high) / 2


def _log_inverse(value: Fraction) -> float:
    return math.log(value.denominator) - math.log(value.numerator)


def _three_digits(value: float) -> Fraction:
    return Fraction(f"{value:.3g}")


class Limited(Accumulator, Value, frozen=True):
    """A sum, how many launches it takes, and how many have been made.

    A filter with `launches=K` refuses the launch after the K-th, and otherwise decides as it would without. It refuses
    more than the filter without a limit, and a refusal only takes choices from the analyst, so the budget holds as
    before (Haney et al. 2023, Def 2.5, Lemma 4.5). A refused launch does not count.

    >>> from counterpoint import Filter, Laplace, PureDP
    >>> rule = Filter(PureDP(1), launches=1)
    >>> account = rule.admit(rule.start(), Laplace(0.1).claim)
    >>> rule.loss(account), rule.remaining(account).epsilon, rule.fits(account, PureDP(0))
    (PureDP(0.1), 0, False)
    """

    sum: Accumulator
    launches: int
    made: int = 0

    @property
    def theorem(self) -> str:
        """The theorem of the sum inside."""
        return self.sum.theorem

    @property
    def checked(self) -> str | None:
        """What Coq has checked about the sum inside."""
        return self.sum.checked

    @property
    def checked_only(self) -> str:
        """As for the sum inside."""
        return self.sum.checked_only

    @property
    def interaction(self) -> Interaction:
        """How the sum inside interacts."""
        return self.sum.interaction

    def plus(self, loss: Loss, interaction: Interaction = "endless") -> "Limited":
        """Add a loss; `BudgetExceeded` if all launches have been made."""
        if self._full:
            raise BudgetExceeded(
                f"{loss!r} does not fit: the rule allows {self.launches} launches, and {self.made} have been made",
                requested=loss,
                remaining=PureDP(0),
                would_fit=None,
            )
        return Limited(self.sum.plus(loss, interaction), self.launches, self.made + 1)

    @property
    def _full(self) -> bool:
        return not self.made < self.launches

    @property
    def total(self) -> Loss:
        """What the sum inside has lost."""
        return self.sum.total

    def keeps(self, budget: Loss) -> bool:
        """Whether the total of the sum inside is within the budget."""
        return self.sum.keeps(budget)

    def headroom(self, budget: Loss) -> Fraction:
        """That of the sum, or none after the last launch."""
        return ZERO if self._full else self.sum.headroom(budget)

    def delta_left(self, budget: Loss) -> Fraction:
        """That of the sum, or none after the last launch."""
        return ZERO if self._full else self.sum.delta_left(budget)

    def largest_fitting(self, budget: Loss) -> Loss:
        """What fits into the sum, or nothing after the last launch."""
        return PureDP(0) if self._full else self.sum.largest_fitting(budget)

    def at_launches(self) -> Accumulator:
        """That of the sum: a reading counts what was launched."""
        return self.sum.at_launches()

    @property
    def certificate(self) -> Certificate:
        """The certificate of the sum inside."""
        return self.sum.certificate

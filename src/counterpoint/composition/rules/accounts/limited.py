"""A bounded number of launches: a sum that takes at most K of them, whatever they cost.

A filter with `launches=K` refuses the launch after the K-th, and otherwise decides as it would without. It refuses more
than the filter without a limit, and a refusal only takes choices from the analyst, so the budget holds as before
(Haney et al. 2023, Def 2.5, Lemma 4.5). A refused launch does not count.

>>> from counterpoint import Filter, Laplace, PureDP
>>> rule = Filter(PureDP(1), launches=1)
>>> account = rule.admit(rule.start(), Laplace(0.1).claim)
>>> rule.loss(account), rule.remaining(account).epsilon, rule.fits(account, PureDP(0))
(PureDP(0.1), 0, False)
"""

from fractions import Fraction

from counterpoint.encoding import Value
from counterpoint.errors import BudgetExceeded
from counterpoint.privacy.accumulator import ZERO, Accumulator, Interaction
from counterpoint.privacy.certificates import Certificate
from counterpoint.privacy.loss import Loss
from counterpoint.privacy.losses import PureDP


class Limited(Accumulator, Value, frozen=True):
    """A sum, how many launches it takes, and how many have been made."""

    sum: Accumulator
    launches: int
    made: int = 0

    @property
    def theorem(self) -> str:
        """That of the sum."""
        return self.sum.theorem

    @property
    def interaction(self) -> Interaction:
        """That of the sum."""
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
        """That of the sum."""
        return self.sum.total

    def keeps(self, budget: Loss) -> bool:
        """Whether the sum does."""
        return self.sum.keeps(budget)

    def room(self, budget: Loss) -> Fraction:
        """That of the sum, or none after the last launch."""
        return ZERO if self._full else self.sum.room(budget)

    def delta_left(self, budget: Loss) -> Fraction:
        """That of the sum, or none after the last launch."""
        return ZERO if self._full else self.sum.delta_left(budget)

    def fitting(self, budget: Loss) -> Loss:
        """What fits into the sum, or nothing after the last launch."""
        return PureDP(0) if self._full else self.sum.fitting(budget)

    def at_distance(self, distance: int) -> Accumulator:
        """That of the sum: a reading counts what was launched."""
        return self.sum.at_distance(distance)

    @property
    def certificate(self) -> Certificate:
        """That of the sum."""
        return self.sum.certificate

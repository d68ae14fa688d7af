"""The loss of something that promises nothing: what an odometer reads once it can no longer tell.

>>> Unbounded().epsilon_at(1e-6), Unbounded().delta_at(10)
(inf, 1.0)
"""

from fractions import Fraction

from counterpoint.encoding import Value
from counterpoint.measures import pure
from counterpoint.measures.loss import Loss
from counterpoint.numbers import Interval, precision
from counterpoint.numbers.exact import whole


class Unbounded(Loss, Value, frozen=True):
    """No finite amount: every loss implies it, and it implies only itself (and what promises nothing either).

    >>> from counterpoint import PureDP
    >>> PureDP(1).implies(Unbounded()), Unbounded().implies(PureDP(1))
    (True, False)
    """

    def _epsilon_bounds(self, delta: Fraction) -> Interval | None:
        """None, unless delta is 1, which promises nothing either."""
        return precision(20)(0) if delta == 1 else None

    def _delta_bounds(self, epsilon: Fraction) -> Interval:
        """1."""
        return precision(20)(1)

    def group(self, size: int) -> Loss:
        """No worse than it was; where no place changes, nothing is lost."""
        return self if whole(size, 0, "size") else pure.PureDP(0)

    def can_keep(self, threshold: Loss) -> bool:
        """It is beyond every threshold, in every measure."""
        return True

    def _follows_from(self, loss: Loss) -> bool:
        return True

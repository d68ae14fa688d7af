"""One-sided probabilistic DP: what Whitehouse et al.'s time-uniform odometers promise (Whitehouse et al. 2023, Thm 2).

L is the logarithm of how much likelier the view is in the true world than in its neighbour. The promise is
P[L > epsilon] <= delta, whichever of the two worlds is the true one. It implies (epsilon, delta)-DP as it is, because
P[S] <= P[S, L <= epsilon] + P[L > epsilon]. Views that speak against the truth, L < -epsilon, come on top: such a view
is e^epsilon times less likely than in the other world, where it is one that exceeds epsilon, so P[L < -epsilon] <=
e^-epsilon delta and, for an epsilon that is fixed in advance,

    P[|L| > epsilon] <= delta (1 + e^-epsilon).

The bound U of a time-uniform odometer changes with time, and an early crossing is one of -U as it was then. At all
times at once, therefore, P[|L| > U ever] <= delta (1 + e^-u), with u = `least` the smallest value that U can have had
after a launch; with the present U that would be false (theory, Postprocessing, and a test).

>>> from counterpoint import OneSidedDP
>>> reading = OneSidedDP(3, 0.2, least=0.1)
>>> reading.as_approx(0.2), reading.delta_at(3)
(ApproxDP(3, 0.2), 0.2)
>>> float(reading.two_sided().delta)
0.3809674836071919
"""

from fractions import Fraction

from msgspec.structs import replace

from counterpoint.encoding import Value
from counterpoint.numbers import certify, spell
from counterpoint.numbers.parameters import NonNegative, Probability, default
from counterpoint.privacy.loss import DIGITS, Loss, rounded_up
from counterpoint.privacy.measures.probabilistic import Probabilistic, ProbabilisticDP


class OneSidedDP(Probabilistic, Value, frozen=True):
    """The privacy loss exceeds epsilon with probability at most delta, in either world; `least` is for `two_sided`.

    >>> OneSidedDP(1, 0.1).implies(ProbabilisticDP(1, 0.1)), ProbabilisticDP(1, 0.1).implies(OneSidedDP(1, 0.1))
    (False, True)
    """

    epsilon: NonNegative
    delta: Probability
    least: NonNegative = default(Fraction(0))

    def __repr__(self) -> str:
        least = f", least={spell(self.least)}" if self.least else ""
        return f"OneSidedDP({spell(self.epsilon)}, {spell(self.delta)}{least})"

    def two_sided(self) -> ProbabilisticDP:
        """What holds from both sides and at all times at once: (epsilon, delta (1 + e^-least)).

        2 delta where nothing is known of the bound's smallest value.

        >>> OneSidedDP(3, 0.2).two_sided()
        ProbabilisticDP(3, 0.4)
        """
        return ProbabilisticDP(self.epsilon, self._both_sides(self.least))

    @property
    def amounts(self) -> tuple[Fraction, ...]:
        """Epsilon and delta."""
        return self.epsilon, self.delta

    def within(self, budget: Loss) -> bool:
        """Coordinate by coordinate, with a smallest value that is not smaller."""
        return isinstance(budget, OneSidedDP) and super().within(budget) and self.least >= budget.least

    def can_keep(self, threshold: Loss) -> bool:
        """A threshold at its own delta or a larger one."""
        return replace(self, epsilon=Fraction(0)).within(threshold)

    def _both_sides(self, epsilon: Fraction) -> Fraction:
        """The sum delta (1 + e^-epsilon), rounded up: `as_probabilistic` has it for an epsilon fixed in advance."""
        both = certify(lambda p: self.delta * (1 + p(-epsilon).exp()), DIGITS)
        return min(Fraction(1), rounded_up(both.upper))

    def _follows_from(self, loss: Loss) -> bool:
        if isinstance(loss, OneSidedDP) and loss.least >= self.least and loss.delta <= self.delta:
            return loss.epsilon <= self.epsilon or super()._follows_from(loss)
        return super()._follows_from(loss)

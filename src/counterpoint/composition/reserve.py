"""A filter for pure and approximate launches that loses almost nothing to adaptivity: a Gaussian reserve is spent.

Think of the budget as a Gaussian mechanism with variance v of its privacy loss (GaussianDP(sqrt v)), of which each
launch takes a part. If v' = (v + sqrt(v^2 - 4 v epsilon^2))/2 is what a launch of randomized response RR(epsilon)
leaves, then RR(epsilon) followed by G(sqrt v') is never more revealing than G(sqrt v):

Under the second world the likelihood ratios W of both have mean 1, and a hockey stick is E[(W - e^x)+]; so it is enough
that the first is smaller in convex order. In log W its density is f2 = q phi(z - epsilon) + p phi(z + epsilon) with phi
of variance v', for which (log f2)'' <= -1/v' + epsilon^2/v'^2 (a log cosh is added to a parabola); that of the second
is a parabola with (log f1)'' = -1/v. Since v (v' - epsilon^2) = v'^2, log f2 - log f1 is concave, so f1 - f2 changes
its sign at most twice, as + - +, and with equal means that is the convex order (Karlin, Novikoff 1963).

By induction the view is within G(sqrt v) for every adaptive choice of launches, whatever is left at the end; where
v < 4 epsilon^2, a last launch still fits if PureDP(epsilon) is GaussianDP(sqrt v) by itself. Launches with a delta
reduce to RR(epsilon, delta) and exposures are counted as in THEORY 3(b); interactive mechanisms reduce to RR by S3 Thm
1.19 and S4 Thm 12.4. This is our own corollary; the Renyi filter of THEORY 3(b) is behind it by up to 7 % of epsilon.
It covers no zCDP or Renyi claims, and it is no odometer: the cost of a launch depends on how much is left.

>>> from counterpoint import ApproxDP, Filter, PureDP
>>> rule = Filter(ApproxDP(1, 1e-6), by="gaussian")
>>> account = rule.start()
>>> for _ in range(500):
...     account = account + PureDP(0.01)
>>> rule.fits(account, PureDP(0.01)), Filter(ApproxDP(1, 1e-6)).fits(account, PureDP(0.01))
(True, True)
"""

from fractions import Fraction

from counterpoint.composition.accumulators import ZERO, Accumulator
from counterpoint.composition.conversions import epsilon_and_delta, short
from counterpoint.encoding import Value
from counterpoint.numbers import normal_tail, precision
from counterpoint.numbers.exact import bounded_up
from counterpoint.privacy.claims import Interaction
from counterpoint.privacy.loss import DIGITS, Loss, rounded_down
from counterpoint.privacy.losses import ApproxDP, GaussianDP, Unbounded


class GaussianReserve(Accumulator, Value, frozen=True):
    """What is left of a Gaussian budget; None once a launch did not fit into it.

    `budget` and `slack` are fixed in advance. Beside it stands basic composition, which admits what it admits: a
    path within it adds nothing to the hockey stick at epsilon (THEORY 3(b')).
    """

    budget: ApproxDP
    slack: Fraction
    left: Fraction | None
    basic: Fraction = Fraction(0)
    exposed: Fraction = Fraction(0)
    theorem = (
        "basic composition, or a Gaussian reserve spent by randomized responses "
        "(corollary of S4 Thm 12.4, S3 Thm 1.19; proof in composition/reserve.py)"
    )

    @classmethod
    def of(cls, budget: ApproxDP, slack: Fraction) -> "GaussianReserve":
        """The whole reserve of a budget: the largest variance v with G(sqrt v) within (epsilon, slack).

        >>> float(GaussianReserve.of(ApproxDP(1, 1e-6), Fraction(1, 2 * 10**6)).left) < 0.06
        True
        """
        mu = GaussianDP.for_budget(budget.epsilon, slack).mu
        return cls(budget, slack, mu * mu)

    def plus(self, loss: Loss, interaction: Interaction = "endless") -> "GaussianReserve":
        """Add a pure, approximate or Gaussian loss."""
        if isinstance(loss, GaussianDP) and interaction != "endless":
            left = None if self.left is None or self.left < loss.mu**2 else self.left - loss.mu**2
            return GaussianReserve(self.budget, self.slack, left, self.budget.epsilon + 1, self.exposed)
        epsilon, delta = epsilon_and_delta(loss)
        if epsilon is None:
            self._not_covered(
                loss, 'PureDP, ApproxDP, and GaussianDP with finite communication; for zCDP and Renyi use by="best"'
            )
        return GaussianReserve(
            self.budget,
            self.slack,
            None if self.left is None else left_after(self.left, epsilon),
            bounded_up(self.basic + epsilon),
            bounded_up(self.exposed + delta),
        )

    @property
    def total(self) -> ApproxDP | Unbounded:
        """The budget's epsilon, or the sum of epsilons where that is smaller: a reserve says no more than that."""
        if self.exposed > self.room_for_delta or (self.left is None and self.basic > self.budget.epsilon):
            return Unbounded()
        return ApproxDP(min(self.basic, self.budget.epsilon), self.budget.delta)

    @property
    def room_for_delta(self) -> Fraction:
        """What the deltas of the launches may add up to: delta'' of delta'' + (1-delta'') slack = delta."""
        return (self.budget.delta - self.slack) / (1 - self.slack)

    def delta_left(self, budget: ApproxDP) -> Fraction:
        """How much the deltas of further launches may add up to."""
        return max(ZERO, self.room_for_delta - self.exposed)

    def room(self, budget: Loss) -> Fraction:
        """What the larger of the two parts leaves."""
        if self.exposed > self.room_for_delta:
            return ZERO
        return max(ZERO, self.budget.epsilon - self.basic, pure_within(self.left or ZERO))


def left_after(left: Fraction, epsilon: Fraction) -> Fraction | None:
    """The variance that RR(epsilon) leaves of `left`, rounded down; 0 for a last launch; None if it does not fit.

    >>> float(left_after(Fraction(1), Fraction(1, 10))), left_after(Fraction(1, 100), Fraction(1))
    (0.9898979485566356, None)
    """
    if epsilon == 0:
        return left
    if left >= 4 * epsilon * epsilon:
        root = precision(DIGITS)(left * (left - 4 * epsilon * epsilon)).sqrt()
        return rounded_down(((root + left) / 2).lower)
    return ZERO if epsilon <= pure_within(left) else None


def pure_within(variance: Fraction) -> Fraction:
    """The largest epsilon, cut to 12 digits, for which epsilon-DP is G(sqrt variance): log(Phi(mu/2)/Phi(-mu/2)).

    >>> round(float(pure_within(Fraction(1))), 4)
    0.807
    """
    if variance <= 0:
        return ZERO
    tail = normal_tail(precision(DIGITS)(variance).sqrt() / 2)
    return short(Fraction(((1 - tail) / tail).log().lower))

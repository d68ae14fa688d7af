"""Whether a total keeps a budget: both are losses of one measure, compared coordinate by coordinate.

>>> within(ApproxDP(0.5, 0.9), ApproxDP(1, 1e-6)), within(PureDP(1), PureDP(1))
(False, True)
"""

from fractions import Fraction

from counterpoint.privacy.loss import Loss
from counterpoint.privacy.losses import ApproxDP, ApproxzCDP, GaussianDP, OneSidedDP, PureDP, RenyiDP, tCDP, zCDP


def within(total: Loss, budget: Loss) -> bool:
    """Whether a total keeps a budget of the same measure, coordinate by coordinate, never in tuple order.

    Deliberately not `implies`: that a pure loss of 1.0000001 implies (1, 1e-6) says nothing about a rule that would
    admit some paths by one of these bounds and some by the other.
    """
    if isinstance(total, ApproxDP) and isinstance(budget, ApproxDP):
        return total.epsilon <= budget.epsilon and total.delta <= budget.delta
    if isinstance(total, OneSidedDP) and isinstance(budget, OneSidedDP):
        return total.epsilon <= budget.epsilon and total.delta <= budget.delta and total.least >= budget.least
    if isinstance(total, PureDP) and isinstance(budget, PureDP):
        return total.epsilon <= budget.epsilon
    if isinstance(total, zCDP) and isinstance(budget, zCDP):
        return total.rho <= budget.rho
    if isinstance(total, ApproxzCDP) and isinstance(budget, ApproxzCDP):
        return total.rho <= budget.rho and total.delta <= budget.delta
    if isinstance(total, RenyiDP) and isinstance(budget, RenyiDP):
        return total.alpha >= budget.alpha and total.epsilon <= budget.epsilon
    if isinstance(total, tCDP) and isinstance(budget, tCDP):
        return total.rho <= budget.rho and total.omega >= budget.omega
    if isinstance(total, GaussianDP) and isinstance(budget, GaussianDP):
        return total.mu <= budget.mu
    return False


def used(total: Loss, budget: Loss, parts: int) -> int:
    """How many of so many equal parts of the budget a total has used, rounded up; more than all if it exceeds it.

    Where a loss has several numbers, the one that is nearest to its limit counts.

    >>> used(PureDP(0.3), PureDP(1), 100), used(PureDP(1), PureDP(1), 100), used(PureDP("1.000001"), PureDP(1), 100)
    (30, 100, 101)
    """
    if not within(total, budget):
        return parts + 1
    limits = zip(_amounts(total), _amounts(budget), strict=True)
    return max(_rounded_up(parts, amount, limit) if limit else 0 for amount, limit in limits)


def _rounded_up(parts: int, amount: Fraction, limit: Fraction) -> int:
    """In integers: at every launch, fractions would be reduced that nobody looks at."""
    return -(-parts * amount.numerator * limit.denominator // (amount.denominator * limit.numerator))


def _amounts(loss: Loss) -> tuple[Fraction, ...]:
    """The numbers of a loss that grow with what is lost."""
    if isinstance(loss, ApproxDP | OneSidedDP):
        return loss.epsilon, loss.delta
    if isinstance(loss, ApproxzCDP):
        return loss.rho, loss.delta
    if isinstance(loss, PureDP | RenyiDP):
        return (loss.epsilon,)
    if isinstance(loss, zCDP | tCDP):
        return (loss.rho,)
    return (loss.mu,) if isinstance(loss, GaussianDP) else ()

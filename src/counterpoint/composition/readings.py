"""Readings of launches one by one, at a distance: what they have lost, read from the list of them.

An account is small and remembers sums; a list of launches says more. `session.loss_at(distance=d)` has the list, with
the group loss of each launch (theory, Groups). For (epsilon, delta) the reading is the smallest of three, each with a
tail of its own that is fixed by the tuning and the first launch: basic composition, a Gaussian odometer and Renyi sums
of several orders. Whatever the threshold, stopping where the reading would exceed it is a union of filters, one a part,
since no part's reading ever falls (theory, Readings).

>>> from counterpoint import ApproxDP, Laplace, Odometer
>>> rule = Odometer.approximate(delta=1e-6, tuned_for=3)
>>> launches = [Laplace(0.1).claim] * 40
>>> round(float(rule.loss_at(1, launches).epsilon), 2), round(float(rule.loss_at(3, launches).epsilon), 2)
(2.95, 9.99)
"""

from collections.abc import Iterable
from fractions import Fraction

from counterpoint.composition.accumulator import ZERO, Accumulator, Summand, Tuned
from counterpoint.composition.best import Union, count, union_within
from counterpoint.composition.one_order import renyi_room_at
from counterpoint.composition.reserve import UNIT, variance_needed
from counterpoint.encoding import Value
from counterpoint.measures import ApproxDP, GaussianDP, Unbounded
from counterpoint.measures.loss import Loss
from counterpoint.numbers import sqrt_up
from counterpoint.numbers.exact import LARGEST
from counterpoint.numbers.rounding import rounded_up
from counterpoint.privacy.claims import Claim, Interaction


class LaunchesRead(Accumulator, Value, frozen=True):
    """Launches, and how they are read: the parts and tails of the default filter, without its budget.

    Covers what the default filter covers.
    """

    union: Union
    launches: tuple[tuple[Loss, Interaction], ...] = ()
    theorem = (
        "basic composition, or a Gaussian odometer (theory, A Gaussian odometer), or the Renyi sum of one of several "
        "orders (Haney et al. 2023, Thm 1.21; Henzinger et al. 2024, Cor 13.8), whichever reads least, each with its "
        "own tail; corollary of Haney et al. 2023, Thm 1.19, Lemma 2.19 and Henzinger et al. 2024, Thm 12.4"
    )

    @classmethod
    def near(cls, tuned: Tuned, distance: int) -> "LaunchesRead":
        """Nothing yet, to be read at a distance: tight near `distance` times what it is tuned for."""
        epsilon = max(distance, 1) * tuned.epsilon
        return cls(union_within(ApproxDP(epsilon, tuned.delta), tuned.slack))

    def plus(self, loss: Loss, interaction: Interaction = "endless") -> "LaunchesRead":
        """Remember a launch."""
        return self.after([Summand(loss, interaction)])

    def after(self, launches: Iterable[Summand]) -> "LaunchesRead":
        """Remember launches."""
        new = tuple((loss, interaction) for loss, interaction in launches)
        for loss, interaction in new:
            count(loss, interaction, self.union.orders)  # says what is not covered
        return LaunchesRead(self.union, self.launches + new)

    @property
    def total(self) -> ApproxDP | Unbounded:
        """The smallest epsilon of the parts; nothing is lost before the first launch."""
        union, delta = self.union, self.union.budget.delta
        counted = [count(loss, interaction, union.orders) for loss, interaction in self.launches]
        if not counted:
            return ApproxDP(0, delta)
        if sum(each.pays.delta for each in counted) > union.room_for_deltas(counted[0].pays.delta):
            return Unbounded()
        tails = union.tails(counted[0])
        epsilons = [each.pays.epsilon for each in counted if each.pays.epsilon is not None]
        bounds = [sum(epsilons, ZERO)] if len(epsilons) == len(counted) else []
        if tails[0] and all(each.pays.by_reserve for each in counted):
            bounds.append(_gaussian_epsilon(variance_needed([each.pays for each in counted]), tails[0]))
        for index, (order, tail) in enumerate(zip(union.orders, tails[1:], strict=True)):
            added = [units for each in counted if (units := each.renyi[index]) is not None]
            if tail and len(added) == len(counted):
                bounds.append(Fraction(sum(added) - renyi_room_at(ZERO, order, tail), UNIT))
        least = min(bounds, default=LARGEST + 1)
        return ApproxDP(max(ZERO, least), delta) if least <= LARGEST else Unbounded()


def _gaussian_epsilon(variance: int, tail: Fraction) -> Fraction:
    """The epsilon of G(variance) at a tail, rounded up."""
    if not variance:
        return ZERO
    found = GaussianDP(rounded_up(sqrt_up(Fraction(variance, UNIT)))).epsilon_bounds(tail)
    return LARGEST + 1 if found is None else Fraction(found.upper)


def read_at(distance: int, launched: Iterable[Claim], empty: Accumulator) -> Loss:
    """What these launches have lost at a distance, as the sum of a rule says that they are read.

    >>> from counterpoint import Gaussian
    >>> from counterpoint.composition.sums import ZCDPSum
    >>> read_at(3, [Gaussian(rho=0.1).claim, Gaussian(rho=0.2).claim], ZCDPSum())
    zCDP(2.7)
    """
    tuned = empty.tuned
    start = empty.at_launches() if tuned is None else LaunchesRead.near(tuned, distance)
    return start.after(Summand(claimed.loss.group(distance), claimed.interaction) for claimed in launched).total

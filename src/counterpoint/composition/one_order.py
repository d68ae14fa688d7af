"""The account of `Filter(budget, alpha=...)` and `by="gaussian"`: it admits a launch while any of three bounds holds.

Basic composition, a Gaussian reserve and the Renyi filter of one order stand side by side (no Renyi filter with
`by="gaussian"`), the last two with tails d_G and d_R that were fixed in advance (theory, The default filter).

>>> from counterpoint import ApproxDP, Filter, PureDP, zCDP
>>> rule = Filter(ApproxDP(1, 1e-6), slack=5e-7, alpha=23.3)
>>> account = rule.start()
>>> for _ in range(480):
...     account = account + PureDP(0.01)
>>> rule.fits(account, PureDP(0.01)), rule.fits(account, zCDP(0.01)), rule.loss(account)
(True, False, ApproxDP(1, 1e-6))
"""

from fractions import Fraction
from functools import lru_cache

from msgspec.structs import force_setattr

from counterpoint.composition.accumulator import ZERO, Accumulator, Tuned, entry
from counterpoint.composition.renyi_sums import renyi_loss
from counterpoint.composition.reserve import (
    UNIT,
    Payment,
    opened,
    pure_implying,
    pure_within,
    reserve_for,
    spent,
    units_up,
)
from counterpoint.composition.sums import GaussianSum
from counterpoint.encoding import Tagged, Value
from counterpoint.measures import ApproxDP, Unbounded
from counterpoint.measures.conversions import response_of
from counterpoint.measures.divergences import renyi_offset
from counterpoint.measures.loss import Loss
from counterpoint.measures.pure import pure_below, renyi_of
from counterpoint.numbers.exact import added_up
from counterpoint.privacy.claims import Interaction

RESERVE_SHARE = Fraction(4, 5)
WHOLE = Fraction(1)


class Terms(Tagged, Value, frozen=True):
    """What is fixed in advance: the budget, the slack and the Renyi order, None for no Renyi part.

    Derived from them, once: `room`, the delta'' of delta'' + (1-delta'') slack = delta, which the deltas of the
    launches may add up to.

    >>> float(Terms(ApproxDP(1, 0.1), Fraction(1, 20), None).room)
    0.05263157894736842
    """

    budget: ApproxDP
    slack: Fraction
    alpha: Fraction | None
    room: Fraction = Fraction(-1)

    def __post_init__(self) -> None:
        """Derive the room."""
        if self.room < 0:
            force_setattr(self, "room", (self.budget.delta - self.slack) / (1 - self.slack))

    def renyi_room(self, share: Fraction) -> int:
        """What a Renyi sum with this share of the slack may grow to, in units of 2^-320, rounded down."""
        assert self.alpha is not None
        return renyi_room_at(self.budget.epsilon, self.alpha, share * self.slack)

    def divided(self, first: Payment) -> tuple[int | None, int | None]:
        """What the first launch leaves of the reserve, and what the Renyi sum may grow to."""
        epsilon, slack = self.budget.epsilon, self.slack
        if self.alpha is None:
            return opened(first, epsilon, slack), None
        tail = RESERVE_SHARE * slack
        if self._suits_reserve(first, reserve_for(epsilon, tail)):
            return opened(first, epsilon, tail), self.renyi_room(1 - RESERVE_SHARE)
        return None, self.renyi_room(WHOLE)

    def _suits_reserve(self, first: Payment, reserve: int) -> bool:
        """Whether more launches like the first would fit into the reserve than into the Renyi part with all the slack.

        A reserve pays epsilon^2 for each and about three times that at its end. Any answer is sound.
        """
        assert self.alpha is not None
        if not first.epsilon:
            return first.by_reserve
        by_renyi = max(0, self.renyi_room(WHOLE)) // renyi_units(first.epsilon, self.alpha)
        return Fraction(reserve, UNIT) > first.epsilon**2 * (by_renyi + 3)


class OneOrderSum(Accumulator, Value, frozen=True):
    """Basic composition, a Gaussian reserve and a Renyi sum, side by side.

    The first launch decides how the slack is divided, since no answer precedes it. If more launches like it would fit
    into the reserve than into the Renyi filter, the reserve gets four fifths; otherwise, and for zCDP, Renyi or tCDP
    claims, which no reserve can pay for, the Renyi part gets all of it.

    `left` is what the reserve has left, `renyi` the Renyi sum and `most` what it may grow to, in units of 2^-320
    (rounded down, up and down); None for a part that is not there or, for the reserve and the basic sum, can no longer
    hold. Covers PureDP, ApproxDP, and GaussianDP with finite communication; with a Renyi order also zCDP, tCDP, Renyi
    losses of at least that order, and every GaussianDP.

    What has been lost is read as Haney et al. 2023, Lemma 2.19 says, threshold by threshold: below the budget's epsilon
    no reserve is needed, so there the Renyi sum may be read with all of the slack; and the whole is unbounded where the
    filter refuses.
    """

    terms: Terms
    launched: bool = False
    left: int | None = None
    most: int | None = None
    basic: Fraction | None = Fraction(0)
    renyi: int = 0
    exposed: Fraction = Fraction(0)

    @property
    def theorem(self) -> str:
        """What the total rests on."""
        reserve = "a Gaussian reserve spent by randomized responses (theory, The Gaussian reserve)"
        renyi = (
            ""
            if self.terms.alpha is None
            else ", or the Renyi filter of one order (Haney et al. 2023, Thm 1.21; Henzinger et al. 2024, Cor 13.8)"
        )
        return (
            f"basic composition, or {reserve}{renyi}, whichever admits; corollary of Henzinger et al. 2024, "
            "Thm 12.4; Haney et al. 2023, Thm 1.19"
        )

    checked = "union_of_parts"
    checked_only = "their union alone, not the reserve, the Renyi filter and exposures"

    def plus(self, loss: Loss, interaction: Interaction = "endless") -> "OneOrderSum":
        """Add a loss, to each part that has a place for it."""
        pays = self._payment(loss, interaction)
        left, most = (spent(self.left, pays), self.most) if self.launched else self.terms.divided(pays)
        return OneOrderSum(
            self.terms,
            True,
            left,
            most,
            None if self.basic is None or pays.epsilon is None else added_up(self.basic, pays.epsilon),
            self.renyi if most is None else self.renyi + self._renyi(loss, pays.epsilon),
            added_up(self.exposed, pays.delta) if pays.delta else self.exposed,
        )

    def _payment(self, loss: Loss, interaction: Interaction) -> Payment:
        epsilon, delta = response_of(loss) or (None, ZERO)
        pays = Payment(epsilon, entry(GaussianSum.ENTERS, loss, interaction), delta)
        if self.terms.alpha is None and not pays.by_reserve:
            self._not_covered(
                loss, 'PureDP, ApproxDP, and GaussianDP with finite communication; for zCDP and Renyi use by="best"'
            )
        return pays

    def _renyi(self, loss: Loss, epsilon: Fraction | None) -> int:
        alpha = self.terms.alpha
        assert alpha is not None
        return units_up(renyi_loss(loss, alpha)) if epsilon is None else renyi_units(epsilon, alpha)

    @property
    def total(self) -> ApproxDP | Unbounded:
        """The smallest epsilon of the parts; a reserve says no more than that the budget holds."""
        budget = self.terms.budget
        if not self.launched:
            return ApproxDP(0, budget.delta)
        if not self.keeps(budget):
            return Unbounded()
        bounds = [budget.epsilon] if self.basic is None else [budget.epsilon, self.basic]
        if self.most is not None:
            left = self.terms.renyi_room(WHOLE) - self.renyi
            bounds.append(max(ZERO, budget.epsilon - Fraction(left, UNIT)))
        return ApproxDP(min(bounds), budget.delta)

    def keeps(self, budget: Loss) -> bool:
        """Whether one of the parts holds and the deltas have room."""
        if budget is not self.terms.budget and budget != self.terms.budget:
            return self.total.within(budget)
        if self.exposed > self.terms.room:
            return False
        if self.left is not None or (self.basic is not None and self.basic <= self.terms.budget.epsilon):
            return True
        return self.most is not None and self.renyi <= self.most

    @property
    def tuned(self) -> Tuned:
        """The budget, and its slack."""
        return Tuned(self.terms.budget.epsilon, self.terms.budget.delta, self.terms.slack)

    def delta_left(self, budget: Loss) -> Fraction:
        """How much the deltas of further launches may add up to."""
        return max(ZERO, self.terms.room - self.exposed)

    def headroom(self, budget: Loss) -> Fraction:
        """What the part that leaves most leaves."""
        if self.exposed > self.terms.room:
            return ZERO
        rooms = [ZERO]
        if self.basic is not None:
            rooms.append(self.terms.budget.epsilon - self.basic)
        if not self.launched:
            budget, slack = self.terms.budget, self.terms.slack
            return max(*rooms, pure_implying(budget.epsilon, slack)) if self.terms.alpha is None else max(rooms)
        if self.left is not None:
            rooms.append(pure_within(self.left))
        if self.terms.alpha is not None and self.most is not None:
            rooms.append(pure_below(self.terms.alpha, Fraction(self.most - self.renyi, UNIT)))
        return max(rooms)


@lru_cache(maxsize=4096)
def renyi_room_at(epsilon: Fraction, alpha: Fraction, slack: Fraction) -> int:
    """B: what a sum of Renyi losses may grow to within (epsilon, slack), in units of 2^-320, rounded down."""
    return -units_up(renyi_offset(alpha, slack) - epsilon)


@lru_cache(maxsize=65536)
def renyi_units(epsilon: Fraction, alpha: Fraction) -> int:
    """tau_alpha(epsilon) in units of 2^-320, rounded up; remembered, since losses recur."""
    return units_up(renyi_of(epsilon, alpha))

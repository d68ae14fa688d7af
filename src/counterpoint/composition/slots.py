"""Slots: the losses are fixed up front, launches take them in any order, and the total is optimal from the start.

Vadhan and Wang 2021, Cor 4; Lyu 2022, Thm 1 (interactive), Henzinger et al. 2024, Thm 4.12 (continual): the concurrent
composition of mechanisms whose multiset of (epsilon_i, delta_i) is fixed in advance costs what randomized responses
with those parameters cost together. That bound is false for adaptively chosen parameters; a slot that is never taken is
paid for all the same.

>>> from counterpoint import ApproxDP, Laplace, Slots
>>> rule = Slots([ApproxDP(0.1, 1e-8)] * 30)
>>> rule
Slots(30 x ApproxDP(0.1, 1e-8))
>>> round(rule.loss(rule.start()).epsilon_at(1e-6), 4) < 2.5
True
"""

from collections import Counter
from collections.abc import Iterable
from fractions import Fraction
from functools import lru_cache
from typing import Annotated, ClassVar, cast

from counterpoint.composition.accumulator import Account
from counterpoint.composition.fixed.compose import optimal
from counterpoint.composition.fixed.mixed import TOGETHER, Mixed
from counterpoint.composition.rule import Rule
from counterpoint.encoding import Value
from counterpoint.errors import BudgetExceeded, InvalidParameter, NotCovered
from counterpoint.measures.conversions import response_of
from counterpoint.measures.loss import Loss
from counterpoint.numbers.parameters import Parameter, Read
from counterpoint.privacy.certificates import Certificate
from counterpoint.privacy.claims import Claim, require_finite
from counterpoint.privacy.relations import Relation

Groups = tuple[tuple[Loss, int], ...]


class FreeSlots(Account, Value, frozen=True):
    """Which slots are free: each loss with how many of it are left."""

    groups: Groups

    def take(self, index: int) -> "FreeSlots":
        """The slots without one of the group at `index`."""
        loss, count = self.groups[index]
        rest = ((loss, count - 1),) if count > 1 else ()
        return FreeSlots((*self.groups[:index], *rest, *self.groups[index + 1 :]))


def _grouped(slots: object, _what: str) -> Groups:
    """Read the losses, and count equal ones together."""
    if isinstance(slots, tuple) and slots and all(isinstance(slot, tuple) for slot in slots):
        return _as_encoded(slots)
    if not isinstance(slots, Iterable):
        raise InvalidParameter("give Slots a list of losses, one for each possible launch")
    losses = list(slots)
    if not losses or not all(isinstance(loss, Loss) for loss in losses):
        raise InvalidParameter("give Slots a list of losses, one for each possible launch")
    return tuple(sorted(Counter(losses).items(), key=lambda group: _size(group[0])))


def _as_encoded(slots: tuple[tuple[object, ...], ...]) -> Groups:
    """Losses with their counts, as they are read back: a group of none would still have a slot to take."""
    for slot in slots:
        if len(slot) != 2 or not isinstance(slot[0], Loss) or type(slot[1]) is not int or slot[1] < 1:
            raise InvalidParameter("give Slots a list of losses, one for each possible launch")
    return cast(Groups, slots)


def _size(loss: Loss) -> tuple[str, tuple[Fraction, ...]]:
    fields = getattr(loss, "__struct_fields__", ())
    values = tuple(value for name in fields if isinstance(value := getattr(loss, name), Fraction))
    return ("" if values else type(loss).__name__), values


class Slots(Rule, Value, frozen=True):
    """A multiset of losses, fixed in advance; a launch takes a slot of just its loss or, if none is free, a larger one.

    "Larger" means that the launch's loss implies the slot's: then the mechanism has the slot's loss too. Of several
    such slots the smallest is taken, by epsilon and then delta. A slot taken by a smaller launch is not given back.
    Slots of unlike measures cost what their pairs do together. Not covered: losses chosen on the way (use a `Filter`).

    >>> from counterpoint import PureDP
    >>> Slots([PureDP(0.1), PureDP(0.2)]).total.epsilon_at(0)
    0.3
    """

    slots: Annotated[Parameter[Groups, Iterable[Loss]], Read(_grouped)]

    counts_launches: ClassVar[bool] = True

    def __post_init__(self) -> None:
        """Refuse losses that no theorem composes."""
        if not all(loss.slow_to_compose for loss, _ in self.slots):
            optimal([loss for loss, _ in self.slots])

    def __repr__(self) -> str:
        return f"Slots({', '.join(f'{count} x {loss!r}' for loss, count in self.slots)})"

    def start(self) -> FreeSlots:
        """The account in which every slot is free."""
        return FreeSlots(self.slots)

    def admit(self, account: Account, claim: Claim) -> FreeSlots:
        """Take the slot of this loss, or the smallest that dominates it."""
        assert isinstance(account, FreeSlots)
        exact = [index for index, (loss, _) in enumerate(account.groups) if loss == claim.loss]
        index = next(iter(exact), None)
        if index is None:
            index = next((i for i, (loss, _) in enumerate(account.groups) if claim.loss.implies(loss)), None)
        if index is None:
            free = ", ".join(f"{count} x {loss!r}" for loss, count in account.groups[:5]) or "none"
            raise BudgetExceeded(
                f"no free slot is large enough for {claim.loss!r}; free slots: {free}",
                requested=claim.loss,
                remaining=account,
            )
        slot = account.groups[index][0]
        if self._is_mixed:
            require_draws(claim, slot)
        require_finite(claim, slot)
        return account.take(index)

    @property
    def _is_mixed(self) -> bool:
        return isinstance(self.total, Mixed)

    def loss(self, account: Account) -> Loss:
        """The whole multiset's, from the start: which slots are taken when was not fixed in advance."""
        return self.total

    def loss_at(self, distance: int, launched: Iterable[Claim]) -> Loss:
        """The group losses of all slots, composed optimally: a launch has its slot's loss, and so its group loss.

        Not so a partition that has taken several slots: three units may move three parts by two steps each, where
        two were paid for (theory, Groups).

        >>> from counterpoint import PureDP
        >>> Slots([PureDP(0.1), PureDP(0.2)]).loss_at(3, []).epsilon_at(0)
        0.9
        """
        if any(claim.launches for claim in launched):
            raise NotCovered(
                "a partition in slots has no loss at a distance by slots: units at a distance may reach more parts "
                "than slots were taken (theory, Groups); a Filter reads it by the partition's whole claim"
            )
        return optimal([loss.group(distance) for loss, count in self.slots for _ in range(count)]).loss

    @property
    def total(self) -> Loss:
        """The optimal composition of all slots."""
        return _composed(self.slots)

    def bound(self, relation: Relation) -> Loss:
        """The optimal composition of all slots."""
        return self.total

    @property
    def theorem(self) -> str:
        """What the slots compose by: that of their measure, or the product of their pairs.

        >>> from counterpoint import zCDP
        >>> Slots([zCDP(0.1)]).theorem
        'divergences of mechanisms fixed in advance add (Lyu 2022, Thm 2; Henzinger et al. 2024, Cor 13.4)'
        """
        return TOGETHER if self._is_mixed else self.slots[0][0].theorem_if_fixed

    def promise(self, relation: Relation) -> Certificate:
        """The slots compose by the theorem of their measure, in any interleaving."""
        return Certificate(
            f"{self!r} composed",
            self.theorem,
        )

    def certificate(self, account: Account) -> Certificate:
        """What has been promised from the start."""
        assert isinstance(account, FreeSlots)
        left = sum(count for _, count in account.groups)
        return Certificate(
            f"{self!r} composed, {left} of them not taken yet",
            self.theorem,
        )


@lru_cache(maxsize=256)
def _composed(slots: tuple[tuple[Loss, int], ...]) -> Loss:
    """The optimal composition of slots; remembered, as every launch looks at its kind."""
    return optimal([loss for loss, count in slots for _ in range(count)]).loss


def require_draws(claim: Claim, slot: Loss) -> None:
    """Refuse what is not known to be a postprocessing of one draw from the slot's pair, beside slots of other measures.

    No memory is enough where each answer is a draw of its own from a part of the pair, which is not so for divergences.
    """
    if response_of(claim.loss) is not None or claim.interaction in ("one-shot", "finite"):
        return
    if claim.interaction == "endless" or not slot.needs_finite_communication:
        raise NotCovered(
            f"{slot!r} among slots of other measures needs a mechanism that answers once or has finite communication "
            "(Henzinger et al. 2024, Cor 14.7; theory, Unlike measures together)"
        )

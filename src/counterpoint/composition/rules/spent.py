"""A rule of which nothing is left, because what was charged last is not known: the record of it was lost.

What was lost of a record was charged by the same rule, behind what is left of it: together they are one run of that
rule, against one analyst, so the rule's own promise bounds them both, whatever was in the part that was lost. A further
launch could be one more than the rule would have admitted. So every launch is refused, and the loss that is read is the
whole promise. A rule that promises nothing (an odometer) bounds nothing: its loss is read as ApproxDP(0, 1), which
every mechanism satisfies.

>>> from counterpoint import Filter, Laplace, PureDP
>>> from counterpoint.privacy.relations import every_step
>>> rule = Spent(Filter(PureDP(1)), every_step())
>>> rule.loss(rule.start()), rule.remaining(rule.start())
(PureDP(1), Remaining(epsilon=0, delta=0))
>>> rule.admit(rule.start(), Laplace(0.1).claim)
Traceback (most recent call last):
...
counterpoint.errors.BudgetExceeded: the record of what was charged here was lost with its disk, so all of the budget ...
"""

from collections.abc import Iterable
from fractions import Fraction
from typing import NoReturn

from counterpoint.composition.rules.rule import Account, Remaining, Rule
from counterpoint.encoding import Value
from counterpoint.errors import BudgetExceeded, NotCovered
from counterpoint.privacy.certificates import Certificate
from counterpoint.privacy.claims import Charge, Claim, Interaction
from counterpoint.privacy.loss import Loss
from counterpoint.privacy.losses import ApproxDP
from counterpoint.privacy.relations import Relation

_NOTHING = Remaining(Fraction(0), Fraction(0))


class Spent(Rule, Value, frozen=True):
    """Refuses every launch, and has lost all that `rule` promises on data with `relation`."""

    rule: Rule
    relation: Relation

    @property
    def chosen(self) -> Rule:
        """The rule that it stands for."""
        return self.rule.chosen

    @property
    def interaction(self) -> Interaction:
        """As it was claimed."""
        return self.rule.interaction

    def start(self) -> Account:
        """The rule's account."""
        return self.rule.start()

    def admit(self, account: Account, claim: Claim) -> NoReturn:
        """Nothing more."""
        raise BudgetExceeded(
            "the record of what was charged here was lost with its disk, so all of the budget counts as spent: answers "
            "on record can be read, and nothing more is launched. A new budget for this data is a new session, whose "
            "losses add to these: its custodian opens it with second_budget=True",
            requested=claim.loss,
            remaining=_NOTHING,
        )

    def charge(self, account: Account, claim: Claim) -> NoReturn:
        """Nothing more, also of a list of launches."""
        self.admit(account, claim)

    def loss(self, account: Account) -> Loss:
        """All that was promised."""
        return self._whole

    def loss_at(self, distance: int, launched: Iterable[Claim]) -> Loss:
        """The group loss of all that was promised: which launches there were is not known."""
        return self._whole.group(distance)

    def remaining(self, account: Account) -> Remaining:
        """Nothing."""
        return _NOTHING

    def used(self, account: Account, parts: int) -> int | None:
        """All parts of a budget, where there is one."""
        return None if self.rule.used(account, parts) is None else parts

    def bound(self, relation: Relation) -> Loss:
        """As it was claimed, before and after."""
        return self.rule.bound(relation)

    def promise(self, relation: Relation) -> Certificate:
        """As it was claimed."""
        return self.rule.promise(relation)

    def charges(self, relation: Relation) -> tuple[Charge, ...]:
        """As it was claimed."""
        return self.rule.charges(relation)

    def certificate(self, account: Account) -> Certificate:
        """Why all of it counts."""
        try:
            premises: tuple[Certificate, ...] = (self.rule.promise(self.relation),)
        except NotCovered:
            premises = ()
        return Certificate(
            f"{self._whole!r}: what was charged last is not known, so all that the rule admits counts as lost",
            "the promise of the rule, for what is on record and what was lost of it together",
            premises,
        )

    @property
    def _whole(self) -> Loss:
        try:
            return self.rule.bound(self.relation)
        except NotCovered:
            return ApproxDP(0, 1)

"""Rules that decide as another rule does, and promise something else: what its promise implies, or is on a sample.

>>> from counterpoint import Filter, Laplace, PureDP
>>> from counterpoint.composition.rules.converted import Converted
>>> rule = Converted(Filter(PureDP(1)), delta=0)
>>> rule.loss(rule.admit(rule.start(), Laplace(0.25).claim))
PureDP(0.25)
"""

from collections.abc import Iterable

from counterpoint.composition.rules.rule import Account, Remaining, Rule
from counterpoint.privacy.certificates import Certificate
from counterpoint.privacy.claims import Claim
from counterpoint.privacy.loss import Loss


class RestatedRule(Rule):
    """Decides as `rule` does; `bound` and `promise` are its own."""

    __slots__ = ()

    rule: Rule

    @property
    def halts(self) -> bool:
        """As the rule does."""
        return self.rule.halts

    def start(self) -> Account:
        """The rule's account."""
        return self.rule.start()

    def admit(self, account: Account, claim: Claim) -> Account:
        """What the rule says."""
        return self.rule.admit(account, claim)

    def charge(self, account: Account, claim: Claim) -> Account:
        """What the rule says, also of a list of launches."""
        return self.rule.charge(account, claim)

    def loss(self, account: Account) -> Loss:
        """What has been lost, in the rule's own measure."""
        return self.rule.loss(account)

    def loss_at(self, distance: int, launched: Iterable[Claim]) -> Loss:
        """What the rule says."""
        return self.rule.loss_at(distance, launched)

    def remaining(self, account: Account) -> Remaining:
        """What the rule says."""
        return self.rule.remaining(account)

    def used(self, account: Account, parts: int) -> int | None:
        """What the rule says."""
        return self.rule.used(account, parts)

    def certificate(self, account: Account) -> Certificate:
        """The rule's own."""
        return self.rule.certificate(account)

"""A rule whose claim is the (epsilon, delta) that its own promise implies, at a delta fixed in advance.

A session delegates a rule by its claim, and the session's own rule must cover the loss that is claimed. No theorem
composes approximate zCDP of interactive mechanisms, or curves such as that of `Slots`, with other adaptively chosen
losses. But if a composition has such a loss against every analyst, then against every analyst it has the (epsilon,
delta) that the loss implies, so it is an interactive (epsilon, delta)-DP mechanism like any other (Haney et al. 2023,
Lemma 4.5).

>>> from counterpoint import ApproxzCDP, Filter
>>> from counterpoint.privacy.relations import every_step
>>> rule = Converted(Filter(ApproxzCDP(0.01, 1e-9)), delta=1e-6)
>>> round(float(rule.bound(every_step()).epsilon), 3), float(rule.bound(every_step()).delta)
(0.622, 1e-06)
"""

from counterpoint.composition.rules.restated import RestatedRule
from counterpoint.composition.rules.rule import Rule
from counterpoint.encoding import Value
from counterpoint.errors import InvalidParameter
from counterpoint.numbers import spell
from counterpoint.numbers.parameters import Probability
from counterpoint.privacy.certificates import Certificate
from counterpoint.privacy.loss import Loss
from counterpoint.privacy.relations import Relation


class Converted(RestatedRule, Value, frozen=True):
    """Decides as `rule` does, and promises the (epsilon, delta) that its bound implies; PureDP at a delta of 0."""

    rule: Rule
    delta: Probability

    def __post_init__(self) -> None:
        """Refuse what is no rule."""
        if not isinstance(self.rule, Rule):
            raise InvalidParameter(f"Converted takes a rule, such as a Filter, not a {type(self.rule).__name__}")

    def bound(self, relation: Relation) -> Loss:
        """The (epsilon, delta) that the rule's bound implies; `NotCovered` if there is no finite epsilon."""
        loss = self.rule.bound(relation).as_approx(self.delta)
        return loss if self.delta else loss.as_pure()

    def promise(self, relation: Relation) -> Certificate:
        """The rule's promise, converted."""
        return Certificate(
            f"{self.bound(relation)!r}: what {self.rule.bound(relation)!r} implies at delta = {spell(self.delta)}",
            "the conversion of the loss, against every analyst (Haney et al. 2023, Lemma 4.5)",
            (self.rule.promise(relation),),
        )

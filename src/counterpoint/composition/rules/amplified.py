"""A rule whose launches all see one secret sample of the units: it promises less than they lose on the sample.

A composition under a rule is an interactive mechanism with the rule's bound. On a Poisson sample, drawn once, it has
the amplified bound (theory, Sampling). What the rule itself reads, refuses and has left is about the sample: that is
the loss to a reader who knows who is in it.

>>> from counterpoint import Filter, PureDP
>>> from counterpoint.privacy.relations import OfSample, every_step
>>> rule = Amplified(Filter(PureDP(1)), rate="0.01")
>>> rule.bound(OfSample(rule.rate, every_step()))
PureDP(~0.0170369)
"""

from counterpoint.composition.rules.restated import RestatedRule
from counterpoint.composition.rules.rule import Rule
from counterpoint.encoding import Value
from counterpoint.errors import InvalidParameter, NotCovered
from counterpoint.privacy.certificates import Certificate
from counterpoint.privacy.loss import Loss
from counterpoint.privacy.rates import Rate
from counterpoint.privacy.relations import OfSample, Relation
from counterpoint.privacy.samples import amplified


class Amplified(RestatedRule, Value, frozen=True):
    """Decides as `rule` does, on data that are a sample of this `rate`; promises the rule's bound, amplified."""

    rule: Rule
    rate: Rate

    def __post_init__(self) -> None:
        """Refuse what is no rule."""
        if not isinstance(self.rule, Rule):
            raise InvalidParameter(f"Amplified takes a rule, such as a Filter, not a {type(self.rule).__name__}")

    def bound(self, relation: Relation) -> Loss:
        """The rule's bound, amplified; only on a sample of this rate, or of a smaller one."""
        return amplified(self.rule.bound(self._on_sample(relation)), self.rate)

    def promise(self, relation: Relation) -> Certificate:
        """The rule's promise on the sample, and what a secret sample makes of it."""
        return Certificate(
            f"{self.bound(relation)!r} for neighbours {relation.in_words}",
            "a secret Poisson sample, drawn once for all launches (theory, Sampling; Balle et al. 2018, Thm 8)",
            (self.rule.promise(self._on_sample(relation)),),
        )

    def _on_sample(self, relation: Relation) -> Relation:
        """The relation of what is launched, which sees the sample."""
        if not isinstance(relation, OfSample) or relation.rate > self.rate:
            raise NotCovered(
                f"{self!r} promises something about a secret sample, and neighbours of this data are those in "
                f"{relation!r}: use session.delegate(loss, sampled=rate), which draws one"
            )
        if not relation.inner.symmetric:
            raise NotCovered(
                f"a sample amplifies what holds both ways (theory, Sampling), and {relation.inner!r} is not symmetric"
            )
        return relation.inner

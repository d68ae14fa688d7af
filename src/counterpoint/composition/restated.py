"""Rules that admit launches as another rule does, and promise something else: a conversion, or a loss on a sample."""

from collections.abc import Iterable

from counterpoint.composition.accumulator import Account
from counterpoint.composition.rule import Remaining, Rule
from counterpoint.encoding import Value
from counterpoint.errors import InvalidParameter, NotCovered
from counterpoint.measures.loss import Loss
from counterpoint.numbers import format_number
from counterpoint.numbers.parameters import Probability, Rate
from counterpoint.privacy.certificates import Certificate
from counterpoint.privacy.claims import Claim
from counterpoint.privacy.relations import OfSample, Relation
from counterpoint.privacy.samples import amplified


class RestatedRule(Rule):
    """Decides as `rule` does; `bound` and `promise` are its own."""

    __slots__ = ()

    rule: Rule

    @property
    def halts(self) -> bool:
        """Whether the inner rule halts at its first refusal."""
        return self.rule.halts

    def start(self) -> Account:
        """The account of the inner rule."""
        return self.rule.start()

    def admit(self, account: Account, claim: Claim) -> Account:
        """Admit what the inner rule admits."""
        return self.rule.admit(account, claim)

    def charge(self, account: Account, claim: Claim) -> Account:
        """Charge as the inner rule does, a list of launches included."""
        return self.rule.charge(account, claim)

    def loss(self, account: Account) -> Loss:
        """What has been lost, in the inner rule's measure."""
        return self.rule.loss(account)

    def loss_at(self, distance: int, launched: Iterable[Claim]) -> Loss:
        """What the inner rule reads at a distance."""
        return self.rule.loss_at(distance, launched)

    def remaining(self, account: Account) -> Remaining:
        """What remains under the inner rule."""
        return self.rule.remaining(account)

    def would_admit(self, account: Account, launch: Claim | Loss) -> int:
        """How many more the inner rule would admit."""
        return self.rule.would_admit(account, launch)

    def used(self, account: Account, parts: int) -> int | None:
        """How much of its budget the inner rule has used."""
        return self.rule.used(account, parts)

    def certificate(self, account: Account) -> Certificate:
        """The certificate of the inner rule."""
        return self.rule.certificate(account)


class Converted(RestatedRule, Value, frozen=True):
    """Decides as `rule` does, and promises the (epsilon, delta) that its bound implies; PureDP at a delta of 0.

    A session delegates a rule by its claim, and the session's own rule must cover the loss that is claimed. No theorem
    composes approximate zCDP of interactive mechanisms, or curves such as that of `Slots`, with other adaptively chosen
    losses. But if a composition has such a loss against every analyst, then against every analyst it has the (epsilon,
    delta) that the loss implies, so it is an interactive (epsilon, delta)-DP mechanism like any other (Haney et al.
    2023, Lemma 4.5).

    >>> from counterpoint import Filter
    >>> from counterpoint.measures import ApproxzCDP
    >>> from counterpoint.privacy.relations import every_step
    >>> rule = Converted(Filter(ApproxzCDP(0.01, 1e-9)), delta=1e-6)
    >>> round(float(rule.bound(every_step()).epsilon), 3), float(rule.bound(every_step()).delta)
    (0.622, 1e-06)
    """

    rule: Rule
    delta: Probability

    def __post_init__(self) -> None:
        """Reject anything that is not a rule."""
        if not isinstance(self.rule, Rule):
            raise InvalidParameter(f"Converted takes a rule, such as a Filter, not a {type(self.rule).__name__}")

    def bound(self, relation: Relation) -> Loss:
        """The (epsilon, delta) that the rule's bound implies; `NotCovered` if there is no finite epsilon."""
        loss = self.rule.bound(relation).as_approx(self.delta)
        return loss if self.delta else loss.as_pure()

    def promise(self, relation: Relation) -> Certificate:
        """The inner rule's promise, and its conversion."""
        return Certificate(
            f"{self.bound(relation)!r}: what {self.rule.bound(relation)!r} implies at delta = "
            f"{format_number(self.delta)}",
            "the conversion of the loss, against every analyst (Haney et al. 2023, Lemma 4.5)",
            (self.rule.promise(relation),),
        )


class Amplified(RestatedRule, Value, frozen=True):
    """Decides as `rule` does, on data that are a sample of this `rate`; promises the rule's bound, amplified.

    A composition under a rule is an interactive mechanism with the rule's bound. On a Poisson sample, drawn once, it
    has the amplified bound (theory, Sampling). What the rule itself reads, refuses and has left is about the sample:
    that is the loss to a reader who knows who is in it.

    >>> from counterpoint import Filter, PureDP
    >>> from counterpoint.privacy.relations import OfSample, every_step
    >>> rule = Amplified(Filter(PureDP(1)), rate="0.01")
    >>> rule.bound(OfSample(rule.rate, every_step()))
    PureDP(~0.0170369)
    """

    rule: Rule
    rate: Rate

    def __post_init__(self) -> None:
        """Reject anything that is not a rule."""
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

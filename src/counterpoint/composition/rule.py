"""A rule: which launches are allowed, and what they have lost.

See Haney et al. 2023, Def 2.5 to 2.14; Henzinger et al. 2024, Def 4.11, 12.2.

An account is a frozen value, so the dry run and the commit are the same pure function: `admit` gives the account
after the launch or raises, and nothing else happens. `loss` reads an account and changes nothing.

>>> from counterpoint import Filter, Laplace, PureDP
>>> rule = Filter(PureDP(1))
>>> account = rule.admit(rule.start(), Laplace(0.25).claim)
>>> rule.loss(account), rule.loss(rule.start())
(PureDP(0.25), PureDP(0))
"""

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import ClassVar, NoReturn

from counterpoint.composition.accumulator import Account
from counterpoint.encoding import Tagged, Value
from counterpoint.errors import BudgetExceeded, NotAllowed, NotCovered
from counterpoint.measures import ApproxDP
from counterpoint.measures.loss import Loss
from counterpoint.privacy.certificates import Certificate
from counterpoint.privacy.claims import Charge, Claim, Interaction
from counterpoint.privacy.relations import Relation


class Remaining(Value, frozen=True):
    """What a further launch may still cost: the largest PureDP that fits, and the delta that is left.

    >>> Remaining(Fraction(2, 5), Fraction(0))
    Remaining(epsilon=0.4, delta=0)
    """

    epsilon: Fraction
    delta: Fraction


class Reserved(Value, frozen=True):
    """A delegated session, by its path: what it was charged, and what its own launches have lost."""

    path: tuple[int | str, ...]
    charged: Loss
    used: Loss


class Rule(Tagged):
    """Which launches may happen, and what they cost together."""

    __slots__ = ()

    counts_launches: ClassVar[bool] = False
    """Whether a claim that is a list of launches may be counted launch by launch: if all launches here add up.

    Not where launches see different data (`Parallel`): a child of two launches of `each` does not stay within `each`.
    """

    @property
    def halts(self) -> bool:
        """Whether the first refusal ends everything, as Haney et al. 2023, Alg 3 literally says; normally a refusal
        is free.
        """
        return False

    @property
    def chosen(self) -> "Rule":
        """The rule that was chosen, where this one stands in its place."""
        return self

    @abstractmethod
    def promise(self, relation: Relation) -> Certificate:
        """Why all launches together never exceed `bound(relation)`; `NotCovered` where nothing is promised."""

    @abstractmethod
    def bound(self, relation: Relation) -> Loss:
        """What all launches together never exceed on data with this relation; `NotCovered` where there is no bound."""

    @property
    def interaction(self) -> Interaction:
        """How a composition under this rule interacts, for a rule around it that asks (theorems on f-DP do)."""
        return "endless"

    @abstractmethod
    def start(self) -> Account:
        """The account before the first launch."""

    @abstractmethod
    def admit(self, account: Account, claim: Claim) -> Account:
        """The account after one more launch, or `BudgetExceeded` or `NotCovered`; pure, public, drawing no coins."""

    def charge(self, account: Account, claim: Claim) -> Account:
        """The account after a launch with this claim: of its list of launches one by one, all or none, if it has one.

        A mechanism that is a postprocessing of launches drawn at its start costs what they cost, by every rule that
        is valid for adaptively chosen launches (theory, Parallel composition). Its loss as one launch is as valid, and
        is taken where the list does not fit.

        >>> from counterpoint import ApproxDP, Filter, Parallel, PureDP
        >>> from counterpoint.mechanisms import Concurrent
        >>> from counterpoint.privacy.relations import every_step, k_sparse
        >>> parts = Concurrent(Parallel(100, each=PureDP(0.01)), k_sparse(100, every_step()))
        >>> rule = Filter(ApproxDP(1, 1e-6))
        >>> rule.loss(rule.charge(rule.start(), parts.claim)).epsilon < 0.6
        True
        """
        if not (self.counts_launches and claim.launches):
            return self.admit(account, claim)
        try:
            return self._one_by_one(account, claim)
        except (BudgetExceeded, NotCovered) as refused:
            try:
                return self.admit(account, claim)
            except (BudgetExceeded, NotCovered):
                raise refused from None

    def _one_by_one(self, account: Account, claim: Claim) -> Account:
        counted = 0
        try:
            for charge in claim.launches:
                launch = Claim(charge.loss, claim.relation, claim.certificate, charge.interaction)
                for _ in range(charge.times):
                    account = self.admit(account, launch)
                    counted += 1
        except NotCovered as error:
            raise NotCovered(f"{_listed(claim)} cannot all be charged: {error}") from None
        except BudgetExceeded as error:
            raise BudgetExceeded(
                f"{_listed(claim)} do not fit: only {counted} of them would. {error}",
                requested=claim.loss,
                remaining=error.remaining,
            ) from None
        return account

    def refunded(self, account: Account, child: "Rule", charge: Claim, launched: Sequence[Claim]) -> Account:
        """The account with what was launched under a child's rule in the place of the child's charge.

        Nothing more may be launched there. `NotCovered` unless a theorem says that this is as private (theory,
        Returning); the reading of a loss is not a number that may be subtracted.
        """
        raise NotCovered(
            f"no theorem returns what a child of a {type(self).__name__} has left unused; its charge stays"
        )

    def charges(self, relation: Relation) -> tuple[Charge, ...]:
        """What all launches here are a postprocessing of, on data with this relation; empty if no theorem says so."""
        return ()

    @abstractmethod
    def loss(self, account: Account) -> Loss:
        """What has been lost so far; reading it changes nothing (Haney et al. 2023, sec. 1.3)."""

    def remaining(self, account: Account) -> Remaining:
        """The largest pure loss that would still be admitted, and the delta left; `NotAllowed` without a budget."""
        raise NotAllowed(f"{type(self).__name__} has no budget, so nothing remains of one")

    def would_admit(self, account: Account, launch: Claim | Loss) -> int:
        """How many more launches with this claim would fit, one after another; `NotAllowed` without a budget."""
        raise NotAllowed(f"{type(self).__name__} has no budget that says how many more launches fit")

    def loss_at(self, distance: int, launched: Iterable[Claim]) -> Loss:
        """What these launches have lost between data at a distance: a chain of `distance` pairs of neighbours.

        It composes the launches' own group losses, in the order of time (theory, Groups), for every such chain that
        can be made as the data arrive: data that differ in `distance` units have one. `NotCovered` where a launch has
        no group loss.
        """
        raise NotCovered(f"no theorem reads the loss of a {type(self).__name__} at a distance; a Filter has one")

    def used(self, account: Account, parts: int) -> int | None:
        """How many of `parts` equal parts of the budget are spent, rounded up (more than all: it does not hold).

        None where there is no budget that is spent little by little.
        """
        return None

    @abstractmethod
    def certificate(self, account: Account) -> Certificate:
        """Why the loss so far is what `loss` says."""


def _listed(claim: Claim) -> str:
    """The launches of a claim, as a refusal names them."""
    return f"{' and '.join(map(repr, claim.launches))}, charged together, all or none,"


_NOTHING = Remaining(Fraction(0), Fraction(0))


class Exhausted(Rule, Value, frozen=True):
    """Refuses every launch, and has lost all that `rule` promises on data with `relation`.

    For a session whose record was lost in part, so that its last charges are not known.

    The lost charges came after the ones on record, under the same rule: together they are one run against one analyst,
    so the rule's promise bounds both. A further launch could be one more than the rule would have admitted, so every
    launch is refused, and the loss reads as the whole promise. An odometer promises nothing: its loss reads as
    ApproxDP(0, 1), which every mechanism satisfies.

    >>> from counterpoint import Filter, Laplace, PureDP
    >>> from counterpoint.privacy.relations import every_step
    >>> rule = Exhausted(Filter(PureDP(1)), every_step())
    >>> rule.loss(rule.start()), rule.remaining(rule.start())
    (PureDP(1), Remaining(epsilon=0, delta=0))
    >>> rule.admit(rule.start(), Laplace(0.1).claim)
    Traceback (most recent call last):
    ...
    counterpoint.errors.BudgetExceeded: the record of what was charged here was lost with its disk, so all of the ...
    """

    rule: Rule
    relation: Relation

    @property
    def chosen(self) -> Rule:
        """The rule that it stands for."""
        return self.rule.chosen

    @property
    def interaction(self) -> Interaction:
        """How a composition under the lost rule interacts."""
        return self.rule.interaction

    def start(self) -> Account:
        """The account of the lost rule."""
        return self.rule.start()

    def admit(self, account: Account, claim: Claim) -> NoReturn:
        """Refuse every launch."""
        raise BudgetExceeded(
            "the record of what was charged here was lost with its disk, so all of the budget counts as spent: answers "
            "on record can be read, and nothing more is launched. A new budget for this data is a new session, whose "
            "losses add to these: its custodian opens it with second_budget=True",
            requested=claim.loss,
            remaining=_NOTHING,
        )

    def charge(self, account: Account, claim: Claim) -> NoReturn:
        """Refuse every list of launches."""
        self.admit(account, claim)

    def loss(self, account: Account) -> Loss:
        """The whole promise of the lost rule."""
        return self._whole

    def loss_at(self, distance: int, launched: Iterable[Claim]) -> Loss:
        """The group loss of all that was promised: which launches there were is not known."""
        return self._whole.group(distance)

    def remaining(self, account: Account) -> Remaining:
        """Nothing remains."""
        return _NOTHING

    def would_admit(self, account: Account, launch: Claim | Loss) -> int:
        """None."""
        return 0

    def used(self, account: Account, parts: int) -> int | None:
        """All parts of a budget, where there is one."""
        return None if self.rule.used(account, parts) is None else parts

    def bound(self, relation: Relation) -> Loss:
        """The bound of the lost rule, which still holds."""
        return self.rule.bound(relation)

    def promise(self, relation: Relation) -> Certificate:
        """The promise of the lost rule, which still holds."""
        return self.rule.promise(relation)

    def charges(self, relation: Relation) -> tuple[Charge, ...]:
        """The launches that the lost rule was a postprocessing of."""
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

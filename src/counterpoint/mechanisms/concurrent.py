"""Concurrent composition as a pure mechanism.

See Haney et al. 2023, Alg 1 and 3; Henzinger et al. 2024, Def 4.1 ExtConComp.

Messages are launches and messages addressed to children, in any interleaving. A launch is admitted by the rule on the
strength of its claim and paid for at once; what a child is asked afterwards costs nothing more. Each child has its own
state and independent coins; a child's halt concerns that child. A malformed, misaddressed or refused message is
answered with `Refused`, changes nothing and draws nothing (the convention of Haney et al. 2023, Alg 1, not Henzinger et
al.'s halt). It is a mechanism like any other, so it can be launched in itself.

>>> from counterpoint import Filter, Laplace, PureDP
>>> from counterpoint.coins import SeededCoins
>>> from counterpoint.mechanisms import Ask, Concurrent
>>> from counterpoint.privacy.relations import every_step
>>> both, coins = Concurrent(Filter(PureDP(1)), every_step()), SeededCoins(3)
>>> state = both.start(coins)
>>> state, child = both.step(state, Ask(Launch(Laplace(0.4))), coins)
>>> state, answer = both.step(state, Ask(ToChild(child), private=100), coins)
>>> state, refused = both.step(state, Ask(Launch(Laplace(0.7))), coins)
>>> both.loss(state), refused.error
(PureDP(0.4), 'BudgetExceeded')
"""

from collections.abc import Callable
from contextlib import suppress
from fractions import Fraction
from typing import TypeAlias

from msgspec.structs import replace

from counterpoint.coins.coins import Coins
from counterpoint.composition.accumulator import Account
from counterpoint.composition.rule import Rule
from counterpoint.encoding import Tagged, Value
from counterpoint.errors import BudgetExceeded, CounterpointError, InvalidRequest, NotCovered, RelationMismatch
from counterpoint.measures.loss import Loss
from counterpoint.mechanisms.mechanism import Answer, Mechanism, State, priced, ready, stepped
from counterpoint.privacy.certificates import Certificate
from counterpoint.privacy.claims import Claim
from counterpoint.privacy.messages import Ask, Message, ToChild, Update
from counterpoint.privacy.relations import MinSeparation, OfSample, Relation, Steps

Prepared: TypeAlias = Callable[[Coins], tuple[State, Answer]]
"""A step that has passed every check and waits only for its coins."""


class Launch(Tagged, Value, frozen=True):
    """The public part of an ask that launches a mechanism (Henzinger et al. 2024, Def 4.1: a creation query)."""

    mechanism: Mechanism


class Refused(Tagged, Value, frozen=True):
    """The answer to a message that changed nothing: which error, and what it says. It depends on public facts only."""

    error: str
    reason: str = ""


class Child(State, Value, frozen=True):
    """A launched mechanism and its state; None once it has halted."""

    mechanism: Mechanism
    state: State | None


class ConcurrentState(State, Value, frozen=True):
    """What has been charged, and the children in order of launch."""

    account: Account
    children: tuple[Child, ...] = ()

    def replace_child(self, index: int, state: State | None) -> "ConcurrentState":
        """The same composition with one child's state replaced."""
        child = Child(self.children[index].mechanism, state)
        return ConcurrentState(self.account, (*self.children[:index], child, *self.children[index + 1 :]))


class Concurrent(Mechanism, Value, frozen=True):
    """Launches and routed messages in, answers out; `rule` decides what may be launched on data with `relation`.

    A child sees some of the messages: those that are for it, that it accepts and that come after its launch. Its claim
    is matched with `relation.per_child`, which must therefore be `hereditary`.
    """

    rule: Rule
    relation: Relation

    def __post_init__(self) -> None:
        """Refuse a rule whose bound does not hold on such data: it would charge too little."""
        if not self.relation.per_child.hereditary:
            raise NotCovered(
                "a child of a composition sees only some of the messages, and those of neighbours in "
                f"{self.relation!r} need not be such neighbours; use a relation that still holds when messages are "
                "left out, and declares itself hereditary, such as Steps"
            )
        with suppress(NotCovered):  # an odometer promises nothing beforehand, and that is allowed
            self.rule.promise(self.relation)

    @property
    def claim(self) -> Claim:
        """The rule's promise, whatever is launched."""
        loss = self.rule.bound(self.relation)
        certificate = Certificate(
            f"{loss!r} for neighbours {self.relation.in_words}, in any interleaving",
            "concurrent composition (Henzinger et al. 2024, Def 4.1) under a rule, by its theorem",
            (self.rule.promise(self.relation),),
        )
        launches = self.rule.charges(self.relation)
        return Claim(loss, self.relation, certificate, self.rule.interaction, launches)

    @property
    def sampling_rate(self) -> Fraction | None:
        """The rate of the sample that all children see, if the relation says that they see one."""
        return self.relation.rate if isinstance(self.relation, OfSample) else None

    def loss(self, state: State) -> Loss:
        """What has been lost so far; a pure read (Haney et al. 2023, sec. 1.3)."""
        assert isinstance(state, ConcurrentState)
        return self.rule.loss(state.account)

    def accepts(self, message: object) -> bool:
        """A launch, a message to a child, or an update."""
        if isinstance(message, Ask) and isinstance(message.public, Launch):
            return isinstance(message.public.mechanism, Mechanism)
        return isinstance(message, Update) or (isinstance(message, Ask) and isinstance(message.public, ToChild))

    def start(self, coins: Coins) -> State:
        """No children yet."""
        return ConcurrentState(self.rule.start())

    def admit(
        self, account: Account, mechanism: Mechanism, data: Relation | None = None, claim: Claim | None = None
    ) -> Account:
        """The account after this launch, or the reason why not; pure and public: the dry run and the commit.

        `data` is the relation of what this child will see, where the caller knows more than `relation.per_child`;
        `claim` is the mechanism's claim, where the caller has computed it already.
        """
        claim, seen = claim or priced(mechanism), self.relation.per_child if data is None else data
        if not seen.within(claim.relation):
            raise RelationMismatch(
                f"{type(mechanism).__name__} is private for neighbours in {claim.relation!r}, "
                f"but neighbours of this data are those in {seen!r}{_would_fit(seen, claim.relation)}"
            )
        return self.rule.charge(account, claim)

    def step(self, state: State, message: Message, coins: Coins) -> tuple[State | None, Answer]:
        """Launch, route or broadcast."""
        assert isinstance(state, ConcurrentState)
        if isinstance(message, Update):
            return self._broadcast(state, message, coins), None
        try:
            prepared = self._prepare(state, message)
        except CounterpointError as error:
            ends = self.rule.halts and isinstance(error, BudgetExceeded)
            return None if ends else state, Refused(type(error).__name__, str(error))
        return prepared(coins)

    def _prepare(self, state: ConcurrentState, message: Ask) -> Prepared:
        """Everything that can be refused, without coins; what is left to do once they are there."""
        if isinstance(message.public, Launch):
            return self._launch(state, message.public.mechanism)
        assert isinstance(message.public, ToChild)
        return self._route(state, message.public, message)

    def _launch(self, state: ConcurrentState, mechanism: Mechanism) -> Prepared:
        account = self.admit(state.account, mechanism)

        def launch(coins: Coins) -> tuple[State, Answer]:
            child = Child(mechanism, coins.call(mechanism.start))
            return ConcurrentState(account, (*state.children, child)), len(state.children)

        return launch

    def _route(self, state: ConcurrentState, to: ToChild, message: Ask) -> Prepared:
        if type(to.child) is not int or not 0 <= to.child < len(state.children):
            raise InvalidRequest(f"there is no child {to.child!r}; there are {len(state.children)}")
        index, child = to.child, state.children[to.child]
        inner = replace(message, public=to.public)
        before, accepted = ready(child.mechanism, child.state, inner)

        def route(coins: Coins) -> tuple[State, Answer]:
            after, answer = stepped(child.mechanism, before, accepted, coins)
            return state.replace_child(index, after), answer

        return route

    def _broadcast(self, state: ConcurrentState, update: Update, coins: Coins) -> State:
        for index, child in enumerate(state.children):
            if child.state is not None and child.mechanism.accepts(update):
                after, _ = stepped(child.mechanism, child.state, update, coins)
                state = state.replace_child(index, after)
        return state


def _would_fit(seen: Relation, claimed: Relation) -> str:
    """What would make a mechanism and its data fit, where one change of a number would."""
    if isinstance(claimed, MinSeparation) and seen.within(claimed.inner):
        return f"; data of which the items of a unit are at least {claimed.apart} places apart (apart=...) would fit"
    if not (isinstance(seen, Steps) and isinstance(claimed, Steps)):
        return ""
    if claimed.bound is not None and seen.bound is not None and seen.bound > claimed.bound:
        return f"; a mechanism with bound={seen.bound} would fit, or data with a bound of {claimed.bound}"
    if claimed.updates is not None and seen.updates is not None and seen.updates > claimed.updates:
        return f"; data of which a unit has at most {claimed.updates} items that count (per_unit=...) would fit"
    return ""

"""Composites: mechanisms made of mechanisms, with a guarantee that is derived (S4 sec. 6, Thm 6.1, Cor 6.6).

A composite is a program. It launches sub-mechanisms in declared parts, sends them private values and public
parameters and reads their answers. Raw inputs reach it as `Secret`s, so that running it checks what S4 Def 6.5 asks:
whom it talks to (destination) and what it answers (response) cannot depend on them. What is left is that neighbouring
inputs give neighbouring sub-inputs, part by part, as declared (f -> f'): `verify.two_worlds` checks that on examples.
Its loss is composed from its parts. It tosses no coins of its own: randomness is a sub-mechanism of loss 0.

>>> from counterpoint import Ask, Laplace, PureDP, SeededCoins
>>> from counterpoint.privacy.relations import every_step
>>> class Rounds(Own, Value, frozen=True):
...     number: int
>>> class Twice(Composite, Value, frozen=True):
...     structure = Part("value", PureDP(1), every_step()), Part("digit", PureDP(0.5), every_step())
...     relation = every_step()
...     def accepts(self, message):
...         return isinstance(message, Ask) and message.private is not None and message.private.width is None
...     def begin(self, context):
...         context.launch("value", Laplace(1, asks=100))
...         context.launch("digit", Laplace(0.5, asks=100))
...         return Rounds(0)
...     def react(self, context, own, message):
...         answer = context.ask("value", message.private), context.ask("digit", message.private.clamp(0, 9))
...         return Rounds(own.number + 1), answer
>>> Twice().claim.loss
PureDP(1.5)
"""

from abc import abstractmethod
from collections.abc import Iterable
from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import msgspec
from msgspec.structs import force_setattr

from counterpoint.composition.compose import basic, optimal
from counterpoint.composition.conversions import epsilon_and_delta
from counterpoint.composition.parallel import Parallel
from counterpoint.encoding import Plain, Tagged, Value, decode, encode
from counterpoint.errors import (
    BudgetExceeded,
    InvalidParameter,
    InvalidRequest,
    NotCovered,
    RelationMismatch,
    SecretLeak,
)
from counterpoint.mechanisms.mechanism import Answer, Mechanism, State, ready
from counterpoint.mechanisms.postprocessing import Failed
from counterpoint.numbers.exact import whole
from counterpoint.privacy.certificates import Certificate
from counterpoint.privacy.claims import Claim
from counterpoint.privacy.loss import Loss
from counterpoint.privacy.losses import GaussianDP, PureDP, TradeOff
from counterpoint.privacy.messages import Ask, Message, Update
from counterpoint.privacy.relations import Relation, k_sparse
from counterpoint.privacy.secret import Raw, Secret
from counterpoint.randomness.coins import Coins


class Part(Tagged, Value, frozen=True):
    """A declared part: what is launched in it stays within `loss` for sub-inputs that are neighbours in `relation`.

    Without `sparse` one mechanism is launched in it, once. With `sparse=k` any number are, of which neighbouring inputs
    reach at most k: that costs k of them (S4 Cor 5.5), for losses that a `Parallel` covers on changing data.

    >>> from counterpoint.privacy.relations import every_step
    >>> Part("check", PureDP(0.5), every_step(), sparse=2).cost
    PureDP(1)
    """

    name: str
    loss: Loss
    relation: Relation
    sparse: int | None = None

    if TYPE_CHECKING:

        def __init__(self, name: str, loss: Loss, relation: Relation, sparse: int | None = None) -> None: ...

    def __post_init__(self) -> None:
        """Check what is declared."""
        if not all(map(isinstance, (self.name, self.loss, self.relation), (str, Loss, Relation))):
            raise InvalidParameter("a part has a name, the loss that it stays within and the relation of its inputs")
        if self.sparse is not None:
            force_setattr(self, "sparse", whole(self.sparse, 1, "sparse"))

    @property
    def cost(self) -> Loss:
        """What the whole part costs; `NotCovered` where no theorem says so."""
        if self.sparse is None:
            return self.loss
        return Parallel(self.sparse, each=self.loss).bound(k_sparse(self.sparse, self.relation))

    @property
    def certificate(self) -> Certificate:
        """Why it costs that, given what is checked at each launch."""
        where = f"{self.loss!r} for neighbours in {self.relation!r}"
        each = "its claim implies the part's loss on a family that contains the part's (S4 Obs 8.9), checked at launch"
        if self.sparse is None:
            return Certificate(f"part {self.name!r}, launched once, is {where}", each)
        rule = Parallel(self.sparse, each=self.loss)
        launched = Certificate(f"whatever is launched in part {self.name!r} is {where}", each)
        statement = f"part {self.name!r} is {self.cost!r}: at most {self.sparse} of its launches are reached"
        return Certificate(statement, rule.theorem, (launched,))


class Own(Tagged):
    """What a composite remembers beside its sub-mechanisms: a frozen struct of plain data, secrets as `Secret`."""

    __slots__ = ()


class Placed(State, Value, frozen=True):
    """A sub-mechanism in its place in a part, and its state; None once it has halted."""

    part: str
    at: int
    mechanism: Mechanism
    state: State | None


class CompositeState(State, Value, frozen=True):
    """What the composite remembers, its sub-mechanisms, and the error that broke it in an update, if one did."""

    own: Own
    children: tuple[Placed, ...]
    failed: str | None = None


class Sent(NamedTuple):
    """One thing that a composite did to a place in a part: launch a mechanism, or send a message."""

    part: str
    at: int
    what: Mechanism | Message


class Ran(NamedTuple):
    """One step of a composite: the state after it, the answer, and all that was sent on the way."""

    state: CompositeState | None
    answer: Answer
    sent: tuple[Sent, ...]


Place: TypeAlias = tuple[str, int]


class Context:
    """What a composite's program may do in one step: launch sub-mechanisms and send them messages.

    A part with `sparse` may hold several sub-mechanisms, told apart by `at`; a launch where one is replaces it, and the
    old one is forgotten. Names, places, public parts and sensitivities must be public: a `Secret` there is a leak.
    """

    __slots__ = ("_children", "_coins", "_parts", "_sent", "answered")

    def __init__(self, structure: Iterable[Part], children: tuple[Placed, ...], coins: Coins) -> None:
        self._parts = _by_name(structure)
        self._children: dict[Place, Placed] = {(child.part, child.at): child for child in children}
        self._coins = coins
        self._sent: list[Sent] = []
        self.answered = False

    @property
    def children(self) -> tuple[Placed, ...]:
        """The sub-mechanisms as they are now."""
        return tuple(self._children.values())

    @property
    def sent(self) -> tuple[Sent, ...]:
        """What has been done so far, in order."""
        return tuple(self._sent)

    def launch(self, name: str, mechanism: Mechanism, at: int = 0) -> None:
        """Launch a mechanism in a part whose loss and relation its claim covers."""
        encode((name, mechanism, at))  # raises SecretLeak where a parameter is secret
        part = self._parts.get(name)
        if part is None:
            raise InvalidParameter(f"no part {name!r} is declared; there are {', '.join(map(repr, self._parts))}")
        claim = mechanism.claim
        if not claim.loss.implies(part.loss):
            raise BudgetExceeded(
                f"{type(mechanism).__name__} is {claim.loss!r}, which does not fit into part {name!r} of {part.loss!r}",
                requested=claim.loss,
                remaining=part.loss,
                would_fit=part.loss,
            )
        if not part.relation.within(claim.relation):
            raise RelationMismatch(
                f"{type(mechanism).__name__} is private for neighbours in {claim.relation!r}, but in part {name!r} "
                f"they are those in {part.relation!r}"
            )
        if part.sparse is None and (at != 0 or (name, 0) in self._children):
            raise BudgetExceeded(f"part {name!r} holds one launch; declare it with sparse=k for more")
        self._sent.append(Sent(name, at, mechanism))
        self._children[name, at] = Placed(name, at, mechanism, self._coins.call(mechanism.start))

    def ask(
        self,
        name: str,
        private: Secret | Raw | None = None,
        public: Plain = None,
        sensitivity: int = 1,
        *,
        squared: int | None = None,
        at: int = 0,
    ) -> Answer:
        """Ask a sub-mechanism; its answer is public. `InvalidRequest` if it is not accepted, `Halted` if it has."""
        encode((public, sensitivity, squared))
        return self._send(name, at, Ask(public, private, sensitivity, squared))

    def update(self, name: str, private: Secret | Raw, at: int = 0) -> None:
        """Send an update to a sub-mechanism."""
        self._send(name, at, Update(private))

    def halted(self, name: str, at: int = 0) -> bool:
        """Whether the sub-mechanism there has given its last answer."""
        return self._child(name, at).state is None

    def _child(self, name: str, at: int) -> Placed:
        encode((name, at))
        child = self._children.get((name, at))
        if child is None:
            raise InvalidRequest(f"nothing has been launched in part {name!r} at {at}")
        return child

    def _send(self, name: str, at: int, message: Message) -> Answer:
        child = self._child(name, at)
        before, accepted = ready(child.mechanism, child.state, message)
        self._sent.append(Sent(name, at, accepted))
        self.answered = self.answered or isinstance(accepted, Ask)
        after, answer = self._coins.call(child.mechanism.step, before, accepted)
        self._children[name, at] = Placed(name, at, child.mechanism, after)
        return answer


class Composite(Mechanism):
    """The base of mechanisms made of mechanisms: define `structure`, `relation`, `accepts`, `begin` and `react`.

    A program that breaks after a sub-mechanism has answered cannot be rolled back, since running the step again would
    draw fresh noise for what was answered already: it answers `Failed` and halts (in an update, which has no answer and
    cannot halt, at the next ask). A `SecretLeak` is an error of whoever wrote the program and is always raised. The
    functions given to `Secret.map` must be total, and must not let what they see escape.
    """

    __slots__ = ()

    @property
    @abstractmethod
    def structure(self) -> tuple[Part, ...]:
        """The declared parts, from public parameters alone."""

    @property
    @abstractmethod
    def relation(self) -> Relation:
        """Which sequences of the composite's own messages are neighbours."""

    @abstractmethod
    def begin(self, context: Context) -> Own:
        """What is remembered before the first message."""

    @abstractmethod
    def react(self, context: Context, own: Own, message: Message) -> tuple[Own | None, Answer]:
        """What is remembered after a message (None: halted), and the public answer to it (None to an update)."""

    @property
    def claim(self) -> Claim:
        """What the parts cost together, for neighbours in the composite's relation."""
        parts = tuple(_by_name(self.structure).values())
        loss = composed([part.cost for part in parts])
        together = Certificate(
            f"the parts together are {loss!r}, in any interleaving",
            "concurrent composition, losses fixed in advance (S4 Thm 4.12, Cor 13.4)",
            tuple(part.certificate for part in parts),
        )
        certificate = Certificate(
            f"{loss!r} for neighbours in {self.relation!r}",
            "S4 Thm 6.1, Cor 6.6: destination and response by tainted values, f -> f' as the parts declare",
            (together,),
        )
        return Claim(loss, self.relation, certificate)

    def start(self, coins: Coins) -> State:
        """Let the program begin."""
        state = self.begun(coins).state
        assert state is not None
        return state

    def step(self, state: State, message: Message, coins: Coins) -> tuple[State | None, Answer]:
        """Let the program react."""
        ran = self.ran(state, message, coins)
        return ran.state, ran.answer

    def begun(self, coins: Coins) -> Ran:
        """The start, with all that was sent."""
        context = Context(self.structure, (), coins)
        own = _remembered(self.begin(context))
        return Ran(CompositeState(own, context.children), None, context.sent)

    def ran(self, state: State, message: Message, coins: Coins) -> Ran:
        """One step, with all that was sent."""
        assert isinstance(state, CompositeState)
        if state.failed is not None:
            return Ran(state, None, ()) if isinstance(message, Update) else Ran(None, Failed(state.failed), ())
        context = Context(self.structure, state.children, coins)
        try:
            return self._reacted(context, state.own, message)
        except SecretLeak:
            raise
        except Exception as error:
            if not context.answered:
                raise
            name = type(error).__name__
        if isinstance(message, Update):
            return Ran(CompositeState(state.own, (), name), None, context.sent)
        return Ran(None, Failed(name), context.sent)

    def _reacted(self, context: Context, own: Own, message: Message) -> Ran:
        after, answer = self.react(context, own, message)
        encode(answer)  # raises where the answer is not plain, holds a float or holds a secret
        if isinstance(message, Update) and (after is None or answer is not None):
            raise InvalidParameter("an update has no answer and cannot halt")
        state = None if after is None else CompositeState(_remembered(after), context.children)
        return Ran(state, answer, context.sent)


def composed(losses: list[Loss]) -> Loss:
    """What losses fixed in advance cost together, in their own measure: sums.

    >>> from counterpoint import ApproxDP, zCDP
    >>> composed([PureDP(0.1), PureDP(0.2)]), composed([PureDP(1), ApproxDP(1, 1e-6)]), composed([zCDP(1), zCDP(2)])
    (PureDP(0.3), ApproxDP(2, 1e-6), zCDP(3))
    """
    pure = [loss.epsilon for loss in losses if isinstance(loss, PureDP)]
    if len(pure) == len(losses):
        return PureDP(sum(pure, Fraction(0)))
    if any(isinstance(loss, GaussianDP | TradeOff) for loss in losses):
        raise NotCovered("f-DP losses compose if communication is finite (S4 Cor 14.7), which a part does not declare")
    if all(epsilon_and_delta(loss)[0] is not None for loss in losses):
        return basic(losses).loss
    return optimal(losses).loss


def _by_name(structure: Iterable[Part]) -> dict[str, Part]:
    parts = list(structure)
    names = {part.name: part for part in parts}
    if len(names) != len(parts):
        raise InvalidParameter("two parts have the same name, so that one of them would not be charged")
    return names


def _remembered(own: Own) -> Own:
    """The same, if it comes back from storage as it is: a secret in a field declared public would come back as data."""
    if not isinstance(own, Own):
        raise InvalidParameter(f"a composite remembers a struct that is an Own, not a {type(own).__name__}")
    if not _equally_secret(own, decode(encode(own, sealed=True), Own)):
        raise SecretLeak("a secret was put into a field that is not declared to be a Secret")
    return own


def _equally_secret(here: object, there: object) -> bool:
    if isinstance(here, msgspec.Struct) and isinstance(there, msgspec.Struct):
        return all(_equally_secret(getattr(here, name), getattr(there, name)) for name in here.__struct_fields__)
    if isinstance(here, tuple | list) and isinstance(there, tuple | list):
        return all(map(_equally_secret, here, there))
    return isinstance(here, Secret) == isinstance(there, Secret)

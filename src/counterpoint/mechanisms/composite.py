"""Composites: mechanisms made of mechanisms, with a derived guarantee (Henzinger et al. 2024, sec. 6, Cor 6.6).

A composite is a program. It launches sub-mechanisms in declared parts, sends them private values and public parameters
and reads their answers. Raw inputs reach it as `Secret`s, so that running it checks what Henzinger et al. 2024, Def 6.5
asks: which part it asks (destination) and what it answers (response) cannot depend on them. What is left is that
neighbouring inputs give neighbouring sub-inputs, part by part, as declared (f -> f'): `verify.two_worlds` checks that
on examples. Its loss is composed from its parts (`composite_parts.py`). It tosses no coins of its own: randomness is a
sub-mechanism of loss 0 (`Dice`). Its state, own memory and sub-states alike, is plain data; what it has replaced is not
in it.

The parts are fixed in advance, so they also cost their optimal composition. A composite that names a `claimed_delta`
claims that at this delta: a hundred slots of PureDP(0.1) are (4.78, 1e-6), where their sum is 10.

>>> from counterpoint import Laplace, PureDP
>>> from counterpoint.coins import SeededCoins
>>> from counterpoint.mechanisms import Ask
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
>>> class Often(Twice, frozen=True):
...     structure = Part("value", PureDP(0.1), every_step(), slots=100),
...     claimed_delta = 1e-6
>>> Often().claim.loss
ApproxDP(~4.77457, 1e-6)
"""

from abc import abstractmethod
from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from counterpoint.coins.coins import Coins
from counterpoint.composition.fixed.mixed import TOGETHER
from counterpoint.composition.fixed.totals import Composed
from counterpoint.encoding import Tagged, Value, decode, encode
from counterpoint.errors import InvalidParameter, SecretLeak
from counterpoint.measures.loss import OPTIMAL
from counterpoint.mechanisms.composite_parts import (
    Accounts,
    Context,
    Part,
    Placed,
    Sent,
    accounts,
    are_unlike,
    by_name,
    composed,
    composed_at,
    fixed_in_advance,
    placed,
)
from counterpoint.mechanisms.mechanism import Answer, Mechanism, State
from counterpoint.mechanisms.postprocessing import Failed
from counterpoint.numbers import Number
from counterpoint.privacy.certificates import Certificate
from counterpoint.privacy.claims import Claim
from counterpoint.privacy.messages import Message, Update
from counterpoint.privacy.relations import Relation
from counterpoint.privacy.secret import Secret, not_total, noting_failures


class Own(Tagged):
    """What a composite remembers beside its sub-mechanisms: a frozen struct of plain data, secrets as `Secret`."""

    __slots__ = ()


class CompositeState(State, Value, frozen=True):
    """What the composite remembers, its sub-mechanisms, the error that broke it in an update, if one did, and what has
    been created in parts that charge every delta.
    """

    own: Own
    children: tuple[Placed, ...]
    failed: str | None = None
    accounts: Accounts = ()


class Ran(NamedTuple):
    """One step of a composite: the state after it, the answer, and all that was sent on the way."""

    state: CompositeState | None
    answer: Answer
    sent: tuple[Sent, ...]


class Composite(Mechanism):
    """The base of mechanisms made of mechanisms: define `structure`, `relation`, `accepts`, `begin` and `react`.

    A program that breaks after a sub-mechanism has answered cannot be rolled back, since running the step again would
    draw fresh noise for what was answered already: it answers `Failed` and halts (in an update, which has no answer and
    cannot halt, at the next ask). A `SecretLeak` is an error in the program and is always raised. The
    functions given to `Secret.map`, and the steps of sub-mechanisms, must be total: where one fails the program has
    broken, and catching the error does not help it, as what it did next would depend on raw data.
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
    def claimed_delta(self) -> Number | None:
        """The delta at which the parts' optimal composition is claimed; None: their sum, in their own measure."""
        return None

    @property
    def curve(self) -> Composed:
        """What the parts cost together at every delta: their optimal composition, as they are fixed in advance."""
        return fixed_in_advance(by_name(self.structure).values())

    @property
    def claim(self) -> Claim:
        """What the parts cost together, for neighbours in the composite's relation."""
        parts = tuple(by_name(self.structure).values())
        delta, drawn = self.claimed_delta, False
        if delta is None:
            loss = composed([part.cost for part in parts])
            # in f-DP every slot is one draw, which could be made at the start (theory, f-DP in general)
            drawn = bool(parts) and all(part.loss.needs_finite_communication for part in parts)
            cited = f"losses fixed in advance (Henzinger et al. 2024, {'Cor 14.7' if drawn else 'Thm 4.12, Cor 13.4'})"
        else:
            loss, cited = composed_at(parts, delta), f"at one delta by {TOGETHER if are_unlike(parts) else OPTIMAL}"
        together = Certificate(
            f"the parts together are {loss!r}, in any interleaving",
            f"concurrent composition, {cited}",
            tuple(part.certificate for part in parts),
        )
        certificate = Certificate(
            f"{loss!r} for neighbours {self.relation.in_words}",
            "Henzinger et al. 2024, Thm 6.1, Cor 6.6: destination and response by tainted values, f -> "
            "f' as the parts declare",
            (together,),
        )
        return Claim(loss, self.relation, certificate, "memoryless" if drawn else "endless")

    def start(self, coins: Coins) -> State:
        """Let the program begin."""
        state = self.begun(coins).state
        assert state is not None
        return state

    def step(self, state: State, message: Message, coins: Coins) -> tuple[State | None, Answer]:
        """Let the program react."""
        ran = self.ran(state, message, coins)
        return ran.state, ran.answer

    def updated(self, state: State, updates: Sequence[Update], coins: Coins) -> State | None:
        """As one step for each; the parts are the same, and what is remembered is checked where it will be stored."""
        after: State | None = state
        structure = self.structure
        for number, update in enumerate(updates, 1):
            if after is not None:
                after = self._ran(structure, after, update, coins, stored=number == len(updates)).state
        return after

    def begun(self, coins: Coins) -> Ran:
        """The start, with all that was sent."""
        context = Context(self.structure, (), coins, claimed_at=self.claimed_delta)
        own = _owned(self.begin(context))
        _must_come_back(own)
        return Ran(CompositeState(own, placed(context), accounts=accounts(context)), None, context.sent)

    def ran(self, state: State, message: Message, coins: Coins) -> Ran:
        """One step, with all that was sent."""
        return self._ran(self.structure, state, message, coins, stored=True)

    def _ran(self, structure: tuple[Part, ...], state: State, message: Message, coins: Coins, *, stored: bool) -> Ran:
        assert isinstance(state, CompositeState)
        if state.failed is not None:
            return Ran(state, None, ()) if isinstance(message, Update) else Ran(None, Failed(state.failed), ())
        context = Context(structure, state.children, coins, state.accounts, claimed_at=self.claimed_delta)
        broke: Exception | None = None
        with noting_failures() as noted:
            try:
                ran = self._reacted(context, state.own, message, stored=stored)
            except SecretLeak:
                raise
            except Exception as error:
                broke = error
        if noted or context.broken:
            broke = not_total()
        if broke is None:
            return ran
        if not context.answered:
            raise broke
        name = type(broke).__name__
        if isinstance(message, Update):
            return Ran(CompositeState(state.own, (), name), None, context.sent)
        return Ran(None, Failed(name), context.sent)

    def _reacted(self, context: Context, own: Own, message: Message, *, stored: bool) -> Ran:
        after, answer = self.react(context, own, message)
        encode(answer)  # raises where the answer is not plain, holds a float or holds a secret
        if isinstance(message, Update) and (after is None or answer is not None):
            raise InvalidParameter("react must answer an update with None, and must not halt on one")
        if after is None:
            return Ran(None, answer, context.sent)
        after = _owned(after)
        if stored:
            _must_come_back(after)
        return Ran(CompositeState(after, placed(context), accounts=accounts(context)), answer, context.sent)


def _owned(own: Own) -> Own:
    """The same, if it is what begin and react return."""
    if not isinstance(own, Own):
        raise InvalidParameter(
            f"begin and react of a composite return a struct that is an Own, not a {type(own).__name__}"
        )
    return own


def _must_come_back(own: Own) -> None:
    """Whether it comes back from storage as it is: a secret in a field declared public would come back as data."""
    if not _equally_secret(own, decode(encode(own, sealed=True), Own)):
        raise SecretLeak("a secret was put into a field that is not declared to be a Secret")


def _equally_secret(here: object, there: object) -> bool:
    if isinstance(here, msgspec.Struct) and isinstance(there, msgspec.Struct):
        return all(_equally_secret(getattr(here, name), getattr(there, name)) for name in here.__struct_fields__)
    if isinstance(here, tuple | list) and isinstance(there, tuple | list):
        return all(map(_equally_secret, here, there))
    return isinstance(here, Secret) == isinstance(there, Secret)

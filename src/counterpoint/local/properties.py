"""Properties of the queries that a server may ask of one user: the prop of Henzinger et al. 2024, Def 8.5, enforced
rather than assumed.

A property is an automaton over queries. A user's mechanism may claim its loss for such sequences alone: its relation is
then `Asked(inner, property)`, the f of Henzinger et al. 2024, Def 8.5. `Guarded` is that mechanism behind a guard that
refuses every other query, so that the loss holds whatever is asked: the verifier V[f] is part of the user, and no
server can go around it.

>>> from counterpoint.coins import SeededCoins
>>> from counterpoint.mechanisms import Ask
>>> from counterpoint.local.responders import Among, Membership
>>> user, coins = Guarded(Membership(epsilon=1, bits=2), AtMost(1)), SeededCoins(1)
>>> state, _ = user.step(user.start(coins), Ask(Data(), private=3), coins)
>>> state, answer = user.step(state, Ask(Among(2, (0, 1, 2, 3))), coins)
>>> len(answer), user.step(state, Ask(Among(2, (0, 1, 2, 3))), coins)[1].error
(4, 'NotAllowed')
"""

from abc import abstractmethod
from typing import Annotated

from counterpoint.coins.coins import Coins
from counterpoint.encoding import Plain, Tagged, Value
from counterpoint.errors import InvalidParameter, NotCovered, RelationMismatch
from counterpoint.mechanisms.concurrent import Refused
from counterpoint.mechanisms.mechanism import Answer, Mechanism, State
from counterpoint.numbers.parameters import NonNegativeInt
from counterpoint.privacy.certificates import Certificate
from counterpoint.privacy.claims import Claim
from counterpoint.privacy.messages import Ask, Gap, Message, ToChild
from counterpoint.privacy.relations import Progress, Relation


class Data(Tagged, Value, frozen=True):
    """The public part of an ask that brings a user its data, or a change of them; the answer to it is None."""


class Property(Tagged):
    """Which sequences of queries a user answers; what it remembers of them is plain data, never None."""

    __slots__ = ()

    @abstractmethod
    def begin(self) -> Plain:
        """What is remembered before the first query."""

    @abstractmethod
    def after(self, progress: Plain, query: Plain) -> Plain:
        """What is remembered after one more query; None if it is not allowed."""

    @property
    def hereditary(self) -> bool:
        """Whether leaving out queries keeps every allowed sequence allowed (False where that is not known)."""
        return False

    def implies(self, other: "Property") -> bool:
        """Whether every sequence that this one allows is allowed by the other (False where that is not known)."""
        return self == other or isinstance(other, Anything)


class Anything(Property, Value, frozen=True):
    """Every query that the user's mechanism accepts.

    >>> AtMost(1).implies(Anything()), Anything().implies(AtMost(1))
    (True, False)
    """

    @property
    def hereditary(self) -> bool:
        """Everything is allowed."""
        return True

    def begin(self) -> Plain:
        """There is nothing to remember."""
        return 0

    def after(self, progress: Plain, query: Plain) -> Plain:
        """Always allowed."""
        return progress


class AtMost(Property, Value, frozen=True):
    """At most this number of queries.

    >>> AtMost(2).implies(AtMost(3)), AtMost(3).implies(AtMost(2))
    (True, False)
    """

    queries: Annotated[NonNegativeInt, "the number of queries"]

    @property
    def hereditary(self) -> bool:
        """Fewer are allowed where more are."""
        return True

    def begin(self) -> Plain:
        """None has been asked."""
        return 0

    def after(self, progress: Plain, query: Plain) -> Plain:
        """One more, up to the limit."""
        assert isinstance(progress, int)
        return progress + 1 if progress < self.queries else None

    def implies(self, other: Property) -> bool:
        """Fewer are allowed where more are."""
        return super().implies(other) or (isinstance(other, AtMost) and self.queries <= other.queries)


class Asked(Relation, Value, frozen=True):
    """Neighbours in `inner` whose queries keep a property: f of Henzinger et al. 2024, Def 8.5, which every prefix
    must satisfy.

    >>> from counterpoint.privacy.relations import every_step
    >>> relation = Asked(every_step(), AtMost(1))
    >>> data, query = (Ask(Data(), 0), Ask(Data(), 1)), (Ask("q"), Ask("q"))
    >>> relation.valid([data, query]), relation.valid([data, query, query])
    (True, False)
    """

    inner: Relation
    allowed: Property

    @property
    def symmetric(self) -> bool:
        """As symmetric as the inner relation: queries are the same in both worlds."""
        return self.inner.symmetric

    @property
    def closed(self) -> bool:
        """If the inner relation is and every query is allowed: else a postprocessor may ask what is not."""
        return self.inner.closed and Anything().implies(self.allowed)

    @property
    def hereditary(self) -> bool:
        """If the inner relation and the property are."""
        return self.inner.hereditary and self.allowed.hereditary

    @property
    def instead(self) -> str:
        """A guard keeps the property, whatever is asked."""
        if not self.inner.closed:
            return self.inner.instead
        return f"postprocess Guarded(mechanism, {self.allowed!r}), which refuses whatever breaks the property"

    @property
    def per_child(self) -> Relation:
        """A child sees some of the queries: it may rely on the property only where those keep it, too."""
        inner = self.inner.per_child
        return Asked(inner, self.allowed) if self.allowed.hereditary else inner

    def begin(self) -> Progress:
        """Both begin."""
        return (self.inner.begin(), self.allowed.begin())

    def _advance(self, progress: Progress, left: Message, right: Message, distance: Gap) -> Progress:
        inner, asked = progress
        inner = self.inner.check(inner, left, right)
        if is_query(left):
            assert isinstance(left, Ask)
            asked = self.allowed.after(asked, _query(left))
        return None if inner is None or asked is None else (inner, asked)

    def within(self, other: Relation) -> bool:
        """Fewer queries of a smaller family; or any queries at all."""
        if isinstance(other, Asked):
            return self.inner.within(other.inner) and self.allowed.implies(other.allowed)
        return self.inner.within(other)


class Watched(State, Value, frozen=True):
    """What the guard remembers of the queries, and the state of the user's mechanism."""

    asked: Plain
    inner: State


class Guarded(Mechanism, Value, frozen=True):
    """A user's mechanism that refuses, by public facts alone, every query that a property does not allow.

    Its claim names the relation R of the data alone, without the property. The guard repeats nothing and redirects
    nothing, but it leaves out what it refuses, so R must be `hereditary`: then the mechanism receives a sequence that
    is valid in R and keeps the property, whatever comes from outside. A postprocessor before the guard may repeat and
    redirect: its claim stands if R is `closed`, too (Haney et al. 2023, Thm 2.17; Henzinger et al. 2024, Lemma 2.16). R
    = Steps() is, and the guard refuses the second query of a postprocessor that asks twice.
    """

    mechanism: Mechanism
    allowed: Property

    def __post_init__(self) -> None:
        """Refuse a guard that allows more than the claim covers."""
        if not all(map(isinstance, (self.mechanism, self.allowed), (Mechanism, Property))):
            raise InvalidParameter("a guarded user is a mechanism and the property that its queries must have")
        relation = self.mechanism.claim.relation
        if isinstance(relation, Asked) and not self.allowed.implies(relation.allowed):
            raise RelationMismatch(
                f"{type(self.mechanism).__name__} is private if its queries keep {relation.allowed!r}, "
                f"and {self.allowed!r} allows others; say allowed={relation.allowed!r}"
            )
        if not _of_data(relation).hereditary:
            raise NotCovered(
                f"{type(self.mechanism).__name__} is private for neighbours in {_of_data(relation)!r}, and without the "
                "queries that a guard refuses they need not be such neighbours (Henzinger et al. 2024, "
                "Def 8.5); a relation that is kept "
                "when messages are left out declares itself hereditary, as Steps does"
            )

    @property
    def claim(self) -> Claim:
        """What the mechanism promises for allowed queries, now for all."""
        inner = self.mechanism.claim
        relation = _of_data(inner.relation)
        certificate = Certificate(
            f"{inner.loss!r} for neighbours {relation.in_words}, whatever is asked",
            f"Henzinger et al. 2024, Def 3.5, 8.5: a query that does not keep {self.allowed!r} is refused "
            "before it reaches the user",
            (inner.certificate,),
        )
        return Claim(inner.loss, relation, certificate, inner.interaction)

    @property
    def asks_are_public(self) -> bool:
        """Where those of the mechanism are."""
        return self.mechanism.asks_are_public

    def accepts(self, message: object) -> bool:
        """What the mechanism accepts."""
        return self.mechanism.accepts(message)

    def start(self, coins: Coins) -> State:
        """Nothing has been asked."""
        return Watched(self.allowed.begin(), coins.call(self.mechanism.start))

    def step(self, state: State, message: Message, coins: Coins) -> tuple[State | None, Answer]:
        """The mechanism's answer, or `Refused` without a change or a toss."""
        assert isinstance(state, Watched)
        asked = state.asked
        if is_query(message):
            assert isinstance(message, Ask)
            asked = self.allowed.after(asked, _query(message))
            if asked is None:
                return state, Refused("NotAllowed", f"the queries to this user must keep {self.allowed!r}")
        inner, answer = coins.call(self.mechanism.step, state.inner, message)
        return (None if inner is None else Watched(asked, inner)), answer


def is_query(message: object) -> bool:
    """Whether a message is a server's query rather than data.

    >>> is_query(Ask("how many?")), is_query(Ask(ToChild(3, Data()), private=1))
    (True, False)
    """
    return isinstance(message, Ask) and not isinstance(_query(message), Data)


def _of_data(relation: Relation) -> Relation:
    """How the data of neighbours differ, apart from what may be asked."""
    return relation.inner if isinstance(relation, Asked) else relation


def _query(ask: Ask) -> Plain:
    """The public part of an ask, without the addresses of a composition's children."""
    query = ask.public
    while isinstance(query, ToChild):
        query = query.public
    return query


def is_whole(value: object) -> bool:
    """Whether a part of a query is an integer, and not a truth value.

    >>> is_whole(3), is_whole(True), is_whole("3")
    (True, False, False)
    """
    return type(value) is int


def are_different(values: object, below: int) -> bool:
    """Whether a part of a query is a tuple of different integers, from 0 up to but not including `below`.

    >>> are_different((0, 2), 3), are_different((0, 0), 3), are_different((3,), 3), are_different(None, 3)
    (True, False, False, False)
    """
    if not isinstance(values, tuple) or not all(is_whole(value) and 0 <= value < below for value in values):
        return False
    return len(set(values)) == len(values)

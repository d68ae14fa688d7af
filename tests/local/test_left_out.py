"""Guards and compositions leave messages out: whose claim stands then, and what is lost where it does not.

A machine that was reset answers its next ask with a coin, and tells the truth otherwise. It loses nothing if every ask
that differs follows a reset. That relation is not hereditary: without the reset, nothing is left of the promise.
"""

import math

import pytest

from counterpoint.coins.secure import SeededCoins
from counterpoint.composition.filters import Filter
from counterpoint.composition.parallel import Parallel
from counterpoint.encoding import Value
from counterpoint.errors import NotCovered, RelationMismatch
from counterpoint.local.properties import Asked, AtMost, Guarded, Property
from counterpoint.measures import PureDP
from counterpoint.mechanisms.concurrent import Concurrent, Launch, Refused
from counterpoint.mechanisms.mechanism import Left, Mechanism
from counterpoint.mechanisms.noisy_max import NoisyMax
from counterpoint.mechanisms.randomized_response import InteractiveRandomizedResponse
from counterpoint.privacy.claims import claim
from counterpoint.privacy.messages import Ask, ToChild, Update
from counterpoint.privacy.relations import (
    FirstMessage,
    Predicate,
    Relation,
    Sparse,
    every_step,
    first_pair_consistent,
    k_sparse,
)
from counterpoint.privacy.secret import reveal
from counterpoint.verify.catalogue.instances import session_game
from counterpoint.verify.exact_loss import exact
from counterpoint.verify.game import CreatedFirst

RESET, ASK = 0, 1


class AfterReset(Relation, Value, frozen=True):
    """An ask differs only directly after a reset. `lies` declares it hereditary, which it is not."""

    lies: bool = False

    @property
    def hereditary(self):
        return self.lies

    def begin(self):
        return False

    def _advance(self, progress, left, right, distance):
        said = left.public.public if isinstance(left.public, ToChild) else left.public
        return said == RESET if progress or distance.l1 == 0 else None

    def within(self, other):
        return other == self


class Resettable(Mechanism, Value, frozen=True):
    relation: Relation

    @property
    def claim(self):
        return claim(PureDP(0), self.relation, "an ask after a reset is answered with a coin")

    def accepts(self, message):
        return isinstance(message, Ask) and message.public in (RESET, ASK) and message.private is not None

    def start(self, coins):
        return Left(0)

    def step(self, state, message, coins):
        if message.public == RESET:
            return Left(1), None
        return Left(0), int(coins.bernoulli("1/2")) if state.asks else reveal(message.private)


class NoResets(Property, Value, frozen=True):
    def begin(self):
        return 0

    def after(self, progress, query):
        return None if query == RESET else progress


def conversation(reset=RESET, ask=ASK):
    return [(Ask(reset, 0), Ask(reset, 0)), (Ask(ask, 0), Ask(ask, 1))]


def test_a_guard_that_leaves_out_what_the_relation_needs_loses_everything_and_is_refused():
    lying = AfterReset(lies=True)
    assert exact(Resettable(lying), messages=conversation(), rounds=2).epsilon_at(0) == 0
    by_hand = Guarded(Resettable(lying), NoResets())
    assert exact(by_hand, messages=conversation(), rounds=2).epsilon_at(0) == math.inf
    with pytest.raises(NotCovered, match="without the queries that a guard refuses"):
        Guarded(Resettable(AfterReset()), NoResets())


def test_a_composition_whose_children_see_a_part_of_the_messages_loses_everything_and_is_refused():
    lying = AfterReset(lies=True)
    both = Concurrent(Filter(PureDP(0)), lying)
    launch = (Ask(Launch(Resettable(lying))),) * 2
    messages = [launch, *conversation(ToChild(0, RESET), ToChild(1, ASK))]
    assert exact(both, messages=messages, rounds=4).epsilon_at(0) == math.inf
    with pytest.raises(NotCovered, match="sees only some of the messages"):
        Concurrent(Filter(PureDP(0)), AfterReset())


def test_nothing_shipped_that_is_guarded_or_composed_is_refused():
    Guarded(InteractiveRandomizedResponse(1), AtMost(1))
    for relation in (every_step(), k_sparse(2, FirstMessage()), CreatedFirst(every_step(), 1)):
        Concurrent(Filter(PureDP(1)), relation)
    Concurrent(Parallel(1, each=PureDP(1), first_pair=True), first_pair_consistent(1, FirstMessage()))


def test_what_nothing_is_known_of_is_neither_guarded_nor_composed():
    strange = Predicate("strange", lambda pairs: True)
    with pytest.raises(NotCovered):
        Guarded(Resettable(strange), AtMost(1))
    with pytest.raises(NotCovered):
        Concurrent(Filter(PureDP(0)), Sparse(1, strange))
    with pytest.raises(NotCovered):
        Guarded(Resettable(first_pair_consistent(1, every_step())), AtMost(1))


def test_a_child_may_not_rely_on_a_property_that_is_lost_with_what_others_are_asked():
    """Of queries that need not be reset to be allowed a child sees some; of at most three it sees at most three."""
    rule, few, strange = Filter(PureDP(0)), Asked(every_step(), AtMost(3)), Asked(every_step(), NoResets())
    Concurrent(rule, few).admit(rule.start(), Resettable(few))
    with pytest.raises(RelationMismatch):
        Concurrent(rule, strange).admit(rule.start(), Resettable(strange))


def test_a_guard_judges_what_an_ask_says_and_not_whom_it_is_for():
    """The relation that it enforces does: an address would carry any query past the guard."""
    mechanism = Concurrent(Filter(PureDP(0)), every_step())
    guarded, coins = Guarded(mechanism, NoResets()), SeededCoins(1)
    state, _ = guarded.step(guarded.start(coins), Ask(Launch(Resettable(every_step()))), coins)
    for address in (ToChild(0, RESET), ToChild(0, ToChild(1, RESET))):
        after, refused = guarded.step(state, Ask(address, 0), coins)
        assert isinstance(refused, Refused) and refused.error == "NotAllowed" and after == state
        assert not Asked(every_step(), NoResets()).valid([(Ask(address, 0), Ask(address, 0))])


class Spoilt(Mechanism, Value, frozen=True):
    """Answers its first message with a coin, and whatever comes after something else as it is."""

    @property
    def claim(self):
        return claim(PureDP(0), FirstMessage(), "the first answer is a coin")

    def accepts(self, message):
        return isinstance(message, Update) or (isinstance(message, Ask) and message.private is not None)

    def start(self, coins):
        return Left(0)

    def step(self, state, message, coins):
        if isinstance(message, Update):
            return Left(1), None
        return Left(1), reveal(message.private) if state.asks else int(coins.bernoulli("1/2"))


@pytest.mark.parametrize("inner", [FirstMessage(), every_step()])
def test_an_update_for_all_children_is_a_message_of_each(inner):
    """It was no one's first message: after it, a child whose first message alone may differ got another that did."""
    parts = Concurrent(Parallel(1, each=PureDP(0)), k_sparse(1, inner))
    update, ask = (Update(0), Update(0)), (Ask(ToChild(0), 0), Ask(ToChild(0), 1))
    assert parts.relation.valid([update, ask]) is (inner == every_step())
    if inner == FirstMessage():
        launch = (Ask(Launch(Spoilt())),) * 2
        assert exact(parts, messages=[launch, update, ask], rounds=3).epsilon_at(0) == 0
        assert parts.relation.valid([ask, update]) and not parts.relation.valid([ask, update, ask])


def test_a_session_game_is_for_mechanisms_that_are_private_for_all_asks():
    with pytest.raises(RelationMismatch, match="in a session game"):
        session_game(Filter(PureDP(1)), [NoisyMax(1, monotone=True)], 2)

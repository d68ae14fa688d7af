"""What relations declare about parties that do not hand messages on one to one, checked by brute force.

A relation is an automaton. What comes in from outside and what goes on to the mechanism are followed through it side by
side, over an alphabet of pairs, until no new pair of progresses is found: so every sequence of every length is covered.
A declaration holds if and only if no sequence that is valid outside is invalid inside; where it does not, one such
sequence is exhibited.
"""

import importlib
import pkgutil
from collections import deque
from fractions import Fraction

import pytest
from msgspec.structs import replace

import counterpoint
from counterpoint.encoding import encode
from counterpoint.local.multi_sparse_vector import FewCoordinates
from counterpoint.local.peeling import OneSwap
from counterpoint.local.properties import Anything, Asked, AtMost, Data, Property
from counterpoint.mechanisms.concurrent import Launch
from counterpoint.mechanisms.randomized_response import RandomizedResponse
from counterpoint.privacy.messages import Ask, ToChild, Update
from counterpoint.privacy.relations import (
    FirstMessage,
    MinSeparation,
    OfSample,
    OneWay,
    Predicate,
    Relation,
    Steps,
    every_step,
    first_pair_consistent,
    identical,
    k_sparse,
    one_step,
    static_parts,
    up_to_steps,
)
from counterpoint.verify.game import CreatedFirst
from counterpoint.verify.unit_by_unit import OneUnit

DIFFERENCES = [((0, 0), (1, 0)), ((0, 0), (0, 1)), ((0, 1), (0, 0)), ((0, 1), (1, 0)), ((0, 0), (0, 0))]
PUBLIC = ["q", ToChild(0, "q"), ToChild(1, "q"), Data(), Launch(RandomizedResponse(1))]
ASKS = [
    tuple(Ask(public, side, sensitivity=2, one_way=one_way) for side in sides)
    for sides in DIFFERENCES
    for public in PUBLIC
    for one_way in (False, True)
]
UPDATES = [tuple(map(Update, sides)) for sides in DIFFERENCES]
ALPHABET = [*ASKS, *UPDATES]
NUMBERS = [tuple(map(Update, sides)) for sides in [(0, 1), (0, 0)]]
SHAPES = [(2,), (None,), (2, None)]
ENDLESS = 400  # progresses: a relation that remembers everything has no end of them, and is searched so far


def _alphabet(relation):
    """The pairs that a relation is tried on; of a second shape, if it looks at shapes."""
    return [*ALPHABET, *NUMBERS] if isinstance(relation, MinSeparation) else ALPHABET


def _postprocessed(pair):
    """What a postprocessor may send on, any number of times, in the place of one message; None: as it is, once."""
    if isinstance(pair[0], Update):
        return None
    return [tuple(replace(message, public=public) for message in pair) for public in PUBLIC]


def _reachable(relation, progress, pairs):
    """Every progress after a finite list of these pairs (also the empty one), each with the shortest such list."""
    found, queue = {encode(progress, sealed=True): (progress, ())}, deque([(progress, ())])
    while queue:
        here, path = queue.popleft()
        if here is None or len(found) > ENDLESS:
            continue
        for pair in pairs:
            after = relation.check(here, *pair)
            key = encode(after, sealed=True)
            if key not in found:
                found[key] = after, (*path, pair)
                queue.append(found[key])
    return found.values()


def _handed_on(relation, progress, pair):
    """The progresses that a postprocessor can lead to in the place of one message, and how."""
    choices = _postprocessed(pair)
    if choices is None:
        return [(relation.check(progress, *pair), (pair,))]
    return _reachable(relation, progress, choices)


def _search(relation, party):
    """A sequence that is valid outside, with what the party made of it, which is not; or None. And if all was seen."""
    begin = relation.begin()
    seen, queue = {encode((begin, begin), sealed=True)}, deque([(begin, begin, (), ())])
    while queue:
        outer, inner, came, went = queue.popleft()
        for pair in _alphabet(relation):
            after = relation.check(outer, *pair)
            if after is None:
                continue
            for inside, sent in party(relation, inner, pair):
                if inside is None:
                    return ([*came, pair], [*went, *sent]), True
                key = encode((after, inside), sealed=True)
                if key not in seen:
                    seen.add(key)
                    queue.append((after, inside, (*came, pair), (*went, *sent)))
                if len(seen) > ENDLESS:
                    return None, False
    return None, True


def _left_out(relation, child, handed_on):
    """The same for a party that leaves messages out by public facts, as a composition does for a child.

    It drops everything before some message, then all updates of other shapes than some, and any asks.
    """
    for shapes in SHAPES:
        begin = relation.begin(), child.begin(), False
        seen, queue = {encode(begin, sealed=True)}, deque([(*begin, (), ())])
        while queue:
            outer, inner, launched, came, went = queue.popleft()
            for pair in _alphabet(relation):
                after = relation.check(outer, *pair)
                if after is None:
                    continue
                sent = handed_on(pair)
                update = isinstance(pair[0], Update)
                refused = sent is None or (update and pair[0].private.width not in shapes)
                skips = [] if launched and update and not refused else [(inner, launched, ())]
                takes = [] if refused else [(child.check(inner, *sent), True, (sent,))]
                for inside, now, through in (*skips, *takes):
                    if inside is None:
                        return ([*came, pair], [*went, *through]), True
                    key = encode((after, inside, now), sealed=True)
                    if key not in seen:
                        seen.add(key)
                        queue.append((after, inside, now, (*came, pair), (*went, *through)))
                    if len(seen) > ENDLESS:
                        return None, False
    return None, True


class Alternating(Property, counterpoint.encoding.Value, frozen=True):
    """Queries to "q" and launches take turns: what is left of them need not."""

    def begin(self):
        return ""

    def after(self, progress, query):
        kind = "launch" if isinstance(query, Launch) else "query"
        return None if kind == progress else kind


DECLARED = [
    # relation, closed, hereditary
    (Steps(), True, True),
    (every_step(3), True, True),
    (Steps(updates=2, bound=1), True, True),
    (Steps(updates=0), True, True),
    (Steps(asks=0), True, True),
    (Steps(asks=0, updates=2, total=1), True, True),
    (Steps(asks=0, total=2), True, True),
    (Steps(asks=3, total=0), True, True),
    (identical(), True, True),
    (Steps(asks=1), False, True),
    (Steps(asks=2, updates=1), False, True),
    (Steps(total=2), False, True),
    (Steps(updates=0, total=1), False, True),
    (one_step(), False, True),
    (up_to_steps(3, bound=2), False, True),
    (FirstMessage(), False, True),
    (FirstMessage(bound=1), False, True),
    (MinSeparation(Steps(updates=2, bound=2), apart=3), True, True),
    (MinSeparation(Steps(asks=1, updates=2), apart=2), False, True),
    (OneWay(), True, True),
    (OneWay(Steps(updates=1)), True, True),
    (OneWay(Steps(asks=0, updates=1)), True, True),
    (OneWay(Steps(asks=2)), False, True),
    (k_sparse(1, every_step()), False, True),
    (k_sparse(1, FirstMessage()), False, True),
    (first_pair_consistent(1, every_step()), False, False),
    (static_parts(1, every_step()).reaching(0), False, True),
    (static_parts(2, FirstMessage()).reaching(0), False, True),
    (FewCoordinates(1), True, True),
    (FewCoordinates(2, bound=1), True, True),
    (OneUnit(every_step()), True, True),
    (OneUnit(Steps(asks=1)), False, True),
    (OneSwap(), False, True),
    (Asked(every_step(), Anything()), True, True),
    (Asked(Steps(asks=1), Anything()), False, True),
    (Asked(every_step(), AtMost(1)), False, True),
    (Asked(FirstMessage(), AtMost(2)), False, True),
    (Asked(every_step(), AtMost(0)), False, True),
    (Asked(every_step(), Alternating()), False, False),
    (CreatedFirst(every_step(), 1), False, False),
    (CreatedFirst(k_sparse(1, every_step()), 1), False, False),
    (Predicate("data come first", lambda pairs: getattr(pairs[0][0], "public", None) == Data()), False, False),
]


def _shipped(kind):
    for one in kind.__subclasses__():
        yield from _shipped(one)
        if one.__module__.startswith("counterpoint."):
            yield one


def test_every_shipped_relation_is_among_those_that_are_checked():
    rooms = (module for module in pkgutil.walk_packages(counterpoint.__path__, "counterpoint."))
    for room in rooms:
        if not room.name.endswith("__main__"):
            importlib.import_module(room.name)
    in_no_sequence = {OfSample}  # it is about messages made from a sample, and what it says is that of its inner one
    assert set(_shipped(Relation)) - in_no_sequence == {type(relation) for relation, _, _ in DECLARED}


@pytest.mark.parametrize("inner, closed, hereditary", [entry for entry in DECLARED if entry[2]], ids=repr)
def test_messages_from_a_sample_are_as_closed_as_those_that_the_sample_would_send(inner, closed, hereditary):
    sampled = OfSample(Fraction(1, 2), inner)
    assert (sampled.closed, sampled.hereditary, sampled.symmetric) == (closed, hereditary, inner.symmetric)
    assert sampled.per_child is inner and sampled.within(sampled) == inner.within(inner)
    assert inner.within(sampled) == (inner.within(identical()) and isinstance(inner, Steps))


@pytest.mark.parametrize("relation, closed, _", DECLARED, ids=repr)
def test_a_relation_is_closed_if_and_only_if_no_postprocessor_leaves_it(relation, closed, _):
    assert relation.closed is closed
    witness, all_seen = _search(relation, _handed_on)
    if closed:
        assert witness is None and all_seen
    else:
        came, went = witness
        assert relation.valid(came) and not relation.valid(went)


@pytest.mark.parametrize("relation, _, hereditary", DECLARED, ids=repr)
def test_a_relation_is_hereditary_if_and_only_if_leaving_messages_out_keeps_it(relation, _, hereditary):
    assert relation.hereditary is hereditary
    witness, all_seen = _left_out(relation, relation, lambda pair: pair)
    if hereditary:
        assert witness is None and all_seen
    else:
        came, went = witness
        assert relation.valid(came) and not relation.valid(went) and len(went) < len(came)


def test_a_relation_that_declares_nothing_is_taken_to_be_neither():
    class Strange(Steps, frozen=True):
        closed, hereditary = Relation.closed, Relation.hereditary

    assert not Strange().closed and not Strange().hereditary


def test_what_a_child_sees_of_a_sequence_is_what_per_child_says():
    """A child sees what is addressed to it, without the address: of any sequence that is valid, so much is valid."""
    for relation, _, _ in DECLARED:
        if isinstance(relation, Predicate):
            continue  # it is hereditary for no composition
        child = relation.per_child
        if not child.hereditary:
            continue
        witness, all_seen = _left_out(relation, child, _addressed)
        assert witness is None and all_seen, (relation, witness)


def _addressed(pair):
    """What the first child of a composition receives; None: nothing."""
    if isinstance(pair[0], Update):
        return pair
    mine = isinstance(pair[0].public, ToChild) and pair[0].public.child == 0
    return tuple(replace(message, public=message.public.public) for message in pair) if mine else None

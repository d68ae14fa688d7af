"""Relations are verification functions: reflexive, prefix by prefix, invalid for good, ordered by containment."""

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from counterpoint.encoding import decode, encode
from counterpoint.errors import InvalidParameter, NotCovered
from counterpoint.privacy.messages import Ask, ToChild, Update, gap
from counterpoint.privacy.relations import (
    FirstMessage,
    MinSeparation,
    Predicate,
    Relation,
    Sparse,
    Steps,
    every_step,
    first_pair_consistent,
    identical,
    k_sparse,
    one_step,
    static_parts,
    up_to_steps,
)
from counterpoint.privacy.secret import Tally

limits = st.none() | st.integers(0, 3)
bounds = st.none() | st.integers(1, 3)
steps = st.builds(Steps, asks=limits, updates=limits, total=limits, bound=bounds)
simple = steps | st.builds(FirstMessage, bounds) | st.builds(MinSeparation, steps, st.integers(1, 3))
relations = simple | st.builds(Sparse, st.integers(1, 3), simple, st.booleans())

small = st.integers(0, 3)
publics = st.sampled_from([None, ToChild(0), ToChild(1), ToChild("x"), ToChild(1, "q")])


@st.composite
def pairs(draw):
    """A pair that often agrees, and is small when it does not."""
    left = draw(small)
    right = left if draw(st.booleans()) else draw(small)
    if draw(st.booleans()):
        return Update(left), Update(right)
    public, sensitivity = draw(publics), draw(st.integers(1, 3))
    return Ask(public, left, sensitivity), Ask(public, right, sensitivity)


sequences = st.lists(pairs(), max_size=6)


@given(relations, sequences)
def test_identical_sequences_are_neighbours_in_every_relation(relation, sequence):
    assert relation.valid([(left, left) for left, _ in sequence])


@given(relations, sequences)
def test_once_invalid_a_sequence_stays_invalid(relation, sequence):
    progress = relation.begin()
    for left, right in sequence:
        after = relation.check(progress, left, right)
        assert after is None or progress is not None
        progress = after
    assert relation.valid(sequence) == (progress is not None)


@given(relations, sequences)
def test_ordinary_relations_are_symmetric(relation, sequence):
    assert relation.symmetric
    assert relation.valid(sequence) == relation.valid([(right, left) for left, right in sequence])


@settings(max_examples=300)
@given(relations, relations, sequences)
def test_a_sequence_in_a_relation_is_in_every_relation_that_contains_it(narrow, wide, sequence):
    assume(narrow.within(wide))
    if narrow.valid(sequence):
        assert wide.valid(sequence)


@given(relations)
def test_a_relation_contains_itself_and_the_identical_one_and_round_trips(relation):
    assert relation.within(relation) and identical().within(relation)
    assert decode(encode(relation), Relation) == relation


def test_families_nest_as_expected():
    assert identical().within(FirstMessage())
    assert (
        FirstMessage(1).within(one_step()) and one_step().within(up_to_steps(3)) and up_to_steps(3).within(every_step())
    )
    assert not every_step().within(one_step()) and not one_step().within(FirstMessage())
    assert not up_to_steps(2, bound=5).within(up_to_steps(2, bound=1)), "an update may move by 5"
    stream, counter = Steps(updates=1, bound=1), Steps(updates=1, bound=1)
    assert stream.within(counter) and stream.within(every_step())
    assert k_sparse(1, every_step()).within(k_sparse(2, every_step()))
    assert first_pair_consistent(1, every_step()).within(k_sparse(1, every_step()))
    assert not k_sparse(1, every_step()).within(first_pair_consistent(1, every_step()))
    assert k_sparse(3, every_step()).within(every_step())
    assert not every_step().within(k_sparse(3, every_step()))


def test_updates_that_differ_are_as_far_from_each_other_as_is_said_among_those_of_their_shape():
    same, other, ask = (Update(0), Update(0)), (Update(0), Update(1)), (Ask(private=0), Ask(private=1))
    wide = Update((0, 0)), Update((0, 0))
    relation = MinSeparation(Steps(updates=2, bound=1), apart=3)
    assert relation.valid([other, same, ask, same, ask, other, same, same])
    assert not relation.valid([other, same, other])
    assert not relation.valid([other, same, wide, wide, other]), "who receives numbers does not see the vectors"
    tallies, nothing = (Update(Tally(())), Update(Tally((("key", 1),)))), (Update(()), Update(()))
    assert not relation.valid([tallies, nothing, nothing, tallies]), "nor does who receives tallies, empty ones or not"
    assert not relation.valid([other, same, same, other, same, same, other]), "a third"
    assert not relation.valid([(Update(0), Update(2))]), "or too far moved"
    assert MinSeparation(Steps(updates=2), apart=1).valid([other, other])


def test_greater_distances_are_within_smaller_ones_and_within_any():
    far, near, any_ = (MinSeparation(Steps(updates=2), 9), MinSeparation(Steps(updates=2), 5), Steps(updates=2))
    assert far.within(near) and far.within(any_) and not near.within(far) and not any_.within(near)
    assert identical().within(far) and not MinSeparation(Steps(updates=3), 9).within(near)


def test_public_parts_never_differ():
    assert gap(Ask("a"), Ask("b")) is None
    assert gap(Ask(private=1), Ask(private=(1,))) is None
    assert gap(Ask(private=1), Ask()) is None
    assert gap(Ask(private=1, sensitivity=1), Ask(private=1, sensitivity=2)) is None
    assert gap(Ask(private=1), Update(1)) is None
    assert not every_step().valid([(Ask("a", 1), Ask("b", 1))])


def test_the_size_of_a_step_is_checked_in_both_norms():
    wide = [(Ask(private=(0, 0), sensitivity=2, squared=2), Ask(private=(1, 1), sensitivity=2, squared=2))]
    tall = [(Ask(private=(0, 0), sensitivity=2, squared=2), Ask(private=(2, 0), sensitivity=2, squared=2))]
    many = [(Ask(private=(0, 0, 0), sensitivity=2), Ask(private=(1, 1, 1), sensitivity=2))]
    assert every_step().valid(wide) and not every_step().valid(tall) and not every_step().valid(many)
    assert every_step(bound=1).valid(wide), "an ask is as large as it says; the bound is for updates"
    assert not one_step(bound=2).valid([(Update(0), Update(3))])


def test_t20_the_event_level_relation_on_a_stream():
    stream = [(0, 0), (1, 1), (0, 1), (1, 1), (1, 0), (0, 0)]
    progress, alive = one_step().begin(), []
    for left, right in stream:
        progress = one_step().check(progress, Update(left), Update(right))
        alive.append(progress is not None)
    assert alive == [True, True, True, True, False, False]


def test_t18_first_pair_consistency_is_enforced_on_the_messages():
    relation = first_pair_consistent(1, every_step())

    def same(child):
        return Ask(ToChild(child), 1), Ask(ToChild(child), 1)

    def other(child):
        return Ask(ToChild(child), 0), Ask(ToChild(child), 1)

    assert relation.valid([same(1), same(1), other(2), other(2)])
    assert not relation.valid([same(1), same(1), other(1)]), "declared unaffected by its first pair"
    assert not relation.valid([other(2), other(3)]), "the one slot is taken"
    assert relation.valid([other(2), *(same(child) for child in range(3, 50))]), "unaffected ones are free"
    assert not relation.valid([(Ask(private=0), Ask(private=1))]), "what has no address may not differ"


def test_a_predicate_is_reflexive_and_known_to_contain_only_itself():
    asymmetric = Predicate("one way only", lambda pairs: False)
    assert asymmetric.valid([(Ask(private=1), Ask(private=1))] * 3)
    assert not asymmetric.valid([(Ask(private=0), Ask(private=1))])
    assert not asymmetric.symmetric and Predicate("both", lambda pairs: True, symmetric=True).symmetric
    assert asymmetric.within(asymmetric) and not asymmetric.within(Predicate("one way only", lambda pairs: False))
    assert not asymmetric.within(every_step()) and not every_step().within(asymmetric)
    assert not Sparse(1, asymmetric).symmetric
    with pytest.raises(InvalidParameter):
        encode(asymmetric)
    with pytest.raises(InvalidParameter):
        Predicate("nothing", None)  # type: ignore[arg-type]


@pytest.mark.parametrize("bad", [-1, 1.5, True, "x", float("nan")])
def test_bad_limits_are_refused(bad):
    for make in (lambda: Steps(asks=bad), lambda: one_step(bad), lambda: Sparse(bad, every_step())):
        with pytest.raises(InvalidParameter):
            make()


@pytest.mark.parametrize("bad", [0, -1, 1.5, True, "x", float("nan"), None])
def test_bad_sensitivities_are_refused(bad):
    with pytest.raises(InvalidParameter):
        Ask(private=1, sensitivity=bad)


def test_a_tighter_l2_sensitivity_is_kept_and_a_looser_one_is_cut():
    assert Ask(private=(1, 2), sensitivity=2).squared == 4
    assert Ask(private=(1, 2), sensitivity=2, squared=2).squared == 2
    assert Ask(private=(1, 2), sensitivity=2, squared=9).squared == 4


def test_static_parts_are_named_before_the_first_message():
    one, other = ((Ask(ToChild(n), 0), Ask(ToChild(n), 1)) for n in (0, 1))
    same = Ask(ToChild(1), 0), Ask(ToChild(1), 0)
    parts = static_parts(1, every_step())
    assert parts.valid([same, one, one]) and parts.valid([same, other]) and not parts.valid([one, other])
    assert parts.reaching(0).valid([same, one]) and not parts.reaching(0).valid([same, other])
    assert not parts.reaching(0).valid([(Ask("q", 0), Ask("q", 1))])
    with pytest.raises(NotCovered, match=r"relation.reaching\(0, 2\)"):
        parts.begin()
    with pytest.raises(InvalidParameter, match="at most k = 1"):
        parts.reaching(0, 1)


def test_a_claim_about_children_chosen_on_the_way_covers_children_fixed_before_and_no_first_pair_does():
    static = static_parts(1, every_step())
    assert static.within(k_sparse(2, every_step())) and static.within(every_step()) and static.within(static)
    assert static.reaching(0).within(static) and not static.within(static.reaching(0))
    assert static.reaching(0).within(static_parts(2, every_step()).reaching(0, 1))
    assert not static.within(first_pair_consistent(1, every_step()))
    for chosen in (k_sparse(1, every_step()), first_pair_consistent(1, every_step())):
        assert not chosen.within(static)
    assert not static_parts(2, every_step()).within(static) and not static.within(Steps(asks=1))

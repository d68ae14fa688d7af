"""Multi-dimensional sparse vector: what its composition says, and what the direct form says, are the same in law."""

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.local.coins import law

from counterpoint.coins.secure import SeededCoins
from counterpoint.errors import InvalidParameter, NotCovered, RelationMismatch
from counterpoint.local.multi_sparse_vector import FewCoordinates, MultiSparseVector
from counterpoint.measures import PureDP
from counterpoint.mechanisms.sparse_vector import AboveThreshold, SparseVector
from counterpoint.privacy.messages import Ask
from counterpoint.verify.coupling import two_worlds

ASKS = [((1, 0), (0, 2)), ((0, 3), (1, 1))]
"""Pairs of values and thresholds."""


def composed(each, coins):
    many = MultiSparseVector(each, width=2)
    state, said = coins.call(many.start), []
    for values, thresholds in ASKS:
        if state is None:
            break
        state, answer = many.step(state, Ask(thresholds, values), coins)
        said.append(answer)
    return tuple(said)


def direct(each, coins):
    """The direct form: all noises on the thresholds first, then every coordinate of every vector."""

    class Start:
        def start(self, coins):
            return tuple(coins.discrete_laplace(each.scales[0]) for _ in range(2))

    taus, hits, said = coins.call(Start().start), [0, 0], []
    for values, thresholds in ASKS:
        if min(hits) >= each.hits:
            break
        answer = []
        for place in range(2):
            if hits[place] >= each.hits:
                answer.append(None)
                continue
            below = values[place] + coins.discrete_laplace(each.scales[1]) - taus[place] < thresholds[place]
            hits[place] += not below
            answer.append(not below)
        said.append(tuple(answer))
    return tuple(said)


def test_coordinates_that_ever_differ_are_counted_once_and_over_all_asks():
    first, second = ((Ask(private=(0, 0)), Ask(private=moved)) for moved in ((1, 0), (0, 1)))
    far = Ask(private=(0, 0), sensitivity=2), Ask(private=(2, 0), sensitivity=2)
    assert FewCoordinates(1).valid([first, first]) and not FewCoordinates(1).valid([first, second])
    assert FewCoordinates(2).valid([first, second])
    assert not FewCoordinates(1).valid([far]) and FewCoordinates(1, bound=2).valid([far])


@pytest.mark.parametrize("each", [AboveThreshold(6, 0), SparseVector(9, 0, hits=2)])
def test_the_composition_has_the_law_of_the_direct_form(each):
    one, other = (law(lambda coins, form=form: form(each, coins), reach=4) for form in (composed, direct))
    assert one == other and len(one) > 8 and sum(one.values()) > 0.99


def test_it_costs_k_sparse_vectors_however_wide_it_is():
    for width, k in product((1, 50), (1, 3)):
        claim = MultiSparseVector(AboveThreshold("0.5", 0), width, k).claim
        assert claim.loss == PureDP(f"{k}/2") and claim.relation == FewCoordinates(k)
        assert claim.certificate.rests_on("Henzinger et al. 2024, Cor 5.5") and claim.certificate.rests_on(
            "Henzinger et al. 2024, Thm 6.1"
        )


@given(st.lists(st.tuples(st.integers(-9, 9), st.integers(-1, 1)), min_size=1, max_size=5), st.integers(0, 9))
def test_neighbouring_vectors_reach_as_many_sparse_vectors_as_declared(steps, seed):
    many = MultiSparseVector(AboveThreshold(1, 5), width=3, k=1)
    left = [Ask(private=(value, 0, 7)) for value, _ in steps]
    right = [Ask(private=(value + change, 0, 7)) for value, change in steps]
    assert two_worlds(many, left, right, seed).reached["coordinates"] <= 1


def test_vectors_that_differ_in_more_places_are_no_neighbours():
    many = MultiSparseVector(AboveThreshold(1, 5), width=3, k=1)
    with pytest.raises(RelationMismatch):
        two_worlds(many, [Ask(private=(0, 0, 0))], [Ask(private=(1, 1, 0))])
    with pytest.raises(RelationMismatch):
        two_worlds(many, [Ask(private=(0, 0, 0))], [Ask(private=(2, 0, 0))])
    assert FewCoordinates(1).within(FewCoordinates(2)) and not FewCoordinates(1, bound=2).within(FewCoordinates(2))


def test_it_halts_when_all_coordinates_have():
    many, coins = MultiSparseVector(AboveThreshold(40, 5), width=2), SeededCoins(1)
    state, first = many.step(many.start(coins), Ask(private=(90, 0)), coins)
    state, second = many.step(state, Ask(private=(90, 90)), coins)
    assert (first, second, state) == ((True, False), (None, True), None)


def test_what_is_not_covered_is_refused():
    with pytest.raises(NotCovered):
        MultiSparseVector(SparseVector(1, 0, monotone=True), 2)
    with pytest.raises(InvalidParameter):
        MultiSparseVector("svt", 2)
    with pytest.raises(InvalidParameter):
        MultiSparseVector(AboveThreshold(1, 0), 0)
    many = MultiSparseVector(AboveThreshold(1, 0), 2)
    for bad in (
        Ask(private=1),
        Ask(private=(1, 2, 3)),
        Ask((1,), (1, 2)),
        Ask((1, True), (1, 2)),
        Ask(None, (1, 2), 2),
    ):
        assert not many.accepts(bad)

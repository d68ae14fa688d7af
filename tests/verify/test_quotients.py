"""Unclamped Laplace and sparse vectors are decomposed by finite quotients, and the simulator answers as they do."""

from collections import Counter
from functools import partial

import pytest

from counterpoint import Gaussian, Laplace, SparseVector
from counterpoint.errors import NotCovered
from counterpoint.measures import PureDP
from counterpoint.mechanisms import Ask
from counterpoint.mechanisms.additive import Range
from counterpoint.mechanisms.sparse_vector import AboveThreshold
from counterpoint.verify.decomposition import DeltaTooSmall, decompose
from counterpoint.verify.exact_loss import exact
from counterpoint.verify.quotients import as_is, finite_quotient
from counterpoint.verify.symbolic import SymbolicCoins

UP_AND_DOWN = [(Ask(private=3), Ask(private=4)), (Ask(private=4), Ask(private=3))]
BITS = [(Ask(private=0), Ask(private=1)), (Ask(private=1), Ask(private=0))]
TINY = "1e-8"
NEAR = 1e-6


def law_of(mechanism, messages):
    """The law of the answers to messages that are sent one after the other, until the mechanism halts."""
    coins = SymbolicCoins(TINY)
    reached = [((), state, p) for state, p in coins.law(mechanism.start)]
    for message in messages:
        reached = [
            ((*answers, answer), after, p * q)
            for answers, state, p in reached
            for (after, answer), q in (
                [((None, "halted"), 1)] if state is None else coins.law(partial(mechanism.step, state, message))
            )
        ]
    law = Counter()
    for answers, _, p in reached:
        law[answers] += p
    return law


def apart(law, other):
    return max(abs(float(law.get(answer, 0) - other.get(answer, 0))) for answer in {*law, *other})


@pytest.mark.parametrize(
    "pairs",
    [
        UP_AND_DOWN,
        [(Ask(private=3), Ask(private=3))] * 2,
        [(Ask(private=(0, 5)), Ask(private=(1, 5)))] * 2,
        [(Ask(private=0, sensitivity=3), Ask(private=3, sensitivity=3)), (Ask(private=1), Ask(private=2))],
    ],
    ids=["numbers", "equal numbers", "vectors", "unlike sensitivities"],
)
def test_what_is_beyond_the_values_is_drawn_anew_with_its_law(pairs):
    mechanism = Laplace(6)
    quotient = finite_quotient(mechanism, pairs)
    assert len(law_of(quotient.mechanism, pairs[0][:1])) <= 36
    for move, pair in enumerate(pairs):
        for message in pair:
            lifted = Counter()
            for (answer,), p in law_of(quotient.mechanism, [message]).items():
                for whole, q in SymbolicCoins(TINY).law(partial(quotient.lift, move, answer)):
                    lifted[whole,] += p * q
            assert apart(lifted, law_of(mechanism, [message])) < NEAR


@pytest.mark.parametrize("by", [{"epsilon": 1}, {"curve": PureDP(1)}], ids=["a response", "a curve"])
def test_the_simulator_of_unclamped_laplace_answers_as_it_does(by):
    made = decompose(Laplace(1), messages=UP_AND_DOWN, rounds=1, **by)
    assert made.check() < 1e-12
    for bit in (0, 1):
        found = law_of(made.simulator, [made.simulator.messages[0][bit]])
        assert apart(found, law_of(Laplace(1), [UP_AND_DOWN[0][bit]])) < NEAR


@pytest.mark.parametrize("mechanism", [SparseVector(1), AboveThreshold(1, 0), SparseVector(2, hits=2)], ids=str)
def test_the_simulator_of_a_sparse_vector_answers_as_it_does(mechanism):
    made = decompose(mechanism, mechanism.epsilon, messages=BITS, rounds=2)
    assert made.check() < 1e-12 and 0 < made.worlds.cut < 1e-29
    for moves in ((0, 0), (0, 1), (1, 0)):
        for bit in (0, 1):
            found = law_of(made.simulator, [made.simulator.messages[move][bit] for move in moves])
            assert apart(found, law_of(mechanism, [BITS[move][bit] for move in moves])) < NEAR


@pytest.mark.parametrize("mechanism", [Laplace(1, asks=2), SparseVector(1, hits=2)], ids=repr)
def test_the_least_delta_of_a_quotient_is_that_of_the_mechanism(mechanism):
    with pytest.raises(DeltaTooSmall) as refused:
        decompose(mechanism, "0.1", messages=BITS, rounds=2)
    lower, upper = exact(mechanism, messages=BITS, rounds=2).bounds("0.1")
    assert lower - 1e-9 <= refused.value.delta <= upper + 1e-9 and lower > 0
    assert decompose(mechanism, "0.1", refused.value.delta + 1e-9, messages=BITS, rounds=2).check() < 1e-12


@pytest.mark.parametrize("mechanism", [Gaussian(rho=1), SparseVector(3, release="value", charge=3)], ids=repr)
def test_a_mechanism_without_a_known_quotient_is_refused(mechanism):
    with pytest.raises(NotCovered, match="no finite quotient is known"):
        decompose(mechanism, 1, messages=BITS, rounds=1)


def test_a_public_range_does_not_clamp_the_quotient_of_an_unclamped_mechanism():
    pairs = [(Ask(Range(0, 1), private=3), Ask(Range(0, 1), private=4))]
    assert finite_quotient(Laplace(1), pairs).mechanism == Laplace(1)
    assert finite_quotient(Laplace(1, clamp=(0, 1)), BITS).lift is as_is

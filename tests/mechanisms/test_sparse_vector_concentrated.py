"""The sparse vector in zCDP: its lemma by numbers, its claim against the best adaptive adversaries, where it pays."""

from fractions import Fraction
from math import exp, expm1, tanh

import mpmath
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.mechanisms.transcripts import Exactly

from counterpoint.measures import PureDP, zCDP
from counterpoint.mechanisms.sparse_vector import SparseVector, shares_of_concentrated, shares_of_pure
from counterpoint.privacy.relations import OneWay, every_step

PAIRS = [(value, value + move) for value in (-1, 0) for move in (-1, 0, 1)]
ORDERS = (1.05, 2, 6)


def lemma(b, order):
    """K1: how much one hit can multiply the mean of odds^(order - 1) by."""
    b, order = mpmath.mpf(b), mpmath.mpf(order)
    return mpmath.exp(order * b) / (1 + mpmath.exp(b) - mpmath.exp(-(order - 1) * b))


@given(st.floats(0.001, 6), st.floats(1.0001, 60))
def test_the_lemma_is_below_the_concentrated_cost_of_a_hit(b, order):
    with mpmath.workdps(40):
        b, order = mpmath.mpf(b), mpmath.mpf(order)
        assert mpmath.log(lemma(b, order)) <= order * (order - 1) * b * -mpmath.expm1(-b)


@given(st.floats(0.01, 3), st.floats(1.01, 20), st.lists(st.floats(0, 1), min_size=2, max_size=5), st.data())
def test_no_round_multiplies_by_more_than_the_lemma_says(b, order, weights, data):
    """Rounds with any number of hits: world 1's law, odds in [e^-b, e^b], a miss that is not likelier in world 0."""
    total = sum(weights) + 1e-3
    one = [(w + 1e-3 / len(weights)) / total for w in weights]
    odds = [exp(b * data.draw(st.floats(-1, 1))) for _ in one[1:]]
    miss = 1 - sum(q * t for q, t in zip(one[1:], odds, strict=True))
    if not exp(-b) * one[0] <= miss <= one[0]:
        return
    m = miss**order * one[0] ** (1 - order)
    h = sum(q * t**order for q, t in zip(one[1:], odds, strict=True))
    assert h <= lemma(b, order) * (1 - m) * (1 + 1e-9)


@given(st.floats(0.01, 3), st.floats(1.01, 20))
def test_the_lemma_is_attained_by_randomized_response(b, order):
    h, m = exp(order * b) / (1 + exp(b)), exp(-(order - 1) * b) / (1 + exp(b))
    assert h / (1 - m) == pytest.approx(float(lemma(b, order)))


@pytest.mark.parametrize("monotone", [False, True])
@pytest.mark.parametrize("hits", [1, 2])
def test_no_adaptive_adversary_has_a_larger_divergence_than_is_claimed(hits, monotone):
    mechanism = SparseVector(rho=2, hits=hits, monotone=monotone)
    exactly = Exactly(mechanism)
    rates = [exactly.rate(PAIRS, 3, order) for order in ORDERS]
    assert 0.1 * 2 < max(rates) <= 2 + 1e-6


def test_nor_with_gaps():
    mechanism = SparseVector(rho=4, release="gap")
    answers = [(False, None), *((True, gap) for gap in range(12))]
    pairs = [(-1, 0), (-1, -2), (0, -1), (0, 1)]
    exactly = Exactly(mechanism)
    for order in ORDERS:
        assert 0.4 < exactly.rate(pairs, 2, order, answers=answers) <= 4 + 1e-6


class TooQuiet(SparseVector, frozen=True):
    """Wrong: a third of the noise."""

    @property
    def scales(self):
        return tuple(scale / 3 for scale in super().scales)


def test_less_noise_would_exceed_the_claim():
    assert Exactly(TooQuiet(rho=2)).rate(PAIRS, 3, 1.05) > 2
    assert Exactly(TooQuiet(rho=2, hits=2)).rate(PAIRS, 3, 1.05) > 2


def test_an_adversary_who_decides_late_which_way_all_values_move_gains_nothing():
    """The relation lets each transcript choose its way; the search above does, and here equal asks come first."""
    mechanism = SparseVector(rho=2, hits=2, monotone=True)
    pairs = [(0, 0), (-1, 0), (0, -1), (1, 0)]
    exactly = Exactly(mechanism)
    for order in ORDERS:
        assert exactly.rate(pairs, 4, order) <= 2 + 1e-6


@given(st.fractions("1/1000", 50, max_denominator=1000), st.integers(1, 5000), st.sampled_from([1, 2]))
def test_shares_cost_no_more_than_rho_and_nearly_all_of_it(rho, hits, reach):
    first, each = (float(share) for share in shares_of_concentrated(rho, hits, reach))
    spent = first * tanh(first / 2) + hits * each * -expm1(-each)
    assert float(rho) * (1 - 1e-9) <= spent <= float(rho) * (1 + 1e-12)


@pytest.mark.parametrize("reach", [1, 2])
@pytest.mark.parametrize("hits", [1, 20, 1000])
def test_shares_are_split_so_that_the_noise_of_a_comparison_is_least(hits, reach):
    rho = Fraction(1, 1000)

    def variance(first, each):
        return first**-2 + (reach / each) ** 2

    best = variance(*map(float, shares_of_concentrated(rho, hits, reach)))
    first = float(shares_of_concentrated(rho, hits, reach)[0])
    for other in (0.8 * first, 1.2 * first):
        each = ((float(rho) - other * other / 2) / hits) ** 0.5
        assert variance(other, each) > best * (1 - 1e-3)


def test_pure_shares_add_up_exactly():
    first, each = shares_of_pure(Fraction("0.7"), 12, 2)
    assert first + 12 * each == Fraction("0.7")


def test_its_claim_and_relation():
    assert SparseVector(rho="0.1", hits=9).claim.loss == zCDP("0.1")
    assert SparseVector(rho="0.1").claim.relation == every_step()
    assert SparseVector(rho="0.1", monotone=True).claim.relation == OneWay()
    assert PureDP(1).implies(SparseVector(rho="0.47").claim.loss) and not PureDP(1).implies(zCDP("0.46"))


def test_at_the_same_approximate_budget_few_hits_are_cheaper_pure_and_many_concentrated():
    rho = zCDP("0.0241")
    assert rho.epsilon_at(1e-6) <= 1
    errors = {hits: [SparseVector(1, hits=hits).error("0.95", 100)] for hits in (1, 10, 100, 1000)}
    for hits, both in errors.items():
        both.append(SparseVector(rho=rho.rho, hits=hits).error("0.95", 100))
    assert [pure < concentrated for pure, concentrated in errors.values()] == [True, True, False, False]


def test_the_single_threshold_beats_new_sparse_vectors_for_each_hit():
    """c one-hit sparse vectors of epsilon each, at rho = c epsilon tanh(epsilon/2), need more noise."""
    for hits in (1, 10, 100):
        rho = Fraction(1, 50)
        alone = (2 * float(rho) / hits) ** 0.5
        restarted = SparseVector(Fraction(alone).limit_denominator(10**9)).error("0.95", 100)
        assert SparseVector(rho=rho, hits=hits).error("0.95", 100) < restarted

"""What a sparse vector may tell of a hit: the gap for nothing, the value for a charge of its own."""

from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.mechanisms.transcripts import Exactly, misses_then_hits
from tests.mechanisms.wrong_sparse_vectors import Reusing
from tests.session.numbers_source import Numbers

from counterpoint.coins.secure import SeededCoins
from counterpoint.coins.tape import RecordingCoins, ReplayedCoins
from counterpoint.errors import InvalidParameter
from counterpoint.measures import PureDP, zCDP
from counterpoint.mechanisms.sparse_vector import SparseVector
from counterpoint.privacy.messages import Ask
from counterpoint.session.session import Session

MISS = (False, None)
PAIRS = [(value, value + move) for value in (-3, 0) for move in (-1, 1)]


def test_claims_add_the_charge_of_values_and_nothing_for_gaps():
    assert SparseVector(1, 0, hits=3, release="gap").claim.loss == PureDP(1)
    assert SparseVector(1, 0, hits=3, release="value", charge="0.5").claim.loss == PureDP("1.5")
    assert SparseVector(rho=1, hits=3, release="gap").claim.loss == zCDP(1)
    assert SparseVector(rho=1, hits=3, release="value", charge="0.5").claim.loss == zCDP("1.5")
    assert SparseVector(1, 0, release="gap").scales == SparseVector(1, 0).scales


@pytest.mark.parametrize("monotone", [False, True])
def test_no_adaptive_adversary_learns_more_than_is_claimed_from_gaps(monotone):
    mechanism = SparseVector(5, 0, hits=2, monotone=monotone, release="gap")
    answers = [MISS, *((True, gap) for gap in (0, 1, 3))]
    low, high = Exactly(mechanism).worst(PAIRS, rounds=3, answers=answers)
    assert 1.9 < low <= high <= 5 + 1e-4


def test_the_claim_with_gaps_is_used_up_by_many_misses_and_all_hits():
    mechanism = SparseVector(3, 0, hits=2, release="gap")
    script = [(pair, MISS if answer is False else (True, 1)) for pair, answer in misses_then_hits(mechanism, 100, 2)]
    low, high = Exactly(mechanism).loss(script)
    assert 3 - 0.1 < low <= high <= 3 + 1e-2


def test_no_adaptive_adversary_learns_more_than_is_claimed_from_values():
    mechanism = SparseVector(8, 0, release="value", charge=4)
    answers = [MISS, *((True, value) for value in (-2, -1, 0))]
    low, high = Exactly(mechanism).worst([(0, 1), (0, -1), (-1, -2)], rounds=2, answers=answers)
    assert 8 < low <= high <= 12 + 1e-2, "more than the sparse vector alone: the charge is used"


def test_the_noise_of_the_comparison_in_a_value_is_not_free_but_in_a_gap_it_is():
    heard = [((0, 1), False)] * 10
    low, _ = Exactly(Reusing(2, 0)).loss([*heard, ((0, -1), 1)])
    assert low > 2.2
    gap = SparseVector(2, 0, release="gap")
    _, high = Exactly(gap).loss([(pair, MISS) for pair, _ in heard] + [((0, -1), (True, 1))])
    assert high <= 2 + 1e-3


def run(mechanism, asked, coins):
    state, answers = mechanism.start(coins), []
    for value in asked:
        if state is None:
            break
        state, answer = mechanism.step(state, Ask(private=value, one_way=mechanism.monotone), coins)
        answers.append(answer)
    return answers


@settings(max_examples=100)
@given(
    st.lists(st.tuples(st.integers(-30, 30), st.integers(-1, 1)), min_size=1, max_size=10),
    st.integers(0, 10**6),
    st.booleans(),
    st.booleans(),
)
def test_moving_the_coins_as_the_proof_says_gives_the_other_world_the_same_gaps(asked, seed, monotone, up):
    mechanism = SparseVector(1, "0.5", hits=3, monotone=monotone, release="gap")
    moves = [(abs(move) if up else -abs(move)) if monotone else move for _, move in asked]
    lift = 0 if monotone and not up else 1
    coins = RecordingCoins(SeededCoins(seed))
    answers = run(mechanism, [value for value, _ in asked], coins)
    first, *rest = coins.tape
    tape = [replace(first, result=first.result + lift)]
    for toss, move, (hit, _) in zip(rest, moves, answers, strict=False):
        change = lift - move if hit else 0
        assert 0 <= change <= (1 if monotone else 2)
        tape.append(replace(toss, result=toss.result + change))
    other = [value + move for (value, _), move in zip(asked, moves, strict=True)]
    assert run(mechanism, other, ReplayedCoins(tuple(tape))) == answers


def test_fresh_noise_is_drawn_for_released_values_only_and_scales_with_hits_and_sensitivity():
    pure = SparseVector(1, 0, hits=4, sensitivity=3, release="value", charge="0.5")
    for mechanism, kind, scale in (
        (pure, "laplace", Fraction(4 * 2) / Fraction(1, 2)),
        (SparseVector(rho=1, hits=4, sensitivity=3, release="value", charge="0.5"), "gaussian", Fraction(4 * 4)),
    ):
        coins = RecordingCoins(SeededCoins(1))
        state = mechanism.start(coins)
        state, miss = mechanism.step(state, Ask(private=-(10**6), sensitivity=2), coins)
        assert miss == MISS and len(coins.tape) == 2
        _, (hit, value) = mechanism.step(state, Ask(private=10**6, sensitivity=2), coins)
        last = coins.tape[-1]
        assert hit and (last.kind, last.parameters[0]) == (kind, scale) and value == 10**6 + last.result


def test_what_is_released_comes_in_the_units_of_the_request():
    cents = Numbers({"a": 100_000, "z": -100_000}, grid=Fraction(1, 100))
    session = Session(cents, PureDP(10))
    gap = session.launch(SparseVector(2, threshold="2.505", release="gap"))
    assert gap.ask("z") == (False, None)
    hit, above = gap.ask("a")
    assert hit is True and abs(above - Fraction("997.49")) < 1, "251 cents reach the threshold"
    value = session.launch(SparseVector(2, threshold=5, release="value", charge=2)).ask("a")
    assert value[0] is True and abs(value[1] - 1000) < 1


@pytest.mark.statistical
def test_the_stated_error_of_what_is_released_holds_in_simulation():
    """False alarm below 1e-9: at most 0.1 may fail, and 170 of 1000 do so with probability e^(-1000 KL(.17|.1))."""
    for mechanism in (
        SparseVector(2, 0, hits=4, release="gap"),
        SparseVector(2, 0, hits=4, release="value", charge=1),
        SparseVector(rho=1, hits=4, release="value", charge="0.5"),
    ):
        alpha, near = mechanism.release_error("0.9", asks=4), 0
        failures = 0
        for seed in range(1000):
            said = [answer for hit, answer in run(mechanism, [5] * 4, SeededCoins(seed)) if hit]
            off = max((abs(answer - 5) for answer in said), default=0)
            failures += off > alpha
            near += off > alpha // 3
        assert failures < 170 < near


def test_no_error_is_stated_where_nothing_is_released():
    with pytest.raises(InvalidParameter):
        SparseVector(1, 0).release_error("0.9")
    with pytest.raises(InvalidParameter):
        SparseVector(1, 0, release="gap").release_error(1)

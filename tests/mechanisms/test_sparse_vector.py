"""Sparse vector: exact privacy against all adaptive adversaries on small instances, wrong variants, accuracy."""

from dataclasses import replace
from fractions import Fraction
from math import exp

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.mechanisms.transcripts import PAIRS, Exactly, misses_then_hits
from tests.mechanisms.wrong_sparse_vectors import WRONG, Positives, Redrawn

from counterpoint.coins.enumerated import laplace_options
from counterpoint.coins.secure import SeededCoins
from counterpoint.coins.tape import RecordingCoins, ReplayedCoins
from counterpoint.composition.filters import Filter
from counterpoint.encoding import Plain, decode, encode
from counterpoint.errors import Halted, InvalidParameter, InvalidRequest, RelationMismatch
from counterpoint.measures import PureDP
from counterpoint.mechanisms.concurrent import Concurrent
from counterpoint.mechanisms.mechanism import State, step
from counterpoint.mechanisms.sparse_vector import AboveThreshold, SparseVector
from counterpoint.mechanisms.threshold import Threshold, ThresholdState
from counterpoint.privacy.messages import Ask, ToChild, Update
from counterpoint.privacy.relations import OneWay, Steps, every_step


@pytest.mark.parametrize(
    "mechanism",
    [SparseVector(3, 0), SparseVector(4, 0, hits=2), SparseVector(2, 0, monotone=True), AboveThreshold(4, 0)],
    ids=["one hit", "two hits", "monotone", "above threshold"],
)
def test_no_adaptive_adversary_learns_more_than_is_claimed(mechanism):
    low, high = Exactly(mechanism).worst(PAIRS, rounds=3)
    claimed = float(mechanism.epsilon)
    assert high <= claimed + 1e-6
    assert low > 0.5 * claimed, "and three rounds already use half of it"


def test_noise_grows_with_the_declared_sensitivity():
    far = [(left, right) for left in (-6, 0, 2) for right in (left - 2, left + 2)]
    low, high = Exactly(SparseVector(4, 0, sensitivity=2)).worst(far, rounds=2)
    assert 2 < low <= high <= 4 + 1e-6


@pytest.mark.parametrize("hits", [1, 2, 3])
def test_the_claim_is_used_up_by_many_misses_and_all_hits(hits):
    mechanism = SparseVector(3, 0, hits=hits)
    low, high = Exactly(mechanism).loss(misses_then_hits(mechanism, 100, hits))
    assert 3 - 0.02 < low <= high <= 3 + 1e-4


def test_the_monotone_claim_is_used_up_by_queries_that_move_one_way():
    mechanism = SparseVector(3, 0, hits=2, monotone=True)
    misses = misses_then_hits(mechanism, 100, 0)
    low, high = Exactly(mechanism).loss([*misses, ((0, 0), True), ((0, 0), True)])
    assert 3 - 0.02 < low <= high <= 3 + 1e-4


def test_t23_the_svt_of_s4_with_e_costs_2e_and_attains_it_within_20_rounds():
    mechanism = AboveThreshold(1, 0)  # e = 0.5: noise Lap(2) and Lap(4)
    exactly = Exactly(mechanism)
    low, high = exactly.loss([((0, 1), False)] * 19 + [((-6, -7), True)])
    assert 0.999 < low <= high <= 1 + 1e-5
    for misses in (1, 5, 40):
        assert exactly.loss([((0, 1), False)] * misses + [((-6, -7), True)])[1] <= 1 + 1e-3, "misses are free"


@pytest.mark.parametrize("name", WRONG)
def test_t23_the_known_wrong_variants_exceed_what_they_claim(name):
    mechanism, script = WRONG[name]
    low, _ = Exactly(mechanism).loss(script)
    assert mechanism.claim.loss == PureDP(2) and low > 2.2
    valid = [(Ask(private=a), Ask(private=b)) for (a, b), _ in script]
    assert mechanism.claim.relation.valid(valid), "between neighbours"


def test_t23_a_redrawn_threshold_costs_more_with_every_miss():
    exactly = Exactly(Redrawn(2, 0))
    losses = [exactly.loss([((0, 1), False)] * misses)[0] for misses in (5, 10, 20)]
    assert losses[0] > 2 and losses[1] > 4 and losses[2] > 6


def test_t23_the_version_of_s0_costs_three_times_its_parameter():
    mechanism = Positives(1, 0, hits=2)
    low, high = Exactly(mechanism).loss(misses_then_hits(mechanism, 100, 2))
    assert 2.98 < low <= high <= 3 + 1e-4


@pytest.mark.parametrize("monotone", [False, True])
@pytest.mark.parametrize("hits", [1, 2, 10, 10**6])
def test_the_two_shares_add_up_to_epsilon_exactly_and_are_split_best(hits, monotone):
    mechanism = SparseVector("0.7", 0, hits=hits, sensitivity=3, monotone=monotone)
    once, each = mechanism.scales
    moves = hits if monotone else 2 * hits
    first, second = 3 / once, 3 * moves / each
    assert first + second == Fraction(7, 10)
    shares = [first * nearby for nearby in (Fraction(9, 10), 1, Fraction(11, 10))]
    variances = [(3 / share) ** 2 + (3 * moves / (mechanism.epsilon - share)) ** 2 for share in shares]
    assert min(variances) == variances[1] == once**2 + each**2


values = st.lists(st.tuples(st.integers(-30, 30), st.integers(-1, 1)), min_size=1, max_size=12)


def run(mechanism, asked, coins):
    """The answers up to the halt."""
    state, answers = mechanism.start(coins), []
    for value in asked:
        if state is None:
            break
        state, answer = mechanism.step(state, Ask(private=value), coins)
        answers.append(answer)
    return answers


@settings(max_examples=200)
@given(values, st.integers(0, 10**6), st.booleans())
def test_moving_the_coins_as_the_proof_says_gives_the_other_world_the_same_answers(asked, seed, up):
    """Monotone or not: the coupling of the docstring, on the coins of a real run."""
    for mechanism in (SparseVector(1, 0, hits=3), SparseVector(1, 0, hits=3, monotone=True)):
        moves = [(abs(move) if up else -abs(move)) if mechanism.monotone else move for _, move in asked]
        down = mechanism.monotone and not up
        coins = RecordingCoins(SeededCoins(seed))
        answers = run(mechanism, [value for value, _ in asked], coins)
        first, *rest = coins.tape
        tape, most = [replace(first, result=first.result + (0 if down else 1))], 1 if mechanism.monotone else 2
        for toss, move, hit in zip(rest, moves, answers, strict=False):
            change = (-move + (0 if down else 1)) if hit else 0
            assert 0 <= change <= most
            tape.append(replace(toss, result=toss.result + change))
        other = [value + move for (value, _), move in zip(asked, moves, strict=True)]
        assert run(mechanism, other, ReplayedCoins(tuple(tape))) == answers


@given(st.integers(-50, 50), st.integers(-50, 50), st.integers(0, 10**6))
def test_two_worlds_toss_the_same_coins(one, other, seed):
    mechanism = SparseVector(1, 5, hits=2)
    coins = RecordingCoins(SeededCoins(seed))
    run(mechanism, [one], coins)
    replayed = ReplayedCoins(coins.tape)
    run(mechanism, [other], replayed)
    assert replayed.finished


def test_the_noise_on_the_threshold_is_drawn_once_and_kept():
    coins = RecordingCoins(SeededCoins(3))
    mechanism = SparseVector(1, 10**6, hits=2)
    start = state = mechanism.start(coins)
    for value in (0, 2 * 10**6, 0):
        state, _ = mechanism.step(state, Ask(private=value), coins)
        assert state.tau == start.tau
    once, each = mechanism.scales
    assert [toss.parameters[0] for toss in coins.tape] == [once, each, each, each]


def test_it_halts_after_its_last_hit_and_never_for_a_miss():
    mechanism, coins = SparseVector(1, 0, hits=2), SeededCoins(1)
    state = mechanism.start(coins)
    for value in (-(10**6), 10**6, -(10**6), -(10**6)):
        state, answer = step(mechanism, state, Ask(private=value), coins)
        assert answer is (value > 0) and state is not None
    state, answer = step(mechanism, state, Ask(private=10**6), coins)
    assert answer is True and state is None
    with pytest.raises(Halted):
        step(mechanism, state, Ask(private=0), coins)


@settings(max_examples=200)
@given(st.fractions(-50, 50, max_denominator=7), st.integers(-60, 60), st.integers(-5, 5), st.integers(0, 10**6))
def test_rational_thresholds_are_compared_exactly_and_an_ask_may_bring_its_own(at, value, tau, seed):
    mechanism, other = SparseVector(1, at), SparseVector(1, 10**9)
    asks = [(mechanism, None), (other, Threshold(at))]
    if at.denominator == 1:
        asks.append((other, int(at)))
    for watcher, public in asks:
        coins = RecordingCoins(SeededCoins(seed))
        _, hit = watcher.step(ThresholdState(tau, 1), Ask(public, value), coins)
        assert hit == (value + coins.tape[0].result >= at + tau)


def test_thresholds_are_given_in_units_and_compared_on_the_grid():
    mechanism, cents = SparseVector(1, "2.5"), Fraction(1, 100)
    assert mechanism.public_part(cents) == Threshold(250) and mechanism.public_part(Fraction(1)) == Threshold("2.5")
    assert mechanism.public_part(cents, threshold=3) == Threshold(300)
    assert mechanism.accepts(Ask(mechanism.public_part(cents), 0))
    for options in ({"level": 3}, {"threshold": "high"}, {"threshold": float("nan")}):
        with pytest.raises(InvalidRequest):
            mechanism.public_part(cents, **options)


def test_states_thresholds_and_answers_round_trip():
    mechanism, coins = SparseVector(1, "0.5", hits=3), SeededCoins(1)
    state = mechanism.start(coins)
    while state is not None:
        data = encode(state, sealed=True)
        assert decode(data, State) == state and repr(state) == "ThresholdState(...)"
        state, _ = mechanism.step(decode(data, State), Ask(Threshold("-3.5"), 100), coins)
    assert decode(encode(Threshold("1/3")), Plain) == Threshold("1/3")


@pytest.mark.parametrize(
    "message",
    [
        Update(1),
        Ask(),
        Ask(private=(1, 2)),
        Ask(private=1, sensitivity=3),
        Ask(ToChild(0), 1),
        Ask("a threshold", 1),
        Ask(True, 1),
        "garbage",
    ],
    ids=repr,
)
def test_it_refuses_what_is_no_single_integer_of_its_sensitivity_with_a_threshold(message):
    for mechanism in (SparseVector(1, 0, sensitivity=2), AboveThreshold(1, 0, sensitivity=2)):
        assert not mechanism.accepts(message)
        with pytest.raises(InvalidRequest):
            step(mechanism, ThresholdState(0, 1), message, SeededCoins(1))
        assert mechanism.accepts(Ask(private=1, sensitivity=2)) and mechanism.accepts(Ask(-3, 1))


def test_claims_are_what_was_asked_for_exactly():
    assert SparseVector(0.1, 0, hits=7).claim.loss == AboveThreshold(0.1, 0).claim.loss == PureDP("0.1")
    assert SparseVector(1, 0).claim.relation == every_step() and SparseVector(1, 0).claim.interaction == "endless"
    assert AboveThreshold(1, 0).scales == (2, 4), "SVT(0.5) of Henzinger et al. 2024, Alg 3"
    assert AboveThreshold(1, 0, sensitivity=3).scales == (6, 12)


def test_a_monotone_one_is_launched_only_where_all_values_move_one_way():
    several = Concurrent(Filter(PureDP(1)), every_step())
    account = several.rule.start()
    several.admit(account, SparseVector(1, 0, sensitivity=5))
    with pytest.raises(RelationMismatch):
        several.admit(account, SparseVector(1, 0, monotone=True))
    for relation in (OneWay(), OneWay(Steps(updates=0))):
        Concurrent(Filter(PureDP(1)), relation).admit(account, SparseVector(1, 0, monotone=True))
        Concurrent(Filter(PureDP(1)), relation).admit(account, SparseVector(1, 0))


def test_a_monotone_one_takes_only_asks_that_say_that_they_move_one_way():
    mechanism = SparseVector(1, 0, monotone=True)
    assert mechanism.accepts(Ask(private=3, one_way=True)) and not mechanism.accepts(Ask(private=3))
    assert SparseVector(1, 0).accepts(Ask(private=3, one_way=True))


def wrong(mechanism, alpha, asks):
    """The exact chance that one of so many values at threshold - alpha - 1 is a hit."""
    once, each = (laplace_options(scale, Fraction(1, 10**9)).outcomes for scale in mechanism.scales)
    return sum(float(p) * (1 - (1 - float(sum(q for nu, q in each if nu - tau > alpha))) ** asks) for tau, p in once)


def wrong_if_tau_is_known(mechanism, alpha, asks):
    """The same where each value lies on the side of the threshold on which tau is."""
    once, each = (laplace_options(scale, Fraction(1, 10**9)).outcomes for scale in mechanism.scales)
    chances = {tau: float(sum(q for nu, q in each if nu + tau > alpha)) for tau in {abs(tau) for tau, _ in once}}
    return sum(float(p) * (1 - (1 - chances[abs(tau)]) ** asks) for tau, p in once)


@pytest.mark.parametrize("asks", [2, 3, 20, 500])
@pytest.mark.parametrize("mechanism", [SparseVector(4, 0), SparseVector(1, 0, hits=3), AboveThreshold(5, 0)])
def test_the_stated_error_holds_by_computation_even_if_tau_were_known_and_is_not_much_too_large(mechanism, asks):
    for probability in ("0.5", "0.9", "0.99", "0.9999"):
        alpha, fails = mechanism.error(probability, asks), 1 - float(probability)
        assert wrong(mechanism, alpha, asks) < wrong_if_tau_is_known(mechanism, alpha, asks) <= fails
        assert wrong_if_tau_is_known(mechanism, int(alpha / 1.08) - 2, asks) > fails


@pytest.mark.parametrize("mechanism", [SparseVector(4, 0), SparseVector(1, 0, hits=3), AboveThreshold(5, 0)])
def test_one_ask_is_wrong_as_often_as_the_difference_of_both_noises_is_beyond(mechanism):
    for probability in ("0.5", "0.9", "0.99", "0.9999"):
        alpha, fails = mechanism.error(probability), 1 - float(probability)
        assert wrong(mechanism, alpha, 1) <= fails < wrong(mechanism, int(alpha / 1.02) - 1, 1)


@pytest.mark.parametrize("asks", [1, 7, 1000])
@pytest.mark.parametrize("mechanism", [SparseVector(1, 0, hits=3), SparseVector(9, 0), AboveThreshold("0.3", 0)])
def test_the_stated_error_is_not_above_what_the_tails_of_both_noises_add_up_to(mechanism, asks):
    once, each = (exp(-1 / scale) for scale in mechanism.scales)

    def fails(x, y):
        return 2 * once ** (x + 1) / (1 + once) + asks * each ** (y + 1) / (1 + each)

    for probability in ("0.5", "0.99"):
        alpha, allowed = mechanism.error(probability, asks), 1 - float(probability)
        assert all(fails(x, alpha - 1 - x) > allowed for x in range(alpha))


def test_scales_that_no_float_holds_have_an_error_of_their_size():
    for epsilon in ("1e-20", "1e-400"):
        for asks in (1, 100):
            ratio = SparseVector(epsilon, 0).error("0.9", asks) * Fraction(epsilon)
            assert float(ratio) == pytest.approx(SparseVector("1e-6", 0).error("0.9", asks) / 1e6, rel=1e-3)


def test_noise_that_is_never_there_has_no_error_however_large_epsilon_is():
    for epsilon in ("1e6", "1e308", "1e400"):
        silent = SparseVector(epsilon, 0, hits=2, release="gap")
        for asks in (1, 2, 10**30):
            assert silent.error("0.999999999999", asks) == silent.release_error("0.999999999999", asks) == 0


def test_the_error_of_a_released_gap_holds_by_computation():
    """Of every ask, on either side, as a gap has the noise that made it a hit."""
    for asks, probability in ((1, "0.9"), (20, "0.9"), (20, "0.999")):
        mechanism = SparseVector(2, 0, hits=2, release="gap")
        once, each = (laplace_options(scale, Fraction(1, 10**9)).outcomes for scale in mechanism.scales)
        alpha, fails = mechanism.release_error(probability, asks), 1 - float(probability)
        for within, holds in ((alpha, True), (int(alpha / 1.15) - 1, False)):
            beyond = {tau: float(sum(q for nu, q in each if abs(nu - tau) > within)) for tau, _ in once}
            assert (sum(float(p) * (1 - (1 - beyond[tau]) ** asks) for tau, p in once) <= fails) == holds


@pytest.mark.statistical
def test_the_stated_error_holds_in_simulation():
    """False alarm below 1e-10: at most 0.1 may fail, and 300 of 2000 do so with probability e^(-2000 KL(.15|.1))."""
    mechanism, asks = SparseVector(2, "0.5", hits=8), 8
    alpha = mechanism.error(0.9, asks)
    for value, answer in ((1 + alpha, True), (-alpha, False)):  # the nearest integers that must be answered right
        failures = close = 0
        for seed in range(2000):
            coins = RecordingCoins(SeededCoins(seed))
            failures += run(mechanism, [value] * asks, coins) != [answer] * asks
            close += run(mechanism, [value // 3] * asks, ReplayedCoins(coins.tape)) != [answer] * asks
        assert failures < 300 < close


@pytest.mark.parametrize("bad", [1, -0.1, 1.5, float("nan"), "x"])
def test_no_error_bound_holds_for_certain(bad):
    with pytest.raises(InvalidParameter):
        SparseVector(1, 0).error(bad)
    with pytest.raises(InvalidParameter):
        SparseVector(1, 0).error(0.5, asks=0)


@pytest.mark.parametrize("bad", [0, -1, float("nan"), float("inf"), True, None, "x"])
def test_bad_parameters_are_refused(bad):
    for make in (SparseVector, AboveThreshold):
        with pytest.raises(InvalidParameter):
            make(bad, 0)
        with pytest.raises(InvalidParameter):
            make(1, 0, sensitivity=0)
    for keywords in (
        {"hits": 0},
        {"hits": 1.5},
        {"monotone": 1},
        {"threshold": float("inf")},
        {"rho": 1},
        {"epsilon": None},
        {"epsilon": None, "rho": bad} if bad is not None else {"threshold": None},
        {"release": "noise"},
        {"release": "value"},
        {"release": "value", "charge": 0},
        {"release": "gap", "charge": 1},
        {"charge": 1},
    ):
        with pytest.raises(InvalidParameter):
            SparseVector(**{"epsilon": 1, "threshold": 0, **keywords})

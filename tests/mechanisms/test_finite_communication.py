"""Bounded asks and clamped answers make communication finite, cost nothing, and leave what is stored as it was."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

import counterpoint as cp
from counterpoint.coins.enumerated import EnumeratedCoins
from counterpoint.composition.accumulator import entry
from counterpoint.composition.tradeoff_rest import TradeOffRest
from counterpoint.encoding import decode, encode
from counterpoint.measures import PureDP, zCDP
from counterpoint.mechanisms.additive import Range
from counterpoint.mechanisms.mechanism import Mechanism, State
from counterpoint.mechanisms.threshold import ThresholdState
from counterpoint.verify.exact_loss import exact
from counterpoint.verify.symbolic import SymbolicCoins
from counterpoint.verify.verdict import Verdict


@pytest.mark.parametrize("state", [ThresholdState(1, 2), ThresholdState(1, 2, 3)], ids=str)
def test_a_state_is_read_back_with_the_asks_that_are_left(state):
    assert decode(encode(state, sealed=True), State) == state


@pytest.mark.parametrize(
    "mechanism", [cp.Laplace(1, asks=2, clamp=(0, "2.5")), cp.SparseVector(1, 2, asks=7)], ids=repr
)
def test_a_clamp_and_a_number_of_asks_are_stored(mechanism):
    assert decode(encode(mechanism), Mechanism) == mechanism


@pytest.mark.parametrize(
    ("mechanism", "interaction"),
    [
        (cp.Laplace(1, asks=3), "endless"),
        (cp.Laplace(1, asks=3, clamp=(0, 9)), "finite"),
        (cp.Laplace(1, clamp=(0, 9)), "one-shot"),
        (cp.SparseVector(1, 0), "endless"),
        (cp.SparseVector(1, 0, asks=9), "finite"),
        (cp.SparseVector(rho=1, asks=9, monotone=True), "finite"),
        (cp.SparseVector(1, 0, asks=9, release="gap"), "endless"),
        (cp.SparseVector(1, 0, asks=9, release="value", charge=1), "endless"),
    ],
    ids=repr,
)
def test_communication_is_finite_only_if_asks_and_answers_are_bounded(mechanism, interaction):
    assert mechanism.claim.interaction == interaction


@given(st.integers(-(10**6), 10**6), st.integers(-50, 50), st.integers(1, 50), st.integers(0, 2**32))
def test_a_clamped_answer_is_the_answer_clamped(value, low, width, seed):
    plain, clamped = cp.Laplace("0.1", asks=2), cp.Laplace("0.1", asks=2, clamp=(low, low + width))
    for private in (value, (value, 0, -value)):
        ask = cp.mechanisms.Ask(private=private)
        told = plain.step(plain.start(cp.coins.SeededCoins(seed)), ask, cp.coins.SeededCoins(seed))
        after, answer = clamped.step(clamped.start(cp.coins.SeededCoins(seed)), ask, cp.coins.SeededCoins(seed))
        wanted = [
            max(low, min(low + width, number)) for number in (told[1] if isinstance(private, tuple) else [told[1]])
        ]
        assert after == told[0] and (list(answer) if isinstance(private, tuple) else [answer]) == wanted


def test_the_range_is_in_the_units_of_the_request():
    mechanism = cp.Laplace(1, clamp=(0, "2.5"))
    assert mechanism.public_part(Fraction(1, 100)) == Range(0, 250) and mechanism.public_part(None) == Range(0, "2.5")
    assert cp.Laplace(1).public_part(Fraction(1, 100)) is None
    ask = cp.mechanisms.Ask(mechanism.public_part(Fraction(1, 100)), private=10**9)
    assert mechanism.step(mechanism.start(cp.coins.SeededCoins(1)), ask, cp.coins.SeededCoins(1))[1] == 250
    session = cp.Session(cp.Stream(bound=1), within=cp.PureDP(1))
    counted = session.launch(cp.Laplace("0.01", asks=20, clamp=(0, 3)))
    answers = {counted.ask(cp.total()) for _ in range(20)}
    assert answers <= {0, 1, 2, 3} and len(answers) > 1


def test_a_clamp_that_does_not_fit_the_grid_is_refused_in_words():
    for clamp, grid in (((0, 2**62), Fraction(1, 100)), (("0.2", "0.8"), Fraction(1))):
        with pytest.raises(cp.errors.InvalidRequest, match="leaves no answer or too many"):
            cp.Laplace(1, clamp=clamp).public_part(grid)


def test_an_ask_with_answers_beyond_the_finitely_many_is_not_accepted():
    assert not cp.Laplace(1, clamp=(0, 2**70)).accepts(cp.mechanisms.Ask(private=1))
    assert not cp.Laplace(1, clamp=(0, 9)).accepts(cp.mechanisms.Ask(Range(0, 2**64), private=1))
    assert not cp.Laplace(1, clamp=("0.1", "0.9")).accepts(cp.mechanisms.Ask(private=1)), (
        "no whole number lies between them"
    )
    assert not cp.Laplace(1, clamp=(0, 9)).accepts(cp.mechanisms.Ask(private=(0,) * (2**20 + 1)))
    assert cp.Laplace(1, clamp=(0, 9)).accepts(cp.mechanisms.Ask(private=(0,) * 100)) and cp.Laplace(1).accepts(
        cp.mechanisms.Ask("x", 1)
    )


@pytest.mark.parametrize("clamp", [(1, 1), (3, 2), (1,), 5, "ab"], ids=repr)
def test_a_clamp_is_a_pair_of_ends(clamp):
    with pytest.raises(cp.errors.InvalidParameter, match=r"pair \(low, high\)|from low to high|an end of clamp"):
        cp.Laplace(1, clamp=clamp)


def asked(mechanism, values, seed=1):
    coins = cp.coins.SeededCoins(seed)
    state, answers = mechanism.start(coins), []
    for value in values:
        if state is None:
            break
        state, answer = mechanism.step(state, cp.mechanisms.Ask(private=value), coins)
        answers.append(answer)
    return answers, state


def test_a_sparse_vector_with_bounded_asks_halts_after_them_and_after_its_hits():
    low, high = -(10**6), 10**6
    answers, state = asked(cp.SparseVector(1, 0, hits=2, asks=3), [low, high, low, low])
    assert answers == [False, True, False] and state is None
    answers, state = asked(cp.SparseVector(1, 0, hits=2, asks=9), [low, high, high, low])
    assert answers == [False, True, True] and state is None
    answers, state = asked(cp.SparseVector(1, 0, hits=2), [low] * 50)
    assert answers == [False] * 50 and state is not None


@given(st.lists(st.integers(-20, 20), max_size=8), st.integers(0, 2**32))
def test_bounded_asks_change_no_answer(values, seed):
    endless, _ = asked(cp.SparseVector(1, 0, hits=2), values, seed)
    assert asked(cp.SparseVector(1, 0, hits=2, asks=5), values, seed)[0] == endless[:5]


def test_clamped_answers_are_enumerated_in_full_and_the_claim_is_tight():
    loss = exact(cp.Laplace(1, asks=2, clamp=(-1, 2)))
    assert not loss.worlds.is_cut and loss.judge() is Verdict.HOLDS
    assert loss.judge(PureDP("0.99")) is Verdict.REFUTED
    beyond = exact(
        cp.Laplace(1, clamp=(5, 8)), messages=[(cp.mechanisms.Ask(private=0), cp.mechanisms.Ask(private=1))], rounds=1
    )
    assert beyond.judge() is Verdict.HOLDS


def test_a_clamped_draw_has_the_law_of_the_draw_without_a_cut():
    mechanism = cp.Laplace("0.5", clamp=(-3, 4))
    law = SymbolicCoins().law(
        lambda coins: mechanism.step(mechanism.start(coins), cp.mechanisms.Ask(private=1), coins)[1]
    )
    noise = dict(EnumeratedCoins(cut=Fraction(1, 10**15)).law(lambda coins: coins.discrete_laplace(2)))
    for answer, chance in law:
        drawn = [z for z in noise if max(-3, min(4, 1 + z)) == answer]
        assert float(chance) == pytest.approx(float(sum(noise[z] for z in drawn)), abs=1e-14)
    assert [answer for answer, _ in sorted(law)] == list(range(-3, 5)) and law.cut < Fraction(1, 10**50)


def test_bounded_asks_keep_the_claim_of_a_sparse_vector():
    loss = exact(cp.SparseVector(1, 0, asks=3), rounds=4)
    assert loss.judge() is Verdict.HOLDS and loss.judge(PureDP("0.6")) is Verdict.REFUTED


def test_a_trade_off_budget_admits_what_is_finite_in_any_measure_with_a_curve():
    rule = cp.Filter(cp.GaussianDP(1).as_tradeoff())
    account = rule.admit(rule.start(), cp.SparseVector(rho="0.02", asks=9).claim)
    account = rule.admit(account, cp.Gaussian(rho="0.02").claim)
    assert 0.5 < rule.remaining(account).epsilon < rule.remaining(rule.start()).epsilon
    for endless in (cp.SparseVector(rho="0.02"), cp.SparseVector(rho="0.02", asks=9, release="gap")):
        with pytest.raises(cp.errors.NotCovered, match="without finite communication"):
            rule.admit(account, endless.claim)
    with pytest.raises(cp.BudgetExceeded):
        rule.admit(account, cp.SparseVector(rho=1, asks=9).claim)


def test_slots_of_curves_take_what_is_finite_and_everything_pure():
    rule = cp.Slots([entry(TradeOffRest.ENTERS, zCDP("0.02"), "finite")])
    assert rule.admit(rule.start(), cp.SparseVector(rho="0.02", asks=9).claim).groups == ()
    with pytest.raises(cp.errors.NotCovered, match="finite communication"):
        rule.admit(rule.start(), cp.SparseVector(rho="0.02").claim)
    gaussian = cp.Slots([cp.GaussianDP(1)])
    assert gaussian.admit(gaussian.start(), cp.Laplace("0.5", asks=3).claim).groups == ()


@pytest.mark.parametrize("loss", [zCDP("0.02"), zCDP(2), cp.RenyiDP(4, "0.1"), cp.tCDP("0.1", 9), zCDP(0)], ids=repr)
def test_the_curve_of_a_divergence_is_one_that_it_proves(loss):
    curve = entry(TradeOffRest.ENTERS, loss, "finite")
    assert all(entry(TradeOffRest.ENTERS, loss, how) is None for how in ("memoryless", "endless"))
    assert loss.implies(curve) and len(curve.vertices) <= 65
    if isinstance(loss, zCDP) and loss.rho:  # what has this rho, or nearly, has the curve: two normals, and a coin
        root = Fraction(str(float(2 * loss.rho) ** 0.5 * (1 - 1e-12)))
        assert cp.GaussianDP(root).implies(curve) and cp.PureDP(root).implies(curve)
        assert curve.epsilon_at("1e-6") <= loss.epsilon_at("1e-6") * 1.05

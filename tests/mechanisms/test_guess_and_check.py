"""Guess and check: the derived claim, the verdicts, exact privacy on a small instance, accuracy in simulation."""

from collections import defaultdict
from fractions import Fraction
from math import exp

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom
from tests.session.numbers_source import Numbers

from counterpoint.coins.enumerated import EnumeratedCoins
from counterpoint.coins.secure import SeededCoins
from counterpoint.encoding import decode, encode
from counterpoint.errors import InvalidParameter, InvalidRequest, RelationMismatch, SecretLeak
from counterpoint.measures import PureDP, RenyiDP, zCDP
from counterpoint.mechanisms.additive import Laplace
from counterpoint.mechanisms.composite_parts import Part
from counterpoint.mechanisms.guess_and_check import PASS, WRONG, Guess, GuessAndCheck, WrongLeft
from counterpoint.mechanisms.mechanism import State
from counterpoint.mechanisms.threshold import Threshold
from counterpoint.privacy.messages import Ask, Update
from counterpoint.privacy.relations import every_step
from counterpoint.session.session import Session
from counterpoint.verify.coupling import two_adaptive_worlds, two_worlds
from counterpoint.verify.exact_loss import exact
from counterpoint.verify.message_pairs import asks as ask_pairs
from counterpoint.verify.verdict import Verdict


@given(st.fractions("1/1000", 10), st.integers(1, 50))
def test_the_claim_is_4_epsilon_derived_from_3_and_1(epsilon, wrong):
    mechanism = GuessAndCheck(epsilon, 10, wrong)
    assert [part.loss for part in mechanism.structure] == [PureDP(3 * epsilon), PureDP(epsilon)]
    assert mechanism.claim.loss == PureDP(4 * epsilon)
    mechanism.start(SeededCoins(1))  # what is launched fits into the parts


def test_the_check_is_no_noisier_than_that_of_s0():
    for wrong in (1, 2, 10):
        once, each = GuessAndCheck(1, 0, wrong)._check.scales
        assert once**2 + each**2 <= 1 + wrong**2


def run(mechanism, asks, seed=1):
    coins = SeededCoins(seed)
    state, answers = mechanism.start(coins), []
    for ask in asks:
        state, answer = mechanism.step(state, ask, coins)
        answers.append(answer)
        if state is None:
            break
    return state, answers


def test_right_guesses_are_free_for_ever_and_the_last_wrong_one_halts():
    asks = [Ask(0, private=0)] * 500 + [Ask(0, private=9000), Ask(8000, private=9000)] * 5
    state, answers = run(GuessAndCheck(1, margin=500, wrong=3), asks)
    assert answers[:500] == [(PASS, None)] * 500
    assert state is None and [verdict for verdict, _ in answers[500:]] == [WRONG] * 3
    assert all(abs(value - 9000) < 200 for _, value in answers[500:])


def test_the_noise_on_the_margin_is_drawn_once_and_for_all():
    mechanism, coins = GuessAndCheck(1, margin=0, wrong=9), SeededCoins(1)
    state = mechanism.start(coins)
    tau = state.children[0].state.tau
    for value in (0, 900, 900, 0):
        state, _ = mechanism.step(state, Ask(0, value), coins)
        assert state.children[0].state.tau == tau


def test_an_ask_may_bring_its_own_margin():
    mechanism = GuessAndCheck(10, margin=10, wrong=1)
    assert run(mechanism, [Ask(Guess(0), 100)])[1][0][0] == WRONG
    assert run(mechanism, [Ask(Guess(0, margin=1000), 100)])[1] == [(PASS, None)]


def test_a_session_asks_it_in_the_units_of_the_requests():
    session = Session(Numbers({"a": 1230}, sensitivity=2, grid=Fraction(1, 10)), within=PureDP(8))
    checked = session.launch(GuessAndCheck(2, margin=20, wrong=1, sensitivity=2))
    assert checked.ask("a", guess="123.04") == (PASS, None) and session.loss == PureDP(8)
    with pytest.raises(InvalidRequest):
        checked.ask("a")
    verdict, value = checked.ask("a", guess=500)
    assert verdict == WRONG and abs(value - 123) < 10 and checked.halted


def test_guesses_and_margins_in_units_come_to_the_grid():
    mechanism = GuessAndCheck(1, margin="1.5")
    assert mechanism.public_part(Fraction(1, 10), guess="2.34") == Guess(23, 15)
    assert mechanism.public_part(None, guess=7, margin=3) == Guess(7, 3)
    for options in ({}, {"threshold": 3}, {"guess": 1, "threshold": 3}, {"guess": "many"}):
        with pytest.raises(InvalidRequest):
            mechanism.public_part(None, **options)


@pytest.mark.parametrize(
    "message",
    [Ask(1), Ask("1", 1), Ask(None, 1), Ask(True, 1), Ask(1, (1, 2)), Ask(1, 1, sensitivity=3), Update(1), "hello"],
)
def test_what_has_no_guess_or_no_value_or_is_too_sensitive_is_not_accepted(message):
    assert not GuessAndCheck(1, 1, sensitivity=2).accepts(message)


@pytest.mark.parametrize("wrong", [{"epsilon": 0}, {"wrong": 0}, {"margin": "wide"}, {"sensitivity": 0}])
def test_parameters_are_checked(wrong):
    with pytest.raises(InvalidParameter):
        GuessAndCheck(**{"epsilon": 1, "margin": 1, **wrong})


def test_states_round_trip_after_every_step():
    mechanism, coins = GuessAndCheck("1/3", 5, wrong=2), SeededCoins(3)
    state = mechanism.start(coins)
    for value in (0, 10**6, -(2**90)):
        data = encode(state, sealed=True)
        assert encode(decode(data, State), sealed=True) == data
        state, _ = mechanism.step(decode(data, State), Ask(0, value), coins)
        if state is None:
            break
    assert state is None


# ------------------------------------------------------------------------------------------------ privacy


@given(
    st.lists(st.tuples(st.integers(-30, 30), st.integers(-30, 30), st.sampled_from([-1, 0, 1])), max_size=5),
    st.integers(0, 99),
)
def test_neighbouring_values_give_neighbouring_sub_inputs(moves, seed):
    left = [Ask(guess, value) for guess, value, _ in moves]
    right = [Ask(guess, value + move) for guess, value, move in moves]
    two_worlds(GuessAndCheck(2, margin=10, wrong=2), left, right, seed)


@pytest.mark.parametrize("sensitivity", [1, 2, 3])
def test_values_that_move_by_more_than_1_reach_both_parts_with_their_sensitivity(sensitivity):
    left, right = [Ask(0, 100, sensitivity)], [Ask(0, 100 + sensitivity, sensitivity)]
    found = two_worlds(GuessAndCheck(2, margin=10, wrong=2, sensitivity=3), left, right)
    assert found.reached == {"check": 1, "answer": 1}


def test_neighbouring_values_give_neighbouring_sub_inputs_to_an_adaptive_adversary():
    def adversary(answers):
        told = [value for _, value in answers if value is not None]
        guess = told[-1] if told else 0  # the next guess is the last value told
        value = 40 + 3 * len(answers)
        return Ask(guess, value), Ask(guess, value + (-1) ** len(answers))

    found = two_adaptive_worlds(GuessAndCheck(2, margin=10, wrong=4), adversary, rounds=12)
    assert found.steps > 4 and found.reached == {"check": 1, "answer": 1}


class Doubling(GuessAndCheck, frozen=True):
    """Wrong: twice the value is checked, which moves by 2."""

    def react(self, context, own, message):
        far = context.ask("check", abs(message.private * 2 - message.public))
        return (None, (WRONG, context.ask("answer", message.private))) if far else (own, (PASS, None))


class Peeking(GuessAndCheck, frozen=True):
    """Wrong: the raw distance is compared with the margin."""

    def react(self, context, own, message):
        return own, (PASS, None) if abs(message.private - message.public) < self.margin else (WRONG, 0)


class Leading(GuessAndCheck, frozen=True):
    """Wrong: the margin comes from the value."""

    def react(self, context, own, message):
        return own, context.ask("check", 0, Threshold(message.private))


def test_twice_the_value_is_found_by_running_two_worlds():
    with pytest.raises(RelationMismatch):
        two_worlds(Doubling(1, 10), [Ask(3, 5)], [Ask(3, 6)])


@pytest.mark.parametrize("mutant", [Peeking, Leading])
def test_raw_comparisons_and_margins_are_leaks(mutant):
    with pytest.raises(SecretLeak):
        run(mutant(1, 10), [Ask(3, 5)])


CUT = Fraction(1, 10**9)


class Exactly:
    """The largest delta of any adaptive adversary with these pairs (theory, Verification by computation), up to cut
    tails, by production code.
    """

    def __init__(self, mechanism, pairs, epsilon):
        self.mechanism, self.pairs, self.factor = mechanism, pairs, exp(epsilon)
        self.coins, self.rows = EnumeratedCoins(CUT), {}

    def row(self, state, ask):
        key = encode((state, ask), sealed=True)
        if key not in self.rows:
            law = self.coins.law(self.mechanism.step, state, ask)
            self.rows[key] = [(encode(after, sealed=True), after, answer, float(p)) for (after, answer), p in law]
        return self.rows[key]

    def after(self, belief, ask):
        """For each answer the belief after it: states with their masses."""
        found = defaultdict(lambda: defaultdict(float))
        states = {}
        for state, mass in belief:
            for key, after, answer, p in self.row(state, ask):
                found[answer][key] += mass * p
                states[key] = after
        return {answer: [(states[key], mass) for key, mass in by.items()] for answer, by in found.items()}

    def delta(self, rounds):
        start = [(state, float(p)) for state, p in self.coins.law(self.mechanism.start)]
        return self._delta(start, start, rounds)

    def _delta(self, left, right, rounds):
        mass, other = sum(m for _, m in left), sum(m for _, m in right)
        stop = max(mass - self.factor * other, 0)
        if rounds == 0 or not left or any(state is None for state, _ in left):
            return stop
        return max(stop, *(self._asked(left, right, a, b, rounds) for a, b in self.pairs))

    def _asked(self, left, right, a, b, rounds):
        here, there = self.after(left, a), self.after(right, b)
        return sum(self._delta(belief, there.get(answer, []), rounds - 1) for answer, belief in here.items())


PAIRS = [(Ask(0, value), Ask(0, value + move)) for value in (-2, 0, 1) for move in (-1, 1)]


def test_no_adaptive_adversary_learns_more_than_4_epsilon():
    mechanism = GuessAndCheck(1, margin=1, wrong=1)
    assert Exactly(mechanism, PAIRS, epsilon=4).delta(rounds=2) < 1e-7, "up to the tails that were cut"
    assert Exactly(mechanism, PAIRS, epsilon=2).delta(rounds=2) > 1e-3, "and two rounds use more than half of it"


class Louder(GuessAndCheck, frozen=True):
    """Not wrong, but it costs more, and says so: its answers have a quarter of the noise."""

    @property
    def structure(self):
        return (super().structure[0], Part("answer", PureDP(4 * self.epsilon), every_step()))

    def begin(self, context):
        context.launch("check", self._check)
        context.launch("answer", Laplace(4 * self.epsilon, asks=self.wrong))
        return WrongLeft(self.wrong)


def test_more_than_4_epsilon_is_seen_by_the_same_computation_and_in_the_claim():
    louder = Louder(1, margin=1, wrong=1)
    assert louder.claim.loss == PureDP(7)
    assert Exactly(louder, PAIRS, epsilon=4).delta(rounds=1) > 1e-3


def test_twice_the_value_breaks_the_claim():
    assert Doubling(1, margin=1).claim.loss == PureDP(4)
    assert Exactly(Doubling(1, margin=1), PAIRS, epsilon=4).delta(rounds=2) > 1e-6


# ------------------------------------------------------------------------------------------------ accuracy


@pytest.mark.statistical
def test_verdicts_and_values_are_as_accurate_as_stated():
    mechanism, asks, runs, sure = GuessAndCheck(1, margin=30, wrong=3), 12, 250, Fraction(9, 10)
    verdict, answer = mechanism.error(sure, asks)
    failures = 0
    for seed in range(runs):
        values = [(7 * seed + 13 * i) % 80 for i in range(asks)]
        _, answers = run(mechanism, [Ask(0, value) for value in values], seed)
        failures += any(
            value >= 30 + verdict if said == PASS else value < 30 - verdict or abs(noisy - value) > answer
            for value, (said, noisy) in zip(values, answers, strict=False)
        )
    # Each run fails with probability at most 1/10, independently: more failures than this have one of at most 1e-10.
    assert binom.sf(61, runs, 0.1) < 1e-9
    assert failures <= 61


def test_the_error_is_not_far_from_what_is_seen():
    mechanism = GuessAndCheck(1, margin=30, wrong=3)
    assert mechanism.error("0.9", 12).answer < 3 * mechanism.wrong * 6
    assert (
        mechanism.error("0.9", 12).verdict < mechanism.error("0.99", 12).verdict < mechanism.error("0.99", 1000).verdict
    )
    with pytest.raises(InvalidParameter):
        mechanism.error(1, 12)


@given(st.fractions("1/1000", 10), st.integers(1, 50))
def test_in_zcdp_the_claim_is_4_rho_derived_from_3_and_1(rho, wrong):
    mechanism = GuessAndCheck.concentrated(rho, 10, wrong)
    assert [part.loss for part in mechanism.structure] == [zCDP(3 * rho), zCDP(rho)]
    assert mechanism.claim.loss == zCDP(4 * rho) and mechanism.claim.loss.implies(RenyiDP(8, 32 * rho))
    mechanism.start(SeededCoins(1))


@pytest.mark.parametrize("sensitivity", [1, 2])
def test_in_zcdp_the_exact_loss_is_within_the_claim(sensitivity):
    mechanism = GuessAndCheck.concentrated(Fraction(1, 2), 2, sensitivity=sensitivity)
    pairs = ask_pairs([(2 - sensitivity, 2), (2, 2 - sensitivity), (2, 2 + sensitivity)], 0, sensitivity)
    loss = exact(mechanism, messages=pairs, rounds=2)
    assert loss.judge(mechanism.claim) == Verdict.HOLDS
    assert loss.judge(zCDP(Fraction(1, 2))) == Verdict.REFUTED, "else the test says little"


def test_in_zcdp_many_wrong_guesses_have_less_noise_at_the_same_epsilon():
    """At 1e-6, zCDP(0.02) is about (1, 1e-6); the noise on 100 answers grows with the root of their number."""
    many = GuessAndCheck.concentrated(Fraction(5, 1000), 100, wrong=100)
    assert many.claim.loss.epsilon_at(1e-6) < 1
    pure, concentrated = GuessAndCheck(Fraction(1, 4), 100, wrong=100).error(0.95, 100), many.error(0.95, 100)
    assert concentrated.answer < pure.answer / 7 and concentrated.verdict < pure.verdict


def test_in_zcdp_wrong_guesses_are_answered_and_the_last_one_halts():
    asks = [Ask(0, private=0)] * 100 + [Ask(0, private=9000), Ask(8000, private=9000)] * 5
    state, answers = run(GuessAndCheck.concentrated(1, margin=500, wrong=3), asks)
    assert answers[:100] == [(PASS, None)] * 100
    assert state is None and [verdict for verdict, _ in answers[100:]] == [WRONG] * 3
    assert all(abs(value - 9000) < 50 for _, value in answers[100:])


def test_it_has_one_price():
    for epsilon, rho in ((None, {}), (1, {"rho": 1})):
        with pytest.raises(InvalidParameter, match="concentrated"):
            GuessAndCheck(epsilon, 10, **rho)
    concentrated = GuessAndCheck.concentrated(1, 2)
    assert decode(encode(concentrated), GuessAndCheck) == concentrated

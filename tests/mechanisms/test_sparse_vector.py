"""Sparse vector: exact privacy against all adaptive adversaries on small instances, wrong variants, accuracy."""

from collections import defaultdict
from dataclasses import replace
from fractions import Fraction
from math import exp, inf, log

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from counterpoint.composition.filters import Filter
from counterpoint.encoding import Plain, decode, encode
from counterpoint.errors import Halted, InvalidParameter, InvalidRequest, RelationMismatch
from counterpoint.mechanisms.concurrent import Concurrent
from counterpoint.mechanisms.mechanism import State, step
from counterpoint.mechanisms.sparse_vector import AboveThreshold, OneWay, SparseVector, Threshold, Watching
from counterpoint.privacy.losses import PureDP
from counterpoint.privacy.messages import Ask, To, Update
from counterpoint.privacy.relations import Steps, every_step, one_step
from counterpoint.privacy.secret import reveal
from counterpoint.randomness.enumerated import EnumeratedCoins
from counterpoint.randomness.laws import laplace_options
from counterpoint.randomness.seeded import SeededCoins
from counterpoint.randomness.tape import RecordingCoins, ReplayedCoins

CUT = Fraction(1, 10**12)


class Exactly:
    """The law of a mechanism's transcripts in two worlds, by the very code that runs in production.

    For each transcript the distribution over hidden states (the belief) is kept. Tails of the noise are cut and
    dropped, at most CUT each time, so every probability is known up to CUT times one more than the number of rounds.
    """

    def __init__(self, mechanism):
        self.mechanism = mechanism
        self.coins = EnumeratedCoins(CUT)
        self.rows = {}

    def ask(self, value):
        return Ask(private=value, sensitivity=self.mechanism.sensitivity)

    def start(self):
        return {state: float(p) for state, p in self.coins.law(self.mechanism.start)}

    def row(self, state, value):
        if (state, value) not in self.rows:
            law = self.coins.law(self.mechanism.step, state, self.ask(value))
            self.rows[state, value] = [(after, answer, float(p)) for (after, answer), p in law]
        return self.rows[state, value]

    def after(self, belief, value, heard):
        found = defaultdict(float)
        for state, p in belief.items():
            for after, answer, q in self.row(state, value) if state is not None else ():
                if answer == heard:
                    found[after] += p * q
        return found

    def loss(self, script):
        """Bounds on the log of the odds of one transcript: pairs of values, with the answers that are heard."""
        worlds = self.start(), self.start()
        for (left, right), answer in script:
            worlds = self.after(worlds[0], left, answer), self.after(worlds[1], right, answer)
        return bounds(*worlds, len(script))

    def worst(self, pairs, rounds, relation=None):
        """The largest loss of any transcript of any adaptive adversary who sends these pairs, in the relation.

        A pure loss is the largest over all (pairs, answers) in turn: an adaptive adversary only chooses among them.
        """
        relation = relation or self.mechanism.claim.relation

        def search(left, right, progress, played):
            here = bounds(left, right, played)
            there = [
                search(self.after(left, a, answer), self.after(right, b, answer), moved, played + 1)
                for a, b in (pairs if played < rounds else ())
                if (moved := relation.check(progress, self.ask(a), self.ask(b))) is not None
                for answer in (False, True)
                if any(state is not None for state in left)
            ]
            return max(low for low, _ in [here, *there]), max(high for _, high in [here, *there])

        return search(self.start(), self.start(), relation.begin(), 0)


def bounds(left, right, rounds):
    lost = float(CUT) * (rounds + 1)
    one, other = sum(left.values()), sum(right.values())
    if one == 0:
        return -inf, -inf  # nobody hears this in the left world, up to what was cut
    return log(one / (other + lost)), log((one + lost) / other) if other else inf


PAIRS = [(value, value + move) for value in (-4, 0, 1) for move in (-1, 0, 1)]
"""Messages below, at and above the threshold, moving either way: enough to come close to every bound."""


def misses_then_hits(mechanism, misses, hits):
    """The adversary who approaches the bound: misses that push tau above 0, then hits at 0, well below it.

    So many misses at a value say that tau exceeds it by about scale * ln(misses); this is chosen to be 2.5 scales.
    """
    value = -round((log(misses) - 2.5) * float(mechanism.scales[1]))
    return [((value, value + 1), False)] * misses + [((0, -1), True)] * hits


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


class Redrawn(SparseVector, frozen=True):
    """Wrong: the threshold's noise is drawn again for each ask."""

    def start(self, coins):
        return Watching(0, self.hits)

    def step(self, state, message, coins):
        fresh = Watching(coins.discrete_laplace(self.scales[0]), state.hits)
        after, answer = super().step(fresh, message, coins)
        return after and Watching(0, after.hits), answer


class Quiet(SparseVector, frozen=True):
    """Wrong: no noise on the values."""

    def step(self, state, message, coins):
        hit = reveal(message.private) - state.tau >= self.threshold
        return (state if not hit else None), hit


class Unscaled(SparseVector, frozen=True):
    """Wrong: the noise on the values does not grow with the number of hits."""

    @property
    def scales(self):
        once, each = super().scales
        return once, each / self.hits


class Reusing(SparseVector, frozen=True):
    """Wrong: a hit releases the value with the noise that it was compared with."""

    def step(self, state, message, coins):
        noisy = reveal(message.private) + coins.discrete_laplace(self.scales[1])
        return (state, False) if noisy - state.tau < self.threshold else (None, noisy)


class Restless(SparseVector, frozen=True):
    """Wrong: it goes on after its last hit."""

    def step(self, state, message, coins):
        return state, super().step(state, message, coins)[1]


@pytest.mark.parametrize(
    ("mechanism", "script"),
    [
        (Redrawn(2, 0), [((0, 1), False)] * 10),
        (Quiet(2, 0), [((0, 1), False), ((1, 1), True)]),
        (Unscaled(2, 0, hits=3), [((0, 1), False)] * 10 + [((0, -1), True)] * 3),
        (Reusing(2, 0), [((0, 1), False)] * 10 + [((0, -1), 1)]),
        (Restless(2, 0), [((0, 1), False)] * 10 + [((0, -1), True)] * 2),
        (SparseVector(2, 0, monotone=True), [((0, 1), False)] * 10 + [((0, -1), True)]),
    ],
    ids=["redrawn", "quiet", "unscaled", "reusing", "restless", "monotone on others"],
)
def test_the_known_wrong_variants_exceed_the_claim(mechanism, script):
    low, _ = Exactly(mechanism).loss(script)
    assert low > 2.2


def test_t23_a_redrawn_threshold_costs_more_with_every_miss():
    exactly = Exactly(Redrawn(2, 0))
    losses = [exactly.loss([((0, 1), False)] * misses)[0] for misses in (5, 10, 20)]
    assert losses[0] > 2 and losses[1] > 4 and losses[2] > 6


class Positives(SparseVector, frozen=True):
    """The sparse vector inside S0's guess-and-check: Lap(1/epsilon), Lap(c/epsilon)."""

    @property
    def scales(self):
        return 1 / self.epsilon, self.hits / self.epsilon


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
        _, hit = watcher.step(Watching(tau, 1), Ask(public, value), coins)
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
        assert decode(data, State) == state and repr(state) == "Watching(...)"
        state, _ = mechanism.step(decode(data, State), Ask(Threshold("-3.5"), 100), coins)
    assert decode(encode(Threshold("1/3")), Plain) == Threshold("1/3")


@pytest.mark.parametrize(
    "message",
    [
        Update(1),
        Ask(),
        Ask(private=(1, 2)),
        Ask(private=1, sensitivity=3),
        Ask(To(0), 1),
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
            step(mechanism, Watching(0, 1), message, SeededCoins(1))
        assert mechanism.accepts(Ask(private=1, sensitivity=2)) and mechanism.accepts(Ask(-3, 1))


def test_claims_are_what_was_asked_for_exactly():
    assert SparseVector(0.1, 0, hits=7).claim.loss == AboveThreshold(0.1, 0).claim.loss == PureDP("0.1")
    assert SparseVector(1, 0).claim.relation == every_step() and SparseVector(1, 0).claim.interaction == "endless"
    assert AboveThreshold(1, 0).scales == (2, 4), "SVT(0.5) of S4 Alg 3"


def test_a_monotone_one_is_launched_only_where_all_values_move_one_way():
    several = Concurrent(Filter(PureDP(1)), every_step())
    account = several.rule.start()
    several.admit(account, SparseVector(1, 0, sensitivity=5))
    with pytest.raises(RelationMismatch):
        several.admit(account, SparseVector(1, 0, monotone=True))
    Concurrent(Filter(PureDP(1)), OneWay()).admit(account, SparseVector(1, 0, monotone=True))


pairs = st.lists(st.tuples(st.integers(-3, 3), st.integers(-3, 3), st.integers(1, 3)), max_size=5)


@given(pairs)
def test_one_way_holds_exactly_when_no_two_asks_move_against_each_other(sequence):
    messages = [(Ask(private=a, sensitivity=s), Ask(private=b, sensitivity=s)) for a, b, s in sequence]
    small = all(abs(a - b) <= s for a, b, s in sequence)
    one_way = all(a <= b for a, b, _ in sequence) or all(a >= b for a, b, _ in sequence)
    assert OneWay().valid(messages) == (small and one_way)
    assert OneWay().valid(messages) == OneWay().valid([(b, a) for a, b in messages])
    if OneWay().valid(messages):
        assert every_step().valid(messages)


def test_one_way_is_ordered_with_the_other_relations_and_knows_vectors():
    assert OneWay().within(every_step()) and OneWay().within(OneWay())
    assert not every_step().within(OneWay()) and not OneWay().within(one_step()) and not OneWay().within(Steps(asks=3))
    assert decode(encode(OneWay()), OneWay) == OneWay()
    across = Ask(private=(0, 1), sensitivity=2), Ask(private=(1, 0), sensitivity=2)
    assert not OneWay().valid([across])


def wrong(mechanism, alpha, asks):
    """The exact chance that one of so many values at threshold - alpha - 1 is a hit."""
    once, each = (laplace_options(scale, Fraction(1, 10**9)).outcomes for scale in mechanism.scales)
    return sum(float(p) * (1 - (1 - float(sum(q for nu, q in each if nu - tau > alpha))) ** asks) for tau, p in once)


@pytest.mark.parametrize(
    ("mechanism", "probability", "asks"),
    [(SparseVector(4, 0), "0.9", 1), (SparseVector(4, 0), "0.99", 20), (AboveThreshold(5, 0), "0.999", 3)],
)
def test_the_stated_error_holds_by_computation_and_is_not_twice_too_large(mechanism, probability, asks):
    alpha, fails = mechanism.error(probability, asks), 1 - float(probability)
    assert wrong(mechanism, alpha, asks) <= fails < wrong(mechanism, alpha // 2 - 1, asks)


@pytest.mark.parametrize("asks", [1, 7, 1000])
@pytest.mark.parametrize("mechanism", [SparseVector(1, 0, hits=3), SparseVector(9, 0), AboveThreshold("0.3", 0)])
def test_the_stated_error_is_the_least_that_the_union_bound_gives_up_to_rounding(mechanism, asks):
    once, each = (exp(-1 / scale) for scale in mechanism.scales)

    def fails(x, y):
        return 2 * once ** (x + 1) / (1 + once) + asks * each ** (y + 1) / (1 + each)

    for probability in ("0.5", "0.99"):
        alpha, allowed = mechanism.error(probability, asks), 1 - float(probability)
        reachable = [any(fails(x, a - x) <= allowed for x in range(a + 1)) for a in (alpha, max(alpha - 2, 0))]
        assert reachable[0] and (alpha < 2 or not reachable[1])


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
    for keywords in ({"hits": 0}, {"hits": 1.5}, {"monotone": 1}, {"threshold": float("inf")}):
        with pytest.raises(InvalidParameter):
            SparseVector(**{"epsilon": 1, "threshold": 0, **keywords})

"""The counter: exact sums under noise that is drawn once, kept while it serves, and as large as stated."""

import json
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from scipy.stats import binom
from tests.continual.digit_trees import ScalarDigitTree
from tests.continual.test_trees import named
from tests.mechanisms.test_laplace_sums import exact_law

from counterpoint.coins.secure import SeededCoins
from counterpoint.coins.tape import RecordingCoins, ReplayedCoins
from counterpoint.composition.filters import Filter
from counterpoint.continual import digit_trees as tree_noise
from counterpoint.continual.blt import for_horizon
from counterpoint.continual.counter import Counter
from counterpoint.continual.digit_trees import best_tree
from counterpoint.continual.horizon import PastHorizon
from counterpoint.encoding import decode, encode
from counterpoint.errors import InvalidParameter, InvalidRequest
from counterpoint.measures import PureDP, zCDP
from counterpoint.mechanisms.concurrent import Concurrent, Launch
from counterpoint.mechanisms.mechanism import State
from counterpoint.privacy.messages import Ask, ToChild, Update
from counterpoint.privacy.relations import Steps, every_step, one_step
from counterpoint.session.session import Session
from counterpoint.sources.streams.stream import Stream

KINDS = [Counter(1, horizon=60), Counter("0.3", horizon=2000, bound=4), Counter(1), Counter(2, bound=3)]
TREES = [
    ScalarDigitTree(1, horizon=60),
    ScalarDigitTree("0.3", horizon=2000, bound=4),
    ScalarDigitTree(1),
    ScalarDigitTree(2, bound=3),
]
IDS = ["60", "2000", "endless", "endless-3"]
kinds = pytest.mark.parametrize("counter", KINDS + TREES[1:3], ids=[*IDS, "trees-2000", "trees-endless"])
trees = pytest.mark.parametrize("counter", TREES, ids=IDS)
VECTORS = Path(__file__).parent.parent / "vectors" / "counters.json"


class Silent:
    """Coins whose noise is always 0."""

    def discrete_laplace(self, scale, size):
        return np.zeros(size, dtype=np.int64)


class Numbered:
    """Coins whose every draw is another number: which noise went where can be read off."""

    def __init__(self):
        self.drawn = 0

    def discrete_laplace(self, scale, size):
        self.drawn += size
        return np.arange(self.drawn - size, self.drawn) + 1


def run(counter, values, coins, state=None):
    """The state after these updates; `None` among them stands for an ask."""
    state, answers = state or counter.start(coins), []
    for value in values:
        state, answer = counter.step(state, Ask() if value is None else Update(value), coins)
        if value is None:
            answers.append(answer)
    return state, answers


def after(counter, items):
    """The state after so many zeros, taken all at once: an update moves nothing but the number of items."""
    return replace(counter.start(SeededCoins(1)), items=items)


@kinds
@given(values=st.lists(st.one_of(st.none(), st.integers(-3, 9), st.just(-(2**80))), max_size=50))
def test_without_noise_the_answers_are_the_exact_running_sums_of_clamped_items(counter, values):
    _, answers = run(counter, values, Silent())
    items = [0 if value is None else min(max(value, 0), counter.bound or 1) for value in values]
    assert answers == [sum(items[:place]) for place, value in enumerate(values) if value is None]


@trees
@settings(max_examples=30, deadline=None)
@given(gaps=st.lists(st.sampled_from([0, 1, 1, 2, 7, 30, 400]), max_size=30))
def test_a_node_has_one_noise_for_as_long_as_it_is_used_and_no_noise_serves_two(counter, gaps):
    coins, node_of, noise_of, time, last = Numbered(), {}, {}, 0, None
    state = counter.start(coins)
    for gap in gaps:
        time += gap
        if counter.horizon is not None and time > counter.horizon:
            break
        state = replace(state, items=time)
        state, answer = counter.step(state, Ask(), coins)
        assert gap or last is None or answer == last
        last = answer
        here, total = counter.noise.epoch(time), int(state.noise.past.integers[0])
        left = [level.integers.tolist() for level in state.noise.levels]
        for sign, level, index in named(here.tree, time - here.start):
            node, noise = (here.number, level, index), left[level].pop(0)
            assert node_of.setdefault(noise, node) == node and noise_of.setdefault(node, noise) == noise
            total += sign * noise
        assert not any(left), "what no later time names is dropped"
        assert answer == total


@kinds
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_two_worlds_toss_the_same_coins_and_differ_by_their_data_alone(counter, data):
    asks = data.draw(st.lists(st.booleans(), min_size=1, max_size=40))
    pairs = [(data.draw(st.integers(0, 4)), data.draw(st.integers(0, 4))) for _ in asks]
    worlds = [
        [x for pair, ask in zip(pairs, asks, strict=True) for x in ([pair[side], None] if ask else [pair[side]])]
        for side in (0, 1)
    ]
    coins = RecordingCoins(SeededCoins(5))
    _, left = run(counter, worlds[0], coins)
    _, right = run(counter, worlds[1], ReplayedCoins(coins.tape))
    exact = [run(counter, world, Silent())[1] for world in worlds]
    assert [b - a for a, b in zip(left, right, strict=True)] == [b - a for a, b in zip(*exact, strict=True)]


@kinds
def test_asking_again_gives_the_same_answer_and_draws_nothing(counter):
    state, (first,) = run(counter, [1] * 40 + [None], SeededCoins(3))
    again, answers = run(counter, [None] * 3, None, state)
    assert answers == [first] * 3 and encode(again, sealed=True) == encode(state, sealed=True)


@kinds
def test_updates_draw_nothing_and_states_round_trip_at_every_step_of_a_long_stream(counter):
    coins, straight = SeededCoins(2), SeededCoins(2)
    state = other = counter.start(coins)
    for time in range(60):
        other, _ = counter.step(decode(encode(other, sealed=True), State), Update(time % 3), None)
        state, _ = counter.step(state, Update(time % 3), None)
        if time % 4 < 2:
            other, second = counter.step(decode(encode(other, sealed=True), State), Ask(), coins)
            state, first = counter.step(state, Ask(), straight)
            assert first == second
    assert encode(state, sealed=True) == encode(other, sealed=True)


@pytest.mark.parametrize("counter", [Counter(1, horizon=2**20), Counter(1)])
def test_the_state_stays_small(counter):
    coins, state = SeededCoins(1), counter.start(SeededCoins(1))
    for time in [*range(0, 2000, 17), *range(2000, 2**20, 2**14 + 1)]:
        state, _ = counter.step(replace(state, items=time), Ask(), coins)
        shape = counter.noise.epoch(time).shape
        assert len(state.noise.heads) <= 4 * shape.height + 1 <= 25
        assert sum(map(len, state.noise.ahead)) <= shape.height * shape.arity <= 130
        assert len(encode(state, sealed=True)) < 600


@pytest.mark.parametrize("counter", [ScalarDigitTree(1, horizon=2**20), ScalarDigitTree(1)])
def test_the_state_of_digit_trees_stays_small(counter):
    coins, state = SeededCoins(1), counter.start(SeededCoins(1))
    for time in [*range(0, 2000, 17), *range(2000, 2**20, 2**14 + 1)]:
        state, _ = counter.step(replace(state, items=time), Ask(), coins)
        tree = counter.noise.epoch(time).tree
        assert sum(len(level.integers) for level in state.noise.levels) <= tree.height * tree.most <= 50
        assert len(encode(state, sealed=True)) < 400


def test_items_beyond_the_horizon_are_not_counted_and_the_next_ask_says_so_and_is_the_last():
    counter = Counter(1, horizon=5)
    state, answers = run(counter, [1] * 5 + [None] + [1] * 3, SeededCoins(4))
    assert state is not None, "an update cannot halt"
    last, answer = counter.step(state, Ask(), None)
    assert last is None and answer == PastHorizon(answers[0])
    unasked, _ = run(counter, [1] * 9, Silent())
    assert counter.step(unasked, Ask(), Silent()) == (None, PastHorizon(5))


def test_without_a_horizon_the_count_goes_on_through_the_epochs():
    counter, time = Counter("1e6"), 0
    state = counter.start(SeededCoins(1))
    for length in (768, 3072):
        time += length
        for edge in (time - 1, time, time + 1):
            state, (answer,) = run(counter, [1] * (edge - state.items) + [None], SeededCoins(edge), state)
            assert answer == edge


@kinds
@pytest.mark.parametrize(
    ("message", "accepted"),
    [
        (Update(1), True),
        (Update(-(2**70)), True),
        (Ask(), True),
        (Update((1, 2)), False),
        (Ask(private=1), False),
        (Ask("how many?"), False),
        (Ask(ToChild(0)), False),
    ],
)
def test_it_takes_single_integers_and_asks_that_carry_nothing(counter, message, accepted):
    assert counter.accepts(message) is accepted


@given(values=st.lists(st.one_of(st.none(), st.integers(-9, 9), st.just(2**80)), max_size=30))
def test_unclamped_the_items_are_counted_as_they_are_of_any_size_and_sign(values):
    for counter in (Counter(1, bound=2, clamp=False), Counter(1, horizon=60, clamp=False)):
        _, answers = run(counter, values, Silent())
        items = [value or 0 for value in values]
        assert answers == [sum(items[:place]) for place, value in enumerate(values) if value is None]


@pytest.mark.parametrize("make", [lambda **k: Counter("0.1", horizon=50, **k), lambda **k: Counter("0.1", **k)])
def test_noise_for_several_items_of_a_unit_is_that_many_times_larger(make):
    for several, one in ((make(per_unit=4), make(bound=4)), (make(per_unit=2, bound=3), make(bound=6))):
        assert several.noise == one.noise and several.deviation(40) == one.deviation(40)
    assert make(per_unit=4).claim.relation == Steps(updates=4, bound=1)


STREAMS = [Stream(), Stream(bound=5), Stream(bound=2, signed=True), Stream(3, unit="user", per_unit=4)]


@pytest.mark.parametrize("counter", [Counter("1e9"), Counter("1e9", horizon=50), Counter(rho="1e19")])
@pytest.mark.parametrize("stream", STREAMS, ids=["bits", "5", "signed", "user"])
def test_fitted_to_a_stream_a_counter_is_private_there_and_counts_what_arrives(counter, stream):
    fitted = counter.fitted(stream.relation, None)
    assert stream.relation.within(fitted.claim.relation) and fitted.claim.relation.within(stream.relation)
    assert fitted.claim.loss == counter.claim.loss and fitted.fitted(stream.relation, None) == fitted
    handle = Session(stream, within=counter.claim.loss).launch(fitted)
    before = stream.pin()
    values, units = [2, -2, 1, 1, -1], {"units": [f"{before} {n}" for n in range(5)]}
    stream.extend(values, **(units if stream.relation.updates > 1 else {}))
    low, high = (-2, 2) if "signed" in repr(stream) else (0, stream.relation.bound)
    assert handle.ask() == sum(min(max(value, low), high) for value in values)


def test_what_the_user_said_is_kept_when_a_counter_is_fitted():
    relation = Steps(updates=3, bound=7)
    assert Counter(1, bound=2).fitted(relation, None) == Counter(1, bound=2, per_unit=3)
    assert Counter(1, per_unit=5).fitted(relation, None) == Counter(1, bound=7, per_unit=5, clamp=False)
    assert Counter(1).fitted(every_step(), None) == Counter(1).fitted(Steps(asks=2, updates=0), None) == Counter(1)
    assert Counter(1, bound=2).fitted(relation, 3) == Counter(1, bound=2, per_unit=3, width=3)
    with pytest.raises(InvalidRequest):
        Counter(1, width=2).fitted(relation, 3)


def test_a_counter_is_pure_or_concentrated_and_says_which():
    for wrong in ({}, {"epsilon": 1, "rho": 1}, {"rho": 0}, {"rho": 1, "horizon": 2**40 + 1}, {"rho": 1, "clamp": 1}):
        with pytest.raises(InvalidParameter):
            Counter(**wrong)
    claimed = Counter(rho="0.5", bound=2).claim
    assert claimed.loss == zCDP("0.5") and claimed.relation == Steps(updates=1, bound=2)
    assert claimed.certificate.rests_on("Canonne") and claimed.certificate.rests_on("matrix mechanism")
    assert Counter(rho=1).noise.blt is for_horizon(None)


def test_its_claim_is_pure_for_one_update_and_cites_what_it_rests_on():
    known, unknown = Counter("0.1", horizon=10, bound=2).claim, Counter("0.1").claim
    assert known.loss == unknown.loss == PureDP(Fraction(1, 10))
    assert known.relation == Steps(updates=1, bound=2) and one_step(1).within(unknown.relation)
    assert not one_step(3).within(known.relation)
    assert unknown.certificate.rests_on("Henzinger et al. 2024, Cor 5.5") and not known.certificate.rests_on(
        "Henzinger et al. 2024, Cor 5.5"
    )
    assert "PureDP(0.082)" in str(unknown.certificate) and "PureDP(0.018)" in str(unknown.certificate)
    trees = ScalarDigitTree("0.1").claim.certificate
    assert "PureDP(0.085)" in str(trees) and "PureDP(0.015)" in str(trees)


def test_several_counters_run_on_one_stream_inside_a_composition():
    both, coins = Concurrent(Filter(PureDP(10**4)), one_step(1)), SeededCoins(1)
    state = both.start(coins)
    state, _ = both.step(state, Ask(Launch(Counter(2000, horizon=50))), coins)
    state, _ = both.step(state, Update(1), coins)
    state, _ = both.step(state, Ask(Launch(Counter(2000))), coins)
    state, _ = both.step(state, Update(1), coins)
    assert [both.step(state, Ask(ToChild(child)), coins)[1] for child in (0, 1)] == [2, 1]


@pytest.mark.parametrize("bad", [0, -1, float("nan"), float("inf"), True, "x"])
@pytest.mark.parametrize("name", ["epsilon", "horizon", "bound"])
def test_bad_parameters_are_refused(name, bad):
    with pytest.raises(InvalidParameter):
        Counter(**{"epsilon": 1, name: bad})
    if name != "epsilon":
        with pytest.raises(InvalidParameter):
            Counter(**{"epsilon": 1, name: 1.5})


@pytest.mark.parametrize("ask", [(1, 5), (-0.1, 5), ("x", 5), (0.5, -1), (0.5, 1.5), (0.5, 11)])
def test_an_accuracy_that_cannot_be_stated_is_refused(ask):
    with pytest.raises(InvalidParameter):
        Counter(1, horizon=10).error(*ask)


@pytest.mark.parametrize("power", [10, 16, 20])
def test_root_mean_square_and_maximum_error_of_subtraction_are_those_of_the_theory(power):
    known = json.loads(VECTORS.read_text())["exact"][str(power)]["P k-ary sub best odd k"]
    horizon = 2**power
    tree, node = best_tree(horizon), ScalarDigitTree(1, horizon=horizon).deviation(1)
    left, nodes = np.arange(1, horizon + 1), np.zeros(horizon)
    for _ in range(tree.height):
        digit = (left + tree.most) % tree.arity - tree.most
        left, nodes = (left - digit) // tree.arity, nodes + np.abs(digit)
    assert (tree.arity, tree.height) == (known["k"], known["L"])
    assert node * np.sqrt(nodes.mean()) == pytest.approx(known["rmse"], rel=0.02)
    assert node * np.sqrt(nodes.max()) == pytest.approx(known["maxstd"], rel=0.02)
    worst = int(nodes.argmax()) + 1
    assert ScalarDigitTree(1, horizon=horizon).deviation(worst) == pytest.approx(node * np.sqrt(nodes.max()))


@pytest.mark.parametrize(("power", "most"), [(10, 27), (16, 45), (20, 60)])
def test_without_a_horizon_the_maximum_deviation_is_as_promised(power, most):
    counter, start, variances = ScalarDigitTree(1), 0, []
    while start <= 2**power:
        here = counter.noise.epoch(start)
        last = min(2**power - start, here.tree.reach, tree_noise.FIRST_EPOCH * tree_noise.GROWTH**here.number - 1)
        tree_variance = counter.deviation(1 + start) ** 2 - counter.deviation(start) ** 2
        variances.append(counter.deviation(start) ** 2 + here.tree.most_nodes(last) * tree_variance)
        start += tree_noise.FIRST_EPOCH * tree_noise.GROWTH**here.number
    assert 0.75 * most < max(variances) ** 0.5 <= most


SAMPLES = 3000


@pytest.mark.parametrize(
    ("counter", "time"),
    [
        (ScalarDigitTree(1, horizon=1024), 600),
        (ScalarDigitTree(1, horizon=1024, bound=3), 1024),
        (ScalarDigitTree(1), 700),
        (ScalarDigitTree(1), 5000),
    ],
)
def test_simulated_errors_follow_the_exact_law_and_keep_within_the_stated_error(counter, time):
    """Each count is binomial; its limits are missed by chance with probability below 2e-11, 24 counts in all."""
    steps, law = exact_law(counter.noise.parts(time), reach=2500)
    assert counter.deviation(time) == pytest.approx(np.sqrt((law * steps**2).sum()), rel=1e-6)
    state, coins = after(counter, time), SeededCoins(11)
    errors = np.array([counter.step(state, Ask(), coins)[1] for _ in range(SAMPLES)])
    for probability in ("0.5", "0.9", "0.99"):
        bound = counter.error(probability, time)
        beyond = law[np.abs(steps) > bound].sum()
        assert beyond <= 1 - float(probability)
        assert (np.abs(errors) > bound).sum() <= binom.isf(1e-11, SAMPLES, 1 - float(probability))
    for size in (counter.deviation(time) / 2, counter.deviation(time), 2 * counter.deviation(time)):
        inside = law[np.abs(steps) <= size].sum()
        low, high = binom.ppf(1e-11, SAMPLES, inside), binom.isf(1e-11, SAMPLES, inside)
        assert low <= (np.abs(errors) <= size).sum() <= high

"""Noisy max: exact laws of the shipped code over all small score vectors and all their neighbours, and its accuracy."""

from fractions import Fraction
from itertools import permutations, product
from math import exp, inf, lcm, log, prod

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import counterpoint as cp
from counterpoint.coins.enumerated import EnumeratedCoins
from counterpoint.coins.secure import SeededCoins
from counterpoint.coins.tape import RecordingCoins, ReplayedCoins
from counterpoint.errors import Halted, InvalidParameter, InvalidRequest, RelationMismatch
from counterpoint.measures import PureDP, zCDP
from counterpoint.mechanisms.mechanism import Chosen, step
from counterpoint.mechanisms.noisy_max import NoisyMax, _radices
from counterpoint.privacy.messages import Ask, ToChild, Update
from counterpoint.privacy.relations import OneWay, every_step

CUT = Fraction(1, 10**6)
MECHANISMS = {
    "permute-and-flip": NoisyMax(4),
    "permute-and-flip, one way": NoisyMax(2, monotone=True),
    "exponential": NoisyMax(4, by="exponential"),
    "exponential, one way": NoisyMax(2, monotone=True, by="exponential"),
    "zCDP": NoisyMax(rho=1),
    "zCDP, one way": NoisyMax(rho=1, monotone=True),
}
every = pytest.mark.parametrize("mechanism", MECHANISMS.values(), ids=MECHANISMS)
COINS = EnumeratedCoins(CUT)


def law(mechanism, scores, each=1):
    """The law of one answer, by the code that runs in production; short of it by at most CUT times the candidates."""
    ask = Ask(private=scores, sensitivity=len(scores) * each, each=each, one_way=mechanism.monotone)
    found = COINS.law(mechanism.step, mechanism.start(None), ask)
    return [float(sum(p for (_, said), p in found if said.index == i)) for i in range(len(scores))]


def flipped(scores, scale):
    """Permute-and-flip as its paper has it: in random order, stop at i with probability e^((score - best)/scale)."""
    chances = [exp((score - max(scores)) / scale) for score in scores]
    orders = list(permutations(range(len(scores))))
    found = [0.0] * len(scores)
    for order in orders:
        left = 1.0
        for i in order:
            found[i] += left * chances[i] / len(orders)
            left *= 1 - chances[i]
    return found


def softmax(scores, scale):
    weights = [exp((score - max(scores)) / scale) for score in scores]
    return [weight / sum(weights) for weight in weights]


def paper(mechanism, scores, each=1):
    return (flipped if mechanism.by == "permute-and-flip" else softmax)(scores, float(mechanism.scale(each)))


@every
@pytest.mark.parametrize("scores", [(0, 0, 0), (0, -1, 2), (3, 3, 1), (5,)])
def test_the_law_is_that_of_the_paper(mechanism, scores):
    assert law(mechanism, scores) == pytest.approx(paper(mechanism, scores), abs=4 * float(CUT))


@every
@pytest.mark.parametrize("each", [1, 2])
def test_the_law_is_that_of_the_paper_for_all_pairs_of_scores_that_matter(mechanism, each):
    for apart in range(-5, 6):
        assert law(mechanism, (0, apart), each) == pytest.approx(paper(mechanism, (0, apart), each), abs=3 * float(CUT))


def neighbours(scores, one_way):
    """Every vector in which each score has moved by at most 1 (all of them up, or all down)."""
    moves = [(0, 1), (0, -1)] if one_way else [(-1, 0, 1)]
    return {tuple(map(sum, zip(scores, by, strict=True))) for way in moves for by in product(way, repeat=len(scores))}


@every
@pytest.mark.parametrize("width", [2, 3, 4])
def test_no_neighbours_of_any_small_vector_are_told_apart_by_more_than_is_claimed(mechanism, width):
    """The formula is that of the code by the two tests above; pairs are checked on the code itself, too."""
    claimed, worst = float(mechanism.epsilon_per_ask), 0.0
    found, lost = (law, 3 * float(CUT)) if width == 2 else (paper, 1e-12)
    for low in product(range(5 - width), repeat=width):
        for other in neighbours(low, mechanism.monotone):
            p, q = found(mechanism, low), found(mechanism, other)
            worst = max(worst, *(log(a / (b + lost)) for a, b in zip(p, q, strict=True)))
            losses = [log(a / b) for a, b in zip(p, q, strict=True)]
            if mechanism.by == "exponential":
                assert max(losses) - min(losses) <= claimed + 1e-6, "its range is bounded"
            if mechanism.rho is not None:
                for order in (1.01, 2, 5, 30):
                    moment = sum(a**order * b ** (1 - order) for a, b in zip(p, q, strict=True))
                    assert log(moment) / (order - 1) <= order * float(mechanism.rho) + 1e-6
    assert 0.5 * claimed < worst <= claimed


def test_the_epsilon_of_permute_and_flip_is_attained():
    p, q = law(NoisyMax(4), (0, 0)), law(NoisyMax(4), (-1, 1))
    assert log(p[0] / q[0]) == pytest.approx(4, abs=1e-3)


def test_noise_for_scores_that_move_one_way_is_too_little_for_others():
    halved = NoisyMax(2, monotone=True)
    p, q = law(halved, (-1, 0)), law(halved, (-2, 1))
    assert log(p[0] / q[0]) > 3.5, "it claims 2"


@given(st.lists(st.integers(-20, 20), min_size=1, max_size=5), st.integers(0, 10**6), st.data())
def test_permute_and_flip_is_never_less_accurate_than_the_exponential_mechanism(scores, scale, data):
    scale = 0.1 + scale % 100
    best = max(scores)
    lost = [sum(p * (best - s) for p, s in zip(f(scores, scale), scores, strict=True)) for f in (flipped, softmax)]
    assert lost[0] <= lost[1] + 1e-9


@given(st.lists(st.integers(-9, 9), min_size=2, max_size=9), st.data())
def test_two_worlds_toss_the_same_coins_whatever_the_scores(scores, data):
    other = data.draw(st.lists(st.integers(-9, 9), min_size=len(scores), max_size=len(scores)))
    for mechanism in (NoisyMax(1), NoisyMax(rho=1)):
        coins = RecordingCoins(SeededCoins(data.draw(st.integers(0, 99))))
        mechanism.step(mechanism.start(coins), Ask(private=scores), coins)
        replayed = ReplayedCoins(coins.tape)
        mechanism.step(mechanism.start(replayed), Ask(private=other), replayed)
        assert replayed.finished
        assert str(scores[0]) not in "".join(map(repr, coins.tape)) or scores[0] >= 0, "no score on the tape's face"


@pytest.mark.parametrize("d", [*range(1, 40), 997, 2048])
def test_ties_are_broken_by_a_number_that_is_uniform_modulo_every_number_of_ties(d):
    assert prod(_radices(d)) == lcm(*range(1, d + 1)) and max(_radices(d)) < 10**304


def wrong(mechanism, scores, alpha):
    found = paper(mechanism, scores)
    return sum(p for p, score in zip(found, scores, strict=True) if score < max(scores) - alpha)


@every
@pytest.mark.parametrize("probability", ["0.5", "0.9", "0.99"])
def test_the_stated_error_holds_for_every_small_vector_and_is_the_least_that_does(mechanism, probability):
    alpha, fails = mechanism.error(probability, candidates=3), 1 - float(probability)
    for scores in product(range(-4, 1), repeat=2):
        assert wrong(mechanism, (0, *scores), alpha) <= fails + 1e-6
    if alpha > 0:
        assert wrong(mechanism, (0, -alpha, -alpha), alpha - 1) > fails - 1e-6


@pytest.mark.statistical
def test_the_stated_error_holds_in_simulation_with_many_candidates():
    """False alarm below 1e-9: at most 0.1 may fail, and 170 of 1000 do so with probability e^(-1000 KL(.17|.1))."""
    for mechanism in (NoisyMax("0.5"), NoisyMax(rho="0.05")):
        alpha = mechanism.error("0.9", candidates=50)
        failures = close = 0
        for seed in range(1000):
            for lag in (alpha + 1, alpha // 2):
                scores = (0, *(-lag for _ in range(49)))
                _, said = mechanism.step(mechanism.start(None), Ask(private=scores, each=1), SeededCoins(seed))
                failures += lag > alpha and said.index > 0
                close += lag <= alpha and said.index > 0
        assert failures < 170 < close


def test_errors_are_compared_as_the_guide_says():
    flip, exponential = NoisyMax(1), NoisyMax(1, by="exponential")
    for d in (2, 10, 1000, 10**6):
        for probability in ("0.5", "0.9", "0.999999"):
            assert flip.error(probability, d) <= exponential.error(probability, d)
    assert NoisyMax(1).error("0.9", 1) == 0 == NoisyMax(1).error(0, 50)
    assert NoisyMax(1, monotone=True).error("0.9", 50) < NoisyMax(1).error("0.9", 50) < NoisyMax(1).error("0.9", 50, 3)


def test_claims_are_what_was_asked_for_and_asks_share_them():
    assert NoisyMax("0.3", asks=3).claim.loss == PureDP("0.3") and NoisyMax(rho="0.3").claim.loss == zCDP("0.3")
    assert NoisyMax("0.3", asks=3).epsilon_per_ask == Fraction(1, 10)
    assert NoisyMax(1).claim.relation == every_step() and NoisyMax(1, monotone=True).claim.relation == OneWay()
    assert NoisyMax(1).claim.interaction == "one-shot" and NoisyMax(1, asks=2).claim.interaction == "endless"
    per_ask = NoisyMax(rho="0.3", asks=7).epsilon_per_ask
    assert per_ask**2 * 7 / 8 <= Fraction(3, 10) < (per_ask + Fraction(1, 10**20)) ** 2 * 7 / 8


def test_it_halts_after_its_last_ask():
    mechanism, coins = NoisyMax(1, asks=2), SeededCoins(1)
    state, _ = step(mechanism, mechanism.start(coins), Ask(private=(1, 2)), coins)
    state, _ = step(mechanism, state, Ask(private=(1, 2)), coins)
    with pytest.raises(Halted):
        step(mechanism, state, Ask(private=(1, 2)), coins)


@pytest.mark.parametrize(
    "message", [Update((1, 2)), Ask(), Ask(private=3), Ask(private=()), Ask(ToChild(0), (1, 2)), "x"]
)
def test_it_wants_a_vector(message):
    assert not NoisyMax(1).accepts(message)
    assert not NoisyMax(1, monotone=True).accepts(Ask(private=(1, 2)))


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"epsilon": 1, "rho": 1},
        {"epsilon": 0},
        {"epsilon": True},
        {"epsilon": float("nan")},
        {"rho": -1},
        {"epsilon": 1, "asks": 0},
        {"epsilon": 1, "monotone": 1},
        {"epsilon": 1, "by": "gumbel"},
        {"rho": 1, "by": "permute-and-flip"},
    ],
)
def test_bad_parameters_are_refused(given):
    with pytest.raises(InvalidParameter):
        NoisyMax(**given)


@pytest.mark.parametrize("bad", [{"probability": 1}, {"candidates": 0}, {"each": 0}, {"probability": "x"}])
def test_no_error_is_stated_for_nonsense(bad):
    with pytest.raises(InvalidParameter):
        NoisyMax(1).error(**{"probability": "0.5", "candidates": 5, **bad})


def people(neighbours="add-or-remove"):
    states = ["CA"] * 400 + ["NY"] * 100 + ["WY"] * 3
    rows = pa.table({"who": range(503), "state": states, "owed": [0.5] * 503, "age": [30] * 503})
    columns = {"state": cp.category(["WY", "CA", "NY"]), "owed": cp.number(-1, 1, step="0.25")}
    return cp.Table(rows, unit="who", rows_per_unit=1, columns=columns, neighbours=neighbours)


def test_a_session_is_told_the_name_of_the_coordinate_and_its_index_where_it_has_none():
    session = cp.Session(people(), within=PureDP(10))
    most = session.launch(NoisyMax(4, asks=4, monotone=True))
    assert most.ask(cp.histogram("state")) == "CA"
    assert most.ask(cp.histogram("state", keys=["WY", "NY"])) == "NY"
    assert most.ask(cp.histogram("age", keys=[29, 30])) == 30
    with pytest.raises(InvalidRequest):
        most.ask(cp.sum("owed", by="state"))
    any_way = session.launch(NoisyMax(4, asks=3))
    assert any_way.ask(cp.sum("owed", by="state")) == "CA", "a sum of values with signs moves either way"
    assert any_way.ask(cp.histogram("owed", edges=[-1, 0, 1])) == 1
    with pytest.raises(InvalidRequest):
        any_way.ask(cp.count())
    with pytest.raises(RelationMismatch):
        cp.Session(people("replace"), within=PureDP(9)).launch(NoisyMax(1, monotone=True))


def test_the_answer_is_no_number_on_the_grid():
    assert Chosen(3) != 3 and not isinstance(Chosen(3), int) and inf > Chosen(3).index

"""Vector counters: in law a counter for each coordinate, with noise for the distance that the stream declares."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog
from scipy.stats import binom

from counterpoint.coins.secure import SeededCoins
from counterpoint.continual.blt_noise import blt_noise
from counterpoint.continual.counter import Counter
from counterpoint.continual.digit_trees import FIRST_EPOCH
from counterpoint.continual.histogram_error import DigitTreeCounter
from counterpoint.continual.horizon import PastHorizon
from counterpoint.encoding import decode, encode
from counterpoint.errors import InvalidParameter, InvalidRequest, RelationMismatch
from counterpoint.measures import PureDP, zCDP
from counterpoint.mechanisms.mechanism import State
from counterpoint.privacy.messages import Ask, Update
from counterpoint.privacy.relations import FirstMessage, Steps, every_step, up_to_steps
from counterpoint.session.session import Session
from counterpoint.sources.streams.stream import Stream


class Columns:
    """Coins of a vector of counters: each coordinate's draws come from coins of its own."""

    def __init__(self, width):
        self.coins = [SeededCoins(seed) for seed in range(width)]

    def _laid(self, name, parameter, size):
        count = size // len(self.coins)
        return np.stack([getattr(coins, name)(parameter, count) for coins in self.coins], axis=1).reshape(-1)

    def discrete_laplace(self, scale, size):
        return self._laid("discrete_laplace", scale, size)

    def discrete_gaussian(self, sigma2, size):
        assert size == len(self.coins)
        return np.array([coins.discrete_gaussian(sigma2) for coins in self.coins])


@pytest.mark.parametrize(
    ("vector", "single"),
    [
        (Counter(epsilon=1, horizon=40, bound=2, width=3), Counter(epsilon=1, horizon=40, bound=2, clamp=False)),
        (Counter(epsilon=1, width=3), Counter(epsilon=1, bound=3, clamp=False)),
        (Counter(rho="0.5", squared=1, width=3), Counter(rho="0.5", clamp=False)),
    ],
    ids=["tree", "epochs", "zcdp"],
)
@settings(max_examples=15, deadline=None)
@given(data=st.data())
def test_on_equal_coins_it_is_a_counter_for_each_coordinate(vector, single, data):
    coins, alone = Columns(3), [SeededCoins(seed) for seed in range(3)]
    state, states = vector.start(coins), [single.start(None)] * 3
    for ask in data.draw(st.lists(st.booleans(), max_size=45)):
        if ask:
            state, answer = vector.step(decode(encode(state, sealed=True), State), Ask(), coins)
            asked = [single.step(*pair) for pair in zip(states, [Ask()] * 3, alone, strict=True)]
            states, answers = [one[0] for one in asked], [one[1] for one in asked]
            if isinstance(answer, PastHorizon):
                answer, answers = answer.count, [one.count for one in answers]
            assert answer == tuple(answers)
            if state is None:
                break
        else:
            items = data.draw(st.tuples(*[st.integers(-3, 3)] * 3))
            state, _ = vector.step(state, Update(items), coins)
            states = [single.step(one, Update(x), None)[0] for one, x in zip(states, items, strict=True)]


def test_where_more_coordinates_can_differ_the_grid_is_finer_and_the_noise_is_the_same():
    one, three = Counter(rho="0.01", horizon=9, bound=2), Counter(rho="0.01", horizon=9, squared=4, width=3)
    assert three.noise.bits - one.noise.bits in (0, 1)
    assert three.deviation(5) == pytest.approx(one.deviation(5), rel=2e-3)


def test_noise_fits_the_norm_in_which_the_vectors_are_bounded():
    one_hot, any_bits = Stream(dimensions=100, l1=2).relation, Stream(dimensions=100).relation
    pure, gaussian = Counter(epsilon=1, horizon=50, width=100), Counter(rho="0.5", width=100)
    single = Counter(epsilon=1, horizon=50).deviation(50), Counter(rho="0.5").deviation(50)
    for relation, l1, l2 in ((one_hot, 2, 2**0.5), (any_bits, 100, 10)):
        assert pure.fitted(relation, 100).deviation(50) == pytest.approx(l1 * single[0], rel=0.02)
        assert gaussian.fitted(relation, 100).deviation(50) == pytest.approx(l2 * single[1], rel=0.02)


def test_claims_speak_of_the_distances_that_the_noise_is_for():
    assert Counter(epsilon=1, width=5).claim.relation == Steps(updates=1, bound=5)
    assert Counter(rho=1, width=5).claim.relation == Steps(updates=1, squared=5)
    assert Counter(epsilon=1, squared=3, width=5).claim.relation == Steps(updates=1, bound=3)
    assert Counter(rho=1, bound=2, per_unit=4, width=5).claim.relation == Steps(updates=4, squared=4)
    assert Counter(epsilon="0.1", width=5).claim.loss == PureDP("0.1") and Counter(rho=2, width=5).claim.loss == zCDP(2)


@pytest.mark.parametrize(
    ("counter", "squared", "coordinates"),
    [
        (Counter(rho=1, width=9, squared=2), 2, 2),
        (Counter(rho=1, width=9, squared=2, per_unit=2), 8, 4),  # in one direction; in coordinates of their own
        (Counter(rho=1, width=3, squared=2, per_unit=2), 8, 3),
        (Counter(rho=1, width=9, bound=3, per_unit=2), 36, 9),
        (Counter(rho=1, width=5), 5, 5),
        (Counter(rho=1, bound=3, per_unit=2), 36, 1),
    ],
)
def test_gaussian_noise_is_for_all_items_of_a_unit_and_all_coordinates_that_they_reach(counter, squared, coordinates):
    assert counter.noise == blt_noise(Fraction(1), None, squared, coordinates, width=counter.width or 1)


def test_pure_noise_is_for_all_items_of_a_unit():
    assert Counter(epsilon=1, bound=3, per_unit=2, width=9).noise.reach == 6


@pytest.mark.parametrize("stream", [Stream(dimensions=4), Stream(dimensions=4, l1=2), Stream(3, 4, "user", 5, True)])
@pytest.mark.parametrize("counter", [Counter(epsilon=1, width=4), Counter(rho=1, width=4)])
def test_fitted_to_a_stream_it_can_be_launched_there(stream, counter):
    fitted = counter.fitted(stream.relation, 4)
    handle = Session(stream, within=counter.claim.loss).launch(fitted)
    units = {} if stream.relation.updates == 1 else {"unit": "ann"}
    stream.append([1, 0, 0, 1], **units)
    assert len(handle.ask()) == 4
    assert fitted.fitted(stream.relation, 4) == fitted


def test_what_the_user_said_is_kept_even_if_it_does_not_cover_the_stream():
    stream = Stream(dimensions=4)
    fitted = Counter(epsilon=1, bound=2, width=4).fitted(stream.relation, 4)
    assert fitted.bound == 2 and fitted.per_unit == 1
    with pytest.raises(RelationMismatch):
        Session(stream, within=PureDP(1)).launch(fitted)


def test_sources_of_another_shape_are_refused_and_other_relations_change_nothing():
    counter = Counter(epsilon=1, width=4)
    single = Counter(epsilon=1).fitted(Steps(updates=1, bound=1), None)
    assert single.width is None and Counter(epsilon=1).fitted(Steps(updates=1, bound=1), 4) == counter.fitted(
        Steps(updates=1, bound=1), 4
    )
    for dimensions in (None, 5):
        with pytest.raises(InvalidRequest):
            counter.fitted(Steps(updates=1, bound=1), dimensions)
    for relation in (every_step(), FirstMessage(), Steps(asks=1, updates=0, bound=2)):
        assert counter.fitted(relation, 4) == counter
    assert counter.fitted(up_to_steps(3, 2), 4).per_unit == 3


@pytest.mark.parametrize("counter", [Counter(rho="1e9", width=2), Counter(epsilon="1e9", width=2)])
def test_sums_of_any_size_are_exact(counter):
    coins = SeededCoins(1)
    state, sums = counter.start(coins), (0, 0)
    for item in [(2**62, -(2**62)), (2**62, -1), (2**63 - 1, -(2**63)), (2**80, 0), (-(2**80), 0), (-(2**63), 5)]:
        state, _ = counter.step(decode(encode(state, sealed=True), State), Update(item), coins)
        sums = tuple(a + b for a, b in zip(sums, item, strict=True))
        state, answer = counter.step(state, Ask(), coins)
        assert answer == sums


@pytest.mark.parametrize("counter", [Counter(rho="0.5", squared=2, width=10**5), Counter("0.5", bound=2, width=10**5)])
def test_wide_states_are_stored_in_a_few_bytes_a_coordinate(counter):
    coins = SeededCoins(1)
    state, _ = counter.step(counter.start(coins), Update((1,) * 10**5), coins)
    state, _ = counter.step(state, Ask(), coins)
    stored = encode(state, sealed=True)
    assert len(stored) < 250 * 10**5 and encode(decode(stored, State), sealed=True) == stored


def test_beyond_a_pure_horizon_the_counts_at_the_horizon_are_the_last_answer():
    counter, coins = Counter(epsilon="1e9", horizon=2, width=2), SeededCoins(1)
    state = counter.start(coins)
    for _ in range(4):
        state, _ = counter.step(state, Update((1, 0)), coins)
    assert counter.step(state, Ask(), coins) == (None, PastHorizon((2, 0)))


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"epsilon": 1, "rho": 1},
        {"epsilon": 0},
        {"rho": -1},
        {"rho": float("nan")},
        {"rho": True},
        {"rho": 1, "horizon": 2**41},
        {"rho": 1, "horizon": 0},
        {"rho": 1, "bound": 0},
        {"rho": 1, "squared": 1.5},
        {"rho": 1, "per_unit": "x"},
        {"rho": 1, "width": 0},
        {"rho": 1, "width": True},
        {"rho": 1, "squared": 2, "width": None},
    ],
)
def test_bad_parameters_are_refused(options):
    with pytest.raises(InvalidParameter):
        Counter(**{"width": 3, **options})


def test_messages_of_another_width_are_not_accepted():
    counter = Counter(rho=1, width=2)
    assert [counter.accepts(m) for m in (Update((1, 2)), Ask(), Update(1), Update((1, 2, 3)), Ask("x"))] == [
        True,
        True,
        False,
        False,
        False,
    ]


# ---------------------------------------------------------------------- what a change costs, by the noises really used


class Marks:
    """Coins that fall each on a power of their own, so that an answer shows which draws are in it and with what sign.

    Base 4 with digits -1, 0, 1: a number below 4^n has one such writing at most.
    """

    def __init__(self):
        self.scales = []

    def discrete_laplace(self, scale, size):
        marks = [4 ** (len(self.scales) + at) for at in range(size)]
        self.scales += [float(scale)] * size
        return np.array(marks, dtype=object)


def signs(number, width):
    found = np.zeros(width)
    for at in range(width):
        digit = (number + 1) % 4 - 1
        assert digit in (-1, 0, 1)
        found[at], number = digit, (number - digit) // 4
    assert number == 0
    return found


def cheapest(counter, times, item):
    """The least loss of noises shifted so that every answer after the item moves by 1 and none before it does."""
    coins, state, said = Marks(), counter.start(None), []
    for time in range(1, max(times) + 1):
        state, _ = counter.step(state, Update((0,)), None)
        if time in times:
            state, (answer,) = counter.step(state, Ask(), coins)
            said.append(answer)
    scales = np.array(coins.scales)
    signed = np.array([signs(answer, len(scales)) for answer in said])
    after = np.array([float(time >= item) for time in times])
    program = linprog(np.tile(1 / scales, 2), A_eq=np.hstack([signed, -signed]), b_eq=after, bounds=(0, None))
    assert program.status == 0
    return program.fun


TIMES = [
    list(range(1, 60)),
    [3, 4, 10, 17, 18, 24, 25, 171, 172, 300, 301, FIRST_EPOCH - 1, FIRST_EPOCH, FIRST_EPOCH + 1, 700, 701],
]


@pytest.mark.parametrize("times", TIMES)
@pytest.mark.parametrize("item", [1, 4, 5, 17, 25, 49, 300, FIRST_EPOCH, FIRST_EPOCH + 1, 700])
def test_a_change_of_one_item_is_made_good_by_noises_that_cost_no_more_than_the_loss(times, item):
    assert cheapest(DigitTreeCounter(epsilon=1, width=1), times, item) <= 1 + 1e-9


def test_half_of_the_noise_would_not_do():
    assert cheapest(DigitTreeCounter(epsilon=2, width=1), TIMES[0], 5) > 1


# -------------------------------------------------------------------------------------------------------- accuracy


def test_under_pure_privacy_the_worst_error_is_not_below_that_of_any_time_nor_twice_the_worst():
    for counter in (Counter(epsilon=1, width=3), Counter(epsilon=1, horizon=3000, width=2)):
        found = [counter.error("0.95", t) for t in range(0, 3000, 29)]
        assert max(found) <= counter.worst_error("0.95", 3000) <= 1.8 * max(found)
        assert all(counter.error("0.95", t) <= counter.worst_error("0.95", t) for t in (1, 2, 20, 200))


@pytest.mark.parametrize("counter", [DigitTreeCounter(epsilon=1, width=3), Counter(rho="0.1", horizon=2**10, width=3)])
def test_the_worst_error_is_not_below_that_of_any_time_and_never_falls(counter):
    worst = max(counter.error("0.95", t) for t in range(61))
    assert worst <= counter.worst_error("0.95", 60) <= 1.5 * worst
    far = [counter.worst_error("0.95", t) for t in (1, FIRST_EPOCH - 1, FIRST_EPOCH, 5000)]
    assert far == sorted(far)
    assert far[-1] >= max(counter.error("0.95", t) for t in range(FIRST_EPOCH, 5000, 97))


@pytest.mark.statistical
@pytest.mark.parametrize("counter", [Counter(epsilon=1, width=4), Counter(rho="0.5", width=4)], ids=["pure", "zcdp"])
def test_all_coordinates_at_once_are_as_accurate_as_stated(counter):
    runs, sure, times = 300, Fraction(9, 10), (3, 24, 40)
    failures = half = 0
    for seed in range(runs):
        coins, state = SeededCoins(seed), counter.start(None)
        time = times[seed % 3]
        for _ in range(time):
            state, _ = counter.step(state, Update((time, 0, 1, -7)), coins)
            state, said = counter.step(state, Ask(), coins)
        worst = max(abs(a - time * b) for a, b in zip(said, (time, 0, 1, -7), strict=True))
        stated = counter.error(sure, time)
        failures, half = failures + (worst > stated), half + (worst > stated / 2)
    # Each run fails with probability at most 1/10, independently: more failures than this have one below 1e-9.
    assert binom.sf(65, runs, 0.1) < 1e-9
    assert failures <= 65
    assert half > 0, "and the bound is not twice too large"

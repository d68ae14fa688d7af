"""Counting by least squares: weights that cover each prefix, noises that are drawn once, errors as small as stated."""

import hashlib
import random
from collections import Counter as Multiset
from collections import defaultdict
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog
from scipy.stats import binom

from counterpoint.coins.secure import SeededCoins
from counterpoint.continual.counter import Counter
from counterpoint.continual.packed import as_integers
from counterpoint.continual.tree_noise import TreeNoise
from counterpoint.continual.tree_shapes import BITS, GRID_BITS, Shape, best_shape
from counterpoint.encoding import decode, encode
from counterpoint.mechanisms.mechanism import State

SHAPES = [
    Shape(2, 1, 5),
    Shape(3, 2, 4),
    Shape(2, 4, 3),
    Shape(5, 2, 1),
    Shape(4, 3, 2, Fraction(5, 2)),
    Shape(2, 2, 3, Fraction(1, 7)),
    Shape(2, 1, 4, Fraction(2)),
]
shapes = st.sampled_from(SHAPES)


def node_weights(named):
    found = defaultdict(int)
    for node, weight in named:
        found[node] += weight
    return found


def covered(shape, weights):
    """The total weight of the nodes above each step."""
    steps = [0] * (shape.reach + 1)
    for (level, index), weight in weights.items():
        wide = shape.reach + 1 if level == shape.height else shape.arity**level
        for step in range(index * wide, (index + 1) * wide):
            steps[step] += weight
    return steps


@pytest.mark.parametrize("shape", SHAPES)
def test_the_weights_above_a_step_add_up_to_one_if_it_came_before_and_to_nothing_if_not(shape):
    for time in range(shape.reach + 1):
        steps = covered(shape, node_weights(shape.named(time)))
        assert steps == [1 << GRID_BITS] * time + [0] * (shape.reach + 1 - time)
    if shape.root is not None:
        assert covered(shape, node_weights(shape.named_in_total())) == [1 << GRID_BITS] * (shape.reach + 1)


@given(shapes, st.data())
def test_squares_are_those_of_the_named_weights_and_none_exceeds_the_most(shape, data):
    time = data.draw(st.integers(0, shape.reach))
    weights = node_weights(shape.named(time))
    root = weights.pop((shape.height, 0), 0)
    squares = Fraction(sum(weight**2 for weight in weights.values()), 4**GRID_BITS)
    assert shape.squares(time) == (squares, Fraction(root**2, 4**GRID_BITS))
    later = data.draw(st.integers(time, shape.reach))
    nodes, of_root = shape.most_squares(later)
    assert squares <= nodes and shape.squares(time)[1] <= of_root
    assert all(abs(weight) <= 1 << GRID_BITS for weight in weights.values())


@given(shapes, st.data())
def test_no_other_shares_have_a_smaller_variance(shape, data):
    """The variance is a quadratic function of the shares; rounding them to 2^-12 costs next to nothing."""
    time = data.draw(st.integers(1, shape.reach))
    least, (nodes, root) = least_variance(shape, time), shape.squares(time)
    variance = float(nodes + root * (shape.root or 0))
    assert least - 1e-9 <= variance <= least * 1.0001 + 4.0**-BITS


def least_variance(shape, time):
    """By linear algebra: the least of the sum of squares over all weights of the nodes that may have one."""
    names = sorted({node for node, _ in shape.named(time)} | {(0, 0)})
    rows = []
    for step in range(shape.reach + 1):
        above = [(level, step // shape.arity**level) for level in range(shape.height)] + [(shape.height, 0)]
        rows.append([float(node in above) for node in names])
    steps = np.array(rows)
    scales = np.array([float(shape.root or 0) ** 0.5 if level == shape.height else 1.0 for level, _ in names])
    target = np.array([float(step < time) for step in range(shape.reach + 1)])
    found = np.linalg.lstsq(steps / scales, target, rcond=None)[0]
    assert np.allclose(steps / scales @ found, target)
    return float(found @ found)


def variances(shape, times, root=None):
    """The exact least variance at many times, by the recursion in floats, in units of a node."""
    u, left, digits = shape.arity / (shape.arity + 1), times, []
    for _ in range(shape.height - 1):
        digits.append(left % shape.arity)
        left = left // shape.arity
    digits.append(left)
    w, r, s = shape.siblings(0) * np.ones(len(times)), digits[0] * 1.0, digits[0] * 1.0
    for level in range(1, shape.height):
        done = digits[level] * u
        s, below = s - r**2 / (1 + w) + done, 1 + w
        w, r = w / below + done + shape.siblings(level) - 1 - digits[level], r / below + done
    return s if shape.root is None else s - r**2 / (w + float(shape.root))


def some_times(last, most=2**17):
    """All times up to the last, or so many that are spread evenly over them."""
    if last <= most:
        return np.arange(1, last + 1)
    return 1 + (np.arange(most) * 0.6180339887498949 % 1 * last).astype(np.int64)


def unit_variance(scale):
    q = np.exp(-1 / float(scale))
    return 2 * q / (1 - q) ** 2


def known_horizon_error(power):
    shape = best_shape(2**power)
    return (variances(shape, some_times(2**power)).mean() * unit_variance(shape.height)) ** 0.5


def test_the_recursion_in_floats_is_that_of_the_exact_weights():
    for shape in (best_shape(10**5), best_shape(800)._replace(root=Fraction(49, 16))):
        for time in (1, 13, 500, 799):
            nodes, root = shape.squares(time)
            exact = float(nodes + root * (shape.root or 0))
            assert exact == pytest.approx(variances(shape, np.array([time]))[0], rel=1e-5)


@pytest.mark.parametrize(("power", "most"), [(10, 11.1), (16, 20.8), (20, 28.0)])
def test_the_root_mean_square_error_is_as_small_as_promised(power, most):
    assert 0.97 * most < known_horizon_error(power) <= most


def test_at_a_horizon_of_2_to_the_10_the_exact_mean_variance_is_as_promised():
    shape = best_shape(2**10)
    mean = sum((shape.squares(time)[0] for time in range(1, 2**10 + 1)), Fraction(0)) / 2**10
    assert (float(mean) * unit_variance(shape.height)) ** 0.5 <= 11.1
    counter = Counter(1, horizon=2**10)
    assert counter.deviation(549) ** 2 == pytest.approx(float(shape.squares(549)[0]) * unit_variance(shape.height))


def test_without_a_horizon_the_error_up_to_any_time_is_near_that_of_the_best_known_horizon():
    noise, spent, past, start, found = TreeNoise(Fraction(1), 1, None, 1), 0.0, 0.0, 0, {}
    for number in range(9):
        shape, length = noise._numbered(number), noise.first * noise.growth**number
        scale, root = unit_variance(noise.node_scale(shape)), unit_variance(noise._root_scale)
        for power in range(8, 25):
            if start < 2**power <= start + length:
                there = past + variances(shape, some_times(2**power - start)).mean() * scale
                found[power] = ((spent + there * (2**power - start)) / 2**power) ** 0.5
        spent += (past + variances(shape, some_times(length - 1)).mean() * scale) * length
        nodes, of_root = shape.total_squares()
        past, start = past + float(nodes) * scale + float(of_root) * root, start + length
    ratios = {power: error / known_horizon_error(power) for power, error in found.items()}
    assert sorted(ratios) == list(range(8, 25)) and max(ratios.values()) <= 1.21


@given(st.integers(1, 300))
def test_the_shape_for_a_horizon_is_near_the_best_of_all(horizon):
    def cost(arity, height):
        shape, times = Shape(arity, height, horizon // arity ** (height - 1) + 1), np.arange(1, horizon + 1)
        return variances(shape, times).mean() * unit_variance(height)

    shape = best_shape(horizon)
    assert shape.reach >= horizon
    every = [cost(2, 1)] + [cost(arity, height) for height in (2, 3, 4) for arity in range(2, 40)]
    assert cost(shape.arity, shape.height) <= 1.05 * min(every)


def test_the_shape_is_found_at_once_for_any_horizon_and_stays_narrow():
    assert best_shape(2**62).arity < 30 and best_shape(10**100).reach >= 10**100


# ------------------------------------------------------------------------------------ the noises that are really used


class OneHot:
    """Coins for counters as wide as there are draws: each draw is a unit of its own, so answers are weights."""

    def __init__(self, width):
        self.width, self.scales = width, []

    def discrete_laplace(self, scale, size):
        rows = np.zeros((size // self.width, self.width), dtype=np.int64)
        for row in rows:
            row[len(self.scales)] = 1 << GRID_BITS
            self.scales.append(scale)
        return rows.reshape(-1)


def small(seed):
    """Noise on a small tree, or on small epochs, and some times to ask at."""
    chance = random.Random(seed)  # noqa: S311 - which small case is tried
    forced = chance.choice([(2, 1), (3, 2), (2, 3), (4, 2), (3, 3)])
    make = partial(TreeNoise, Fraction(1), 1, width=900, forced=forced)
    noise = make(chance.randrange(1, 30)) if seed % 2 else make(None, first=chance.randrange(1, 6), growth=2)
    last = noise.horizon or 40
    return noise, sorted(chance.choices(range(last + 1), k=chance.randrange(1, 9)))


def answered(noise, times):
    coins, state, found = OneHot(noise.width), noise.start(), []
    for time in times:
        state = decode(encode(noise.drawn(state, time, coins), sealed=True), State)
        found.append(noise.now(state).astype(object))
    return found, coins


@pytest.mark.parametrize("seed", range(40))
def test_at_whatever_times_answers_have_in_common_just_the_nodes_that_both_name(seed):
    noise, times = small(seed)
    found, _ = answered(noise, times)
    weights = [node_weights(noise._named(time)) for time in times]
    for one, first in zip(found, weights, strict=True):
        for other, second in zip(found, weights, strict=True):
            assert (one * other).sum() == sum(weight * second[node] for node, weight in first.items())


@pytest.mark.parametrize("seed", range(20))
def test_terms_and_their_squares_are_what_is_really_weighed_at_a_time_and_between_two(seed):
    noise, times = small(seed)
    found, coins = answered(noise, times)
    scales = [*coins.scales, *[None] * (noise.width - len(coins.scales))]

    def weighed(answer):
        pairs = zip(scales, answer, strict=True)
        return Multiset((scale, Fraction(abs(weight), 2**GRID_BITS)) for scale, weight in pairs if weight)

    def counted(terms):
        by_kind = Multiset()
        for scale, weight, count in terms:
            by_kind[scale, weight] += count if weight else 0
        return +by_kind

    def squares(answer):
        by_scale = defaultdict(int)
        for (scale, weight), count in weighed(answer).items():
            by_scale[scale] += weight**2 * count
        return by_scale

    def added(parts):
        by_scale = defaultdict(Fraction)
        for scale, total in parts:
            by_scale[scale] += total
        return {scale: total for scale, total in by_scale.items() if total}

    for time, answer in zip(times, found, strict=True):
        assert added(noise.parts(time)) == squares(answer)
        assert counted(noise.terms(time)) == weighed(answer)
    assert counted(noise.terms_between(times[0], times[-1])) == weighed(found[-1] - found[0])


class Listed:
    """Coins whose draws are listed, for counters of a width: the one at `place` gets them, the others other ones."""

    def __init__(self, draws, width, place):
        self.draws, self.width, self.place = iter(draws), width, place

    def discrete_laplace(self, scale, size):
        rows = np.full((size // self.width, self.width), 7, dtype=object)
        for row in rows:
            row[self.place] = next(self.draws)
        return as_integers(rows.reshape(-1).tolist())


@settings(max_examples=40, deadline=None)
@given(
    st.sampled_from([9, None]),
    st.lists(st.integers(0, 9), min_size=1, max_size=5),
    st.sampled_from([2**6, 2**31, 2**40, 2**80]),
    st.integers(0, 2**32),
)
def test_a_single_counter_has_the_noise_of_one_among_many_however_large_it_is(horizon, times, size, seed):
    chance = random.Random(seed)  # noqa: S311 - which draws are tried
    draws = [chance.randrange(-size, size) for _ in range(200)]
    make = partial(TreeNoise, Fraction(1), 1, horizon, first=3, growth=2, forced=(2, 3))
    one, many = make(width=1), make(width=3)
    alone, among, coins, other = one.start(), many.start(), Listed(draws, 1, 0), Listed(draws, 3, 1)
    for time in sorted(times):
        alone = decode(encode(one.drawn(alone, time, coins), sealed=True), State)
        among = many.drawn(among, time, other)
        assert one.now(alone).tolist() == many.now(among).tolist()[1:2]
        assert alone.heads.integers.tolist() == among.heads.integers.tolist()[1::3]


STATES = {
    (2, 2**10): "3aaa4959942098d1",
    (100, None): "ed9825129f0fae07",
    (40_000, 2**20): "f26bde5908958123",
}


@pytest.mark.parametrize(("width", "horizon"), STATES)
def test_the_states_and_answers_of_a_seed_are_those_that_ledgers_hold(width, horizon):
    """What is stored and answered must stay what it was, however noises are drawn and added up."""
    noise, coins, found = TreeNoise(Fraction(1), 2, horizon, width), SeededCoins(7), hashlib.sha256()
    state = noise.start()
    for time in (1, 2, 3, 30, 31, 700, 800, 801) if width < 1000 else (1, 2, 19, 20, 21):
        state = noise.drawn(state, time, coins)
        found.update(encode(state, sealed=True) + repr(noise.now(state).tolist()).encode())
    assert found.hexdigest()[:16] == STATES[width, horizon]


def cheapest(noise, times, item):
    """The least loss of noises shifted so that every answer after the item moves by 1 and none before it does."""
    found, coins = answered(noise, times)
    scales = np.array([float(scale) for scale in coins.scales])
    weights = np.array([answer[: len(scales)] for answer in found], dtype=float) / 2.0**GRID_BITS
    after = np.array([float(time >= item) for time in times])
    program = linprog(np.tile(1 / scales, 2), A_eq=np.hstack([weights, -weights]), b_eq=after, bounds=(0, None))
    assert program.status == 0
    return program.fun


@pytest.mark.parametrize("seed", range(6))
def test_a_change_of_one_item_is_made_good_by_noises_that_cost_no_more_than_the_loss(seed):
    noise, _ = small(seed)
    times = list(range(1, min(noise.horizon or 20, 20) + 1))
    for item in times:
        assert cheapest(noise, times, item) <= 1 + 1e-6
    if len(times) > 8:
        assert max(cheapest(noise, times, item) for item in times) > 0.6


SAMPLES = 2000


@pytest.mark.parametrize(("counter", "time"), [(Counter(1, horizon=1024), 600), (Counter(1), 700), (Counter(1), 5000)])
def test_simulated_errors_are_as_large_as_stated(counter, time):
    """The share within the stated error fails by chance below 1e-11; the mean square by less than eight deviations."""
    wide = counter.noise._replace(width=SAMPLES)
    errors = wide.now(wide.drawn(wide.drawn(wide.start(), time // 3, SeededCoins(5)), time, SeededCoins(6)))
    for probability in ("0.5", "0.9", "0.99"):
        beyond = (np.abs(errors) > counter.error(probability, time)).sum()
        assert beyond <= binom.isf(1e-11, SAMPLES, 1 - float(probability))
    assert (errors**2).mean() == pytest.approx(counter.deviation(time) ** 2, rel=8 * (2.5 / SAMPLES) ** 0.5)


@pytest.mark.parametrize("epsilon, octets", [("1", 2), ("0.05", 8)])
def test_how_narrow_sums_are_in_memory_depends_on_their_scale_and_not_on_what_was_drawn(epsilon, octets):
    noise = TreeNoise(Fraction(epsilon), 1, 2**10, 3)

    class Drawn:
        """Noises that are all alike."""

        def __init__(self, value):
            self.value = value

        def discrete_laplace(self, scale, size=None):
            return np.full(size, self.value)

    for value in (0, 1, 100):
        state = noise.drawn(noise.start(), 549, Drawn(value))
        assert noise.now(state).dtype.itemsize == octets
    far = noise.now(noise.drawn(noise.start(), 549, Drawn(2**40)))
    assert far.dtype.itemsize == 8, "what does not fit is kept all the same"

"""Counters under zCDP: the coins of one world, moved by no more than is paid for, give the answers of the other.

A discrete Gaussian draw that is moved by s costs s^2/(2 sigma2) in zCDP at every order (Canonne et al., Thm
14). So the claim, for one run and its neighbour, is a statement on integers, checked here without any probability: the
squares of all moves sum to at most 2 rho sigma2.
"""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from counterpoint.coins.secure import SeededCoins
from counterpoint.continual import blt_noise as room
from counterpoint.continual.blt import Blt, Buffer, for_horizon
from counterpoint.continual.blt_noise import BltNoise, blt_noise, carried
from counterpoint.continual.counter import Counter
from counterpoint.encoding import decode, encode
from counterpoint.errors import InvalidParameter
from counterpoint.mechanisms.mechanism import State
from counterpoint.privacy.messages import Ask, Update
from counterpoint.verify.catalogue.mechanisms import Resized


class Given:
    """Coins whose next draw is given."""

    def __init__(self, *draws):
        self.draws = list(draws)

    def discrete_gaussian(self, sigma2, size=None):
        return self.draws.pop(0) if size is None else np.array([self.draws.pop(0) for _ in range(size)])


def steered(noise, state, target):
    """The draw that makes the next noise this one, and the state after it; by the very code of a step."""
    items = state.asked + 1
    reached = noise.drawn(state, items, Given(0))
    draw = target - int(reached.noise.integers[0])
    return draw, noise.drawn(state, items, Given(draw))


def moves(noise, noises, shifts):
    """How far each draw must move for the noise to be less by `shifts` (in whole units), step by step."""
    here, there, moved = noise.start(), noise.start(), []
    for value, shift in zip(noises, shifts, strict=True):
        one, here = steered(noise, here, value)
        other, there = steered(noise, there, value - (shift << noise.bits))
        moved.append(other - one)
    return moved


def floor(value, factor, shift):
    return value * factor >> shift


def ceiling(value, factor, shift):
    return -(-value * factor >> shift)


def inward(value, factor, shift):
    return (floor if value >= 0 else ceiling)(value, factor, shift)


def outward(value, factor, shift):
    return (ceiling if value >= 0 else floor)(value, factor, shift)


def half_even(value, factor, shift):
    low = value * factor >> shift
    twice = 2 * (value * factor - (low << shift)) - (1 << shift)
    return low + (twice > 0 or (twice == 0 and low % 2 == 1))


def erratic(value, factor, shift):
    """Up or down without any order: neighbouring products are rounded as differently as can be."""
    low = value * factor >> shift
    return low + (low << shift != value * factor and low * 7919 % 13 < 6)


MODES = {
    "nearest": room.rounded_products,
    "floor": floor,
    "ceiling": ceiling,
    "inward": inward,
    "outward": outward,
    "half even": half_even,
    "erratic": erratic,
}
modes = pytest.mark.parametrize("mode", MODES.values(), ids=MODES)
ROUGH = [
    BltNoise(for_horizon(2**6), 0, 100, 1),
    BltNoise(for_horizon(2**10), 3, 100, 1),
    BltNoise(Blt([Buffer(1, 1, 1, 2)]), 1, 9, 1),
]
rough = pytest.mark.parametrize("noise", ROUGH, ids=["6", "10", "one"])


def reached(noise, after):
    """How far a change by one whole unit moves the centre so many steps later, without rounding."""
    if after < 0:
        return 0
    if after == 0:
        return 1 << noise.bits
    return (1 << noise.bits) * sum(float(b.weight) * float(1 - b.rate) ** (after - 1) for b in noise.blt.buffers)


def walk(noise, steps, seed):
    """Some noises that the process could give: those of the exact recurrence on random draws."""
    coins, state, found = SeededCoins(seed), noise.start(), []
    for step in range(steps):
        state = noise.drawn(state, step + 1, coins)
        found.append(int(state.noise.integers[0]))
    return found


@modes
@rough
def test_an_impulse_against_zeros_moves_no_centre_by_more_than_is_charged(noise, mode, monkeypatch):
    monkeypatch.setattr(room, "rounded_products", mode)
    steps, start = 100, 5
    for noises in ([0] * steps, walk(noise, steps, 3), [10**6 * (-1) ** t * t for t in range(steps)]):
        for size in (1, -7):
            moved = moves(noise, noises, [size * (t >= start) for t in range(steps)])
            limits = [abs(size) * reached(noise, t - start) + carried(noise.blt) * (t > start) for t in range(steps)]
            assert all(abs(move) <= limit for move, limit in zip(moved, limits, strict=True))
            assert moved[start] == -size << noise.bits


def test_the_differences_that_rounding_makes_do_persist_so_it_must_be_charged():
    noise = BltNoise(for_horizon(2**6), 3, 100, 1)
    moved = moves(noise, [0] * 1000, [7] * 1000)
    assert 7 * reached(noise, 800) < 1e-3, "the impulse has faded"
    assert all(abs(move) > 0.99 for move in moved[800:]), "and is felt at every step"


@modes
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_several_changes_of_either_sign_add_up_to_no_more_than_their_sizes_say(mode, data):
    noise, steps = ROUGH[0], 40
    changes = data.draw(st.dictionaries(st.integers(0, steps - 1), st.integers(-3, 3), max_size=6))
    noises = data.draw(st.lists(st.integers(-500, 500), min_size=steps, max_size=steps))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(room, "rounded_products", mode)
        moved = moves(noise, noises, [sum(d for at, d in changes.items() if at <= t) for t in range(steps)])
    for t, move in enumerate(moved):
        limit = sum(abs(d) * reached(noise, t - at) for at, d in changes.items())
        assert abs(move) <= limit + float(carried(noise.blt))


COUNTERS = [
    Counter(rho="0.5", horizon=64),
    Counter(rho="0.01"),
    Counter(rho=3, horizon=16, bound=5, per_unit=3),
    Counter(rho="0.5", horizon=2**30, bound=2**70, per_unit=2),
]
counters = pytest.mark.parametrize("counter", COUNTERS, ids=["64", "endless", "5x3", "wide"])


@counters
@modes
def test_a_neighbour_gives_the_same_answers_on_coins_moved_by_at_most_what_the_claim_allows(counter, mode, monkeypatch):
    """Inputs depend on the answers; in the other world up to `per_unit` of them are changed, by up to the bound."""
    monkeypatch.setattr(room, "rounded_products", mode)
    bound, places = counter.bound or 1, counter.per_unit or 1
    noise, coins, rng = counter.noise, SeededCoins(2), np.random.default_rng(4)
    for changed in ([0], [3, 4, 5][:places], sorted(rng.choice(60, places, replace=False).tolist())):
        state, answer, noises, shift, shifts = counter.start(coins), 0, [], 0, []
        for time in range(80):
            item = 0 if answer % 3 else bound
            for _ in range(1 + time % 3):
                state, _ = counter.step(state, Update(item), coins)
            state, answer = counter.step(state, Ask(), coins)
            noises.append(int(state.noise.noise.integers[0]))
            shift += (bound - item if item == 0 else -item) if time in changed else 0
            shifts.append(shift)
        moved = moves(noise, noises, shifts)
        assert 0 < sum(move * move for move in moved) <= 2 * counter.rho * noise.sigma2


def test_nearly_all_that_is_paid_for_is_used():
    for counter in (Counter(rho="0.5", horizon=16), Counter(rho="0.5", horizon=16, bound=3, per_unit=2)):
        noise, reach = counter.noise, (counter.bound or 1) * (counter.per_unit or 1)
        moved = moves(noise, walk(noise, 200, 1), [reach] * 200)
        assert 0.99 < sum(move * move for move in moved) / (2 * counter.rho * noise.sigma2) <= 1


def test_noise_for_one_item_does_not_pass_for_several_and_a_norm_cut_short_does_not_pass():
    one, six = Counter(rho="0.5", horizon=16).noise, Counter(rho="0.5", horizon=16, bound=3, per_unit=2).noise
    assert sum(move**2 for move in moves(one, [0] * 200, [2] * 200)) > one.sigma2
    short = sum(reached(one, t) ** 2 for t in range(17)) / 4**one.bits
    assert short < one.blt.squared and six.sigma2 * 4**one.bits > 35 * one.sigma2 * 4**six.bits


@counters
def test_rounding_costs_a_thousandth_of_the_sensitivity_and_the_charge_is_rounded_up(counter):
    noise, reach = counter.noise, (counter.bound or 1) * (counter.per_unit or 1)
    plain = 4**noise.bits * reach**2 * noise.blt.squared / (2 * counter.rho)
    rounding = Fraction(carried(noise.blt)) * 2**20
    assert plain < noise.sigma2 < plain * Fraction("1.00201")
    assert rounding**2 * 10**6 <= 4**noise.bits * reach**2 * noise.blt.squared
    # (x + r)^2 <= 2 rho sigma2, checked by squaring: 2 x r <= 2 rho sigma2 - x^2 - r^2
    slack = 2 * counter.rho * noise.sigma2 - 2 * counter.rho * plain - rounding**2
    assert slack >= 0 and slack**2 >= 4 * (2 * counter.rho * plain) * rounding**2


def test_the_last_answer_of_a_lifetime_halts_the_counter_and_updates_never_do():
    counter, coins = Resized(rho="1e6", steps=3), SeededCoins(1)
    state, said = counter.start(coins), []
    for time in range(3):
        for _ in range(5):
            state, _ = counter.step(state, Update(1), coins)
        state, answer = counter.step(state, Ask(), coins)
        if time < 2:
            state, answer = counter.step(state, Ask(), None)
        said.append(answer)
    assert said == [5, 10, 15] and state is None


@settings(max_examples=20, deadline=None)
@given(asks=st.lists(st.booleans(), max_size=30))
def test_only_an_ask_after_a_new_item_draws_and_it_draws_once(asks):
    counter, tosses = Counter(rho=1, horizon=64), []

    class Counted(Given):
        def discrete_gaussian(self, sigma2):
            tosses.append(sigma2)
            return 0

    state, total, fresh = counter.start(None), 0, 0
    for time, ask in enumerate(asks):
        if ask:
            state, answer = counter.step(state, Ask(), Counted())
            assert answer == total, "without noise the count is exact"
            fresh += total > 0 and asks[time - 1] is False
        else:
            state, _ = counter.step(state, Update(1), None)
            total += 1
    assert tosses == [counter.noise.sigma2] * fresh


def test_python_integers_and_machine_integers_give_the_same_noise(monkeypatch):
    noise = blt_noise(Fraction(1, 2), 2**20, width=5)
    fast, slow = noise.start(), noise.start()
    one, two = SeededCoins(1), SeededCoins(1)
    for step in range(50):
        fast = noise.drawn(fast, step + 1, one)
        with monkeypatch.context() as patch:
            patch.setattr(room, "roomy", lambda values, bits: values.astype(object))
            slow = noise.drawn(slow, step + 1, two)
        assert encode(fast, sealed=True) == encode(slow, sealed=True)


def test_counters_in_pieces_have_the_same_noise(monkeypatch):
    noise = blt_noise(Fraction(1, 2), 2**20, width=5)
    whole, pieces = noise.start(), noise.start()
    one, two = SeededCoins(1), SeededCoins(1)
    for step in range(5):
        whole = noise.drawn(whole, step + 1, one)
        with monkeypatch.context() as patch:
            patch.setattr(room, "_AT_ONCE", 2)
            pieces = noise.drawn(pieces, step + 1, two)
        assert encode(whole, sealed=True) == encode(pieces, sealed=True)


HUGE = [2**60 - 1, 2**60 - 1, -(2**60) + 1, 2**62 - 1, -(2**62), 2**61, 2**90, -(2**90), 5]


@pytest.mark.parametrize("width", [1, 2])
def test_draws_of_any_size_are_carried_without_overflow(width):
    noise, exact = blt_noise(Fraction(1, 2), 2**20, width=width), 0
    state = noise.start()
    for step, draw in enumerate(HUGE):
        buffers = state.buffers.integers.astype(object).tolist()[::width]
        less = sum(room.rounded_products(a, b.p, b.q) for a, b in zip(buffers, noise.blt.buffers, strict=True))
        state = noise.drawn(decode(encode(state, sealed=True), State), step + 1, Given(*[draw] * width))
        exact += draw - less
        assert state.noise.integers.tolist() == [exact] * width
        assert noise.now(state).tolist() == [(exact + (1 << noise.bits - 1)) >> noise.bits] * width


@settings(max_examples=20, deadline=None)
@given(draws=st.lists(st.integers(-(2**70), 2**70) | st.integers(-(2**45), 2**45), max_size=12))
def test_a_single_counter_has_the_noise_of_one_among_many(draws):
    one, many = blt_noise(Fraction(1, 2), None), blt_noise(Fraction(1, 2), None, width=3)
    alone, among = one.start(), many.start()
    for step, draw in enumerate(draws):
        alone, among = one.drawn(alone, step + 1, Given(draw)), many.drawn(among, step + 1, Given(7, draw, -draw))
        assert alone.buffers.integers.tolist() == among.buffers.integers.tolist()[1::3]
        assert one.now(alone).tolist() == many.now(among).tolist()[1:2]


def test_the_state_is_small_and_its_length_tells_nothing():
    for counter in (Counter(rho="0.5"), Counter(rho="0.5", horizon=2**6)):
        lengths, coins = set(), SeededCoins(3)
        state = counter.start(coins)
        for _ in range(200):
            state, _ = counter.step(state, Update(1), coins)
            state, _ = counter.step(state, Ask(), coins)
            lengths.add(len(encode(state.noise, sealed=True)) - len(str(state.noise.steps)) - len(str(state.items)))
        assert len(lengths) == 1 and lengths.pop() < 300


@pytest.mark.statistical
@pytest.mark.parametrize("rho", ["0.5", "20"])
def test_simulated_noise_has_the_stated_deviation_and_keeps_within_the_stated_error(rho):
    """Of 20,000 independent coordinates the mean square is within 6.5 standard errors (0.065 of itself, 1e-10)."""
    noise, coins, samples = blt_noise(Fraction(rho), 2**10, width=20_000), SeededCoins(5), 20_000
    one = blt_noise(Fraction(rho), 2**10)
    state, exact = noise.start(), {1, 2, 10, 40}
    for step in range(1, 41):
        state = noise.drawn(state, step, coins)
        if step in exact:
            values = noise.now(state)
            assert np.mean(values**2) < 1.065 * one.deviation(step) ** 2
            assert one.deviation(step) < 0.6 or np.mean(values**2) > 0.935 * one.deviation(step) ** 2
            for probability in ("0.5", "0.99"):
                missed = (np.abs(values) > one.bound(Fraction(probability), step)).sum() / samples
                chance = 1 - float(probability)
                assert missed <= chance + 6.5 * np.sqrt(chance * (1 - chance) / samples)
            assert np.abs(values).max() <= noise.bound(1 - Fraction(1, 10**10), step)


def test_nothing_counted_has_no_error_and_beyond_the_lifetime_none_is_stated():
    counter = Counter(rho="0.5")
    assert counter.deviation(0) == 0 == counter.error("0.99", 0)
    assert counter.step(counter.start(None), Ask(), None)[1] == 0
    for ask in (lambda: counter.deviation(2**40 + 1), lambda: counter.error(0.5, 2**41), lambda: counter.error(1, 5)):
        with pytest.raises(InvalidParameter):
            ask()

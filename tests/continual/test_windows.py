"""Windows: differences of what a counter released, which cost what it costs and err by what both times do."""

from collections import Counter as Multiset
from fractions import Fraction
from math import sqrt

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from counterpoint import Counter
from counterpoint.coins import SeededCoins
from counterpoint.continual.blt_noise import blt_noise
from counterpoint.continual.digit_trees import DigitTreeNoise
from counterpoint.continual.horizon import PastHorizon
from counterpoint.continual.windowed import MOST_KEPT, Windowed
from counterpoint.encoding import decode, encode
from counterpoint.errors import InvalidParameter
from counterpoint.mechanisms import Ask, Update
from counterpoint.mechanisms.mechanism import State
from counterpoint.privacy.relations import Steps
from counterpoint.verify.exact_loss import exact
from counterpoint.verify.message_pairs import updates
from counterpoint.verify.verdict import Verdict

COUNTERS = [
    Counter("0.5", horizon=40),
    Counter("0.5"),
    Counter(rho="0.1"),
    Counter(1, per_unit=3, clamp=False),
    Counter(epsilon=1, bound=2, width=2),
    Counter(rho=1, squared=2, width=2),
]


def vector(counter, item):
    return item if counter.dimensions is None else (item, 1 - item)


def minus(now, then):
    return tuple(a - b for a, b in zip(now, then, strict=True)) if isinstance(now, tuple) else now - then


@settings(max_examples=100, deadline=None)
@given(
    st.sampled_from(COUNTERS),
    st.lists(st.tuples(st.lists(st.integers(0, 1), max_size=9), st.integers(1, 2)), max_size=4),
    st.integers(1, 4),
    st.integers(0, 99),
)
def test_a_window_is_the_difference_of_what_the_counter_releases(counter, rounds, last, seed):
    """On equal coins: the counter is asked after each of the last items, however many arrive between two asks."""
    plain, window = SeededCoins(seed), SeededCoins(seed)
    mechanism = replace(counter, window=last)
    state, inner = mechanism.start(window), counter.start(plain)
    released = [0 if counter.dimensions is None else (0,) * counter.dimensions]
    for items, asks in rounds:
        for place, item in enumerate(items):
            state, nothing = mechanism.step(state, Update(vector(counter, item)), window)
            inner, _ = counter.step(inner, Update(vector(counter, item)), plain)
            assert nothing is None
            if place < len(items) - last - 1:
                released.append("never read")
            else:
                inner, count = counter.step(inner, Ask(), plain)
                released.append(count)
            assert len(state.waiting) <= last + 1 and len(state.released) <= last + 1, "what is kept is bounded"
        for _ in range(asks):
            state, answer = mechanism.step(state, Ask(), window)
            assert answer == minus(released[-1], released[max(len(released) - 1 - last, 0)])


@settings(max_examples=100, deadline=None)
@given(
    st.sampled_from([*COUNTERS, *(replace(counter, window=last) for counter in COUNTERS for last in (1, 3))]),
    st.lists(st.lists(st.integers(-2, 2), max_size=30), max_size=4),
)
def test_updates_that_come_together_make_the_state_that_they_make_one_by_one(mechanism, rounds):
    """Past the horizon, too: the session sends them together, a composition one by one."""
    counter = mechanism
    alone, together = SeededCoins(5), SeededCoins(5)
    here, there = mechanism.start(alone), mechanism.start(together)
    for items in rounds:
        updates = [Update(vector(counter, item)) for item in items]
        for update in updates:
            here, _ = mechanism.step(here, update, alone)
        there = mechanism.updated(there, updates, together)
        assert encode(here, sealed=True) == encode(there, sealed=True)
        (here, answer), (there, same) = mechanism.step(here, Ask(), alone), mechanism.step(there, Ask(), together)
        assert answer == same and (here is None) == (there is None)
        if here is None:
            return


def test_a_window_claims_what_its_counter_claims_for_the_same_neighbours():
    for counter in COUNTERS:
        window = replace(counter, window=5)
        assert (window.claim.loss, window.claim.relation) == (counter.claim.loss, counter.claim.relation)
    fitted = Counter(1, window=5).fitted(Steps(updates=3, bound=7), None)
    assert fitted == replace(Counter(1).fitted(Steps(updates=3, bound=7), None), window=5)


def test_past_the_horizon_the_last_answer_is_the_window_that_ends_there():
    window, coins = Counter(10**5, horizon=4, window=2), SeededCoins(1)
    state = window.start(coins)
    for item in (1, 0, 1, 1, 1, 1):
        state, _ = window.step(state, Update(item), coins)
    assert window.step(state, Ask(), coins) == (None, PastHorizon(2))


@pytest.mark.parametrize("last", [0, -1, 2.5, MOST_KEPT, "three"])
def test_a_window_is_a_number_of_items_and_keeps_a_bounded_number_of_values(last):
    with pytest.raises(InvalidParameter):
        Counter(1, window=last)
    with pytest.raises(InvalidParameter, match="at most 9999 here"):
        Counter(epsilon=1, width=10, window=10_000)


def test_a_state_is_read_back_as_it_was():
    for counter in COUNTERS:
        window, coins = replace(counter, window=2), SeededCoins(3)
        state = window.start(coins)
        for item in (1, 0, 1):
            state, _ = window.step(state, Update(vector(counter, item)), coins)
        again = decode(encode(state, sealed=True), State)
        assert window.step(again, Ask(), SeededCoins(4))[1] == window.step(state, Ask(), SeededCoins(4))[1]
        assert decode(encode(window), Counter) == window


def nodes(noise, time):
    """The signed draws that an answer at this time is made of, by name."""
    here, found, start = noise.epoch(time), Multiset(), noise.epoch(time).start
    for level in range(here.tree.height - 1, -1, -1):
        digit, wide = here.tree.digits(time - here.start)[level], here.tree.arity**level
        for step in range(abs(digit)):
            first = start + step * wide if digit > 0 else start - (step + 1) * wide
            found[here.number, level, first] += 1 if digit > 0 else -1
        start += digit * wide
    found.update({("total", number): 1 for number in range(here.number)})
    return found


@settings(max_examples=200, deadline=None)
@given(st.integers(0, 5000), st.integers(0, 5000), st.sampled_from([None, 5000]))
def test_under_pure_privacy_the_noises_of_a_difference_are_those_of_one_time_alone(one, other, horizon):
    noise = DigitTreeNoise(Fraction(1), 1, horizon, width=1)
    earlier, t = sorted((one, other))
    left = nodes(noise, t)
    left.subtract(nodes(noise, earlier))
    assert all(abs(sign) <= 1 for sign in left.values())
    counted = Multiset(name[0] for name, sign in left.items() if sign)
    parts = Multiset()
    for scale, count in noise.parts_between(earlier, t):
        parts[scale] += count
    expected = Multiset()
    for name, count in counted.items():
        scale = noise._total_scale if name == "total" else noise.node_scale(noise.epoch(t).tree)
        if name == noise.epoch(earlier).number:
            scale = noise.node_scale(noise.epoch(earlier).tree)
        expected[scale] += count
    assert +parts == +expected


@pytest.mark.parametrize("earlier, n", [(0, 1), (0, 100), (1, 1), (50, 10), (10, 50), (900, 100), (1000, 1)])
def test_under_zcdp_the_deviation_of_a_difference_is_exact_but_for_rounding(earlier, n):
    """By the coefficients b themselves, from the recursion that the noise follows."""
    noise = blt_noise(Fraction(1, 2), 2**10)
    buffers = [(1 - float(buffer.rate), float(buffer.weight)) for buffer in noise.blt.buffers]
    values, total, b = [0.0] * len(buffers), 0.0, []
    for k in range(earlier + n):
        step = float(k == 0) - sum(weight * value for (_, weight), value in zip(buffers, values, strict=True))
        values = [rate * value + step for (rate, _), value in zip(buffers, values, strict=True)]
        total += step
        b.append(total)
    variance = sum(b[k] ** 2 for k in range(n)) + sum((b[k] - b[k + n]) ** 2 for k in range(earlier))
    true = sqrt(variance * noise.sigma2 / 4**noise.bits)
    said = noise.deviation_between(earlier, earlier + n)
    assert true <= said <= 1.001 * true + 0.6, "and rounding to whole units"
    assert 1.95 * true - 1 <= noise.bound_between(Fraction("0.95"), earlier, earlier + n) <= 1.97 * true + 1


@pytest.mark.parametrize("counter", [Counter(rho=1), Counter(epsilon=1), Counter(epsilon=1, horizon=300)])
def test_a_window_over_everything_errs_as_its_counter_does(counter):
    window = replace(counter, window=500)
    for t in (0, 1, 7, 250):
        assert counter.deviation(t) <= window.deviation(t) <= counter.deviation(t) + 0.6
        assert counter.error(0.9, t) <= window.error(0.9, t) <= counter.error(0.9, t) + 2


ASK = (Ask(), Ask())
PAIRS = [*updates([(0, 1), (1, 0), (0, 0)]), ASK]


class ExactWindow(Windowed):
    """Releases exact counts."""

    def released(self, state, coins):
        counter, released, waiting = super().released(state, coins)
        if counter is None or not state.waiting:
            return counter, released, waiting
        return counter, (*released[:-1], counter.total.integers.tolist()[0]), waiting


class Exactly(Counter, frozen=True):
    """A counter whose window releases exact counts."""

    @property
    def windowed(self):
        return ExactWindow(*super().windowed)


class Anew(Counter, frozen=True):
    """Draws the noise of its window's counts again at every ask."""

    def step(self, state, message, coins):
        after, answer = super().step(state, message, coins)
        return (state if isinstance(message, Ask) and self.window and after is not None else after), answer


@pytest.mark.parametrize(
    ("kind", "verdict"), [(Counter, Verdict.HOLDS), (Exactly, Verdict.REFUTED), (Anew, Verdict.REFUTED)]
)
def test_a_window_keeps_its_counters_claim_against_every_adversary_and_wrong_ones_do_not(kind, verdict):
    window = kind(4, horizon=2, window=1)
    loss = exact(window, messages=PAIRS, rounds=4, cut="1e-6")
    assert loss.judge(window.claim, allowance="1e-4") is verdict

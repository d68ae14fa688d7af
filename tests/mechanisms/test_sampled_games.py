"""The theorem on samples, and each of the games that it does not cover, computed exactly: at rate 1/10, e^eps = 10.

What is allowed never exceeds its claim; what is refused would, by the factors that the theory page lists.
"""

from fractions import Fraction
from itertools import product
from math import comb, exp, log

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from counterpoint import ApproxDP, Counter, Laplace, PureDP, RandomizedResponse, Sampled, SparseVector
from counterpoint.encoding import Value
from counterpoint.measures import zCDP
from counterpoint.mechanisms import Ask, Update
from counterpoint.mechanisms.mechanism import Mechanism, State
from counterpoint.privacy.claims import claim
from counterpoint.privacy.relations import every_step
from counterpoint.privacy.samples import amplified
from counterpoint.privacy.secret import reveal
from counterpoint.verify.exact_loss import exact
from counterpoint.verify.finite import FiniteMechanism, Outcome
from counterpoint.verify.unit_by_unit import UnitByUnit, UnitCoins
from counterpoint.verify.verdict import Verdict

TENTH, GROWTH = Fraction(1, 10), Fraction(10)
AMPLIFIED = 1 + TENTH * (GROWTH - 1)  # 1.9
LOG_TEN = PureDP("2.302585093")
TRUE, LIE = Fraction(10, 11), Fraction(1, 11)


def response(asks=1):
    """Randomized response with odds of 10 to 1, for so many asks, exactly."""

    def row(after):
        said = tuple((Outcome(TRUE, bit, after), Outcome(LIE, 1 - bit, after)) for bit in (0, 1))
        return (said,)

    return FiniteMechanism(
        tuple(row(n + 1 if n + 1 < asks else None) for n in range(asks)), loss=PureDP(asks * LOG_TEN.epsilon)
    )


def joining(unit=1, units=2):
    """The pairs of asks where one unit brings a bit or nothing, whatever the other one brings."""
    pairs = []
    for other in (0, 1):
        present = tuple(1 if place == unit else other for place in range(units))
        absent = tuple(0 if place == unit else other for place in range(units))
        pairs += [(Ask(0, absent), Ask(0, present)), (Ask(0, present), Ask(0, absent))]
    return pairs


def growth_of(mechanism, pairs, rounds, **more):
    """The least e^epsilon at which delta is 0, by bisection over exact deltas; checked to a millionth."""
    loss = exact(mechanism, messages=pairs, rounds=rounds, **more)
    low, high = Fraction(1), Fraction(2000)
    while high - low > Fraction(1, 10**7):
        middle = (low + high) / 2
        low, high = (middle, high) if loss.bounds_at_growth(middle).lower > 0 else (low, middle)
    return float(high)


def test_a_sampled_response_loses_exactly_the_amplified_epsilon():
    sampled = UnitByUnit(Sampled(response(), TENTH), 1)
    assert growth_of(sampled, joining(0, 1), 1) == pytest.approx(float(AMPLIFIED), abs=1e-6)


@pytest.mark.parametrize(
    "mechanism, rounds",
    [
        (RandomizedResponse(1), 1),
        (RandomizedResponse(1, "0.1"), 1),
        (Laplace(2, asks=2), 2),
        (SparseVector(2, 1), 3),
    ],
)
@pytest.mark.parametrize("rate", [Fraction(1, 10), Fraction(2, 3)])
def test_sampled_mechanisms_keep_the_amplified_claim_against_every_adaptive_adversary(mechanism, rounds, rate):
    sampled = UnitByUnit(Sampled(mechanism, rate), 2)
    asks = [(Ask(private=a.private), Ask(private=b.private)) for a, b in joining()]
    loss = exact(sampled, messages=asks, rounds=rounds)
    assert loss.judge(sampled.claim, allowance="1e-9") is Verdict.HOLDS
    assert loss.delta_at(0) > 0.01  # and something is lost


def test_a_sampled_counter_keeps_it_while_data_arrive_and_a_unit_keeps_its_coin():
    sampled = UnitByUnit(Sampled(Counter(4, horizon=2), "1/2"), 2)
    arriving = [(Update(a), Update(b)) for a, b in (((0, 0), (0, 1)), ((0, 1), (0, 0)), ((1, 0), (1, 0)))]
    loss = exact(sampled, messages=[*arriving, (Ask(), Ask())], rounds=3, cut="1e-6")
    assert loss.judge(sampled.claim, allowance="1e-3") is Verdict.HOLDS


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_mixtures_of_any_pair_keep_the_amplified_curve_both_ways(data):
    """The inequality itself, for random laws, growths and rates: delta(e^eps') <= q delta(e^eps)."""
    weights = st.lists(st.integers(0, 9), min_size=4, max_size=4).filter(sum)
    p, other = ([Fraction(w, sum(drawn)) for w in drawn] for drawn in (data.draw(weights), data.draw(weights)))
    rate, growth = Fraction(data.draw(st.integers(1, 9)), 10), Fraction(data.draw(st.integers(10, 60)), 10)
    mixed = [(1 - rate) * a + rate * b for a, b in zip(p, other, strict=True)]

    def stick(one, two, factor):
        return sum(max(a - factor * b, Fraction(0)) for a, b in zip(one, two, strict=True))

    delta = max(stick(p, other, growth), stick(other, p, growth))
    least = 1 + rate * (growth - 1)
    assert max(stick(mixed, p, least), stick(p, mixed, least)) <= rate * delta


def test_two_launches_on_one_sample_would_lose_more_than_their_claims():
    shared = UnitByUnit(Sampled(response(asks=2), TENTH), 1)  # two responses that see the same sample
    found = growth_of(shared, joining(0, 1), 2)
    assert found == pytest.approx(10.9, abs=1e-5) and found > float(AMPLIFIED**2)  # 3.61
    assert float(shared.claim.loss.epsilon) == pytest.approx(log(10.9))  # the delegated session's claim is right


class FreshSamples(UnitByUnit, frozen=True):
    """Wrong: the coins are tossed again at each message, and the mechanism remembers."""

    def step(self, state, message, coins):
        fresh = UnitCoins(tuple(coins.bernoulli(self.sampled.rate) for _ in state.kept), state.inner)
        return super().step(fresh, message, coins)


class Seen(State, Value, frozen=True):
    ever: bool
    asks: int


class Remembering(Mechanism, Value, frozen=True):
    """Answers once, at its last ask: whether it was ever shown a 1, by randomized response; PureDP(log 10)."""

    asks: int

    @property
    def claim(self):
        return claim(LOG_TEN, every_step(), "one randomized response about all asks together")

    def accepts(self, message):
        return isinstance(message, Ask) and message.private is not None and message.private.width is None

    def start(self, coins):
        return Seen(False, self.asks)

    def step(self, state, message, coins):
        ever = state.ever or bool(reveal(message.private.clamp(0, 1)))
        if state.asks > 1:
            return Seen(ever, state.asks - 1), None
        return None, ever == coins.bernoulli(TRUE)


@pytest.mark.parametrize("kind, least", [(UnitByUnit, 1.9), (FreshSamples, 4.6856)])
def test_a_fresh_sample_for_each_ask_would_lose_more_if_there_is_state(kind, least):
    found = growth_of(kind(Sampled(Remembering(5), TENTH), 1), joining(0, 1), 5)
    assert found == pytest.approx(least, abs=1e-4)


def test_under_replacement_a_sample_would_hide_nothing():
    """A mechanism that is private under replacement, and says whether its sample is empty."""
    empty, one, two = [[Fraction(1), 0, 0], [0, TRUE, LIE], [0, LIE, TRUE]]
    mixed = [[(1 - TENTH) * a + TENTH * b for a, b in zip(empty, law, strict=True)] for law in (one, two)]
    assert max(a / b for a, b in zip(*mixed, strict=True)) == 10 > AMPLIFIED


class Shown(UnitByUnit, frozen=True):
    """Wrong: it shows the sample, or its size."""

    def step(self, state, message, coins):
        after, answer = super().step(state, message, coins)
        return after, (answer, sum(state.kept) if isinstance(message.public, int) else state.kept)


def test_a_public_sample_would_cost_all_of_epsilon():
    found = growth_of(Shown(Sampled(response(), TENTH), 1), joining(0, 1), 1)
    assert found == pytest.approx(10, abs=1e-5)


def test_a_public_size_says_that_a_unit_is_there():
    without = [sum(sizes) for sizes in product((0, 1), repeat=2)]
    assert 3 not in without and 3 in [sum(sizes) for sizes in product((0, 1), repeat=3)]  # infinitely likelier


def test_zcdp_is_not_amplified_by_the_square_of_the_rate():
    rho, order, rate = 0.5, 32, 0.1
    moment = sum(
        comb(order, k) * (1 - rate) ** (order - k) * rate**k * exp(rho * k * (k - 1)) for k in range(order + 1)
    )
    assert log(moment) / (order - 1) > 13.6 > order * rate**2 * rho
    with pytest.raises(Exception, match="delta=1e-6"):
        amplified(zCDP("0.5"), TENTH)


def test_a_group_loses_no_more_than_the_group_loss_of_the_sampled_claim():
    """Two units join at once: by the group formula of (eps', q delta), not of (eps, delta)."""
    sampled = UnitByUnit(Sampled(RandomizedResponse(1, "0.1"), TENTH), 2)
    pairs = [(Ask(private=(0, 0)), Ask(private=(1, 1))), (Ask(private=(1, 1)), Ask(private=(0, 0)))]
    loss = exact(
        sampled, every_step(), messages=[(Ask(None, a.private, 2), Ask(None, b.private, 2)) for a, b in pairs], rounds=1
    )
    group = sampled.claim.loss.group(2)
    assert isinstance(group, ApproxDP)
    assert loss.delta_at(group.epsilon) <= float(group.delta)

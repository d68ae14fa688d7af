"""Games refereed by code that shares nothing with the rules: none breaks a promise, and planted rules are broken.

A few hundred here; `python -m tests.composition.games 10000` plays more.
"""

import math
from collections import defaultdict
from fractions import Fraction

import pytest
from tests.composition import games

from counterpoint.composition import planned, reserve, slots, sums
from counterpoint.composition.fixed import compose
from counterpoint.composition.odometers import Odometer
from counterpoint.composition.renyi_sums import RenyiSum
from counterpoint.composition.reserve import UNIT
from counterpoint.measures import GaussianDP, PureDP, SampledGaussianDP


@pytest.mark.parametrize("seed", range(2))
def test_no_game_breaks_a_promise(seed):
    """A few seconds each, as every game lists all views of its analyst."""
    found = list(games.games(100, seed))
    assert not [each for each in found if games.is_broken(each)]
    reached = defaultdict(float)
    for each in found:
        reached[each.kind] = max(reached[each.kind], each.share)
    assert len(reached) == len(games.KINDS) and min(reached.values()) > 0.001, "else the games would say little"


@pytest.mark.long
def test_no_game_of_thousands_breaks_a_promise():
    assert not [each for each in games.games(10_000, 20261120) if games.is_broken(each)]


def _half_of_the_square(left, epsilon, bits=reserve.BITS):
    return max(0, left - int(epsilon**2 / 2 * (1 << bits)))


PLANTED = {
    "default filter": (reserve, "left_after", lambda left, epsilon, bits=reserve.BITS: left),
    "planned launches": (planned, "exchange", lambda copies, each, epsilon: 1 if copies else None),
    "Gaussian budget": (sums, "left_after", _half_of_the_square),
    "Gaussian odometer": (reserve, "needed_before", lambda after, epsilon: after + int(epsilon**2 / 2 * UNIT)),
    "reading of launches": (reserve, "needed_before", lambda after, epsilon: after),
    "unlike measures": (slots.Slots, "total", property(lambda rule: compose.optimal([rule.slots[0][0]]).loss)),
}


@pytest.mark.parametrize("kind", PLANTED)
def test_games_break_a_planted_wrong_rule(kind, monkeypatch):
    monkeypatch.setattr(*PLANTED[kind])
    monkeypatch.setattr(games, "KINDS", {kind: games.KINDS[kind]})
    assert any(games.is_broken(each) for each in games.games(60, 3))


def test_games_break_a_filter_that_counts_a_third_of_a_sampled_step(monkeypatch):
    third = RenyiSum.ENTERS[SampledGaussianDP]
    monkeypatch.setitem(RenyiSum.ENTERS, SampledGaussianDP, lambda loss, alpha: third(loss, alpha) / 3)
    monkeypatch.setattr(games, "KINDS", {"sampled steps": games.sampled_game})
    assert any(games.is_broken(each) for each in games.games(60, 3))


def test_small_launches_reach_what_the_reserve_and_its_odometer_promise():
    """Thousands of launches of 0.01 are nearly a Gaussian: their exact delta is 0.998 of the budget's."""
    each, epsilon, delta = Fraction(1, 100), 0.5, "0.05"
    left, count = int(GaussianDP.for_budget(epsilon, delta).mu ** 2 * UNIT), 0
    while (after := reserve.left_after(left, each)) is not None:
        left, count = after, count + 1
    truth, lie = -math.log1p(math.exp(-float(each))), -math.log1p(math.exp(float(each)))
    exact = math.fsum(
        math.exp(
            math.lgamma(count + 1) - math.lgamma(j + 1) - math.lgamma(count - j + 1) + j * truth + (count - j) * lie
        )
        * -math.expm1(min(0.0, epsilon - (2 * j - count) * float(each)))
        for j in range(count + 1)
    )
    rule = Odometer.gaussian()
    account = rule.start().after((PureDP(each), "one-shot") for _ in range(count))
    assert 0.998 * float(delta) < exact <= rule.loss(account).delta_at(epsilon) <= float(delta)
    assert rule.loss(account.plus(PureDP(each))).delta_at(epsilon) > float(delta)


def test_a_sampled_step_and_a_mixed_list_reach_what_they_are_counted_for():
    mixed = compose.optimal([PureDP("0.1")] * 20 + [GaussianDP("0.3"), SampledGaussianDP(1, "0.1")])
    assert 0.99 * float(mixed.delta_above(1)) < float(mixed.delta_below(1)) <= float(mixed.delta_above(1))

"""Every measure against brute force: its curve, its conversions, and how its losses add up (catalogue.py)."""

from fractions import Fraction

import numpy as np
import pytest
from msgspec.structs import replace
from tests.measures.catalogue import (
    NEAR,
    PARAMETERS,
    PROMISES,
    TINY,
    WORST,
    gaussians,
    hockey_stick,
    laplaces,
    responses,
)

from counterpoint import measures
from counterpoint.composition.sums import SUMS, sum_for
from counterpoint.errors import NotCovered
from counterpoint.measures import ApproxDP, GaussianDP, ProbabilisticDP, PureDP, TradeOff, Unbounded, tCDP, zCDP
from counterpoint.measures.conversions import RESPONSES, response_of
from counterpoint.measures.loss import CONVERSIONS, Loss

AS = {
    "PureDP": "as_pure",
    "ApproxDP": "as_approx",
    "ProbabilisticDP": "as_probabilistic",
    "RenyiDP": "as_renyi",
    "zCDP": "as_zcdp",
    "tCDP": "as_tcdp",
    "GaussianDP": "as_gaussian",
    "TradeOff": "as_tradeoff",
}
EPSILONS = [0, 0.05, 0.3, 1, 2.5]
DELTAS = [1e-8, 1e-4, 0.02, 0.2]
CASES = pytest.mark.parametrize(("loss", "pair"), WORST, ids=lambda it: repr(it) if isinstance(it, Loss) else "")


def holds(loss, pair):
    return PROMISES[type(loss)](loss, pair)


def converted(loss, measure, parameters):
    """What a loss converts to, or None."""
    try:
        return getattr(loss, AS[measure])(*parameters)
    except NotCovered:
        return None


def refuted(convert, measure):
    """The first loss of the catalogue whose own pair breaks what a conversion of it promises."""
    for loss, pair in WORST:
        for parameters in PARAMETERS[measure]:
            found = convert(loss, measure, parameters)
            if found is not None and not holds(found, pair):
                return loss, found
    return None


def test_every_measure_is_in_the_catalogue():
    shipped = {getattr(measures, name) for name in measures.__all__} - {Loss}
    assert shipped == set(PROMISES) == {type(loss) for loss, _ in WORST}
    assert {name for _, name in CONVERSIONS} == set(PARAMETERS) == set(AS)


@CASES
def test_a_pair_has_the_loss_that_it_is_listed_with_and_hardly_less(loss, pair):
    assert holds(loss, pair)
    if not isinstance(loss, Unbounded):
        found = [hockey_stick(pair, epsilon) / loss.delta_at(epsilon) for epsilon in EPSILONS if loss.delta_at(epsilon)]
        assert max(found) > 0.2


@CASES
def test_the_curve_of_a_loss_is_nowhere_below_that_of_a_pair_that_has_it(loss, pair):
    for epsilon in EPSILONS:
        assert hockey_stick(pair, epsilon) <= loss.delta_at(epsilon) * NEAR + TINY
    for epsilon, delta in ((loss.epsilon_at(delta), delta) for delta in DELTAS):
        assert epsilon == np.inf or hockey_stick(pair, epsilon) <= delta * NEAR + TINY


@pytest.mark.parametrize("measure", AS)
def test_what_a_loss_converts_to_holds_for_every_pair_that_has_the_loss(measure):
    assert refuted(converted, measure) is None


def shrunk(loss, factor=Fraction(1, 10)):
    """A loss that promises ten times as much."""
    match loss:
        case TradeOff():
            return TradeOff([(a, b + (1 - a - b) * (1 - factor)) for a, b in loss.vertices])
        case ApproxDP() if loss.delta:
            return ApproxDP(loss.epsilon * factor, loss.delta * factor)
        case ProbabilisticDP() if loss.delta:
            return ProbabilisticDP(loss.epsilon, loss.delta * factor)
        case GaussianDP():
            return GaussianDP(loss.mu * factor)
        case _:
            name = next(field for field in ("epsilon", "rho", "mu") if hasattr(loss, field))
            return replace(loss, **{name: getattr(loss, name) * factor})


ONLY_OF_NOTHING = {(Loss, "PureDP"), (Loss, "TradeOff")}
"""Conversions that no loss above 0 of the catalogue takes, since each measure either has its own or has none."""


@pytest.mark.parametrize(
    ("given", "measure"),
    sorted(CONVERSIONS.keys() - ONLY_OF_NOTHING, key=str),
    ids=lambda it: getattr(it, "__name__", it),
)
def test_a_conversion_that_is_ten_times_too_small_is_refuted(given, measure, monkeypatch):
    true = CONVERSIONS[given, measure]
    monkeypatch.setitem(CONVERSIONS, (given, measure), lambda *args: shrunk(true(*args)))
    assert refuted(converted, measure) is not None


def product(one, other):
    """Both pairs, each drawn by itself."""
    return tuple(np.outer(left, right).ravel() for left, right in zip(one, other, strict=True))


def few_cells(pair, most=60):
    """The pair with neighbouring cells joined: it loses hardly less, and its products stay small."""
    size = -(-len(pair[0]) // most)
    cuts = range(0, len(pair[0]), size)
    return tuple(np.add.reduceat(one, cuts) for one in pair)


def summed(budget):
    """What breaks the sum of a budget: two losses whose pairs, together, lose more than its total says."""
    empty = sum_for(budget)
    for first, pair in WORST:
        for second, other in WORST:
            try:
                total = empty.plus(first, "one-shot").plus(second, "one-shot").total
            except NotCovered:
                continue
            if not holds(total, product(few_cells(pair), few_cells(other))):
                return first, second
    return None


BUDGETS = {type(loss): loss for loss, _ in WORST if type(loss) in SUMS}


@pytest.mark.parametrize("measure", SUMS, ids=lambda it: it.__name__)
def test_two_launches_lose_no_more_than_the_sum_of_each_measure_says(measure):
    if measure in BUDGETS:
        assert summed(BUDGETS[measure]) is None


def entries():
    """Every measure that enters a sum of the table."""
    return [
        (measure, entered)
        for measure, kind in SUMS.items()
        for entered in getattr(kind, "ENTERS", ())
        if measure is not TradeOff  # what is left of a curve is read as all of it, so a total shows no mistake
    ]


@pytest.mark.parametrize(("measure", "entered"), entries(), ids=lambda it: it.__name__)
def test_a_loss_that_enters_a_sum_with_a_tenth_is_found(measure, entered, monkeypatch):
    table = SUMS[measure].ENTERS
    true = table[entered]

    def tenth(loss, how):
        amount = true(loss, how)
        return tuple(part / 10 for part in amount) if isinstance(amount, tuple) else amount and amount / 10

    monkeypatch.setitem(table, entered, tenth)
    assert summed(BUDGETS[measure]) is not None


@pytest.mark.parametrize("entered", RESPONSES, ids=lambda it: it.__name__)
def test_a_randomized_response_with_a_tenth_of_the_loss_is_found(entered, monkeypatch):
    true = RESPONSES[entered]
    monkeypatch.setitem(RESPONSES, entered, lambda loss: tuple(part / 10 for part in true(loss)))
    assert summed(BUDGETS[ApproxDP]) is not None


@CASES
def test_the_randomized_response_of_a_loss_has_all_of_it(loss, pair):
    response = response_of(loss)
    if response is not None:
        epsilon, delta = map(float, response)
        assert all(hockey_stick(pair, e) <= hockey_stick(responses(epsilon, delta), e) * NEAR + TINY for e in EPSILONS)


@pytest.mark.parametrize("size", [2, 3])
@pytest.mark.parametrize(
    ("loss", "steps"),
    [
        (PureDP(0.3), lambda size: laplaces(0.3 * size)),
        (ApproxDP(0.5, hockey_stick(gaussians(0.5), 0.5) * NEAR), lambda size: gaussians(0.5 * size)),
        (zCDP(0.125), lambda size: gaussians(0.5 * size)),
        (tCDP(0.125, 30), lambda size: gaussians(0.5 * size)),
        (GaussianDP(0.5), lambda size: gaussians(0.5 * size)),
        (GaussianDP(0.5).as_tradeoff(), lambda size: gaussians(0.5 * size)),
    ],
    ids=lambda it: type(it).__name__ if isinstance(it, Loss) else "",
)
def test_neighbours_of_neighbours_lose_no_more_than_the_group_loss(loss, steps, size):
    assert holds(loss, steps(1)) and holds(loss.group(size), steps(size))
    if not isinstance(loss, TradeOff | ApproxDP):
        assert not holds(shrunk(loss.group(size)), steps(size))

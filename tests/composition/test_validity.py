"""Every filter is valid by computation: no adaptive analyst who launches randomized responses gets beyond the budget.

The worst analyst is found by dynamic programming: after each answer she launches whatever the rule still admits, or
stops. Randomized response is the worst mechanism with given parameters (Henzinger et al. 2024, Thm 12.4 reduces all
others to it) and its losses lie on a lattice, so that the state is (account, loss so far). The same program breaks
rules that are not valid, so the test can fail.
"""

import math
from fractions import Fraction
from functools import cache
from itertools import pairwise
from statistics import NormalDist

import pytest

from counterpoint.composition.advanced import order_for
from counterpoint.composition.filters import Filter
from counterpoint.composition.odometers import Odometer
from counterpoint.composition.reserve import GRAIN, reserve_for
from counterpoint.errors import BudgetExceeded
from counterpoint.measures import ApproxDP, GaussianDP, PureDP, RenyiDP, zCDP
from counterpoint.privacy.claims import claim
from counterpoint.privacy.relations import every_step

Menu = tuple[tuple[int, Fraction], ...]
"""Randomized responses on offer: epsilon in steps of the lattice, and delta."""


def worst_delta(start, launch, menu: Menu, step: Fraction, epsilon: Fraction) -> float:
    """The largest delta at `epsilon` over all adaptive analysts, in the world where every answer counts most.

    `launch(account, index)` is the account after launching that item of the menu, or None where that is refused.
    """
    target = math.exp(epsilon)

    @cache
    def value(account, steps: int) -> float:
        """The best expected gain P0 - e^epsilon P1, per unit of P1, at loss = steps * step."""
        best = max(math.exp(float(steps * step)) - target, 0.0)
        for index, (size, delta) in enumerate(menu):
            after = launch(account, index)
            if after is None:
                continue
            truth = 1 / (1 + math.exp(-float(size * step)))
            noisy = (1 - truth) * value(after, steps + size) + truth * value(after, steps - size)
            exposed = math.exp(float(steps * step))
            best = max(best, float(delta) * exposed + (1 - float(delta)) * noisy)
        return best

    return value(start, 0)


def launched_by(rule, menu: Menu, step: Fraction):
    """Launching by a rule, remembered."""

    @cache
    def launch(account, index: int):
        size, delta = menu[index]
        loss = ApproxDP(size * step, delta) if delta else PureDP(size * step)
        try:
            return rule.admit(account, claim(loss, every_step(), "a test", interaction="one-shot"))
        except BudgetExceeded:
            return None

    return launch


def worst(rule, menu: Menu, epsilon: Fraction) -> float:
    return worst_delta(rule.start(), launched_by(rule, menu, STEP), menu, STEP, epsilon)


def exact_optimal_delta(counts: tuple[int, ...], menu: Menu, step: Fraction, epsilon: Fraction) -> float:
    """Optimal composition of so many of each (theory, Fixed parameters), in floats."""
    losses, unexposed = {0: (1.0, 1.0)}, 1.0
    for (size, delta), count in zip(menu, counts, strict=True):
        truth = 1 / (1 + math.exp(-float(size * step)))
        unexposed *= (1 - float(delta)) ** count
        for _ in range(count):
            after: dict[int, tuple[float, float]] = {}
            for steps, (p0, p1) in losses.items():
                for move, q0, q1 in ((size, truth, 1 - truth), (-size, 1 - truth, truth)):
                    a, b = after.get(steps + move, (0.0, 0.0))
                    after[steps + move] = (a + p0 * q0, b + p1 * q1)
            losses = after
    stick = sum(max(p0 - math.exp(epsilon) * p1, 0.0) for p0, p1 in losses.values())
    return 1 - unexposed * (1 - stick)


PURE: Menu = ((1, Fraction(0)), (4, Fraction(0)))
MIXED: Menu = ((2, Fraction(0)), (5, Fraction(1, 200)), (0, Fraction(1, 100)))
STEP = Fraction(1, 10)
BUDGET = ApproxDP(1, Fraction(1, 20))
RULES = {
    "best": Filter(BUDGET),
    "basic": Filter(BUDGET, by="basic"),
    "renyi": Filter(BUDGET, by="renyi"),
    "advanced": Filter(BUDGET, by="advanced"),
    "gaussian": Filter(BUDGET, by="gaussian"),
    "best with little slack": Filter(BUDGET, slack=Fraction(1, 100)),
    "one order": Filter(BUDGET, slack=BUDGET.delta / 2, alpha=order_for(BUDGET.epsilon, BUDGET.delta / 2)),
    "one strange order": Filter(BUDGET, alpha=2),
}


@pytest.mark.parametrize("menu", [PURE, MIXED], ids=["pure", "mixed"])
@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
def test_no_adaptive_analyst_gets_beyond_the_budget(rule, menu):
    assert worst(rule, menu, BUDGET.epsilon) <= float(BUDGET.delta) * (1 + 1e-9)


EXTREME = [
    pytest.param(epsilon, delta, marks=[] if epsilon in ("0", "3") else [pytest.mark.long])
    for epsilon in ("0", "0.001", "0.3", "3", "10")
    for delta in ("1e-9", "0.4", "0.999999")
]


@pytest.mark.parametrize("settings", [{}, {"by": "gaussian"}, {"alpha": Fraction(3, 2)}], ids=str)
@pytest.mark.parametrize(("epsilon", "delta"), EXTREME)
def test_nor_for_tiny_and_huge_budgets_with_launches_of_the_size_of_the_reserve(epsilon, delta, settings):
    """Large steps of it: there each launch is at the edge of what is covered, and the last one is often special."""
    budget = ApproxDP(epsilon, delta)
    rule = Filter(budget, **settings)
    deviation = math.sqrt(reserve_for(budget.epsilon, rule.slack or budget.delta * Fraction(9, 10)) * GRAIN)
    step = Fraction(f"{deviation / 4:.6g}")
    for menu in (((1, 0), (3, 0)), ((1, 0), (2, budget.delta / 10), (4, 0)), ((2, 0), (3, 0), (0, budget.delta / 7))):
        offered = tuple((size, Fraction(chance)) for size, chance in menu)
        found = worst_delta(rule.start(), launched_by(rule, offered, step), offered, step, budget.epsilon)
        assert found <= float(budget.delta) * (1 + 1e-9)


def cells(mu: float) -> list[tuple[float, float]]:
    """The two worlds' chances of each of some cells of a Gaussian mechanism's answer: still GaussianDP(mu)."""
    normal = NormalDist()
    edges = [-math.inf, *(mu / 2 + shift for shift in (-2, -1, 0, 1, 2)), math.inf]
    return [
        (normal.cdf(high - mu) - normal.cdf(low - mu), normal.cdf(high) - normal.cdf(low))
        for low, high in pairwise(edges)
    ]


def responses(epsilon: float) -> list[tuple[float, float]]:
    truth = 1 / (1 + math.exp(-epsilon))
    return [(truth, 1 - truth), (1 - truth, truth)]


@pytest.mark.parametrize("settings", [{}, {"by": "gaussian"}], ids=str)
@pytest.mark.parametrize("budget", [ApproxDP("0.5", "0.1"), ApproxDP("0.05", "0.3"), ApproxDP(2, "0.01")], ids=repr)
def test_no_adaptive_analyst_gets_beyond_the_budget_with_gaussians_and_responses_mixed(budget, settings):
    rule = Filter(budget, **settings)
    size = Fraction(
        f"{math.sqrt(reserve_for(budget.epsilon, rule.slack or budget.delta * Fraction(9, 10)) * GRAIN) / 2:.6g}"
    )
    menu = [
        (claim(GaussianDP(size), every_step(), "a test", interaction="one-shot"), cells(float(size))),
        (claim(PureDP(size / 2), every_step(), "a test"), responses(float(size / 2))),
        (claim(PureDP(size * Fraction(3, 2)), every_step(), "a test"), responses(float(size * Fraction(3, 2)))),
    ]

    def value(account, zero: float, one: float, depth: int) -> float:
        best = max(zero - math.exp(budget.epsilon) * one, 0.0)
        for launch, outcomes in menu if depth else ():
            try:
                after = rule.admit(account, launch)
            except BudgetExceeded:
                continue
            best = max(best, sum(value(after, zero * p, one * q, depth - 1) for p, q in outcomes))
        return best

    found = value(rule.start(), 1.0, 1.0, 4)
    assert 0.1 * float(budget.delta) < found <= float(budget.delta) * (1 + 1e-9)


def test_filters_let_a_good_part_of_the_budget_be_used():
    for name in ("best", "gaussian"):
        used = worst(RULES[name], MIXED, BUDGET.epsilon)
        assert used > 0.3 * float(BUDGET.delta), "else the test above would say little"


@pytest.mark.parametrize("budget", [PureDP("0.9"), zCDP("0.2"), RenyiDP(4, "0.5")], ids=str)
def test_filters_in_other_measures_keep_every_epsilon_delta_that_their_budget_implies(budget):
    for epsilon in (Fraction(0), Fraction(1, 2), Fraction(1)):
        assert worst(Filter(budget), PURE, epsilon) <= budget.delta_at(epsilon) * (1 + 1e-9) + 1e-15


@pytest.mark.parametrize("kind", ["filter", "mixture", "stitched"])
def test_stopping_at_a_time_uniform_odometer_keeps_its_delta(kind):
    """Launch while the odometer reads at most 1; pure launches, so delta' may be all of delta."""
    odometer = getattr(Odometer, kind)(BUDGET.delta, tuned_for=1, slack=BUDGET.delta)

    @cache
    def launch(account, index):
        loss = PureDP(PURE[index][0] * STEP)
        after = odometer.admit(account, claim(loss, every_step(), "a test", interaction="one-shot"))
        return after if odometer.loss(after).epsilon_at(BUDGET.delta) <= 1 else None

    assert worst_delta(odometer.start(), launch, PURE, STEP, BUDGET.epsilon) <= float(BUDGET.delta)


def test_stopping_when_the_optimal_accountant_says_so_is_beaten():
    """Optimal composition under adaptive parameters is false: the same program finds an analyst who exceeds it."""
    menu: Menu = ((1, Fraction(0)), (8, Fraction(0)))

    @cache
    def launch(counts, index):
        after = (*counts[:index], counts[index] + 1, *counts[index + 1 :])
        return after if exact_optimal_delta(after, menu, STEP, BUDGET.epsilon) <= float(BUDGET.delta) else None

    assert worst_delta((0, 0), launch, menu, STEP, BUDGET.epsilon) > 1.2 * float(BUDGET.delta)


def test_a_reserve_that_forgot_its_condition_is_beaten():
    """The formula for what is left, used where it has no solution (2v < (3 + 2 sqrt 2) epsilon^2), gives too much."""

    def launch(left, index):
        square = (PURE[index][0] * float(STEP)) ** 2
        root = math.sqrt(max((2 * left - square) ** 2 - 8 * left * square, 0.0))
        return (2 * left - square + root) / 4 if left > square / 2 else None

    slack = BUDGET.delta / 2
    start = reserve_for(BUDGET.epsilon, slack) * GRAIN
    worst_found = worst_delta(round(start, 3), lambda a, i: _rounded(launch(a, i)), PURE, STEP, BUDGET.epsilon)
    assert worst_found > 1.2 * float(slack)


def _rounded(value):
    return None if value is None else round(value, 3)

"""Budgets in Gaussian DP take every pure launch by its mu, beside Gaussian ones, and the best analyst stays within."""

import math
from fractions import Fraction
from functools import cache
from itertools import pairwise
from statistics import NormalDist

import pytest
from hypothesis import given
from hypothesis import strategies as st

from counterpoint.composition.filters import Filter
from counterpoint.composition.odometers import Odometer
from counterpoint.continual.counter import Counter
from counterpoint.errors import BudgetExceeded, NotCovered
from counterpoint.measures import ApproxDP, GaussianDP, PureDP, RenyiDP, zCDP
from counterpoint.mechanisms.additive import Laplace
from counterpoint.mechanisms.concurrent import Concurrent
from counterpoint.mechanisms.sparse_vector import SparseVector
from counterpoint.privacy.claims import claim
from counterpoint.privacy.relations import every_step

NORMAL = NormalDist()
BUDGET = GaussianDP(1)


def of(loss, interaction="one-shot"):
    return claim(loss, every_step(), "a test", interaction=interaction)


def mu_of(epsilon: float) -> float:
    return 2 * NORMAL.inv_cdf(1 / (1 + math.exp(-epsilon)))


@pytest.mark.parametrize(
    "mechanism", [Laplace("0.5", asks=3), SparseVector("0.5", 10), Counter(epsilon="0.5")], ids=repr
)
def test_every_pure_mechanism_is_admitted_by_its_mu_however_it_interacts(mechanism):
    for rule in (Filter(BUDGET), Odometer(GaussianDP)):
        total = rule.loss(rule.admit(rule.start(), mechanism.claim))
        assert float(total.mu) == pytest.approx(mu_of(0.5), rel=1e-12)


@given(st.fractions("1e-6", 30, max_denominator=10**6))
def test_the_mu_of_a_pure_launch_is_rounded_up_and_hardly(epsilon):
    square = (Odometer(GaussianDP).start() + PureDP(epsilon)).squares
    mu = PureDP(epsilon).as_gaussian().mu
    assert mu**2 <= square <= mu**2 * (1 + Fraction(1, 10**40))
    # epsilon-DP follows from neither more nor less: its own delta at 0 is that of G_mu
    assert GaussianDP(mu).delta_at(0) == pytest.approx(math.tanh(float(epsilon) / 2), rel=1e-9)


@pytest.mark.parametrize(
    ("loss", "interaction", "why"),
    [
        (ApproxDP("0.1", "1e-9"), "one-shot", "exposed, which no mu bounds"),
        (zCDP("0.1"), "one-shot", "does not imply GaussianDP"),
        (RenyiDP(8, "0.1"), "one-shot", "does not imply GaussianDP"),
        (GaussianDP("0.1"), "endless", "without finite communication"),
    ],
    ids=repr,
)
def test_what_has_no_mu_is_refused_with_the_reason(loss, interaction, why):
    rule = Filter(BUDGET)
    with pytest.raises(NotCovered, match=why):
        rule.admit(rule.start(), of(loss, interaction))


@pytest.mark.parametrize("interaction", ["one-shot", "finite", "memoryless"])
def test_gaussian_launches_add_in_squares_beside_pure_ones(interaction):
    rule = Filter(BUDGET)
    account = rule.admit(rule.start(), of(GaussianDP("0.8"), interaction))
    left = rule.remaining(account).epsilon
    assert mu_of(float(left)) == pytest.approx(0.6, rel=1e-10)
    account = rule.admit(account, of(PureDP(left), "endless"))
    with pytest.raises(BudgetExceeded):
        rule.admit(account, of(PureDP("0.3"), "endless"))


@given(st.fractions("1e-100", 10**7), st.fractions(0, 1))
def test_what_remains_is_admitted_and_hardly_more_would_be(mu, part):
    rule = Filter(GaussianDP(mu))
    account = rule.admit(rule.start(), of(GaussianDP(mu * part)))
    left = rule.remaining(account).epsilon
    assert rule.fits(account, PureDP(left))
    assert not rule.fits(account, PureDP(left * (1 + Fraction(1, 10**9)) + Fraction(1, 10**300)))


def test_a_gaussian_budget_pays_pure_launches_exactly_where_squares_of_mu_would_end():
    """26 by squares, 39 by the closed form."""
    rule = Filter(GaussianDP("0.6477265306887304308115582"))
    account = rule.start()
    for _ in range(40):
        account = rule.admit(account, of(PureDP("0.1"), "endless"))
    assert not rule.fits(account, PureDP("0.1")) and rule.loss(account).within(rule.budget)


@given(st.fractions("1e-60", 30), st.fractions(0, "0.99"), st.fractions("1e-30", 3))
def test_a_pure_launch_never_costs_more_than_its_mu_squared(mu, spent, epsilon):
    rest = Filter(GaussianDP(mu)).start().plus(GaussianDP(mu * spent), "one-shot") + PureDP(epsilon)
    plain = mu**2 * (1 - spent**2) - (Odometer(GaussianDP).start() + PureDP(epsilon)).squares
    assert plain < 0 or rest.left >= plain * (1 - Fraction(1, 10**300))


def test_a_gaussian_budget_can_be_delegated_inside_another():
    rule = Filter(BUDGET)
    inner = Concurrent(Filter(GaussianDP("0.6")), every_step())
    assert inner.claim.interaction == "memoryless"
    account = rule.admit(rule.start(), inner.claim)
    assert rule.loss(account) == GaussianDP("0.6")
    assert rule.fits(account, of(GaussianDP("0.8")))
    assert Concurrent(Filter(zCDP("0.1")), every_step()).claim.interaction == "endless"


def cells(mu: float, width: float) -> list[tuple[float, float]]:
    """The two worlds' chances of the cells into which an answer N(b mu, 1) is rounded: still GaussianDP(mu)."""
    edges = [-math.inf, *(mu / 2 + width * (shift - 4) for shift in range(9)), math.inf]
    return [(NORMAL.cdf(b - mu) - NORMAL.cdf(a - mu), NORMAL.cdf(b) - NORMAL.cdf(a)) for a, b in pairwise(edges)]


def responses(epsilon: float) -> list[tuple[float, float]]:
    truth = 1 / (1 + math.exp(-epsilon))
    return [(truth, 1 - truth), (1 - truth, truth)]


MENUS = {
    "gaussians": [(GaussianDP("0.5"), cells(0.5, 0.5)), (GaussianDP("0.6"), cells(0.6, 0.4))],
    "responses": [(PureDP("0.2"), responses(0.2)), (PureDP("0.5"), responses(0.5))],
    "both": [(GaussianDP("0.4"), cells(0.4, 0.5)), (PureDP("0.3"), responses(0.3)), (PureDP("0.6"), responses(0.6))],
}


def worst(rule, menu, epsilon: float, depth: int) -> float:
    """The largest delta at `epsilon` over all adaptive analysts who launch at most so often."""

    @cache
    def admitted(account, index):
        try:
            return rule.admit(account, of(menu[index][0]))
        except BudgetExceeded:
            return None

    def value(account, zero: float, one: float, left: int) -> float:
        best = max(zero - math.exp(epsilon) * one, 0.0)
        for index in range(len(menu)) if left else ():
            after = admitted(account, index)
            if after is not None:
                best = max(best, sum(value(after, zero * p, one * q, left - 1) for p, q in menu[index][1]))
        return best

    return value(rule.start(), 1.0, 1.0, depth)


@pytest.mark.parametrize("menu", MENUS.values(), ids=MENUS)
@pytest.mark.parametrize("epsilon", [0.0, 0.25, 1.0])
def test_no_adaptive_analyst_gets_beyond_a_gaussian_budget(menu, epsilon):
    limit = BUDGET.delta_at(epsilon)
    assert 0.05 * limit < worst(Filter(BUDGET), menu, epsilon, 4) <= limit * (1 + 1e-9)


def test_counting_pure_launches_by_their_square_would_be_beaten():
    """The planted mistake: mu = epsilon, as in zCDP, where RR(epsilon) has mu = 1.25 epsilon and more."""
    loose = [(GaussianDP(1), responses(1.0))]
    assert worst(Filter(BUDGET), loose, 0.0, 1) > BUDGET.delta_at(0) * 1.2

"""Planned launches: as many as the fixed optimum, exchanged at certified rates, and no adaptive analyst gets beyond."""

import json
import random
from fractions import Fraction
from pathlib import Path

import mpmath
import pytest
from tests.composition.test_validity import launched_by, worst_delta

import counterpoint as cp
from counterpoint.composition import planned
from counterpoint.composition.filters import Filter
from counterpoint.composition.fixed import compose
from counterpoint.composition.planned import exchange
from counterpoint.composition.reserve import UNIT
from counterpoint.encoding import decode, encode
from counterpoint.errors import InvalidParameter, NotCovered
from counterpoint.measures import ApproxDP, GaussianDP, PureDP, zCDP

VECTORS = json.loads((Path(__file__).parent.parent / "vectors" / "residues.json").read_text())


@pytest.mark.parametrize("row", VECTORS["plan_largest_n"], ids=lambda row: f"{row['budget']}, {row['launch']}")
def test_planned_launches_reach_the_optimum_for_fixed_parameters(row):
    loss = PureDP(row["launch"])
    rule = Filter.planned(ApproxDP(*row["budget"]), loss)
    assert rule.would_admit(rule.start(), loss) == row["n"]
    assert compose.optimal([loss] * (row["n"] + 1)).delta_at(row["budget"][0]) > float(row["budget"][1])


@pytest.mark.parametrize(
    "budget, loss, count",
    [
        ((3, "1e-6"), ApproxDP("0.1", "1e-9"), 46),
        ((1, "1e-6"), ApproxDP("0.01", "1e-10"), 560),
        ((8, "1e-6"), ApproxDP("0.1", "1e-10"), 238),
    ],
    ids=str,
)
def test_planned_deltas_are_kept_for_them(budget, loss, count):
    rule = Filter.planned(ApproxDP(*budget), loss)
    assert rule.would_admit(rule.start(), loss) == count


@pytest.mark.parametrize(
    "row", VECTORS["plan_exchange"], ids=lambda row: f"{row['n']} x {row['planned']}: {row['launch']}"
)
def test_another_loss_costs_the_reference_number_of_copies(row):
    assert exchange(row["n"], Fraction(row["planned"]), Fraction(row["launch"])) == row["k"]


@pytest.mark.parametrize("row", VECTORS["rest_after_planned"], ids=lambda row: f"{row['budget']}, {row['copies']}")
def test_the_reserve_beside_a_plan_is_the_reference_value_but_for_a_millionth(row):
    rule = Filter.planned(ApproxDP(*row["budget"]), [PureDP(row["planned"])] * row["copies"])
    v = Fraction(rule.start().left, UNIT)
    assert v <= Fraction(row["v"]) <= v * (1 + Fraction(1, 10**4))


def stick(copies, each, x):
    """H of n responses at e^x, directly."""
    p = 1 / (1 + mpmath.exp(-each))
    terms = (
        mpmath.binomial(copies, j) * p**j * (1 - p) ** (copies - j) * (1 - mpmath.exp(x - (2 * j - copies) * each))
        for j in range(copies + 1)
        if (2 * j - copies) * each > x
    )
    return mpmath.fsum(terms)


@pytest.mark.parametrize("copies, each, epsilon", [(12, "0.2", "0.5"), (25, "0.1", "0.17"), (9, "0.5", "1.2")])
def test_an_exchange_holds_at_every_threshold_and_one_copy_less_does_not(copies, each, epsilon):
    taken = exchange(copies, Fraction(each), Fraction(epsilon))
    with mpmath.workdps(30):
        e1, e = mpmath.mpf(each), mpmath.mpf(epsilon)
        p = 1 / (1 + mpmath.exp(-e))

        def excess(paid, x):
            rest = copies - paid
            return p * stick(rest, e1, x - e) + (1 - p) * stick(rest, e1, x + e) - stick(copies, e1, x)

        everywhere = [mpmath.mpf(n) / 50 * copies * e1 for n in range(-55, 56)]
        assert max(excess(taken, x) for x in everywhere) <= mpmath.mpf(10) ** -25
        knots = [(2 * j - copies) * e1 for j in range(copies + 1)]
        assert max(excess(taken - 1, x) for x in knots) > mpmath.mpf(10) ** -20


def test_of_thousands_of_copies_some_hundreds_are_looked_at_and_no_exchange_takes_long():
    each, epsilon = Fraction(11, 1000), Fraction(5, 100)
    assert exchange(5583, each, epsilon) == exchange(500, each, epsilon) <= exchange(100, each, epsilon)
    rule = Filter.planned(ApproxDP("0.056", "0.3"), PureDP(each))
    account, left = rule.start(), rule.remaining(rule.start()).epsilon
    assert rule.fits(account, PureDP(left)) and not rule.fits(account, PureDP(left * Fraction(101, 100)))


BUDGET = ApproxDP(1, "0.05")
STEP = Fraction(1, 10)
MENU = ((1, Fraction(0)), (2, Fraction(0)), (3, Fraction(0)), (5, Fraction(0)))


def worst(rule, menu=MENU, budget=BUDGET):
    return worst_delta(rule.start(), launched_by(rule, menu, STEP), menu, STEP, budget.epsilon)


PLANS = {
    "one loss": PureDP("0.2"),
    "a list": [PureDP("0.1")] * 3 + [PureDP("0.3")] * 4,
    "some, and a reserve": [PureDP("0.2")] * 4,
}


FEW = ((2, Fraction(0)), (5, Fraction(0)))
"""A menu of few choices: what is left depends on the order of launches, so that a longer one takes minutes."""


@pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS)
def test_no_adaptive_analyst_gets_beyond_a_planned_budget(plan):
    assert worst(Filter.planned(BUDGET, plan), FEW) <= float(BUDGET.delta) * (1 + 1e-9)


@pytest.mark.long
@pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS)
def test_no_adaptive_analyst_with_more_choices_does_either(plan):
    assert worst(Filter.planned(BUDGET, plan)) <= float(BUDGET.delta) * (1 + 1e-9)


def test_nor_with_deltas_that_were_not_planned():
    rule = Filter.planned(BUDGET, [PureDP("0.2")] * 5, slack="0.03")
    menu = ((2, Fraction(0)), (3, Fraction(1, 200)), (0, Fraction(1, 100)))
    assert 0.5 * float(BUDGET.delta) < worst(rule, menu) <= float(BUDGET.delta) * (1 + 1e-9)


def test_the_budget_is_reached_where_the_plan_fills_it():
    delta = compose.optimal([PureDP("0.2")] * 9).delta_at(1)
    budget = ApproxDP(1, Fraction(str(delta)) * Fraction(1000001, 1000000))
    rule = Filter.planned(budget, PureDP("0.2"))
    assert rule.would_admit(rule.start(), PureDP("0.2")) == 9
    assert (
        0.999 * delta <= worst(rule, ((2, Fraction(0)), (3, Fraction(0))), budget) <= float(budget.delta) * (1 + 1e-9)
    )


def test_an_exchange_that_costs_too_little_is_beaten(monkeypatch):
    """So the analysts above would find it."""
    delta = compose.optimal([PureDP("0.2")] * 9).delta_at(1)
    budget = ApproxDP(1, Fraction(str(delta)) * Fraction(1000001, 1000000))
    rule = Filter.planned(budget, PureDP("0.2"))
    monkeypatch.setattr(
        planned, "exchange", lambda copies, each, epsilon: -(-epsilon // each) if epsilon <= copies * each else None
    )
    assert worst(rule, ((2, Fraction(0)), (5, Fraction(0))), budget) > 1.01 * float(budget.delta)


def test_gaussians_are_paid_from_the_reserve_alone():
    rule = Filter.planned(ApproxDP(3, "1e-6"), [PureDP("0.1")] * 40)
    account = rule.start().plus(GaussianDP("0.2"), "one-shot")
    assert account.free == rule.start().free and account.left < rule.start().left
    assert not account.plus(GaussianDP("0.2"), "one-shot").keeps(rule.budget)
    with pytest.raises(NotCovered):
        rule.start() + zCDP("0.001")
    with pytest.raises(NotCovered):
        rule.start().plus(GaussianDP("0.1"), "endless")


@pytest.mark.parametrize("seed", range(4))
def test_what_remains_is_true_of_planned_budgets(seed):
    draw = random.Random(seed)  # noqa: S311 - which launches are tried is no secret
    rule = Filter.planned(ApproxDP(2, "1e-5"), [PureDP("0.1")] * 20, slack="8e-6")
    account = rule.start()
    for _ in range(6):
        loss = draw.choice([PureDP("0.1"), PureDP("0.03"), PureDP("0.15"), ApproxDP("0.1", "1e-7"), PureDP("0.4")])
        account = account + loss if rule.fits(account, loss) else account
    left = rule.remaining(account)
    assert rule.fits(account, ApproxDP(left.epsilon, left.delta))
    assert not rule.fits(account, PureDP(left.epsilon * (1 + Fraction(1, 10**9))))
    assert not rule.fits(account, ApproxDP(0, left.delta + Fraction(1, 10**20)))


def test_a_plan_is_stored_with_what_it_was_read_as():
    rule = Filter.planned(ApproxDP(3, "1e-6"), PureDP("0.1"))
    assert decode(encode(rule), Filter) == rule and b"46" in encode(rule)
    account = rule.start() + PureDP("0.1") + PureDP("0.3")
    assert decode(encode(account), type(account)) == account


def test_what_is_no_plan_is_refused():
    with pytest.raises(InvalidParameter):
        Filter.planned(PureDP(1), PureDP("0.1"))
    with pytest.raises(InvalidParameter):
        Filter.planned(ApproxDP(1, "1e-6"), [PureDP("0.1")] * 30)
    with pytest.raises(InvalidParameter):
        Filter.planned(ApproxDP(1, "1e-6"), PureDP("0.1"), slack=2)
    for plan in (zCDP("0.1"), [], [GaussianDP("0.1")], 5):
        with pytest.raises(NotCovered):
            Filter.planned(ApproxDP(1, "1e-6"), plan)


def test_a_session_says_how_many_more_would_fit_and_keeps_its_plan():
    rule = Filter.planned(ApproxDP(3, "1e-6"), PureDP("0.1"))
    with cp.Session(cp.Stream(bound=1), rule=rule) as session:
        assert session.would_admit(PureDP("0.1")) == 46
        session.launch(cp.Laplace("0.1"))
        session.launch(cp.Laplace("0.2"))
        assert session.would_admit(PureDP("0.1")) == 39
        assert session.loss.epsilon == Fraction(3, 10)
        session._engine.ledger.verify()


def test_what_a_grant_left_unused_is_not_returned_to_a_planned_filter():
    session = cp.Session(cp.Stream(bound=1), rule=Filter.planned(ApproxDP(3, "1e-6"), PureDP("0.1")))
    granted = session.grant("ann", PureDP(1))
    session.revoke(granted)
    before = session.loss
    with pytest.raises(NotCovered, match="PlannedRest is not a plain sum"):
        session.recount(granted)
    assert session.loss == before

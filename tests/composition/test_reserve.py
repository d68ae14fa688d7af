"""The Gaussian reserve: what a launch leaves is sound by computation, and the default filter comes near the optimum."""

import json
import math
import random
from fractions import Fraction
from pathlib import Path

import mpmath
import pytest
from hypothesis import given
from hypothesis import strategies as st

from counterpoint.composition.advanced import order_for
from counterpoint.composition.filters import Filter
from counterpoint.composition.fixed import compose
from counterpoint.composition.reserve import (
    BITS,
    UNIT,
    Payment,
    left_after,
    left_after_gaussian,
    opened,
    pure_within,
    reserve_beside,
    reserve_for,
)
from counterpoint.errors import BudgetExceeded
from counterpoint.measures import ApproxDP, GaussianDP, PureDP, RenyiDP, zCDP
from counterpoint.privacy.claims import claim
from counterpoint.privacy.relations import every_step

VECTORS = json.loads((Path(__file__).parent.parent / "vectors" / "residues.json").read_text())
MENU = [PureDP("0.01"), PureDP("0.3"), zCDP("0.01"), ApproxDP("0.1", "1e-9"), GaussianDP("0.1")]


def hockey_stick(x, v):
    """E[(W - e^x)+] of GaussianDP(sqrt v)."""
    if v <= 0:
        return max(mpmath.mpf(0), 1 - mpmath.exp(x))
    mu = mpmath.sqrt(v)
    return mpmath.ncdf(-x / mu + mu / 2) - mpmath.exp(x) * mpmath.ncdf(-x / mu - mu / 2)


def after_a_response(x, epsilon, left):
    """The same of RR(epsilon) followed by GaussianDP(sqrt left)."""
    p = 1 / (1 + mpmath.exp(-epsilon))
    return p * hockey_stick(x - epsilon, left) + (1 - p) * hockey_stick(x + epsilon, left)


@given(
    epsilon=st.fractions(Fraction(1, 1000), 5, max_denominator=1000),
    times=st.fractions(Fraction(3, 2), 200, max_denominator=100),
    x=st.fractions(-6, 8, max_denominator=50),
)
def test_a_response_and_what_it_leaves_reveal_no_more_than_the_reserve(epsilon, times, x):
    reserve = int(times * epsilon * epsilon * UNIT)
    left = left_after(reserve, epsilon)
    if left is None:
        return
    with mpmath.workdps(40):
        v, rest = mpmath.mpf(reserve) / UNIT, mpmath.mpf(left) / UNIT
        e = mpmath.mpf(epsilon.numerator) / epsilon.denominator
        at = mpmath.mpf(x.numerator) / x.denominator * mpmath.sqrt(v)
        assert after_a_response(at, e, rest) <= hockey_stick(at, v) * (1 + mpmath.mpf(10) ** -25)


def test_leaving_a_little_more_would_be_unsound_somewhere():
    """Were the launch charged epsilon^2 alone, the total variation would be too large: the test above can fail."""
    with mpmath.workdps(30):
        v, e = mpmath.mpf(1) / 25, mpmath.mpf(1) / 10
        assert after_a_response(0, e, v - e * e) > hockey_stick(0, v)


@pytest.mark.parametrize("row", VECTORS["gaussian_residue"], ids=lambda row: f"{row['v']}, {row['epsilon']}")
def test_what_a_response_leaves_is_the_reference_value_and_never_more(row):
    v, exact = Fraction(row["v"]), Fraction(row["left"])
    left = Fraction(left_after(int(v * UNIT), Fraction(row["epsilon"])), UNIT)
    assert left <= exact * (1 + Fraction(1, 10**23)), "the reference has 25 digits"
    assert exact - left <= (v - exact) / 1000, "a thousandth of the payment at most is given away"
    assert left > Fraction(row["closed_form"])


@pytest.mark.parametrize("row", VECTORS["gaussian_reserve_counts"], ids=lambda row: row["launch"])
def test_so_many_responses_fit_into_the_mu_of_a_budget(row):
    left, count = int(Fraction(row["mu"]) ** 2 * UNIT), 0
    while (left := left_after(left, Fraction(row["launch"]))) is not None:
        count += 1
    assert count == row["exact"]


FIRST = [row for row in VECTORS["rest_after_planned"] if row["copies"] == 1]


@pytest.mark.parametrize("row", FIRST, ids=lambda row: f"{row['budget']}, {row['planned']}")
def test_the_first_launch_takes_its_own_part_and_leaves_the_reference_value(row):
    (epsilon, delta), first, v = map(Fraction, row["budget"]), Fraction(row["planned"]), Fraction(row["v"])
    left = Fraction(reserve_beside(first, epsilon, delta), UNIT)
    assert left <= v * (1 + Fraction(1, 10**23)) and left >= v * (1 - Fraction(1, 10**11))
    with mpmath.workdps(40):
        spent = after_a_response(mpmath.mpf(str(row["budget"][0])), mpmath.mpf(row["planned"]), mpmath.mpf(row["v"]))
        assert abs(spent / mpmath.mpf(row["budget"][1]) - 1) < mpmath.mpf(10) ** -15


def test_the_first_launch_leaves_more_than_a_later_one_would():
    for first in ("0.1", "0.5", "0.9"):
        later = left_after(reserve_for(Fraction(1), Fraction(1, 10**6)), Fraction(first))
        assert opened(Payment(Fraction(first), None, Fraction(0)), Fraction(1), Fraction(1, 10**6)) > (later or 0)


def test_no_reserve_is_opened_by_a_launch_that_is_not_within_the_budget():
    assert reserve_beside(Fraction(11, 10), Fraction(1), Fraction(1, 10**6)) is None
    assert reserve_beside(Fraction(1), Fraction(1), Fraction(1, 10**6)) is not None


def total_variation(v):
    return mpmath.erf(mpmath.sqrt(v / 8))


@pytest.mark.parametrize("seed", range(3))
def test_what_is_left_satisfies_the_one_inequality_wherever_and_hardly_more_would(seed):
    """At 0, where it decides: computed as a total variation, and not by the formulas of the code."""
    draw = random.Random(seed)  # noqa: S311 - which sizes are tried is no secret
    for _ in range(25):
        epsilon = Fraction(f"{math.exp(draw.uniform(-6, 0)):.4g}")
        v = Fraction(f"{float(epsilon) ** 2 * math.exp(draw.uniform(0.6, 3.6)):.6g}")
        left = left_after(int(v * UNIT), epsilon)
        if left is None:
            continue
        with mpmath.workdps(40):
            e, rest = mpmath.mpf(epsilon.numerator) / epsilon.denominator, mpmath.mpf(left) / UNIT
            whole = total_variation(mpmath.mpf(v.numerator) / v.denominator)
            assert after_a_response(0, e, rest) <= whole * (1 + mpmath.mpf(10) ** -30)
            cost = mpmath.mpf(v.numerator) / v.denominator - rest
            assert after_a_response(0, e, rest + cost / 10) > whole


def test_what_is_left_does_not_depend_on_the_unit_that_it_is_counted_in():
    for v, epsilon in ((Fraction(1, 10**70), Fraction(1, 10**36)), (Fraction(1, 3), Fraction(1, 10))):
        fine, finer = (left_after(int(v * 2**bits), epsilon, bits) / 2**bits for bits in (BITS + 200, BITS + 300))
        assert fine == pytest.approx(finer, rel=1e-9) and fine < float(v)


@given(st.integers(1, UNIT), st.fractions(0, 3, max_denominator=10**6))
def test_what_is_left_shrinks_and_more_reserve_leaves_more(reserve, epsilon):
    left, more = left_after(reserve, epsilon), left_after(2 * reserve, epsilon)
    if left is not None:
        assert 0 <= left <= reserve and (epsilon == 0 or left < reserve)
        assert more is not None and more >= left


def test_the_smallest_launch_counts():
    assert left_after(UNIT, Fraction(1, 10**300)) < UNIT
    assert left_after_gaussian(UNIT, Fraction(1, 10**300)) == UNIT - 1


def test_a_last_launch_fits_where_it_is_gaussian_by_itself():
    epsilon = pure_within(UNIT)
    assert left_after(UNIT, epsilon) is not None
    assert left_after(UNIT, epsilon + Fraction(1, 10**9)) is None
    assert left_after(0, Fraction(1, 10**9)) is None


def test_a_gaussian_launch_beyond_what_is_left_does_not_fit():
    assert left_after_gaussian(UNIT, Fraction(1)) == 0
    assert left_after_gaussian(UNIT, 1 + Fraction(1, 10**9)) is None
    rule = Filter(ApproxDP(1, "1e-6"), by="gaussian")
    with pytest.raises(BudgetExceeded):
        rule.admit(rule.start(), claim(GaussianDP(3), every_step(), "a test", interaction="one-shot"))


def test_a_reserve_is_within_its_slack():
    with mpmath.workdps(60):
        delta = hockey_stick(mpmath.mpf(1), mpmath.mpf(reserve_for(Fraction(1), Fraction(1, 10**6))) / UNIT)
        assert mpmath.mpf("0.999e-6") < delta <= mpmath.mpf("1e-6")


def smallest_budget(losses, **options) -> float:
    """The smallest epsilon, to 1e-4, with which a filter at delta = 1e-6 admits all these losses."""

    def admits(epsilon: Fraction) -> bool:
        rule = Filter(ApproxDP(epsilon, "1e-6"), **options)
        account = rule.start()
        try:
            for loss in losses:
                account = rule.admit(account, claim(loss, every_step(), "a test"))
        except BudgetExceeded:
            return False
        return True

    low, high = Fraction(0), Fraction(16)
    while high - low > Fraction(1, 10**4):
        middle = (low + high) / 2
        low, high = (low, middle) if admits(middle) else (middle, high)
    return float(high)


@pytest.mark.parametrize(
    "losses", [[ApproxDP("0.1", "1e-9")] * 100, [PureDP("0.01")] * 1000], ids=["100 x (0.1, 1e-9)", "1000 x 0.01"]
)
def test_the_default_filter_is_within_eight_percent_of_the_optimum_and_never_below(losses):
    optimal = compose.optimal(losses).epsilon_at(1e-6)
    assert optimal <= smallest_budget(losses) <= 1.08 * optimal


def test_the_default_filter_is_as_good_as_basic_where_basic_is_best():
    losses = [PureDP(Fraction(n, 40)) for n in range(1, 21)]
    basic = float(sum(loss.epsilon for loss in losses))
    assert 0.99 * basic < smallest_budget(losses) <= basic + 2e-4


@pytest.mark.parametrize("epsilon", ["0.01", "0.1", "0.3"])
@pytest.mark.parametrize("launches", [10, 30, 100])
def test_for_equal_launches_the_default_filter_is_no_worse_than_basic_or_renyi(epsilon, launches):
    losses = [PureDP(epsilon)] * launches
    default = smallest_budget(losses)
    assert default <= smallest_budget(losses, by="renyi") + 1e-4
    assert default <= float(epsilon) * launches + 2e-4


def one_order(budget):
    """The filter of one order, and that order by itself."""
    return Filter(budget, slack=budget.delta / 2, alpha=order_for(budget.epsilon, budget.delta / 2)), Filter(
        budget, by="renyi"
    )


def test_with_one_order_the_first_launch_divides_the_slack():
    """If it is zCDP or large the Renyi part has all of the slack, as by="renyi"; if it is small, a fifth."""
    rule, renyi = one_order(ApproxDP(1, "1e-6"))
    for first in (zCDP("0.001"), PureDP("0.2")):
        account, other = rule.start() + first, renyi.start() + first
        assert account.left is None
        for n in range(1, 500):
            assert rule.fits(account, zCDP(Fraction(n, 10**4))) == renyi.fits(other, zCDP(Fraction(n, 10**4)))
    small, other = rule.start() + PureDP("0.001"), renyi.start() + PureDP("0.001")
    assert small.left is not None
    fits = [[r.fits(a, zCDP(Fraction(n, 10**4))) for n in range(1, 500)] for r, a in ((rule, small), (renyi, other))]
    assert 0 < sum(fits[0]) < sum(fits[1])


def test_with_one_order_the_loss_is_read_with_all_of_the_slack_whatever_was_launched_first():
    rule, renyi = one_order(ApproxDP(2, "1e-6"))
    account, other = rule.start(), renyi.start()
    for _ in range(400):
        account, other = account + PureDP("0.01"), other + PureDP("0.01")
    assert account.left is not None
    assert float(rule.loss(account).epsilon) == pytest.approx(float(renyi.loss(other).epsilon), rel=1e-12)


@pytest.mark.parametrize("rule", [*one_order(ApproxDP(3, "1e-6")), Filter(ApproxDP(3, "1e-6"), slack="5e-7")], ids=repr)
@given(st.lists(st.sampled_from(MENU), max_size=30), st.data())
def test_no_part_of_what_was_admitted_has_lost_more_than_the_whole(rule, losses, data):
    """With the slack given: by default it depends on the first launch, and so does the reading."""
    whole, part = rule.start(), rule.start()
    for loss in losses:
        whole = whole.plus(loss, "finite")
    for loss in data.draw(st.permutations([loss for loss in losses if data.draw(st.booleans())])):
        part = part.plus(loss, "finite")
    if whole.keeps(rule.budget) and part.keeps(rule.budget):
        assert part.total.epsilon <= whole.total.epsilon


def test_every_measure_is_taken_after_every_other():
    rule = Filter(ApproxDP(4, "1e-6"))
    account = rule.start()
    for loss in (PureDP("0.01"), zCDP("0.001"), RenyiDP(40, "0.001"), GaussianDP("0.01"), ApproxDP("0.01", "1e-9")):
        account = rule.admit(account, claim(loss, every_step(), "a test", interaction="finite"))
    assert rule.loss(account).epsilon < 4


def test_a_zcdp_claim_ends_the_reserve_and_the_basic_sum():
    rule = Filter(ApproxDP(4, "1e-6"))
    account = rule.start() + PureDP("0.01") + zCDP("0.001")
    assert account.left is None and account.basic is None
    assert rule.loss(account).epsilon > 0.03, "only Renyi parts are left, and their tail bounds are worth something"


@pytest.mark.parametrize("epsilon", [10**13, 10**100, 10**308, 10**398, Fraction(1, 10**390)], ids="abcde")
@pytest.mark.parametrize("delta", ["1e-300", "0.5", 1])
def test_absurd_budgets_are_budgets(epsilon, delta):
    rule = Filter(ApproxDP(epsilon, delta))
    account = rule.admit(rule.start(), claim(PureDP(Fraction(epsilon, 50)), every_step(), "a test"))
    rest = rule.remaining(account).epsilon
    assert rest > 0 and rule.fits(account, PureDP(rest)) and not rule.fits(account, PureDP(rest * 9))

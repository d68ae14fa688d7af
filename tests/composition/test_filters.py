"""Filters: exact at the boundary, closed to nonsense, and a dry run that is the commit."""

import json
import pathlib
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from counterpoint.composition.filters import Filter
from counterpoint.composition.odometers import Odometer
from counterpoint.composition.parallel import Parallel
from counterpoint.encoding import decode, encode
from counterpoint.errors import BudgetExceeded, CounterpointError, InvalidParameter, NotCovered
from counterpoint.measures import (
    ApproxDP,
    ApproxzCDP,
    GaussianDP,
    OneSidedDP,
    ProbabilisticDP,
    PureDP,
    RenyiDP,
    TradeOff,
    Unbounded,
    tCDP,
    zCDP,
)
from counterpoint.privacy.claims import Claim, claim
from counterpoint.privacy.relations import every_step

VECTORS = json.loads((pathlib.Path(__file__).parents[1] / "vectors" / "accounting.json").read_text())
BUDGET = ApproxDP(1, 1e-6)
FILTERS = [
    Filter(PureDP(1)),
    Filter(zCDP(0.5)),
    Filter(RenyiDP(8, 0.7)),
    Filter(tCDP(0.1, 10)),
    Filter(BUDGET),
    Filter(BUDGET, by="basic"),
    Filter(BUDGET, by="renyi"),
    Filter(BUDGET, by="advanced"),
    Filter(BUDGET, by="gaussian"),
    Filter(ApproxDP(1, 0)),
]
everyone = pytest.mark.parametrize("rule", FILTERS, ids=str)


def of(loss, interaction="one-shot") -> Claim:
    return claim(loss, every_step(), "a test", interaction=interaction)


def launch(rule, *losses):
    account, admitted = rule.start(), []
    for loss in losses:
        try:
            account = rule.admit(account, of(loss))
            admitted.append(True)
        except BudgetExceeded:
            admitted.append(False)
    return account, admitted


AMOUNTS = st.fractions(0, 3, max_denominator=50) | st.sampled_from([Fraction(1, 10**300), 1 + Fraction(1, 10**300)])
SMALL = st.fractions(0, 1, max_denominator=50)
KINDS = [
    st.builds(PureDP, AMOUNTS),
    st.builds(ApproxDP, AMOUNTS, SMALL),
    st.builds(zCDP, AMOUNTS),
    st.builds(ApproxzCDP, AMOUNTS, SMALL),
    st.builds(RenyiDP, st.sampled_from([2, 8]), AMOUNTS),
    st.builds(tCDP, AMOUNTS, st.sampled_from([10, 20])),
    st.builds(GaussianDP, AMOUNTS),
]
PAIRS = st.sampled_from(KINDS).flatmap(lambda kind: st.tuples(kind, kind))


@given(PAIRS | st.tuples(st.one_of(KINDS), st.one_of(KINDS)), st.sampled_from([1, 10, 2**62]))
def test_a_budget_is_used_up_by_more_than_all_its_parts_exactly_if_the_total_is_not_within_it(losses, parts):
    total, budget = losses
    assert (0 <= total.used_of(budget, parts) <= parts) == total.within(budget)


@everyone
@given(st.lists(st.fractions("1/100", "1/2", max_denominator=100), max_size=8))
def test_what_a_filter_admits_it_says_to_be_within_its_parts(rule, epsilons):
    account, _ = launch(rule, *map(PureDP, epsilons))
    assert 0 <= rule.used(account, 2**62) <= 2**62


def test_t02_the_direction_of_the_advanced_filter():
    rule = Filter(ApproxDP(1, 1e-5), by="advanced", slack=1e-6)
    account, admitted = launch(rule, PureDP(0.01))
    assert admitted == [True] and 0.052 < rule.loss(account).epsilon < 0.054
    with pytest.raises(BudgetExceeded):
        rule.admit(rule.start(), of(PureDP(5)))


def test_t03_a_refusal_changes_nothing():
    rule = Filter(RenyiDP(2, 1))
    account, admitted = launch(rule, RenyiDP(2, 0.6), RenyiDP(2, 0.6), RenyiDP(2, 0.4))
    assert admitted == [True, False, True] and rule.loss(account) == RenyiDP(2, 1)


def test_t06_budgets_are_compared_coordinate_by_coordinate():
    assert not ApproxDP(0.5, 0.9).within(BUDGET)
    assert not ApproxDP(2, 1e-9).within(BUDGET) and ApproxDP(1, 1e-6).within(BUDGET)
    assert not PureDP(0.1).within(BUDGET), "another measure"
    assert launch(Filter(BUDGET, by="basic"), ApproxDP(0.5, 0.9))[1] == [False]


@pytest.mark.parametrize("typed", [0.1, "0.1", Fraction(1, 10)])
def test_t12_a_budget_is_hit_exactly(typed):
    for rule, count in [
        (Filter(PureDP(1)), 10),
        (Filter(PureDP(0.3)), 3),
        (Filter(ApproxDP(1, 0)), 10),
        (Filter(ApproxDP(1, 1e-6), by="basic"), 10),
        (Filter(zCDP("0.05")), 10),  # 0.1^2/2 each
    ]:
        account, admitted = launch(rule, *[PureDP(typed)] * count)
        assert all(admitted)
        with pytest.raises(BudgetExceeded):
            rule.admit(account, of(PureDP("1e-200")))
        assert rule.remaining(account).epsilon == 0


def test_three_thirds_fill_a_budget_of_one():
    assert launch(Filter(PureDP(1)), *[PureDP("1/3")] * 4)[1] == [True, True, True, False]


@pytest.mark.parametrize(
    "options",
    [
        {"slack": 2e-6},
        {"slack": 0},
        {"slack": 1},
        {"slack": float("nan")},
        {"slack": -1},
        {"slack": True},
        {"alpha": 1},
        {"alpha": 0.5},
        {"alpha": float("nan")},
        {"by": "optimal"},
        {"by": "basic", "slack": 1e-7},
        {"by": "advanced", "alpha": 3},
    ],
)
def test_t11_an_invalid_configuration_fails_closed(options):
    with pytest.raises(InvalidParameter):
        Filter(BUDGET, **options)


def test_t11_more_of_the_kind():
    for budget in ("1", None, 1.0):
        with pytest.raises(InvalidParameter):
            Filter(budget)  # type: ignore[arg-type]
    with pytest.raises(InvalidParameter):
        Filter(PureDP(1), by="advanced")
    with pytest.raises(InvalidParameter):
        Filter(ApproxDP(1, 0), by="renyi")
    with pytest.raises(NotCovered):
        Filter(ProbabilisticDP(1, "0.1"))


def test_all_delta_may_be_slack_and_then_only_pure_launches_fit():
    rule = Filter(BUDGET, slack=1e-6)
    assert launch(rule, PureDP(0.5), ApproxDP(0.1, "1e-12"))[1] == [True, False]


@everyone
@settings(max_examples=30, deadline=None)
@given(st.lists(st.fractions(0, 1, max_denominator=100).map(PureDP), max_size=8))
def test_the_loss_never_exceeds_the_budget_and_refusals_are_invisible(rule, losses):
    account, admitted = launch(rule, *losses)
    assert rule.loss(account).within(rule.budget)
    clean, _ = launch(rule, *(loss for loss, fits in zip(losses, admitted, strict=True) if fits))
    assert clean == account


@everyone
@settings(max_examples=20, deadline=None)
@given(st.lists(st.fractions(0, "1/3", max_denominator=100).map(PureDP), max_size=4))
def test_what_remains_fits_and_a_little_more_does_not(rule, losses):
    account, _ = launch(rule, *losses)
    left = rule.remaining(account).epsilon
    assert rule.fits(account, PureDP(left))
    assert rule.admit(account, of(PureDP(left)))
    more = left * (1 + Fraction(1, 10**9)) + Fraction(1, 10**29)
    assert not rule.fits(account, PureDP(more))


EVERY_FILTER = [*FILTERS, Filter(GaussianDP(1)), Filter(ApproxzCDP("0.5", "1e-6"))]
SIZES = st.sampled_from(["0", "1e-300", "0.01", "0.1", "1/3", "0.5", "1", "3", "1e200"]).map(Fraction)
CHANCES = st.sampled_from(["0", "1e-300", "1e-7", "4e-7", "1e-6", "0.5", "1"]).map(Fraction)
ORDERS = st.sampled_from(["1.5", "8", "10", "40"]).map(Fraction)
CLAIMS = st.builds(
    of,
    st.one_of(
        st.builds(PureDP, SIZES),
        st.builds(ApproxDP, SIZES, CHANCES),
        st.builds(ProbabilisticDP, SIZES, CHANCES),
        st.builds(OneSidedDP, SIZES, CHANCES),
        st.builds(zCDP, SIZES),
        st.builds(ApproxzCDP, SIZES, CHANCES),
        st.builds(RenyiDP, ORDERS, SIZES),
        st.builds(tCDP, SIZES, ORDERS),
        st.builds(GaussianDP, SIZES),
        st.just(TradeOff([(0, 1), (1, 0)])),
        st.just(Unbounded()),
    ),
    st.sampled_from(["one-shot", "finite", "memoryless", "endless"]),
)


@pytest.mark.parametrize("rule", EVERY_FILTER, ids=str)
@settings(max_examples=60, deadline=None)
@given(st.lists(CLAIMS, max_size=6))
def test_a_launch_fits_exactly_if_it_is_admitted(rule, claims):
    account = rule.start()
    for claimed in claims:
        fits = rule.fits(account, claimed)
        assert rule.fits(account, claimed.loss) == rule.fits(account, of(claimed.loss, "endless"))
        try:
            account = rule.admit(account, claimed)
        except CounterpointError:
            assert not fits
        else:
            assert fits and rule.loss(account).within(rule.budget)


@pytest.mark.parametrize("rule", EVERY_FILTER, ids=str)
@settings(max_examples=30, deadline=None)
@given(st.lists(CLAIMS, max_size=4))
def test_what_a_refusal_says_would_fit_is_admitted(rule, claims):
    account = rule.start()
    for claimed in claims:
        try:
            account = rule.admit(account, claimed)
        except BudgetExceeded as refused:
            assert rule.fits(account, of(refused.would_fit)), "of a mechanism that answers once"
            left = rule.remaining(account)
            if isinstance(rule.budget, ApproxDP | ApproxzCDP):
                assert rule.fits(account, of(ApproxDP(left.epsilon, left.delta))), "both at once"
        except CounterpointError:
            pass


def test_a_loss_that_only_an_answer_once_may_have_does_not_fit_without_saying_so():
    rule = Filter(GaussianDP(1))
    assert rule.fits(rule.start(), of(GaussianDP("0.5"), "finite"))
    assert not rule.fits(rule.start(), GaussianDP("0.5")), "admit would refuse it of a mechanism that talks for ever"
    with pytest.raises(NotCovered):
        rule.admit(rule.start(), of(GaussianDP("0.5"), "endless"))


@pytest.mark.parametrize("interaction", ["Endless", "endles", "", None, 1], ids=repr)
def test_a_claim_whose_interaction_is_misspelt_is_refused(interaction):
    """Everything but "endless" was taken for finite, which some theorems need."""
    with pytest.raises(InvalidParameter, match="one-shot, finite, memoryless, endless"):
        of(GaussianDP("0.5"), interaction)


@pytest.mark.parametrize("nothing", [0.1, "PureDP(1)", None, PureDP], ids=repr)
def test_only_claims_and_losses_can_fit(nothing):
    with pytest.raises(InvalidParameter, match="a claim or a loss"):
        Filter(PureDP(1)).fits(Filter(PureDP(1)).start(), nothing)


def test_a_gaussian_budget_says_what_would_fit_in_its_own_measure():
    rule = Filter(GaussianDP(5))
    account, _ = launch(rule, GaussianDP(3))
    with pytest.raises(BudgetExceeded, match=r"at most GaussianDP\(4\) more would fit"):
        rule.admit(account, of(GaussianDP("4.01")))


def test_what_remains_reads_as_a_person_would_say_it():
    rule = Filter(PureDP(1))
    account, _ = launch(rule, PureDP(0.7))
    assert rule.remaining(account).epsilon == Fraction(3, 10)
    assert repr(rule.remaining(account)) == "Remaining(epsilon=0.3, delta=0)"
    rule = Filter(BUDGET)
    assert rule.remaining(rule.start()).epsilon >= 1 and rule.remaining(rule.start()).delta > Fraction(49, 10**8)


def test_a_refusal_says_what_was_asked_what_is_left_and_what_would_fit():
    rule = Filter(PureDP(1))
    account, _ = launch(rule, PureDP(0.7))
    with pytest.raises(BudgetExceeded) as caught:
        rule.admit(account, of(PureDP(0.5)))
    assert caught.value.requested == PureDP(0.5) and caught.value.would_fit == PureDP(0.3)
    assert str(caught.value) == (
        "PureDP(0.5) does not fit: PureDP(0.7) of PureDP(1) is spent, and at most PureDP(0.3) more would fit"
    )


def test_the_default_filter_takes_every_measure_with_a_renyi_loss():
    rule = Filter(ApproxDP(3, 1e-6))
    losses = [
        PureDP(0.1),
        ApproxDP(0.1, 1e-8),
        zCDP(0.001),
        GaussianDP(0.01),
        tCDP(0.001, 100),
        RenyiDP(100, 0.001),
    ]
    assert launch(rule, *losses)[1] == [True] * 6
    with pytest.raises(NotCovered):
        rule.admit(rule.start(), of(TradeOff([(0, 1), (1, 0)])))


def test_the_default_filter_is_never_worse_than_basic_or_renyi():
    for losses in ([PureDP(0.6)], [PureDP(0.01)] * 900, [ApproxDP(0.05, 1e-9)] * 60):
        counts = [sum(launch(Filter(BUDGET, by=by), *losses)[1]) for by in ("best", "basic", "renyi", "advanced")]
        assert counts[0] == max(counts)


def test_reference_prefix_of_the_advanced_filter():
    case = next(c for c in VECTORS["e_adaptive"] if c["kind"] == "filter_admit_prefix")
    rule = Filter(ApproxDP(case["in"]["eps"], 1), by="advanced", slack=case["in"]["dprime"])
    admitted = launch(rule, *(PureDP(e) for e in case["in"]["stream"]))[1]
    assert admitted.index(False) == case["out"]["admitted"]


@everyone
def test_a_filter_round_trips_and_certifies(rule):
    assert decode(encode(rule), Filter) == rule
    account, _ = launch(rule, PureDP(0.01))
    assert rule.certificate(account).theorem and rule.promise(every_step()).theorem
    assert rule.bound(every_step()) == rule.budget


def test_an_approximate_zcdp_budget_takes_one_shot_launches():
    rule = Filter(ApproxzCDP("0.5", "1e-6"))
    account, admitted = launch(rule, zCDP("0.4"), ApproxzCDP("0.1", "1e-6"), PureDP("0.1"))
    assert admitted == [True, True, False] and rule.remaining(account).delta == 0
    assert rule.remaining(rule.start()).epsilon == 1
    with pytest.raises(NotCovered):
        rule.admit(rule.start(), of(zCDP("0.1"), "endless"))


def test_huge_and_zero_losses_are_ordinary():
    rule = Filter(BUDGET)
    assert launch(rule, PureDP(800), PureDP(0), ApproxDP(0, 1e-7), ApproxDP(0, 1))[1] == [
        False,
        True,
        True,
        False,
    ]
    assert issubclass(BudgetExceeded, CounterpointError)


@pytest.mark.parametrize(
    "rule, shown",
    [
        (Filter(PureDP(1)), "Filter(PureDP(1))"),
        (Filter(ApproxDP(1, 1e-6)), "Filter(ApproxDP(1, 1e-6))"),
        (Filter(ApproxDP(1, 1e-6), by="renyi", alpha=12), "Filter(ApproxDP(1, 1e-6), by='renyi', alpha=12)"),
        (Filter(ApproxDP(1, 1e-6), slack=1e-7, halt=True), "Filter(ApproxDP(1, 1e-6), slack=1e-7, halt=True)"),
        (Odometer(zCDP), "Odometer(zCDP)"),
        (Odometer.approximate(1e-6), "Odometer(ApproximateSum(ApproxDP(0, 1e-6)))"),
        (Parallel(2, each=PureDP(1), first_pair=True), "Parallel(2, each=PureDP(1), first_pair=True)"),
        (Filter(PureDP(1)).start() + PureDP(0.1), "PureSum(PureDP(0.1))"),
    ],
)
def test_a_rule_shows_what_was_chosen_and_no_defaults(rule, shown):
    assert repr(rule) == shown


def test_a_refusal_names_delta_where_delta_is_what_does_not_fit():
    rule = Filter(ApproxDP(1, "1e-6"))
    account, _ = launch(rule, PureDP("0.1"))
    with pytest.raises(BudgetExceeded, match=r"its delta is too large: ~1.15e-7 of delta is left"):
        rule.admit(account, of(ApproxDP("0.1", "2e-7")))
    with pytest.raises(BudgetExceeded) as refused:
        rule.admit(account, of(PureDP(1)))
    assert "delta is too large" not in str(refused.value)


def test_a_gaussian_that_fits_the_budget_by_itself_is_told_of_the_budget_that_takes_it():
    rule, loss = Filter(ApproxDP(1, "1e-6")), GaussianDP.for_budget(1, "1e-6")
    gaussian = claim(loss, every_step(), "a test", interaction="one-shot")
    with pytest.raises(BudgetExceeded, match=r"GaussianDP.for_budget\(1, 1e-6\) would take it when empty"):
        rule.admit(rule.start(), gaussian)
    named = Filter(GaussianDP.for_budget(1, "1e-6"))
    assert named.admit(named.start(), gaussian).keeps(named.budget)

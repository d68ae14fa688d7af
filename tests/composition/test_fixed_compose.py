"""`compose`: what fixed losses cost together, at the edges and beyond the reach of counting."""

import math
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from counterpoint.composition.fixed import compose
from counterpoint.composition.fixed.totals import Enclosure
from counterpoint.encoding import decode, encode
from counterpoint.errors import InvalidParameter, NotCovered
from counterpoint.measures import (
    ApproxDP,
    ApproxzCDP,
    GaussianDP,
    ProbabilisticDP,
    PureDP,
    RenyiDP,
    TradeOff,
    tCDP,
    zCDP,
)
from counterpoint.measures.loss import Loss

epsilons = st.sampled_from([0, "0.01", "0.1", "0.25", "0.7", "1", "3"])
deltas = st.sampled_from([0, "1e-9", "1e-6", "0.001", "0.1"])
losses = st.builds(ApproxDP, epsilons, deltas)
DELTAS = [0, 1e-12, 1e-6, 1e-3, 0.2, 1]
EPSILONS = [0, 0.05, 0.3, 1, 4]
MANY = [PureDP(Fraction(100, 301 + 7 * number)) for number in range(200)]
"""Two hundred different epsilons with no common measure: a lattice."""


@given(st.lists(losses, min_size=1, max_size=6))
@settings(max_examples=40, deadline=None)
def test_one_mechanism_more_never_costs_less(several):
    fewer, more = compose.optimal(several[1:]), compose.optimal(several)
    for delta in DELTAS:
        assert more.epsilon_at(delta) >= fewer.bounds.epsilon_at(delta).lower
    for epsilon in EPSILONS:
        assert more.delta_at(epsilon) >= fewer.bounds.delta_at(epsilon).lower


@given(st.lists(losses, min_size=1, max_size=6), st.randoms(use_true_random=False))
@settings(max_examples=20, deadline=None)
def test_the_order_of_the_losses_does_not_matter(several, shuffler):
    shuffled = list(several)
    shuffler.shuffle(shuffled)
    assert compose.optimal(shuffled) == compose.optimal(several)
    assert compose.vadhan_wang(shuffled) == compose.vadhan_wang(several)


@given(st.lists(losses, max_size=6))
@settings(max_examples=40, deadline=None)
def test_optimal_is_never_above_the_other_rules(several):
    optimal = compose.optimal(several)
    for rule in (compose.basic, compose.advanced, compose.vadhan_wang):
        other = rule(several)
        for delta in DELTAS:
            assert optimal.bounds.epsilon_at(delta).lower <= other.epsilon_at(delta)
        for epsilon in EPSILONS:
            assert optimal.bounds.delta_at(epsilon).lower <= other.delta_at(epsilon)


@given(st.lists(losses, max_size=6))
@settings(max_examples=40, deadline=None)
def test_epsilon_and_delta_prove_each_other(several):
    for composed in (compose.optimal(several), compose.advanced(several)):
        for delta in DELTAS:
            epsilon = composed.epsilon_at(delta)
            if math.isfinite(epsilon):
                assert composed.bounds.delta_at(epsilon).lower <= delta


@given(losses, losses)
@settings(max_examples=30, deadline=None)
def test_one_loss_composes_to_itself(loss, other):
    alone = compose.optimal([loss])
    for delta in DELTAS:
        assert alone.epsilon_at(delta) == pytest.approx(loss.epsilon_at(delta), rel=1e-12)
    for epsilon in EPSILONS:
        assert alone.delta_at(epsilon) == pytest.approx(loss.delta_at(epsilon), rel=1e-12)


def test_nothing_composes_to_nothing():
    for rule in (compose.optimal, compose.basic, compose.advanced, compose.vadhan_wang):
        nothing = rule([])
        assert (nothing.epsilon_at(0), nothing.delta_at(0)) == (0, 0)
        assert nothing.bounds.epsilon_at(1e-6) == Enclosure(0, 0)


def test_ten_tenths_are_exactly_one_at_delta_zero():
    composed = compose.optimal([PureDP(0.1)] * 10)
    assert composed.bounds.epsilon_at(0) == Enclosure(1.0, 1.0)
    assert composed.delta_at(1) == 0
    assert composed.bounds.delta_at(0.999999).lower > 0


def test_below_the_chance_of_an_exposure_epsilon_is_infinite_and_at_it_the_sum():
    composed = compose.optimal([ApproxDP(0.5, 0.1), ApproxDP(0.25, 0.1)])
    assert composed.epsilon_at(Fraction(19, 100)) == 0.75
    assert composed.epsilon_at(Fraction(19, 100) - Fraction(1, 10**300)) == math.inf
    assert composed.bounds.epsilon_at(0.1) == Enclosure(math.inf, math.inf)
    assert composed.delta_at(1000) == 0.19


def test_a_zero_epsilon_still_pays_its_delta():
    composed = compose.optimal([ApproxDP(0, 0.001)] * 3 + [PureDP(0)] * 5)
    assert composed.epsilon_at(0.0029) == math.inf
    assert composed.epsilon_at(0.003) == 0
    assert composed.delta_at(0) == pytest.approx(1 - 0.999**3, rel=1e-14)


def test_a_certain_exposure_leaves_only_delta_one():
    composed = compose.optimal([ApproxDP(1, 1), PureDP(0.1)])
    assert (composed.delta_at(100), composed.epsilon_at(0.999), composed.epsilon_at(1)) == (1, math.inf, 0)


def test_an_epsilon_of_800_does_not_overflow():
    composed = compose.optimal([PureDP(800), PureDP(0.5), ApproxDP(800, 1e-9)])
    assert composed.epsilon_at(1e-6) == pytest.approx(1600.5, rel=1e-3)
    assert composed.bounds.epsilon_at(0.5).lower > 1599
    assert composed.delta_at(799) == pytest.approx(1, abs=1e-9)
    assert compose.advanced([PureDP(800)]).epsilon_at(1e-6) > 800
    assert compose.vadhan_wang([ApproxDP(800, 1e-9)] * 3).loss == ApproxDP(2400, 1)


def test_absurd_epsilons_compose_by_their_sum():
    composed = compose.optimal([PureDP("1e300"), PureDP(1)])
    assert composed.method == "basic"
    assert composed.epsilon_at(1e-6) == pytest.approx(1e300)
    assert compose.optimal([PureDP("1e-350")] * 2).epsilon_at("1e-351") <= 2e-300
    assert compose.optimal([PureDP(Fraction(1, 10**300 + n)) for n in range(40)]).epsilon_at(1e-6) < 1e-290


def test_a_hundred_thousand_mechanisms_in_one_group():
    composed = compose.optimal([PureDP(0.001)] * 10**5)
    lower, upper = composed.bounds.epsilon_at(1e-6)
    assert composed.method == "lattice"
    assert lower <= upper <= lower * (1 + 1e-9)
    # the normal approximation, mu = 0.001 sqrt(1e5), is within a fraction of a percent
    assert upper == pytest.approx(GaussianDP(Fraction("0.31622776601683794")).epsilon_at(1e-6), rel=2e-3)


@pytest.mark.parametrize("delta", [0.3, 1e-3, 1e-6, 1e-12, 1e-100])
def test_many_different_epsilons_are_known_to_one_part_in_a_hundred_thousand(delta):
    composed = compose.optimal(MANY)
    lower, upper = composed.bounds.epsilon_at(delta)
    assert composed.method_at(delta) == "lattice"
    assert lower < upper <= lower * (1 + 1e-5)
    assert composed.bounds.delta_at(upper).lower <= delta <= composed.bounds.delta_at(lower).upper


def test_epsilons_whose_common_measure_no_float_can_hold_are_composed_on_another_lattice():
    composed = compose.optimal([PureDP(Fraction(1, 30100 + 7 * number)) for number in range(200)])
    lower, upper = composed.bounds.epsilon_at(1e-6)
    assert composed.method == "lattice"
    assert lower < upper <= lower * (1 + 1e-4)


@pytest.mark.parametrize("tiny", [Fraction(1, 10**71), Fraction(1, 10**250)])
@pytest.mark.parametrize("delta", [1e-6, 1e-18, "1e-80", "1e-299", "1e-320"])
def test_a_vanishing_epsilon_among_others_changes_next_to_nothing(tiny, delta):
    # only the vanishing one is undecided at such a delta: the tilt that would decide it too fits into no decimal
    composed, without = compose.optimal([*MANY, PureDP(tiny)]), compose.optimal(MANY)
    lower, upper = composed.bounds.epsilon_at(delta)
    assert composed.method == "lattice"
    assert without.bounds.epsilon_at(delta).lower <= upper
    assert lower <= float(sum(loss.epsilon for loss in MANY) + tiny) and lower <= upper


@pytest.mark.parametrize(("large", "copies"), [("49.5", 1), ("50.3", 1), ("50.6", 1), ("51", 1), ("55", 300)])
def test_an_answer_that_is_all_but_certain_does_not_stretch_the_lattice_beyond_all_memory(large, copies):
    # the small ones lie on a lattice on which twice the large one is a million million points
    several = [PureDP(large)] * copies + [PureDP(Fraction(number, 10**10)) for number in range(1, 500)]
    composed = compose.optimal(several)
    assert composed.method == "lattice"
    assert composed.bounds.delta_at(0).lower > 0.99
    lower, upper = composed.bounds.epsilon_at(1e-6)
    assert 0 < lower <= upper <= sum(loss.epsilon for loss in several)


def test_one_enormous_epsilon_among_many_small_ones_only_adds_itself():
    with_it, without = compose.optimal([*MANY, PureDP(10**6)]), compose.optimal(MANY)
    for delta in (0.1, 1e-6):
        lower, upper = with_it.bounds.epsilon_at(delta)
        assert lower - 10**6 == pytest.approx(without.epsilon_at(delta), abs=0.5)
        assert upper - 10**6 == pytest.approx(without.epsilon_at(delta), abs=0.5)


def test_different_deltas_enter_a_lattice_as_exposures():
    exposing = [ApproxDP(loss.epsilon, Fraction(1, 10**9 + index)) for index, loss in enumerate(MANY)]
    exposed = 1 - math.prod(1 - loss.delta for loss in exposing)
    lower, upper = compose.optimal(exposing).bounds.delta_at(9)
    pure = compose.optimal(MANY).bounds.delta_at(9)
    assert lower <= exposed + (1 - exposed) * Fraction(pure.upper)
    assert upper >= exposed + (1 - exposed) * Fraction(pure.lower)
    assert upper <= lower * (1 + 1e-4)


def test_far_below_every_use_the_renyi_bound_takes_over_and_says_so():
    composed = compose.optimal(MANY)
    assert composed.method_at("1e-299") == "lattice"
    assert composed.method_at("1e-301") == "renyi"
    assert composed.method_at(0) == "lattice"
    lower, upper = composed.bounds.epsilon_at("1e-301")
    assert composed.bounds.epsilon_at("1e-299").lower <= upper <= float(sum(loss.epsilon for loss in MANY))
    assert lower <= upper


def test_counting_and_lattice_agree_where_both_apply():
    few = [PureDP(Fraction(1, number)) for number in range(3, 23)]
    many = few + [PureDP(Fraction(1, 10**9 + number)) for number in range(20)]
    counted, convolved = compose.optimal(few), compose.optimal(many)
    assert (counted.method, convolved.method) == ("counting", "lattice")
    for delta in (0.1, 1e-6):
        assert convolved.epsilon_at(delta) >= counted.bounds.epsilon_at(delta).lower
        assert convolved.bounds.epsilon_at(delta).lower <= counted.epsilon_at(delta) + 2e-8


@pytest.mark.parametrize(
    ("several", "total"),
    [
        ([zCDP(0.1), zCDP(0.2), zCDP(0.2)], zCDP(0.5)),
        ([tCDP(0.1, 20), tCDP(0.2, 12)], tCDP("0.3", 12)),
        ([RenyiDP(8, 0.1)] * 3, RenyiDP(8, 0.3)),
        ([GaussianDP(3), GaussianDP(4), GaussianDP(12)], GaussianDP(13)),
    ],
)
def test_a_measure_with_a_rule_of_its_own_composes_by_it(several, total):
    composed = compose.optimal(several)
    assert composed.loss == total
    assert composed.epsilon_at(1e-6) == total.epsilon_at(1e-6)
    assert composed.delta_at(1) == total.delta_at(1)
    assert composed.implies(total)
    assert total.implies(composed)


def test_an_irrational_gaussian_total_is_rounded_up():
    total = compose.optimal([GaussianDP(1), GaussianDP(1)]).loss
    assert total.mu**2 > 2
    assert float(total.mu) == pytest.approx(math.sqrt(2), rel=1e-15)


def test_trade_off_curves_compose_by_their_tensor_product():
    one, other = TradeOff.between([0.5, 0.5], [0.1, 0.9]), TradeOff.between([0.2, 0.8], [0.5, 0.5])
    assert compose.optimal([one, other]).loss == one.tensor(other)
    assert compose.optimal([one] * 3).loss == one.tensor(one).tensor(one)


def test_probabilistic_losses_enter_as_what_they_imply():
    assert compose.optimal([ProbabilisticDP(0.1, 1e-6)]) == compose.optimal([ApproxDP(0.1, 1e-6)])


@pytest.mark.parametrize(
    "several",
    [
        [PureDP(1), zCDP(1), RenyiDP(2, 1)],
        [GaussianDP(1), ApproxzCDP(1, 1e-6)],
        [RenyiDP(8, 0.1), RenyiDP(16, 0.1)],
    ],
)
def test_different_measures_are_not_covered_and_a_conversion_is_named(several):
    with pytest.raises(NotCovered, match="as_"):
        compose.optimal(several)


def test_closed_forms_are_for_epsilon_and_delta():
    for rule in (compose.basic, compose.advanced, compose.vadhan_wang):
        with pytest.raises(NotCovered, match="optimal"):
            rule([zCDP(1)])


@pytest.mark.parametrize("wrong", [None, 3, PureDP(1), "PureDP(1)", [0.1], [PureDP(1), (1, 0)]])
def test_what_is_no_list_of_losses_is_refused(wrong):
    for rule in (compose.optimal, compose.basic, compose.advanced, compose.vadhan_wang):
        with pytest.raises(InvalidParameter):
            rule(wrong)


@pytest.mark.parametrize("wrong", [math.nan, -0.1, 1.1, math.inf, None, True, "x"])
def test_what_is_no_delta_is_refused(wrong):
    composed = compose.optimal([PureDP(1)])
    for question in (composed.epsilon_at, composed.bounds.epsilon_at, composed.method_at):
        with pytest.raises(InvalidParameter):
            question(wrong)


@pytest.mark.parametrize("wrong", [math.nan, -0.1, math.inf, None, True, "x"])
def test_what_is_no_epsilon_is_refused(wrong):
    composed = compose.optimal([PureDP(1)])
    for question in (composed.delta_at, composed.bounds.delta_at):
        with pytest.raises(InvalidParameter):
            question(wrong)


def test_any_iterable_of_losses_will_do():
    assert compose.optimal(PureDP(0.1) for _ in range(3)) == compose.optimal([PureDP(0.1)] * 3)


def test_a_composition_is_a_loss_that_can_be_stored_and_compared():
    for composed in (
        compose.optimal([ApproxDP(0.1, 1e-9)] * 30),
        compose.advanced([ApproxDP(0.1, 1e-9)] * 30),
        compose.basic([ApproxDP(0.1, 1e-9)] * 30),
    ):
        assert decode(encode(composed), Loss) == composed
        assert composed.implies(ApproxDP(4, 1e-6))
        assert not composed.implies(ApproxDP(1, 1e-6))


def test_pure_losses_compose_to_a_pure_loss_and_others_do_not():
    assert compose.optimal([PureDP(0.1)] * 3).as_pure() == PureDP(0.3)
    with pytest.raises(NotCovered):
        compose.optimal([ApproxDP(0.1, 1e-9)]).as_pure()


def test_a_group_composes_the_losses_of_the_group():
    assert compose.optimal([PureDP(0.1)] * 3).group(2) == compose.optimal([PureDP(0.2)] * 3)
    assert compose.advanced([PureDP(0.1)] * 3).group(2) == compose.advanced([PureDP(0.2)] * 3)


def test_basic_adds_both_coordinates_exactly():
    assert compose.basic([ApproxDP("0.1", "1e-17"), ApproxDP("0.2", "1")]).loss == ApproxDP("0.3", 1)
    assert compose.basic([ApproxDP("0.1", "1e-17"), ApproxDP("0.2", "1e-9")]).loss.delta == Fraction(
        "1e-17"
    ) + Fraction("1e-9")


@given(st.permutations([(0.1, 1e-6), (0.1, 1e-3), (2, 1e-6), (0, 1e-4), (1, 0)]))
@settings(max_examples=30, deadline=None)
def test_vadhan_wang_takes_the_best_order(order):
    before, chained = 0.0, 0.0
    for epsilon, delta in order:
        chained += math.exp(before) * delta
        before += epsilon
    best = compose.vadhan_wang([ApproxDP(*pair) for pair in order])
    assert best.delta_at(best.loss.epsilon) <= chained * (1 + 1e-12)


def test_vadhan_wang_with_equal_parameters_is_the_geometric_sum():
    same = compose.vadhan_wang([ApproxDP(0.3, 1e-6)] * 7).loss
    assert float(same.delta) == pytest.approx(1e-6 * math.expm1(2.1) / math.expm1(0.3), rel=1e-14)
    assert same.epsilon == Fraction(21, 10)
    assert compose.vadhan_wang([ApproxDP(0, 1e-6)] * 7).loss.delta == 7 * Fraction(1, 10**6)


def test_advanced_says_nothing_at_delta_zero_and_is_certain_below_its_drift():
    composed = compose.advanced([PureDP(0.5)] * 4)
    assert composed.epsilon_at(0) == math.inf
    assert composed.delta_at(0.1) == 1
    assert composed.bounds.epsilon_at(1e-6).lower == pytest.approx(composed.epsilon_at(1e-6), rel=1e-15)

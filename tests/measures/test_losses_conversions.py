"""Conversions between measures: tight where a tight form is known, rounded toward more loss, or refused by name."""

import math
from fractions import Fraction

import mpmath
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from counterpoint.errors import InvalidParameter, NotCovered
from counterpoint.measures import ApproxDP, GaussianDP, ProbabilisticDP, PureDP, RenyiDP, TradeOff, tCDP, zCDP

EPSILONS = st.fractions("0.01", 10, max_denominator=100)
DELTAS = st.sampled_from([Fraction(1, 10**k) for k in (1, 3, 6, 12)])


def test_pure_dp_is_exactly_half_epsilon_squared_zcdp():
    assert PureDP(1.0).as_zcdp() == zCDP(0.5)
    assert PureDP(0.1).as_zcdp() == zCDP(0.005)


def test_the_tight_zcdp_of_pure_dp_is_eps_tanh_half_eps():
    tight = PureDP(20).as_zcdp(tight=True)
    assert float(tight.rho) == pytest.approx(20 * math.tanh(10), rel=1e-14)
    assert PureDP("1e-9").as_zcdp(tight=True).rho <= PureDP("1e-9").as_zcdp().rho


def test_an_epsilon_with_many_places_still_becomes_zcdp_rounded_up():
    epsilon = Fraction(10**300 + 1, 10**300)
    rho = PureDP(epsilon).as_zcdp().rho
    assert 0 <= rho - epsilon**2 / 2 <= Fraction(1, 10**400)


def test_pure_dp_becomes_every_other_measure():
    loss = PureDP(1)
    assert loss.as_pure() == loss
    assert loss.as_approx() == ApproxDP(1, 0)
    assert loss.as_probabilistic() == ProbabilisticDP(1, 0)
    assert float(loss.as_approx(0.1).epsilon) == pytest.approx(1 + math.log(1 - 0.1 * (1 + math.exp(-1))))
    assert float(loss.as_renyi(2).epsilon) == pytest.approx(math.log(math.cosh(1.5) / math.cosh(0.5)))
    assert loss.as_tcdp(7) == tCDP(loss.as_zcdp(tight=True).rho, 7)
    assert loss.as_tradeoff()(0) == 1


def test_zcdp_becomes_renyi_truncated_and_approximate_dp():
    assert zCDP(0.1).as_renyi(8) == RenyiDP(8, 0.8)
    assert zCDP(0.1).as_tcdp(5) == tCDP(0.1, 5)
    assert zCDP(0.1).as_zcdp() == zCDP(0.1)
    converted = zCDP(0.05).as_approx(1e-6)
    assert converted.delta == Fraction(1, 10**6)
    assert float(converted.epsilon) == pytest.approx(1.4715947505324160, rel=1e-15)


def test_gaussian_dp_becomes_half_mu_squared_zcdp():
    assert GaussianDP(0.5).as_zcdp() == zCDP(0.125)
    assert GaussianDP(0.5).as_renyi(4) == RenyiDP(4, 0.5)
    assert GaussianDP(0.5).as_tcdp(4) == tCDP(0.125, 4)
    assert GaussianDP(0.5).as_gaussian() == GaussianDP(0.5)


def test_t14_an_order_above_serves_an_order_below_and_never_the_other_way():
    assert RenyiDP(16, 0.2).as_renyi(8) == RenyiDP(8, 0.2)
    with pytest.raises(NotCovered, match="at most 4"):
        RenyiDP(4, 0.2).as_renyi(8)
    assert zCDP(0.1).as_renyi(8) == RenyiDP(8, Fraction(8, 10))
    with pytest.raises(NotCovered, match="choose an order below 6"):
        tCDP(0.1, 6).as_renyi(8)
    with pytest.raises(NotCovered):
        tCDP(0.1, 8).as_renyi(8)
    assert tCDP(0.1, 6).as_renyi(5.5) == RenyiDP(5.5, 0.55)


def test_t14_the_order_of_implication_agrees():
    assert RenyiDP(16, 0.2).implies(RenyiDP(8, 0.2))
    assert not RenyiDP(4, 0.2).implies(RenyiDP(8, 0.2))
    assert zCDP(0.1).implies(RenyiDP(8, 0.8)) and not zCDP(0.1).implies(RenyiDP(8, 0.79))
    assert not tCDP(0.1, 6).implies(RenyiDP(8, 100))


def test_a_truncated_loss_can_only_be_truncated_further():
    assert tCDP(0.1, 6).as_tcdp(4) == tCDP(0.1, 4)
    assert RenyiDP(6, 0.1).as_tcdp(6) == tCDP(0.1, 6)
    for loss in (tCDP(0.1, 6), RenyiDP(6, 0.1)):
        with pytest.raises(NotCovered):
            loss.as_tcdp(7)


def test_t09_approximate_dp_becomes_probabilistic_with_the_corrected_constant():
    converted = ApproxDP(1, 1e-3).as_probabilistic(2)
    true = 1e-3 * (1 + math.exp(-2)) / (1 - math.exp(-1))
    assert converted.epsilon == 2
    assert float(converted.delta) == pytest.approx(true, rel=1e-14) and round(true, 6) == 1.796e-3
    with pytest.raises(NotCovered, match="choose an epsilon above 0"):
        ApproxDP(0, 1e-3).as_probabilistic(0)
    for epsilon in (1, 0.5):
        with pytest.raises(NotCovered, match="choose an epsilon above 1"):
            ApproxDP(1, 1e-3).as_probabilistic(epsilon)


def test_t09_the_corrected_constant_is_reached_by_three_points():
    # P = (p, p e^-2, rest), Q = (p e^-2, p, rest) is (1, delta)-DP for delta = p (1 - e^-1), and |loss| is 2 on two
    # of its points, which have probability p (1 + e^-2) together: exactly what is claimed
    p = 1e-3 / (1 - math.exp(-1))
    assert float(ApproxDP(1, 1e-3).as_probabilistic(2).delta) == pytest.approx(p * (1 + math.exp(-2)))


def test_probabilistic_dp_implies_approximate_dp_as_it_is():
    assert ProbabilisticDP(1, 1e-3).implies(ApproxDP(1, 1e-3))
    assert not ApproxDP(1, 1e-3).implies(ProbabilisticDP(1, 1e-3))
    assert ProbabilisticDP(1, 1e-3).as_approx(1e-3) == ApproxDP(1, 1e-3)
    assert ProbabilisticDP(1, 1e-3).delta_at(0.5) == ApproxDP(1, 1e-3).delta_at(0.5)


def test_pure_dp_is_probabilistic_at_its_own_epsilon_and_above_only():
    assert PureDP(1).as_probabilistic(2) == ProbabilisticDP(2, 0)
    with pytest.raises(NotCovered):
        PureDP(1).as_probabilistic(0.5)
    assert ApproxDP(1, 0).as_probabilistic(1) == ProbabilisticDP(1, 0)


@settings(max_examples=10, deadline=None)
@given(st.sampled_from([zCDP(0.1), RenyiDP(4, 0.3), tCDP(0.1, 3), GaussianDP(0.4)]), EPSILONS)
def test_other_losses_become_probabilistic_through_their_best_approximate_dp(loss, epsilon):
    best = loss.as_probabilistic(epsilon)
    assert best.delta <= 1
    for part in (Fraction(1, 4), Fraction(1, 2), Fraction(9, 10)):
        below = ApproxDP(epsilon * part, loss.delta_at(epsilon * part))
        assert best.delta <= below.as_probabilistic(epsilon).delta * (1 + Fraction(1, 10**12))


@pytest.mark.parametrize(
    ("convert", "advice"),
    [
        (lambda: ApproxDP(1, 1e-6).as_zcdp(), "only delta = 0 converts"),
        (lambda: ApproxDP(1, 1e-6).as_pure(), "only delta = 0 converts"),
        (lambda: ApproxDP(1, 1e-6).as_renyi(2), "only delta = 0 converts"),
        (lambda: ApproxDP(1, 1e-6).as_tcdp(2), "only delta = 0 converts"),
        (lambda: ApproxDP(1, 1e-6).as_gaussian(), "only delta = 0 converts"),
        (lambda: ApproxDP(1, 1e-6).as_approx(1e-7), "a larger delta"),
        (lambda: ProbabilisticDP(1, 1e-6).as_zcdp(), "only delta = 0 converts"),
        (lambda: ProbabilisticDP(2, 1e-6).as_probabilistic(1), "at least 2"),
        (lambda: zCDP(1).as_pure(), "as_approx"),
        (lambda: zCDP(1).as_gaussian(), "as_approx"),
        (lambda: zCDP(1).as_tradeoff(), "as_approx"),
        (lambda: zCDP(1).as_approx(0), "a larger delta"),
        (lambda: RenyiDP(2, 1).as_zcdp(), "zCDP, GaussianDP or PureDP"),
        (lambda: tCDP(1, 2).as_zcdp(), "as_approx"),
        (lambda: GaussianDP(1).as_pure(), "as_approx"),
        (lambda: TradeOff.of_approx(1, 0.1).as_pure(), "as_approx"),
        (lambda: TradeOff.of_approx(1, 0.1).as_gaussian(), "as_approx"),
        (lambda: TradeOff.of_approx(1, 0.1).as_renyi(2), "as_approx"),
        (lambda: TradeOff.of_approx(1, 0.1).as_zcdp(), "as_approx"),
    ],
)
def test_an_impossible_conversion_is_refused_and_says_what_would_work(convert, advice):
    with pytest.raises(NotCovered, match=advice):
        convert()


def test_approximate_dp_without_delta_converts_like_pure_dp():
    for loss in (ApproxDP(1, 0), ProbabilisticDP(1, 0)):
        assert loss.as_pure() == PureDP(1)
        assert loss.as_zcdp() == zCDP(0.5)
        assert loss.as_renyi(2) == PureDP(1).as_renyi(2)
        assert loss.as_gaussian() == PureDP(1).as_gaussian()


@given(EPSILONS, st.fractions("1.01", 100, max_denominator=100))
def test_converted_parameters_are_exact_rationals_of_a_length_that_can_be_stored(epsilon, alpha):
    tau = PureDP(epsilon).as_renyi(alpha).epsilon
    assert isinstance(tau, Fraction) and len(str(tau.numerator)) <= 60
    assert tau <= epsilon


@pytest.mark.parametrize("epsilon", [Fraction(1, 100), Fraction(1, 3), Fraction(1), Fraction(7)])
@pytest.mark.parametrize("alpha", [Fraction(3, 2), Fraction(2), Fraction(20)])
def test_the_renyi_loss_of_a_pure_one_is_rounded_up_beyond_the_last_digit_kept(epsilon, alpha):
    with mpmath.workdps(120):
        e, a = (mpmath.mpf(x.numerator) / x.denominator for x in (epsilon, alpha))
        p, q = 1 / (1 + mpmath.exp(-e)), 1 / (1 + mpmath.exp(e))
        truth = mpmath.log(p**a * q ** (1 - a) + q**a * p ** (1 - a)) / (a - 1)
        tau = PureDP(epsilon).as_renyi(alpha).epsilon
        assert truth <= mpmath.mpf(tau.numerator) / tau.denominator <= truth * (1 + mpmath.mpf(10) ** -45)


@pytest.mark.parametrize("bad", [1, 0.5, -1, float("nan"), True])
def test_an_order_is_above_one(bad):
    for loss in (PureDP(1), zCDP(1), RenyiDP(2, 1), tCDP(1, 2), GaussianDP(1), ApproxDP(1, 0)):
        with pytest.raises(InvalidParameter):
            loss.as_renyi(bad)


def test_a_budget_has_a_largest_gaussian_unless_it_allows_everything():
    assert GaussianDP.for_budget(1, 0) == GaussianDP(0)
    assert GaussianDP.for_budget(1, 1e-6).implies(ApproxDP(1, 1e-6))
    with pytest.raises(InvalidParameter, match="delta must be below 1"):
        GaussianDP.for_budget(1, 1)


@pytest.mark.parametrize("loss", [zCDP(0.1), RenyiDP(2, 0.1)])
def test_the_standard_conversion_is_never_better_than_the_tight_one(loss):
    for delta in (0, 1e-12, 1e-6, 0.1):
        assert loss.standard_epsilon_at(delta) >= loss.epsilon_at(delta)
    assert loss.standard_epsilon_at(0) == math.inf

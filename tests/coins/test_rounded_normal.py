"""Gaussian(mu=...), (sigma=...) and (epsilon=, delta=) draw a rounded normal, which is truly Gaussian DP."""

from fractions import Fraction
from itertools import pairwise

import mpmath
import pytest

from counterpoint.coins.enumerated import EnumeratedCoins, rounded_normal_options
from counterpoint.composition.filters import Filter
from counterpoint.composition.odometers import Odometer
from counterpoint.encoding import decode, encode
from counterpoint.errors import BudgetExceeded, InvalidParameter
from counterpoint.measures import ApproxDP, GaussianDP, TradeOff, zCDP
from counterpoint.mechanisms.additive import Gaussian
from counterpoint.mechanisms.mechanism import Mechanism
from counterpoint.privacy.messages import Ask
from counterpoint.verify.exact_loss import exact
from counterpoint.verify.verdict import Verdict


def answers(mechanism, ask, cut="1e-9"):
    return dict(EnumeratedCoins(cut).law(lambda c: mechanism.step(mechanism.start(c), ask, c)[1]))


@pytest.mark.parametrize(
    ("mechanism", "sigma2"),
    [
        (Gaussian(mu=1), 2),
        (Gaussian(mu="0.5", asks=3), 24),
        (Gaussian(sigma=3), 18),
        (Gaussian(sigma=3, asks=5), 18),
    ],
    ids=repr,
)
def test_the_noise_is_a_rounded_normal_scaled_by_the_l2_sensitivity_of_each_ask(mechanism, sigma2):
    law = answers(mechanism, Ask(private=7, sensitivity=3, squared=2))
    assert law == {7 + z: p for z, p in rounded_normal_options(Fraction(sigma2), Fraction(1, 10**9)).outcomes}


@pytest.mark.parametrize(
    ("mechanism", "loss", "interaction"),
    [
        (Gaussian(mu="0.3"), GaussianDP("0.3"), "one-shot"),
        (Gaussian(mu="0.3", asks=9), GaussianDP("0.3"), "memoryless"),
        (Gaussian(sigma=30), GaussianDP("1/30"), "one-shot"),
        (Gaussian(sigma=30, asks=9), GaussianDP("1/10"), "memoryless"),
        (Gaussian("0.3", asks=9), GaussianDP(rho="0.3"), "memoryless"),
        (Gaussian("0.3", asks=9, discrete=True), zCDP("0.3"), "endless"),
    ],
    ids=repr,
)
def test_it_claims_what_it_is(mechanism, loss, interaction):
    assert (mechanism.claim.loss, mechanism.claim.interaction) == (loss, interaction)


def test_an_irrational_mu_is_rounded_up():
    mu = Gaussian(sigma=30, asks=2).claim.loss.mu
    assert 2 < (mu * 30) ** 2 < 2 + Fraction(1, 10**40)


@pytest.mark.parametrize(("epsilon", "delta"), [(1, "1e-6"), ("0.01", "1e-12"), (10, "0.3")])
def test_an_epsilon_with_a_delta_is_kept_by_the_largest_mu(epsilon, delta):
    mechanism = Gaussian(epsilon=epsilon, delta=delta, asks=4)
    loss = mechanism.claim.loss
    assert loss.implies(ApproxDP(epsilon, delta))
    assert not GaussianDP(loss.mu * (1 + Fraction(1, 10**9))).implies(ApproxDP(epsilon, delta))
    assert mechanism == Gaussian(mu=loss.mu, asks=4)


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"rho": 1, "mu": 1},
        {"mu": 1, "sigma": 1},
        {"epsilon": 1},
        {"delta": 1e-6},
        {"rho": 1, "delta": 1e-6},
        {"epsilon": 1, "delta": 0},
        {"epsilon": 1, "delta": 1},
        {"mu": 1, "epsilon": 1, "delta": 1e-6},
        {"mu": 0},
    ],
    ids=str,
)
def test_it_takes_one_price(given):
    with pytest.raises(InvalidParameter):
        Gaussian(**given)


@pytest.mark.parametrize(
    "mechanism",
    [Gaussian("0.5", asks=9), Gaussian(mu="0.5"), Gaussian(sigma=30, asks=2), Gaussian(epsilon=1, delta="1e-6")],
)
def test_a_gaussian_is_read_back_as_it_was_stored(mechanism):
    assert decode(encode(mechanism), Mechanism) == mechanism


@pytest.mark.parametrize("mechanism", [Gaussian(mu="0.7"), Gaussian(sigma=40, asks=2)], ids=repr)
@pytest.mark.parametrize("probability", ["0", "0.5", "0.95", "0.999999"])
@pytest.mark.parametrize("width", [1, 10])
def test_error_is_the_least_distance_that_the_noise_keeps(mechanism, probability, width):
    within = mechanism.error(probability, squared=4, width=width)
    deviation = mpmath.sqrt(float(mechanism._sigma2(4)))
    beyond = [2 * mpmath.ncdf(-(m + mpmath.mpf(1) / 2) / deviation) for m in (within, within - 1)]
    fails = 1 - float(probability) ** (1 / width)
    assert beyond[0] <= fails * (1 + 1e-9)
    assert within == 0 or beyond[1] > fails * (1 - 1e-9)


@pytest.mark.parametrize("sigma", [Fraction(1, 2), Fraction(1), Fraction(3), Fraction(20)])
@pytest.mark.parametrize("shift", [1, 2])
def test_its_curve_interpolates_that_of_the_normals_at_half_integers(sigma, shift):
    """So it is GaussianDP(shift/sigma) and, for one number, nothing less: at these points even equal."""
    with mpmath.workdps(60):
        deviation = mpmath.mpf(sigma.numerator) / sigma.denominator
        law = rounded_normal_options(sigma**2, Fraction(1, 10**40))
        mass = {z: mpmath.mpf(p.numerator) / p.denominator for z, p in law.outcomes}
        for n in range(-int(3 * sigma), int(3 * sigma) + 2, max(1, int(sigma) // 2)):
            alpha = mpmath.fsum(p for z, p in mass.items() if z >= n)
            beta = mpmath.fsum(p for z, p in mass.items() if z + shift < n)
            quantile = mpmath.sqrt(2) * mpmath.erfinv(1 - 2 * alpha)
            assert abs(mpmath.ncdf(quantile - shift / deviation) - beta) < mpmath.mpf(10) ** -30


def test_a_discrete_gaussian_does_not():
    """At sigma = 1 its total variation, its largest mass, exceeds that of G_1; a rounded normal's is equal to it."""
    law = dict(rounded_normal_options(Fraction(1), Fraction(1, 10**12)).outcomes)
    assert float(law[0]) == pytest.approx(GaussianDP(1).delta_at(0), rel=1e-12)
    weights = [mpmath.exp(-n * n / mpmath.mpf(2)) for n in range(-30, 31)]
    assert float(weights[30] / sum(weights)) > 1.04 * GaussianDP(1).delta_at(0)


@pytest.mark.parametrize("mechanism", [Gaussian(mu=1), Gaussian(mu="0.5"), Gaussian(mu=1, asks=2)], ids=repr)
def test_its_claim_holds_against_every_adaptive_adversary(mechanism):
    pairs = [(Ask(private=0), Ask(private=1)), (Ask(private=1), Ask(private=0))]
    found = exact(mechanism, messages=pairs, rounds=mechanism.asks, cut=Fraction(1, 10**9))
    assert found.judge(mechanism.claim, allowance=Fraction(1, 10**6)) is Verdict.HOLDS
    less = GaussianDP(mechanism.claim.loss.mu * Fraction(98, 100))
    assert found.judge(less, allowance=Fraction(1, 10**6)) is Verdict.REFUTED


def test_a_thousand_launches_with_sigma_30_cost_5_189_at_1e_6_chosen_adaptively():
    rule, launch = Odometer(GaussianDP), Gaussian(sigma=30).claim
    account = rule.start()
    for _ in range(1000):
        account = rule.admit(account, launch)
    assert rule.loss(account).epsilon_at("1e-6") == pytest.approx(5.189, abs=5e-4)
    assert rule.loss(account).as_zcdp().epsilon_at("1e-6") == pytest.approx(5.543, abs=5e-4)


def test_a_gaussian_budget_takes_just_as_many_as_fit():
    rule, launch = Filter(GaussianDP(1)), Gaussian(sigma=10).claim
    account = rule.start()
    for _ in range(100):
        account = rule.admit(account, launch)
    with pytest.raises(BudgetExceeded):
        rule.admit(account, Gaussian(mu="1e-9").claim)


def test_the_table_of_its_cells_is_a_curve_with_its_total_variation():
    law = dict(rounded_normal_options(Fraction(1), Fraction(1, 10**12)).outcomes)
    rows = [[law.get(n - shift, Fraction(0)) for n in range(-9, 11)] for shift in (0, 1)]
    curve = TradeOff.between(*([*row[:-1], row[-1] + 1 - sum(row)] for row in rows))
    assert all(a < b for (a, _), (b, _) in pairwise(curve.vertices))
    assert curve.delta_at(0) == pytest.approx(GaussianDP(1).delta_at(0), abs=1e-9)

"""The numbers of the losses: against the reference vectors, and against mpmath with many digits, at the extremes."""

import json
import math
from fractions import Fraction
from pathlib import Path

import mpmath
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from counterpoint.measures import ApproxDP, GaussianDP, PureDP, RenyiDP, tCDP, zCDP
from counterpoint.measures.divergences import concentrated_of_pure, renyi_of_pure, renyi_to_delta, renyi_to_epsilon
from counterpoint.measures.gaussian_curve import normal_quantile
from counterpoint.numbers import certify, float_up

VECTORS = json.loads((Path(__file__).parents[1] / "vectors" / "accounting.json").read_text())["d_convert"]
CLOSE = mpmath.mpf("1e-10")


def powers_of_ten(low: float, high: float) -> st.SearchStrategy[Fraction]:
    """Numbers of every size between 10^low and 10^high, as a person would type them."""
    digits = st.integers(10, 99)
    return st.builds(lambda d, e: Fraction(d, 10) * Fraction(10) ** e, digits, st.integers(int(low), int(high) - 1))


DELTAS = st.one_of(powers_of_ten(-300, 0), powers_of_ten(-3, 0))


def many(value: Fraction) -> mpmath.mpf:
    return mpmath.mpf(value.numerator) / value.denominator


def assert_just_above(reported: float, true: mpmath.mpf) -> None:
    """The float, read as the decimal that it prints as, is not below the truth and not more than 1e-10 above."""
    read = mpmath.mpf(repr(reported))
    smallest = mpmath.mpf("1e-300")  # below that a float has few digits of its own
    assert read >= true * (1 - mpmath.mpf("1e-35"))
    assert read <= true * (1 + CLOSE) or (true < smallest and read < 2 * smallest)


def shared_epsilon(alpha: Fraction, tau: Fraction, delta: Fraction) -> float:
    """The conversion that all orders share."""
    return float_up(certify(lambda p: renyi_to_epsilon(tau, alpha, delta, p), 50).upper)


# what each kind of vector is here: the name of an output, and how it is computed from the inputs
COMPUTED = {
    "zcdp_to_eps": {
        "standard": lambda rho, delta: zCDP(rho).standard_epsilon_at(delta),
        "tight": lambda rho, delta: zCDP(rho).epsilon_at(delta),
    },
    "zcdp_to_delta": {"tight": lambda rho, eps: zCDP(rho).delta_at(eps)},
    "rdp_to_eps": {
        "mironov": lambda alpha, tau, delta: RenyiDP(alpha, tau).standard_epsilon_at(delta),
        "improved": shared_epsilon,
    },
    "rdp_of_pure_dp": {"tau": lambda alpha, eps: float(PureDP(eps).as_renyi(alpha).epsilon)},
    "gdp_to_delta": {"delta": lambda mu, eps: GaussianDP(mu).delta_at(eps)},
    "gdp_to_eps": {"eps": lambda mu, delta: GaussianDP(mu).epsilon_at(delta)},
    "gdp_mu": {"mu": lambda eps, delta: float(GaussianDP.for_budget(eps, delta).mu)},
}


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector["id"])
def test_the_reference_vectors_are_met(vector):
    lifted = {name: Fraction(value) for name, value in vector["in"].items()}  # the doubles themselves, exactly
    for name, compute in COMPUTED[vector["kind"]].items():
        assert compute(**lifted) == pytest.approx(float(vector["out"][name]), rel=1e-10, abs=0)


@pytest.mark.parametrize("vector", [v for v in VECTORS if v["kind"] != "gdp_mu"], ids=lambda vector: vector["id"])
def test_no_conversion_reports_less_than_the_vector(vector):
    lifted = {name: Fraction(value) for name, value in vector["in"].items()}
    for name, compute in COMPUTED[vector["kind"]].items():
        slack = Fraction(1, 10**16)  # the vectors have 17 digits
        assert Fraction(compute(**lifted)) >= Fraction(vector["out"][name]) * (1 - slack)


@given(powers_of_ten(-200, 3), st.fractions(0, "1.1", max_denominator=1000))
@example(Fraction(800), Fraction(799, 800))
@example(Fraction(800), Fraction(0))
def test_the_delta_of_pure_dp_is_the_hockey_stick_of_randomized_response(epsilon, part):
    with mpmath.workdps(700):
        big, small = many(epsilon), many(epsilon * part)
        true = max(mpmath.mpf(0), -mpmath.expm1(small - big) / (1 + mpmath.exp(-big)))
        assert_just_above(PureDP(epsilon).delta_at(epsilon * part), true)
        delta = Fraction(1, 10**7)
        assert_just_above(ApproxDP(epsilon, delta).delta_at(epsilon * part), many(delta) + many(1 - delta) * true)


@given(powers_of_ten(-200, 3), DELTAS)
@example(Fraction(800), Fraction(1, 10**300))
def test_the_epsilon_of_pure_dp_inverts_that_hockey_stick(epsilon, delta):
    with mpmath.workdps(700):
        left = 1 - many(delta) * (1 + mpmath.exp(-many(epsilon)))
        true = max(mpmath.mpf(0), many(epsilon) + mpmath.log(left)) if left > 0 else mpmath.mpf(0)
        assert_just_above(PureDP(epsilon).epsilon_at(delta), true)


def zcdp_epsilon(rho: Fraction, delta: Fraction, most: mpmath.mpf = mpmath.inf) -> mpmath.mpf:
    """The infimum over alpha - 1 = e^u, by bisection on its derivative."""
    r, surplus = many(rho), -mpmath.log(many(delta))
    x = bisected(lambda u: r * mpmath.exp(2 * u) + mpmath.log1p(mpmath.exp(u)) - surplus, most)
    value = (1 + x) * r + mpmath.log(x / (1 + x)) - (-surplus + mpmath.log1p(x)) / x
    return max(mpmath.mpf(0), value)


def zcdp_delta(rho: Fraction, epsilon: Fraction, most: mpmath.mpf = mpmath.inf) -> mpmath.mpf:
    r, e = many(rho), many(epsilon)
    x = bisected(lambda u: r * (1 + 2 * mpmath.exp(u)) - e - mpmath.log1p(mpmath.exp(-u)), most)
    return min(mpmath.mpf(1), mpmath.exp(x * ((1 + x) * r - e) + x * mpmath.log(x) - (1 + x) * mpmath.log1p(x)))


def bisected(rising, most: mpmath.mpf) -> mpmath.mpf:
    low, high = mpmath.mpf(-1500), mpmath.mpf(1500)
    for _ in range(240):
        middle = (low + high) / 2
        low, high = (low, middle) if rising(middle) > 0 else (middle, high)
    return min(mpmath.exp(low), most)


@settings(max_examples=60)
@given(powers_of_ten(-8, 3), DELTAS)
@example(Fraction(1, 10**8), Fraction(1, 10**300))
@example(Fraction(1000), Fraction(1, 10**300))
@example(Fraction(1, 10**100), Fraction(1, 10**6))
def test_the_epsilon_of_zcdp_is_the_infimum_over_all_orders(rho, delta):
    with mpmath.workdps(80):
        assert_just_above(zCDP(rho).epsilon_at(delta), zcdp_epsilon(rho, delta))
        assert_just_above(tCDP(rho, 3).epsilon_at(delta), zcdp_epsilon(rho, delta, mpmath.mpf(2)))


@settings(max_examples=60)
@given(powers_of_ten(-8, 3), powers_of_ten(-8, 3))
@example(Fraction(800), Fraction(0))
@example(Fraction(1, 10**100), Fraction(1, 10**50))
def test_the_delta_of_zcdp_is_the_infimum_over_all_orders(rho, epsilon):
    with mpmath.workdps(80):
        assert_just_above(zCDP(rho).delta_at(epsilon), zcdp_delta(rho, epsilon))
        assert_just_above(tCDP(rho, 3).delta_at(epsilon), zcdp_delta(rho, epsilon, mpmath.mpf(2)))


@given(powers_of_ten(-9, 9), powers_of_ten(-9, 3), DELTAS)
def test_renyi_dp_converts_at_its_own_order_and_no_worse_than_all_orders_do(above, tau, delta):
    alpha = 1 + above
    with mpmath.workdps(80):
        a = many(alpha)
        true = many(tau) + mpmath.log((a - 1) / a) - (mpmath.log(many(delta)) + mpmath.log(a)) / (a - 1)
        assert_just_above(shared_epsilon(alpha, tau, delta), max(mpmath.mpf(0), true))
    assert 0 <= RenyiDP(alpha, tau).epsilon_at(delta) <= shared_epsilon(alpha, tau, delta)


@given(powers_of_ten(-9, 9), powers_of_ten(-9, 3), powers_of_ten(-9, 3))
def test_the_two_forms_of_the_renyi_conversion_are_each_others_inverse(above, tau, epsilon):
    delta = certify(lambda p: renyi_to_delta(tau, 1 + above, epsilon, p), 30)
    if not Fraction(1, 10**300) < Fraction(delta.upper if delta.upper.adjusted() > -400 else 0) < Fraction(99, 100):
        return
    back = certify(lambda p: renyi_to_epsilon(tau, 1 + above, Fraction(delta.upper), p), 30)
    # delta has 30 digits, and d log delta / d epsilon is 1 - alpha
    assert abs(Fraction(back.upper) - epsilon) <= (1 / above + epsilon) / 10**25


@given(powers_of_ten(-9, 9), st.one_of(powers_of_ten(-200, 3), powers_of_ten(-2, 1)))
@example(Fraction(1, 10**9), Fraction(1, 10**200))
@example(Fraction(10**9), Fraction(1, 10**200))
@example(Fraction(10**9), Fraction(800))
@example(Fraction(1, 10**9), Fraction(800))
def test_the_divergence_of_pure_dp_keeps_its_relative_accuracy_everywhere(above, epsilon):
    alpha = 1 + above
    bounds = certify(lambda p: renyi_of_pure(epsilon, alpha, p))
    with mpmath.workdps(1300):
        a, e = many(alpha), many(epsilon)
        true = mpmath.log(mpmath.cosh((2 * a - 1) * e / 2) / mpmath.cosh(e / 2)) / (a - 1)
        low, high = mpmath.mpf(str(bounds.lower)), mpmath.mpf(str(bounds.upper))
        assert low <= true <= high <= true * (1 + mpmath.mpf("1e-15"))


@given(powers_of_ten(-200, 3), powers_of_ten(-9, 9))
def test_eps_tanh_half_eps_bounds_the_divergence_at_every_order_and_is_reached_at_one(epsilon, above):
    rho = certify(lambda p: concentrated_of_pure(epsilon, p), 40)
    tau = certify(lambda p: renyi_of_pure(epsilon, 1 + above, p), 40)
    assert Fraction(tau.lower) <= (1 + above) * Fraction(rho.upper)
    near_one = certify(lambda p: renyi_of_pure(epsilon, 1 + Fraction(1, 10**20), p), 40)
    assert Fraction(near_one.upper) >= Fraction(rho.lower) * (1 - Fraction(1, 10**15))


def gaussian_delta(mu: Fraction, epsilon: Fraction) -> mpmath.mpf:
    m, e = many(mu), many(epsilon)
    return mpmath.ncdf(-e / m + m / 2) - mpmath.exp(e) * mpmath.ncdf(-e / m - m / 2)


@settings(max_examples=50, deadline=None)
@given(powers_of_ten(-8, 2), powers_of_ten(-3, 1))
@example(Fraction(1), Fraction(37))
@example(Fraction(100), Fraction(1))
@example(Fraction(1, 10**100), Fraction(3))
def test_the_delta_of_gaussian_dp_is_the_analytic_one(mu, distance):
    with mpmath.workdps(300):
        assert_just_above(GaussianDP(mu).delta_at(mu * distance), gaussian_delta(mu, mu * distance))


@settings(max_examples=30, deadline=None)
@given(powers_of_ten(-6, 2), DELTAS)
@example(Fraction(1), Fraction(38, 100))  # just below delta(0) = 0.3829: epsilon is nearly 0
def test_the_epsilon_of_gaussian_dp_is_enough_and_hardly_less_would_do(mu, delta):
    reported = Fraction(repr(GaussianDP(mu).epsilon_at(delta)))
    with mpmath.workdps(300):
        assert gaussian_delta(mu, reported) <= many(delta)
        assert reported == 0 or gaussian_delta(mu, reported * (1 - Fraction(1, 10**10))) > many(delta)


@settings(max_examples=30, deadline=None)
@given(st.one_of(st.just(Fraction(0)), powers_of_ten(-6, 3)), DELTAS)
def test_the_mu_for_a_budget_fits_and_hardly_more_would(epsilon, delta):
    mu = GaussianDP.for_budget(epsilon, delta).mu
    with mpmath.workdps(700):
        assert gaussian_delta(mu, epsilon) <= many(delta)
        assert gaussian_delta(mu * (1 + Fraction(1, 10**10)), epsilon) > many(delta)


@settings(max_examples=30, deadline=None)
@given(powers_of_ten(-100, 3))
@example(Fraction(1, 10**100))
def test_the_gaussian_of_pure_dp_is_enough_and_hardly_less_would_do(epsilon):
    mu = PureDP(epsilon).as_gaussian().mu
    with mpmath.workdps(400):
        corner = 1 / (1 + mpmath.exp(many(epsilon)))
        assert mpmath.ncdf(-many(mu) / 2) <= corner
        assert mpmath.ncdf(-many(mu) / 2 * (1 - CLOSE)) > corner


@given(st.one_of(powers_of_ten(-300, 0), st.fractions("0.001", "0.999")).filter(lambda tail: 0 < tail < 1))
@settings(max_examples=30, deadline=None)
def test_normal_quantiles_are_enclosed(tail):
    x = normal_quantile(tail)
    with mpmath.workdps(60):
        low, high = mpmath.mpf(str(x.lower)), mpmath.mpf(str(x.upper))
        assert mpmath.ncdf(-high) <= many(tail) * (1 + mpmath.mpf("1e-50"))
        assert mpmath.ncdf(-low) >= many(tail) * (1 - mpmath.mpf("1e-50"))
        assert high - low <= mpmath.mpf("1e-20") * max(abs(low), abs(high))


@pytest.mark.parametrize("mu", [Fraction(1), Fraction(1, 10**6)])
def test_the_epsilon_of_gaussian_dp_is_found_right_beside_zero(mu):
    edge = GaussianDP(mu)._least_delta(Fraction(0))
    assert GaussianDP(mu).epsilon_at(edge) == 0
    assert 0 < GaussianDP(mu).epsilon_at(edge * (1 - Fraction(1, 10**40))) < 1e-30


def test_a_delta_below_every_float_is_reported_as_the_smallest_one():
    tiny = math.nextafter(0.0, 1.0)
    assert zCDP("1e-8").delta_at(10) == tiny
    assert zCDP("1e-300").delta_at(1) == tiny
    assert GaussianDP("1e-8").delta_at(10) == tiny


@pytest.mark.parametrize("amount", ["1e-300", "1e-100", "1e20", "1e100", "1e300"])
def test_absurd_amounts_get_an_answer_too(amount):
    for loss in (PureDP(amount), zCDP(amount), RenyiDP(2, amount), tCDP(amount, 2)):
        assert loss.epsilon_at(1e-6) >= 0 and 0 <= loss.delta_at(1) <= 1
    assert 0 <= GaussianDP(amount).delta_at(1) <= 1

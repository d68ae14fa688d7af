"""How large a loss a budget still has room for: what is returned fits, and a little more would not."""

from fractions import Fraction

import mpmath
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from counterpoint.measures import ApproxDP, zCDP
from counterpoint.measures.concentrated import rho_below
from counterpoint.measures.divergences import renyi_offset


@settings(max_examples=25)
@given(st.fractions("1/1000", 30), st.sampled_from(["1e-30", "1e-12", "1e-6", "1e-3", "0.3"]))
def test_the_largest_rho_within_epsilon_and_delta_fits_and_a_billionth_more_does_not(epsilon, delta):
    rho = rho_below(epsilon, Fraction(delta))
    assert zCDP(rho).implies(ApproxDP(epsilon, delta))
    assert zCDP(rho * (1 + Fraction(1, 10**9))).as_approx(delta).epsilon > epsilon


@pytest.mark.parametrize("alpha", [Fraction(3, 2), Fraction(2), Fraction(20)])
@pytest.mark.parametrize("slack", [Fraction(1, 10**6), Fraction(1, 3)])
def test_what_turns_a_renyi_loss_into_an_epsilon_is_rounded_up_beyond_the_last_digit_kept(alpha, slack):
    with mpmath.workdps(120):
        a, d = (mpmath.mpf(x.numerator) / x.denominator for x in (alpha, slack))
        truth = mpmath.log(1 - 1 / a) - (mpmath.log(d) + mpmath.log(a)) / (a - 1)
        offset = renyi_offset(alpha, slack)
        assert truth <= mpmath.mpf(offset.numerator) / offset.denominator <= truth + mpmath.mpf(10) ** -45


@pytest.mark.parametrize("epsilon", [Fraction(1, 10**12), Fraction(10**6)])
def test_so_it_is_for_budgets_far_out(epsilon):
    rho = rho_below(epsilon, Fraction(1, 10**6))
    assert rho > 0 and zCDP(rho).implies(ApproxDP(epsilon, "1e-6"))

"""The losses as values: how they read numbers, what they refuse, how they print, store and scale with a group."""

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from counterpoint.composition.fixed.compose import optimal
from counterpoint.encoding import decode, encode
from counterpoint.errors import InvalidParameter, NotCovered
from counterpoint.measures import (
    ApproxDP,
    GaussianDP,
    Loss,
    OneSidedDP,
    ProbabilisticDP,
    PureDP,
    RenyiDP,
    TradeOff,
    tCDP,
    zCDP,
)

TYPED = {
    "PureDP(0.1)": PureDP(0.1),
    "ApproxDP(1, 1e-6)": ApproxDP(1.0, 1e-6),
    "ProbabilisticDP(2, 0.0018)": ProbabilisticDP(2, 0.0018),
    "OneSidedDP(2, 0.0018)": OneSidedDP(2, 0.0018),
    "OneSidedDP(2, 0.0018, least=0.5)": OneSidedDP(2, 0.0018, least=0.5),
    "RenyiDP(alpha=8, epsilon=0.2)": RenyiDP(alpha=8, epsilon=0.2),
    "zCDP(0.5)": zCDP(0.5),
    "tCDP(rho=0.1, omega=20)": tCDP(rho=0.1, omega=20),
    "GaussianDP(0.5)": GaussianDP(0.5),
    "TradeOff([(0, 1), (0.25, 0.25), (1, 0)])": TradeOff([(0, 1), (0.25, 0.25), (1, 0)]),
}

ZEROS = [
    PureDP(0.0),
    ApproxDP(0, 0),
    ProbabilisticDP(0, 0),
    OneSidedDP(0, 0),
    zCDP(0.0),
    RenyiDP(2, 0),
    tCDP(0, 2),
    GaussianDP(0),
    TradeOff([(0, 1), (1, 0)]),
]

BAD_NUMBERS = [
    float("nan"),
    float("inf"),
    -float("inf"),
    True,
    False,
    np.bool_(True),
    -0.1,
    -1,
    "x",
    None,
    1j,
]


@pytest.mark.parametrize("text", TYPED)
def test_a_loss_prints_as_it_is_typed(text):
    assert repr(TYPED[text]) == text
    assert eval(text) == TYPED[text]


@pytest.mark.parametrize("loss", [*TYPED.values(), *ZEROS], ids=repr)
def test_a_loss_is_stored_and_read_back_to_equal_bytes(loss):
    stored = encode(loss)
    for kind in (type(loss), Loss):
        back = decode(stored, kind)
        assert back == loss and type(back) is type(loss) and encode(back) == stored
    assert hash(decode(stored, Loss)) == hash(loss)


@pytest.mark.parametrize("loss", TYPED.values(), ids=repr)
def test_a_loss_is_frozen(loss):
    field = loss.__struct_fields__[0]
    with pytest.raises(AttributeError):
        setattr(loss, field, Fraction(1))


def test_equal_numbers_make_equal_losses_however_they_are_typed():
    spelled = [0.1, "0.1", Decimal("0.10"), Fraction(1, 10), "1/10", np.float64(0.1)]
    assert {PureDP(number) for number in spelled} == {PureDP("0.1")}
    assert PureDP(0.1) != zCDP(0.1)


def test_t12_a_float_is_the_decimal_that_was_typed_so_sums_are_exact():
    assert PureDP(0.1).epsilon == Fraction(1, 10)
    assert sum(PureDP(0.1).epsilon for _ in range(10)) == 1
    assert PureDP(0.1).group(3) == PureDP(0.3)
    assert ApproxDP(0.1, 1e-6).delta * 10**6 == 1


@pytest.mark.parametrize("bad", BAD_NUMBERS, ids=repr)
@pytest.mark.parametrize(
    "build",
    [
        PureDP,
        zCDP,
        GaussianDP,
        lambda bad: ApproxDP(bad, 0.1),
        lambda bad: ApproxDP(1, bad),
        lambda bad: ProbabilisticDP(bad, 0.1),
        lambda bad: ProbabilisticDP(1, bad),
        lambda bad: OneSidedDP(bad, 0.1),
        lambda bad: OneSidedDP(1, bad),
        lambda bad: OneSidedDP(1, 0.1, bad),
        lambda bad: RenyiDP(bad, 1),
        lambda bad: RenyiDP(2, bad),
        lambda bad: tCDP(bad, 2),
        lambda bad: tCDP(1, bad),
        lambda bad: TradeOff([(0, 1), (0.5, bad), (1, 0)]),
    ],
)
def test_t11_what_is_not_a_number_in_range_is_refused_at_construction(build, bad):
    with pytest.raises(InvalidParameter):
        build(bad)


@pytest.mark.parametrize(
    ("build", "says"),
    [
        (lambda: ApproxDP(1, 1.1), "delta must be between 0 and 1, but 1.1"),
        (lambda: ProbabilisticDP(1, 2), "delta must be between 0 and 1, but 2"),
        (lambda: RenyiDP(1, 0.5), "alpha must be above 1, but 1"),
        (lambda: RenyiDP(0.5, 0.5), "alpha must be above 1, but 0.5"),
        (lambda: tCDP(0.5, 1), "omega must be above 1, but 1"),
        (lambda: PureDP(-1), "epsilon must be at least 0, but -1"),
    ],
)
def test_t11_an_error_names_the_parameter_its_limit_and_what_was_given(build, says):
    with pytest.raises(InvalidParameter, match=says):
        build()


@pytest.mark.parametrize("loss", TYPED.values(), ids=repr)
@pytest.mark.parametrize("bad", [float("nan"), -0.1, 1.5, True])
def test_t11_a_bad_delta_or_epsilon_is_refused_when_asked_about(loss, bad):
    with pytest.raises(InvalidParameter):
        loss.epsilon_at(bad)
    if bad != 1.5:
        with pytest.raises(InvalidParameter):
            loss.delta_at(bad)


@pytest.mark.parametrize("zero", ZEROS, ids=repr)
def test_a_zero_loss_is_perfect_privacy(zero):
    assert zero.epsilon_at(0) == 0 and zero.epsilon_at(0.5) == 0 and zero.epsilon_at(1) == 0
    assert zero.delta_at(0) == 0 and zero.delta_at(5) == 0
    assert zero.as_pure() == PureDP(0)
    assert zero.group(1000).as_pure() == PureDP(0)


@pytest.mark.parametrize("zero", ZEROS, ids=repr)
@pytest.mark.parametrize("any_loss", [*TYPED.values(), *ZEROS], ids=repr)
def test_a_zero_loss_implies_every_loss(zero, any_loss):
    assert zero.implies(any_loss)


def test_there_is_no_epsilon_where_delta_is_too_small():
    assert ApproxDP(1, 1e-6).epsilon_at(1e-7) == math.inf
    assert ProbabilisticDP(1, 1e-6).epsilon_at(0) == math.inf
    for loss in (zCDP(0.1), RenyiDP(2, 0.1), tCDP(0.1, 4), GaussianDP(0.1)):
        assert loss.epsilon_at(0) == math.inf
    assert TradeOff.of_approx(1, 0.01).epsilon_at(0.001) == math.inf


def test_at_delta_one_nothing_is_promised_so_epsilon_is_zero():
    losses = (PureDP(800), ApproxDP(3, 1), zCDP(1000), RenyiDP(2, 100), tCDP(100, 2), GaussianDP(50))
    assert [loss.epsilon_at(1) for loss in losses] == [0.0] * 6


def test_t24_at_epsilon_zero_the_group_quotient_is_the_size():
    assert ApproxDP(0, 1e-6).group(5) == ApproxDP(0, 5e-6)
    assert ApproxDP(0, 0.3).group(5) == ApproxDP(0, 1)
    nearly = ApproxDP("1e-30", 1e-6).group(5)
    assert 0 < nearly.delta / Fraction(5, 10**6) - 1 < Fraction(1, 10**25)


def test_t24_epsilon_eight_hundred_overflows_nowhere():
    loss = ApproxDP(800, 1e-6)
    assert loss.delta_at(800) == 1e-6 and loss.delta_at(801) == 1e-6
    assert loss.delta_at(0) == 1.0 and 0.63 < PureDP(800).delta_at(799) < 0.64
    assert loss.group(3) == ApproxDP(2400, 1)
    assert PureDP(800).as_renyi(2).epsilon <= 800
    assert PureDP(800).as_gaussian().mu < 80
    assert PureDP(800).as_tradeoff()(0) == 1
    for larger in (10**6, "1e100", "1e300"):
        assert PureDP(larger).delta_at(5) == 1.0 and PureDP(larger).as_renyi(2).epsilon <= PureDP(larger).epsilon


def test_t24_epsilon_zero_divides_by_nothing():
    loss = ApproxDP(0, 0.25)
    assert loss.delta_at(0) == 0.25 and loss.epsilon_at(0.25) == 0 and loss.epsilon_at(0.2) == math.inf
    assert loss.as_tradeoff() == TradeOff([(0, 0.75), (0.75, 0), (1, 0)])
    assert PureDP(0).as_renyi(3) == RenyiDP(3, 0)


@given(st.fractions(0, 3, max_denominator=100), st.integers(1, 6))
def test_a_group_costs_pure_m_zcdp_m_squared_gaussian_m(amount, size):
    assert PureDP(amount).group(size) == PureDP(size * amount)
    assert zCDP(amount).group(size) == zCDP(size**2 * amount)
    assert GaussianDP(amount).group(size) == GaussianDP(size * amount)


@given(st.fractions("0.01", 2, max_denominator=100), st.integers(2, 5))
def test_a_group_of_approximate_dp_pays_the_geometric_sum_rounded_up(epsilon, size):
    delta = Fraction(1, 10**6)
    exact = sum(math.exp(j * float(epsilon)) for j in range(size)) * 1e-6
    grouped = ApproxDP(epsilon, delta).group(size)
    assert grouped.epsilon == size * epsilon
    assert float(grouped.delta) == pytest.approx(min(1, exact), rel=1e-12)


def test_a_group_of_truncated_cdp_shrinks_its_orders():
    assert tCDP(0.1, 20).group(4) == tCDP(1.6, 5)
    with pytest.raises(NotCovered, match="above 20"):
        tCDP(0.1, 20).group(20)


def test_a_group_has_no_theorem_at_one_renyi_order_or_for_probabilistic_dp():
    with pytest.raises(NotCovered, match="zCDP, tCDP or PureDP"):
        RenyiDP(2, 0.1).group(2)
    assert RenyiDP(2, 0.1).group(1) == RenyiDP(2, 0.1)
    with pytest.raises(NotCovered, match="as_approx"):
        ProbabilisticDP(1, 1e-3).group(2)
    assert ProbabilisticDP(1, 0).group(2) == ProbabilisticDP(2, 0)


@pytest.mark.parametrize("loss", TYPED.values(), ids=repr)
@pytest.mark.parametrize("size", [-1, 1.5, True])
def test_a_group_has_a_whole_size_that_is_not_negative(loss, size):
    with pytest.raises((InvalidParameter, NotCovered)):
        loss.group(size)


def test_a_gaussian_loss_by_rho_is_carried_exactly():
    loss = GaussianDP(rho="0.1")
    assert loss.square == Fraction(1, 5) < loss.mu**2 and loss.as_zcdp() == zCDP("0.1")
    assert GaussianDP(rho=2) == GaussianDP(2) and repr(loss) == "GaussianDP(rho=0.1)"
    assert loss.group(2).as_zcdp() == zCDP("0.4")
    assert loss.implies(zCDP("0.1")) and not GaussianDP(loss.mu).implies(loss)
    assert loss.within(loss) and not GaussianDP(loss.mu).within(loss), "a budget is its square, not the rounded root"
    assert optimal([loss, loss, loss]).loss.as_zcdp() == zCDP("0.3")
    assert decode(encode(loss), GaussianDP) == loss
    for wrong in ({}, {"mu": 1, "rho": 1}, {"rho": 0}):
        with pytest.raises(InvalidParameter):
            GaussianDP(**wrong)

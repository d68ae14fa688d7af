"""The losses that theorems need beside the seven measures: approximate zCDP, and no promise at all."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from counterpoint.encoding import decode, encode
from counterpoint.errors import InvalidParameter, NotCovered
from counterpoint.privacy.losses import ApproxDP, ApproxzCDP, Loss, PureDP, TradeOff, Unbounded, zCDP

deltas = st.fractions(0, 1, max_denominator=1000)


@given(deltas, st.fractions(0, 3, max_denominator=100))
def test_approximate_zcdp_is_the_exception_or_else_zcdp(delta, epsilon):
    loss = ApproxzCDP("0.1", delta)
    expected = float(delta) + (1 - float(delta)) * zCDP("0.1").delta_at(epsilon)
    assert expected * (1 - 1e-12) <= loss.delta_at(epsilon) <= min(1, expected * (1 + 1e-12))


def test_without_an_exception_it_is_zcdp():
    assert ApproxzCDP("0.1", 0).epsilon_at(1e-6) == zCDP("0.1").epsilon_at(1e-6)
    assert ApproxzCDP("0.1", "1e-6").epsilon_at(1e-7) == math.inf
    assert ApproxzCDP("0.1", 1).epsilon_at(1) == 0


def test_its_order_is_coordinatewise_and_sound():
    assert ApproxzCDP("0.1", 0).implies(ApproxzCDP("0.1", "0.1"))
    assert not ApproxzCDP("0.1", "0.2").implies(ApproxzCDP("0.2", "0.1"))
    assert zCDP("0.1").implies(ApproxzCDP("0.1", 0)) and PureDP("0.1").implies(ApproxzCDP("0.005", 0))
    assert not ApproxzCDP("0.1", "0.1").implies(zCDP(9))
    assert ApproxzCDP("0.1", "1e-9").implies(ApproxDP(3, "1e-6"))


def test_it_refuses_what_no_theorem_gives_and_what_is_no_number():
    with pytest.raises(NotCovered):
        ApproxzCDP("0.1", "0.1").group(2)
    with pytest.raises(NotCovered):
        ApproxzCDP("0.1", "0.1").as_zcdp()
    for bad in [(-1, 0), (1, 2), (float("nan"), 0), (True, 0)]:
        with pytest.raises(InvalidParameter):
            ApproxzCDP(*bad)


def test_every_loss_implies_no_promise_and_no_promise_implies_none():
    for loss in (PureDP(1), ApproxDP(1, "0.1"), zCDP(1), TradeOff([(0, 1), (1, 0)])):
        assert loss.implies(Unbounded()) and not Unbounded().implies(loss)
    assert Unbounded().implies(ApproxDP(0, 1)), "which promises nothing either"
    assert Unbounded().group(5) == Unbounded()


@pytest.mark.parametrize("loss", [ApproxzCDP("0.1", "1/3"), Unbounded()], ids=str)
def test_they_round_trip(loss):
    assert decode(encode(loss), Loss) == loss

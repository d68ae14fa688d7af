"""The losses that theorems need beside the seven measures: approximate zCDP, one-sided pDP, no promise at all."""

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from counterpoint.encoding import decode, encode
from counterpoint.errors import InvalidParameter, NotCovered
from counterpoint.measures import (
    ApproxDP,
    ApproxzCDP,
    Loss,
    OneSidedDP,
    ProbabilisticDP,
    PureDP,
    TradeOff,
    Unbounded,
    zCDP,
)

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


def leaving(law, other, epsilon):
    """P[L > epsilon] and P[|L| > epsilon] when the first of two finite distributions is the true one."""
    losses = [(p, math.inf if q == 0 else math.log(p / q)) for p, q in zip(law, other, strict=True) if p]
    return (
        sum((p for p, loss in losses if loss > epsilon), Fraction(0)),
        sum((p for p, loss in losses if abs(loss) > epsilon), Fraction(0)),
    )


@st.composite
def pairs(draw):
    weights = st.lists(st.integers(0, 9), min_size=4, max_size=4).filter(any)
    return [[Fraction(weight, sum(given)) for weight in given] for given in (draw(weights), draw(weights))]


@given(pairs(), st.fractions("1/10", 3, max_denominator=100))
def test_one_sided_dp_bounds_what_it_converts_to_for_any_pair_of_worlds(worlds, epsilon):
    one, other = worlds
    ways = (leaving(one, other, epsilon), leaving(other, one, epsilon))
    loss = OneSidedDP(epsilon, max(way[0] for way in ways))
    assert max(way[1] for way in ways) <= loss.as_probabilistic(epsilon).delta <= loss.two_sided().delta
    assert TradeOff.between(one, other).delta_at(epsilon) <= float(loss.delta) * (1 + 1e-12)


def test_one_sided_dp_is_as_good_as_approximate_dp_and_weaker_than_probabilistic_dp():
    loss = OneSidedDP(1, "1e-3")
    assert loss.epsilon_at("0.01") == ApproxDP(1, "1e-3").epsilon_at("0.01") and loss.implies(ApproxDP(1, "1e-3"))
    assert ProbabilisticDP(1, "1e-3").implies(loss) and not loss.implies(ProbabilisticDP(1, "1e-3"))
    assert loss.implies(ProbabilisticDP(1, "1.368e-3")) and not loss.implies(ProbabilisticDP(1, "1.367e-3"))
    assert OneSidedDP(1, "1e-3", least=1).two_sided().delta == loss.as_probabilistic(1).delta
    assert OneSidedDP(1, "0.7").two_sided() == ProbabilisticDP(1, 1)
    assert OneSidedDP(1, "1e-3", least=2).implies(loss) and not loss.implies(OneSidedDP(1, "1e-3", least=2))
    assert not ApproxDP(1, "1e-3").implies(loss)


def test_one_sided_dp_refuses_what_no_theorem_gives():
    with pytest.raises(NotCovered):
        OneSidedDP(1, "1e-3").group(2)
    with pytest.raises(NotCovered):
        OneSidedDP(1, "1e-3").as_zcdp()
    with pytest.raises(NotCovered):
        OneSidedDP(1, "1e-3").as_probabilistic("0.9")
    assert OneSidedDP(1, 0).group(2).as_pure() == PureDP(2)


def test_every_loss_implies_no_promise_and_no_promise_implies_none():
    for loss in (PureDP(1), ApproxDP(1, "0.1"), zCDP(1), TradeOff([(0, 1), (1, 0)])):
        assert loss.implies(Unbounded()) and not Unbounded().implies(loss)
    assert Unbounded().implies(ApproxDP(0, 1)), "which promises nothing either"
    assert Unbounded().group(5) == Unbounded()


@pytest.mark.parametrize("loss", [ApproxzCDP("0.1", "1/3"), OneSidedDP(1, "1/3", "1/7"), Unbounded()], ids=str)
def test_they_round_trip(loss):
    assert decode(encode(loss), Loss) == loss

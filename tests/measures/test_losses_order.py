"""The order of losses: `implies` is reflexive and transitive over all measures, sound, and never tuple order."""

import math
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from counterpoint.errors import NotCovered
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

AMOUNTS = st.sampled_from([Fraction(text) for text in ("0", "0.01", "0.1", "1/3", "0.5", "1", "2", "5", "20")])
DELTAS = st.sampled_from([Fraction(text) for text in ("0", "1e-9", "1e-6", "1e-3", "1/30", "0.1", "0.5", "0.9", "1")])
ORDERS = st.sampled_from([Fraction(text) for text in ("1.01", "1.5", "2", "4", "8", "16", "100")])


@st.composite
def chances(draw) -> list[Fraction]:
    weights = draw(st.lists(st.integers(0, 9), min_size=3, max_size=3).filter(any))
    return [Fraction(weight, sum(weights)) for weight in weights]


SMOOTH = st.one_of(
    st.builds(PureDP, AMOUNTS),
    st.builds(ApproxDP, AMOUNTS, DELTAS),
    st.builds(ProbabilisticDP, AMOUNTS, DELTAS),
    st.builds(OneSidedDP, AMOUNTS, DELTAS, AMOUNTS),
    st.builds(zCDP, AMOUNTS),
    st.builds(RenyiDP, ORDERS, AMOUNTS),
    st.builds(tCDP, AMOUNTS, ORDERS),
    st.builds(GaussianDP, AMOUNTS),
)
LOSSES = st.one_of(
    SMOOTH,
    st.builds(TradeOff.of_approx, AMOUNTS, DELTAS),
    st.builds(TradeOff.between, chances(), chances()),
)


@st.composite
def weaker(draw, loss: Loss) -> Loss:
    """One of the conversions of a loss, which may also come out of itself; exactly at the edge of what holds."""
    conversion = draw(
        st.sampled_from(["pure", "approx", "probabilistic", "renyi", "zcdp", "tcdp", "gaussian", "tradeoff"])
    )
    try:
        match conversion:
            case "approx":
                return loss.as_approx(draw(DELTAS))
            case "probabilistic":
                return loss.as_probabilistic(draw(AMOUNTS))
            case "renyi":
                return loss.as_renyi(draw(ORDERS))
            case "tcdp":
                return loss.as_tcdp(draw(ORDERS))
            case "tradeoff" if isinstance(loss, GaussianDP):
                return loss.as_tradeoff(points=3)
            case _:
                converted = getattr(loss, f"as_{conversion}")()
                assert isinstance(converted, Loss)
                return converted
    except NotCovered:
        return loss


@given(LOSSES)
def test_every_loss_implies_itself(loss):
    assert loss.implies(loss)
    assert loss.implies(type(loss)(**{name: getattr(loss, name) for name in loss.__struct_fields__}))


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_a_loss_implies_what_it_converts_to(data):
    loss = data.draw(LOSSES)
    converted = data.draw(weaker(loss))
    assert loss.implies(converted)


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_a_loss_implies_what_its_conversions_convert_to(data):
    loss = data.draw(LOSSES)
    once = data.draw(weaker(loss))
    twice = data.draw(weaker(once))
    assert loss.implies(twice), (loss, once, twice)


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_implication_is_transitive(data):
    first = data.draw(LOSSES)
    second = data.draw(st.one_of(LOSSES, weaker(first)))
    third = data.draw(st.one_of(LOSSES, weaker(second)))
    if first.implies(second) and second.implies(third):
        assert first.implies(third), (first, second, third)


@settings(max_examples=100, deadline=None)
@given(st.data(), DELTAS, AMOUNTS)
def test_a_loss_that_is_implied_never_promises_more(data, delta, epsilon):
    first = data.draw(LOSSES)
    second = data.draw(st.one_of(LOSSES, weaker(first)))
    # at a large delta the order knows more than the conversion at one order, which is not the least upper bound
    if first.implies(second) and not isinstance(first, RenyiDP | zCDP | tCDP):
        assert first.epsilon_at(delta) <= second.epsilon_at(delta)
        assert first.delta_at(epsilon) <= second.delta_at(epsilon)


def test_t06_both_coordinates_decide_never_tuple_order():
    assert not ApproxDP(0.5, 0.9).implies(ApproxDP(1.0, 1e-6))
    assert not ApproxDP(1.0, 1e-6).implies(ApproxDP(0.5, 0.1))
    assert ApproxDP(0.5, 1e-7).implies(ApproxDP(1, 1e-6))
    assert not ProbabilisticDP(0.5, 0.9).implies(ProbabilisticDP(1, 1e-6))
    assert not RenyiDP(4, 0.1).implies(RenyiDP(8, 0.2))
    assert not tCDP(0.1, 4).implies(tCDP(0.2, 8))


def test_a_hair_too_much_is_not_implied():
    hair = Fraction(1, 10**30)
    assert not PureDP(1 + hair).implies(PureDP(1))
    assert not ApproxDP(1, Fraction(1, 3) + hair).implies(ApproxDP(1, Fraction(1, 3)))
    assert ApproxDP(1, Fraction(1, 3)).implies(ApproxDP(2, Fraction(1, 3)))
    assert not zCDP(1 + hair).implies(zCDP(1))
    assert not PureDP(1).implies(zCDP(PureDP(1).as_zcdp(tight=True).rho - hair))


def test_a_smaller_epsilon_may_be_bought_with_delta():
    assert PureDP(1).implies(ApproxDP(0.5, 0.29)) and not PureDP(1).implies(ApproxDP(0.5, 0.28))


@pytest.mark.parametrize(
    ("stronger", "implied", "not_implied"),
    [
        (zCDP(0.05), ApproxDP(1.4716, 1e-6), ApproxDP(1.4715, 1e-6)),
        (GaussianDP(1), ApproxDP(4.8866, 1e-6), ApproxDP(4.8865, 1e-6)),
        (GaussianDP(1), zCDP(0.5), zCDP(0.499)),
        (GaussianDP(1), RenyiDP(3, 1.5), RenyiDP(3, 1.4)),
        (GaussianDP(1), TradeOff.of_approx(1, 0.127), TradeOff.of_approx(1, 0.126)),
        (PureDP(1), GaussianDP(1.2321), GaussianDP(1.232)),
        (PureDP(1), RenyiDP(2, 0.7354), RenyiDP(2, 0.7353)),
        (PureDP(20), zCDP(20), zCDP(19.9)),
        (RenyiDP(2, 0.1), ApproxDP(10.18, 1e-6), ApproxDP(10.17, 1e-6)),
        (tCDP(0.1, 6), tCDP(0.1, 5), tCDP(0.1, 7)),
        (tCDP(0.1, 6), tCDP(0.2, 6), tCDP(0.09, 6)),
        (RenyiDP(6, 0.1), tCDP(0.1, 6), tCDP(0.09, 6)),
        (ApproxDP(1, 1e-3), ProbabilisticDP(2, 0.0018), ProbabilisticDP(2, 0.0017)),
        (TradeOff.between([0.5, 0.5], [0.1, 0.9]), PureDP(1.7), PureDP(1.6)),
        (TradeOff.between([0.5, 0.5], [0.1, 0.9]), ApproxDP(0, 0.4), ApproxDP(0, 0.39)),
    ],
)
def test_implication_across_measures_holds_up_to_the_edge_and_not_beyond(stronger, implied, not_implied):
    assert stronger.implies(implied)
    assert not stronger.implies(not_implied)


@pytest.mark.parametrize(
    ("weaker_loss", "stronger"),
    [
        (ApproxDP(0.1, 1e-9), PureDP(100)),
        (ApproxDP(0.1, 1e-9), zCDP(100)),
        (ApproxDP(0.1, 1e-9), GaussianDP(100)),
        (zCDP(0.1), PureDP(100)),
        (zCDP(0.1), GaussianDP(100)),
        (RenyiDP(4, 0.1), zCDP(100)),
        (GaussianDP(0.1), PureDP(100)),
    ],
)
def test_nothing_is_implied_where_no_conversion_proves_it(weaker_loss, stronger):
    assert not weaker_loss.implies(stronger)


def test_everything_implies_a_loss_that_promises_nothing():
    nothing = [ApproxDP(0, 1), ProbabilisticDP(0, 1), TradeOff([(0, 0), (1, 0)])]
    for loss in (PureDP(100), zCDP(100), RenyiDP(2, 100), tCDP(100, 2), GaussianDP(50), *nothing):
        assert all(loss.implies(empty) for empty in nothing)


def test_the_order_knows_lower_renyi_orders_and_convexity_which_one_order_does_not():
    loss = RenyiDP(8, 1)
    assert loss.delta_at(0.5) == pytest.approx(1 - math.exp(-0.5)), "p = 1 and q = 1/e"
    assert loss.implies(RenyiDP(1.5, 1)) and RenyiDP(1.5, 1).implies(ApproxDP(0.5, 0.5))
    assert loss.implies(ApproxDP(0.5, 0.5))
    corner = ApproxDP(0.91, loss.delta_at(0.91))
    below = ApproxDP(0.7, corner.delta_at(0.7))
    assert loss.implies(corner) and corner.implies(below) and loss.implies(below)
    assert loss.delta_at(0.7) > below.delta


@st.composite
def mechanisms(draw) -> tuple[list[Fraction], list[Fraction]]:
    """Two neighbouring laws of an answer, with the same support."""
    size = draw(st.integers(2, 4))
    laws = []
    for _ in range(2):
        weights = draw(st.lists(st.integers(1, 60), min_size=size, max_size=size))
        laws.append([Fraction(weight, sum(weights)) for weight in weights])
    return laws[0], laws[1]


def losses_of(laws: tuple[list[Fraction], list[Fraction]], order: Fraction) -> list[Loss]:
    """What such a mechanism has in each measure, computed from its laws with floats, and rounded up a little."""

    def divergence(p, q):
        total = math.fsum(float(a) * (float(a) / float(b)) ** float(order - 1) for a, b in zip(p, q, strict=True))
        return math.log(total) / float(order - 1)

    p, q = laws
    tau = max(divergence(p, q), divergence(q, p), 0) * (1 + 1e-9) + 1e-9
    worst = max(abs(math.log(a / b)) for a, b in zip(p, q, strict=True)) * (1 + 1e-12)
    curve = TradeOff.between(p, q)
    return [RenyiDP(order, tau), PureDP(worst), curve, curve.as_gaussian(), curve.as_zcdp(), curve.as_tcdp(order)]


@settings(max_examples=20, deadline=None)
@given(mechanisms(), ORDERS, st.fractions(0, 3, max_denominator=20))
def test_no_mechanism_refutes_an_implied_approximate_dp(laws, order, epsilon):
    true = max(
        sum(max(0.0, float(a) - math.exp(epsilon) * float(b)) for a, b in zip(p, q, strict=True))
        for p, q in (laws, laws[::-1])
    )
    for loss in losses_of(laws, order):
        edge = ApproxDP(epsilon, loss._least_delta(epsilon))  # the least that the order believes in
        assert loss.implies(edge)
        assert true <= edge.delta + Fraction(1, 10**12), loss
        assert true <= loss.delta_at(epsilon) + 1e-12, loss


@settings(max_examples=8, deadline=None)
@given(mechanisms(), ORDERS, st.fractions("0.05", 3, max_denominator=20))
def test_no_mechanism_refutes_an_implied_probabilistic_dp(laws, order, epsilon):
    true = max(
        sum(a for a, b in zip(p, q, strict=True) if abs(math.log(a / b)) > epsilon + 1e-9)
        for p, q in (laws, laws[::-1])
    )
    for loss in losses_of(laws, order):
        try:
            claimed = loss.as_probabilistic(epsilon)
        except NotCovered:
            continue
        assert true <= claimed.delta + Fraction(1, 10**12), loss

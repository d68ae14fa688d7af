"""Trade-off curves: Neyman and Pearson on finite distributions, products, groups, and reading them as other losses."""

import itertools
import math
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from counterpoint.errors import InvalidParameter
from counterpoint.measures import ApproxDP, GaussianDP, PureDP, TradeOff


@st.composite
def chances(draw, size: int = 3) -> list[Fraction]:
    weights = draw(st.lists(st.integers(0, 6), min_size=size, max_size=size).filter(any))
    return [Fraction(weight, sum(weights)) for weight in weights]


PAIRS = st.tuples(chances(), chances())
LEVELS = st.fractions(0, 1, max_denominator=20)


def best_test(first, second, alpha) -> Fraction:
    """The least type II error of all randomised tests: a linear programme, solved at its vertices.

    A vertex rejects on some outcomes and randomises on at most one.
    """
    best = Fraction(1)
    outcomes = range(len(first))
    for rejected in itertools.chain.from_iterable(itertools.combinations(outcomes, n) for n in range(len(first) + 1)):
        error = sum((first[i] for i in rejected), Fraction(0))
        power = sum((second[i] for i in rejected), Fraction(0))
        if error > alpha:
            continue
        best = min(best, 1 - power)
        for i in set(outcomes) - set(rejected):
            share = min(Fraction(1), (alpha - error) / first[i]) if first[i] else Fraction(1)
            best = min(best, 1 - power - share * second[i])
    return best


def test_randomised_tests_are_allowed():
    curve = TradeOff.between([0.5, 0.5], [0.1, 0.9])
    assert curve(0.25) == Fraction(55, 100)  # errata, Henzinger E20: 1 with deterministic tests
    assert curve.vertices == ((0, 1), (Fraction(1, 2), Fraction(1, 10)), (1, 0))


@given(PAIRS, LEVELS)
def test_the_curve_of_two_distributions_is_the_best_test_at_every_level(pair, alpha):
    assert TradeOff.between(*pair)(alpha) == best_test(*pair, alpha)


@given(PAIRS, st.fractions(0, 4, max_denominator=10))
def test_delta_is_the_hockey_stick_in_the_worse_direction(pair, epsilon):
    def stick(p, q):
        return sum(max(0.0, float(a) - math.exp(epsilon) * float(b)) for a, b in zip(p, q, strict=True))

    expected = max(stick(*pair), stick(*reversed(pair)))
    assert TradeOff.between(*pair).delta_at(epsilon) == pytest.approx(expected, rel=1e-9, abs=1e-12)
    assert TradeOff.between(*pair).delta_at(epsilon) >= expected - 1e-15


@given(PAIRS, st.fractions(0, 1, max_denominator=30))
def test_epsilon_and_delta_of_a_curve_are_each_others_inverse(pair, delta):
    curve = TradeOff.between(*pair)
    epsilon = curve.epsilon_at(delta)
    if epsilon == math.inf:
        assert curve.delta_at(1000) > delta
    else:
        assert curve.delta_at(epsilon) <= float(delta) * (1 + 1e-15)
        assert epsilon == 0 or curve.delta_at(epsilon * (1 - 1e-6)) > delta


@settings(max_examples=50)
@given(PAIRS, PAIRS)
def test_the_tensor_is_the_curve_of_the_product_distributions(pair, other):
    joint = [[a * b for a, b in itertools.product(first, second)] for first, second in zip(pair, other, strict=True)]
    assert TradeOff.between(*pair).tensor(TradeOff.between(*other)) == TradeOff.between(*joint)


@given(PAIRS, PAIRS)
def test_the_tensor_commutes_loses_more_than_either_and_has_a_unit(pair, other):
    one, two = TradeOff.between(*pair), TradeOff.between(*other)
    perfect = TradeOff([(0, 1), (1, 0)])
    assert one.tensor(two) == two.tensor(one)
    assert one.lies_above(one.tensor(two)) and two.lies_above(one.tensor(two))
    assert one.tensor(perfect) == one


def test_ratios_that_share_a_float_or_exceed_all_floats_stay_apart():
    """q/p of 1 and of 1 + 1e-30 is one float; one of 1e400 is none."""
    tiny, huge = Fraction(1, 10**30), Fraction(1, 10**400)
    near = TradeOff.between([Fraction(1, 2), Fraction(1, 2)], [Fraction(1, 2) + tiny, Fraction(1, 2) - tiny])
    assert near.vertices[1] == (Fraction(1, 2), Fraction(1, 2) - tiny) and len(near.vertices) == 3
    assert (
        near.tensor(near).vertices[1:-1]
        == TradeOff.between(
            [Fraction(1, 4), Fraction(1, 2), Fraction(1, 4)],
            [(Fraction(1, 2) + tiny) ** 2, 2 * (Fraction(1, 4) - tiny**2), (Fraction(1, 2) - tiny) ** 2],
        ).vertices[1:-1]
    )
    steep = TradeOff.between([huge, 1 - huge], [Fraction(1, 2), Fraction(1, 2)])
    assert steep.vertices == ((0, 1), (huge, Fraction(1, 2)), (1, 0))


def test_twenty_equal_curves_of_four_segments_make_one():
    curve = TradeOff([(0, 1), ("0.1", "0.5"), ("0.3", "0.25"), ("0.5", "0.1"), (1, 0)])
    assert len(curve.tensor_power(20).vertices) == 1772


def test_many_tensors_stay_exact_and_can_still_be_converted():
    curve = one = TradeOff.of_approx(0.1, 1e-6)
    for _ in range(11):
        curve = curve.tensor(one)
    assert curve(0) == (1 - Fraction(1, 10**6)) ** 12
    assert 0 < curve.delta_at(1.2) < 1.3e-5 and curve.epsilon_at(0.01) < 1.2
    assert curve.implies(ApproxDP(1.2 + 1e-9, 1.2e-5)) and curve.as_probabilistic(1.3).delta < Fraction(1, 100)


@settings(max_examples=50)
@given(chances(), chances(), chances())
def test_a_group_of_two_covers_every_path_over_a_middle(first, middle, last):
    steps = [TradeOff.between(first, middle), TradeOff.between(middle, last)]
    # the largest (epsilon, 0.5)-curve that is below both steps, if there is one
    epsilon = max(step.epsilon_at(0.5) for step in steps)
    loss = ApproxDP(0 if epsilon == math.inf else epsilon, 0.5)
    if all(step.implies(loss.as_tradeoff()) for step in steps):
        assert TradeOff.between(first, last).implies(loss.as_tradeoff().group(2))


def test_a_group_follows_the_composition_of_curves():
    curve = TradeOff([(0, 1), (0.25, 0.25), (1, 0)])
    grouped = curve.group(2)
    for k in range(21):
        alpha = Fraction(k, 20)
        assert grouped(alpha) == curve(1 - curve(alpha))
    assert curve.group(1) == curve
    assert curve.group(3)(Fraction(1, 10)) == curve(1 - grouped(Fraction(1, 10)))


@given(st.fractions("0.1", 3, max_denominator=10), st.integers(2, 4))
def test_a_group_of_a_pure_curve_is_within_m_epsilon(epsilon, size):
    assert PureDP(epsilon).as_tradeoff().group(size).implies(PureDP(size * epsilon + Fraction(1, 10**15)))


@pytest.mark.parametrize("epsilon", [0, "1e-30", 0.1, 1, 10, 800])
@pytest.mark.parametrize("delta", [0, "1e-300", 1e-6, 0.5, 1])
def test_the_curve_of_approximate_dp_is_rounded_toward_more_loss_and_hardly(epsilon, delta):
    loss = ApproxDP(epsilon, delta)
    curve = TradeOff.of_approx(epsilon, delta)
    assert loss.implies(curve)
    assert curve(0) == 1 - loss.delta
    slightly = ApproxDP(loss.epsilon + Fraction(1, 10**18), loss.delta)
    assert curve.implies(slightly)
    assert curve == loss.as_tradeoff()


def test_the_curve_of_approximate_dp_is_the_formula_of_s4():
    curve, growth = TradeOff.of_approx(1, 0.1), math.e
    for k in range(11):
        alpha = k / 10
        expected = max(0, 0.9 - growth * alpha, (0.9 - alpha) / growth)
        assert float(curve(alpha)) == pytest.approx(expected, abs=1e-15)


def test_the_curve_of_gaussian_dp_is_approached_from_below():
    loss = GaussianDP(1)
    coarse, fine = loss.as_tradeoff(points=4), loss.as_tradeoff(points=24)
    assert loss.implies(coarse) and loss.implies(fine)
    # G_1(1/2) = Phi(-1)
    truth = math.erfc(1 / math.sqrt(2)) / 2
    assert coarse(0.5) <= fine(0.5) <= truth and truth - float(fine(0.5)) < 4e-3 < truth - float(coarse(0.5))
    assert GaussianDP(0).as_tradeoff() == TradeOff([(0, 1), (1, 0)])


def test_the_highest_of_several_curves_has_all_their_guarantees():
    curves = [TradeOff.of_approx(0, 0.3), TradeOff.of_approx(2, 0.01)]
    both = TradeOff.highest(curves)
    assert all(both.lies_above(curve) for curve in curves)
    for k in range(11):
        assert both(Fraction(k, 10)) == max(curve(Fraction(k, 10)) for curve in curves)


@given(PAIRS, PAIRS)
def test_implication_between_curves_is_the_pointwise_order(pair, other):
    one, two = TradeOff.between(*pair), TradeOff.between(*other)
    grid = [Fraction(k, 60) for k in range(61)]
    corners = [alpha for curve in (one, two) for alpha, _ in curve.vertices]
    assert one.implies(two) == all(one(alpha) >= two(alpha) for alpha in grid + corners)


@given(PAIRS, st.fractions("1.1", 10, max_denominator=10))
def test_the_divergence_of_a_curve_is_that_of_its_distributions(pair, alpha):
    p, q = pair
    if any((a == 0) != (b == 0) for a, b in zip(p, q, strict=True)):
        return

    def divergence(p, q):
        terms = [float(a) ** float(alpha) * float(b) ** float(1 - alpha) for a, b in zip(p, q, strict=True) if a]
        return math.log(math.fsum(terms)) / float(alpha - 1)

    expected = max(divergence(p, q), divergence(q, p))
    assert float(TradeOff.between(p, q).as_renyi(alpha).epsilon) == pytest.approx(expected, rel=1e-6, abs=1e-9)


def test_the_gaussian_of_a_curve_touches_one_of_its_corners():
    curve = TradeOff([(0, 1), (0.1, 0.5), (0.5, 0.1), (1, 0)])
    mu = float(curve.as_gaussian().mu)
    assert 0.5 * math.erfc((1.2815515655446004 - mu) / math.sqrt(2)) == pytest.approx(0.5, abs=1e-12)
    assert PureDP(1).as_tradeoff().as_gaussian().mu == pytest.approx(PureDP(1).as_gaussian().mu)


def test_equal_curves_are_equal_however_many_points_describe_them():
    assert TradeOff([(0, 1), (0.5, 0.5), (1, 0)]) == TradeOff([(0, 1), (1, 0)])
    assert hash(TradeOff([(0, 1), (0.25, 0.75), (0.5, 0.5), (1, 0)])) == hash(TradeOff([(0, 1), (1, 0)]))


@pytest.mark.parametrize(
    "vertices",
    [
        [],
        [(0, 1)],
        [(0, 1), (1, 0.1)],
        [(0.1, 0.9), (1, 0)],
        [(0, 1), (0.5, 0.6), (1, 0)],
        [(0, 0.5), (0.5, 0.4), (1, 0)],
        [(0, 0.2), (0.5, 0.3), (1, 0)],
        [(0, 1.5), (1, 0)],
        [(0, 1), (0.5, -0.1), (1, 0)],
        [(0, 1), (0.5, 0.2), (0.4, 0.3), (1, 0)],
        [(0, 1), (0, 0.5), (1, 0)],
    ],
)
def test_what_is_not_a_trade_off_curve_is_refused(vertices):
    with pytest.raises(InvalidParameter):
        TradeOff(vertices)


@pytest.mark.parametrize(
    "pair",
    [([0.5, 0.5], [1]), ([0.5, 0.4], [0.5, 0.5]), ([1.5, -0.5], [0.5, 0.5]), ([], []), ([0.5, 0.5], [0.1, 0.8])],
)
def test_what_is_not_a_pair_of_distributions_is_refused(pair):
    with pytest.raises(InvalidParameter):
        TradeOff.between(*pair)


@pytest.mark.parametrize("alpha", [-0.1, 1.1, float("nan"), True])
def test_a_curve_is_asked_at_probabilities_only(alpha):
    with pytest.raises(InvalidParameter):
        TradeOff.of_approx(1, 0)(alpha)

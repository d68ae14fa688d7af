"""Huge and tiny parameters: every question has an answer or a typed refusal, after a bounded amount of work.

Work is counted, not timed: calls of Python functions, and the digits of the arithmetic.
"""

import math
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from fractions import Fraction
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from counterpoint.composition.fixed import compose
from counterpoint.composition.parallel import EqualParts, Parallel
from counterpoint.errors import CounterpointError, NotCovered
from counterpoint.measures import (
    ApproxDP,
    ApproxzCDP,
    GaussianDP,
    Loss,
    OneSidedDP,
    ProbabilisticDP,
    PureDP,
    RenyiDP,
    TradeOff,
    Unbounded,
    tCDP,
    zCDP,
)
from counterpoint.measures.gaussian_curve import gaussian_delta, gaussian_epsilon, gaussian_mu
from counterpoint.measures.renyi import _corner
from counterpoint.numbers import Interval, interval

MOST_CALLS = 600_000
MOST_DIGITS = 1700
LONG = "0." + "3" * 399 + "7"
NINES = "0." + "9" * 400
AMOUNTS = ["0", "1e-400", "1e-300", LONG, "1/3", "1", "1e6", "1e15", "1e50", "1e100", "1e300", "9e399"]
DELTAS = ["0", "1e-400", "1e-300", "1e-6", LONG, "0.999999999999", NINES, "1"]
ORDERS = ["1." + "0" * 399 + "1", "1.0000001", "2", "1e6", "1e50", "9e399"]
SIZES = [0, 1, 2, 1000, 10**6, 10**30]


class TooMuchWork(Exception):
    """A question took more calls or digits than it should."""


@contextmanager
def bounded_work(most: int = MOST_CALLS) -> Iterator[None]:
    calls, plain, before = 0, interval.Precision, sys.getprofile()

    def count(_frame: object, event: str, _argument: object) -> None:
        nonlocal calls
        calls += event == "call"
        if calls > most:
            sys.setprofile(None)
            raise TooMuchWork(f"more than {most} calls")

    def thrifty(digits: int) -> interval.Precision:
        if digits > MOST_DIGITS:
            raise TooMuchWork(f"{digits} digits")
        return plain(digits)

    interval.precision.cache_clear()
    _corner.cache_clear()
    interval.Precision = thrifty  # type: ignore[assignment, misc]
    sys.setprofile(count)
    try:
        yield
    finally:
        sys.setprofile(before)
        interval.Precision = plain  # type: ignore[misc]
        interval.precision.cache_clear()


amounts, deltas, orders = st.sampled_from(AMOUNTS), st.sampled_from(DELTAS), st.sampled_from(ORDERS)
LOSSES = st.one_of(
    st.builds(PureDP, amounts),
    st.builds(ApproxDP, amounts, deltas),
    st.builds(ProbabilisticDP, amounts, deltas),
    st.builds(OneSidedDP, amounts, deltas, amounts),
    st.builds(zCDP, amounts),
    st.builds(ApproxzCDP, amounts, deltas),
    st.builds(RenyiDP, orders, amounts),
    st.builds(tCDP, amounts, orders),
    st.builds(GaussianDP, amounts),
    st.builds(TradeOff.of_approx, amounts, deltas),
    st.just(TradeOff([(0, 1), ("1e-400", "1e-400"), (1, 0)])),
    st.just(TradeOff.between([0.5, 0.3, 0.2], [0.1, 0.3, 0.6])),
    st.just(Unbounded()),
)
QUESTIONS = st.one_of(
    st.tuples(st.sampled_from(["epsilon_at", "epsilon_bounds", "as_approx"]), deltas),
    st.tuples(st.sampled_from(["delta_at", "delta_bounds", "as_probabilistic"]), amounts),
    st.tuples(st.sampled_from(["as_renyi", "as_tcdp"]), orders),
    st.tuples(st.sampled_from(["as_pure", "as_zcdp", "as_gaussian", "as_tradeoff", "__repr__"])),
    st.tuples(st.just("group"), st.sampled_from(SIZES)),
    st.tuples(st.just("implies"), LOSSES),
)


@settings(max_examples=250, deadline=None)
@given(LOSSES, QUESTIONS)
def test_every_question_to_every_loss_is_answered_or_refused_after_bounded_work(loss, question):
    name, *arguments = question
    with bounded_work(), suppress(CounterpointError):
        getattr(loss, name)(*arguments)


@pytest.mark.parametrize(
    ("loss", "question", "argument"),
    [
        (zCDP("0.1"), "epsilon_at", NINES),
        (tCDP("0.1", 3), "epsilon_at", NINES),
        (ApproxzCDP("0.1", "1e-6"), "epsilon_at", NINES),
        (zCDP("1e-400"), "as_probabilistic", "9e399"),
        (tCDP("1e-400", 2), "as_probabilistic", "1e-400"),
        (RenyiDP(ORDERS[0], "9e399"), "as_probabilistic", "1e-400"),
        (GaussianDP("1e50"), "implies", ApproxDP(1, 1e-6)),
        (GaussianDP("1e-300"), "epsilon_at", "1e-400"),
        (GaussianDP(100), "epsilon_at", NINES),
        (ApproxDP("1e300", "1e-9"), "group", 0),
    ],
    ids=repr,
)
def test_questions_that_were_not_answered_once_are(loss, question, argument):
    with bounded_work():
        getattr(loss, question)(argument)


@pytest.mark.parametrize("loss", [zCDP("9e399"), zCDP("1e-400"), RenyiDP(2, "9e399"), tCDP("1e-300", 2)], ids=repr)
def test_the_corner_of_a_divergence_bound_is_found_in_few_steps_however_far_it_is(loss):
    with bounded_work(30_000):
        assert _corner(loss)[0] > 0


def test_very_many_equal_parts_are_added_up_without_being_listed():
    with bounded_work():
        assert Parallel(10**30, each=PureDP("1e-30")).loss(EqualParts()) == PureDP(1)
        assert Parallel(10**30, each=ApproxDP("1e-30", "1e-36"), first_pair=True).loss(EqualParts()) == ApproxDP(
            1, 1e-6
        )
        assert Parallel(10**30, each=GaussianDP("1e-15"), first_pair=True).loss(EqualParts()) == GaussianDP(1)
    with pytest.raises(NotCovered, match="too many vertices"):
        Parallel(10**30, each=TradeOff.between([0.5, 0.5], [0.1, 0.9]), first_pair=True).loss(EqualParts())


@pytest.mark.parametrize("epsilon", ["0", "1e-300", "1", "1e15", "1e100", "9e399"])
@pytest.mark.parametrize("delta", ["1e-400", "1e-6", "0.5", "0.999999999999", "0." + "9" * 70, NINES])
def test_the_largest_gaussian_within_a_budget_is_found_for_every_budget(epsilon, delta):
    with bounded_work():
        loss = GaussianDP.for_budget(epsilon, delta)
        assert loss.delta_bounds(epsilon).lower <= Fraction(delta)
        if loss.mu > Fraction(1, 10**350):  # below, a mu is rounded down to 0
            more = GaussianDP(loss.mu * (1 + Fraction(1, 10**20)))
            assert more.delta_bounds(epsilon).upper > Fraction(delta)


def test_a_huge_gaussian_budget_and_loss_are_those_of_concentrated_dp_to_all_digits():
    with bounded_work():
        mu = GaussianDP.for_budget("1e100", "1e-6").mu
        epsilon = GaussianDP("1e50").epsilon_at(1e-6)
    assert float(mu) == pytest.approx(math.sqrt(2e100), rel=1e-15)
    assert epsilon == pytest.approx(5e99, rel=1e-15) and epsilon >= 5e99


@pytest.mark.parametrize("mu", ["1e-19", "1e-21", "1e-40", "1e-100", "1e-300"])
@pytest.mark.parametrize("standardised", ["0", "0.7", "9"])
def test_a_tiny_gaussian_loss_has_the_curve_that_the_cancelling_formula_has(mu, standardised):
    """Near mu = 0 the curve is computed by another formula; with enough digits the usual one gives the same."""
    small, middle = Fraction(mu), Fraction(standardised)
    few = gaussian_delta(small, small * middle, interval.precision(62))
    many = gaussian_delta(small, small * middle, interval.precision(1300))
    assert few.lower <= many.lower <= many.upper <= few.upper
    assert few.agrees_to(15) and many.agrees_to(600)


@pytest.mark.parametrize("mu", [8, 15, 18, 100])
def test_both_forms_of_the_gaussian_inverse_agree_where_delta_is_nearly_one(mu):
    """On either side of the delta where the inverse goes over to 1 - delta; the curves fall steadily."""
    deltas = [1 - Fraction(1, 10**places) - Fraction(1, 10**30) for places in (5, 6, 7, 20)]
    epsilons = [gaussian_epsilon(Fraction(mu), delta) for delta in deltas]
    assert all(one.lower > other.upper for one, other in pairwise(epsilons) if one.upper > 0)
    for delta, found in zip(deltas, epsilons, strict=True):
        low, high = (gaussian_delta(Fraction(mu), Fraction(end), interval.precision(99)) for end in ends(found))
        assert Fraction(high.lower) <= delta and (found.lower == 0 or delta <= Fraction(low.upper))
    mus = [gaussian_mu(Fraction(3), delta) for delta in deltas]
    assert all(one.upper < other.lower for one, other in pairwise(mus))
    for delta, found in zip(deltas, mus, strict=True):
        low, high = (gaussian_delta(Fraction(end), Fraction(3), interval.precision(99)) for end in ends(found))
        assert Fraction(low.lower) <= delta <= Fraction(high.upper)


def ends(found: Interval) -> tuple[Fraction, Fraction]:
    return Fraction(found.lower), Fraction(found.upper)


def test_a_group_of_a_curve_is_composed_by_doubling_or_refused():
    curve = TradeOff([(0, 1), (0.25, 0.25), (1, 0)])
    one_by_one = curve
    for size in range(2, 12):
        one_by_one = TradeOff([(a, one_by_one(1 - curve(a))) for a in sorted(corners(curve, one_by_one))])
        assert curve.group(size) == one_by_one
    with pytest.raises(NotCovered, match="as_approx"):
        curve.group(10**6)
    assert TradeOff([(0, 1), (1, 0)]).group(10**30) == TradeOff([(0, 1), (1, 0)])
    assert TradeOff([(0, 0), (1, 0)]).group(10**30) == TradeOff([(0, 0), (1, 0)])


def corners(first: TradeOff, second: TradeOff) -> set[Fraction]:
    """Where second(1 - first) may bend: at the vertices of the first, and where it passes one of the second."""
    found = {alpha for alpha, _ in first.vertices}
    for (a, at_a), (b, at_b) in pairwise(first.vertices):
        found |= {a + (b - a) * (at_a - 1 + c) / (at_a - at_b) for c, _ in second.vertices if at_b < 1 - c < at_a}
    return found


@pytest.mark.parametrize("epsilon", AMOUNTS[:-1])
@pytest.mark.parametrize("copies", [1, 3, 300])
def test_fixed_compositions_of_any_magnitude_are_computed_after_bounded_work(epsilon, copies):
    losses = [ApproxDP(epsilon, "1e-9")] * copies
    with bounded_work():
        for rule in (compose.optimal, compose.basic, compose.advanced, compose.vadhan_wang):
            total = rule(losses)
            assert all(0 <= total.delta_at(amount) <= 1 for amount in ("0", "1e-300", "1", "1e100"))
            assert all(total.epsilon_at(delta) >= 0 for delta in ("0", "1e-400", "1e-6", NINES))


def test_too_many_curves_at_once_are_refused():
    curve = GaussianDP(1).as_tradeoff(points=8)
    with pytest.raises(NotCovered, match="too many vertices"):
        compose.optimal([curve] * 1000)
    with pytest.raises(CounterpointError):
        compose.optimal({PureDP(1): 100})  # type: ignore[arg-type]


@pytest.mark.parametrize("delta", [1e-6, "1e-6", Fraction(1, 10**6)])
@pytest.mark.parametrize(
    "loss",
    [
        PureDP(1),
        ApproxDP(1, 1e-7),
        ProbabilisticDP(1, 1e-7),
        OneSidedDP(1, 1e-7),
        zCDP(0.1),
        ApproxzCDP(0.1, 1e-7),
        RenyiDP(8, 0.1),
        tCDP(0.1, 20),
        GaussianDP(0.5),
        TradeOff.of_approx(1, 1e-7),
        Unbounded(),
        compose.optimal([PureDP(0.1)] * 5),
        compose.optimal([zCDP(0.1)] * 5),
        compose.advanced([PureDP(0.1)] * 5),
        compose.basic([ApproxDP(0.1, 1e-8)] * 5),
    ],
    ids=repr,
)
def test_bounds_read_numbers_as_the_other_questions_do(loss, delta):
    bounds = loss.epsilon_bounds(delta)
    assert (math.inf if bounds is None else float(bounds.upper)) == pytest.approx(loss.epsilon_at(delta))
    for epsilon in (0.25, "0.25", Fraction(1, 4)):
        assert float(loss.delta_bounds(epsilon).upper) == pytest.approx(loss.delta_at(0.25), rel=1e-12)
    if isinstance(loss, compose.Composed):
        assert float(loss.epsilon_above(delta)) == pytest.approx(loss.epsilon_at(delta))
        assert loss.epsilon_below(delta) <= loss.epsilon_above(delta)
        assert loss.delta_below(0.25) <= loss.delta_above(0.25)
    for bad in (-0.1, 1.1, float("nan"), True, None):
        with pytest.raises(CounterpointError):
            loss.epsilon_bounds(bad)
    for bad in (-0.1, float("inf"), True, None):
        with pytest.raises(CounterpointError):
            loss.delta_bounds(bad)


@pytest.mark.parametrize(
    "loss",
    [
        PureDP(1),
        ApproxDP("1e50", 0.1),
        ProbabilisticDP(1, 0.1),
        OneSidedDP(1, 0.1, 0.5),
        zCDP(1),
        ApproxzCDP(1, 0.1),
        RenyiDP(8, 1),
        tCDP(1, 2),
        GaussianDP(1),
        TradeOff([(0, 0.5), (0.5, 0), (1, 0)]),
        Unbounded(),
        compose.optimal([ApproxDP(1, 0.1)] * 3),
        compose.advanced([ApproxDP(1, 0.1)] * 3),
        compose.basic([ApproxDP(1, 0.1)] * 3),
        compose.optimal([RenyiDP(8, 1)] * 3),
    ],
    ids=repr,
)
def test_a_group_of_no_places_loses_nothing_and_a_group_of_one_is_the_loss_itself(loss: Loss):
    nothing = loss.group(0)
    assert nothing.epsilon_at(0) == 0 and nothing.delta_at(0) == 0
    assert loss.group(1) == loss

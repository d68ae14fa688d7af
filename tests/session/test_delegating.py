"""Everything that has a claim can be delegated, and is charged by its claim (Haney et al. 2023, Lemma 4.5)."""

from fractions import Fraction

import pytest
from tests.ledger.places import Place
from tests.session.numbers_source import Numbers

import counterpoint as cp
from counterpoint.composition.restated import Converted
from counterpoint.encoding import decode, encode
from counterpoint.mechanisms.concurrent import Concurrent, Launch
from counterpoint.mechanisms.randomized_response import RandomizedResponse
from counterpoint.privacy.messages import Ask, ToChild
from counterpoint.privacy.relations import every_step
from counterpoint.verify.message_pairs import asks
from counterpoint.verify.verdict import Verdict

DELTA = Fraction(1, 10**7)


def session(budget):
    return cp.Session(Numbers({"apples": 3}), within=budget)


def test_slots_are_charged_by_their_optimal_composition_and_hold_their_losses():
    s = session(cp.ApproxDP(1, 1e-6))
    slots = cp.Slots([cp.PureDP(0.01)] * 100)
    inner = s.delegate(slots, delta=DELTA)
    assert s.loss.epsilon == slots.total.as_approx(DELTA).epsilon < Fraction(45, 100)
    inner.launch(cp.Laplace(0.01))
    with pytest.raises(cp.BudgetExceeded):
        inner.launch(cp.Laplace(0.02))
    with pytest.raises(cp.errors.NotAllowed):
        inner.remaining  # noqa: B018 - the property refuses


def test_slots_of_pure_losses_are_pure_at_a_delta_of_zero():
    s = session(cp.PureDP(1))
    inner = s.delegate(cp.Slots([cp.PureDP(0.1), cp.PureDP(0.2)]), delta=0)
    assert s.loss == cp.PureDP(0.3)
    inner.launch(cp.Laplace(0.2))


def test_slots_in_a_measure_that_adds_up_need_no_delta():
    s = session(cp.zCDP(1))
    s.delegate(cp.Slots([cp.zCDP(0.1)] * 3))
    assert s.loss == cp.zCDP(0.3)


def test_approximate_zcdp_is_charged_as_the_epsilon_and_delta_that_it_implies():
    s = session(cp.ApproxDP(1, 1e-6))
    budget = cp.measures.ApproxzCDP(0.01, 1e-9)
    with pytest.raises(cp.errors.NotCovered):
        s.delegate(budget)
    inner = s.delegate(budget, delta=DELTA)
    assert s.loss.epsilon == budget.as_approx(DELTA).epsilon
    assert s.remaining.delta < Fraction(1, 10**6) - DELTA
    inner.launch(cp.Gaussian(rho=0.005))
    assert inner.loss == cp.measures.ApproxzCDP(0.005, 0) and inner.remaining.epsilon == Fraction(1, 10)
    with pytest.raises(cp.errors.NotCovered):
        inner.launch(cp.Laplace(0.001, asks=2))


def test_a_delta_below_that_of_the_budget_has_no_finite_epsilon():
    with pytest.raises(cp.errors.NotCovered, match="larger delta"):
        session(cp.ApproxDP(1, 1e-6)).delegate(cp.measures.ApproxzCDP(0.01, 1e-9), delta=1e-10)


def test_the_filter_of_an_odometer_can_be_delegated_and_an_odometer_cannot():
    s = session(cp.PureDP(1))
    inner = s.delegate(cp.Odometer(cp.PureDP).within(cp.PureDP(0.25)))
    assert s.loss == cp.PureDP(0.25) and inner.remaining.epsilon == Fraction(1, 4)
    with pytest.raises(cp.errors.NotCovered, match="use a Filter"):
        s.delegate(cp.Odometer(cp.PureDP))
    assert s.loss == cp.PureDP(0.25)


def test_a_limited_filter_can_be_delegated():
    inner = session(cp.PureDP(1)).delegate(cp.Filter(cp.PureDP(0.5), launches=1))
    inner.launch(cp.Laplace(0.1))
    with pytest.raises(cp.BudgetExceeded):
        inner.launch(cp.Laplace(0.1))


def test_parallel_composition_needs_sparse_data():
    with pytest.raises(cp.errors.RelationMismatch, match="partition"):
        session(cp.PureDP(1)).delegate(cp.Parallel(1, each=cp.PureDP(0.1)))


def test_a_rule_that_halts_is_refused():
    with pytest.raises(cp.errors.InvalidParameter, match="halt"):
        session(cp.PureDP(1)).delegate(cp.Filter(cp.PureDP(0.1), halt=True))


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_four_measures_deep_and_again_after_a_restart(kind, tmp_path):
    place = Place(kind, tmp_path)
    with place.session(cp.ApproxDP(3, 1e-6)) as s:
        first = s.delegate(cp.measures.ApproxzCDP(0.02, 1e-9), delta=DELTA, id="first")
        second = s.delegate(cp.zCDP(0.02), id="second")
        third = second.delegate(cp.GaussianDP(0.1))
        fourth = second.delegate(cp.PureDP(0.01))
        fourth.launch(cp.Laplace(0.01))
        first.launch(cp.Laplace(0.2))
        lost = [room.loss for room in (s, first, second, third, fourth)]
        paths = [room._path for room in (s, first, second, third, fourth)]
    if kind == "memory":
        return
    with place.session(cp.ApproxDP(3, 1e-6)) as s:
        assert [s.at(path).loss for path in paths] == lost
        again = s.delegate(cp.measures.ApproxzCDP(0.02, 1e-9), delta=DELTA, id="first")
        assert s.loss == lost[0] and again.rule == Converted(cp.Filter(cp.measures.ApproxzCDP(0.02, 1e-9)), DELTA)


def test_a_converted_rule_is_stored_and_read():
    rule = Converted(cp.Slots([cp.PureDP(0.1)]), DELTA)
    assert decode(encode(rule), Converted) == rule


def test_what_is_delegated_never_loses_more_than_is_charged_for_it():
    """Two slots of randomized response, converted at the delta where their composition is tight."""
    rule = Converted(cp.Slots([cp.PureDP(1), cp.PureDP(1)]), Fraction(1, 10))
    both = Concurrent(rule, every_step())
    launch = Ask(Launch(RandomizedResponse(1)))
    messages = ((launch, launch), *(pair for n in (0, 1) for pair in asks([(0, 1), (1, 0)], ToChild(n))))
    loss = cp.verify.exact(both, messages=messages, rounds=4)
    assert loss.judge(both.claim) == Verdict.HOLDS
    assert loss.judge(cp.ApproxDP(both.claim.loss.epsilon * Fraction(99, 100), Fraction(1, 10))) == Verdict.REFUTED

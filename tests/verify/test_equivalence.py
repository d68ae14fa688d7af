"""Two mechanisms are equivalent if no adversary tells them apart."""

from fractions import Fraction

import pytest

import counterpoint as cp
from counterpoint.encoding import Value
from counterpoint.mechanisms.concurrent import Concurrent, Launch
from counterpoint.privacy.messages import ToChild
from counterpoint.privacy.relations import every_step
from counterpoint.verify.equivalence import distinguisher, equivalent

BITS = [cp.mechanisms.Ask(private=0), cp.mechanisms.Ask(private=1)]


class Forget(cp.mechanisms.Postprocessor, Value, frozen=True):
    """Answers by a fair coin of its own."""

    def start(self):
        return None

    def react(self, own, request, ask):
        return own, (False, ask.coins.integer(2))


class Same(cp.mechanisms.Postprocessor, Value, frozen=True):
    """Passes everything on."""

    def start(self):
        return None

    def react(self, own, request, ask):
        return own, ask(request)


def test_a_fair_coin_is_the_response_that_loses_nothing():
    made = cp.postprocess(Forget(), cp.RandomizedResponse(3))
    assert equivalent(made, cp.RandomizedResponse(0), BITS, rounds=1) == cp.verify.Verdict.HOLDS
    assert equivalent(made, cp.RandomizedResponse("0.1"), BITS, rounds=1) == cp.verify.Verdict.REFUTED


def test_postprocessing_by_nothing_changes_nothing():
    noise = cp.RandomizedResponse(1)
    assert distinguisher(cp.postprocess(Same(), noise), noise, BITS, rounds=1).delta_at(0) < 1e-12


def test_a_composition_with_a_filter_that_never_refuses_is_the_one_without():
    """Free of charge refusals aside, the rule of a composition is not to be seen in its answers."""
    launch = cp.mechanisms.Ask(Launch(cp.RandomizedResponse(1)))
    messages = [launch, cp.mechanisms.Ask(ToChild(0), 0), cp.mechanisms.Ask(ToChild(0), 1)]
    ample, counting, tight = (
        Concurrent(rule, every_step())
        for rule in (cp.Filter(cp.PureDP(9)), cp.Odometer(cp.PureDP), cp.Filter(cp.PureDP("0.5")))
    )
    assert equivalent(ample, counting, messages[:2], rounds=2) == cp.verify.Verdict.HOLDS
    assert equivalent(ample, tight, messages[:2], rounds=2) == cp.verify.Verdict.REFUTED


def test_how_far_they_are_apart_is_the_total_variation():
    left, right = cp.RandomizedResponse(0, Fraction(1, 4)), cp.RandomizedResponse(0)
    assert distinguisher(left, right, BITS, rounds=1).delta_at(0) == pytest.approx(1 / 4)


def test_messages_must_suit_both():
    with pytest.raises(cp.errors.InvalidParameter, match="that the other does not"):
        equivalent(cp.RandomizedResponse(1), cp.Counter(epsilon=1), [cp.mechanisms.Update(1)], rounds=1)
    with pytest.raises(cp.errors.InvalidParameter, match="one or more messages"):
        equivalent(cp.RandomizedResponse(1), cp.RandomizedResponse(1), [], rounds=1)

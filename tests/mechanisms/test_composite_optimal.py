"""Composites that claim the optimal composition of their parts, at one delta."""

from fractions import Fraction

import pytest

from counterpoint import verify
from counterpoint.coins import SeededCoins
from counterpoint.composition.fixed.compose import optimal
from counterpoint.encoding import Value
from counterpoint.errors import InvalidParameter, NotCovered
from counterpoint.measures import ApproxDP, GaussianDP, PureDP, RenyiDP, zCDP
from counterpoint.mechanisms.additive import Gaussian, Laplace
from counterpoint.mechanisms.composite import Composite, Own
from counterpoint.mechanisms.composite_parts import Part
from counterpoint.mechanisms.randomized_response import RandomizedResponse
from counterpoint.privacy.messages import Ask
from counterpoint.privacy.relations import every_step

EACH = every_step()


class Nothing(Own, Value, frozen=True):
    """No memory."""


class Answers(Composite, Value, frozen=True):
    """Launches what it is given in a slot each, and sends the one value to all of them."""

    structure = (Part("once", PureDP(1), EACH),)
    relation = EACH
    inside = ()
    claimed_delta = "1e-6"

    def accepts(self, message):
        return isinstance(message, Ask)

    def begin(self, context):
        for name, at, mechanism in self.inside:
            context.launch(name, mechanism, at)
        return Nothing()

    def react(self, context, own, message):
        return None, tuple(context.ask(name, message.private, at=at) for name, at, _ in self.inside)


def of(*parts, delta="1e-6", inside=()):
    """A composite of these parts."""
    members = {"structure": parts, "claimed_delta": delta, "inside": inside}
    return type("Made", (Answers,), members)()


def test_a_hundred_slots_of_a_tenth_cost_477_at_the_delta_and_10_without_one():
    parts = Part("often", PureDP("0.1"), EACH, slots=100)
    found = of(parts)
    assert of(parts, delta=None).claim.loss == PureDP(10)
    assert found.claim.loss.delta == Fraction(1, 10**6)
    low, high = found.curve.bounds.epsilon_at(1e-6)
    assert low <= float(found.claim.loss.epsilon) <= high and high - low < 1e-9
    assert round(high, 2) == 4.77
    assert found.claim.certificate.rests_on("optimal composition")


@pytest.mark.parametrize("delta", ["0.1", "0.25"])
def test_the_claim_of_unlike_slots_is_met_by_the_best_adversary_and_nothing_less_is(delta):
    parts = Part("one", PureDP(1), EACH, slots=2), Part("two", ApproxDP("0.5", "0.05"), EACH, sparse=1, first_pair=True)
    inside = [("one", 0, RandomizedResponse(1)), ("one", 1, RandomizedResponse(1))]
    found = of(*parts, delta=delta, inside=[*inside, ("two", 0, RandomizedResponse("0.5", "0.05"))])
    neighbours = [(Ask(private=0), Ask(private=1)), (Ask(private=1), Ask(private=0))]
    loss = verify.exact(found, messages=neighbours, rounds=1)
    claimed = found.claim.loss
    assert loss.judge(claimed) is verify.Verdict.HOLDS
    assert loss.judge(ApproxDP(claimed.epsilon, claimed.delta * Fraction(99, 100))) is verify.Verdict.REFUTED
    assert claimed.epsilon < of(*parts, delta=None).claim.loss.epsilon


def test_a_sparse_part_counts_as_often_as_it_is_reached():
    pure = Part("often", PureDP("0.1"), EACH, sparse=50)
    assert of(pure).claim.loss.epsilon == optimal([PureDP("0.1")] * 50)._least_epsilon(Fraction(1, 10**6))
    charged = Part("often", ApproxDP("0.1", "1e-9"), EACH, sparse=50, delta_total="1e-7")
    every = optimal([PureDP("0.1")] * 50 + [ApproxDP(0, "1e-7")])
    assert of(charged).claim.loss.epsilon == every._least_epsilon(Fraction(1, 10**6))


def test_parts_of_several_measures_compose_if_what_is_launched_is_one_draw():
    parts = Part("pure", PureDP("0.5"), EACH), Part("wide", zCDP("0.1"), EACH), Part("bell", GaussianDP("0.3"), EACH)
    assert of(*parts).claim.loss.epsilon < 4
    with pytest.raises(NotCovered):
        of(*parts, delta=None).claim  # noqa: B018 - the claim is derived as it is read
    for inside, refused in (
        (("wide", 0, Gaussian("0.1", discrete=True)), False),
        (("wide", 0, Gaussian("0.1", discrete=True, asks=2)), True),
        (("wide", 0, Gaussian("0.1", asks=2)), True),
        (("bell", 0, Gaussian(mu="0.3", asks=2)), False),
        (("pure", 0, Laplace("0.5", asks=2)), False),
    ):
        made = of(*parts, inside=[inside])
        if refused:
            with pytest.raises(NotCovered, match="finite communication"):
                made.start(SeededCoins(1))
        else:
            made.start(SeededCoins(1))


def test_what_no_delta_can_say_is_refused():
    for delta, error in (("1e-9", InvalidParameter), (2, InvalidParameter)):
        with pytest.raises(error):
            of(Part("often", ApproxDP("0.1", "1e-8"), EACH), delta=delta).claim  # noqa: B018 - as above
    with pytest.raises(NotCovered):
        of(Part("a", RenyiDP(2, 1), EACH), Part("b", RenyiDP(3, 1), EACH)).claim  # noqa: B018 - as above

"""Composites whose parts are in Gaussian DP or f-DP: what they claim, what they refuse, and what they lose exactly."""

import pytest
from tests.composition.test_fdp_parts import PART, largest

import counterpoint as cp
from counterpoint.encoding import Value
from counterpoint.errors import NotCovered
from counterpoint.measures import GaussianDP
from counterpoint.mechanisms.composite import Composite, Own
from counterpoint.mechanisms.composite_parts import Part
from counterpoint.mechanisms.mechanism import Left, Mechanism
from counterpoint.privacy.claims import claim
from counterpoint.privacy.relations import every_step
from counterpoint.verify.exact_loss import exact
from counterpoint.verify.message_pairs import asks
from counterpoint.verify.verdict import Verdict

EACH = every_step()


class Nothing(Own, Value, frozen=True):
    """Nothing is remembered."""


class Endless(Mechanism, Value, frozen=True):
    """Claims Gaussian DP, and interacts without end."""

    @property
    def claim(self):
        return claim(GaussianDP("0.1"), EACH, "a test")

    def accepts(self, message):
        return isinstance(message, cp.mechanisms.Ask)

    def start(self, coins):
        return Left(1)

    def step(self, state, message, coins):
        return state, 0


class Several(Composite, Value, frozen=True):
    """Asks the mechanism in the slot that the message names; each slot has one of its own, launched at the start."""

    parts: tuple[Part, ...]
    children: tuple[Mechanism, ...]
    query: int | None = None

    relation = EACH

    @property
    def structure(self):
        return self.parts

    def accepts(self, message):
        return isinstance(message, cp.mechanisms.Ask) and message.private is not None

    def begin(self, context):
        for at, child in enumerate(self.children):
            context.launch(self.parts[0].name, child, at=at)
        return Nothing()

    def react(self, context, own, message):
        if context.halted(self.parts[0].name, at=message.public):
            return own, "halted"
        return own, context.ask(self.parts[0].name, message.private, self.query, message.sensitivity, at=message.public)


def test_interactive_parts_cost_their_tensor_and_reach_it():
    made = Several((Part("both", PART.loss, EACH, slots=2),), (PART, PART), 0)
    tensor = PART.loss.tensor(PART.loss)
    assert made.claim.loss == tensor and made.claim.interaction == "memoryless"
    assert made.claim.certificate.rests_on("Henzinger et al. 2024, Cor 14.7")
    messages = [pair for at in (0, 1) for pair in asks([(0, 1)], at)]
    loss = exact(made, messages=messages, rounds=4)
    assert loss.judge() is Verdict.HOLDS
    for growth in (1, 2):
        assert loss.bounds_at_growth(growth).lower == largest(tensor, growth)


def test_a_gaussian_part_takes_what_is_one_draw_and_nothing_else():
    parts = (Part("three", GaussianDP("0.5"), EACH, slots=3),)
    children = cp.Gaussian(mu="0.5", asks=4), cp.Laplace("0.2", asks=9), cp.Gaussian(mu="0.1")
    made = Several(parts, children)
    assert float(made.claim.loss.mu) == pytest.approx(0.75**0.5)
    made.start(cp.coins.SeededCoins(1))
    with pytest.raises(NotCovered, match="finite communication"):
        Several(parts, (Endless(),)).start(cp.coins.SeededCoins(1))
    with pytest.raises(cp.BudgetExceeded):
        Several(parts, (cp.Laplace(1),)).start(cp.coins.SeededCoins(1))


def test_a_composite_in_gaussian_dp_is_launched_in_a_gaussian_budget():
    made = Several((Part("two", GaussianDP("0.3"), EACH, slots=2),), (cp.Gaussian(mu="0.3", asks=2),) * 2)
    for rule in (cp.Filter(GaussianDP(1)), cp.Filter(GaussianDP(1).as_tradeoff()), cp.Slots([GaussianDP("0.5")])):
        account = rule.admit(rule.start(), made.claim)
        assert account != rule.start()
    assert cp.GuessAndCheck(1, 5).claim.interaction == "endless", "other measures are what they were"

"""Machines for the verifier to look at: random finite ones, and shipped ones with a bug planted in them."""

from fractions import Fraction

import numpy as np

from counterpoint.encoding import Value
from counterpoint.measures import PureDP
from counterpoint.mechanisms.mechanism import Mechanism
from counterpoint.mechanisms.sparse_vector import SparseVector
from counterpoint.mechanisms.threshold import NoisyThreshold, ThresholdState
from counterpoint.privacy.claims import claim
from counterpoint.privacy.messages import Ask
from counterpoint.privacy.relations import every_step
from counterpoint.verify.finite import FiniteMechanism, Outcome


def law(rng: np.random.Generator, size: int, *, positive: bool = False, parts: int = 12) -> list[Fraction]:
    """A random law on `size` outcomes; some of them may be impossible unless it is to be positive."""
    weights = [int(weight) + positive for weight in rng.multinomial(parts, [1 / size] * size)]
    return [Fraction(weight, sum(weights)) for weight in weights]


def random_mechanism(seed: int, states: int = 2, answers: int = 2, *, positive: bool = False) -> FiniteMechanism:
    """Hidden states, two queries, and every probability at random."""
    rng = np.random.default_rng(seed)

    def outcomes():
        places = [(answer, state) for answer in range(answers) for state in range(states)]
        chances = law(rng, len(places), positive=positive)
        return tuple(Outcome(p, *place) for place, p in zip(places, chances, strict=True) if p)

    table = tuple(tuple((outcomes(), outcomes()) for _ in range(2)) for _ in range(states))
    return FiniteMechanism(table, tuple(law(rng, states)))


def layered(seed: int, rounds: int, states: int = 2, answers: int = 2) -> FiniteMechanism:
    """So many rounds in which everything is possible, with a claim that lets it be launched."""
    found = random_mechanism(seed, states, answers, positive=True)

    def onward(layer):
        last = layer == rounds - 1
        return tuple(
            tuple(
                tuple(tuple(_moved(o, None if last else (layer + 1) * states) for o in row) for row in query)
                for query in state
            )
            for state in found.table
        )

    table = tuple(state for layer in range(rounds) for state in onward(layer))
    return FiniteMechanism(table, found.start_law, PureDP(50))


def _moved(outcome: Outcome, by: int | None) -> Outcome:
    return Outcome(outcome.probability, outcome.answer, None if by is None else outcome.state + by)


def two_rounds(seed: int) -> FiniteMechanism:
    """Two rounds in which everything is possible."""
    return layered(seed, 2)


class Broken(NoisyThreshold, Value, frozen=True):
    """A sparse vector that claims what `SparseVector` claims and does `bug` instead."""

    bug: str
    epsilon: Fraction = Fraction(1)
    threshold: Fraction = Fraction(2)
    sensitivity: int = 1

    @property
    def hits(self):
        return 1

    @property
    def claim(self):
        return claim(PureDP(self.epsilon), every_step(), "a bug")

    @property
    def scales(self):
        once, each = SparseVector(self.epsilon, self.threshold).scales
        return (once / 2, each / 2) if self.bug == "noise halved" else (once, each)

    def step(self, state, message, coins):
        once, each = self.scales
        value, at = message.private.map(int).__sealed__(), int(self.threshold)
        if self.bug == "threshold redrawn":
            redrawn = ThresholdState(coins.discrete_laplace(once), 1)
            return (state, False) if value - redrawn.tau < at else (None, True)
        if self.bug == "no query noise":
            return (state, False) if value - state.tau < at else (None, True)
        if self.bug == "goes on after a hit":
            return state, not value + coins.discrete_laplace(each) - state.tau < at
        if self.bug == "tells the noisy value":
            noisy = value + coins.discrete_laplace(each)
            return (state, None) if noisy - state.tau < at else (None, noisy)
        return super().step(state, message, coins)


class Peeking(Mechanism, Value, frozen=True):
    """A composite with a leak: it answers by randomized response, but skips the noise for large values."""

    @property
    def claim(self):
        return claim(PureDP(1), every_step(), "a leak")

    def accepts(self, message):
        return isinstance(message, Ask) and message.private is not None

    def start(self, coins):
        return ThresholdState(0, 1)

    def step(self, state, message, coins):
        value = message.private.__sealed__()
        return None, value if value > 5 else int(coins.logistic(1)) ^ (value & 1)


class Reused(Mechanism, Value, frozen=True):
    """Seeds reused between two asks: the same noise on both answers, each charged as if it were fresh."""

    @property
    def claim(self):
        return claim(PureDP(1), every_step(), "reused noise")

    def accepts(self, message):
        return isinstance(message, Ask) and message.private is not None

    def start(self, coins):
        return ThresholdState(coins.discrete_laplace(2), 2)

    def step(self, state, message, coins):
        left = ThresholdState(state.tau, state.hits - 1) if state.hits > 1 else None
        return left, message.private.__sealed__() + state.tau

"""The composition of a thousand different (epsilon, delta) losses, and of DP-SGD, beside dp_accounting's PLDs.

The peer rounds each privacy loss up to a grid, ours keeps the mean of e^-loss and certifies both sides; so the peer's
epsilon is checked to be the larger one. Every run gets parameters of its own, since ours remembers what it computed.
"""

from collections.abc import Iterator
from fractions import Fraction
from itertools import count

from bench.table import Row, side_by_side
from counterpoint import ApproxDP, compose
from counterpoint.measures import SampledGaussianDP

GOLDEN = 0.6180339887498949
DELTA = 1e-6
HOW_MANY = 1000
GRID = 1e-4
"""The peer's own: a grid ten times as wide makes it faster than ours, and its epsilon 2 % too large."""


def parameters(turn: int) -> list[tuple[float, float]]:
    """A thousand different epsilons between 0.01 and 0.2, and deltas between 1e-12 and 1e-10."""
    spread = [(GOLDEN * (index + 1) + turn / 97) % 1 for index in range(HOW_MANY)]
    return [(0.01 + 0.19 * share, 10 ** (-12 + 2 * share)) for share in spread]


def ours(given: list[tuple[float, float]]) -> float:
    """The certified upper bound on epsilon."""
    return compose.optimal(ApproxDP(epsilon, delta) for epsilon, delta in given).epsilon_at(DELTA)


def peers(given: list[tuple[float, float]]) -> float:
    """The same by privacy loss distributions, composed two by two."""
    from dp_accounting.pld import common
    from dp_accounting.pld import privacy_loss_distribution as pld

    waiting = [
        pld.from_privacy_parameters(
            common.DifferentialPrivacyParameters(epsilon, delta), value_discretization_interval=GRID
        )
        for epsilon, delta in given
    ]
    while len(waiting) > 1:
        pairs = zip(waiting[::2], waiting[1::2], strict=False)
        waiting = [one.compose(other) for one, other in pairs] + waiting[len(waiting) // 2 * 2 :]
    return float(waiting[0].get_epsilon_for_delta(DELTA))


STEPS, RATE = 1000, 0.01
"""Of DP-SGD; the noise multiplier is about 1."""


def multiplier(turn: int) -> float:
    """A noise multiplier of each run's own."""
    return 1 + turn / 1000


def our_training(noise: float) -> float:
    """The certified upper bound on the epsilon of DP-SGD."""
    return compose.optimal([SampledGaussianDP(1 / Fraction(str(noise)), RATE)] * STEPS).epsilon_at(DELTA)


def peers_training(noise: float) -> float:
    """The same by privacy loss distributions that connect the dots."""
    from dp_accounting.pld import privacy_loss_distribution as pld

    step = pld.from_gaussian_mechanism(noise, sampling_prob=RATE, value_discretization_interval=GRID)
    return float(step.self_compose(STEPS).get_epsilon_for_delta(DELTA))


def rows() -> Iterator[Row]:
    """The times side by side, and how much looser the peer's epsilon is."""
    yield from _different()
    mine, theirs = count(), count(100)
    times = side_by_side(lambda: our_training(multiplier(next(mine))), lambda: peers_training(multiplier(next(theirs))))
    looser = peers_training(multiplier(50)) / our_training(multiplier(50)) - 1
    assert looser >= -1e-6, "the peer's epsilon is the smaller one: this is no comparison at equal tightness"
    what = f"compose.optimal, DP-SGD, {STEPS} steps at rate {RATE}"
    yield Row(what, *times, f"dp_accounting PLDs on a grid of {GRID:g}, {looser:.4%} looser")


def _different() -> Iterator[Row]:
    mine, theirs = count(), count(1000)
    times = side_by_side(lambda: ours(parameters(next(mine))), lambda: peers(parameters(next(theirs))))
    looser = peers(parameters(0)) / ours(parameters(0)) - 1
    assert looser >= 0, "the peer's epsilon is the smaller one: this is no comparison at equal tightness"
    what = f"compose.optimal, {HOW_MANY} different (epsilon, delta)"
    yield Row(what, *times, f"dp_accounting PLDs on a grid of {GRID:g}, {looser:.1%} looser", at_least=1)

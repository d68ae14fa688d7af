"""Sparse vectors that are wrong: each claims what `SparseVector` claims, and each breaks its claim.

`WRONG` has, for each of them, a transcript that shows it: pairs of values in the two worlds, and the answers heard.
"""

from counterpoint.measures import PureDP
from counterpoint.mechanisms.sparse_vector import SparseVector
from counterpoint.mechanisms.threshold import ThresholdState
from counterpoint.privacy.claims import claim
from counterpoint.privacy.relations import every_step
from counterpoint.privacy.secret import reveal


class Redrawn(SparseVector, frozen=True):
    """Wrong: the threshold's noise is drawn again for each ask."""

    def start(self, coins):
        return ThresholdState(0, self.hits)

    def step(self, state, message, coins):
        fresh = ThresholdState(coins.discrete_laplace(self.scales[0]), state.hits)
        after, answer = super().step(fresh, message, coins)
        return after and ThresholdState(0, after.hits), answer


class Quiet(SparseVector, frozen=True):
    """Wrong: no noise on the values."""

    def step(self, state, message, coins):
        hit = reveal(message.private) - state.tau >= self.threshold
        return (state if not hit else None), hit


class Unscaled(SparseVector, frozen=True):
    """Wrong: the noise on the values does not grow with the number of hits."""

    @property
    def scales(self):
        once, each = super().scales
        return once, each / self.hits


class Reusing(SparseVector, frozen=True):
    """Wrong: a hit releases the value with the noise that it was compared with."""

    def step(self, state, message, coins):
        noisy = reveal(message.private) + coins.discrete_laplace(self.scales[1])
        return (state, False) if noisy - state.tau < self.threshold else (None, noisy)


class Restless(SparseVector, frozen=True):
    """Wrong: it goes on after its last hit."""

    def step(self, state, message, coins):
        return state, super().step(state, message, coins)[1]


class Careless(SparseVector, frozen=True):
    """Wrong: the smaller noise of values that move one way, on values that move any way."""

    @property
    def claim(self):
        return claim(PureDP(self.epsilon), every_step(), "none: monotone noise, any values")

    @property
    def scales(self):
        return SparseVector(self.epsilon, hits=self.hits, sensitivity=self.sensitivity, monotone=True).scales


class Positives(SparseVector, frozen=True):
    """The sparse vector inside Lyu's guess-and-check: Lap(1/epsilon), Lap(c/epsilon)."""

    @property
    def scales(self):
        return 1 / self.epsilon, self.hits / self.epsilon


DOWN, UP = ((0, -1), True), ((0, 1), False)
"""A hit whose value moves down, a miss whose value moves up."""

WRONG = {
    "the threshold is redrawn for each ask": (Redrawn(2, 0), [UP] * 10),
    "no noise on the values": (Quiet(2, 0), [UP, ((1, 1), True)]),
    "noise that is not scaled by hits": (Unscaled(2, 0, hits=3), [UP] * 10 + [DOWN] * 3),
    "the comparison's noise in a released value": (Reusing(2, 0), [UP] * 10 + [((0, -1), 1)]),
    "it goes on after its last hit": (Restless(2, 0), [UP] * 10 + [DOWN] * 2),
    "monotone noise on values that are not": (Careless(2, 0), [UP] * 10 + [DOWN]),
}

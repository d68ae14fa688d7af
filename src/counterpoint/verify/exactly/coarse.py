"""Counters that are small enough to enumerate all their behaviour: on a coarse grid, with few steps, on small trees.

A shipped counter draws its Gaussian noise on a grid of about 2^-41 and gives up to 2^40 answers: too many to enumerate.
The proof in `blt_noise` holds for any grid 2^-bits and any number N of steps: a variance of s^2/(2 rho) on the grid is
enough, where s = 2^bits |d| |c|_2 + r sqrt(N k). These counters run the code of the shipped ones with a coarse grid and
few steps, and with the variance that the proof then requires; audits cover the shipped grid.

Under pure privacy the best tree for a few items has one level. `SmallTreeCounter` and `SmallTreeVectorCounter` run the
code of the shipped counters on a tree of another shape, or on short epochs; the proof in `Counter` holds for each.

>>> from counterpoint import Ask, Update
>>> from counterpoint.verify.exact_loss import exact
>>> counter = CoarseCounter(rho=2, horizon=2, bits=1, steps=1)
>>> pairs = [(Update(0), Update(1)), (Ask(), Ask())]
>>> exact(counter, messages=pairs, rounds=2, cut="1e-9").judge(counter.claim, allowance="1e-6")
Verdict.HOLDS
"""

from fractions import Fraction
from math import floor

from counterpoint.mechanisms.counting.counters import Counter, CounterState, SeparatedCounter
from counterpoint.mechanisms.counting.noise.blt import Blt, for_horizon
from counterpoint.mechanisms.counting.noise.blt_noise import BltNoise, BltState, carried
from counterpoint.mechanisms.counting.noise.least_squares_noise import LeastSquaresNoise
from counterpoint.mechanisms.counting.noise.separated_noise import SeparatedNoise, for_separated
from counterpoint.mechanisms.counting.vector_counters import SeparatedVectorCounter, VectorCounter, VectorCounting
from counterpoint.mechanisms.mechanism import Answer, State
from counterpoint.numbers.interval import sqrt_up
from counterpoint.privacy.messages import Message
from counterpoint.randomness.coins import Coins


class CoarseCounter(Counter, frozen=True, repr_omit_defaults=True, tag="CoarseCounter/1"):
    """A `Counter(rho=..., horizon=...)` on a grid of 2^-bits that halts after `steps` answers to new items."""

    bits: int = 1
    steps: int = 2

    def gaussian(self, rho: Fraction) -> BltNoise:
        """The matrix of the horizon, and the variance that this grid and number of steps need."""
        return _noise(self, rho, self._reach**2)

    def step(self, state: State, message: Message, coins: Coins) -> tuple[State | None, Answer]:
        """A step of the shipped counter, for `steps` answers."""
        return _halt_after(self.steps, *Counter.step(self, state, message, coins))


class CoarseVectorCounter(VectorCounter, frozen=True, repr_omit_defaults=True, tag="CoarseVectorCounter/1"):
    """The same for a `VectorCounter`."""

    bits: int = 1
    steps: int = 2

    def gaussian(self, rho: Fraction) -> BltNoise:
        """The matrix of the horizon, and the variance that this grid and number of steps need."""
        return _noise(self, rho, self._reach_squared, self._coordinates, self.dimensions)

    def step(self, state: State, message: Message, coins: Coins) -> tuple[State | None, Answer]:
        """A step of the shipped counter, for `steps` answers."""
        return _halt_after(self.steps, *VectorCounter.step(self, state, message, coins))


class CoarseSeparatedCounter(SeparatedCounter, frozen=True, repr_omit_defaults=True, tag="CoarseSeparatedCounter/1"):
    """A `SeparatedCounter` on a grid of 2^-bits that counts `steps` items."""

    bits: int = 1
    steps: int = 2

    def gaussian(self, rho: Fraction) -> BltNoise:
        """The shipped counter's matrix, and the variance that this grid and number of steps need."""
        return _separated(self, rho, 1)

    @property
    def most_items(self) -> int:
        """Few items are steps."""
        return self.steps


class CoarseSeparatedVectorCounter(
    SeparatedVectorCounter, frozen=True, repr_omit_defaults=True, tag="CoarseSeparatedVectorCounter/1"
):
    """The same for a `SeparatedVectorCounter`."""

    bits: int = 1
    steps: int = 2

    def gaussian(self, rho: Fraction) -> BltNoise:
        """The shipped counter's matrix, and the variance that this grid and number of steps need."""
        return _separated(self, rho, self.dimensions)

    @property
    def most_items(self) -> int:
        """Few items are steps."""
        return self.steps


class SmallTreeCounter(Counter, frozen=True, repr_omit_defaults=True, tag="SmallTreeCounter/1"):
    """A `Counter(epsilon=...)` on a tree of this arity and height; without a horizon, in epochs of 2, 4, 8 items."""

    arity: int = 2
    height: int = 2

    def laplace(self, epsilon: Fraction, reach: int) -> LeastSquaresNoise:
        """The noise of the shipped counter on such trees."""
        return _small(self, epsilon, reach, 1)


class SmallTreeVectorCounter(VectorCounter, frozen=True, repr_omit_defaults=True, tag="SmallTreeVectorCounter/1"):
    """The same for a `VectorCounter`."""

    arity: int = 2
    height: int = 2

    def laplace(self, epsilon: Fraction, reach: int) -> LeastSquaresNoise:
        """The noise of the shipped counter on such trees."""
        return _small(self, epsilon, reach, self.dimensions)


Coarse = CoarseCounter | CoarseVectorCounter | CoarseSeparatedCounter | CoarseSeparatedVectorCounter


def _small(
    counter: SmallTreeCounter | SmallTreeVectorCounter, epsilon: Fraction, reach: int, width: int
) -> LeastSquaresNoise:
    forced = counter.arity, counter.height
    return LeastSquaresNoise(epsilon, reach, counter.horizon, width, first=2, growth=2, forced=forced)


def _noise(
    counter: CoarseCounter | CoarseVectorCounter, rho: Fraction, squared: int, apart: int = 1, width: int = 1
) -> BltNoise:
    """The noise of `blt_noise` at the counter's grid and number of steps."""
    blt = for_horizon(counter.horizon or 1)
    return BltNoise(blt, counter.bits, _variance(counter, blt, rho, squared * blt.squared, apart), width)


def _separated(
    counter: CoarseSeparatedCounter | CoarseSeparatedVectorCounter, rho: Fraction, width: int
) -> SeparatedNoise:
    """The noise of `separated_noise` at the counter's grid and number of steps."""
    items, apart, squared, coordinates = counter.far_items
    blt = for_separated(counter.horizon, items, apart)
    reach = squared * Fraction(blt.separated(items, apart).upper)
    return SeparatedNoise(blt, counter.bits, _variance(counter, blt, rho, reach, coordinates), width)


def _variance(counter: Coarse, blt: Blt, rho: Fraction, reach: Fraction, coordinates: int) -> Fraction:
    """What the proof requires where inputs move the steps by `reach` squared."""
    sensitivity = sqrt_up(4**counter.bits * reach) + sqrt_up(carried(blt) ** 2 * counter.steps * coordinates)
    return Fraction(-floor(-(sensitivity**2) / (2 * rho)))


def _halt_after(steps: int, state: State | None, answer: Answer) -> tuple[State | None, Answer]:
    assert isinstance(state, CounterState | VectorCounting)
    assert isinstance(state.noise, BltState)
    return (None if state.noise.steps >= steps and answer is not None else state), answer

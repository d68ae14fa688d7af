"""Fixed lists of Gaussian steps on Poisson samples, as in DP-SGD: what they cost together.

Each step is dominated by a pair of laws, for a unit that is removed and, exchanged, for one that is added; steps that
are chosen adaptively compose as the products of their pairs do (Zhu et al. 2022; theory, Sampling). The privacy losses
of each direction are convolved on a lattice, from above and from below, and the larger direction counts.

>>> from counterpoint import compose
>>> from counterpoint.measures import SampledGaussianDP
>>> training = compose.optimal([SampledGaussianDP(mu=1, rate=0.01)] * 1000)
>>> training.bounds.epsilon_at(1e-5)
Enclosure(lower=1.8282..., upper=1.8282...)
"""

import math
from collections import Counter
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import ClassVar, NamedTuple

import numpy as np

from counterpoint.composition.fixed.lattice import TiltedLattice
from counterpoint.composition.fixed.masses import Masses, convolve_all, power
from counterpoint.composition.fixed.sampled_steps import Cells, Divisor, SampledStep
from counterpoint.composition.fixed.totals import INFINITE, Composed, at_most, crossing, log_of
from counterpoint.encoding import Value
from counterpoint.errors import NotCovered
from counterpoint.measures import GaussianDP, PureDP
from counterpoint.measures.loss import Loss
from counterpoint.numbers import Interval, float_down, float_up, format_number, precision
from counterpoint.numbers.exact import whole

Steps = tuple[tuple[Fraction, Fraction, int], ...]
"""The different (mu, rate), and how many steps there are of each; a rate of 1 is a step on all units."""

_DIGITS = 30
_WIDTH = 1e-6
"""The relative width of the bounds on epsilon that the spacing aims at."""
_COARSEST = 1e-4
_POINTS = 2**20
_SIGMAS = 20
_FAR = 10.0
"""Normal mass beyond 10 is below 1e-23."""
_GRID = 8192
_STEEPEST = 1e4
_SHOWN = 3


class SampledGaussians(Composed, Value, frozen=True):
    """Gaussian steps, each on a Poisson sample of its own, composed."""

    steps: Steps

    def __repr__(self) -> str:
        shown = [f"{copies} x ({format_number(mu)}, {format_number(rate)})" for mu, rate, copies in self.steps[:_SHOWN]]
        more = [f"{len(self.steps) - _SHOWN} more"] * (len(self.steps) > _SHOWN)
        return f"{type(self).__name__}({', '.join(shown + more)})"

    @property
    def loss(self) -> "SampledGaussians":
        """Itself: it is a whole curve, not an amount of one measure."""
        return self

    @property
    def method(self) -> str:
        """The lattice; where it does not reach, the Gaussian curve of the same steps on all units."""
        return "lattice"

    def _by_renyi(self, delta: Fraction) -> bool:
        """Never."""
        return False

    @property
    def of_all(self) -> GaussianDP:
        """The same steps on all units, which lose no less: each is a Gaussian mechanism."""
        counted: Counter[GaussianDP] = Counter()
        for mu, _, copies in self.steps:
            counted[GaussianDP(mu)] += copies
        return GaussianDP.compose_fixed(counted)[0]

    def _delta_above(self, epsilon: Fraction) -> Decimal:
        """The larger direction, and no more than on all units."""
        bounds = [Direction(self.steps, removing).near(epsilon).delta_above(epsilon) for removing in (True, False)]
        return min(max(bounds), self.of_all._delta_bounds(epsilon).upper)

    def _delta_below(self, epsilon: Fraction) -> Decimal:
        """The larger direction."""
        return max(Direction(self.steps, removing).near(epsilon).delta_below(epsilon) for removing in (True, False))

    def _epsilon_above(self, delta: Fraction) -> Fraction | Decimal:
        """The larger direction, and no more than on all units."""
        most = self.of_all._epsilon_bounds(delta)
        if most is None:
            return INFINITE
        high = Fraction(most.upper)
        return max(Direction(self.steps, removing).epsilon_above(delta, high) for removing in (True, False))

    def _epsilon_below(self, delta: Fraction) -> Fraction | Decimal:
        """The larger direction."""
        if delta == 0:
            return INFINITE
        high = self._epsilon_above(delta)
        assert isinstance(high, Fraction)
        return max(Direction(self.steps, removing).epsilon_below(delta, high) for removing in (True, False))

    def group(self, size: int) -> Loss:
        """Itself for one unit; for more, no bound: any number of them may be in a sample."""
        units = whole(size, 0, "size")
        if units > 1:
            raise NotCovered(
                f"no theorem here bounds sampled steps for {units} units; take the group of as_approx(delta)"
            )
        return self if units else PureDP(0)


class Direction(NamedTuple):
    """All steps, for a unit that is removed or for one that is added."""

    steps: Steps
    removing: bool

    def near(self, epsilon: Fraction) -> "SampledLattice":
        """The lattice that is most accurate about `epsilon`; it is certain everywhere."""
        return _lattice(self, _shape(self).tilt_where(lambda shape, tilt: shape.mean(tilt) >= float(epsilon)))

    def epsilon_above(self, delta: Fraction, high: Fraction) -> Fraction:
        """An epsilon at which delta is not exceeded: about the smallest, and `high` if none is found below it."""
        if delta == 1:
            return Fraction(0)
        lattice, guess = self._around(delta)
        return crossing(lattice.delta_above, delta, Fraction(0), high, min(guess, high))[1]

    def epsilon_below(self, delta: Fraction, high: Fraction) -> Fraction:
        """An epsilon at which delta is exceeded: about the largest; 0 where none was found."""
        lattice, _ = self._around(delta)
        low, step = high, high / 2**40
        while low > 0 and at_most(lattice.delta_below(low), delta):
            low, step = max(Fraction(0), low - step), 4 * step
        return crossing(lattice.delta_below, delta, low, high, low)[0] if low > 0 else low

    def _around(self, delta: Fraction) -> "tuple[SampledLattice, Fraction]":
        shape, log_delta = _shape(self), log_of(delta)
        tilt = shape.tilt_where(lambda shape, tilt: shape.log_delta(tilt) <= log_delta)
        return _lattice(self, tilt), Fraction(max(0.0, shape.mean(float(tilt))))


class SampledShape:
    """The law of the loss in floating point: only to choose a tilt or a spacing; any choice is valid."""

    steepest: ClassVar[float] = _STEEPEST

    def __init__(self, direction: Direction) -> None:
        self._laws = [
            law_of(SampledStep(float(mu), float(rate)), direction.removing) for mu, rate, _ in direction.steps
        ]
        self._copies = [copies for _, _, copies in direction.steps]
        self.count = sum(self._copies)

    def log_moment(self, tilt: float) -> float:
        """The logarithm of E[e^(tilt L)]."""
        return sum(copies * _log_sum(logs + tilt * losses) for (logs, losses), copies in self._each())

    def mean(self, tilt: float) -> float:
        """The mean of L when every outcome is weighted by e^(tilt L)."""
        return sum(copies * _moments(logs, losses, tilt)[0] for (logs, losses), copies in self._each())

    def variance(self, tilt: float) -> float:
        """The variance of L under the same weights."""
        return sum(copies * _moments(logs, losses, tilt)[1] for (logs, losses), copies in self._each())

    def log_delta(self, tilt: float) -> float:
        """About the logarithm of delta at the mean of L under these weights, by the saddle point formula."""
        spread = math.sqrt(2 * math.pi * max(self.variance(tilt), 0.0))
        return self.log_moment(tilt) - tilt * self.mean(tilt) - math.log1p(tilt * (1 + tilt) * spread)

    def tilt_where(self, reached: "Callable[[SampledShape, float], bool]") -> Fraction:
        """The first tilt where a condition that stays true becomes true, to one part in a thousand."""
        low, high = 0.0, 0.0
        step = 1e-3
        while not reached(self, high) and high < self.steepest:
            low, high, step = high, high + step, 2 * step
        while high - low > 1e-3 * high:
            middle = (low + high) / 2
            low, high = (low, middle) if reached(self, middle) else (middle, high)
        return Fraction(f"{high:.6g}")

    def _each(self) -> "zip[tuple[tuple[np.ndarray, np.ndarray], int]]":
        return zip(self._laws, self._copies, strict=True)


@lru_cache(maxsize=4)
def _shape(direction: Direction) -> SampledShape:
    return SampledShape(direction)


def law_of(step: SampledStep, removing: bool) -> "tuple[np.ndarray, np.ndarray]":
    """The logarithms of the masses of the first law on a grid of x, and the losses there."""
    x = np.linspace(-40.0, 40.0 + 2 * step.mu, _GRID)
    losses, width = step.loss(x), float(x[1] - x[0])
    logs = -(x**2) / 2 + math.log(width) - math.log(2 * math.pi) / 2
    return (logs + losses, losses) if removing else (logs, -losses)


def _log_sum(logs: np.ndarray) -> float:
    top = float(np.max(logs))
    return top + math.log(float(np.sum(np.exp(logs - top))))


def _moments(logs: np.ndarray, losses: np.ndarray, tilt: float) -> tuple[float, float]:
    weights = logs + tilt * losses
    weights = np.exp(weights - np.max(weights))
    weights /= np.sum(weights)
    mean = float(np.sum(weights * losses))
    return mean, float(np.sum(weights * (losses - mean) ** 2))


class SampledLattice(TiltedLattice):
    """The steps of one direction on points `spacing` apart, weighted by e^(tilt L)."""

    def __init__(self, direction: Direction, tilt: Fraction, spacing: Fraction) -> None:
        self.direction, self.tilt, self.spacing = direction, tilt, spacing
        self._lowest = Fraction(0)

    def delta_above(self, epsilon: Fraction) -> Decimal:
        """An upper bound: on the losses that the cells say, the slack of their ends, and what lies beyond them."""
        slack = sum((copies * Fraction(cells.slack) for cells, copies in self._upper), Fraction(0))
        exposed = sum((copies * Fraction(cells.beyond) for cells, copies in self._upper), Fraction(0))
        p = precision(_DIGITS)
        inside = super().delta_above(epsilon - slack)
        return (p.between(inside, inside) + p(exposed)).at_most(1).upper

    def delta_below(self, epsilon: Fraction) -> Decimal:
        """A lower bound: a sum of cells stands for the sum of their middles."""
        copies = sum(copies for _, _, copies in self.direction.steps)
        value, error = self._renamed_sum(epsilon - copies * self.spacing / 2)
        return self._scaled(epsilon, max(0.0, value - error)).lower

    @cached_property
    def _upper(self) -> list[tuple[Cells, int]]:
        """The cells of each kind of step, of parameters that are rounded up: a larger mu or rate loses more."""
        return self._cut(float_up)

    def _cut(self, rounded: "Callable[[Fraction], float]") -> list[tuple[Cells, int]]:
        steps, removing = self.direction
        gap, tilt = float(self.spacing), float(self.tilt)
        found = []
        for mu, rate, copies in steps:
            step = SampledStep(rounded(mu), min(1.0, rounded(rate)))
            low, high = step_ends(step, removing, tilt, gap)
            found.append((step.cells(removing=removing, low=low, high=high, spacing=gap), copies))
        return found

    @cached_property
    def _spread(self) -> list[tuple[Masses, Divisor, int]]:
        return [(*cells.spread(float(self.tilt)), copies) for cells, copies in self._upper]

    @cached_property
    def _moment(self) -> Interval:  # type: ignore[override]
        p = precision(_DIGITS)
        return math.prod((divisor.to(copies, p) for _, divisor, copies in self._spread), start=p(1))

    @cached_property
    def _above(self) -> Masses:  # type: ignore[override]
        return convolve_all([power(law, copies) for law, _, copies in self._spread])

    @cached_property
    def _below(self) -> tuple[Masses, Masses]:  # type: ignore[override]
        divisors = [divisor for _, divisor, _ in self._spread]
        pairs = [
            (*cells.renamed(float(self.tilt), divisor), copies)
            for (cells, copies), divisor in zip(self._cut(float_down), divisors, strict=True)
        ]
        return (
            convolve_all([power(one, copies) for one, _, copies in pairs]),
            convolve_all([power(other, copies) for _, other, copies in pairs]),
        )


def step_ends(step: SampledStep, removing: bool, tilt: float, gap: float) -> tuple[int, int]:
    """The points between which the cells of a step lie: all that its weighted law comes near to."""
    far = step.mu * (1 + tilt) + _FAR
    x = np.array([-_FAR - (0 if removing else step.mu * tilt), far if removing else _FAR])
    least, most = (float(value) for value in (step.loss(x) if removing else -step.loss(x)[::-1]))
    if step.rate < 1:
        bound = math.log1p(-step.rate)  # L does not go lower
        least, most = (bound, most) if removing else (least, -bound)
    return math.floor(least / gap) - 1, math.ceil(most / gap) + 1


@lru_cache(maxsize=4)
def _lattice(direction: Direction, tilt: Fraction) -> SampledLattice:
    return SampledLattice(direction, tilt, _spacing(direction, float(tilt)))


def _spacing(direction: Direction, tilt: float) -> Fraction:
    """A spacing that widens epsilon by about 1e-6: spreading adds about spacing^2/8 to the variance of each step.

    That moves epsilon by half of it times 1 + tilt. Neither one step nor all of them may have too many points.
    """
    shape, (steps, removing) = _shape(direction), direction
    ranges = [step_ends(SampledStep(float(mu), float(rate)), removing, tilt, 1.0) for mu, rate, _ in steps]
    longest = max(high - low for low, high in ranges)
    span = _SIGMAS * math.sqrt(max(shape.variance(tilt), 1e-300))
    aim = 4 * math.sqrt(_WIDTH * max(shape.mean(tilt), 1e-6) / shape.count / (1 + tilt))
    wanted = max(min(aim, _COARSEST, 1 / (8 + 8 * tilt)), span / _POINTS, longest / _POINTS)
    mantissa, exponent = math.frexp(wanted)
    return math.floor(mantissa * 16) * Fraction(2) ** (exponent - 4)

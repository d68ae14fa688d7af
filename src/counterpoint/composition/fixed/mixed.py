"""What losses of unlike measures, fixed in advance, cost together: the product of their pairs, on one lattice.

Each mechanism is a postprocessing of one draw from a pair of distributions that its loss names, so that all of them
together are one of the product (Henzinger et al. 2024, Cor 14.7; pure and approximate ones without any limit by Thm
4.12; sampled Gaussian steps by Zhu et al. 2022; theory, Unlike measures together):

| losses | pair |
|---|---|
| PureDP, ApproxDP | randomized response, exactly |
| GaussianDP | N(mu, 1) against N(0, 1), with all squares of mu added first |
| SampledGaussianDP | its two ordered pairs |
| TradeOff | its outcomes |
| zCDP, tCDP, RenyiDP of one order | all added first, then one pair above every such mechanism: that of their deltas |

Deltas are bounded from above by these pairs, and from below by pairs that the losses allow: a Gaussian mechanism with
mu^2 = 2 rho is zCDP(rho), so no bound below its own can hold.

>>> from counterpoint import GaussianDP, PureDP, compose
>>> both = compose.optimal([PureDP(0.1)] * 20 + [GaussianDP(0.3)])
>>> both.bounds.epsilon_at(1e-6)
Enclosure(lower=2.3413..., upper=2.3413...)
"""

import math
from collections import Counter
from decimal import Decimal
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import ClassVar, NamedTuple

import numpy as np

from counterpoint.composition.fixed.lattice import LatticePart, TiltedLattice
from counterpoint.composition.fixed.masses import Groups, LossShape, Masses, convolve_all, largest_loss, moment, power
from counterpoint.composition.fixed.sampled import SampledShape, Steps, law_of, step_ends
from counterpoint.composition.fixed.sampled_steps import Cells, Divisor, SampledStep
from counterpoint.composition.fixed.totals import (
    INFINITE,
    Composed,
    Parts,
    at_most,
    crossing,
    exposure,
    left_after,
    log_of,
    with_exposure,
)
from counterpoint.encoding import Value
from counterpoint.errors import NotCovered
from counterpoint.measures import ApproxDP, GaussianDP, PureDP, RenyiDP, TradeOff, curves, tCDP, zCDP
from counterpoint.measures.loss import Loss
from counterpoint.numbers import Interval, float_down, float_up, precision, sqrt_up
from counterpoint.numbers.exact import whole
from counterpoint.numbers.rounding import root_below, rounded_up

_DIGITS = 30
_WIDTH = 4e-6
"""The relative width of the bounds on epsilon that the spacing aims at."""
_COARSEST = 1e-3
_POINTS = 2**18
_SIGMAS = 20
_KNOTS = 120
_TINY = Fraction(1, 10**18)
"""A pair that is made of deltas has no more knots beyond the epsilon of this delta; that much is exposed."""
TOGETHER = (
    "the product of the pairs of all losses, which are fixed in advance (Henzinger et al. 2024, Cor 14.7, Thm 4.12; "
    "theory, Unlike measures together)"
)
"""What unlike losses compose by."""

Outcomes = tuple[tuple[TradeOff, int], ...]


class Mixed(Composed, Value, frozen=True):
    """Losses of several measures, composed: sorted by what is done with them."""

    responses: Parts = ()
    steps: Steps = ()
    """The Gaussian steps, with their rates; those on all units are added up to one."""
    outcomes: Outcomes = ()
    divergence: Loss | None = None
    """All zCDP, tCDP or Renyi losses, added up in their measure."""

    def __repr__(self) -> str:
        kinds = [f"{sum(copies for *_, copies in self.responses)} responses"] * bool(self.responses)
        kinds += [f"{sum(copies for *_, copies in self.steps)} Gaussian steps"] * bool(self.steps)
        kinds += [f"{sum(copies for *_, copies in self.outcomes)} curves"] * bool(self.outcomes)
        kinds += [] if self.divergence is None else [repr(self.divergence)]
        return f"{type(self).__name__}({', '.join(kinds)})"

    @property
    def loss(self) -> "Mixed":
        """Itself: it is a whole curve, not an amount of one measure."""
        return self

    @property
    def method(self) -> str:
        """The lattice."""
        return "lattice"

    def _by_renyi(self, delta: Fraction) -> bool:
        """Never."""
        return False

    def _delta_above(self, epsilon: Fraction) -> Decimal:
        """Of the larger direction, with what is exposed."""
        unexposed = max(lattice.delta_above(epsilon) for lattice in self._near(epsilon))
        return with_exposure(exposure(self.responses).high, unexposed).at_most(1).upper

    def _delta_below(self, epsilon: Fraction) -> Decimal:
        """Of the larger direction, with what is exposed."""
        unexposed = max(lattice.delta_below(epsilon) for lattice in self._near(epsilon))
        return with_exposure(exposure(self.responses).low, unexposed).lower

    def _epsilon_above(self, delta: Fraction) -> Fraction | Decimal:
        """About the smallest at which delta is not exceeded, in either direction."""
        left = left_after(delta, exposure(self.responses).high)
        most = None if left is None else self._surely_at(left)
        if left is None or most is None:
            return INFINITE
        if left == 1:
            return Fraction(0)
        return max(
            crossing(lattice.delta_above, left, Fraction(0), most, min(guess, most))[1]
            for lattice, guess in self._around(left)
        )

    def _epsilon_below(self, delta: Fraction) -> Fraction | Decimal:
        """About the largest at which delta is exceeded; 0 where none was found."""
        left, high = left_after(delta, exposure(self.responses).low), self._epsilon_above(delta)
        if left is None or not isinstance(high, Fraction):
            return INFINITE if left is None else Fraction(0)
        found = Fraction(0)
        for lattice, _ in self._around(left) if 0 < left < 1 else ():
            low, step = high, high / 2**40
            while low > 0 and at_most(lattice.delta_below(low), left):
                low, step = max(Fraction(0), low - step), 4 * step
            found = max(found, crossing(lattice.delta_below, left, low, high, low)[0] if low > 0 else low)
        return found

    def group(self, size: int) -> Loss:
        """Each mechanism's loss for a group, composed; `NotCovered` where one has none."""
        units = whole(size, 0, "size")
        if units > 1 and any(rate < 1 for _, rate, _ in self.steps):
            raise NotCovered(
                f"no theorem here bounds sampled steps for {units} units; take the group of as_approx(delta)"
            )
        if units < 2:
            return self if units else PureDP(0)
        larger = [(ApproxDP(epsilon, delta).group(units), copies) for epsilon, delta, copies in self.responses]
        return Mixed(
            tuple((loss.epsilon, loss.delta, copies) for loss, copies in larger),
            tuple((units * mu, rate, copies) for mu, rate, copies in self.steps),
            tuple((curve.group(units), copies) for curve, copies in self.outcomes),
            None if self.divergence is None else self.divergence.group(units),
        )

    def _surely_at(self, delta: Fraction) -> Fraction | None:
        """An epsilon at which delta is surely not exceeded, by basic composition of the kinds; None for none."""
        squares = sum((copies * mu**2 for mu, _, copies in self.steps), Fraction(0))
        kinds: list[Loss] = [GaussianDP(rounded_up(sqrt_up(squares)))] if self.steps else []
        kinds += [curve for curve, copies in self.outcomes for _ in range(copies)]
        kinds += [] if self.divergence is None else [self.divergence]
        epsilon = largest_loss(_groups(self.responses))
        for kind in kinds:
            least = kind._least_epsilon(delta / len(kinds))
            if least is None:
                return None
            epsilon += least
        return epsilon

    def _near(self, epsilon: Fraction) -> "list[MixedLattice]":
        """The lattice of each direction that is most accurate about `epsilon`; it is certain everywhere."""
        goal = float(epsilon)
        return [
            _lattice(self, removing, _shape(self, removing).tilt_where(lambda shape, tilt: shape.mean(tilt) >= goal))
            for removing in self._directions
        ]

    def _around(self, delta: Fraction) -> "list[tuple[MixedLattice, Fraction]]":
        """The lattice of each direction for a delta, and about the epsilon there."""
        found, goal = [], log_of(delta)
        for removing in self._directions:
            shape = _shape(self, removing)
            tilt = shape.tilt_where(lambda shape, tilt: shape.log_delta(tilt) <= goal)
            found.append((_lattice(self, removing, tilt), Fraction(max(0.0, shape.mean(float(tilt))))))
        return found

    @property
    def _directions(self) -> tuple[bool, ...]:
        """Whether a unit is removed; both ways, where a step is on a sample."""
        return (True, False) if any(rate < 1 for _, rate, _ in self.steps) else (True,)


def _groups(responses: Parts) -> Groups:
    """The randomized responses that expose nothing."""
    counted: Counter[Fraction] = Counter()
    for epsilon, _, copies in responses:
        counted[epsilon] += copies
    return tuple(sorted((epsilon, copies) for epsilon, copies in counted.items() if epsilon))


@lru_cache(maxsize=32)
def _pair_above(divergence: Loss) -> TradeOff:
    """A pair above every mechanism with this loss: the curve that its deltas prove."""
    reach = divergence._least_epsilon(_TINY) or Fraction(0)
    return TradeOff.proven_by(divergence, [rounded_up(reach * knot / _KNOTS) for knot in range(_KNOTS + 1)])


def _gaussian_within(divergence: Loss) -> Fraction:
    """The mu, rounded down, of a Gaussian mechanism that has this loss: D_alpha = alpha mu^2/2."""
    rho = divergence.epsilon / divergence.alpha if isinstance(divergence, RenyiDP) else _rho(divergence)
    return root_below(2 * rho)


def _rho(divergence: Loss) -> Fraction:
    assert isinstance(divergence, zCDP | tCDP)
    return divergence.rho


class MixedShape(SampledShape):
    """The law of the loss in floating point: only to choose a tilt or a spacing; any choice is valid."""

    steepest: ClassVar[float] = 1e3

    def __init__(self, mixed: Mixed, removing: bool) -> None:
        groups = _groups(mixed.responses)
        self._responses = LossShape(groups) if groups else None
        outcomes = [*mixed.outcomes, *([] if mixed.divergence is None else [(_pair_above(mixed.divergence), 1)])]
        within = [] if mixed.divergence is None else [(_gaussian_within(mixed.divergence), Fraction(1), 1)]
        self._steps, self._curves = [*mixed.steps, *within], [_law(curve) for curve, _ in outcomes]
        self._laws = [law_of(SampledStep(float(mu), float(rate)), removing) for mu, rate, _ in mixed.steps]
        self._laws += self._curves
        self._copies = [copies for *_, copies in mixed.steps] + [copies for _, copies in outcomes]
        self.count = sum(self._copies) + len(groups)

    def log_moment(self, tilt: float) -> float:
        """The logarithm of E[e^(tilt L)]."""
        return super().log_moment(tilt) + (0.0 if self._responses is None else self._responses.log_moment(tilt))

    def mean(self, tilt: float) -> float:
        """The mean of L when every outcome is weighted by e^(tilt L)."""
        return super().mean(tilt) + (0.0 if self._responses is None else self._responses.mean(tilt))

    def variance(self, tilt: float) -> float:
        """The variance of L under the same weights."""
        return super().variance(tilt) + (0.0 if self._responses is None else self._responses.variance(tilt))

    def longest(self, removing: bool, tilt: float) -> float:
        """How far the losses of one mechanism lie apart, of all that are brought into cells."""
        ends = (step_ends(SampledStep(float(mu), float(rate)), removing, tilt, 1.0) for mu, rate, _ in self._steps)
        ranges = [high - low for low, high in ends] + [float(np.ptp(losses)) for _, losses in self._curves]
        return max(ranges, default=0)


def _law(curve: TradeOff) -> "tuple[np.ndarray, np.ndarray]":
    """The logarithms of the masses of the outcomes that both worlds have, and their losses."""
    shared = [(float(p), float(q)) for p, q in curves.atoms(curve.vertices) if p > _FAINT and q > _FAINT]
    masses = np.array(shared or [(1.0, 1.0)])
    return np.log(masses[:, 0]), np.log(masses[:, 0] / masses[:, 1])


_FAINT = Fraction(1, 10**290)


@lru_cache(maxsize=4)
def _shape(mixed: Mixed, removing: bool) -> MixedShape:
    return MixedShape(mixed, removing)


class Component(NamedTuple):
    """One kind of mechanism on the lattice, from above and from below, and how many of it there are."""

    above: Cells
    below: Cells
    copies: int


class MixedLattice(TiltedLattice):
    """The losses of one direction on points `spacing` apart, weighted by e^(tilt L).

    Responses are spread as in `Lattice`, all others are brought into cells first, as sampled steps are.
    """

    def __init__(self, mixed: Mixed, removing: bool, tilt: Fraction, spacing: Fraction) -> None:
        self.mixed, self.removing, self.tilt, self.spacing = mixed, removing, tilt, spacing
        self._groups = _groups(mixed.responses)
        self._lowest = -largest_loss(self._groups)

    def delta_above(self, epsilon: Fraction) -> Decimal:
        """An upper bound: on the losses that the cells say, the slack of their ends, and what lies beyond them."""
        slack = sum((copies * Fraction(above.slack) for above, _, copies in self._components), Fraction(0))
        exposed = sum((copies * Fraction(above.beyond) for above, _, copies in self._components), Fraction(0))
        p = precision(_DIGITS)
        inside = super().delta_above(epsilon - slack)
        return (p.between(inside, inside) + p(exposed)).at_most(1).upper

    def delta_below(self, epsilon: Fraction) -> Decimal:
        """A lower bound: a sum of cells stands for the sum of their middles."""
        copies = sum(copies for _, _, copies in self._components)
        value, error = self._renamed_sum(epsilon - copies * self.spacing / 2)
        return self._scaled(epsilon, max(0.0, value - error)).lower

    @cached_property
    def _components(self) -> list[Component]:
        mixed = self.mixed
        found = [
            Component(
                self._step(float_up(mu), min(1.0, float_up(rate))), self._step(float_down(mu), float_down(rate)), n
            )
            for mu, rate, n in mixed.steps
        ]
        for curve, copies in mixed.outcomes:
            cells = outcome_cells(curve, self.spacing)
            found.append(Component(cells, cells, copies))
        if mixed.divergence is not None:
            below = self._step(float_down(_gaussian_within(mixed.divergence)), 1.0)
            found.append(Component(outcome_cells(_pair_above(mixed.divergence), self.spacing), below, 1))
        return found

    def _step(self, mu: float, rate: float) -> Cells:
        step, gap = SampledStep(mu, rate), float(self.spacing)
        low, high = step_ends(step, self.removing, float(self.tilt), gap)
        return step.cells(removing=self.removing, low=low, high=high, spacing=gap)

    @cached_property
    def _responses(self) -> list[LatticePart]:
        return [LatticePart.of(epsilon, copies, self.tilt, self.spacing) for epsilon, copies in self._groups]

    @cached_property
    def _spread(self) -> list[tuple[Masses, Divisor, int]]:
        return [(*above.spread(float(self.tilt)), copies) for above, _, copies in self._components]

    @cached_property
    def _moment(self) -> Interval:  # type: ignore[override]
        p = precision(_DIGITS)
        cells = math.prod((divisor.to(copies, p) for _, divisor, copies in self._spread), start=p(1))
        return cells * moment(self._groups, self.tilt, Fraction(0), p)

    @cached_property
    def _above(self) -> Masses:  # type: ignore[override]
        laws = [part.spread() for part in self._responses]
        return convolve_all(laws + [power(law, copies) for law, _, copies in self._spread])

    @cached_property
    def _below(self) -> tuple[Masses, Masses]:  # type: ignore[override]
        pairs = [
            (*below.renamed(float(self.tilt), divisor), copies)
            for (_, below, copies), (_, divisor, _) in zip(self._components, self._spread, strict=True)
        ]
        ones = [part.renamed(self.tilt) for part in self._responses] + [power(one, n) for one, _, n in pairs]
        others = [part.renamed(self.tilt + 1) for part in self._responses] + [power(other, n) for _, other, n in pairs]
        return convolve_all(ones), convolve_all(others)


def outcome_cells(curve: TradeOff, spacing: Fraction) -> Cells:
    """The outcomes of a curve's pair in cells: each in one whose upper point is certainly not below its loss.

    What the first world has alone is `beyond`; what the second has alone never counts.

    >>> cells = outcome_cells(TradeOff([(0, 1), (0.25, 0.25), (1, 0)]), Fraction(1, 2))
    >>> cells.low, cells.ones, cells.beyond
    (-3, array([0.25, 0.  , 0.  , 0.  , 0.  , 0.75]), 0.0)
    """
    p = precision(_DIGITS)
    beyond, placed = Fraction(0), []
    for one, other in curves.atoms(curve.vertices):
        if not other:
            beyond += one
        elif one:
            loss = (p(one) / p(other)).log()
            placed.append((math.ceil(Fraction(loss.upper) / spacing) - 1, one, other))
    low = min((cell for cell, _, _ in placed), default=0)
    sums: dict[int, tuple[Fraction, Fraction]] = {}
    for cell, one, other in placed:
        before = sums.get(cell - low, (Fraction(0), Fraction(0)))
        sums[cell - low] = before[0] + one, before[1] + other
    bounds = np.zeros((4, max(sums, default=0) + 1))
    for cell, (one, other) in sums.items():
        bounds[:, cell] = float_up(one), float_down(one), float_up(other), float_down(other)
    ones, least_ones, others, least_others = bounds
    return Cells(low, float(spacing), ones, least_ones, others, least_others, 0.0, float_up(beyond), 0.0)


@lru_cache(maxsize=4)
def _lattice(mixed: Mixed, removing: bool, tilt: Fraction) -> MixedLattice:
    return MixedLattice(mixed, removing, tilt, _spacing(mixed, removing, float(tilt)))


def _spacing(mixed: Mixed, removing: bool, tilt: float) -> Fraction:
    """A spacing that widens epsilon by about 4e-6, as in `sampled.py`, if that does not make too many points."""
    shape = _shape(mixed, removing)
    span = _SIGMAS * math.sqrt(max(shape.variance(tilt), 1e-300))
    aim = 4 * math.sqrt(_WIDTH * max(shape.mean(tilt), 1e-6) / shape.count / (1 + tilt))
    wanted = max(min(aim, _COARSEST, 1 / (8 + 8 * tilt)), span / _POINTS, shape.longest(removing, tilt) / _POINTS)
    mantissa, exponent = math.frexp(wanted)
    return math.floor(mantissa * 16) * Fraction(2) ** (exponent - 4)

"""The noise of counters under zCDP: discrete Gaussian draws through a BLT matrix, in integers.

See `blt.py`, theory, Counters.

Step t draws z_t and makes e_t = z_t - R_t, where R_t = sum of w_j a_j and the buffers go a_j <- l_j a_j + e_t, every
product rounded to an integer; the noise is e_1 + ... + e_t. All of that stands on a grid of 2^-bits. A step is an ask
that follows a new item: items between asks are one input of the matrix, their sum.

Proof. Let v_t = 2^bits x_t + e_t, from which all answers follow. Given v_1..v_(t-1), v_t is a discrete Gaussian around
2^bits x_t - R_t(v - 2^bits x). In the other world some e differ from these by d_i 2^bits, by at most |d| = m * distance
in all. By induction the buffers differ by at most 2^bits sum |d_i| l_j^(t-i-1) + 2/(1-l_j), whichever way each product
is rounded to one of its two neighbours (two errors, each below 1), hence the centres by 2^bits sum |d_i| c_(t-i) + r
with r = 2 sum (1 + w_j/(1-l_j)). This holds whatever the inputs were made of, as the bound is the same for every past:
each step is a Gaussian mechanism with a shift s_t that is known beforehand, and the losses s_t^2/(2 sigma2) add up
(Canonne et al. 2020, Thm 14; zCDP, adaptive). By the triangle inequality |s|_2 <= 2^bits |d| |c|_2 + r sqrt(N
k) over N steps and the k coordinates that differ. Rounding is paid for, and N = 2^40 steps are the last.

>>> noise = blt_noise(Fraction(1, 2), horizon=2**20)
>>> noise.bits, round(noise.deviation(2**20), 2)
(41, 5.53)
"""

from fractions import Fraction
from functools import lru_cache
from math import ceil, erfc, floor, log, sqrt
from typing import NamedTuple, TypeVar

import numpy as np

from counterpoint.coins.coins import Coins, Integers
from counterpoint.continual.blt import Blt, for_horizon
from counterpoint.continual.grid_laws import Grid, GridLaw
from counterpoint.continual.packed import Packed, as_integers, roomy
from counterpoint.encoding import Value
from counterpoint.errors import InvalidParameter
from counterpoint.mechanisms.mechanism import State
from counterpoint.mechanisms.tails import WIDE, each_may_fail, weighted_within
from counterpoint.numbers import Interval, float_up, precision
from counterpoint.numbers.exact import Exact
from counterpoint.numbers.interval import sqrt_up

Count = TypeVar("Count", int, Integers)

LIFETIME = 2**40
"""The most steps; the answer of the last one is the last."""

_SLACK = 1000
_AT_ONCE = 2**12
_FACTOR_BITS = 9
"""Factors are at most 2^8, and half a unit is added before a shift."""


class BltState(State, Value, frozen=True):
    """How many steps were made, after how many items the last one was; the noise now, and the buffers one by one."""

    steps: int
    asked: int
    noise: Packed
    buffers: Packed


class BltNoise(NamedTuple):
    """The noise of `width` counters at once: a matrix, a grid of 2^-bits, and the variance of a draw on that grid."""

    blt: Blt
    bits: int
    sigma2: Fraction
    width: int
    lifetime: int = LIFETIME

    @property
    def share(self) -> Fraction:
        """There are no epochs."""
        return Fraction(0)

    def start(self) -> BltState:
        """No noise yet: nothing has been counted."""
        empty = np.zeros(self.width * len(self.blt.buffers), dtype=np.int64)
        return BltState(0, 0, Packed(empty[: self.width]), Packed(empty))

    def drawn(self, state: State, items: int, coins: Coins) -> BltState:
        """The state with the noise of an ask after `items` items: as it was if no item is new, else a step on."""
        assert isinstance(state, BltState)
        if items == state.asked:
            return state
        noise, buffers = self._one_step(state, coins) if self.width == 1 else self._steps(state, coins)
        return BltState(state.steps + 1, items, Packed(noise), Packed(buffers))

    def _one_step(self, state: BltState, coins: Coins) -> tuple[Integers, Integers]:
        """The noise and the buffers of a single counter, in Python's integers: in a tenth of numpy's time."""
        before, buffers = state.noise.integers.tolist(), state.buffers.integers.tolist()
        noise, after = self._step(buffers, before[0], coins.discrete_gaussian(self.sigma2))
        return as_integers([noise]), as_integers(after)

    def _steps(self, state: BltState, coins: Coins) -> tuple[Integers, Integers]:
        """The same of many counters, of so few at a time that they stay in the cache.

        Room is made for what a step adds up: as all weights together are below 1, e_t exceeds a draw by less than a
        buffer, and the noise and the buffers after it are below 2^62.
        """
        given, before = state.buffers.integers.reshape(-1, self.width), state.noise.integers
        fresh, made = coins.discrete_gaussian(self.sigma2, self.width), []
        for at in range(0, self.width, _AT_ONCE):
            piece = slice(at, at + _AT_ONCE)
            buffers = roomy(given[:, piece], _FACTOR_BITS)
            made.append(self._step(list(buffers), roomy(before[piece], 2), roomy(fresh[piece], 2)))
        noise = np.concatenate([noise for noise, _ in made])
        return noise, np.concatenate([after[at] for at in range(len(given)) for _, after in made])

    def _step(self, buffers: list[Count], before: Count, fresh: Count) -> tuple[Count, list[Count]]:
        """The noise and the buffers after a step: of one counter, or of some, as arrays."""
        step, decayed = fresh, []
        for buffer, (m, s, p, q) in zip(buffers, self.blt.buffers, strict=True):
            step = step - rounded_products(buffer, p, q)
            decayed.append(buffer - rounded_products(buffer, m, s))
        return before + step, [buffer + step for buffer in decayed]

    def now(self, state: State) -> Integers:
        """The noise in whole units, rounded."""
        assert isinstance(state, BltState)
        noise = state.noise.integers
        if self.width == 1:
            return as_integers([rounded_products(noise.tolist()[0], 1, self.bits)])
        return rounded_products(roomy(noise, 1), 1, self.bits)

    def is_last(self, state: State) -> bool:
        """Whether no step may follow."""
        assert isinstance(state, BltState)
        return state.steps >= self.lifetime

    def deviation(self, t: int) -> float:
        """The standard deviation after t steps, rounded up.

        Rounding to whole units is in it, as 1/12 more variance: a little too much for noise below a half. Beyond
        the horizon that the matrix is tuned for, it grows like the square root of t.
        """
        if t == 0:
            return 0.0
        return float_up(((self._variance(t) + Fraction(1, 12)).sqrt() + self._rounding(t)).upper)

    def bound(self, probability: Fraction, t: int) -> int:
        """What no coordinate exceeds in absolute value after t steps, all at once, with this probability.

        Coordinates are independent; the noise of each is a weighted sum of draws, and has nearly a normal tail.
        """
        if t == 0:
            return 0
        most = self._within(self._spread(t), probability) + self._rounding(t) + Fraction(1, 2)
        return floor(Fraction(most.upper))

    def worst_bound(self, probability: Fraction, t: int) -> int:
        """What no coordinate exceeds after t steps or fewer, by the sub-Gaussian tail and a union over coordinates.

        A `MonotoneHistogram` sets its thresholds by it, and ledgers hold those, so it stays as it is: `bound` is
        tighter. Both the variance and the rounding only grow with t.
        """
        if t == 0:
            return 0
        odds = precision(40)(2 * self.width / (1 - probability)).log()
        most = (2 * self._variance(t) * odds).sqrt() + self._rounding(t) + Fraction(1, 2)
        return floor(Fraction(most.upper))

    def worst_law(self, most: int, grid: Grid) -> GridLaw:
        """A law above that of the noise of one coordinate, where it is above 0, after 1 to `most` steps.

        One side of the tails of `weighted_within`, both of which widen with the steps: for x in whole units, the
        smaller one of Q((x - y)/s') (1 + 10^-18) and e^(-x^2/(2 s^2)).
        """
        spread = self._spread(most)
        deviation = float_up((spread * self._unit).sqrt().upper)
        smooth = float_up((spread * ((self.sigma2 + 4) / Fraction(4**self.bits))).sqrt().upper)
        moved = float_up((spread.sqrt() * Fraction(20, 2**self.bits)).upper)
        rounding = float_up((self._rounding(most) + Fraction(1, 2)).upper)
        far = ceil(Fraction(deviation * sqrt(-2 * log(grid.least)) + rounding) / grid.width) + 2
        least = float(grid.width) * np.arange(far) + (1 - rounding)  # of cells 1, 2, ...
        tails = np.exp(-np.square(np.maximum(least, 0)) / (2 * deviation**2))
        if self.sigma2 >= WIDE:
            normal = np.array([erfc((x - moved) / (smooth * sqrt(2))) / 2 for x in least.tolist()])
            tails = np.minimum(tails, normal * (1 + 1e-12))
        return GridLaw.of_tails(0, np.append(1.0, tails + grid.least))

    def deviation_between(self, earlier: int, t: int) -> float:
        """The standard deviation of the difference of the answers after `earlier` and after t steps, rounded up.

        Rounding to whole units is in both answers, and may go against each other.
        """
        if t == earlier:
            return 0.0
        whole_units = 2 * precision(40)(Fraction(1, 12)).sqrt() if earlier else precision(40)(Fraction(1, 12)).sqrt()
        rounding = self._rounding(earlier) + self._rounding(t) + whole_units
        variance = self._spread_between(earlier, t) * self._unit
        return float_up((variance.sqrt() + rounding).upper)

    def bound_between(self, probability: Fraction, earlier: int, t: int) -> int:
        """What no coordinate of that difference exceeds in absolute value, all at once, with this probability."""
        if t == earlier:
            return 0
        within = self._within(self._spread_between(earlier, t), probability)
        most = within + self._rounding(earlier) + self._rounding(t) + (1 if earlier else Fraction(1, 2))
        return floor(Fraction(most.upper))

    def _within(self, spread: Interval, probability: Fraction) -> Interval:
        """What weighted sums of this spread stay within, one for each coordinate, in whole units."""
        chance = each_may_fail(probability, self.width)
        return weighted_within(Fraction(self.sigma2), spread, chance) * Fraction(1, 2**self.bits)

    @property
    def _unit(self) -> Fraction:
        """The variance of a draw, in whole units."""
        return Fraction(self.sigma2, 4**self.bits)

    def _variance(self, t: int) -> Interval:
        return self._spread(t) * self._unit

    def _spread(self, t: int) -> Interval:
        return self.blt.spread(_in_life(t))

    def _spread_between(self, earlier: int, t: int) -> Interval:
        return self.blt.spread_between(earlier, _in_life(t))

    def _rounding(self, t: int) -> Interval:
        """How far rounded products, each off by at most a half, move the noise after t steps."""
        return self.blt.drift(t) * (carried(self.blt) * Fraction(1, 4 << self.bits))


def _in_life(t: int) -> int:
    if t > LIFETIME:
        raise InvalidParameter(f"t must not be past the lifetime of {LIFETIME}, but {t} was given")
    return t


def rounded_products(values: Count, factor: int, shift: int) -> Count:
    """An integer, or each of an array, times factor/2^shift, to the nearest integer.

    >>> rounded_products(-10, 3, 2), rounded_products(np.array([10, -10]), 3, 2)
    (-7, array([ 8, -7]))
    """
    return values * factor + (1 << shift >> 1) >> shift


def carried(blt: Blt) -> Fraction:
    """r: how far apart rounding can bring the centres of two neighbouring runs in one step."""
    return 2 * (len(blt.buffers) + blt.total)


@lru_cache(maxsize=256)
def blt_noise(
    rho: Fraction,
    horizon: int | None,
    squared: int = 1,
    coordinates: int = 1,
    *,
    width: int = 1,
    bits: int | None = None,
    lifetime: int = LIFETIME,
) -> BltNoise:
    """The noise for zCDP(rho) if all items of a unit move `coordinates` coordinates by `squared` in squared L2 norm.

    >>> float(blt_noise(Fraction(1, 2), 2**20).sigma2 / 4**41)  # |c|^2 (1 + less than 1/1000)^2
    5.48...
    """
    blt = for_horizon(horizon)
    return scaled(blt, rho, squared * blt.squared, coordinates, width=width, bits=bits, lifetime=lifetime)


def scaled(
    blt: Blt, rho: Fraction, reach: Fraction, coordinates: int, *, width: int, bits: int | None, lifetime: int
) -> BltNoise:
    """The noise through this matrix if inputs move the steps, in this many coordinates, by `reach` squared.

    Without `bits`, the grid is as fine as it takes for rounding to add a thousandth to the sensitivity. The variance is
    rounded up.
    """
    carry = carried(blt) ** 2 * lifetime * coordinates
    if bits is None:
        bits = 0
        while 4**bits * reach < _SLACK**2 * carry:
            bits += 1
    sensitivity = sqrt_up(4**bits * reach) + sqrt_up(carry)
    return BltNoise(blt, bits, Exact(-floor(-(sensitivity**2) / (2 * rho))), width, lifetime)

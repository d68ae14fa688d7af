"""The noise of counters under zCDP for units whose items are far from each other: a step for every item.

See `blt_noise.py`, theory, Counters. There a step is an ask, and items that are far from each other in the stream can
fall into one step. Here every item is a step of its own, so the items of a unit that are at least `apart` items from
each other are as many steps from each other, whenever asks come.

Proof. As in `blt_noise`, the centre of step t moves by at most s_t = 2^bits sum of |d_i| c_(t-i) + r, in each
coordinate, where item i moves by d_i. By the triangle inequality |s|_2 is at most r sqrt(N k) and 2^bits times the root
of the sum over all pairs of <|d_i|, |d_j|> g_(i-j), g the products of the columns of the matrix. By Cauchy and Schwarz
<|d_i|, |d_j|> is at most the square of the largest distance, and as g falls (`Blt.separated`) the sum is largest if the
items follow one another as closely as they may (Kalinin and Lampert 2024, Thm 2).

How fast the buffers fade is chosen by `items`, `apart` and the horizon: what an item leaves behind should have faded
when the next one of its unit can come.

>>> noise = spaced_noise(Fraction(1, 2), horizon=2**10, unit=FarItems(8, apart=128))
>>> round(noise.deviation(2**10), 1), len(noise.blt.buffers)
(13.3, 3)
"""

from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

from counterpoint.coins.coins import Coins
from counterpoint.continual.blt import Blt, Buffer
from counterpoint.continual.blt_noise import LIFETIME, BltNoise, BltState, scaled
from counterpoint.continual.blt_table import ENDLESS, TABLE
from counterpoint.continual.packed import Packed, as_integers
from counterpoint.mechanisms.mechanism import State

_AT_ONCE = 2**12
_HALVINGS = 60
_SOFTEST = 4
_TIMES = tuple(2**power for power in range(8, 25, 2))
"""What noise without a horizon is chosen for: it is nearly as good at each of these times as any other."""


class SpacedNoise(BltNoise):
    """Noise with one step for each item."""

    __slots__ = ()

    def drawn(self, state: State, items: int, coins: Coins) -> BltState:
        """The state with the noise of an ask after `items` items: a step on for each that is new."""
        assert isinstance(state, BltState)
        return self._alone(state, items, coins) if self.width == 1 else self._together(state, items, coins)

    def _alone(self, state: BltState, items: int, coins: Coins) -> BltState:
        """The steps of a single counter, in Python's integers."""
        noise, buffers, steps = state.noise.integers.tolist()[0], state.buffers.integers.tolist(), state.steps
        while steps < items:
            fresh = coins.discrete_gaussian(self.sigma2, min(items - steps, _AT_ONCE)).tolist()
            for draw in fresh:
                noise, buffers = self._step(buffers, noise, draw)
            steps += len(fresh)
        return BltState(steps, items, Packed(as_integers([noise])), Packed(as_integers(buffers)))

    def _together(self, state: BltState, items: int, coins: Coins) -> BltState:
        """The steps of many counters, one by one."""
        while state.steps < items:
            noise, buffers = self._steps(state, coins)
            state = BltState(state.steps + 1, items, Packed(noise), Packed(buffers))
        return state


class FarItems(NamedTuple):
    """The items of a unit: how many, how far from each other at least, how far each moves, in how many coordinates.

    `squared` is the square of an item's distance in the L2 norm; `coordinates` counts those of all items together.
    """

    items: int
    apart: int
    squared: int = 1
    coordinates: int = 1


@lru_cache(maxsize=256)
def spaced_noise(
    rho: Fraction,
    horizon: int | None,
    unit: FarItems,
    width: int = 1,
    *,
    bits: int | None = None,
    lifetime: int = LIFETIME,
) -> SpacedNoise:
    """The noise for zCDP(rho) of `width` counters if all items of such a unit move.

    >>> spaced_noise(Fraction(1, 2), 2**10, FarItems(8, 2**50)).sigma2 == spaced_noise(
    ...     Fraction(1, 2), 2**10, FarItems(1, 1)
    ... ).sigma2
    True
    """
    apart = min(unit.apart, LIFETIME)
    items = min(unit.items, -(-LIFETIME // apart))  # the lifetime has room for no more
    blt = for_separated(horizon, items, apart)
    reach = Fraction(blt.separated(items, apart).upper)
    moved = unit.squared * reach
    return SpacedNoise(*scaled(blt, rho, moved, unit.coordinates, width=width, bits=bits, lifetime=lifetime))


@lru_cache(maxsize=256)
def for_separated(horizon: int | None, items: int, apart: int) -> Blt:
    """The matrix with the least mean variance up to the horizon; without one, with the least regret over many times.

    Of the matrices for counters, each also with some of its slowest buffers made lighter. That a choice is the best of
    these is no part of any claim. It is computed in floats by sums, products and quotients in a fixed order, which come
    out the same on every machine: a counter in a ledger keeps its matrix.

    >>> for_separated(2**10, 1, 1).buffers == Blt([Buffer(*digits) for digits in TABLE[9]]).buffers
    True
    """
    times = _TIMES if horizon is None else (horizon,)
    tried = [(variant, _costs(variant, items, apart, times)) for variant in _variants(max(times))]
    least = [min(costs[at] for _, costs in tried) for at in range(len(times))]

    def regret(each: tuple[Sequence[Buffer], list[float]]) -> float:
        return max(cost / best for cost, best in zip(each[1], least, strict=True))

    return Blt(list(min(tried, key=regret)[0]))


def _variants(horizon: int) -> Iterator[tuple[Buffer, ...]]:
    """The buffers of every matrix for times up to twice the horizon, with the slowest of them at 1/2 to 1/16 weight."""
    known = [row for power, row in sorted(TABLE.items()) if 2**power <= 2 * horizon] or [TABLE[min(TABLE)]]
    for row in (*known, ENDLESS):
        buffers = sorted((Buffer(*digits) for digits in row), key=lambda buffer: buffer.rate)
        yield tuple(buffers)
        for lighter in range(1, len(buffers) + 1):
            for halvings in range(1, _SOFTEST + 1):
                slow = (buffer._replace(q=buffer.q + halvings) for buffer in buffers[:lighter])
                yield (*slow, *buffers[lighter:])


class _Floats(NamedTuple):
    """Rates and weights of buffers, from the slowest to the fastest."""

    rates: list[float]
    weights: list[float]


def _costs(buffers: Sequence[Buffer], items: int, apart: int, times: Sequence[int]) -> list[float]:
    """About the mean variance up to each of these times, at rho = 1/2: the formulas of `blt.py`, in floats."""
    given = _Floats([float(it.rate) for it in buffers], [float(it.weight) for it in buffers])
    reached = _reach(given, items, apart)
    zeros = [_zero(given, at) for at in range(len(buffers))]
    end = 1 / (1 + _sum(weight / rate for rate, weight in zip(*given, strict=True)))
    sizes = [1 / (zero * _sum(w / ((r - zero) * (r - zero)) for r, w in zip(*given, strict=True))) for zero in zeros]
    fades = list(zip(zeros, sizes, strict=True))
    return [reached * _mean_variance(end, fades, time) for time in times]


def _reach(given: _Floats, items: int, apart: int) -> float:
    """About `Blt.separated`."""
    total = float(items)
    for rate, weight in zip(*given, strict=True):
        shared = _sum(other / (it + rate - it * rate) for it, other in zip(*given, strict=True))
        kept = _power(1 - rate, apart)
        later = (items - _geometric(kept, items)) * kept / (1 - kept) if kept < 1 else items * (items - 1) / 2
        total += weight * (items * shared + 2 * (1 / (1 - rate) + shared) * later)
    return total


def _zero(given: _Floats, at: int) -> float:
    """The zero of 1 + sum of weight/(rate - zero) above this rate and below the next; by bisection."""
    rates, start = given.rates, given.rates[at]
    low, high = 0.0, (rates[at + 1] if at + 1 < len(rates) else start + _sum(given.weights)) - start
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        height = 1 + _sum(weight / (rate - start - middle) for rate, weight in zip(*given, strict=True))
        low, high = (middle, high) if height < 0 else (low, middle)
    return start + (low + high) / 2


def _mean_variance(end: float, fades: list[tuple[float, float]], time: int) -> float:
    """The mean over t from 1 to `time` of the sum of b_k^2 over k < t."""
    total = (time + 1) / 2 * end * end
    for gap, size in fades:
        total += 2 * end * size * _mean_of_sums(gap, time)
        total += size * _sum(other * _mean_of_sums(gap + it - gap * it, time) for it, other in fades)
    return total


def _mean_of_sums(gap: float, time: int) -> float:
    """The mean over t from 1 to `time` of the sum of (1 - gap)^k over k < t."""
    return (1 - (1 - gap) * _geometric(1 - gap, time) / time) / gap


def _geometric(kept: float, count: int) -> float:
    """The sum of kept^j over j < count."""
    return (1 - _power(kept, count)) / (1 - kept)


def _sum(terms: Iterable[float]) -> float:
    """A sum from left to right: Python's own, of floats, is computed in another way since 3.12."""
    total = 0.0
    for term in terms:
        total += term
    return total


def _power(base: float, exponent: int) -> float:
    """A power by products alone, whose last digit no machine's library decides."""
    result = 1.0
    while exponent:
        if exponent & 1:
            result *= base
        base *= base
        exponent >>= 1
    return result

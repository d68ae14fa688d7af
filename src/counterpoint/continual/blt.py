"""Buffered linear Toeplitz matrices: a factor of the prefix sums that is applied and inverted in a few numbers.

The prefix-sum matrix A is written as B C (the matrix mechanism). Noise A C^-1 z has the privacy of z added to C x: one
input reaches the outputs from its own time on by c_0 = 1, c_k = sum of w_j l_j^(k-1) (Dvijotham et al. 2024), and as
all l_j are below 1, |c|_2 is finite for ever. Decays l_j = 1 - rate_j and weights w_j are rationals, so the squared
norm is one, too. The error is that of b, the coefficients of A C^-1, all positive: with g_j the zeros of 1 + sum
w_i/(rate_i - g), b_k = end + sum f_j (1 - g_j)^k, where end = 1/(1 + sum w_i/rate_i) and f_j = 1/(g_j sum w_i/(rate_i -
g_j)^2).

>>> blt = for_horizon(2**20)
>>> round(float(blt.squared), 3), len(blt.buffers)
(5.48, 5)
"""

from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

from counterpoint.continual.blt_table import ENDLESS, TABLE
from counterpoint.errors import InvalidParameter
from counterpoint.numbers import Interval, precision

_DIGITS = 60
_HALVINGS = 140


class Buffer(NamedTuple):
    """A buffer that decays by 1 - m/2^s a step and weighs p/2^q."""

    m: int
    s: int
    p: int
    q: int

    @property
    def rate(self) -> Fraction:
        """What a step takes off it."""
        return Fraction(self.m, 2**self.s)

    @property
    def weight(self) -> Fraction:
        """What it adds to the output."""
        return Fraction(self.p, 2**self.q)


class Fade(NamedTuple):
    """A part of b: it starts at `size` and loses a `gap` of itself a step."""

    gap: Interval
    size: Interval


class Blt:
    """The matrix C of some buffers, with what is exactly true of it.

    All rates lie between 0 and 1 and all weights are positive, small enough for all zeros g to lie between 0 and 1:
    sum w_j/l_j < 1. Both are checked, so that the statements above hold.

    >>> Blt([Buffer(1, 1, 1, 2)]).squared  # 1 + (1/4)^2 / (1 - 1/4)
    Fraction(13, 12)
    """

    __slots__ = ("_fades", "buffers")

    def __init__(self, buffers: list[Buffer]) -> None:
        self.buffers = tuple(sorted(buffers, key=lambda buffer: buffer.rate))
        self._fades: tuple[Fade, ...] | None = None
        rates = [buffer.rate for buffer in self.buffers]
        if not all(0 < rate < 1 for rate in rates) or len(set(rates)) < len(rates):
            raise InvalidParameter("the rates of buffers must be different numbers between 0 and 1")
        light = sum((buffer.weight / (1 - buffer.rate) for buffer in self.buffers), Fraction(0)) < 1
        if not light or any(buffer.weight <= 0 for buffer in self.buffers):
            raise InvalidParameter("the weights of buffers must be above 0, and the sum of weight/decay below 1")

    @property
    def squared(self) -> Fraction:
        """|c|_2 squared, over all time: 1 + the sum over i, j of w_i w_j / (1 - l_i l_j)."""
        pairs = ((one, other) for one in self.buffers for other in self.buffers)
        shared = (a.weight * b.weight / (a.rate + b.rate - a.rate * b.rate) for a, b in pairs)
        return 1 + sum(shared, Fraction(0))

    def separated(self, inputs: int, apart: int) -> Interval:
        """The square of how far this many inputs, each moved by 1, move all outputs, if they are `apart` steps apart.

        The sum over all pairs of inputs of the products of their outputs, which are g_0 = |c|_2^2 for an input with
        itself and g_k = the sum of c_i c_(i+k) for inputs k steps apart. As c_k = sum of w_j l_j^(k-1), g_k is the sum
        of v_j l_j^k with v_j = w_j/l_j + w_j sum of w_i/(1 - l_i l_j). As c is positive and falls, so does g: inputs
        that are farther apart move the outputs less.

        >>> blt = for_horizon(2**7)
        >>> round(float(blt.separated(1, 1).upper), 3), round(float(blt.squared), 3)
        (2.624, 2.624)
        >>> [round(float(blt.separated(8, apart).upper), 2) for apart in (1, 16, 128, 2**20)]
        [116.47, 62.74, 24.66, 20.99]
        """
        p = precision(_DIGITS)
        total = p(inputs * self.squared)
        for buffer in self.buffers:
            shared = (it.weight / (it.rate + buffer.rate - it.rate * buffer.rate) for it in self.buffers)
            decay = 1 - buffer.rate
            weight = buffer.weight * (1 / decay + sum(shared, Fraction(0)))
            kept = p(decay) ** apart
            later = kept * (inputs - _geometric(1 - kept, inputs)) / (1 - kept)  # sum of (inputs - j) kept^j, j >= 1
            total = total + 2 * weight * later
        return total

    @property
    def total(self) -> Fraction:
        """The sum of c_1, c_2, ... over all time."""
        return sum((buffer.weight / buffer.rate for buffer in self.buffers), Fraction(0))

    @property
    def end(self) -> Fraction:
        """What b_k falls to."""
        return 1 / (1 + self.total)

    @property
    def fades(self) -> tuple[Fade, ...]:
        """The other parts of b."""
        if self._fades is None:
            self._fades = tuple(map(self._fade, range(len(self.buffers))))
        return self._fades

    def _fade(self, at: int) -> Fade:
        gap, p = self._zero(at), precision(_DIGITS)
        slope = sum((_term(buffer, gap, 2) for buffer in self.buffers), p(0))
        return Fade(gap, 1 / (slope * gap))

    def _zero(self, at: int) -> Interval:
        """The zero above the rate at this place and below the next one, if there is one; by bisection."""
        p, low = precision(_DIGITS), self.buffers[at].rate
        high = self.buffers[at + 1].rate if at + 1 < len(self.buffers) else Fraction(1)
        for _ in range(_HALVINGS):
            for share in (Fraction(1, 2), Fraction(3, 7)):  # one of the two may be the zero itself
                middle = low + share * (high - low)
                height = 1 + sum((_term(buffer, p(middle), 1) for buffer in self.buffers), p(0))
                if height.upper < 0 or height.lower > 0:
                    low, high = (middle, high) if height.upper < 0 else (low, middle)
                    break
        return Interval(p(low).lower, p(high).upper, p)

    def spread(self, t: int) -> Interval:
        """The sum of b_k^2 over k < t: the variance of the noise after t steps, in units of that of a draw.

        >>> round(float(for_horizon(2**20).spread(2**20).upper), 3)
        5.563
        """
        p, end = precision(_DIGITS), self.end
        total = t * p(end) * p(end)
        for fade in self.fades:
            total = total + 2 * p(end) * fade.size * _geometric(fade.gap, t)
        for one in self.fades:
            for other in self.fades:
                gap = one.gap + other.gap - one.gap * other.gap
                total = total + one.size * other.size * _geometric(gap, t)
        return total

    def spread_between(self, earlier: int, t: int) -> Interval:
        """The variance of the difference of the noises after `earlier` and after t steps, in units of that of a draw.

        With n = t - earlier it is the sum of b_k^2 over k < n and of (b_k - b_(k+n))^2 over k < earlier. In the latter
        `end` cancels, and each fade is left with 1 - (1 - gap)^n of its size.

        >>> blt = for_horizon(2**20)
        >>> round(float(blt.spread_between(1000, 1100).upper), 3), round(float(blt.spread(100).upper), 3)
        (4.202, 2.534)
        """
        lost = [fade.size * fade.gap * _geometric(fade.gap, t - earlier) for fade in self.fades]
        total = self.spread(t - earlier)
        for one, from_one in zip(self.fades, lost, strict=True):
            for other, from_other in zip(self.fades, lost, strict=True):
                gap = one.gap + other.gap - one.gap * other.gap
                total = total + from_one * from_other * _geometric(gap, earlier)
        return total

    def drift(self, t: int) -> Interval:
        """The sum of b_k over k < t: how far an error of 1 in every step moves the noise after t steps.

        >>> round(float(for_horizon(2**20).drift(2).upper), 3)
        1.537
        """
        start = t * precision(_DIGITS)(self.end)
        return sum((fade.size * _geometric(fade.gap, t) for fade in self.fades), start)


def _term(buffer: Buffer, at: Interval, power: int) -> Interval:
    distance = buffer.rate - at
    return buffer.weight / (distance if power == 1 else distance * distance)


def _geometric(gap: Interval, t: int) -> Interval:
    """The sum of (1 - gap)^k over k < t."""
    left = 1 - gap
    within = Interval(max(left.lower, Decimal(0)), left.upper, left.precision)
    return (1 - within**t) / gap


@lru_cache(maxsize=64)
def _tuned(power: int) -> Blt:
    return Blt([Buffer(*digits) for digits in TABLE[power]])


@lru_cache(maxsize=1)
def _endless() -> Blt:
    return Blt([Buffer(*digits) for digits in ENDLESS])


def for_horizon(horizon: int | None) -> Blt:
    """The matrix in the table whose horizon is nearest, as a ratio; without a horizon, one that is good at any.

    >>> for_horizon(2**20 + 1) is for_horizon(2**20)
    True
    """
    if horizon is None:
        return _endless()
    return _tuned(min(TABLE, key=lambda power: max(Fraction(horizon, 2**power), Fraction(2**power, horizon))))

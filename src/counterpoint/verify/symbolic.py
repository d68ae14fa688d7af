"""Coins whose Laplace draws stay symbolic until something depends on them (theory, Verification by computation).

If a mechanism adds noise to a value only to compare it, the noise need not be enumerated: each comparison splits into
two branches, with the exact masses of the two tails, and nothing is truncated. A draw that is used for more than
comparisons (in a state, an answer, a product) escapes: the experiment runs again with that draw enumerated.

>>> from counterpoint.coins.enumerated import EnumeratedCoins
>>> def above(coins):
...     return 3 + coins.discrete_laplace(10) >= 5
>>> symbolic, enumerated = SymbolicCoins().law(above), EnumeratedCoins().law(above)
>>> len(symbolic), symbolic.cut <= symbolic.error < enumerated.cut
(2, True)
>>> abs(float(dict(symbolic)[True]) - float(dict(enumerated)[True])) < 1e-9
True
"""

from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from math import ceil, isqrt
from typing import Any, NoReturn, TypeVar

import numpy as np

from counterpoint.coins.enumerated import EnumeratedCoins, Law, Options, Run
from counterpoint.errors import Interruption, InvalidParameter
from counterpoint.numbers import Interval, Number, precision
from counterpoint.numbers.exact import positive, whole

R = TypeVar("R")
_DIGITS = 60
_FADED = 300
_WIDEST = 10**4


class Escaped(Interruption):
    """The draw of this number was used for more than comparisons. An interruption, so that programs do not catch it."""

    def __init__(self, draw: int) -> None:
        super().__init__(draw)
        self.draw = draw


class SymbolicCoins(EnumeratedCoins):
    """All outcomes of experiments on coins, without enumerating noise that is only compared."""

    def __init__(self, cut: Number = Fraction(1, 10**12)) -> None:
        super().__init__(cut)
        self._eager: frozenset[int] = frozenset()

    def _along(self, path: tuple[int, ...]) -> "SymbolicRun":
        return SymbolicRun(self, path, self._eager)

    def _enumerate(self, experiment: Callable[..., R], args: tuple[object, ...]) -> Law[R]:
        outside, eager = self._eager, frozenset[int]()
        try:
            while True:
                self._eager = eager
                try:
                    return super()._enumerate(experiment, args)
                except Escaped as escaped:
                    eager = eager | {escaped.draw}
        finally:
            self._eager = outside


class SymbolicRun(Run):
    """One execution; its Laplace draws are numbered in their order, and those in `eager` are enumerated."""

    def __init__(self, world: SymbolicCoins, path: tuple[int, ...], eager: frozenset[int]) -> None:
        super().__init__(world, path)
        self._eager = eager
        self._drawn = 0

    def discrete_laplace(self, scale: Number, size: int | None = None) -> Any:
        """A symbolic draw, or an array of them; a vector has one number, so that it escapes as a whole."""
        self._drawn += 1
        if self._drawn in self._eager:
            _enumerable(positive(scale, "scale"))
            return super().discrete_laplace(scale, size)
        read = positive(scale, "scale")
        if size is None:
            return Noise(Draw(self, self._drawn, read))
        many = whole(size, 0, "size")
        return np.fromiter((Noise(Draw(self, self._drawn, read)) for _ in range(many)), dtype=object, count=many)

    def discrete_gaussian(self, sigma2: Number, size: int | None = None) -> Any:
        """Enumerate the draw, if it has few enough outcomes."""
        _enumerable(Fraction(isqrt(ceil(positive(sigma2, "sigma2")))))
        return super().discrete_gaussian(sigma2, size)

    def rounded_normal(self, sigma2: Number, size: int | None = None) -> Any:
        """Enumerate the draw, if it has few enough outcomes."""
        _enumerable(Fraction(isqrt(ceil(positive(sigma2, "sigma2")))))
        return super().rounded_normal(sigma2, size)


def _enumerable(scale: Fraction) -> None:
    if scale > _WIDEST:
        raise InvalidParameter(
            f"noise of scale {float(scale):.3g} has too many outcomes to enumerate: verify a smaller instance, with a "
            "larger epsilon or rho or on a coarser grid (counters under zCDP: `verify.exactly.coarse`), or use audit"
        )


class Draw:
    """One symbolic draw Z, known to satisfy low <= Z < high (None: no limit)."""

    __slots__ = ("_run", "high", "low", "number", "scale")

    def __init__(self, run: SymbolicRun, number: int, scale: Fraction) -> None:
        self._run = run
        self.number = number
        self.scale = scale
        self.low: int | None = None
        self.high: int | None = None

    def below(self, limit: int) -> bool:
        """Whether Z < limit: both branches, each with its conditional mass."""
        if self.high is not None and limit >= self.high:
            return True
        if self.low is not None and limit <= self.low:
            return False
        is_below = self._run.take(_sides(self.scale, self.low, limit, self.high))
        if is_below:
            self.high = limit
        else:
            self.low = limit
        return is_below

    def settled(self) -> int | None:
        """Z itself, where comparisons have left finitely many values: one branch for each; None where they have not."""
        if self.low is None or self.high is None:
            return None
        while self.high - self.low > 1:
            self.below((self.low + self.high) // 2)
        return self.low


@lru_cache(maxsize=2**16)
def _sides(scale: Fraction, low: int | None, limit: int, high: int | None) -> Options[bool]:
    """Z < limit or not, given low <= Z < high."""
    left, right = _mass(scale, low, limit), _mass(scale, limit, high)
    total = left + right
    both = {True: _stated(left / total), False: _stated(right / total)}
    certain = tuple((value, chance) for value, (chance, _) in both.items() if chance)
    return Options(certain, sum((error for _, error in both.values()), Fraction(0)))


def _stated(bounds: Interval) -> tuple[Fraction, Fraction]:
    """A probability rounded down, and by how much; one that is too small for a rational in memory is rounded to 0."""
    if bounds.upper.adjusted() < -_FADED:
        return Fraction(0), Fraction(1, 10 ** (_FADED - 1))
    return Fraction(bounds.lower), Fraction(bounds.upper) - Fraction(bounds.lower)


def _mass(scale: Fraction, low: int | None, high: int | None) -> Interval:
    """P[low <= Z < high], without cancellation: on either side of 0 by the tails of that side."""
    if low is not None and low > 0:
        return _tail(scale, low) - (_tail(scale, high) if high is not None else 0)
    if high is not None and high <= 0:
        return _mass(scale, 1 - high, None if low is None else 1 - low)
    left = precision(_DIGITS)(0) if low is None else _tail(scale, 1 - low)
    right = precision(_DIGITS)(0) if high is None else _tail(scale, high)
    return 1 - left - right


@lru_cache(maxsize=2**16)
def _tail(scale: Fraction, start: int) -> Interval:
    """P[Z >= start] = q^start/(1+q), q = e^(-1/scale), for a start above 0."""
    p = precision(_DIGITS)
    return (-p(start / scale)).exp() / (1 + (-p(1 / scale)).exp())


class Noise:
    """An integer sign * Z + offset, which can be shifted, negated and compared with integers.

    `int` of it is a number where comparisons have left finitely many values, as a clamp does. Any other use escapes.
    """

    __slots__ = ("_draw", "_offset", "_sign")

    def __init__(self, draw: Draw, sign: int = 1, offset: int = 0) -> None:
        self._draw = draw
        self._sign = sign
        self._offset = offset

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        return int  # isinstance checks in a mechanism see an int

    def _escape(self, *_: object) -> NoReturn:
        raise Escaped(self._draw.number)

    def __int__(self) -> int:
        value = self._draw.settled()
        return self._escape() if value is None else self._sign * value + self._offset

    __index__ = __int__

    def __add__(self, other: object) -> "Noise":
        return Noise(self._draw, self._sign, self._offset + self._whole(other))

    __radd__ = __add__

    def __sub__(self, other: object) -> "Noise":
        return Noise(self._draw, self._sign, self._offset - self._whole(other))

    def __rsub__(self, other: object) -> "Noise":
        return -self + other

    def __neg__(self) -> "Noise":
        return Noise(self._draw, -self._sign, -self._offset)

    def __pos__(self) -> "Noise":
        return self

    def __lt__(self, other: object) -> bool:
        limit = self._whole(other) - self._offset
        return self._draw.below(limit) if self._sign > 0 else not self._draw.below(1 - limit)

    def __ge__(self, other: object) -> bool:
        return not self < other

    def __le__(self, other: object) -> bool:
        return self < self._whole(other) + 1

    def __gt__(self, other: object) -> bool:
        return not self <= other

    def _whole(self, other: object) -> int:
        return other if type(other) is int else self._escape()

    __sealed__ = __getattr__ = _escape
    __eq__ = __ne__ = __bool__ = __hash__ = _escape
    __float__ = __complex__ = __round__ = __str__ = __repr__ = __format__ = _escape
    __mul__ = __rmul__ = __floordiv__ = __rfloordiv__ = __truediv__ = __rtruediv__ = __mod__ = __rmod__ = _escape
    __pow__ = __rpow__ = __divmod__ = __abs__ = __invert__ = __and__ = __or__ = __xor__ = __lshift__ = _escape
    __copy__ = __deepcopy__ = __reduce__ = __reduce_ex__ = _escape

"""Two ways to compute with many probabilities at once: exactly, in rationals, and fast, in floats with a known error.

Both use numpy arrays, of `Fraction` objects or of doubles, and the same code runs on both. Doubles are only added,
multiplied and divided, and are never negative, so the relative error of every result is known: `UNIT` for each
operation, and the error of merging rows that differ by rounding alone.

>>> rows = RATIONALS.array([[Fraction(1, 3), Fraction(2, 3)], [Fraction(1, 3), Fraction(2, 3)]])
>>> RATIONALS.distinct(rows).first, RATIONALS.distinct(rows).place
(array([0]), array([0, 0]))
"""

from collections.abc import Iterable
from fractions import Fraction
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[Any]
Indices: TypeAlias = NDArray[np.intp]

UNIT = Fraction(1, 2**53)
"""Half the distance from 1 to the next double: the relative error of one operation."""
_KEPT_BITS = 32
_NEAR = 2.0**-42


class Distinct(NamedTuple):
    """Which rows are kept, the index of each row among these, and the largest relative deviation of a merged row."""

    first: Indices
    place: Indices
    deviation: float


class Rationals:
    """Exact arithmetic."""

    rational = True
    zero: Any = Fraction(0)

    def array(self, values: Iterable[Any]) -> Array:
        """An array of rationals."""
        return np.array(values, dtype=object)

    def zeros(self, *shape: int) -> Array:
        """An array of zeros."""
        return np.full(shape, Fraction(0), dtype=object)

    def distinct(self, rows: Array) -> Distinct:
        """The rows that differ."""
        places: dict[tuple[Fraction, ...], int] = {}
        place = [places.setdefault(tuple(row), len(places)) for row in rows]
        first = np.unique(np.array(place, dtype=np.intp), return_index=True)[1]
        return Distinct(first, np.array(place, dtype=np.intp), 0.0)


class Floats:
    """Doubles, whose relative error the caller counts."""

    rational = False
    zero: Any = 0.0

    def array(self, values: Iterable[Any]) -> Array:
        """An array of doubles, each the nearest to its value."""
        return np.array(values, dtype=np.float64)

    def zeros(self, *shape: int) -> Array:
        """An array of zeros."""
        return np.zeros(shape)

    def distinct(self, rows: Array) -> Distinct:
        """The rows that differ by more than rounding: found by their leading bits, then compared in full."""
        if rows.shape[0] == 1:
            return Distinct(np.zeros(1, dtype=np.intp), np.zeros(1, dtype=np.intp), 0.0)
        dropped = 52 - _KEPT_BITS
        leading = (np.ascontiguousarray(rows).view(np.int64) + (1 << (dropped - 1))) >> dropped
        keys = np.ascontiguousarray(leading).view(np.dtype((np.void, leading.shape[1] * 8))).ravel()
        _, first, place = np.unique(keys, return_index=True, return_inverse=True)
        kept = rows[first][place]
        apart = (np.abs(rows - kept) / np.where(kept > 0, kept, 1.0)).max(axis=1)
        separate = np.flatnonzero(apart > _NEAR)
        place = place.copy()
        place[separate] = len(first) + np.arange(len(separate))
        apart[separate] = 0.0
        return Distinct(np.concatenate([first, separate]), place, float(apart.max()))


RATIONALS, FLOATS = Rationals(), Floats()
Arithmetic: TypeAlias = Rationals | Floats

"""What an item of a stream of numbers or vectors can be, and how a stored item is read as integers.

A `Shape` is declared in public (bound, dimensions, sign, distances) and enforced on every value by `fit`, a total
function of everything that has the right shape, so that neighbouring streams are never further apart than it says. A
`Reading` says what a mechanism receives of a stored item, and how far that moves between neighbours.

>>> Shape(bound=9).fit(3.7), Shape(dimensions=4, l1=2).fit([0, 1, 1, 0])
(4, (0, 1, 0, 0))
>>> Shape(bound=3, signed=True).reading("replace").l1, Shape(bound=3, signed=True).reading("add-or-remove").l1
(6, 3)
"""

from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from math import isnan, isqrt

import numpy as np
from msgspec.structs import force_setattr

from counterpoint.encoding import Value
from counterpoint.errors import InvalidParameter, InvalidRequest
from counterpoint.numbers.exact import whole
from counterpoint.numbers.parameters import Flag, PositiveInt
from counterpoint.privacy.secret import Raw
from counterpoint.sources.declaring.columns import Key

Record = tuple[Key | None, ...]
"""A stored record: its declared fields in order, None where one is missing."""

Of = str | tuple[str, ...] | None
"""What is to be read of an item: a field, several as a vector, or None: the item itself, a record as 1."""


def named(of: object) -> Of:
    """A field, or several; from whatever sequence they are given in.

    >>> named(["clicks", "minutes"])
    ('clicks', 'minutes')
    """
    if of is None or isinstance(of, str):
        return of
    if isinstance(of, Sequence) and all(isinstance(name, str) for name in of):
        return tuple(of)
    raise InvalidRequest(f"a field is named by a text, and several by a list of them, not by a {type(of).__name__}")


class Reading(Value, frozen=True):
    """What is read of a stored item, and how far that can move where neighbours differ.

    It moves by `l1` in L1, by `squared` in squared L2, and no number of it by more than `each` (None: by `l1`).
    `fields` are the places of a record that are read: none of them, and each record counts 1; a place with `keys`, and
    it is read as a vector with a 1 at its key. None: the stored item is itself what is read.

    >>> Reading(1, 1, fields=()).read(("home", 3)), Reading(5, 25, fields=(1,)).read(("home", 3))
    (1, 3)
    """

    l1: int
    squared: int
    dimensions: int | None = None
    grid: Fraction = Fraction(1)
    fields: tuple[int, ...] | None = None
    keys: tuple[Key, ...] = ()
    each: int | None = None

    @property
    def zero(self) -> Raw:
        """An item that says nothing."""
        return 0 if self.dimensions is None else (0,) * self.dimensions

    def read(self, item: "Raw | Record") -> Raw:
        """The integers of a stored item; what is missing is 0."""
        if self.fields is None:
            return item  # type: ignore[return-value]  # a log of numbers or vectors holds them as they are read
        assert isinstance(item, tuple)
        if not self.fields:
            return 1
        if self.keys:
            return tuple(int(item[self.fields[0]] == key) for key in self.keys)
        numbers = tuple(int(item[place] or 0) for place in self.fields)
        return numbers[0] if self.dimensions is None else numbers


class Shape(Value, frozen=True):
    """What an item of a stream can be, and how far apart two of them are at most: public, and enforced by `fit`.

    `l1` and `l2_squared` are those distances (the second one squared). They follow from the bound, unless vectors
    declare smaller ones, as one-hot vectors do: 2 and 2.

    >>> Shape(bound=3, signed=True).l1, Shape(dimensions=100, l1=2).l2_squared
    (6, 2)
    """

    bound: PositiveInt = 1
    dimensions: PositiveInt | None = None
    signed: Flag = False
    l1: int | None = None
    l2_squared: int | None = None
    largest: int | None = None
    largest_squared: int | None = None

    def __post_init__(self) -> None:
        """Check what is declared, derive the rest: `largest` and `largest_squared` are norms that no vector exceeds."""
        reach = self.bound * (2 if self.signed else 1)
        if self.dimensions is None and not (self.l1 is None and self.l2_squared is None):
            raise InvalidParameter("l1 and l2_squared are for vectors: declare dimensions, too")
        width = self.dimensions or 1
        box, squared_box = reach * width, reach * reach * width
        # Vectors of L1 norm r are at most 2r apart; of squared L2 norm s at most 4s, or 2s if none is ever negative.
        apart = 4 if self.signed else 2
        l1 = box if self.l1 is None else min(box, whole(self.l1, 2, "l1"))
        squared = squared_box if self.l2_squared is None else whole(self.l2_squared, apart, "l2_squared")
        squared = min(squared, squared_box)
        force_setattr(self, "largest", l1 // 2 if l1 < box else None)
        force_setattr(self, "largest_squared", squared // apart if squared < squared_box else None)
        # Each distance bounds the other: |x|_1 <= |x|_2^2 (integers), |x|_1^2 <= width |x|_2^2, |x|_2^2 <= reach |x|_1.
        force_setattr(self, "l1", min(l1, squared, isqrt(width * squared)))
        force_setattr(self, "l2_squared", min(squared, reach * l1))

    @property
    def zero(self) -> Raw:
        """An item that says nothing."""
        return 0 if self.dimensions is None else (0,) * self.dimensions

    def reading(self, neighbours: str, of: Of = None) -> Reading:
        """An item as it is. Neighbours differ by the distance of two items, or of one from nothing."""
        if of is not None:
            raise InvalidRequest(
                f"an item of this stream has no fields, so none called {of!r}: it is read as it is; declare "
                "fields={...} for a stream of records"
            )
        l1, squared = (self.l1, self.l2_squared) if neighbours == "replace" else self._norms()
        assert l1 is not None and squared is not None  # derived where they were not declared
        each = self.bound * (2 if self.signed and neighbours == "replace" else 1)
        return Reading(l1, squared, self.dimensions, each=min(each, l1))

    def covering(self, neighbours: str) -> Reading:
        """The only reading there is."""
        return self.reading(neighbours)

    def _norms(self) -> tuple[int, int]:
        """What no item exceeds in the L1 norm and in the squared L2 norm."""
        width = self.dimensions or 1
        l1 = self.bound * width if self.largest is None else self.largest
        squared = self.bound**2 * width if self.largest_squared is None else self.largest_squared
        # the same inequalities as between distances, with the bound in the place of the reach
        return min(l1, squared, isqrt(width * squared)), min(squared, self.bound * l1)

    def fit(self, value: object) -> Raw:
        """The integers that are stored for a value; a total function of everything that has the right shape.

        A number outside its range is brought to the nearest end of it, a fraction to the nearest integer, and what is
        missing (None, NaN) is 0. A vector that is longer than was declared is cut, from its first coordinate on, where
        it reaches what was. The type and the number of coordinates are public: the wrong ones are `InvalidRequest`.

        >>> Shape(bound=9).fit(3.7), Shape(bound=9).fit(-1), Shape(dimensions=4, l1=2).fit([0, 1, 1, 0])
        (4, 0, (0, 1, 0, 0))
        """
        given = value.tolist() if isinstance(value, np.ndarray) and value.dtype.kind not in "mM" else value
        if self.dimensions is None:
            return self._number(given)
        if given is None:
            return self.zero
        if not isinstance(given, list | tuple) or len(given) != self.dimensions:
            raise InvalidRequest(f"an item of this stream is a vector of {self.dimensions} numbers")
        return self._cut([self._number(coordinate) for coordinate in given])

    def _number(self, given: object) -> int:
        value = plain(given)
        low, high = (-self.bound if self.signed else 0), self.bound
        if isinstance(value, int):
            return int(min(max(value, low), high))
        if value is None or is_nan(value):
            return 0
        if isinstance(value, float | Decimal | Fraction):
            return round(min(max(value, low), high))
        raise InvalidRequest(f"an item of this stream holds numbers, not a {type(value).__name__}")

    def _cut(self, vector: list[int]) -> tuple[int, ...]:
        room, squared_room = self.largest, self.largest_squared
        for index, coordinate in enumerate(vector):
            size = abs(coordinate)
            if room is not None:
                size = min(size, room)
                room -= size
            if squared_room is not None:
                size = min(size, isqrt(squared_room))
                squared_room -= size * size
            vector[index] = size if coordinate > 0 else -size
        return tuple(vector)


def plain(given: object) -> object:
    """What numpy holds, as Python has it; a time stays as it is, of which numpy makes a date or a number by its value.

    >>> plain(np.int64(3)), plain("a"), type(plain(np.timedelta64(3, "ns"))).__name__
    (3, 'a', 'timedelta64')
    """
    keeps = not isinstance(given, np.generic) or isinstance(given, np.datetime64 | np.timedelta64)
    return given if keeps else given.item()  # type: ignore[attr-defined]  # it is a np.generic


def is_nan(value: object) -> bool:
    """Whether this is a number that is none.

    >>> is_nan(float("nan")), is_nan(Decimal("sNaN")), is_nan(1)
    (True, True, False)
    """
    return value.is_nan() if isinstance(value, Decimal) else isinstance(value, float) and isnan(value)

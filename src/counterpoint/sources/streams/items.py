"""The shape of an item of a stream of numbers or vectors, and how a stored item is read as integers.

An `ItemShape` is a public declaration (bound, dimensions, sign, distances). `fit` enforces it on every value, as a
total function of everything with the right number of coordinates, so neighbouring streams are never further apart than
declared. A `ItemReader` says which integers of a stored item a mechanism receives, and how far they move between
neighbours.

>>> ItemShape(bound=9).fit(3.7), ItemShape(dimensions=4, l1=2).fit([0, 1, 1, 0])
(4, (0, 1, 0, 0))
>>> signed = ItemShape(bound=3, signed=True)
>>> signed.item_reader("replace").l1, signed.item_reader("add-or-remove").l1
(6, 3)
"""

from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from math import isnan, isqrt
from typing import Annotated

import numpy as np
from msgspec.structs import force_setattr

from counterpoint.encoding import Tagged, Value
from counterpoint.errors import InvalidParameter, InvalidRequest, shown
from counterpoint.numbers.exact import whole
from counterpoint.numbers.parameters import Flag, PositiveInt, Read
from counterpoint.privacy.secret import Raw
from counterpoint.queries.compile import is_request
from counterpoint.queries.request import OnSource, Request
from counterpoint.schema.columns import Key

Record = tuple[Key | None, ...]
"""A stored record: its declared fields in order, None where one is missing."""

Of = str | tuple[str, ...] | None
"""What a mechanism reads of an item: a field, several as a vector, or None for the item itself (a record as 1)."""

StreamSubscription = Of | Request
"""What a mechanism follows of a stream: what it reads of each item, or a request, to which each item adds something."""

Subscription = StreamSubscription | OnSource
"""What it follows of one stream or of several sources, where a request says which it is about."""


def read_stream_subscription(of: object) -> StreamSubscription:
    """Names of fields as `named` reads them, or a request.

    >>> from counterpoint.queries.aggregates import count
    >>> read_stream_subscription(count("page = 'home'")), read_stream_subscription(["clicks"])
    (Count(where="page = 'home'"), ('clicks',))
    """
    return of if isinstance(of, Request) and is_request(of) else named(of)


def read_subscription(of: object) -> Subscription:
    """The same, or a request about one of several sources."""
    return of if isinstance(of, OnSource) else read_stream_subscription(of)


def named(of: object) -> Of:
    """The name of a field, or a tuple of names, from any sequence.

    >>> named(["clicks", "minutes"])
    ('clicks', 'minutes')
    """
    if of is None or isinstance(of, str):
        return of
    if isinstance(of, Sequence) and all(isinstance(name, str) for name in of):
        return tuple(of)
    raise InvalidRequest(
        f"fields must be a name or a list of names, as in 'clicks' or ['clicks', 'minutes'], not a {type(of).__name__}"
    )


class ItemReader(Value, frozen=True):
    """The integers that are read of a stored item, and how far they can move between neighbours.

    They move by at most `l1` in L1, `squared` in squared L2, and `each` in every coordinate (None: by `l1`). `fields`
    are the indices of the fields that are read: none means that each record counts 1; one with `keys`, that it is
    read as a vector with a 1 at its key. None means that the stored item itself is read.

    >>> ItemReader(1, 1, fields=()).read(("home", 3)), ItemReader(5, 25, fields=(1,)).read(("home", 3))
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
        """The reading of an item that does not count."""
        return 0 if self.dimensions is None else (0,) * self.dimensions

    @property
    def stored(self) -> "ItemReader":
        """What a ledger stores of it."""
        return self

    def read(self, item: "Raw | Record") -> Raw:
        """The integers of a stored item; a missing field is 0."""
        if self.fields is None:
            return item  # type: ignore[return-value]  # a log of numbers or vectors holds them as they are read
        assert isinstance(item, tuple)
        if not self.fields:
            return 1
        if self.keys:
            return tuple(int(item[self.fields[0]] == key) for key in self.keys)
        numbers = tuple(int(item[place] or 0) for place in self.fields)
        return numbers[0] if self.dimensions is None else numbers


class ItemShape(Value, frozen=True):
    """The public bounds of a stream's items, and the largest distance of two of them; `fit` enforces both.

    `l1` and `l2_squared` are those distances (the second one squared). They follow from the bound, unless vectors
    declare smaller ones, as one-hot vectors do: 2 and 2.

    >>> ItemShape(bound=3, signed=True).l1, ItemShape(dimensions=100, l1=2).l2_squared
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
            raise InvalidParameter("l1 and l2_squared apply to vectors only: declare dimensions=... as well")
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

    def describe(self) -> str:
        """The declaration in words.

        >>> ItemShape(bound=5).describe(), ItemShape(dimensions=4, l1=2).describe()
        ('item: a whole number from 0 to 5', 'item: a vector of 4 whole numbers from 0 to 1, of L1 norm at most 1')
        """
        span = f"from {-self.bound if self.signed else 0} to {self.bound}"
        if self.dimensions is None:
            return f"item: a whole number {span}"
        norms = "" if self.largest is None else f", of L1 norm at most {self.largest}"
        norms += "" if self.largest_squared is None else f", of squared L2 norm at most {self.largest_squared}"
        return f"item: a vector of {self.dimensions} whole numbers {span}{norms}"

    @property
    def zero(self) -> Raw:
        """An item that does not count."""
        return 0 if self.dimensions is None else (0,) * self.dimensions

    def item_reader(self, neighbours: str, of: StreamSubscription = None) -> ItemReader:
        """The whole item. Neighbours differ by the distance of two items, or (add-or-remove) of one item and 0."""
        if isinstance(of, Request):
            raise InvalidRequest(
                f"an item of this stream has no fields, so {shown(of, 200)} has nothing to ask about: leave it out, or "
                "declare a stream of records, Stream(fields={...})"
            )
        if of is not None:
            raise InvalidRequest(
                f"an item of this stream has no fields, so none called {of!r}: leave out the name, or declare a stream "
                "of records, Stream(fields={...})"
            )
        l1, squared = (self.l1, self.l2_squared) if neighbours == "replace" else self._norms()
        assert l1 is not None and squared is not None  # derived where they were not declared
        each = self.bound * (2 if self.signed and neighbours == "replace" else 1)
        return ItemReader(l1, squared, self.dimensions, each=min(each, l1))

    def covering(self, neighbours: str) -> ItemReader:
        """The only possible reading."""
        return self.item_reader(neighbours)

    def _norms(self) -> tuple[int, int]:
        """The largest L1 norm and squared L2 norm of an item."""
        width = self.dimensions or 1
        l1 = self.bound * width if self.largest is None else self.largest
        squared = self.bound**2 * width if self.largest_squared is None else self.largest_squared
        # the same inequalities as between distances, with the bound in the place of the reach
        return min(l1, squared, isqrt(width * squared)), min(squared, self.bound * l1)

    def fit(self, value: object) -> Raw:
        """The stored form of a value: a total function of everything with the right number of coordinates.

        A number is clamped to its range and rounded to an integer, and a missing one (None, NaN) is 0. A vector whose
        norm exceeds the declared one is truncated: coordinates beyond the point where the norm is reached become 0.
        The type and the number of coordinates are public: wrong ones raise `InvalidRequest`.

        >>> ItemShape(bound=9).fit(3.7), ItemShape(bound=9).fit(-1), ItemShape(dimensions=4, l1=2).fit([0, 1, 1, 0])
        (4, 0, (0, 1, 0, 0))
        """
        given = value.tolist() if isinstance(value, np.ndarray) and value.dtype.kind not in "mM" else value
        if self.dimensions is None:
            return self._number(given)
        if given is None:
            return self.zero
        if not isinstance(given, list | tuple) or len(given) != self.dimensions:
            kind = f"{len(given)} numbers" if isinstance(given, list | tuple) else f"a {type(given).__name__}"
            raise InvalidRequest(f"an item of this stream must be a vector of {self.dimensions} numbers, not {kind}")
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
        raise InvalidRequest(f"an item of this stream must be a number, not a {type(value).__name__}")

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
    """A numpy scalar as a Python value; numpy's times stay, since numpy would convert them depending on their value.

    >>> plain(np.int64(3)), plain("a"), type(plain(np.timedelta64(3, "ns"))).__name__
    (3, 'a', 'timedelta64')
    """
    keeps = not isinstance(given, np.generic) or isinstance(given, np.datetime64 | np.timedelta64)
    return given if keeps else given.item()  # type: ignore[attr-defined]  # it is a np.generic


def is_nan(value: object) -> bool:
    """Whether this is NaN.

    >>> is_nan(float("nan")), is_nan(Decimal("sNaN")), is_nan(1)
    (True, True, False)
    """
    return value.is_nan() if isinstance(value, Decimal) else isinstance(value, float) and isnan(value)


class RunningTotal(Tagged, Value, frozen=True):
    """The request for the sum of all items so far, coordinate by coordinate; of records, of these fields."""

    of: Annotated[Of, Read(lambda of, _: named(of))] = None


def total(of: "str | Sequence[str] | None" = None) -> RunningTotal:
    """The sum of all items that have arrived, for one-shot mechanisms; of records, the sum of a field, or how many.

    >>> from counterpoint import Stream
    >>> Stream(bound=5, unit="user", per_unit=3).prepare(total()).sensitivity
    15
    >>> total("clicks"), total(["clicks", "minutes"])
    (RunningTotal(of='clicks'), RunningTotal(of=('clicks', 'minutes')))
    """
    return RunningTotal(of)  # type: ignore[arg-type]  # any sequence of names is read as a tuple

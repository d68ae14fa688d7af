"""A stream: data that keeps arriving (S4 sec. 3.2, Fig 4). How many items have arrived is public, what they say is not.

An append-only log of integers, or of vectors of integers. Continual mechanisms read it as updates, each from its own
place on; one-shot mechanisms ask for `total()`. Neighbouring streams differ at event level in one item, and at user
level in the values of one unit's items (all of them 0: that unit was never there).

>>> visits = Stream(bound=1)
>>> visits.extend([1, 0, 7, float("nan")])
>>> visits, visits.pin(), visits.relation
(Stream(bound=1; 4 items), 4, Steps(updates=1, bound=1))
>>> visits.items(2, 4)
(Update(private=Secret(...)), Update(private=Secret(...)))
>>> visits.resolve(4, visits.prepare(total()))
Secret(...)
"""

import operator
from collections.abc import Callable, Iterable
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from math import isnan, isqrt
from threading import Lock

import numpy as np
from msgspec.structs import force_setattr

from counterpoint.encoding import Plain, Tagged, Value
from counterpoint.errors import InvalidParameter, InvalidRequest
from counterpoint.numbers.exact import whole
from counterpoint.privacy.messages import Update
from counterpoint.privacy.relations import Relation, Steps
from counterpoint.privacy.secret import Raw, Secret
from counterpoint.sources.source import Prepared, Source


class RunningTotal(Tagged, Value, frozen=True):
    """The request for the sum of all items so far, coordinate by coordinate."""


def total() -> RunningTotal:
    """The sum of all items that have arrived, for one-shot mechanisms.

    >>> Stream(bound=5, unit="user", per_unit=3).prepare(total()).sensitivity
    15
    """
    return RunningTotal()


class Shape(Value, frozen=True):
    """What an item of a stream can be, and how far apart two of them are at most: public, and enforced by `fit`.

    `l1` and `l2_squared` are those distances (the second one squared). They follow from the bound, unless vectors
    declare smaller ones, as one-hot vectors do: 2 and 2.

    >>> Shape(bound=3, signed=True).l1, Shape(dimensions=100, l1=2).l2_squared
    (6, 2)
    """

    bound: int = 1
    dimensions: int | None = None
    signed: bool = False
    l1: int | None = None
    l2_squared: int | None = None
    largest: int | None = None
    largest_squared: int | None = None

    def __post_init__(self) -> None:
        """Check what is declared, derive the rest: `largest` and `largest_squared` are norms that no vector exceeds."""
        if not isinstance(self.signed, bool):
            raise InvalidParameter("signed is True or False")
        force_setattr(self, "bound", whole(self.bound, 1, "bound"))
        reach = self.bound * (2 if self.signed else 1)
        if self.dimensions is None and not (self.l1 is None and self.l2_squared is None):
            raise InvalidParameter("l1 and l2_squared are for vectors: declare dimensions, too")
        width = whole(1 if self.dimensions is None else self.dimensions, 1, "dimensions")
        force_setattr(self, "dimensions", None if self.dimensions is None else width)
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

    def fit(self, value: object) -> Raw:
        """The integers that are stored for a value; a total function of everything that has the right shape.

        A number outside its range is brought to the nearest end of it, a fraction to the nearest integer, and what is
        missing (None, NaN) is 0. A vector that is longer than was declared is cut, from its first coordinate on, where
        it reaches what was. The type and the number of coordinates are public: the wrong ones are `InvalidRequest`.

        >>> Shape(bound=9).fit(3.7), Shape(bound=9).fit(-1), Shape(dimensions=4, l1=2).fit([0, 1, 1, 0])
        (4, 0, (0, 1, 0, 0))
        """
        plain = value.tolist() if isinstance(value, np.ndarray) else value
        if self.dimensions is None:
            return self._number(plain)
        if plain is None:
            return self.zero
        if not isinstance(plain, list | tuple) or len(plain) != self.dimensions:
            raise InvalidRequest(f"an item of this stream is a vector of {self.dimensions} numbers")
        return self._cut([self._number(coordinate) for coordinate in plain])

    def _number(self, given: object) -> int:
        value = given.item() if isinstance(given, np.generic) else given
        low, high = (-self.bound if self.signed else 0), self.bound
        if isinstance(value, int):
            return int(min(max(value, low), high))
        if value is None or _is_nan(value):
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


class Stream(Source):
    """An append-only log of private values, with a public length; safe to append to from many threads.

    A value is a number in [0, bound], or in [-bound, bound] if `signed` (a neighbour then moves it by up to 2 bound);
    with `dimensions`, a vector of so many (see `Shape`, also for what becomes of values that do not fit). With `unit`
    and `per_unit`, each item says whose it is, and the first `per_unit` items of a unit count. The later ones arrive as
    0: whose an item is is as private as its value, so it must not show in the number of items. Which of a unit's items
    count is decided by their order alone, never by their values: neighbours differ in the same `per_unit` places.

    >>> clicks = Stream(bound=1, dimensions=4, unit="user", per_unit=10)
    >>> clicks.append([1, 0, 0, 1], unit="ann")
    >>> clicks.relation
    Steps(updates=10, bound=4, squared=4)
    """

    __slots__ = ("_arrived", "_declared", "_lock", "_per_unit", "_shape", "_totals", "_unit")

    def __init__(
        self,
        bound: int = 1,
        dimensions: int | None = None,
        unit: str | None = None,
        per_unit: int | None = None,
        signed: bool = False,
        *,
        l1: int | None = None,
        l2_squared: int | None = None,
    ) -> None:
        if (unit is None) != (per_unit is None):
            raise InvalidParameter("user level takes both: `unit` names whose an item is, `per_unit` how many count")
        if unit is not None and not isinstance(unit, str):
            raise InvalidParameter("`unit` is a name for whose an item is, such as 'user'")
        self._shape = Shape(bound, dimensions, signed, l1, l2_squared)
        self._unit = unit
        self._per_unit = None if per_unit is None else whole(per_unit, 1, "per_unit")
        names = ("bound", "dimensions", "unit", "per_unit", "signed", "l1", "l2_squared")
        given = zip(names, (bound, dimensions, unit, per_unit, signed or None, l1, l2_squared), strict=True)
        self._declared = ", ".join(f"{name}={value!r}" for name, value in given if value is not None)
        # The log is kept as its running totals: a total is read in one step, and items are their differences.
        self._totals: list[Raw] = [self._shape.zero]
        self._arrived: dict[str | int, int] = {}
        self._lock = Lock()

    def __repr__(self) -> str:
        return f"Stream({self._declared}; {self.pin()} items)"

    @property
    def relation(self) -> Relation:
        """One item, or those of a unit that count, may differ, by at most the distances declared; asks by their own."""
        return Steps(updates=self._per_unit or 1, bound=self._shape.l1, squared=self._shape.l2_squared)

    def append(self, value: object, unit: str | int | None = None) -> None:
        """One item arrives; at user level, `unit` says whose it is."""
        self.extend([value], None if unit is None else [unit])

    def extend(self, values: Iterable[object], units: Iterable[str | int] | None = None) -> None:
        """Items arrive in this order, all of them or, if one has a wrong shape, none; `units` says whose each one is.

        >>> spent = Stream(bound=100, unit="user", per_unit=2)
        >>> spent.extend([10, 20], units=["ann", "bob"])
        """
        items = [self._shape.fit(value) for value in values]
        owners = self._owners(units, len(items))
        with self._lock:
            for item, owner in zip(items, owners, strict=True):
                counts = owner is None or self._counts(owner)
                self._totals.append(_each(operator.add, self._totals[-1], item if counts else self._shape.zero))

    def _owners(self, units: Iterable[str | int] | None, count: int) -> list[str | int] | list[None]:
        if self._per_unit is None:
            if units is not None:
                raise InvalidRequest(
                    "this stream is at event level; declare `unit` and `per_unit` to say whose items are"
                )
            return [None] * count
        owners = [] if units is None else list(units)
        if len(owners) != count:
            raise InvalidRequest(
                f"each item of this stream has a {self._unit!r}: say whose, as in append(1, unit='ann')"
            )
        if any(isinstance(owner, bool) or not isinstance(owner, str | int) for owner in owners):
            raise InvalidRequest(f"a {self._unit!r} is named by a string or an integer")
        return owners

    def _counts(self, owner: str | int) -> bool:
        assert self._per_unit is not None
        before = self._arrived.get(owner, 0)
        self._arrived[owner] = before + 1
        return before < self._per_unit

    def pin(self) -> int:
        """How many items have arrived."""
        return len(self._totals) - 1

    def fingerprint(self) -> None:
        """The log of a stream lives in this process: nobody can tell after a restart what was in it."""

    def items(self, start: int | str, end: int | str) -> tuple[Update, ...]:
        """The items that arrived between two pins, as updates."""
        first, last = self._place(start), self._place(end)
        totals = self._totals[first : last + 1]
        return tuple(Update(_each(operator.sub, after, before)) for before, after in pairwise(totals))

    def _place(self, pin: int | str) -> int:
        if type(pin) is not int or not 0 <= pin <= self.pin():
            raise InvalidRequest(f"a pin of this stream is a number of items, from 0 to {self.pin()}")
        return pin

    def prepare(self, request: object) -> Prepared:
        """`total()`: it moves by what one unit's items, as many as count, can move it."""
        if not isinstance(request, RunningTotal):
            raise InvalidRequest(
                f"a stream answers total(), not {type(request).__name__}; launch a Counter to follow it"
            )
        l1, squared, most = self._shape.l1, self._shape.l2_squared, self._per_unit or 1
        assert l1 is not None and squared is not None  # every Shape has both
        return Prepared(request, most * l1, most * most * squared, self._shape.dimensions, Fraction(1))

    def resolve(self, pin: int | str, prepared: Prepared) -> Secret:
        """The total of the first `pin` items."""
        if prepared != self.prepare(prepared.request):
            raise InvalidRequest("this request was prepared for another source")
        return Secret(self._totals[self._place(pin)])

    def part(self, by: str, key: Plain) -> Source:
        """A stream has no columns to be cut by."""
        raise InvalidRequest(
            f"a stream has no column {by!r} to be cut by; keep one stream for each part, or one of vectors with a "
            "coordinate for each (dimensions=...)"
        )


def _is_nan(value: object) -> bool:
    return value.is_nan() if isinstance(value, Decimal) else isinstance(value, float) and isnan(value)


def _each(function: Callable[[int, int], int], left: Raw, right: Raw) -> Raw:
    if isinstance(left, tuple) and isinstance(right, tuple):
        return tuple(map(function, left, right))
    assert isinstance(left, int) and isinstance(right, int)
    return function(left, right)

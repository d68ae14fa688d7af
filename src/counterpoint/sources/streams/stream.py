"""A stream: data that keeps arriving.

See Henzinger et al. 2024, sec. 3.2. How many items have arrived is public, what they say is not.

An append-only log of numbers, of vectors, or of records with named fields. Continual mechanisms read it as updates,
each from its own place on; one-shot mechanisms ask for `total()`; records can be cut into parts. Two streams are
neighbours if they are of the same length and equal but for what one unit's items say (an item is its own unit, at event
level); `Stream` says it exactly.

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
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from functools import reduce
from typing import Annotated, Self

from counterpoint.encoding import Plain, Tagged, Value, digest
from counterpoint.errors import InvalidParameter, InvalidRequest, shown
from counterpoint.numbers.parameters import Read
from counterpoint.privacy.messages import Update
from counterpoint.privacy.relations import Relation, Steps
from counterpoint.privacy.secret import Raw, Secret
from counterpoint.sources.declaring.columns import Column, Key
from counterpoint.sources.declaring.declaration import NEIGHBOURS
from counterpoint.sources.source import Prepared, Source, told
from counterpoint.sources.streams.log import Log, Unit
from counterpoint.sources.streams.records import Fields
from counterpoint.sources.streams.shape import Of, Reading, Record, Shape, named

_FEW = 64


class RunningTotal(Tagged, Value, frozen=True):
    """The request for the sum of all items so far, coordinate by coordinate; of records, of these fields."""

    of: Annotated[Of, Read(lambda of, _: named(of))] = None


def total(of: "str | Sequence[str] | None" = None) -> RunningTotal:
    """The sum of all items that have arrived, for one-shot mechanisms; of records, the sum of a field, or how many.

    >>> Stream(bound=5, unit="user", per_unit=3).prepare(total()).sensitivity
    15
    >>> total("clicks"), total(["clicks", "minutes"])
    (RunningTotal(of='clicks'), RunningTotal(of=('clicks', 'minutes')))
    """
    return RunningTotal(of)  # type: ignore[arg-type]  # any sequence of names is read as a tuple


class Stream(Source):
    """An append-only log of private values, with a public length.

    An item is a number in [0, bound], or in [-bound, bound] if `signed`; with `dimensions`, a vector of so many (see
    `Shape`, also for what becomes of values that do not fit); with `fields`, a record of what is declared there as a
    table's columns are (see `Fields`). What mechanisms receive of a record is the number, category or vector of numbers
    that `of` names, or 1.

    With `unit` and `per_unit`, each item says whose it is, and the first `per_unit` items of a unit count. The later
    ones arrive as nothing: whose an item is is as private as its value, so it must not show in the number of items.
    Which of a unit's items count is decided by their order alone, never by their values.

    Two streams of the same length are neighbours

    - at event level, if they differ in one item, which says something else or, in one of them, nothing (0 in all of its
      numbers, a record in no part);
    - at user level, if they differ in the items of one unit: in the same places they say something else, or in one of
      the streams all of them say nothing and are nobody's, as if that unit had never been there;
    - with `neighbours="add-or-remove"`, only by saying nothing in one of the streams: signed values then move by half
      as much, and a unit reaches half as many parts.

    So neighbours differ in at most `per_unit` places (1 at event level), and there by the distances that the relation
    states.

    >>> clicks = Stream(bound=1, dimensions=4, unit="user", per_unit=10)
    >>> clicks.append([1, 0, 0, 1], unit="ann")
    >>> clicks.relation
    Steps(updates=10, bound=4, squared=4)
    """

    __slots__ = ("_declared", "_kind", "_log", "_neighbours", "_reading", "_where")

    def __init__(
        self,
        bound: int = 1,
        dimensions: int | None = None,
        unit: str | None = None,
        per_unit: int | None = None,
        signed: bool = False,
        *,
        fields: Mapping[str, Column] | None = None,
        neighbours: str = "replace",
        l1: int | None = None,
        l2_squared: int | None = None,
    ) -> None:
        if neighbours not in NEIGHBOURS:
            known = " or ".join(repr(name) for name in NEIGHBOURS)
            raise InvalidParameter(f"neighbours must be {known}, but {str(neighbours)[:40]!r} was given")
        shape = Shape(bound, dimensions, signed, l1, l2_squared)
        if fields is not None and shape != Shape():
            raise InvalidParameter("a record's numbers are declared in fields={...}: leave out bound and dimensions")
        self._kind: Shape | Fields = shape if fields is None else Fields.of(fields)
        said = {"bound": bound} if isinstance(self._kind, Shape) else {"fields": list(self._kind.names)}
        other = {"dimensions": dimensions, "unit": unit, "per_unit": per_unit, "signed": signed or None}
        last = {"l1": l1, "l2_squared": l2_squared, "neighbours": None if neighbours == "replace" else neighbours}
        given = {**said, **other, **last}
        self._declared = ", ".join(f"{name}={value!r}" for name, value in given.items() if value is not None)
        self._log = Log(unit, per_unit)
        self._neighbours = neighbours
        self._reading: Reading | None = None
        self._where: tuple[tuple[int, Key], ...] = ()

    def _looked_at(self, reading: Reading | None, where: tuple[tuple[int, Key], ...], said: str) -> Self:
        """Another look at the same log."""
        view = self.__class__.__new__(self.__class__)
        view._kind, view._log, view._neighbours = self._kind, self._log, self._neighbours
        view._declared, view._reading, view._where = f"{self._declared}, {said}", reading, where
        return view

    def __repr__(self) -> str:
        return f"Stream({self._declared}; {len(self._log.items)} items)"

    def describe(self) -> str:
        """What was declared, in words; nothing here was read off the items.

        >>> from counterpoint.sources.declaring.columns import number
        >>> print(Stream(fields={"clicks": number(0, 10)}, unit="user", per_unit=3).describe())
        unit: user, of which the first 3 items count
        neighbours: replace one unit by another
        clicks: a number from 0 to 10 in steps of 1
        """
        unit = "every item is its own unit" if self._log.unit is None else self._log.unit
        count = "" if self._log.most is None else f", of which the first {self._log.most} items count"
        columns = () if isinstance(self._kind, Shape) else self._kind.declared.columns
        lines = [f"{field.name}: {field.column.said()}" for field in columns] or [repr(self._kind)]
        return "\n".join((f"unit: {unit}{count}", f"neighbours: {NEIGHBOURS[self._neighbours]}", *lines))

    @property
    def relation(self) -> Relation:
        """How many items may differ, and how far, whatever is read of them; asks differ by their own sensitivity."""
        apart = self._reading or self._kind.covering(self._neighbours)
        return Steps(updates=self._log.most or 1, bound=apart.l1, squared=apart.squared)

    @property
    def dimensions(self) -> int | None:
        """How long the vectors are that mechanisms receive; None: they receive numbers."""
        return self._read.dimensions

    @property
    def _read(self) -> Reading:
        return self._reading or self._kind.reading(self._neighbours)

    def of(self, fields: "str | Sequence[str] | None" = None) -> Self:
        """The same stream, of whose records mechanisms receive this: a number or truth value, a category, a vector.

        A category arrives as a vector with a 1 at its key; several numbers as a vector of them, if their steps are
        equal; without a name, a record arrives as 1. The relation is that of what is read.

        >>> from counterpoint.sources.declaring.columns import category, number
        >>> visits = Stream(fields={"page": category(["home", "shop"]), "clicks": number(0, 10)})
        >>> visits.of("clicks").relation, visits.of("page").dimensions, visits.of().relation
        (Steps(updates=1, bound=10), 2, Steps(updates=1, bound=1))
        """
        chosen = named(fields)
        if chosen is None and (self._reading is not None or isinstance(self._kind, Shape)):
            return self
        if self._reading is not None:
            raise InvalidRequest(f"of this stream something is read already: start from the whole to read {chosen!r}")
        return self._looked_at(self._kind.reading(self._neighbours, chosen), self._where, f"of={chosen!r}")

    def append(self, value: object, unit: Unit | None = None, *, id: str | None = None) -> None:
        """One item arrives; at user level, `unit` says whose it is, or a record says it itself.

        Under an `id` it arrives once, however often it is sent (see `extend`).
        """
        self.extend([value], None if unit is None else [unit], id=id)

    def extend(self, values: Iterable[object], units: Iterable[Unit] | None = None, *, id: str | None = None) -> None:
        """Items arrive in this order, all of them or, if one has a wrong shape, none; `units` says whose each one is.

        Under an `id` they arrive once: whoever does not know whether they did sends them again, and the same items of
        the same units, as they are stored, add nothing. Other items are refused (`RequestConflict`). An id is public,
        is that of one append to this stream, and is never forgotten.

        >>> spent = Stream(bound=100, unit="user", per_unit=2)
        >>> spent.extend([10, 20], units=["ann", "bob"], id="monday")
        >>> spent.extend([10, 20], units=["ann", "bob"], id="monday")
        >>> spent.pin()
        2
        """
        if isinstance(values, str | bytes | Mapping) or not isinstance(values, Iterable):
            raise InvalidRequest(f"extend takes a list of items, not a {type(values).__name__}; append takes one item")
        if self._where or self._reading is not None:
            raise InvalidRequest("items arrive in the whole stream, not in a part or a field of it")
        given = list(values)
        if isinstance(self._kind, Shape):
            owners = self._log.owners(units, len(given))
            return self._log.extend([self._kind.fit(value) for value in given], owners, id)
        if units is not None:
            raise InvalidRequest(
                "a record says itself whose it is, under the name that `unit` declares: leave out units"
            )
        owners = self._log.named_in(given)
        return self._log.extend([self._kind.fit(value, but=self._log.unit) for value in given], owners, id)

    def pin(self) -> int:
        """How many items have arrived."""
        return self._log.length()

    @property
    def log(self) -> Log:
        """Where the items are, for whoever is to keep them."""
        return self._log

    def fingerprint(self) -> str:
        """What is declared, and what is read of it: a durable ledger keeps the items themselves."""
        unit = (self._log.unit, self._log.most)
        return digest("stream", self._kind, unit, self._neighbours, self._reading, self._where).hex()

    def items(self, start: int | str, end: int | str) -> tuple[Update, ...]:
        """The items that arrived between two pins, as updates."""
        first, last = self._place(start), self._place(end)
        read, value = self._read, self._value
        return tuple(Update(value(read, item)) for item in self._log.items[first:last])

    def prompt(self, start: int | str, end: int | str, prepared: Prepared | None) -> bool:
        """If only a few items have to be read."""
        first, last = self._place(start), self._place(end)
        if prepared is not None:
            known, _ = self._log.sums.get((self._requested(prepared.request), self._where), (0, None))
            first = min(first, known if known <= last else 0)
        return last - first <= _FEW

    def _value(self, read: Reading, item: Raw | Record | None) -> Raw:
        """The integers of an item, 0 if it says nothing or is in another part."""
        if item is None:
            return read.zero
        value = read.read(item)
        return value if all(item[place] == key for place, key in self._where) else read.zero  # type: ignore[index]

    def _place(self, pin: int | str) -> int:
        if type(pin) is int and 0 <= pin <= len(self._log.items):
            return pin
        if type(pin) is not int or not 0 <= pin <= self.pin():
            raise InvalidRequest(f"a pin of this stream is a number of items, from 0 to {len(self._log.items)}")
        return pin

    def prepare(self, request: object) -> Prepared:
        """`total()`: it moves by what one unit's items, as many as count, can move it."""
        read, most = self._requested(request), self._log.most or 1
        assert isinstance(request, RunningTotal)
        each = None if read.each is None else most * read.each
        names = read.keys or None
        return Prepared(
            request, most * read.l1, most * most * read.squared, read.dimensions, read.grid, each, names=names
        )

    def _requested(self, request: object) -> Reading:
        if type(request) is not RunningTotal:
            raise InvalidRequest(
                f"a stream answers total(), not {told(request)}; launch a Counter to follow it, or put data that "
                "stands still into a Table"
            )
        return self._read if request.of is None else self._kind.reading(self._neighbours, request.of)

    def resolve(self, pin: int | str, prepared: Prepared) -> Secret:
        """The total of the first `pin` items."""
        if prepared != self.prepare(prepared.request):
            raise InvalidRequest("this request was prepared for another source")
        return Secret(self._sum(self._place(pin), self._requested(prepared.request)))

    def _sum(self, place: int, read: Reading) -> Raw:
        """What has been added up before is kept, for one place of each reading, so that only what is new is added."""
        known, before = self._log.sums.get((read, self._where), (0, read.zero))
        if known > place:
            known, before = 0, read.zero
        values = (self._value(read, item) for item in self._log.items[known:place])
        found: Raw = reduce(_plus, values, before)
        self._log.sums[read, self._where] = (place, found)
        return found

    @property
    def update_grid(self) -> Fraction:
        """What one step of the integers is worth that mechanisms receive."""
        return self._read.grid

    def part(self, by: str, key: Plain | float | Fraction) -> Self:
        """The items in which field `by` has this value, which need not occur; the others arrive as nothing.

        How many items arrive is as public in a part as in the whole, and whose part an item is in is as private as what
        it says; so a part is a stream of the same length.
        """
        column, value = self._cut(by), self.key(by, key)
        assert isinstance(self._kind, Fields)
        if column.known_keys is not None and value not in column.known_keys:
            raise InvalidRequest(f"{shown(key)} is not a key of {by}, which is {column.said()}")
        return self._looked_at(self._reading, (*self._where, (self._kind.declared.find(by), value)), f"{by}={key!r}")

    def key(self, by: str, key: Plain | float | Fraction) -> Key:
        """The value of field `by` that names a part, as it is stored."""
        return self._cut(by).key(key)

    def spelled(self, by: str, stored: Key) -> Key | Fraction:
        """That value as the user would write it."""
        return self._cut(by).spelled(stored)

    def reach(self, by: str) -> int:
        """In how many parts by this field two neighbouring streams may differ.

        An item is in one part at most. Where neighbours differ it may leave one part for another: that makes two for
        each of the places, `per_unit` of them, or one if it can only leave or arrive. What says whose an item is does
        not change where the item is not taken away with all the others of its unit. And there are no more than keys.

        >>> from counterpoint.sources.declaring.columns import text
        >>> Stream(fields={"page": text()}).reach("page"), Stream(
        ...     fields={"page": text()}, unit="user", per_unit=3, neighbours="add-or-remove"
        ... ).reach("page")
        (2, 3)
        """
        column = self._cut(by)
        if by == self._log.unit:
            return 1
        most = (self._log.most or 1) * (2 if self._neighbours == "replace" else 1)
        return most if column.known_keys is None else min(most, len(column.known_keys))

    def _cut(self, by: str) -> Column:
        if isinstance(self._kind, Shape):
            raise InvalidRequest(
                f"a stream of numbers has no field {shown(by)} to be cut by; declare records with fields={{...}}, "
                "or vectors with a coordinate for each part (dimensions=...)"
            )
        return self._kind.declared.column(by)


def _plus(left: Raw, right: Raw) -> Raw:
    if isinstance(left, tuple) and isinstance(right, tuple):
        return tuple(map(operator.add, left, right))
    assert isinstance(left, int) and isinstance(right, int)
    return left + right

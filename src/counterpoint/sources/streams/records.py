"""Streams of records with named fields, declared like a table's columns: how records are stored and read.

Fields are converted by the same rules as a table's columns (see `columns`): a number is clamped and rounded to its
grid, a date becomes a day within its bounds, NaN and unreadable values are missing, a category outside its keys is
missing. The rules are total over the types that a field accepts. The names and types of a record's fields are public,
so a record with wrong ones is refused.

>>> from counterpoint.sources.declaring.columns import category, number
>>> visits = Fields.of({"page": category(["home", "shop"]), "spent": number(0, 100, step="0.5")})
>>> visits.fit({"page": "home", "spent": 12.3}), visits.fit({"page": "elsewhere", "spent": float("inf")})
(('home', 25), (None, 200))
>>> visits.reading("replace").read(("home", 25)), visits.reading("replace", "spent").l1
(1, 200)
"""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from counterpoint.encoding import Value
from counterpoint.errors import InvalidParameter, InvalidRequest
from counterpoint.sources.asking.contributions import Contribution, contribution
from counterpoint.sources.asking.request import Request
from counterpoint.sources.declaring.columns import Boolean, Category, Number, Text
from counterpoint.sources.declaring.dates import Date
from counterpoint.sources.declaring.declaration import Declaration, Named
from counterpoint.sources.declaring.timestamps import Timestamp
from counterpoint.sources.streams.shape import Followed, Reading, Record
from counterpoint.sources.streams.values import reader, stored

_DECLARED = Number | Category | Text | Boolean | Date | Timestamp
"""What a field can be declared as."""


class Fields(Value, frozen=True):
    """The declared fields of a stream's records: `fit` converts records to stored form, `reading` says what is read."""

    declared: Declaration

    @classmethod
    def of(cls, fields: object) -> "Fields":
        """Check a declaration such as {"page": text(), "clicks": number(0, 10)}."""
        if not isinstance(fields, Mapping) or not fields:
            given = "an empty one" if isinstance(fields, Mapping) else f"a {type(fields).__name__}"
            raise InvalidParameter(
                f"fields must be a mapping from names to columns, as in {{'page': text()}}, not {given}"
            )
        for name, column in fields.items():
            if not isinstance(name, str) or not isinstance(column, _DECLARED):
                raise InvalidParameter(
                    f"field {str(name)[:40]!r} must be declared as number, category, text, boolean, date or timestamp, "
                    f"not {column!r}"
                )
        return cls(Declaration(None, 1, "replace", tuple(Named(name, column) for name, column in fields.items())))

    def describe(self) -> str:
        """The declaration in words, a line for each field."""
        return "\n".join(f"{field.name}: {field.column.describe()}" for field in self.declared.columns)

    @property
    def names(self) -> tuple[str, ...]:
        """The fields in order."""
        return tuple(named.name for named in self.declared.columns)

    def fit(self, record: object, but: str | None = None, owner: str | None = None) -> Record | None:
        """The stored form of a record; a field that is left out is missing, and None is a record that does not count.

        A record may also have the field `but`, which names its unit, `owner`: if it is declared, it is read from there.
        """
        if record is None:
            return None
        if not isinstance(record, Mapping):
            raise InvalidRequest(
                f"an item of this stream is a record, such as {self._example()}, not a {type(record).__name__}"
            )
        unknown = [name for name in record if name not in self.names and name != but]
        if unknown:
            raise InvalidRequest(
                f"a record of this stream has no field {str(unknown[0])[:40]!r}; it has: {', '.join(self.names)}"
            )
        columns = self.declared.columns
        return tuple(stored(named, owner if named.name == but else record.get(named.name)) for named in columns)

    def _example(self) -> str:
        return "{" + ", ".join(f"{name!r}: ..." for name in self.names) + "}"

    def reading(self, neighbours: str, of: Followed = None) -> Reading | Contribution:
        """A record as 1; a number or truth value as what it is; a category as a 1 at its key; several as a vector.

        Of a request, what the record adds to its answer.
        """
        if of is None:
            return Reading(1, 1, fields=())
        if isinstance(of, Request):
            return contribution(of, Declaration(None, 1, neighbours, self.declared.columns))
        if isinstance(of, str):
            column, place = self.declared.column(of), self.declared.index(of)
            if isinstance(column, Category):
                apart = 2 if neighbours == "replace" and len(column.keys) > 1 else 1
                return Reading(apart, apart, len(column.keys), Fraction(1), (place,), column.keys, each=1)
            most = self._move(of, neighbours)
            return Reading(most, most * most, None, column.grid, (place,))
        if not of or len(set(of)) < len(of):
            raise InvalidRequest("a vector needs one or more different fields: name each of them once")
        steps, places = [self._move(name, neighbours) for name in of], tuple(map(self.declared.index, of))
        grid, *others = [self.declared.column(name).grid for name in of]
        if any(other != grid for other in others):
            raise InvalidRequest(
                f"the fields {', '.join(of)} have different steps, so they make no vector: declare them with the same "
                "step, or read each alone"
            )
        return Reading(sum(steps), sum(step * step for step in steps), len(of), grid, places, each=max(steps))

    def covering(self, neighbours: str) -> Reading:
        """Distances that hold for every reading by names: of all numbers together, of each category, of records."""
        numeric = tuple(named.name for named in self.declared.columns if isinstance(named.column, Number | Boolean))
        keyed = [named.name for named in self.declared.columns if isinstance(named.column, Category)]
        steps = [self._move(name, neighbours) for name in numeric]
        found = [self.reading(neighbours, name) for name in (None, *keyed)]
        l1 = max(sum(steps), *(reading.l1 for reading in found), 1)
        return Reading(
            l1, max(sum(step * step for step in steps), *(reading.squared for reading in found), 1), fields=()
        )

    def _move(self, name: str, neighbours: str) -> int:
        """The largest distance, in steps, of two values, or (add-or-remove) of a value and 0."""
        column = self.declared.column(name)
        if isinstance(column, Boolean):
            return 1
        if not isinstance(column, Number):
            raise InvalidRequest(
                f"{name} is {column.describe()}, and a mechanism reads numbers, categories and booleans: partition by "
                "this field, or declare it as one of those"
            )
        if neighbours == "replace":
            return max(column.most, 0) - min(column.least, 0)
        return max(abs(column.most), abs(column.least))


class RecordReader:
    """Brings many records to stored form at once, field by field: what `Fields.fit` makes of each, or its error.

    A field that names the unit is read from the key of the unit: all items of a unit have one value there.

    >>> from counterpoint.sources.declaring.columns import category, number
    >>> visits = RecordReader(Fields.of({"page": category(["home"]), "clicks": number(0, 9)}), unit="user")
    >>> visits.read([{"user": "ann", "page": "home", "clicks": 99}, None, {"clicks": 2.4}], ["ann", None, None])
    [('home', 9), None, (None, 2)]
    """

    __slots__ = ("_fields", "_known", "_readers", "_unit")

    def __init__(self, fields: Fields, unit: str | None) -> None:
        self._fields, self._unit = fields, unit
        self._known = {*fields.names} if unit is None else {*fields.names, unit}
        self._readers = [(named.name, reader(named)) for named in fields.declared.columns]

    def read(self, records: Sequence[object], owners: Sequence[str | None]) -> list[Record | None]:
        """The stored form of each record; `InvalidRequest` for the first that has wrong fields or types."""
        known, unit = self._known, self._unit
        present: list[Any] = [record for record in records if record is not None]
        units = [owner for owner, record in zip(owners, records, strict=True) if record is not None]
        if all(type(record) is dict and record.keys() <= known for record in present):
            try:
                columns = [
                    list(map(read, units)) if name == unit else [read(record.get(name)) for record in present]
                    for name, read in self._readers
                ]
            except InvalidRequest:
                pass  # raised below, for the first record that is wrong
            else:
                found = zip(*columns, strict=True)
                return [None if record is None else next(found) for record in records]
        return [self._fields.fit(record, unit, owner) for record, owner in zip(records, owners, strict=True)]

"""Records of a stream: items with named fields, which are declared and stored like the columns of a table.

Fields are converted by the same rules as a table's columns (see `columns`): a number is clamped and rounded to its
grid, a date becomes a day within its bounds, NaN and unreadable values are missing, a category outside its keys is
missing. The rules are total over the types that a field accepts. The names and types of a record's fields are public,
so a record with wrong ones is refused.

>>> from counterpoint.schema.columns import category, number
>>> visits = Fields.of({"page": category(["home", "shop"]), "spent": number(0, 100, step="0.5")})
>>> visits.fit({"page": "home", "spent": 12.3}), visits.fit({"page": "elsewhere", "spent": float("inf")})
(('home', 25), (None, 200))
>>> visits.item_reader("replace").read(("home", 25)), visits.item_reader("replace", "spent").l1
(1, 200)

`stored` has all the rules. `reader` makes a function for one field that takes the plain types, which nearly all values
have, straight to their stored form, and leaves every other value to `stored`.

>>> from counterpoint.schema.columns import category, number
>>> spent = reader(Named("spent", number(0, 100, step="0.5")))
>>> spent(12.3), spent(10**30), spent(float("nan")), spent("2.5"), spent(None)
(25, 200, None, 5, None)
"""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction
from typing import Any
from uuid import UUID

import numpy as np

from counterpoint.encoding import Value
from counterpoint.engines.loading import DIGITS, INFINITE, LONGEST_NUMBER, NUMBER, WHOLE_DIGITS
from counterpoint.errors import InvalidParameter, InvalidRequest
from counterpoint.queries.contributions import Contribution, contribution
from counterpoint.queries.request import Request
from counterpoint.schema.columns import Boolean, Category, Key, Number, Text, is_readable
from counterpoint.schema.declaration import Declaration, Named
from counterpoint.schema.times import SECOND, Date, Timestamp, at_wall, days, wall_micros
from counterpoint.schema.unit_keys import EXACT_FLOATS
from counterpoint.sources.streams.items import ItemReader, Record, StreamSubscription, is_nan, plain

_FIRST_TOO_WIDE = 2**63
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

    def item_reader(self, neighbours: str, of: StreamSubscription = None) -> ItemReader | Contribution:
        """A record as 1; a number or truth value as what it is; a category as a 1 at its key; several as a vector.

        Of a request, what the record adds to its answer.
        """
        if of is None:
            return ItemReader(1, 1, fields=())
        if isinstance(of, Request):
            return contribution(of, Declaration(None, 1, neighbours, self.declared.columns))
        if isinstance(of, str):
            column, place = self.declared.column(of), self.declared.index(of)
            if isinstance(column, Category):
                apart = 2 if neighbours == "replace" and len(column.keys) > 1 else 1
                return ItemReader(apart, apart, len(column.keys), Fraction(1), (place,), column.keys, each=1)
            most = self._move(of, neighbours)
            return ItemReader(most, most * most, None, column.grid, (place,))
        if not of or len(set(of)) < len(of):
            raise InvalidRequest("a vector needs one or more different fields: name each of them once")
        steps, places = [self._move(name, neighbours) for name in of], tuple(map(self.declared.index, of))
        grid, *others = [self.declared.column(name).grid for name in of]
        if any(other != grid for other in others):
            raise InvalidRequest(
                f"the fields {', '.join(of)} have different steps, so they make no vector: declare them with the same "
                "step, or read each alone"
            )
        return ItemReader(sum(steps), sum(step * step for step in steps), len(of), grid, places, each=max(steps))

    def covering(self, neighbours: str) -> ItemReader:
        """Distances that hold for every reading by names: of all numbers together, of each category, of records."""
        numeric = tuple(named.name for named in self.declared.columns if isinstance(named.column, Number | Boolean))
        keyed = [named.name for named in self.declared.columns if isinstance(named.column, Category)]
        steps = [self._move(name, neighbours) for name in numeric]
        found = [self.item_reader(neighbours, name) for name in (None, *keyed)]
        l1 = max(sum(steps), *(reading.l1 for reading in found), 1)
        return ItemReader(
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

    >>> from counterpoint.schema.columns import category, number
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


_MISSING = {"NoneType", "NAType", "NaTType"}
_DAYS = ("Y", "M", "W", "D")
"""numpy's units of time that are whole days."""
_DAY = 24 * 3600 * SECOND
_WIDEST_TEXT = 2**127
"""Whole numbers from here on are not converted to texts: a table's widest integer type ends there."""


def reader(named: Named) -> Callable[[object], Key | None]:
    """A function that agrees with `stored` on every value of this field, and is fast on the plain types."""
    column = named.column
    if isinstance(column, Number):
        return _number_reader(named, column)
    if column.known_keys is not None:
        return _key_reader(named, frozenset(column.known_keys))
    if column.kind == "text":
        return _text_reader(named)
    return lambda value: None if value is None else stored(named, value)


def _number_reader(named: Named, column: Number) -> Callable[[object], Key | None]:
    least, most = column.least, column.most
    p, q = column.step.as_integer_ratio()
    low, high, times, over = float(column.low), float(column.high), float(q), float(p)
    exact_bounds = (Fraction(low), Fraction(high)) == (column.low, column.high)

    def read(value: object) -> Key | None:
        if type(value) is int:  # floor(value/step + 1/2), exactly
            steps = value if p == q else (2 * value * q + p) // (2 * p)
        elif type(value) is float and low < value < high and exact_bounds:
            steps = math.floor(value * times / over + 0.5)
        elif type(value) is float and value == low and exact_bounds:  # such as 0, of which there may be many
            return least
        else:
            return None if value is None else stored(named, value)
        return least if steps < least else most if steps > most else steps

    return read


def _key_reader(named: Named, known: frozenset[Key]) -> Callable[[object], Key | None]:
    kind = {"text": str, "number": int, "boolean": bool}[named.column.kind]

    def read(value: object) -> Key | None:
        if type(value) is kind:
            return value if value in known else None
        return None if value is None else stored(named, value)

    return read


def _text_reader(named: Named) -> Callable[[object], Key | None]:
    def read(value: object) -> Key | None:
        if type(value) is str:
            return value if is_readable(value) else None
        return None if value is None else stored(named, value)

    return read


def stored(named: Named, given: object) -> Key | None:
    """The stored form of any value of a field: missing, or `InvalidRequest` where its type does not fit the field.

    >>> from counterpoint.schema.columns import number, text
    >>> stored(Named("n", number(0, 9)), "7"), stored(Named("n", number(0, 9)), "seven"), stored(Named("t", text()), 7)
    (7, None, '7')
    """
    value = plain(given)
    if type(value).__name__ in _MISSING or is_nan(value) or _is_no_time(value):
        return None
    column = named.column
    try:
        if isinstance(column, Number):
            return _steps(column, value)
        if isinstance(column, Date):
            return _days(column, value)
        if isinstance(column, Timestamp):
            return _instant(column, value)
        if column.kind == "number":
            found: Key | None = _whole(value)
        else:
            found = _truth(_written(value)) if column.kind == "boolean" else _written(value)
    except TypeError:
        zoned = " with a time zone" if isinstance(value, datetime) and value.tzinfo is not None else ""
        kind = f"{type(value).__name__}{zoned}"
        raise InvalidRequest(
            f"{named.name} is {column.describe()}, and a value of type {kind} cannot be converted to it"
        ) from None
    return found if column.known_keys is None or found in column.known_keys else None


def _steps(column: Number, value: object) -> int | None:
    """A number in steps, rounded half up as a table does it: whole numbers exactly, others as doubles."""
    if isinstance(value, str):
        value = _parsed(value)
        if value is None:
            return None
    if not isinstance(value, int | float | Decimal | Fraction):
        raise TypeError
    if value >= column.high:
        return column.most
    if value <= column.low:
        return column.least
    p, q = column.step.as_integer_ratio()
    if isinstance(value, int | Fraction):
        steps = math.floor(Fraction(value) / column.step + Fraction(1, 2))
    else:
        steps = math.floor(float(value) * float(q) / float(p) + 0.5)
    return min(max(steps, column.least), column.most)


def _days(column: Date, value: object) -> int | None:
    """A day within the bounds; a timestamp without a time zone becomes its day, as in a table."""
    if isinstance(value, np.datetime64):
        found: int | None = wall_micros(value) // _DAY
    elif isinstance(value, datetime):
        if value.tzinfo is not None:
            raise TypeError
        found = days(value.date())
    elif isinstance(value, str):
        found = column.read_text(value)
    elif isinstance(value, date):
        found = days(value)
    else:
        raise TypeError
    return None if found is None else min(max(found, column.least), column.most)


def _instant(column: Timestamp, value: object) -> int | None:
    """An instant within the bounds; without an offset it is a wall time of the declared zone."""
    if isinstance(value, np.datetime64):
        value = at_wall(wall_micros(value))
    if not isinstance(value, datetime | str):
        raise TypeError
    found = column.read_text(value) if isinstance(value, str) else value
    return None if found is None else column.read(found)


def _parsed(text: str) -> int | float | None:
    if len(text) > LONGEST_NUMBER:
        return None
    if re.fullmatch(DIGITS, text):
        return int(text)
    return float(text) if re.fullmatch(f"{NUMBER}| *[+-]?{INFINITE}", text) else None


def _is_no_time(value: object) -> bool:
    return isinstance(value, np.datetime64 | np.timedelta64) and bool(np.isnat(value))


def _whole(value: object) -> int | None:
    """The whole number that a number is, or a text of one; None if it has a fraction. 1.0 is 1."""
    if isinstance(value, str):
        spelled = len(value) <= LONGEST_NUMBER and re.fullmatch(WHOLE_DIGITS, value)
        return int(value.partition(".")[0]) if spelled else None
    if isinstance(value, float):
        return int(value) if abs(value) < EXACT_FLOATS[64] and value.is_integer() else None
    if isinstance(value, Decimal | Fraction):
        return int(value) if -_FIRST_TOO_WIDE < value < _FIRST_TOO_WIDE and value == int(value) else None
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError
    return value


def _written(value: object) -> str | None:
    if isinstance(value, str):
        return str.__str__(value) if is_readable(value) else None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value) if abs(value) < _WIDEST_TEXT else None
    if isinstance(value, np.datetime64) and np.datetime_data(value.dtype)[0] in _DAYS:
        day = value.item()
        return str(day) if isinstance(day, date) else None  # beyond the years 1 to 9999 it is a number
    if isinstance(value, UUID) or (isinstance(value, date) and not isinstance(value, datetime)):
        return str(value)
    raise TypeError


def _truth(text: str | None) -> bool | None:
    lower = "" if text is None else text.lower()
    return True if lower in ("true", "t", "1") else False if lower in ("false", "f", "0") else None

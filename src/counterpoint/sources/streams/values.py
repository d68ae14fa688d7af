"""The values of a record's fields, brought to their stored form by rules that are total over the types a field accepts.

`stored` has all the rules. `reader` makes a function for one field that takes the plain types, which nearly all values
have, straight to their stored form, and leaves every other value to `stored`.

>>> from counterpoint.sources.declaring.columns import category, number
>>> spent = reader(Named("spent", number(0, 100, step="0.5")))
>>> spent(12.3), spent(10**30), spent(float("nan")), spent("2.5"), spent(None)
(25, 200, None, 5, None)
"""

import math
import re
from collections.abc import Callable
from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction
from uuid import UUID

import numpy as np

from counterpoint.errors import InvalidRequest
from counterpoint.sources.declaring.columns import Key, Number, is_readable
from counterpoint.sources.declaring.dates import Date, days
from counterpoint.sources.declaring.declaration import Named
from counterpoint.sources.declaring.numpy_times import at_wall, wall_micros
from counterpoint.sources.declaring.timestamps import Timestamp, written
from counterpoint.sources.declaring.zones import SECOND
from counterpoint.sources.streams.shape import is_nan, plain
from counterpoint.sources.tables.loading import DIGITS, INFINITE, LONGEST_NUMBER, NUMBER

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

    >>> from counterpoint.sources.declaring.columns import number, text
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
    elif isinstance(value, date | str):
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
    found = written(value)
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
    if isinstance(value, str):
        return int(value) if len(value) <= LONGEST_NUMBER and re.fullmatch(DIGITS, value) else None
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError
    return int(value)


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

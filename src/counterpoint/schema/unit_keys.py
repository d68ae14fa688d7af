r"""Which values name one unit: the key of a unit, by which every source, engine and feed identifies it.

Two values name the same unit if and only if they have the same key, which is a text. There are two types of units:

- *text*, where nothing else is declared and no schema says otherwise: a text is its own key, byte by byte (letters are
  not folded, accents are not normalised), except that a text that spells a UUID is that UUID, in lower case. A whole
  number has its decimal digits as its key, whatever type holds it; a date is YYYY-MM-DD.
- *whole*, where it is declared, or a column of whole numbers or decimals names the units: a text is read as a column of
  whole numbers reads it, so that 17, "17" and "017" are one unit, and any other text is missing.

A value that has no key is a missing unit: NULL and NaN, a number with a fraction or of more than 38 digits, a float
of 64 bits beyond 2^53, of 32 bits beyond 2^24 or of 16 bits beyond 2^11 (several integers may have become that float),
a text that some engine cannot store. Truth values, bytes
and times name no units: their types are refused. `tables.owners` computes the same keys in SQL.

>>> from decimal import Decimal
>>> [unit_key(value) for value in (17, np.uint64(17), 17.0, Decimal("17.00"), "17", "017", 17.5)]
['17', '17', '17', '17', '17', '017', None]
>>> [unit_key(value, "whole") for value in (17, " +017", "-0", "\uff11\uff17", "17.0", "ann")]
['17', '17', '0', None, None, None]
>>> unit_key("A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11"), unit_key(date(2024, 2, 29))
('a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', '2024-02-29')
"""

import re
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Literal, TypeAlias, get_args
from uuid import UUID

import numpy as np

from counterpoint.errors import InvalidParameter, InvalidRequest, shown
from counterpoint.schema.columns import Text, Whole, is_readable
from counterpoint.schema.units import IdentifiedBy, unit_columns

UnitType: TypeAlias = Literal["text", "whole"]
"""By which rule values name units."""
UNIT_TYPES: tuple[UnitType, ...] = get_args(UnitType)

MOST_DIGITS = 38
"""The most digits of a whole number that names a unit: as many as the exact numbers of every engine have room for."""
DIGITS = f" *[+-]?[0-9]{{1,{MOST_DIGITS}}} *"
"""A text that spells a whole number."""
LONGEST_DIGITS = 200
"""The most characters of such a text."""
HEXADECIMAL = "-".join(f"[0-9a-fA-F]{{{many}}}" for many in (8, 4, 4, 4, 12))
"""A text that spells a UUID."""
UUID_LENGTH = 36
EXACT_FLOATS = {64: 2**53, 32: 2**24, 16: 2**11}
"""For each width in bits: below this, a float without a fraction is one integer."""
_BEYOND = 10**MOST_DIGITS
_MISSING = ("NoneType", "NAType", "NaTType")


def unit_key(given: object, of: UnitType = "text") -> str | None:
    """The key of the unit that a value names; None if it names none, `TypeError` if no value of its type does."""
    if isinstance(given, str):
        return _of_text(given if type(given) is str else str.__str__(given), of)
    is_time = isinstance(given, np.datetime64 | np.timedelta64)  # numpy would convert them depending on their value
    value = given.item() if isinstance(given, np.generic) and not is_time else given
    if isinstance(value, int) and not isinstance(value, bool):
        return str(int(value)) if -_BEYOND < value < _BEYOND else None
    if isinstance(value, float):
        bits = 8 * given.itemsize if isinstance(given, np.generic) else 64
        return str(int(value)) if abs(value) < EXACT_FLOATS[bits] and value.is_integer() else None
    if isinstance(value, Decimal):
        is_whole = value.is_finite() and -_BEYOND < value < _BEYOND and int(value) == value  # compared exactly
        return str(int(value)) if is_whole else None
    if type(value).__name__ in _MISSING:
        return None
    if isinstance(value, np.datetime64):
        value = _day(value)
    if isinstance(value, UUID):
        return _of_text(UUID.__str__(value), of)
    if isinstance(value, date) and not isinstance(value, datetime):
        return _of_text(date.isoformat(value), of)
    if value is None:
        return None
    raise TypeError  # a Fraction, too: no engine has one


def _of_text(text: str, of: UnitType) -> str | None:
    if of == "whole":
        is_whole = len(text) <= LONGEST_DIGITS and re.fullmatch(DIGITS, text)
        return str(int(text)) if is_whole else None
    if not is_readable(text):
        return None
    return text.lower() if len(text) == UUID_LENGTH and re.fullmatch(HEXADECIMAL, text) else text


def _day(value: np.datetime64) -> object:
    """The date of a time in whole days; None if it is missing or beyond the years 1 to 9999; itself if it is finer."""
    if np.isnat(value):
        return None
    if np.datetime_data(value.dtype)[0] != "D":
        return value
    found = value.item()
    return found if isinstance(found, date) else None


def checked_key(what: str | None, given: object, of: UnitType = "text") -> str | None:
    """The key of the unit, or of the row, that a value names; `InvalidRequest` if no value of its type names one.

    >>> checked_key("user", 7), checked_key("user", 10**5000)
    ('7', None)
    """
    try:
        return unit_key(given, of)
    except TypeError:
        pass
    raise InvalidRequest(f"{what!r} must be a text or a whole number, not a {type(given).__name__}")


def checked_unit_type(given: object) -> UnitType | None:
    """The declared type of units that one column identifies; None if none is declared.

    >>> checked_unit_type("int")
    Traceback (most recent call last):
    ...
    counterpoint.errors.InvalidParameter: unit_type must be 'text' or 'whole', not 'int'
    """
    if given is None or given in UNIT_TYPES:
        return given
    raise InvalidParameter(f"unit_type must be 'text' or 'whole', not {shown(given)}")


def checked_unit_types(given: object, unit: IdentifiedBy) -> tuple[UnitType | None, ...]:
    """The declared type of each column that identifies units.

    >>> checked_unit_types(["text", "whole"], ("hospital", "patient")), checked_unit_types(None, "person")
    (('text', 'whole'), (None,))
    """
    names = unit_columns(unit)
    if given is not None and not names:
        raise InvalidParameter("unit_type was given without a unit: every row is its own unit")
    types = given if isinstance(given, Sequence) and not isinstance(given, str) else [given] * len(names)
    if len(types) != len(names):
        raise InvalidParameter(f"unit_type has {len(types)} types for {len(names)} columns: {', '.join(names)}")
    return tuple(map(checked_unit_type, types))


def declared_in(name: str, columns: Mapping[str, object]) -> UnitType | None:
    """The type of units that the declaration of their column implies, if it does.

    >>> declared_in("id", {"id": Whole()}), declared_in("id", {})
    ('whole', None)
    """
    match columns.get(name):
        case Whole():
            return "whole"
        case Text():
            return "text"
    return None


def type_words(of: UnitType) -> str:
    """What names units of this type.

    >>> type_words("whole")
    'whole numbers'
    """
    return "whole numbers" if of == "whole" else "texts"

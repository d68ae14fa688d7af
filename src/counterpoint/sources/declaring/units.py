"""What a table protects: a unit with a cap on its rows, or each row by itself. It is said, never guessed.

A unit is a value of one column, or a combination of values of several, as in ["hospital", "patient"] where each
hospital numbers its own patients. A row in which one of them is missing has no unit.

A silent cap would change what is measured (of 336,776 flights of 4,043 planes, 4,043 would count), and a row is not a
person: both must be the custodian's own words.

>>> protected("person", 3), protected(["hospital", "patient"], 3), protected(each_row, None)
(('person', 3), (('hospital', 'patient'), 3), (None, 1))
>>> protected("person", None)
Traceback (most recent call last):
...
counterpoint.errors.InvalidParameter: say how many rows of one 'person' count, as in rows_per_unit=10: further rows ...
"""

from collections.abc import Sequence
from typing import TypeAlias

from counterpoint.errors import InvalidParameter, shown
from counterpoint.numbers.exact import whole

IdentifiedBy: TypeAlias = str | tuple[str, ...] | None
"""The column, or the columns together, that identify a unit; None where every row is one."""
MOST_COLUMNS = 10
"""The most columns that identify a unit together."""


class EachRow:
    """The type of `each_row`."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "each_row"


each_row = EachRow()
"""Every row is protected by itself: a person with several rows is protected in each, not in all of them together."""


def protected(unit: object, rows_per_unit: object) -> tuple[IdentifiedBy, int]:
    """The columns that identify units (None: each row is one), and how many rows of a unit are kept."""
    if isinstance(unit, EachRow):
        if rows_per_unit not in (None, 1):
            raise InvalidParameter("with unit=each_row every row is its own unit: leave out rows_per_unit")
        return None, 1
    if unit is None:
        raise InvalidParameter(
            "say what is protected: unit='person', the column that identifies people, with rows_per_unit=..., or "
            "unit=cp.each_row, which protects every row by itself"
        )
    named = _named(unit)
    if rows_per_unit is None:
        raise InvalidParameter(
            f"say how many rows of one {unit_words(named)!r} count, as in rows_per_unit=10: further rows of it are "
            "dropped, and counts move by that much"
        )
    return named, whole(rows_per_unit, 1, "rows_per_unit")


def _named(unit: object) -> str | tuple[str, ...]:
    """The name of one column, or the names of several; a list of one is that one."""
    if isinstance(unit, str):
        return str.__str__(unit)
    if not isinstance(unit, Sequence) or not all(isinstance(name, str) for name in unit):
        raise InvalidParameter(
            f"unit must be the name of a column, a list of names, as in ['hospital', 'patient'], or each_row, not a "
            f"{type(unit).__name__}"
        )
    names = tuple(map(str.__str__, unit))
    if not 1 <= len(set(names)) == len(names) <= MOST_COLUMNS:
        raise InvalidParameter(f"a unit is identified by 1 to {MOST_COLUMNS} different columns, not by {shown(unit)}")
    return names if len(names) > 1 else names[0]


def unit_columns(unit: IdentifiedBy) -> tuple[str, ...]:
    """The columns that identify a unit.

    >>> unit_columns("person"), unit_columns(("hospital", "patient")), unit_columns(None)
    (('person',), ('hospital', 'patient'), ())
    """
    return () if unit is None else (unit,) if isinstance(unit, str) else unit


def unit_words(unit: str | tuple[str, ...]) -> str:
    """A unit as a sentence names it.

    >>> unit_words("person"), unit_words(("country", "hospital", "patient"))
    ('person', 'combination of country, hospital and patient')
    """
    return unit if isinstance(unit, str) else f"combination of {', '.join(unit[:-1])} and {unit[-1]}"


def one_column(unit: object, what: str) -> str:
    """The name of the column of a source whose unit is one column, or `InvalidParameter` with what would work.

    >>> one_column(["hospital", "patient"], "a stream")
    Traceback (most recent call last):
    ...
    counterpoint.errors.InvalidParameter: unit must be the name of one column of a stream, such as 'user', not ...
    """
    if isinstance(unit, str):
        return unit
    raise InvalidParameter(
        f"unit must be the name of one column of {what}, such as 'user', not a {type(unit).__name__}; to identify "
        "units by several, put them into one that tells them apart, as json.dumps([hospital, patient]) does"
    )

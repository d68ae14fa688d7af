"""What a table protects: a unit with a cap on its rows, or each row by itself. It is said, never guessed.

A silent cap would change what is measured (of 336,776 flights of 4,043 planes, 4,043 would count), and a row is not a
person: both must be the custodian's own words.

>>> protected("person", 3), protected(each_row, None)
(('person', 3), (None, 1))
>>> protected("person", None)
Traceback (most recent call last):
...
counterpoint.errors.InvalidParameter: say how many rows of one 'person' count, as in rows_per_unit=10: further rows ...
"""

from counterpoint.errors import InvalidParameter
from counterpoint.numbers.exact import whole


class EachRow:
    """The type of `each_row`."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "each_row"


each_row = EachRow()
"""Every row is protected by itself: a person with several rows is protected in each, not in all of them together."""


def protected(unit: object, rows_per_unit: object) -> tuple[str | None, int]:
    """The column that identifies units (None: each row is one), and how many rows of a unit are kept."""
    if isinstance(unit, EachRow):
        if rows_per_unit not in (None, 1):
            raise InvalidParameter("with unit=each_row every row is its own unit: leave out rows_per_unit")
        return None, 1
    if unit is None:
        raise InvalidParameter(
            "say what is protected: unit='person', the column that identifies people, with rows_per_unit=..., or "
            "unit=cp.each_row, which protects every row by itself"
        )
    if not isinstance(unit, str):
        raise InvalidParameter(f"unit must be the name of a column, or each_row, not a {type(unit).__name__}")
    if rows_per_unit is None:
        raise InvalidParameter(
            f"say how many rows of one {unit!r} count, as in rows_per_unit=10: further rows of it are dropped, and "
            "counts move by that much"
        )
    return unit, whole(rows_per_unit, 1, "rows_per_unit")

"""Derived columns: a declared name for what is computed of a row, usable wherever a column is.

The values are computed once, when the table is bound, of the row's own stored values, and stored beside them. So a
derived column can be asked about, grouped by, partitioned and spread like any other, and costs nothing to ask again.

>>> derived("arr_delay > 15")
Derived('arr_delay > 15')
>>> derived("60 * distance / air_time", low=0, high=700, step=1)
Derived('CLAMP(60 * distance / air_time, 0, 700, 1)')
"""

from collections.abc import Mapping

from counterpoint.encoding import Value
from counterpoint.errors import InvalidParameter, InvalidRequest
from counterpoint.numbers import Number as AnyNumber
from counterpoint.sources.asking.arguments import check_texts, clamped_text
from counterpoint.sources.declaring.declaration import Declaration, Named


class Derived(Value, frozen=True):
    """An expression over the columns of a table, in the language of `where`."""

    expression: str

    def __post_init__(self) -> None:
        """Check the text."""
        check_texts(column=self.expression)


def derived(
    expression: str, low: AnyNumber | None = None, high: AnyNumber | None = None, step: AnyNumber | None = None
) -> Derived:
    """Declare a column that is computed of others; `low`, `high` and `step` clamp and round a number (see `sum`).

    >>> derived("MONTH(day)").expression
    'MONTH(day)'
    """
    return Derived(clamped_text(expression, low, high, step))


def with_derived(stored: tuple[Named, ...], derived: Mapping[str, Derived]) -> tuple[Named, ...]:
    """The stored columns, and behind them the derived ones, each of which may mention those before it.

    >>> from counterpoint.sources.declaring.columns import number
    >>> with_derived((Named("miles", number(0, 9)),), {"twice": Derived("2 * miles")})[1].column.describe()
    'a number from 0 to 18 in steps of 2'
    """
    columns = stored
    for name, column in derived.items():
        if any(named.name == name for named in columns):
            raise InvalidParameter(f"{name!r} is a column of the data: give the derived column another name")
        try:
            found = Declaration(None, 1, "replace", columns).column(column.expression)
        except InvalidRequest as error:
            raise InvalidParameter(f"the derived column {name!r} cannot be computed: {error}") from None
        columns = (*columns, Named(name, found, True, column.expression))
    return columns

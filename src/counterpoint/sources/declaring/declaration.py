"""A table's declaration: everything public about it, independent of its rows.

It states the privacy unit, how many rows of one unit are kept, which tables are neighbours, and the type of each
column. The schema (names and types of the columns) is public too. An undeclared column can be used in `where` and as
given keys, if its type has a comparison that never fails, and nowhere else.

>>> from counterpoint.sources.declaring.columns import number, text
>>> declared = Declaration(None, 1, "replace", (Named("age", number(0, 120)), Named("state", text(), False)))
>>> print(declared.describe())
unit: every row is its own unit
rows per unit: at most 1
neighbours: replace one unit by another
age: a number from 0 to 120 in steps of 1
state: a text (undeclared: for where and keys only; cp.category([...]) to count by it)
"""

from difflib import get_close_matches

from counterpoint.encoding import Tagged, Value
from counterpoint.errors import InvalidParameter, InvalidRequest, shown
from counterpoint.numbers.exact import whole
from counterpoint.sources.declaring.columns import Column, Number
from counterpoint.sources.declaring.dates import Date
from counterpoint.sources.declaring.undeclared import undeclared_note
from counterpoint.sources.declaring.units import IdentifiedBy, unit_columns, unit_words

NEIGHBOURS = {"add-or-remove": "add or remove one unit", "replace": "replace one unit by another"}


class UnknownColumn(InvalidRequest):
    """A request names a column that was not declared."""

    def __init__(self, message: str, name: object) -> None:
        super().__init__(message)
        self.name = name


class Named(Tagged, Value, frozen=True):
    """A column with its name, and whether the custodian declared it or it was inferred from the schema."""

    name: str
    column: Column
    declared: bool = True


class Declaration(Tagged, Value, frozen=True):
    """Everything public about a table. Engines store column i under the name `ci`, the unit under `u`."""

    unit: IdentifiedBy
    rows_per_unit: int
    neighbours: str
    columns: tuple[Named, ...]

    def __post_init__(self) -> None:
        """Check everything that does not depend on the data."""
        whole(self.rows_per_unit, 1, "rows_per_unit")
        if self.unit is None and self.rows_per_unit != 1:
            raise InvalidParameter(
                f"without a unit column every row is its own unit, so rows_per_unit must be 1, but "
                f"{self.rows_per_unit} was given: name the column with unit=..."
            )
        if self.neighbours not in NEIGHBOURS:
            known = " or ".join(repr(name) for name in NEIGHBOURS)
            raise InvalidParameter(f"neighbours must be {known}, but {self.neighbours!r} was given")

    def find(self, name: object) -> int:
        """The index of the column of this name, or `InvalidRequest` that lists the names."""
        names = [named.name for named in self.columns]
        if isinstance(name, str) and name in names:
            return names.index(name)
        raise self._unknown(name, names)

    def _unknown(self, name: object, names: list[str]) -> UnknownColumn:
        close = get_close_matches(name, names, n=1) if isinstance(name, str) else []
        hint = f"did you mean {close[0]!r}?" if close else f"there are: {', '.join(names[:20]) or 'none'}"
        return UnknownColumn(f"there is no column {shown(name)} to ask about; {hint}", name)

    def column(self, name: object) -> Column:
        """The column of this name."""
        return self.columns[self.find(name)].column

    def number(self, name: object) -> Number:
        """The column of this name, if it is a number with bounds."""
        column = self.column(name)
        if isinstance(column, Number):
            return column
        raise InvalidRequest(
            f"{name} is {column.describe()}: only a number with declared bounds can be added up; "
            f"declare columns={{{name!r}: cp.number(low, high)}}"
        )

    def ordered(self, name: object, *, dates: bool) -> Number | Date:
        """The column of this name, if it is a number with bounds (or, for `dates`, a date)."""
        column = self.column(name)
        if isinstance(column, Date if dates else Number):
            assert isinstance(column, Number | Date)
            return column
        if isinstance(column, Number | Date):
            raise InvalidRequest(
                f"{name} is {column.describe()}: give {'numbers' if dates else 'dates, as YYYY-MM-DD'}"
            )
        raise InvalidRequest(
            f"{name} is {column.describe()}: only a number or a date with declared bounds can be ranked or cut at "
            f"edges; declare columns={{{name!r}: cp.number(low, high)}}, or cp.date(low, high)"
        )

    @property
    def unit_columns(self) -> tuple[str, ...]:
        """The columns that identify a unit: in all of its rows each of them has the same value."""
        return unit_columns(self.unit)

    def describe(self) -> str:
        """The declaration in words, line by line."""
        unit = "every row is its own unit" if self.unit is None else unit_words(self.unit)
        lines = [f"{named.name}: {named.column.describe()}{_note(named)}" for named in self.columns]
        head = (f"unit: {unit}", f"rows per unit: at most {self.rows_per_unit}")
        return "\n".join((*head, f"neighbours: {NEIGHBOURS[self.neighbours]}", *lines))


def _note(named: Named) -> str:
    return "" if named.declared else undeclared_note(named.column)

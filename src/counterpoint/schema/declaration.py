"""A table's declaration: everything that is public about it, independent of its rows.

It states the privacy unit, how many rows of one unit are kept, which tables are neighbours, and the type of each
column. An undeclared column can be used in `where` and as given keys, if its type has a comparison that never fails,
and nowhere else. A derived column is a declared name for what is computed of a row: its values are computed once, when
the table is bound, and stored beside the others, so it can be used wherever a column can.

>>> from counterpoint.schema.columns import number, text
>>> declared = Declaration(None, 1, "replace", (Named("age", number(0, 120)), Named("state", text(), False)))
>>> print(declared.describe())
unit: every row is its own unit
rows per unit: at most 1
neighbours: replace one unit by another
age: a number from 0 to 120 in steps of 1
state: a text (undeclared: for where and keys only; cp.category([...]) to count by it)
>>> derived("60 * distance / air_time", low=0, high=700, step=1)
Derived('CLAMP(60 * distance / air_time, 0, 700, 1)')
"""

from collections.abc import Mapping
from difflib import get_close_matches

from counterpoint.encoding import Tagged, Value
from counterpoint.errors import InvalidParameter, InvalidRequest, shown
from counterpoint.numbers import Number as AnyNumber
from counterpoint.numbers.exact import whole
from counterpoint.schema.arguments import check_texts, clamped_text
from counterpoint.schema.columns import MOST_KEYS, Boolean, Category, Column, Number, Text, undeclared_note
from counterpoint.schema.expressions.conditions import Expression, Unreadable, as_number, expression
from counterpoint.schema.expressions.tree import Term
from counterpoint.schema.times import Date
from counterpoint.schema.unit_keys import UnitType
from counterpoint.schema.units import IdentifiedBy, unit_columns, unit_words

WIDEST_ANSWER = 10**6
"""How many cells a custodian may let an answer have: beyond, an answer takes more than a gigabyte."""
NEIGHBOURS = {"add-or-remove": "add or remove one unit", "replace": "replace one unit by another"}


class UnknownColumn(InvalidRequest):
    """A request names a column that was not declared."""

    def __init__(self, message: str, name: object) -> None:
        super().__init__(message)
        self.name = name


class Named(Tagged, Value, frozen=True):
    """A column with its name, and whether the custodian declared it or it was inferred from the schema.

    A derived column has the expression by which it is computed of the columns before it.
    """

    name: str
    column: Column
    declared: bool = True
    expression: str | None = None


class Declaration(Tagged, Value, frozen=True):
    """Everything public about a table. Engines store column i under the name `ci`, the unit under `u`."""

    unit: IdentifiedBy
    rows_per_unit: int
    neighbours: str
    columns: tuple[Named, ...]
    most_cells: int | None = None
    unit_types: tuple[UnitType, ...] = ()
    """By which rule each column of the unit names it (see `unit_keys`); texts, where nothing is said."""

    def __post_init__(self) -> None:
        """Check everything that does not depend on the data."""
        whole(self.rows_per_unit, 1, "rows_per_unit")
        if self.most_cells is not None and whole(self.most_cells, 1, "most_cells") > WIDEST_ANSWER:
            raise InvalidParameter(f"most_cells is at most {WIDEST_ANSWER}, but {self.most_cells} was given")
        if self.unit is None and self.rows_per_unit != 1:
            raise InvalidParameter(
                f"without a unit column every row is its own unit, so rows_per_unit must be 1, but "
                f"{self.rows_per_unit} was given: name the column with unit=..."
            )
        if self.neighbours not in NEIGHBOURS:
            known = " or ".join(repr(name) for name in NEIGHBOURS)
            raise InvalidParameter(f"neighbours must be {known}, but {self.neighbours!r} was given")

    @property
    def widest(self) -> int:
        """How many cells an answer has at most: as many as a request may list keys, unless more are declared.

        >>> Declaration(None, 1, "replace", ()).widest, Declaration(None, 1, "replace", (), 10**6).widest
        (10000, 1000000)
        """
        return MOST_KEYS if self.most_cells is None else self.most_cells

    @property
    def words(self) -> frozenset[str]:
        """The names of columns, also the parts of dotted ones, that an expression may mention without quotes."""
        parts = (part for named in self.columns for part in named.name.split("."))
        return frozenset(part for part in parts if part.isidentifier())

    def index(self, name: object) -> int:
        """The index of the column of this name, or `InvalidRequest` that lists the names."""
        names = [named.name for named in self.columns]
        if isinstance(name, str) and name in names:
            return names.index(name)
        raise self._unknown(name, names, "; a text is written in single quotes")

    def _unknown(self, name: object, names: list[str], otherwise: str = "") -> UnknownColumn:
        close = get_close_matches(name, names, n=1) if isinstance(name, str) else []
        hint = f"did you mean {close[0]!r}?" if close else f"there are: {', '.join(names[:20]) or 'none'}{otherwise}"
        return UnknownColumn(f"there is no column {shown(name)} to ask about; {hint}", name)

    def _asked(self, name: object) -> Expression:
        """The column of this name, or what this expression computes; a text that is neither is an unknown column.

        >>> Declaration(None, 1, "replace", (Named("a-b", Number(0, 9)),)).find("a-b")
        0
        """
        if not isinstance(name, str) or any(named.name == name for named in self.columns):
            place = self.index(name)
            column = self.columns[place].column
            return Expression(place, column, as_number(column))
        try:
            return expression(name, self)
        except Unreadable as unreadable:
            unknown = self._unknown(name, [named.name for named in self.columns])
            why = "" if name.isidentifier() else f". As an expression: {unreadable}"
        raise UnknownColumn(f"{unknown}{why}", name)

    def find(self, name: object) -> Term:
        """The index of the column of this name, or what is computed for this expression."""
        return self._asked(name).term

    def column(self, name: object) -> Column:
        """The column of this name, or the column that this expression is."""
        return self._asked(name).column

    def number(self, name: object) -> Number:
        """The column or expression of this name, if it is a number with bounds."""
        asked = self._asked(name)
        if asked.number is not None:
            return asked.number
        raise InvalidRequest(
            f"{name} is {asked.column.describe()}: only a number with declared bounds can be added up; "
            f"{_instead(name, asked.column)}"
        )

    def ordered(self, name: object, *, dates: bool) -> Number | Date:
        """The column or expression of this name, if it is a number with bounds (or, for `dates`, a date)."""
        asked = self._asked(name)
        column = asked.column if asked.number is None else asked.number
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

    def unit_type(self, name: str) -> UnitType:
        """The type of the units that this column names, alone or with others.

        >>> Declaration(("hospital", "patient"), 1, "replace", (), unit_types=("text", "whole")).unit_type("patient")
        'whole'
        """
        return dict(zip(self.unit_columns, self.unit_types, strict=False)).get(name, "text")

    @property
    def derived(self) -> "tuple[tuple[int, Expression], ...]":
        """The derived columns, each with its index and what is computed of the columns before it."""
        found = []
        for place, named in enumerate(self.columns):
            if isinstance(named.expression, str):
                before = Declaration(None, 1, "replace", self.columns[:place])
                found.append((place, expression(named.expression, before)))
        return tuple(found)

    def describe(self) -> str:
        """The declaration in words, line by line."""
        unit = "every row is its own unit" if self.unit is None else unit_words(self.unit)
        lines = [f"{named.name}: {named.column.describe()}{_note(named)}" for named in self.columns]
        head = [f"unit: {unit}", f"rows per unit: at most {self.rows_per_unit}"]
        head += [f"neighbours: {NEIGHBOURS[self.neighbours]}"]
        head += [] if self.most_cells is None else [f"cells of an answer: at most {self.most_cells}"]
        return "\n".join((*head, *lines))


def _instead(name: object, column: Column) -> str:
    """What to ask instead of a sum or a mean of a column that is not a number, or what to declare."""
    match column:
        case Boolean():
            return f"count where it holds, count(where={name!r}), or take 'CASE WHEN {name} THEN 1 ELSE 0 END'"
        case Category() | Text():
            return f"count its values, count(by={name!r}), or declare columns={{{name!r}: cp.number(low, high)}}"
        case Date():
            return f"take its median, or the days since another date, as in \"{name} - '2020-12-31'\""
    return f"declare columns={{{name!r}: cp.number(low, high)}}"


def _note(named: Named) -> str:
    if named.expression is not None:
        return f" (derived: {named.expression})"
    return "" if named.declared else undeclared_note(named.column)


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

    >>> from counterpoint.schema.columns import number
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

"""Reads the parts of an expression that are values, as exact terms of a row's stored columns.

Numbers are added, subtracted, multiplied and divided; a difference of dates is a number of days, and a date plus such a
number is a date. CASE chooses between numbers, texts or truth values. YEAR, QUARTER, MONTH, DAY and WEEKDAY (Monday is
1) are parts of a date, or of an instant on the wall clock of its zone, which has a DATE and an HOUR, too. A value is
missing where a column that it needs is missing, and where its divisor is 0.

The offset of a zone is chosen by its changes within the declared bounds, so no engine is asked about zones: the day of
an instant is a quotient of integers, as everything else here.

>>> from counterpoint.schema.columns import number
>>> from counterpoint.schema.declaration import Declaration, Named
>>> flights = Declaration(None, 1, "replace", (Named("distance", number(0, 5000)), Named("air_time", number(0, 600))))
>>> flights.number("CLAMP(60 * distance / air_time, 0, 700, 10)").describe()
'a number from 0 to 700 in steps of 10'
>>> flights.number("distance - 3 * air_time").describe()
'a number from -1800 to 5000 in steps of 1'
"""

import math
from collections.abc import Callable
from datetime import date as Day  # noqa: N812
from fractions import Fraction
from typing import TYPE_CHECKING

from counterpoint.errors import InvalidParameter, InvalidRequest
from counterpoint.numbers.exact import exact
from counterpoint.schema.columns import MOST_KEYS, Boolean, Column, Number, Whole
from counterpoint.schema.expressions import quantities
from counterpoint.schema.expressions.quantities import ONE, Integer, Quantity
from counterpoint.schema.expressions.syntax import (
    ALLOWED,
    ColumnScope,
    Dated,
    Logical,
    Numeric,
    Operand,
    TextLiteral,
    Textual,
    Timed,
    TruthLiteral,
    only,
    unknown,
)
from counterpoint.schema.expressions.tree import (
    And,
    Between,
    Case,
    CaseCondition,
    CaseText,
    Condition,
    Constant,
    DatePart,
    FloorDivide,
    In,
    Not,
    Or,
    Part,
    Plus,
    Term,
    Times,
)
from counterpoint.schema.times import SECOND, Date, Timestamp, changes_of, days, is_day, offset_at, spelled

if TYPE_CHECKING:
    from sqlglot import exp

DEEPEST = 60
"""How many operators may be nested, also by standing in a row: a + b + c is (a + b) + c."""

_PARTS: dict[str, Part] = {
    "year": "year",
    "quarter": "quarter",
    "month": "month",
    "day": "day",
    "dayofweekiso": "weekday",
}
_ARITHMETIC: dict[str, Callable[[Quantity, Quantity], Quantity]] = {
    "add": quantities.plus,
    "sub": quantities.minus,
    "mul": quantities.times,
    "div": quantities.divided,
}
_LISTED = {"quarter": range(1, 5), "month": range(1, 13), "day": range(1, 32), "weekday": range(1, 8)}


class ValueReader:
    """Reads the nodes of a syntax tree that stand for values; `condition` reads those that stand for conditions."""

    def __init__(self, declared: ColumnScope, condition: "Callable[[exp.Expr], Condition]") -> None:
        self._declared, self._condition = declared, condition
        self._depth = 0
        self._known: dict[int, Operand] = {}

    def read(self, node: "exp.Expr") -> Operand:
        """What a node is, or `InvalidRequest`. Each is read once, also what CASE compares with every WHEN."""
        if id(node) not in self._known:
            self._known[id(node)] = self._read(node)
        return self._known[id(node)]

    def _read(self, node: "exp.Expr") -> Operand:
        readers: dict[str, Callable[[exp.Expr], Operand]] = {
            "paren": lambda inner: self.read(only(inner, "this").this),
            "column": self.column,
            "literal": _literal,
            "cast": _no_cast,
            "boolean": lambda inner: TruthLiteral(bool(inner.this)),
            "neg": lambda inner: Numeric(quantities.negative(self.number(only(inner, "this").this))),
            "case": self.case,
            "coalesce": self.first_present,
            "abs": self.absolute,
            "anonymous": self.function,
            "date": self.day,
            "hour": self.hour,
            **dict.fromkeys(_ARITHMETIC, self.arithmetic),
            **dict.fromkeys(_PARTS, lambda inner: self.part(_PARTS[inner.key], only(inner, "this").this)),
        }
        reader = readers.get(node.key)
        if reader is None:
            return Logical(self._condition(node))
        self._depth += 1
        if self._depth > DEEPEST:
            raise InvalidRequest(
                f"more than {DEEPEST} operators are nested: declare parts as derived columns. {ALLOWED}"
            )
        found = reader(node)
        self._depth -= 1
        return found

    def column(self, node: "exp.Expr") -> Operand:
        """A stored column."""
        if only(node, "this", "table").this.key != "identifier":
            raise unknown(node)
        of = node.args.get("table")
        try:
            name = node.name if of is None else f"{of.name}.{node.name}"
            return of_column(self._declared.index(name), self._declared.column(name))
        except InvalidRequest as error:
            if not node.this.args.get("quoted"):
                raise
            raise InvalidRequest(f"{error}: {node.name[:40]!r}. Double quotes name a column") from None

    def number(self, node: "exp.Expr") -> Quantity:
        """A node that must be a number."""
        found = self.read(node)
        if isinstance(found, Numeric):
            return found.quantity
        raise InvalidRequest(f"{node.sql()[:40]} is {found.describe}, and a number is needed here")

    def arithmetic(self, node: "exp.Expr") -> Operand:
        """A sum, difference, product or quotient of numbers; dates are moved by days and subtracted."""
        only(node, "this", "expression", "typed", "safe")
        left, right = self.read(node.this), self.read(node.expression)
        if isinstance(left, Numeric) and isinstance(right, Numeric):
            return Numeric(_ARITHMETIC[node.key](left.quantity, right.quantity))
        if isinstance(left, Dated) and isinstance(right, Numeric) and node.key in ("add", "sub"):
            if right.quantity.grid.denominator != 1 or right.quantity.divides:
                raise InvalidRequest(f"{node.sql()[:40]}: a date is moved by whole days")
            return Dated(_ARITHMETIC[node.key](left.quantity, right.quantity))
        if node.key == "sub" and isinstance(left, Dated | TextLiteral) and isinstance(right, Dated | TextLiteral):
            return Numeric(quantities.minus(as_date(left), as_date(right)))
        raise InvalidRequest(
            f"{node.sql()[:40]} combines {left.describe} with {right.describe}: arithmetic is for numbers, the "
            "difference of two dates, and a date plus or minus whole days"
        )

    def part(self, part: Part, node: "exp.Expr") -> Numeric:
        """A part of a date."""
        found = self.read(node)
        if isinstance(found, Timed):
            found = Dated(day_of(found))
        if not isinstance(found, Dated):
            raise InvalidRequest(f"{node.sql()[:40]} is {found.describe}, and the {part} of a date was asked for")
        whole = found.quantity.top
        if not (is_day(Fraction(whole.least)) and is_day(Fraction(whole.most))):
            raise InvalidRequest(f"{node.sql()[:40]} might be before the year 1 or after 9999, so it has no {part}")
        first, last = (Day.fromisoformat(spelled(end)).year for end in (whole.least, whole.most))
        values = _LISTED.get(part, range(first, last + 1))
        top = quantities.checked(DatePart(part, whole.term), values[0], values[-1])
        return Numeric(Quantity(top, ONE, Fraction(1)), keys=tuple(values))

    def case(self, node: "exp.Expr") -> Operand:
        """CASE WHEN condition THEN value ... ELSE value END, or CASE value WHEN literal THEN value ... END."""
        only(node, "this", "ifs", "default")
        conditions = [self._when(node.this, only(branch, "this", "true").this) for branch in node.args["ifs"]]
        default = node.args.get("default")
        nodes = [*(branch.args["true"] for branch in node.args["ifs"]), default]
        values = [None if it is None or it.key == "null" else self.read(it) for it in nodes]
        given = [value for value in values if value is not None]
        if given and all(isinstance(value, Numeric) for value in given):
            return _choose_number(conditions, values)
        if given and all(isinstance(value, TextLiteral) for value in given):
            texts = [value.text if isinstance(value, TextLiteral) else None for value in values]
            label = CaseText(tuple(zip(conditions, texts[:-1], strict=True)), texts[-1])
            return Textual(label, None, tuple(dict.fromkeys(text for text in texts if text is not None)))
        if given and all(isinstance(value, Logical | TruthLiteral) for value in given):
            return _choose_truth(conditions, values)
        raise InvalidRequest("a CASE has only numbers, only 'texts' or only conditions behind THEN and ELSE")

    def _when(self, compared: "exp.Expr | None", when: "exp.Expr") -> Condition:
        if compared is None:
            return self._condition(when)
        from sqlglot import exp  # noqa: PLC0415

        return self._condition(exp.EQ(this=compared, expression=when))

    def first_present(self, node: "exp.Expr") -> Numeric:
        """COALESCE: the first of the numbers that is not missing."""
        *others, last = [self.number(it) for it in (only(node, "this", "expressions").this, *node.expressions)]
        return Numeric(quantities.chosen([(Not(quantities.missing(it)), it) for it in others], last))

    def absolute(self, node: "exp.Expr") -> Numeric:
        """The absolute value."""
        return Numeric(quantities.absolute(self.number(only(node, "this").this)))

    def function(self, node: "exp.Expr") -> Numeric:
        """WEEKDAY and CLAMP, which the parser does not know."""
        only(node, "this", "expressions")
        name, given = str(node.this).upper(), node.expressions
        if name == "WEEKDAY" and len(given) == 1:
            return self.part("weekday", given[0])
        if name == "CLAMP" and 2 <= len(given) <= 4:
            low, high, step = [self._bound(it) for it in given[1:]] + [None] * (4 - len(given))
            return Numeric(clamped(self.number(given[0]), low, high, step)[0])
        raise unknown(node)

    def hour(self, node: "exp.Expr") -> Numeric:
        """The hour of an instant."""
        found = self.read(only(node, "this").this)
        if isinstance(found, Timed):
            return Numeric(hour_of(found), keys=tuple(range(24)))
        raise InvalidRequest(
            f"{node.this.sql()[:40]} is {found.describe}, which has no hour: declare a column of instants, "
            "cp.timestamp(low, high, zone=...)"
        )

    def day(self, node: "exp.Expr") -> Dated:
        """The day of an instant; of a date, that date."""
        found = self.read(only(node, "this").this)
        if isinstance(found, Timed):
            return Dated(day_of(found))
        if isinstance(found, Dated):
            return found
        raise InvalidRequest(f"{node.sql()[:40]}: DATE is for instants, and this is {found.describe}")

    def _bound(self, node: "exp.Expr") -> Fraction | None:
        if node.key == "null":
            return None
        value = self.number(node).value
        if value is None:
            raise InvalidRequest("the bounds and the step of CLAMP(x, low, high, step) are public: give literals")
        return value


def of_column(index: int, column: Column) -> Operand:
    """What a stored column is."""
    if isinstance(column, Timestamp):
        return Timed(quantities.stored(index, column.least, column.most, Fraction(1)), column)
    if isinstance(column, Date):
        return Dated(quantities.stored(index, column.least, column.most, Fraction(1)), column)
    if isinstance(column, Boolean):
        return Logical(In(index, (True,)), index)
    if column.kind == "text":
        keys = column.known_keys
        return Textual(index, column, None if keys is None else tuple(map(str, keys)))
    least, most = _stored_range(column)
    keys = None if column.known_keys is None else tuple(map(int, column.known_keys))
    return Numeric(quantities.stored(index, least, most, column.grid), column, keys)


def _stored_range(column: Column) -> tuple[int, int]:
    """The integers that a column of numbers may hold."""
    if isinstance(column, Number):
        return column.least, column.most
    if isinstance(column, Whole) or column.known_keys is None:
        return -(2**63), 2**63 - 1
    keys = [int(key) for key in column.known_keys]
    return min(keys), max(keys)


def _no_cast(node: "exp.Expr") -> Operand:
    """DATE '2020-12-31' would be a second way to write a date."""
    raise InvalidRequest(
        f"an expression does not support {node.sql()[:40]!r}: a date is written as a text, as in day >= '2020-12-31'"
    )


def as_date(operand: Operand) -> Quantity:
    """A date, or a text literal that spells one."""
    if isinstance(operand, Dated):
        return operand.quantity
    assert isinstance(operand, TextLiteral)
    found = days(operand.text)
    if found is None:
        raise InvalidRequest(f"{operand.text[:40]!r} is not a date: use YYYY-MM-DD")
    return quantities.literal(Fraction(found))


def clamped(
    quantity: Quantity, low: Fraction | None, high: Fraction | None, step: Fraction | None
) -> tuple[Quantity, Number]:
    """The nearest number to this one on the grid of `step` from `low` to `high`, and the column that it is.

    What is not given follows from the columns; the bounds are then rounded outward to the grid.
    """
    if step is None and quantity.divides:
        raise InvalidRequest(
            "a quotient has no grid of its own: say to which step it is rounded, as in step=0.1, or "
            "CLAMP(60 * distance / air_time, 0, 700, 0.1)"
        )
    grid, (first, last) = quantity.grid if step is None else step, quantities.bounds(quantity)
    if grid <= 0:
        raise InvalidRequest("the step of an expression must be above 0")
    least = math.floor(first / grid) * grid if low is None else low
    most = max(math.ceil(last / grid) * grid, least + grid) if high is None else high
    try:
        column = Number(least, most, grid)
    except InvalidParameter as error:
        raise InvalidRequest(f"of this expression {error}; give low=, high= and step=") from None
    top = quantities.rounded(quantities.regridded(quantity, grid), column.least, column.most)
    return Quantity(top, ONE, grid), column


def _literal(node: "exp.Expr") -> Operand:
    only(node, "this", "is_string")
    if node.is_string:
        return TextLiteral(str(node.this))
    try:
        return Numeric(quantities.literal(exact(str(node.this), "a number")))
    except InvalidParameter as error:
        raise InvalidRequest(f"in an expression {error}") from None


def _choose_number(conditions: list[Condition], values: list[Operand | None]) -> Numeric:
    *cases, default = [value.quantity if isinstance(value, Numeric) else None for value in values]
    constants = [quantity.value for quantity in (*cases, default) if quantity is not None]
    listed = sorted({int(value) for value in constants if value is not None and value.denominator == 1})
    keys = tuple(listed) if all(value in listed for value in constants) and len(listed) <= MOST_KEYS else None
    return Numeric(quantities.chosen(list(zip(conditions, cases, strict=True)), default), keys=keys)


def _choose_truth(conditions: list[Condition], values: list[Operand | None]) -> Logical:
    *cases, default = map(_condition_of, values)
    return Logical(CaseCondition(tuple(zip(conditions, cases, strict=True)), default))


def _condition_of(value: Operand | None) -> Condition | None:
    if isinstance(value, Logical):
        return value.condition
    return None if value is None else And(()) if value == TruthLiteral(True) else Or(())


_HOUR = 3600 * SECOND
_DAY = 24 * _HOUR


def as_instant(operand: Timed | TextLiteral, column: Timed) -> Quantity:
    """An instant, or a text literal that spells one, read on the wall clock of the column that it is compared with."""
    if isinstance(operand, Timed):
        return operand.quantity
    return quantities.literal(Fraction(column.column.key(operand.text)))


def day_of(timed: Timed) -> Quantity:
    """The day on the wall clock of the zone, as days since 1970-01-01."""
    wall, first = _from_first_day(timed)
    days = Plus(FloorDivide(wall.term, Constant(_DAY)), Constant(first))
    return Quantity(quantities.checked(days, first, first + wall.most // _DAY), ONE, Fraction(1))


def hour_of(timed: Timed) -> Quantity:
    """The hour on the wall clock of the zone, from 0 to 23."""
    wall, _ = _from_first_day(timed)
    hours, days = FloorDivide(wall.term, Constant(_HOUR)), FloorDivide(wall.term, Constant(_DAY))
    return Quantity(quantities.checked(Plus(hours, Times(Constant(-24), days)), 0, 23), ONE, Fraction(1))


def _from_first_day(timed: Timed) -> tuple[Integer, int]:
    """The wall time in microseconds since the first day that there may be, and the number of that day."""
    column, instant = timed.column, timed.quantity.top
    seconds = column.least // SECOND, column.most // SECOND + 1
    changes = changes_of(column.zone, *seconds)
    offsets = [offset_at(column.zone, seconds[0]), *(after for _, _, after in changes)]
    first = (column.least + min(offsets) * SECOND) // _DAY
    shifts = [Constant(offset * SECOND - first * _DAY) for offset in offsets]
    starts = [Between(instant.term, at * SECOND, None) for at, _, _ in changes]
    later = list(zip(starts, shifts[1:], strict=True))
    shift: Term = Case(tuple(reversed(later)), shifts[0]) if later else shifts[0]
    most = column.most + max(offsets) * SECOND - first * _DAY
    return quantities.checked(Plus(instant.term, shift), 0, most), first

"""Reads a text into the typed tree: a `where` into a condition, an expression into a column.

This is the one reader of the language: `where=`, `by=`, derived columns and SQL's WHERE all come here. `syntax` parses
the text, `values` reads the parts that are values, and this module compares and combines them. Numbers are compared
with numbers, texts with texts (by =, <>, IN and LIKE), dates with dates and 'YYYY-MM-DD', truth values with truth
values; anything else raises `InvalidRequest`. Everything is decided from public facts, so a request means the same on
every engine and at every time.

>>> from counterpoint.schema.columns import number, text
>>> from counterpoint.schema.declaration import Declaration, Named
>>> people = Declaration(None, 1, "replace", (Named("age", number(0, 120)), Named("state", text())))
>>> condition("age > 17.5 AND state IN ('CA', 'NY')", people)
And(parts=(Between(column=0, low=18, high=None), In(column=1, keys=('CA', 'NY'))))
>>> expression("age > 64", people)
Expression(term=AsBoolean(condition=Between(column=0, low=65, high=None)), column=Boolean(), number=None)
>>> expression("age / 2", people).column.describe()
'a number from 0 to 60 in steps of 0.5'
>>> condition("age % 2 = 1", people)
Traceback (most recent call last):
...
counterpoint.errors.InvalidRequest: where does not support '%'. It may contain columns, literals, + - * /, ...
"""

from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from counterpoint.errors import InvalidRequest
from counterpoint.schema.columns import Boolean, Category, Column, Number
from counterpoint.schema.expressions import quantities
from counterpoint.schema.expressions.quantities import SIGNS, Quantity
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
    is_literal,
    only,
    operands,
    parsed,
    unknown,
)
from counterpoint.schema.expressions.tree import (
    And,
    Condition,
    Equal,
    In,
    IsNull,
    Like,
    Not,
    Or,
    Term,
    exceeds,
)
from counterpoint.schema.expressions.values import ValueReader, as_date, as_instant, clamped
from counterpoint.schema.times import Date, is_day, spelled

if TYPE_CHECKING:
    from sqlglot import exp

MOST_WILDCARDS = 100
"""The most % and _ of one LIKE: an engine may recurse for each, and run out of stack on some texts."""
MOST_NODES = 10_000
"""The most nodes of a condition, where each is written out."""


def condition(where: object, declared: ColumnScope) -> Condition:
    """The condition of a where, or `InvalidRequest` that says what is allowed."""
    found = ConditionTyper(declared).read(parsed(where, "where", declared.words))
    if exceeds(found, MOST_NODES):
        raise InvalidRequest(f"where may have at most {MOST_NODES} operations: declare parts of it as derived columns")
    return found


class ConditionTyper:
    """Reads a syntax tree into a condition; refuses every node and argument that neither it nor `values` knows."""

    def __init__(self, declared: ColumnScope) -> None:
        self.values = ValueReader(declared, self.read)

    def read(self, node: "exp.Expr") -> Condition:
        """The condition that a node stands for."""
        readers: dict[str, Callable[[exp.Expr], Condition]] = {
            "paren": lambda inner: self.read(only(inner, "this").this),
            "not": lambda inner: Not(self.read(only(inner, "this").this)),
            "and": lambda inner: And(tuple(map(self.read, operands(inner)))),
            "or": lambda inner: Or(tuple(map(self.read, operands(inner)))),
            "column": self.truth,
            "case": self.truth,
            "is": self.missing,
            "in": self.one_of,
            "between": self.between,
            "like": self.like,
            **dict.fromkeys(SIGNS, self.comparison),
        }
        reader = readers.get(node.key)
        if reader is None:
            raise unknown(node)
        return reader(node)

    def truth(self, node: "exp.Expr") -> Condition:
        """A column of truth values, or a CASE of conditions."""
        found = self.values.read(node)
        if isinstance(found, Logical):
            return found.condition
        name = _name(node)
        raise InvalidRequest(
            f"{name} is {found.describe}, not a condition: compare it with a literal; {name} IS NOT NULL holds "
            "where it has a value, and by= counts for each value"
        )

    def missing(self, node: "exp.Expr") -> Condition:
        """IS NULL."""
        only(node, "this", "expression")
        found = self.values.read(node.this)
        if node.expression.key != "null" or is_literal(found):
            raise InvalidRequest(f"IS is followed by NULL or NOT NULL, behind a column. {ALLOWED}")
        match found:
            case Numeric(quantity) | Dated(quantity) | Timed(quantity):
                return quantities.missing(quantity)
            case Textual() | Logical():
                return IsNull(found.term)
        raise unknown(node)

    def comparison(self, node: "exp.Expr") -> Condition:
        """One of the signs between two values."""
        only(node, "this", "expression")
        left, right = self._value(node.this), self._value(node.expression)
        if is_literal(left):
            return _compared(node.expression, right, SIGNS[node.key], left)
        return _compared(node.this, left, node.key, right)

    def _value(self, node: "exp.Expr") -> Operand:
        if node.key == "null":
            raise InvalidRequest("nothing is equal to NULL: write IS NULL or IS NOT NULL")
        return self.values.read(node)

    def one_of(self, node: "exp.Expr") -> Condition:
        """IN, with literals."""
        only(node, "this", "expressions", "negate")
        row, values = self._value(node.this), [self._value(item) for item in node.expressions]
        if not values or not all(map(is_literal, values)):
            raise InvalidRequest(f"IN is followed by one or more literals in parentheses. {ALLOWED}")
        return _negated(node, self._among(node.this, row, values))

    def _among(self, node: "exp.Expr", row: Operand, values: list[Operand]) -> Condition:
        match row:
            case Numeric(quantity) if all(isinstance(value, Numeric) for value in values) and not is_literal(row):
                return _equal_one(quantity, [value.quantity for value in values if isinstance(value, Numeric)])
            case Dated(quantity) if all(isinstance(value, TextLiteral) for value in values):
                return _equal_one(quantity, [as_date(value) for value in values])
            case Timed(quantity) if all(isinstance(value, TextLiteral) for value in values):
                return _equal_one(
                    quantity, [as_instant(value, row) for value in values if isinstance(value, TextLiteral)]
                )
            case Textual(term) if all(isinstance(value, TextLiteral) for value in values):
                return In(term, tuple(value.text for value in values if isinstance(value, TextLiteral)))
            case Logical() if all(isinstance(value, TruthLiteral) for value in values):
                return In(row.term, tuple(value.value for value in values if isinstance(value, TruthLiteral)))
        raise _mismatch(node, row)

    def between(self, node: "exp.Expr") -> Condition:
        """BETWEEN."""
        only(node, "this", "low", "high", "negate")
        row, low, high = (self._value(node.args[name]) for name in ("this", "low", "high"))
        if isinstance(row, Textual | Logical):
            raise _unordered(node.this, row)
        if isinstance(row, Dated) and all(isinstance(end, Dated | TextLiteral) for end in (low, high)):
            return _negated(node, _between(row.quantity, as_date(low), as_date(high)))
        if isinstance(row, Timed) and isinstance(low, Timed | TextLiteral) and isinstance(high, Timed | TextLiteral):
            return _negated(node, _between(row.quantity, as_instant(low, row), as_instant(high, row)))
        if isinstance(row, Numeric) and isinstance(low, Numeric) and isinstance(high, Numeric) and not is_literal(row):
            return _negated(node, _between(row.quantity, low.quantity, high.quantity))
        raise _mismatch(node.this, row)

    def like(self, node: "exp.Expr") -> Condition:
        """LIKE."""
        only(node, "this", "expression", "negate")
        row, pattern = self._value(node.this), self._value(node.expression)
        if not (isinstance(row, Textual) and isinstance(pattern, TextLiteral)):
            raise InvalidRequest(f"{_name(node.this)} is {row.describe}: LIKE is for texts, and compares with a 'text'")
        if "\\" in pattern.text:
            raise InvalidRequest("a LIKE pattern must not contain a backslash: engines disagree about its meaning")
        if pattern.text.count("%") + pattern.text.count("_") > MOST_WILDCARDS:
            raise InvalidRequest(
                f"a LIKE pattern has at most {MOST_WILDCARDS} wildcards (% and _): combine several conditions with AND"
            )
        return _negated(node, Like(row.term, pattern.text))


def _compared(node: "exp.Expr", row: Operand, sign: str, other: Operand) -> Condition:
    match row, other:
        case (Numeric(), Numeric()) if not is_literal(row):
            return quantities.compared(row.quantity, sign, other.quantity)
        case Dated(), Dated() | TextLiteral():
            return quantities.compared(row.quantity, sign, as_date(other))
        case Timed(), Timed() | TextLiteral():
            return quantities.compared(row.quantity, sign, as_instant(other, row))
        case Textual(), Textual() | TextLiteral():
            return _equality(node, row, sign, _text_is(row, other))
        case Logical(), Logical() | TruthLiteral():
            return _equality(node, row, sign, _truth_is(row, other))
    raise _mismatch(node, row)


def _equal_one(quantity: Quantity, values: list[Quantity]) -> Condition:
    """The quantity equals one of these constants."""
    if quantity.divides:
        return Or(tuple(quantities.compared(quantity, "eq", value) for value in values))
    return quantities.one_of(quantity.top, [_constant(value) / quantity.grid for value in values])


def _between(quantity: Quantity, low: Quantity, high: Quantity) -> Condition:
    if quantity.divides or low.value is None or high.value is None:
        return And((quantities.compared(quantity, "gte", low), quantities.compared(quantity, "lte", high)))
    return quantities.within(quantity, low.value, high.value)


def _constant(quantity: Quantity) -> Fraction:
    assert quantity.value is not None
    return quantity.value


def _text_is(row: Textual, other: Textual | TextLiteral) -> Condition:
    return In(row.term, (other.text,)) if isinstance(other, TextLiteral) else Equal(row.term, other.term)


def _truth_is(row: Logical, other: Logical | TruthLiteral) -> Condition:
    return In(row.term, (other.value,)) if isinstance(other, TruthLiteral) else Equal(row.term, other.term)


def _equality(node: "exp.Expr", row: Textual | Logical, sign: str, equal: Condition) -> Condition:
    if sign not in ("eq", "neq"):
        raise _unordered(node, row)
    return equal if sign == "eq" else Not(equal)


def _unordered(node: "exp.Expr", row: Operand) -> InvalidRequest:
    return InvalidRequest(f"{_name(node)} is {row.describe}: it has no order; use =, <>, IN or LIKE")


def _mismatch(node: "exp.Expr", row: Operand) -> InvalidRequest:
    match row:
        case Numeric() if not is_literal(row):
            wanted = "a number"
        case Dated():
            wanted = "a date, as 'YYYY-MM-DD'"
        case Timed():
            wanted = "a time, as '2013-03-10T14:30:00'"
        case Textual():
            wanted = "a 'text'"
        case Logical(_, int()):
            wanted = "TRUE or FALSE"
        case Logical():
            return _two_conditions()
        case _:
            return InvalidRequest(f"a comparison needs a column on one side, not {node.sql()[:40]!r}. {ALLOWED}")
    return InvalidRequest(f"{_name(node)} is {row.describe}: compare it with {wanted}")


def _two_conditions() -> InvalidRequest:
    return InvalidRequest(
        "conditions are not compared with each other: combine them with AND, OR and NOT, as in age >= 18 AND age < 65"
    )


def _name(node: "exp.Expr") -> str:
    return str(node.name or node.sql())[:40]


def _negated(node: "exp.Expr", positive: Condition) -> Condition:
    return Not(positive) if node.args.get("negate") else positive


_CACHED = 1024


class Unreadable(InvalidRequest):
    """A text that is not an expression."""


class Expression(NamedTuple):
    """What is computed of a row, the column that it is, and that column as a number to be added up, if it is one."""

    term: Term
    column: Column
    number: Number | None = None


@lru_cache(_CACHED)
def expression(text: str, declared: ColumnScope) -> Expression:
    """The expression of a text, or `InvalidRequest`."""
    try:
        tree = parsed(text, "an expression", declared.words)
    except InvalidRequest as error:
        raise Unreadable(str(error)) from None
    found = _as_column(ConditionTyper(declared).values.read(tree))
    if exceeds(found.term, MOST_NODES):
        raise InvalidRequest(
            f"an expression may have at most {MOST_NODES} operations: declare parts as derived columns"
        )
    return found


def _as_column(operand: Operand) -> Expression:
    match operand:
        case Numeric() if not is_literal(operand):
            return _number(operand)
        case Dated():
            return _date(operand)
        case Timed(quantity, timestamp):
            return Expression(quantity.top.term, timestamp)
        case Textual(term, column, keys):
            return Expression(term, column or Category(keys or ()))
        case Logical():
            return Expression(operand.term, Boolean())
    raise InvalidRequest("an expression needs a column: a literal is the same for every row")


def _number(operand: Numeric) -> Expression:
    if operand.column is not None:
        return Expression(operand.quantity.top.term, operand.column, as_number(operand.column))
    if operand.keys is None:
        quantity, number = clamped(operand.quantity, None, None, None)
        return Expression(quantity.top.term, number, number)
    quantity, number = clamped(operand.quantity, None, None, Fraction(1))  # keys are whole numbers, not steps of 5
    return Expression(quantity.top.term, Category(operand.keys), number)


def as_number(column: Column) -> Number | None:
    """The column itself, if it can be added up."""
    return column if isinstance(column, Number) else None


def _date(operand: Dated) -> Expression:
    whole = operand.quantity.top
    if operand.column is not None:
        return Expression(whole.term, operand.column)
    if not (is_day(Fraction(whole.least)) and is_day(Fraction(whole.most)) and whole.least < whole.most):
        raise InvalidRequest("these dates might be before the year 1 or after 9999: move them by fewer days")
    return Expression(whole.term, Date(spelled(whole.least), spelled(whole.most)))

"""An expression as a column: what `sum("arr_delay - dep_delay")` adds up, or `count(by="month(day)")` groups by.

An expression is a text in the language of `where`; its parts are read by `values`. As a column it is a number with
bounds and a step that follow from those of its columns (or from CLAMP), a date, a category or a truth value. Exactly
one function reads it, from public facts alone, so that a request means the same on every engine and at every time.

>>> from counterpoint.sources.declaring.columns import number
>>> from counterpoint.sources.declaring.declaration import Declaration, Named
>>> flights = Declaration(None, 1, "replace", (Named("late", number(-60, 600)), Named("miles", number(0, 5000))))
>>> expression("late > 15", flights)
Expression(term=Truth(condition=Within(column=0, low=16, high=None)), column=Boolean(), number=None)
>>> expression("late * miles / 60", flights).number.describe()
'a number from -5000 to 50000 in steps of 1/60'
>>> expression("miles / late", flights)
Traceback (most recent call last):
...
counterpoint.errors.InvalidRequest: a quotient has no grid of its own: say to which step it is rounded, as in ...
"""

from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from counterpoint.errors import InvalidRequest
from counterpoint.sources.asking.where import MOST_NODES, ConditionReader
from counterpoint.sources.declaring.columns import Boolean, Category, Column, Number
from counterpoint.sources.declaring.dates import Date, is_day, spelled
from counterpoint.sources.expressions.operands import Dated, Logical, Numeric, Operand, Textual, Timed, is_literal
from counterpoint.sources.expressions.parsing import parsed
from counterpoint.sources.expressions.terms import Term, Truth, exceeds
from counterpoint.sources.expressions.values import clamped

if TYPE_CHECKING:
    from counterpoint.sources.declaring.declaration import Declaration

_CACHED = 1024


class Unreadable(InvalidRequest):
    """A text that is no expression."""


class Expression(NamedTuple):
    """What is computed of a row, the column that it is, and that column as a number to be added up, if it is one."""

    term: Term
    column: Column
    number: Number | None = None


@lru_cache(_CACHED)
def expression(text: str, declared: "Declaration") -> Expression:
    """The expression of a text, or `InvalidRequest`."""
    try:
        tree = parsed(text, "an expression", declared.words)
    except InvalidRequest as error:
        raise Unreadable(str(error)) from None
    found = _as_column(ConditionReader(declared).values.read(tree))
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
        case Logical(condition, term):
            return Expression(Truth(condition) if term is None else term, Boolean())
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

"""What a part of an expression is: a number, a date, an instant, a text, a truth value, or a literal.

>>> is_literal(Written("2020-02-29")), Written("CA").describe
(True, "a 'text'")
"""

from typing import NamedTuple, TypeAlias

from counterpoint.sources.asking.conditions import Condition
from counterpoint.sources.declaring.columns import Column
from counterpoint.sources.declaring.timestamps import Timestamp
from counterpoint.sources.expressions.quantities import Quantity
from counterpoint.sources.expressions.terms import Term


class Numeric(NamedTuple):
    """A number; `keys` lists its values, if they are few and public."""

    quantity: Quantity
    column: Column | None = None
    keys: tuple[int, ...] | None = None

    @property
    def describe(self) -> str:
        """The declared column, or a number."""
        return "a number" if self.column is None else self.column.describe()


class Dated(NamedTuple):
    """A date, as days since 1970-01-01."""

    quantity: Quantity
    column: Column | None = None

    @property
    def describe(self) -> str:
        """The declared column, or a date."""
        return "a date" if self.column is None else self.column.describe()


class Timed(NamedTuple):
    """An instant, as microseconds since 1970-01-01 in UTC, of a column with a zone."""

    quantity: Quantity
    column: Timestamp

    @property
    def describe(self) -> str:
        """The declared column."""
        return self.column.describe()


class Textual(NamedTuple):
    """A text that a row has; `keys` lists the texts that it can be, if they are public."""

    term: Term
    column: Column | None = None
    keys: tuple[str, ...] | None = None

    @property
    def describe(self) -> str:
        """The declared column, or a text."""
        return "a text" if self.column is None else self.column.describe()


class Logical(NamedTuple):
    """Whether a condition holds; `term` is the column of truth values that says so, if there is one."""

    condition: Condition
    term: Term | None = None

    @property
    def describe(self) -> str:
        """A truth value."""
        return "true or false"


class Written(NamedTuple):
    """A text literal: a text, or a date or an instant where it meets one."""

    text: str

    @property
    def describe(self) -> str:
        """A text."""
        return "a 'text'"


class TruthLiteral(NamedTuple):
    """TRUE or FALSE."""

    value: bool

    @property
    def describe(self) -> str:
        """A truth value."""
        return "TRUE or FALSE"


Operand: TypeAlias = Numeric | Dated | Timed | Textual | Logical | Written | TruthLiteral


def is_literal(operand: Operand) -> bool:
    """Whether this is the same for every row."""
    return isinstance(operand, Written | TruthLiteral) or (
        isinstance(operand, Numeric) and operand.quantity.value is not None
    )

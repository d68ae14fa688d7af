"""Parses the text of a condition or an expression, and names the types that its parts have.

sqlglot parses the text once, after every token has been checked: no comments, no second statement, no unknown word.
`values` and `conditions` then read every node, and engines get new SQL that is written from what they read, so nothing
of the text but its literals reaches an engine. A text that is too long, nested too deeply or outside the language
raises `InvalidRequest`.

>>> parsed("distance > 3 * air_time", "where", frozenset()).key
'gt'
>>> parsed("distance; DROP TABLE flights", "where", frozenset())
Traceback (most recent call last):
...
counterpoint.errors.InvalidRequest: where does not support ';'. It may contain columns, literals, + - * /, ...
>>> is_literal(TextLiteral("2020-02-29")), TextLiteral("CA").describe
(True, "a 'text'")
"""

from collections.abc import Collection
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeAlias

from counterpoint.errors import InvalidRequest
from counterpoint.schema.columns import Column, readable
from counterpoint.schema.expressions.quantities import Quantity
from counterpoint.schema.expressions.tree import AsBoolean, Condition, Term
from counterpoint.schema.times import Timestamp

if TYPE_CHECKING:
    from sqlglot import exp

LONGEST = 10_000
"""The most characters of a text."""
MOST_TOKENS = 2_000
DEEPEST = 20
"""The largest depth of parentheses and CASEs, or of NOTs or minus signs in a row."""

ALLOWED = (
    "It may contain columns, literals, + - * /, = <> < <= > >=, IN, BETWEEN, LIKE, IS NULL, AND, OR, NOT, CASE, "
    "parentheses, YEAR, QUARTER, MONTH, DAY, WEEKDAY, HOUR, DATE, ABS, COALESCE and CLAMP"
)
_WORDS = "AND OR NOT IN BETWEEN LIKE IS NULL TRUE FALSE CASE WHEN THEN ELSE END DATE"
_MARKS = "EQ NEQ LT LTE GT GTE L_PAREN R_PAREN COMMA DASH DOT PLUS STAR SLASH VAR IDENTIFIER STRING NUMBER"
_TOKENS = frozenset((*_WORDS.split(), *_MARKS.split()))
_DEEPER = {"L_PAREN": 1, "R_PAREN": -1, "CASE": 1, "END": -1}


class ColumnScope(Protocol):
    """The columns that a text may name: those of a declaration."""

    @property
    def words(self) -> frozenset[str]:
        """The names, and the parts of dotted ones, that a text may mention without quotes."""

    def index(self, name: object) -> int:
        """The index of the stored column of this name, or `InvalidRequest`."""

    def column(self, name: object) -> Column:
        """What is declared of the column of this name."""


def parsed(text: object, what: str, names: Collection[str]) -> "exp.Expr":
    """The syntax tree of a text, after its tokens were checked: no comments, no second statement, no unknown words.

    `what` is what errors call the text. Words that are `names` of columns are known.
    """
    if not isinstance(text, str) or len(text) > LONGEST:
        raise InvalidRequest(f"{what} must be a text of at most {LONGEST} characters. {ALLOWED}")
    readable(text)
    import sqlglot  # noqa: PLC0415 - takes a tenth of a second, and only filters need it
    from sqlglot import exp  # noqa: PLC0415

    try:
        tokens = sqlglot.tokenize(text, read="duckdb")
    except Exception:  # every failure of the tokenizer is the same refusal
        raise InvalidRequest(f"{what} cannot be parsed. {ALLOWED}") from None
    _check_tokens([(token.token_type.name, token.text, bool(token.comments)) for token in tokens], what, names)
    try:
        return sqlglot.parse_one(text, read="duckdb", into=exp.Condition)
    except Exception:  # also RecursionError
        raise InvalidRequest(f"{what} cannot be parsed. {ALLOWED}; put unusual names in double quotes") from None


def _check_tokens(tokens: list[tuple[str, str, bool]], what: str, names: Collection[str]) -> None:
    if not tokens:
        raise InvalidRequest(f"{what} is empty: leave it out to ask about all rows. {ALLOWED}")
    if len(tokens) > MOST_TOKENS:
        raise InvalidRequest(f"{what} must have at most {MOST_TOKENS} words. {ALLOWED}")
    depth = run = 0
    for kind, text, commented in tokens:
        if commented:
            raise InvalidRequest(f"{what} must not contain comments. {ALLOWED}")
        if kind not in _TOKENS and text not in names:
            raise InvalidRequest(f"{what} does not support {text[:40]!r}. {ALLOWED}")
        depth += _DEEPER.get(kind, 0)
        run = run + 1 if kind in ("NOT", "DASH") else 0
        if max(depth, run) > DEEPEST:
            raise InvalidRequest(f"{what} is nested more than {DEEPEST} deep. {ALLOWED}")


def only(node: "exp.Expr", *known: str) -> "exp.Expr":
    """The node itself, if it has no other arguments than the known ones: an overlooked one would change its meaning."""
    if any(value for name, value in node.args.items() if name not in known):
        raise unknown(node)
    return node


def unknown(node: "exp.Expr") -> InvalidRequest:
    """The refusal of a node that is not in the language."""
    return InvalidRequest(f"an expression does not support {node.sql()[:40]!r}. {ALLOWED}")


def operands(node: "exp.Expr") -> "list[exp.Expr]":
    """The operands of a chain of equal connectives, read from its left-deep tree without recursion."""
    found, sign = [], node.key
    while node.key == sign:
        only(node, "this", "expression")
        found.append(node.expression)
        node = node.this
    return [node, *reversed(found)]


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
    """A condition as a value; `column` is the column of truth values that it is, if it is one."""

    condition: Condition
    column: int | None = None

    @property
    def term(self) -> Term:
        """The truth value, missing where the condition is UNKNOWN."""
        return AsBoolean(self.condition) if self.column is None else self.column

    @property
    def describe(self) -> str:
        """A truth value."""
        return "true or false"


class TextLiteral(NamedTuple):
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


Operand: TypeAlias = Numeric | Dated | Timed | Textual | Logical | TextLiteral | TruthLiteral


def is_literal(operand: Operand) -> bool:
    """Whether this is the same for every row."""
    return isinstance(operand, TextLiteral | TruthLiteral) or (
        isinstance(operand, Numeric) and operand.quantity.value is not None
    )

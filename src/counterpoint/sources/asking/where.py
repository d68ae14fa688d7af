"""The parser of `where`: turns the text into a `Condition`, checking every token and every node.

The language: columns, literals (numbers, 'texts', TRUE, FALSE), `=  <>  <  <=  >  >=`, IN, BETWEEN, LIKE, IS [NOT]
NULL, AND, OR, NOT and parentheses. Numbers are compared with numbers, texts with texts (by =, <>, IN, LIKE), dates with
'YYYY-MM-DD', truth values with truth values. Anything else, and a text that is too long or nested too deeply, raises
`InvalidRequest`. sqlglot parses the text, this module reads the tree, and the emitter writes new SQL from the
condition, so that nothing of the user's text but literals reaches an engine.

>>> from counterpoint.sources.declaring.columns import number, text
>>> from counterpoint.sources.declaring.declaration import Declaration, Named
>>> people = Declaration(None, 1, "replace", (Named("age", number(0, 120)), Named("state", text())))
>>> condition("age > 17.5 AND state IN ('CA', 'NY')", people)
AllOf(parts=(Within(column=0, low=18, high=None), OneOf(column=1, keys=('CA', 'NY'))))
>>> condition("age / 0 = 1", people)
Traceback (most recent call last):
...
counterpoint.errors.InvalidRequest: where does not support '/'. It may contain columns, literals, = <> < <= > >=, ...
"""

from collections.abc import Callable
from fractions import Fraction
from math import ceil, floor
from typing import TYPE_CHECKING, TypeAlias

from counterpoint.errors import InvalidParameter, InvalidRequest
from counterpoint.numbers.exact import exact
from counterpoint.sources.asking.conditions import AllOf, AnyOf, Condition, Like, Missing, Not, OneOf, between, present
from counterpoint.sources.declaring.columns import Column, Key, readable
from counterpoint.sources.declaring.dates import Date
from counterpoint.sources.declaring.declaration import Declaration

if TYPE_CHECKING:
    from sqlglot import exp

LONGEST = 10_000
"""The most characters of a where."""
MOST_TOKENS = 2_000
DEEPEST = 20
"""The largest depth of parentheses, or of NOTs in a row."""
MOST_WILDCARDS = 100
"""The most % and _ of one LIKE: an engine may recurse for each, and run out of stack on some texts."""

Literal: TypeAlias = bool | Fraction | str

_ALLOWED = "It may contain columns, literals, = <> < <= > >=, IN, BETWEEN, LIKE, IS NULL, AND, OR, NOT and parentheses"
_TOKENS = {
    "VAR",
    "IDENTIFIER",
    "STRING",
    "NUMBER",
    "EQ",
    "NEQ",
    "LT",
    "LTE",
    "GT",
    "GTE",
    "AND",
    "OR",
    "NOT",
    "IN",
    "BETWEEN",
    "LIKE",
    "IS",
    "NULL",
    "TRUE",
    "FALSE",
    "L_PAREN",
    "R_PAREN",
    "COMMA",
    "DASH",
    "DOT",
}
_MIRRORED = {"eq": "eq", "neq": "neq", "lt": "gt", "gt": "lt", "lte": "gte", "gte": "lte"}


def condition(where: object, declared: Declaration) -> Condition:
    """The condition of a where, or `InvalidRequest` that says what is allowed."""
    return _Reader(declared).read(_parsed(where, declared))


def _parsed(where: object, declared: Declaration) -> "exp.Expr":
    """The syntax tree, after the tokens have been checked: no comments, no second statement, no unknown words."""
    if not isinstance(where, str) or len(where) > LONGEST:
        raise InvalidRequest(f"where must be a text of at most {LONGEST} characters. {_ALLOWED}")
    readable(where)
    import sqlglot  # noqa: PLC0415 - takes a tenth of a second, and only filters need it
    from sqlglot import exp  # noqa: PLC0415

    try:
        tokens = sqlglot.tokenize(where, read="duckdb")
    except Exception:  # every failure of the tokenizer is the same refusal
        raise InvalidRequest(f"where cannot be parsed. {_ALLOWED}") from None
    names = {part for named in declared.columns for part in named.name.split(".") if part.isidentifier()}
    _check_tokens([(token.token_type.name, token.text, bool(token.comments)) for token in tokens], names)
    try:
        return sqlglot.parse_one(where, read="duckdb", into=exp.Condition)
    except Exception:  # also RecursionError
        raise InvalidRequest(f"where cannot be parsed. {_ALLOWED}; put unusual names in double quotes") from None


def _check_tokens(tokens: list[tuple[str, str, bool]], names: set[str]) -> None:
    if not 0 < len(tokens) <= MOST_TOKENS:
        raise InvalidRequest(f"where must have between 1 and {MOST_TOKENS} words. {_ALLOWED}")
    depth = run = 0
    for kind, text, commented in tokens:
        if commented:
            raise InvalidRequest(f"where must not contain comments. {_ALLOWED}")
        if kind not in _TOKENS and text not in names:
            raise InvalidRequest(f"where does not support {text[:40]!r}. {_ALLOWED}")
        depth += {"L_PAREN": 1, "R_PAREN": -1}.get(kind, 0)
        run = run + 1 if kind in ("NOT", "DASH") else 0
        if max(depth, run) > DEEPEST:
            raise InvalidRequest(f"where is nested more than {DEEPEST} deep. {_ALLOWED}")


class _Reader:
    """Reads a syntax tree; every node and every argument of a node must be one that is listed here."""

    def __init__(self, declared: Declaration) -> None:
        self.declared = declared

    def read(self, node: "exp.Expr") -> Condition:
        readers: dict[str, Callable[[exp.Expr], Condition]] = {
            "paren": lambda inner: self.read(_only(inner, "this").this),
            "not": lambda inner: Not(self.read(_only(inner, "this").this)),
            "and": lambda inner: AllOf(tuple(map(self.read, _operands(inner)))),
            "or": lambda inner: AnyOf(tuple(map(self.read, _operands(inner)))),
            "column": self.truth,
            "is": self.missing,
            "in": self.one_of,
            "between": self.between,
            "like": self.like,
            **dict.fromkeys(_MIRRORED, self.comparison),
        }
        reader = readers.get(node.key)
        if reader is None:
            raise _unknown(node)
        return reader(node)

    def named(self, node: "exp.Expr") -> tuple[int, Column]:
        """The column that a node names, with its index."""
        if node.key == "paren":
            return self.named(_only(node, "this").this)
        if node.key != "column" or _only(node, "this", "table").this.key != "identifier":
            raise InvalidRequest(f"where compares a column with literals, not {node.sql()[:40]!r}. {_ALLOWED}")
        of = node.args.get("table")
        index = self.declared.find(node.name if of is None else f"{of.name}.{node.name}")
        return index, self.declared.columns[index].column

    def truth(self, node: "exp.Expr") -> Condition:
        index, column = self.named(node)
        if column.kind != "boolean":
            raise InvalidRequest(f"{node.name} is {column.describe()}: compare it with a literal")
        return OneOf(index, (True,))

    def missing(self, node: "exp.Expr") -> Condition:
        _only(node, "this", "expression")
        if node.expression.key != "null":
            raise InvalidRequest(f"IS is followed by NULL or NOT NULL. {_ALLOWED}")
        return Missing(self.named(node.this)[0])

    def comparison(self, node: "exp.Expr") -> Condition:
        _only(node, "this", "expression")
        left, right, sign = node.this, node.expression, node.key
        if _is_literal(left):
            left, right, sign = right, left, _MIRRORED[sign]
        index, column = self.named(left)
        value = self.literal(right, left.name, column)
        if sign == "eq":
            return _equal(index, column, (value,))
        if sign == "neq":
            return AllOf((present(index), Not(_equal(index, column, (value,)))))
        if not isinstance(value, Fraction):
            raise InvalidRequest(f"{left.name} is {column.describe()}: it has no order; use =, <>, IN or LIKE")
        steps = value / column.grid
        low = {"gt": floor(steps) + 1, "gte": ceil(steps)}.get(sign)
        high = {"lt": ceil(steps) - 1, "lte": floor(steps)}.get(sign)
        return between(index, low, high)

    def one_of(self, node: "exp.Expr") -> Condition:
        _only(node, "this", "expressions", "negate")
        index, column = self.named(node.this)
        values = tuple(self.literal(item, node.this.name, column) for item in node.expressions)
        if not values:
            raise InvalidRequest(f"IN is followed by one or more literals in parentheses. {_ALLOWED}")
        return _negated(node, _equal(index, column, values))

    def between(self, node: "exp.Expr") -> Condition:
        _only(node, "this", "low", "high", "negate")
        index, column = self.named(node.this)
        low, high = (self.literal(node.args[name], node.this.name, column) for name in ("low", "high"))
        if not (isinstance(low, Fraction) and isinstance(high, Fraction)):
            raise InvalidRequest(f"{node.this.name} is {column.describe()}: it has no order; use =, <>, IN or LIKE")
        return _negated(node, between(index, ceil(low / column.grid), floor(high / column.grid)))

    def like(self, node: "exp.Expr") -> Condition:
        _only(node, "this", "expression", "negate")
        index, column = self.named(node.this)
        pattern = self.literal(node.expression, node.this.name, column)
        if not isinstance(pattern, str):
            raise InvalidRequest(f"{node.this.name} is {column.describe()}: LIKE is for texts")
        if "\\" in pattern:
            raise InvalidRequest("a LIKE pattern must not contain a backslash: engines disagree about its meaning")
        if pattern.count("%") + pattern.count("_") > MOST_WILDCARDS:
            raise InvalidRequest(
                f"a LIKE pattern has at most {MOST_WILDCARDS} wildcards (% and _): combine several conditions with AND"
            )
        return _negated(node, Like(index, pattern))

    def literal(self, node: "exp.Expr", name: str, column: Column) -> Literal:
        """A literal of the type that fits this column."""
        value = _literal(node)
        if isinstance(column, Date):
            if isinstance(value, str):
                return Fraction(column.key(value))
            raise InvalidRequest(f"{name} is {column.describe()}: compare it with a date, as 'YYYY-MM-DD'")
        wanted = {"number": Fraction, "text": str, "boolean": bool}[column.kind]
        if not isinstance(value, wanted):
            words = {"number": "a number", "text": "a 'text'", "boolean": "TRUE or FALSE"}[column.kind]
            raise InvalidRequest(f"{name} is {column.describe()}: compare it with {words}")
        return value


def _equal(index: int, column: Column, values: tuple[Literal, ...]) -> Condition:
    """Equality with one of the values; a number between two steps of the grid equals no stored value."""
    keys: list[Key] = []
    for value in values:
        steps = value / column.grid if isinstance(value, Fraction) else value
        if not isinstance(steps, Fraction):
            keys.append(steps)
        elif steps.denominator == 1 and -(2**63) <= steps < 2**63:
            keys.append(steps.numerator)
    return OneOf(index, tuple(keys))


def _literal(node: "exp.Expr") -> Literal:
    if node.key == "boolean":
        return bool(node.this)
    if node.key == "neg" and node.this.key == "literal" and not node.this.is_string:
        value = _literal(node.this)
        assert isinstance(value, Fraction)
        return -value
    if node.key != "literal":
        raise InvalidRequest(f"where compares a column with literals, not {node.sql()[:40]!r}. {_ALLOWED}")
    if node.is_string:
        return str(node.this)
    try:
        return exact(str(node.this), "a number")
    except InvalidParameter as error:
        raise InvalidRequest(f"where: {error}") from None


def _is_literal(node: "exp.Expr") -> bool:
    return node.key in ("literal", "boolean", "neg", "null")


def _negated(node: "exp.Expr", positive: Condition) -> Condition:
    return Not(positive) if node.args.get("negate") else positive


def _operands(node: "exp.Expr") -> "list[exp.Expr]":
    """The operands of a chain of equal connectives, read from its left-deep tree without recursion."""
    operands, sign = [], node.key
    while node.key == sign:
        _only(node, "this", "expression")
        operands.append(node.expression)
        node = node.this
    return [node, *reversed(operands)]


def _only(node: "exp.Expr", *known: str) -> "exp.Expr":
    """The node itself, if it has no other arguments than the known ones: an overlooked one would change its meaning."""
    if any(value for name, value in node.args.items() if name not in known):
        raise _unknown(node)
    return node


def _unknown(node: "exp.Expr") -> InvalidRequest:
    return InvalidRequest(f"where does not support {node.sql()[:40]!r}. {_ALLOWED}")

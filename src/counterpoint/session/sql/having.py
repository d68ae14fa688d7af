"""HAVING: a condition on a row of the answer, which has been released. It costs nothing and reads no rows.

It compares keys and aggregates with literals, by SQL's three truth values: None stands for unknown, as where the noise
left no mean.

>>> from counterpoint.session.sql.reading import parsed
>>> tree = parsed("SELECT carrier, COUNT(*) AS n FROM f GROUP BY carrier HAVING n > 2 AND carrier <> 'AA'")
>>> found = read_having(tree.args["having"].this, lambda node: ["carrier", "n"].index(node.name))
>>> found
Every(parts=(Compared(place=1, sign='gt', literal=2), Compared(place=0, sign='neq', literal='AA')))
>>> found.holds(("UA", 3)), found.holds(("AA", 3)), found.holds(("UA", None))
(True, False, None)
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from operator import eq, ge, gt, le, lt, ne
from typing import TYPE_CHECKING, Any, TypeAlias

from counterpoint.errors import InvalidParameter
from counterpoint.numbers import Exact
from counterpoint.numbers.exact import exact
from counterpoint.session.sql.reading import only, unsupported
from counterpoint.sources.expressions.parsing import operands

if TYPE_CHECKING:
    from sqlglot import exp

Row: TypeAlias = Sequence[Any]
Truth: TypeAlias = bool | None
Literal: TypeAlias = bool | Exact | str
Place: TypeAlias = "Callable[[exp.Expr], int]"
"""In which place of a row the value is that a node names."""

_WORKS = (
    "compare a key or an aggregate of SELECT with literals, by = <> < <= > >=, IN, BETWEEN, IS NULL, AND, OR and NOT"
)
_SIGNS: dict[str, Callable[[Any, Any], bool]] = {"eq": eq, "neq": ne, "lt": lt, "lte": le, "gt": gt, "gte": ge}
_MIRRORED = {"eq": "eq", "neq": "neq", "lt": "gt", "gt": "lt", "lte": "gte", "gte": "lte"}


class Having(ABC):
    """A condition on a row."""

    @abstractmethod
    def holds(self, row: Row) -> Truth:
        """Whether it holds of this row; None if that is unknown."""

    @abstractmethod
    def literals(self) -> "Iterator[Compared]":
        """The comparisons with literals in it."""


@dataclass(frozen=True, slots=True)
class Compared(Having):
    """A value compared with a literal."""

    place: int
    sign: str
    literal: Literal

    def holds(self, row: Row) -> Truth:
        """Unknown where the value is missing. A float stands for the decimal it is shown as: 0.1 equals 0.1."""
        value = row[self.place]
        if value is None or self.is_unlike(value):
            return None
        shown = Fraction(float.__repr__(value)) if isinstance(value, float) else value
        return _SIGNS[self.sign](shown, self.literal)

    def is_unlike(self, value: object) -> bool:
        """Whether one of the two is a text and the other is none: such values are in no order."""
        return isinstance(value, str) != isinstance(self.literal, str)

    def literals(self) -> "Iterator[Compared]":
        """Itself."""
        yield self


@dataclass(frozen=True, slots=True)
class IsNull(Having):
    """A value that is missing."""

    place: int

    def holds(self, row: Row) -> Truth:
        """Never unknown."""
        return row[self.place] is None

    def literals(self) -> "Iterator[Compared]":
        """None."""
        yield from ()


@dataclass(frozen=True, slots=True)
class Negated(Having):
    """NOT: what is unknown stays so."""

    part: Having

    def holds(self, row: Row) -> Truth:
        """The opposite."""
        truth = self.part.holds(row)
        return None if truth is None else not truth

    def literals(self) -> "Iterator[Compared]":
        """Those of its part."""
        yield from self.part.literals()


@dataclass(frozen=True, slots=True)
class Every(Having):
    """AND: false if one part is, else unknown if one part is."""

    parts: tuple[Having, ...]

    def holds(self, row: Row) -> Truth:
        """Whether all parts hold."""
        truths = [part.holds(row) for part in self.parts]
        return False if False in truths else None if None in truths else True

    def literals(self) -> "Iterator[Compared]":
        """Those of its parts."""
        for part in self.parts:
            yield from part.literals()


def some(*parts: Having) -> Having:
    """OR, by De Morgan's law.

    >>> some(IsNull(0), Compared(1, "eq", True)).holds((None, None))
    True
    """
    return Negated(Every(tuple(map(Negated, parts))))


def read_having(node: "exp.Expr", place: Place) -> Having:
    """The condition that a tree is."""
    if node.key == "paren":
        return read_having(only(node, "this").this, place)
    if node.key == "not":
        return Negated(read_having(only(node, "this").this, place))
    if node.key in ("and", "or"):
        parts = tuple(read_having(operand, place) for operand in operands(node))
        return Every(parts) if node.key == "and" else some(*parts)
    reader = _ATOMS.get(node.key)
    if reader is None:
        raise unsupported("such condition in HAVING", node, _WORKS)
    found = reader(only(node, *_ARGUMENTS[node.key], "negate"), place)
    return Negated(found) if node.args.get("negate") else found


def _comparison(node: "exp.Expr", place: Place) -> Having:
    left, right, sign = node.this, node.expression, node.key
    if left.key in ("literal", "boolean", "neg"):
        left, right, sign = right, left, _MIRRORED[sign]
    return Compared(place(left), sign, _literal(right))


def _one_of(node: "exp.Expr", place: Place) -> Having:
    if not node.expressions:
        raise unsupported("IN but with literals", node, _WORKS)
    return some(*(Compared(place(node.this), "eq", _literal(item)) for item in node.expressions))


def _between(node: "exp.Expr", place: Place) -> Having:
    at, low, high = place(node.this), _literal(node.args["low"]), _literal(node.args["high"])
    return Every((Compared(at, "gte", low), Compared(at, "lte", high)))


def _missing(node: "exp.Expr", place: Place) -> Having:
    if node.expression.key != "null":
        raise unsupported("such condition in HAVING", node, _WORKS)
    return IsNull(place(node.this))


def _truth(node: "exp.Expr", place: Place) -> Having:
    """A key that is a truth value."""
    return Compared(place(node), "eq", True)


_ATOMS: "dict[str, Callable[[exp.Expr, Place], Having]]" = {
    **dict.fromkeys(_SIGNS, _comparison),
    "in": _one_of,
    "between": _between,
    "is": _missing,
    "column": _truth,
}
_ARGUMENTS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys((*_SIGNS, "is"), ("this", "expression")),
    "in": ("this", "expressions"),
    "between": ("this", "low", "high"),
    "column": ("this", "table"),
}


def _literal(node: "exp.Expr") -> Literal:
    """The value of a literal: a number exactly, a text, or a truth value."""
    if node.key == "boolean":
        return bool(node.this)
    unsigned = only(node, "this").this if node.key == "neg" else node
    if unsigned.key != "literal" or (node.key == "neg" and unsigned.is_string):
        raise unsupported("HAVING but with literals", node, _WORKS)
    if unsigned.is_string:
        return str(unsigned.this)
    try:
        number = exact(str(unsigned.this), "a number")
    except InvalidParameter as error:
        raise unsupported("number of this size", node, str(error)) from None
    return number if unsigned is node else Exact(-number)

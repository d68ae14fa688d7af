"""Outputs that are computed from aggregates, such as `100.0 * SUM(late) / COUNT(*)`.

The aggregates are answered, and the arithmetic is done on what was released: it costs nothing, and the result knows its
error (`answers.arithmetic`). There are `+`, `-`, `*` and `/` over aggregates and numbers. A result is missing where an
aggregate in it is missing, and where it divides by 0.

>>> from counterpoint.sql_requests.select import sql
>>> query = sql("SELECT SUM(delay) / COUNT(*) AS mean FROM flights")
>>> *parts, mean = query.values
>>> parts, mean.of([60, 4])
(['_0', '_1'], 15.0)
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import add, mul, sub, truediv
from typing import TYPE_CHECKING, Any

from counterpoint.errors import InvalidParameter
from counterpoint.numbers import Exact
from counterpoint.numbers.exact import exact
from counterpoint.queries.ranked import RankedChoice
from counterpoint.queries.request import Request
from counterpoint.sql_requests.aggregates import is_aggregate
from counterpoint.sql_requests.parse import only, unsupported

if TYPE_CHECKING:
    from sqlglot import exp

_OPERATIONS: dict[str, Callable[[Any, Any], Any]] = {"add": add, "sub": sub, "mul": mul, "div": truediv}
_WORKS = "an output is a column of GROUP BY, an aggregate, or +, -, * and / over aggregates and numbers"


class Computation(ABC):
    """Arithmetic over the aggregates of a row."""

    @abstractmethod
    def of(self, aggregates: Sequence[Any]) -> Any:
        """The result for these aggregates, in the order of the request; None if it is missing."""


@dataclass(frozen=True, slots=True)
class AggregateTerm(Computation):
    """One of the aggregates, by its number in a row."""

    number: int

    def of(self, aggregates: Sequence[Any]) -> Any:
        """Its answer."""
        return aggregates[self.number]


@dataclass(frozen=True, slots=True)
class LiteralTerm(Computation):
    """A number in the text."""

    value: Exact

    def of(self, aggregates: Sequence[Any]) -> Any:
        """The number: an int where it is whole, so that arithmetic with whole numbers stays whole."""
        return self.value.numerator if self.value.denominator == 1 else self.value


@dataclass(frozen=True, slots=True)
class Operation(Computation):
    """Two computations and the sign between them."""

    sign: str
    left: Computation
    right: Computation

    def of(self, aggregates: Sequence[Any]) -> Any:
        """The result; None if a side is missing, or it divides by 0."""
        left, right = self.left.of(aggregates), self.right.of(aggregates)
        if left is None or right is None or (self.sign == "div" and right == 0):
            return None
        return _OPERATIONS[self.sign](left, right)


def is_computed(node: "exp.Expr") -> bool:
    """Whether a node is arithmetic over aggregates, and not one of them."""
    return not is_aggregate(node) and any(map(is_aggregate, node.walk()))


def read_computation(node: "exp.Expr", number: "Callable[[exp.Expr], int]") -> Computation:
    """The computation that a tree is; `number` says which of the aggregates a node is."""
    if is_aggregate(node):
        return AggregateTerm(number(node))
    if node.key == "paren":
        return read_computation(only(node, "this").this, number)
    if node.key == "neg":
        return Operation("sub", LiteralTerm(Exact(0)), read_computation(only(node, "this").this, number))
    if node.key == "literal" and not node.is_string:
        try:
            return LiteralTerm(exact(str(node.this), "a number"))
        except InvalidParameter as error:
            raise unsupported("a number of this size", node, str(error)) from None
    if node.key in _OPERATIONS:
        only(node, "this", "expression", "typed", "safe")
        return Operation(node.key, read_computation(node.this, number), read_computation(node.expression, number))
    raise unsupported("arithmetic on aggregates other than + - * /", node, _WORKS)


def check_is_number(request: Request, node: "exp.Expr") -> None:
    """Refuse arithmetic on a chosen candidate: its error is a number of rows, which is in no units of a result."""
    if isinstance(request, RankedChoice):
        raise unsupported(
            "arithmetic on a chosen value", node, "select MIN, MAX or a quantile by itself, and compute in Python"
        )

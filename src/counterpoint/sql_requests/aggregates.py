"""Aggregates: which request each of them asks. A function that is not listed here is refused by its name.

The names mean what they mean in DuckDB. `VAR_POP` and `STDDEV_POP` divide by the number of values; those that divide by
one less (`VARIANCE`, `STDDEV`, ...) are refused, since no request computes them.

>>> from counterpoint.sql_requests.parse import parsed
>>> from counterpoint.sql_requests.parse import Scope
>>> tree = parsed("SELECT COUNT(delay) FILTER (WHERE month = 3), MEDIAN(delay) FROM flights")
>>> rows, middle = (read_aggregate(node, Scope.read(tree)) for node in tree.expressions)
>>> rows.request("day = 1", None, None)
Count(where='(day = 1) AND ((NOT delay IS NULL) AND (month = 3))')
>>> middle.request(None, None, None)
Quantile(column='delay', q=0.5)
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from counterpoint.errors import InvalidRequest
from counterpoint.queries.aggregates import count, count_distinct, mean, sum
from counterpoint.queries.extremes import maximum, minimum
from counterpoint.queries.grouping import By
from counterpoint.queries.quantiles import quantile
from counterpoint.queries.request import Request
from counterpoint.queries.variance import stdev, variance
from counterpoint.schema.columns import KeyOrTuple
from counterpoint.sql_requests.parse import Scope, function_name, only, unsupported

if TYPE_CHECKING:
    from sqlglot import exp

Keys: TypeAlias = tuple[KeyOrTuple, ...] | None
Make: TypeAlias = Callable[[str | None, By | None, Keys], Request]
"""Makes a request of a condition, the columns to group by and their keys."""

KNOWN = (
    "COUNT(*), COUNT(column), COUNT(DISTINCT unit), SUM, AVG, VAR_POP, STDDEV_POP, MIN, MAX, MEDIAN, "
    "QUANTILE_DISC(column, q) and PERCENTILE_DISC(q) WITHIN GROUP (ORDER BY column)"
)


@dataclass(frozen=True, slots=True)
class Aggregate:
    """One aggregate: the request it makes, and the condition that it has beside WHERE."""

    make: Make
    only: str | None = None
    unit: str | None = None
    """The column whose values it counts as units, if it does."""

    def request(self, where: str | None, by: By | None, keys: Keys) -> Request:
        """The request, under the WHERE of the query and for its groups."""
        return self.make(both(where, self.only), by, keys)


def both(*conditions: str | None) -> str | None:
    """The text of all these conditions together; None if there are none.

    >>> both("a = 1 OR b = 1", None, "c = 1"), both(None)
    ('(a = 1 OR b = 1) AND (c = 1)', None)
    """
    given = [condition for condition in conditions if condition is not None]
    return " AND ".join(f"({one})" for one in given) if len(given) > 1 else given[0] if given else None


def read_aggregate(node: "exp.Expr", scope: Scope) -> Aggregate:
    """The aggregate that a node is, or a refusal by its name."""
    if node.key == "filter":
        condition = only(only(node, "this", "expression").expression, "this").this
        inner = read_aggregate(node.this, scope)
        return Aggregate(inner.make, both(inner.only, scope.text(condition)), inner.unit)
    reader = _READERS.get(node.key)
    if reader is None:
        raise _unknown(node)
    return reader(node, scope)


def is_aggregate(node: "exp.Expr") -> bool:
    """Whether a node is one of the aggregates."""
    return node.key == "filter" or node.key in _READERS


def _count(node: "exp.Expr", scope: Scope) -> Aggregate:
    counted = only(node, "this", "big_int").args.get("this")
    if counted is None or counted.key == "star":
        if counted is not None:
            only(counted)
        return Aggregate(lambda where, by, keys: count(where) if by is None else count(where, by=by, keys=keys))
    if counted.key == "distinct":
        return _count_units(counted, node, scope)
    present = scope.text(_present(counted))
    return Aggregate(lambda where, by, keys: count(where) if by is None else count(where, by=by, keys=keys), present)


def _count_units(distinct: "exp.Expr", node: "exp.Expr", scope: Scope) -> Aggregate:
    """COUNT(DISTINCT column) of the column that identifies a unit, which is for the source to say."""
    counted = only(distinct, "expressions").expressions
    if len(counted) != 1:
        raise unsupported("COUNT(DISTINCT ...) of several columns", node, "count the column that identifies a unit")

    return Aggregate(lambda where, by, keys: count_distinct(where, by=by, keys=keys), unit=scope.column(counted[0]))


def _present(column: "exp.Expr") -> "exp.Expr":
    from sqlglot import exp  # noqa: PLC0415 - see `parse.py`

    value = column.copy() if column.key == "column" else exp.Paren(this=column.copy())
    return exp.Not(this=exp.Is(this=value, expression=exp.Null()))


def _of_a_column(ask: Callable[..., Request]) -> "Callable[[exp.Expr, Scope], Aggregate]":
    """An aggregate of one column that takes `by`."""

    def read(node: "exp.Expr", scope: Scope) -> Aggregate:
        column = scope.value(only(node, "this").this)
        return Aggregate(lambda where, by, keys: ask(column, where, by=by, keys=keys))

    return read


def _quantile_of(column: "exp.Expr", share: str, scope: Scope) -> Aggregate:
    name = scope.value(column)

    quantile(name, share)  # which checks the share
    return Aggregate(lambda where, by, keys: quantile(name, share, None, where, by=by, keys=keys))


def _extreme(ask: Callable[..., Request]) -> "Callable[[exp.Expr, Scope], Aggregate]":
    """MIN or MAX: a value at a small rank, since one row decides what the smallest and the largest are."""

    def read(node: "exp.Expr", scope: Scope) -> Aggregate:
        column = scope.value(only(node, "this").this)
        return Aggregate(lambda where, by, keys: ask(column, None, None, where, by=by, keys=keys))

    return read


def _median(node: "exp.Expr", scope: Scope) -> Aggregate:
    return _quantile_of(only(node, "this").this, "0.5", scope)


def _quantile(argument: str) -> "Callable[[exp.Expr, Scope], Aggregate]":
    """QUANTILE(column, q), whose q the parser calls by this name."""

    def read(node: "exp.Expr", scope: Scope) -> Aggregate:
        return _quantile_of(only(node, "this", argument).this, _share(node, node.args.get(argument)), scope)

    return read


def _within_group(node: "exp.Expr", scope: Scope) -> Aggregate:
    """PERCENTILE_DISC(q) WITHIN GROUP (ORDER BY column)."""
    inner, order = only(node, "this", "expression").this, node.expression
    if inner.key not in ("percentilecont", "percentiledisc") or order.key != "order":
        raise _unknown(node)
    only(inner, "this")
    ordered = only(order, "expressions").expressions
    if len(ordered) != 1 or ordered[0].args.get("desc") or ordered[0].args.get("nulls_first"):
        raise unsupported("this order in WITHIN GROUP", node, "order by one column, upward")
    return _quantile_of(only(ordered[0], "this").this, _share(node, inner.this), scope)


def _share(node: "exp.Expr", share: "exp.Expr | None") -> str:
    if share is None or share.key != "literal" or share.is_string:
        raise unsupported(
            "a quantile at anything other than one number",
            node,
            "write a number between 0 and 1, as in QUANTILE_DISC(age, 0.9)",
        )
    return str(share.this)


def _sample(node: "exp.Expr", scope: Scope) -> Aggregate:
    population = "VAR_POP" if node.key == "variance" else "STDDEV_POP"
    raise unsupported(
        "the variance of a sample",
        node,
        f"{population} divides by the number of values, which differs little where there are many",
    )


_READERS: "dict[str, Callable[[exp.Expr, Scope], Aggregate]]" = {
    "count": _count,
    "sum": _of_a_column(sum),
    "avg": _of_a_column(mean),
    "variancepop": _of_a_column(variance),
    "stddevpop": _of_a_column(stdev),
    "variance": _sample,
    "stddev": _sample,
    "stddevsamp": _sample,
    "min": _extreme(minimum),
    "max": _extreme(maximum),
    "median": _median,
    "quantile": _quantile("quantile"),
    "percentilecont": _quantile("expression"),
    "percentiledisc": _quantile("expression"),
    "withingroup": _within_group,
}


def _unknown(node: "exp.Expr") -> InvalidRequest:
    return unsupported(f"the function {function_name(node)}", node, f"SELECT takes {KNOWN}")

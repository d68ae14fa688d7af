"""`sql(text)`: a SELECT, read clause by clause into a `SQLQuery`. Whatever is not listed here is refused by name.

    SELECT columns of GROUP BY and aggregates, each perhaps AS name
    FROM source [LEFT JOIN another USING (key)] [WHERE condition] [GROUP BY columns]
    [HAVING condition on the answer] [ORDER BY outputs of the answer] [LIMIT number]

The dialect is DuckDB's. A row of the answer has the keys of GROUP BY first and then the aggregates; an output of SELECT
is one of its places. HAVING and ORDER BY name keys and aggregates that are there: the exact values behind them are not
released, and an aggregate that SELECT lacks would have to be paid for. The keys of GROUP BY are declared, or else WHERE
lists them, as in `WHERE carrier IN ('UA', 'AA')`.

>>> query = sql("SELECT carrier, COUNT(*) AS n FROM flights WHERE month <= 3 GROUP BY carrier HAVING n > 100")
>>> query.request
Histogram(column='carrier', where='month <= 3')
>>> sql("SELECT arr_delay FROM flights")
Traceback (most recent call last):
...
counterpoint.errors.UnsupportedSQL: Counterpoint's SQL does not support raw columns in SELECT (at ...
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from math import prod
from typing import TYPE_CHECKING, TypeVar

from counterpoint.errors import InvalidParameter, InvalidRequest, UnsupportedSQL
from counterpoint.numbers.exact import exact
from counterpoint.queries.grouping import By, read_by
from counterpoint.queries.request import Request
from counterpoint.queries.select import Select
from counterpoint.schema.columns import MOST_KEYS
from counterpoint.schema.expressions.syntax import operands
from counterpoint.sql_requests.aggregates import KNOWN, Aggregate, Keys, is_aggregate, read_aggregate
from counterpoint.sql_requests.computed import Computation, check_is_number, is_computed, read_computation
from counterpoint.sql_requests.parse import SHAPE, Scope, only, parsed, unsupported, written
from counterpoint.sql_requests.query import Output, SQLQuery, read_having, read_limit, read_order

if TYPE_CHECKING:
    from sqlglot import exp

T = TypeVar("T")

_CLAUSES = ("expressions", "from_", "joins", "where", "group", "having", "order", "limit")
_SUFFIXES = ("", "_error", "_rank_error")
"""What the names of the columns of an answer end in: each aggregate has a column of values, and one of errors."""
_RAW = f"rows are never shown: name it in GROUP BY, or take an aggregate of it; SELECT takes {KNOWN}"


def sql(text: str) -> SQLQuery:
    """What a SELECT asks, for `session.ask` and `session.would_cost`; `session.sql` asks it at once.

    >>> sql("SELECT AVG(arr_delay) FROM flights").request
    Mean('arr_delay')
    """
    tree = parsed(text)
    try:
        return replace(_read(tree), text=text)
    except RecursionError:
        raise UnsupportedSQL("queries that are nested so deeply", "", "ask for less at a time") from None


def _read(tree: "exp.Expr") -> SQLQuery:
    if tree.args.get("distinct"):
        raise unsupported("SELECT DISTINCT", tree, "name the columns in GROUP BY, with an aggregate such as COUNT(*)")
    only(tree, *_CLAUSES)
    scope = Scope.read(tree)
    clause = tree.args.get("where")
    condition = None if clause is None else only(clause, "this").this
    where = None if condition is None else scope.text(condition)
    grouped = tuple(_grouped(tree, scope))
    columns = tuple(column for column, _ in grouped)
    by = read_by(columns) if columns else None
    groups = AskedRows(where, by, _listed(condition, columns, scope))
    selected = Outputs.read(tree, scope, columns, groups)
    having, order, limit = (tree.args.get(name) for name in ("having", "order", "limit"))
    query = SQLQuery(
        scope.source,
        scope.joins,
        selected.request(),
        columns,
        selected.outputs,
        selected.parts,
        None if having is None else read_having(only(having, "this").this, partial(selected.place, "HAVING")),
        () if order is None else read_order(order, partial(selected.place, "ORDER BY")),
        None if limit is None else read_limit(limit),
        selected.units,
        tuple(alias for _, alias in grouped if alias is not None),
    )
    if not columns and (having or order or limit):
        raise unsupported("HAVING, ORDER BY or LIMIT without GROUP BY", tree, "the answer has one row: leave them out")
    return query


@dataclass(frozen=True, slots=True)
class AskedRows:
    """What all aggregates of a query share: the rows that count, and how they are grouped."""

    where: str | None
    by: By | None
    keys: Keys

    def ask(self, aggregate: Aggregate) -> Request:
        """The request of an aggregate of these rows."""
        return aggregate.request(self.where, self.by, self.keys)


@dataclass(frozen=True, slots=True)
class Outputs:
    """The outputs of SELECT, and behind the keys the requests of its aggregates and what is computed of them.

    A computation stands behind the requests that it names; these need not be outputs.
    """

    scope: Scope
    by: tuple[str, ...]
    groups: AskedRows
    outputs: tuple[Output, ...]
    values: tuple[Request | Computation, ...]
    units: tuple[str, ...] = ()

    @staticmethod
    def read(tree: "exp.Expr", scope: Scope, by: tuple[str, ...], groups: AskedRows) -> "Outputs":
        """The outputs, each a column of GROUP BY or an aggregate."""
        selected = Outputs(scope, by, groups, (), ())
        for node in tree.expressions:
            named = node.key == "alias"
            inner = only(node, "this", "alias").this if named else node
            selected = selected._with(inner, str(node.alias) if named else None, node)
        if not selected.values:
            raise unsupported("queries without an aggregate", tree, "which keys occur is private: add COUNT(*)")
        for place, column in enumerate(by):
            if place not in [output.place for output in selected.outputs]:
                raise unsupported(f"GROUP BY {column} without it in SELECT", tree, f"add {column} to SELECT")
        return selected

    def _with(self, node: "exp.Expr", alias: str | None, whole: "exp.Expr") -> "Outputs":
        key = self._key(node)
        if key is not None:
            name = alias or (str(node.name) if node.key == "column" else written(node))
            return self._named(name, alias, key, whole)
        name = alias or written(node)
        if not is_computed(node):
            wider, place = self._asking(node)
            if place in [output.place for output in self.outputs]:
                raise unsupported("the same aggregate twice", node, "once is enough, and costs once")
            return wider._named(name, alias, place, whole)
        wider = self
        for part in _aggregates(node):
            wider, _ = wider._asking(part)
            check_is_number(wider.groups.ask(read_aggregate(part, self.scope)), part)
        computation = read_computation(node, lambda part: wider._asking(part)[1] - len(self.by))
        place = len(self.by) + len(wider.values)
        return replace(wider, values=(*wider.values, computation))._named(name, alias, place, whole)

    def _asking(self, node: "exp.Expr") -> "tuple[Outputs, int]":
        """With the request of an aggregate, if it is not there yet; and its place in a row."""
        aggregate = self._aggregate(node)
        request = self.groups.ask(aggregate)
        if request in self.values:
            return self, len(self.by) + self.values.index(request)
        units = (*self.units, *([aggregate.unit] if aggregate.unit else []))
        return replace(self, values=(*self.values, request), units=units), len(self.by) + len(self.values)

    def _named(self, name: str, alias: str | None, place: int, whole: "exp.Expr") -> "Outputs":
        """With an output of this name, which stands for what is in this place."""
        taken = {f"{output.name}{suffix}" for output in self.outputs for suffix in _SUFFIXES}
        if name in taken or any(f"{name}{suffix}" == output.name for output in self.outputs for suffix in _SUFFIXES):
            raise unsupported("two outputs of one name", whole, "give one of them another name with AS")
        if alias in self.by and place != self.by.index(alias):
            raise unsupported("an alias that is a column of GROUP BY", whole, "choose another name")
        return replace(self, outputs=(*self.outputs, Output(name, place)))

    def _key(self, node: "exp.Expr") -> int | None:
        """Which of the columns of GROUP BY a node is, if it is one."""
        if node.key == "star" or (node.key == "column" and node.this.key == "star"):
            return None
        try:
            name = self.scope.value(node)
        except InvalidRequest:  # it is an aggregate, or else it is refused as one that is not there
            return None
        return self.by.index(name) if name in self.by else None

    def _aggregate(self, node: "exp.Expr") -> Aggregate:
        if node.key == "column" and node.this.key == "identifier":
            raise unsupported("raw columns in SELECT", node, _RAW)
        if node.key == "star" or (node.key == "column" and node.this.key == "star"):
            raise unsupported("SELECT *", node, _RAW)
        if node.key in ("literal", "boolean", "null", "neg"):
            raise unsupported("constants in SELECT", node, SHAPE)
        return read_aggregate(node, self.scope)

    def request(self) -> Request:
        """The one request for all aggregates."""
        requests = tuple(value for value in self.values if isinstance(value, Request))
        if len(requests) == 1:
            return requests[0]
        names = tuple(part for part in self.parts if isinstance(part, str))
        try:
            return Select(names, requests)
        except InvalidRequest as error:
            raise UnsupportedSQL("these aggregates together", "", str(error)) from None

    @property
    def parts(self) -> tuple[str | Computation, ...]:
        """What the request calls its parts, and what is computed of them."""
        named = {output.place - len(self.by): output.part for output in self.outputs}
        return tuple(
            value if isinstance(value, Computation) else named.get(number) or self._hidden(number)
            for number, value in enumerate(self.values)
        )

    def _hidden(self, number: int) -> str:
        """What the request calls an aggregate that is no output: no output has this name."""
        name = f"_{number}"
        while name in [output.part for output in self.outputs]:
            name = f"_{name}"
        return name

    def place(self, clause: str, node: "exp.Expr") -> int:
        """In which place of a row the value is that a node of HAVING or ORDER BY names."""
        if node.key == "paren":
            return self.place(clause, only(node, "this").this)
        if clause == "ORDER BY" and node.key == "literal" and not node.is_string:
            return _numbered(node, self.outputs).place
        if node.key == "column" and node.this.key == "identifier" and node.args.get("table") is None:
            for output in self.outputs:
                if output.name == node.name:
                    return output.place
        key = self._key(node)
        if key is not None:
            return key
        if node.key == "column":
            raise unsupported(
                f"{clause} of a raw column",
                node,
                f"rows are compared in WHERE; {clause} takes keys and aggregates of SELECT, as the answer has them",
            )
        if is_aggregate(node):
            request = self.groups.ask(read_aggregate(node, self.scope))
            if request in self.values:
                return len(self.by) + self.values.index(request)
            raise unsupported(
                f"{clause} of an aggregate that SELECT lacks",
                node,
                "add it to SELECT, where it is answered and charged",
            )
        raise unsupported(
            f"this expression in {clause}", node, "name a column of GROUP BY, an aggregate of SELECT or its AS"
        )


def _grouped(tree: "exp.Expr", scope: Scope) -> "Iterator[tuple[str, str | None]]":
    """The columns of GROUP BY, each with the alias that it was written as; a number stands for an output."""
    group = tree.args.get("group")
    if group is None:
        return
    if not only(group, "expressions").expressions:
        raise unsupported("GROUP BY without columns", tree, "name columns after it, or leave it out")
    aliased = {
        str(node.alias): node.this
        for node in tree.expressions
        if node.key == "alias" and not any(map(is_aggregate, node.walk()))
    }
    for written_node in group.expressions:
        node, alias = written_node, None
        if node.key == "literal" and not node.is_string:
            node = _numbered(node, tree.expressions)
            node = node.this if node.key == "alias" else node
        elif node.key == "column" and node.args.get("table") is None and node.name in aliased:
            alias, node = str(node.name), aliased[str(node.name)]
        if any(map(is_aggregate, node.walk())):
            raise unsupported("GROUP BY of an aggregate", node, "group by columns, or by parts of dates")
        value = scope.value(node)
        yield value, None if value == alias else alias


def _aggregates(node: "exp.Expr") -> "Iterator[exp.Expr]":
    """The aggregates of an expression, from left to right."""
    if is_aggregate(node):
        yield node
        return
    for part in node.iter_expressions():
        yield from _aggregates(part)


def _numbered(node: "exp.Expr", outputs: Sequence[T]) -> T:
    """The output that a number stands for, counted from 1."""
    number = str(node.this)
    if not number.isdecimal() or len(number) > 5 or not 1 <= int(number) <= len(outputs):
        raise unsupported("an output of this number", node, f"SELECT has {len(outputs)} of them, counted from 1")
    return outputs[int(number) - 1]


def _listed(condition: "exp.Expr | None", columns: tuple[str, ...], scope: Scope) -> Keys:
    """The keys of these columns, if WHERE lists them for all of these, by IN or by =; None if it does not."""
    lists = dict(_lists(condition, scope)) if condition is not None else {}
    if not columns or any(column not in lists for column in columns):
        return None
    values = [lists[column] for column in columns]
    if prod(map(len, values)) > MOST_KEYS:
        return None
    return tuple(values[0]) if len(columns) == 1 else tuple(product(*values))


def _lists(condition: "exp.Expr", scope: Scope) -> "Iterator[tuple[str, list[bool | int | str]]]":
    """Each column whose values a part of WHERE lists, with the values."""
    for part in operands(condition) if condition.key == "and" else [condition]:
        if part.key not in ("in", "eq") or part.this.key != "column" or part.args.get("negate"):
            continue
        keys = [_key(literal) for literal in (part.expressions if part.key == "in" else [part.expression])]
        if keys and None not in keys:
            yield scope.column(part.this), list(dict.fromkeys(key for key in keys if key is not None))


def _key(node: "exp.Expr") -> bool | int | str | None:
    """A literal that can be a key: a text, a whole number or a truth value."""
    if node.key == "boolean":
        return bool(node.this)
    if node.key != "literal":
        return None
    if node.is_string:
        return str(node.this)
    try:
        number = exact(str(node.this))
    except InvalidParameter:  # which the request refuses with its own words
        return None
    return number.numerator if number.denominator == 1 else None

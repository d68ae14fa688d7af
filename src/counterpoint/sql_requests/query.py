"""The query that a SELECT stands for: one request, and what HAVING, ORDER BY and LIMIT do with its released answer.

Only the request reaches the data. HAVING, ORDER BY and LIMIT are postprocessing of the noisy answer, so they cost
nothing. HAVING has SQL's three truth values: None is UNKNOWN, as where the noise left no mean. Missing values come last
in both directions, unless NULLS FIRST is written, and texts are ordered by code points, as DuckDB orders them. Whatever
can be refused is refused before anything is charged.

>>> from counterpoint.sql_requests.select import sql
>>> query = sql("SELECT COUNT(*) AS n, carrier FROM flights GROUP BY carrier HAVING n > 1 ORDER BY n DESC LIMIT 2")
>>> query.having
Compared(place=1, sign='gt', literal=1)
>>> query.arrange([("AA", 4), ("DL", 1), ("UA", 9), ("B6", None)])
[('UA', 9), ('AA', 4)]
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from operator import eq, ge, gt, itemgetter, le, lt, ne
from typing import TYPE_CHECKING, Any, TypeAlias

from counterpoint.errors import InvalidParameter, InvalidRequest, UnsupportedSQL
from counterpoint.numbers import Exact
from counterpoint.numbers.exact import exact
from counterpoint.queries.aggregates import count
from counterpoint.queries.request import PreparedQuery, Request, on_source
from counterpoint.queries.source import Source
from counterpoint.schema.columns import MOST_KEYS, KeyOrTuple
from counterpoint.schema.expressions.syntax import operands
from counterpoint.sql_requests.computed import Computation
from counterpoint.sql_requests.parse import Join, only, unsupported

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
        """Whether one of the two is a text and the other is not: such values have no order."""
        return isinstance(value, str) != isinstance(self.literal, str)

    def literals(self) -> "Iterator[Compared]":
        """Itself."""
        yield self


@dataclass(frozen=True, slots=True)
class HasNoValue(Having):
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

    >>> some(HasNoValue(0), Compared(1, "eq", True)).holds((None, None))
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
        raise unsupported("this condition in HAVING", node, _WORKS)
    found = reader(only(node, *_ARGUMENTS[node.key], "negate"), place)
    return Negated(found) if node.args.get("negate") else found


def _comparison(node: "exp.Expr", place: Place) -> Having:
    left, right, sign = node.this, node.expression, node.key
    if left.key in ("literal", "boolean", "neg"):
        left, right, sign = right, left, _MIRRORED[sign]
    return Compared(place(left), sign, _literal(right))


def _one_of(node: "exp.Expr", place: Place) -> Having:
    if not node.expressions:
        raise unsupported("IN without literals", node, _WORKS)
    return some(*(Compared(place(node.this), "eq", _literal(item)) for item in node.expressions))


def _between(node: "exp.Expr", place: Place) -> Having:
    at, low, high = place(node.this), _literal(node.args["low"]), _literal(node.args["high"])
    return Every((Compared(at, "gte", low), Compared(at, "lte", high)))


def _missing(node: "exp.Expr", place: Place) -> Having:
    if node.expression.key != "null":
        raise unsupported("this condition in HAVING", node, _WORKS)
    return HasNoValue(place(node.this))


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
        raise unsupported("HAVING with anything other than literals", node, _WORKS)
    if unsigned.is_string:
        return str(unsigned.this)
    try:
        number = exact(str(unsigned.this), "a number")
    except InvalidParameter as error:
        raise unsupported("a number of this size", node, str(error)) from None
    return number if unsigned is node else Exact(-number)


@dataclass(frozen=True, slots=True)
class Order:
    """The place of the values to sort by, which way, and whether missing ones come first."""

    place: int
    downward: bool = False
    missing_first: bool = False


def arranged(rows: Sequence[Row], having: Having | None, order: Sequence[Order], limit: int | None) -> list[Row]:
    """The rows for which HAVING is true, in this order, at most `limit`; equal rows keep their order."""
    kept = [row for row in rows if having is None or having.holds(row) is True]
    for by in reversed(order):  # sorting is stable
        gone = [row for row in kept if row[by.place] is None]
        there = [row for row in kept if row[by.place] is not None]
        there.sort(key=itemgetter(by.place), reverse=by.downward)
        kept = gone + there if by.missing_first else there + gone
    return kept[:limit]


def read_order(node: "exp.Expr", place: Place) -> tuple[Order, ...]:
    """What ORDER BY sorts by."""
    terms = [only(term, "this", "desc", "nulls_first") for term in only(node, "expressions").expressions]
    return tuple(
        Order(place(term.this), bool(term.args.get("desc")), bool(term.args.get("nulls_first"))) for term in terms
    )


def read_limit(node: "exp.Expr") -> int:
    """The number in LIMIT."""
    number = only(node, "expression").expression
    if number.key != "literal" or number.is_string or not str(number.this).isdecimal():
        raise unsupported("LIMIT with anything other than a whole number", node, "write LIMIT 5")
    digits = str(number.this).lstrip("0") or "0"
    return MOST_KEYS if len(digits) > len(str(MOST_KEYS)) else int(digits)


@dataclass(frozen=True, slots=True)
class Output:
    """A column of SELECT: what it is called, and its place in a row of keys and aggregates."""

    name: str
    place: int

    @property
    def part(self) -> str:
        """What a request for several aggregates calls it: its name, if that is a word.

        >>> Output("n", 1).part, Output("COUNT(*)", 1).part
        ('n', 'column1')
        """
        return self.name if self.name.isidentifier() else f"column{self.place}"


@dataclass(frozen=True, slots=True)
class SQLQuery:
    """What a text asks: a request about a source, and how its answer is shown."""

    source: str
    joins: tuple[Join, ...]
    request: Request
    by: tuple[str, ...]
    outputs: tuple[Output, ...]
    values: tuple[str | Computation, ...]
    """What comes in a row behind the keys: parts of the request by their names, and what is computed of them."""
    having: Having | None
    order: tuple[Order, ...]
    limit: int | None
    units: tuple[str, ...] = ()
    """The columns that it takes for those that identify a unit."""
    aliases: tuple[str, ...] = ()
    """The names in GROUP BY that it takes for those that SELECT gives with AS."""
    text: str = field(default="", compare=False)
    """The text itself."""

    @property
    def heads(self) -> tuple[str, ...]:
        """What SELECT calls the columns of GROUP BY."""
        return tuple(output.name for place in range(len(self.by)) for output in self.outputs if output.place == place)

    @property
    def aggregates(self) -> tuple[Output, ...]:
        """The outputs that are aggregates."""
        return tuple(output for output in self.outputs if output.place >= len(self.by))

    @property
    def requested(self) -> tuple[str, ...]:
        """What the request calls its parts."""
        return tuple(value for value in self.values if isinstance(value, str))

    def row(self, answers: Sequence[Any]) -> list[Any]:
        """The values behind the keys: these answers of the request's parts, and what is computed of them."""
        found: list[Any] = []
        given = iter(answers)
        for value in self.values:
            found.append(next(given) if isinstance(value, str) else value.of(found))
        return found

    def on(self, source: Source) -> Request:
        """The request for this source: about the one in FROM if there are several, seeing those that are joined.

        A source that is alone has no name: FROM may call it as it likes.
        """
        request = self._on(source)
        for alias in self.aliases:
            if _has_column(source, self.source if source.names else None, alias):
                raise UnsupportedSQL(
                    f"an alias in GROUP BY that is also a column, {alias!r}", "", "choose another name with AS"
                )
        return request

    def _on(self, source: Source) -> Request:
        for column in self.units:
            if column != source.unit:
                known = "" if source.unit is None else f": {source.unit}"
                raise InvalidRequest(
                    f"COUNT(DISTINCT {column}) is answered of the column that identifies a unit{known}; how many "
                    "values others have is not"
                )
        if not source.names:
            self._refuse_joins()
            return self.request
        if self.source not in source.names:
            raise InvalidRequest(f"there is no source {self.source!r} for FROM; there are: {', '.join(source.names)}")
        seen = source.seen_from(self.source)
        for join in self.joins:
            if set(seen.get(join.name, ())) != set(join.on):
                known = "; ".join(_join_text(self.source, name, on) for name, on in seen.items()) or "no others"
                wrong = _join_text(self.source, join.name, join.on)
                raise InvalidRequest(
                    f"a row of {self.source} cannot find one of {join.name} by {wrong}. Rows see {known}"
                )
        return on_source(self.source, self.request)

    def _refuse_joins(self) -> None:
        for join in self.joins:
            raise InvalidRequest(
                f"this session has one source, so {join.name} cannot be joined: give it several, as in "
                f"Session(Sources({self.source}=..., {join.name}=..., unit='person'), within=...)"
            )

    def check(self, prepared: PreparedQuery) -> None:
        """Refuse a HAVING that compares a key with a literal of another type; the keys are public."""
        for compared in self.having.literals() if self.having is not None and prepared.names else ():
            place = compared.place
            if place < len(self.by) and any(compared.is_unlike(_values(key)[place]) for key in prepared.names or ()):
                raise UnsupportedSQL(
                    "comparing texts with numbers", f"HAVING, {self.by[place]}", "write texts in 'single quotes'"
                )

    def arrange(self, rows: Sequence[Row]) -> list[Row]:
        """The rows of the answer, keys and then aggregates, that are shown, in their order."""
        return arranged(rows, self.having, self.order, self.limit)


def _join_text(source: str, name: str, on: Sequence[tuple[str, str, str]]) -> str:
    """A join as a query writes it.

    >>> _join_text("visits", "rates", [("currency", "=", "currency"), ("day", ">=", "since")])
    'LEFT JOIN rates ON visits.currency = rates.currency AND visits.day >= rates.since'
    >>> _join_text("visits", "people", [("person", "=", "person")])
    'LEFT JOIN people USING (person)'
    """
    if all((sign, own) == ("=", other) for own, sign, other in on):
        return f"LEFT JOIN {name} USING ({', '.join(own for own, _, _ in on)})"
    return f"LEFT JOIN {name} ON {' AND '.join(f'{source}.{own} {sign} {name}.{other}' for own, sign, other in on)}"


def _values(key: KeyOrTuple) -> tuple[bool | int | str, ...]:
    return key if isinstance(key, tuple) else (key,)


def _has_column(source: Source, of: str | None, name: str) -> bool:
    """Whether a source declares a column of this name, which GROUP BY in DuckDB prefers to an alias."""
    try:
        source.prepare(count(where=f'NOT "{name}" IS NULL', of=of))
    except InvalidRequest:
        return False
    return True

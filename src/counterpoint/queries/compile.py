"""Compiling a request: its plan on a declaration, its public facts, and the SQL that answers it. No data is touched.

A view says which stored rows a source asks: their table, the condition that narrows them to a part, in how many parts
of a column a unit has rows, and how many in each, if that was limited. Where neighbours differ otherwise than the
declaration says (by one update of a live table, or by fewer rows), it has a second declaration that says how.

>>> from counterpoint.queries.aggregates import count
>>> from counterpoint.schema.columns import number
>>> from counterpoint.schema.declaration import Named
>>> from counterpoint.engines.duckdb import DUCKDB
>>> declared = Declaration(None, 1, "replace", (Named("age", number(0, 120)),))
>>> compiler(declared, RowView("rows"), DUCKDB)(canonical(count(where="age >= 18"))).statements
('SELECT COUNT(*) FROM rows WHERE c0 >= 18',)
"""

from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from typing import NamedTuple

from msgspec.structs import replace

from counterpoint.encoding import decode, encode
from counterpoint.engines.dialect import Dialect
from counterpoint.errors import InvalidRequest
from counterpoint.queries.aggregates import REQUESTS
from counterpoint.queries.extremes import EXTREMES, TOPS
from counterpoint.queries.plan import ByKeys, QueryPlan, statements
from counterpoint.queries.quantiles import CHOICES
from counterpoint.queries.request import PreparedQuery, Request, describe_request
from counterpoint.queries.select import SELECTS
from counterpoint.queries.sensitivity import Groups
from counterpoint.queries.shares import SHARES
from counterpoint.queries.variance import VARIANCES
from counterpoint.schema.declaration import Declaration
from counterpoint.schema.expressions.tree import Condition

LANGUAGE: tuple[type[Request], ...] = (*REQUESTS, *SHARES, *VARIANCES, *CHOICES, *EXTREMES, *TOPS, *SELECTS)
"""The requests for rows: exactly these classes, no subclasses."""
_CACHED = 1024
_LONGEST_CACHED = 2**16
"""The most bytes of a request whose compiled form is cached: a thousand longer ones would fill the memory."""


class RowView(NamedTuple):
    """The stored rows that a source asks."""

    rows: str
    within: Condition | None = None
    reach: Mapping[str, int] = {}
    moved: Declaration | None = None
    each: Mapping[str, int] = {}
    """Of these columns, how many rows a unit has in each value; in how many values is in `reach`."""


class Compiled(NamedTuple):
    """A request, how it is answered, and everything public about the answer."""

    request: Request
    plan: QueryPlan
    prepared: PreparedQuery
    statements: tuple[str, ...]
    """One after the other, as `joined` reads what they return."""


def compiler(declared: Declaration, view: RowView, dialect: Dialect) -> Callable[[bytes], Compiled]:
    """Compiles canonical requests, with a cache of the latest that are not too long.

    The cache is keyed by the request's canonical bytes: as values, 1 and True would be one key.
    """
    compile_one = partial(compile_request, declared, view, dialect)
    cached = lru_cache(_CACHED)(compile_one)
    return lambda request: (cached if len(request) <= _LONGEST_CACHED else compile_one)(request)


def compile_request(declared: Declaration, view: RowView, dialect: Dialect, request: bytes) -> Compiled:
    """One request, from its canonical bytes; a function, as a cached method would keep a table and its engine alive."""
    asked = decode(request, Request)  # type: ignore[type-abstract]  # a family is read by its tags
    plan = asked.plan(declared)
    columns = () if plan.cells is None else plan.cells.columns
    if len(columns) == 1 and isinstance(columns[0], int):
        name = declared.columns[columns[0]].name
        plan = replace(plan, reach=min(plan.reach, view.reach.get(name, plan.reach)))
    if isinstance(plan.cells, ByKeys):
        plan = replace(plan, groups=_groups(declared, view, plan.cells))
    prepared = asked.prepare(view.moved or declared, plan)
    return Compiled(asked, plan, prepared, statements(plan, view.rows, view.within, dialect))


def _groups(declared: Declaration, view: RowView, cells: ByKeys) -> Groups | None:
    """The tightest limit on a unit's rows in each value of one of the columns that cells are keyed by."""
    limits = []
    for name, rows in view.each.items():
        if declared.index(name) in cells.columns:
            mentioned = len(cells.mentioned(cells.columns.index(declared.index(name))))
            limits.append(Groups(min(view.reach[name], mentioned), rows))
    return min(limits, key=lambda limit: limit.most * limit.rows**2, default=None)


def is_request(request: object) -> bool:
    """Whether this is one of the requests for rows."""
    return type(request) in LANGUAGE


def canonical(request: object) -> bytes:
    """A request as bytes, or `InvalidRequest` for anything else."""
    if not is_request(request):
        names = (
            "count, count_distinct, sum, mean, share, variance, stdev, histogram, ranks, quantile, median, minimum, "
            "maximum, bounds, top, keys and select"
        )
        raise InvalidRequest(
            f"a table answers {names}, as in count(where=\"state = 'CA'\"), not {describe_request(request)}"
        )
    return encode(request)

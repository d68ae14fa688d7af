"""What one row adds to the answer of a request: how a mechanism follows a request while rows arrive.

The answers to `count`, `sum`, `histogram` and `ranks` are sums over rows. So what a row adds can be read off that row
alone, and a counter that receives these contributions, one with each row, counts what the request asks for: their sum
over all rows is the request's answer, integer by integer (tests/queries/test_contributions.py compares the two). A row
that does not satisfy `where`, or in which the value is missing, adds 0.

How far a contribution moves when one row is replaced by another, or by nothing, follows from the request's corners as
in `sensitivity`, for one row.

>>> from counterpoint.queries.aggregates import count, histogram
>>> from counterpoint.schema.columns import category, number
>>> from counterpoint.schema.declaration import Named
>>> fields = Named("page", category(["home", "shop"])), Named("seconds", number(0, 600))
>>> visits = Declaration(None, 1, "replace", fields)
>>> long, pages = contribution(count(where="seconds >= 60"), visits), contribution(histogram("page"), visits)
>>> long.read(("home", 90)), long.read(("home", None)), pages.read(("shop", 5))
(1, 0, (0, 1))
>>> long.l1, pages.l1, pages.each
(1, 2, 1)
"""

from bisect import bisect_right
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from typing import Any, TypeAlias

import msgspec

from counterpoint.encoding import decode, encode
from counterpoint.errors import InvalidRequest, shown
from counterpoint.privacy.secret import Raw
from counterpoint.queries.plan import ByKeys, ByThreshold, ColumnTotal, QueryPlan, Rows
from counterpoint.queries.request import Request
from counterpoint.queries.sensitivity import Corner, sum_sensitivities
from counterpoint.schema.columns import KeyOrTuple
from counterpoint.schema.declaration import Declaration
from counterpoint.schema.expressions.evaluate import StoredRow, evaluator, term_reader
from counterpoint.schema.expressions.tree import And

_CACHED = 1024
_LONGEST_CACHED = 2**16
"""The most bytes of a request whose contribution is cached: a thousand longer ones would fill the memory."""

CellOf: TypeAlias = Callable[[StoredRow], int | None]
"""The number of the cell that a row is in; None if it is in none."""


class Contribution(msgspec.Struct, frozen=True):
    """What one row adds to the answer of a request: `read` computes it.

    Between neighbours it moves by at most `l1` in L1, `squared` in squared L2 and `each` in every coordinate; its
    `corners` are the farthest values other than 0. `keys` are the names of its coordinates, if they have names.
    """

    request: Request
    read: Callable[[Any], Raw]
    zero: Raw
    l1: int
    squared: int
    each: int
    dimensions: int | None
    grid: Fraction
    keys: tuple[KeyOrTuple, ...]
    corners: tuple[Corner, ...]

    @property
    def stored(self) -> Request:
        """What a ledger stores of it, beside the declaration."""
        return self.request


def contribution(request: Request, declared: Declaration) -> Contribution:
    """The contribution of a row with these columns, or `InvalidRequest` if the answer is not a sum over rows.

    >>> from counterpoint.queries.aggregates import mean
    >>> contribution(mean("seconds"), Declaration(None, 1, "replace", ()))
    Traceback (most recent call last):
    ...
    counterpoint.errors.InvalidRequest: Mean('seconds') cannot be followed: a mean is a ratio of two sums; follow ...
    """
    written = encode(request)  # as values, 1 and True would be one key of the cache
    return (_cached if len(written) <= _LONGEST_CACHED else _contribution)(written, declared)


def _contribution(written: bytes, declared: Declaration) -> Contribution:
    request = decode(written, Request)  # type: ignore[type-abstract]  # a family is read by its tags
    if request.why_no_updates is not None:
        raise InvalidRequest(
            f"{shown(request, 200)} cannot be followed: {request.why_no_updates}. Mechanisms follow count, sum, "
            "histogram and ranks, each with where=...; ask for anything else with a one-shot mechanism, such as Laplace"
        )
    plan = request.plan(declared)
    move = sum_sensitivities(plan.corners, 1, declared.neighbours)
    zero: Raw = 0 if plan.width is None else (0,) * plan.width
    return Contribution(
        request,
        _reader(request, declared, plan, zero),
        zero,
        move.l1,
        move.squared,
        move.each,
        plan.width,
        plan.grid,
        request.names(declared) or (),
        plan.corners,
    )


_cached = lru_cache(_CACHED)(_contribution)


def _reader(request: Request, declared: Declaration, plan: QueryPlan, zero: Raw) -> Callable[[StoredRow], Raw]:
    """A row's cells with its amount in one of them, as the request reads cells: a linear function of the cells."""
    holds = evaluator(And(()) if plan.condition is None else plan.condition)
    amount, (cells, cell_of) = _amount(plan), _cells(plan)

    def read(row: StoredRow) -> Raw:
        cell = cell_of(row) if holds(row) else None
        if cell is None:
            return zero
        found = [0] * cells
        found[cell] = amount(row)
        return request.read_cells(declared, tuple(found))

    return read


def _amount(plan: QueryPlan) -> Callable[[StoredRow], int]:
    """What a row adds to its cell: 1, or its value, or 0 where that is missing."""
    if isinstance(plan.adds, Rows):
        return lambda row: 1
    assert isinstance(plan.adds, ColumnTotal) and plan.adds.powers == (1,), (
        "this plan adds up units, or several numbers"
    )
    value = term_reader(plan.adds.column)
    return lambda row: value(row) or 0


def _cells(plan: QueryPlan) -> tuple[int, CellOf]:
    """How many cells there are, and which of them a row is in."""
    cells = plan.cells
    if cells is None:
        return 1, lambda row: 0
    if isinstance(cells, ByKeys):
        values = [term_reader(term) for term in cells.columns]
        places = {key: place for place, key in enumerate(cells.keys)}
        return len(places), lambda row: places.get(tuple(value(row) for value in values))
    assert isinstance(cells, ByThreshold), "cells that are found in the data have no number"
    value, thresholds = term_reader(cells.column), cells.thresholds

    def place_of(row: StoredRow) -> int | None:
        found = value(row)
        return None if found is None else bisect_right(thresholds, found)

    return len(thresholds) + 1, place_of

"""Answering although an engine fails: the same rows again, read as they are and added up here, one at a time.

An engine may fail because of what the rows hold: of their number, their largest value, a bug that only some rows
reach. An analyst who saw that would learn about the rows. So whatever an engine raises, the answer is computed a second
time on a plainer path: the engine only reads stored rows, and Python adds them up as the plan says (`evaluated`), in
integers without limit and in bounded memory. Both paths give the same integers. Only where that fails, too, is the
failure seen: as `DataFailed`, and the ledger closes the data for everyone until the custodian has looked.

**This is the only place where an error of an engine is caught while a request is answered.** What does not depend on
the rows passes: a connection that was lost (`DataLost`), a table that was closed (`NotAllowed`).

>>> from counterpoint.schema.expressions.tree import Between
>>> from counterpoint.queries.plan import ColumnTotal
>>> plan = QueryPlan(ColumnTotal(0, 9), ((9,),), Between(1, 18, None))
>>> rows = [(5, 41, "ann"), (7, 17, "bob"), (1, 18, "cid"), (None, 99, "dan")]
>>> fetched(plan, ["SELECT ..."], lambda sql: 1 // 0, lambda: iter(rows))
[(6,)]
"""

import logging
import zlib
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from functools import partial
from hashlib import blake2b
from typing import Any, NamedTuple, TypeVar

from counterpoint.engines.engine import SqlEngine, failed
from counterpoint.errors import INTERRUPTIONS, CounterpointError, DataFailed, DataLost
from counterpoint.queries.plan import (
    Adds,
    ByFound,
    ByKeys,
    Cells,
    ColumnTotal,
    Crossed,
    QueryPlan,
    Rows,
    Together,
    joined,
    narrowed,
)
from counterpoint.schema.expressions.evaluate import Predicate, StoredRow, TermReader, evaluator, term_reader
from counterpoint.schema.expressions.tree import And, BeforePin, Between, Condition, NotEnded

_T = TypeVar("_T")
Fetched = list[tuple[Any, ...]]
"""The rows that a statement returns."""

log = logging.getLogger("counterpoint.custodian")
"""What only the custodian may read: that an engine failed, and with which type of error, but never its words."""
log.addHandler(logging.NullHandler())  # without a handler, Python would print it where an analyst may see it

HELD = 2**19
"""How many units are remembered at a time to count each once: about 50 MB. With more, the rows are read again."""
_LONGEST_HELD = 64
_MOST_PIECES = 2**12
"""From this many pieces on a piece has a few units, and more pieces would not make it smaller."""


def either(first: Callable[[], _T], second: Callable[[], _T]) -> _T:
    """What the first path returns; where it fails, what the second does; or `DataFailed`."""
    found = _attempted(first)
    if not isinstance(found, DataFailed):
        return found
    again = _attempted(second, last=True)
    if not isinstance(again, DataFailed):
        log.warning("an engine failed (%s), and the answer was computed on the second path", found.reason)
        return again
    reason = f"{found.reason}, then {again.reason}"
    log.error("an engine failed on both paths (%s): the data are closed until they are reopened", reason)
    raise DataFailed(reason)


def failure(error: BaseException) -> DataFailed:
    """What is raised in the place of an error that came while an ask was answered, and not from an engine."""
    found = failed(error)
    log.error("an ask failed (%s): the data are closed until they are reopened", found.reason)
    return found


def _attempted(path: Callable[[], _T], *, last: bool = False) -> _T | DataFailed:
    """What a path returns, or its failure. Raised here, that would take along the frames that have seen rows.

    A connection that is lost on the last path may have been lost on the first, by what the rows made the database do.
    """
    try:
        return path()
    except DataFailed as error:
        return DataFailed(error.reason)
    except DataLost as error:
        if not last:
            raise
        return failed(error)
    except (CounterpointError, *INTERRUPTIONS):
        raise
    except BaseException as error:
        return failed(error)


def fetched(
    plan: QueryPlan, sql: Sequence[str], run: Callable[[str], Fetched], rows: Callable[[], Iterator[StoredRow]]
) -> Fetched:
    """What the statements of a plan return, or the same from the stored rows: their columns, and their unit behind."""
    return either(lambda: joined(plan, [run(one) for one in sql]), lambda: evaluated(plan, rows))


def scanned(
    engine: SqlEngine,
    wanted: Iterable[int],
    width: int,
    *,
    table: str,
    within: Condition | None,
    given: str | None = None,
) -> Iterator[StoredRow]:
    """The stored rows of a table that satisfy a condition, read from an engine; of their columns only those `wanted`.

    With `given`, the table is the result of that query, under the name `table`.
    """
    columns = sorted({column for column in wanted if column < width})
    names = ", ".join([*(f"c{column}" for column in columns), "u"])
    before = "" if given is None else f"WITH {table} AS ({given}) "
    sql = f"{before}SELECT {names} FROM ({narrowed(table, within, engine.dialect)}) AS kept"
    with closing(engine.scan(sql)) as found:
        for values in found:
            row = [None] * (width + 1)
            for column, value in zip((*columns, width), values, strict=True):
                row[column] = value
            yield row


def there(rows: Iterable[StoredRow], width: int, within: Condition | None, pin: int) -> Iterator[StoredRow]:
    """The rows of a log that satisfy a condition at a pin: their first `width` columns, and their unit behind."""
    holds = evaluator(_at_pin(And(()) if within is None else within, pin))
    return ((*row[:width], row[-1]) for row in rows if holds(row))


def _at_pin(condition: Condition, pin: int) -> Condition:
    match condition:
        case And(parts):
            return And(tuple(_at_pin(part, pin) for part in parts))
        case BeforePin(column):
            return Between(column, None, pin - 1)
        case NotEnded(column):
            return Between(column, pin, None)
        case _:
            return condition


class _TooMany(Exception):
    """More units than are remembered at a time."""


class _Piece(NamedTuple):
    """Which units are counted in a pass over the rows: all of them in one of one piece."""

    number: int
    of: int

    def has(self, unit: object) -> bool:
        """Whether a unit is counted in this pass."""
        return self.of == 1 or zlib.crc32(str(unit).encode()) % self.of == self.number


def evaluated(plan: QueryPlan, rows: Callable[[], Iterator[StoredRow]], held: int = HELD) -> Fetched:
    """What the statement of a plan returns, computed from stored rows that can be read several times.

    Where more than `held` units have to be remembered, they are counted in pieces, one pass over the rows after the
    other: how many shows in nothing but the time.

    >>> from counterpoint.queries.plan import Units
    >>> people = [(age, f"unit {age % 50}") for age in range(100)]
    >>> evaluated(QueryPlan(Units(), ((1,),), None), lambda: iter(people), held=20)
    [(50,)]
    """
    pieces = 1
    while True:
        try:
            passes = [_added_up(plan, rows, _Piece(number, pieces), held) for number in range(pieces)]
        except _TooMany:
            pieces *= 4
            held = held if pieces < _MOST_PIECES else 2**62
            continue
        first, *others = passes
        for other in others:
            for key, sums in other.items():
                mine = first.setdefault(key, [0] * plan.adds.sums)
                for place, value in enumerate(sums):
                    mine[place] += value
        return [(*key, *sums) for key, sums in first.items()]


def _added_up(
    plan: QueryPlan, rows: Callable[[], Iterator[StoredRow]], piece: _Piece, held: int
) -> dict[tuple[Any, ...], list[int]]:
    """The sums of each cell, over the rows; those that need no memory of units in the first pass alone."""
    holds = evaluator(And(()) if plan.condition is None else plan.condition)
    cell_of, adders = _cells(plan.cells), _adders(plan.adds)
    if piece.number and not any(adder.unit for adder in adders):
        return {}
    blank = [0] * len(adders)
    found: dict[tuple[Any, ...], list[int]] = {} if plan.cells is not None else {(): list(blank)}
    seen: set[tuple[Any, ...]] = set()
    for row in rows():
        cell = cell_of(row) if holds(row) else None
        if cell is None:
            continue
        sums = found.setdefault(cell, list(blank))
        for place, adder in enumerate(adders):
            if not adder.unit:
                if not piece.number:
                    sums[place] += adder.of(row)
                continue
            unit = row[-1]
            if unit is None or not piece.has(unit) or not adder.of(row):
                continue
            once = (place, _short(unit), *cell)
            if once not in seen:
                seen.add(once)
                sums[place] += 1
                if len(seen) > held:
                    raise _TooMany
    return found


def _short(unit: object) -> object:
    """A unit, or 32 bytes that stand for a long name."""
    long = isinstance(unit, str) and len(unit) > _LONGEST_HELD
    return blake2b(str(unit).encode(), digest_size=32).digest() if long else unit


class _Adder(NamedTuple):
    """What a row adds to a sum; or, if it is a `unit`'s, whether it makes its unit count."""

    of: Callable[[StoredRow], int]
    unit: bool = False


def _adders(adds: Adds, only: Condition | None = None) -> list[_Adder]:
    if isinstance(adds, Together):
        return [adder for part in adds.plans for adder in _adders(part.adds, part.condition)]
    holds = evaluator(And(()) if only is None else only)
    if isinstance(adds, ColumnTotal):
        value = term_reader(adds.column)
        return [_Adder(partial(_power, value, holds, power)) for power in adds.powers]
    return [_Adder(lambda row: int(holds(row) is True), unit=not isinstance(adds, Rows))]


def _power(value: TermReader, holds: Predicate, power: int, row: StoredRow) -> int:
    found = value(row) if holds(row) else None
    return 0 if found is None else int(found) ** power


def _cells(cells: Cells | None) -> Callable[[StoredRow], tuple[Any, ...] | None]:
    """How the statement names the cell of a row; None if it is in none."""
    if cells is None:
        return lambda row: ()
    if isinstance(cells, ByKeys):
        keys, values = frozenset(cells.keys), _values(cells.columns)
        return lambda row: key if (key := values(row)) in keys else None
    if isinstance(cells, ByFound):
        values = _values(cells.columns)
        return lambda row: None if None in (key := values(row)) else key
    if isinstance(cells, Crossed):
        of_key, of_cut = _cells(cells.keys), _cells(cells.cut)

        def both(row: StoredRow) -> tuple[Any, ...] | None:
            key, cut = of_key(row), of_cut(row)
            return None if key is None or cut is None else (*key, *cut)

        return both
    value, thresholds = term_reader(cells.column), cells.thresholds
    return lambda row: None if (found := value(row)) is None else (bisect_right(thresholds, found),)


def _values(columns: Sequence[Any]) -> Callable[[StoredRow], tuple[Any, ...]]:
    readers = [term_reader(column) for column in columns]
    return lambda row: tuple([read(row) for read in readers])

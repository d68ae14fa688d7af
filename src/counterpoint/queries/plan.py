r"""A query plan: a request checked against a declaration, and the SQL statements that answer it.

A plan is public. It filters the rows, puts each into a cell (or all into one), and adds up integers per cell. Its
corners bound the contribution of a row, from which `sensitivity` computes how far one unit moves the answer.

A statement contains only generated names (`c0`, `u`), 64-bit integers and text literals. Sums are wide enough for
2^63 rows of 2^62 steps; on Spark for 2^48 rows, which are 11 petabytes as it stores them. `tally` reads the rows that
the statements return as one integer per cell.

>>> from counterpoint.schema.expressions.tree import Not, In, Between
>>> from counterpoint.engines.spark import SPARK
>>> plan = QueryPlan(adds=Rows(), corners=((1,),), condition=None)
>>> plan.cells, plan.width, plan.reach
(None, None, 1)
>>> print(statement(QueryPlan(ColumnTotal(0, 9), ((9,),), Between(1, 18, None)), "rows"))
SELECT COALESCE(SUM(c0), 0) FROM rows WHERE c1 >= 18
>>> print(statement(QueryPlan(Rows(), ((1,),), Not(In(2, ("it's",)))), "rows", dialect=SPARK))
SELECT COUNT(*) FROM rows WHERE NOT c2 IN ('it\'s')
"""

from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from functools import reduce
from operator import add
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import msgspec
from msgspec.structs import replace

from counterpoint.engines.dialect import Dialect
from counterpoint.engines.duckdb import DUCKDB
from counterpoint.engines.emit import cast_to_wide, emit_condition, emit_term
from counterpoint.queries.sensitivity import Corner, Groups
from counterpoint.schema.columns import Key
from counterpoint.schema.expressions.tree import And, Condition, In, IsNull, Not, Term, columns_of

if TYPE_CHECKING:
    from sqlglot import exp


class Rows(msgspec.Struct, frozen=True):
    """Every row counts one."""

    @property
    def sums(self) -> int:
        """How many integers there are for each cell."""
        return 1


class Units(msgspec.Struct, frozen=True):
    """Every unit with a row counts one."""

    @property
    def sums(self) -> int:
        """How many integers there are for each cell."""
        return 1


class ColumnTotal(msgspec.Struct, frozen=True):
    """Every row adds the integer in this column or of this term, raised to each of the `powers`, unless it is missing.

    No value is farther than `farthest` from 0. The power 0 counts the rows that have a value. A request that squares
    limits the column, so that nothing overflows.
    """

    column: Term
    farthest: int
    powers: tuple[int, ...] = (1,)

    @property
    def sums(self) -> int:
        """How many integers there are for each cell."""
        return len(self.powers)


class ByKeys(msgspec.Struct, frozen=True):
    """One cell per key, which has a value for each of the columns; other rows are in no cell.

    `complete` says of each column whether the keys mention every value that it can have.
    """

    columns: tuple[Term, ...]
    keys: tuple[tuple[Key, ...], ...]
    complete: tuple[bool, ...]

    def mentioned(self, place: int) -> tuple[Key, ...]:
        """The values that the keys have for the column at this place, each once.

        >>> ByKeys((4, 2), (("CA", 1), ("NY", 1)), (True, False)).mentioned(1)
        (1,)
        """
        return tuple(dict.fromkeys(key[place] for key in self.keys))


class ByThreshold(msgspec.Struct, frozen=True):
    """Cell i holds the rows with exactly i of the ascending thresholds at or below their value: one cell more.

    `span` is the number of different values that the column can have.
    """

    column: Term
    thresholds: tuple[int, ...]
    span: int

    @property
    def columns(self) -> tuple[Term, ...]:
        """The column."""
        return (self.column,)


class Crossed(msgspec.Struct, frozen=True):
    """The cells of a threshold within each key: those of the first key, then those of the second, and so on."""

    keys: ByKeys
    cut: ByThreshold

    @property
    def columns(self) -> tuple[Term, ...]:
        """The columns of the keys, and the one that is cut."""
        return (*self.keys.columns, self.cut.column)


class ByFound(msgspec.Struct, frozen=True):
    """One cell per value (or tuple of values of several columns) that occurs.

    Which cells exist is as private as their contents, so the result is a tally.
    """

    columns: tuple[Term, ...]


class Together(msgspec.Struct, frozen=True):
    """What several plans over the same cells add up, one behind the other; each over the rows of its own condition.

    The answer to each is multiplied by its weight.
    """

    plans: "tuple[QueryPlan, ...]"
    weights: tuple[int, ...]

    @property
    def sums(self) -> int:
        """How many integers there are for each cell."""
        return sum(plan.adds.sums for plan in self.plans)


Adds: TypeAlias = Rows | Units | ColumnTotal | Together
Cells: TypeAlias = ByKeys | ByThreshold | Crossed | ByFound

EITHER_WAY: tuple[Corner, ...] = ((1,), (-1,))
"""The corners of an answer that is not a sum over rows and may go up and down; its request computes how far."""


class QueryPlan(msgspec.Struct, frozen=True):
    """What to add up, over which rows, into which cells; the width of the answer and its grid.

    `once` says that a unit contributes one point of conv(S) however many rows it has; `reach` is the largest number of
    cells of a tally in which it counts; `groups` limit its rows in the values of a column that the cells are keyed by.
    """

    adds: Adds
    corners: tuple[Corner, ...]
    condition: Condition | None
    cells: Cells | None = None
    width: int | None = None
    grid: Fraction = Fraction(1)
    once: bool = False
    reach: int = 1
    groups: Groups | None = None

    def columns(self) -> Iterator[int]:
        """The stored columns that it reads, each as often as it does."""
        if isinstance(self.adds, ColumnTotal):
            yield from columns_of(self.adds.column)
        for part in self.adds.plans if isinstance(self.adds, Together) else ():
            yield from part.columns()
        for term in () if self.cells is None else self.cells.columns:
            yield from columns_of(term)
        if self.condition is not None:
            yield from columns_of(self.condition)


_LIMB = 15
"""How many bits of a value are added up together where a sum has 64 bits."""

FEW = 2**17
"""Up to this many different values, grouping by the values first costs less than a tree over every row."""

MANY = 16
"""From this many conditions joined by AND, the engine gets them as one: DuckDB compares each with every other."""


def statement(plan: QueryPlan, table: str, within: Condition | None = None, dialect: Dialect = DUCKDB) -> str:
    """The SQL of a plan over a table of stored rows; `within` narrows it to a part."""
    from sqlglot import exp  # noqa: PLC0415 - takes a tenth of a second, and only requests need it

    conditions = [part for part in (within, plan.condition) if part is not None]
    conditions += [] if plan.cells is None else _in_cells(plan.cells)
    source = exp.select().from_(table, dialect=dialect.name)
    if conditions:
        every = And(tuple(conditions))
        written = emit_condition(every, dialect)
        source = source.where(written if _conjuncts(every) < MANY else _as_one(written))
    return _grouped(plan, source, dialect).sql(dialect=dialect.name)


class Piece(NamedTuple):
    """Part of a plan that one statement computes, and which of the plan's sums it gives for each cell."""

    plan: QueryPlan
    places: tuple[int, ...]


def pieces(plan: QueryPlan) -> tuple[Piece, ...]:
    """A plan in pieces that count units at most once each, so that no statement needs memory for several counts.

    An engine collects the units that it counts, and all COUNT(DISTINCT ...) of one statement at the same time. Within a
    limited memory they would fail from some number of units on, and the time of the answer would show it. So the pieces
    follow from the plan alone, and each is a statement by itself.

    >>> both = Together((QueryPlan(Units(), ((1,),), None), QueryPlan(Units(), ((1,),), IsNull(0))), (1, 1))
    >>> statements(QueryPlan(both, ((1,),), None), "rows")
    ('SELECT COUNT(DISTINCT u) FROM rows', 'SELECT COUNT(DISTINCT u) FROM rows WHERE c0 IS NULL')
    """
    if not isinstance(plan.adds, Together):
        return (Piece(plan, tuple(range(plan.adds.sums))),)
    counts, others, places, start = list[Piece](), list[QueryPlan](), list[int](), 0
    for part in plan.adds.plans:
        if isinstance(part.adds, Units):
            conditions = tuple(part for part in (plan.condition, part.condition) if part is not None)
            narrowed_to = And(conditions) if conditions else None
            counts.append(Piece(replace(plan, adds=part.adds, condition=narrowed_to), (start,)))
        else:
            others.append(part)
            places += range(start, start + part.adds.sums)
        start += part.adds.sums
    if not others:
        return tuple(counts)
    return (Piece(replace(plan, adds=Together(tuple(others), (1,) * len(others))), tuple(places)), *counts)


def statements(
    plan: QueryPlan, table: str, within: Condition | None = None, dialect: Dialect = DUCKDB
) -> tuple[str, ...]:
    """The SQL of each piece of a plan; an engine runs one after the other."""
    return tuple(statement(piece.plan, table, within, dialect) for piece in pieces(plan))


def joined(plan: QueryPlan, fetched: Sequence[Sequence[Sequence[Any]]]) -> list[tuple[Any, ...]]:
    """The rows of a plan's cells, from those that the statement of each piece returned.

    >>> both = Together((QueryPlan(Units(), ((1,),), None), QueryPlan(Rows(), ((1,),), None)), (1, 1))
    >>> joined(QueryPlan(both, ((1,),), None, ByKeys((4,), (("CA",), ("NY",)), (True,))), [[("CA", 7)], [("CA", 5)]])
    [('CA', 5, 7)]
    """
    if len(fetched) == 1:
        return [tuple(row) for row in fetched[0]]
    keyed = 0 if plan.cells is None else len(plan.cells.columns)
    found: dict[tuple[Any, ...], list[Any]] = {}
    for piece, rows in zip(pieces(plan), fetched, strict=True):
        for row in rows:
            sums = found.setdefault(tuple(row[:keyed]), [0] * plan.adds.sums)
            for place, value in zip(piece.places, row[keyed:], strict=True):
                sums[place] = value
    return [(*key, *sums) for key, sums in found.items()]


def _in_cells(cells: Cells) -> list[Condition]:
    """What rows satisfy that are in one of these cells; some others may satisfy it, too, which `tally` leaves out."""
    if isinstance(cells, Crossed):
        return _in_cells(cells.keys) + _in_cells(cells.cut)
    if isinstance(cells, ByKeys):
        named = [
            (column, cells.mentioned(place)) for place, column in enumerate(cells.columns) if not cells.complete[place]
        ]
        return [In(column, mentioned) for column, mentioned in named]
    return [Not(IsNull(column)) for column in cells.columns]


def narrowed(table: str, within: Condition | None, dialect: Dialect = DUCKDB) -> str:
    """The SQL of the rows of a table that satisfy a condition, as one row each.

    >>> narrowed("rows", IsNull(0))
    'SELECT * FROM rows WHERE c0 IS NULL'
    """
    from sqlglot import exp  # noqa: PLC0415

    source = exp.select("*").from_(table)
    if within is not None:
        source = source.where(emit_condition(within, dialect))
    return source.sql(dialect=dialect.name)


def _grouped(plan: QueryPlan, source: "exp.Select", dialect: Dialect) -> "exp.Select":
    """The aggregates of the source's rows, cell by cell.

    Many thresholds cost one group-by over a balanced tree of comparisons instead of a filter each. If a column has few
    possible values, its rows are first counted by value (on 10^7 rows: no gain for 8 thresholds over 100,000 values,
    7 times faster for 64 over 121, 29 times for 1000 over 100,000).
    """
    from sqlglot import exp  # noqa: PLC0415

    if plan.cells is None:
        return source.select(*_aggregates(plan, dialect))
    columns = [emit_term(term, dialect) for term in plan.cells.columns]
    grouped = [str(place + 1) for place in range(len(columns))]
    if isinstance(plan.cells, ByKeys | ByFound):
        return source.select(*columns, *_aggregates(plan, dialect)).group_by(*grouped)
    # Each has a name of its own, since one column may be among them twice, and is computed once for all thresholds.
    inner = source.select(*(exp.alias_(column, f"t{place}") for place, column in enumerate(columns)))
    *keys, column = [exp.column(f"t{place}") for place in range(len(columns))]
    cut = plan.cells.cut if isinstance(plan.cells, Crossed) else plan.cells
    assert isinstance(plan.adds, Rows), "the rows of a threshold's cells are counted, and nothing of them is added up"
    total: exp.Expr = exp.Count(this=exp.Star())
    if cut.span <= FEW:
        inner, total = inner.select(exp.alias_(total, "n")).group_by(*grouped), exp.Sum(this=exp.column("n"))
    cell = _tree(column, cut.thresholds, 0, len(cut.thresholds))
    return exp.select(*keys, cell, total).from_(inner.subquery("v")).group_by(*grouped)


def tally(plan: QueryPlan, fetched: Sequence[Sequence[Any]]) -> tuple[int, ...]:
    """The rows that a statement returned, as integers: the sums of the one row, or those of each cell, cell by cell.

    >>> tally(QueryPlan(Rows(), ((1,),), None, ByThreshold(0, (10, 20), 99)), [(2, 7), (0, 5)])
    (5, 0, 7)
    """
    if plan.cells is None:
        return tuple(int(value) for value in fetched[0])
    assert not isinstance(plan.cells, ByFound), "the values of a ByFound are private: read them as a Tally"
    keyed, none = len(plan.cells.columns), (0,) * plan.adds.sums
    found = {tuple(row[:keyed]): row[keyed:] for row in fetched}
    return tuple(int(value) for cell in _listed(plan.cells) for value in found.get(cell, none))


def _listed(cells: ByKeys | ByThreshold | Crossed) -> Iterable[tuple[Key, ...]]:
    """The cells as rows name them, in the order of the answer."""
    if isinstance(cells, Crossed):
        return ((*key, *cut) for key in cells.keys.keys for cut in _listed(cells.cut))
    return cells.keys if isinstance(cells, ByKeys) else ((number,) for number in range(len(cells.thresholds) + 1))


def _aggregates(plan: QueryPlan, dialect: Dialect, only: Condition | None = None) -> "list[exp.Expr]":
    """What a plan adds up, over the rows that satisfy `only`."""
    from sqlglot import exp  # noqa: PLC0415

    def where_counted(value: "exp.Expr") -> "exp.Expr":
        if only is None:
            return value
        return exp.Case(ifs=[exp.If(this=emit_condition(only, dialect), true=value)])

    if isinstance(plan.adds, Together):
        return [aggregate for part in plan.adds.plans for aggregate in _aggregates(part, dialect, part.condition)]
    if isinstance(plan.adds, Rows):
        return [exp.Count(this=exp.Star() if only is None else where_counted(exp.Literal.number(1)))]
    if isinstance(plan.adds, Units):
        return [exp.Count(this=exp.Distinct(expressions=[where_counted(exp.column("u"))]))]
    column = where_counted(emit_term(plan.adds.column, dialect))
    return [_total(column, plan.adds.farthest, power, dialect) for power in plan.adds.powers]


def _total(column: "exp.Expr", farthest: int, power: int, dialect: Dialect) -> "exp.Expr":
    """The sum of a power of a column, or how many rows have a value; 0 without any."""
    from sqlglot import exp  # noqa: PLC0415

    if power == 0:
        return exp.Count(this=column.copy())
    value = column.copy()
    for _ in range(power - 1):
        value = exp.Mul(this=value, expression=column.copy())
    total = exp.Sum(this=value) if dialect.sums_are_wide else _sum_of_limbs(value, farthest**power, dialect)
    return exp.Coalesce(this=total, expressions=[exp.Literal.number(0)])


def _sum_of_limbs(value: "exp.Expr", farthest: int, dialect: Dialect) -> "exp.Expr":
    """The exact sum of integers that are at most so far from 0, where the engine's sums have 64 bits.

    How many limbs there are follows from the declared bounds.
    """
    from sqlglot import exp  # noqa: PLC0415

    shifts = limbs(farthest)
    if len(shifts) == 1:
        return exp.Sum(this=value)
    parts = [exp.BitwiseRightShift(this=value.copy(), expression=exp.convert(shift)) for shift in shifts]
    lower = [exp.BitwiseAnd(this=part, expression=exp.convert(2**_LIMB - 1)) for part in parts[:-1]]
    sums = [cast_to_wide(exp.Sum(this=part), dialect) for part in (*lower, parts[-1])]
    return reduce(add, [total * exp.convert(2**shift) for total, shift in zip(sums, shifts, strict=True)])


def limbs(farthest: int) -> range:
    """Where the limbs of integers begin that are at most so far from 0.

    An integer x is the sum of its limbs, each times 2^shift: the lower ones, (x >> shift) & 32767, are from 0 to
    2^15 - 1, and the highest, x >> shift, is at most 2^15 from 0. So fewer than 2^48 limbs add up to less than 2^63.

    >>> limbs(32_767), limbs(2**62)
    (range(0, 15, 15), range(0, 63, 15))
    """
    return range(0, max(farthest.bit_length(), 1), _LIMB)


def _conjuncts(condition: Condition) -> int:
    """How many conditions joined by AND an engine would see."""
    return sum(map(_conjuncts, condition.parts)) if isinstance(condition, And) else 1


def _as_one(condition: "exp.Expr") -> "exp.Expr":
    """A condition that an engine cannot split."""
    from sqlglot import exp  # noqa: PLC0415

    return exp.Case(ifs=[exp.If(this=condition, true=exp.true())], default=exp.false())


def _tree(column: "exp.Expr", thresholds: tuple[int, ...], first: int, last: int) -> "exp.Expr":
    """The number of thresholds at or below a value, by bisection, if it is one of cells `first` to `last`."""
    from sqlglot import exp  # noqa: PLC0415

    if first == last:
        return exp.Literal.number(first)
    middle = (first + last) // 2
    below = exp.LT(this=column.copy(), expression=exp.convert(thresholds[middle]))
    left = _tree(column, thresholds, first, middle)
    return exp.Case(ifs=[exp.If(this=below, true=left)], default=_tree(column, thresholds, middle + 1, last))

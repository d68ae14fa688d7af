"""Joins: what the rows of one source see of others, and of public lookups.

A row of `visits` sees the attributes of its own unit in `people`, which has one row for each unit, and the columns of a
public lookup table under the row's own value of a column. The join is total: where nothing is found, the columns are
missing. So a row stays one row, and what a unit's rows say depends on that unit's data alone.

The joined columns are declared under dotted names, and stored behind the row's own: a request is then planned and
emitted like any other, over the joined rows. Only the sources that a request mentions are joined.

>>> from counterpoint.queries.aggregates import count
>>> from counterpoint.schema.columns import number, text
>>> from counterpoint.queries.compile import canonical
>>> visits = Declaration("person", 5, "add-or-remove", (Named("page", text()),))
>>> people = Joined("people", (Named("age", number(0, 120)),), on=("u",))
>>> found = compile_joined(visits, RowView("visits"), [people], canonical(count(where="people.age >= 65")))
>>> found.compiled.statements[0].partition("(SELECT * FROM visits)")[2]
' AS b LEFT JOIN beside AS j0 ON b.u = j0.f0) AS joined WHERE c1 >= 65'
>>> found.used
('people',)
"""

from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import count
from operator import itemgetter
from typing import Any, NamedTuple, TypeAlias

from msgspec.structs import replace

from counterpoint.encoding import decode
from counterpoint.engines.duckdb import DUCKDB, JoinedTable
from counterpoint.engines.sampling import column_array, stored_kind
from counterpoint.errors import InvalidParameter
from counterpoint.queries import fallback
from counterpoint.queries.compile import Compiled, RowView, compile_request
from counterpoint.queries.plan import QueryPlan, narrowed
from counterpoint.queries.request import Request
from counterpoint.schema.declaration import Declaration, Named
from counterpoint.schema.expressions.evaluate import StoredRow
from counterpoint.sources.lookup import Lookup, compares
from counterpoint.sources.streams.live_table import LiveTable
from counterpoint.sources.streams.stream import Stream
from counterpoint.sources.table import Table


class Joined(NamedTuple):
    """The columns of another source that rows see; `on` are the columns in which rows hold its keys.

    If `within` is a column, a row also has to lie in a range of the other source's row: from the first of its two ends
    on, and before the second. No two ranges of one key overlap.

    `table` has its rows, in the engine of the rows that see it: the keys `f0`, ..., the two ends if there is a range,
    then the columns. Its name is its own in this process, and not the source's: an engine would take `people` and
    `People` for one.
    """

    name: str
    columns: tuple[Named, ...]
    on: tuple[str, ...]
    within: str | None = None
    neighbours: str = "add-or-remove"
    table: str = "beside"

    def source_of(self, place: int) -> str:
        """The column of `table` that holds its column at this place, of those that rows see."""
        return f"f{len(self.on) + (0 if self.within is None else 2) + place}"

    def sql(self, alias: str) -> tuple[list[str], str]:
        """The columns that rows see, and the join that finds them; the rows are `b`."""
        columns = [f"{alias}.{self.source_of(place)}" for place in range(len(self.columns))]
        found = [f"b.{column} = {alias}.f{place}" for place, column in enumerate(self.on)]
        if self.within is None:
            return columns, f"LEFT JOIN {self.table} AS {alias} ON {' AND '.join(found)}"
        first = len(self.on)
        found.append(f"b.{self.within} >= {alias}.f{first}")  # of several, ASOF finds the latest, whose end is compared
        inside = f"b.{self.within} < {alias}.f{first + 1}"
        cases = [f"CASE WHEN {inside} THEN {column} END" for column in columns]
        return cases, f"ASOF LEFT JOIN {self.table} AS {alias} ON {' AND '.join(found)}"


class JoinedRequest(NamedTuple):
    """A compiled request, the declaration of the rows that it sees, and the names of what they are joined with."""

    compiled: Compiled
    declared: Declaration
    used: tuple[str, ...]


def compile_joined(declared: Declaration, view: RowView, joins: Sequence[Joined], request: bytes) -> JoinedRequest:
    """One request, from its canonical bytes, on rows that see these columns as well as their own."""
    asked = decode(request, Request)  # type: ignore[type-abstract]  # a family is read by its tags
    mentioned = set(asked.plan(seen(declared, joins)).columns())
    used, first = [], len(declared.columns)
    for join in joins:
        if mentioned & set(range(first, first + len(join.columns))):
            used.append(join)
        first += len(join.columns)
    if not used:
        return JoinedRequest(compile_request(declared, view, DUCKDB, request), declared, ())
    rows = RowView(f"({_joined(len(declared.columns), view, used)}) AS joined", None, view.reach)
    visible = seen(declared, used)
    found = compile_request(visible, rows, DUCKDB, request)
    return JoinedRequest(found, visible, tuple(join.name for join in used))


def seen(declared: Declaration, joins: Sequence[Joined]) -> Declaration:
    """The declaration of rows that see the columns of these as well.

    Where one of them is declared for replacement, a unit's attributes may change while its rows stay: then each row is
    another one, as under replacement.
    """
    names = [Named(f"{join.name}.{it.name}", it.column, it.declared) for join in joins for it in join.columns]
    neighbours = [declared.neighbours, *(join.neighbours for join in joins)]
    return replace(
        declared,
        columns=(*declared.columns, *names),
        neighbours="replace" if "replace" in neighbours else declared.neighbours,
    )


def _joined(width: int, view: RowView, joins: Sequence[Joined]) -> str:
    """The SQL of the rows with the columns of these behind their own."""
    columns = [*(f"b.c{i} AS c{i}" for i in range(width)), "b.u AS u"]
    found = []
    for number, join in enumerate(joins):
        visible, joined = join.sql(f"j{number}")
        columns += [f"{column} AS c{width + i}" for i, column in enumerate(visible)]
        width += len(visible)
        found.append(f" {joined}")
    return f"SELECT {', '.join(columns)} FROM ({narrowed(view.rows, view.within)}) AS b{''.join(found)}"


Member: TypeAlias = Table | Stream | LiveTable
"""A source that can be one of several."""

_numbers = count()
"""Several `Sources` may share a table and its engine, so what each of them puts there has a name of its own.

A name by position or by source would let one session read what another put there, and an `id()` is given out again.
"""

PinOf: TypeAlias = Callable[[str], int | str]
"""The pin of each source at one moment, by its name."""


class JoinView:
    """One source among several, with the joins that its rows can make, in the engine that holds these rows.

    Attributes of a table and the rows of a lookup do not change: they are put beside the rows once. The attributes of a
    live table are put there as they were at the pin of an ask, whenever that has changed.

    `rows` is its declaration and its stored rows; None if it has none in an embedded engine, and then it joins nothing.
    """

    __slots__ = ("_lookups", "_members", "_name", "joins", "rows")

    def __init__(self, name: str, members: Mapping[str, Member], lookups: Mapping[str, Lookup]) -> None:
        self._name, self._members, self._lookups = name, members, lookups
        self.rows = _rows(members[name])
        found = () if self.rows is None else (*self._attributes(), *self._looked_up(self.rows[0]))
        self.joins = tuple(join._replace(table=f"beside{next(_numbers)}") for join in found)
        self._check_names()

    def _check_names(self) -> None:
        """Refuse a column whose name is that of another source's column as well."""
        own = set() if self.rows is None else {named.name for named in self.rows[0].columns}
        for taken in sorted(own & {f"{join.name}.{named.name}" for join in self.joins for named in join.columns}):
            raise InvalidParameter(
                f"{self._name} has a column {taken!r}, and its rows see another source's column under that name: name "
                "the source otherwise"
            )

    def _attributes(self) -> list[Joined]:
        """The sources with one row for each unit."""
        found = []
        for other, source in self._members.items():
            if other == self._name or isinstance(source, Stream) or _rows(source) is None:
                continue
            if source.declaration.rows_per_unit != 1:
                continue
            found.append(Joined(other, source.declaration.columns, ("u",), None, source.declaration.neighbours))
        return found

    def _looked_up(self, declared: Declaration) -> list[Joined]:
        """The lookups whose keys, and what their ranges are about, are columns of these rows."""
        found = []
        own = {named.name: (f"c{i}", named.column) for i, named in enumerate(declared.columns)}
        for other, lookup in self._lookups.items():
            if not own.keys() >= {name for name, _ in lookup.compared}:
                continue
            for name, theirs in lookup.compared:
                if not compares(own[name][1], theirs):
                    raise InvalidParameter(
                        f"{name} is {own[name][1].describe()} in {self._name}, and {theirs.describe()} in {other}: "
                        "declare both alike"
                    )
            within = None if lookup.within is None else own[lookup.within][0]
            found.append(Joined(other, lookup.columns, tuple(own[name][0] for name in lookup.key), within))
        return found

    def fetch(self, request: JoinedRequest, pins: PinOf) -> list[tuple[Any, ...]]:
        """The rows that the request's statement returns, when every source is as at its pin."""
        joins = [join for join in self.joins if join.name in request.used]
        plan = request.compiled.plan
        return fallback.fetched(
            plan,
            request.compiled.statements,
            lambda sql: self._run(sql, joins, pins),
            lambda: self._joined_rows(plan, joins, pins),
        )

    def _joined_rows(self, plan: QueryPlan, joins: Sequence[Joined], pins: PinOf) -> Iterator[StoredRow]:
        """The rows with the columns of these sources behind their own, joined here, one at a time."""
        own = self._members[self._name]
        if isinstance(own, Table):
            read = {column for join in joins for column in (*join.on, join.within) if column not in ("u", None)}
            rows = own.stored_rows({int(column[1:]) for column in read}.union(plan.columns()))
        else:
            pin = pins(self._name)
            assert isinstance(pin, int)
            rows = own.stored_rows(pin)
        found = [self._finder(join, pins) for join in joins]
        for *columns, unit in rows:
            beside: list[Any] = []
            for seen_by in found:
                beside += seen_by(columns, unit)
            yield (*columns, *beside, unit)

    def _finder(self, join: Joined, pins: PinOf) -> Callable[[Sequence[Any], Any], tuple[Any, ...]]:
        """What a row sees of another source, by its columns and its unit."""
        by_key: dict[tuple[Any, ...], list[tuple[Any, ...]]] = {}
        columns = [column.tolist() for column in self._table(join, pins).columns()]
        for row in zip(*columns, strict=True):
            by_key.setdefault(row[: len(join.on)], []).append(row[len(join.on) :])
        blank = (None,) * len(join.columns)

        def value(column: str, row: Sequence[Any], unit: Any) -> Any:
            return unit if column == "u" else row[int(column[1:])]

        def equal(row: Sequence[Any], unit: Any) -> tuple[Any, ...]:
            key = tuple(value(column, row, unit) for column in join.on)
            return blank if None in key else by_key.get(key, [blank])[0]

        def inside(row: Sequence[Any], unit: Any) -> tuple[Any, ...]:
            assert join.within is not None
            key, at = tuple(value(column, row, unit) for column in join.on), value(join.within, row, unit)
            ranges = [] if None in key or at is None else by_key.get(key, [])
            place = bisect_right(ranges, at, key=itemgetter(0)) - 1
            return ranges[place][2:] if place >= 0 and at < ranges[place][1] else blank

        return equal if join.within is None else inside

    def _run(self, sql: str, joins: Sequence[Joined], pins: PinOf) -> list[tuple[Any, ...]]:
        own = self._members[self._name]
        tables = [self._table(join, pins) for join in joins]
        if isinstance(own, Table):
            assert own.embedded is not None
            return own.embedded.run(sql, (), tables)
        pin = pins(self._name)
        assert isinstance(pin, int)
        return own.log.fetch(own.declaration, sql, pin, tables)

    def _table(self, join: Joined, pins: PinOf) -> JoinedTable:
        """What is joined, as a table whose first columns are the keys and the ends of a range."""
        lookup = self._lookups.get(join.name)
        pin = "public" if lookup is not None else pins(join.name)
        ends = () if join.within is None else (join.within,) * 2
        kinds = [self._kind_of(column) for column in (*join.on, *ends)]
        kinds += [stored_kind(named.column) for named in join.columns]

        def columns() -> list[Any]:
            rows = lookup.rows if lookup is not None else self._attribute_rows(join, pin)
            values = list(zip(*rows, strict=True)) or [()] * len(kinds)
            return [column_array(kind, list(column)) for kind, column in zip(kinds, values, strict=True)]

        return JoinedTable(join.table, pin, kinds, columns)

    def _kind_of(self, column: str) -> str:
        """The type by which an engine holds a column of these rows, or their units."""
        if column == "u":
            return self._unit_kind
        assert self.rows is not None
        return stored_kind(self.rows[0].columns[int(column[1:])].column)

    @property
    def _unit_kind(self) -> str:
        """The type by which an engine holds the units of these rows."""
        own = self._members[self._name]
        return own.unit_kind if isinstance(own, Table) else "VARCHAR"

    def _attribute_rows(self, join: Joined, pin: int | str) -> Sequence[tuple[Any, ...]]:
        """The attributes of every unit, under its key as these rows hold it."""
        other, kind = self._members[join.name], self._unit_kind
        columns = ", ".join(f"c{i}" for i in range(len(join.columns)))
        if isinstance(other, Table):
            if other.unit_kind == kind:
                return other.all_rows(f"u, {columns}")
            found = other.all_rows(f"{DUCKDB.written('u')}, {columns}")
        else:
            assert isinstance(other, LiveTable) and isinstance(pin, int)
            view = other.row_view()
            sql = f"SELECT u, {columns} FROM ({narrowed(view.rows, view.within)}) AS present"
            found = fallback.either(
                lambda: other.log.fetch(other.declaration, sql, pin),
                lambda: [(unit, *row) for *row, unit in other.stored_rows(pin)],
            )
        return found if kind == "VARCHAR" else _as_integers(found)


def _rows(source: Member) -> tuple[Declaration, RowView] | None:
    """A source's declaration and its stored rows, if an embedded engine has them."""
    if (isinstance(source, Table) and source.embedded is None) or (
        isinstance(source, Stream) and not source.has_records
    ):
        return None
    return source.declaration, source.row_view()


def _as_integers(rows: Sequence[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Rows whose first column is the key of a whole number, as a table of such units holds it; those that fit.

    >>> _as_integers([("17", "CA"), (str(2**70), "NY")])
    [(17, 'CA')]
    """
    numbers = ((int(key), *values) for key, *values in rows)
    return [row for row in numbers if -(2**63) <= row[0] < 2**63]

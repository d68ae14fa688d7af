"""What the rows of one source see of the others, and how it gets into the engine that holds those rows.

Attributes of a table and the rows of a lookup stand still: they are put beside the rows once. The attributes of a live
table are put there as they were at the pin of an ask, whenever that has changed.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import count
from typing import Any, TypeAlias

from counterpoint.errors import InvalidParameter
from counterpoint.sources.asking.evaluating import StoredRow
from counterpoint.sources.declaring.declaration import Declaration
from counterpoint.sources.engines import answering
from counterpoint.sources.engines.compiling import RowView
from counterpoint.sources.engines.dialects import DUCKDB
from counterpoint.sources.engines.embedded import BesideTable
from counterpoint.sources.engines.emitter import narrowed
from counterpoint.sources.engines.query_plan import QueryPlan
from counterpoint.sources.live.live_table import LiveTable
from counterpoint.sources.several.joining import Joined, JoinedRequest
from counterpoint.sources.several.lookup import Lookup
from counterpoint.sources.streams.arrived import column_array, stored_kind
from counterpoint.sources.streams.stream import Stream
from counterpoint.sources.tables.table import Table

Member: TypeAlias = Table | Stream | LiveTable
"""A source that can be one of several."""

_numbers = count()
"""Several `Sources` may share a table and its engine, so what each of them puts there has a name of its own.

A name by position or by source would let one session read what another put there, and an `id()` is given out again.
"""

PinOf: TypeAlias = Callable[[str], int | str]
"""The pin of each source at one moment, by its name."""


class Beside:
    """One source among several, with the joins that its rows can make.

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
            found.append(Joined(other, source.declaration.columns, "u", source.declaration.neighbours))
        return found

    def _looked_up(self, declared: Declaration) -> list[Joined]:
        """The lookups whose key is a column of these rows."""
        found = []
        own = {named.name: (f"c{i}", named.column) for i, named in enumerate(declared.columns)}
        for other, lookup in self._lookups.items():
            if lookup.key not in own:
                continue
            place, column = own[lookup.key]
            if not lookup.fits(column):
                raise InvalidParameter(
                    f"{lookup.key} is {column.describe()} in {self._name}, and {lookup.key_column.describe()} in "
                    f"{other}: declare both alike"
                )
            found.append(Joined(other, lookup.columns, place))
        return found

    def fetch(self, request: JoinedRequest, pins: PinOf) -> list[tuple[Any, ...]]:
        """The rows that the request's statement returns, when every source is as at its pin."""
        joins = [join for join in self.joins if join.name in request.used]
        plan = request.compiled.plan
        return answering.fetched(
            plan,
            lambda: self._run(request.compiled.sql, joins, pins),
            lambda: self._joined_rows(plan, joins, pins),
        )

    def _joined_rows(self, plan: QueryPlan, joins: Sequence[Joined], pins: PinOf) -> Iterator[StoredRow]:
        """The rows with the columns of these sources behind their own, joined here, one at a time."""
        own = self._members[self._name]
        if isinstance(own, Table):
            keys = {int(join.on[1:]) for join in joins if join.on != "u"}
            rows = own.stored_rows(keys.union(plan.columns()))
        else:
            pin = pins(self._name)
            assert isinstance(pin, int)
            rows = own.stored_rows(pin)
        found = [self._by_key(join, pins) for join in joins]
        for *columns, unit in rows:
            beside: list[Any] = []
            for join, (blank, by_key) in zip(joins, found, strict=True):
                beside += by_key.get(unit if join.on == "u" else columns[int(join.on[1:])], blank)
            yield (*columns, *beside, unit)

    def _by_key(self, join: Joined, pins: PinOf) -> tuple[tuple[None, ...], dict[Any, tuple[Any, ...]]]:
        """What a row sees that finds nothing, and what others see, by the key."""
        keys, *columns = [column.tolist() for column in self._table(join, pins).columns()]
        by_key = dict(zip(keys, zip(*columns, strict=True), strict=True))
        by_key.pop(None, None)
        return (None,) * len(columns), by_key

    def _run(self, sql: str, joins: Sequence[Joined], pins: PinOf) -> list[tuple[Any, ...]]:
        own = self._members[self._name]
        tables = [self._table(join, pins) for join in joins]
        if isinstance(own, Table):
            assert own.embedded is not None
            return own.embedded.run(sql, (), tables)
        pin = pins(self._name)
        assert isinstance(pin, int)
        return own.log.fetch(own.declaration, sql, pin, tables)

    def _table(self, join: Joined, pins: PinOf) -> BesideTable:
        """What is joined, as a table whose first column is the key."""
        lookup = self._lookups.get(join.name)
        pin = "public" if lookup is not None else pins(join.name)
        kinds = [self._key_kind(join), *(stored_kind(named.column) for named in join.columns)]

        def columns() -> list[Any]:
            rows = lookup.rows if lookup is not None else self._attribute_rows(join, pin)
            values = list(zip(*rows, strict=True)) or [()] * len(kinds)
            return [column_array(kind, list(column)) for kind, column in zip(kinds, values, strict=True)]

        return BesideTable(join.table, pin, kinds, columns)

    def _key_kind(self, join: Joined) -> str:
        if join.on != "u":
            assert self.rows is not None
            return stored_kind(self.rows[0].columns[int(join.on[1:])].column)
        return self._unit_kind

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
            found = answering.either(
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

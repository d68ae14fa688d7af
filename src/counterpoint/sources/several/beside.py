"""What the rows of one source see of the others, and where it is put: into the same engine, beside those rows.

The attributes of units and the rows of a lookup stand still, so they are put there once, when a request first asks for
them.
"""

from collections.abc import Mapping
from threading import Lock
from typing import Any

from counterpoint.errors import InvalidParameter
from counterpoint.sources.declaring.declaration import Declaration
from counterpoint.sources.engines.compiling import RowView
from counterpoint.sources.engines.embedded import EmbeddedEngine
from counterpoint.sources.several.joining import Joined, JoinedRequest
from counterpoint.sources.several.lookup import Lookup
from counterpoint.sources.streams.arrived import ArrivedRows, column_array, stored_kind, unit_texts
from counterpoint.sources.streams.stream import Stream
from counterpoint.sources.tables.table import Table


class Beside:
    """One source among several, with the joins that its rows can make.

    `rows` is its declaration and its stored rows; None if it has none in an embedded engine, and then it joins nothing.
    """

    __slots__ = ("_lock", "_lookups", "_members", "_put", "_source", "joins", "rows")

    def __init__(
        self,
        name: str,
        source: Table | Stream,
        members: "Mapping[str, Table | Stream]",
        lookups: Mapping[str, Lookup],
    ) -> None:
        self._source, self._members, self._lookups = source, members, lookups
        self._lock, self._put = Lock(), set[str]()
        self.rows = _rows(source)
        joins = [] if self.rows is None else [*self._attributes(name), *self._looked_up(name, self.rows[0])]
        self.joins = tuple(joins)

    def _attributes(self, name: str) -> list[Joined]:
        found = []
        for other, source in self._members.items():
            if other == name or not isinstance(source, Table) or source.declaration.rows_per_unit != 1:
                continue
            if isinstance(self._source, Table) and source.unit_kind != self._source.unit_kind:
                raise InvalidParameter(
                    f"{other} and {name} name their units by values of different types, {source.unit_kind} and "
                    f"{self._source.unit_kind}: convert one of them first"
                )
            found.append(Joined(other, source.declaration.columns, "u", source.declaration.neighbours))
        return found

    def _looked_up(self, name: str, declared: Declaration) -> list[Joined]:
        found = []
        own = {named.name: (f"c{i}", named.column) for i, named in enumerate(declared.columns)}
        for other, lookup in self._lookups.items():
            if lookup.key not in own:
                continue
            place, column = own[lookup.key]
            if not lookup.fits(column):
                raise InvalidParameter(
                    f"{lookup.key} is {column.describe()} in {name}, and {lookup.key_column.describe()} in {other}: "
                    "declare both alike"
                )
            found.append(Joined(other, lookup.columns, place))
        return found

    def fetch(self, request: JoinedRequest, pin: int | str) -> list[tuple[Any, ...]]:
        """The rows that the request's statement returns."""
        for join in self.joins:
            if join.name in request.used:
                self._put_beside(join)
        if isinstance(self._source, Table):
            engine = self._source.embedded
            assert engine is not None
            return engine.run(request.compiled.sql)
        assert isinstance(pin, int)
        return self._source.log.fetch(self._source.declaration, request.compiled.sql, pin)

    def _put_beside(self, join: Joined) -> None:
        """The rows of another source, under its key; once."""
        with self._lock:
            if join.name in self._put:
                return
            own = self._lookups.get(join.name)
            rows = self._attribute_rows(join) if own is None else own.rows
            kind = self._key_kind(join)
            kinds = [kind, *(stored_kind(named.column) for named in join.columns)]
            columns = list(zip(*rows, strict=True)) if rows else [()] * len(kinds)
            self._engine.put(join.table, kinds, [column_array(k, list(v)) for k, v in zip(kinds, columns, strict=True)])
            self._put.add(join.name)

    def _attribute_rows(self, join: Joined) -> list[tuple[Any, ...]]:
        """The attributes of every unit, under its name as these rows hold it."""
        other = self._members[join.name]
        assert isinstance(other, Table)
        found = other.all_rows(", ".join(("u", *(f"c{i}" for i in range(len(join.columns))))))
        if isinstance(self._source, Table):
            return found
        return [(text, *row[1:]) for text, row in zip(unit_texts([row[0] for row in found]), found, strict=True)]

    def _key_kind(self, join: Joined) -> str:
        if join.on != "u":
            assert self.rows is not None
            return stored_kind(self.rows[0].columns[int(join.on[1:])].column)
        return self._source.unit_kind if isinstance(self._source, Table) else "VARCHAR"

    @property
    def _engine(self) -> EmbeddedEngine | ArrivedRows:
        if isinstance(self._source, Stream):
            return self._source.log.arrived(self._source.declaration)
        engine = self._source.embedded
        assert engine is not None
        return engine


def _rows(source: Table | Stream) -> tuple[Declaration, RowView] | None:
    """A source's declaration and its stored rows, if an embedded engine has them."""
    if isinstance(source, Table):
        return None if source.embedded is None else (source.declaration, source.row_view())
    return (source.declaration, source.row_view()) if source.has_records else None

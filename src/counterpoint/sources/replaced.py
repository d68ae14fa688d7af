"""What is left of a version of the data whose rows were replaced: its declaration.

Requests are still prepared from it, since an answer on record is found by what was asked, and asking again must be the
same request. Nothing new is computed.

>>> from counterpoint.schema.columns import number
>>> from counterpoint.schema.declaration import Named
>>> from counterpoint.queries.aggregates import count
>>> march = ReplacedTable.declared_as(Declaration(None, 1, "replace", (Named("age", number(0, 120)),)))
>>> march.prepare(count()).sensitivity
1
>>> march.resolve(march.pin(), march.prepare(count()))
Traceback (most recent call last):
...
counterpoint.errors.DataReplaced: the rows of this version of the data were replaced and not kept
"""

from collections.abc import Generator, Mapping
from fractions import Fraction
from typing import Any, NoReturn

from counterpoint.encoding import Plain
from counterpoint.engines.dialect import Dialect
from counterpoint.engines.duckdb import DUCKDB
from counterpoint.errors import DataReplaced
from counterpoint.privacy.relations import Relation, Steps
from counterpoint.privacy.samples import Sample
from counterpoint.privacy.secret import Secret
from counterpoint.queries.request import PreparedQuery
from counterpoint.queries.source import Source
from counterpoint.schema.declaration import Declaration
from counterpoint.schema.versions import DeclaredData
from counterpoint.sources.combined import Sources
from counterpoint.sources.streams.live_table import LiveTable
from counterpoint.sources.streams.stored_forms import LiveTableFacts, StreamFacts
from counterpoint.sources.streams.stream import Stream
from counterpoint.sources.table import Table, TableFacts, _Bound, _Limits, _owner


def _gone() -> DataReplaced:
    return DataReplaced("the rows of this version of the data were replaced and not kept")


class NoRows:
    """An engine without rows."""

    version = "none"
    closed = False
    is_lost = False

    def __init__(self, dialect: Dialect = DUCKDB) -> None:
        self.dialect = dialect

    def run(self, sql: str) -> NoReturn:
        """See `_gone`."""
        raise _gone()

    def scan(self, sql: str) -> Generator[tuple[Any, ...]]:
        """See `_gone`."""
        raise _gone()

    def create(self, name: str, query: str) -> None:
        """There is nothing to make it of."""

    def drop(self, name: str) -> None:
        """There is nothing to drop."""

    def close(self) -> None:
        """There is nothing to close."""


class ReplacedTable(Table):
    """A table without rows: it prepares what it would have prepared."""

    __slots__ = ()

    @classmethod
    def declared_as(
        cls,
        declared: Declaration,
        rows: int | None = None,
        reach: Mapping[str, int] = {},
        each: Mapping[str, int] = {},
    ) -> "ReplacedTable":
        """A table that was declared like this, with these limits of its view."""
        table = cls.__new__(cls)
        limits = _Limits(declared.rows_per_unit if rows is None else rows, reach, each)
        table._set_view(_Bound(declared, NoRows(), "", "", {}, None, _owner()), "bound", None, limits)
        return table

    def sampled(self, sample: Sample) -> "ReplacedTable":
        """The same: a handle on a sample finds its way here, and is told that the rows are gone."""
        return self

    def resolve(self, pin: int | str, prepared: PreparedQuery) -> Secret:
        """`DataReplaced`."""
        raise _gone()


class ReplacedSource(Source):
    """Data of another kind, of which not even requests can be prepared any more."""

    __slots__ = ("_declared",)

    def __init__(self, declared: DeclaredData) -> None:
        self._declared = declared

    def describe(self) -> str:
        """As it was declared."""
        return self._declared.text

    @property
    def relation(self) -> Relation:
        """Nothing is launched on it."""
        return Steps(updates=0)

    def pin(self) -> str:
        """Nothing is pinned."""
        return ""

    def prepare(self, request: object) -> PreparedQuery:
        """`DataReplaced`."""
        raise _gone()

    def resolve(self, pin: int | str, prepared: PreparedQuery) -> Secret:
        """`DataReplaced`."""
        raise _gone()

    def part(self, by: str, key: Plain | float | Fraction) -> "ReplacedSource":
        """The same."""
        return self

    def sampled(self, sample: Sample) -> "ReplacedSource":
        """The same."""
        return self

    def of(self, fields: object = None) -> "ReplacedSource":
        """The same."""
        return self


def without_rows(source: Source) -> Source:
    """What is left of a version once its rows are gone."""
    if isinstance(source, Sources):
        members = {name: without_rows(member) for name, member in source.members.items()}
        return Sources(unit=source.unit, **members, **source.lookups)
    return replaced(source.declared())


def replaced(declared: DeclaredData) -> Source:
    """What is left of data that were declared like this: of a stream, all but what has arrived (see `continues`)."""
    facts = declared.facts
    if isinstance(facts, StreamFacts):
        return Stream.declared_as(facts)
    if isinstance(facts, LiveTableFacts):
        return LiveTable.declared_as(facts)
    if not isinstance(facts, TableFacts):
        return ReplacedSource(declared)
    return ReplacedTable.declared_as(facts.declaration, facts.rows, dict(facts.reach), dict(facts.each))

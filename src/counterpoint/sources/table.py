"""A table: a source whose rows do not change.

`Table(data, unit=..., rows_per_unit=..., columns=...)` binds the data once: it converts the columns to stored form,
keeps at most `rows_per_unit` rows of each unit, and answers every request from that copy. Two tables are neighbours if
they differ by one unit's rows, added or removed (or replaced, with `neighbours="replace"`). Which rows of a unit are
kept depends on that unit's rows alone, so neighbouring data gives neighbouring stored rows, and `sensitivity` bounds
how far an answer can move.

>>> import duckdb
>>> from counterpoint.schema.columns import number
>>> from counterpoint.queries.aggregates import count
>>> from counterpoint.sources.table import Table
>>> rows = duckdb.sql("SELECT * FROM (VALUES (1, 41, 'CA'), (2, 17, 'NY')) AS people(id, age, state)")
>>> people = Table(rows, unit="id", rows_per_unit=1, columns={"age": number(0, 120)})
>>> adults = people.prepare(count(where="age >= 18 AND state = 'CA'"))
>>> adults.sensitivity, people.resolve(people.pin(), adults)
(1, Secret(...))
"""

import hmac
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from fractions import Fraction
from hashlib import sha256
from inspect import isfunction
from types import TracebackType
from typing import Any, NamedTuple, Self, TypeVar

from msgspec.structs import replace

from counterpoint.display.progress import working
from counterpoint.encoding import Plain, Tagged, Value, digest
from counterpoint.engines import loading, sampling, survey
from counterpoint.engines.catalogue import offered
from counterpoint.engines.duckdb import EmbeddedEngine
from counterpoint.engines.engine import BindOptions, Offer, SqlEngine, closed, memory_limit, unreadable
from counterpoint.engines.unit_key_sql import schema_type
from counterpoint.errors import DataFailed, InvalidParameter, InvalidRequest, NotAllowed, NotCovered, shown
from counterpoint.numbers.exact import whole
from counterpoint.privacy.relations import OneWay, Relation, Steps
from counterpoint.privacy.samples import Sample
from counterpoint.privacy.secret import Secret
from counterpoint.process import Owner
from counterpoint.queries import conformance, fallback
from counterpoint.queries.aggregates import count
from counterpoint.queries.compile import Compiled, RowView, canonical, compiler
from counterpoint.queries.plan import narrowed
from counterpoint.queries.request import PreparedQuery
from counterpoint.queries.sensitivity import Sensitivities
from counterpoint.queries.source import BY_REPLACEMENT, Source
from counterpoint.schema.columns import Column, Key, undeclared_words
from counterpoint.schema.declaration import Declaration, Derived, Named, UnknownColumn, with_derived
from counterpoint.schema.expressions.evaluate import StoredRow
from counterpoint.schema.expressions.tree import And, Condition, In
from counterpoint.schema.unit_keys import UnitType, checked_unit_types, declared_in
from counterpoint.schema.units import EachRow, of_table, protected, unit_columns
from counterpoint.schema.versions import DeclaredData
from counterpoint.sources import report
from counterpoint.sources.report import Report
from counterpoint.sources.synthetic import made_up_rows

_T = TypeVar("_T")
_LONGEST_NAME = 63
"""PostgreSQL truncates longer names, and would then confuse two tables."""
_EITHER_WAY = Steps(updates=0)
_ONE_WAY = OneWay(_EITHER_WAY)


class _Bound(NamedTuple):
    """What a table and its parts share."""

    declared: Declaration
    engine: SqlEngine
    pin: str
    key: str
    left_out: Mapping[str, str]
    """The columns that cannot be asked about as they are, with their types: public."""
    rows: bytes | None
    """A digest of the given rows, which must stay secret: it confirms guesses. None without a key."""
    owner: Owner
    naming: bytes = b""
    """A secret, by which the pins of versions do not tell whether their rows are the same."""
    made_up: bool = False
    report: Report | None = None
    """What became of the given rows: raw data, for the custodian alone. None if it could not be computed."""


class _Limits(NamedTuple):
    """How many rows a unit has in a view; in how many values of a column, and how many in each, if that is limited."""

    rows: int
    reach: Mapping[str, int] = {}
    each: Mapping[str, int] = {}

    def spread(self, by: str, k: int, each: int | None) -> "_Limits":
        """The limits of rows in at most k values of a column, and perhaps of the number of them in each."""
        k = min(k, self.reach.get(by, k))
        known = [limit for limit in (each, self.each.get(by)) if limit is not None]
        if not known:
            return self._replace(reach={**self.reach, by: k})
        most = min(known)
        return _Limits(min(self.rows, k * most), {**self.reach, by: k}, {**self.each, by: most})


class TableFacts(Tagged, Value, frozen=True):
    """What is public about a view of a table: its declaration, and how many rows a unit has in it (see `_Limits`)."""

    declaration: Declaration
    rows: int
    reach: tuple[tuple[str, int], ...] = ()
    each: tuple[tuple[str, int], ...] = ()


class Table(Source):
    """Rows of declared columns, each row belonging to one privacy unit.

    What is protected is said, never guessed: `unit` names the column that identifies units, or several columns that do
    so together, and of each unit at most `rows_per_unit` rows are kept; or it is `each_row`, and every row is protected
    by itself. A row in which a column of the unit is missing is dropped. `columns` declares columns by name (`number`,
    `category`, `text`, `boolean`, `date`, or `derived` of others). `key`, about 32 secret bytes, makes the pin a
    fingerprint of the content that survives a restart. Without a key every binding has a random pin (an unkeyed
    fingerprint is public and would distinguish neighbours), and which rows of a unit are kept depends on the
    declaration, so it is the same every time. `data` is a path, a relation or a frame (`duckdb.py`), a Spark DataFrame,
    or a postgresql:// URL; `relation` then names a table or view of that database. An answer has at most `most_cells`
    cells, 10,000 unless up to a million are declared: a cell takes about 4 us and 1 kB of memory while it is answered.
    `unit_type`, "whole" or "text" (a list for several columns), states which values name one unit; without it a column
    of the unit that is declared as `whole()` or `text()` states it, or else the schema does (see `unit_keys`).
    With `memory`, such as "2GB", the copy lies on disk, and the engine works within that memory, on one statement at a
    time, each of which counts units once: how many units there are must not decide whether an answer fits.
    """

    __slots__ = ("_bound", "_compile", "_limits", "_rows", "_samples", "_within")

    def __init__(
        self,
        data: object,
        unit: str | Sequence[str] | EachRow | None = None,
        rows_per_unit: int | None = None,
        columns: Mapping[str, Column | Derived] | None = None,
        neighbours: str = "add-or-remove",
        *,
        key: bytes | None = None,
        relation: str | None = None,
        most_cells: int | None = None,
        memory: str | None = None,
        unit_type: str | Sequence[str] | None = None,
    ) -> None:
        owner, most = protected(unit, rows_per_unit)
        types = checked_unit_types(unit_type, owner)
        _check_types(columns, neighbours, key)
        limit = None if memory is None else memory_limit(memory)
        offer = offered(data, BindOptions(relation, limit, unit_columns(owner)))
        try:
            named = _named(offer.kinds, columns or {})
            for name in unit_columns(owner):
                if name not in offer.kinds:
                    raise InvalidParameter(
                        f"there is no column {name!r} to name the unit; there are: {', '.join(offer.kinds)}"
                    )
            with working("binding the table"):  # without a count: the number of rows is private
                wide = None if most_cells is None else most_cells
                of = _unit_types(unit_columns(owner), types, columns or {}, offer.kinds)
                declared = Declaration(owner, most, neighbours, named, wide, of)
                bound = _bound_or_unreadable(lambda: _bind(offer, declared, key))
        except BaseException:
            offer.close()
            raise
        self._set_view(bound, "bound", None, _Limits(most))
        if bound.report is not None:
            report.warn(bound.report)

    def _set_view(
        self,
        bound: _Bound,
        rows: str,
        within: Condition | None,
        limits: _Limits,
        samples: tuple[Sample, ...] = (),
    ) -> None:
        self._bound, self._rows, self._within, self._limits = bound, rows, within, limits
        self._samples = samples
        self._compile = compiler(bound.declared, self.row_view(), bound.engine.dialect)

    def _narrow(self, rows: str, within: Condition | None, limits: _Limits) -> "Table":
        table = type(self).__new__(type(self))
        table._set_view(self._bound, rows, within, limits, self._samples)
        return table

    def __repr__(self) -> str:
        declared = self.declaration
        names = ", ".join(named.name for named in declared.columns)
        unit = "each_row" if declared.unit is None else f"{declared.unit!r}, rows_per_unit={declared.rows_per_unit}"
        return f"Table({names}; unit={unit})"

    def _check_open(self) -> None:
        self._bound.owner.check()
        if self._bound.engine.closed:
            raise closed()

    def close(self) -> None:
        """Delete the stored rows, also those of every part of this table. The original data is unaffected.

        A closed table still describes its declaration and refuses everything else. `with Table(...) as people:` closes
        it at the end. In a forked process `close` does nothing: the connection belongs to the parent.
        """
        if not self._bound.owner.is_elsewhere:
            self._bound.engine.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def is_lost(self) -> bool:
        """Whether the connection to the database that holds the rows was lost."""
        return self._bound.engine.is_lost

    @property
    def made_up(self) -> bool:
        """Whether the rows are made up (see `rehearsed`)."""
        return self._bound.made_up

    def rehearsed(self) -> "Table":
        """The same declaration and the same view over made-up rows; nothing of this table's data is read."""
        bound = self._bound
        rows = _Bound(
            bound.declared,
            made_up_rows(bound.declared),
            digest("made up", bound.declared).hex(),
            bound.key,
            bound.left_out,
            None,
            _owner(),
            made_up=True,
        )
        table = Table.__new__(Table)
        table._set_view(rows, "bound", None, _Limits(bound.declared.rows_per_unit))
        for by, k in self._limits.reach.items():
            table = table.spread(by, k, self._limits.each.get(by))
        table = table._narrow(table._rows, self._within, self._limits)
        for sample in self._samples:
            table = table.sampled(sample)
        return table

    @property
    def declaration(self) -> Declaration:
        """Everything public about the table."""
        return self._bound.declared

    @property
    def unit(self) -> str | None:
        """The column that identifies a unit, if one does."""
        unit = self.declaration.unit
        return unit if isinstance(unit, str) else None

    def describe(self) -> str:
        """What this table guarantees, in a paragraph, then its declaration line by line; neither depends on the rows.

        >>> import duckdb
        >>> from counterpoint import each_row
        >>> print(Table(duckdb.sql("SELECT 41 AS age"), unit=each_row).describe())
        Protected is each row by itself (row level): a person with several rows is protected in each of
        them, and not in all of them together. Whatever analysts see would be nearly as likely if that row
        were missing; the budget of the session says how nearly. This holds against analysts who know all
        other rows, choose every request after the answers before it, and share what they learn. It does not
        hide what the data say about people in general. Public are the names and types of the columns and
        what is declared about them: bounds, steps and keys. The number of rows is not. Every row counts. A
        value beyond its declared bounds counts as the nearest bound, and one that cannot be read, or is not
        among the declared keys, as missing.
        <BLANKLINE>
        unit: every row is its own unit
        rows per unit: at most 1
        neighbours: add or remove one unit
        age: a whole number without bounds (undeclared: for where and keys only; cp.number(low, high) to add it up)
        """
        declared = self.declaration
        guarantee = of_table(declared.unit, declared.rows_per_unit, declared.neighbours)
        left_out = [f"{name}: {undeclared_words(name, kind)}" for name, kind in self._bound.left_out.items()]
        return "\n".join((guarantee.paragraph, "", declared.describe(), *left_out))

    def check(self) -> Report:
        """The custodian's report on the given rows: **raw data, never for analysts**.

        How many rows and units there are, what the cap drops, and of each column how many values are missing, cannot be
        read, were clamped or are not among the declared keys; with suggestions. It was counted by the engine while the
        table was bound, and is about the whole table, also for a part of it.

        >>> import duckdb
        >>> import counterpoint as cp
        >>> values = "(1, 41, 'CA'), (2, 170, 'ca'), (2, NULL, 'NY')"
        >>> rows = duckdb.sql(f"SELECT * FROM (VALUES {values}) AS people(id, age, state)")
        >>> keys = {"age": cp.number(0, 120), "state": cp.category(["CA", "NY"])}
        >>> report = cp.Table(rows, unit="id", rows_per_unit=1, columns=keys).check()
        >>> report.rows, report.units, report.rows_dropped
        (3, 2, 1)
        >>> [(column.name, column.missing, column.above, column.undeclared) for column in report.columns]
        [('id', 0, 0, 0), ('age', 1, 1, 0), ('state', 0, 0, 1)]
        """
        self._check_open()
        found = self._bound.report
        if found is None:
            rows = "its rows are made up" if self.made_up else "the engine failed to count what was given"
            raise NotAllowed(f"there is no report on this table: {rows}")
        return found

    @property
    def relation(self) -> Relation:
        """Every ask may differ by its own sensitivity; there are no updates. Adding a unit moves all counts up."""
        return _ONE_WAY if self.declaration.neighbours == "add-or-remove" else _EITHER_WAY

    def pin(self) -> str:
        """The version of the data and its declaration; a closed table has none."""
        self._check_open()
        return self._bound.pin

    def fingerprint(self) -> str | None:
        """A digest of the pin and of this table's view of the rows; None without a key, as the pin is then random."""
        if self._bound.rows is None:
            return None
        return digest(self.pin(), self._rows, self._within, tuple(sorted(self._limits.reach.items()))).hex()

    def declared(self) -> DeclaredData:
        """The declaration, in words and as requests are prepared from it."""
        declared, limits = self.declaration, self._limits
        reach, each = (tuple(sorted(limit.items())) for limit in (limits.reach, limits.each))
        facts = TableFacts(declared, limits.rows, reach, each)
        units = declared.unit_columns
        types = tuple(declared.unit_type(name) for name in units)
        return DeclaredData("table", units, types, declared.neighbours, declared.describe(), facts)

    def numbered(self, version: int) -> "Table":
        """The same rows as this version: with a pin of its own, which only the key could compare with another's."""
        if version == 1:
            return self
        bound = self._bound
        pin = hmac.digest(bound.naming, digest(version, bound.pin), sha256).hex()
        table = Table.__new__(Table)
        table._set_view(bound._replace(pin=pin), self._rows, self._within, self._limits, self._samples)
        return table

    @property
    def why_not_refreshed(self) -> None:
        """They can."""
        return

    def rows(self) -> bytes | None:
        """A digest of the given rows, the same for every declaration and every part of the table."""
        return self._bound.rows

    @property
    def count_moves(self) -> int:
        """The sensitivity of a count of its rows."""
        return self.prepare(count()).sensitivity

    def prepare(self, request: object) -> PreparedQuery:
        """The request with its public facts, or `InvalidRequest`. Touches no data."""
        self._check_open()
        return self._compiled(request).prepared

    def _compiled(self, request: object) -> Compiled:
        """The request on this table's declaration; a column that was not declared is refused with what to declare."""
        asked = canonical(request)
        try:
            return self._compile(asked)
        except UnknownColumn as unknown:
            kind = self._bound.left_out.get(str(unknown.name))
            if kind is None:
                raise
            said = f"{unknown.name}: {undeclared_words(str(unknown.name), kind)}"
        raise InvalidRequest(said)

    def sensitivities(self, request: object) -> Sensitivities:
        """How far the answer can move between neighbours: in L1, squared L2, and in each coordinate."""
        compiled = self._compiled(request)
        return compiled.request.sensitivities(self.row_view().moved or self.declaration, compiled.plan)

    def resolve(self, pin: int | str, prepared: PreparedQuery) -> Secret:
        """The private integers of a prepared request, on the data that was pinned."""
        if pin != self.pin():
            raise InvalidRequest("this request was pinned to another version of the data: pin this table and ask again")
        compiled = self._compiled(prepared.request)
        if prepared != compiled.prepared:
            raise InvalidRequest(
                "this request was prepared for a table with another declaration: prepare it with this table"
            )
        plan = compiled.plan
        found = fallback.fetched(plan, compiled.statements, self._fetch, lambda: self.stored_rows(plan.columns()))
        return Secret(compiled.request.read_rows(self.declaration, plan, found))

    def stored_rows(self, columns: Iterable[int]) -> Iterator[StoredRow]:
        """The stored rows of this view, read one at a time: of their columns only these, and the unit behind."""
        engine, width = self._bound.engine, len(self.declaration.columns)
        given = None
        if self._samples:
            given = sampling.sampled(self.declaration, self._rows, self._samples, engine.dialect)
        return fallback.scanned(engine, columns, width, table=self._seen, within=self._within, given=given)

    def _fetch(self, sql: str) -> list[tuple[Any, ...]]:
        """The rows that a statement returns about this view; of a sample, once it has been computed."""
        if not self._samples:
            return self._bound.engine.run(sql)
        engine = self.embedded
        assert engine is not None  # others are not sampled
        query = sampling.sampled(self.declaration, self._rows, self._samples, engine.dialect)
        return engine.run_on_sample(sql, self._seen, query)

    @property
    def _seen(self) -> str:
        """The name of the stored rows that requests are about: all of this view, or those of its samples."""
        if not self._samples:
            return self._rows
        keys = [(sample.secret, sample.below) for sample in self._samples]
        return f"sample_{digest(self._rows, *keys).hex()[:32]}"

    @property
    def why_not_sampled(self) -> str | None:
        """A table in another database, or with neighbours by replacement."""
        if self.embedded is None:
            return (
                "its rows are in another database, where nothing tosses the coins (theory, Sampling); bind the data as "
                "a file or a frame, which the embedded engine holds"
            )
        return BY_REPLACEMENT if self.declaration.neighbours == "replace" else None

    def sampled(self, sample: Sample) -> "Table":
        """The rows of the units that are in this sample; of a sample, those that are in both."""
        if self.why_not_sampled is not None:
            raise NotCovered(f"no sample is drawn of this data: {self.why_not_sampled}")
        table = type(self).__new__(type(self))
        table._set_view(self._bound, self._rows, self._within, self._limits, (*self._samples, sample))
        return table

    def row_view(self) -> RowView:
        """The stored rows that requests are about."""
        declared, limits = self.declaration, self._limits
        moved = None if limits.rows == declared.rows_per_unit else replace(declared, rows_per_unit=limits.rows)
        return RowView(self._seen, self._within, limits.reach, moved, limits.each)

    def all_rows(self, columns: str) -> list[tuple[Any, ...]]:
        """These stored columns (`c0`, `u`) of every row: private, unless the rows are public."""
        self._check_open()
        view = self.row_view()
        sql = f"SELECT {columns} FROM ({narrowed(view.rows, view.within, self._bound.engine.dialect)}) AS kept"
        return fallback.either(lambda: self._fetch(sql), lambda: list(self._bound.engine.scan(sql)))

    @property
    def unit_kind(self) -> str:
        """The type by which an embedded engine holds units: BIGINT or VARCHAR. It is public."""
        engine = self.embedded
        assert engine is not None
        sql = f"DESCRIBE SELECT u FROM {self._rows}"
        return str(fallback.either(lambda: engine.run(sql), lambda: list(engine.scan(sql)))[0][1])

    @property
    def embedded(self) -> EmbeddedEngine | None:
        """The embedded engine that holds the rows; None if another database does."""
        engine = self._bound.engine
        return engine if isinstance(engine, EmbeddedEngine) else None

    def part(self, by: str, key: Plain | float | Fraction) -> "Table":
        """The rows in which column `by` has this value. The value need not occur; in a category it must be a key.

        The declaration stays the same: a unit has at most as many rows in a part as in the whole table.
        """
        self._check_open()
        column = self.declaration.column(by)
        value = column.key(key)
        if column.known_keys is not None and value not in column.known_keys:
            raise InvalidRequest(f"{shown(key)} is not a key of {by}, which is {column.describe()}")
        cut = In(self.declaration.index(by), (value,))
        within = cut if self._within is None else And((self._within, cut))
        most = min(self._limits.rows, self._limits.each.get(by, self._limits.rows))
        return self._narrow(self._rows, within, self._limits._replace(rows=most))

    def key(self, by: str, key: Plain | float | Fraction) -> Key:
        """The stored value of column `by` that names a part."""
        return self.declaration.column(by).key(key)

    def spelled(self, by: str, stored: Key) -> Key | Fraction:
        """A stored value of column `by` in the user's units."""
        return self.declaration.column(by).spelled(stored)

    def reach(self, by: str) -> int:
        """In how many parts by this column two neighbouring tables may differ.

        The rows of a unit have at most `rows_per_unit` values (one, if the column is the unit itself). Under
        replacement a unit and its replacement may be in different parts, which doubles the number.
        """
        self.declaration.index(by)
        own = 1 if by in self.declaration.unit_columns else self._limits.rows
        return min(own, self._limits.reach.get(by, own)) * (2 if self.declaration.neighbours == "replace" else 1)

    def spread(self, by: str, k: int, rows: int | None = None) -> "Table":
        """The same table, with each unit limited to the rows of at most k values of `by`, chosen by a keyed hash.

        With `rows`, at most that many rows of each value are kept: a unit then moves a count by k * rows, and
        one that is keyed by `by` by `rows` in each cell. The choice depends on one unit's rows alone, so neighbours
        stay neighbours. Rows in which `by` is missing are in no part and are dropped.
        """
        self._check_open()
        k, column = whole(k, 1, "k"), self.declaration.index(by)
        each = None if rows is None else whole(rows, 1, "rows")
        if self._within is not None:
            raise InvalidRequest("spread applies to a whole table, not to a part: call spread first, then part")
        most = 1 if by in self.declaration.unit_columns else self._limits.rows
        if k >= most and (each is None or each >= self._limits.rows):
            return self
        k = min(k, most)
        name = f"{self._rows}_{column}_{k}" if each is None else f"{self._rows}_{column}_{k}x{each}"
        if len(name) > _LONGEST_NAME:
            name = f"spread_{digest(self._rows, column, k, *(() if each is None else (each,))).hex()[:32]}"
        engine, key = self._bound.engine, self._bound.key
        query = loading.spread(self.declaration, column, k, self._rows, key, dialect=engine.dialect, each=each)
        _bound_or_unreadable(lambda: engine.create(name, query))
        return self._narrow(name, None, self._limits.spread(by, k, each))


def _check_types(columns: object, neighbours: object, key: object) -> None:
    """Refuse arguments of the wrong type before any data is read."""
    if not isinstance(columns, Mapping | None):
        raise InvalidParameter(
            f"columns must be a mapping by name, as in {{'age': cp.number(0, 120)}}, not a {type(columns).__name__}; "
            "of an Arrow schema, cp.columns_from(schema)"
        )
    if not isinstance(neighbours, str):
        raise InvalidParameter(
            f"neighbours must be 'add-or-remove' or 'replace', not a value of type {type(neighbours).__name__}"
        )
    if key is not None and (not isinstance(key, bytes) or len(key) < 16):
        raise InvalidParameter("key must be at least 16 secret bytes, such as those of secrets.token_bytes")


def _unit_types(
    names: Sequence[str],
    given: Sequence[UnitType | None],
    columns: Mapping[str, Column | Derived],
    kinds: Mapping[str, str],
) -> tuple[UnitType, ...]:
    """The type of the units that each column names: as it is declared, or as the schema says."""
    return tuple(
        of or declared_in(name, columns) or schema_type(kinds[name]) for name, of in zip(names, given, strict=True)
    )


def _named(kinds: Mapping[str, str], columns: Mapping[str, Column | Derived]) -> tuple[Named, ...]:
    """The columns in the order of the schema, as declared, or else as their type implies; then the derived ones."""
    computed = {name: column for name, column in columns.items() if isinstance(column, Derived)}
    stored = {name: column for name, column in columns.items() if not isinstance(column, Derived)}
    return with_derived(_stored(kinds, stored), computed)


def _stored(kinds: Mapping[str, str], columns: Mapping[str, Column]) -> tuple[Named, ...]:
    for name, column in columns.items():
        if name not in kinds:
            raise InvalidParameter(f"there is no column {name!r} to declare; there are: {', '.join(kinds)}")
        if not isinstance(column, Column):
            given = f"the function {column.__name__}: call it" if isfunction(column) else shown(column)
            raise InvalidParameter(
                f"{name} must be declared as number, category, text, boolean, date or timestamp, not {given}; "
                "to declare by types, use cp.columns_from({'year': int})"
            )
    found = ((name, columns.get(name, loading.undeclared(kind))) for name, kind in kinds.items())
    return tuple(Named(name, column, name in columns) for name, column in found if column is not None)


def _bound_or_unreadable(bind: Callable[[], _T]) -> _T:
    """What was bound; or the constant error of a custodian's data that an engine cannot hold."""
    with suppress(DataFailed):
        return bind()
    raise unreadable()


def _bind(offer: Offer, declared: Declaration, key: bytes | None) -> _Bound:
    """Load the data, cap the rows of each unit, and fingerprint the result."""
    facts = digest(declared)
    order = facts if key is None else hmac.digest(key, b"order" + facts, sha256)
    load = survey.load(declared, offer.kinds, "given", offer.dialect, hashed=key is not None)
    loaded = "bound" if declared.unit is None else "loaded"
    engine = offer.take(load, loaded)
    conformance.check(engine)
    given = None if key is None else _sums(engine.run(loading.given(loaded)))
    found = None
    with suppress(DataFailed):  # a report that cannot be computed must not decide whether the table is bound
        found = report.compute(engine, declared, offer.kinds, loaded)
    if declared.unit is not None:
        engine.create("heavy", loading.heavy(declared, "loaded"))
        engine.create("bound", loading.capped(declared, "loaded", "heavy", order.hex(), engine.dialect))
        engine.drop("heavy")
        engine.drop("loaded")
    naming = secrets.token_bytes(32) if key is None else hmac.digest(key, b"versions" + facts, sha256)
    if key is None:
        pin = hmac.digest(naming, facts, sha256)
    else:
        seal = hmac.digest(key, b"content" + facts, sha256)
        sums = _sums(engine.run(loading.fingerprint(declared, "bound", seal.hex(), engine.dialect)))
        pin = hmac.digest(key, repr(sums).encode() + facts, sha256)
    rows = None if given is None else digest("rows", *map(str, given))
    asked = {named.name for named in declared.columns}
    left_out = {name: kind for name, kind in offer.kinds.items() if name not in asked}
    return _Bound(declared, engine, pin.hex(), order.hex(), left_out, rows, _owner(), naming, report=found)


def _owner() -> Owner:
    return Owner("a table", "bind it again in this process, or bind it after the fork")


def _sums(found: list[tuple[Any, ...]]) -> tuple[int | None, ...]:
    """The single row of sums that a query returns."""
    return tuple(None if part is None else int(part) for part in found[0])

"""A live table: rows that are put, replaced and removed while mechanisms run (theory, Live data).

A live table is the log of its updates. Each update takes a public slot, and what it says is private, also whether it
did anything: a put that finds no room and the removal of a row that is not there return as any other update does. An
ask answers about the rows as they are when it is pinned, by the same requests and the same SQL as a table. See `rule`
for which updates take effect and `protection` for how far neighbours differ.

>>> from counterpoint.queries.aggregates import count
>>> from counterpoint.schema.columns import number
>>> people = LiveTable(unit="person", rows_per_unit=2, key="row", columns={"age": number(0, 120)})
>>> people.put({"person": "ann", "row": 1, "age": 41})
>>> people.put([{"person": "ann", "row": 1, "age": 42}, {"person": "bob", "row": 1, "age": 17}], id="batch 17")
>>> people.remove(person="bob", row=1)
>>> people, people.prepare(count(where="age >= 18")).sensitivity
(LiveTable(age; unit='person', rows_per_unit=2; 4 updates), 2)
>>> people.resolve(people.pin(), people.prepare(count()))
Secret(...)
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any, Self

from msgspec.structs import replace

from counterpoint.encoding import Plain, digest
from counterpoint.engines.dialect import Dialect
from counterpoint.engines.duckdb import DUCKDB
from counterpoint.errors import InvalidParameter, InvalidRequest, shown
from counterpoint.privacy.messages import Update, blank_update
from counterpoint.privacy.relations import Relation, Steps
from counterpoint.privacy.secret import Secret
from counterpoint.queries import fallback
from counterpoint.queries.aggregates import count
from counterpoint.queries.compile import Compiled, RowView, canonical, compiler, is_request
from counterpoint.queries.contributions import Contribution
from counterpoint.queries.request import PreparedQuery, Request
from counterpoint.queries.source import Source
from counterpoint.schema.columns import Column, Key
from counterpoint.schema.declaration import Declaration
from counterpoint.schema.expressions.evaluate import StoredRow
from counterpoint.schema.expressions.tree import And, BeforePin, In, NotEnded
from counterpoint.schema.unit_keys import UnitType
from counterpoint.schema.units import of_live_table
from counterpoint.schema.versions import DeclaredData
from counterpoint.sources.streams.feed import Feedable
from counterpoint.sources.streams.feed_target import conversion
from counterpoint.sources.streams.live_protection import Protection
from counterpoint.sources.streams.live_updates import UpdateForm, UpdateLog, Where, change
from counterpoint.sources.streams.log import FeedStep, Item
from counterpoint.sources.streams.memory_log import share
from counterpoint.sources.streams.records import Fields
from counterpoint.sources.streams.rows import PRESENT
from counterpoint.sources.streams.stored_forms import LiveTableFacts, read_as, why_not_after

PROTECTS = ("unit", "event")


class LiveTable(Feedable, Source):
    """Rows of declared columns that change, each with a key, each belonging to one privacy unit.

    A row is named by its unit and its key: `put` adds it or replaces it, `remove` removes it. A unit has at most
    `rows_per_unit` rows at a time; a row that finds no room when it arrives is dropped. `columns` declares columns by
    name (`number`, `category`, `text`, `boolean`, `date`), and values are converted as a table's are.

    Two live tables are neighbours if all updates of one unit do nothing in one of them; with `protects="event"`, if one
    update does. At event level the unit may be left out: then a key alone names a row. What arrives is public as to its
    number, order and ids, and private as to everything else. With `updates_per_unit`, only that many first updates of
    a unit over its whole life count, which partitions and mechanisms that follow changes need. `unit_type`, "whole" or
    "text", states which values name one unit (see `unit_keys`); a key names a row as a text names a unit.
    """

    __slots__ = ("_compile", "_form", "_log", "_protection", "_reading", "_where")

    def __init__(
        self,
        unit: str | None = None,
        rows_per_unit: int | None = None,
        *,
        key: str,
        columns: Mapping[str, Column],
        protects: str = "unit",
        updates_per_unit: int | None = None,
        unit_type: UnitType | None = None,
    ) -> None:
        if protects not in PROTECTS:
            raise InvalidParameter(f"protects must be 'unit' or 'event', but {str(protects)[:40]!r} was given")
        self._form = UpdateForm(Fields.of(columns), unit, key)
        declared = self._form.fields.declared.columns
        self._protection = Protection(unit, rows_per_unit, declared, protects == "event", updates_per_unit)
        limits = self._protection.rows_per_unit, self._protection.updates_per_unit
        self._log = UpdateLog(unit, *limits, unit_type, read_as(declared))
        self._reading: Contribution | None = None
        self._where: Where = ()
        self._compile: Callable[[bytes], Compiled] | None = None

    def _view(self, reading: Contribution | None, where: Where) -> Self:
        """A part of the same table, or what is followed of it, on the same log."""
        view = self.__class__.__new__(self.__class__)
        view._form, view._protection, view._log = self._form, self._protection, self._log
        view._reading, view._where, view._compile = reading, where, None
        return view

    def __repr__(self) -> str:
        facts = self._protection
        columns = ", ".join(self._form.fields.names)
        given = {
            "unit": facts.unit,
            "rows_per_unit": facts.rows_per_unit,
            "protects": "event" if facts.event else None,
            "updates_per_unit": facts.updates_per_unit,
            "unit_type": self._log.unit_type,
        }
        shown_facts = "".join(f", {name}={value!r}" for name, value in given.items() if value is not None)
        return f"LiveTable({columns}; {shown_facts[2:]}; {len(self._log.items)} updates)"

    def describe(self) -> str:
        """What this table guarantees, in a paragraph, then its declaration line by line; neither depends on the rows.

        >>> from counterpoint.schema.columns import number
        >>> print(LiveTable("person", 2, key="row", columns={"age": number(0, 120)}).describe())
        Protected is everything about one person (user level). Whatever analysts see would be nearly as
        likely if all updates of that person did nothing; the budget of the session says how nearly. This
        holds against analysts who know all other updates, choose every request after the answers before it,
        and share what they learn. It does not hide what the data say about people in general. Public are
        how many updates there are, when and in which order they arrive, the ids under which they are sent,
        and what is declared about them: bounds, steps and keys. At any time a person has at most 2 rows; a
        row that finds no room is dropped. No answer and no error says whether an update did anything. A
        value beyond its declared bounds counts as the nearest bound, and one that cannot be read, or is not
        among the declared keys, as missing.
        <BLANKLINE>
        unit: person, which has at most 2 rows at a time
        protected: all updates of one person; the number of updates is public
        age: a number from 0 to 120 in steps of 1
        """
        facts = self._protection
        guarantee = of_live_table(facts.unit, facts.rows_per_unit, facts.updates_per_unit, event=facts.event)
        return f"{guarantee.paragraph}\n\n{facts.describe()}"

    def put(self, rows: object, *, id: str | None = None) -> None:
        """Put one row, or a list of rows in this order: all of them, or none if one has a wrong form.

        A row is a mapping with the unit, the key and the columns; a column that is left out is missing. None, and a row
        whose unit or key is None, is an update that does nothing. With an `id` the updates happen once: a client that
        does not know whether they did sends them again, and other updates under that id are refused
        (`RequestConflict`).
        """
        self._extend(self._form.puts(_listed(rows), self._unit_type), id)

    def remove(self, /, *rows: object, id: str | None = None, **names: object) -> None:
        """Remove a row by its unit and key, as in `remove(person="ann", row=1)`, or a list of rows, as in `put`.

        Whether there was such a row is never told. In a table whose unit or key is called 'id', the keyword `id` names
        it; a list of rows still takes an id.
        """
        if rows:
            listed, *others = rows
            if others or names:
                raise InvalidRequest("give one list of rows to remove, or name one row by its unit and key")
            return self._extend(self._form.removals(_listed(listed), self._unit_type), id)
        if "id" in self._form.names:
            return self._extend([self._form.removal({**names, "id": id}, self._unit_type)], None)
        return self._extend([self._form.removal(names, self._unit_type)], id)

    def _extend(self, updates: list[Item], id: str | None, step: FeedStep | None = None) -> None:
        self.check_whole()
        self._log.extend((update for update, _ in updates), (owner for _, owner in updates), id, step)

    def check_whole(self) -> None:
        """Refuse to put rows into a part of this table."""
        if self._where or self._reading is not None:
            raise InvalidRequest("rows are put into the whole live table, not into a part of it: use the original")

    def conversion(self, kinds: dict[str, str], given: str, dialect: Dialect) -> str:
        """The query by which a feed converts rows to stored form: the key, the columns, the unit."""
        return conversion(self.declaration, kinds, given, dialect, key=self._form.key)

    def receive(self, values: Sequence[object], step: FeedStep) -> None:
        """Put the rows of a feed's batch: all of them, or none if one has a wrong form."""
        self._extend(self._form.puts(values, self._unit_type), None, step)

    def receive_stored(self, rows: Sequence[tuple[Any, ...]], step: FeedStep) -> None:
        """Put the rows of a feed's batch, given in stored form."""
        self._extend([self._form.stored(self._unit_type, *row) for row in rows], None, step)

    @property
    def relation(self) -> Relation:
        """Every ask may differ by its own sensitivity, at any moment; the data changes while mechanisms run.

        Where a request is followed, the relation says at how many updates its changes differ, and how far.
        """
        read = self._reading
        if read is None:
            return self._protection.relation
        return Steps(updates=self._protection.slots, bound=read.l1, squared=read.squared)

    @property
    def why_no_updates(self) -> str | None:
        """A mechanism follows the changes of one request."""
        return None if self._reading is not None else "say of which request, as in launch(..., of=cp.count())"

    @property
    def dimensions(self) -> int | None:
        """The length of the changes that mechanisms receive; None if they are numbers."""
        return None if self._reading is None else self._reading.dimensions

    @property
    def update_grid(self) -> Fraction:
        """What one integer step of a change is worth in the user's units."""
        return Fraction(1) if self._reading is None else self._reading.grid

    def of(self, fields: "str | Sequence[str] | Request | None" = None) -> Self:
        """The same table, whose mechanisms receive how the answer to this request changes with each update.

        The request is a sum over rows (`count`, `sum`, `histogram`, `ranks`), and the table has a limit on the updates
        of a unit: `updates_per_unit`.

        >>> from counterpoint.queries.aggregates import count
        >>> from counterpoint.schema.columns import number
        >>> ages = {"age": number(0, 120)}
        >>> LiveTable("person", 2, key="row", columns=ages, updates_per_unit=5).of(count("age >= 18")).relation
        Steps(updates=5, bound=1)
        """
        if fields is None:
            return self
        if not (isinstance(fields, Request) and is_request(fields)):
            raise InvalidRequest(
                f"mechanisms follow requests of a live table, as in of=cp.count() or of=cp.sum('age'), not "
                f"{shown(fields)}"
            )
        if self._reading is not None:
            raise InvalidRequest("a request was chosen for this live table already: use the original")
        return self._view(self._protection.following(fields), self._where)

    def items(self, start: int | str, end: int | str) -> tuple[Update, ...]:
        """The changes of the request that is followed, with each update between two pins."""
        first, last, read = self._place(start), self._place(end), self._reading
        if read is None:
            return ()
        return tuple(Update(change(*effect, read, self._where)) for effect in self._log.effects(first, last))

    def blank_update(self) -> Update | None:
        """All changes of one request have one shape."""
        return None if self._reading is None else blank_update(self._reading.dimensions)

    @property
    def unit(self) -> str | None:
        """What identifies a unit, if rows have one."""
        return self._log.unit

    @property
    def declaration(self) -> Declaration:
        """Everything public about the rows of any moment, as a table declares it."""
        types = () if self._log.unit is None else (self._unit_type,)
        return replace(self._protection.declared, unit_types=types)

    @property
    def _unit_type(self) -> UnitType:
        """Which values name one unit."""
        return self._log.unit_type or "text"

    def pin(self) -> int:
        """How many updates have arrived."""
        return self._log.length()

    def compact(self) -> None:
        """Forget in memory all updates but those whose rows are there now; the durable ledger has them all.

        Nothing else changes: an ask that a crash left unfinished, or a counter that was last asked before this, reads
        what it needs from the ledger, which takes as long as opening the table does. Without a durable ledger it is
        refused (`NotAllowed`).
        """
        self._log.compact()

    @property
    def protects_events(self) -> bool:
        """Whether single updates are protected, not units."""
        return self._protection.event

    @property
    def log(self) -> UpdateLog:
        """The log, which a durable ledger stores."""
        return self._log

    def fingerprint(self) -> str:
        """A digest of the declaration and the view; a durable ledger stores the updates themselves."""
        read = None if self._reading is None else self._reading.stored
        return digest("live table", self._form, self._unit_type, self._protection, read, self._where).hex()

    def declared(self) -> DeclaredData:
        """The declaration, in words and as it is made again."""
        by, unit_type = self._protection, self._log.unit_type
        protects = "event" if by.event else "unit"
        limits = (by.unit, by.rows_per_unit, self._form.key, protects, by.updates_per_unit, unit_type)
        unit = () if by.unit is None else (by.unit,)
        types = tuple(self._unit_type for _ in unit)
        return DeclaredData("live table", unit, types, protects, self.describe(), LiveTableFacts(by.columns, *limits))

    @classmethod
    def declared_as(cls, facts: LiveTableFacts) -> "LiveTable":
        """A live table that was declared like this, without rows."""
        columns = {named.name: named.column for named in facts.columns}
        return cls(
            facts.unit,
            facts.rows_per_unit,
            key=facts.key,
            columns=columns,
            protects=facts.protects,
            updates_per_unit=facts.updates_per_unit,
            unit_type=facts.unit_type,
        )

    @property
    def why_not_refreshed(self) -> None:
        """A live table can: the next version reads the updates that have arrived, and that will."""
        return

    def why_not_behind(self, before: DeclaredData) -> str | None:
        """Its log must be readable."""
        facts = self.declared().facts
        assert isinstance(facts, LiveTableFacts)
        return why_not_after(before.facts, facts)

    def continues(self, before: Source) -> None:
        """Read and extend the log of another version."""
        assert isinstance(before, LiveTable)
        share(before.log, self._log)

    @property
    def count_moves(self) -> int:
        """The sensitivity of a count of its rows."""
        return self.prepare(count()).sensitivity

    def prepare(self, request: object) -> PreparedQuery:
        """The request with its public facts, or `InvalidRequest`. Touches no data."""
        return self._compiled(request).prepared

    def row_view(self) -> RowView:
        """The rows of this table, or of this part, that are there at a pin."""
        facts, width = self._protection, len(self._protection.columns)
        cut = [In(place, (key,)) for place, key in self._where]
        there = And((*cut, BeforePin(width), NotEnded(width + 1)))
        return RowView(PRESENT, there, facts.reached_keys, facts.moved)

    def stored_rows(self, pin: int) -> Iterator[StoredRow]:
        """The same rows, from the log itself, one at a time: their columns, and their unit behind."""
        return fallback.there(self._log.placed(pin), len(self.declaration.columns), self.row_view().within, pin)

    def _compiled(self, request: object) -> Compiled:
        if self._compile is None:
            self._compile = compiler(self.declaration, self.row_view(), DUCKDB)
        return self._compile(canonical(request))

    def resolve(self, pin: int | str, prepared: PreparedQuery) -> Secret:
        """The private integers of a prepared request, on the rows after the first `pin` updates."""
        compiled = self._compiled(prepared.request)
        if prepared != compiled.prepared:
            raise InvalidRequest("this request was prepared for another source: prepare it with this live table")
        declared, place = self.declaration, self._place(pin)
        fetched = fallback.fetched(
            compiled.plan,
            compiled.statements,
            lambda sql: self._log.fetch(declared, sql, place),
            lambda: self.stored_rows(place),
        )
        return Secret(compiled.request.read_rows(declared, compiled.plan, fetched))

    def _place(self, pin: int | str) -> int:
        if type(pin) is int and 0 <= pin <= len(self._log.items):
            return pin
        if type(pin) is not int or not 0 <= pin <= self.pin():
            raise InvalidRequest(f"a pin of this live table must be a number of updates, 0 to {len(self._log.items)}")
        return pin

    def part(self, by: str, key: Plain | float | Fraction) -> Self:
        """The rows in which column `by` has this value, which need not occur; in a category it must be a key."""
        column, value = self.declaration.column(by), self.key(by, key)
        if column.known_keys is not None and value not in column.known_keys:
            raise InvalidRequest(f"{shown(key)} is not a key of {by}, which is {column.describe()}")
        return self._view(self._reading, (*self._where, (self.declaration.index(by), value)))

    def key(self, by: str, key: Plain | float | Fraction) -> Key:
        """The stored value of column `by` that names a part."""
        return self.declaration.column(by).key(key)

    def spelled(self, by: str, stored: Key) -> Key | Fraction:
        """A stored value of column `by` in the user's units."""
        return self.declaration.column(by).spelled(stored)

    def reach(self, by: str) -> int:
        """In how many parts by this column two neighbouring live tables may ever differ (see `Protection.reach`)."""
        return self._protection.reach(by)


def _listed(rows: object) -> Iterable[object]:
    """One row or none as a list of one; anything else as it is."""
    if rows is None or isinstance(rows, Mapping):
        return [rows]
    if isinstance(rows, str | bytes) or not isinstance(rows, Iterable):
        raise InvalidRequest(f"rows are a mapping or a list of mappings, not a {type(rows).__name__}")
    return rows

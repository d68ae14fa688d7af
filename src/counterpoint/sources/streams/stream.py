"""A stream: data that keeps arriving (Henzinger et al. 2024, sec. 3.2).

A stream is an append-only log of numbers, of vectors, or of records with named fields. The number of items is public;
their values are private. Continual mechanisms receive the items as updates, each from its own place on; one-shot
mechanisms ask for `total()`; records can be partitioned. Two streams are neighbours if they have the same length and
differ only in the values of one unit's items (at event level each item is its own unit); see `Stream` for the exact
definition.

>>> visits = Stream(bound=1)
>>> visits.extend([1, 0, 7, float("nan")])
>>> visits, visits.pin(), visits.relation
(Stream(bound=1; 4 items), 4, Steps(updates=1, bound=1))
>>> visits.items(2, 4)
(Update(Secret(...)), Update(Secret(...)))
>>> visits.resolve(4, visits.prepare(total()))
Secret(...)
"""

import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import reduce
from typing import Any, Self

from msgspec.structs import replace

from counterpoint.encoding import Plain, digest, encode
from counterpoint.engines.dialect import Dialect
from counterpoint.engines.duckdb import DUCKDB
from counterpoint.engines.sampling import coins
from counterpoint.errors import InvalidParameter, InvalidRequest, NotCovered, shown
from counterpoint.privacy.messages import Update, blank_update
from counterpoint.privacy.relations import MinSeparation, Relation, Steps
from counterpoint.privacy.samples import Sample
from counterpoint.privacy.secret import Raw, Secret
from counterpoint.queries import fallback
from counterpoint.queries.compile import Compiled, RowView, canonical, compiler, is_request
from counterpoint.queries.contributions import Contribution
from counterpoint.queries.request import PreparedQuery, Request, describe_request
from counterpoint.queries.source import BY_REPLACEMENT, Source
from counterpoint.schema.columns import Column, Key
from counterpoint.schema.declaration import NEIGHBOURS, Declaration
from counterpoint.schema.expressions.evaluate import StoredRow
from counterpoint.schema.expressions.tree import And, BeforePin, In
from counterpoint.schema.unit_keys import UnitType
from counterpoint.schema.units import of_stream
from counterpoint.schema.versions import DeclaredData
from counterpoint.sources.streams.feed import Feedable
from counterpoint.sources.streams.feed_target import conversion
from counterpoint.sources.streams.items import (
    ItemReader,
    ItemShape,
    Record,
    RunningTotal,
    read_stream_subscription,
    total,
)
from counterpoint.sources.streams.log import FeedStep, Log, Unit
from counterpoint.sources.streams.memory_log import share
from counterpoint.sources.streams.records import Fields, RecordReader
from counterpoint.sources.streams.rows import ARRIVED
from counterpoint.sources.streams.stored_forms import StreamFacts, read_as, why_not_after


class Stream(Feedable, Source):
    """An append-only log of private values, with a public length.

    An item is a number in [0, bound], or in [-bound, bound] if `signed`; with `dimensions`, a vector of that many
    numbers (`ItemShape` says how values that do not fit are clamped); with `fields`, a record whose fields are declared
    like a table's columns (see `Fields`). Mechanisms receive the number, category or vector of numbers of a record that
    `of` names, or 1.

    With `unit` and `per_unit`, each item has a unit that owns it, and the first `per_unit` items of a unit count. Later
    items are stored as empty: the owner of an item is as private as its value, so the number of items must not reveal
    it. With `apart`, an item that is less than `apart` places after the last one of its unit that counts does not count
    either, and is not one of the `per_unit`; counters under zCDP then need less noise. Which items of a unit count
    depends on their places alone, never on their values. `unit_type`, "whole" or "text", states which values name one
    unit (see `unit_keys`); where it is left out, the other sources of a `Sources` state it, or else units are texts.

    Two streams of the same length are neighbours

    - at event level, if they differ in one item, which has another value or, in one of them, is empty (0 in all of its
      numbers, a record in no part);
    - at user level, if they differ in the items of one unit: in the same places they have other values, or in one of
      the streams all of them are empty and without owner, as if that unit had never existed;
    - with `neighbours="add-or-remove"`, only if the items are empty in one of the streams: signed values then move by
      half as much, and a unit reaches half as many parts.

    So neighbours differ in at most `per_unit` places (1 at event level), each by at most the distances of the relation.

    >>> clicks = Stream(bound=1, dimensions=4, unit="user", per_unit=10)
    >>> clicks.append([1, 0, 0, 1], unit="ann")
    >>> clicks.relation
    Steps(updates=10, bound=4, squared=4)
    >>> Stream(unit="phone", per_unit=10, apart=1000).relation
    MinSeparation(inner=Steps(updates=10, bound=1), apart=1000)
    """

    __slots__ = (
        "_compile",
        "_declared",
        "_distances",
        "_kind",
        "_log",
        "_neighbours",
        "_read",
        "_reading",
        "_records",
        "_samples",
        "_where",
    )

    def __init__(
        self,
        bound: int = 1,
        dimensions: int | None = None,
        unit: str | None = None,
        per_unit: int | None = None,
        signed: bool = False,
        *,
        fields: Mapping[str, Column] | None = None,
        neighbours: str = "replace",
        l1: int | None = None,
        l2_squared: int | None = None,
        apart: int | None = None,
        unit_type: UnitType | None = None,
    ) -> None:
        if neighbours not in NEIGHBOURS:
            known = " or ".join(repr(name) for name in NEIGHBOURS)
            raise InvalidParameter(f"neighbours must be {known}, but {str(neighbours)[:40]!r} was given")
        shape = ItemShape(bound, dimensions, signed, l1, l2_squared)
        if fields is not None and shape != ItemShape():
            raise InvalidParameter(
                "fields={...} declares each field of a record with its own bounds: leave out bound, dimensions, "
                "signed, l1 and l2_squared"
            )
        self._kind: ItemShape | Fields = shape if fields is None else Fields.of(fields)
        fit = self._kind.fit if isinstance(self._kind, ItemShape) else read_as(self._kind.declared.columns)
        self._log = Log(
            unit, per_unit, apart, unit_type, fit
        )  # which reads them: Python writes no number of any length
        items = {"bound": bound} if isinstance(self._kind, ItemShape) else {"fields": list(self._kind.names)}
        other = {"dimensions": dimensions, "unit": unit, "per_unit": per_unit, "apart": apart, "signed": signed or None}
        other["unit_type"] = unit_type
        last = {"l1": l1, "l2_squared": l2_squared, "neighbours": None if neighbours == "replace" else neighbours}
        given = {**items, **other, **last}
        self._declared = ", ".join(f"{name}={value!r}" for name, value in given.items() if value is not None)
        self._neighbours, self._distances = neighbours, (l1, l2_squared)
        self._records = RecordReader(self._kind, unit) if isinstance(self._kind, Fields) else None
        self._reading: ItemReader | Contribution | None = None
        self._read: ItemReader | Contribution = self._kind.item_reader(neighbours)
        self._where: tuple[tuple[int, Key], ...] = ()
        self._samples: tuple[Sample, ...] = ()
        self._compile: Callable[[bytes], Compiled] | None = None

    def _view(self, reading: ItemReader | Contribution | None, where: tuple[tuple[int, Key], ...], label: str) -> Self:
        """Another view of the same log; the repr shows its label."""
        view = self.__class__.__new__(self.__class__)
        view._kind, view._log, view._neighbours = self._kind, self._log, self._neighbours
        view._declared, view._reading, view._where = f"{self._declared}, {label}", reading, where
        view._samples = self._samples
        view._distances = self._distances
        view._read = reading or self._read
        view._compile = view._records = None
        return view

    @property
    def why_not_sampled(self) -> str | None:
        """A stream with neighbours by replacement, which is what streams are declared with unless they say otherwise.

        >>> Stream(neighbours="add-or-remove").why_not_sampled is None
        True
        """
        return BY_REPLACEMENT if self._neighbours == "replace" else None

    def sampled(self, sample: Sample) -> Self:
        """The same stream, in which the items of units outside this sample are empty; of a sample, outside of both.

        A unit keeps its coin for life; at event level each item has one.
        """
        if self.why_not_sampled is not None:
            raise NotCovered(f"no sample is drawn of this data: {self.why_not_sampled}")
        view = self._view(self._reading, self._where, "sampled")
        view._samples = (*self._samples, sample)
        return view

    def __repr__(self) -> str:
        return f"Stream({self._declared}; {len(self._log.items)} items)"

    def describe(self) -> str:
        """What this stream guarantees, in a paragraph, then its declaration line by line; neither depends on the items.

        >>> from counterpoint.schema.columns import number
        >>> print(Stream(fields={"clicks": number(0, 10)}, unit="user", per_unit=3).describe())
        Protected is everything about one user (user level). Whatever analysts see would be nearly as likely
        if the items of that user had other values or were empty; the budget of the session says how nearly.
        This holds against analysts who know all other items, choose every request after the answers before
        it, and share what they learn. It does not hide what the data say about people in general. Public
        are how many items there are, when and in which order they arrive, the ids under which they are
        sent, and what is declared about them: bounds, steps and keys. The first 3 items of each user count;
        later ones, and items without a user, stay in their places as empty ones. No answer and no error
        says which. A value beyond its declared bounds counts as the nearest bound, and one that cannot be
        read, or is not among the declared keys, as missing.
        <BLANKLINE>
        unit: user, of which the first 3 items count
        neighbours: replace one unit by another
        clicks: a number from 0 to 10 in steps of 1
        """
        unit = "every item is its own unit" if self._log.unit is None else self._log.unit
        count = "" if self._log.most is None else f", of which the first {self._log.most} items count"
        count += "" if self._log.apart is None else f" that are at least {self._log.apart} places apart"
        guarantee = of_stream(self._log.unit, self._log.most, self._neighbours, self._log.apart)
        lines = (f"unit: {unit}{count}", f"neighbours: {NEIGHBOURS[self._neighbours]}", self._kind.describe())
        return "\n".join((guarantee.paragraph, "", *lines))

    @property
    def relation(self) -> Relation:
        """How many items may differ, and how far, for every reading; asks differ by their own sensitivity."""
        moves, most, apart = (
            self._reading or self._kind.covering(self._neighbours),
            self._log.most or 1,
            self._log.apart,
        )
        steps = Steps(updates=most, bound=moves.l1, squared=moves.squared)
        return steps if apart is None else MinSeparation(steps, apart)

    @property
    def dimensions(self) -> int | None:
        """The length of the vectors that mechanisms receive; None if they receive numbers."""
        return self._read.dimensions

    def of(self, fields: "str | Sequence[str] | Request | None" = None) -> Self:
        """The same stream, whose mechanisms receive these fields of a record as a number or a vector.

        A category arrives as a vector with a 1 at its key; several numbers as a vector, if their steps are equal;
        without a name, a record arrives as 1. In the place of fields, a request that is a sum over records (`count`,
        `sum`, `histogram`, `ranks`): a record arrives as what it adds to the answer. The relation is that of what is
        read.

        >>> from counterpoint.queries.aggregates import count
        >>> from counterpoint.schema.columns import category, number
        >>> visits = Stream(fields={"page": category(["home", "shop"]), "clicks": number(0, 10)})
        >>> visits.of("clicks").relation, visits.of("page").dimensions, visits.of().relation
        (Steps(updates=1, bound=10), 2, Steps(updates=1, bound=1))
        >>> visits.of(count(where="clicks >= 3")).relation
        Steps(updates=1, bound=1)
        """
        chosen = read_stream_subscription(fields)
        if chosen is None and (self._reading is not None or isinstance(self._kind, ItemShape)):
            return self
        if self._reading is not None:
            raise InvalidRequest(
                f"fields were chosen for this stream already: call of({shown(chosen, 200)}) on the original stream "
                "instead"
            )
        return self._view(self._kind.item_reader(self._neighbours, chosen), self._where, f"of={shown(chosen, 200)}")

    def append(self, value: object, unit: object = None, *, id: str | None = None) -> None:
        """Append one item; at user level `unit` names the unit that owns it, or a field of the record does.

        With an `id` the item is appended once, however often it is sent (see `extend`).
        """
        self.extend([value], None if unit is None else [unit], id=id)

    def extend(self, values: Iterable[object], units: Iterable[object] | None = None, *, id: str | None = None) -> None:
        """Append items in this order: all of them, or none if one has a wrong shape; `units` names the owner of each.

        With an `id` the items are appended once: a client that does not know whether they were sends them again, and
        the same items of the same units, compared in stored form, add nothing. Other items under that id are refused
        (`RequestConflict`). An id is public, belongs to one append to this stream, and is kept for ever.

        >>> spent = Stream(bound=100, unit="user", per_unit=2)
        >>> spent.extend([10, 20], units=["ann", "bob"], id="monday")
        >>> spent.extend([10, 20], units=["ann", "bob"], id="monday")
        >>> spent.pin()
        2
        """
        if isinstance(values, str | bytes | Mapping) or not isinstance(values, Iterable):
            raise InvalidRequest(f"extend takes a list of items, not a {type(values).__name__}; append takes one item")
        self.check_whole()
        self._log.extend(*self._converted(list(values), units), id)

    def check_whole(self) -> None:
        """Refuse to append to a part of this stream, or to a field."""
        if self._where or self._reading is not None:
            raise InvalidRequest("items are appended to the whole stream, not to a part or a field: use the original")

    def _converted(
        self, given: list[object], units: Iterable[object] | None
    ) -> "tuple[Sequence[Raw | Record | None], list[Unit | None]]":
        """Items in stored form, and their owners."""
        if isinstance(self._kind, ItemShape):
            owners = self._log.owners(units, len(given))
            return [self._kind.fit(value) for value in given], owners
        if units is not None:
            raise InvalidRequest(
                f"a record names its unit in its own field{'' if self._log.unit is None else f' {self._log.unit!r}'}: "
                "leave out units"
            )
        assert self._records is not None  # items are appended to the original stream
        owners = self._log.owners_in(given)
        return self._records.read(given, owners), owners

    def conversion(self, kinds: dict[str, str], given: str, dialect: Dialect) -> str:
        """The query by which a feed converts rows to records in stored form, and behind their fields the unit."""
        return conversion(self.declaration, kinds, given, dialect)

    def receive(self, values: Sequence[object], step: FeedStep) -> None:
        """Append a batch of a feed: all items, or none if one has a wrong shape."""
        self._log.extend(*self._converted(list(values), None), step=step)

    def receive_stored(self, rows: Sequence[tuple[Any, ...]], step: FeedStep) -> None:
        """Append a batch of records in stored form, each with its unit behind its fields."""
        owners = [None if self._log.unit is None else self._log.key(row[-1]) for row in rows]
        self._log.extend([row[:-1] for row in rows], owners, step=step)

    def pin(self) -> int:
        """How many items have arrived."""
        return self._log.length()

    @property
    def log(self) -> Log:
        """The log, which a durable ledger stores."""
        return self._log

    def fingerprint(self) -> str:
        """A digest of the declaration and the reading; a durable ledger stores the items themselves."""
        distance = () if self._log.apart is None else (self._log.apart,)
        unit = (self._log.unit, self._log.unit_type or "text", self._log.most, *distance)
        read = None if self._reading is None else self._reading.stored
        return digest("stream", self._kind, unit, self._neighbours, read, self._where).hex()

    def declared(self) -> DeclaredData:
        """The declaration, in words and as it is made again."""
        kind, log = self._kind, self._log
        shape = kind if isinstance(kind, ItemShape) else ItemShape()
        facts = StreamFacts(
            None if isinstance(kind, ItemShape) else kind.declared.columns,
            *(shape.bound, shape.dimensions, shape.signed, *self._distances),
            *(log.unit, log.most, log.apart, log.unit_type, self._neighbours),
        )
        unit = () if log.unit is None else (log.unit,)
        types = tuple(log.unit_type or "text" for _ in unit)
        return DeclaredData("stream", unit, types, self._neighbours, self.describe(), facts)

    @classmethod
    def declared_as(cls, facts: StreamFacts) -> "Stream":
        """A stream that was declared like this, without items.

        >>> phones = Stream(bound=3, signed=True, unit="phone", per_unit=10, apart=7)
        >>> pages = Stream(bound=4, dimensions=3, l1=5, neighbours="add-or-remove")
        >>> [Stream.declared_as(it.declared().facts).fingerprint() == it.fingerprint() for it in (phones, pages)]
        [True, True]
        """
        fields = None if facts.columns is None else {named.name: named.column for named in facts.columns}
        return cls(
            facts.bound,
            facts.dimensions,
            facts.unit,
            facts.per_unit,
            facts.signed,
            fields=fields,
            neighbours=facts.neighbours,
            l1=facts.l1,
            l2_squared=facts.l2_squared,
            apart=facts.apart,
            unit_type=facts.unit_type,
        )

    @property
    def why_not_refreshed(self) -> None:
        """A stream can: the next version reads what has arrived, and what will."""
        return

    def why_not_behind(self, before: DeclaredData) -> str | None:
        """Its log must be readable."""
        facts = self.declared().facts
        assert isinstance(facts, StreamFacts)
        return why_not_after(before.facts, facts)

    def continues(self, before: Source) -> None:
        """Read and extend the log of another version."""
        assert isinstance(before, Stream)
        share(before.log, self._log)

    def items(self, start: int | str, end: int | str) -> tuple[Update, ...]:
        """The items that arrived between two pins, as updates."""
        read, value = self._read, self._value
        return tuple(Update(value(read, item)) for item in self._seen(self._place(start), self._place(end)))

    def _seen(self, first: int, last: int) -> "Sequence[Raw | Record | None]":
        """These items; None in the place of those whose units are not in the sample, if this is one."""
        items = self._log.items[first:last]
        if not self._samples:
            return items
        names = self._log.unit_keys_between(first, last)
        kept = {name for name in set(names) if name is not None and all(it.keeps(name) for it in self._samples)}
        return [item if name in kept else None for item, name in zip(items, names, strict=True)]

    def blank_update(self) -> Update:
        """All updates have the shape of what is read."""
        return blank_update(self._read.dimensions)

    def _value(self, read: ItemReader | Contribution, item: Raw | Record | None) -> Raw:
        """The integers of an item, 0 if it does not count or is in another part."""
        if item is None:
            return read.zero
        value = read.read(item)
        return value if all(item[place] == key for place, key in self._where) else read.zero  # type: ignore[index]

    def _place(self, pin: int | str) -> int:
        if type(pin) is int and 0 <= pin <= len(self._log.items):
            return pin
        if type(pin) is not int or not 0 <= pin <= self.pin():
            raise InvalidRequest(f"a pin of this stream must be a number of items, 0 to {len(self._log.items)}")
        return pin

    @property
    def count_moves(self) -> int:
        """The sensitivity of a count of its items, or of their total where they are numbers."""
        return 1 if self.dimensions is not None else self.prepare(total()).sensitivity

    def prepare(self, request: object) -> PreparedQuery:
        """The public facts of a request: it moves by at most as much as the items of one unit that count."""
        if is_request(request) and isinstance(self._kind, Fields):
            return self._compiled(request).prepared
        read, most = self._requested(request), self._log.most or 1
        assert isinstance(request, RunningTotal)
        each = None if read.each is None else most * read.each
        names = read.keys or None
        return PreparedQuery(
            request, most * read.l1, most * most * read.squared, read.dimensions, read.grid, each, names=names
        )

    @property
    def has_records(self) -> bool:
        """Whether the items are records with fields, which requests can be about."""
        return isinstance(self._kind, Fields)

    @property
    def unit(self) -> str | None:
        """What identifies a unit, if items have one."""
        return self._log.unit

    @property
    def declaration(self) -> Declaration:
        """Everything public about the records of this stream, as a table would declare it."""
        if not isinstance(self._kind, Fields):
            raise InvalidRequest("the items of this stream are not records: declare them with fields={...}")
        unit, columns = self._log.unit, self._kind.declared.columns
        types = () if unit is None else (self._log.unit_type or "text",)
        return Declaration(unit, self._log.most or 1, self._neighbours, columns, unit_types=types)

    def row_view(self) -> RowView:
        """The items of this stream, or of this part, that have arrived by a pin, as stored rows."""
        cut = [In(field, (key,)) for field, key in self._where]
        rows, place = ARRIVED, len(self.declaration.columns)
        if self._samples:
            name = DUCKDB.written(f"c{place}") if self._log.unit is None else "u"
            rows = f"(SELECT * FROM {ARRIVED} WHERE {coins(self._samples, name, DUCKDB)}) AS {ARRIVED}"
        return RowView(rows, And((*cut, BeforePin(place))))

    def stored_rows(self, pin: int) -> Iterator[StoredRow]:
        """The same rows, from the log itself, one at a time: their fields, and their unit behind."""
        width = len(self.declaration.columns)
        rows = (row for row in self._log.placed(pin) if self._sees(row[width] if self._log.unit is None else row[-1]))
        return fallback.there(rows, width, self.row_view().within, pin)

    def _sees(self, unit: int | str | None) -> bool:
        """Whether a unit, or an item that is its own, is in all samples."""
        return not self._samples or (unit is not None and all(it.keeps(str(unit)) for it in self._samples))

    def _compiled(self, request: object) -> Compiled:
        """A request on the items of this stream, or of this part, that have arrived by a pin.

        Neighbours of a stream need not move one way (its relation does not say so), so its requests do not claim it.
        """
        if self._compile is None:
            self._compile = compiler(self.declaration, self.row_view(), DUCKDB)
        found = self._compile(canonical(request))
        return found._replace(prepared=replace(found.prepared, one_way=False))

    def _requested(self, request: object) -> ItemReader | Contribution:
        if type(request) is not RunningTotal:
            answers = "total()" if isinstance(self._kind, ItemShape) else "total() and the requests of a table"
            raise InvalidRequest(
                f"this stream answers {answers}, not {describe_request(request)}; launch a Counter for running counts, "
                "declare records with fields={...}, or put data that does not change into a Table"
            )
        return self._read if request.of is None else self._kind.item_reader(self._neighbours, request.of)

    def resolve(self, pin: int | str, prepared: PreparedQuery) -> Secret:
        """The private integers of a prepared request, on the first `pin` items."""
        if prepared != self.prepare(prepared.request):
            raise InvalidRequest("this request was prepared for another source: prepare it with this stream")
        if is_request(prepared.request):
            compiled = self._compiled(prepared.request)
            declared, place = self.declaration, self._place(pin)
            fetched = fallback.fetched(
                compiled.plan,
                compiled.statements,
                lambda sql: self._log.fetch(declared, sql, place),
                lambda: self.stored_rows(place),
            )
            return Secret(compiled.request.read_rows(declared, compiled.plan, fetched))
        return Secret(self._sum(self._place(pin), self._requested(prepared.request)))

    def _sum(self, place: int, read: ItemReader | Contribution) -> Raw:
        """The sum of the first `place` items; the last sum of each reading is cached, so only new items are added.

        Not that of a sample: there are as many samples as launches.
        """
        if self._samples:
            return reduce(_plus, (self._value(read, item) for item in self._seen(0, place)), read.zero)
        about = encode((read.stored, self._where))  # as values, the keys 1 and True would be one
        known, before = self._log.sums.get(about, (0, read.zero))
        if known > place:
            known, before = 0, read.zero
        values = (self._value(read, item) for item in self._log.items[known:place])
        found: Raw = reduce(_plus, values, before)
        self._log.sums[about] = (place, found)
        return found

    @property
    def update_grid(self) -> Fraction:
        """What one integer step of an update is worth in the user's units."""
        return self._read.grid

    def part(self, by: str, key: Plain | float | Fraction) -> Self:
        """The items in which field `by` has this value, which need not occur; the other items are empty in this part.

        The number of items is public, and the part of an item is as private as its value; so a part is a stream of the
        same length as the whole.
        """
        column, value = self._cut(by), self.key(by, key)
        assert isinstance(self._kind, Fields)
        if column.known_keys is not None and value not in column.known_keys:
            raise InvalidRequest(f"{shown(key)} is not a key of {by}, which is {column.describe()}")
        return self._view(self._reading, (*self._where, (self._kind.declared.index(by), value)), f"{by}={key!r}")

    def key(self, by: str, key: Plain | float | Fraction) -> Key:
        """The stored value of field `by` that names a part."""
        return self._cut(by).key(key)

    def spelled(self, by: str, stored: Key) -> Key | Fraction:
        """A stored value of field `by` in the user's units."""
        return self._cut(by).spelled(stored)

    def reach(self, by: str) -> int:
        """In how many parts by this field two neighbouring streams may differ.

        An item is in at most one part. In each of the `per_unit` places where neighbours differ it may move from one
        part to another, which makes two parts, or one if it can only appear or disappear. The field that names the unit
        keeps its value unless the whole unit appears or disappears, which makes one part in all. And there are no more
        parts than keys.

        >>> from counterpoint.schema.columns import text
        >>> Stream(fields={"page": text()}).reach("page"), Stream(
        ...     fields={"page": text()}, unit="user", per_unit=3, neighbours="add-or-remove"
        ... ).reach("page")
        (2, 3)
        """
        column = self._cut(by)
        if by == self._log.unit:
            return 1
        most = (self._log.most or 1) * (2 if self._neighbours == "replace" else 1)
        return most if column.known_keys is None else min(most, len(column.known_keys))

    def _cut(self, by: str) -> Column:
        if isinstance(self._kind, ItemShape):
            raise InvalidRequest(
                f"a stream of numbers has no field {shown(by)} to partition by: declare records with fields={{...}}, "
                "or vectors with a coordinate for each part (dimensions=...)"
            )
        return self._kind.declared.column(by)


def _plus(left: Raw, right: Raw) -> Raw:
    if isinstance(left, tuple) and isinstance(right, tuple):
        return tuple(map(operator.add, left, right))
    assert isinstance(left, int) and isinstance(right, int)
    return left + right

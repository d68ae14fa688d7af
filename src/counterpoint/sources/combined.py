"""Several sources about the same units, under one budget (Vadhan and Wang 2021, sec. 1.4).

A unit is the same in all of them, by its name. Two data sets are neighbours if they differ by what one unit has in all
sources together: each source by its own declaration, and a unit of sources that are declared for adding or removing is
in all of them or in none. A request is about one source, which `of` names, and has that source's sensitivity. Its rows
see their own unit's attributes in sources that have one row for each unit, and public lookup tables (`joins.py`).

>>> import duckdb
>>> from counterpoint.queries.aggregates import count
>>> from counterpoint.schema.columns import number, text
>>> rows = duckdb.sql("SELECT * FROM (VALUES ('ann', 70), ('bob', 17)) AS people(person, age)")
>>> people = Table(rows, unit="person", rows_per_unit=1, columns={"age": number(0, 120)})
>>> visits = Stream(fields={"page": text()}, unit="person", per_unit=5)
>>> both = Sources(people=people, visits=visits, unit="person")
>>> visits.extend([{"person": "ann", "page": "home"}, {"person": "bob", "page": "home"}])
>>> old = both.prepare(count(of="visits", where="people.age >= 65"))
>>> old.sensitivity, both.prepare(count(of="people")).sensitivity
(5, 1)
>>> both.resolve(both.pin(), old)
Secret(...)
>>> both.of("visits").relation
Steps(updates=5, bound=1)
"""

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from functools import lru_cache, partial

from msgspec.structs import replace

from counterpoint.encoding import Plain, digest
from counterpoint.errors import InvalidParameter, InvalidRequest, shown
from counterpoint.privacy.messages import Update
from counterpoint.privacy.relations import MinSeparation, OneWay, Relation, Steps
from counterpoint.privacy.secret import Secret
from counterpoint.queries.compile import canonical, is_request
from counterpoint.queries.request import OnSource, PreparedQuery, Request, describe_request
from counterpoint.queries.source import Source
from counterpoint.schema.units import one_column
from counterpoint.schema.versions import DeclaredData
from counterpoint.sources.joins import JoinedRequest, JoinView, Member, compile_joined
from counterpoint.sources.journal import Channel, Journal
from counterpoint.sources.lookup import Lookup
from counterpoint.sources.report import Report
from counterpoint.sources.streams.items import RunningTotal, Subscription, read_subscription
from counterpoint.sources.streams.live_table import LiveTable
from counterpoint.sources.streams.stream import Stream
from counterpoint.sources.table import Table

_CACHED = 1024
_LONGEST_NAME = 50
"""The name of a source has room beside an id in an id of the journal."""


class Sources(Source):
    """Tables, live tables and streams about the same units; `unit` names what identifies a unit in each.

    Every source has a unit of that name, and a cap on its rows or items. `Lookup`s, which are public, may be among
    them. A mechanism that follows what arrives follows one source: `launch(Counter(...), of="visits")`,
    `of="visits.seconds"` for a field, `of=count(of="people", where=...)` for a request; other mechanisms receive no
    updates. Once a stream or a live table is among the sources, what arrives does so through them, and it belongs to no
    other session.

    One type of units holds for all sources: the one that a source declares, or that a table's schema says (see
    `unit_keys`). Sources of different types are refused; streams and live tables that declare none take the others'.
    """

    __slots__ = ("_besides", "_channels", "_compile", "_journal", "_lookups", "_members", "_unit")

    def __init__(self, *, unit: str, **sources: Source | Lookup) -> None:
        self._unit = one_column(unit, "several sources")
        for name in sources:
            if not name.isidentifier() or len(name) > _LONGEST_NAME:
                raise InvalidParameter(
                    f"a source is named by a word of at most {_LONGEST_NAME} letters, digits and underscores, such as "
                    f"'visits', not {shown(name)}: requests name its columns with a dot, as in 'visits.page'"
                )
        self._lookups = {name: source for name, source in sources.items() if isinstance(source, Lookup)}
        self._members: dict[str, Member] = {
            name: _member(name, source, unit) for name, source in sources.items() if not isinstance(source, Lookup)
        }
        if not self._members:
            raise InvalidParameter(
                "give the sources by name, as in Sources(people=table, visits=stream, unit='person')"
            )
        _agree_on_units(unit, self._members)
        self._besides = {name: JoinView(name, self._members, self._lookups) for name in self._members}
        self._compile: dict[str, Callable[[bytes], JoinedRequest]] = {
            name: lru_cache(_CACHED)(partial(compile_joined, *beside.rows, beside.joins))
            for name, beside in self._besides.items()
            if beside.rows is not None
        }
        self._journal = Journal()
        self._channels: dict[str, Channel] = {}
        for name, source in sorted(self._members.items()):  # in whatever order they are given again after a restart
            if not isinstance(source, Table):
                self._channels[name] = self._journal.join(name, source.log)

    def __repr__(self) -> str:
        return f"Sources({', '.join((*self._members, *self._lookups))}; unit={self._unit!r})"

    @property
    def unit(self) -> str:
        """What identifies a unit in each of them."""
        return self._unit

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the sources that requests are about."""
        return tuple(self._members)

    def seen_from(self, name: str) -> dict[str, tuple[tuple[str, str, str], ...]]:
        """What the rows of a source see: attributes of their own unit, and what lookups have for their values."""
        by_unit = ((self._unit, "=", self._unit),)
        return {
            join.name: self._lookups[join.name].comparisons if join.name in self._lookups else by_unit
            for join in self._besides[name].joins
        }

    def describe(self) -> str:
        """What is protected, then every source in words; none of it depends on the data."""
        head = (
            f"Protected is everything about one {self._unit} in {_listed(self._members)}, taken together, by one "
            f"budget. A row sees what its own {self._unit} has in sources with one row for each, and public tables."
        )
        private = [f"{name}:\n{source.describe()}" for name, source in self._members.items()]
        public = [f"{name}: public, found by {lookup.found_by}" for name, lookup in self._lookups.items()]
        return "\n\n".join((head, *private, *public))

    @property
    def relation(self) -> Relation:
        """What all streams send may differ, as far as each allows, and so may all asks, by their own sensitivity."""
        if not self._channels:
            return self.standing
        moving = [_steps(self._members[name].relation) for name in self._channels]
        updates, bound = _all(sum, [it.updates for it in moving]), _all(max, [it.bound for it in moving])
        return self._one_way(Steps(updates=updates, bound=bound, squared=_all(max, [it.squared for it in moving])))

    @property
    def standing(self) -> Relation:
        """How asks may differ where no stream is followed."""
        return self._one_way(Steps(updates=0))

    def _one_way(self, steps: Steps) -> Relation:
        """Requests that say that they move one way do so together: a unit is in all sources that say so, or in none."""
        return OneWay(steps) if any(isinstance(it.relation, OneWay) for it in self._members.values()) else steps

    def of(self, fields: "str | Sequence[str] | Request | None" = None) -> "Following":
        """The same sources, whose mechanisms follow a stream, fields of it, or a request about it.

        By default they follow nothing.
        """
        chosen = read_subscription(fields)
        if chosen is None:
            return Following(self, None)
        name, read = _followed_in(chosen)
        source = self._member(name)
        if isinstance(source, Table):
            raise InvalidRequest(
                f"{name} is a table, which does not change: a mechanism can follow a stream or a live table"
            )
        joined = self._joined(OnSource(name, read)) if isinstance(read, Request) else None
        if joined is not None and joined.used:
            raise InvalidRequest(
                f"a mechanism that follows {name} reads its own columns as they arrive, and those of "
                f"{_listed(joined.used)} are read when an ask comes: leave them out, or ask with a one-shot mechanism, "
                "such as Laplace"
            )
        return Following(self, (name, source.of(read)))

    def pin(self) -> int | str:
        """How much has arrived in all streams; without a stream, a digest of the tables' versions."""
        if self._channels:
            return self._journal.length()
        return digest("sources", *(str(source.pin()) for source in self._members.values())).hex()

    def pin_of(self, name: str, pin: int | str) -> int | str:
        """The version of one source at a pin of all."""
        latest = self._members[name].pin()  # which reads what has arrived in the stream
        if name not in self._channels:
            return latest
        if type(pin) is not int or not 0 <= pin <= self._journal.length():
            raise InvalidRequest("a pin of these sources must be a number of items that have arrived")
        return self._channels[name].before(pin)

    def declared(self) -> DeclaredData:
        """What each source declares."""
        members = tuple((name, source.declared()) for name, source in sorted(self._members.items()))
        types = sorted({one for _, member in members for one in member.unit_types})
        return DeclaredData("group of sources", (self._unit,), tuple(types), "", self.describe(), None, members)

    def numbered(self, version: int) -> "Sources":
        """The same sources, each as this version."""
        if version == 1 or self._channels:
            return self
        members = {name: source.numbered(version) for name, source in self._members.items()}
        return Sources(unit=self._unit, **members, **self._lookups)

    @property
    def lookups(self) -> Mapping[str, Lookup]:
        """The public tables among them."""
        return self._lookups

    @property
    def members(self) -> Mapping[str, Source]:
        """The sources that requests are about, by name."""
        return self._members

    @property
    def why_not_refreshed(self) -> str | None:
        """Streams among several sources share one order, which a next version would begin anew; tables can."""
        if self._channels:
            return f"what arrives in {_listed(self._channels)} is in one order with the other sources'"
        return None

    def check(self) -> dict[str, Report]:
        """The custodian's report on each table, by its name: **raw data, never for analysts** (see `Table.check`)."""
        return {name: source.check() for name, source in self._members.items() if isinstance(source, Table)}

    @property
    def log(self) -> Journal | None:
        """The order of what arrives in all streams."""
        return self._journal if self._channels else None

    def fingerprint(self) -> str | None:
        """A digest of all fingerprints; None if one of the sources has none."""
        members = [(name, source.fingerprint()) for name, source in sorted(self._members.items())]
        if any(found is None for _, found in members):
            return None
        lookups = [(name, lookup.fingerprint()) for name, lookup in sorted(self._lookups.items())]
        return digest("sources", self._unit, *(str(it) for it in (*members, *lookups))).hex()

    def rows(self) -> bytes | None:
        """The digests of the given rows of each table that can be compared with other data, one behind the other."""
        found = [source.rows() for source in self._members.values() if isinstance(source, Table)]
        return b"".join(rows for rows in found if rows is not None) or None

    @property
    def count_moves(self) -> int:
        """The largest of any source."""
        return max(source.count_moves for source in self._members.values())

    def prepare(self, request: object) -> PreparedQuery:
        """The public facts of a request about one of the sources."""
        asked = self._about(request)
        joined = self._joined(asked)
        if joined is None or not joined.used:
            found = self._member(asked.source).prepare(asked.request)
        else:
            found = joined.compiled.prepared
            if isinstance(self._members[asked.source], Stream):  # whose neighbours need not move one way
                found = replace(found, one_way=False)
        return replace(found, request=asked)

    def resolve(self, pin: int | str, prepared: PreparedQuery) -> Secret:
        """The private integers of a prepared request."""
        if prepared != self.prepare(prepared.request):
            raise InvalidRequest("this request was prepared for other sources: prepare it with these")
        asked = self._about(prepared.request)
        source, joined = self._member(asked.source), self._joined(asked)
        if joined is None or not joined.used:
            return source.resolve(self.pin_of(asked.source, pin), source.prepare(asked.request))
        found = self._besides[asked.source].fetch(joined, lambda name: self.pin_of(name, pin))
        return Secret(joined.compiled.request.read_rows(joined.declared, joined.compiled.plan, found))

    def _joined(self, asked: OnSource) -> JoinedRequest | None:
        """The request on rows that see other sources, if its source has rows here."""
        compile_one = self._compile.get(asked.source)
        return None if compile_one is None or not is_request(asked.request) else compile_one(canonical(asked.request))

    def _about(self, request: object) -> OnSource:
        """The request with the name of its source."""
        if isinstance(request, OnSource):
            return request
        if type(request) is RunningTotal and isinstance(request.of, str):
            source, _, field = request.of.partition(".")
            return OnSource(source, RunningTotal(field or None))
        if is_request(request) or type(request) is RunningTotal:
            raise InvalidRequest(
                f"say which source this is about, as in count(of={next(iter(self._members))!r}); there are: "
                f"{', '.join(self._members)}"
            )
        raise InvalidRequest(f"these sources answer requests such as count(of=...), not {describe_request(request)}")

    def _member(self, name: str) -> Member:
        if name in self._members:
            return self._members[name]
        raise InvalidRequest(f"there is no source {shown(name)} to ask about; there are: {', '.join(self._members)}")

    def reach(self, by: str) -> int:
        """Several sources are not partitioned: a part would be one of a single source."""
        raise InvalidRequest("several sources cannot be partitioned: make a session of one of them, and partition that")

    def part(self, by: str, key: Plain | float | Fraction) -> Source:
        """See `reach`."""
        raise InvalidRequest("several sources cannot be partitioned: make a session of one of them, and partition that")


class Following(Source):
    """Several sources, as a mechanism sees them that follows one stream, or none."""

    __slots__ = ("_follows", "_whole")

    def __init__(self, whole: Sources, follows: tuple[str, Stream | LiveTable] | None) -> None:
        self._whole, self._follows = whole, follows

    def __repr__(self) -> str:
        return f"{self._whole!r}, following {'nothing' if self._follows is None else self._follows[0]}"

    @property
    def relation(self) -> Relation:
        """That of the stream; every ask may differ by its own sensitivity."""
        return self._whole.standing if self._follows is None else self._follows[1].relation

    @property
    def why_no_updates(self) -> str | None:
        """Which of them is followed must be said, and which request about a live table."""
        if self._follows is None:
            return "say of which source, as in launch(..., of='visits')"
        name, source = self._follows
        return (
            None
            if source.why_no_updates is None
            else f"say of which request, as in launch(..., of=cp.count(of={name!r}))"
        )

    @property
    def dimensions(self) -> int | None:
        """The length of the vectors that arrive."""
        return None if self._follows is None else self._follows[1].dimensions

    @property
    def update_grid(self) -> Fraction:
        """What one integer step of an update is worth in the user's units."""
        return Fraction(1) if self._follows is None else self._follows[1].update_grid

    def pin(self) -> int | str:
        """That of the whole."""
        return self._whole.pin()

    @property
    def count_moves(self) -> int:
        """That of the whole."""
        return self._whole.count_moves

    def prepare(self, request: object) -> PreparedQuery:
        """As the whole prepares it."""
        return self._whole.prepare(request)

    def resolve(self, pin: int | str, prepared: PreparedQuery) -> Secret:
        """As the whole resolves it."""
        return self._whole.resolve(pin, prepared)

    def items(self, start: int | str, end: int | str) -> tuple[Update, ...]:
        """The items of the stream that arrived between two pins of the whole."""
        if self._follows is None:
            return ()
        name, stream = self._follows
        return stream.items(self._whole.pin_of(name, start), self._whole.pin_of(name, end))

    def blank_update(self) -> Update | None:
        """That of the stream."""
        return None if self._follows is None else self._follows[1].blank_update()

    def part(self, by: str, key: Plain | float | Fraction) -> Source:
        """See `Sources.reach`."""
        return self._whole.part(by, key)


def _member(name: str, source: object, unit: str) -> Member:
    """A source that can be one of several: it has units, of this name."""
    if not isinstance(source, Member):
        kind = type(source).__name__
        raise InvalidParameter(f"{name} must be a Table, a LiveTable, a Stream or a Lookup, not a {kind}")
    if isinstance(source, LiveTable) and source.protects_events:
        raise InvalidParameter(f"{name} protects single updates, and these sources protect units: leave out protects")
    own = source.declaration.unit if isinstance(source, Table) else source.log.unit
    if own != unit:
        is_called = "has no unit" if own is None else f"calls its unit {own!r}"
        raise InvalidParameter(
            f"{name} {is_called}, and these sources are about {shown(unit)}: declare it with unit={unit!r}"
        )
    return source


def _agree_on_units(unit: str, members: Mapping[str, Member]) -> None:
    """Have one rule say which values name one unit in all sources, or refuse them, by what they declare."""
    declared = {
        name: source.declaration.unit_type(unit) if isinstance(source, Table) else source.log.unit_type
        for name, source in members.items()
    }
    known = {of: name for name, of in declared.items() if of is not None}
    if len(known) > 1:
        raise InvalidParameter(
            f"{known['whole']} names its units by whole numbers, and {known['text']} by texts: declare one unit_type, "
            "'whole' or 'text', for both"
        )
    for source in members.values():
        if not isinstance(source, Table):
            source.log.adopt(next(iter(known), "text"))


def _steps(relation: Relation) -> Steps:
    """What differs, whichever way it moves and however far apart it is."""
    steps = relation.inner if isinstance(relation, OneWay | MinSeparation) else relation
    assert isinstance(steps, Steps)
    return steps


def _all(combine: Callable[[list[int]], int], limits: list[int | None]) -> int | None:
    """Limits combined; None, which is no limit, if one of them is none.

    >>> _all(sum, [2, 3]), _all(max, [2, None])
    (5, None)
    """
    known = [limit for limit in limits if limit is not None]
    return combine(known) if len(known) == len(limits) else None


def _followed_in(chosen: Subscription) -> "tuple[str, str | list[str] | Request | None]":
    """The stream that is followed, and what is read of it.

    >>> _followed_in("visits"), _followed_in(("visits.clicks", "visits.seconds"))
    (('visits', None), ('visits', ['clicks', 'seconds']))
    """
    if isinstance(chosen, OnSource) and isinstance(chosen.request, Request):
        return chosen.source, chosen.request
    if not isinstance(chosen, str | tuple) or not chosen:
        raise InvalidRequest("say which stream is followed, as in of='visits' or of=count(of='visits', where=...)")
    names = [name.partition(".") for name in ((chosen,) if isinstance(chosen, str) else chosen)]
    streams, fields = sorted({name for name, _, _ in names}), [field for _, _, field in names if field]
    if len(streams) != 1 or len(fields) not in (0, len(names)):
        raise InvalidRequest(f"name one stream, or fields of one stream, not {shown(chosen)}")
    return streams[0], None if not fields else fields[0] if isinstance(chosen, str) else fields


def _listed(names: "Sequence[str] | Mapping[str, object]") -> str:
    """Names as a sentence lists them.

    >>> _listed(["people", "visits", "calls"])
    'people, visits and calls'
    """
    *most, last = names
    return f"{', '.join(most)} and {last}" if most else last

"""The append-only log of a stream and its parts: items with the units that own them, and each append once.

At user level only the first `per_unit` items of a unit count, and with `apart` only those at least `apart` places after
the last one of their unit that counts. Other items, and items without an owner, are stored as None: they take up a
place in the log, whose length is public, and contribute nothing. Which items count depends on their places alone, never
on their values or on other units. A log that must outlive its process has a keeper (a durable ledger), which orders the
appends of all processes. An append that is repeated under its id adds nothing, even if its items differ: the public
length never depends on the values of items.

>>> log = Log("user", 2)
>>> log.extend([5, 6, 7, 8], ["ann", "bob", "ann", "ann"], id="monday")
>>> log.extend([5, 6, 7, 8], ["ann", "bob", "ann", "ann"], id="monday")
>>> log.items
[5, 6, 7, None]
>>> far = Log("user", 2, apart=3)
>>> far.extend([5, 6, 7, 8, 9], ["ann", "ann", "bob", "ann", "ann"])
>>> far.items
[5, None, 7, 8, None]

A client that may have to retry a request gives it an id, and the request then happens once. Launches, asks and appends
have ids under the same limits. An id is public: the ledger stores it
unencrypted. A used id is kept for ever, or a late retry would count as a new request.

The appends of a feed have ids that say how far the feed has come, so the newest of them is where it resumes. They
follow each other: one that does not continue the newest is refused, so no item of a source arrives twice, even if two
processes feed one stream from it. They begin with "feed of ", as no other id of an append may, so none is mistaken for
one of them.

>>> step = FeedStep("visits.csv", "2000 items", follows="1000 items")
>>> step.id, position(["visits.csv: 9 items", step.id, "feed of visits.csv: 1000 items"], "visits.csv")
('feed of visits.csv: 2000 items', '2000 items')
>>> checked_id("monday")
'monday'
>>> checked_id("")
Traceback (most recent call last):
...
counterpoint.errors.InvalidParameter: a request id must be a text of 1 to 256 characters, such as 'monday', not the ...
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from threading import Lock
from typing import Any, NamedTuple, Protocol, cast

from counterpoint.engines.duckdb import JoinedTable
from counterpoint.errors import DataChanged, DataInUse, InvalidParameter, InvalidRequest, RequestConflict, shown
from counterpoint.numbers.exact import whole
from counterpoint.privacy.secret import Raw
from counterpoint.process import Owner
from counterpoint.schema.columns import is_readable
from counterpoint.schema.declaration import Declaration
from counterpoint.schema.expressions.evaluate import StoredRow
from counterpoint.schema.unit_keys import UnitType, checked_key, checked_unit_type, type_words, unit_key
from counterpoint.schema.units import one_column
from counterpoint.sources.streams.items import Record
from counterpoint.sources.streams.rows import ArrivedRows

_LONGEST = 256
_FEED = "feed of "
"""How the ids of the appends of feeds begin."""


def checked_id(given: object) -> str:
    """The id as a plain text that every database can store, or `InvalidParameter`."""
    text = str.__str__(given) if isinstance(given, str) else ""
    if not 0 < len(text) <= _LONGEST or not is_readable(text):
        what = f"not the {type(given).__name__} {shown(given)}"
        raise InvalidParameter(f"a request id must be a text of 1 to {_LONGEST} characters, such as 'monday', {what}")
    return text


def append_id(given: object) -> str:
    """The id of an append, or `InvalidParameter`; the ids of a feed's batches are the feed's own.

    >>> append_id("feed of visits.csv: 1000 items")
    Traceback (most recent call last):
    ...
    counterpoint.errors.InvalidParameter: the id of an append must not begin with 'feed of ', as those of a feed's ...
    """
    id = checked_id(given)
    if id.startswith(_FEED):
        raise InvalidParameter(
            f"the id of an append must not begin with {_FEED!r}, as those of a feed's batches do: choose another id"
        )
    return id


class FeedStep(NamedTuple):
    """One append of a feed: the public position that the feed reaches with it, and the one that it continues."""

    feed: str
    position: str
    follows: str | None

    @property
    def id(self) -> str:
        """The id of the append; a position contains no colon, so the name of the feed may."""
        return checked_id(f"{_FEED}{self.feed}: {self.position}")

    def check(self, newest: Iterable[str]) -> None:
        """Refuse a step that does not continue the feed, given the ids of all appends, newest first."""
        if position(newest, self.feed) != self.follows:
            raise RequestConflict(
                f"feed {self.feed[:80]!r} is at another position by now, so nothing was added: something else "
                "feeds this stream under the same name; stop one of them, and feed again to go on from there"
            )


def position(newest: Iterable[str], feed: str) -> str | None:
    """How far a feed has come, given the ids of all appends, newest first; None if nothing of it has arrived."""
    steps = (feed_and_position(id) for id in newest)
    return next((found[1] for found in steps if found is not None and found[0] == feed), None)


def feed_and_position(id: str) -> tuple[str, str] | None:
    """The feed and the position of the id of an append; None if no feed made it.

    >>> feed_and_position("feed of visits: monday: 1000 items"), feed_and_position("monday: 1000 items")
    (('visits: monday', '1000 items'), None)
    """
    if not id.startswith(_FEED):
        return None
    feed, _, place = id.removeprefix(_FEED).rpartition(": ")
    return feed, place


Unit = str
"""The key of a unit."""

Item = tuple[Raw | Record | None, Unit | None]
"""A value in stored form, and the unit that owns it."""

Arrival = tuple[str | None, Sequence[Item]]
"""The items of one append, and its id, if it has one."""


class DurableLog(Protocol):
    """Stores one log so that it outlives this process, in one order for all processes that append to it."""

    @property
    def name(self) -> str:
        """The name of the session that owns the log."""

    @property
    def identity(self) -> bytes:
        """Identifies this log among all others."""

    def length(self) -> int:
        """How many items are stored."""

    def add(self, items: Sequence[Item], id: str | None = None, step: FeedStep | None = None) -> int:
        """Append these items in one transaction; returns the place of the first, once they are durable.

        Items that are stored under this id already are not stored again; `RequestConflict` if those differ, or if the
        step of a feed does not continue it.
        """

    def position(self, feed: str) -> str | None:
        """How far a feed has come, by the ids on record; None if nothing of it has arrived."""

    def begin(self, arrivals: Sequence[Arrival]) -> None:
        """Store these arrivals in one transaction, as the first of the log; `DataChanged` if it is not empty."""

    def after(self, known: int) -> Iterable[tuple[int, Sequence[Item]]]:
        """The items from this place on, in order: batches and their places."""


class Log:
    """The items of a stream in stored form, None for those that do not count; threads may append at once.

    `unit` and `most` are both given (user level) or both None (event level); at user level there may be a distance
    `apart`, and `unit_type` says which values name one unit (None: texts, unless other sources say otherwise). `sums`
    caches running sums, and `rows` holds the items for requests, once there was one. `what` is what messages call its
    source. `fit` brings an item that was stored under another version of the declaration to the form of this one.
    """

    what = "stream"

    __slots__ = (
        "_arrived",
        "_keeper",
        "_lock",
        "_owners",
        "_process",
        "_sent",
        "_too_near",
        "apart",
        "fit",
        "items",
        "most",
        "rows",
        "sums",
        "unit",
        "unit_type",
    )

    def __init__(
        self,
        unit: str | None = None,
        most: int | None = None,
        apart: int | None = None,
        unit_type: UnitType | None = None,
        fit: Callable[[Any], Any] | None = None,
    ) -> None:
        if (unit is None) != (most is None):
            given, other = ("unit", "per_unit") if most is None else ("per_unit", "unit")
            raise InvalidParameter(
                f"{given} was given without {other}: user level needs both, as in Stream(unit='user', per_unit=10)"
            )
        if unit is not None:
            one_column(unit, "a stream")
        elif apart is not None:
            raise InvalidParameter(
                "apart was given without unit: it is the distance between the items of one unit, as in "
                "Stream(unit='user', per_unit=10, apart=100)"
            )
        self.unit, self.most = unit, None if most is None else whole(most, 1, "per_unit")
        self.unit_type = log_unit_type(unit, unit_type)
        self.apart = None if apart is None else whole(apart, 1, "apart")
        self.fit = fit
        self.items: list[Raw | Record | None] = []
        self.sums: dict[bytes, tuple[int, Raw]] = {}
        self.rows: ArrivedRows | None = None
        self._arrived: dict[Unit, int] = {}
        self._too_near: dict[Unit, int] = {}  # up to which place the unit's next items are too near to count
        self._owners: list[Unit | None] = []
        self._sent: dict[str, tuple[int, list[Item]]] = {}  # as sent: `items` has None for items that do not count
        self._keeper: DurableLog | None = None
        self._process = Owner(
            "a stream",
            "make it in this process, or after the fork; processes share a stream through a ledger in PostgreSQL",
        )
        self._lock = Lock()  # always the last lock taken: a keeper may ask for the length inside its transaction

    def extend(
        self,
        items: Iterable[Raw | Record | None],
        owners: Iterable[Unit | None],
        id: str | None = None,
        step: FeedStep | None = None,
    ) -> None:
        """Append these items together, in this order; with a keeper they are durable when this returns.

        Items that were appended under this id before are not appended again; `RequestConflict` if those differ. The
        step of a feed has its own id, and must continue that feed.
        """
        self._process.check()
        own = step.id if step is not None else None if id is None else append_id(id)
        arriving = list(zip(items, owners, strict=True))
        if own is not None and not arriving:
            raise InvalidRequest("an id was given without items: append at least one item, or leave out the id")
        with self._lock:
            keeper = self._keeper
            if keeper is None and step is not None:
                step.check(reversed(self._sent))
            if keeper is None and self._is_new(own, arriving):
                self._take(arriving)
        if keeper is not None and arriving:
            self._take_at(keeper.add(arriving, own, step), arriving)

    def position(self, feed: str) -> str | None:
        """How far a feed has come, by the ids on record; None if nothing of it has arrived."""
        self._process.check()
        with self._lock:
            keeper, found = self._keeper, position(reversed(self._sent), feed)
        return found if keeper is None else keeper.position(feed)

    def _is_new(self, id: str | None, arriving: list[Item]) -> bool:
        """Whether this append is not a retry; records its id."""
        if id is None:
            return True
        _, known = self._sent.setdefault(id, (len(self.items), arriving))
        if known != arriving:
            raise conflict(id)
        return known is arriving

    def keep(self, keeper: DurableLog) -> None:
        """Store the log with this keeper from now on: continue its stored log if this one is empty, else begin it."""
        self._process.check()
        kept = keeper.length()
        with self._lock:
            if self._keeper is not None and self._keeper.identity != keeper.identity:
                raise in_use(self._keeper.name, self.what)
            if self._keeper is not None and kept < len(self.items):
                raise DataChanged("the stored log is shorter than it was: the ledger was replaced by an old copy")
            if self._keeper is None and self.items:
                if kept:
                    raise DataChanged(
                        f"the ledger holds {kept} items of this {self.what}: open the session with an empty "
                        f"{self.what}, then append the new items"
                    )
                keeper.begin(list(self._arrivals()))
                self._sent = {}
            self._keeper = keeper

    @property
    def keeper(self) -> DurableLog | None:
        """What keeps its items; None if it does so itself."""
        return self._keeper

    @property
    def kept_for(self) -> str | None:
        """The name of the session that stores this log, if one does."""
        return None if self._keeper is None else self._keeper.name

    def fetch(
        self, declared: Declaration, sql: str, pin: int, beside: Sequence[JoinedTable] = ()
    ) -> list[tuple[Any, ...]]:
        """The rows that a statement returns about the first `pin` items, whose fields are declared so."""
        with self._lock:
            if self.rows is None:
                self.rows = ArrivedRows(declared)
        return self.rows.run(sql, self.items, self._owners or None, pin, beside=beside)

    def placed(self, pin: int) -> Iterator[StoredRow]:
        """Of the first `pin` items the fields of each that counts, its place, and its unit: the second path's rows."""
        owners = self._owners or [None] * pin
        for place in range(pin):
            item = self.items[place]
            if item is not None:
                yield (*cast("Record", item), place, owners[place])

    def unit_keys_between(self, first: int, last: int) -> list[str | None]:
        """The keys of the units of these items; at event level, their places."""
        if self.most is None:
            return [str(place) for place in range(first, last)]
        return list(self._owners[first:last])

    def _arrivals(self) -> Iterator[Arrival]:
        """The items that arrived before there was a keeper, in order: appends with ids, and the items between them."""
        taken, place = list(zip(self.items, self._owners or [None] * len(self.items), strict=True)), 0
        for id, (start, sent) in self._sent.items():
            if place < start:
                yield None, taken[place:start]
            yield id, sent
            place = start + len(sent)
        if place < len(taken):
            yield None, taken[place:]

    def length(self) -> int:
        """How many items have arrived, in all processes."""
        self._process.check()
        if self._keeper is not None:
            for place, batch in self._keeper.after(len(self.items)):
                self._take_at(place, batch if self.fit is None else [(self._fitted(item), own) for item, own in batch])
        return len(self.items)

    def _fitted(self, item: Any) -> Any:
        """An item that another process, or another version, has appended, in the form of this one's declaration."""
        return item if item is None or self.fit is None else self.fit(item)

    def _take_at(self, place: int, arrived: Sequence[Item]) -> None:
        with self._lock:
            if place == len(self.items):  # otherwise other appends came first, and `length` reads all in order
                self._take(arrived)

    def _take(self, arrived: Sequence[Item]) -> None:
        if self.most is None:
            self.items.extend(item for item, _ in arrived)
        else:
            start = len(self.items)
            self.items += [item if self._counts(owner, at) else None for at, (item, owner) in enumerate(arrived, start)]
            self._owners.extend(owner for _, owner in arrived)

    def _counts(self, owner: Unit | None, place: int) -> bool:
        """Whether the item at this place counts; its unit is known to have one there then."""
        assert self.most is not None
        if owner is None or (self.apart is not None and place < self._too_near.get(owner, 0)):
            return False
        before = self._arrived.get(owner, 0)
        self._arrived[owner] = before + 1
        if self.apart is not None:
            self._too_near[owner] = place + self.apart
        return before < self.most

    def owners(self, units: Iterable[object] | None, count: int) -> list[Unit | None]:
        """The owners of `count` items, from the units given beside them."""
        if self.unit is None:
            if units is None:
                return [None] * count
            raise InvalidRequest(
                "this stream is at event level, so its items have no units: leave them out, or declare unit=... and "
                "per_unit=..."
            )
        owners = [] if units is None else list(units)
        if len(owners) != count:
            raise InvalidRequest(
                f"each item of this stream needs a {self.unit!r}, but {count} items and {len(owners)} units were "
                "given: name one unit for each item, as in append(1, unit='ann')"
            )
        return [self.key(owner) for owner in owners]

    def key(self, owner: object) -> Unit | None:
        """The key of the unit that a value names."""
        return checked_key(self.unit, owner, self.unit_type or "text")

    def adopt(self, of: UnitType) -> None:
        """Read units as other sources about them do, unless the type of units is declared here."""
        with self._lock:
            if self.unit_type is None and of == "text":
                self.unit_type = of
            if self.unit_type is None and self._keeper is None:
                self.unit_type = of
                self._sent = {id: (start, _rekeyed(items, of)) for id, (start, items) in self._sent.items()}
                self._again(_rekeyed(list(zip(self.items, self._owners, strict=True)), of))
        if self.unit_type != of:
            raise InvalidParameter(
                f"the session of this {self.what} reads its units as {type_words(self.unit_type or 'text')}, and those "
                f"of another source are {type_words(of)}: declare unit_type={of!r}"
            )

    def _again(self, arrived: Sequence[Item]) -> None:
        """Begin again with these items, of which those that did not count are None."""
        self.items, self._owners, self.rows = [], [], None
        self._arrived, self._too_near, self.sums = {}, {}, {}
        self._take(arrived)

    def owners_in(self, records: Iterable[object]) -> list[Unit | None]:
        """The owners of records: each record has a field with the name of the unit."""
        return [None if self.unit is None or record is None else self._owner_in(record) for record in records]

    def _owner_in(self, record: object) -> Unit | None:
        if not (type(record) is dict or isinstance(record, Mapping)) or self.unit not in record:
            raise InvalidRequest(
                f"each record of this stream needs the field {self.unit!r}, which names its unit, as in "
                f"{{{self.unit!r}: 'ann', ...}}"
            )
        return self.key(record[self.unit])


def _rekeyed(items: Sequence[Item], of: UnitType) -> list[Item]:
    """Items whose units have the keys of this type; a unit of texts may become a part of another one, or missing."""
    return [(item, unit_key(owner, of)) for item, owner in items]


def log_unit_type(unit: str | None, given: object) -> UnitType | None:
    """The declared type of the units of a log, which must have units then."""
    if unit is None and given is not None:
        raise InvalidParameter("unit_type was given without unit: name what identifies units, as in unit='user'")
    return checked_unit_type(given)


def in_use(name: str, what: str = "stream") -> DataInUse:
    """The refusal of a second session for one stream or live table."""
    return DataInUse(
        f"this {what} belongs to another session, {name!r}, which has a budget for it: delegate a part of that budget, "
        f"as in session.delegate(PureDP(0.1)); for other items, make another {what}"
    )


def same_items(kept: Sequence[Item], sent: Sequence[Item]) -> bool:
    """Whether an append is a retry: fields that were declared in between are missing in both.

    >>> same_items([(("home", 7), "ann")], [(("home", 7, None), "ann")])
    True
    """
    return list(map(_without_end, kept)) == list(map(_without_end, sent))


def _without_end(item: Item) -> Item:
    """The item without the missing fields at its end."""
    value, owner = item
    while isinstance(value, tuple) and value and value[-1] is None:
        value = value[:-1]
    return value, owner


def conflict(id: str) -> RequestConflict:
    """The refusal of other items under a used id; it says nothing about the items."""
    return RequestConflict(
        f"other items were appended under id {id[:80]!r} before, so nothing was added: choose another id"
    )

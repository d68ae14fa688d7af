"""What has arrived in a stream, and whose it was: an append-only log that a stream and its parts share.

At user level a unit's items beyond the first so many, and nobody's, are kept as nothing: they take their place in the
log, whose length is public, and say nothing. Which ones count is decided by their order alone, never by what they say.
A log that is to outlive its process has a keeper (a durable ledger), which decides the order among all who append.
What is sent again under its id adds nothing, whether it is the same or not: the length, which is public, never depends
on what items say.

>>> log = Log("user", 2)
>>> log.extend([5, 6, 7, 8], ["ann", "bob", "ann", "ann"], id="monday")
>>> log.extend([5, 6, 7, 8], ["ann", "bob", "ann", "ann"], id="monday")
>>> log.items
[5, 6, 7, None]
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from threading import Lock
from typing import Protocol

from counterpoint.errors import DataChanged, DataInUse, InvalidParameter, InvalidRequest, RequestConflict
from counterpoint.numbers.exact import whole
from counterpoint.privacy.secret import Raw
from counterpoint.randomness.process import Owner
from counterpoint.sources.streams.ids import checked_id
from counterpoint.sources.streams.shape import Record, plain

Unit = str | int
"""How a unit is named."""

Item = tuple[Raw | Record | None, Unit | None]
"""What arrives: what it says in stored form, and whose it is."""

Arrival = tuple[str | None, Sequence[Item]]
"""What arrives at once, and the id under which it was sent, if any."""


class Keeper(Protocol):
    """Keeps one log so that it outlives this process, in one order for all who append to it."""

    @property
    def name(self) -> str:
        """Whose log this is."""

    @property
    def identity(self) -> bytes:
        """Tells this log from every other."""

    def length(self) -> int:
        """How many items are kept."""

    def add(self, items: Sequence[Item], id: str | None = None) -> int:
        """Keep these behind all others, at once; the place of the first of them, once they are safe.

        What is kept under this id already is not kept again; `RequestConflict` if it is something else.
        """

    def begin(self, arrivals: Sequence[Arrival]) -> None:
        """Keep these, at once, if there are no others: `DataChanged` if there are."""

    def after(self, known: int) -> Iterable[tuple[int, Sequence[Item]]]:
        """What is kept from this place on, in order: batches and their places."""


class Log:
    """The items of a stream in stored form, None where one says nothing; threads may append at once.

    `unit` and `most` are both given (user level) or both None (event level). `sums` is for what has been added up.
    """

    __slots__ = ("_arrived", "_keeper", "_lock", "_owners", "_process", "_sent", "items", "most", "sums", "unit")

    def __init__(self, unit: str | None = None, most: int | None = None) -> None:
        if (unit is None) != (most is None):
            raise InvalidParameter("user level takes both: `unit` names whose an item is, `per_unit` how many count")
        if unit is not None and not isinstance(unit, str):
            raise InvalidParameter("`unit` is a name for whose an item is, such as 'user'")
        self.unit, self.most = unit, None if most is None else whole(most, 1, "per_unit")
        self.items: list[Raw | Record | None] = []
        self.sums: dict[object, tuple[int, Raw]] = {}
        self._arrived: dict[Unit, int] = {}
        self._owners: list[Unit | None] = []
        self._sent: dict[str, tuple[int, list[Item]]] = {}  # as it was sent: `items` has lost what does not count
        self._keeper: Keeper | None = None
        self._process = Owner(
            "a stream",
            "make it in this process, or after the fork; processes share a stream through a ledger in PostgreSQL",
        )
        self._lock = Lock()  # taken last of all: a keeper may be at work on a transaction that asks for the length

    def extend(
        self, items: Iterable[Raw | Record | None], owners: Iterable[Unit | None], id: str | None = None
    ) -> None:
        """Keep these items, all at once, in this order; with a keeper they are safe when this returns.

        What was sent under this id before is not kept again; `RequestConflict` if it was something else.
        """
        self._process.check()
        own = None if id is None else checked_id(id)
        arriving = list(zip(items, owners, strict=True))
        if own is not None and not arriving:
            raise InvalidRequest("an id stands for the items that are sent under it, and here are none: leave it out")
        with self._lock:
            keeper = self._keeper
            if keeper is None and self._is_new(own, arriving):
                self._take(arriving)
        if keeper is not None and arriving:
            self._take_at(keeper.add(arriving, own), arriving)

    def _is_new(self, id: str | None, arriving: list[Item]) -> bool:
        """Whether this is sent for the first time; from now on its id is known."""
        if id is None:
            return True
        _, known = self._sent.setdefault(id, (len(self.items), arriving))
        if known != arriving:
            raise conflict(id)
        return known is arriving

    def keep(self, keeper: Keeper) -> None:
        """Be kept from now on: as what is kept already if nothing has arrived here, else as the beginning of it."""
        self._process.check()
        kept = keeper.length()
        with self._lock:
            if self._keeper is not None and self._keeper.identity != keeper.identity:
                raise in_use(self._keeper.name)
            if self._keeper is not None and kept < len(self.items):
                raise DataChanged("the log on record is shorter than it was: an old copy was put back")
            if self._keeper is None and self.items:
                if kept:
                    raise DataChanged(
                        f"the log of this stream is on record with {kept} items: give a stream to which nothing has "
                        "been appended, and append what is new once the session is there"
                    )
                keeper.begin(list(self._arrivals()))
                self._owners, self._sent = [], {}
            self._keeper = keeper

    @property
    def kept_for(self) -> str | None:
        """The session whose log this is, if one keeps it."""
        return None if self._keeper is None else self._keeper.name

    def _arrivals(self) -> Iterator[Arrival]:
        """What has arrived before there was a keeper, in order: what was sent by ids, and what lies between."""
        taken, place = list(zip(self.items, self._owners or [None] * len(self.items), strict=True)), 0
        for id, (start, sent) in self._sent.items():
            if place < start:
                yield None, taken[place:start]
            yield id, sent
            place = start + len(sent)
        if place < len(taken):
            yield None, taken[place:]

    def length(self) -> int:
        """How many items have arrived, wherever."""
        self._process.check()
        if self._keeper is not None:
            for place, batch in self._keeper.after(len(self.items)):
                self._take_at(place, batch)
        return len(self.items)

    def _take_at(self, place: int, arrived: Sequence[Item]) -> None:
        with self._lock:
            if place == len(self.items):  # else others came before, and all of them are read in their order
                self._take(arrived)

    def _take(self, arrived: Sequence[Item]) -> None:
        for item, owner in arrived:
            self.items.append(item if self.most is None or self._counts(owner, self.most) else None)
        if self.most is not None and self._keeper is None:
            self._owners.extend(owner for _, owner in arrived)

    def _counts(self, owner: Unit | None, most: int) -> bool:
        if owner is None:
            return False
        before = self._arrived.get(owner, 0)
        self._arrived[owner] = before + 1
        return before < most

    def owners(self, units: Iterable[object] | None, count: int) -> list[Unit | None]:
        """Whose so many items are, as they were given beside them."""
        if self.unit is None:
            if units is None:
                return [None] * count
            raise InvalidRequest("this stream is at event level; declare `unit` and `per_unit` to say whose items are")
        owners = [] if units is None else list(units)
        if len(owners) != count:
            raise InvalidRequest(
                f"each item of this stream has a {self.unit!r}: say whose, as in append(1, unit='ann')"
            )
        return [self._owner(owner) for owner in owners]

    def named_in(self, records: Iterable[object]) -> list[Unit | None]:
        """Whose these records are: each says it itself, under the name of the unit."""
        return [None if self.unit is None or record is None else self._said_in(record) for record in records]

    def _said_in(self, record: object) -> Unit | None:
        if not isinstance(record, Mapping) or self.unit not in record:
            raise InvalidRequest(f"each record of this stream says whose it is: {{{self.unit!r}: 'ann', ...}}")
        owner = record[self.unit]
        return None if owner is None else self._owner(owner)

    def _owner(self, given: object) -> Unit:
        owner = plain(given)
        if isinstance(owner, bool) or not isinstance(owner, str | int):
            raise InvalidRequest(f"a {self.unit!r} is named by a string or an integer")
        return owner


def in_use(name: str) -> DataInUse:
    """Why a stream gets no second session."""
    return DataInUse(
        f"the log of this stream belongs to another session, {name!r}, which has a budget for it: delegate a part of "
        "that, as in session.delegate(PureDP(0.1)); for other items, make another stream"
    )


def conflict(id: str) -> RequestConflict:
    """Why it is not added; not a word of what was sent."""
    return RequestConflict(
        f"other items were appended under id {id[:80]!r} before; nothing is added: choose another id"
    )

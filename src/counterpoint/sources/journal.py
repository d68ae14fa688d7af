"""One order for what arrives in several streams: the log that a session about several sources keeps.

Each item belongs to one of the streams, by its number, which is public. So one pin, the length of the journal, says how
much of each stream has arrived, and a durable ledger stores one log. The log of each stream is kept by a `Channel` of
the journal, as it would be by a ledger: what is appended to the stream goes through the journal.

>>> journal, visits, calls = Journal(), Log("person", 2), Log("person", 2)
>>> channels = [journal.join("visits", visits), journal.join("calls", calls)]
>>> visits.extend([5, 6], ["ann", "bob"])
>>> calls.extend([("home", 7)], ["ann"], id="monday")
>>> calls.extend([("home", 7)], ["ann"], id="monday")
>>> journal.length(), [channel.before(2) for channel in channels], [channel.before(3) for channel in channels]
(3, [2, 0], [2, 1])
>>> calls.length(), calls.items
(1, [('home', 7)])
"""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import Any

from counterpoint.encoding import digest
from counterpoint.sources.streams.log import Arrival, FeedStep, Item, Log, feed_and_position

_NEVER_NEXT = -1
"""A place that is not the next of any log, which therefore reads its items in the order of the journal."""
_TOGETHER = 2**13
_LONG = 100
"""The length from which an id is replaced by its digest: with the stream's name it must stay short enough for an id."""
_NOTHING, _SINGLE, _SEVERAL = range(3)
"""What an item of a stream is: nothing, one number, or several numbers or fields."""


class Journal(Log):
    """The items of several streams in one order: the number of its stream, what the item is, then its values.

    Every item counts here: it is the log of its stream that caps the items of a unit.
    """

    __slots__ = ("_places",)

    def __init__(self) -> None:
        super().__init__()
        self._places: list[list[int]] = []

    def join(self, name: str, log: Log) -> "Channel":
        """Keep the log of a further stream; the items that it has already are the next of the journal."""
        self._places.append([])
        channel = Channel(self, len(self._places) - 1, name)
        log.keep(channel)
        return channel

    def places(self, number: int) -> list[int]:
        """Where the items of a stream are."""
        return self._places[number]

    def arrived(self, number: int) -> int:
        """How many items of a stream are here, all of which can be read: an append that is under way is waited for."""
        self.length()
        with self._lock:
            return len(self._places[number])

    def item(self, place: int) -> Item:
        """The item at a place, as its stream stores it."""
        return _unpacked(self.items[place]), self._owners[place]

    def _take(self, arrived: Sequence[Item]) -> None:
        for item, owner in arrived:
            assert isinstance(item, tuple) and isinstance(item[0], int)
            self._places[item[0]].append(len(self.items))
            self.items.append(item)
            self._owners.append(owner)


class Channel:
    """The keeper of one stream's log: a part of the journal."""

    __slots__ = ("_journal", "_name", "_number")

    def __init__(self, journal: Journal, number: int, name: str) -> None:
        self._journal, self._number, self._name = journal, number, name

    @property
    def name(self) -> str:
        """The name of the session that has the journal, or else of the stream among the sources."""
        return self._journal.kept_for or self._name

    @property
    def identity(self) -> bytes:
        """Tells this channel from those of other journals."""
        return f"{id(self._journal)} {self._number}".encode()

    def before(self, pin: int) -> int:
        """How many items of this stream are among the first `pin` of the journal."""
        return bisect_left(self._journal.places(self._number), pin)

    def length(self) -> int:
        """How many items have arrived."""
        return self._journal.arrived(self._number)

    def add(self, items: Sequence[Item], id: str | None = None, step: FeedStep | None = None) -> int:
        """Append items to the journal; ids and feeds are the stream's own."""
        packed, owners = [_packed(self._number, item) for item, _ in items], [owner for _, owner in items]
        if step is not None:
            self._journal.extend(packed, owners, step=step._replace(feed=self._own(step.feed)))
        else:
            self._journal.extend(packed, owners, None if id is None else self._own(id))
        return _NEVER_NEXT

    def position(self, feed: str) -> str | None:
        """How far a feed of this stream has come."""
        return self._journal.position(self._own(feed))

    def _own(self, given: str) -> str:
        """An id, or the name of a feed, that no other stream of the journal has."""
        return f"{self._name}: {given if len(given) < _LONG else digest(given).hex()}"

    def begin(self, arrivals: Sequence[Arrival]) -> None:
        """Append what the stream has already."""
        for id, items in arrivals:
            fed = None if id is None else feed_and_position(id)
            self.add(items, id, None if fed is None else FeedStep(*fed, follows=self.position(fed[0])))

    def after(self, known: int) -> Iterator[tuple[int, Sequence[Item]]]:
        """The items of this stream from a place on, in order."""
        length, places = self.length(), self._journal.places(self._number)
        for start in range(known, length, _TOGETHER):
            yield start, [self._journal.item(place) for place in places[start : min(start + _TOGETHER, length)]]


def _packed(number: int, item: Any) -> Any:
    """An item of a stream as an item of the journal.

    >>> _packed(1, None), _packed(1, 5), _packed(1, ("home", 5))
    ((1, 0), (1, 1, 5), (1, 2, 'home', 5))
    """
    if item is None:
        return number, _NOTHING
    return (number, _SEVERAL, *item) if isinstance(item, tuple) else (number, _SINGLE, item)


def _unpacked(item: Any) -> Any:
    """The item of a stream that was packed.

    >>> [_unpacked(_packed(1, item)) for item in (None, 5, ("home", 5))]
    [None, 5, ('home', 5)]
    """
    _, kind, *values = item
    if kind == _NOTHING:
        return None
    return tuple(values) if kind == _SEVERAL else values[0]

"""What has arrived in a stream, kept in memory for all versions of its declaration, as a durable ledger would keep it.

>>> clicks, again = Log("user", 2), Log("user", 9)
>>> clicks.extend([5, 6, 7], ["ann", "ann", "ann"])
>>> share(clicks, again)
>>> again.extend([8], ["ann"])
>>> clicks.length(), clicks.items, again.length(), again.items
(4, [5, 6, None, None], 4, [5, 6, None, 8])
"""

from collections.abc import Iterator, Sequence
from threading import Lock

from counterpoint.sources.streams.log import Arrival, FeedStep, Item, Log, conflict, position, same_items


class MemoryLog:
    """The keeper of a log that several versions read, in one process."""

    name = "a session in memory"

    def __init__(self) -> None:
        self._lock = Lock()
        self._items: list[Item] = []
        self._sent: dict[str, tuple[int, Sequence[Item]]] = {}

    @property
    def identity(self) -> bytes:
        """Tells it from other logs."""
        return f"memory {id(self)}".encode()

    def length(self) -> int:
        """How many items there are."""
        return len(self._items)

    def add(self, items: Sequence[Item], id: str | None = None, step: FeedStep | None = None) -> int:
        """Keep these behind all others, unless they are kept under this id; the place of the first of them."""
        with self._lock:
            if step is not None:
                step.check(reversed(self._sent))
            place = len(self._items)
            if id is not None:
                place, known = self._sent.setdefault(id, (place, items))
                if not same_items(known, items):
                    raise conflict(id)
                if known is not items:
                    return place
            self._items += items
            return place

    def position(self, feed: str) -> str | None:
        """How far a feed has come."""
        with self._lock:
            return position(reversed(self._sent), feed)

    def begin(self, arrivals: Sequence[Arrival]) -> None:
        """Keep what a log has already."""
        for id, items in arrivals:
            self.add(items, id)

    def after(self, known: int) -> Iterator[tuple[int, Sequence[Item]]]:
        """The items from a place on."""
        found = self._items[known:]
        if found:
            yield known, found


def share(log: Log, other: Log) -> None:
    """Have another log read, and append to, what has arrived in this one."""
    if log.keeper is None:
        log.keep(MemoryLog())
    assert log.keeper is not None
    other.keep(log.keeper)

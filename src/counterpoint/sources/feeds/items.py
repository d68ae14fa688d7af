"""Feeding from Python: any iterable of items, resumed by how many of them have arrived.

The iterable begins with the same items each time, as a file does; those that have arrived are skipped. A source that
can begin anywhere is given as a function of the number of items to leave out. If the source raises, what was read of an
unfinished batch is discarded, so that whole batches arrive.

>>> from counterpoint.sources.streams.stream import Stream
>>> visits = Stream(bound=1)
>>> visits.feed([1, 0, 1, 1, 0], name="monday", batch=2)
5
>>> visits.feed([1, 0, 1, 1, 0, 1, 1], name="monday")
2
>>> visits.pin()
7
"""

import re
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any, NamedTuple, TypeVar

from counterpoint.errors import INTERRUPTIONS, CounterpointError, FeedFailed
from counterpoint.sources.feeds.target import Target, deliver, other_source

_T = TypeVar("_T")
_POSITION = re.compile("([0-9]+) items")


class Resumed(NamedTuple):
    """A feed of counted items: how many have arrived, how many the source has to skip, how many arrive together."""

    name: str
    arrived: int
    skip: int
    batch: int

    @property
    def follows(self) -> str | None:
        """The position of what has arrived; None at the beginning."""
        return f"{self.arrived} items" if self.arrived else None


def feed_items(target: Target, source: Iterable[object], resumed: Resumed) -> int:
    """Append the items that have not arrived; how many that were."""
    return deliver(resumed.name, resumed.follows, _batches(source, resumed), target.receive)


def arrived_items(target: Target, name: str) -> int:
    """How many items of this feed have arrived."""
    position = target.position(name)
    found = _POSITION.fullmatch("0 items" if position is None else position)
    if found is None:
        raise other_source(name)
    return int(found[1])


def opened(open_behind: Callable[[int], Any], start: int, name: str) -> Any:
    """What a function opens behind the items that have arrived; an error of its own becomes `FeedFailed`."""
    try:
        return open_behind(start)
    except (CounterpointError, *INTERRUPTIONS):
        raise
    except Exception as error:
        raise failed(name) from error


def _batches(source: Iterable[object], resumed: Resumed) -> Iterator[tuple[list[object], str]]:
    """Whole batches and their positions."""
    items, place = _behind(source, resumed.skip, resumed.name), resumed.arrived
    while together := list(islice(items, resumed.batch)):
        place += len(together)
        yield together, f"{place} items"


def _behind(source: Iterable[object], skip: int, name: str) -> Iterator[object]:
    """The items behind the first `skip`; an error of the source's own becomes `FeedFailed`."""
    try:
        items = iter(source)
        if sum(1 for _ in islice(items, skip)) < skip:
            raise too_short(name, skip)
        yield from items
    except (CounterpointError, *INTERRUPTIONS):
        raise
    except Exception as error:
        raise failed(name) from error


def unquoted(batches: Iterator[_T], name: str) -> Iterator[_T]:
    """The same; an error of an engine, which may quote the data, becomes `FeedFailed` without its words."""
    while True:
        found: _T | None = None
        try:
            found = next(batches, None)
        except FeedFailed:
            raise
        except Exception:
            is_broken = True
        else:
            is_broken = False
        if is_broken:  # raised here, outside of the handler, or the engine's error would be its context
            raise failed(name)
        if found is None:
            return
        yield found


def failed(name: str) -> FeedFailed:
    """The error of a feed whose source failed."""
    return FeedFailed(
        f"the source of feed {name[:80]!r} failed: the batches before have arrived, and nothing of the unfinished one; "
        "mend the source, and feed again to go on"
    )


def too_short(name: str, start: int) -> FeedFailed:
    """The error of a source that ends before the items that have arrived."""
    return FeedFailed(
        f"{start} items of feed {name[:80]!r} have arrived, and the source has fewer: give the source that this feed "
        "began with, or choose another name for another source"
    )

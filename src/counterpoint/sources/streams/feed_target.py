"""The one loop by which feeds append: each batch once, under an id that says how far the feed has come.

A feed delivers batches in order. The id of each append is the name of the feed and the position that the batch reaches:
a number of items, the key of a row, the number of a batch. After a crash the newest of these ids, which a durable
ledger stores with the items in one transaction, is where the feed resumes: a batch whose append was committed is not
delivered again, and one whose append was not is delivered whole. Names, positions and the number of items in a batch
are public; nothing else decides how many items arrive.

From Python, any iterable of items can be fed, and is resumed by how many of them have arrived. The iterable begins with
the same items each time, as a file does; those that have arrived are skipped. A source that can begin anywhere is given
as a function of the number of items to leave out. If the source raises, what was read of an unfinished batch is
discarded, so that whole batches arrive.

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
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, NamedTuple, Protocol, TypeVar

from counterpoint.display.progress import working
from counterpoint.engines import loading
from counterpoint.engines.dialect import Dialect
from counterpoint.engines.unit_key_sql import key_of
from counterpoint.errors import INTERRUPTIONS, CounterpointError, FeedFailed, InvalidParameter, RequestConflict, shown
from counterpoint.schema.columns import is_readable
from counterpoint.schema.declaration import Declaration
from counterpoint.sources.streams.log import FeedStep

_LONGEST_NAME = 150
"""A position has room beside the name in an id."""

StoredRecord = tuple[Any, ...]
"""A record in stored form, as `Target.conversion` returns it."""


class Target(Protocol):
    """Data that batches can be appended to under ids: a stream, or a live table, into which rows are put."""

    __slots__ = ()

    def conversion(self, kinds: dict[str, str], given: str, dialect: Dialect) -> str:
        """The query that converts rows to stored form, refused by the schema alone; `InvalidRequest` if the items are
        not records.
        """

    def position(self, feed: str) -> str | None:
        """How far a feed has come; None if nothing of it has arrived."""

    def receive(self, values: Sequence[object], step: FeedStep) -> None:
        """Append a batch of items as they were given: all of them, or none if one has a wrong shape."""

    def receive_stored(self, rows: Sequence[StoredRecord], step: FeedStep) -> None:
        """Append a batch of records in stored form."""


def deliver(
    name: str,
    follows: str | None,
    batches: Iterable[tuple[Sequence[Any], str]],
    receive: Callable[[Sequence[Any], FeedStep], None],
) -> int:
    """Append batches with their positions, one after the other; how many items that were."""
    with working(f"feeding {name!r}") as work:
        for batch, position in batches:
            receive(batch, FeedStep(name, position, follows))
            work.done(len(batch))
            follows = position
    return work.steps


def checked_name(name: object) -> str:
    """The name of a feed, or `InvalidParameter`.

    >>> checked_name(None)
    Traceback (most recent call last):
    ...
    counterpoint.errors.InvalidParameter: a feed needs a name of 1 to 150 characters, such as name='visits.csv', not ...
    """
    if isinstance(name, str) and 0 < len(name) <= _LONGEST_NAME and is_readable(name):
        return str.__str__(name)
    raise InvalidParameter(
        f"a feed needs a name of 1 to {_LONGEST_NAME} characters, such as name='visits.csv', not {shown(name)}: the "
        "ids of its appends begin with it, and by them the feed resumes after a crash"
    )


def other_source(name: str) -> RequestConflict:
    """The refusal of a feed under a name that another kind of source has."""
    return RequestConflict(
        f"items of another kind of source have arrived under the name {name[:80]!r}: choose another name for this feed"
    )


def conversion(
    declared: Declaration, kinds: dict[str, str], given: str, dialect: Dialect, *, key: str | None = None
) -> str:
    """The query that converts rows to stored form, as a table of that engine does: the fields, then the unit.

    With a key, which names a row as a unit is named, the key comes first.
    """
    names = [named.name for named in declared.columns]
    for name in (*names, *declared.unit_columns, *(() if key is None else (key,))):
        if name not in kinds:
            raise InvalidParameter(
                f"the data has no column {name!r}, which is declared; it has: {', '.join(kinds) or 'none'}"
            )
    query = loading.load(declared, kinds, given, dialect)
    if key is None:
        return query
    named = key_of(kinds[key], dialect.quoted(key), "text", dialect)
    if named is None:
        raise InvalidParameter(
            f"column {key!r} of type {kinds[key]} cannot be the key: use a column of whole numbers, texts or dates"
        )
    return query.replace("SELECT ", f"SELECT {named[1]} AS k, ", 1)


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

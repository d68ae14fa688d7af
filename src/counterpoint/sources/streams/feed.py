"""`feed`, by which streams and live tables are fed: it chooses the reader by what it is given.

A feed appends batches under ids that say how far it has come (see `feed_target.py`), so that after a crash, or when a
source delivers a batch again, every item arrives once. The number of items in a batch, its time, and positions are
public; a value that does not fit is clamped or missing, and its item arrives.

>>> from counterpoint.sources.streams.stream import Stream
>>> feed(Stream(), 5, name="monday")
Traceback (most recent call last):
...
counterpoint.errors.InvalidParameter: a feed reads an iterable of items, an Arrow reader, a streaming DataFrame of ...
"""

from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from counterpoint.engines.inputs import is_pandas
from counterpoint.errors import InvalidParameter
from counterpoint.numbers.exact import whole
from counterpoint.sources.streams.feed_readers import feed_arrow, feed_spark, is_arrow, is_spark_stream
from counterpoint.sources.streams.feed_target import Resumed, Target, arrived_items, checked_name, feed_items, opened
from counterpoint.sources.streams.log import Log

BATCH = 10_000
"""How many items are appended together, unless the caller says otherwise."""


def feed(target: Target, source: object, *, name: str | None = None, batch: int = BATCH, **options: Any) -> Any:
    """Append what a source has and has not delivered yet; how many items that were, or Spark's running query.

    See `Stream.feed` for the sources and their options.
    """
    size = whole(batch, 1, "batch")
    if is_spark_stream(source):
        return feed_spark(target, source, checked_name(name or "spark"), **_only(options, "checkpoint", "trigger"))
    if isinstance(source, str) and source.startswith(("postgresql://", "postgres://")):
        from counterpoint.sources.streams.feed_readers import feed_postgres  # noqa: PLC0415 - needs counterpoint[postgres]

        polled = _only(options, "relation", "key", "lag", "wait")
        return feed_postgres(target, source, checked_name(name or polled.get("relation")), size, **polled)
    _only(options)
    named = checked_name(name)
    start = arrived_items(target, named)
    given, skip = (opened(source, start, named), 0) if callable(source) else (source, start)
    return _reader(given)(target, given, Resumed(named, start, skip, size))


def _reader(source: Any) -> Callable[[Target, Any, Resumed], int]:
    """The feed that reads this source."""
    if is_arrow(source):
        return feed_arrow
    if isinstance(source, Iterable) and not isinstance(source, str | bytes | Mapping) and not is_pandas(source):
        return feed_items
    raise InvalidParameter(
        "a feed reads an iterable of items, an Arrow reader, a streaming DataFrame of Spark, a postgresql:// URL, or "
        f"what a function of the number of arrived items returns, not a {type(source).__name__}; a frame of pandas is "
        "an iterable of items by frame.to_dict('records')"
    )


def _only(options: dict[str, Any], *known: str) -> dict[str, Any]:
    """The options, if this kind of source has them."""
    for option in options:
        if option not in known:
            takes = f"it takes name, batch, {', '.join(known)}" if known else "it takes name and batch"
            raise InvalidParameter(f"a feed from this source has no option {option!r}: {takes}")
    return options


class Feedable(Target):
    """Data into which sources are fed; each item of a source arrives once."""

    __slots__ = ()

    @property
    @abstractmethod
    def log(self) -> Log:
        """The log, which a durable ledger stores."""

    @abstractmethod
    def check_whole(self) -> None:
        """Refuse to append to a part of this data."""

    def feed(self, source: object, *, name: str | None = None, batch: int = BATCH, **options: Any) -> Any:
        """Append what a source delivers, in batches, each item once; after a crash, feed again, and it goes on.

        The source is

        - an iterable of items, as `Stream.extend` and `LiveTable.put` take them, or anything with Arrow's C stream
          protocol, such as a `pyarrow.RecordBatchReader`: it begins with the same items each time, and those that have
          arrived are skipped. A source that can begin anywhere is given as a function of the number of items to leave
          out;
        - a streaming DataFrame of Spark: `checkpoint` is Spark's folder, `trigger` a dictionary of what its trigger
          takes. The result is Spark's running query;
        - a postgresql:// URL: `relation` names a table and `key` its growing key. Rows are read up to where no smaller
          key can appear (see `feed_readers.py`; at most `wait` seconds are waited for writers to end), or `lag` keys
          below the largest. Feed again to poll.

        Otherwise the result is the number of items that arrived. The ids of the appends begin with `name`, which
        belongs to one source (the default for Spark is "spark", for PostgreSQL the relation). Rows of Arrow, Spark and
        PostgreSQL are records: columns that are not declared are left out, and values are converted as in a table. Into
        a live table every row is put. Names, positions and the number of items in a batch are public. What comes before
        a feed must make one item of each event, by that event alone: a filter on private values would reveal them by
        the number of items.

        >>> from counterpoint.sources.streams.stream import Stream
        >>> visits = Stream(bound=1)
        >>> visits.feed(iter([1, 0, 1]), name="monday.csv"), visits.feed(iter([1, 0, 1, 1]), name="monday.csv")
        (3, 1)
        """
        self.check_whole()
        return feed(self, source, name=name, batch=batch, **options)

    def position(self, feed: str) -> str | None:
        """How far a feed has come, by the ids on record; None if nothing of it has arrived."""
        return self.log.position(feed)

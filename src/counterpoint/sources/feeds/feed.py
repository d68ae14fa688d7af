"""`feed`: the entry point. What the source is decides which feed reads it.

A feed appends batches under ids that say how far it has come (see `target`), so that after a crash, or when a source
delivers a batch again, every item arrives once. The number of items in a batch, its time, and positions are public; a
value that does not fit is clamped or missing, and its item arrives.

>>> from counterpoint.sources.streams.stream import Stream
>>> feed(Stream(), 5, name="monday")
Traceback (most recent call last):
...
counterpoint.errors.InvalidParameter: a feed reads an iterable of items, an Arrow reader, a streaming DataFrame of ...
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from counterpoint.errors import InvalidParameter
from counterpoint.numbers.exact import whole
from counterpoint.sources.feeds.arrow import feed_arrow, is_arrow
from counterpoint.sources.feeds.items import Resumed, arrived_items, feed_items, opened
from counterpoint.sources.feeds.spark import feed_spark, is_spark_stream
from counterpoint.sources.feeds.target import Target, checked_name
from counterpoint.sources.tables.frames import is_pandas

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
        from counterpoint.sources.feeds.postgres import feed_postgres  # noqa: PLC0415 - needs counterpoint[postgres]

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

"""Feeding from Spark Structured Streaming: each micro-batch arrives once, by its number.

Spark records the number and the range of a micro-batch in its checkpoint before it delivers the batch, and that the
batch is done after it was delivered. A crash between the append and that second record makes Spark deliver the batch
again, under the same number; the number is the position of the feed, so the batch does not arrive a second time. The
position also names the query, which lives as long as its checkpoint: under another checkpoint Spark would deliver
everything again, so that is refused.

Every event must become one row by itself: a stream that filters, joins, aggregates or sorts by private values before
the feed would make the number and the places of items depend on them.
"""

import re
from typing import Any

from counterpoint.errors import FeedFailed, InvalidParameter, RequestConflict
from counterpoint.sources.engines.spark import SparkOffer
from counterpoint.sources.feeds.target import StoredRecord, Target, deliver, other_source

_POSITION = re.compile("batch ([0-9]+) of query ([-0-9a-f]+)")
_QUERY = "sql.streaming.queryId"
"""The property in which Spark says which query a thread works for; it stays the same as long as its checkpoint."""


def is_spark_stream(source: object) -> bool:
    """Whether this is a streaming DataFrame of Spark."""
    return type(source).__module__.partition(".")[0] == "pyspark" and bool(getattr(source, "isStreaming", False))


def feed_spark(
    target: Target, frame: Any, name: str, *, checkpoint: object = None, trigger: dict[str, Any] | None = None
) -> Any:
    """Start the query that appends every micro-batch; it is Spark's."""
    if not isinstance(checkpoint, str) or not checkpoint:
        raise InvalidParameter(
            "a Spark stream is fed with a checkpoint, as in feed(frame, checkpoint='folder'): Spark resumes from it, "
            "and the numbers of its batches are the positions of this feed"
        )
    offer = SparkOffer(frame)
    query = target.conversion(offer.kinds, "given", offer.dialect)

    def arrive(delivered: Any, number: int) -> None:
        query_id = delivered.sparkSession.sparkContext.getLocalProperty(_QUERY)
        if query_id is None:
            raise FeedFailed("Spark does not say which query delivers this batch: use a classic session, not Connect")
        position, follows = f"batch {number} of query {query_id}", target.position(name)
        if _is_new(name, follows, position):
            rows: list[StoredRecord] = SparkOffer(delivered).read(query)
            deliver(name, follows, [(rows, position)] if rows else [], target.receive_stored)

    writer = frame.writeStream.option("checkpointLocation", checkpoint).foreachBatch(arrive)
    return (writer if trigger is None else writer.trigger(**trigger)).start()


def _is_new(name: str, known: str | None, position: str) -> bool:
    """Whether a batch has not arrived: its number is higher than that of the last one.

    >>> _is_new("spark", "batch 7 of query 0a-1", "batch 7 of query 0a-1"), _is_new(
    ...     "spark", "batch 7 of query 0a-1", "batch 8 of query 0a-1"
    ... )
    (False, True)
    """
    if known is None:
        return True
    before, now = _POSITION.fullmatch(known), _POSITION.fullmatch(position)
    if before is None or now is None:
        raise other_source(name)
    if before[2] != now[2]:
        raise RequestConflict(
            f"feed {name[:80]!r} began with another checkpoint, and under this one Spark delivers its batches again: "
            "use the first checkpoint; for another stream of Spark choose another name"
        )
    return int(now[1]) > int(before[1])

"""The readers of Arrow, PostgreSQL and Spark: each delivers every row once, also after a crash.

**Arrow.** Record batches are converted as a table of the embedded engine converts them. The schema decides what is
refused, before anything arrives; a value that does not fit is clamped or missing, by the rules of the declared columns,
and its row arrives. Positions are numbers of rows, so a reader may cut its batches otherwise when the feed is resumed.

>>> import pyarrow as pa
>>> from counterpoint.schema.columns import number
>>> from counterpoint.sources.streams.stream import Stream
>>> visits = Stream(fields={"seconds": number(0, 600)})
>>> visits.feed(pa.table({"seconds": [30.0, float("nan"), 1e9], "other": ["a", "b", "c"]}).to_reader(), name="monday")
3

**PostgreSQL.** A table with a growing key is polled, and no row is left out. A key is taken from a sequence when its
row is inserted, and seen when the transaction commits; so a smaller key may appear after a larger one. The rule: let H
be the largest key that can be seen. A transaction that has taken a smaller key was inserting by then, so it holds a
lock on the table until it ends. The feed notes the transactions that hold such a lock after it has seen H, waits until
all of them have ended, and reads the keys up to H: no further one can appear. This rests on keys that the INSERT itself
takes, one at a time: an identity or serial column whose sequence has cache 1 and increment 1. For other keys declare
`lag`: that no row appears with a key more than `lag` below the largest seen.

A key must be unique and whole. It is public: it becomes the position of the feed. A row that is updated after it was
read does not arrive again, and one that is deleted stays.

**Spark Structured Streaming.** Each micro-batch arrives once, by its number. Spark records the number and the range of
a micro-batch in its checkpoint before it delivers the batch, and that the batch is done after it was delivered. A crash
between the append and that second record makes Spark deliver the batch again, under the same number; the number is the
position of the feed, so the batch does not arrive a second time. The position also names the query, which lives as long
as its checkpoint: under another checkpoint Spark would deliver everything again, so that is refused.

Every event must become one row by itself: a stream that filters, joins, aggregates or sorts by private values before
the feed would make the number and the places of items depend on them.
"""

import re
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from importlib import import_module
from typing import Any, NamedTuple

from counterpoint.engines.duckdb import EmbeddedOffer
from counterpoint.engines.inputs import is_pandas
from counterpoint.engines.postgres import POSTGRES, PostgresEngine, PostgresOffer
from counterpoint.engines.spark import SparkOffer
from counterpoint.errors import FeedFailed, InvalidParameter, RequestConflict, shown
from counterpoint.numbers.exact import whole
from counterpoint.sources.streams.feed_target import (
    Resumed,
    StoredRecord,
    Target,
    deliver,
    other_source,
    too_short,
    unquoted,
)


def is_arrow(source: object) -> bool:
    """Whether this has Arrow's C stream protocol and columns of fixed types; pandas guesses types from values."""
    return hasattr(source, "__arrow_c_stream__") and not is_pandas(source)


def feed_arrow(target: Target, source: object, resumed: Resumed) -> int:
    """Append the rows that have not arrived; how many that were."""
    reader = _reader(source)
    with closing(EmbeddedOffer(reader.schema.empty_table())) as offer:
        query = target.conversion(offer.kinds, "given", offer.dialect)
        batches = unquoted(_batches(reader, offer, query, resumed), resumed.name)
        return deliver(resumed.name, resumed.follows, batches, target.receive_stored)


def _reader(source: object) -> Any:
    try:
        pyarrow = import_module("pyarrow")  # only feeds from Arrow need it
    except ImportError:
        raise InvalidParameter("a feed from Arrow needs pyarrow: pip install pyarrow") from None
    return pyarrow.RecordBatchReader.from_stream(source)


def _batches(
    reader: Any, offer: EmbeddedOffer, query: str, resumed: Resumed
) -> Iterator[tuple[list[StoredRecord], str]]:
    """Rows in stored form and their positions; a large record batch is cut."""
    place = resumed.arrived
    for arrived in _behind(reader, resumed.skip, resumed.name):
        for first in range(0, len(arrived), resumed.batch):
            rows = offer.read(query, arrived.slice(first, resumed.batch))
            place += len(rows)
            yield rows, f"{place} items"


def _behind(reader: Any, skip: int, name: str) -> Iterator[Any]:
    """The record batches behind the first `skip` rows."""
    left = skip
    for arrived in reader:
        yield arrived.slice(min(left, len(arrived)))
        left = max(0, left - len(arrived))
    if left:
        raise too_short(name, skip)


_KEY_POSITION = re.compile("key (-?[0-9]+)")
_PAUSE = 0.02
"""Seconds between two looks at the locks."""
_KINDS = ("SMALLINT", "INTEGER", "BIGINT")

_TABLE = """
SELECT pg_class.oid, relkind = 'r' AND NOT relhassubclass, pg_is_in_recovery()
FROM pg_depend JOIN pg_rewrite ON pg_rewrite.oid = objid JOIN pg_class ON pg_class.oid = refobjid
WHERE classid = 'pg_rewrite'::regclass AND refclassid = 'pg_class'::regclass
AND ev_class = 'pg_temp.given'::regclass AND refobjid <> ev_class LIMIT 1
"""
"""The table behind the view `given`, whatever the user's search path makes of its name."""
_UNIQUE = """
SELECT EXISTS (SELECT FROM pg_index JOIN pg_attribute ON attrelid = indrelid AND attnum = indkey[0]
WHERE indrelid = {table} AND attname = {key} AND attnotnull AND indisunique AND indisvalid AND indimmediate
AND indnkeyatts = 1 AND indpred IS NULL)
"""
_ONE_BY_ONE = """
SELECT EXISTS (SELECT FROM pg_sequence JOIN pg_depend ON objid = seqrelid
JOIN pg_attribute ON attrelid = refobjid AND attnum = refobjsubid
WHERE classid = 'pg_class'::regclass AND refclassid = 'pg_class'::regclass AND deptype IN ('a', 'i')
AND refobjid = {table} AND attname = {key} AND seqcache = 1 AND seqincrement = 1 AND NOT seqcycle)
"""
_WRITERS = """
SELECT virtualtransaction FROM pg_locks WHERE locktype = 'relation' AND relation = {table} AND granted
AND database = (SELECT oid FROM pg_database WHERE datname = current_database()) AND mode = 'RowExclusiveLock'
"""


class PolledTable(NamedTuple):
    """Where rows appear, by which key they are read, and when a key is settled."""

    engine: PostgresEngine
    oid: int
    key: str
    lag: int | None
    wait: float

    def settled(self) -> int | None:
        """The key up to which no further row can appear; None if there are no rows yet."""
        [(largest,)] = self.engine.run(f"SELECT MAX({self.key}) FROM given")
        if largest is None or self.lag is not None:
            return None if largest is None else int(largest) - (self.lag or 0)
        writers, until = self._writers(), time.monotonic() + self.wait
        while writers:
            if time.monotonic() > until:
                raise FeedFailed(
                    f"transactions that write to the table have not ended within {self.wait} seconds, and may hold "
                    "smaller keys than those that can be seen: feed again later, or wait longer, with wait=..."
                )
            time.sleep(_PAUSE)
            writers &= self._writers()
        return int(largest)

    def _writers(self) -> set[str]:
        """The transactions that may have taken a key that cannot be seen yet."""
        return {transaction for (transaction,) in self.engine.run(_WRITERS.format(table=self.oid))}

    def batches(
        self, last: int | None, size: int, converted: Callable[[str], str]
    ) -> Iterator[tuple[list[StoredRecord], str]]:
        """Rows in stored form and their positions, behind the last key and as far as keys are settled."""
        end = self.settled()
        while end is not None and (last is None or last < end):
            behind = f"{self.key} <= {end}" if last is None else f"{self.key} > {last} AND {self.key} <= {end}"
            keys = f"SELECT {self.key} AS key FROM given WHERE {behind} ORDER BY {self.key} LIMIT {size}"
            [(last,)] = self.engine.run(f"SELECT COALESCE(MAX(key), {end}) FROM ({keys}) AS keys")
            assert last is not None
            rows = f"(SELECT * FROM given WHERE {behind} AND {self.key} <= {last}) AS given"
            found = self.engine.run(f"{converted(rows)} ORDER BY {self.key}")
            if found:
                yield found, f"key {last}"


def feed_postgres(
    target: Target,
    url: str,
    name: str,
    batch: int,
    *,
    relation: str | None = None,
    key: object = None,
    lag: int | None = None,
    wait: float = 60,
) -> int:
    """Append the rows behind those that have arrived, as far as their keys are settled; how many that were."""
    with closing(PostgresOffer(url, relation)) as offer:
        table = _polled(offer, key, lag, _checked_wait(wait))

        def converted(given: str) -> str:
            return target.conversion(offer.kinds, given, POSTGRES)

        converted("given")  # refuses a column of a wrong type before the table is read
        known = target.position(name)
        found = _KEY_POSITION.fullmatch("key 0" if known is None else known)
        if found is None:
            raise other_source(name)
        batches = table.batches(None if known is None else int(found[1]), batch, converted)
        return deliver(name, known, unquoted(batches, name), target.receive_stored)


def _polled(offer: PostgresOffer, key: object, lag: int | None, wait: float) -> PolledTable:
    """The table to poll, if its key is as the rule above needs it; that follows from its definition alone."""
    if not isinstance(key, str) or offer.kinds.get(key) not in _KINDS:
        raise InvalidParameter(
            f"key must name a column of whole numbers, as in key='id', not {shown(key)}; the columns are: "
            f"{', '.join(offer.kinds)}"
        )
    engine, column = offer.engine, POSTGRES.literal(key)
    found = engine.run(_TABLE)
    if not found or not found[0][1]:
        raise InvalidParameter("a feed polls an ordinary table: not a view, nor one with partitions or child tables")
    [(oid, _, is_copy)] = found
    if not engine.run(_UNIQUE.format(table=oid, key=column))[0][0]:
        raise InvalidParameter(f"key {key!r} must be the primary key, or be unique and NOT NULL: rows are read by it")
    if lag is None and (is_copy or not engine.run(_ONE_BY_ONE.format(table=oid, key=column))[0][0]):
        raise InvalidParameter(
            f"key {key!r} must be an identity or serial column whose sequence has cache 1 and increment 1, on the "
            "primary server, or a row with a smaller key may appear later and be left out; for other keys declare lag, "
            "as in lag=1000: no row appears with a key more than 1000 below the largest"
        )
    return PolledTable(engine, oid, POSTGRES.quoted(key), None if lag is None else whole(lag, 0, "lag"), wait)


def _checked_wait(wait: object) -> float:
    if isinstance(wait, int | float) and wait >= 0:
        return wait
    raise InvalidParameter(f"wait must be a number of seconds, at least 0, not {shown(wait)}")


_BATCH_POSITION = re.compile("batch ([0-9]+) of query ([-0-9a-f]+)")
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
    before, now = _BATCH_POSITION.fullmatch(known), _BATCH_POSITION.fullmatch(position)
    if before is None or now is None:
        raise other_source(name)
    if before[2] != now[2]:
        raise RequestConflict(
            f"feed {name[:80]!r} began with another checkpoint, and under this one Spark delivers its batches again: "
            "use the first checkpoint; for another stream of Spark choose another name"
        )
    return int(now[1]) > int(before[1])

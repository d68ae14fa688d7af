"""Feeding from PostgreSQL: a table with a growing key is polled, and every row arrives once, none is left out.

A key is taken from a sequence when its row is inserted, and seen when the transaction commits; so a smaller key may
appear after a larger one. The rule: let H be the largest key that can be seen. A transaction that has taken a smaller
key was inserting by then, so it holds a lock on the table until it ends. The feed notes the transactions that hold such
a lock after it has seen H, waits until all of them have ended, and reads the keys up to H: no further one can appear.
This rests on keys that the INSERT itself takes, one at a time: an identity or serial column whose sequence has cache 1
and increment 1. For other keys declare `lag`: that no row appears with a key more than `lag` below the largest seen.

A key must be unique and whole. It is public: it becomes the position of the feed. A row that is updated after it was
read does not arrive again, and one that is deleted stays.
"""

import re
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import NamedTuple

from counterpoint.errors import FeedFailed, InvalidParameter, shown
from counterpoint.numbers.exact import whole
from counterpoint.sources.engines.dialects import POSTGRES
from counterpoint.sources.engines.postgres import PostgresEngine, PostgresOffer
from counterpoint.sources.feeds.items import unquoted
from counterpoint.sources.feeds.target import StoredRecord, Target, deliver, other_source

_POSITION = re.compile("key (-?[0-9]+)")
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
        found = _POSITION.fullmatch("key 0" if known is None else known)
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

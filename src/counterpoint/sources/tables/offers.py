"""Which engine holds the data of a table: the one that has it already, or an embedded one.

>>> offered("people.txt")
Traceback (most recent call last):
...
counterpoint.errors.InvalidParameter: a table is read from a .parquet or .csv file, not from 'people.txt'
"""

from collections.abc import Sequence

from counterpoint.errors import InvalidParameter
from counterpoint.sources.engines.embedded import EmbeddedOffer
from counterpoint.sources.engines.engine import Offer
from counterpoint.sources.engines.on_disk import memory_limit


def offered(data: object, relation: str | None = None, memory: str | None = None, units: Sequence[str] = ()) -> Offer:
    """An offer to the engine that holds the data already, or to the embedded one, on disk if its memory is limited.

    `units` are the columns that identify units: objects in them are read as their keys.
    """
    limit = None if memory is None else memory_limit(memory)
    if isinstance(data, str) and data.startswith(("postgresql://", "postgres://")):
        from counterpoint.sources.engines.postgres import PostgresOffer  # noqa: PLC0415 - needs counterpoint[postgres]

        _must_be_embedded(limit, "PostgreSQL")
        return PostgresOffer(data, relation)
    if relation is not None:
        raise InvalidParameter(
            "relation names a table of a database, so data must be a postgresql:// URL: leave out relation, or give one"
        )
    if type(data).__module__.partition(".")[0] == "pyspark":
        from counterpoint.sources.engines.spark import SparkOffer  # noqa: PLC0415 - needs counterpoint[spark]

        _must_be_embedded(limit, "Spark")
        return SparkOffer(data)
    return EmbeddedOffer(data, limit, units)


def _must_be_embedded(limit: str | None, engine: str) -> None:
    if limit is not None:
        raise InvalidParameter(
            f"memory limits the embedded engine, and {engine} holds this data: leave out memory, and limit {engine} "
            "by its own settings"
        )

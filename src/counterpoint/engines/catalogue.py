"""The engines, and which of them holds given data. Adding an engine means adding one file, and one line here.

Each engine has a function that offers it the data of a table: an `Offer`, or None if another engine holds them. They
are called in this order; the embedded engine is the last, since it reads whatever is held by no other.

>>> offered("people.txt", BindOptions())
Traceback (most recent call last):
...
counterpoint.errors.InvalidParameter: a table is read from a .parquet or .csv file, not from 'people.txt'
"""

from collections.abc import Callable

from counterpoint.engines import duckdb, postgres, spark
from counterpoint.engines.engine import BindOptions, Offer

ENGINES: list[Callable[[object, BindOptions], Offer | None]] = [
    postgres.offer,
    spark.offer,
    duckdb.offer,
]


def offered(data: object, options: BindOptions) -> Offer:
    """An offer of these data to the engine that holds them."""
    for offer in ENGINES:
        found = offer(data, options)
        if found is not None:
            return found
    raise AssertionError("the embedded engine offers all data, or refuses them")

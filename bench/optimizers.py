"""What it costs that the embedded engine plans by the statement alone: CPU time as it is, and with an optimizer on.

Each optimizer that is off, and would change a plan (`engines/optimizers.py`), is turned on by itself, and then all that
are off together. They answer the statements of a few requests about two million rows, in turns, on a copy of the stored
rows. Below 1x it would be faster with that optimizer.

python -m bench optimizers
"""

import os
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa

import counterpoint as cp
from bench.table import Row, best_cpu
from counterpoint.engines.duckdb import silent_database
from counterpoint.engines.optimizers import OFF, disabled

ROWS = int(os.environ.get("BENCH_ROWS", "2000000"))
CITIES = [f"city {number}" for number in range(50)]


def rows(many: int = ROWS) -> Iterator[Row]:
    """For each request, a row for each optimizer and one for all."""
    with silent_database() as database:
        asked = requests(database, many)
        off = set(disabled(database))
        for what, statements in asked.items():
            for name, on in [*((name, {name}) for name in OFF), ("all of them", off)]:
                as_it_is = running(database, off, statements)
                ours, peer = best_cpu(as_it_is, running(database, off - on, statements), rounds=7)
                yield Row(f"{what}, {many:,} rows: CPU", ours, peer, f"with {name} on")


def running(database: Any, off: set[str], statements: tuple[str, ...]) -> Callable[[], object]:
    """Run these statements while these optimizers are off."""

    def run() -> None:
        database.execute(f"SET GLOBAL disabled_optimizers = '{','.join(sorted(off))}'")
        for sql in statements:
            database.execute(sql).fetchall()

    return run


def requests(database: Any, many: int) -> dict[str, tuple[str, ...]]:
    """The statements of a few requests, and in the database what they read: a table's stored rows, and attributes."""
    number = np.arange(many)
    people = cp.Table(
        pa.table(
            {
                "person": number,
                "age": number * 7919 % 100,
                "income": number * 7907 % 100_000,
                "city": pa.array(np.array(CITIES)[number * 7901 % len(CITIES)]),
            }
        ),
        unit="person",
        rows_per_unit=2,
        columns={"age": cp.number(0, 100), "income": cp.number(0, 100_000), "city": cp.category(CITIES)},
    )
    half = pa.table({"person": number[::2], "zone": number[::2] * 7883 % 9})
    homes = cp.Table(half, unit="person", rows_per_unit=1, columns={"zone": cp.number(0, 9)})
    asked = {
        "a grouped sum": cp.sum("income", by="city"),
        "a count with conditions": cp.count("age >= 30 AND income < 50000"),
        "a few keys": cp.count(by="city", keys=CITIES[:2]),
        "a sum of CASE": cp.sum("CASE WHEN age > 30 THEN income ELSE age END"),
        "a median": cp.median("income", range(0, 100_001, 1000)),
    }
    found = {what: people._compiled(request).statements for what, request in asked.items()}
    with people, homes:
        both = cp.Sources(people=people, homes=homes, unit="person")
        joined = cp.count("homes.zone = 3", of="people")
        both.resolve(both.pin(), both.prepare(joined))  # which puts the attributes beside the rows
        seen = both._joined(both._about(joined))
        assert seen is not None
        found["a join"] = seen.compiled.statements
        assert people.embedded is not None
        for (name,) in people.embedded.run("SHOW TABLES"):
            database.register("copied", _copied(people.embedded, name))
            database.execute(f"CREATE TABLE {name} AS FROM copied")
            database.unregister("copied")
    return found


def _copied(engine: Any, name: str) -> pa.Table:
    columns = [column for column, *_ in engine.run(f"DESCRIBE {name}")]
    return pa.table(dict(zip(columns, map(list, zip(*engine.run(f"FROM {name}"), strict=True)), strict=True)))

"""A live table beside DuckDB on the same rows: how fast updates arrive, and what requests on the present rows cost.

Half of the updates replace a row, so that the engine has to tell the present rows from those that ended. An ask
resolves the request, draws noise and settles in memory; the peer runs the bare query on a table of the present rows. An
ask right after an update feeds that update, too, and ends the row that it replaced.
"""

from collections.abc import Iterator
from functools import partial

import duckdb

from bench.table import Row, seconds, side_by_side
from counterpoint import Laplace, LiveTable, PureDP, Session, category, count, number

PEOPLE = 500_000
TOGETHER = 100_000
STATES = ["CA", "NY", "WY", "TX"]
WHERE = "state = 'CA' AND age >= 60"


def rows() -> Iterator[Row]:
    """Updates, asks with a condition, and asks right after an update."""
    people, raw = LiveTable("who", 1, key="row", columns={"state": category(STATES), "age": number(0, 120)}), _raw()
    batches = [_batch(at % PEOPLE, at // PEOPLE) for at in range(0, 2 * PEOPLE, TOGETHER)]
    taken = sum(seconds(partial(people.put, batch)) for batch in batches)
    updated = seconds(lambda: raw.execute("UPDATE people SET age = (age + 1) % 121").fetchall())
    yield Row(f"{2 * PEOPLE:.0e} rows put, half of them replaced", taken, updated, "one UPDATE in DuckDB")
    noisy = Session(people, within=PureDP(10**6)).launch(Laplace(epsilon=1, asks=10**6))
    request, query = count(where=WHERE), f"SELECT count(*) FROM people WHERE {WHERE}"
    noisy.ask(request)
    bare = lambda: raw.execute(query).fetchall()  # noqa: E731 - it is measured below, twice
    ours, peer = side_by_side(partial(noisy.ask, request), bare, rounds=15)
    yield Row(f"an ask with a condition on {PEOPLE:.0e} present rows", ours, peer, "DuckDB")

    def after_an_update() -> object:
        people.put(batches[0][0])
        return noisy.ask(request)

    ours, peer = side_by_side(after_an_update, bare, rounds=15)
    yield Row("the same ask right after an update", ours, peer, "DuckDB, without the update")


def _batch(start: int, turn: int) -> list[dict[str, object]]:
    return [
        {"who": who, "row": 1, "state": STATES[who % 4], "age": (who + turn) % 121}
        for who in range(start, start + TOGETHER)
    ]


def _raw() -> "duckdb.DuckDBPyConnection":
    raw = duckdb.connect()
    listed = ", ".join(f"'{state}'" for state in STATES)
    chosen = f"SELECT range AS who, list_extract([{listed}], range % 4 + 1) AS state, range % 121 AS age"
    raw.execute(f"CREATE TABLE people AS {chosen} FROM range({PEOPLE})")
    return raw

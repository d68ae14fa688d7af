"""A stream of records beside DuckDB on the same rows: how fast records arrive, and what requests on them cost.

An ask with a condition resolves the request, draws noise and settles in memory; the peer runs the bare query. Whether
asks stay flat is shown by the last of a thousand beside the first of them. A follower that is not asked must cost
nothing while records arrive. `STREAM_ITEMS=10000000` runs the large case, in two minutes; the default is a tenth of it.
"""

import os
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import duckdb
import numpy as np

from bench.table import Row, seconds, side_by_side
from counterpoint import Counter, Laplace, MonotoneHistogram, PureDP, Session, Stream, category, count, number
from counterpoint.continual import max_of

ITEMS = int(os.environ.get("STREAM_ITEMS", "1000000"))
TOGETHER = 100_000
ASKS = 1000
FOLLOWERS = 100_000
A_SECOND = 10_000
KEYS = [f"k{n}" for n in range(16)]
PAGES = ["home", "shop", "help", "news"]
WHERE = "page = 'home' AND seconds >= 300"


def rows() -> Iterator[Row]:
    """Arrival, asks with a condition, the thousandth of them, and arrival while many followers wait."""
    visits, raw = _visits(), duckdb.connect()
    raw.execute("SET enable_progress_bar = false")
    arrival, inserted = _filled(visits, raw)
    yield Row(f"{ITEMS:.0e} records appended to a stream", arrival, inserted, "DuckDB, from arrays")
    yield from _user_level(arrival)
    yield from _asks(visits, raw)
    yield _idle_followers()
    yield _histogram()


def _visits(**user: object) -> Stream:
    return Stream(fields={"page": category(PAGES), "seconds": number(0, 600)}, **user)  # type: ignore[arg-type]


def _records(start: int, count: int) -> list[dict[str, object]]:
    return [{"page": PAGES[place % 4], "seconds": place % 600} for place in range(start, start + count)]


def _filled(visits: Stream, raw: "duckdb.DuckDBPyConnection") -> tuple[float, float]:
    """How long the stream and DuckDB take for the same rows; the making of records is not counted."""
    arrival = sum(seconds(partial(visits.extend, _records(at, TOGETHER))) for at in range(0, ITEMS, TOGETHER))
    places = np.arange(ITEMS)
    raw.register("given", {"page": np.array(PAGES, dtype=object)[places % len(PAGES)], "seconds": places % 600})
    return arrival, seconds(lambda: raw.execute("CREATE TABLE visits AS SELECT * FROM given").fetchall())


def _user_level(event_level: float) -> Iterator[Row]:
    """The same records with units, whose items are counted as they arrive."""
    owned = _visits(unit="who", per_unit=20)
    batches = [[{**record, "who": n % 9973} for n, record in enumerate(_records(at, TOGETHER))] for at in (0, TOGETHER)]
    taken = sum(seconds(partial(owned.extend, batch)) for batch in batches)
    same = event_level * len(batches) * TOGETHER / ITEMS
    yield Row(f"{len(batches) * TOGETHER:.0e} records with units appended", taken, same, "without units")


def _asks(visits: Stream, raw: "duckdb.DuckDBPyConnection") -> Iterator[Row]:
    noisy = Session(visits, within=PureDP(10**6)).launch(Laplace(epsilon=1, asks=10**6))
    request, query = count(where=WHERE), f"SELECT count(*) FROM visits WHERE {WHERE}"
    noisy.ask(request)
    ours, peer = side_by_side(partial(noisy.ask, request), lambda: raw.execute(query).fetchall(), rounds=15)
    yield Row(f"an ask with a condition on {ITEMS:.0e} records", ours, peer, "DuckDB", at_most=1.5)
    first = min(seconds(partial(noisy.ask, request)) for _ in range(20))
    for _ in range(ASKS):
        noisy.ask(request)
    last = min(seconds(partial(noisy.ask, request)) for _ in range(20))
    yield Row(f"the same ask after {ASKS} more", last, first, "before them", at_most=1.3)


def _idle_followers() -> Row:
    """Records arrive in two streams in turns: one is followed by many counters that are not asked."""
    alone, followed = _visits(), _visits()
    session = Session(followed, within=PureDP(10**6))
    for n in range(FOLLOWERS):
        session.launch(Counter(epsilon=1), of=count(where=f"seconds >= {n % 600}"))
    records = _records(0, TOGETHER)
    ours, peer = side_by_side(partial(followed.extend, records), partial(alone.extend, records), rounds=9)
    what = f"{TOGETHER:.0e} records appended beside {FOLLOWERS:.0e} idle followers"
    return Row(what, ours, peer, "without followers", at_most=1.3)


def _histogram() -> Row:
    """Items arrive in batches of a twentieth of a second, each followed by an ask of the largest bar, all on disk."""
    with tempfile.TemporaryDirectory() as folder:
        pages = Stream(fields={"page": category(KEYS)})
        with Session(pages, within=PureDP(1), ledger=Path(folder, "pages.db")) as session:
            largest = session.launch(MonotoneHistogram(epsilon=1, query=max_of), of="page")
            items = [{"page": KEYS[place * place % len(KEYS)]} for place in range(A_SECOND)]

            def arrive() -> None:
                for at in range(0, A_SECOND, A_SECOND // 20):
                    pages.extend(items[at : at + A_SECOND // 20])
                    largest.ask()

            taken = min(seconds(arrive) for _ in range(5))
    what = f"{A_SECOND:.0e} items of {len(KEYS)} keys through a monotone histogram, in 20 batches, on SQLite"
    return Row(what, taken, 1.0, "the second in which they arrive", at_most=1)

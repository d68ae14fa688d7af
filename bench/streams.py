"""Requests on a stream of records beside the same query on the same rows in DuckDB, and how fast records arrive.

An ask with a condition resolves the request, draws noise and settles in memory; the peer runs the bare query. Whether
asks stay flat is shown by the last of many beside the first of them.
"""

from collections.abc import Iterator
from functools import partial

import duckdb
import numpy as np

from bench.table import Row, seconds, side_by_side
from counterpoint import Laplace, PureDP, Session, Stream, category, count, number

ITEMS = 1_000_000
ASKS = 1000
PAGES = ["home", "shop", "help", "news"]


def rows() -> Iterator[Row]:
    """Arrival, an ask with a condition, and the thousandth ask."""
    places = np.arange(ITEMS)
    pages, taken = places % len(PAGES), places % 600
    visits = Stream(fields={"page": category(PAGES), "seconds": number(0, 600)})
    records = [{"page": PAGES[page], "seconds": int(spent)} for page, spent in zip(pages, taken, strict=True)]
    arrival = seconds(partial(visits.extend, records))
    raw = duckdb.connect()
    frame = {"page": np.array(PAGES, dtype=object)[pages], "seconds": taken}
    raw.register("given", frame)
    inserted = seconds(lambda: raw.execute("CREATE TABLE visits AS SELECT * FROM given").fetchall())
    yield Row(f"{ITEMS:.0e} records appended to a stream", arrival, inserted, "DuckDB, from arrays")
    session = Session(visits, within=PureDP(10**6))
    noisy = session.launch(Laplace(epsilon=1, asks=10**6))
    request = count(where="page = 'home' AND seconds >= 300")
    query = "SELECT count(*) FROM visits WHERE page = 'home' AND seconds >= 300"
    noisy.ask(request)
    ours, peer = side_by_side(partial(noisy.ask, request), lambda: raw.execute(query).fetchall(), rounds=15)
    yield Row(f"an ask with a condition on {ITEMS:.0e} records", ours, peer, "DuckDB", at_most=1.5)
    first = min(seconds(partial(noisy.ask, request)) for _ in range(20))
    for _ in range(ASKS):
        noisy.ask(request)
    last = min(seconds(partial(noisy.ask, request)) for _ in range(20))
    yield Row(f"the same ask after {ASKS} more", last, first, "before them", at_most=1.3)

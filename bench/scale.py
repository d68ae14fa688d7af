"""Many of everything in one session: launches, handles, delegated sessions, cells; time and memory of each are flat.

Times are of this process's own work (CPU), the best of several rounds; memory is what is resident afterwards.

python -m bench scale
"""

import gc
import os
import time
from collections.abc import Callable, Iterator
from itertools import repeat

from bench.memory import resident
from bench.table import Row
from counterpoint.continual.counter import Counter
from counterpoint.errors import BudgetExceeded
from counterpoint.measures import ApproxDP, PureDP
from counterpoint.mechanisms.additive import Laplace
from counterpoint.queries.aggregates import count
from counterpoint.schema.columns import category
from counterpoint.schema.units import each_row
from counterpoint.session.session import Session
from counterpoint.sources.streams.stream import Stream
from counterpoint.sources.table import Table

LAUNCHES, HANDLES, DELEGATED, SIDE = 10**6, 10**5, 10**4, 10**3
ROUNDS = 7
MILLISECOND = 1e-3


def rows(
    launches: int = LAUNCHES, handles: int = HANDLES, delegated: int = DELEGATED, side: int = SIDE
) -> Iterator[Row]:
    """The rows for these numbers of each; `side` squared cells."""
    keep: list[object] = []
    many = Session(Stream(bound=1), within=ApproxDP(10**4, 1e-6))
    small, large = Laplace("0.001"), Laplace(10**6)
    yield from grown("launch", lambda: many.launch(small), launches)
    spent = fastest(lambda: refused(many, large), lambda: many.launch(small))
    yield Row(f"what remains, after {launches:,} launches", remaining(many), MILLISECOND, "a millisecond", at_most=1)
    yield Row(f"a refusal, after {launches:,} launches", spent, MILLISECOND, "a millisecond", at_most=1)
    counting = Session(Stream(bound=1), within=PureDP(10**6))
    yield from grown("handle", lambda: keep.append(counting.launch(Counter("0.1"))), handles)
    giving = Session(Stream(bound=1), within=ApproxDP(10**4, 1e-6))
    yield from grown("delegated session", lambda: keep.append(giving.delegate(PureDP("0.001"))), delegated)
    yield from cells(side)


def grown(what: str, make: Callable[[], object], many: int) -> Iterator[Row]:
    """The time of one such operation in the last tenth of many, and its memory over all, beside the first tenth."""
    make()
    start, tenth = used(), many // 10
    few, small = each(make, tenth), (used() - start) / tenth
    each(make, many - 2 * tenth)
    last, large = each(make, tenth), (used() - start) / many
    yield Row(f"a {what} after {many:,}", last, few, f"after {tenth:,}", at_most=1.3)
    yield Row(f"bytes of a {what} after {many:,}", large, small, f"after {tenth:,}", at_most=1.3, unit="B")


def used() -> int:
    """How many bytes of this process are in memory, once what can be freed is."""
    gc.collect()
    return resident(os.getpid())


def each(make: Callable[[], object], times: int) -> float:
    """The CPU seconds of one of `times`, in the fastest of several rounds."""
    rounds = min(ROUNDS, times)
    return min(_seconds(make, times // rounds) for _ in range(rounds)) / (times // rounds)


def _seconds(make: Callable[[], object], times: int) -> float:
    start = time.process_time()
    for _ in repeat(None, times):
        make()
    return time.process_time() - start


def fastest(work: Callable[[], object], between: Callable[[], object]) -> float:
    """The CPU seconds of a piece of work, in the fastest of several rounds, each after a change."""
    best = float("inf")
    for _ in range(ROUNDS):
        between()
        best = min(best, _seconds(work, 1))
    return best


def remaining(session: Session) -> float:
    """The CPU seconds of reading what remains, of an account that has just changed."""
    return fastest(lambda: session.remaining, lambda: session.launch(Laplace("0.001")))


def refused(session: Session, mechanism: Laplace) -> None:
    """Launch what does not fit."""
    try:
        session.launch(mechanism)
    except BudgetExceeded:
        return
    raise AssertionError("it was to be refused")


def cells(side: int) -> Iterator[Row]:
    """A count in `side` squared cells, for each cell, beside one in a hundredth as many."""
    wide, narrow = cell_asks(side), cell_asks(side // 10)
    pairs = [(_seconds(wide, 1) / side**2, _seconds(narrow, 1) / (side // 10) ** 2) for _ in range(3)]
    yield Row(
        f"a cell of {side**2:,} noisy counts",
        min(pair[0] for pair in pairs),
        min(pair[1] for pair in pairs),
        f"of {(side // 10) ** 2:,}",
        at_most=1.3,
    )


def cell_asks(side: int) -> Callable[[], object]:
    """An ask for a count in each of the cells of two columns, over as many rows as cells."""
    import duckdb

    connection = duckdb.connect()
    connection.execute(f"CREATE TABLE plain AS SELECT i % {side} AS a, i // {side} AS b FROM range({side**2}) AS t(i)")
    columns = {name: category(range(side)) for name in ("a", "b")}
    table = Table(connection.sql("FROM plain"), unit=each_row, columns=columns, most_cells=side**2)
    noisy, request = Session(table, within=PureDP(1)).launch(Laplace(1, asks=100)), count(by=["a", "b"])
    noisy.ask(request)
    return lambda: noisy.ask(request)

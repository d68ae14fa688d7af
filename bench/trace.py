"""How far a reader has to follow one durable ask: calls of our own functions, and switches from one file to another.

Counted by `sys.setprofile` over the frames of `src/`, on the thread that asks: a call counts when one of our functions
is entered, a switch when the function entered next is in another file. The ask is the fifth on a Laplace mechanism over
a small table, so that nothing is imported or compiled on the way.

    python -m bench.trace            # the counts, for SQLite
    python -m bench.trace --path     # and the functions in the order in which they are entered
"""

import sys
import tempfile
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import counterpoint as cp
from bench.table import Row

SRC = str(Path(cp.__file__).parent)
BEFORE: dict[str | None, tuple[int, int]] = {None: (368, 181), "an id": (374, 183)}
"""By id: calls and switches of one ask when the durable path still ran through callbacks (commit 1c1b903)."""


class Trace(NamedTuple):
    """The functions of ours that were entered, in order, as (file, function)."""

    calls: list[tuple[str, str]]

    @property
    def switches(self) -> int:
        """How often the function entered next is in another file than the one before."""
        return sum(here != there for (here, _), (there, _) in pairwise(self.calls))


def traced(work: Callable[[], object]) -> Trace:
    """The calls of `work`, in this thread."""
    trace = Trace([])

    def note(frame: FrameType, event: str, argument: Any) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(SRC):
            trace.calls.append((frame.f_code.co_filename, frame.f_code.co_qualname))

    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(None)
    return trace


def one_ask(id: str | None = None) -> Trace:
    """The fifth ask on a durable session in SQLite, with an id or without."""
    request = cp.count(where="state = 'CA'")
    with tempfile.TemporaryDirectory() as home:
        people = cp.Table(cp.datasets.people(), unit="person_id", rows_per_unit=1, key=bytes(32))
        with cp.Session(people, within=cp.PureDP(1), ledger=f"{home}/ledger.db", name="people") as session:
            noisy = session.launch(cp.Laplace(epsilon=0.5, asks=10))
            for _ in range(4):
                noisy.ask(request)
            return traced(lambda: noisy.ask(request, id=id))


def rows() -> Iterator[Row]:
    """The counts beside those of the path with callbacks."""
    for id, (calls, switches) in BEFORE.items():
        trace, what = one_ask(id), f"one durable ask {'without an id' if id is None else 'with an id'}"
        yield Row(f"{what}: calls of our functions", len(trace.calls), calls, "with callbacks", at_most=0.5)
        yield Row(f"{what}: switches between files", trace.switches, switches, "with callbacks", at_most=0.5)


if __name__ == "__main__":
    for given in BEFORE:
        found = one_ask(given)
        print(f"id={given!r}: {len(found.calls)} calls, {found.switches} switches between files")
    if "--path" in sys.argv:
        print("\n".join(f"{Path(name).relative_to(SRC)}: {function}" for name, function in found.calls))

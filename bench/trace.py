"""How far a reader has to follow one durable ask: calls of our own functions, and switches from one file to another.

Counted by `sys.setprofile` over the frames of `src/`, on the thread that asks: a call counts when one of our functions
is entered, a switch when the function entered next is in another file. Each is the fifth of its kind over a small
table, so that nothing is imported or compiled on the way: an ask of a Laplace mechanism, and a question
(`session.ask`), which launches one and asks it.

    python -m bench.trace            # the counts and the CPU time, for SQLite
    python -m bench.trace --path     # and the functions in the order in which they are entered
"""

import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import counterpoint as cp
from bench.table import Row

SRC = str(Path(cp.__file__).parent)
BEFORE = {"ask": (386, 224), "question": (942, 511)}
"""Calls and switches of each when a question was two requests, in a tree of 492 files."""
AT_MOST = {"ask": 1.2, "question": 0.7}
"""An ask makes more checks than it did then: rows are compared with the chain, and what is stored is read back."""
ROUNDS, IN_ONE = 12, 40


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


@contextmanager
def asked() -> Iterator[Mapping[str, Callable[[], object]]]:
    """An ask and a question on a durable session in SQLite, after four of each."""
    request = cp.count(where="state = 'CA'")
    with tempfile.TemporaryDirectory() as home:
        people = cp.Table(cp.datasets.people(), unit="person_id", rows_per_unit=1, key=bytes(32))
        with cp.Session(people, within=cp.PureDP(1000), ledger=f"{home}/ledger.db", name="people") as session:
            noisy = session.launch(cp.Laplace(epsilon=0.5, asks=10**6))
            works: dict[str, Callable[[], object]] = {
                "ask": lambda: noisy.ask(request),
                "question": lambda: session.ask(request, epsilon=0.01),
            }
            for work in works.values():
                for _ in range(4):
                    work()
            yield works


def microseconds(work: Callable[[], object]) -> float:
    """The CPU time of one, in this process: the least mean of several rounds."""
    means = []
    for _ in range(ROUNDS):
        began = time.process_time()
        for _ in range(IN_ONE):
            work()
        means.append((time.process_time() - began) / IN_ONE)
    return min(means) * 1e6


def rows() -> Iterator[Row]:
    """The counts beside those of two requests."""
    before = "when a question was two requests"
    with asked() as works:
        for name, work in works.items():
            trace, (calls, switches), most = traced(work), BEFORE[name], AT_MOST[name]
            what = f"one durable {name}"
            yield Row(f"{what}: calls of our functions", len(trace.calls), calls, before, at_most=most, unit="")
            yield Row(f"{what}: switches between files", trace.switches, switches, before, at_most=most, unit="")


if __name__ == "__main__":
    with asked() as works:
        for name, work in works.items():
            found = traced(work)
            print(
                f"{name}: {len(found.calls)} calls, {found.switches} switches between files, "
                f"{microseconds(work):.0f} us of CPU"
            )
            if "--path" in sys.argv:
                print("\n".join(f"{Path(file).relative_to(SRC)}: {function}" for file, function in found.calls))

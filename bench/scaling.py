"""What one budget costs at many workers: a simulation of the ledger, with parameters that are measured on this machine.

A budget is checked and charged in one place, so its requests are serialised: a transaction holds the lock of its ledger
for as long as a commit takes. Requests that wait in one process share the next transaction (group commit). An ask is
its own CPU, which the threads of a process take in turn, and two transactions, one that charges and one that stores:

    asks that wait -> CPU in their process -> transaction -> transaction -> answered, and asked again

A transaction takes `commit` seconds, and `each` more for each of its requests. Replicas are processes; partitions are
ledgers, one for each data set, which share nothing. What is simulated is this queue alone: no network between analysts
and service, no slow queries, no failures; the workers ask without a pause.

python -m bench.scaling measures, simulates, and prints the table of the guide's page, Scaling.
"""

import heapq
import statistics
import time
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from typing import NamedTuple

import counterpoint as cp
from bench.ledger import places
from bench.table import Row
from counterpoint.ledger.location import Durable

WORKERS = (10, 100, 1000)
ASKS = 30
MEASURED = 200
CLIENTS, PER_CLIENT, ROUNDS = 64, 8, 3


class Parameters(NamedTuple):
    """What an ask takes, in seconds: CPU outside of transactions; a transaction, and more for each request in it."""

    cpu: float
    commit: float
    each: float


ON_THIS_PAGE = {
    "SQLite": Parameters(cpu=125e-6, commit=5.1e-3, each=111e-6),
    "PostgreSQL": Parameters(cpu=141e-6, commit=17e-3, each=197e-6),
}
"""What was measured for the guide's page, on two cores that had much other work, and on their disk."""


class Layout(NamedTuple):
    """Over how many processes and how many ledgers the workers are spread."""

    workers: int
    replicas: int = 1
    partitions: int = 1
    grouped: bool = True
    """Whether requests that wait together share a transaction."""
    routed: bool = False
    """Whether all asks about a data set go to the same process."""


class Simulated(NamedTuple):
    """What came of it."""

    per_second: float
    median: float
    """How long an ask waited for its answer."""
    per_commit: float
    """How many requests shared a transaction."""


class _Ask:
    """An ask on its way: who asks, since when, and how many of its transactions are done."""

    __slots__ = ("done", "start", "worker")

    def __init__(self, worker: int, start: float) -> None:
        self.worker, self.start, self.done = worker, start, 0


def simulate(parameters: Parameters, layout: Layout, asks: int = ASKS) -> Simulated:
    """Each worker asks `asks` times, each time as soon as it has its answer.

    >>> one = simulate(Parameters(cpu=0.001, commit=0.002, each=0), Layout(1))
    >>> round(one.per_second), round(one.median, 6), one.per_commit
    (200, 0.005, 1.0)
    """
    return _Simulation(parameters, layout, asks).run()


class _Simulation:
    """The state of all queues, and the events to come in the order of their times."""

    def __init__(self, parameters: Parameters, layout: Layout, asks: int) -> None:
        self._parameters, self._layout = parameters, layout
        self._left = [asks] * layout.workers
        self._events: list[tuple[float, int, str, tuple[int, int], list[_Ask]]] = []
        self._numbers = count()  # events of one time come in the order in which they were made
        self._computing: dict[int, deque[_Ask]] = {n: deque() for n in range(layout.replicas)}
        self._busy: set[int] = set()
        self._waiting: dict[tuple[int, int], deque[_Ask]] = {}
        self._turns: dict[int, deque[int]] = {n: deque() for n in range(layout.partitions)}
        self._locked: set[int] = set()
        self._waits: list[float] = []
        self._batches: list[int] = []

    def run(self) -> Simulated:
        now = 0.0
        for worker in range(self._layout.workers):
            self._ask(worker, now)
        while self._events:
            now, _, kind, place, asks = heapq.heappop(self._events)
            (self._computed if kind == "cpu" else self._committed)(now, place, asks)
        return Simulated(len(self._waits) / now, statistics.median(self._waits), statistics.mean(self._batches))

    def _at(self, time: float, kind: str, place: tuple[int, int], asks: list[_Ask]) -> None:
        heapq.heappush(self._events, (time, next(self._numbers), kind, place, asks))

    def _place(self, ask: _Ask) -> tuple[int, int]:
        """The process and the ledger of a worker's asks."""
        _, replicas, partitions, *_ = self._layout
        ledger = ask.worker % partitions
        return (ledger if self._layout.routed else ask.worker + ask.worker // partitions) % replicas, ledger

    def _ask(self, worker: int, now: float) -> None:
        if self._left[worker]:
            self._left[worker] -= 1
            ask = _Ask(worker, now)
            process = self._place(ask)[0]
            self._computing[process].append(ask)
            self._compute(process, now)

    def _compute(self, process: int, now: float) -> None:
        if process not in self._busy and self._computing[process]:
            self._busy.add(process)
            ask = self._computing[process].popleft()
            self._at(now + self._parameters.cpu, "cpu", self._place(ask), [ask])

    def _computed(self, now: float, place: tuple[int, int], asks: list[_Ask]) -> None:
        self._busy.discard(place[0])
        self._compute(place[0], now)
        self._wait(asks[0], now)

    def _wait(self, ask: _Ask, now: float) -> None:
        process, ledger = place = self._place(ask)
        waiting = self._waiting.setdefault(place, deque())
        waiting.append(ask)
        if len(waiting) == 1 or not self._layout.grouped:
            self._turns[ledger].append(process)
        self._lock(ledger, now)

    def _lock(self, ledger: int, now: float) -> None:
        if ledger in self._locked or not self._turns[ledger]:
            return
        self._locked.add(ledger)
        place = (self._turns[ledger].popleft(), ledger)
        waiting = self._waiting[place]
        batch = [waiting.popleft() for _ in range(len(waiting) if self._layout.grouped else 1)]
        self._batches.append(len(batch))
        self._at(now + self._parameters.commit + self._parameters.each * len(batch), "commit", place, batch)

    def _committed(self, now: float, place: tuple[int, int], batch: list[_Ask]) -> None:
        self._locked.discard(place[1])
        for ask in batch:
            ask.done += 1
            if ask.done == 2:
                self._waits.append(now - ask.start)
                self._ask(ask.worker, now)
            else:
                self._wait(ask, now)
        self._lock(place[1], now)


def measure(place: Durable) -> Parameters:
    """The parameters of a ledger at a place, on this machine.

    Asks of many threads say what CPU an ask takes where transactions are shared; asks one after the other, which part
    of it is inside of transactions, and how long a transaction takes; the fastest quarter counts, as other work on the
    machine only adds. All CPU inside counts as if the lock were held meanwhile, which is more than is.
    """
    with cp.Session(cp.Stream(bound=1), within=cp.PureDP(CLIENTS), ledger=place) as session:
        handles = [session.launch(cp.Laplace(1, asks=10 * MEASURED)) for _ in range(CLIENTS)]
        inside, outside, wall = _one_by_one(session, handles[0])
        cpu = min(_together(handles) for _ in range(ROUNDS))
    part = inside / (inside + outside)
    return Parameters(cpu * (1 - part), wall, cpu * part / 2)


def _one_by_one(session: cp.Session, noisy: cp.Handle) -> tuple[float, float, float]:
    """The CPU seconds of an ask inside and outside of its transactions, and the seconds that one of these takes."""
    ledger, inside, walls, asks = session._engine.ledger, [], [], []
    transact = ledger.transact

    def timed(job: object) -> object:
        cpu, wall = time.thread_time(), time.perf_counter()
        done = transact(job)  # type: ignore[arg-type]  # it is handed on
        inside.append(time.thread_time() - cpu)
        walls.append(time.perf_counter() - wall)
        return done

    ledger.transact = timed  # type: ignore[method-assign]  # only here, to listen
    for _ in range(MEASURED):
        start = time.thread_time()
        noisy.ask(cp.total())
        asks.append(time.thread_time() - start)
    ledger.transact = transact  # type: ignore[method-assign]
    ask, each, wall = (statistics.quantiles(times, n=4)[0] for times in (asks, inside, walls))
    return 2 * each, max(0.0, ask - 2 * each), wall


def _together(handles: Sequence[cp.Handle]) -> float:
    """The CPU seconds of an ask, of which there is one at a time on each handle."""

    def ask(handle: cp.Handle) -> None:
        for _ in range(PER_CLIENT):
            handle.ask(cp.total())

    start = time.process_time()
    with ThreadPoolExecutor(len(handles)) as pool:
        list(pool.map(ask, handles))
    return (time.process_time() - start) / (PER_CLIENT * len(handles))


def layouts(workers: int) -> dict[str, Layout]:
    """What the page compares at this number of workers; SQLite has one process."""
    return {
        "one transaction a request": Layout(workers, grouped=False),
        "1 process": Layout(workers),
        "4 processes": Layout(workers, 4),
        "16 processes": Layout(workers, 16),
        "16 processes, 10 data sets": Layout(workers, 16, 10),
        "the same, each data set at one process": Layout(workers, 16, 10, routed=True),
    }


def rows() -> Iterator[Row]:
    *_, durable = places()
    measured = measure(durable)
    for workers in WORKERS:
        alone, grouped = (simulate(measured, Layout(workers, grouped=grouped)) for grouped in (False, True))
        what = f"an ask of {workers:,} simulated workers on one budget"
        yield Row(what, 1 / grouped.per_second, 1 / alone.per_second, "a transaction for each request")


def table(measured: Parameters) -> Iterator[str]:
    """The lines of a table: asks a second, and how long half of them wait at least."""
    yield "| | " + " | ".join(f"{workers:,} workers" for workers in WORKERS) + " |"
    yield "|---" * (len(WORKERS) + 1) + "|"
    for name in layouts(1):
        found = [simulate(measured, layouts(workers)[name]) for workers in WORKERS]
        cells = [f"{one.per_second:,.0f}/s, {1000 * one.median:,.0f} ms" for one in found]
        yield f"| {name} | " + " | ".join(cells) + " |"


def main() -> None:
    """Measure and print, for each kind of database that there is."""
    for durable in places():
        found = measure(durable)
        print(f"\n{'PostgreSQL' if durable.in_postgres else 'SQLite, of which only one process has'}: {found}\n")
        print("\n".join(table(found)), flush=True)


if __name__ == "__main__":
    main()

"""The threads that handlers run in, shared fairly: no principal's work keeps another's from being run.

Work waits in a queue of its principal's own, and the queues take turns. A principal may hold as many threads as are
still free for others, so a principal alone gets half of them, and the next one half of the rest. That suits asks, which
mostly wait for commits. Work that computes is another matter: Python computes in one thread at a time, so each
computing thread slows down all requests. Hence work of a kind (a route, and about how large a body) that lately took
more than `HEAVY` seconds of CPU time gets one thread for each principal, and `HEAVY_AT_ONCE` for all together. Work
that computes for more than `BRIEF` seconds, such as reading a certificate, gets `LONGER_AT_ONCE` for each principal: an
ask waits for a turn of the interpreter after each statement, behind every thread that computes (`bench starving`). Work
of a kind that is not known yet gets two for each principal. Light work may be sent to make a kind light again, and then
much heavy work at once: a principal whose work turns out heavier than it was taken for gets two threads for all light
work, `WARY` times as long as that work computed.

>>> threads = FairThreads(threads=4)
>>> token = WORK.set(RequestWork("ann", "quotes"))
>>> threads.submit(sum, (1, 2)).result()
3
>>> WORK.reset(token); threads.shutdown()
"""

import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

THREADS = 128
"""How many handlers run at once: asks that wait at the same time share one commit, however few cores there are."""
HEAVY = 0.05
"""Seconds of CPU time from which on work is heavy."""
BRIEF = 0.003
"""Seconds of CPU time up to which work counts as waiting: an ask, which a commit keeps waiting for longer."""
LONGER_AT_ONCE = 1
"""How many threads of one principal run work that computes for longer than that; with 4 an ask waited 274 ms."""
HEAVY_AT_ONCE = 2
"""How many threads run heavy work, of all principals together: each makes every ask wait longer for the interpreter."""
UNKNOWN_AT_ONCE = 2
"""How many threads of one principal run work of a kind of which none has ended yet."""
STRANGERS_AT_ONCE = 8
"""How many threads run work for callers without a key."""
STRANGERS_WAITING = 64
"""How many requests of callers without a key may wait; the next ones are refused."""
WARY = 100
"""How many seconds a principal's light work is not trusted, for each second that work taken for light computed."""
_REMEMBERED = 0.95
"""How much of the largest time counts after each quicker run: a kind is light again after some 50 of those."""
_MOST_KINDS = 1000


class TooBusy(Exception):
    """Too many requests of callers without a key are waiting."""


@dataclass
class RequestWork:
    """The work of one request: its principal (None: a caller without a key), its kind, and its CPU time."""

    who: str | None
    route: str
    size: int = 0
    computed: float = 0.0

    @property
    def kind(self) -> tuple[str, int]:
        """The kind that this work is remembered under."""
        return self.route, self.size.bit_length()


WORK: ContextVar[RequestWork | None] = ContextVar("work", default=None)
"""The request for which code runs."""


@dataclass
class _Job:
    work: RequestWork
    kind: tuple[str, int]
    future: "Future[Any]"
    run: Callable[[], Any]


@dataclass
class _Lane:
    """One principal's waiting and running work, and the recent CPU time of each kind."""

    is_strangers: bool
    waiting: deque[_Job] = field(default_factory=deque)
    last_turn: int = 0
    running: int = 0
    running_heavy: int = 0
    running_longer: int = 0
    running_unknown: int = 0
    seconds: dict[tuple[str, int], float] = field(default_factory=dict)
    wary_until: float = 0.0

    def is_heavy(self, kind: tuple[str, int]) -> bool:
        return self.seconds.get(kind, 0.0) >= HEAVY

    def is_longer(self, kind: tuple[str, int]) -> bool:
        return self.seconds.get(kind, 0.0) >= BRIEF

    def is_unknown(self, kind: tuple[str, int], now: float) -> bool:
        """Whether this kind has no trusted measurement."""
        return kind not in self.seconds or (now < self.wary_until and not self.is_heavy(kind))

    def misjudged(self, seconds: float, now: float) -> None:
        """Work that was taken for light has computed so long."""
        self.wary_until = max(now, self.wary_until) + WARY * seconds

    def learn(self, kind: tuple[str, int], seconds: float) -> None:
        if kind not in self.seconds and len(self.seconds) >= _MOST_KINDS:
            self.seconds.clear()
        self.seconds[kind] = max(seconds, _REMEMBERED * self.seconds.get(kind, 0.0))


def _has_work(lane: _Lane) -> bool:
    return bool(lane.waiting)


def _last_turn(lane: _Lane) -> int:
    return lane.last_turn


class FairThreads(ThreadPoolExecutor):
    """A pool of threads with a queue for each principal, whose turn comes round robin."""

    def __init__(self, threads: int = THREADS) -> None:
        super().__init__(threads, "counterpoint")
        self._threads_in_all = threads
        self._mutex = threading.Lock()
        self._lanes: dict[str | None, _Lane] = {}
        self._turns = 0
        """How many jobs were started: a principal whose last turn is longest ago comes next."""
        self._running = 0
        self._running_heavy = 0

    def submit(self, fn: Callable[..., Any], /, *args: Any, **options: Any) -> "Future[Any]":
        """Run this in a thread, when it is the turn of the principal for whom it runs."""
        work = WORK.get() or RequestWork(None, "")
        job = _Job(work, work.kind, Future(), lambda: fn(*args, **options))
        with self._mutex:
            lane = self._lanes.setdefault(work.who, _Lane(is_strangers=work.who is None))
            if lane.is_strangers and len(lane.waiting) >= STRANGERS_WAITING:
                raise TooBusy
            lane.waiting.append(job)
            self._start_what_may()
        return job.future

    def _start_what_may(self) -> None:
        """Start jobs, one for each principal in turn, until none that waits may start. The mutex is held."""
        while (found := self._next()) is not None:
            lane, job = found
            lane.waiting.remove(job)
            self._turns += 1
            lane.last_turn = self._turns
            self._start(lane, job)

    def _next(self) -> tuple[_Lane, _Job] | None:
        for lane in sorted(filter(_has_work, self._lanes.values()), key=_last_turn):
            for job in lane.waiting:
                if self._may_start(lane, job):
                    return lane, job
        return None

    def _may_start(self, lane: _Lane, job: _Job) -> bool:
        free = self._threads_in_all - self._running
        if job.future.cancelled():
            return True
        if lane.running >= (min(free, STRANGERS_AT_ONCE) if lane.is_strangers else free):
            return False
        if lane.is_unknown(job.kind, time.monotonic()):
            return lane.running_unknown < UNKNOWN_AT_ONCE
        if lane.is_longer(job.kind) and lane.running_longer >= LONGER_AT_ONCE:
            return False
        return not lane.is_heavy(job.kind) or (lane.running_heavy == 0 and self._running_heavy < HEAVY_AT_ONCE)

    def _start(self, lane: _Lane, job: _Job) -> None:
        if not job.future.set_running_or_notify_cancel():  # its caller waits no more
            return
        is_heavy, is_unknown = lane.is_heavy(job.kind), lane.is_unknown(job.kind, time.monotonic())
        is_longer = lane.is_longer(job.kind)
        self._running += 1
        self._running_heavy += is_heavy
        lane.running += 1
        lane.running_heavy += is_heavy
        lane.running_longer += is_longer
        lane.running_unknown += is_unknown

        def run() -> None:
            began = time.thread_time()
            try:
                result, error = job.run(), None
            except BaseException as raised:  # its caller gets it from the future
                result, error = None, raised
            took = time.thread_time() - began
            job.work.computed += took
            with self._mutex:
                self._running -= 1
                self._running_heavy -= is_heavy
                lane.running -= 1
                lane.running_heavy -= is_heavy
                lane.running_longer -= is_longer
                lane.running_unknown -= is_unknown
                if took >= HEAVY and not (is_heavy or is_unknown):
                    lane.misjudged(took, time.monotonic())
                lane.learn(job.kind, took)
                self._start_what_may()
            if error is None:
                job.future.set_result(result)
            else:
                job.future.set_exception(error)

        try:
            super().submit(run)
        except RuntimeError as error:  # the pool was shut down
            job.future.set_exception(error)

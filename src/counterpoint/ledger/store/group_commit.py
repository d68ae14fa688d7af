"""Group commit: requests that wait at the same time share one transaction, without a thread of its own for it.

The first waiting request becomes the leader and commits the whole batch. It then wakes one newly queued request to lead
the next batch, and the requests that are done. So their threads go on while the next transaction is on its way to disk.
How long each takes is counted for the metrics of a service.

>>> def commit(batch):
...     for ticket in batch:
...         ticket.result = ticket.job.upper()
>>> GroupCommit(commit, threading.RLock()).run("a job")
'A JOB'
"""

import threading
import time
from bisect import bisect_left
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any, Generic, TypeVar

from counterpoint.errors import CounterpointError, LedgerBusy, LedgerError, LedgerFailed
from counterpoint.process import Owner

_PATIENCE = 1.0
"""How long a request waits to be woken, in seconds: after that, its leader must have been interrupted."""

Job = TypeVar("Job")


class Ticket(Generic[Job]):
    """A job that waits for its transaction, and its result or its error."""

    __slots__ = ("_call", "done", "error", "job", "result")

    def __init__(self, job: Job) -> None:
        self.job = job
        self.result: Any = None
        self.error: BaseException | None = None
        self.done = False
        self._call = threading.Lock()
        self._call.acquire()

    def wait(self) -> None:
        """Until it is called, or for so long that its leader must have been interrupted."""
        self._call.acquire(timeout=_PATIENCE)

    def call(self) -> None:
        """Wake the thread that waits: its job is done, or it has to lead."""
        try:
            self._call.release()
        except RuntimeError:  # called before
            return


class GroupCommit(Generic[Job]):
    """Jobs that wait while one transaction is on its way share the next one.

    `commit` runs the jobs of a batch in one transaction and sets the result or the error of each; `connection` is the
    lock of the connection that it uses.
    """

    def __init__(self, commit: Callable[[list[Ticket[Job]]], None], connection: AbstractContextManager[Any]) -> None:
        self._commit = commit
        self._connection = connection
        self._waiting: list[Ticket[Job]] = []
        self._led = False
        self._guard = threading.Lock()
        self._process = Owner(
            "this ledger",
            "open it in this process, or after the fork; processes share a budget through a ledger in PostgreSQL",
        )
        self._over: LedgerError | None = None
        self.failure: BaseException | None = None
        """What the commit raised that ended all of them."""

    def run(self, job: Job) -> Any:
        """Run the job in a transaction; its result, once that is durable."""
        self.check()
        ticket = Ticket(job)
        with self._guard:
            self._waiting.append(ticket)
            led, self._led = self._led, True
        while not ticket.done:
            if led:
                ticket.wait()
            else:
                self._lead(ticket)
            led = False
        if ticket.error is not None:
            raise ticket.error
        return ticket.result

    def check(self) -> None:
        """Refuse everything in a forked process, which would share its parent's connection, and after a failure."""
        self._process.check()
        self._must_go_on()

    def _must_go_on(self) -> None:
        if self._over is not None:
            raise type(self._over)(*self._over.args)

    @property
    def inherited(self) -> bool:
        """Whether this is a fork of the process that has the ledger open."""
        return self._process.is_elsewhere

    def stop(self, why: LedgerError) -> None:
        """Refuse everything from now on, by this error or the one that it was first stopped by."""
        self._over = self._over or why

    def _lead(self, own: Ticket[Job]) -> None:
        """Commit all waiting jobs, unless another leader has taken this one; then let the next one lead."""
        batch: list[Ticket[Job]] = []
        try:
            with self._connection:
                # The batch is taken only once the connection is free: whoever queued up while the last commit was
                # being synced is in it, too. Taken before, each commit would carry one request less.
                with self._guard:
                    if own in self._waiting:
                        batch, self._waiting = self._waiting, batch
                if batch:
                    self._work(batch)
                elif not own.done:  # its leader was interrupted: no other is at work while this thread has the lock
                    own.error, own.done = _cut_short(), True
        finally:
            # The next leader is named, under the guard, before anyone is woken. The other way round a new request could
            # see no leader and lead beside it, or one that queued up just now could wait for nobody.
            with self._guard:
                following = self._waiting[:1]
                self._led = bool(following)
            # The next leader is woken first: it commits while those that were answered go on.
            for ticket in (*following, *batch):
                ticket.call()

    def _work(self, batch: list[Ticket[Job]]) -> None:
        try:
            self._must_go_on()  # it may have failed while these waited
            began = time.perf_counter()
            self._commit(batch)
            COMMITS.add(time.perf_counter() - began)
        except BaseException as error:
            # Whether it was committed is not known: no job gets a result, and every request may be repeated by its id.
            if not isinstance(error, LedgerBusy):
                self.failure = error
                self.stop(failed_before())
            for ticket in batch:
                ticket.error = error if isinstance(error, CounterpointError) else _cut_short()
            if not isinstance(error, CounterpointError):
                raise
        finally:
            for ticket in batch:
                ticket.done = True


def _cut_short() -> LedgerFailed:
    return LedgerFailed("the commit was cut short")


def failed_before() -> LedgerFailed:
    """The error of a ledger that has failed, whatever is done with it from then on."""
    return LedgerFailed(
        "this ledger has failed before, and its database was closed; open it again, as in counterpoint.open(...), in "
        "this process or another, then repeat requests by their ids"
    )


BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""The upper ends of the buckets, in seconds."""


class Durations:
    """Durations, counted by size, for the metrics of a service. Threads may add at the same time.

    >>> times = Durations()
    >>> times.add(0.004)
    >>> times.add(20)
    >>> dict(times.samples("commit_seconds"))["commit_seconds_count"]
    2
    >>> [number for name, number in times.samples("commit_seconds") if "bucket" in name][-2:]
    [1, 2]
    """

    def __init__(self) -> None:
        self._buckets = [0] * (len(BOUNDS) + 1)
        self._sum = 0.0
        self._lock = threading.Lock()

    def add(self, seconds: float) -> None:
        """Count one."""
        with self._lock:
            self._buckets[bisect_left(BOUNDS, seconds)] += 1
            self._sum += seconds

    def samples(self, name: str, labels: str = "") -> Iterator[tuple[str, float]]:
        """As Prometheus has them: how many took at most so long, the sum, and how many there were."""
        with self._lock:
            buckets, total = tuple(self._buckets), self._sum
        below, before = 0, f"{labels}," if labels else ""
        for bound, number in zip((*BOUNDS, "+Inf"), buckets, strict=True):
            below += number
            yield f'{name}_bucket{{{before}le="{bound}"}}', below
        shown = f"{{{labels}}}" if labels else ""
        yield f"{name}_sum{shown}", total
        yield f"{name}_count{shown}", below


COMMITS = Durations()
"""The transactions of all ledgers of this process; the requests that wait at the same time share one."""

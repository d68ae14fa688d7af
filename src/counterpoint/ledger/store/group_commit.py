"""Group commit: requests that wait at the same time share one transaction, without a thread of its own for it.

The first waiting request becomes the leader and commits the whole batch. It then wakes one newly queued request to lead
the next batch, and the requests that are done. So their threads go on while the next transaction is on its way to disk.

>>> def commit(batch):
...     for ticket in batch:
...         ticket.result = ticket.job.upper()
>>> GroupCommit(commit, threading.RLock()).run("a job")
'A JOB'
"""

import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, Generic, TypeVar

from counterpoint.errors import CounterpointError, LedgerBusy, LedgerError, LedgerFailed
from counterpoint.ledger.store.timing import COMMITS
from counterpoint.randomness.process import Owner

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
        """Refuse to go on in a forked process, which would share its parent's connection, or after a failure."""
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
                with self._guard:
                    if own in self._waiting:
                        batch, self._waiting = self._waiting, batch
                if batch:
                    self._work(batch)
                elif not own.done:  # its leader was interrupted: no other is at work while this thread has the lock
                    own.error, own.done = _cut_short(), True
        finally:
            with self._guard:
                following = self._waiting[:1]
                self._led = bool(following)
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

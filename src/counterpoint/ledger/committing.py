"""Group commit: requests that wait at the same time share one transaction, without a thread of its own for it.

Whoever comes first leads: it commits for all who wait, calls one of those who came meanwhile to lead next, and then
those who are done. So those go on while the next transaction is on its way to the disk. A job may have a second one
after it, for which something has to be worked out in between: what is quick is worked out by whoever led, for all in
turn, and only then is everybody called. Waking a thread costs as much as a commit of its own rows.

>>> from counterpoint.ledger.records import Head
>>> def commit(batch):
...     for ticket in batch:
...         ticket.run(Unit(None, "people", Head(0, bytes(32))))
>>> committer = Committer(commit, threading.RLock())
>>> committer.run(Job(lambda unit: unit.name, "a request"))
'people'
>>> committer.run(Job(lambda unit: unit.name, "a request", then=lambda name: Job(lambda unit: name * 2, "a request")))
'peoplepeople'
"""

import threading
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from typing import Any, NamedTuple

from counterpoint.errors import CounterpointError, LedgerBusy, LedgerError, LedgerFailed
from counterpoint.ledger.ledger import Path
from counterpoint.ledger.store import Unit
from counterpoint.randomness.process import Owner

_PATIENCE = 1.0


class Job(NamedTuple):
    """What is to be done in a transaction, and which request (None: a new one) and rows it is going to look up.

    `then` makes of the result, once it is durable, the job that comes after it (None: that was all). It is called
    by whoever led the transaction where `quick` says so of the result, else by whoever waits for the job.
    """

    run: Callable[[Unit], Any]
    request: str | None = None
    paths: tuple[Path, ...] = ()
    then: "Callable[[Any], Job | None] | None" = None
    quick: Callable[[Any], bool] = lambda result: False


class Ticket:
    """A job that waits for its turn, and what came of it."""

    __slots__ = ("_call", "_ran", "done", "error", "job", "result")

    def __init__(self, job: Job) -> None:
        self.job = job
        self._ran: Job | None = None
        self.result: Any = None
        self.error: BaseException | None = None
        self.done = False
        self._call = threading.Lock()
        self._call.acquire()

    def run(self, unit: Unit) -> None:
        """Do the job (perhaps once more); what it raises is for whoever holds the ticket, no concern of the others."""
        self.result = self.error = None
        try:
            self._ran, self.result = self.job, self.job.run(unit)
        except Exception as error:
            self.error = error

    @property
    def quick(self) -> bool:
        """Whether what comes next may be worked out by somebody else."""
        return self.job.quick(self.result)

    def follow(self) -> bool:
        """Turn to the job that comes after this one; whether there is one."""
        following = None if self.error is not None or self.job.then is None else self.job.then(self.result)
        if following is not None:
            self.job = following
        return following is not None

    def goes_on(self) -> bool:
        """Whether there is a job to be done yet; one that somebody turned to, and was interrupted, or the next one."""
        return self._ran is not self.job or self.follow()

    def follow_for_another(self) -> bool:
        """The same, by somebody else: what it raises is for whoever holds the ticket."""
        try:
            return self.follow()
        except Exception as error:
            self.error = error
            return False

    def wait(self) -> None:
        """Until it is called; or for long enough that whoever was to call must have been interrupted."""
        self._call.acquire(timeout=_PATIENCE)

    def call(self) -> None:
        """It is done, or has to see to it."""
        try:
            self._call.release()
        except RuntimeError:  # called before
            return


class Committer:
    """All who wait while one transaction is on its way share the next one.

    `commit` runs the jobs of a batch in a transaction; `desk` is the lock of the connection that it uses.
    """

    def __init__(self, commit: Callable[[list[Ticket]], None], desk: AbstractContextManager[Any]) -> None:
        self._commit = commit
        self._desk = desk
        self._waiting: list[Ticket] = []
        self._led = False
        self._guard = threading.Lock()
        self._process = Owner(
            "this ledger",
            "open it in this process, or after the fork; processes share a budget through a ledger in PostgreSQL",
        )
        self._over: LedgerError | None = None

    def run(self, job: Job) -> Any:
        """Do the job, and what comes after it, in transactions; the last result, once it is durable."""
        self.check()
        ticket = Ticket(job)
        while True:
            self._see_through(ticket)
            if ticket.error is not None:
                raise ticket.error
            if not ticket.goes_on():
                return ticket.result
            ticket.done = False

    def _see_through(self, ticket: Ticket) -> None:
        """Wait until it is done, and lead whenever it falls to this one."""
        led = self._queue([ticket])
        while not ticket.done:
            if led:
                ticket.wait()
                led = False
            else:
                led = self._lead(ticket)

    def _queue(self, tickets: Iterable[Ticket]) -> bool:
        """Let them wait for their turn; whether somebody leads by now, or whoever calls this has to."""
        with self._guard:
            self._waiting += tickets
            led, self._led = self._led, True
        return led

    def check(self) -> None:
        """Refuse to go on after a failure, or in a forked process, which would share its parent's connection."""
        self._process.check()
        self._must_go_on()

    @property
    def inherited(self) -> bool:
        """Whether this is a fork of the process that has the ledger open."""
        return self._process.is_elsewhere

    def stop(self, why: LedgerError) -> None:
        """Refuse everything from now on, by this error or the one that it was first stopped by."""
        self._over = self._over or why

    def _must_go_on(self) -> None:
        if self._over is not None:
            raise type(self._over)(*self._over.args)

    def _lead(self, own: Ticket) -> bool:
        """Commit for all who wait, unless another has done so for this one by now; whether somebody leads after it."""
        batch: list[Ticket] = []
        try:
            with self._desk:
                with self._guard:
                    if own in self._waiting:
                        batch, self._waiting = self._waiting, batch
                if batch:
                    self._work(batch)
        finally:
            led = self._hand_on(batch, own)
        return led

    def _hand_on(self, batch: list[Ticket], own: Ticket) -> bool:
        """Let the next one lead and the others go on; whether somebody leads after it."""
        try:
            return self._let_go(batch, own)
        except BaseException:  # an interruption: each sees for itself how far it is, and goes on from there
            for ticket in batch:
                ticket.done = True
                ticket.call()
            raise

    def _let_go(self, batch: list[Ticket], own: Ticket) -> bool:
        with self._guard:
            following = self._waiting[:1]
            self._led = bool(following)
        for ticket in following:
            ticket.call()
        going_on = dict.fromkeys(ticket for ticket in batch if ticket.quick and ticket.follow_for_another())
        led = not going_on or self._queue(going_on)
        for ticket in batch:
            if ticket not in going_on:
                ticket.done = True
                if ticket is not own:
                    ticket.call()
        if not led and own not in going_on:
            next(iter(going_on)).call()
        return led

    def _work(self, batch: list[Ticket]) -> None:
        try:
            self._must_go_on()
            self._commit(batch)
        except BaseException as error:
            # Whether it was committed is not known: nobody is told a result, and everybody may ask again by id.
            if not isinstance(error, LedgerBusy):
                self.stop(failed_before())
            for ticket in batch:
                ticket.error = (
                    error if isinstance(error, CounterpointError) else LedgerFailed("the commit was cut short")
                )
            if not isinstance(error, CounterpointError):
                raise


def failed_before() -> LedgerFailed:
    """The error of a ledger that has failed, whatever is done with it from then on."""
    return LedgerFailed(
        "this ledger has failed before, and its database was closed; open it again, as in counterpoint.open(...), in "
        "this process or another, then repeat requests by their ids"
    )

"""Group commit: requests that wait at the same time share one transaction, without a thread of its own for it.

Whoever comes first leads: it commits for all who wait, calls them, and calls one of those who came meanwhile to lead
next. So those who are done go on while the next transaction is on its way to the disk.

>>> from counterpoint.ledger.records import Head
>>> def commit(batch):
...     for ticket in batch:
...         ticket.run(Unit(None, "people", Head(0, bytes(32))))
>>> Committer(commit, threading.RLock()).run(lambda unit: unit.name, "a request")
'people'
"""

import os
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, Generic, TypeVar

from counterpoint.errors import CounterpointError, LedgerBusy, LedgerError, LedgerFailed
from counterpoint.ledger.ledger import Path
from counterpoint.ledger.store import Unit

T = TypeVar("T")
_PATIENCE = 1.0


class Ticket(Generic[T]):
    """A job that waits for its turn, what it is going to look up, and what came of it."""

    __slots__ = ("_call", "done", "error", "job", "paths", "request", "result")

    def __init__(self, job: Callable[[Unit], T], request: str, paths: tuple[Path, ...]) -> None:
        self.job = job
        self.request = request
        self.paths = paths
        self.result: T | None = None
        self.error: BaseException | None = None
        self.done = False
        self._call = threading.Lock()
        self._call.acquire()

    def run(self, unit: Unit) -> None:
        """Do the job; what it raises is for whoever holds the ticket, and no concern of the others."""
        try:
            self.result = self.job(unit)
        except Exception as error:
            self.error = error

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

    def __init__(self, commit: Callable[[list[Ticket[Any]]], None], desk: AbstractContextManager[Any]) -> None:
        self._commit = commit
        self._desk = desk
        self._waiting: list[Ticket[Any]] = []
        self._led = False
        self._guard = threading.Lock()
        self._home = os.getpid()
        self._broken: str | None = None

    def run(self, job: Callable[[Unit], T], request: str, *paths: Path) -> T:
        """Do the job, which is about this request and these paths, in a transaction; its result, once it is durable."""
        self.check()
        ticket = Ticket(job, request, paths)
        with self._guard:
            self._waiting.append(ticket)
            led, self._led = self._led, True
        if led:
            ticket.wait()
        if not ticket.done:
            self._lead(ticket)
        if ticket.error is not None:
            raise ticket.error
        return ticket.result  # type: ignore[return-value]  # a job without an error has a result

    def check(self) -> None:
        """Refuse to go on after a failure, or in a forked process, which would share its parent's connection."""
        if self._broken is not None:
            raise LedgerError(self._broken)
        if self.inherited:
            raise LedgerError("a ledger cannot be used in a forked process; open it there")

    @property
    def inherited(self) -> bool:
        """Whether this is a fork of the process that has the ledger open."""
        return self._home != os.getpid()

    def stop(self, why: str) -> None:
        """Refuse everything from now on."""
        self._broken = self._broken or why

    def _lead(self, ticket: Ticket[Any]) -> None:
        """Commit for all who wait, unless another has done so for this one by now."""
        batch: list[Ticket[Any]] = []
        try:
            with self._desk:
                with self._guard:
                    if ticket in self._waiting:
                        batch, self._waiting = self._waiting, batch
                if batch:
                    self._work(batch)
        finally:
            self._hand_on(batch, ticket)

    def _hand_on(self, batch: list[Ticket[Any]], own: Ticket[Any]) -> None:
        with self._guard:
            following = self._waiting[:1]
            self._led = bool(following)
        for ticket in batch:
            ticket.done = True
            if ticket is not own:
                ticket.call()
        for ticket in following:
            ticket.call()

    def _work(self, batch: list[Ticket[Any]]) -> None:
        try:
            if self._broken is not None:
                raise LedgerError(self._broken)
            self._commit(batch)
        except BaseException as error:
            # Whether it was committed is not known: nobody is told a result, and everybody may ask again by id.
            if not isinstance(error, LedgerBusy):
                self.stop("this ledger has failed before; open it again, then repeat requests by their ids")
            for ticket in batch:
                ticket.error = (
                    error if isinstance(error, CounterpointError) else LedgerFailed("the commit was cut short")
                )
            if not isinstance(error, CounterpointError):
                raise

"""Several workers under one supervisor: one that dies or hangs is replaced, and a signal ends all of them in time.

The supervisor opens nothing and serves nothing, so it is never busy, and its workers are forks of a process that has
only imported the code: a new one is there soon. A worker says each second that its event loop turns. SIGTERM and SIGINT
are passed on; what still runs `KILLED_AFTER` seconds later is killed, which loses nothing: the next start finishes what
was begun by its seed.
"""

import asyncio
import logging
import os
import signal
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing import get_context, parent_process
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any, TypeVar

from counterpoint.errors import CounterpointError, ServiceFailed
from counterpoint.wire.problems import error_of, problem

STOPPING = 6
"""Seconds that running requests have to finish once the service is stopped."""
KILLED_AFTER = 8.0
"""Seconds after a signal to stop when what still runs is killed."""
SILENT = 30.0
"""Seconds without a sign of life after which a worker that has served is replaced."""
_BEAT = 1.0
_PAUSES = (0.0, 0.5, 1.0, 2.0, 5.0)
"""Seconds before a worker is started again that never served, after so many of those in a row."""
_SIGNALS = (signal.SIGTERM, signal.SIGINT)
_log = logging.getLogger("counterpoint.service")

Job = Callable[[Connection], None]
"""What a worker runs, with the connection on which it says that it lives."""
T = TypeVar("T")


@dataclass
class _Worker:
    process: BaseProcess
    beats: Connection
    has_served: bool = False
    heard: float = 0.0


class Supervisor:
    """Runs a number of workers until a signal stops it."""

    def __init__(self, job: Job, workers: int) -> None:
        self._job, self._number = job, workers
        self._workers: list[_Worker] = []
        self._failed = 0
        self._next_start = 0.0
        self._stop = threading.Event()

    def run(self) -> None:
        """Until a signal; `ServiceFailed` if workers cannot serve at all."""
        woken, waker = socket.socketpair()
        waker.setblocking(False)
        before = {number: signal.signal(number, lambda *_: self._stop.set()) for number in _SIGNALS}
        wakeup = signal.set_wakeup_fd(waker.fileno(), warn_on_full_buffer=False)
        try:
            while not self._stop.is_set():
                self._start_missing()
                sources = [one.process.sentinel for one in self._workers] + [one.beats for one in self._workers]
                wait([woken, *sources], timeout=_BEAT / 2)
                self._listen()
                self._replace_dead()
        finally:
            self._end_all()
            signal.set_wakeup_fd(wakeup)
            for number, handler in before.items():
                signal.signal(number, handler)
            woken.close()
            waker.close()

    def _start_missing(self) -> None:
        while len(self._workers) < self._number and time.monotonic() >= self._next_start:
            beats, beating = _FORKED.Pipe(duplex=False)
            process = _FORKED.Process(target=_work, args=(self._job, beating))
            process.start()
            beating.close()
            self._workers.append(_Worker(process, beats))

    def _listen(self) -> None:
        now = time.monotonic()
        for one in self._workers:
            with suppress(EOFError, OSError):  # it is dead, or about to be, which its sentinel says
                while one.beats.poll():
                    one.beats.recv_bytes()
                    one.has_served, one.heard, self._failed = True, now, 0
            if one.has_served and now - one.heard > SILENT:
                _log.error("a worker hangs", extra={"said": {"event": "worker hangs", "pid": one.process.pid}})
                one.process.kill()

    def _replace_dead(self) -> None:
        for one in [one for one in self._workers if one.process.exitcode is not None]:
            said = {"event": "worker ended", "pid": one.process.pid, "status": one.process.exitcode}
            _log.error("a worker ended", extra={"said": said})
            self._forget(one)
            if not one.has_served and not self._stop.is_set():
                self._failed += 1
                if self._failed > len(_PAUSES):
                    raise ServiceFailed("workers exit before they can serve; see their log lines")
                self._next_start = time.monotonic() + _PAUSES[self._failed - 1]

    def _forget(self, one: _Worker) -> None:
        one.process.join()
        one.beats.close()
        self._workers.remove(one)

    def _end_all(self) -> None:
        until = time.monotonic() + KILLED_AFTER
        for one in self._workers:
            one.process.terminate()
        while (left := [one for one in self._workers if one.process.exitcode is None]) and time.monotonic() < until:
            wait([one.process.sentinel for one in left], timeout=max(0.0, until - time.monotonic()))
        for one in list(self._workers):
            if one.process.exitcode is None:
                one.process.kill()
            self._forget(one)


def in_a_fork(work: Callable[[], T]) -> T:
    """Run this in a process of its own, so that nothing it opens is inherited by the workers."""
    result, sender = _FORKED.Pipe(duplex=False)
    process = _FORKED.Process(target=_tell, args=(work, sender))
    process.start()
    sender.close()
    try:
        found, error = result.recv()
    except EOFError:
        raise ServiceFailed("the service could not be prepared; its log says why") from None
    finally:
        process.join()
        result.close()
    if error is not None:
        raise error_of(error)
    told: T = found
    return told


def _tell(work: Callable[[], Any], sender: Connection) -> None:
    said: tuple[Any, Any]
    try:
        said = work(), None
    except CounterpointError as error:
        said = None, problem(error)
    sender.send(said)


def _work(job: Job, beating: Connection) -> None:
    """In the worker: as a process that was started by itself, until its event loop has handlers of its own."""
    signal.set_wakeup_fd(-1)
    for number in _SIGNALS:
        signal.signal(number, signal.SIG_DFL)
    job(beating)


async def keep_beating(beating: Connection) -> None:
    """Send a sign of life each second, and stop this worker when its supervisor is gone."""
    supervisor = parent_process()
    assert supervisor is not None
    os.set_blocking(beating.fileno(), False)
    while os.getppid() == supervisor.pid:
        with suppress(OSError):  # a supervisor that does not listen is not waited for
            beating.send_bytes(b".")
        await asyncio.sleep(_BEAT)
    signal.raise_signal(signal.SIGTERM)


def end_in_time() -> None:
    """From a signal to stop on, this process has `KILLED_AFTER` seconds; then the kernel ends it, whatever it does."""
    if threading.current_thread() is not threading.main_thread():
        return
    for number in _SIGNALS:
        before = signal.getsignal(number)

        def stop(number: int, frame: Any, before: Any = before) -> None:
            signal.setitimer(signal.ITIMER_REAL, KILLED_AFTER)
            if callable(before):
                before(number, frame)

        if callable(before):
            signal.signal(number, stop)


_FORKED = get_context("fork")

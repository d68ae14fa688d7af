"""Whether the service is ready, said within a second, whatever hangs.

A database that does not answer holds the thread that asks it, perhaps for minutes. So one thread asks, apart from those
of handlers, and callers wait for it for a moment. While it has not come back, callers wait for the same answer.

>>> import asyncio
>>> asyncio.run(Readiness(lambda: None).why_not()) is None
True
"""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future

from counterpoint.errors import CounterpointError, ServiceFailed

PATIENCE = 0.8
"""Seconds that a caller waits."""


class Readiness:
    """Asks everything that the service needs. Only the event loop uses it."""

    def __init__(self, ask: Callable[[], None]) -> None:
        self._ask = ask
        self._asking: Future[CounterpointError | None] | None = None

    async def why_not(self) -> CounterpointError | None:
        """None if everything has answered; else the first error."""
        if self._asking is None or self._asking.done():
            self._asking = self._started()
        try:
            async with asyncio.timeout(PATIENCE):
                return await asyncio.shield(asyncio.wrap_future(self._asking))
        except TimeoutError:
            return ServiceFailed("a ledger or a data set does not answer in time")

    def _started(self) -> "Future[CounterpointError | None]":
        asking: Future[CounterpointError | None] = Future()

        def run() -> None:
            try:
                self._ask()
                asking.set_result(None)
            except CounterpointError as error:
                asking.set_result(error)
            except BaseException as error:  # a fault of ours, which the application logs
                asking.set_exception(error)

        # a daemon, so that a database that hangs does not keep the process from ending
        threading.Thread(target=run, name="readiness", daemon=True).start()
        return asking

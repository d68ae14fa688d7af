"""Progress of work that takes more than two seconds: one line in a terminal or a notebook, and nothing elsewhere.

A terminal is standard error, if it is one; a notebook shows the line in the cell, without widgets. Work that ends
sooner shows nothing, and so do scripts, pipes and tests; `COUNTERPOINT_PROGRESS=0` switches it off.

**Who may see it.** The line goes to the screen of the process that does the work, never into a record or an answer. It
has the time that has passed, which this process can measure anyway, and counts only what is public: entries of a
ledger, games, items of a stream. While a custodian binds a table it counts nothing, because the number of rows is
private. An ask shows no progress: how long a query runs may depend on the data.

>>> with working("checking the ledger", total=400) as work:
...     for entry in range(400):
...         work.done()
>>> work.line(seconds=4)
'checking the ledger: 400 of 400, 100 %, 4 s'
"""

import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import copy_context
from typing import Protocol

AFTER = 2.0
"""How many seconds pass before anything is shown."""

_EVERY = 0.5
_SHOWN = threading.Lock()
"""Held by the work that is shown: work inside it stays silent."""


class Screen(Protocol):
    """Where a line is shown, replaced by the next, and removed."""

    def show(self, line: str) -> None:
        """Replace the line."""

    def clear(self) -> None:
        """Remove it."""


class Work:
    """A long piece of work: its name, the steps done, and the total where that is known."""

    def __init__(self, what: str, total: int | None = None) -> None:
        self.what = what
        self.total = total
        self.steps = 0

    def done(self, steps: int = 1) -> None:
        """Count steps."""
        self.steps += steps

    def line(self, seconds: float) -> str:
        """The line after `seconds` seconds.

        >>> Work("binding the table").line(3.2), Work("feeding", 10).line(65)
        ('binding the table: 3 s', 'feeding: 0 of 10, 0 %, 1 min 5 s')
        """
        counted = f"{self.steps:,}" if self.steps or self.total else ""
        if self.total:
            counted += f" of {self.total:,}, {min(100, 100 * self.steps // self.total)} %"
        return f"{self.what}: {', '.join(filter(None, [counted, _time(int(seconds))]))}"


@contextmanager
def working(what: str, total: int | None = None, *, shown: bool = True) -> Iterator[Work]:
    """Show how far the work in this block has come, once it has taken two seconds."""
    work = Work(what, total)
    screen = _screen() if shown else None
    if screen is None or not _SHOWN.acquire(blocking=False):
        yield work
        return
    try:
        with shown_on(screen, work):
            yield work
    finally:
        _SHOWN.release()


@contextmanager
def shown_on(screen: Screen, work: Work, after: float = AFTER, every: float = _EVERY) -> Iterator[None]:
    """Keep a line on a screen up to date while the block runs; from a thread, as the block may be one long call."""
    over, began = threading.Event(), time.monotonic()

    def keep() -> None:
        wait, is_shown = after, False
        while not over.wait(wait):
            screen.show(work.line(time.monotonic() - began))
            wait, is_shown = every, True
        if is_shown:
            screen.clear()

    # a notebook finds the cell that it writes to in the context of the calling thread
    thread = threading.Thread(target=copy_context().run, args=(keep,), name="counterpoint progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def _screen() -> Screen | None:
    """The notebook or the terminal that this process writes to, if any."""
    if os.environ.get("COUNTERPOINT_PROGRESS") == "0":
        return None
    kernel = sys.modules.get("ipykernel.kernelapp")
    if kernel is not None and kernel.IPKernelApp.initialized():
        return NotebookScreen()
    if sys.stderr is not None and sys.stderr.isatty() and os.environ.get("TERM") != "dumb":
        return TerminalScreen()
    return None


class TerminalScreen:
    """One line of standard error, which is written over and erased."""

    def show(self, line: str) -> None:
        """Write over it."""
        columns = os.get_terminal_size(sys.stderr.fileno()).columns or 80
        sys.stderr.write(f"\r\x1b[K{line[: columns - 1]}")
        sys.stderr.flush()

    def clear(self) -> None:
        """Erase it."""
        sys.stderr.write("\r\x1b[K")
        sys.stderr.flush()


class NotebookScreen:
    """An output of the cell, which is replaced in place."""

    def __init__(self) -> None:
        self._name: str | None = None

    def show(self, line: str) -> None:
        """Show it, or replace what is shown."""
        from IPython.display import display, update_display  # noqa: PLC0415 - in notebooks alone

        if self._name is None:
            self._name = f"counterpoint-{id(self)}-{time.monotonic_ns()}"
            display({"text/plain": line}, raw=True, display_id=self._name)  # type: ignore[no-untyped-call]
        else:
            update_display({"text/plain": line}, raw=True, display_id=self._name)  # type: ignore[no-untyped-call]

    def clear(self) -> None:
        """Leave an empty output."""
        self.show("")


def _time(seconds: int) -> str:
    minutes, rest = divmod(seconds, 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"

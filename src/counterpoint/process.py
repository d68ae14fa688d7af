"""Which process this is: what must not be used twice (a secret, a budget, a connection) belongs to one process.

A fork is detected even if Python did not make it (a server written in C may fork), at every check. An ask makes eight
checks, so that a check should not be a system call, as `os.getpid` is (a few percent of an ask's time). On Linux the
kernel clears a page of memory in every child, and a check reads a byte of it.

>>> current_process() is current_process()
True
>>> Owner("this table", "bind it after the fork").check()
"""

import ctypes
import mmap
import os
import threading
from typing import Protocol
from weakref import WeakKeyDictionary, finalize

from counterpoint.errors import ForkedProcess

_WIPE_ON_FORK = 18
"""Linux's MADV_WIPEONFORK, which `mmap` has no name for."""
_NO_ADVICE = 2**16


class Process:
    """One process; `turn` is a lock of its own, which no thread of a parent can be holding."""

    __slots__ = ("turn",)

    def __init__(self) -> None:
        self.turn = threading.Lock()


class _ByPage:
    """The current process: a new object as soon as a mark is gone from a page that the kernel clears in every child."""

    def __init__(self) -> None:
        """Raises `OSError` or the like where the kernel does not clear pages, or accepts any advice and ignores it."""
        self._page = mmap.mmap(-1, mmap.PAGESIZE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        self._page.madvise(_WIPE_ON_FORK)
        try:
            self._page.madvise(_NO_ADVICE)
        except OSError:
            self.enter()
        else:
            raise OSError("this kernel accepts any advice, so that accepting ours proves nothing")

    def enter(self) -> None:
        self._process = Process()
        self._page[0] = 1

    def process(self) -> Process:
        if self._page[0] != 1:
            self.enter()
        return self._process


class _ByNumber:
    """The same by the process id. Ids come again after many forks; `register_at_fork` notices those of Python."""

    def __init__(self) -> None:
        self.enter()

    def enter(self) -> None:
        self._process = Process()
        self._number = os.getpid()

    def process(self) -> Process:
        if os.getpid() != self._number:
            self.enter()
        return self._process


def _marked() -> _ByPage | _ByNumber:
    try:
        return _ByPage()
    except (OSError, ValueError, AttributeError):  # another system, or an old kernel
        return _ByNumber()


_current = _marked()
if hasattr(os, "register_at_fork"):  # where there is no fork, there is nothing to notice
    os.register_at_fork(after_in_child=_current.enter)

current_process = _current.process
"""The process that calls this: the same object for as long as it is the same process."""


class Owner:
    """The process that made something, the only one that may use it; in a fork of that process `check` refuses.

    `what` and `remedy` say what it is and what to do instead.
    """

    __slots__ = ("_process", "_remedy", "_what")

    def __init__(self, what: str, remedy: str) -> None:
        self._what = what
        self._remedy = remedy
        self._process = current_process()

    @property
    def is_elsewhere(self) -> bool:
        """Whether this is a fork of the owner."""
        return self._process is not current_process()

    def check(self) -> None:
        """`ForkedProcess` in a fork of the owner."""
        if self._process is not current_process():
            raise ForkedProcess(
                f"{self._what} belongs to the process that opened it, and this process was forked from that one: "
                f"{self._remedy}"
            )


class _Closable(Protocol):
    """What is closed once, such as a connection."""

    def close(self) -> None: ...


def close_in_this_process(holder: object, connection: _Closable) -> None:
    """Close a connection when its holder is gone, except in a fork of this process: there it is the parent's."""
    finalize(holder, _close_in, os.getpid(), connection)


def _close_in(process: int, connection: _Closable) -> None:
    if os.getpid() == process:
        connection.close()


_holders: WeakKeyDictionary[object, tuple[str, ...]] = WeakKeyDictionary()


def leave_to_parent(holder: object, *names: str) -> None:
    """In a forked child, never destroy what the holder has under these names: only this process may close it.

    A destructor that runs in the child, if only because the child exits, would close what the parent still uses (the
    journal that it is writing), or wait for threads that the child does not have.
    """
    _holders[holder] = names


def _leave() -> None:
    for holder, names in list(_holders.items()):
        for name in names:
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(getattr(holder, name)))


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_leave)

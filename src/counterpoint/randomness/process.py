"""Which process this is: what must not be used twice (a secret, a budget, a connection) belongs to one process.

A fork is noticed even if Python is not told of it (a server may fork by itself), and at every look. An ask looks eight
times, so a look should not be a call of the system, as asking for the process's number is (a few hundredths of the time
of an ask): on Linux the kernel empties a page of memory in every child, and a look is a read of it.

>>> here() is here()
True
>>> Owner("this table", "bind it after the fork").check()
"""

import ctypes
import mmap
import os
import threading
from weakref import WeakKeyDictionary

from counterpoint.errors import ForkedProcess

_WIPE_ON_FORK = 18
"""Linux's MADV_WIPEONFORK, which `mmap` has no name for."""
_NO_ADVICE = 2**16


class _Page:
    """A mark on a page that the kernel empties in every child."""

    def __init__(self) -> None:
        """`OSError` or the like where there is no such thing, or where any advice is taken and none heeded."""
        self._page = mmap.mmap(-1, mmap.PAGESIZE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        self._page.madvise(_WIPE_ON_FORK)
        try:
            self._page.madvise(_NO_ADVICE)
        except OSError:
            return
        raise OSError("every advice is taken here")

    def leave(self) -> None:
        self._page[0] = 1

    def is_here(self) -> bool:
        return self._page[0] == 1


class _Number:
    """The number of the process, which comes again after many forks: of those Python has to be told."""

    def __init__(self) -> None:
        self._number = 0

    def leave(self) -> None:
        self._number = os.getpid()

    def is_here(self) -> bool:
        return os.getpid() == self._number


def _marked() -> _Page | _Number:
    try:
        return _Page()
    except (OSError, ValueError, AttributeError):  # another system, or an old kernel
        return _Number()


class Process:
    """One process; `turn` is a lock of its own, which no thread of a parent can be holding."""

    __slots__ = ("turn",)

    def __init__(self) -> None:
        self.turn = threading.Lock()


class _Home:
    """The process as long as the mark is found, then another one."""

    def __init__(self, mark: _Page | _Number) -> None:
        self._mark = mark
        self.enter()

    def enter(self) -> None:
        self._process = Process()
        self._mark.leave()

    def here(self) -> Process:
        if not self._mark.is_here():
            self.enter()
        return self._process


_home = _Home(_marked())
if hasattr(os, "register_at_fork"):  # where there is no fork, there is nothing to notice
    os.register_at_fork(after_in_child=_home.enter)


def here() -> Process:
    """The process that asks: the same object for as long as it is the same process."""
    return _home.here()


class Owner:
    """The process that made something, the only one that may use it; in a fork of that process `check` refuses.

    `what` and `remedy` say what it is and what to do instead.
    """

    __slots__ = ("_process", "_remedy", "_what")

    def __init__(self, what: str, remedy: str) -> None:
        self._what = what
        self._remedy = remedy
        self._process = here()

    @property
    def is_elsewhere(self) -> bool:
        """Whether this is a fork of the owner."""
        return self._process is not here()

    def check(self) -> None:
        """`ForkedProcess` in a fork of the owner."""
        if self._process is not here():
            raise ForkedProcess(
                f"{self._what} belongs to the process that opened it, which goes on with it, and this process was "
                f"forked from that one: {self._remedy}"
            )


_holders: WeakKeyDictionary[object, tuple[str, ...]] = WeakKeyDictionary()


def leave_to_parent(holder: object, *names: str) -> None:
    """In a forked child, never destroy what the holder then has under these names: to end it is up to this process.

    A destructor there, if only because the child comes to its end, would close what is the parent's (the journal that
    it is writing), or wait for threads that the child does not have.
    """
    _holders[holder] = names


def _leave() -> None:
    for holder, names in list(_holders.items()):
        for name in names:
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(getattr(holder, name)))


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_leave)

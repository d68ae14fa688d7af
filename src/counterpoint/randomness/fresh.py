"""Fresh random bytes of the operating system, for seeds, nonces and ids, fetched for several of them at a time.

`os.urandom` lets other threads in at every call. A thread that serves many would stand in line for the interpreter
again after each of the five that an ask takes, and spend more time there than on the ask. Nothing is handed out twice:
not to two threads, and not in a forked process, which fetches its own.

>>> len(fresh(12)), fresh(32) != fresh(32)
(12, True)
"""

import os

from counterpoint.randomness.process import Process, here

MOST = 32
"""How many bytes one call may take."""
_TOGETHER = 64


class _Pool:
    """Bytes that nobody has taken yet, and the process that fetched them."""

    __slots__ = ("_fetched",)

    def __init__(self) -> None:
        self._fetched: tuple[Process, list[bytes]] = (here(), [])

    def take(self) -> bytes:
        while True:
            home, chunks = self._fetched
            if home is here():
                try:
                    return chunks.pop()  # one step, whoever else takes one
                except IndexError:  # that was the last
                    pass
            octets = os.urandom(MOST * _TOGETHER)
            self._fetched = here(), [octets[start : start + MOST] for start in range(0, len(octets), MOST)]


_pool = _Pool()


def fresh(count: int) -> bytes:
    """So many bytes, at most `MOST`, that nobody else has or gets."""
    assert count <= MOST
    return _pool.take()[:count]

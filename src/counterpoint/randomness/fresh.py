"""Fresh random bytes of the operating system, for seeds, nonces and ids, fetched for several of them at a time.

`os.urandom` releases the interpreter lock at every call. An ask makes five such calls, and with many threads it would
wait longer for the lock than it computes. No byte is handed out twice: not to two threads, and not to a forked process,
which fetches its own.

>>> len(fresh(12)), fresh(32) != fresh(32)
(12, True)
"""

import os

from counterpoint.randomness.process import Process, current_process

MOST = 32
"""How many bytes one call may take."""
_TOGETHER = 64


class _Pool:
    """Bytes that have not been handed out yet, and the process that fetched them."""

    __slots__ = ("_fetched",)

    def __init__(self) -> None:
        self._fetched: tuple[Process, list[bytes]] = (current_process(), [])

    def take(self) -> bytes:
        while True:
            owner, chunks = self._fetched
            if owner is current_process():
                try:
                    return chunks.pop()  # one step of the interpreter, so that no two threads get the same chunk
                except IndexError:  # that was the last
                    pass
            octets = os.urandom(MOST * _TOGETHER)
            self._fetched = current_process(), [octets[start : start + MOST] for start in range(0, len(octets), MOST)]


_pool = _Pool()


def fresh(count: int) -> bytes:
    """`count` bytes, at most `MOST`, that are handed out to no other caller."""
    assert count <= MOST
    return _pool.take()[:count]

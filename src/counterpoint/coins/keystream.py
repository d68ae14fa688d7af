"""A ChaCha20 keystream for the noise of mechanisms, and fresh bytes of the operating system for seeds, nonces and ids.

The randomness of every draw enters here, and only a `Keystream` holds its key. The stream is keyed by the operating
system or, for replay, by a 32-byte seed. No two readers ever receive the same bytes: threads take turns, a forked child
of an unseeded stream takes a new key, and that of a seeded one is refused, as it would repeat its parent's noise with
the old key and replay nothing with a new one. A key serves at most `SPAN` bytes, far below the 2^38 where ChaCha20's
block counter wraps (RFC 8439, 2.3).

>>> Keystream(bytes(32)).octets(8).hex()
'76b8e0ada0f13d90'

`fresh` fetches the bytes of several ids at a time. `os.urandom` releases the interpreter lock at every call. An ask
makes five such calls, and with many threads it would wait longer for the lock than it computes. No byte is handed out
twice: not to two threads, and not to a forked process, which fetches its own.

>>> len(fresh(12)), fresh(32) != fresh(32)
(12, True)
"""

import os
import threading
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from counterpoint.errors import NotAllowed
from counterpoint.process import Process, current_process

if TYPE_CHECKING:
    from collections.abc import Callable

    from cryptography.hazmat.primitives.ciphers import CipherContext

KEY_BYTES = 32
SPAN = 2**30
_ZEROS = bytes(2**20)


class Keystream:
    """Random bytes, words and integers, each handed out once.

    >>> Keystream(bytes(32)).bits(4) in range(16)
    True
    """

    __slots__ = ("_cipher", "_left", "_lock", "_owner", "_span", "seeded")

    def __init__(self, seed: bytes | None = None, span: int = SPAN) -> None:
        self.seeded = seed is not None
        self._span = span
        self._own_by_this_process()
        self._take_key(os.urandom(KEY_BYTES) if seed is None else seed)

    def octets(self, count: int) -> bytes:
        """The next `count` bytes."""
        # before the lock: in a forked child a thread of the parent may have held it, and none is left to release it
        if self._owner is not current_process():
            self._leave_parent()
        with self._lock:
            if count > self._left:
                self._take_key(self._next_key())
            self._left -= count
            return self._cipher.update(_zeros(count))

    def words(self, count: int, width: int) -> NDArray[Any]:
        """The next `count` words of `width` bits, at most 64, in the narrowest type that holds them.

        >>> Keystream(bytes(32)).words(3, 16)
        array([47222, 44512, 61856], dtype=uint16)
        """
        kind = word_type(width)
        words = np.frombuffer(self.octets(kind.itemsize * count), dtype=kind)
        spare = 8 * kind.itemsize - width
        return words >> spare if spare else words

    def bits(self, width: int) -> int:
        """The next integer of `width` bits, however many those are.

        >>> Keystream(bytes(32)).bits(100) < 2**100
        True
        """
        octets = -(-width // 8)
        return int.from_bytes(self.octets(octets), "little") >> (8 * octets - width)

    def _next_key(self) -> bytes:
        """A seeded stream draws its next key from itself, so that a replay takes the same turn."""
        return self._cipher.update(_zeros(KEY_BYTES)) if self.seeded else os.urandom(KEY_BYTES)

    def _take_key(self, key: bytes) -> None:
        self._cipher = _keyed()(key)
        self._left = self._span

    def _own_by_this_process(self) -> None:
        self._lock = threading.Lock()
        self._owner = current_process()

    def _leave_parent(self) -> None:
        """Begin anew in a forked child; the lock too, which a thread of the parent may have held."""
        if self.seeded:
            raise NotAllowed(
                "seeded coins cannot be used in a forked process, where they would repeat their parent's "
                "noise; make them in the process that is to use them, or use unseeded coins"
            )
        with current_process().turn:
            if self._owner is not current_process():
                self._take_key(os.urandom(KEY_BYTES))
                self._own_by_this_process()


@cache
def _keyed() -> "Callable[[bytes], CipherContext]":
    # here, because `import counterpoint` should not wait for a cipher that is not used yet
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms  # noqa: PLC0415

    return lambda key: Cipher(algorithms.ChaCha20(key, bytes(16)), mode=None).encryptor()


@lru_cache
def word_type(width: int) -> np.dtype[Any]:
    """The narrowest unsigned type of `width` bits, with its bytes in the same order on every machine.

    >>> word_type(12)
    dtype('uint16')
    """
    return np.dtype(next(kind for kind in ("<u1", "<u2", "<u4", "<u8") if 8 * int(kind[2]) >= width))


def _zeros(count: int) -> bytes | memoryview:
    return memoryview(_ZEROS)[:count] if count <= len(_ZEROS) else bytes(count)


MOST = 32
"""How many bytes one call may take."""
_TOGETHER = 64


class _Pool:
    """Bytes that have not been handed out yet, and the process that fetched them."""

    __slots__ = ("_fetched",)

    def __init__(self) -> None:
        self._fetched: tuple[Process, list[bytes]] = (current_process(), [])

    def fresh(self, count: int) -> bytes:
        """`count` bytes, at most `MOST`, that are handed out to no other caller."""
        assert count <= MOST
        while True:
            owner, chunks = self._fetched
            if owner is current_process():
                try:
                    return chunks.pop()[
                        :count
                    ]  # one step of the interpreter, so that no two threads get the same chunk
                except IndexError:  # that was the last
                    pass
            octets = os.urandom(MOST * _TOGETHER)
            self._fetched = current_process(), [octets[start : start + MOST] for start in range(0, len(octets), MOST)]


fresh = _Pool().fresh
"""Bytes for an id, a nonce or a seed, from the pool of this process."""

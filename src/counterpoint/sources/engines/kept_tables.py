"""Tables that an engine computed from others and keeps while there is room: the latest few.

A table that was dropped is computed again when it is needed, with the same rows. One that a statement reads is not
dropped meanwhile.

>>> made = []
>>> tables = KeptTables(lambda name, query: made.append(name), lambda name: made.remove(name), most=1)
>>> for name in ("a", "b"):
...     with tables.using(name, "SELECT 1"):
...         pass
>>> made
['b']
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock


class KeptTables:
    """The latest `most` tables, and those that are in use."""

    __slots__ = ("_create", "_drop", "_lock", "_most", "_readers")

    def __init__(self, create: Callable[[str, str], None], drop: Callable[[str], None], most: int) -> None:
        self._create, self._drop, self._most = create, drop, most
        self._lock = Lock()
        self._readers: dict[str, int] = {}  # the least recently used first

    @contextmanager
    def using(self, name: str, query: str) -> Iterator[None]:
        """The table of this name is there until the end, with the rows of the query."""
        with self._lock:
            if name not in self._readers:
                self._create(name, query)
            self._readers[name] = self._readers.pop(name, 0) + 1
        try:
            yield
        finally:
            with self._lock:
                self._readers[name] -= 1
                self._drop_oldest()

    def _drop_oldest(self) -> None:
        idle = [name for name, readers in self._readers.items() if readers == 0]
        for name in idle[: max(0, len(self._readers) - self._most)]:
            del self._readers[name]
            self._drop(name)

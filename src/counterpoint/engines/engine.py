"""What an engine is: it takes data once, stores their rows, and runs the statements that `queries` emits.

An offer is data that has not been read yet, with its public schema; `take` materialises the rows once and returns the
engine that holds them. Types have DuckDB's names on every engine (BIGINT, DOUBLE, VARCHAR). Several threads may use an
engine at once. An engine's own message may quote the data, and whether it fails may depend on them: so every failure is
`DataFailed`, whose text is constant, and `queries/fallback.py` then computes the answer on a second path. Code raises
`DataFailed` after leaving the handler of the engine's error, which would otherwise be printed as its context.

>>> failed(ValueError("income 4217339 is too large")).reason
'ValueError'
"""

import os
import re
import shutil
import tempfile
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from threading import Lock
from typing import Any, NamedTuple, Protocol

from counterpoint.engines.dialect import Dialect
from counterpoint.errors import DataFailed, DataLost, InvalidParameter, NotAllowed, shown


class SqlEngine(Protocol):
    """Stored rows, and the SQL engine that reads them."""

    @property
    def dialect(self) -> Dialect:
        """The engine's SQL dialect."""

    @property
    def version(self) -> str:
        """What its answers depend on beside the statements: the version of the software, and where it runs."""

    def run(self, sql: str) -> list[tuple[Any, ...]]:
        """The rows that a statement returns, or `DataFailed`; `DataLost` once the connection was lost."""

    def scan(self, sql: str) -> Generator[tuple[Any, ...]]:
        """The same rows, a few at a time, computed as plainly as the engine can: the second path (`fallback`)."""

    def create(self, name: str, query: str) -> None:
        """Materialise a query under this name, unless the name exists."""

    def drop(self, name: str) -> None:
        """Delete the rows materialised under this name."""

    @property
    def closed(self) -> bool:
        """Whether `close` has been called."""

    @property
    def is_lost(self) -> bool:
        """Whether the connection to the rows was lost, so that nothing will be answered any more."""

    def close(self) -> None:
        """Delete every row and answer nothing from now on. A second call does nothing."""


class BindOptions(NamedTuple):
    """How data are to be bound: the table of a database, a limit on the engine's memory, the columns of the unit."""

    relation: str | None = None
    memory: str | None = None
    """As `memory_limit` returns it."""
    units: Sequence[str] = ()
    """Objects in these columns are read as the keys of units."""

    def check_no_relation(self) -> None:
        """`InvalidParameter` if a relation was named, for an engine that needs none."""
        if self.relation is not None:
            raise InvalidParameter(
                "relation names a table of a database, so data must be a postgresql:// URL: leave out relation, or "
                "give one"
            )

    def check_no_memory(self, engine: str) -> None:
        """`InvalidParameter` if a memory was stated, for an engine that has settings of its own."""
        if self.memory is not None:
            raise InvalidParameter(
                f"memory limits the embedded engine, and {engine} holds this data: leave out memory, and limit "
                f"{engine} by its own settings"
            )


class Offer(Protocol):
    """Data that an engine can read under the name `given`, until it is taken."""

    kinds: dict[str, str]
    """The public schema: the type of each column, by DuckDB's name and without parameters."""

    @property
    def dialect(self) -> Dialect:
        """The engine's SQL dialect."""

    def take(self, query: str, name: str) -> SqlEngine:
        """Materialise a query over `given` and release the data."""

    def close(self) -> None:
        """Release everything, also in an engine that took the data."""


def failed(error: BaseException) -> DataFailed:
    """What is raised in the place of an engine's error: its type alone is kept, for the custodian."""
    return DataFailed(type(error).__name__)


def lost() -> DataLost:
    """The constant refusal from when the connection to the rows was lost."""
    return DataLost("the connection to the data was lost: bind the data again, and repeat the request by its id")


def closed() -> NotAllowed:
    """The refusal of a table that was closed."""
    return NotAllowed("this table has been closed and its rows were deleted: bind the data again to ask more of it")


def unreadable(column: str | None = None) -> InvalidParameter:
    """The constant refusal for every failure while a table is bound; `column` is one whose type cannot be read.

    >>> str(unreadable("'x' is of type halffloat"))
    "the data could not be read as a table: column 'x' is of type halffloat; convert it, or leave it out"
    """
    why = "" if column is None else f": column {column}; convert it, or leave it out"
    return InvalidParameter(f"the data could not be read as a table{why}")


def unreadable_within(memory: str) -> InvalidParameter:
    """The same for a table that was to be bound within a stated memory.

    >>> str(unreadable_within("2GB"))
    'the data could not be read as a table within memory=2GB; give it more, if it can be read otherwise'
    """
    return InvalidParameter(
        f"the data could not be read as a table within memory={memory}; give it more, if it can be read otherwise"
    )


class KeptTables:
    """Tables that an engine computed from others: the latest `most`, and those that are in use.

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


_MEMORY = re.compile(r"([0-9]{1,9}(?:[.][0-9]{1,3})?) ?(MB|GB|TB|MiB|GiB|TiB)")
_BYTES = {"MB": 10**6, "GB": 10**9, "TB": 10**12, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}
_LEAST = 10**8
"""With less, the engine cannot hold the blocks that it works on."""


def memory_limit(given: object) -> str:
    """A limit on memory as the engine reads it, or `InvalidParameter`.

    >>> memory_limit("2GB"), memory_limit("512 MiB")
    ('2GB', '512 MiB')
    >>> memory_limit("2")
    Traceback (most recent call last):
    ...
    counterpoint.errors.InvalidParameter: memory is a text such as '2GB', of at least 100MB, not '2'
    """
    read = _MEMORY.fullmatch(given) if isinstance(given, str) else None
    if read is None or float(read[1]) * _BYTES[read[2]] < _LEAST:
        raise InvalidParameter(f"memory is a text such as '2GB', of at least 100MB, not {shown(given)}")
    return read[0]


class PrivateFolder:
    """A folder for rows on disk, and for what the engine spills, that only this user may enter.

    It lies in the system's temporary directory (`TMPDIR`). Closing the table removes it, and so does the end of the
    process; a process that is killed leaves it behind. The rows in it are not encrypted: keep that directory on an
    encrypted disk.
    """

    __slots__ = ("_process_id", "path")

    def __init__(self) -> None:
        self.path = tempfile.mkdtemp(prefix="counterpoint-rows-")  # of mode 0700
        self._process_id = os.getpid()

    def remove(self) -> None:
        """Delete it with all that is in it; a fork leaves its parent's folder alone."""
        if self._process_id == os.getpid():
            shutil.rmtree(self.path, ignore_errors=True)

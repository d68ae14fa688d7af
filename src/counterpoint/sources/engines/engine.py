"""The interface between a table and the engine that stores its rows and runs the emitted SQL.

An offer is data that has not been read yet, with its public schema; `take` materialises the rows once and returns the
engine that holds them. Types have DuckDB's names on every engine (BIGINT, DOUBLE, VARCHAR). Several threads may use an
engine at once. An engine's own message may quote the data, and whether it fails may depend on them: so every failure is
`DataFailed`, whose text is constant, and `answering` decides what becomes of it. Code raises it after leaving the
handler of the engine's error: as the context of the refusal, the engine's error would be printed with it.

>>> failed(ValueError("income 4217339 is too large")).reason
'ValueError'
"""

from collections.abc import Generator
from typing import Any, Protocol

from counterpoint.errors import DataFailed, DataLost, InvalidParameter, NotAllowed
from counterpoint.sources.engines.dialects import Dialect


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
        """The same rows, a few at a time, computed as plainly as the engine can: the second path (`answering`)."""

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

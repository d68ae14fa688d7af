"""What a table needs of an engine: a place for stored rows that runs what the emitter writes.

An offer holds data that has not been read yet, with its public schema; taking it materialises the rows once and gives
the engine that holds them. Types go by DuckDB's names whatever the engine (BIGINT, DOUBLE, VARCHAR). An engine may be
asked from several threads; whatever goes wrong in it is one constant refusal, since an engine's own words may quote
the data. A refusal is raised only after the engine's error has been let go of (`suppress`, then raise): even as the
context of another error, it would be shown by whatever prints whole chains.

>>> str(refused())
'the engine could not answer this request'
"""

from typing import Any, Protocol

from counterpoint.errors import InvalidParameter, InvalidRequest, NotAllowed
from counterpoint.sources.engines.dialects import Dialect


class Engine(Protocol):
    """A place of stored rows."""

    @property
    def dialect(self) -> Dialect:
        """What it speaks."""

    def run(self, sql: str) -> list[tuple[Any, ...]]:
        """The rows that a statement returns, or the constant refusal."""

    def create(self, name: str, query: str) -> None:
        """Materialise a query, unless that has been done under this name."""

    def drop(self, name: str) -> None:
        """Forget what was materialised under a name."""

    @property
    def closed(self) -> bool:
        """Whether `close` has been called."""

    def close(self) -> None:
        """Forget every row, and answer nothing any more; a second time, nothing happens."""


class Offer(Protocol):
    """Data on offer under the name `given`, until it is taken."""

    kinds: dict[str, str]
    """The public schema: the type of each column, by DuckDB's name and without parameters."""

    @property
    def dialect(self) -> Dialect:
        """What the engine will speak."""

    def take(self, query: str, name: str) -> Engine:
        """Materialise a query over `given` and let go of the data."""

    def close(self) -> None:
        """Give up: leave nothing behind, here or in an engine that took the data."""


def refused() -> InvalidRequest:
    """The one refusal for whatever goes wrong while a request is answered."""
    return InvalidRequest("the engine could not answer this request")


def closed() -> NotAllowed:
    """The refusal of a table that was closed."""
    return NotAllowed("this table has been closed: its rows are gone; bind the data again to ask more of it")


def unreadable(column: str | None = None) -> InvalidParameter:
    """The one refusal for whatever goes wrong while a table is bound; `column` is one whose type cannot be read.

    >>> str(unreadable("'x' is of type halffloat"))
    "the data could not be read as a table: column 'x' is of type halffloat; convert it, or leave it out"
    """
    why = "" if column is None else f": column {column}; convert it, or leave it out"
    return InvalidParameter(f"the data could not be read as a table{why}")

"""What a feed appends to, and the one loop that appends batches under ids that say how far the feed has come.

A feed delivers batches in order. The id of each append is the name of the feed and the position that the batch reaches:
a number of items, the key of a row, the number of a batch. After a crash the newest of these ids, which a durable
ledger stores with the items in one transaction, is where the feed resumes: a batch whose append was committed is not
delivered again, and one whose append was not is delivered whole. Names, positions and the number of items in a batch
are public; nothing else decides how many items arrive.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol

from counterpoint.errors import InvalidParameter, RequestConflict, shown
from counterpoint.pictures.progress import working
from counterpoint.sources.declaring.columns import is_readable
from counterpoint.sources.declaring.declaration import Declaration
from counterpoint.sources.engines.dialects import Dialect
from counterpoint.sources.streams.ids import FeedStep
from counterpoint.sources.tables import loading
from counterpoint.sources.tables.owners import key_of

_LONGEST_NAME = 150
"""A position has room beside the name in an id."""

StoredRecord = tuple[Any, ...]
"""A record in stored form, as `Target.conversion` returns it."""


class Target(Protocol):
    """Data that batches can be appended to under ids: a stream, or a live table, into which rows are put."""

    __slots__ = ()

    def conversion(self, kinds: dict[str, str], given: str, dialect: Dialect) -> str:
        """The query that converts rows to stored form, refused by the schema alone; `InvalidRequest` if the items are
        not records.
        """

    def position(self, feed: str) -> str | None:
        """How far a feed has come; None if nothing of it has arrived."""

    def receive(self, values: Sequence[object], step: FeedStep) -> None:
        """Append a batch of items as they were given: all of them, or none if one has a wrong shape."""

    def receive_stored(self, rows: Sequence[StoredRecord], step: FeedStep) -> None:
        """Append a batch of records in stored form."""


def deliver(
    name: str,
    follows: str | None,
    batches: Iterable[tuple[Sequence[Any], str]],
    receive: Callable[[Sequence[Any], FeedStep], None],
) -> int:
    """Append batches with their positions, one after the other; how many items that were."""
    with working(f"feeding {name!r}") as work:
        for batch, position in batches:
            receive(batch, FeedStep(name, position, follows))
            work.done(len(batch))
            follows = position
    return work.steps


def checked_name(name: object) -> str:
    """The name of a feed, or `InvalidParameter`.

    >>> checked_name(None)
    Traceback (most recent call last):
    ...
    counterpoint.errors.InvalidParameter: a feed needs a name of 1 to 150 characters, such as name='visits.csv', not ...
    """
    if isinstance(name, str) and 0 < len(name) <= _LONGEST_NAME and is_readable(name):
        return str.__str__(name)
    raise InvalidParameter(
        f"a feed needs a name of 1 to {_LONGEST_NAME} characters, such as name='visits.csv', not {shown(name)}: the "
        "ids of its appends begin with it, and by them the feed resumes after a crash"
    )


def other_source(name: str) -> RequestConflict:
    """The refusal of a feed under a name that another kind of source has."""
    return RequestConflict(
        f"items of another kind of source have arrived under the name {name[:80]!r}: choose another name for this feed"
    )


def conversion(
    declared: Declaration, kinds: dict[str, str], given: str, dialect: Dialect, *, key: str | None = None
) -> str:
    """The query that converts rows to stored form, as a table of that engine does: the fields, then the unit.

    With a key, which names a row as a unit is named, the key comes first.
    """
    names = [named.name for named in declared.columns]
    for name in (*names, *declared.unit_columns, *(() if key is None else (key,))):
        if name not in kinds:
            raise InvalidParameter(
                f"the data has no column {name!r}, which is declared; it has: {', '.join(kinds) or 'none'}"
            )
    query = loading.load(declared, kinds, given, dialect)
    if key is None:
        return query
    named = key_of(kinds[key], dialect.quoted(key), "text", dialect)
    if named is None:
        raise InvalidParameter(
            f"column {key!r} of type {kinds[key]} cannot be the key: use a column of whole numbers, texts or dates"
        )
    return query.replace("SELECT ", f"SELECT {named[1]} AS k, ", 1)

"""What a stream and a live table have in common: feeds deliver into them."""

from abc import abstractmethod
from typing import Any

from counterpoint.sources.feeds.feed import BATCH, feed
from counterpoint.sources.feeds.target import Target
from counterpoint.sources.streams.log import Log


class Feedable(Target):
    """Data into which sources are fed; each item of a source arrives once."""

    __slots__ = ()

    @property
    @abstractmethod
    def log(self) -> Log:
        """The log, which a durable ledger stores."""

    @abstractmethod
    def check_whole(self) -> None:
        """Refuse to append to a part of this data."""

    def feed(self, source: object, *, name: str | None = None, batch: int = BATCH, **options: Any) -> Any:
        """Append what a source delivers, in batches, each item once; after a crash, feed again, and it goes on.

        The source is

        - an iterable of items, as `Stream.extend` and `LiveTable.put` take them, or anything with Arrow's C stream
          protocol, such as a `pyarrow.RecordBatchReader`: it begins with the same items each time, and those that have
          arrived are skipped. A source that can begin anywhere is given as a function of the number of items to leave
          out;
        - a streaming DataFrame of Spark: `checkpoint` is Spark's folder, `trigger` a dictionary of what its trigger
          takes. The result is Spark's running query;
        - a postgresql:// URL: `relation` names a table and `key` its growing key. Rows are read up to where no smaller
          key can appear (see `feeds.postgres`; at most `wait` seconds are waited for writers to end), or `lag` keys
          below the largest. Feed again to poll.

        Otherwise the result is the number of items that arrived. The ids of the appends begin with `name`, which
        belongs to one source (the default for Spark is "spark", for PostgreSQL the relation). Rows of Arrow, Spark and
        PostgreSQL are records: columns that are not declared are left out, and values are converted as in a table. Into
        a live table every row is put. Names, positions and the number of items in a batch are public. What comes before
        a feed must make one item of each event, by that event alone: a filter on private values would reveal them by
        the number of items.

        >>> from counterpoint.sources.streams.stream import Stream
        >>> visits = Stream(bound=1)
        >>> visits.feed(iter([1, 0, 1]), name="monday.csv"), visits.feed(iter([1, 0, 1, 1]), name="monday.csv")
        (3, 1)
        """
        self.check_whole()
        return feed(self, source, name=name, batch=batch, **options)

    def position(self, feed: str) -> str | None:
        """How far a feed has come, by the ids on record; None if nothing of it has arrived."""
        return self.log.position(feed)

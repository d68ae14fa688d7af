"""Request ids: a client that may have to retry a request gives it an id, and the request then happens once.

Launches, asks and appends to a stream have ids under the same limits. An id is public: the ledger stores it
unencrypted. A used id is kept for ever, or a late retry would count as a new request.

The appends of a feed have ids that say how far the feed has come, so the newest of them is where it resumes. They
follow each other: one that does not continue the newest is refused, so no item of a source arrives twice, even if two
processes feed one stream from it. They begin with "feed of ", as no other id of an append may, so none is mistaken for
one of them.

>>> step = FeedStep("visits.csv", "2000 items", follows="1000 items")
>>> step.id, position(["visits.csv: 9 items", step.id, "feed of visits.csv: 1000 items"], "visits.csv")
('feed of visits.csv: 2000 items', '2000 items')
>>> checked_id("monday")
'monday'
>>> checked_id("")
Traceback (most recent call last):
...
counterpoint.errors.InvalidParameter: a request id must be a text of 1 to 256 characters, such as 'monday', not the ...
"""

from collections.abc import Iterable
from typing import NamedTuple

from counterpoint.errors import InvalidParameter, RequestConflict, shown
from counterpoint.sources.declaring.columns import is_readable

_LONGEST = 256
_FEED = "feed of "
"""How the ids of the appends of feeds begin."""


def checked_id(given: object) -> str:
    """The id as a plain text that every database can store, or `InvalidParameter`."""
    text = str.__str__(given) if isinstance(given, str) else ""
    if not 0 < len(text) <= _LONGEST or not is_readable(text):
        what = f"not the {type(given).__name__} {shown(given)}"
        raise InvalidParameter(f"a request id must be a text of 1 to {_LONGEST} characters, such as 'monday', {what}")
    return text


def append_id(given: object) -> str:
    """The id of an append, or `InvalidParameter`; the ids of a feed's batches are the feed's own.

    >>> append_id("feed of visits.csv: 1000 items")
    Traceback (most recent call last):
    ...
    counterpoint.errors.InvalidParameter: the id of an append must not begin with 'feed of ', as those of a feed's ...
    """
    id = checked_id(given)
    if id.startswith(_FEED):
        raise InvalidParameter(
            f"the id of an append must not begin with {_FEED!r}, as those of a feed's batches do: choose another id"
        )
    return id


class FeedStep(NamedTuple):
    """One append of a feed: the public position that the feed reaches with it, and the one that it continues."""

    feed: str
    position: str
    follows: str | None

    @property
    def id(self) -> str:
        """The id of the append; a position contains no colon, so the name of the feed may."""
        return checked_id(f"{_FEED}{self.feed}: {self.position}")

    def check(self, newest: Iterable[str]) -> None:
        """Refuse a step that does not continue the feed, given the ids of all appends, newest first."""
        if position(newest, self.feed) != self.follows:
            raise RequestConflict(
                f"feed {self.feed[:80]!r} has come to another position meanwhile, so nothing was added: something else "
                "feeds this stream under the same name; stop one of them, and feed again to go on from there"
            )


def position(newest: Iterable[str], feed: str) -> str | None:
    """How far a feed has come, given the ids of all appends, newest first; None if nothing of it has arrived."""
    steps = (feed_and_position(id) for id in newest)
    return next((found[1] for found in steps if found is not None and found[0] == feed), None)


def feed_and_position(id: str) -> tuple[str, str] | None:
    """The feed and the position of the id of an append; None if no feed made it.

    >>> feed_and_position("feed of visits: monday: 1000 items"), feed_and_position("monday: 1000 items")
    (('visits: monday', '1000 items'), None)
    """
    if not id.startswith(_FEED):
        return None
    feed, _, place = id.removeprefix(_FEED).rpartition(": ")
    return feed, place

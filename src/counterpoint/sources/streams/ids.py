"""Request ids: a client that may have to retry a request gives it an id, and the request then happens once.

Launches, asks and appends to a stream have ids under the same limits. An id is public: the ledger stores it
unencrypted. A used id is kept for ever, or a late retry would count as a new request.

The appends of a feed have ids that say how far the feed has come, so the newest of them is where it resumes. They
follow each other: one that does not continue the newest is refused, so no item of a source arrives twice, even if two
processes feed one stream from it.

>>> step = FeedStep("visits.csv", "2000 items", follows="1000 items")
>>> step.id, position(["monday", step.id, "visits.csv: 1000 items"], "visits.csv")
('visits.csv: 2000 items', '2000 items')
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


def checked_id(given: object) -> str:
    """The id as a plain text that every database can store, or `InvalidParameter`."""
    text = str.__str__(given) if isinstance(given, str) else ""
    if not 0 < len(text) <= _LONGEST or not is_readable(text):
        what = f"not the {type(given).__name__} {shown(given)}"
        raise InvalidParameter(f"a request id must be a text of 1 to {_LONGEST} characters, such as 'monday', {what}")
    return text


class FeedStep(NamedTuple):
    """One append of a feed: the public position that the feed reaches with it, and the one that it continues."""

    feed: str
    position: str
    follows: str | None

    @property
    def id(self) -> str:
        """The id of the append; a position contains no colon, so the name of the feed may."""
        return checked_id(f"{self.feed}: {self.position}")

    def check(self, newest: Iterable[str]) -> None:
        """Refuse a step that does not continue the feed, given the ids of all appends, newest first."""
        if position(newest, self.feed) != self.follows:
            raise RequestConflict(
                f"feed {self.feed[:80]!r} has come to another position meanwhile, so nothing was added: something else "
                "feeds this stream under the same name; stop one of them, and feed again to go on from there"
            )


def position(newest: Iterable[str], feed: str) -> str | None:
    """How far a feed has come, given the ids of all appends, newest first; None if nothing of it has arrived."""
    parts = (id.rpartition(": ") for id in newest)
    return next((place for name, colon, place in parts if colon and name == feed), None)

"""Which events of a session its page draws: all of them, or a window that links move and resize.

A session of more than 500 asks or 30 lanes is folded when all of it is drawn; a window has room for each ask. It is
part of the address, so a view can be sent to another person.

>>> window = EventWindow("/sessions/people.0", "order", events=1000, first=201, size=200)
>>> window.words, window.earlier, window.later
('Events 201 to 400 of 1,000', '/sessions/people.0?by=order&first=1&events=200#score', ...events=200#score')
>>> window.wider, EventWindow("/sessions/people.0", "order", events=1000).closer
('/sessions/people.0?by=order&first=1&events=800#score', '/sessions/people.0?by=order&first=801&events=200#score')
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Self
from urllib.parse import urlencode

from markupsafe import Markup

from counterpoint.pictures.score import MOST_ASKS, MOST_LANES, Score, moments
from counterpoint.pictures.zooming import zoomed
from counterpoint.service.pages.parts.strips import binned, strip
from counterpoint.service.pages.parts.words import whole_number

SIZE = 200
"""How many events a first window has at most."""
SMALLEST = 25
_STEP = 4
"""By how much closer and wider change the size."""


@dataclass(frozen=True, slots=True)
class EventWindow:
    """A part of a session's events, by the number of its first one and how many there are; size 0 is all of them."""

    href: str
    axis: str
    events: int
    first: int = 1
    size: int = 0

    @classmethod
    def read(cls, href: str, query: Mapping[str, str], events: int) -> Self:
        """The window that an address says; one that there is not is moved to where events are."""
        axis = "order" if query.get("by") == "order" else "time"
        made = cls(href, axis, events)
        size = whole_number(query.get("events", ""), 0)
        return made._at(whole_number(query.get("first", ""), 1), max(size, SMALLEST)) if size else made

    def _at(self, first: int, size: int) -> Self:
        if size >= self.events:
            return replace(self, first=1, size=0)
        return replace(self, first=min(max(1, first), self.events - size + 1), size=size)

    @property
    def is_whole(self) -> bool:
        """Whether all events are drawn."""
        return not self.size

    @property
    def last(self) -> int:
        """The number of the last event."""
        return self.first + self.size - 1 if self.size else self.events

    def seen(self, score: Score) -> Score:
        """What is drawn of a score."""
        return score if self.is_whole else zoomed(score, self.first, self.last)

    def is_offered(self, score: Score) -> bool:
        """Whether a session is so large that all of it is drawn folded, or a part is drawn now."""
        return not self.is_whole or score.asks > MOST_ASKS or len(score.lanes) > MOST_LANES

    @property
    def address(self) -> str:
        """The page with this window."""
        said: list[tuple[str, object]] = [("by", self.axis)]
        said += [] if self.is_whole else [("first", self.first), ("events", self.size)]
        return f"{self.href}?{urlencode(said)}#score"

    def along(self, axis: str) -> str:
        """The same window on another axis."""
        return replace(self, axis=axis).address

    @property
    def whole(self) -> str:
        """All events."""
        return replace(self, first=1, size=0).address

    @property
    def earlier(self) -> str | None:
        """The window before, if there is one."""
        return None if self.first == 1 else self._at(self.first - self.size, self.size).address

    @property
    def later(self) -> str | None:
        """The window after, if there is one."""
        return None if self.last == self.events else self._at(self.last + 1, self.size).address

    @property
    def _usual(self) -> int:
        """How many events a window has that is chosen from the whole."""
        return max(SMALLEST, min(SIZE, self.events // _STEP))

    @property
    def closer(self) -> str | None:
        """A quarter of it, from the middle; of the whole, the newest events."""
        if self.is_whole:
            newest = self._at(self.events, self._usual)
            return None if newest.is_whole else newest.address
        size = max(SMALLEST, self.size // _STEP)
        return None if size == self.size else self._at(self.first + (self.size - size) // 2, size).address

    @property
    def wider(self) -> str | None:
        """Four times as much around it."""
        if self.is_whole:
            return None
        size = self.size * _STEP
        return self._at(self.first - (size - self.size) // 2, size).address

    @property
    def words(self) -> str:
        """Which events are drawn."""
        if self.is_whole:
            return f"All {self.events:,} events"
        return f"Events {self.first:,} to {self.last:,} of {self.events:,}"

    def drawn_strip(self, score: Score) -> Markup:
        """All events of a session, with the window marked; a bar leads to the window that begins with it."""
        places = score.times or tuple(map(float, range(1, self.events + 1)))
        low, high = places[0], places[-1]
        span = (high - low) or 1.0
        bins = binned(places, [event.kind == "refused" for event in score.events], low, high)
        size = self.size or self._usual
        chosen = None
        if not self.is_whole:
            chosen = (places[self.first - 1] - low) / span, (places[self.last - 1] - low) / span
        return strip(
            bins,
            f"{self.words}; a bar shows the events that begin with it",
            lambda part: self._at(part.first + 1, size).address,
            noun="event",
            ticks=_ticks(score, low, span),
            chosen=chosen,
        )


def _ticks(score: Score, low: float, span: float) -> list[tuple[float, str]]:
    """Round moments that stand apart; by order, the bars need no numbers."""
    if not score.times:
        return []
    found = [((at - low) / span, words) for at, words in moments(low, low + span)]
    close = {then for at, then in pairwise(found) if then[0] - at[0] < 0.12}
    return [tick for tick in found if tick not in close and 0.04 <= tick[0] <= 0.96]

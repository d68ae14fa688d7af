"""Parts of pages: budget bars, strips of events over time, and the window of events that is drawn.

A bar shows what is spent, reserved and left; where a rule is not a sum, a reserve is the increase that its launch
caused when it was admitted. A strip counts events in 60 bins, each a link to its events. The window is part of the
address, so a view can be sent to another person.

>>> bins = binned([1.0, 1.5, 9.0], [False, False, True], 0.0, 10.0, most=5)
>>> [(one.first, one.count, one.refused) for one in bins]
[(0, 2, 0), (2, 0, 0), (2, 0, 0), (2, 0, 0), (2, 1, 1)]

>>> window = EventWindow("/sessions/people.0", "order", events=1000, first=201, size=200)
>>> window.words, window.earlier, window.later
('Events 201 to 400 of 1,000', '/sessions/people.0?by=order&first=1&events=200#timeline', ...events=200#timeline')
>>> window.wider, EventWindow("/sessions/people.0", "order", events=1000).closer
('/sessions/people.0?by=order&first=1&events=800#timeline', '/sessions/people.0?by=order&first=801&events=200#timeline')
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Self
from urllib.parse import urlencode

from markupsafe import Markup

from counterpoint.display.markup import element, joined, percent
from counterpoint.display.timeline import MOST_ASKS, MOST_LANES, Timeline, count, moments, zoomed
from counterpoint.service.pages.render import drawn
from counterpoint.service.pages.words import figure, whole_number
from counterpoint.session.given_away import GivenAway
from counterpoint.session.session import Session
from counterpoint.session.timeline import gauge_of


@dataclass(frozen=True, slots=True)
class Meter:
    """A loss under its ceiling; without a ceiling it is only counted."""

    symbol: str
    ceiling: float | None
    lost: float
    unspent: float
    words: str
    ended: bool = False
    """Whether nothing more can be spent of it, whatever was not."""

    @property
    def left(self) -> float:
        """The part of the budget that is left: of a grant that has ended nothing."""
        return 0.0 if self.ended else self.unlost

    @property
    def unlost(self) -> float:
        """The part of the budget that was not lost."""
        return 0.0 if self.ceiling is None else max(0.0, self.ceiling - self.lost)

    @property
    def spent(self) -> float:
        """The loss without what is reserved."""
        return max(0.0, self.lost - self.unspent)

    @property
    def is_short(self) -> bool:
        """Whether less than a twentieth is left."""
        return self.ceiling is not None and not self.ended and self.left < self.ceiling / 20

    def share(self, amount: float) -> str:
        """A part of the bar, in percent."""
        return f"{100 * min(1.0, amount / self.ceiling):.2f}%" if self.ceiling else "0%"

    @property
    def sentence(self) -> str:
        """The bar in words."""
        if self.ceiling is None:
            return f"{self.symbol} {figure(self.lost)} lost so far"
        parts = [f"{figure(self.lost)} of {figure(self.ceiling)} lost"]
        if self.unspent:
            parts.append(f"{figure(self.unspent)} of that granted or reserved and not spent")
        return f"{', '.join(parts)}, {'nothing' if self.ended else figure(self.left)} left"


def meter_of(session: Session, timeline: Timeline) -> Meter:
    """The meter of a session, from its timeline."""
    return meter_with(timeline, reserves(session, timeline))


def meter_with(timeline: Timeline, kept: Sequence[tuple[str, float]]) -> Meter:
    """The same, where the reserves are known."""
    budget, unspent = timeline.budget, sum(amount for _, amount in kept)
    return Meter(budget.symbol, budget.ceiling, timeline.lost, unspent, budget.words.removeprefix("budget "))


def plain_meter_of(session: Session) -> Meter:
    """The meter of a session without what it has reserved: no history is read."""
    gauge = gauge_of(session)
    budget = gauge.budget
    return Meter(budget.symbol, budget.ceiling, gauge(session.loss), 0.0, budget.words.removeprefix("budget "))


def reserves(session: Session, timeline: Timeline) -> list[tuple[str, float]]:
    """What was granted, delegated or set aside for parts and is not spent yet, by the number of its lane."""
    first: dict[str, float] = {}
    charged: dict[str, float] = defaultdict(float)
    for step in timeline.steps:
        if step.reserve:
            first.setdefault(step.number, step.after - step.before)
            charged[step.number] += step.after - step.before
    shares = GivenAway.of(session).used() if charged else {}
    used = {str(int(path[-1]) + 1): share for path, share in shares.items()}
    found = [(number, charged[number] - first[number] * used.get(number, 0.0)) for number in charged]
    return [(number, amount) for number, amount in found if amount > 1e-12]


BINS = 60
_BASE, _HIGH = 40, 32
_CROSS = "M-3.5-3.5 3.5 3.5M3.5-3.5-3.5 3.5"


@dataclass(frozen=True, slots=True)
class StripBin:
    """A part of the axis: the number of its first thing, how many are in it, and how many of them were refused."""

    first: int
    count: int
    refused: int

    @property
    def last(self) -> int:
        """The number of its last thing."""
        return self.first + self.count - 1


def binned(
    places: Sequence[float], refused: Sequence[bool], low: float, high: float, most: int = BINS
) -> list[StripBin]:
    """Things at these places in ascending order, in `most` parts of equal length."""
    width = (high - low) / most or 1.0
    found = []
    last = 0
    for number in range(most):  # by their ends, as there are many things and few parts
        first = last
        last = len(places) if number == most - 1 else bisect_left(places, low + (number + 1) * width, first)
        found.append(StripBin(first, last - first, sum(refused[first:last])))
    return found


def strip(
    bins: Sequence[StripBin],
    says: str,
    href: Callable[[StripBin], str],
    *,
    noun: str,
    ticks: Sequence[tuple[float, str]] = (),
    chosen: tuple[float, float] | None = None,
) -> Markup:
    """The bars. `href` says where a bar leads; `chosen` is the part of the axis that is shown.

    Buttons do the same for a keyboard: the bars are for a pointer.
    """
    most = max((one.count for one in bins), default=1) or 1
    width = 1 / max(1, len(bins))
    parts = [element("line", class_="strip-base", x1=0, x2="100%", y1=_BASE, y2=_BASE)]
    if chosen is not None:
        first, last = chosen
        width_chosen = percent(max(last - first, 0.004))
        parts.append(element("rect", class_="strip-chosen", x=percent(first), width=width_chosen, y=0, height=_BASE))
    for number, one in enumerate(bins):
        if not one.count:
            continue
        x, high = percent(number * width), 3 + (_HIGH - 3) * one.count / most
        words = count(one.count, noun) + (f", {one.refused} refused" if one.refused else "")
        hit = element("rect", class_="strip-hit", x=x, y=0, width=percent(width), height=_BASE + 10)
        bar = element("rect", class_="strip-bar", x=x, y=_BASE - high, width=percent(0.76 * width), height=high)
        cross = element("path", class_="cross", d=_CROSS)
        crosses = [element("svg", cross, x=percent((number + 0.38) * width), y=_BASE + 7)] if one.refused else []
        title = element("title", words)
        parts.append(element("a", title, hit, bar, *crosses, href=href(one), tabindex=-1, aria_label=words))
    parts += [element("text", word, x=percent(place), y=_BASE + 24) for place, word in ticks]
    return drawn(element("svg", joined(*parts), class_="strip", role="group", aria_label=says))


SIZE = 200
"""How many events a first window has at most."""
MOST_WHOLE = 2_000
"""How many events a page draws all of, unless its address asks for all."""
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
        """The window in an address, moved to where there are events."""
        axis = "order" if query.get("by") == "order" else "time"
        made = cls(href, axis, events)
        if "events" not in query and events > MOST_WHOLE:
            return made._at(events, SIZE)
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

    def seen(self, timeline: Timeline) -> Timeline:
        """The part of a timeline that is drawn."""
        return timeline if self.is_whole else zoomed(timeline, self.first, self.last)

    def is_offered(self, timeline: Timeline) -> bool:
        """Whether a session is so large that all of it is drawn folded, or a part is drawn now."""
        is_large = self.events > MOST_WHOLE or timeline.asks > MOST_ASKS or len(timeline.lanes) > MOST_LANES
        return is_large or not self.is_whole

    @property
    def address(self) -> str:
        """The page with this window."""
        said: list[tuple[str, object]] = [("by", self.axis)]
        if not self.is_whole:
            said += [("first", self.first), ("events", self.size)]
        elif self.events > MOST_WHOLE:
            said.append(("events", "all"))
        return f"{self.href}?{urlencode(said)}#timeline"

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

    def drawn_strip(self, timeline: Timeline) -> Markup:
        """All events of a session, with the window marked; a bar leads to the window that begins with it."""
        places = timeline.times or tuple(map(float, range(1, self.events + 1)))
        low, high = places[0], places[-1]
        span = (high - low) or 1.0
        bins = binned(places, [event.kind == "refused" for event in timeline.events], low, high)
        size = self.size or self._usual
        chosen = None
        if not self.is_whole:
            chosen = (places[self.first - 1] - low) / span, (places[self.last - 1] - low) / span
        return strip(
            bins,
            f"{self.words}; a bar shows the events that begin with it",
            lambda part: self._at(part.first + 1, size).address,
            noun="event",
            ticks=_ticks(timeline, low, span),
            chosen=chosen,
        )


def _ticks(timeline: Timeline, low: float, span: float) -> list[tuple[float, str]]:
    """Round moments that stand apart; by order, the bars need no numbers."""
    if not timeline.times:
        return []
    found = [((at - low) / span, words) for at, words in moments(low, low + span)]
    close = {then for at, then in pairwise(found) if then[0] - at[0] < 0.12}
    return [tick for tick in found if tick not in close and 0.04 <= tick[0] <= 0.96]

"""The timeline of a session: the loss on top, a lane for each mechanism below, on one axis of events.

These values hold the public facts of a history, in order; `session/timeline.py` reads them off a session. Beyond 30
lanes, ended lanes are folded into one, then inner lanes into the reserve that paid for them, then the oldest; beyond
500 asks, asks are drawn as a density. `zoomed` cuts out a part that has room for each ask, and `as_text` draws for a
terminal.

>>> lanes = tuple(Lane(str(n), "Laplace", "1 ask", starts=(n,), halted=n if n < 39 else None) for n in range(40))
>>> [lane.name for lane in folded(lanes)]
['39 ended', 'Laplace']

>>> lanes = tuple(Lane(str(n), "Laplace", "1 ask", (2 * n - 1,), asks=(Mark(2 * n, ""),)) for n in (1, 2, 3))
>>> events = tuple(TimelineEvent(kind, lane.number, "") for lane in lanes for kind in ("launch", "ask"))
>>> steps = tuple(Step(2 * n - 1, (n - 1) / 4, n / 4, str(n), "") for n in (1, 2, 3))
>>> part = zoomed(Timeline("people", LossAxis("ε", 1, "budget ε 1"), events, steps, (), lanes), 3, 4)
>>> part.before, part.after, [lane.number for lane in part.lanes], part.lost
(2, 2, ['2'], 0.5)

>>> laplace = Lane("1", "Laplace", "2 asks", (1,), "0.5", asks=(Mark(2, ""), Mark(3, "")), halted=3)
>>> events = (TimelineEvent("launch", "1", ""), TimelineEvent("ask", "1", ""), TimelineEvent("ask", "1", ""))
>>> timeline = Timeline("people", LossAxis("ε", 1, "budget ε 1"), events, (Step(1, 0, 0.5, "1", ""),), (), (laplace,))
>>> print(as_text(timeline, 60))
people     ε 0.5 of 1 lost, 0.5 left  █████░░░░░
loss       ▄▄▄
1 Laplace  ●┼┼┃  0.5
>>> print(as_text(timeline, 60, unicode=False))
people     e 0.5 of 1 lost, 0.5 left  #####.....
loss       444
1 Laplace  o||]  0.5
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import groupby

_START, _LAST, _END = 0.01, 0.95, 0.98
"""Where an axis of times has its first event, its last, and its end."""

MOST_LANES = 30
MOST_ASKS = 500


@dataclass(frozen=True, slots=True)
class TimelineEvent:
    """One line of the history: which kind, in which lane (by its number), and what the record says of it."""

    kind: str
    lane: str
    says: str


@dataclass(frozen=True, slots=True)
class Step:
    """What a launch added to the loss when it was admitted: at which event, and the level after it.

    A step without a lane's number is a recovery: charges were lost, and the whole budget counts as spent.
    """

    at: int
    before: float
    after: float
    number: str
    says: str
    reserve: bool = False


@dataclass(frozen=True, slots=True)
class Mark:
    """A mark at an event, with its words."""

    at: int
    says: str


@dataclass(frozen=True, slots=True)
class Lane:
    """One handle, delegation or partition: where it starts, is asked, is refused something, and halts.

    `inner` is paid from the reserve of the lane around it; `reserve` is such a lane. A folded lane has several starts.
    """

    number: str
    name: str
    detail: str
    starts: tuple[int, ...]
    cost: str = ""
    depth: int = 0
    reserve: bool = False
    asks: tuple[Mark, ...] = ()
    refusals: tuple[Mark, ...] = ()
    halted: int | None = None

    @property
    def inner(self) -> bool:
        """Whether a reserve has paid for it."""
        return self.depth > 0

    @property
    def start(self) -> int:
        """The event of its launch, or of the first of several."""
        return self.starts[0]

    @property
    def sentence(self) -> str:
        """The lane in words."""
        cost = f" for {self.cost}" if self.cost else ""
        state = "running" if self.halted is None else f"halted at event {self.halted}"
        return (
            f"{self.number} {self.name}: launched at event {self.start}{cost}, {count(len(self.asks), 'ask')}, {state}"
        )


@dataclass(frozen=True, slots=True)
class LossAxis:
    """The measure of the loss: its letter, the ceiling if there is one, and the words beside the axis."""

    symbol: str
    ceiling: float | None
    words: str


@dataclass(frozen=True, slots=True)
class Timeline:
    """A session, event by event. Events are numbered from 1.

    With `times`, in seconds since 1970, the axis is the time of each event, else its number. Of a part of a session
    (`zoomed`), `before` and `after` say how many events were left out on either side.
    """

    name: str
    budget: LossAxis
    events: tuple[TimelineEvent, ...] = ()
    steps: tuple[Step, ...] = ()
    refusals: tuple[Mark, ...] = ()
    lanes: tuple[Lane, ...] = ()
    times: tuple[float, ...] = ()
    before: int = 0
    after: int = 0
    ended: bool = False
    """Whether nothing more can be spent: then what is not lost is not left either."""

    @property
    def last(self) -> int:
        """The number of the last event."""
        return self.before + len(self.events)

    def has(self, at: float) -> bool:
        """Whether an event is one of these."""
        return self.before < at <= self.last

    @property
    def lost(self) -> float:
        """The level after the last step."""
        return self.steps[-1].after if self.steps else 0.0

    @property
    def reserved(self) -> float:
        """What steps for reserves have added to it."""
        return sum(step.after - step.before for step in self.steps if step.reserve)

    @property
    def left(self) -> float | None:
        """From the level to the ceiling."""
        return None if self.budget.ceiling is None else max(0.0, self.budget.ceiling - self.lost)

    @property
    def asks(self) -> int:
        """How often it was asked, in all lanes."""
        return sum(event.kind in ("ask", "question") for event in self.events)

    def share(self, at: float) -> float:
        """Where an event stands on the axis, from 0 to 1; the axis is at least eight events long.

        An event outside the part is placed at the nearer end.
        """
        place = min(max(at - self.before, 0.5), len(self.events) + 1)
        if not self.times:
            return (place - 0.5) / max(8, len(self.events) + 1)
        if place > len(self.times):
            return _END
        return 0.0 if place < 1 else self.share_of_time(self.times[int(place) - 1])

    def share_of_time(self, seconds: float) -> float:
        """Where a moment stands on an axis of times."""
        first, last = self.times[0], self.times[-1]
        return _START + (_LAST - _START) * (seconds - first) / ((last - first) or 1.0)


def folded(lanes: Sequence[Lane], most: int = MOST_LANES) -> tuple[Lane, ...]:
    """The same lanes, no more than `most` of them: ended ones fold first, then inner ones, then the oldest."""
    few = tuple(lanes)
    if len(few) > most:
        few = tuple(_runs(few))
    if len(few) > most:
        few = tuple(_outer(few))
    if len(few) > most:
        few = (_one(few[: len(few) - most + 1], "earlier"), *few[len(few) - most + 1 :])
    return few


def _runs(lanes: Sequence[Lane]) -> Iterator[Lane]:
    """Lanes beside each other that have ended, at one depth, become one."""
    for (over, _), run in groupby(lanes, key=lambda lane: (lane.halted is not None, lane.depth)):
        same = tuple(run)
        yield from (_one(same, "ended"),) if over and len(same) > 1 else same


def _outer(lanes: Sequence[Lane]) -> Iterator[Lane]:
    """The lane of a reserve stands for everything that the reserve paid for."""
    around: list[Lane] = []
    for lane in (*lanes, None):
        if around and (lane is None or not lane.inner):
            first, *inside = around
            asks = tuple(sorted((mark for one in around for mark in one.asks), key=lambda mark: mark.at))
            refusals = tuple(mark for one in around for mark in one.refusals)
            yield replace(first, asks=asks, refusals=refusals) if inside else first
            around = []
        if lane is not None:
            around.append(lane)


def _one(lanes: Sequence[Lane], word: str) -> Lane:
    """Several lanes as one."""
    asks = tuple(sorted((mark for lane in lanes for mark in lane.asks), key=lambda mark: mark.at))
    refusals = tuple(mark for lane in lanes for mark in lane.refusals)
    ends = [lane.halted for lane in lanes if lane.halted is not None]
    return Lane(
        f"{lanes[0].number}–{lanes[-1].number}",
        f"{len(lanes)} {word}",
        f"{_names(lanes)} · {count(len(asks), 'ask')}",
        starts=tuple(sorted(start for lane in lanes for start in lane.starts)),
        depth=lanes[0].depth,
        asks=asks,
        refusals=refusals,
        halted=max(ends) if len(ends) == len(lanes) else None,
    )


def _names(lanes: Sequence[Lane]) -> str:
    names = list(dict.fromkeys(lane.name for lane in lanes))
    return names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more"


def count(number: int, noun: str, nouns: str | None = None) -> str:
    """A number with its noun.

    >>> count(1, "ask"), count(1200, "ask"), count(2, "launch", "launches")
    ('1 ask', '1,200 asks', '2 launches')
    """
    return f"{number:,} {noun if number == 1 else nouns or f'{noun}s'}"


def decimals(values: Sequence[float]) -> int:
    """How many decimals show all of these values alike, as people write them; four at most.

    >>> decimals([0.75, 0.3]), decimals([1, 2]), decimals([1 / 3])
    (2, 0, 4)
    """
    return max((len(f"{value:.4f}".rstrip("0").partition(".")[2]) for value in values), default=0)


def levels(highest: float) -> list[float]:
    """Four or five round numbers from 0 up, for an axis.

    >>> levels(1), levels(0.3), levels(7)
    ([0.0, 0.25, 0.5, 0.75, 1.0], [0.0, 0.1, 0.2, 0.3], [0.0, 2.0, 4.0, 6.0])
    """
    if highest <= 0:
        return [0.0]
    power = 10.0 ** (len(f"{highest:.0e}".split("e")[0]) - 1)
    while power > highest:
        power /= 10
    while power * 10 <= highest:
        power *= 10
    step = next(size * power for size in (0.1, 0.2, 0.25, 0.5, 1, 2, 2.5, 5) if highest / (size * power) <= 4.0001)
    return [round(number * step, 12) for number in range(int(highest / step + 1e-9) + 1)]


def moments(first: float, last: float) -> Sequence[tuple[float, str]]:
    """A few round moments between two, in seconds since 1970, as people write them in UTC.

    >>> moments(1_794_826_800, 1_794_837_600)
    [(1794826800, '11:00'), (1794830400, '12:00'), (1794834000, '13:00'), (1794837600, '14:00')]
    >>> [word for _, word in moments(0, 20)]
    ['00:00:00', '00:00:05', '00:00:10', '00:00:15', '00:00:20']
    >>> [word for _, word in moments(0, 400 * 86400)]
    ['1 Jan 1970', '11 Apr 1970', '20 Jul 1970', '28 Oct 1970', '5 Feb 1971']
    """
    step = next((step for step in _ROUND if (last - first) / step <= 5), _ROUND[-1])
    places = range(-int(-first // step) * step, int(last) + 1, step)
    return [(place, _spelled(place, step)) for place in places][:12]


_ROUND = (1, 5, 10, 30, 60, 300, 600, 1800, 3600, 3 * 3600, 6 * 3600, 86400, 7 * 86400, 30 * 86400, 100 * 86400, 10**8)


def _spelled(seconds: int, step: int) -> str:
    at = datetime.fromtimestamp(seconds, UTC)
    if step >= 86400:
        return f"{at.day} {at:%b %Y}"
    return f"{at:%H:%M:%S}" if step < 60 else f"{at:%H:%M}"


def short(text: str, most: int) -> str:
    """A name that fits its place.

    >>> short("Cardiology", 12), short("Cardiology", 6)
    ('Cardiology', 'Cardi…')
    """
    return text if len(text) <= most else f"{text[: most - 1]}…"


def zoomed(timeline: Timeline, first: int, last: int) -> Timeline:
    """The events numbered `first` to `last`, with the lanes and the level of loss that they need."""
    part = replace(
        timeline,
        events=timeline.events[first - 1 : last],
        times=timeline.times[first - 1 : last],
        before=first - 1,
        after=max(0, len(timeline.events) - last),
    )
    return replace(
        part,
        steps=(*_level_before(timeline.steps, first), *(step for step in timeline.steps if part.has(step.at))),
        refusals=_within(part, timeline.refusals),
        lanes=_active(part, [_cut_lane(part, lane) for lane in timeline.lanes]),
    )


def _level_before(steps: Sequence[Step], first: int) -> tuple[Step, ...]:
    """What was lost before: a step to what was spent, and one to what was reserved."""
    earlier = [step for step in steps if step.at < first]
    if not earlier:
        return ()
    level = earlier[-1].after
    spent = level - sum(step.after - step.before for step in earlier if step.reserve)
    at = first - 1
    return Step(at, 0.0, spent, "", "lost before"), Step(at, spent, level, "", "reserved before", reserve=True)


def _within(part: Timeline, marks: Sequence[Mark]) -> tuple[Mark, ...]:
    return tuple(mark for mark in marks if part.has(mark.at))


def _cut_lane(part: Timeline, lane: Lane) -> Lane:
    return replace(lane, asks=_within(part, lane.asks), refusals=_within(part, lane.refusals))


def _active(part: Timeline, lanes: Sequence[Lane]) -> tuple[Lane, ...]:
    """The lanes in which something happens, and the reserves that they are paid from, which stand above them."""
    found: list[Lane] = []
    needed = 0
    for lane in reversed(lanes):
        happens = lane.asks or lane.refusals or any(map(part.has, lane.starts))
        if happens or lane.depth < needed:
            found.append(lane)
            needed = lane.depth
    return tuple(reversed(found))


_BAR = 10
_PLAIN = str.maketrans("●○┼×┃▒─█░…–εδρμα▁▂▃▄▅▆▇", "oo|x]#-#..-edrma1234567")
"""The marks where Unicode is missing."""


def as_text(timeline: Timeline, width: int, unicode: bool = True) -> str:
    """The lines: a head with a bar, the loss, and a lane for each mechanism."""
    lanes = folded(timeline.lanes)
    names = [_name(lane) for lane in lanes]
    margin = min(max(map(len, [timeline.name, "loss", *names])) + 2, 26)
    columns = max(8, min(len(timeline.events), width - margin - 10))
    rows = [_shorten(timeline.name, margin) + _head(timeline), *_loss(timeline, columns, margin)]
    rows += [_shorten(name, margin) + _lane(timeline, lane, columns) for name, lane in zip(names, lanes, strict=True)]
    text = "\n".join(row.rstrip() for row in rows)
    return text if unicode else text.translate(_PLAIN).encode("ascii", "replace").decode()


def _name(lane: Lane) -> str:
    return f"{'  ' * lane.depth}{lane.number} {lane.name}"


def _shorten(name: str, margin: int) -> str:
    return (name if len(name) < margin else f"{name[: margin - 3]}… ").ljust(margin)


def _head(timeline: Timeline) -> str:
    symbol, ceiling, left = timeline.budget.symbol, timeline.budget.ceiling, timeline.left
    if ceiling is None or left is None:
        return f"{symbol} {timeline.lost:.{decimals([timeline.lost])}f} lost"
    places = decimals([timeline.lost, left])
    parts = (
        [round(_BAR * (timeline.lost - timeline.reserved) / ceiling), round(_BAR * timeline.lost / ceiling)]
        if ceiling
        else [0, 0]
    )
    bar = "█" * parts[0] + "▒" * (parts[1] - parts[0]) + "░" * (_BAR - parts[1])
    return f"{symbol} {timeline.lost:.{places}f} of {ceiling:g} lost, {left:.{places}f} left  {bar}"


def _loss(timeline: Timeline, columns: int, margin: int) -> Iterator[str]:
    """The level after the events of each column, in eighths of the ceiling; a cross where a launch was refused."""
    if not timeline.steps and not timeline.refusals:
        return
    highest = timeline.budget.ceiling or timeline.lost
    heights = [" "] * _used(timeline, columns)
    for step in timeline.steps:
        height = "▁▂▃▄▅▆▇"[max(0, min(6, round(8 * step.after / highest) - 1))] if highest else "▁"
        place = _column(timeline, step.at, columns)
        heights[place:] = height * (len(heights) - place)
    for mark in timeline.refusals:
        heights[_column(timeline, mark.at, columns)] = "×"
    yield "loss".ljust(margin) + "".join(heights)


def _lane(timeline: Timeline, lane: Lane, columns: int) -> str:
    """Marks on a line; where several fall into one column, the rarer one is shown."""
    used = _used(timeline, columns)
    start = _column(timeline, lane.start, columns)
    end = used - 1 if lane.halted is None else _column(timeline, lane.halted, columns)
    line = [" "] * start + ["▒" if lane.reserve else "─"] * (end - start + 1) + [" "] * (used - end)
    for marks, sign in ((lane.asks, "┼"), (lane.refusals, "×")):
        for mark in marks:
            line[_column(timeline, mark.at, columns)] = sign
    if lane.halted is not None:
        line[end + 1] = "┃"
    for at in lane.starts:
        line[_column(timeline, at, columns)] = "○" if lane.inner else "●"
    return f"{''.join(line)}  {lane.cost}"


def _used(timeline: Timeline, columns: int) -> int:
    return max(1, min(columns, len(timeline.events)))


def _column(timeline: Timeline, at: int, columns: int) -> int:
    """In which column an event stands; one each, if there is room."""
    events = len(timeline.events)
    place = min(max(at - timeline.before, 1), events) - 1
    return place if events <= columns else place * columns // events

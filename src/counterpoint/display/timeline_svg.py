"""A timeline as SVG: x in percent and y in pixels, so that it fits any width.

Marks differ in shape before colour: ● launch, ○ launch paid from a reserve, | ask, × refusal, a thin and a thick
barline where a mechanism halted, hatching for what is reserved.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from counterpoint.display.markup import Markup, Picture, Rows, element, joined, percent
from counterpoint.display.timeline import (
    MOST_ASKS,
    Lane,
    Mark,
    Step,
    Timeline,
    as_text,
    count,
    decimals,
    folded,
    levels,
    moments,
    short,
)

_TOP, _BASE = 64.0, 236.0
"""Where the ceiling and the baseline of the burn-down are."""

_MOST_STEPS = 200
_CLOSE = {False: 0.030, True: 0.06}
"""How near to the last one a numeral may stand, as a share of the plot."""

_BINS = {False: 120, True: 48}


@dataclass(frozen=True, repr=False)
class TimelinePicture(Picture):
    """A session's burn-down and lanes; with `trace`, also lines from ask to ask, which a style sheet shows."""

    timeline: Timeline
    trace: bool = False

    @property
    def sentence(self) -> str:
        """The loss, the number of launches, and what is left."""
        timeline, symbol = self.timeline, self.timeline.budget.symbol
        if not timeline.events:
            return f"Nothing was launched yet; {timeline.budget.words}."
        whole = timeline.last + timeline.after
        part = (
            ""
            if len(timeline.events) == whole
            else f"Events {timeline.before + 1:,} to {timeline.last:,} of {whole:,}: "
        )
        places = decimals([timeline.lost, timeline.left or 0, timeline.reserved])
        refused = sum(event.kind == "refused" for event in timeline.events)
        charged = [step for step in timeline.steps if timeline.has(step.at) and step.after >= step.before]
        launched = [step for step in charged if step.number]
        launches = count(len(launched), "launch", "launches")
        lost = f"{symbol} {timeline.lost:.{places}f}"
        parts = [f"{part}{launches}, and {lost}" if part else f"{launches} lost {lost}"]
        if timeline.budget.ceiling is not None:
            parts[0] += f" of {timeline.budget.ceiling:g}{' is lost by then' if part else ''}"
            parts.append(f"{timeline.left:.{places}f} {'was not spent' if timeline.ended else 'is left'}")
        if timeline.reserved:
            parts.append(f"{timeline.reserved:.{places}f} of it is reserved")
        parts.append(count(timeline.asks, "ask"))
        if refused:
            parts.append(f"{refused} refused, free")
        return f"{'; '.join(parts)}."

    def draw(self, narrow: bool, hatch: str) -> tuple[Markup, float]:
        """The burn-down, the lanes and what the marks mean."""
        return _Page(self.timeline, narrow, hatch, self.trace).draw()

    def text(self, width: int, unicode: bool = True) -> str:
        """The same marks in the same order."""
        return as_text(self.timeline, width, unicode)

    def rows(self) -> tuple[tuple[str, ...], Rows]:
        """The events in order."""
        events = enumerate(self.timeline.events, self.timeline.before + 1)
        return ("event", "lane", "", "what"), [(str(at), event.lane, event.kind, event.says) for at, event in events]


class _Page:
    """One layout of a timeline. On a narrow page, names stand above their lanes."""

    def __init__(self, timeline: Timeline, narrow: bool, hatch: str, trace: bool) -> None:
        self.timeline = timeline
        self.trace = trace
        self.narrow = narrow
        self.hatch = f"url(#{hatch})"
        self.lanes = folded(timeline.lanes)
        self.dense = timeline.asks > MOST_ASKS
        self.left, self.right = (0.04, 0.96) if narrow else (0.245, 0.885)
        self.lane_height = 64 if narrow else 48
        self.lanes_top = _BASE + 24
        self.axis = self.lanes_top + self.lane_height * len(self.lanes) + (20 if self.lanes else -8)
        budget = timeline.budget
        highest = max(timeline.lost, budget.ceiling or 0.0) or 1.0
        self.highest = highest if budget.ceiling is not None else 1.1 * highest
        self.most_asks = max(map(max, map(self._bins, self.lanes)), default=1) if self.dense else 1

    def x(self, at: float) -> str:
        """The place of an event on the axis."""
        return percent(self._share(at))

    def _share(self, at: float) -> float:
        return self.left + (self.right - self.left) * self.timeline.share(at)

    @property
    def now(self) -> float:
        """Behind the last event."""
        return max(self.timeline.last, 1) + 1

    def y(self, level: float) -> float:
        """The height of a level of loss."""
        return _BASE - (_BASE - _TOP) * level / self.highest

    def draw(self) -> tuple[Markup, float]:
        """Everything, and the height."""
        legend, height = self._legend()
        lanes = (self._lane(row, lane) for row, lane in enumerate(self.lanes))
        parts = [*self._head(), *self._grid(), *self._axis(), *self._burn_down(), *self._trace(), *lanes, *legend]
        return joined(*parts), height

    # the burn-down

    def _head(self) -> Iterator[Markup]:
        timeline, symbol = self.timeline, self.timeline.budget.symbol
        yield element("text", timeline.name, class_="title", x=20, y=30)
        ceiling = timeline.budget.ceiling
        places = decimals([timeline.lost, ceiling or 0])
        lost = f"{timeline.lost:.{places}f}" + (" lost" if ceiling is None else f" of {ceiling:g} is lost")
        lost += " by then" if timeline.after else ""
        if self.narrow:
            yield element("text", f"{symbol} {lost}", class_="end", x="96%", y=30)
        else:
            yield element("text", f"Loss {symbol}", class_="strong", x=20, y=_TOP + 4)
            yield element("text", lost, x=20, y=_TOP + 22)

    def _grid(self) -> Iterator[Markup]:
        ends = {"x1": percent(self.left), "x2": percent(self.right if self.narrow else 0.98)}
        marks = levels(self.highest)
        places = decimals(marks)
        for level in marks:
            y = self.y(level)
            yield element("line", class_="base" if not level else "grid", y1=y, y2=y, **ends)
            if self.narrow:
                if level:
                    yield element("text", f"{level:.{places}f}", class_="small faint halo", x=ends["x1"], y=y + 13)
            else:
                yield element("text", f"{level:.{places}f}", class_="small end faint", x=ends["x1"], dx=-8, y=y + 4)
        if self.timeline.budget.ceiling is not None:
            yield element("line", class_="ceiling", y1=_TOP, y2=_TOP, **ends)
        yield element("text", self.timeline.budget.words, class_="small strong", x=ends["x1"], y=_TOP - 8)
        if not self.timeline.events:
            words = "Nothing was launched yet."
            yield element("text", words, class_="faint mid", x=percent((self.left + self.right) / 2), y=_BASE - 76)
            how = (
                "launch(...) pays, ask(...) is free" if self.narrow else "session.launch(...) pays once; asking is free"
            )
            yield element("text", how, class_="small faint mid", x=percent((self.left + self.right) / 2), y=_BASE - 54)

    def _burn_down(self) -> Iterator[Markup]:
        steps = self._thinned()
        ends = [*(step.at for step in steps), self.now][1:]
        for step, end in zip(steps, ends, strict=True):
            spent = step.after - step.reserved
            x, width = self.x(step.at), percent(self._share(end) - self._share(step.at))
            yield element("rect", class_="spent", x=x, y=self.y(spent), width=width, height=_BASE - self.y(spent))
            if step.reserved > 0:
                high = self.y(spent) - self.y(step.after)
                yield element("rect", fill=self.hatch, x=x, y=self.y(step.after), width=width, height=high)
        for step, end in zip(steps, ends, strict=True):
            x, low, high = self.x(step.at), self.y(step.before), self.y(step.after)
            if self.timeline.has(step.at):
                yield element("line", class_="step", x1=x, x2=x, y1=low, y2=high)
            yield element("line", class_="step", x1=x, x2=self.x(end), y1=high, y2=high)
        for mark in self._apart(self.timeline.refusals):
            yield self._cross(mark.at, _TOP, mark.says)
        yield from self._numerals()
        if steps and not self.narrow:
            yield from self._sums()

    def _thinned(self) -> "list[_Level]":
        """The steps, or the last one in each of 200 places on the axis."""
        reserved = 0.0
        found: dict[int, _Level] = {}
        for step in self.timeline.steps:
            reserved += (step.after - step.before) if step.reserve else 0.0
            place = (
                step.at if len(self.timeline.steps) <= _MOST_STEPS else int(_MOST_STEPS * self.timeline.share(step.at))
            )
            first: _Level | Step = found.get(place, step)
            found[place] = _Level(first.at, first.before, step.after, reserved)
        return list(found.values())

    def _numerals(self) -> Iterator[Markup]:
        """A numeral at each step that has room for one, over dots at the others, as far as these stand apart."""
        steps = [step for step in self.timeline.steps if self.timeline.has(step.at)]
        numbered = self._spaced(steps, _CLOSE[self.narrow])
        for step in self._spaced(steps, _CLOSE[self.narrow] / 5):
            if step not in numbered:
                dot = element("circle", class_="launch", cx=self.x(step.at), cy=self.y(step.after), r=4)
                yield element("g", element("title", step.says), dot)
        for step in numbered:
            x, y = self.x(step.at), self.y(step.after)
            dot = element("circle", class_="launch", cx=x, cy=y, r=10 if len(step.number) < 3 else 13)
            numeral = element("text", step.number, class_="numeral", x=x, y=y + 4)
            yield element("g", element("title", step.says), dot, numeral)

    def _spaced(self, steps: Sequence[Step], gap: float) -> list[Step]:
        """The steps that stand at least so far from the one before, as a share of the plot."""
        found: list[Step] = []
        for step in steps:
            if not found or self.timeline.share(step.at) - self.timeline.share(found[-1].at) >= gap:
                found.append(step)
        return found

    def _sums(self) -> Iterator[Markup]:
        """What is left, reserved and spent, beside the end of the line."""
        timeline = self.timeline
        spent = timeline.lost - timeline.reserved
        sums = [("spent", 0.0, spent), ("reserved", spent, timeline.lost)]
        if timeline.budget.ceiling is not None:
            sums.append(("not spent" if timeline.ended else "left", timeline.lost, timeline.budget.ceiling))
        places = decimals([high - low for _, low, high in sums])
        lowest = float(_BASE)
        for word, low, high in sums:
            if high - low <= 0:
                continue
            y = min(max(self.y((low + high) / 2), _TOP + 16), lowest)  # below the ceiling, above the sum before
            lowest = y - 32  # two lines of the next one have to stand above
            yield element("text", f"{high - low:.{places}f}", class_="small strong", x=self.x(self.now), dx=10, y=y - 2)
            yield element("text", word, class_="small", x=self.x(self.now), dx=10, y=y + 12)

    # the lanes

    def _middle(self, row: int) -> float:
        """Where the line of a lane is."""
        return self.lanes_top + row * self.lane_height + (46 if self.narrow else 24)

    def _trace(self) -> Iterator[Markup]:
        """From each ask to the next, where that is in another lane."""
        if not self.trace or self.dense:
            return
        asks = sorted((mark.at, row) for row, lane in enumerate(self.lanes) for mark in lane.asks)
        lines = [
            element("line", x1=self.x(at), x2=self.x(then), y1=self._middle(row), y2=self._middle(other))
            for (at, row), (then, other) in pairwise(asks)
            if row != other
        ]
        yield element("g", *lines, class_="trace", aria_hidden="true")

    def _lane(self, row: int, lane: Lane) -> Markup:
        top, y = self.lanes_top + row * self.lane_height, self._middle(row)
        staff = element("line", class_="grid", x1=percent(self.left), x2=percent(self.right), y1=y, y2=y)
        parts = [element("title", lane.sentence), staff, *self._label(lane, top), *self._line(lane, y)]
        parts += self._density(lane, y) if self.dense or len(lane.starts) > 1 else self._asks(lane, y)
        parts += [self._cross(mark.at, y, mark.says) for mark in self._apart(lane.refusals)]
        return element("g", *parts, *self._launches(lane, y), aria_label=lane.sentence)

    def _label(self, lane: Lane, top: float) -> Iterator[Markup]:
        x, y = 30 + 24 * min(lane.depth, 3), top + (24 if self.narrow else 20)
        if lane.inner:
            high = top - (self.lane_height - 40 if self.narrow else 12)
            yield element("path", class_="nest", d=f"M{x - 20} {high:g}V{y - 4:g}h6")
        wide = 20 if len(lane.number) < 3 else 8 + 7 * len(lane.number)
        shape = "inner" if lane.inner else "launch"
        yield element("rect", class_=shape, x=x - 10, y=y - 14, width=wide, height=20, rx=10)
        numeral = "inner-numeral" if lane.inner else "numeral"
        yield element("text", lane.number, class_=numeral, x=x - 10 + wide / 2, y=y)
        beside = x + wide - 2
        yield element("text", short(lane.name, 22), class_="strong", x=beside, y=y)
        if self.narrow:
            detail = f"{lane.cost} · {lane.detail}" if lane.cost and not lane.reserve else lane.detail
            yield element("text", short(detail, 28), class_="small end faint halo", x="96%", y=y)
        else:
            yield element("text", short(lane.detail, 30), class_="small faint", x=beside, y=y + 16)

    def _halts(self, lane: Lane) -> bool:
        """Whether a mechanism halts in what is drawn."""
        return lane.halted is not None and self.timeline.has(lane.halted)

    def _line(self, lane: Lane, y: float) -> Iterator[Markup]:
        halts = self._halts(lane)
        end = lane.halted if lane.halted is not None and halts else self.now
        if lane.reserve:
            width = percent(self._share(end) - self._share(lane.start))
            yield element(
                "rect", class_="reserve", fill=self.hatch, x=self.x(lane.start), y=y - 5, width=width, height=10
            )
            return
        kind = "lane" if lane.halted is None else "over"
        yield element("line", class_=kind, x1=self.x(lane.start), x2=self.x(end), y1=y, y2=y)
        if not halts and not self.timeline.after:
            yield element("circle", class_="inner", cx=self.x(end), cy=y, r=3.5)
        elif halts:
            thin = element("line", class_="thin", x1=6, x2=6, y1=-10, y2=10)
            thick = element("rect", class_="thick", x=9, y=-10, width=4, height=20)
            yield element("svg", thin, thick, x=self.x(end), y=y, overflow="visible")

    def _asks(self, lane: Lane, y: float) -> Iterator[Markup]:
        for mark in lane.asks:
            x = self.x(mark.at)
            yield element("line", element("title", mark.says), class_="ask", x1=x, x2=x, y1=y - 8, y2=y + 8)

    def _bins(self, lane: Lane) -> list[int]:
        """How many asks are in each part of the axis."""
        bins = _BINS[self.narrow]
        found = Counter(int(bins * self.timeline.share(mark.at)) for mark in lane.asks)
        return [found[place] for place in range(bins)]

    def _density(self, lane: Lane, y: float) -> Iterator[Markup]:
        """Bars as high as asks are many, where single strokes would run into one another."""
        bins = self._bins(lane)
        most = max(self.most_asks, *bins)
        width = (self.right - self.left) / len(bins)
        for place, asks in enumerate(bins):
            if asks:
                high = 4 + 16 * asks / most
                x = percent(self.left + width * place)
                size = percent(0.6 * width)
                says = element("title", count(asks, "ask"))
                yield element("rect", says, class_="density", x=x, y=y - high / 2, width=size, height=high)

    def _launches(self, lane: Lane, y: float) -> Iterator[Markup]:
        folds = len(lane.starts) > 1
        starts = [start for start in lane.starts if self.timeline.has(start)]
        apart = {int(80 * self.timeline.share(start)): start for start in reversed(starts)}
        for start in sorted(apart.values()):
            shape, size = ("inner", 5) if lane.inner else ("launch", 7)
            yield element("circle", class_=shape, cx=self.x(start), cy=y, r=4 if folds else size)
        if lane.cost and starts and not folds and not self.narrow:
            yield element("text", lane.cost, class_="small strong halo", x=self.x(lane.start), dx=-6, y=y - 11)

    def _apart(self, marks: Sequence[Mark]) -> list[Mark]:
        """Marks that do not hide one another: of those at one place the last."""
        return list({int(100 * self.timeline.share(mark.at)): mark for mark in marks}.values())

    def _cross(self, at: float, y: float, says: str) -> Markup:
        shape = element("path", element("title", says), class_="refused", d="M-5-5 5 5M5-5-5 5")
        return element("svg", shape, x=self.x(at), y=y, overflow="visible")

    # below

    def _axis(self) -> Iterator[Markup]:
        y, timeline = self.axis, self.timeline
        if not self.narrow:
            title = "time, UTC" if timeline.times else "number of the event"
            yield element("text", title, class_="small faint", x=20, y=y)
        for share, word in self._marks():
            if timeline.share(self.now) - share > (0.15 if self.narrow else 0.08):
                x = percent(self.left + (self.right - self.left) * share)
                yield element("text", word, class_="small faint mid", x=x, y=y)
        if timeline.events and not timeline.after:
            x = self.x(self.now)
            yield element("line", class_="now", x1=x, x2=x, y1=_TOP, y2=y - 16)
            yield element("text", "now", class_="small strong mid", x=x, y=y)

    def _marks(self) -> list[tuple[float, str]]:
        """Round numbers of events, or round moments, and where they stand."""
        timeline = self.timeline
        if timeline.times:
            few = 2 if self.narrow else 1
            found = moments(timeline.times[0], timeline.times[-1])[::few]
            return [(timeline.share_of_time(seconds), word) for seconds, word in found]
        step = next((int(at) for at in levels(len(timeline.events))[1:] if at == int(at)), 1)
        numbers = range(step * (timeline.before // step + 1), timeline.last + 1, step)
        return [(timeline.share(at), f"{at:,}") for at in numbers]

    def _legend(self) -> tuple[list[Markup], float]:
        """What the marks mean that occur; one line, or two columns on a narrow page."""
        y, parts = self.axis + 34, []
        x = 30.0
        for number, (mark, word) in enumerate(self._meanings()):
            if self.narrow:
                x = 30 if number % 2 == 0 else 200
                y += 24 if number % 2 == 0 and number else 0
            parts.append(element("svg", mark, x=x, y=y - 4, overflow="visible"))
            parts.append(element("text", word, class_="small", x=x + 16, y=y))
            x += 44 + 6.6 * len(word)
        return parts, y + 20 if parts else self.axis + 8

    def _meanings(self) -> Iterator[tuple[Markup, str]]:
        lanes, timeline = self.lanes, self.timeline
        if lanes:
            yield element("circle", class_="launch", r=7), "launch, charged here"
        if any(lane.inner for lane in lanes):
            yield element("circle", class_="inner", r=5), "launch from a reserve"
        if timeline.asks and not self.dense:
            yield element("line", class_="ask", y1=-8, y2=8), "ask, free"
        if timeline.asks and self.dense:
            yield element("rect", class_="density", x=-4, y=-8, width=4, height=16), "asks, by how many"
        if any(event.kind == "refused" for event in timeline.events):
            yield element("path", class_="refused", d="M-5-5 5 5M5-5-5 5"), "refused, free"
        if any(self._halts(lane) for lane in lanes):
            thin = element("line", class_="thin", x1=-4, x2=-4, y1=-8, y2=8)
            yield joined(thin, element("rect", class_="thick", x=-1, y=-8, width=4, height=16)), "halted"
        if any(lane.reserve for lane in lanes):
            yield element("rect", class_="reserve", fill=self.hatch, x=-9, y=-5, width=18, height=10), "reserve"


@dataclass(frozen=True)
class _Level:
    """The loss from one event on, and how much of it is reserved."""

    at: int
    before: float
    after: float
    reserved: float

"""Charts of answers: error bars on one scale, and a line with its band for answers in a row, such as a counter's.

A value that is mostly noise is marked as such, in words and by its shape.

>>> cells = (ErrorBar("Paris", 902, 30), ErrorBar("Rome", 21, 30, "mostly noise", noisy=True))
>>> picture = ErrorBars("count by city", ("city",), cells, "95 %")
>>> print(picture.text(60))
city   value        -9                      932
Paris    902  ± 30  ───────────────────────├●┤
Rome      21  ± 30  ├●┤  mostly noise
>>> picture
<Picture: count by city: 2 values, each within its error with 95 %; 1 mostly noise.>

>>> picture = Series("Counter", ((0, 3.0, 5.0), (100, 90.0, 8.0), (200, 210.0, 9.0)), "items", "95 %")
>>> picture
<Picture: Counter: 3 answers; the last is 210 ± 9, with 95 %.>
>>> print(picture.text(40))
Counter  210 ± 9
▁▄▇
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from counterpoint.display.markup import Markup, Picture, Rows, element, joined, percent
from counterpoint.display.timeline import count, levels, short

_MOST_CELLS = 60
"""The most cells that are drawn; the picture says how many more there are."""

_TOP = 72.0
_PITCH = {False: 28.0, True: 34.0}
"""How far rows are apart on a wide and on a narrow page, where notes stand below keys."""

_ASCII = str.maketrans("●├┤─±…", "o[]-~.")


@dataclass(frozen=True, slots=True)
class ErrorBar:
    """A value with its error and a note; `noisy` if the value is mostly noise."""

    key: str
    value: float | None
    error: float | None = None
    note: str = ""
    noisy: bool = False
    interval: tuple[float, float] | None = None
    """The ends, where they are not equally far from the value."""

    @property
    def ends(self) -> tuple[float, float]:
        """The interval that the bar covers."""
        if self.interval is not None:
            return self.interval
        value, error = self.value or 0.0, self.error or 0.0
        return value - error, value + error


@dataclass(frozen=True, repr=False)
class ErrorBars(Picture):
    """The cells of an answer: what was asked, what the keys are, and with which probability each error holds."""

    asked: str
    keyed_by: tuple[str, ...]
    cells: tuple[ErrorBar, ...]
    sure: str

    @property
    def sentence(self) -> str:
        """How many values there are, and how many of them are mostly noise."""
        noisy = sum(cell.noisy for cell in self.cells)
        aloud = f"; {noisy:,} mostly noise" if noisy else ""
        return f"{self.asked}: {count(len(self.cells), 'value')}, each within its error with {self.sure}{aloud}."

    @property
    def scale(self) -> tuple[float, float]:
        """From the lowest to the highest end of an error bar, with 0 in it."""
        ends = [end for cell in self._shown for end in cell.ends]
        low, high = min([0.0, *ends]), max([0.0, *ends])
        return (low, high) if high > low else (low, low + 1)

    def draw(self, narrow: bool, hatch: str) -> tuple[Markup, float]:
        """A row for each cell: key, value, error, error bar."""
        rows = _Rows(self, narrow)
        pitch = _PITCH[narrow]
        lines = (rows.row(cell, _TOP + pitch * place + 10) for place, cell in enumerate(self._shown))
        bottom = _TOP + pitch * len(self._shown)
        more = [element("text", self._more, class_="small faint", x=20, y=bottom + 12)] if self._more else []
        return joined(*rows.head(bottom), *lines, *more), bottom + (28 if more else 12)

    def text(self, width: int, unicode: bool = True) -> str:
        """A line for each cell."""
        keys, cells = " ".join(self.keyed_by), self._shown
        errors = [_error(cell) for cell in cells]
        names = min(max(map(len, [keys, *(cell.key for cell in cells)])), 24)
        values = max(map(len, ["value", *(written(cell.value) for cell in cells)]))
        margin = names + 2 + values + 2 + max(map(len, errors), default=0) + 2
        columns = max(10, width - margin - 2 - max((len(cell.note) for cell in cells), default=0))
        low, high = self.scale
        scale = f"{written(low)}{written(high):>{columns - len(written(low)) + 1}}"
        lines = [f"{keys[:names]:{names}}  {'value':>{values}}".ljust(margin) + scale]
        for cell, error in zip(cells, errors, strict=True):
            start = f"{short(cell.key, names):{names}}  {written(cell.value):>{values}}  {error}".ljust(margin)
            lines.append(f"{start}{self._line(cell, columns)}  {cell.note}".rstrip())
        text = "\n".join([*lines, *([self._more] if self._more else [])])
        return text if unicode else text.translate(_ASCII).encode("ascii", "replace").decode()

    def _line(self, cell: ErrorBar, columns: int) -> str:
        """From 0 to the error bar, over `columns` columns."""
        if cell.value is None:
            return ""
        low, high = self.scale
        zero, value, *ends = (round((columns - 1) * (x - low) / (high - low)) for x in (0.0, cell.value, *cell.ends))
        line = [" "] * columns
        for place in range(min(zero, *ends), max(zero, *ends) + 1):
            line[place] = "─"
        line[ends[0]], line[ends[1]], line[value] = "├", "┤", "●"
        return "".join(line).rstrip()

    def rows(self) -> tuple[tuple[str, ...], Rows]:
        """Keys, values and errors."""
        head = (" and ".join(self.keyed_by), "value", f"error at {self.sure}", "")
        return head, [(cell.key, written(cell.value), _error(cell), cell.note) for cell in self.cells]

    @property
    def _shown(self) -> tuple[ErrorBar, ...]:
        return self.cells[:_MOST_CELLS]

    @property
    def _more(self) -> str:
        left = len(self.cells) - _MOST_CELLS
        return f"and {left:,} more" if left > 0 else ""


class _Rows:
    """One layout of error bars: columns for key, value and error, and the scale."""

    def __init__(self, picture: ErrorBars, narrow: bool) -> None:
        self.picture = picture
        self.narrow = narrow
        self.left, self.right = (0.62, 0.93) if narrow else (0.46, 0.8)
        self.value, self.error = (0.38, 0.55) if narrow else (0.34, 0.43)

    def x(self, value: float) -> str:
        """The place of a value on the scale."""
        low, high = self.picture.scale
        return percent(self.left + (self.right - self.left) * (value - low) / (high - low))

    def head(self, bottom: float) -> Iterator[Markup]:
        """What was asked, the names of the columns, and the scale."""
        picture = self.picture
        yield element("text", short(picture.asked, 34 if self.narrow else 100), class_="title", x=20, y=30)
        yield element("text", " and ".join(picture.keyed_by), class_="small faint", x=20, y=58)
        yield element("text", f"± at {picture.sure}", class_="small faint end", x=percent(self.error), y=58)
        for mark in sorted({0.0, *picture.scale}):
            kind = "grid" if mark else "base"
            yield element("line", class_=kind, x1=self.x(mark), x2=self.x(mark), y1=64, y2=bottom)
            yield element("text", written(mark), class_="small faint mid", x=self.x(mark), y=58)

    def row(self, cell: ErrorBar, y: float) -> Markup:
        """One cell."""
        shown = f"{cell.key}: {written(cell.value)} {_error(cell)} {cell.note}".rstrip()
        parts = [
            element("title", shown),
            element("text", short(cell.key, 12 if self.narrow else 34), x=20, y=y + 4),
            element("text", written(cell.value), class_="strong end", x=percent(self.value), y=y + 4),
            element("text", _error(cell), class_="small end", x=percent(self.error), y=y + 4),
            *self._error_bar(cell, y),
        ]
        if cell.note and not self.narrow:
            parts.append(element("text", cell.note, class_="small stop", x=percent(self.right + 0.02), y=y + 4))
        elif cell.note:  # there is no room beside the scale
            parts.append(element("text", cell.note, class_="tiny stop", x=20, y=y + 15))
        return element("g", *parts, aria_label=shown)

    def _error_bar(self, cell: ErrorBar, y: float) -> Iterator[Markup]:
        """A line between its ends; dashed, and an open point, where the value is mostly noise."""
        if cell.value is None:
            return
        line, point = ("noisy", "noisy-point") if cell.noisy else ("whisker", "point")
        if cell.error is not None or cell.interval is not None:
            low, high = map(self.x, cell.ends)
            yield element("line", class_=line, x1=low, x2=high, y1=y, y2=y)
            for end in (low, high):
                yield element("line", class_=f"{line}-end", x1=end, x2=end, y1=y - 5, y2=y + 5)
        yield element("circle", class_=point, cx=self.x(cell.value), cy=y, r=4)


def written(value: float | None) -> str:
    """A number as people write it.

    >>> written(1234), written(0.123456789), written(2.0), written(None), written(1e-7)
    ('1,234', '0.1235', '2', '?', '1e-07')
    """
    if value is None:
        return "?"
    return f"{value:,.0f}" if value == int(value) else f"{value:,.4g}" if abs(value) < 1000 else f"{value:,.1f}"


def _error(cell: ErrorBar) -> str:
    if cell.interval is not None:
        return f"{written(cell.interval[0])} to {written(cell.interval[1])}"
    return "" if cell.error is None else f"± {written(cell.error)}"


_MOST_POINTS = 400
"""The most points that are drawn: of more, each place on the axis shows its last."""

_CEILING, _BASE = 56.0, 256.0
_BARS, _DIGIT_BARS = "▁▂▃▄▅▆▇█", "12345678"

Point = tuple[float, float, float]
"""Where it was asked, the answer, and how far off that is at most."""


@dataclass(frozen=True, repr=False)
class Series(Picture):
    """Points in order: at how many `steps` (items of a stream, asks) each was asked, the answer and its error."""

    asked: str
    points: tuple[Point, ...]
    steps: str
    sure: str

    @property
    def sentence(self) -> str:
        """How many there are, and the last."""
        if not self.points:
            return f"{self.asked}: no answers yet."
        _, value, error = self.points[-1]
        shown = f"{written(value)} ± {written(error)}"
        return f"{self.asked}: {count(len(self.points), 'answer')}; the last is {shown}, with {self.sure}."

    def draw(self, narrow: bool, hatch: str) -> tuple[Markup, float]:
        """The line over its band."""
        return joined(*_Plot(self, narrow).parts()), _BASE + 44

    def text(self, width: int, unicode: bool = True) -> str:
        """A sparkline, and the last answer."""
        if not self.points:
            return self.sentence
        points = thinned(self.points, width)
        low, high = min(0.0, *(value for _, value, _ in points)), max(value for _, value, _ in points)
        signs = _BARS if unicode else _DIGIT_BARS
        bars = (signs[round((len(signs) - 2) * (value - low) / ((high - low) or 1))] for _, value, _ in points)
        _, last, error = self.points[-1]
        sign = "±" if unicode else "+-"
        return f"{self.asked}  {written(last)} {sign} {written(error)}\n{''.join(bars)}"

    def rows(self) -> tuple[tuple[str, ...], Rows]:
        """The points."""
        return (self.steps, "answer", f"error at {self.sure}"), [
            (written(at), written(value), f"± {written(error)}") for at, value, error in self.points
        ]


class _Plot:
    """One layout of a series."""

    def __init__(self, picture: Series, narrow: bool) -> None:
        self.picture = picture
        self.points = thinned(picture.points, _MOST_POINTS)
        self.left, self.right = (0.12, 0.96) if narrow else (0.09, 0.86)
        self.narrow = narrow
        self.first, self.last = (self.points[0][0], self.points[-1][0]) if self.points else (0.0, 1.0)
        self.low = min([0.0, *(value - error for _, value, error in self.points)])
        self.high = max([0.0, *(value + error for _, value, error in self.points)]) or 1.0

    def share(self, at: float) -> float:
        """The place of a step on the axis."""
        return self.left + (self.right - self.left) * (at - self.first) / ((self.last - self.first) or 1)

    def y(self, value: float) -> float:
        """The place of a value on the axis."""
        return _BASE - (_BASE - _CEILING) * (value - self.low) / (self.high - self.low)

    def parts(self) -> Iterator[Markup]:
        """Everything."""
        picture = self.picture
        yield element("text", short(picture.asked, 34 if self.narrow else 100), class_="title", x=20, y=30)
        for level in levels(self.high):
            y = self.y(level)
            ends = {"x1": percent(self.left), "x2": percent(self.right)}
            yield element("line", class_="grid" if level else "base", y1=y, y2=y, **ends)
            yield element("text", written(level), class_="small faint end", x=percent(self.left), dx=-8, y=y + 4)
        yield from self._curve()
        for at in (self.first, self.last) if self.points else ():
            yield element("text", written(at), class_="small faint mid", x=percent(self.share(at)), y=_BASE + 20)
        middle = percent((self.left + self.right) / 2)
        yield element("text", picture.steps, class_="small faint mid", x=middle, y=_BASE + 20)

    def _curve(self) -> Iterator[Markup]:
        """The band, the line, and the last answer in words. Percent keeps each piece where it belongs at any width."""
        for (at, value, error), (then, *_) in pairwise(self.points):
            wide = percent(self.share(then) - self.share(at))
            top, bottom = self.y(value + error), self.y(value - error)
            yield element("rect", class_="band", x=percent(self.share(at)), y=top, width=wide, height=bottom - top)
        for (at, value, _), (then, after, _) in pairwise(self.points):
            x1, x2 = percent(self.share(at)), percent(self.share(then))
            yield element("line", class_="path", x1=x1, x2=x2, y1=self.y(value), y2=self.y(value))
            yield element("line", class_="path", x1=x2, x2=x2, y1=self.y(value), y2=self.y(after))
        if self.points:
            at, value, error = self.points[-1]
            x, y = percent(self.share(at)), self.y(value)
            low, high = self.y(value - error), self.y(value + error)
            yield element("line", class_="whisker", x1=x, x2=x, y1=low, y2=high)
            yield element("circle", class_="point", cx=x, cy=y, r=4)
            words = f"{written(value)} ± {written(error)}"
            place, anchor = ({"dx": -8}, "strong end halo") if self.narrow else ({"dx": 10}, "strong")
            yield element("text", words, class_=anchor, x=x, y=y - (8 if self.narrow else -4), **place)


def thinned(points: tuple[Point, ...], most: int) -> tuple[Point, ...]:
    """At most `most` points: of those that fall into one place, the last.

    >>> len(thinned(tuple((n, n, 1) for n in range(1000)), 400))
    400
    """
    if len(points) <= most:
        return points
    return tuple({number * most // len(points): point for number, point in enumerate(points)}.values())

"""Answers one after the other, such as those of a counter: a line, and the band of its error.

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

from counterpoint.pictures.markup import Markup, element, joined, percent
from counterpoint.pictures.picture import Picture, Rows
from counterpoint.pictures.score import count, levels, short
from counterpoint.pictures.whiskers import written

_MOST = 400
"""The most points that are drawn: of more, each place on the axis shows its last."""

_TOP, _BASE = 56.0, 256.0
_BARS, _PLAIN = "▁▂▃▄▅▆▇█", "12345678"

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
        signs = _BARS if unicode else _PLAIN
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
        self.points = thinned(picture.points, _MOST)
        self.left, self.right = (0.12, 0.96) if narrow else (0.09, 0.86)
        self.narrow = narrow
        self.first, self.last = (self.points[0][0], self.points[-1][0]) if self.points else (0.0, 1.0)
        self.low = min([0.0, *(value - error for _, value, error in self.points)])
        self.high = max([0.0, *(value + error for _, value, error in self.points)]) or 1.0

    def share(self, at: float) -> float:
        """Where a step stands."""
        return self.left + (self.right - self.left) * (at - self.first) / ((self.last - self.first) or 1)

    def y(self, value: float) -> float:
        """Where a value stands."""
        return _BASE - (_BASE - _TOP) * (value - self.low) / (self.high - self.low)

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

"""The figures of docs/benchmarks.md: ratios as dots, and times by size as lines, on scales that multiply.

They stand on a ground of their own, light or dark as the system is. Each library has a shape and a colour.
"""

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from counterpoint.display.markup import DRAWN, Markup, element, joined
from peers.library import Library

COLOURS = ["#2f7fd0", "#d9772b", "#2f9e5b", "#a06cd5", "#d0516a", "#1f9aa8", "#8a8a3a"]
WIDTH, LEFT, RIGHT, TOP, STEP = 860, 300, 820, 76, 30
SHEET = DRAWN + "".join(
    f".cp-picture .lib{place}{{fill:{colour};stroke:{colour}}}" for place, colour in enumerate(COLOURS)
)


class Scale(NamedTuple):
    """Places on a scale that multiplies, between two powers of ten.

    >>> Scale(0.1, 10, 0, 100).at(1)
    50.0
    """

    low: float
    high: float
    start: float
    end: float

    def at(self, value: float) -> float:
        """Where a value stands."""
        share = math.log(value / self.low) / math.log(self.high / self.low)
        return self.start + (self.end - self.start) * share

    def powers(self) -> list[float]:
        """The powers of ten on it."""
        return [10.0**n for n in range(round(math.log10(self.low)), round(math.log10(self.high)) + 1)]


def around(values: Sequence[float], start: float, end: float) -> Scale:
    """A scale from the power of ten below all values, and below 1 if it is among them, to the one above."""
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    return Scale(10.0**low, 10.0 ** max(high, low + 1), start, end)


def dots(
    title: str, rows: Mapping[str, Mapping[str, float]], libraries: Sequence[Library], left: str, right: str
) -> str:
    """A row for each task and a dot for each library that has one, by how many times ours it takes.

    A library's place in the list chooses its shape and colour.
    """
    values = [value for row in rows.values() for value in row.values()]
    scale = around([*values, 1.0], LEFT, RIGHT)
    bottom = TOP + STEP * len(rows)
    parts = [*_grid(scale, bottom), *_legend(libraries, {name for row in rows.values() for name in row}, bottom + 62)]
    parts.append(element("text", left, class_="small", x=scale.at(1) - 8, y=TOP - 10, text_anchor="end"))
    parts.append(element("text", right, class_="small", x=scale.at(1) + 8, y=TOP - 10))
    for place, (name, row) in enumerate(rows.items()):
        y = TOP + STEP * place + STEP / 2
        parts.append(element("text", name, class_="small end", x=LEFT - 12, y=y + 4))
        parts += [
            _mark(number, scale.at(row[each.name]), y) for number, each in enumerate(libraries) if each.name in row
        ]
    return _svg(title, parts, bottom + 84)


def lines(
    title: str,
    curves: Mapping[str, Mapping[int, float]],
    libraries: Sequence[Library],
    across: str,
    spell: Callable[[float], str],
) -> str:
    """A line for each library, by the size; `spell` writes a level."""
    sizes = sorted({size for curve in curves.values() for size in curve})
    times = [value for curve in curves.values() for value in curve.values()]
    x, y = Scale(sizes[0], sizes[-1], 90, RIGHT), around(times, TOP + 260, TOP)
    parts: list[Markup] = []
    for level in y.powers():
        parts.append(element("line", class_="grid", x1=90, x2=RIGHT, y1=y.at(level), y2=y.at(level)))
        parts.append(element("text", spell(level), class_="small faint end", x=82, y=y.at(level) + 4))
    parts += [element("text", f"{size:,}", class_="small faint mid", x=x.at(size), y=TOP + 282) for size in sizes]
    parts.append(element("text", across, class_="small mid", x=(90 + RIGHT) / 2, y=TOP + 304))
    for number, library in enumerate(libraries):
        points = [(x.at(size), y.at(value)) for size, value in sorted(curves.get(library.name, {}).items())]
        for (x1, y1), (x2, y2) in pairwise(points):
            parts.append(element("line", class_=f"lib{number}", x1=x1, y1=y1, x2=x2, y2=y2, stroke_width="2"))
        parts += [_mark(number, *point) for point in points]
    return _svg(title, [*parts, *_legend(libraries, curves, TOP + 334)], TOP + 356)


def _grid(scale: Scale, bottom: float) -> Iterator[Markup]:
    for power in scale.powers():
        at, kind = scale.at(power), "base" if power == 1 else "grid"
        yield element("line", class_=kind, x1=at, x2=at, y1=TOP, y2=bottom)
        yield element("text", f"{power:,g}x", class_="small faint mid", x=at, y=bottom + 20)


def _legend(libraries: Sequence[Library], shown: Collection[str], y: float) -> Iterator[Markup]:
    x = 24.0
    for number, library in enumerate(libraries):
        if library.name not in shown:
            continue
        yield _mark(number, x, y - 4)
        yield element("text", library.title, class_="small", x=x + 12, y=y)
        x += 40 + 7.2 * len(library.title)


def _mark(number: int, x: float, y: float) -> Markup:
    """A shape for each library: a disc, a square, a diamond, triangles up and down, a ring and a cross."""
    kind = f"lib{number}"
    outlines = {
        1: [(-5, -5), (5, -5), (5, 5), (-5, 5)],
        2: [(0, -7), (7, 0), (0, 7), (-7, 0)],
        3: [(0, -6), (6, 5), (-6, 5)],
        4: [(0, 6), (6, -5), (-6, -5)],
        6: [(-6, -2), (-2, -2), (-2, -6), (2, -6), (2, -2), (6, -2), (6, 2), (2, 2), (2, 6), (-2, 6), (-2, 2), (-6, 2)],
    }
    if number in outlines:
        points = " ".join(f"{x + dx:.1f},{y + dy:.1f}" for dx, dy in outlines[number])
        return element("polygon", class_=kind, points=points)
    if number == 5:
        return element("circle", class_=kind, cx=x, cy=y, r=4.5, stroke_width="2.5", style="fill:none")
    return element("circle", class_=kind, cx=x, cy=y, r=5.5)


def _svg(title: str, parts: Sequence[Markup], height: float) -> str:
    ground = element("rect", class_="ground", x=0.5, y=0.5, width=WIDTH - 1, height=height - 1, rx=8)
    heading = element("text", title, class_="title", x=20, y=32)
    drawn = element(
        "svg",
        element("style", Markup(SHEET)),
        joined(ground, heading, *parts),
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {WIDTH} {height:g}",
        width=WIDTH,
        height=height,
        class_="cp-picture",
        role="img",
        aria_label=title,
    )
    return f"{drawn}\n"

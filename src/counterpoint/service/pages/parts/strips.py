"""A strip: how many things happened when, as bars that lead there. It tells where to look in much.

>>> bins = binned([1.0, 1.5, 9.0], [False, False, True], 0.0, 10.0, most=5)
>>> [(one.first, one.count, one.refused) for one in bins]
[(0, 2, 0), (2, 0, 0), (2, 0, 0), (2, 0, 0), (2, 1, 1)]
"""

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from counterpoint.pictures.markup import element, joined, percent
from counterpoint.pictures.score import count
from counterpoint.service.pages.parts.rendering import drawn

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
    inside = [min(most - 1, max(0, int((place - low) / width))) for place in places]
    found = []
    for number in range(most):
        first, last = bisect_left(inside, number), bisect_left(inside, number + 1)
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

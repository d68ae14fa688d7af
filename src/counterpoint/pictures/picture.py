"""A picture: an SVG for a file, a figure for a notebook, marks for a terminal. It holds public values only.

>>> from counterpoint import PureDP, Session, Stream
>>> picture = Session(Stream(bound=1), within=PureDP(1)).plot()
>>> picture
<Picture: Nothing was launched yet; budget ε 1.>
>>> picture._repr_svg_().startswith("<svg")
True
"""

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from hashlib import sha256
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from counterpoint.errors import InvalidParameter
from counterpoint.pictures.markup import Markup, element, joined
from counterpoint.pictures.styles import DRAWN, SHEET

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions
    from rich.text import Text

WIDE, NARROW = 960, 390
"""The widths for which the two layouts are drawn, in pixels; each is fluid around its own."""

_MOST_ROWS = 500

Rows = Sequence[Sequence[str]]


class Picture:
    """What `plot()` returns: shown as it is in a notebook, printed by rich in a terminal, saved as an SVG.

    A subclass says in one sentence what it shows, draws itself for a wide and for a narrow page, and offers the same as
    a table.
    """

    @property
    @abstractmethod
    def sentence(self) -> str:
        """What the picture shows: for screen readers, and as its repr."""

    @abstractmethod
    def draw(self, narrow: bool, hatch: str) -> tuple[Markup, float]:
        """The drawing, x in percent and y in pixels, and its height. `hatch` is the id of the reserve's pattern."""

    @abstractmethod
    def text(self, width: int, unicode: bool = True) -> str:
        """The lines that a terminal of this width shows."""

    @abstractmethod
    def rows(self) -> tuple[Sequence[str], Rows]:
        """The same as a table: heads and rows."""

    def svg(self, *, narrow: bool = False) -> str:
        """A picture that needs nothing else: styles, light and dark, and a size."""
        width = NARROW if narrow else WIDE
        drawing, height = self._drawn(narrow)
        return element(
            "svg",
            element("style", Markup(DRAWN)),
            drawing,
            xmlns="http://www.w3.org/2000/svg",
            viewBox=f"0 0 {width} {height:g}",
            width=width,
            height=height,
            class_="cp-picture",
            role="img",
            aria_label=self.sentence,
        )

    def inline(self, *, narrow: bool = False) -> Markup:
        """The drawing for a page that has the style sheet: as wide as its place, as high as it must be."""
        drawing, height = self._drawn(narrow)
        layout = "cp-narrow" if narrow else "cp-wide"
        return element(
            "svg",
            drawing,
            width="100%",
            height=height,
            class_=f"cp-picture {layout}",
            role="img",
            aria_label=self.sentence,
        )

    def _drawn(self, narrow: bool) -> tuple[Markup, float]:
        """The drawing on its ground; the id of the pattern is its own, as other pictures may be on the same page."""
        layout = "narrow" if narrow else "wide"
        hatch = f"cp-{sha256(f'{layout} {self.rows()}'.encode()).hexdigest()[:12]}"
        drawing, height = self.draw(narrow, hatch)
        ground = element("rect", class_="ground", x=0.5, y=0.5, width="99.9%", height=height - 1, rx=8)
        return joined(_pattern(hatch), ground, drawing), height

    def figure(self) -> Markup:
        """Both layouts, of which the style sheet shows the one that fits, and the same as a table."""
        return element("figure", self.inline(), self.inline(narrow=True), self._table(), class_="cp-picture cp-figure")

    def _table(self) -> Markup:
        heads, rows = self.rows()
        left = len(rows) - _MOST_ROWS
        more = [element("p", f"and {left} more")] if left > 0 else []
        body = [_row("td", row) for row in rows[:_MOST_ROWS]]
        table = element("table", element("thead", _row("th", heads)), element("tbody", *body))
        return element("details", element("summary", "The same as a table"), table, *more)

    def save(self, path: str | PathLike[str]) -> None:
        """Write it as an SVG, which browsers, editors and README pages show."""
        target = Path(path)
        if target.suffix.lower() != ".svg":
            raise InvalidParameter(f"a picture is saved as an SVG: say save('{target.with_suffix('.svg')}')")
        target.write_text(self.svg() + "\n", encoding="utf-8")

    def _repr_svg_(self) -> str:
        return self.svg()

    def _repr_html_(self) -> str:
        return joined(element("style", Markup(SHEET)), self.figure())

    def __rich_console__(self, console: "Console", options: "ConsoleOptions") -> "Iterator[Text]":
        from rich.text import Text  # noqa: PLC0415 - rich is imported only where something is shown

        unicode = options.encoding.lower().startswith("utf")
        for line in self.text(options.max_width, unicode).splitlines():
            yield _coloured(Text(line, no_wrap=True, overflow="crop"))

    def __str__(self) -> str:
        return self.text(80)

    def __repr__(self) -> str:
        return f"<Picture: {self.sentence}>"


def _coloured(line: "Text") -> "Text":
    """Blue for what was launched, orange for what was refused; rich leaves colours out where NO_COLOR is set."""
    line.highlight_regex(r"[●○▒█▂▃▄▅▆▇┄]", "blue")
    line.highlight_regex(r"×|mostly noise", "dark_orange3")
    return line


def _row(tag: str, cells: Sequence[str]) -> Markup:
    return element("tr", *(element(tag, cell) for cell in cells))


def _pattern(name: str) -> Markup:
    """The hatch of what is reserved."""
    return element(
        "defs",
        element(
            "pattern",
            element("rect", width=6, height=6, class_="hatch-ground"),
            element("line", x1=0, y1=0, x2=0, y2=6, class_="hatch-line"),
            id=name,
            width=6,
            height=6,
            patternUnits="userSpaceOnUse",
            patternTransform="rotate(45)",
        ),
    )

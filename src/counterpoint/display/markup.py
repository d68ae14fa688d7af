"""What all pictures share: escaped markup, one style sheet, files, notebooks and terminals, and foldable trees.

Keys, requests and session names are chosen by people and may look like markup, so everything is escaped that is not
`Markup` already. Every rule of the style sheet begins with `.cp-picture`, so nothing else on a page changes; dark
follows the system unless the page names its theme (Jupyter and VS Code do), and each mark differs in shape, too, so a
picture reads in grey. A picture holds public values only.

>>> element("text", "a < b", x=1.5, class_="strong", aria_label='say "b"')
'<text x="1.5" class="strong" aria-label="say &quot;b&quot;">a &lt; b</text>'

>>> SHEET.count("{") == SHEET.count("}")
True
>>> all(".cp-picture" in rule for rule in SHEET.replace("@media", "").split("}") if "{" in rule and "--" not in rule)
True

>>> from counterpoint import PureDP, Session, Stream
>>> picture = Session(Stream(bound=1), within=PureDP(1)).plot()
>>> picture
<Picture: Nothing was launched yet; budget ε 1.>
>>> picture._repr_svg_().startswith("<svg")
True

>>> from counterpoint.privacy.certificates import Certificate
>>> inner = Certificate("each answer is PureDP(0.1)", "discrete Laplace")
>>> print(as_details(Certificate("two answers are PureDP(0.2)", "basic composition", (inner,))))
<details open=""><summary>two answers are PureDP(0.2)</summary><span class="cp-by">basic composition</span>...
"""

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from hashlib import sha256
from html import escape
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from counterpoint.errors import InvalidParameter

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions
    from rich.text import Text
    from rich.tree import Tree


class Markup(str):
    """Text that is markup already, and stays as it is."""

    __slots__ = ()


def element(tag: str, *inside: str, **attributes: str | float | None) -> Markup:
    """An element of SVG or HTML. An attribute that is None is left out; `class_` is class, `aria_label` aria-label."""
    written = "".join(f" {_name(key)}={_value(value)}" for key, value in attributes.items() if value is not None)
    return Markup(f"<{tag}{written}>{joined(*inside)}</{tag}>")


def joined(*parts: str) -> Markup:
    """The parts joined; text that is not `Markup` is escaped.

    >>> joined(element("b", "x"), " & y")
    '<b>x</b> &amp; y'
    """
    return Markup("".join(part if isinstance(part, Markup) else escape(part) for part in parts))


def percent(share: float) -> str:
    """A share of the width, as SVG writes it.

    >>> percent(0.25), percent(1 / 3)
    ('25%', '33.33%')
    """
    return f"{100 * share:.2f}".rstrip("0").rstrip(".") + "%"


def _name(key: str) -> str:
    return key.rstrip("_").replace("_", "-")


def _value(value: str | float) -> str:
    written = value if isinstance(value, str) else f"{value:.2f}".rstrip("0").rstrip(".")
    return f'"{escape(written)}"'


_LIGHT = {
    "surface": "#ffffff",
    "sunk": "#f4f2ed",
    "line": "#e5e2da",
    "line-strong": "#8b877d",
    "ink": "#1a1c20",
    "ink-2": "#4f535b",
    "ink-3": "#696d75",
    "voice": "#1d5fa6",
    "voice-soft": "#d9e6f4",
    "on-voice": "#ffffff",
    "stop": "#b0410b",
    "stop-soft": "#fbeae0",
}
_DARK = {
    "surface": "#171a20",
    "sunk": "#1e222a",
    "line": "#2a2f38",
    "line-strong": "#767d8a",
    "ink": "#ecebe6",
    "ink-2": "#b6bac2",
    "ink-3": "#959ba6",
    "voice": "#7cb7f2",
    "voice-soft": "#1c3350",
    "on-voice": "#0c1929",
    "stop": "#ff9d6c",
    "stop-soft": "#3a2217",
}


def _tokens(colours: dict[str, str]) -> str:
    return "".join(f"--cp-{name}:{colour};" for name, colour in colours.items())


_SANS = 'system-ui,-apple-system,"Segoe UI",Roboto,"Noto Sans","Helvetica Neue",sans-serif'

_TOKENS = f"""
.cp-picture{{{_tokens(_LIGHT)}}}
@media (prefers-color-scheme:dark){{.cp-picture{{{_tokens(_DARK)}}}}}
[data-jp-theme-light="true"] .cp-picture,.vscode-light .cp-picture{{{_tokens(_LIGHT)}}}
[data-jp-theme-light="false"] .cp-picture,.vscode-dark .cp-picture{{{_tokens(_DARK)}}}
"""

_DRAWN = f"""
.cp-picture text{{font:13px {_SANS};font-variant-numeric:tabular-nums;fill:var(--cp-ink-2);stroke:none}}
.cp-picture .strong{{font-weight:600;fill:var(--cp-ink)}}
.cp-picture .title{{font-size:15px;font-weight:600;fill:var(--cp-ink)}}
.cp-picture .small{{font-size:12px}}
.cp-picture .tiny{{font-size:11px}}
.cp-picture .faint{{fill:var(--cp-ink-3)}}
.cp-picture .end{{text-anchor:end}}
.cp-picture .mid{{text-anchor:middle}}
.cp-picture .halo{{paint-order:stroke;stroke:var(--cp-surface);stroke-width:4px;stroke-linejoin:round}}
.cp-picture .ground{{fill:var(--cp-surface);stroke:var(--cp-line)}}
.cp-picture .grid{{stroke:var(--cp-line)}}
.cp-picture .base{{stroke:var(--cp-line-strong)}}
.cp-picture .ceiling{{stroke:var(--cp-ink);stroke-width:2}}
.cp-picture .now{{stroke:var(--cp-ink-3);stroke-dasharray:2 3}}
.cp-picture .spent{{fill:var(--cp-voice-soft);shape-rendering:crispEdges}}
.cp-picture .step{{stroke:var(--cp-voice);stroke-width:2}}
.cp-picture .reserve{{stroke:var(--cp-voice)}}
.cp-picture .hatch-ground{{fill:var(--cp-voice-soft)}}
.cp-picture .hatch-line{{stroke:var(--cp-voice);stroke-width:2}}
.cp-picture .launch{{fill:var(--cp-voice);stroke:var(--cp-surface);stroke-width:2}}
.cp-picture .inner{{fill:var(--cp-surface);stroke:var(--cp-voice);stroke-width:2}}
.cp-picture .numeral{{font-size:12px;font-weight:600;fill:var(--cp-on-voice);text-anchor:middle}}
.cp-picture .inner-numeral{{font-size:12px;font-weight:600;fill:var(--cp-voice);text-anchor:middle}}
.cp-picture .lane{{stroke:var(--cp-voice);stroke-width:2}}
.cp-picture .over{{stroke:var(--cp-ink-3);stroke-width:2}}
.cp-picture .ask{{stroke:var(--cp-ink);stroke-width:2}}
.cp-picture .density{{fill:var(--cp-ink)}}
.cp-picture .refused{{stroke:var(--cp-stop);stroke-width:2;fill:none}}
.cp-picture .thin{{stroke:var(--cp-ink);stroke-width:1.5}}
.cp-picture .thick{{fill:var(--cp-ink)}}
.cp-picture .nest{{stroke:var(--cp-line-strong);fill:none}}
.cp-picture .whisker{{stroke:var(--cp-voice);stroke-width:2}}
.cp-picture .point{{fill:var(--cp-voice)}}
.cp-picture .noisy{{stroke:var(--cp-stop);stroke-width:2;stroke-dasharray:3 2}}
.cp-picture .whisker-end{{stroke:var(--cp-voice);stroke-width:1.5}}
.cp-picture .noisy-end{{stroke:var(--cp-stop);stroke-width:1.5}}
.cp-picture .noisy-point{{fill:var(--cp-surface);stroke:var(--cp-stop);stroke-width:2}}
.cp-picture .stop{{fill:var(--cp-stop)}}
.cp-picture .band{{fill:var(--cp-voice-soft);shape-rendering:crispEdges}}
.cp-picture .path{{stroke:var(--cp-voice);stroke-width:2;fill:none}}
"""

_AROUND = f"""
.cp-picture.cp-figure{{margin:0;max-width:1120px;font:14px/20px {_SANS};color:var(--cp-ink);container-type:inline-size}}
.cp-picture.cp-figure svg{{display:block;overflow:visible}}
.cp-picture.cp-figure .cp-narrow{{display:none}}
@container (max-width:640px){{.cp-picture.cp-figure .cp-wide{{display:none}}}}
@container (max-width:640px){{.cp-picture.cp-figure .cp-narrow{{display:block}}}}
.cp-picture summary{{cursor:pointer;padding:4px 8px;color:var(--cp-ink-2)}}
.cp-picture details table{{border-collapse:collapse;font-variant-numeric:tabular-nums}}
.cp-picture details td,.cp-picture details th{{text-align:left;padding:2px 12px 2px 8px;vertical-align:top}}
.cp-picture details th{{color:var(--cp-ink-2);font-weight:600}}
.cp-picture .cp-tree{{background:var(--cp-surface);border:1px solid var(--cp-line);border-radius:8px;padding:8px 16px}}
.cp-picture .cp-tree summary{{padding:4px 0;color:var(--cp-ink)}}
.cp-picture .cp-tree ul{{list-style:none;margin:0 0 0 4px;padding:0 0 0 16px;border-left:1px solid var(--cp-line)}}
.cp-picture .cp-tree li{{margin:0;padding:4px 0}}
.cp-picture .cp-by{{display:block;color:var(--cp-ink-2);padding-left:16px}}
.cp-picture li>.cp-by{{padding-left:0}}
@media print{{.cp-picture details::details-content{{content-visibility:visible;block-size:auto}}}}
"""


def _compact(sheet: str) -> str:
    return sheet.replace("\n", "")


DRAWN = _compact(_TOKENS + _DRAWN)
"""What an SVG needs that stands alone."""

SHEET = _compact(_TOKENS + _DRAWN + _AROUND)
"""What a page needs that shows figures; a page with a strict content security policy serves it as a file."""

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
        """Both layouts and a table; the style sheet shows the layout that fits."""
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
            raise InvalidParameter(f"a picture is saved as an SVG: use save('{target.with_suffix('.svg')}')")
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


_OPEN = 2
"""How many levels are unfolded at first."""
_MANY = 12
"""How many premises of one line are shown; the others are folded."""


class Derivation(Protocol):
    """A statement, why it holds, and what it rests on."""

    @property
    def statement(self) -> str:
        """What holds."""

    @property
    def theorem(self) -> str:
        """By which theorem."""

    @property
    def premises(self) -> "Sequence[Derivation]":
        """From what."""


def as_details(root: Derivation, depth: int = 0) -> Markup:
    """Nested `<details>`; one without premises is a line."""
    by = element("span", root.theorem, class_="cp-by")
    if not root.premises:
        return joined(element("span", root.statement), by)
    lines = [element("li", as_details(premise, depth + 1)) for premise in root.premises]
    if len(lines) > _MANY + 1:
        more = element("summary", f"and {len(lines) - _MANY} more")
        lines[_MANY:] = [element("li", element("details", more, element("ul", *lines[_MANY:])))]
    unfolded = "" if depth < _OPEN else None
    return element("details", element("summary", root.statement), by, element("ul", *lines), open=unfolded)


def as_page(root: Derivation) -> Markup:
    """The tree with its styles, for a notebook."""
    tree = element("div", as_details(root), class_="cp-tree")
    return joined(element("style", Markup(SHEET)), element("div", tree, class_="cp-picture cp-figure"))


def as_rich(root: Derivation) -> "Tree":
    """The tree for a terminal; rich draws it in ASCII where Unicode is missing."""
    from rich.text import Text  # noqa: PLC0415 - rich is imported only where something is shown
    from rich.tree import Tree  # noqa: PLC0415 - as above

    tree = Tree(Text.assemble(root.statement, ("\nby " + root.theorem, "dim")), guide_style="dim")
    for premise in root.premises:
        tree.add(as_rich(premise))
    return tree

"""How pictures look: the tokens, light and dark, and the classes that use them. One sheet for everything drawn here.

Every rule begins with `.cp-picture`, so that nothing else on a page changes. Dark follows the system, unless the page
says which theme it has (Jupyter and VS Code do). Each mark also differs in shape: a picture reads in grey.

>>> SHEET.count("{") == SHEET.count("}")
True
>>> all(".cp-picture" in rule for rule in SHEET.replace("@media", "").split("}") if "{" in rule and "--" not in rule)
True
"""

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

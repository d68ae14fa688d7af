"""The figures of docs/tightness.md: what rules cost as a multiple of the optimum, and the time-uniform odometers.

Lines are few and labelled at their ends, in colours that differ in lightness, too.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import NamedTuple

import matplotlib as mpl
import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import counterpoint as cp
from counterpoint.composition.time_uniform import BOUNDS, Kind, constant_for, rogers_2016
from counterpoint.numbers import precision

FIGURES = Path(__file__).parent / "figures"
BLUE, SKY, GREEN, GOLD, ROSE, OLIVE, GREY = "#332288", "#3399cc", "#117733", "#cc8800", "#cc6677", "#777711", "#777777"

Costs = Callable[[list[cp.Loss]], float]
"""The epsilon that launches cost by a rule."""


class Line(NamedTuple):
    """A line of a figure; values above the top, or not a number, are not drawn."""

    label: str
    colour: str
    values: Sequence[float]
    style: str = "-"
    width: float = 1.5


LINES = {
    "filter, by=basic": ("basic", OLIVE),
    "filter, by=advanced (Whitehouse et al. 2023, Thm 1)": ("advanced", ROSE),
    "filter, by=renyi": ("one Renyi order", GOLD),
    "filter in zCDP, read at delta": ("zCDP, read at delta", GREEN),
    "**default filter**": ("default filter", BLUE),
    "default filter, slack matched": ("default, slack matched", SKY),
}
"""The rules of the first figure: how they are labelled there, and their colours."""


def plot_ratios(rules: Mapping[str, Costs]) -> None:
    """How many times the optimal epsilon each rule needs, against the number of launches of 0.05."""
    counts = [round(2 ** (n / 2)) for n in range(2, 23)]
    launched = [[cp.PureDP("0.05")] * count for count in counts]
    optimal = [rules["optimal (fixed losses)"](losses) for losses in launched]
    lines = [
        Line(
            label,
            colour,
            [rules[rule](losses) / best for losses, best in zip(launched, optimal, strict=True)],
            width=3 if label == "default filter" else 1.5,
        )
        for rule, (label, colour) in LINES.items()
    ]
    figure, axes = plt.subplots(figsize=(8, 4.5))
    axes.set(xscale="log", xlim=(2, counts[-1]), ylim=(0.99, 1.4), xlabel="launches of PureDP(0.05)")
    axes.set_xticks([2, 10, 100, 1000], ["2", "10", "100", "1000"])
    axes.set(ylabel="epsilon at delta = 1e-6, times the optimum")
    draw(axes, counts, lines)
    save(figure, "tightness")


def plot_odometers(delta: Fraction, smallest_budget: Costs) -> None:
    """Lower-order terms; odometers beside older ones; odometers beside advanced composition and our default rule."""
    grid = [Fraction(n, 100) for n in range(1, 101)]
    four = [Line(kind, colour, time_uniform(kind, 4, delta, grid)) for kind, colour in KINDS.items()]
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.2))
    lower = [
        Line("filter: e²/2", BLUE, [float(e * e / 2) for e in grid]),
        Line("advanced: e tanh(e/2)", ROSE, [float(e) * math.tanh(float(e) / 2) for e in grid]),
    ]
    left.set(xlim=(0, 1), ylim=(0, 0.55), xlabel="epsilon e of one launch", ylabel="lower-order term")
    draw(left, grid, lower)
    older = [float(rogers_2016(precision(25), v, 10**4, delta).upper) for v in grid]
    on_variance(right, grid, [*four, Line("Rogers et al. 2016", GREY, older, "--")], 11)
    save(figure, "whitehouse-figure-1")
    figure, panels = plt.subplots(1, 3, figsize=(12, 4), sharey=True)
    for panel, kind in zip(panels, KINDS, strict=True):
        tuned = zip((1, 3, 6), (SKY, BLUE, ROSE), strict=True)
        on_variance(panel, grid, [Line(f"for {e}", c, time_uniform(kind, e, delta, grid)) for e, c in tuned], 12)
        panel.set_title(kind, loc="left")
    save(figure, "whitehouse-figure-2")
    figure, axes = plt.subplots(figsize=(8, 4.5))
    on_variance(axes, grid, four, 8, [advanced(grid, delta), default(grid, smallest_budget)])
    save(figure, "whitehouse-figure-3")


KINDS: dict[Kind, str] = {"filter": SKY, "mixture": GREEN, "stitched": GOLD}


def time_uniform(kind: Kind, target: int, delta: Fraction, grid: Sequence[Fraction]) -> list[float]:
    """One of Whitehouse et al.'s odometers, tuned for a target epsilon, as a function of V."""
    constant = constant_for(kind, Fraction(target), delta)
    bound = BOUNDS[kind]
    finite = [kind != "stitched" or v >= constant for v in grid]
    return [
        float(bound(precision(25), v, constant, delta).upper) if known else math.nan
        for v, known in zip(grid, finite, strict=True)
    ]


def advanced(grid: Sequence[Fraction], delta: Fraction) -> Line:
    """Advanced composition at a V known in advance."""
    values = [math.sqrt(2 * math.log(1 / delta) * v) + float(v) / 2 for v in grid]
    return Line("advanced, at one V", GREY, values, "--")


def default(grid: Sequence[Fraction], smallest_budget: Costs) -> Line:
    """The smallest budget of the default filter for launches of 0.05 with this V."""
    every = [
        smallest_budget([cp.PureDP("0.05")] * round(v * 400)) if n % 4 == 3 else math.nan for n, v in enumerate(grid)
    ]
    return Line("our default filter", BLUE, every, width=3)


def on_variance(
    panel: Axes, grid: Sequence[Fraction], lines: Sequence[Line], top: float, more: Sequence[Line] = ()
) -> None:
    """Bounds on the loss as functions of V."""
    panel.set(xlim=(0, 1), ylim=(0, top), xlabel="V = sum of epsilon²")
    if panel.get_subplotspec().is_first_col() or len(panel.figure.axes) == 2:
        panel.set_ylabel("bound on the loss, delta = 1e-6")
    draw(panel, grid, [*lines, *more])


def draw(axes: Axes, xs: Sequence[float] | Sequence[Fraction], lines: Sequence[Line]) -> None:
    """The lines, each with its label beside its end, or halfway up if it leaves the picture; no label over another."""
    places = [float(x) for x in xs]
    low, top = axes.get_ylim()
    step = (top - low) * 0.055
    ends = []
    for line in lines:
        points = [(x, y) for x, y in zip(places, line.values, strict=True) if math.isfinite(y)]
        axes.plot(*zip(*points, strict=True), line.style, color=line.colour, linewidth=line.width)
        ends.append((points, line))
    height = low - step
    for points, line in sorted(ends, key=lambda end: end[0][-1][1]):
        if points[-1][1] <= top:
            height = max(points[-1][1], height + step)
            at = places[-1], height
        else:
            at = min(points, key=lambda point: abs(point[1] - (low + top) / 2))
        axes.annotate(line.label, at, (7, 0), textcoords="offset points", color=line.colour, va="center", fontsize=9)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color="0.92")


def save(figure: Figure, name: str) -> None:
    """As an SVG that comes out the same every time."""
    mpl.rcParams["svg.hashsalt"] = "counterpoint"
    figure.tight_layout()
    figure.savefig(FIGURES / f"{name}.svg", metadata={"Date": None})
    plt.close(figure)

"""Writes docs/how_we_know.md and its figures: the catalogue's table, and a trade-off curve for each instance.

Run by `make docs` in an environment with matplotlib; the same page and the same pictures every time.
"""

import math
from itertools import groupby
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from numpy.typing import NDArray

from counterpoint.mechanisms.concurrent import Concurrent
from counterpoint.mechanisms.mechanism import Mechanism
from counterpoint.verify.catalogue.catalogue import CATALOGUE, short
from counterpoint.verify.catalogue.instances import Measured, SessionGame, Stopped, measure
from counterpoint.verify.verdict import Verdict

HERE = Path(__file__).parent
COLUMNS = 5
EXACT, CLAIM = "#4477aa", "#cc6677"
SLOPES = 160
STEEP = 0.02
"""Where a claim allows fewer misses than this at 10 % false alarms, curves hug the axes: those are made logarithmic."""
LEAST, NONE = 1e-5, 1e-12

ABOUT = {
    "mechanisms": "Mechanisms that are not composed of others. Noise that a sparse vector only compares is not "
    "truncated at all. Counters under zCDP run on a coarse grid, as explained above.",
    "composites": "Mechanisms made of mechanisms. Their claims add up the losses of their parts, and few inputs bring "
    "all parts to their worst case at once within two or three rounds.",
    "rules": "The loss of a rule against an adaptive analyst that launches from a menu of randomized responses, in "
    "any order, until the rule refuses: PureDP(0.3) and PureDP(0.5), and if the budget has a delta also "
    "ApproxDP(0.2, 0.01). The mixed filter, those in f-DP and the slots and the odometer in GaussianDP have menus of "
    "their own, with rounded normals and discrete Gaussians. Parallel parts and those of a partition are concurrent "
    "compositions, over all interleavings. Randomized responses are the worst mechanisms for pure and approximate "
    "losses; for zCDP and GaussianDP they are not.",
    "measures": "Each measure in each rule that takes it (see [Theory](theory.md)): what is launched is a randomized "
    "response whose loss is restated in the measure, and the budget has room for two. Pure, approximate and f-DP "
    "losses and Renyi losses of one order are as large as those of a randomized response, so that their sums are "
    "reached; zCDP and tCDP nearly are if epsilon is small. Gaussian DP is reached by normal noise, in the rules "
    "above; approximate sums are not tight.",
    "the local model": "Users, each with the server as the adversary; and the core protocol on a graph of two "
    "vertices, both of which know the edge. Protocols of three users and of four vertices are in the tests.",
}


WITHOUT_FIGURE = {"measures"}
"""Where every curve is one of a few: that of one randomized response, or of two."""


def figure_of(group: str) -> str:
    """The name of the figure of a group."""
    return f"exact-{group.rsplit(maxsplit=1)[-1]}.svg"


def of_claim(measured: Measured, alphas: NDArray[np.float64]) -> NDArray[np.float64]:
    """The trade-off curve that a claim allows: the envelope of its (epsilon, delta)s, and of their mirror images."""
    claim = measured.claim
    top = next((e for e in (claim.epsilon_at(d) for d in (0, "1e-9")) if math.isfinite(e)), 1.0)
    epsilons = np.linspace(0, top, SLOPES)
    curve = np.zeros_like(alphas)
    for epsilon in epsilons:
        height, slope = 1 - claim.delta_at(float(epsilon)), math.exp(epsilon)
        curve = np.maximum(curve, np.maximum(height - slope * alphas, (height - alphas) / slope))
    return curve


def of_exact(measured: Measured, alphas: NDArray[np.float64]) -> NDArray[np.float64]:
    """The exact curve, from below."""
    vertices = [(float(x), float(y)) for x, y in measured.loss.trade_off(65).vertices]
    return np.interp(alphas, *np.array(vertices).T)


def draw(axes: Axes, measured: Measured) -> None:
    """One instance: what it loses, what it claims, and what lies between."""
    steep = 0 < of_claim(measured, np.array([0.1]))[0] < STEEP
    alphas = np.geomspace(LEAST, 1, 121) if steep else np.linspace(0, 1, 101)
    exactly, claimed = of_exact(measured, alphas), of_claim(measured, alphas)
    if steep:
        exactly, claimed = np.maximum(exactly, NONE), np.maximum(claimed, NONE)
    axes.fill_between(alphas, claimed, exactly, color=EXACT, alpha=0.12, linewidth=0)
    axes.plot(alphas, exactly, color=EXACT, linewidth=1.6)
    axes.plot(alphas, claimed, "--", color=CLAIM, linewidth=1.2)
    if steep:
        axes.set(xscale="log", yscale="log", xlim=(LEAST, 1), ylim=(LEAST, 1.3), xticks=(1e-4, 1e-2, 1))
        axes.set_yticks((1e-4, 1e-2, 1))
        axes.minorticks_off()
    else:
        axes.set(xlim=(0, 1), ylim=(0, 1), xticks=(0, 0.5, 1), yticks=(0, 0.5, 1))
        axes.plot((0, 1), (1, 0), color="0.8", linewidth=0.7, zorder=0)
    axes.set_title(f"{measured.instance.name}\n{short(measured.claim)}", fontsize=8)
    axes.tick_params(labelsize=7, length=2)


def paint(group: str, found: list[Measured]) -> None:
    """Small multiples of one group."""
    rows = math.ceil(len(found) / COLUMNS)
    height = 2.15 * rows + 0.45
    figure, grid = plt.subplots(rows, COLUMNS, figsize=(2.1 * COLUMNS, height), squeeze=False)
    places = list(grid.flat)
    for axes, measured in zip(places, found, strict=False):
        draw(axes, measured)
    for axes in places[len(found) :]:
        axes.axis("off")
    lines = [
        Line2D([], [], color=EXACT, label="exact, all adversaries"),
        Line2D([], [], color=CLAIM, linestyle="--", label="allowed by the claim"),
        Line2D([], [], color="0.8", label="nothing lost"),
    ]
    figure.legend(handles=lines, ncols=3, loc="upper center", fontsize=8, frameon=False)
    figure.supxlabel("false alarms", fontsize=8)
    figure.supylabel("misses", fontsize=8)
    figure.tight_layout(rect=(0, 0, 1, 1 - 0.3 / height))
    figure.savefig(HERE / "figures" / figure_of(group), metadata={"Date": None})
    plt.close(figure)


def shown(mechanism: Mechanism) -> str:
    """A mechanism as the call that makes it; of a game and of a composition, the rule."""
    if isinstance(mechanism, SessionGame | Concurrent):
        rule = mechanism.rule
        return f"an odometer up to {rule.threshold!r}" if isinstance(rule, Stopped) else repr(rule)
    return repr(mechanism)


def row(measured: Measured) -> str:
    """A row of the table."""
    instance, worlds = measured.instance, measured.loss.worlds
    size = f"{len(worlds.pairs)} x {len(worlds.levels) - 1}"
    numbers = f"{measured.claimed:.4f} | {measured.lower:.4f} | {measured.tightness:.3f}"
    verdict = {Verdict.HOLDS: "yes", Verdict.REFUTED: "**NO**", Verdict.UNDECIDED: "undecided"}[measured.verdict]
    return f"| {instance.name} | `{shown(instance.mechanism)}` | {size} | {measured.at} | {numbers} | {verdict} |"


def section(group: str, found: list[Measured]) -> str:
    """The table and the figure of a group."""
    head = "| instance | with | pairs x rounds | compared at | claimed | exact | ratio | holds |\n" + "|---" * 8 + "|"
    table = "\n".join([head, *map(row, found)])
    title = group[0].upper() + group[1:]
    figure = "" if group in WITHOUT_FIGURE else f"\n![trade-off curves](figures/{figure_of(group)})\n"
    return f"## {title}\n\n{ABOUT[group]}\n\n{table}\n{figure}"


def main() -> None:
    """Measure, draw, write."""
    mpl.use("svg")
    mpl.rcParams["svg.hashsalt"] = "counterpoint"
    sections = []
    for group, instances in groupby(CATALOGUE, key=lambda instance: instance.group):
        found = [measure(instance) for instance in instances]
        if group not in WITHOUT_FIGURE:
            paint(group, found)
        sections.append(section(group, found))
    template = (HERE / "how_we_know.template").read_text(encoding="utf-8")
    (HERE / "how_we_know.md").write_text(template.replace("<<catalogue>>", "\n".join(sections)), encoding="utf-8")


if __name__ == "__main__":
    main()

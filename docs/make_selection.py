"""Writes docs/figures/selection.svg: what sparse vectors and noisy max get wrong, as stated by their `error` methods.

Run by `make docs`; the page that shows it is docs/guide/selection.md.
"""

from fractions import Fraction
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt

import counterpoint as cp

HERE = Path(__file__).parent
PROBABILITY, ASKS = Fraction(95, 100), 100
RHO = Fraction(241, 10_000)
"""A zCDP budget that is worth (1, 1e-6), as PureDP(1) is."""


def hits_panel(axes: plt.Axes) -> None:
    """Error of 100 comparisons against the number of hits."""
    hits = [2**n for n in range(13)]
    for label, options, style in (
        ("pure, epsilon = 1", {"epsilon": 1}, "C0-"),
        ("pure, one way", {"epsilon": 1, "monotone": True}, "C0--"),
        ("zCDP, rho = 0.0241", {"rho": RHO}, "C1-"),
        ("zCDP, one way", {"rho": RHO, "monotone": True}, "C1--"),
    ):
        errors = [cp.SparseVector(threshold=0, hits=n, **options).error(PROBABILITY, ASKS) for n in hits]  # type: ignore[arg-type]
        axes.plot(hits, errors, style, label=label)
    axes.set(xscale="log", yscale="log", xlabel="hits", ylabel="error at 95 %", title="SparseVector, 100 asks")


def candidates_panel(axes: plt.Axes) -> None:
    """Error of noisy max against the number of candidates."""
    candidates = [2**n for n in range(1, 21)]
    for label, mechanism, style in (
        ("permute-and-flip, epsilon = 1", cp.NoisyMax(1), "C0-"),
        ("the same, one way", cp.NoisyMax(1, monotone=True), "C0--"),
        ("exponential, epsilon = 1", cp.NoisyMax(1, by="exponential"), "C2-"),
        ("exponential, rho = 0.0241", cp.NoisyMax(rho=RHO), "C1-"),
    ):
        axes.plot(candidates, [mechanism.error(PROBABILITY, d) for d in candidates], style, label=label)
    axes.set(xscale="log", xlabel="candidates", ylabel="error at 95 %", title="NoisyMax, one ask")


def asks_panel(axes: plt.Axes) -> None:
    """Error of each of many choices at one budget, against how many there are."""
    asks = [2**n for n in range(9)]
    for label, options, style in (
        ("permute-and-flip, epsilon = 1", {"epsilon": 1}, "C0-"),
        ("exponential, rho = 0.0241", {"rho": RHO}, "C1-"),
    ):
        errors = [cp.NoisyMax(asks=n, **options).error(PROBABILITY, 1000) for n in asks]  # type: ignore[arg-type]
        axes.plot(asks, errors, style, label=label)
    axes.set(xscale="log", yscale="log", xlabel="asks", ylabel="error at 95 %", title="NoisyMax, 1000 candidates")


def main() -> None:
    """Draw, as an SVG that comes out the same every time."""
    mpl.use("svg")
    mpl.rcParams["svg.hashsalt"] = "counterpoint"
    figure, panels = plt.subplots(1, 3, figsize=(14, 4.2))
    for panel, draw in zip(panels, (hits_panel, candidates_panel, asks_panel), strict=True):
        draw(panel)
        panel.legend(fontsize=7)
    figure.tight_layout()
    figure.savefig(HERE / "figures" / "selection.svg", metadata={"Date": None})
    plt.close(figure)


if __name__ == "__main__":
    main()

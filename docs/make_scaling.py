"""Draws docs/figures/scaling.svg: asks a second on one budget, and on ten, against the number of workers. Simulated.

Run by `make docs` in the benchmark environment, where matplotlib is installed. The parameters are those of the page;
`python -m bench.scaling` measures them anew.
"""

from pathlib import Path
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
from bench.scaling import ON_THIS_PAGE, layouts, simulate
from matplotlib.axes import Axes

WORKERS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)
COLOURS = ("#777777", "#332288", "#3399cc", "#117733", "#cc8800", "#cc6677")


def main() -> None:
    """Simulate and draw."""
    mpl.use("svg")
    mpl.rcParams["svg.hashsalt"] = "counterpoint"
    figure, axes = plt.subplots(figsize=(7.5, 4.5))
    for name, colour in zip(layouts(1), COLOURS, strict=True):
        _draw(axes, "PostgreSQL", name, color=colour)
    _draw(axes, "SQLite", "1 process", color=COLOURS[1], linestyle=":")
    axes.set_xlabel("workers that ask without a pause")
    axes.set_ylabel("asks a second (simulated)")
    axes.grid(alpha=0.3)
    axes.legend(frameon=False, fontsize=7)
    figure.tight_layout()
    figure.savefig(Path(__file__).parent / "figures" / "scaling.svg", metadata={"Date": None})


def _draw(axes: Axes, engine: str, name: str, **style: Any) -> None:
    rates = [simulate(ON_THIS_PAGE[engine], layouts(workers)[name]).per_second for workers in WORKERS]
    axes.loglog(WORKERS, rates, label=f"{engine}, {name}", linewidth=1.5, **style)


if __name__ == "__main__":
    main()

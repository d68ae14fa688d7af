"""Draws docs/figures/counters.svg: the deviation of counters against time, beside the textbook binary tree.

Run by `make docs` in the benchmark environment, where matplotlib is installed.
"""

from itertools import accumulate
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt

import counterpoint as cp

HERE = Path(__file__).parent
LAST = 24
PARTS = 61
TIMES = sorted({round(2 ** (n / 4)) for n in range(4 * LAST + 1)})
COLOURS = {"pure": "#4477aa", "zCDP": "#cc6677"}


def binary_tree(t: int, *, gaussian: bool) -> float:
    """The largest deviation up to t of a noise for each bit of the time that is set, on a tree for 2^20 items."""
    levels, most = 21, max(t.bit_count(), t.bit_length() - 1)
    return float(((levels if gaussian else 2 * levels**2) * most) ** 0.5)


def pure(counter: cp.Counter, times: list[int]) -> list[float]:
    """The largest deviation up to each of the times, over times that are spread evenly below all of them."""
    below = ([max(1, t * part // PARTS) for part in range(1, PARTS + 1)] for t in times)
    return list(accumulate((max(map(counter.deviation, some)) for some in below), max))


def main() -> None:
    """Compute and draw."""
    mpl.use("svg")
    mpl.rcParams["svg.hashsalt"] = "counterpoint"
    horizon = 2**20
    figure, axes = plt.subplots(figsize=(7.5, 4.5))
    known = [t for t in TIMES if t <= horizon]
    endless, horizoned = cp.Counter(epsilon=1), cp.Counter(epsilon=1, horizon=horizon)
    unknown, tuned = cp.Counter(rho=0.5), cp.Counter(rho=0.5, horizon=horizon)
    curves = (
        ("pure, binary tree for 2^20", "pure", ":", known, [binary_tree(t, gaussian=False) for t in known]),
        ("pure, no horizon", "pure", "--", TIMES, pure(endless, TIMES)),
        ("pure, horizon 2^20", "pure", "-", known, pure(horizoned, known)),
        ("zCDP, binary tree for 2^20", "zCDP", ":", known, [binary_tree(t, gaussian=True) for t in known]),
        ("zCDP, no horizon", "zCDP", "--", TIMES, [unknown.deviation(t) for t in TIMES]),
        ("zCDP, tuned for 2^20", "zCDP", "-", TIMES, [tuned.deviation(t) for t in TIMES]),
    )
    for name, kind, line, times, values in curves:
        axes.plot(times, values, line, color=COLOURS[kind], label=name)
    axes.set(
        xscale="log", yscale="log", xlabel="items so far", ylabel="largest standard deviation so far", ylim=(1, 1000)
    )
    axes.set_title("Counters at epsilon = 1 and at rho = 0.5 (PureDP(1) implies zCDP(0.5))", fontsize=10)
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8, ncols=2)
    figure.tight_layout()
    figure.savefig(HERE / "figures" / "counters.svg", metadata={"Date": None})


if __name__ == "__main__":
    main()

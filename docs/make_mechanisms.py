"""Draws docs/figures/noise.svg, guesses.svg and keys.svg: what the plainest mechanisms get wrong, and how often.

All curves but two are what the `error` methods state, or exact chances; answers by multiplicative weights and the
Laplace answers beside them are simulated on seeded coins. Run by `make docs`; the pages that show them are
docs/guide/noise.md, composites.md and tables.md.
"""

from fractions import Fraction
from math import exp
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
from numpy.typing import NDArray

import counterpoint as cp
from counterpoint.mechanisms.partition_selection import GRID, chances

HERE = Path(__file__).parent
SURE = Fraction(95, 100)
RHO = Fraction(243, 10_000)
"""A zCDP budget that is worth (1, 1e-6), as PureDP(1) is."""

CELLS, ROWS, QUERIES = 1000, 10**5, 1000
Numbers = NDArray[np.int64]


def asks_panel(axes: plt.Axes) -> None:
    """The error of each of many answers at one budget, against how many there are."""
    asks = [2**n for n in range(13)]
    axes.plot(asks, [cp.Laplace(1, asks=n).error(SURE) for n in asks], "C0-", label="Laplace, epsilon = 1")
    axes.plot(asks, [cp.Gaussian(RHO, asks=n).error(SURE) for n in asks], "C1-", label="Gaussian, rho = 0.0243")
    axes.set(xscale="log", yscale="log", xlabel="asks", ylabel="error of an answer at 95 %")
    axes.set_title("Many answers, sensitivity 1", fontsize=10)


def width_panel(axes: plt.Axes) -> None:
    """The error of all numbers of one vector in which a neighbour moves every number by 1."""
    widths = [2**n for n in range(13)]
    laplace = [cp.Laplace(1).error(SURE, sensitivity=n, width=n) for n in widths]
    gaussian = [cp.Gaussian(RHO).error(SURE, squared=n, width=n) for n in widths]
    axes.plot(widths, laplace, "C0-", label="Laplace, epsilon = 1, by L1")
    axes.plot(widths, gaussian, "C1-", label="Gaussian, rho = 0.0243, by L2")
    axes.set(xscale="log", yscale="log", xlabel="numbers", ylabel="error of all numbers at 95 %")
    axes.set_title("One vector, each number moves by 1", fontsize=10)


def truth_panel(axes: plt.Axes) -> None:
    """How often randomized response tells the truth."""
    epsilons = np.linspace(0, 5, 101)
    for delta, line in ((0.0, "C2-"), (0.1, "C2--")):
        truth = [1 - (1 - delta) / (1 + exp(epsilon)) for epsilon in epsilons]
        axes.plot(epsilons, truth, line, label=f"delta = {delta:g}")
    axes.set(xlabel="epsilon", ylabel="chance that the bit is true", ylim=(0.5, 1))
    axes.set_title("Randomized response", fontsize=10)


def guesses_panel(axes: plt.Axes) -> None:
    """Guess and check against Laplace answers to all asks, at epsilon = 1."""
    wrong = [2**n for n in range(11)]
    stated = [cp.GuessAndCheck(Fraction(1, 4), margin=0, wrong=n).error(SURE, QUERIES) for n in wrong]
    axes.plot(wrong, [error.verdict for error in stated], "C0-", label="verdicts (beside the margin)")
    axes.plot(wrong, [error.answer for error in stated], "C0--", label="released values")
    each = 1 - (1 - SURE) / QUERIES
    axes.axhline(cp.Laplace(1, asks=QUERIES).error(each), color="C3", label="Laplace, every value")
    axes.set(xscale="log", yscale="log", xlabel="wrong guesses that are paid for", ylabel="error of all at 95 %")
    axes.set_title("Guess and check, 1,000 asks, epsilon = 1", fontsize=10)


def weights_panel(axes: plt.Axes) -> None:
    """Errors of 1,000 interval queries on two bumps of 10^5 rows, as they come in."""
    at, coins = np.arange(CELLS), cp.coins.SeededCoins(3)
    bumps = 0.6 / 40 * np.exp(-(((at - 200) / 40) ** 2) / 2) + 0.4 / 90 * np.exp(-(((at - 700) / 90) ** 2) / 2)
    cells = np.round(ROWS * bumps / bumps.sum()).astype(np.int64)
    ends = [sorted((coins.integer(CELLS + 1), coins.integer(CELLS + 1))) for _ in range(QUERIES)]
    queries = np.array([(at >= start) & (at < end) for start, end in ends]).astype(np.int64)
    true = queries @ cells
    wrong_at, learnt = by_weights(queries, true)
    for answers, colour, label in ((by_laplace(true), "C3", "Laplace(1, asks=1000)"), (learnt, "C0", "weights")):
        off = np.abs(answers - true)
        axes.plot(off, colour + ".", markersize=2, alpha=0.5)
        axes.plot(np.maximum.accumulate(off), colour + "-", label=f"{label}, largest so far")
    axes.plot(
        wrong_at, np.abs(learnt - true)[wrong_at], "kx", markersize=5, label="wrong hypotheses, which are charged"
    )
    axes.set(xlabel="queries so far", ylabel="error of the answer", ylim=(0, None))
    axes.set_title("Intervals of 1,000 cells, 100,000 rows, epsilon = 1", fontsize=10)


def by_weights(queries: Numbers, true: Numbers) -> tuple[list[int], Numbers]:
    """Which queries were a surprise, and all answers."""
    mechanism, coins = (
        cp.multiplicative_weights(1, CELLS, rows=ROWS, margin="0.02", updates=80),
        cp.coins.SeededCoins(1),
    )
    state, wrong_at, answers = mechanism.start(coins), [], []
    for at, (query, value) in enumerate(zip(queries.tolist(), true.tolist(), strict=True)):
        assert state is not None
        state, (how, answer) = mechanism.step(state, cp.mechanisms.Ask(tuple(query), private=value), coins)
        wrong_at += [at] if how == "WRONG" else []
        answers.append(answer)
    return wrong_at, np.array(answers)


def by_laplace(true: Numbers) -> Numbers:
    """As many answers with noise for all of them."""
    mechanism, coins = cp.Laplace(1, asks=len(true)), cp.coins.SeededCoins(2)
    state, answers = mechanism.start(coins), []
    for value in true.tolist():
        assert state is not None
        state, answer = mechanism.step(state, cp.mechanisms.Ask(private=value), coins)
        answers.append(answer)
    return np.array(answers)


def keys_panel(axes: plt.Axes) -> None:
    """How often a key is released, against the number of units that have it."""
    for epsilon, delta, keys, line in ((1, 6, 1, "C0-"), (1, 9, 1, "C0--"), (1, 6, 4, "C1-"), (1, 9, 4, "C1--")):
        table = chances(Fraction(epsilon, keys), Fraction(1, keys * 10**delta))
        label = f"delta = 1e-{delta}, {keys} key{'s' if keys > 1 else ''} a unit"
        axes.plot([table[min(n, len(table) - 1)] / GRID for n in range(161)], line, label=label)
        units = cp.PartitionSelection(epsilon, Fraction(1, 10**delta)).error(SURE, sensitivity=keys)
        axes.plot([units], [table[units] / GRID], line[:2] + "o", markersize=4)
    axes.set(xlabel="units that have the key", ylabel="chance that it is released", xlim=(0, 160))
    axes.set_title("Partition selection, epsilon = 1 (dots: error(0.95))", fontsize=10)


FIGURES = {
    "noise": (asks_panel, width_panel, truth_panel),
    "guesses": (guesses_panel, weights_panel),
    "keys": (keys_panel,),
}


def main() -> None:
    """Draw, as SVGs that come out the same every time."""
    mpl.use("svg")
    mpl.rcParams["svg.hashsalt"] = "counterpoint"
    for name, panels in FIGURES.items():
        figure, axes = plt.subplots(1, len(panels), figsize=(4.6 * len(panels) + 1.4, 3.8), squeeze=False)
        for axis, draw in zip(axes[0], panels, strict=True):
            draw(axis)
            axis.grid(alpha=0.3)
            axis.legend(fontsize=8)
        figure.tight_layout()
        figure.savefig(HERE / "figures" / f"{name}.svg", metadata={"Date": None})
        plt.close(figure)


if __name__ == "__main__":
    main()

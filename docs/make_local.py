"""Writes docs/figures/local-cores.svg: true against private core numbers, for three epsilons.

Run by `make docs` in the benchmark environment, where networkx and matplotlib are installed.
"""

from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import networkx as nx
from bench.local import power_law

from counterpoint.coins.secure import SeededCoins
from counterpoint.local.cores import core_decomposition

HERE = Path(__file__).parent
VERTICES, EDGES = 3000, 200_000


def main() -> None:
    """Draw one panel for each epsilon."""
    mpl.rcParams["svg.hashsalt"] = "counterpoint"
    pairs = power_law(VERTICES, EDGES, power=4)
    graph = nx.Graph(pairs.tolist())
    graph.add_nodes_from(range(VERTICES))
    true = nx.core_number(graph)
    figure, panels = plt.subplots(1, 3, figsize=(10, 3.6), sharey=True, layout="constrained")
    for panel, epsilon in zip(panels, (2, 8, 32), strict=True):
        found = core_decomposition(pairs, epsilon, vertices=VERTICES, coins=SeededCoins(1))
        exact, private = [true[vertex] for vertex, _ in found], [core for _, core in found]
        off = sum(abs(a - b) for a, b in zip(exact, private, strict=True)) / VERTICES
        panel.plot([0, max(exact)], [0, max(exact)], color="0.7", linewidth=1)
        panel.scatter(exact, private, s=3, alpha=0.5, rasterized=True)
        panel.set(title=f"epsilon {epsilon}: off by {off:.1f} on average", xlabel="true core number")
    panels[0].set_ylabel("private core number")
    figure.savefig(HERE / "figures" / "local-cores.svg", metadata={"Date": None}, dpi=120)


if __name__ == "__main__":
    main()

"""Local histograms beside the best formulas; private core numbers of a million edges, beside networkx's exact ones; and
a million users' heavy hitters.
"""

import resource
from collections.abc import Iterator
from fractions import Fraction
from math import exp, sqrt

import numpy as np

from bench.table import Row, seconds
from counterpoint.coins.keystream import Keystream
from counterpoint.coins.secure import SeededCoins
from counterpoint.local.cores import core_decomposition
from counterpoint.local.designs import best
from counterpoint.local.frequencies import heavy_hitters
from counterpoint.local.graph import Graph

VERTICES, EDGES, USERS = 10**5, 10**6, 10**6
EPSILONS = ("0.1", "0.35", "0.7", "1", "1.5", "2", "3", "4", "5", "6")
SIZES = [2, 3, 4, 5, 7, 10, 16, 30, 60, 100, 150, 300, 1000, 3000, 10**4, 10**5, 10**6]
KIBIBYTES = 2**20
"""How many make a GiB: the system counts in them."""


def rows() -> Iterator[Row]:
    import networkx as nx  # type: ignore[import-untyped] # a peer, measured and not typed

    pairs = power_law(VERTICES, EDGES)
    graph = Graph.of(pairs, VERTICES)
    known = nx.Graph(pairs.tolist())
    known.add_nodes_from(range(VERTICES))
    exact = seconds(lambda: nx.core_number(known))
    for epsilon, note in ((1, "mostly noise"), (64, "mostly cores")):
        private = seconds(lambda epsilon=epsilon: core_decomposition(graph, epsilon))  # type: ignore[misc]
        what = f"core numbers, 10^5 vertices, 10^6 edges, epsilon {epsilon} ({note})"
        yield Row(what, private, exact, "networkx's core_number (not private)")
    values = SeededCoins(2).discrete_laplace(300, size=USERS).astype(np.int64) % 2**16
    yield from formulas()
    growing = seconds(lambda: heavy_hitters(values, 2, bits=16, step=4))
    plain = seconds(lambda: np.unique(values, return_counts=True))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / KIBIBYTES
    what = f"heavy hitters of 10^6 users, 16 bits (peak memory of all this: {peak:.1f} GiB)"
    yield Row(what, growing, plain, "numpy's unique (not private)")


def formulas() -> Iterator[Row]:
    """The exact variance of a count by the chosen design, beside the least of the formulas in the literature."""
    for epsilon in EPSILONS:
        ratios = {k: float(best(Fraction(epsilon), k).variance(Fraction(epsilon))) / least(epsilon, k) for k in SIZES}
        worst = max(ratios, key=lambda k: ratios[k])
        formula = least(epsilon, worst)
        what = f"local count, variance per user at epsilon {epsilon}, worst of k = 2 to 10^6: k = {worst}"
        yield Row(what, ratios[worst] * formula, formula, "best of unary, k-ary, subsets", at_most=1.02, unit="")


def least(epsilon: str, k: int) -> float:
    """The least variance of a rare value's count: unary (symmetric, optimised), k-ary response, subset selection.

    See Wang et al. 2017 and Ye and Barg 2018; subsets of every size near the best one.
    """
    e = exp(float(epsilon))
    near = {min(k - 1, max(1, int(k / (e + 1)) + more)) for more in range(-3, 4)}
    chances = [(e * d / (e * d + k - d), d) for d in {1, *near}]
    pairs = [(p, (p * (d - 1) + (1 - p) * d) / (k - 1)) for p, d in chances]
    subsets = min(q * (1 - q) / (p - q) ** 2 for p, q in pairs)
    return min(sqrt(e) / (sqrt(e) - 1) ** 2, 4 * e / (e - 1) ** 2, subsets)


def power_law(vertices: int, edges: int, power: int = 2) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    """Edges between vertices that are ever less likely to be chosen: degrees follow a power law."""
    stream, found = Keystream(bytes(32)), np.zeros(0, dtype=np.int64)
    while len(found) < edges:
        uniform = stream.words(3 * edges, 32) / 2**32
        # a power of a uniform number: squared, its density falls as 1/sqrt(x)
        ends = (uniform**power * vertices).astype(np.int64)[: 3 * edges // 2 * 2].reshape(-1, 2)
        proper = ends[ends[:, 0] != ends[:, 1]]
        keys = proper.min(axis=1) * vertices + proper.max(axis=1)
        found = np.unique(np.concatenate([found, keys]))
    chosen = found[np.argsort(stream.words(len(found), 64), kind="stable")[:edges]]
    return np.stack([chosen // vertices, chosen % vertices], axis=1)

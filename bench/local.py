"""Private core numbers of a million edges, beside networkx's exact ones; and a million users' heavy hitters."""

import resource
from collections.abc import Iterator

import numpy as np

from bench.table import Row, seconds
from counterpoint.local.cores import core_decomposition
from counterpoint.local.frequencies import heavy_hitters
from counterpoint.local.graph import Graph
from counterpoint.randomness.keystream import Keystream
from counterpoint.randomness.seeded import SeededCoins

VERTICES, EDGES, USERS = 10**5, 10**6, 10**6
KIBIBYTES = 2**20
"""So many to a GiB: the system counts in them."""


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
    growing = seconds(lambda: heavy_hitters(values, 2, bits=16, step=4))
    plain = seconds(lambda: np.unique(values, return_counts=True))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / KIBIBYTES
    what = f"heavy hitters of 10^6 users, 16 bits (peak memory of all this: {peak:.1f} GiB)"
    yield Row(what, growing, plain, "numpy's unique (not private)")


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

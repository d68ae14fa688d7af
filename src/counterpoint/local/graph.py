"""Graphs as arrays: undirected, simple, on a public set of vertices.

In edge-local privacy the vertices are public, and only a vertex knows its edges. So `vertices` must be given with an
edge list: read off the edges, they would show which vertices have any. What is done with odd input: a self-loop is
dropped (no vertex is its own neighbour), an edge that is listed twice or in both directions counts once, weights are
ignored, isolated vertices are vertices, an empty graph is a graph. Directed graphs, unknown vertices and missing values
are errors.

>>> graph = Graph.of([(0, 1), (1, 0), (2, 2), (1, 2)], vertices=4)
>>> graph.edges, graph.degrees.tolist(), graph.neighbours(1).tolist()
(2, [1, 2, 1, 0], [0, 2])
"""

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from counterpoint.errors import InvalidParameter

Ends = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Graph:
    """Vertices, and for each the sorted numbers of its neighbours: `ends[starts[v]:starts[v + 1]]`."""

    names: Sequence[Hashable]
    starts: Ends = field(repr=False)
    ends: NDArray[np.int32] = field(repr=False)

    @classmethod
    def of(cls, source: Any, vertices: int | Iterable[Hashable] | None = None) -> "Graph":
        """A graph from edges (pairs, or an array of two columns), a CSV or Parquet file, NetworkX or a SciPy matrix.

        `vertices` is their number (they are then 0, 1, ...) or their names; NetworkX and SciPy bring their own.

        >>> Graph.of([("a", "b")], vertices="abc").edges
        1
        """
        if isinstance(source, Graph):
            return source
        if hasattr(source, "is_directed") and hasattr(source, "nodes"):
            return cls._of_networkx(source)
        if hasattr(source, "tocoo") and hasattr(source, "shape"):
            return cls._of_matrix(source)
        names = _names(vertices)
        if isinstance(source, str | Path):
            return cls.from_ends(_from_file(Path(source), names), names)
        return cls.from_ends(_numbered(source, names), names)

    @classmethod
    def from_ends(cls, pairs: Ends, names: Sequence[Hashable]) -> "Graph":
        """From pairs of vertex numbers."""
        size = len(names)
        low, high = np.minimum(pairs[:, 0], pairs[:, 1]), np.maximum(pairs[:, 0], pairs[:, 1])
        proper = low != high
        keys = np.unique(low[proper] * size + high[proper])
        low, high = (keys // size, keys % size) if size else (keys, keys)
        here, there = np.concatenate([low, high]), np.concatenate([high, low])
        order = np.lexsort((there, here))
        starts = np.zeros(size + 1, dtype=np.int64)
        np.cumsum(np.bincount(here, minlength=size), out=starts[1:])
        return cls(names, starts, there[order].astype(np.int32))

    @classmethod
    def _of_networkx(cls, source: Any) -> "Graph":
        if source.is_directed():
            raise InvalidParameter("the graph is directed, and cores are of undirected ones; use graph.to_undirected()")
        names = tuple(source.nodes)
        return cls.from_ends(_numbered([edge[:2] for edge in source.edges()], names), names)

    @classmethod
    def _of_matrix(cls, source: Any) -> "Graph":
        rows, columns = source.shape
        if rows != columns:
            raise InvalidParameter(f"an adjacency matrix is square, not {rows} by {columns}")
        entries = source.tocoo()
        there = np.asarray(entries.data) != 0
        pairs = np.stack([np.asarray(entries.row)[there], np.asarray(entries.col)[there]], axis=1)
        return cls.from_ends(pairs.astype(np.int64), range(rows))

    @property
    def size(self) -> int:
        """How many vertices there are."""
        return len(self.names)

    @property
    def edges(self) -> int:
        """How many edges there are."""
        return len(self.ends) // 2

    @property
    def degrees(self) -> Ends:
        """How many neighbours each vertex has."""
        return np.diff(self.starts)

    def neighbours(self, vertex: int) -> NDArray[np.int32]:
        """The neighbours of one vertex."""
        return self.ends[self.starts[vertex] : self.starts[vertex + 1]]

    def ends_of(self, vertices: Ends) -> NDArray[np.int32]:
        """The neighbours of some vertices, one after the other; the work is linear in their number.

        >>> Graph.of([(0, 1), (1, 2)], vertices=3).ends_of(np.array([0, 1]))
        array([1, 0, 2], dtype=int32)
        """
        counts = self.starts[vertices + 1] - self.starts[vertices]
        shift = np.repeat(self.starts[vertices] - np.cumsum(counts) + counts, counts)
        return self.ends[shift + np.arange(len(shift))]

    def rows(self) -> list[tuple[int, ...]]:
        """Each vertex' data in the object form: a 1 for each neighbour."""
        rows = np.zeros((self.size, self.size), dtype=np.int64)
        rows[np.repeat(np.arange(self.size), self.degrees), self.ends] = 1
        return [tuple(row) for row in rows.tolist()]


def _names(vertices: int | Iterable[Hashable] | None) -> Sequence[Hashable]:
    if vertices is None:
        raise InvalidParameter(
            "give vertices=, their number or their names: they are public, and reading them off the edges would tell "
            "which vertices have any"
        )
    if isinstance(vertices, int) and not isinstance(vertices, bool):
        if not 0 <= vertices < 2**31:
            raise InvalidParameter(f"a graph has 0 to 2^31 - 1 vertices, not {vertices}")
        return range(vertices)
    try:
        names = tuple(vertices)  # type: ignore[arg-type] # whatever is not iterable is refused just below
        different = len(set(names)) == len(names)
    except TypeError:
        raise InvalidParameter("vertices are a number, or names that can be compared") from None
    if not different:
        raise InvalidParameter("two vertices have the same name")
    return names


def _numbered(pairs: Any, names: Sequence[Hashable]) -> Ends:
    """The edges as pairs of vertex numbers; the error for an unknown vertex does not name it."""
    if isinstance(names, range):
        return _checked(pairs, len(names))
    places = {name: place for place, name in enumerate(names)}
    try:
        return _array([(places[one], places[other]) for one, other in pairs])
    except KeyError:
        raise InvalidParameter("an edge names a vertex that is not among `vertices`") from None
    except (TypeError, ValueError):
        raise InvalidParameter("edges are pairs of vertices") from None


def _checked(pairs: Any, size: int) -> Ends:
    try:
        given = np.asarray(pairs if isinstance(pairs, np.ndarray) else list(pairs))
    except (TypeError, ValueError):
        raise InvalidParameter("edges are pairs of vertices") from None
    if given.size == 0:
        return _array([])
    if given.ndim != 2 or given.shape[1] != 2 or given.dtype.kind not in "iu":
        raise InvalidParameter("edges are pairs of vertex numbers, two integers each")
    if given.min() < 0 or given.max() >= size:
        raise InvalidParameter("an edge names a vertex that is not among `vertices`")
    return given.astype(np.int64)


def _array(pairs: list[tuple[int, int]]) -> Ends:
    return np.array(pairs, dtype=np.int64).reshape(-1, 2)


def _from_file(path: Path, names: Sequence[Hashable]) -> Ends:
    """The edges of a Parquet file, or of a CSV file with or without a header: a first line that names no vertex."""
    kind = path.suffix.lower()
    if kind == ".parquet":
        ends = _read(path)
        whole = all(end.dtype.kind in "iu" for end in ends)
        return _numbered(
            np.stack(ends, axis=1) if whole else list(zip(*(end.tolist() for end in ends), strict=True)), names
        )
    if kind != ".csv":
        raise InvalidParameter(f"edges are read from .csv and .parquet files, not {kind or 'a file without a suffix'}")
    written = {str(name).strip() for name in names}
    one, other = (np.char.strip(end.astype(str)) for end in _read(path))
    header = int(len(one) > 0 and not {str(one[0]), str(other[0])} & written)
    if not isinstance(names, range):
        return _numbered(list(zip(one[header:].tolist(), other[header:].tolist(), strict=True)), tuple(map(str, names)))
    try:
        return _numbered(np.stack([one[header:], other[header:]], axis=1).astype(np.int64), names)
    except ValueError:
        raise InvalidParameter("edges are pairs of vertex numbers, two integers each") from None


def _read(path: Path) -> list[NDArray[Any]]:
    """The first two columns of a file; those of a CSV file as they are written."""
    import duckdb  # noqa: PLC0415 - only files need an engine

    connection, name = duckdb.connect(), str(path)
    try:
        csv = path.suffix.lower() == ".csv"
        table = connection.read_csv(name, header=False, all_varchar=True) if csv else connection.read_parquet(name)
        columns = list(table.project(", ".join(_quoted(name) for name in table.columns[:2])).fetchnumpy().values())
    except duckdb.Error:
        raise InvalidParameter(f"no edges can be read from this {path.suffix} file") from None
    if len(columns) != 2 or any(np.ma.is_masked(column) for column in columns):
        raise InvalidParameter("a file of edges has two columns, the ends of each edge, and no missing values")
    return [np.ma.getdata(column) for column in columns]


def _quoted(name: str) -> str:
    doubled = name.replace('"', '""')
    return f'"{doubled}"'

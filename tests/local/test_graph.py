"""Graphs: what is read from where, and what becomes of odd input."""

import networkx as nx
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st

from counterpoint.errors import InvalidParameter
from counterpoint.local.graph import Graph

EDGES = [(0, 1), (1, 2), (2, 0), (2, 3)]


def edges_of(graph):
    pairs = zip(np.repeat(np.arange(graph.size), graph.degrees).tolist(), graph.ends.tolist(), strict=True)
    return {(graph.names[a], graph.names[b]) for a, b in pairs if a < b}


def test_every_source_gives_the_same_graph(tmp_path):
    csv, parquet = tmp_path / "edges.csv", tmp_path / "edges.parquet"
    csv.write_text("from,to\n" + "".join(f"{a},{b}\n" for a, b in EDGES))
    pq.write_table(pa.table({"a": [a for a, _ in EDGES], "b": [b for _, b in EDGES], "weight": [0.5] * 4}), parquet)
    matrix = scipy.sparse.coo_array(([1] * 4, ([a for a, _ in EDGES], [b for _, b in EDGES])), shape=(5, 5))
    known = nx.Graph(EDGES)
    known.add_node(4)
    sources = [EDGES, np.array(EDGES), csv, str(parquet), iter(EDGES)]
    graphs = [Graph.of(source, vertices=5) for source in sources]
    graphs += [Graph.of(known), Graph.of(matrix), Graph.of(matrix.tocsr()), Graph.of(graphs[0])]
    for graph in graphs:
        assert graph.size == 5 and edges_of(graph) == {(0, 1), (1, 2), (0, 2), (2, 3)}


def test_a_header_is_a_first_line_that_names_no_vertex(tmp_path):
    csv = tmp_path / "edges.csv"
    for text, edges in (("a,b\n0,1\n", 1), ("0,1\n1,2\n", 2), ("0;1\n1;2\n", 2)):
        csv.write_text(text)
        assert Graph.of(csv, vertices=3).edges == edges
    csv.write_text("0,1\n1,x\n")
    with pytest.raises(InvalidParameter, match="two integers"):
        Graph.of(csv, vertices=3)


def test_vertices_may_have_names(tmp_path):
    csv = tmp_path / "edges.csv"
    csv.write_text("ada,bob\nbob,cyd\n")
    for source in ([("ada", "bob"), ("bob", "cyd")], csv):
        graph = Graph.of(source, vertices=["cyd", "bob", "ada", "dan"])
        assert graph.degrees.tolist() == [1, 2, 1, 0]
    assert Graph.of(nx.Graph([("x", "y")])).names == ("x", "y")


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=40))
def test_loops_and_repetitions_do_not_count(pairs):
    graph = Graph.of([*pairs, *[(b, a) for a, b in pairs], (3, 3)], vertices=10)
    known = nx.Graph([(a, b) for a, b in pairs if a != b])
    known.add_nodes_from(range(10))
    assert graph.edges == known.number_of_edges()
    assert [set(graph.neighbours(v).tolist()) for v in range(10)] == [set(known[v]) for v in range(10)]
    assert [tuple(np.flatnonzero(row)) for row in graph.rows()] == [tuple(graph.neighbours(v)) for v in range(10)]


def test_nothing_is_a_graph_too():
    assert Graph.of([], vertices=0).size == 0 and Graph.of([], vertices=3).degrees.tolist() == [0, 0, 0]
    assert Graph.of(scipy.sparse.coo_array((0, 0))).size == 0
    multi = nx.MultiGraph([(0, 1), (0, 1), (1, 1)])
    assert Graph.of(multi).edges == 1


def test_entries_of_a_matrix_count_once_whichever_triangle_they_are_in_and_zeros_do_not():
    matrix = scipy.sparse.coo_array(([2.5, 1, 0], ([0, 1, 1], [1, 0, 2])), shape=(3, 3))
    assert edges_of(Graph.of(matrix)) == {(0, 1)}


@pytest.mark.parametrize(
    ("source", "vertices", "says"),
    [
        (EDGES, None, "vertices="),
        (EDGES, 3, "not among"),
        ([(-1, 0)], 3, "not among"),
        ([("a", "z")], "ab", "not among"),
        ([(0, 1, 2)], 3, "pairs"),
        ([(0,), (1, 2)], 3, "pairs"),
        ([(0.0, 1.0)], 3, "two integers"),
        ([(True, False)], 3, "two integers"),
        ([(0, None)], 3, "two integers"),
        ([("a", "b", "c")], "abc", "pairs"),
        (7, 3, "pairs"),
        ([], "aa", "same name"),
        ([], [[1]], "compared"),
        ([], -1, "0 to 2"),
        ([], True, "number"),
        ([], 2.5, "number"),
        ("edges.txt", 3, ".csv"),
        ("missing.csv", 3, "no edges can be read"),
        (nx.DiGraph([(0, 1)]), None, "directed"),
        (scipy.sparse.coo_array((2, 3)), None, "square"),
    ],
)
def test_bad_graphs_are_refused_with_the_reason(source, vertices, says):
    with pytest.raises(InvalidParameter, match=says):
        Graph.of(source, vertices)


def test_files_with_missing_values_are_refused(tmp_path):
    path = tmp_path / "edges.parquet"
    pq.write_table(pa.table({"a": [1, None], "b": [0, 1]}), path)
    with pytest.raises(InvalidParameter, match="missing"):
        Graph.of(path, vertices=3)
    pq.write_table(pa.table({"a": [1]}), path)
    with pytest.raises(InvalidParameter, match="two columns"):
        Graph.of(path, vertices=3)


def test_the_error_for_a_stranger_does_not_say_who_it_is():
    with pytest.raises(InvalidParameter) as error:
        Graph.of([("ada", "zoe")], vertices=["ada"])
    assert "zoe" not in str(error.value)

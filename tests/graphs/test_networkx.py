"""Graphs of networkx and matrices of scipy.sparse, as the packages make them."""

from __future__ import annotations

from typing import Any

import networkx as nx
import numpy as np
import pytest
from scipy import sparse

import dither as dt

SURE = 500


def facts(graph: dt.Graph) -> tuple[int, int, list[int]]:
    return (
        graph.edge_count(epsilon=SURE).value,
        sorted(graph.triangles(epsilon=SURE).value for _ in range(5))[2],  # its noise has heavy tails: once in a while it is 1
        [round(each) for each in graph.degree_sequence(epsilon=SURE).value.tolist()],
    )


@pytest.mark.parametrize(
    "made",
    [
        nx.karate_club_graph(),
        nx.erdos_renyi_graph(40, 0.2, seed=1),
        nx.star_graph(9),
        nx.path_graph(["ann", "bob", "eve"]),
        nx.empty_graph(4),
    ],
    ids=["club", "random", "star", "texts", "empty"],
)
def test_a_graph_of_networkx_has_the_numbers_that_networkx_counts(made: Any) -> None:
    triangles = sum(nx.triangles(made).values()) // 3
    assert facts(dt.Graph(made)) == (made.number_of_edges(), triangles, sorted(degree for _, degree in made.degree()))


def test_directions_parallel_edges_and_loops_of_networkx_mean_nothing() -> None:
    plain = nx.Graph([(0, 1), (1, 2), (2, 0)])
    directed = nx.DiGraph([(0, 1), (1, 0), (1, 2), (2, 0), (2, 2)])
    several = nx.MultiGraph([(0, 1), (0, 1), (1, 2), (2, 0)])
    both = nx.MultiDiGraph([(0, 1), (1, 0), (1, 2), (0, 2), (0, 0)])
    assert (
        facts(dt.Graph(directed))
        == facts(dt.Graph(several))
        == facts(dt.Graph(both))
        == facts(dt.Graph(plain))
        == (3, 1, [2] * 3)
    )


def test_labels_of_networkx_that_cannot_be_nodes_are_refused() -> None:
    for odd in (nx.Graph([((0, 1), (1, 2))]), nx.Graph([(0, "a")]), nx.Graph([(0.5, 1.5)])):
        with pytest.raises(dt.ArgumentError, match="all be texts"):
            dt.Graph(odd)


@pytest.mark.parametrize("form", ["csr", "csc", "coo", "lil", "dok", "bsr", "dia"])
@pytest.mark.parametrize("kind", [sparse.csr_array, sparse.csr_matrix])
def test_every_matrix_of_scipy_is_the_same_graph(kind: Any, form: str) -> None:
    made = nx.erdos_renyi_graph(25, 0.3, seed=2)
    matrix = kind(nx.to_scipy_sparse_array(made, dtype=np.float64)).asformat(form)
    upper = kind(sparse.triu(matrix)).asformat(form)
    assert facts(dt.Graph(matrix)) == facts(dt.Graph(upper)) == facts(dt.Graph(made))


def test_a_private_answer_about_a_graph_of_networkx() -> None:
    by_node = dt.Graph(nx.karate_club_graph(), unit="node")
    assert by_node.edge_count(epsilon=SURE, most_degree=33).value == 78
    groups = nx.get_node_attributes(nx.karate_club_graph(), "club")
    found = dt.Graph(nx.karate_club_graph()).edges_between(groups, epsilon=SURE).value
    assert sum(found.values()) == 78

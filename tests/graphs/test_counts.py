"""Edge counts, degrees and groups: what one edge moves, on all small graphs."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from dither.graphs import counts
from dither.graphs.reading import Content
from dither.mechanisms.norms import L1, PerCoordinate
from graphs.families import growing
from graphs.small import all_graphs, content, flipped, kinds, most_by_edge, pairs

GROUP = np.array([0, 0, 1, 1, 2])
STATISTICS: list[tuple[str, Callable[[Content], object], L1 | PerCoordinate]] = [
    ("edges", counts.edge_count, counts.EDGES),
    ("sequence", counts.degree_sequence, counts.SEQUENCE),
    ("histogram", lambda graph: counts.degree_histogram(graph, 4), counts.HISTOGRAM),
    ("cut histogram", lambda graph: counts.degree_histogram(graph, 2), counts.HISTOGRAM),
    ("groups", lambda graph: counts.edges_by_group(graph, GROUP, 3), counts.GROUPS),
]


@pytest.mark.parametrize(("name", "statistic", "norm"), STATISTICS, ids=lambda it: it if isinstance(it, str) else "")
def test_one_edge_moves_it_by_exactly_the_claim(
    name: str, statistic: Callable[[Content], object], norm: L1 | PerCoordinate
) -> None:
    """Also the twin: a claim that is smaller by one is refuted."""
    assert most_by_edge(5, statistic) == norm.total(None)


@pytest.mark.slow
def test_one_edge_moves_it_by_at_most_the_claim_on_larger_graphs() -> None:
    """All kinds of graphs of six nodes, and families that grow with some edges flipped."""
    for graph in [*kinds(6), *growing((12,))]:
        for other in flipped(graph)[:: 1 if graph.size == 6 else 17]:
            group, most = np.arange(graph.size) % 3, graph.size - 1
            pairs_of = [
                (counts.edge_count, counts.EDGES),
                (counts.degree_sequence, counts.SEQUENCE),
                (lambda it, most=most: counts.degree_histogram(it, most), counts.HISTOGRAM),
                (lambda it, group=group: counts.edges_by_group(it, group, 3), counts.GROUPS),
            ]
            for statistic, norm in pairs_of:
                assert np.abs(np.asarray(statistic(graph)) - np.asarray(statistic(other))).sum() <= norm.total(None)


def test_no_place_of_the_sequence_moves_by_more_than_one() -> None:
    values = np.array([counts.degree_sequence(graph) for graph in all_graphs(5)])
    masks = np.arange(len(values))
    assert max(int(np.abs(values - values[masks ^ (1 << b)]).max()) for b in range(len(pairs(5)))) == 1


def test_degrees_by_node_in_bins_would_move_more_than_edges() -> None:
    """A twin: the sensitivity of the edge count does not cover the histogram."""
    assert most_by_edge(4, lambda graph: counts.degree_histogram(graph, 3)) > counts.EDGES.total(None)


def test_statistics_of_a_known_graph() -> None:
    kite = content(5, [(0, 1), (0, 2), (1, 2), (2, 3)])
    assert counts.edge_count(kite) == 4
    assert counts.degree_sequence(kite).tolist() == [0, 1, 2, 2, 3]
    assert counts.degree_histogram(kite, 4).tolist() == [1, 1, 2, 1, 0]
    assert counts.degree_histogram(kite, 2).tolist() == [1, 1, 3]
    assert counts.edges_by_group(kite, GROUP, 3).tolist() == [1, 2, 0, 1, 0, 0]


def test_the_rising_sequence_is_no_further_off_than_the_worst_noise() -> None:
    exact = np.array([0, 0, 1, 3, 3, 9, 20])
    for noise in ([5, -5, 5, -5, 5, -5, 5], [-5, 5, -5, 5, -5, 5, -5], [0, 0, 5, 0, -5, 0, 0]):
        risen = counts.rising(exact + np.array(noise), 30)
        assert (np.diff(risen) >= 0).all()
        assert np.abs(risen - exact).max() <= 5
    assert counts.rising(np.zeros(0, dtype=np.int64), 3).tolist() == []

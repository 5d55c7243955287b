"""The degree bound: what one node moves, on all small graphs and families that grow. Triangles are not protected by it."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from itertools import combinations
from typing import Any

import numpy as np
import pytest

import dither as dt
from dither.graphs import counts, projection, shape
from dither.graphs.projection import count_cumulative, project
from dither.graphs.reading import Content
from graphs.families import growing, triangle_chain
from graphs.small import all_graphs, content, pairs, without

Statistic = Callable[[Content, int], Any]  # of a projected graph
CLAIMS: dict[str, tuple[Statistic, Callable[[int], int]]] = {
    "edges": (lambda graph, theta: counts.edge_count(graph), lambda theta: projection.edges(theta).total(None)),
    "histogram": (counts.degree_histogram, lambda theta: projection.histogram(theta).total(None)),
    "at most": (
        lambda graph, theta: count_cumulative(graph, theta, at_most=True),
        lambda theta: projection.cumulative(theta, at_most=True).total(None),
    ),
    "at least": (
        lambda graph, theta: count_cumulative(graph, theta, at_most=False),
        lambda theta: projection.cumulative(theta, at_most=False).total(None),
    ),
}


def by_definition(graph: Content, theta: int) -> list[list[int]]:
    degrees, taken = [0] * graph.size, []
    for a, b in graph.ends.tolist():
        if degrees[a] < theta and degrees[b] < theta:
            taken.append([a, b])
            degrees[a] += 1
            degrees[b] += 1
    return taken


def test_the_projection_is_that_of_the_definition() -> None:
    for graph in [*all_graphs(5), *growing((12,))]:
        for theta in (1, 2, 3):
            assert project(graph, theta).ends.tolist() == by_definition(graph, theta)


def most(pairs_of: list[tuple[Content, Content]], statistic: Statistic, theta: int) -> int:
    return max(
        int(np.abs(np.asarray(statistic(one, theta)) - np.asarray(statistic(other, theta))).sum()) for one, other in pairs_of
    )


# --- all graphs of n nodes at once: row m has the pairs of the bits of m ------------------------------------------


@lru_cache(maxsize=8)
def all_projected(n: int, theta: int) -> tuple[np.ndarray, np.ndarray]:
    """(which pairs are taken, degrees) of every graph."""
    masks = np.arange(1 << len(pairs(n)))
    taken, degrees = np.zeros((len(masks), len(pairs(n))), dtype=bool), np.zeros((len(masks), n), dtype=np.int64)
    for bit, (a, b) in enumerate(pairs(n)):
        taken[:, bit] = (masks >> bit & 1 == 1) & (degrees[:, a] < theta) & (degrees[:, b] < theta)
        degrees[:, a] += taken[:, bit]
        degrees[:, b] += taken[:, bit]
    return taken, degrees


def test_all_at_once_is_one_by_one() -> None:
    taken, degrees = all_projected(5, 2)
    for mask, graph in enumerate(all_graphs(5)):
        one = project(graph, 2)
        assert one.degrees().tolist() == degrees[mask].tolist()
        assert one.ends.tolist() == [list(pairs(5)[bit]) for bit in np.flatnonzero(taken[mask])]


def cells(degrees: np.ndarray, theta: int) -> np.ndarray:
    return np.stack([(degrees == i).sum(axis=1) for i in range(theta + 1)], axis=1)


VECTORS: dict[str, Callable[[np.ndarray, int], np.ndarray]] = {
    "edges": lambda degrees, theta: degrees.sum(axis=1, keepdims=True) // 2,
    "histogram": cells,
    "at most": lambda degrees, theta: np.cumsum(cells(degrees, theta), axis=1),
    "at least": lambda degrees, theta: np.cumsum(cells(degrees, theta)[:, ::-1], axis=1),
}


def most_of_all(n: int, theta: int, statistic: Callable[[np.ndarray, int], np.ndarray]) -> int:
    """How far one node moves a statistic of the degrees, over all graphs of n nodes."""
    degrees, masks = all_projected(n, theta)[1], np.arange(1 << len(pairs(n)))
    found, whole = 0, statistic(degrees, theta)
    for v in range(n):
        others = ~sum(1 << bit for bit, pair in enumerate(pairs(n)) if v in pair)
        less = statistic(np.delete(degrees[masks & others], v, axis=1), theta)
        found = max(found, int(np.abs(whole - less).sum(axis=1).max()))
    return found


@pytest.mark.parametrize("theta", [1, 2, 3, 4])
@pytest.mark.parametrize("name", CLAIMS)
def test_one_node_moves_it_by_at_most_the_claim_on_all_small_graphs(name: str, theta: int) -> None:
    assert all(most_of_all(n, theta, VECTORS[name]) <= CLAIMS[name][1](theta) for n in (3, 4, 5, 6))


@pytest.mark.parametrize("name", CLAIMS)
def test_one_node_moves_it_by_at_most_the_claim_on_families_that_grow(name: str) -> None:
    statistic, claim = CLAIMS[name]
    for theta in (1, 2, 4):
        for graph in growing():
            removed = [0, graph.size // 2, graph.size - 1, int(np.argmax(graph.degrees()))]
            moved = [(project(graph, theta), project(without(graph, v), theta)) for v in removed]
            assert most(moved, statistic, theta) <= claim(theta)


@pytest.mark.parametrize("name", CLAIMS)
def test_a_smaller_claim_is_refuted(name: str) -> None:
    """A twin: one less than the claim is exceeded by some small graph."""
    assert most_of_all(5, 2, VECTORS[name]) > CLAIMS[name][1](2) - 1


def test_at_least_does_not_keep_the_claim_of_at_most() -> None:
    assert most_of_all(5, 2, VECTORS["at least"]) > projection.cumulative(2, at_most=True).total(None)


def test_without_a_bound_one_node_moves_edges_without_limit() -> None:
    star = content(30, [(0, i) for i in range(1, 30)])
    assert counts.edge_count(star) - counts.edge_count(without(star, 0)) > projection.edges(2).total(None)


def test_nodes_taken_from_edges_would_move_without_limit() -> None:
    """A twin: if nodes without edges were not counted, removing the centre of a star would remove everybody."""
    star = content(30, [(0, i) for i in range(1, 30)])
    ends_only = content(0, [])
    moved = np.abs(counts.degree_histogram(project(star, 2), 2) - counts.degree_histogram(ends_only, 2)).sum()
    assert moved > projection.histogram(2).total(None)


# --- triangles --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("theta", [2, 3])
def test_small_graphs_would_confirm_a_false_bound_for_triangles(theta: int) -> None:
    """On all graphs of six nodes the number of triangles of the projected graph moves by no more than theta."""
    n, place = 6, {pair: bit for bit, pair in enumerate(pairs(6))}
    taken, masks = all_projected(n, theta)[0], np.arange(1 << len(pairs(n)))
    corners = [(place[a, b], place[a, c], place[b, c]) for a, b, c in combinations(range(n), 3)]
    counted = np.sum([taken[:, list(three)].all(axis=1) for three in corners], axis=0)
    others = [~sum(1 << bit for bit, pair in enumerate(pairs(n)) if v in pair) for v in range(n)]
    assert max(int(np.abs(counted - counted[masks & each]).max()) for each in others) == theta


@pytest.mark.parametrize("k", [3, 10, 50])
def test_one_node_breaks_every_triangle_of_a_chain(k: int) -> None:
    """The twin that must fail: no bound holds for triangles of the projected graph."""
    chain, v = triangle_chain(k)
    assert chain.degrees().max() == 3
    assert shape.triangle_count(project(without(chain, v), 2)) - shape.triangle_count(project(chain, 2)) == k


# --- answers ----------------------------------------------------------------------------------------------------


def test_answers_of_a_large_price_are_those_of_the_projected_graph() -> None:
    star = dt.Graph([(0, i) for i in range(1, 8)], 8, unit="node")
    assert star.edge_count(epsilon=900, most_degree=3).value == 3
    assert star.degree_histogram(epsilon=900, most_degree=3).value.tolist() == [4, 3, 0, 1]
    assert star.cumulative_degrees(epsilon=900, most_degree=3).value.tolist() == [4, 7, 7, 8]
    assert star.cumulative_degrees(epsilon=900, most_degree=3, side="at least").value.tolist() == [8, 4, 1, 1]


def test_noise_is_for_the_claimed_sensitivity() -> None:
    graph = dt.Graph([], 8, unit="node")
    asked = {
        3: graph.edge_count(epsilon=1, most_degree=3, left_out=False),
        7: graph.degree_histogram(epsilon=1, most_degree=3, left_out=False),
        4: graph.cumulative_degrees(epsilon=1, most_degree=3, left_out=False),
    }
    for sensitivity, answer in asked.items():
        assert answer.margin() == dt.Geometric(epsilon=1, sensitivity=sensitivity).margin("0.95")
        assert answer.record()["most_degree"] == 3
    assert "without what exceeds most_degree = 3" in str(asked[3])


def test_the_shape_of_an_answer_does_not_depend_on_who_is_in_the_graph() -> None:
    few, many = dt.Graph([], [], unit="node"), dt.Graph(pairs(9), 9, unit="node")
    for graph in (few, many):
        assert len(graph.degree_histogram(epsilon=1, most_degree=4).value) == 5
        assert len(graph.cumulative_degrees(epsilon=1, most_degree=4).value) == 5


@pytest.mark.parametrize("bound", [0, -1, None, 1.5, True, 2**60])
def test_a_bound_below_one_is_refused(bound: Any) -> None:
    with pytest.raises(dt.ArgumentError):
        dt.Graph([], 3, unit="node").edge_count(epsilon=1, most_degree=bound)


def test_a_bound_is_refused_where_edges_are_protected() -> None:
    with pytest.raises(dt.ArgumentError, match="unit is a node"):
        dt.Graph([], 3).edge_count(epsilon=1, most_degree=3)
    with pytest.raises(dt.ArgumentError, match="unit is a node"):
        dt.Graph([], 3).cumulative_degrees(epsilon=1, most_degree=3)
    with pytest.raises(dt.ArgumentError, match="largest"):
        dt.Graph([], 3, unit="node").degree_histogram(epsilon=1, most_degree=3, largest=2)

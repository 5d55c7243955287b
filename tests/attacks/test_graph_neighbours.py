"""Neighbouring graphs, asked with the same random bits: answers differ by at most the sensitivity, and nothing else differs."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from typing import Any

import numpy as np
import pytest

import dither as dt
from dither.exact import replay
from dither.graphs.projection import project
from dither.graphs.shape import triangle_count
from graphs.families import triangle_chain
from graphs.small import without

NODES = 9
EDGES = [(a, b) for a, b in combinations(range(NODES), 2) if (a + 2 * b) % 3]
BOUNDS = {"most_triangles": 3, "most_nodes": 99, "most_edges": 999}
Ask = Callable[[dt.Graph], Any]

FOR_EDGES: dict[str, tuple[Ask, int | None]] = {
    "edges": (lambda graph: graph.edge_count(epsilon=1), 1),
    "histogram": (lambda graph: graph.degree_histogram(epsilon=1), 4),
    "groups": (lambda graph: graph.edges_between({v: v % 2 for v in range(NODES)}, epsilon=1), 1),
    "sequence": (lambda graph: graph.degree_sequence(epsilon=1), None),
    "triangles": (lambda graph: graph.triangles(epsilon=1), None),
    "stars": (lambda graph: graph.stars(2, epsilon=1, margin_share="1/4"), None),
}
FOR_NODES: dict[str, tuple[Ask, int | None]] = {
    "edges": (lambda graph: graph.edge_count(epsilon=1, most_degree=3), 3),
    "histogram": (lambda graph: graph.degree_histogram(epsilon=1, most_degree=3), 7),
    "cumulative": (lambda graph: graph.cumulative_degrees(epsilon=1, most_degree=3), 4),
    "triangles": (lambda graph: graph.bounded_triangles(epsilon=1, **BOUNDS), 4),
    "bound": (lambda graph: graph.suggest_degree(epsilon=1, largest=8), None),
}


def asked(graph: dt.Graph, ask: Ask) -> Any:
    with replay.stream(b"the same bits"):
        return ask(graph)


def moved(one: Any, other: Any) -> int:
    a, b = (np.array(list(each.values())) if isinstance(each, dict) else np.atleast_1d(each) for each in (one, other))
    return int(np.abs(a - b).sum())


def alike(one: Any, other: Any) -> bool:
    """Whether everything but the noisy value is equal."""
    kinds = type(one.value) is type(other.value) and np.shape(one.value) == np.shape(other.value)
    return kinds and one.record() == other.record() and one.loss() == other.loss()


@pytest.mark.parametrize("name", FOR_EDGES)
def test_one_edge(name: str) -> None:
    ask, most = FOR_EDGES[name]
    whole = asked(dt.Graph(EDGES, NODES), ask)
    for left_out in EDGES[::4]:
        less = asked(dt.Graph([edge for edge in EDGES if edge != left_out], NODES), ask)
        assert alike(whole, less)
        assert most is None or moved(whole.value, less.value) <= most


@pytest.mark.parametrize("name", FOR_NODES)
def test_one_node(name: str) -> None:
    ask, most = FOR_NODES[name]
    whole = asked(dt.Graph(EDGES, NODES, unit="node"), ask)
    for v in range(NODES):
        kept = [edge for edge in EDGES if v not in edge]
        less = asked(dt.Graph(kept, [node for node in range(NODES) if node != v], unit="node"), ask)
        assert alike(whole, less)
        assert most is None or moved(whole.value, less.value) <= most


def test_that_check_can_fail() -> None:
    """Noise for one edge does not hide one node: the same check sees the difference."""
    whole = asked(dt.Graph(EDGES, NODES), FOR_EDGES["edges"][0])
    less = asked(dt.Graph([edge for edge in EDGES if 0 not in edge], NODES), FOR_EDGES["edges"][0])
    assert moved(whole.value, less.value) > 1


def test_no_error_depends_on_edges() -> None:
    """What is refused is refused in the same words for an empty and for a full graph."""
    for unit in ("edge", "node"):
        for name, (ask, _) in {**FOR_EDGES, **FOR_NODES}.items():
            told = set()
            for edges in ([], EDGES, list(combinations(range(NODES), 2))):
                try:
                    ask(dt.Graph(edges, NODES, unit=unit))
                    told.add("answered")
                except dt.DitherError as error:
                    told.add(str(error))
            assert len(told) == 1, (unit, name)


@pytest.mark.parametrize("k", [7, 40])
def test_a_bound_that_small_graphs_confirm_is_broken_by_a_larger_one(k: int) -> None:
    """One node moves triangles of a projected graph without limit, so they are not offered; `bounded_triangles` moves by 3."""
    chain, v = triangle_chain(k)
    less = without(chain, v)
    assert abs(triangle_count(project(chain, 2)) - triangle_count(project(less, 2))) == k
    whole, part = (dt.Graph(np.array(each.labels)[each.ends], list(each.labels), unit="node") for each in (chain, less))
    with pytest.raises(dt.ArgumentError, match="unit is a node"):
        whole.triangles(epsilon=1)
    answers = [
        asked(each, lambda graph: graph.bounded_triangles(epsilon=1, **BOUNDS | {"most_triangles": 2}))
        for each in (whole, part)
    ]
    assert moved(answers[0].value, answers[1].value) <= 3

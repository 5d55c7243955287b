"""Triangles under node privacy: the programme is bracketed, has an exact fallback, and moves by at most tau + 1."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np
import pytest

import dither as dt
from dither.graphs import programme, shape
from dither.graphs.programme import bracket, exact_optimum, incidence, kept_triangles, list_triangles
from dither.graphs.reading import Content
from graphs.families import growing, triangle_chain
from graphs.small import content, kinds, pairs, without


def optimum(graph: Content, tau: int) -> Fraction:
    """P itself, in rationals."""
    corners = list_triangles(graph)
    return exact_optimum(incidence(corners, np.ones(graph.size, dtype=bool)), tau) if len(corners) else Fraction(0)


def test_there_are_as_many_kinds_as_known() -> None:
    assert [len(kinds(n)) for n in (3, 4, 5, 6)] == [4, 11, 34, 156]


def test_triangles_are_listed() -> None:
    for graph in kinds(5):
        assert len(list_triangles(graph)) == shape.triangle_count(graph)


@pytest.mark.parametrize("tau", [1, 2, 3])
def test_what_is_released_is_near_the_optimum(tau: int) -> None:
    for graph in kinds(5):
        best, found = optimum(graph, tau), kept_triangles(graph, tau)
        assert best - 1 < found <= best + programme.ETA


def test_no_bound_keeps_all_triangles() -> None:
    for graph in kinds(5):
        assert optimum(graph, 6) == kept_triangles(graph, 6) == shape.triangle_count(graph)


def corrupt(x: np.ndarray, y: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    yield x, y
    yield x * 0.9, y * 1.1
    yield np.ones_like(x), np.zeros_like(y)
    yield np.full_like(x, np.nan), np.full_like(y, np.inf)
    yield -x, -y


def test_a_bracket_holds_whatever_the_solver_returns() -> None:
    for graph in kinds(5):
        corners = list_triangles(graph)
        if not len(corners):
            continue
        table = incidence(corners, np.ones(graph.size, dtype=bool))
        best = exact_optimum(table, 2)
        for x, y in corrupt(np.full(table.shape[1], 0.5), np.full(table.shape[0], 0.4)):
            low, high = bracket(table, 2, x, y)
            assert low <= best <= high


@pytest.mark.parametrize("solved", [None, "bad"])
def test_without_a_useful_solver_the_optimum_is_exact(solved: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    def poor(table: Any, tau: int) -> Any:
        return None if solved is None else (np.zeros(table.shape[1]), np.zeros(table.shape[0]))

    expected = [optimum(graph, 1) // 1 for graph in kinds(5)]
    monkeypatch.setattr(programme, "_solve", poor)
    assert [kept_triangles(graph, 1) for graph in kinds(5)] == expected


# --- one node ---------------------------------------------------------------------------------------------------


def most(graphs: Iterator[Content] | tuple[Content, ...], tau: int) -> int:
    found = 0
    for graph in graphs:
        now = kept_triangles(graph, tau)
        crowd = np.argsort(-graph.degrees())[:6].tolist()
        found = max(found, *(abs(now - kept_triangles(without(graph, v), tau)) for v in crowd))
    return found


@pytest.mark.slow
@pytest.mark.parametrize("tau", [1, 2, 3])
def test_one_node_moves_it_by_at_most_tau_and_one_on_all_small_graphs(tau: int) -> None:
    assert all(most(kinds(n), tau) <= programme.sensitivity(tau).total(None) == tau + 1 for n in (3, 4, 5, 6))


@pytest.mark.slow
def test_one_node_moves_it_by_at_most_tau_and_one_on_families_that_grow() -> None:
    windmill = content(21, [edge for i in range(10) for edge in ((0, 2 * i + 1), (0, 2 * i + 2), (2 * i + 1, 2 * i + 2))])
    book = content(12, [(0, 1), *((a, b) for a in (0, 1) for b in range(2, 12))])
    for tau in (1, 2, 5):
        assert most(iter([windmill, book]), tau) <= tau + 1
        assert most(growing((7, 12)), tau) <= tau + 1


@pytest.mark.parametrize("k", [5, 30])
def test_the_chain_that_breaks_a_degree_bound_moves_it_by_at_most_tau_and_one(k: int) -> None:
    chain, v = triangle_chain(k)
    assert abs(kept_triangles(chain, 2) - kept_triangles(without(chain, v), 2)) <= 3


def test_that_check_can_fail() -> None:
    """A twin: the plain number of triangles moves by more, on a windmill and on a complete graph."""
    full = content(6, list(combinations(range(6), 2)))
    assert shape.triangle_count(full) - shape.triangle_count(without(full, 0)) > programme.sensitivity(2).total(None)


def test_a_programme_without_the_bound_of_one_node_would_move_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """A twin: nodes with few edges left unbounded."""
    full = content(6, list(combinations(range(6), 2)))
    monkeypatch.setattr(programme, "_upper", lambda corners, crowded, tau: Fraction(len(corners)))
    assert kept_triangles(full, 2) - kept_triangles(without(full, 0), 2) > 3


# --- answers ----------------------------------------------------------------------------------------------------


def test_answers() -> None:
    graph = dt.Graph(pairs(5), 5, unit="node")
    answer = graph.bounded_triangles(epsilon=900, most_triangles=6, most_nodes=100, most_edges=1000)
    assert answer.value == 10
    assert answer.record()["most_triangles"] == 6
    assert answer.margin() == 0
    assert "most_triangles = 6" in str(answer)


def test_limits_are_decided_before_the_graph_is_looked_at() -> None:
    graph = dt.Graph([], 5, unit="node")
    for wrong in ({"most_nodes": 10**6}, {"most_edges": 10**6}, {"most_triangles": 0}, {"most_triangles": 10**9}):
        with pytest.raises(dt.ArgumentError):
            graph.bounded_triangles(**{"epsilon": 1, "most_triangles": 2, "most_nodes": 9, "most_edges": 9} | wrong)
    larger = dt.Graph(pairs(12), 12, unit="node")
    larger.bounded_triangles(epsilon=1, most_triangles=2, most_nodes=1, most_edges=1)  # not compared with the graph
    with pytest.raises(dt.ArgumentError, match="unit is a node"):
        dt.Graph([], 5).bounded_triangles(epsilon=1, most_triangles=2, most_nodes=9, most_edges=9)

"""A degree bound that is chosen privately: one node moves every score by at most 1."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import dither as dt
from dither.graphs import choice
from dither.graphs.reading import Content
from graphs.families import growing
from graphs.small import all_graphs, content, without

CAP, WEIGHT, EPSILON = 4, Fraction(3), Fraction(1)


def scored(graph: Content, cap: int = CAP) -> list[Fraction]:
    return choice.scores(choice.qualities(graph, cap, WEIGHT), cap, EPSILON)


def moved(graph: Content, v: int, cap: int = CAP) -> Fraction:
    return max(abs(a - b) for a, b in zip(scored(graph, cap), scored(without(graph, v), cap), strict=True))


def test_one_node_moves_each_score_by_at_most_one() -> None:
    small = max(moved(graph, v) for graph in all_graphs(5)[::3] for v in range(5))
    large = max(moved(graph, v, 9) for graph in growing() for v in (0, graph.size - 1, int(np.argmax(graph.degrees()))))
    assert 0 < small <= choice.SENSITIVITY
    assert 0 < large <= choice.SENSITIVITY


def test_that_check_can_fail() -> None:
    """A twin: edges of the graph itself, without a bound, move by more than any candidate's own sensitivity."""
    star = content(40, [(0, i) for i in range(1, 40)])
    moves = choice.candidates(CAP)
    full = [len(star.ends) - 3 * theta for theta in moves]
    none = [0 - 3 * theta for theta in moves]
    assert max(abs(a - b) for a, b in zip(full, none, strict=True)) > max(moves)
    mixed = [39 - 3 * theta if theta == CAP else -3 * theta for theta in moves]
    change = [abs(a - b) for a, b in zip(choice.scores(mixed, CAP, EPSILON), choice.scores(none, CAP, EPSILON), strict=True)]
    assert max(change) > choice.SENSITIVITY


def test_each_quality_moves_by_at_most_its_own_bound() -> None:
    for graph in growing((12,)):
        for v in (0, int(np.argmax(graph.degrees()))):
            now, then = choice.qualities(graph, 9, WEIGHT), choice.qualities(without(graph, v), 9, WEIGHT)
            assert all(abs(a - b) <= theta for a, b, theta in zip(now, then, choice.candidates(9), strict=True))


def test_a_crowded_graph_gets_a_large_bound_and_a_sparse_one_a_small_bound() -> None:
    crowded = dt.Graph([(a, b) for a in range(60) for b in range(a)], 60, unit="node")
    sparse = dt.Graph([(2 * i, 2 * i + 1) for i in range(500)], 1000, unit="node")
    assert crowded.suggest_degree(epsilon=500, largest=50).value >= 32
    assert sparse.suggest_degree(epsilon=500, largest=50).value == 1


def test_an_answer_states_its_price_and_no_margin() -> None:
    graph = dt.Graph([], 9, unit="node")
    answer = graph.suggest_degree(epsilon="1/2", largest=20, for_epsilon=1)
    assert answer.loss() == dt.Pure("1/2")
    assert answer.margin() is None
    assert answer.value in choice.candidates(20)
    graph.edge_count(epsilon=1, most_degree=answer.value)


@pytest.mark.parametrize("wrong", [{"largest": 0}, {"epsilon": 0}, {"for_epsilon": -1}])
def test_wrong_terms_are_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(dt.ArgumentError):
        dt.Graph([], 9, unit="node").suggest_degree(**{"epsilon": 1, "largest": 9} | wrong)
    with pytest.raises(dt.ArgumentError, match="unit is a node"):
        dt.Graph([], 9).suggest_degree(epsilon=1, largest=9)

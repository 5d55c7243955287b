"""What bounds leave out of a graph: estimated privately, and stated beside the margin."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

import numpy as np
import pytest

import dither as dt
from dither.graphs import counts
from dither.graphs.questions import WIDER, Bounded, BoundedEdgeCount, BoundedHistogram, BoundedTriangles, Question
from dither.graphs.reading import Content
from graphs.families import growing
from graphs.small import all_graphs, content, without

HALF = Fraction(1, 2)


def moved(question: Question, graph: Content, v: int) -> int:
    """How far one node moves what is left out."""
    both = (question.exact(each)[1][0] for each in (graph, without(graph, v)))
    return abs(next(both) - next(both))


def claim(question: Question) -> Fraction:
    return question.noise_beside.sensitivity.value  # type: ignore[union-attr]


def corners(graph: Content) -> Iterable[int]:
    return {0, graph.size - 1, int(np.argmax(graph.degrees()))}


@pytest.mark.parametrize("theta", [1, 2])
@pytest.mark.parametrize("kind", [BoundedEdgeCount, BoundedHistogram])
def test_one_node_moves_the_edges_that_are_left_out_by_at_most_the_claim(kind: type[Bounded], theta: int) -> None:
    question = kind(HALF, HALF, theta)
    assert max(moved(question, graph, v) for graph in all_graphs(5)[::7] for v in range(5)) <= claim(question)
    assert max(moved(question, graph, v) for graph in growing() for v in corners(graph)) <= claim(question)


def test_that_check_can_fail() -> None:
    """A twin: all edges that a bound leaves out move without limit; and the claim is reached within one bound."""
    star = content(40, [(0, i) for i in range(1, 40)])
    question = BoundedEdgeCount(HALF, HALF, 2)
    lost = counts.edge_count(star) - question.count(star)[0]
    assert lost - 0 > claim(question)
    assert moved(question, star, 0) == (WIDER - 1) * question.theta


@pytest.mark.slow
def test_one_node_moves_the_triangles_that_are_left_out_by_at_most_the_claim() -> None:
    question = BoundedTriangles(HALF, HALF, 1)
    small = max(moved(question, graph, v) for graph in all_graphs(5)[::17] for v in range(5))
    large = max(moved(question, graph, v) for graph in growing((7, 12)) for v in corners(graph))
    assert 0 < small <= claim(question)
    assert 0 < large <= claim(question)


def test_the_estimate_is_of_what_a_wider_bound_keeps() -> None:
    star = dt.Graph([(0, i) for i in range(1, 40)], 40, unit="node")
    told = star.edge_count(epsilon=900, most_degree=3).left_out
    assert told is not None
    assert (told.wider, told.value) == (12, pytest.approx(9, abs=40))
    assert told.margin() == dt.Geometric(epsilon=8, sensitivity=12).margin("0.95")
    calm = dt.Graph([(0, 1)], 40, unit="node").edge_count(epsilon=900, most_degree=3)
    assert "left out: " in str(calm)


def test_five_percent_of_the_price_are_for_it() -> None:
    graph = dt.Graph([], 4, unit="node")
    answer = graph.edge_count(epsilon=1, most_degree=3)
    assert answer.loss() == dt.Pure(1)
    assert [Fraction(each["epsilon"]) for each in answer.noise] == [Fraction(19, 20), Fraction(1, 20)]
    alone = graph.edge_count(epsilon=1, most_degree=3, left_out=False)
    assert (alone.left_out, len(alone.noise), alone.loss()) == (None, 1, dt.Pure(1))
    with pytest.raises(dt.ArgumentError, match="left_out"):
        graph.edge_count(epsilon=1, most_degree=3, left_out=1)  # type: ignore[arg-type]


def test_a_bias_that_the_noise_does_not_hide_is_told() -> None:
    clique = dt.Graph([(a, b) for a in range(120) for b in range(a)], 120, unit="node")
    told = clique.edge_count(epsilon=100, most_degree=5).left_out
    assert told is not None
    assert told.value > told.margin() > 0
    assert "or more: so many would count in addition with most_degree = 20" in str(told)

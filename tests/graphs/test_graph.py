"""dt.Graph: what it reads, what edges mean, what it answers, and what it never tells."""

from __future__ import annotations

from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy import sparse

import dither as dt

NODES = ["ann", "bob", "eve", "joe"]
EDGES = [("ann", "bob"), ("bob", "eve")]
SURE = 500  # so large a price that noise is 0


def edges_of(graph: dt.Graph) -> int:
    return int(graph.edge_count(epsilon=SURE).value)


@pytest.mark.parametrize(
    "extra",
    [
        ("ann", "bob"),
        ("bob", "ann"),
        ("eve", "eve"),
        ("ann", "zoe"),
        ("zoe", "zed"),
        (None, "ann"),
        (float("nan"), "ann"),
        (3, "ann"),
    ],
    ids=str,
)
def test_repeats_loops_and_unknown_ends_change_nothing(extra: tuple[Any, Any]) -> None:
    assert edges_of(dt.Graph([*EDGES, extra], NODES)) == 2


def test_every_form_of_edges_is_the_same_graph() -> None:
    pairs = np.array([[0, 1], [1, 2], [2, 1], [3, 3], [0, 9]])
    matrix = sparse.coo_array((np.array([1.0, 2.0, 5.0, 0.0]), (np.array([0, 2, 1, 0]), np.array([1, 1, 2, 3]))), shape=(4, 4))
    alike = SimpleNamespace(nodes=[0, 1, 2, 3], edges=lambda: [(0, 1), (2, 1)])  # as networkx spells it
    forms = [
        dt.Graph(pairs, 4),
        dt.Graph(pairs.astype(np.uint8), range(4)),
        dt.Graph(pairs.tolist(), np.arange(4)),
        dt.Graph(matrix),
        dt.Graph(matrix.tocsr()),
        dt.Graph(alike),
    ]
    for graph in forms:
        assert edges_of(graph) == 2
        assert graph.degree_sequence(epsilon=SURE).value.tolist() == [0, 1, 1, 2]


def test_a_number_that_would_wrap_around_is_no_node() -> None:
    assert edges_of(dt.Graph(np.array([[0, 2**64 - 1]], dtype=np.uint64), [-1, 0])) == 0
    assert edges_of(dt.Graph([(0, 2**64 - 1)], [-1, 0])) == 0


@pytest.mark.parametrize(
    ("edges", "nodes", "word"),
    [
        (EDGES, None, "must be listed"),
        ([("ann", "bob", 3)], NODES, "pairs"),
        (["ab"], NODES, "pairs"),
        (np.zeros((3, 3), dtype=int), 4, "two columns"),
        (np.ma.masked_array([[0, 1]], mask=[[False, True]]), 4, "masked"),
        (EDGES, ["ann", 3], "all be texts"),
        (EDGES, [1.5], "all be texts"),
        (EDGES, -1, "at least 0"),
        (EDGES, 2**60, "at most"),
        (sparse.coo_array(np.zeros((2, 3))), None, "square"),
        (sparse.coo_array(np.zeros((2, 2))), 3, "one label"),
        (3, 4, "must be a list"),
    ],
)
def test_what_is_wrong_by_type_or_shape_is_refused(edges: Any, nodes: Any, word: str) -> None:
    with pytest.raises(dt.ArgumentError, match=word):
        dt.Graph(edges, nodes)


def test_answers_of_a_large_price_are_exact() -> None:
    graph = dt.Graph([(0, 1), (0, 2), (1, 2), (2, 3)], 5)
    assert graph.density(epsilon=SURE).value == Fraction(4, 10)
    assert graph.degree_histogram(epsilon=SURE).value.tolist() == [1, 1, 2, 1, 0]
    assert graph.degree_histogram(epsilon=SURE, largest=2).value.tolist() == [1, 1, 3]
    groups = {0: "a", 1: "a", 2: "b", 3: "b", 4: "a"}
    found = graph.edges_between(groups, epsilon=SURE).value
    assert found == {("a", "a"): 1, ("a", "b"): 2, ("b", "b"): 1}


def test_prices_and_margins_are_stated() -> None:
    graph = dt.Graph(EDGES, NODES)
    answer = graph.edge_count(epsilon="1/2")
    assert answer.loss() == dt.Pure("1/2")
    assert answer.margin("0.95") == dt.Geometric(epsilon="1/2", sensitivity=1).margin("0.95")
    assert graph.density(epsilon=1).margin() == Fraction(3, 6)
    assert graph.degree_sequence(epsilon=1).margin() == dt.Geometric(epsilon=1, sensitivity=2).margin(1 - Fraction(5, 400))
    assert answer.record()["noise"] == [dt.Geometric(epsilon="1/2", sensitivity=1).record()]
    assert str(answer).endswith("± 6 (edge privacy, ε = 0.5)")


def test_nothing_that_is_shown_depends_on_edges() -> None:
    few, many = dt.Graph([], 5), dt.Graph([(a, b) for a in range(5) for b in range(a)], 5)
    assert repr(few) == repr(many) == "Graph(5 nodes, unit='edge')"
    for name in ("edge_count", "density", "degree_histogram", "degree_sequence"):
        one, other = (getattr(each, name)(epsilon=1) for each in (few, many))
        assert one.record() == other.record()
        assert one.margin() == other.margin()
        assert np.shape(one.value) == np.shape(other.value)


def test_that_check_can_fail() -> None:
    assert repr(dt.Graph([], 5)) != repr(dt.Graph([], 6))


def test_the_number_of_nodes_is_not_shown_if_a_node_is_protected() -> None:
    assert repr(dt.Graph([], 5, unit="node")) == repr(dt.Graph([], 6, unit="node"))


@pytest.mark.parametrize("groups", [3, {0: "a"}, {0: [], 1: [], 2: []}])
def test_groups_must_name_the_group_of_every_node(groups: Any) -> None:
    with pytest.raises(dt.ArgumentError, match="groups"):
        dt.Graph([], 3).edges_between(groups, epsilon=1)


def test_a_question_for_edges_is_refused_where_nodes_are_protected() -> None:
    with pytest.raises(dt.ArgumentError, match="unit is a node"):
        dt.Graph([], 3, unit="node").density(epsilon=1)


def test_too_few_nodes_are_refused() -> None:
    with pytest.raises(dt.ArgumentError, match="2 nodes or more"):
        dt.Graph([], 1).density(epsilon=1)

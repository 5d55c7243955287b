"""A graph in memory. Nothing is charged: add up the prices of what you ask."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from dither.errors import ArgumentError, Fix, Python
from dither.exact.numbers import Number, one_of
from dither.graphs.answer import GraphAnswer
from dither.graphs.asking import Questions, for_edges, for_nodes, price_of, shares, triangles_for_nodes
from dither.graphs.questions import EdgesBetween, Question
from dither.graphs.reading import Content, read

MOST_GROUPS = 1000


class Graph(Questions[GraphAnswer]):
    """A private graph: edges between nodes, without directions, loops or repeats.

    `edges`: a list of pairs, an array of two columns, a matrix of scipy.sparse or a graph of networkx. `nodes`: the labels of
    all nodes, or their number for 0, 1, …; matrices and networkx bring their own. `unit`: what is protected, "edge" or "node".
    Edges with an end that is not a node do not count: see reading.py for what else edges mean.

    >>> friends = Graph([("ann", "bob"), ("bob", "eve")], nodes=["ann", "bob", "eve", "joe"])
    >>> friends, friends.edge_count(epsilon=1).margin()
    (Graph(4 nodes, unit='edge'), 3)
    """

    def __init__(self, edges: Any, nodes: Any = None, *, unit: str = "edge") -> None:
        self.unit = one_of(unit, "unit", "edge", "node")
        self._content = read(edges, nodes)

    def __repr__(self) -> str:
        size = f"{self._content.size} nodes, " if self.unit == "edge" else ""  # under node privacy it is private
        return f"Graph({size}unit={self.unit!r})"

    def edges_between(self, groups: Mapping[Any, Hashable], *, epsilon: Number) -> GraphAnswer:
        """Returns the number of edges for each pair of groups. `groups` is public: the group of every node."""
        for_edges(self.unit, self._count_nodes, "edges_between", least=1)
        names, group = _read_groups(groups, self._content)
        question = EdgesBetween(price_of(epsilon), groups=tuple(names))
        return self._answer(question, replace(self._content, groups=group))

    def bounded_triangles(
        self, *, epsilon: Number, most_triangles: int, most_nodes: int, most_edges: int, left_out: bool | None = None
    ) -> GraphAnswer:
        """Returns the number of triangles that can be kept so that no node is in more than `most_triangles`. For node privacy.

        It solves a linear programme, whose time grows with the graph. `most_nodes` and `most_edges` declare how large the
        graph is at most; beyond 2,000 and 10,000 the question is refused. They are not compared with the graph.
        """
        for_nodes(self.unit, "bounded_triangles", "ask for triangles.")
        prices = shares(epsilon, left_out, self._estimates)
        return self._tell(triangles_for_nodes(prices, most_triangles, most_nodes, most_edges))

    def _tell(self, question: Question) -> GraphAnswer:
        return self._answer(question, self._content)

    def _answer(self, question: Question, content: Content) -> GraphAnswer:
        return GraphAnswer.of(question, question.release(content), self.unit, content.size)

    def _count_nodes(self) -> int:
        return self._content.size

    @property
    def _estimates(self) -> bool:
        return True


def _read_groups(groups: Any, graph: Content) -> tuple[list[Hashable], np.ndarray[Any, np.dtype[np.int64]]]:
    """Returns the names of the groups, in the order of `groups`, and the group of each node."""
    if not isinstance(groups, Mapping):
        raise ArgumentError(
            f"groups must be a dict from nodes to groups, and it is a {type(groups).__name__}.",
            fix=Fix("write the group of every node: {call}.", call=Python('{"ann": "north", "bob": "south"}')),
        )
    missing = sum(label not in groups for label in graph.labels)
    if missing:
        raise ArgumentError(f"groups has no group for {missing} of the nodes.", fix="write the group of every node.")
    try:
        names = dict.fromkeys(groups.values())
    except TypeError:
        raise ArgumentError("groups must be names, such as texts or numbers.", fix="name each group by a text.") from None
    if len(names) > MOST_GROUPS:
        raise ArgumentError(f"There are at most {MOST_GROUPS} groups, and groups has {len(names)}.", fix="merge some groups.")
    index = {name: place for place, name in enumerate(names)}
    return list(names), np.array([index[groups[label]] for label in graph.labels], dtype=np.int64)

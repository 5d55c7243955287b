"""A graph and the questions that can be asked about it, at a price.

*Edge privacy* (`unit="edge"`): neighbours have the same nodes and differ by one edge, so the list of nodes is public. It hides
whether two nodes are connected. Whoever has d edges is protected only at d times the price.

*Node privacy* (`unit="node"`): neighbours differ by one node with all its edges, so who is in the graph is private, too. An
answer that is epsilon-private for nodes is 2 epsilon-private for edges: remove one end of the edge with all its edges, and add
it again without that one edge. If a node's edges may be changed in one step ("rewired"), it is epsilon-private for edges.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from fractions import Fraction
from typing import Any

import numpy as np

from dither.errors import ArgumentError, Fix, Python
from dither.exact.numbers import Number, between, one_of, positive, whole
from dither.graphs import choice, counts, programme, projection, shape, smooth
from dither.graphs.answer import Each, GraphAnswer, Together, Unknown
from dither.graphs.projection import project
from dither.graphs.reading import MOST_NODES, Content, read
from dither.mechanisms.geometric import Geometric
from dither.privacy.losses import Pure


class Graph:
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

    # --- edges and degrees --------------------------------------------------------------------------------------

    def edge_count(self, *, epsilon: Number, most_degree: int | None = None) -> GraphAnswer:
        """Returns the number of edges. Under node privacy, of those that are left with `most_degree` edges for each node."""
        theta = self._theta(most_degree, "edge_count")
        graph = self._content if theta is None else project(self._content, theta)
        noise = Geometric(epsilon=epsilon, sensitivity=counts.EDGES if theta is None else projection.edges(theta))
        return self._answer("edges", noise.release(counts.edge_count(graph)), noise, theta)

    def density(self, *, epsilon: Number) -> GraphAnswer:
        """Returns the share of all pairs of nodes that are connected: the noisy number of edges divided by a public number."""
        graph = self._for_edges("density", least=2)
        noise = Geometric(epsilon=epsilon, sensitivity=counts.EDGES)
        pair = Fraction(2, graph.size * (graph.size - 1))
        noisy = noise.release(counts.edge_count(graph))
        return GraphAnswer(int(noisy) * pair, "density", self.unit, noise.loss(), Each(noise, pair), (noise.record(),))

    def degree_histogram(self, *, epsilon: Number, largest: int | None = None, most_degree: int | None = None) -> GraphAnswer:
        """Returns how many nodes have degree 0, 1, …, `largest`; the last number counts all that have more, too.

        Under node privacy `most_degree` takes the place of `largest`: each node keeps at most that many edges.
        """
        theta = self._theta(most_degree, "degree_histogram")
        if theta is not None:
            if largest is not None:
                raise ArgumentError("A graph whose unit is a node takes no largest degree.", fix="give the bound alone.")
            graph, most, norm = project(self._content, theta), theta, projection.histogram(theta)
        else:
            graph, norm = self._for_edges("degree_histogram", least=1), counts.HISTOGRAM
            most = graph.size - 1 if largest is None else min(whole(largest, "largest", least=1), max(1, graph.size - 1))
        noise = Geometric(epsilon=epsilon, sensitivity=norm)
        return self._answer("nodes by degree", noise.release(counts.degree_histogram(graph, most)), noise, theta)

    def cumulative_degrees(self, *, epsilon: Number, most_degree: int, side: str = "at most") -> GraphAnswer:
        """Returns how many nodes have degree at most i (or "at least" i), for i = 0, …, `most_degree`. For node privacy."""
        down = one_of(side, "side", "at most", "at least") == "at most"
        if self.unit != "node":
            raise ArgumentError(
                "cumulative_degrees is for graphs whose unit is a node.", fix="ask for degree_histogram and add its numbers up."
            )
        theta = _bound(most_degree)
        noise = Geometric(epsilon=epsilon, sensitivity=projection.cumulative(theta, at_most=down))
        exact = projection.count_cumulative(project(self._content, theta), theta, at_most=down)
        return self._answer(f"nodes of degree {side} 0, 1, …", noise.release(exact), noise, theta)

    def degree_sequence(self, *, epsilon: Number) -> GraphAnswer:
        """Returns the degrees of all nodes, smallest first. Putting the noisy list in order is free.

        `margin` holds for all degrees at the same time.
        """
        graph = self._for_edges("degree_sequence", least=1)
        noise = Geometric(epsilon=epsilon, sensitivity=counts.SEQUENCE)
        noisy = np.asarray(noise.release(counts.degree_sequence(graph)))
        value = counts.rising(noisy, graph.size - 1)
        margins = Together(noise, graph.size)
        return GraphAnswer(value, "degrees in order", self.unit, noise.loss(), margins, (noise.record(),))

    def edges_between(self, groups: Mapping[Any, Hashable], *, epsilon: Number) -> GraphAnswer:
        """Returns the number of edges for each pair of groups. `groups` is public: the group of every node."""
        graph = self._for_edges("edges_between", least=1)
        names, group = _read_groups(groups, graph)
        noise = Geometric(epsilon=epsilon, sensitivity=counts.GROUPS)
        noisy = np.asarray(noise.release(counts.edges_by_group(graph, group, len(names))))
        places = zip(*np.triu_indices(len(names)), strict=True)
        value = {(names[g], names[h]): int(noisy[place]) for place, (g, h) in enumerate(places)}
        return GraphAnswer(value, "edges by groups", self.unit, noise.loss(), Each(noise), (noise.record(),))

    def suggest_degree(self, *, epsilon: Number, largest: int, for_epsilon: Number | None = None) -> GraphAnswer:
        """Returns a bound on degrees, up to a public `largest`, that suits an edge count at `for_epsilon`. For node privacy.

        The value is private for nodes at this price, so it may be passed on as `most_degree`; the two prices add up.
        """
        if self.unit != "node":
            raise ArgumentError("suggest_degree is for graphs whose unit is a node.", fix="ask without a bound on degrees.")
        cap, price = _bound(largest), between(epsilon, "epsilon", smooth.LEAST, smooth.MOST)
        weight = 3 / (price if for_epsilon is None else between(for_epsilon, "for_epsilon", smooth.LEAST, smooth.MOST))
        chooser = choice.mechanism(price, cap)
        value = chooser.release(choice.scores(choice.qualities(self._content, cap, weight), cap, price))
        bound = {"largest": cap}
        return GraphAnswer(value, "degree bound", self.unit, chooser.loss(), Unknown(), (chooser.record(),), bound)

    # --- triangles and stars ------------------------------------------------------------------------------------

    def triangles(self, *, epsilon: Number, margin_share: Number | None = None) -> GraphAnswer:
        """Returns the number of triangles. The noise depends on this graph, and how much there is of it is private.

        `margin_share`: the share of the price that is spent on a margin, such as 1/4. Without it there is no margin.
        For edge privacy; `bounded_triangles` is for node privacy.
        """
        graph = self._for_edges("triangles", least=3)
        noise, margin = _divided(epsilon, margin_share)
        return self._smooth("triangles", shape.triangle_count(graph), smooth.Triangles.of(graph), noise, margin)

    def bounded_triangles(self, *, epsilon: Number, most_triangles: int, most_nodes: int, most_edges: int) -> GraphAnswer:
        """Returns the number of triangles that can be kept so that no node is in more than `most_triangles`. For node privacy.

        It solves a linear programme, whose time grows with the graph. `most_nodes` and `most_edges` declare how large the
        graph is at most; beyond 2,000 and 10,000 the question is refused. They are not compared with the graph.
        """
        if self.unit != "node":
            raise ArgumentError("bounded_triangles is for graphs whose unit is a node.", fix="ask for triangles.")
        tau = _limited(most_triangles, "most_triangles", programme.MOST_TRIANGLES)
        _limited(most_nodes, "most_nodes", programme.MOST_NODES)
        _limited(most_edges, "most_edges", programme.MOST_EDGES)
        noise = Geometric(epsilon=epsilon, sensitivity=programme.sensitivity(tau))
        noisy = noise.release(programme.kept_triangles(self._content, tau))
        bound = {"most_triangles": tau}
        return GraphAnswer(noisy, "triangles", self.unit, noise.loss(), Each(noise), (noise.record(),), bound)

    def stars(self, k: int, *, epsilon: Number, margin_share: Number | None = None) -> GraphAnswer:
        """Returns the number of k-stars: a node with k of its neighbours. With k = 2, the paths of two edges."""
        edges = _limited(k, "k", MOST_STAR, least=2)
        graph = self._for_edges("stars", least=edges + 1)
        noise, margin = _divided(epsilon, margin_share)
        return self._smooth(f"{edges}-stars", shape.star_count(graph, edges), smooth.Stars.of(graph, edges), noise, margin)

    def _smooth(
        self, what: str, exact: int, levels: smooth.Levels, noise: smooth.SmoothNoise, margin: Geometric | None
    ) -> GraphAnswer:
        bound = noise.bound(levels)
        value = noise.release(exact, bound)
        if margin is None:
            return GraphAnswer(value, what, self.unit, Pure(noise.epsilon), Unknown(), (noise.record(),))
        margins = smooth.SmoothMargins(noise, int(margin.release(noise.level(bound))), margin)
        price = noise.epsilon + margin.epsilon
        return GraphAnswer(value, what, self.unit, Pure(price), margins, (noise.record(), margin.record()))

    # --- shared -------------------------------------------------------------------------------------------------

    def _for_edges(self, name: str, least: int = 0) -> Content:
        """Returns the content for a question that is private for edges, about at least so many nodes."""
        if self.unit != "edge":
            raise ArgumentError(
                f"{name} is private for one edge, and this graph's unit is a node.",
                fix=Fix("ask a question for nodes, or make the graph with {unit}.", unit=Python("unit='edge'")),
            )
        if self._content.size < least:  # the nodes are public
            raise ArgumentError(
                f"{name} needs {least} nodes or more, and there are {self._content.size}.", fix="list all nodes."
            )
        return self._content

    def _theta(self, most_degree: int | None, name: str) -> int | None:
        """Returns the bound on degrees under node privacy, and None under edge privacy."""
        if self.unit == "node":
            if most_degree is None:
                raise ArgumentError(
                    f"{name} needs a bound on degrees: without one, a node could change the answer without limit.",
                    fix=Fix("choose a public bound: {call}.", call=Python(f"{name}(epsilon=1, most_degree=20)")),
                )
            return _bound(most_degree)
        if most_degree is not None:
            raise ArgumentError(
                "A bound on degrees is for graphs whose unit is a node, and this graph's unit is an edge.",
                fix=Fix("leave it out, or make the graph with {unit}.", unit=Python("unit='node'")),
            )
        return None

    def _answer(self, what: str, noisy: Any, noise: Geometric, theta: int | None = None) -> GraphAnswer:
        bound = {} if theta is None else {"most_degree": theta}
        return GraphAnswer(noisy, what, self.unit, noise.loss(), Each(noise), (noise.record(),), bound)


def _bound(most_degree: int) -> int:
    return _limited(most_degree, "most_degree", MOST_NODES)


def _limited(value: int, name: str, most: int, least: int = 1) -> int:
    bound = whole(value, name, least=least)
    if bound > most:
        raise ArgumentError(f"{name} must be at most {most}, and it is larger.", fix="give a smaller one.")
    return bound


MOST_GROUPS = 1000
MOST_STAR = 8


def _divided(epsilon: Number, share: Number | None) -> tuple[smooth.SmoothNoise, Geometric | None]:
    """Returns the noise of the count, and that of its margin if a share of the price is for it."""
    price = positive(epsilon, "epsilon")
    if share is None:
        return smooth.SmoothNoise.of(price), None
    part = between(share, "margin_share", 0, 1, open_low=True, open_high=True)
    return smooth.SmoothNoise.of(price * (1 - part)), Geometric(epsilon=price * part, sensitivity=1)


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

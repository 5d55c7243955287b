"""The questions that can be asked about a graph, as methods: of one in memory, of one on a catalog, and of its quotes.

*Edge privacy* (`unit="edge"`): neighbours have the same nodes and differ by one edge, so the list of nodes is public. It hides
whether two nodes are connected. Whoever has d edges is protected only at d times the price.

*Node privacy* (`unit="node"`): neighbours differ by one node with all its edges, so who is in the graph is private, too. An
answer that is epsilon-private for nodes is 2 epsilon-private for edges: remove one end of the edge with all its edges, and add
it again without that one edge. If a node's edges may be changed in one step ("rewired"), it is epsilon-private for edges.

A method checks what it is given, and makes a question of it (questions.py). It looks at no edge.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from fractions import Fraction
from typing import Generic, TypeVar

from dither.errors import ArgumentError, Fix, Python
from dither.exact.numbers import Number, between, flag, one_of, whole
from dither.graphs import programme, smooth
from dither.graphs.questions import (
    BoundedEdgeCount,
    BoundedHistogram,
    BoundedTriangles,
    CumulativeDegrees,
    DegreeHistogram,
    DegreeSequence,
    Density,
    EdgeCount,
    Question,
    SmoothCount,
    SuggestDegree,
)
from dither.graphs.reading import MOST_NODES
from dither.planning.left_out import reserved

MOST_STAR = 8
Told = TypeVar("Told")


class Questions(ABC, Generic[Told]):
    """Checks what is asked, and hands the question on."""

    unit: str

    @abstractmethod
    def _tell(self, question: Question) -> Told:
        """Returns what becomes of a question: its answer, or its quote."""

    @abstractmethod
    def _count_nodes(self) -> int:
        """Returns the number of nodes. Called under edge privacy only, where it is public."""

    @property
    @abstractmethod
    def _estimates(self) -> bool:
        """Whether answers estimate what their bounds leave out, unless a question says otherwise."""

    # --- edges and degrees --------------------------------------------------------------------------------------

    def edge_count(self, *, epsilon: Number, most_degree: int | None = None, left_out: bool | None = None) -> Told:
        """Returns the number of edges. Under node privacy, of those that are left with `most_degree` edges for each node.

        Under node privacy 5 % of the price buy an estimate of what the bound leaves out; `left_out=False` spends it on the
        answer.
        """
        theta = self._theta(most_degree, "edge_count")
        if theta is None:
            self._nothing_left_out(left_out)
            return self._tell(EdgeCount(price_of(epsilon)))
        return self._tell(checked(BoundedEdgeCount(*self._shares(epsilon, left_out), theta)))

    def density(self, *, epsilon: Number) -> Told:
        """Returns the share of all pairs of nodes that are connected: the noisy number of edges divided by a public number."""
        for_edges(self.unit, self._count_nodes, "density", least=2)
        return self._tell(Density(price_of(epsilon)))

    def degree_histogram(
        self,
        *,
        epsilon: Number,
        largest: int | None = None,
        most_degree: int | None = None,
        left_out: bool | None = None,
    ) -> Told:
        """Returns how many nodes have degree 0, 1, …, `largest`; the last number counts all that have more, too.

        Under node privacy `most_degree` takes the place of `largest`: each node keeps at most that many edges.
        """
        theta = self._theta(most_degree, "degree_histogram")
        if theta is not None:
            if largest is not None:
                raise ArgumentError("A graph whose unit is a node takes no largest degree.", fix="give the bound alone.")
            return self._tell(checked(BoundedHistogram(*self._shares(epsilon, left_out), theta)))
        self._nothing_left_out(left_out)
        size = for_edges(self.unit, self._count_nodes, "degree_histogram", least=1)
        most = size - 1 if largest is None else min(whole(largest, "largest", least=1), max(1, size - 1))
        return self._tell(DegreeHistogram(price_of(epsilon), largest=most))

    def cumulative_degrees(
        self, *, epsilon: Number, most_degree: int, side: str = "at most", left_out: bool | None = None
    ) -> Told:
        """Returns how many nodes have degree at most i (or "at least" i), for i = 0, …, `most_degree`. For node privacy."""
        down = one_of(side, "side", "at most", "at least") == "at most"
        for_nodes(self.unit, "cumulative_degrees", "ask for degree_histogram and add its numbers up.")
        theta = bounded(most_degree, "most_degree", MOST_NODES)
        return self._tell(checked(CumulativeDegrees(*self._shares(epsilon, left_out), theta, down)))

    def degree_sequence(self, *, epsilon: Number) -> Told:
        """Returns the degrees of all nodes, smallest first. Putting the noisy list in order is free.

        `margin` holds for all degrees at the same time.
        """
        for_edges(self.unit, self._count_nodes, "degree_sequence", least=1)
        return self._tell(DegreeSequence(price_of(epsilon)))

    def suggest_degree(self, *, epsilon: Number, largest: int, for_epsilon: Number | None = None) -> Told:
        """Returns a bound on degrees, up to a public `largest`, that suits an edge count at `for_epsilon`. For node privacy.

        The value is private for nodes at this price, so it may be passed on as `most_degree`; the two prices add up.
        """
        for_nodes(self.unit, "suggest_degree", "ask without a bound on degrees.")
        cap, price = bounded(largest, "most_degree", MOST_NODES), price_of(epsilon)
        aim = price if for_epsilon is None else between(for_epsilon, "for_epsilon", smooth.LEAST, smooth.MOST)
        return self._tell(SuggestDegree(price, largest=cap, for_epsilon=aim))

    # --- triangles and stars ------------------------------------------------------------------------------------

    def triangles(self, *, epsilon: Number, margin_share: Number | None = None) -> Told:
        """Returns the number of triangles. The noise depends on this graph, and how much there is of it is private.

        `margin_share`: the share of the price that is spent on a margin, such as 1/4. Without it there is no margin.
        For edge privacy; `bounded_triangles` is for node privacy.
        """
        for_edges(self.unit, self._count_nodes, "triangles", least=3)
        return self._tell(_smooth(epsilon, margin_share))

    def stars(self, k: int, *, epsilon: Number, margin_share: Number | None = None) -> Told:
        """Returns the number of k-stars: a node with k of its neighbours. With k = 2, the paths of two edges."""
        edges = bounded(k, "k", MOST_STAR, least=2)
        for_edges(self.unit, self._count_nodes, "stars", least=edges + 1)
        return self._tell(_smooth(epsilon, margin_share, edges))

    # --- shared -------------------------------------------------------------------------------------------------

    def _shares(self, epsilon: Number, left_out: bool | None) -> tuple[Fraction, Fraction]:
        return shares(epsilon, left_out, self._estimates)

    def _nothing_left_out(self, left_out: bool | None) -> None:
        if left_out is not None and flag(left_out, "left_out"):
            raise ArgumentError("Nothing is left out of a graph whose unit is an edge.", fix="leave left_out out.")

    def _theta(self, most_degree: int | None, name: str) -> int | None:
        """Returns the bound on degrees under node privacy, and None under edge privacy."""
        if self.unit == "node":
            if most_degree is None:
                raise ArgumentError(
                    f"{name} needs a bound on degrees: without one, a node could change the answer without limit.",
                    fix=Fix(
                        "choose a public bound: {call}.", call=Python(f"{name}(epsilon=1, most_degree=20)", "--most-degree 20")
                    ),
                )
            return bounded(most_degree, "most_degree", MOST_NODES)
        if most_degree is not None:
            raise ArgumentError(
                "A bound on degrees is for graphs whose unit is a node, and this graph's unit is an edge.",
                fix=Fix("leave it out, or make the graph with {unit}.", unit=Python("unit='node'")),
            )
        return None


def for_edges(unit: str, count_nodes: Callable[[], int], name: str, least: int) -> int:
    """Returns the number of nodes, for a question that is private for edges, about at least so many nodes."""
    if unit != "edge":
        raise ArgumentError(
            f"{name} is private for one edge, and this graph's unit is a node.",
            fix=Fix("ask a question for nodes, or make the graph with {unit}.", unit=Python("unit='edge'")),
        )
    size = count_nodes()
    if size < least:  # the nodes are public
        raise ArgumentError(f"{name} needs {least} nodes or more, and there are {size}.", fix="list all nodes.")
    return size


def for_nodes(unit: str, name: str, fix: str) -> None:
    """Refuses a question that is private for nodes where edges are protected."""
    if unit != "node":
        raise ArgumentError(f"{name} is for graphs whose unit is a node.", fix=fix)


def shares(epsilon: Number, left_out: bool | None, estimates: bool) -> tuple[Fraction, Fraction]:
    """Returns the price of an answer, and that of an estimate of what its bound leaves out. `estimates`: by default."""
    price = price_of(epsilon)
    wanted = estimates if left_out is None else flag(left_out, "left_out")
    part = reserved(price) if wanted else Fraction(0)
    return price - part, part


def triangles_for_nodes(prices: tuple[Fraction, Fraction], most_triangles: int, most_nodes: int, most_edges: int) -> Question:
    """Returns the question about triangles under node privacy. The declared size is not compared with the graph."""
    tau = bounded(most_triangles, "most_triangles", programme.MOST_TRIANGLES)
    bounded(most_nodes, "most_nodes", programme.MOST_NODES)
    bounded(most_edges, "most_edges", programme.MOST_EDGES)
    return checked(BoundedTriangles(*prices, tau))


def price_of(epsilon: Number) -> Fraction:
    """Returns a price that all noise can be drawn at."""
    return between(epsilon, "epsilon", smooth.LEAST, smooth.MOST)


def checked(question: Question) -> Question:
    """Returns a question whose noise can be drawn. Refuses a bound for which it would be too wide."""
    try:
        question.noises  # noqa: B018 - makes the noise, which checks its scale
    except ArgumentError:
        raise ArgumentError(
            "The bound is so large, and the price so low, that no noise is wide enough.", fix="give a smaller bound."
        ) from None
    return question


def bounded(value: int, name: str, most: int, least: int = 1) -> int:
    """Returns a whole number within public limits."""
    bound = whole(value, name, least=least)
    if bound > most:
        raise ArgumentError(f"{name} must be at most {most}, and it is larger.", fix="give a smaller one.")
    return bound


def _smooth(epsilon: Number, share: Number | None, k: int | None = None) -> SmoothCount:
    price = price_of(epsilon)
    part = Fraction(0) if share is None else between(share, "margin_share", 0, 1, open_low=True, open_high=True)
    if part and price * min(part, 1 - part) < smooth.LEAST:
        raise ArgumentError("margin_share leaves too little of the price.", fix="give a share such as 1/4, or a higher price.")
    return SmoothCount(price, k=k, share=part)

"""Spaces whose outputs are paths: subsets of size k, intervals, and paths in a public acyclic graph.

A network has an edge for each way to go on; an edge may carry one of the private numbers. With f(v) the sum of e^(rate score)
over all paths from v to the end,

    f(end) = 1        f(v) = sum over edges v -> w of e^(rate number) f(w)

a path that leaves v by its edge with probability e^(rate number) f(w) / f(v) has probability e^(rate score) / f(start).
    subset of size k    node (i, j): j of the first i items taken       take item i, or pass
    interval            before, inside, after                          begin, go on, or stop
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import combinations, pairwise
from typing import Any, ClassVar

from flint import arb

from dither.errors import ArgumentError
from dither.exact import balls, numbers
from dither.mechanisms.selection import Scores, read_scores
from dither.mechanisms.spaces.base import Chooser, Output, Space

Values = list[int | Fraction]
_MOST_NODES = 1_000_000  # of a network


@dataclass(frozen=True)
class Edge:
    """A way to go on: the next node, and the place of the private number that counts (None: nothing does)."""

    head: int
    place: int | None = None


Network = tuple[
    tuple[Edge, ...], ...
]  # the edges of each node, in an order in which every edge goes forward; the last is the end


def follow(network: Network, values: Values, rate: Fraction, choose: Chooser) -> list[Edge]:
    """Makes one path from the first node to the last. Returns its edges."""
    totals = _totals(network, values, rate)
    path, node = [], 0
    while node < len(network) - 1:
        edges = network[node]
        if len(edges) == 1:
            chosen = edges[0]
        else:
            chosen = edges[choose(_ways(edges, totals))]
        path.append(chosen)
        node = chosen.head
    return path


Totals = Callable[[], tuple[list[arb], list[arb]]]


def _totals(network: Network, values: Values, rate: Fraction) -> Totals:
    """Returns a function that gives e^(rate number) of every number, and f of every node, at the working precision."""
    known: dict[int, tuple[list[arb], list[arb]]] = {}

    def compute() -> tuple[list[arb], list[arb]]:
        bits = balls.precision()
        if bits not in known:
            factors = [balls.exp(rate * value) for value in values]  # a ball has no largest value
            sums = [arb(1)] * len(network)
            for node in range(len(network) - 2, -1, -1):
                sums[node] = sum((_way(edge, factors, sums) for edge in network[node]), arb(0))
            known[bits] = factors, sums
        return known[bits]

    return compute


def _way(edge: Edge, factors: Sequence[arb], sums: Sequence[arb]) -> arb:
    return sums[edge.head] if edge.place is None else factors[edge.place] * sums[edge.head]


def _ways(edges: Sequence[Edge], totals: Totals) -> Callable[[], list[arb]]:
    def weights() -> list[arb]:
        factors, sums = totals()
        return [_way(edge, factors, sums) for edge in edges]

    return weights


def _read(exact: Scores, count: int, what: str) -> Values:
    values = read_scores(exact, None)
    if len(values) != count:
        raise ArgumentError(
            f"scores must be one for each {what}: {count}, and there are {len(values)}.", fix="match the space."
        )
    return values


@dataclass(frozen=True)
class Subsets(Space):
    """All sets of `k` of the items 0, 1, ..., `items` - 1. A set scores the sum of its items' scores.

    >>> Subsets(items=50, k=10).size
    10272278170
    """

    tag: ClassVar[str] = "subsets"
    items: int
    k: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "items", numbers.whole(self.items, "items", least=1))
        object.__setattr__(self, "k", numbers.whole(self.k, "k", least=1))
        if self.k > self.items:
            raise ArgumentError(f"k must be at most {self.items}, the number of items.", fix="choose fewer.")
        if (self.items - self.k + 1) * (self.k + 1) > _MOST_NODES:
            raise ArgumentError(f"k (items - k) may be at most {_MOST_NODES}.", fix="choose among fewer items.")

    @property
    def size(self) -> int:
        return math.comb(self.items, self.k)

    def read(self, exact: Scores) -> Values:
        return _read(exact, self.items, "item")

    def score(self, values: Values, output: Output) -> int | Fraction:
        return sum((values[item] for item in output), start=Fraction(0))

    def listed(self) -> Iterator[Output]:
        return combinations(range(self.items), self.k)

    def walk(self, values: Values, rate: Fraction, choose: Chooser) -> Output:
        return tuple(edge.place for edge in follow(self._network, values, rate, choose) if edge.place is not None)

    @cached_property
    def _network(self) -> Network:
        nodes = [(i, j) for i in range(self.items + 1) for j in range(self.k + 1) if i - j <= self.items - self.k and j <= i]
        place = {node: number for number, node in enumerate(nodes)}

        def edges(i: int, j: int) -> tuple[Edge, ...]:
            ways = (((i + 1, j + 1), i), ((i + 1, j), None))
            return tuple(Edge(place[head], item) for head, item in ways if head in place)

        return tuple(edges(i, j) for i, j in nodes)

    def record(self) -> dict[str, Any]:
        return {"space": self.tag, "items": self.items, "k": self.k}


@dataclass(frozen=True)
class Intervals(Space):
    """All intervals (first, last) of the cells 0, ..., `cells` - 1, both ends included. One scores the sum of its cells.

    >>> Intervals(cells=1000).size
    500500
    """

    tag: ClassVar[str] = "intervals"
    cells: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "cells", numbers.whole(self.cells, "cells", least=1))
        if 2 * self.cells > _MOST_NODES:
            raise ArgumentError(f"An interval has at most {_MOST_NODES // 2} cells.", fix="use wider cells.")

    @property
    def size(self) -> int:
        return self.cells * (self.cells + 1) // 2

    def read(self, exact: Scores) -> Values:
        return _read(exact, self.cells, "cell")

    def score(self, values: Values, output: Output) -> int | Fraction:
        return sum(values[output[0] : output[1] + 1], start=Fraction(0))

    def listed(self) -> Iterator[Output]:
        return ((first, last) for first in range(self.cells) for last in range(first, self.cells))

    def walk(self, values: Values, rate: Fraction, choose: Chooser) -> Output:
        inside = [edge.place for edge in follow(self._network, values, rate, choose) if edge.place is not None]
        return inside[0], inside[-1]

    @cached_property
    def _network(self) -> Network:
        # Node 2i: nothing taken before cell i. Node 2i - 1: cell i - 1 was the last taken. Node 2 cells: the end.
        n, end = self.cells, 2 * self.cells
        found: list[tuple[Edge, ...]] = []
        for node in range(end):
            i = (node + 1) // 2
            go_on = () if i == n else (Edge(2 * i + 1, i),)
            leave = () if node == 2 * (n - 1) else (Edge(node + 2 if node % 2 == 0 else end),)
            found.append(go_on + leave)
        return (*found, ())

    def record(self) -> dict[str, Any]:
        return {"space": self.tag, "cells": self.cells}


@dataclass(frozen=True)
class Paths(Space):
    """All paths from `source` to `target` in a public graph without cycles. A path scores the sum of its edges' scores,
    which are given in the order of `edges`. An output lists the nodes.

    >>> Paths([("a", "b"), ("b", "d"), ("a", "c"), ("c", "d")], "a", "d").size
    2
    """

    tag: ClassVar[str] = "paths"
    edges: tuple[tuple[Hashable, Hashable], ...]
    source: Hashable
    target: Hashable

    def __init__(self, edges: Sequence[tuple[Hashable, Hashable]], source: Hashable, target: Hashable) -> None:
        object.__setattr__(self, "edges", pairs(edges))
        object.__setattr__(self, "source", source)
        object.__setattr__(self, "target", target)
        if len(set(self.edges)) != len(self.edges):
            raise ArgumentError("edges must be different, and one is there twice.", fix="list each edge once.")
        if not _names(self.source, self.target):
            raise ArgumentError("source and target must be nodes of the graph.", fix="name them as in edges.")
        if self.source == self.target or not self._useful:
            raise ArgumentError("No path leads from source to target.", fix="name two nodes that a path connects.")

    @cached_property
    def _useful(self) -> tuple[Hashable, ...]:
        """Returns the nodes on paths from source to target, in an order in which edges go forward."""
        return tuple(node for node in _sorted(self.edges) if node in self._reached(0) and node in self._reached(1))

    def _reached(self, end: int) -> set[Hashable]:
        """Returns the nodes that are reached from the source forward (0), or from the target backward (1)."""
        start = (self.source, self.target)[end]
        found, waiting = {start}, [start]
        while waiting:
            node = waiting.pop()
            new = {edge[1 - end] for edge in self.edges if edge[end] == node} - found
            found |= new
            waiting += new
        return found if (self.target, self.source)[end] in found else set()

    @cached_property
    def _network(self) -> Network:
        place = {node: number for number, node in enumerate(self._useful)}
        found: list[list[Edge]] = [[] for _ in self._useful]
        for number, (tail, head) in enumerate(self.edges):
            if tail in place and head in place:
                found[place[tail]].append(Edge(place[head], number))
        return tuple(map(tuple, found))

    @cached_property
    def size(self) -> int:
        counts = [1] * len(self._network)
        for node in range(len(counts) - 2, -1, -1):
            counts[node] = sum(counts[edge.head] for edge in self._network[node])
        return counts[0]

    def read(self, exact: Scores) -> Values:
        return _read(exact, len(self.edges), "edge")

    def score(self, values: Values, output: Output) -> int | Fraction:
        places = {edge: number for number, edge in enumerate(self.edges)}
        return sum((values[places[edge]] for edge in pairwise(output)), start=Fraction(0))

    def listed(self) -> Iterator[Output]:
        def onward(path: tuple[int, ...]) -> Iterator[Output]:
            if path[-1] == len(self._network) - 1:
                yield tuple(self._useful[node] for node in path)
            for edge in self._network[path[-1]]:
                yield from onward((*path, edge.head))

        return onward((0,))

    def walk(self, values: Values, rate: Fraction, choose: Chooser) -> Output:
        path = follow(self._network, values, rate, choose)
        return (self.source, *(self._useful[edge.head] for edge in path))

    def record(self) -> dict[str, Any]:
        edges = [[str(tail), str(head)] for tail, head in self.edges]
        return {"space": self.tag, "edges": edges, "source": str(self.source), "target": str(self.target)}


def pairs(edges: Any) -> tuple[tuple[Hashable, Hashable], ...]:
    """Returns edges as pairs of different nodes."""
    fix = 'list pairs of nodes, as in [("a", "b"), ("b", "c")].'
    found = numbers.items(edges, "edges", fix)
    good = all(isinstance(edge, (tuple, list)) and len(edge) == 2 and _names(*edge) and edge[0] != edge[1] for edge in found)
    if not found or not good:
        raise ArgumentError("edges must be pairs of two different nodes.", fix=fix)
    return tuple((tail, head) for tail, head in found)


def _names(*nodes: Any) -> bool:
    return all(isinstance(node, (str, int)) for node in nodes)


def _sorted(edges: Sequence[tuple[Hashable, Hashable]]) -> list[Hashable]:
    """Returns the nodes so that every edge goes forward. Refuses a cycle."""
    nodes = dict.fromkeys(node for edge in edges for node in edge)
    waiting = {node: sum(head == node for _, head in edges) for node in nodes}
    order: list[Hashable] = []
    ready = [node for node, count in waiting.items() if count == 0]
    while ready:
        node = ready.pop(0)
        order.append(node)
        for tail, head in edges:
            if tail == node:
                waiting[head] -= 1
                if waiting[head] == 0:
                    ready.append(head)
    if len(order) < len(nodes):
        raise ArgumentError("edges must have no cycle, and they have one.", fix="leave out an edge of the cycle.")
    return order

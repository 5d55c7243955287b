"""Spanning trees of a public graph, by determinants.

By the matrix-tree theorem the sum of products of weights over all spanning trees is a determinant: the Laplacian's, one row and
one column left out. Edges are decided one after the other: with the edges taken so far contracted and those passed
removed,

    Pr[e is in the tree | earlier decisions] = weight of the trees with e / weight of all trees that are left

a quotient of two determinants, each a ball. A determinant of balls may lose many bits; the precision is raised until the
choice is decided. A graph of n nodes and m edges needs about m determinants of at most n rows.
Reference: Kirchhoff 1847; Guénoche 1983 (drawing trees edge by edge).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import combinations
from math import comb
from typing import Any, ClassVar

from flint import arb, arb_mat, fmpz_mat

from dither.errors import ArgumentError
from dither.exact import balls
from dither.mechanisms.selection import Scores, read_scores
from dither.mechanisms.spaces.base import Chooser, Output, Space, Weights
from dither.mechanisms.spaces.chains import Values, pairs

_MOST_LISTED = 200_000
_MOST_NODES = 100
Powers = Callable[[], list[arb]]
Parts = tuple[int, ...]  # for each node, which part it belongs to: nodes that taken edges connect are one part


@dataclass(frozen=True)
class SpanningTrees(Space):
    """All spanning trees of a public connected graph. A tree scores the sum of its edges' scores, which are given in the
    order of `edges`. An output lists the places of its edges.

    >>> SpanningTrees([(i, j) for i in range(10) for j in range(i)]).size
    100000000
    """

    tag: ClassVar[str] = "spanning trees"
    edges: tuple[tuple[Hashable, Hashable], ...]

    def __init__(self, edges: Sequence[tuple[Hashable, Hashable]]) -> None:
        object.__setattr__(self, "edges", pairs(edges))
        if len(self._nodes) > _MOST_NODES:
            raise ArgumentError(f"A graph may have at most {_MOST_NODES} nodes.", fix="choose a smaller graph.")
        if self.size == 0:
            raise ArgumentError("edges must connect all nodes, and they do not.", fix="ask for the tree of each part.")

    @cached_property
    def _nodes(self) -> dict[Hashable, int]:
        return {node: place for place, node in enumerate(dict.fromkeys(node for edge in self.edges for node in edge))}

    @cached_property
    def _ends(self) -> tuple[tuple[int, int], ...]:
        return tuple((self._nodes[tail], self._nodes[head]) for tail, head in self.edges)

    @cached_property
    def size(self) -> int:
        n = len(self._nodes)
        rows = _laplacian(self._ends, [1] * len(self._ends), n, 0)
        return int(fmpz_mat(rows).det()) if n > 1 else 1

    def read(self, exact: Scores) -> Values:
        values = read_scores(exact, None)
        if len(values) != len(self.edges):
            raise ArgumentError(
                f"scores must be one for each edge: {len(self.edges)}, and there are {len(values)}.", fix="match the edges."
            )
        return values

    def score(self, values: Values, output: Output) -> int | Fraction:
        return sum((values[place] for place in output), start=Fraction(0))

    def listed(self) -> Iterator[Output]:
        nodes = len(self._nodes)
        if comb(len(self.edges), nodes - 1) > _MOST_LISTED:
            raise ArgumentError("The trees of this graph are too many to list.", fix="ask for the law of a smaller graph.")
        for chosen in combinations(range(len(self.edges)), nodes - 1):
            parts = tuple(range(nodes))
            for place in chosen:
                parts = _joined(parts, self._ends[place])
            if len(set(parts)) == 1:
                yield chosen

    def walk(self, values: Values, rate: Fraction, choose: Chooser) -> Output:
        taken: list[int] = []
        powers = _powers(values, rate)
        parts: Parts = tuple(range(len(self._nodes)))
        for place, (tail, head) in enumerate(self._ends):
            if parts[tail] == parts[head]:  # it would close a cycle
                continue
            needed = not self._connected(parts, place + 1)  # no tree is left without it
            if needed or choose(self._ways(powers, parts, place)) == 0:
                taken.append(place)
                parts = _joined(parts, (tail, head))
        return tuple(taken)

    def _connected(self, parts: Parts, first: int) -> bool:
        """Returns whether the edges from place `first` on connect all parts."""
        for edge in self._ends[first:]:
            parts = _joined(parts, edge)
        return len(set(parts)) == 1

    def _ways(self, powers: Powers, parts: Parts, place: int) -> Weights:
        """Returns the weights of the trees with and without the edge, given the earlier decisions."""

        def weights() -> list[arb]:
            each, joined = powers(), _joined(parts, self._ends[place])
            return [each[place] * self._trees(joined, each, place + 1), self._trees(parts, each, place + 1)]

        return weights

    def _trees(self, parts: Parts, powers: Sequence[arb], first: int) -> arb:
        """Returns the weight of all trees that connect the parts by edges from place `first` on."""
        names = {part: place for place, part in enumerate(dict.fromkeys(parts))}
        if len(names) == 1:
            return arb(1)
        ends = [(names[parts[tail]], names[parts[head]]) for tail, head in self._ends[first:]]
        return arb_mat(_laplacian(ends, powers[first:], len(names), arb(0))).det()

    def record(self) -> dict[str, Any]:
        return {"space": self.tag, "edges": [[str(tail), str(head)] for tail, head in self.edges]}


def _powers(values: Values, rate: Fraction) -> Powers:
    """Returns a function that gives the weight of every edge, once at each precision."""
    known: dict[int, list[arb]] = {}

    def compute() -> list[arb]:
        bits = balls.precision()
        if bits not in known:
            known[bits] = [balls.exp(rate * value) for value in values]
        return known[bits]

    return compute


def _laplacian(ends: Sequence[tuple[int, int]], weights: Sequence[Any], nodes: int, zero: Any) -> list[list[Any]]:
    """Returns the Laplacian without its last row and column."""
    rows = [[zero] * nodes for _ in range(nodes)]
    for (tail, head), weight in zip(ends, weights, strict=True):
        if tail != head:
            rows[tail][tail] += weight
            rows[head][head] += weight
            rows[tail][head] -= weight
            rows[head][tail] -= weight
    return [row[:-1] for row in rows[:-1]]


def _joined(parts: Parts, edge: tuple[int, int]) -> Parts:
    tail, head = parts[edge[0]], parts[edge[1]]
    return parts if tail == head else tuple(tail if part == head else part for part in parts)

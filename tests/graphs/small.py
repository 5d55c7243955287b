"""All graphs of a few nodes, by bit masks, and their neighbours."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from itertools import combinations, permutations
from typing import Any

import numpy as np

from dither.graphs.reading import Content, simple


def pairs(n: int) -> list[tuple[int, int]]:
    return list(combinations(range(n), 2))


def content(n: int, edges: Any) -> Content:
    return Content(tuple(range(n)), simple(list(edges)))


@lru_cache(maxsize=4)
def all_graphs(n: int) -> tuple[Content, ...]:
    """The graph of mask m has the pairs of its set bits."""
    places = pairs(n)
    return tuple(content(n, [pair for b, pair in enumerate(places) if m >> b & 1]) for m in range(1 << len(places)))


def most_by_edge(n: int, statistic: Callable[[Content], Any]) -> int:
    """How far one edge moves a vector of whole numbers, in L1, at most."""
    values = np.array([np.atleast_1d(statistic(graph)) for graph in all_graphs(n)], dtype=np.int64)
    masks = np.arange(len(values))
    return max(int(np.abs(values - values[masks ^ (1 << b)]).sum(axis=1).max()) for b in range(len(pairs(n))))


def without(graph: Content, v: int) -> Content:
    """The graph without a node and its edges; the others keep their order."""
    kept = graph.ends[(graph.ends != v).all(axis=1)]
    labels = tuple(label for place, label in enumerate(graph.labels) if place != v)
    return Content(labels, simple(kept - (kept > v)))


@lru_cache(maxsize=4)
def kinds(n: int) -> tuple[Content, ...]:
    """One graph of each kind: most numbers do not depend on labels. Six nodes have 156 kinds."""
    places = {pair: bit for bit, pair in enumerate(pairs(n))}
    masks = np.arange(1 << len(places))
    least = masks.copy()
    for order in permutations(range(n)):
        moved = np.zeros_like(masks)
        for (a, b), bit in places.items():
            moved |= (masks >> bit & 1) << places[min(order[a], order[b]), max(order[a], order[b])]
        np.minimum(least, moved, out=least)
    return tuple(content(n, [pair for pair, bit in places.items() if m >> bit & 1]) for m in np.unique(least).tolist())


def flipped(graph: Content) -> list[Content]:
    """All graphs with one edge more or less."""
    edges = {tuple(edge) for edge in graph.ends.tolist()}
    return [content(graph.size, edges ^ {pair}) for pair in pairs(graph.size)]

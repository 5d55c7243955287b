"""Triangles, stars and what bounds their change: exact numbers from sparse products, in blocks of bounded memory."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np

from dither.exact.laws.base import Integers
from dither.graphs.reading import Content

_WORK = 1 << 22  # products of one block


def triangle_count(graph: Content) -> int:
    """Returns the number of triangles. Edges point from the smaller to the larger degree, so no node has many ahead."""
    degrees = graph.degrees()
    rank = np.empty(graph.size, dtype=np.int64)
    rank[np.lexsort((np.arange(graph.size), degrees))] = np.arange(graph.size)
    ahead = _matrix(np.sort(rank[graph.ends], axis=1), graph.size)
    found = 0
    for rows in _blocks(ahead @ np.diff(ahead.indptr) if graph.size else np.zeros(0, dtype=np.int64)):
        part = ahead[rows]
        found += int((part @ ahead).multiply(part).sum())
    return found


def most_common(graph: Content) -> int:
    """Returns the most neighbours that two nodes share. Nodes of large degree go first: two of degree d share at most d."""
    both = _matrix(np.concatenate([graph.ends, graph.ends[:, ::-1]]), graph.size)
    degrees = np.diff(both.indptr)
    order, best = np.argsort(-degrees, kind="stable"), 0
    for rows in _blocks((both @ degrees)[order]):
        nodes = order[rows]
        if degrees[nodes[0]] <= best:
            break
        shared = (both[nodes] @ both).tocoo()
        others = shared.data[shared.col != nodes[shared.row]]
        best = max(best, int(others.max(initial=0)))
    return best


def largest_total(graph: Content) -> int:
    """Returns the largest sum of two nodes' degrees, without the edge between the two.

    Let D be the sum of the two largest degrees. If not all pairs of sum D are edges, it is D; else if not all of sum D - 1
    are, D - 1; else D - 2, which the first pair has.
    """
    degrees = graph.degrees()
    top = int(np.sort(degrees)[-2:].sum())
    cells = np.bincount(degrees)
    sums = degrees[graph.ends].sum(axis=1)
    for total in (top, top - 1):
        low = np.arange(max(0, total - len(cells) + 1), total // 2 + 1)
        low = low[cells[low] > 0]
        couples = sum(
            int(cells[x]) * int(cells[total - x]) if x != total - x else math.comb(int(cells[x]), 2) for x in low.tolist()
        )
        if couples > int((sums == total).sum()):
            return total
    return top - 2


def star_count(graph: Content, k: int) -> int:
    """Returns the number of stars of k edges: a node with k of its neighbours."""
    return sum(int(count) * math.comb(degree, k) for degree, count in enumerate(np.bincount(graph.degrees()).tolist()))


def _matrix(ends: Integers, size: int) -> Any:
    from scipy import sparse  # loaded only where it is used

    ones = np.ones(len(ends), dtype=np.int64)
    return sparse.csr_array((ones, (ends[:, 0], ends[:, 1])), shape=(size, size))


def _blocks(work: Integers) -> Iterator[Integers]:
    """Returns consecutive rows in blocks of at most `_WORK`, or one row."""
    block = np.cumsum(work) // _WORK
    edges = [0, *(np.flatnonzero(np.diff(block)) + 1).tolist(), len(work)]
    for first, last in pairwise(edges):
        if last > first:
            yield np.arange(first, last)

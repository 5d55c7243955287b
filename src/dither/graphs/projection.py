"""Node privacy by a degree bound: edges are added in a fixed public order while both ends have fewer than `theta` edges.

The order is that of labels: by the smaller end, then by the larger. Neighbours G and G' differ by a node v with its edges; run
both together, edge by edge. Let d_u and d'_u be the degrees so far, and Phi the sum of |d'_u - d_u| over all nodes u but v.

    An edge of v is in G' only. If it is taken, one d'_u grows by 1: Phi grows by at most 1, and d'_v by 1.
    Another edge {u, w} is taken in both, in neither, or in one. Taken in G' only: in G one end was full, say u, and in G' it
    was not, so d_u = theta > d'_u, and |d'_u - d_u| falls by 1 while |d'_w - d_w| moves by at most 1: Phi does not grow.
    Taken in G only: the same with G and G' exchanged.

So at the end Phi <= d'_v <= theta. What is counted afterwards moves by at most

    edges                        2 (|E'| - |E|) = d'_v + sum of (d'_u - d_u), between 0 and 2 d'_v       theta
    nodes by degree              v enters one cell; at most Phi others leave one and enter one          2 theta + 1
    nodes of degree <= i, all i  v is in the theta + 1 - d'_v counts from d'_v on, and a node whose
                                 degree moves by m changes m of them: theta + 1 - d'_v + Phi             theta + 1
    nodes of degree >= i, all i  v is in d'_v + 1 counts: d'_v + 1 + Phi                                2 theta + 1

**Triangles cannot be counted this way.** One node can change the number of triangles of the projected graph without limit: an
edge that is displaced displaces another, and Phi does not see it. tests/graphs/test_projection.py has a chain of k triangles of
degree 3 that one node breaks, although on all graphs of up to six nodes the number moves by no more than theta.
Reference: Day, Li and Lyu, SIGMOD 2016.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dither.exact.laws.base import Integers
from dither.graphs.reading import Content
from dither.mechanisms.norms import L1


def project(graph: Content, theta: int) -> Content:
    """Returns the graph with the edges that are taken. An edge whose two ends have at most theta edges in all always is."""
    degrees = graph.degrees()
    crowded = np.asarray((degrees[graph.ends] > theta).any(axis=1))
    taken = np.logical_not(crowded)
    room = (theta - np.bincount(graph.ends[taken].ravel(), minlength=graph.size)).tolist()
    # A crowded edge has a crowded end. Its other end may have no more than theta edges, and then is never full.
    low = degrees <= theta
    kept = []
    for a, b, free_a, free_b in zip(*graph.ends[crowded].T.tolist(), *low[graph.ends[crowded]].T.tolist(), strict=True):
        fits = (free_a or room[a] > 0) and (free_b or room[b] > 0)
        kept.append(fits)
        if fits:
            room[a] -= 1
            room[b] -= 1
    taken[crowded] = kept
    return replace(graph, ends=graph.ends[taken])


def edges(theta: int) -> L1:
    """Returns how far one node moves the number of edges."""
    return L1(theta)


def histogram(theta: int) -> L1:
    """Returns how far one node moves the numbers of nodes by degree."""
    return L1(2 * theta + 1)


def cumulative(theta: int, *, at_most: bool) -> L1:
    """Returns how far one node moves the numbers of nodes of degree at most i, or at least i, for i = 0, …, theta."""
    return L1(theta + 1 if at_most else 2 * theta + 1)


def count_cumulative(projected: Content, theta: int, *, at_most: bool) -> Integers:
    """Returns the number of nodes of degree at most i, or at least i, for i = 0, …, theta."""
    cells = np.bincount(projected.degrees(), minlength=theta + 1).astype(np.int64)
    return np.cumsum(cells) if at_most else np.cumsum(cells[::-1])[::-1]

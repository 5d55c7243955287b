"""Edges, degrees and groups: exact whole numbers of a graph, and how far one edge moves them.

Neighbours have the same nodes, and one edge {i, j} more or less. Nothing else changes, so

    edges                one number moves by 1                                            EDGES = 1
    edges by groups      the cell of the groups of i and j moves by 1                     GROUPS = 1
    degrees, in order    the degrees of i and j move by 1. One degree that rises from d to d + 1 changes the sorted list in
                         one place, the last that holds d; the second rise changes another place, because after the
                         first one at least two places hold the value that would be changed again  SEQUENCE = 2 places by 1
    nodes by degree      i and j leave one cell and enter another, each                   HISTOGRAM = 4

tests/graphs/test_counts.py checks each on all graphs of up to five nodes, with smaller bounds that must fail.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dither.exact.laws.base import Integers
from dither.graphs.reading import Content
from dither.mechanisms.norms import L1, PerCoordinate

EDGES = L1(1)
GROUPS = L1(1)
SEQUENCE = PerCoordinate(2, 1)
HISTOGRAM = L1(4)


def edge_count(graph: Content) -> int:
    """Returns the number of edges."""
    return len(graph.ends)


def degree_sequence(graph: Content) -> Integers:
    """Returns the degrees of all nodes, smallest first."""
    return np.sort(graph.degrees())


def degree_histogram(graph: Content, largest: int) -> Integers:
    """Returns how many nodes have degree 0, 1, …, `largest`; the last number also counts all above."""
    return np.bincount(np.minimum(graph.degrees(), largest), minlength=largest + 1).astype(np.int64)


def edges_by_group(graph: Content, group: Integers, count: int) -> Integers:
    """Returns the number of edges for each pair of groups g <= h, row by row. `group` has the group of each node."""
    sides = np.sort(group[graph.ends], axis=1)
    cells = np.bincount(sides[:, 0] * count + sides[:, 1], minlength=count * count).reshape(count, count)
    return cells[np.triu_indices(count)].astype(np.int64)


def rising(noisy: Integers, largest: int) -> NDArray[np.float64]:
    """Returns the rising sequence within [0, largest] that is nearest to a noisy one. It is post-processing.

    If no noisy number is off by more than m, no number of the result is: moving every exact number by m bounds the noisy ones,
    and the projection keeps order.
    """
    from scipy.optimize import isotonic_regression  # loaded only where it is used

    if not len(noisy):
        return np.zeros(0)
    risen: NDArray[np.float64] = np.asarray(isotonic_regression(noisy.astype(np.float64)).x)
    return np.clip(risen, 0.0, float(largest))

"""Reads a graph: which nodes there are, and which two of them each edge connects.

    a list of pairs, an array of two columns      with a list of nodes
    a square matrix of scipy.sparse               nodes 0, 1, …; an entry other than 0 is an edge
    a graph of networkx                           its own nodes

What is wrong by type or shape is refused when the graph is made. What is wrong in the data has a meaning, so that no edge
decides whether a question is answered: directions are ignored, an edge that is listed twice or in both directions counts
once, and an edge from a node to itself, or with an end that is not a node, does not count. Nodes listed twice count once.

Nodes are ordered by their label. This order is public: it does not depend on edges, or on who else is in the graph.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dither.errors import ArgumentError, Fix, Python
from dither.exact.laws.base import Integers
from dither.exact.numbers import whole
from dither.query.work import sorted_pairs

Label = int | str
_WIDEST = 1 << 63
MOST_NODES = 1 << 24  # more would need another representation of pairs


@dataclass(frozen=True, eq=False, repr=False)
class Content:
    """The private content: labels in their order, and each edge once, as two indices of labels, the smaller first.

    `groups`: the place of each node's group, where a question is about groups; -1 for none."""

    labels: Sequence[Label]
    ends: Integers
    groups: Integers | None = None

    @property
    def size(self) -> int:
        return len(self.labels)

    def degrees(self) -> Integers:
        """Returns the number of edges at each node."""
        return np.bincount(self.ends.ravel(), minlength=self.size).astype(np.int64)


def read(edges: Any, nodes: Any) -> Content:
    """Returns the content of a graph. `nodes` may be left out where the edges come with their nodes."""
    if callable(getattr(edges, "tocoo", None)) and not isinstance(edges, type):
        return _from_matrix(edges, nodes)
    if callable(getattr(edges, "edges", None)) and hasattr(edges, "nodes") and not isinstance(edges, type):
        return _from_pairs(list(edges.edges()), read_nodes(list(edges.nodes) if nodes is None else nodes))
    labels = read_nodes(nodes)
    if isinstance(edges, np.ndarray) and edges.dtype.kind in "iu":
        return _from_array(edges, labels)
    return _from_pairs(edges.tolist() if isinstance(edges, np.ndarray) else edges, labels)


# --- nodes ------------------------------------------------------------------------------------------------------


def read_nodes(nodes: Any) -> tuple[Label, ...]:
    """Returns the labels in order: whole numbers, or texts. A number n stands for 0, …, n - 1."""
    if nodes is None:
        raise ArgumentError(
            "A list of edges has no nodes without edges, so the nodes must be listed too.",
            fix=Fix("list all nodes, or give their number: {call}.", call=Python("dt.Graph(edges, nodes=1000)")),
        )
    if isinstance(nodes, (int, np.integer)):
        return tuple(range(_at_most(whole(nodes, "nodes", least=0))))
    if isinstance(nodes, range):
        return tuple(sorted(nodes[: _at_most(len(nodes))]))
    labels = _listed(nodes, "nodes", "list the labels of all nodes, or give their number.")
    _at_most(len(labels))
    kinds = {str if isinstance(each, str) else int if _is_whole(each) else None for each in labels}
    if None in kinds or len(kinds) > 1:
        raise ArgumentError(
            "nodes must all be texts, or all be whole numbers of at most 64 bits.",
            fix="label the nodes in one of the two ways.",
        )
    return tuple(sorted({str(each) if kinds == {str} else int(each) for each in labels}))


def _at_most(count: int) -> int:
    if count > MOST_NODES:
        raise ArgumentError(f"A graph has at most {MOST_NODES} nodes.", fix="give fewer nodes.")
    return count


def _is_whole(label: Any) -> bool:
    plain = isinstance(label, (int, np.integer)) and not isinstance(label, (bool, np.bool_))
    return plain and -_WIDEST <= int(label) < _WIDEST


def _listed(values: Any, name: str, fix: str) -> list[Any]:
    if isinstance(values, (str, bytes, dict, type)) or not isinstance(values, Iterable):
        raise ArgumentError(f"{name} must be a list, and it is a {type(values).__name__}.", fix=fix)
    if isinstance(values, np.ndarray):
        if values.ndim != 1:
            raise ArgumentError(f"{name} must have one axis, and it has {values.ndim}.", fix=fix)
        return list(values.tolist())
    return list(values)


# --- edges ------------------------------------------------------------------------------------------------------


def _from_pairs(edges: Any, labels: tuple[Label, ...]) -> Content:
    listed = _listed(edges, "edges", "list pairs of nodes.")
    if not all(isinstance(pair, (tuple, list, np.ndarray)) and len(pair) == 2 for pair in listed):
        raise ArgumentError("edges must be pairs of nodes.", fix="list each edge as (a, b), without weights.")
    index = {label: place for place, label in enumerate(labels)}
    return Content(labels, simple([(_place(a, index), _place(b, index)) for a, b in listed]))


def _place(end: Any, index: dict[Label, int]) -> int:
    """Returns the index of a label, -1 if it is none of a node."""
    return index.get(end if isinstance(end, str) else int(end), -1) if isinstance(end, str) or _is_whole(end) else -1


def _from_array(edges: NDArray[Any], labels: tuple[Label, ...]) -> Content:
    if edges.ndim != 2 or edges.shape[1] != 2:
        raise ArgumentError(
            f"edges must have two columns, and their shape is {edges.shape}.", fix="give one row for each edge."
        )
    if isinstance(edges, np.ma.MaskedArray):
        raise ArgumentError("edges must be a plain array, and it is a masked one.", fix="leave out what is masked.")
    if not labels or isinstance(labels[0], str):
        return Content(labels, simple([]))
    known = np.array(labels, dtype=np.int64)
    given = edges.astype(np.int64)
    place = np.minimum(np.searchsorted(known, given), len(known) - 1)
    found = known[place] == given
    if edges.dtype.kind == "u":
        found &= edges < np.uint64(_WIDEST)  # a larger number would wrap around to a label
    return Content(labels, simple(np.where(found, place, -1)))


def _from_matrix(matrix: Any, nodes: Any) -> Content:
    shape = tuple(matrix.shape)
    if len(shape) != 2 or shape[0] != shape[1]:
        raise ArgumentError(f"A matrix of edges must be square, and its shape is {shape}.", fix="give one row for each node.")
    labels = read_nodes(shape[0] if nodes is None else nodes)
    if len(labels) != shape[0]:
        raise ArgumentError("nodes must have one label for each row of the matrix.", fix="leave nodes out, or list that many.")
    entries = matrix.tocoo()
    stored = np.stack([entries.row, entries.col], axis=1)[np.asarray(entries.data) != 0]
    return Content(labels, simple(stored))


def simple(pairs: Integers | Sequence[tuple[int, int]]) -> Integers:
    """Returns each edge once, in order of its smaller and then its larger index; without loops and unknown ends (-1)."""
    ends = np.asarray(pairs, dtype=np.int64).reshape(-1, 2)
    ends = ends[(ends >= 0).all(axis=1)]
    return sorted_pairs(ends[:, 0], ends[:, 1])

"""Work: the exact query that an engine runs. It returns whole numbers per group, with each unit bounded. No noise, no price.

The relation in a Work is *resolved*: every private relation has the unit as a column named UNIT, joins and per-unit
aggregations use it like any other column, and every expression is total and typed. An engine needs to know nothing
about privacy.

For every group g (a tuple of key values) the engine computes:

1. drop rows of `source` whose UNIT is NULL (if `by_unit`), rows whose key is not in `known`, and if there is a `sample`, rows
   of units that are not in it (query/sample.py);
2. keep at most `max_groups` groups of each unit: those with the smallest keyed hash of (secret, unit, group); ties depend
   only on the unit's own rows and the secret (None: no bound needed);
3. sum each measure over units, each unit's share in one group bounded as the measure says.

With by_unit False every row is its own unit: k is 1, nothing is bounded, one pass.

A Work with `edges` has no measures. It returns the edges of a graph, each once: what is counted of them, and how far one edge
or one node moves it, is decided in graphs/.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dither.catalog.values import Key
from dither.query.nodes import Expression, Filter, Named, Relation

UNIT = "#unit"
MOST_PLAIN = 1_000_000  # different rows of public tables that one work reads


@dataclass(frozen=True)
class Quantised:
    """A number on a public grid: q = floor((min(max(x, low), high) - low) / step + 1/2), a whole number from 0 to `steps`.

    x is computed in IEEE doubles; NaN counts as NULL; -inf and inf clip. high = low + steps * step.
    """

    expression: Expression
    low: Fraction
    step: Fraction
    steps: int


@dataclass(frozen=True)
class Cell:
    """A whole number per row: constant + linear q + square q^2, or `null` where q is NULL. Without argument: `constant`."""

    argument: Quantised | None = None
    constant: int = 0
    linear: int = 0
    square: int = 0
    null: int = 0


@dataclass(frozen=True)
class Sums:
    """The sum of each cell over units. A unit with k counted rows in the group and row sum S adds S if k <= max_rows,
    else trunc(S * max_rows / k) (towards zero, in exact integers). Rows count where `where` is true (None: all rows).
    """

    cells: tuple[Cell, ...]
    max_rows: int
    where: Expression | None = None


@dataclass(frozen=True)
class Distinct:
    """The number of distinct non-NULL values in the group; each unit keeps at most `max_values`, chosen by keyed hash."""

    expression: Expression
    max_values: int


@dataclass(frozen=True)
class Bins:
    """A histogram of q over 0..steps. A unit with c_b of its k counted (non-NULL) rows in bin b adds c_b * SCALE if
    k <= max_rows, else floor(c_b * max_rows * SCALE / k). Bins of weight zero are left out.
    """

    argument: Quantised
    max_rows: int
    where: Expression | None = None


class Histogram(Mapping[int, int]):
    """{bin: weight} in two arrays: the bins, rising, and their weights. For 2^40 rows, all weights together are at most 2^56.

    >>> Histogram(np.array([3, 7]), np.array([65536, 1])) == {3: 65536, 7: 1}
    True
    """

    def __init__(self, bins: NDArray[np.int64], weights: NDArray[np.int64]) -> None:
        self.bins, self.weights = bins, weights

    @classmethod
    def of(cls, weights: Mapping[int, int]) -> Histogram:
        """Returns the histogram of a dict."""
        if isinstance(weights, Histogram):
            return weights
        bins = sorted(weights)
        return cls(np.array(bins, dtype=np.int64), np.array([weights[bin] for bin in bins], dtype=np.int64))

    def __getitem__(self, bin: int) -> int:
        place = int(np.searchsorted(self.bins, bin))
        if place == len(self.bins) or self.bins[place] != bin:
            raise KeyError(bin)
        return int(self.weights[place])

    def __iter__(self) -> Iterator[int]:
        return iter(self.bins.tolist())

    def __len__(self) -> int:
        return len(self.bins)

    def __repr__(self) -> str:
        return f"Histogram({dict(zip(self.bins.tolist(), self.weights.tolist(), strict=True))})"


@dataclass(frozen=True)
class NodeColumn:
    """Nodes that a table lists: the different values of a column that are not NULL. `group`: a column of the same table, whose
    value is the group of a node; `groups`: its public values, in order; `complete`: there are no others."""

    table: str
    column: str
    group: str | None = None
    groups: tuple[Key, ...] = ()
    complete: bool = False


@dataclass(frozen=True)
class NodeRange:
    """Nodes that are the whole numbers from `low` to `high`."""

    low: int
    high: int


@dataclass(frozen=True)
class NodeLabels:
    """Nodes that are listed: all texts, or all whole numbers."""

    labels: tuple[int, ...] | tuple[str, ...]


@dataclass(frozen=True)
class EdgeList:
    """The edges of a graph without directions, each once: pairs of nodes for which some row has one as its first and the other
    as its second end. A row with equal ends, a NULL or an end that is not a node counts for nothing. Nodes are numbered from 0
    in the order of their labels: numbers by size, texts by code points.
    """

    ends: tuple[str, str]  # columns of the Work's source
    nodes: NodeColumn | NodeRange | NodeLabels


@dataclass(frozen=True, eq=False)
class Ends:
    """The result of an EdgeList: the number of nodes; the edges (a, b), a < b, by a and then by b; and the place of each
    node's group among the public ones, -1 for others."""

    size: int
    pairs: NDArray[np.int64]
    groups: NDArray[np.int64] | None = None


def sorted_pairs(first: NDArray[np.int64], second: NDArray[np.int64]) -> NDArray[np.int64]:
    """Returns edges once each, the smaller number first, in order. Leaves out loops.

    >>> sorted_pairs(np.array([2, 1, 0, 3]), np.array([1, 2, 1, 3])).tolist()
    [[0, 1], [1, 2]]
    """
    low, high = np.minimum(first, second), np.maximum(first, second)
    joined = np.sort(((low << 32) | high)[low < high])
    joined = joined[np.concatenate([[True], joined[1:] != joined[:-1]])[: len(joined)]]  # np.unique is many times slower
    return np.stack([joined >> 32, joined & 0xFFFFFFFF], axis=1)


SCALE = 1 << 16
Measure = Sums | Distinct | Bins


@dataclass(frozen=True)
class Work:
    """One exact query. `known`: the public values of each key (None: the keys are those in the data)."""

    source: Relation
    keys: tuple[Named, ...]
    known: tuple[tuple[Key, ...], ...] | None
    by_unit: bool
    max_groups: int | None
    measures: tuple[Measure, ...]
    count_units: bool = False  # also return the number of distinct units per group, to select keys
    plain: bool = False  # keys may be any numbers and moments, as they are: for public tables, whose rows are read, not grouped
    sample: Fraction | None = None  # the probability with which a unit is in the secret sample; only with `by_unit`
    pairs: Pairs | None = field(default=None, compare=False, repr=False)
    edges: EdgeList | None = None  # lists the edges of a graph; then nothing else is asked


@dataclass(frozen=True)
class Pairs:
    """The part of a Work's source that has a row for each unit and group of another Work, `of`, before groups are chosen.

    `relation` groups the rows of `of` by its keys and the unit, counts them, and keeps the groups that are known: what an
    engine computes for `of` anyway. So it may compute both at once. `relation` says all there is to compute; `pairs` is a hint.
    """

    of: Work
    relation: Filter


@dataclass(frozen=True)
class Group:
    """One group's integers: for Sums a tuple with one int per cell, for Distinct an int, for Bins {bin: weight}, for an
    EdgeList its Ends."""

    key: tuple[Key, ...]
    units: int | None
    measures: tuple[tuple[int, ...] | int | Mapping[int, int] | Ends, ...]

"""Questions asked without a strategy: one by one, or all as one vector. What a strategy is compared with.

For each question alone, the most that one record moves it is its largest coefficient, or its largest difference of two
coefficients if a record is replaced. For all as one vector the moves add up: the largest column sum of |W|, or of the
difference of two columns. Where W is too large to write down, 0 and 1 coefficients allow closed forms (|a - b| = a + b - 2ab);
otherwise twice the largest column bounds a replacement.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dither.workloads.factors import All, Factor, Floats, Matrix
from dither.workloads.workload import Workload

MOST_WRITTEN = 4_000_000  # coefficients


@dataclass(frozen=True)
class Vector:
    """How far one record moves all questions together: sums of moves and of squares. `exact`: whether some record does."""

    total: int
    squares: int
    exact: bool = True


def as_vector(workload: Workload, replaced: bool) -> Vector:
    """Returns how far one record moves all questions of a workload together."""
    if workload.cells * workload.size <= MOST_WRITTEN and workload.dense:
        return _written(workload, replaced)
    if not replaced:
        return Vector(_largest(workload, "totals"), _largest(workload, "squares"), _constant(workload))
    if workload.plain:
        moved = sum(bool(math.prod(workload.shape[axis] for axis in term.axes) > 1) for term in workload)
        return Vector(2 * moved, 2 * moved)
    if workload.dense and all(_ones(factor) for term in workload for factor in term.factors):
        gram = np.rint(Workload(workload.shape, tuple(type(t)(t.factors) for t in workload)).gram()).astype(np.int64)
        own = np.diagonal(gram)
        most = int((own[:, None] + own[None, :] - 2 * gram).max())
        return Vector(most, most)
    once = as_vector(workload, replaced=False)
    return Vector(2 * once.total, 4 * once.squares, exact=False)


def each_alone(workload: Workload, replaced: bool) -> Floats:
    """Returns how far one record moves each question; 0 where none does."""
    found = []
    for term in workload:
        low, high = np.ones(1), np.ones(1)
        for factor in term.factors:
            least, most = _ends(factor)
            corners = [np.multiply.outer(a, b).ravel() for a in (low, high) for b in (least, most)]
            low, high = np.min(corners, axis=0), np.max(corners, axis=0)
        found.append(high - low if replaced else np.maximum(np.abs(low), np.abs(high)))
    return np.concatenate(found)


def _written(workload: Workload, replaced: bool) -> Vector:
    rows = workload.rows()
    if not replaced:
        return Vector(int(np.abs(rows).sum(axis=0).max()), int((rows**2).sum(axis=0).max()))
    total = squares = 0
    for column in rows.T:
        moved = rows - column[:, None]
        total, squares = max(total, int(np.abs(moved).sum(axis=0).max())), max(squares, int((moved**2).sum(axis=0).max()))
    return Vector(total, squares)


def _largest(workload: Workload, name: str) -> int:
    """Returns the largest column sum, or the sum over terms of each one's largest."""
    return sum(math.prod(int(getattr(factor, name)().max()) for factor in term.factors) for term in workload)


def _constant(workload: Workload) -> bool:
    """Whether one record is in the largest column of every term."""
    return len(workload.terms) == 1 or workload.plain


def _ones(factor: Factor) -> bool:
    return not isinstance(factor, Matrix) or set(np.unique(factor.rows()).tolist()) <= {0, 1}


def _ends(factor: Factor) -> tuple[Floats, Floats]:
    """Returns the least and the largest coefficient of each question."""
    if isinstance(factor, Matrix):
        rows = factor.rows().astype(float)
        return rows.min(axis=1), rows.max(axis=1)
    if isinstance(factor, All) or factor.cells == 1:
        return np.ones(factor.size), np.ones(factor.size)
    least = np.zeros(factor.size)
    if factor.tag in ("thresholds", "ranges"):
        least[factor.cells - 1] = 1.0  # the question about all cells
    return least, np.ones(factor.size)

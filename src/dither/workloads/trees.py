"""Thresholds and ranges by trees: any number of cells, no optimiser, everything in closed form.

Level l of a b-ary tree adds up blocks of b^(h-l) neighbouring cells. Every level is measured with a share of the price.
With noise of variance v_l on level l, the covariance of estimated cells is the inverse of sum_l B_l / v_l, where B_l has a 1
where two cells are in the same block of level l. Such matrices commute, and their inverse is of the same kind:

    eigenvalue of level l:    lambda_l = sum_{j >= l} b^(h-j) / v_j
    covariance:               sum_l c_l B_l,    c_l = (1/lambda_l - 1/lambda_{l+1}) / b^(h-l),    c_h = 1/lambda_h

so estimates and the variance of every interval take O(log n) steps. Cells beyond the last are 0.
Reference: Hay, Rastogi, Miklau and Suciu, PVLDB 2010 (trees); Qardaji, Yang and Li, PVLDB 2013 (branching).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from scipy.optimize import minimize
from scipy.special import softmax

from dither.workloads.blocks import Block, Moves, Unit, crowded
from dither.workloads.factors import Floats, Integers, Ranges, Thresholds
from dither.workloads.residuals import in_shares
from dither.workloads.strategy import Measured, Strategy
from dither.workloads.workload import Workload

BRANCHINGS = (2, 3, 4, 5, 6, 8, 10, 16)


@dataclass(frozen=True)
class Level(Block):
    """Blocks of `width` neighbouring cells, added up."""

    cells: int
    width: int

    @property
    def size(self) -> int:
        return -(-self.cells // self.width)

    def measure(self, cells: Integers) -> Integers:
        return np.add.reduceat(cells, np.arange(0, self.cells, self.width))

    def moves(self, unit: Unit, replaced: bool) -> Moves:
        changes = 2 if replaced and self.size > 1 else 1
        most = min(unit.groups, self.width) * unit.rows
        return Moves(unit.groups * unit.rows * changes, crowded(unit, self.width) * changes, most)


@dataclass(frozen=True)
class Tree(Strategy):
    """The levels of a tree over one axis, each with its share of the price."""

    workload: Workload
    branching: int
    shares: tuple[Fraction, ...]
    name: str = "tree"
    ratio: float | None = None

    @cached_property
    def widths(self) -> tuple[int, ...]:
        return widths(self.workload.cells, self.branching)

    @cached_property
    def blocks(self) -> tuple[Block, ...]:  # type: ignore[override]
        return tuple(Level(self.workload.cells, each) for each in self.widths)

    def answers(self, measured: Measured, variances: Sequence[float]) -> tuple[Floats, ...]:
        return self.workload.answers(self.cells(measured, variances))

    def cells(self, measured: Measured, variances: Sequence[float]) -> Floats:
        """Returns the estimated cells: the covariance times the sum of all measurements over their variances."""
        n, pads = self.workload.cells, self.widths[0]
        weighed = np.zeros(pads)
        for noisy, width, variance in zip(measured, self.widths, variances, strict=True):
            weighed[: len(noisy) * width] += np.repeat(noisy.astype(float) / variance, width)
        found = np.zeros(pads)
        for width, c in zip(self.widths, coefficients(self.widths, variances), strict=True):
            found += c * np.repeat(weighed.reshape(-1, width).sum(axis=1), width)
        return found[:n]

    def spreads(self, variances: Sequence[float]) -> tuple[Floats, ...]:
        c = coefficients(self.widths, variances)
        return tuple(_spread(term.factors[0], self.widths, c) for term in self.workload)


def tree(workload: Workload, gaussian: bool) -> Tree:
    """Returns the best tree for thresholds, ranges and histograms over one axis."""
    return min((_shared(workload, b, gaussian) for b in BRANCHINGS), key=lambda each: each[0])[1]


def _shared(workload: Workload, branching: int, gaussian: bool) -> tuple[float, Tree]:
    """Returns the error at a price of 1 and the tree, with the best shares for its levels."""
    wide = widths(workload.cells, branching)
    needs = np.array([_need(workload, width) for width in wide])
    power = 1.0 if gaussian else 2.0

    def error(logs: Floats) -> float:
        return float(coefficients(wide, softmax(logs) ** -power) @ needs)

    found = minimize(error, np.zeros(len(wide)), method="L-BFGS-B", bounds=[(-12, 12)] * len(wide))
    return float(found.fun), Tree(workload, branching, in_shares(softmax(found.x).tolist()))


def widths(cells: int, branching: int) -> tuple[int, ...]:
    """Returns how many cells one block of each level has, from the whole axis down to one cell.

    >>> widths(10, 3)
    (27, 9, 3, 1)
    """
    found = [1]
    while found[-1] < cells:
        found.append(found[-1] * branching)
    return tuple(reversed(found))


def coefficients(widths: Sequence[int], variances: Sequence[float] | Floats) -> Floats:
    """Returns c_l of the file's header."""
    sizes, noise = np.array(widths, dtype=float), np.asarray(variances, dtype=float)
    inverse = 1 / np.cumsum((sizes / noise)[::-1])[::-1]
    after = np.append(inverse[1:], 0.0)
    return np.asarray((inverse - after) / sizes)


def _need(workload: Workload, width: int) -> float:
    """Returns the weighted sum over all questions of their squared overlaps with blocks of one level: tr(G B_l)."""
    n = workload.cells
    starts = np.arange(0, n, width)
    total = 0.0
    for term in workload:
        factor = term.factors[0]
        if isinstance(factor, (Thresholds, Ranges)):
            total += term.weight * float(_overlaps(factor, width).sum())
        else:
            rows = factor.rows().astype(float)
            total += term.weight * float((np.add.reduceat(rows, starts, axis=1) ** 2).sum())
    return total


def _overlaps(factor: Thresholds | Ranges, width: int) -> Floats:
    """Returns the sum of squared overlaps of each question with the blocks of one level."""
    n = factor.cells
    if isinstance(factor, Thresholds):
        full, part = np.divmod(np.arange(1, n + 1, dtype=float), width)
        return np.asarray(full * width**2 + part**2)
    first, last = np.triu_indices(n)
    from_, to = first // width, last // width
    head = np.minimum((from_ + 1) * width, last + 1) - first
    tail = np.where(to > from_, last + 1 - to * width, 0)
    between = np.maximum(to - from_ - 1, 0) * float(width) ** 2
    return np.asarray(head.astype(float) ** 2 + tail.astype(float) ** 2 + between)


def _spread(factor: object, widths: Sequence[int], c: Floats) -> Floats:
    """Returns the variance of each answer: the sum over levels of c_l times its squared overlaps."""
    if isinstance(factor, (Thresholds, Ranges)):
        return np.asarray(sum(each * _overlaps(factor, width) for width, each in zip(widths, c, strict=True)))
    rows = factor.rows().astype(float)  # type: ignore[attr-defined]
    starts = [np.arange(0, rows.shape[1], width) for width in widths]
    return np.asarray(
        sum(each * (np.add.reduceat(rows, at, axis=1) ** 2).sum(axis=1) for at, each in zip(starts, c, strict=True))
    )

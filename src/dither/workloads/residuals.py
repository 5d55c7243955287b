"""Marginals with the least error in closed form, for domains of any size.

The table by the axes of w is the sum, over all sets A of axes within w, of what A adds to the tables by fewer axes. These parts
are orthogonal. So each A that some table needs is measured once, as a residual (blocks.py), and

    table w = sum over A in w of the residual of A, spread evenly over the other axes of w

With v_A the variance of the noise on the residual of A, the weighted sum of all variances is sum_A e_A v_A, and
v_A = S_A / 2 rho_A costs rho_A. So the least error at a price of rho has rho_A in proportion to sqrt(e_A S_A), where

    S_A = product over A of n_i (n_i - 1)
    e_A = sum over the tables w that need A of their weight, times (1 - 1/n_i) / n_i over A, times 1 / n_i over the rest of w

No strategy does better: the ratio to the optimum is 1, up to the rounding of the shares.
Reference: Xiao, He, Zhang and Kifer, NeurIPS 2023 (ResidualPlanner). Noise is on whole numbers n_i I - J here, which is the
same measurement times the product of the n_i.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import chain, combinations, product

import numpy as np

from dither.workloads.blocks import Block, Record, Residual, Unit
from dither.workloads.factors import Floats, Integers
from dither.workloads.strategy import GRID, Measured, Strategy
from dither.workloads.workload import Workload

Axes = tuple[int, ...]
PATTERNS = 14  # axes, up to which all patterns of agreement are tried


@dataclass(frozen=True)
class Residuals(Strategy):
    """One residual for each set of axes that some table needs."""

    workload: Workload
    name: str = "residuals"
    ratio: float | None = 1.0

    @cached_property
    def sets(self) -> tuple[Axes, ...]:
        """The sets of axes to measure: all subsets of the tables' axes, the small ones first. Axes of one cell add nothing."""
        found: set[Axes] = set()
        for term in self.workload:
            axes = tuple(axis for axis in term.axes if self.workload.shape[axis] > 1)
            found.update(chain.from_iterable(combinations(axes, k) for k in range(len(axes) + 1)))
        return tuple(sorted(found, key=lambda each: (len(each), each)))

    @cached_property
    def blocks(self) -> tuple[Block, ...]:  # type: ignore[override]
        return tuple(Residual(self.workload.shape, each) for each in self.sets)

    @cached_property
    def _errors(self) -> dict[Axes, float]:
        """e_A: how the variance of the residual of A enters the weighted sum of all variances."""
        found = dict.fromkeys(self.sets, 0.0)
        shape = self.workload.shape
        for term in self.workload:
            axes = [axis for axis in term.axes if shape[axis] > 1]
            for k in range(len(axes) + 1):
                for each in combinations(axes, k):
                    inside = math.prod((1 - 1 / shape[axis]) / shape[axis] for axis in each)
                    outside = math.prod(1 / shape[axis] for axis in axes if axis not in each)
                    found[each] += term.weight * inside * outside
        return found

    @cached_property
    def shares(self) -> tuple[Fraction, ...]:  # type: ignore[override]
        """The share of rho of each residual: in proportion to sqrt(e_A S_A), the noise being S_A / 2 rho_A."""
        wanted = [
            math.sqrt(self._errors[each] * math.prod(self.workload.shape[i] * (self.workload.shape[i] - 1) for i in each))
            for each in self.sets
        ]
        return in_shares(wanted)

    def factor(self, unit: Unit, replaced: bool, gaussian: bool) -> Fraction:
        if not (replaced and isinstance(unit, Record) and gaussian) or len(self.workload.shape) > PATTERNS:
            return Fraction(1)
        return _exchanged(self.workload.shape, self.sets, self.shares)

    def answers(self, measured: Measured, variances: Sequence[float]) -> tuple[Floats, ...]:
        parts = {each: self._part(each, noisy) for each, noisy in zip(self.sets, measured, strict=True)}
        return tuple(self._table(term.axes, parts).reshape(term.shape) for term in self.workload)

    def _part(self, axes: Axes, noisy: Integers) -> Floats:
        """Returns what A adds: the measurement without the noise along directions that no residual has."""
        found = noisy.astype(float)
        for axis in range(len(axes)):
            found = found - found.mean(axis=axis, keepdims=True)
        return found / math.prod(self.workload.shape[axis] for axis in axes)

    def _table(self, axes: Axes, parts: dict[Axes, Floats]) -> Floats:
        shape = self.workload.shape
        wide = tuple(axis for axis in axes if shape[axis] > 1)
        found = np.zeros(tuple(shape[axis] for axis in wide))
        for k in range(len(wide) + 1):
            for each in combinations(wide, k):
                spread = math.prod(shape[axis] for axis in wide if axis not in each)
                own = tuple(shape[axis] if axis in each else 1 for axis in wide)
                found = found + parts[each].reshape(own) / spread
        return found

    def squared_error(self, variances: Sequence[float]) -> float:
        return math.fsum(self._errors[each] * variance for each, variance in zip(self.sets, variances, strict=True))

    def spreads(self, variances: Sequence[float]) -> tuple[Floats, ...]:
        own = dict(zip(self.sets, variances, strict=True))
        found = []
        for term in self.workload:
            axes = [axis for axis in term.axes if self.workload.shape[axis] > 1]
            each = sum(self._variance(part, axes, own[part]) for k in range(len(axes) + 1) for part in combinations(axes, k))
            found.append(np.broadcast_to(np.float64(each), term.shape))
        return tuple(found)

    def _variance(self, part: Axes, axes: Sequence[int], variance: float) -> float:
        """Returns what the residual of `part` adds to the variance of a cell of the table by `axes`."""
        shape = self.workload.shape
        inside = math.prod((1 - 1 / shape[axis]) / shape[axis] ** 2 for axis in part)
        outside = math.prod(1 / shape[axis] for axis in axes if axis not in part)
        return variance * inside * outside**2


def _exchanged(shape: Axes, sets: Sequence[Axes], shares: Sequence[Fraction]) -> Fraction:
    """Returns the largest sum of share times squares, relative to each residual's own largest, when one record is exchanged.

    Computed in floats for all patterns of axes along which the two cells agree, and rounded up by far more than their error.
    """
    wide = [axis for axis, n in enumerate(shape) if n > 1]
    patterns = np.array([each for each in product((True, False), repeat=len(wide)) if not all(each)], dtype=bool)
    if not len(patterns):
        return Fraction(1)
    found = np.zeros(len(patterns))
    for axes, share in zip(sets, shares, strict=True):
        block = Residual(shape, axes)
        most = block.moves(Record(), replaced=True).squares
        if not most:
            continue
        pair = np.ones(len(patterns))
        for axis in axes:
            n = shape[axis]
            pair *= np.where(patterns[:, wide.index(axis)], n * (n - 1), -n)
        found += float(share) * 2 * (block.squares - pair) / most
    return min(Fraction(math.ceil(float(found.max()) * (1 + 1e-9) * GRID), GRID), Fraction(1))


def in_shares(wanted: Sequence[float], grid: int = GRID) -> tuple[Fraction, ...]:
    """Returns shares of 1 in about these proportions, as multiples of 1 / grid; none is 0.

    >>> in_shares([1, 1, 2])
    (Fraction(1, 4), Fraction(1, 4), Fraction(1, 2))
    """
    grid = max(grid, 1 << (8 * len(wanted) - 1).bit_length())
    total, free = math.fsum(wanted), grid - len(wanted)
    exact = [each / total * free for each in wanted]
    steps = [1 + int(each) for each in exact]
    nearest = sorted(range(len(steps)), key=lambda place: int(exact[place]) - exact[place])  # the largest remainders first
    for place in nearest[: grid - sum(steps)]:
        steps[place] += 1
    return tuple(Fraction(each, grid) for each in steps)

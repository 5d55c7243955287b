"""Tables measured with shares of a price, and put together by least squares.

The table by the axes of w is the sum, over all sets A of axes within w, of what A adds to tables by fewer axes (residuals.py).
Every measured table B that contains A has its own noisy version of that part: its table added up over the axes beyond A, whose
noise has variance v_B times the number of cells that are added up. Parts are orthogonal and the noise of a table is the same in
every cell, so least squares takes each part by itself, as the mean of its versions by inverse variance:

    V_A = 1 / sum over B that contain A of 1 / (v_B m_AB)        m_AB = product of n_i over the axes of B beyond A

    variance of a cell of table w = sum over A in w of V_A times (1 - 1/n_i) over A times 1/n_i^2 over the rest of w

The weighted sum over all tables is sum_A e_A V_A, with e_A = weights times (n_i - 1) over A times 1/n_i over the rest of w.
The best shares of the price make its slope in each share equal; the fixed point moves shares towards the steeper slopes.

Measurements are plain tables, each with noise of its own: whatever the shares are, privacy is that of the tables.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import combinations

import numpy as np

from dither.workloads.blocks import Block, Marginal
from dither.workloads.factors import Floats
from dither.workloads.residuals import Axes, in_shares
from dither.workloads.strategy import Measured, Strategy
from dither.workloads.workload import Workload

STEPS = 200
COARSE = 1 << 10  # shares are multiples of 1 / COARSE: the same on every machine


@dataclass(frozen=True)
class Combined(Strategy):
    """Tables by some sets of axes, put together. `workload` has marginals only, each within a measured table."""

    workload: Workload
    sets: tuple[Axes, ...]
    shares: tuple[Fraction, ...]
    name: str = "tables, put together"
    ratio: float | None = None

    @cached_property
    def blocks(self) -> tuple[Block, ...]:  # type: ignore[override]
        return tuple(Marginal(self.workload.shape, each) for each in self.sets)

    def answers(self, measured: Measured, variances: Sequence[float]) -> tuple[Floats, ...]:
        return tuple(
            table.reshape(term.shape)
            for term, table in zip(
                self.workload,
                combine(self.workload.shape, self.sets, measured, variances, [t.axes for t in self.workload]),
                strict=True,
            )
        )

    def spreads(self, variances: Sequence[float]) -> tuple[Floats, ...]:
        shape, parts = self.workload.shape, versions(self.workload.shape, self.sets, variances)
        return tuple(np.broadcast_to(np.float64(variance(shape, parts, term.axes)), term.shape) for term in self.workload)


def combined(workload: Workload, gaussian: bool, costs: Mapping[Axes, float] | None = None) -> Combined:
    """Returns the tables of the workload with the best shares. `costs`: the variance of each table's noise at a price of 1."""
    sets = tuple(dict.fromkeys(term.axes for term in workload))
    noise = [1.0 if costs is None else costs[each] for each in sets]
    weights: dict[Axes, float] = {}
    for term in workload:
        weights[term.axes] = weights.get(term.axes, 0.0) + term.weight
    shares = best_shares(workload.shape, sets, noise, weights, gaussian)
    return Combined(workload, sets, in_shares(shares, COARSE))


def versions(shape: Axes, sets: Sequence[Axes], variances: Sequence[float]) -> dict[Axes, float]:
    """Returns V_A of every part that the measured tables have."""
    weights: dict[Axes, float] = {}
    for axes, noise in zip(sets, variances, strict=True):
        for part in parts_of(axes):
            weights[part] = weights.get(part, 0.0) + _precision(shape, axes, part, noise)
    return {part: 1 / each if each else math.inf for part, each in weights.items()}


def variance(shape: Axes, parts: Mapping[Axes, float], axes: Axes) -> float:
    """Returns the variance of a cell of the table by some axes."""
    return math.fsum(
        parts[part] * math.prod(1 - 1 / shape[i] for i in part) * math.prod(1 / shape[i] ** 2 for i in axes if i not in part)
        for part in parts_of(axes)
    )


def combine(
    shape: Axes, sets: Sequence[Axes], measured: Measured, variances: Sequence[float], wanted: Sequence[Axes]
) -> list[Floats]:
    """Returns the wanted tables, by least squares from the measured ones."""
    found: dict[Axes, Floats] = {}
    weights = versions(shape, sets, variances)
    for axes, noisy, noise in zip(sets, measured, variances, strict=True):
        for part in parts_of(axes):
            beyond = tuple(place for place, axis in enumerate(axes) if axis not in part)
            own = _centred(np.asarray(noisy, dtype=float).reshape([shape[i] for i in axes]).sum(axis=beyond))
            share = _precision(shape, axes, part, noise) * weights[part]
            found[part] = found.get(part, 0.0) + share * own
    return [_table(shape, found, axes) for axes in wanted]


def best_shares(
    shape: Axes, sets: Sequence[Axes], costs: Sequence[float], weights: Mapping[Axes, float], gaussian: bool
) -> list[float]:
    """Returns shares of 1 with about the least weighted error. A table's noise has the variance cost / share (Gaussian) or
    cost / share^2 (geometric). For geometric noise the error is not convex: a few tables at almost the whole price may be
    best, so the fixed point also starts from the tables that no other contains, and from each number of axes alone."""
    errors = _errors(shape, sets, weights)
    parts = [
        {part: _precision(shape, axes, part, cost) for part in parts_of(axes)} for axes, cost in zip(sets, costs, strict=True)
    ]
    starts = [[1.0] * len(sets)]
    if not gaussian:
        starts.append([_FEW if any(set(axes) < set(other) for other in sets) else 1.0 for axes in sets])
        starts += [[1.0 if len(axes) >= k else _FEW for axes in sets] for k in range(1, max(map(len, sets)))]
    found = (_settled(start, parts, errors, 1 if gaussian else 2) for start in starts)
    return min(found, key=lambda each: each[0])[1]


_FEW = 1e-4


def _settled(
    start: Sequence[float], parts: Sequence[Mapping[Axes, float]], errors: Mapping[Axes, float], power: int
) -> tuple[float, list[float]]:
    """Returns the error at the fixed point that a start leads to, and its shares."""
    shares = [each / math.fsum(start) for each in start]
    for _ in range(STEPS):
        total = _totals(shares, parts, power)
        slopes = [
            math.fsum(errors[part] * precision / total[part] ** 2 for part, precision in own.items()) * share ** (power - 1)
            for own, share in zip(parts, shares, strict=True)
        ]
        moved = [share * math.sqrt(slope) for share, slope in zip(shares, slopes, strict=True)]
        shares = [max(each / math.fsum(moved), 1e-9) for each in moved]
    total = _totals(shares, parts, power)
    return math.fsum(error / total[part] for part, error in errors.items()), shares


def _totals(shares: Sequence[float], parts: Sequence[Mapping[Axes, float]], power: int) -> dict[Axes, float]:
    """Returns 1 / V_A of every part."""
    found: dict[Axes, float] = {}
    for own, share in zip(parts, shares, strict=True):
        for part, precision in own.items():
            found[part] = found.get(part, 0.0) + precision * share**power
    return found


def parts_of(axes: Axes) -> Iterator[Axes]:
    """Returns all sets of axes within a set."""
    for k in range(len(axes) + 1):
        yield from combinations(axes, k)


def _precision(shape: Axes, axes: Axes, part: Axes, noise: float) -> float:
    """Returns 1 / (v_B m_AB). A table without noise is almost infinitely precise."""
    return 1 / (max(noise, 1e-12) * math.prod(shape[i] for i in axes if i not in part))


def _errors(shape: Axes, sets: Sequence[Axes], weights: Mapping[Axes, float]) -> dict[Axes, float]:
    """Returns e_A of the file's header."""
    found: dict[Axes, float] = {}
    for axes in sets:
        for part in parts_of(axes):
            inside, outside = math.prod(shape[i] - 1 for i in part), math.prod(1 / shape[i] for i in axes if i not in part)
            found[part] = found.get(part, 0.0) + weights.get(axes, 0.0) * inside * outside
    return found


def _centred(table: Floats) -> Floats:
    for axis in range(table.ndim):
        table = table - table.mean(axis=axis, keepdims=True)
    return table


def _table(shape: Axes, parts: Mapping[Axes, Floats], axes: Axes) -> Floats:
    found = np.zeros([shape[i] for i in axes])
    for part in parts_of(axes):
        spread = math.prod(shape[i] for i in axes if i not in part)
        found = found + parts[part].reshape([shape[i] if i in part else 1 for i in axes]) / spread
    return found

"""Tables measured directly: one block of disjoint sums for each, and no optimiser.

Each measured table gets a share of the price; a question is answered from the measured table with the least variance that
contains it. Tables that others contain are left out as long as that lowers the error. Shares are best in proportion to
e^(1/3) for geometric noise, whose variance is 2 / epsilon^2, and e^(1/2) for Gaussian noise (1 / 2 rho), where e is the
weighted number of cells that are added up for the answers from that table.

With every table measured and nothing left out this is the plain split of a price over several questions.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, reduce

import numpy as np

from dither.workloads.blocks import Block, Marginal
from dither.workloads.factors import Cells, Each, Floats
from dither.workloads.residuals import Axes, in_shares
from dither.workloads.strategy import Measured, Strategy
from dither.workloads.workload import Term, Workload


@dataclass(frozen=True)
class Tables(Strategy):
    """Tables by sets of axes, measured with shares of the price."""

    workload: Workload
    sets: tuple[Axes, ...]
    gaussian: bool
    name: str = "tables"
    ratio: float | None = None

    @cached_property
    def blocks(self) -> tuple[Block, ...]:  # type: ignore[override]
        return tuple(Marginal(self.workload.shape, each) for each in self.sets)

    @cached_property
    def sources(self) -> tuple[int, ...]:
        """Which measured table each term is answered from: the smallest that contains it."""
        return tuple(_smallest(self.workload.shape, self.sets, term.axes) for term in self.workload)

    @cached_property
    def errors(self) -> tuple[float, ...]:
        """e of each measured table."""
        found = [0.0] * len(self.sets)
        for term, source in zip(self.workload, self.sources, strict=True):
            found[source] += term.weight * math.prod(float(each.sum()) for each in self._along(term, self.sets[source]))
        return tuple(found)

    @cached_property
    def shares(self) -> tuple[Fraction, ...]:  # type: ignore[override]
        power = 1 / 2 if self.gaussian else 1 / 3
        return in_shares([each**power for each in self.errors])

    @property
    def error(self) -> float:
        """The weighted sum of variances at a price of 1, up to a constant."""
        power = 1 if self.gaussian else 2
        return sum(e / float(share) ** power for e, share in zip(self.errors, self.shares, strict=True))

    def _along(self, term: Term, axes: Axes) -> list[Floats]:
        """Returns the sums of squared coefficients along each axis of the measured table: answers have their products."""
        return [factor.spread(np.eye(factor.cells)) if axis in axes else np.ones(1) for axis, factor in enumerate(term.factors)]

    def squared_error(self, variances: Sequence[float]) -> float:
        return math.fsum(error * variance for error, variance in zip(self.errors, variances, strict=True))

    def answers(self, measured: Measured, variances: Sequence[float]) -> tuple[Floats, ...]:
        return tuple(
            self._answer(term, self.sets[source], measured[source].astype(float))
            for term, source in zip(self.workload, self.sources, strict=True)
        )

    def _answer(self, term: Term, axes: Axes, table: Cells) -> Floats:
        shape = tuple(n if axis in axes else 1 for axis, n in enumerate(self.workload.shape))
        cells = table.reshape(shape)
        for axis, factor in enumerate(term.factors):
            if axis in axes and not isinstance(factor, Each):
                cells = np.moveaxis(factor.apply(np.moveaxis(cells, axis, 0)), 0, axis)
        return cells

    def spreads(self, variances: Sequence[float]) -> tuple[Floats, ...]:
        return tuple(
            reduce(np.multiply.outer, self._along(term, self.sets[source]), np.array(variances[source]))
            for term, source in zip(self.workload, self.sources, strict=True)
        )


def split(workload: Workload, gaussian: bool) -> Tables:
    """Returns the plain split: the table of every term is measured."""
    return Tables(
        workload, tuple(sorted({term.axes for term in workload}, key=lambda each: (len(each), each))), gaussian, "split"
    )


def best_tables(workload: Workload, gaussian: bool) -> Tables:
    """Returns the tables to measure: all, without those whose loss lowers the error."""
    best = Tables(workload, split(workload, gaussian).sets, gaussian)
    for each in best.sets:
        rest = tuple(other for other in best.sets if other != each)
        if any(set(each) < set(other) for other in rest):
            fewer = Tables(workload, rest, gaussian)
            best = fewer if fewer.error < best.error else best
    return best


def _smallest(shape: Axes, sets: Sequence[Axes], axes: Axes) -> int:
    containing = [place for place, each in enumerate(sets) if set(axes) <= set(each)]
    return min(containing, key=lambda place: math.prod(shape[axis] for axis in sets[place]))

"""Strategies: what to measure so that all questions of a workload have the least error.

    cells ─▶ blocks of whole numbers ─▶ noise for each block ─▶ least squares ─▶ answers of every term, with their variances

A strategy knows its blocks, the share of the price that each gets, and how answers follow from noisy measurements. Shares are
of epsilon (geometric noise) or of rho (Gaussian noise); the price is their sum whatever the answers turn out to be.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dither.errors import ArgumentError
from dither.workloads.blocks import WIDEST, Block, Coefficients, Unit
from dither.workloads.factors import Floats, Integers
from dither.workloads.workload import Workload

Measured = Sequence[NDArray[Any]]  # noisy numbers, one array per block

GRID = 1 << 20  # shares of the price are multiples of 1 / GRID


class Strategy(ABC):
    """Blocks to measure, and how to answer from them."""

    name: str
    workload: Workload
    blocks: tuple[Block, ...]
    shares: tuple[Fraction, ...]
    ratio: float | None  # how many times the least possible error this is, at most; None: no bound is known

    @abstractmethod
    def answers(self, measured: Measured, variances: Sequence[float]) -> tuple[Floats, ...]:
        """Returns the answers of every term, by least squares. `variances`: of the noise of each block."""

    @abstractmethod
    def spreads(self, variances: Sequence[float]) -> tuple[Floats, ...]:
        """Returns the variance of each answer."""

    def factor(self, unit: Unit, replaced: bool, gaussian: bool) -> Fraction:
        """Returns the largest sum over blocks of share times moves, each block's moves relative to its own bound: at most 1.

        Below 1 where no unit moves all blocks by their bounds at once.
        """
        return Fraction(1)

    def measure(self, cells: Integers) -> tuple[Integers, ...]:
        """Returns the exact measurements."""
        return tuple(each.measure(cells) for each in self.blocks)

    def squared_error(self, variances: Sequence[float]) -> float:
        """Returns the weighted sum of the variances of all answers."""
        return sum(term.weight * float(each.sum()) for term, each in zip(self.workload, self.spreads(variances), strict=True))


@dataclass(frozen=True)
class Product(Strategy):
    """One whole-number matrix per axis; answers of every term follow axis by axis."""

    name: str
    workload: Workload
    matrices: tuple[Integers, ...]
    ratio: float | None = None

    @property
    def blocks(self) -> tuple[Block, ...]:  # type: ignore[override]
        return (Coefficients(self.matrices),)

    @property
    def shares(self) -> tuple[Fraction, ...]:  # type: ignore[override]
        return (Fraction(1),)

    def cells(self, measured: Measured) -> Floats:
        """Returns the estimate of the cells: least squares along each axis."""
        found = measured[0].astype(float)
        for axis, matrix in enumerate(self.matrices):
            solve = _solver(matrix)
            found = np.moveaxis(np.tensordot(solve, found, axes=(1, axis)), 0, axis)
        return found

    def answers(self, measured: Measured, variances: Sequence[float]) -> tuple[Floats, ...]:
        return self.workload.answers(self.cells(measured))

    def _along(self) -> list[list[Floats]]:
        """Returns the variances along each axis, for each term: those of its answers are their products."""
        inverses = [_covariance(matrix) for matrix in self.matrices]
        return [
            [factor.spread(inverse) for factor, inverse in zip(term.factors, inverses, strict=True)] for term in self.workload
        ]

    def spreads(self, variances: Sequence[float]) -> tuple[Floats, ...]:
        return tuple(reduce(np.multiply.outer, each, np.array(float(variances[0]))) for each in self._along())

    def squared_error(self, variances: Sequence[float]) -> float:
        sums = (math.prod(float(each.sum()) for each in along) for along in self._along())
        return variances[0] * sum(term.weight * total for term, total in zip(self.workload, sums, strict=True))


@dataclass(frozen=True)
class Flat(Strategy):
    """One whole-number matrix over all cells of a small domain."""

    name: str
    workload: Workload
    matrix: Integers
    ratio: float | None = None

    @property
    def blocks(self) -> tuple[Block, ...]:  # type: ignore[override]
        return (Coefficients((self.matrix,)),)

    @property
    def shares(self) -> tuple[Fraction, ...]:  # type: ignore[override]
        return (Fraction(1),)

    def measure(self, cells: Integers) -> tuple[Integers, ...]:
        return (self.matrix @ cells.reshape(-1),)

    def cells(self, measured: Measured) -> Floats:
        return np.asarray(_solver(self.matrix) @ measured[0].astype(float)).reshape(self.workload.shape)

    def answers(self, measured: Measured, variances: Sequence[float]) -> tuple[Floats, ...]:
        return self.workload.answers(self.cells(measured))

    def spreads(self, variances: Sequence[float]) -> tuple[Floats, ...]:
        inverse = _covariance(self.matrix) * variances[0]
        shape = self.workload.shape
        if len(shape) == 1:
            return tuple(term.factors[0].spread(inverse) for term in self.workload)
        found = []
        for term in self.workload:
            rows = Workload(shape, (term,)).rows().astype(float)
            found.append(np.einsum("ij,jk,ik->i", rows, inverse, rows, optimize=True).reshape(term.shape))
        return tuple(found)


@dataclass(frozen=True)
class Asked(Strategy):
    """The questions themselves, as one vector."""

    workload: Workload
    name: str = "the questions themselves"
    ratio: float | None = None

    @cached_property
    def blocks(self) -> tuple[Block, ...]:  # type: ignore[override]
        return (Coefficients((self.workload.rows(),)),)

    @property
    def shares(self) -> tuple[Fraction, ...]:  # type: ignore[override]
        return (Fraction(1),)

    def measure(self, cells: Integers) -> tuple[Integers, ...]:
        return (np.concatenate([each.reshape(-1) for each in self.workload.answers(cells)]),)

    def answers(self, measured: Measured, variances: Sequence[float]) -> tuple[Floats, ...]:
        ends = np.cumsum([term.size for term in self.workload])[:-1]
        each = np.split(measured[0].astype(float), ends)
        return tuple(part.reshape(term.shape) for part, term in zip(each, self.workload, strict=True))

    def spreads(self, variances: Sequence[float]) -> tuple[Floats, ...]:
        return tuple(np.full(term.shape, float(variances[0])) for term in self.workload)


def rounded(matrix: Floats, scale: int) -> Integers:
    """Returns a strategy in whole numbers, before any data is touched. Refuses what does not fit into 64 bits."""
    if not np.abs(matrix).max(initial=0.0) * scale <= WIDEST:
        raise ArgumentError("This strategy is too large.", fix="use fewer axes or smaller coefficients.")
    return np.rint(matrix * scale).astype(np.int64)


def _solver(matrix: Integers) -> Floats:
    """Returns the pseudo-inverse: estimates of the cells from their measurements."""
    real = matrix.astype(float)
    if matrix.shape[0] == matrix.shape[1]:
        return np.linalg.inv(real)
    return np.linalg.solve(real.T @ real, real.T)


def _covariance(matrix: Integers) -> Floats:
    """Returns the covariance of the estimated cells, for noise of variance 1."""
    real = matrix.astype(float)
    return np.linalg.inv(real.T @ real)

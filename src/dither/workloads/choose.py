"""Which strategy to use: the one with the least error among those that fit the workload.

    marginals, Gaussian          residuals, in closed form
    up to 2048 cells             the dense optimum (Gaussian) or p-Identity (pure)
    one product of factors       the same along each axis
    one long axis                a tree
    always                       tables measured directly, and the plain split

Strategies are found in floats and rounded to whole numbers before any data is touched: rounding costs a little accuracy, never
privacy. They depend on public things only, and are remembered (cache.py).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import lru_cache

import numpy as np

from dither.workloads.asked import MOST_WRITTEN
from dither.workloads.cache import kept
from dither.workloads.combined import combined
from dither.workloads.factors import Each, Factor, Floats, Integers, Ranges, Thresholds
from dither.workloads.identity import p_identity
from dither.workloads.optimum import optimum
from dither.workloads.residuals import Residuals
from dither.workloads.strategy import Asked, Flat, Product, Strategy, rounded
from dither.workloads.tables import best_tables
from dither.workloads.trees import tree
from dither.workloads.workload import DENSE, Workload

BITS = 20  # of the coefficients of a strategy, over all axes


def candidates(workload: Workload, gaussian: bool) -> Iterator[Strategy]:
    """Yields the strategies that fit the workload, the most promising first."""
    if workload.dense and workload.size * workload.cells <= MOST_WRITTEN:
        yield Asked(workload)
    if workload.plain:
        yield Residuals(workload) if gaussian else combined(workload, gaussian)
        if gaussian:
            return
    alone = workload.terms[0] if len(workload.terms) == 1 else None
    if alone is not None and len(workload.shape) > 1 and all(each.cells <= DENSE for each in alone.factors):
        yield _product(workload, gaussian)
    elif workload.dense:
        yield _flat(workload, gaussian)
    long = len(workload.shape) == 1 and not workload.dense
    if long and all(isinstance(each.factors[0], (Each, Thresholds, Ranges)) for each in workload):
        yield tree(workload, gaussian)
    if workload.plain or all(each <= DENSE for each in workload.shape):
        yield best_tables(workload, gaussian)


@lru_cache(maxsize=64)
def strategies(workload: Workload, gaussian: bool) -> tuple[Strategy, ...]:
    """Returns the strategies that fit the workload."""
    return tuple(candidates(workload, gaussian))


def _flat(workload: Workload, gaussian: bool) -> Strategy:
    matrix, ratio = _best(workload.gram(), gaussian, BITS)
    name = "optimum" if gaussian else "p-Identity"
    return Flat(name, workload, matrix, ratio)


def _product(workload: Workload, gaussian: bool) -> Strategy:
    bits = BITS // len(workload.shape)
    found = [_along(factor, gaussian, bits) for factor in workload.terms[0].factors]
    ratios = [ratio for _, ratio in found]
    ratio = math.prod(each for each in ratios if each is not None) if None not in ratios else None
    name = "optimum along each axis" if gaussian else "p-Identity along each axis"
    return Product(name, workload, tuple(matrix for matrix, _ in found), ratio)


@lru_cache(maxsize=64)
def _along(factor: Factor, gaussian: bool, bits: int) -> tuple[Integers, float | None]:
    return _best(factor.gram(), gaussian, bits)


def _best(gram: Floats, gaussian: bool, bits: int) -> tuple[Integers, float | None]:
    """Returns the strategy in whole numbers, and how many times the least possible error it has, at most."""
    if np.count_nonzero(gram - np.diag(np.diagonal(gram))) == 0 and np.ptp(np.diagonal(gram)) == 0:
        return np.eye(len(gram), dtype=np.int64), 1.0 if gaussian else None
    if not gaussian:
        learned, _ = kept(gram, "p-identity", lambda: (p_identity(gram), 0.0))
        return _invertible(rounded(learned, 1 << bits)), None

    def find() -> tuple[Floats, float]:
        best = optimum(gram)
        # The factor with the triangle at the upper right has half the entries of the symmetric root, and rounds better.
        return np.asarray(np.linalg.cholesky(best.matrix).T, dtype=float), best.bound

    factor, bound = kept(gram, "optimum", find)
    matrix = _invertible(rounded(factor, 1 << bits))
    real = matrix.astype(float)
    error = float(np.einsum("ij,ji->", gram, np.linalg.inv(real.T @ real))) * float((real**2).sum(axis=0).max())
    return matrix, math.sqrt(error / bound)


def _invertible(matrix: Integers) -> Integers:
    """Returns the strategy with no 0 on its diagonal: every cell stays measured, however coarse the rounding."""
    places = np.arange(matrix.shape[1])
    matrix[places, places] = np.maximum(matrix[places, places], 1)
    return matrix

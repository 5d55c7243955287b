"""A good strategy for pure epsilon: all cells, and a few learned sums of them.

    A = [I; T] D        T >= 0 with p rows        D = diag(1 / (1 + column sums of T)), so that every column sums to 1

The error 2 tr(G (A'A)^-1) / epsilon^2 is minimised over T. With M = I + TT', c = 1 + column sums and B = (I + T'T)^-1 =
I - T' M^-1 T, the error is f = tr(B C G C), C = diag(c), and

    df/dT = -2 M^-1 T (CGC) B + 2 u 1'        u_j = sum_k c_k G_jk B_jk, the same for every row of T

The problem is not convex: the best of a few starts is kept, and there is no bound. Weighted trees (trees.py) are the
check: they need no optimiser, and this must be better.
Reference: McKenna, Miklau, Hay and Machanavajjhala, PVLDB 2018.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.optimize import minimize

from dither.workloads.factors import Floats

ROWS = 16  # cells for each learned row
STEPS = 500


def p_identity(gram: Floats, starts: int = 3, rows: int | None = None) -> Floats:
    """Returns a strategy whose columns sum to 1 each, good for squared errors weighed by `gram`."""
    n = len(gram)
    p = rows or max(n // ROWS, min(n, 4))
    best, least = np.zeros((p, n)), float(np.trace(gram))
    for start in range(starts if n <= 512 else 1):
        first = np.random.default_rng(start).random((p, n))
        found = minimize(
            _error, first.ravel(), (gram, p), "L-BFGS-B", jac=True, bounds=[(0, None)] * (p * n), options={"maxiter": STEPS}
        )
        if found.fun < least:
            best, least = found.x.reshape(p, n), float(found.fun)
    return np.asarray(np.concatenate([np.eye(n), best]) / (1 + best.sum(axis=0)))


def _error(flat: Floats, gram: Floats, p: int) -> tuple[float, Floats]:
    """Returns f and df/dT of the file's header."""
    rows = flat.reshape(p, -1)
    columns = 1 + rows.sum(axis=0)
    scaled = columns[:, None] * gram * columns[None, :]
    factor = cho_factor(np.eye(p) + rows @ rows.T, check_finite=False)
    inner = cho_solve(factor, rows, check_finite=False)  # M^-1 T
    right = scaled @ rows.T  # CGC T'
    error = float(np.trace(scaled) - np.einsum("ij,ji->", inner, right))
    left = inner @ scaled  # M^-1 T CGC
    through = left - (left @ rows.T) @ inner
    kept = -(gram * (rows.T @ inner)) @ columns + np.diagonal(gram) * columns
    return error, (2 * kept[None, :] - 2 * through).ravel()
